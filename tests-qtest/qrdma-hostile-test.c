/*
 * qrdma: what a hostile guest does. Numbers are those of the project's list of
 * cases. Whatever happens, the card must answer a command afterwards.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-hostile"
#define REMOTE      2

static void assert_alive(QRdma *q)
{
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* ---------------------------------------------------------------- case 39 */

/* Rings of sizes that cannot be. */
static void test_ring_sizes(void *obj, void *data, QGuestAllocator *alloc)
{
    struct {
        const char *what;
        struct qrdma_ring ring;     /* in host order; base is set below */
        enum qrdma_status status;
    } bad[] = {
        { "no pages", { .log_entries = 6, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "a page too few",
          { .num_pages = 1, .log_entries = 7, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "a page too many",
          { .num_pages = 3, .log_entries = 7, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "2^32 - 1 pages",
          { .num_pages = UINT32_MAX, .log_entries = 7, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "2^32 - 1 pages of level 1",
          { .num_pages = UINT32_MAX, .log_entries = 7, .log_stride = 6,
            .level = 1 }, QRDMA_STATUS_BAD_RING },
        { "entries beyond the limit",
          { .num_pages = 1u << 11, .log_entries = 17, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "2^255 entries",
          { .num_pages = 1, .log_entries = 255, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "2^26 entries, whose size is 0 in 32 bits",
          { .num_pages = 0, .log_entries = 26, .log_stride = 6 },
          QRDMA_STATUS_BAD_RING },
        { "stride of 2^5",
          { .num_pages = 1, .log_entries = 7, .log_stride = 5 },
          QRDMA_STATUS_BAD_RING },
        { "stride of 2^255",
          { .num_pages = 1, .log_entries = 6, .log_stride = 255 },
          QRDMA_STATUS_BAD_RING },
        { "2 MiB pages",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6,
            .log_page_size = 21 }, QRDMA_STATUS_BAD_PAGE_SIZE },
        { "level 2",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6, .level = 2 },
          QRDMA_STATUS_BAD_LEVEL },
        { "reserved",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6,
            .reserved = 1 }, QRDMA_STATUS_BAD_RESERVED },
        { "misaligned base",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6,
            .base = 0x100040 }, QRDMA_STATUS_BAD_ALIGNMENT },
        { "level 1 with a base",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6, .level = 1,
            .base = 0x100000 }, QRDMA_STATUS_BAD_RESERVED },
        { "level 0 with a PBLE index",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6,
            .pble_index = 8 }, QRDMA_STATUS_BAD_PBLE_INDEX },
        { "level 1 off its unit",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6, .level = 1,
            .pble_index = 9 }, QRDMA_STATUS_BAD_PBLE_INDEX },
        { "level 1 outside PBLE space",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6, .level = 1,
            .pble_index = UINT32_MAX - 7 }, QRDMA_STATUS_BAD_PBLE_INDEX },
        { "level 1 without a segment",
          { .num_pages = 1, .log_entries = 6, .log_stride = 6, .level = 1,
            .pble_index = 8 }, QRDMA_STATUS_HMC_ERROR },
    };
    QRdma *q = obj;
    QRdmaEq async;

    qrdma_start(q);
    qrdma_eq_create(q, &async, QRDMA_ASYNC_EQN, 4, 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_ring *ring = &bad[i].ring;
        struct qrdma_cqc cqc = { 0 };

        if (ring->level == 0 && !ring->base) {
            ring->base = 0x100000;
        }
        cqc.ring = (struct qrdma_ring) {
            .base = cpu_to_le64(ring->base),
            .pble_index = cpu_to_le32(ring->pble_index),
            .num_pages = cpu_to_le32(ring->num_pages),
            .level = ring->level,
            .log_page_size = ring->log_page_size ? ring->log_page_size : 12,
            .log_entries = ring->log_entries,
            .log_stride = ring->log_stride,
            .reserved = cpu_to_le32(ring->reserved),
        };
        g_test_message("%s", bad[i].what);
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, 5,
                                      &cqc, sizeof(cqc), NULL, 0), ==,
                        bad[i].status);
    }
    assert_alive(q);
}

