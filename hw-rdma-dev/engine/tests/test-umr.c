/*
 * qrdma engine tests: UMRs: what they change, and what makes them refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define RW QRDMA_PBLE_PRESENT
#define INDEX 5u
#define KEY REGION_KEY(INDEX)
#define START 0x7000000ull
#define TABLE 64u
#define ENTRIES 20u             /* of the region; the table has room for 24 */
#define UNITS 3u

/* A unit's worth of present entries. */
static const uint64_t good[QRDMA_PBLES_PER_UNIT * 8] = {
    0x10003, 0x20003, 0x30003, 0x40003, 0x50003, 0x60003, 0x70003, 0x80003,
    0x11003, 0x21003, 0x31003, 0x41003, 0x51003, 0x61003, 0x71003, 0x81003,
    0x12003, 0x22003, 0x32003, 0x42003, 0x52003, 0x62003, 0x72003, 0x82003,
};

static QrdmaMkc level_1_mkc(void)
{
    return region_mkc(START, ENTRIES * 4096, 12, 1, TABLE);
}

static TestCard *card_with_mkey(const QrdmaConfig *config)
{
    TestCard *card = card_new(config);
    QrdmaMkc mkc = level_1_mkc();

    card_add_direct_sd(card, 0);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    return card;
}

static void assert_table(TestCard *card, unsigned unit, const uint64_t *pbles)
{
    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        uint64_t index = TABLE + unit * QRDMA_PBLES_PER_UNIT + i;

        g_assert_cmphex(qrdma_le64(*card_pble(card, index)), ==,
                        pbles ? pbles[i] : 0);
    }
}

/* ------------------------------------------------------------ table writes */

static void check_write(uint16_t flags, unsigned slice)
{
    TestCard *card = card_with_mkey(NULL);
    TestUmr umr = {
        .key = KEY,
        .flags = flags | QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = QRDMA_TABLE_UNIT,
        .units = 2,
        .pbles = good,
    };
    QrdmaMkc before = region_query(card, INDEX);
    QrdmaMkc after;

    g_assert_cmpint(region_umr_sliced(card, &umr, slice, NULL, NULL), ==,
                    QRDMA_STATUS_OK);
    assert_table(card, 0, NULL);
    assert_table(card, 1, good);
    assert_table(card, 2, good + QRDMA_PBLES_PER_UNIT);
    assert_table(card, 3, NULL);
    after = region_query(card, INDEX);
    region_assert_same(&before, &after);
    g_assert_cmpuint(card->engine->counters.umr_completed, ==, 1);
    g_assert_cmpuint(card->engine->counters.umr_refused, ==, 0);
    g_assert_cmpuint(card->engine->counters.umr_table_bytes, ==, 128);
    card_free(card);
}

static void test_write_inline(void)
{
    check_write(QRDMA_UMR_INLINE, 8);
    check_write(QRDMA_UMR_INLINE, 1);
}

static void test_write_by_reference(void)
{
    check_write(0, 8);
    check_write(0, 1);
}

static void test_largest_write(void)
{
    const unsigned units = QRDMA_UMR_MAX_TABLE_WRITE / QRDMA_TABLE_UNIT;
    const unsigned entries = units * QRDMA_PBLES_PER_UNIT;
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0, entries * 4096ull, 12, 1, 0);
    g_autofree uint64_t *pbles = g_new(uint64_t, entries);
    TestUmr umr = { .key = KEY, .units = units, .pbles = pbles };

    card_add_paged_sd(card, 0);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < entries; i++) {
        pbles[i] = (i * 3ull + 1) << 12 | RW;
    }
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < entries; i++) {
        g_assert_cmphex(region_get_pble(card, &mkc, i), ==, pbles[i]);
    }
    card_free(card);
}

