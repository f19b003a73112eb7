/*
 * qrdma engine: saved state: queues, and who stands in which line.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "queues-internal.h"
#include "state.h"

/* ------------------------------------------------- lines of queue pairs */

static QrdmaQp *state_qpn(QrdmaStream *stream, QrdmaEngine *engine,
                          const char *name, const QrdmaQp *qp)
{
    uint32_t number = qp ? qp->number : 0;
    QrdmaQp *found;

    qrdma_stream_u32(stream, name, &number, QRDMA_FIRST_QPN,
                     QRDMA_MAX_QPS - 1);
    found = qrdma_qp_find(engine, number);
    return qrdma_stream_check(stream, found, name, "there is no QP %u", number)
           ? found : NULL;
}

static void state_ready(QrdmaStream *stream, QrdmaEngine *engine)
{
    GQueue *ready = &engine->queues->ready;
    uint32_t count = g_queue_get_length(ready);
    GList *link = ready->head;

    qrdma_stream_count(stream, "ready", &count, QRDMA_MAX_QPS,
                       sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        bool loading = !link;
        QrdmaQp *qp = state_qpn(stream, engine, "ready",
                                link ? link->data : NULL);

        if (loading && qp && qrdma_stream_check(stream, !qp->ready, "ready",
                                                "QP %u comes twice",
                                                qp->number)) {
            qp->ready = true;
            g_queue_push_tail_link(ready, &qp->ready_link);
        }
        link = link ? link->next : NULL;
    }
}

/* Soonest first, so that each goes to the end when it is loaded. */
static void state_deadlines(QrdmaStream *stream, QrdmaEngine *engine)
{
    GSequence *deadlines = engine->queues->deadlines;
    uint32_t count = g_sequence_get_length(deadlines);
    GSequenceIter *iter = g_sequence_get_begin_iter(deadlines);
    bool loading = qrdma_stream_is_loading(stream);
    uint64_t last = 0;

    qrdma_stream_count(stream, "deadlines", &count, QRDMA_MAX_QPS,
                       sizeof(uint32_t) + sizeof(uint64_t));
    for (uint32_t i = 0; i < count; i++) {
        QrdmaQp *qp = state_qpn(stream, engine, "deadline.qp",
                                loading ? NULL : g_sequence_get(iter));

        if (!qp) {
            return;
        }
        qrdma_stream_u64(stream, "deadline", &qp->deadline, last, UINT64_MAX);
        last = qp->deadline;
        if (!loading) {
            iter = g_sequence_iter_next(iter);
        } else if (qrdma_stream_check(stream, !qp->deadline_iter, "deadline",
                                      "QP %u comes twice", qp->number)) {
            qp->deadline_iter = g_sequence_append(deadlines, qp);
        }
    }
}

/* ----------------------------------------------------------- pending events */

/* Whose event it is. */
typedef enum PendingKind {
    PENDING_COMPLETION,
    PENDING_CQ_DOORBELL,
    PENDING_PAGE_FAULT,
    PENDING_QP_DOORBELL,
    PENDING_KINDS
} PendingKind;

/* The event of an object, and the EQ that it may wait on. */
static QrdmaPendingEvent *find_pending(QrdmaEngine *engine, PendingKind kind,
                                       uint32_t number, QrdmaEq **eq)
{
    QrdmaCq *cq = kind < PENDING_PAGE_FAULT ? qrdma_cq_find(engine, number)
                                            : NULL;
    QrdmaQp *qp = kind < PENDING_PAGE_FAULT ? NULL
                                            : qrdma_qp_find(engine, number);

    *eq = qrdma_eq_find(engine, QRDMA_ASYNC_EQN);
    if (!cq && !qp) {
        return NULL;
    }
    switch (kind) {
    case PENDING_COMPLETION:
        *eq = cq->eq;
        return &cq->completion;
    case PENDING_CQ_DOORBELL:
        return &cq->bad_doorbell;
    case PENDING_PAGE_FAULT:
        return qp->wait == QRDMA_WAIT_FAULT ? &qp->page_fault : NULL;
    default:
        return &qp->bad_doorbell;
    }
}

