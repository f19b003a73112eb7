/*
 * Queues of a qrdma card for tests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qrdma-queues.h"
#include "hw/rdma-dev/abi/qrdma_diagnostic.h"

/* ------------------------------------------------------------------ rings */

static size_t ring_size(const QRdmaRing *ring)
{
    return (size_t)1 << (ring->log_entries + ring->log_stride);
}

void qrdma_ring_alloc(QRdma *q, QRdmaRing *ring, unsigned log_entries,
                      unsigned log_stride)
{
    ring->log_entries = log_entries;
    ring->log_stride = log_stride;
    ring->address = qrdma_alloc(q, QEMU_ALIGN_UP(ring_size(ring), QRDMA_PAGE));
}

struct qrdma_ring qrdma_ring_describe(const QRdmaRing *ring)
{
    return (struct qrdma_ring) {
        .base = cpu_to_le64(ring->address),
        .num_pages = cpu_to_le32(DIV_ROUND_UP(ring_size(ring), QRDMA_PAGE)),
        .level = 0,
        .log_page_size = QRDMA_LOG_PAGE_SIZE_MIN,
        .log_entries = ring->log_entries,
        .log_stride = ring->log_stride,
    };
}

static uint64_t ring_slot(const QRdmaRing *ring, uint32_t counter)
{
    uint32_t slot = counter & ((1u << ring->log_entries) - 1);

    return ring->address + ((uint64_t)slot << ring->log_stride);
}

/* The phase that the card writes into the entry of `counter`. */
static uint8_t ring_phase(const QRdmaRing *ring, uint32_t counter)
{
    return !(counter >> ring->log_entries & 1);
}

/* ----------------------------------------------------------- event queues */

void qrdma_eq_create(QRdma *q, QRdmaEq *eq, uint32_t number,
                     unsigned log_entries, uint32_t vector)
{
    struct qrdma_eqc eqc = { .vector = cpu_to_le32(vector) };

    eq->number = number;
    eq->consumer = 0;
    qrdma_ring_alloc(q, &eq->ring, log_entries, QRDMA_EQE_LOG_SIZE);
    eqc.ring = qrdma_ring_describe(&eq->ring);
    qrdma_command_ok(q, QRDMA_CMD_CREATE_EQ, number, &eqc, sizeof(eqc),
                     NULL, 0);
}

bool qrdma_eq_poll(QRdma *q, QRdmaEq *eq, struct qrdma_eqe *eqe)
{
    qtest_memread(q->qts, ring_slot(&eq->ring, eq->consumer), eqe,
                  sizeof(*eqe));
    if (eqe->type == 0 || eqe->phase != ring_phase(&eq->ring, eq->consumer)) {
        return false;
    }
    eq->consumer++;
    return true;
}

typedef struct EqWait {
    QRdmaEq *eq;
    struct qrdma_eqe eqe;
} EqWait;

static bool eq_has_event(QRdma *q, void *opaque)
{
    EqWait *wait = opaque;

    return qrdma_eq_poll(q, wait->eq, &wait->eqe);
}

struct qrdma_eqe qrdma_eq_expect(QRdma *q, QRdmaEq *eq, enum qrdma_event type)
{
    EqWait wait = { .eq = eq };

    qrdma_wait(q, eq_has_event, &wait, "an event");
    g_assert_cmpint(wait.eqe.type, ==, type);
    qrdma_eq_doorbell(q, eq, QRDMA_DOORBELL_ARM_NONE);
    return wait.eqe;
}

void qrdma_eq_expect_none(QRdma *q, QRdmaEq *eq)
{
    struct qrdma_eqe eqe;

    qrdma_settle(q);
    g_assert_false(qrdma_eq_poll(q, eq, &eqe));
}

void qrdma_eq_doorbell(QRdma *q, const QRdmaEq *eq, uint32_t arm)
{
    qrdma_ring_doorbell(q, 0, QRDMA_DOORBELL_EQ,
                        eq->number | arm << QRDMA_DOORBELL_ARM_SHIFT,
                        eq->consumer);
}

