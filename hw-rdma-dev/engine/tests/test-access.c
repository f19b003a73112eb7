/*
 * qrdma engine tests: key and address to bus address, and every refusal.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define RW QRDMA_PBLE_PRESENT

#define INDEX 5u
#define KEY REGION_KEY(INDEX)

static void must_create(TestCard *card, uint32_t index, const QrdmaMkc *mkc)
{
    g_assert_cmpint(region_create(card, index, mkc), ==, QRDMA_STATUS_OK);
}

static void assert_at(TestCard *card, uint64_t address, uint64_t length,
                      uint64_t bus_address, uint64_t bus_length)
{
    QrdmaAccess access;

    g_assert_cmpint(region_access(card, KEY, QRDMA_REMOTE_READ, address, length,
                                  &access), ==, QRDMA_ACCESS_GRANTED);
    g_assert_cmphex(access.bus_address, ==, bus_address);
    g_assert_cmphex(access.length, ==, bus_length);
}

static void assert_refused_kind(TestCard *card, QrdmaAccessKind kind,
                                uint64_t address, uint64_t length,
                                enum qrdma_access_error error)
{
    uint64_t before = card->engine->counters.access_refused;
    QrdmaAccess access;

    g_assert_cmpint(region_access(card, KEY, kind, address, length, &access),
                    ==, QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(access.error, ==, error);
    g_assert_cmpuint(card->engine->counters.access_refused, ==, before + 1);
}

static void assert_refused(TestCard *card, uint64_t address, uint64_t length,
                           enum qrdma_access_error error)
{
    assert_refused_kind(card, QRDMA_REMOTE_READ, address, length, error);
}

/* -------------------------------------------------------------- refusals */

/* Four pages at level 1, all present. */
static TestCard *card_with_region(uint32_t flags)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0x10000, 4 * 4096, 12, 1, 64);

    card_add_direct_sd(card, 0);
    mkc.flags = flags;
    for (unsigned i = 0; i < 4; i++) {
        region_set_pble(card, &mkc, i, 0x80000000 + i * 0x10000 + RW);
    }
    must_create(card, INDEX, &mkc);
    return card;
}

static void test_key(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);
    static const struct {
        uint32_t key;
        enum qrdma_access_error error;
    } cases[] = {
        { 0, QRDMA_ACCESS_NO_KEY },
        { REGION_VARIANT, QRDMA_ACCESS_NO_KEY },
        { REGION_KEY(INDEX + 1), QRDMA_ACCESS_NO_KEY },
        { REGION_KEY(INDEX + 1024), QRDMA_ACCESS_NO_KEY },
        { REGION_KEY(0xfffffu), QRDMA_ACCESS_NO_KEY },
        { 0xffffffffu, QRDMA_ACCESS_NO_KEY },
        /* An index that has more bits than there are mkeys. */
        { REGION_KEY(INDEX + 0x100000u), QRDMA_ACCESS_NO_KEY },
        { KEY + 1, QRDMA_ACCESS_VARIANT },
        { KEY & ~0xffu, QRDMA_ACCESS_VARIANT },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        QrdmaAccess access;

        g_assert_cmpint(region_access(card, cases[i].key, QRDMA_LOCAL_READ,
                                      0x10000, 1, &access), ==,
                        QRDMA_ACCESS_REFUSED);
        g_assert_cmpint(access.error, ==, cases[i].error);
        g_assert_null(access.mkey);
    }
    card_free(card);
}

static void test_free_key(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS | QRDMA_MKEY_FREE);

    assert_refused(card, 0x10000, 1, QRDMA_ACCESS_FREE);
    card_free(card);
}

static void test_pd(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);
    QrdmaAccessRequest request = {
        .key = KEY, .pd = REGION_PD + 1, .qpn = REGION_QPN,
        .kind = QRDMA_LOCAL_READ, .address = 0x10000, .length = 1,
    };
    QrdmaAccess access;

    g_assert_cmpint(qrdma_access_begin(card->engine, &request, &access), ==,
                    QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(access.error, ==, QRDMA_ACCESS_PD);
    card_free(card);
}

