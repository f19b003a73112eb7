/*
 * qrdma engine: what a card's saved state is made of.
 *
 * Each function describes, for both directions (stream.h), what one part of the
 * engine holds. Loading begins with an engine just reset, in the order in which
 * state.c calls them: what is referred to is there before what refers to it.
 *
 * What follows from something else is not saved: the counts of users of SDs,
 * EQs and CQs, accesses in flight, who owns a mkey. Whoever holds such a thing
 * takes it again when it is loaded, by the same calls as ever where there are
 * any, so the counts cannot disagree with the holders.
 *
 * A load that fails leaves half a card, which has to be good enough to be
 * reset.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_STATE_H
#define QRDMA_STATE_H

#include "engine-internal.h"
#include "ring.h"
#include "stream.h"

/*
 * state-card.c: configuration (what the guest sees of it has to be the same),
 * registers, counters, random numbers.
 */
void qrdma_state_card(QrdmaStream *stream, QrdmaEngine *engine);

/* gid.c, hmc.c, mkey.c */
void qrdma_state_gids(QrdmaStream *stream, QrdmaEngine *engine);
void qrdma_state_hmc(QrdmaStream *stream, QrdmaEngine *engine);
void qrdma_state_mkeys(QrdmaStream *stream, QrdmaEngine *engine);

/* A context, by its wire form; an invalid one is refused. */
void qrdma_state_mkc(QrdmaStream *stream, const char *name, QrdmaMkc *mkc);

/* -------------------------------------------------------------- state-umr.c */

/*
 * A UMR at any point of its course, or NULL. Loaded, it owns the mkey and holds
 * the SDs that it did. `number`: whose it has to be (QPN, QRDMA_OWNER_COMMAND,
 * QRDMA_OWNER_HELD).
 */
void qrdma_state_umr(QrdmaStream *stream, QrdmaEngine *engine,
                     const char *name, uint32_t number, QrdmaUmr **umr);

/* command.c. After the queues: a command that waits may name one. */
void qrdma_state_commands(QrdmaStream *stream, QrdmaEngine *engine);

/* ------------------------------------------------------------------- queues */

/*
 * ring.c. Loaded, it holds its SDs and pages. optional: there may be none.
 */
void qrdma_state_ring(QrdmaStream *stream, QrdmaEngine *engine,
                      const char *name, const QrdmaRingLimits *limits,
                      bool optional, QrdmaRing *ring);

/*
 * ring.c. Free-running counters of a ring that has been loaded. Where they do
 * not fit it, the guest's is named: the consumer if the card produces.
 */
void qrdma_state_counters(QrdmaStream *stream, const QrdmaRing *ring,
                          uint32_t *producer, uint32_t *consumer,
                          bool card_produces);

/* eq.c, cq.c, qp.c: the objects, without work in flight. */
void qrdma_state_eqs(QrdmaStream *stream, QrdmaEngine *engine);
void qrdma_state_cqs(QrdmaStream *stream, QrdmaEngine *engine);
void qrdma_state_qps(QrdmaStream *stream, QrdmaEngine *engine);

/* state-flight.c: messages, packets and UMRs of all QPs, which are there. */
void qrdma_state_flight(QrdmaStream *stream, QrdmaEngine *engine);

/* state-queues.c: all of these, and who stands in line. */
void qrdma_state_queues(QrdmaStream *stream, QrdmaEngine *engine);

/* ------------------------------------------------- faults.c, faults-held.c */

/* A fault that is armed, or has hit something. No action: it is none. */
void qrdma_state_fault(QrdmaStream *stream, const char *name,
                       QrdmaFault *fault);
void qrdma_state_faults(QrdmaStream *stream, QrdmaEngine *engine);
void qrdma_state_held(QrdmaStream *stream, QrdmaEngine *engine);

/* ------------------------------------------------------------ state-audit.c */

/* engine->audit is not NULL. After everything else. */
void qrdma_state_audit(QrdmaStream *stream, QrdmaEngine *engine);

#endif /* QRDMA_STATE_H */
