/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: what the files of the memory-region half share. mr.h is what the rest
 * of the driver sees.
 *
 * Locks, outermost first:
 *
 *   dma_resv of a dma-buf	the translation of its regions: page_shift, loaded,
 *				live, disabled of struct qrdma_mr
 *   umr staging, umr slots	semaphores; who holds them waits for nothing but
 *				UMRs
 *   pool->grow			mutex: SDs come and go; allocates
 *   pool->lock			mutex: bitmaps only, so freeing waits for nobody
 *				who allocates
 *   umr->lock			spinlock, interrupts off
 *
 * pool->grow is never taken under a dma_resv: tables are allocated before it, or
 * outside of it.
 */
#ifndef QRDMA_REGION_H
#define QRDMA_REGION_H

#include <linux/completion.h>
#include <linux/refcount.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>

#include "qrdma.h"
#include "table.h"

enum qrdma_mr_kind {
	QRDMA_MR_DMA,			/* all memory */
	QRDMA_MR_USER,			/* pinned user memory */
	QRDMA_MR_PINNED,		/* dma-buf, pinned, revocable */
	QRDMA_MR_DYNAMIC,		/* dma-buf, on demand */
};

struct qrdma_mr {
	struct ib_mr ibmr;		/* lkey = rkey = key; iova, length */
	enum qrdma_mr_kind kind;
	struct ib_umem *umem;
	u32 key;
	u32 flags;			/* QRDMA_MKEY_* */
	int access;			/* IB_ACCESS_* */
	u32 pdn;

	/* Table. What the card has been told and never changes. */
	u32 level;
	u32 capacity;			/* entries */
	u64 base;			/* level 0: the block, when the key was made */
	struct qrdma_pble_alloc pbles;	/* level 1, 2 */

	/*
	 * log2 of the page size that the card has. Follows each UMR that changes
	 * it, so it is the card's even after a change that stopped half-way.
	 */
	unsigned int page_shift;
	bool live;			/* the card has the mkey */
	bool disabled;			/* the key was taken from its owner */
	bool loaded;			/* dynamic: the table maps the buffer */
	u32 loads;			/* dynamic: times that it was loaded; read without lock */
	u32 vain_loads;			/* of these, since the last invalidation, a loaded one */

	/* Dynamic: page faults that are at work on the region. */
	refcount_t users;
	struct completion unused;
};

static inline struct qrdma_mr *to_qmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct qrdma_mr, ibmr);
}

static inline struct qrdma_dev *mr_to_qdev(const struct qrdma_mr *mr)
{
	return to_qdev(mr->ibmr.device);
}

/* ---------------------------------------------------------------- mkey.c */

/*
 * Give out a key whose index no other region has, and whose variant is another
 * than that of the index's last owner. -ENOSPC or -ENOMEM.
 */
int qrdma_mkey_reserve(struct qrdma_dev *dev, u32 *key);
/* Only once the card has no mkey of that index. */
void qrdma_mkey_release(struct qrdma_dev *dev, u32 key);

/* Errors as qrdma_command(). */
int qrdma_mkey_create(struct qrdma_dev *dev, u32 key,
		      const struct qrdma_mkc *mkc);
int qrdma_mkey_query(struct qrdma_dev *dev, u32 key, struct qrdma_mkc *mkc);
/*
 * No access through the key is in flight or possible when this returns: the
 * card has destroyed the mkey, or it was reset.
 */
void qrdma_mkey_destroy(struct qrdma_dev *dev, u32 key);

/*
 * Let page faults find a dynamic region, and stop them: when withdraw returns,
 * no fault is at work on it. Get takes a reference that put gives back.
 */
void qrdma_mkey_publish(struct qrdma_mr *mr);
void qrdma_mkey_withdraw(struct qrdma_mr *mr);
struct qrdma_mr *qrdma_mkey_get(struct qrdma_dev *dev, u32 key);
void qrdma_mkey_put(struct qrdma_mr *mr);

/* ----------------------------------------------------------------- umr.c */

/* What one UMR does. Table data: by reference, or inline, or none. */
struct qrdma_umr {
	u32 key;
	u16 flags;			/* QRDMA_UMR_CHECK_* */
	u64 mask;			/* QRDMA_UMR_MASK_*: what counts in context */
	struct qrdma_mkc context;
	u64 first;			/* table entry, first of a unit */
	u32 table_length;		/* bytes, whole units; 0: no table write */
	dma_addr_t table_dma;		/* by reference, unless... */
	const void *table;		/* ...inline, up to QRDMA_UMR_MAX_INLINE bytes */
};