/* ------------------------------------------------------ completion queues */

void qrdma_cq_create(QRdma *q, QRdmaCq *cq, uint32_t number,
                     unsigned log_entries, uint32_t eqn)
{
    struct qrdma_cqc cqc = {
        .eqn = cpu_to_le32(eqn),
        .doorbell_page = cpu_to_le32(cq->page),
    };

    cq->number = number;
    cq->consumer = 0;
    qrdma_ring_alloc(q, &cq->ring, log_entries, QRDMA_CQE_LOG_SIZE);
    cqc.ring = qrdma_ring_describe(&cq->ring);
    qrdma_command_ok(q, QRDMA_CMD_CREATE_CQ, number, &cqc, sizeof(cqc),
                     NULL, 0);
}

bool qrdma_cq_poll(QRdma *q, QRdmaCq *cq, struct qrdma_cqe *cqe)
{
    qtest_memread(q->qts, ring_slot(&cq->ring, cq->consumer), cqe,
                  sizeof(*cqe));
    /* A fresh ring is zero, and the first phase is 1. */
    if (cqe->phase != ring_phase(&cq->ring, cq->consumer)) {
        return false;
    }
    cq->consumer++;
    return true;
}

typedef struct CqWait {
    QRdmaCq *cq;
    struct qrdma_cqe cqe;
} CqWait;

static bool cq_has_completion(QRdma *q, void *opaque)
{
    CqWait *wait = opaque;

    return qrdma_cq_poll(q, wait->cq, &wait->cqe);
}

struct qrdma_cqe qrdma_cq_wait(QRdma *q, QRdmaCq *cq)
{
    CqWait wait = { .cq = cq };

    qrdma_wait(q, cq_has_completion, &wait, "a completion");
    qrdma_cq_doorbell(q, cq, QRDMA_DOORBELL_ARM_NONE);
    return wait.cqe;
}

struct qrdma_cqe qrdma_cq_expect(QRdma *q, QRdmaCq *cq,
                                 enum qrdma_cqe_status status)
{
    struct qrdma_cqe cqe = qrdma_cq_wait(q, cq);

    if (cqe.status != status) {
        g_test_message("completion of QP %u: opcode 0x%x status %u "
                       "syndrome %u", le32_to_cpu(cqe.qpn), cqe.opcode,
                       cqe.status, le16_to_cpu(cqe.syndrome));
    }
    g_assert_cmpint(cqe.status, ==, status);
    return cqe;
}

void qrdma_cq_expect_none(QRdma *q, QRdmaCq *cq)
{
    struct qrdma_cqe cqe;

    qrdma_settle(q);
    g_assert_false(qrdma_cq_poll(q, cq, &cqe));
}

void qrdma_cq_doorbell(QRdma *q, const QRdmaCq *cq, uint32_t arm)
{
    qrdma_ring_doorbell(q, cq->page, QRDMA_DOORBELL_CQ,
                        cq->number | arm << QRDMA_DOORBELL_ARM_SHIFT,
                        cq->consumer);
}

/* ------------------------------------------------------------ queue pairs */

struct qrdma_qpc qrdma_qp_context(const QRdmaQp *qp)
{
    struct qrdma_qpc qpc = {
        .type = qp->type,
        .pd = cpu_to_le32(qp->pd),
        .send_cqn = cpu_to_le32(qp->send_cq->number),
        .receive_cqn = cpu_to_le32(qp->receive_cq->number),
        .doorbell_page = cpu_to_le32(qp->page),
        .send_ring = qrdma_ring_describe(&qp->send),
    };

    if (qp->receive.log_stride) {
        qpc.receive_ring = qrdma_ring_describe(&qp->receive);
    }
    return qpc;
}

