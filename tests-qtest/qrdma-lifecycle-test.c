/*
 * qrdma: lives of objects and of GIDs: made twice, used when gone, destroyed
 * twice or while others refer to them; doorbells of all pages.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-lifecycle"
#define UMR_QUEUE   6           /* number of the one among the kinds */

/* ------------------------------------------------------------------ a life */

typedef struct Kind {
    const char *name;
    enum qrdma_command_opcode create, use, destroy;
    uint32_t number;
    uint32_t use_input;         /* bytes of either */
    uint32_t use_output;
    uint32_t too_large;
} Kind;

static const Kind kinds[] = {
    { "SD", QRDMA_CMD_ADD_SD, 0, QRDMA_CMD_REMOVE_SD, 5, 0, 0, QRDMA_MAX_SD },
    { "EQ", QRDMA_CMD_CREATE_EQ, QRDMA_CMD_QUERY_EQ, QRDMA_CMD_DESTROY_EQ, 5,
      0, sizeof(struct qrdma_eqc), QRDMA_MAX_EQS },
    { "CQ", QRDMA_CMD_CREATE_CQ, QRDMA_CMD_QUERY_CQ, QRDMA_CMD_DESTROY_CQ, 5,
      0, sizeof(struct qrdma_cqc), 1u << QRDMA_LOG_MAX_CQS },
    { "QP", QRDMA_CMD_CREATE_QP, QRDMA_CMD_MODIFY_QP, QRDMA_CMD_DESTROY_QP, 5,
      sizeof(struct qrdma_modify_qp), 0, 1u << QRDMA_LOG_MAX_QPS },
    { "UMR queue", QRDMA_CMD_CREATE_QP, QRDMA_CMD_MODIFY_QP,
      QRDMA_CMD_DESTROY_QP, UMR_QUEUE, sizeof(struct qrdma_modify_qp), 0,
      1u << QRDMA_LOG_MAX_QPS },
    { "mkey", QRDMA_CMD_CREATE_MKEY, QRDMA_CMD_INVALIDATE_TRANSLATIONS,
      QRDMA_CMD_DESTROY_MKEY, 5, 0, 0, 1u << QRDMA_LOG_MAX_MKEYS },
};

/* What CREATE takes. */
static size_t describe(QRdmaBench *bench, const Kind *kind, void *input)
{
    QRdmaRing ring;
    struct qrdma_sd sd = { .type = cpu_to_le32(QRDMA_SD_DIRECT) };
    struct qrdma_eqc eqc = { 0 };
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(1) };
    struct qrdma_qpc qpc = qrdma_qp_context(kind->number == UMR_QUEUE
                                            ? &bench->umr : &bench->a);
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(5, QRDMA_TEST_PD);

    switch (kind->create) {
    case QRDMA_CMD_ADD_SD:
        sd.address = cpu_to_le64(qrdma_alloc_aligned(bench->q, 2 << 20,
                                                     2 << 20));
        memcpy(input, &sd, sizeof(sd));
        return sizeof(sd);
    case QRDMA_CMD_CREATE_EQ:
        qrdma_ring_alloc(bench->q, &ring, 6, QRDMA_EQE_LOG_SIZE);
        eqc.ring = qrdma_ring_describe(&ring);
        memcpy(input, &eqc, sizeof(eqc));
        return sizeof(eqc);
    case QRDMA_CMD_CREATE_CQ:
        qrdma_ring_alloc(bench->q, &ring, 6, QRDMA_CQE_LOG_SIZE);
        cqc.ring = qrdma_ring_describe(&ring);
        memcpy(input, &cqc, sizeof(cqc));
        return sizeof(cqc);
    case QRDMA_CMD_CREATE_QP:
        memcpy(input, &qpc, sizeof(qpc));
        return sizeof(qpc);
    default:
        memcpy(input, &mkc, sizeof(mkc));
        return sizeof(mkc);
    }
}

static enum qrdma_status use(QRdma *q, const Kind *kind)
{
    uint8_t input[QRDMA_PAGE] = { 0 }, output[QRDMA_PAGE];

    return qrdma_command(q, kind->use, kind->number,
                         kind->use_input ? input : NULL, kind->use_input,
                         kind->use_output ? output : NULL, kind->use_output);
}

