/*
 * qrdma engine: who works next.
 *
 * Queue pairs that have something to do stand in line, and each does a bounded
 * piece of it in its turn: a slice of a UMR, a packet, some flushed WQEs. So
 * changes of a mkey and accesses through it come between each other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"

/* Turns of one run; a turn moves at most 64 KiB. */
#define TURNS_PER_RUN 64

QrdmaQueues *qrdma_queues_new(QrdmaEngine *engine)
{
    QrdmaQueues *queues = g_new0(QrdmaQueues, 1);

    g_queue_init(&queues->eq_work);
    g_queue_init(&queues->ready);
    queues->deadlines = g_sequence_new(NULL);
    return queues;
}

void qrdma_queues_reset(QrdmaEngine *engine)
{
    QrdmaQueues *queues = engine->queues;

    for (unsigned i = 0; queues->num_qps; i++) {
        if (queues->qps[i]) {
            qrdma_qp_free(engine, queues->qps[i]);
        }
    }
    for (unsigned i = 0; queues->num_cqs; i++) {
        if (queues->cqs[i]) {
            qrdma_cq_free(engine, queues->cqs[i]);
        }
    }
    for (unsigned i = 0; i < QRDMA_MAX_EQS; i++) {
        if (queues->eqs[i]) {
            qrdma_eq_free(engine, queues->eqs[i]);
        }
    }
    queues->last_token = 0;
}

void qrdma_queues_free(QrdmaEngine *engine)
{
    g_sequence_free(engine->queues->deadlines);
    g_free(engine->queues);
    engine->queues = NULL;
}

/* ----------------------------------------------------------------- in line */

void qrdma_qp_ready(QrdmaEngine *engine, QrdmaQp *qp)
{
    if (!qp->ready) {
        qp->ready = true;
        g_queue_push_tail_link(&engine->queues->ready, &qp->ready_link);
    }
    qrdma_engine_schedule(engine);
}

void qrdma_qp_not_ready(QrdmaEngine *engine, QrdmaQp *qp)
{
    if (qp->ready) {
        qp->ready = false;
        g_queue_unlink(&engine->queues->ready, &qp->ready_link);
    }
}

void qrdma_qp_wake(QrdmaEngine *engine, uint32_t qpn)
{
    QrdmaQp *qp = qrdma_qp_find(engine, qpn);

    if (qp && qp->wait == QRDMA_WAIT_UMR) {
        qp->wait = QRDMA_WAIT_NOTHING;
        qrdma_qp_ready(engine, qp);
    }
}

/* --------------------------------------------------------------- deadlines */

/* Soonest first; those of the same moment in the order they were set. */
static gint compare_deadlines(gconstpointer left, gconstpointer right,
                              gpointer unused)
{
    const QrdmaQp *a = left;
    const QrdmaQp *b = right;

    return a->deadline < b->deadline ? -1 : a->deadline > b->deadline;
}

static void update_timer(QrdmaEngine *engine)
{
    GSequenceIter *first =
        g_sequence_get_begin_iter(engine->queues->deadlines);
    uint64_t deadline = UINT64_MAX;

    if (!g_sequence_iter_is_end(first)) {
        const QrdmaQp *qp = g_sequence_get(first);

        deadline = qp->deadline;
    }
    qrdma_engine_set_timer(engine, QRDMA_TIMER_QUEUES, deadline);
}

void qrdma_qp_set_deadline(QrdmaEngine *engine, QrdmaQp *qp, uint64_t delay)
{
    qrdma_qp_clear_deadline(engine, qp);
    qp->deadline = engine->ops->clock(engine->opaque) + delay;
    qp->deadline_iter = g_sequence_insert_sorted(engine->queues->deadlines, qp,
                                                 compare_deadlines, NULL);
    update_timer(engine);
}

void qrdma_qp_clear_deadline(QrdmaEngine *engine, QrdmaQp *qp)
{
    if (qp->deadline_iter) {
        g_sequence_remove(qp->deadline_iter);
        qp->deadline_iter = NULL;
        update_timer(engine);
    }
}

void qrdma_queues_timer(QrdmaEngine *engine)
{
    QrdmaQueues *queues = engine->queues;
    uint64_t now = engine->ops->clock(engine->opaque);

    while (!g_sequence_is_empty(queues->deadlines)) {
        GSequenceIter *first = g_sequence_get_begin_iter(queues->deadlines);
        QrdmaQp *qp = g_sequence_get(first);

        if (qp->deadline > now) {
            break;
        }
        g_sequence_remove(first);
        qp->deadline_iter = NULL;
        qrdma_qp_ready(engine, qp);
    }
    update_timer(engine);
}

/* -------------------------------------------------------------- UMR queues */

/* What fault injection wants of the UMR. False: not to be begun now. */
static bool inject(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaFault fault;

    if (!qrdma_fault_take(engine, QRDMA_FAULT_UMR, qp->umr_index, 0, &fault)) {
        return true;
    }
    qp->umr_fault = fault;
    if (fault.action == QRDMA_FAULT_DELAY) {
        qrdma_qp_set_deadline(engine, qp, fault.delay);
        return false;
    }
    if (fault.action == QRDMA_FAULT_FATAL &&
        fault.point == QRDMA_FAULT_POINT_BEFORE) {
        qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        return false;
    }
    qrdma_umr_inject(qp->umr, &fault);
    return true;
}

