/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow "recovery": the card refuses UMRs. The one who asked gets an errno, or its
 * region is absent and then right; the others are done all the same; the queue
 * works afterwards, and nobody waits for ever.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(64 * MIB)
#define SMALL		(2 * MIB)
#define IOVA		0x7d0000000000ull
#define ACCESSES	40
#define REFUSALS	40	/* times that some are asked for */
#define ROUNDS		10	/* of each worker, at least */
#define SEED		0x5eed
#define SEED_AFTER	0xaf7e4

/* Let @pass UMRs through, then refuse @count of them. */
static void refuse(uint32_t pass, uint32_t count)
{
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_UMR,
		.action = QRDMA_FAULT_FAIL,
		.at = pass + 1,
		.count = count,
	});
}

/* ------------------------------------------------ each of the five steps */

struct steps {
	unsigned int done;		/* without an error */
	unsigned int failed;
	unsigned int failed_step;	/* the first that failed */
	int error;			/* of that */
	unsigned int log_page_size;	/* after the last that was done */
};

static struct steps steps_of(uint32_t key)
{
	struct event_list events = events_read();
	struct steps steps = {};
	unsigned int i;

	for (i = 0; i < events.count; i++) {
		const struct event *event = &events.list[i];
		int error;

		if (!event_is(event, "qrdma_page_size_step", key))
			continue;
		error = event_field(event, "error");
		if (!error) {
			steps.done++;
			steps.log_page_size = event_field(event,
							  "log_page_size");
		} else if (!steps.failed++) {
			steps.failed_step = event_field(event, "step");
			steps.error = error;
		}
	}
	events_free(&events);
	return steps;
}

static void move(const char *name, struct subject *subject,
		 struct layout layout)
{
	int error = exporter_move(subject->fd, layout,
				  QRDMA_EXPORTER_MOVE_KEEP_OLD, 0);

	if (error)
		tap_bail("%s: the exporter does not move: %s", name,
			 strerror(error));
}

static struct traffic *begin(const char *name, struct subject *subject)
{
	struct traffic *traffic;

	tap_step("%s: registration", name);
	subject_begin(subject, LAYOUT(4K), SEED);
	traffic = traffic_start(subject->device, subject->region, 21);
	traffic_wait(traffic, ACCESSES);
	traffic_pause(traffic);
	events_clear();
	return traffic;
}

static void end(const char *name, struct subject *subject,
		struct traffic *traffic, const struct steps *steps)
{
	uint64_t old, wrong;
	struct traffic_counts counts;

	traffic_pause(traffic);
	old = exporter_check_old(subject->fd, subject->size);
	counts = traffic_stop(traffic);
	wrong = subject_check(subject);
	tap_figures("case=%s failed_step=%u error=%d right=%llu refused=%llu wrong=%llu wrong_pages=%llu old_pages_written=%llu",
		    name, steps->failed_step, steps->error,
		    (unsigned long long)counts.right,
		    (unsigned long long)counts.refused,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)wrong, (unsigned long long)old);
	tap_ok(counts.refused && !counts.wrong && !wrong && !old,
	       "%s: accesses were refused or right, and the data is whole",
	       name);
	subject_end(subject);
}

/* Step @number is refused; the region is absent then, and right in the end. */
static void failed_step(struct rc_device *device, unsigned int number)
{
	struct subject subject = {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.dynamic = true,
	};
	struct traffic *traffic;
	struct steps steps;
	char name[20];

	snprintf(name, sizeof(name), "step-%u", number);
	traffic = begin(name, &subject);
	move(name, &subject, LAYOUT(2M));
	refuse(number - 1, 1);
	tap_step("%s: an access that is refused", name);
	traffic_resume(traffic);
	traffic_wait_refused(traffic, 1);
	tap_step("%s: accesses that are right again", name);
	traffic_wait_right(traffic, ACCESSES);
	steps = steps_of(subject.mr->rkey);
	tap_ok(steps.failed == 1 && steps.failed_step == number &&
	       steps.error < 0 && !diagnostic_armed(),
	       "%s: step %u failed with %s, and nothing else", name, number,
	       strerror(-steps.error));
	tap_ok(steps.log_page_size == 21 || number == 5,
	       "%s: the page size is the new one in the end", name);
	end(name, &subject, traffic, &steps);
}

