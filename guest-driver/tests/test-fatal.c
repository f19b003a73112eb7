/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card enters its fatal error in the middle of things: registration, a
 * page-size change, revocation, deregistration; before the command or UMR, within
 * a UMR, and after. Everybody who waits is woken, verbs return an errno,
 * deregistration succeeds, users hear of it, and the driver can be unloaded,
 * loaded again, and works.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "card.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(32 * MIB)
#define SMALL		(2 * MIB)
#define IOVA		0x790000000000ull
#define SEED		0x5eed
#define SEED_AFTER	0xaf7e4
#define WORKERS		2

enum what {
	REGISTRATION,
	PAGE_SIZE,
	REVOCATION,
	DEREGISTRATION,
};

struct fatal_case {
	const char *name;
	enum what what;
	enum qrdma_fault_target target;
	uint32_t opcode;		/* of the command */
	uint32_t at;
	uint32_t point;
	/* The UMR is refused, so that the command is reached. */
	bool refuse_umr;
};

#define BEFORE	QRDMA_FAULT_POINT_BEFORE
#define AFTER	QRDMA_FAULT_POINT_AFTER

static const struct fatal_case cases[] = {
	{ "registration-before", REGISTRATION, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_CREATE_MKEY, 1, BEFORE, false },
	{ "registration-after", REGISTRATION, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_CREATE_MKEY, 1, AFTER, false },
	/* UMR 1 is the invalidation's, 2 to 6 are the five steps. */
	{ "invalidation-middle", PAGE_SIZE, QRDMA_FAULT_UMR, 0, 1, 1, false },
	{ "page-size-before", PAGE_SIZE, QRDMA_FAULT_UMR, 0, 2, BEFORE, false },
	{ "page-size-middle", PAGE_SIZE, QRDMA_FAULT_UMR, 0, 4, 100, false },
	{ "page-size-after", PAGE_SIZE, QRDMA_FAULT_UMR, 0, 5, AFTER, false },
	{ "page-size-resume", PAGE_SIZE, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_RESUME_PAGE_FAULT, 1, BEFORE, false },
	{ "revocation-before", REVOCATION, QRDMA_FAULT_UMR, 0, 1, BEFORE,
	  false },
	{ "revocation-after", REVOCATION, QRDMA_FAULT_UMR, 0, 1, AFTER, false },
	{ "revocation-destroy", REVOCATION, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_DESTROY_MKEY, 1, BEFORE, true },
	{ "deregistration-before", DEREGISTRATION, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_DESTROY_MKEY, 1, BEFORE, false },
	{ "deregistration-after", DEREGISTRATION, QRDMA_FAULT_COMMAND,
	  QRDMA_CMD_DESTROY_MKEY, 1, AFTER, false },
};

/* ---------------------------------------------- others who use the device */

/* Has regions made and changed until the device dies. */
struct worker {
	struct rc_device *device;
	pthread_t thread;
	atomic_uint rounds;
	int error;			/* of the verb that failed */
	int left;			/* of the deregistration after it */
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(page != MAP_FAILED, "no memory");
	while (!worker->error) {
		struct ibv_mr *mr = ibv_reg_mr(worker->device->pd, page, PAGE,
					       REGION_ACCESS);

		if (!mr) {
			worker->error = errno;
			break;
		}
		worker->error = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS,
					     NULL, NULL, 0,
					     IBV_ACCESS_LOCAL_WRITE) ? errno : 0;
		worker->left |= ibv_dereg_mr(mr);
		worker->rounds++;
	}
	munmap(page, PAGE);
	return NULL;
}

static void workers_begin(struct worker *workers, struct rc_device *device)
{
	for (unsigned int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){ .device = device };
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			tap_bail("no thread");
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		while (!atomic_load(&workers[i].rounds))
			sched_yield();
}

static void workers_end(const char *name, struct worker *workers)
{
	bool errors = true, left = false;

	for (unsigned int i = 0; i < WORKERS; i++) {
		tap_step("%s: worker %u to get an errno", name, i);
		pthread_join(workers[i].thread, NULL);
		errors = errors && workers[i].error == EIO;
		left = left || workers[i].left;
		if (workers[i].error != EIO)
			tap_note("%s: worker %u: %s", name, i,
				 strerror(workers[i].error));
	}
	tap_ok(errors && !left,
	       "%s: others' verbs end with EIO, and what they had goes", name);
}

/* ------------------------------------------------------------------ cases */

/* The region of the case, and what is found when the card has died. */
struct victim {
	const struct fatal_case *of;
	struct rc_device *device;
	struct subject subject;
	struct rc_pair *pair;
	struct ibv_mr *staging;
	void *memory;
};

static void victim_begin(struct victim *victim)
{
	bool page_size = victim->of->what == PAGE_SIZE;
	uint64_t size = page_size ? SIZE : SMALL;

	victim->subject = (struct subject) {
		.device = victim->device,
		.size = size,
		.length = size,
		.iova = IOVA,
		.dynamic = page_size,
	};
	victim->memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(victim->memory != MAP_FAILED, "no memory");
	victim->staging = ibv_reg_mr(victim->device->pd, victim->memory, PAGE,
				     REGION_ACCESS);
	tap_need(victim->staging, "ibv_reg_mr");
	victim->pair = rc_pair_create(victim->device);
	subject_begin(&victim->subject, page_size ? LAYOUT(2M) : LAYOUT(4K),
		      SEED);
}

