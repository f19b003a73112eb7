// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the pool of physical buffer list entries (PBLEs). PBLE space is backed
 * by segments (SDs) of 2 MiB, which are lent to the card when the pool runs dry
 * and taken back when they are empty.
 *
 * Within a segment, units of 8 PBLEs are given out first fit. Tables of more
 * than a leaf's entries are split into leaves (level 2), so that the longest run
 * a region needs is a leaf's 64 units, or its root.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "region.h"

#define QRDMA_UNITS_PER_SD	(QRDMA_PBLES_PER_SD / QRDMA_PBLES_PER_UNIT)
#define QRDMA_SD_SIZE		(1u << QRDMA_SD_SHIFT)
#define QRDMA_SD_PAGE_SIZE	(QRDMA_SD_SIZE / QRDMA_SD_PAGES)
#define QRDMA_SD_PAGE_SHIFT	(QRDMA_SD_SHIFT - ilog2(QRDMA_SD_PAGES))

/* Memory of one segment; DMA-coherent, zeroed when it is made. */
struct qrdma_segment {
	u32 free;			/* units */
	u32 hint;			/* no free unit is below */
	unsigned long *units;		/* bitmap of those taken */
	void *direct;			/* NULL: paged */
	dma_addr_t direct_dma;
	__le64 *list;			/* paged: the page addresses... */
	dma_addr_t list_dma;
	void *pages[];			/* ...and the pages */
};

struct qrdma_pble_pool {
	struct qrdma_dev *dev;
	struct mutex grow;		/* segments come and go */
	struct mutex lock;		/* bitmaps, and all below */
	struct qrdma_segment **segments; /* by SD index, limits.max_sds */
	u32 end;			/* no segment at or above */
	u64 grown;			/* segments ever added */
	struct work_struct shrink;
};

/* --------------------------------------------------------------- segments */

static void qrdma_segment_free_pages(struct qrdma_dev *dev,
				     struct qrdma_segment *segment)
{
	struct device *device = &dev->pdev->dev;

	if (!segment->list)
		return;
	for (int i = 0; i < QRDMA_SD_PAGES && segment->pages[i]; i++)
		dma_free_coherent(device, QRDMA_SD_PAGE_SIZE, segment->pages[i],
				  le64_to_cpu(segment->list[i]));
	dma_free_coherent(device, QRDMA_SD_PAGE_SIZE, segment->list,
			  segment->list_dma);
}

static void qrdma_segment_free(struct qrdma_dev *dev,
			       struct qrdma_segment *segment)
{
	if (segment->direct)
		dma_free_coherent(&dev->pdev->dev, QRDMA_SD_SIZE,
				  segment->direct, segment->direct_dma);
	qrdma_segment_free_pages(dev, segment);
	bitmap_free(segment->units);
	kfree(segment);
}

static int qrdma_segment_alloc_pages(struct qrdma_dev *dev,
				     struct qrdma_segment *segment)
{
	struct device *device = &dev->pdev->dev;
	dma_addr_t dma;

	segment->list = dma_alloc_coherent(device, QRDMA_SD_PAGE_SIZE,
					   &segment->list_dma, GFP_KERNEL);
	if (!segment->list)
		return -ENOMEM;
	for (int i = 0; i < QRDMA_SD_PAGES; i++) {
		segment->pages[i] = dma_alloc_coherent(device,
						       QRDMA_SD_PAGE_SIZE,
						       &dma, GFP_KERNEL);
		if (!segment->pages[i])
			return -ENOMEM;
		segment->list[i] = cpu_to_le64(dma);
	}
	return 0;
}

static struct qrdma_segment *qrdma_segment_alloc(struct qrdma_dev *dev)
{
	struct qrdma_segment *segment;

	segment = kzalloc(struct_size(segment, pages, QRDMA_SD_PAGES),
			  GFP_KERNEL);
	if (!segment)
		return NULL;
	segment->free = QRDMA_UNITS_PER_SD;
	segment->units = bitmap_zalloc(QRDMA_UNITS_PER_SD, GFP_KERNEL);
	if (!segment->units)
		goto fail;

	/* One block if there happens to be one; no trying hard. */
	segment->direct = dma_alloc_coherent(&dev->pdev->dev, QRDMA_SD_SIZE,
					     &segment->direct_dma,
					     GFP_KERNEL | __GFP_NORETRY |
					     __GFP_NOWARN);
	if (!segment->direct && qrdma_segment_alloc_pages(dev, segment))
		goto fail;
	return segment;

fail:
	qrdma_segment_free(dev, segment);
	return NULL;
}

