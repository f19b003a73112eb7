/*
 * qrdma engine tests: waiting, giving up, and ends in the middle.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

/* ---------------------------------------------------------- receiver waits */

static void test_rnr_then_receive(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 100);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, LINK_RNR_DELAY);
    g_assert_cmpuint(pair->link->engine->counters.rnr_retries, ==, 2);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    pair_post_receive(pair, 100);
    fake_host_advance(pair->link->host, LINK_RNR_DELAY - 1);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    fake_host_advance(pair->link->host, 1);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_SUCCESS);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_SUCCESS);
    g_assert_cmphex(link_buffer_byte(pair->to, 99), ==,
                    link_pattern(PAIR_SEED, 99));

    /* The count starts again with each message. */
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, LINK_RNR_DELAY);
    pair_post_receive(pair, 100);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_SUCCESS);
}

static void test_rnr_exhausted(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 100);

    link_post_send(pair->link, &pair->link->a, &send);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, LINK_RNR_RETRIES * LINK_RNR_DELAY - 1);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    fake_host_advance(pair->link->host, 1);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_RNR_RETRY_EXCEEDED);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_FLUSHED);
    g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_RTS);
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
}

static void test_rnr_for_ever(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp init = link_to_init();
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_B);
    struct qrdma_modify_qp rts = link_to_rts();
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 100);

    rts.context.rnr_retry = 7;
    link_modify(pair->link, &pair->link->a, &init);
    link_modify(pair->link, &pair->link->a, &rtr);
    link_modify(pair->link, &pair->link->a, &rts);
    link_connect(pair->link, &pair->link->b, LINK_QPN_A);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, 1000 * LINK_RNR_DELAY);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    pair_post_receive(pair, 100);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_SUCCESS);
}

/* The data of a write is there before the receive WQE is wanted. */
static void test_rnr_of_write_with_immediate(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE_IMM, 3 * LINK_PAGE);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    g_assert_cmphex(link_buffer_byte(pair->to, 3 * LINK_PAGE - 1), ==,
                    link_pattern(PAIR_SEED, 3 * LINK_PAGE - 1));
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    pair_post_receive(pair, 0);
    link_buffer_fill(pair->to, 77);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV_WRITE_IMM,
                QRDMA_CQE_SUCCESS);
    /* It was not written a second time. */
    g_assert_cmphex(link_buffer_byte(pair->to, 5), ==, link_pattern(77, 5));
}

/* ------------------------------------------------------------ nobody there */

static void expect_retry_exceeded(Pair *pair)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, (LINK_RETRIES + 1) * LINK_TIMEOUT - 1);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    fake_host_advance(pair->link->host, 1);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_RETRY_EXCEEDED);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
}

static void test_remote_qp_missing(Pair *pair, gconstpointer data)
{
    link_connect(pair->link, &pair->link->a, 0x3000);
    expect_retry_exceeded(pair);
}

static void test_remote_qp_not_ready(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp init = link_to_init();

    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_modify(pair->link, &pair->link->b, &init);
    expect_retry_exceeded(pair);
}

static void test_remote_qp_of_another(Pair *pair, gconstpointer data)
{
    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_connect(pair->link, &pair->link->b, 0x3000);
    expect_retry_exceeded(pair);
}

static void test_remote_qp_is_umr(Pair *pair, gconstpointer data)
{
    link_add_umr(pair->link);
    link_connect(pair->link, &pair->link->a, LINK_UMR_QPN);
    expect_retry_exceeded(pair);
}

static void test_gid_of_another_card(Pair *pair, gconstpointer data)
{
    struct qrdma_gid in = { .vlan = 0xffff, .type = 1, .gid = { 1, 2, 3 } };

    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_connect(pair->link, &pair->link->b, LINK_QPN_A);
    card_must(pair->link->card, QRDMA_CMD_SET_GID, 0, &in, sizeof(in));
    expect_retry_exceeded(pair);
}

static void test_psn_out_of_sequence(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp init = link_to_init();
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_A);

    rtr.context.receive_psn = qrdma_le32(5);
    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_modify(pair->link, &pair->link->b, &init);
    link_modify(pair->link, &pair->link->b, &rtr);
    expect_retry_exceeded(pair);
}

/* The other end comes up while the sender still tries. */
static void test_remote_qp_comes_late(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);

    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, LINK_TIMEOUT);
    link_connect(pair->link, &pair->link->b, LINK_QPN_A);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
}

/* Without a timeout the sender waits for ever, until it is reset. */
static void test_no_timeout(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp init = link_to_init();
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_B);
    struct qrdma_modify_qp rts = link_to_rts();
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);

    rts.context.timeout = 0;
    link_modify(pair->link, &pair->link->a, &init);
    link_modify(pair->link, &pair->link->a, &rtr);
    link_modify(pair->link, &pair->link->a, &rts);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, 10000000000);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_RESET);
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
}

/* --------------------------------------------------------- while in flight */

