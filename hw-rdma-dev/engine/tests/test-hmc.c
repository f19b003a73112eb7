/*
 * qrdma engine tests: segment descriptors, and the cache of what they hold.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define RW QRDMA_PBLE_PRESENT
#define INDEX 5u
#define KEY REGION_KEY(INDEX)

static enum qrdma_status add_sd(TestCard *card, uint32_t number, uint32_t type,
                                uint64_t address)
{
    struct qrdma_sd sd = {
        .type = qrdma_le32(type),
        .address = qrdma_le64(address),
    };

    return card_command(card, QRDMA_CMD_ADD_SD, number, &sd, sizeof(sd), NULL,
                        0);
}

static enum qrdma_status remove_sd(TestCard *card, uint32_t number)
{
    return card_command(card, QRDMA_CMD_REMOVE_SD, number, NULL, 0, NULL, 0);
}

static void test_add_refused(void)
{
    TestCard *card = card_new(NULL);
    uint64_t memory = card_alloc(card, 4096, 4096);
    static const struct {
        uint32_t number, type;
        uint64_t address;
        enum qrdma_status status;
    } cases[] = {
        { QRDMA_MAX_SD, QRDMA_SD_DIRECT, 0, QRDMA_STATUS_BAD_NUMBER },
        { UINT32_MAX, QRDMA_SD_DIRECT, 0, QRDMA_STATUS_BAD_NUMBER },
        { 0, 0, 0, QRDMA_STATUS_BAD_SD },
        { 0, 3, 0, QRDMA_STATUS_BAD_SD },
        { 0, UINT32_MAX, 0, QRDMA_STATUS_BAD_SD },
        { 0, QRDMA_SD_DIRECT, 0x800, QRDMA_STATUS_BAD_ALIGNMENT },
        { 0, QRDMA_SD_PAGED, 8, QRDMA_STATUS_BAD_ALIGNMENT },
        { 0, QRDMA_SD_DIRECT, 0xfffffffffff00000, QRDMA_STATUS_BAD_SD },
        { 0, QRDMA_SD_DIRECT, 0xffffffffffe01000, QRDMA_STATUS_BAD_SD },
        { 0, QRDMA_SD_DIRECT, 0xffffffffffe00000, QRDMA_STATUS_OK },
        { 1, QRDMA_SD_PAGED, 0x1000, QRDMA_STATUS_DMA_ERROR },
        { 1, QRDMA_SD_PAGED, 0xfffffffffffff000, QRDMA_STATUS_DMA_ERROR },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpint(add_sd(card, cases[i].number, cases[i].type,
                               cases[i].address), ==, cases[i].status);
    }
    /* One page address of the list is bad. */
    *(uint64_t *)card_pointer(card, memory + 511 * 8, 8) = qrdma_le64(0x1234);
    g_assert_cmpint(add_sd(card, 1, QRDMA_SD_PAGED, memory), ==,
                    QRDMA_STATUS_BAD_ALIGNMENT);
    g_assert_cmpint(remove_sd(card, 1), ==, QRDMA_STATUS_NO_OBJECT);
    card_free(card);
}

static void test_reserved(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_sd sd = { .type = qrdma_le32(QRDMA_SD_DIRECT) };

    for (unsigned i = 0; i < 4 + sizeof(sd.reserved1); i++) {
        struct qrdma_sd bad = sd;

        if (i < 4) {
            ((uint8_t *)&bad.reserved0)[i] = 1;
        } else {
            bad.reserved1[i - 4] = 1;
        }
        g_assert_cmpint(card_command(card, QRDMA_CMD_ADD_SD, 0, &bad,
                                     sizeof(bad), NULL, 0), ==,
                        QRDMA_STATUS_BAD_RESERVED);
    }
    card_free(card);
}

