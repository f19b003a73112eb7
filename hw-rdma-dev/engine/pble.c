/*
 * qrdma engine: arithmetic of tables of physical buffer list entries.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

uint64_t qrdma_pble_blocks(uint64_t start, uint64_t length,
                           unsigned log_page_size)
{
    return qrdma_pble_block_of(start, log_page_size, start + length - 1) + 1;
}

uint64_t qrdma_pble_block_of(uint64_t start, unsigned log_page_size,
                             uint64_t address)
{
    return (address >> log_page_size) - (start >> log_page_size);
}

uint64_t qrdma_pble_leaves(uint64_t entries)
{
    return entries / QRDMA_LEAF_PBLES + (entries % QRDMA_LEAF_PBLES != 0);
}

uint64_t qrdma_pble_leaf_entries(uint64_t entries, uint64_t leaf)
{
    uint64_t before = leaf * QRDMA_LEAF_PBLES;

    if (before >= entries) {
        return 0;
    }
    return MIN(entries - before, QRDMA_LEAF_PBLES);
}

uint64_t qrdma_pble_round_to_units(uint64_t entries)
{
    uint64_t rest = entries % QRDMA_PBLES_PER_UNIT;

    return rest ? entries - rest + QRDMA_PBLES_PER_UNIT : entries;
}

uint64_t qrdma_pble_footprint(unsigned level, uint64_t capacity)
{
    switch (level) {
    case 1:
        return qrdma_pble_round_to_units(capacity);
    case 2:
        return qrdma_pble_round_to_units(qrdma_pble_leaves(capacity));
    default:
        return 0;
    }
}

uint64_t qrdma_pble_table_bytes(const QrdmaMkc *mkc)
{
    if (mkc->translation != QRDMA_TRANSLATION_BLOCK_TABLE) {
        return 0;
    }
    return qrdma_pble_round_to_units(mkc->capacity) * QRDMA_PBLE_SIZE;
}

bool qrdma_pble_write_in_table(uint64_t table_bytes, uint64_t offset,
                               uint64_t length)
{
    return offset <= table_bytes && length <= table_bytes - offset;
}

QrdmaPbleVerdict qrdma_pble_check(uint64_t pble, unsigned log_page_size)
{
    uint64_t in_page = (1ull << log_page_size) - 1;

    if (pble & QRDMA_PBLE_RESERVED) {
        return QRDMA_PBLE_MALFORMED;
    }
    if (!(pble & QRDMA_PBLE_PRESENT)) {
        return QRDMA_PBLE_ABSENT;
    }
    if (pble & QRDMA_PBLE_ADDRESS & in_page) {
        return QRDMA_PBLE_MALFORMED;
    }
    return QRDMA_PBLE_GOOD;
}

QrdmaPbleVerdict qrdma_pble_check_root(uint64_t entry, uint64_t *leaf)
{
    uint64_t index = entry & QRDMA_ROOT_INDEX;

    if (!entry) {
        return QRDMA_PBLE_ABSENT;
    }
    if (!(entry & QRDMA_ROOT_VALID) || (entry & QRDMA_ROOT_RESERVED) ||
        index % QRDMA_PBLES_PER_UNIT || !qrdma_hmc_in_space(index, 1)) {
        return QRDMA_PBLE_MALFORMED;
    }
    *leaf = index;
    return QRDMA_PBLE_GOOD;
}

QrdmaPbleLookup qrdma_pble_locate(QrdmaEngine *engine, const QrdmaMkc *mkc,
                                  uint64_t entry, uint64_t *index)
{
    uint64_t root, leaf;

    if (mkc->level == 1) {
        *index = mkc->pble_index + entry;
        return QRDMA_LOOKUP_FOUND;
    }
    if (!qrdma_hmc_read(engine, mkc->pble_index + entry / QRDMA_LEAF_PBLES, 1,
                        &root)) {
        return QRDMA_LOOKUP_HMC;
    }
    switch (qrdma_pble_check_root(root, &leaf)) {
    case QRDMA_PBLE_GOOD:
        *index = leaf + entry % QRDMA_LEAF_PBLES;
        return QRDMA_LOOKUP_FOUND;
    case QRDMA_PBLE_ABSENT:
        return QRDMA_LOOKUP_NO_LEAF;
    default:
        return QRDMA_LOOKUP_BAD_ROOT;
    }
}
