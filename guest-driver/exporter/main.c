// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma_exporter: a dma-buf exporter that lays out, moves and revokes its
 * buffers on request, so that importers can be tested. The device and its
 * ioctls; everything that comes from user space is checked here.
 */
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "exporter.h"

struct workqueue_struct *exporter_workqueue;

static_assert(QRDMA_EXPORTER_PAGE_SHIFT == PAGE_SHIFT);

/* A reference to the buffer behind @fd; dma_buf_put(buffer->dmabuf) drops it. */
static struct exporter_buffer *buffer_get(int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	if (dmabuf->ops != &exporter_dmabuf_ops) {
		dma_buf_put(dmabuf);
		return ERR_PTR(-EXDEV);
	}
	return dmabuf->priv;
}

static void buffer_put(struct exporter_buffer *buffer)
{
	dma_buf_put(buffer->dmabuf);
}

/* Bytes in @lengths become pages in @counts. */
static int check_lengths(const u64 *lengths, u32 *counts, u32 n, u32 pages)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!lengths[i] || !PAGE_ALIGNED(lengths[i]) ||
		    lengths[i] > QRDMA_EXPORTER_MAX_SEGMENT)
			return -EINVAL;
		counts[i] = lengths[i] >> PAGE_SHIFT;
		total += counts[i];
	}
	return total == pages ? 0 : -EINVAL;
}

static struct exporter_layout *
explicit_layout(const struct qrdma_exporter_layout *layout, u32 pages)
{
	u32 n = layout->segment_count;
	struct exporter_layout *ret;
	u64 *lengths;
	u32 *counts;

	if (!n || n > QRDMA_EXPORTER_MAX_SEGMENTS)
		return ERR_PTR(-EINVAL);
	lengths = memdup_array_user(u64_to_user_ptr(layout->segments), n,
				    sizeof(*lengths));
	if (IS_ERR(lengths))
		return ERR_CAST(lengths);
	counts = kmalloc_objs(*counts, n);
	if (counts) {
		int err = check_lengths(lengths, counts, n, pages);

		ret = err ? ERR_PTR(err) :
			    exporter_layout_alloc(pages, layout->kind, counts,
						  n);
	} else {
		ret = ERR_PTR(-ENOMEM);
	}
	kfree(counts);
	kfree(lengths);
	return ret;
}

static struct exporter_layout *
layout_from_user(const struct qrdma_exporter_layout *layout, u32 pages)
{
	switch (layout->kind) {
	case QRDMA_EXPORTER_4K:
	case QRDMA_EXPORTER_64K:
	case QRDMA_EXPORTER_2M:
	case QRDMA_EXPORTER_CONTIGUOUS:
		if (layout->segment_count || layout->segments)
			return ERR_PTR(-EINVAL);
		return exporter_layout_alloc(pages, layout->kind, NULL, 0);
	case QRDMA_EXPORTER_EXPLICIT:
		return explicit_layout(layout, pages);
	default:
		return ERR_PTR(-EINVAL);
	}
}

/* Takes @layout over in any case. */
static struct dma_buf *export_layout(struct exporter_layout *layout)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);
	struct exporter_buffer *buffer = kzalloc_obj(*buffer);
	struct dma_buf *dmabuf;

	if (!buffer) {
		exporter_layout_put(layout);
		return ERR_PTR(-ENOMEM);
	}
	buffer->pages = layout->pages;
	buffer->layout = layout;
	exporter_move_init(buffer);

	info.ops = &exporter_dmabuf_ops;
	info.size = (size_t)layout->pages << PAGE_SHIFT;
	info.flags = O_RDWR | O_CLOEXEC;
	info.priv = buffer;
	dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		exporter_layout_put(layout);
		kfree(buffer);
		return dmabuf;
	}
	buffer->dmabuf = dmabuf;
	return dmabuf;
}

static long ioctl_create(void *data)
{
	struct qrdma_exporter_create *create = data;
	struct exporter_layout *layout;
	struct dma_buf *dmabuf;
	int fd;

	if (create->reserved || !create->size || !PAGE_ALIGNED(create->size) ||
	    create->size > QRDMA_EXPORTER_MAX_SIZE)
		return -EINVAL;
	layout = layout_from_user(&create->layout, create->size >> PAGE_SHIFT);
	if (IS_ERR(layout))
		return PTR_ERR(layout);
	dmabuf = export_layout(layout);
	if (IS_ERR(dmabuf))
		return PTR_ERR(dmabuf);

	/* Should the answer not reach the caller, its files close with it. */
	fd = dma_buf_fd(dmabuf, O_CLOEXEC);
	if (fd < 0)
		dma_buf_put(dmabuf);
	create->fd = fd;
	return min(fd, 0);
}

