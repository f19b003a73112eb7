/*
 * qrdma: the UMR queue: table writes, context changes, refusals, recovery.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"
#include "qrdma-verify.h"

#define GROUP       "qrdma-umr"
#define INDEX       0x55
#define START       0x10000000ull
#define TABLE       64          /* first PBLE of the table */
#define ENTRIES     32
#define UNIT        QRDMA_TABLE_UNIT
#define NO_MEMORY   0x200000000000ull

typedef struct Umr {
    QRdmaBench bench;
    QRdma *q;
    struct qrdma_mkc mkc;
    uint32_t key;
} Umr;

/* Given a level 1 mkey of 32 pages, all absent. */
static void umr_init(Umr *u, QRdma *q)
{
    u->q = q;
    qrdma_bench_init(&u->bench, q);
    qrdma_add_direct_sd(q, 0);
    u->mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START,
                             ENTRIES * QRDMA_PAGE, TABLE, ENTRIES);
    u->key = qrdma_bench_mkey(&u->bench, INDEX, &u->mkc);
}

static uint64_t entry_value(unsigned i)
{
    return (0x100000 + i * QRDMA_PAGE) | QRDMA_PBLE_PRESENT;
}

static void fill_entries(uint64_t *entries, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        entries[i] = cpu_to_le64(entry_value(i));
    }
}

static struct qrdma_mkc query(Umr *u)
{
    struct qrdma_mkc mkc;

    qrdma_command_ok(u->q, QRDMA_CMD_QUERY_MKEY, INDEX, NULL, 0,
                     &mkc, sizeof(mkc));
    return mkc;
}

static void assert_context(Umr *u, const struct qrdma_mkc *expected)
{
    struct qrdma_mkc seen = query(u);

    g_assert_cmpmem(&seen, sizeof(seen), expected, sizeof(*expected));
}

/* Entries `from` up to the end of the table are zero. */
static void assert_absent(Umr *u, unsigned from)
{
    for (unsigned i = from; i < ENTRIES; i++) {
        g_assert_cmphex(qrdma_pble_read(u->q, TABLE + i), ==, 0);
    }
}

/* ------------------------------------------------------------ table writes */

static void test_inline(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    uint64_t entries[16];
    struct qrdma_umr_wqe wqe = { 0 };

    umr_init(&u, obj);
    fill_entries(entries, 16);
    wqe.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, entries, sizeof(entries)),
                    ==, QRDMA_STATUS_OK);

    for (unsigned i = 0; i < 16; i++) {
        g_assert_cmphex(qrdma_pble_read(u.q, TABLE + i), ==, entry_value(i));
    }
    assert_absent(&u, 16);
    assert_context(&u, &u.mkc);
}

static void test_offset(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    uint64_t entries[8];
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_TRANSLATION_OFFSET),
        .table_offset = cpu_to_le64(3 * UNIT),
    };

    umr_init(&u, obj);
    fill_entries(entries, 8);
    wqe.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, entries, sizeof(entries)),
                    ==, QRDMA_STATUS_OK);

    for (unsigned i = 0; i < 24; i++) {
        g_assert_cmphex(qrdma_pble_read(u.q, TABLE + i), ==, 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(qrdma_pble_read(u.q, TABLE + 24 + i), ==,
                        entry_value(i));
    }
}

/* The most that one UMR may write, by reference. */
static void test_by_reference(void *obj, void *data, QGuestAllocator *alloc)
{
    const unsigned count = QRDMA_UMR_MAX_TABLE_WRITE / QRDMA_PBLE_SIZE;
    g_autofree uint64_t *entries = g_new(uint64_t, count);
    g_autofree uint64_t *seen = g_new(uint64_t, count);
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_mkc mkc;
    struct qrdma_umr_wqe wqe = {
        .table_length = cpu_to_le32(QRDMA_UMR_MAX_TABLE_WRITE),
    };
    uint64_t staging;

    qrdma_bench_init(&bench, q);
    qrdma_add_direct_sd(q, 0);
    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START,
                          count * QRDMA_PAGE, TABLE, count);
    wqe.key = cpu_to_le32(qrdma_bench_mkey(&bench, INDEX, &mkc));

    staging = qrdma_alloc(q, QRDMA_UMR_MAX_TABLE_WRITE);
    fill_entries(entries, count);
    qtest_bufwrite(q->qts, staging, entries, QRDMA_UMR_MAX_TABLE_WRITE);
    wqe.table_address = cpu_to_le64(staging);
    g_assert_cmpint(qrdma_bench_umr(&bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);

    qtest_bufread(q->qts, qrdma_pble_address(q, TABLE), seen,
                  QRDMA_UMR_MAX_TABLE_WRITE);
    g_assert_cmpmem(seen, QRDMA_UMR_MAX_TABLE_WRITE, entries,
                    QRDMA_UMR_MAX_TABLE_WRITE);
}

