/*
 * qrdma engine: queue pairs, as objects.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "engine-internal.h"
#include "queues-internal.h"
#include "state.h"

/* CQEs that one turn of a QP in error may write. */
#define FLUSHES_PER_TURN 16

static const QrdmaRingLimits send_limits = {
    .log_stride_min = QRDMA_SEND_WQE_LOG_MIN,
    .log_stride_max = QRDMA_SEND_WQE_LOG_MAX,
};

static const QrdmaRingLimits umr_limits = {
    .log_stride_min = QRDMA_UMR_WQE_LOG_SIZE,
    .log_stride_max = QRDMA_UMR_WQE_LOG_SIZE,
};

static const QrdmaRingLimits receive_limits = {
    .log_stride_min = QRDMA_RECEIVE_WQE_LOG_MIN,
    .log_stride_max = QRDMA_RECEIVE_WQE_LOG_MAX,
};

QrdmaQp *qrdma_qp_find(QrdmaEngine *engine, uint32_t number)
{
    return number < QRDMA_MAX_QPS ? engine->queues->qps[number] : NULL;
}

enum qrdma_status qrdma_qp_find_named(QrdmaEngine *engine, uint32_t number,
                                      QrdmaQp **qp)
{
    if (number < QRDMA_FIRST_QPN || number >= QRDMA_MAX_QPS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    *qp = qrdma_qp_find(engine, number);
    return *qp ? QRDMA_STATUS_OK : QRDMA_STATUS_NO_OBJECT;
}

/* ------------------------------------------------------ create and destroy */

/* Fields that a create does not take, and the card gives in a query. */
static bool untaken_are_zero(const struct qrdma_qpc *in)
{
    struct qrdma_qpc rest = *in;

    rest.type = 0;
    rest.pd = 0;
    rest.send_cqn = 0;
    rest.receive_cqn = 0;
    rest.doorbell_page = 0;
    memset(&rest.send_ring, 0, sizeof(rest.send_ring));
    memset(&rest.receive_ring, 0, sizeof(rest.receive_ring));
    return qrdma_is_zero(&rest, sizeof(rest));
}

static bool has_receive_ring(const struct qrdma_qpc *in)
{
    return !qrdma_is_zero(&in->receive_ring, sizeof(in->receive_ring));
}

/* Both are there: only then is it asked whether they take CQEs. */
static enum qrdma_status check_cqs(QrdmaEngine *engine,
                                   const struct qrdma_qpc *in)
{
    QrdmaCq *send = qrdma_cq_find(engine, qrdma_le32(in->send_cqn));
    QrdmaCq *receive = qrdma_cq_find(engine, qrdma_le32(in->receive_cqn));

    if (!send || !receive) {
        return QRDMA_STATUS_BAD_CQN;
    }
    return send->error || receive->error ? QRDMA_STATUS_BAD_STATE
                                         : QRDMA_STATUS_OK;
}

static enum qrdma_status check_create(QrdmaEngine *engine, uint32_t number,
                                      const struct qrdma_qpc *in)
{
    if (number < QRDMA_FIRST_QPN || number >= QRDMA_MAX_QPS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (qrdma_qp_find(engine, number)) {
        return QRDMA_STATUS_IN_USE;
    }
    if (!untaken_are_zero(in)) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (in->type != QRDMA_QP_RC && in->type != QRDMA_QP_UMR) {
        return QRDMA_STATUS_BAD_QP_TYPE;
    }
    if (qrdma_le32(in->pd) > QRDMA_MAX_PD) {
        return QRDMA_STATUS_BAD_PD;
    }
    if (qrdma_le32(in->doorbell_page) >= QRDMA_DOORBELL_PAGES ||
        (in->type == QRDMA_QP_UMR && in->doorbell_page)) {
        return QRDMA_STATUS_BAD_DOORBELL_PAGE;
    }
    if (in->type == QRDMA_QP_UMR && has_receive_ring(in)) {
        return QRDMA_STATUS_BAD_RING;
    }
    return check_cqs(engine, in);
}

static enum qrdma_status set_up_rings(QrdmaEngine *engine,
                                      const struct qrdma_qpc *in,
                                      QrdmaRing *send, QrdmaRing *receive)
{
    enum qrdma_status status;

    *receive = (QrdmaRing) { 0 };
    status = qrdma_ring_setup(engine, &in->send_ring,
                              in->type == QRDMA_QP_UMR ? &umr_limits
                                                       : &send_limits, send);
    if (status != QRDMA_STATUS_OK || !has_receive_ring(in)) {
        return status;
    }
    status = qrdma_ring_setup(engine, &in->receive_ring, &receive_limits,
                              receive);
    if (status != QRDMA_STATUS_OK) {
        qrdma_ring_release(engine, send);
    }
    return status;
}

static void attach_queue(QrdmaQp *qp, QrdmaWorkQueue *queue, QrdmaCq *cq)
{
    queue->cq = cq;
    queue->cq_link.data = qp;
    g_queue_push_tail_link(&cq->work_queues, &queue->cq_link);
}

static void detach_queue(QrdmaEngine *engine, QrdmaWorkQueue *queue)
{
    g_queue_unlink(&queue->cq->work_queues, &queue->cq_link);
    qrdma_ring_release(engine, &queue->ring);
}

/* Without its rings. CQs and EQ 0 are there. */
static QrdmaQp *new_qp(QrdmaEngine *engine, uint32_t number,
                       const struct qrdma_qpc *in)
{
    QrdmaQp *qp = g_new0(QrdmaQp, 1);

    qp->number = number;
    qp->type = in->type;
    qp->state = QRDMA_QP_RESET;
    qp->pd = qrdma_le32(in->pd);
    qp->doorbell_page = qrdma_le32(in->doorbell_page);
    qp->ready_link.data = qp;
    attach_queue(qp, &qp->send,
                 qrdma_cq_find(engine, qrdma_le32(in->send_cqn)));
    attach_queue(qp, &qp->receive,
                 qrdma_cq_find(engine, qrdma_le32(in->receive_cqn)));
    engine->queues->eqs[QRDMA_ASYNC_EQN]->users++;
    engine->queues->qps[number] = qp;
    engine->queues->num_qps++;
    return qp;
}

enum qrdma_status qrdma_cmd_create_qp(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_qpc *in = call->input;
    enum qrdma_status status = check_create(engine, call->number, in);
    QrdmaRing send, receive;
    QrdmaQp *qp;

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    status = set_up_rings(engine, in, &send, &receive);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    qp = new_qp(engine, call->number, in);
    qp->send.ring = send;
    qp->receive.ring = receive;
    return QRDMA_STATUS_OK;
}

void qrdma_qp_free(QrdmaEngine *engine, QrdmaQp *qp)
{
    qrdma_qp_drop_work(engine, qp);
    qrdma_event_cancel(&qp->bad_doorbell);
    detach_queue(engine, &qp->send);
    detach_queue(engine, &qp->receive);
    engine->queues->eqs[QRDMA_ASYNC_EQN]->users--;
    engine->queues->qps[qp->number] = NULL;
    engine->queues->num_qps--;
    g_free(qp);
}

/*
 * Nothing of the QP's happens after the command: no DMA, no CQE, no event. What
 * is in the CQ and the EQ already stays there; a driver that wants to use the
 * number again reads the EQ empty first, since events carry no more than the
 * number.
 */
enum qrdma_status qrdma_cmd_destroy_qp(QrdmaEngine *engine,
                                       const QrdmaCommandCall *call)
{
    QrdmaQp *qp;
    enum qrdma_status status = qrdma_qp_find_named(engine, call->number, &qp);

    if (status == QRDMA_STATUS_OK) {
        qrdma_qp_free(engine, qp);
    }
    return status;
}

/* ------------------------------------------------------------------- query */

static void encode_attributes(const QrdmaQpAttributes *attributes,
                              struct qrdma_qpc *out)
{
    out->flags = qrdma_le32(attributes->flags);
    out->remote_qpn = qrdma_le32(attributes->remote_qpn);
    out->send_psn = qrdma_le32(attributes->send_psn);
    out->receive_psn = qrdma_le32(attributes->receive_psn);
    out->flow_label = qrdma_le32(attributes->flow_label);
    out->path_mtu = attributes->path_mtu;
    out->sgid_index = attributes->sgid_index;
    out->retry_count = attributes->retry_count;
    out->rnr_retry = attributes->rnr_retry;
    out->min_rnr_timer = attributes->min_rnr_timer;
    out->timeout = attributes->timeout;
    out->max_rd_atomic = attributes->max_rd_atomic;
    out->max_dest_rd_atomic = attributes->max_dest_rd_atomic;
    out->traffic_class = attributes->traffic_class;
    out->hop_limit = attributes->hop_limit;
    memcpy(out->dgid, attributes->dgid, sizeof(out->dgid));
    memcpy(out->dmac, attributes->dmac, sizeof(out->dmac));
}

enum qrdma_status qrdma_cmd_query_qp(QrdmaEngine *engine,
                                     const QrdmaCommandCall *call)
{
    struct qrdma_qpc *out = call->output;
    QrdmaQp *qp;
    enum qrdma_status status = qrdma_qp_find_named(engine, call->number, &qp);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    encode_attributes(&qp->attributes, out);
    if (qp->wait == QRDMA_WAIT_FAULT) {
        out->flags |= qrdma_le32(QRDMA_QP_SUSPENDED);
    }
    out->type = qp->type;
    out->state = qp->state;
    out->pd = qrdma_le32(qp->pd);
    out->doorbell_page = qrdma_le32(qp->doorbell_page);
    out->send_cqn = qrdma_le32(qp->send.cq->number);
    out->receive_cqn = qrdma_le32(qp->receive.cq->number);
    qrdma_ring_describe(&qp->send.ring, &out->send_ring);
    qrdma_ring_describe(&qp->receive.ring, &out->receive_ring);
    out->send_producer = qrdma_le32(qp->send.producer);
    out->send_consumer = qrdma_le32(qp->send.consumer);
    out->receive_producer = qrdma_le32(qp->receive.producer);
    out->receive_consumer = qrdma_le32(qp->receive.consumer);
    return QRDMA_STATUS_OK;
}

/* ---------------------------------------------------------------- in error */

void qrdma_qp_complete(QrdmaEngine *engine, QrdmaQp *qp, QrdmaWorkQueue *queue,
                       struct qrdma_cqe *cqe)
{
    cqe->qpn = qrdma_le32(qp->number);
    cqe->wqe_counter = qrdma_le32(queue->consumer);
    queue->consumer++;
    qrdma_cq_post(engine, queue->cq, cqe, qp->umr_index);
}

static void flush_queue(QrdmaEngine *engine, QrdmaQp *qp,
                        QrdmaWorkQueue *queue, enum qrdma_cqe_opcode opcode)
{
    for (unsigned i = 0; i < FLUSHES_PER_TURN; i++) {
        struct qrdma_cqe cqe = {
            .opcode = opcode,
            .status = QRDMA_CQE_FLUSHED,
        };

        if (queue->consumer == queue->producer ||
            !qrdma_engine_running(engine)) {
            return;
        }
        if (qp->type == QRDMA_QP_UMR) {
            engine->counters.umr_flushed++;
        }
        qrdma_qp_complete(engine, qp, queue, &cqe);
    }
}

bool qrdma_qp_flush_turn(QrdmaEngine *engine, QrdmaQp *qp)
{
    flush_queue(engine, qp, &qp->send,
                qp->type == QRDMA_QP_UMR ? QRDMA_CQE_OP_UMR
                                         : QRDMA_CQE_OP_SEND);
    flush_queue(engine, qp, &qp->receive, QRDMA_CQE_OP_RECV);
    return qp->send.consumer != qp->send.producer ||
           qp->receive.consumer != qp->receive.producer;
}

/* ------------------------------------------------------------- saved state */

static void state_attributes(QrdmaStream *stream,
                             QrdmaQpAttributes *attributes)
{
    qrdma_stream_u32(stream, "flags", &attributes->flags, 0, UINT32_MAX);
    qrdma_stream_check(stream, !(attributes->flags & ~QRDMA_QP_REMOTE_FLAGS),
                       "flags", "0x%x has unknown bits", attributes->flags);
    qrdma_stream_u32(stream, "remote_qpn", &attributes->remote_qpn, 0,
                     QRDMA_QPN_MASK);
    qrdma_stream_u32(stream, "send_psn", &attributes->send_psn, 0,
                     QRDMA_PSN_MASK);
    qrdma_stream_u32(stream, "receive_psn", &attributes->receive_psn, 0,
                     QRDMA_PSN_MASK);
    qrdma_stream_u32(stream, "flow_label", &attributes->flow_label, 0,
                     QRDMA_FLOW_LABEL_MASK);
    qrdma_stream_u8(stream, "path_mtu", &attributes->path_mtu, 0,
                    QRDMA_MAX_PATH_MTU);
    qrdma_stream_u8(stream, "sgid_index", &attributes->sgid_index, 0,
                    UINT8_MAX);
    qrdma_stream_u8(stream, "retry_count", &attributes->retry_count, 0, 7);
    qrdma_stream_u8(stream, "rnr_retry", &attributes->rnr_retry, 0, 7);
    qrdma_stream_u8(stream, "min_rnr_timer", &attributes->min_rnr_timer, 0, 31);
    qrdma_stream_u8(stream, "timeout", &attributes->timeout, 0, 31);
    qrdma_stream_u8(stream, "max_rd_atomic", &attributes->max_rd_atomic, 0,
                    QRDMA_MAX_RD_ATOMIC);
    qrdma_stream_u8(stream, "max_dest_rd_atomic",
                    &attributes->max_dest_rd_atomic, 0, QRDMA_MAX_RD_ATOMIC);
    qrdma_stream_bytes(stream, "dgid", attributes->dgid,
                       sizeof(attributes->dgid));
    qrdma_stream_bytes(stream, "dmac", attributes->dmac,
                       sizeof(attributes->dmac));
    qrdma_stream_u8(stream, "traffic_class", &attributes->traffic_class, 0,
                    UINT8_MAX);
    qrdma_stream_u8(stream, "hop_limit", &attributes->hop_limit, 0, UINT8_MAX);
}

static void state_queue(QrdmaStream *stream, QrdmaEngine *engine,
                        const char *name, const QrdmaRingLimits *limits,
                        bool optional, QrdmaWorkQueue *queue)
{
    qrdma_stream_enter(stream, name);
    qrdma_state_ring(stream, engine, "ring", limits, optional, &queue->ring);
    qrdma_state_counters(stream, &queue->ring, &queue->producer,
                         &queue->consumer, false);
    qrdma_stream_bool(stream, "doorbell_reported", &queue->doorbell_reported);
    qrdma_stream_leave(stream);
}

/* What CREATE_QP takes, but for the rings. NULL: it would refuse it. */
static QrdmaQp *state_identity(QrdmaStream *stream, QrdmaEngine *engine,
                               uint32_t number, QrdmaQp *qp)
{
    struct qrdma_qpc in = { 0 };
    enum qrdma_status status;

    if (qp) {
        in.type = qp->type;
        in.pd = qrdma_le32(qp->pd);
        in.doorbell_page = qrdma_le32(qp->doorbell_page);
        in.send_cqn = qrdma_le32(qp->send.cq->number);
        in.receive_cqn = qrdma_le32(qp->receive.cq->number);
    }
    qrdma_stream_u8(stream, "type", &in.type, 0, UINT8_MAX);
    qrdma_stream_bytes(stream, "pd", &in.pd, sizeof(in.pd));
    qrdma_stream_bytes(stream, "doorbell_page", &in.doorbell_page,
                       sizeof(in.doorbell_page));
    qrdma_stream_bytes(stream, "send_cqn", &in.send_cqn, sizeof(in.send_cqn));
    qrdma_stream_bytes(stream, "receive_cqn", &in.receive_cqn,
                       sizeof(in.receive_cqn));
    if (qp) {
        return qp;
    }
    /* A CQ in error has QPs, if none that work. */
    status = check_create(engine, number, &in);
    if (!qrdma_stream_check(stream, status == QRDMA_STATUS_OK ||
                            status == QRDMA_STATUS_BAD_STATE, NULL,
                            "CREATE_QP would refuse it: status %d", status)) {
        return NULL;
    }
    return qrdma_stream_is_good(stream) ? new_qp(engine, number, &in) : NULL;
}

static void state_qp(QrdmaStream *stream, QrdmaEngine *engine, QrdmaQp *qp)
{
    bool is_umr = qp->type == QRDMA_QP_UMR;

    qrdma_stream_enum(stream, "state", &qp->state, QRDMA_QP_RESET,
                      QRDMA_QP_ERROR);
    qrdma_stream_check(stream, qp->state == QRDMA_QP_RESET ||
                       qp->state == QRDMA_QP_ERROR ||
                       (!qp->send.cq->error && !qp->receive.cq->error),
                       "state", "%d, and its CQ takes no CQEs", qp->state);
    state_queue(stream, engine, "send", is_umr ? &umr_limits : &send_limits,
                false, &qp->send);
    state_queue(stream, engine, "receive", &receive_limits, true,
                &qp->receive);
    qrdma_stream_check(stream, !is_umr || !qp->receive.ring.entries,
                       "receive.ring", "a UMR queue has none");
    state_attributes(stream, &qp->attributes);
    qrdma_stream_bool(stream, "established", &qp->established);
}

/* The first one after `number`; NULL: there is none. */
static QrdmaQp *next_qp(QrdmaEngine *engine, uint32_t number)
{
    while (++number < QRDMA_MAX_QPS) {
        if (engine->queues->qps[number]) {
            return engine->queues->qps[number];
        }
    }
    return NULL;
}

void qrdma_state_qps(QrdmaStream *stream, QrdmaEngine *engine)
{
    uint32_t count = engine->queues->num_qps;
    uint32_t number = 0;

    qrdma_stream_section(stream, "qps ", 1);
    qrdma_stream_count(stream, "qps", &count, QRDMA_MAX_QPS, sizeof(number));
    for (uint32_t i = 0; i < count; i++) {
        QrdmaQp *qp = qrdma_stream_is_loading(stream)
                      ? NULL : next_qp(engine, number);

        number = qp ? qp->number : number;
        if (!qrdma_stream_next(stream, "qp.number", &number, QRDMA_FIRST_QPN,
                               QRDMA_MAX_QPS - 1)) {
            return;
        }
        qrdma_stream_enter_item(stream, "qp", number);
        qp = state_identity(stream, engine, number, qp);
        if (qp) {
            state_qp(stream, engine, qp);
        }
        qrdma_stream_leave(stream);
    }
}
