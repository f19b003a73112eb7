// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma_exporter: memory of a buffer, cut as a layout says.
 *
 * The page size that an importer can use follows from where segments lie, so
 * two things are guaranteed: a segment is aligned to its size rounded up to a
 * power of two, and no segment begins where the one before it ends.
 */
#include <linux/cma.h>
#include <linux/dma-map-ops.h>
#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "exporter.h"

static unsigned int limit_mib;
module_param(limit_mib, uint, 0644);
MODULE_PARM_DESC(limit_mib, "MiB all buffers may have together (0: 7/8 of memory)");

static atomic_long_t charged;	/* pages */

static long charge_limit(void)
{
	unsigned long total = totalram_pages();
	u64 limit = (u64)limit_mib << (20 - PAGE_SHIFT);

	if (!limit || limit > total)
		limit = total - total / 8;
	return limit;
}

static int charge(u32 pages)
{
	if (atomic_long_add_return(pages, &charged) <= charge_limit())
		return 0;
	atomic_long_sub(pages, &charged);
	return -ENOSPC;
}

static void uncharge(u32 pages)
{
	atomic_long_sub(pages, &charged);
}

static void free_pages_each(struct page *page, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++) {
		__free_page(page + i);
		if (!(i % 4096))
			cond_resched();
	}
}

/* What is kept for contiguous memory, by the kernel argument cma=. */
static struct cma *cma_area(void)
{
	return IS_ENABLED(CONFIG_DMA_CMA) ? dev_get_cma_area(NULL) : NULL;
}

static void free_range(struct page *page, u32 count, bool cma)
{
	if (!IS_ENABLED(CONFIG_DMA_CMA) || !cma)
		free_pages_each(page, count);
	else if (count)
		cma_release(cma_area(), page, count);
}

static struct page *alloc_from_cma(u32 count, unsigned int align_order)
{
	struct cma *cma = cma_area();
	struct page *page;
	u32 i;

	page = cma ? cma_alloc(cma, count, align_order, true) : NULL;
	for (i = 0; page && i < count; i++) {
		clear_highpage(page + i);
		cond_resched();
	}
	return page;
}

/*
 * extent->count contiguous zeroed pages, aligned to 2^@align_order and no more
 * than that many. The pages behind them up to the alignment go back.
 */
static int alloc_extent(struct exporter_extent *extent,
			unsigned int align_order)
{
	const gfp_t gfp = __GFP_ZERO | __GFP_NOWARN;
	u32 total = 1u << align_order;
	struct page *page;

	extent->cma = false;
	if (align_order <= MAX_PAGE_ORDER) {
		page = alloc_pages(GFP_KERNEL | __GFP_RETRY_MAYFAIL | gfp,
				   align_order);
		if (page)
			split_page(page, align_order);
	} else {
		/*
		 * Beyond what the buddy allocator keeps. The movable zones are
		 * fair game, for the buffers of a test do not stay.
		 */
		page = alloc_contig_pages(total, GFP_HIGHUSER_MOVABLE | gfp,
					  numa_mem_id(), NULL);
		if (!page) {
			page = alloc_from_cma(total, align_order);
			extent->cma = true;
		}
	}
	if (!page)
		return -ENOMEM;
	free_range(page + extent->count, total - extent->count, extent->cma);
	extent->page = page;
	return 0;
}

static void free_extent(struct exporter_extent *extent)
{
	if (extent->page)
		free_range(extent->page, extent->count, extent->cma);
	extent->page = NULL;
}

static unsigned int extent_order(const struct exporter_extent *extent,
				 unsigned int align_order)
{
	return max_t(unsigned int, align_order, order_base_2(extent->count));
}

static bool adjacent(const struct exporter_extent *a,
		     const struct exporter_extent *b)
{
	return page_to_pfn(a->page) + a->count == page_to_pfn(b->page);
}

