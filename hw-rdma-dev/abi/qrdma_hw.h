/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * qrdma: the interface between the card and its driver.
 *
 * The one header that the card, the kernel driver, the user-space provider and
 * the qtests share. Registers, commands, contexts, work queue entries,
 * completion queue entries and events, with the limits and the error codes.
 *
 * Rules that hold for everything below:
 *  - all structures are little-endian and naturally aligned;
 *  - reserved fields must be zero; the card refuses a structure where one is
 *    not, and writes zero to those it fills in;
 *  - addresses are what the card puts on the bus (IOVAs behind an IOMMU);
 *  - object numbers (EQ, CQ, QP, mkey index) are chosen by the driver; a number
 *    that is in use is refused, so that reuse before destroy shows.
 * docs/specification.rst explains each of them.
 */
#ifndef QRDMA_HW_H
#define QRDMA_HW_H

#include <linux/types.h>

#define QRDMA_PCI_VENDOR_ID		0x1234
#define QRDMA_PCI_DEVICE_ID		0x7264	/* "rd" */
#define QRDMA_PCI_REVISION		1

#define QRDMA_ABI_MAJOR			1
#define QRDMA_ABI_MINOR			0

/* ------------------------------------------------------------------ BARs */

#define QRDMA_BAR_REGISTERS		0	/* 64 KiB, 64-bit */
#define QRDMA_BAR_REGISTERS_SIZE	0x10000
#define QRDMA_BAR_DOORBELL		2	/* doorbell pages, 64-bit */
#define QRDMA_BAR_MSIX			4	/* MSI-X table and PBA, 64-bit */

#define QRDMA_DOORBELL_PAGE_SIZE	0x1000
#define QRDMA_DOORBELL_PAGES		1024
#define QRDMA_MSIX_VECTORS		32

/* ------------------------------------------------------ BAR 0: registers */
/*
 * 32-bit registers take aligned 32-bit accesses. 64-bit registers take one
 * aligned 64-bit access, or a 32-bit access to each half. Any other width,
 * alignment or offset reads as zero and ignores writes.
 */
#define QRDMA_REG_ID			0x000	/* RO 32: QRDMA_ID */
#define  QRDMA_ID			0x4d445251	/* "QRDM" in memory */
#define QRDMA_REG_ABI_VERSION		0x004	/* RO 32: major << 16 | minor */
#define QRDMA_REG_CAPABILITIES		0x008	/* RO 64: QRDMA_CAPABILITY_* */
#define QRDMA_REG_STATUS		0x010	/* 32: QRDMA_CARD_*, bits RO or W1C */
#define  QRDMA_CARD_READY		(1u << 0)	/* RO: enabled, takes commands */
#define  QRDMA_CARD_FATAL		(1u << 1)	/* RO: see QRDMA_REG_ERROR; only a reset leaves it */
#define  QRDMA_CARD_EVENT_LOST	(1u << 2)	/* W1C: an asynchronous event found its EQ full */
#define  QRDMA_CARD_DOORBELL_ERROR	(1u << 3)	/* W1C: a doorbell was ignored */
#define QRDMA_REG_ERROR			0x014	/* RO 32: enum qrdma_fatal_code, sticky until reset */
#define QRDMA_REG_CONTROL		0x018	/* RW 32: QRDMA_CONTROL_* */
#define  QRDMA_CONTROL_ENABLE		(1u << 0)	/* 0 -> 1 latches the command queue registers */
#define  QRDMA_CONTROL_RESET		(1u << 1)	/* reads as 0: the reset is over when the write is */
#define QRDMA_REG_COMMAND_RING		0x020	/* RW 64: address, 4 KiB aligned; writable while not enabled */
#define QRDMA_REG_COMMAND_LOG_SIZE	0x028	/* RW 32: log2 of the entries, 0..QRDMA_COMMAND_LOG_SIZE_MAX */
#define  QRDMA_COMMAND_LOG_SIZE_MAX	6	/* 64 entries of 64 bytes: one 4 KiB page */
#define QRDMA_REG_COMMAND_VECTOR	0x02c	/* RW 32: MSI-X vector | QRDMA_COMMAND_VECTOR_ENABLE */
#define  QRDMA_COMMAND_VECTOR_ENABLE	(1u << 31)
#define QRDMA_REG_COMMAND_DOORBELL	0x030	/* WO 32: free-running producer counter */
#define QRDMA_REG_COMMAND_CONSUMER	0x034	/* RO 32: free-running consumer counter */
#define QRDMA_REG_MAC			0x040	/* RO 64: port MAC, first octet in bits 7:0 */
#define QRDMA_CAPABILITY_ON_DEMAND	(1ull << 0)
#define QRDMA_CAPABILITY_ATOMIC		(1ull << 1)
#define QRDMA_CAPABILITY_PBLE_CACHE	(1ull << 2)	/* card caches PBLEs: invalidate after CPU writes */

/* Why the card stopped; QRDMA_REG_ERROR. */
enum qrdma_fatal_code {
	QRDMA_FATAL_NONE		= 0,
	QRDMA_FATAL_COMMAND_RING_DMA	= 1,	/* command entry could not be read or written */
	QRDMA_FATAL_COMMAND_RING_SETUP	= 2,	/* enabled with a bad base, size or vector */
	QRDMA_FATAL_COMMAND_PRODUCER	= 3,	/* producer more than a ring ahead of consumer */
	QRDMA_FATAL_HMC_DMA		= 4,	/* HMC memory failed in the middle of a table write */
	QRDMA_FATAL_EQ_DMA		= 5,	/* an event could not be written */
	QRDMA_FATAL_INJECTED		= 6,	/* on request: qrdma_diagnostic.h */
};

/* ------------------------------------------------------ BAR 2: doorbells */
/*
 * Page n belongs to one user context; page 0 is the driver's. A page rings only
 * the queues created with its number. Each doorbell is one aligned 64-bit
 * write; everything else is ignored. Indices are free-running 32-bit counters:
 * entry = counter & (ring size - 1), 0 <= producer - consumer <= ring size.
 */
