/*
 * qrdma engine tests: page-size changes and revocations under traffic.
 *
 * QP a reads from or writes to a region at QP b's side, in packets that take
 * their time, while a UMR queue changes the region. What is checked is what
 * arrives in memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-link.h"

#define MIB (1024 * 1024ull)
#define RW QRDMA_PBLE_PRESENT
#define LENGTH (8 * MIB)
#define PAGES (LENGTH / LINK_PAGE)
#define LARGE_LOG 21u
#define START 0x40000000ull
#define INDEX 0x77u
#define KEY REGION_KEY(INDEX)
#define LATENCY 1000u
#define IN_FLIGHT 8u            /* messages that a keeps going */
#define MESSAGE 64u
#define REVOKED_PD 1u

typedef enum Layout {
    OLD,                        /* 4 KiB pages */
    NEW,                        /* 2 MiB pages */
    LAYOUTS
} Layout;

typedef struct Traffic {
    TestLink *link;
    GRand *random;
    QrdmaMkc mkc;
    uint64_t memory[LAYOUTS];
    TestBuffer *local;
    uint32_t posted;
    uint32_t page_of[LINK_ENTRIES];
    uint64_t right[LAYOUTS];
    uint64_t wrong;
    uint64_t refused;
} Traffic;

/* Blocks of a layout lie in reverse order: none follows another. */
static uint64_t place(const Traffic *traffic, Layout layout, uint64_t block)
{
    unsigned log = layout == OLD ? 12 : LARGE_LOG;
    uint64_t blocks = LENGTH >> log;

    return traffic->memory[layout] + ((blocks - 1 - block) << log);
}

/* Where byte `offset` of the region lies. */
static uint64_t byte_place(const Traffic *traffic, Layout layout,
                           uint64_t offset)
{
    unsigned log = layout == OLD ? 12 : LARGE_LOG;

    return place(traffic, layout, offset >> log) +
           (offset & ((1u << log) - 1));
}

static uint64_t stamp(Layout layout, uint64_t page)
{
    return 0x5aull << 56 | (uint64_t)layout << 48 | page;
}

/* All words of what a message takes from a page are its stamp. */
static void stamp_pages(Traffic *traffic)
{
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        for (uint64_t page = 0; page < PAGES; page++) {
            uint64_t at = byte_place(traffic, layout, page * LINK_PAGE);
            uint64_t *words = card_pointer(traffic->link->card, at, MESSAGE);

            for (unsigned i = 0; i < MESSAGE / sizeof(*words); i++) {
                words[i] = stamp(layout, page);
            }
        }
    }
}

static void traffic_init(Traffic *traffic, uint64_t seed, uint32_t flags)
{
    QrdmaConfig config = card_default_config();

    config.packet_latency = LATENCY;
    config.umr_order_seed = seed;
    *traffic = (Traffic) {
        .link = link_new(&config),
        .random = g_rand_new_with_seed(seed),
    };
    link_add_umr(traffic->link);
    traffic->local = link_buffer(traffic->link, 0, 12, 0, LINK_PAGE, 0);
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        traffic->memory[layout] = card_alloc(traffic->link->card, LENGTH,
                                             1u << LARGE_LOG);
    }
    stamp_pages(traffic);
    traffic->mkc = region_mkc(START, LENGTH, 12, 1,
                              traffic->link->next_pble);
    traffic->mkc.flags |= flags;
    for (uint64_t i = 0; i < PAGES; i++) {
        region_set_pble(traffic->link->card, &traffic->mkc, i,
                        place(traffic, OLD, i) | RW);
    }
    g_assert_cmpint(region_create(traffic->link->card, INDEX, &traffic->mkc),
                    ==, QRDMA_STATUS_OK);
}

static void traffic_free(Traffic *traffic)
{
    link_buffer_free(traffic->local);
    link_free(traffic->link);
    g_rand_free(traffic->random);
}

