/*
 * qrdma engine tests: event queues, completion queues and how they are armed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

/* Completion events of CQ a, and what makes them. */
static void nop(Pair *pair, uint8_t flags)
{
    TestSend send = {
        .opcode = QRDMA_SEND_OP_NOP,
        .flags = QRDMA_WQE_SIGNALED | flags,
    };

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
}

static void arm_cq(Pair *pair, TestReader *cq, unsigned arm)
{
    link_arm(pair->link, cq, arm);
    fake_host_run(pair->link->host);
}

static unsigned interrupts(Pair *pair)
{
    return pair->link->host->interrupts[LINK_EQ_VECTOR];
}

/* ------------------------------------------------------------- arming a CQ */

static void test_no_event_unless_armed(Pair *pair, gconstpointer data)
{
    nop(pair, 0);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_NOP,
                QRDMA_CQE_SUCCESS);
    link_expect_no_event(pair->link);
    g_assert_cmpuint(interrupts(pair), ==, 0);
}

static void test_next(Pair *pair, gconstpointer data)
{
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    link_expect_no_event(pair->link);
    nop(pair, 0);
    nop(pair, 0);
    g_assert_cmpuint(interrupts(pair), ==, 1);
    /* One event for one arming. */
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_a.number);
    link_expect_no_event(pair->link);
}

/* Completions came between the last poll and the arming: event at once. */
static void test_next_with_unread(Pair *pair, gconstpointer data)
{
    nop(pair, 0);
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_a.number);
    /* That used the arming up. */
    nop(pair, 0);
    link_expect_no_event(pair->link);
}

/* The counter in the arming doorbell says that all has been read. */
static void test_next_after_reading(Pair *pair, gconstpointer data)
{
    struct qrdma_cqe cqe;

    nop(pair, 0);
    g_assert_true(link_poll(pair->link, &pair->link->cq_a, &cqe));
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    link_expect_no_event(pair->link);
    nop(pair, 0);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_a.number);
}

/* A doorbell that only moves the consumer leaves the arming as it is. */
static void test_consumer_only(Pair *pair, gconstpointer data)
{
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NONE);
    nop(pair, 0);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_a.number);
}

static void test_solicited(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 10);

    arm_cq(pair, &pair->link->cq_b, QRDMA_DOORBELL_ARM_SOLICITED);
    for (unsigned i = 0; i < 3; i++) {
        pair_post_receive(pair, 10);
    }
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect_no_event(pair->link);
    send.flags |= QRDMA_WQE_SOLICITED;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_b.number);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect_no_event(pair->link);
}

static void test_solicited_by_error(Pair *pair, gconstpointer data)
{
    arm_cq(pair, &pair->link->cq_b, QRDMA_DOORBELL_ARM_SOLICITED);
    pair_post_receive(pair, 10);
    pair_end(pair, &pair->link->b, PAIR_END_ERROR);
    fake_host_run(pair->link->host);
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION,
                      pair->link->cq_b.number);
}

/* ------------------------------------------------------------ arming an EQ */

static void arm_eq(Pair *pair, unsigned arm)
{
    link_arm(pair->link, &pair->link->eq, arm);
    fake_host_run(pair->link->host);
}

static void completion_event(Pair *pair)
{
    nop(pair, 0);
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
}

static void test_eq_raises_once(Pair *pair, gconstpointer data)
{
    completion_event(pair);
    completion_event(pair);
    g_assert_cmpuint(interrupts(pair), ==, 1);
    /* Armed with one of the two read: raised at once. */
    pair->link->eq.consumer = 1;
    arm_eq(pair, QRDMA_DOORBELL_ARM_NEXT);
    g_assert_cmpuint(interrupts(pair), ==, 2);
    pair->link->eq.consumer = 2;
    arm_eq(pair, QRDMA_DOORBELL_ARM_NEXT);
    g_assert_cmpuint(interrupts(pair), ==, 2);
    completion_event(pair);
    g_assert_cmpuint(interrupts(pair), ==, 3);
    completion_event(pair);
    g_assert_cmpuint(interrupts(pair), ==, 3);
    pair->link->eq.consumer = 4;
    arm_eq(pair, QRDMA_DOORBELL_ARM_NONE);
    completion_event(pair);
    g_assert_cmpuint(interrupts(pair), ==, 3);
}

