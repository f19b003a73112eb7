/*
 * qrdma engine tests: queue pairs as objects, their states and attributes.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

#define FLAGS QRDMA_QP_MASK_FLAGS
#define PATH QRDMA_QP_MASK_PATH
#define PATH_MTU QRDMA_QP_MASK_PATH_MTU
#define REMOTE_QPN QRDMA_QP_MASK_REMOTE_QPN
#define SEND_PSN QRDMA_QP_MASK_SEND_PSN
#define RECEIVE_PSN QRDMA_QP_MASK_RECEIVE_PSN
#define RETRY_COUNT QRDMA_QP_MASK_RETRY_COUNT
#define RNR_RETRY QRDMA_QP_MASK_RNR_RETRY
#define RNR_TIMER QRDMA_QP_MASK_MIN_RNR_TIMER
#define TIMEOUT QRDMA_QP_MASK_TIMEOUT
#define RD_ATOMIC QRDMA_QP_MASK_MAX_RD_ATOMIC
#define DEST_RD_ATOMIC QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC
#define PKEY QRDMA_QP_MASK_PKEY_INDEX

#define STATES 6

/* The changes that there are; all others are refused. */
typedef struct Change {
    enum qrdma_qp_state from, to;
    uint64_t required, optional;
} Change;

static const Change changes[] = {
    { QRDMA_QP_RESET, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_INIT, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_RTR, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_RTS, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_SQD, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_ERROR, QRDMA_QP_RESET, 0, 0 },
    { QRDMA_QP_INIT, QRDMA_QP_ERROR, 0, 0 },
    { QRDMA_QP_RTR, QRDMA_QP_ERROR, 0, 0 },
    { QRDMA_QP_RTS, QRDMA_QP_ERROR, 0, 0 },
    { QRDMA_QP_SQD, QRDMA_QP_ERROR, 0, 0 },
    { QRDMA_QP_ERROR, QRDMA_QP_ERROR, 0, 0 },
    { QRDMA_QP_RESET, QRDMA_QP_INIT, FLAGS | PKEY, 0 },
    { QRDMA_QP_INIT, QRDMA_QP_INIT, 0, FLAGS | PKEY },
    { QRDMA_QP_INIT, QRDMA_QP_RTR,
      PATH | PATH_MTU | REMOTE_QPN | RECEIVE_PSN | DEST_RD_ATOMIC | RNR_TIMER,
      FLAGS | PKEY },
    { QRDMA_QP_RTR, QRDMA_QP_RTS,
      TIMEOUT | RETRY_COUNT | RNR_RETRY | SEND_PSN | RD_ATOMIC,
      FLAGS | RNR_TIMER },
    { QRDMA_QP_RTS, QRDMA_QP_RTS, 0, FLAGS | RNR_TIMER },
    { QRDMA_QP_RTS, QRDMA_QP_SQD, 0, 0 },
    { QRDMA_QP_SQD, QRDMA_QP_RTS, 0, FLAGS | RNR_TIMER },
    { QRDMA_QP_SQD, QRDMA_QP_SQD, 0,
      PATH | TIMEOUT | RETRY_COUNT | RNR_RETRY | RD_ATOMIC | DEST_RD_ATOMIC |
      PKEY | FLAGS | RNR_TIMER },
};

static const Change *find_change(enum qrdma_qp_state from,
                                 enum qrdma_qp_state to)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        if (changes[i].from == from && changes[i].to == to) {
            return &changes[i];
        }
    }
    return NULL;
}

static void bring_to(Pair *pair, enum qrdma_qp_state state)
{
    TestQp *qp = &pair->link->a;
    struct qrdma_modify_qp steps[] = {
        link_to_init(), link_to_rtr(LINK_QPN_B), link_to_rts(),
    };
    unsigned count = MIN((unsigned)state, G_N_ELEMENTS(steps));

    link_set_state(pair->link, qp, QRDMA_QP_RESET);
    for (unsigned i = 0; i < count; i++) {
        g_assert_cmpint(link_modify(pair->link, qp, &steps[i]), ==,
                        QRDMA_STATUS_OK);
    }
    if (state > QRDMA_QP_RTS) {
        g_assert_cmpint(link_set_state(pair->link, qp, state), ==,
                        QRDMA_STATUS_OK);
    }
    g_assert_cmpint(pair_state(pair, qp), ==, state);
}

