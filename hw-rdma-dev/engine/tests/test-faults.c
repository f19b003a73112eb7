/*
 * qrdma engine tests: fault injection. Every action of every target, what is
 * counted, and that nothing of it outlives what it is about.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

#define DELAY 5000u
#define FOREIGN_INDEX 0x777u

static void set_up(Pair *pair, gconstpointer data)
{
    pair_set_up(pair, data);
    link_add_umr(pair->link);
}

static void arm(Pair *pair, QrdmaFault fault)
{
    card_arm(pair->link->card, fault);
}

static uint32_t held(Pair *pair)
{
    return g_queue_get_length(&pair->link->engine->faults->held);
}

static uint32_t fatal_code(Pair *pair)
{
    return pair->link->engine->registers.error;
}

/* ---------------------------------------------------------------- commands */

static enum qrdma_status nop(Pair *pair)
{
    return card_command(pair->link->card, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

static void test_counting(Pair *pair, gconstpointer data)
{
    static const enum qrdma_status expected[] = {
        QRDMA_STATUS_OK, QRDMA_STATUS_BAD_STATE, QRDMA_STATUS_NO_RESOURCES,
        QRDMA_STATUS_NO_RESOURCES, QRDMA_STATUS_OK,
    };
    QrdmaFault list[QRDMA_MAX_FAULTS];

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL, .at = 2,
                             .status = QRDMA_STATUS_BAD_STATE });
    /* Both count the second one, which the first armed hits. */
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL, .at = 2,
                             .count = 2,
                             .status = QRDMA_STATUS_NO_RESOURCES });
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL,
                             .index = FOREIGN_INDEX });
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL,
                             .opcode = QRDMA_CMD_QUERY_DEVICE });
    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpint(nop(pair), ==, expected[i]);
    }
    g_assert_cmpuint(qrdma_engine_fault_list(pair->link->engine, list), ==, 2);
    g_assert_cmpuint(list[0].seen + list[1].seen, ==, 0);
    g_assert_cmpuint(pair->link->engine->faults->fired, ==, 3);
}

static void test_for_ever(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL,
                             .count = QRDMA_FAULT_FOR_EVER });
    for (unsigned i = 0; i < 100; i++) {
        g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_INJECTED);
    }
    qrdma_engine_fault_clear(pair->link->engine);
    g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_OK);
}

static bool mkey_exists(Pair *pair, uint32_t index)
{
    return qrdma_mkey_find(pair->link->engine, index);
}

static enum qrdma_status destroy(Pair *pair, uint32_t index)
{
    return card_command(pair->link->card, QRDMA_CMD_DESTROY_MKEY, index, NULL,
                        0, NULL, 0);
}

static void test_command_delay(Pair *pair, gconstpointer data)
{
    uint64_t before = pair->link->host->now;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DELAY,
                             .delay = DELAY });
    g_assert_cmpint(destroy(pair, pair->to->index), ==, QRDMA_STATUS_OK);
    g_assert_cmpuint(pair->link->host->now, >=, before + DELAY);
    g_assert_false(mkey_exists(pair, pair->to->index));
}

/* Delayed by nothing at the beginning of time, it is checked all the same. */
static void test_command_delay_zero(Pair *pair, gconstpointer data)
{
    g_assert_cmpuint(pair->link->host->now, ==, 0);
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DELAY });
    g_assert_cmpint(card_command(pair->link->card, 0x7f, 0, NULL, 0, NULL, 0),
                    ==, QRDMA_STATUS_BAD_OPCODE);
}

static void test_command_drop(Pair *pair, gconstpointer data)
{
    struct qrdma_mkc mkc;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DROP,
                             .index = pair->to->index, .count = 2 });
    g_assert_cmpint(destroy(pair, pair->to->index), ==, QRDMA_STATUS_OK);
    g_assert_true(mkey_exists(pair, pair->to->index));
    memset(&mkc, 0xff, sizeof(mkc));
    g_assert_cmpint(card_command(pair->link->card, QRDMA_CMD_QUERY_MKEY,
                                 pair->to->index, NULL, 0, &mkc, sizeof(mkc)),
                    ==, QRDMA_STATUS_OK);
    g_assert_true(qrdma_is_zero(&mkc, sizeof(mkc)));
    /* What is wrong anyhow is refused all the same. */
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DROP });
    g_assert_cmpint(card_command(pair->link->card, 0x7f, 0, NULL, 0, NULL, 0),
                    ==, QRDMA_STATUS_BAD_OPCODE);
}

