// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: memory regions. What all kinds share, and those that need no dma-buf.
 */
#include <linux/overflow.h>
#include <linux/slab.h>
#include <net/netlink.h>
#include <rdma/uverbs_ioctl.h>
#include <uapi/rdma/rdma_netlink.h>

#include "region.h"
#include "trace.h"

/* PBLEs that are put together on the stack before they go to the table. */
#define QRDMA_FILL_BATCH	32

#define QRDMA_ACCESS_SUPPORTED	(IB_ACCESS_LOCAL_WRITE | \
				 IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC)

/* The bits of a mkey that a re-registration may change. */
#define QRDMA_ACCESS_MASK	(QRDMA_UMR_MASK_LOCAL_WRITE | \
				 QRDMA_UMR_MASK_REMOTE_READ | \
				 QRDMA_UMR_MASK_REMOTE_WRITE | \
				 QRDMA_UMR_MASK_REMOTE_ATOMIC | \
				 QRDMA_UMR_MASK_RELAXED_ORDERING)

static int qrdma_check_access(struct qrdma_dev *dev, int access)
{
	/* What is optional may be ignored; nothing else may. */
	if (access & ~(QRDMA_ACCESS_SUPPORTED | IB_ACCESS_OPTIONAL))
		return -EOPNOTSUPP;
	if ((access & IB_ACCESS_REMOTE_ATOMIC) &&
	    !(dev->limits.capabilities & QRDMA_CAPABILITY_ATOMIC))
		return -EOPNOTSUPP;
	if ((access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

static u32 qrdma_access_flags(int access)
{
	u32 flags = 0;

	if (access & IB_ACCESS_LOCAL_WRITE)
		flags |= QRDMA_MKEY_LOCAL_WRITE;
	if (access & IB_ACCESS_REMOTE_READ)
		flags |= QRDMA_MKEY_REMOTE_READ;
	if (access & IB_ACCESS_REMOTE_WRITE)
		flags |= QRDMA_MKEY_REMOTE_WRITE;
	if (access & IB_ACCESS_REMOTE_ATOMIC)
		flags |= QRDMA_MKEY_REMOTE_ATOMIC;
	if (access & IB_ACCESS_RELAXED_ORDERING)
		flags |= QRDMA_MKEY_RELAXED_ORDERING;
	return flags;
}

static u32 qrdma_kind_flags(enum qrdma_mr_kind kind)
{
	switch (kind) {
	case QRDMA_MR_DMA:
		return QRDMA_MKEY_ALL_MEMORY;
	case QRDMA_MR_DYNAMIC:
		return QRDMA_MKEY_ON_DEMAND;
	default:
		return 0;
	}
}

/* ---------------------------------------------------- what all kinds share */

static int qrdma_check_range(struct qrdma_dev *dev, u64 iova, u64 length)
{
	u64 end;

	if (!length || length > dev->limits.max_mr_size ||
	    check_add_overflow(iova, length, &end))
		return -EINVAL;
	return 0;
}

struct qrdma_mr *qrdma_mr_alloc(struct ib_pd *ibpd, enum qrdma_mr_kind kind,
				u64 iova, u64 length, int access)
{
	struct qrdma_dev *dev = to_qdev(ibpd->device);
	struct qrdma_mr *mr;
	int ret;

	ret = qrdma_check_access(dev, access);
	if (!ret && kind != QRDMA_MR_DMA)
		ret = qrdma_check_range(dev, iova, length);
	if (ret)
		return ERR_PTR(ret);

	mr = kzalloc_obj(*mr);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	ret = qrdma_mkey_reserve(dev, &mr->key);
	if (ret) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	mr->kind = kind;
	mr->access = access;
	mr->flags = qrdma_access_flags(access) | qrdma_kind_flags(kind);
	mr->pdn = to_qpd(ibpd)->pdn;
	mr->page_shift = QRDMA_LOG_PAGE_SIZE_MIN;
	mr->ibmr.device = ibpd->device;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	mr->ibmr.iova = iova;
	mr->ibmr.length = length;
	return mr;
}

void qrdma_mr_free(struct qrdma_mr *mr)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);

	if (mr->umem)
		ib_umem_release(mr->umem);
	/* Last of what the card may have used, and only now. */
	qrdma_pble_free(dev, &mr->pbles);
	qrdma_mkey_release(dev, mr->key);
	kfree(mr);
}

int qrdma_mr_best_page_shift(struct qrdma_mr *mr)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	unsigned long page_size;

	page_size = ib_umem_find_best_pgsz(mr->umem,
					   dev->limits.page_size_bitmap,
					   mr->ibmr.iova);
	return page_size ? order_base_2(page_size) : -EINVAL;
}