/*
 * The change stops between its two writes of the page size, and the buffer moves
 * back: the page size that is best is the one from before, which the card no
 * longer has.
 */
static void moved_back(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.dynamic = true,
	};
	struct steps stopped, steps;
	struct traffic *traffic;

	traffic = begin("moved-back", &subject);
	move("moved-back", &subject, LAYOUT(2M));
	/* Everything from step 3 on, until the traffic rests. */
	refuse(2, QRDMA_FAULT_FOR_EVER);
	tap_step("moved-back: accesses that are refused");
	traffic_resume(traffic);
	traffic_wait_refused(traffic, 3);
	traffic_pause(traffic);
	diagnostic_clear();
	stopped = steps_of(subject.mr->rkey);
	tap_ok(stopped.failed_step == 3 && stopped.done == 2,
	       "moved-back: stopped after step %u, with pages of 2^%u",
	       stopped.done, stopped.log_page_size);

	move("moved-back", &subject, LAYOUT(4K));
	events_clear();
	tap_step("moved-back: accesses that are right again");
	traffic_resume(traffic);
	traffic_wait_right(traffic, ACCESSES);
	steps = steps_of(subject.mr->rkey);
	tap_ok(!steps.failed && steps.done == 5 && steps.log_page_size == 12,
	       "moved-back: the page size is written again");
	end("moved-back", &subject, traffic, &stopped);
}

/* ------------------------------------------- many who use the UMR queue */

struct worker {
	struct rc_device *device;
	atomic_bool *stop;
	unsigned int number;
	pthread_t thread;
	/* Results. */
	atomic_uint rounds;
	unsigned int refused;		/* callers that got an errno */
	uint64_t right;
	uint64_t accesses_refused;
	uint64_t wrong;
};

/* Rights of a region of user memory: a UMR each. */
static void *change_rights(void *argument)
{
	struct worker *worker = argument;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = ibv_reg_mr(worker->device->pd, page, PAGE,
				       REGION_ACCESS);

	tap_need(mr, "ibv_reg_mr");
	while (!atomic_load(worker->stop)) {
		int access = worker->rounds++ % 2 ? REGION_ACCESS
						  : IBV_ACCESS_LOCAL_WRITE;

		worker->refused += ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS,
						NULL, NULL, 0, access) != 0;
	}
	if (ibv_dereg_mr(mr))
		tap_bail("ibv_dereg_mr after changes of rights");
	munmap(page, PAGE);
	return NULL;
}

static struct subject small(const struct worker *worker, bool dynamic)
{
	return (struct subject) {
		.device = worker->device,
		.size = SMALL,
		.length = SMALL,
		.iova = IOVA + worker->number * GIB,
		.dynamic = dynamic,
	};
}

static void count(struct worker *worker, struct traffic_counts counts)
{
	worker->rounds++;
	worker->right += counts.right;
	worker->accesses_refused += counts.refused;
	worker->wrong += counts.wrong;
}

/* A region that cannot be made absent is taken away: a new one each time. */
static void *move_buffers(void *argument)
{
	struct worker *worker = argument;

	while (!atomic_load(worker->stop)) {
		struct subject subject = small(worker, true);
		struct traffic *traffic;

		subject_begin(&subject, LAYOUT(4K), SEED);
		traffic = traffic_start(worker->device, subject.region,
					31 + worker->rounds);
		traffic_wait(traffic, 4);
		move("many", &subject, LAYOUT(CONTIGUOUS));
		traffic_wait(traffic, 4);
		move("many", &subject, LAYOUT(64K));
		traffic_wait(traffic, 4);
		count(worker, traffic_stop(traffic));
		worker->wrong += exporter_check_old(subject.fd, SMALL);
		worker->wrong += subject_check(&subject);
		subject_end(&subject);
	}
	return NULL;
}

static void *revoke_buffers(void *argument)
{
	struct worker *worker = argument;

	while (!atomic_load(worker->stop)) {
		struct subject subject = small(worker, false);
		struct traffic *traffic;

		subject_begin(&subject, LAYOUT(64K), SEED);
		traffic = traffic_start(worker->device, subject.region,
					51 + worker->rounds);
		traffic_wait(traffic, 4);
		if (exporter_revoke(subject.fd))
			tap_bail("many: the exporter does not revoke");
		exporter_stamp(subject.fd, SMALL, SEED_AFTER);
		traffic_expect_refusal(traffic);
		traffic_wait_refused(traffic, 2);
		count(worker, traffic_stop(traffic));
		worker->wrong += exporter_check(subject.fd, SMALL, SEED_AFTER);
		subject_end(&subject);
	}
	return NULL;
}