#define QRDMA_DOORBELL_SEND		0x00	/* bits 23:0 QPN, 63:32 producer counter */
#define QRDMA_DOORBELL_RECEIVE		0x08	/* bits 23:0 QPN, 63:32 producer counter */
#define QRDMA_DOORBELL_CQ		0x10	/* bits 23:0 CQN, 31:30 arm, 63:32 consumer counter */
#define QRDMA_DOORBELL_EQ		0x18	/* bits 23:0 EQN, 31:30 arm, 63:32 consumer counter; page 0 only */

#define QRDMA_DOORBELL_NUMBER_MASK	0xffffffu
#define QRDMA_DOORBELL_ARM_SHIFT	30
#define QRDMA_DOORBELL_ARM_NONE		0u	/* consumer counter only */
#define QRDMA_DOORBELL_ARM_NEXT		1u	/* event at the next CQE; also if consumer != producer now */
#define QRDMA_DOORBELL_ARM_SOLICITED	2u	/* CQ only: at the next solicited or error CQE */
#define QRDMA_DOORBELL_COUNTER_SHIFT	32

/* ---------------------------------------------------------------- limits */

#define QRDMA_LOG_MAX_MKEYS		20
#define QRDMA_MAX_EQS			64
#define QRDMA_LOG_MAX_CQS		14
#define QRDMA_LOG_MAX_QPS		14
#define QRDMA_FIRST_QPN			2	/* 0 and 1 are the management QPs */
#define QRDMA_LOG_MAX_RING_ENTRIES	16
#define QRDMA_MAX_GIDS			32
#define QRDMA_MAX_PD			0xffffff
#define QRDMA_LOG_PAGE_SIZE_MIN		12
#define QRDMA_LOG_PAGE_SIZE_MAX		40
#define QRDMA_MAX_SD			4096	/* 8 GiB of PBLE space: 2^30 PBLEs */
#define QRDMA_MAX_RD_ATOMIC		16
#define QRDMA_MAX_MESSAGE_SIZE		(1u << 31)

/* --------------------------------------------------- PBLE space and PBLEs */

#define QRDMA_SD_SHIFT			21	/* an SD covers 2 MiB of PBLE space */
#define QRDMA_SD_PAGES			512	/* 4 KiB pages of a paged SD */
#define QRDMA_PBLE_SIZE			8
#define QRDMA_PBLES_PER_SD		(1u << (QRDMA_SD_SHIFT - 3))
#define QRDMA_LEAF_PBLES		512	/* PBLEs of a level 2 leaf; the last leaf may hold fewer */

/*
 * Table writes come in units, and tables begin at a unit: first PBLE index of a
 * level 1 table, of a level 2 root and of every leaf is a multiple of
 * QRDMA_PBLES_PER_UNIT. The PBLEs up to the end of a table's last unit belong
 * to the table.
 */
#define QRDMA_TABLE_UNIT		64
#define QRDMA_PBLES_PER_UNIT		8

/* A PBLE: physical address, aligned to the page size of its table | rights. */
#define QRDMA_PBLE_READ			(1ull << 0)
#define QRDMA_PBLE_WRITE		(1ull << 1)
#define QRDMA_PBLE_PRESENT		(QRDMA_PBLE_READ | QRDMA_PBLE_WRITE)
#define QRDMA_PBLE_RESERVED		0xffcull
#define QRDMA_PBLE_ADDRESS		(~0xfffull)

/* An entry of a level 2 root: index of the leaf's first PBLE | valid. */
#define QRDMA_ROOT_VALID		(1ull << 63)
#define QRDMA_ROOT_INDEX		0xffffffffull
#define QRDMA_ROOT_RESERVED		0x7fffffff00000000ull

/* ---------------------------------------------------------- mkey contexts */

/* key = index << 8 | variant. Index 0 is never valid. */
#define QRDMA_MKEY_INDEX(key)		((key) >> 8)
#define QRDMA_MKEY_VARIANT(key)		((key) & 0xff)
#define QRDMA_MKEY_ANY_QP		0xffffffu

#define QRDMA_MKEY_FREE			(1u << 0)	/* not usable: every access is refused */
#define QRDMA_MKEY_LOCAL_WRITE		(1u << 1)
#define QRDMA_MKEY_REMOTE_READ		(1u << 2)
#define QRDMA_MKEY_REMOTE_WRITE		(1u << 3)	/* needs LOCAL_WRITE */
#define QRDMA_MKEY_REMOTE_ATOMIC	(1u << 4)	/* needs LOCAL_WRITE */
#define QRDMA_MKEY_RELAXED_ORDERING	(1u << 5)
#define QRDMA_MKEY_ON_DEMAND		(1u << 6)	/* absent page: fault and resume */
#define QRDMA_MKEY_ALL_MEMORY		(1u << 7)	/* start and length must be 0 */
#define QRDMA_MKEY_FLAGS_MASK		0xffu

enum qrdma_translation {
	QRDMA_TRANSLATION_PHYSICAL	= 0,	/* bus address = virtual address; driver's own keys */
	QRDMA_TRANSLATION_BLOCK_TABLE	= 1,
};

/*
 * MKC: mkey context.
 *
 * A block table maps [start, start + length). With P = 2^log_page_size, block i
 * covers P bytes from (start rounded down to P) + i * P; the number of blocks
 * must not exceed capacity. Level 0: the one block is `base`, in PBLE format,
 * and pble_index is 0. Level 1: PBLEs pble_index + i. Level 2: root entry
 * pble_index + i / 512 gives the leaf, whose PBLE i % 512 is taken.
 *
 * first_byte_offset states start's offset inside its 4 KiB page once more; where
 * the two differ the driver is wrong about its first block, and is refused.
 *
 * PHYSICAL and ALL_MEMORY belong together: one needs the other. An all-memory
 * key has level 0, log_page_size 12, and zero in start, length, base,
 * pble_index, capacity and first_byte_offset.
 */