/* Level 0: the table is one unit, and its first entry is the block. */
static void test_level_0(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_mkc mkc, seen;
    struct qrdma_umr_wqe wqe = { 0 };
    uint64_t unit[8] = { cpu_to_le64(0x123000 | QRDMA_PBLE_PRESENT) };

    qrdma_bench_init(&bench, q);
    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 0, 12, START, QRDMA_PAGE,
                          0, 1);
    wqe.key = cpu_to_le32(qrdma_bench_mkey(&bench, INDEX, &mkc));
    g_assert_cmpint(qrdma_bench_umr(&bench, wqe, unit, sizeof(unit)), ==,
                    QRDMA_STATUS_OK);

    qrdma_command_ok(q, QRDMA_CMD_QUERY_MKEY, INDEX, NULL, 0,
                     &seen, sizeof(seen));
    mkc.base = unit[0];
    g_assert_cmpmem(&seen, sizeof(seen), &mkc, sizeof(mkc));
}

/* ------------------------------------------------------------------ masks */

/*
 * Given an MKC segment in which every field differs, when the mask names one
 * field, then that one changes. Case 7: the rows that leave the page size out.
 */
static void test_masks(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t mask;
        size_t offset;
        size_t size;
    } fields[] = {
        { QRDMA_UMR_MASK_VARIANT, offsetof(struct qrdma_mkc, variant), 1 },
        { QRDMA_UMR_MASK_PAGE_SIZE,
          offsetof(struct qrdma_mkc, log_page_size), 1 },
        { QRDMA_UMR_MASK_PD, offsetof(struct qrdma_mkc, pd), 4 },
        { QRDMA_UMR_MASK_QPN, offsetof(struct qrdma_mkc, qpn), 4 },
        { QRDMA_UMR_MASK_LENGTH, offsetof(struct qrdma_mkc, length), 8 },
        { QRDMA_UMR_MASK_PD | QRDMA_UMR_MASK_QPN,
          offsetof(struct qrdma_mkc, pd), 8 },
    };
    struct qrdma_mkc other = {
        .flags = cpu_to_le32(QRDMA_MKEY_FREE),
        .variant = 0xee,
        .log_page_size = 16,
        .translation = 0xff,
        .level = 0xff,
        .pd = cpu_to_le32(0x123456),
        .qpn = cpu_to_le32(0x654321),
        .length = cpu_to_le64(QRDMA_PAGE),
        .pble_index = cpu_to_le32(0xffffffff),
        .capacity = cpu_to_le32(0xffffffff),
        .reserved = { 0xff },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
        Umr u;
        struct qrdma_umr_wqe wqe = {
            .mask = cpu_to_le64(fields[i].mask), .mkc = other,
        };

        umr_init(&u, q);
        wqe.key = cpu_to_le32(u.key);
        g_test_message("mask 0x%" PRIx64, fields[i].mask);
        g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                        QRDMA_STATUS_OK);
        memcpy((uint8_t *)&u.mkc + fields[i].offset,
               (uint8_t *)&other + fields[i].offset, fields[i].size);
        assert_context(&u, &u.mkc);
    }
}

