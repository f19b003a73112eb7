/*
 * qrdma engine: BAR 0, and the state of the card as a whole.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* Status bits that stay until they are written with 1. */

static uint64_t read_id(QrdmaEngine *engine)
{
    return QRDMA_ID;
}

static uint64_t read_abi_version(QrdmaEngine *engine)
{
    return QRDMA_ABI_MAJOR << 16 | QRDMA_ABI_MINOR;
}

static uint64_t read_capabilities(QrdmaEngine *engine)
{
    return qrdma_engine_capabilities(engine);
}

static uint64_t read_status(QrdmaEngine *engine)
{
    uint32_t status = engine->registers.status;

    if (engine->registers.error != QRDMA_FATAL_NONE) {
        status |= QRDMA_CARD_FATAL;
    } else if (engine->registers.enabled) {
        status |= QRDMA_CARD_READY;
    }
    return status;
}

static void write_status(QrdmaEngine *engine, uint64_t value)
{
    engine->registers.status &= ~(value & QRDMA_STATUS_STICKY);
}

static uint64_t read_error(QrdmaEngine *engine)
{
    return engine->registers.error;
}

static uint64_t read_control(QrdmaEngine *engine)
{
    return engine->registers.enabled ? QRDMA_CONTROL_ENABLE : 0;
}

/*
 * There is no card that is disabled and still knows something: taking ENABLE
 * away is a reset as well.
 */
static void write_control(QrdmaEngine *engine, uint64_t value)
{
    bool enable = value & QRDMA_CONTROL_ENABLE;

    if (value & ~(uint64_t)(QRDMA_CONTROL_ENABLE | QRDMA_CONTROL_RESET)) {
        qrdma_guest_error(engine, "control: unknown bits in 0x%" PRIx64, value);
    }
    if (value & QRDMA_CONTROL_RESET) {
        qrdma_engine_reset(engine);
    } else if (enable && !engine->registers.enabled) {
        engine->registers.enabled = true;
        qrdma_command_enable(engine);
    } else if (!enable && engine->registers.enabled) {
        qrdma_engine_reset(engine);
    }
}

static uint64_t read_command_ring(QrdmaEngine *engine)
{
    return engine->registers.command_ring;
}

static void write_command_ring(QrdmaEngine *engine, uint64_t value)
{
    if (!engine->registers.enabled) {
        engine->registers.command_ring = value;
    }
}

static uint64_t read_command_log_size(QrdmaEngine *engine)
{
    return engine->registers.command_log_size;
}

static void write_command_log_size(QrdmaEngine *engine, uint64_t value)
{
    if (!engine->registers.enabled) {
        engine->registers.command_log_size = value;
    }
}

static uint64_t read_command_vector(QrdmaEngine *engine)
{
    return engine->registers.command_vector;
}

static void write_command_vector(QrdmaEngine *engine, uint64_t value)
{
    if (!engine->registers.enabled) {
        engine->registers.command_vector = value;
    }
}

static void write_command_doorbell(QrdmaEngine *engine, uint64_t value)
{
    qrdma_command_doorbell(engine, value);
}

static uint64_t read_command_consumer(QrdmaEngine *engine)
{
    return engine->commands.consumer;
}

static uint64_t read_mac(QrdmaEngine *engine)
{
    uint64_t mac = 0;

    for (unsigned i = 0; i < sizeof(engine->config.mac); i++) {
        mac |= (uint64_t)engine->config.mac[i] << (8 * i);
    }
    return mac;
}

static uint64_t read_diagnostic_caps(QrdmaEngine *engine)
{
    return (engine->config.diagnostics ? QRDMA_DIAGNOSTIC_FAULTS : 0) |
           (engine->config.audit ? QRDMA_DIAGNOSTIC_AUDIT : 0);
}

