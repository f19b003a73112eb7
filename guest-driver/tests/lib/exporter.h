/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exporter's ioctls as functions. Those without a result bail out when the
 * exporter refuses; those that return int give 0 or an errno.
 */
#ifndef EXPORTER_CLIENT_H
#define EXPORTER_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "qrdma_exporter.h"

#define MIB (1ull << 20)
#define GIB (1ull << 30)

/* How a buffer is cut. kind other than EXPLICIT: no lengths. */
struct layout {
	uint32_t kind;			/* enum qrdma_exporter_layout_kind */
	uint32_t count;
	const uint64_t *lengths;	/* bytes */
};

#define LAYOUT(kind_) ((struct layout){ .kind = QRDMA_EXPORTER_##kind_ })

const char *layout_name(uint32_t kind);

/* True if /dev/qrdma_exporter is there. */
bool exporter_present(void);
/* The dma-buf. */
int exporter_create(uint64_t size, struct layout layout);
int exporter_try_create(uint64_t size, struct layout layout, int *fd);
int exporter_move(int fd, struct layout layout, uint32_t flags,
		  uint32_t hold_ms);
int exporter_revoke(int fd);
int exporter_release(int fd);
/* All pages of a buffer of @size bytes. */
void exporter_stamp(int fd, uint64_t size, uint64_t seed);
/* Number of wrong pages among all of @size bytes; notes the first. */
uint64_t exporter_check(int fd, uint64_t size, uint64_t seed);
/* The same for the memory that a move with KEEP_OLD left, which it stamped. */
uint64_t exporter_check_old(int fd, uint64_t size);
struct qrdma_exporter_query exporter_query(int fd);
void exporter_trigger(int fd, uint32_t fail_maps, uint32_t revoke_after_maps);
/* Array of *@count segments; free() it. */
struct qrdma_exporter_segment *exporter_segments(int fd, uint32_t *count);
/* The CPU's mapping of a dma-buf: shared, for reading and writing. */
void *dmabuf_map(int fd, uint64_t size);
/* The device's file, for calls that are meant to be refused. */
int exporter_device(void);

#endif
