/*
 * qrdma engine: event queues, completion queues and queue pairs, as the files
 * that make them up see each other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_QUEUES_INTERNAL_H
#define QRDMA_QUEUES_INTERNAL_H

#include <glib.h>

#include "access.h"
#include "engine.h"
#include "ring.h"
#include "umr.h"
#include "wqe.h"

#define QRDMA_MAX_CQS (1u << QRDMA_LOG_MAX_CQS)
#define QRDMA_MAX_QPS (1u << QRDMA_LOG_MAX_QPS)

/* Of attributes, as MODIFY_QP takes them. */
#define QRDMA_QPN_MASK 0xffffffu
#define QRDMA_PSN_MASK 0xffffffu
#define QRDMA_FLOW_LABEL_MASK 0xfffffu
#define QRDMA_MAX_PATH_MTU 5    /* 4096 bytes */
#define QRDMA_QP_REMOTE_FLAGS (QRDMA_QP_REMOTE_READ | QRDMA_QP_REMOTE_WRITE | \
                               QRDMA_QP_REMOTE_ATOMIC)

typedef struct QrdmaEq QrdmaEq;
typedef struct QrdmaCq QrdmaCq;
typedef struct QrdmaQp QrdmaQp;

/* ------------------------------------------------------------ event queues */

/*
 * An event that must not be lost: it waits on its EQ until there is room. Its
 * memory is that of the queue it speaks of, so what can wait is bounded.
 */
typedef struct QrdmaPendingEvent {
    GList link;                 /* data: this; in eq->pending */
    QrdmaEq *eq;                /* NULL: not waiting */
    struct qrdma_eqe event;
} QrdmaPendingEvent;

struct QrdmaEq {
    uint32_t number;
    QrdmaRing ring;
    uint32_t vector;
    uint32_t producer;
    uint32_t consumer;
    uint32_t users;             /* CQs; EQ 0: also QPs */
    bool armed;
    bool arm_request;           /* a doorbell asked; looked at when it is run */
    GQueue pending;
    GList work_link;            /* in queues->eq_work */
    bool in_work;
};

QrdmaEq *qrdma_eq_find(QrdmaEngine *engine, uint32_t number);

/* From a doorbell: deliver and arm at the next run. */
void qrdma_eq_request_work(QrdmaEngine *engine, QrdmaEq *eq);

/* Deliver what waits and has room, then see to a request to arm. */
void qrdma_eq_work(QrdmaEngine *engine, QrdmaEq *eq);

/*
 * Have an event delivered, at once where there is room unless `later`. One that
 * waits already keeps its place and takes the new contents.
 */
void qrdma_event_pend(QrdmaEngine *engine, QrdmaEq *eq,
                      QrdmaPendingEvent *pending,
                      const struct qrdma_eqe *event, bool later);
void qrdma_event_cancel(QrdmaPendingEvent *pending);

/* An asynchronous event; lost, and counted, if EQ 0 is full. */
void qrdma_event_post(QrdmaEngine *engine, const struct qrdma_eqe *event);

/* An event that fault injection held back: now, if there is room. */
void qrdma_eq_deliver(QrdmaEngine *engine, QrdmaEq *eq,
                      const struct qrdma_eqe *event);

void qrdma_eq_free(QrdmaEngine *engine, QrdmaEq *eq);

/* ------------------------------------------------------- completion queues */

struct QrdmaCq {
    uint32_t number;
    QrdmaRing ring;
    QrdmaEq *eq;
    uint32_t doorbell_page;
    uint32_t producer;
    uint32_t consumer;
    bool armed;
    bool armed_solicited;
    bool error;                 /* takes no more CQEs */
    bool doorbell_reported;     /* a bad counter has had its event */
    QrdmaPendingEvent completion;
    QrdmaPendingEvent bad_doorbell;
    GQueue work_queues;         /* of the QPs that complete here */
};

QrdmaCq *qrdma_cq_find(QrdmaEngine *engine, uint32_t number);

/*
 * Add a CQE; phase is filled in here. In error, or full, or when its memory is
 * not there, no CQE is written, and the QPs of the CQ are in error when this
 * returns: callers look at the state of theirs. index: of the mkey that a UMR
 * has changed, for fault injection; 0 for other completions.
 */
void qrdma_cq_post(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe,
                   uint32_t index);

/* The same, past fault injection. */
void qrdma_cq_deliver(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe);

/* The consumer has moved to `consumer` (checked), and wants `arm`. */
void qrdma_cq_consumed(QrdmaEngine *engine, QrdmaCq *cq, uint32_t consumer,
                       unsigned arm);

void qrdma_cq_free(QrdmaEngine *engine, QrdmaCq *cq);

/* ------------------------------------------------------------- queue pairs */

typedef struct QrdmaWorkQueue {
    QrdmaRing ring;
    uint32_t producer;
    uint32_t consumer;          /* WQEs completed */
    QrdmaCq *cq;                /* NULL: there is no queue */
    GList cq_link;              /* data: the QP; in cq->work_queues */
    bool doorbell_reported;     /* a bad counter has had its event */
} QrdmaWorkQueue;

