/*
 * qrdma engine tests: what a hostile program writes into queues and doorbells.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

static uint64_t ignored(Pair *pair)
{
    return pair->link->engine->counters.doorbells_ignored;
}

/* --------------------------------------------------------- doorbells: form */

typedef struct BadDoorbell {
    const char *name;
    uint32_t page;
    uint32_t offset;
    uint32_t low;
    uint32_t counter;
    unsigned size;
} BadDoorbell;

/* No event follows: the writer may have nothing to do with the queue. */
static const BadDoorbell bad_doorbells[] = {
    { "send-of-another-page", LINK_PAGE_B, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1,
      8 },
    { "receive-of-another-page", 0, QRDMA_DOORBELL_RECEIVE, LINK_QPN_A, 1, 8 },
    { "cq-of-another-page", LINK_PAGE_B, QRDMA_DOORBELL_CQ, 1, 0, 8 },
    { "eq-of-a-user-page", LINK_PAGE_A, QRDMA_DOORBELL_EQ, 0, 0, 8 },
    { "1-byte", LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1, 1 },
    { "2-bytes", LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1, 2 },
    { "4-bytes", LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1, 4 },
    { "misaligned", LINK_PAGE_A, QRDMA_DOORBELL_SEND + 1, LINK_QPN_A, 1, 8 },
    { "half", LINK_PAGE_A, QRDMA_DOORBELL_SEND + 4, LINK_QPN_A, 1, 8 },
    { "no-such-doorbell", LINK_PAGE_A, 0x20, LINK_QPN_A, 1, 8 },
    { "end-of-page", LINK_PAGE_A, 0xff8, LINK_QPN_A, 1, 8 },
    { "no-qp", LINK_PAGE_A, QRDMA_DOORBELL_SEND, 0x3000, 1, 8 },
    { "qpn-out-of-range", LINK_PAGE_A, QRDMA_DOORBELL_SEND, 0xffffff, 1, 8 },
    { "qpn-0", 0, QRDMA_DOORBELL_SEND, 0, 1, 8 },
    { "qpn-with-more-bits", LINK_PAGE_A, QRDMA_DOORBELL_SEND,
      LINK_QPN_A | 1u << 24, 1, 8 },
    { "no-cq", LINK_PAGE_A, QRDMA_DOORBELL_CQ, 0xffffff, 0, 8 },
    { "cq-arm-3", LINK_PAGE_A, QRDMA_DOORBELL_CQ, 1 | 3u << 30, 0, 8 },
    { "cq-unused-bits", LINK_PAGE_A, QRDMA_DOORBELL_CQ, 1 | 1u << 29, 0, 8 },
    { "no-eq", 0, QRDMA_DOORBELL_EQ, 63, 0, 8 },
    { "eqn-out-of-range", 0, QRDMA_DOORBELL_EQ, 64, 0, 8 },
    { "eq-arm-solicited", 0, QRDMA_DOORBELL_EQ, 2u << 30, 0, 8 },
    { "eq-consumer-ahead", 0, QRDMA_DOORBELL_EQ, 0, 1, 8 },
    { "eq-consumer-far-behind", 0, QRDMA_DOORBELL_EQ, 0, -65u, 8 },
};

static void test_bad_doorbell(Pair *pair, gconstpointer data)
{
    const BadDoorbell *bad = data;
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    uint8_t wqe[QRDMA_MAX_SEND_WQE];

    link_send_wqe(&nop, wqe);
    link_put_send(pair->link, &pair->link->a, wqe, sizeof(wqe));
    qrdma_engine_doorbell(pair->link->engine, bad->page, bad->offset,
                          (uint64_t)bad->counter << 32 | bad->low, bad->size);
    g_assert_cmpuint(ignored(pair), ==, 1);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);
    qrdma_engine_register_write(pair->link->engine, QRDMA_REG_STATUS,
                                QRDMA_CARD_DOORBELL_ERROR, 4);
    g_assert_cmphex(card_register(pair->link->card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY);
    fake_host_run(pair->link->host);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_expect_no_event(pair->link);
    g_assert_cmpuint(pair->link->host->interrupts[LINK_EQ_VECTOR], ==, 0);
}

