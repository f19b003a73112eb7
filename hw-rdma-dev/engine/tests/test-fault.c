/*
 * qrdma engine tests: page faults of on-demand mkeys.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

static void set_up(Pair *pair, gconstpointer data)
{
    pair_set_up_with(pair, NULL, true, 0x100, QRDMA_MKEY_ON_DEMAND);
}

static void set_up_slow(Pair *pair, gconstpointer data)
{
    QrdmaConfig config = card_default_config();

    config.packet_latency = PAIR_LATENCY;
    pair_set_up_with(pair, &config, true, 0x100, QRDMA_MKEY_ON_DEMAND);
}

static enum qrdma_status resume(Pair *pair, uint32_t qpn, uint32_t token,
                                uint32_t failed)
{
    struct qrdma_resume in = {
        .token = qrdma_le32(token),
        .failed = qrdma_le32(failed),
    };

    return card_command(pair->link->card, QRDMA_CMD_RESUME_PAGE_FAULT, qpn, &in,
                        sizeof(in), NULL, 0);
}

static bool suspended(Pair *pair, const TestQp *qp)
{
    return qrdma_le32(link_query(pair->link, qp).flags) & QRDMA_QP_SUSPENDED;
}

/* The event of a's fault; its token. */
static uint32_t expect_fault(Pair *pair, const TestBuffer *buffer,
                             uint64_t offset, uint32_t length, uint8_t flags)
{
    struct qrdma_eqe eqe;

    eqe = link_expect_event(pair->link, QRDMA_EVENT_PAGE_FAULT, LINK_QPN_A);
    g_assert_cmphex(qrdma_le32(eqe.key), ==, buffer->key);
    g_assert_cmphex(qrdma_le64(eqe.address), ==, buffer->address + offset);
    g_assert_cmpuint(qrdma_le32(eqe.length), ==, length);
    g_assert_cmphex(eqe.flags, ==, flags);
    g_assert_cmpuint(eqe.syndrome, ==, 0);
    g_assert_cmphex(qrdma_le32(eqe.token), !=, 0);
    g_assert_true(suspended(pair, &pair->link->a));
    link_expect_no_event(pair->link);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    return qrdma_le32(eqe.token);
}

static void assert_moved(Pair *pair, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++) {
        g_assert_cmphex(link_buffer_byte(pair->to, i), ==,
                        link_pattern(PAIR_SEED, i));
    }
}

/* Offset of the region's second page; it begins at 0x100 of its first. */
#define SECOND (LINK_PAGE - 0x100)

/* Fault on the wire's key, in the middle of a message; twice in one message. */
static void test_remote(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 3 * LINK_PAGE);
    uint8_t flags = QRDMA_EVENT_FLAG_WRITE | QRDMA_EVENT_FLAG_REMOTE;
    uint32_t first, second;

    link_buffer_set_present(pair->link, pair->to, 1, false);
    link_buffer_set_present(pair->link, pair->to, 2, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    first = expect_fault(pair, pair->to, SECOND, 3 * LINK_PAGE - SECOND, flags);
    link_buffer_set_present(pair->link, pair->to, 1, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, first, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    second = expect_fault(pair, pair->to, SECOND + LINK_PAGE,
                          2 * LINK_PAGE - SECOND, flags);
    g_assert_cmphex(second, !=, first);
    g_assert_cmpint(resume(pair, LINK_QPN_A, first, 0), ==,
                    QRDMA_STATUS_BAD_TOKEN);
    link_buffer_set_present(pair->link, pair->to, 2, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, second, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    assert_moved(pair, 3 * LINK_PAGE);
    g_assert_false(suspended(pair, &pair->link->a));
    g_assert_cmpuint(pair->link->engine->counters.page_faults, ==, 2);
    g_assert_cmpuint(pair->link->engine->counters.page_faults_resumed, ==, 2);
    g_assert_cmpint(resume(pair, LINK_QPN_A, second, 0), ==,
                    QRDMA_STATUS_BAD_TOKEN);
}

static void test_local(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 2 * LINK_PAGE);
    uint32_t token;

    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->from, 0, 2 * LINK_PAGE, 0);
    link_buffer_set_present(pair->link, pair->from, 0, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    assert_moved(pair, 2 * LINK_PAGE);
}

/* The receiver's buffer is absent: the sender is what stops. */
static void test_receive(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 2 * LINK_PAGE);
    QrdmaSegment segment = link_segment(pair->to, 0, 3 * LINK_PAGE);
    uint32_t token;

    link_post_receive(pair->link, &pair->link->b, 1, &segment);
    link_buffer_set_present(pair->link, pair->to, 1, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->to, SECOND, 2 * LINK_PAGE - SECOND,
                         QRDMA_EVENT_FLAG_WRITE);
    link_buffer_set_present(pair->link, pair->to, 1, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_SUCCESS);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_SUCCESS);
    assert_moved(pair, 2 * LINK_PAGE);
}