/* Which queue's memory or key an access concerns. */
typedef enum QrdmaSideKind {
    QRDMA_SIDE_NONE,            /* no memory: inline data, empty message */
    QRDMA_SIDE_LOCAL,           /* segments of the requester's WQE */
    QRDMA_SIDE_REMOTE,          /* remote key and address of the WQE */
    QRDMA_SIDE_RECEIVE,         /* segments of the responder's receive WQE */
} QrdmaSideKind;

/* One end of a transfer. */
typedef struct QrdmaSide {
    QrdmaSideKind kind;
    QrdmaQp *qp;                /* whose key it is */
    QrdmaAccessRequest request;
    QrdmaAccess access;
    bool held;                  /* access has begun */
} QrdmaSide;

/* Bytes that one turn moves where packets take no time; a packet's most. */
#define QRDMA_BYTES_PER_TURN 65536

/* What has been translated and not moved yet. */
typedef struct QrdmaPacket {
    uint32_t length;            /* bytes; 0: a message without data */
    bool is_atomic;
    const uint8_t *inline_data; /* source, where that is no memory */
    QrdmaSide source;
    QrdmaSide destination;
} QrdmaPacket;

/* The message that the send queue works on. */
typedef struct QrdmaOutgoing {
    bool active;
    bool engaged;               /* the responder has taken its beginning */
    QrdmaQp *responder;         /* engaged: who; NULL if it has gone since */
    bool moved;                 /* a packet has arrived; it may be empty */
    bool atomic_done;           /* result is there, to be given to segments */
    QrdmaSendRequest request;
    uint64_t done;              /* bytes moved */
    QrdmaCursor cursor;
    uint8_t result[8];
} QrdmaOutgoing;

/* The message that arrives. */
typedef struct QrdmaIncoming {
    bool active;
    QrdmaQp *requester;         /* while active */
    bool has_receive;           /* a receive WQE has been taken for it */
    QrdmaReceiveRequest receive;
    QrdmaCursor cursor;
} QrdmaIncoming;

/* What the send queue waits for. */
typedef enum QrdmaWait {
    QRDMA_WAIT_NOTHING,
    QRDMA_WAIT_PACKET,          /* deadline: the packet arrives */
    QRDMA_WAIT_RETRY,           /* deadline: try again */
    QRDMA_WAIT_FAULT,           /* RESUME_PAGE_FAULT */
    QRDMA_WAIT_UMR,             /* qrdma_qp_wake() */
} QrdmaWait;

/* Attributes, in host byte order; meaning and ranges as in struct qrdma_qpc. */
typedef struct QrdmaQpAttributes {
    uint32_t flags;
    uint32_t remote_qpn;
    uint32_t send_psn;
    uint32_t receive_psn;
    uint32_t flow_label;
    uint8_t path_mtu;
    uint8_t sgid_index;
    uint8_t retry_count;
    uint8_t rnr_retry;
    uint8_t min_rnr_timer;
    uint8_t timeout;
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t dgid[16];
    uint8_t dmac[6];
    uint8_t traffic_class;
    uint8_t hop_limit;
} QrdmaQpAttributes;

struct QrdmaQp {
    uint32_t number;
    enum qrdma_qp_type type;
    enum qrdma_qp_state state;
    uint32_t pd;
    uint32_t doorbell_page;
    QrdmaWorkQueue send;
    QrdmaWorkQueue receive;
    QrdmaQpAttributes attributes;

    QrdmaOutgoing outgoing;
    QrdmaIncoming incoming;
    QrdmaPacket packet;
    uint32_t rnr_retries;       /* taken since the last progress */
    uint32_t timeouts;
    bool established;           /* COMMUNICATION event has been given */
    QrdmaUmr *umr;              /* UMR queue: the one that is worked on */
    bool umr_signaled;
    uint32_t umr_index;         /* mkey that it is about */
    QrdmaFault umr_fault;       /* what is done to it on purpose */

    QrdmaWait wait;
    GSequenceIter *deadline_iter;   /* NULL: no deadline */
    uint64_t deadline;
    uint32_t fault_token;       /* of QRDMA_WAIT_FAULT */
    QrdmaSide fault_side;       /* what to fail when the repair fails */
    QrdmaPendingEvent page_fault;
    QrdmaPendingEvent bad_doorbell;

    GList ready_link;           /* in queues->ready */
    bool ready;
};

QrdmaQp *qrdma_qp_find(QrdmaEngine *engine, uint32_t number);
void qrdma_qp_free(QrdmaEngine *engine, QrdmaQp *qp);

/* The QP that a command names, or why there is none. */
enum qrdma_status qrdma_qp_find_named(QrdmaEngine *engine, uint32_t number,
                                      QrdmaQp **qp);

/*
 * The QP goes to error: what is in flight is dropped, both queues are flushed
 * from the next turn on. Nothing happens if it is there already, or in reset.
 */
void qrdma_qp_to_error(QrdmaEngine *engine, QrdmaQp *qp);

/* Same, with a QP_ERROR event. */
void qrdma_qp_fail(QrdmaEngine *engine, QrdmaQp *qp,
                   enum qrdma_queue_error syndrome);

