/*
 * qrdma engine fuzzing: steps that make sense in every target.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-common.h"

uint64_t fuzz_address(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    switch (fuzz_below(input, 8)) {
    case 0:
        return fuzz_u64(input);
    case 1:
        return fuzz->hmc + (fuzz_u16(input) & ~7u);
    case 2:
        return CARD_MEMORY_BASE + fuzz_u32(input) % CARD_MEMORY_SIZE;
    case 3:
        return CARD_MEMORY_BASE + CARD_MEMORY_SIZE - fuzz_u8(input);
    case 4:
        return fuzz->arena + fuzz_u16(input);
    default:
        return fuzz->arena + fuzz_below(input, 64) * LINK_PAGE;
    }
}

uint64_t fuzz_pble(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint8_t choice = fuzz_u8(input);

    if (choice >= 0xe0) {
        return choice & 1 ? fuzz_u64(input)
                          : QRDMA_ROOT_VALID | fuzz_u16(input);
    }
    return (fuzz->arena + (uint64_t)(choice >> 2) * LINK_PAGE) |
           (choice & QRDMA_PBLE_PRESENT);
}

/* ---------------------------------------------------------------- commands */

static bool ring_is_full(FuzzCard *fuzz)
{
    uint32_t consumer = card_register(fuzz->card, QRDMA_REG_COMMAND_CONSUMER);

    return fuzz->card->command_producer - consumer >= fuzz->card->command_size;
}

static bool make_room(FuzzCard *fuzz)
{
    if (ring_is_full(fuzz)) {
        fuzz_run(fuzz);
    }
    return !ring_is_full(fuzz);
}

void fuzz_raw_command(FuzzCard *fuzz, const struct qrdma_command *command)
{
    fuzz->tables_touched = true;
    if (make_room(fuzz)) {
        card_post_command(fuzz->card, command);
    }
}

/* New objects may have the tables of others, or their rings there. */
static bool can_share_tables(uint16_t opcode)
{
    switch (opcode) {
    case QRDMA_CMD_ADD_SD:
    case QRDMA_CMD_REMOVE_SD:
    case QRDMA_CMD_CREATE_EQ:
    case QRDMA_CMD_CREATE_CQ:
    case QRDMA_CMD_CREATE_QP:
    case QRDMA_CMD_CREATE_MKEY:
        return true;
    default:
        return false;
    }
}

void fuzz_command(FuzzCard *fuzz, uint16_t opcode, uint32_t number,
                  const void *input, uint32_t input_length,
                  uint32_t output_length)
{
    uint32_t slot;
    uint64_t buffer;
    struct qrdma_command command;

    if (!make_room(fuzz)) {
        return;
    }
    fuzz->tables_touched |= can_share_tables(opcode);
    slot = fuzz->card->command_producer & (fuzz->card->command_size - 1);
    buffer = fuzz->inputs + slot * QRDMA_COMMAND_MAX_LENGTH;
    if (input_length) {
        memcpy(card_pointer(fuzz->card, buffer, input_length), input,
               input_length);
    }
    command = (struct qrdma_command) {
        .opcode = qrdma_le16(opcode),
        .number = qrdma_le32(number),
        .input = qrdma_le64(input_length ? buffer : 0),
        .output = qrdma_le64(output_length ? fuzz->arena : 0),
        .input_length = qrdma_le32(input_length),
        .output_length = qrdma_le32(output_length),
    };
    card_post_command(fuzz->card, &command);
}

void fuzz_reset(FuzzCard *fuzz)
{
    qrdma_engine_register_write(fuzz->engine, QRDMA_REG_CONTROL,
                                QRDMA_CONTROL_RESET, 4);
    card_enable(fuzz->card);
}

/* ------------------------------------------------------------------- steps */

static void step_time(FuzzCard *fuzz)
{
    fake_host_tick(fuzz->host, 1ull << fuzz_below(fuzz->input, 40));
}

static void step_next_timer(FuzzCard *fuzz)
{
    FakeHost *host = fuzz->host;

    if (host->deadline != UINT64_MAX) {
        fake_host_tick(host, host->deadline > host->now ?
                       host->deadline - host->now : 0);
    }
}

static void step_doorbell(FuzzCard *fuzz)
{
    static const uint32_t numbers[] = {
        LINK_QPN_A, LINK_QPN_B, LINK_UMR_QPN, 0, 1, 2, 3,
    };
    static const uint32_t pages[] = { LINK_PAGE_A, LINK_PAGE_B, 0 };
    FuzzInput *input = fuzz->input;
    uint32_t number = numbers[fuzz_below(input, G_N_ELEMENTS(numbers))];

    link_doorbell(fuzz->link, pages[fuzz_below(input, G_N_ELEMENTS(pages))],
                  fuzz_below(input, 4) * 8,
                  number | (uint32_t)fuzz_below(input, 4) << 30,
                  fuzz_number(input, 0, 64));
}

static void step_memory(FuzzCard *fuzz)
{
    uint64_t bytes = fuzz_u64(fuzz->input);
    uint64_t offset = fuzz_address(fuzz) - CARD_MEMORY_BASE;

    if (offset <= CARD_MEMORY_SIZE - sizeof(bytes)) {
        fuzz_touch(fuzz, CARD_MEMORY_BASE + offset, sizeof(bytes));
        memcpy(card_pointer(fuzz->card, CARD_MEMORY_BASE + offset,
                            sizeof(bytes)), &bytes, sizeof(bytes));
    }
}

