/*
 * qrdma engine tests: queues go on in a card that has loaded their state.
 *
 * link_migrate() puts another card in the place of the one before, and sees
 * that the same state is saved twice, and once more by the new card.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

static QrdmaQp *qp_of(Pair *pair, const TestQp *qp)
{
    return qrdma_qp_find(pair->link->engine, qp->number);
}

/* Once for each packet, while it is in flight. How many there were. */
static unsigned migrate_each_packet(Pair *pair)
{
    unsigned packets = 0;

    fake_host_run(pair->link->host);
    while (qp_of(pair, &pair->link->a)->wait == QRDMA_WAIT_PACKET) {
        link_migrate(pair->link);
        fake_host_advance(pair->link->host, PAIR_LATENCY - 1);
        link_migrate(pair->link);
        link_expect_no_cqe(pair->link, &pair->link->cq_a);
        fake_host_advance(pair->link->host, 1);
        packets++;
    }
    return packets;
}

/* ---------------------------------------------------- messages, by opcode */

/* A few packets and a page boundary, in each of two segments. */
#define FIRST 3000u
#define SECOND 5000u
#define WHOLE (FIRST + SECOND)
#define SECOND_AT 4096u
#define MESSAGE_PACKETS 9u      /* no packet goes over any of these */

typedef struct Message {
    const char *name;
    enum qrdma_send_opcode opcode;
    enum qrdma_cqe_opcode cqe_opcode;
    enum qrdma_cqe_opcode receive;  /* if there is one */
    bool received;
} Message;

static const Message messages[] = {
    { "send", QRDMA_SEND_OP_SEND, QRDMA_CQE_OP_SEND, QRDMA_CQE_OP_RECV, true },
    { "send-imm", QRDMA_SEND_OP_SEND_IMM, QRDMA_CQE_OP_SEND,
      QRDMA_CQE_OP_RECV, true },
    { "write", QRDMA_SEND_OP_WRITE, QRDMA_CQE_OP_WRITE, 0, false },
    { "write-imm", QRDMA_SEND_OP_WRITE_IMM, QRDMA_CQE_OP_WRITE,
      QRDMA_CQE_OP_RECV_WRITE_IMM, true },
    { "read", QRDMA_SEND_OP_READ, QRDMA_CQE_OP_READ, 0, false },
};

/* Where byte i of the message is, in the memory of the two segments. */
static uint64_t place_of(uint32_t i)
{
    return i < FIRST ? i : SECOND_AT + (i - FIRST);
}

/* Two segments at a's end; at the other end all is in one piece. */
static void assert_moved(Pair *pair, bool scattered)
{
    for (uint32_t i = 0; i < WHOLE; i++) {
        uint64_t at = scattered ? place_of(i) : i;
        uint64_t from = scattered ? i : place_of(i);

        g_assert_cmphex(link_buffer_byte(pair->to, at), ==,
                        link_pattern(PAIR_SEED, from));
    }
}

