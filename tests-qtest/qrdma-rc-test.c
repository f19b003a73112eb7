/*
 * qrdma: reliable connections in loopback: every operation, and its errors on
 * the way. What mkeys refuse is in qrdma-access-test.c.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-rc"
#define REMOTE_INDEX    2       /* a second key to all memory */
#define BUFFER          (1 * MiB)

typedef struct Rc {
    QRdmaBench bench;
    QRdma *q;
    uint32_t rkey;
    uint64_t source;
    uint64_t target;
} Rc;

/* Given two buffers and a key by which the peer may reach all memory. */
static void rc_init(Rc *rc, QRdma *q)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE_INDEX, QRDMA_TEST_PD);

    rc->q = q;
    qrdma_bench_init(&rc->bench, q);
    rc->rkey = qrdma_bench_mkey(&rc->bench, REMOTE_INDEX, &mkc);
    rc->source = qrdma_alloc(q, BUFFER + QRDMA_PAGE);
    rc->target = qrdma_alloc(q, BUFFER + QRDMA_PAGE);
}

static struct qrdma_sge local(Rc *rc, uint64_t address, uint32_t length)
{
    return qrdma_sge(address, length, rc->bench.local_key);
}

static struct qrdma_send_wqe request(enum qrdma_send_opcode opcode)
{
    return (struct qrdma_send_wqe) { .opcode = opcode };
}

static struct qrdma_send_wqe remote_request(Rc *rc,
                                            enum qrdma_send_opcode opcode,
                                            uint64_t address)
{
    struct qrdma_send_wqe wqe = request(opcode);

    wqe.remote_address = cpu_to_le64(address);
    wqe.remote_key = cpu_to_le32(rc->rkey);
    return wqe;
}

static const uint32_t sizes[] = {
    0, 1, 7, 8, 63, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8192,
    65536, 65537, BUFFER,
};

/* Bytes beside a transfer stay zero: one on either side. */
static void assert_only(Rc *rc, uint64_t address, uint32_t size,
                        uint64_t seed)
{
    qrdma_assert_pattern(rc->q, address, size, seed);
    qrdma_assert_zero(rc->q, address - 1, 1);
    qrdma_assert_zero(rc->q, address + size, 1);
}

/* ------------------------------------------------------- sends and receives */

static void test_send(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct qrdma_sge from = local(&rc, rc.source + 3, sizes[i]);
        struct qrdma_sge to = local(&rc, rc.target + 1, sizes[i]);
        struct qrdma_cqe sent, received;
        uint32_t counter;

        g_test_message("%u bytes", sizes[i]);
        qrdma_write_pattern(rc.q, rc.source + 3, sizes[i], i);
        qtest_memset(rc.q->qts, rc.target, 0, sizes[i] + 2);
        counter = qrdma_post_receive(rc.q, &rc.bench.b, &to, 1);
        qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), &from, 1);

        received = qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);
        g_assert_cmpint(received.opcode, ==, QRDMA_CQE_OP_RECV);
        g_assert_cmpuint(le32_to_cpu(received.byte_length), ==, sizes[i]);
        g_assert_cmpuint(le32_to_cpu(received.wqe_counter), ==, counter);
        g_assert_cmpuint(le32_to_cpu(received.qpn), ==, rc.bench.b.number);
        g_assert_cmpuint(le32_to_cpu(received.remote_qpn), ==,
                         rc.bench.a.number);
        g_assert_cmphex(received.flags, ==, 0);
        sent = qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
        g_assert_cmpint(sent.opcode, ==, QRDMA_CQE_OP_SEND);
        g_assert_cmpuint(le32_to_cpu(sent.qpn), ==, rc.bench.a.number);
        assert_only(&rc, rc.target + 1, sizes[i], i);
    }
}