/* A level 1 ring of which a page is absent, or may not be written. */
static void test_ring_entries(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint64_t bad[] = {
        0, 0x100000, 0x100000 | QRDMA_PBLE_READ, 0x100000 | QRDMA_PBLE_WRITE,
        0x100000 | QRDMA_PBLE_PRESENT | 1 << 5,
    };
    QRdma *q = obj;
    QRdmaEq async;
    struct qrdma_cqc cqc = {
        .ring = {
            .pble_index = cpu_to_le32(8),
            .num_pages = cpu_to_le32(4),
            .level = 1,
            .log_page_size = 12,
            .log_entries = 8,
            .log_stride = QRDMA_CQE_LOG_SIZE,
        },
    };

    qrdma_start(q);
    qrdma_eq_create(q, &async, QRDMA_ASYNC_EQN, 4, 0);
    qrdma_add_direct_sd(q, 0);
    for (unsigned i = 0; i < 4; i++) {
        qrdma_pble_write(q, 8 + i, 0x100000 | QRDMA_PBLE_PRESENT);
    }
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        qrdma_pble_write(q, 11, bad[i]);
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, 5,
                                      &cqc, sizeof(cqc), NULL, 0), ==,
                        QRDMA_STATUS_BAD_ENTRY);
    }
}

/* ---------------------------------------------------------------- case 41 */

/* Producers outside the ring: ignored, with an error event. */
static void test_producers(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    uint32_t size;

    qrdma_bench_init(&bench, q);
    size = 1u << bench.a.send.log_entries;
    const struct {
        uint32_t doorbell;
        uint32_t producer;
    } bad[] = {
        { QRDMA_DOORBELL_SEND, size + 1 },
        { QRDMA_DOORBELL_SEND, 0xffff },
        { QRDMA_DOORBELL_SEND, UINT32_MAX },
        { QRDMA_DOORBELL_RECEIVE, size + 1 },
        { QRDMA_DOORBELL_RECEIVE, UINT32_MAX },
    };

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_eqe eqe;

        qrdma_ring_doorbell(q, 0, bad[i].doorbell, bench.a.number,
                            bad[i].producer);
        eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_QP_ERROR);
        g_assert_cmpuint(le32_to_cpu(eqe.number), ==, bench.a.number);
        g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==,
                        QRDMA_QUEUE_ERROR_PRODUCER);
        qrdma_cq_expect_none(q, &bench.cq_a);
        /* Again, and nothing: a program cannot fill the EQ with these. */
        qrdma_ring_doorbell(q, 0, bad[i].doorbell, bench.a.number,
                            bad[i].producer);
        qrdma_eq_expect_none(q, &bench.async);
        qrdma_bench_reconnect(&bench);
    }
    /* The QP has not suffered. */
    qrdma_post(q, &bench.a,
               (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_NOP },
               NULL, 0);
    qrdma_cq_expect(q, &bench.cq_a, QRDMA_CQE_SUCCESS);
}

/* A full ring in one doorbell is good, and is done once. */
static void test_full_ring(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_send_wqe nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    uint32_t size;

    qrdma_bench_init(&bench, q);
    size = 1u << bench.a.send.log_entries;
    for (uint32_t i = 0; i < size; i++) {
        qrdma_send_put(q, &bench.a, &nop, sizeof(nop), NULL, 0);
    }
    qrdma_send_ring(q, &bench.a);
    for (uint32_t i = 0; i < size; i++) {
        struct qrdma_cqe cqe = qrdma_cq_expect(q, &bench.cq_a,
                                               QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(le32_to_cpu(cqe.wqe_counter), ==, i);
    }
    qrdma_cq_expect_none(q, &bench.cq_a);
}

/* A consumer ahead of the producer, or more than a ring behind it. */
static void test_consumers(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint32_t bad[] = { 1, 0xffff, 1u << 31, 0u - 257 };
    struct qrdma_cqc same = { .eqn = cpu_to_le32(1) };
    QRdmaBench bench;
    QRdma *q = obj;

    qrdma_bench_init(&bench, q);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_eqe eqe;
        struct qrdma_cqc query;

        qrdma_ring_doorbell(q, 0, QRDMA_DOORBELL_CQ, bench.cq_a.number,
                            bad[i]);
        eqe = qrdma_eq_expect(q, &bench.async, QRDMA_EVENT_CQ_ERROR);
        g_assert_cmpuint(le32_to_cpu(eqe.number), ==, bench.cq_a.number);
        g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==,
                        QRDMA_QUEUE_ERROR_CONSUMER);
        qrdma_command_ok(q, QRDMA_CMD_QUERY_CQ, bench.cq_a.number, NULL, 0,
                         &query, sizeof(query));
        g_assert_cmpuint(le32_to_cpu(query.consumer), ==, 0);
        /* One event until the CQ is modified. */
        qrdma_command_ok(q, QRDMA_CMD_MODIFY_CQ, bench.cq_a.number,
                         &same, sizeof(same), NULL, 0);
    }
}