/* Of equally aligned extents; the allocator hands out ascending addresses. */
static void shuffle(struct exporter_layout *layout)
{
	u32 i;

	/* The last may be shorter: it stays where it is. */
	for (i = layout->count - 1; i > 1; i--) {
		u32 other = get_random_u32_below(i);

		swap(layout->extents[i - 1].page, layout->extents[other].page);
		swap(layout->extents[i - 1].cma, layout->extents[other].cma);
	}
}

/* What stands in for an extent while it is held lies elsewhere: one is enough. */
static int separate(struct exporter_layout *layout, unsigned int align_order)
{
	u32 i;

	for (i = 1; i < layout->count; i++) {
		struct exporter_extent *extent = &layout->extents[i];
		unsigned int order = extent_order(extent, align_order);
		struct exporter_extent other = *extent;
		int err;

		if (!adjacent(extent - 1, extent))
			continue;
		err = alloc_extent(&other, order);
		if (err)
			return err;
		swap(*extent, other);
		free_extent(&other);
	}
	return 0;
}

static void layout_free(struct kref *kref)
{
	struct exporter_layout *layout =
		container_of(kref, struct exporter_layout, kref);
	u32 i;

	for (i = 0; i < layout->count; i++)
		free_extent(&layout->extents[i]);
	uncharge(layout->pages);
	kvfree(layout);
}

void exporter_layout_put(struct exporter_layout *layout)
{
	if (layout)
		kref_put(&layout->kref, layout_free);
}

static int fill(struct exporter_layout *layout, unsigned int align_order)
{
	u32 i;

	for (i = 0; i < layout->count; i++) {
		struct exporter_extent *extent = &layout->extents[i];
		unsigned int order = extent_order(extent, align_order);
		int err;

		if (fatal_signal_pending(current))
			return -EINTR;
		err = alloc_extent(extent, order);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

/* log2 of a uniform layout's pages a segment. */
static unsigned int uniform_order(u32 kind, u32 pages)
{
	switch (kind) {
	case QRDMA_EXPORTER_4K:
		return 0;
	case QRDMA_EXPORTER_64K:
		return ilog2(SZ_64K) - PAGE_SHIFT;
	case QRDMA_EXPORTER_2M:
		return ilog2(SZ_2M) - PAGE_SHIFT;
	default:
		return min_t(unsigned int, order_base_2(pages),
			     ilog2(QRDMA_EXPORTER_MAX_SEGMENT) - PAGE_SHIFT);
	}
}

struct exporter_layout *exporter_layout_alloc(u32 pages, u32 kind,
					      const u32 *lengths, u32 count)
{
	bool explicit = kind == QRDMA_EXPORTER_EXPLICIT;
	unsigned int order = explicit ? 0 : uniform_order(kind, pages);
	struct exporter_layout *layout;
	u32 i, first = 0;
	int err;

	if (!explicit)
		count = DIV_ROUND_UP(pages, 1u << order);

	err = charge(pages);
	if (err)
		return ERR_PTR(err);

	layout = kvzalloc(struct_size(layout, extents, count), GFP_KERNEL);
	if (!layout) {
		uncharge(pages);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&layout->kref);
	layout->kind = kind;
	layout->pages = pages;
	layout->count = count;
	for (i = 0; i < count; i++) {
		layout->extents[i].first = first;
		layout->extents[i].count =
			explicit ? lengths[i] : min(pages - first, 1u << order);
		first += layout->extents[i].count;
	}

	err = fill(layout, order);
	if (!err && !explicit)
		shuffle(layout);
	if (!err)
		err = separate(layout, order);
	if (err) {
		exporter_layout_put(layout);
		return ERR_PTR(err);
	}
	return layout;
}

struct page *exporter_layout_page(const struct exporter_layout *layout,
				  u32 index)
{
	const struct exporter_extent *extent;
	u32 low = 0, high = layout->count - 1;

	while (low < high) {
		u32 middle = (low + high + 1) / 2;

		if (layout->extents[middle].first <= index)
			low = middle;
		else
			high = middle - 1;
	}
	extent = &layout->extents[low];
	return extent->page + (index - extent->first);
}
