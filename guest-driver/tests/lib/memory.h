/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of the process, in the shapes that a registration can meet. */
#ifndef MEMORY_H
#define MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct memory {
	void *address;			/* page aligned; huge pages: aligned to 2 MiB */
	uint64_t length;
	void *mapping;
	uint64_t mapped;
};

/*
 * Pages of 4 KiB, scattered: touched in random order, so that neighbours come
 * from different places.
 */
bool memory_scattered(struct memory *memory, uint64_t length, uint64_t seed);
/* Transparent huge pages, if the kernel gives any. */
bool memory_transparent_huge(struct memory *memory, uint64_t length);
/* hugetlb pages of 2 MiB; the pool grows for them. @length: whole huge pages. */
bool memory_hugetlb(struct memory *memory, uint64_t length);
void memory_free(struct memory *memory);
/* To a file of /proc or /sys. False and errno. */
bool write_text(const char *path, const char *text);
bool write_number(const char *path, uint64_t value);

/* The pool of 2 MiB hugetlb pages has at least as many, if the kernel can. */
void hugetlb_reserve(uint64_t pages);

#endif
