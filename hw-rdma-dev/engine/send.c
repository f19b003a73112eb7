/*
 * qrdma engine: the requester of a reliable connection.
 *
 * A queue has one message in work and one packet of it in flight. Each packet
 * is translated anew, so that a change of a mkey takes effect in the middle of
 * a message; without a packet latency, a packet is what is moved in one turn.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"

#define FOR_EVER 7
#define NANOSECONDS 1000000000ull       /* a second */

/*
 * A timeout of 0 is "none": the sender waits for ever. It looks again as often
 * as with this value, so that it notices when the other end comes up.
 */
#define NO_TIMEOUT_POLL 14

static uint32_t path_mtu(const QrdmaQp *qp)
{
    return 128u << qp->attributes.path_mtu;
}

uint32_t qrdma_send_packets(const QrdmaQp *requester)
{
    uint64_t length = requester->outgoing.request.length;
    uint32_t mtu = path_mtu(requester);

    return length ? (length + mtu - 1) / mtu : 1;
}

/* Packets are in flight for a while, so each is one of the wire's. */
static bool takes_time(const QrdmaEngine *engine)
{
    return engine->config.packet_latency || engine->config.bandwidth;
}

/* Nanoseconds that a packet is in flight; length is at most a path MTU. */
static uint64_t packet_time(const QrdmaEngine *engine, uint32_t length)
{
    uint64_t bandwidth = engine->config.bandwidth;
    uint64_t time = engine->config.packet_latency;

    if (bandwidth) {
        time += (length * NANOSECONDS + bandwidth - 1) / bandwidth;
    }
    return time;
}

/* ---------------------------------------------------------- packet's sides */

static void end_access(QrdmaEngine *engine, QrdmaSide *side)
{
    if (side->held) {
        side->held = false;
        qrdma_access_end(engine, &side->access);
    }
}

void qrdma_send_drop_packet(QrdmaEngine *engine, QrdmaQp *qp)
{
    end_access(engine, &qp->packet.source);
    end_access(engine, &qp->packet.destination);
}

/* ------------------------------------------------------------- completions */

static void finish(QrdmaEngine *engine, QrdmaQp *qp)
{
    const QrdmaSendRequest *request = &qp->outgoing.request;
    struct qrdma_cqe cqe = {
        .byte_length = qrdma_le32(request->length),
        .opcode = qrdma_wqe_cqe_opcode(request->opcode),
        .status = QRDMA_CQE_SUCCESS,
    };

    qp->outgoing.active = false;
    if (request->flags & QRDMA_WQE_SIGNALED) {
        qrdma_qp_complete(engine, qp, &qp->send, &cqe);
    } else {
        qp->send.consumer++;
    }
}

/* The WQE in work, at the head of the queue, fails, and with it the QP. */
static void fail(QrdmaEngine *engine, QrdmaQp *qp,
                 enum qrdma_cqe_status status, uint16_t syndrome, uint32_t key,
                 uint64_t address)
{
    struct qrdma_cqe cqe = {
        .key = qrdma_le32(key),
        .address = qrdma_le64(address),
        .opcode = qrdma_wqe_cqe_opcode(qp->outgoing.request.opcode),
        .status = status,
        .syndrome = qrdma_le16(syndrome),
    };

    qrdma_qp_complete(engine, qp, &qp->send, &cqe);
    qrdma_qp_to_error(engine, qp);
}

/* ----------------------------------------------------------------- answers */

static void wait_to_retry(QrdmaEngine *engine, QrdmaQp *qp, uint64_t delay)
{
    qp->wait = QRDMA_WAIT_RETRY;
    qrdma_qp_set_deadline(engine, qp, delay);
}

/* Nothing comes back: each wait is one acknowledge timeout. */
static void no_answer(QrdmaEngine *engine, QrdmaQp *qp)
{
    uint8_t timeout = qp->attributes.timeout;

    if (!timeout) {
        timeout = NO_TIMEOUT_POLL;
    } else if (qp->timeouts > qp->attributes.retry_count) {
        fail(engine, qp, QRDMA_CQE_RETRY_EXCEEDED, 0, 0, 0);
        return;
    } else {
        qp->timeouts++;
    }
    wait_to_retry(engine, qp, 4096ull << timeout);
}

