/*
 * qrdma engine tests: memory of rings, as the guest describes it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

#define CQN 9u
#define QPN 9u

static enum qrdma_status create_cq(TestLink *link, uint32_t number,
                                   const struct qrdma_ring *ring)
{
    struct qrdma_cqc in = { .ring = *ring };

    return card_command(link->card, QRDMA_CMD_CREATE_CQ, number, &in,
                        sizeof(in), NULL, 0);
}

static enum qrdma_status create_eq(TestLink *link, uint32_t number,
                                   const struct qrdma_ring *ring)
{
    struct qrdma_eqc in = { .ring = *ring };

    return card_command(link->card, QRDMA_CMD_CREATE_EQ, number, &in,
                        sizeof(in), NULL, 0);
}

static enum qrdma_status create_qp(TestLink *link, uint32_t number,
                                   const struct qrdma_ring *send,
                                   const struct qrdma_ring *receive)
{
    struct qrdma_qpc in = {
        .type = QRDMA_QP_RC,
        .send_cqn = qrdma_le32(1),
        .receive_cqn = qrdma_le32(1),
        .send_ring = *send,
        .receive_ring = *receive,
    };

    return card_command(link->card, QRDMA_CMD_CREATE_QP, number, &in,
                        sizeof(in), NULL, 0);
}

/* A ring of 2^6 CQEs: one page. */
static struct qrdma_ring good_ring(TestLink *link)
{
    return link_ring(card_alloc(link->card, LINK_PAGE, LINK_PAGE), 6,
                     QRDMA_CQE_LOG_SIZE);
}

/* Level 1, over pages that are not in order, at PBLE `index`. */
static struct qrdma_ring paged_ring(TestLink *link, uint32_t index,
                                    unsigned log_entries, unsigned log_stride)
{
    struct qrdma_ring ring = link_ring(0, log_entries, log_stride);
    uint32_t pages = qrdma_le32(ring.num_pages);
    uint64_t block = card_alloc(link->card, pages * LINK_PAGE, LINK_PAGE);

    ring.level = 1;
    ring.pble_index = qrdma_le32(index);
    for (uint32_t i = 0; i < pages; i++) {
        *card_pble(link->card, index + i) =
            qrdma_le64((block + (pages - 1 - i) * LINK_PAGE) |
                       QRDMA_PBLE_PRESENT);
    }
    return ring;
}

static void assert_sd_is_free(TestLink *link)
{
    g_assert_cmpint(card_command(link->card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0,
                                 NULL, 0), ==, QRDMA_STATUS_OK);
}

typedef struct BadRing {
    const char *name;
    void (*spoil)(TestLink *link, struct qrdma_ring *ring);
    enum qrdma_status status;
} BadRing;

static void no_pages(TestLink *link, struct qrdma_ring *ring)
{
    ring->num_pages = 0;
}

static void too_few_pages(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 7;
}

static void too_many_pages(TestLink *link, struct qrdma_ring *ring)
{
    ring->num_pages = qrdma_le32(2);
}

static void all_pages(TestLink *link, struct qrdma_ring *ring)
{
    ring->num_pages = qrdma_le32(0xffffffff);
}

/* 2^26 entries of 2^6 bytes make 2^32, which 32 bits would take for 0. */
static void entries_that_wrap(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 26;
    ring->num_pages = 0;
}

static void log_entries_17(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 17;
    ring->num_pages = qrdma_le32(1u << 11);
}

static void log_entries_63(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 63;
}

static void log_entries_255(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 255;
}

static void stride_5(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_stride = 5;
}

static void stride_255(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_stride = 255;
}

static void level_2(TestLink *link, struct qrdma_ring *ring)
{
    ring->level = 2;
}

static void level_255(TestLink *link, struct qrdma_ring *ring)
{
    ring->level = 255;
}

static void large_pages(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_page_size = 21;
}

static void reserved(TestLink *link, struct qrdma_ring *ring)
{
    ring->reserved = 1;
}

static void misaligned(TestLink *link, struct qrdma_ring *ring)
{
    ring->base = qrdma_le64(qrdma_le64(ring->base) + 64);
}

