// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma_exporter: moving a buffer, and taking it away.
 *
 * The order is the one dma_buf_invalidate_mappings() asks for: tell the
 * importers, wait for their fences, and where access has to end altogether wait
 * until they have unmapped. A move needs no more than the first two, because the
 * mappings that are left hold a reference to the memory they map.
 */
#include <linux/sched.h>
#include <linux/slab.h>

#include "exporter.h"

static const char *fence_driver_name(struct dma_fence *fence)
{
	return KBUILD_MODNAME;
}

static const char *fence_timeline_name(struct dma_fence *fence)
{
	return "move";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_driver_name,
	.get_timeline_name = fence_timeline_name,
};

static struct dma_fence *fence_alloc(void)
{
	struct dma_fence *fence = kzalloc_obj(*fence);

	if (fence)
		dma_fence_init(fence, &fence_ops, NULL,
			       dma_fence_context_alloc(1), 1);
	return fence;
}

/* Everybody who touches the memory is done with it. */
static void copy_contents(const struct exporter_layout *to,
			  const struct exporter_layout *from, bool keep)
{
	exporter_copy_pages(to, from);
	if (keep)
		exporter_stamp_pages(from, 0, from->pages,
				     QRDMA_EXPORTER_OLD_SEED);
}

static void move_work(struct work_struct *work)
{
	struct exporter_buffer *buffer =
		container_of(to_delayed_work(work), struct exporter_buffer,
			     move_work);
	struct exporter_layout *from = buffer->move_from;
	struct exporter_layout *to = buffer->move_to;
	struct dma_fence *fence = buffer->move_fence;
	bool cookie = dma_fence_begin_signalling();

	copy_contents(to, from, buffer->move_keep);
	/* From here on the next move may fill the fields again. */
	dma_fence_signal(fence);
	dma_fence_end_signalling(cookie);

	dma_fence_put(fence);
	exporter_layout_put(from);
	exporter_layout_put(to);
}

int exporter_wait_contents(struct exporter_buffer *buffer)
{
	long left = dma_resv_wait_timeout(buffer->dmabuf->resv,
					  DMA_RESV_USAGE_KERNEL, true,
					  MAX_SCHEDULE_TIMEOUT);

	return left < 0 ? left : 0;
}

/* Uninterruptible: half an invalidation helps nobody. */
static void invalidate(struct exporter_buffer *buffer)
{
	struct dma_resv *resv = buffer->dmabuf->resv;

	dma_buf_invalidate_mappings(buffer->dmabuf);
	dma_resv_wait_timeout(resv, DMA_RESV_USAGE_BOOKKEEP, false,
			      MAX_SCHEDULE_TIMEOUT);
}

static void zap_cpu_mappings(struct exporter_buffer *buffer)
{
	unmap_mapping_range(buffer->dmabuf->file->f_mapping, 0, 0, 1);
}

static int may_move(const struct exporter_buffer *buffer)
{
	if (buffer->revoked)
		return -ENODEV;
	return buffer->pinned ? -EBUSY : 0;
}

/* @fence: NULL, or the contents come @hold jiffies later. */
static void move_locked(struct exporter_buffer *buffer,
			struct exporter_layout *layout,
			struct dma_fence *fence, unsigned long hold, bool keep)
{
	struct exporter_layout *from = buffer->layout;

	invalidate(buffer);
	zap_cpu_mappings(buffer);
	buffer->layout = layout;
	buffer->counters.moves++;

	exporter_layout_put(buffer->old);
	buffer->old = keep ? exporter_layout_get(from) : NULL;

	if (!fence) {
		copy_contents(layout, from, keep);
		exporter_layout_put(from);
		return;
	}
	buffer->move_from = from;
	buffer->move_to = exporter_layout_get(layout);
	buffer->move_keep = keep;
	buffer->move_fence = dma_fence_get(fence);
	dma_resv_add_fence(buffer->dmabuf->resv, fence, DMA_RESV_USAGE_KERNEL);
	queue_delayed_work(exporter_workqueue, &buffer->move_work, hold);
}

int exporter_move(struct exporter_buffer *buffer,
		  struct exporter_layout *layout, unsigned long hold,
		  bool keep_old)
{
	struct dma_resv *resv = buffer->dmabuf->resv;
	struct dma_fence *fence = NULL;
	int err;

	if (hold) {
		fence = fence_alloc();
		if (!fence) {
			err = -ENOMEM;
			goto out_layout;
		}
	}
	err = dma_resv_lock_interruptible(resv, NULL);
	if (err)
		goto out_fence;
	err = may_move(buffer);
	if (!err && fence)
		err = dma_resv_reserve_fences(resv, 1);
	if (!err) {
		move_locked(buffer, layout, fence, hold, keep_old);
		layout = NULL;
	}
	dma_resv_unlock(resv);
out_fence:
	dma_fence_put(fence);
out_layout:
	exporter_layout_put(layout);
	return err;
}

static void revoke_locked(struct exporter_buffer *buffer)
{
	dma_resv_lock(buffer->dmabuf->resv, NULL);
	buffer->revoked = true;
	buffer->counters.revokes++;
	invalidate(buffer);
	dma_resv_unlock(buffer->dmabuf->resv);
}

int exporter_revoke(struct exporter_buffer *buffer)
{
	revoke_locked(buffer);
	return wait_event_killable(buffer->unmapped,
				   !READ_ONCE(buffer->mapped)) ? -EINTR : 0;
}

int exporter_release(struct exporter_buffer *buffer)
{
	struct exporter_layout *layout, *old;
	int err = exporter_revoke(buffer);

	if (err)
		return err;
	dma_resv_lock(buffer->dmabuf->resv, NULL);
	layout = buffer->layout;
	old = buffer->old;
	buffer->layout = NULL;
	buffer->old = NULL;
	zap_cpu_mappings(buffer);
	dma_resv_unlock(buffer->dmabuf->resv);

	exporter_layout_put(layout);
	exporter_layout_put(old);
	return 0;
}

static void revoke_work(struct work_struct *work)
{
	struct exporter_buffer *buffer =
		container_of(work, struct exporter_buffer, revoke_work);

	revoke_locked(buffer);
	wait_event(buffer->unmapped, !READ_ONCE(buffer->mapped));
	dma_buf_put(buffer->dmabuf);
}

void exporter_queue_revoke(struct exporter_buffer *buffer)
{
	dma_resv_assert_held(buffer->dmabuf->resv);

	get_dma_buf(buffer->dmabuf);
	if (!queue_work(exporter_workqueue, &buffer->revoke_work))
		dma_buf_put(buffer->dmabuf);
}

void exporter_move_init(struct exporter_buffer *buffer)
{
	init_waitqueue_head(&buffer->unmapped);
	INIT_DELAYED_WORK(&buffer->move_work, move_work);
	INIT_WORK(&buffer->revoke_work, revoke_work);
}

void exporter_move_finish(struct exporter_buffer *buffer)
{
	/* Nobody waits for the contents any more: now rather than later. */
	flush_delayed_work(&buffer->move_work);
	exporter_layout_put(buffer->layout);
	exporter_layout_put(buffer->old);
}
