/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "churn.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define BUFFERS		3
#define SIZE		(1 * MIB)
#define IOVA		0x7d0000000000ull
#define PAGES_EACH	(SIZE / PAGE / CHURN_THREADS)

/* Read-locked by who uses the buffer, so that another can take its place. */
struct buffer {
	pthread_rwlock_t lock;
	int fd;
	atomic_uint raced;		/* pins that ib_core has forgotten */
	pthread_rwlock_t attaching;	/* read-locked by who registers, if apart */
};

struct bench {
	struct rc_device *device;
	struct buffer buffers[BUFFERS];
	bool apart;
	atomic_bool stop;
};

struct worker {
	struct bench *bench;
	struct rc_pair *pair;
	struct ibv_mr *staging;
	void *page;
	pthread_t thread;
	unsigned int index;
	unsigned int seed;
	uint64_t stamps;		/* made so far */
	struct churn_counts counts;
};

static const uint32_t kinds[] = {
	QRDMA_EXPORTER_4K, QRDMA_EXPORTER_64K, QRDMA_EXPORTER_CONTIGUOUS,
};

static unsigned int choose(struct worker *worker, unsigned int count)
{
	return rand_r(&worker->seed) / (RAND_MAX / count + 1);
}

static struct layout some_layout(struct worker *worker)
{
	return (struct layout){
		.kind = kinds[choose(worker, sizeof(kinds) / sizeof(*kinds))],
	};
}

/* Page @page of the buffer. False: refused, and the pair has recovered. */
static bool move_page(struct worker *worker, const struct ibv_mr *mr,
		      enum ibv_wr_opcode opcode, uint64_t page)
{
	struct rc_access access = {
		.opcode = opcode,
		.local = (uintptr_t)worker->page,
		.lkey = worker->staging->lkey,
		.remote = IOVA + page * PAGE,
		.rkey = mr->rkey,
		.length = PAGE,
	};

	if (rc_execute(worker->pair, &access) == IBV_WC_SUCCESS) {
		worker->counts.done++;
		return true;
	}
	worker->counts.failed++;
	rc_pair_recover(worker->pair);
	return false;
}

/*
 * What was written is what is read, however often the buffer has moved between:
 * no other thread writes to this one's pages.
 */
static void use_page(struct worker *worker, const struct ibv_mr *mr)
{
	uint64_t page = choose(worker, PAGES_EACH) * CHURN_THREADS +
			worker->index;
	uint64_t seed = ++worker->stamps * CHURN_THREADS + worker->index;

	stamp_pages(worker->page, seed, page, 1);
	if (!move_page(worker, mr, IBV_WR_RDMA_WRITE, page))
		return;
	memset(worker->page, 0, PAGE);
	if (move_page(worker, mr, IBV_WR_RDMA_READ, page))
		worker->counts.wrong += stamp_check(worker->page, seed, page, 1,
						    NULL);
}

static void use(struct worker *worker, const struct ibv_mr *mr)
{
	for (unsigned int i = 0; i < 2; i++)
		use_page(worker, mr);
}

/* NULL and errno. */
static struct ibv_mr *register_one(struct worker *worker, struct buffer *buffer,
				   bool dynamic)
{
	bool apart = worker->bench->apart && !dynamic;
	struct ibv_mr *mr;

	if (apart)
		pthread_rwlock_rdlock(&buffer->attaching);
	errno = 0;
	mr = register_dmabuf(worker->bench->device, buffer->fd, 0, SIZE, IOVA,
			     dynamic);
	if (apart)
		pthread_rwlock_unlock(&buffer->attaching);
	return mr;
}

/* A move or revocation; 0 or an errno. */
static int change(struct worker *worker, struct buffer *buffer, bool revoke)
{
	int error;

	if (worker->bench->apart)
		pthread_rwlock_wrlock(&buffer->attaching);
	error = revoke ? exporter_revoke(buffer->fd) :
			 exporter_move(buffer->fd, some_layout(worker), 0, 0);
	if (worker->bench->apart)
		pthread_rwlock_unlock(&buffer->attaching);
	return error;
}

static void register_and_use(struct worker *worker, struct buffer *buffer)
{
	bool dynamic = choose(worker, 2);
	struct ibv_mr *mr;

	mr = register_one(worker, buffer, dynamic);
	if (!mr) {
		if (errno == ENODEV)
			worker->counts.refused++;
		else if (errno == EINVAL && !dynamic)
			buffer->raced++;
		else if (!worker->counts.other_errors++)
			tap_note("registration: %s", strerror(errno));
		return;
	}
	worker->counts.registered++;
	use(worker, mr);
	if (ibv_dereg_mr(mr))
		tap_bail("a region does not go");
}

/* A pinned buffer stays, a revoked one has nowhere to go. */
static void move_buffer(struct worker *worker, struct buffer *buffer)
{
	int error = change(worker, buffer, false);

	worker->counts.moved += !error;
	if (error && error != EBUSY && error != ENODEV &&
	    !worker->counts.other_errors++)
		tap_note("move: %s", strerror(error));
}

