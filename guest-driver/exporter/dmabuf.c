// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma_exporter: what importers and the CPU's mappings see of a buffer.
 *
 * The memory is the CPU's own and the devices are coherent with it, so nothing
 * is synchronised around accesses.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "exporter.h"

struct exporter_mapping {
	struct sg_table sgt;
	struct exporter_layout *layout;
};

static int exporter_attach(struct dma_buf *dmabuf,
			   struct dma_buf_attachment *attachment)
{
	struct exporter_buffer *buffer = dmabuf->priv;
	struct exporter_attachment *state;

	/* Who cannot be told to stop would keep a revocation waiting for ever. */
	if (!dma_buf_attach_revocable(attachment))
		return -EOPNOTSUPP;

	state = kzalloc_obj(*state);
	if (!state)
		return -ENOMEM;

	dma_resv_lock(dmabuf->resv, NULL);
	if (buffer->revoked) {
		dma_resv_unlock(dmabuf->resv);
		kfree(state);
		return -ENODEV;
	}
	attachment->priv = state;
	buffer->attached++;
	buffer->counters.attaches++;
	dma_resv_unlock(dmabuf->resv);
	return 0;
}

static void exporter_detach(struct dma_buf *dmabuf,
			    struct dma_buf_attachment *attachment)
{
	struct exporter_buffer *buffer = dmabuf->priv;
	struct exporter_attachment *state = attachment->priv;

	dma_resv_lock(dmabuf->resv, NULL);
	buffer->attached--;
	if (state->mapped || state->pinned)
		buffer->counters.order_errors++;
	dma_resv_unlock(dmabuf->resv);
	kfree(state);
}

static int exporter_pin(struct dma_buf_attachment *attachment)
{
	struct exporter_buffer *buffer = attachment->dmabuf->priv;
	struct exporter_attachment *state = attachment->priv;
	int err;

	if (buffer->revoked)
		return -ENODEV;
	/* A pin promises that the memory is ready for use. */
	err = exporter_wait_contents(buffer);
	if (err)
		return err;
	buffer->pinned++;
	buffer->counters.pins++;
	state->pinned++;
	return 0;
}

static void exporter_unpin(struct dma_buf_attachment *attachment)
{
	struct exporter_buffer *buffer = attachment->dmabuf->priv;
	struct exporter_attachment *state = attachment->priv;

	buffer->counters.unpins++;
	if (state->mapped || !state->pinned)
		buffer->counters.order_errors++;
	if (!state->pinned)
		return;
	state->pinned--;
	buffer->pinned--;
}

/* Pages an sg entry may have; a power of two keeps pieces aligned. */
static u32 max_entry_pages(struct device *dev)
{
	size_t max = min_t(size_t, dma_get_max_seg_size(dev), SZ_1G);

	return rounddown_pow_of_two(max) >> PAGE_SHIFT;
}

static int fill_sg_table(struct sg_table *sgt,
			 const struct exporter_layout *layout, u32 max)
{
	u32 i, offset, entries = 0;
	struct scatterlist *sg;
	int err;

	for (i = 0; i < layout->count; i++)
		entries += DIV_ROUND_UP(layout->extents[i].count, max);
	err = sg_alloc_table(sgt, entries, GFP_KERNEL);
	if (err)
		return err;

	sg = sgt->sgl;
	for (i = 0; i < layout->count; i++) {
		const struct exporter_extent *extent = &layout->extents[i];

		for (offset = 0; offset < extent->count; offset += max) {
			u32 pages = min(extent->count - offset, max);

			sg_set_page(sg, extent->page + offset,
				    pages << PAGE_SHIFT, 0);
			sg = sg_next(sg);
		}
	}
	return 0;
}

static struct sg_table *exporter_map(struct dma_buf_attachment *attachment,
				     enum dma_data_direction direction)
{
	struct exporter_buffer *buffer = attachment->dmabuf->priv;
	struct exporter_attachment *state = attachment->priv;
	struct exporter_mapping *mapping;
	u32 max;
	int err;

	if (buffer->revoked)
		return ERR_PTR(-ENODEV);
	if (buffer->fail_maps) {
		buffer->fail_maps--;
		return ERR_PTR(-ENOMEM);
	}
	max = max_entry_pages(attachment->dev);
	if (!max)
		return ERR_PTR(-EINVAL);

	mapping = kzalloc_obj(*mapping);
	if (!mapping)
		return ERR_PTR(-ENOMEM);
	err = fill_sg_table(&mapping->sgt, buffer->layout, max);
	if (err)
		goto err_mapping;
	err = dma_map_sgtable(attachment->dev, &mapping->sgt, direction,
			      DMA_ATTR_SKIP_CPU_SYNC);
	if (err)
		goto err_table;

