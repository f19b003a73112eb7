/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: memory regions. PBLE pool, mkeys, UMR queue, user memory and dma-buf
 * regions, page faults. Included by qrdma.h.
 */
#ifndef QRDMA_MR_H
#define QRDMA_MR_H

#include <linux/types.h>

struct ib_dmah;
struct ib_mr;
struct ib_pd;
struct ib_udata;
struct qrdma_dev;
struct qrdma_eqe;
struct sk_buff;
struct uverbs_attr_bundle;

/* -------------------------------------------------------------- pble.c */

/* Part of PBLE space; zero is "nothing", and may be freed. */
struct qrdma_pble_alloc {
	u32 first;			/* PBLE index, multiple of QRDMA_PBLES_PER_UNIT */
	u32 count;			/* PBLEs asked for; 0: nothing */
	u32 level;			/* 1 or 2 */
	void *private;
};

/* The command queue works when init is called; nothing is left when destroy is. */
int qrdma_pble_pool_init(struct qrdma_dev *dev);
void qrdma_pble_pool_destroy(struct qrdma_dev *dev);
/* @level1_only: consecutive PBLEs or -ENOMEM, as queue rings need. May sleep. */
int qrdma_pble_alloc(struct qrdma_dev *dev, u32 count, bool level1_only,
		     struct qrdma_pble_alloc *alloc);
/* Write @n PBLEs (CPU byte order) at entry @first of the table, by CPU. */
void qrdma_pble_write(struct qrdma_dev *dev, struct qrdma_pble_alloc *alloc,
		      u32 first, const u64 *values, u32 n);
void qrdma_pble_free(struct qrdma_dev *dev, struct qrdma_pble_alloc *alloc);

/* -------------------------------------------------------------- mkey.c */

int qrdma_mkeys_init(struct qrdma_dev *dev);
void qrdma_mkeys_destroy(struct qrdma_dev *dev);

/* --------------------------------------------------------------- umr.c */

/* Uses qrdma_kernel_qp; called once event queues work. */
int qrdma_umr_init(struct qrdma_dev *dev);
void qrdma_umr_destroy(struct qrdma_dev *dev);
/* The device is dead, the card is reset: wake all waiters. Any context. */
void qrdma_umr_device_dead(struct qrdma_dev *dev);

/* --------------------------------------------------------------- odp.c */

int qrdma_odp_init(struct qrdma_dev *dev);
/* No page fault comes in any more: finish or drop what is queued. */
void qrdma_odp_destroy(struct qrdma_dev *dev);
/*
 * QRDMA_EVENT_PAGE_FAULT. Thread of the asynchronous event queue, under
 * async_eq.drain: may allocate, must not wait for UMRs, fences or locks of
 * memory regions; queues work.
 */
void qrdma_page_fault(struct qrdma_dev *dev, const struct qrdma_eqe *eqe);

/* -------------------------------------------------- mr.c and dmabuf.c */

struct ib_mr *qrdma_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *qrdma_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				u64 virt_addr, int access, struct ib_dmah *dmah,
				struct ib_udata *udata);
struct ib_mr *qrdma_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				       u64 length, u64 virt_addr, int fd,
				       int access, struct ib_dmah *dmah,
				       struct uverbs_attr_bundle *attrs);
struct ib_mr *qrdma_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				  u64 length, u64 virt_addr, int access,
				  struct ib_pd *pd, struct ib_udata *udata);
int qrdma_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int qrdma_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr);

struct uapi_definition;
/* For ib_device.driver_def: how user space asks for a dynamic dma-buf region. */
extern const struct uapi_definition qrdma_mr_uapi_definitions[];

#endif /* QRDMA_MR_H */
