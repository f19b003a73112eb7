/*
 * qrdma: the audit as properties of the device: what it found, which mkeys it
 * watches, and forgetting what it found.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/rdma-dev/pci/qrdma.h"

/* A verdict of an audit that is off would be a false one: there is none. */
static bool audit_is_there(QrdmaState *s, const char *name, Error **errp)
{
    if (!s->audit) {
        error_setg(errp, "property '%s' needs audit=on", name);
        return false;
    }
    if (!s->engine) {
        error_setg(errp, "property '%s' needs a device that is realized",
                   name);
        return false;
    }
    return true;
}

/* ------------------------------------------------------ parts of a report */

static bool put_number(Visitor *v, const char *name, uint64_t value,
                       Error **errp)
{
    return visit_type_uint64(v, name, &value, errp);
}

static bool put_string(Visitor *v, const char *name, const char *value,
                       Error **errp)
{
    char *text = (char *)(value ?: "");

    return visit_type_str(v, name, &text, errp);
}

static bool put_counters(Visitor *v, const QrdmaAuditTotals *totals,
                         Error **errp)
{
    const struct {
        const char *name;
        uint64_t value;
    } counters[] = {
        { "windows", totals->windows },
        { "maps", totals->maps },
        { "torn-bytes", totals->torn_bytes },
        { "widened-bytes", totals->widened_bytes },
        { "stale-bytes", totals->stale_bytes },
        { "torn-accesses", totals->torn_accesses },
        { "revoked-accesses", totals->revoked_accesses },
        { "stray-accesses", totals->stray_accesses },
        { "reused-indices", totals->reused_indices },
        { "unwatched", totals->unwatched },
        { "unjudged", totals->unjudged },
    };
    bool ok = true;

    if (!visit_start_struct(v, "counters", NULL, 0, errp)) {
        return false;
    }
    for (size_t i = 0; ok && i < ARRAY_SIZE(counters); i++) {
        ok = put_number(v, counters[i].name, counters[i].value, errp);
    }
    visit_end_struct(v, NULL);
    return ok;
}

static bool put_rights(Visitor *v, uint32_t rights, Error **errp)
{
    static const struct {
        uint32_t right;
        const char *name;
    } names[] = {
        { QRDMA_AUDIT_READ, "read" },
        { QRDMA_AUDIT_WRITE, "write" },
        { QRDMA_AUDIT_LOCAL_WRITE, "local-write" },
        { QRDMA_AUDIT_REMOTE_READ, "remote-read" },
        { QRDMA_AUDIT_REMOTE_WRITE, "remote-write" },
        { QRDMA_AUDIT_REMOTE_ATOMIC, "remote-atomic" },
        { QRDMA_AUDIT_MALFORMED, "malformed" },
    };
    bool ok = true;

    if (!visit_start_list(v, "rights", NULL, 0, errp)) {
        return false;
    }
    for (size_t i = 0; ok && i < ARRAY_SIZE(names); i++) {
        if (rights & names[i].right) {
            ok = put_string(v, NULL, names[i].name, errp);
        }
    }
    visit_end_list(v, NULL);
    return ok;
}

/* No rights: the byte was absent. */
static bool put_answer(Visitor *v, const char *name,
                       const QrdmaAuditAnswer *answer, Error **errp)
{
    bool ok;

    if (!visit_start_struct(v, name, NULL, 0, errp)) {
        return false;
    }
    ok = put_number(v, "address", answer->address, errp) &&
         put_rights(v, answer->rights, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static bool put_finding(Visitor *v, const QrdmaFinding *finding, Error **errp)
{
    bool ok;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = put_string(v, "kind", qrdma_finding_name(finding->kind), errp) &&
         put_number(v, "key", finding->key, errp) &&
         put_number(v, "address", finding->address, errp) &&
         put_number(v, "length", finding->length, errp) &&
         put_answer(v, "shown", &finding->shown, errp) &&
         put_answer(v, "old", &finding->old_answer, errp) &&
         put_answer(v, "new", &finding->new_answer, errp) &&
         put_number(v, "change", finding->change, errp) &&
         put_string(v, "description", finding->description, errp) &&
         put_number(v, "time", finding->time, errp);
    visit_end_struct(v, NULL);
    return ok;
}

static bool put_findings(Visitor *v, QrdmaEngine *engine, Error **errp)
{
    const QrdmaFinding *finding;
    bool ok = true;

    if (!visit_start_list(v, "findings", NULL, 0, errp)) {
        return false;
    }
    for (unsigned i = 0;
         ok && (finding = qrdma_engine_audit_finding(engine, i)); i++) {
        ok = put_finding(v, finding, errp);
    }
    visit_end_list(v, NULL);
    return ok;
}

/* -------------------------------------------------------------- properties */

static void get_report(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    QrdmaState *s = QRDMA(obj);
    QrdmaAuditTotals totals;

    if (!audit_is_there(s, name, errp) ||
        !visit_start_struct(v, name, NULL, 0, errp)) {
        return;
    }
    /* Who asks for one will look at the other. */
    qrdma_timeline_flush(s->timeline);
    totals = qrdma_engine_audit_totals(s->engine);
    if (put_number(v, "watching", qrdma_engine_audit_watched(s->engine),
                   errp) &&
        put_counters(v, &totals, errp) &&
        put_findings(v, s->engine, errp)) {
        visit_check_struct(v, errp);
    }
    visit_end_struct(v, NULL);
}

static void get_watch(Object *obj, Visitor *v, const char *name,
                      void *opaque, Error **errp)
{
    QrdmaState *s = QRDMA(obj);
    uint32_t index;

    if (audit_is_there(s, name, errp)) {
        index = qrdma_engine_audit_watched(s->engine);
        visit_type_uint32(v, name, &index, errp);
    }
}

static void set_watch(Object *obj, Visitor *v, const char *name,
                      void *opaque, Error **errp)
{
    QrdmaState *s = QRDMA(obj);
    uint32_t index;

    if (!audit_is_there(s, name, errp) ||
        !visit_type_uint32(v, name, &index, errp)) {
        return;
    }
    qrdma_host_update_trace(s);
    if (!qrdma_engine_audit_watch(s->engine, index)) {
        error_setg(errp, "property '%s': %" PRIu32 " is not the index of a "
                   "mkey", name, index);
    }
}

static void set_clear(Object *obj, Visitor *v, const char *name,
                      void *opaque, Error **errp)
{
    QrdmaState *s = QRDMA(obj);
    bool clear;

    if (!audit_is_there(s, name, errp) ||
        !visit_type_bool(v, name, &clear, errp)) {
        return;
    }
    if (!clear) {
        error_setg(errp, "property '%s' can only be set to true", name);
        return;
    }
    qrdma_engine_audit_clear(s->engine);
}

void qrdma_audit_add_properties(ObjectClass *class)
{
    object_class_property_add(class, "audit-report", "QrdmaAuditReport",
                              get_report, NULL, NULL, NULL);
    object_class_property_set_description(class, "audit-report",
        "what the audit counted and found");
    object_class_property_add(class, "audit-watch", "uint32", get_watch,
                              set_watch, NULL, NULL);
    object_class_property_set_description(class, "audit-watch",
        "index of the mkey that the audit watches; 0: all of them");
    object_class_property_add(class, "audit-clear", "bool", NULL, set_clear,
                              NULL, NULL);
    object_class_property_set_description(class, "audit-clear",
        "set to true: forget what the audit counted and found");
}