static void test_command_late(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_LATE,
                             .opcode = QRDMA_CMD_DESTROY_MKEY,
                             .delay = DELAY });
    g_assert_cmpint(destroy(pair, pair->to->index), ==, QRDMA_STATUS_OK);
    g_assert_true(mkey_exists(pair, pair->to->index));
    g_assert_cmpuint(held(pair), ==, 1);
    fake_host_advance(pair->link->host, DELAY);
    g_assert_false(mkey_exists(pair, pair->to->index));
    g_assert_cmpuint(held(pair), ==, 0);
    g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_OK);
}

static void test_command_duplicate(Pair *pair, gconstpointer data)
{
    unsigned errors = pair->link->host->guest_errors;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DUPLICATE,
                             .delay = DELAY });
    g_assert_cmpint(destroy(pair, pair->to->index), ==, QRDMA_STATUS_OK);
    g_assert_false(mkey_exists(pair, pair->to->index));
    g_assert_cmpuint(pair->link->host->guest_errors, ==, errors);
    fake_host_settle(pair->link->host);
    /* The second time there was nothing to destroy; only the log says so. */
    g_assert_cmpuint(pair->link->host->guest_errors, ==, errors + 1);
    g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_OK);
}

static void test_command_swap(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_SWAP,
                             .opcode = QRDMA_CMD_DESTROY_MKEY });
    g_assert_cmpint(destroy(pair, pair->to->index), ==, QRDMA_STATUS_OK);
    g_assert_true(mkey_exists(pair, pair->to->index));
    /* Another kind of command does not bring it. */
    g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_OK);
    g_assert_true(mkey_exists(pair, pair->to->index));
    g_assert_cmpint(destroy(pair, pair->from->index), ==, QRDMA_STATUS_OK);
    g_assert_false(mkey_exists(pair, pair->from->index));
    g_assert_false(mkey_exists(pair, pair->to->index));
    g_assert_cmpuint(held(pair), ==, 0);
}

static void test_command_fatal(Pair *pair, gconstpointer data)
{
    bool after = GPOINTER_TO_UINT(data);

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FATAL,
                             .point = after ? QRDMA_FAULT_POINT_AFTER
                                            : QRDMA_FAULT_POINT_BEFORE });
    g_assert_cmpint(destroy(pair, pair->to->index), ==,
                    QRDMA_STATUS_FATAL_STATE);
    g_assert_cmpint(mkey_exists(pair, pair->to->index), ==, !after);
    g_assert_cmpint(fatal_code(pair), ==, QRDMA_FATAL_INJECTED);
}

/* -------------------------------------------------------------------- UMRs */

static TestUmr take_key(Pair *pair, bool take)
{
    return (TestUmr) {
        .key = pair->to->key,
        .mask = QRDMA_UMR_MASK_FREE,
        .mkc.flags = take ? QRDMA_MKEY_FREE : 0,
    };
}

static void post_umr(Pair *pair, const TestUmr *umr)
{
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];

    region_umr_wqe(pair->link->card, umr, wqe);
    link_put_send(pair->link, &pair->link->umr, wqe, sizeof(wqe));
    link_ring_send(pair->link, &pair->link->umr);
}

static struct qrdma_cqe expect_umr(Pair *pair, enum qrdma_cqe_status status)
{
    return link_expect(pair->link, &pair->link->cq_umr, QRDMA_CQE_OP_UMR,
                       status);
}

static bool is_free(Pair *pair)
{
    return qrdma_mkey_find(pair->link->engine, pair->to->index)->mkc.flags &
           QRDMA_MKEY_FREE;
}

static void free_by_umr(Pair *pair)
{
    TestUmr umr = take_key(pair, true);

    post_umr(pair, &umr);
    fake_host_run(pair->link->host);
}

static void test_umr_fail(Pair *pair, gconstpointer data)
{
    struct qrdma_cqe cqe;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL,
                             .index = pair->to->index,
                             .status = QRDMA_STATUS_HMC_ERROR });
    free_by_umr(pair);
    cqe = expect_umr(pair, QRDMA_CQE_UMR_ERROR);
    g_assert_cmpuint(qrdma_le16(cqe.syndrome), ==, QRDMA_STATUS_HMC_ERROR);
    g_assert_false(is_free(pair));
}

