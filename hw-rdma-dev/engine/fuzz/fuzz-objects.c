/*
 * qrdma engine fuzzing: commands and objects that are nearly right.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-objects.h"

/* Where regions begin: low, page aligned or not, and at the very end. */
static const uint64_t region_starts[] = {
    0x10000000, 0x10000200, 0x7f0000000000, 0x7f0000000e00,
    0xfffffffffff00000, 0,
};

/* ------------------------------------------------------------------ parts */

struct qrdma_ring fuzz_ring(FuzzCard *fuzz, unsigned log_entries,
                            unsigned log_stride)
{
    FuzzInput *input = fuzz->input;
    uint64_t place = fuzz->arena + (uint64_t)fuzz_below(input, 64) * LINK_PAGE;
    struct qrdma_ring ring = link_ring(place, log_entries, log_stride);

    if (fuzz_one_in(input, 4)) {
        ring.level = 1;
        ring.base = 0;
        ring.pble_index = qrdma_le32(fuzz_below(input, 32) * 8u);
    }
    return ring;
}

uint32_t fuzz_key(FuzzCard *fuzz)
{
    uint32_t index = fuzz_number(fuzz->input, FUZZ_FIRST_MKEY, FUZZ_MKEYS);

    return index << 8 | (fuzz_one_in(fuzz->input, 16) ? fuzz_u8(fuzz->input)
                                                      : REGION_VARIANT);
}

static uint64_t region_start(FuzzCard *fuzz)
{
    return region_starts[fuzz_below(fuzz->input,
                                    G_N_ELEMENTS(region_starts))];
}

uint64_t fuzz_region_address(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint64_t start = region_start(fuzz);

    switch (fuzz_below(input, 4)) {
    case 0:
        return start + fuzz_u16(input);
    case 1:
        return start + ((uint64_t)fuzz_u8(input) << 12);
    case 2:
        return fuzz_address(fuzz);
    default:
        return start + 8 * fuzz_u8(input);
    }
}

/* Pages of 4 KiB mostly, and lengths of some pages. */
static QrdmaMkc block_table(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    unsigned level = fuzz_below(input, 3);
    unsigned log_page_size = fuzz_one_in(input, 3)
                             ? 12 + fuzz_below(input, 29) : 12;
    uint64_t length = fuzz_one_in(input, 4) ? fuzz_u32(input)
                                            : fuzz_u16(input) + 1;
    QrdmaMkc mkc = region_mkc(region_start(fuzz), length ?: 1, log_page_size,
                              level, 0);

    if (level == 0) {
        mkc.base = fuzz_pble(fuzz) & ~((1ull << log_page_size) - 4096);
    } else {
        mkc.pble_index = fuzz_below(input, 32) * QRDMA_PBLES_PER_UNIT;
        mkc.capacity += fuzz_below(input, 3) * 8;
    }
    return mkc;
}

struct qrdma_mkc fuzz_mkc(FuzzCard *fuzz)
{
    static const uint32_t flags[] = {
        0, 0, QRDMA_MKEY_ON_DEMAND, QRDMA_MKEY_FREE,
        QRDMA_MKEY_RELAXED_ORDERING,
    };
    FuzzInput *input = fuzz->input;
    struct qrdma_mkc wire;
    QrdmaMkc mkc;

    mkc = fuzz_one_in(input, 8) ? region_all_memory() : block_table(fuzz);
    mkc.flags |= flags[fuzz_below(input, G_N_ELEMENTS(flags))];
    if (fuzz_one_in(input, 8)) {
        mkc.flags &= ~fuzz_u8(input);
    }
    if (fuzz_one_in(input, 8)) {
        mkc.qpn = LINK_QPN_A;
    }
    qrdma_mkc_encode(&mkc, &wire);
    fuzz_spoil(input, &wire, sizeof(wire));
    return wire;
}

void fuzz_table(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint32_t first = fuzz_one_in(input, 4) ? fuzz_u16(input)
                                           : fuzz_below(input, 32) * 8u;
    unsigned count = 1 + fuzz_below(input, 16);
    uint64_t *entries = card_pointer(fuzz->card, fuzz->hmc + first * 8,
                                     count * sizeof(uint64_t));

    fuzz->tables_touched = true;
    for (unsigned i = 0; i < count; i++) {
        entries[i] = qrdma_le64(fuzz_pble(fuzz));
    }
}

/* --------------------------------------------------------------- commands */

