/*
 * qrdma engine: saved state: work in flight on queue pairs.
 *
 * A message is saved as the WQE that it was, and taken apart again by the code
 * that takes WQEs apart. A packet in flight is put together again by the code
 * that puts packets together; what is saved is how far it was translated.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "queues-internal.h"
#include "state.h"

QRDMA_ABI_ASSERT(QRDMA_SEND_WQE_HEADER == sizeof(struct qrdma_send_wqe));
QRDMA_ABI_ASSERT(QRDMA_RECEIVE_WQE_HEADER == sizeof(struct qrdma_receive_wqe));

/* --------------------------------------------------------------------- WQEs */

static void encode_segments(const QrdmaSegments *segments, uint8_t *bytes)
{
    for (uint32_t i = 0; i < segments->count; i++) {
        struct qrdma_sge sge = {
            .address = qrdma_le64(segments->segment[i].address),
            .length = qrdma_le32(segments->segment[i].length),
            .key = qrdma_le32(segments->segment[i].key),
        };

        memcpy(bytes + i * sizeof(sge), &sge, sizeof(sge));
    }
}

static void encode_send(const QrdmaSendRequest *request, uint8_t *slot)
{
    bool is_inline = request->flags & QRDMA_WQE_INLINE;
    struct qrdma_send_wqe wqe = {
        .opcode = request->opcode,
        .flags = request->flags,
        .num_sge = qrdma_le32(request->segments.count),
        .inline_length = qrdma_le32(is_inline ? request->length : 0),
        .immediate = request->immediate,
        .remote_address = qrdma_le64(request->remote_address),
        .remote_key = qrdma_le32(request->remote_key),
        .swap_or_add = qrdma_le64(request->swap_or_add),
        .compare = qrdma_le64(request->compare),
    };

    memcpy(slot, &wqe, sizeof(wqe));
    if (is_inline) {
        memcpy(slot + sizeof(wqe), request->inline_data, request->length);
    } else {
        encode_segments(&request->segments, slot + sizeof(wqe));
    }
}

static void state_send(QrdmaStream *stream, QrdmaSendRequest *request)
{
    uint8_t slot[QRDMA_MAX_SEND_WQE] = { 0 };
    enum qrdma_wqe_error error;

    if (!qrdma_stream_is_loading(stream)) {
        encode_send(request, slot);
    }
    qrdma_stream_bytes(stream, "wqe", slot, sizeof(slot));
    if (qrdma_stream_is_loading(stream)) {
        error = qrdma_wqe_parse_send(slot, sizeof(slot), request);
        qrdma_stream_check(stream, error == QRDMA_WQE_OK, "wqe",
                           "no such WQE can be in work: error %d", error);
    }
}

static void state_receive(QrdmaStream *stream, QrdmaReceiveRequest *request)
{
    uint8_t slot[QRDMA_MAX_RECEIVE_WQE] = { 0 };
    struct qrdma_receive_wqe wqe = {
        .num_sge = qrdma_le32(request->segments.count),
    };
    enum qrdma_wqe_error error;

    if (!qrdma_stream_is_loading(stream)) {
        memcpy(slot, &wqe, sizeof(wqe));
        encode_segments(&request->segments, slot + sizeof(wqe));
    }
    qrdma_stream_bytes(stream, "wqe", slot, sizeof(slot));
    if (qrdma_stream_is_loading(stream)) {
        error = qrdma_wqe_parse_receive(slot, sizeof(slot), request);
        qrdma_stream_check(stream, error == QRDMA_WQE_OK, "wqe",
                           "no such WQE can be in work: error %d", error);
    }
}

