/*
 * qrdma engine: what a mkey maps, as the audit keeps it.
 *
 * A map is a context and the entries of its table. It answers for any virtual
 * byte. Two maps are compared in pieces in which neither changes its block, so
 * what they agree on costs a step a block, not a step a page.
 *
 * None of it is shared with the access path, which it is there to judge.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_AUDIT_MAP_H
#define QRDMA_AUDIT_MAP_H

#include "engine.h"
#include "mkey.h"

typedef struct QrdmaAuditMap {
    QrdmaMkc mkc;
    uint64_t *entries;          /* PBLEs, in host byte order */
    uint64_t num_entries;       /* capacity, rounded up to units */
    /* Of the blocks that can be reached: */
    uint64_t present;           /* neither absent nor malformed */
    uint64_t malformed;
} QrdmaAuditMap;

/* Entries that a map of this context has; 0: it has no table to be watched. */
uint64_t qrdma_audit_map_entries(const QrdmaMkc *mkc);

/*
 * The map of a mkey, from its table in HMC memory. What cannot be read there is
 * malformed, as it is to an access.
 */
void qrdma_audit_map_read(QrdmaEngine *engine, const QrdmaMkey *mkey,
                          QrdmaAuditMap *map);
QrdmaAuditMap *qrdma_audit_map_copy(const QrdmaAuditMap *map);
void qrdma_audit_map_clear(QrdmaAuditMap *map);
void qrdma_audit_map_free(QrdmaAuditMap *map);

/*
 * Whether a mkey may have this map's context: then each block of the region has
 * an entry, which is what bounds all walks through it.
 */
bool qrdma_audit_map_is_valid(const QrdmaAuditMap *map);

/* Count what is present and malformed; for a map put together elsewhere. */
void qrdma_audit_map_count(QrdmaAuditMap *map);

/* Take context fields, as a UMR does. */
void qrdma_audit_map_merge(QrdmaAuditMap *map, const QrdmaMkc *fields,
                           uint64_t mask);

/* Write entries, as a UMR does; those past the table are left out. */
void qrdma_audit_map_write(QrdmaAuditMap *map, uint64_t first, uint64_t count,
                           const uint64_t *pbles);

/* Blocks of the region that an access can reach; 0 where the key is free. */
uint64_t qrdma_audit_map_blocks(const QrdmaAuditMap *map);

/* Bytes of block `block` that lie in the region. */
void qrdma_audit_map_block_range(const QrdmaAuditMap *map, uint64_t block,
                                 uint64_t *address, uint64_t *length);

/* No byte is present (or malformed); every byte is present. */
bool qrdma_audit_map_is_empty(const QrdmaAuditMap *map);
bool qrdma_audit_map_is_whole(const QrdmaAuditMap *map);

/*
 * The answer for one byte. *run, if not NULL: how many bytes from it on have
 * the same answer, or the ones that follow it on the bus; at least 1.
 */
QrdmaAuditAnswer qrdma_audit_map_answer(const QrdmaAuditMap *map,
                                        uint64_t address, uint64_t *run);

/* Whom a mkey lets in. */
typedef struct QrdmaAuditScope {
    uint8_t variant;
    uint32_t pd;
    uint32_t qpn;
} QrdmaAuditScope;

static inline QrdmaAuditScope qrdma_audit_scope(const QrdmaMkc *mkc)
{
    return (QrdmaAuditScope) {
        .variant = mkc->variant,
        .pd = mkc->pd,
        .qpn = mkc->qpn,
    };
}

static inline bool qrdma_audit_scope_same(QrdmaAuditScope one,
                                          QrdmaAuditScope other)
{
    return one.variant == other.variant && one.pd == other.pd &&
           one.qpn == other.qpn;
}

static inline bool qrdma_answer_absent(QrdmaAuditAnswer answer)
{
    return !answer.rights;
}

static inline bool qrdma_answer_malformed(QrdmaAuditAnswer answer)
{
    return answer.rights & QRDMA_AUDIT_MALFORMED;
}

static inline bool qrdma_answer_same(QrdmaAuditAnswer one,
                                     QrdmaAuditAnswer other)
{
    return one.rights == other.rights && one.address == other.address;
}

/* The answer `offset` bytes further on, within a run. */
static inline QrdmaAuditAnswer qrdma_answer_at(QrdmaAuditAnswer answer,
                                               uint64_t offset)
{
    if (answer.rights && !qrdma_answer_malformed(answer)) {
        answer.address += offset;
    }
    return answer;
}

#endif /* QRDMA_AUDIT_MAP_H */