static void receiver_not_ready(QrdmaEngine *engine, QrdmaQp *qp,
                               const QrdmaQp *responder)
{
    if (qp->attributes.rnr_retry != FOR_EVER) {
        if (qp->rnr_retries >= qp->attributes.rnr_retry) {
            fail(engine, qp, QRDMA_CQE_RNR_RETRY_EXCEEDED, 0, 0, 0);
            return;
        }
        qp->rnr_retries++;
    }
    engine->counters.rnr_retries++;
    wait_to_retry(engine, qp,
                  qrdma_rnr_delay(responder->attributes.min_rnr_timer));
}

/* What the responder said, other than yes. */
static void take_answer(QrdmaEngine *engine, QrdmaQp *qp, QrdmaAnswer answer,
                        const QrdmaQp *responder)
{
    const QrdmaSendRequest *request = &qp->outgoing.request;

    switch (answer) {
    case QRDMA_ANSWER_OK:
        break;
    case QRDMA_ANSWER_NONE:
        no_answer(engine, qp);
        break;
    case QRDMA_ANSWER_NOT_READY:
        receiver_not_ready(engine, qp, responder);
        break;
    case QRDMA_ANSWER_INVALID_REQUEST:
        fail(engine, qp, QRDMA_CQE_REMOTE_INVALID_REQUEST, 0, 0, 0);
        break;
    case QRDMA_ANSWER_ACCESS_ERROR:
        fail(engine, qp, QRDMA_CQE_REMOTE_ACCESS_ERROR, 0, request->remote_key,
             request->remote_address);
        break;
    case QRDMA_ANSWER_OPERATION_ERROR:
        fail(engine, qp, QRDMA_CQE_REMOTE_OPERATION_ERROR, 0, 0, 0);
        break;
    }
}

/* --------------------------------------------------------- failed accesses */

static void access_failed(QrdmaEngine *engine, QrdmaQp *qp,
                          const QrdmaSide *failed,
                          enum qrdma_access_error error)
{
    QrdmaSide side = *failed;

    if (side.kind == QRDMA_SIDE_LOCAL) {
        fail(engine, qp, QRDMA_CQE_LOCAL_PROTECTION_ERROR, error,
             side.request.key, side.request.address);
        qrdma_access_event(engine, &side, error);
    } else {
        take_answer(engine, qp,
                    qrdma_respond_access_failed(engine, &side, error),
                    side.qp);
    }
}

/*
 * The page is absent now and may come: the sender stops here until the driver
 * says how it went. Tokens are never 0 and differ, so that a late answer to an
 * earlier fault is known for what it is.
 */
static void suspend(QrdmaEngine *engine, QrdmaQp *qp, const QrdmaSide *side)
{
    QrdmaQueues *queues = engine->queues;
    struct qrdma_eqe event = {
        .number = qrdma_le32(qp->number),
        .key = qrdma_le32(side->request.key),
        .address = qrdma_le64(side->request.address),
        .length = qrdma_le32(side->request.length),
        .type = QRDMA_EVENT_PAGE_FAULT,
        .flags = qrdma_access_event_flags(side) & ~QRDMA_EVENT_FLAG_RESPONDER,
    };

    if (++queues->last_token == 0) {
        queues->last_token = 1;
    }
    qp->wait = QRDMA_WAIT_FAULT;
    qp->fault_token = queues->last_token;
    qp->fault_side = *side;
    event.token = qrdma_le32(qp->fault_token);
    engine->counters.page_faults++;
    qrdma_trace(engine, "page_fault",
                "qp %u token 0x%x key 0x%08x address 0x%" PRIx64
                " length %" PRIu64, qp->number, qp->fault_token,
                side->request.key, side->request.address,
                side->request.length);
    qrdma_event_pend(engine, qrdma_eq_find(engine, QRDMA_ASYNC_EQN),
                     &qp->page_fault, &event, false);
}

