/*
 * qrdma engine fuzzing: what programs write into queues and doorbells.
 *
 * A state is built first: regions at each level of table, and page faults that
 * the driver answers. Then come WQEs, doorbells and memory that changes under
 * the card's reads.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-objects.h"

#define PAGES 16u

/* Where the tables of these regions are, in PBLEs. */
#define ROOT_PBLE 0u
#define LEAF_PBLE 512u
#define TABLE_PBLE 64u

/*
 * Pages of the arena, none after its neighbour; every third one absent where
 * the key is on demand.
 */
static void fill(FuzzCard *fuzz, const QrdmaMkc *mkc)
{
    for (unsigned i = 0; i < mkc->capacity; i++) {
        uint64_t page = fuzz->arena + (uint64_t)(i * 5 % PAGES) * LINK_PAGE;
        bool absent = mkc->flags & QRDMA_MKEY_ON_DEMAND && i % 3 == 2;

        region_set_pble(fuzz->card, mkc, i,
                        absent ? 0 : page | QRDMA_PBLE_PRESENT);
    }
}

static void create(FuzzCard *fuzz, uint32_t index, const QrdmaMkc *mkc)
{
    struct qrdma_mkc wire;

    qrdma_mkc_encode(mkc, &wire);
    card_must(fuzz->card, QRDMA_CMD_CREATE_MKEY, index, &wire, sizeof(wire));
}

/* Six keys, at addresses that fuzz_region_address() knows. */
static void create_regions(FuzzCard *fuzz)
{
    QrdmaMkc mkc = region_all_memory();

    create(fuzz, FUZZ_FIRST_MKEY, &mkc);
    mkc = region_mkc(0x10000000, LINK_PAGE, 12, 0, 0);
    mkc.base = fuzz->arena | QRDMA_PBLE_PRESENT;
    create(fuzz, FUZZ_FIRST_MKEY + 1, &mkc);
    mkc = region_mkc(0x10000200, PAGES * LINK_PAGE - 0x200, 12, 1, TABLE_PBLE);
    fill(fuzz, &mkc);
    create(fuzz, FUZZ_FIRST_MKEY + 2, &mkc);
    mkc = region_mkc(0x7f0000000000, PAGES * LINK_PAGE, 12, 2, ROOT_PBLE);
    region_set_leaves(fuzz->card, &mkc, LEAF_PBLE);
    fill(fuzz, &mkc);
    create(fuzz, FUZZ_FIRST_MKEY + 3, &mkc);
    mkc = region_mkc(0x7f0000000e00, PAGES * LINK_PAGE, 12, 1,
                     TABLE_PBLE + 32);
    mkc.flags |= QRDMA_MKEY_ON_DEMAND;
    fill(fuzz, &mkc);
    create(fuzz, FUZZ_FIRST_MKEY + 4, &mkc);
}

/* Bytes straight into a slot of a ring, and its doorbell. */
static void raw_slot(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    TestQp *qps[] = { &fuzz->link->a, &fuzz->link->b, &fuzz->link->umr };
    TestQp *qp = qps[fuzz_below(input, G_N_ELEMENTS(qps))];
    uint8_t wqe[512] = { 0 };

    fuzz_bytes(input, wqe, 64);
    if (qp->receive_ring && fuzz_below(input, 2)) {
        link_put_receive(fuzz->link, qp, wqe, sizeof(wqe));
        link_ring_receive(fuzz->link, qp);
    } else {
        fuzz_bytes(input, wqe + 64, fuzz_below(input, 128));
        link_put_send(fuzz->link, qp, wqe, sizeof(wqe));
        link_ring_send(fuzz->link, qp);
    }
}

/* Have a queue that has failed work again. */
static void recover(FuzzCard *fuzz)
{
    TestQp *qps[] = { &fuzz->link->a, &fuzz->link->b, &fuzz->link->umr };
    struct qrdma_modify_qp state = {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE),
    };
    TestQp *qp = qps[fuzz_below(fuzz->input, G_N_ELEMENTS(qps))];
    uint32_t remote = qp == &fuzz->link->a ? LINK_QPN_B : LINK_QPN_A;
    struct qrdma_modify_qp steps[] = {
        state, link_to_init(), link_to_rtr(remote), link_to_rts(),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        if (qp == &fuzz->link->umr) {
            steps[i] = state;
            steps[i].context.state = i;
        }
        fuzz_command(fuzz, QRDMA_CMD_MODIFY_QP, qp->number, &steps[i],
                     sizeof(steps[i]), 0);
    }
    fuzz_run(fuzz);
    qp->send_producer = 0;
    qp->receive_producer = 0;
}

static void repair(FuzzCard *fuzz)
{
    TestQp *qps[] = { &fuzz->link->a, &fuzz->link->b };
    TestQp *which = qps[fuzz_below(fuzz->input, G_N_ELEMENTS(qps))];
    QrdmaQp *qp = qrdma_qp_find(fuzz->engine, which->number);
    struct qrdma_resume in = {
        .token = qrdma_le32(qp ? qp->fault_token : 0),
        .failed = qrdma_le32(fuzz_one_in(fuzz->input, 4)),
    };

    if (fuzz_below(fuzz->input, 2)) {
        fuzz_table(fuzz);
    }
    fuzz_command(fuzz, QRDMA_CMD_RESUME_PAGE_FAULT, which->number, &in,
                 sizeof(in), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const steps[])(FuzzCard *fuzz) = {
        fuzz_any_step, fuzz_any_step, fuzz_run, fuzz_post_send, fuzz_post_send,
        fuzz_post_send, fuzz_post_receive, fuzz_post_receive, fuzz_post_umr,
        fuzz_post_umr, raw_slot, recover, repair, fuzz_mkey_command,
    };
    FuzzInput input = { data, size };
    FuzzCard *fuzz = fuzz_card_new(&input);

    create_regions(fuzz);
    while (fuzz_more(fuzz)) {
        steps[fuzz_below(&input, G_N_ELEMENTS(steps))](fuzz);
    }
    fuzz_card_finish(fuzz);
    return 0;
}
