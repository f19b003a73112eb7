/*
 * qrdma: the PCI device. What pci/ shares among its files.
 *
 * The device holds no RDMA rule: it gives the engine its BARs, its DMA, its
 * interrupts and its clock, and resets it when PCI says so.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_DEV_QRDMA_H
#define HW_RDMA_DEV_QRDMA_H

#include "hw/pci/pci_device.h"
#include "migration/vmstate.h"
#include "net/net.h"
#include "qemu/timer.h"
#include "qom/object.h"
#include "hw/rdma-dev/engine/engine.h"
#include "hw/rdma-dev/pci/qrdma-timeline.h"

#define TYPE_QRDMA "qrdma"
OBJECT_DECLARE_SIMPLE_TYPE(QrdmaState, QRDMA)

/* A part of the engine's state on its way through a migration. */
typedef struct QrdmaSavedPart {
    uint8_t *bytes;
    uint32_t length;
} QrdmaSavedPart;

struct QrdmaState {
    PCIDevice parent_obj;

    MemoryRegion registers;
    MemoryRegion doorbells;
    MemoryRegion msix;

    /*
     * The host operations belong to one device, not to the class, because
     * trace_enabled follows the trace event as the user switches it.
     */
    QrdmaHostOps host_ops;
    QrdmaEngine *engine;

    /*
     * All of the engine's work is done by the guarded bottom half; with icount
     * by work_timer, see qrdma_schedule().
     */
    QEMUBH *work;
    QEMUTimer *work_timer;
    QEMUTimer *timer;
    bool timer_due;
    bool work_waits;                    /* until the machine runs again */
    VMChangeStateEntry *run_state;

    QrdmaSavedPart parts[QRDMA_PARTS];  /* while saving or loading */

    QrdmaTimelineFile *timeline;        /* NULL: none */

    /* Properties */
    MACAddr mac;
    bool pble_cache;
    bool diagnostics;
    uint64_t umr_order_seed;
    uint64_t packet_latency;
    uint64_t bandwidth;
    bool audit;
    char *timeline_name;
    uint64_t timeline_limit;
    /* As last written. While there is an engine, it knows what is left. */
    QrdmaFault faults[QRDMA_MAX_FAULTS];
    unsigned num_faults;
};

/*
 * Fill in s->host_ops and create what they need. Call it once, from realize,
 * before the engine is made.
 */
void qrdma_host_init(QrdmaState *s);

/* Give back what qrdma_host_init() made. The engine must be gone. */
void qrdma_host_cleanup(QrdmaState *s);

/* Forget scheduled work and the timer; for after an engine reset. */
void qrdma_host_reset(QrdmaState *s);

/* Let the engine know whether its trace events are wanted at this moment. */
void qrdma_host_update_trace(QrdmaState *s);

extern const VMStateDescription qrdma_vmstate;  /* qrdma-migration.c */

/* What a migration that was given up has left. */
void qrdma_migration_free(QrdmaState *s);

/* The property "faults"; "audit-report", "audit-watch" and "audit-clear". */
void qrdma_faults_add_property(ObjectClass *class);
void qrdma_audit_add_properties(ObjectClass *class);

/* Have the engine hold s->faults, and no others. */
bool qrdma_faults_arm(QrdmaState *s, Error **errp);

#endif /* HW_RDMA_DEV_QRDMA_H */
