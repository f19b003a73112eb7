/*
 * qrdma engine: BAR 0, the window of fault injection.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* A field of the fault that is being described. */
#define FIELD(name, type)                                               \
    static uint64_t read_##name(QrdmaEngine *engine)                    \
    {                                                                   \
        return engine->faults->described.name;                          \
    }                                                                   \
                                                                        \
    static void write_##name(QrdmaEngine *engine, uint64_t value)       \
    {                                                                   \
        engine->faults->described.name = (type)value;                   \
    }

FIELD(target, enum qrdma_fault_target)
FIELD(action, enum qrdma_fault_action)
FIELD(at, uint32_t)
FIELD(count, uint32_t)
FIELD(index, uint32_t)
FIELD(opcode, uint32_t)
FIELD(status, uint32_t)
FIELD(point, uint32_t)
FIELD(delay, uint64_t)
FIELD(address, uint64_t)
FIELD(length, uint64_t)

static void write_control(QrdmaEngine *engine, uint64_t value)
{
    QrdmaFaults *faults = engine->faults;

    switch (value) {
    case QRDMA_FAULT_ARM:
        faults->result = qrdma_engine_fault_arm(engine, &faults->described);
        if (faults->result != QRDMA_FAULT_ARMED) {
            qrdma_guest_error(engine, "fault injection: %s",
                              qrdma_fault_result_text(faults->result));
        }
        break;
    case QRDMA_FAULT_CLEAR:
        qrdma_engine_fault_clear(engine);
        break;
    default:
        qrdma_guest_error(engine, "fault injection: unknown control 0x%" PRIx64,
                          value);
        break;
    }
}

static uint64_t read_result(QrdmaEngine *engine)
{
    return engine->faults->result;
}

static uint64_t read_armed(QrdmaEngine *engine)
{
    return engine->faults->count;
}

static uint64_t read_fired(QrdmaEngine *engine)
{
    return engine->faults->fired;
}

static uint64_t read_held(QrdmaEngine *engine)
{
    return g_queue_get_length(&engine->faults->held);
}

static const QrdmaRegisterType types[] = {
    { QRDMA_REG_FAULT_TARGET, 4, read_target, write_target },
    { QRDMA_REG_FAULT_ACTION, 4, read_action, write_action },
    { QRDMA_REG_FAULT_AT, 4, read_at, write_at },
    { QRDMA_REG_FAULT_COUNT, 4, read_count, write_count },
    { QRDMA_REG_FAULT_INDEX, 4, read_index, write_index },
    { QRDMA_REG_FAULT_OPCODE, 4, read_opcode, write_opcode },
    { QRDMA_REG_FAULT_STATUS, 4, read_status, write_status },
    { QRDMA_REG_FAULT_POINT, 4, read_point, write_point },
    { QRDMA_REG_FAULT_DELAY, 8, read_delay, write_delay },
    { QRDMA_REG_FAULT_ADDRESS, 8, read_address, write_address },
    { QRDMA_REG_FAULT_LENGTH, 8, read_length, write_length },
    { QRDMA_REG_FAULT_CONTROL, 4, NULL, write_control },
    { QRDMA_REG_FAULT_RESULT, 4, read_result, NULL },
    { QRDMA_REG_FAULT_ARMED, 4, read_armed, NULL },
    { QRDMA_REG_FAULT_FIRED, 4, read_fired, NULL },
    { QRDMA_REG_FAULT_HELD, 4, read_held, NULL },
};

static bool is_there(const QrdmaEngine *engine)
{
    return engine->config.diagnostics;
}

const QrdmaRegisterWindow qrdma_fault_window = {
    types, G_N_ELEMENTS(types), is_there,
};