static void test_qp_binding(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0x10000, 4096, 12, 0, 0);

    mkc.base = 0x80000000 | RW;
    mkc.qpn = REGION_QPN;
    must_create(card, INDEX, &mkc);
    assert_at(card, 0x10000, 1, 0x80000000, 1);
    mkc.qpn = REGION_QPN + 1;
    must_create(card, INDEX + 1, &mkc);
    QrdmaAccess access;
    g_assert_cmpint(region_access(card, REGION_KEY(INDEX + 1),
                                  QRDMA_LOCAL_READ, 0x10000, 1, &access), ==,
                    QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(access.error, ==, QRDMA_ACCESS_QP);
    card_free(card);
}

/* Each kind of access with each set of rights of the mkey. */
static void test_mkey_rights(void)
{
    static const struct {
        uint32_t flags;
        bool granted[5];        /* by QrdmaAccessKind */
    } cases[] = {
        { 0, { true, false, false, false, false } },
        { QRDMA_MKEY_REMOTE_READ, { true, false, true, false, false } },
        { QRDMA_MKEY_LOCAL_WRITE, { true, true, false, false, false } },
        { QRDMA_MKEY_LOCAL_WRITE | QRDMA_MKEY_REMOTE_WRITE,
          { true, true, false, true, false } },
        { QRDMA_MKEY_LOCAL_WRITE | QRDMA_MKEY_REMOTE_ATOMIC,
          { true, true, false, false, true } },
        { REGION_ALL_RIGHTS, { true, true, true, true, true } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestCard *card = card_with_region(cases[i].flags);

        for (unsigned kind = 0; kind < 5; kind++) {
            QrdmaAccess access;

            if (cases[i].granted[kind]) {
                g_assert_cmpint(region_access(card, KEY, kind, 0x10000, 8,
                                              &access), ==,
                                QRDMA_ACCESS_GRANTED);
            } else {
                assert_refused_kind(card, kind, 0x10000, 8,
                                    QRDMA_ACCESS_RIGHTS);
            }
        }
        card_free(card);
    }
}

/* Each kind of access with each set of rights of the page. */
static void test_page_rights(void)
{
    static const struct {
        uint64_t rights;
        bool granted[5];
    } cases[] = {
        { QRDMA_PBLE_READ, { true, false, true, false, false } },
        { QRDMA_PBLE_WRITE, { false, true, false, true, false } },
        { RW, { true, true, true, true, true } },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        /* On demand or not: a page that is there is not faulted in. */
        TestCard *card = card_with_region(REGION_ALL_RIGHTS |
                                          QRDMA_MKEY_ON_DEMAND);
        QrdmaMkc mkc = region_query(card, INDEX);

        region_set_pble(card, &mkc, 0, 0x80000000 | cases[i].rights);
        for (unsigned kind = 0; kind < 5; kind++) {
            QrdmaAccess access;

            if (cases[i].granted[kind]) {
                g_assert_cmpint(region_access(card, KEY, kind, 0x10000, 8,
                                              &access), ==,
                                QRDMA_ACCESS_GRANTED);
            } else {
                assert_refused_kind(card, kind, 0x10000, 8,
                                    QRDMA_ACCESS_RIGHTS);
            }
        }
        card_free(card);
    }
}

static void test_range(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);
    static const struct {
        uint64_t address, length;
    } outside[] = {
        { 0xffff, 1 },
        { 0xffff, 2 },
        { 0x14000, 1 },
        { 0x13fff, 2 },
        { 0x10000, 0x4001 },
        { 0x10000, UINT64_MAX },
        { 0x10001, UINT64_MAX },
        { 0x12000, (uint64_t)-0x2000 },
        { 0, 1 },
        { UINT64_MAX, 1 },
        { UINT64_MAX, 2 },
        { 0x10000, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(outside); i++) {
        assert_refused(card, outside[i].address, outside[i].length,
                       QRDMA_ACCESS_RANGE);
    }
    assert_at(card, 0x13fff, 1, 0x80030fff, 1);
    assert_at(card, 0x10000, 0x4000, 0x80000000, 0x1000);
    assert_at(card, 0x10fff, 2, 0x80000fff, 1);
    card_free(card);
}

static void test_atomic_alignment(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);
    QrdmaAccess access;

    for (unsigned offset = 1; offset < 8; offset++) {
        assert_refused_kind(card, QRDMA_REMOTE_ATOMIC, 0x10000 + offset, 8,
                            QRDMA_ACCESS_MISALIGNED);
    }
    assert_refused_kind(card, QRDMA_REMOTE_ATOMIC, 0x10000, 4,
                        QRDMA_ACCESS_MISALIGNED);
    assert_refused_kind(card, QRDMA_REMOTE_ATOMIC, 0x10000, 16,
                        QRDMA_ACCESS_MISALIGNED);
    g_assert_cmpint(region_access(card, KEY, QRDMA_REMOTE_ATOMIC, 0x10ff8, 8,
                                  &access), ==, QRDMA_ACCESS_GRANTED);
    g_assert_cmphex(access.bus_address, ==, 0x80000ff8);
    card_free(card);
}

