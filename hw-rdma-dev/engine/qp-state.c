/*
 * qrdma engine: states of queue pairs, and the attributes each change takes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "engine-internal.h"
#include "queues-internal.h"

#define STATE QRDMA_QP_MASK_STATE
#define FLAGS QRDMA_QP_MASK_FLAGS
#define PATH QRDMA_QP_MASK_PATH
#define PATH_MTU QRDMA_QP_MASK_PATH_MTU
#define REMOTE_QPN QRDMA_QP_MASK_REMOTE_QPN
#define SEND_PSN QRDMA_QP_MASK_SEND_PSN
#define RECEIVE_PSN QRDMA_QP_MASK_RECEIVE_PSN
#define RETRY_COUNT QRDMA_QP_MASK_RETRY_COUNT
#define RNR_RETRY QRDMA_QP_MASK_RNR_RETRY
#define MIN_RNR_TIMER QRDMA_QP_MASK_MIN_RNR_TIMER
#define TIMEOUT QRDMA_QP_MASK_TIMEOUT
#define MAX_RD_ATOMIC QRDMA_QP_MASK_MAX_RD_ATOMIC
#define MAX_DEST_RD_ATOMIC QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC
#define PKEY_INDEX QRDMA_QP_MASK_PKEY_INDEX

#define STATES (QRDMA_QP_ERROR + 1)

static const char *const state_names[STATES] = {
    "reset", "init", "rtr", "rts", "sqd", "error",
};

/* Attributes that a change must have, and may have, besides the state. */
typedef struct Transition {
    bool valid;
    uint64_t required;
    uint64_t optional;
} Transition;

/*
 * [from][to], as in the InfiniBand specification for RC; from and to equal: a
 * change of attributes only. To RESET from anywhere, and to ERROR from anywhere
 * but RESET, without attributes.
 */
static const Transition rc_transitions[STATES][STATES] = {
    [QRDMA_QP_RESET] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_INIT] = { true, FLAGS | PKEY_INDEX },
    },
    [QRDMA_QP_INIT] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_INIT] = { true, 0, FLAGS | PKEY_INDEX },
        [QRDMA_QP_RTR] = {
            true,
            PATH | PATH_MTU | REMOTE_QPN | RECEIVE_PSN | MAX_DEST_RD_ATOMIC |
            MIN_RNR_TIMER,
            FLAGS | PKEY_INDEX
        },
        [QRDMA_QP_ERROR] = { true },
    },
    [QRDMA_QP_RTR] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_RTS] = {
            true,
            TIMEOUT | RETRY_COUNT | RNR_RETRY | SEND_PSN | MAX_RD_ATOMIC,
            FLAGS | MIN_RNR_TIMER
        },
        [QRDMA_QP_ERROR] = { true },
    },
    [QRDMA_QP_RTS] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_RTS] = { true, 0, FLAGS | MIN_RNR_TIMER },
        [QRDMA_QP_SQD] = { true },
        [QRDMA_QP_ERROR] = { true },
    },
    [QRDMA_QP_SQD] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_RTS] = { true, 0, FLAGS | MIN_RNR_TIMER },
        [QRDMA_QP_SQD] = {
            true, 0,
            PATH | TIMEOUT | RETRY_COUNT | RNR_RETRY | MAX_RD_ATOMIC |
            MAX_DEST_RD_ATOMIC | PKEY_INDEX | FLAGS | MIN_RNR_TIMER
        },
        [QRDMA_QP_ERROR] = { true },
    },
    [QRDMA_QP_ERROR] = {
        [QRDMA_QP_RESET] = { true },
        [QRDMA_QP_ERROR] = { true },
    },
};

/* A UMR queue has no other end: the changes of RC, without attributes. */
static Transition find_transition(const QrdmaQp *qp, enum qrdma_qp_state to)
{
    Transition transition = rc_transitions[qp->state][to];

    if (qp->type == QRDMA_QP_UMR) {
        transition.required = 0;
        transition.optional = 0;
    }
    return transition;
}

/* ---------------------------------------------------------- work in flight */

/* Let go of the other end's responder; it keeps its receive WQE. */
static void leave_responder(QrdmaQp *qp)
{
    QrdmaQp *responder = qp->outgoing.responder;

    if (responder) {
        responder->incoming.active = false;
        responder->incoming.requester = NULL;
        qp->outgoing.responder = NULL;
    }
}

static void cancel_fault(QrdmaQp *qp)
{
    qrdma_event_cancel(&qp->page_fault);
    qp->fault_token = 0;
}

/*
 * The responder stops in the middle of a message. Its requester finds nobody
 * any more: what is in flight, or suspended, must not touch its memory now.
 */
static void leave_requester(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaQp *requester = qp->incoming.requester;

    if (!qp->incoming.active) {
        return;
    }
    qp->incoming.active = false;
    qp->incoming.requester = NULL;
    requester->outgoing.responder = NULL;
    if (requester->wait == QRDMA_WAIT_PACKET ||
        requester->wait == QRDMA_WAIT_FAULT) {
        qrdma_send_drop_packet(engine, requester);
        cancel_fault(requester);
        qrdma_qp_clear_deadline(engine, requester);
        requester->wait = QRDMA_WAIT_NOTHING;
        qrdma_qp_ready(engine, requester);
    }
}

