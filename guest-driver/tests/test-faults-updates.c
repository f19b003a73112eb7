/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * UMRs that are refused, slow, not done, done late, twice or in another order, and
 * completions of UMRs that are slow, lost, doubled or swapped. Callers get an
 * errno or what they asked for, the queue goes on, and where the card can no
 * longer be believed the device dies soon rather than in minutes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "card.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(2 * MIB)
#define LARGE		(32 * MIB)
#define IOVA		0x770000000000ull
#define SEED		0x5eed
#define SEED_AFTER	0xaf7e4
#define ACCESSES	12
#define SHORT		(200 * MILLISECONDS)
#define SOON		20	/* seconds */
#define WORKERS		3
#define ROUNDS		10

/* A page whose rights are changed by UMR, and a way to reach it. */
struct bench {
	struct rc_device *device;
	struct rc_pair *pair;
	char *memory;			/* two pages: the region, and a staging page */
	struct ibv_mr *mr;
	struct ibv_mr *staging;
};

static void bench_begin(struct bench *bench, struct rc_device *device)
{
	bench->device = device;
	bench->memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(bench->memory != MAP_FAILED, "no memory");
	stamp_pages(bench->memory, SEED, 0, 1);
	bench->mr = ibv_reg_mr(device->pd, bench->memory, PAGE, REGION_ACCESS);
	bench->staging = ibv_reg_mr(device->pd, bench->memory + PAGE, PAGE,
				    REGION_ACCESS);
	tap_need(bench->mr && bench->staging, "ibv_reg_mr");
	bench->pair = rc_pair_create(device);
}

static void bench_end(struct bench *bench)
{
	rc_pair_destroy(bench->pair);
	if (ibv_dereg_mr(bench->mr) || ibv_dereg_mr(bench->staging))
		tap_bail("ibv_dereg_mr");
	munmap(bench->memory, 2 * PAGE);
}

/* Remote access or none: one UMR. 0 or an errno. */
static int allow_remote(struct ibv_mr *mr, bool allow)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    allow ? REGION_ACCESS : IBV_ACCESS_LOCAL_WRITE) ?
	       errno : 0;
}

/* Remote access works, and gives the page. */
static bool reachable(struct bench *bench)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->memory + PAGE,
		.lkey = bench->staging->lkey,
		.remote = (uintptr_t)bench->memory,
		.rkey = bench->mr->rkey,
		.length = PAGE,
	};

	memset(bench->memory + PAGE, 0, PAGE);
	if (rc_execute(bench->pair, &access) != IBV_WC_SUCCESS) {
		rc_pair_recover(bench->pair);
		return false;
	}
	return !stamp_check(bench->memory + PAGE, SEED, 0, 1, NULL);
}

static void arm(enum qrdma_fault_target target, enum qrdma_fault_action action,
		uint32_t index, uint64_t delay)
{
	diagnostic_arm((struct fault) {
		.target = target,
		.action = action,
		.index = index,
		.delay = delay,
	});
}

/* Whatever happened, the next change counts. */
static bool recovered(struct bench *bench)
{
	bool off, on;

	diagnostic_clear();
	off = !allow_remote(bench->mr, false) && !reachable(bench);
	on = !allow_remote(bench->mr, true) && reachable(bench);
	return off && on;
}

/* --------------------------------------------------- one caller, one UMR */

static void umr_refused(struct bench *bench)
{
	uint32_t index = bench->mr->rkey >> 8;
	int error;

	tap_step("fail umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, index, 0);
	error = allow_remote(bench->mr, false);
	tap_ok(error == EREMOTEIO && reachable(bench),
	       "fail umr: %s, and the rights are as before", strerror(error));
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_UMR,
		.action = QRDMA_FAULT_FAIL,
		.status = QRDMA_STATUS_NO_RESOURCES,
		.index = index,
	});
	error = allow_remote(bench->mr, false);
	tap_ok(error == ENOMEM && reachable(bench),
	       "fail umr with another status: %s", strerror(error));
	tap_ok(recovered(bench), "fail umr: the queue recovers");
}

