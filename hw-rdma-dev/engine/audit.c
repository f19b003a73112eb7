/*
 * qrdma engine: the audit: what it is told, and what it makes of it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"

/* ---------------------------------------------------------------- watching */

static bool is_wanted(const QrdmaEngine *engine, const QrdmaMkey *mkey)
{
    const QrdmaAudit *audit = engine->audit;

    return audit && (!audit->index || audit->index == mkey->index);
}

static void lifecycle_record(QrdmaEngine *engine, const QrdmaAuditWatch *watch,
                             QrdmaTimelineKind kind, const char *text)
{
    QrdmaTimelineRecord record = {
        .kind = kind,
        .key = watch->key,
        .begin = audit_now(engine),
        .end = audit_now(engine),
        .address = watch->now.mkc.start,
        .length = watch->now.mkc.length,
        .text = text,
    };

    audit_timeline(engine, &record);
}

static void start_watch(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    QrdmaAudit *audit = engine->audit;
    uint64_t entries = qrdma_audit_map_entries(&mkey->mkc);
    QrdmaAuditWatch *watch;

    if (!entries) {
        return;
    }
    if (entries > QRDMA_AUDIT_MAX_ENTRIES ||
        entries > AUDIT_TOTAL_ENTRIES - audit->entries) {
        audit->totals.unwatched++;
        return;
    }
    audit->entries += entries;
    watch = g_new0(QrdmaAuditWatch, 1);
    watch->number = ++audit->last_watch;
    watch->key = mkey->index << 8 | mkey->mkc.variant;
    qrdma_audit_map_read(engine, mkey, &watch->now);
    mkey->watch = watch;
    lifecycle_record(engine, watch, QRDMA_TIMELINE_CREATE, "created");
}

static void end_window(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                       const QrdmaAuditMap *new_map, const char *how)
{
    if (watch->window) {
        audit_judge(engine, watch, new_map, how);
        audit_window_free(engine, g_steal_pointer(&watch->window));
    }
}

/* Not judged. */
static void free_watch(QrdmaEngine *engine, QrdmaAuditWatch *watch)
{
    audit_window_free(engine, watch->window);
    engine->audit->entries -= watch->now.num_entries;
    qrdma_audit_map_clear(&watch->now);
    qrdma_audit_map_free(watch->wish);
    qrdma_audit_map_free(watch->agreed);
    g_free(watch->completed_text);
    g_free(watch);
}

static void stop_watch(QrdmaEngine *engine, QrdmaMkey *mkey, const char *how)
{
    QrdmaAuditWatch *watch = g_steal_pointer(&mkey->watch);

    if (watch) {
        end_window(engine, watch, NULL, how);
        free_watch(engine, watch);
    }
}

static void for_each_mkey(QrdmaEngine *engine,
                          void (*function)(QrdmaEngine *engine,
                                           QrdmaMkey *mkey))
{
    QrdmaMkey *mkey;

    for (uint32_t next = 0; (mkey = qrdma_mkey_next(engine, next));
         next = mkey->index + 1) {
        function(engine, mkey);
    }
}

static void stop_open(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    stop_watch(engine, mkey, "open");
}

static void forget_watch(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    if (mkey->watch) {
        free_watch(engine, g_steal_pointer(&mkey->watch));
    }
}

static void start_if_wanted(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    if (is_wanted(engine, mkey)) {
        start_watch(engine, mkey);
    }
}

void qrdma_audit_init(QrdmaEngine *engine)
{
    if (engine->config.audit) {
        engine->audit = g_new0(QrdmaAudit, 1);
        engine->audit->findings = audit_findings_new();
    }
}

void qrdma_audit_free(QrdmaEngine *engine)
{
    if (engine->audit) {
        g_ptr_array_unref(engine->audit->findings);
        g_clear_pointer(&engine->audit, g_free);
    }
}

void qrdma_audit_reset(QrdmaEngine *engine)
{
    if (engine->audit) {
        for_each_mkey(engine, stop_open);
    }
}

void qrdma_audit_forget(QrdmaEngine *engine)
{
    if (engine->audit) {
        for_each_mkey(engine, forget_watch);
        qrdma_engine_audit_clear(engine);
    }
}

bool qrdma_engine_audit_watch(QrdmaEngine *engine, uint32_t index)
{
    if (!engine->audit || index >= QRDMA_MAX_MKEYS) {
        return false;
    }
    for_each_mkey(engine, stop_open);
    engine->audit->index = index;
    for_each_mkey(engine, start_if_wanted);
    return true;
}

uint32_t qrdma_engine_audit_watched(const QrdmaEngine *engine)
{
    return engine->audit ? engine->audit->index : 0;
}