static int qrdma_segment_lend(struct qrdma_dev *dev, u32 index,
			      const struct qrdma_segment *segment)
{
	struct qrdma_sd sd = {
		.type = cpu_to_le32(segment->direct ? QRDMA_SD_DIRECT :
						      QRDMA_SD_PAGED),
		.address = cpu_to_le64(segment->direct ? segment->direct_dma :
							 segment->list_dma),
	};

	return qrdma_create_object(dev, QRDMA_CMD_ADD_SD, QRDMA_CMD_REMOVE_SD,
				   index, &sd, sizeof(sd));
}

/* Where PBLE @offset of the segment is, and all that follow in its 4 KiB. */
static __le64 *qrdma_segment_pble(const struct qrdma_segment *segment,
				  u32 offset)
{
	size_t byte = (size_t)offset * QRDMA_PBLE_SIZE;

	if (segment->direct)
		return segment->direct + byte;
	return segment->pages[byte >> QRDMA_SD_PAGE_SHIFT] +
	       (byte & (QRDMA_SD_PAGE_SIZE - 1));
}

/* First unit of a free run, taken; QRDMA_UNITS_PER_SD if there is none. */
static u32 qrdma_segment_take(struct qrdma_segment *segment, u32 units)
{
	unsigned long unit;

	if (segment->free < units)
		return QRDMA_UNITS_PER_SD;
	unit = bitmap_find_next_zero_area(segment->units, QRDMA_UNITS_PER_SD,
					  segment->hint, units, 0);
	if (unit >= QRDMA_UNITS_PER_SD)
		return QRDMA_UNITS_PER_SD;
	bitmap_set(segment->units, unit, units);
	segment->free -= units;
	if (unit == segment->hint)
		segment->hint = unit + units;
	return unit;
}

/* ------------------------------------------------------------------- pool */

/* Under pool->lock. Index of the first PBLE in *@first. */
static bool qrdma_pool_take(struct qrdma_pble_pool *pool, u32 units, u32 *first)
{
	for (u32 i = 0; i < pool->end; i++) {
		u32 unit;

		if (!pool->segments[i])
			continue;
		unit = qrdma_segment_take(pool->segments[i], units);
		if (unit == QRDMA_UNITS_PER_SD)
			continue;
		*first = i * QRDMA_PBLES_PER_SD + unit * QRDMA_PBLES_PER_UNIT;
		return true;
	}
	return false;
}

/* Under pool->grow: only who holds it changes which entries are empty. */
static int qrdma_pool_add_segment(struct qrdma_pble_pool *pool)
{
	struct qrdma_dev *dev = pool->dev;
	struct qrdma_segment *segment;
	u32 index = 0;
	int ret;

	while (index < dev->limits.max_sds && pool->segments[index])
		index++;
	if (index == dev->limits.max_sds)
		return -ENOSPC;

	segment = qrdma_segment_alloc(dev);
	if (!segment)
		return -ENOMEM;
	ret = qrdma_segment_lend(dev, index, segment);
	if (ret) {
		qrdma_segment_free(dev, segment);
		return ret;
	}

	mutex_lock(&pool->lock);
	pool->segments[index] = segment;
	pool->end = max(pool->end, index + 1);
	pool->grown++;
	mutex_unlock(&pool->lock);
	return 0;
}

/* Add a segment, unless someone has since @grown was read. */
static int qrdma_pool_grow(struct qrdma_pble_pool *pool, u64 grown)
{
	int ret = 0;

	mutex_lock(&pool->grow);
	if (grown == pool->grown)
		ret = qrdma_pool_add_segment(pool);
	mutex_unlock(&pool->grow);
	return ret;
}

/* Give back a segment that no table uses. Under pool->grow. */
static void qrdma_pool_return(struct qrdma_pble_pool *pool, u32 index,
			      struct qrdma_segment *segment)
{
	/* If the card does not let go of it, the card is reset. */
	qrdma_destroy_object(pool->dev, QRDMA_CMD_REMOVE_SD, index);
	qrdma_segment_free(pool->dev, segment);
}

/* Under pool->lock: take out an empty segment other than the first such one. */
static struct qrdma_segment *qrdma_pool_detach_empty(struct qrdma_pble_pool *pool,
						     u32 *index)
{
	bool spare = false;

	for (u32 i = 0; i < pool->end; i++) {
		struct qrdma_segment *segment = pool->segments[i];

		if (!segment || segment->free != QRDMA_UNITS_PER_SD)
			continue;
		if (!spare) {
			spare = true;
			continue;
		}
		pool->segments[i] = NULL;
		*index = i;
		return segment;
	}
	return NULL;
}

