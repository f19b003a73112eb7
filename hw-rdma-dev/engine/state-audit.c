/*
 * qrdma engine: saved state: the audit.
 *
 * Open windows are part of it: a change that was begun before a migration and
 * ends after it is judged as a whole.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"
#include "state.h"

/* Longer than any description that the audit makes. */
#define MAX_TEXT 4096

static void state_answer(QrdmaStream *stream, const char *name,
                         QrdmaAuditAnswer *answer)
{
    qrdma_stream_enter(stream, name);
    qrdma_stream_u64(stream, "address", &answer->address, 0, UINT64_MAX);
    qrdma_stream_u32(stream, "rights", &answer->rights, 0, UINT32_MAX);
    qrdma_stream_leave(stream);
}

/* Of an interval: not empty, and it does not wrap. */
static void state_interval(QrdmaStream *stream, uint64_t *address,
                           uint64_t *length)
{
    qrdma_stream_u64(stream, "address", address, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "length", length, 1, UINT64_MAX);
    qrdma_stream_check(stream, *length - 1 <= UINT64_MAX - *address, "length",
                       "the interval wraps");
}

/* ----------------------------------------------------------------- findings */

static void state_finding(QrdmaStream *stream, QrdmaFinding *finding)
{
    qrdma_stream_enum(stream, "kind", &finding->kind, QRDMA_FINDING_TORN,
                      QRDMA_FINDING_REUSED_INDEX);
    qrdma_stream_u32(stream, "key", &finding->key, 0, UINT32_MAX);
    qrdma_stream_u64(stream, "address", &finding->address, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "length", &finding->length, 0, UINT64_MAX);
    state_answer(stream, "shown", &finding->shown);
    state_answer(stream, "old", &finding->old_answer);
    state_answer(stream, "new", &finding->new_answer);
    qrdma_stream_u64(stream, "change", &finding->change, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "time", &finding->time, 0, UINT64_MAX);
    qrdma_stream_string(stream, "description", &finding->description,
                        MAX_TEXT);
}

/* Those of this card go: its findings are those of the card that was saved. */
static void state_findings(QrdmaStream *stream, QrdmaAudit *audit)
{
    uint32_t count = audit->findings->len;

    if (qrdma_stream_is_loading(stream)) {
        g_ptr_array_set_size(audit->findings, 0);
    }
    qrdma_stream_count(stream, "findings", &count, QRDMA_MAX_FINDINGS, 1);
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        if (i == audit->findings->len) {
            g_ptr_array_add(audit->findings, g_new0(QrdmaFinding, 1));
        }
        qrdma_stream_enter_item(stream, "finding", i);
        state_finding(stream, g_ptr_array_index(audit->findings, i));
        qrdma_stream_leave(stream);
    }
}

/* --------------------------------------------------------------------- maps */

/* The context's base is the table's entry, and not looked at. */
static void state_map(QrdmaStream *stream, const char *name,
                      QrdmaAuditMap *map)
{
    struct qrdma_mkc wire;

    qrdma_stream_enter(stream, name);
    qrdma_mkc_encode(&map->mkc, &wire);
    qrdma_stream_bytes(stream, "context", &wire, sizeof(wire));
    if (qrdma_stream_is_loading(stream) && qrdma_stream_is_good(stream)) {
        qrdma_mkc_decode(&wire, &map->mkc);
        map->num_entries = qrdma_audit_map_entries(&map->mkc);
        if (qrdma_stream_check(stream, map->num_entries &&
                               map->num_entries <= QRDMA_AUDIT_MAX_ENTRIES &&
                               map->num_entries <=
                               qrdma_stream_left(stream) / sizeof(uint64_t),
                               "context", "%" PRIu64 " entries are no table "
                               "that is watched", map->num_entries)) {
            map->entries = g_new0(uint64_t, map->num_entries);
        } else {
            map->num_entries = 0;
        }
    }
    qrdma_stream_words(stream, "entries", map->entries, map->num_entries);
    if (qrdma_stream_check(stream, qrdma_audit_map_is_valid(map), "context",
                           "no mkey may have it") &&
        qrdma_stream_is_loading(stream)) {
        qrdma_audit_map_count(map);
    }
    qrdma_stream_leave(stream);
}