int qrdma_mr_set_page_shift(struct qrdma_mr *mr)
{
	int page_shift = qrdma_mr_best_page_shift(mr);

	if (page_shift < 0)
		return page_shift;
	mr->page_shift = page_shift;
	return 0;
}

u64 qrdma_mr_blocks(const struct qrdma_mr *mr, unsigned int page_shift)
{
	return qrdma_table_blocks(mr->ibmr.iova, mr->ibmr.length, page_shift);
}

int qrdma_mr_alloc_table(struct qrdma_mr *mr, u64 capacity)
{
	if (capacity > U32_MAX)
		return -EINVAL;
	mr->level = qrdma_table_level(capacity);
	mr->capacity = capacity;
	if (!mr->level)
		return 0;
	return qrdma_pble_alloc(mr_to_qdev(mr), capacity, false, &mr->pbles);
}

u64 qrdma_mr_pble_rights(const struct qrdma_mr *mr)
{
	return QRDMA_PBLE_READ | (mr->umem->writable ? QRDMA_PBLE_WRITE : 0);
}

void qrdma_mr_fill_table(struct qrdma_mr *mr)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	u64 rights = qrdma_mr_pble_rights(mr);
	u64 batch[QRDMA_FILL_BATCH];
	struct ib_block_iter iter;
	u32 first = 0;
	u32 n = 0;

	rdma_umem_for_each_dma_block(mr->umem, &iter, 1ul << mr->page_shift) {
		batch[n++] = rdma_block_iter_dma_address(&iter) | rights;
		if (!mr->level) {
			mr->base = batch[0];
			return;
		}
		if (n == QRDMA_FILL_BATCH) {
			qrdma_pble_write(dev, &mr->pbles, first, batch, n);
			first += n;
			n = 0;
		}
	}
	qrdma_pble_write(dev, &mr->pbles, first, batch, n);
}

static void qrdma_mr_context(const struct qrdma_mr *mr, struct qrdma_mkc *mkc)
{
	memset(mkc, 0, sizeof(*mkc));
	mkc->flags = cpu_to_le32(mr->flags);
	mkc->variant = QRDMA_MKEY_VARIANT(mr->key);
	mkc->log_page_size = mr->page_shift;
	mkc->pd = cpu_to_le32(mr->pdn);
	mkc->qpn = cpu_to_le32(QRDMA_MKEY_ANY_QP);
	if (mr->kind == QRDMA_MR_DMA) {
		mkc->translation = QRDMA_TRANSLATION_PHYSICAL;
		return;
	}
	mkc->translation = QRDMA_TRANSLATION_BLOCK_TABLE;
	mkc->level = mr->level;
	mkc->start = cpu_to_le64(mr->ibmr.iova);
	mkc->length = cpu_to_le64(mr->ibmr.length);
	mkc->base = cpu_to_le64(mr->base);
	mkc->pble_index = cpu_to_le32(mr->pbles.first);
	mkc->capacity = cpu_to_le32(mr->capacity);
	mkc->first_byte_offset =
		cpu_to_le16(mr->ibmr.iova &
			    ((1u << QRDMA_LOG_PAGE_SIZE_MIN) - 1));
}

int qrdma_mr_create(struct qrdma_mr *mr)
{
	struct qrdma_dev *dev = mr_to_qdev(mr);
	struct qrdma_mkc mkc;
	int ret;

	qrdma_mr_context(mr, &mkc);
	ret = qrdma_mkey_create(dev, mr->key, &mkc);
	if (ret)
		return ret;
	mr->live = true;
	if (mr->kind != QRDMA_MR_DMA)
		trace_qrdma_mr_registered(dev, mr,
					  qrdma_mr_blocks(mr, mr->page_shift));
	return 0;
}

/* ------------------------------------------------------ DMA, user memory */