void qrdma_qp_drop_work(QrdmaEngine *engine, QrdmaQp *qp)
{
    qrdma_send_drop_packet(engine, qp);
    leave_responder(qp);
    leave_requester(engine, qp);
    qp->outgoing.active = false;
    qrdma_umr_free(engine, qp->umr);
    qp->umr = NULL;
    cancel_fault(qp);
    qrdma_qp_clear_deadline(engine, qp);
    qp->wait = QRDMA_WAIT_NOTHING;
    qp->rnr_retries = 0;
    qp->timeouts = 0;
    qrdma_qp_not_ready(engine, qp);
}

/* ------------------------------------------------------------------ states */

static void set_state(QrdmaEngine *engine, QrdmaQp *qp,
                      enum qrdma_qp_state state)
{
    if (qp->state != state) {
        qrdma_trace(engine, "qp_state", "qp %u %s -> %s", qp->number,
                    state_names[qp->state], state_names[state]);
        qp->state = state;
    }
}

void qrdma_qp_to_error(QrdmaEngine *engine, QrdmaQp *qp)
{
    if (qp->state == QRDMA_QP_RESET || qp->state == QRDMA_QP_ERROR) {
        return;
    }
    qrdma_qp_drop_work(engine, qp);
    set_state(engine, qp, QRDMA_QP_ERROR);
    qrdma_qp_ready(engine, qp);
}

void qrdma_qp_fail(QrdmaEngine *engine, QrdmaQp *qp,
                   enum qrdma_queue_error syndrome)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(qp->number),
        .type = QRDMA_EVENT_QP_ERROR,
        .syndrome = qrdma_le16(syndrome),
    };

    if (qp->state == QRDMA_QP_RESET || qp->state == QRDMA_QP_ERROR) {
        return;
    }
    qrdma_qp_to_error(engine, qp);
    qrdma_event_post(engine, &event);
}

static void restart_queue(QrdmaWorkQueue *queue)
{
    queue->producer = 0;
    queue->consumer = 0;
    queue->doorbell_reported = false;
}

static void to_reset(QrdmaEngine *engine, QrdmaQp *qp)
{
    qrdma_qp_drop_work(engine, qp);
    qrdma_event_cancel(&qp->bad_doorbell);
    restart_queue(&qp->send);
    restart_queue(&qp->receive);
    qp->attributes = (QrdmaQpAttributes) { 0 };
    qp->established = false;
    set_state(engine, qp, QRDMA_QP_RESET);
}

/* ------------------------------------------------------------------ modify */

static bool in_range(const struct qrdma_qpc *in, uint64_t mask)
{
    uint32_t remote_qpn = qrdma_le32(in->remote_qpn);

    return !((mask & FLAGS) &&
             (qrdma_le32(in->flags) & ~QRDMA_QP_REMOTE_FLAGS)) &&
           !((mask & PATH) &&
             qrdma_le32(in->flow_label) > QRDMA_FLOW_LABEL_MASK) &&
           !((mask & PATH_MTU) && (in->path_mtu < 1 ||
                                   in->path_mtu > QRDMA_MAX_PATH_MTU)) &&
           !((mask & REMOTE_QPN) && (remote_qpn < QRDMA_FIRST_QPN ||
                                     remote_qpn > QRDMA_QPN_MASK)) &&
           !((mask & SEND_PSN) && qrdma_le32(in->send_psn) > QRDMA_PSN_MASK) &&
           !((mask & RECEIVE_PSN) &&
             qrdma_le32(in->receive_psn) > QRDMA_PSN_MASK) &&
           !((mask & RETRY_COUNT) && in->retry_count > 7) &&
           !((mask & RNR_RETRY) && in->rnr_retry > 7) &&
           !((mask & MIN_RNR_TIMER) && in->min_rnr_timer > 31) &&
           !((mask & TIMEOUT) && in->timeout > 31) &&
           !((mask & MAX_RD_ATOMIC) &&
             in->max_rd_atomic > QRDMA_MAX_RD_ATOMIC) &&
           !((mask & MAX_DEST_RD_ATOMIC) &&
             in->max_dest_rd_atomic > QRDMA_MAX_RD_ATOMIC) &&
           !((mask & PKEY_INDEX) && in->pkey_index);
}

static void take_path(QrdmaQpAttributes *attributes,
                      const struct qrdma_qpc *in)
{
    attributes->sgid_index = in->sgid_index;
    attributes->traffic_class = in->traffic_class;
    attributes->hop_limit = in->hop_limit;
    attributes->flow_label = qrdma_le32(in->flow_label);
    memcpy(attributes->dgid, in->dgid, sizeof(attributes->dgid));
    memcpy(attributes->dmac, in->dmac, sizeof(attributes->dmac));
}

