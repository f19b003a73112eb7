/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "blocks.h"
#include "exporter.h"
#include "stamp.h"
#include "tap.h"

#define LOG_PAGE_SIZE_MAX	40
#define LEAF_ENTRIES		512
#define PAGEMAP_PRESENT		(1ull << 63)
#define PAGEMAP_FRAME		((1ull << 55) - 1)

void extents_add(struct extents *extents, uint64_t address, uint64_t length)
{
	struct extent *last = extents->list + extents->count - 1;

	if (extents->count && last->address + last->length == address) {
		last->length += length;
		return;
	}
	if (extents->count == extents->room) {
		extents->room = extents->room ? 2 * extents->room : 64;
		extents->list = realloc(extents->list,
					extents->room * sizeof(*last));
		tap_need(extents->list, "no memory");
	}
	extents->list[extents->count++] = (struct extent){ address, length };
}

void extents_free(struct extents *extents)
{
	free(extents->list);
	*extents = (struct extents){};
}

bool extents_of_memory(struct extents *extents, const void *memory,
		       uint64_t length)
{
	uint64_t address = (uintptr_t)memory, end = address + length;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	if (fd < 0)
		return false;
	while (address < end) {
		uint64_t offset = address % PAGE;
		uint64_t bytes = PAGE - offset;

		if (pread(fd, &entry, sizeof(entry),
			  address / PAGE * sizeof(entry)) != sizeof(entry) ||
		    !(entry & PAGEMAP_PRESENT) || !(entry & PAGEMAP_FRAME))
			break;
		if (bytes > end - address)
			bytes = end - address;
		extents_add(extents, (entry & PAGEMAP_FRAME) * PAGE + offset,
			    bytes);
		address += bytes;
	}
	close(fd);
	return address == end;
}

void extents_of_buffer(struct extents *extents, int fd, uint64_t offset,
		       uint64_t length)
{
	struct qrdma_exporter_segment *segments;
	uint64_t start = 0, end = offset + length;
	uint32_t count, i;

	segments = exporter_segments(fd, &count);
	for (i = 0; i < count; i++) {
		uint64_t low = start > offset ? start : offset;
		uint64_t high = start + segments[i].length;

		if (high > end)
			high = end;
		if (low < high)
			extents_add(extents,
				    segments[i].address + (low - start),
				    high - low);
		start += segments[i].length;
	}
	free(segments);
}

static bool fits(const struct extents *extents, uint64_t iova,
		 unsigned int log_page_size)
{
	uint64_t mask = (1ull << log_page_size) - 1;
	uint64_t i;

	for (i = 0; i < extents->count; i++) {
		if ((iova ^ extents->list[i].address) & mask)
			return false;
		if (i && iova & mask)
			return false;
		iova += extents->list[i].length;
	}
	return true;
}

unsigned int best_log_page_size(const struct extents *extents, uint64_t iova)
{
	unsigned int log_page_size = 12;
	uint64_t length = 0, i;

	for (i = 0; i < extents->count; i++)
		length += extents->list[i].length;
	while (log_page_size < LOG_PAGE_SIZE_MAX &&
	       blocks_at(iova, length, log_page_size) > 1 &&
	       fits(extents, iova, log_page_size + 1))
		log_page_size++;
	return log_page_size;
}

uint64_t blocks_at(uint64_t iova, uint64_t length, unsigned int log_page_size)
{
	return ((iova + length - 1) >> log_page_size) -
	       (iova >> log_page_size) + 1;
}

struct blocks blocks_of(uint64_t iova, uint64_t length,
			unsigned int log_page_size, unsigned int level)
{
	struct blocks blocks = {
		.log_page_size = log_page_size,
		.entries = blocks_at(iova, length, log_page_size),
		.level = level,
	};

	if (level == 2) {
		blocks.leaves = (blocks.entries + LEAF_ENTRIES - 1) /
				LEAF_ENTRIES;
		blocks.last_leaf = blocks.entries -
				   (blocks.leaves - 1) * LEAF_ENTRIES;
	}
	return blocks;
}