/* cases.md 9: the low half of the offset is 0, the offset is not. */
static void test_entry_131072(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0, 131080 * 4096ull, 12, 1, 0);
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE | QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = 131072 * sizeof(uint64_t),
        .units = 1,
        .pbles = good,
    };

    card_add_direct_sd(card, 0);
    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(region_get_pble(card, &mkc, 131072), ==, good[0]);
    g_assert_cmphex(region_get_pble(card, &mkc, 0), ==, 0);
    umr.offset += QRDMA_TABLE_UNIT;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_TABLE_RANGE);
    card_free(card);
}

static void test_level_0(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(START, 4096, 12, 0, 0);
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE,
        .units = 1,
        .pbles = good,
    };
    static const uint64_t large[2 * QRDMA_PBLES_PER_UNIT] = { 0x200003 };
    QrdmaAccess access;

    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(region_query(card, INDEX).base, ==, good[0]);
    g_assert_cmpint(region_access(card, KEY, QRDMA_LOCAL_WRITE, START, 1,
                                  &access), ==, QRDMA_ACCESS_GRANTED);
    g_assert_cmphex(access.bus_address, ==, 0x10000);

    /* There is but one unit. */
    umr.units = 2;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_TABLE_RANGE);
    /* The resulting context counts: this base is not aligned to 2 MiB. */
    umr.units = 1;
    umr.mask = QRDMA_UMR_MASK_PAGE_SIZE;
    umr.mkc.log_page_size = 21;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_ALIGNMENT);
    g_assert_cmphex(region_query(card, INDEX).base, ==, good[0]);
    g_assert_cmpuint(region_query(card, INDEX).log_page_size, ==, 12);
    /* Of the new base, not of the present one. */
    umr.pbles = large;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    umr.pbles = good;
    umr.mask = 0;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_ALIGNMENT);
    g_assert_cmphex(region_query(card, INDEX).base, ==, large[0]);
    card_free(card);
}

static TestCard *card_with_level_2(QrdmaMkc *mkc)
{
    TestCard *card = card_new(NULL);

    card_add_direct_sd(card, 0);
    card_add_paged_sd(card, 1);
    *mkc = region_mkc(0, 1537 * 4096, 12, 2, TABLE);
    /* Leaves in SD 1: nothing but a UMR under way keeps that. */
    region_set_leaves(card, mkc, QRDMA_PBLES_PER_SD);
    g_assert_cmpint(region_create(card, INDEX, mkc), ==, QRDMA_STATUS_OK);
    return card;
}

static void test_level_2(void)
{
    QrdmaMkc mkc;
    TestCard *card = card_with_level_2(&mkc);
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE | QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = 504 * sizeof(uint64_t),
        .units = UNITS,
        .pbles = good,
    };

    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < UNITS * QRDMA_PBLES_PER_UNIT; i++) {
        g_assert_cmphex(region_get_pble(card, &mkc, 504 + i), ==, good[i]);
    }
    /* The last leaf holds one entry, so one unit. */
    umr.offset = 1536 * sizeof(uint64_t);
    umr.units = 1;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(region_get_pble(card, &mkc, 1536), ==, good[0]);
    umr.units = 2;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_TABLE_RANGE);
    card_free(card);
}

static void test_level_2_unreachable(void)
{
    static const uint64_t roots[] = {
        0,                                      /* no leaf */
        QRDMA_PBLES_PER_SD,                     /* not valid */
        QRDMA_ROOT_VALID | 9,                   /* not at a unit */
        QRDMA_ROOT_VALID | 1ull << 33,          /* reserved bit */
        QRDMA_ROOT_VALID | 1u << 30,            /* outside */
        QRDMA_ROOT_VALID | 1u << 20,            /* no SD */
        QRDMA_ROOT_VALID | 0xfffffff8,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(roots); i++) {
        QrdmaMkc mkc;
        TestCard *card = card_with_level_2(&mkc);
        TestUmr umr = {
            .key = KEY,
            .flags = QRDMA_UMR_INLINE | QRDMA_UMR_TRANSLATION_OFFSET,
            .offset = 504 * sizeof(uint64_t),
            .units = 2,
            .pbles = good,
        };

        *card_pble(card, TABLE + 1) = qrdma_le64(roots[i]);
        g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_HMC_ERROR);
        /* The first unit could have been written, and was not. */
        g_assert_cmphex(region_get_pble(card, &mkc, 504), ==, 0);
        /* Nothing is held any more. */
        card_must(card, QRDMA_CMD_REMOVE_SD, 1, NULL, 0);
        card_free(card);
    }
}

