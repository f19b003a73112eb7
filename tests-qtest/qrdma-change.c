/*
 * A region of a qrdma card that changes its page size, for tests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qrdma-change.h"

#define BLOCK (2 * MiB)

/* -------------------------------------------------------------- its places */

uint64_t qrdma_change_place(QRdmaChange *c, unsigned log_page_size,
                            unsigned page)
{
    uint64_t offset = page * QRDMA_PAGE;

    if (log_page_size == QRDMA_LOG_4K) {
        return c->small + (c->small_count - 1 - page) * QRDMA_PAGE;
    }
    return c->large + (c->large_count - 1 - offset / BLOCK) * BLOCK +
           offset % BLOCK;
}

static unsigned entries_of(QRdmaChange *c, unsigned log_page_size)
{
    return log_page_size == QRDMA_LOG_2M ? c->large_count : c->small_count;
}

/* Little-endian, as the table has it; absent beyond the region. */
static uint64_t entry_of(QRdmaChange *c, unsigned log_page_size, unsigned i)
{
    unsigned page = i << (log_page_size - QRDMA_LOG_4K);

    if (i >= entries_of(c, log_page_size)) {
        return 0;
    }
    return cpu_to_le64(qrdma_change_place(c, log_page_size, page) |
                       QRDMA_PBLE_PRESENT);
}

uint64_t qrdma_change_stamp(unsigned log_page_size, unsigned page)
{
    return (uint64_t)log_page_size << 32 | page;
}

unsigned qrdma_change_probes(QRdmaChange *c, unsigned pages[QRDMA_MAX_PROBES])
{
    const unsigned wanted[] = {
        0, 1, 7, 8, 9, 23, 24, 31, 32, 255, 511, 512, 513, 1023, 1024, 1535,
        1536, 2047, c->small_count - 1,
    };
    unsigned count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        if (wanted[i] < c->small_count) {
            pages[count++] = wanted[i];
        }
    }
    return count;
}

static void put_stamps(QRdmaChange *c)
{
    const unsigned logs[] = { QRDMA_LOG_4K, QRDMA_LOG_2M };
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

    for (unsigned i = 0; i < count; i++) {
        for (size_t k = 0; k < ARRAY_SIZE(logs); k++) {
            uint64_t word = cpu_to_le64(qrdma_change_stamp(logs[k], pages[i]));

            qtest_memwrite(c->q->qts,
                           qrdma_change_place(c, logs[k], pages[i]),
                           &word, sizeof(word));
        }
    }
}

/* ------------------------------------------------------------ its beginning */

static void fill_table(QRdmaChange *c, unsigned log_page_size, bool present)
{
    g_autofree uint64_t *entries = g_new0(uint64_t, c->capacity);

    for (unsigned i = 0; present && i < c->capacity; i++) {
        entries[i] = entry_of(c, log_page_size, i);
    }
    qtest_bufwrite(c->q->qts, qrdma_pble_address(c->q, QRDMA_CHANGE_TABLE),
                   entries, c->capacity * sizeof(*entries));
}

void qrdma_change_init(QRdmaChange *c, QRdma *q, uint64_t length,
                       unsigned log_page_size, bool present)
{
    struct qrdma_mkc mkc;

    memset(c, 0, sizeof(*c));
    c->q = q;
    c->length = length;
    c->small_count = length / QRDMA_PAGE;
    c->large_count = DIV_ROUND_UP(length, BLOCK);
    c->capacity = QEMU_ALIGN_UP(c->small_count, QRDMA_PBLES_PER_UNIT);
    qrdma_bench_init(&c->bench, q);
    qrdma_add_direct_sd(q, 0);
    c->small = qrdma_alloc(q, c->small_count * QRDMA_PAGE);
    c->large = qrdma_alloc_aligned(q, c->large_count * BLOCK, BLOCK);
    c->local = qrdma_alloc(q, QRDMA_PAGE);
    c->staging = qrdma_alloc(q, QRDMA_UMR_MAX_TABLE_WRITE);
    put_stamps(c);
    fill_table(c, log_page_size, present);
    mkc = qrdma_mkc_table(QRDMA_CHANGE_INDEX, QRDMA_TEST_PD, 1, log_page_size,
                          QRDMA_CHANGE_START, length, QRDMA_CHANGE_TABLE,
                          c->capacity);
    qrdma_bench_mkey(&c->bench, QRDMA_CHANGE_INDEX, &mkc);
}