static void test_absent(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);
    QrdmaMkc mkc = region_query(card, INDEX);

    region_set_pble(card, &mkc, 1, 0x80010000);
    assert_refused(card, 0x11000, 1, QRDMA_ACCESS_NOT_PRESENT);
    /* The neighbours are there. */
    assert_at(card, 0x10000, 0x4000, 0x80000000, 0x1000);
    assert_at(card, 0x12000, 0x1000, 0x80020000, 0x1000);
    card_free(card);
}

static void test_on_demand(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS | QRDMA_MKEY_ON_DEMAND);
    QrdmaMkc mkc = region_query(card, INDEX);
    QrdmaAccess access;

    region_set_pble(card, &mkc, 1, 0);
    g_assert_cmpint(region_access(card, KEY, QRDMA_REMOTE_WRITE, 0x11000, 1,
                                  &access), ==, QRDMA_ACCESS_FAULT);
    g_assert_cmpint(access.error, ==, QRDMA_ACCESS_NOT_PRESENT);
    g_assert_null(access.mkey);
    g_assert_cmpuint(card->engine->counters.access_refused, ==, 0);
    /* Everything else about the key is refused, not faulted. */
    assert_refused(card, 0x14000, 1, QRDMA_ACCESS_RANGE);
    card_free(card);
}

static void test_bad_entry(void)
{
    static const struct {
        uint64_t pble;
        unsigned log_page_size;
    } cases[] = {
        { 0x80000000 | RW | 4, 12 },
        { 0x80000000 | 4, 12 },
        { 0x80000800 | RW, 12 },
        { 0x80001000 | RW, 13 },
        { 0x80000000 | RW, 32 },
        { UINT64_MAX, 12 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestCard *card = card_new(NULL);
        QrdmaMkc mkc = region_mkc(0, 4096, cases[i].log_page_size, 1, 0);

        card_add_paged_sd(card, 0);
        region_set_pble(card, &mkc, 0, cases[i].pble);
        must_create(card, INDEX, &mkc);
        assert_refused(card, 0, 1, QRDMA_ACCESS_BAD_ENTRY);
        card_free(card);
    }
}

/* ------------------------------------------------------ translation levels */

/* cases.md 6 and 30: one block that is larger than what it is asked for. */
static void test_level_0(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0x40200000, 64 * MIB, 27, 0, 0);

    mkc.base = 0x80000000 | RW;
    must_create(card, INDEX, &mkc);
    assert_at(card, 0x40200000, 64 * MIB, 0x80200000, 64 * MIB);
    assert_at(card, 0x441fffff, 1, 0x841fffff, 1);
    assert_refused(card, 0x40200000 - 1, 1, QRDMA_ACCESS_RANGE);
    assert_refused(card, 0x44200000, 1, QRDMA_ACCESS_RANGE);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);

    mkc = region_mkc(0x1e000, 0x5000, 18, 0, 0);
    mkc.base = 0 | RW;
    must_create(card, INDEX, &mkc);
    assert_at(card, 0x1e000, 0x5000, 0x1e000, 0x5000);
    card_must(card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);

    mkc = region_mkc(5, 1, 12, 0, 0);
    must_create(card, INDEX, &mkc);
    assert_refused(card, 5, 1, QRDMA_ACCESS_NOT_PRESENT);
    card_free(card);
}

