/*
 * qrdma engine: event queues.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"
#include "state.h"

static const QrdmaRingLimits eq_limits = {
    .log_stride_min = QRDMA_EQE_LOG_SIZE,
    .log_stride_max = QRDMA_EQE_LOG_SIZE,
    .log_entries_min = 3,
};

QrdmaEq *qrdma_eq_find(QrdmaEngine *engine, uint32_t number)
{
    return number < QRDMA_MAX_EQS ? engine->queues->eqs[number] : NULL;
}

static bool is_full(const QrdmaEq *eq)
{
    return eq->producer - eq->consumer >= eq->ring.entries;
}

static void raise_interrupt(QrdmaEngine *engine, QrdmaEq *eq)
{
    eq->armed = false;
    engine->ops->raise_interrupt(engine->opaque, eq->vector);
}

/* Without events a driver would wait for ever: fatal. */
static void fail(QrdmaEngine *engine, QrdmaEq *eq)
{
    qrdma_guest_error(engine, "EQ %u: event could not be written", eq->number);
    qrdma_engine_fatal(engine, QRDMA_FATAL_EQ_DMA);
}

/* The EQ has room. */
static void write_event_now(QrdmaEngine *engine, QrdmaEq *eq,
                            const struct qrdma_eqe *event)
{
    struct qrdma_eqe eqe = *event;

    if (!qrdma_engine_running(engine)) {
        return;
    }
    eqe.phase = qrdma_ring_phase(&eq->ring, eq->producer);
    if (!qrdma_ring_write(engine, &eq->ring, eq->producer, &eqe)) {
        fail(engine, eq);
        return;
    }
    eq->producer++;
    qrdma_trace(engine, "event",
                "eq %u type %u number %u syndrome %u key 0x%08x "
                "address 0x%" PRIx64 " length %u token 0x%x flags 0x%x",
                eq->number, eqe.type, qrdma_le32(eqe.number),
                qrdma_le16(eqe.syndrome), qrdma_le32(eqe.key),
                (uint64_t)qrdma_le64(eqe.address), qrdma_le32(eqe.length),
                qrdma_le32(eqe.token), eqe.flags);
    if (eq->armed) {
        raise_interrupt(engine, eq);
    }
}

void qrdma_eq_deliver(QrdmaEngine *engine, QrdmaEq *eq,
                      const struct qrdma_eqe *event)
{
    if (!is_full(eq)) {
        write_event_now(engine, eq, event);
    }
}

static bool hold_back(QrdmaEngine *engine, QrdmaEq *eq,
                      const struct qrdma_eqe *event, const QrdmaFault *fault)
{
    QrdmaHeld *held = qrdma_faults_hold(engine, fault);

    if (held) {
        held->queue = eq->number;
        held->eqe = *event;
    }
    return held;
}

/* An event that a fault hits. */
static void misdeliver(QrdmaEngine *engine, QrdmaEq *eq,
                       const struct qrdma_eqe *event, const QrdmaFault *fault)
{
    switch (fault->action) {
    case QRDMA_FAULT_FAIL:
        fail(engine, eq);
        break;
    case QRDMA_FAULT_DELAY:
    case QRDMA_FAULT_SWAP:
        if (!hold_back(engine, eq, event, fault)) {
            write_event_now(engine, eq, event);
        }
        break;
    case QRDMA_FAULT_DUPLICATE:
        write_event_now(engine, eq, event);
        hold_back(engine, eq, event, fault);
        break;
    case QRDMA_FAULT_FATAL:
        if (fault->point == QRDMA_FAULT_POINT_AFTER) {
            write_event_now(engine, eq, event);
        }
        qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        break;
    case QRDMA_FAULT_DROP:
    case QRDMA_FAULT_LATE:
        break;
    }
}

static void deliver_swapped(QrdmaEngine *engine, QrdmaEq *eq, uint32_t index,
                            uint32_t type)
{
    QrdmaHeld *held;

    while ((held = qrdma_faults_take_swapped(engine, QRDMA_FAULT_EVENT, index,
                                             type, eq->number))) {
        qrdma_eq_deliver(engine, eq, &held->eqe);
        qrdma_held_free(engine, held);
    }
}

