/*
 * qrdma engine: the audit: whether an access could ever have gone through a
 * half-updated mapping or a revoked key.
 *
 * For every watched mkey it keeps what the map showed when it was last settled
 * ("old"), what it shows now, and what of that was neither old nor absent in
 * the present change window. When the window ends (timeline.h), all of it is
 * judged against what the map is then to show ("new").
 *
 * "New" is what the driver asked for. Fault injection can make the card do
 * something else; then the audit follows the driver's wish in a copy, until the
 * card and the wish agree again.
 *
 * The audit reads the card's own state and shares no code with the access path
 * that it judges. Functions that take a UMR or a mkey do nothing for one that
 * is not watched; those of accesses are called for watched ones only. While the
 * audit is off, an access costs one test of a pointer, and so does a packet
 * that arrives.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_AUDIT_H
#define QRDMA_AUDIT_H

#include "access.h"
#include "engine.h"
#include "mkey.h"
#include "timeline.h"
#include "umr.h"

typedef struct QrdmaAudit QrdmaAudit;           /* engine->audit; NULL: off */

/*
 * Whether there is an audit. QRDMA_WITHOUT_AUDIT takes it out of the access
 * path, to count what it costs there while it is off.
 */
#ifdef QRDMA_WITHOUT_AUDIT
#define QRDMA_AUDITED(engine) ((void)(engine), false)
#else
#define QRDMA_AUDITED(engine) G_UNLIKELY((engine)->audit)
#endif

/* Tables of more entries are not watched, and counted as such. */
#define QRDMA_AUDIT_MAX_ENTRIES (1u << 20)

void qrdma_audit_init(QrdmaEngine *engine);
void qrdma_audit_free(QrdmaEngine *engine);

/* The card is being reset: no watches any more; counters and findings stay. */
void qrdma_audit_reset(QrdmaEngine *engine);

/*
 * No watches, findings or counters any more, and nothing is judged: what has
 * been loaded is only half of a state.
 */
void qrdma_audit_forget(QrdmaEngine *engine);

/* ------------------------------------------------------- life of the mkey */

/* The mkey is in its place in the table of mkeys. */
void qrdma_audit_created(QrdmaEngine *engine, QrdmaMkey *mkey);

/* CREATE_MKEY of an index that is taken; `mkey` is the one that has it. */
void qrdma_audit_index_reused(QrdmaEngine *engine, QrdmaMkey *mkey);

/*
 * DESTROY_MKEY completes. `done` is false where an injected fault has it
 * complete without being done (yet): from here on the driver may rely on the
 * mkey being gone. Done: the mkey is about to be freed.
 */
void qrdma_audit_destroyed(QrdmaEngine *engine, QrdmaMkey *mkey, bool done);

/* INVALIDATE_TRANSLATIONS: the table may have been written by the CPU. */
void qrdma_audit_invalidated(QrdmaEngine *engine, QrdmaMkey *mkey);

/* ----------------------------------------------------------------- changes */

/* Units first..first+count-1 of the UMR's data have become visible. */
void qrdma_audit_units(QrdmaEngine *engine, const QrdmaUmr *umr, uint32_t first,
                       uint32_t count);

/* The UMR's context fields have become visible. */
void qrdma_audit_context(QrdmaEngine *engine, const QrdmaUmr *umr);

/*
 * The UMR, or MODIFY_MKEY, is about to complete as success: the driver may rely
 * on it. `done` is false where an injected fault has it complete without being
 * done (yet). The UMR has been validated; its data is staged.
 */
void qrdma_audit_wished(QrdmaEngine *engine, const QrdmaUmr *umr, bool done);

/*
 * It completes; or what a fault held back has been done. See whether the map
 * has settled.
 */
void qrdma_audit_settle(QrdmaEngine *engine, const QrdmaUmr *umr);

/* ---------------------------------------------------------------- accesses */

/* Granted: `access` has begun. Gives back QRDMA_ACCESS_GRANTED. */
QrdmaAccessResult qrdma_audit_granted(QrdmaEngine *engine,
                                      const QrdmaAccessRequest *request,
                                      QrdmaAccess *access);

/* Refused or faulted. */
void qrdma_audit_refused(QrdmaEngine *engine, const QrdmaAccessRequest *request,
                         const QrdmaAccess *access);

/* Its data is about to be moved: the last moment at which it must be right. */
void qrdma_audit_moving(QrdmaEngine *engine, const QrdmaAccessRequest *request,
                        QrdmaAccess *access);

#endif /* QRDMA_AUDIT_H */