static void test_message(Pair *pair, gconstpointer data)
{
    const Message *message = data;
    bool is_read = message->opcode == QRDMA_SEND_OP_READ;
    TestBuffer *local = is_read ? pair->to : pair->from;
    TestBuffer *remote = is_read ? pair->from : pair->to;
    TestSend send = {
        .opcode = message->opcode,
        .flags = QRDMA_WQE_SIGNALED,
        .immediate = qrdma_wqe_has_immediate(&(QrdmaSendRequest) {
            .opcode = message->opcode }) ? 0x11223344 : 0,
        .segments = 2,
        .segment = { link_segment(local, 0, FIRST),
                     link_segment(local, SECOND_AT, SECOND) },
    };

    if (message->opcode != QRDMA_SEND_OP_SEND &&
        message->opcode != QRDMA_SEND_OP_SEND_IMM) {
        send.remote_address = remote->address;
        send.remote_key = remote->key;
    }
    pair_post_receive(pair, WHOLE);
    link_post_send(pair->link, &pair->link->a, &send);
    g_assert_cmpuint(migrate_each_packet(pair), ==, MESSAGE_PACKETS);
    link_expect(pair->link, &pair->link->cq_a, message->cqe_opcode,
                QRDMA_CQE_SUCCESS);
    if (message->received) {
        struct qrdma_cqe cqe = link_expect(pair->link, &pair->link->cq_b,
                                           message->receive,
                                           QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(qrdma_le32(cqe.byte_length), ==, WHOLE);
        g_assert_cmphex(cqe.immediate, ==, send.immediate);
    } else {
        link_expect_no_cqe(pair->link, &pair->link->cq_b);
    }
    assert_moved(pair, is_read);
}

static void test_inline(Pair *pair, gconstpointer data)
{
    uint8_t bytes[200];
    TestSend send = {
        .opcode = QRDMA_SEND_OP_SEND,
        .flags = QRDMA_WQE_SIGNALED | QRDMA_WQE_INLINE,
        .inline_length = sizeof(bytes),
        .inline_data = bytes,
    };
    QrdmaSegment parts[2] = { link_segment(pair->to, 0, 120),
                              link_segment(pair->to, 500, 100) };

    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = link_pattern(PAIR_SEED, i);
    }
    link_post_receive(pair->link, &pair->link->b, 2, parts);
    link_post_send(pair->link, &pair->link->a, &send);
    /* The second packet begins in the middle of the inline data. */
    g_assert_cmpuint(migrate_each_packet(pair), ==, 2);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_SUCCESS);
    g_assert_cmpmem(link_buffer_pointer(pair->to, 0, 120), 120, bytes, 120);
    g_assert_cmpmem(link_buffer_pointer(pair->to, 500, 80), 80, bytes + 120,
                    80);
}

/* The word is changed once, and what was there is given back in two pieces. */
static void test_atomic(Pair *pair, gconstpointer data)
{
    TestSend send = {
        .opcode = QRDMA_SEND_OP_FETCH_ADD,
        .flags = QRDMA_WQE_SIGNALED,
        .remote_address = pair->to->address,
        .remote_key = pair->to->key,
        .swap_or_add = 5,
        .segments = 2,
        .segment = { link_segment(pair->from, 0, 3),
                     link_segment(pair->from, 100, 5) },
    };
    uint64_t before = qrdma_le64(0x0102030405060708), after;
    void *word = link_buffer_pointer(pair->to, 0, sizeof(before));

    memcpy(word, &before, sizeof(before));
    link_post_send(pair->link, &pair->link->a, &send);
    g_assert_cmpuint(migrate_each_packet(pair), ==, 3);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_FETCH_ADD,
                QRDMA_CQE_SUCCESS);
    memcpy(&after, word, sizeof(after));
    g_assert_cmphex(qrdma_le64(after), ==, 0x010203040506070d);
    g_assert_cmpmem(link_buffer_pointer(pair->from, 0, 3), 3, &before, 3);
    g_assert_cmpmem(link_buffer_pointer(pair->from, 100, 5), 5,
                    (uint8_t *)&before + 3, 5);
}

/* ---------------------------------------------------- waiting, and stopped */

static void test_receiver_not_ready(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 100);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_migrate(pair->link);
    fake_host_advance(pair->link->host, LINK_RNR_DELAY);
    g_assert_cmpuint(pair->link->engine->counters.rnr_retries, ==, 2);
    /* How often it has tried goes along: the next time is the last. */
    link_migrate(pair->link);
    fake_host_advance(pair->link->host, LINK_RNR_DELAY);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_RNR_RETRY_EXCEEDED);
}

/* Two of which one is in flight: with SQD the other has to wait. */
static void test_drained(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);

    link_post_send(pair->link, &pair->link->a, &send);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_SQD);
    link_migrate(pair->link);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_migrate(pair->link);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_SQD);
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_RTS);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
}

/* A turn flushes 16 of each queue; the rest is flushed by another card. */
#define LOG_FLUSHED 6

