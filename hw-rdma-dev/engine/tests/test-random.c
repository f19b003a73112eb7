/*
 * qrdma engine tests: random commands, doorbells, WQEs and failures.
 *
 * Nothing is expected of a single step but that the card survives it. After
 * each round everything can be destroyed, and nothing is left behind. The seed
 * is printed; --seed repeats a run.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-pair.h"

#define ROUNDS 60
#define STEPS 500
#define FIRST_QPN LINK_QPN_A
#define QPNS 6u
#define CQNS 4u
#define EQNS 3u

static uint32_t below(uint32_t limit)
{
    return g_test_rand_int_range(0, limit);
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

static uint64_t random_64(void)
{
    return (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
}

static uint32_t some_qpn(void)
{
    return one_in(20) ? (uint32_t)g_test_rand_int() : FIRST_QPN + below(QPNS);
}

static uint32_t some_cqn(void)
{
    return one_in(20) ? (uint32_t)g_test_rand_int() : below(CQNS);
}

static uint32_t some_eqn(void)
{
    return one_in(20) ? (uint32_t)g_test_rand_int() : below(EQNS);
}

/* Now and then a byte of what would be right is not. */
static void spoil(void *bytes, size_t length)
{
    while (one_in(8)) {
        ((uint8_t *)bytes)[below(length)] ^= 1u << below(8);
    }
}

static void command(Pair *pair, uint16_t opcode, uint32_t number,
                    const void *input, uint32_t length)
{
    struct qrdma_command entry = {
        .opcode = qrdma_le16(opcode),
        .number = qrdma_le32(number),
        .input = qrdma_le64(length ? pair->link->card->command_buffer : 0),
        .input_length = qrdma_le32(length),
    };

    if (length) {
        memcpy(card_pointer(pair->link->card,
                            pair->link->card->command_buffer, length), input,
               length);
    }
    card_post_command(pair->link->card, &entry);
    fake_host_run(pair->link->host);
}

/* Rings of all queues share a page or two: what one writes another reads. */
static uint64_t ring_memory;
#define RING_MEMORY (64u * 1024)

static struct qrdma_ring some_ring(unsigned log_stride)
{
    return link_ring(ring_memory, below(5), log_stride);
}

static void create_eq(Pair *pair)
{
    struct qrdma_eqc in = { .vector = qrdma_le32(below(4)) };

    in.ring = link_ring(ring_memory, 3 + below(3), QRDMA_EQE_LOG_SIZE);
    spoil(&in, sizeof(in));
    command(pair, QRDMA_CMD_CREATE_EQ, some_eqn(), &in, sizeof(in));
}

static void create_cq(Pair *pair)
{
    struct qrdma_cqc in = {
        .ring = some_ring(QRDMA_CQE_LOG_SIZE),
        .eqn = qrdma_le32(some_eqn()),
        .doorbell_page = qrdma_le32(below(2)),
    };

    spoil(&in, sizeof(in));
    command(pair, QRDMA_CMD_CREATE_CQ, some_cqn(), &in, sizeof(in));
}

static void create_qp(Pair *pair)
{
    struct qrdma_qpc in = {
        .type = one_in(4) ? QRDMA_QP_UMR : QRDMA_QP_RC,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(some_cqn()),
        .receive_cqn = qrdma_le32(some_cqn()),
    };

    in.send_ring = some_ring(QRDMA_SEND_WQE_LOG_MAX);
    if (in.type == QRDMA_QP_RC) {
        in.doorbell_page = qrdma_le32(below(2));
        in.receive_ring = some_ring(QRDMA_RECEIVE_WQE_LOG_MIN + below(5));
    }
    spoil(&in, sizeof(in));
    command(pair, QRDMA_CMD_CREATE_QP, some_qpn(), &in, sizeof(in));
}