static long ioctl_move(void *data)
{
	const struct qrdma_exporter_move *move = data;
	struct exporter_buffer *buffer;
	struct exporter_layout *layout;
	long ret;

	if (move->reserved || move->flags & ~QRDMA_EXPORTER_MOVE_KEEP_OLD ||
	    move->hold_ms > QRDMA_EXPORTER_MAX_HOLD_MS)
		return -EINVAL;
	buffer = buffer_get(move->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	layout = layout_from_user(&move->layout, buffer->pages);
	if (IS_ERR(layout))
		ret = PTR_ERR(layout);
	else
		ret = exporter_move(buffer, layout,
				    msecs_to_jiffies(move->hold_ms),
				    move->flags & QRDMA_EXPORTER_MOVE_KEEP_OLD);
	buffer_put(buffer);
	return ret;
}

static long on_buffer(const struct qrdma_exporter_buffer *argument,
		      int (*function)(struct exporter_buffer *buffer))
{
	struct exporter_buffer *buffer;
	long ret;

	if (argument->reserved)
		return -EINVAL;
	buffer = buffer_get(argument->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	ret = function(buffer);
	buffer_put(buffer);
	return ret;
}

static long ioctl_revoke(void *data)
{
	return on_buffer(data, exporter_revoke);
}

static long ioctl_release(void *data)
{
	return on_buffer(data, exporter_release);
}

static long stamp_locked(struct exporter_buffer *buffer,
			 struct qrdma_exporter_stamp *stamp, bool check)
{
	const struct exporter_layout *layout = buffer->layout;
	u32 first = stamp->first_page, count = stamp->pages;
	int err;

	if (!layout)
		return -ENODEV;
	if (stamp->flags & QRDMA_EXPORTER_STAMP_OLD)
		layout = buffer->old;
	if (!layout)
		return -ENOENT;
	err = exporter_wait_contents(buffer);
	if (err)
		return err;
	if (check)
		exporter_check_pages(layout, first, count, stamp->seed, stamp);
	else
		exporter_stamp_pages(layout, first, count, stamp->seed);
	return 0;
}

static long stamp_or_check(struct qrdma_exporter_stamp *stamp, bool check)
{
	struct exporter_buffer *buffer;
	long ret;

	if (stamp->flags & ~QRDMA_EXPORTER_STAMP_OLD || !stamp->pages)
		return -EINVAL;
	stamp->wrong_pages = 0;
	stamp->wrong_offset = 0;
	stamp->expected = 0;
	stamp->found = 0;

	buffer = buffer_get(stamp->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	if (stamp->first_page >= buffer->pages ||
	    stamp->pages > buffer->pages - stamp->first_page)
		ret = -EINVAL;
	else
		ret = dma_resv_lock_interruptible(buffer->dmabuf->resv, NULL);
	if (!ret) {
		ret = stamp_locked(buffer, stamp, check);
		dma_resv_unlock(buffer->dmabuf->resv);
	}
	buffer_put(buffer);
	return ret;
}

static long ioctl_stamp(void *data)
{
	return stamp_or_check(data, false);
}

static long ioctl_check(void *data)
{
	return stamp_or_check(data, true);
}

static long ioctl_query(void *data)
{
	struct qrdma_exporter_query *query = data;
	const struct exporter_counters *counters;
	struct exporter_buffer *buffer;

	if (query->reserved)
		return -EINVAL;
	buffer = buffer_get(query->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	dma_resv_lock(buffer->dmabuf->resv, NULL);
	counters = &buffer->counters;
	*query = (struct qrdma_exporter_query) {
		.fd = query->fd,
		.size = (u64)buffer->pages << PAGE_SHIFT,
		.kind = buffer->layout ? buffer->layout->kind : 0,
		.segments = buffer->layout ? buffer->layout->count : 0,
		.revoked = buffer->revoked,
		.pinned = buffer->pinned,
		.mapped = buffer->mapped,
		.attached = buffer->attached,
		.attaches = counters->attaches,
		.pins = counters->pins,
		.unpins = counters->unpins,
		.maps = counters->maps,
		.unmaps = counters->unmaps,
		.moves = counters->moves,
		.revokes = counters->revokes,
		.order_errors = counters->order_errors,
	};
	dma_resv_unlock(buffer->dmabuf->resv);
	buffer_put(buffer);
	return 0;
}

/* The layout stays while it is read: the copy needs no lock. */
static long copy_segments(const struct exporter_layout *layout,
			  struct qrdma_exporter_segments *segments)
{
	struct qrdma_exporter_segment __user *out =
		u64_to_user_ptr(segments->segments);
	u32 i;

	segments->count = layout->count;
	for (i = 0; i < min(layout->count, segments->capacity); i++) {
		const struct exporter_extent *extent = &layout->extents[i];
		struct qrdma_exporter_segment segment = {
			.address = page_to_phys(extent->page),
			.length = (u64)extent->count << PAGE_SHIFT,
		};

		if (copy_to_user(out + i, &segment, sizeof(segment)))
			return -EFAULT;
	}
	return 0;
}

static long ioctl_segments(void *data)
{
	struct qrdma_exporter_segments *segments = data;
	struct exporter_layout *layout = NULL;
	struct exporter_buffer *buffer;
	long ret = -ENODEV;

	if (segments->reserved)
		return -EINVAL;
	buffer = buffer_get(segments->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	dma_resv_lock(buffer->dmabuf->resv, NULL);
	if (buffer->layout)
		layout = exporter_layout_get(buffer->layout);
	dma_resv_unlock(buffer->dmabuf->resv);
	if (layout)
		ret = copy_segments(layout, segments);
	exporter_layout_put(layout);
	buffer_put(buffer);
	return ret;
}

static long ioctl_trigger(void *data)
{
	const struct qrdma_exporter_trigger *trigger = data;
	struct exporter_buffer *buffer;

	if (trigger->reserved)
		return -EINVAL;
	buffer = buffer_get(trigger->fd);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);

	dma_resv_lock(buffer->dmabuf->resv, NULL);
	buffer->fail_maps = trigger->fail_maps;
	buffer->revoke_after_maps = trigger->revoke_after_maps;
	dma_resv_unlock(buffer->dmabuf->resv);
	buffer_put(buffer);
	return 0;
}

static const struct exporter_ioctl {
	unsigned int command;
	long (*handle)(void *data);
} exporter_ioctls[] = {
	{ QRDMA_EXPORTER_CREATE, ioctl_create },
	{ QRDMA_EXPORTER_MOVE, ioctl_move },
	{ QRDMA_EXPORTER_REVOKE, ioctl_revoke },
	{ QRDMA_EXPORTER_RELEASE, ioctl_release },
	{ QRDMA_EXPORTER_STAMP, ioctl_stamp },
	{ QRDMA_EXPORTER_CHECK, ioctl_check },
	{ QRDMA_EXPORTER_QUERY, ioctl_query },
	{ QRDMA_EXPORTER_SEGMENTS, ioctl_segments },
	{ QRDMA_EXPORTER_TRIGGER, ioctl_trigger },
};

union exporter_argument {
	struct qrdma_exporter_create create;
	struct qrdma_exporter_move move;
	struct qrdma_exporter_buffer buffer;
	struct qrdma_exporter_stamp stamp;
	struct qrdma_exporter_query query;
	struct qrdma_exporter_segments segments;
	struct qrdma_exporter_trigger trigger;
};

static long exporter_ioctl(struct file *file, unsigned int command,
			   unsigned long user)
{
	void __user *address = (void __user *)user;
	union exporter_argument argument;
	unsigned int i;
	long ret;

	for (i = 0; i < ARRAY_SIZE(exporter_ioctls); i++)
		if (exporter_ioctls[i].command == command)
			break;
	if (i == ARRAY_SIZE(exporter_ioctls))
		return -ENOTTY;

	if (copy_from_user(&argument, address, _IOC_SIZE(command)))
		return -EFAULT;
	ret = exporter_ioctls[i].handle(&argument);
	if (!ret && _IOC_DIR(command) & _IOC_READ &&
	    copy_to_user(address, &argument, _IOC_SIZE(command)))
		return -EFAULT;
	return ret;
}

static const struct file_operations exporter_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = exporter_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice exporter_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "qrdma_exporter",
	.fops = &exporter_fops,
	.mode = 0600,
};

static int __init exporter_init(void)
{
	int err;

	exporter_workqueue = alloc_workqueue("qrdma_exporter", WQ_UNBOUND, 0);
	if (!exporter_workqueue)
		return -ENOMEM;
	err = misc_register(&exporter_device);
	if (err)
		destroy_workqueue(exporter_workqueue);
	return err;
}

/* Every buffer holds the module: none is left. */
static void __exit exporter_exit(void)
{
	misc_deregister(&exporter_device);
	destroy_workqueue(exporter_workqueue);
}

module_init(exporter_init);
module_exit(exporter_exit);

MODULE_DESCRIPTION("dma-buf exporter for tests of importers");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("DMA_BUF");