/* On a dead device; bails out if something does not go. */
static void victim_end(struct victim *victim)
{
	tap_step("%s: everything to be destroyed", victim->of->name);
	if (victim->subject.mr)
		subject_end(&victim->subject);
	rc_pair_destroy(victim->pair);
	if (ibv_dereg_mr(victim->staging))
		tap_bail("%s: ibv_dereg_mr", victim->of->name);
	munmap(victim->memory, PAGE);
	tap_ok(true, "%s: regions, queue pairs and queues go",
	       victim->of->name);
}

static void arm(const struct victim *victim)
{
	const struct fatal_case *of = victim->of;
	uint32_t index = of->what == REGISTRATION ||
			 of->opcode == QRDMA_CMD_RESUME_PAGE_FAULT ?
			 0 : victim->subject.mr->rkey >> 8;

	diagnostic_clear();
	if (of->refuse_umr)
		diagnostic_arm((struct fault) {
			.target = QRDMA_FAULT_UMR,
			.action = QRDMA_FAULT_FAIL,
			.index = index,
		});
	diagnostic_arm((struct fault) {
		.target = of->target,
		.action = QRDMA_FAULT_FATAL,
		.at = of->at,
		.index = index,
		.opcode = of->opcode,
		.point = of->point,
	});
}

static void registration(struct victim *victim)
{
	struct ibv_mr *mr;

	/* Whichever registration it is that meets the fault. */
	do {
		errno = 0;
		mr = ibv_reg_mr(victim->device->pd, victim->memory, PAGE,
				REGION_ACCESS);
		if (mr && ibv_dereg_mr(mr))
			tap_bail("%s: ibv_dereg_mr", victim->of->name);
	} while (mr);
	tap_ok(errno == EIO, "%s: registration fails with %s",
	       victim->of->name, strerror(errno));
}

/* The move returns, and the page fault is answered, whatever comes of it. */
static void page_size(struct victim *victim)
{
	const struct subject *subject = &victim->subject;
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)victim->memory,
		.lkey = victim->staging->lkey,
		.remote = subject->iova,
		.rkey = subject->mr->rkey,
		.length = PAGE,
	};
	uint64_t wrong;
	int error;

	error = exporter_move(subject->fd, LAYOUT(4K), 0, 0);
	tap_ok(!error, "%s: the move returns", victim->of->name);
	rc_post(victim->pair, &access);
	tap_step("%s: the card to die", victim->of->name);
	rc_wait_fatal(victim->device);
	error = exporter_move(subject->fd, LAYOUT(64K), 0, 0);
	wrong = exporter_check(subject->fd, subject->size, SEED);
	tap_ok(!error && !wrong,
	       "%s: the buffer moves again, and its data is whole",
	       victim->of->name);
}

static void revocation(struct victim *victim)
{
	const struct subject *subject = &victim->subject;
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_WRITE,
		.local = (uintptr_t)victim->memory,
		.lkey = victim->staging->lkey,
		.remote = subject->iova,
		.rkey = subject->mr->rkey,
		.length = PAGE,
	};
	uint64_t wrong;
	int error;

	error = exporter_revoke(subject->fd);
	exporter_stamp(subject->fd, subject->size, SEED_AFTER);
	rc_post(victim->pair, &access);
	rc_wait_fatal(victim->device);
	wrong = exporter_check(subject->fd, subject->size, SEED_AFTER);
	tap_ok(!error && !wrong,
	       "%s: the revocation returns, and nothing is written after it",
	       victim->of->name);
}

static void deregistration(struct victim *victim)
{
	struct subject *subject = &victim->subject;

	errno = 0;
	tap_ok(!ibv_dereg_mr(subject->mr), "%s: deregistration succeeds",
	       victim->of->name);
	subject->mr = NULL;
	subject_end(subject);
}

static void die(struct victim *victim)
{
	switch (victim->of->what) {
	case REGISTRATION:
		registration(victim);
		break;
	case PAGE_SIZE:
		page_size(victim);
		break;
	case REVOCATION:
		revocation(victim);
		break;
	case DEREGISTRATION:
		deregistration(victim);
		break;
	}
}

/* Every verb that asks something of the card. */
static void refused_afterwards(const struct victim *victim)
{
	const char *name = victim->of->name;
	struct ibv_mr *mr = ibv_reg_mr(victim->device->pd, victim->memory, PAGE,
				       REGION_ACCESS);
	int mr_error = errno;
	struct ibv_cq *cq = ibv_create_cq(victim->device->context, 1, NULL,
					  NULL, 0);
	int cq_error = errno;

	tap_ok(!mr && mr_error == EIO && !cq && cq_error == EIO,
	       "%s: a dead device gives no regions and no queues (%s, %s)",
	       name, strerror(mr_error), strerror(cq_error));
}

static struct rc_device *run(struct rc_device *device,
			     const struct fatal_case *of)
{
	struct victim victim = { .of = of, .device = device };
	struct worker workers[WORKERS];

	tap_step("%s: registration", of->name);
	victim_begin(&victim);
	workers_begin(workers, device);
	arm(&victim);
	tap_step("%s", of->name);
	die(&victim);
	check_fatal(of->name, device);
	workers_end(of->name, workers);
	tap_ok(diagnostic_fired() >= (of->refuse_umr ? 2 : 1),
	       "%s: it was the fault that was asked for", of->name);
	diagnostic_clear();
	refused_afterwards(&victim);
	victim_end(&victim);
	device = card_renew(of->name, device);
	check_works(of->name, device);
	return device;
}

/* Argument: the name of a case, to run only that. */
int main(int argc, char **argv)
{
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (argc < 2 || !strcmp(argv[1], cases[i].name))
			device = run(device, &cases[i]);
	rc_close(device);
	return tap_end();
}
