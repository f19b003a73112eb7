/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls that test-allocation-failures has fail, and what should be true then. */
#ifndef TRIALS_H
#define TRIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"
#include "rc.h"
#include "transfer.h"

struct bench {
	struct rc_device *device;
	const char *name;		/* the device's */
	struct transfer *transfer;

	/* What the trial that runs has made. */
	struct memory memory, other;
	int fd;				/* the dma-buf */
	int filler_fd;
	struct ibv_mr *filler, *second_filler;
	unsigned int segments;
	struct ibv_mr *mr;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t kind;			/* of the buffer's layout */
};

/* All but begin and end are called for each allocation. */
struct trial {
	const char *name;
	/* The failures are those of the kernel's workers, not of the caller. */
	bool workers;
	/* It gives something back, for which it must not need memory: none may fail. */
	bool gives_back;
	/* libibverbs calls the kernel several times, and has an errno of its own. */
	bool own_errors;
	void (*begin)(struct bench *bench);
	void (*prepare)(struct bench *bench);
	/* The call. 0 or an errno; then it is called again, and nothing fails. */
	int (*attempt)(struct bench *bench);
	/* All is as it should be after a call that said @error. */
	bool (*right)(struct bench *bench, int error);
	/* Everything as before, after a call that succeeded. False: it was not right. */
	bool (*undo)(struct bench *bench);
	void (*end)(struct bench *bench);
};

/* The last one has no name. */
extern const struct trial trials[];

struct bench *bench_create(void);
void bench_destroy(struct bench *bench);

#endif