static void test_eq_vector(Pair *pair, gconstpointer data)
{
    struct qrdma_eqc in = { .vector = qrdma_le32(7) };

    card_must(pair->link->card, QRDMA_CMD_MODIFY_EQ, 0, &in, sizeof(in));
    completion_event(pair);
    g_assert_cmpuint(interrupts(pair), ==, 0);
    g_assert_cmpuint(pair->link->host->interrupts[7], ==, 1);
    in.vector = qrdma_le32(QRDMA_MSIX_VECTORS);
    g_assert_cmpint(card_command(pair->link->card, QRDMA_CMD_MODIFY_EQ, 0,
                                 &in, sizeof(in), NULL, 0), ==,
                    QRDMA_STATUS_BAD_VECTOR);
}

/* Nobody reads: CQs wait for their turn, none is lost, order is kept. */
static void test_full_eq(Pair *pair, gconstpointer data)
{
    unsigned size = 8, cqs = 20;
    TestReader eq, *cq = g_new0(TestReader, cqs);
    TestQp *qp = g_new0(TestQp, cqs);
    TestSend send = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    struct qrdma_eqe eqe;

    link_make_eq(pair->link, &eq, 1, 3, 9);
    for (unsigned i = 0; i < cqs; i++) {
        link_make_cq(pair->link, &cq[i], 100 + i, 4, 0, 1);
        link_make_qp(pair->link, &qp[i], QRDMA_QP_RC, 100 + i, 0, &cq[i]);
        link_connect(pair->link, &qp[i], LINK_QPN_A);
        arm_cq(pair, &cq[i], QRDMA_DOORBELL_ARM_NEXT);
        link_post_send(pair->link, &qp[i], &send);
        fake_host_run(pair->link->host);
        link_expect(pair->link, &cq[i], QRDMA_CQE_OP_NOP, QRDMA_CQE_SUCCESS);
    }
    g_assert_cmpuint(qrdma_eq_find(pair->link->engine, 1)->producer, ==, size);
    /* One CQ goes while its event waits: no event of it comes. */
    card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, 112, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_CQ, 112, NULL, 0);
    /* Another moves to EQ 0, and its event along. */
    card_must(pair->link->card, QRDMA_CMD_MODIFY_CQ, 113,
              &(struct qrdma_cqc) { 0 }, sizeof(struct qrdma_cqc));
    link_expect_event(pair->link, QRDMA_EVENT_COMPLETION, 113);
    for (unsigned i = 0; i < cqs; i++) {
        if (i != 12 && i != 13) {
            g_assert_true(link_next_event(pair->link, &eq, &eqe));
            g_assert_cmpuint(eqe.type, ==, QRDMA_EVENT_COMPLETION);
            g_assert_cmpuint(qrdma_le32(eqe.number), ==, 100 + i);
        }
    }
    g_assert_false(link_next_event(pair->link, &eq, &eqe));
    g_assert_cmpuint(pair->link->engine->counters.events_lost, ==, 0);
    g_free(cq);
    g_free(qp);
}

static void test_eq_memory_fails(Pair *pair, gconstpointer data)
{
    unsigned writes;

    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    fake_host_refuse(pair->link->host, pair->link->eq.ring, LINK_PAGE, false,
                     true);
    nop(pair, 0);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_FATAL);
    g_assert_cmpuint(card_register(pair->link->card, QRDMA_REG_ERROR), ==,
                     QRDMA_FATAL_EQ_DMA);
    fake_host_allow_all(pair->link->host);
    writes = pair->link->host->writes;
    nop(pair, 0);
    fake_host_settle(pair->link->host);
    g_assert_cmpuint(pair->link->host->writes, ==, writes);
}

/* ----------------------------------------------------------------- overrun */