/* Good values for every attribute. */
static struct qrdma_modify_qp request(enum qrdma_qp_state to, uint64_t mask)
{
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_B);
    struct qrdma_modify_qp rts = link_to_rts();
    struct qrdma_modify_qp in = {
        .mask = qrdma_le64(mask | QRDMA_QP_MASK_STATE),
        .context = rtr.context,
    };

    in.context.state = to;
    in.context.timeout = rts.context.timeout;
    in.context.retry_count = rts.context.retry_count;
    in.context.rnr_retry = rts.context.rnr_retry;
    in.context.send_psn = rts.context.send_psn;
    in.context.max_rd_atomic = rts.context.max_rd_atomic;
    in.context.flags = qrdma_le32(QRDMA_QP_REMOTE_READ);
    return in;
}

static enum qrdma_status try_change(Pair *pair, enum qrdma_qp_state from,
                                    enum qrdma_qp_state to, uint64_t mask)
{
    struct qrdma_modify_qp in = request(to, mask);

    bring_to(pair, from);
    return link_modify(pair->link, &pair->link->a, &in);
}

static void check_attributes(Pair *pair, const Change *change)
{
    for (unsigned bit = 1; bit < 14; bit++) {
        uint64_t attribute = 1ull << bit;
        uint64_t mask = change->required ^ attribute;
        enum qrdma_status expected = change->optional & attribute
                                     ? QRDMA_STATUS_OK
                                     : QRDMA_STATUS_BAD_ATTRIBUTE;

        g_assert_cmpint(try_change(pair, change->from, change->to, mask), ==,
                        expected);
        g_assert_cmpint(pair_state(pair, &pair->link->a), ==,
                        expected == QRDMA_STATUS_OK ? change->to
                                                    : change->from);
    }
}

/* Every pair of states, with every attribute missing or too many. */
static void test_transitions(Pair *pair, gconstpointer data)
{
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            const Change *change = find_change(from, to);

            if (!change) {
                g_assert_cmpint(try_change(pair, from, to, 0), ==,
                                QRDMA_STATUS_BAD_TRANSITION);
                g_assert_cmpint(pair_state(pair, &pair->link->a), ==, from);
                continue;
            }
            g_assert_cmpint(try_change(pair, from, to, change->required), ==,
                            QRDMA_STATUS_OK);
            g_assert_cmpint(pair_state(pair, &pair->link->a), ==, to);
            check_attributes(pair, change);
        }
    }
    link_expect_no_event(pair->link);
}

static void test_unknown_state_and_mask(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp in = request(QRDMA_QP_RESET, 0);

    in.context.state = STATES;
    g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                    QRDMA_STATUS_BAD_TRANSITION);
    in.context.state = 255;
    g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                    QRDMA_STATUS_BAD_TRANSITION);
    in = request(QRDMA_QP_RESET, 1ull << 14);
    g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                    QRDMA_STATUS_BAD_MASK);
    in = request(QRDMA_QP_RESET, 1ull << 63);
    g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                    QRDMA_STATUS_BAD_MASK);
    in = request(QRDMA_QP_RESET, 0);
    in.context.reserved[55] = 1;
    g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                    QRDMA_STATUS_BAD_RESERVED);
}

/* One attribute out of range, in the change that takes it. */
typedef struct BadValue {
    enum qrdma_qp_state to;
    size_t offset;
    size_t size;
    uint32_t value;
    enum qrdma_status status;
} BadValue;

