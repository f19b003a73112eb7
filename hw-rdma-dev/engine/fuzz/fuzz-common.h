/*
 * qrdma engine fuzzing: what all targets share.
 *
 * A target is a small machine whose program is the fuzzer's input: bytes choose
 * a step and its arguments, so that valid objects come into being and are then
 * mistreated. It is deterministic: the clock is the fake host's, and nothing is
 * random but the input.
 *
 * To add a target NAME: write fuzz-NAME.c with LLVMFuzzerTestOneInput() as
 *
 *     FuzzInput input = { data, size };
 *     FuzzCard *fuzz = fuzz_card_new(&input);
 *
 *     while (fuzz_more(fuzz)) {
 *         ... a step of its own, or fuzz_any_step(fuzz) ...
 *     }
 *     fuzz_card_finish(fuzz);
 *     return 0;
 *
 * and add it to TARGETS in scripts/lib/qrdma/fuzz_targets.py, from which the
 * builds, scripts/fuzz and the tests take their lists. Inputs to begin with go
 * to seeds/NAME, those of bugs that were repaired to regressions/NAME.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FUZZ_COMMON_H
#define QRDMA_FUZZ_COMMON_H

#include "../tests/test-link.h"

/* ------------------------------------------------------------------- input */

/* Read from the front; after the end, all zero. Little-endian. */
typedef struct FuzzInput {
    const uint8_t *bytes;
    size_t left;
} FuzzInput;

uint8_t fuzz_u8(FuzzInput *input);
uint16_t fuzz_u16(FuzzInput *input);
uint32_t fuzz_u32(FuzzInput *input);
uint64_t fuzz_u64(FuzzInput *input);
void fuzz_bytes(FuzzInput *input, void *bytes, size_t length);

/* 0..limit-1, of one byte; limit is at most 256. */
uint8_t fuzz_below(FuzzInput *input, unsigned limit);

/* True for one byte in n. */
bool fuzz_one_in(FuzzInput *input, unsigned n);

/* Small mostly, anything else now and then. */
uint32_t fuzz_number(FuzzInput *input, uint32_t first, unsigned count);

/* Overwrite some of the bytes now and then: what was valid may not be. */
void fuzz_spoil(FuzzInput *input, void *bytes, size_t length);

/* -------------------------------------------------------------------- card */

/* Guest memory for payload and for rings that the input makes. */
#define FUZZ_ARENA_SIZE (1u << 20)

/* How the host maps memory for the engine. */
typedef enum FuzzMapping {
    FUZZ_MAP_EXACT,             /* a copy of just these bytes */
    FUZZ_MAP_SHORT,             /* same, less than was asked for */
    FUZZ_MAP_DIRECT,            /* the memory itself */
    FUZZ_MAP_NONE,              /* cannot be mapped: the engine copies */
    FUZZ_MAPPINGS
} FuzzMapping;

/* Memory that changes while the card reads: after so many reads more. */
typedef struct FuzzChange {
    unsigned reads;             /* 0: none is waiting */
    uint64_t address;           /* as last read where it is 0 */
    uint64_t bytes;             /* 8 of them, at an offset of at most 63 */
    uint8_t offset;
} FuzzChange;

/*
 * A card with queues as of link_new() and a UMR queue, all in RTS, in a host
 * that watches what the engine does.
 */
typedef struct FuzzCard {
    FuzzInput *input;
    TestLink *link;
    TestCard *card;
    QrdmaEngine *engine;
    FakeHost *host;
    QrdmaConfig config;
    uint64_t arena;             /* FUZZ_ARENA_SIZE bytes */
    uint64_t hmc;               /* memory of SD 0 */
    uint64_t inputs;            /* of commands, one for each in the ring */
    bool traced;                /* trace events and timeline are checked */
    bool may_inject;            /* faults were, or could have been, armed */

    /*
     * Table memory may have been written by others than the card's UMRs, or the
     * card may have been kept from reading or writing it.
     */
    bool tables_touched;

    FuzzMapping mapping;
    FuzzChange change;
    bool no_payload;            /* DMA to the arena fails */
    bool no_dma;                /* all of it fails */
    uint8_t end;                /* how the input ends: see fuzz-end.c */
    bool quiet;                 /* the card must not do anything */
    uint64_t moved;             /* bytes, to bound the time of an input */
    QrdmaHostOps plain;         /* the fake host's own operations */
} FuzzCard;

/* Configuration and way of mapping come from the input. */
FuzzCard *fuzz_card_new(FuzzInput *input);

void fuzz_card_free(FuzzCard *fuzz);

/*
 * fuzz-end.c: let everything come to its end, or not, as the input has it; then
 * see that nothing was forgotten, that the card can be reset, is then as a new
 * one and does nothing any more, and free all of it. Aborts if not.
 */
void fuzz_card_finish(FuzzCard *fuzz);

bool fuzz_more(const FuzzCard *fuzz);

/* Guest memory is about to be written by the input. */
void fuzz_touch(FuzzCard *fuzz, uint64_t address, size_t length);

/* Have what the engine tells checked, if it is wanted, and printed. */
void fuzz_trace(FakeHost *host, bool wanted);

/* Something that must never be has been. */
void fuzz_fail(const char *what) G_GNUC_NORETURN;

/* ------------------------------------------------------------------- steps */

/*
 * A bus address: in the arena, the table memory or a ring mostly; anything
 * otherwise.
 */
uint64_t fuzz_address(FuzzCard *fuzz);

/* A PBLE for one of a few places, well-formed or not. */
uint64_t fuzz_pble(FuzzCard *fuzz);

/* Run until there is nothing to do now, or for a few rounds. */
void fuzz_run(FuzzCard *fuzz);
void fuzz_run_some(FuzzCard *fuzz, unsigned rounds);

/*
 * Put a command into the ring without running; input_length bytes go into a
 * buffer of its own. Runs first if the ring is full; no-op if it stays full.
 */
void fuzz_command(FuzzCard *fuzz, uint16_t opcode, uint32_t number,
                  const void *input, uint32_t input_length,
                  uint32_t output_length);

/* Any entry at all into the command ring. */
void fuzz_raw_command(FuzzCard *fuzz, const struct qrdma_command *command);

/* Reset, enable, and nothing else: a card without objects. */
void fuzz_reset(FuzzCard *fuzz);

/*
 * One step of those that make sense in every target: running, time, doorbells,
 * memory that changes or refuses, reading completions, registers, faults.
 */
void fuzz_any_step(FuzzCard *fuzz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* QRDMA_FUZZ_COMMON_H */