/* --------------------------------------------------------------- the mask */

/* The fields that a mask bit stands for, taken from `from`. */
static QrdmaMkc masked(QrdmaMkc mkc, const QrdmaMkc *from, uint64_t bit)
{
    switch (bit) {
    case QRDMA_UMR_MASK_VARIANT:
        mkc.variant = from->variant;
        break;
    case QRDMA_UMR_MASK_PAGE_SIZE:
        mkc.log_page_size = from->log_page_size;
        break;
    case QRDMA_UMR_MASK_PD:
        mkc.pd = from->pd;
        break;
    case QRDMA_UMR_MASK_QPN:
        mkc.qpn = from->qpn;
        break;
    case QRDMA_UMR_MASK_START:
        mkc.start = from->start;
        mkc.first_byte_offset = from->first_byte_offset;
        break;
    case QRDMA_UMR_MASK_LENGTH:
        mkc.length = from->length;
        break;
    default:
        mkc.flags = (mkc.flags & ~bit) | (from->flags & bit);
        break;
    }
    return mkc;
}

/* cases.md 7: of each bit, exactly its field; of no bit, nothing. */
static void test_mask_gates(void)
{
    QrdmaMkc other = {
        .flags = QRDMA_MKEY_FREE | QRDMA_MKEY_RELAXED_ORDERING |
                 QRDMA_MKEY_ON_DEMAND | QRDMA_MKEY_LOCAL_WRITE,
        .variant = 0x99,
        .log_page_size = 16,
        .translation = 77,      /* never taken */
        .level = 88,
        .pd = 0x123456,
        .qpn = 0x654321,
        .start = START + 0x321,
        .length = 0x5000,
        .base = UINT64_MAX,
        .pble_index = UINT32_MAX,
        .capacity = UINT32_MAX,
        .first_byte_offset = 0x321,
    };

    for (uint64_t bit = 1; bit && bit <= QRDMA_UMR_MASK_ALL; bit <<= 1) {
        TestCard *card = card_with_mkey(NULL);
        TestUmr shorten = {
            .key = KEY, .mask = QRDMA_UMR_MASK_LENGTH, .mkc.length = 0x4000,
        };
        TestUmr umr = { .key = KEY, .mask = bit, .mkc = other };
        QrdmaMkc before, after, wanted;
        enum qrdma_status status;

        g_assert_cmpint(region_umr(card, &shorten), ==, QRDMA_STATUS_OK);
        before = region_query(card, INDEX);
        wanted = masked(before, &other, bit);
        status = region_umr(card, &umr);
        after = region_query(card, INDEX);
        if (!(bit & QRDMA_UMR_MASK_ALL)) {
            g_assert_cmpint(status, ==, QRDMA_STATUS_BAD_MASK);
            region_assert_same(&before, &after);
        } else {
            g_assert_cmpint(status, ==, QRDMA_STATUS_OK);
            region_assert_same(&wanted, &after);
        }
        card_free(card);
    }
}

/* All fields but the page size. */
static void test_mask_without_page_size(void)
{
    TestCard *card = card_with_mkey(NULL);
    QrdmaMkc mkc = level_1_mkc();
    TestUmr umr = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_ALL & ~QRDMA_UMR_MASK_PAGE_SIZE,
        .mkc = mkc,
    };

    umr.mkc.log_page_size = 0xff;
    umr.mkc.pd = 1;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    mkc.pd = 1;
    umr.mkc = region_query(card, INDEX);
    region_assert_same(&mkc, &umr.mkc);
    card_free(card);
}

