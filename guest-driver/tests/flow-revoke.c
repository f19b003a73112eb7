/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow "revoke": pinned dma-buf regions that the exporter takes away. When the
 * revocation has returned the exporter stamps the pages anew and looks at them
 * again later: nothing may have been written. Every access after it fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "revocation.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(4 * MIB)
#define IOVA		0x7e0000000000ull
#define ACCESSES	40
#define SEED		0x5eed
#define SEED_AFTER	0xaf7e4
#define ROUNDS		50

static struct subject new_subject(struct rc_device *device)
{
	return (struct subject) {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
	};
}

static void revoke_buffer(const char *name, int fd)
{
	int error;

	tap_step("%s: revocation", name);
	error = exporter_revoke(fd);
	if (error)
		tap_bail("%s: the exporter does not revoke: %s", name,
			 strerror(error));
}

/* Deregisters, and looks at what the importer left. */
static void end(const char *name, struct subject *subject)
{
	int fd = dup(subject->fd);

	tap_need(fd >= 0, "dup");
	tap_step("%s: deregistration", name);
	subject_end(subject);
	check_importer_gone(name, fd);
	close(fd);
}

/* The revocation has returned: stamp at once, try, and look. */
static void after(const char *name, struct subject *subject,
		  struct traffic *traffic, uint64_t errors_before)
{
	uint64_t wrong;

	exporter_stamp(subject->fd, SIZE, SEED_AFTER);
	traffic_expect_refusal(traffic);
	traffic_resume(traffic);
	tap_step("%s: accesses after the revocation", name);
	traffic_wait_refused(traffic, REVOCATION_REFUSALS);
	check_refused(name, traffic_stop(traffic));

	wrong = exporter_check(subject->fd, SIZE, SEED_AFTER);
	tap_figures("case=%s pages=%llu written_after=%llu", name, SIZE / PAGE,
		    (unsigned long long)wrong);
	tap_ok(!wrong, "%s: no access reached the memory afterwards", name);
	check_reported(name, subject, errors_before);
}

/* ------------------------------------------------------------------ cases */

static void idle(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	uint64_t errors = rc_access_errors(device);
	struct traffic *traffic;

	tap_step("idle: registration");
	subject_begin(&subject, LAYOUT(4K), SEED);
	events_clear();
	traffic = traffic_start(device, subject.region, 11);
	traffic_wait(traffic, ACCESSES);
	traffic_pause(traffic);
	revoke_buffer("idle", subject.fd);
	after("idle", &subject, traffic, errors);
	check_key_is_taken("idle", &subject);
	check_no_reregistration("idle", &subject);
	end("idle", &subject);
}

static void under_traffic(struct rc_device *device, const char *name,
			  struct layout layout)
{
	struct subject subject = new_subject(device);
	uint64_t errors = rc_access_errors(device);
	struct traffic *traffic;

	tap_step("%s: registration", name);
	subject_begin(&subject, layout, SEED);
	events_clear();
	traffic = traffic_start(device, subject.region, 12 + layout.kind);
	traffic_wait(traffic, ACCESSES);
	revoke_buffer(name, subject.fd);
	after(name, &subject, traffic, errors);
	end(name, &subject);
}

/* Often, so that the revocation meets accesses in every phase. */
static void many_times(struct rc_device *device)
{
	struct traffic_counts sum = {};
	uint64_t written = 0;
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		struct subject subject = new_subject(device);
		struct traffic_counts counts;
		struct traffic *traffic;

		tap_step("revocation under traffic, round %u", i);
		subject.size = MIB;
		subject.length = MIB;
		subject_begin(&subject, i % 2 ? LAYOUT(64K) : LAYOUT(4K), SEED);
		traffic = traffic_start(device, subject.region, 100 + i);
		traffic_wait(traffic, 1 + i % 5);
		revoke_buffer("many-times", subject.fd);
		exporter_stamp(subject.fd, MIB, SEED_AFTER);
		traffic_expect_refusal(traffic);
		traffic_wait_refused(traffic, 2);
		counts = traffic_stop(traffic);
		sum.right += counts.right;
		sum.refused += counts.refused;
		sum.wrong += counts.wrong;
		written += exporter_check(subject.fd, MIB, SEED_AFTER);
		subject_end(&subject);
	}
	tap_figures("case=many-times rounds=%u right=%llu refused=%llu wrong=%llu written_after=%llu",
		    i, (unsigned long long)sum.right,
		    (unsigned long long)sum.refused,
		    (unsigned long long)sum.wrong, (unsigned long long)written);
	tap_ok(!sum.wrong && !written,
	       "many-times: %u revocations under traffic, nothing wrong", i);
}