static void state_optional_map(QrdmaStream *stream, const char *name,
                               QrdmaAuditMap **map)
{
    bool there = *map;

    qrdma_stream_bool(stream, name, &there);
    if (there) {
        *map = *map ?: g_new0(QrdmaAuditMap, 1);
        state_map(stream, name, *map);
    }
}

/* ------------------------------------------------------------------ windows */

static void state_change(QrdmaStream *stream, AuditChange *change)
{
    qrdma_stream_u64(stream, "number", &change->number, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "time", &change->time, 0, UINT64_MAX);
    qrdma_stream_u32(stream, "qpn", &change->qpn, 0, UINT32_MAX);
    qrdma_stream_bool(stream, "is_context", &change->is_context);
    qrdma_stream_u32(stream, "slice", &change->slice, 0, UINT32_MAX);
    qrdma_stream_u8(stream, "variant", &change->scope.variant, 0, UINT8_MAX);
    qrdma_stream_u32(stream, "pd", &change->scope.pd, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "scope_qpn", &change->scope.qpn, 0, UINT32_MAX);
    qrdma_stream_bool(stream, "present", &change->present);
    qrdma_stream_string(stream, "text", &change->text, MAX_TEXT);
}

static void state_changes(QrdmaStream *stream, AuditWindow *window)
{
    uint32_t count = window->changes->len;

    qrdma_stream_count(stream, "changes", &count, AUDIT_MAX_CHANGES, 1);
    qrdma_stream_check(stream, count, "changes", "a window has at least one");
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        if (i == window->changes->len) {
            g_array_append_vals(window->changes, &(AuditChange) { 0 }, 1);
        }
        qrdma_stream_enter_item(stream, "change", i);
        state_change(stream, &g_array_index(window->changes, AuditChange, i));
        qrdma_stream_leave(stream);
    }
}

static void state_pieces(QrdmaStream *stream, AuditWindow *window)
{
    uint32_t count = window->pieces->len;

    qrdma_stream_count(stream, "pieces", &count, AUDIT_MAX_PIECES, 33);
    if (qrdma_stream_is_loading(stream)) {
        g_array_set_size(window->pieces, count);
    }
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        AuditPiece *piece = &g_array_index(window->pieces, AuditPiece, i);

        qrdma_stream_enter_item(stream, "piece", i);
        state_interval(stream, &piece->address, &piece->length);
        state_answer(stream, "answer", &piece->answer);
        qrdma_stream_u32(stream, "change", &piece->change, 0,
                         window->changes->len - 1);
        qrdma_stream_bool(stream, "is_old", &piece->is_old);
        qrdma_stream_leave(stream);
    }
}

static void state_accesses(QrdmaStream *stream, AuditWindow *window)
{
    uint32_t count = window->accesses->len;

    qrdma_stream_count(stream, "accesses", &count, AUDIT_MAX_ACCESSES, 32);
    if (qrdma_stream_is_loading(stream)) {
        g_array_set_size(window->accesses, count);
    }
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        AuditAccess *access = &g_array_index(window->accesses, AuditAccess, i);

        qrdma_stream_enter_item(stream, "access", i);
        state_interval(stream, &access->address, &access->length);
        state_answer(stream, "answer", &access->answer);
        qrdma_stream_u32(stream, "change", &access->change, 0,
                         window->changes->len - 1);
        qrdma_stream_leave(stream);
    }
}

/* The notes are bounded over all windows: audit_window_free() gives back. */
static void count_notes(QrdmaStream *stream, QrdmaAudit *audit,
                        const AuditWindow *window)
{
    audit->notes += window->changes->len + window->pieces->len +
                    window->accesses->len;
    qrdma_stream_check(stream, audit->notes <= AUDIT_MAX_NOTES, "notes",
                       "%" PRIu64 " in all windows are too many",
                       audit->notes);
}

static void state_window(QrdmaStream *stream, QrdmaEngine *engine,
                         QrdmaAuditWatch *watch)
{
    bool there = watch->window;
    bool loading = qrdma_stream_is_loading(stream);
    AuditWindow *window;

    qrdma_stream_bool(stream, "window", &there);
    if (!there) {
        return;
    }
    if (loading) {
        watch->window = audit_window_new(engine, &watch->now);
        qrdma_audit_map_clear(watch->window->old);
    }
    window = watch->window;
    qrdma_stream_enter(stream, "window");
    qrdma_stream_u64(stream, "begin", &window->begin, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "maps", &window->maps, 1, UINT64_MAX);
    state_map(stream, "old", window->old);
    state_changes(stream, window);
    if (qrdma_stream_is_good(stream)) {
        state_pieces(stream, window);
        state_accesses(stream, window);
    }
    if (loading) {
        count_notes(stream, engine->audit, window);
    }
    qrdma_stream_leave(stream);
}