/* Reserved bytes of an MKC segment of which nothing is taken are not read. */
static void test_unread_segment(void)
{
    TestCard *card = card_with_mkey(NULL);
    TestUmr umr = { .key = KEY };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];

    region_umr_wqe(card, &umr, wqe);
    memset(wqe + offsetof(struct qrdma_umr_wqe, mkc), 0xff,
           sizeof(struct qrdma_mkc));
    g_assert_cmpint(region_umr_raw(card, wqe), ==, QRDMA_STATUS_OK);
    card_free(card);
}

/* ---------------------------------------------------------------- refusals */

typedef struct Refusal {
    const char *name;
    void (*spoil)(struct qrdma_umr_wqe *wqe);
    enum qrdma_status status;
} Refusal;

/* From a good UMR that writes a unit inline and sets PD and page size. */
#define SPOIL(name, statement)                          \
    static void name(struct qrdma_umr_wqe *wqe)         \
    {                                                   \
        statement;                                      \
    }

SPOIL(opcode, wqe->opcode = QRDMA_SEND_OP_SEND)
SPOIL(wqe_flags, wqe->flags |= QRDMA_WQE_SOLICITED)
SPOIL(reserved, wqe->reserved[27] = 1)
SPOIL(unknown_flag, wqe->umr_flags |= qrdma_le16(1 << 4))
SPOIL(high_flag, wqe->umr_flags |= qrdma_le16(1 << 15))
SPOIL(both_checks, wqe->umr_flags |= qrdma_le16(QRDMA_UMR_CHECK_FREE |
                                                QRDMA_UMR_CHECK_NOT_FREE))
SPOIL(no_offset_flag, wqe->umr_flags = qrdma_le16(QRDMA_UMR_INLINE))
SPOIL(mask_bit_7, wqe->mask |= qrdma_le64(1 << 7))
SPOIL(mask_bit_14, wqe->mask |= qrdma_le64(1 << 14))
SPOIL(mask_bit_63, wqe->mask |= qrdma_le64(1ull << 63))
SPOIL(length_40, wqe->table_length = qrdma_le32(40))
SPOIL(length_inline, wqe->table_length = qrdma_le32(448))
SPOIL(length_reference,
      wqe->umr_flags = qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
      wqe->table_length = qrdma_le32(QRDMA_UMR_MAX_TABLE_WRITE + 64))
SPOIL(length_4_gib,
      wqe->umr_flags = qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
      wqe->table_length = qrdma_le32(UINT32_MAX - 63))
SPOIL(offset_8, wqe->table_offset = qrdma_le64(8))
SPOIL(offset_32, wqe->table_offset = qrdma_le64(32))
SPOIL(address_inline, wqe->table_address = qrdma_le64(0x1000))
SPOIL(address_unaligned,
      wqe->umr_flags = qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
      wqe->table_address = qrdma_le64(CARD_MEMORY_BASE + 32))
SPOIL(offset_alone, wqe->table_length = 0)
SPOIL(address_alone,
      wqe->umr_flags = 0;
      wqe->table_offset = 0;
      wqe->table_length = 0;
      wqe->table_address = qrdma_le64(0x1000))
SPOIL(index_0, wqe->key = qrdma_le32(REGION_VARIANT))
SPOIL(other_index, wqe->key = qrdma_le32(KEY + 256))
SPOIL(large_index, wqe->key = qrdma_le32(UINT32_MAX))
SPOIL(variant, wqe->key = qrdma_le32(KEY + 1))
SPOIL(not_free, wqe->umr_flags |= qrdma_le16(QRDMA_UMR_CHECK_FREE))
SPOIL(one_unit_past, wqe->table_offset = qrdma_le64(UNITS * 64))
SPOIL(last_unit_past, wqe->table_length = qrdma_le32(3 * 64))
SPOIL(wraps, wqe->table_offset = qrdma_le64(UINT64_MAX - 63))
SPOIL(wraps_into_table,
      wqe->table_offset = qrdma_le64(UINT64_MAX - 63);
      wqe->table_length = qrdma_le32(128))