/* The exporter calls back again; the driver's part must not run again. */
static void twice(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	uint64_t errors = rc_access_errors(device);
	struct traffic *traffic;

	tap_step("twice: registration");
	subject_begin(&subject, LAYOUT(64K), SEED);
	events_clear();
	traffic = traffic_start(device, subject.region, 13);
	traffic_wait(traffic, ACCESSES);
	revoke_buffer("twice", subject.fd);
	revoke_buffer("twice", subject.fd);
	after("twice", &subject, traffic, errors);
	end("twice", &subject);
}

/* The memory is gone for good, and the pages are given to somebody else. */
static void release(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	uint64_t errors = rc_access_errors(device);
	struct traffic *traffic;
	uint64_t wrong;
	int error, other;

	tap_step("release: registration");
	subject_begin(&subject, LAYOUT(4K), SEED);
	events_clear();
	traffic = traffic_start(device, subject.region, 14);
	traffic_wait(traffic, ACCESSES);
	tap_step("release: the exporter frees the memory");
	error = exporter_release(subject.fd);
	tap_ok(!error, "release: the exporter frees the memory under traffic");
	other = exporter_create(SIZE, LAYOUT(4K));
	exporter_stamp(other, SIZE, SEED_AFTER);
	traffic_expect_refusal(traffic);
	tap_step("release: accesses after it");
	traffic_wait_refused(traffic, REVOCATION_REFUSALS);
	check_refused("release", traffic_stop(traffic));
	wrong = exporter_check(other, SIZE, SEED_AFTER);
	tap_ok(!wrong, "release: the next owner's memory is as it was");
	check_reported("release", &subject, errors);
	end("release", &subject);
	close(other);
}

/* Deregistration of what was never revoked: the callback runs all the same. */
static void deregistration(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	struct event_list events;
	unsigned int revoked;
	uint32_t key;

	tap_step("deregistration");
	subject_begin(&subject, LAYOUT(2M), SEED);
	key = subject.mr->rkey;
	events_clear();
	end("deregistration", &subject);
	events = events_read();
	revoked = events_find(&events, "qrdma_revoke", key, NULL);
	events_free(&events);
	tap_ok(revoked == 1,
	       "deregistration: the key is revoked before the memory is released (%u)",
	       revoked);
}

/* ------------------------------------------------------------------ races */

/* What went by in the rounds of a race. */
struct tally {
	unsigned int rounds;
	unsigned int registered;
	unsigned int refused;		/* registrations, with ENODEV */
	unsigned int other_errors;
	unsigned int reachable;		/* accesses after the revocation */
	unsigned int written;		/* buffers */
	unsigned int unbalanced;	/* importer left something */
};

/* One write and one read through a revoked region. */
static bool reachable(struct rc_device *device, struct rc_pair *pair,
		      const struct ibv_mr *mr)
{
	static char page[PAGE] __attribute__((aligned(4096)));
	struct ibv_mr *staging = ibv_reg_mr(device->pd, page, PAGE,
					    REGION_ACCESS);
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_WRITE,
		.local = (uintptr_t)page,
		.remote = IOVA,
		.rkey = mr->rkey,
		.length = PAGE,
	};
	bool write, read;

	tap_need(staging, "ibv_reg_mr of a page");
	access.lkey = staging->lkey;
	write = rc_execute(pair, &access) == IBV_WC_SUCCESS;
	rc_pair_recover(pair);
	access.opcode = IBV_WR_RDMA_READ;
	read = rc_execute(pair, &access) == IBV_WC_SUCCESS;
	rc_pair_recover(pair);
	ibv_dereg_mr(staging);
	return write || read;
}