static void test_receive_of_umr_queue(Pair *pair, gconstpointer data)
{
    link_add_umr(pair->link);
    link_doorbell(pair->link, 0, QRDMA_DOORBELL_RECEIVE, LINK_UMR_QPN, 0);
    g_assert_cmpuint(ignored(pair), ==, 1);
}

static void test_queue_in_reset(Pair *pair, gconstpointer data)
{
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_RESET);
    link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 1);
    g_assert_cmpuint(ignored(pair), ==, 1);
    fake_host_run(pair->link->host);
    link_expect_no_event(pair->link);
}

/* A doorbell does nothing by itself. */
static void test_no_work_in_doorbell(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 100);
    unsigned reads = pair->link->host->reads;
    unsigned writes = pair->link->host->writes;

    link_post_send(pair->link, &pair->link->a, &send);
    link_arm(pair->link, &pair->link->cq_a, QRDMA_DOORBELL_ARM_NEXT);
    link_arm(pair->link, &pair->link->eq, QRDMA_DOORBELL_ARM_NEXT);
    link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A,
                  1000);
    g_assert_cmpuint(pair->link->host->reads, ==, reads);
    g_assert_cmpuint(pair->link->host->writes, ==, writes);
    g_assert_true(pair->link->host->scheduled);
}

/* ----------------------------------------------------- doorbells: counters */

static void expect_queue_error(Pair *pair, enum qrdma_event type,
                               uint32_t number,
                               enum qrdma_queue_error syndrome)
{
    struct qrdma_eqe eqe = link_expect_event(pair->link, type, number);

    g_assert_cmpuint(qrdma_le16(eqe.syndrome), ==, syndrome);
}

/* (Case 41.) All slots at once are fine; more are not, and change nothing. */
static void test_producer(Pair *pair, gconstpointer data)
{
    static const uint32_t bad[] = {
        LINK_ENTRIES + 1, 0xffff, 0x10000, 0x80000000, 0xffffffff,
    };
    struct qrdma_modify_qp rts = {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE),
        .context.state = QRDMA_QP_RTS,
    };
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        for (unsigned n = 0; n < 100; n++) {
            link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND,
                          LINK_QPN_A, bad[i]);
            fake_host_run(pair->link->host);
        }
        g_assert_cmpuint(ignored(pair), ==, 100 * (i + 1));
        /* One event until the driver has looked after the queue. */
        expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_A,
                           QRDMA_QUEUE_ERROR_PRODUCER);
        link_expect_no_event(pair->link);
        g_assert_cmpint(link_modify(pair->link, &pair->link->a, &rts), ==,
                        QRDMA_STATUS_OK);
    }
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_RTS);
    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        uint8_t wqe[QRDMA_MAX_SEND_WQE];

        link_send_wqe(&nop, wqe);
        link_put_send(pair->link, &pair->link->a, wqe, sizeof(wqe));
    }
    link_ring_send(pair->link, &pair->link->a);
    fake_host_run(pair->link->host);
    for (unsigned i = 0; i < LINK_ENTRIES; i++) {
        link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_NOP,
                    QRDMA_CQE_SUCCESS);
    }
    /* Back to what is done already. */
    link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 3);
    fake_host_run(pair->link->host);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_A,
                       QRDMA_QUEUE_ERROR_PRODUCER);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
}

/* The producer goes back while the WQE that it named is in work. */
static void test_producer_goes_back(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, PAIR_LENGTH);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A, 0);
    g_assert_cmpuint(ignored(pair), ==, 1);
    fake_host_settle(pair->link->host);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_A,
                       QRDMA_QUEUE_ERROR_PRODUCER);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
}

static void test_receive_producer(Pair *pair, gconstpointer data)
{
    link_doorbell(pair->link, LINK_PAGE_B, QRDMA_DOORBELL_RECEIVE, LINK_QPN_B,
                  LINK_ENTRIES + 1);
    link_doorbell(pair->link, LINK_PAGE_B, QRDMA_DOORBELL_RECEIVE, LINK_QPN_B,
                  0xffffffff);
    fake_host_run(pair->link->host);
    g_assert_cmpuint(ignored(pair), ==, 2);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_B,
                       QRDMA_QUEUE_ERROR_PRODUCER);
    link_expect_no_event(pair->link);
}