static void test_numbers(void)
{
    TestCard *card = card_new(NULL);

    g_assert_cmpint(add_sd(card, QRDMA_MAX_SD - 1, QRDMA_SD_DIRECT, 0x1000), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpint(add_sd(card, QRDMA_MAX_SD - 1, QRDMA_SD_DIRECT, 0x1000), ==,
                    QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(remove_sd(card, QRDMA_MAX_SD), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(remove_sd(card, QRDMA_MAX_SD - 1), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(remove_sd(card, QRDMA_MAX_SD - 1), ==,
                    QRDMA_STATUS_NO_OBJECT);
    card_free(card);
}

/* cases.md 19: index 0x100200000 / 8 lies in SD 2049, not in SD 1. */
static void test_above_4_gib(void)
{
    TestCard *card = card_new(NULL);
    uint64_t index = 0x100200000ull / QRDMA_PBLE_SIZE;
    uint64_t base = card_add_direct_sd(card, 2049);
    uint64_t address, contiguous;

    g_assert_true(qrdma_hmc_bus_address(card->engine, index, &address,
                                        &contiguous));
    g_assert_cmphex(address, ==, base);
    g_assert_cmpuint(contiguous, ==, 512);
    g_assert_false(qrdma_hmc_bus_address(card->engine, index - 1, &address,
                                         NULL));
    g_assert_false(qrdma_hmc_bus_address(card->engine, QRDMA_PBLE_SPACE,
                                         &address, NULL));
    g_assert_false(qrdma_hmc_bus_address(card->engine, UINT64_MAX, &address,
                                         NULL));
    card_free(card);
}

/* The page list is read when the SD is added, and never again. */
static void test_page_list_read_once(void)
{
    TestCard *card = card_new(NULL);
    uint64_t list = card_alloc(card, 4096, 4096);
    uint64_t page = card_alloc(card, 4096, 4096);
    uint64_t *pages = card_pointer(card, list, 4096);
    uint64_t address;

    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        pages[i] = qrdma_le64(page);
    }
    g_assert_cmpint(add_sd(card, 0, QRDMA_SD_PAGED, list), ==, QRDMA_STATUS_OK);
    memset(pages, 0xff, 4096);
    g_assert_true(qrdma_hmc_bus_address(card->engine, 513, &address, NULL));
    g_assert_cmphex(address, ==, page + 8);
    card_free(card);
}

/* A read over SDs of both kinds, the last of which is missing. */
static void test_read_across(void)
{
    TestCard *card = card_new(NULL);
    const uint64_t edge = QRDMA_PBLES_PER_SD;
    uint64_t pbles[1100];

    card_add_direct_sd(card, 0);
    card_add_paged_sd(card, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(pbles); i++) {
        *card_pble(card, edge - 50 + i) = qrdma_le64(i);
    }
    g_assert_true(qrdma_hmc_read(card->engine, edge - 50, G_N_ELEMENTS(pbles),
                                 pbles));
    for (unsigned i = 0; i < G_N_ELEMENTS(pbles); i++) {
        g_assert_cmpuint(pbles[i], ==, i);
    }
    g_assert_false(qrdma_hmc_read(card->engine, 2 * edge - 1, 2, pbles));
    card_free(card);
}

static void test_hold(void)
{
    TestCard *card = card_new(NULL);
    const uint64_t edge = QRDMA_PBLES_PER_SD;

    card_add_direct_sd(card, 0);
    card_add_direct_sd(card, 1);
    g_assert_false(qrdma_hmc_hold(card->engine, 2 * edge - 8, 16));
    g_assert_false(qrdma_hmc_hold(card->engine, QRDMA_PBLE_SPACE - 8, 16));
    g_assert_true(qrdma_hmc_hold(card->engine, 3 * edge, 0));
    g_assert_true(qrdma_hmc_hold(card->engine, edge - 8, 16));
    g_assert_true(qrdma_hmc_hold(card->engine, edge - 8, 8));
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 1), ==, QRDMA_STATUS_IN_USE);
    qrdma_hmc_release(card->engine, edge - 8, 16);
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 1), ==, QRDMA_STATUS_OK);
    qrdma_hmc_release(card->engine, edge - 8, 8);
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_OK);
    card_free(card);
}

