/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A whole region by RDMA: write stamps to it, read them back and compare. */
#ifndef TRANSFER_H
#define TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

struct transfer {
	struct rc_pair *pair;
	struct ibv_mr *staging;
	void *memory;
};

struct transfer *transfer_create(struct rc_device *device);
void transfer_destroy(struct transfer *transfer);

/*
 * RDMA-write a pattern of @seed to @length bytes at @iova. Byte b of the region
 * is byte b of the stamped pages 0, 1, ... False on an error completion (the
 * pair is recovered).
 */
bool transfer_write(struct transfer *transfer, uint32_t rkey, uint64_t iova,
		    uint64_t length, uint64_t seed);
/* RDMA-read and compare; *@wrong: bytes that differ. */
bool transfer_read(struct transfer *transfer, uint32_t rkey, uint64_t iova,
		   uint64_t length, uint64_t seed, uint64_t *wrong);
/* The CPU's side of the same. */
void pattern_fill(void *memory, uint64_t length, uint64_t seed);
uint64_t pattern_check(const void *memory, uint64_t length, uint64_t seed);

#endif
