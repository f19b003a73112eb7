/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stamps: what pages of test buffers hold. The same as the exporter's, so that
 * kernel and user space can look after each other.
 */
#ifndef STAMP_H
#define STAMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE 4096ull

/* Fill @count pages at @memory; the first is page @index of its buffer. */
void stamp_pages(void *memory, uint64_t seed, uint64_t index, uint64_t count);
/*
 * Number of pages that differ. @wrong gets the byte offset of the first wrong
 * word (from @memory); may be NULL.
 */
uint64_t stamp_check(const void *memory, uint64_t seed, uint64_t index,
		     uint64_t count, uint64_t *wrong);
/* Every word of the page is of one seed or of the other. */
bool stamp_check_either(const void *page, uint64_t seed, uint64_t other,
			uint64_t index);

/* A pseudo-random sequence that is the same everywhere for a seed. */
uint64_t random_next(uint64_t *state);
/* 0..@limit-1, @limit not 0. */
uint64_t random_below(uint64_t *state, uint64_t limit);

#endif
