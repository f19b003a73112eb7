// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: memory of queue rings.
 *
 * A user ring is pinned by the queue that it belongs to, not by a memory region
 * of its own. So the case cannot arise where someone deregisters the memory of a
 * live queue (other drivers register rings as regions and must answer -EBUSY).
 */
#include <linux/dma-mapping.h>
#include <linux/sizes.h>
#include <rdma/iter.h>

#include "qrdma.h"

/* PBLEs written in one go. */
#define QRDMA_RING_BATCH	64

static void qrdma_ring_describe(struct qrdma_ring *ring, u8 log_entries,
				u8 log_stride)
{
	*ring = (struct qrdma_ring) {
		.num_pages = cpu_to_le32(qrdma_ring_pages(log_entries,
							  log_stride)),
		.log_page_size = ilog2(QRDMA_RING_PAGE_SIZE),
		.log_entries = log_entries,
		.log_stride = log_stride,
	};
}

/* Level 1: a PBLE for each page. The card refuses level 2 for a ring. */
static int qrdma_ring_fill_pbles(struct qrdma_dev *dev,
				 struct qrdma_ring_memory *memory)
{
	u64 values[QRDMA_RING_BATCH];
	struct ib_block_iter iter;
	u32 first = 0, n = 0;
	int ret;

	ret = qrdma_pble_alloc(dev, le32_to_cpu(memory->ring.num_pages), true,
			       &memory->pbles);
	if (ret)
		return ret;

	rdma_umem_for_each_dma_block(memory->umem, &iter, QRDMA_RING_PAGE_SIZE) {
		values[n++] = rdma_block_iter_dma_address(&iter) |
			      QRDMA_PBLE_PRESENT;
		if (n == ARRAY_SIZE(values)) {
			qrdma_pble_write(dev, &memory->pbles, first, values, n);
			first += n;
			n = 0;
		}
	}
	if (n)
		qrdma_pble_write(dev, &memory->pbles, first, values, n);

	memory->ring.level = 1;
	memory->ring.pble_index = cpu_to_le32(memory->pbles.first);
	return 0;
}

int qrdma_ring_from_umem(struct qrdma_dev *dev, struct ib_umem *umem,
			 u8 log_entries, u8 log_stride,
			 struct qrdma_ring_memory *memory)
{
	size_t blocks = ib_umem_num_dma_blocks(umem, QRDMA_RING_PAGE_SIZE);
	int ret;

	*memory = (struct qrdma_ring_memory) {};
	qrdma_ring_describe(&memory->ring, log_entries, log_stride);
	/*
	 * What the queue's geometry needs and what the memory holds come from
	 * two places in the request. Both must say the same before a table is
	 * sized by one and filled from the other.
	 */
	if (!IS_ALIGNED(ib_umem_offset(umem), QRDMA_RING_PAGE_SIZE) ||
	    blocks != le32_to_cpu(memory->ring.num_pages)) {
		ibdev_dbg(&dev->ibdev,
			  "ring memory of %zu pages where %u are needed\n",
			  blocks, le32_to_cpu(memory->ring.num_pages));
		return -EINVAL;
	}

	memory->umem = umem;
	memory->size = blocks * QRDMA_RING_PAGE_SIZE;
	if (ib_umem_is_contiguous(umem)) {
		memory->dma = ib_umem_start_dma_addr(umem);
		memory->ring.base = cpu_to_le64(memory->dma);
		return 0;
	}
	ret = qrdma_ring_fill_pbles(dev, memory);
	if (ret)
		*memory = (struct qrdma_ring_memory) {};
	return ret;
}

int qrdma_ring_check_user(struct qrdma_dev *dev, u64 address, u64 length,
			  u32 log_entries, u8 log_stride)
{
	if (qrdma_ring_fits(address, length, log_entries, log_stride,
			    dev->limits.log_max_ring_entries))
		return 0;
	ibdev_dbg(&dev->ibdev,
		  "%llu bytes at 0x%llx are no ring of 2^%u entries of 2^%u bytes\n",
		  length, address, log_entries, log_stride);
	return -EINVAL;
}

int qrdma_ring_from_user(struct qrdma_dev *dev, u64 address, u64 length,
			 u8 log_entries, u8 log_stride,
			 struct qrdma_ring_memory *memory)
{
	struct ib_umem *umem;
	int ret;

	ret = qrdma_ring_check_user(dev, address, length, log_entries,
				    log_stride);
	if (ret)
		return ret;
	umem = ib_umem_get_va(&dev->ibdev, address, length,
			      IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem)) {
		ibdev_dbg(&dev->ibdev, "cannot pin ring at 0x%llx: %pe\n",
			  address, umem);
		return PTR_ERR(umem);
	}
	ret = qrdma_ring_from_umem(dev, umem, log_entries, log_stride, memory);
	if (ret)
		ib_umem_release(umem);
	return ret;
}

int qrdma_ring_alloc(struct qrdma_dev *dev, u8 log_entries, u8 log_stride,
		     struct qrdma_ring_memory *memory)
{
	*memory = (struct qrdma_ring_memory) {};
	qrdma_ring_describe(&memory->ring, log_entries, log_stride);
	memory->size = (size_t)qrdma_ring_pages(log_entries, log_stride) *
		       QRDMA_RING_PAGE_SIZE;
	memory->buffer = dma_alloc_coherent(&dev->pdev->dev, memory->size,
					    &memory->dma, GFP_KERNEL);
	if (!memory->buffer) {
		*memory = (struct qrdma_ring_memory) {};
		return -ENOMEM;
	}
	memory->ring.base = cpu_to_le64(memory->dma);
	return 0;
}

void qrdma_ring_free(struct qrdma_dev *dev, struct qrdma_ring_memory *memory)
{
	if (memory->pbles.count)
		qrdma_pble_free(dev, &memory->pbles);
	if (memory->umem)
		ib_umem_release(memory->umem);
	if (memory->buffer)
		dma_free_coherent(&dev->pdev->dev, memory->size,
				  memory->buffer, memory->dma);
	*memory = (struct qrdma_ring_memory) {};
}
