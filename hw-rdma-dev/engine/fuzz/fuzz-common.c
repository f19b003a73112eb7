/*
 * qrdma engine fuzzing: a card in a host that watches it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdio.h>
#include <string.h>
#include <sanitizer/asan_interface.h>

#include "fuzz-common.h"

/* Bytes moved and rounds run before payload is refused, to bound the time. */
#define FAIR_BYTES (4u << 20)
#define FAIR_RUNS 4000u

/*
 * Rounds in which a card whose payload is refused has to come to rest: all
 * queues at their largest can be flushed in fewer.
 */
#define LAST_RUNS 100000u

#define BLOCK 64u

/* The one that the host's operations are called for. */
static FuzzCard *current;

void fuzz_fail(const char *what)
{
    fprintf(stderr, "qrdma fuzz: %s\n", what);
    abort();
}

/* ------------------------------------------------------------------ memory */

static bool in_arena(uint64_t address, size_t length)
{
    return address + length > current->arena &&
           address < current->arena + FUZZ_ARENA_SIZE;
}

void fuzz_touch(FuzzCard *fuzz, uint64_t address, size_t length)
{
    fuzz->tables_touched |= address + length > fuzz->hmc &&
                            address < fuzz->hmc + (1u << QRDMA_SD_SHIFT);
}

/* Whether the host lets the engine have it; counts. */
static bool permits(uint64_t address, size_t length)
{
    if (current->quiet) {
        fuzz_fail("DMA after a reset");
    }
    current->moved += length;
    return !current->no_dma &&
           !(current->no_payload && in_arena(address, length));
}

/* What another processor would do meanwhile. */
static void change_memory(uint64_t last_read)
{
    FuzzChange *change = &current->change;
    uint64_t address = change->address ?: last_read;
    uint64_t offset = address + change->offset - CARD_MEMORY_BASE;

    if (!change->reads || --change->reads ||
        offset > CARD_MEMORY_SIZE - sizeof(change->bytes)) {
        return;
    }
    fuzz_touch(current, CARD_MEMORY_BASE + offset, sizeof(change->bytes));
    memcpy(card_pointer(current->card, CARD_MEMORY_BASE + offset,
                        sizeof(change->bytes)),
           &change->bytes, sizeof(change->bytes));
}

static bool fuzz_dma_read(void *opaque, uint64_t address, void *buffer,
                          size_t length)
{
    bool good = permits(address, length) &&
                current->plain.dma_read(opaque, address, buffer, length);

    change_memory(address);
    return good;
}

static bool fuzz_dma_write(void *opaque, uint64_t address, const void *buffer,
                           size_t length)
{
    return permits(address, length) &&
           current->plain.dma_write(opaque, address, buffer, length);
}

/*
 * A mapping as a copy in heap memory of just that size, so that the sanitizer
 * sees every byte that the engine touches beyond it or too late.
 */
typedef struct Mapping {
    uint8_t *pointer;           /* what the engine has */
    uint8_t *block;             /* what holds it; aligned like the address */
    uint8_t *memory;
} Mapping;

#define MAX_MAPPINGS 4

static Mapping mappings[MAX_MAPPINGS];

static void *copy_of(uint8_t *memory, uint64_t address, size_t length)
{
    for (unsigned i = 0; i < MAX_MAPPINGS; i++) {
        Mapping *mapping = &mappings[i];
        size_t lead = address % BLOCK;

        if (mapping->pointer) {
            continue;
        }
        mapping->memory = memory;
        mapping->block = aligned_alloc(BLOCK, (lead + length + BLOCK - 1) &
                                       -(size_t)BLOCK);
        mapping->pointer = mapping->block + lead;
        memcpy(mapping->pointer, memory, length);
        ASAN_POISON_MEMORY_REGION(mapping->block, lead & ~7ul);
        ASAN_POISON_MEMORY_REGION(mapping->pointer + length,
                                  -(lead + length) % BLOCK);
        return mapping->pointer;
    }
    fuzz_fail("too many mappings at once");
}

static void *fuzz_dma_map(void *opaque, uint64_t address, size_t *length,
                          bool write)
{
    void *memory;

    if (current->mapping == FUZZ_MAP_NONE || !permits(address, *length)) {
        return NULL;
    }
    if (current->mapping == FUZZ_MAP_SHORT && *length > 8) {
        *length = 1 + (*length - 1) / 3;
    }
    memory = current->plain.dma_map(opaque, address, length, write);
    /* Only payload is mapped; table writes are not. */
    if (write) {
        fuzz_touch(current, address, *length);
    }
    change_memory(address);
    if (!memory || current->mapping == FUZZ_MAP_DIRECT) {
        return memory;
    }
    return copy_of(memory, address, *length);
}