static void take_away(struct worker *worker, struct buffer *buffer)
{
	int error = change(worker, buffer, true);

	worker->counts.revoked += !error;
	if (error && !worker->counts.other_errors++)
		tap_note("revocation: %s", strerror(error));
}

/* All that is left is what ib_core has forgotten, to the pin. */
static bool given_back(const struct buffer *buffer)
{
	struct qrdma_exporter_query query = exporter_query(buffer->fd);

	return !query.attached && !query.mapped &&
	       query.pinned == buffer->raced &&
	       query.order_errors == buffer->raced;
}

static void finish(struct buffer *buffer, struct churn_counts *counts)
{
	counts->left += !given_back(buffer);
	counts->raced += buffer->raced;
	buffer->raced = 0;
	close(buffer->fd);
}

/* Nobody uses it now; if somebody does, it is not replaced this time. */
static void replace(struct worker *worker, struct buffer *buffer)
{
	if (pthread_rwlock_trywrlock(&buffer->lock))
		return;
	finish(buffer, &worker->counts);
	buffer->fd = exporter_create(SIZE, some_layout(worker));
	pthread_rwlock_unlock(&buffer->lock);
}

static void step(struct worker *worker)
{
	struct buffer *buffer = &worker->bench->buffers[choose(worker, BUFFERS)];
	unsigned int what = choose(worker, 12);

	pthread_rwlock_rdlock(&buffer->lock);
	if (what < 7)
		register_and_use(worker, buffer);
	else if (what < 10)
		move_buffer(worker, buffer);
	else if (what < 11)
		take_away(worker, buffer);
	pthread_rwlock_unlock(&buffer->lock);
	if (what >= 10)
		replace(worker, buffer);
}

static void *work(void *argument)
{
	struct worker *worker = argument;

	while (!worker->bench->stop)
		step(worker);
	return NULL;
}

static void worker_begin(struct worker *worker, struct bench *bench,
			 unsigned int index)
{
	worker->bench = bench;
	worker->index = index;
	worker->seed = 1000 + index;
	worker->pair = rc_pair_create(bench->device);
	worker->page = aligned_alloc(PAGE, PAGE);
	tap_need(worker->page, "memory");
	memset(worker->page, 0, PAGE);
	worker->staging = ibv_reg_mr(bench->device->pd, worker->page, PAGE,
				     REGION_ACCESS);
	tap_need(worker->staging, "ibv_reg_mr of a page");
}

static void worker_end(struct worker *worker, struct churn_counts *sum)
{
	pthread_join(worker->thread, NULL);
	ibv_dereg_mr(worker->staging);
	free(worker->page);
	rc_pair_destroy(worker->pair);
	sum->registered += worker->counts.registered;
	sum->refused += worker->counts.refused;
	sum->done += worker->counts.done;
	sum->failed += worker->counts.failed;
	sum->wrong += worker->counts.wrong;
	sum->moved += worker->counts.moved;
	sum->revoked += worker->counts.revoked;
	sum->raced += worker->counts.raced;
	sum->other_errors += worker->counts.other_errors;
	sum->left += worker->counts.left;
}

bool kernel_has_lockdep(void)
{
	return !access("/proc/lockdep_stats", F_OK);
}

struct churn_counts churn(struct rc_device *device, unsigned int seconds)
{
	struct worker workers[CHURN_THREADS] = {};
	struct bench bench = {
		.device = device,
		.apart = kernel_has_lockdep(),
	};
	struct churn_counts sum = {};

	for (unsigned int i = 0; i < BUFFERS; i++) {
		pthread_rwlock_init(&bench.buffers[i].lock, NULL);
		pthread_rwlock_init(&bench.buffers[i].attaching, NULL);
		bench.buffers[i].fd = exporter_create(SIZE, LAYOUT(4K));
	}
	for (unsigned int i = 0; i < CHURN_THREADS; i++)
		worker_begin(&workers[i], &bench, i);
	for (unsigned int i = 0; i < CHURN_THREADS; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			tap_bail("no thread");
	if (!seconds)
		for (;;)
			pause();
	sleep(seconds);
	bench.stop = true;
	for (unsigned int i = 0; i < CHURN_THREADS; i++)
		worker_end(&workers[i], &sum);
	for (unsigned int i = 0; i < BUFFERS; i++) {
		finish(&bench.buffers[i], &sum);
		pthread_rwlock_destroy(&bench.buffers[i].attaching);
		pthread_rwlock_destroy(&bench.buffers[i].lock);
	}
	return sum;
}

pid_t churn_process(void)
{
	pid_t child = fork();
	int null;

	tap_need(child >= 0, "fork");
	if (child)
		return child;
	/* What it says when its device goes is nobody's business. */
	null = open("/dev/null", O_WRONLY);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execl("/tests/test-churn", "test-churn", "--endless", NULL);
	_exit(127);
}

int churn_process_end(pid_t child)
{
	int status = 0;

	kill(child, SIGKILL);
	tap_need(waitpid(child, &status, 0) == child, "waitpid");
	return status;
}
