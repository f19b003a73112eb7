/*
 * qrdma: PBLE space and the three levels of a translation table, with data
 * moved over each.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-pble"
#define INDEX       0x77
#define START       0x7f0000000000ull
#define ROOT        8           /* PBLE index of a level 2 root */
#define LEAVES      1024        /* PBLE index of the lowest leaf */
#define POOL        7           /* data pages that the entries take in turn */

typedef struct Table {
    QRdmaBench bench;
    QRdma *q;
    uint64_t pool[POOL];        /* with the pattern of their number */
    uint64_t local;             /* a buffer of two pages */
} Table;

static void table_init(Table *t, QRdma *q)
{
    t->q = q;
    qrdma_bench_init(&t->bench, q);
    for (unsigned i = 0; i < POOL; i++) {
        /* Two pages a piece, so that no two of the pool adjoin. */
        t->pool[i] = qrdma_alloc(q, 2 * QRDMA_PAGE);
        qrdma_write_pattern(q, t->pool[i], QRDMA_PAGE, i);
    }
    t->local = qrdma_alloc(q, 2 * QRDMA_PAGE);
}

static uint64_t pool_entry(Table *t, unsigned entry)
{
    return t->pool[entry % POOL] | QRDMA_PBLE_PRESENT;
}

static unsigned leaf_count(unsigned entries)
{
    return DIV_ROUND_UP(entries, QRDMA_LEAF_PBLES);
}

/* Leaves lie in reverse order, so that only the root can tell where. */
static unsigned leaf_index(unsigned entries, unsigned leaf)
{
    return LEAVES + (leaf_count(entries) - 1 - leaf) * QRDMA_LEAF_PBLES;
}

/* Write a whole table into PBLE space, as a driver does before it is used. */
static void fill_table(Table *t, unsigned level, unsigned entries)
{
    unsigned end = level == 1 ? LEAVES + entries
                              : leaf_index(entries, 0) + QRDMA_LEAF_PBLES;
    unsigned sds = DIV_ROUND_UP(end, QRDMA_PBLES_PER_SD);
    g_autofree uint64_t *space = g_new0(uint64_t, sds * QRDMA_PBLES_PER_SD);

    for (unsigned i = 0; i < entries; i++) {
        unsigned index = LEAVES + i;

        if (level == 2) {
            unsigned leaf = leaf_index(entries, i / QRDMA_LEAF_PBLES);

            space[ROOT + i / QRDMA_LEAF_PBLES] =
                cpu_to_le64(leaf | QRDMA_ROOT_VALID);
            index = leaf + i % QRDMA_LEAF_PBLES;
        }
        space[index] = cpu_to_le64(pool_entry(t, i));
    }
    for (unsigned sd = 0; sd < sds; sd++) {
        qrdma_add_direct_sd(t->q, sd);
        qtest_bufwrite(t->q->qts, t->q->sd[sd],
                       space + sd * QRDMA_PBLES_PER_SD, 1 << QRDMA_SD_SHIFT);
    }
}

static uint32_t make_mkey(Table *t, unsigned level, unsigned entries)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, level, 12,
                                           START, entries * QRDMA_PAGE,
                                           level == 2 ? ROOT : LEAVES,
                                           entries);

    return qrdma_bench_mkey(&t->bench, INDEX, &mkc);
}

