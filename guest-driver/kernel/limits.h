/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: what the driver takes from a card's limits and from the geometry of a
 * ring. Pure functions, so that they are tested natively (tests/test-limits.c)
 * as well as used in the driver.
 */
#ifndef QRDMA_LIMITS_H
#define QRDMA_LIMITS_H

#include <linux/types.h>

#include "qrdma_hw.h"

#define QRDMA_RING_PAGE_SIZE	4096u

/* What QUERY_DEVICE said, in CPU byte order. */
struct qrdma_limits {
	__u64 capabilities;		/* QRDMA_CAPABILITY_* */
	__u64 page_size_bitmap;		/* bit n: 2^n bytes; has bit 12 */
	__u64 max_mr_size;		/* bytes */
	__u64 max_message_size;		/* bytes */
	__u32 max_mkeys;
	__u32 max_qps;
	__u32 max_cqs;
	__u32 max_eqs;
	__u32 max_sds;
	__u32 max_pds;
	__u32 max_gids;
	__u32 max_vectors;
	__u32 doorbell_pages;
	__u32 max_sge;
	__u32 max_inline;		/* bytes */
	__u32 max_umr_table_write;	/* bytes */
	__u8 log_max_ring_entries;
	__u8 log_max_send_stride;
	__u8 log_max_receive_stride;
	__u8 max_rd_atomic;
	__u8 path_mtu;			/* enum ib_mtu */
};

/* A limit, and the range that the driver can work with. */
struct qrdma_limit_check {
	const char *name;
	__u64 value;
	__u64 min;
	__u64 max;
};

/*
 * True if the driver can work with these limits: what it needs is there, and
 * nothing is beyond what the interface can express, so that no shift and no
 * allocation later on has to ask again. False: *bad says which is wrong.
 */
static inline _Bool qrdma_limits_check(const struct qrdma_limits *limits,
				       struct qrdma_limit_check *bad)
{
	const struct qrdma_limit_check checks[] = {
		/* The asynchronous one and one for completions. */
		{ "max_eqs", limits->max_eqs, 2, QRDMA_MAX_EQS },
		{ "max_cqs", limits->max_cqs, 2, 1u << QRDMA_LOG_MAX_CQS },
		/* Management, the driver's own, and one for a user. */
		{ "max_qps", limits->max_qps, QRDMA_FIRST_QPN + 2,
		  1u << QRDMA_LOG_MAX_QPS },
		{ "max_mkeys", limits->max_mkeys, 2,
		  1u << QRDMA_LOG_MAX_MKEYS },
		{ "max_sds", limits->max_sds, 1, QRDMA_MAX_SD },
		{ "max_pds", limits->max_pds, 2, QRDMA_MAX_PD + 1 },
		{ "max_gids", limits->max_gids, 1, QRDMA_MAX_GIDS },
		{ "max_vectors", limits->max_vectors, 2, QRDMA_MSIX_VECTORS },
		{ "doorbell_pages", limits->doorbell_pages, 2,
		  QRDMA_DOORBELL_PAGES },
		{ "max_sge", limits->max_sge, 1, QRDMA_MAX_SGE },
		{ "max_inline", limits->max_inline, 0, QRDMA_MAX_INLINE },
		{ "max_umr_table_write", limits->max_umr_table_write,
		  QRDMA_TABLE_UNIT, QRDMA_UMR_MAX_TABLE_WRITE },
		{ "log_max_ring_entries", limits->log_max_ring_entries, 6,
		  QRDMA_LOG_MAX_RING_ENTRIES },
		{ "log_max_send_stride", limits->log_max_send_stride,
		  QRDMA_UMR_WQE_LOG_SIZE, QRDMA_SEND_WQE_LOG_MAX },
		{ "log_max_receive_stride", limits->log_max_receive_stride,
		  QRDMA_RECEIVE_WQE_LOG_MIN, QRDMA_RECEIVE_WQE_LOG_MAX },
		{ "max_rd_atomic", limits->max_rd_atomic, 1,
		  QRDMA_MAX_RD_ATOMIC },
		{ "path_mtu", limits->path_mtu, 1, 5 },
		{ "max_mr_size", limits->max_mr_size, QRDMA_RING_PAGE_SIZE,
		  ~0ull },
		{ "max_message_size", limits->max_message_size, 1,
		  QRDMA_MAX_MESSAGE_SIZE },
		{ "4 KiB pages in page_size_bitmap",
		  !!(limits->page_size_bitmap & QRDMA_RING_PAGE_SIZE), 1, 1 },
		{ }
	};
	const struct qrdma_limit_check *check;

	for (check = checks; check->name; check++) {
		if (check->value < check->min || check->value > check->max) {
			*bad = *check;
			return 0;
		}
	}
	return 1;
}

/*
 * Pages of a ring of 2^@log_entries entries of 2^@log_stride bytes, of which
 * neither is more than the interface allows.
 */
static inline __u32 qrdma_ring_pages(__u8 log_entries, __u8 log_stride)
{
	__u64 bytes = 1ull << (log_entries + log_stride);

	return (bytes + QRDMA_RING_PAGE_SIZE - 1) / QRDMA_RING_PAGE_SIZE;
}

/*
 * True if memory of @length bytes at @address is a ring of that geometry: not
 * more entries than 2^@log_max_entries, page aligned, whole pages, and exactly
 * as many as the entries need. The stride has been checked.
 */
static inline _Bool qrdma_ring_fits(__u64 address, __u64 length,
				    __u32 log_entries, __u8 log_stride,
				    __u8 log_max_entries)
{
	return log_entries <= log_max_entries &&
	       address % QRDMA_RING_PAGE_SIZE == 0 &&
	       length == (__u64)qrdma_ring_pages(log_entries, log_stride) *
			 QRDMA_RING_PAGE_SIZE;
}

#endif /* QRDMA_LIMITS_H */