/* Bytes before the cursor have to be as many as were moved. */
static void state_cursor(QrdmaStream *stream, QrdmaCursor *cursor,
                         const QrdmaSegments *segments, uint64_t done)
{
    uint64_t before = 0;

    qrdma_stream_u32(stream, "segment", &cursor->segment, 0, segments->count);
    qrdma_stream_u32(stream, "offset", &cursor->offset, 0, UINT32_MAX);
    for (uint32_t i = 0; i < cursor->segment && i < segments->count; i++) {
        before += segments->segment[i].length;
    }
    qrdma_stream_check(stream, cursor->segment < segments->count
                       ? cursor->offset <=
                         segments->segment[cursor->segment].length
                       : !cursor->offset, "offset",
                       "%u is past segment %u", cursor->offset,
                       cursor->segment);
    qrdma_stream_check(stream, before + cursor->offset == done, "offset",
                       "%" PRIu64 " bytes before it, and %" PRIu64 " moved",
                       before + cursor->offset, done);
}

/* ----------------------------------------------------------------- messages */

/* What the responder has of the message. */
static void state_incoming(QrdmaStream *stream, QrdmaQp *requester,
                           QrdmaIncoming *incoming)
{
    const QrdmaSendRequest *request = &requester->outgoing.request;
    const QrdmaWorkQueue *queue = &requester->outgoing.responder->receive;

    qrdma_stream_enter(stream, "receive");
    qrdma_stream_bool(stream, "taken", &incoming->has_receive);
    qrdma_stream_check(stream, incoming->has_receive ==
                       qrdma_wqe_is_send(request), "taken",
                       "the message is of another kind");
    qrdma_stream_check(stream, !incoming->has_receive ||
                       queue->producer != queue->consumer, "taken",
                       "the receive queue is empty");
    if (incoming->has_receive) {
        state_receive(stream, &incoming->receive);
        state_cursor(stream, &incoming->cursor, &incoming->receive.segments,
                     requester->outgoing.done);
        qrdma_stream_check(stream, request->length <= incoming->receive.length,
                           "wqe", "it has no room for the message");
    }
    qrdma_stream_leave(stream);
}

static bool may_respond(const QrdmaQp *qp)
{
    return qp->type == QRDMA_QP_RC &&
           (qp->state == QRDMA_QP_RTR || qp->state == QRDMA_QP_RTS ||
            qp->state == QRDMA_QP_SQD) && !qp->incoming.active;
}

/* Who takes the message; number 0: nobody, or nobody any more. */
static void state_responder(QrdmaStream *stream, QrdmaEngine *engine,
                            QrdmaQp *qp)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;
    uint32_t number = outgoing->responder ? outgoing->responder->number : 0;

    qrdma_stream_bool(stream, "engaged", &outgoing->engaged);
    qrdma_stream_u32(stream, "responder", &number, 0, QRDMA_MAX_QPS - 1);
    if (!number || !qrdma_stream_is_good(stream)) {
        return;
    }
    if (qrdma_stream_is_loading(stream)) {
        QrdmaQp *responder = qrdma_qp_find(engine, number);

        if (!qrdma_stream_check(stream, outgoing->engaged && responder &&
                                may_respond(responder), "responder",
                                "QP %u takes no message", number)) {
            return;
        }
        outgoing->responder = responder;
        responder->incoming.active = true;
        responder->incoming.requester = qp;
    }
    state_incoming(stream, qp, &outgoing->responder->incoming);
}

static void state_message(QrdmaStream *stream, QrdmaEngine *engine,
                          QrdmaQp *qp)
{
    QrdmaOutgoing *outgoing = &qp->outgoing;

    state_send(stream, &outgoing->request);
    qrdma_stream_bool(stream, "moved", &outgoing->moved);
    qrdma_stream_bool(stream, "atomic_done", &outgoing->atomic_done);
    qrdma_stream_check(stream, !outgoing->atomic_done ||
                       qrdma_wqe_is_atomic(&outgoing->request), "atomic_done",
                       "it is none");
    qrdma_stream_u64(stream, "done", &outgoing->done, 0,
                     outgoing->request.length);
    qrdma_stream_bytes(stream, "result", outgoing->result,
                       sizeof(outgoing->result));
    if (!(outgoing->request.flags & QRDMA_WQE_INLINE)) {
        state_cursor(stream, &outgoing->cursor, &outgoing->request.segments,
                     outgoing->done);
    }
    state_responder(stream, engine, qp);
}