/* Page `entry` of the region reads as the page that its PBLE names. */
static void assert_page(Table *t, uint32_t key, unsigned entry)
{
    g_test_message("entry %u", entry);
    g_assert_cmpint(qrdma_bench_read(&t->bench, t->local,
                                     START + entry * QRDMA_PAGE, key,
                                     QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(t->q, t->local, QRDMA_PAGE, entry % POOL);
}

/* Given a table of that level, each entry leads to its page. */
typedef struct Level {
    unsigned level;
    unsigned entries;
    unsigned leaves;
} Level;

static void test_level(void *obj, void *data, QGuestAllocator *alloc)
{
    static const unsigned probes[] = {
        0, 1, 510, 511, 512, 513, 1023, 1024, 1535, 1536, 131071, 131072,
        262143,
    };
    const Level *level = data;
    Table t;
    uint32_t key;

    g_assert_cmpuint(leaf_count(level->entries), ==, level->leaves);
    table_init(&t, obj);
    fill_table(&t, level->level, level->entries);
    key = make_mkey(&t, level->level, level->entries);

    for (size_t i = 0; i < ARRAY_SIZE(probes); i++) {
        if (probes[i] < level->entries) {
            assert_page(&t, key, probes[i]);
        }
    }
    assert_page(&t, key, level->entries - 1);

    /* One byte more than the region has is out of range. */
    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local,
                                     START + level->entries * QRDMA_PAGE - 1,
                                     key, 2), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
}

/* Data written across the joint of two leaves lands on both pages. */
static void test_across_leaves(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    uint32_t key;
    uint64_t before, after;

    table_init(&t, obj);
    fill_table(&t, 2, 513);
    key = make_mkey(&t, 2, 513);
    before = t.pool[511 % POOL];
    after = t.pool[512 % POOL];

    qrdma_write_pattern(t.q, t.local, 200, 50);
    g_assert_cmpint(qrdma_bench_write(&t.bench, t.local,
                                      START + 512 * QRDMA_PAGE - 104, key,
                                      200), ==, QRDMA_CQE_SUCCESS);

    qrdma_assert_pattern_part(t.q, before + QRDMA_PAGE - 104, 0, 104, 50);
    qrdma_assert_pattern_part(t.q, after, 104, 96, 50);
    /* What lies around is as it was. */
    qrdma_assert_pattern(t.q, before, QRDMA_PAGE - 104, 511 % POOL);
    qrdma_assert_pattern_part(t.q, after + 96, 96, QRDMA_PAGE - 96,
                              512 % POOL);
}

/* Given a region that starts inside its first page, byte 0 is there. */
static void test_unaligned_start(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    Table t;
    struct qrdma_mkc mkc;
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 1, 8);
    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START + 0x234, 5000,
                          LEAVES, 8);
    key = qrdma_bench_mkey(&t.bench, INDEX, &mkc);
    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local, START + 0x234, key,
                                     256), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern_part(t.q, t.local, 0x234, 256, 0);

    /* The byte before the start is on the page, and not in the region. */
    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local, START + 0x233, key,
                                     1), ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
}

/* ------------------------------------------------------------- page sizes */

/* Level 1 with three blocks of each size that memory here has room for. */
static void test_block_sizes(void *obj, void *data, QGuestAllocator *alloc)
{
    static const unsigned logs[] = { 12, 13, 14, 16, 18, 20, 21 };
    Table t;

    table_init(&t, obj);
    qrdma_add_direct_sd(t.q, 0);
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
        uint64_t size = 1ull << logs[i];
        uint64_t blocks = qrdma_alloc_aligned(t.q, 3 * size, size);
        struct qrdma_mkc mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1,
                                               logs[i], START + 0x40,
                                               3 * size - 0x40, LEAVES, 3);
        uint32_t key;

        g_test_message("blocks of 2^%u", logs[i]);
        for (unsigned block = 0; block < 3; block++) {
            /* Backwards: block 0 of the region is the last in memory. */
            qrdma_pble_write(t.q, LEAVES + block,
                             (blocks + (2 - block) * size) |
                             QRDMA_PBLE_PRESENT);
        }
        key = qrdma_bench_mkey(&t.bench, INDEX, &mkc);

        qrdma_write_pattern(t.q, t.local, 512, logs[i]);
        g_assert_cmpint(qrdma_bench_write(&t.bench, t.local,
                                          START + size - 256, key, 512), ==,
                        QRDMA_CQE_SUCCESS);
        /* The first half ends memory's last block, the rest begins another. */
        qrdma_assert_pattern(t.q, blocks + 3 * size - 256, 256, logs[i]);
        qrdma_assert_pattern_part(t.q, blocks + size, 256, 256, logs[i]);
        qrdma_command_ok(t.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0,
                         NULL, 0);
    }
}