	mapping->layout = exporter_layout_get(buffer->layout);
	state->mapped++;
	buffer->mapped++;
	buffer->counters.maps++;
	if (buffer->revoke_after_maps && !--buffer->revoke_after_maps)
		exporter_queue_revoke(buffer);
	return &mapping->sgt;

err_table:
	sg_free_table(&mapping->sgt);
err_mapping:
	kfree(mapping);
	return ERR_PTR(err);
}

static void exporter_unmap(struct dma_buf_attachment *attachment,
			   struct sg_table *sgt,
			   enum dma_data_direction direction)
{
	struct exporter_mapping *mapping =
		container_of(sgt, struct exporter_mapping, sgt);
	struct exporter_buffer *buffer = attachment->dmabuf->priv;
	struct exporter_attachment *state = attachment->priv;

	dma_unmap_sgtable(attachment->dev, sgt, direction,
			  DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	exporter_layout_put(mapping->layout);
	kfree(mapping);

	state->mapped--;
	buffer->counters.unmaps++;
	WRITE_ONCE(buffer->mapped, buffer->mapped - 1);
	if (!buffer->mapped)
		wake_up_all(&buffer->unmapped);
}

static void exporter_dmabuf_release(struct dma_buf *dmabuf)
{
	struct exporter_buffer *buffer = dmabuf->priv;

	exporter_move_finish(buffer);
	kfree(buffer);
}

static int exporter_begin_cpu_access(struct dma_buf *dmabuf,
				     enum dma_data_direction direction)
{
	struct exporter_buffer *buffer = dmabuf->priv;
	int err = dma_resv_lock_interruptible(dmabuf->resv, NULL);

	if (err)
		return err;
	err = exporter_wait_contents(buffer);
	dma_resv_unlock(dmabuf->resv);
	return err;
}

#define FAULT_AROUND	512u	/* pages */

/* Not only the page that faulted: a buffer of 1 GiB has 2^18 of them. */
static vm_fault_t insert_around(struct vm_fault *vmf,
				const struct exporter_layout *layout)
{
	struct vm_area_struct *vma = vmf->vma;
	pgoff_t first = max(round_down(vmf->pgoff, FAULT_AROUND),
			    vma->vm_pgoff);
	pgoff_t end = min3(round_down(vmf->pgoff, FAULT_AROUND) + FAULT_AROUND,
			   vma->vm_pgoff + vma_pages(vma),
			   (pgoff_t)layout->pages);
	vm_fault_t ret;
	pgoff_t i;

	ret = vmf_insert_pfn(vma, vmf->address,
			     page_to_pfn(exporter_layout_page(layout,
							      vmf->pgoff)));
	if (ret != VM_FAULT_NOPAGE)
		return ret;
	for (i = first; i < end; i++) {
		unsigned long address = vma->vm_start +
					((i - vma->vm_pgoff) << PAGE_SHIFT);
		struct page *page = exporter_layout_page(layout, i);

		if (i != vmf->pgoff &&
		    vmf_insert_pfn(vma, address, page_to_pfn(page)) !=
		    VM_FAULT_NOPAGE)
			break;
	}
	return VM_FAULT_NOPAGE;
}

static vm_fault_t exporter_fault(struct vm_fault *vmf)
{
	struct exporter_buffer *buffer = vmf->vma->vm_private_data;
	struct dma_resv *resv = buffer->dmabuf->resv;
	vm_fault_t ret;

	if (dma_resv_lock_interruptible(resv, NULL))
		return VM_FAULT_NOPAGE;		/* the signal first, then again */
	if (!buffer->layout || vmf->pgoff >= buffer->pages)
		ret = VM_FAULT_SIGBUS;
	else if (exporter_wait_contents(buffer))
		ret = VM_FAULT_NOPAGE;
	else
		ret = insert_around(vmf, buffer->layout);
	dma_resv_unlock(resv);
	return ret;
}

static const struct vm_operations_struct exporter_vm_ops = {
	.fault = exporter_fault,
};

static int exporter_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	vm_flags_set(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = &exporter_vm_ops;
	vma->vm_private_data = dmabuf->priv;
	return 0;
}

const struct dma_buf_ops exporter_dmabuf_ops = {
	.attach = exporter_attach,
	.detach = exporter_detach,
	.pin = exporter_pin,
	.unpin = exporter_unpin,
	.map_dma_buf = exporter_map,
	.unmap_dma_buf = exporter_unmap,
	.release = exporter_dmabuf_release,
	.begin_cpu_access = exporter_begin_cpu_access,
	.mmap = exporter_mmap,
};