/* One step towards RTS, mostly. */
static void modify_qp(Pair *pair)
{
    uint32_t qpn = some_qpn();
    QrdmaQp *qp = qrdma_qp_find(pair->link->engine, qpn);
    struct qrdma_modify_qp in = link_to_init();

    if (qp && qp->state == QRDMA_QP_INIT) {
        in = link_to_rtr(some_qpn());
    } else if (qp && qp->state == QRDMA_QP_RTR) {
        in = link_to_rts();
    }
    if (qp && qp->type == QRDMA_QP_UMR) {
        in.mask = qrdma_le64(QRDMA_QP_MASK_STATE);
    }
    if (one_in(6)) {
        in.mask = qrdma_le64(QRDMA_QP_MASK_STATE);
        in.context.state = below(6);
    }
    spoil(&in, sizeof(in));
    command(pair, QRDMA_CMD_MODIFY_QP, qpn, &in, sizeof(in));
}

/* Two QPs, or one with itself, in RTS if all goes well. */
static void connect(Pair *pair)
{
    uint32_t one = some_qpn(), other = some_qpn();

    for (unsigned i = 0; i < 2; i++) {
        struct qrdma_modify_qp steps[] = {
            { .mask = qrdma_le64(QRDMA_QP_MASK_STATE) },
            link_to_init(), link_to_rtr(i ? one : other), link_to_rts(),
        };

        for (unsigned n = 0; n < G_N_ELEMENTS(steps); n++) {
            command(pair, QRDMA_CMD_MODIFY_QP, i ? other : one, &steps[n],
                    sizeof(steps[n]));
        }
    }
}

static void destroy(Pair *pair)
{
    switch (below(3)) {
    case 0:
        command(pair, QRDMA_CMD_DESTROY_QP, some_qpn(), NULL, 0);
        break;
    case 1:
        command(pair, QRDMA_CMD_DESTROY_CQ, some_cqn(), NULL, 0);
        break;
    default:
        command(pair, QRDMA_CMD_DESTROY_EQ, some_eqn(), NULL, 0);
        break;
    }
}

static void resume(Pair *pair)
{
    uint32_t qpn = some_qpn();
    QrdmaQp *qp = qrdma_qp_find(pair->link->engine, qpn);
    struct qrdma_resume in = {
        .token = qrdma_le32(qp ? qp->fault_token : 0),
        .failed = qrdma_le32(below(2)),
    };

    spoil(&in, sizeof(in));
    command(pair, QRDMA_CMD_RESUME_PAGE_FAULT, qpn, &in, sizeof(in));
}

static void doorbell(Pair *pair)
{
    static const uint32_t offsets[] = {
        QRDMA_DOORBELL_SEND, QRDMA_DOORBELL_RECEIVE, QRDMA_DOORBELL_CQ,
        QRDMA_DOORBELL_EQ,
    };
    uint32_t which = one_in(8) ? below(4) : below(2);
    uint32_t low = which < 2 ? some_qpn() : which == 2 ? some_cqn()
                                                       : some_eqn();
    QrdmaQp *qp = which < 2 ? qrdma_qp_find(pair->link->engine, low) : NULL;
    QrdmaCq *cq = which == 2 ? qrdma_cq_find(pair->link->engine, low) : NULL;
    QrdmaEq *eq = which == 3 ? qrdma_eq_find(pair->link->engine, low) : NULL;
    uint32_t counter = below(20);

    if (qp) {
        counter = (which ? qp->receive.producer : qp->send.producer) +
                  below(4);
    } else if (cq) {
        counter = cq->producer - below(3);
    } else if (eq) {
        counter = eq->producer - below(3);
    }
    if (which >= 2) {
        low |= below(3) << QRDMA_DOORBELL_ARM_SHIFT;
    }
    link_doorbell(pair->link, qp ? qp->doorbell_page : cq ? cq->doorbell_page :
                  below(2), offsets[which], low,
                  one_in(30) ? (uint32_t)g_test_rand_int() : counter);
}

static QrdmaSegment some_segment(Pair *pair)
{
    TestBuffer *buffer = one_in(2) ? pair->from : pair->to;
    uint32_t offset = below(PAIR_LENGTH);

    return link_segment(buffer, offset,
                        one_in(8) ? 0 : below(PAIR_LENGTH - offset) + 1);
}

