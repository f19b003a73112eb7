/*
 * qrdma engine: what the audit has found, and how it is read.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"

static void free_finding(gpointer data)
{
    QrdmaFinding *finding = data;

    g_free(finding->description);
    g_free(finding);
}

GPtrArray *audit_findings_new(void)
{
    return g_ptr_array_new_with_free_func(free_finding);
}

const char *qrdma_finding_name(enum qrdma_finding kind)
{
    static const char *const names[] = {
        [QRDMA_FINDING_NONE] = "none",
        [QRDMA_FINDING_TORN] = "torn",
        [QRDMA_FINDING_WIDENED] = "widened",
        [QRDMA_FINDING_STALE] = "stale",
        [QRDMA_FINDING_TORN_ACCESS] = "torn-access",
        [QRDMA_FINDING_REVOKED_ACCESS] = "revoked-access",
        [QRDMA_FINDING_STRAY_ACCESS] = "stray-access",
        [QRDMA_FINDING_REUSED_INDEX] = "reused-index",
    };

    return (unsigned)kind < G_N_ELEMENTS(names) ? names[kind] : "unknown";
}

const char *qrdma_timeline_class_name(QrdmaTimelineClass class)
{
    static const char *const names[] = {
        [QRDMA_CLASS_ABSENT] = "absent",
        [QRDMA_CLASS_OLD] = "old",
        [QRDMA_CLASS_NEW] = "new",
        [QRDMA_CLASS_TORN] = "torn",
        [QRDMA_CLASS_WIDENED] = "widened",
        [QRDMA_CLASS_STALE] = "stale",
    };

    return (unsigned)class < G_N_ELEMENTS(names) ? names[class] : "unknown";
}

void audit_find(QrdmaEngine *engine, const QrdmaFinding *finding)
{
    GPtrArray *findings = engine->audit->findings;
    QrdmaTimelineRecord record = {
        .kind = QRDMA_TIMELINE_FINDING,
        .key = finding->key,
        .begin = finding->time,
        .end = finding->time,
        .address = finding->address,
        .length = finding->length,
        .change = finding->change,
        .text = qrdma_finding_name(finding->kind),
    };

    qrdma_trace(engine, "audit", "%s key 0x%08x address 0x%" PRIx64
                " length %" PRIu64 " shown 0x%" PRIx64 "/0x%x old 0x%" PRIx64
                "/0x%x new 0x%" PRIx64 "/0x%x change %" PRIu64 " (%s)",
                qrdma_finding_name(finding->kind), finding->key,
                finding->address, finding->length, finding->shown.address,
                finding->shown.rights, finding->old_answer.address,
                finding->old_answer.rights, finding->new_answer.address,
                finding->new_answer.rights, finding->change,
                finding->description ? finding->description : "none");
    audit_timeline(engine, &record);
    if (findings->len < QRDMA_MAX_FINDINGS) {
        QrdmaFinding *copy = g_memdup2(finding, sizeof(*finding));

        copy->description = g_strdup(finding->description);
        g_ptr_array_add(findings, copy);
    }
}

void audit_timeline(QrdmaEngine *engine, const QrdmaTimelineRecord *record)
{
    if (engine->ops->timeline) {
        engine->ops->timeline(engine->opaque, record);
    }
}

/* ----------------------------------------------------------------- in words */

static bool all_absent(const QrdmaUmr *umr)
{
    for (uint64_t i = 0; i < umr->units * QRDMA_PBLES_PER_UNIT; i++) {
        if (qrdma_le64(umr->data[i]) & QRDMA_PBLE_PRESENT) {
            return false;
        }
    }
    return true;
}

static char *describe_units(const QrdmaUmr *umr)
{
    uint64_t first = umr->table_offset / QRDMA_PBLE_SIZE;
    uint64_t count = umr->units * (uint64_t)QRDMA_PBLES_PER_UNIT;

    return g_strdup_printf("entries %" PRIu64 "..%" PRIu64 "%s", first,
                           first + count - 1,
                           all_absent(umr) ? " absent" : "");
}

static void add_words(GString *text, const char *words)
{
    if (text->len) {
        g_string_append(text, ", ");
    }
    g_string_append(text, words);
}

static char *describe_context(const QrdmaUmr *umr, const QrdmaMkc *before)
{
    static const struct {
        uint64_t mask;
        const char *words;
    } parts[] = {
        { QRDMA_UMR_MASK_LOCAL_WRITE | QRDMA_UMR_MASK_REMOTE_READ |
          QRDMA_UMR_MASK_REMOTE_WRITE | QRDMA_UMR_MASK_REMOTE_ATOMIC,
          "rights" },
        { QRDMA_UMR_MASK_RELAXED_ORDERING, "relaxed ordering" },
        { QRDMA_UMR_MASK_ON_DEMAND, "on demand" },
        { QRDMA_UMR_MASK_VARIANT, "variant" },
        { QRDMA_UMR_MASK_PD, "PD" },
        { QRDMA_UMR_MASK_QPN, "QP" },
        { QRDMA_UMR_MASK_START, "start" },
        { QRDMA_UMR_MASK_LENGTH, "length" },
    };
    GString *text = g_string_new(NULL);

    if (umr->mask & QRDMA_UMR_MASK_FREE) {
        add_words(text, umr->fields.flags & QRDMA_MKEY_FREE ? "free"
                                                            : "not free");
    }
    if (umr->mask & QRDMA_UMR_MASK_PAGE_SIZE) {
        g_autofree char *sizes =
            g_strdup_printf("page size 2^%u to 2^%u", before->log_page_size,
                            umr->fields.log_page_size);

        add_words(text, sizes);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(parts); i++) {
        if (umr->mask & parts[i].mask) {
            add_words(text, parts[i].words);
        }
    }
    return g_string_free(text, false);
}

char *audit_describe(const QrdmaUmr *umr, const QrdmaMkc *before)
{
    return before ? describe_context(umr, before) : describe_units(umr);
}

/* ------------------------------------------------------------------ reading */

QrdmaAuditTotals qrdma_engine_audit_totals(const QrdmaEngine *engine)
{
    return engine->audit ? engine->audit->totals : (QrdmaAuditTotals) { 0 };
}

const QrdmaFinding *qrdma_engine_audit_finding(const QrdmaEngine *engine,
                                               unsigned number)
{
    if (!engine->audit || number >= engine->audit->findings->len) {
        return NULL;
    }
    return g_ptr_array_index(engine->audit->findings, number);
}

void qrdma_engine_audit_clear(QrdmaEngine *engine)
{
    if (engine->audit) {
        engine->audit->totals = (QrdmaAuditTotals) { 0 };
        g_ptr_array_set_size(engine->audit->findings, 0);
    }
}
