/*
 * qrdma engine tests: the queue that UMRs are posted on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

static void set_up(Pair *pair, gconstpointer data)
{
    pair_set_up(pair, data);
    link_add_umr(pair->link);
}

static void set_up_slow(Pair *pair, gconstpointer data)
{
    pair_set_up_slow(pair, data);
    link_add_umr(pair->link);
}

/* A UMR of `to` that changes its flags in `mask` to `flags`. */
static TestUmr change_flags(Pair *pair, uint64_t mask, uint32_t flags)
{
    TestUmr umr = { .key = pair->to->key, .mask = mask, .mkc = pair->to->mkc };

    umr.mkc.flags = flags;
    return umr;
}

static TestUmr free_key(Pair *pair, bool free)
{
    return change_flags(pair, QRDMA_UMR_MASK_FREE,
                        free ? QRDMA_MKEY_FREE : 0);
}

static void put_umr(Pair *pair, const TestUmr *umr, uint8_t flags)
{
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];

    region_umr_wqe(pair->link->card, umr, wqe);
    wqe[offsetof(struct qrdma_umr_wqe, flags)] = flags;
    link_put_send(pair->link, &pair->link->umr, wqe, sizeof(wqe));
}

static void post_umr(Pair *pair, const TestUmr *umr)
{
    put_umr(pair, umr, QRDMA_WQE_SIGNALED);
    link_ring_send(pair->link, &pair->link->umr);
}

static struct qrdma_cqe expect_umr(Pair *pair, enum qrdma_cqe_status status)
{
    return link_expect(pair->link, &pair->link->cq_umr, QRDMA_CQE_OP_UMR,
                       status);
}

static void restart(Pair *pair)
{
    static const enum qrdma_qp_state states[] = {
        QRDMA_QP_RESET, QRDMA_QP_INIT, QRDMA_QP_RTR, QRDMA_QP_RTS,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        g_assert_cmpint(link_set_state(pair->link, &pair->link->umr,
                                       states[i]), ==, QRDMA_STATUS_OK);
    }
}

static void test_ok(Pair *pair, gconstpointer data)
{
    TestUmr umr = free_key(pair, true);
    struct qrdma_cqe cqe;

    post_umr(pair, &umr);
    fake_host_run(pair->link->host);
    cqe = expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(qrdma_le32(cqe.qpn), ==, LINK_UMR_QPN);
    g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, 0);
    g_assert_cmphex(region_query(pair->link->card, pair->to->index).flags &
                    QRDMA_MKEY_FREE, ==, QRDMA_MKEY_FREE);
}

static void test_unsignaled(Pair *pair, gconstpointer data)
{
    TestUmr take = free_key(pair, true), give = free_key(pair, false);

    put_umr(pair, &take, 0);
    put_umr(pair, &give, 0);
    put_umr(pair, &take, QRDMA_WQE_SIGNALED);
    link_ring_send(pair->link, &pair->link->umr);
    fake_host_run(pair->link->host);
    g_assert_cmpuint(qrdma_le32(expect_umr(pair,
                                           QRDMA_CQE_SUCCESS).wqe_counter),
                     ==, 2);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
}

/*
 * Three UMRs, the second one bad: done, refused, flushed. After a reset the
 * third is posted again and done. (Case 3.)
 */
static void test_refused_in_the_middle(Pair *pair, gconstpointer data)
{
    TestUmr first = change_flags(pair, QRDMA_UMR_MASK_REMOTE_ATOMIC, 0);
    TestUmr bad = free_key(pair, false);
    TestUmr third = free_key(pair, true);
    struct qrdma_cqe cqe;

    bad.key ^= 1;
    put_umr(pair, &first, QRDMA_WQE_SIGNALED);
    put_umr(pair, &bad, QRDMA_WQE_SIGNALED);
    put_umr(pair, &third, QRDMA_WQE_SIGNALED);
    link_ring_send(pair->link, &pair->link->umr);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    cqe = expect_umr(pair, QRDMA_CQE_UMR_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_STATUS_BAD_VARIANT);
    g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, 1);
    cqe = expect_umr(pair, QRDMA_CQE_FLUSHED);
    g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, 2);
    g_assert_cmpint(pair_state(pair, &pair->link->umr), ==, QRDMA_QP_ERROR);
    g_assert_cmphex(region_query(pair->link->card, pair->to->index).flags, ==,
                    REGION_ALL_RIGHTS & ~QRDMA_MKEY_REMOTE_ATOMIC);
    /* What comes while it is in error is flushed as well. */
    post_umr(pair, &third);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_FLUSHED);
    g_assert_cmpuint(pair->link->engine->counters.umr_flushed, ==, 2);
    g_assert_cmpuint(pair->link->engine->counters.umr_refused, ==, 1);
    restart(pair);
    post_umr(pair, &third);
    fake_host_run(pair->link->host);
    cqe = expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, 0);
    g_assert_cmphex(region_query(pair->link->card, pair->to->index).flags &
                    QRDMA_MKEY_FREE, ==, QRDMA_MKEY_FREE);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
}