static void make_long_qp(Pair *pair, TestQp *qp, TestReader *cq)
{
    struct qrdma_qpc in = { .type = QRDMA_QP_RC, .pd = qrdma_le32(REGION_PD) };
    uint64_t ring = card_alloc(pair->link->card,
                               1u << (LOG_FLUSHED + QRDMA_SEND_WQE_LOG_MIN),
                               LINK_PAGE);

    link_make_cq(pair->link, cq, 30, LOG_FLUSHED, 0, 0);
    in.send_cqn = in.receive_cqn = qrdma_le32(cq->number);
    in.send_ring = link_ring(ring, LOG_FLUSHED, QRDMA_SEND_WQE_LOG_MIN);
    card_must(pair->link->card, QRDMA_CMD_CREATE_QP, 0x50, &in, sizeof(in));
    *qp = (TestQp) { .number = 0x50, .cq = cq };
    link_connect(pair->link, qp, LINK_QPN_A);
}

static void test_half_flushed(Pair *pair, gconstpointer data)
{
    unsigned count = 1u << LOG_FLUSHED;
    TestReader cq;
    TestQp qp;

    make_long_qp(pair, &qp, &cq);
    /* Not to be sent: nobody runs before the QP is in error. */
    qp_of(pair, &qp)->send.producer = count;
    qrdma_qp_to_error(pair->link->engine, qp_of(pair, &qp));
    while (qp_of(pair, &qp)->send.consumer < count) {
        link_migrate(pair->link);
        g_assert_true(qp_of(pair, &qp)->ready);
        qrdma_qp_not_ready(pair->link->engine, qp_of(pair, &qp));
        if (qrdma_qp_flush_turn(pair->link->engine, qp_of(pair, &qp))) {
            qrdma_qp_ready(pair->link->engine, qp_of(pair, &qp));
        }
    }
    for (unsigned i = 0; i < count; i++) {
        struct qrdma_cqe cqe = link_expect(pair->link, &cq, QRDMA_CQE_OP_SEND,
                                           QRDMA_CQE_FLUSHED);

        g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, i);
    }
    link_expect_no_cqe(pair->link, &cq);
}

/* -------------------------------------------------------------- page faults */

static void test_suspended(Pair *pair, gconstpointer data)
{
    TestSend write = pair_message(pair, QRDMA_SEND_OP_WRITE, 2 * LINK_PAGE);
    struct qrdma_resume resume = { 0 };
    struct qrdma_eqe eqe;

    link_buffer_set_present(pair->link, pair->to, 1, false);
    link_post_send(pair->link, &pair->link->a, &write);
    fake_host_settle(pair->link->host);
    g_assert_cmpint(qp_of(pair, &pair->link->a)->wait, ==, QRDMA_WAIT_FAULT);
    link_migrate(pair->link);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_PAGE_FAULT, LINK_QPN_A);
    link_buffer_set_present(pair->link, pair->to, 1, true);
    resume.token = eqe.token;
    card_must(pair->link->card, QRDMA_CMD_RESUME_PAGE_FAULT, LINK_QPN_A,
              &resume, sizeof(resume));
    g_assert_cmpuint(migrate_each_packet(pair), ==, 4);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    g_assert_cmphex(link_buffer_byte(pair->to, 2 * LINK_PAGE - 1), ==,
                    link_pattern(PAIR_SEED, 2 * LINK_PAGE - 1));
}

/* The repair fails after the migration: it is the access of before. */
static void test_suspended_fails(Pair *pair, gconstpointer data)
{
    TestSend write = pair_message(pair, QRDMA_SEND_OP_WRITE, 2 * LINK_PAGE);
    struct qrdma_resume resume = { .failed = qrdma_le32(1) };
    struct qrdma_eqe fault, error;

    link_buffer_set_present(pair->link, pair->to, 1, false);
    link_post_send(pair->link, &pair->link->a, &write);
    fake_host_settle(pair->link->host);
    link_migrate(pair->link);
    fault = link_expect_event(pair->link, QRDMA_EVENT_PAGE_FAULT, LINK_QPN_A);
    resume.token = fault.token;
    card_must(pair->link->card, QRDMA_CMD_RESUME_PAGE_FAULT, LINK_QPN_A,
              &resume, sizeof(resume));
    fake_host_settle(pair->link->host);
    error = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR,
                              LINK_QPN_B);
    g_assert_cmphex(error.address, ==, fault.address);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
}