static void test_send_immediate(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge from, to;
    struct qrdma_send_wqe wqe = request(QRDMA_SEND_OP_SEND_IMM);
    struct qrdma_cqe cqe;

    rc_init(&rc, obj);
    from = local(&rc, rc.source, 100);
    to = local(&rc, rc.target, 200);
    wqe.immediate = 0x11223344;
    qrdma_post_receive(rc.q, &rc.bench.b, &to, 1);
    qrdma_post(rc.q, &rc.bench.a, wqe, &from, 1);

    cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);
    g_assert_cmphex(cqe.immediate, ==, wqe.immediate);
    g_assert_cmphex(cqe.flags, ==, QRDMA_CQE_FLAG_IMMEDIATE);
    g_assert_cmpuint(le32_to_cpu(cqe.byte_length), ==, 100);
}

/* The largest inline payload that a WQE has room for. */
static void test_inline(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint32_t lengths[] = { 0, 1, 64, QRDMA_MAX_INLINE };
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        struct qrdma_sge to = local(&rc, rc.target, 1024);
        uint8_t payload[QRDMA_MAX_INLINE];

        qrdma_fill_pattern(payload, lengths[i], i);
        qrdma_post_receive(rc.q, &rc.bench.b, &to, 1);
        qrdma_post_inline(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND),
                          payload, lengths[i]);
        qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);
        qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
        qrdma_assert_pattern(rc.q, rc.target, lengths[i], i);
    }
}

/* As many segments as a WQE has, of all sizes, on both sides. */
static void test_segments(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_sge from[QRDMA_MAX_SGE], to[QRDMA_MAX_SGE];
    uint8_t *message;
    uint32_t total = 0, taken = 0;
    Rc rc;

    rc_init(&rc, obj);
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        /* Segment i has 37 * i bytes: the first is empty. */
        from[i] = local(&rc, rc.source + i * 2048 + i, 37 * i);
        qrdma_write_pattern(rc.q, rc.source + i * 2048 + i, 37 * i, i);
        total += 37 * i;
    }
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        /* The receiver cuts it at other places. */
        uint32_t length = i + 1 < QRDMA_MAX_SGE ? total / QRDMA_MAX_SGE - 7
                                                : total - taken;

        to[i] = local(&rc, rc.target + taken, length);
        taken += length;
    }
    qrdma_post_receive(rc.q, &rc.bench.b, to, QRDMA_MAX_SGE);
    qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), from,
               QRDMA_MAX_SGE);
    qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);

    message = g_malloc(total);
    taken = 0;
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        qrdma_fill_pattern(message + taken, 37 * i, i);
        taken += 37 * i;
    }
    g_autofree uint8_t *seen = g_malloc(total);
    qtest_bufread(rc.q->qts, rc.target, seen, total);
    g_assert_cmpmem(seen, total, message, total);
    g_free(message);
}

/* Without the signalled flag, success is silent. */
static void test_unsignalled(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_send_wqe wqe;

    rc_init(&rc, obj);
    wqe = remote_request(&rc, QRDMA_SEND_OP_WRITE, rc.target);
    qrdma_send_put(rc.q, &rc.bench.a, &wqe, sizeof(wqe), NULL, 0);
    qrdma_send_ring(rc.q, &rc.bench.a);
    qrdma_cq_expect_none(rc.q, &rc.bench.cq_a);
    g_assert_cmpuint(le32_to_cpu(qrdma_qp_query(rc.q, rc.bench.a.number)
                                 .send_consumer), ==, 1);
}

static void test_nop(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_cqe cqe;

    rc_init(&rc, obj);
    qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_NOP), NULL, 0);
    cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
    g_assert_cmpint(cqe.opcode, ==, QRDMA_CQE_OP_NOP);
}

/* ------------------------------------------------------------------- RDMA */

static void test_write(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct qrdma_sge from = local(&rc, rc.source + 5, sizes[i]);
        struct qrdma_cqe cqe;

        g_test_message("%u bytes", sizes[i]);
        qrdma_write_pattern(rc.q, rc.source + 5, sizes[i], i);
        qtest_memset(rc.q->qts, rc.target, 0, sizes[i] + 2);
        qrdma_post(rc.q, &rc.bench.a,
                   remote_request(&rc, QRDMA_SEND_OP_WRITE, rc.target + 1),
                   &from, 1);
        cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
        g_assert_cmpint(cqe.opcode, ==, QRDMA_CQE_OP_WRITE);
        assert_only(&rc, rc.target + 1, sizes[i], i);
    }
    qrdma_cq_expect_none(rc.q, &rc.bench.cq_b);
}

