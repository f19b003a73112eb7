/*
 * A region of a qrdma card that changes its page size, for tests.
 *
 * The region lies in two places at once: scattered in 4 KiB pages, and in 2 MiB
 * blocks. Each byte has one right answer in the old place and one in the new; a
 * third is torn.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_CHANGE_H
#define QRDMA_CHANGE_H

#include "qrdma-queues.h"

#define QRDMA_CHANGE_INDEX  0x66
#define QRDMA_CHANGE_START  0x7f0000000000ull
#define QRDMA_CHANGE_TABLE  4096        /* first PBLE of the table */
#define QRDMA_LOG_4K        12
#define QRDMA_LOG_2M        21
#define QRDMA_ABSENT        UINT64_MAX  /* what a page answers: nothing */

typedef struct QRdmaChange QRdmaChange;

struct QRdmaChange {
    QRdmaBench bench;
    QRdma *q;
    uint64_t length;
    uint64_t small;         /* 4 KiB pages, in reverse order */
    uint64_t large;         /* 2 MiB blocks, in reverse order */
    unsigned small_count;
    unsigned large_count;
    unsigned capacity;
    uint64_t local;         /* a page */
    uint64_t staging;

    /* Around each UMR, where not NULL. */
    void (*before)(QRdmaChange *c);
    void (*after)(QRdmaChange *c);
    void *opaque;           /* the test's own */
};

/*
 * Start the card, and make a region of `length` bytes in pages of that size;
 * its table is filled, or all absent.
 */
void qrdma_change_init(QRdmaChange *c, QRdma *q, uint64_t length,
                       unsigned log_page_size, bool present);

/* Where a page of the region lies in a layout. */
uint64_t qrdma_change_place(QRdmaChange *c, unsigned log_page_size,
                            unsigned page);

/* The first word of each probe page in that layout. */
uint64_t qrdma_change_stamp(unsigned log_page_size, unsigned page);

/* Pages on either side of every boundary that matters; they are stamped. */
#define QRDMA_MAX_PROBES 32
unsigned qrdma_change_probes(QRdmaChange *c,
                             unsigned pages[QRDMA_MAX_PROBES]);

/* The first word of a page as an RDMA read sees it, or QRDMA_ABSENT. */
uint64_t qrdma_change_read(QRdmaChange *c, unsigned page);

/* One UMR that sets the page size. */
void qrdma_change_set_page_size(QRdmaChange *c, unsigned log_page_size);

/* The five steps. */
void qrdma_change_page_size(QRdmaChange *c, unsigned log_page_size);

/* What a driver does to revoke: free, and its own PD; a fence by completion. */
void qrdma_change_revoke(QRdmaChange *c);

#endif /* QRDMA_CHANGE_H */