static void test_consumer(Pair *pair, gconstpointer data)
{
    uint32_t bad[] = { 1, 0xffff, -(1u << LINK_LOG_CQ_ENTRIES) - 1 };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        for (unsigned n = 0; n < 10; n++) {
            link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_CQ,
                          1 | 1u << 30, bad[i]);
            fake_host_run(pair->link->host);
        }
        g_assert_cmpuint(ignored(pair), ==, 10 * (i + 1));
        expect_queue_error(pair, QRDMA_EVENT_CQ_ERROR, 1,
                           QRDMA_QUEUE_ERROR_CONSUMER);
        link_expect_no_event(pair->link);
        card_must(pair->link->card, QRDMA_CMD_MODIFY_CQ, 1,
                  &(struct qrdma_cqc) { 0 }, sizeof(struct qrdma_cqc));
    }
    g_assert_false(qrdma_cq_find(pair->link->engine, 1)->armed);
}

/* The event of a bad counter does not outlive its queue. */
static void test_report_of_destroyed_queue(Pair *pair, gconstpointer data)
{
    link_doorbell(pair->link, LINK_PAGE_A, QRDMA_DOORBELL_SEND, LINK_QPN_A,
                  LINK_ENTRIES + 1);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, LINK_QPN_A, NULL, 0);
    link_expect_no_event(pair->link);
}

/* --------------------------------------------------------------- send WQEs */

typedef struct BadWqe {
    const char *name;
    void (*spoil)(struct qrdma_send_wqe *wqe);
    enum qrdma_wqe_error error;
} BadWqe;

static void opcode_9(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = 9;
}

static void opcode_255(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = 255;
}

static void unknown_flag(struct qrdma_send_wqe *wqe)
{
    wqe->flags |= 0x10;
}

static void inline_read(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_READ;
    wqe->flags |= QRDMA_WQE_INLINE;
}

static void inline_atomic(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_FETCH_ADD;
    wqe->flags |= QRDMA_WQE_INLINE;
}

static void reserved0(struct qrdma_send_wqe *wqe)
{
    wqe->reserved0 = 1;
}

static void reserved1(struct qrdma_send_wqe *wqe)
{
    wqe->reserved1 = 1;
}

static void reserved2(struct qrdma_send_wqe *wqe)
{
    wqe->reserved2[15] = 1;
}

static void send_with_remote_key(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_SEND;
    wqe->remote_address = 0;
}

static void write_with_compare(struct qrdma_send_wqe *wqe)
{
    wqe->compare = 1;
}

static void add_with_compare(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_FETCH_ADD;
    wqe->compare = 1;
}

static void segments_29(struct qrdma_send_wqe *wqe)
{
    wqe->num_sge = qrdma_le32(QRDMA_MAX_SGE + 1);
}

static void segments_all(struct qrdma_send_wqe *wqe)
{
    wqe->num_sge = qrdma_le32(0xffffffff);
}

/* 2^28 + 1 segments of 16 bytes: 32 bits would take them for one. */
static void segments_that_wrap(struct qrdma_send_wqe *wqe)
{
    wqe->num_sge = qrdma_le32((1u << 28) + 1);
}

static void inline_with_segments(struct qrdma_send_wqe *wqe)
{
    wqe->flags |= QRDMA_WQE_INLINE;
}

static void nop_with_segments(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_NOP;
    wqe->remote_address = 0;
    wqe->remote_key = 0;
}

static void inline_too_long(struct qrdma_send_wqe *wqe)
{
    wqe->flags |= QRDMA_WQE_INLINE;
    wqe->num_sge = 0;
    wqe->inline_length = qrdma_le32(QRDMA_MAX_INLINE + 1);
}

static void inline_all(struct qrdma_send_wqe *wqe)
{
    wqe->flags |= QRDMA_WQE_INLINE;
    wqe->num_sge = 0;
    wqe->inline_length = qrdma_le32(0xffffffff);
}