static void post_message(Traffic *traffic, enum qrdma_send_opcode opcode)
{
    unsigned slot = traffic->posted % IN_FLIGHT;
    uint32_t page = g_rand_int_range(traffic->random, 0, PAGES);
    TestSend send = {
        .opcode = opcode,
        .flags = QRDMA_WQE_SIGNALED,
        .remote_address = START + page * LINK_PAGE,
        .remote_key = KEY,
        .segments = 1,
        .segment[0] = link_segment(traffic->local, slot * MESSAGE, MESSAGE),
    };

    traffic->page_of[slot] = page;
    traffic->posted++;
    link_post_send(traffic->link, &traffic->link->a, &send);
}

static void classify(Traffic *traffic, unsigned slot)
{
    const uint64_t *words = link_buffer_pointer(traffic->local, slot * MESSAGE,
                                                MESSAGE);
    uint32_t page = traffic->page_of[slot];

    for (unsigned i = 1; i < MESSAGE / sizeof(*words); i++) {
        if (words[i] != words[0]) {
            traffic->wrong++;
            return;
        }
    }
    if (words[0] == stamp(OLD, page)) {
        traffic->right[OLD]++;
    } else if (words[0] == stamp(NEW, page)) {
        traffic->right[NEW]++;
    } else {
        traffic->wrong++;
    }
}

/* Take what is complete, and post as much again. */
static void turn_over_reads(Traffic *traffic)
{
    struct qrdma_cqe cqe;

    while (link_poll(traffic->link, &traffic->link->cq_a, &cqe)) {
        g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
        classify(traffic, qrdma_le32(cqe.wqe_counter) % IN_FLIGHT);
        post_message(traffic, QRDMA_SEND_OP_READ);
    }
}

static void some_time(Traffic *traffic)
{
    fake_host_step(traffic->link->host);
    fake_host_tick(traffic->link->host,
                   g_rand_int_range(traffic->random, 0, LATENCY / 2));
}

/* Suspended QPs try again; where the page is still absent they fault again. */
static void resume_faults(Traffic *traffic)
{
    struct qrdma_eqe eqe;

    if (link_next_event(traffic->link, &traffic->link->eq, &eqe)) {
        struct qrdma_resume resume = { .token = eqe.token };

        g_assert_cmpuint(eqe.type, ==, QRDMA_EVENT_PAGE_FAULT);
        g_assert_cmphex(qrdma_le32(eqe.key), ==, KEY);
        card_must(traffic->link->card, QRDMA_CMD_RESUME_PAGE_FAULT,
                  qrdma_le32(eqe.number), &resume, sizeof(resume));
    }
}

/* A UMR, with traffic while it is carried out and for a while after. */
static void umr(Traffic *traffic, const TestUmr *request)
{
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    struct qrdma_cqe cqe;

    region_umr_wqe(traffic->link->card, request, wqe);
    link_put_send(traffic->link, &traffic->link->umr, wqe, sizeof(wqe));
    link_ring_send(traffic->link, &traffic->link->umr);
    while (!link_poll(traffic->link, &traffic->link->cq_umr, &cqe)) {
        some_time(traffic);
        turn_over_reads(traffic);
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
    resume_faults(traffic);
    for (unsigned i = 0; i < 300; i++) {
        some_time(traffic);
        turn_over_reads(traffic);
    }
}

static void write_entries(Traffic *traffic, Layout layout, uint64_t first,
                          uint64_t count, bool absent)
{
    g_autofree uint64_t *pbles = g_new0(uint64_t,
                                        qrdma_pble_round_to_units(count));
    TestUmr request = {
        .key = KEY,
        .flags = QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = first * sizeof(uint64_t),
        .units = qrdma_pble_round_to_units(count) / QRDMA_PBLES_PER_UNIT,
        .pbles = pbles,
    };

    for (uint64_t i = 0; i < count && !absent; i++) {
        pbles[i] = place(traffic, layout, first + i) | RW;
    }
    umr(traffic, &request);
}

static void set_page_size(Traffic *traffic, unsigned log)
{
    TestUmr request = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_PAGE_SIZE,
        .mkc.log_page_size = log,
    };

    umr(traffic, &request);
}

