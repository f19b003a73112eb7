// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: dynamic dma-buf regions. They are not pinned: when the exporter moves
 * the buffer, the region becomes absent, and the next access faults and has it
 * loaded from where the buffer is then.
 *
 * Which kind of dma-buf region a user gets: UVERBS_METHOD_REG_DMABUF_MR has no
 * place for IB_ACCESS_ON_DEMAND, so an attribute of the driver's own asks for a
 * dynamic region. The provider sets it for ibv_reg_dmabuf_mr() with
 * IBV_ACCESS_ON_DEMAND. Without it the region is pinned and revocable, which any
 * exporter that can revoke will accept.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <rdma/uverbs_ioctl.h>
#define UVERBS_MODULE_NAME qrdma
#include <rdma/uverbs_named_ioctl.h>

#include "region.h"
#include "trace.h"

static struct ib_umem_dmabuf *qrdma_mr_dmabuf(const struct qrdma_mr *mr)
{
	return to_ib_umem_dmabuf(mr->umem);
}

/*
 * The buffer is about to move. Everything that can be reached is made absent,
 * and accesses that had begun are over, before its pages are given up. If the
 * card does not do that, the key goes instead: absent for good.
 */
static void qrdma_dynamic_invalidate(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem_dmabuf = attach->importer_priv;
	struct qrdma_mr *mr = umem_dmabuf->private;
	u64 entries;
	int ret = 0;

	dma_resv_assert_held(attach->dmabuf->resv);
	if (!mr || !umem_dmabuf->sgt)
		return;

	entries = qrdma_mr_blocks(mr, mr->page_shift);
	if (!mr->disabled)
		ret = qrdma_umr_zap(mr_to_qdev(mr), mr->key, 0, entries);
	if (ret)
		qrdma_mr_disable(mr);
	mr->loaded = false;
	mr->vain_loads = 0;
	ib_umem_dmabuf_unmap_pages(umem_dmabuf);
	trace_qrdma_invalidate(mr_to_qdev(mr), mr->key, entries,
			       mr->page_shift, ret);
}

static const struct dma_buf_attach_ops qrdma_dynamic_ops = {
	.allow_peer2peer = true,
	.invalidate_mappings = qrdma_dynamic_invalidate,
};

/* Under the dma_resv. */
static int qrdma_dynamic_load(struct qrdma_mr *mr)
{
	int page_shift;
	u64 blocks;
	int ret;

	ret = ib_umem_dmabuf_map_pages(qrdma_mr_dmabuf(mr));
	if (ret)
		return ret;
	/*
	 * From here on the buffer stays mapped, whatever fails: entries may have
	 * been loaded, and it takes an invalidation to get rid of them.
	 */
	page_shift = qrdma_mr_best_page_shift(mr);
	if (page_shift < 0)
		return page_shift;

	blocks = qrdma_mr_blocks(mr, page_shift);
	if (page_shift != mr->page_shift)
		ret = qrdma_region_change_page_size(mr, page_shift);
	else
		ret = qrdma_region_load(mr, page_shift, 0, blocks);
	mr->loaded = !ret;
	WRITE_ONCE(mr->loads, mr->loads + 1);
	trace_qrdma_load(mr_to_qdev(mr), mr->key, blocks, mr->page_shift, ret);
	return ret;
}

/*
 * Under the dma_resv. A fault can be older than it looks, because events take a
 * moment: then this is done for nothing. One that keeps coming would have its
 * queue pair go round for ever.
 */
static int qrdma_dynamic_load_again(struct qrdma_mr *mr)
{
	if (mr->vain_loads == QRDMA_MAX_VAIN_LOADS)
		return -EIO;
	mr->vain_loads++;
	return qrdma_dynamic_load(mr);
}

int qrdma_dynamic_fault(struct qrdma_mr *mr, u32 loads)
{
	struct ib_umem_dmabuf *umem_dmabuf = qrdma_mr_dmabuf(mr);
	int ret = 0;

	dma_resv_lock(umem_dmabuf->attach->dmabuf->resv, NULL);
	if (mr->disabled)
		ret = -EIO;
	else if (!mr->loaded)
		ret = qrdma_dynamic_load(mr);
	else if (mr->loads == loads)
		ret = qrdma_dynamic_load_again(mr);
	/* Else another fault got here first. */
	dma_resv_unlock(umem_dmabuf->attach->dmabuf->resv);
	return ret;
}