/* ------------------------------------------------- what the region answers */

uint64_t qrdma_change_read(QRdmaChange *c, unsigned page)
{
    uint64_t word;
    enum qrdma_cqe_status status;

    status = qrdma_bench_read(&c->bench, c->local,
                              QRDMA_CHANGE_START + page * QRDMA_PAGE,
                              qrdma_key(QRDMA_CHANGE_INDEX), 8);
    if (status != QRDMA_CQE_SUCCESS) {
        g_assert_cmpint(status, ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
        qrdma_bench_reconnect(&c->bench);
        return QRDMA_ABSENT;
    }
    qtest_memread(c->q->qts, c->local, &word, sizeof(word));
    return le64_to_cpu(word);
}

/* ---------------------------------------------------------- the five steps */

static void do_umr(QRdmaChange *c, struct qrdma_umr_wqe wqe)
{
    if (c->before) {
        c->before(c);
    }
    g_assert_cmpint(qrdma_bench_umr(&c->bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    if (c->after) {
        c->after(c);
    }
}

void qrdma_change_set_page_size(QRdmaChange *c, unsigned log_page_size)
{
    struct qrdma_umr_wqe wqe = {
        .key = cpu_to_le32(qrdma_key(QRDMA_CHANGE_INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_PAGE_SIZE),
        .mkc.log_page_size = log_page_size,
    };

    do_umr(c, wqe);
}

/* Load entries first..end-1, or make them absent if log_page_size is 0. */
static void load_entries(QRdmaChange *c, unsigned first, unsigned end,
                         unsigned log_page_size)
{
    const unsigned most = QRDMA_UMR_MAX_TABLE_WRITE / QRDMA_PBLE_SIZE;
    g_autofree uint64_t *entries = g_new(uint64_t, most);

    end = QEMU_ALIGN_UP(end, QRDMA_PBLES_PER_UNIT);
    while (first < end) {
        unsigned count = MIN(end - first, most);
        struct qrdma_umr_wqe wqe = {
            .umr_flags = cpu_to_le16(QRDMA_UMR_TRANSLATION_OFFSET),
            .key = cpu_to_le32(qrdma_key(QRDMA_CHANGE_INDEX)),
            .table_offset = cpu_to_le64(first * QRDMA_PBLE_SIZE),
            .table_address = cpu_to_le64(c->staging),
            .table_length = cpu_to_le32(count * QRDMA_PBLE_SIZE),
        };

        for (unsigned i = 0; i < count; i++) {
            entries[i] = log_page_size ? entry_of(c, log_page_size, first + i)
                                       : 0;
        }
        qtest_bufwrite(c->q->qts, c->staging, entries,
                       count * QRDMA_PBLE_SIZE);
        do_umr(c, wqe);
        first += count;
    }
}

/* The largest page size that covers the region with the fewest entries. */
static unsigned covering_log_page_size(QRdmaChange *c)
{
    unsigned log = QRDMA_LOG_4K;

    while ((1ull << log) < c->length) {
        log++;
    }
    return log;
}

void qrdma_change_page_size(QRdmaChange *c, unsigned log_page_size)
{
    unsigned new_count = entries_of(c, log_page_size);
    unsigned zapped = QRDMA_PBLES_PER_UNIT;

    if (zapped >= new_count) {
        zapped = c->capacity;
    }
    load_entries(c, 0, zapped, 0);
    qrdma_change_set_page_size(c, covering_log_page_size(c));
    if (zapped < new_count) {
        load_entries(c, zapped, new_count, log_page_size);
    }
    qrdma_change_set_page_size(c, log_page_size);
    load_entries(c, 0, MIN(zapped, new_count), log_page_size);
}

/* -------------------------------------------------------------- revocation */

void qrdma_change_revoke(QRdmaChange *c)
{
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_NOT_FREE),
        .key = cpu_to_le32(qrdma_key(QRDMA_CHANGE_INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD),
        .mkc = {
            .flags = cpu_to_le32(QRDMA_MKEY_FREE),
            .pd = cpu_to_le32(1),
        },
    };

    do_umr(c, wqe);
}