/* One block larger than the machine: what is not there cannot be reached. */
static void test_huge_blocks(void *obj, void *data, QGuestAllocator *alloc)
{
    static const unsigned logs[] = { 27, 30, 32, 36, QRDMA_LOG_PAGE_SIZE_MAX };
    Table t;

    table_init(&t, obj);
    for (size_t i = 0; i < ARRAY_SIZE(logs); i++) {
        uint64_t size = 1ull << logs[i];
        struct qrdma_mkc mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 0,
                                               logs[i], 3 * size, size, 0, 1);
        uint32_t key;

        g_test_message("a block of 2^%u", logs[i]);
        mkc.base = cpu_to_le64(QRDMA_PBLE_PRESENT);
        key = qrdma_bench_mkey(&t.bench, INDEX, &mkc);
        g_assert_cmpint(qrdma_bench_read(&t.bench, t.local,
                                         3 * size + t.pool[1], key,
                                         QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
        qrdma_assert_pattern(t.q, t.local, QRDMA_PAGE, 1);
        qrdma_command_ok(t.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0,
                         NULL, 0);
    }
}

/* -------------------------------------------------------- segments of PBLEs */

/* A paged SD: PBLEs of one SD on pages that lie anywhere. */
static void test_paged_sd(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    struct qrdma_sd sd = { .type = cpu_to_le32(QRDMA_SD_PAGED) };
    uint64_t list, pages, entry;
    uint32_t key;

    table_init(&t, obj);
    list = qrdma_alloc(t.q, QRDMA_PAGE);
    pages = qrdma_alloc(t.q, QRDMA_SD_PAGES * QRDMA_PAGE);
    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        /* Backwards. */
        entry = cpu_to_le64(pages + (QRDMA_SD_PAGES - 1 - i) * QRDMA_PAGE);
        qtest_memwrite(t.q->qts, list + i * 8, &entry, 8);
    }
    sd.address = cpu_to_le64(list);
    qrdma_command_ok(t.q, QRDMA_CMD_ADD_SD, 0, &sd, sizeof(sd), NULL, 0);
    /* The list is read once: what becomes of it later does not matter. */
    qtest_memset(t.q->qts, list, 0xff, QRDMA_PAGE);

    /* PBLE 1024 begins page 2 of the SD. */
    for (unsigned i = 0; i < 8; i++) {
        entry = cpu_to_le64(pool_entry(&t, i));
        qtest_memwrite(t.q->qts, pages + (QRDMA_SD_PAGES - 1 - LEAVES / 512) *
                       QRDMA_PAGE + i * 8, &entry, 8);
    }
    key = make_mkey(&t, 1, 8);
    assert_page(&t, key, 0);
    assert_page(&t, key, 7);
}

/* An SD whose pages are not 4 KiB aligned is refused. */
static void test_paged_sd_misaligned(void *obj, void *data,
                                     QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_sd sd = { .type = cpu_to_le32(QRDMA_SD_PAGED) };
    uint64_t list, entry = cpu_to_le64(0x100010);

    qrdma_start(q);
    list = qrdma_alloc(q, QRDMA_PAGE);
    qtest_memwrite(q->qts, list + 511 * 8, &entry, 8);
    sd.address = cpu_to_le64(list);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_ADD_SD, 0, &sd, sizeof(sd),
                                  NULL, 0), ==, QRDMA_STATUS_BAD_ALIGNMENT);
}

/* Case 19. PBLE space beyond 4 GiB: address 0x100200000 is in segment 2049. */
static void test_sd_2049(void *obj, void *data, QGuestAllocator *alloc)
{
    const uint32_t index = 0x100200000ull / QRDMA_PBLE_SIZE;
    Table t;
    struct qrdma_mkc mkc;
    uint32_t key;

    table_init(&t, obj);
    qrdma_add_direct_sd(t.q, 1);
    qrdma_add_direct_sd(t.q, 2049);
    qrdma_pble_write(t.q, QRDMA_PBLES_PER_SD, pool_entry(&t, 5));
    qrdma_pble_write(t.q, index, pool_entry(&t, 0));
    g_assert_cmphex(qrdma_pble_address(t.q, index), ==, t.q->sd[2049]);

    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START, QRDMA_PAGE,
                          index, 1);
    key = qrdma_bench_mkey(&t.bench, INDEX, &mkc);
    assert_page(&t, key, 0);
}

/* A segment in which a table begins cannot be taken away. */
static void test_remove_used_sd(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 1, 8);
    key = make_mkey(&t, 1, 8);
    g_assert_cmpint(qrdma_command(t.q, QRDMA_CMD_REMOVE_SD, 0, NULL, 0,
                                  NULL, 0), ==, QRDMA_STATUS_IN_USE);
    assert_page(&t, key, 3);
    qrdma_command_ok(t.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    qrdma_command_ok(t.q, QRDMA_CMD_REMOVE_SD, 0, NULL, 0, NULL, 0);
}

