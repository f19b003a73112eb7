/*
 * qrdma engine: the responder of a reliable connection.
 *
 * Both ends are in this card, so the requester asks the responder directly.
 * What it is told is what the wire would tell it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"


/* Receiver-not-ready timer codes, in units of 10 microseconds. */
static const uint32_t rnr_delays[] = {
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
    512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
    32768, 49152,
};

uint64_t qrdma_rnr_delay(uint8_t code)
{
    return rnr_delays[code % G_N_ELEMENTS(rnr_delays)] * 10000ull;
}

/* ------------------------------------------------------------------ events */

uint8_t qrdma_access_event_flags(const QrdmaSide *side)
{
    uint8_t flags = 0;

    if (side->request.kind != QRDMA_LOCAL_READ &&
        side->request.kind != QRDMA_REMOTE_READ) {
        flags |= QRDMA_EVENT_FLAG_WRITE;
    }
    if (side->kind != QRDMA_SIDE_LOCAL) {
        flags |= QRDMA_EVENT_FLAG_RESPONDER;
    }
    if (side->kind == QRDMA_SIDE_REMOTE) {
        flags |= QRDMA_EVENT_FLAG_REMOTE;
    }
    return flags;
}

void qrdma_access_event(QrdmaEngine *engine, const QrdmaSide *side,
                        enum qrdma_access_error error)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(side->qp->number),
        .key = qrdma_le32(side->request.key),
        .address = qrdma_le64(side->request.address),
        .length = qrdma_le32(side->request.length),
        .type = QRDMA_EVENT_QP_ACCESS_ERROR,
        .flags = qrdma_access_event_flags(side),
        .syndrome = qrdma_le16(error),
    };

    qrdma_event_post(engine, &event);
}

/* ----------------------------------------------------------- receive queue */

static void complete_receive_in_error(QrdmaEngine *engine, QrdmaQp *responder,
                                      struct qrdma_cqe *cqe)
{
    cqe->opcode = QRDMA_CQE_OP_RECV;
    responder->incoming.has_receive = false;
    qrdma_qp_complete(engine, responder, &responder->receive, cqe);
    qrdma_qp_to_error(engine, responder);
}

/* Take the receive WQE at the head; it completes later. */
static QrdmaAnswer take_receive(QrdmaEngine *engine, QrdmaQp *responder)
{
    QrdmaWorkQueue *queue = &responder->receive;
    uint8_t slot[QRDMA_MAX_RECEIVE_WQE];
    enum qrdma_wqe_error error;

    if (queue->consumer == queue->producer) {
        return QRDMA_ANSWER_NOT_READY;
    }
    if (!qrdma_ring_read(engine, &queue->ring, queue->consumer, slot)) {
        qrdma_qp_fail(engine, responder, QRDMA_QUEUE_ERROR_DMA);
        return QRDMA_ANSWER_OPERATION_ERROR;
    }
    error = qrdma_wqe_parse_receive(slot, 1u << queue->ring.log_stride,
                                    &responder->incoming.receive);
    if (error != QRDMA_WQE_OK) {
        struct qrdma_cqe cqe = {
            .status = QRDMA_CQE_LOCAL_QP_OPERATION_ERROR,
            .syndrome = qrdma_le16(error),
        };

        complete_receive_in_error(engine, responder, &cqe);
        return QRDMA_ANSWER_OPERATION_ERROR;
    }
    responder->incoming.has_receive = true;
    return QRDMA_ANSWER_OK;
}

/* ------------------------------------------------------------------- begin */

QrdmaQp *qrdma_respond_find(QrdmaEngine *engine, QrdmaQp *requester)
{
    QrdmaQp *qp = qrdma_qp_find(engine, requester->attributes.remote_qpn);

    if (!qrdma_gid_is_local(engine, requester->attributes.dgid) || !qp ||
        qp->type != QRDMA_QP_RC ||
        qp->attributes.remote_qpn != requester->number) {
        return NULL;
    }
    switch (qp->state) {
    case QRDMA_QP_RTR:
    case QRDMA_QP_RTS:
    case QRDMA_QP_SQD:
        return qp;
    default:
        return NULL;
    }
}

/* Whether this QP takes such requests at all. */
static bool takes_request(const QrdmaQp *responder,
                          const QrdmaSendRequest *request)
{
    const QrdmaQpAttributes *attributes = &responder->attributes;

    switch (request->opcode) {
    case QRDMA_SEND_OP_WRITE:
    case QRDMA_SEND_OP_WRITE_IMM:
        return attributes->flags & QRDMA_QP_REMOTE_WRITE;
    case QRDMA_SEND_OP_READ:
        return (attributes->flags & QRDMA_QP_REMOTE_READ) &&
               attributes->max_dest_rd_atomic;
    case QRDMA_SEND_OP_COMPARE_SWAP:
    case QRDMA_SEND_OP_FETCH_ADD:
        return (attributes->flags & QRDMA_QP_REMOTE_ATOMIC) &&
               attributes->max_dest_rd_atomic;
    default:
        return true;
    }
}

