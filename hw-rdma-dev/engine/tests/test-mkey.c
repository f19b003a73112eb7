/*
 * qrdma engine tests: commands for mkeys, and which contexts are valid.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define MIB (1024 * 1024ull)
#define GIB (1024 * MIB)
#define RW QRDMA_PBLE_PRESENT
#define INDEX 5u
#define KEY REGION_KEY(INDEX)

static QrdmaMkc table_mkc(void)
{
    return region_mkc(0x10000, 16 * 4096, 12, 1, 64);
}

static QrdmaMkc block_mkc(void)
{
    QrdmaMkc mkc = region_mkc(0x10000, 4096, 12, 0, 0);

    mkc.base = 0x80000000 | RW;
    return mkc;
}

static TestCard *card_with_sd(void)
{
    TestCard *card = card_new(NULL);

    card_add_direct_sd(card, 0);
    return card;
}

static enum qrdma_status modify(TestCard *card, uint32_t index, uint64_t mask,
                                const QrdmaMkc *mkc)
{
    struct qrdma_modify_mkey in = { .mask = qrdma_le64(mask) };

    qrdma_mkc_encode(mkc, &in.context);
    return card_command(card, QRDMA_CMD_MODIFY_MKEY, index, &in, sizeof(in),
                        NULL, 0);
}

/* ---------------------------------------------------------------- contexts */

typedef struct Case {
    const char *name;
    QrdmaMkc (*from)(void);
    void (*change)(QrdmaMkc *mkc);
    enum qrdma_status status;
} Case;

#define CHANGE(name, statement)                 \
    static void name(QrdmaMkc *mkc)             \
    {                                           \
        statement;                              \
    }

CHANGE(nothing, (void)mkc)
CHANGE(flag_8, mkc->flags |= 1 << 8)
CHANGE(flag_31, mkc->flags |= 1u << 31)
CHANGE(only_remote_write, mkc->flags = QRDMA_MKEY_REMOTE_WRITE)
CHANGE(only_remote_atomic, mkc->flags = QRDMA_MKEY_REMOTE_ATOMIC)
CHANGE(only_remote_read, mkc->flags = QRDMA_MKEY_REMOTE_READ)
CHANGE(free_too, mkc->flags |= QRDMA_MKEY_FREE)
CHANGE(pd_max, mkc->pd = QRDMA_MAX_PD)
CHANGE(pd_over, mkc->pd = QRDMA_MAX_PD + 1)
CHANGE(pd_all, mkc->pd = UINT32_MAX)
CHANGE(qpn_over, mkc->qpn = 1 << 24)
CHANGE(page_0, mkc->log_page_size = 0)
CHANGE(page_11, mkc->log_page_size = 11)
CHANGE(page_40, mkc->log_page_size = 40)
CHANGE(page_41, mkc->log_page_size = 41)
CHANGE(page_64, mkc->log_page_size = 64)
CHANGE(page_255, mkc->log_page_size = 255)
CHANGE(kind_2, mkc->translation = 2)
CHANGE(kind_255, mkc->translation = 255)
CHANGE(kind_physical, mkc->translation = QRDMA_TRANSLATION_PHYSICAL)
CHANGE(all_memory, mkc->flags |= QRDMA_MKEY_ALL_MEMORY)
CHANGE(kind_table, mkc->translation = QRDMA_TRANSLATION_BLOCK_TABLE)
CHANGE(not_all_memory, mkc->flags &= ~QRDMA_MKEY_ALL_MEMORY)
CHANGE(on_demand, mkc->flags |= QRDMA_MKEY_ON_DEMAND)
CHANGE(level_0, mkc->level = 0)
CHANGE(level_1, mkc->level = 1)
CHANGE(level_2, mkc->level = 2)
CHANGE(level_3, mkc->level = 3)
CHANGE(level_255, mkc->level = 255)
CHANGE(length_0, mkc->length = 0)
CHANGE(length_1, mkc->length = 1)
CHANGE(length_wraps, mkc->length = UINT64_MAX - 0xffff)
CHANGE(length_max, mkc->length = UINT64_MAX)
CHANGE(length_one_more, mkc->length++)
CHANGE(start_off, mkc->start++; mkc->first_byte_offset++)
CHANGE(start_high, mkc->start = UINT64_MAX - 0xfff)
CHANGE(offset_wrong, mkc->first_byte_offset = 1)
CHANGE(offset_large, mkc->first_byte_offset = 0x1000)
CHANGE(base_set, mkc->base = 0x80000000 | RW)
CHANGE(base_absent, mkc->base = 0)
CHANGE(base_reserved, mkc->base |= 4)
CHANGE(base_misaligned, mkc->log_page_size = 32)
CHANGE(base_absent_misaligned, mkc->log_page_size = 32; mkc->base = 0x1000)
CHANGE(index_7, mkc->pble_index = 7)
CHANGE(index_8, mkc->pble_index = 8)
CHANGE(index_last, mkc->pble_index = (1u << 30) - 8)
CHANGE(index_end, mkc->pble_index = 1u << 30)
CHANGE(index_max, mkc->pble_index = UINT32_MAX - 7)
CHANGE(capacity_0, mkc->capacity = 0)
CHANGE(capacity_2, mkc->capacity = 2)
CHANGE(capacity_15, mkc->capacity = 15)
CHANGE(capacity_17, mkc->capacity = 17)
CHANGE(capacity_space, mkc->capacity = 1u << 30)
CHANGE(capacity_space_1, mkc->capacity = (1u << 30) + 1)
CHANGE(capacity_max, mkc->capacity = UINT32_MAX)
CHANGE(capacity_wraps_units, mkc->capacity = UINT32_MAX; mkc->pble_index = 8)
CHANGE(sd_missing, mkc->pble_index = QRDMA_PBLES_PER_SD)
CHANGE(sd_missing_at_end, mkc->pble_index = QRDMA_PBLES_PER_SD - 8)