#define BAD_VALUE(state, name, bad, refusal)                    \
    {                                                           \
        .to = (state),                                          \
        .offset = offsetof(struct qrdma_qpc, name),             \
        .size = sizeof(((struct qrdma_qpc *)NULL)->name),       \
        .value = (bad),                                         \
        .status = (refusal),                                    \
    }

static const BadValue bad_values[] = {
    BAD_VALUE(QRDMA_QP_INIT, flags, 1u << 3, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_INIT, flags, QRDMA_QP_SUSPENDED,
              QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_INIT, pkey_index, 1, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, path_mtu, 0, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, path_mtu, 6, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, sgid_index, 1, QRDMA_STATUS_BAD_GID),
    BAD_VALUE(QRDMA_QP_RTR, sgid_index, 255, QRDMA_STATUS_BAD_GID),
    BAD_VALUE(QRDMA_QP_RTR, flow_label, 1u << 20, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, remote_qpn, 1, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, remote_qpn, 1u << 24, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, receive_psn, 1u << 24, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, max_dest_rd_atomic, QRDMA_MAX_RD_ATOMIC + 1,
              QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTR, min_rnr_timer, 32, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTS, timeout, 32, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTS, retry_count, 8, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTS, rnr_retry, 8, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTS, send_psn, 1u << 24, QRDMA_STATUS_BAD_ATTRIBUTE),
    BAD_VALUE(QRDMA_QP_RTS, max_rd_atomic, QRDMA_MAX_RD_ATOMIC + 1,
              QRDMA_STATUS_BAD_ATTRIBUTE),
};

static void test_values(Pair *pair, gconstpointer data)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_values); i++) {
        const BadValue *bad = &bad_values[i];
        const Change *change = find_change(bad->to - 1, bad->to);
        struct qrdma_modify_qp in = request(bad->to, change->required);
        uint32_t value = qrdma_le32(bad->value);

        bring_to(pair, bad->to - 1);
        memcpy((uint8_t *)&in.context + bad->offset, &value, bad->size);
        g_assert_cmpint(link_modify(pair->link, &pair->link->a, &in), ==,
                        bad->status);
        g_assert_cmpint(pair_state(pair, &pair->link->a), ==, bad->to - 1);
    }
}

/* What was set is what a query gives; a reset forgets it. */
static void test_query(Pair *pair, gconstpointer data)
{
    struct qrdma_modify_qp rtr = link_to_rtr(LINK_QPN_B);
    struct qrdma_modify_qp rts = link_to_rts();
    struct qrdma_qpc out;

    bring_to(pair, QRDMA_QP_INIT);
    rtr.context.flow_label = qrdma_le32(0x12345);
    rtr.context.hop_limit = 64;
    rtr.context.traffic_class = 3;
    memcpy(rtr.context.dmac, "\1\2\3\4\5\6", 6);
    link_modify(pair->link, &pair->link->a, &rtr);
    link_modify(pair->link, &pair->link->a, &rts);
    out = link_query(pair->link, &pair->link->a);
    g_assert_cmpint(out.type, ==, QRDMA_QP_RC);
    g_assert_cmpint(out.state, ==, QRDMA_QP_RTS);
    g_assert_cmpuint(qrdma_le32(out.pd), ==, REGION_PD);
    g_assert_cmpuint(qrdma_le32(out.send_cqn), ==, 1);
    g_assert_cmpuint(qrdma_le32(out.receive_cqn), ==, 1);
    g_assert_cmpuint(qrdma_le32(out.doorbell_page), ==, LINK_PAGE_A);
    g_assert_cmphex(qrdma_le32(out.flow_label), ==, 0x12345);
    g_assert_cmphex(qrdma_le32(out.remote_qpn), ==, LINK_QPN_B);
    g_assert_cmphex(qrdma_le32(out.send_psn), ==, 0xfffffe);
    g_assert_cmphex(qrdma_le32(out.receive_psn), ==, 0xfffffe);
    g_assert_cmpuint(out.path_mtu, ==, 3);
    g_assert_cmpuint(out.hop_limit, ==, 64);
    g_assert_cmpuint(out.traffic_class, ==, 3);
    g_assert_cmpuint(out.retry_count, ==, LINK_RETRIES);
    g_assert_cmpuint(out.rnr_retry, ==, LINK_RNR_RETRIES);
    g_assert_cmpuint(out.min_rnr_timer, ==, 1);
    g_assert_cmpuint(out.timeout, ==, 1);
    g_assert_cmpuint(out.max_rd_atomic, ==, 4);
    g_assert_cmpuint(out.max_dest_rd_atomic, ==, 4);
    g_assert_cmpmem(out.dgid, 16, rtr.context.dgid, 16);
    g_assert_cmpmem(out.dmac, 6, rtr.context.dmac, 6);
    link_set_state(pair->link, &pair->link->a, QRDMA_QP_RESET);
    out = link_query(pair->link, &pair->link->a);
    g_assert_cmpuint(qrdma_le32(out.remote_qpn), ==, 0);
    g_assert_cmpuint(qrdma_le32(out.pd), ==, REGION_PD);
}