/* A send needs its buffer before its first byte comes. */
static QrdmaAnswer begin_receive(QrdmaEngine *engine, QrdmaQp *responder,
                                 const QrdmaSendRequest *request)
{
    QrdmaAnswer answer = take_receive(engine, responder);

    if (answer == QRDMA_ANSWER_OK &&
        request->length > responder->incoming.receive.length) {
        struct qrdma_cqe cqe = {
            .status = QRDMA_CQE_LOCAL_LENGTH_ERROR,
        };

        complete_receive_in_error(engine, responder, &cqe);
        return QRDMA_ANSWER_INVALID_REQUEST;
    }
    return answer;
}

/* A driver that still waits for the other side's "ready" hears of it so. */
static void announce(QrdmaEngine *engine, QrdmaQp *responder)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(responder->number),
        .type = QRDMA_EVENT_COMMUNICATION,
    };

    if (responder->state == QRDMA_QP_RTR && !responder->established) {
        responder->established = true;
        qrdma_event_post(engine, &event);
    }
}

QrdmaAnswer qrdma_respond_begin(QrdmaEngine *engine, QrdmaQp *responder,
                                QrdmaQp *requester)
{
    const QrdmaSendRequest *request = &requester->outgoing.request;
    QrdmaAnswer answer = QRDMA_ANSWER_OK;

    /* Out of sequence, and so dropped: the two ends do not belong together. */
    if (responder->attributes.receive_psn != requester->attributes.send_psn ||
        responder->incoming.active) {
        return QRDMA_ANSWER_NONE;
    }
    if (!takes_request(responder, request)) {
        qrdma_qp_fail(engine, responder, QRDMA_QUEUE_ERROR_REQUEST);
        return QRDMA_ANSWER_INVALID_REQUEST;
    }
    responder->incoming.has_receive = false;
    if (qrdma_wqe_is_send(request)) {
        answer = begin_receive(engine, responder, request);
    }
    if (answer == QRDMA_ANSWER_OK) {
        responder->incoming.active = true;
        responder->incoming.requester = requester;
        responder->incoming.cursor = (QrdmaCursor) { 0 };
        announce(engine, responder);
    }
    return answer;
}

/* --------------------------------------------------------------------- end */

static void complete_receive(QrdmaEngine *engine, QrdmaQp *responder,
                             const QrdmaQp *requester)
{
    const QrdmaSendRequest *request = &requester->outgoing.request;
    bool immediate = qrdma_wqe_has_immediate(request);
    struct qrdma_cqe cqe = {
        .byte_length = qrdma_le32(request->length),
        .immediate = immediate ? request->immediate : 0,
        .remote_qpn = qrdma_le32(requester->number),
        .opcode = qrdma_wqe_is_send(request) ? QRDMA_CQE_OP_RECV
                                             : QRDMA_CQE_OP_RECV_WRITE_IMM,
        .status = QRDMA_CQE_SUCCESS,
        .flags = (immediate ? QRDMA_CQE_FLAG_IMMEDIATE : 0) |
                 (request->flags & QRDMA_WQE_SOLICITED ?
                  QRDMA_CQE_FLAG_SOLICITED : 0),
    };

    engine->counters.receive_messages++;
    engine->counters.receive_bytes += request->length;
    qrdma_qp_complete(engine, responder, &responder->receive, &cqe);
}

QrdmaAnswer qrdma_respond_end(QrdmaEngine *engine, QrdmaQp *responder,
                              QrdmaQp *requester)
{
    QrdmaIncoming *incoming = &responder->incoming;

    /* A write with immediate takes its receive WQE only now. */
    if (requester->outgoing.request.opcode == QRDMA_SEND_OP_WRITE_IMM) {
        QrdmaAnswer answer = take_receive(engine, responder);

        if (answer != QRDMA_ANSWER_OK) {
            return answer;
        }
    }
    responder->attributes.receive_psn =
        (responder->attributes.receive_psn + qrdma_send_packets(requester)) &
        QRDMA_PSN_MASK;
    incoming->active = false;
    incoming->requester = NULL;
    requester->outgoing.responder = NULL;
    if (incoming->has_receive) {
        incoming->has_receive = false;
        complete_receive(engine, responder, requester);
    }
    /* A CQ that overran has taken its QPs along. */
    return responder->state == QRDMA_QP_ERROR ? QRDMA_ANSWER_OPERATION_ERROR
                                              : QRDMA_ANSWER_OK;
}

QrdmaAnswer qrdma_respond_access_failed(QrdmaEngine *engine,
                                        const QrdmaSide *side,
                                        enum qrdma_access_error error)
{
    QrdmaQp *responder = side->qp;

    if (side->kind == QRDMA_SIDE_RECEIVE) {
        struct qrdma_cqe cqe = {
            .key = qrdma_le32(side->request.key),
            .address = qrdma_le64(side->request.address),
            .status = QRDMA_CQE_LOCAL_ACCESS_ERROR,
            .syndrome = qrdma_le16(error),
        };

        complete_receive_in_error(engine, responder, &cqe);
        qrdma_access_event(engine, side, error);
        return QRDMA_ANSWER_OPERATION_ERROR;
    }
    qrdma_qp_to_error(engine, responder);
    qrdma_access_event(engine, side, error);
    return QRDMA_ANSWER_ACCESS_ERROR;
}
