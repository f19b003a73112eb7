/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow "page-size": dynamic dma-buf regions whose buffer moves under traffic.
 * The driver's five steps are compared with what is worked out here, no access
 * may be wrong, and the memory that the buffer left must stay as it was left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "foreign.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define ACCESSES	40	/* before and after each change */
#define IOVA		0x7f0000000000ull
#define WALK_STEPS	32
#define WALK_SIZE	(16 * MIB)
#define WALK_SEGMENTS	64

struct change {
	struct layout layout;
	uint32_t hold_ms;
};

/* What the five steps should be; N and X as in the design. */
struct plan {
	unsigned int log_page_size;
	unsigned int covering;
	uint64_t n;
	uint64_t x;
};

static struct plan plan_of(const struct subject *subject)
{
	struct plan plan = {
		.log_page_size = subject_log_page_size(subject),
	};

	plan.n = blocks_at(subject->iova, subject->length, plan.log_page_size);
	plan.covering = plan.log_page_size;
	while (1ull << plan.covering < subject->length)
		plan.covering++;
	plan.x = blocks_at(subject->iova, subject->length, plan.covering);
	plan.x = (plan.x + 7) / 8 * 8;
	return plan;
}

static bool step_right(const struct event *event, unsigned int number,
		       unsigned int old_log_page_size, const struct plan *plan)
{
	uint64_t first = event_field(event, "first");
	uint64_t count = event_field(event, "count");
	unsigned int log_page_size = event_field(event, "log_page_size");

	if (event_field(event, "step") != number ||
	    event_field(event, "error") ||
	    (uint64_t)event_field(event, "n") != plan->n ||
	    (uint64_t)event_field(event, "x") != plan->x)
		return false;
	switch (number) {
	case 1:
		return !first && count >= plan->x &&
		       log_page_size == old_log_page_size;
	case 2:
		return log_page_size == plan->covering;
	case 3:
		return log_page_size == plan->covering &&
		       (plan->x < plan->n ? first == plan->x &&
					    count == plan->n - plan->x
					  : !count);
	case 4:
		return log_page_size == plan->log_page_size;
	default:
		return !first && log_page_size == plan->log_page_size &&
		       count == (plan->x < plan->n ? plan->x : plan->n);
	}
}

/* A change of layout that leaves the page size as it was takes no steps. */
static void check_steps(const char *name, const struct subject *subject,
			unsigned int old_log_page_size)
{
	struct plan plan = plan_of(subject);
	struct event_list events = events_read();
	unsigned int i, steps = 0, right = 0, loads;
	uint64_t zapped = 0;

	for (i = 0; i < events.count; i++) {
		const struct event *event = &events.list[i];

		if (!event_is(event, "qrdma_page_size_step",
			      subject->mr->rkey))
			continue;
		if (++steps == 1)
			zapped = event_field(event, "count");
		right += step_right(event, steps, old_log_page_size, &plan);
	}
	loads = events_find(&events, "qrdma_load", subject->mr->rkey, NULL);
	tap_figures("case=%s from=%llu to=%llu n=%llu x=%llu covering=%llu zapped=%llu steps=%u loads=%u",
		    name, 1ull << old_log_page_size,
		    1ull << plan.log_page_size, (unsigned long long)plan.n,
		    (unsigned long long)plan.x, 1ull << plan.covering,
		    (unsigned long long)zapped, steps, loads);
	if (old_log_page_size == plan.log_page_size)
		tap_ok(!steps && loads == 1,
		       "%s: same page size, loaded in one go", name);
	else
		tap_ok(steps == 5 && right == 5 && loads == 1,
		       "%s: five steps, N %llu and X %llu as they should be",
		       name, (unsigned long long)plan.n,
		       (unsigned long long)plan.x);
	events_free(&events);
}

static bool keeps_old(const struct subject *subject)
{
	return subject->size <= 128 * MIB;
}

static void change(const char *name, struct subject *subject,
		   struct traffic *traffic, const struct change *change)
{
	unsigned int old_log_page_size = subject_log_page_size(subject);
	struct traffic_counts before, after;
	uint64_t overwritten = 0;
	int error;

	tap_step("%s: move to %s", name, layout_name(change->layout.kind));
	traffic_wait(traffic, ACCESSES);
	before = traffic_counts(traffic);
	events_clear();
	error = exporter_move(subject->fd, change->layout,
			      keeps_old(subject) ?
			      QRDMA_EXPORTER_MOVE_KEEP_OLD : 0,
			      change->hold_ms);
	if (error)
		tap_bail("%s: the exporter does not move: %s", name,
			 strerror(error));
	traffic_wait(traffic, ACCESSES);
	check_steps(name, subject, old_log_page_size);
	if (keeps_old(subject))
		overwritten = exporter_check_old(subject->fd, subject->size);
	after = traffic_counts(traffic);
	tap_figures("case=%s hold_ms=%u right=%llu refused=%llu wrong=%llu old_pages_written=%llu",
		    name, change->hold_ms,
		    (unsigned long long)(after.right - before.right),
		    (unsigned long long)(after.refused - before.refused),
		    (unsigned long long)(after.wrong - before.wrong),
		    (unsigned long long)overwritten);
	tap_ok(after.wrong == before.wrong && after.refused == before.refused &&
	       !overwritten, "%s: every access right, old memory untouched",
	       name);
}

/* Ends the traffic and looks at everything once more. */
static void finish(const char *name, struct subject *subject,
		   struct traffic *traffic)
{
	struct traffic_counts counts;
	uint64_t wrong;

