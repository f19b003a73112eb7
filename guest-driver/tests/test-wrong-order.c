/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The five steps of a page-size change in wrong orders, which the card's fault
 * injection makes of the driver's right one, under traffic; the audit is to find
 * each that can tear. Likewise revocations that the card does not do or does
 * late, and a key that comes again before the card has let go of it
 * (wrong-keys.c).
 *
 * The region is 32 MiB: each step is one UMR. Its buffer is contiguous and
 * aligned to 32 MiB, or made of pages of 4 KiB, and the region begins 2 MiB into
 * a block of 32 MiB, so that it gets pages of 2 MiB or 4 KiB, N is 16 or 8192, X
 * is 8, and a page size of 32 MiB with entries for 2 MiB leads to other places of
 * the same buffer. Where a wrong map could lead out of it, pages would have to be
 * aligned by chance; to be safe, accesses to such maps only read.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "audit.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"
#include "wrong-keys.h"

#define SIZE		(32 * MIB)
#define IOVA		(0x7b0000000000ull + 2 * MIB)
#define ACCESSES	24
#define SEED		0x5eed
#define WINDOW		(1000 * MILLISECONDS)	/* how long a step is kept waiting */

struct order {
	const char *name;
	/* What is done to which step; a second one may follow. */
	struct {
		unsigned int step;
		enum qrdma_fault_action action;
	} faults[2];
	/* Step that is kept waiting, so that traffic can look; 0: none. */
	unsigned int window;
	/* NULL: it tears. */
	const char *why_not;
};

static const struct order orders[] = {
	{ .name = "2-dropped", .faults = {{ 2, QRDMA_FAULT_DROP }},
	  .window = 4 },
	{ .name = "4-dropped", .faults = {{ 4, QRDMA_FAULT_DROP }} },
	{ .name = "2-3-swapped", .faults = {{ 2, QRDMA_FAULT_SWAP }} },
	{ .name = "4-5-swapped", .faults = {{ 4, QRDMA_FAULT_SWAP }} },
	{ .name = "1-dropped", .faults = {{ 1, QRDMA_FAULT_DROP }},
	  .why_not = "the invalidation has made every entry absent before step 1" },
	{ .name = "3-dropped", .faults = {{ 3, QRDMA_FAULT_DROP }},
	  .why_not = "entries that were not loaded are absent" },
	{ .name = "5-dropped", .faults = {{ 5, QRDMA_FAULT_DROP }},
	  .why_not = "entries that were not loaded are absent" },
	{ .name = "1-2-swapped", .faults = {{ 1, QRDMA_FAULT_SWAP }},
	  .why_not = "a page size over entries that are absent shows nothing" },
	{ .name = "3-4-swapped", .faults = {{ 3, QRDMA_FAULT_SWAP }},
	  .why_not = "entries come after their page size, over absent ones" },
	{ .name = "naive",
	  .faults = {{ 2, QRDMA_FAULT_DROP }, { 3, QRDMA_FAULT_SWAP }},
	  .why_not = "size first, then entries: over absent ones that is right" },
};

/* A change from one layout to the other. */
struct direction {
	const char *name;
	uint32_t from;			/* enum qrdma_exporter_layout_kind */
	uint32_t to;
	/* Pages where step 3 shows if step 2 is missing. */
	uint64_t torn_first;
	uint64_t torn_count;
};

static const struct direction directions[] = {
	{ "4K-to-2M", QRDMA_EXPORTER_4K, QRDMA_EXPORTER_CONTIGUOUS, 8, 8 },
	{ "2M-to-4K", QRDMA_EXPORTER_CONTIGUOUS, QRDMA_EXPORTER_4K,
	  8 * 512, 8 * 512 },
};

/* ------------------------------------------- the access that begins it all */

/* One read, from a thread: the page fault that it meets has the region loaded. */
struct trigger {
	struct rc_pair *pair;
	struct rc_access access;
	struct ibv_mr *staging;
	void *memory;
	pthread_t thread;
};

static void trigger_create(struct trigger *trigger,
			   const struct subject *subject)
{
	trigger->memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(trigger->memory != MAP_FAILED, "no memory");
	trigger->staging = ibv_reg_mr(subject->device->pd, trigger->memory,
				      PAGE, REGION_ACCESS);
	tap_need(trigger->staging, "ibv_reg_mr");
	trigger->pair = rc_pair_create(subject->device);
	trigger->access = (struct rc_access) {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)trigger->memory,
		.lkey = trigger->staging->lkey,
		.remote = subject->iova,
		.rkey = subject->mr->rkey,
		.length = PAGE,
	};
}

static void trigger_destroy(struct trigger *trigger)
{
	rc_pair_destroy(trigger->pair);
	if (ibv_dereg_mr(trigger->staging))
		tap_bail("ibv_dereg_mr");
	munmap(trigger->memory, PAGE);
}

static void *trigger_run(void *argument)
{
	struct trigger *trigger = argument;

	if (rc_execute(trigger->pair, &trigger->access) != IBV_WC_SUCCESS)
		rc_pair_recover(trigger->pair);
	return NULL;
}