struct qrdma_mkc {
	__le32 flags;			/* 0x00 QRDMA_MKEY_* */
	__u8 variant;			/* 0x04 */
	__u8 log_page_size;		/* 0x05 QRDMA_LOG_PAGE_SIZE_MIN..MAX */
	__u8 translation;		/* 0x06 enum qrdma_translation */
	__u8 level;			/* 0x07 0, 1 or 2 */
	__le32 pd;			/* 0x08 bits 23:0 */
	__le32 qpn;			/* 0x0c bits 23:0, or QRDMA_MKEY_ANY_QP */
	__le64 start;			/* 0x10 virtual address of the first byte */
	__le64 length;			/* 0x18 bytes, not 0; start + length must not wrap */
	__le64 base;			/* 0x20 level 0: the block, in PBLE format */
	__le32 pble_index;		/* 0x28 level 1, 2 */
	__le32 capacity;		/* 0x2c entries the table has room for; level 0: 1 */
	__le16 first_byte_offset;	/* 0x30 = start & 0xfff */
	__u8 reserved[14];		/* 0x32 */
};

/* ------------------------------------------------------------------ rings */

/*
 * Memory of a queue ring. Rings are page aligned, use 4 KiB pages and levels 0
 * (contiguous from base) or 1 (num_pages PBLEs from pble_index, all present,
 * readable and writable).
 * num_pages must be exactly what log_entries and log_stride need.
 */
struct qrdma_ring {
	__le64 base;			/* 0x00 level 0: bus address, 4 KiB aligned; else 0 */
	__le32 pble_index;		/* 0x08 level 1; else 0 */
	__le32 num_pages;		/* 0x0c */
	__u8 level;			/* 0x10 0 or 1 */
	__u8 log_page_size;		/* 0x11 12 */
	__u8 log_entries;		/* 0x12 0..QRDMA_LOG_MAX_RING_ENTRIES */
	__u8 log_stride;		/* 0x13 log2 of bytes an entry */
	__le32 reserved;		/* 0x14 */
};

/* ----------------------------------------------------------- event queues */

struct qrdma_eqc {
	struct qrdma_ring ring;		/* 0x00 log_stride QRDMA_EQE_LOG_SIZE, log_entries >= 3 */
	__le32 vector;			/* 0x18 MSI-X vector */
	__le32 consumer;		/* 0x1c query only; 0 in a create */
	__le32 producer;		/* 0x20 query only; 0 in a create */
	__le32 flags;			/* 0x24 query only: QRDMA_EQ_ARMED */
	__u8 reserved[24];		/* 0x28 */
};

#define QRDMA_EQ_ARMED			(1u << 0)
/* EQ 0 takes all asynchronous events; it must exist before a CQ or QP does. */
#define QRDMA_ASYNC_EQN			0

enum qrdma_event {
	QRDMA_EVENT_COMPLETION		= 1,	/* number = CQN */
	QRDMA_EVENT_CQ_ERROR		= 2,	/* number = CQN, syndrome = enum qrdma_queue_error */
	QRDMA_EVENT_QP_ERROR		= 3,	/* number = QPN, syndrome = enum qrdma_queue_error */
	QRDMA_EVENT_QP_ACCESS_ERROR	= 4,	/* number = QPN, key, address, length; syndrome = enum qrdma_access_error */
	QRDMA_EVENT_PAGE_FAULT		= 5,	/* number = QPN of the requester, suspended; key, address, length, token */
	QRDMA_EVENT_COMMUNICATION	= 6,	/* number = QPN: first message arrived in RTR */
};

#define QRDMA_EVENT_FLAG_WRITE		(1u << 0)	/* the access would write */
#define QRDMA_EVENT_FLAG_RESPONDER	(1u << 1)	/* number's QP was the responder */
#define QRDMA_EVENT_FLAG_REMOTE		(1u << 2)	/* the key came over the wire (rkey) */

#define QRDMA_EQE_LOG_SIZE		5

struct qrdma_eqe {
	__le32 number;			/* 0x00 */
	__le32 key;			/* 0x04 */
	__le64 address;			/* 0x08 */
	__le32 length;			/* 0x10 bytes from address that the access still needs */
	__le32 token;			/* 0x14 page fault: names the suspension to resume */
	/* The card writes the last 8 bytes after the others. */
	__u8 type;			/* 0x18 enum qrdma_event */
	__u8 flags;			/* 0x19 QRDMA_EVENT_FLAG_* */
	__le16 syndrome;		/* 0x1a */
	__u8 reserved[3];		/* 0x1c */
	__u8 phase;			/* 0x1f 1 in the first pass over the ring, 0 in the second, and so on */
};

/* What is wrong with a queue; syndrome of CQ_ERROR and QP_ERROR events. */
enum qrdma_queue_error {
	QRDMA_QUEUE_ERROR_OVERRUN	= 1,	/* CQ full */
	QRDMA_QUEUE_ERROR_DMA		= 2,	/* ring memory could not be read or written */
	QRDMA_QUEUE_ERROR_PRODUCER	= 3,	/* producer counter outside the ring: doorbell ignored */
	QRDMA_QUEUE_ERROR_CONSUMER	= 4,	/* consumer counter outside the ring: doorbell ignored */
	QRDMA_QUEUE_ERROR_CQ		= 5,	/* a QP's CQ is in error */
	QRDMA_QUEUE_ERROR_REQUEST	= 6,	/* responder got a request it cannot take */
};

