/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * qrdma: what the kernel driver and the user-space provider say to each other
 * through uverbs. Layouts of rings, WQEs, CQEs and doorbells: qrdma_hw.h.
 */
#ifndef QRDMA_ABI_H
#define QRDMA_ABI_H

#include <linux/types.h>

#define QRDMA_UVERBS_ABI_VERSION	1

/*
 * alloc_ucontext. doorbell_offset is the mmap offset of the context's doorbell
 * page: one page, PROT_WRITE, MAP_SHARED; a second mmap gives the same page.
 */
struct qrdma_ucontext_response {
	__aligned_u64 doorbell_offset;
	__u32 max_sge;
	__u32 max_inline;
	__u32 max_ring_entries;
	__u32 reserved;
};

struct qrdma_pd_response {
	__u32 pdn;
	__u32 reserved;
};

/*
 * create_cq. The ring is user memory: page aligned, entries << 6 bytes rounded
 * up to whole pages, zeroed by the provider. entries is a power of two, at
 * least the number that the caller asked for; length is the rounded size and
 * must be exactly what entries need.
 */
struct qrdma_create_cq_request {
	__aligned_u64 ring_address;
	__aligned_u64 ring_length;
	__u32 log_entries;
	__u32 reserved;
};

struct qrdma_create_cq_response {
	__u32 cqn;
	__u32 reserved;
};

/*
 * create_qp. Rings as for a CQ, with entries << log_stride bytes each. A queue
 * pair that receives nothing of its own (SRQ, max_recv_wr 0) has zero in all
 * receive fields.
 */
struct qrdma_create_qp_request {
	__aligned_u64 send_address;
	__aligned_u64 send_length;
	__aligned_u64 receive_address;
	__aligned_u64 receive_length;
	__u8 send_log_entries;
	__u8 send_log_stride;
	__u8 receive_log_entries;
	__u8 receive_log_stride;
	__u32 reserved;
};

struct qrdma_create_qp_response {
	__u32 qpn;
	__u32 reserved;
};

/*
 * UVERBS_METHOD_REG_DMABUF_MR takes no IB_ACCESS_ON_DEMAND, so the kind of
 * region is asked for by an attribute of the driver's own (namespace
 * 1 << UVERBS_ID_NS_SHIFT). The provider sets it when ibv_reg_dmabuf_mr() is
 * called with IBV_ACCESS_ON_DEMAND, and takes that bit out of the access flags.
 * Without it the region is pinned and revocable.
 */
#define QRDMA_ATTR_REG_DMABUF_MR_FLAGS	(1u << 12)	/* u32 in, optional */

#define QRDMA_REG_DMABUF_MR_DYNAMIC	(1u << 0)	/* not pinned: follows the exporter's moves on demand */

#endif /* QRDMA_ABI_H */
