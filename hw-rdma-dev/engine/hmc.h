/*
 * qrdma engine: host memory lent to the card (HMC), where PBLEs live.
 *
 * PBLE space is 2^30 entries of 8 bytes. A segment descriptor (SD) backs 2 MiB
 * of it: with one contiguous block (direct) or with 512 pages (paged).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_HMC_H
#define QRDMA_HMC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine.h"

#define QRDMA_PBLE_SPACE ((uint64_t)QRDMA_MAX_SD * QRDMA_PBLES_PER_SD)

typedef struct QrdmaSd {
    enum qrdma_sd_type type;
    uint64_t address;           /* direct: bus address of the 2 MiB */
    uint64_t *pages;            /* paged: QRDMA_SD_PAGES bus addresses */
    uint32_t users;             /* tables, roots and rings that lie in it */
} QrdmaSd;

typedef struct QrdmaHmc {
    QrdmaSd *sds[QRDMA_MAX_SD]; /* NULL: not backed */
} QrdmaHmc;

void qrdma_hmc_reset(QrdmaEngine *engine);

/* SD of a byte address in PBLE space. */
static inline uint64_t qrdma_hmc_sd_of_address(uint64_t address)
{
    return address >> QRDMA_SD_SHIFT;
}

/*
 * True if PBLEs [index, index + count) lie in PBLE space. Backing is another
 * question.
 */
static inline bool qrdma_hmc_in_space(uint64_t index, uint64_t count)
{
    return index <= QRDMA_PBLE_SPACE && count <= QRDMA_PBLE_SPACE - index;
}

/*
 * Keep the SDs under PBLEs [index, index + count) from being removed. False,
 * and nothing is held, if the range leaves PBLE space or an SD is missing.
 */
bool qrdma_hmc_hold(QrdmaEngine *engine, uint64_t index, uint64_t count);
void qrdma_hmc_release(QrdmaEngine *engine, uint64_t index, uint64_t count);

/*
 * Bus address of a PBLE. False if it is outside PBLE space or not backed.
 * *contiguous, if not NULL: how many PBLEs from it on lie at consecutive bus
 * addresses, at least 1 and never past the 4 KiB page of the HMC.
 */
bool qrdma_hmc_bus_address(QrdmaEngine *engine, uint64_t index,
                           uint64_t *address, uint64_t *contiguous);

/*
 * Read PBLEs in host byte order, with no look at what they say. False if one of
 * them is outside PBLE space, not backed, or not readable.
 */
bool qrdma_hmc_read(QrdmaEngine *engine, uint64_t index, uint64_t count,
                    uint64_t *pbles);

#endif /* QRDMA_HMC_H */