static void umr_slow(struct bench *bench)
{
	tap_step("delay umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_DELAY, bench->mr->rkey >> 8, SHORT);
	tap_ok(!allow_remote(bench->mr, false) && !reachable(bench),
	       "delay umr: it is waited for");
	tap_ok(recovered(bench), "delay umr: the next one works");
}

/* The card lies, and nobody can tell: no error, and no harm to the queue. */
static void umr_not_done(struct bench *bench)
{
	uint32_t index = bench->mr->rkey >> 8;

	tap_step("drop umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_DROP, index, 0);
	tap_ok(!allow_remote(bench->mr, false) && reachable(bench),
	       "drop umr: no error, and nothing done");
	tap_ok(recovered(bench), "drop umr: the next one works");

	tap_step("late umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_LATE, index, SHORT);
	tap_ok(!allow_remote(bench->mr, false), "late umr: no error");
	diagnostic_wait_released();
	tap_ok(!reachable(bench), "late umr: done in the end");
	tap_ok(recovered(bench), "late umr: the next one works");

	tap_step("duplicate umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_DUPLICATE, index, SHORT);
	tap_ok(!allow_remote(bench->mr, false), "duplicate umr: no error");
	diagnostic_wait_released();
	tap_ok(recovered(bench), "duplicate umr: the next one works");

	tap_step("swap umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_SWAP, index, 0);
	tap_ok(!allow_remote(bench->mr, false) &&
	       !allow_remote(bench->mr, true), "swap umr: no error");
	tap_ok(recovered(bench), "swap umr: the next one works");
}

static void completion_odd(struct bench *bench)
{
	uint32_t index = bench->mr->rkey >> 8;
	int error;

	tap_step("delay completion");
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DELAY, index, SHORT);
	tap_ok(!allow_remote(bench->mr, false),
	       "delay completion: it is waited for");
	tap_ok(recovered(bench), "delay completion: the next one works");

	tap_step("duplicate completion");
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DUPLICATE, index, 0);
	tap_ok(!allow_remote(bench->mr, false), "duplicate completion: no error");
	tap_ok(recovered(bench), "duplicate completion: the next one works");

	/* The queue is restarted, and its counters begin again. */
	tap_step("duplicate completion of a refused umr");
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, index, 0);
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DUPLICATE, index, 0);
	error = allow_remote(bench->mr, false);
	tap_ok(error == EREMOTEIO,
	       "duplicate completion of a refused umr: %s", strerror(error));
	tap_ok(recovered(bench),
	       "duplicate completion of a refused umr: the queue recovers");
	check_alive("one umr", bench->device);
}

/* ------------------------------------------------------- several callers */

struct worker {
	struct bench *bench;
	atomic_bool *stop;
	pthread_t thread;
	struct ibv_mr *mr;
	char *memory;
	unsigned int changes;
	unsigned int errors;
};

static void *change_rights(void *argument)
{
	struct worker *worker = argument;

	while (!atomic_load(worker->stop))
		worker->errors += allow_remote(worker->mr,
					       worker->changes++ % 2) != 0;
	return NULL;
}

static void worker_begin(struct worker *worker, struct bench *bench,
			 atomic_bool *stop)
{
	*worker = (struct worker){ .bench = bench, .stop = stop };
	worker->memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(worker->memory != MAP_FAILED, "no memory");
	worker->mr = ibv_reg_mr(bench->device->pd, worker->memory, PAGE,
				REGION_ACCESS);
	tap_need(worker->mr, "ibv_reg_mr");
	if (pthread_create(&worker->thread, NULL, change_rights, worker))
		tap_bail("no thread");
}

static void worker_end(struct worker *worker)
{
	pthread_join(worker->thread, NULL);
	if (ibv_dereg_mr(worker->mr))
		tap_bail("ibv_dereg_mr");
	munmap(worker->memory, PAGE);
}

struct storm {
	const char *name;
	enum qrdma_fault_target target;
	enum qrdma_fault_action action;
	uint64_t delay;
	bool refuse;			/* a UMR is refused each time, too */
};

static const struct storm storms[] = {
	{ "swapped umrs", QRDMA_FAULT_UMR, QRDMA_FAULT_SWAP, 0, false },
	{ "slow completions", QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DELAY,
	  20 * MILLISECONDS, false },
	{ "swapped completions", QRDMA_FAULT_COMPLETION, QRDMA_FAULT_SWAP, 0,
	  false },
	{ "doubled completions", QRDMA_FAULT_COMPLETION,
	  QRDMA_FAULT_DUPLICATE, 0, false },
	{ "swapped completions of refused umrs", QRDMA_FAULT_COMPLETION,
	  QRDMA_FAULT_SWAP, 0, true },
	{ "doubled completions of refused umrs", QRDMA_FAULT_COMPLETION,
	  QRDMA_FAULT_DUPLICATE, 0, true },
};

/* The faults meet whoever it is; somebody always comes after. */
static void storm(struct bench *bench, const struct storm *storm)
{
	struct worker workers[WORKERS];
	unsigned int changes = 0, errors = 0;
	atomic_bool stop = false;

	for (unsigned int i = 0; i < WORKERS; i++)
		worker_begin(&workers[i], bench, &stop);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		tap_step("%s: round %u", storm->name, i);
		diagnostic_clear();
		/*
		 * What is held back must not be the last completion that
		 * recovery waits for: so the last round's recovery is over
		 * first, and the refusal comes second.
		 */
		if (allow_remote(bench->mr, true))
			tap_bail("%s: the queue does not recover",
				 storm->name);
		arm(storm->target, storm->action, 0, storm->delay);
		if (storm->refuse)
			arm(QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, 0, 0);
		diagnostic_wait_fired(1 + storm->refuse);
		diagnostic_wait_released();
	}
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WORKERS; i++) {
		tap_step("%s: worker %u", storm->name, i);
		worker_end(&workers[i]);
		changes += workers[i].changes;
		errors += workers[i].errors;
	}
	tap_figures("changes=%u errnos=%u", changes, errors);
	tap_ok(errors == (storm->refuse ? ROUNDS : 0) &&
	       !rc_fatal_events(bench->device),
	       "%s: %u changes by %u threads, as many errnos as refusals",
	       storm->name, changes, WORKERS);
	tap_ok(recovered(bench), "%s: the queue works", storm->name);
}

