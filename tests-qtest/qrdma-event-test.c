/*
 * qrdma: completion events, asynchronous events, and MSI-X.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-event"
#define COMPLETION_VECTOR 1     /* of the bench's EQ 1 */

static struct qrdma_send_wqe nop(void)
{
    return (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_NOP };
}

static void post_nop(QRdmaBench *bench)
{
    qrdma_post(bench->q, &bench->a, nop(), NULL, 0);
}

/* ---------------------------------------------------------------- arming */

/* Given a CQ that is not armed, completions raise no event. */
static void test_not_armed(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;

    qrdma_bench_init(&bench, obj);
    post_nop(&bench);
    qrdma_cq_expect(bench.q, &bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_eq_expect_none(bench.q, &bench.completion);
}

/* Given an armed CQ, one event for the next completion, and only one. */
static void test_armed(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    struct qrdma_eqe eqe;

    qrdma_bench_init(&bench, obj);
    qrdma_cq_doorbell(bench.q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_expect_none(bench.q, &bench.completion);
    post_nop(&bench);
    post_nop(&bench);
    eqe = qrdma_eq_expect(bench.q, &bench.completion,
                          QRDMA_EVENT_COMPLETION);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, bench.cq_a.number);
    qrdma_eq_expect_none(bench.q, &bench.completion);
}

/* Given a completion that nobody has taken, arming raises the event at once. */
static void test_armed_late(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;

    qrdma_bench_init(&bench, obj);
    post_nop(&bench);
    qrdma_settle(bench.q);
    qrdma_cq_doorbell(bench.q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_expect(bench.q, &bench.completion, QRDMA_EVENT_COMPLETION);
}

static void post_send(QRdmaBench *bench, uint8_t flags)
{
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_SEND, .flags = flags,
    };

    qrdma_post_receive(bench->q, &bench->b, NULL, 0);
    qrdma_post(bench->q, &bench->a, wqe, NULL, 0);
    qrdma_settle(bench->q);
}

/* Given a CQ armed for solicited completions, the others raise no event. */
static void test_solicited(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    struct qrdma_cqe cqe;

    qrdma_bench_init(&bench, obj);
    qrdma_cq_doorbell(bench.q, &bench.cq_b, QRDMA_DOORBELL_ARM_SOLICITED);
    post_send(&bench, 0);
    qrdma_eq_expect_none(bench.q, &bench.completion);
    post_send(&bench, QRDMA_WQE_SOLICITED);
    qrdma_eq_expect(bench.q, &bench.completion, QRDMA_EVENT_COMPLETION);

    cqe = qrdma_cq_expect(bench.q, &bench.cq_b, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(cqe.flags, ==, 0);
    cqe = qrdma_cq_expect(bench.q, &bench.cq_b, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(cqe.flags, ==, QRDMA_CQE_FLAG_SOLICITED);
}

/* An error is always solicited. */
static void test_solicited_error(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    QRdmaBench bench;
    struct qrdma_send_wqe bad = { .opcode = 0xff };

    qrdma_bench_init(&bench, obj);
    qrdma_cq_doorbell(bench.q, &bench.cq_a, QRDMA_DOORBELL_ARM_SOLICITED);
    qrdma_post(bench.q, &bench.a, bad, NULL, 0);
    qrdma_eq_expect(bench.q, &bench.completion, QRDMA_EVENT_COMPLETION);
}

/* The events of a CQ follow it to another EQ. */
static void test_modify_cq(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(QRDMA_ASYNC_EQN) };

    qrdma_bench_init(&bench, obj);
    qrdma_command_ok(bench.q, QRDMA_CMD_MODIFY_CQ, bench.cq_a.number,
                     &cqc, sizeof(cqc), NULL, 0);
    qrdma_cq_doorbell(bench.q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    post_nop(&bench);
    qrdma_eq_expect(bench.q, &bench.async, QRDMA_EVENT_COMPLETION);
    qrdma_eq_expect_none(bench.q, &bench.completion);
}

/* ------------------------------------------------------------------ MSI-X */

static void raise_completion_event(QRdmaBench *bench)
{
    qrdma_eq_doorbell(bench->q, &bench->completion, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_cq_doorbell(bench->q, &bench->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    post_nop(bench);
    qrdma_settle(bench->q);
}

static uint32_t message_at(QRdma *q, uint64_t address)
{
    return qtest_readl(q->qts, address);
}

/* Given a masked vector, the pending bit is set and no message is sent. */
static void test_masked(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    uint64_t mailbox;

    qrdma_bench_init(&bench, q);
    mailbox = qrdma_alloc(q, QRDMA_PAGE);
    qrdma_msix_point(q, COMPLETION_VECTOR, mailbox, QRDMA_TEST_MSI_DATA);
    raise_completion_event(&bench);

    g_assert_true(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
    g_assert_cmphex(message_at(q, mailbox), ==, 0);
}

/* Given a pending vector, when it is unmasked, then the message comes. */
static void test_unmask(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    uint64_t mailbox;

    qrdma_bench_init(&bench, q);
    mailbox = qrdma_alloc(q, QRDMA_PAGE);
    qrdma_msix_point(q, COMPLETION_VECTOR, mailbox, QRDMA_TEST_MSI_DATA);
    raise_completion_event(&bench);
    qrdma_msix_mask(q, COMPLETION_VECTOR, false);

    g_assert_false(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
    g_assert_cmphex(message_at(q, mailbox), ==, QRDMA_TEST_MSI_DATA);
}

/* Given an open vector, the message is sent and nothing stays pending. */
static void test_delivered(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    uint64_t mailbox;

    qrdma_bench_init(&bench, q);
    mailbox = qrdma_alloc(q, QRDMA_PAGE);
    qrdma_msix_point(q, COMPLETION_VECTOR, mailbox, QRDMA_TEST_MSI_DATA);
    qrdma_msix_mask(q, COMPLETION_VECTOR, false);
    raise_completion_event(&bench);

    g_assert_cmphex(message_at(q, mailbox), ==, QRDMA_TEST_MSI_DATA);
    g_assert_false(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
}

/* Given an EQ that is not armed, its events raise no interrupt. */
static void test_eq_not_armed(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    qrdma_cq_doorbell(q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    post_nop(&bench);
    qrdma_eq_expect(q, &bench.completion, QRDMA_EVENT_COMPLETION);
    g_assert_false(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
}

/* Given an event that nobody has taken, arming its EQ raises the interrupt. */
static void test_eq_armed_late(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    qrdma_cq_doorbell(q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    post_nop(&bench);
    qrdma_settle(q);
    qrdma_eq_doorbell(q, &bench.completion, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_settle(q);
    g_assert_true(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
}

/* An EQ can be given another vector, the last one included. */
static void test_modify_eq(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_eqc eqc = {
        .vector = cpu_to_le32(QRDMA_MSIX_VECTORS - 1),
    };

    qrdma_bench_init(&bench, q);
    qrdma_command_ok(q, QRDMA_CMD_MODIFY_EQ, bench.completion.number,
                     &eqc, sizeof(eqc), NULL, 0);
    raise_completion_event(&bench);
    g_assert_true(qpci_msix_pending(&q->pci, QRDMA_MSIX_VECTORS - 1));
    g_assert_false(qpci_msix_pending(&q->pci, COMPLETION_VECTOR));
}

/* --------------------------------------------------- asynchronous events */

/* The first message that meets a QP in RTR is announced. */
static void test_communication(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_qpc init = { .state = QRDMA_QP_INIT };
    struct qrdma_qpc rtr, query;
    struct qrdma_eqe eqe;

    qrdma_bench_init(&bench, q);
    query = qrdma_qp_query(q, bench.b.number);
    qrdma_qp_to(q, &bench.b, QRDMA_QP_RESET);
    g_assert_cmpint(qrdma_qp_modify(q, bench.b.number, QRDMA_QP_MASK_STATE |
                                    QRDMA_QP_MASK_PKEY_INDEX |
                                    QRDMA_QP_MASK_FLAGS, &init), ==,
                    QRDMA_STATUS_OK);
    /* Only to RTR, with the attributes it had before. */
    rtr = (struct qrdma_qpc) {
        .state = QRDMA_QP_RTR,
        .path_mtu = query.path_mtu,
        .remote_qpn = query.remote_qpn,
        .receive_psn = query.receive_psn,
        .max_dest_rd_atomic = query.max_dest_rd_atomic,
        .min_rnr_timer = query.min_rnr_timer,
        .hop_limit = query.hop_limit,
    };
    memcpy(rtr.dgid, query.dgid, sizeof(rtr.dgid));
    memcpy(rtr.dmac, query.dmac, sizeof(rtr.dmac));
    g_assert_cmpint(qrdma_qp_modify(q, bench.b.number, QRDMA_QP_MASK_STATE |
                                    QRDMA_QP_MASK_PATH |
                                    QRDMA_QP_MASK_PATH_MTU |
                                    QRDMA_QP_MASK_REMOTE_QPN |
                                    QRDMA_QP_MASK_RECEIVE_PSN |
                                    QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC |
                                    QRDMA_QP_MASK_MIN_RNR_TIMER, &rtr), ==,
                    QRDMA_STATUS_OK);
    post_send(&bench, 0);
    eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_COMMUNICATION);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, bench.b.number);
}

/* Given a full CQ, one completion more puts it in error, with an event. */
static void test_cq_overrun(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    QRdmaCq small = { 0 };
    QRdmaQp qp;
    struct qrdma_eqe eqe;
    struct qrdma_cqc query;

    qrdma_bench_init(&bench, q);
    qrdma_cq_create(q, &small, 9, 2, 1);
    qp = bench.umr;
    qp.number = 20;
    qp.send_cq = &small;
    qp.receive_cq = &small;
    qp.send.address = 0;
    qrdma_qp_create(q, &qp);
    qrdma_qp_connect(q, &qp, 0, 0);
    for (int i = 0; i < 5; i++) {
        struct qrdma_umr_wqe wqe = {
            .key = cpu_to_le32(bench.local_key),
        };

        qrdma_post_umr(q, &qp, wqe, NULL, 0);
        qrdma_settle(q);
    }

    eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_CQ_ERROR);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, 9);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==,
                    QRDMA_QUEUE_ERROR_OVERRUN);
    /* Its QP cannot go on either. */
    eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_QP_ERROR);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, 20);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_QUEUE_ERROR_CQ);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_CQ, 9, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmphex(le32_to_cpu(query.flags) & QRDMA_CQ_ERROR, !=, 0);
}

/* Given a full EQ, an error event is lost, and the status register says so. */
static void test_event_lost(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_eqe eqe;
    uint64_t memory;
    unsigned events = 0;

    qrdma_bench_init_with(&bench, q, 3);
    memory = qrdma_alloc(q, QRDMA_PAGE);
    for (unsigned i = 0; i < 9; i++) {
        /* There is no such key. */
        g_assert_cmpint(qrdma_bench_write(&bench, memory, 0, 0x7f00, 8), ==,
                        QRDMA_CQE_REMOTE_ACCESS_ERROR);
        qrdma_bench_reconnect(&bench);
    }
    while (qrdma_eq_poll(q, &bench.async, &eqe)) {
        events++;
    }
    g_assert_cmpuint(events, ==, 8);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_EVENT_LOST);
    qrdma_write32(q, QRDMA_REG_STATUS, QRDMA_CARD_EVENT_LOST);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);
}

/* Given a full EQ, a completion event waits until there is room. */
static void test_event_waits(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    QRdmaEq tiny;
    QRdmaCq cq[9] = { 0 };
    struct qrdma_eqe eqe;
    unsigned events = 0;

    qrdma_bench_init(&bench, q);
    qrdma_eq_create(q, &tiny, 2, 3, 2);
    /* Nine completions on nine CQs of this EQ, which has room for eight. */
    for (unsigned i = 0; i < ARRAY_SIZE(cq); i++) {
        QRdmaQp qp = bench.umr;
        struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(bench.local_key) };

        qrdma_cq_create(q, &cq[i], 100 + i, 4, tiny.number);
        qp.number = 100 + i;
        qp.send_cq = &cq[i];
        qp.receive_cq = &cq[i];
        qp.send.address = 0;
        qrdma_qp_create(q, &qp);
        qrdma_qp_connect(q, &qp, 0, 0);
        qrdma_cq_doorbell(q, &cq[i], QRDMA_DOORBELL_ARM_NEXT);
        qrdma_post_umr(q, &qp, wqe, NULL, 0);
        qrdma_settle(q);
    }
    while (qrdma_eq_poll(q, &tiny, &eqe)) {
        events++;
    }
    g_assert_cmpuint(events, ==, 8);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);

    qrdma_eq_doorbell(q, &tiny, QRDMA_DOORBELL_ARM_NONE);
    eqe = qrdma_eq_expect(q, &tiny, QRDMA_EVENT_COMPLETION);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, 108);
}