/* ----------------------------------------------------------------- settling */

static bool is_settled(const QrdmaAuditMap *map)
{
    return qrdma_audit_map_is_empty(map) || qrdma_audit_map_is_whole(map);
}

/* Bytes that show what they showed when it was right, and no longer is. */
static uint64_t stale_bytes(const QrdmaAuditWatch *watch, QrdmaFinding *first)
{
    uint64_t address = watch->now.mkc.start;
    uint64_t left = watch->now.mkc.length;
    uint64_t bytes = 0;

    while (left) {
        uint64_t run, old_run, wish_run;
        QrdmaAuditAnswer shown = qrdma_audit_map_answer(&watch->now, address,
                                                        &run);
        QrdmaAuditAnswer before = qrdma_audit_map_answer(watch->agreed,
                                                         address, &old_run);
        QrdmaAuditAnswer wish = qrdma_audit_map_answer(watch->wish, address,
                                                       &wish_run);

        run = MIN(MIN(run, left), MIN(old_run, wish_run));
        if (!qrdma_answer_absent(shown) && !qrdma_answer_malformed(shown) &&
            qrdma_answer_same(shown, before) &&
            !qrdma_answer_same(shown, wish)) {
            if (!bytes) {
                first->address = address;
                first->shown = shown;
                first->old_answer = before;
                first->new_answer = wish;
            }
            if (first->address + first->length == address) {
                first->length += run;
            }
            bytes += run;
        }
        address += run;
        left -= run;
    }
    return bytes;
}

static void look_for_stale(QrdmaEngine *engine, QrdmaAuditWatch *watch)
{
    QrdmaFinding finding = {
        .kind = QRDMA_FINDING_STALE,
        .key = watch->key,
        .change = watch->completed_number,
        .description = watch->completed_text,
        .time = audit_now(engine),
    };
    uint64_t bytes;

    if (!watch->check_stale) {
        return;
    }
    watch->check_stale = false;
    bytes = stale_bytes(watch, &finding);
    if (bytes > watch->stale) {
        engine->audit->totals.stale_bytes += bytes - watch->stale;
        audit_find(engine, &finding);
    }
    watch->stale = bytes;
}

/* The card has what the driver asked for, also where nobody can reach it. */
static bool wish_is_met(const QrdmaAuditWatch *watch)
{
    const QrdmaAuditMap *now = &watch->now, *wish = watch->wish;

    if (memcmp(now->entries, wish->entries,
               now->num_entries * sizeof(*now->entries))) {
        return false;
    }
    if (qrdma_audit_map_is_empty(wish) && qrdma_audit_map_is_empty(now)) {
        return true;
    }
    /* The same entries, read in the same way. */
    return now->mkc.start == wish->mkc.start &&
           now->mkc.length == wish->mkc.length &&
           now->mkc.log_page_size == wish->mkc.log_page_size &&
           now->mkc.flags == wish->mkc.flags &&
           qrdma_audit_scope_same(qrdma_audit_scope(&now->mkc),
                                  qrdma_audit_scope(&wish->mkc));
}

/* A change is over, for the driver or for the card. */
static void settle(QrdmaEngine *engine, QrdmaAuditWatch *watch)
{
    const QrdmaAuditMap *wished = audit_wished(watch);

    if (!is_settled(wished)) {
        return;
    }
    if (watch->wish) {
        look_for_stale(engine, watch);
    }
    if (qrdma_audit_map_is_empty(wished)) {
        end_window(engine, watch, NULL, "empty");
    } else {
        end_window(engine, watch, wished, "whole");
    }
    if (watch->wish && wish_is_met(watch)) {
        g_clear_pointer(&watch->wish, qrdma_audit_map_free);
        g_clear_pointer(&watch->agreed, qrdma_audit_map_free);
        watch->stale = 0;
    }
}

/* ------------------------------------------------------------------ changes */

static void make_wish(QrdmaAuditWatch *watch)
{
    if (!watch->wish) {
        watch->wish = qrdma_audit_map_copy(&watch->now);
        watch->agreed = qrdma_audit_map_copy(&watch->now);
    }
}

/* PBLEs of the UMR's data, in host byte order. */
static void data_of(const QrdmaUmr *umr, uint32_t unit,
                    uint64_t pbles[QRDMA_PBLES_PER_UNIT])
{
    const uint64_t *data = umr->data + unit * QRDMA_PBLES_PER_UNIT;

    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        pbles[i] = qrdma_le64(data[i]);
    }
}

