/*
 * qrdma engine: the audit's notes of what a map showed between two settled
 * states.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "audit-internal.h"

static void clear_change(gpointer data)
{
    AuditChange *change = data;

    g_free(change->text);
}

AuditWindow *audit_window_new(QrdmaEngine *engine, const QrdmaAuditMap *old)
{
    AuditWindow *window = g_new0(AuditWindow, 1);

    window->begin = audit_now(engine);
    window->old = qrdma_audit_map_copy(old);
    window->changes = g_array_new(false, false, sizeof(AuditChange));
    g_array_set_clear_func(window->changes, clear_change);
    window->pieces = g_array_new(false, true, sizeof(AuditPiece));
    window->accesses = g_array_new(false, true, sizeof(AuditAccess));
    return window;
}

void audit_window_free(QrdmaEngine *engine, AuditWindow *window)
{
    if (window) {
        engine->audit->notes -= window->changes->len + window->pieces->len +
                                window->accesses->len;
        qrdma_audit_map_free(window->old);
        g_array_unref(window->changes);
        g_array_unref(window->pieces);
        g_array_unref(window->accesses);
        g_free(window);
    }
}

/* Whether one more may be noted; else it is counted as not judged. */
static bool has_room(QrdmaEngine *engine, const GArray *notes, guint most)
{
    QrdmaAudit *audit = engine->audit;

    if (notes->len == most || audit->notes == AUDIT_MAX_NOTES) {
        audit->totals.unjudged++;
        return false;
    }
    audit->notes++;
    return true;
}

static AuditChange *last_change(AuditWindow *window)
{
    return window->changes->len
           ? &g_array_index(window->changes, AuditChange,
                            window->changes->len - 1)
           : NULL;
}

void audit_window_change(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                         const QrdmaUmr *umr, const QrdmaMkc *before)
{
    AuditWindow *window = watch->window;
    AuditChange *last = last_change(window);
    AuditChange change = {
        .number = umr->change,
        .time = audit_now(engine),
        .qpn = qrdma_umr_is_command(umr) ? 0 : umr->number,
        .is_context = before,
        .slice = umr->next / QRDMA_UMR_SLICE,
        .scope = qrdma_audit_scope(&watch->now.mkc),
        .present = !qrdma_audit_map_is_empty(&watch->now),
    };

    window->maps++;
    if (last && last->number == change.number && !change.is_context &&
        !last->is_context && (last->slice == change.slice ||
                              window->changes->len >= AUDIT_MAX_SLICES)) {
        last->present |= change.present;
        return;
    }
    /* The first is always there, so that what follows has one to refer to. */
    if (window->changes->len &&
        !has_room(engine, window->changes, AUDIT_MAX_CHANGES)) {
        return;
    }
    engine->audit->notes += !window->changes->len;
    change.text = audit_describe(umr, before);
    g_array_append_val(window->changes, change);
}

/* Whether the piece goes on where the last one ends. */
static bool extends(const AuditPiece *last, const AuditPiece *piece)
{
    return last->change == piece->change && last->is_old == piece->is_old &&
           last->address + last->length == piece->address &&
           qrdma_answer_same(qrdma_answer_at(last->answer, last->length),
                             piece->answer);
}

static void append(QrdmaEngine *engine, AuditWindow *window,
                   const AuditPiece *piece)
{
    AuditPiece *last = window->pieces->len
                       ? &g_array_index(window->pieces, AuditPiece,
                                        window->pieces->len - 1)
                       : NULL;

    if (last && extends(last, piece)) {
        last->length += piece->length;
    } else if (has_room(engine, window->pieces, AUDIT_MAX_PIECES)) {
        g_array_append_val(window->pieces, *piece);
    }
}

void audit_window_note(QrdmaEngine *engine, QrdmaAuditWatch *watch,
                       uint64_t address, uint64_t length)
{
    AuditWindow *window = watch->window;

    while (length) {
        uint64_t run, old_run;
        QrdmaAuditAnswer answer = qrdma_audit_map_answer(&watch->now, address,
                                                         &run);
        QrdmaAuditAnswer old = qrdma_audit_map_answer(window->old, address,
                                                      &old_run);
        AuditPiece piece = {
            .address = address,
            .length = MIN(length, MIN(run, old_run)),
            .answer = answer,
            .change = window->changes->len - 1,
            .is_old = !qrdma_answer_absent(answer) &&
                      qrdma_answer_same(answer, old),
        };

        append(engine, window, &piece);
        address += piece.length;
        length -= piece.length;
    }
}

void audit_window_note_access(QrdmaEngine *engine, AuditWindow *window,
                              const AuditAccess *access)
{
    if (has_room(engine, window->accesses, AUDIT_MAX_ACCESSES)) {
        g_array_append_val(window->accesses, *access);
    }
}
