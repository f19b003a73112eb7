/*
 * qrdma engine fuzzing: work requests that are nearly right.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-objects.h"

static TestQp *some_qp(FuzzCard *fuzz)
{
    return fuzz_one_in(fuzz->input, 3) ? &fuzz->link->b : &fuzz->link->a;
}

/* Lengths of a few packets, of nothing, or of anything. */
static uint32_t some_length(FuzzInput *input)
{
    switch (fuzz_below(input, 8)) {
    case 0:
        return fuzz_u32(input);
    case 1:
        return 0;
    case 2:
        return 8;
    default:
        return fuzz_u16(input);
    }
}

static QrdmaSegment some_segment(FuzzCard *fuzz)
{
    return (QrdmaSegment) {
        .address = fuzz_region_address(fuzz),
        .length = some_length(fuzz->input),
        .key = fuzz_key(fuzz),
    };
}

static void ring_mostly(FuzzCard *fuzz, const TestQp *qp, bool send)
{
    if (fuzz_one_in(fuzz->input, 4)) {
        return;
    }
    if (send) {
        link_ring_send(fuzz->link, qp);
    } else {
        link_ring_receive(fuzz->link, qp);
    }
}

/* What belongs to the opcode, and no more. */
static void complete_send(FuzzCard *fuzz, TestSend *send)
{
    FuzzInput *input = fuzz->input;
    bool is_atomic = send->opcode == QRDMA_SEND_OP_COMPARE_SWAP ||
                     send->opcode == QRDMA_SEND_OP_FETCH_ADD;

    if (send->opcode == QRDMA_SEND_OP_NOP) {
        return;
    }
    send->segments = is_atomic ? 1 : fuzz_below(input, 4);
    for (unsigned i = 0; i < send->segments; i++) {
        send->segment[i] = some_segment(fuzz);
    }
    if (send->opcode >= QRDMA_SEND_OP_WRITE) {
        send->remote_address = fuzz_region_address(fuzz);
        send->remote_key = fuzz_key(fuzz);
    }
    if (is_atomic) {
        send->segment[0].length = 8;
        send->swap_or_add = fuzz_u8(input);
    }
    if (send->opcode == QRDMA_SEND_OP_COMPARE_SWAP) {
        send->compare = fuzz_u8(input);
    }
}

void fuzz_post_send(FuzzCard *fuzz)
{
    static const uint8_t payload[QRDMA_MAX_INLINE] = { 0x11, 0x22, 0x33 };
    FuzzInput *input = fuzz->input;
    TestQp *qp = some_qp(fuzz);
    TestSend send = {
        .opcode = fuzz_below(input, QRDMA_SEND_OP_NOP + 1),
        .flags = fuzz_below(input, 8),
    };
    uint8_t wqe[QRDMA_MAX_SEND_WQE];

    if (fuzz_one_in(input, 4) && send.opcode < QRDMA_SEND_OP_READ) {
        send.flags |= QRDMA_WQE_INLINE;
        send.inline_length = fuzz_u16(input) % (QRDMA_MAX_INLINE + 1);
        send.inline_data = payload;
        if (send.opcode >= QRDMA_SEND_OP_WRITE) {
            send.remote_address = fuzz_region_address(fuzz);
            send.remote_key = fuzz_key(fuzz);
        }
    } else {
        complete_send(fuzz, &send);
    }
    link_send_wqe(&send, wqe);
    fuzz_spoil(input, wqe, sizeof(wqe));
    link_put_send(fuzz->link, qp, wqe, sizeof(wqe));
    ring_mostly(fuzz, qp, true);
}

void fuzz_post_receive(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    TestQp *qp = fuzz_one_in(input, 3) ? &fuzz->link->a : &fuzz->link->b;
    uint8_t wqe[QRDMA_MAX_RECEIVE_WQE] = { 0 };
    unsigned segments = fuzz_below(input, 5);

    wqe[0] = segments;
    for (unsigned i = 0; i < segments; i++) {
        QrdmaSegment segment = some_segment(fuzz);
        struct qrdma_sge sge = {
            .address = qrdma_le64(segment.address),
            .length = qrdma_le32(segment.length),
            .key = qrdma_le32(segment.key),
        };

        memcpy(wqe + QRDMA_RECEIVE_WQE_HEADER + i * sizeof(sge), &sge,
               sizeof(sge));
    }
    fuzz_spoil(input, wqe, sizeof(wqe));
    link_put_receive(fuzz->link, qp, wqe, sizeof(wqe));
    ring_mostly(fuzz, qp, false);
}

/* Units of table data, inline or in the arena. */
static void add_table(FuzzCard *fuzz, struct qrdma_umr_wqe *umr,
                      uint64_t *inline_data)
{
    FuzzInput *input = fuzz->input;
    unsigned units = 1 + fuzz_below(input, 8);
    uint64_t *data = inline_data;

    if (units <= 6 && fuzz_below(input, 2)) {
        umr->umr_flags |= qrdma_le16(QRDMA_UMR_INLINE);
    } else {
        uint64_t place = fuzz->arena + (uint64_t)fuzz_u8(input) * 64;

        units = fuzz_one_in(input, 8) ? 1024 : units;
        umr->table_address = qrdma_le64(place);
        data = card_pointer(fuzz->card, place, units * QRDMA_TABLE_UNIT);
    }
    for (unsigned i = 0; i < MIN(units, 8u) * QRDMA_PBLES_PER_UNIT; i += 2) {
        data[i] = data[i + 1] = qrdma_le64(fuzz_pble(fuzz));
    }
    umr->table_length = qrdma_le32(units * QRDMA_TABLE_UNIT);
    if (fuzz_below(input, 2)) {
        umr->umr_flags |= qrdma_le16(QRDMA_UMR_TRANSLATION_OFFSET);
        umr->table_offset = qrdma_le64(fuzz_below(input, 8) *
                                       (uint64_t)QRDMA_TABLE_UNIT);
    }
}

void fuzz_post_umr(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint64_t wqe[QRDMA_UMR_WQE_SIZE / sizeof(uint64_t)] = { 0 };
    struct qrdma_umr_wqe umr = {
        .opcode = QRDMA_SEND_OP_UMR,
        .flags = fuzz_below(input, 2),
        .key = qrdma_le32(fuzz_key(fuzz)),
    };
    uint8_t what = fuzz_u8(input);

    if (what & 1) {
        umr.umr_flags |= qrdma_le16(QRDMA_UMR_CHECK_FREE <<
                                    fuzz_below(input, 2));
    }
    if (what & 6) {
        add_table(fuzz, &umr, wqe + QRDMA_UMR_INLINE_OFFSET / 8);
    }
    if (what & 24) {
        umr.mask = qrdma_le64(fuzz_u16(input) & QRDMA_UMR_MASK_ALL);
        umr.mkc = fuzz_mkc(fuzz);
    }
    memcpy(wqe, &umr, sizeof(umr));
    fuzz_spoil(input, wqe, sizeof(wqe));
    link_put_send(fuzz->link, &fuzz->link->umr, wqe, sizeof(wqe));
    ring_mostly(fuzz, &fuzz->link->umr, true);
}
