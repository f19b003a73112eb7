/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which page size a region should get: worked out here from where its memory
 * lies, to be compared with what the driver says.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Where a region's memory lies: runs of physically contiguous bytes, in order. */
struct extent {
	uint64_t address;
	uint64_t length;
};

struct extents {
	struct extent *list;
	uint64_t count;
	uint64_t room;
};

struct blocks {
	unsigned int log_page_size;
	uint64_t entries;
	unsigned int level;		/* 0: contiguous */
	uint64_t leaves;		/* level 2 */
	uint64_t last_leaf;		/* entries of the last one */
};

/* Joins what touches. */
void extents_add(struct extents *extents, uint64_t address, uint64_t length);
void extents_free(struct extents *extents);
/*
 * Memory of the process behind @memory. False if the kernel does not tell
 * (/proc/self/pagemap wants root). All pages must be present.
 */
bool extents_of_memory(struct extents *extents, const void *memory,
		       uint64_t length);
/* @offset, @length: part of an exporter's buffer. */
void extents_of_buffer(struct extents *extents, int fd, uint64_t offset,
		       uint64_t length);

/*
 * The largest power of two from 4 KiB such that every block of that size, cut at
 * multiples of it in IOVA space, lies contiguous and equally aligned; no larger
 * than what one block for the whole needs. @iova: of the first byte of the
 * extents.
 */
unsigned int best_log_page_size(const struct extents *extents, uint64_t iova);
uint64_t blocks_at(uint64_t iova, uint64_t length, unsigned int log_page_size);
/* @level: what the driver took. */
struct blocks blocks_of(uint64_t iova, uint64_t length,
			unsigned int log_page_size, unsigned int level);

#endif