static void test_umr_delay(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_DELAY,
                             .delay = DELAY });
    free_by_umr(pair);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
    g_assert_false(is_free(pair));
    fake_host_advance(pair->link->host, DELAY);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_true(is_free(pair));
}

static void test_umr_drop(Pair *pair, gconstpointer data)
{
    TestUmr bad = take_key(pair, true);

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_DROP, .count = 2 });
    free_by_umr(pair);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_false(is_free(pair));
    bad.key ^= 1;
    post_umr(pair, &bad);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_UMR_ERROR);
}

static void test_umr_late(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_LATE,
                             .delay = DELAY });
    free_by_umr(pair);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_false(is_free(pair));
    g_assert_cmpuint(held(pair), ==, 1);
    fake_host_advance(pair->link->host, DELAY);
    g_assert_true(is_free(pair));
    g_assert_cmpuint(held(pair), ==, 0);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
}

/* The table's data is what it was when the UMR was posted. */
static void test_umr_late_data(Pair *pair, gconstpointer data)
{
    uint64_t pbles[QRDMA_PBLES_PER_UNIT] = { 0x7000 | QRDMA_PBLE_PRESENT };
    TestUmr umr = { .key = pair->to->key, .units = 1, .pbles = pbles };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    struct qrdma_umr_wqe *header = (struct qrdma_umr_wqe *)wqe;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_LATE,
                             .delay = DELAY });
    region_umr_wqe(pair->link->card, &umr, wqe);
    link_put_send(pair->link, &pair->link->umr, wqe, sizeof(wqe));
    link_ring_send(pair->link, &pair->link->umr);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    memset(card_pointer(pair->link->card, qrdma_le64(header->table_address),
                        QRDMA_TABLE_UNIT), 0xff, QRDMA_TABLE_UNIT);
    fake_host_settle(pair->link->host);
    g_assert_cmphex(region_get_pble(pair->link->card, &pair->to->mkc, 0), ==,
                    pbles[0]);
}

static void test_umr_duplicate(Pair *pair, gconstpointer data)
{
    TestUmr give = take_key(pair, false);

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_DUPLICATE,
                             .delay = DELAY });
    free_by_umr(pair);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    post_umr(pair, &give);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_false(is_free(pair));
    fake_host_advance(pair->link->host, DELAY);
    g_assert_true(is_free(pair));
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
}

static void test_umr_swap(Pair *pair, gconstpointer data)
{
    TestUmr give = take_key(pair, false);

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_SWAP });
    free_by_umr(pair);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_false(is_free(pair));
    post_umr(pair, &give);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    g_assert_true(is_free(pair));
}

/* Three items: two units and the context. */
static void test_umr_fatal(Pair *pair, gconstpointer data)
{
    uint32_t point = GPOINTER_TO_UINT(data);
    uint64_t pbles[QRDMA_PBLES_PER_UNIT] = { 0 };
    uint64_t before = region_get_pble(pair->link->card, &pair->to->mkc, 0);
    TestUmr umr = take_key(pair, true);

    umr.units = 1;
    umr.pbles = pbles;
    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_FATAL,
                             .point = point });
    post_umr(pair, &umr);
    fake_host_settle(pair->link->host);
    g_assert_cmpint(fatal_code(pair), ==, QRDMA_FATAL_INJECTED);
    g_assert_cmphex(region_get_pble(pair->link->card, &pair->to->mkc, 0), ==,
                    point ? 0 : before);
    g_assert_cmpint(is_free(pair), ==, point >= 2);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
}

/* Nothing that is held back comes after its end. */
static void test_held_is_dropped(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_LATE, .count = 2,
                             .delay = DELAY });
    free_by_umr(pair);
    card_must(pair->link->card, QRDMA_CMD_DESTROY_MKEY, pair->to->index, NULL,
              0);
    fake_host_settle(pair->link->host);
    g_assert_cmpuint(held(pair), ==, 0);
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_LATE,
                             .delay = DELAY });
    g_assert_cmpint(nop(pair), ==, QRDMA_STATUS_OK);
    g_assert_cmpuint(held(pair), ==, 1);
    qrdma_engine_reset(pair->link->engine);
    g_assert_cmpuint(held(pair), ==, 0);
    g_assert_cmpuint(pair->link->host->deadline, ==, UINT64_MAX);
}

/* ------------------------------------------------- completions and events */