/* The copy that comes later. DUPLICATE without a delay: at the next run. */
static void hold_kept(QrdmaEngine *engine, QrdmaQp *qp)
{
    QrdmaUmr *kept = qrdma_umr_take_kept(qp->umr);
    QrdmaHeld *held;

    if (!kept) {
        return;
    }
    held = qrdma_faults_hold(engine, &qp->umr_fault);
    if (held) {
        held->umr = kept;
    } else {
        qrdma_umr_free(engine, kept);
    }
}

/* Start on the next WQE; false if there is none, or it is not readable. */
static bool begin_umr(QrdmaEngine *engine, QrdmaQp *qp)
{
    uint8_t slot[QRDMA_UMR_WQE_SIZE];

    if (qp->state != QRDMA_QP_RTS || qp->send.consumer == qp->send.producer) {
        return false;
    }
    if (!qrdma_ring_read(engine, &qp->send.ring, qp->send.consumer, slot)) {
        qrdma_qp_fail(engine, qp, QRDMA_QUEUE_ERROR_DMA);
        return false;
    }
    qp->umr = qrdma_umr_new(engine, qp->number, slot);
    qp->umr_index = qrdma_umr_index(qp->umr);
    qp->umr_signaled = slot[offsetof(struct qrdma_umr_wqe, flags)] &
                       QRDMA_WQE_SIGNALED;
    return inject(engine, qp);
}

static void end_umr(QrdmaEngine *engine, QrdmaQp *qp, bool refused,
                    enum qrdma_status status)
{
    struct qrdma_cqe cqe = {
        .opcode = QRDMA_CQE_OP_UMR,
        .status = refused ? QRDMA_CQE_UMR_ERROR : QRDMA_CQE_SUCCESS,
        .syndrome = qrdma_le16(refused ? status : QRDMA_STATUS_OK),
    };

    hold_kept(engine, qp);
    qrdma_umr_free(engine, qp->umr);
    qp->umr = NULL;
    if (refused || qp->umr_signaled) {
        qrdma_qp_complete(engine, qp, &qp->send, &cqe);
    } else {
        qp->send.consumer++;
    }
    qp->umr_index = 0;
    if (refused) {
        qrdma_qp_to_error(engine, qp);
    }
}

static bool umr_turn(QrdmaEngine *engine, QrdmaQp *qp)
{
    enum qrdma_status status = QRDMA_STATUS_OK;
    QrdmaUmrProgress progress;
    bool woken;

    if (qp->wait == QRDMA_WAIT_UMR || qp->deadline_iter ||
        (!qp->umr && !begin_umr(engine, qp))) {
        return false;
    }
    /* What the step itself sets free may be what it waits for. */
    qp->wait = QRDMA_WAIT_UMR;
    progress = qrdma_umr_step(engine, qp->umr, QRDMA_UMR_SLICE, &status);
    woken = qp->wait == QRDMA_WAIT_NOTHING;
    if (progress == QRDMA_UMR_WAIT) {
        return woken;
    }
    qp->wait = QRDMA_WAIT_NOTHING;
    if (progress != QRDMA_UMR_MORE) {
        end_umr(engine, qp, progress == QRDMA_UMR_REFUSED, status);
    }
    return true;
}

/* ----------------------------------------------------------------- the run */

static bool take_turn(QrdmaEngine *engine, QrdmaQp *qp)
{
    switch (qp->state) {
    case QRDMA_QP_RTS:
    case QRDMA_QP_SQD:
        return qp->type == QRDMA_QP_UMR ? umr_turn(engine, qp)
                                        : qrdma_send_turn(engine, qp);
    case QRDMA_QP_ERROR:
        return qrdma_qp_flush_turn(engine, qp);
    default:
        return false;
    }
}

static void work_event_queues(QrdmaEngine *engine)
{
    QrdmaQueues *queues = engine->queues;

    while (!g_queue_is_empty(&queues->eq_work) &&
           qrdma_engine_running(engine)) {
        GList *link = g_queue_pop_head_link(&queues->eq_work);
        QrdmaEq *eq = link->data;

        eq->in_work = false;
        qrdma_eq_work(engine, eq);
    }
}

bool qrdma_queues_run(QrdmaEngine *engine)
{
    QrdmaQueues *queues = engine->queues;

    work_event_queues(engine);
    for (unsigned i = 0; i < TURNS_PER_RUN; i++) {
        QrdmaQp *qp;

        if (g_queue_is_empty(&queues->ready) ||
            !qrdma_engine_running(engine)) {
            break;
        }
        qp = g_queue_peek_head(&queues->ready);
        qrdma_qp_not_ready(engine, qp);
        if (take_turn(engine, qp)) {
            qrdma_qp_ready(engine, qp);
        }
    }
    return qrdma_engine_running(engine) && !g_queue_is_empty(&queues->ready);
}