static void change_page_size(Traffic *traffic, Layout layout)
{
    unsigned log = layout == OLD ? 12 : LARGE_LOG;
    uint64_t entries = LENGTH >> log;
    uint64_t most = MIN(entries, QRDMA_PBLES_PER_UNIT);

    write_entries(traffic, layout, 0, most, true);
    set_page_size(traffic, 23);
    if (entries > most) {
        write_entries(traffic, layout, most, entries - most, false);
    }
    set_page_size(traffic, log);
    write_entries(traffic, layout, 0, most, false);
}

static void test_page_size(void)
{
    for (uint64_t seed = 0; seed < 5; seed++) {
        Traffic traffic;
        uint64_t before;

        traffic_init(&traffic, seed, QRDMA_MKEY_ON_DEMAND);
        for (unsigned i = 0; i < IN_FLIGHT; i++) {
            post_message(&traffic, QRDMA_SEND_OP_READ);
        }
        for (unsigned i = 0; i < 100; i++) {
            some_time(&traffic);
            turn_over_reads(&traffic);
        }
        g_assert_cmpuint(traffic.right[OLD], >, 0);
        change_page_size(&traffic, NEW);
        g_assert_cmpuint(traffic.right[NEW], >, 0);
        before = traffic.right[OLD];
        change_page_size(&traffic, OLD);
        g_assert_cmpuint(traffic.right[OLD], >, before);
        g_assert_cmpuint(traffic.wrong, ==, 0);
        /* Something was in the way of the change, and got through after it. */
        g_assert_cmpuint(traffic.link->engine->counters.page_faults, >, 0);
        g_test_message("seed %" G_GUINT64_FORMAT ": old %" G_GUINT64_FORMAT
                       " new %" G_GUINT64_FORMAT " faults %" G_GUINT64_FORMAT,
                       seed, traffic.right[OLD], traffic.right[NEW],
                       traffic.link->engine->counters.page_faults);
        traffic_free(&traffic);
    }
}

/* The whole of the memory, so that nothing can hide. */
static void fill_memory(Traffic *traffic, uint8_t value)
{
    memset(card_pointer(traffic->link->card, traffic->memory[OLD], LENGTH),
           value, LENGTH);
}

static bool memory_is(Traffic *traffic, uint8_t value)
{
    const uint8_t *bytes = card_pointer(traffic->link->card,
                                        traffic->memory[OLD], LENGTH);

    /* All equal to the first: each to its neighbour. */
    return bytes[0] == value && memcmp(bytes, bytes + 1, LENGTH - 1) == 0;
}

/*
 * Writes are under way when the key is revoked. The memory gets a new owner
 * once the UMR is complete, or already when it is posted. True: nobody else
 * wrote to it from then on.
 */
