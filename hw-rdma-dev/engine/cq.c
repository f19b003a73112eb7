/*
 * qrdma engine: completion queues.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"
#include "state.h"

static const QrdmaRingLimits cq_limits = {
    .log_stride_min = QRDMA_CQE_LOG_SIZE,
    .log_stride_max = QRDMA_CQE_LOG_SIZE,
};

QrdmaCq *qrdma_cq_find(QrdmaEngine *engine, uint32_t number)
{
    return number < QRDMA_MAX_CQS ? engine->queues->cqs[number] : NULL;
}

/* One event answers one arming. */
static void send_completion_event(QrdmaEngine *engine, QrdmaCq *cq, bool later)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(cq->number),
        .type = QRDMA_EVENT_COMPLETION,
    };

    cq->armed = false;
    cq->armed_solicited = false;
    qrdma_event_pend(engine, cq->eq, &cq->completion, &event, later);
}

static void cq_fail(QrdmaEngine *engine, QrdmaCq *cq,
                    enum qrdma_queue_error syndrome)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(cq->number),
        .type = QRDMA_EVENT_CQ_ERROR,
        .syndrome = qrdma_le16(syndrome),
    };

    cq->error = true;
    qrdma_guest_error(engine, "CQ %u: error %d", cq->number, syndrome);
    qrdma_event_post(engine, &event);
    for (GList *link = cq->work_queues.head; link; link = link->next) {
        qrdma_qp_fail(engine, link->data, QRDMA_QUEUE_ERROR_CQ);
    }
}

void qrdma_cq_deliver(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe)
{
    bool solicited = (cqe->flags & QRDMA_CQE_FLAG_SOLICITED) ||
                     cqe->status != QRDMA_CQE_SUCCESS;

    if (cq->error || !qrdma_engine_running(engine)) {
        return;
    }
    if (cq->producer - cq->consumer >= cq->ring.entries) {
        cq_fail(engine, cq, QRDMA_QUEUE_ERROR_OVERRUN);
        return;
    }
    cqe->phase = qrdma_ring_phase(&cq->ring, cq->producer);
    if (!qrdma_ring_write(engine, &cq->ring, cq->producer, cqe)) {
        cq_fail(engine, cq, QRDMA_QUEUE_ERROR_DMA);
        return;
    }
    cq->producer++;
    if (cq->armed || (cq->armed_solicited && solicited)) {
        send_completion_event(engine, cq, false);
    }
}

static bool hold_back(QrdmaEngine *engine, QrdmaCq *cq,
                      const struct qrdma_cqe *cqe, const QrdmaFault *fault)
{
    QrdmaHeld *held = qrdma_faults_hold(engine, fault);

    if (held) {
        held->queue = cq->number;
        held->cqe = *cqe;
    }
    return held;
}

/* A completion that a fault hits. */
static void misdeliver(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe,
                       const QrdmaFault *fault)
{
    switch (fault->action) {
    case QRDMA_FAULT_FAIL:
        if (!cq->error) {
            cq_fail(engine, cq, QRDMA_QUEUE_ERROR_DMA);
        }
        break;
    case QRDMA_FAULT_DELAY:
    case QRDMA_FAULT_SWAP:
        if (!hold_back(engine, cq, cqe, fault)) {
            qrdma_cq_deliver(engine, cq, cqe);
        }
        break;
    case QRDMA_FAULT_DUPLICATE:
        hold_back(engine, cq, cqe, fault);
        qrdma_cq_deliver(engine, cq, cqe);
        break;
    case QRDMA_FAULT_FATAL:
        if (fault->point == QRDMA_FAULT_POINT_AFTER) {
            qrdma_cq_deliver(engine, cq, cqe);
        }
        qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        break;
    case QRDMA_FAULT_DROP:
    case QRDMA_FAULT_LATE:
        break;
    }
}

static void deliver_swapped(QrdmaEngine *engine, QrdmaCq *cq, uint32_t index)
{
    QrdmaHeld *held;

    while ((held = qrdma_faults_take_swapped(engine, QRDMA_FAULT_COMPLETION,
                                             index, 0, cq->number))) {
        qrdma_cq_deliver(engine, cq, &held->cqe);
        qrdma_held_free(engine, held);
    }
}

/* Not inlined, so that what is seldom needed does not burden the rest. */
static void __attribute__((noinline))
post_with_faults(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe,
                 uint32_t index)
{
    QrdmaFault fault;

    if (qrdma_fault_take(engine, QRDMA_FAULT_COMPLETION, index, 0, &fault)) {
        misdeliver(engine, cq, cqe, &fault);
    } else {
        qrdma_cq_deliver(engine, cq, cqe);
        deliver_swapped(engine, cq, index);
    }
}

