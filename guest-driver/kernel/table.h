/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: arithmetic of translation tables. Pure functions, so that they are
 * tested natively (tests/test-table.c) as well as used in the driver.
 */
#ifndef QRDMA_TABLE_H
#define QRDMA_TABLE_H

#include <linux/types.h>

#include "qrdma_hw.h"

/*
 * Blocks of 2^@page_shift bytes that [@start, @start + @length) touches. @length
 * is not 0 and the range does not wrap.
 */
static inline __u64 qrdma_table_blocks(__u64 start, __u64 length,
				       unsigned int page_shift)
{
	__u64 last = start + (length - 1);

	return (last >> page_shift) - (start >> page_shift) + 1;
}

/* PBLEs that so many entries take: table writes come in whole units. */
static inline __u64 qrdma_table_round_up(__u64 entries)
{
	return (entries + QRDMA_PBLES_PER_UNIT - 1) &
	       ~(__u64)(QRDMA_PBLES_PER_UNIT - 1);
}

/* PBL level of a region of so many blocks. */
static inline unsigned int qrdma_table_level(__u64 entries)
{
	if (entries <= 1)
		return 0;
	return entries <= QRDMA_LEAF_PBLES ? 1 : 2;
}

/* Leaves of a level 2 table. */
static inline __u64 qrdma_table_leaves(__u64 entries)
{
	return (entries + QRDMA_LEAF_PBLES - 1) / QRDMA_LEAF_PBLES;
}

/* Entries that leaf number @leaf of a level 2 table holds. */
static inline __u32 qrdma_table_leaf_entries(__u64 entries, __u64 leaf)
{
	__u64 rest = entries - leaf * QRDMA_LEAF_PBLES;

	return rest < QRDMA_LEAF_PBLES ? rest : QRDMA_LEAF_PBLES;
}

/*
 * Entries that one UMR takes of @entries, of which the first is a unit's first,
 * when a UMR takes at most @max_bytes (a multiple of the unit).
 */
static inline __u32 qrdma_table_chunk(__u64 entries, __u32 max_bytes)
{
	__u32 max = max_bytes / QRDMA_PBLE_SIZE;

	return entries < max ? entries : max;
}

/*
 * The page size of step 2: the smallest that is in @page_sizes (bit n: 2^n
 * bytes), covers @length bytes and is not below 2^@page_shift; if there is none,
 * the largest there is. @page_sizes has bit @page_shift.
 */
static inline unsigned int qrdma_covering_page_shift(__u64 length,
						     unsigned int page_shift,
						     __u64 page_sizes)
{
	unsigned int covering = page_shift;

	for (unsigned int n = page_shift; n < 64; n++) {
		if (!(page_sizes & 1ull << n))
			continue;
		covering = n;
		if (1ull << n >= length)
			break;
	}
	return covering;
}

/*
 * A page-size change in five steps; counts are table entries.
 *
 * N entries describe the region at the new page size. At the covering page size
 * only the first X can be reached (X is in whole units, so it can exceed what
 * the covering size needs).
 */
struct qrdma_page_size_plan {
	unsigned int covering_shift;	/* step 2 */
	unsigned int page_shift;	/* step 4 */
	__u64 n;
	__u64 x;
	__u64 zap;			/* step 1: entries 0..zap-1 */
	__u64 rest;			/* step 3: entries x..x+rest-1 */
	__u64 first;			/* step 5: entries 0..first-1 */
};

/*
 * Plan the change of the region [@start, @start + @length) from 2^@old_shift to
 * 2^@new_shift, both in @page_sizes.
 *
 * Where X is not smaller than N there is nothing that could be loaded out of
 * reach, and everything that can be reached now is zapped instead of X entries.
 */
static inline struct qrdma_page_size_plan
qrdma_plan_page_size(__u64 start, __u64 length, unsigned int old_shift,
		     unsigned int new_shift, __u64 page_sizes)
{
	struct qrdma_page_size_plan plan = {
		.page_shift = new_shift,
		.n = qrdma_table_blocks(start, length, new_shift),
	};
	__u64 old;

	plan.covering_shift = qrdma_covering_page_shift(length, new_shift,
							page_sizes);
	plan.x = qrdma_table_round_up(qrdma_table_blocks(start, length,
							 plan.covering_shift));
	plan.zap = plan.x;
	if (plan.x < plan.n) {
		plan.rest = plan.n - plan.x;
		plan.first = plan.x;
		return plan;
	}

	old = qrdma_table_round_up(qrdma_table_blocks(start, length, old_shift));
	if (old > plan.zap)
		plan.zap = old;
	plan.first = plan.n;
	return plan;
}

#endif /* QRDMA_TABLE_H */
