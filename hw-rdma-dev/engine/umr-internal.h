/*
 * qrdma engine: one UMR on its way, as umr.c and umr-validate.c see it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_UMR_INTERNAL_H
#define QRDMA_UMR_INTERNAL_H

#include "engine-internal.h"

#define QRDMA_TABLE_UNIT_WORDS (QRDMA_TABLE_UNIT / sizeof(uint64_t))
#define QRDMA_UMR_MAX_UNITS (QRDMA_UMR_MAX_TABLE_WRITE / QRDMA_TABLE_UNIT)

typedef enum UmrPhase {
    UMR_NEW,                    /* not validated; nothing is held */
    UMR_CHANGING,               /* valid; items up to `next` are visible */
    UMR_FENCING,                /* all visible; older accesses are to end */
    UMR_OVER,
} UmrPhase;

/* A table unit: where it goes. */
typedef struct UmrUnit {
    uint64_t index;             /* in PBLE space */
    uint64_t address;           /* on the bus */
} UmrUnit;

struct QrdmaUmr {
    uint32_t number;            /* QPN, or QRDMA_OWNER_COMMAND */
    UmrPhase phase;
    bool fence_begun;

    /* Fault injection. */
    enum qrdma_status injected; /* refused with this; OK: not */
    bool withheld;              /* completes as success, and is not done */
    bool keep;                  /* have a copy made, to be done later ... */
    QrdmaUmr *kept;             /* ... which is here once it is valid */
    uint64_t *captured;         /* of a copy: data as it was then */
    bool held;                  /* it is one: its completion was before */
    bool is_fatal;              /* the card fails before item fatal_point */
    uint32_t fatal_point;
    uint64_t change;            /* its number, from when it begins to change */

    /* What is asked for. */
    union {
        struct qrdma_umr_wqe wqe;
        uint8_t bytes[QRDMA_UMR_WQE_SIZE];
    } copy;
    uint16_t flags;             /* QRDMA_UMR_* */
    uint32_t key;
    uint64_t mask;              /* QRDMA_UMR_MASK_* */
    uint64_t table_offset;
    uint64_t table_address;
    uint32_t table_length;
    QrdmaMkc fields;            /* those of the mask count */

    /* From validation on: */
    QrdmaMkey *mkey;            /* claimed */
    uint32_t units;             /* of table data */
    uint64_t *data;             /* as in the table: little-endian */
    UmrUnit *places;            /* NULL at level 0; their SDs are held */

    /*
     * Items are the units, by number, and the context change, whose number is
     * `units`; in the order in which they become visible.
     */
    uint32_t *order;
    uint32_t items;
    uint32_t next;
};

static inline bool qrdma_umr_is_command(const QrdmaUmr *umr)
{
    return umr->number == QRDMA_OWNER_COMMAND;
}

/*
 * Whether the UMR may be carried out, with its mkey claimed (umr->mkey). Stages
 * its data and holds the SDs it writes to; qrdma_umr_unstage() undoes that,
 * also after a refusal.
 */
enum qrdma_status qrdma_umr_validate(QrdmaEngine *engine, QrdmaUmr *umr);
void qrdma_umr_unstage(QrdmaEngine *engine, QrdmaUmr *umr);

/* What can be said without the mkey. */
enum qrdma_status qrdma_umr_check_form(const QrdmaUmr *umr);

/* The write lies in the mkey's table. */
enum qrdma_status qrdma_umr_check_range(const QrdmaUmr *umr);

/* Reserved bits of the staged data. */
enum qrdma_status qrdma_umr_check_data(const QrdmaUmr *umr);

/* The context as it will be, with the new base where the table is level 0. */
enum qrdma_status qrdma_umr_check_result(const QrdmaUmr *umr);

/* Fields from the copy of the WQE. */
void qrdma_umr_decode(QrdmaUmr *umr);

#endif /* QRDMA_UMR_INTERNAL_H */