/* Under the dma_resv. The card gets the key with its table loaded. */
static int qrdma_dynamic_create(struct qrdma_mr *mr)
{
	struct ib_umem_dmabuf *umem_dmabuf = qrdma_mr_dmabuf(mr);
	int ret;

	ret = ib_umem_dmabuf_map_pages(umem_dmabuf);
	if (ret)
		return ret;
	ret = qrdma_mr_set_page_shift(mr);
	if (ret)
		return ret;
	qrdma_mr_fill_table(mr);
	ret = qrdma_mr_create(mr);
	if (ret)
		return ret;
	mr->loaded = true;
	/* Invalidation does nothing before it finds the region here. */
	umem_dmabuf->private = mr;
	return 0;
}

static int qrdma_dynamic_register(struct qrdma_mr *mr, u64 offset, int fd)
{
	u64 capacity = qrdma_mr_blocks(mr, QRDMA_LOG_PAGE_SIZE_MIN);
	struct ib_umem_dmabuf *umem_dmabuf;
	int ret;

	umem_dmabuf = ib_umem_dmabuf_get(mr->ibmr.device, offset,
					 mr->ibmr.length, fd, mr->access,
					 &qrdma_dynamic_ops);
	if (IS_ERR(umem_dmabuf))
		return PTR_ERR(umem_dmabuf);
	mr->umem = &umem_dmabuf->umem;

	/* The table has room for the worst that a move can bring. */
	ret = qrdma_mr_alloc_table(mr, capacity);
	if (ret)
		return ret;

	qrdma_mkey_publish(mr);
	dma_resv_lock(umem_dmabuf->attach->dmabuf->resv, NULL);
	ret = qrdma_dynamic_create(mr);
	dma_resv_unlock(umem_dmabuf->attach->dmabuf->resv);
	if (ret)
		qrdma_mkey_withdraw(mr);
	return ret;
}

static struct ib_mr *qrdma_reg_dynamic(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 iova, int fd, int access)
{
	struct qrdma_dev *dev = to_qdev(ibpd->device);
	struct qrdma_mr *mr;
	int ret;

	if (!(dev->limits.capabilities & QRDMA_CAPABILITY_ON_DEMAND))
		return ERR_PTR(-EOPNOTSUPP);
	mr = qrdma_mr_alloc(ibpd, QRDMA_MR_DYNAMIC, iova, length, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = qrdma_dynamic_register(mr, offset, fd);
	if (ret) {
		qrdma_mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

void qrdma_dynamic_dereg(struct qrdma_mr *mr)
{
	struct ib_umem_dmabuf *umem_dmabuf = qrdma_mr_dmabuf(mr);

	qrdma_mkey_withdraw(mr);
	dma_resv_lock(umem_dmabuf->attach->dmabuf->resv, NULL);
	if (mr->live)
		qrdma_mkey_destroy(mr_to_qdev(mr), mr->key);
	mr->live = false;
	umem_dmabuf->private = NULL;
	dma_resv_unlock(umem_dmabuf->attach->dmabuf->resv);
}

struct ib_mr *qrdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 virt_addr, int fd,
				       int access, struct ib_dmah *dmah,
				       struct uverbs_attr_bundle *attrs)
{
	u32 flags = 0;
	int ret;

	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	if (uverbs_attr_is_valid(attrs, QRDMA_ATTR_REG_DMABUF_MR_FLAGS)) {
		ret = uverbs_get_flags32(&flags, attrs,
					 QRDMA_ATTR_REG_DMABUF_MR_FLAGS,
					 QRDMA_REG_DMABUF_MR_DYNAMIC);
		if (ret)
			return ERR_PTR(ret);
	}
	if (flags & QRDMA_REG_DMABUF_MR_DYNAMIC)
		return qrdma_reg_dynamic(ibpd, offset, length, virt_addr, fd,
					 access);
	return qrdma_reg_pinned(ibpd, offset, length, virt_addr, fd, access);
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qrdma_reg_dmabuf_mr, UVERBS_OBJECT_MR,
			     UVERBS_METHOD_REG_DMABUF_MR,
			     UVERBS_ATTR_PTR_IN(QRDMA_ATTR_REG_DMABUF_MR_FLAGS,
						UVERBS_ATTR_TYPE(u32),
						UA_OPTIONAL));

const struct uapi_definition qrdma_mr_uapi_definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_MR, &qrdma_reg_dmabuf_mr),
	{},
};
