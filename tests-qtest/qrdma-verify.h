/*
 * Fault injection and the audit of a qrdma card, for tests: by QMP, as a
 * property of the device, and by the registers.
 *
 * The card must have the id that QRDMA_TEST_ID gives.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_VERIFY_H
#define QRDMA_VERIFY_H

#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qrdma-device.h"
#include "hw/rdma-dev/abi/qrdma_diagnostic.h"

#define QRDMA_TEST_ID   "id=card"

/* ------------------------------------------------------------- properties */

/* The answer to qom-get or qom-set, error or not; `value` is JSON. */
QDict *qrdma_property_get(QTestState *qts, const char *name);
QDict *qrdma_property_set(QTestState *qts, const char *name,
                          const char *value);

/* The same for what must succeed. */
void qrdma_property_set_ok(QTestState *qts, const char *name,
                           const char *value);

/* ----------------------------------------------------------------- faults */

/* Replace all faults by those of a JSON list. */
void qrdma_faults_set(QTestState *qts, const char *faults);

/* That are armed now; the caller gives the list back. */
QList *qrdma_faults_get(QTestState *qts);

/* As the fault registers say it; at and count of 0 stand for 1. */
typedef struct QRdmaFault {
    enum qrdma_fault_target target;
    enum qrdma_fault_action action;
    uint32_t at;
    uint32_t count;
    uint32_t index;
    uint32_t opcode;
    uint32_t status;
    uint32_t point;
    uint64_t delay;
    uint64_t address;
    uint64_t length;
} QRdmaFault;

/* Arm one more fault; by the registers, or by QMP, which then has no others. */
enum qrdma_fault_result qrdma_fault_arm_result(QRdma *q,
                                               const QRdmaFault *fault);
void qrdma_fault_arm_registers(QRdma *q, const QRdmaFault *fault);
void qrdma_fault_arm_qmp(QRdma *q, const QRdmaFault *fault);

/* ------------------------------------------------------------------ audit */

/* The audit's report; the registers are seen to say the same. */
QDict *qrdma_audit_report(QRdma *q);

uint64_t qrdma_audit_counter(const QDict *report, const char *name);

/* How many findings are of that kind. */
unsigned qrdma_audit_findings(const QDict *report, const char *kind);

/* All counters of faults are zero, and there is no finding. */
void qrdma_audit_assert_clean(const QDict *report);

void qrdma_audit_clear(QRdma *q);

#endif /* QRDMA_VERIFY_H */