/* Each flag has its own bit in the mask. */
static void test_flag_masks(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t mask;
        uint32_t flag;
    } flags[] = {
        { QRDMA_UMR_MASK_FREE, QRDMA_MKEY_FREE },
        { QRDMA_UMR_MASK_REMOTE_READ, QRDMA_MKEY_REMOTE_READ },
        { QRDMA_UMR_MASK_REMOTE_WRITE, QRDMA_MKEY_REMOTE_WRITE },
        { QRDMA_UMR_MASK_REMOTE_ATOMIC, QRDMA_MKEY_REMOTE_ATOMIC },
        { QRDMA_UMR_MASK_RELAXED_ORDERING, QRDMA_MKEY_RELAXED_ORDERING },
        { QRDMA_UMR_MASK_ON_DEMAND, QRDMA_MKEY_ON_DEMAND },
    };
    QRdma *q = obj;
    Umr u;

    umr_init(&u, q);
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        struct qrdma_umr_wqe wqe = {
            .key = cpu_to_le32(u.key),
            .mask = cpu_to_le64(flags[i].mask),
        };

        /* The segment has every flag the other way round. */
        wqe.mkc.flags = u.mkc.flags ^
            cpu_to_le32(QRDMA_MKEY_FLAGS_MASK & ~QRDMA_MKEY_ALL_MEMORY);
        g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                        QRDMA_STATUS_OK);
        u.mkc.flags ^= cpu_to_le32(flags[i].flag);
        assert_context(&u, &u.mkc);
    }
}

/* Start, and with it the offset in its page. */
static void test_start_mask(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe wqe = {
        .mask = cpu_to_le64(QRDMA_UMR_MASK_START | QRDMA_UMR_MASK_LENGTH),
        .mkc = {
            .start = cpu_to_le64(START + 0x234),
            .length = cpu_to_le64(QRDMA_PAGE),
            .first_byte_offset = cpu_to_le16(0x234),
        },
    };

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    u.mkc.start = wqe.mkc.start;
    u.mkc.length = wqe.mkc.length;
    u.mkc.first_byte_offset = wqe.mkc.first_byte_offset;
    assert_context(&u, &u.mkc);
}

/* Given a new variant, the old key is no longer the mkey's. */
static void test_variant(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe wqe = {
        .mask = cpu_to_le64(QRDMA_UMR_MASK_VARIANT),
        .mkc.variant = 0xab,
    };

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_BAD_VARIANT);
    qrdma_bench_restart_umr(&u.bench);
    wqe.key = cpu_to_le32(INDEX << 8 | 0xab);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
}

/* --------------------------------------------------------------- refusals */

typedef struct BadUmr {
    const char *what;
    struct qrdma_umr_wqe wqe;   /* in host order; a key of 0 is the mkey's */
    unsigned inline_units;
    enum qrdma_status status;
} BadUmr;

static void assert_refused(Umr *u, const BadUmr *bad)
{
    struct qrdma_umr_wqe wqe = bad->wqe;
    uint64_t entries[48];

    fill_entries(entries, ARRAY_SIZE(entries));
    wqe.umr_flags = cpu_to_le16(wqe.umr_flags);
    wqe.key = cpu_to_le32(wqe.key ? wqe.key : u->key);
    wqe.mask = cpu_to_le64(wqe.mask);
    wqe.table_offset = cpu_to_le64(wqe.table_offset);
    wqe.table_address = cpu_to_le64(wqe.table_address);
    wqe.table_length = cpu_to_le32(wqe.table_length);
    g_test_message("%s", bad->what);
    g_assert_cmpint(qrdma_bench_umr(&u->bench, wqe, entries,
                                    bad->inline_units * UNIT), ==,
                    bad->status);
    /* Then nothing has changed. */
    assert_absent(u, 0);
    assert_context(u, &u->mkc);
    qrdma_bench_restart_umr(&u->bench);
}