static enum qrdma_status destroy(QRdma *q, const Kind *kind, uint32_t number)
{
    return qrdma_command(q, kind->destroy, number, NULL, 0, NULL, 0);
}

static void test_lives(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        const Kind *kind = &kinds[i];
        uint8_t input[QRDMA_PAGE] = { 0 };
        size_t length = describe(&bench, kind, input);

        g_test_message("%s", kind->name);
        for (unsigned life = 0; life < 2; life++) {
            g_assert_cmpint(destroy(q, kind, kind->number), ==,
                            QRDMA_STATUS_NO_OBJECT);
            qrdma_command_ok(q, kind->create, kind->number, input, length,
                             NULL, 0);
            g_assert_cmpint(qrdma_command(q, kind->create, kind->number, input,
                                          length, NULL, 0), ==,
                            QRDMA_STATUS_IN_USE);
            if (kind->use) {
                g_assert_cmpint(use(q, kind), ==, QRDMA_STATUS_OK);
            }
            g_assert_cmpint(destroy(q, kind, kind->number), ==,
                            QRDMA_STATUS_OK);
            if (kind->use) {
                g_assert_cmpint(use(q, kind), ==, QRDMA_STATUS_NO_OBJECT);
            }
        }
        g_assert_cmpint(destroy(q, kind, kind->too_large), ==,
                        QRDMA_STATUS_BAD_NUMBER);
        g_assert_cmpint(destroy(q, kind, UINT32_MAX), ==,
                        QRDMA_STATUS_BAD_NUMBER);
        g_assert_cmpint(qrdma_command(q, kind->create, UINT32_MAX, input,
                                      length, NULL, 0), ==,
                        QRDMA_STATUS_BAD_NUMBER);
    }
}

/* Refused while something refers to it; allowed once that is gone. */
static void test_referred_to(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        enum qrdma_command_opcode opcode;
        uint32_t number;
        enum qrdma_status status;
    } steps[] = {
        { QRDMA_CMD_DESTROY_EQ, 0, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_EQ, 1, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_CQ, 0, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_CQ, 2, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_REMOVE_SD, 0, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_MKEY, 7, QRDMA_STATUS_OK },
        { QRDMA_CMD_REMOVE_SD, 0, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_QP, 10, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_CQ, 0, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_CQ, 1, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_QP, 11, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_QP, 12, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_CQ, 1, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_EQ, 1, QRDMA_STATUS_IN_USE },
        { QRDMA_CMD_DESTROY_CQ, 2, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_EQ, 1, QRDMA_STATUS_OK },
        { QRDMA_CMD_DESTROY_EQ, 0, QRDMA_STATUS_OK },
    };
    struct qrdma_mkc mkc = qrdma_mkc_table(7, QRDMA_TEST_PD, 1, 12, 0x10000,
                                           8 * QRDMA_PAGE, 1024, 8);
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    qrdma_add_direct_sd(q, 0);
    qrdma_bench_mkey(&bench, 7, &mkc);
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        g_assert_cmpint(qrdma_command(q, steps[i].opcode, steps[i].number,
                                      NULL, 0, NULL, 0), ==, steps[i].status);
    }
}

/* -------------------------------------------------------------------- GIDs */

/* A's path, which it may change while its sending has stopped. */
static enum qrdma_status set_path(QRdmaBench *bench, uint8_t sgid_index)
{
    struct qrdma_qpc path = qrdma_qp_query(bench->q, bench->a.number);

    path.state = QRDMA_QP_SQD;
    path.sgid_index = sgid_index;
    return qrdma_qp_modify(bench->q, bench->a.number,
                           QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_PATH, &path);
}

static void set_gid(QRdmaBench *bench, uint32_t index,
                    const struct qrdma_gid *gid)
{
    qrdma_command_ok(bench->q, QRDMA_CMD_SET_GID, index, gid, sizeof(*gid),
                     NULL, 0);
}