/* ----------------------------------------------------------------- case 25 */

/*
 * Given a CQ armed and destroyed, when its number is used again, then nothing
 * of the old one shows: no event, no completion, not armed.
 */
static void test_stale_event(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    QRdmaCq first = { 0 }, second = { 0 };
    struct qrdma_cqc query;

    qrdma_bench_init(&bench, q);
    qrdma_cq_create(q, &first, 9, 4, 1);
    qrdma_cq_doorbell(q, &first, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_CQ, 9, NULL, 0, NULL, 0);
    qrdma_cq_create(q, &second, 9, 4, 1);

    qrdma_command_ok(q, QRDMA_CMD_QUERY_CQ, 9, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmphex(le32_to_cpu(query.flags), ==, 0);
    g_assert_cmpuint(le32_to_cpu(query.producer), ==, 0);
    qrdma_cq_expect_none(q, &second);
    qrdma_eq_expect_none(q, &bench.completion);
}

static void register_event_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("not-armed", GROUP, test_not_armed, NULL);
    qos_add_test("armed", GROUP, test_armed, NULL);
    qos_add_test("armed-late", GROUP, test_armed_late, NULL);
    qos_add_test("solicited", GROUP, test_solicited, NULL);
    qos_add_test("solicited-error", GROUP, test_solicited_error,
                 NULL);
    qos_add_test("modify-cq", GROUP, test_modify_cq, NULL);
    qos_add_test("msix/masked", GROUP, test_masked, NULL);
    qos_add_test("msix/unmask", GROUP, test_unmask, NULL);
    qos_add_test("msix/delivered", GROUP, test_delivered, NULL);
    qos_add_test("msix/eq-not-armed", GROUP, test_eq_not_armed, NULL);
    qos_add_test("msix/eq-armed-late", GROUP, test_eq_armed_late, NULL);
    qos_add_test("msix/modify-eq", GROUP, test_modify_eq, NULL);
    qos_add_test("communication", GROUP, test_communication, NULL);
    qos_add_test("cq-overrun", GROUP, test_cq_overrun, NULL);
    qos_add_test("lost", GROUP, test_event_lost, NULL);
    qos_add_test("waits", GROUP, test_event_waits, NULL);
    qos_add_test("stale", GROUP, test_stale_event, NULL);
}

libqos_init(register_event_tests);
