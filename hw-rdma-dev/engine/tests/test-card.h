/*
 * qrdma engine tests: a card in a fake host, and the least driver for it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_TEST_CARD_H
#define QRDMA_TEST_CARD_H

#include <glib.h>

#include "../engine-internal.h"
#include "fake-host.h"

/* Where test memory is, and how much; card_alloc() takes from it. */
#define CARD_MEMORY_BASE 0x10000000ull
#define CARD_MEMORY_SIZE (64ull << 20)

#define CARD_COMMAND_VECTOR 31

typedef struct TestCard {
    FakeHost *host;
    QrdmaEngine *engine;
    uint64_t next_free;
    uint64_t command_ring;
    uint32_t command_size;
    uint32_t command_producer;
    uint64_t command_buffer;    /* one page for input, one for output */
} TestCard;

/* Configuration as a device without properties would have it. */
QrdmaConfig card_default_config(void);

/* NULL: default configuration. The card is enabled and has run. */
TestCard *card_new(const QrdmaConfig *config);

/* Same, but registers are as after reset. */
TestCard *card_new_disabled(const QrdmaConfig *config);
void card_free(TestCard *card);

/* Write the command queue registers and enable; the card must be ready. */
void card_enable(TestCard *card);

/* Zeroed test memory; alignment is a power of two. Never given back. */
uint64_t card_alloc(TestCard *card, uint64_t size, uint64_t alignment);
void *card_pointer(TestCard *card, uint64_t address, uint64_t size);

/*
 * Save the card's state, have it go, and go on with another that has loaded the
 * state: card->engine is that one. Saving must not depend on what was before:
 * the same state is saved twice, and once more by the new card.
 */
void card_migrate(TestCard *card);

/* All parts, as they are saved; card_free_saved() frees them. */
void card_save(TestCard *card, QrdmaSaved saved[QRDMA_PARTS]);
void card_free_saved(QrdmaSaved saved[QRDMA_PARTS]);

/*
 * Put a command into the ring and ring, without running. Returns the bus
 * address of the entry.
 */
uint64_t card_post_command(TestCard *card, const struct qrdma_command *command);

/*
 * Carry out a command to its end (timers fire if it waits). input may be NULL
 * when input_length is 0, output likewise.
 */
enum qrdma_status card_command(TestCard *card, uint16_t opcode, uint32_t number,
                               const void *input, uint32_t input_length,
                               void *output, uint32_t output_length);

/* Same, and it must succeed. */
void card_must(TestCard *card, uint16_t opcode, uint32_t number,
               const void *input, uint32_t input_length);

/* Back SD `number` with fresh memory; returns the bus address (direct). */
uint64_t card_add_direct_sd(TestCard *card, uint32_t number);

/* Paged: pages are fresh and not in order. */
void card_add_paged_sd(TestCard *card, uint32_t number);

/* CPU's view of a backed PBLE: little-endian. */
uint64_t *card_pble(TestCard *card, uint64_t index);

/* Arm a fault; at and count are 1 where they are not given. */
void card_arm(TestCard *card, QrdmaFault fault);

/* Refuse UMRs number at..at+count-1 from now with QRDMA_STATUS_INJECTED. */
void card_refuse_umrs(TestCard *card, uint32_t at, uint32_t count);

/* Faults that are armed and not spent. */
unsigned card_faults(TestCard *card);

uint32_t card_register(TestCard *card, uint64_t offset);

#endif /* QRDMA_TEST_CARD_H */
