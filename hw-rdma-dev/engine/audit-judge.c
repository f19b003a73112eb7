/*
 * qrdma engine: the audit's judgement over a window that has ended.
 *
 * A byte may have shown its old answer, its new one, or nothing. Where the
 * window ended with nothing there is no new answer to compare with: then the
 * last one that a byte showed stands for it, since the map was on its way to
 * something when the region was taken away.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"

/* An interval in which a piece was judged one way. */
typedef struct Judged {
    uint64_t address;
    uint64_t length;
    QrdmaTimelineClass class;
    QrdmaAuditAnswer shown;
    QrdmaAuditAnswer old_answer;
    QrdmaAuditAnswer new_answer;
    uint32_t change;
} Judged;

typedef struct Judgement {
    QrdmaEngine *engine;
    QrdmaAuditWatch *watch;
    AuditWindow *window;
    const QrdmaAuditMap *new_map;   /* NULL: nothing */
    /*
     * Without a new map: AuditPieces by address, not overlapping, with the last
     * answer that each byte showed.
     */
    GSequence *last;
    GArray *judged;                 /* Judged, by change */
} Judgement;

/* -------------------------------------------- the last answers of each byte */

static gint compare_pieces(gconstpointer left, gconstpointer right,
                           gpointer unused)
{
    const AuditPiece *a = left;
    const AuditPiece *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

/* The first piece that ends after `address`, or the end. */
static GSequenceIter *find_last(const Judgement *judgement, uint64_t address)
{
    AuditPiece key = { .address = address };
    GSequenceIter *iter = g_sequence_search(judgement->last, &key,
                                            compare_pieces, NULL);
    GSequenceIter *before = g_sequence_iter_prev(iter);

    if (before != iter) {
        const AuditPiece *piece = g_sequence_get(before);

        if (piece->address + (piece->length - 1) >= address) {
            return before;
        }
    }
    return iter;
}

/*
 * The last answer of the byte, if it has one, and how far that is known; else
 * how far there is none.
 */
static QrdmaAuditAnswer last_answer(const Judgement *judgement,
                                    uint64_t address, uint64_t *run)
{
    GSequenceIter *iter = find_last(judgement, address);
    const AuditPiece *piece;

    if (g_sequence_iter_is_end(iter)) {
        *run = UINT64_MAX;
        return (QrdmaAuditAnswer) { 0 };
    }
    piece = g_sequence_get(iter);
    if (piece->address > address) {
        *run = piece->address - address;
        return (QrdmaAuditAnswer) { 0 };
    }
    *run = piece->length - (address - piece->address);
    return qrdma_answer_at(piece->answer, address - piece->address);
}

/* Where a later piece has not said something, this one does. */
static void add_last(Judgement *judgement, const AuditPiece *piece)
{
    uint64_t address = piece->address;
    uint64_t left = piece->length;

    while (left) {
        uint64_t run;
        bool known = !qrdma_answer_absent(last_answer(judgement, address,
                                                      &run));

        run = MIN(run, left);
        if (!known) {
            AuditPiece *part = g_new(AuditPiece, 1);

            *part = *piece;
            part->answer = qrdma_answer_at(piece->answer,
                                           address - piece->address);
            part->address = address;
            part->length = run;
            g_sequence_insert_sorted(judgement->last, part, compare_pieces,
                                     NULL);
        }
        address += run;
        left -= run;
    }
}

static void collect_last(Judgement *judgement)
{
    GArray *pieces = judgement->window->pieces;

    for (guint i = pieces->len; i-- > 0;) {
        const AuditPiece *piece = &g_array_index(pieces, AuditPiece, i);

        if (!piece->is_old && !qrdma_answer_absent(piece->answer) &&
            !qrdma_answer_malformed(piece->answer)) {
            add_last(judgement, piece);
        }
    }
}

/* ---------------------------------------------------------- one byte's case */

/*
 * The last answer stands for a new one only while the card does what it is
 * asked to. Else it is known what was asked for: nothing.
 */
static QrdmaAuditAnswer new_answer(const Judgement *judgement,
                                   uint64_t address, uint64_t *run)
{
    if (judgement->new_map) {
        return qrdma_audit_map_answer(judgement->new_map, address, run);
    }
    if (judgement->watch->wish) {
        *run = UINT64_MAX;
        return (QrdmaAuditAnswer) { 0 };
    }
    return last_answer(judgement, address, run);
}

static bool matches(QrdmaAuditAnswer shown, QrdmaAuditAnswer allowed,
                    bool *widened)
{
    if (qrdma_answer_malformed(shown) || qrdma_answer_malformed(allowed)) {
        return shown.rights == allowed.rights;
    }
    if (qrdma_answer_absent(allowed) || shown.address != allowed.address) {
        return false;
    }
    if (shown.rights & ~allowed.rights) {
        *widened = true;
        return false;
    }
    return true;
}

static QrdmaTimelineClass classify(QrdmaAuditAnswer shown,
                                   QrdmaAuditAnswer old, QrdmaAuditAnswer new)
{
    bool widened = false;

    if (qrdma_answer_absent(shown)) {
        return QRDMA_CLASS_ABSENT;
    }
    if (matches(shown, new, &widened)) {
        return QRDMA_CLASS_NEW;
    }
    if (matches(shown, old, &widened)) {
        return QRDMA_CLASS_OLD;
    }
    return widened ? QRDMA_CLASS_WIDENED : QRDMA_CLASS_TORN;
}

/* Join what lies side by side; else findings would be a page long. */
static void add_judged(Judgement *judgement, const Judged *judged)
{
    GArray *all = judgement->judged;
    Judged *before = all->len ? &g_array_index(all, Judged, all->len - 1)
                              : NULL;

    if (before && before->change == judged->change &&
        before->class == judged->class &&
        before->address + before->length == judged->address) {
        before->length += judged->length;
    } else {
        g_array_append_val(all, *judged);
    }
}

static void judge_piece(Judgement *judgement, const AuditPiece *piece)
{
    uint64_t done = 0;

    while (done < piece->length) {
        uint64_t address = piece->address + done;
        uint64_t old_run, new_run;
        Judged judged = {
            .address = address,
            .change = piece->change,
            .shown = qrdma_answer_at(piece->answer, done),
            .old_answer = qrdma_audit_map_answer(judgement->window->old,
                                                 address, &old_run),
            .new_answer = new_answer(judgement, address, &new_run),
        };

        judged.length = MIN(piece->length - done, MIN(old_run, new_run));
        judged.class = piece->is_old ? QRDMA_CLASS_OLD
                                     : classify(judged.shown,
                                                judged.old_answer,
                                                judged.new_answer);
        add_judged(judgement, &judged);
        done += judged.length;
    }
}

static void judge_pieces(Judgement *judgement)
{
    GArray *pieces = judgement->window->pieces;

    for (guint i = 0; i < pieces->len; i++) {
        judge_piece(judgement, &g_array_index(pieces, AuditPiece, i));
    }
}

/* ----------------------------------------------------------------- findings */

static void find(Judgement *judgement, enum qrdma_finding kind,
                 const Judged *judged)
{
    const AuditChange *change = &g_array_index(judgement->window->changes,
                                               AuditChange, judged->change);
    QrdmaFinding finding = {
        .kind = kind,
        .key = judgement->watch->key,
        .address = judged->address,
        .length = judged->length,
        .shown = judged->shown,
        .old_answer = judged->old_answer,
        .new_answer = judged->new_answer,
        .change = change->number,
        .description = change->text,
        .time = change->time,
    };

    audit_find(judgement->engine, &finding);
}

static gint by_address(gconstpointer left, gconstpointer right)
{
    const Judged *a = left;
    const Judged *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

/* Bytes of a class, each counted once, and a finding for the first of them. */
static uint64_t count_class(Judgement *judgement, QrdmaTimelineClass class,
                            enum qrdma_finding kind)
{
    g_autoptr(GArray) some = g_array_new(false, false, sizeof(Judged));
    uint64_t bytes = 0, end = 0;

    for (guint i = 0; i < judgement->judged->len; i++) {
        const Judged *judged = &g_array_index(judgement->judged, Judged, i);

        if (judged->class == class) {
            g_array_append_val(some, *judged);
        }
    }
    if (some->len) {
        find(judgement, kind, &g_array_index(some, Judged, 0));
    }
    g_array_sort(some, by_address);
    for (guint i = 0; i < some->len; i++) {
        const Judged *judged = &g_array_index(some, Judged, i);
        uint64_t from = i ? MAX(judged->address, end) : judged->address;
        uint64_t to = judged->address + judged->length;

        if (to > from) {
            bytes += to - from;
        }
        end = i ? MAX(end, to) : to;
    }
    return bytes;
}

/*
 * Who is let in belongs to the map as a whole. Old and new are known to be
 * right; in between nobody else may be.
 */
static uint64_t count_scope(Judgement *judgement)
{
    const QrdmaMkc *old = &judgement->window->old->mkc;
    const QrdmaMkc *new = judgement->new_map ? &judgement->new_map->mkc : old;

    for (guint i = 0; i < judgement->window->changes->len; i++) {
        const AuditChange *change = &g_array_index(judgement->window->changes,
                                                   AuditChange, i);
        bool is_old = qrdma_audit_scope_same(change->scope,
                                             qrdma_audit_scope(old));
        bool is_new = qrdma_audit_scope_same(change->scope,
                                             qrdma_audit_scope(new));

        if (change->present && !is_old && !is_new) {
            Judged judged = {
                .address = new->start, .length = new->length, .change = i,
                .shown = qrdma_audit_map_answer(&judgement->watch->now,
                                                new->start, NULL),
            };

            find(judgement, QRDMA_FINDING_WIDENED, &judged);
            return new->length;
        }
    }
    return 0;
}

static void judge_accesses(Judgement *judgement)
{
    GArray *accesses = judgement->window->accesses;

    for (guint i = 0; i < accesses->len; i++) {
        const AuditAccess *access = &g_array_index(accesses, AuditAccess, i);
        Judged judged = {
            .address = access->address,
            .length = access->length,
            .shown = access->answer,
            .change = access->change,
            .old_answer = qrdma_audit_map_answer(judgement->window->old,
                                                 access->address, NULL),
        };
        uint64_t run;

        judged.new_answer = new_answer(judgement, access->address, &run);
        judged.class = classify(judged.shown, judged.old_answer,
                                judged.new_answer);
        if (judged.class == QRDMA_CLASS_TORN ||
            judged.class == QRDMA_CLASS_WIDENED) {
            if (!judgement->engine->audit->totals.torn_accesses++) {
                find(judgement, QRDMA_FINDING_TORN_ACCESS, &judged);
            }
        }
    }
}

/* ----------------------------------------------------------------- timeline */

static gint by_interval(gconstpointer left, gconstpointer right)
{
    const QrdmaTimelineInterval *a = left;
    const QrdmaTimelineInterval *b = right;

    return a->address < b->address ? -1 : a->address > b->address;
}

static GArray *join(GArray *intervals)
{
    GArray *joined = g_array_new(false, false, sizeof(QrdmaTimelineInterval));

    g_array_sort(intervals, by_interval);
    for (guint i = 0; i < intervals->len; i++) {
        QrdmaTimelineInterval *one = &g_array_index(intervals,
                                                    QrdmaTimelineInterval, i);
        QrdmaTimelineInterval *last =
            joined->len ? &g_array_index(joined, QrdmaTimelineInterval,
                                         joined->len - 1) : NULL;

        if (last && last->class == one->class &&
            last->address + last->length == one->address) {
            last->length += one->length;
        } else {
            g_array_append_val(joined, *one);
        }
    }
    return joined;
}

/* Judged intervals from `*next` on that belong to the change. */
static GArray *intervals_of(const Judgement *judgement, guint change,
                            guint *next)
{
    g_autoptr(GArray) intervals = g_array_new(false, false,
                                              sizeof(QrdmaTimelineInterval));

    while (*next < judgement->judged->len) {
        const Judged *judged = &g_array_index(judgement->judged, Judged, *next);
        QrdmaTimelineInterval interval = {
            .address = judged->address,
            .length = judged->length,
            .class = judged->class,
        };

        if (judged->change != change) {
            break;
        }
        g_array_append_val(intervals, interval);
        (*next)++;
    }
    return join(intervals);
}

static void emit_timeline(Judgement *judgement, const char *how)
{
    const AuditWindow *window = judgement->window;
    const QrdmaMkc *mkc = &judgement->watch->now.mkc;
    QrdmaTimelineRecord record = {
        .kind = QRDMA_TIMELINE_WINDOW,
        .key = judgement->watch->key,
        .begin = window->begin,
        .end = audit_now(judgement->engine),
        .address = mkc->start,
        .length = mkc->length,
        .text = how,
    };
    guint next = 0;

    audit_timeline(judgement->engine, &record);
    for (guint i = 0; i < window->changes->len; i++) {
        const AuditChange *change = &g_array_index(window->changes,
                                                   AuditChange, i);
        g_autoptr(GArray) intervals = intervals_of(judgement, i, &next);

        record.kind = QRDMA_TIMELINE_CHANGE;
        record.begin = record.end = change->time;
        record.change = change->number;
        record.qpn = change->qpn;
        record.text = change->text;
        record.intervals = (QrdmaTimelineInterval *)intervals->data;
        record.num_intervals = intervals->len;
        audit_timeline(judgement->engine, &record);
    }
}

void audit_judge(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                 const QrdmaAuditMap *new_map, const char *how)
{
    AuditWindow *window = watch->window;
    QrdmaAuditTotals *totals = &engine->audit->totals;
    Judgement judgement = {
        .engine = engine,
        .watch = watch,
        .window = window,
        .new_map = new_map,
        .last = g_sequence_new(g_free),
        .judged = g_array_new(false, false, sizeof(Judged)),
    };
    uint64_t torn, widened;

    if (!new_map) {
        collect_last(&judgement);
    }
    judge_pieces(&judgement);
    torn = count_class(&judgement, QRDMA_CLASS_TORN, QRDMA_FINDING_TORN);
    widened = count_class(&judgement, QRDMA_CLASS_WIDENED,
                          QRDMA_FINDING_WIDENED);
    widened += count_scope(&judgement);
    judge_accesses(&judgement);
    totals->windows++;
    /* The last map is no intermediate one. */
    totals->maps += window->maps - 1;
    totals->torn_bytes += torn;
    totals->widened_bytes += widened;
    qrdma_trace(engine, "audit_window", "key 0x%08x %s maps %" PRIu64
                " torn %" PRIu64 " widened %" PRIu64, watch->key, how,
                window->maps, torn, widened);
    if (engine->ops->timeline) {
        emit_timeline(&judgement, how);
    }
    g_array_unref(judgement.judged);
    g_sequence_free(judgement.last);
}
