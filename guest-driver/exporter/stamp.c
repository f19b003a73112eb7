// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma_exporter: what the pages hold. qrdma_exporter.h defines the stamp.
 */
#include <linux/highmem.h>
#include <linux/sched.h>

#include "exporter.h"

#define WORDS	(PAGE_SIZE / sizeof(u64))

void exporter_stamp_pages(const struct exporter_layout *layout, u32 first,
			  u32 count, u64 seed)
{
	u32 i, word;

	for (i = first; i < first + count; i++) {
		u64 value = qrdma_exporter_stamp_base(seed, i);
		u64 *page = kmap_local_page(exporter_layout_page(layout, i));

		for (word = 0; word < WORDS; word++)
			WRITE_ONCE(page[word], value + word);
		kunmap_local(page);
		cond_resched();
	}
}

/* The first word that differs, or WORDS. A device may write meanwhile. */
static u32 first_wrong(const u64 *page, u64 value, u64 *found)
{
	u32 word;

	for (word = 0; word < WORDS; word++) {
		*found = READ_ONCE(page[word]);
		if (*found != value + word)
			break;
	}
	return word;
}

void exporter_check_pages(const struct exporter_layout *layout, u32 first,
			  u32 count, u64 seed,
			  struct qrdma_exporter_stamp *result)
{
	u32 i;

	for (i = first; i < first + count; i++) {
		u64 value = qrdma_exporter_stamp_base(seed, i);
		u64 *page = kmap_local_page(exporter_layout_page(layout, i));
		u64 found;
		u32 word = first_wrong(page, value, &found);

		kunmap_local(page);
		if (word < WORDS && !result->wrong_pages++) {
			result->wrong_offset = (u64)i * PAGE_SIZE +
					       word * sizeof(u64);
			result->expected = value + word;
			result->found = found;
		}
		cond_resched();
	}
}

void exporter_copy_pages(const struct exporter_layout *to,
			 const struct exporter_layout *from)
{
	u32 i;

	for (i = 0; i < to->pages; i++) {
		copy_highpage(exporter_layout_page(to, i),
			      exporter_layout_page(from, i));
		cond_resched();
	}
}
