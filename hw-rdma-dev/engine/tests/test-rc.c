/*
 * qrdma engine tests: what a reliable connection moves.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-link.h"

static TestSend send_of(enum qrdma_send_opcode opcode, QrdmaSegment segment)
{
    return (TestSend) {
        .opcode = opcode,
        .flags = QRDMA_WQE_SIGNALED,
        .segments = 1,
        .segment = { segment },
    };
}

static TestSend remote_of(enum qrdma_send_opcode opcode, QrdmaSegment segment,
                          const TestBuffer *remote, uint64_t offset)
{
    TestSend send = send_of(opcode, segment);

    send.remote_address = remote->address + offset;
    send.remote_key = remote->key;
    return send;
}

static void assert_moved(TestBuffer *to, uint64_t to_offset, uint8_t seed,
                         uint64_t from_offset, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++) {
        g_assert_cmphex(link_buffer_byte(to, to_offset + i), ==,
                        link_pattern(seed, from_offset + i));
    }
}

/* ------------------------------------------ every opcode, level and length */

typedef struct Shape {
    unsigned level;
    unsigned log_page_size;
    uint64_t offset;            /* of the region's first byte in its page */
    uint64_t length;            /* of the region */
} Shape;

static const Shape shapes[] = {
    { 0, 12, 0, 4096 },
    { 0, 16, 0x234, 40000 },
    { 1, 12, 0, 16 * 4096 },
    { 1, 12, 0xabc, 9 * 4096 + 17 },
    { 1, 16, 0x7234, 5 * 65536 },
    { 2, 12, 0x18, 513 * 4096 },
};

static const uint32_t lengths[] = { 0, 1, 8, 1023, 1024, 1025, 4096, 30000 };

static void check_send(TestLink *link, TestBuffer *from, TestBuffer *to,
                       uint32_t length)
{
    QrdmaSegment receive = link_segment(to, 5, to->length - 5);
    TestSend send = send_of(QRDMA_SEND_OP_SEND_IMM,
                            link_segment(from, 3, length));
    struct qrdma_cqe cqe;

    send.immediate = 0xaabbccdd;
    link_buffer_fill(to, 0);
    link_post_receive(link, &link->b, 1, &receive);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    cqe = link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV,
                      QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.byte_length), ==, length);
    g_assert_cmphex(cqe.immediate, ==, 0xaabbccdd);
    g_assert_cmphex(cqe.flags, ==, QRDMA_CQE_FLAG_IMMEDIATE);
    g_assert_cmphex(qrdma_le32(cqe.qpn), ==, LINK_QPN_B);
    g_assert_cmphex(qrdma_le32(cqe.remote_qpn), ==, LINK_QPN_A);
    cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND,
                      QRDMA_CQE_SUCCESS);
    g_assert_cmphex(qrdma_le32(cqe.qpn), ==, LINK_QPN_A);
    assert_moved(to, 5, 9, 3, length);
    assert_moved(to, 5 + length, 0, 5 + length, 16);
    assert_moved(to, 0, 0, 0, 5);
}

static void check_write(TestLink *link, TestBuffer *from, TestBuffer *to,
                        uint32_t length)
{
    TestSend send = remote_of(QRDMA_SEND_OP_WRITE,
                              link_segment(from, 3, length), to, 7);
    struct qrdma_cqe cqe;

    link_buffer_fill(to, 0);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE,
                      QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.byte_length), ==, length);
    assert_moved(to, 7, 9, 3, length);
    assert_moved(to, 7 + length, 0, 7 + length, 16);
    assert_moved(to, 0, 0, 0, 7);
    link_expect_no_cqe(link, &link->cq_b);
}

static void check_read(TestLink *link, TestBuffer *from, TestBuffer *to,
                       uint32_t length)
{
    TestSend send = remote_of(QRDMA_SEND_OP_READ, link_segment(to, 7, length),
                              from, 3);
    struct qrdma_cqe cqe;

    link_buffer_fill(to, 0);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_READ,
                      QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.byte_length), ==, length);
    assert_moved(to, 7, 9, 3, length);
    assert_moved(to, 7 + length, 0, 7 + length, 16);
}

