/*
 * qrdma engine tests: rings of every kind, of the smallest and of the largest
 * size, are full, overrun, and go round; from their first entry, and when their
 * counters of 32 bits run over.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

#define QPN 9u
#define CQN 9u
#define RECEIVE_CQN 10u
#define EQN 1u
#define LOG_EQ_MIN 3u
#define ROUNDS 3

typedef struct Size {
    const char *name;
    unsigned log_entries;
    bool aged;                  /* the counters are a ring before their end */
} Size;

static const Size sizes[] = {
    { "smallest", 0, false },
    { "smallest-wraps", 0, true },
    { "largest", QRDMA_LOG_MAX_RING_ENTRIES, false },
    { "largest-wraps", QRDMA_LOG_MAX_RING_ENTRIES, true },
};

/* ------------------------------------------------------------------- rings */

static uint32_t first_counter(const Size *size, unsigned log_entries)
{
    return size->aged ? 0u - (1u << log_entries) : 0;
}

static void make_cq(TestLink *link, TestReader *cq, uint32_t number,
                    const Size *size, unsigned log_entries, uint32_t eqn)
{
    QrdmaCq *of_card;

    link_make_cq(link, cq, number, log_entries, 0, eqn);
    of_card = qrdma_cq_find(link->engine, number);
    if (size->aged) {
        link_age(link, cq, first_counter(size, log_entries),
                 &of_card->producer, &of_card->consumer);
    }
}

/* A ring of work that has the same WQE in every entry: the card leaves it. */
static struct qrdma_ring same_work(TestLink *link, unsigned log_entries,
                                   unsigned log_stride, const void *wqe,
                                   size_t length)
{
    size_t stride = (size_t)1 << log_stride;
    uint64_t base = card_alloc(link->card, stride << log_entries, LINK_PAGE);
    uint8_t *slots = card_pointer(link->card, base, stride << log_entries);

    for (uint32_t i = 0; i < 1u << log_entries; i++) {
        memcpy(slots + i * stride, wqe, length);
    }
    return link_ring(base, log_entries, log_stride);
}

static void age_qp(TestLink *link, const Size *size)
{
    QrdmaQp *qp = qrdma_qp_find(link->engine, QPN);
    uint32_t first = first_counter(size, size->log_entries);

    qp->send.producer = qp->send.consumer = first;
    qp->receive.producer = qp->receive.consumer = first;
}

static void expect_queue_error(TestLink *link, enum qrdma_event type,
                               uint32_t number, enum qrdma_queue_error error)
{
    struct qrdma_eqe eqe = link_expect_event(link, type, number);

    g_assert_cmpint(qrdma_le16(eqe.syndrome), ==, error);
}

/* --------------------------------------------------- messages to themselves */

static void make_rc(TestLink *link, const Size *size)
{
    TestSend send = {
        .opcode = QRDMA_SEND_OP_SEND, .flags = QRDMA_WQE_SIGNALED,
    };
    struct qrdma_receive_wqe receive = { 0 };
    uint8_t wqe[QRDMA_MAX_SEND_WQE];
    struct qrdma_qpc in = {
        .type = QRDMA_QP_RC,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(CQN),
        .receive_cqn = qrdma_le32(RECEIVE_CQN),
    };
    TestQp qp = { .number = QPN };

    link_send_wqe(&send, wqe);
    in.send_ring = same_work(link, size->log_entries, QRDMA_SEND_WQE_LOG_MIN,
                             wqe, 1u << QRDMA_SEND_WQE_LOG_MIN);
    in.receive_ring = same_work(link, size->log_entries,
                                QRDMA_RECEIVE_WQE_LOG_MIN, &receive,
                                sizeof(receive));
    card_must(link->card, QRDMA_CMD_CREATE_QP, QPN, &in, sizeof(in));
    link_connect(link, &qp, QPN);
    age_qp(link, size);
}

static void expect_round(TestLink *link, TestReader *cq, uint32_t first,
                         uint32_t entries, enum qrdma_cqe_opcode opcode)
{
    for (uint32_t i = 0; i < entries; i++) {
        struct qrdma_cqe cqe = link_expect(link, cq, opcode,
                                           QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, first + i);
    }
    link_expect_no_cqe(link, cq);
}

/* One more than the ring holds is not taken; all that it holds is. */
static void ring_full(TestLink *link, uint32_t offset, uint32_t first,
                      uint32_t entries)
{
    link_doorbell(link, 0, offset, QPN, first + entries + 1);
    fake_host_run(link->host);
    link_doorbell(link, 0, offset, QPN, first + entries);
}

static void test_messages(gconstpointer data)
{
    const Size *size = data;
    uint32_t entries = 1u << size->log_entries;
    uint32_t first = first_counter(size, size->log_entries);
    TestLink *link = link_new_unconnected(NULL);
    TestReader cq, receive_cq;

    make_cq(link, &cq, CQN, size, size->log_entries, 0);
    make_cq(link, &receive_cq, RECEIVE_CQN, size, size->log_entries, 0);
    make_rc(link, size);
    for (unsigned round = 0; round < ROUNDS; round++) {
        ring_full(link, QRDMA_DOORBELL_RECEIVE, first, entries);
        ring_full(link, QRDMA_DOORBELL_SEND, first, entries);
        fake_host_run(link->host);
        expect_round(link, &cq, first, entries, QRDMA_CQE_OP_SEND);
        expect_round(link, &receive_cq, first, entries, QRDMA_CQE_OP_RECV);
        first += entries;
    }
    /* Said once a ring, until it is modified. */
    expect_queue_error(link, QRDMA_EVENT_QP_ERROR, QPN,
                       QRDMA_QUEUE_ERROR_PRODUCER);
    expect_queue_error(link, QRDMA_EVENT_QP_ERROR, QPN,
                       QRDMA_QUEUE_ERROR_PRODUCER);
    link_expect_no_event(link);
    g_assert_cmpuint(link->engine->counters.doorbells_ignored, ==, 2 * ROUNDS);
    link_free(link);
}