static void length_without_inline(struct qrdma_send_wqe *wqe)
{
    wqe->inline_length = qrdma_le32(1);
}

static void set_length(struct qrdma_send_wqe *wqe, uint32_t length)
{
    struct qrdma_sge *sge = (struct qrdma_sge *)(wqe + 1);

    sge->length = qrdma_le32(length);
}

static void too_long(struct qrdma_send_wqe *wqe)
{
    set_length(wqe, QRDMA_MAX_MESSAGE_SIZE + 1);
}

/* 28 segments of 2^32 - 1 bytes. */
static void far_too_long(struct qrdma_send_wqe *wqe)
{
    struct qrdma_sge *sge = (struct qrdma_sge *)(wqe + 1);

    wqe->num_sge = qrdma_le32(QRDMA_MAX_SGE);
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        sge[i].length = 0xffffffff;
    }
}

static void atomic_of_4(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_FETCH_ADD;
    set_length(wqe, 4);
}

static void atomic_of_16(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_COMPARE_SWAP;
    set_length(wqe, 16);
}

static void atomic_of_0(struct qrdma_send_wqe *wqe)
{
    wqe->opcode = QRDMA_SEND_OP_COMPARE_SWAP;
    wqe->num_sge = 0;
}

static const BadWqe bad_wqes[] = {
    { "opcode-9", opcode_9, QRDMA_WQE_OPCODE },
    { "opcode-255", opcode_255, QRDMA_WQE_OPCODE },
    { "unknown-flag", unknown_flag, QRDMA_WQE_FLAGS },
    { "inline-read", inline_read, QRDMA_WQE_FLAGS },
    { "inline-atomic", inline_atomic, QRDMA_WQE_FLAGS },
    { "reserved0", reserved0, QRDMA_WQE_RESERVED },
    { "reserved1", reserved1, QRDMA_WQE_RESERVED },
    { "reserved2", reserved2, QRDMA_WQE_RESERVED },
    { "send-with-remote-key", send_with_remote_key, QRDMA_WQE_RESERVED },
    { "write-with-compare", write_with_compare, QRDMA_WQE_RESERVED },
    { "add-with-compare", add_with_compare, QRDMA_WQE_RESERVED },
    { "segments-29", segments_29, QRDMA_WQE_NUM_SGE },
    { "segments-all", segments_all, QRDMA_WQE_NUM_SGE },
    { "segments-that-wrap", segments_that_wrap, QRDMA_WQE_NUM_SGE },
    { "inline-with-segments", inline_with_segments, QRDMA_WQE_NUM_SGE },
    { "nop-with-segments", nop_with_segments, QRDMA_WQE_NUM_SGE },
    { "inline-too-long", inline_too_long, QRDMA_WQE_INLINE_LENGTH },
    { "inline-all", inline_all, QRDMA_WQE_INLINE_LENGTH },
    { "length-without-inline", length_without_inline,
      QRDMA_WQE_INLINE_LENGTH },
    { "too-long", too_long, QRDMA_WQE_LENGTH },
    { "far-too-long", far_too_long, QRDMA_WQE_LENGTH },
    { "atomic-of-4", atomic_of_4, QRDMA_WQE_LENGTH },
    { "atomic-of-16", atomic_of_16, QRDMA_WQE_LENGTH },
    { "atomic-of-0", atomic_of_0, QRDMA_WQE_LENGTH },
};

/* (Case 42.) One error completion, the rest is flushed, nothing has moved. */
static void test_bad_wqe(Pair *pair, gconstpointer data)
{
    const BadWqe *bad = data;
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 8);
    union {
        struct qrdma_send_wqe header;
        uint8_t bytes[QRDMA_MAX_SEND_WQE];
    } wqe;
    struct qrdma_cqe cqe;

    link_send_wqe(&send, wqe.bytes);
    wqe.header.flags = 0;
    bad->spoil(&wqe.header);
    link_put_send(pair->link, &pair->link->a, &wqe, sizeof(wqe));
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    g_assert_true(link_poll(pair->link, &pair->link->cq_a, &cqe));
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, bad->error);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_FLUSHED);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
    g_assert_cmpint(pair_state(pair, &pair->link->b), ==, QRDMA_QP_RTS);
    g_assert_cmphex(link_buffer_byte(pair->to, 1), ==, 0);
}