static void nops(Pair *pair, unsigned count)
{
    TestSend send = { .opcode = QRDMA_SEND_OP_NOP,
                      .flags = QRDMA_WQE_SIGNALED };

    while (count--) {
        link_post_send(pair->link, &pair->link->a, &send);
    }
    fake_host_run(pair->link->host);
}

/* Counters of the WQEs completed on QP a, as they come. */
static void expect_order(Pair *pair, const char *order)
{
    for (const char *digit = order; *digit; digit++) {
        struct qrdma_cqe cqe = link_expect(pair->link, &pair->link->cq_a,
                                           QRDMA_CQE_OP_NOP,
                                           QRDMA_CQE_SUCCESS);

        g_assert_cmpuint(qrdma_le32(cqe.wqe_counter), ==, *digit - '0');
    }
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
}

typedef struct Delivery {
    const char *name;
    QrdmaFault fault;
    const char *now;            /* WQE counters before the delay */
    const char *later;          /* and after it */
} Delivery;

static const Delivery deliveries[] = {
    { "delay", { .action = QRDMA_FAULT_DELAY, .delay = DELAY }, "02", "1" },
    { "drop", { .action = QRDMA_FAULT_DROP }, "02", "" },
    { "duplicate", { .action = QRDMA_FAULT_DUPLICATE, .delay = DELAY }, "012",
      "1" },
    { "swap", { .action = QRDMA_FAULT_SWAP }, "021", "" },
};

static void test_completion(Pair *pair, gconstpointer data)
{
    const Delivery *delivery = data;
    QrdmaFault fault = delivery->fault;

    fault.target = QRDMA_FAULT_COMPLETION;
    fault.at = 2;
    arm(pair, fault);
    nops(pair, 3);
    expect_order(pair, delivery->now);
    fake_host_settle(pair->link->host);
    expect_order(pair, delivery->later);
    g_assert_cmpuint(held(pair), ==, 0);
}

static void test_completion_fail(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMPLETION, QRDMA_FAULT_FAIL });
    nops(pair, 1);
    link_expect_no_cqe(pair->link, &pair->link->cq_a);
    link_expect_event(pair->link, QRDMA_EVENT_CQ_ERROR,
                      pair->link->cq_a.number);
    g_assert_cmpint(pair_state(pair, &pair->link->a), ==, QRDMA_QP_ERROR);
}

/* Only that of the UMR of this mkey. */
static void test_completion_index(Pair *pair, gconstpointer data)
{
    TestUmr other = { .key = pair->from->key };

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DROP,
                             .index = pair->to->index });
    nops(pair, 1);
    expect_order(pair, "0");
    post_umr(pair, &other);
    fake_host_run(pair->link->host);
    expect_umr(pair, QRDMA_CQE_SUCCESS);
    free_by_umr(pair);
    link_expect_no_cqe(pair->link, &pair->link->cq_umr);
    g_assert_true(is_free(pair));
}

static void test_delivery_fatal(Pair *pair, gconstpointer data)
{
    bool after = GPOINTER_TO_UINT(data);

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMPLETION, QRDMA_FAULT_FATAL,
                             .point = after ? QRDMA_FAULT_POINT_AFTER
                                            : QRDMA_FAULT_POINT_BEFORE });
    nops(pair, 1);
    expect_order(pair, after ? "0" : "");
    g_assert_cmpint(fatal_code(pair), ==, QRDMA_FATAL_INJECTED);
}

/* Events: an access that is refused, three times, by three pairs of errors. */
static void refused_write(Pair *pair)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, 64);

    send.remote_key ^= 1;
    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_run(pair->link->host);
}

static unsigned count_events(Pair *pair, enum qrdma_event type)
{
    struct qrdma_eqe eqe;
    unsigned count = 0;

    while (link_next_event(pair->link, &pair->link->eq, &eqe)) {
        count += eqe.type == type;
    }
    return count;
}

typedef struct EventDelivery {
    const char *name;
    QrdmaFault fault;
    unsigned now, later;        /* access errors: before and after the delay */
} EventDelivery;

static const EventDelivery event_deliveries[] = {
    { "delay", { .action = QRDMA_FAULT_DELAY, .delay = DELAY }, 0, 1 },
    { "drop", { .action = QRDMA_FAULT_DROP }, 0, 0 },
    { "duplicate", { .action = QRDMA_FAULT_DUPLICATE, .delay = DELAY }, 1, 1 },
    { "swap", { .action = QRDMA_FAULT_SWAP }, 0, 0 },
};

