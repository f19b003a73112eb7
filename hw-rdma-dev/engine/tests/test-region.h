/*
 * qrdma engine tests: mkeys, their tables, and changes to them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_TEST_REGION_H
#define QRDMA_TEST_REGION_H

#include "test-card.h"

#define REGION_PD 7u
#define REGION_QPN 0x33u
#define REGION_VARIANT 0x5a
#define REGION_ALL_RIGHTS (QRDMA_MKEY_LOCAL_WRITE | QRDMA_MKEY_REMOTE_READ | \
                           QRDMA_MKEY_REMOTE_WRITE | QRDMA_MKEY_REMOTE_ATOMIC)
#define REGION_KEY(index) ((index) << 8 | REGION_VARIANT)

/* QPN of the UMR queue that the tests play. */
#define REGION_UMR_QPN 2u

/*
 * A valid context of a block table: all rights, any QP, REGION_PD and
 * REGION_VARIANT; capacity is as many entries as there are blocks. Level 0: the
 * base is absent.
 */
QrdmaMkc region_mkc(uint64_t start, uint64_t length, unsigned log_page_size,
                    unsigned level, uint32_t pble_index);

/* The driver's own key for all memory. */
QrdmaMkc region_all_memory(void);

enum qrdma_status region_create(TestCard *card, uint32_t index,
                                const QrdmaMkc *mkc);
QrdmaMkc region_query(TestCard *card, uint32_t index);

void region_assert_same(const QrdmaMkc *one, const QrdmaMkc *other);

/*
 * CPU writes. Level 2 wants its leaves set up first: leaf i at `first_leaf` +
 * 512 i, absent.
 */
void region_set_leaves(TestCard *card, const QrdmaMkc *mkc,
                       uint32_t first_leaf);
void region_set_pble(TestCard *card, const QrdmaMkc *mkc, uint64_t entry,
                     uint64_t pble);
uint64_t region_get_pble(TestCard *card, const QrdmaMkc *mkc, uint64_t entry);

/* Begin and end an access of the region's PD from REGION_QPN. */
QrdmaAccessResult region_access(TestCard *card, uint32_t key,
                                QrdmaAccessKind kind, uint64_t address,
                                uint64_t length, QrdmaAccess *out);

/* Same, not ended. */
QrdmaAccessResult region_begin(TestCard *card, uint32_t key,
                               QrdmaAccessKind kind, uint64_t address,
                               uint64_t length, QrdmaAccess *out);

/* A UMR in host terms. */
typedef struct TestUmr {
    uint32_t key;
    uint16_t flags;             /* without INLINE: by reference if units > 0 */
    uint64_t mask;
    QrdmaMkc mkc;
    uint64_t offset;
    unsigned units;
    const uint64_t *pbles;      /* 8 a unit */
} TestUmr;

/* The WQE. Data by reference is put into fresh memory. */
void region_umr_wqe(TestCard *card, const TestUmr *umr,
                    uint8_t wqe[QRDMA_UMR_WQE_SIZE]);

/*
 * Carry it out, as a UMR queue would (injected faults count it, but hold
 * nothing back), in slices of `slice` items; `between`, if not NULL, is called
 * after each. No access may be in flight.
 */
enum qrdma_status region_umr_sliced(TestCard *card, const TestUmr *umr,
                                    unsigned slice,
                                    void (*between)(void *opaque),
                                    void *opaque);
enum qrdma_status region_umr(TestCard *card, const TestUmr *umr);
enum qrdma_status region_umr_raw(TestCard *card,
                                 const uint8_t wqe[QRDMA_UMR_WQE_SIZE]);

#endif /* QRDMA_TEST_REGION_H */
