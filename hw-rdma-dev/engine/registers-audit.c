/*
 * qrdma engine: BAR 0, the window of the audit.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"

static uint64_t read_watch(QrdmaEngine *engine)
{
    return engine->audit->index;
}

static void write_watch(QrdmaEngine *engine, uint64_t value)
{
    if (!qrdma_engine_audit_watch(engine, value)) {
        qrdma_guest_error(engine, "audit: no mkey index 0x%" PRIx64, value);
    }
}

static void write_control(QrdmaEngine *engine, uint64_t value)
{
    if (value == QRDMA_AUDIT_CLEAR) {
        qrdma_engine_audit_clear(engine);
    } else {
        qrdma_guest_error(engine, "audit: unknown control 0x%" PRIx64, value);
    }
}

static uint64_t read_findings(QrdmaEngine *engine)
{
    return engine->audit->findings->len;
}

static uint64_t read_select(QrdmaEngine *engine)
{
    return engine->audit->selected;
}

static void write_select(QrdmaEngine *engine, uint64_t value)
{
    engine->audit->selected = value;
}

#define COUNTER(field)                                          \
    static uint64_t read_##field(QrdmaEngine *engine)           \
    {                                                           \
        return engine->audit->totals.field;                     \
    }

COUNTER(windows)
COUNTER(maps)
COUNTER(torn_bytes)
COUNTER(widened_bytes)
COUNTER(stale_bytes)
COUNTER(torn_accesses)
COUNTER(revoked_accesses)
COUNTER(stray_accesses)
COUNTER(reused_indices)
COUNTER(unwatched)
COUNTER(unjudged)

/* The finding that is selected; all zero if there is none of its number. */
static QrdmaFinding selected(QrdmaEngine *engine)
{
    const QrdmaFinding *finding =
        qrdma_engine_audit_finding(engine, engine->audit->selected);

    return finding ? *finding : (QrdmaFinding) { 0 };
}

/* As a PBLE: page address and the page's own rights; a bad one is a bad one. */
static uint64_t as_pble(QrdmaAuditAnswer answer)
{
    uint64_t pble = answer.address & QRDMA_PBLE_ADDRESS;

    if (answer.rights & QRDMA_AUDIT_MALFORMED) {
        return QRDMA_PBLE_RESERVED;
    }
    if (answer.rights & QRDMA_AUDIT_READ) {
        pble |= QRDMA_PBLE_READ;
    }
    if (answer.rights & QRDMA_AUDIT_WRITE) {
        pble |= QRDMA_PBLE_WRITE;
    }
    return pble;
}

#define FINDING(name, value)                                    \
    static uint64_t read_finding_##name(QrdmaEngine *engine)    \
    {                                                           \
        QrdmaFinding finding = selected(engine);                \
                                                                \
        return (value);                                         \
    }

FINDING(kind, finding.kind)
FINDING(key, finding.key)
FINDING(address, finding.address)
FINDING(length, finding.length)
FINDING(shown, as_pble(finding.shown))
FINDING(old, as_pble(finding.old_answer))
FINDING(new, as_pble(finding.new_answer))
FINDING(change, finding.change)
FINDING(time, finding.time)

static const QrdmaRegisterType types[] = {
    { QRDMA_REG_AUDIT_WATCH, 4, read_watch, write_watch },
    { QRDMA_REG_AUDIT_CONTROL, 4, NULL, write_control },
    { QRDMA_REG_AUDIT_FINDINGS, 4, read_findings, NULL },
    { QRDMA_REG_AUDIT_SELECT, 4, read_select, write_select },
    { QRDMA_REG_AUDIT_WINDOWS, 8, read_windows, NULL },
    { QRDMA_REG_AUDIT_MAPS, 8, read_maps, NULL },
    { QRDMA_REG_AUDIT_TORN_BYTES, 8, read_torn_bytes, NULL },
    { QRDMA_REG_AUDIT_WIDENED_BYTES, 8, read_widened_bytes, NULL },
    { QRDMA_REG_AUDIT_STALE_BYTES, 8, read_stale_bytes, NULL },
    { QRDMA_REG_AUDIT_TORN_ACCESSES, 8, read_torn_accesses, NULL },
    { QRDMA_REG_AUDIT_REVOKED_ACCESSES, 8, read_revoked_accesses, NULL },
    { QRDMA_REG_AUDIT_STRAY_ACCESSES, 8, read_stray_accesses, NULL },
    { QRDMA_REG_AUDIT_REUSED_INDICES, 8, read_reused_indices, NULL },
    { QRDMA_REG_AUDIT_UNWATCHED, 8, read_unwatched, NULL },
    { QRDMA_REG_AUDIT_UNJUDGED, 8, read_unjudged, NULL },
    { QRDMA_REG_FINDING_KIND, 4, read_finding_kind, NULL },
    { QRDMA_REG_FINDING_KEY, 4, read_finding_key, NULL },
    { QRDMA_REG_FINDING_ADDRESS, 8, read_finding_address, NULL },
    { QRDMA_REG_FINDING_LENGTH, 8, read_finding_length, NULL },
    { QRDMA_REG_FINDING_SHOWN, 8, read_finding_shown, NULL },
    { QRDMA_REG_FINDING_OLD, 8, read_finding_old, NULL },
    { QRDMA_REG_FINDING_NEW, 8, read_finding_new, NULL },
    { QRDMA_REG_FINDING_CHANGE, 8, read_finding_change, NULL },
    { QRDMA_REG_FINDING_TIME, 8, read_finding_time, NULL },
};

static bool is_there(const QrdmaEngine *engine)
{
    return engine->audit;
}

const QrdmaRegisterWindow qrdma_audit_window = {
    types, G_N_ELEMENTS(types), is_there,
};