/* The event names its object, and its type the kind. */
static void identify(QrdmaEngine *engine, const QrdmaPendingEvent *pending,
                     PendingKind *kind, uint32_t *number)
{
    QrdmaEq *eq;

    *number = qrdma_le32(pending->event.number);
    for (*kind = 0; *kind < PENDING_KINDS; (*kind)++) {
        if (find_pending(engine, *kind, *number, &eq) == pending) {
            return;
        }
    }
    g_assert_not_reached();
}

static void state_pending(QrdmaStream *stream, QrdmaEngine *engine,
                          QrdmaEq *eq, QrdmaPendingEvent *pending)
{
    bool loading = !pending;
    PendingKind kind = 0;
    uint32_t number = 0;
    QrdmaEq *place;

    if (pending) {
        identify(engine, pending, &kind, &number);
    }
    qrdma_stream_enum(stream, "pending.kind", &kind, 0, PENDING_KINDS - 1);
    qrdma_stream_u32(stream, "pending.number", &number, 0, UINT32_MAX);
    pending = find_pending(engine, kind, number, &place);
    if (!qrdma_stream_check(stream, pending && place == eq && !pending->eq,
                            "pending.number",
                            "%u has no event that could wait here", number)) {
        return;
    }
    qrdma_stream_bytes(stream, "pending.event", &pending->event,
                       sizeof(pending->event));
    if (loading && qrdma_stream_check(stream, qrdma_le32(pending->event.number)
                                      == number, "pending.event",
                                      "it names another than %u", number)) {
        pending->eq = eq;
        pending->link.data = pending;
        g_queue_push_tail_link(&eq->pending, &pending->link);
    }
}

/* A queue has two events at most that can wait. */
#define MAX_PENDING (2 * (QRDMA_MAX_CQS + QRDMA_MAX_QPS))

static void state_all_pending(QrdmaStream *stream, QrdmaEngine *engine,
                              QrdmaEq *eq)
{
    uint32_t count = g_queue_get_length(&eq->pending);
    GList *link = eq->pending.head;

    qrdma_stream_count(stream, "pending", &count, MAX_PENDING,
                       sizeof(struct qrdma_eqe));
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        state_pending(stream, engine, eq, link ? link->data : NULL);
        link = link ? link->next : NULL;
    }
}

/* ---------------------------------------------------- lines of event queues */

static void state_eq_work(QrdmaStream *stream, QrdmaEngine *engine)
{
    GQueue *work = &engine->queues->eq_work;
    uint32_t count = g_queue_get_length(work);
    GList *link = work->head;

    qrdma_stream_count(stream, "eq_work", &count, QRDMA_MAX_EQS,
                       sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        QrdmaEq *eq = link ? link->data : NULL;
        uint32_t number = eq ? eq->number : 0;

        qrdma_stream_u32(stream, "eq_work", &number, 0, QRDMA_MAX_EQS - 1);
        link = link ? link->next : NULL;
        if (eq) {
            continue;
        }
        eq = qrdma_eq_find(engine, number);
        if (qrdma_stream_check(stream, eq && !eq->in_work, "eq_work",
                               "no EQ %u is left to be worked on", number)) {
            eq->in_work = true;
            g_queue_push_tail_link(work, &eq->work_link);
        }
    }
}

static void state_lines(QrdmaStream *stream, QrdmaEngine *engine)
{
    qrdma_stream_section(stream, "line", 1);
    qrdma_stream_u32(stream, "last_token", &engine->queues->last_token, 0,
                     UINT32_MAX);
    state_ready(stream, engine);
    state_deadlines(stream, engine);
    for (uint32_t i = 0; i < QRDMA_MAX_EQS; i++) {
        QrdmaEq *eq = qrdma_eq_find(engine, i);

        if (eq) {
            qrdma_stream_enter_item(stream, "eq", i);
            state_all_pending(stream, engine, eq);
            qrdma_stream_leave(stream);
        }
    }
    state_eq_work(stream, engine);
}

void qrdma_state_queues(QrdmaStream *stream, QrdmaEngine *engine)
{
    qrdma_state_eqs(stream, engine);
    qrdma_state_cqs(stream, engine);
    qrdma_state_qps(stream, engine);
    qrdma_state_flight(stream, engine);
    state_lines(stream, engine);
}
