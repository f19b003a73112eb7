/*
 * qrdma engine: the audit, as its parts see each other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_AUDIT_INTERNAL_H
#define QRDMA_AUDIT_INTERNAL_H

#include "audit-map.h"
#include "audit.h"
#include "engine-internal.h"
#include "umr-internal.h"

/*
 * What a window may note, and all windows together; memory is bounded by these,
 * not by the guest.
 */
#define AUDIT_MAX_PIECES (1u << 20)
#define AUDIT_MAX_CHANGES (1u << 16)
#define AUDIT_MAX_ACCESSES (1u << 16)
#define AUDIT_MAX_NOTES (1u << 22)
/* After so many changes in a window, the slices of a UMR are told as one. */
#define AUDIT_MAX_SLICES 1024u
/* Entries of all watched tables together. */
#define AUDIT_TOTAL_ENTRIES (1u << 23)

struct QrdmaAudit {
    uint32_t index;             /* the mkey that is watched; 0: all */
    uint64_t entries;           /* of all watches */
    uint64_t notes;             /* of all windows */
    uint64_t last_watch;        /* number of the last that was begun */
    QrdmaAuditTotals totals;
    GPtrArray *findings;        /* QrdmaFinding */
    uint32_t selected;          /* by the register window */
};

/* A change of the map, or of one UMR's table part the units together. */
typedef struct AuditChange {
    uint64_t number;
    uint64_t time;
    uint32_t qpn;               /* 0: a command */
    bool is_context;
    uint32_t slice;             /* of the UMR: accesses fall in between */
    char *text;
    /* Who was let in afterwards; present: whether there was anything. */
    QrdmaAuditScope scope;
    bool present;
} AuditChange;

/* What an interval of the map became by a change. */
typedef struct AuditPiece {
    uint64_t address;
    uint64_t length;
    QrdmaAuditAnswer answer;    /* of its first byte */
    uint32_t change;            /* index in the window */
    bool is_old;                /* same answer as before the window */
} AuditPiece;

/* An access in a window, granted with an answer that is not the old one. */
typedef struct AuditAccess {
    uint64_t address;
    uint64_t length;
    QrdmaAuditAnswer answer;
    uint32_t change;            /* the last one before it */
} AuditAccess;

/* From one settled map to the next. */
typedef struct AuditWindow {
    uint64_t begin;
    QrdmaAuditMap *old;
    GArray *changes;            /* AuditChange */
    GArray *pieces;             /* AuditPiece, by change */
    GArray *accesses;           /* AuditAccess */
    uint64_t maps;
} AuditWindow;

struct QrdmaAuditWatch {
    uint64_t number;            /* from 1 on: none has it twice */
    uint32_t key;               /* index and the present variant */
    QrdmaAuditMap now;
    /* What the driver asked for, while that is not `now`; else NULL. */
    QrdmaAuditMap *wish;
    QrdmaAuditMap *agreed;      /* what both were, when that began */
    AuditWindow *window;        /* NULL: settled */
    bool check_stale;           /* now or wish has changed since then */
    uint64_t stale;             /* bytes that were stale then */
    uint64_t silent;            /* the last change told that showed nothing */
    /* The last change that completed. */
    uint64_t completed_number;
    char *completed_text;
};

/* What the map is to show. */
static inline const QrdmaAuditMap *audit_wished(const QrdmaAuditWatch *watch)
{
    return watch->wish ? watch->wish : &watch->now;
}

static inline uint64_t audit_now(QrdmaEngine *engine)
{
    return engine->ops->clock(engine->opaque);
}

/* ----------------------------------------------------------- audit-window.c */

AuditWindow *audit_window_new(QrdmaEngine *engine, const QrdmaAuditMap *old);
void audit_window_free(QrdmaEngine *engine, AuditWindow *window);

/*
 * A change has begun to show; audit_window_note() then says where. Units of one
 * slice of a UMR are one change. before: as for audit_describe().
 */
void audit_window_change(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                         const QrdmaUmr *umr, const QrdmaMkc *before);
void audit_window_note(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                       uint64_t address, uint64_t length);
void audit_window_note_access(QrdmaEngine *engine, AuditWindow *window,
                              const AuditAccess *access);

/* ------------------------------------------------------------ audit-judge.c */

/*
 * The window ends: all that was noted is judged against what the map is to show
 * now. new_map NULL: nothing. `how`: for the timeline.
 */
void audit_judge(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                 const QrdmaAuditMap *new_map, const char *how);

/* ----------------------------------------------------------- audit-report.c */

/* Takes what it needs; description is copied. */
void audit_find(QrdmaEngine *engine, const QrdmaFinding *finding);

GPtrArray *audit_findings_new(void);

/* Does nothing while nobody wants the timeline. */
void audit_timeline(QrdmaEngine *engine, const QrdmaTimelineRecord *record);

/*
 * In words, newly allocated. Of the context: "page size 2^12 to 2^26", given
 * the one before it; of the table, for NULL: "entries 0..7 absent".
 */
char *audit_describe(const QrdmaUmr *umr, const QrdmaMkc *before);

#endif /* QRDMA_AUDIT_INTERNAL_H */