/* The EQ has room; after a swap it may not have any more. */
static void write_event(QrdmaEngine *engine, QrdmaEq *eq,
                        const struct qrdma_eqe *event)
{
    uint32_t index = QRDMA_MKEY_INDEX(qrdma_le32(event->key));
    QrdmaFault fault;

    if (qrdma_faults_of(engine->faults, QRDMA_FAULT_EVENT) &&
        qrdma_engine_running(engine) &&
        qrdma_fault_take(engine, QRDMA_FAULT_EVENT, index, event->type,
                         &fault)) {
        misdeliver(engine, eq, event, &fault);
        return;
    }
    write_event_now(engine, eq, event);
    if (qrdma_faults_holding(engine->faults)) {
        deliver_swapped(engine, eq, index, event->type);
    }
}

static void deliver_pending(QrdmaEngine *engine, QrdmaEq *eq)
{
    while (!g_queue_is_empty(&eq->pending) && !is_full(eq) &&
           qrdma_engine_running(engine)) {
        QrdmaPendingEvent *pending = g_queue_peek_head(&eq->pending);

        qrdma_event_cancel(pending);
        write_event(engine, eq, &pending->event);
    }
}

void qrdma_eq_request_work(QrdmaEngine *engine, QrdmaEq *eq)
{
    if (!eq->in_work) {
        eq->in_work = true;
        g_queue_push_tail_link(&engine->queues->eq_work, &eq->work_link);
    }
    qrdma_engine_schedule(engine);
}

void qrdma_eq_work(QrdmaEngine *engine, QrdmaEq *eq)
{
    deliver_pending(engine, eq);
    if (eq->arm_request && qrdma_engine_running(engine)) {
        eq->arm_request = false;
        eq->armed = true;
        /* Events that came before the driver armed must not be slept over. */
        if (eq->producer != eq->consumer) {
            raise_interrupt(engine, eq);
        }
    }
}

void qrdma_event_pend(QrdmaEngine *engine, QrdmaEq *eq,
                      QrdmaPendingEvent *pending,
                      const struct qrdma_eqe *event, bool later)
{
    pending->event = *event;
    if (!pending->eq) {
        pending->eq = eq;
        pending->link.data = pending;
        g_queue_push_tail_link(&eq->pending, &pending->link);
    }
    if (later) {
        qrdma_eq_request_work(engine, eq);
    } else {
        deliver_pending(engine, eq);
    }
}

void qrdma_event_cancel(QrdmaPendingEvent *pending)
{
    if (pending->eq) {
        g_queue_unlink(&pending->eq->pending, &pending->link);
        pending->eq = NULL;
    }
}

void qrdma_event_post(QrdmaEngine *engine, const struct qrdma_eqe *event)
{
    QrdmaEq *eq = qrdma_eq_find(engine, QRDMA_ASYNC_EQN);

    /* CQs and QPs, which events speak of, keep EQ 0 from being destroyed. */
    g_assert(eq);
    deliver_pending(engine, eq);
    if (is_full(eq)) {
        engine->counters.events_lost++;
        qrdma_status_set(engine, QRDMA_CARD_EVENT_LOST);
        qrdma_trace(engine, "event", "eq %u full: type %u number %u lost",
                    eq->number, event->type, qrdma_le32(event->number));
        return;
    }
    write_event(engine, eq, event);
}

void qrdma_eq_free(QrdmaEngine *engine, QrdmaEq *eq)
{
    if (eq->in_work) {
        g_queue_unlink(&engine->queues->eq_work, &eq->work_link);
    }
    qrdma_faults_forget(engine, QRDMA_FAULT_EVENT, eq->number);
    engine->queues->eqs[eq->number] = NULL;
    qrdma_ring_release(engine, &eq->ring);
    g_free(eq);
}