static void test_write_immediate(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge from;
    struct qrdma_send_wqe wqe;
    struct qrdma_cqe cqe;

    rc_init(&rc, obj);
    from = local(&rc, rc.source, 3000);
    qrdma_write_pattern(rc.q, rc.source, 3000, 9);
    qrdma_post_receive(rc.q, &rc.bench.b, NULL, 0);
    wqe = remote_request(&rc, QRDMA_SEND_OP_WRITE_IMM, rc.target);
    wqe.immediate = 0xcafe;
    qrdma_post(rc.q, &rc.bench.a, wqe, &from, 1);

    cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);
    g_assert_cmpint(cqe.opcode, ==, QRDMA_CQE_OP_RECV_WRITE_IMM);
    g_assert_cmphex(cqe.immediate, ==, 0xcafe);
    g_assert_cmphex(cqe.flags, ==, QRDMA_CQE_FLAG_IMMEDIATE);
    g_assert_cmpuint(le32_to_cpu(cqe.byte_length), ==, 3000);
    qrdma_assert_pattern(rc.q, rc.target, 3000, 9);
}

static void test_read(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        struct qrdma_sge to = local(&rc, rc.target + 1, sizes[i]);
        struct qrdma_cqe cqe;

        g_test_message("%u bytes", sizes[i]);
        qrdma_write_pattern(rc.q, rc.source + 7, sizes[i], i);
        qtest_memset(rc.q->qts, rc.target, 0, sizes[i] + 2);
        qrdma_post(rc.q, &rc.bench.a,
                   remote_request(&rc, QRDMA_SEND_OP_READ, rc.source + 7),
                   &to, 1);
        cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
        g_assert_cmpint(cqe.opcode, ==, QRDMA_CQE_OP_READ);
        g_assert_cmpuint(le32_to_cpu(cqe.byte_length), ==, sizes[i]);
        assert_only(&rc, rc.target + 1, sizes[i], i);
    }
}

/* Work requests complete in the order in which they were posted. */
static void test_order(void *obj, void *data, QGuestAllocator *alloc)
{
    static const enum qrdma_send_opcode opcodes[] = {
        QRDMA_SEND_OP_READ, QRDMA_SEND_OP_WRITE, QRDMA_SEND_OP_NOP,
        QRDMA_SEND_OP_READ, QRDMA_SEND_OP_WRITE,
    };
    Rc rc;

    rc_init(&rc, obj);
    for (unsigned i = 0; i < 50; i++) {
        enum qrdma_send_opcode opcode = opcodes[i % ARRAY_SIZE(opcodes)];
        struct qrdma_sge sge = local(&rc, rc.source, 20000);
        struct qrdma_send_wqe wqe = opcode == QRDMA_SEND_OP_NOP
            ? request(opcode) : remote_request(&rc, opcode, rc.target);

        wqe.flags = QRDMA_WQE_SIGNALED;
        wqe.num_sge = cpu_to_le32(opcode == QRDMA_SEND_OP_NOP ? 0 : 1);
        qrdma_send_put(rc.q, &rc.bench.a, &wqe, sizeof(wqe), &sge,
                       opcode == QRDMA_SEND_OP_NOP ? 0 : sizeof(sge));
    }
    qrdma_send_ring(rc.q, &rc.bench.a);
    for (unsigned i = 0; i < 50; i++) {
        struct qrdma_cqe cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a,
                                               QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(le32_to_cpu(cqe.wqe_counter), ==, i);
    }
}

/* --------------------------------------------------------------- atomics */

static uint64_t read_word(Rc *rc, uint64_t address)
{
    uint64_t value;

    qtest_memread(rc->q->qts, address, &value, sizeof(value));
    return le64_to_cpu(value);
}

static void write_word(Rc *rc, uint64_t address, uint64_t value)
{
    value = cpu_to_le64(value);
    qtest_memwrite(rc->q->qts, address, &value, sizeof(value));
}

