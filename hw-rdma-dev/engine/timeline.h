/*
 * qrdma engine: the timeline: what became of watched mkeys, record by record.
 *
 * A change window is what lies between two settled maps of a mkey: it begins
 * with the first change of the map and ends when a change completes after which
 * the region is whole (every byte present) or empty. Only then can be said
 * which answers were new and which torn, so the records of a window come at its
 * end, with the times at which the changes were made: WINDOW first, its CHANGEs
 * in order after it. A change of entries or fields that nobody can reach
 * belongs to no window: its CHANGE has no intervals and comes at once. ACCESS
 * records come when the access ends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_TIMELINE_H
#define QRDMA_TIMELINE_H

#include <stddef.h>
#include <stdint.h>

typedef enum QrdmaTimelineKind {
    QRDMA_TIMELINE_CREATE,      /* mkey; address, length: its region */
    QRDMA_TIMELINE_DESTROY,
    QRDMA_TIMELINE_WINDOW,      /* begin..end; address, length: region */
    QRDMA_TIMELINE_CHANGE,      /* at begin; intervals: what differs */
    QRDMA_TIMELINE_ACCESS,      /* begin..end; address, length: bytes */
    QRDMA_TIMELINE_FINDING,     /* at begin; address, length: interval */
} QrdmaTimelineKind;

/* How a byte of the map stands to the window's beginning and end. */
typedef enum QrdmaTimelineClass {
    QRDMA_CLASS_ABSENT,
    QRDMA_CLASS_OLD,            /* as before the window (new, where the same) */
    QRDMA_CLASS_NEW,            /* as after it */
    QRDMA_CLASS_TORN,           /* none of these; malformed entries, too */
    QRDMA_CLASS_WIDENED,        /* old or new place, with rights of neither */
    QRDMA_CLASS_STALE,          /* as before, after it should have gone */
} QrdmaTimelineClass;

typedef struct QrdmaTimelineInterval {
    uint64_t address;           /* virtual */
    uint64_t length;
    QrdmaTimelineClass class;
} QrdmaTimelineInterval;

typedef struct QrdmaTimelineRecord {
    QrdmaTimelineKind kind;
    uint32_t key;
    uint32_t qpn;               /* ACCESS: whose; CHANGE: UMR queue, or 0 */
    uint64_t begin;             /* virtual time, nanoseconds */
    uint64_t end;               /* begin, where nothing lasts */
    uint64_t address;           /* virtual */
    uint64_t length;
    uint64_t change;            /* CHANGE, FINDING: number of the change */
    /*
     * What was done. CHANGE: "entries 0..7 absent", "entries 8..31", "page size
     * 2^12 to 2^26", "free", "rights", "PD", joined by ", ". ACCESS: "local
     * read", "remote write" and so on, then ", refused: error N" where it was.
     * FINDING: the name of its kind. WINDOW: "whole", "empty" or "open": how it
     * ended.
     */
    const char *text;
    /* Sorted by address, not overlapping, neighbours of one class joined. */
    const QrdmaTimelineInterval *intervals;
    size_t num_intervals;
} QrdmaTimelineRecord;

/* "absent", "old", ... */
const char *qrdma_timeline_class_name(QrdmaTimelineClass class);

#endif /* QRDMA_TIMELINE_H */
