// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: tests of the driver's table arithmetic (table.h), natively.
 *
 * The values are those that Linux 7.3's own arithmetic gives for the same
 * regions.
 */
#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#include "table.h"

#define KIB(n) ((guint64)(n) << 10)
#define MIB(n) ((guint64)(n) << 20)
#define GIB(n) ((guint64)(n) << 30)

/* Every power of two from 4 KiB to 1 TiB, and what a card of few sizes can do. */
#define ALL_SIZES ((2ull << QRDMA_LOG_PAGE_SIZE_MAX) - (1ull << QRDMA_LOG_PAGE_SIZE_MIN))
#define FEW_SIZES (KIB(4) | MIB(2) | GIB(1))

/* ------------------------------------------------------------------ levels */

struct level_case {
	const char *name;
	guint64 entries;
	unsigned int level;
	guint64 leaves;		/* level 2 */
	guint32 last_leaf;
};

static const struct level_case level_cases[] = {
	{ "1", 1, 0, 0, 0 },
	{ "2", 2, 1, 0, 0 },
	{ "512", 512, 1, 0, 0 },
	{ "513", 513, 2, 2, 1 },
	{ "1024", 1024, 2, 2, 512 },
	{ "1537", 1537, 2, 4, 1 },
	{ "262144", 262144, 2, 512, 512 },
	{ "262145", 262145, 2, 513, 1 },
	{ "3 GiB of 4 KiB pages", GIB(3) / KIB(4), 2, 1536, 512 },
};

static void test_level(gconstpointer data)
{
	const struct level_case *c = data;

	g_assert_cmpuint(qrdma_table_level(c->entries), ==, c->level);
	if (c->level < 2)
		return;
	g_assert_cmpuint(qrdma_table_leaves(c->entries), ==, c->leaves);
	g_assert_cmpuint(qrdma_table_leaf_entries(c->entries, c->leaves - 1), ==,
			 c->last_leaf);
	g_assert_cmpuint(qrdma_table_leaf_entries(c->entries, 0), ==,
			 QRDMA_LEAF_PBLES);
}

/* The leaves hold all entries, and no more. */
static void test_leaves_add_up(void)
{
	for (guint64 entries = 513; entries < 5000; entries += 7) {
		guint64 sum = 0;

		for (guint64 i = 0; i < qrdma_table_leaves(entries); i++)
			sum += qrdma_table_leaf_entries(entries, i);
		g_assert_cmpuint(sum, ==, entries);
	}
}

static void test_units(void)
{
	g_assert_cmpuint(qrdma_table_round_up(0), ==, 0);
	g_assert_cmpuint(qrdma_table_round_up(1), ==, 8);
	g_assert_cmpuint(qrdma_table_round_up(8), ==, 8);
	g_assert_cmpuint(qrdma_table_round_up(9), ==, 16);
	g_assert_cmpuint(qrdma_table_round_up(1537), ==, 1544);
}

/* ------------------------------------------------------------------ blocks */

struct blocks_case {
	const char *name;
	guint64 start;
	guint64 length;
	unsigned int page_shift;
	guint64 blocks;
};

static const struct blocks_case blocks_cases[] = {
	{ "one byte", 0x1fff, 1, 12, 1 },
	{ "two bytes over a boundary", 0x1fff, 2, 12, 2 },
	{ "64 MiB of 2 MiB", 0, MIB(64), 21, 32 },
	{ "64 MiB at 0x40200000 in a 128 MiB block", 0x40200000, MIB(64), 27, 1 },
	{ "64 MiB at 0x40200000 of 2 MiB", 0x40200000, MIB(64), 21, 32 },
	{ "3 x 2 MiB + 4096, 1 GiB", 0x7f0000000000, 3 * MIB(2) + 4096, 30, 1 },
	{ "3 x 2 MiB + 4096, 2 MiB", 0x7f0000000000, 3 * MIB(2) + 4096, 21, 4 },
	{ "3 x 2 MiB + 4096, 4 KiB", 0x7f0000000000, 3 * MIB(2) + 4096, 12, 1537 },
	{ "the same at + 0x1000, 4 KiB", 0x7f0000001000, 3 * MIB(2) + 4096, 12,
	  1537 },
	{ "the same at + 0x1000, 1 GiB", 0x7f0000001000, 3 * MIB(2) + 4096, 30,
	  1 },
	{ "0x5000 at 0x1e000 over a 256 KiB block", 0x1e000, 0x5000, 18, 1 },
	{ "0x5000 at 0x1e000 over two 128 KiB blocks", 0x1e000, 0x5000, 17, 2 },
	{ "up to the last byte", G_MAXUINT64 - 0xfff, 0x1000, 12, 1 },
	{ "the last two blocks", G_MAXUINT64 - 0x1fff, 0x2000, 12, 2 },
	{ "1 GiB of 4 KiB, and a page", 0x1000, GIB(1) + KIB(4), 12, 262145 },
};