/*
 * Freeing only clears bits, because it may happen where a command or a lock of
 * those who allocate must not be waited for. One empty segment is kept, so that
 * a region made and destroyed in turn does not cost two commands each time.
 */
static void qrdma_pool_shrink(struct work_struct *work)
{
	struct qrdma_pble_pool *pool = container_of(work,
						    struct qrdma_pble_pool,
						    shrink);
	struct qrdma_segment *segment;
	u32 index;

	mutex_lock(&pool->grow);
	do {
		mutex_lock(&pool->lock);
		segment = qrdma_pool_detach_empty(pool, &index);
		mutex_unlock(&pool->lock);
		if (segment)
			qrdma_pool_return(pool, index, segment);
	} while (segment);
	mutex_unlock(&pool->grow);
}

int qrdma_pble_pool_init(struct qrdma_dev *dev)
{
	struct qrdma_pble_pool *pool;

	pool = kzalloc_obj(*pool);
	if (!pool)
		return -ENOMEM;
	pool->segments = kvzalloc_objs(*pool->segments, dev->limits.max_sds);
	if (!pool->segments) {
		kfree(pool);
		return -ENOMEM;
	}
	pool->dev = dev;
	mutex_init(&pool->grow);
	mutex_init(&pool->lock);
	INIT_WORK(&pool->shrink, qrdma_pool_shrink);
	dev->pble_pool = pool;
	return 0;
}

void qrdma_pble_pool_destroy(struct qrdma_dev *dev)
{
	struct qrdma_pble_pool *pool = dev->pble_pool;

	if (!pool)
		return;
	cancel_work_sync(&pool->shrink);
	for (u32 i = 0; i < pool->end; i++) {
		if (!pool->segments[i])
			continue;
		WARN_ON(pool->segments[i]->free != QRDMA_UNITS_PER_SD);
		qrdma_pool_return(pool, i, pool->segments[i]);
	}
	mutex_destroy(&pool->grow);
	mutex_destroy(&pool->lock);
	kvfree(pool->segments);
	kfree(pool);
	dev->pble_pool = NULL;
}

/* ----------------------------------------------------------------- tables */

/* @count PBLEs in a row. Grows the pool until there are, or cannot be. */
static int qrdma_pble_take(struct qrdma_pble_pool *pool, u32 count, u32 *first)
{
	u32 units = DIV_ROUND_UP(count, QRDMA_PBLES_PER_UNIT);
	bool taken;
	u64 grown;
	int ret;

	if (units > QRDMA_UNITS_PER_SD)
		return -ENOMEM;
	for (;;) {
		mutex_lock(&pool->lock);
		taken = qrdma_pool_take(pool, units, first);
		grown = pool->grown;
		mutex_unlock(&pool->lock);
		if (taken)
			return 0;
		ret = qrdma_pool_grow(pool, grown);
		if (ret)
			return ret;
	}
}

static void qrdma_pble_give(struct qrdma_pble_pool *pool, u32 first, u32 count)
{
	u32 units = DIV_ROUND_UP(count, QRDMA_PBLES_PER_UNIT);
	u32 unit = first % QRDMA_PBLES_PER_SD / QRDMA_PBLES_PER_UNIT;
	struct qrdma_segment *segment;
	bool empty;

	mutex_lock(&pool->lock);
	segment = pool->segments[first / QRDMA_PBLES_PER_SD];
	bitmap_clear(segment->units, unit, units);
	segment->free += units;
	segment->hint = min(segment->hint, unit);
	empty = segment->free == QRDMA_UNITS_PER_SD;
	mutex_unlock(&pool->lock);
	if (empty)
		schedule_work(&pool->shrink);
}

/*
 * Where a PBLE is. Its segment stays as long as a table in it does, so the
 * owner of a table needs no lock.
 */
static __le64 *qrdma_pble_at(struct qrdma_pble_pool *pool, u32 index)
{
	struct qrdma_segment *segment =
		READ_ONCE(pool->segments[index / QRDMA_PBLES_PER_SD]);

	return qrdma_segment_pble(segment, index % QRDMA_PBLES_PER_SD);
}

/* PBLEs from @index to the end of their 4 KiB, at most @n. */
static u32 qrdma_pble_run(u32 index, u32 n)
{
	u32 per_page = QRDMA_SD_PAGE_SIZE / QRDMA_PBLE_SIZE;

	return min(n, per_page - index % per_page);
}

/* Whole units, because the card and UMRs take whole units. */
static void qrdma_pble_clear(struct qrdma_pble_pool *pool, u32 first, u32 count)
{
	u32 n = round_up(count, QRDMA_PBLES_PER_UNIT);

	while (n) {
		u32 run = qrdma_pble_run(first, n);

		memset(qrdma_pble_at(pool, first), 0,
		       (size_t)run * QRDMA_PBLE_SIZE);
		first += run;
		n -= run;
	}
}