static void report(const char *what, const struct worker *worker)
{
	tap_figures("case=many worker=%s rounds=%u errnos=%u right=%llu refused=%llu wrong=%llu",
		    what, worker->rounds, worker->refused,
		    (unsigned long long)worker->right,
		    (unsigned long long)worker->accesses_refused,
		    (unsigned long long)worker->wrong);
	tap_ok(worker->rounds && !worker->wrong,
	       "many: %s: %u rounds, none hung, nothing wrong", what,
	       worker->rounds);
}

static bool all_worked(struct worker *workers, unsigned int count)
{
	while (count--)
		if (atomic_load(&workers[count].rounds) < ROUNDS)
			return false;
	return true;
}

static void many(struct rc_device *device, uint64_t seed)
{
	static void *(*const functions[])(void *) = {
		change_rights, change_rights, move_buffers, revoke_buffers,
	};
	static const char *const names[] = {
		"rights-1", "rights-2", "moves", "revocations",
	};
	enum { WORKERS = sizeof(functions) / sizeof(functions[0]) };
	struct worker workers[WORKERS] = {};
	atomic_bool stop = false;
	unsigned int i, refusals = 0, done = 0;

	tap_note("many: seed %llu (give it as the argument to repeat)",
		 (unsigned long long)seed);
	for (i = 0; i < WORKERS; i++) {
		workers[i].device = device;
		workers[i].stop = &stop;
		workers[i].number = i;
		if (pthread_create(&workers[i].thread, NULL, functions[i],
				   &workers[i]))
			tap_bail("no thread");
	}
	for (i = 0; i < REFUSALS || !all_worked(workers, WORKERS); i++) {
		uint32_t some = 1 + random_below(&seed, 3);

		/* Not renewed for ever: a worker that hangs is to be noticed. */
		if (i <= REFUSALS)
			tap_step("many: each worker to do %u rounds", ROUNDS);
		refuse(random_below(&seed, 16), some);
		refusals += some;
		while (diagnostic_armed())
			usleep(200);
	}
	atomic_store(&stop, true);
	for (i = 0; i < WORKERS; i++) {
		tap_step("many: %s to end", names[i]);
		pthread_join(workers[i].thread, NULL);
		done += workers[i].rounds;
	}
	tap_figures("case=many refusals=%u rounds=%u", refusals, done);
	for (i = 0; i < WORKERS; i++)
		report(names[i], &workers[i]);
	tap_ok(workers[0].refused + workers[1].refused <= refusals,
	       "many: no more errnos than refusals");
}

/* Nothing is left of it all. */
static void afterwards(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = SMALL,
		.length = SMALL,
		.iova = IOVA,
		.dynamic = true,
	};
	struct traffic_counts counts;
	struct traffic *traffic;

	tap_step("afterwards");
	subject_begin(&subject, LAYOUT(4K), SEED);
	traffic = traffic_start(device, subject.region, 71);
	traffic_wait(traffic, ACCESSES);
	move("afterwards", &subject, LAYOUT(2M));
	traffic_wait(traffic, ACCESSES);
	counts = traffic_stop(traffic);
	tap_ok(counts.right && !counts.refused && !counts.wrong &&
	       !subject_check(&subject), "afterwards: everything works");
	subject_end(&subject);
	tap_ok(!device->fatal_events, "afterwards: the device never failed");
}

/* Argument: a seed, or "moved-back": that case only. */
int main(int argc, char **argv)
{
	static const char *const names[] = { "qrdma_page_size_step", NULL };
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0)
				 : (uint64_t)time(NULL);
	struct rc_device *device;
	unsigned int number;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	diagnostic_clear();
	if (!events_begin(names))
		tap_bail("no tracepoints of the driver");
	if (argc > 1 && !strcmp(argv[1], "moved-back")) {
		moved_back(device);
	} else {
		for (number = 1; number <= 5; number++)
			failed_step(device, number);
		moved_back(device);
		many(device, seed);
		afterwards(device);
	}
	rc_close(device);
	return tap_end();
}