static uint64_t entry_of(const QrdmaUmr *umr, uint32_t unit)
{
    return umr->table_offset / QRDMA_PBLE_SIZE +
           unit * (uint64_t)QRDMA_PBLES_PER_UNIT;
}

static bool unit_shows(const QrdmaAuditMap *map, uint64_t first,
                       const uint64_t pbles[QRDMA_PBLES_PER_UNIT])
{
    uint64_t blocks = qrdma_audit_map_blocks(map);

    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        if (first + i < blocks && map->entries[first + i] != pbles[i]) {
            return true;
        }
    }
    return false;
}

/* `before`: what the map is until now. */
static void begin_window(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                         const QrdmaAuditMap *before)
{
    if (!watch->window) {
        watch->window = audit_window_new(engine, before);
    }
    watch->check_stale = true;
}

/* Blocks first..first+7, so far as they can be reached, have changed. */
static void note_unit(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                      uint64_t first)
{
    uint64_t blocks = qrdma_audit_map_blocks(&watch->now);
    uint64_t end = MIN(first + QRDMA_PBLES_PER_UNIT, blocks);

    for (uint64_t block = first; block < end; block++) {
        uint64_t address, length;

        qrdma_audit_map_block_range(&watch->now, block, &address, &length);
        audit_window_note(engine, watch, address, length);
    }
}

/*
 * A change of what nobody can reach, as the first steps to fill an empty table:
 * no map is different for it, but the timeline lacked it. Told once.
 */
static void tell_silent_change(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                               const QrdmaUmr *umr, const QrdmaMkc *before)
{
    g_autofree char *text = NULL;
    QrdmaTimelineRecord record = {
        .kind = QRDMA_TIMELINE_CHANGE,
        .key = watch->key,
        .qpn = qrdma_umr_is_command(umr) ? 0 : umr->number,
        .begin = audit_now(engine),
        .end = audit_now(engine),
        .address = watch->now.mkc.start,
        .length = watch->now.mkc.length,
        .change = umr->change,
    };

    if (!engine->ops->timeline || watch->silent == umr->change) {
        return;
    }
    watch->silent = umr->change;
    text = audit_describe(umr, before);
    record.text = text;
    audit_timeline(engine, &record);
}

/*
 * Units that become visible together are one map: no access falls in between.
 * The change is noted before its units, with the map as it is after the last.
 */
void qrdma_audit_units(QrdmaEngine *engine, const QrdmaUmr *umr, uint32_t first,
                       uint32_t count)
{
    QrdmaAuditWatch *watch = umr->mkey->watch;
    uint64_t pbles[QRDMA_PBLES_PER_UNIT];
    bool shows = false;

    if (!watch) {
        return;
    }
    if (umr->held) {
        make_wish(watch);
    }
    for (uint32_t i = first; i < first + count && !shows; i++) {
        data_of(umr, i, pbles);
        shows = unit_shows(&watch->now, entry_of(umr, i), pbles);
    }
    if (shows) {
        begin_window(engine, watch, &watch->now);
    }
    for (uint32_t i = first; i < first + count; i++) {
        data_of(umr, i, pbles);
        qrdma_audit_map_write(&watch->now, entry_of(umr, i),
                              QRDMA_PBLES_PER_UNIT, pbles);
    }
    if (!shows) {
        tell_silent_change(engine, watch, umr, NULL);
        return;
    }
    audit_window_change(engine, watch, umr, NULL);
    for (uint32_t i = first; i < first + count; i++) {
        note_unit(engine, watch, entry_of(umr, i));
    }
}

/* Note where two maps differ; `before` is the earlier one. */
static void note_differences(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                             const QrdmaAuditMap *before)
{
    const QrdmaMkc *old = &before->mkc, *new = &watch->now.mkc;
    uint64_t address = MIN(old->start, new->start);
    uint64_t last = MAX(old->start + (old->length - 1),
                        new->start + (new->length - 1));
    uint64_t left = last - address + 1;

    while (left) {
        uint64_t run, old_run;
        QrdmaAuditAnswer was = qrdma_audit_map_answer(before, address,
                                                      &old_run);
        QrdmaAuditAnswer is = qrdma_audit_map_answer(&watch->now, address,
                                                     &run);

        run = MIN(MIN(run, old_run), left);
        if (!qrdma_answer_same(was, is)) {
            audit_window_note(engine, watch, address, run);
        }
        address += run;
        left -= run;
    }
}

