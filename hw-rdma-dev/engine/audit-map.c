/*
 * qrdma engine: what a mkey maps, as the audit keeps it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-map.h"
#include "engine-internal.h"
#include "umr-internal.h"

/* What an entry that cannot be read becomes: a reserved bit makes it bad. */
#define UNREADABLE (QRDMA_PBLE_RESERVED | QRDMA_PBLE_PRESENT)

typedef enum EntryState {
    ENTRY_ABSENT,
    ENTRY_PRESENT,
    ENTRY_MALFORMED,
} EntryState;

static uint64_t page_mask(const QrdmaAuditMap *map)
{
    return (1ull << map->mkc.log_page_size) - 1;
}

uint64_t qrdma_audit_map_entries(const QrdmaMkc *mkc)
{
    if (mkc->translation != QRDMA_TRANSLATION_BLOCK_TABLE) {
        return 0;
    }
    return ((uint64_t)mkc->capacity + QRDMA_PBLES_PER_UNIT - 1) &
           ~(uint64_t)(QRDMA_PBLES_PER_UNIT - 1);
}

static EntryState entry_state(const QrdmaAuditMap *map, uint64_t block)
{
    uint64_t entry = block < map->num_entries ? map->entries[block] : 0;

    if (entry & QRDMA_PBLE_RESERVED) {
        return ENTRY_MALFORMED;
    }
    if (!(entry & QRDMA_PBLE_PRESENT)) {
        return ENTRY_ABSENT;
    }
    return entry & QRDMA_PBLE_ADDRESS & page_mask(map) ? ENTRY_MALFORMED
                                                       : ENTRY_PRESENT;
}

/* Add (or with -1 take away) a block's share of the counts. */
static void count_block(QrdmaAuditMap *map, uint64_t block, int64_t sign)
{
    switch (entry_state(map, block)) {
    case ENTRY_PRESENT:
        map->present += sign;
        break;
    case ENTRY_MALFORMED:
        map->malformed += sign;
        break;
    case ENTRY_ABSENT:
        break;
    }
}

bool qrdma_audit_map_is_valid(const QrdmaAuditMap *map)
{
    QrdmaMkc mkc = map->mkc;

    /* Stale: the one entry of a level 0 table is among the entries. */
    mkc.base = 0;
    return qrdma_mkc_validate(&mkc) == QRDMA_STATUS_OK;
}

void qrdma_audit_map_count(QrdmaAuditMap *map)
{
    uint64_t blocks = qrdma_audit_map_blocks(map);

    map->present = 0;
    map->malformed = 0;
    for (uint64_t block = 0; block < blocks; block++) {
        count_block(map, block, 1);
    }
}

/* ------------------------------------------------------------------ memory */

/* A leaf, or what of it the table has; `entries` in host byte order. */
static void read_leaf(QrdmaEngine *engine, const QrdmaMkc *mkc, uint64_t leaf,
                      uint64_t *entries, uint64_t count)
{
    uint64_t root = 0;
    uint64_t index = 0;
    QrdmaPbleVerdict verdict = QRDMA_PBLE_MALFORMED;

    if (qrdma_hmc_read(engine, mkc->pble_index + leaf, 1, &root)) {
        verdict = qrdma_pble_check_root(root, &index);
    }
    if (verdict == QRDMA_PBLE_ABSENT ||
        (verdict == QRDMA_PBLE_GOOD &&
         qrdma_hmc_read(engine, index, count, entries))) {
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        entries[i] = UNREADABLE;
    }
}

void qrdma_audit_map_read(QrdmaEngine *engine, const QrdmaMkey *mkey,
                          QrdmaAuditMap *map)
{
    const QrdmaMkc *mkc = &mkey->mkc;

    *map = (QrdmaAuditMap) {
        .mkc = *mkc,
        .num_entries = qrdma_audit_map_entries(mkc),
    };
    map->entries = g_new0(uint64_t, map->num_entries);
    if (mkc->level == 0) {
        map->entries[0] = mkc->base;
    } else if (mkc->level == 1) {
        if (!qrdma_hmc_read(engine, mkc->pble_index, map->num_entries,
                            map->entries)) {
            for (uint64_t i = 0; i < map->num_entries; i++) {
                map->entries[i] = UNREADABLE;
            }
        }
    } else {
        for (uint64_t i = 0; i < map->num_entries; i += QRDMA_LEAF_PBLES) {
            read_leaf(engine, mkc, i / QRDMA_LEAF_PBLES, map->entries + i,
                      MIN(QRDMA_LEAF_PBLES, map->num_entries - i));
        }
    }
    qrdma_audit_map_count(map);
}

QrdmaAuditMap *qrdma_audit_map_copy(const QrdmaAuditMap *map)
{
    QrdmaAuditMap *copy = g_new(QrdmaAuditMap, 1);

    *copy = *map;
    copy->entries = g_memdup2(map->entries,
                              map->num_entries * sizeof(*map->entries));
    return copy;
}

void qrdma_audit_map_clear(QrdmaAuditMap *map)
{
    g_clear_pointer(&map->entries, g_free);
    *map = (QrdmaAuditMap) { 0 };
}

