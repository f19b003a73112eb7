/*
 * qrdma engine tests: a host made of memory, a clock and a log.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FAKE_HOST_H
#define QRDMA_FAKE_HOST_H

#include <glib.h>

#include "../engine.h"

typedef struct FakeHost {
    QrdmaHostOps ops;
    QrdmaEngine *engine;        /* set by who makes the engine */

    GArray *memory;             /* ranges that answer */
    GArray *refusals;           /* ranges that refuse */
    unsigned mappings;          /* dma_map() not yet unmapped */

    bool scheduled;             /* qrdma_engine_run() was asked for */
    uint64_t now;               /* nanoseconds */
    uint64_t deadline;          /* UINT64_MAX: no timer */

    unsigned interrupts[QRDMA_MSIX_VECTORS];
    unsigned reads;             /* DMA transfers, mappings too */
    unsigned writes;
    unsigned guest_errors;
    char *last_guest_error;
    GPtrArray *traces;          /* "name: text"; while ops.trace_enabled */
} FakeHost;

FakeHost *fake_host_new(void);
void fake_host_free(FakeHost *host);

/* Memory that reads as zero at first. Ranges must not overlap. */
void fake_host_add_memory(FakeHost *host, uint64_t base, uint64_t size);

/* Host's view of a bus address; the range must be memory, in one piece. */
void *fake_host_pointer(FakeHost *host, uint64_t address, uint64_t size);

/* Every DMA that touches the range fails from now on. */
void fake_host_refuse(FakeHost *host, uint64_t base, uint64_t size,
                      bool reads, bool writes);
void fake_host_allow_all(FakeHost *host);

/* One call of qrdma_engine_run(), if it was asked for; false if not. */
bool fake_host_step(FakeHost *host);

/* Until nothing is scheduled. Timers do not fire. */
void fake_host_run(FakeHost *host);

/* Move the clock; the timer fires if it is due, but no work is done. */
void fake_host_tick(FakeHost *host, uint64_t nanoseconds);

/* Move the clock; timers that become due fire in order, work in between. */
void fake_host_advance(FakeHost *host, uint64_t nanoseconds);

/* Until nothing is scheduled and no timer is set: everything is over. */
void fake_host_settle(FakeHost *host);

#endif /* QRDMA_FAKE_HOST_H */