void qrdma_audit_context(QrdmaEngine *engine, const QrdmaUmr *umr)
{
    QrdmaAuditWatch *watch = umr->mkey->watch;
    QrdmaAuditMap before;

    if (!watch) {
        return;
    }
    if (umr->held) {
        make_wish(watch);
    }
    before = watch->now;            /* shares the entries, which stay */
    qrdma_audit_map_merge(&watch->now, &umr->fields, umr->mask);
    watch->key = umr->mkey->index << 8 | watch->now.mkc.variant;
    if (qrdma_audit_map_is_empty(&before) &&
        qrdma_audit_map_is_empty(&watch->now)) {
        tell_silent_change(engine, watch, umr, &before.mkc);
        return;
    }
    begin_window(engine, watch, &before);
    audit_window_change(engine, watch, umr, &before.mkc);
    note_differences(engine, watch, &before);
}

/*
 * The UMR was valid for what the card has. Where an earlier one was only
 * wished for, it may not be after that one; then a card that had done as asked
 * would have refused it, and it is no part of the wish.
 */
static void merge_into_wish(QrdmaAuditMap *wish, const QrdmaUmr *umr)
{
    QrdmaMkc before = wish->mkc;

    qrdma_mkc_merge(&wish->mkc, &umr->fields, umr->mask);
    if (!qrdma_audit_map_is_valid(wish)) {
        wish->mkc = before;
    }
    qrdma_audit_map_count(wish);
}

static void apply_to_wish(QrdmaAuditWatch *watch, const QrdmaUmr *umr)
{
    uint64_t pbles[QRDMA_PBLES_PER_UNIT];

    for (uint32_t i = 0; i < umr->units; i++) {
        data_of(umr, i, pbles);
        qrdma_audit_map_write(watch->wish, entry_of(umr, i),
                              QRDMA_PBLES_PER_UNIT, pbles);
    }
    merge_into_wish(watch->wish, umr);
    watch->check_stale = true;
}

static void note_completed(QrdmaAuditWatch *watch, const QrdmaUmr *umr)
{
    g_autofree char *context = audit_describe(umr, &watch->now.mkc);

    g_free(watch->completed_text);
    if (umr->units) {
        g_autofree char *units = audit_describe(umr, NULL);

        watch->completed_text = *context
                                ? g_strconcat(units, ", ", context, NULL)
                                : g_steal_pointer(&units);
    } else {
        watch->completed_text = g_steal_pointer(&context);
    }
    watch->completed_number = umr->change;
}

void qrdma_audit_wished(QrdmaEngine *engine, const QrdmaUmr *umr, bool done)
{
    QrdmaAuditWatch *watch = umr->mkey->watch;

    if (!watch) {
        return;
    }
    if (!done) {
        make_wish(watch);
    }
    if (watch->wish) {
        apply_to_wish(watch, umr);
        note_completed(watch, umr);
    }
}

void qrdma_audit_settle(QrdmaEngine *engine, const QrdmaUmr *umr)
{
    if (umr->mkey->watch) {
        settle(engine, umr->mkey->watch);
    }
}

/* ------------------------------------------------------- life of the mkey */

void qrdma_audit_created(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    start_if_wanted(engine, mkey);
}

void qrdma_audit_index_reused(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    QrdmaFinding finding = {
        .kind = QRDMA_FINDING_REUSED_INDEX,
        .key = mkey->index << 8 | mkey->mkc.variant,
        .address = mkey->mkc.start,
        .length = mkey->mkc.length,
    };

    if (is_wanted(engine, mkey)) {
        finding.time = audit_now(engine);
        engine->audit->totals.reused_indices++;
        audit_find(engine, &finding);
    }
}

void qrdma_audit_destroyed(QrdmaEngine *engine, QrdmaMkey *mkey, bool done)
{
    QrdmaAuditWatch *watch = mkey->watch;

    if (!watch) {
        return;
    }
    if (done) {
        lifecycle_record(engine, watch, QRDMA_TIMELINE_DESTROY, "destroyed");
        stop_watch(engine, mkey, "empty");
        return;
    }
    make_wish(watch);
    watch->wish->mkc.flags |= QRDMA_MKEY_FREE;
    watch->wish->present = 0;
    watch->wish->malformed = 0;
    watch->check_stale = true;
    watch->completed_number = 0;
    g_free(watch->completed_text);
    watch->completed_text = g_strdup("destroyed");
    settle(engine, watch);
}

void qrdma_audit_invalidated(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    QrdmaAuditWatch *watch = mkey->watch;

    if (watch) {
        qrdma_audit_map_clear(&watch->now);
        qrdma_audit_map_read(engine, mkey, &watch->now);
    }
}

/* ----------------------------------------------------------------- accesses */

