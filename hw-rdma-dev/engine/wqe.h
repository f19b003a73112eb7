/*
 * qrdma engine: work queue entries, checked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_WQE_H
#define QRDMA_WQE_H

#include "engine.h"

#define QRDMA_MAX_SEND_WQE (1u << QRDMA_SEND_WQE_LOG_MAX)
#define QRDMA_MAX_RECEIVE_WQE (1u << QRDMA_RECEIVE_WQE_LOG_MAX)

typedef struct QrdmaSegment {
    uint64_t address;
    uint32_t length;            /* may be 0 */
    uint32_t key;
} QrdmaSegment;

typedef struct QrdmaSegments {
    uint32_t count;             /* 0..QRDMA_MAX_SGE */
    QrdmaSegment segment[QRDMA_MAX_SGE];
} QrdmaSegments;

/* How far a list of segments has been worked through. */
typedef struct QrdmaCursor {
    uint32_t segment;
    uint32_t offset;            /* bytes into that segment */
} QrdmaCursor;

/*
 * Where the cursor stands, past empty segments: NULL at the end. *rest: bytes
 * from there to the end of the segment, not 0.
 */
const QrdmaSegment *qrdma_cursor_segment(QrdmaCursor *cursor,
                                         const QrdmaSegments *segments,
                                         uint32_t *rest);

/* A send WQE in host byte order. Either inline data or segments. */
typedef struct QrdmaSendRequest {
    enum qrdma_send_opcode opcode;
    uint8_t flags;              /* QRDMA_WQE_* */
    uint32_t immediate;         /* as it stood in the WQE */
    uint64_t remote_address;
    uint32_t remote_key;
    uint64_t swap_or_add;
    uint64_t compare;
    uint64_t length;            /* bytes, 0..QRDMA_MAX_MESSAGE_SIZE */
    QrdmaSegments segments;
    uint8_t inline_data[QRDMA_MAX_INLINE];
} QrdmaSendRequest;

typedef struct QrdmaReceiveRequest {
    uint64_t length;            /* bytes its segments hold together */
    QrdmaSegments segments;
} QrdmaReceiveRequest;

/*
 * Check the copy of a send ring's slot of `size` bytes. On an error only
 * request->opcode (0 if unknown) and flags are set.
 */
enum qrdma_wqe_error qrdma_wqe_parse_send(const uint8_t *slot, size_t size,
                                          QrdmaSendRequest *request);

/* Same for a receive ring's slot. */
enum qrdma_wqe_error qrdma_wqe_parse_receive(const uint8_t *slot, size_t size,
                                             QrdmaReceiveRequest *request);

/* Opcode that the CQE of a send WQE has. */
enum qrdma_cqe_opcode qrdma_wqe_cqe_opcode(enum qrdma_send_opcode opcode);

/* The request moves data from the responder to the requester. */
static inline bool qrdma_wqe_is_atomic(const QrdmaSendRequest *request)
{
    return request->opcode == QRDMA_SEND_OP_COMPARE_SWAP ||
           request->opcode == QRDMA_SEND_OP_FETCH_ADD;
}

/* The message takes a receive WQE before its data moves. */
static inline bool qrdma_wqe_is_send(const QrdmaSendRequest *request)
{
    return request->opcode == QRDMA_SEND_OP_SEND ||
           request->opcode == QRDMA_SEND_OP_SEND_IMM;
}

static inline bool qrdma_wqe_has_immediate(const QrdmaSendRequest *request)
{
    return request->opcode == QRDMA_SEND_OP_SEND_IMM ||
           request->opcode == QRDMA_SEND_OP_WRITE_IMM;
}

#endif /* QRDMA_WQE_H */