/* A CQ that is full takes nothing more, and its QPs stop. */
static void test_overrun(Pair *pair, gconstpointer data)
{
    unsigned size = 1u << LINK_LOG_CQ_ENTRIES;
    struct qrdma_eqe eqe;
    struct qrdma_cqc cqc;

    for (unsigned i = 0; i < size; i++) {
        nop(pair, 0);
    }
    link_expect_no_event(pair->link);
    nop(pair, 0);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_CQ_ERROR,
                            pair->link->cq_a.number);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_QUEUE_ERROR_OVERRUN);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ERROR, LINK_QPN_A);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_QUEUE_ERROR_CQ);
    link_expect_no_event(pair->link);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
    g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_RTS);
    /* What is there is as it was. */
    for (unsigned i = 0; i < size; i++) {
        struct qrdma_cqe cqe = link_expect(pair->link, &pair->link->cq_a,
                                           QRDMA_CQE_OP_NOP,
                                           QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, i);
    }
    nop(pair, 0);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    card_command(pair->link->card, QRDMA_CMD_QUERY_CQ,
                 pair->link->cq_a.number, NULL, 0, &cqc, sizeof(cqc));
    g_assert_cmphex(qrdma_le32(cqc.flags), ==, QRDMA_CQ_ERROR);
    /* No QP can be made to work on it again. */
    g_assert_cmpint(link_set_state(pair->link, &pair->link->a,
                                   QRDMA_QP_RESET), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(link_modify(pair->link, &pair->link->a,
                                &(struct qrdma_modify_qp) {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_FLAGS |
                           QRDMA_QP_MASK_PKEY_INDEX),
        .context.state = QRDMA_QP_INIT,
    }), ==, QRDMA_STATUS_BAD_STATE);
}

/* The receiver's CQ overruns: to the sender, a receiver that failed. */
static void test_overrun_of_receiver(Pair *pair, gconstpointer data)
{
    unsigned size = 1u << LINK_LOG_CQ_ENTRIES;
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 10);

    for (unsigned i = 0; i < size; i++) {
        pair_post_receive(pair, 10);
        link_post_send(pair->link, &pair->link->a, &send);
        fake_host_run(pair->link->host);
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                    QRDMA_CQE_SUCCESS);
    }
    pair_post_receive(pair, 10);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_OPERATION_ERROR);
    link_expect_event(pair->link, QRDMA_EVENT_CQ_ERROR,
                      pair->link->cq_b.number);
    link_expect_event(pair->link, QRDMA_EVENT_QP_ERROR, LINK_QPN_B);
    link_expect_no_event(pair->link);
}

static void test_cq_memory_fails(Pair *pair, gconstpointer data)
{
    struct qrdma_eqe eqe;

    fake_host_refuse(pair->link->host, pair->link->cq_a.ring, LINK_PAGE,
                     false, true);
    nop(pair, 0);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_CQ_ERROR,
                            pair->link->cq_a.number);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_QUEUE_ERROR_DMA);
    link_expect_event(pair->link, QRDMA_EVENT_QP_ERROR, LINK_QPN_A);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY);
}

/* The last 8 bytes come after the others: a reader never sees half an entry. */
static uint64_t watched;
static bool body_seen;
static bool (*real_write)(void *opaque, uint64_t address, const void *buffer,
                          size_t length);

static bool watch_write(void *opaque, uint64_t address, const void *buffer,
                        size_t length)
{
    if (address == watched) {
        g_assert_cmpuint(length, ==, 56);
        body_seen = true;
    } else if (address > watched && address < watched + 64) {
        g_assert_true(body_seen);
        g_assert_cmpuint(address, ==, watched + 56);
        g_assert_cmpuint(length, ==, 8);
    }
    return real_write(opaque, address, buffer, length);
}

static void test_phase_is_written_last(Pair *pair, gconstpointer data)
{
    watched = pair->link->cq_a.ring;
    body_seen = false;
    real_write = pair->link->host->ops.dma_write;
    pair->link->host->ops.dma_write = watch_write;
    nop(pair, 0);
    g_assert_true(body_seen);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_NOP,
                QRDMA_CQE_SUCCESS);
}

/* ----------------------------------------------------- objects and numbers */

static enum qrdma_status command(Pair *pair, uint16_t opcode, uint32_t number,
                                 const void *input, uint32_t length)
{
    return card_command(pair->link->card, opcode, number, input, length, NULL,
                        0);
}

static void test_in_use(Pair *pair, gconstpointer data)
{
    TestReader eq;
    struct qrdma_cqc to_eq1 = { .eqn = qrdma_le32(1) };

    link_make_eq(pair->link, &eq, 1, 3, 0);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_EQ, 0, NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_CQ, 1, NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_CQ, 1, &to_eq1,
                            sizeof(to_eq1)), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_EQ, 1, NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, LINK_QPN_A, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, LINK_QPN_B, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_CQ, 1, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_EQ, 1, NULL, 0);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_EQ, 0, NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_CQ, 2, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_EQ, 0, NULL, 0);
}