static void test_atomics(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        enum qrdma_send_opcode opcode;
        uint64_t before, compare, swap_or_add, after;
    } table[] = {
        { QRDMA_SEND_OP_COMPARE_SWAP, 5, 5, 9, 9 },
        { QRDMA_SEND_OP_COMPARE_SWAP, 5, 6, 9, 5 },
        { QRDMA_SEND_OP_COMPARE_SWAP, UINT64_MAX, UINT64_MAX, 0, 0 },
        { QRDMA_SEND_OP_FETCH_ADD, 5, 0, 9, 14 },
        { QRDMA_SEND_OP_FETCH_ADD, UINT64_MAX, 0, 2, 1 },
        { QRDMA_SEND_OP_FETCH_ADD, 0x100000000ull, 0, UINT64_MAX,
          0xffffffffull },
    };
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct qrdma_sge to = local(&rc, rc.source, 8);
        struct qrdma_send_wqe wqe = remote_request(&rc, table[i].opcode,
                                                   rc.target + 8);
        struct qrdma_cqe cqe;

        g_test_message("row %zu", i);
        write_word(&rc, rc.target + 8, table[i].before);
        wqe.compare = cpu_to_le64(table[i].compare);
        wqe.swap_or_add = cpu_to_le64(table[i].swap_or_add);
        qrdma_post(rc.q, &rc.bench.a, wqe, &to, 1);
        cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);

        g_assert_cmpint(cqe.opcode, ==,
                        table[i].opcode == QRDMA_SEND_OP_FETCH_ADD ?
                        QRDMA_CQE_OP_FETCH_ADD : QRDMA_CQE_OP_COMPARE_SWAP);
        g_assert_cmphex(read_word(&rc, rc.source), ==, table[i].before);
        g_assert_cmphex(read_word(&rc, rc.target + 8), ==, table[i].after);
    }
}

/* An atomic on an address that is not 8-byte aligned is refused. */
static void test_misaligned_atomic(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge to;
    struct qrdma_send_wqe wqe;

    rc_init(&rc, obj);
    to = local(&rc, rc.source, 8);
    wqe = remote_request(&rc, QRDMA_SEND_OP_FETCH_ADD, rc.target + 4);
    wqe.swap_or_add = cpu_to_le64(1);
    qrdma_post(rc.q, &rc.bench.a, wqe, &to, 1);
    g_assert_cmpint(qrdma_cq_wait(rc.q, &rc.bench.cq_a).status, !=,
                    QRDMA_CQE_SUCCESS);
    qrdma_assert_zero(rc.q, rc.target, 16);
}

/* ------------------------------------------------- the receiver not ready */

/* Given no receive and one retry, when time passes, the sender gives up. */
static void test_rnr_exceeded(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge from;
    struct qrdma_cqe cqe;

    rc_init(&rc, obj);
    qrdma_qp_to(rc.q, &rc.bench.a, QRDMA_QP_RESET);
    qrdma_qp_connect(rc.q, &rc.bench.a, rc.bench.b.number, 1);
    from = local(&rc, rc.source, 8);
    qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), &from, 1);
    qrdma_cq_expect_none(rc.q, &rc.bench.cq_a);

    /* The RNR timer of the longest setting is 655.36 ms. */
    for (int i = 0; i < 3; i++) {
        qtest_clock_step(rc.q->qts, NANOSECONDS_PER_SECOND);
        qrdma_settle(rc.q);
    }
    g_assert_true(qrdma_cq_poll(rc.q, &rc.bench.cq_a, &cqe));
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_RNR_RETRY_EXCEEDED);
}

/* Given retries without end, when a receive comes late, it is used. */
static void test_rnr_late(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge from, to;

    rc_init(&rc, obj);
    from = local(&rc, rc.source, 500);
    to = local(&rc, rc.target, 500);
    qrdma_write_pattern(rc.q, rc.source, 500, 3);
    qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), &from, 1);
    for (int i = 0; i < 20; i++) {
        qtest_clock_step(rc.q->qts, NANOSECONDS_PER_SECOND);
        qrdma_cq_expect_none(rc.q, &rc.bench.cq_a);
    }
    qrdma_post_receive(rc.q, &rc.bench.b, &to, 1);
    qtest_clock_step(rc.q->qts, NANOSECONDS_PER_SECOND);

    qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_SUCCESS);
    qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(rc.q, rc.target, 500, 3);
}