/* No path names an entry before its life, nor after it. */
static void test_gid_lives(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_gid gid = {
        .gid = { 0xfe, 0x80, [15] = 9 }, .mac = { 2 }, .type = 1,
    };
    struct qrdma_gid none = { 0 };
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    qrdma_qp_to(q, &bench.a, QRDMA_QP_SQD);
    for (unsigned life = 0; life < 2; life++) {
        struct qrdma_qpc before, after;

        g_assert_cmpint(set_path(&bench, 5), ==, QRDMA_STATUS_BAD_GID);
        set_gid(&bench, 5, &gid);
        set_gid(&bench, 5, &gid);
        g_assert_cmpint(set_path(&bench, 5), ==, QRDMA_STATUS_OK);
        before = qrdma_qp_query(q, bench.a.number);
        g_assert_cmpint(before.sgid_index, ==, 5);
        set_gid(&bench, 5, &none);
        set_gid(&bench, 5, &none);
        g_assert_cmpint(set_path(&bench, 5), ==, QRDMA_STATUS_BAD_GID);
        g_assert_cmpint(set_path(&bench, QRDMA_MAX_GIDS), ==,
                        QRDMA_STATUS_BAD_GID);
        after = qrdma_qp_query(q, bench.a.number);
        g_assert_cmpmem(&after, sizeof(after), &before, sizeof(before));
    }
    g_assert_cmpint(set_path(&bench, 0), ==, QRDMA_STATUS_OK);
    qrdma_qp_to(q, &bench.a, QRDMA_QP_RTS);
    qrdma_bench_assert_works(&bench, 2);
}

/*
 * Deleted while queue pairs refer to it: they reach nobody, as with a GID of
 * another card. An entry of another index with the same GID is as good.
 */
static void test_gid_referred_to(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_send_wqe send = { .opcode = QRDMA_SEND_OP_WRITE };
    struct qrdma_gid gid = { .type = 1 }, none = { 0 };
    struct qrdma_qpc of_a;
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    of_a = qrdma_qp_query(q, bench.a.number);
    memcpy(gid.gid, of_a.dgid, sizeof(gid.gid));
    memcpy(gid.mac, of_a.dmac, sizeof(gid.mac));
    set_gid(&bench, QRDMA_MAX_GIDS - 1, &gid);
    set_gid(&bench, 0, &none);
    qrdma_bench_assert_works(&bench, 2);

    set_gid(&bench, QRDMA_MAX_GIDS - 1, &none);
    qrdma_post(q, &bench.a, send, NULL, 0);
    for (unsigned i = 0; i < 10; i++) {
        qtest_clock_step(q->qts, NANOSECONDS_PER_SECOND);
        qrdma_settle(q);
    }
    qrdma_cq_expect(q, &bench.cq_a, QRDMA_CQE_RETRY_EXCEEDED);
    g_assert_cmpint(qrdma_qp_query(q, bench.b.number).state, ==, QRDMA_QP_RTS);

    set_gid(&bench, 0, &gid);
    qrdma_bench_reconnect(&bench);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_MKEY, 2, NULL, 0, NULL, 0);
    qrdma_bench_assert_works(&bench, 2);
}

/* ---------------------------------------------------------------- doorbells */

#define BENCH_EQS 2
#define BENCH_CQS 3
#define BENCH_QPS 3

/* All that a doorbell could move. */
typedef struct Snapshot {
    struct qrdma_eqc eqs[BENCH_EQS];
    struct qrdma_cqc cqs[BENCH_CQS];
    struct qrdma_qpc qps[BENCH_QPS];
    struct qrdma_counters counters;
} Snapshot;

static void query(QRdma *q, enum qrdma_command_opcode opcode, uint32_t number,
                  void *output, size_t length)
{
    qrdma_command_ok(q, opcode, number, NULL, 0, output, length);
}

/* The number of doorbells ignored, and of commands, is not compared. */
static uint64_t take_snapshot(QRdmaBench *bench, Snapshot *snapshot)
{
    uint64_t ignored;

    for (unsigned i = 0; i < BENCH_EQS; i++) {
        query(bench->q, QRDMA_CMD_QUERY_EQ, i, &snapshot->eqs[i],
              sizeof(snapshot->eqs[i]));
    }
    for (unsigned i = 0; i < BENCH_CQS; i++) {
        query(bench->q, QRDMA_CMD_QUERY_CQ, i, &snapshot->cqs[i],
              sizeof(snapshot->cqs[i]));
    }
    for (unsigned i = 0; i < BENCH_QPS; i++) {
        query(bench->q, QRDMA_CMD_QUERY_QP, bench->a.number + i,
              &snapshot->qps[i], sizeof(snapshot->qps[i]));
    }
    query(bench->q, QRDMA_CMD_READ_COUNTERS, 0, &snapshot->counters,
          sizeof(snapshot->counters));
    ignored = le64_to_cpu(snapshot->counters.doorbells_ignored);
    snapshot->counters.doorbells_ignored = 0;
    snapshot->counters.commands = 0;
    return ignored;
}