/* --------------------------------------------------------- dynamic regions */

/*
 * A region that moves while the card does not do what a UMR of it says. Counts:
 * UMR 1 is the invalidation's, 2 to 6 are the five steps.
 */
static void moved(struct bench *bench, const char *name, uint64_t size,
		  struct fault fault)
{
	struct subject subject = {
		.device = bench->device,
		.size = size,
		.length = size,
		.iova = IOVA,
		.dynamic = true,
	};
	struct traffic_counts counts;
	struct traffic *traffic;

	tap_step("%s: registration", name);
	subject_begin(&subject, LAYOUT(4K), SEED);
	traffic = traffic_start(bench->device, subject.region, 91);
	traffic_wait(traffic, ACCESSES);
	fault.target = QRDMA_FAULT_UMR;
	fault.index = subject.mr->rkey >> 8;
	diagnostic_clear();
	diagnostic_arm(fault);
	tap_step("%s: move and accesses", name);
	if (exporter_move(subject.fd, LAYOUT(2M), 0, 0))
		tap_bail("%s: the exporter does not move", name);
	traffic_wait(traffic, ACCESSES);
	diagnostic_wait_released();
	traffic_wait(traffic, ACCESSES);
	counts = traffic_stop(traffic);
	tap_ok(counts.right && !counts.wrong && !counts.refused &&
	       diagnostic_fired() >= 1 && !subject_check(&subject),
	       "%s: every access is right in the end", name);
	diagnostic_clear();
	subject_end(&subject);
}

/* Nothing that is loaded arrives: accesses fail, they do not go round for ever. */
static void never_loaded(struct bench *bench)
{
	const char *name = "drop every load";
	struct subject subject = {
		.device = bench->device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
		.dynamic = true,
	};
	struct traffic *traffic;
	struct traffic_counts counts;

	tap_step("%s", name);
	subject_begin(&subject, LAYOUT(4K), SEED);
	if (exporter_move(subject.fd, LAYOUT(64K), 0, 0))
		tap_bail("%s: the exporter does not move", name);
	diagnostic_clear();
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_UMR,
		.action = QRDMA_FAULT_DROP,
		.count = QRDMA_FAULT_FOR_EVER,
		.index = subject.mr->rkey >> 8,
	});
	traffic = traffic_start(bench->device, subject.region, 92);
	traffic_wait_refused(traffic, 3);
	traffic_pause(traffic);
	counts = traffic_counts(traffic);
	tap_ok(counts.refused && !counts.wrong,
	       "%s: accesses fail, and do not wait for ever", name);
	diagnostic_clear();
	if (exporter_move(subject.fd, LAYOUT(4K), 0, 0))
		tap_bail("%s: the exporter does not move", name);
	traffic_resume(traffic);
	traffic_wait_right(traffic, ACCESSES);
	tap_ok(!traffic_stop(traffic).wrong && !subject_check(&subject),
	       "%s: after the next move the region is right", name);
	subject_end(&subject);
}

static void dynamic(struct bench *bench)
{
	moved(bench, "duplicate invalidation", SIZE, (struct fault) {
		.action = QRDMA_FAULT_DUPLICATE,
		.delay = SHORT,
	});
	moved(bench, "drop step 3", LARGE, (struct fault) {
		.action = QRDMA_FAULT_DROP,
		.at = 4,
	});
	moved(bench, "drop step 5", LARGE, (struct fault) {
		.action = QRDMA_FAULT_DROP,
		.at = 6,
	});
	moved(bench, "delay step 4", LARGE, (struct fault) {
		.action = QRDMA_FAULT_DELAY,
		.at = 5,
		.delay = SHORT,
	});
	moved(bench, "late step 5", LARGE, (struct fault) {
		.action = QRDMA_FAULT_LATE,
		.at = 6,
		.delay = SHORT,
	});
	never_loaded(bench);
	check_alive("dynamic", bench->device);
}

/* -------------------------------------------------------------- revocation */