/* Level 2: first PBLE of each leaf. */
static u32 *qrdma_pble_leaves(const struct qrdma_pble_alloc *alloc)
{
	return alloc->private;
}

static void qrdma_pble_give_leaves(struct qrdma_pble_pool *pool, u32 count,
				   const u32 *leaves, u32 n)
{
	for (u32 i = 0; i < n; i++)
		qrdma_pble_give(pool, leaves[i],
				qrdma_table_leaf_entries(count, i));
}

static int qrdma_pble_take_leaves(struct qrdma_pble_pool *pool, u32 count,
				  u32 root, u32 *leaves)
{
	u32 n = qrdma_table_leaves(count);
	int ret;

	for (u32 i = 0; i < n; i++) {
		u32 entries = qrdma_table_leaf_entries(count, i);

		ret = qrdma_pble_take(pool, entries, &leaves[i]);
		if (ret) {
			qrdma_pble_give_leaves(pool, count, leaves, i);
			return ret;
		}
		qrdma_pble_clear(pool, leaves[i], entries);
		*qrdma_pble_at(pool, root + i) = cpu_to_le64(QRDMA_ROOT_VALID |
							     leaves[i]);
	}
	return 0;
}

static int qrdma_pble_alloc_level2(struct qrdma_pble_pool *pool, u32 count,
				   struct qrdma_pble_alloc *alloc)
{
	u32 n = qrdma_table_leaves(count);
	u32 *leaves;
	u32 root;
	int ret;

	leaves = kvmalloc_objs(*leaves, n);
	if (!leaves)
		return -ENOMEM;
	ret = qrdma_pble_take(pool, n, &root);
	if (ret)
		goto free_leaves;
	qrdma_pble_clear(pool, root, n);
	ret = qrdma_pble_take_leaves(pool, count, root, leaves);
	if (ret)
		goto give_root;

	alloc->first = root;
	alloc->level = 2;
	alloc->private = leaves;
	return 0;

give_root:
	qrdma_pble_give(pool, root, n);
free_leaves:
	kvfree(leaves);
	return ret;
}

int qrdma_pble_alloc(struct qrdma_dev *dev, u32 count, bool level1_only,
		     struct qrdma_pble_alloc *alloc)
{
	struct qrdma_pble_pool *pool = dev->pble_pool;
	int ret;

	memset(alloc, 0, sizeof(*alloc));
	if (!count)
		return -EINVAL;

	if (!level1_only && count > QRDMA_LEAF_PBLES) {
		ret = qrdma_pble_alloc_level2(pool, count, alloc);
	} else {
		ret = qrdma_pble_take(pool, count, &alloc->first);
		if (!ret) {
			qrdma_pble_clear(pool, alloc->first, count);
			alloc->level = 1;
		}
	}
	if (ret)
		return ret;
	alloc->count = count;
	return 0;
}

void qrdma_pble_write(struct qrdma_dev *dev, struct qrdma_pble_alloc *alloc,
		      u32 first, const u64 *values, u32 n)
{
	const u32 *leaves = qrdma_pble_leaves(alloc);

	if (WARN_ON_ONCE(first > alloc->count || n > alloc->count - first))
		return;
	while (n) {
		u32 index = alloc->level == 1 ? alloc->first + first :
			    leaves[first / QRDMA_LEAF_PBLES] +
			    first % QRDMA_LEAF_PBLES;
		u32 run = qrdma_pble_run(index, n);
		__le64 *pble = qrdma_pble_at(dev->pble_pool, index);

		if (alloc->level == 2)
			run = min(run, QRDMA_LEAF_PBLES -
				       first % QRDMA_LEAF_PBLES);
		for (u32 i = 0; i < run; i++)
			pble[i] = cpu_to_le64(values[i]);
		first += run;
		values += run;
		n -= run;
	}
}

void qrdma_pble_free(struct qrdma_dev *dev, struct qrdma_pble_alloc *alloc)
{
	struct qrdma_pble_pool *pool = dev->pble_pool;

	if (!alloc->count)
		return;
	if (alloc->level == 2) {
		u32 n = qrdma_table_leaves(alloc->count);

		qrdma_pble_give_leaves(pool, alloc->count,
				       qrdma_pble_leaves(alloc), n);
		qrdma_pble_give(pool, alloc->first, n);
		kvfree(alloc->private);
	} else {
		qrdma_pble_give(pool, alloc->first, alloc->count);
	}
	memset(alloc, 0, sizeof(*alloc));
}
