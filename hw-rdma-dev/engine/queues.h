/*
 * qrdma engine: what the rest of the engine asks of queues and transport.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_QUEUES_H
#define QRDMA_QUEUES_H

#include "engine.h"

/* All EQs, CQs, QPs, packets in flight and the scheduler. */
typedef struct QrdmaQueues QrdmaQueues;

QrdmaQueues *qrdma_queues_new(QrdmaEngine *engine);

/*
 * Free every queue. Accesses in flight are ended, UMRs are freed (mkeys and SDs
 * are still there); no DMA, no interrupt, no timer follows.
 */
void qrdma_queues_reset(QrdmaEngine *engine);

/* After a reset; frees what qrdma_queues_new() made. */
void qrdma_queues_free(QrdmaEngine *engine);

/*
 * A slice of the queues' work; true if there is more. Called only while the
 * card runs. Must stop as soon as qrdma_engine_running() is no longer true.
 */
bool qrdma_queues_run(QrdmaEngine *engine);

/* The timer's deadline has passed. Called only while the card runs. */
void qrdma_queues_timer(QrdmaEngine *engine);

/*
 * A doorbell as it came; called only while the card runs. Checks everything
 * about it, does no work but note the counter and qrdma_engine_schedule().
 */
void qrdma_queues_doorbell(QrdmaEngine *engine, uint32_t page, uint32_t offset,
                           uint64_t value, unsigned size);

/* A doorbell is ignored: count it and show it in the status register. */
void qrdma_doorbell_ignored(QrdmaEngine *engine);

/*
 * Step the UMR of this QP again. The number may be that of a QP that is gone,
 * or has nothing to do. Only notes it and schedules.
 */
void qrdma_qp_wake(QrdmaEngine *engine, uint32_t qpn);

#endif /* QRDMA_QUEUES_H */