static void write_send_wqe(Pair *pair, uint8_t *slot)
{
    TestSend send = {
        .opcode = below(8),
        .flags = below(8),
        .segments = below(4),
    };
    uint8_t wqe[QRDMA_MAX_SEND_WQE];

    for (unsigned i = 0; i < send.segments; i++) {
        send.segment[i] = some_segment(pair);
    }
    if (send.opcode >= QRDMA_SEND_OP_WRITE &&
        send.opcode != QRDMA_SEND_OP_NOP) {
        QrdmaSegment remote = some_segment(pair);

        send.remote_address = remote.address & ~7ull;
        send.remote_key = remote.key;
    }
    if (send.opcode == QRDMA_SEND_OP_COMPARE_SWAP ||
        send.opcode == QRDMA_SEND_OP_FETCH_ADD) {
        send.segments = 1;
        send.segment[0].length = 8;
    } else if (send.opcode == QRDMA_SEND_OP_NOP) {
        send.segments = 0;
    }
    link_send_wqe(&send, wqe);
    spoil(wqe, QRDMA_SEND_WQE_HEADER);
    memcpy(slot, wqe, sizeof(wqe));
}

static void write_umr_wqe(Pair *pair, uint8_t *slot)
{
    TestBuffer *buffer = one_in(2) ? pair->from : pair->to;
    TestUmr umr = {
        .key = buffer->key,
        .mask = QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_REMOTE_READ,
        .mkc = buffer->mkc,
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];

    if (one_in(3)) {
        umr.mkc.flags ^= QRDMA_MKEY_FREE;
    }
    region_umr_wqe(pair->link->card, &umr, wqe);
    spoil(wqe, 64);
    memcpy(slot, wqe, sizeof(wqe));
}

static void write_receive_wqe(Pair *pair, uint8_t *slot)
{
    QrdmaSegment segment = some_segment(pair);
    struct qrdma_sge sge = {
        .address = qrdma_le64(segment.address),
        .length = qrdma_le32(segment.length),
        .key = qrdma_le32(segment.key),
    };
    struct qrdma_receive_wqe header = { .num_sge = qrdma_le32(1) };

    memcpy(slot, &header, sizeof(header));
    memcpy(slot + sizeof(header), &sge, sizeof(sge));
}

static void write_wqe(Pair *pair)
{
    const uint64_t rings[] = {
        ring_memory, pair->link->a.send_ring, pair->link->b.send_ring,
        pair->link->a.receive_ring, pair->link->b.receive_ring,
    };
    unsigned ring = below(G_N_ELEMENTS(rings));
    uint8_t *slot = card_pointer(pair->link->card, rings[ring] +
                                 below(LINK_ENTRIES) * QRDMA_MAX_SEND_WQE,
                                 QRDMA_MAX_SEND_WQE);

    if (ring >= 3) {
        write_receive_wqe(pair, slot);
        return;
    }
    switch (below(8)) {
    case 0:
        write_umr_wqe(pair, slot);
        break;
    case 1:
    case 2:
        write_receive_wqe(pair, slot);
        break;
    case 3:
        for (unsigned i = 0; i < QRDMA_MAX_SEND_WQE; i += 8) {
            uint64_t word = random_64();

            memcpy(slot + i, &word, 8);
        }
        break;
    default:
        write_send_wqe(pair, slot);
        break;
    }
}

static void change_memory(Pair *pair)
{
    TestBuffer *buffer = one_in(2) ? pair->from : pair->to;
    uint64_t page = below(PAIR_PAGES);
    uint64_t address = g_array_index(buffer->pages, uint64_t, page);
    uint64_t pble = one_in(3) ? 0 : address | QRDMA_PBLE_PRESENT;

    if (one_in(10)) {
        pble = random_64();
    }
    region_set_pble(pair->link->card, &buffer->mkc, page, pble);
    command(pair, QRDMA_CMD_INVALIDATE_TRANSLATIONS, buffer->index, NULL, 0);
}

static void change_bus(Pair *pair)
{
    fake_host_allow_all(pair->link->host);
    if (one_in(3)) {
        TestBuffer *buffer = one_in(2) ? pair->from : pair->to;

        fake_host_refuse(pair->link->host,
                         g_array_index(buffer->pages, uint64_t,
                                       below(PAIR_PAGES)),
                         LINK_PAGE, one_in(2), one_in(2));
    }
    if (one_in(40)) {
        fake_host_refuse(pair->link->host, ring_memory, LINK_PAGE, one_in(2),
                         one_in(4));
    }
}

