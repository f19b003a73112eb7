/*
 * qrdma: changes of a live mkey: the page size in five steps, and revocation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-change"
#define INDEX       0x66
#define START       0x7f0000000000ull
#define TABLE       4096        /* first PBLE of the table */
#define LOG_4K      12
#define LOG_2M      21
#define ABSENT      UINT64_MAX

/*
 * A region that lies in two places at once: scattered in 4 KiB pages, and in
 * 2 MiB blocks. Each byte has one right answer in the old place and one in the
 * new; a third is torn.
 */
typedef struct Change {
    QRdmaBench bench;
    QRdma *q;
    uint64_t length;
    uint64_t small;         /* 4 KiB pages, in reverse order */
    uint64_t large;         /* 2 MiB blocks, in reverse order */
    unsigned small_count;
    unsigned large_count;
    unsigned capacity;
    uint64_t local;
    uint64_t staging;
    bool traffic;           /* reads are under way during each UMR */
} Change;

/* Where page `i` of the region lies in each layout. */
static uint64_t small_page(Change *c, unsigned i)
{
    return c->small + (c->small_count - 1 - i) * QRDMA_PAGE;
}

static uint64_t large_block(Change *c, unsigned i)
{
    return c->large + (c->large_count - 1 - i) * (2 * MiB);
}

static uint64_t entry_of(Change *c, unsigned log_page_size, unsigned i)
{
    bool large = log_page_size == LOG_2M;

    if (i >= (large ? c->large_count : c->small_count)) {
        return 0;
    }
    return (large ? large_block(c, i) : small_page(c, i)) |
           QRDMA_PBLE_PRESENT;
}

/* Stamps: the first word of each page says which page, and in which place. */
static uint64_t stamp(unsigned log_page_size, unsigned page)
{
    return (uint64_t)log_page_size << 32 | page;
}

static void put_stamps(Change *c)
{
    for (unsigned i = 0; i < c->small_count; i++) {
        uint64_t word = cpu_to_le64(stamp(LOG_4K, i));

        qtest_memwrite(c->q->qts, small_page(c, i), &word, 8);
        word = cpu_to_le64(stamp(LOG_2M, i));
        qtest_memwrite(c->q->qts, large_block(c, i / 512) +
                       i % 512 * QRDMA_PAGE, &word, 8);
    }
}

static void load_directly(Change *c, unsigned log_page_size)
{
    for (unsigned i = 0; i < c->capacity; i++) {
        qrdma_pble_write(c->q, TABLE + i, entry_of(c, log_page_size, i));
    }
}

/* Given a region of `length` bytes, in pages of that size, live. */
static void change_init(Change *c, QRdma *q, uint64_t length,
                        unsigned log_page_size)
{
    struct qrdma_mkc mkc;

    c->traffic = false;
    c->q = q;
    c->length = length;
    c->small_count = length / QRDMA_PAGE;
    c->large_count = DIV_ROUND_UP(length, 2 * MiB);
    c->capacity = QEMU_ALIGN_UP(c->small_count, QRDMA_PBLES_PER_UNIT);
    qrdma_bench_init(&c->bench, q);
    qrdma_add_direct_sd(q, 0);
    c->small = qrdma_alloc(q, c->small_count * QRDMA_PAGE);
    c->large = qrdma_alloc_aligned(q, c->large_count * 2 * MiB, 2 * MiB);
    c->local = qrdma_alloc(q, QRDMA_PAGE);
    c->staging = qrdma_alloc(q, QRDMA_UMR_MAX_TABLE_WRITE);
    put_stamps(c);
    load_directly(c, log_page_size);
    mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, log_page_size, START,
                          length, TABLE, c->capacity);
    qrdma_bench_mkey(&c->bench, INDEX, &mkc);
}

/* ------------------------------------------------- what the region answers */