/* An atomic is done once, also if its result has to wait for a page. */
static void test_atomic_result(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_FETCH_ADD, 8);
    uint64_t *word = link_buffer_pointer(pair->to, 0, 8);
    uint32_t token;

    send.swap_or_add = 1;
    *word = qrdma_le64(41);
    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->from, 0, 8, QRDMA_EVENT_FLAG_WRITE);
    link_buffer_set_present(pair->link, pair->from, 0, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_FETCH_ADD,
                QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le64(*word), ==, 42);
    word = link_buffer_pointer(pair->from, 0, 8);
    g_assert_cmpuint(qrdma_le64(*word), ==, 41);
}

/* The driver cannot repair it: the access fails with a reason of its own. */
static void test_failed_local(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    struct qrdma_cqe cqe;
    struct qrdma_eqe eqe;
    uint32_t token;

    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->from, 0, 100, 0);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 1), ==, QRDMA_STATUS_OK);
    cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                      QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_ACCESS_UNRESOLVED);
    g_assert_cmphex(qrdma_le32(cqe.key), ==, pair->from->key);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR,
                            LINK_QPN_A);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_ACCESS_UNRESOLVED);
}

static void test_failed_remote(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_READ, 100);
    struct qrdma_eqe eqe;
    uint32_t token;

    link_buffer_set_present(pair->link, pair->to, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->to, 0, 100, QRDMA_EVENT_FLAG_REMOTE);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 1), ==, QRDMA_STATUS_OK);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_READ,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR,
                            LINK_QPN_B);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_ACCESS_UNRESOLVED);
    g_assert_cmphex(eqe.flags, ==, QRDMA_EVENT_FLAG_REMOTE |
                    QRDMA_EVENT_FLAG_RESPONDER);
}

/* Whatever else the driver says is refused, and the QP stays as it is. */
static void test_bad_resume(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    struct qrdma_resume in = { 0 };
    uint32_t token;

    g_assert_cmpint(resume(pair, LINK_QPN_A, 0, 0), ==, QRDMA_STATUS_BAD_TOKEN);
    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->from, 0, 100, 0);
    g_assert_cmpint(resume(pair, LINK_QPN_A, 0, 0), ==, QRDMA_STATUS_BAD_TOKEN);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token + 1, 1), ==,
                    QRDMA_STATUS_BAD_TOKEN);
    g_assert_cmpint(resume(pair, LINK_QPN_B, token, 0), ==,
                    QRDMA_STATUS_BAD_TOKEN);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 2), ==,
                    QRDMA_STATUS_BAD_FLAGS);
    g_assert_cmpint(resume(pair, 0x3000, token, 0), ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(resume(pair, 1, token, 0), ==, QRDMA_STATUS_BAD_NUMBER);
    in.token = qrdma_le32(token);
    in.reserved[23] = 1;
    g_assert_cmpint(card_command(pair->link->card, QRDMA_CMD_RESUME_PAGE_FAULT,
                                 LINK_QPN_A, &in, sizeof(in), NULL, 0), ==,
                    QRDMA_STATUS_BAD_RESERVED);
    g_assert_true(suspended(pair, &pair->link->a));
    /* Told to go on although nothing is repaired: it faults again. */
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    g_assert_cmphex(expect_fault(pair, pair->from, 0, 100, 0), !=, token);
}

/* A doorbell does not make a suspended queue go on. */
static void test_more_work_waits(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    uint32_t token;

    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->from, 0, 100, 0);
    send.segment[0].address += LINK_PAGE;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_expect_no_event(pair->link);
    link_buffer_set_present(pair->link, pair->from, 0, true);
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 0), ==, QRDMA_STATUS_OK);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
}