/* ----------------------------------------------------------------- errors */

/* A message longer than the receive: both sides hear of it. */
static void test_receive_too_short(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge from, to;

    rc_init(&rc, obj);
    from = local(&rc, rc.source, 101);
    to = local(&rc, rc.target, 100);
    qrdma_write_pattern(rc.q, rc.source, 101, 1);
    qrdma_post_receive(rc.q, &rc.bench.b, &to, 1);
    qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), &from, 1);

    qrdma_cq_expect(rc.q, &rc.bench.cq_b, QRDMA_CQE_LOCAL_LENGTH_ERROR);
    qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_REMOTE_INVALID_REQUEST);
    qrdma_assert_zero(rc.q, rc.target + 100, 1);
}

/* After an error the rest of both queues is flushed, and the QP stands still */
static void test_flush(void *obj, void *data, QGuestAllocator *alloc)
{
    Rc rc;
    struct qrdma_sge sge;
    struct qrdma_send_wqe bad;

    rc_init(&rc, obj);
    sge = local(&rc, rc.source, 8);
    qrdma_post_receive(rc.q, &rc.bench.a, &sge, 1);
    bad = remote_request(&rc, QRDMA_SEND_OP_WRITE, rc.target);
    bad.remote_key = cpu_to_le32(0x999900);
    qrdma_post(rc.q, &rc.bench.a, bad, &sge, 1);
    qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    /* The receive that was posted before. */
    qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_FLUSHED);

    qrdma_post(rc.q, &rc.bench.a,
               remote_request(&rc, QRDMA_SEND_OP_WRITE, rc.target), &sge, 1);
    qrdma_cq_expect(rc.q, &rc.bench.cq_a, QRDMA_CQE_FLUSHED);
    g_assert_cmpint(qrdma_qp_query(rc.q, rc.bench.a.number).state, ==,
                    QRDMA_QP_ERROR);
}

/* WQEs that are no good; case 42 among them. */
static void test_bad_wqes(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        const char *what;
        struct qrdma_send_wqe wqe;      /* in host order */
        enum qrdma_wqe_error error;
    } bad[] = {
        { "unknown opcode", { .opcode = 9 }, QRDMA_WQE_OPCODE },
        { "opcode 255", { .opcode = 255 }, QRDMA_WQE_OPCODE },
        { "UMR on an RC queue", { .opcode = QRDMA_SEND_OP_UMR },
          QRDMA_WQE_OPCODE },
        { "unknown flag", { .flags = 1 << 4 }, QRDMA_WQE_FLAGS },
        { "inline read",
          { .opcode = QRDMA_SEND_OP_READ, .flags = QRDMA_WQE_INLINE },
          QRDMA_WQE_FLAGS },
        { "reserved", { .reserved2[15] = 1 }, QRDMA_WQE_RESERVED },
        { "a segment too many", { .num_sge = QRDMA_MAX_SGE + 1 },
          QRDMA_WQE_NUM_SGE },
        { "2^32 - 1 segments", { .num_sge = UINT32_MAX },
          QRDMA_WQE_NUM_SGE },
        { "2^28 segments", { .num_sge = 1 << 28 }, QRDMA_WQE_NUM_SGE },
        { "inline too long",
          { .flags = QRDMA_WQE_INLINE, .inline_length = QRDMA_MAX_INLINE + 1 },
          QRDMA_WQE_INLINE_LENGTH },
        { "inline of 4 GiB",
          { .flags = QRDMA_WQE_INLINE, .inline_length = UINT32_MAX },
          QRDMA_WQE_INLINE_LENGTH },
    };
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_send_wqe wqe = bad[i].wqe;
        struct qrdma_cqe cqe;

        wqe.num_sge = cpu_to_le32(wqe.num_sge);
        wqe.inline_length = cpu_to_le32(wqe.inline_length);
        g_test_message("%s", bad[i].what);
        qrdma_send_put(rc.q, &rc.bench.a, &wqe, sizeof(wqe), NULL, 0);
        qrdma_send_ring(rc.q, &rc.bench.a);
        cqe = qrdma_cq_expect(rc.q, &rc.bench.cq_a,
                              QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
        g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, bad[i].error);
        qrdma_bench_reconnect(&rc.bench);
    }
}