static void test_refused(void *obj, void *data, QGuestAllocator *alloc)
{
    static const BadUmr bad[] = {
        { "no such mkey", { .key = 0x7700 }, 1, QRDMA_STATUS_NO_OBJECT },
        { "index beyond the limit", { .key = 0xffffff00u }, 1,
          QRDMA_STATUS_NO_OBJECT },
        { "variant", { .key = INDEX << 8 | 0xff }, 1,
          QRDMA_STATUS_BAD_VARIANT },
        { "unknown flag", { .umr_flags = 1 << 4 }, 1,
          QRDMA_STATUS_BAD_FLAGS },
        { "both checks",
          { .umr_flags = QRDMA_UMR_CHECK_FREE | QRDMA_UMR_CHECK_NOT_FREE }, 1,
          QRDMA_STATUS_BAD_FLAGS },
        { "unknown mask bit", { .mask = 1ull << 14 }, 1,
          QRDMA_STATUS_BAD_MASK },
        { "reserved byte", { .reserved[27] = 1 }, 1,
          QRDMA_STATUS_BAD_RESERVED },
        { "inline with an address", { .table_address = 0x100000 }, 1,
          QRDMA_STATUS_BAD_RESERVED },
        { "check free of a used mkey",
          { .umr_flags = QRDMA_UMR_CHECK_FREE }, 1,
          QRDMA_STATUS_MKEY_NOT_FREE },
        { "context of no good", { .mask = QRDMA_UMR_MASK_PAGE_SIZE }, 1,
          QRDMA_STATUS_BAD_PAGE_SIZE },
    };
    Umr u;

    umr_init(&u, obj);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_refused(&u, &bad[i]);
    }
}

/* Case 9: the whole of the write is checked before its first byte. */
static void test_table_bounds(void *obj, void *data, QGuestAllocator *alloc)
{
    static const BadUmr bad[] = {
        { "one unit past the end",
          { .umr_flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .table_offset = ENTRIES * 8 }, 1, QRDMA_STATUS_BAD_TABLE_RANGE },
        { "the last of its units past the end",
          { .umr_flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .table_offset = (ENTRIES - 8) * 8 }, 2,
          QRDMA_STATUS_BAD_TABLE_RANGE },
        { "more units than the table has", { 0 }, 5,
          QRDMA_STATUS_BAD_TABLE_RANGE },
        { "offset + length wraps 64 bits",
          { .umr_flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .table_offset = UINT64_MAX - UNIT + 1 }, 2,
          QRDMA_STATUS_BAD_TABLE_RANGE },
        { "offset that is 0 in its low 32 bits",
          { .umr_flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .table_offset = 1ull << 32 }, 1, QRDMA_STATUS_BAD_TABLE_RANGE },
        { "offset off its unit",
          { .umr_flags = QRDMA_UMR_TRANSLATION_OFFSET, .table_offset = 8 }, 1,
          QRDMA_STATUS_BAD_ALIGNMENT },
        { "offset without the flag", { .table_offset = UNIT }, 1,
          QRDMA_STATUS_BAD_FLAGS },
        { "40 bytes by reference",
          { .table_address = 0x100000, .table_length = 40 }, 0,
          QRDMA_STATUS_BAD_TABLE_LENGTH },
        { "more by reference than one UMR may write",
          { .table_address = 0x100000,
            .table_length = QRDMA_UMR_MAX_TABLE_WRITE + UNIT }, 0,
          QRDMA_STATUS_BAD_TABLE_LENGTH },
        { "4 GiB less a unit",
          { .table_address = 0x100000, .table_length = 0u - UNIT }, 0,
          QRDMA_STATUS_BAD_TABLE_LENGTH },
        { "reference off its alignment",
          { .table_address = 0x100020, .table_length = UNIT }, 0,
          QRDMA_STATUS_BAD_ALIGNMENT },
        { "reference to no memory",
          { .table_address = NO_MEMORY, .table_length = UNIT }, 0,
          QRDMA_STATUS_DMA_ERROR },
    };
    Umr u;

    umr_init(&u, obj);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_refused(&u, &bad[i]);
    }
}

/* Inline data that claims to be longer than a WQE has room for. */
static void test_inline_too_long(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    static const BadUmr bad = {
        "inline beyond the WQE",
        { .umr_flags = QRDMA_UMR_INLINE,
          .table_length = QRDMA_UMR_MAX_INLINE + UNIT }, 0,
        QRDMA_STATUS_BAD_TABLE_LENGTH,
    };
    Umr u;

    umr_init(&u, obj);
    assert_refused(&u, &bad);
}

/* Given one bad entry in the last unit, not even the first unit is written. */
static void test_bad_entry(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    uint64_t entries[16];
    struct qrdma_umr_wqe wqe = { 0 };

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    fill_entries(entries, 16);
    entries[15] |= cpu_to_le64(1 << 2);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, entries, sizeof(entries)),
                    ==, QRDMA_STATUS_BAD_ENTRY);
    assert_absent(&u, 0);
}