/* Given packets in flight, the end of the sender stops them. (Case 48.) */
static void test_sender_ends_in_flight(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 4 * LINK_PAGE);
    PairEnd how = GPOINTER_TO_INT(data);
    unsigned writes;

    for (unsigned i = 0; i < 8; i++) {
        link_post_send(pair->link, &pair->link->a, &send);
    }
    fake_host_advance(pair->link->host, 1500);
    pair_end(pair, &pair->link->a, how);
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
    fake_host_run(pair->link->host);
    for (unsigned i = 0; i < 8 && how == PAIR_END_ERROR; i++) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                    QRDMA_CQE_FLUSHED);
    }
    writes = pair->link->host->writes;
    fake_host_advance(pair->link->host, 1000000);
    g_assert_cmpuint(pair->link->host->writes, ==, writes);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    g_assert_cmphex(link_buffer_byte(pair->to, 1024), ==, 0);
    /* Nothing holds the keys. */
    card_must(pair->link->card, QRDMA_CMD_DESTROY_MKEY, pair->from->index,
              NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_MKEY, pair->to->index,
              NULL, 0);
}

/* The receiver ends: nothing more reaches its memory, the sender times out. */
static void test_receiver_ends_in_flight(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 4 * LINK_PAGE);
    PairEnd how = GPOINTER_TO_INT(data);

    pair_post_receive(pair, 4 * LINK_PAGE);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_advance(pair->link->host, 1500);
    g_assert_cmphex(link_buffer_byte(pair->to, 1023), !=, 0);
    pair_end(pair, &pair->link->b, how);
    fake_host_settle(pair->link->host);
    g_assert_cmphex(link_buffer_byte(pair->to, 1024), ==, 0);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_RETRY_EXCEEDED);
    if (how == PAIR_END_ERROR) {
        link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                    QRDMA_CQE_FLUSHED);
    }
    link_expect_no_cqe(pair->link, &pair->link->cq_b);
}

static void test_card_reset_in_flight(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 4 * LINK_PAGE);
    unsigned writes;

    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        link_post_send(pair->link, &pair->link->a, &send);
    }
    fake_host_advance(pair->link->host, 1500);
    qrdma_engine_reset(pair->link->engine);
    writes = pair->link->host->writes;
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
    fake_host_settle(pair->link->host);
    g_assert_cmpuint(pair->link->host->writes, ==, writes);
    link_ring_send(pair->link, &pair->link->a);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_DOORBELL_ERROR);
}

/* --------------------------------------------------------- queues in error */

/* Posted after the error: flushed too. */
static void test_flush(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);

    pair_end(pair, &pair->link->a, PAIR_END_ERROR);
    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        QrdmaSegment segment = link_segment(pair->from, 0, 10);

        send.flags = 0;
        link_post_send(pair->link, &pair->link->a, &send);
        link_post_receive(pair->link, &pair->link->a, 1, &segment);
    }
    fake_host_run(pair->link->host);
    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        struct qrdma_cqe cqe;

        cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                          QRDMA_CQE_FLUSHED);
        g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, i);
    }
    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_RECV,
                    QRDMA_CQE_FLUSHED);
    }
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_expect_no_event(pair->link);
    /* And after a reset it works again, counters at 0. */
    pair_end(pair, &pair->link->a, PAIR_END_RESET);
    pair_end(pair, &pair->link->b, PAIR_END_RESET);
    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_connect(pair->link, &pair->link->b, LINK_QPN_A);
    send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    pair_add("/rnr/%s", "then-receive", NULL, pair_set_up,
             test_rnr_then_receive);
    pair_add("/rnr/%s", "exhausted", NULL, pair_set_up, test_rnr_exhausted);
    pair_add("/rnr/%s", "for-ever", NULL, pair_set_up_unconnected,
             test_rnr_for_ever);
    pair_add("/rnr/%s", "write-with-immediate", NULL, pair_set_up,
             test_rnr_of_write_with_immediate);
    pair_add("/retry/%s", "missing", NULL, pair_set_up_unconnected,
             test_remote_qp_missing);
    pair_add("/retry/%s", "not-ready", NULL, pair_set_up_unconnected,
             test_remote_qp_not_ready);
    pair_add("/retry/%s", "of-another", NULL, pair_set_up_unconnected,
             test_remote_qp_of_another);
    pair_add("/retry/%s", "umr", NULL, pair_set_up_unconnected,
             test_remote_qp_is_umr);
    pair_add("/retry/%s", "gid", NULL, pair_set_up_unconnected,
             test_gid_of_another_card);
    pair_add("/retry/%s", "psn", NULL, pair_set_up_unconnected,
             test_psn_out_of_sequence);
    pair_add("/retry/%s", "late", NULL, pair_set_up_unconnected,
             test_remote_qp_comes_late);
    pair_add("/retry/%s", "no-timeout", NULL, pair_set_up_unconnected,
             test_no_timeout);
    for (int i = 0; i < PAIR_ENDS; i++) {
        pair_add("/in-flight/sender-%s", pair_end_names[i],
                 GINT_TO_POINTER(i), pair_set_up_slow,
                 test_sender_ends_in_flight);
        pair_add("/in-flight/receiver-%s", pair_end_names[i],
                 GINT_TO_POINTER(i), pair_set_up_slow,
                 test_receiver_ends_in_flight);
    }
    pair_add("/in-flight/%s", "card-reset", NULL, pair_set_up_slow,
             test_card_reset_in_flight);
    pair_add("/flush%s", "", NULL, pair_set_up, test_flush);
    return g_test_run();
}