/* Why an access was refused; syndrome of access errors, in CQEs and events. */
enum qrdma_access_error {
	QRDMA_ACCESS_OK			= 0,
	QRDMA_ACCESS_NO_KEY		= 1,	/* no mkey of that index */
	QRDMA_ACCESS_VARIANT		= 2,
	QRDMA_ACCESS_FREE		= 3,	/* the mkey is free: revoked, or not enabled yet */
	QRDMA_ACCESS_PD			= 4,
	QRDMA_ACCESS_QP			= 5,	/* bound to another QP */
	QRDMA_ACCESS_RIGHTS		= 6,
	QRDMA_ACCESS_RANGE		= 7,
	QRDMA_ACCESS_NOT_PRESENT	= 8,
	QRDMA_ACCESS_BAD_ENTRY		= 9,	/* PBLE or root entry malformed or misaligned */
	QRDMA_ACCESS_HMC		= 10,	/* PBLE space not backed by an SD, or not readable */
	QRDMA_ACCESS_DMA		= 11,	/* the bus refused the address */
	QRDMA_ACCESS_UNRESOLVED		= 12,	/* page fault resumed with an error */
	QRDMA_ACCESS_MISALIGNED		= 13,	/* atomic not 8-byte aligned */
};

/* ------------------------------------------------------ completion queues */

struct qrdma_cqc {
	struct qrdma_ring ring;		/* 0x00 log_stride QRDMA_CQE_LOG_SIZE */
	__le32 eqn;			/* 0x18 EQ of the completion events */
	__le32 doorbell_page;		/* 0x1c */
	__le32 consumer;		/* 0x20 query only; 0 in a create */
	__le32 producer;		/* 0x24 query only; 0 in a create */
	__le32 flags;			/* 0x28 query only: QRDMA_CQ_* */
	__u8 reserved[20];		/* 0x2c */
};

#define QRDMA_CQ_ARMED			(1u << 0)
#define QRDMA_CQ_ARMED_SOLICITED	(1u << 1)
#define QRDMA_CQ_ERROR			(1u << 2)
#define QRDMA_CQE_LOG_SIZE		6

enum qrdma_cqe_status {
	QRDMA_CQE_SUCCESS			= 0,
	QRDMA_CQE_LOCAL_LENGTH_ERROR		= 1,
	QRDMA_CQE_LOCAL_QP_OPERATION_ERROR	= 2,	/* malformed WQE; syndrome = enum qrdma_wqe_error */
	QRDMA_CQE_LOCAL_PROTECTION_ERROR	= 3,	/* syndrome = enum qrdma_access_error */
	QRDMA_CQE_FLUSHED			= 4,
	QRDMA_CQE_UMR_ERROR			= 5,	/* syndrome = enum qrdma_status */
	QRDMA_CQE_LOCAL_ACCESS_ERROR		= 6,	/* receive buffer failed */
	QRDMA_CQE_REMOTE_INVALID_REQUEST	= 7,
	QRDMA_CQE_REMOTE_ACCESS_ERROR		= 8,	/* syndrome 0: the wire does not say why */
	QRDMA_CQE_REMOTE_OPERATION_ERROR	= 9,
	QRDMA_CQE_RETRY_EXCEEDED		= 10,
	QRDMA_CQE_RNR_RETRY_EXCEEDED		= 11,
};

/* What is wrong with a WQE. */
enum qrdma_wqe_error {
	QRDMA_WQE_OK			= 0,
	QRDMA_WQE_OPCODE		= 1,	/* unknown, or not for this queue */
	QRDMA_WQE_FLAGS			= 2,
	QRDMA_WQE_RESERVED		= 3,
	QRDMA_WQE_NUM_SGE		= 4,	/* more than the WQE or the queue has room for */
	QRDMA_WQE_INLINE_LENGTH		= 5,
	QRDMA_WQE_LENGTH		= 6,	/* message too long, or wrong for the opcode */
};

enum qrdma_cqe_opcode {
	QRDMA_CQE_OP_SEND		= 0,	/* requester: as the WQE's opcode */
	QRDMA_CQE_OP_WRITE		= 1,
	QRDMA_CQE_OP_READ		= 2,
	QRDMA_CQE_OP_COMPARE_SWAP	= 3,
	QRDMA_CQE_OP_FETCH_ADD		= 4,
	QRDMA_CQE_OP_NOP		= 5,
	QRDMA_CQE_OP_UMR		= 6,
	QRDMA_CQE_OP_RECV		= 0x80,	/* responder */
	QRDMA_CQE_OP_RECV_WRITE_IMM	= 0x81,	/* RDMA write with immediate consumed a receive */
};

#define QRDMA_CQE_FLAG_IMMEDIATE	(1u << 0)
#define QRDMA_CQE_FLAG_SOLICITED	(1u << 1)

struct qrdma_cqe {
	__le32 wqe_counter;		/* 0x00 free-running counter of the WQE */
	__le32 byte_length;		/* 0x04 bytes received, read or written */
	__le32 qpn;			/* 0x08 */
	__le32 immediate;		/* 0x0c as it stood in the WQE */
	__le32 key;			/* 0x10 access errors: the key */
	__le32 remote_qpn;		/* 0x14 receive: sender */
	__le64 address;			/* 0x18 access errors: the address */
	__u8 reserved0[24];		/* 0x20 */
	/* The card writes the last 8 bytes after the others. */
	__u8 opcode;			/* 0x38 enum qrdma_cqe_opcode */
	__u8 status;			/* 0x39 enum qrdma_cqe_status */
	__le16 syndrome;		/* 0x3a */
	__u8 flags;			/* 0x3c QRDMA_CQE_FLAG_* */
	__u8 reserved1[2];		/* 0x3d */
	__u8 phase;			/* 0x3f as in struct qrdma_eqe */
};

/* ------------------------------------------------------------ queue pairs */

enum qrdma_qp_type {
	QRDMA_QP_RC			= 1,
	QRDMA_QP_UMR			= 2,	/* user memory registration; driver's, page 0, no receive queue */
};

enum qrdma_qp_state {
	QRDMA_QP_RESET			= 0,
	QRDMA_QP_INIT			= 1,
	QRDMA_QP_RTR			= 2,
	QRDMA_QP_RTS			= 3,
	QRDMA_QP_SQD			= 4,
	QRDMA_QP_ERROR			= 5,
};

#define QRDMA_QP_REMOTE_READ		(1u << 0)
#define QRDMA_QP_REMOTE_WRITE		(1u << 1)
#define QRDMA_QP_REMOTE_ATOMIC		(1u << 2)
#define QRDMA_QP_SUSPENDED		(1u << 8)	/* query only: waits for a page fault */

