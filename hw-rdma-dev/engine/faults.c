/*
 * qrdma engine: fault injection: what is armed, and what it hits.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

#define ALL_OPCODES 0

static bool is_dma(enum qrdma_fault_target target)
{
    return target == QRDMA_FAULT_DMA_READ || target == QRDMA_FAULT_DMA_WRITE;
}

/* A target whose things are asked for and answered, not just delivered. */
static bool is_request(enum qrdma_fault_target target)
{
    return target == QRDMA_FAULT_COMMAND || target == QRDMA_FAULT_UMR;
}

/* ---------------------------------------------------------------- checking */

static bool action_is_good(const QrdmaFault *fault)
{
    switch (fault->action) {
    case QRDMA_FAULT_FAIL:
        return true;
    case QRDMA_FAULT_LATE:
        return is_request(fault->target);
    case QRDMA_FAULT_DELAY:
    case QRDMA_FAULT_DROP:
    case QRDMA_FAULT_DUPLICATE:
    case QRDMA_FAULT_SWAP:
    case QRDMA_FAULT_FATAL:
        return !is_dma(fault->target);
    default:
        return false;
    }
}

static bool opcode_is_good(const QrdmaFault *fault)
{
    switch (fault->target) {
    case QRDMA_FAULT_COMMAND:
        return fault->opcode == ALL_OPCODES ||
               qrdma_command_exists(fault->opcode);
    case QRDMA_FAULT_EVENT:
        return fault->opcode <= QRDMA_EVENT_COMMUNICATION;
    default:
        return fault->opcode == ALL_OPCODES;
    }
}

static bool status_is_good(const QrdmaFault *fault)
{
    if (fault->action == QRDMA_FAULT_FAIL && is_request(fault->target)) {
        return fault->status < QRDMA_STATUS_COUNT;
    }
    return !fault->status;
}

static bool point_is_good(const QrdmaFault *fault)
{
    if (fault->action != QRDMA_FAULT_FATAL) {
        return !fault->point;
    }
    return fault->target == QRDMA_FAULT_UMR ||
           fault->point == QRDMA_FAULT_POINT_BEFORE ||
           fault->point == QRDMA_FAULT_POINT_AFTER;
}

static bool delay_is_good(const QrdmaFault *fault)
{
    bool delays = fault->action == QRDMA_FAULT_DELAY ||
                  fault->action == QRDMA_FAULT_LATE ||
                  fault->action == QRDMA_FAULT_DUPLICATE;

    return fault->delay <= (delays ? QRDMA_FAULT_MAX_DELAY : 0);
}

static bool range_is_good(const QrdmaFault *fault)
{
    if (!is_dma(fault->target)) {
        return !fault->address && !fault->length;
    }
    return fault->length && fault->length - 1 <= UINT64_MAX - fault->address;
}

enum qrdma_fault_result qrdma_fault_check(const QrdmaFault *fault)
{
    if (fault->target < QRDMA_FAULT_COMMAND ||
        fault->target > QRDMA_FAULT_DMA_WRITE) {
        return QRDMA_FAULT_BAD_TARGET;
    }
    if (!action_is_good(fault)) {
        return QRDMA_FAULT_BAD_ACTION;
    }
    if (!fault->at) {
        return QRDMA_FAULT_BAD_AT;
    }
    if (!fault->count) {
        return QRDMA_FAULT_BAD_COUNT;
    }
    if (fault->index >= (is_dma(fault->target) ? 1 : QRDMA_MAX_MKEYS)) {
        return QRDMA_FAULT_BAD_INDEX;
    }
    if (!opcode_is_good(fault)) {
        return QRDMA_FAULT_BAD_OPCODE;
    }
    if (!status_is_good(fault)) {
        return QRDMA_FAULT_BAD_STATUS;
    }
    if (!point_is_good(fault)) {
        return QRDMA_FAULT_BAD_POINT;
    }
    if (!delay_is_good(fault)) {
        return QRDMA_FAULT_BAD_DELAY;
    }
    return range_is_good(fault) ? QRDMA_FAULT_ARMED : QRDMA_FAULT_BAD_RANGE;
}