/* Two pages, of which the second would be at address 0. */
static void address_that_wraps(TestLink *link, struct qrdma_ring *ring)
{
    ring->log_entries = 7;
    ring->num_pages = qrdma_le32(2);
    ring->base = qrdma_le64(-(uint64_t)LINK_PAGE);
}

static void index_at_level_0(TestLink *link, struct qrdma_ring *ring)
{
    ring->pble_index = qrdma_le32(8);
}

static void base_at_level_1(TestLink *link, struct qrdma_ring *ring)
{
    uint64_t base = ring->base;

    *ring = paged_ring(link, 0, 6, QRDMA_CQE_LOG_SIZE);
    ring->base = base;
}

static void index_not_a_unit(TestLink *link, struct qrdma_ring *ring)
{
    *ring = paged_ring(link, 4, 6, QRDMA_CQE_LOG_SIZE);
}

static void index_outside(TestLink *link, struct qrdma_ring *ring)
{
    *ring = paged_ring(link, 0, 6, QRDMA_CQE_LOG_SIZE);
    ring->pble_index = qrdma_le32(1u << 30);
}

static void index_that_wraps(TestLink *link, struct qrdma_ring *ring)
{
    *ring = paged_ring(link, 0, 6, QRDMA_CQE_LOG_SIZE);
    ring->pble_index = qrdma_le32(0xfffffff8);
}

static void no_sd(TestLink *link, struct qrdma_ring *ring)
{
    *ring = paged_ring(link, 0, 6, QRDMA_CQE_LOG_SIZE);
    ring->pble_index = qrdma_le32(QRDMA_PBLES_PER_SD);
}

/* The last page of it lies in the next SD, which is not there. */
static void half_an_sd(TestLink *link, struct qrdma_ring *ring)
{
    *ring = paged_ring(link, QRDMA_PBLES_PER_SD - 16, 10, QRDMA_CQE_LOG_SIZE);
    ring->pble_index = qrdma_le32(QRDMA_PBLES_PER_SD - 8);
}

static void spoil_entry(TestLink *link, struct qrdma_ring *ring, uint64_t bits)
{
    *ring = paged_ring(link, 16, 7, QRDMA_CQE_LOG_SIZE);
    *card_pble(link->card, 17) ^= qrdma_le64(bits);
}

static void absent(TestLink *link, struct qrdma_ring *ring)
{
    spoil_entry(link, ring, QRDMA_PBLE_PRESENT);
}

static void not_writable(TestLink *link, struct qrdma_ring *ring)
{
    spoil_entry(link, ring, QRDMA_PBLE_WRITE);
}

static void reserved_bits(TestLink *link, struct qrdma_ring *ring)
{
    spoil_entry(link, ring, 4);
}

static void unreadable_pbles(TestLink *link, struct qrdma_ring *ring)
{
    uint64_t address;

    *ring = paged_ring(link, 16, 7, QRDMA_CQE_LOG_SIZE);
    g_assert_true(qrdma_hmc_bus_address(link->engine, 16, &address, NULL));
    fake_host_refuse(link->host, address, 8, true, false);
}