static void test_moves(void)
{
    for (unsigned f = 0; f < G_N_ELEMENTS(shapes); f++) {
        for (unsigned t = 0; t < G_N_ELEMENTS(shapes); t++) {
            const Shape *from_shape = &shapes[f];
            const Shape *to_shape = &shapes[t];
            TestLink *link = link_new(NULL);
            TestBuffer *from = link_buffer(link, from_shape->level,
                                           from_shape->log_page_size,
                                           from_shape->offset,
                                           from_shape->length, 0);
            TestBuffer *to = link_buffer(link, to_shape->level,
                                         to_shape->log_page_size,
                                         to_shape->offset, to_shape->length,
                                         0);

            link_buffer_fill(from, 9);
            for (unsigned i = 0; i < G_N_ELEMENTS(lengths); i++) {
                if (lengths[i] + 32 <= MIN(from->length, to->length)) {
                    check_send(link, from, to, lengths[i]);
                    check_write(link, from, to, lengths[i]);
                    check_read(link, from, to, lengths[i]);
                }
            }
            link_expect_no_event(link);
            link_buffer_free(from);
            link_buffer_free(to);
            link_free(link);
        }
    }
}

/* All of a region of 513 pages goes in one message, there and back. */
static void test_whole_level2_region(void)
{
    TestLink *link = link_new(NULL);
    uint64_t length = 513 * LINK_PAGE - 0x20;
    TestBuffer *from = link_buffer(link, 2, 12, 0x10, length, 0);
    TestBuffer *to = link_buffer(link, 2, 12, 0x08, length, 0);
    TestSend send = remote_of(QRDMA_SEND_OP_WRITE,
                              link_segment(from, 0, length), to, 0);

    link_buffer_fill(from, 1);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 0, 1, 0, length);
    g_assert_cmpuint(link->engine->counters.packets, ==,
                     (length + LINK_MTU - 1) / LINK_MTU);
    link_buffer_fill(from, 0);
    send = remote_of(QRDMA_SEND_OP_READ, link_segment(from, 0, length), to, 0);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_READ, QRDMA_CQE_SUCCESS);
    assert_moved(from, 0, 1, 0, length);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* Segments of odd lengths at both ends, empty ones among them. */
static void test_scatter_gather(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *from = link_buffer(link, 1, 12, 0x111, 40000, 0);
    TestBuffer *to = link_buffer(link, 1, 12, 0x777, 40000, 0);
    QrdmaSegment receive[QRDMA_MAX_SGE];
    TestSend send = { .flags = QRDMA_WQE_SIGNALED };
    uint32_t sent = 0, room = 0;

    link_buffer_fill(from, 9);
    send.segments = QRDMA_MAX_SGE;
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        uint32_t length = i % 5 == 0 ? 0 : i * 61;

        send.segment[i] = link_segment(from, sent, length);
        sent += length;
        receive[i] = link_segment(to, room, i % 3 == 1 ? 0 : i * 120);
        room += receive[i].length;
    }
    g_assert_cmpuint(room, >, sent);
    link_post_receive(link, &link->b, QRDMA_MAX_SGE, receive);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND, QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV, QRDMA_CQE_SUCCESS);
    assert_moved(to, 0, 9, 0, sent);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

static void test_inline(void)
{
    static const uint32_t inline_lengths[] = { 0, 1, 64, QRDMA_MAX_INLINE };
    TestLink *link = link_new(NULL);
    TestBuffer *to = link_buffer(link, 1, 12, 0xff0, 8192, 0);
    uint8_t data[QRDMA_MAX_INLINE];

    for (unsigned i = 0; i < sizeof(data); i++) {
        data[i] = link_pattern(3, i);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(inline_lengths); i++) {
        TestSend send = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .flags = QRDMA_WQE_SIGNALED | QRDMA_WQE_INLINE,
            .remote_address = to->address,
            .remote_key = to->key,
            .inline_length = inline_lengths[i],
            .inline_data = data,
        };

        link_buffer_fill(to, 0);
        link_post_send(link, &link->a, &send);
        fake_host_run(link->host);
        link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE,
                    QRDMA_CQE_SUCCESS);
        assert_moved(to, 0, 3, 0, inline_lengths[i]);
        assert_moved(to, inline_lengths[i], 0, inline_lengths[i], 10);
    }
    link_buffer_free(to);
    link_free(link);
}

