/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma_exporter: what its files share.
 *
 * Locks: one, the dma-buf's reservation object. It guards everything in struct
 * exporter_buffer, is taken under mmap_lock by the fault handler, and nothing of
 * user space is touched under it.
 */
#ifndef EXPORTER_H
#define EXPORTER_H

#include <linux/dma-buf.h>
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "qrdma_exporter.h"

/* Physically contiguous pages of a layout; each is an order-0 page of its own. */
struct exporter_extent {
	struct page *page;
	u32 first;			/* page of the buffer */
	u32 count;			/* pages */
	bool cma;			/* of the contiguous memory area */
};

/* Memory of a buffer. Immutable; whoever maps it holds a reference. */
struct exporter_layout {
	struct kref kref;
	u32 kind;			/* enum qrdma_exporter_layout_kind */
	u32 pages;
	u32 count;			/* extents */
	struct exporter_extent extents[] __counted_by(count);
};

/* Counters of QRDMA_EXPORTER_QUERY. */
struct exporter_counters {
	u64 attaches;
	u64 pins;
	u64 unpins;
	u64 maps;
	u64 unmaps;
	u64 moves;
	u64 revokes;
	u64 order_errors;
};

struct exporter_buffer {
	struct dma_buf *dmabuf;
	u32 pages;
	struct exporter_layout *layout;	/* NULL once released */
	struct exporter_layout *old;	/* left by a move with KEEP_OLD, or NULL */
	bool revoked;
	u32 pinned;
	u32 mapped;
	u32 attached;
	u32 fail_maps;
	u32 revoke_after_maps;
	struct exporter_counters counters;
	wait_queue_head_t unmapped;	/* mapped became 0 */
	struct work_struct revoke_work;	/* queued: holds a reference to dmabuf */

	/*
	 * A move whose contents are still to come. Filled while no move is under
	 * way, under the reservation lock; from then until the fence has
	 * signalled it belongs to the work.
	 */
	struct delayed_work move_work;
	struct exporter_layout *move_from;
	struct exporter_layout *move_to;
	struct dma_fence *move_fence;
	bool move_keep;
};

/* An importer's; attachment->priv. */
struct exporter_attachment {
	u32 pinned;
	u32 mapped;
};

extern const struct dma_buf_ops exporter_dmabuf_ops;
extern struct workqueue_struct *exporter_workqueue;

/* -------------------------------------------------------------- layout.c */

/*
 * Zeroed memory for @pages pages cut as @kind says. @lengths, @count: pages of
 * each extent of an explicit layout, which add up to @pages. May sleep, and
 * takes long for large buffers. -ENOMEM; -ENOSPC beyond the module's limit;
 * -EINTR when a fatal signal is pending.
 */
struct exporter_layout *exporter_layout_alloc(u32 pages, u32 kind,
					      const u32 *lengths, u32 count);
void exporter_layout_put(struct exporter_layout *layout);

static inline struct exporter_layout *
exporter_layout_get(struct exporter_layout *layout)
{
	kref_get(&layout->kref);
	return layout;
}

/* @index is below layout->pages. */
struct page *exporter_layout_page(const struct exporter_layout *layout,
				  u32 index);

/* --------------------------------------------------------------- stamp.c */

void exporter_stamp_pages(const struct exporter_layout *layout, u32 first,
			  u32 count, u64 seed);
/* Fills the out fields of @result. */
void exporter_check_pages(const struct exporter_layout *layout, u32 first,
			  u32 count, u64 seed,
			  struct qrdma_exporter_stamp *result);
/* Both have the same number of pages. */
void exporter_copy_pages(const struct exporter_layout *to,
			 const struct exporter_layout *from);

/* ---------------------------------------------------------------- move.c */

void exporter_move_init(struct exporter_buffer *buffer);
/* No importer and no CPU mapping is left. */
void exporter_move_finish(struct exporter_buffer *buffer);

/*
 * Takes @layout over in any case. @hold: jiffies until the contents are there,
 * 0: before the return. -EBUSY, -ENODEV, -EINTR as in qrdma_exporter.h.
 */
int exporter_move(struct exporter_buffer *buffer,
		  struct exporter_layout *layout, unsigned long hold,
		  bool keep_old);
/* -EINTR: a fatal signal while an importer kept its mapping. */
int exporter_revoke(struct exporter_buffer *buffer);
int exporter_release(struct exporter_buffer *buffer);
/* Revoke from a work; the caller holds the reservation lock. */
void exporter_queue_revoke(struct exporter_buffer *buffer);
/* Wait for the contents of the last move; under the reservation lock. */
int exporter_wait_contents(struct exporter_buffer *buffer);

#endif /* EXPORTER_H */