/*
 * QP context. Create takes type, pd, CQs, doorbell page and rings, all else 0.
 * Modify takes the fields of its mask. Query gives everything.
 */
struct qrdma_qpc {
	__u8 type;			/* 0x00 enum qrdma_qp_type */
	__u8 state;			/* 0x01 enum qrdma_qp_state; 0 in a create */
	__u8 path_mtu;			/* 0x02 1..5: 256..4096 bytes */
	__u8 sgid_index;		/* 0x03 */
	__le32 pd;			/* 0x04 */
	__le32 send_cqn;		/* 0x08 */
	__le32 receive_cqn;		/* 0x0c */
	__le32 doorbell_page;		/* 0x10 */
	__le32 flags;			/* 0x14 QRDMA_QP_* */
	struct qrdma_ring send_ring;	/* 0x18 log_stride QRDMA_SEND_WQE_LOG_MIN..MAX */
	struct qrdma_ring receive_ring;	/* 0x30 log_stride QRDMA_RECEIVE_WQE_LOG_MIN..MAX; all 0: none */
	__le32 remote_qpn;		/* 0x48 */
	__le32 send_psn;		/* 0x4c 24 bits */
	__le32 receive_psn;		/* 0x50 24 bits */
	__u8 retry_count;		/* 0x54 0..7 */
	__u8 rnr_retry;			/* 0x55 0..7, 7 = for ever */
	__u8 min_rnr_timer;		/* 0x56 0..31, as in the InfiniBand specification */
	__u8 timeout;			/* 0x57 0..31: 4.096 us * 2^timeout, 0 = none */
	__u8 max_rd_atomic;		/* 0x58 requester, 0..QRDMA_MAX_RD_ATOMIC */
	__u8 max_dest_rd_atomic;	/* 0x59 responder */
	__le16 pkey_index;		/* 0x5a 0 */
	__u8 dgid[16];			/* 0x5c destination GID */
	__u8 dmac[6];			/* 0x6c */
	__u8 traffic_class;		/* 0x72 */
	__u8 hop_limit;			/* 0x73 */
	__le32 flow_label;		/* 0x74 20 bits */
	__le32 send_producer;		/* 0x78 query only */
	__le32 send_consumer;		/* 0x7c query only */
	__le32 receive_producer;	/* 0x80 query only */
	__le32 receive_consumer;	/* 0x84 query only */
	__u8 reserved[56];		/* 0x88 */
};

/* Mask of MODIFY_QP: which fields of the context count. */
#define QRDMA_QP_MASK_STATE		(1ull << 0)
#define QRDMA_QP_MASK_FLAGS		(1ull << 1)	/* remote access rights */
#define QRDMA_QP_MASK_PATH		(1ull << 2)	/* dgid, dmac, sgid_index, traffic class, hop limit, flow label */
#define QRDMA_QP_MASK_PATH_MTU		(1ull << 3)
#define QRDMA_QP_MASK_REMOTE_QPN	(1ull << 4)
#define QRDMA_QP_MASK_SEND_PSN		(1ull << 5)
#define QRDMA_QP_MASK_RECEIVE_PSN	(1ull << 6)
#define QRDMA_QP_MASK_RETRY_COUNT	(1ull << 7)
#define QRDMA_QP_MASK_RNR_RETRY		(1ull << 8)
#define QRDMA_QP_MASK_MIN_RNR_TIMER	(1ull << 9)
#define QRDMA_QP_MASK_TIMEOUT		(1ull << 10)
#define QRDMA_QP_MASK_MAX_RD_ATOMIC	(1ull << 11)
#define QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC (1ull << 12)
#define QRDMA_QP_MASK_PKEY_INDEX	(1ull << 13)
#define QRDMA_QP_MASK_ALL		((1ull << 14) - 1)

/* ------------------------------------------------------ work queue entries */

/* One WQE a ring slot. The card copies the slot once, then checks the copy. */
enum qrdma_send_opcode {
	QRDMA_SEND_OP_SEND		= 0,
	QRDMA_SEND_OP_SEND_IMM		= 1,
	QRDMA_SEND_OP_WRITE		= 2,
	QRDMA_SEND_OP_WRITE_IMM		= 3,
	QRDMA_SEND_OP_READ		= 4,
	QRDMA_SEND_OP_COMPARE_SWAP	= 5,
	QRDMA_SEND_OP_FETCH_ADD		= 6,
	QRDMA_SEND_OP_NOP		= 7,
	QRDMA_SEND_OP_UMR		= 8,	/* UMR queue only */
};

#define QRDMA_WQE_SIGNALED		(1u << 0)	/* CQE also on success */
#define QRDMA_WQE_SOLICITED		(1u << 1)
#define QRDMA_WQE_FENCE			(1u << 2)	/* wait for earlier reads and atomics */
#define QRDMA_WQE_INLINE		(1u << 3)	/* payload follows the header; not for READ and atomics */

#define QRDMA_SEND_WQE_LOG_MIN		7	/* 128 bytes: header and 4 SGEs */
#define QRDMA_SEND_WQE_LOG_MAX		9	/* 512 bytes: header and 28 SGEs */
#define QRDMA_SEND_WQE_HEADER		64
#define QRDMA_RECEIVE_WQE_LOG_MIN	5	/* 32 bytes: header and 1 SGE */
#define QRDMA_RECEIVE_WQE_LOG_MAX	9	/* 512 bytes: header and 31 SGEs */
#define QRDMA_RECEIVE_WQE_HEADER	16
#define QRDMA_MAX_SGE			28	/* send and receive */
#define QRDMA_MAX_INLINE		448

struct qrdma_sge {
	__le64 address;
	__le32 length;			/* bytes; 0 is an empty segment */
	__le32 key;
};