/* Segments that a short slot has no room for: nothing behind it is read. */
static void test_short_slots(void)
{
    QrdmaReceiveRequest *receive = g_new0(QrdmaReceiveRequest, 1);
    QrdmaSendRequest *send = g_new0(QrdmaSendRequest, 1);

    for (unsigned log = 5; log <= 9; log++) {
        size_t size = 1u << log;
        uint8_t *slot = g_malloc0(size);
        uint32_t room = MIN((size - 16) / 16, QRDMA_MAX_SGE);
        uint32_t *words = (uint32_t *)slot;

        words[0] = qrdma_le32(room);
        g_assert_cmpint(qrdma_wqe_parse_receive(slot, size, receive), ==,
                        QRDMA_WQE_OK);
        words[0] = qrdma_le32(room + 1);
        g_assert_cmpint(qrdma_wqe_parse_receive(slot, size, receive), ==,
                        QRDMA_WQE_NUM_SGE);
        words[0] = 0;
        if (log >= QRDMA_SEND_WQE_LOG_MIN) {
            room = MIN((size - 64) / 16, QRDMA_MAX_SGE);
            words[1] = qrdma_le32(room);
            g_assert_cmpint(qrdma_wqe_parse_send(slot, size, send), ==,
                            QRDMA_WQE_OK);
            words[1] = qrdma_le32(room + 1);
            g_assert_cmpint(qrdma_wqe_parse_send(slot, size, send), ==,
                            QRDMA_WQE_NUM_SGE);
            words[1] = 0;
            slot[1] = QRDMA_WQE_INLINE;
            words[2] = qrdma_le32(size - 64);
            g_assert_cmpint(qrdma_wqe_parse_send(slot, size, send), ==,
                            QRDMA_WQE_OK);
            words[2] = qrdma_le32(size - 63);
            g_assert_cmpint(qrdma_wqe_parse_send(slot, size, send), ==,
                            QRDMA_WQE_INLINE_LENGTH);
        }
        g_free(slot);
    }
    g_free(receive);
    g_free(send);
}

static void check_bad_receive(uint32_t segments, uint8_t reserved,
                              enum qrdma_wqe_error error)
{
    Pair storage, *pair = &storage;
    struct qrdma_receive_wqe wqe = { .num_sge = qrdma_le32(segments) };
    TestSend send;
    struct qrdma_cqe cqe;

    pair_set_up(pair, NULL);
    wqe.reserved[11] = reserved;
    link_put_receive(pair->link, &pair->link->b, &wqe, sizeof(wqe));
    link_ring_receive(pair->link, &pair->link->b);
    send = pair_message(pair, QRDMA_SEND_OP_SEND, 8);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    cqe = link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                      QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, error);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_OPERATION_ERROR);
    pair_tear_down(pair, NULL);
}

static void test_bad_receive(void)
{
    check_bad_receive(QRDMA_MAX_SGE + 1, 0, QRDMA_WQE_NUM_SGE);
    check_bad_receive(0xffffffff, 0, QRDMA_WQE_NUM_SGE);
    check_bad_receive((1u << 28) + 1, 0, QRDMA_WQE_NUM_SGE);
    check_bad_receive(1, 1, QRDMA_WQE_RESERVED);
}

/* --------------------------------------------- memory that changes or goes */

/* As soon as the card has read the slot, a vCPU writes rubbish over it. */
static uint64_t target;
static unsigned target_reads;
static FakeHost *target_host;
static bool (*real_read)(void *opaque, uint64_t address, void *buffer,
                         size_t length);

static bool flip_after_read(void *opaque, uint64_t address, void *buffer,
                            size_t length)
{
    bool good = real_read(opaque, address, buffer, length);

    if (address < target + QRDMA_MAX_SEND_WQE && address + length > target) {
        target_reads++;
        memset(fake_host_pointer(target_host, target, QRDMA_MAX_SEND_WQE),
               0xff, QRDMA_MAX_SEND_WQE);
    }
    return good;
}