/* ------------------------------------------------------------------ create */

static enum qrdma_status create(Pair *pair, uint32_t number,
                                const struct qrdma_qpc *in)
{
    return card_command(pair->link->card, QRDMA_CMD_CREATE_QP, number, in,
                        sizeof(*in), NULL, 0);
}

static struct qrdma_qpc good_qpc(void)
{
    return (struct qrdma_qpc) {
        .type = QRDMA_QP_RC,
        .send_cqn = qrdma_le32(1),
        .receive_cqn = qrdma_le32(2),
        .send_ring = link_ring(CARD_MEMORY_BASE, 4, QRDMA_SEND_WQE_LOG_MIN),
        .receive_ring = link_ring(CARD_MEMORY_BASE, 4,
                                  QRDMA_RECEIVE_WQE_LOG_MIN),
    };
}

static void test_create(Pair *pair, gconstpointer data)
{
    static const BadValue bad[] = {
        BAD_VALUE(QRDMA_QP_RESET, type, 0, QRDMA_STATUS_BAD_QP_TYPE),
        BAD_VALUE(QRDMA_QP_RESET, type, 3, QRDMA_STATUS_BAD_QP_TYPE),
        BAD_VALUE(QRDMA_QP_RESET, pd, 1u << 24, QRDMA_STATUS_BAD_PD),
        BAD_VALUE(QRDMA_QP_RESET, send_cqn, 3, QRDMA_STATUS_BAD_CQN),
        BAD_VALUE(QRDMA_QP_RESET, send_cqn, 0xffffffff, QRDMA_STATUS_BAD_CQN),
        BAD_VALUE(QRDMA_QP_RESET, receive_cqn, 3, QRDMA_STATUS_BAD_CQN),
        BAD_VALUE(QRDMA_QP_RESET, doorbell_page, QRDMA_DOORBELL_PAGES,
                  QRDMA_STATUS_BAD_DOORBELL_PAGE),
        BAD_VALUE(QRDMA_QP_RESET, state, 1, QRDMA_STATUS_BAD_RESERVED),
        BAD_VALUE(QRDMA_QP_RESET, flags, 1, QRDMA_STATUS_BAD_RESERVED),
        BAD_VALUE(QRDMA_QP_RESET, remote_qpn, 1, QRDMA_STATUS_BAD_RESERVED),
        BAD_VALUE(QRDMA_QP_RESET, receive_consumer, 1,
                  QRDMA_STATUS_BAD_RESERVED),
    };
    struct qrdma_qpc in = good_qpc();

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        uint32_t value = qrdma_le32(bad[i].value);

        in = good_qpc();
        memcpy((uint8_t *)&in + bad[i].offset, &value, bad[i].size);
        g_assert_cmpint(create(pair, 9, &in), ==, bad[i].status);
    }
    in = good_qpc();
    g_assert_cmpint(create(pair, 0, &in), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(create(pair, 1, &in), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(create(pair, QRDMA_MAX_QPS, &in), ==,
                    QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(create(pair, LINK_QPN_A, &in), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpint(create(pair, QRDMA_MAX_QPS - 1, &in), ==,
                    QRDMA_STATUS_OK);
    in.send_ring = (struct qrdma_ring) { 0 };
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_BAD_PAGE_SIZE);
    in = good_qpc();
    in.receive_ring = (struct qrdma_ring) { 0 };
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_OK);
}

/* A UMR queue is the driver's: page 0, no receive queue, its own stride. */
static void test_create_umr(Pair *pair, gconstpointer data)
{
    struct qrdma_qpc in = good_qpc();

    in.type = QRDMA_QP_UMR;
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_BAD_RING);
    in.receive_ring = (struct qrdma_ring) { 0 };
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_BAD_RING);
    in.send_ring = link_ring(CARD_MEMORY_BASE, 4, QRDMA_UMR_WQE_LOG_SIZE);
    in.doorbell_page = qrdma_le32(1);
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_BAD_DOORBELL_PAGE);
    in.doorbell_page = 0;
    g_assert_cmpint(create(pair, 9, &in), ==, QRDMA_STATUS_OK);
}

