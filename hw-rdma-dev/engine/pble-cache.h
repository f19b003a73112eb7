/*
 * qrdma engine: cache of PBLEs, one line a table unit.
 *
 * Coherent with UMRs and context changes of the same mkey; not with CPU writes
 * to PBLE space, nor with what goes through another mkey of the same table,
 * until INVALIDATE_TRANSLATIONS.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_PBLE_CACHE_H
#define QRDMA_PBLE_CACHE_H

#include "engine.h"
#include "mkey.h"

#ifndef QRDMA_PBLE_CACHE_LINES
#define QRDMA_PBLE_CACHE_LINES 4096
#endif

typedef struct QrdmaPbleCacheLine {
    uint64_t tag;               /* mkey's cache_tag; 0: empty */
    uint64_t unit;              /* of the mkey's table */
    uint64_t pbles[QRDMA_PBLES_PER_UNIT];
} QrdmaPbleCacheLine;

typedef struct QrdmaPbleCache {
    QrdmaPbleCacheLine *lines;  /* NULL: switched off */
    uint64_t last_tag;
} QrdmaPbleCache;

void qrdma_pble_cache_init(QrdmaEngine *engine);
void qrdma_pble_cache_free(QrdmaEngine *engine);

/* Forget what is cached of a mkey; also for a new mkey. */
void qrdma_pble_cache_forget(QrdmaEngine *engine, QrdmaMkey *mkey);

/* Forget everything, of whatever mkey: an SD is going. */
void qrdma_pble_cache_forget_all(QrdmaEngine *engine);

/* Forget one unit of a mkey's table. */
void qrdma_pble_cache_forget_unit(QrdmaEngine *engine, QrdmaMkey *mkey,
                                  uint64_t unit);

/* The unit's PBLEs, or NULL if they are not cached. Counts hits and misses. */
const uint64_t *qrdma_pble_cache_find(QrdmaEngine *engine, QrdmaMkey *mkey,
                                      uint64_t unit);
void qrdma_pble_cache_put(QrdmaEngine *engine, QrdmaMkey *mkey, uint64_t unit,
                          const uint64_t pbles[QRDMA_PBLES_PER_UNIT]);

#endif /* QRDMA_PBLE_CACHE_H */