static void step(Pair *pair)
{
    switch (below(24)) {
    case 0:
        create_eq(pair);
        break;
    case 1:
        create_cq(pair);
        break;
    case 2:
    case 3:
        create_qp(pair);
        break;
    case 4:
    case 5:
    case 6:
        modify_qp(pair);
        break;
    case 7:
        connect(pair);
        break;
    case 8:
        if (one_in(4)) {
            destroy(pair);
        }
        break;
    case 9:
        resume(pair);
        break;
    case 10:
        change_memory(pair);
        break;
    case 11:
        change_bus(pair);
        break;
    case 12:
        fake_host_advance(pair->link->host, below(5000));
        break;
    case 13:
    case 14:
    case 15:
    case 16:
    case 17:
        write_wqe(pair);
        break;
    default:
        doorbell(pair);
        break;
    }
    if (one_in(2)) {
        fake_host_run(pair->link->host);
    }
}

/* Every object can be destroyed, and then nothing holds keys or memory. */
static void clean_up(Pair *pair)
{
    TestLink *link = pair->link;

    fake_host_allow_all(link->host);
    if (!qrdma_engine_running(link->engine)) {
        qrdma_engine_reset(link->engine);
        g_assert_cmpuint(link->engine->queues->ring_pages, ==, 0);
        return;
    }
    for (unsigned i = 0; i < QRDMA_MAX_QPS; i++) {
        if (link->engine->queues->qps[i]) {
            card_must(link->card, QRDMA_CMD_DESTROY_QP, i, NULL, 0);
        }
    }
    for (unsigned i = 0; i < QRDMA_MAX_CQS; i++) {
        if (link->engine->queues->cqs[i]) {
            card_must(link->card, QRDMA_CMD_DESTROY_CQ, i, NULL, 0);
        }
    }
    for (unsigned i = 0; i < QRDMA_MAX_EQS; i++) {
        if (link->engine->queues->eqs[i]) {
            card_must(link->card, QRDMA_CMD_DESTROY_EQ, i, NULL, 0);
        }
    }
    g_assert_cmpuint(link->host->deadline, ==, UINT64_MAX);
    g_assert_true(g_queue_is_empty(&link->engine->queues->ready));
    g_assert_true(g_sequence_is_empty(link->engine->queues->deadlines));
    card_must(link->card, QRDMA_CMD_DESTROY_MKEY, pair->from->index, NULL, 0);
    card_must(link->card, QRDMA_CMD_DESTROY_MKEY, pair->to->index, NULL, 0);
    card_must(link->card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0);
}

/* Steps from one migration to the next; 0: none. */
static unsigned migration_interval;

static void round_with(const QrdmaConfig *config)
{
    Pair storage, *pair = &storage;

    pair_set_up_with(pair, config, true, 0,
                     one_in(2) ? QRDMA_MKEY_ON_DEMAND : 0);
    ring_memory = card_alloc(pair->link->card, RING_MEMORY, LINK_PAGE);
    for (unsigned i = 0; i < STEPS; i++) {
        step(pair);
        if (migration_interval && one_in(migration_interval)) {
            link_migrate(pair->link);
        }
    }
    clean_up(pair);
    pair_tear_down(pair, NULL);
}

static void test_random(gconstpointer data)
{
    QrdmaConfig config = card_default_config();

    for (unsigned i = 0; i < ROUNDS; i++) {
        config.packet_latency = GPOINTER_TO_UINT(data);
        config.pble_cache = one_in(2);
        config.umr_order_seed = one_in(2);
        round_with(&config);
    }
}

/* The same with a card that is replaced by what loads its state. */
static void test_migrating(gconstpointer data)
{
    migration_interval = 20;
    test_random(data);
    migration_interval = 0;
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/random/fast", GUINT_TO_POINTER(0), test_random);
    g_test_add_data_func("/random/slow", GUINT_TO_POINTER(PAIR_LATENCY),
                         test_random);
    g_test_add_data_func("/random/migrating/fast", GUINT_TO_POINTER(0),
                         test_migrating);
    g_test_add_data_func("/random/migrating/slow",
                         GUINT_TO_POINTER(PAIR_LATENCY), test_migrating);
    return g_test_run();
}