/* An EQ's consumer ahead of its producer: there is no event to tell it with */
static void test_eq_consumer(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_eqc query;

    qrdma_bench_init(&bench, q);
    qrdma_ring_doorbell(q, 0, QRDMA_DOORBELL_EQ, bench.completion.number,
                        1000);
    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS) &
                    QRDMA_CARD_DOORBELL_ERROR, !=, 0);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_EQ, bench.completion.number, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmpuint(le32_to_cpu(query.consumer), ==, 0);
}

/* A page that is not the queue's rings nothing. */
static void test_foreign_page(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_send_wqe nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };

    qrdma_bench_init(&bench, q);
    qrdma_send_put(q, &bench.a, &nop, sizeof(nop), NULL, 0);
    qrdma_ring_doorbell(q, 5, QRDMA_DOORBELL_SEND, bench.a.number, 1);
    qrdma_cq_expect_none(q, &bench.cq_a);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);

    /* EQs are the driver's: only page 0 rings them. */
    qrdma_write32(q, QRDMA_REG_STATUS, QRDMA_CARD_DOORBELL_ERROR);
    qrdma_ring_doorbell(q, 5, QRDMA_DOORBELL_EQ, bench.completion.number, 0);
    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);

    qrdma_send_ring(q, &bench.a);
    qrdma_cq_expect(q, &bench.cq_a, QRDMA_CQE_SUCCESS);
}

/* The last page rings its own queues, and page 0 does not. */
static void test_last_page(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    QRdmaCq cq = { .page = QRDMA_DOORBELL_PAGES - 1 };
    QRdmaQp qp;
    struct qrdma_send_wqe nop = { .opcode = QRDMA_SEND_OP_NOP };

    qrdma_bench_init(&bench, q);
    qrdma_cq_create(q, &cq, 9, 6, 1);
    qp = bench.a;
    qp.number = 20;
    qp.page = QRDMA_DOORBELL_PAGES - 1;
    qp.send_cq = &cq;
    qp.receive_cq = &cq;
    qp.send.address = 0;
    qp.receive.address = 0;
    qrdma_qp_create(q, &qp);
    qrdma_qp_connect(q, &qp, bench.b.number, 7);

    qrdma_ring_doorbell(q, 0, QRDMA_DOORBELL_SEND, qp.number, 1);
    qrdma_cq_expect_none(q, &cq);
    qrdma_post(q, &qp, nop, NULL, 0);
    qrdma_cq_expect(q, &cq, QRDMA_CQE_SUCCESS);
}

/* ------------------------------------------------------- cases 42 and 43 */

/*
 * Case 43, as far as one thread can: the WQE is good when the doorbell rings,
 * and changes at once. The card works on the copy it took, so what it does is
 * one of the two, and it reads no segment beyond the ring.
 */