static void write_doorbell(QRdma *q, uint64_t offset, unsigned log_size,
                           uint64_t value)
{
    switch (log_size) {
    case 0:
        qpci_io_writeb(&q->pci, q->doorbells, offset, value);
        break;
    case 1:
        qpci_io_writew(&q->pci, q->doorbells, offset, value);
        break;
    case 2:
        qpci_io_writel(&q->pci, q->doorbells, offset, value);
        break;
    default:
        qpci_io_writeq(&q->pci, q->doorbells, offset, value);
        break;
    }
}

/*
 * Each of the four doorbells, as it would be for a queue that is there: its
 * number, any arm, a counter that its ring may hold.
 */
static unsigned ring_page(QRdma *q, GRand *random, uint32_t page)
{
    for (unsigned form = 0; form < 4; form++) {
        uint32_t number = g_rand_int_range(random, 0, 16);
        uint32_t arm = g_rand_int_range(random, 0, 4);

        qrdma_ring_doorbell(q, page, form * 8,
                            number | arm << QRDMA_DOORBELL_ARM_SHIFT,
                            g_rand_int_range(random, 0, 3));
    }
    return 4;
}

/* Of any width and alignment, but no doorbell's. */
static unsigned scribble(QRdma *q, GRand *random, uint32_t page)
{
    unsigned log_size = g_rand_int_range(random, 0, 4);
    uint32_t first = log_size == 3 ? QRDMA_DOORBELL_EQ + 1 : 0;
    uint32_t offset = g_rand_int_range(random, first,
                                       QRDMA_PAGE - (1 << log_size) + 1);
    uint64_t value = (uint64_t)g_rand_int(random) << 32 |
                     g_rand_int_range(random, 0, 16);

    write_doorbell(q, page * QRDMA_PAGE + offset, log_size, value);
    return 1;
}

/*
 * Doorbells of the wrong pages, on every page, and writes that are none, on
 * those of the queues, too. Not one is taken, and each is counted.
 */
static void test_random_doorbells(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    Snapshot before, after;
    uint64_t ignored, rung = 0;

    qrdma_bench_init(&bench, q);
    ignored = take_snapshot(&bench, &before);
    for (uint32_t page = 0; page < QRDMA_DOORBELL_PAGES; page++) {
        for (unsigned i = 0; i < 4; i++) {
            rung += scribble(q, random, page);
        }
        if (page != 0 && page != bench.a.page && page != bench.b.page) {
            rung += ring_page(q, random, page);
        }
    }
    write_doorbell(q, QRDMA_DOORBELL_PAGES * QRDMA_PAGE - 1, 0, 0xff);
    rung++;
    qrdma_settle(q);
    g_assert_cmpuint(take_snapshot(&bench, &after), ==, ignored + rung);
    g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
    qrdma_eq_expect_none(q, &bench.async);
    qrdma_eq_expect_none(q, &bench.completion);
    qrdma_cq_expect_none(q, &bench.cq_a);
    qrdma_cq_expect_none(q, &bench.cq_b);
    qrdma_bench_assert_works(&bench, 2);
}

/* ------------------------------------------------------------ ring memory */

/* A ring that would wrap around the end of the bus is none. */
static void test_ring_wraps(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(1) };
    QRdmaRing ring = { 0xfffffffffffff000ull, 8, QRDMA_CQE_LOG_SIZE };
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    cqc.ring = qrdma_ring_describe(&ring);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, 20, &cqc,
                                  sizeof(cqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_RING);
    qrdma_bench_assert_works(&bench, 2);
}

static void register_lifecycle_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("lives", GROUP, test_lives, NULL);
    qos_add_test("referred-to", GROUP, test_referred_to, NULL);
    qos_add_test("gid-lives", GROUP, test_gid_lives, NULL);
    qos_add_test("gid-referred-to", GROUP, test_gid_referred_to, NULL);
    qos_add_test("random-doorbells", GROUP, test_random_doorbells, NULL);
    qos_add_test("ring-wraps", GROUP, test_ring_wraps, NULL);
}

libqos_init(register_lifecycle_tests);