/* ------------------------------------------------------------------ watches */

static void state_watch(QrdmaStream *stream, QrdmaEngine *engine,
                        QrdmaMkey *mkey)
{
    QrdmaAuditWatch *watch = mkey->watch;

    qrdma_stream_u64(stream, "number", &watch->number, 1, UINT64_MAX);
    qrdma_stream_u32(stream, "key", &watch->key, 0, UINT32_MAX);
    state_map(stream, "now", &watch->now);
    if (qrdma_stream_is_loading(stream)) {
        engine->audit->entries += watch->now.num_entries;
        qrdma_stream_check(stream,
                           engine->audit->entries <= AUDIT_TOTAL_ENTRIES &&
                           watch->now.num_entries ==
                           qrdma_audit_map_entries(&mkey->mkc), "now",
                           "%" PRIu64 " entries are not those of the mkey",
                           watch->now.num_entries);
    }
    state_optional_map(stream, "wish", &watch->wish);
    state_optional_map(stream, "agreed", &watch->agreed);
    qrdma_stream_check(stream, !watch->wish == !watch->agreed, "wish",
                       "it is there without what was agreed, or that alone");
    qrdma_stream_bool(stream, "check_stale", &watch->check_stale);
    qrdma_stream_u64(stream, "stale", &watch->stale, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "silent", &watch->silent, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "completed_number", &watch->completed_number, 0,
                     UINT64_MAX);
    qrdma_stream_string(stream, "completed_text", &watch->completed_text,
                        MAX_TEXT);
    if (qrdma_stream_is_good(stream)) {
        state_window(stream, engine, watch);
    }
}

static void save_watches(QrdmaStream *stream, QrdmaEngine *engine)
{
    uint32_t none = 0;
    QrdmaMkey *mkey;

    for (uint32_t next = 0; (mkey = qrdma_mkey_next(engine, next));
         next = mkey->index + 1) {
        if (mkey->watch) {
            qrdma_stream_u32(stream, "watch.index", &mkey->index, 0,
                             mkey->index);
            state_watch(stream, engine, mkey);
        }
    }
    qrdma_stream_u32(stream, "watch.index", &none, 0, 0);
}

/* Ascending, so that none comes twice; 0 ends them. */
static void load_watches(QrdmaStream *stream, QrdmaEngine *engine)
{
    uint32_t last = 0, index = 0;

    do {
        QrdmaMkey *mkey;

        qrdma_stream_u32(stream, "watch.index", &index, 0,
                         QRDMA_MAX_MKEYS - 1);
        mkey = qrdma_mkey_find(engine, index);
        if (!qrdma_stream_is_good(stream) || !index ||
            !qrdma_stream_check(stream, index > last && mkey, "watch.index",
                                "no mkey 0x%x is left to be watched", index)) {
            return;
        }
        last = index;
        mkey->watch = g_new0(QrdmaAuditWatch, 1);
        qrdma_stream_enter_item(stream, "watch", index);
        state_watch(stream, engine, mkey);
        qrdma_stream_leave(stream);
    } while (qrdma_stream_is_good(stream));
}

void qrdma_state_audit(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaAudit *audit = engine->audit;

    QRDMA_ABI_ASSERT(sizeof(audit->totals) % sizeof(uint64_t) == 0);

    qrdma_stream_section(stream, "audt", 1);
    qrdma_stream_enter(stream, "audit");
    qrdma_stream_u32(stream, "index", &audit->index, 0, QRDMA_MAX_MKEYS - 1);
    qrdma_stream_u64(stream, "last_watch", &audit->last_watch, 0, UINT64_MAX);
    qrdma_stream_u32(stream, "selected", &audit->selected, 0, UINT32_MAX);
    qrdma_stream_words(stream, "totals", (uint64_t *)&audit->totals,
                       sizeof(audit->totals) / sizeof(uint64_t));
    state_findings(stream, audit);
    if (qrdma_stream_is_loading(stream)) {
        load_watches(stream, engine);
    } else {
        save_watches(stream, engine);
    }
    qrdma_stream_leave(stream);
}