/* Tables and roots of live mkeys keep their SDs; leaves do not. */
static void test_remove_in_use(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc table = region_mkc(0, 16 * 4096, 12, 1, QRDMA_PBLES_PER_SD - 8);
    QrdmaMkc root = region_mkc(0, 16 * 4096, 12, 2, 3 * QRDMA_PBLES_PER_SD);
    QrdmaAccess access;

    for (unsigned i = 0; i < 5; i++) {
        card_add_direct_sd(card, i);
    }
    region_set_leaves(card, &root, 4 * QRDMA_PBLES_PER_SD);
    region_set_pble(card, &root, 0, 0x1000 | RW);
    g_assert_cmpint(region_create(card, INDEX, &table), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_create(card, INDEX + 1, &root), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 1), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 2), ==, QRDMA_STATUS_OK);
    /* What the card then has of the leaf in its cache goes with the SD. */
    g_assert_cmpint(region_access(card, REGION_KEY(INDEX + 1), QRDMA_LOCAL_READ,
                                  0, 1, &access), ==, QRDMA_ACCESS_GRANTED);
    g_assert_cmpint(remove_sd(card, 3), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(remove_sd(card, 4), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_access(card, REGION_KEY(INDEX + 1), QRDMA_LOCAL_READ,
                                  0, 1, &access), ==, QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(access.error, ==, QRDMA_ACCESS_HMC);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX + 1, NULL, 0);
    g_assert_cmpint(remove_sd(card, 0), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(remove_sd(card, 1), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(remove_sd(card, 3), ==, QRDMA_STATUS_OK);
    card_free(card);
}

/* ------------------------------------------------------------------- cache */

#define PAGES 64u

static TestCard *card_with_cache(bool on, QrdmaMkc *mkc)
{
    QrdmaConfig config = card_default_config();
    TestCard *card;

    config.pble_cache = on;
    card = card_new(&config);
    card_add_direct_sd(card, 0);
    *mkc = region_mkc(0, PAGES * 4096, 12, 1, 64);
    for (unsigned i = 0; i < PAGES; i++) {
        region_set_pble(card, mkc, i, (i + 1) * 0x10000 | RW);
    }
    g_assert_cmpint(region_create(card, INDEX, mkc), ==, QRDMA_STATUS_OK);
    return card;
}

static uint64_t where(TestCard *card, unsigned page)
{
    QrdmaAccess access;

    g_assert_cmpint(region_access(card, KEY, QRDMA_LOCAL_READ, page * 4096, 1,
                                  &access), ==, QRDMA_ACCESS_GRANTED);
    return access.bus_address;
}

static void test_cache_saves_reads(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);
    unsigned reads;

    for (unsigned i = 0; i < PAGES; i++) {
        where(card, i);
    }
    g_assert_cmpuint(card->engine->counters.pble_cache_misses, ==, PAGES / 8);
    g_assert_cmpuint(card->engine->counters.pble_cache_hits, ==,
                     PAGES - PAGES / 8);
    reads = card->host->reads;
    for (unsigned i = 0; i < PAGES; i++) {
        g_assert_cmphex(where(card, i), ==, (i + 1) * 0x10000);
    }
    g_assert_cmpuint(card->host->reads, ==, reads);
    card_free(card);
}

/* A CPU write is seen for certain after INVALIDATE_TRANSLATIONS only. */
static void test_cache_and_cpu(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);

    g_assert_cmphex(where(card, 0), ==, 0x10000);
    region_set_pble(card, &mkc, 0, 0x7000000 | RW);
    g_assert_cmphex(where(card, 0), ==, 0x10000);
    card_must(card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, INDEX, NULL, 0);
    g_assert_cmphex(where(card, 0), ==, 0x7000000);
    card_free(card);
}

/* A UMR is seen at once; what it did not write may stay cached. */
static void test_cache_and_umr(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);
    uint64_t unit[QRDMA_PBLES_PER_UNIT];
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE | QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = QRDMA_TABLE_UNIT,
        .units = 1,
        .pbles = unit,
    };
    unsigned reads;

    for (unsigned i = 0; i < PAGES; i++) {
        where(card, i);
    }
    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        unit[i] = 0x7000000 + i * 0x1000 + RW;
    }
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    reads = card->host->reads;
    g_assert_cmphex(where(card, 7), ==, 8 * 0x10000);
    g_assert_cmpuint(card->host->reads, ==, reads);
    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        g_assert_cmphex(where(card, 8 + i), ==, 0x7000000 + i * 0x1000);
    }
    g_assert_cmpuint(card->host->reads, ==, reads + 1);
    card_free(card);
}

