/*
 * qrdma engine: fault injection: the card does not do what it should, at a point
 * that somebody chose. What each action means is said in qrdma_diagnostic.h.
 *
 * The places where commands, UMRs, completions, events and DMA pass ask here, and
 * act on the answer themselves. With nothing armed that costs one test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FAULTS_H
#define QRDMA_FAULTS_H

#include "engine.h"

typedef struct QrdmaFaults QrdmaFaults;         /* engine->faults */

void qrdma_faults_init(QrdmaEngine *engine);
void qrdma_faults_free(QrdmaEngine *engine);

/* What is held back is dropped; faults stay armed. */
void qrdma_faults_reset(QrdmaEngine *engine);

#endif /* QRDMA_FAULTS_H */
