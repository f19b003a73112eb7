/*
 * qrdma engine: BAR 0, and the state of the card as a whole.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_REGISTERS_H
#define QRDMA_REGISTERS_H

#include "engine.h"

#define QRDMA_STATUS_STICKY (QRDMA_CARD_EVENT_LOST | QRDMA_CARD_DOORBELL_ERROR)

typedef struct QrdmaRegisters {
    uint32_t status;            /* the W1C bits */
    enum qrdma_fatal_code error;
    bool enabled;
    uint64_t command_ring;
    uint32_t command_log_size;
    uint32_t command_vector;
} QrdmaRegisters;

typedef struct QrdmaRegisterType {
    uint32_t offset;
    uint32_t bytes;                     /* 4 or 8 */
    uint64_t (*read)(QrdmaEngine *engine);          /* NULL: zero */
    void (*write)(QrdmaEngine *engine, uint64_t value); /* NULL: ignored */
} QrdmaRegisterType;

/* Registers that are there, or not, as a whole. */
typedef struct QrdmaRegisterWindow {
    const QrdmaRegisterType *types;
    unsigned count;
    bool (*is_there)(const QrdmaEngine *engine);    /* NULL: always */
} QrdmaRegisterWindow;

extern const QrdmaRegisterWindow qrdma_fault_window;    /* registers-fault.c */
extern const QrdmaRegisterWindow qrdma_audit_window;    /* registers-audit.c */

void qrdma_registers_reset(QrdmaEngine *engine);

/* Set W1C bits of QRDMA_REG_STATUS: EVENT_LOST or DOORBELL_ERROR. */
void qrdma_status_set(QrdmaEngine *engine, uint32_t bits);

#endif /* QRDMA_REGISTERS_H */
