/*
 * qrdma: changes of a live mkey: the page size in five steps, and revocation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-change.h"

#define GROUP       "qrdma-change"
#define INDEX       QRDMA_CHANGE_INDEX
#define START       QRDMA_CHANGE_START
#define LOG_4K      QRDMA_LOG_4K
#define LOG_2M      QRDMA_LOG_2M

/* ------------------------------------------------- what the region answers */

/* A byte answers as the old place, as the new place, or not at all. */
static void check_answer(const char *step, unsigned page, uint64_t seen)
{
    if (seen != QRDMA_ABSENT && seen != qrdma_change_stamp(LOG_4K, page) &&
        seen != qrdma_change_stamp(LOG_2M, page)) {
        g_test_message("%s: page %u answers 0x%" PRIx64, step, page, seen);
        g_assert_not_reached();
    }
}

static void assert_not_torn(QRdmaChange *c)
{
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

    for (unsigned i = 0; i < count; i++) {
        check_answer("after a step", pages[i],
                     qrdma_change_read(c, pages[i]));
    }
}

/* Reads of all probe pages, each with a buffer of its own, left under way. */
static void start_traffic(QRdmaChange *c)
{
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

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
static void end_traffic(QRdmaChange *c)
{
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

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

static void assert_layout(QRdmaChange *c, unsigned log_page_size)
{
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

    for (unsigned i = 0; i < count; i++) {
        g_assert_cmphex(qrdma_change_read(c, pages[i]), ==,
                        qrdma_change_stamp(log_page_size, pages[i]));
    }
}

/* -------------------------------------------------------- page-size changes */

typedef struct ChangeCase {
    uint64_t length;
    unsigned from;
    unsigned to;
} ChangeCase;

static void test_page_size(void *obj, void *data, QGuestAllocator *alloc)
{
    const ChangeCase *which = data;
    QRdmaChange c;

    qrdma_change_init(&c, obj, which->length, which->from, true);
    assert_layout(&c, which->from);
    c.after = assert_not_torn;
    qrdma_change_page_size(&c, which->to);
    assert_layout(&c, which->to);
}

/* The same with reads under way while each UMR is done. */
static void test_page_size_traffic(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    const ChangeCase *which = data;
    QRdmaChange c;

    qrdma_change_init(&c, obj, which->length, which->from, true);
    c.before = start_traffic;
    c.after = end_traffic;
    qrdma_change_page_size(&c, which->to);
    assert_layout(&c, which->to);
}

/*
 * The test's own check: given the steps left out, the old entries are read with
 * the new size, and page 1 answers as block 1. That is what torn means, and
 * assert_not_torn() would find it.
 */
static void test_skipped_steps(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;

    qrdma_change_init(&c, obj, 8 * MiB, LOG_2M, true);
    qrdma_change_set_page_size(&c, LOG_4K);
    g_assert_cmphex(qrdma_change_read(&c, 1), ==,
                    qrdma_change_stamp(LOG_2M, 512));
}

/* -------------------------------------------------------------- revocation */

/* Given a revoked mkey, an access is refused and the event names it. */
static void test_revoke_idle(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;
    struct qrdma_eqe eqe;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    assert_layout(&c, LOG_4K);
    qrdma_change_revoke(&c);
    qrdma_write_pattern(c.q, c.local, 8, 1);
    g_assert_cmpint(qrdma_bench_write(&c.bench, c.local, START + 0x3008,
                                      qrdma_key(INDEX), 8), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);

    eqe = qrdma_eq_expect(c.q, &c.bench.async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, c.bench.b.number);
    g_assert_cmphex(le32_to_cpu(eqe.key), ==, qrdma_key(INDEX));
    g_assert_cmphex(le64_to_cpu(eqe.address), ==, START + 0x3008);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_FREE);
    qrdma_assert_zero(c.q, qrdma_change_place(&c, LOG_4K, 3) + 8, 8);
}

/* A second revocation finds the mkey free, and says so. */
static void test_revoke_twice(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_CHECK_NOT_FREE),
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE),
        .mkc.flags = cpu_to_le32(QRDMA_MKEY_FREE),
    };

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    qrdma_change_revoke(&c);
    g_assert_cmpint(qrdma_bench_umr(&c.bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_MKEY_FREE);
}

/* Given a revoked mkey, its index stays taken until it is destroyed. */
static void test_revoked_index(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(INDEX, QRDMA_TEST_PD);

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    qrdma_change_revoke(&c);
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
    QRdmaChange c;
    struct qrdma_cqe cqe;
    g_autofree uint8_t *before = g_malloc(length);
    g_autofree uint8_t *after = g_malloc(length);
    uint64_t source;

    qrdma_change_init(&c, obj, length, LOG_4K, true);
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
