/*
 * qrdma engine: fault injection: what is held back, and comes later.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"
#include "queues-internal.h"

void qrdma_faults_init(QrdmaEngine *engine)
{
    engine->faults = g_new0(QrdmaFaults, 1);
    g_queue_init(&engine->faults->held);
}

void qrdma_held_free(QrdmaEngine *engine, QrdmaHeld *held)
{
    qrdma_umr_free(engine, held->umr);
    g_free(held->input);
    g_free(held);
}

static void take_out(QrdmaEngine *engine, QrdmaHeld *held)
{
    g_queue_unlink(&engine->faults->held, &held->link);
    qrdma_faults_update_timer(engine);
}

void qrdma_faults_reset(QrdmaEngine *engine)
{
    GQueue *all = &engine->faults->held;

    while (!g_queue_is_empty(all)) {
        QrdmaHeld *held = g_queue_peek_head(all);

        take_out(engine, held);
        qrdma_held_free(engine, held);
    }
}

void qrdma_faults_free(QrdmaEngine *engine)
{
    qrdma_faults_reset(engine);
    g_clear_pointer(&engine->faults, g_free);
}

QrdmaHeld *qrdma_faults_hold(QrdmaEngine *engine, const QrdmaFault *fault)
{
    QrdmaFaults *faults = engine->faults;
    QrdmaHeld *held;

    if (g_queue_get_length(&faults->held) >= QRDMA_MAX_HELD) {
        qrdma_guest_error(engine, "fault injection: no room to hold more back");
        return NULL;
    }
    held = g_new0(QrdmaHeld, 1);
    held->link.data = held;
    held->fault = *fault;
    held->swapped = fault->action == QRDMA_FAULT_SWAP;
    held->due = engine->ops->clock(engine->opaque) + fault->delay;
    g_queue_push_tail_link(&faults->held, &held->link);
    qrdma_faults_update_timer(engine);
    qrdma_engine_schedule(engine);
    return held;
}

QrdmaHeld *qrdma_faults_take_swapped(QrdmaEngine *engine,
                                     enum qrdma_fault_target target,
                                     uint32_t index, uint32_t opcode,
                                     uint32_t queue)
{
    for (GList *link = engine->faults->held.head; link; link = link->next) {
        QrdmaHeld *held = link->data;

        if (held->swapped && held->fault.target == target &&
            held->queue == queue &&
            qrdma_fault_matches(&held->fault, index, opcode)) {
            take_out(engine, held);
            return held;
        }
    }
    return NULL;
}

/* The first of the target that is due now; NULL: none. */
static QrdmaHeld *find_due(QrdmaEngine *engine, enum qrdma_fault_target target)
{
    uint64_t now = engine->ops->clock(engine->opaque);

    for (GList *link = engine->faults->held.head; link; link = link->next) {
        QrdmaHeld *held = link->data;

        if (held->fault.target == target && !held->swapped &&
            held->due <= now) {
            return held;
        }
    }
    return NULL;
}

bool qrdma_faults_has_due(QrdmaEngine *engine, enum qrdma_fault_target target)
{
    return !g_queue_is_empty(&engine->faults->held) &&
           find_due(engine, target);
}

QrdmaHeld *qrdma_faults_take_due(QrdmaEngine *engine,
                                 enum qrdma_fault_target target)
{
    QrdmaHeld *held = g_queue_is_empty(&engine->faults->held)
                      ? NULL : find_due(engine, target);

    if (held) {
        take_out(engine, held);
    }
    return held;
}

void qrdma_faults_forget(QrdmaEngine *engine, enum qrdma_fault_target target,
                         uint32_t queue)
{
    GList *next;

    for (GList *link = engine->faults->held.head; link; link = next) {
        QrdmaHeld *held = link->data;

        next = link->next;
        if (held->fault.target == target && held->queue == queue) {
            take_out(engine, held);
            qrdma_held_free(engine, held);
        }
    }
}

/* What is due already is taken by the next run, and needs no timer. */
void qrdma_faults_update_timer(QrdmaEngine *engine)
{
    uint64_t now = engine->ops->clock(engine->opaque);
    uint64_t first = engine->commands.not_before > now
                     ? engine->commands.not_before : UINT64_MAX;

    for (GList *link = engine->faults->held.head; link; link = link->next) {
        const QrdmaHeld *held = link->data;

        if (!held->swapped && held->due > now) {
            first = MIN(first, held->due);
        }
    }
    qrdma_engine_set_timer(engine, QRDMA_TIMER_FAULTS, first);
}

/* ----------------------------------------------------------------- doing it */

void qrdma_faults_do_umr(QrdmaEngine *engine, QrdmaHeld *held)
{
    enum qrdma_status status;
    QrdmaUmrProgress progress;

    do {
        progress = qrdma_umr_step(engine, held->umr, UINT_MAX, &status);
    } while (progress == QRDMA_UMR_MORE);
    if (progress == QRDMA_UMR_WAIT && qrdma_engine_running(engine)) {
        /* Comes again when it is woken: see QRDMA_OWNER_HELD. */
        held->swapped = false;
        held->due = UINT64_MAX;
        g_queue_push_tail_link(&engine->faults->held, &held->link);
        return;
    }
    qrdma_held_free(engine, held);
}