/*
 * cases.md 29: 3 * 2 MiB + 4096 bytes at PA 0x40000000, as the best page size
 * would have it in five layouts.
 */
static void test_layouts(void)
{
    const uint64_t length = 6 * MIB + 4096;
    const uint64_t iova = 0x7f0000000000, pa = 0x40000000;
    static const struct {
        uint64_t iova_offset, pa_offset;
        unsigned log_page_size;
        uint64_t blocks;
        uint64_t moved_from;    /* bytes from here on lie 1 GiB further up */
    } cases[] = {
        { 0, 0, 30, 1, UINT64_MAX },
        { 0x1000, 0, 12, 1537, UINT64_MAX },
        { 0, 0, 21, 4, 2 * MIB },
        { 0, 0, 12, 1537, 1 * MIB },
        { 0x1000, 0x1000, 30, 1, UINT64_MAX },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestCard *card = card_new(NULL);
        uint64_t start = iova + cases[i].iova_offset;
        uint64_t page = 1ull << cases[i].log_page_size;
        QrdmaMkc mkc = region_mkc(start, length, cases[i].log_page_size, 1, 8);

        card_add_paged_sd(card, 0);
        g_assert_cmpuint(mkc.capacity, ==, cases[i].blocks);
        for (uint64_t block = 0; block < mkc.capacity; block++) {
            uint64_t first = (start & -page) + block * page;
            uint64_t offset = first < start ? 0 : first - start;
            uint64_t place = pa + cases[i].pa_offset + offset;

            if (offset >= cases[i].moved_from) {
                place += GIB;
            }
            region_set_pble(card, &mkc, block, (place & -page) | RW);
        }
        must_create(card, INDEX, &mkc);
        for (uint64_t offset = 0; offset < length; offset += 4096) {
            uint64_t place = pa + cases[i].pa_offset + offset;

            if (offset >= cases[i].moved_from) {
                place += GIB;
            }
            assert_at(card, start + offset, 4096, place, 4096);
        }
        card_free(card);
    }
}

/* A place for block i that is its own, and in no order. */
static uint64_t scattered(uint64_t i)
{
    return ((i * 7919) % 1000003 + 1) << 12;
}

/* Table sizes at both sides of every edge of a level. */
static void check_table(unsigned level, uint64_t blocks, bool paged)
{
    TestCard *card = card_new(NULL);
    uint64_t start = 0x5000000000ull + 0x234;
    QrdmaMkc mkc = region_mkc(start, blocks * 4096 - 0x234, 12, level, 1024);

    for (unsigned i = 0; i < 3; i++) {
        if (paged) {
            card_add_paged_sd(card, i);
        } else {
            card_add_direct_sd(card, i);
        }
    }
    g_assert_cmpuint(mkc.capacity, ==, blocks);
    if (level == 2) {
        region_set_leaves(card, &mkc, 8192);
    }
    for (uint64_t i = 0; i < blocks; i++) {
        region_set_pble(card, &mkc, i, scattered(i) | RW);
    }
    must_create(card, INDEX, &mkc);
    assert_at(card, start, 8, scattered(0) + 0x234, 8);
    for (uint64_t i = 1; i < blocks; i++) {
        assert_at(card, start - 0x234 + i * 4096, 4096, scattered(i), 4096);
    }
    card_free(card);
}

static void test_table_sizes(void)
{
    static const uint64_t sizes[] = {
        1, 8, 9, 511, 512, 513, 1024, 1537, 4097, 262145,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (unsigned level = 1; level <= 2; level++) {
            check_table(level, sizes[i], i % 2);
        }
    }
}