static void take_attributes(QrdmaQpAttributes *attributes,
                            const struct qrdma_qpc *in, uint64_t mask)
{
    if (mask & FLAGS) {
        attributes->flags = qrdma_le32(in->flags);
    }
    if (mask & PATH) {
        take_path(attributes, in);
    }
    if (mask & PATH_MTU) {
        attributes->path_mtu = in->path_mtu;
    }
    if (mask & REMOTE_QPN) {
        attributes->remote_qpn = qrdma_le32(in->remote_qpn);
    }
    if (mask & SEND_PSN) {
        attributes->send_psn = qrdma_le32(in->send_psn);
    }
    if (mask & RECEIVE_PSN) {
        attributes->receive_psn = qrdma_le32(in->receive_psn);
    }
    if (mask & RETRY_COUNT) {
        attributes->retry_count = in->retry_count;
    }
    if (mask & RNR_RETRY) {
        attributes->rnr_retry = in->rnr_retry;
    }
    if (mask & MIN_RNR_TIMER) {
        attributes->min_rnr_timer = in->min_rnr_timer;
    }
    if (mask & TIMEOUT) {
        attributes->timeout = in->timeout;
    }
    if (mask & MAX_RD_ATOMIC) {
        attributes->max_rd_atomic = in->max_rd_atomic;
    }
    if (mask & MAX_DEST_RD_ATOMIC) {
        attributes->max_dest_rd_atomic = in->max_dest_rd_atomic;
    }
}

static enum qrdma_status check_modify(QrdmaEngine *engine, const QrdmaQp *qp,
                                      const struct qrdma_qpc *in,
                                      uint64_t mask)
{
    enum qrdma_qp_state to = mask & STATE ? in->state : qp->state;
    uint64_t attributes = mask & ~STATE;
    Transition transition;

    if (mask & ~QRDMA_QP_MASK_ALL) {
        return QRDMA_STATUS_BAD_MASK;
    }
    if (!qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (to >= STATES) {
        return QRDMA_STATUS_BAD_TRANSITION;
    }
    transition = find_transition(qp, to);
    /* Attributes alone: in RTR there are none that could change. */
    if (!transition.valid && (mask & STATE)) {
        return QRDMA_STATUS_BAD_TRANSITION;
    }
    if ((attributes & transition.required) != transition.required ||
        (attributes & ~(transition.required | transition.optional)) ||
        !in_range(in, mask)) {
        return QRDMA_STATUS_BAD_ATTRIBUTE;
    }
    if ((mask & PATH) && !qrdma_gid_get(engine, in->sgid_index)) {
        return QRDMA_STATUS_BAD_GID;
    }
    /* A QP cannot work on a CQ that takes no CQEs. */
    if (to != QRDMA_QP_RESET && to != QRDMA_QP_ERROR &&
        (qp->send.cq->error || qp->receive.cq->error)) {
        return QRDMA_STATUS_BAD_STATE;
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_modify_qp(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_modify_qp *in = call->input;
    uint64_t mask = qrdma_le64(in->mask);
    enum qrdma_qp_state to;
    QrdmaQp *qp;
    enum qrdma_status status = qrdma_qp_find_named(engine, call->number, &qp);

    if (status == QRDMA_STATUS_OK) {
        status = check_modify(engine, qp, &in->context, mask);
    }
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    to = mask & STATE ? in->context.state : qp->state;
    take_attributes(&qp->attributes, &in->context, mask);
    qp->send.doorbell_reported = false;
    qp->receive.doorbell_reported = false;
    if (to == QRDMA_QP_RESET) {
        to_reset(engine, qp);
    } else if (to == QRDMA_QP_ERROR) {
        qrdma_qp_to_error(engine, qp);
    } else {
        set_state(engine, qp, to);
        if (to == QRDMA_QP_RTS && qp->wait == QRDMA_WAIT_NOTHING) {
            qrdma_qp_ready(engine, qp);
        }
    }
    return QRDMA_STATUS_OK;
}

/* -------------------------------------------------------------- page fault */

enum qrdma_status qrdma_cmd_resume_page_fault(QrdmaEngine *engine,
                                              const QrdmaCommandCall *call)
{
    const struct qrdma_resume *in = call->input;
    uint32_t failed = qrdma_le32(in->failed);
    QrdmaQp *qp;
    enum qrdma_status status = qrdma_qp_find_named(engine, call->number, &qp);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (failed > 1) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    if (qp->wait != QRDMA_WAIT_FAULT ||
        qrdma_le32(in->token) != qp->fault_token) {
        return QRDMA_STATUS_BAD_TOKEN;
    }
    engine->counters.page_faults_resumed++;
    qrdma_trace(engine, "page_fault", "qp %u token 0x%x %s", qp->number,
                qp->fault_token, failed ? "failed" : "resumed");
    cancel_fault(qp);
    qp->wait = QRDMA_WAIT_NOTHING;
    qrdma_send_resume(engine, qp, failed);
    return QRDMA_STATUS_OK;
}