struct ib_mr *qrdma_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct qrdma_mr *mr;
	int ret;

	mr = qrdma_mr_alloc(ibpd, QRDMA_MR_DMA, 0, 0, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = qrdma_mr_create(mr);
	if (ret) {
		qrdma_mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

static int qrdma_mr_register_user(struct qrdma_mr *mr, u64 start, u64 length,
				  int access)
{
	int ret;

	mr->umem = ib_umem_get_va(mr->ibmr.device, start, length, access);
	if (IS_ERR(mr->umem)) {
		ret = PTR_ERR(mr->umem);
		mr->umem = NULL;
		return ret;
	}
	ret = qrdma_mr_set_page_shift(mr);
	if (!ret)
		ret = qrdma_mr_alloc_table(mr, qrdma_mr_blocks(mr,
							       mr->page_shift));
	if (ret)
		return ret;
	qrdma_mr_fill_table(mr);
	return qrdma_mr_create(mr);
}

struct ib_mr *qrdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_dmah *dmah,
				struct ib_udata *udata)
{
	struct qrdma_mr *mr;
	int ret;

	/* No steering tags, and no private data either way. */
	if (dmah)
		return ERR_PTR(-EOPNOTSUPP);
	ret = udata ? ib_no_udata_io(udata) : 0;
	if (ret)
		return ERR_PTR(ret);

	mr = qrdma_mr_alloc(ibpd, QRDMA_MR_USER, virt_addr, length, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	ret = qrdma_mr_register_user(mr, start, length, access);
	if (ret) {
		qrdma_mr_free(mr);
		return ERR_PTR(ret);
	}
	return &mr->ibmr;
}

/* --------------------------------------------------------- re-registration */

static int qrdma_mr_change_rights(struct qrdma_mr *mr, u32 pdn, int access)
{
	u32 flags = qrdma_access_flags(access);
	struct qrdma_umr umr = {
		.key = mr->key,
		.flags = QRDMA_UMR_CHECK_NOT_FREE,
		.mask = QRDMA_ACCESS_MASK | QRDMA_UMR_MASK_PD,
		.context.flags = cpu_to_le32(flags),
		.context.pd = cpu_to_le32(pdn),
	};
	int ret;

	ret = qrdma_umr_execute(mr_to_qdev(mr), &umr);
	if (ret)
		return ret;
	mr->flags = flags | qrdma_kind_flags(mr->kind);
	mr->access = access;
	mr->pdn = pdn;
	return 0;
}

/*
 * Rights and PD change in place. A new translation makes a new region, whose
 * keys the caller gets; ib_core deregisters the old one once the new one stands,
 * so on failure the old one is as it was. Regions of a dma-buf cannot be
 * re-registered at all: ib_umem_check_rereg() says so.
 */
struct ib_mr *qrdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 virt_addr, int access,
				  struct ib_pd *pd, struct ib_udata *udata)
{
	struct qrdma_mr *mr = to_qmr(ibmr);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ERR_PTR(ret);
	if (mr->kind != QRDMA_MR_USER ||
	    flags & ~(IB_MR_REREG_TRANS | IB_MR_REREG_PD | IB_MR_REREG_ACCESS))
		return ERR_PTR(-EOPNOTSUPP);
	if (!(flags & IB_MR_REREG_ACCESS))
		access = mr->access;
	if (!(flags & IB_MR_REREG_PD))
		pd = ibmr->pd;
	ret = qrdma_check_access(mr_to_qdev(mr), access);
	if (!ret)
		ret = ib_umem_check_rereg(mr->umem, flags, access);
	if (ret)
		return ERR_PTR(ret);

	if (flags & IB_MR_REREG_TRANS)
		return qrdma_reg_user_mr(pd, start, length, virt_addr, access,
					 NULL, NULL);
	return ERR_PTR(qrdma_mr_change_rights(mr, to_qpd(pd)->pdn, access));
}

/* ---------------------------------------------------------- deregistration */

int qrdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct qrdma_mr *mr = to_qmr(ibmr);
	int ret;

	ret = udata ? ib_no_udata_io(udata) : 0;
	if (ret)
		return ret;
	switch (mr->kind) {
	case QRDMA_MR_PINNED:
		qrdma_pinned_dereg(mr);
		break;
	case QRDMA_MR_DYNAMIC:
		qrdma_dynamic_dereg(mr);
		break;
	default:
		qrdma_mkey_destroy(mr_to_qdev(mr), mr->key);
		break;
	}
	qrdma_mr_free(mr);
	return 0;
}

/* ------------------------------------------------------------ introspection */

/* `rdma resource show mr -r`: the context as the card has it. */
int qrdma_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qrdma_mr *mr = to_qmr(ibmr);
	struct qrdma_mkc mkc;
	int ret;

	ret = qrdma_mkey_query(mr_to_qdev(mr), mr->key, &mkc);
	if (ret)
		return ret;
	return nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, sizeof(mkc), &mkc);
}
