/*
 * qrdma engine: work queue entries, checked.
 *
 * What is looked at here is the card's own copy of a slot: the guest may change
 * the slot at any time, and what was checked must be what is used.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "engine-internal.h"
#include "wqe.h"

#define SEND_FLAGS (QRDMA_WQE_SIGNALED | QRDMA_WQE_SOLICITED | \
                    QRDMA_WQE_FENCE | QRDMA_WQE_INLINE)

#define ATOMIC_LENGTH 8

/* What an opcode may have. */
typedef struct SendRules {
    enum qrdma_cqe_opcode cqe_opcode;
    bool remote;                /* remote address and key */
    bool swap_or_add;
    bool compare;
    bool may_be_inline;
    bool no_data;
} SendRules;

static const SendRules send_rules[] = {
    [QRDMA_SEND_OP_SEND] = { QRDMA_CQE_OP_SEND, .may_be_inline = true },
    [QRDMA_SEND_OP_SEND_IMM] = { QRDMA_CQE_OP_SEND, .may_be_inline = true },
    [QRDMA_SEND_OP_WRITE] = {
        QRDMA_CQE_OP_WRITE, .remote = true, .may_be_inline = true
    },
    [QRDMA_SEND_OP_WRITE_IMM] = {
        QRDMA_CQE_OP_WRITE, .remote = true, .may_be_inline = true
    },
    [QRDMA_SEND_OP_READ] = { QRDMA_CQE_OP_READ, .remote = true },
    [QRDMA_SEND_OP_COMPARE_SWAP] = {
        QRDMA_CQE_OP_COMPARE_SWAP, .remote = true, .swap_or_add = true,
        .compare = true
    },
    [QRDMA_SEND_OP_FETCH_ADD] = {
        QRDMA_CQE_OP_FETCH_ADD, .remote = true, .swap_or_add = true
    },
    [QRDMA_SEND_OP_NOP] = { QRDMA_CQE_OP_NOP, .no_data = true },
};

enum qrdma_cqe_opcode qrdma_wqe_cqe_opcode(enum qrdma_send_opcode opcode)
{
    return send_rules[opcode].cqe_opcode;
}

const QrdmaSegment *qrdma_cursor_segment(QrdmaCursor *cursor,
                                         const QrdmaSegments *segments,
                                         uint32_t *rest)
{
    while (cursor->segment < segments->count) {
        const QrdmaSegment *segment = &segments->segment[cursor->segment];

        if (cursor->offset < segment->length) {
            *rest = segment->length - cursor->offset;
            return segment;
        }
        cursor->segment++;
        cursor->offset = 0;
    }
    return NULL;
}

/* Sum of the lengths; at most 28 * 2^32, which does not wrap. */
static uint64_t parse_segments(const uint8_t *bytes, uint32_t count,
                               QrdmaSegments *segments)
{
    uint64_t length = 0;

    segments->count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct qrdma_sge sge;

        memcpy(&sge, bytes + i * sizeof(sge), sizeof(sge));
        segments->segment[i] = (QrdmaSegment) {
            .address = qrdma_le64(sge.address),
            .length = qrdma_le32(sge.length),
            .key = qrdma_le32(sge.key),
        };
        length += segments->segment[i].length;
    }
    return length;
}

static uint32_t segments_in(size_t size, size_t header)
{
    return MIN((size - header) / sizeof(struct qrdma_sge), QRDMA_MAX_SGE);
}

static bool reserved_is_zero(const struct qrdma_send_wqe *wqe,
                             const SendRules *rules)
{
    return !wqe->reserved0 && !wqe->reserved1 &&
           qrdma_is_zero(wqe->reserved2, sizeof(wqe->reserved2)) &&
           (rules->remote || (!wqe->remote_address && !wqe->remote_key)) &&
           (rules->swap_or_add || !wqe->swap_or_add) &&
           (rules->compare || !wqe->compare);
}