static void test_write_with_immediate(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *from = link_buffer(link, 1, 12, 0, 8192, 0);
    TestBuffer *to = link_buffer(link, 1, 12, 0, 8192, 0);
    TestSend send = remote_of(QRDMA_SEND_OP_WRITE_IMM,
                              link_segment(from, 0, 6000), to, 0);
    struct qrdma_cqe cqe;

    send.immediate = 0x01020304;
    send.flags |= QRDMA_WQE_SOLICITED;
    link_buffer_fill(from, 9);
    link_post_receive(link, &link->b, 0, NULL);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    cqe = link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV_WRITE_IMM,
                      QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.byte_length), ==, 6000);
    g_assert_cmphex(cqe.immediate, ==, 0x01020304);
    g_assert_cmphex(cqe.flags, ==,
                    QRDMA_CQE_FLAG_IMMEDIATE | QRDMA_CQE_FLAG_SOLICITED);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 0, 9, 0, 6000);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* ----------------------------------------------------------------- atomics */

static uint64_t word_at(TestBuffer *buffer, uint64_t offset)
{
    uint64_t word;

    memcpy(&word, link_buffer_pointer(buffer, offset, 8), 8);
    return qrdma_le64(word);
}

static void set_word(TestBuffer *buffer, uint64_t offset, uint64_t value)
{
    uint64_t word = qrdma_le64(value);

    memcpy(link_buffer_pointer(buffer, offset, 8), &word, 8);
}

static void test_atomics(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *local = link_buffer(link, 1, 12, 0, 8192, 0);
    TestBuffer *remote = link_buffer(link, 1, 12, 0, 8192, 0);
    TestSend send = remote_of(QRDMA_SEND_OP_FETCH_ADD,
                              link_segment(local, 16, 8), remote, 4096);

    set_word(remote, 4096, 0xffffffffffffffff);
    send.swap_or_add = 2;
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_FETCH_ADD, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(word_at(local, 16), ==, 0xffffffffffffffff);
    g_assert_cmphex(word_at(remote, 4096), ==, 1);

    send.opcode = QRDMA_SEND_OP_COMPARE_SWAP;
    send.compare = 1;
    send.swap_or_add = 0x1122334455667788;
    link_post_send(link, &link->a, &send);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_COMPARE_SWAP,
                QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_COMPARE_SWAP,
                QRDMA_CQE_SUCCESS);
    /* The second did not find 1 any more. */
    g_assert_cmphex(word_at(local, 16), ==, 0x1122334455667788);
    g_assert_cmphex(word_at(remote, 4096), ==, 0x1122334455667788);
    link_buffer_free(local);
    link_buffer_free(remote);
    link_free(link);
}

/* The old value goes to segments that lie in two pages and are split there. */
static void test_atomic_result_is_scattered(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *local = link_buffer(link, 1, 12, 0, 8192, 0);
    TestBuffer *remote = link_buffer(link, 1, 12, 0, 4096, 0);
    TestSend send = remote_of(QRDMA_SEND_OP_FETCH_ADD,
                              link_segment(local, 4093, 5), remote, 8);

    send.segments = 2;
    send.segment[1] = link_segment(local, 100, 3);
    set_word(remote, 8, 0x0807060504030201);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_FETCH_ADD, QRDMA_CQE_SUCCESS);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmpuint(link_buffer_byte(local,
                                          i < 5 ? 4093 + i : 95 + i), ==,
                         i + 1);
    }
    link_buffer_free(local);
    link_buffer_free(remote);
    link_free(link);
}

/* ------------------------------------------------------------------- order */