void qrdma_cq_post(QrdmaEngine *engine, QrdmaCq *cq, struct qrdma_cqe *cqe,
                   uint32_t index)
{
    if (qrdma_faults_of(engine->faults, QRDMA_FAULT_COMPLETION) ||
        qrdma_faults_holding(engine->faults)) {
        post_with_faults(engine, cq, cqe, index);
    } else {
        qrdma_cq_deliver(engine, cq, cqe);
    }
}

void qrdma_cq_consumed(QrdmaEngine *engine, QrdmaCq *cq, uint32_t consumer,
                       unsigned arm)
{
    cq->consumer = consumer;
    if (arm == QRDMA_DOORBELL_ARM_SOLICITED) {
        cq->armed_solicited = true;
    } else if (arm == QRDMA_DOORBELL_ARM_NEXT) {
        cq->armed = true;
        if (cq->consumer != cq->producer) {
            send_completion_event(engine, cq, true);
        }
    }
}

void qrdma_cq_free(QrdmaEngine *engine, QrdmaCq *cq)
{
    qrdma_event_cancel(&cq->completion);
    qrdma_event_cancel(&cq->bad_doorbell);
    qrdma_faults_forget(engine, QRDMA_FAULT_COMPLETION, cq->number);
    cq->eq->users--;
    engine->queues->eqs[QRDMA_ASYNC_EQN]->users--;
    engine->queues->cqs[cq->number] = NULL;
    engine->queues->num_cqs--;
    qrdma_ring_release(engine, &cq->ring);
    g_free(cq);
}