static void trigger_pull(struct trigger *trigger)
{
	if (pthread_create(&trigger->thread, NULL, trigger_run, trigger))
		tap_bail("no thread");
}

/* ------------------------------------------------------------------ cases */

struct bench {
	struct subject subject;
	const struct direction *direction;
	struct trigger trigger;
	struct traffic *traffic;
	char name[40];			/* of the case */
};

static void move(struct bench *bench, uint32_t kind)
{
	int error = exporter_move(bench->subject.fd,
				  (struct layout){ .kind = kind }, 0, 0);

	if (error)
		tap_bail("%s: the exporter does not move: %s", bench->name,
			 strerror(error));
}

static void arm(const struct bench *bench, const struct order *order)
{
	struct fault fault = {
		.target = QRDMA_FAULT_UMR,
		.index = bench->subject.mr->rkey >> 8,
	};

	for (unsigned int i = 0; i < 2; i++) {
		if (!order->faults[i].step)
			continue;
		fault.action = order->faults[i].action;
		fault.at = order->faults[i].step;
		diagnostic_arm(fault);
	}
	if (!order->window)
		return;
	fault.action = QRDMA_FAULT_DELAY;
	fault.at = order->window;
	fault.delay = WINDOW;
	diagnostic_arm(fault);
}

/* While the step is kept waiting: reads where the map is wrong. */
static struct traffic_counts look(struct bench *bench)
{
	const struct direction *direction = bench->direction;
	const struct subject *subject = &bench->subject;
	struct region *region;
	struct traffic *traffic;
	struct traffic_counts counts;

	/* The dropped step, and the one that waits now. */
	diagnostic_wait_fired(2);
	region = region_create(subject->mr,
			       subject->iova + direction->torn_first * PAGE,
			       direction->torn_count, direction->torn_first,
			       SEED);
	memcpy(region->seed, subject->region->seed + direction->torn_first,
	       direction->torn_count * sizeof(*region->seed));
	region->read_only = true;
	traffic = traffic_start(subject->device, region, 17);
	traffic_wait(traffic, ACCESSES);
	counts = traffic_stop(traffic);
	region_free(region);
	return counts;
}

static struct traffic_counts difference(struct traffic_counts a,
					struct traffic_counts b)
{
	return (struct traffic_counts) {
		.right = a.right - b.right,
		.refused = a.refused - b.refused,
		.wrong = a.wrong - b.wrong,
		.bytes = a.bytes - b.bytes,
	};
}

/* Moves the buffer, has the region loaded in that order, and lets traffic see. */
static struct traffic_counts change(struct bench *bench,
				    const struct order *order)
{
	struct traffic_counts before = traffic_counts(bench->traffic);
	struct traffic_counts seen = {}, counts;

	bench->subject.region->read_only = true;
	diagnostic_clear();
	tap_step("%s: the buffer to move", bench->name);
	move(bench, bench->direction->to);
	audit_clear();
	arm(bench, order);
	tap_step("%s: an access that has the region loaded", bench->name);
	trigger_pull(&bench->trigger);
	if (order->window)
		seen = look(bench);
	pthread_join(bench->trigger.thread, NULL);
	tap_step("%s: accesses", bench->name);
	traffic_resume(bench->traffic);
	traffic_wait(bench->traffic, ACCESSES);
	traffic_pause(bench->traffic);
	counts = difference(traffic_counts(bench->traffic), before);
	counts.right += seen.right;
	counts.refused += seen.refused;
	counts.wrong += seen.wrong;
	return counts;
}

static bool in_region(const struct subject *subject,
		      const struct audit_finding *finding)
{
	uint64_t offset = finding->address - subject->iova;

	return finding->length && offset < subject->length &&
	       finding->length <= subject->length - offset;
}

static void judge(struct bench *bench, const struct order *order,
		  struct traffic_counts seen)
{
	struct audit_counters counters = audit_counters();
	uint32_t key = bench->subject.mr->rkey;
	struct audit_finding finding = {};
	bool found = audit_find(QRDMA_FINDING_TORN, key, &finding);

	audit_note(bench->name);
	tap_figures("order=%s direction=%s torn_bytes=%llu torn_accesses=%llu stray_accesses=%llu stale_bytes=%llu traffic_right=%llu traffic_wrong=%llu traffic_refused=%llu",
		    order->name, bench->direction->name,
		    (unsigned long long)counters.torn_bytes,
		    (unsigned long long)counters.torn_accesses,
		    (unsigned long long)counters.stray_accesses,
		    (unsigned long long)counters.stale_bytes,
		    (unsigned long long)seen.right,
		    (unsigned long long)seen.wrong,
		    (unsigned long long)seen.refused);
	if (!order->why_not) {
		tap_ok(counters.torn_bytes && found &&
		       in_region(&bench->subject, &finding),
		       "%s: the audit finds %llu torn bytes, from 0x%llx of key 0x%x on",
		       bench->name, (unsigned long long)counters.torn_bytes,
		       (unsigned long long)finding.address, finding.key);
		tap_note("%s: traffic %s", bench->name,
			 seen.wrong ? "read wrong data" :
			 seen.refused ? "was refused" : "saw nothing");
		return;
	}
	tap_ok(!counters.torn_bytes && !counters.torn_accesses && !found &&
	       !seen.wrong, "%s: cannot tear: %s", bench->name,
	       order->why_not);
}