static void find_access(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                        enum qrdma_finding kind,
                        const QrdmaAccessRequest *request,
                        const QrdmaAccess *access)
{
    QrdmaFinding finding = {
        .kind = kind,
        .key = request->key,
        .address = request->address,
        .length = access->length,
        .shown.address = access->bus_address,
        .new_answer = qrdma_audit_map_answer(audit_wished(watch),
                                             request->address, NULL),
        .change = watch->completed_number,
        .description = watch->completed_text,
        .time = audit_now(engine),
    };

    finding.shown.rights =
        qrdma_audit_map_answer(&watch->now, request->address, NULL).rights;
    audit_find(engine, &finding);
}

/* An access to a place where the wished map, which is settled, has none. */
static void misplaced(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                      const QrdmaAccessRequest *request, QrdmaAccess *access)
{
    QrdmaAuditTotals *totals = &engine->audit->totals;
    bool revoked = audit_wished(watch)->mkc.flags & QRDMA_MKEY_FREE;
    uint64_t *counter = revoked ? &totals->revoked_accesses
                                : &totals->torn_accesses;

    access->found = true;
    /* One finding tells it; a transfer has many packets. */
    if (!(*counter)++) {
        find_access(engine, watch, revoked ? QRDMA_FINDING_REVOKED_ACCESS
                                           : QRDMA_FINDING_TORN_ACCESS,
                    request, access);
    }
}

static bool is_at(const QrdmaAuditMap *map, const QrdmaAccessRequest *request,
                  const QrdmaAccess *access)
{
    QrdmaAuditAnswer answer = qrdma_audit_map_answer(map, request->address,
                                                     NULL);

    return !qrdma_answer_absent(answer) && !qrdma_answer_malformed(answer) &&
           answer.address == access->bus_address;
}

static void note_access(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                        const QrdmaAccessRequest *request,
                        const QrdmaAccess *access)
{
    AuditWindow *window = watch->window;
    AuditAccess noted = {
        .address = request->address,
        .length = access->length,
        .answer = qrdma_audit_map_answer(&watch->now, request->address, NULL),
        .change = window->changes->len - 1,
    };

    if (!qrdma_answer_same(noted.answer,
                           qrdma_audit_map_answer(window->old, noted.address,
                                                  NULL))) {
        audit_window_note_access(engine, window, &noted);
    }
}

QrdmaAccessResult qrdma_audit_granted(QrdmaEngine *engine,
                                      const QrdmaAccessRequest *request,
                                      QrdmaAccess *access)
{
    QrdmaAuditWatch *watch = access->mkey->watch;

    if (!watch) {
        return QRDMA_ACCESS_GRANTED;
    }
    access->begun = audit_now(engine);
    access->watch = watch->number;
    if (!is_at(&watch->now, request, access)) {
        access->found = true;
        if (!engine->audit->totals.stray_accesses++) {
            find_access(engine, watch, QRDMA_FINDING_STRAY_ACCESS, request,
                        access);
        }
    } else if (watch->wish && is_settled(watch->wish) &&
               !is_at(watch->wish, request, access)) {
        misplaced(engine, watch, request, access);
    } else if (watch->window) {
        note_access(engine, watch, request, access);
    }
    return QRDMA_ACCESS_GRANTED;
}

static void access_record(QrdmaEngine *engine,
                          const QrdmaAccessRequest *request,
                          uint64_t begin, uint64_t length, const char *text)
{
    QrdmaTimelineRecord record = {
        .kind = QRDMA_TIMELINE_ACCESS,
        .key = request->key,
        .qpn = request->qpn,
        .begin = begin,
        .end = audit_now(engine),
        .address = request->address,
        .length = length,
        .text = text,
    };

    audit_timeline(engine, &record);
}

void qrdma_audit_refused(QrdmaEngine *engine, const QrdmaAccessRequest *request,
                         const QrdmaAccess *access)
{
    if (engine->ops->timeline) {
        g_autofree char *text =
            g_strdup_printf("%s, refused: error %d",
                            qrdma_access_kind_name(request->kind),
                            access->error);

        access_record(engine, request, audit_now(engine), request->length,
                      text);
    }
}

void qrdma_audit_moving(QrdmaEngine *engine, const QrdmaAccessRequest *request,
                        QrdmaAccess *access)
{
    QrdmaAuditWatch *watch = access->mkey->watch;

    /*
     * What began before the watch did may be of a map that was changed since,
     * by a UMR that still waits for it.
     */
    if (!access->found && access->watch == watch->number && !watch->window &&
        !is_at(audit_wished(watch), request, access)) {
        misplaced(engine, watch, request, access);
    }
    access_record(engine, request, access->begun, access->length,
                  qrdma_access_kind_name(request->kind));
}
