/*
 * qrdma engine: the way to the host: DMA, log, trace.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* What QrdmaHostOps moves in one call. */
#define DMA_MAX_LENGTH 65536u

static bool wraps(uint64_t address, size_t length)
{
    return length && address + (length - 1) < address;
}

/* It wraps, or an injected fault waits for such transfers. */
static bool __attribute__((noinline))
dma_begins_after_all(QrdmaEngine *engine, uint64_t address, size_t length,
                     bool write)
{
    if (wraps(address, length) ||
        qrdma_dma_is_faulty(engine, write, address, length)) {
        engine->counters.dma_errors++;
        return false;
    }
    return true;
}

/* False: it cannot be, or injected faults do not let it. */
static inline bool dma_begins(QrdmaEngine *engine, uint64_t address,
                              size_t length, bool write)
{
    return G_LIKELY(!wraps(address, length) &&
                    !qrdma_faults_of(engine->faults,
                                     write ? QRDMA_FAULT_DMA_WRITE
                                           : QRDMA_FAULT_DMA_READ)) ||
           dma_begins_after_all(engine, address, length, write);
}

bool qrdma_dma_read(QrdmaEngine *engine, uint64_t address, void *buffer,
                    size_t length)
{
    uint8_t *bytes = buffer;

    if (!dma_begins(engine, address, length, false)) {
        return false;
    }
    while (length) {
        size_t now = MIN(length, DMA_MAX_LENGTH);

        if (!engine->ops->dma_read(engine->opaque, address, bytes, now)) {
            engine->counters.dma_errors++;
            return false;
        }
        address += now;
        bytes += now;
        length -= now;
    }
    return true;
}

bool qrdma_dma_write(QrdmaEngine *engine, uint64_t address, const void *buffer,
                     size_t length)
{
    const uint8_t *bytes = buffer;

    if (!dma_begins(engine, address, length, true)) {
        return false;
    }
    while (length) {
        size_t now = MIN(length, DMA_MAX_LENGTH);

        if (!engine->ops->dma_write(engine->opaque, address, bytes, now)) {
            engine->counters.dma_errors++;
            return false;
        }
        address += now;
        bytes += now;
        length -= now;
    }
    return true;
}

void qrdma_guest_error(QrdmaEngine *engine, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list arguments;

    if (!engine->ops->guest_error) {
        return;
    }
    va_start(arguments, format);
    message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    engine->ops->guest_error(engine->opaque, message);
}

void qrdma_trace_write(QrdmaEngine *engine, const char *name,
                       const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list arguments;

    va_start(arguments, format);
    text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    engine->ops->trace(engine->opaque, name, text);
}

bool qrdma_is_zero(const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < length; i++) {
        if (byte[i]) {
            return false;
        }
    }
    return true;
}