SPOIL(unreadable,
      wqe->umr_flags = qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
      wqe->table_address = qrdma_le64(64))
SPOIL(at_the_end,
      wqe->umr_flags = qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
      wqe->table_length = qrdma_le32(128);
      wqe->table_address = qrdma_le64(UINT64_MAX - 63))
SPOIL(reserved_entry_bit, ((uint8_t *)wqe)[QRDMA_UMR_INLINE_OFFSET + 56] |= 4)
SPOIL(page_size_11, wqe->mkc.log_page_size = 11)
SPOIL(page_size_41, wqe->mkc.log_page_size = 41)
SPOIL(page_size_255, wqe->mkc.log_page_size = 255)
SPOIL(pd, wqe->mkc.pd = qrdma_le32(QRDMA_MAX_PD + 1))
SPOIL(qpn,
      wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_QPN);
      wqe->mkc.qpn = qrdma_le32(1 << 24))
SPOIL(length_0, wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_LENGTH))
SPOIL(length_wraps,
      wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_LENGTH);
      wqe->mkc.length = UINT64_MAX)
SPOIL(too_many_blocks,
      wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_LENGTH);
      wqe->mkc.log_page_size = 12;
      wqe->mkc.length = qrdma_le64((ENTRIES + 1) * 4096))
SPOIL(start_over_block,
      wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_START);
      wqe->mkc.log_page_size = 12;
      wqe->mkc.start = qrdma_le64(START + 1);
      wqe->mkc.first_byte_offset = qrdma_le16(1))
/* cases.md 12 */
SPOIL(first_byte_offset,
      wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_START);
      wqe->mkc.start = qrdma_le64(0x7000234);
      wqe->mkc.first_byte_offset = qrdma_le16(0x240))
SPOIL(rights, wqe->mask |= qrdma_le64(QRDMA_UMR_MASK_LOCAL_WRITE))