/* Leaves anywhere, also in another order and another SD. */
static void test_leaves_anywhere(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0, 3 * 512 * 4096, 12, 2, 0);

    card_add_direct_sd(card, 0);
    card_add_paged_sd(card, 4095);
    *card_pble(card, 0) = qrdma_le64(QRDMA_ROOT_VALID | 4096);
    /* The last leaf that PBLE space has room for. */
    *card_pble(card, 1) = qrdma_le64(QRDMA_ROOT_VALID |
                                     (QRDMA_PBLE_SPACE - 512));
    *card_pble(card, 2) = qrdma_le64(QRDMA_ROOT_VALID | 2048);
    for (uint64_t i = 0; i < 3 * 512; i++) {
        region_set_pble(card, &mkc, i, scattered(i) | RW);
    }
    must_create(card, INDEX, &mkc);
    for (uint64_t i = 0; i < 3 * 512; i++) {
        assert_at(card, i * 4096, 1, scattered(i), 1);
    }
    card_free(card);
}

static void test_bad_roots(void)
{
    static const struct {
        uint64_t root;
        enum qrdma_access_error error;
    } cases[] = {
        { 0, QRDMA_ACCESS_NOT_PRESENT },
        { 512, QRDMA_ACCESS_BAD_ENTRY },
        { QRDMA_ROOT_VALID | 513, QRDMA_ACCESS_BAD_ENTRY },
        { QRDMA_ROOT_VALID | 1u << 30, QRDMA_ACCESS_BAD_ENTRY },
        { QRDMA_ROOT_VALID | 1ull << 40 | 512, QRDMA_ACCESS_BAD_ENTRY },
        /* A leaf in an SD that is not there. */
        { QRDMA_ROOT_VALID | 1u << 20, QRDMA_ACCESS_HMC },
        /* cases.md 51: the root is its own leaf: one step, then an answer. */
        { QRDMA_ROOT_VALID | 0, QRDMA_ACCESS_NOT_PRESENT },
        { QRDMA_ROOT_VALID | 8, QRDMA_ACCESS_BAD_ENTRY },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestCard *card = card_new(NULL);
        QrdmaMkc mkc = region_mkc(0, 9 * 512 * 4096, 12, 2, 0);

        card_add_direct_sd(card, 0);
        for (unsigned j = 0; j < 9; j++) {
            *card_pble(card, j) = qrdma_le64(cases[i].root);
        }
        must_create(card, INDEX, &mkc);
        assert_refused(card, 8 * 512 * 4096, 1, cases[i].error);
        card_free(card);
    }
}

/* No leaf is no page: an on-demand mkey faults. */
static void test_no_leaf_on_demand(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_mkc(0, 513 * 4096, 12, 2, 0);
    QrdmaAccess access;

    card_add_direct_sd(card, 0);
    mkc.flags |= QRDMA_MKEY_ON_DEMAND;
    must_create(card, INDEX, &mkc);
    g_assert_cmpint(region_access(card, KEY, QRDMA_LOCAL_READ, 512 * 4096, 1,
                                  &access), ==, QRDMA_ACCESS_FAULT);
    card_free(card);
}

static void test_hmc_unreadable(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);

    fake_host_refuse(card->host, CARD_MEMORY_BASE, CARD_MEMORY_SIZE, true,
                     false);
    assert_refused(card, 0x10000, 1, QRDMA_ACCESS_HMC);
    fake_host_allow_all(card->host);
    /* A failure is not remembered. */
    assert_at(card, 0x10000, 1, 0x80000000, 1);
    card_free(card);
}

static void test_largest_pages(void)
{
    for (unsigned log = QRDMA_LOG_PAGE_SIZE_MIN;
         log <= QRDMA_LOG_PAGE_SIZE_MAX; log++) {
        TestCard *card = card_new(NULL);
        uint64_t page = 1ull << log;
        uint64_t start = 8 * page - 4096;
        QrdmaMkc mkc = region_mkc(start, page + 8192, log, 1, 0);

        card_add_direct_sd(card, 0);
        for (unsigned i = 0; i < mkc.capacity; i++) {
            region_set_pble(card, &mkc, i, (16 + 2 * i) * page + RW);
        }
        must_create(card, INDEX, &mkc);
        assert_at(card, start, page, 17 * page - 4096, 4096);
        assert_at(card, 8 * page, page, 18 * page, page);
        assert_at(card, 9 * page, 4096, 20 * page, 4096);
        card_free(card);
    }
}