/* --------------------------------------------------------------------- UMRs */

static void make_umr(TestLink *link, const Size *size, uint32_t key)
{
    static const enum qrdma_qp_state states[] = {
        QRDMA_QP_INIT, QRDMA_QP_RTR, QRDMA_QP_RTS,
    };
    struct qrdma_umr_wqe wqe = {
        .opcode = QRDMA_SEND_OP_UMR,
        .flags = QRDMA_WQE_SIGNALED,
        .key = qrdma_le32(key),
    };
    struct qrdma_qpc in = {
        .type = QRDMA_QP_UMR,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(CQN),
        .receive_cqn = qrdma_le32(CQN),
    };
    TestQp qp = { .number = QPN };

    in.send_ring = same_work(link, size->log_entries, QRDMA_UMR_WQE_LOG_SIZE,
                             &wqe, sizeof(wqe));
    card_must(link->card, QRDMA_CMD_CREATE_QP, QPN, &in, sizeof(in));
    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        g_assert_cmpint(link_set_state(link, &qp, states[i]), ==,
                        QRDMA_STATUS_OK);
    }
    age_qp(link, size);
}

/* UMRs that fill the CQ are all there; one more is one too many. */
static void test_umr(gconstpointer data)
{
    const Size *size = data;
    uint32_t entries = 1u << size->log_entries;
    uint32_t first = first_counter(size, size->log_entries);
    TestLink *link = link_new_unconnected(NULL);
    TestBuffer *buffer = link_buffer(link, 0, 12, 0, LINK_PAGE, 0);
    TestReader cq;

    make_cq(link, &cq, CQN, size, size->log_entries, 0);
    make_umr(link, size, buffer->key);
    for (unsigned round = 0; round < ROUNDS; round++) {
        link_doorbell(link, 0, QRDMA_DOORBELL_SEND, QPN, first + entries);
        fake_host_run(link->host);
        if (round < ROUNDS - 1) {
            expect_round(link, &cq, first, entries, QRDMA_CQE_OP_UMR);
        }
        first += entries;
    }
    link_expect_no_event(link);
    link_doorbell(link, 0, QRDMA_DOORBELL_SEND, QPN, first + 1);
    fake_host_run(link->host);
    expect_queue_error(link, QRDMA_EVENT_CQ_ERROR, CQN,
                       QRDMA_QUEUE_ERROR_OVERRUN);
    expect_queue_error(link, QRDMA_EVENT_QP_ERROR, QPN, QRDMA_QUEUE_ERROR_CQ);
    /* What was there before is there. */
    expect_round(link, &cq, first - entries, entries, QRDMA_CQE_OP_UMR);
    link_buffer_free(buffer);
    link_free(link);
}

/* ------------------------------------------------------------------- events */

static void make_eq(TestLink *link, TestReader *eq, const Size *size,
                    unsigned log_entries)
{
    QrdmaEq *of_card;

    link_make_eq(link, eq, EQN, log_entries, 0);
    of_card = qrdma_eq_find(link->engine, EQN);
    if (size->aged) {
        link_age(link, eq, first_counter(size, log_entries),
                 &of_card->producer, &of_card->consumer);
    }
}

static void one_completion(TestLink *link, TestReader *cq, TestQp *qp)
{
    static const TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };

    link_arm(link, cq, QRDMA_DOORBELL_ARM_NEXT);
    link_post_send(link, qp, &nop);
    fake_host_run(link->host);
    link_expect(link, cq, QRDMA_CQE_OP_NOP, QRDMA_CQE_SUCCESS);
}

/* The event that finds no room comes when there is some. */
static void test_events(gconstpointer data)
{
    const Size *size = data;
    unsigned log_entries = MAX(size->log_entries, LOG_EQ_MIN);
    uint32_t entries = 1u << log_entries;
    TestLink *link = link_new_unconnected(NULL);
    QrdmaEq *of_card;
    TestReader eq, cq;
    TestQp qp;

    make_eq(link, &eq, size, log_entries);
    of_card = qrdma_eq_find(link->engine, EQN);
    make_cq(link, &cq, CQN, size, 0, EQN);
    link_make_qp(link, &qp, QRDMA_QP_RC, QPN, 0, &cq);
    link_connect(link, &qp, QPN);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t producer = of_card->producer;
        struct qrdma_eqe eqe;

        for (uint32_t i = 0; i < entries + 1; i++) {
            one_completion(link, &cq, &qp);
        }
        g_assert_cmpuint(of_card->producer, ==, producer + entries);
        for (uint32_t i = 0; i < entries + 1; i++) {
            g_assert_true(link_next_event(link, &eq, &eqe));
            g_assert_cmpint(eqe.type, ==, QRDMA_EVENT_COMPLETION);
            g_assert_cmpuint(qrdma_le32(eqe.number), ==, CQN);
        }
        g_assert_false(link_next_event(link, &eq, &eqe));
    }
    g_assert_cmpuint(link->engine->counters.events_lost, ==, 0);
    link_expect_no_event(link);
    link_free(link);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(gconstpointer data);
    } tests[] = {
        { "messages", test_messages },
        { "umr", test_umr },
        { "events", test_events },
    };

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
            g_autofree char *path = g_strdup_printf("/ring-size/%s/%s",
                                                    tests[i].name,
                                                    sizes[s].name);

            g_test_add_data_func(path, &sizes[s], tests[i].test);
        }
    }
    return g_test_run();
}