static void test_changing_wqe(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    uint64_t memory;
    uint32_t many = cpu_to_le32(UINT32_MAX);
    struct qrdma_sge sge;
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .remote_key = 0,
    };
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);

    qrdma_bench_init(&bench, q);
    wqe.remote_key = cpu_to_le32(qrdma_bench_mkey(&bench, REMOTE, &mkc));
    memory = qrdma_alloc(q, 64 * KiB);
    sge = qrdma_sge(memory, 32, bench.local_key);
    wqe.remote_address = cpu_to_le64(memory + 32 * KiB);
    for (int i = 0; i < 50; i++) {
        uint64_t slot = bench.a.send.address +
            ((uint64_t)(bench.a.send_producer &
                        ((1u << bench.a.send.log_entries) - 1))
             << bench.a.send.log_stride);
        struct qrdma_cqe cqe;

        qrdma_post(q, &bench.a, wqe, &sge, 1);
        qtest_memwrite(q->qts, slot + offsetof(struct qrdma_send_wqe,
                                               num_sge), &many, sizeof(many));
        cqe = qrdma_cq_wait(q, &bench.cq_a);
        if (cqe.status == QRDMA_CQE_SUCCESS) {
            continue;
        }
        g_assert_cmpint(cqe.status, ==, QRDMA_CQE_LOCAL_QP_OPERATION_ERROR);
        g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, QRDMA_WQE_NUM_SGE);
        qrdma_bench_reconnect(&bench);
    }
}

/* ---------------------------------------------------------------- case 47 */

/*
 * An interrupt message that would reset the card: the card's own registers do
 * not hear it.
 */
static void test_message_at_registers(void *obj, void *data,
                                      QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    const unsigned vector = 1;      /* of the bench's EQ 1 */

    qrdma_bench_init(&bench, q);
    qrdma_msix_point(q, vector, q->registers.addr + QRDMA_REG_CONTROL,
                     QRDMA_CONTROL_RESET);
    qrdma_msix_mask(q, vector, false);
    qrdma_eq_doorbell(q, &bench.completion, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_cq_doorbell(q, &bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_post(q, &bench.a,
               (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_NOP },
               NULL, 0);
    qrdma_eq_expect(q, &bench.completion, QRDMA_EVENT_COMPLETION);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);
    assert_alive(q);
}

/* PBLE space there: a UMR may not write its table into it. */
static void test_sd_at_doorbell(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaBench bench;
    QRdma *q = obj;
    struct qrdma_sd sd = { .type = cpu_to_le32(QRDMA_SD_DIRECT) };
    struct qrdma_mkc mkc;
    struct qrdma_umr_wqe wqe = { 0 };
    uint64_t unit[8] = { 0 };

    qrdma_bench_init(&bench, q);
    sd.address = cpu_to_le64(q->doorbells.addr);
    qrdma_command_ok(q, QRDMA_CMD_ADD_SD, 0, &sd, sizeof(sd), NULL, 0);
    mkc = qrdma_mkc_table(5, QRDMA_TEST_PD, 1, 12, 0x1000, QRDMA_PAGE, 0, 1);
    wqe.key = cpu_to_le32(qrdma_bench_mkey(&bench, 5, &mkc));
    qrdma_post_umr(q, &bench.umr, wqe, unit, sizeof(unit));
    qrdma_settle(q);

    /* Whether it is the UMR or the card that gives up: not with success. */
    if (qrdma_read32(q, QRDMA_REG_STATUS) & QRDMA_CARD_FATAL) {
        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==,
                        QRDMA_FATAL_HMC_DMA);
    } else {
        qrdma_cq_expect(q, &bench.cq_umr, QRDMA_CQE_UMR_ERROR);
    }
    qrdma_start(q);
    assert_alive(q);
}

static void register_hostile_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("ring-sizes", GROUP, test_ring_sizes, NULL);
    qos_add_test("ring-entries", GROUP, test_ring_entries, NULL);
    qos_add_test("producers", GROUP, test_producers, NULL);
    qos_add_test("full-ring", GROUP, test_full_ring, NULL);
    qos_add_test("consumers", GROUP, test_consumers, NULL);
    qos_add_test("eq-consumer", GROUP, test_eq_consumer, NULL);
    qos_add_test("foreign-page", GROUP, test_foreign_page, NULL);
    qos_add_test("last-page", GROUP, test_last_page, NULL);
    qos_add_test("changing-wqe", GROUP, test_changing_wqe, NULL);
    qos_add_test("message-at-registers", GROUP, test_message_at_registers,
                 NULL);
    qos_add_test("sd-at-doorbell", GROUP, test_sd_at_doorbell,
                 NULL);
}

libqos_init(register_hostile_tests);