/* 4096 and more of each, and a ring of messages through all of them. */
static void test_many(void)
{
    enum { COUNT = 4200, FIRST = 0x1000 };
    TestLink *link = link_new_unconnected(NULL);
    uint64_t ring = card_alloc(link->card, LINK_PAGE, LINK_PAGE);
    TestSend nop = {
        .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
    };
    struct qrdma_cqc cqc = { .ring = link_ring(0, 0, QRDMA_CQE_LOG_SIZE) };
    struct qrdma_qpc qpc = {
        .type = QRDMA_QP_RC,
        .send_ring = link_ring(ring, 0, QRDMA_SEND_WQE_LOG_MAX),
    };
    uint64_t cqes = card_alloc(link->card, COUNT * LINK_PAGE, LINK_PAGE);

    /* All send rings are one slot, with the same WQE. */
    link_send_wqe(&nop, card_pointer(link->card, ring, QRDMA_MAX_SEND_WQE));
    for (unsigned i = 0; i < COUNT; i++) {
        TestQp qp = { .number = FIRST + i };

        cqc.ring.base = qrdma_le64(cqes + i * LINK_PAGE);
        card_must(link->card, QRDMA_CMD_CREATE_CQ, FIRST + i, &cqc,
                  sizeof(cqc));
        qpc.send_cqn = qrdma_le32(FIRST + i);
        qpc.receive_cqn = qrdma_le32(FIRST + i);
        card_must(link->card, QRDMA_CMD_CREATE_QP, FIRST + i, &qpc,
                  sizeof(qpc));
        link_connect(link, &qp, FIRST);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        link_doorbell(link, 0, QRDMA_DOORBELL_SEND, FIRST + i, 1);
    }
    fake_host_run(link->host);
    for (unsigned i = 0; i < COUNT; i++) {
        struct qrdma_cqe *cqe = card_pointer(link->card, cqes + i * LINK_PAGE,
                                             sizeof(*cqe));

        g_assert_cmpuint(cqe->phase, ==, 1);
        g_assert_cmpuint(qrdma_le32(cqe->qpn), ==, FIRST + i);
    }
    link_free(link);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    pair_add("/qp/%s", "transitions", NULL, pair_set_up_unconnected,
             test_transitions);
    pair_add("/qp/%s", "unknown-state-and-mask", NULL,
             pair_set_up_unconnected, test_unknown_state_and_mask);
    pair_add("/qp/%s", "values", NULL, pair_set_up_unconnected, test_values);
    pair_add("/qp/%s", "query", NULL, pair_set_up_unconnected, test_query);
    pair_add("/qp/%s", "create", NULL, pair_set_up_unconnected, test_create);
    pair_add("/qp/%s", "create-umr", NULL, pair_set_up_unconnected,
             test_create_umr);
    g_test_add_func("/qp/many", test_many);
    return g_test_run();
}