static uint64_t read_page(Change *c, unsigned page)
{
    uint64_t word;
    enum qrdma_cqe_status status;

    status = qrdma_bench_read(&c->bench, c->local, START + page * QRDMA_PAGE,
                              qrdma_key(INDEX), 8);
    if (status != QRDMA_CQE_SUCCESS) {
        g_assert_cmpint(status, ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
        qrdma_bench_reconnect(&c->bench);
        return ABSENT;
    }
    qtest_memread(c->q->qts, c->local, &word, sizeof(word));
    return le64_to_cpu(word);
}

/* Pages on either side of every boundary that matters. */
static unsigned probe_pages(Change *c, unsigned *pages)
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

#define MAX_PROBES 32

/* A byte answers as the old place, as the new place, or not at all. */
static void check_answer(const char *step, unsigned page, uint64_t seen)
{
    if (seen != ABSENT && seen != stamp(LOG_4K, page) &&
        seen != stamp(LOG_2M, page)) {
        g_test_message("%s: page %u answers 0x%" PRIx64, step, page, seen);
        g_assert_not_reached();
    }
}

static void assert_not_torn(Change *c, const char *step)
{
    unsigned pages[MAX_PROBES];
    unsigned count = probe_pages(c, pages);

    for (unsigned i = 0; i < count; i++) {
        check_answer(step, pages[i], read_page(c, pages[i]));
    }
}

/* Reads of all probe pages, each with a buffer of its own, left under way. */
static void start_traffic(Change *c)
{
    unsigned pages[MAX_PROBES];
    unsigned count = probe_pages(c, pages);

    for (unsigned i = 0; i < count; i++) {
        struct qrdma_sge sge = qrdma_sge(c->local + i * 8, 8,
                                         c->bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_READ,
            .flags = QRDMA_WQE_SIGNALED,
            .num_sge = cpu_to_le32(1),
            .remote_address = cpu_to_le64(START + pages[i] * QRDMA_PAGE),
            .remote_key = cpu_to_le32(qrdma_key(INDEX)),
        };

        qrdma_send_put(c->q, &c->bench.a, &wqe, sizeof(wqe),
                       &sge, sizeof(sge));
    }
    qrdma_send_ring(c->q, &c->bench.a);
}

/* What they read; the first that was refused ends them all. */
static void end_traffic(Change *c)
{
    unsigned pages[MAX_PROBES];
    unsigned count = probe_pages(c, pages);

    for (unsigned i = 0; i < count; i++) {
        struct qrdma_cqe cqe = qrdma_cq_wait(c->q, &c->bench.cq_a);

        if (cqe.status != QRDMA_CQE_SUCCESS) {
            g_assert_cmpint(cqe.status, ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
            qrdma_bench_reconnect(&c->bench);
            return;
        }
        check_answer("traffic", pages[i],
                     qtest_readq(c->q->qts, c->local + i * 8));
    }
}

static void assert_layout(Change *c, unsigned log_page_size)
{
    unsigned pages[MAX_PROBES];
    unsigned count = probe_pages(c, pages);

    for (unsigned i = 0; i < count; i++) {
        g_assert_cmphex(read_page(c, pages[i]), ==,
                        stamp(log_page_size, pages[i]));
    }
}

/* ---------------------------------------------------------- the five steps */

static void do_umr(Change *c, struct qrdma_umr_wqe wqe)
{
    if (c->traffic) {
        start_traffic(c);
    }
    g_assert_cmpint(qrdma_bench_umr(&c->bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
    if (c->traffic) {
        end_traffic(c);
    }
}

static void set_page_size(Change *c, unsigned log_page_size)
{
    struct qrdma_umr_wqe wqe = {
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_PAGE_SIZE),
        .mkc.log_page_size = log_page_size,
    };

    do_umr(c, wqe);
}

/* Load entries first..end-1, or make them absent if log_page_size is 0. */
static void load_entries(Change *c, unsigned first, unsigned end,
                         unsigned log_page_size)
{
    const unsigned most = QRDMA_UMR_MAX_TABLE_WRITE / QRDMA_PBLE_SIZE;
    g_autofree uint64_t *entries = g_new(uint64_t, most);

    end = QEMU_ALIGN_UP(end, QRDMA_PBLES_PER_UNIT);
    while (first < end) {
        unsigned count = MIN(end - first, most);
        struct qrdma_umr_wqe wqe = {
            .umr_flags = cpu_to_le16(QRDMA_UMR_TRANSLATION_OFFSET),
            .key = cpu_to_le32(qrdma_key(INDEX)),
            .table_offset = cpu_to_le64(first * QRDMA_PBLE_SIZE),
            .table_address = cpu_to_le64(c->staging),
            .table_length = cpu_to_le32(count * QRDMA_PBLE_SIZE),
        };

        for (unsigned i = 0; i < count; i++) {
            entries[i] = cpu_to_le64(log_page_size
                ? entry_of(c, log_page_size, first + i) : 0);
        }
        qtest_bufwrite(c->q->qts, c->staging, entries,
                       count * QRDMA_PBLE_SIZE);
        do_umr(c, wqe);
        first += count;
    }
}

/* The largest page size that covers the region with the fewest entries. */
static unsigned covering_log_page_size(Change *c)
{
    unsigned log = LOG_4K;

    while ((1ull << log) < c->length) {
        log++;
    }
    return log;
}

static void change_page_size(Change *c, unsigned log_page_size)
{
    unsigned new_count = log_page_size == LOG_2M ? c->large_count
                                                 : c->small_count;
    unsigned largest = covering_log_page_size(c);
    unsigned zapped = QRDMA_PBLES_PER_UNIT;

    if (zapped >= new_count) {
        zapped = c->capacity;
    }

    load_entries(c, 0, zapped, 0);
    assert_not_torn(c, "step 1");
    set_page_size(c, largest);
    assert_not_torn(c, "step 2");
    if (zapped < new_count) {
        load_entries(c, zapped, new_count, log_page_size);
        assert_not_torn(c, "step 3");
    }
    set_page_size(c, log_page_size);
    assert_not_torn(c, "step 4");
    load_entries(c, 0, MIN(zapped, new_count), log_page_size);
}

typedef struct ChangeCase {
    uint64_t length;
    unsigned from;
    unsigned to;
} ChangeCase;

static void test_page_size(void *obj, void *data, QGuestAllocator *alloc)
{
    const ChangeCase *which = data;
    Change c;

    change_init(&c, obj, which->length, which->from);
    assert_layout(&c, which->from);
    change_page_size(&c, which->to);
    assert_layout(&c, which->to);
}

/* The same with reads under way while each UMR is done. */
static void test_page_size_traffic(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    const ChangeCase *which = data;
    Change c;

    change_init(&c, obj, which->length, which->from);
    c.traffic = true;
    change_page_size(&c, which->to);
    c.traffic = false;
    assert_layout(&c, which->to);
}

/*
 * The test's own check: given the steps left out, the old entries are read with
 * the new size, and page 1 answers as block 1. That is what torn means, and
 * assert_not_torn() would find it.
 */
static void test_skipped_steps(void *obj, void *data, QGuestAllocator *alloc)
{
    Change c;

    change_init(&c, obj, 8 * MiB, LOG_2M);
    set_page_size(&c, LOG_4K);
    g_assert_cmphex(read_page(&c, 1), ==, stamp(LOG_2M, 512));
}

/* -------------------------------------------------------------- revocation */

/* What a driver does to revoke: free, and its own PD; a fence by completion. */
static void revoke_mkey(Change *c)
{
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_NOT_FREE),
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD),
        .mkc = {
            .flags = cpu_to_le32(QRDMA_MKEY_FREE),
            .pd = cpu_to_le32(1),
        },
    };

    g_assert_cmpint(qrdma_bench_umr(&c->bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_OK);
}

/* Given a revoked mkey, an access is refused and the event names it. */
static void test_revoke_idle(void *obj, void *data, QGuestAllocator *alloc)
{
    Change c;
    struct qrdma_eqe eqe;

    change_init(&c, obj, 64 * KiB, LOG_4K);
    assert_layout(&c, LOG_4K);
    revoke_mkey(&c);
    qrdma_write_pattern(c.q, c.local, 8, 1);
    g_assert_cmpint(qrdma_bench_write(&c.bench, c.local, START + 0x3008,
                                      qrdma_key(INDEX), 8), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);

    eqe = qrdma_eq_expect(c.q, &c.bench.async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, c.bench.b.number);
    g_assert_cmphex(le32_to_cpu(eqe.key), ==, qrdma_key(INDEX));
    g_assert_cmphex(le64_to_cpu(eqe.address), ==, START + 0x3008);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_FREE);
    qrdma_assert_zero(c.q, small_page(&c, 3) + 8, 8);
}