static void test_nop_and_unsignaled(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *buffer = link_buffer(link, 1, 12, 0, 4096, 0);
    TestSend nop = { .opcode = QRDMA_SEND_OP_NOP };
    TestSend write = remote_of(QRDMA_SEND_OP_WRITE,
                               link_segment(buffer, 0, 8), buffer, 8);
    struct qrdma_cqe cqe;

    write.flags = QRDMA_WQE_FENCE;
    for (unsigned i = 0; i < 3; i++) {
        link_post_send(link, &link->a, &nop);
        link_post_send(link, &link->a, &write);
    }
    nop.flags = QRDMA_WQE_SIGNALED;
    link_post_send(link, &link->a, &nop);
    fake_host_run(link->host);
    cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_NOP, QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, 6);
    link_expect_no_cqe(link, &link->cq_a);
    g_assert_cmpuint(qrdma_le32(link_query(link, &link->a).send_consumer), ==,
                     7);
    link_buffer_free(buffer);
    link_free(link);
}

/* Far more messages than the ring has slots; PSNs wrap on the way. */
static void test_many_messages(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *from = link_buffer(link, 1, 12, 0, 4096, 0);
    TestBuffer *to = link_buffer(link, 1, 12, 0, 4096, 0);
    QrdmaSegment receive = link_segment(to, 0, 4096);
    TestSend send = send_of(QRDMA_SEND_OP_SEND, link_segment(from, 0, 3000));
    struct qrdma_qpc qpc;

    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            link_post_receive(link, &link->b, 1, &receive);
        }
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            link_post_send(link, &link->a, &send);
        }
        fake_host_run(link->host);
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            struct qrdma_cqe cqe;

            cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND,
                              QRDMA_CQE_SUCCESS);
            g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==,
                             round * LINK_ENTRIES + i);
            link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV,
                        QRDMA_CQE_SUCCESS);
        }
    }
    qpc = link_query(link, &link->a);
    g_assert_cmphex(qrdma_le32(qpc.send_psn), ==,
                    (0xfffffe + 50 * LINK_ENTRIES * 3) & 0xffffff);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* Both directions at once, and a QP that is connected to itself. */
static void test_both_ways_and_to_itself(void)
{
    TestLink *link = link_new_unconnected(NULL);
    TestBuffer *buffer = link_buffer(link, 1, 12, 0, 16384, 0);
    QrdmaSegment receive = link_segment(buffer, 8192, 4096);
    TestSend send = send_of(QRDMA_SEND_OP_SEND, link_segment(buffer, 0, 4096));

    link_buffer_fill(buffer, 9);
    link_connect(link, &link->a, LINK_QPN_A);
    link_post_receive(link, &link->a, 1, &receive);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_RECV, QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND, QRDMA_CQE_SUCCESS);
    assert_moved(buffer, 8192, 9, 0, 4096);

    /* Its own receive buffer is too small: one error each, no more. */
    receive.length = 100;
    link_post_receive(link, &link->a, 1, &receive);
    link_post_receive(link, &link->a, 1, &receive);
    link_post_send(link, &link->a, &send);
    link_post_send(link, &link->a, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_RECV,
                QRDMA_CQE_LOCAL_LENGTH_ERROR);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND,
                QRDMA_CQE_REMOTE_INVALID_REQUEST);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND, QRDMA_CQE_FLUSHED);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_RECV, QRDMA_CQE_FLUSHED);
    link_expect_no_cqe(link, &link->cq_a);

    g_assert_cmpint(link_set_state(link, &link->a, QRDMA_QP_RESET), ==,
                    QRDMA_STATUS_OK);
    link_connect(link, &link->a, LINK_QPN_B);
    link_connect(link, &link->b, LINK_QPN_A);
    receive.length = 4096;
    link_post_receive(link, &link->a, 1, &receive);
    link_post_receive(link, &link->b, 1, &receive);
    link_post_send(link, &link->a, &send);
    link_post_send(link, &link->b, &send);
    fake_host_run(link->host);
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV, QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND, QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_RECV, QRDMA_CQE_SUCCESS);
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_SEND, QRDMA_CQE_SUCCESS);
    link_buffer_free(buffer);
    link_free(link);
}

/*
 * A message of many packets does not keep a small one waiting: they come
 * between each other.
 */