/* Refused UMRs complete even when nobody asked for a completion. */
static void test_refused_unsignaled(Pair *pair, gconstpointer data)
{
    TestUmr bad = free_key(pair, false);

    bad.key ^= 1;
    put_umr(pair, &bad, 0);
    link_ring_send(pair->link, &pair->link->umr);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_UMR_ERROR);
}

/* Opcodes of the other kind of queue. */
static void test_wrong_opcode(Pair *pair, gconstpointer data)
{
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    TestUmr umr = free_key(pair, true);
    struct qrdma_cqe cqe;

    link_post_send(pair->link, &pair->link->umr, &nop);
    fake_host_run(pair->link->host);
    cqe = expect_umr(pair, QRDMA_CQE_UMR_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_STATUS_BAD_WQE);
    region_umr_wqe(pair->link->card, &umr, wqe);
    link_put_send(pair->link, &pair->link->a, wqe, sizeof(wqe));
    link_ring_send(pair->link, &pair->link->a);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                      QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_WQE_OPCODE);
    g_assert_cmphex(region_query(pair->link->card, pair->to->index).flags &
                    QRDMA_MKEY_FREE, ==, 0);
}

/* ------------------------------------------------------------- and traffic */

/*
 * The fence: given a packet in flight to the key's memory, the UMR that frees
 * the key completes only after it has landed; afterwards nothing lands.
 */
static void test_fence(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 3 * LINK_MTU);
    TestUmr umr = free_key(pair, true);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, PAIR_LATENCY / 2);
    post_umr(pair, &umr);
    fake_host_run(pair->link->host);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
    fake_host_advance(pair->link->host, PAIR_LATENCY / 2);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==,
                    link_pattern(PAIR_SEED, 1));
    link_buffer_fill(pair->to, 77);
    fake_host_settle(pair->link->host);
    for (unsigned i = 0; i < 3 * LINK_MTU; i++) {
        g_assert_cmphex(link_buffer_byte(pair->to, i), ==,
                        link_pattern(77, i));
    }
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR, LINK_QPN_B);
}

/* The fence does not wait for an access that will not come: its QP has gone. */
static void test_fence_of_stopped_sender(Pair *pair, gconstpointer data)
{
    PairEnd how = GPOINTER_TO_INT(data);
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 3 * LINK_MTU);
    TestUmr umr = free_key(pair, true);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    post_umr(pair, &umr);
    fake_host_run(pair->link->host);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
    pair_end(pair, &pair->link->a, how);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    fake_host_settle(pair->link->host);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
}

/* Reset while the UMR waits: nothing of it completes, the queue works again. */
static void test_reset_while_fencing(Pair *pair, gconstpointer data)
{
    PairEnd how = GPOINTER_TO_INT(data);
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 3 * LINK_MTU);
    TestUmr take = free_key(pair, true), give = free_key(pair, false);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    post_umr(pair, &take);
    post_umr(pair, &give);
    fake_host_run(pair->link->host);
    pair_end(pair, &pair->link->umr, how);
    fake_host_settle(pair->link->host);
    if (how == PAIR_END_ERROR) {
        expect_umr(pair, QRDMA_CQE_FLUSHED);
        expect_umr(pair, QRDMA_CQE_FLUSHED);
    }
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
    if (how != PAIR_END_DESTROY) {
        restart(pair);
        post_umr(pair, &give);
        fake_host_settle(pair->link->host);
        expect_umr(pair, QRDMA_CQE_SUCCESS);
    }
    /* Nothing owns the key any more. */
    card_must(pair->link->card, QRDMA_CMD_DESTROY_MKEY, pair->to->index, NULL,
              0);
}

