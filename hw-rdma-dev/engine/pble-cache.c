/*
 * qrdma engine: cache of PBLEs, one line a table unit.
 *
 * Direct-mapped. A line belongs to a mkey by tag, and a mkey forgets all its
 * lines by taking a new tag. Tags are not given twice, not even after a reset
 * of the card: old lines need no emptying.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* Odd, and far from a multiple of the number of lines. */
#define TAG_SPREAD 0x9e3779b97f4a7c15ull

void qrdma_pble_cache_init(QrdmaEngine *engine)
{
    if (engine->config.pble_cache) {
        engine->pble_cache.lines = g_new0(QrdmaPbleCacheLine,
                                          QRDMA_PBLE_CACHE_LINES);
    }
}

void qrdma_pble_cache_free(QrdmaEngine *engine)
{
    g_clear_pointer(&engine->pble_cache.lines, g_free);
}

/* Consecutive units of a mkey take consecutive lines. */
static QrdmaPbleCacheLine *line_of(QrdmaEngine *engine, const QrdmaMkey *mkey,
                                   uint64_t unit)
{
    uint64_t first = mkey->index * TAG_SPREAD >> 32;

    return &engine->pble_cache.lines[(first + unit) % QRDMA_PBLE_CACHE_LINES];
}

void qrdma_pble_cache_forget(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    mkey->cache_tag = ++engine->pble_cache.last_tag;
}

void qrdma_pble_cache_forget_all(QrdmaEngine *engine)
{
    if (engine->pble_cache.lines) {
        memset(engine->pble_cache.lines, 0,
               QRDMA_PBLE_CACHE_LINES * sizeof(QrdmaPbleCacheLine));
    }
}

void qrdma_pble_cache_forget_unit(QrdmaEngine *engine, QrdmaMkey *mkey,
                                  uint64_t unit)
{
    QrdmaPbleCacheLine *line;

    if (!engine->pble_cache.lines) {
        return;
    }
    line = line_of(engine, mkey, unit);
    if (line->tag == mkey->cache_tag && line->unit == unit) {
        line->tag = 0;
    }
}

const uint64_t *qrdma_pble_cache_find(QrdmaEngine *engine, QrdmaMkey *mkey,
                                      uint64_t unit)
{
    QrdmaPbleCacheLine *line;

    if (!engine->pble_cache.lines) {
        return NULL;
    }
    line = line_of(engine, mkey, unit);
    if (line->tag != mkey->cache_tag || line->unit != unit) {
        engine->counters.pble_cache_misses++;
        return NULL;
    }
    engine->counters.pble_cache_hits++;
    return line->pbles;
}

void qrdma_pble_cache_put(QrdmaEngine *engine, QrdmaMkey *mkey, uint64_t unit,
                          const uint64_t pbles[QRDMA_PBLES_PER_UNIT])
{
    QrdmaPbleCacheLine *line;

    if (!engine->pble_cache.lines) {
        return;
    }
    line = line_of(engine, mkey, unit);
    line->tag = mkey->cache_tag;
    line->unit = unit;
    memcpy(line->pbles, pbles, sizeof(line->pbles));
}