static const BadRing bad_rings[] = {
    { "no-pages", no_pages, QRDMA_STATUS_BAD_RING },
    { "too-few-pages", too_few_pages, QRDMA_STATUS_BAD_RING },
    { "too-many-pages", too_many_pages, QRDMA_STATUS_BAD_RING },
    { "all-pages", all_pages, QRDMA_STATUS_BAD_RING },
    { "entries-that-wrap", entries_that_wrap, QRDMA_STATUS_BAD_RING },
    { "log-entries-17", log_entries_17, QRDMA_STATUS_BAD_RING },
    { "log-entries-63", log_entries_63, QRDMA_STATUS_BAD_RING },
    { "log-entries-255", log_entries_255, QRDMA_STATUS_BAD_RING },
    { "stride-5", stride_5, QRDMA_STATUS_BAD_RING },
    { "stride-255", stride_255, QRDMA_STATUS_BAD_RING },
    { "level-2", level_2, QRDMA_STATUS_BAD_LEVEL },
    { "level-255", level_255, QRDMA_STATUS_BAD_LEVEL },
    { "large-pages", large_pages, QRDMA_STATUS_BAD_PAGE_SIZE },
    { "reserved", reserved, QRDMA_STATUS_BAD_RESERVED },
    { "misaligned", misaligned, QRDMA_STATUS_BAD_ALIGNMENT },
    { "address-that-wraps", address_that_wraps, QRDMA_STATUS_BAD_RING },
    { "index-at-level-0", index_at_level_0, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "base-at-level-1", base_at_level_1, QRDMA_STATUS_BAD_RESERVED },
    { "index-not-a-unit", index_not_a_unit, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "index-outside", index_outside, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "index-that-wraps", index_that_wraps, QRDMA_STATUS_BAD_PBLE_INDEX },
    { "no-sd", no_sd, QRDMA_STATUS_HMC_ERROR },
    { "half-an-sd", half_an_sd, QRDMA_STATUS_HMC_ERROR },
    { "absent", absent, QRDMA_STATUS_BAD_ENTRY },
    { "not-writable", not_writable, QRDMA_STATUS_BAD_ENTRY },
    { "reserved-bits", reserved_bits, QRDMA_STATUS_BAD_ENTRY },
    { "unreadable-pbles", unreadable_pbles, QRDMA_STATUS_HMC_ERROR },
};

/* A refused ring: its own status, no object, no SD held. (Cases 15, 21, 39.) */
static void test_bad_ring(gconstpointer data)
{
    const BadRing *bad = data;
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring ring = good_ring(link);

    bad->spoil(link, &ring);
    g_assert_cmpint(create_cq(link, CQN, &ring), ==, bad->status);
    g_assert_cmpint(card_command(link->card, QRDMA_CMD_DESTROY_CQ, CQN, NULL,
                                 0, NULL, 0), ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpuint(link->engine->queues->ring_pages, ==, 0);
    fake_host_allow_all(link->host);
    assert_sd_is_free(link);
    link_free(link);
}

/* The second ring of a QP is bad: the first is let go. */
static void test_bad_second_ring(void)
{
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring send = paged_ring(link, 0, 8, QRDMA_SEND_WQE_LOG_MIN);
    struct qrdma_ring receive = paged_ring(link, 64, 8, 4);

    g_assert_cmpint(create_qp(link, QPN, &send, &receive), ==,
                    QRDMA_STATUS_BAD_RING);
    g_assert_cmpuint(link->engine->queues->ring_pages, ==, 0);
    assert_sd_is_free(link);
    link_free(link);
}

typedef struct Limit {
    unsigned log_entries;
    unsigned log_stride;
    enum qrdma_status eq, cq, send, receive;
} Limit;

#define YES QRDMA_STATUS_OK
#define NO QRDMA_STATUS_BAD_RING

static const Limit limits[] = {
    { 0, 5, NO, NO, NO, YES },
    { 2, 5, NO, NO, NO, YES },
    { 3, 5, YES, NO, NO, YES },
    { 16, 5, YES, NO, NO, YES },
    { 17, 5, NO, NO, NO, NO },
    { 0, 6, NO, YES, NO, YES },
    { 16, 6, NO, YES, NO, YES },
    { 17, 6, NO, NO, NO, NO },
    { 0, 7, NO, NO, YES, YES },
    { 16, 7, NO, NO, YES, YES },
    { 4, 9, NO, NO, YES, YES },
    { 4, 10, NO, NO, NO, NO },
};

static void test_limits(void)
{
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring none = { 0 };
    struct qrdma_ring send = link_ring(CARD_MEMORY_BASE, 0,
                                       QRDMA_SEND_WQE_LOG_MIN);

    for (unsigned i = 0; i < G_N_ELEMENTS(limits); i++) {
        const Limit *limit = &limits[i];
        struct qrdma_ring ring = link_ring(CARD_MEMORY_BASE,
                                           limit->log_entries,
                                           limit->log_stride);

        g_assert_cmpint(create_eq(link, 8 + i, &ring), ==, limit->eq);
        g_assert_cmpint(create_cq(link, 0x100 + i, &ring), ==, limit->cq);
        g_assert_cmpint(create_qp(link, 0x200 + i, &ring, &none), ==,
                        limit->send);
        g_assert_cmpint(create_qp(link, 0x300 + i, &send, &ring), ==,
                        limit->receive);
    }
    link_free(link);
}

/* Rings of many scattered pages carry messages; their SD stays. */
static void test_paged_rings_work(void)
{
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring cq_ring = paged_ring(link, 0, 10, QRDMA_CQE_LOG_SIZE);
    struct qrdma_ring send = paged_ring(link, 32, 8, QRDMA_SEND_WQE_LOG_MAX);
    struct qrdma_ring receive = paged_ring(link, 64, 4,
                                           QRDMA_RECEIVE_WQE_LOG_MIN);
    struct qrdma_qpc qpc = {
        .type = QRDMA_QP_RC,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(CQN),
        .receive_cqn = qrdma_le32(CQN),
        .send_ring = send,
        .receive_ring = receive,
    };
    TestQp qp = { .number = QPN };
    uint8_t wqe[QRDMA_MAX_SEND_WQE];
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };

    g_assert_cmpint(create_cq(link, CQN, &cq_ring), ==, QRDMA_STATUS_OK);
    card_must(link->card, QRDMA_CMD_CREATE_QP, QPN, &qpc, sizeof(qpc));
    link_connect(link, &qp, LINK_QPN_A);
    link_send_wqe(&nop, wqe);
    for (unsigned i = 0; i < 256; i++) {
        uint64_t page = qrdma_le64(*card_pble(link->card, 32 + i / 8)) & ~3ull;

        memcpy(card_pointer(link->card, page + i % 8 * sizeof(wqe),
                            sizeof(wqe)), wqe, sizeof(wqe));
    }
    link_doorbell(link, 0, QRDMA_DOORBELL_SEND, QPN, 256);
    fake_host_run(link->host);
    for (unsigned i = 0; i < 256; i++) {
        uint64_t page = qrdma_le64(*card_pble(link->card, i / 64)) & ~3ull;
        struct qrdma_cqe *cqe = card_pointer(link->card, page + i % 64 * 64,
                                             64);

        g_assert_cmpuint(cqe->phase, ==, 1);
        g_assert_cmpuint(cqe->opcode, ==, QRDMA_CQE_OP_NOP);
        g_assert_cmpuint(qrdma_le32(cqe->wqe_counter), ==, i);
    }
    g_assert_cmpint(card_command(link->card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0,
                                 NULL, 0), ==, QRDMA_STATUS_IN_USE);
    card_must(link->card, QRDMA_CMD_DESTROY_QP, QPN, NULL, 0);
    card_must(link->card, QRDMA_CMD_DESTROY_CQ, CQN, NULL, 0);
    assert_sd_is_free(link);
    link_free(link);
}