struct qrdma_send_wqe {
	__u8 opcode;			/* 0x00 enum qrdma_send_opcode */
	__u8 flags;			/* 0x01 QRDMA_WQE_* */
	__le16 reserved0;		/* 0x02 */
	__le32 num_sge;			/* 0x04 0 with QRDMA_WQE_INLINE */
	__le32 inline_length;		/* 0x08 bytes; 0 without QRDMA_WQE_INLINE */
	__le32 immediate;		/* 0x0c goes to the receiver's CQE unchanged */
	__le64 remote_address;		/* 0x10 WRITE, READ, atomics; else 0 */
	__le32 remote_key;		/* 0x18 likewise */
	__le32 reserved1;		/* 0x1c */
	__le64 swap_or_add;		/* 0x20 atomics; else 0 */
	__le64 compare;			/* 0x28 COMPARE_SWAP; else 0 */
	__u8 reserved2[16];		/* 0x30 */
	/* 0x40: SGEs or inline payload */
};

struct qrdma_receive_wqe {
	__le32 num_sge;			/* 0x00 */
	__u8 reserved[12];		/* 0x04 */
	/* 0x10: SGEs */
};

/* -------------------------------------------------------------------- UMR */

#define QRDMA_UMR_WQE_LOG_SIZE		9	/* log_stride of a UMR queue's send ring */
#define QRDMA_UMR_INLINE_OFFSET		128
#define QRDMA_UMR_MAX_INLINE		384	/* bytes of table data inline: 6 units */
#define QRDMA_UMR_MAX_TABLE_WRITE	65536	/* bytes of table data one UMR may write by reference */

#define QRDMA_UMR_INLINE		(1u << 0)	/* table data is in the WQE */
#define QRDMA_UMR_CHECK_FREE		(1u << 1)	/* refuse unless the mkey is free */
#define QRDMA_UMR_CHECK_NOT_FREE	(1u << 2)	/* refuse unless the mkey is in use */
#define QRDMA_UMR_TRANSLATION_OFFSET	(1u << 3)	/* table_offset counts; without it, it must be 0 */
#define QRDMA_UMR_FLAGS_MASK		0xfu

/* Which fields of the MKC segment are taken; the others are not even read. */
#define QRDMA_UMR_MASK_FREE		(1ull << 0)	/* flags: FREE */
#define QRDMA_UMR_MASK_LOCAL_WRITE	(1ull << 1)	/* flags: one bit each */
#define QRDMA_UMR_MASK_REMOTE_READ	(1ull << 2)
#define QRDMA_UMR_MASK_REMOTE_WRITE	(1ull << 3)
#define QRDMA_UMR_MASK_REMOTE_ATOMIC	(1ull << 4)
#define QRDMA_UMR_MASK_RELAXED_ORDERING	(1ull << 5)
#define QRDMA_UMR_MASK_ON_DEMAND	(1ull << 6)
#define QRDMA_UMR_MASK_VARIANT		(1ull << 8)
#define QRDMA_UMR_MASK_PAGE_SIZE	(1ull << 9)
#define QRDMA_UMR_MASK_PD		(1ull << 10)
#define QRDMA_UMR_MASK_QPN		(1ull << 11)
#define QRDMA_UMR_MASK_START		(1ull << 12)	/* start and first_byte_offset */
#define QRDMA_UMR_MASK_LENGTH		(1ull << 13)
#define QRDMA_UMR_MASK_ALL		0x3f7full

/*
 * A UMR: table write, then context change, either may be absent (table_length 0,
 * mask 0). The key names the mkey by index and must have its present variant.
 * The level 0 table is one unit whose entry 0 goes to the context's base.
 * Translation kind, level, pble_index and capacity never change.
 */
struct qrdma_umr_wqe {
	__u8 opcode;			/* 0x00 QRDMA_SEND_OP_UMR */
	__u8 flags;			/* 0x01 QRDMA_WQE_SIGNALED only */
	__le16 umr_flags;		/* 0x02 QRDMA_UMR_* */
	__le32 key;			/* 0x04 */
	__le64 mask;			/* 0x08 QRDMA_UMR_MASK_* */
	__le64 table_offset;		/* 0x10 bytes, multiple of QRDMA_TABLE_UNIT */
	__le64 table_address;		/* 0x18 by reference: bus address, 64-byte aligned; inline: 0 */
	__le32 table_length;		/* 0x20 bytes, multiple of QRDMA_TABLE_UNIT */
	__u8 reserved[28];		/* 0x24 */
	struct qrdma_mkc mkc;		/* 0x40 */
	/* 0x80: inline table data */
};

/* --------------------------------------------------------------- commands */

enum qrdma_command_opcode {
	QRDMA_CMD_NOP			= 0x00,
	QRDMA_CMD_QUERY_DEVICE		= 0x01,	/* out: struct qrdma_device_limits */
	QRDMA_CMD_READ_COUNTERS		= 0x02,	/* out: struct qrdma_counters */
	QRDMA_CMD_SET_GID		= 0x03,	/* number = index; in: struct qrdma_gid (all 0: delete) */

	QRDMA_CMD_ADD_SD		= 0x10,	/* number = SD index; in: struct qrdma_sd */
	QRDMA_CMD_REMOVE_SD		= 0x11,	/* number = SD index */

	QRDMA_CMD_CREATE_EQ		= 0x20,	/* number = EQN; in: struct qrdma_eqc */
	QRDMA_CMD_MODIFY_EQ		= 0x21,	/* number = EQN; in: struct qrdma_eqc, only vector counts */
	QRDMA_CMD_QUERY_EQ		= 0x22,	/* out: struct qrdma_eqc */
	QRDMA_CMD_DESTROY_EQ		= 0x23,

	QRDMA_CMD_CREATE_CQ		= 0x28,	/* number = CQN; in: struct qrdma_cqc */
	QRDMA_CMD_MODIFY_CQ		= 0x29,	/* in: struct qrdma_cqc, only eqn counts */
	QRDMA_CMD_QUERY_CQ		= 0x2a,
	QRDMA_CMD_DESTROY_CQ		= 0x2b,