static void step_change(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    fuzz->change = (FuzzChange) {
        .reads = 1 + fuzz_below(input, 16),
        .address = fuzz_one_in(input, 4) ? fuzz_address(fuzz) : 0,
        .bytes = fuzz_u64(input),
        .offset = fuzz_below(input, 64),
    };
}

static void step_refuse(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint8_t choice = fuzz_u8(input);

    if (!(choice & 3)) {
        fake_host_allow_all(fuzz->host);
    } else if (fuzz->host->refusals->len < 16) {
        fuzz->tables_touched = true;
        fake_host_refuse(fuzz->host, fuzz_address(fuzz),
                         1u << fuzz_below(input, 16), choice & 1, choice & 2);
    }
}

static void step_poll(FuzzCard *fuzz)
{
    TestReader *readers[] = {
        &fuzz->link->cq_a, &fuzz->link->cq_b, &fuzz->link->cq_umr,
    };
    struct qrdma_cqe cqe;
    unsigned which = fuzz_below(fuzz->input, G_N_ELEMENTS(readers));

    while (link_poll(fuzz->link, readers[which], &cqe)) {
        continue;
    }
    link_arm(fuzz->link, readers[which], fuzz_below(fuzz->input, 3));
}

/* As link_next_event(), but nothing runs. */
static void step_events(FuzzCard *fuzz)
{
    TestReader *eq = &fuzz->link->eq;

    eq->consumer += fuzz_below(fuzz->input, 8);
    link_arm(fuzz->link, eq, fuzz_below(fuzz->input, 2));
}

static void step_register(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    static const uint16_t bases[] = { 0, 0x400, 0x500, 0x580 };
    uint64_t offset = bases[fuzz_below(input, G_N_ELEMENTS(bases))] +
                      fuzz_below(input, 32) * 4;
    unsigned size = fuzz_one_in(input, 3) ? 8 : 4;

    if (offset == QRDMA_REG_CONTROL) {
        return;
    }
    if (fuzz_below(input, 2)) {
        qrdma_engine_register_write(fuzz->engine, offset, fuzz_u8(input),
                                    size);
    } else {
        qrdma_engine_register_read(fuzz->engine, offset, size);
    }
}

static void step_fault(FuzzCard *fuzz)
{
    static const uint32_t points[] = {
        QRDMA_FAULT_POINT_BEFORE, QRDMA_FAULT_POINT_AFTER, 1, 2, 7,
    };
    FuzzInput *input = fuzz->input;
    QrdmaFault fault = {
        .target = fuzz_below(input, 8),
        .action = fuzz_below(input, 9),
        .at = 1 + fuzz_below(input, 4),
        .count = 1 + fuzz_below(input, 4),
        .index = fuzz_one_in(input, 8) ? 0x100 + fuzz_below(input, 8) : 0,
        .opcode = fuzz_one_in(input, 8) ? fuzz_below(input, 0x48) : 0,
    };

    if (fault.action == QRDMA_FAULT_FATAL) {
        fault.point = points[fuzz_below(input, G_N_ELEMENTS(points))];
    }
    if (fault.action == QRDMA_FAULT_FAIL) {
        fault.status = fuzz_one_in(input, 4) ? fuzz_u8(input) : 0;
    }
    if (fault.action == QRDMA_FAULT_DELAY || fault.action == QRDMA_FAULT_LATE ||
        fault.action == QRDMA_FAULT_DUPLICATE) {
        fault.delay = fuzz_one_in(input, 2) ? fuzz_u16(input) : 0;
    }
    if (fault.target >= QRDMA_FAULT_DMA_READ) {
        fault.index = 0;
        fault.opcode = 0;
        fault.address = fuzz_address(fuzz);
        fault.length = 1u << fuzz_below(input, 24);
    }
    fuzz->may_inject = true;
    if (fuzz_one_in(input, 16)) {
        qrdma_engine_fault_clear(fuzz->engine);
    }
    qrdma_engine_fault_arm(fuzz->engine, &fault);
}

static void step_watch(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    switch (fuzz_below(input, 4)) {
    case 0:
        qrdma_engine_audit_clear(fuzz->engine);
        break;
    case 1:
        qrdma_engine_audit_watch(fuzz->engine, fuzz_number(input, 0x100, 4));
        break;
    case 2:
        qrdma_engine_audit_watch(fuzz->engine, 0);
        break;
    default:
        qrdma_engine_audit_finding(fuzz->engine, fuzz_below(input, 4));
    }
}

static void step_run(FuzzCard *fuzz)
{
    fuzz_run(fuzz);
}

static void step_run_some(FuzzCard *fuzz)
{
    fuzz_run_some(fuzz, 1 + fuzz_below(fuzz->input, 4));
}

void fuzz_any_step(FuzzCard *fuzz)
{
    static void (*const steps[])(FuzzCard *fuzz) = {
        step_run, step_run_some, step_time, step_next_timer, step_doorbell,
        step_memory, step_change, step_refuse, step_poll, step_events,
        step_register, step_fault, step_watch,
    };

    steps[fuzz_below(fuzz->input, G_N_ELEMENTS(steps))](fuzz);
}
