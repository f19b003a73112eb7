/*
 * qrdma engine: memory of queue rings.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_RING_H
#define QRDMA_RING_H

#include "engine.h"

/* Ring pages that all queues together may have by level 1: 8 MiB of state. */
#define QRDMA_MAX_RING_PAGES (1u << 20)

typedef struct QrdmaRing {
    uint32_t entries;           /* power of two; 0: there is no ring */
    uint32_t num_pages;
    uint8_t log_entries;
    uint8_t log_stride;
    uint8_t level;
    uint32_t pble_index;        /* level 1 */
    uint64_t base;              /* level 0 */
    uint64_t *pages;            /* level 1: bus addresses; else NULL */
} QrdmaRing;

/* What a kind of queue allows. */
typedef struct QrdmaRingLimits {
    uint8_t log_stride_min;
    uint8_t log_stride_max;
    uint8_t log_entries_min;
} QrdmaRingLimits;

/*
 * Check a guest's description and resolve its pages, once. The SDs below the
 * PBLEs are held until qrdma_ring_release(). On refusal nothing is held and
 * *ring is empty.
 *
 * BAD_RESERVED, BAD_LEVEL, BAD_PAGE_SIZE, BAD_RING, BAD_ALIGNMENT (base),
 * BAD_PBLE_INDEX, NO_RESOURCES, HMC_ERROR, BAD_ENTRY.
 */
enum qrdma_status qrdma_ring_setup(QrdmaEngine *engine,
                                   const struct qrdma_ring *description,
                                   const QrdmaRingLimits *limits,
                                   QrdmaRing *ring);

/* An empty ring is allowed. */
void qrdma_ring_release(QrdmaEngine *engine, QrdmaRing *ring);

/* Back to what the guest said. */
void qrdma_ring_describe(const QrdmaRing *ring,
                         struct qrdma_ring *description);

/*
 * Copy entry `counter` (free-running) of a ring that is not empty, all of it.
 * False: the bus refused.
 */
bool qrdma_ring_read(QrdmaEngine *engine, const QrdmaRing *ring,
                     uint32_t counter, void *entry);

/*
 * Write an entry whose last 8 bytes tell the reader that it is there: the rest
 * is visible before they are. False: the bus refused; nothing valid was shown.
 */
bool qrdma_ring_write(QrdmaEngine *engine, const QrdmaRing *ring,
                      uint32_t counter, const void *entry);

/* Phase bit of entry `counter`: 1 in the first pass, 0 in the second. */
static inline uint8_t qrdma_ring_phase(const QrdmaRing *ring, uint32_t counter)
{
    return !((counter >> ring->log_entries) & 1);
}

/* Whether 0 <= producer - consumer <= size holds for free-running counters. */
static inline bool qrdma_ring_holds(const QrdmaRing *ring, uint32_t producer,
                                    uint32_t consumer)
{
    return producer - consumer <= ring->entries;
}

#endif /* QRDMA_RING_H */