/*
 * Nothing of the QP's is in flight any more, as requester or as responder: no
 * DMA, no event and no timer of what was.
 */
void qrdma_qp_drop_work(QrdmaEngine *engine, QrdmaQp *qp);

/* Complete the WQE at the head of a queue; fields not given are the WQE's. */
void qrdma_qp_complete(QrdmaEngine *engine, QrdmaQp *qp, QrdmaWorkQueue *queue,
                       struct qrdma_cqe *cqe);

/* A turn of a QP in error; true if there is more to flush. */
bool qrdma_qp_flush_turn(QrdmaEngine *engine, QrdmaQp *qp);

/* --------------------------------------------------------------- requester */

/*
 * Which memory the next packet of the message takes from and puts to. There is
 * data left, and the responder is engaged.
 */
void qrdma_send_set_sides(QrdmaQp *qp);

/* A turn: a bounded piece of work; true if there is more to do now. */
bool qrdma_send_turn(QrdmaEngine *engine, QrdmaQp *qp);

/* End the accesses of the packet in flight; no data moves. */
void qrdma_send_drop_packet(QrdmaEngine *engine, QrdmaQp *qp);

/* Packets that a message of the requester's takes; at least one. */
uint32_t qrdma_send_packets(const QrdmaQp *requester);

/* Page fault resumed: go on, or fail the access. */
void qrdma_send_resume(QrdmaEngine *engine, QrdmaQp *qp, bool failed);

/* --------------------------------------------------------------- responder */

/* What the responder says to a request. */
typedef enum QrdmaAnswer {
    QRDMA_ANSWER_OK,
    QRDMA_ANSWER_NONE,                  /* nobody there who would answer */
    QRDMA_ANSWER_NOT_READY,             /* receive queue is empty */
    QRDMA_ANSWER_INVALID_REQUEST,
    QRDMA_ANSWER_ACCESS_ERROR,
    QRDMA_ANSWER_OPERATION_ERROR,
} QrdmaAnswer;

/* The QP at the other end, if it is there and would answer; else NULL. */
QrdmaQp *qrdma_respond_find(QrdmaEngine *engine, QrdmaQp *requester);

/* The message begins: may it, and into which buffer? */
QrdmaAnswer qrdma_respond_begin(QrdmaEngine *engine, QrdmaQp *responder,
                                QrdmaQp *requester);

/* All data is there: completion of what the responder received. */
QrdmaAnswer qrdma_respond_end(QrdmaEngine *engine, QrdmaQp *responder,
                              QrdmaQp *requester);

/*
 * An access with a key of the responder's has failed; its QP goes to error.
 * What the requester is told.
 */
QrdmaAnswer qrdma_respond_access_failed(QrdmaEngine *engine,
                                        const QrdmaSide *side,
                                        enum qrdma_access_error error);

/* QP_ACCESS_ERROR for the QP whose key it was. */
void qrdma_access_event(QrdmaEngine *engine, const QrdmaSide *side,
                        enum qrdma_access_error error);

/* Event flags of an access. */
uint8_t qrdma_access_event_flags(const QrdmaSide *side);

/* RNR timer code to nanoseconds. */
uint64_t qrdma_rnr_delay(uint8_t code);

/* ----------------------------------------------------------- data movement */

/*
 * Move the packet's data. False: the bus refused; *failed is the side, with
 * QRDMA_ACCESS_DMA (or MISALIGNED) to be reported.
 */
bool qrdma_packet_move(QrdmaEngine *engine, QrdmaPacket *packet,
                       QrdmaSide **failed);

/*
 * Do an atomic on the packet's destination. The value that was there goes to
 * `result`. False: that memory takes no atomics.
 */
bool qrdma_packet_atomic(QrdmaEngine *engine, QrdmaPacket *packet,
                         const QrdmaSendRequest *request, uint8_t result[8]);

/* --------------------------------------------------------------- scheduler */

struct QrdmaQueues {
    QrdmaEq *eqs[QRDMA_MAX_EQS];
    QrdmaCq *cqs[QRDMA_MAX_CQS];
    QrdmaQp *qps[QRDMA_MAX_QPS];
    uint32_t num_cqs;           /* that are there */
    uint32_t num_qps;
    GQueue eq_work;
    GQueue ready;               /* QPs that have something to do */
    GSequence *deadlines;       /* QPs, soonest first */
    uint32_t ring_pages;        /* of level 1 rings */
    uint32_t last_token;        /* of page faults */
};

/* Give the QP a turn. */
void qrdma_qp_ready(QrdmaEngine *engine, QrdmaQp *qp);
void qrdma_qp_not_ready(QrdmaEngine *engine, QrdmaQp *qp);

/* A turn when `delay` nanoseconds have passed; replaces an earlier deadline. */
void qrdma_qp_set_deadline(QrdmaEngine *engine, QrdmaQp *qp, uint64_t delay);
void qrdma_qp_clear_deadline(QrdmaEngine *engine, QrdmaQp *qp);

#endif /* QRDMA_QUEUES_INTERNAL_H */