static void test_create_refusals(Pair *pair, gconstpointer data)
{
    struct qrdma_eqc eqc = { .ring = link_ring(CARD_MEMORY_BASE, 4, 5) };
    struct qrdma_cqc cqc = { .ring = link_ring(CARD_MEMORY_BASE, 4, 6) };
    struct qrdma_eqc bad_eqc = eqc;
    struct qrdma_cqc bad_cqc = cqc;

    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_EQ, QRDMA_MAX_EQS, &eqc,
                            sizeof(eqc)), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_EQ, 0, &eqc, sizeof(eqc)),
                    ==, QRDMA_STATUS_IN_USE);
    bad_eqc.vector = qrdma_le32(QRDMA_MSIX_VECTORS);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_EQ, 1, &bad_eqc,
                            sizeof(eqc)), ==, QRDMA_STATUS_BAD_VECTOR);
    bad_eqc = eqc;
    bad_eqc.producer = 1;
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_EQ, 1, &bad_eqc,
                            sizeof(eqc)), ==, QRDMA_STATUS_BAD_RESERVED);
    bad_eqc = eqc;
    bad_eqc.reserved[23] = 1;
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_EQ, 1, &bad_eqc,
                            sizeof(eqc)), ==, QRDMA_STATUS_BAD_RESERVED);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, QRDMA_MAX_CQS, &cqc,
                            sizeof(cqc)), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, 1, &cqc, sizeof(cqc)),
                    ==, QRDMA_STATUS_IN_USE);
    bad_cqc.eqn = qrdma_le32(1);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, 9, &bad_cqc,
                            sizeof(cqc)), ==, QRDMA_STATUS_BAD_EQN);
    bad_cqc.eqn = qrdma_le32(0xffffffff);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, 9, &bad_cqc,
                            sizeof(cqc)), ==, QRDMA_STATUS_BAD_EQN);
    bad_cqc = cqc;
    bad_cqc.doorbell_page = qrdma_le32(QRDMA_DOORBELL_PAGES);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, 9, &bad_cqc,
                            sizeof(cqc)), ==, QRDMA_STATUS_BAD_DOORBELL_PAGE);
    bad_cqc = cqc;
    bad_cqc.flags = qrdma_le32(QRDMA_CQ_ARMED);
    g_assert_cmpint(command(pair, QRDMA_CMD_CREATE_CQ, 9, &bad_cqc,
                            sizeof(cqc)), ==, QRDMA_STATUS_BAD_RESERVED);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_CQ, 9, NULL, 0), ==,
                    QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_CQ, QRDMA_MAX_CQS, NULL,
                            0), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(command(pair, QRDMA_CMD_DESTROY_EQ, 64, NULL, 0), ==,
                    QRDMA_STATUS_BAD_NUMBER);
}

static void test_modify_refusals(Pair *pair, gconstpointer data)
{
    struct qrdma_eqc eqc = { .reserved[0] = 1 };
    struct qrdma_cqc cqc = { .reserved[0] = 1 };

    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_EQ, 0, &eqc, sizeof(eqc)),
                    ==, QRDMA_STATUS_BAD_RESERVED);
    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_EQ, 9, &eqc, sizeof(eqc)),
                    ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_CQ, 1, &cqc, sizeof(cqc)),
                    ==, QRDMA_STATUS_BAD_RESERVED);
    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_CQ, 9, &cqc, sizeof(cqc)),
                    ==, QRDMA_STATUS_NO_OBJECT);
    cqc = (struct qrdma_cqc) { .eqn = qrdma_le32(9) };
    g_assert_cmpint(command(pair, QRDMA_CMD_MODIFY_CQ, 1, &cqc, sizeof(cqc)),
                    ==, QRDMA_STATUS_BAD_EQN);
    g_assert_cmpint(card_command(pair->link->card, QRDMA_CMD_QUERY_EQ, 9,
                                 NULL, 0, &eqc, sizeof(eqc)), ==,
                    QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(card_command(pair->link->card, QRDMA_CMD_QUERY_CQ, 9,
                                 NULL, 0, &cqc, sizeof(cqc)), ==,
                    QRDMA_STATUS_NO_OBJECT);
}