const char *qrdma_fault_result_text(enum qrdma_fault_result result)
{
    static const char *const texts[] = {
        [QRDMA_FAULT_ARMED] = "armed",
        [QRDMA_FAULT_BAD_TARGET] = "no such target",
        [QRDMA_FAULT_BAD_ACTION] = "no such action of the target",
        [QRDMA_FAULT_BAD_AT] = "at must not be 0",
        [QRDMA_FAULT_BAD_COUNT] = "count must not be 0",
        [QRDMA_FAULT_BAD_INDEX] = "index is no mkey index, or the target has "
                                  "none",
        [QRDMA_FAULT_BAD_OPCODE] = "no such opcode of the target",
        [QRDMA_FAULT_BAD_STATUS] = "no such status, or the action has none",
        [QRDMA_FAULT_BAD_POINT] = "no such point of the target, or the action "
                                  "has none",
        [QRDMA_FAULT_BAD_DELAY] = "delay is over ten seconds, or the action "
                                  "has none",
        [QRDMA_FAULT_BAD_RANGE] = "address and length are no range of bytes, "
                                  "or the target has none",
        [QRDMA_FAULT_TOO_MANY] = "too many faults are armed",
    };

    return (unsigned)result < G_N_ELEMENTS(texts) ? texts[result] : "unknown";
}

/* ------------------------------------------------------------------ arming */

static void update_targets(QrdmaFaults *faults)
{
    faults->targets = 0;
    for (unsigned i = 0; i < faults->count; i++) {
        faults->targets |= 1u << faults->armed[i].target;
    }
}

enum qrdma_fault_result qrdma_engine_fault_arm(QrdmaEngine *engine,
                                               const QrdmaFault *fault)
{
    QrdmaFaults *faults = engine->faults;
    enum qrdma_fault_result result = qrdma_fault_check(fault);
    QrdmaFault *armed = &faults->armed[faults->count];

    if (result != QRDMA_FAULT_ARMED) {
        return result;
    }
    if (faults->count == QRDMA_MAX_FAULTS) {
        return QRDMA_FAULT_TOO_MANY;
    }
    *armed = *fault;
    armed->seen = 0;
    armed->hit = 0;
    faults->count++;
    update_targets(faults);
    return QRDMA_FAULT_ARMED;
}

unsigned qrdma_engine_fault_list(const QrdmaEngine *engine,
                                 QrdmaFault faults[QRDMA_MAX_FAULTS])
{
    memcpy(faults, engine->faults->armed,
           engine->faults->count * sizeof(*faults));
    return engine->faults->count;
}

void qrdma_engine_fault_clear(QrdmaEngine *engine)
{
    QrdmaFaults *faults = engine->faults;

    faults->count = 0;
    faults->fired = 0;
    update_targets(faults);
    qrdma_faults_reset(engine);
}

/* ----------------------------------------------------------------- hitting */

/* What has come, in the terms of faults; a transfer has an address range. */
typedef struct Thing {
    enum qrdma_fault_target target;
    uint32_t index;
    uint32_t opcode;
    uint64_t address;
    uint64_t length;
} Thing;

static bool touches(const QrdmaFault *fault, uint64_t address, uint64_t length)
{
    return length && address <= fault->address + (fault->length - 1) &&
           fault->address <= address + (length - 1);
}

static bool concerns(const QrdmaFault *fault, const Thing *thing)
{
    if (fault->target != thing->target) {
        return false;
    }
    return is_dma(thing->target)
           ? touches(fault, thing->address, thing->length)
           : qrdma_fault_matches(fault, thing->index, thing->opcode);
}

/* Count it; true if it is one of those to be hit. */
static bool count(QrdmaFault *fault)
{
    if (fault->seen < UINT32_MAX) {
        fault->seen++;
    }
    return fault->seen >= fault->at;
}

static const char *target_name(enum qrdma_fault_target target)
{
    static const char *const names[] = {
        "", "command", "UMR", "completion", "event", "DMA read", "DMA write",
    };

    return names[target];
}

static void remove_spent(QrdmaFaults *faults)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < faults->count; i++) {
        const QrdmaFault *fault = &faults->armed[i];

        if (fault->count == QRDMA_FAULT_FOR_EVER ||
            fault->hit < fault->count) {
            faults->armed[kept++] = *fault;
        }
    }
    faults->count = kept;
    update_targets(faults);
}