static const QrdmaRegisterType register_types[] = {
    { QRDMA_REG_ID, 4, read_id, NULL },
    { QRDMA_REG_ABI_VERSION, 4, read_abi_version, NULL },
    { QRDMA_REG_CAPABILITIES, 8, read_capabilities, NULL },
    { QRDMA_REG_STATUS, 4, read_status, write_status },
    { QRDMA_REG_ERROR, 4, read_error, NULL },
    { QRDMA_REG_CONTROL, 4, read_control, write_control },
    { QRDMA_REG_COMMAND_RING, 8, read_command_ring, write_command_ring },
    { QRDMA_REG_COMMAND_LOG_SIZE, 4, read_command_log_size,
      write_command_log_size },
    { QRDMA_REG_COMMAND_VECTOR, 4, read_command_vector, write_command_vector },
    { QRDMA_REG_COMMAND_DOORBELL, 4, NULL, write_command_doorbell },
    { QRDMA_REG_COMMAND_CONSUMER, 4, read_command_consumer, NULL },
    { QRDMA_REG_MAC, 8, read_mac, NULL },
    { QRDMA_REG_DIAGNOSTIC_CAPS, 4, read_diagnostic_caps, NULL },
};

static const QrdmaRegisterWindow main_window = {
    register_types, G_N_ELEMENTS(register_types),
};

static const QrdmaRegisterWindow *const windows[] = {
    &main_window,
    &qrdma_fault_window,
    &qrdma_audit_window,
};

static const QrdmaRegisterType *
find_in_window(const QrdmaRegisterWindow *window, uint64_t offset,
               unsigned size)
{
    for (unsigned i = 0; i < window->count; i++) {
        const QrdmaRegisterType *type = &window->types[i];
        bool whole = offset == type->offset && size == type->bytes;
        bool half = type->bytes == 8 && size == 4 &&
                    (offset == type->offset || offset == type->offset + 4);

        if (whole || half) {
            return type;
        }
    }
    return NULL;
}

/* The register that an access of this offset and size may touch, or NULL. */
static const QrdmaRegisterType *find_register(const QrdmaEngine *engine,
                                              uint64_t offset, unsigned size)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(windows); i++) {
        const QrdmaRegisterType *type = NULL;

        if (!windows[i]->is_there || windows[i]->is_there(engine)) {
            type = find_in_window(windows[i], offset, size);
        }
        if (type) {
            return type;
        }
    }
    return NULL;
}

static uint64_t read_whole(QrdmaEngine *engine, const QrdmaRegisterType *type)
{
    return type->read ? type->read(engine) : 0;
}

uint64_t qrdma_engine_register_read(QrdmaEngine *engine, uint64_t offset,
                                    unsigned size)
{
    const QrdmaRegisterType *type = find_register(engine, offset, size);
    uint64_t value;

    if (!type) {
        return 0;
    }
    value = read_whole(engine, type) >> (8 * (offset - type->offset));
    return size == 8 ? value : value & UINT32_MAX;
}

void qrdma_engine_register_write(QrdmaEngine *engine, uint64_t offset,
                                 uint64_t value, unsigned size)
{
    const QrdmaRegisterType *type = find_register(engine, offset, size);

    if (!type || !type->write) {
        qrdma_guest_error(engine, "register write of %u bytes at 0x%" PRIx64
                          " ignored", size, offset);
        return;
    }
    if (size < 8) {
        value &= UINT32_MAX;
    }
    if (size < type->bytes) {
        unsigned shift = 8 * (offset - type->offset);
        uint64_t other = read_whole(engine, type) &
                         ~((uint64_t)UINT32_MAX << shift);

        value = other | value << shift;
    }
    type->write(engine, value);
}

void qrdma_registers_reset(QrdmaEngine *engine)
{
    engine->registers = (QrdmaRegisters) { 0 };
}

void qrdma_status_set(QrdmaEngine *engine, uint32_t bits)
{
    engine->registers.status |= bits & QRDMA_STATUS_STICKY;
}
