/*
 * qrdma engine tests: arithmetic of PBLE tables.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-card.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Leaves of a level 2 table, and what the last of them holds. */
static void test_leaves(void)
{
    static const struct {
        uint64_t entries, leaves, last;
    } cases[] = {
        { 1, 1, 1 },
        { 511, 1, 511 },
        { 512, 1, 512 },
        { 513, 2, 1 },
        { 1024, 2, 512 },
        { 1537, 4, 1 },
        { 262144, 512, 512 },
        { 262145, 513, 1 },
        { 1u << 30, 1u << 21, 512 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t leaves = qrdma_pble_leaves(cases[i].entries);

        g_assert_cmpuint(leaves, ==, cases[i].leaves);
        g_assert_cmpuint(qrdma_pble_leaf_entries(cases[i].entries, leaves - 1),
                         ==, cases[i].last);
        g_assert_cmpuint(qrdma_pble_leaf_entries(cases[i].entries, leaves), ==,
                         0);
        if (leaves > 1) {
            g_assert_cmpuint(qrdma_pble_leaf_entries(cases[i].entries, 0), ==,
                             QRDMA_LEAF_PBLES);
        }
    }
    g_assert_cmpuint(qrdma_pble_leaves(0), ==, 0);
}

/* Blocks that a region touches at a page size. */
static void test_blocks(void)
{
    static const struct {
        uint64_t start, length;
        unsigned log_page_size;
        uint64_t blocks;
    } cases[] = {
        { 0, 1, 12, 1 },
        { 4095, 1, 12, 1 },
        { 4095, 2, 12, 2 },
        { 0, 64 * MIB, 12, 16384 },
        { 0, 64 * MIB, 21, 32 },
        { 0, 64 * MIB, 26, 1 },
        /* cases.md 1c */
        { 0x1000, 6 * MIB + 4096, 21, 4 },
        { 0x1000, 6 * MIB + 4096, 12, 1537 },
        /* cases.md 6: at 128 MiB one block reaches */
        { 0x40200000, 64 * MIB, 27, 1 },
        { 0x40200000, 64 * MIB, 21, 32 },
        { 0x40200000, 64 * MIB, 26, 2 },
        /* cases.md 29 */
        { 0x7f0000000000, 6 * MIB + 4096, 30, 1 },
        { 0x7f0000000000, 6 * MIB + 4096, 21, 4 },
        { 0x7f0000000000, 6 * MIB + 4096, 12, 1537 },
        /* cases.md 30 */
        { 0x1e000, 0x5000, 18, 1 },
        { 0x1e000, 0x5000, 17, 2 },
        /* up to the last byte that a region can have */
        { UINT64_MAX - 1, 1, 12, 1 },
        { 0, UINT64_MAX, 40, 1ull << 24 },
        { 0, UINT64_MAX, 12, 1ull << 52 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(qrdma_pble_blocks(cases[i].start, cases[i].length,
                                           cases[i].log_page_size), ==,
                         cases[i].blocks);
    }
}

static void test_block_of(void)
{
    /* The first block begins before the region does. */
    g_assert_cmpuint(qrdma_pble_block_of(0x1ff000, 21, 0x1ff000), ==, 0);
    g_assert_cmpuint(qrdma_pble_block_of(0x1ff000, 21, 0x1fffff), ==, 0);
    g_assert_cmpuint(qrdma_pble_block_of(0x1ff000, 21, 0x200000), ==, 1);
    g_assert_cmpuint(qrdma_pble_block_of(0x1ff000, 12, 0x200000), ==, 1);
}

/* cases.md 19: beyond 4 GiB of PBLE space. */
static void test_sd_of_address(void)
{
    g_assert_cmpuint(qrdma_hmc_sd_of_address(0x100200000ull), ==, 2049);
    g_assert_cmpuint(qrdma_hmc_sd_of_address(0x200000 - 1), ==, 0);
    g_assert_cmpuint(qrdma_hmc_sd_of_address(0x1ffffffffull), ==, 4095);
}

static void test_space(void)
{
    g_assert_cmpuint(QRDMA_PBLE_SPACE, ==, 1ull << 30);
    g_assert_true(qrdma_hmc_in_space(0, QRDMA_PBLE_SPACE));
    g_assert_true(qrdma_hmc_in_space(QRDMA_PBLE_SPACE - 1, 1));
    g_assert_false(qrdma_hmc_in_space(QRDMA_PBLE_SPACE - 1, 2));
    g_assert_false(qrdma_hmc_in_space(QRDMA_PBLE_SPACE, 1));
    g_assert_false(qrdma_hmc_in_space(8, UINT64_MAX - 4));
    g_assert_false(qrdma_hmc_in_space(UINT64_MAX, 2));
}

/* What a table takes at its pble_index, in whole units. */
static void test_footprint(void)
{
    g_assert_cmpuint(qrdma_pble_footprint(0, 1), ==, 0);
    g_assert_cmpuint(qrdma_pble_footprint(1, 1), ==, 8);
    g_assert_cmpuint(qrdma_pble_footprint(1, 512), ==, 512);
    g_assert_cmpuint(qrdma_pble_footprint(1, 513), ==, 520);
    g_assert_cmpuint(qrdma_pble_footprint(2, 513), ==, 8);
    g_assert_cmpuint(qrdma_pble_footprint(2, 262145), ==, 520);
    g_assert_cmpuint(qrdma_pble_footprint(2, 1u << 30), ==, 1u << 21);
}

static void test_table_bytes(void)
{
    QrdmaMkc mkc = { .translation = QRDMA_TRANSLATION_BLOCK_TABLE };

    mkc.capacity = 1;
    g_assert_cmpuint(qrdma_pble_table_bytes(&mkc), ==, 64);
    mkc.level = 1;
    mkc.capacity = 9;
    g_assert_cmpuint(qrdma_pble_table_bytes(&mkc), ==, 128);
    mkc.level = 2;
    mkc.capacity = 1u << 30;
    g_assert_cmpuint(qrdma_pble_table_bytes(&mkc), ==, 1ull << 33);
    mkc.translation = QRDMA_TRANSLATION_PHYSICAL;
    g_assert_cmpuint(qrdma_pble_table_bytes(&mkc), ==, 0);
}

/* cases.md 9 */
static void test_write_in_table(void)
{
    const uint64_t bytes = 131080 * 8;

    g_assert_true(qrdma_pble_write_in_table(bytes, 0, bytes));
    g_assert_true(qrdma_pble_write_in_table(bytes, 131072 * 8, 64));
    g_assert_false(qrdma_pble_write_in_table(bytes, 131072 * 8, 128));
    g_assert_true(qrdma_pble_write_in_table(bytes, bytes, 0));
    g_assert_false(qrdma_pble_write_in_table(bytes, bytes, 64));
    g_assert_false(qrdma_pble_write_in_table(bytes, bytes + 64, 0));
    g_assert_false(qrdma_pble_write_in_table(bytes, UINT64_MAX - 63, 64));
    g_assert_false(qrdma_pble_write_in_table(bytes, UINT64_MAX - 63, 128));
    g_assert_false(qrdma_pble_write_in_table(0, 0, 64));
}

static void test_check_pble(void)
{
    static const struct {
        uint64_t pble;
        unsigned log_page_size;
        QrdmaPbleVerdict verdict;
    } cases[] = {
        { 0, 12, QRDMA_PBLE_ABSENT },
        { 0x1000, 12, QRDMA_PBLE_ABSENT },
        { 0x1001, 12, QRDMA_PBLE_GOOD },
        { 0x1002, 12, QRDMA_PBLE_GOOD },
        { 0x1003, 13, QRDMA_PBLE_MALFORMED },
        { 0x2003, 13, QRDMA_PBLE_GOOD },
        { 0x1004, 12, QRDMA_PBLE_MALFORMED },
        { 0x1803, 12, QRDMA_PBLE_MALFORMED },
        { 0x10000000003, 40, QRDMA_PBLE_GOOD },
        { 0x8000000003, 40, QRDMA_PBLE_MALFORMED },
        { 0x8000000003, 39, QRDMA_PBLE_GOOD },
        { 0xfffffffffffff003, 12, QRDMA_PBLE_GOOD },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(qrdma_pble_check(cases[i].pble, cases[i].log_page_size),
                        ==, cases[i].verdict);
    }
}

static void test_check_root(void)
{
    static const struct {
        uint64_t entry;
        QrdmaPbleVerdict verdict;
    } cases[] = {
        { 0, QRDMA_PBLE_ABSENT },
        { QRDMA_ROOT_VALID, QRDMA_PBLE_GOOD },
        { QRDMA_ROOT_VALID | 8, QRDMA_PBLE_GOOD },
        { QRDMA_ROOT_VALID | 4, QRDMA_PBLE_MALFORMED },
        { 8, QRDMA_PBLE_MALFORMED },
        { QRDMA_ROOT_VALID | 1ull << 62, QRDMA_PBLE_MALFORMED },
        { QRDMA_ROOT_VALID | 1ull << 32, QRDMA_PBLE_MALFORMED },
        { QRDMA_ROOT_VALID | ((1u << 30) - 8), QRDMA_PBLE_GOOD },
        { QRDMA_ROOT_VALID | 1u << 30, QRDMA_PBLE_MALFORMED },
        { QRDMA_ROOT_VALID | 0xfffffff8, QRDMA_PBLE_MALFORMED },
        { UINT64_MAX, QRDMA_PBLE_MALFORMED },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t leaf = UINT64_MAX;

        g_assert_cmpint(qrdma_pble_check_root(cases[i].entry, &leaf), ==,
                        cases[i].verdict);
        if (cases[i].verdict == QRDMA_PBLE_GOOD) {
            g_assert_cmpuint(leaf, ==, cases[i].entry & QRDMA_ROOT_INDEX);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pble/leaves", test_leaves);
    g_test_add_func("/pble/blocks", test_blocks);
    g_test_add_func("/pble/block-of", test_block_of);
    g_test_add_func("/pble/sd-of-address", test_sd_of_address);
    g_test_add_func("/pble/space", test_space);
    g_test_add_func("/pble/footprint", test_footprint);
    g_test_add_func("/pble/table-bytes", test_table_bytes);
    g_test_add_func("/pble/write-in-table", test_write_in_table);
    g_test_add_func("/pble/check", test_check_pble);
    g_test_add_func("/pble/check-root", test_check_root);
    return g_test_run();
}