static bool revoke(uint64_t seed, bool wait)
{
    TestUmr request = {
        .key = KEY,
        .flags = QRDMA_UMR_CHECK_NOT_FREE,
        .mask = QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD,
        .mkc = { .flags = QRDMA_MKEY_FREE, .pd = REVOKED_PD },
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    struct qrdma_cqe cqe;
    struct qrdma_eqe eqe;
    Traffic traffic;
    bool untouched;

    traffic_init(&traffic, seed, 0);
    link_buffer_fill(traffic.local, 3);
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        post_message(&traffic, QRDMA_SEND_OP_WRITE);
    }
    for (unsigned i = g_rand_int_range(traffic.random, 1, 6); i; i--) {
        some_time(&traffic);
    }
    region_umr_wqe(traffic.link->card, &request, wqe);
    link_put_send(traffic.link, &traffic.link->umr, wqe, sizeof(wqe));
    link_ring_send(traffic.link, &traffic.link->umr);
    while (wait && !link_poll(traffic.link, &traffic.link->cq_umr, &cqe)) {
        some_time(&traffic);
    }
    fill_memory(&traffic, 0xa5);
    post_message(&traffic, QRDMA_SEND_OP_WRITE);
    fake_host_settle(traffic.link->host);
    untouched = memory_is(&traffic, 0xa5);
    /* The writer is told, and so is the driver: which key, which address. */
    do {
        g_assert_true(link_poll(traffic.link, &traffic.link->cq_a, &cqe));
    } while (cqe.status == QRDMA_CQE_SUCCESS);
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    do {
        g_assert_true(link_next_event(traffic.link, &traffic.link->eq, &eqe));
    } while (eqe.type != QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmphex(qrdma_le32(eqe.key), ==, KEY);
    g_assert_cmphex(qrdma_le64(eqe.address), >=, START);
    g_assert_cmphex(qrdma_le64(eqe.address), <, START + LENGTH);
    g_assert_cmpint(qrdma_le16(eqe.syndrome), ==, QRDMA_ACCESS_FREE);
    traffic_free(&traffic);
    return untouched;
}

static void test_revoke(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        g_assert_true(revoke(seed, true));
    }
}

/* Whoever does not wait for the completion finds it out: the test can see. */
static void test_revoke_without_fence(void)
{
    unsigned touched = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        touched += !revoke(seed, false);
    }
    g_assert_cmpuint(touched, >, 0);
}

/* A destroy is such a fence as well. */
static void test_destroy(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Traffic traffic;

        traffic_init(&traffic, seed, 0);
        link_buffer_fill(traffic.local, 3);
        for (unsigned i = 0; i < IN_FLIGHT; i++) {
            post_message(&traffic, QRDMA_SEND_OP_WRITE);
        }
        for (unsigned i = g_rand_int_range(traffic.random, 1, 6); i; i--) {
            some_time(&traffic);
        }
        card_must(traffic.link->card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
        fill_memory(&traffic, 0xa5);
        fake_host_settle(traffic.link->host);
        g_assert_true(memory_is(&traffic, 0xa5));
        traffic_free(&traffic);
    }
}

/* cases.md 48: transfers pending at a reset move nothing after it. */
static void test_reset(void)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        Traffic traffic;
        FakeHost *host;
        unsigned reads, writes, interrupts = 0, after = 0;

        traffic_init(&traffic, seed, 0);
        host = traffic.link->host;
        for (unsigned i = 0; i < LINK_ENTRIES; i++) {
            post_message(&traffic, QRDMA_SEND_OP_WRITE);
        }
        for (unsigned i = g_rand_int_range(traffic.random, 1, 6); i; i--) {
            some_time(&traffic);
        }
        qrdma_engine_reset(traffic.link->engine);
        g_assert_cmpuint(host->deadline, ==, UINT64_MAX);
        reads = host->reads;
        writes = host->writes;
        for (unsigned i = 0; i < QRDMA_MSIX_VECTORS; i++) {
            interrupts += host->interrupts[i];
        }
        fill_memory(&traffic, 0xa5);
        fake_host_settle(host);
        qrdma_engine_timer(traffic.link->engine);
        fake_host_advance(host, 10 * LATENCY);
        for (unsigned i = 0; i < QRDMA_MSIX_VECTORS; i++) {
            after += host->interrupts[i];
        }
        g_assert_cmpuint(host->reads, ==, reads);
        g_assert_cmpuint(host->writes, ==, writes);
        g_assert_cmpuint(after, ==, interrupts);
        g_assert_true(memory_is(&traffic, 0xa5));
        traffic_free(&traffic);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/traffic/page-size", test_page_size);
    g_test_add_func("/traffic/revoke", test_revoke);
    g_test_add_func("/traffic/revoke-without-fence", test_revoke_without_fence);
    g_test_add_func("/traffic/destroy", test_destroy);
    g_test_add_func("/traffic/reset", test_reset);
    return g_test_run();
}