static void test_event(Pair *pair, gconstpointer data)
{
    const EventDelivery *delivery = data;
    QrdmaFault fault = delivery->fault;

    fault.target = QRDMA_FAULT_EVENT;
    fault.opcode = QRDMA_EVENT_QP_ACCESS_ERROR;
    arm(pair, fault);
    refused_write(pair);
    g_assert_cmpuint(pair->link->engine->faults->fired, ==, 1);
    g_assert_cmpuint(count_events(pair, QRDMA_EVENT_QP_ACCESS_ERROR), ==,
                     delivery->now);
    fake_host_settle(pair->link->host);
    g_assert_cmpuint(count_events(pair, QRDMA_EVENT_QP_ACCESS_ERROR), ==,
                     delivery->later);
}

static void test_event_fail(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_EVENT, QRDMA_FAULT_FAIL });
    refused_write(pair);
    g_assert_cmpint(fatal_code(pair), ==, QRDMA_FATAL_EQ_DMA);
}

static void test_event_fatal(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_EVENT, QRDMA_FAULT_FATAL,
                             .point = QRDMA_FAULT_POINT_AFTER });
    refused_write(pair);
    g_assert_cmpuint(count_events(pair, QRDMA_EVENT_QP_ACCESS_ERROR), ==, 1);
    g_assert_cmpint(fatal_code(pair), ==, QRDMA_FATAL_INJECTED);
}

/* --------------------------------------------------------------------- DMA */

static void write_once(Pair *pair, enum qrdma_cqe_status status)
{
    TestSend send = pair_message(pair, QRDMA_SEND_OP_WRITE, LINK_PAGE);

    link_post_send(pair->link, &pair->link->a, &send);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE, status);
}