static void flip(Pair *pair, uint64_t slot)
{
    target = slot;
    target_reads = 0;
    target_host = pair->link->host;
    real_read = pair->link->host->ops.dma_read;
    pair->link->host->ops.dma_read = flip_after_read;
}

/* (Case 43.) The copy is what counts: one read, and the message goes well. */
static void test_slot_changes(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, PAIR_LENGTH);

    flip(pair, pair->link->a.send_ring);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(target_reads, ==, 1);
    g_assert_cmphex(link_buffer_byte(pair->to, PAIR_LENGTH - 1), ==,
                    link_pattern(PAIR_SEED, PAIR_LENGTH - 1));
}

static void test_receive_slot_changes(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, PAIR_LENGTH);

    flip(pair, pair->link->b.receive_ring);
    pair_post_receive(pair, PAIR_LENGTH);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(target_reads, ==, 1);
    g_assert_cmphex(link_buffer_byte(pair->to, PAIR_LENGTH - 1), ==,
                    link_pattern(PAIR_SEED, PAIR_LENGTH - 1));
}

/* (Case 47.) A ring whose memory does not answer. */
static void test_send_ring_fails(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 8);

    fake_host_refuse(pair->link->host, pair->link->a.send_ring, LINK_PAGE,
                     true, true);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_A,
                       QRDMA_QUEUE_ERROR_DMA);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_FLUSHED);
}

static void test_receive_ring_fails(Pair *pair, gconstpointer data)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, 8);

    pair_post_receive(pair, 8);
    fake_host_refuse(pair->link->host, pair->link->b.receive_ring, LINK_PAGE,
                     true, true);
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_QPN_B,
                       QRDMA_QUEUE_ERROR_DMA);
    link_expect(pair->link, &pair->link->cq_b, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_FLUSHED);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_OPERATION_ERROR);
}

static void test_umr_ring_fails(Pair *pair, gconstpointer data)
{
    link_add_umr(pair->link);
    fake_host_refuse(pair->link->host, pair->link->umr.send_ring, LINK_PAGE,
                     true, true);
    link_doorbell(pair->link, 0, QRDMA_DOORBELL_SEND, LINK_UMR_QPN, 1);
    fake_host_run(pair->link->host);
    expect_queue_error(pair, QRDMA_EVENT_QP_ERROR, LINK_UMR_QPN,
                       QRDMA_QUEUE_ERROR_DMA);
    link_expect(pair->link, &pair->link->cq_umr, QRDMA_CQE_OP_UMR,
                QRDMA_CQE_FLUSHED);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        PairTest test;
    } tests[] = {
        { "doorbell/receive-of-umr-queue", test_receive_of_umr_queue },
        { "doorbell/queue-in-reset", test_queue_in_reset },
        { "doorbell/no-work", test_no_work_in_doorbell },
        { "doorbell/producer", test_producer },
        { "doorbell/receive-producer", test_receive_producer },
        { "doorbell/consumer", test_consumer },
        { "doorbell/of-destroyed-queue", test_report_of_destroyed_queue },
        { "slot-changes", test_slot_changes },
        { "receive-slot-changes", test_receive_slot_changes },
        { "send-ring-fails", test_send_ring_fails },
        { "receive-ring-fails", test_receive_ring_fails },
        { "umr-ring-fails", test_umr_ring_fails },
    };

    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_doorbells); i++) {
        pair_add("/hostile/doorbell/%s", bad_doorbells[i].name,
                 &bad_doorbells[i], pair_set_up, test_bad_doorbell);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_wqes); i++) {
        pair_add("/hostile/wqe/%s", bad_wqes[i].name, &bad_wqes[i],
                 pair_set_up, test_bad_wqe);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        pair_add("/hostile/%s", tests[i].name, NULL, pair_set_up,
                 tests[i].test);
    }
    pair_add("/hostile/doorbell/%s", "producer-goes-back", NULL,
             pair_set_up_slow, test_producer_goes_back);
    g_test_add_func("/hostile/short-slots", test_short_slots);
    g_test_add_func("/hostile/bad-receive", test_bad_receive);
    return g_test_run();
}
