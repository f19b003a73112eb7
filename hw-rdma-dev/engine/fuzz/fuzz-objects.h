/*
 * qrdma engine fuzzing: objects and work requests that are nearly right.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FUZZ_OBJECTS_H
#define QRDMA_FUZZ_OBJECTS_H

#include "fuzz-common.h"

/* Indices of the mkeys that targets use. */
#define FUZZ_FIRST_MKEY 0x100u
#define FUZZ_MKEYS 6u

/* A ring in the arena, mostly. */
struct qrdma_ring fuzz_ring(FuzzCard *fuzz, unsigned log_entries,
                            unsigned log_stride);

/* A mkey context that the card takes, unless bytes of it have been spoilt. */
struct qrdma_mkc fuzz_mkc(FuzzCard *fuzz);

/* A key of a mkey that may be there. */
uint32_t fuzz_key(FuzzCard *fuzz);

/* An address that may lie in the region of one of the mkeys of fuzz_mkc(). */
uint64_t fuzz_region_address(FuzzCard *fuzz);

/* Post a command of the input's choice, without running. */
void fuzz_object_command(FuzzCard *fuzz);

/* CREATE_MKEY, DESTROY_MKEY, MODIFY_MKEY or INVALIDATE_TRANSLATIONS. */
void fuzz_mkey_command(FuzzCard *fuzz);

/* Write a few entries of table memory, as a CPU would. */
void fuzz_table(FuzzCard *fuzz);

/* Put a WQE into a queue; the doorbell is rung, mostly. */
void fuzz_post_send(FuzzCard *fuzz);
void fuzz_post_receive(FuzzCard *fuzz);
void fuzz_post_umr(FuzzCard *fuzz);

#endif /* QRDMA_FUZZ_OBJECTS_H */
