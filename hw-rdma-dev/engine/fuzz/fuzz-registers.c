/*
 * qrdma engine fuzzing: registers and doorbells, at every offset and width.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "fuzz-common.h"

/* The windows of registers, and doorbells besides. */
static const uint16_t windows[] = { 0x000, 0x400, 0x440, 0x500, 0x540, 0x580 };

static uint64_t choose_offset(FuzzInput *input)
{
    uint8_t choice = fuzz_u8(input);

    if (choice >= 0xf0) {
        return fuzz_u16(input);
    }
    return windows[choice >> 4 < G_N_ELEMENTS(windows) ? choice >> 4 : 0] +
           (choice & 15) * 4 + (choice >= 0xe0);
}

static uint64_t choose_value(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    switch (fuzz_below(input, 4)) {
    case 0:
        return fuzz_u64(input);
    case 1:
        return fuzz_address(fuzz);
    default:
        return fuzz_u8(input);
    }
}

static void read_register(FuzzCard *fuzz)
{
    uint64_t offset = choose_offset(fuzz->input);
    unsigned size = 1u << fuzz_below(fuzz->input, 4);
    uint64_t value = qrdma_engine_register_read(fuzz->engine, offset, size);

    if (size < 8 && value >> (8 * size)) {
        fuzz_fail("a register shows more bits than were read");
    }
}

static void write_register(FuzzCard *fuzz)
{
    uint64_t offset = choose_offset(fuzz->input);
    unsigned size = 1u << fuzz_below(fuzz->input, 4);

    qrdma_engine_register_write(fuzz->engine, offset, choose_value(fuzz),
                                size);
}

static void ring(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint32_t page = fuzz_number(input, 0, 8) % QRDMA_DOORBELL_PAGES;
    uint32_t offset = fuzz_one_in(input, 8)
                      ? fuzz_u16(input) % QRDMA_DOORBELL_PAGE_SIZE
                      : fuzz_below(input, 4) * 8u;
    uint64_t low = fuzz_one_in(input, 8) ? fuzz_u32(input)
                                         : fuzz_below(input, 0x31);
    uint64_t counter = fuzz_number(input, 0, 32);
    unsigned size = fuzz_one_in(input, 8) ? 1u << fuzz_below(input, 4) : 8;

    qrdma_engine_doorbell(fuzz->engine, page, offset, counter << 32 | low,
                          size);
}

/* So that doorbells and counters have something to count. */
static void post(FuzzCard *fuzz)
{
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };

    if (fuzz_below(fuzz->input, 2)) {
        link_post_send(fuzz->link, &fuzz->link->a, &nop);
    } else {
        fuzz_command(fuzz, fuzz_below(fuzz->input, 3), 0, NULL, 0, 256);
    }
}

static void enable(FuzzCard *fuzz)
{
    fuzz_reset(fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const steps[])(FuzzCard *fuzz) = {
        fuzz_any_step, read_register, write_register, write_register, ring,
        ring, post, enable,
    };
    FuzzInput input = { data, size };
    FuzzCard *fuzz = fuzz_card_new(&input);

    while (fuzz_more(fuzz)) {
        steps[fuzz_below(&input, G_N_ELEMENTS(steps))](fuzz);
    }
    fuzz_card_finish(fuzz);
    return 0;
}