void qrdma_send_resume(QrdmaEngine *engine, QrdmaQp *qp, bool failed)
{
    if (failed) {
        engine->counters.access_refused++;
        access_failed(engine, qp, &qp->fault_side, QRDMA_ACCESS_UNRESOLVED);
    } else {
        qrdma_qp_ready(engine, qp);
    }
}

/* ---------------------------------------------------------- packet departs */

static void set_side(QrdmaSide *side, QrdmaSideKind kind, QrdmaQp *qp,
                     QrdmaAccessKind access, uint32_t key, uint64_t address,
                     uint64_t length)
{
    *side = (QrdmaSide) {
        .kind = kind,
        .qp = qp,
        .request = {
            .key = key,
            .pd = qp->pd,
            .qpn = qp->number,
            .kind = access,
            .address = address,
            .length = length,
        },
    };
}

/* Lengths were checked: there is a segment while there is data left. */
static void set_segment_side(QrdmaSide *side, QrdmaSideKind kind, QrdmaQp *qp,
                             QrdmaAccessKind access,
                             const QrdmaSegments *segments,
                             QrdmaCursor *cursor, uint64_t left)
{
    uint32_t rest;
    const QrdmaSegment *segment = qrdma_cursor_segment(cursor, segments, &rest);

    g_assert(segment);
    set_side(side, kind, qp, access, segment->key,
             segment->address + cursor->offset, MIN(rest, left));
}

static void set_remote_side(QrdmaSide *side, const QrdmaOutgoing *outgoing,
                            QrdmaAccessKind access, uint64_t left)
{
    set_side(side, QRDMA_SIDE_REMOTE, outgoing->responder, access,
             outgoing->request.remote_key,
             outgoing->request.remote_address + outgoing->done, left);
}

static void set_local_side(QrdmaSide *side, QrdmaQp *qp,
                           QrdmaAccessKind access, uint64_t left)
{
    set_segment_side(side, QRDMA_SIDE_LOCAL, qp, access,
                     &qp->outgoing.request.segments, &qp->outgoing.cursor,
                     left);
}

static void set_outbound_source(QrdmaQp *qp, uint64_t left)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;

    if (outgoing->request.flags & QRDMA_WQE_INLINE) {
        qp->packet.inline_data = outgoing->request.inline_data +
                                 outgoing->done;
    } else {
        set_local_side(&qp->packet.source, qp, QRDMA_LOCAL_READ, left);
    }
}

void qrdma_send_set_sides(QrdmaQp *qp)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;
    uint64_t left = outgoing->request.length - outgoing->done;
    QrdmaPacket *packet = &qp->packet;
    QrdmaIncoming *incoming = &outgoing->responder->incoming;

    switch (outgoing->request.opcode) {
    case QRDMA_SEND_OP_SEND:
    case QRDMA_SEND_OP_SEND_IMM:
        set_outbound_source(qp, left);
        set_segment_side(&packet->destination, QRDMA_SIDE_RECEIVE,
                         outgoing->responder, QRDMA_LOCAL_WRITE,
                         &incoming->receive.segments, &incoming->cursor, left);
        break;
    case QRDMA_SEND_OP_WRITE:
    case QRDMA_SEND_OP_WRITE_IMM:
        set_outbound_source(qp, left);
        set_remote_side(&packet->destination, outgoing, QRDMA_REMOTE_WRITE,
                        left);
        break;
    case QRDMA_SEND_OP_READ:
        set_remote_side(&packet->source, outgoing, QRDMA_REMOTE_READ, left);
        set_local_side(&packet->destination, qp, QRDMA_LOCAL_WRITE, left);
        break;
    case QRDMA_SEND_OP_COMPARE_SWAP:
    case QRDMA_SEND_OP_FETCH_ADD:
        packet->is_atomic = !outgoing->atomic_done;
        if (packet->is_atomic) {
            set_remote_side(&packet->destination, outgoing,
                            QRDMA_REMOTE_ATOMIC, left);
        } else {
            packet->inline_data = outgoing->result + outgoing->done;
            set_local_side(&packet->destination, qp, QRDMA_LOCAL_WRITE, left);
        }
        break;
    case QRDMA_SEND_OP_NOP:
    case QRDMA_SEND_OP_UMR:
        g_assert_not_reached();
    }
}

