/*
 * qrdma engine tests: accesses and requests that are refused.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

/* ------------------------------------------------------------ bad accesses */

/* What to break, and what is said then. */
typedef struct BadKey {
    const char *name;
    void (*spoil)(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment);
    enum qrdma_access_error error;
} BadKey;

static void spoil_index(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    segment->key = REGION_KEY(0x9999);
}

static void spoil_variant(Pair *pair, TestBuffer *buffer,
                          QrdmaSegment *segment)
{
    segment->key ^= 1;
}

static void spoil_range(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    segment->address = buffer->address + buffer->length - 50;
}

static void spoil_wrap(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    segment->address = UINT64_MAX - 10;
}

static void spoil_page(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    link_buffer_set_present(pair->link, buffer, 0, false);
}

static void spoil_entry(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    region_set_pble(pair->link->card, &buffer->mkc, 0,
                    CARD_MEMORY_BASE | QRDMA_PBLE_PRESENT | 0x100);
}

static void spoil_bus(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    fake_host_refuse(pair->link->host,
                     g_array_index(buffer->pages, uint64_t, 0), LINK_PAGE,
                     true, true);
}

static void modify_key(Pair *pair, TestBuffer *buffer, uint64_t mask,
                       const QrdmaMkc *mkc)
{
    struct qrdma_modify_mkey in = { .mask = qrdma_le64(mask) };

    qrdma_mkc_encode(mkc, &in.context);
    memset(in.context.reserved, 0, sizeof(in.context.reserved));
    card_must(pair->link->card, QRDMA_CMD_MODIFY_MKEY, buffer->index, &in,
              sizeof(in));
}

static void spoil_free(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    QrdmaMkc mkc = buffer->mkc;

    mkc.flags |= QRDMA_MKEY_FREE;
    modify_key(pair, buffer, QRDMA_UMR_MASK_FREE, &mkc);
}

static void spoil_pd(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    QrdmaMkc mkc = buffer->mkc;

    mkc.pd = REGION_PD + 1;
    modify_key(pair, buffer, QRDMA_UMR_MASK_PD, &mkc);
}

static void spoil_qpn(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    QrdmaMkc mkc = buffer->mkc;

    mkc.qpn = 0x77;
    modify_key(pair, buffer, QRDMA_UMR_MASK_QPN, &mkc);
}

static void spoil_rights(Pair *pair, TestBuffer *buffer, QrdmaSegment *segment)
{
    QrdmaMkc mkc = buffer->mkc;

    mkc.flags = 0;
    modify_key(pair, buffer, QRDMA_UMR_MASK_LOCAL_WRITE |
               QRDMA_UMR_MASK_REMOTE_READ | QRDMA_UMR_MASK_REMOTE_WRITE |
               QRDMA_UMR_MASK_REMOTE_ATOMIC, &mkc);
}

static const BadKey bad_keys[] = {
    { "no-key", spoil_index, QRDMA_ACCESS_NO_KEY },
    { "variant", spoil_variant, QRDMA_ACCESS_VARIANT },
    { "free", spoil_free, QRDMA_ACCESS_FREE },
    { "pd", spoil_pd, QRDMA_ACCESS_PD },
    { "qp", spoil_qpn, QRDMA_ACCESS_QP },
    { "rights", spoil_rights, QRDMA_ACCESS_RIGHTS },
    { "range", spoil_range, QRDMA_ACCESS_RANGE },
    { "wrap", spoil_wrap, QRDMA_ACCESS_RANGE },
    { "not-present", spoil_page, QRDMA_ACCESS_NOT_PRESENT },
    { "bad-entry", spoil_entry, QRDMA_ACCESS_BAD_ENTRY },
    { "bus", spoil_bus, QRDMA_ACCESS_DMA },
};

static void expect_access_event(Pair *pair, uint32_t number,
                                const QrdmaSegment *segment,
                                enum qrdma_access_error error, uint8_t flags)
{
    struct qrdma_eqe eqe;

    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR, number);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, error);
    g_assert_cmphex(qrdma_le32(eqe.key), ==, segment->key);
    g_assert_cmphex(qrdma_le64(eqe.address), ==, segment->address);
    g_assert_cmpuint(qrdma_le32(eqe.length), ==, segment->length);
    g_assert_cmphex(eqe.flags, ==, flags);
    g_assert_cmphex(qrdma_le32(eqe.token), ==, 0);
    link_expect_no_event(pair->link);
}

