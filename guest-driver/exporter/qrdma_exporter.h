/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * qrdma_exporter: a dma-buf exporter for tests. What /dev/qrdma_exporter takes.
 *
 * A buffer is a dma-buf. It is made with a layout, which says how its memory is
 * cut into physically contiguous segments, and can be moved to another one with
 * its contents kept. Closing the last reference to the dma-buf frees it.
 *
 * Every ioctl takes one structure. Fields that are not named "out" are read
 * once; reserved fields must be zero. Errors that all share: EFAULT, EINVAL (a
 * field is out of range or reserved), EBADF (fd is no file), ENOTTY (no such
 * ioctl), EXDEV (fd is a dma-buf of another exporter).
 */
#ifndef QRDMA_EXPORTER_H
#define QRDMA_EXPORTER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define QRDMA_EXPORTER_PAGE_SHIFT	12
#define QRDMA_EXPORTER_PAGE_SIZE	(1u << QRDMA_EXPORTER_PAGE_SHIFT)
#define QRDMA_EXPORTER_MAX_SIZE		(4ull << 30)	/* bytes a buffer */
#define QRDMA_EXPORTER_MAX_SEGMENTS	4096u		/* of an explicit layout */
#define QRDMA_EXPORTER_MAX_SEGMENT	(1ull << 30)	/* bytes */
#define QRDMA_EXPORTER_MAX_HOLD_MS	10000u

/*
 * Segments are aligned to their own size, rounded up to a power of two, and no
 * segment begins where the one before it ends. Where the buffer is no multiple
 * of the segment, the last one is shorter but aligned like the others.
 */
enum qrdma_exporter_layout_kind {
	QRDMA_EXPORTER_4K		= 1,	/* scattered pages */
	QRDMA_EXPORTER_64K		= 2,
	QRDMA_EXPORTER_2M		= 3,
	QRDMA_EXPORTER_CONTIGUOUS	= 4,	/* segments of up to 1 GiB */
	QRDMA_EXPORTER_EXPLICIT		= 5,	/* as the list says */
};

struct qrdma_exporter_layout {
	__u32 kind;			/* enum qrdma_exporter_layout_kind */
	__u32 segment_count;		/* EXPLICIT: 1..MAX_SEGMENTS, else 0 */
	__aligned_u64 segments;		/* EXPLICIT: __u64 lengths in bytes, whole pages; else 0 */
};

/* ENOMEM, ENOSPC: more than the module lets all buffers have together. */
struct qrdma_exporter_create {
	__aligned_u64 size;		/* bytes, whole pages, 1 page..MAX_SIZE */
	struct qrdma_exporter_layout layout;
	__u32 reserved;
	__s32 fd;			/* out: the dma-buf, close-on-exec */
};

/* Stamp the old memory once the contents are copied, and keep it: see OLD. */
#define QRDMA_EXPORTER_MOVE_KEEP_OLD	(1u << 0)

#define QRDMA_EXPORTER_OLD_SEED		0x6f6c646d656d6f72ull

/*
 * EBUSY: the buffer is pinned. ENODEV: it is revoked. When the call returns
 * importers have been told and their fences have signalled. Without hold_ms the
 * contents are there as well; with it a fence in the reservation object signals
 * when they are, that many milliseconds later.
 */
struct qrdma_exporter_move {
	__s32 fd;
	__u32 flags;			/* QRDMA_EXPORTER_MOVE_* */
	struct qrdma_exporter_layout layout;
	__u32 hold_ms;			/* 0..MAX_HOLD_MS */
	__u32 reserved;
};

/*
 * REVOKE: importers are told for good; when the call returns their fences have
 * signalled and nothing is mapped. The memory stays, for the stamps. Again on a
 * revoked buffer: they are told again. RELEASE: the same, and the memory goes:
 * mappings of the CPU get SIGBUS.
 */
struct qrdma_exporter_buffer {
	__s32 fd;
	__u32 reserved;
};

/* The memory that the last move with KEEP_OLD left. ENOENT: there is none. */
#define QRDMA_EXPORTER_STAMP_OLD	(1u << 0)