/* Translate one side. False: the QP has been suspended, or has failed. */
static bool begin_access(QrdmaEngine *engine, QrdmaQp *qp, QrdmaSide *side)
{
    if (side->kind == QRDMA_SIDE_NONE) {
        return true;
    }
    switch (qrdma_access_begin(engine, &side->request, &side->access)) {
    case QRDMA_ACCESS_GRANTED:
        side->held = true;
        qp->packet.length = MIN(qp->packet.length, side->access.length);
        return true;
    case QRDMA_ACCESS_FAULT:
        qrdma_send_drop_packet(engine, qp);
        suspend(engine, qp, side);
        return false;
    case QRDMA_ACCESS_REFUSED:
        qrdma_send_drop_packet(engine, qp);
        access_failed(engine, qp, side, side->access.error);
        return false;
    }
    g_assert_not_reached();
}

/* Put the next packet together and translate it. False: it does not go. */
static bool depart(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaPacket *packet = &qp->packet;
    uint64_t left = qp->outgoing.request.length - qp->outgoing.done;
    uint32_t most = takes_time(engine) ? path_mtu(qp) : QRDMA_BYTES_PER_TURN;

    *packet = (QrdmaPacket) { .length = MIN(left, most) };
    if (!left) {
        return true;
    }
    qrdma_send_set_sides(qp);
    return begin_access(engine, qp, &packet->source) &&
           begin_access(engine, qp, &packet->destination);
}

/* ---------------------------------------------------------- packet arrives */

static void advance(QrdmaQp *qp, const QrdmaPacket *packet)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;

    outgoing->moved = true;
    qp->rnr_retries = 0;
    qp->timeouts = 0;
    if (packet->is_atomic) {
        outgoing->atomic_done = true;
        return;
    }
    outgoing->done += packet->length;
    if (packet->source.kind == QRDMA_SIDE_LOCAL ||
        packet->destination.kind == QRDMA_SIDE_LOCAL) {
        outgoing->cursor.offset += packet->length;
    }
    if (packet->destination.kind == QRDMA_SIDE_RECEIVE) {
        outgoing->responder->incoming.cursor.offset += packet->length;
    }
}

/* The last moment at which the access has to be right. */
static void audit_side(QrdmaEngine *engine, QrdmaSide *side)
{
    if (side->held && side->access.mkey->watch) {
        qrdma_audit_moving(engine, &side->request, &side->access);
    }
}

/* False: the bus refused, and the QP has failed. */
static bool arrive(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaPacket *packet = &qp->packet;
    QrdmaSide *failed = &packet->destination;
    bool good;

    if (QRDMA_AUDITED(engine)) {
        audit_side(engine, &packet->source);
        audit_side(engine, &packet->destination);
    }
    if (packet->is_atomic) {
        good = qrdma_packet_atomic(engine, packet, &qp->outgoing.request,
                                   qp->outgoing.result);
    } else {
        good = qrdma_packet_move(engine, packet, &failed);
    }
    qrdma_send_drop_packet(engine, qp);
    if (!good) {
        engine->counters.access_refused++;
        access_failed(engine, qp, failed, QRDMA_ACCESS_DMA);
        return false;
    }
    advance(qp, packet);
    return true;
}

/* ----------------------------------------------------------------- message */