static void test_dma(Pair *pair, gconstpointer data)
{
    bool write = GPOINTER_TO_UINT(data);
    TestBuffer *buffer = write ? pair->to : pair->from;

    /* The last byte of the page, and then a page that is not touched. */
    arm(pair, (QrdmaFault) {
        write ? QRDMA_FAULT_DMA_WRITE : QRDMA_FAULT_DMA_READ, QRDMA_FAULT_FAIL,
        .address = g_array_index(buffer->pages, uint64_t, 1), .length = 1,
    });
    write_once(pair, QRDMA_CQE_SUCCESS);
    qrdma_engine_fault_clear(pair->link->engine);
    arm(pair, (QrdmaFault) {
        write ? QRDMA_FAULT_DMA_WRITE : QRDMA_FAULT_DMA_READ, QRDMA_FAULT_FAIL,
        .address = g_array_index(buffer->pages, uint64_t, 0) + LINK_PAGE - 1,
        .length = 1,
    });
    write_once(pair, write ? QRDMA_CQE_REMOTE_ACCESS_ERROR
                           : QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    g_assert_cmpuint(pair->link->engine->counters.dma_errors, >, 0);
    g_assert_cmpuint(card_faults(pair->link->card), ==, 0);
}

/* --------------------------------------------------------------- bandwidth */

static void test_bandwidth(void)
{
    QrdmaConfig config = card_default_config();
    Pair pair;
    TestSend send;

    /* 1024 bytes at 1024 * 10^6 a second: 1000 ns; and 500 of latency. */
    config.bandwidth = LINK_MTU * 1000000ull;
    config.packet_latency = 500;
    pair_set_up_with(&pair, &config, true, 0, 0);
    send = pair_message(&pair, QRDMA_SEND_OP_WRITE, 2 * LINK_MTU);
    link_post_send(pair.link, &pair.link->a, &send);
    fake_host_advance(pair.link->host, 2999);
    link_expect_no_cqe(pair.link, &pair.link->cq_a);
    fake_host_advance(pair.link->host, 1);
    link_expect(pair.link, &pair.link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    pair_tear_down(&pair, NULL);
}

/* ------------------------------------------------------------------ random */

/* Faults as they come, over work as it comes: the card stays in one piece. */
static void test_random(gconstpointer data)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(GPOINTER_TO_UINT(data));
    Pair pair;

    pair_set_up_slow(&pair, NULL);
    link_add_umr(pair.link);
    for (unsigned i = 0; i < 400; i++) {
        QrdmaFault fault = {
            .target = g_rand_int_range(random, 1, 7),
            .action = g_rand_int_range(random, 1, 8),
            .at = g_rand_int_range(random, 1, 4),
            .count = g_rand_int_range(random, 1, 3),
            .point = g_rand_boolean(random) ? QRDMA_FAULT_POINT_AFTER : 0,
            .delay = g_rand_int_range(random, 0, 2 * DELAY),
        };
        TestUmr umr = take_key(&pair, g_rand_boolean(random));
        struct qrdma_cqe cqe;
        struct qrdma_eqe eqe;

        qrdma_engine_fault_arm(pair.link->engine, &fault);
        switch (g_rand_int_range(random, 0, 5)) {
        case 0:
            post_umr(&pair, &umr);
            break;
        case 1:
            refused_write(&pair);
            break;
        case 2:
            nops(&pair, 2);
            break;
        case 3:
            qrdma_engine_register_write(pair.link->engine,
                                        QRDMA_REG_COMMAND_DOORBELL,
                                        ++pair.link->card->command_producer, 4);
            break;
        case 4:
            fake_host_advance(pair.link->host, DELAY);
            break;
        }
        fake_host_run(pair.link->host);
        while (link_poll(pair.link, &pair.link->cq_a, &cqe) ||
               link_poll(pair.link, &pair.link->cq_umr, &cqe) ||
               link_next_event(pair.link, &pair.link->eq, &eqe)) {
            continue;
        }
    }
    fake_host_settle(pair.link->host);
    qrdma_engine_reset(pair.link->engine);
    g_assert_cmpuint(held(&pair), ==, 0);
    pair_tear_down(&pair, NULL);
}

static void add(const char *path, gconstpointer data,
                void (*test)(Pair *pair, gconstpointer data))
{
    pair_add("/faults/%s", path, data, set_up, test);
}

static void add_commands(void)
{
    add("counting", NULL, test_counting);
    add("for-ever", NULL, test_for_ever);
    add("command/delay", NULL, test_command_delay);
    add("command/delay-zero", NULL, test_command_delay_zero);
    add("command/drop", NULL, test_command_drop);
    add("command/late", NULL, test_command_late);
    add("command/duplicate", NULL, test_command_duplicate);
    add("command/swap", NULL, test_command_swap);
    add("command/fatal-before", GUINT_TO_POINTER(0), test_command_fatal);
    add("command/fatal-after", GUINT_TO_POINTER(1), test_command_fatal);
}

static void add_umrs(void)
{
    add("umr/fail", NULL, test_umr_fail);
    add("umr/delay", NULL, test_umr_delay);
    add("umr/drop", NULL, test_umr_drop);
    add("umr/late", NULL, test_umr_late);
    add("umr/late-data", NULL, test_umr_late_data);
    add("umr/duplicate", NULL, test_umr_duplicate);
    add("umr/swap", NULL, test_umr_swap);
    add("umr/fatal-before", GUINT_TO_POINTER(0), test_umr_fatal);
    add("umr/fatal-middle", GUINT_TO_POINTER(1), test_umr_fatal);
    add("umr/fatal-after", GUINT_TO_POINTER(QRDMA_FAULT_POINT_AFTER),
        test_umr_fatal);
    add("held-is-dropped", NULL, test_held_is_dropped);
}

static void add_deliveries(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(deliveries); i++) {
        g_autofree char *path = g_strdup_printf("completion/%s",
                                                deliveries[i].name);

        add(path, &deliveries[i], test_completion);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(event_deliveries); i++) {
        g_autofree char *path = g_strdup_printf("event/%s",
                                                event_deliveries[i].name);

        add(path, &event_deliveries[i], test_event);
    }
    add("completion/fail", NULL, test_completion_fail);
    add("completion/index", NULL, test_completion_index);
    add("completion/fatal-before", GUINT_TO_POINTER(0), test_delivery_fatal);
    add("completion/fatal-after", GUINT_TO_POINTER(1), test_delivery_fatal);
    add("event/fail", NULL, test_event_fail);
    add("event/fatal", NULL, test_event_fatal);
    add("dma/read", GUINT_TO_POINTER(0), test_dma);
    add("dma/write", GUINT_TO_POINTER(1), test_dma);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/faults/bandwidth", test_bandwidth);
    add_commands();
    add_umrs();
    add_deliveries();
    for (unsigned seed = 1; seed <= 20; seed++) {
        g_autofree char *path = g_strdup_printf("/faults/random/%u", seed);

        g_test_add_data_func(path, GUINT_TO_POINTER(seed), test_random);
    }
    return g_test_run();
}
