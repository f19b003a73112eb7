/*
 * qrdma engine: the engine as its parts see it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_ENGINE_INTERNAL_H
#define QRDMA_ENGINE_INTERNAL_H

#include <glib.h>
#include <inttypes.h>
#include <string.h>

#include "access.h"
#include "audit.h"
#include "byteorder.h"
#include "command.h"
#include "engine.h"
#include "faults.h"
#include "gid.h"
#include "hmc.h"
#include "mkey.h"
#include "pble-cache.h"
#include "pble.h"
#include "queues.h"
#include "registers.h"
#include "umr.h"

/* As struct qrdma_counters; who counts what is said where it is counted. */
typedef struct QrdmaCounters {
    uint64_t commands;
    uint64_t commands_refused;
    uint64_t umr_completed;         /* umr.c */
    uint64_t umr_refused;           /* umr.c */
    uint64_t umr_flushed;           /* queues */
    uint64_t umr_table_bytes;       /* umr.c */
    uint64_t send_messages;         /* queues */
    uint64_t receive_messages;      /* queues */
    uint64_t send_bytes;            /* queues */
    uint64_t receive_bytes;         /* queues */
    uint64_t packets;               /* queues */
    uint64_t access_refused;        /* access.c; queues where the bus refused */
    uint64_t page_faults;           /* queues: QPs suspended */
    uint64_t page_faults_resumed;   /* queues */
    uint64_t pble_cache_hits;
    uint64_t pble_cache_misses;
    uint64_t rnr_retries;           /* queues */
    uint64_t doorbells_ignored;     /* queues */
    uint64_t events_lost;           /* queues */
    uint64_t dma_errors;            /* qrdma_dma_*() */
} QrdmaCounters;

/* Who has deadlines. The host has one timer for all of them. */
typedef enum QrdmaTimer {
    QRDMA_TIMER_QUEUES,
    QRDMA_TIMER_FAULTS,
    QRDMA_TIMERS
} QrdmaTimer;

struct QrdmaEngine {
    const QrdmaHostOps *ops;
    void *opaque;
    QrdmaConfig config;

    QrdmaRegisters registers;
    QrdmaCommandQueue commands;
    QrdmaCounters counters;
    QrdmaGid gids[QRDMA_MAX_GIDS];
    QrdmaHmc hmc;
    QrdmaMkeys mkeys;
    QrdmaPbleCache pble_cache;
    uint64_t umr_random;            /* state; from umr_order_seed */
    uint64_t changes;               /* UMRs and modifies begun, over resets */
    QrdmaAudit *audit;              /* NULL: off */
    QrdmaFaults *faults;            /* never NULL */
    uint64_t deadlines[QRDMA_TIMERS];
    uint64_t timer;                 /* what the host's timer is set to */
    QrdmaQueues *queues;
    bool scheduled;                 /* qrdma_engine_run() is on its way */
};

/* Enabled and not in fatal error: only then is anything moved. */
bool qrdma_engine_running(const QrdmaEngine *engine);

/* QRDMA_CAPABILITY_*, as configured. */
uint64_t qrdma_engine_capabilities(const QrdmaEngine *engine);

/* Have the host's timer run off at the first of the deadlines. */
void qrdma_engine_update_timer(QrdmaEngine *engine);

/* Nanoseconds of virtual time; UINT64_MAX: none. Replaces the earlier one. */
static inline void qrdma_engine_set_timer(QrdmaEngine *engine, QrdmaTimer timer,
                                          uint64_t deadline)
{
    if (deadline != engine->deadlines[timer]) {
        engine->deadlines[timer] = deadline;
        qrdma_engine_update_timer(engine);
    }
}

/* Have qrdma_engine_run() called. */
void qrdma_engine_schedule(QrdmaEngine *engine);

/*
 * The card stops, for good until a reset. Only notes it: the caller, and its
 * callers, must look at qrdma_engine_running() and do no more. The first code
 * stays.
 */
void qrdma_engine_fatal(QrdmaEngine *engine, enum qrdma_fatal_code code);

/*
 * Move any number of bytes; false if one of them could not be, or if the range
 * wraps. Counts errors.
 */
bool qrdma_dma_read(QrdmaEngine *engine, uint64_t address, void *buffer,
                    size_t length);
bool qrdma_dma_write(QrdmaEngine *engine, uint64_t address, const void *buffer,
                     size_t length);

/* Whether an injected fault hits the transfer: it is to fail. Asked once. */
static inline bool qrdma_dma_is_faulty(QrdmaEngine *engine, bool write,
                                       uint64_t address, uint64_t length)
{
    return qrdma_faults_of(engine->faults, write ? QRDMA_FAULT_DMA_WRITE
                                                 : QRDMA_FAULT_DMA_READ) &&
           qrdma_fault_dma(engine, write, address, length);
}

/* The guest broke a rule of the specification. */
void qrdma_guest_error(QrdmaEngine *engine, const char *format, ...)
    G_GNUC_PRINTF(2, 3);

/* Names: see QrdmaHostOps. Arguments are not evaluated while tracing is off. */
#define qrdma_trace(engine, name, ...)                                  \
    do {                                                                \
        if ((engine)->ops->trace_enabled && (engine)->ops->trace) {     \
            qrdma_trace_write((engine), (name), __VA_ARGS__);           \
        }                                                               \
    } while (0)

void qrdma_trace_write(QrdmaEngine *engine, const char *name,
                       const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Whether all bytes of a reserved field are zero. */
bool qrdma_is_zero(const void *bytes, size_t length);

#endif /* QRDMA_ENGINE_INTERNAL_H */