static enum qrdma_wqe_error parse_inline(const uint8_t *slot, size_t size,
                                         const struct qrdma_send_wqe *wqe,
                                         QrdmaSendRequest *request)
{
    uint32_t length = qrdma_le32(wqe->inline_length);

    if (wqe->num_sge) {
        return QRDMA_WQE_NUM_SGE;
    }
    if (length > MIN(size - QRDMA_SEND_WQE_HEADER, QRDMA_MAX_INLINE)) {
        return QRDMA_WQE_INLINE_LENGTH;
    }
    request->segments.count = 0;
    request->length = length;
    memcpy(request->inline_data, slot + QRDMA_SEND_WQE_HEADER, length);
    return QRDMA_WQE_OK;
}

static enum qrdma_wqe_error parse_gather(const uint8_t *slot, size_t size,
                                         const struct qrdma_send_wqe *wqe,
                                         const SendRules *rules,
                                         QrdmaSendRequest *request)
{
    uint32_t count = qrdma_le32(wqe->num_sge);

    if (wqe->inline_length) {
        return QRDMA_WQE_INLINE_LENGTH;
    }
    if (count > segments_in(size, QRDMA_SEND_WQE_HEADER) ||
        (rules->no_data && count)) {
        return QRDMA_WQE_NUM_SGE;
    }
    request->length = parse_segments(slot + QRDMA_SEND_WQE_HEADER, count,
                                     &request->segments);
    return QRDMA_WQE_OK;
}

enum qrdma_wqe_error qrdma_wqe_parse_send(const uint8_t *slot, size_t size,
                                          QrdmaSendRequest *request)
{
    struct qrdma_send_wqe wqe;
    const SendRules *rules;
    enum qrdma_wqe_error error;

    memcpy(&wqe, slot, sizeof(wqe));
    request->opcode = QRDMA_SEND_OP_SEND;
    request->flags = wqe.flags;
    if (wqe.opcode >= G_N_ELEMENTS(send_rules)) {
        return QRDMA_WQE_OPCODE;
    }
    rules = &send_rules[wqe.opcode];
    request->opcode = wqe.opcode;
    if ((wqe.flags & ~SEND_FLAGS) ||
        ((wqe.flags & QRDMA_WQE_INLINE) && !rules->may_be_inline)) {
        return QRDMA_WQE_FLAGS;
    }
    if (!reserved_is_zero(&wqe, rules)) {
        return QRDMA_WQE_RESERVED;
    }
    if (wqe.flags & QRDMA_WQE_INLINE) {
        error = parse_inline(slot, size, &wqe, request);
    } else {
        error = parse_gather(slot, size, &wqe, rules, request);
    }
    if (error != QRDMA_WQE_OK) {
        return error;
    }
    if (request->length > QRDMA_MAX_MESSAGE_SIZE ||
        (rules->swap_or_add && request->length != ATOMIC_LENGTH)) {
        return QRDMA_WQE_LENGTH;
    }
    request->immediate = wqe.immediate;
    request->remote_address = qrdma_le64(wqe.remote_address);
    request->remote_key = qrdma_le32(wqe.remote_key);
    request->swap_or_add = qrdma_le64(wqe.swap_or_add);
    request->compare = qrdma_le64(wqe.compare);
    return QRDMA_WQE_OK;
}

enum qrdma_wqe_error qrdma_wqe_parse_receive(const uint8_t *slot, size_t size,
                                             QrdmaReceiveRequest *request)
{
    struct qrdma_receive_wqe wqe;
    uint32_t count;

    memcpy(&wqe, slot, sizeof(wqe));
    if (!qrdma_is_zero(wqe.reserved, sizeof(wqe.reserved))) {
        return QRDMA_WQE_RESERVED;
    }
    count = qrdma_le32(wqe.num_sge);
    if (count > segments_in(size, QRDMA_RECEIVE_WQE_HEADER)) {
        return QRDMA_WQE_NUM_SGE;
    }
    request->length = parse_segments(slot + QRDMA_RECEIVE_WQE_HEADER, count,
                                     &request->segments);
    return QRDMA_WQE_OK;
}