/* The end of the address space is a place like any other. */
static void test_top_of_memory(void)
{
    TestCard *card = card_new(NULL);
    uint64_t start = UINT64_MAX - 0x1fff;
    QrdmaMkc mkc = region_mkc(start, 0x1fff, 12, 1, 0);

    card_add_direct_sd(card, 0);
    region_set_pble(card, &mkc, 0, 0x1000 | RW);
    region_set_pble(card, &mkc, 1, 0xfffffffffffff000 | RW);
    must_create(card, INDEX, &mkc);
    assert_at(card, start, 0x1fff, 0x1000, 0x1000);
    assert_at(card, start + 0x1000, 0xfff, 0xfffffffffffff000, 0xfff);
    assert_refused(card, start + 0x1000, 0x1000, QRDMA_ACCESS_RANGE);
    assert_refused(card, start, 0x2000, QRDMA_ACCESS_RANGE);
    card_free(card);
}

static void test_all_memory(void)
{
    TestCard *card = card_new(NULL);
    QrdmaMkc mkc = region_all_memory();

    must_create(card, INDEX, &mkc);
    assert_at(card, 0, 5 * GIB, 0, 5 * GIB);
    assert_at(card, 0x12345, 7, 0x12345, 7);
    assert_at(card, UINT64_MAX, 1, UINT64_MAX, 1);
    assert_refused(card, UINT64_MAX, 2, QRDMA_ACCESS_RANGE);
    assert_refused(card, 2, UINT64_MAX, QRDMA_ACCESS_RANGE);
    assert_refused(card, 0, 0, QRDMA_ACCESS_RANGE);
    card_free(card);
}

static void test_trace(void)
{
    TestCard *card = card_with_region(REGION_ALL_RIGHTS);

    assert_refused(card, 0, 1, QRDMA_ACCESS_RANGE);
    g_assert_cmpuint(card->host->traces->len, ==, 0);
    card->host->ops.trace_enabled = true;
    assert_refused(card, 0, 1, QRDMA_ACCESS_RANGE);
    g_assert_cmpuint(card->host->traces->len, ==, 1);
    g_assert_true(g_str_has_prefix(g_ptr_array_index(card->host->traces, 0),
                                   "access_error: "));
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/access/key", test_key);
    g_test_add_func("/access/free", test_free_key);
    g_test_add_func("/access/pd", test_pd);
    g_test_add_func("/access/qp-binding", test_qp_binding);
    g_test_add_func("/access/mkey-rights", test_mkey_rights);
    g_test_add_func("/access/page-rights", test_page_rights);
    g_test_add_func("/access/range", test_range);
    g_test_add_func("/access/atomic-alignment", test_atomic_alignment);
    g_test_add_func("/access/absent", test_absent);
    g_test_add_func("/access/on-demand", test_on_demand);
    g_test_add_func("/access/bad-entry", test_bad_entry);
    g_test_add_func("/access/level-0", test_level_0);
    g_test_add_func("/access/layouts", test_layouts);
    g_test_add_func("/access/table-sizes", test_table_sizes);
    g_test_add_func("/access/leaves-anywhere", test_leaves_anywhere);
    g_test_add_func("/access/bad-roots", test_bad_roots);
    g_test_add_func("/access/no-leaf-on-demand", test_no_leaf_on_demand);
    g_test_add_func("/access/hmc-unreadable", test_hmc_unreadable);
    g_test_add_func("/access/largest-pages", test_largest_pages);
    g_test_add_func("/access/top-of-memory", test_top_of_memory);
    g_test_add_func("/access/all-memory", test_all_memory);
    g_test_add_func("/access/trace", test_trace);
    return g_test_run();
}