static void test_blocks(gconstpointer data)
{
	const struct blocks_case *c = data;

	g_assert_cmpuint(qrdma_table_blocks(c->start, c->length, c->page_shift),
			 ==, c->blocks);
}

/* ------------------------------------------------------- page-size changes */

struct plan_case {
	const char *name;
	guint64 start;
	guint64 length;
	unsigned int from;
	unsigned int to;
	guint64 page_sizes;
	struct qrdma_page_size_plan plan;
};

static const struct plan_case plan_cases[] = {
	{ "64 MiB, 4K to 2M", 0, MIB(64), 12, 21, ALL_SIZES,
	  { .covering_shift = 26, .page_shift = 21, .n = 32, .x = 8, .zap = 8,
	    .rest = 24, .first = 8 } },
	{ "64 MiB, 2M to 4K", 0, MIB(64), 21, 12, ALL_SIZES,
	  { .covering_shift = 26, .page_shift = 12, .n = 16384, .x = 8, .zap = 8,
	    .rest = 16376, .first = 8 } },
	{ "8 MiB, 4K to 2M: the whole table", 0, MIB(8), 12, 21, ALL_SIZES,
	  { .covering_shift = 23, .page_shift = 21, .n = 4, .x = 8, .zap = 2048,
	    .rest = 0, .first = 4 } },
	{ "3 x 2 MiB + 4096 at 0x1000, 2M to 4K", 0x1000, 3 * MIB(2) + 4096, 21,
	  12, ALL_SIZES,
	  { .covering_shift = 23, .page_shift = 12, .n = 1537, .x = 8, .zap = 8,
	    .rest = 1529, .first = 8 } },
	{ "one page", 0x1000, 0x1000, 12, 13, ALL_SIZES,
	  { .covering_shift = 13, .page_shift = 13, .n = 1, .x = 8, .zap = 8,
	    .rest = 0, .first = 1 } },
	{ "back after a change that stopped at the covering size", 0, MIB(64),
	  26, 12, ALL_SIZES,
	  { .covering_shift = 26, .page_shift = 12, .n = 16384, .x = 8, .zap = 8,
	    .rest = 16376, .first = 8 } },
	{ "a region larger than the largest page", 0, GIB(64), 21, 12, FEW_SIZES,
	  { .covering_shift = 30, .page_shift = 12, .n = 16777216, .x = 64,
	    .zap = 64, .rest = 16777152, .first = 64 } },
	{ "few sizes: 3 x 2 MiB + 4096, 2M to 4K", 0x7f0000000000,
	  3 * MIB(2) + 4096, 21, 12, FEW_SIZES,
	  { .covering_shift = 30, .page_shift = 12, .n = 1537, .x = 8, .zap = 8,
	    .rest = 1529, .first = 8 } },
	{ "few sizes: 3 x 2 MiB + 4096, 1G to 2M", 0x7f0000000000,
	  3 * MIB(2) + 4096, 30, 21, FEW_SIZES,
	  { .covering_shift = 30, .page_shift = 21, .n = 4, .x = 8, .zap = 8,
	    .rest = 0, .first = 4 } },
	{ "new size above what covers the length", 0x3ff000, 0x2000, 12, 23,
	  ALL_SIZES,
	  { .covering_shift = 23, .page_shift = 23, .n = 1, .x = 8, .zap = 8,
	    .rest = 0, .first = 1 } },
};

static void test_plan(gconstpointer data)
{
	const struct plan_case *c = data;
	struct qrdma_page_size_plan plan;

	plan = qrdma_plan_page_size(c->start, c->length, c->from, c->to,
				    c->page_sizes);
	g_assert_cmpuint(plan.covering_shift, ==, c->plan.covering_shift);
	g_assert_cmpuint(plan.page_shift, ==, c->plan.page_shift);
	g_assert_cmpuint(plan.n, ==, c->plan.n);
	g_assert_cmpuint(plan.x, ==, c->plan.x);
	g_assert_cmpuint(plan.zap, ==, c->plan.zap);
	g_assert_cmpuint(plan.rest, ==, c->plan.rest);
	g_assert_cmpuint(plan.first, ==, c->plan.first);
}

