/*
 * qrdma engine fuzzing: what must hold when the input is at its end.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-common.h"

/* Timers that may fire at the end: an endless retry is no error. */
#define LAST_TIMERS 64u

/* The byte of the input with which the end is looked at more closely. */
#define WHOLE_CHECK 0xa5

/* Whether it came to rest: no timer is left. */
static bool settle(FuzzCard *fuzz)
{
    fuzz_run(fuzz);
    for (unsigned i = 0; i < LAST_TIMERS &&
         fuzz->host->deadline != UINT64_MAX; i++) {
        fake_host_tick(fuzz->host, fuzz->host->deadline > fuzz->host->now ?
                       fuzz->host->deadline - fuzz->host->now : 0);
        fuzz_run(fuzz);
    }
    return fuzz->host->deadline == UINT64_MAX;
}

/* ------------------------------------------------------------------ at rest */

/*
 * Of a QP that nobody will wake: what has been rung for is done, or the driver
 * has to answer a page fault, or the other end does not, for ever.
 */
static bool is_forgotten(const QrdmaQp *qp)
{
    bool sends = qp->send.consumer != qp->send.producer;

    switch (qp->state) {
    case QRDMA_QP_ERROR:
        return sends || qp->receive.consumer != qp->receive.producer;
    case QRDMA_QP_RTS:
        return sends && qp->wait != QRDMA_WAIT_FAULT &&
               !(qp->outgoing.active && !qp->attributes.timeout);
    default:
        return false;
    }
}

static void check_all_is_done(FuzzCard *fuzz)
{
    QrdmaEngine *engine = fuzz->engine;

    if (!qrdma_engine_running(engine) || fuzz->may_inject) {
        return;
    }
    if (engine->commands.consumer != engine->commands.producer) {
        fuzz_fail("a command is never carried out");
    }
    for (unsigned i = 0, seen = 0; seen < engine->queues->num_qps; i++) {
        const QrdmaQp *qp = engine->queues->qps[i];

        seen += qp != NULL;
        if (qp && is_forgotten(qp)) {
            fuzz_fail("work of a queue is never done");
        }
    }
}

/* ----------------------------------------------------------- after a reset */

static QrdmaSaved save(QrdmaEngine *engine)
{
    QrdmaSaved saved;
    char *error = NULL;

    if (!qrdma_engine_save(engine, QRDMA_PART_CARD, &saved, &error)) {
        fuzz_fail(error);
    }
    return saved;
}

/* What the card is saved as when nothing has been done with it. */
static QrdmaSaved save_new_card(const QrdmaConfig *config)
{
    FakeHost *host = fake_host_new();
    QrdmaEngine *engine = qrdma_engine_new(&host->ops, host, config);
    QrdmaSaved saved = save(engine);

    qrdma_engine_free(engine);
    fake_host_free(host);
    return saved;
}

/*
 * All that a card holds, byte by byte. Numbers of changes go on over resets, by
 * design. Slow, since it looks at every number that an object could have.
 */
static void check_is_new(FuzzCard *fuzz)
{
    QrdmaSaved fresh = save_new_card(&fuzz->config);
    QrdmaSaved saved;

    fuzz->engine->changes = 0;
    saved = save(fuzz->engine);
    if (saved.length != fresh.length ||
        memcmp(saved.bytes, fresh.bytes, fresh.length)) {
        fuzz_fail("a reset card is not as a new one");
    }
    g_free(saved.bytes);
    g_free(fresh.bytes);
}

/* The same, only that there are no objects: for every input. */
static void check_is_empty(FuzzCard *fuzz)
{
    QrdmaEngine *engine = fuzz->engine;

    if (engine->queues->num_qps || engine->queues->num_cqs ||
        engine->mkeys.count || engine->faults->held.length ||
        !g_queue_is_empty(&engine->queues->ready) ||
        !g_queue_is_empty(&engine->queues->eq_work) ||
        !g_sequence_is_empty(engine->queues->deadlines)) {
        fuzz_fail("something is left after a reset");
    }
}

/* Nothing is left that could do anything, whatever the host still calls. */
static void check_reset(FuzzCard *fuzz)
{
    qrdma_engine_reset(fuzz->engine);
    fuzz->quiet = true;
    if (fuzz->host->deadline != UINT64_MAX) {
        fuzz_fail("a timer is set after a reset");
    }
    fuzz->host->now += 1ull << 40;
    qrdma_engine_timer(fuzz->engine);
    if (qrdma_engine_run(fuzz->engine)) {
        fuzz_fail("work after a reset");
    }
    link_doorbell(fuzz->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1);
    qrdma_engine_run(fuzz->engine);
    check_is_empty(fuzz);
    if (fuzz->end == WHOLE_CHECK) {
        qrdma_engine_reset(fuzz->engine);
        check_is_new(fuzz);
    }
}

/*
 * What the card promises as long as no faults are injected, whatever the guest
 * does: once a key's revocation has completed, no data moves through it. And
 * where only its own UMRs have written tables: accesses go where the tables
 * say, and a completed change is in the tables.
 */
static void check_audit(FuzzCard *fuzz)
{
    QrdmaAuditTotals totals = qrdma_engine_audit_totals(fuzz->engine);

    if (fuzz->may_inject) {
        return;
    }
    if (totals.revoked_accesses) {
        fuzz_fail("an access through a revoked key");
    }
    if (!fuzz->tables_touched && totals.stray_accesses) {
        fuzz_fail("an access to where no table says");
    }
    if (!fuzz->tables_touched && totals.stale_bytes) {
        fuzz_fail("a change has completed without being in the tables");
    }
}

void fuzz_card_finish(FuzzCard *fuzz)
{
    /* Else the reset finds work in flight. */
    if (fuzz->end % 4 && settle(fuzz)) {
        check_all_is_done(fuzz);
    }
    check_audit(fuzz);
    check_reset(fuzz);
    fuzz_card_free(fuzz);
}
