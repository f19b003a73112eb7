/*
 * qrdma engine: its life, its work and its end.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* Commands taken in one run, so that queues are not starved by them. */
#define COMMANDS_PER_RUN 16

static void forget_deadlines(QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_TIMERS; i++) {
        engine->deadlines[i] = UINT64_MAX;
    }
    engine->timer = UINT64_MAX;
}

QrdmaEngine *qrdma_engine_new(const QrdmaHostOps *ops, void *opaque,
                              const QrdmaConfig *config)
{
    QrdmaEngine *engine = g_new0(QrdmaEngine, 1);

    engine->ops = ops;
    engine->opaque = opaque;
    engine->config = *config;
    forget_deadlines(engine);
    engine->umr_random = config->umr_order_seed;
    qrdma_pble_cache_init(engine);
    engine->queues = qrdma_queues_new(engine);
    qrdma_faults_init(engine);
    qrdma_audit_init(engine);
    return engine;
}

void qrdma_engine_reset(QrdmaEngine *engine)
{
    /*
     * The card does not run any more: work in flight is dropped, not finished.
     * Queues before mkeys and SDs, which such work points at.
     */
    qrdma_registers_reset(engine);
    qrdma_faults_reset(engine);
    qrdma_queues_reset(engine);
    qrdma_command_reset(engine);
    qrdma_audit_reset(engine);
    qrdma_mkey_reset(engine);
    qrdma_hmc_reset(engine);
    qrdma_gid_reset(engine);
    engine->counters = (QrdmaCounters) { 0 };
    engine->umr_random = engine->config.umr_order_seed;
    forget_deadlines(engine);
    engine->ops->set_timer(engine->opaque, UINT64_MAX);
    /* The host may have dropped what was scheduled; else it finds nothing. */
    engine->scheduled = false;
}

void qrdma_engine_free(QrdmaEngine *engine)
{
    if (!engine) {
        return;
    }
    qrdma_engine_reset(engine);
    qrdma_audit_free(engine);
    qrdma_faults_free(engine);
    qrdma_queues_free(engine);
    qrdma_pble_cache_free(engine);
    g_free(engine);
}

bool qrdma_engine_running(const QrdmaEngine *engine)
{
    return engine->registers.enabled &&
           engine->registers.error == QRDMA_FATAL_NONE;
}

void qrdma_engine_schedule(QrdmaEngine *engine)
{
    if (!engine->scheduled) {
        engine->scheduled = true;
        engine->ops->schedule(engine->opaque);
    }
}

void qrdma_engine_fatal(QrdmaEngine *engine, enum qrdma_fatal_code code)
{
    if (engine->registers.error != QRDMA_FATAL_NONE) {
        return;
    }
    engine->registers.error = code;
    qrdma_guest_error(engine, "card in fatal error %d", code);
    /* Whoever waits for a command looks at the status register then. */
    if (engine->commands.interrupt) {
        engine->ops->raise_interrupt(engine->opaque, engine->commands.vector);
    }
    /* A command that waits has to be answered. */
    qrdma_engine_schedule(engine);
}

bool qrdma_engine_run(QrdmaEngine *engine)
{
    bool more;

    engine->scheduled = false;
    if (!engine->registers.enabled) {
        return false;
    }
    if (qrdma_faults_holding(engine->faults)) {
        qrdma_faults_run(engine);
    }
    more = qrdma_command_run(engine, COMMANDS_PER_RUN);
    if (qrdma_engine_running(engine)) {
        more |= qrdma_queues_run(engine);
    }
    if (more) {
        qrdma_engine_schedule(engine);
    }
    return engine->scheduled;
}

void qrdma_engine_update_timer(QrdmaEngine *engine)
{
    uint64_t first = MIN(engine->deadlines[QRDMA_TIMER_QUEUES],
                         engine->deadlines[QRDMA_TIMER_FAULTS]);

    if (first != engine->timer) {
        engine->timer = first;
        engine->ops->set_timer(engine->opaque, first);
    }
}

void qrdma_engine_timer(QrdmaEngine *engine)
{
    /* It has run off; the queues set it again for what comes next. */
    engine->timer = UINT64_MAX;
    engine->deadlines[QRDMA_TIMER_QUEUES] = UINT64_MAX;
    if (!qrdma_engine_running(engine)) {
        return;
    }
    qrdma_queues_timer(engine);
    if (G_LIKELY(engine->deadlines[QRDMA_TIMER_FAULTS] == UINT64_MAX)) {
        return;
    }
    if (engine->deadlines[QRDMA_TIMER_FAULTS] <=
        engine->ops->clock(engine->opaque)) {
        /* The run takes what is due, and sets the next deadline. */
        engine->deadlines[QRDMA_TIMER_FAULTS] = UINT64_MAX;
        qrdma_engine_schedule(engine);
    }
    qrdma_engine_update_timer(engine);
}

void qrdma_engine_doorbell(QrdmaEngine *engine, uint32_t page,
                           uint32_t offset, uint64_t value, unsigned size)
{
    if (qrdma_engine_running(engine)) {
        qrdma_queues_doorbell(engine, page, offset, value, size);
    } else {
        qrdma_doorbell_ignored(engine);
    }
}