static bool may_send(const QrdmaQp *qp)
{
    return qp->state == QRDMA_QP_RTS || qp->state == QRDMA_QP_SQD;
}

static void state_outgoing(QrdmaStream *stream, QrdmaEngine *engine,
                           QrdmaQp *qp)
{
    bool active = qp->outgoing.active;

    qrdma_stream_enter(stream, "outgoing");
    qrdma_stream_bool(stream, "active", &active);
    if (qrdma_stream_check(stream, !active ||
                           (qp->type == QRDMA_QP_RC && may_send(qp) &&
                            qp->send.producer != qp->send.consumer), "active",
                           "the QP has no message in work") && active) {
        state_message(stream, engine, qp);
        qp->outgoing.active = qrdma_stream_is_good(stream);
    }
    qrdma_stream_leave(stream);
}

/* ------------------------------------------------------------------ packets */

/* How the translation came out. The access begins anew, in its old epoch. */
static void state_side(QrdmaStream *stream, QrdmaEngine *engine,
                       const char *name, QrdmaSide *side)
{
    QrdmaAccess *access = &side->access;
    uint32_t epoch = access->epoch;

    if (side->kind == QRDMA_SIDE_NONE) {
        return;
    }
    qrdma_stream_enter(stream, name);
    qrdma_stream_u64(stream, "bus_address", &access->bus_address, 0,
                     UINT64_MAX);
    qrdma_stream_u64(stream, "length", &access->length, 1,
                     side->request.length);
    qrdma_stream_u32(stream, "epoch", &epoch, 0, 1);
    qrdma_stream_bool(stream, "found", &access->found);
    qrdma_stream_u64(stream, "begun", &access->begun, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "watch", &access->watch, 0, UINT64_MAX);
    if (qrdma_stream_is_loading(stream)) {
        access->mkey = qrdma_mkey_find(engine,
                                       QRDMA_MKEY_INDEX(side->request.key));
        if (qrdma_stream_check(stream, access->mkey, NULL,
                               "there is no mkey of key 0x%08x",
                               side->request.key)) {
            access->epoch = epoch;
            access->mkey->in_flight[epoch]++;
            side->held = true;
        }
    }
    qrdma_stream_leave(stream);
}

/* At most what both sides were granted. */
static uint32_t longest_packet(const QrdmaQp *qp)
{
    const QrdmaPacket *packet = &qp->packet;
    uint64_t length = qp->outgoing.request.length - qp->outgoing.done;

    length = MIN(length, QRDMA_BYTES_PER_TURN);
    if (packet->source.kind) {
        length = MIN(length, packet->source.access.length);
    }
    if (packet->destination.kind) {
        length = MIN(length, packet->destination.access.length);
    }
    return length;
}

/* Put together anew; nothing when all is moved but the message's end. */
static bool rebuild_packet(QrdmaStream *stream, QrdmaQp *qp)
{
    const QrdmaOutgoing *outgoing = &qp->outgoing;

    if (!qrdma_stream_check(stream, outgoing->active && outgoing->responder,
                            "wait", "there is no packet to wait for")) {
        return false;
    }
    if (qrdma_stream_is_loading(stream)) {
        qp->packet = (QrdmaPacket) { 0 };
        if (outgoing->done < outgoing->request.length) {
            qrdma_send_set_sides(qp);
        }
    }
    return true;
}