	QRDMA_CMD_CREATE_QP		= 0x30,	/* number = QPN; in: struct qrdma_qpc */
	QRDMA_CMD_MODIFY_QP		= 0x31,	/* in: struct qrdma_modify_qp */
	QRDMA_CMD_QUERY_QP		= 0x32,
	QRDMA_CMD_DESTROY_QP		= 0x33,

	QRDMA_CMD_CREATE_MKEY		= 0x38,	/* number = index; in: struct qrdma_mkc */
	QRDMA_CMD_MODIFY_MKEY		= 0x39,	/* in: struct qrdma_modify_mkey; what a UMR without table does */
	QRDMA_CMD_QUERY_MKEY		= 0x3a,	/* out: struct qrdma_mkc */
	QRDMA_CMD_DESTROY_MKEY		= 0x3b,
	QRDMA_CMD_INVALIDATE_TRANSLATIONS = 0x3c,	/* number = index; forget cached PBLEs */

	QRDMA_CMD_RESUME_PAGE_FAULT	= 0x40,	/* number = QPN; in: struct qrdma_resume */
};

/* Status of a command, and syndrome of a refused UMR. One code a reason. */
enum qrdma_status {
	QRDMA_STATUS_OK			= 0,
	QRDMA_STATUS_BAD_OPCODE		= 1,
	QRDMA_STATUS_BAD_STATE		= 2,	/* not allowed in the card's or the object's state */
	QRDMA_STATUS_BAD_RESERVED	= 3,	/* a reserved field is not zero */
	QRDMA_STATUS_BAD_INPUT_LENGTH	= 4,
	QRDMA_STATUS_BAD_OUTPUT_LENGTH	= 5,
	QRDMA_STATUS_BAD_NUMBER		= 6,	/* object number out of range */
	QRDMA_STATUS_NO_OBJECT		= 7,
	QRDMA_STATUS_IN_USE		= 8,	/* number taken, or object still referred to */
	QRDMA_STATUS_NO_RESOURCES	= 9,
	QRDMA_STATUS_DMA_ERROR		= 10,	/* input, output or table data could not be moved */
	QRDMA_STATUS_BAD_FLAGS		= 11,	/* unknown or contradictory flags */
	QRDMA_STATUS_BAD_MASK		= 12,
	QRDMA_STATUS_BAD_PD		= 13,
	QRDMA_STATUS_BAD_QPN		= 14,
	QRDMA_STATUS_BAD_CQN		= 15,
	QRDMA_STATUS_BAD_EQN		= 16,
	QRDMA_STATUS_BAD_VECTOR		= 17,
	QRDMA_STATUS_BAD_DOORBELL_PAGE	= 18,
	QRDMA_STATUS_BAD_PAGE_SIZE	= 19,
	QRDMA_STATUS_BAD_LEVEL		= 20,
	QRDMA_STATUS_BAD_PBLE_INDEX	= 21,	/* unaligned, or outside PBLE space */
	QRDMA_STATUS_BAD_CAPACITY	= 22,	/* 0, too large, or fewer entries than the region has blocks */
	QRDMA_STATUS_BAD_LENGTH		= 23,	/* 0 without all-memory, or start + length wraps */
	QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET = 24,
	QRDMA_STATUS_BAD_ALIGNMENT	= 25,	/* address or offset not aligned */
	QRDMA_STATUS_BAD_TRANSLATION	= 26,
	QRDMA_STATUS_BAD_RING		= 27,	/* size, stride or number of pages */
	QRDMA_STATUS_BAD_RIGHTS		= 28,	/* remote write or atomic without local write */
	QRDMA_STATUS_BAD_VARIANT	= 29,	/* key's variant is not the mkey's */
	QRDMA_STATUS_MKEY_FREE		= 30,	/* check-not-free failed */
	QRDMA_STATUS_MKEY_NOT_FREE	= 31,	/* check-free failed */
	QRDMA_STATUS_BAD_TABLE_RANGE	= 32,	/* table write does not lie in the table */
	QRDMA_STATUS_BAD_TABLE_LENGTH	= 33,	/* not whole units, or too long for one UMR */
	QRDMA_STATUS_BAD_ENTRY		= 34,	/* reserved bits in a PBLE */
	QRDMA_STATUS_HMC_ERROR		= 35,	/* table's PBLE space or root is not usable */
	QRDMA_STATUS_BAD_TRANSITION	= 36,	/* QP state */
	QRDMA_STATUS_BAD_ATTRIBUTE	= 37,	/* QP attribute out of range, missing, or not allowed now */
	QRDMA_STATUS_BAD_TOKEN		= 38,	/* no such page fault */
	QRDMA_STATUS_BAD_GID		= 39,
	QRDMA_STATUS_BAD_QP_TYPE	= 40,
	QRDMA_STATUS_BAD_SD		= 41,	/* type or page count */
	QRDMA_STATUS_FATAL_STATE	= 42,	/* the card is in fatal error */
	QRDMA_STATUS_INJECTED		= 43,	/* refused on request of the diagnostic window */
	QRDMA_STATUS_BAD_WQE		= 44,	/* UMR WQE: opcode or flags */
	QRDMA_STATUS_COUNT
};

#define QRDMA_COMMAND_MAX_LENGTH	4096	/* of input and of output */

struct qrdma_command {
	__le16 opcode;			/* 0x00 */
	__le16 reserved0;		/* 0x02 */
	__le32 number;			/* 0x04 object number */
	__le64 input;			/* 0x08 bus address, 8-byte aligned; 0 where input_length is */
	__le64 output;			/* 0x10 likewise */
	__le32 input_length;		/* 0x18 bytes: exactly what the opcode takes */
	__le32 output_length;		/* 0x1c bytes: at least what the opcode gives */
	__le64 token;			/* 0x20 driver's; the card does not look at it */
	__u8 reserved1[16];		/* 0x28 */
	/* Written by the card, last. The driver writes zero. */
	__le16 status;			/* 0x38 enum qrdma_status */
	__u8 reserved2[5];		/* 0x3a */
	__u8 done;			/* 0x3f 1 */
};