typedef enum End {
    SENDER_RESET,
    SENDER_ERROR,
    SENDER_DESTROY,
    RECEIVER_RESET,
    RECEIVER_DESTROY,
} End;

static const char *const ends[] = {
    "sender-reset", "sender-error", "sender-destroy", "receiver-reset",
    "receiver-destroy",
};

/* An end of the connection goes while the fault waits for its repair. */
static void test_end(Pair *pair, gconstpointer data)
{
    End how = GPOINTER_TO_INT(data);
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    TestQp *qp = how >= RECEIVER_RESET ? &pair->link->b : &pair->link->a;
    enum qrdma_status expected = QRDMA_STATUS_BAD_TOKEN;
    uint32_t token;

    link_buffer_set_present(pair->link, pair->to, 0, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    token = expect_fault(pair, pair->to, 0, 100, QRDMA_EVENT_FLAG_WRITE |
                         QRDMA_EVENT_FLAG_REMOTE);
    if (how == SENDER_DESTROY || how == RECEIVER_DESTROY) {
        card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, qp->number, NULL, 0);
    } else {
        g_assert_cmpint(link_set_state(pair->link, qp, how == SENDER_ERROR ?
                                       QRDMA_QP_ERROR : QRDMA_QP_RESET), ==,
                        QRDMA_STATUS_OK);
    }
    if (how == SENDER_DESTROY) {
        expected = QRDMA_STATUS_NO_OBJECT;
    }
    g_assert_cmpint(resume(pair, LINK_QPN_A, token, 1), ==, expected);
    fake_host_settle(pair->link->host);
    link_expect_no_event(pair->link);
    if (how == SENDER_ERROR) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                    QRDMA_CQE_FLUSHED);
    } else if (how >= RECEIVER_RESET) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                    QRDMA_CQE_RETRY_EXCEEDED);
    }
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
}

/*
 * Given a full event queue, the fault's event waits, and comes when there is
 * room; other events are lost and counted.
 */
static void test_event_queue_full(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    unsigned size = 1u << LINK_LOG_EQ_ENTRIES;
    struct qrdma_eqe eqe;
    unsigned seen = 0;

    /* Access errors without anybody who reads them. */
    for (unsigned i = 0; i < size + 3; i++) {
        link_set_state(pair->link, &pair->link->b, QRDMA_QP_RESET);
        link_set_state(pair->link, &pair->link->a, QRDMA_QP_RESET);
        link_connect(pair->link, &pair->link->a, LINK_QPN_B);
        link_connect(pair->link, &pair->link->b, LINK_QPN_A);
        send.segment[0].key = 0x77700;
        link_post_send(pair->link, &pair->link->a, &send);
        fake_host_run(pair->link->host);
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                    QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    }
    g_assert_cmpuint(pair->link->engine->counters.events_lost, ==, 3);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_EVENT_LOST);
    send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    link_buffer_set_present(pair->link, pair->from, 0, false);
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_RESET);
    link_connect(pair->link, &pair->link->a, LINK_QPN_B);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    g_assert_true(suspended(pair, &pair->link->a));
    g_assert_cmpuint(pair->link->engine->counters.events_lost, ==, 3);
    while (seen < size) {
        g_assert_true(link_next_event(pair->link, &pair->link->eq, &eqe));
        g_assert_cmpuint(eqe.type, ==, QRDMA_EVENT_QP_ACCESS_ERROR);
        seen++;
    }
    expect_fault(pair, pair->from, 0, 100, 0);
}

static void add(const char *name, gconstpointer data, PairTest test)
{
    pair_add("/fault/%s", name, data, set_up, test);
    pair_add("/fault-with-latency/%s", name, data, set_up_slow, test);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("remote", NULL, test_remote);
    add("local", NULL, test_local);
    add("receive", NULL, test_receive);
    add("atomic-result", NULL, test_atomic_result);
    add("failed-local", NULL, test_failed_local);
    add("failed-remote", NULL, test_failed_remote);
    add("bad-resume", NULL, test_bad_resume);
    add("more-work-waits", NULL, test_more_work_waits);
    for (int i = 0; i < (int)G_N_ELEMENTS(ends); i++) {
        char *name = g_strdup_printf("end/%s", ends[i]);

        add(name, GINT_TO_POINTER(i), test_end);
        g_free(name);
    }
    add("event-queue-full", NULL, test_event_queue_full);
    return g_test_run();
}