static enum qrdma_status check_create(QrdmaEngine *engine, uint32_t number,
                                      const struct qrdma_cqc *in)
{
    if (number >= QRDMA_MAX_CQS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (qrdma_cq_find(engine, number)) {
        return QRDMA_STATUS_IN_USE;
    }
    if (in->consumer || in->producer || in->flags ||
        !qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (!qrdma_eq_find(engine, QRDMA_ASYNC_EQN) ||
        !qrdma_eq_find(engine, qrdma_le32(in->eqn))) {
        return QRDMA_STATUS_BAD_EQN;
    }
    if (qrdma_le32(in->doorbell_page) >= QRDMA_DOORBELL_PAGES) {
        return QRDMA_STATUS_BAD_DOORBELL_PAGE;
    }
    return QRDMA_STATUS_OK;
}

/* Without its ring. Both EQs are there. */
static QrdmaCq *new_cq(QrdmaEngine *engine, uint32_t number, uint32_t eqn)
{
    QrdmaCq *cq = g_new0(QrdmaCq, 1);

    cq->number = number;
    cq->eq = qrdma_eq_find(engine, eqn);
    g_queue_init(&cq->work_queues);
    cq->eq->users++;
    engine->queues->eqs[QRDMA_ASYNC_EQN]->users++;
    engine->queues->cqs[number] = cq;
    engine->queues->num_cqs++;
    return cq;
}

enum qrdma_status qrdma_cmd_create_cq(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_cqc *in = call->input;
    enum qrdma_status status = check_create(engine, call->number, in);
    QrdmaRing ring;
    QrdmaCq *cq;

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    status = qrdma_ring_setup(engine, &in->ring, &cq_limits, &ring);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    cq = new_cq(engine, call->number, qrdma_le32(in->eqn));
    cq->ring = ring;
    cq->doorbell_page = qrdma_le32(in->doorbell_page);
    return QRDMA_STATUS_OK;
}

/* The CQ that a command names, or why there is none. */
static enum qrdma_status find_named(QrdmaEngine *engine, uint32_t number,
                                    QrdmaCq **cq)
{
    if (number >= QRDMA_MAX_CQS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    *cq = qrdma_cq_find(engine, number);
    return *cq ? QRDMA_STATUS_OK : QRDMA_STATUS_NO_OBJECT;
}

enum qrdma_status qrdma_cmd_modify_cq(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_cqc *in = call->input;
    QrdmaCq *cq;
    QrdmaEq *eq;
    bool waiting;
    enum qrdma_status status = find_named(engine, call->number, &cq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    eq = qrdma_eq_find(engine, qrdma_le32(in->eqn));
    if (!eq) {
        return QRDMA_STATUS_BAD_EQN;
    }
    /* A completion event that waits for room moves along. */
    waiting = cq->completion.eq;
    qrdma_event_cancel(&cq->completion);
    cq->eq->users--;
    cq->eq = eq;
    cq->eq->users++;
    cq->doorbell_reported = false;
    if (waiting) {
        qrdma_event_pend(engine, eq, &cq->completion, &cq->completion.event,
                         false);
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_query_cq(QrdmaEngine *engine,
                                     const QrdmaCommandCall *call)
{
    struct qrdma_cqc *out = call->output;
    QrdmaCq *cq;
    enum qrdma_status status = find_named(engine, call->number, &cq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    qrdma_ring_describe(&cq->ring, &out->ring);
    out->eqn = qrdma_le32(cq->eq->number);
    out->doorbell_page = qrdma_le32(cq->doorbell_page);
    out->consumer = qrdma_le32(cq->consumer);
    out->producer = qrdma_le32(cq->producer);
    out->flags = qrdma_le32((cq->armed ? QRDMA_CQ_ARMED : 0) |
                            (cq->armed_solicited ?
                             QRDMA_CQ_ARMED_SOLICITED : 0) |
                            (cq->error ? QRDMA_CQ_ERROR : 0));
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_destroy_cq(QrdmaEngine *engine,
                                       const QrdmaCommandCall *call)
{
    QrdmaCq *cq;
    enum qrdma_status status = find_named(engine, call->number, &cq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!g_queue_is_empty(&cq->work_queues)) {
        return QRDMA_STATUS_IN_USE;
    }
    qrdma_cq_free(engine, cq);
    return QRDMA_STATUS_OK;
}

/* ------------------------------------------------------------- saved state */

static void state_cq(QrdmaStream *stream, QrdmaEngine *engine, QrdmaCq *cq)
{
    qrdma_state_ring(stream, engine, "ring", &cq_limits, false, &cq->ring);
    qrdma_stream_u32(stream, "doorbell_page", &cq->doorbell_page, 0,
                     QRDMA_DOORBELL_PAGES - 1);
    qrdma_state_counters(stream, &cq->ring, &cq->producer, &cq->consumer,
                         true);
    qrdma_stream_bool(stream, "armed", &cq->armed);
    qrdma_stream_bool(stream, "armed_solicited", &cq->armed_solicited);
    qrdma_stream_bool(stream, "error", &cq->error);
    qrdma_stream_bool(stream, "doorbell_reported", &cq->doorbell_reported);
}

/* NULL: it cannot be loaded. */
static QrdmaCq *load_cq(QrdmaStream *stream, QrdmaEngine *engine,
                        uint32_t number, uint32_t eqn)
{
    if (!qrdma_stream_check(stream, qrdma_eq_find(engine, eqn) &&
                            qrdma_eq_find(engine, QRDMA_ASYNC_EQN), "eqn",
                            "there is no EQ %u, or no EQ 0", eqn)) {
        return NULL;
    }
    return new_cq(engine, number, eqn);
}

/* The first one from `number` on; NULL: there is none. */
static QrdmaCq *next_cq(QrdmaEngine *engine, uint32_t number)
{
    for (; number < QRDMA_MAX_CQS; number++) {
        if (engine->queues->cqs[number]) {
            return engine->queues->cqs[number];
        }
    }
    return NULL;
}

void qrdma_state_cqs(QrdmaStream *stream, QrdmaEngine *engine)
{
    uint32_t count = engine->queues->num_cqs;
    uint32_t number = UINT32_MAX;       /* the first may be 0 */

    qrdma_stream_section(stream, "cqs ", 1);
    qrdma_stream_count(stream, "cqs", &count, QRDMA_MAX_CQS, sizeof(number));
    for (uint32_t i = 0; i < count; i++) {
        QrdmaCq *cq = qrdma_stream_is_loading(stream)
                      ? NULL : next_cq(engine, number + 1);
        uint32_t eqn = cq ? cq->eq->number : 0;

        number = cq ? cq->number : number;
        if (!qrdma_stream_next(stream, "cq.number", &number, 0,
                               QRDMA_MAX_CQS - 1)) {
            return;
        }
        qrdma_stream_enter_item(stream, "cq", number);
        qrdma_stream_u32(stream, "eqn", &eqn, 0, QRDMA_MAX_EQS - 1);
        cq = cq ?: load_cq(stream, engine, number, eqn);
        if (cq) {
            state_cq(stream, engine, cq);
        }
        qrdma_stream_leave(stream);
    }
}