static const Case cases[] = {
    { "table", table_mkc, nothing, QRDMA_STATUS_OK },
    { "block", block_mkc, nothing, QRDMA_STATUS_OK },
    { "all", region_all_memory, nothing, QRDMA_STATUS_OK },
    { "flag-8", table_mkc, flag_8, QRDMA_STATUS_BAD_FLAGS },
    { "flag-31", table_mkc, flag_31, QRDMA_STATUS_BAD_FLAGS },
    { "only-remote-write", table_mkc, only_remote_write,
      QRDMA_STATUS_BAD_RIGHTS },
    { "only-remote-atomic", table_mkc, only_remote_atomic,
      QRDMA_STATUS_BAD_RIGHTS },
    { "only-remote-read", table_mkc, only_remote_read, QRDMA_STATUS_OK },
    { "free", table_mkc, free_too, QRDMA_STATUS_OK },
    { "on-demand", table_mkc, on_demand, QRDMA_STATUS_OK },
    { "pd-max", table_mkc, pd_max, QRDMA_STATUS_OK },
    { "pd-over", table_mkc, pd_over, QRDMA_STATUS_BAD_PD },
    { "pd-all", table_mkc, pd_all, QRDMA_STATUS_BAD_PD },
    { "qpn-over", table_mkc, qpn_over, QRDMA_STATUS_BAD_QPN },
    { "page-0", table_mkc, page_0, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-11", table_mkc, page_11, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-40", table_mkc, page_40, QRDMA_STATUS_OK },
    { "page-41", table_mkc, page_41, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-64", table_mkc, page_64, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-255", table_mkc, page_255, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "kind-2", table_mkc, kind_2, QRDMA_STATUS_BAD_TRANSLATION },
    { "kind-255", table_mkc, kind_255, QRDMA_STATUS_BAD_TRANSLATION },
    { "kind-physical", table_mkc, kind_physical,
      QRDMA_STATUS_BAD_TRANSLATION },
    { "table-all-memory", table_mkc, all_memory,
      QRDMA_STATUS_BAD_TRANSLATION },
    { "table-as-level-0", table_mkc, level_0, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "level-2", table_mkc, level_2, QRDMA_STATUS_OK },
    { "level-3", table_mkc, level_3, QRDMA_STATUS_BAD_LEVEL },
    { "level-255", table_mkc, level_255, QRDMA_STATUS_BAD_LEVEL },
    { "length-0", table_mkc, length_0, QRDMA_STATUS_BAD_LENGTH },
    { "length-1", table_mkc, length_1, QRDMA_STATUS_OK },
    { "length-wraps", table_mkc, length_wraps, QRDMA_STATUS_BAD_LENGTH },
    { "length-max", table_mkc, length_max, QRDMA_STATUS_BAD_LENGTH },
    { "length-one-more", table_mkc, length_one_more,
      QRDMA_STATUS_BAD_CAPACITY },
    { "start-off", table_mkc, start_off, QRDMA_STATUS_BAD_CAPACITY },
    { "start-high", table_mkc, start_high, QRDMA_STATUS_BAD_LENGTH },
    { "offset-wrong", table_mkc, offset_wrong,
      QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
    { "offset-large", table_mkc, offset_large,
      QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
    { "table-base", table_mkc, base_set, QRDMA_STATUS_BAD_RESERVED },
    { "index-7", table_mkc, index_7, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "index-8", table_mkc, index_8, QRDMA_STATUS_OK },
    { "index-last", table_mkc, index_last, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "index-end", table_mkc, index_end, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "index-max", table_mkc, index_max, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "capacity-0", table_mkc, capacity_0, QRDMA_STATUS_BAD_CAPACITY },
    { "capacity-15", table_mkc, capacity_15, QRDMA_STATUS_BAD_CAPACITY },
    { "capacity-17", table_mkc, capacity_17, QRDMA_STATUS_OK },
    { "capacity-space", table_mkc, capacity_space,
      QRDMA_STATUS_BAD_PBLE_INDEX },
    { "capacity-space-1", table_mkc, capacity_space_1,
      QRDMA_STATUS_BAD_CAPACITY },
    { "capacity-max", table_mkc, capacity_max, QRDMA_STATUS_BAD_CAPACITY },
    { "capacity-wraps-units", table_mkc, capacity_wraps_units,
      QRDMA_STATUS_BAD_CAPACITY },
    { "sd-missing", table_mkc, sd_missing, QRDMA_STATUS_HMC_ERROR },
    { "sd-missing-at-end", table_mkc, sd_missing_at_end,
      QRDMA_STATUS_HMC_ERROR },
    { "block-absent", block_mkc, base_absent, QRDMA_STATUS_OK },
    { "block-reserved", block_mkc, base_reserved, QRDMA_STATUS_BAD_ENTRY },
    { "block-misaligned", block_mkc, base_misaligned,
      QRDMA_STATUS_BAD_ALIGNMENT },
    { "block-absent-misaligned", block_mkc, base_absent_misaligned,
      QRDMA_STATUS_OK },
    { "block-index", block_mkc, index_8, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "block-capacity-0", block_mkc, capacity_0, QRDMA_STATUS_BAD_CAPACITY },
    { "block-capacity-2", block_mkc, capacity_2, QRDMA_STATUS_BAD_CAPACITY },
    { "block-two", block_mkc, length_one_more, QRDMA_STATUS_BAD_CAPACITY },
    { "all-not-all", region_all_memory, not_all_memory,
      QRDMA_STATUS_BAD_TRANSLATION },
    { "all-table", region_all_memory, kind_table,
      QRDMA_STATUS_BAD_TRANSLATION },
    { "all-on-demand", region_all_memory, on_demand, QRDMA_STATUS_BAD_FLAGS },
    { "all-page-40", region_all_memory, page_40, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "all-level", region_all_memory, level_1, QRDMA_STATUS_BAD_LEVEL },
    { "all-start", region_all_memory, start_high, QRDMA_STATUS_BAD_LENGTH },
    { "all-length", region_all_memory, length_1, QRDMA_STATUS_BAD_LENGTH },
    { "all-base", region_all_memory, base_set, QRDMA_STATUS_BAD_RESERVED },
    { "all-index", region_all_memory, index_8, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "all-capacity", region_all_memory, capacity_2,
      QRDMA_STATUS_BAD_CAPACITY },
    { "all-offset", region_all_memory, offset_wrong,
      QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
};

static void test_context(const void *data)
{
    const Case *c = data;
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = c->from();

    c->change(&mkc);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, c->status);
    if (c->status == QRDMA_STATUS_OK) {
        QrdmaMkc stored = region_query(card, INDEX);

        region_assert_same(&mkc, &stored);
    } else {
        struct qrdma_mkc out;

        g_assert_cmpint(card_command(card, QRDMA_CMD_QUERY_MKEY, INDEX, NULL, 0,
                                     &out, sizeof(out)), ==,
                        QRDMA_STATUS_NO_OBJECT);
        /* Nothing is held either. */
        card_must(card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0);
    }
    card_free(card);
}

/* The largest level 2 table: PBLE space cannot hold it, its root can be. */
static void test_largest_table(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0, 1ull << 42, 12, 2, 0);

    g_assert_cmpuint(mkc.capacity, ==, 1u << 30);
    for (unsigned i = 0; i < 8; i++) {
        card_add_direct_sd(card, i);
    }
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmpint(card_command(card, QRDMA_CMD_REMOVE_SD, i, NULL, 0,
                                     NULL, 0), ==, QRDMA_STATUS_IN_USE);
    }
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    for (unsigned i = 0; i < 8; i++) {
        card_must(card, QRDMA_CMD_REMOVE_SD, i, NULL, 0);
    }
    card_free(card);
}