static void test_turns_are_fair(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *from = link_buffer(link, 2, 12, 0, 513 * LINK_PAGE, 0);
    TestBuffer *to = link_buffer(link, 2, 12, 0, 513 * LINK_PAGE, 0);
    TestSend large = remote_of(QRDMA_SEND_OP_WRITE,
                               link_segment(from, 0, from->length), to, 0);
    TestSend small = remote_of(QRDMA_SEND_OP_WRITE,
                               link_segment(from, 0, 8), to, 0);

    link_post_send(link, &link->a, &large);
    link_post_send(link, &link->b, &small);
    g_assert_true(fake_host_step(link->host));
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    link_expect_no_cqe(link, &link->cq_a);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* RTR takes messages, sends none, and tells the driver that one has come. */
static void test_first_message_in_rtr(void)
{
    TestLink *link = link_new_unconnected(NULL);
    TestBuffer *buffer = link_buffer(link, 1, 12, 0, 4096, 0);
    struct qrdma_modify_qp init = link_to_init();
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_A);
    struct qrdma_modify_qp rts = link_to_rts();
    TestSend write = remote_of(QRDMA_SEND_OP_WRITE,
                               link_segment(buffer, 0, 8), buffer, 8);

    link_connect(link, &link->a, LINK_QPN_B);
    link_modify(link, &link->b, &init);
    link_modify(link, &link->b, &rtr);
    link_post_send(link, &link->b, &write);
    fake_host_run(link->host);
    link_expect_no_cqe(link, &link->cq_b);
    for (unsigned i = 0; i < 2; i++) {
        link_post_send(link, &link->a, &write);
        fake_host_run(link->host);
        link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    }
    link_expect_event(link, QRDMA_EVENT_COMMUNICATION, LINK_QPN_B);
    link_expect_no_event(link);
    link_modify(link, &link->b, &rts);
    fake_host_run(link->host);
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    link_buffer_free(buffer);
    link_free(link);
}

