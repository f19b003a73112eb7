/*
 * qrdma engine tests: a host made of memory, a clock and a log.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>
#include <sys/mman.h>

#include "fake-host.h"

/* More rounds than any test needs: an engine that never rests is a bug. */
#define MAX_ROUNDS 10000000u

typedef struct MemoryRange {
    uint64_t base;
    uint64_t size;
    uint8_t *bytes;
} MemoryRange;

typedef struct Refusal {
    uint64_t base;
    uint64_t size;
    bool reads;
    bool writes;
} Refusal;

static bool is_refused(FakeHost *host, uint64_t address, uint64_t length,
                       bool write)
{
    for (unsigned i = 0; i < host->refusals->len; i++) {
        Refusal *refusal = &g_array_index(host->refusals, Refusal, i);

        if ((write ? refusal->writes : refusal->reads) &&
            address < refusal->base + refusal->size &&
            refusal->base < address + length) {
            return true;
        }
    }
    return false;
}

static MemoryRange *find_range(FakeHost *host, uint64_t address)
{
    for (unsigned i = 0; i < host->memory->len; i++) {
        MemoryRange *range = &g_array_index(host->memory, MemoryRange, i);

        if (address >= range->base && address - range->base < range->size) {
            return range;
        }
    }
    return NULL;
}

/* NULL unless all of the range is memory and may be touched. */
static uint8_t *find_bytes(FakeHost *host, uint64_t address, uint64_t length,
                           bool write)
{
    MemoryRange *range = find_range(host, address);

    if (!range || length > range->size - (address - range->base) ||
        is_refused(host, address, length, write)) {
        return NULL;
    }
    return range->bytes + (address - range->base);
}

static bool host_dma_read(void *opaque, uint64_t address, void *buffer,
                          size_t length)
{
    FakeHost *host = opaque;
    uint8_t *bytes = find_bytes(host, address, length, false);

    g_assert_cmpuint(length, >, 0);
    g_assert_cmpuint(length, <=, 65536);
    host->reads++;
    if (bytes) {
        memcpy(buffer, bytes, length);
    }
    return bytes != NULL;
}

static bool host_dma_write(void *opaque, uint64_t address, const void *buffer,
                           size_t length)
{
    FakeHost *host = opaque;
    uint8_t *bytes = find_bytes(host, address, length, true);

    g_assert_cmpuint(length, >, 0);
    g_assert_cmpuint(length, <=, 65536);
    host->writes++;
    if (bytes) {
        memcpy(bytes, buffer, length);
    }
    return bytes != NULL;
}

static void *host_dma_map(void *opaque, uint64_t address, size_t *length,
                          bool write)
{
    FakeHost *host = opaque;
    MemoryRange *range = find_range(host, address);
    uint64_t rest;

    g_assert_cmpuint(*length, >, 0);
    if (!range) {
        return NULL;
    }
    rest = range->size - (address - range->base);
    *length = MIN(*length, rest);
    if (is_refused(host, address, *length, write)) {
        return NULL;
    }
    host->mappings++;
    if (write) {
        host->writes++;
    } else {
        host->reads++;
    }
    return range->bytes + (address - range->base);
}

static void host_dma_unmap(void *opaque, void *pointer, size_t length,
                           bool write, size_t touched)
{
    FakeHost *host = opaque;

    g_assert_cmpuint(host->mappings, >, 0);
    g_assert_cmpuint(touched, <=, length);
    host->mappings--;
}

static void host_raise_interrupt(void *opaque, uint32_t vector)
{
    FakeHost *host = opaque;

    g_assert_cmpuint(vector, <, QRDMA_MSIX_VECTORS);
    host->interrupts[vector]++;
}

static void host_schedule(void *opaque)
{
    FakeHost *host = opaque;

    host->scheduled = true;
}

static uint64_t host_clock(void *opaque)
{
    FakeHost *host = opaque;

    return host->now;
}

static void host_set_timer(void *opaque, uint64_t deadline)
{
    FakeHost *host = opaque;

    host->deadline = deadline;
}

static void host_guest_error(void *opaque, const char *message)
{
    FakeHost *host = opaque;

    g_assert_null(strchr(message, '\n'));
    host->guest_errors++;
    g_free(host->last_guest_error);
    host->last_guest_error = g_strdup(message);
}

