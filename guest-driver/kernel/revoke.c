// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: pinned dma-buf regions, which the exporter can revoke. The exporter
 * calls under the buffer's reservation lock, and when the callback returns no
 * access reaches the memory any more. The key stays taken until the region is
 * deregistered; accesses through it are refused and reported.
 *
 * ib_core calls back once at most, at the latest from ib_umem_release(); that is
 * also what serialises revocation with deregistration.
 */
#include <linux/dma-buf.h>
#include <linux/pci.h>
#include <rdma/uverbs_ioctl.h>

#include "region.h"
#include "trace.h"

/*
 * The weakest means first. A UMR takes the key and waits for accesses in flight;
 * so does the destruction of the mkey. A card that refuses both is reset, and
 * cut off the bus in case even that does not reach it.
 */
int qrdma_mr_disable(struct qrdma_mr *mr)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	struct qrdma_umr umr = {
		.key = mr->key,
		.mask = QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD,
		.context.flags = cpu_to_le32(QRDMA_MKEY_FREE),
		.context.pd = cpu_to_le32(QRDMA_DRIVER_PD),
	};
	u16 status;
	int ret;

	mr->disabled = true;
	ret = qrdma_umr_execute(dev, &umr);
	if (!ret)
		return 0;

	qrdma_command_status(dev, QRDMA_CMD_DESTROY_MKEY,
			     QRDMA_MKEY_INDEX(mr->key), NULL, 0, NULL, 0,
			     &status);
	if (status == QRDMA_STATUS_OK || status == QRDMA_STATUS_NO_OBJECT) {
		mr->live = false;
		return 0;
	}
	if (!qrdma_device_dead(dev))
		dev_err(&dev->pdev->dev, "key 0x%08x cannot be revoked: %d\n",
			mr->key, ret);
	qrdma_device_fail(dev, "revocation failed");
	pci_clear_master(dev->pdev);
	return ret;
}

static void qrdma_revoke(void *private)
{
	struct qrdma_mr *mr = private;
	int ret = 0;

	/* Not live: revoked before the card got the key, which it now never will. */
	if (mr->live)
		ret = qrdma_mr_disable(mr);
	trace_qrdma_revoke(mr_to_qdev(mr), mr->key, ret);
}

/*
 * Under the dma_resv, which was not held while the table was allocated: the
 * buffer may be gone.
 */
static int qrdma_pinned_create(struct qrdma_mr *mr)
{
	if (to_ib_umem_dmabuf(mr->umem)->revoked)
		return -ENODEV;
	qrdma_mr_fill_table(mr);
	return qrdma_mr_create(mr);
}

static int qrdma_pinned_register(struct qrdma_mr *mr, u64 offset, int fd)
{
	struct ib_device *ibdev = mr->ibmr.device;
	struct ib_umem_dmabuf *umem_dmabuf;
	int ret;

	umem_dmabuf = ib_umem_dmabuf_get_pinned_revocable_and_lock(ibdev, offset,
								   mr->ibmr.length,
								   fd, mr->access);
	if (IS_ERR(umem_dmabuf))
		return PTR_ERR(umem_dmabuf);
	mr->umem = &umem_dmabuf->umem;
	ib_umem_dmabuf_set_revoke_locked(umem_dmabuf, qrdma_revoke, mr);
	ret = qrdma_mr_set_page_shift(mr);
	ib_umem_dmabuf_revoke_unlock(umem_dmabuf);
	if (ret)
		return ret;

	/* May reclaim, so not under the lock. */
	ret = qrdma_mr_alloc_table(mr, qrdma_mr_blocks(mr, mr->page_shift));
	if (ret)
		return ret;

	ib_umem_dmabuf_revoke_lock(umem_dmabuf);
	ret = qrdma_pinned_create(mr);
	ib_umem_dmabuf_revoke_unlock(umem_dmabuf);
	return ret;
}

struct ib_mr *qrdma_reg_pinned(struct ib_pd *ibpd, u64 offset, u64 length,
			       u64 iova, int fd, int access)
{
	struct qrdma_mr *mr;
	int ret;

	mr = qrdma_mr_alloc(ibpd, QRDMA_MR_PINNED, iova, length, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = qrdma_pinned_register(mr, offset, fd);
	if (ret) {
		qrdma_mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

void qrdma_pinned_dereg(struct qrdma_mr *mr)
{
	/* Revokes first if nobody has; the key cannot be used from here on. */
	ib_umem_release(mr->umem);
	mr->umem = NULL;
	if (mr->live)
		qrdma_mkey_destroy(mr_to_qdev(mr), mr->key);
}
