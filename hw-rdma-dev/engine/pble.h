/*
 * qrdma engine: arithmetic of tables of physical buffer list entries.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_PBLE_H
#define QRDMA_PBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine.h"

typedef struct QrdmaMkc QrdmaMkc;

/*
 * Blocks of 2^log_page_size bytes that [start, start + length) touches. length
 * is not 0 and the range does not wrap.
 */
uint64_t qrdma_pble_blocks(uint64_t start, uint64_t length,
                           unsigned log_page_size);

/* Which block of such a region an address in it lies in. */
uint64_t qrdma_pble_block_of(uint64_t start, unsigned log_page_size,
                             uint64_t address);

/* Leaves of a level 2 table of so many entries. */
uint64_t qrdma_pble_leaves(uint64_t entries);

/* Entries that leaf `leaf` of it holds: QRDMA_LEAF_PBLES, or the rest. */
uint64_t qrdma_pble_leaf_entries(uint64_t entries, uint64_t leaf);

/* PBLEs that a table takes: whole units. */
uint64_t qrdma_pble_round_to_units(uint64_t entries);

/*
 * PBLEs that a table occupies at its pble_index: the table itself (level 1),
 * its root (level 2), or none (level 0). What REMOVE_SD must not take away.
 */
uint64_t qrdma_pble_footprint(unsigned level, uint64_t capacity);

/* Bytes a UMR may write to the table of a mkey; 0: it has no table. */
uint64_t qrdma_pble_table_bytes(const QrdmaMkc *mkc);

/*
 * Whether a table write of `length` bytes at byte `offset` lies in a table of
 * table_bytes. Right also where offset + length wraps.
 */
bool qrdma_pble_write_in_table(uint64_t table_bytes, uint64_t offset,
                               uint64_t length);

/* What is wrong with a root entry, or with a PBLE of a table. */
typedef enum QrdmaPbleVerdict {
    QRDMA_PBLE_GOOD,
    QRDMA_PBLE_ABSENT,      /* PBLE: neither right; root entry: all zero */
    QRDMA_PBLE_MALFORMED,   /* reserved bits, misaligned, no such index */
} QrdmaPbleVerdict;

QrdmaPbleVerdict qrdma_pble_check(uint64_t pble, unsigned log_page_size);

/* Good: *leaf is the index of the leaf's first PBLE. */
QrdmaPbleVerdict qrdma_pble_check_root(uint64_t entry, uint64_t *leaf);

/* How the search for entry number `entry` of a block table ended. */
typedef enum QrdmaPbleLookup {
    QRDMA_LOOKUP_FOUND,
    QRDMA_LOOKUP_NO_LEAF,       /* level 2: the root entry is zero */
    QRDMA_LOOKUP_BAD_ROOT,      /* level 2: the root entry is malformed */
    QRDMA_LOOKUP_HMC,           /* root entry not readable */
} QrdmaPbleLookup;

/*
 * Index in PBLE space of entry `entry` of a level 1 or 2 table. Entry is less
 * than capacity rounded up to units. Reads the root entry at level 2.
 */
QrdmaPbleLookup qrdma_pble_locate(QrdmaEngine *engine, const QrdmaMkc *mkc,
                                  uint64_t entry, uint64_t *index);

#endif /* QRDMA_PBLE_H */