static const Refusal refusals[] = {
    { "opcode", opcode, QRDMA_STATUS_BAD_WQE },
    { "wqe-flags", wqe_flags, QRDMA_STATUS_BAD_WQE },
    { "reserved", reserved, QRDMA_STATUS_BAD_RESERVED },
    { "unknown-flag", unknown_flag, QRDMA_STATUS_BAD_FLAGS },
    { "high-flag", high_flag, QRDMA_STATUS_BAD_FLAGS },
    { "both-checks", both_checks, QRDMA_STATUS_BAD_FLAGS },
    { "no-offset-flag", no_offset_flag, QRDMA_STATUS_BAD_FLAGS },
    { "mask-bit-7", mask_bit_7, QRDMA_STATUS_BAD_MASK },
    { "mask-bit-14", mask_bit_14, QRDMA_STATUS_BAD_MASK },
    { "mask-bit-63", mask_bit_63, QRDMA_STATUS_BAD_MASK },
    { "length-40", length_40, QRDMA_STATUS_BAD_TABLE_LENGTH },
    { "length-inline", length_inline, QRDMA_STATUS_BAD_TABLE_LENGTH },
    { "length-reference", length_reference, QRDMA_STATUS_BAD_TABLE_LENGTH },
    { "length-4-gib", length_4_gib, QRDMA_STATUS_BAD_TABLE_LENGTH },
    { "offset-8", offset_8, QRDMA_STATUS_BAD_ALIGNMENT },
    { "offset-32", offset_32, QRDMA_STATUS_BAD_ALIGNMENT },
    { "address-inline", address_inline, QRDMA_STATUS_BAD_RESERVED },
    { "address-unaligned", address_unaligned, QRDMA_STATUS_BAD_ALIGNMENT },
    { "offset-alone", offset_alone, QRDMA_STATUS_BAD_TABLE_RANGE },
    { "address-alone", address_alone, QRDMA_STATUS_BAD_RESERVED },
    { "index-0", index_0, QRDMA_STATUS_NO_OBJECT },
    { "other-index", other_index, QRDMA_STATUS_NO_OBJECT },
    { "large-index", large_index, QRDMA_STATUS_NO_OBJECT },
    { "variant", variant, QRDMA_STATUS_BAD_VARIANT },
    { "not-free", not_free, QRDMA_STATUS_MKEY_NOT_FREE },
    { "one-unit-past", one_unit_past, QRDMA_STATUS_BAD_TABLE_RANGE },
    { "last-unit-past", last_unit_past, QRDMA_STATUS_BAD_TABLE_RANGE },
    { "wraps", wraps, QRDMA_STATUS_BAD_TABLE_RANGE },
    { "wraps-into-table", wraps_into_table, QRDMA_STATUS_BAD_TABLE_RANGE },
    { "unreadable", unreadable, QRDMA_STATUS_DMA_ERROR },
    { "at-the-end", at_the_end, QRDMA_STATUS_DMA_ERROR },
    { "reserved-entry-bit", reserved_entry_bit, QRDMA_STATUS_BAD_ENTRY },
    { "page-size-11", page_size_11, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-size-41", page_size_41, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "page-size-255", page_size_255, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "pd", pd, QRDMA_STATUS_BAD_PD },
    { "qpn", qpn, QRDMA_STATUS_BAD_QPN },
    { "length-0", length_0, QRDMA_STATUS_BAD_LENGTH },
    { "length-wraps", length_wraps, QRDMA_STATUS_BAD_LENGTH },
    { "too-many-blocks", too_many_blocks, QRDMA_STATUS_BAD_CAPACITY },
    { "start-over-block", start_over_block, QRDMA_STATUS_BAD_CAPACITY },
    { "first-byte-offset", first_byte_offset,
      QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
    { "rights", rights, QRDMA_STATUS_BAD_RIGHTS },
};

static void test_refused(const void *data)
{
    const Refusal *refusal = data;
    TestCard *card = card_with_mkey(NULL);
    QrdmaMkc before = region_query(card, INDEX);
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE | QRDMA_UMR_TRANSLATION_OFFSET,
        .mask = QRDMA_UMR_MASK_PD | QRDMA_UMR_MASK_PAGE_SIZE,
        .mkc = { .pd = 1, .log_page_size = 13 },
        .offset = QRDMA_TABLE_UNIT,
        .units = 1,
        .pbles = good,
    };
    uint64_t wqe[QRDMA_UMR_WQE_SIZE / sizeof(uint64_t)];
    QrdmaMkc after;

    region_umr_wqe(card, &umr, (uint8_t *)wqe);
    refusal->spoil((struct qrdma_umr_wqe *)wqe);
    g_assert_cmpint(region_umr_raw(card, (uint8_t *)wqe), ==, refusal->status);
    after = region_query(card, INDEX);
    region_assert_same(&before, &after);
    for (unsigned unit = 0; unit < 8; unit++) {
        assert_table(card, unit, NULL);
    }
    g_assert_cmpuint(card->engine->counters.umr_refused, ==, 1);
    g_assert_cmpuint(card->engine->counters.umr_completed, ==, 0);
    g_assert_cmpuint(card->engine->counters.umr_table_bytes, ==, 0);
    g_assert_cmpuint(card->host->guest_errors, ==, 1);
    /* And the good one goes through after it: nothing stays claimed. */
    region_umr_wqe(card, &umr, (uint8_t *)wqe);
    g_assert_cmpint(region_umr_raw(card, (uint8_t *)wqe), ==, QRDMA_STATUS_OK);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    card_must(card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0);
    card_free(card);
}

/* cases.md 12, the other half. */
static void test_first_byte_offset(void)
{
    TestCard *card = card_with_mkey(NULL);
    TestUmr umr = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_START | QRDMA_UMR_MASK_LENGTH,
        .mkc = {
            .start = 0x7000234, .length = 4096, .first_byte_offset = 0x234,
        },
    };

    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    card_free(card);
}