	tap_step("%s: end", name);
	counts = traffic_stop(traffic);
	wrong = subject_check(subject);
	tap_figures("case=%s right=%llu refused=%llu wrong=%llu bytes=%llu verified=%llu wrong_pages=%llu",
		    name, (unsigned long long)counts.right,
		    (unsigned long long)counts.refused,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)counts.bytes,
		    (unsigned long long)subject->length,
		    (unsigned long long)wrong);
	tap_ok(!counts.wrong && !counts.refused && !wrong,
	       "%s: the whole region holds what was written", name);
	subject_end(subject);
}

static void run_changes(const char *name, struct subject *subject,
			struct layout from, const struct change *changes,
			unsigned int count)
{
	struct traffic *traffic;
	unsigned int i;
	char title[80];

	tap_step("%s: registration", name);
	subject->dynamic = true;
	subject_begin(subject, from, 0x1000 + count);
	traffic = traffic_start(subject->device, subject->region, 7);
	for (i = 0; i < count; i++) {
		snprintf(title, sizeof(title), "%s-to-%s", name,
			 layout_name(changes[i].layout.kind));
		change(title, subject, traffic, &changes[i]);
	}
	finish(name, subject, traffic);
}

/* ------------------------------------------------------------------ cases */

static void there_and_back(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = 64 * MIB,
		.length = 64 * MIB,
	};
	const struct change changes[] = {
		{ LAYOUT(2M), 0 },
		{ LAYOUT(4K), 0 },
		{ LAYOUT(2M), 20 },
		{ LAYOUT(4K), 20 },
	};

	run_changes("64MiB", &subject, LAYOUT(4K), changes, 4);
}

static void whole_table(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = 8 * MIB,
		.length = 8 * MIB,
		.iova = IOVA,
	};
	const struct change changes[] = {
		{ LAYOUT(2M), 0 },
		{ LAYOUT(64K), 0 },
		{ LAYOUT(CONTIGUOUS), 0 },
		{ LAYOUT(4K), 0 },
	};

	run_changes("8MiB", &subject, LAYOUT(4K), changes, 4);
}

/* Offset of memory and IOVA alike, so that 2 MiB pages fit. */
static void with_offset(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = 8 * MIB,
		.offset = 0x1000,
		.length = 6 * MIB + 4096,
		.iova = IOVA + 0x1000,
	};
	const struct change changes[] = {
		{ LAYOUT(4K), 0 },
		{ LAYOUT(2M), 0 },
		{ LAYOUT(4K), 10 },
	};

	run_changes("6MiB-and-a-page", &subject, LAYOUT(2M), changes, 3);
}

static void one_gibibyte(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = GIB,
		.length = GIB,
		.iova = IOVA,
	};
	const struct change changes[] = {
		{ LAYOUT(CONTIGUOUS), 0 },
		{ LAYOUT(4K), 0 },
		{ LAYOUT(2M), 0 },
	};

	run_changes("1GiB", &subject, LAYOUT(2M), changes, 3);
}

/* Segments of 4 KiB to 1 MiB, in any order, that add up to @size. */
static uint32_t random_lengths(uint64_t *lengths, uint64_t size,
			       uint64_t *random)
{
	uint32_t count = 0;

	while (size) {
		uint64_t length = PAGE << random_below(random, 9);

		if (count == WALK_SEGMENTS - 1 || length > size)
			length = size;
		lengths[count++] = length;
		size -= length;
	}
	return count;
}

static void random_walk(struct rc_device *device, uint64_t seed)
{
	static const uint32_t kinds[] = {
		QRDMA_EXPORTER_4K, QRDMA_EXPORTER_64K, QRDMA_EXPORTER_2M,
		QRDMA_EXPORTER_CONTIGUOUS, QRDMA_EXPORTER_EXPLICIT,
	};
	struct subject subject = {
		.device = device,
		.size = WALK_SIZE,
		.length = WALK_SIZE,
		.iova = IOVA,
		.dynamic = true,
	};
	uint64_t lengths[WALK_SEGMENTS];
	struct traffic *traffic;
	uint64_t random = seed;
	unsigned int i;

	tap_note("random walk: seed %llu (give it as the argument to repeat)",
		 (unsigned long long)seed);
	tap_step("random walk: registration");
	subject_begin(&subject, LAYOUT(64K), 0x3000);
	traffic = traffic_start(device, subject.region, seed & 0xffff);
	for (i = 0; i < WALK_STEPS; i++) {
		struct change step = {
			.layout.kind = kinds[random_below(&random, 5)],
			.hold_ms = random_below(&random, 4) ? 0 : 5,
		};
		char title[80];

		if (step.layout.kind == QRDMA_EXPORTER_EXPLICIT) {
			step.layout.lengths = lengths;
			step.layout.count = random_lengths(lengths, WALK_SIZE,
							   &random);
		}
		snprintf(title, sizeof(title), "walk-%u-to-%s", i + 1,
			 layout_name(step.layout.kind));
		change(title, &subject, traffic, &step);
	}
	finish("walk", &subject, traffic);
}

/* Argument: a seed for the random walk, or "8MiB" or "1GiB": that case only. */
int main(int argc, char **argv)
{
	static const char *const names[] = {
		"qrdma_page_size_step", "qrdma_load", "qrdma_mr_registered",
		NULL,
	};
	const char *only = argc > 1 ? argv[1] : "";
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0)
				 : (uint64_t)time(NULL);
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	if (!events_begin(names))
		tap_bail("no tracepoints of the driver");
	if (!strcmp(only, "1GiB")) {
		one_gibibyte(device);
	} else if (!strcmp(only, "8MiB")) {
		whole_table(device);
	} else {
		there_and_back(device);
		whole_table(device);
		with_offset(device);
		random_walk(device, seed);
		foreign_exporters(device);
		one_gibibyte(device);
	}
	rc_close(device);
	return tap_end();
}