static void test_sqd_drains(void)
{
    QrdmaConfig config = card_default_config();
    TestLink *link;
    TestBuffer *buffer;
    TestSend write;

    config.packet_latency = 1000;
    link = link_new(&config);
    buffer = link_buffer(link, 1, 12, 0, 16384, 0);
    write = remote_of(QRDMA_SEND_OP_WRITE, link_segment(buffer, 0, 8192),
                      buffer, 8192);
    link_post_send(link, &link->a, &write);
    link_post_send(link, &link->a, &write);
    fake_host_run(link->host);
    g_assert_cmpint(link_set_state(link, &link->a, QRDMA_QP_SQD), ==,
                    QRDMA_STATUS_OK);
    fake_host_settle(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    link_expect_no_cqe(link, &link->cq_a);
    g_assert_cmpint(link_set_state(link, &link->a, QRDMA_QP_RTS), ==,
                    QRDMA_STATUS_OK);
    fake_host_settle(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    link_buffer_free(buffer);
    link_free(link);
}

/* 8 packets of the path's size take 8 latencies, one after the other. */
static void test_latency(void)
{
    QrdmaConfig config = card_default_config();
    TestLink *link;
    TestBuffer *from, *to;
    TestSend write;

    config.packet_latency = 1000;
    link = link_new(&config);
    from = link_buffer(link, 1, 12, 0, 8192, 0);
    to = link_buffer(link, 1, 12, 0, 8192, 0);
    write = remote_of(QRDMA_SEND_OP_WRITE, link_segment(from, 0, 8192), to, 0);
    link_buffer_fill(from, 9);
    link_post_send(link, &link->a, &write);
    fake_host_advance(link->host, 999);
    g_assert_cmphex(link_buffer_byte(to, 1), ==, 0);
    fake_host_advance(link->host, 1);
    assert_moved(to, 0, 9, 0, 1024);
    g_assert_cmphex(link_buffer_byte(to, 1025), ==, 0);
    fake_host_advance(link->host, 6999);
    link_expect_no_cqe(link, &link->cq_a);
    fake_host_advance(link->host, 1);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 0, 9, 0, 8192);
    g_assert_cmpuint(link->host->deadline, ==, UINT64_MAX);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* Packets of several QPs are in flight together; each lands in its own time. */
static void test_latency_of_several(void)
{
    QrdmaConfig config = card_default_config();
    TestLink *link;
    TestBuffer *from, *to;
    TestSend there, back;

    config.packet_latency = 1000;
    link = link_new(&config);
    from = link_buffer(link, 1, 12, 0, 4096, 0);
    to = link_buffer(link, 1, 12, 0, 4096, 0);
    there = remote_of(QRDMA_SEND_OP_WRITE, link_segment(from, 0, 100), to, 0);
    back = remote_of(QRDMA_SEND_OP_WRITE, link_segment(from, 0, 100), to,
                     2048);
    link_buffer_fill(from, 9);
    link_post_send(link, &link->a, &there);
    fake_host_advance(link->host, 400);
    link_post_send(link, &link->b, &back);
    fake_host_advance(link->host, 600);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 0, 9, 0, 100);
    g_assert_cmphex(link_buffer_byte(to, 2048 + 1), ==, 0);
    link_expect_no_cqe(link, &link->cq_b);
    fake_host_advance(link->host, 400);
    link_expect(link, &link->cq_b, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 2048, 9, 0, 100);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

/* Memory that cannot be mapped goes through a buffer; atomics need mapping. */
static void *no_map(void *opaque, uint64_t address, size_t *length, bool write)
{
    return NULL;
}

static void *(*real_map)(void *opaque, uint64_t address, size_t *length,
                         bool write);

static void *short_map(void *opaque, uint64_t address, size_t *length,
                       bool write)
{
    *length = MIN(*length, write ? 700 : 300);
    return real_map(opaque, address, length, write);
}

static void test_unmappable_and_short_maps(void)
{
    TestLink *link = link_new(NULL);
    TestBuffer *from = link_buffer(link, 0, 16, 0, 65536, 0);
    TestBuffer *to = link_buffer(link, 0, 16, 0, 65536, 0);
    TestSend write = remote_of(QRDMA_SEND_OP_WRITE,
                               link_segment(from, 1, 60000), to, 3);
    TestSend add = remote_of(QRDMA_SEND_OP_FETCH_ADD,
                             link_segment(from, 0, 8), to, 8);
    struct qrdma_eqe event;

    link_buffer_fill(from, 9);
    real_map = link->host->ops.dma_map;
    link->host->ops.dma_map = short_map;
    link_post_send(link, &link->a, &write);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 3, 9, 1, 60000);

    link_buffer_fill(to, 0);
    link->host->ops.dma_map = no_map;
    link_post_send(link, &link->a, &write);
    link_post_send(link, &link->a, &add);
    fake_host_run(link->host);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    assert_moved(to, 3, 9, 1, 60000);
    link_expect(link, &link->cq_a, QRDMA_CQE_OP_FETCH_ADD,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    event = link_expect_event(link, QRDMA_EVENT_QP_ACCESS_ERROR, LINK_QPN_B);
    g_assert_cmpuint(qrdma_le16(event.syndrome), ==, QRDMA_ACCESS_DMA);
    link_buffer_free(from);
    link_buffer_free(to);
    link_free(link);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/rc/moves", test_moves);
    g_test_add_func("/rc/whole-level2-region", test_whole_level2_region);
    g_test_add_func("/rc/scatter-gather", test_scatter_gather);
    g_test_add_func("/rc/inline", test_inline);
    g_test_add_func("/rc/write-with-immediate", test_write_with_immediate);
    g_test_add_func("/rc/atomics", test_atomics);
    g_test_add_func("/rc/atomic-result-is-scattered",
                    test_atomic_result_is_scattered);
    g_test_add_func("/rc/nop-and-unsignaled", test_nop_and_unsignaled);
    g_test_add_func("/rc/many-messages", test_many_messages);
    g_test_add_func("/rc/both-ways-and-to-itself",
                    test_both_ways_and_to_itself);
    g_test_add_func("/rc/turns-are-fair", test_turns_are_fair);
    g_test_add_func("/rc/first-message-in-rtr", test_first_message_in_rtr);
    g_test_add_func("/rc/sqd-drains", test_sqd_drains);
    g_test_add_func("/rc/latency", test_latency);
    g_test_add_func("/rc/latency-of-several", test_latency_of_several);
    g_test_add_func("/rc/unmappable-and-short-maps",
                    test_unmappable_and_short_maps);
    return g_test_run();
}