/*
 * Do it and wait until it is done: accesses that began before it have ended.
 * 0; -EIO when the device is dead; otherwise what qrdma_status_to_errno() makes
 * of the card's refusal, which changed nothing. Allocates nothing. May sleep.
 */
int qrdma_umr_execute(struct qrdma_dev *dev, const struct qrdma_umr *umr);

/* Room for table data that the card can read; DMA memory that is always there. */
struct qrdma_umr_staging {
	struct list_head entry;
	__le64 *table;
	dma_addr_t dma;
};

/* Waits until one is free, which takes only UMRs of others. */
struct qrdma_umr_staging *qrdma_umr_staging_get(struct qrdma_dev *dev);
void qrdma_umr_staging_put(struct qrdma_dev *dev,
			   struct qrdma_umr_staging *staging);
/* Bytes of a staging buffer, and of what one UMR may write. */
u32 qrdma_umr_staging_size(struct qrdma_dev *dev);

/*
 * Make entries [@first, @first + @count) absent; whole units, so @count is
 * rounded up. Allocates nothing and waits for no staging buffer.
 */
int qrdma_umr_zap(struct qrdma_dev *dev, u32 key, u64 first, u64 count);

/* ------------------------------------------------------------------ mr.c */

/*
 * A region with a key and nothing behind it. Checks @iova, @length and @access
 * (-EINVAL, -EOPNOTSUPP).
 */
struct qrdma_mr *qrdma_mr_alloc(struct ib_pd *ibpd, enum qrdma_mr_kind kind,
				u64 iova, u64 length, int access);
/* Give back key, table and memory of a region that the card does not know. */
void qrdma_mr_free(struct qrdma_mr *mr);

/* log2 of the best page size of mr->umem, which is mapped; -EINVAL: none. */
int qrdma_mr_best_page_shift(struct qrdma_mr *mr);
/* Take it, for a key that the card does not know yet. */
int qrdma_mr_set_page_shift(struct qrdma_mr *mr);
/* Blocks of the region at a page size. */
u64 qrdma_mr_blocks(const struct qrdma_mr *mr, unsigned int page_shift);
/* Get a table with room for @capacity entries, all absent. May reclaim. */
int qrdma_mr_alloc_table(struct qrdma_mr *mr, u64 capacity);
/* Before the card knows the key: describe mr->umem in the table, by CPU. */
void qrdma_mr_fill_table(struct qrdma_mr *mr);
/* Tell the card of the key. */
int qrdma_mr_create(struct qrdma_mr *mr);

/* Rights in the PBLEs of the region's memory. */
u64 qrdma_mr_pble_rights(const struct qrdma_mr *mr);

/* ------------------------------------------------------------ page_size.c */

/*
 * Both under the dma_resv of a dynamic region whose buffer is mapped, with what
 * the card can reach at present either absent or right.
 *
 * Load entries [@first, @first + @count) of the table for pages of 2^@page_shift
 * bytes, which need not be the page size that the card has.
 */
int qrdma_region_load(struct qrdma_mr *mr, unsigned int page_shift, u64 first,
		      u64 count);
/*
 * Change the page size and load the table. On failure the region is absent or
 * right, byte by byte, and mr->page_shift is what the card has.
 */
int qrdma_region_change_page_size(struct qrdma_mr *mr,
				  unsigned int page_shift);

/* --------------------------------------------------------------- dmabuf.c */

/*
 * A page fault: map the buffer and load the table. @loads is mr->loads of when
 * the fault was taken in. A fault of after the last load says that the card has
 * not got what was loaded: it is loaded again, QRDMA_MAX_VAIN_LOADS times.
 */
#define QRDMA_MAX_VAIN_LOADS	16
int qrdma_dynamic_fault(struct qrdma_mr *mr, u32 loads);
void qrdma_dynamic_dereg(struct qrdma_mr *mr);

/* --------------------------------------------------------------- revoke.c */

struct ib_mr *qrdma_reg_pinned(struct ib_pd *ibpd, u64 offset, u64 length,
			       u64 iova, int fd, int access);
void qrdma_pinned_dereg(struct qrdma_mr *mr);

/*
 * Take the key from its owner: when this returns, no access through it is in
 * flight or possible. Under the dma_resv. 0, or why it took stronger means than
 * a UMR or a command: then the device is dead.
 */
int qrdma_mr_disable(struct qrdma_mr *mr);

#endif /* QRDMA_REGION_H */