/* Back to the first layout, in the right order, under traffic that goes on. */
static void restore(struct bench *bench)
{
	struct traffic_counts counts, before;
	struct audit_counters counters;

	diagnostic_clear();
	tap_step("%s: the buffer to move back", bench->name);
	move(bench, bench->direction->from);
	traffic_resume(bench->traffic);
	traffic_wait(bench->traffic, ACCESSES);
	traffic_pause(bench->traffic);

	audit_clear();
	bench->subject.region->read_only = false;
	before = traffic_counts(bench->traffic);
	tap_step("%s: accesses to a region that is right again", bench->name);
	traffic_resume(bench->traffic);
	traffic_wait(bench->traffic, ACCESSES);
	traffic_pause(bench->traffic);
	counts = difference(traffic_counts(bench->traffic), before);
	counters = audit_counters();
	audit_note(bench->name);
	tap_ok(counts.right && !counts.wrong && !counts.refused &&
	       !audit_found(&counters),
	       "%s: the region is right again, and the audit finds nothing",
	       bench->name);
}

static void wrong_order(struct bench *bench, const struct order *order)
{
	struct traffic_counts seen;

	snprintf(bench->name, sizeof(bench->name), "%s %s",
		 bench->direction->name, order->name);
	seen = change(bench, order);
	judge(bench, order, seen);
	restore(bench);
}

/* There and back again with traffic that never rests. */
static void right_order(struct bench *bench)
{
	const uint32_t kinds[] = {
		bench->direction->to, bench->direction->from,
		bench->direction->to, bench->direction->from,
	};
	struct traffic_counts counts, before;
	struct audit_counters counters;

	snprintf(bench->name, sizeof(bench->name), "%s right",
		 bench->direction->name);
	diagnostic_clear();
	audit_clear();
	before = traffic_counts(bench->traffic);
	traffic_resume(bench->traffic);
	for (unsigned int i = 0; i < 4; i++) {
		tap_step("%s: move %u", bench->name, i + 1);
		move(bench, kinds[i]);
		traffic_wait_right(bench->traffic, ACCESSES);
	}
	traffic_pause(bench->traffic);
	counts = difference(traffic_counts(bench->traffic), before);
	counters = audit_counters();
	audit_note(bench->name);
	tap_figures("order=right direction=%s windows=%llu maps=%llu torn_bytes=%llu torn_accesses=%llu unwatched=%llu unjudged=%llu traffic_right=%llu traffic_wrong=%llu traffic_refused=%llu",
		    bench->direction->name,
		    (unsigned long long)counters.windows,
		    (unsigned long long)counters.maps,
		    (unsigned long long)counters.torn_bytes,
		    (unsigned long long)counters.torn_accesses,
		    (unsigned long long)counters.unwatched,
		    (unsigned long long)counters.unjudged,
		    (unsigned long long)counts.right,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)counts.refused);
	tap_ok(counters.windows >= 4 && counters.maps > counters.windows &&
	       !audit_found(&counters) && !counters.unwatched &&
	       !counts.wrong && !counts.refused,
	       "%s: the audit looks at %llu maps in %llu windows and finds nothing",
	       bench->name, (unsigned long long)counters.maps,
	       (unsigned long long)counters.windows);
}

static void run(struct rc_device *device, const struct direction *direction)
{
	struct bench bench = {
		.direction = direction,
		.subject = {
			.device = device,
			.size = SIZE,
			.length = SIZE,
			.iova = IOVA,
			.dynamic = true,
		},
	};

	tap_step("%s: registration", direction->name);
	subject_begin(&bench.subject,
		      (struct layout){ .kind = direction->from }, SEED);
	trigger_create(&bench.trigger, &bench.subject);
	bench.traffic = traffic_start(device, bench.subject.region, 13);
	traffic_wait(bench.traffic, ACCESSES);
	traffic_pause(bench.traffic);

	right_order(&bench);
	for (unsigned int i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
		wrong_order(&bench, &orders[i]);

	traffic_stop(bench.traffic);
	trigger_destroy(&bench.trigger);
	tap_ok(!subject_check(&bench.subject),
	       "%s: the data is whole in the end", direction->name);
	subject_end(&bench.subject);
}

int main(void)
{
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	if (!audit_open(device))
		tap_bail("the card has no audit: it wants the property audit=on");
	audit_watch(0);
	for (unsigned int i = 0;
	     i < sizeof(directions) / sizeof(directions[0]); i++)
		run(device, &directions[i]);
	wrong_keys(device);
	diagnostic_clear();
	audit_clear();
	tap_ok(!rc_fatal_events(device), "the device never failed");
	rc_close(device);
	return tap_end();
}
