/*
 * qrdma engine: what the card does, without QEMU.
 *
 * The engine is single-threaded: all calls into one engine, and all calls it
 * makes through QrdmaHostOps, happen in one thread (in QEMU: under the BQL).
 * None of its functions can be called from inside a host operation.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_ENGINE_H
#define QRDMA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../abi/qrdma_hw.h"

typedef struct QrdmaEngine QrdmaEngine;

/*
 * What the engine needs from the world. `opaque` is the pointer given to
 * qrdma_engine_new(). Addresses are bus addresses of the card.
 */
typedef struct QrdmaHostOps {
    /*
     * Move `length` bytes (at most 64 KiB) from or to memory. True if all of
     * them were moved; on false any part may have been. Only memory answers:
     * device registers, the card's own included, do not.
     */
    bool (*dma_read)(void *opaque, uint64_t address, void *buffer,
                     size_t length);
    bool (*dma_write)(void *opaque, uint64_t address, const void *buffer,
                      size_t length);

    /*
     * Map memory for direct access. *length in: bytes wanted, not 0; out:
     * bytes mapped from `address`, at least 1. NULL if nothing can be mapped,
     * or if what could be mapped is not the memory itself but a copy. A mapping
     * is short-lived: the engine unmaps it before it returns to its caller.
     * `touched` is how many bytes were written (read mappings: any value).
     */
    void *(*dma_map)(void *opaque, uint64_t address, size_t *length,
                     bool write);
    void (*dma_unmap)(void *opaque, void *pointer, size_t length, bool write,
                      size_t touched);

    /* Raise MSI-X vector 0..QRDMA_MSIX_VECTORS-1. */
    void (*raise_interrupt)(void *opaque, uint32_t vector);

    /* Ask that qrdma_engine_run() be called soon, from a clean stack. */
    void (*schedule)(void *opaque);

    /*
     * Virtual clock, nanoseconds, and the one timer: call
     * qrdma_engine_timer() at `deadline`. Setting it again moves it;
     * UINT64_MAX stops it.
     */
    uint64_t (*clock)(void *opaque);
    void (*set_timer)(void *opaque, uint64_t deadline);

    /*
     * The guest did something wrong: one line without a newline, for the log
     * of guest errors. May be NULL.
     */
    void (*guest_error)(void *opaque, const char *message);

    /*
     * Something worth a trace event happened. May be NULL; then, and while
     * trace_enabled is false, costs nothing. The names are stable:
     * "command", "umr", "qp_state", "access_error", "event", "page_fault".
     */
    void (*trace)(void *opaque, const char *name, const char *text);
    bool trace_enabled;
} QrdmaHostOps;

typedef struct QrdmaConfig {
    uint8_t mac[6];
    bool pble_cache;             /* cache translated PBLEs (default on) */
    bool diagnostics;            /* the diagnostic register window exists */
    /* 0: table units in order, then the context; else the seed of the order. */
    uint64_t umr_order_seed;
    /* Nanoseconds between the translation of a packet and its data; 0: none. */
    uint64_t packet_latency;
} QrdmaConfig;

QrdmaEngine *qrdma_engine_new(const QrdmaHostOps *ops, void *opaque,
                              const QrdmaConfig *config);
void qrdma_engine_free(QrdmaEngine *engine);

/*
 * Back to the state after qrdma_engine_new(). All work in flight is over when
 * it returns: no DMA, no interrupt and no timer follows.
 */
void qrdma_engine_reset(QrdmaEngine *engine);

/*
 * BAR 0. Any offset below QRDMA_BAR_REGISTERS_SIZE and any size of 1, 2, 4, 8:
 * what the specification does not allow reads as zero and ignores writes.
 */
uint64_t qrdma_engine_register_read(QrdmaEngine *engine, uint64_t offset,
                                    unsigned size);
void qrdma_engine_register_write(QrdmaEngine *engine, uint64_t offset,
                                 uint64_t value, unsigned size);

/*
 * BAR 2. Page 0..QRDMA_DOORBELL_PAGES-1, offset within the page. Does no work
 * itself; it notes the counter and schedules.
 */
void qrdma_engine_doorbell(QrdmaEngine *engine, uint32_t page,
                           uint32_t offset, uint64_t value, unsigned size);

/*
 * Do a bounded amount of work; true if more is left (the engine has then called
 * ops->schedule()).
 */
bool qrdma_engine_run(QrdmaEngine *engine);

/* The timer's deadline has passed. */
void qrdma_engine_timer(QrdmaEngine *engine);

#endif /* QRDMA_ENGINE_H */