/* EQ 0 takes the errors, so it comes first. */
static void test_async_eq_first(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_eqc eqc = { .ring = link_ring(CARD_MEMORY_BASE, 4, 5) };
    struct qrdma_cqc cqc = {
        .ring = link_ring(CARD_MEMORY_BASE, 4, 6),
        .eqn = qrdma_le32(1),
    };

    card_must(card, QRDMA_CMD_CREATE_EQ, 1, &eqc, sizeof(eqc));
    g_assert_cmpint(card_command(card, QRDMA_CMD_CREATE_CQ, 1, &cqc,
                                 sizeof(cqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_EQN);
    card_free(card);
}

static void test_query(Pair *pair, gconstpointer data)
{
    struct qrdma_eqc eqc;
    struct qrdma_cqc cqc;
    struct qrdma_ring ring = link_ring(pair->link->cq_a.ring,
                                       LINK_LOG_CQ_ENTRIES,
                                       QRDMA_CQE_LOG_SIZE);

    nop(pair, 0);
    arm_cq(pair, &pair->link->cq_a, QRDMA_DOORBELL_ARM_SOLICITED);
    card_command(pair->link->card, QRDMA_CMD_QUERY_CQ, 1, NULL, 0, &cqc,
                 sizeof(cqc));
    g_assert_cmpmem(&cqc.ring, sizeof(ring), &ring, sizeof(ring));
    g_assert_cmpuint(qrdma_le32(cqc.producer), ==, 1);
    g_assert_cmpuint(qrdma_le32(cqc.consumer), ==, 0);
    g_assert_cmpuint(qrdma_le32(cqc.doorbell_page), ==, LINK_PAGE_A);
    g_assert_cmphex(qrdma_le32(cqc.flags), ==, QRDMA_CQ_ARMED_SOLICITED);
    card_command(pair->link->card, QRDMA_CMD_QUERY_EQ, 0, NULL, 0, &eqc,
                 sizeof(eqc));
    g_assert_cmpuint(qrdma_le32(eqc.vector), ==, LINK_EQ_VECTOR);
    g_assert_cmphex(qrdma_le32(eqc.flags), ==, QRDMA_EQ_ARMED);
    g_assert_cmpuint(qrdma_le32(eqc.producer), ==, 0);
}

/*
 * A number is used again: what was armed, pending and counted is forgotten. An
 * event that is in the EQ already is the driver's to skip. (Case 25.)
 */
static void test_number_used_again(Pair *pair, gconstpointer data)
{
    TestLink *link = pair->link;

    arm_cq(pair, &link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    nop(pair, 0);
    arm_cq(pair, &link->cq_a, QRDMA_DOORBELL_ARM_SOLICITED);
    card_must(link->card, QRDMA_CMD_DESTROY_QP, LINK_QPN_A, NULL, 0);
    card_must(link->card, QRDMA_CMD_DESTROY_CQ, 1, NULL, 0);
    link_make_cq(link, &link->cq_a, 1, LINK_LOG_CQ_ENTRIES, LINK_PAGE_A, 0);
    link_make_qp(link, &link->a, QRDMA_QP_RC, LINK_QPN_A, LINK_PAGE_A,
                 &link->cq_a);
    link_connect(link, &link->a, LINK_QPN_B);
    link_expect_event(link, QRDMA_EVENT_COMPLETION, 1);
    nop(pair, 0);
    link_expect_no_event(link);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_NOP, QRDMA_CQE_SUCCESS);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        PairTest test;
    } tests[] = {
        { "cq/no-event-unless-armed", test_no_event_unless_armed },
        { "cq/next", test_next },
        { "cq/next-with-unread", test_next_with_unread },
        { "cq/next-after-reading", test_next_after_reading },
        { "cq/consumer-only", test_consumer_only },
        { "cq/solicited", test_solicited },
        { "cq/solicited-by-error", test_solicited_by_error },
        { "eq/raises-once", test_eq_raises_once },
        { "eq/vector", test_eq_vector },
        { "eq/full", test_full_eq },
        { "eq/memory-fails", test_eq_memory_fails },
        { "cq/overrun", test_overrun },
        { "cq/overrun-of-receiver", test_overrun_of_receiver },
        { "cq/memory-fails", test_cq_memory_fails },
        { "cq/phase-is-written-last", test_phase_is_written_last },
        { "in-use", test_in_use },
        { "create-refusals", test_create_refusals },
        { "modify-refusals", test_modify_refusals },
        { "query", test_query },
        { "number-used-again", test_number_used_again },
    };

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        pair_add("/events/%s", tests[i].name, NULL, pair_set_up,
                 tests[i].test);
    }
    g_test_add_func("/events/async-eq-first", test_async_eq_first);
    return g_test_run();
}