/* Case 9: entry 131072, whose byte offset is not 0 in its low half only. */
static void test_entry_131072(void *obj, void *data, QGuestAllocator *alloc)
{
    const unsigned entry = 131072;
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_mkc mkc;
    uint64_t entries[8];
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_TRANSLATION_OFFSET),
        .table_offset = cpu_to_le64(entry * 8ull),
    };

    qrdma_bench_init(&bench, q);
    qrdma_add_direct_sd(q, 0);
    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START,
                          (entry + 8) * QRDMA_PAGE, 0, entry + 8);
    wqe.key = cpu_to_le32(qrdma_bench_mkey(&bench, INDEX, &mkc));
    fill_entries(entries, 8);
    g_assert_cmpint(qrdma_bench_umr(&bench, wqe, entries, sizeof(entries)),
                    ==, QRDMA_STATUS_OK);

    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmphex(qrdma_pble_read(q, i), ==, 0);
        g_assert_cmphex(qrdma_pble_read(q, entry + i), ==, entry_value(i));
    }
}

/* ----------------------------------------------------- free and not free */

static void set_free(Umr *u, bool free)
{
    struct qrdma_umr_wqe wqe = {
        .key = cpu_to_le32(u->key),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE),
        .mkc.flags = cpu_to_le32(free ? QRDMA_MKEY_FREE : 0),
    };

    g_assert_cmpint(qrdma_bench_umr(&u->bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
}

static void test_check_free(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_FREE),
    };

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    set_free(&u, true);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    set_free(&u, false);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_MKEY_NOT_FREE);
}

static void test_check_not_free(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_NOT_FREE),
    };

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    set_free(&u, true);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_MKEY_FREE);
}

/* --------------------------------------------------------------- recovery */

/*
 * Case 3. Given three UMRs in one go, the second bad: one completion each, in
 * order, and the third has changed nothing.
 */
static void test_error_then_flush(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    static const enum qrdma_cqe_status expected[] = {
        QRDMA_CQE_SUCCESS, QRDMA_CQE_UMR_ERROR, QRDMA_CQE_FLUSHED,
    };
    static const uint32_t pds[] = { 1, QRDMA_MAX_PD + 1, 3 };
    Umr u;
    struct qrdma_umr_wqe wqe = {
        .opcode = QRDMA_SEND_OP_UMR,
        .flags = QRDMA_WQE_SIGNALED,
        .mask = cpu_to_le64(QRDMA_UMR_MASK_PD),
    };
    uint32_t first;

    umr_init(&u, obj);
    wqe.key = cpu_to_le32(u.key);
    first = u.bench.umr.send_producer;
    for (unsigned i = 0; i < 3; i++) {
        wqe.mkc.pd = cpu_to_le32(pds[i]);
        qrdma_send_put(u.q, &u.bench.umr, &wqe, sizeof(wqe), NULL, 0);
    }
    qrdma_send_ring(u.q, &u.bench.umr);

    for (unsigned i = 0; i < 3; i++) {
        struct qrdma_cqe cqe = qrdma_cq_expect(u.q, &u.bench.cq_umr,
                                               expected[i]);

        g_assert_cmpuint(le32_to_cpu(cqe.wqe_counter), ==, first + i);
        g_assert_cmpint(cqe.opcode, ==, QRDMA_CQE_OP_UMR);
    }
    qrdma_cq_expect_none(u.q, &u.bench.cq_umr);
    g_assert_cmpint(qrdma_qp_query(u.q, u.bench.umr.number).state, ==,
                    QRDMA_QP_ERROR);
    u.mkc.pd = cpu_to_le32(1);
    assert_context(&u, &u.mkc);
}

/* Given a queue in error, what is posted is flushed, until it is reset. */
static void test_flush_until_reset(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe bad = { .key = cpu_to_le32(0x7700) };
    struct qrdma_umr_wqe good = { 0 };

    umr_init(&u, obj);
    good.key = cpu_to_le32(u.key);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, bad, NULL, 0), ==,
                    QRDMA_STATUS_NO_OBJECT);
    qrdma_post_umr(u.q, &u.bench.umr, good, NULL, 0);
    qrdma_cq_expect(u.q, &u.bench.cq_umr, QRDMA_CQE_FLUSHED);

    qrdma_bench_restart_umr(&u.bench);
    g_assert_cmpint(qrdma_bench_umr(&u.bench, good, NULL, 0), ==,
                    QRDMA_STATUS_OK);
}