static void host_trace(void *opaque, const char *name, const char *text)
{
    FakeHost *host = opaque;

    g_assert_true(host->ops.trace_enabled);
    g_ptr_array_add(host->traces, g_strdup_printf("%s: %s", name, text));
}

static void free_range(void *data)
{
    MemoryRange *range = data;

    munmap(range->bytes, range->size);
}

FakeHost *fake_host_new(void)
{
    FakeHost *host = g_new0(FakeHost, 1);

    host->ops = (QrdmaHostOps) {
        .dma_read = host_dma_read,
        .dma_write = host_dma_write,
        .dma_map = host_dma_map,
        .dma_unmap = host_dma_unmap,
        .raise_interrupt = host_raise_interrupt,
        .schedule = host_schedule,
        .clock = host_clock,
        .set_timer = host_set_timer,
        .guest_error = host_guest_error,
        .trace = host_trace,
    };
    host->memory = g_array_new(false, false, sizeof(MemoryRange));
    g_array_set_clear_func(host->memory, free_range);
    host->refusals = g_array_new(false, false, sizeof(Refusal));
    host->traces = g_ptr_array_new_with_free_func(g_free);
    host->deadline = UINT64_MAX;
    return host;
}

void fake_host_free(FakeHost *host)
{
    g_assert_cmpuint(host->mappings, ==, 0);
    g_array_unref(host->memory);
    g_array_unref(host->refusals);
    g_ptr_array_unref(host->traces);
    g_free(host->last_guest_error);
    g_free(host);
}

void fake_host_add_memory(FakeHost *host, uint64_t base, uint64_t size)
{
    /* Not from the heap: pages that no test touches should cost nothing. */
    MemoryRange range = {
        .base = base,
        .size = size,
        .bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
    };

    g_assert_true(range.bytes != MAP_FAILED);
    g_array_append_val(host->memory, range);
}

void *fake_host_pointer(FakeHost *host, uint64_t address, uint64_t size)
{
    MemoryRange *range = find_range(host, address);

    g_assert_nonnull(range);
    g_assert_cmpuint(size, <=, range->size - (address - range->base));
    return range->bytes + (address - range->base);
}

void fake_host_refuse(FakeHost *host, uint64_t base, uint64_t size,
                      bool reads, bool writes)
{
    Refusal refusal = { base, size, reads, writes };

    g_array_append_val(host->refusals, refusal);
}

void fake_host_allow_all(FakeHost *host)
{
    g_array_set_size(host->refusals, 0);
}

bool fake_host_step(FakeHost *host)
{
    bool more;

    if (!host->scheduled) {
        return false;
    }
    host->scheduled = false;
    more = qrdma_engine_run(host->engine);
    g_assert_cmpuint(host->mappings, ==, 0);
    /* More work without having asked for a run would be forgotten work. */
    g_assert_true(!more || host->scheduled);
    return true;
}

void fake_host_run(FakeHost *host)
{
    unsigned rounds = 0;

    while (fake_host_step(host)) {
        g_assert_cmpuint(++rounds, <, MAX_ROUNDS);
    }
}

static void fire_timer(FakeHost *host)
{
    host->now = MAX(host->now, host->deadline);
    host->deadline = UINT64_MAX;
    qrdma_engine_timer(host->engine);
    fake_host_run(host);
}

void fake_host_tick(FakeHost *host, uint64_t nanoseconds)
{
    host->now += nanoseconds;
    if (host->deadline <= host->now) {
        host->deadline = UINT64_MAX;
        qrdma_engine_timer(host->engine);
    }
}

void fake_host_advance(FakeHost *host, uint64_t nanoseconds)
{
    uint64_t end = host->now + nanoseconds;
    unsigned rounds = 0;

    fake_host_run(host);
    while (host->deadline <= end) {
        g_assert_cmpuint(++rounds, <, MAX_ROUNDS);
        fire_timer(host);
    }
    host->now = end;
}

void fake_host_settle(FakeHost *host)
{
    unsigned rounds = 0;

    fake_host_run(host);
    while (host->deadline != UINT64_MAX) {
        g_assert_cmpuint(++rounds, <, MAX_ROUNDS);
        fire_timer(host);
    }
}