/* PBLEs are read once: what the CPU writes there later moves no ring. */
static void test_pages_are_read_once(void)
{
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring ring = paged_ring(link, 0, 6, QRDMA_CQE_LOG_SIZE);

    g_assert_cmpint(create_cq(link, CQN, &ring), ==, QRDMA_STATUS_OK);
    *card_pble(link->card, 0) = qrdma_le64(~0ull);
    g_assert_cmphex(qrdma_cq_find(link->engine, CQN)->ring.pages[0], >=,
                    CARD_MEMORY_BASE);
    g_assert_cmphex(qrdma_cq_find(link->engine, CQN)->ring.pages[0], <,
                    CARD_MEMORY_BASE + CARD_MEMORY_SIZE);
    link_free(link);
}

/* Rings may share PBLEs; what the card remembers of them has a bound. */
static void test_pages_are_bounded(void)
{
    TestLink *link = link_new_unconnected(NULL);
    struct qrdma_ring ring = link_ring(0, QRDMA_LOG_MAX_RING_ENTRIES,
                                       QRDMA_SEND_WQE_LOG_MAX);
    uint32_t pages = qrdma_le32(ring.num_pages);
    struct qrdma_ring none = { 0 };
    uint32_t created = 0;

    for (uint32_t i = 0; i < pages; i++) {
        *card_pble(link->card, i) = qrdma_le64(CARD_MEMORY_BASE |
                                               QRDMA_PBLE_PRESENT);
    }
    ring.level = 1;
    while (create_qp(link, 0x100 + created, &ring, &none) ==
           QRDMA_STATUS_OK) {
        created++;
    }
    g_assert_cmpuint(created, ==, QRDMA_MAX_RING_PAGES / pages);
    g_assert_cmpint(create_qp(link, 0x100 + created, &ring, &none), ==,
                    QRDMA_STATUS_NO_RESOURCES);
    card_must(link->card, QRDMA_CMD_DESTROY_QP, 0x100, NULL, 0);
    g_assert_cmpint(create_qp(link, 0x100, &ring, &none), ==,
                    QRDMA_STATUS_OK);
    link_free(link);
}