/* Given a leaf's segment taken away, what the card had of it is forgotten. */
static void test_remove_leaf_sd(void *obj, void *data, QGuestAllocator *alloc)
{
    const uint32_t leaf = QRDMA_PBLES_PER_SD;
    Table t;
    uint32_t key;
    struct qrdma_eqe eqe;

    table_init(&t, obj);
    qrdma_add_direct_sd(t.q, 0);
    qrdma_add_direct_sd(t.q, 1);
    qrdma_pble_write(t.q, ROOT, leaf | QRDMA_ROOT_VALID);
    qrdma_pble_write(t.q, leaf + 3, pool_entry(&t, 3));
    key = make_mkey(&t, 2, 8);
    assert_page(&t, key, 3);
    qrdma_command_ok(t.q, QRDMA_CMD_REMOVE_SD, 1, NULL, 0, NULL, 0);
    qtest_memset(t.q->qts, t.local, 0, QRDMA_PAGE);

    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local,
                                     START + 3 * QRDMA_PAGE, key, 8), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = qrdma_eq_expect(t.q, &t.bench.async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_HMC);
    qrdma_assert_zero(t.q, t.local, QRDMA_PAGE);
}

/* ------------------------------------------------------------------ cache */

/* Given a CPU write to a live table, then an invalidate, the new is seen. */
static void test_invalidate(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 1, 8);
    key = make_mkey(&t, 1, 8);
    assert_page(&t, key, 0);
    qrdma_pble_write(t.q, LEAVES, pool_entry(&t, 6));
    qrdma_command_ok(t.q, QRDMA_CMD_INVALIDATE_TRANSLATIONS, INDEX, NULL, 0,
                     NULL, 0);

    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local, START, key,
                                     QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(t.q, t.local, QRDMA_PAGE, 6);
}

/* Without the cache, a CPU write is seen at once. */
static void test_no_cache(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 1, 8);
    key = make_mkey(&t, 1, 8);
    assert_page(&t, key, 0);
    qrdma_pble_write(t.q, LEAVES, pool_entry(&t, 6));

    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local, START, key,
                                     QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(t.q, t.local, QRDMA_PAGE, 6);
}

/* --------------------------------------------------------- UMR on level 2 */

static struct qrdma_umr_wqe level_2_umr(uint32_t key, unsigned first_entry)
{
    return (struct qrdma_umr_wqe) {
        .umr_flags = cpu_to_le16(QRDMA_UMR_TRANSLATION_OFFSET),
        .key = cpu_to_le32(key),
        .table_offset = cpu_to_le64(first_entry * QRDMA_PBLE_SIZE),
    };
}

/* Two units across the joint of two leaves: each goes to its own leaf. */
static void test_umr_across_leaves(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    Table t;
    uint64_t entries[16];
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 2, 513);
    key = make_mkey(&t, 2, 513);
    for (unsigned i = 0; i < 16; i++) {
        entries[i] = cpu_to_le64(pool_entry(&t, i));
    }
    g_assert_cmpint(qrdma_bench_umr(&t.bench, level_2_umr(key, 504), entries,
                                    sizeof(entries)), ==, QRDMA_STATUS_OK);

    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(qrdma_pble_read(t.q, leaf_index(513, 0) + 504 + i),
                        ==, pool_entry(&t, i));
        g_assert_cmphex(qrdma_pble_read(t.q, leaf_index(513, 1) + i),
                        ==, pool_entry(&t, 8 + i));
    }
}

