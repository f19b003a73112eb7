/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "stamp.h"
#include "tap.h"

#define HUGE (2ull << 20)
#ifndef MAP_HUGE_2MB
#define MAP_HUGE_2MB (21 << 26)
#endif

bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done;

	if (fd < 0)
		return false;
	done = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return done;
}

bool write_number(const char *path, uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_text(path, text);
}

void hugetlb_reserve(uint64_t pages)
{
	const char *const path = "/proc/sys/vm/nr_hugepages";
	unsigned long long have = 0;
	FILE *file = fopen(path, "re");

	if (!file)
		return;
	if (fscanf(file, "%llu", &have) != 1)
		have = 0;
	fclose(file);
	if (have < pages)
		write_number(path, pages);
}

/* @align: a power of two. */
static bool map(struct memory *memory, uint64_t length, uint64_t align)
{
	uint64_t start;

	memory->length = length;
	memory->mapped = length + align;
	memory->mapping = mmap(NULL, memory->mapped, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
			       0);
	if (memory->mapping == MAP_FAILED)
		return false;
	start = ((uintptr_t)memory->mapping + align - 1) & ~(align - 1);
	memory->address = (void *)(uintptr_t)start;
	return true;
}

static void touch(struct memory *memory, uint64_t page)
{
	*((volatile char *)memory->address + page * PAGE) = 0;
}

bool memory_scattered(struct memory *memory, uint64_t length, uint64_t seed)
{
	uint64_t pages = (length + PAGE - 1) / PAGE;
	uint32_t *order;
	uint64_t i;

	if (!map(memory, length, PAGE))
		return false;
	/* A kernel without huge pages says EINVAL, which is as good. */
	madvise(memory->mapping, memory->mapped, MADV_NOHUGEPAGE);
	order = malloc(pages * sizeof(*order));
	tap_need(order, "no memory");
	for (i = 0; i < pages; i++) {
		uint64_t other = random_below(&seed, i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (i = 0; i < pages; i++)
		touch(memory, order[i]);
	free(order);
	return true;
}

bool memory_transparent_huge(struct memory *memory, uint64_t length)
{
	uint64_t i;

	if (!map(memory, length, HUGE))
		return false;
	if (madvise(memory->address, length, MADV_HUGEPAGE)) {
		memory_free(memory);
		return false;
	}
	for (i = 0; i < length / PAGE; i++)
		touch(memory, i);
	return true;
}

bool memory_hugetlb(struct memory *memory, uint64_t length)
{
	uint64_t i;

	hugetlb_reserve(length / HUGE);
	memory->length = length;
	memory->mapped = length;
	memory->mapping = mmap(NULL, length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			       MAP_HUGE_2MB, -1, 0);
	if (memory->mapping == MAP_FAILED)
		return false;
	memory->address = memory->mapping;
	for (i = 0; i < length / HUGE; i++)
		touch(memory, i * (HUGE / PAGE));
	return true;
}

void memory_free(struct memory *memory)
{
	munmap(memory->mapping, memory->mapped);
	*memory = (struct memory){};
}
