/*
 * qrdma engine fuzzing: commands, well-formed and not, among all else.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "fuzz-objects.h"

/* 64 bytes as they come. */
static void raw(FuzzCard *fuzz)
{
    struct qrdma_command command;

    fuzz_bytes(fuzz->input, &command, sizeof(command));
    fuzz_raw_command(fuzz, &command);
}

/* A form that may be right; what it is about is the input's. */
static void formed(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_command command = {
        .opcode = qrdma_le16(fuzz_below(input, 0x48)),
        .number = qrdma_le32(fuzz_number(input, 0, 64)),
        .input = qrdma_le64(fuzz_address(fuzz)),
        .input_length = qrdma_le32(fuzz_below(input, 26) * 8),
    };

    if (fuzz_below(input, 2)) {
        command.output = qrdma_le64(fuzz_address(fuzz));
        command.output_length = qrdma_le32(fuzz_u16(input));
    }
    fuzz_spoil(input, &command, sizeof(command));
    fuzz_raw_command(fuzz, &command);
}

static void doorbell(FuzzCard *fuzz)
{
    uint32_t counter = fuzz->card->command_producer;

    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_COMMAND_DOORBELL,
                                fuzz_one_in(fuzz->input, 8)
                                ? fuzz_u32(fuzz->input)
                                : counter - fuzz_below(fuzz->input, 4), 4);
}

/* Another command ring, of another size; or the card as it is at first. */
static void begin_again(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    if (fuzz_below(input, 4)) {
        fuzz_reset(fuzz);
        return;
    }
    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_CONTROL,
                                QRDMA_CONTROL_RESET, 4);
    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_COMMAND_RING,
                                fuzz_address(fuzz), 8);
    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_COMMAND_LOG_SIZE,
                                fuzz_number(input, 0, 8), 4);
    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_CONTROL,
                                QRDMA_CONTROL_ENABLE, 4);
    doorbell(fuzz);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const steps[])(FuzzCard *fuzz) = {
        fuzz_any_step, fuzz_object_command, fuzz_object_command,
        fuzz_object_command, fuzz_object_command, fuzz_post_send,
        fuzz_post_receive, fuzz_post_umr, fuzz_table, raw, formed, doorbell,
        begin_again,
    };
    FuzzInput input = { data, size };
    FuzzCard *fuzz = fuzz_card_new(&input);

    while (fuzz_more(fuzz)) {
        steps[fuzz_below(&input, G_N_ELEMENTS(steps))](fuzz);
    }
    fuzz_card_finish(fuzz);
    return 0;
}