void qrdma_qp_create(QRdma *q, QRdmaQp *qp)
{
    struct qrdma_qpc qpc;

    if (!qp->send.address) {
        qrdma_ring_alloc(q, &qp->send, qp->send.log_entries,
                         qp->send.log_stride);
    }
    if (qp->receive.log_stride && !qp->receive.address) {
        qrdma_ring_alloc(q, &qp->receive, qp->receive.log_entries,
                         qp->receive.log_stride);
    }
    qp->send_producer = 0;
    qp->receive_producer = 0;
    qpc = qrdma_qp_context(qp);
    qrdma_command_ok(q, QRDMA_CMD_CREATE_QP, qp->number, &qpc, sizeof(qpc),
                     NULL, 0);
}

enum qrdma_status qrdma_qp_modify(QRdma *q, uint32_t number, uint64_t mask,
                                  const struct qrdma_qpc *context)
{
    struct qrdma_modify_qp modify = {
        .mask = cpu_to_le64(mask),
        .context = *context,
    };

    return qrdma_command(q, QRDMA_CMD_MODIFY_QP, number,
                         &modify, sizeof(modify), NULL, 0);
}

static void modify_ok(QRdma *q, QRdmaQp *qp, uint64_t mask,
                      const struct qrdma_qpc *context)
{
    g_assert_cmpint(qrdma_qp_modify(q, qp->number, mask, context), ==,
                    QRDMA_STATUS_OK);
}

void qrdma_qp_to(QRdma *q, QRdmaQp *qp, enum qrdma_qp_state state)
{
    struct qrdma_qpc context = { .state = state };

    modify_ok(q, qp, QRDMA_QP_MASK_STATE, &context);
    if (state == QRDMA_QP_RESET) {
        qp->send_producer = 0;
        qp->receive_producer = 0;
    }
}

struct qrdma_qpc qrdma_qp_query(QRdma *q, uint32_t number)
{
    struct qrdma_qpc context;

    qrdma_command_ok(q, QRDMA_CMD_QUERY_QP, number, NULL, 0,
                     &context, sizeof(context));
    return context;
}

/* The GID that the bench gives to the port; index 0. */
static const struct qrdma_gid test_gid = {
    .gid = { 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34,
             0x56 },
    .mac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
    .type = 1,
};

static void connect_rc(QRdma *q, QRdmaQp *qp, uint32_t remote,
                       unsigned rnr_retry)
{
    struct qrdma_qpc init = {
        .state = QRDMA_QP_INIT,
        .flags = cpu_to_le32(QRDMA_QP_REMOTE_READ | QRDMA_QP_REMOTE_WRITE |
                             QRDMA_QP_REMOTE_ATOMIC),
    };
    struct qrdma_qpc rtr = {
        .state = QRDMA_QP_RTR,
        .path_mtu = 3,
        .remote_qpn = cpu_to_le32(remote),
        .receive_psn = cpu_to_le32(0x123),
        .max_dest_rd_atomic = QRDMA_MAX_RD_ATOMIC,
        .min_rnr_timer = 1,
        .hop_limit = 64,
    };
    struct qrdma_qpc rts = {
        .state = QRDMA_QP_RTS,
        .send_psn = cpu_to_le32(0x123),
        .retry_count = 7,
        .rnr_retry = rnr_retry,
        .timeout = 14,
        .max_rd_atomic = QRDMA_MAX_RD_ATOMIC,
    };

    memcpy(rtr.dgid, test_gid.gid, sizeof(rtr.dgid));
    memcpy(rtr.dmac, test_gid.mac, sizeof(rtr.dmac));

    modify_ok(q, qp, QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_PKEY_INDEX |
              QRDMA_QP_MASK_FLAGS, &init);
    modify_ok(q, qp, QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_PATH |
              QRDMA_QP_MASK_PATH_MTU | QRDMA_QP_MASK_REMOTE_QPN |
              QRDMA_QP_MASK_RECEIVE_PSN | QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC |
              QRDMA_QP_MASK_MIN_RNR_TIMER, &rtr);
    modify_ok(q, qp, QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_SEND_PSN |
              QRDMA_QP_MASK_RETRY_COUNT | QRDMA_QP_MASK_RNR_RETRY |
              QRDMA_QP_MASK_TIMEOUT | QRDMA_QP_MASK_MAX_RD_ATOMIC, &rts);
}