static void count_balance(struct tally *tally, int fd)
{
	struct qrdma_exporter_query query = exporter_query(fd);

	tally->unbalanced += query.attached || query.mapped || query.pinned ||
			     query.pins != query.unpins ||
			     query.maps != query.unmaps || query.order_errors;
}

static void say(const char *name, const struct tally *tally)
{
	tap_figures("case=%s rounds=%u registered=%u refused=%u reachable=%u written=%u unbalanced=%u",
		    name, tally->rounds, tally->registered, tally->refused,
		    tally->reachable, tally->written, tally->unbalanced);
	tap_ok(tally->rounds == ROUNDS && !tally->other_errors &&
	       !tally->reachable && !tally->written && !tally->unbalanced,
	       "%s: %u rounds, nothing reachable, nothing left over", name,
	       tally->rounds);
}

struct racer {
	pthread_barrier_t *start;
	int fd;
};

static void *race_revoke(void *argument)
{
	struct racer *racer = argument;

	pthread_barrier_wait(racer->start);
	exporter_revoke(racer->fd);
	return NULL;
}

/* Wait for the revocation that was queued, then look at the region, if any. */
static void look(struct rc_device *device, struct rc_pair *pair,
		 struct tally *tally, struct ibv_mr *mr, int fd, int error)
{
	tally->rounds++;
	tally->registered += mr != NULL;
	tally->refused += !mr && error == ENODEV;
	tally->other_errors += !mr && error != ENODEV;
	exporter_stamp(fd, SIZE, SEED_AFTER);
	if (mr) {
		tally->reachable += reachable(device, pair, mr);
		if (ibv_dereg_mr(mr))
			tap_bail("a revoked region does not go");
	}
	tally->written += exporter_check(fd, SIZE, SEED_AFTER) != 0;
	count_balance(tally, fd);
}

/*
 * The exporter's trigger queues the revocation while the driver holds the
 * reservation lock: it comes the moment the lock is dropped.
 */
static void during_registration(struct rc_device *device, struct rc_pair *pair)
{
	struct tally tally = {};
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		int fd = exporter_create(SIZE, LAYOUT(64K));
		struct ibv_mr *mr;
		int error;

		tap_step("revocation during registration, round %u", i);
		exporter_trigger(fd, 0, 1);
		errno = 0;
		mr = register_dmabuf(device, fd, 0, SIZE, IOVA, false);
		error = errno;
		/* Again and in this thread: when it returns both are over. */
		revoke_buffer("during registration", fd);
		look(device, pair, &tally, mr, fd, error);
		close(fd);
	}
	say("during-registration", &tally);
}

static void racing_registration(struct rc_device *device, struct rc_pair *pair)
{
	struct tally tally = {};
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		int fd = exporter_create(SIZE, LAYOUT(64K));
		pthread_barrier_t start;
		struct racer racer = { &start, fd };
		pthread_t thread;
		struct ibv_mr *mr;
		int error;

		tap_step("revocation racing registration, round %u", i);
		pthread_barrier_init(&start, NULL, 2);
		if (pthread_create(&thread, NULL, race_revoke, &racer))
			tap_bail("no thread");
		pthread_barrier_wait(&start);
		errno = 0;
		mr = register_dmabuf(device, fd, 0, SIZE, IOVA, false);
		error = errno;
		pthread_join(thread, NULL);
		look(device, pair, &tally, mr, fd, error);
		close(fd);
		pthread_barrier_destroy(&start);
	}
	say("racing-registration", &tally);
}