/* The UMR is refused, and maybe the command that is tried then. */
static void revocation(struct rc_device *device, const char *name,
		       bool refuse_command)
{
	struct subject subject = {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
	};
	uint32_t index;
	int error;

	tap_step("%s", name);
	subject_begin(&subject, LAYOUT(4K), SEED);
	index = subject.mr->rkey >> 8;
	diagnostic_clear();
	arm(QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, index, 0);
	if (refuse_command)
		diagnostic_arm((struct fault) {
			.target = QRDMA_FAULT_COMMAND,
			.action = QRDMA_FAULT_FAIL,
			.opcode = QRDMA_CMD_DESTROY_MKEY,
			.index = index,
		});
	error = exporter_revoke(subject.fd);
	exporter_stamp(subject.fd, SIZE, SEED_AFTER);
	if (refuse_command) {
		check_fatal(name, device);
	} else {
		struct traffic *traffic;

		traffic = traffic_start(device, subject.region, 93);
		traffic_expect_refusal(traffic);
		traffic_wait_refused(traffic, ACCESSES);
		tap_ok(!traffic_stop(traffic).wrong,
		       "%s: every access is refused", name);
		check_alive(name, device);
	}
	tap_ok(!error && !exporter_check(subject.fd, SIZE, SEED_AFTER),
	       "%s: the revocation returns, nothing is written after it", name);
	diagnostic_clear();
	subject_end(&subject);
}

/* --------------------------------------------------------- what is deadly */

struct deadly {
	const char *name;
	struct fault faults[2];
	/* Of the caller that meets it; the next one gets EIO. */
	int error;
};

static const struct deadly deadlies[] = {
	{ "drop completion",
	  {{ .target = QRDMA_FAULT_COMPLETION, .action = QRDMA_FAULT_DROP }},
	  EIO },
	{ "swap completion with none that comes",
	  {{ .target = QRDMA_FAULT_COMPLETION, .action = QRDMA_FAULT_SWAP }},
	  EIO },
	{ "fail completion",
	  {{ .target = QRDMA_FAULT_COMPLETION, .action = QRDMA_FAULT_FAIL }},
	  EIO },
	{ "fail umr and restart",
	  {{ .target = QRDMA_FAULT_UMR, .action = QRDMA_FAULT_FAIL },
	   { .target = QRDMA_FAULT_COMMAND, .action = QRDMA_FAULT_FAIL,
	     .opcode = QRDMA_CMD_MODIFY_QP }},
	  EREMOTEIO },
	/* RESET, INIT, RTR, and RTS, which is the one that is missing. */
	{ "fail umr and drop the end of the restart",
	  {{ .target = QRDMA_FAULT_UMR, .action = QRDMA_FAULT_FAIL },
	   { .target = QRDMA_FAULT_COMMAND, .action = QRDMA_FAULT_DROP,
	     .opcode = QRDMA_CMD_MODIFY_QP, .at = 4 }},
	  EREMOTEIO },
};

static struct rc_device *die(struct rc_device *device,
			     const struct deadly *deadly)
{
	struct timespec begin, end;
	struct bench bench;
	int error, next;

	bench_begin(&bench, device);
	tap_step("%s", deadly->name);
	diagnostic_clear();
	for (unsigned int i = 0; i < 2; i++)
		if (deadly->faults[i].target)
			diagnostic_arm(deadly->faults[i]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	error = allow_remote(bench.mr, false);
	next = allow_remote(bench.mr, true);
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_figures("seconds=%ld", end.tv_sec - begin.tv_sec);
	tap_ok(error == deadly->error && next == EIO &&
	       end.tv_sec - begin.tv_sec < SOON,
	       "%s: %s, then %s, within %u seconds", deadly->name,
	       strerror(error), strerror(next), SOON);
	check_fatal(deadly->name, device);
	diagnostic_clear();
	bench_end(&bench);
	return card_renew(deadly->name, device);
}

int main(void)
{
	struct rc_device *device;
	struct bench bench;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	diagnostic_clear();
	bench_begin(&bench, device);
	umr_refused(&bench);
	umr_slow(&bench);
	umr_not_done(&bench);
	completion_odd(&bench);
	for (unsigned int i = 0; i < sizeof(storms) / sizeof(storms[0]); i++)
		storm(&bench, &storms[i]);
	dynamic(&bench);
	bench_end(&bench);
	revocation(device, "fail revocation", false);
	check_works("updates", device);
	revocation(device, "fail revocation and destroy", true);
	device = card_renew("fail revocation and destroy", device);
	for (unsigned int i = 0; i < sizeof(deadlies) / sizeof(deadlies[0]);
	     i++)
		device = die(device, &deadlies[i]);
	check_works("updates", device);
	rc_close(device);
	return tap_end();
}
