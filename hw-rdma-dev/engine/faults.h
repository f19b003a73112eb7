/*
 * qrdma engine: fault injection: the card does not do what it should, at a
 * point that somebody chose. What each action means is in qrdma_diagnostic.h.
 *
 * The places where commands, UMRs, completions, events and DMA pass ask here,
 * and act on the answer themselves. With nothing armed that costs one test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FAULTS_H
#define QRDMA_FAULTS_H

#include <glib.h>

#include "engine.h"
#include "umr.h"

/* Things held back at the same time. What finds no room is done as usual. */
#define QRDMA_MAX_HELD 64

/* What is held back, and the fault that did it. */
typedef struct QrdmaHeld {
    GList link;                 /* data: this; in faults->held */
    QrdmaFault fault;
    bool swapped;               /* comes with the next one that matches */
    uint64_t due;               /* else: when; virtual time */

    /* By fault.target: */
    QrdmaUmr *umr;
    struct qrdma_command command;
    void *input;                /* of the command; may be NULL */
    uint32_t queue;             /* CQN or EQN */
    union {
        struct qrdma_cqe cqe;
        struct qrdma_eqe eqe;
    };
} QrdmaHeld;

typedef struct QrdmaFaults {
    uint32_t targets;           /* bit n: something is armed for target n */
    QrdmaFault armed[QRDMA_MAX_FAULTS]; /* in the order they were armed */
    unsigned count;
    uint32_t fired;
    GQueue held;                /* in the order they were held */

    /* The register window. */
    QrdmaFault described;
    enum qrdma_fault_result result;
} QrdmaFaults;                  /* engine->faults */

void qrdma_faults_init(QrdmaEngine *engine);
void qrdma_faults_free(QrdmaEngine *engine);

/* What is held back is dropped; faults stay armed. */
void qrdma_faults_reset(QrdmaEngine *engine);

/* ----------------------------------------------------------------- asking */

/* Whether it means this thing of its target, which is not DMA. */
static inline bool qrdma_fault_matches(const QrdmaFault *fault, uint32_t index,
                                       uint32_t opcode)
{
    return (!fault->index || fault->index == index) &&
           (!fault->opcode || fault->opcode == opcode);
}

/*
 * Something has come. True if a fault hits it: *hit says how. Counts, so it is
 * asked once a thing.
 */
bool qrdma_fault_take(QrdmaEngine *engine, enum qrdma_fault_target target,
                      uint32_t index, uint32_t opcode, QrdmaFault *hit);

/* The same for a transfer of the card's; true if it is to fail. */
bool qrdma_fault_dma(QrdmaEngine *engine, bool write, uint64_t address,
                     uint64_t length);

/*
 * QRDMA_WITHOUT_FAULTS takes fault injection out of the paths of accesses, to
 * count what it costs there while nothing is armed.
 */
#ifdef QRDMA_WITHOUT_FAULTS
#define QRDMA_FAULTS_POSSIBLE false
#else
#define QRDMA_FAULTS_POSSIBLE true
#endif

static inline bool qrdma_faults_of(const QrdmaFaults *faults,
                                   enum qrdma_fault_target target)
{
    return QRDMA_FAULTS_POSSIBLE &&
           G_UNLIKELY(faults->targets & 1u << target);
}

/* Whether anything is held back. */
static inline bool qrdma_faults_holding(const QrdmaFaults *faults)
{
    return QRDMA_FAULTS_POSSIBLE && G_UNLIKELY(faults->held.head);
}

/* --------------------------------------------------------------- held back */

/*
 * Hold something back until fault->delay has passed or, for SWAP, until the
 * next one comes. The caller fills in what it is. NULL: there is no room.
 */
QrdmaHeld *qrdma_faults_hold(QrdmaEngine *engine, const QrdmaFault *fault);

/*
 * Such a thing is done: take out the first one that was to be swapped with it;
 * NULL if there is none (any more). `queue` as in QrdmaHeld; else 0.
 */
QrdmaHeld *qrdma_faults_take_swapped(QrdmaEngine *engine,
                                     enum qrdma_fault_target target,
                                     uint32_t index, uint32_t opcode,
                                     uint32_t queue);

/* Whether something of the target is due. */
bool qrdma_faults_has_due(QrdmaEngine *engine, enum qrdma_fault_target target);

/* The first that is due, taken out; NULL: none. */
QrdmaHeld *qrdma_faults_take_due(QrdmaEngine *engine,
                                 enum qrdma_fault_target target);

/* Free what has been taken out, and what it holds. */
void qrdma_held_free(QrdmaEngine *engine, QrdmaHeld *held);

/* The queue goes: nothing of it comes any more. */
void qrdma_faults_forget(QrdmaEngine *engine, enum qrdma_fault_target target,
                         uint32_t queue);

/*
 * A UMR of the queue's is done, and about to complete: do what was to be done
 * with it. It has given up its mkey.
 */
void qrdma_faults_umr_done(QrdmaEngine *engine, QrdmaUmr *umr);

/*
 * A held UMR of its own, now; it comes back here where it has to wait. It has
 * been taken out, and is freed.
 */
void qrdma_faults_do_umr(QrdmaEngine *engine, QrdmaHeld *held);

/* Held UMRs that wait for a mkey may go on. */
void qrdma_faults_wake(QrdmaEngine *engine);

/* Whatever is due, but commands: those are done in their queue. */
void qrdma_faults_run(QrdmaEngine *engine);

/* Set the timer for what is due first. */
void qrdma_faults_update_timer(QrdmaEngine *engine);

#endif /* QRDMA_FAULTS_H */