/* The same for receives: the one that is no good is found when it is used. */
static void test_bad_receives(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint32_t counts[] = { 32, UINT32_MAX, 1 << 28 };
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        struct qrdma_receive_wqe wqe = { .num_sge = cpu_to_le32(counts[i]) };
        struct qrdma_sge from = local(&rc, rc.source, 8);

        qrdma_post_receive(rc.q, &rc.bench.b, NULL, 0);
        /* Write over it what qrdma_post_receive() would not. */
        qrdma_bench_reconnect(&rc.bench);
        qtest_memwrite(rc.q->qts, rc.bench.b.receive.address, &wqe,
                       sizeof(wqe));
        rc.bench.b.receive_producer = 1;
        qrdma_ring_doorbell(rc.q, 0, QRDMA_DOORBELL_RECEIVE,
                            rc.bench.b.number, 1);
        qrdma_post(rc.q, &rc.bench.a, request(QRDMA_SEND_OP_SEND), &from, 1);
        g_assert_cmpint(qrdma_cq_wait(rc.q, &rc.bench.cq_b).status, ==,
                        QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
        qrdma_cq_expect(rc.q, &rc.bench.cq_a,
                        QRDMA_CQE_REMOTE_OPERATION_ERROR);
        qrdma_bench_reconnect(&rc.bench);
    }
}

/* Remote rights of the QP itself, whatever the mkey allows. */
static void test_qp_rights(void *obj, void *data, QGuestAllocator *alloc)
{
    static const enum qrdma_send_opcode opcodes[] = {
        QRDMA_SEND_OP_WRITE, QRDMA_SEND_OP_READ, QRDMA_SEND_OP_FETCH_ADD,
    };
    Rc rc;

    rc_init(&rc, obj);
    for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
        struct qrdma_sge sge = local(&rc, rc.source, 8);
        struct qrdma_qpc no_rights = { 0 };

        g_assert_cmpint(qrdma_qp_modify(rc.q, rc.bench.b.number,
                                        QRDMA_QP_MASK_FLAGS, &no_rights), ==,
                        QRDMA_STATUS_OK);
        qrdma_post(rc.q, &rc.bench.a,
                   remote_request(&rc, opcodes[i], rc.target), &sge, 1);
        g_assert_cmpint(qrdma_cq_wait(rc.q, &rc.bench.cq_a).status, ==,
                        QRDMA_CQE_REMOTE_INVALID_REQUEST);
        qrdma_bench_reconnect(&rc.bench);
    }
}

static void register_rc_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("send", GROUP, test_send, NULL);
    qos_add_test("send-immediate", GROUP, test_send_immediate, NULL);
    qos_add_test("inline", GROUP, test_inline, NULL);
    qos_add_test("segments", GROUP, test_segments, NULL);
    qos_add_test("unsignalled", GROUP, test_unsignalled, NULL);
    qos_add_test("nop", GROUP, test_nop, NULL);
    qos_add_test("write", GROUP, test_write, NULL);
    qos_add_test("write-immediate", GROUP, test_write_immediate, NULL);
    qos_add_test("read", GROUP, test_read, NULL);
    qos_add_test("order", GROUP, test_order, NULL);
    qos_add_test("atomics", GROUP, test_atomics, NULL);
    qos_add_test("misaligned-atomic", GROUP, test_misaligned_atomic,
                 NULL);
    qos_add_test("rnr-exceeded", GROUP, test_rnr_exceeded, NULL);
    qos_add_test("rnr-late", GROUP, test_rnr_late, NULL);
    qos_add_test("receive-too-short", GROUP, test_receive_too_short,
                 NULL);
    qos_add_test("flush", GROUP, test_flush, NULL);
    qos_add_test("bad-wqes", GROUP, test_bad_wqes, NULL);
    qos_add_test("bad-receives", GROUP, test_bad_receives, NULL);
    qos_add_test("qp-rights", GROUP, test_qp_rights, NULL);
}

libqos_init(register_rc_tests);
