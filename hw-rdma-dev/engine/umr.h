/*
 * qrdma engine: user memory registration, the work that changes live mkeys.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_UMR_H
#define QRDMA_UMR_H

#include "engine.h"
#include "mkey.h"

#define QRDMA_UMR_WQE_SIZE (1u << QRDMA_UMR_WQE_LOG_SIZE)

/* Table units that one step makes visible before other work gets its turn. */
#define QRDMA_UMR_SLICE 8

typedef struct QrdmaUmr QrdmaUmr;

typedef enum QrdmaUmrProgress {
    QRDMA_UMR_MORE,         /* step again; let other work in between */
    QRDMA_UMR_WAIT,         /* step again after qrdma_qp_wake() */
    QRDMA_UMR_DONE,         /* complete with success, then free */
    QRDMA_UMR_REFUSED,      /* nothing was changed; see *status, then free */
} QrdmaUmrProgress;

/* Start on a WQE of a UMR queue. The WQE is copied here, once. */
QrdmaUmr *qrdma_umr_new(QrdmaEngine *engine, uint32_t qpn,
                        const uint8_t wqe[QRDMA_UMR_WQE_SIZE]);

/*
 * The same change asked for by MODIFY_MKEY: no table, and neither counted as a
 * UMR nor refused by the diagnostic window.
 */
QrdmaUmr *qrdma_umr_new_modify(QrdmaEngine *engine, const QrdmaMkey *mkey,
                               uint64_t mask, const struct qrdma_mkc *mkc);

/*
 * Go on, with at most `budget` (at least 1) table units or context changes.
 *
 * Before the first byte is written the whole UMR has been validated and its
 * data staged. After the last change, accesses that began before it are waited
 * for. The card may be in fatal error when this returns (then QRDMA_UMR_WAIT).
 */
QrdmaUmrProgress qrdma_umr_step(QrdmaEngine *engine, QrdmaUmr *umr,
                                unsigned budget, enum qrdma_status *status);

/* ------------------------------------------------------- fault injection */

/* Before the first step: what a fault does to the UMR. */
void qrdma_umr_inject(QrdmaUmr *umr, const QrdmaFault *fault);

/* Of a MODIFY_MKEY: withheld as by DROP; held as one that was withheld. */
void qrdma_umr_set_late(QrdmaUmr *umr, bool withheld, bool held);

/* Mkey index that it names. */
uint32_t qrdma_umr_index(const QrdmaUmr *umr);

/*
 * The copy that a fault wants done later, with the data as it is now; NULL:
 * none. Its owner is QRDMA_OWNER_HELD. There when a step has validated the UMR.
 */
QrdmaUmr *qrdma_umr_take_kept(QrdmaUmr *umr);

/*
 * Over, at any point: what is not begun is dropped, what is begun is made whole
 * at once (so a mkey is never left between two states), and nothing is waited
 * for. NULL is allowed.
 */
void qrdma_umr_free(QrdmaEngine *engine, QrdmaUmr *umr);

#endif /* QRDMA_UMR_H */
