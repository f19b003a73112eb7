/*
 * qrdma engine: doorbells.
 *
 * A doorbell comes from any vCPU at any time, and user programs write them. It
 * may note a counter and have the engine called; nothing else.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"

#define DRIVER_PAGE 0

/* Bits of the low half that are neither number nor arm. */
#define UNUSED_BITS 0x3f000000u

void qrdma_doorbell_ignored(QrdmaEngine *engine)
{
    engine->counters.doorbells_ignored++;
    qrdma_status_set(engine, QRDMA_CARD_DOORBELL_ERROR);
}

/*
 * A counter outside the ring. One event for each queue until it is modified, so
 * that a program cannot fill the EQ with them.
 */
static void report_counter(QrdmaEngine *engine, enum qrdma_event type,
                           uint32_t number, enum qrdma_queue_error syndrome,
                           QrdmaPendingEvent *pending, bool *reported)
{
    struct qrdma_eqe event = {
        .number = qrdma_le32(number),
        .type = type,
        .syndrome = qrdma_le16(syndrome),
    };

    if (!*reported) {
        *reported = true;
        qrdma_guest_error(engine, "%s %u: doorbell with a counter outside "
                          "the ring",
                          type == QRDMA_EVENT_CQ_ERROR ? "CQ" : "QP", number);
        qrdma_event_pend(engine, qrdma_eq_find(engine, QRDMA_ASYNC_EQN),
                         pending, &event, true);
    }
}

/*
 * The producer may move forward only, to at most a ring's size ahead of the
 * consumer: what was rung for once may be in work.
 */
static bool ring_work_queue(QrdmaEngine *engine, QrdmaQp *qp,
                            QrdmaWorkQueue *queue, uint32_t counter)
{
    if (!queue->ring.entries || qp->state == QRDMA_QP_RESET) {
        return false;
    }
    if (!qrdma_ring_holds(&queue->ring, counter, queue->consumer) ||
        counter - queue->consumer < queue->producer - queue->consumer) {
        report_counter(engine, QRDMA_EVENT_QP_ERROR, qp->number,
                       QRDMA_QUEUE_ERROR_PRODUCER, &qp->bad_doorbell,
                       &queue->doorbell_reported);
        return false;
    }
    queue->producer = counter;
    return true;
}

static bool ring_qp(QrdmaEngine *engine, uint32_t page, uint32_t low,
                    uint32_t counter, bool send)
{
    QrdmaQp *qp = qrdma_qp_find(engine, low & QRDMA_DOORBELL_NUMBER_MASK);

    if (!qp || qp->doorbell_page != page ||
        (low & ~QRDMA_DOORBELL_NUMBER_MASK) ||
        !ring_work_queue(engine, qp, send ? &qp->send : &qp->receive,
                         counter)) {
        return false;
    }
    /* Receive WQEs are taken when a message comes, and flushed in error. */
    if (send || qp->state == QRDMA_QP_ERROR) {
        qrdma_qp_ready(engine, qp);
    }
    return true;
}

static bool ring_cq(QrdmaEngine *engine, uint32_t page, uint32_t low,
                    uint32_t counter)
{
    QrdmaCq *cq = qrdma_cq_find(engine, low & QRDMA_DOORBELL_NUMBER_MASK);
    unsigned arm = low >> QRDMA_DOORBELL_ARM_SHIFT;

    if (!cq || cq->doorbell_page != page || (low & UNUSED_BITS) ||
        arm > QRDMA_DOORBELL_ARM_SOLICITED) {
        return false;
    }
    if (!qrdma_ring_holds(&cq->ring, cq->producer, counter)) {
        report_counter(engine, QRDMA_EVENT_CQ_ERROR, cq->number,
                       QRDMA_QUEUE_ERROR_CONSUMER, &cq->bad_doorbell,
                       &cq->doorbell_reported);
        return false;
    }
    qrdma_cq_consumed(engine, cq, counter, arm);
    return true;
}

static bool ring_eq(QrdmaEngine *engine, uint32_t page, uint32_t low,
                    uint32_t counter)
{
    QrdmaEq *eq = qrdma_eq_find(engine, low & QRDMA_DOORBELL_NUMBER_MASK);
    unsigned arm = low >> QRDMA_DOORBELL_ARM_SHIFT;

    if (!eq || page != DRIVER_PAGE || (low & UNUSED_BITS) ||
        arm > QRDMA_DOORBELL_ARM_NEXT) {
        return false;
    }
    if (!qrdma_ring_holds(&eq->ring, eq->producer, counter)) {
        qrdma_guest_error(engine, "EQ %u: doorbell with a counter outside "
                          "the ring", eq->number);
        return false;
    }
    eq->consumer = counter;
    eq->arm_request |= arm == QRDMA_DOORBELL_ARM_NEXT;
    qrdma_eq_request_work(engine, eq);
    return true;
}

void qrdma_queues_doorbell(QrdmaEngine *engine, uint32_t page, uint32_t offset,
                           uint64_t value, unsigned size)
{
    uint32_t low = value;
    uint32_t counter = value >> QRDMA_DOORBELL_COUNTER_SHIFT;
    bool taken = false;

    if (size == sizeof(uint64_t)) {
        switch (offset) {
        case QRDMA_DOORBELL_SEND:
            taken = ring_qp(engine, page, low, counter, true);
            break;
        case QRDMA_DOORBELL_RECEIVE:
            taken = ring_qp(engine, page, low, counter, false);
            break;
        case QRDMA_DOORBELL_CQ:
            taken = ring_cq(engine, page, low, counter);
            break;
        case QRDMA_DOORBELL_EQ:
            taken = ring_eq(engine, page, low, counter);
            break;
        }
    }
    if (!taken) {
        qrdma_doorbell_ignored(engine);
    }
}