static void racing_deregistration(struct rc_device *device)
{
	struct tally tally = {};
	unsigned int i;

	for (i = 0; i < ROUNDS; i++) {
		int fd = exporter_create(SIZE, LAYOUT(64K));
		pthread_barrier_t start;
		struct racer racer = { &start, fd };
		pthread_t thread;
		struct ibv_mr *mr;

		tap_step("revocation racing deregistration, round %u", i);
		mr = register_dmabuf(device, fd, 0, SIZE, IOVA, false);
		tap_need(mr, "registration");
		tally.registered++;
		pthread_barrier_init(&start, NULL, 2);
		if (pthread_create(&thread, NULL, race_revoke, &racer))
			tap_bail("no thread");
		pthread_barrier_wait(&start);
		if (ibv_dereg_mr(mr))
			tap_bail("a region that is being revoked does not go");
		pthread_join(thread, NULL);
		tally.rounds++;
		count_balance(&tally, fd);
		close(fd);
		pthread_barrier_destroy(&start);
	}
	say("racing-deregistration", &tally);
}

/* ---------------------------------------------------------- other endings */

/* A process that ends without deregistering anything. */
static void process_exit(void)
{
	int fd = exporter_create(SIZE, LAYOUT(4K));
	char number[16];
	int status = -1;
	pid_t child;

	tap_step("process exit");
	fflush(stdout);
	snprintf(number, sizeof(number), "%d", fd);
	/* The child gets the buffer, and nothing else of this process. */
	tap_need(!fcntl(fd, F_SETFD, 0), "fcntl");
	child = fork();
	tap_need(child >= 0, "fork");
	if (!child) {
		execl("/proc/self/exe", "flow-revoke", "--child", number, NULL);
		_exit(127);
	}
	waitpid(child, &status, 0);
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status),
	       "process-exit: a process ends with a pinned region");
	tap_ok(exporter_query(fd).attaches == 1,
	       "process-exit: its region was there");
	check_importer_gone("process-exit", fd);
	close(fd);
}

static int child(int fd)
{
	struct rc_device *device = rc_open();

	_exit(!register_dmabuf(device, fd, 0, SIZE, IOVA, false));
}

/* Case: mapping fails after the pin. And a pinned buffer does not move. */
static void pinned_rules(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	int fd = exporter_create(SIZE, LAYOUT(4K));
	struct qrdma_exporter_query query;
	struct ibv_mr *mr;

	tap_step("mapping that fails");
	exporter_trigger(fd, 1, 0);
	errno = 0;
	mr = register_dmabuf(device, fd, 0, SIZE, IOVA, false);
	query = exporter_query(fd);
	tap_ok(!mr && errno == ENOMEM,
	       "map-fails: the registration fails with the exporter's error");
	tap_ok(query.pins == 1 && query.unpins == 1 && !query.order_errors &&
	       !query.attached, "map-fails: one pin, one unpin, detached");
	close(fd);

	subject_begin(&subject, LAYOUT(4K), SEED);
	tap_ok(exporter_move(subject.fd, LAYOUT(2M), 0, 0) == EBUSY,
	       "pinned: the exporter cannot move it");
	revoke_buffer("revoked", subject.fd);
	errno = 0;
	mr = register_dmabuf(device, subject.fd, 0, SIZE, IOVA, false);
	tap_ok(!mr && errno == ENODEV,
	       "revoked: the buffer cannot be registered again");
	end("revoked", &subject);
}

static void all(struct rc_device *device)
{
	struct rc_pair *pair;

	idle(device);
	under_traffic(device, "traffic-4K", LAYOUT(4K));
	under_traffic(device, "traffic-2M", LAYOUT(2M));
	under_traffic(device, "traffic-contiguous", LAYOUT(CONTIGUOUS));
	many_times(device);
	twice(device);
	release(device);
	deregistration(device);
	pinned_rules(device);

	pair = rc_pair_create(device);
	during_registration(device, pair);
	racing_registration(device, pair);
	racing_deregistration(device);
	rc_pair_destroy(pair);
	process_exit();
}

/* Argument "idle": that case only. */
int main(int argc, char **argv)
{
	struct rc_device *device;

	if (argc > 2 && !strcmp(argv[1], "--child"))
		return child(atoi(argv[2]));
	tap_begin();
	device = rc_open();
	if (!events_begin(revocation_events))
		tap_bail("no tracepoints of the driver");
	if (argc > 1 && !strcmp(argv[1], "idle"))
		idle(device);
	else
		all(device);
	rc_close(device);
	return tap_end();
}
