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

#include "../abi/qrdma_diagnostic.h"

typedef struct QrdmaEngine QrdmaEngine;
struct QrdmaTimelineRecord;

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
     * "command", "umr", "qp_state", "access_error", "event", "page_fault",
     * "audit" (a finding), "audit_window" (one ended), "fault" (one hit).
     */
    void (*trace)(void *opaque, const char *name, const char *text);
    bool trace_enabled;

    /*
     * A record of the timeline (timeline.h), of watched mkeys only. May be
     * NULL; then costs nothing. Pointers in it are good during the call.
     */
    void (*timeline)(void *opaque, const struct QrdmaTimelineRecord *record);
} QrdmaHostOps;

typedef struct QrdmaConfig {
    uint8_t mac[6];
    bool pble_cache;             /* cache translated PBLEs (default on) */
    bool diagnostics;            /* the diagnostic register window exists */
    /* 0: table units in order, then the context; else the seed of the order. */
    uint64_t umr_order_seed;
    /*
     * Virtual time between the translation of a packet and its data:
     * packet_latency nanoseconds, and its length at `bandwidth` bytes a second
     * (0: no limit). Both 0: packets take no time.
     */
    uint64_t packet_latency;
    uint64_t bandwidth;
    bool audit;                  /* the audit is there, and watches all mkeys */
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

/* ------------------------------------------------------ saving and loading */

/*
 * A card's state in parts, each a blob of its own. CARD is always there. The
 * others are the tests' equipment; they are saved where they hold something.
 * The cache of PBLEs is not saved: a card may forget it at any time.
 */
typedef enum QrdmaPart {
    QRDMA_PART_CARD,
    QRDMA_PART_FAULTS,          /* what is armed, and what is held back */
    QRDMA_PART_AUDIT,           /* findings, watched maps, open windows */
    QRDMA_PARTS
} QrdmaPart;

/* Of any part; more cannot be saved, and is not loaded. */
#define QRDMA_SAVED_MAX (512u << 20)

typedef struct QrdmaSaved {
    void *bytes;                /* g_malloc(); NULL: the part is not there */
    size_t length;              /* 1..QRDMA_SAVED_MAX */
} QrdmaSaved;

/* "card", "faults", "audit". */
const char *qrdma_part_name(QrdmaPart part);

/* Whether the part holds anything. True for CARD. */
bool qrdma_engine_has_part(const QrdmaEngine *engine, QrdmaPart part);

/*
 * The state between two calls of qrdma_engine_run(), work in flight included.
 * The engine is as before, and goes on if it is let. False: the part is larger
 * than QRDMA_SAVED_MAX; *error, to be freed by the caller, says so.
 */
bool qrdma_engine_save(QrdmaEngine *engine, QrdmaPart part, QrdmaSaved *saved,
                       char **error);

/*
 * Become the card that was saved, with the same guest memory and virtual clock.
 * No DMA is done before qrdma_engine_run() or qrdma_engine_timer() is called;
 * the host is asked for both. What the guest can see of the configuration has
 * to be the same: mac, pble_cache, diagnostics, audit.
 *
 * False: the card has been reset instead, and *error, to be freed by the
 * caller, names the field that is wrong:
 * "card: qp[17].send.producer: 70000 is not in 0..65535".
 */
bool qrdma_engine_load(QrdmaEngine *engine,
                       const QrdmaSaved saved[QRDMA_PARTS], char **error);

/* -------------------------------------------------------- fault injection */

/* As QRDMA_REG_FAULT_* say; what an action or a target does not use is 0. */
typedef struct QrdmaFault {
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
    /* Out only, from qrdma_engine_fault_list(). */
    uint32_t seen;              /* things that matched since it was armed */
    uint32_t hit;
} QrdmaFault;

/*
 * Armed until spent or cleared, over resets of the card; what a fault holds
 * back is lost in a reset. Works with config.diagnostics off as well.
 */
enum qrdma_fault_result qrdma_engine_fault_arm(QrdmaEngine *engine,
                                               const QrdmaFault *fault);
void qrdma_engine_fault_clear(QrdmaEngine *engine);

/*
 * What qrdma_engine_fault_arm() would say of this fault alone, without arming
 * it; never QRDMA_FAULT_TOO_MANY. For those who replace all faults, or none.
 */
enum qrdma_fault_result qrdma_fault_check(const QrdmaFault *fault);

/* Those armed and not spent, in the order they were armed. */
unsigned qrdma_engine_fault_list(const QrdmaEngine *engine,
                                 QrdmaFault faults[QRDMA_MAX_FAULTS]);

/* In words, for errors: "at must not be 0". */
const char *qrdma_fault_result_text(enum qrdma_fault_result result);

/* ------------------------------------------------------------------ audit */

/* What a byte of a region is translated to. */
typedef struct QrdmaAuditAnswer {
    uint64_t address;           /* on the bus */
    uint32_t rights;            /* QRDMA_AUDIT_*; 0: absent */
} QrdmaAuditAnswer;

#define QRDMA_AUDIT_READ            (1u << 0)   /* page may be read ... */
#define QRDMA_AUDIT_WRITE           (1u << 1)
#define QRDMA_AUDIT_LOCAL_WRITE     (1u << 2)   /* ... and the key lets */
#define QRDMA_AUDIT_REMOTE_READ     (1u << 3)
#define QRDMA_AUDIT_REMOTE_WRITE    (1u << 4)
#define QRDMA_AUDIT_REMOTE_ATOMIC   (1u << 5)
#define QRDMA_AUDIT_MALFORMED       (1u << 31)  /* present, but refused */

/* One thing that must not be. */
typedef struct QrdmaFinding {
    enum qrdma_finding kind;
    uint32_t key;
    uint64_t address;           /* interval of the region, virtual */
    uint64_t length;
    QrdmaAuditAnswer shown;     /* of its first byte */
    QrdmaAuditAnswer old_answer;
    QrdmaAuditAnswer new_answer;
    uint64_t change;            /* number of the UMR or command; 0: none */
    char *description;          /* of that, as in the timeline; or NULL */
    uint64_t time;              /* virtual, nanoseconds */
} QrdmaFinding;

/* Counters as QRDMA_REG_AUDIT_*; everything since the last clear. */
typedef struct QrdmaAuditTotals {
    uint64_t windows;
    uint64_t maps;
    uint64_t torn_bytes;
    uint64_t widened_bytes;
    uint64_t stale_bytes;
    uint64_t torn_accesses;
    uint64_t revoked_accesses;
    uint64_t stray_accesses;
    uint64_t reused_indices;
    uint64_t unwatched;
    uint64_t unjudged;
} QrdmaAuditTotals;

/* Zero where config.audit is off. Survives resets of the card. */
QrdmaAuditTotals qrdma_engine_audit_totals(const QrdmaEngine *engine);

/* Finding number 0.., oldest first; NULL: there are not so many. */
const QrdmaFinding *qrdma_engine_audit_finding(const QrdmaEngine *engine,
                                               unsigned number);
void qrdma_engine_audit_clear(QrdmaEngine *engine);

/* A mkey index, or 0 for all. False: no such index. */
bool qrdma_engine_audit_watch(QrdmaEngine *engine, uint32_t index);
uint32_t qrdma_engine_audit_watched(const QrdmaEngine *engine);

const char *qrdma_finding_name(enum qrdma_finding kind);

#endif /* QRDMA_ENGINE_H */