static void create_eq(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_eqc in = {
        .ring = fuzz_ring(fuzz, 3 + fuzz_below(input, 3), QRDMA_EQE_LOG_SIZE),
        .vector = qrdma_le32(fuzz_below(input, 33)),
    };

    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_CREATE_EQ, fuzz_number(input, 0, 4), &in,
                 sizeof(in), 0);
}

static void create_cq(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_cqc in = {
        .ring = fuzz_ring(fuzz, fuzz_below(input, 7), QRDMA_CQE_LOG_SIZE),
        .eqn = qrdma_le32(fuzz_below(input, 3)),
        .doorbell_page = qrdma_le32(fuzz_below(input, 8)),
    };

    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_CREATE_CQ, fuzz_number(input, 1, 6), &in,
                 sizeof(in), 0);
}

static uint32_t some_qpn(FuzzCard *fuzz)
{
    static const uint32_t numbers[] = {
        LINK_QPN_A, LINK_QPN_B, LINK_UMR_QPN, LINK_QPN_A + 1, LINK_QPN_B + 1,
    };
    uint8_t choice = fuzz_u8(fuzz->input);

    return choice >= 0xf8 ? fuzz_u32(fuzz->input)
                          : numbers[choice % G_N_ELEMENTS(numbers)];
}

static void create_qp(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    bool is_umr = fuzz_one_in(input, 4);
    struct qrdma_qpc in = {
        .type = is_umr ? QRDMA_QP_UMR : QRDMA_QP_RC,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(fuzz_number(input, 1, 4)),
        .receive_cqn = qrdma_le32(fuzz_number(input, 1, 4)),
        .doorbell_page = qrdma_le32(is_umr ? 0 : fuzz_below(input, 8)),
    };

    if (is_umr) {
        in.receive_cqn = in.send_cqn;
    }
    in.send_ring = fuzz_ring(fuzz, fuzz_below(input, 5), is_umr
                             ? QRDMA_UMR_WQE_LOG_SIZE
                             : 7 + fuzz_below(input, 3));
    if (!is_umr) {
        in.receive_ring = fuzz_ring(fuzz, fuzz_below(input, 5),
                                    5 + fuzz_below(input, 5));
    }
    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_CREATE_QP, some_qpn(fuzz), &in, sizeof(in),
                 0);
}

static void modify_qp(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_modify_qp in = {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE),
    };

    switch (fuzz_below(input, 5)) {
    case 0:
        in = link_to_init();
        break;
    case 1:
        in = link_to_rtr(some_qpn(fuzz));
        break;
    case 2:
        in = link_to_rts();
        break;
    default:
        in.context.state = fuzz_below(input, 6);
    }
    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_MODIFY_QP, some_qpn(fuzz), &in, sizeof(in),
                 0);
}

/* One step further for two QPs that are to be a pair. */
static void connect_qps(FuzzCard *fuzz)
{
    uint32_t one = some_qpn(fuzz), other = some_qpn(fuzz);

    for (unsigned i = 0; i < 2; i++) {
        struct qrdma_modify_qp steps[] = {
            { .mask = qrdma_le64(QRDMA_QP_MASK_STATE) },
            link_to_init(), link_to_rtr(i ? one : other), link_to_rts(),
        };

        for (unsigned n = 0; n < G_N_ELEMENTS(steps); n++) {
            fuzz_command(fuzz, QRDMA_CMD_MODIFY_QP, i ? other : one, &steps[n],
                         sizeof(steps[n]), 0);
        }
    }
}

/* Events and numbers alone. */
static void modify_queue(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    if (fuzz_below(input, 2)) {
        struct qrdma_eqc in = { .vector = qrdma_le32(fuzz_below(input, 40)) };

        fuzz_spoil(input, &in, sizeof(in));
        fuzz_command(fuzz, QRDMA_CMD_MODIFY_EQ, fuzz_number(input, 0, 4), &in,
                     sizeof(in), 0);
    } else {
        struct qrdma_cqc in = { .eqn = qrdma_le32(fuzz_number(input, 0, 4)) };

        fuzz_spoil(input, &in, sizeof(in));
        fuzz_command(fuzz, QRDMA_CMD_MODIFY_CQ, fuzz_number(input, 1, 6), &in,
                     sizeof(in), 0);
    }
}