void qrdma_audit_map_free(QrdmaAuditMap *map)
{
    if (map) {
        qrdma_audit_map_clear(map);
        g_free(map);
    }
}

/* ----------------------------------------------------------------- changes */

void qrdma_audit_map_merge(QrdmaAuditMap *map, const QrdmaMkc *fields,
                           uint64_t mask)
{
    qrdma_mkc_merge(&map->mkc, fields, mask);
    qrdma_audit_map_count(map);
}

void qrdma_audit_map_write(QrdmaAuditMap *map, uint64_t first, uint64_t count,
                           const uint64_t *pbles)
{
    uint64_t blocks = qrdma_audit_map_blocks(map);

    for (uint64_t i = 0; i < count && first + i < map->num_entries; i++) {
        uint64_t block = first + i;

        /* The level 0 table has a unit, but one entry. */
        if (map->mkc.level == 0 && block) {
            break;
        }
        if (block < blocks) {
            count_block(map, block, -1);
        }
        map->entries[block] = pbles[i];
        if (block < blocks) {
            count_block(map, block, 1);
        }
    }
}

/* ----------------------------------------------------------------- answers */

uint64_t qrdma_audit_map_blocks(const QrdmaAuditMap *map)
{
    const QrdmaMkc *mkc = &map->mkc;
    uint64_t last = mkc->start + (mkc->length - 1);

    if (!map->num_entries || mkc->flags & QRDMA_MKEY_FREE) {
        return 0;
    }
    return (last >> mkc->log_page_size) - (mkc->start >> mkc->log_page_size) +
           1;
}

void qrdma_audit_map_block_range(const QrdmaAuditMap *map, uint64_t block,
                                 uint64_t *address, uint64_t *length)
{
    const QrdmaMkc *mkc = &map->mkc;
    uint64_t first = (mkc->start & ~page_mask(map)) +
                     (block << mkc->log_page_size);
    uint64_t last = first | page_mask(map);

    *address = MAX(first, mkc->start);
    *length = MIN(last, mkc->start + (mkc->length - 1)) - *address + 1;
}

bool qrdma_audit_map_is_empty(const QrdmaAuditMap *map)
{
    return !map->present && !map->malformed;
}

bool qrdma_audit_map_is_whole(const QrdmaAuditMap *map)
{
    uint64_t blocks = qrdma_audit_map_blocks(map);

    return blocks && map->present == blocks;
}

/* What the key lets, of what the page lets. */
static uint32_t rights_of(const QrdmaMkc *mkc, uint64_t entry)
{
    uint32_t rights = 0;

    if (entry & QRDMA_PBLE_READ) {
        rights |= QRDMA_AUDIT_READ;
        if (mkc->flags & QRDMA_MKEY_REMOTE_READ) {
            rights |= QRDMA_AUDIT_REMOTE_READ;
        }
    }
    if (entry & QRDMA_PBLE_WRITE) {
        rights |= QRDMA_AUDIT_WRITE;
        if (mkc->flags & QRDMA_MKEY_LOCAL_WRITE) {
            rights |= QRDMA_AUDIT_LOCAL_WRITE;
        }
        if (mkc->flags & QRDMA_MKEY_REMOTE_WRITE) {
            rights |= QRDMA_AUDIT_REMOTE_WRITE;
        }
    }
    if ((entry & QRDMA_PBLE_PRESENT) == QRDMA_PBLE_PRESENT &&
        mkc->flags & QRDMA_MKEY_REMOTE_ATOMIC) {
        rights |= QRDMA_AUDIT_REMOTE_ATOMIC;
    }
    return rights;
}

/* Outside the region, as far as it is from there to its beginning. */
static QrdmaAuditAnswer answer_outside(const QrdmaMkc *mkc, uint64_t address,
                                       uint64_t *run)
{
    *run = address < mkc->start ? mkc->start - address : UINT64_MAX;
    return (QrdmaAuditAnswer) { 0 };
}

QrdmaAuditAnswer qrdma_audit_map_answer(const QrdmaAuditMap *map,
                                        uint64_t address, uint64_t *run)
{
    const QrdmaMkc *mkc = &map->mkc;
    uint64_t offset = address - mkc->start;
    uint64_t in_page = address & page_mask(map);
    uint64_t block, ignored;

    run = run ? run : &ignored;
    if (address < mkc->start || offset >= mkc->length) {
        return answer_outside(mkc, address, run);
    }
    *run = mkc->length - offset;
    if (qrdma_audit_map_is_empty(map)) {
        return (QrdmaAuditAnswer) { 0 };
    }
    *run = MIN(*run, page_mask(map) - in_page + 1);
    block = (address >> mkc->log_page_size) -
            (mkc->start >> mkc->log_page_size);
    switch (entry_state(map, block)) {
    case ENTRY_PRESENT:
        return (QrdmaAuditAnswer) {
            .address = (map->entries[block] & QRDMA_PBLE_ADDRESS) + in_page,
            .rights = rights_of(mkc, map->entries[block]),
        };
    case ENTRY_MALFORMED:
        return (QrdmaAuditAnswer) { .rights = QRDMA_AUDIT_MALFORMED };
    default:
        return (QrdmaAuditAnswer) { 0 };
    }
}