static bool hit_one(QrdmaEngine *engine, QrdmaFault *fault, QrdmaFault *hit)
{
    fault->hit++;
    engine->faults->fired++;
    *hit = *fault;
    qrdma_trace(engine, "fault",
                "%s action %d number %u index 0x%x opcode 0x%x",
                target_name(fault->target), fault->action, fault->seen,
                fault->index, fault->opcode);
    remove_spent(engine->faults);
    return true;
}

/* All that it concerns count it, and the first of them to be due hits. */
static bool take(QrdmaEngine *engine, const Thing *thing, QrdmaFault *hit)
{
    QrdmaFaults *faults = engine->faults;
    QrdmaFault *first = NULL;

    if (!(faults->targets & 1u << thing->target)) {
        return false;
    }
    for (unsigned i = 0; i < faults->count; i++) {
        QrdmaFault *fault = &faults->armed[i];

        if (concerns(fault, thing) && count(fault) && !first) {
            first = fault;
        }
    }
    return first && hit_one(engine, first, hit);
}

bool qrdma_fault_take(QrdmaEngine *engine, enum qrdma_fault_target target,
                      uint32_t index, uint32_t opcode, QrdmaFault *hit)
{
    Thing thing = { .target = target, .index = index, .opcode = opcode };

    return take(engine, &thing, hit);
}

bool qrdma_fault_dma(QrdmaEngine *engine, bool write, uint64_t address,
                     uint64_t length)
{
    Thing thing = {
        .target = write ? QRDMA_FAULT_DMA_WRITE : QRDMA_FAULT_DMA_READ,
        .address = address,
        .length = length,
    };
    QrdmaFault hit;

    return take(engine, &thing, &hit);
}

/* ------------------------------------------------------------- saved state */

/* Any values: the register window holds what the guest wrote. */
static void state_values(QrdmaStream *stream, QrdmaFault *fault)
{
    qrdma_stream_enum(stream, "target", &fault->target, 0, UINT32_MAX);
    qrdma_stream_enum(stream, "action", &fault->action, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "at", &fault->at, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "count", &fault->count, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "index", &fault->index, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "opcode", &fault->opcode, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "status", &fault->status, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "point", &fault->point, 0, UINT32_MAX);
    qrdma_stream_u64(stream, "delay", &fault->delay, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "address", &fault->address, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "length", &fault->length, 0, UINT64_MAX);
    qrdma_stream_u32(stream, "seen", &fault->seen, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "hit", &fault->hit, 0, UINT32_MAX);
}

void qrdma_state_fault(QrdmaStream *stream, const char *name,
                       QrdmaFault *fault)
{
    enum qrdma_fault_result result;

    qrdma_stream_enter(stream, name);
    state_values(stream, fault);
    result = fault->action ? qrdma_fault_check(fault) : QRDMA_FAULT_ARMED;
    qrdma_stream_check(stream, result == QRDMA_FAULT_ARMED, NULL, "%s",
                       qrdma_fault_result_text(result));
    qrdma_stream_leave(stream);
}

static void state_armed(QrdmaStream *stream, QrdmaFaults *faults)
{
    uint32_t count = faults->count;

    qrdma_stream_count(stream, "armed", &count, QRDMA_MAX_FAULTS, 1);
    for (uint32_t i = 0; i < count; i++) {
        qrdma_stream_enter_item(stream, "armed", i);
        qrdma_state_fault(stream, "fault", &faults->armed[i]);
        qrdma_stream_check(stream, faults->armed[i].action, "action",
                           "it is none");
        qrdma_stream_leave(stream);
    }
    if (qrdma_stream_is_good(stream)) {
        faults->count = count;
        update_targets(faults);
    }
}

void qrdma_state_faults(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaFaults *faults = engine->faults;

    qrdma_stream_section(stream, "flts", 1);
    qrdma_stream_enter(stream, "faults");
    state_armed(stream, faults);
    qrdma_stream_u32(stream, "fired", &faults->fired, 0, UINT32_MAX);
    qrdma_stream_enter(stream, "described");
    state_values(stream, &faults->described);
    qrdma_stream_leave(stream);
    qrdma_stream_enum(stream, "result", &faults->result, QRDMA_FAULT_ARMED,
                      QRDMA_FAULT_TOO_MANY);
    qrdma_state_held(stream, engine);
    qrdma_stream_leave(stream);
}