static void query(FuzzCard *fuzz)
{
    static const uint16_t opcodes[] = {
        QRDMA_CMD_NOP, QRDMA_CMD_QUERY_DEVICE, QRDMA_CMD_READ_COUNTERS,
        QRDMA_CMD_QUERY_EQ, QRDMA_CMD_QUERY_CQ, QRDMA_CMD_QUERY_QP,
        QRDMA_CMD_QUERY_MKEY,
    };
    FuzzInput *input = fuzz->input;
    uint16_t opcode = opcodes[fuzz_below(input, G_N_ELEMENTS(opcodes))];
    uint32_t number = fuzz_number(input, 0, 4);

    if (opcode == QRDMA_CMD_QUERY_QP) {
        number = some_qpn(fuzz);
    } else if (opcode == QRDMA_CMD_QUERY_MKEY) {
        number = fuzz_number(input, FUZZ_FIRST_MKEY, FUZZ_MKEYS);
    }
    fuzz_command(fuzz, opcode, number, NULL, 0,
                 fuzz_below(input, 8) ? 256 : QRDMA_COMMAND_MAX_LENGTH);
}

static void destroy(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;

    switch (fuzz_below(input, 4)) {
    case 0:
        fuzz_command(fuzz, QRDMA_CMD_DESTROY_EQ, fuzz_number(input, 0, 4),
                     NULL, 0, 0);
        break;
    case 1:
        fuzz_command(fuzz, QRDMA_CMD_DESTROY_CQ, fuzz_number(input, 1, 6),
                     NULL, 0, 0);
        break;
    default:
        fuzz_command(fuzz, QRDMA_CMD_DESTROY_QP, some_qpn(fuzz), NULL, 0, 0);
    }
}

/* Table memory, in one piece or by a list of pages in the arena. */
static void segment(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint32_t number = fuzz_number(input, 0, 4);
    struct qrdma_sd in = {
        .type = qrdma_le32(1 + fuzz_below(input, 2)),
        .address = qrdma_le64(fuzz_one_in(input, 4) ? fuzz_address(fuzz)
                                                    : fuzz->arena),
    };

    if (fuzz_below(input, 2)) {
        fuzz_command(fuzz, QRDMA_CMD_REMOVE_SD, number, NULL, 0, 0);
        return;
    }
    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_ADD_SD, number, &in, sizeof(in), 0);
}

static void set_gid(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_gid in = { .vlan = 0xffff, .type = 1 };

    in.gid[0] = 0xfe;
    in.gid[1] = 0x80;
    in.gid[15] = fuzz_below(input, 3);
    if (fuzz_one_in(input, 4)) {
        memset(&in, 0, sizeof(in));
    }
    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_SET_GID, fuzz_number(input, 0, 3), &in,
                 sizeof(in), 0);
}

static void resume(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint32_t qpn = some_qpn(fuzz);
    QrdmaQp *qp = qrdma_qp_find(fuzz->engine, qpn);
    struct qrdma_resume in = {
        .token = qrdma_le32(qp ? qp->fault_token : 1),
        .failed = qrdma_le32(fuzz_one_in(input, 4)),
    };

    fuzz_spoil(input, &in, sizeof(in));
    fuzz_command(fuzz, QRDMA_CMD_RESUME_PAGE_FAULT, qpn, &in, sizeof(in), 0);
}

static void modify_mkey(FuzzCard *fuzz, uint32_t index)
{
    FuzzInput *input = fuzz->input;
    struct qrdma_modify_mkey in = {
        .mask = qrdma_le64(fuzz_u16(input) & QRDMA_UMR_MASK_ALL),
        .context = fuzz_mkc(fuzz),
    };

    fuzz_command(fuzz, QRDMA_CMD_MODIFY_MKEY, index, &in, sizeof(in), 0);
}

void fuzz_mkey_command(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    uint32_t index = fuzz_number(input, FUZZ_FIRST_MKEY, FUZZ_MKEYS);
    struct qrdma_mkc mkc;

    switch (fuzz_below(input, 8)) {
    case 0:
        modify_mkey(fuzz, index);
        break;
    case 1:
        fuzz_command(fuzz, QRDMA_CMD_DESTROY_MKEY, index, NULL, 0, 0);
        break;
    case 2:
    case 3:
        fuzz_command(fuzz, QRDMA_CMD_INVALIDATE_TRANSLATIONS, index, NULL, 0,
                     0);
        break;
    default:
        mkc = fuzz_mkc(fuzz);
        fuzz_command(fuzz, QRDMA_CMD_CREATE_MKEY, index, &mkc, sizeof(mkc), 0);
    }
}

void fuzz_object_command(FuzzCard *fuzz)
{
    static void (*const commands[])(FuzzCard *fuzz) = {
        create_eq, create_cq, create_qp, modify_qp, connect_qps, modify_queue,
        query, destroy, segment, set_gid, resume, fuzz_mkey_command,
    };

    commands[fuzz_below(fuzz->input, G_N_ELEMENTS(commands))](fuzz);
}
