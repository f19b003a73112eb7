// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: user contexts. A context is a doorbell page: it rings the queues that
 * were created with its number, and no others.
 */
#include <linux/slab.h>

#include "qrdma.h"

static int qrdma_doorbell_entry_insert(struct qrdma_ucontext *context,
				       u64 *offset)
{
	struct rdma_user_mmap_entry *entry;
	int ret;

	entry = kzalloc_obj(*entry);
	if (!entry)
		return -ENOMEM;
	ret = rdma_user_mmap_entry_insert(&context->ibucontext, entry,
					  PAGE_SIZE);
	if (ret) {
		kfree(entry);
		return ret;
	}
	context->doorbell_entry = entry;
	*offset = rdma_user_mmap_get_offset(entry);
	return 0;
}

int qrdma_alloc_ucontext(struct ib_ucontext *ibcontext, struct ib_udata *udata)
{
	struct qrdma_ucontext *context = to_qucontext(ibcontext);
	struct qrdma_dev *dev = to_qdev(ibcontext->device);
	struct qrdma_ucontext_response response = {
		.max_sge = dev->limits.max_sge,
		.max_inline = dev->limits.max_inline,
		.max_ring_entries = dev->max_ring_entries,
	};
	int ret;

	/* One page of the card must be one page of the host. */
	BUILD_BUG_ON(PAGE_SIZE != QRDMA_DOORBELL_PAGE_SIZE);

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	ret = ida_alloc_range(&dev->doorbell_pages,
			      QRDMA_DRIVER_DOORBELL_PAGE + 1,
			      dev->limits.doorbell_pages - 1, GFP_KERNEL);
	if (ret < 0) {
		ibdev_dbg(&dev->ibdev, "no doorbell page left: %d\n", ret);
		return ret;
	}
	context->doorbell_page = ret;

	ret = qrdma_doorbell_entry_insert(context, &response.doorbell_offset);
	if (ret)
		goto err_page;
	ret = ib_respond_udata(udata, response);
	if (ret)
		goto err_entry;
	return 0;

err_entry:
	rdma_user_mmap_entry_remove(context->doorbell_entry);
err_page:
	ida_free(&dev->doorbell_pages, context->doorbell_page);
	return ret;
}

/* The context's queues and mappings are gone: nobody rings this page. */
void qrdma_dealloc_ucontext(struct ib_ucontext *ibcontext)
{
	struct qrdma_ucontext *context = to_qucontext(ibcontext);
	struct qrdma_dev *dev = to_qdev(ibcontext->device);

	rdma_user_mmap_entry_remove(context->doorbell_entry);
	ida_free(&dev->doorbell_pages, context->doorbell_page);
}

int qrdma_mmap(struct ib_ucontext *ibcontext, struct vm_area_struct *vma)
{
	struct qrdma_ucontext *context = to_qucontext(ibcontext);
	struct qrdma_dev *dev = to_qdev(ibcontext->device);
	struct rdma_user_mmap_entry *entry;
	phys_addr_t page;
	int ret;

	entry = rdma_user_mmap_entry_get(ibcontext, vma);
	if (!entry) {
		ibdev_dbg(&dev->ibdev, "mmap: nothing at page offset 0x%lx\n",
			  vma->vm_pgoff);
		return -EINVAL;
	}
	page = dev->doorbells_base +
	       (phys_addr_t)context->doorbell_page * QRDMA_DOORBELL_PAGE_SIZE;
	ret = rdma_user_mmap_io(ibcontext, vma, PHYS_PFN(page), PAGE_SIZE,
				pgprot_noncached(vma->vm_page_prot), entry);
	rdma_user_mmap_entry_put(entry);
	return ret;
}

void qrdma_mmap_free(struct rdma_user_mmap_entry *entry)
{
	kfree(entry);
}

/*
 * ib_core takes mappings and objects away by itself. That this function exists
 * tells it that the driver can stand it, and that an unplug need not wait for
 * open files.
 */
void qrdma_disassociate_ucontext(struct ib_ucontext *ibcontext)
{
}