enum qrdma_sd_type {
	QRDMA_SD_DIRECT			= 1,	/* address: 2 MiB contiguous, 4 KiB aligned */
	QRDMA_SD_PAGED			= 2,	/* address: 4 KiB page of 512 page addresses, read once */
};

struct qrdma_sd {
	__le32 type;
	__le32 reserved0;
	__le64 address;
	__u8 reserved1[16];
};

struct qrdma_gid {
	__u8 gid[16];
	__u8 mac[6];
	__le16 vlan;			/* 0xffff: none */
	__u8 type;			/* 1: RoCEv2 */
	__u8 reserved[7];
};

struct qrdma_modify_qp {
	__le64 mask;			/* QRDMA_QP_MASK_* */
	struct qrdma_qpc context;
};

struct qrdma_modify_mkey {
	__le64 mask;			/* QRDMA_UMR_MASK_* */
	__le64 reserved;
	struct qrdma_mkc context;
};

struct qrdma_resume {
	__le32 token;			/* of the page fault event */
	__le32 failed;			/* 0: try again; 1: fail the access with QRDMA_ACCESS_UNRESOLVED */
	__u8 reserved[24];
};

/* Output of QUERY_DEVICE. */
struct qrdma_device_limits {
	__le64 capabilities;
	__le64 page_size_bitmap;	/* bit n: 2^n bytes */
	__le64 max_mr_size;
	__le64 max_message_size;
	__le32 max_mkeys;
	__le32 max_qps;
	__le32 max_cqs;
	__le32 max_eqs;
	__le32 max_sds;
	__le32 max_pds;
	__le32 max_gids;
	__le32 max_vectors;
	__le32 doorbell_pages;
	__le32 max_sge;
	__le32 max_inline;
	__le32 max_umr_table_write;
	__u8 log_max_ring_entries;
	__u8 log_max_send_stride;
	__u8 log_max_receive_stride;
	__u8 max_rd_atomic;
	__u8 path_mtu;			/* largest, 1..5 */
	__u8 reserved[43];
};

/* Output of READ_COUNTERS. Free-running since reset. */
struct qrdma_counters {
	__le64 commands;
	__le64 commands_refused;
	__le64 umr_completed;
	__le64 umr_refused;
	__le64 umr_flushed;
	__le64 umr_table_bytes;
	__le64 send_messages;
	__le64 receive_messages;
	__le64 send_bytes;
	__le64 receive_bytes;
	__le64 packets;
	__le64 access_refused;
	__le64 page_faults;
	__le64 page_faults_resumed;
	__le64 pble_cache_hits;
	__le64 pble_cache_misses;
	__le64 rnr_retries;
	__le64 doorbells_ignored;
	__le64 events_lost;
	__le64 dma_errors;
	__u8 reserved[96];
};

/* ------------------------------------------------------------- assertions */

#ifdef __KERNEL__
#include <linux/build_bug.h>
#define QRDMA_ABI_ASSERT(condition) static_assert(condition)
#else
#define QRDMA_ABI_ASSERT(condition) _Static_assert(condition, #condition)
#endif

#define QRDMA_ABI_SIZE(type, size) QRDMA_ABI_ASSERT(sizeof(struct type) == (size))
#define QRDMA_ABI_OFFSET(type, field, offset) \
	QRDMA_ABI_ASSERT(__builtin_offsetof(struct type, field) == (offset))

QRDMA_ABI_SIZE(qrdma_mkc, 64);
QRDMA_ABI_OFFSET(qrdma_mkc, start, 0x10);
QRDMA_ABI_OFFSET(qrdma_mkc, capacity, 0x2c);
QRDMA_ABI_SIZE(qrdma_ring, 24);
QRDMA_ABI_SIZE(qrdma_eqc, 64);
QRDMA_ABI_OFFSET(qrdma_eqc, flags, 0x24);
QRDMA_ABI_SIZE(qrdma_eqe, 32);
QRDMA_ABI_OFFSET(qrdma_eqe, type, 0x18);
QRDMA_ABI_OFFSET(qrdma_eqe, phase, 0x1f);
QRDMA_ABI_SIZE(qrdma_cqc, 64);
QRDMA_ABI_OFFSET(qrdma_cqc, flags, 0x28);
QRDMA_ABI_SIZE(qrdma_cqe, 64);
QRDMA_ABI_OFFSET(qrdma_cqe, opcode, 0x38);
QRDMA_ABI_OFFSET(qrdma_cqe, phase, 0x3f);
QRDMA_ABI_SIZE(qrdma_qpc, 192);
QRDMA_ABI_OFFSET(qrdma_qpc, receive_ring, 0x30);
QRDMA_ABI_OFFSET(qrdma_qpc, dgid, 0x5c);
QRDMA_ABI_OFFSET(qrdma_qpc, receive_consumer, 0x84);
QRDMA_ABI_SIZE(qrdma_sge, 16);
QRDMA_ABI_SIZE(qrdma_send_wqe, 64);
QRDMA_ABI_OFFSET(qrdma_send_wqe, compare, 0x28);
QRDMA_ABI_SIZE(qrdma_receive_wqe, 16);
QRDMA_ABI_SIZE(qrdma_umr_wqe, 128);
QRDMA_ABI_OFFSET(qrdma_umr_wqe, mkc, 0x40);
QRDMA_ABI_SIZE(qrdma_command, 64);
QRDMA_ABI_OFFSET(qrdma_command, status, 0x38);
QRDMA_ABI_OFFSET(qrdma_command, done, 0x3f);
QRDMA_ABI_SIZE(qrdma_sd, 32);
QRDMA_ABI_SIZE(qrdma_gid, 32);
QRDMA_ABI_SIZE(qrdma_modify_qp, 200);
QRDMA_ABI_SIZE(qrdma_modify_mkey, 80);
QRDMA_ABI_SIZE(qrdma_resume, 32);
QRDMA_ABI_SIZE(qrdma_device_limits, 128);
QRDMA_ABI_SIZE(qrdma_counters, 256);

#endif /* QRDMA_HW_H */
