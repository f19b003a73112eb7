// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: change of the page size of a live region, in five steps. At no point is
 * a byte translated to anything but its old place, its new place, or nothing.
 *
 *   1. Make entries 0..X-1 absent. The page size stays.
 *   2. Set the page size to the covering one: only the first X entries can be
 *      reached any more, and they are absent.
 *   3. Load entries X..N-1 for the new page size. They cannot be reached.
 *   4. Set the page size to the new one: all but the first X entries become
 *      reachable, and are right.
 *   5. Load entries 0..X-1.
 *
 * A UMR that fails has changed nothing, so mr->page_shift follows the UMRs that
 * did not fail. It is what the card has at any point, also where a change stops
 * half-way; the next one starts from there.
 */
#include "region.h"
#include "trace.h"

/* Walks over the region's blocks at some page size. */
struct qrdma_block_walk {
	struct ib_block_iter iter;
	u64 rights;
};

static void qrdma_walk_start(struct qrdma_block_walk *walk,
			     const struct qrdma_mr *mr,
			     unsigned int page_shift, u64 first)
{
	walk->rights = qrdma_mr_pble_rights(mr);
	__rdma_umem_block_iter_start(&walk->iter, mr->umem, 1ul << page_shift);
	while (first-- && __rdma_umem_block_iter_next(&walk->iter))
		;
}

/* The next @n blocks as PBLEs, and absent entries up to the end of the unit. */
static u32 qrdma_walk_fill(struct qrdma_block_walk *walk, __le64 *table, u32 n)
{
	u32 i = 0;

	while (i < n && __rdma_umem_block_iter_next(&walk->iter)) {
		u64 pble = rdma_block_iter_dma_address(&walk->iter) |
			   walk->rights;

		table[i++] = cpu_to_le64(pble);
	}
	while (i < n || i % QRDMA_PBLES_PER_UNIT)
		table[i++] = 0;
	return i;
}

int qrdma_region_load(struct qrdma_mr *mr, unsigned int page_shift, u64 first,
		      u64 count)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	struct qrdma_umr umr = { .key = mr->key, .first = first };
	struct qrdma_umr_staging *staging;
	struct qrdma_block_walk walk;
	int ret = 0;

	if (!count)
		return 0;
	staging = qrdma_umr_staging_get(dev);
	umr.table_dma = staging->dma;
	qrdma_walk_start(&walk, mr, page_shift, first);
	while (count && !ret) {
		u32 n = qrdma_table_chunk(count, qrdma_umr_staging_size(dev));

		umr.table_length = qrdma_walk_fill(&walk, staging->table, n) *
				   QRDMA_PBLE_SIZE;
		umr.table = umr.table_length <= QRDMA_UMR_MAX_INLINE ?
			    staging->table : NULL;
		ret = qrdma_umr_execute(dev, &umr);
		umr.first += n;
		count -= n;
	}
	qrdma_umr_staging_put(dev, staging);
	return ret;
}

/* The page size and nothing else. Steps 2 and 4. */
static int qrdma_region_set_page_size(struct qrdma_mr *mr,
				      unsigned int page_shift)
{
	struct qrdma_umr umr = {
		.key = mr->key,
		.flags = QRDMA_UMR_CHECK_NOT_FREE,
		.mask = QRDMA_UMR_MASK_PAGE_SIZE,
		.context.log_page_size = page_shift,
	};
	int ret;

	ret = qrdma_umr_execute(mr_to_qdev(mr), &umr);
	if (!ret)
		mr->page_shift = page_shift;
	return ret;
}

struct qrdma_step {
	u64 first;
	u64 count;
};

static int qrdma_region_step(struct qrdma_mr *mr,
			     const struct qrdma_page_size_plan *plan,
			     unsigned int number, struct qrdma_step *step)
{
	switch (number) {
	case 1:
		step->count = plan->zap;
		return qrdma_umr_zap(mr_to_qdev(mr), mr->key, 0, step->count);
	case 2:
		return qrdma_region_set_page_size(mr, plan->covering_shift);
	case 3:
		step->first = plan->x;
		step->count = plan->rest;
		return qrdma_region_load(mr, plan->page_shift, step->first,
					 step->count);
	case 4:
		return qrdma_region_set_page_size(mr, plan->page_shift);
	default:
		step->count = plan->first;
		return qrdma_region_load(mr, plan->page_shift, 0, step->count);
	}
}

int qrdma_region_change_page_size(struct qrdma_mr *mr, unsigned int page_shift)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	struct qrdma_page_size_plan plan;
	int ret = 0;

	plan = qrdma_plan_page_size(mr->ibmr.iova, mr->ibmr.length,
				    mr->page_shift, page_shift,
				    dev->limits.page_size_bitmap);
	for (unsigned int number = 1; number <= 5 && !ret; number++) {
		struct qrdma_step step = {};

		ret = qrdma_region_step(mr, &plan, number, &step);
		trace_qrdma_page_size_step(dev, mr->key, number, plan.n, plan.x,
					   step.first, step.count,
					   mr->page_shift, ret);
	}
	return ret;
}
