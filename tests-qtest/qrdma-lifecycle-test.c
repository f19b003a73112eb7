/*
 * qrdma: lives of objects: made twice, used when gone, destroyed twice or while
 * others refer to them; doorbells of all pages; memory of completion queues
 * that is not there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qrdma-queues.h"

#define GROUP   "qrdma-lifecycle"

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
    struct qrdma_qpc qpc = qrdma_qp_context(&bench->a);
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

/* ---------------------------------------------------------------- doorbells */

static void assert_transfer(QRdmaBench *bench)
{
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(2, QRDMA_TEST_PD);
    uint32_t key = qrdma_bench_mkey(bench, 2, &mkc);

    qrdma_write_pattern(q, memory, QRDMA_PAGE, 3);
    g_assert_cmpint(qrdma_bench_write(bench, memory, memory + QRDMA_PAGE, key,
                                      QRDMA_PAGE), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(q, memory + QRDMA_PAGE, QRDMA_PAGE, 3);
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
 * Writes to every page but those of the queues, of any width, alignment and
 * value, numbers of queues that are there among them. None is rung, and the
 * last page's last byte is the end of it.
 */
static void test_random_doorbells(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    g_autoptr(GRand) random = g_rand_new_with_seed(4);
    struct qrdma_qpc before, after;

    qrdma_bench_init(&bench, q);
    before = qrdma_qp_query(q, bench.a.number);
    for (unsigned i = 0; i < 2 * QRDMA_DOORBELL_PAGES; i++) {
        uint32_t page = i % QRDMA_DOORBELL_PAGES;
        unsigned log_size = g_rand_int_range(random, 0, 4);
        uint32_t offset = g_rand_int_range(random, 0,
                                           QRDMA_PAGE - (1 << log_size) + 1);
        uint64_t value = (uint64_t)g_rand_int(random) << 32 |
                         g_rand_int_range(random, 0, 16);

        if (page == 0 || page == bench.a.page || page == bench.b.page) {
            continue;
        }
        if (i % 2) {
            offset = g_rand_int_range(random, 0, 4) * 8;
            log_size = 3;
        }
        write_doorbell(q, page * QRDMA_PAGE + offset, log_size, value);
    }
    write_doorbell(q, QRDMA_DOORBELL_PAGES * QRDMA_PAGE - 1, 0, 0xff);
    qrdma_settle(q);
    after = qrdma_qp_query(q, bench.a.number);
    g_assert_cmpmem(&before, sizeof(before), &after, sizeof(after));
    qrdma_eq_expect_none(q, &bench.async);
    qrdma_cq_expect_none(q, &bench.cq_a);
    assert_transfer(&bench);
}

/* ------------------------------------------------------------ ring memory */

/* Where there is nothing; the last of RAM and what follows it. */
static void test_cq_memory(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint64_t places[] = {
        128ull << 20, 0xfffffffff000ull, 0x7ffffffffffff000ull,
    };
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        struct qrdma_cqc cqc = { .eqn = cpu_to_le32(1) };
        QRdmaCq cq = { .number = 20 + i };
        QRdmaQp qp = bench.umr;
        struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(bench.local_key) };
        struct qrdma_eqe eqe;

        cq.ring = (QRdmaRing) { places[i], 6, QRDMA_CQE_LOG_SIZE };
        cqc.ring = qrdma_ring_describe(&cq.ring);
        qrdma_command_ok(q, QRDMA_CMD_CREATE_CQ, cq.number, &cqc, sizeof(cqc),
                         NULL, 0);
        qp.number = 40 + i;
        qp.send_cq = qp.receive_cq = &cq;
        qp.send.address = 0;
        qrdma_qp_create(q, &qp);
        qrdma_qp_connect(q, &qp, 0, 0);
        qrdma_post_umr(q, &qp, wqe, NULL, 0);
        eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_CQ_ERROR);
        g_assert_cmpuint(le32_to_cpu(eqe.number), ==, cq.number);
        eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_QP_ERROR);
        g_assert_cmpuint(le32_to_cpu(eqe.number), ==, qp.number);
    }
    assert_transfer(&bench);
}

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
    assert_transfer(&bench);
}

static void register_lifecycle_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("lives", GROUP, test_lives, NULL);
    qos_add_test("referred-to", GROUP, test_referred_to, NULL);
    qos_add_test("random-doorbells", GROUP, test_random_doorbells, NULL);
    qos_add_test("cq-memory", GROUP, test_cq_memory, NULL);
    qos_add_test("ring-wraps", GROUP, test_ring_wraps, NULL);
}

libqos_init(register_lifecycle_tests);