/* The sender's own memory fails, where it reads and where it writes. */
static void test_local_access(Pair *pair, gconstpointer data)
{
    const BadKey *bad = data;
    /* A local read needs no right of the mkey, so look at a local write. */
    TestSend send = pair_message(pair, QRDMA_SEND_OP_READ, 100);
    struct qrdma_cqe cqe;

    bad->spoil(pair, pair->from, &send.segment[0]);
    link_post_send(pair->link, &pair->link->a, &send);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_READ,
                      QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, bad->error);
    g_assert_cmphex(qrdma_le32(cqe.key), ==, send.segment[0].key);
    g_assert_cmphex(qrdma_le64(cqe.address), ==, send.segment[0].address);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_FLUSHED);
    expect_access_event(pair, LINK_QPN_A, &send.segment[0], bad->error,
                        QRDMA_EVENT_FLAG_WRITE);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
    g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_RTS);
    g_assert_cmpuint(pair->link->engine->counters.access_refused, ==, 1);
}

/* The remote key fails: the requester hears no reason, the responder does. */
static void test_remote_access(Pair *pair, gconstpointer data)
{
    const BadKey *bad = data;
    QrdmaSegment remote = link_segment(pair->to, 0, 100);
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    struct qrdma_cqe cqe;

    pair_post_receive(pair, 100);
    bad->spoil(pair, pair->to, &remote);
    send.remote_address = remote.address;
    send.remote_key = remote.key;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                      QRDMA_CQE_REMOTE_ACCESS_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, 0);
    g_assert_cmphex(qrdma_le32(cqe.key), ==, remote.key);
    expect_access_event(pair, LINK_QPN_B, &remote, bad->error,
                        QRDMA_EVENT_FLAG_WRITE | QRDMA_EVENT_FLAG_RESPONDER |
                        QRDMA_EVENT_FLAG_REMOTE);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_FLUSHED);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
    g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_ERROR);
}

/* The receive buffer fails. */
static void test_receive_access(Pair *pair, gconstpointer data)
{
    const BadKey *bad = data;
    QrdmaSegment segment = link_segment(pair->to, 0, 100);
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 100);
    struct qrdma_cqe cqe;

    bad->spoil(pair, pair->to, &segment);
    link_post_receive(pair->link, &pair->link->b, 1, &segment);
    link_post_receive(pair->link, &pair->link->b, 1, &segment);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                      QRDMA_CQE_LOCAL_ACCESS_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, bad->error);
    g_assert_cmphex(qrdma_le32(cqe.key), ==, segment.key);
    g_assert_cmphex(qrdma_le64(cqe.address), ==, segment.address);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_FLUSHED);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_OPERATION_ERROR);
    expect_access_event(pair, LINK_QPN_B, &segment, bad->error,
                        QRDMA_EVENT_FLAG_WRITE | QRDMA_EVENT_FLAG_RESPONDER);
}

/* Memory that does not answer where it is read. */
static void test_source_fails(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    struct qrdma_cqe cqe;

    spoil_bus(pair, pair->from, NULL);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                      QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_ACCESS_DMA);
    expect_access_event(pair, LINK_QPN_A, &send.segment[0], QRDMA_ACCESS_DMA,
                        0);
}

static void test_remote_source_fails(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_READ, 100);
    QrdmaSegment remote = link_segment(pair->to, 0, 100);

    spoil_bus(pair, pair->to, NULL);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_READ,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_access_event(pair, LINK_QPN_B, &remote, QRDMA_ACCESS_DMA,
                        QRDMA_EVENT_FLAG_RESPONDER | QRDMA_EVENT_FLAG_REMOTE);
}

/* A page in the middle: what came before is there, the rest is not. */
static void test_middle_of_message(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 4 * LINK_PAGE);
    struct qrdma_eqe eqe;

    link_buffer_set_present(pair->link, pair->to, 2, false);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR,
                            LINK_QPN_B);
    g_assert_cmphex(qrdma_le64(eqe.address), ==,
                    pair->to->address + 2 * LINK_PAGE);
    g_assert_cmpuint(qrdma_le32(eqe.length), ==, 2 * LINK_PAGE);
    g_assert_cmphex(link_buffer_byte(pair->to, 2 * LINK_PAGE - 1), ==,
                    link_pattern(PAIR_SEED, 2 * LINK_PAGE - 1));
    g_assert_cmphex(link_buffer_byte(pair->to, 3 * LINK_PAGE + 1), ==, 0);
}

/* A range that ends outside is refused before its first byte moves. */
static void test_range_is_checked_first(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 4 * LINK_PAGE);

    send.remote_address += 1;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    g_assert_cmphex(link_buffer_byte(pair->to, 2), ==, 0);
}

static void test_misaligned_atomic(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_FETCH_ADD, 8);
    struct qrdma_eqe eqe;

    send.remote_address += 4;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_FETCH_ADD,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ACCESS_ERROR,
                            LINK_QPN_B);
    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, QRDMA_ACCESS_MISALIGNED);
}

/* ------------------------------------------------------- responder refuses */