/* Take the next WQE. False: there is none, or it cannot be worked on. */
static bool next_message(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;
    QrdmaSendRequest *request = &outgoing->request;
    uint8_t slot[QRDMA_MAX_SEND_WQE];
    enum qrdma_wqe_error error;

    if (qp->state != QRDMA_QP_RTS || qp->send.consumer == qp->send.producer) {
        return false;
    }
    if (!qrdma_ring_read(engine, &qp->send.ring, qp->send.consumer, slot)) {
        qrdma_qp_fail(engine, qp, QRDMA_QUEUE_ERROR_DMA);
        return false;
    }
    error = qrdma_wqe_parse_send(slot, 1u << qp->send.ring.log_stride,
                                 request);
    if (error == QRDMA_WQE_OK && !qp->attributes.max_rd_atomic &&
        (request->opcode == QRDMA_SEND_OP_READ ||
         qrdma_wqe_is_atomic(request))) {
        error = QRDMA_WQE_OPCODE;
    }
    if (error != QRDMA_WQE_OK) {
        qrdma_guest_error(engine, "QP %u: malformed WQE %u: error %d",
                          qp->number, qp->send.consumer, error);
        fail(engine, qp, QRDMA_CQE_LOCAL_QP_OPERATION_ERROR, error, 0, 0);
        return false;
    }
    outgoing->active = true;
    outgoing->engaged = false;
    outgoing->responder = NULL;
    outgoing->moved = false;
    outgoing->atomic_done = false;
    outgoing->done = 0;
    outgoing->cursor = (QrdmaCursor) { 0 };
    return true;
}

/* Have the responder take the message. False: it does not, or not now. */
static bool engage(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;
    QrdmaQp *responder;
    QrdmaAnswer answer = QRDMA_ANSWER_NONE;

    if (outgoing->engaged) {
        /* It may have left in the middle, and then does not come back. */
        if (!outgoing->responder) {
            no_answer(engine, qp);
        }
        return outgoing->responder;
    }
    responder = qrdma_respond_find(engine, qp);
    if (responder) {
        answer = qrdma_respond_begin(engine, responder, qp);
    }
    if (answer != QRDMA_ANSWER_OK) {
        take_answer(engine, qp, answer, responder);
        return false;
    }
    outgoing->engaged = true;
    outgoing->responder = responder;
    return true;
}

static bool all_moved(const QrdmaOutgoing *outgoing)
{
    return outgoing->moved && outgoing->done == outgoing->request.length;
}

/* All data is there. */
static void deliver(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaQp *responder = qp->outgoing.responder;
    uint32_t packets = qrdma_send_packets(qp);
    QrdmaAnswer answer = qrdma_respond_end(engine, responder, qp);

    if (answer != QRDMA_ANSWER_OK) {
        take_answer(engine, qp, answer, responder);
        return;
    }
    qp->attributes.send_psn = (qp->attributes.send_psn + packets) &
                              QRDMA_PSN_MASK;
    qp->rnr_retries = 0;
    engine->counters.packets += packets;
    engine->counters.send_messages++;
    engine->counters.send_bytes += qp->outgoing.request.length;
    finish(engine, qp);
}

/* One packet further, or the end of the message. */
static void work(QrdmaEngine *engine, QrdmaQp *qp)
{
    if (qp->outgoing.request.opcode == QRDMA_SEND_OP_NOP) {
        finish(engine, qp);
        return;
    }
    /* The event of a first message may have been one too many for the card. */
    if (!engage(engine, qp) || !qrdma_engine_running(engine)) {
        return;
    }
    if (!all_moved(&qp->outgoing)) {
        if (!depart(engine, qp)) {
            return;
        }
        if (takes_time(engine)) {
            qp->wait = QRDMA_WAIT_PACKET;
            qrdma_qp_set_deadline(engine, qp,
                                  packet_time(engine, qp->packet.length));
            return;
        }
        if (!arrive(engine, qp)) {
            return;
        }
    }
    if (all_moved(&qp->outgoing)) {
        deliver(engine, qp);
    }
}

/* Whether a turn now would do something. */
static bool has_work(const QrdmaQp *qp)
{
    return qp->wait == QRDMA_WAIT_NOTHING &&
           (qp->outgoing.active || (qp->state == QRDMA_QP_RTS &&
                                    qp->send.consumer != qp->send.producer));
}

bool qrdma_send_turn(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaWait wait = qp->wait;

    if (qp->deadline_iter || wait == QRDMA_WAIT_FAULT) {
        return false;
    }
    qp->wait = QRDMA_WAIT_NOTHING;
    if (wait == QRDMA_WAIT_PACKET) {
        if (arrive(engine, qp) && all_moved(&qp->outgoing)) {
            deliver(engine, qp);
        }
    } else if (qp->outgoing.active || next_message(engine, qp)) {
        work(engine, qp);
    }
    return has_work(qp);
}