/*
 * STAMP fills the pages. CHECK compares them; the out fields are about what
 * differs. Both work on a revoked buffer, and wait for a move's contents. ENODEV:
 * released. STAMP writes zero to the out fields.
 */
struct qrdma_exporter_stamp {
	__s32 fd;
	__u32 flags;			/* QRDMA_EXPORTER_STAMP_OLD */
	__aligned_u64 first_page;
	__aligned_u64 pages;		/* at least 1 */
	__aligned_u64 seed;
	__aligned_u64 wrong_pages;	/* out */
	__aligned_u64 wrong_offset;	/* out: in bytes, of the first wrong word */
	__aligned_u64 expected;		/* out: what should be there */
	__aligned_u64 found;		/* out */
};

struct qrdma_exporter_query {
	__s32 fd;
	__u32 reserved;
	__aligned_u64 size;		/* out: bytes */
	__u32 kind;			/* out: of the layout; 0 after RELEASE */
	__u32 segments;			/* out: of the layout */
	__u32 revoked;			/* out: 0 or 1 */
	__u32 pinned;			/* out: pins held */
	__u32 mapped;			/* out: mappings held */
	__u32 attached;			/* out: importers */
	__aligned_u64 attaches;		/* out: counters from here on */
	__aligned_u64 pins;
	__aligned_u64 unpins;
	__aligned_u64 maps;		/* that succeeded */
	__aligned_u64 unmaps;
	__aligned_u64 moves;
	__aligned_u64 revokes;
	__aligned_u64 order_errors;	/* unpinned while mapped, detached while mapped or pinned */
};

struct qrdma_exporter_segment {
	__aligned_u64 address;		/* physical */
	__aligned_u64 length;		/* bytes */
};

/* Segments of the layout now, from the first on. ENODEV: released. */
struct qrdma_exporter_segments {
	__s32 fd;
	__u32 capacity;			/* of the array */
	__aligned_u64 segments;		/* struct qrdma_exporter_segment array */
	__u32 count;			/* out: of the layout; min(count, capacity) were written */
	__u32 reserved;
};

/*
 * fail_maps: that many mappings from now on fail with ENOMEM. revoke_after_maps:
 * the n-th successful mapping from now on queues a revocation, which waits for
 * the reservation lock that the importer holds and comes as soon as it drops it.
 * 0 switches off.
 */
struct qrdma_exporter_trigger {
	__s32 fd;
	__u32 fail_maps;
	__u32 revoke_after_maps;
	__u32 reserved;
};

#define QRDMA_EXPORTER_CREATE	_IOWR('q', 0x70, struct qrdma_exporter_create)
#define QRDMA_EXPORTER_MOVE	_IOW('q', 0x71, struct qrdma_exporter_move)
#define QRDMA_EXPORTER_REVOKE	_IOW('q', 0x72, struct qrdma_exporter_buffer)
#define QRDMA_EXPORTER_RELEASE	_IOW('q', 0x73, struct qrdma_exporter_buffer)
#define QRDMA_EXPORTER_STAMP	_IOWR('q', 0x74, struct qrdma_exporter_stamp)
#define QRDMA_EXPORTER_CHECK	_IOWR('q', 0x75, struct qrdma_exporter_stamp)
#define QRDMA_EXPORTER_QUERY	_IOWR('q', 0x76, struct qrdma_exporter_query)
#define QRDMA_EXPORTER_SEGMENTS	_IOWR('q', 0x77, struct qrdma_exporter_segments)
#define QRDMA_EXPORTER_TRIGGER	_IOW('q', 0x78, struct qrdma_exporter_trigger)

/*
 * A stamped page holds 64-bit words in the CPU's order: word i of page n under a
 * seed is qrdma_exporter_stamp_base(seed, n) + i. Every word of every page is
 * another, so data from a wrong place shows.
 */
static inline __u64 qrdma_exporter_stamp_base(__u64 seed, __u64 page)
{
	__u64 x = seed + (page + 1) * 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

#endif /* QRDMA_EXPORTER_H */