/* Without its ring. */
static QrdmaEq *new_eq(QrdmaEngine *engine, uint32_t number)
{
    QrdmaEq *eq = g_new0(QrdmaEq, 1);

    eq->number = number;
    eq->work_link.data = eq;
    g_queue_init(&eq->pending);
    engine->queues->eqs[number] = eq;
    return eq;
}

enum qrdma_status qrdma_cmd_create_eq(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_eqc *in = call->input;
    enum qrdma_status status;
    QrdmaRing ring;
    QrdmaEq *eq;

    if (call->number >= QRDMA_MAX_EQS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (qrdma_eq_find(engine, call->number)) {
        return QRDMA_STATUS_IN_USE;
    }
    if (in->consumer || in->producer || in->flags ||
        !qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (qrdma_le32(in->vector) >= QRDMA_MSIX_VECTORS) {
        return QRDMA_STATUS_BAD_VECTOR;
    }
    status = qrdma_ring_setup(engine, &in->ring, &eq_limits, &ring);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    eq = new_eq(engine, call->number);
    eq->ring = ring;
    eq->vector = qrdma_le32(in->vector);
    return QRDMA_STATUS_OK;
}

/* The EQ that a command names, or why there is none. */
static enum qrdma_status find_named(QrdmaEngine *engine, uint32_t number,
                                    QrdmaEq **eq)
{
    if (number >= QRDMA_MAX_EQS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    *eq = qrdma_eq_find(engine, number);
    return *eq ? QRDMA_STATUS_OK : QRDMA_STATUS_NO_OBJECT;
}

enum qrdma_status qrdma_cmd_modify_eq(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    const struct qrdma_eqc *in = call->input;
    QrdmaEq *eq;
    enum qrdma_status status = find_named(engine, call->number, &eq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (qrdma_le32(in->vector) >= QRDMA_MSIX_VECTORS) {
        return QRDMA_STATUS_BAD_VECTOR;
    }
    eq->vector = qrdma_le32(in->vector);
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_query_eq(QrdmaEngine *engine,
                                     const QrdmaCommandCall *call)
{
    struct qrdma_eqc *out = call->output;
    QrdmaEq *eq;
    enum qrdma_status status = find_named(engine, call->number, &eq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    qrdma_ring_describe(&eq->ring, &out->ring);
    out->vector = qrdma_le32(eq->vector);
    out->consumer = qrdma_le32(eq->consumer);
    out->producer = qrdma_le32(eq->producer);
    if (eq->armed || eq->arm_request) {
        out->flags = qrdma_le32(QRDMA_EQ_ARMED);
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_destroy_eq(QrdmaEngine *engine,
                                       const QrdmaCommandCall *call)
{
    QrdmaEq *eq;
    enum qrdma_status status = find_named(engine, call->number, &eq);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (eq->users) {
        return QRDMA_STATUS_IN_USE;
    }
    qrdma_eq_free(engine, eq);
    return QRDMA_STATUS_OK;
}

/* ------------------------------------------------------------- saved state */

static void state_eq(QrdmaStream *stream, QrdmaEngine *engine, QrdmaEq *eq)
{
    qrdma_state_ring(stream, engine, "ring", &eq_limits, false, &eq->ring);
    qrdma_stream_u32(stream, "vector", &eq->vector, 0,
                     QRDMA_MSIX_VECTORS - 1);
    qrdma_state_counters(stream, &eq->ring, &eq->producer, &eq->consumer,
                         true);
    qrdma_stream_bool(stream, "armed", &eq->armed);
    qrdma_stream_bool(stream, "arm_request", &eq->arm_request);
}

void qrdma_state_eqs(QrdmaStream *stream, QrdmaEngine *engine)
{
    qrdma_stream_section(stream, "eqs ", 1);
    for (uint32_t i = 0; i < QRDMA_MAX_EQS; i++) {
        QrdmaEq *eq = qrdma_eq_find(engine, i);
        bool there = eq;

        qrdma_stream_enter_item(stream, "eq", i);
        qrdma_stream_bool(stream, "there", &there);
        if (there) {
            state_eq(stream, engine, eq ?: new_eq(engine, i));
        }
        qrdma_stream_leave(stream);
    }
}
