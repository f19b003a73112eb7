/*
 * qrdma engine: saved state: the card as a whole.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

/* The guest has seen it: the card that is loaded into has to have the same. */
static void same(QrdmaStream *stream, const char *name, bool here)
{
    bool there = here;

    qrdma_stream_bool(stream, name, &there);
    qrdma_stream_check(stream, there == here, name,
                       "%s where it was saved, %s here",
                       there ? "on" : "off", here ? "on" : "off");
}

static void state_config(QrdmaStream *stream, const QrdmaConfig *config)
{
    uint8_t mac[6];

    memcpy(mac, config->mac, sizeof(mac));
    qrdma_stream_enter(stream, "config");
    qrdma_stream_bytes(stream, "mac", mac, sizeof(mac));
    qrdma_stream_check(stream, !memcmp(mac, config->mac, sizeof(mac)), "mac",
                       "%02x:%02x:%02x:%02x:%02x:%02x where it was saved, not "
                       "the one here",
                       mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
    same(stream, "pble-cache", config->pble_cache);
    same(stream, "diagnostics", config->diagnostics);
    same(stream, "audit", config->audit);
    qrdma_stream_leave(stream);
}

static void state_registers(QrdmaStream *stream, QrdmaRegisters *registers)
{
    qrdma_stream_enter(stream, "registers");
    qrdma_stream_u32(stream, "status", &registers->status, 0, UINT32_MAX);
    qrdma_stream_check(stream, !(registers->status & ~QRDMA_STATUS_STICKY),
                       "status", "0x%x has bits that cannot be set",
                       registers->status);
    qrdma_stream_enum(stream, "error", &registers->error, QRDMA_FATAL_NONE,
                      QRDMA_FATAL_INJECTED);
    qrdma_stream_bool(stream, "enabled", &registers->enabled);
    qrdma_stream_check(stream, registers->enabled || !registers->error,
                       "error", "%d in a card that is not enabled",
                       registers->error);
    qrdma_stream_u64(stream, "command_ring", &registers->command_ring, 0,
                     UINT64_MAX);
    qrdma_stream_u32(stream, "command_log_size", &registers->command_log_size,
                     0, UINT32_MAX);
    qrdma_stream_u32(stream, "command_vector", &registers->command_vector, 0,
                     UINT32_MAX);
    qrdma_stream_leave(stream);
}

void qrdma_state_card(QrdmaStream *stream, QrdmaEngine *engine)
{
    QRDMA_ABI_ASSERT(sizeof(engine->counters) % sizeof(uint64_t) == 0);

    state_config(stream, &engine->config);
    state_registers(stream, &engine->registers);
    qrdma_stream_words(stream, "counters", (uint64_t *)&engine->counters,
                       sizeof(engine->counters) / sizeof(uint64_t));
    qrdma_stream_u64(stream, "umr_random", &engine->umr_random, 0, UINT64_MAX);
    qrdma_stream_u64(stream, "changes", &engine->changes, 0, UINT64_MAX);
}