/* A change of the context forgets everything of the mkey. */
static void test_cache_and_context(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);
    TestUmr umr = {
        .key = KEY, .mask = QRDMA_UMR_MASK_PAGE_SIZE, .mkc.log_page_size = 13,
    };

    g_assert_cmphex(where(card, 1), ==, 0x20000);
    region_set_pble(card, &mkc, 0, 0x7000000 | RW);
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(where(card, 1), ==, 0x7001000);
    card_free(card);
}

/* A number that is used again starts with nothing cached. */
static void test_cache_and_reuse(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);

    g_assert_cmphex(where(card, 0), ==, 0x10000);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    region_set_pble(card, &mkc, 0, 0x7000000 | RW);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(where(card, 0), ==, 0x7000000);
    card_free(card);
}

static void test_cache_and_reset(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(true, &mkc);

    g_assert_cmphex(where(card, 0), ==, 0x10000);
    qrdma_engine_reset(card->engine);
    card_enable(card);
    card_add_direct_sd(card, 0);
    region_set_pble(card, &mkc, 0, 0x7000000 | RW);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(where(card, 0), ==, 0x7000000);
    card_free(card);
}

static void test_cache_off(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_cache(false, &mkc);

    g_assert_cmphex(where(card, 0), ==, 0x10000);
    region_set_pble(card, &mkc, 0, 0x7000000 | RW);
    g_assert_cmphex(where(card, 0), ==, 0x7000000);
    g_assert_cmpuint(card->engine->counters.pble_cache_hits, ==, 0);
    g_assert_cmpuint(card->engine->counters.pble_cache_misses, ==, 0);
    g_assert_false(qrdma_engine_capabilities(card->engine) &
                   QRDMA_CAPABILITY_PBLE_CACHE);
    card_must(card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, INDEX, NULL, 0);
    card_free(card);
}

/* More translations than lines, and mkeys that share lines. */
static void test_cache_is_bounded(void)
{
    TestCard *card = card_new(NULL);
    const unsigned pages = 5 * QRDMA_PBLE_CACHE_LINES;
    QrdmaMkc mkc = region_mkc(0, pages * 8 * 4096ull, 12, 1, 0);

    card_add_direct_sd(card, 0);
    for (unsigned i = 0; i < pages; i++) {
        region_set_pble(card, &mkc, i * 8, ((i + 1) * 0x10000ull) | RW);
    }
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(region_create(card, INDEX + i, &mkc), ==,
                        QRDMA_STATUS_OK);
    }
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < pages; i++) {
            QrdmaAccess access;

            g_assert_cmpint(region_access(card, REGION_KEY(INDEX + i % 3),
                                          QRDMA_LOCAL_READ, i * 8 * 4096ull, 1,
                                          &access), ==, QRDMA_ACCESS_GRANTED);
            g_assert_cmphex(access.bus_address, ==, (i + 1) * 0x10000ull);
        }
    }
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/hmc/add-refused", test_add_refused);
    g_test_add_func("/hmc/reserved", test_reserved);
    g_test_add_func("/hmc/numbers", test_numbers);
    g_test_add_func("/hmc/above-4-gib", test_above_4_gib);
    g_test_add_func("/hmc/page-list-read-once", test_page_list_read_once);
    g_test_add_func("/hmc/read-across", test_read_across);
    g_test_add_func("/hmc/hold", test_hold);
    g_test_add_func("/hmc/remove-in-use", test_remove_in_use);
    g_test_add_func("/cache/saves-reads", test_cache_saves_reads);
    g_test_add_func("/cache/cpu", test_cache_and_cpu);
    g_test_add_func("/cache/umr", test_cache_and_umr);
    g_test_add_func("/cache/context", test_cache_and_context);
    g_test_add_func("/cache/reuse", test_cache_and_reuse);
    g_test_add_func("/cache/reset", test_cache_and_reset);
    g_test_add_func("/cache/off", test_cache_off);
    g_test_add_func("/cache/bounded", test_cache_is_bounded);
    return g_test_run();
}