static void test_buffer_too_small(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 101);

    pair_post_receive(pair, 100);
    pair_post_receive(pair, 200);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_INVALID_REQUEST);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_LOCAL_LENGTH_ERROR);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_FLUSHED);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
}

typedef struct BadRequest {
    enum qrdma_send_opcode opcode;
    enum qrdma_cqe_opcode cqe_opcode;
    uint32_t flags;             /* that the responder has */
    uint8_t max_dest_rd_atomic;
} BadRequest;

static const BadRequest bad_requests[] = {
    { QRDMA_SEND_OP_WRITE, QRDMA_CQE_OP_WRITE,
      QRDMA_QP_REMOTE_READ | QRDMA_QP_REMOTE_ATOMIC, 1 },
    { QRDMA_SEND_OP_READ, QRDMA_CQE_OP_READ,
      QRDMA_QP_REMOTE_WRITE | QRDMA_QP_REMOTE_ATOMIC, 1 },
    { QRDMA_SEND_OP_READ, QRDMA_CQE_OP_READ, QRDMA_QP_REMOTE_READ, 0 },
    { QRDMA_SEND_OP_FETCH_ADD, QRDMA_CQE_OP_FETCH_ADD,
      QRDMA_QP_REMOTE_READ | QRDMA_QP_REMOTE_WRITE, 1 },
    { QRDMA_SEND_OP_COMPARE_SWAP, QRDMA_CQE_OP_COMPARE_SWAP,
      QRDMA_QP_REMOTE_ATOMIC, 0 },
};

static void test_responder_refuses(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_requests); i++) {
        const BadRequest *bad = &bad_requests[i];
        Pair storage, *pair = &storage;
        struct qrdma_modify_qp init = link_to_init();
        struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_A);
        TestSend send;
        struct qrdma_eqe eqe;

        pair_set_up_unconnected(pair, NULL);
        init.context.flags = qrdma_le32(bad->flags);
        rtr.context.max_dest_rd_atomic = bad->max_dest_rd_atomic;
        link_connect(pair->link, &pair->link->a, LINK_QPN_B);
        link_modify(pair->link, &pair->link->b, &init);
        link_modify(pair->link, &pair->link->b, &rtr);
        send = pair_message(pair, bad->opcode, 8);
        link_post_send(pair->link, &pair->link->a, &send);
        fake_host_run(pair->link->host);
        link_expect(pair->link, &pair->link->cq_a, bad->cqe_opcode,
                    QRDMA_CQE_REMOTE_INVALID_REQUEST);
        eqe = link_expect_event(pair->link, QRDMA_EVENT_QP_ERROR, LINK_QPN_B);
        g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==,
                         QRDMA_QUEUE_ERROR_REQUEST);
        g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_ERROR);
        pair_tear_down(pair, NULL);
    }
}

/* Reads and atomics that the requester has no resources for. */
static void test_no_rd_atomic(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp init = link_to_init();
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_B);
    struct qrdma_modify_qp rts = link_to_rts();
    TestSend send = pair_message(pair, QRDMA_SEND_OP_READ, 8);

    rts.context.max_rd_atomic = 0;
    link_modify(pair->link, &pair->link->a, &init);
    link_modify(pair->link, &pair->link->a, &rtr);
    link_modify(pair->link, &pair->link->a, &rts);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_READ,
                QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_keys); i++) {
        const BadKey *bad = &bad_keys[i];

        pair_add("/rc-errors/local/%s", bad->name, bad, pair_set_up,
                 test_local_access);
        pair_add("/rc-errors/remote/%s", bad->name, bad, pair_set_up,
                 test_remote_access);
        pair_add("/rc-errors/receive/%s", bad->name, bad, pair_set_up,
                 test_receive_access);
    }
    pair_add("/rc-errors/%s", "source-fails", NULL, pair_set_up,
             test_source_fails);
    pair_add("/rc-errors/%s", "remote-source-fails", NULL, pair_set_up,
             test_remote_source_fails);
    pair_add("/rc-errors/%s", "middle-of-message", NULL, pair_set_up,
             test_middle_of_message);
    pair_add("/rc-errors/%s", "range-is-checked-first", NULL, pair_set_up,
             test_range_is_checked_first);
    pair_add("/rc-errors/%s", "misaligned-atomic", NULL, pair_set_up,
             test_misaligned_atomic);
    pair_add("/rc-errors/%s", "buffer-too-small", NULL, pair_set_up,
             test_buffer_too_small);
    g_test_add_func("/rc-errors/responder-refuses", test_responder_refuses);
    pair_add("/rc-errors/%s", "no-rd-atomic", NULL, pair_set_up_unconnected,
             test_no_rd_atomic);
    return g_test_run();
}