static void connect_umr(QRdma *q, QRdmaQp *qp)
{
    qrdma_qp_to(q, qp, QRDMA_QP_INIT);
    qrdma_qp_to(q, qp, QRDMA_QP_RTR);
    qrdma_qp_to(q, qp, QRDMA_QP_RTS);
}

void qrdma_qp_connect(QRdma *q, QRdmaQp *qp, uint32_t remote,
                      unsigned rnr_retry)
{
    if (qp->type == QRDMA_QP_UMR) {
        connect_umr(q, qp);
    } else {
        connect_rc(q, qp, remote, rnr_retry);
    }
}

/* ----------------------------------------------------------- work requests */

struct qrdma_sge qrdma_sge(uint64_t address, uint32_t length, uint32_t key)
{
    return (struct qrdma_sge) {
        .address = cpu_to_le64(address),
        .length = cpu_to_le32(length),
        .key = cpu_to_le32(key),
    };
}

static uint32_t ring_put(QRdma *q, QRdmaRing *ring, uint32_t *producer,
                         const void *wqe, size_t wqe_length,
                         const void *tail, size_t tail_length)
{
    size_t stride = (size_t)1 << ring->log_stride;
    g_autofree uint8_t *slot = g_malloc0(stride);

    g_assert_cmpuint(wqe_length + tail_length, <=, stride);
    memcpy(slot, wqe, wqe_length);
    if (tail_length) {
        memcpy(slot + wqe_length, tail, tail_length);
    }
    qtest_memwrite(q->qts, ring_slot(ring, *producer), slot, stride);
    return (*producer)++;
}

uint32_t qrdma_send_put(QRdma *q, QRdmaQp *qp, const void *wqe,
                        size_t wqe_length, const void *tail,
                        size_t tail_length)
{
    return ring_put(q, &qp->send, &qp->send_producer, wqe, wqe_length, tail,
                    tail_length);
}

void qrdma_send_ring(QRdma *q, QRdmaQp *qp)
{
    qrdma_ring_doorbell(q, qp->page, QRDMA_DOORBELL_SEND, qp->number,
                        qp->send_producer);
}

uint32_t qrdma_post(QRdma *q, QRdmaQp *qp, struct qrdma_send_wqe wqe,
                    const struct qrdma_sge *sge, unsigned count)
{
    uint32_t counter;

    wqe.flags |= QRDMA_WQE_SIGNALED;
    wqe.num_sge = cpu_to_le32(count);
    counter = qrdma_send_put(q, qp, &wqe, sizeof(wqe), sge,
                             count * sizeof(*sge));
    qrdma_send_ring(q, qp);
    return counter;
}

uint32_t qrdma_post_inline(QRdma *q, QRdmaQp *qp, struct qrdma_send_wqe wqe,
                           const void *data, uint32_t length)
{
    uint32_t counter;

    wqe.flags |= QRDMA_WQE_SIGNALED | QRDMA_WQE_INLINE;
    wqe.inline_length = cpu_to_le32(length);
    counter = qrdma_send_put(q, qp, &wqe, sizeof(wqe), data, length);
    qrdma_send_ring(q, qp);
    return counter;
}

uint32_t qrdma_post_receive(QRdma *q, QRdmaQp *qp,
                            const struct qrdma_sge *sge, unsigned count)
{
    struct qrdma_receive_wqe wqe = { .num_sge = cpu_to_le32(count) };
    uint32_t counter = ring_put(q, &qp->receive, &qp->receive_producer,
                                &wqe, sizeof(wqe), sge, count * sizeof(*sge));

    qrdma_ring_doorbell(q, qp->page, QRDMA_DOORBELL_RECEIVE, qp->number,
                        qp->receive_producer);
    return counter;
}

