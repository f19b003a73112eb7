/*
 * qrdma engine: payload from one place on the bus to another.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "engine-internal.h"
#include "queues-internal.h"

/* Where memory cannot be mapped, this much goes through a buffer at a time. */
#define BOUNCE_SIZE 4096

/*
 * While an injected fault waits for such transfers, all go through
 * qrdma_dma_read() and qrdma_dma_write(), which ask it.
 */
static void *map(QrdmaEngine *engine, uint64_t address, size_t *length,
                 bool write)
{
    if (qrdma_faults_of(engine->faults, write ? QRDMA_FAULT_DMA_WRITE
                                              : QRDMA_FAULT_DMA_READ)) {
        return NULL;
    }
    return engine->ops->dma_map(engine->opaque, address, length, write);
}

static void unmap(QrdmaEngine *engine, void *pointer, size_t length, bool write,
                  size_t touched)
{
    engine->ops->dma_unmap(engine->opaque, pointer, length, write, touched);
}

/*
 * Where a source is: mapped, or already in the card. Its first bytes, at most
 * *length of them, are to be had at *bytes.
 */
typedef struct Source {
    const uint8_t *inline_data; /* NULL: memory */
    uint64_t address;
} Source;

/*
 * Copy up to *length bytes into `to`, which is card memory or mapped guest
 * memory; *length becomes what was copied. memmove, because a program may send
 * from a buffer into itself.
 */
static bool copy_from(QrdmaEngine *engine, const Source *source,
                      uint64_t offset, void *to, size_t *length)
{
    uint64_t address = source->address + offset;
    size_t mapped = *length;
    void *from;

    if (source->inline_data) {
        memcpy(to, source->inline_data + offset, *length);
        return true;
    }
    from = map(engine, address, &mapped, false);
    if (!from) {
        return qrdma_dma_read(engine, address, to, *length);
    }
    memmove(to, from, mapped);
    unmap(engine, from, mapped, false, 0);
    *length = mapped;
    return true;
}

typedef enum MoveResult {
    MOVED,
    SOURCE_FAILED,
    DESTINATION_FAILED,
} MoveResult;

/* Move up to *length bytes; *length becomes what was moved, at least 1. */
static MoveResult move_some(QrdmaEngine *engine, const Source *source,
                            uint64_t offset, uint64_t to, size_t *length)
{
    uint8_t bounce[BOUNCE_SIZE];
    size_t mapped = *length;
    void *pointer = map(engine, to, &mapped, true);

    if (pointer) {
        size_t copied = mapped;
        bool good = copy_from(engine, source, offset, pointer, &copied);

        /* A read that failed may have put some of it there. */
        unmap(engine, pointer, mapped, true, copied);
        *length = copied;
        return good ? MOVED : SOURCE_FAILED;
    }
    *length = MIN(*length, sizeof(bounce));
    if (!copy_from(engine, source, offset, bounce, length)) {
        return SOURCE_FAILED;
    }
    if (!qrdma_dma_write(engine, to, bounce, *length)) {
        return DESTINATION_FAILED;
    }
    return MOVED;
}

bool qrdma_packet_move(QrdmaEngine *engine, QrdmaPacket *packet,
                       QrdmaSide **failed)
{
    Source source = {
        .inline_data = packet->inline_data,
        .address = packet->source.access.bus_address,
    };
    uint64_t to = packet->destination.access.bus_address;
    uint32_t moved = 0;

    while (moved < packet->length) {
        size_t length = packet->length - moved;

        switch (move_some(engine, &source, moved, to + moved, &length)) {
        case MOVED:
            moved += length;
            break;
        case SOURCE_FAILED:
            *failed = &packet->source;
            return false;
        case DESTINATION_FAILED:
            *failed = &packet->destination;
            return false;
        }
    }
    return true;
}

/*
 * Guest CPUs work on the same word: it has to be one atomic operation of the
 * host. The guest's words are little-endian.
 */
static uint64_t operate(uint64_t *word, const QrdmaSendRequest *request)
{
    uint64_t old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    uint64_t value;

    do {
        value = qrdma_le64(old);
        if (request->opcode == QRDMA_SEND_OP_FETCH_ADD) {
            value += request->swap_or_add;
        } else if (value == request->compare) {
            value = request->swap_or_add;
        }
    } while (!__atomic_compare_exchange_n(word, &old, qrdma_le64(value), false,
                                          __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return old;
}

bool qrdma_packet_atomic(QrdmaEngine *engine, QrdmaPacket *packet,
                         const QrdmaSendRequest *request, uint8_t result[8])
{
    uint64_t address = packet->destination.access.bus_address;
    size_t length = sizeof(uint64_t);
    void *pointer;
    bool good;

    if (qrdma_dma_is_faulty(engine, false, address, length) ||
        qrdma_dma_is_faulty(engine, true, address, length)) {
        return false;
    }
    pointer = engine->ops->dma_map(engine->opaque, address, &length, true);
    if (!pointer) {
        return false;
    }
    good = length == sizeof(uint64_t) &&
           (uintptr_t)pointer % sizeof(uint64_t) == 0;
    if (good) {
        uint64_t old = operate(pointer, request);

        memcpy(result, &old, sizeof(old));
    }
    unmap(engine, pointer, length, true, good ? length : 0);
    return good;
}