static void test_reserved_bytes(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = table_mkc();

    for (unsigned i = 0; i < sizeof(((struct qrdma_mkc *)0)->reserved); i++) {
        struct qrdma_mkc in;

        qrdma_mkc_encode(&mkc, &in);
        in.reserved[i] = 0x80;
        g_assert_cmpint(card_command(card, QRDMA_CMD_CREATE_MKEY, INDEX, &in,
                                     sizeof(in), NULL, 0), ==,
                        QRDMA_STATUS_BAD_RESERVED);
    }
    card_free(card);
}

/* ----------------------------------------------------------------- numbers */

static void test_numbers(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = block_mkc();
    static const uint32_t bad[] = { 0, QRDMA_MAX_MKEYS, UINT32_MAX };
    static const uint16_t opcodes[] = {
        QRDMA_CMD_DESTROY_MKEY, QRDMA_CMD_INVALIDATE_TRANSLATIONS,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmpint(region_create(card, bad[i], &mkc), ==,
                        QRDMA_STATUS_BAD_NUMBER);
        g_assert_cmpint(modify(card, bad[i], 0, &mkc), ==,
                        QRDMA_STATUS_BAD_NUMBER);
        for (unsigned j = 0; j < G_N_ELEMENTS(opcodes); j++) {
            g_assert_cmpint(card_command(card, opcodes[j], bad[i], NULL, 0,
                                         NULL, 0), ==, QRDMA_STATUS_BAD_NUMBER);
        }
    }
    for (unsigned j = 0; j < G_N_ELEMENTS(opcodes); j++) {
        g_assert_cmpint(card_command(card, opcodes[j], INDEX, NULL, 0, NULL, 0),
                        ==, QRDMA_STATUS_NO_OBJECT);
    }
    g_assert_cmpint(modify(card, INDEX, 0, &mkc), ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(region_create(card, QRDMA_MAX_MKEYS - 1, &mkc), ==,
                    QRDMA_STATUS_OK);
    card_free(card);
}

static void test_number_in_use(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc first = table_mkc(), second = block_mkc(), stored;

    g_assert_cmpint(region_create(card, INDEX, &first), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_create(card, INDEX, &second), ==,
                    QRDMA_STATUS_IN_USE);
    stored = region_query(card, INDEX);
    region_assert_same(&first, &stored);
    /* Also while it is revoked: the number is free after its destruction. */
    first.flags = QRDMA_MKEY_FREE;
    g_assert_cmpint(modify(card, INDEX, QRDMA_UMR_MASK_FREE, &first), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpint(region_create(card, INDEX, &second), ==,
                    QRDMA_STATUS_IN_USE);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    g_assert_cmpint(region_create(card, INDEX, &second), ==, QRDMA_STATUS_OK);
    card_free(card);
}

/*
 * 2^20 mkeys, and memory only as they are used. The commands' way through the
 * ring is left out, so that the test stays short.
 */
static void test_all_numbers(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = block_mkc();
    struct qrdma_mkc in;
    QrdmaCommandCall call = { .input = &in };

    qrdma_mkc_encode(&mkc, &in);
    for (unsigned i = 0; i < QRDMA_MKEY_CHUNKS; i++) {
        g_assert_null(card->engine->mkeys.chunks[i]);
    }
    for (uint32_t i = 1; i < QRDMA_MAX_MKEYS; i++) {
        call.number = i;
        g_assert_cmpint(qrdma_cmd_create_mkey(card->engine, &call), ==,
                        QRDMA_STATUS_OK);
    }
    g_assert_cmpuint(card->engine->mkeys.count, ==, QRDMA_MAX_MKEYS - 1);
    for (uint32_t i = 1; i < QRDMA_MAX_MKEYS; i++) {
        g_assert_cmpuint(qrdma_mkey_find(card->engine, i)->index, ==, i);
    }
    for (uint32_t i = 1; i < QRDMA_MAX_MKEYS; i++) {
        call.number = i;
        g_assert_cmpint(qrdma_cmd_destroy_mkey(card->engine, &call), ==,
                        QRDMA_STATUS_OK);
    }
    for (unsigned i = 0; i < QRDMA_MKEY_CHUNKS; i++) {
        g_assert_null(card->engine->mkeys.chunks[i]);
    }
    card_free(card);
}

/* -------------------------------------------------------------- the others */

static void test_modify(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = table_mkc(), stored;
    QrdmaMkc other = {
        .flags = QRDMA_MKEY_FREE, .pd = 77, .log_page_size = 13,
        .variant = 0x42,
    };

    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(modify(card, INDEX, QRDMA_UMR_MASK_PD |
                           QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_VARIANT,
                           &other), ==, QRDMA_STATUS_OK);
    mkc.flags |= QRDMA_MKEY_FREE;
    mkc.pd = 77;
    mkc.variant = 0x42;
    stored = region_query(card, INDEX);
    region_assert_same(&mkc, &stored);
    /* It is no UMR. */
    g_assert_cmpuint(card->engine->counters.umr_completed, ==, 0);
    card_free(card);
}

static void test_modify_refused(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = table_mkc(), stored;
    struct qrdma_modify_mkey in = { .reserved = 1 };
    QrdmaMkc bad = { .log_page_size = 11, .pd = 1 };

    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(modify(card, INDEX, 1 << 7, &bad), ==,
                    QRDMA_STATUS_BAD_MASK);
    g_assert_cmpint(modify(card, INDEX, UINT64_MAX, &bad), ==,
                    QRDMA_STATUS_BAD_MASK);
    g_assert_cmpint(modify(card, INDEX, QRDMA_UMR_MASK_PAGE_SIZE |
                           QRDMA_UMR_MASK_PD, &bad), ==,
                    QRDMA_STATUS_BAD_PAGE_SIZE);
    g_assert_cmpint(card_command(card, QRDMA_CMD_MODIFY_MKEY, INDEX, &in,
                                 sizeof(in), NULL, 0), ==,
                    QRDMA_STATUS_BAD_RESERVED);
    stored = region_query(card, INDEX);
    region_assert_same(&mkc, &stored);
    g_assert_cmpuint(card->engine->counters.umr_refused, ==, 0);
    /* And it is no UMR to fault injection. */
    card_refuse_umrs(card, 1, 1);
    bad.log_page_size = 13;
    g_assert_cmpint(modify(card, INDEX, QRDMA_UMR_MASK_PAGE_SIZE, &bad), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpuint(card_faults(card), ==, 1);
    card_free(card);
}

static void test_destroyed_key(void)
{
    TestCard *card = card_with_sd();
    QrdmaMkc mkc = block_mkc();
    QrdmaAccess access;

    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_access(card, KEY, QRDMA_LOCAL_READ, 0x10000, 1,
                                  &access), ==, QRDMA_ACCESS_GRANTED);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    g_assert_cmpint(region_access(card, KEY, QRDMA_LOCAL_READ, 0x10000, 1,
                                  &access), ==, QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(access.error, ==, QRDMA_ACCESS_NO_KEY);
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/mkey/context/%s",
                                                cases[i].name);

        g_test_add_data_func(path, &cases[i], test_context);
    }
    g_test_add_func("/mkey/largest-table", test_largest_table);
    g_test_add_func("/mkey/reserved-bytes", test_reserved_bytes);
    g_test_add_func("/mkey/numbers", test_numbers);
    g_test_add_func("/mkey/number-in-use", test_number_in_use);
    g_test_add_func("/mkey/all-numbers", test_all_numbers);
    g_test_add_func("/mkey/modify", test_modify);
    g_test_add_func("/mkey/modify-refused", test_modify_refused);
    g_test_add_func("/mkey/destroyed-key", test_destroyed_key);
    return g_test_run();
}