/* What makes the steps safe, for regions and sizes of all kinds. */
static void check_plan_is_safe(guint64 start, guint64 length, unsigned int from,
			       unsigned int to, guint64 page_sizes)
{
	struct qrdma_page_size_plan plan;
	guint64 capacity, covered;

	plan = qrdma_plan_page_size(start, length, from, to, page_sizes);
	capacity = qrdma_table_blocks(start, length, QRDMA_LOG_PAGE_SIZE_MIN);
	covered = qrdma_table_blocks(start, length, plan.covering_shift);

	/* A size the card has. */
	g_assert_cmpuint(page_sizes >> plan.covering_shift & 1, ==, 1);
	/* After step 2 nothing can be reached but what step 1 made absent. */
	g_assert_cmpuint(covered, <=, plan.zap);
	/* Step 3 touches nothing that can be reached, and begins at a unit. */
	g_assert_true(!plan.rest || covered <= plan.x);
	g_assert_cmpuint(plan.x % QRDMA_PBLES_PER_UNIT, ==, 0);
	/* After step 4 what can be reached is loaded, or was made absent. */
	g_assert_true(plan.rest ? plan.x + plan.rest == plan.n :
				  plan.n <= plan.zap);
	/* After step 5 everything is loaded, once. */
	g_assert_cmpuint(plan.first + plan.rest, ==, plan.n);
	/* No step leaves the table. */
	g_assert_cmpuint(plan.zap, <=, qrdma_table_round_up(capacity));
}

static void test_plan_is_safe(void)
{
	static const guint64 sizes[] = { ALL_SIZES, FEW_SIZES };

	for (int i = 0; i < 200000; i++) {
		guint64 page_sizes = sizes[g_test_rand_int_range(0, 2)];
		guint64 start = (guint64)g_test_rand_int() << 32 |
				(guint32)g_test_rand_int();
		guint64 length = ((guint64)(guint32)g_test_rand_int() << 5) >>
				 g_test_rand_int_range(0, 37);
		unsigned int from, to;

		start >>= g_test_rand_int_range(1, 64);
		do {
			from = g_test_rand_int_range(12, 41);
		} while (!(page_sizes >> from & 1));
		do {
			to = g_test_rand_int_range(12, 41);
		} while (!(page_sizes >> to & 1));
		check_plan_is_safe(start, length + 1, from, to, page_sizes);
	}
}

/* ------------------------------------------------------------------ chunks */

/* 24 entries at byte offset 64, in as many writes as the limit makes it. */
static void test_chunks(void)
{
	g_assert_cmpuint(qrdma_table_chunk(24, 65536), ==, 24);
	g_assert_cmpuint(qrdma_table_chunk(8192, 65536), ==, 8192);
	g_assert_cmpuint(qrdma_table_chunk(8193, 65536), ==, 8192);
	g_assert_cmpuint(qrdma_table_chunk(24, 64), ==, 8);
	/* 2^32 entries and one: no truncation. */
	g_assert_cmpuint(qrdma_table_chunk((1ull << 32) + 1, 65536), ==, 8192);
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(level_cases); i++) {
		g_autofree char *path = g_strdup_printf("/table/level/%s",
							level_cases[i].name);

		g_test_add_data_func(path, &level_cases[i], test_level);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(blocks_cases); i++) {
		g_autofree char *path = g_strdup_printf("/table/blocks/%s",
							blocks_cases[i].name);

		g_test_add_data_func(path, &blocks_cases[i], test_blocks);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(plan_cases); i++) {
		g_autofree char *path = g_strdup_printf("/table/page-size/%s",
							plan_cases[i].name);

		g_test_add_data_func(path, &plan_cases[i], test_plan);
	}
	g_test_add_func("/table/leaves-add-up", test_leaves_add_up);
	g_test_add_func("/table/units", test_units);
	g_test_add_func("/table/page-size/is-safe", test_plan_is_safe);
	g_test_add_func("/table/chunks", test_chunks);
	return g_test_run();
}