void qrdma_faults_umr_done(QrdmaEngine *engine, QrdmaUmr *umr)
{
    QrdmaHeld *held;

    if (g_queue_is_empty(&engine->faults->held)) {
        return;
    }
    while ((held = qrdma_faults_take_swapped(engine, QRDMA_FAULT_UMR,
                                             qrdma_umr_index(umr), 0, 0))) {
        qrdma_faults_do_umr(engine, held);
    }
}

void qrdma_faults_wake(QrdmaEngine *engine)
{
    for (GList *link = engine->faults->held.head; link; link = link->next) {
        QrdmaHeld *held = link->data;

        if (held->umr && held->due == UINT64_MAX) {
            held->due = 0;
        }
    }
    qrdma_engine_schedule(engine);
}

static void deliver_completion(QrdmaEngine *engine, QrdmaHeld *held)
{
    QrdmaCq *cq = qrdma_cq_find(engine, held->queue);

    if (cq) {
        qrdma_cq_deliver(engine, cq, &held->cqe);
    }
    qrdma_held_free(engine, held);
}

static void deliver_event(QrdmaEngine *engine, QrdmaHeld *held)
{
    QrdmaEq *eq = qrdma_eq_find(engine, held->queue);

    if (eq) {
        qrdma_eq_deliver(engine, eq, &held->eqe);
    }
    qrdma_held_free(engine, held);
}

void qrdma_faults_run(QrdmaEngine *engine)
{
    QrdmaHeld *held;

    while (qrdma_engine_running(engine) &&
           (held = qrdma_faults_take_due(engine, QRDMA_FAULT_UMR))) {
        qrdma_faults_do_umr(engine, held);
    }
    while (qrdma_engine_running(engine) &&
           (held = qrdma_faults_take_due(engine, QRDMA_FAULT_COMPLETION))) {
        deliver_completion(engine, held);
    }
    while (qrdma_engine_running(engine) &&
           (held = qrdma_faults_take_due(engine, QRDMA_FAULT_EVENT))) {
        deliver_event(engine, held);
    }
}

/* ------------------------------------------------------------- saved state */

static void state_held_command(QrdmaStream *stream, QrdmaHeld *held)
{
    uint32_t length;

    qrdma_stream_bytes(stream, "command", &held->command,
                       sizeof(held->command));
    if (!qrdma_stream_check(stream, qrdma_command_has_form(&held->command),
                            "command", "there is no such command")) {
        return;
    }
    length = qrdma_le32(held->command.input_length);
    if (qrdma_stream_is_loading(stream) && length) {
        held->input = g_malloc0(length);
    }
    qrdma_stream_bytes(stream, "input", held->input, length);
}

static void state_one_held(QrdmaStream *stream, QrdmaEngine *engine,
                           QrdmaHeld *held)
{
    qrdma_state_fault(stream, "fault", &held->fault);
    qrdma_stream_bool(stream, "swapped", &held->swapped);
    qrdma_stream_u64(stream, "due", &held->due, 0, UINT64_MAX);
    qrdma_stream_u32(stream, "queue", &held->queue, 0, UINT32_MAX);
    switch (held->fault.target) {
    case QRDMA_FAULT_COMMAND:
        state_held_command(stream, held);
        break;
    case QRDMA_FAULT_UMR:
        qrdma_state_umr(stream, engine, "umr", QRDMA_OWNER_HELD, &held->umr);
        qrdma_stream_check(stream, held->umr, "umr", "it is missing");
        break;
    case QRDMA_FAULT_COMPLETION:
        qrdma_stream_bytes(stream, "cqe", &held->cqe, sizeof(held->cqe));
        break;
    case QRDMA_FAULT_EVENT:
        qrdma_stream_bytes(stream, "eqe", &held->eqe, sizeof(held->eqe));
        break;
    default:
        qrdma_stream_fail(stream, "fault.target", "%d cannot be held back",
                          held->fault.target);
        break;
    }
}

/* In the list before it is loaded, so that a reset finds it. */
static QrdmaHeld *add_held(QrdmaFaults *faults)
{
    QrdmaHeld *held = g_new0(QrdmaHeld, 1);

    held->link.data = held;
    g_queue_push_tail_link(&faults->held, &held->link);
    return held;
}

void qrdma_state_held(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaFaults *faults = engine->faults;
    uint32_t count = g_queue_get_length(&faults->held);
    GList *link = faults->held.head;

    qrdma_stream_count(stream, "held", &count, QRDMA_MAX_HELD, 1);
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        QrdmaHeld *held = link ? link->data : add_held(faults);

        qrdma_stream_enter_item(stream, "held", i);
        state_one_held(stream, engine, held);
        qrdma_stream_leave(stream);
        link = link ? link->next : NULL;
    }
}