static void state_packet(QrdmaStream *stream, QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaPacket *packet = &qp->packet;
    uint32_t longest;

    qrdma_stream_enter(stream, "packet");
    if (rebuild_packet(stream, qp)) {
        state_side(stream, engine, "source", &packet->source);
        state_side(stream, engine, "destination", &packet->destination);
        longest = longest_packet(qp);
        qrdma_stream_u32(stream, "length", &packet->length, MIN(1, longest),
                         longest);
    }
    qrdma_stream_leave(stream);
}

/* The side whose page is absent; nothing is held. */
static void state_page_fault(QrdmaStream *stream, QrdmaQp *qp)
{
    QrdmaPacket *packet = &qp->packet;
    QrdmaSideKind kind = qp->fault_side.kind;

    qrdma_stream_enter(stream, "page_fault");
    qrdma_stream_u32(stream, "token", &qp->fault_token, 1, UINT32_MAX);
    qrdma_stream_enum(stream, "side", &kind, QRDMA_SIDE_LOCAL,
                      QRDMA_SIDE_RECEIVE);
    if (qrdma_stream_is_loading(stream) && rebuild_packet(stream, qp)) {
        qp->fault_side = packet->source.kind == kind ? packet->source
                                                     : packet->destination;
        qrdma_stream_check(stream, qp->fault_side.kind == kind, "side",
                           "the packet has no such side");
    }
    qrdma_stream_leave(stream);
}

/* -------------------------------------------------------------- a QP's work */

static void state_umr(QrdmaStream *stream, QrdmaEngine *engine, QrdmaQp *qp)
{
    qrdma_state_umr(stream, engine, "umr", qp->number, &qp->umr);
    qrdma_stream_bool(stream, "umr_signaled", &qp->umr_signaled);
    qrdma_state_fault(stream, "umr_fault", &qp->umr_fault);
    if (qrdma_stream_is_loading(stream) && qp->umr) {
        qp->umr_index = qrdma_umr_index(qp->umr);
        qrdma_stream_check(stream, may_send(qp) &&
                           qp->send.producer != qp->send.consumer, "umr",
                           "the QP has none in work");
    }
}

static bool may_wait(const QrdmaQp *qp, QrdmaWait wait)
{
    switch (wait) {
    case QRDMA_WAIT_NOTHING:
        return true;
    case QRDMA_WAIT_UMR:
        return qp->umr;
    default:
        return qp->outgoing.active;
    }
}

static void state_wait(QrdmaStream *stream, QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaWait wait = qp->wait;

    qrdma_stream_enum(stream, "wait", &wait, QRDMA_WAIT_NOTHING,
                      QRDMA_WAIT_UMR);
    if (!qrdma_stream_check(stream, may_wait(qp, wait), "wait",
                            "there is nothing to wait for")) {
        return;
    }
    if (wait == QRDMA_WAIT_PACKET) {
        state_packet(stream, engine, qp);
    } else if (wait == QRDMA_WAIT_FAULT) {
        state_page_fault(stream, qp);
    }
    if (qrdma_stream_is_good(stream)) {
        qp->wait = wait;
    }
}

void qrdma_state_flight(QrdmaStream *stream, QrdmaEngine *engine)
{
    qrdma_stream_section(stream, "work", 1);
    for (uint32_t i = QRDMA_FIRST_QPN; i < QRDMA_MAX_QPS; i++) {
        QrdmaQp *qp = qrdma_qp_find(engine, i);

        if (!qp || !qrdma_stream_is_good(stream)) {
            continue;
        }
        qrdma_stream_enter_item(stream, "qp", i);
        qrdma_stream_u32(stream, "rnr_retries", &qp->rnr_retries, 0,
                         UINT32_MAX);
        qrdma_stream_u32(stream, "timeouts", &qp->timeouts, 0, UINT32_MAX);
        state_outgoing(stream, engine, qp);
        if (qp->type == QRDMA_QP_UMR) {
            state_umr(stream, engine, qp);
        }
        state_wait(stream, engine, qp);
        qrdma_stream_leave(stream);
    }
}