/* A second revocation finds the mkey free, and says so. */
static void test_revoke_twice(void *obj, void *data, QGuestAllocator *alloc)
{
    Change c;
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_NOT_FREE),
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE),
        .mkc.flags = cpu_to_le32(QRDMA_MKEY_FREE),
    };

    change_init(&c, obj, 64 * KiB, LOG_4K);
    revoke_mkey(&c);
    g_assert_cmpint(qrdma_bench_umr(&c.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_MKEY_FREE);
}

/* Given a revoked mkey, its index stays taken until it is destroyed. */
static void test_revoked_index(void *obj, void *data, QGuestAllocator *alloc)
{
    Change c;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(INDEX, QRDMA_TEST_PD);

    change_init(&c, obj, 64 * KiB, LOG_4K);
    revoke_mkey(&c);
    g_assert_cmpint(qrdma_command(c.q, QRDMA_CMD_CREATE_MKEY, INDEX, &mkc,
                                  sizeof(mkc), NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    qrdma_command_ok(c.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    qrdma_command_ok(c.q, QRDMA_CMD_CREATE_MKEY, INDEX, &mkc, sizeof(mkc),
                     NULL, 0);
}

/*
 * Given 16 long writes under way, each packet of which takes its time, when the
 * revocation completes, then not a byte is written after it.
 */
static void test_revoke_in_flight(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    const uint32_t length = 256 * KiB;
    Change c;
    struct qrdma_cqe cqe;
    g_autofree uint8_t *before = g_malloc(length);
    g_autofree uint8_t *after = g_malloc(length);
    uint64_t source;

    change_init(&c, obj, length, LOG_4K);
    source = qrdma_alloc(c.q, length);
    qrdma_write_pattern(c.q, source, length, 77);
    for (int i = 0; i < 16; i++) {
        struct qrdma_sge sge = qrdma_sge(source, length, c.bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .remote_address = cpu_to_le64(START),
            .remote_key = cpu_to_le32(qrdma_key(INDEX)),
        };

        qrdma_post(c.q, &c.bench.a, wqe, &sge, 1);
    }
    qtest_clock_step(c.q->qts, 5000);
    qrdma_settle(c.q);

    qrdma_post_umr(c.q, &c.bench.umr, (struct qrdma_umr_wqe) {
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE),
        .mkc.flags = cpu_to_le32(QRDMA_MKEY_FREE),
    }, NULL, 0);
    qrdma_settle(c.q);
    for (int i = 0; !qrdma_cq_poll(c.q, &c.bench.cq_umr, &cqe); i++) {
        g_assert_cmpint(i, <, 1000);
        qtest_clock_step(c.q->qts, 1000);
        qrdma_settle(c.q);
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);

    qtest_bufread(c.q->qts, c.small, before, length);
    for (int i = 0; i < 50; i++) {
        qtest_clock_step(c.q->qts, 100000);
        qrdma_settle(c.q);
    }
    qtest_bufread(c.q->qts, c.small, after, length);
    g_assert_cmpmem(after, length, before, length);
    /* It was in flight: not all of it had been written. */
    g_assert_true(qrdma_cq_poll(c.q, &c.bench.cq_a, &cqe));
}

static void register_change_tests(void)
{
    static const struct {
        const char *name;
        ChangeCase change;
    } changes[] = {
        /* Case 1 in the 32 MiB that memory here has room for. */
        { "4k-to-2m/32m", { 32 * MiB, LOG_4K, LOG_2M } },
        { "2m-to-4k/32m", { 32 * MiB, LOG_2M, LOG_4K } },
        /* Case 1b: fewer entries than one unit, so the whole is zapped. */
        { "4k-to-2m/8m", { 8 * MiB, LOG_4K, LOG_2M } },
        /* Case 1c: three blocks and a page. */
        { "2m-to-4k/6m+4k", { 6 * MiB + 4096, LOG_2M, LOG_4K } },
        { "4k-to-2m/6m+4k", { 6 * MiB + 4096, LOG_4K, LOG_2M } },
    };
    static const struct {
        const char *name;
        const char *options;
        ChangeCase change;
    } traffic[] = {
        { "traffic/4k-to-2m", NULL, { 32 * MiB, LOG_4K, LOG_2M } },
        { "traffic/2m-to-4k", NULL, { 32 * MiB, LOG_2M, LOG_4K } },
        { "traffic/any-order/4k-to-2m", "umr-order-seed=4711",
          { 32 * MiB, LOG_4K, LOG_2M } },
        { "traffic/any-order/2m-to-4k", "umr-order-seed=4711",
          { 32 * MiB, LOG_2M, LOG_4K } },
        { "traffic/no-cache", "pble-cache=off",
          { 6 * MiB + 4096, LOG_2M, LOG_4K } },
    };
    static QOSGraphTestOptions latency = {
        .edge.extra_device_opts = "packet-latency=1000",
    };

    qos_node_produces("qrdma", GROUP);
    for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
        QOSGraphTestOptions options = { .arg = (void *)&changes[i].change };

        qos_add_test(changes[i].name, GROUP, test_page_size, &options);
    }
    for (size_t i = 0; i < ARRAY_SIZE(traffic); i++) {
        QOSGraphTestOptions options = {
            .arg = (void *)&traffic[i].change,
            .edge.extra_device_opts = traffic[i].options,
        };

        qos_add_test(traffic[i].name, GROUP, test_page_size_traffic,
                     &options);
    }
    qos_add_test("skipped-steps", GROUP, test_skipped_steps, NULL);
    qos_add_test("revoke/idle", GROUP, test_revoke_idle, NULL);
    qos_add_test("revoke/twice", GROUP, test_revoke_twice, NULL);
    qos_add_test("revoke/index", GROUP, test_revoked_index, NULL);
    qos_add_test("revoke/in-flight", GROUP, test_revoke_in_flight,
                 &latency);
}

libqos_init(register_change_tests);