/* Only what was touched gets back: `touched` has to be true. */
static void fuzz_dma_unmap(void *opaque, void *pointer, size_t length,
                           bool write, size_t touched)
{
    if (current->mapping != FUZZ_MAP_DIRECT) {
        Mapping *mapping = mappings;

        while (mapping->pointer != pointer) {
            if (++mapping == mappings + MAX_MAPPINGS) {
                fuzz_fail("unmapped what is not mapped");
            }
        }
        if (write && touched) {
            memcpy(mapping->memory, pointer, touched);
        }
        free(mapping->block);
        *mapping = (Mapping) { 0 };
    }
    current->plain.dma_unmap(opaque, pointer, length, write, touched);
}

static void fuzz_raise_interrupt(void *opaque, uint32_t vector)
{
    if (current->quiet) {
        fuzz_fail("an interrupt after a reset");
    }
    current->plain.raise_interrupt(opaque, vector);
}

static void fuzz_set_timer(void *opaque, uint64_t deadline)
{
    if (current->quiet && deadline != UINT64_MAX) {
        fuzz_fail("a timer after a reset");
    }
    current->plain.set_timer(opaque, deadline);
}

static void watch_host(FuzzCard *fuzz)
{
    current = fuzz;
    fuzz->plain = fuzz->host->ops;
    fuzz->host->ops.dma_read = fuzz_dma_read;
    fuzz->host->ops.dma_write = fuzz_dma_write;
    fuzz->host->ops.dma_map = fuzz_dma_map;
    fuzz->host->ops.dma_unmap = fuzz_dma_unmap;
    fuzz->host->ops.raise_interrupt = fuzz_raise_interrupt;
    fuzz->host->ops.set_timer = fuzz_set_timer;
    fuzz_trace(fuzz->host, fuzz->traced);
}

/* -------------------------------------------------------------------- life */

static QrdmaConfig choose_config(FuzzInput *input, bool *traced)
{
    static const uint64_t latencies[] = { 0, 0, 1, 1000, 1000000 };
    static const uint64_t bandwidths[] = { 0, 0, 1000000000, 1 };
    QrdmaConfig config = card_default_config();
    uint8_t flags = fuzz_u8(input);

    *traced = flags & 32;
    config.pble_cache = !(flags & 1);
    config.diagnostics = flags & 2;
    config.audit = !(flags & 4);
    config.umr_order_seed = flags & 8 ? 1 + fuzz_below(input, 4) : 0;
    if (flags & 16) {
        config.packet_latency =
            latencies[fuzz_below(input, G_N_ELEMENTS(latencies))];
        config.bandwidth =
            bandwidths[fuzz_below(input, G_N_ELEMENTS(bandwidths))];
    }
    return config;
}

FuzzCard *fuzz_card_new(FuzzInput *input)
{
    FuzzCard *fuzz = g_new0(FuzzCard, 1);

    fuzz->input = input;
    fuzz->config = choose_config(input, &fuzz->traced);
    fuzz->mapping = fuzz_below(input, FUZZ_MAPPINGS);
    fuzz->end = fuzz_u8(input);
    fuzz->may_inject = fuzz->config.diagnostics;
    /* Payload then takes the same way as table writes. */
    fuzz->tables_touched = fuzz->mapping == FUZZ_MAP_NONE;
    fuzz->link = link_new(&fuzz->config);
    link_add_umr(fuzz->link);
    fuzz->card = fuzz->link->card;
    fuzz->engine = fuzz->link->engine;
    fuzz->host = fuzz->link->host;
    if (!qrdma_hmc_bus_address(fuzz->engine, 0, &fuzz->hmc, NULL)) {
        fuzz_fail("no table memory");
    }
    fuzz->inputs = card_alloc(fuzz->card, QRDMA_COMMAND_MAX_LENGTH *
                              (uint64_t)fuzz->card->command_size, LINK_PAGE);
    fuzz->arena = card_alloc(fuzz->card, FUZZ_ARENA_SIZE, FUZZ_ARENA_SIZE);
    watch_host(fuzz);
    return fuzz;
}

bool fuzz_more(const FuzzCard *fuzz)
{
    return fuzz->input->left;
}

/* ----------------------------------------------------------------- running */

static bool run_rounds(FuzzCard *fuzz, unsigned rounds)
{
    for (unsigned i = 0; i < rounds && fuzz->moved < FAIR_BYTES; i++) {
        if (!fake_host_step(fuzz->host)) {
            return true;
        }
    }
    return false;
}

void fuzz_run_some(FuzzCard *fuzz, unsigned rounds)
{
    run_rounds(fuzz, rounds);
}

void fuzz_run(FuzzCard *fuzz)
{
    if (run_rounds(fuzz, FAIR_RUNS)) {
        return;
    }
    /* Long messages are no error, but here they have been moved enough. */
    fuzz->no_payload = true;
    fuzz->tables_touched = true;
    for (unsigned i = 0; i < LAST_RUNS; i++) {
        fuzz->no_dma |= fuzz->moved > 8 * FAIR_BYTES;
        if (!fake_host_step(fuzz->host)) {
            return;
        }
    }
    fuzz_fail("work without end");
}

void fuzz_card_free(FuzzCard *fuzz)
{
    link_free(fuzz->link);
    current = NULL;
    g_free(fuzz);
}