static void test_check_free(void)
{
    TestCard *card = card_with_mkey(NULL);
    TestUmr take = {
        .key = KEY,
        .flags = QRDMA_UMR_CHECK_NOT_FREE,
        .mask = QRDMA_UMR_MASK_FREE,
        .mkc.flags = QRDMA_MKEY_FREE,
    };
    TestUmr give = {
        .key = KEY,
        .flags = QRDMA_UMR_CHECK_FREE,
        .mask = QRDMA_UMR_MASK_FREE,
    };

    g_assert_cmpint(region_umr(card, &give), ==, QRDMA_STATUS_MKEY_NOT_FREE);
    g_assert_cmpint(region_umr(card, &take), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_umr(card, &take), ==, QRDMA_STATUS_MKEY_FREE);
    g_assert_cmpint(region_umr(card, &give), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(region_query(card, INDEX).flags, ==, REGION_ALL_RIGHTS);
    card_free(card);
}

static void test_all_memory_has_no_table(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_all_memory();
    TestUmr umr = {
        .key = KEY, .flags = QRDMA_UMR_INLINE, .units = 1, .pbles = good,
    };

    g_assert_cmpint(region_create(card, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_TABLE_RANGE);
    umr = (TestUmr) {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_LENGTH,
        .mkc.length = 4096,
    };
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_BAD_LENGTH);
    umr.mask = QRDMA_UMR_MASK_PD;
    umr.mkc.pd = 3;
    g_assert_cmpint(region_umr(card, &umr), ==, QRDMA_STATUS_OK);
    g_assert_cmpuint(region_query(card, INDEX).pd, ==, 3);
    card_free(card);
}

static void test_injected(void)
{
    QrdmaConfig config = card_default_config();
    static const enum qrdma_status expected[] = {
        QRDMA_STATUS_OK, QRDMA_STATUS_OK, QRDMA_STATUS_INJECTED,
        QRDMA_STATUS_INJECTED, QRDMA_STATUS_INJECTED, QRDMA_STATUS_OK,
    };
    TestUmr umr = { .key = KEY };
    TestCard *card;

    card = card_with_mkey(&config);
    card_refuse_umrs(card, 3, 3);
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpint(region_umr(card, &umr), ==, expected[i]);
    }
    g_assert_cmpuint(card_faults(card), ==, 0);
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/umr/write-inline", test_write_inline);
    g_test_add_func("/umr/write-by-reference", test_write_by_reference);
    g_test_add_func("/umr/largest-write", test_largest_write);
    g_test_add_func("/umr/entry-131072", test_entry_131072);
    g_test_add_func("/umr/level-0", test_level_0);
    g_test_add_func("/umr/level-2", test_level_2);
    g_test_add_func("/umr/level-2-unreachable", test_level_2_unreachable);
    g_test_add_func("/umr/mask-gates", test_mask_gates);
    g_test_add_func("/umr/mask-without-page-size",
                    test_mask_without_page_size);
    g_test_add_func("/umr/unread-segment", test_unread_segment);
    for (unsigned i = 0; i < G_N_ELEMENTS(refusals); i++) {
        g_autofree char *path = g_strdup_printf("/umr/refused/%s",
                                                refusals[i].name);

        g_test_add_data_func(path, &refusals[i], test_refused);
    }
    g_test_add_func("/umr/first-byte-offset", test_first_byte_offset);
    g_test_add_func("/umr/check-free", test_check_free);
    g_test_add_func("/umr/all-memory-has-no-table",
                    test_all_memory_has_no_table);
    g_test_add_func("/umr/injected", test_injected);
    return g_test_run();
}