uint32_t qrdma_post_umr(QRdma *q, QRdmaQp *qp, struct qrdma_umr_wqe wqe,
                        const void *inline_data, size_t inline_length)
{
    uint32_t counter;

    wqe.opcode = QRDMA_SEND_OP_UMR;
    wqe.flags = QRDMA_WQE_SIGNALED;
    if (inline_length) {
        wqe.umr_flags |= cpu_to_le16(QRDMA_UMR_INLINE);
        wqe.table_length = cpu_to_le32(inline_length);
    }
    counter = qrdma_send_put(q, qp, &wqe, sizeof(wqe), inline_data,
                             inline_length);
    qrdma_send_ring(q, qp);
    return counter;
}

/* ------------------------------------------------------------------ bench */

#define BENCH_QUEUE_LOG_ENTRIES 7

static void bench_qp(QRdmaBench *bench, QRdmaQp *qp, uint32_t number,
                     enum qrdma_qp_type type, QRdmaCq *cq)
{
    *qp = (QRdmaQp) {
        .type = type,
        .number = number,
        .pd = QRDMA_TEST_PD,
        .send_cq = cq,
        .receive_cq = cq,
        .send = {
            .log_entries = BENCH_QUEUE_LOG_ENTRIES,
            .log_stride = QRDMA_SEND_WQE_LOG_MAX,
        },
    };
    if (type == QRDMA_QP_RC) {
        qp->receive = (QRdmaRing) {
            .log_entries = BENCH_QUEUE_LOG_ENTRIES,
            .log_stride = QRDMA_RECEIVE_WQE_LOG_MAX,
        };
    }
    qrdma_qp_create(bench->q, qp);
}

void qrdma_bench_build(QRdmaBench *bench, QRdma *q,
                       unsigned async_log_entries)
{
    struct qrdma_mkc local = qrdma_mkc_all_memory(QRDMA_TEST_LOCAL,
                                                  QRDMA_TEST_PD);

    memset(bench, 0, sizeof(*bench));
    bench->q = q;
    qrdma_command_ok(q, QRDMA_CMD_SET_GID, 0, &test_gid, sizeof(test_gid),
                     NULL, 0);
    qrdma_eq_create(q, &bench->async, QRDMA_ASYNC_EQN, async_log_entries, 0);
    qrdma_eq_create(q, &bench->completion, 1, 7, 1);
    qrdma_cq_create(q, &bench->cq_a, 0, 8, 1);
    qrdma_cq_create(q, &bench->cq_b, 1, 8, 1);
    qrdma_cq_create(q, &bench->cq_umr, 2, 8, 1);
    bench_qp(bench, &bench->a, 10, QRDMA_QP_RC, &bench->cq_a);
    bench_qp(bench, &bench->b, 11, QRDMA_QP_RC, &bench->cq_b);
    bench_qp(bench, &bench->umr, 12, QRDMA_QP_UMR, &bench->cq_umr);
    qrdma_qp_connect(q, &bench->a, bench->b.number, 7);
    qrdma_qp_connect(q, &bench->b, bench->a.number, 7);
    qrdma_qp_connect(q, &bench->umr, 0, 0);
    bench->local_key = qrdma_bench_mkey(bench, QRDMA_TEST_LOCAL, &local);
}

void qrdma_bench_init_with(QRdmaBench *bench, QRdma *q,
                           unsigned async_log_entries)
{
    /* The machine may be that of an earlier test, and a reset keeps these. */
    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_CLEAR);
    qrdma_write32(q, QRDMA_REG_AUDIT_CONTROL, QRDMA_AUDIT_CLEAR);
    qrdma_start(q);
    qrdma_bench_build(bench, q, async_log_entries);
}

void qrdma_bench_init(QRdmaBench *bench, QRdma *q)
{
    qrdma_bench_init_with(bench, q, BENCH_QUEUE_LOG_ENTRIES);
}

