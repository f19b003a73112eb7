/*
 * qrdma engine: the table of mkeys.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_MKEY_H
#define QRDMA_MKEY_H

#include <glib.h>

#include "mkc.h"

#define QRDMA_MAX_MKEYS (1u << QRDMA_LOG_MAX_MKEYS)
#define QRDMA_MKEY_CHUNK 1024
#define QRDMA_MKEY_CHUNKS (QRDMA_MAX_MKEYS / QRDMA_MKEY_CHUNK)

typedef struct QrdmaAuditWatch QrdmaAuditWatch;

typedef struct QrdmaMkey {
    uint32_t index;
    QrdmaMkc mkc;

    /*
     * Translations cached under this tag are those of the mkey. A new tag
     * forgets them all. Tags are never used twice.
     */
    uint64_t cache_tag;

    /*
     * Accesses that have begun and not ended, by the epoch they began in. A
     * fence starts a new epoch and waits until the old one's have ended.
     */
    unsigned epoch;             /* 0 or 1 */
    uint64_t in_flight[2];

    /*
     * The one change (UMR, modify or destroy) that owns the mkey now; NULL if
     * none. Others wait in line: what they were validated against stays true.
     */
    const void *owner;
    uint32_t owner_number;      /* whom to wake: QPN, or QRDMA_OWNER_COMMAND */
    bool fencing;               /* owner waits for accesses to end */
    bool dying;                 /* being destroyed: every access is refused */
    GSList *waiters;            /* QPNs, or QRDMA_OWNER_COMMAND */

    QrdmaAuditWatch *watch;     /* audit.h; NULL: not watched */
} QrdmaMkey;

/* The owner is a command, or a UMR that a fault held back. No QPN is one. */
#define QRDMA_OWNER_COMMAND UINT32_MAX
#define QRDMA_OWNER_HELD (UINT32_MAX - 1)

typedef struct QrdmaMkeyChunk {
    uint32_t used;
    QrdmaMkey *mkeys[QRDMA_MKEY_CHUNK];
} QrdmaMkeyChunk;

/* Memory is taken as mkeys are created, and returned as they are destroyed. */
typedef struct QrdmaMkeys {
    QrdmaMkeyChunk *chunks[QRDMA_MKEY_CHUNKS];
    uint32_t count;
} QrdmaMkeys;

void qrdma_mkey_reset(QrdmaEngine *engine);

/* NULL if there is no such mkey. Any index may be asked for. */
QrdmaMkey *qrdma_mkey_find(QrdmaEngine *engine, uint32_t index);

/* The first one from an index on; NULL: there is none. */
QrdmaMkey *qrdma_mkey_next(QrdmaEngine *engine, uint32_t index);

/*
 * One change at a time. True if `owner` owns the mkey now; else `number` (a QPN
 * or QRDMA_OWNER_COMMAND) is woken when it is worth trying again.
 */
bool qrdma_mkey_claim(QrdmaMkey *mkey, const void *owner, uint32_t number);
void qrdma_mkey_unclaim(QrdmaEngine *engine, QrdmaMkey *mkey);

/*
 * The owner waits for the accesses that have begun up to now. True: they have
 * ended. False: the owner is woken when it is worth asking again. *begun is
 * false at the first call, and kept by the owner between calls.
 */
bool qrdma_mkey_fence(QrdmaMkey *mkey, bool *begun);

/* For access.c: an access has begun or ended. */
static inline unsigned qrdma_mkey_access_begun(QrdmaMkey *mkey)
{
    mkey->in_flight[mkey->epoch]++;
    return mkey->epoch;
}

void qrdma_mkey_access_ended(QrdmaEngine *engine, QrdmaMkey *mkey,
                             unsigned epoch);

#endif /* QRDMA_MKEY_H */