static void test_card_reset_while_fencing(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 3 * LINK_MTU);
    TestUmr umr = free_key(pair, true);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    post_umr(pair, &umr);
    fake_host_run(pair->link->host);
    qrdma_engine_reset(pair->link->engine);
    fake_host_settle(pair->link->host);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
}

/* What was written, in order: 't' to a table, 'p' is payload. */
static GString *course;
static uint64_t table;
static bool (*real_write)(void *opaque, uint64_t address, const void *buffer,
                          size_t length);
static void *(*real_map)(void *opaque, uint64_t address, size_t *length,
                         bool write);

static bool record_write(void *opaque, uint64_t address, const void *buffer,
                         size_t length)
{
    if (address >= table && address - table < 1u << QRDMA_SD_SHIFT) {
        g_string_append_c(course, 't');
    }
    return real_write(opaque, address, buffer, length);
}

static void *record_map(void *opaque, uint64_t address, size_t *length,
                        bool write)
{
    if (write) {
        g_string_append_c(course, 'p');
    }
    return real_map(opaque, address, length, write);
}

/*
 * A long table write and long messages get their turns between each other:
 * neither waits for the other's end.
 */
static void test_slices(Pair *pair, gconstpointer data)
{
    enum { UNITS = 65 };
    TestBuffer *large = link_buffer(pair->link, 2, 12, 0, 513 * LINK_PAGE, 0);
    uint64_t pbles[UNITS * QRDMA_PBLES_PER_UNIT] = { 0 };
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, PAIR_LENGTH);
    TestUmr umr = {
        .key = large->key, .mkc = large->mkc, .units = UNITS, .pbles = pbles,
    };
    QrdmaHostOps *ops = &pair->link->host->ops;

    g_assert_true(qrdma_hmc_bus_address(pair->link->engine, 0, &table, NULL));
    course = g_string_new(NULL);
    real_write = ops->dma_write;
    real_map = ops->dma_map;
    ops->dma_write = record_write;
    ops->dma_map = record_map;
    post_umr(pair, &umr);
    for (unsigned i = 0; i < 8; i++) {
        link_post_send(pair->link, &pair->link->a, &send);
    }
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    for (unsigned i = 0; i < 8; i++) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                    QRDMA_CQE_SUCCESS);
    }
    /* 65 units in slices of 8, and a packet after each. */
    g_assert_null(strstr(course->str, "tt"));
    g_assert_true(g_str_has_prefix(course->str, "tptptptptptptptptp"));
    g_string_free(course, true);
    link_buffer_free(large);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    pair_add("/umr-queue/%s", "ok", NULL, set_up, test_ok);
    pair_add("/umr-queue/%s", "unsignaled", NULL, set_up, test_unsignaled);
    pair_add("/umr-queue/%s", "refused-in-the-middle", NULL, set_up,
             test_refused_in_the_middle);
    pair_add("/umr-queue/%s", "refused-unsignaled", NULL, set_up,
             test_refused_unsignaled);
    pair_add("/umr-queue/%s", "wrong-opcode", NULL, set_up,
             test_wrong_opcode);
    pair_add("/umr-queue/%s", "fence", NULL, set_up_slow, test_fence);
    for (int i = 0; i < PAIR_ENDS; i++) {
        pair_add("/umr-queue/fence-of-stopped-sender/%s", pair_end_names[i],
                 GINT_TO_POINTER(i), set_up_slow,
                 test_fence_of_stopped_sender);
        pair_add("/umr-queue/while-fencing/%s", pair_end_names[i],
                 GINT_TO_POINTER(i), set_up_slow, test_reset_while_fencing);
    }
    pair_add("/umr-queue/while-fencing/%s", "card-reset", NULL, set_up_slow,
             test_card_reset_while_fencing);
    pair_add("/umr-queue/%s", "slices", NULL, set_up, test_slices);
    return g_test_run();
}
