/*
 * qrdma engine fuzzing: what the engine tells about itself has to be in order.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz-common.h"

/* With QRDMA_FUZZ_TRACE in the environment people read it. */
static bool is_printed;

static void take_trace(void *opaque, const char *name, const char *text)
{
    if (!strlen(name) || !strlen(text) || strchr(text, '\n')) {
        fuzz_fail("a trace event is not a line");
    }
    if (is_printed) {
        fprintf(stderr, "%s: %s\n", name, text);
    }
}

static void take_guest_error(void *opaque, const char *message)
{
    take_trace(opaque, "guest error", message);
}

static void check_intervals(const QrdmaTimelineRecord *record)
{
    const QrdmaTimelineInterval *last = NULL;

    for (size_t i = 0; i < record->num_intervals; i++) {
        const QrdmaTimelineInterval *one = &record->intervals[i];

        if (!one->length || one->address + (one->length - 1) < one->address ||
            !qrdma_timeline_class_name(one->class)) {
            fuzz_fail("an interval of the timeline is none");
        }
        if (last && (one->address < last->address + last->length ||
                     (one->address == last->address + last->length &&
                      one->class == last->class))) {
            fuzz_fail("intervals of the timeline are not in order or joined");
        }
        last = one;
    }
}

static void take_record(void *opaque, const QrdmaTimelineRecord *record)
{
    FakeHost *host = opaque;

    if (record->begin > record->end || record->end > host->now) {
        fuzz_fail("a record of the timeline is of another time");
    }
    check_intervals(record);
    if (record->text && is_printed) {
        fprintf(stderr, "timeline: key 0x%08x %s\n", record->key,
                record->text);
    }
}

void fuzz_trace(FakeHost *host, bool wanted)
{
    is_printed = getenv("QRDMA_FUZZ_TRACE");
    if (is_printed || wanted) {
        host->ops.trace_enabled = true;
        host->ops.trace = take_trace;
        host->ops.timeline = take_record;
        host->ops.guest_error = take_guest_error;
    }
}