/* A UMR is coherent with the card's cache: what it wrote is used. */
static void test_umr_coherent(void *obj, void *data, QGuestAllocator *alloc)
{
    Table t;
    uint64_t unit[8];
    uint32_t key;

    table_init(&t, obj);
    fill_table(&t, 2, 513);
    key = make_mkey(&t, 2, 513);
    assert_page(&t, key, 512);
    memset(unit, 0, sizeof(unit));
    unit[0] = cpu_to_le64(pool_entry(&t, 5));
    g_assert_cmpint(qrdma_bench_umr(&t.bench, level_2_umr(key, 512), unit,
                                    sizeof(unit)), ==, QRDMA_STATUS_OK);

    g_assert_cmpint(qrdma_bench_read(&t.bench, t.local,
                                     START + 512 * QRDMA_PAGE, key,
                                     QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(t.q, t.local, QRDMA_PAGE, 5);
}

/* Roots of no use; case 51 among them. No write, no endless walk. */
static void test_bad_roots(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        const char *what;
        uint64_t root;
        bool umr_refused;
    } bad[] = {
        { "not valid", 0, true },
        { "reserved bit", LEAVES | QRDMA_ROOT_VALID | 1ull << 40, true },
        { "leaf off its unit", (LEAVES + 1) | QRDMA_ROOT_VALID, true },
        { "leaf outside PBLE space", UINT32_MAX | QRDMA_ROOT_VALID, true },
        { "leaf without a segment",
          (5 * QRDMA_PBLES_PER_SD) | QRDMA_ROOT_VALID, true },
        { "leaf is the root itself", ROOT | QRDMA_ROOT_VALID, false },
    };
    Table t;
    uint64_t unit[8] = { 0 };

    table_init(&t, obj);
    fill_table(&t, 2, 513);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint32_t key;

        g_test_message("%s", bad[i].what);
        qrdma_pble_write(t.q, ROOT, bad[i].root);
        key = make_mkey(&t, 2, 513);
        g_assert_cmpint(qrdma_bench_read(&t.bench, t.local, START, key, 8),
                        ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
        qrdma_bench_reconnect(&t.bench);
        if (bad[i].umr_refused) {
            g_assert_cmpint(qrdma_bench_umr(&t.bench, level_2_umr(key, 0),
                                            unit, sizeof(unit)), ==,
                            QRDMA_STATUS_HMC_ERROR);
            qrdma_bench_restart_umr(&t.bench);
        }
        qrdma_command_ok(t.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0,
                         NULL, 0);
    }
}

/* ------------------------------------------------------------ queue rings */

/* A queue's ring may be a level 1 table; case 21: not a level 2 one. */
static void test_ring_levels(void *obj, void *data, QGuestAllocator *alloc)
{
    const unsigned pages = 512;     /* of a CQ of 2^15 entries */
    Table t;
    struct qrdma_cqc cqc = {
        .ring = {
            .pble_index = cpu_to_le32(LEAVES),
            .num_pages = cpu_to_le32(pages),
            .level = 1,
            .log_page_size = 12,
            .log_entries = 15,
            .log_stride = QRDMA_CQE_LOG_SIZE,
        },
    };

    table_init(&t, obj);
    fill_table(&t, 1, pages);
    qrdma_command_ok(t.q, QRDMA_CMD_CREATE_CQ, 50, &cqc, sizeof(cqc),
                     NULL, 0);
    cqc.ring.level = 2;
    g_assert_cmpint(qrdma_command(t.q, QRDMA_CMD_CREATE_CQ, 51, &cqc,
                                  sizeof(cqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_LEVEL);
}

static void register_pble_tests(void)
{
    static const struct {
        const char *name;
        Level level;
    } levels[] = {
        { "level-1/1", { 1, 1, 1 } },
        { "level-1/5", { 1, 5, 1 } },
        { "level-1/600", { 1, 600, 2 } },
        { "level-2/512", { 2, 512, 1 } },
        { "level-2/513", { 2, 513, 2 } },
        { "level-2/1537", { 2, 1537, 4 } },
        { "level-2/262145", { 2, 262145, 513 } },
    };
    static QOSGraphTestOptions no_cache = {
        .edge.extra_device_opts = "pble-cache=off",
    };

    qos_node_produces("qrdma", GROUP);
    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        QOSGraphTestOptions options = { .arg = (void *)&levels[i].level };

        qos_add_test(levels[i].name, GROUP, test_level, &options);
    }
    qos_add_test("across-leaves", GROUP, test_across_leaves, NULL);
    qos_add_test("across-leaves-no-cache", GROUP, test_across_leaves,
                 &no_cache);
    qos_add_test("unaligned-start", GROUP, test_unaligned_start, NULL);
    qos_add_test("block-sizes", GROUP, test_block_sizes, NULL);
    qos_add_test("huge-blocks", GROUP, test_huge_blocks, NULL);
    qos_add_test("paged-sd", GROUP, test_paged_sd, NULL);
    qos_add_test("paged-sd-misaligned", GROUP,
                 test_paged_sd_misaligned, NULL);
    qos_add_test("sd-2049", GROUP, test_sd_2049, NULL);
    qos_add_test("remove-used-sd", GROUP, test_remove_used_sd, NULL);
    qos_add_test("remove-leaf-sd", GROUP, test_remove_leaf_sd, NULL);
    qos_add_test("invalidate", GROUP, test_invalidate, NULL);
    qos_add_test("no-cache", GROUP, test_no_cache, &no_cache);
    qos_add_test("umr-across-leaves", GROUP, test_umr_across_leaves,
                 NULL);
    qos_add_test("umr-coherent", GROUP, test_umr_coherent, NULL);
    qos_add_test("bad-roots", GROUP, test_bad_roots, NULL);
    qos_add_test("ring-levels", GROUP, test_ring_levels, NULL);
}

libqos_init(register_pble_tests);