static void drain(QRdma *q, QRdmaCq *cq)
{
    struct qrdma_cqe cqe;

    qrdma_settle(q);
    while (qrdma_cq_poll(q, cq, &cqe)) {
        ;
    }
    qrdma_cq_doorbell(q, cq, QRDMA_DOORBELL_ARM_NONE);
}

void qrdma_bench_reconnect(QRdmaBench *bench)
{
    QRdma *q = bench->q;

    qrdma_qp_to(q, &bench->a, QRDMA_QP_RESET);
    qrdma_qp_to(q, &bench->b, QRDMA_QP_RESET);
    drain(q, &bench->cq_a);
    drain(q, &bench->cq_b);
    qrdma_qp_connect(q, &bench->a, bench->b.number, 7);
    qrdma_qp_connect(q, &bench->b, bench->a.number, 7);
}

void qrdma_bench_restart_umr(QRdmaBench *bench)
{
    qrdma_qp_to(bench->q, &bench->umr, QRDMA_QP_RESET);
    drain(bench->q, &bench->cq_umr);
    qrdma_qp_connect(bench->q, &bench->umr, 0, 0);
}

uint32_t qrdma_bench_mkey(QRdmaBench *bench, uint32_t index,
                          const struct qrdma_mkc *mkc)
{
    qrdma_command_ok(bench->q, QRDMA_CMD_CREATE_MKEY, index,
                     mkc, sizeof(*mkc), NULL, 0);
    return index << 8 | mkc->variant;
}

enum qrdma_status qrdma_bench_umr(QRdmaBench *bench, struct qrdma_umr_wqe wqe,
                                  const void *inline_data,
                                  size_t inline_length)
{
    struct qrdma_cqe cqe;

    qrdma_post_umr(bench->q, &bench->umr, wqe, inline_data, inline_length);
    cqe = qrdma_cq_wait(bench->q, &bench->cq_umr);
    if (cqe.status == QRDMA_CQE_SUCCESS) {
        return QRDMA_STATUS_OK;
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_UMR_ERROR);
    return le16_to_cpu(cqe.syndrome);
}

static enum qrdma_cqe_status bench_rdma(QRdmaBench *bench,
                                        enum qrdma_send_opcode opcode,
                                        uint64_t local, uint64_t remote,
                                        uint32_t rkey, uint32_t length)
{
    struct qrdma_sge sge = qrdma_sge(local, length, bench->local_key);
    struct qrdma_send_wqe wqe = {
        .opcode = opcode,
        .remote_address = cpu_to_le64(remote),
        .remote_key = cpu_to_le32(rkey),
    };

    qrdma_post(bench->q, &bench->a, wqe, &sge, 1);
    return qrdma_cq_wait(bench->q, &bench->cq_a).status;
}

enum qrdma_cqe_status qrdma_bench_read(QRdmaBench *bench, uint64_t local,
                                       uint64_t remote, uint32_t rkey,
                                       uint32_t length)
{
    return bench_rdma(bench, QRDMA_SEND_OP_READ, local, remote, rkey, length);
}

enum qrdma_cqe_status qrdma_bench_write(QRdmaBench *bench, uint64_t local,
                                        uint64_t remote, uint32_t rkey,
                                        uint32_t length)
{
    return bench_rdma(bench, QRDMA_SEND_OP_WRITE, local, remote, rkey, length);
}

void qrdma_bench_assert_works(QRdmaBench *bench, uint32_t index)
{
    const uint32_t length = 2 * QRDMA_PAGE;
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, 2 * length);
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(index, QRDMA_TEST_PD);
    uint32_t key = qrdma_bench_mkey(bench, index, &mkc);

    qrdma_write_pattern(q, memory, length, 3);
    g_assert_cmpint(qrdma_bench_write(bench, memory, memory + length, key,
                                      length), ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(q, memory + length, length, 3);
}