/* A UMR is not for other queues, nor other work for the UMR queue. */
static void test_wrong_queue(void *obj, void *data, QGuestAllocator *alloc)
{
    Umr u;
    struct qrdma_umr_wqe umr = { 0 };
    struct qrdma_send_wqe send = { .opcode = QRDMA_SEND_OP_SEND };
    struct qrdma_cqe cqe;

    umr_init(&u, obj);
    umr.key = cpu_to_le32(u.key);
    qrdma_post_umr(u.q, &u.bench.a, umr, NULL, 0);
    cqe = qrdma_cq_expect(u.q, &u.bench.cq_a,
                          QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
    g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, QRDMA_WQE_OPCODE);

    qrdma_post(u.q, &u.bench.umr, send, NULL, 0);
    cqe = qrdma_cq_wait(u.q, &u.bench.cq_umr);
    g_assert_cmpint(cqe.status, !=, QRDMA_CQE_SUCCESS);
}

/* Injected faults: pass one, refuse two, then all pass again. */
static void test_injected(void *obj, void *data, QGuestAllocator *alloc)
{
    static const enum qrdma_status expected[] = {
        QRDMA_STATUS_OK, QRDMA_STATUS_INJECTED, QRDMA_STATUS_INJECTED,
        QRDMA_STATUS_OK,
    };
    const QRdmaFault fault = {
        .target = QRDMA_FAULT_UMR,
        .action = QRDMA_FAULT_FAIL,
        .at = 2,
        .count = 2,
    };
    Umr u;

    umr_init(&u, obj);
    qrdma_fault_arm_registers(u.q, &fault);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(u.key) };
        enum qrdma_status status = qrdma_bench_umr(&u.bench, wqe, NULL, 0);

        g_assert_cmpint(status, ==, expected[i]);
        if (status != QRDMA_STATUS_OK) {
            qrdma_bench_restart_umr(&u.bench);
        }
    }
    g_assert_cmphex(qrdma_read32(u.q, QRDMA_REG_FAULT_ARMED), ==, 0);
}

static void register_umr_tests(void)
{
    static QOSGraphTestOptions diagnostics = {
        .edge.extra_device_opts = "diagnostics=on",
    };
    static QOSGraphTestOptions seed = {
        .edge.extra_device_opts = "umr-order-seed=12345",
    };

    qos_node_produces("qrdma", GROUP);
    qos_add_test("inline", GROUP, test_inline, NULL);
    qos_add_test("inline-any-order", GROUP, test_inline, &seed);
    qos_add_test("offset", GROUP, test_offset, NULL);
    qos_add_test("by-reference", GROUP, test_by_reference, NULL);
    qos_add_test("by-reference-any-order", GROUP, test_by_reference,
                 &seed);
    qos_add_test("level-0", GROUP, test_level_0, NULL);
    qos_add_test("masks", GROUP, test_masks, NULL);
    qos_add_test("flag-masks", GROUP, test_flag_masks, NULL);
    qos_add_test("start-mask", GROUP, test_start_mask, NULL);
    qos_add_test("variant", GROUP, test_variant, NULL);
    qos_add_test("refused", GROUP, test_refused, NULL);
    qos_add_test("table-bounds", GROUP, test_table_bounds, NULL);
    qos_add_test("inline-too-long", GROUP, test_inline_too_long, NULL);
    qos_add_test("bad-entry", GROUP, test_bad_entry, NULL);
    qos_add_test("entry-131072", GROUP, test_entry_131072, NULL);
    qos_add_test("check-free", GROUP, test_check_free, NULL);
    qos_add_test("check-not-free", GROUP, test_check_not_free, NULL);
    qos_add_test("error-then-flush", GROUP, test_error_then_flush,
                 NULL);
    qos_add_test("flush-until-reset", GROUP, test_flush_until_reset,
                 NULL);
    qos_add_test("wrong-queue", GROUP, test_wrong_queue, NULL);
    qos_add_test("injected", GROUP, test_injected, &diagnostics);
}

libqos_init(register_umr_tests);