/* ----------------------------------------------------- counters that wrap */

#define BEFORE_WRAP (0u - LINK_ENTRIES)

static void age_qp(TestLink *link, TestQp *qp)
{
    QrdmaQp *of_card = qrdma_qp_find(link->engine, qp->number);

    of_card->send.producer = of_card->send.consumer = BEFORE_WRAP;
    of_card->receive.producer = of_card->receive.consumer = BEFORE_WRAP;
    qp->send_producer = qp->receive_producer = BEFORE_WRAP;
}

static void age_cq(TestLink *link, TestReader *reader)
{
    QrdmaCq *cq = qrdma_cq_find(link->engine, reader->number);

    link_age(link, reader, BEFORE_WRAP, &cq->producer, &cq->consumer);
}

/*
 * Counters of 32 bits run over in every ring on the way of a message, and a
 * full ring is full across that.
 */
static void test_counters_wrap(Pair *pair, gconstpointer data)
{
    TestLink *link = pair->link;
    TestSend send = pair_message(pair, QRDMA_SEND_OP_SEND, LINK_PAGE);
    QrdmaEq *eq = qrdma_eq_find(link->engine, link->eq.number);

    age_qp(link, &link->a);
    age_qp(link, &link->b);
    age_cq(link, &link->cq_a);
    age_cq(link, &link->cq_b);
    link_age(link, &link->eq, BEFORE_WRAP, &eq->producer, &eq->consumer);
    for (unsigned round = 0; round < 3; round++) {
        uint32_t first = link->a.send_producer;

        link_arm(link, &link->cq_b, QRDMA_DOORBELL_ARM_NEXT);
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            pair_post_receive(pair, LINK_PAGE);
            link_post_send(link, &link->a, &send);
        }
        fake_host_run(link->host);
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            struct qrdma_cqe cqe;

            cqe = link_expect(link, &link->cq_a, QRDMA_CQE_OP_SEND,
                              QRDMA_CQE_SUCCESS);
            g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, first + i);
            cqe = link_expect(link, &link->cq_b, QRDMA_CQE_OP_RECV,
                              QRDMA_CQE_SUCCESS);
            g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, first + i);
        }
        link_expect_event(link, QRDMA_EVENT_COMPLETION,
                          link->cq_b.number);
    }
    g_assert_cmpuint(link->a.send_producer, ==, 2 * LINK_ENTRIES);
    /* One more than the ring holds, by a counter that has wrapped. */
    link->a.send_producer += LINK_ENTRIES + 1;
    link_ring_send(link, &link->a);
    fake_host_run(link->host);
    link_expect_event(link, QRDMA_EVENT_QP_ERROR, LINK_QPN_A);
    link_expect_no_event(link);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_rings); i++) {
        char *path = g_strdup_printf("/ring/bad/%s", bad_rings[i].name);

        g_test_add_data_func(path, &bad_rings[i], test_bad_ring);
        g_free(path);
    }
    g_test_add_func("/ring/bad-second-ring", test_bad_second_ring);
    g_test_add_func("/ring/limits", test_limits);
    g_test_add_func("/ring/paged-rings-work", test_paged_rings_work);
    g_test_add_func("/ring/pages-are-read-once", test_pages_are_read_once);
    g_test_add_func("/ring/pages-are-bounded", test_pages_are_bounded);
    pair_add("/ring/%s", "counters-wrap", NULL, pair_set_up,
             test_counters_wrap);
    return g_test_run();
}