/* ------------------------------------------------------------------- events */

/* Of each of more CQs than the EQ has room for. */
#define PENDING_CQS 12u
#define LOG_SHORT_EQ 3
#define FIRST_PENDING 100u

static void complete_on(Pair *pair, TestReader *cq, unsigned i)
{
    TestSend send = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    TestQp qp;

    link_make_cq(pair->link, cq, FIRST_PENDING + i, 4, 0, 1);
    link_make_qp(pair->link, &qp, QRDMA_QP_RC, FIRST_PENDING + i, 0, cq);
    link_connect(pair->link, &qp, LINK_QPN_A);
    link_arm(pair->link, cq, QRDMA_DOORBELL_ARM_NEXT);
    link_post_send(pair->link, &qp, &send);
    fake_host_run(pair->link->host);
}

/* What waits comes in its old order, when the new card is told of room. */
static void test_full_eq(Pair *pair, gconstpointer data)
{
    TestReader eq, cq[PENDING_CQS];
    struct qrdma_eqe eqe;

    link_make_eq(pair->link, &eq, 1, LOG_SHORT_EQ, 9);
    /* The last number first: not the order of the table. */
    for (unsigned i = PENDING_CQS; i--;) {
        complete_on(pair, &cq[i], i);
    }
    g_assert_cmpuint(g_queue_get_length(
                         &qrdma_eq_find(pair->link->engine, 1)->pending), ==,
                     PENDING_CQS - (1u << LOG_SHORT_EQ));
    link_arm(pair->link, &eq, QRDMA_DOORBELL_ARM_NEXT);
    link_migrate(pair->link);
    fake_host_run(pair->link->host);
    g_assert_cmpuint(pair->link->host->interrupts[9], ==, 1);
    for (unsigned i = PENDING_CQS; i--;) {
        g_assert_true(link_next_event(pair->link, &eq, &eqe));
        g_assert_cmpuint(qrdma_le32(eqe.number), ==, FIRST_PENDING + i);
        link_migrate(pair->link);
        fake_host_run(pair->link->host);
    }
    g_assert_false(link_next_event(pair->link, &eq, &eqe));
}

/* One arming, one event, whichever card it was that was armed. */
static void test_armed(Pair *pair, gconstpointer data)
{
    TestSend send = {
        .opcode = QRDMA_SEND_OP_NOP,
        .flags = QRDMA_WQE_SIGNALED,
    };

    link_arm(pair->link, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    fake_host_run(pair->link->host);
    link_migrate(pair->link);
    link_post_send(pair->link, &pair->link->a, &send);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    g_assert_cmpuint(pair->link->host->interrupts[LINK_EQ_VECTOR], ==, 1);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_a.number);
    link_expect_no_event(pair->link);
}

static void set_up_on_demand(Pair *pair, gconstpointer data)
{
    QrdmaConfig config = card_default_config();

    config.packet_latency = PAIR_LATENCY;
    pair_set_up_with(pair, &config, true, 0, QRDMA_MKEY_ON_DEMAND);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        PairTest set_up;
        PairTest test;
    } tests[] = {
        { "inline", pair_set_up_slow, test_inline },
        { "atomic", pair_set_up_slow, test_atomic },
        { "receiver-not-ready", pair_set_up_slow, test_receiver_not_ready },
        { "drained", pair_set_up_slow, test_drained },
        { "half-flushed", pair_set_up_slow, test_half_flushed },
        { "suspended/resumed", set_up_on_demand, test_suspended },
        { "suspended/failed", set_up_on_demand, test_suspended_fails },
        { "full-eq", pair_set_up_slow, test_full_eq },
        { "armed", pair_set_up_slow, test_armed },
    };

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(messages); i++) {
        pair_add("/state-queues/message/%s", messages[i].name, &messages[i],
                 pair_set_up_slow, test_message);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        pair_add("/state-queues/%s", tests[i].name, NULL, tests[i].set_up,
                 tests[i].test);
    }
    return g_test_run();
}
