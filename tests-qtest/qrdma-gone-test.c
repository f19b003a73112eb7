/*
 * qrdma: queues that are gone. Work is in their rings, and their doorbells are
 * rung: nothing of it is taken, then or when their numbers are used again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-gone"

#define EQ_NUMBER   5
#define CQ_NUMBER   20
#define RC_NUMBER   21
#define UMR_NUMBER  22
#define REMOTE      2           /* index of the mkey that UMRs would change */

/* One queue of each kind, beside those of the bench. */
typedef struct Gone {
    QRdmaBench bench;
    QRdmaEq eq;
    QRdmaCq cq;
    QRdmaQp rc;                 /* connected to itself */
    QRdmaQp umr;
    uint32_t key;
} Gone;

/* ------------------------------------------------------------------- queues */

static void make_qp(Gone *g, QRdmaQp *qp, const QRdmaQp *like, uint32_t number)
{
    *qp = *like;
    qp->number = number;
    qp->send_cq = qp->receive_cq = &g->cq;
    qp->send.address = qp->receive.address = 0;
}

/* Work queues get the rings that they had, the others get new ones. */
static void create_all(Gone *g)
{
    QRdma *q = g->bench.q;

    qrdma_eq_create(q, &g->eq, EQ_NUMBER, 6, 2);
    qrdma_cq_create(q, &g->cq, CQ_NUMBER, 6, EQ_NUMBER);
    qrdma_qp_create(q, &g->rc);
    qrdma_qp_connect(q, &g->rc, RC_NUMBER, 7);
    qrdma_qp_create(q, &g->umr);
    qrdma_qp_connect(q, &g->umr, 0, 0);
}

static void gone_init(Gone *g, QRdma *q)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);

    *g = (Gone) { 0 };
    qrdma_bench_init(&g->bench, q);
    g->key = qrdma_bench_mkey(&g->bench, REMOTE, &mkc);
    make_qp(g, &g->rc, &g->bench.a, RC_NUMBER);
    make_qp(g, &g->umr, &g->bench.umr, UMR_NUMBER);
    create_all(g);
}

/* Takes the right to be read away. */
static struct qrdma_umr_wqe umr_of(Gone *g)
{
    return (struct qrdma_umr_wqe) {
        .opcode = QRDMA_SEND_OP_UMR,
        .flags = QRDMA_WQE_SIGNALED,
        .key = cpu_to_le32(g->key),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_REMOTE_READ),
    };
}

static struct qrdma_mkc query_mkey(Gone *g)
{
    struct qrdma_mkc mkc;

    qrdma_command_ok(g->bench.q, QRDMA_CMD_QUERY_MKEY, REMOTE, NULL, 0, &mkc,
                     sizeof(mkc));
    return mkc;
}

static const struct qrdma_send_wqe nop = {
    .opcode = QRDMA_SEND_OP_NOP, .flags = QRDMA_WQE_SIGNALED,
};

/* All four do what they are for. */
static void assert_all_work(Gone *g)
{
    QRdma *q = g->bench.q;
    struct qrdma_send_wqe send = { .opcode = QRDMA_SEND_OP_SEND };
    struct qrdma_umr_wqe umr = umr_of(g);

    qrdma_cq_doorbell(q, &g->cq, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_post_receive(q, &g->rc, NULL, 0);
    qrdma_post(q, &g->rc, send, NULL, 0);
    qrdma_cq_expect(q, &g->cq, QRDMA_CQE_SUCCESS);
    qrdma_cq_expect(q, &g->cq, QRDMA_CQE_SUCCESS);
    qrdma_eq_expect(q, &g->eq, QRDMA_EVENT_COMPLETION);
    umr.mask = 0;
    qrdma_post_umr(q, &g->umr, umr, NULL, 0);
    qrdma_cq_expect(q, &g->cq, QRDMA_CQE_SUCCESS);
}

/* A WQE that nobody has rung for. */
static void put_work(Gone *g)
{
    struct qrdma_umr_wqe umr = umr_of(g);

    qrdma_send_put(g->bench.q, &g->rc, &nop, sizeof(nop), NULL, 0);
    qrdma_send_put(g->bench.q, &g->umr, &umr, sizeof(umr), NULL, 0);
}

/* ---------------------------------------------------------------- doorbells */

typedef struct Doorbell {
    uint32_t offset;
    uint32_t number;
    unsigned arms;              /* arms below this */
} Doorbell;

typedef struct Kind {
    const char *name;
    enum qrdma_command_opcode destroy;
    uint32_t number;
    Doorbell doorbells[2];
} Kind;

/* In an order in which they can be destroyed. */
static const Kind kinds[] = {
    { "RC queue pair", QRDMA_CMD_DESTROY_QP, RC_NUMBER, {
        { QRDMA_DOORBELL_SEND, RC_NUMBER, 1 },
        { QRDMA_DOORBELL_RECEIVE, RC_NUMBER, 1 },
    } },
    { "UMR queue", QRDMA_CMD_DESTROY_QP, UMR_NUMBER, {
        { QRDMA_DOORBELL_SEND, UMR_NUMBER, 1 },
    } },
    { "CQ", QRDMA_CMD_DESTROY_CQ, CQ_NUMBER, {
        { QRDMA_DOORBELL_CQ, CQ_NUMBER, 3 },
    } },
    { "EQ", QRDMA_CMD_DESTROY_EQ, EQ_NUMBER, {
        { QRDMA_DOORBELL_EQ, EQ_NUMBER, 2 },
    } },
};

static uint64_t doorbells_ignored(QRdma *q)
{
    struct qrdma_counters counters;

    qrdma_command_ok(q, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0, &counters,
                     sizeof(counters));
    return le64_to_cpu(counters.doorbells_ignored);
}

static void ring_in_vain(QRdma *q, const Doorbell *bell, uint32_t arm,
                         uint32_t counter)
{
    uint64_t before = doorbells_ignored(q);

    qrdma_write32(q, QRDMA_REG_STATUS, QRDMA_CARD_DOORBELL_ERROR);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);
    qrdma_ring_doorbell(q, 0, bell->offset,
                        bell->number | arm << QRDMA_DOORBELL_ARM_SHIFT,
                        counter);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);
    g_assert_cmpuint(doorbells_ignored(q), ==, before + 1);
}

/* Counters that were right for the queue, and others. */
static void ring_all_in_vain(QRdma *q, const Kind *kind)
{
    static const uint32_t counters[] = { 0, 2, 3, UINT32_MAX };

    for (unsigned i = 0; i < ARRAY_SIZE(kind->doorbells); i++) {
        const Doorbell *bell = &kind->doorbells[i];

        for (uint32_t arm = 0; arm < bell->arms; arm++) {
            for (unsigned c = 0; c < ARRAY_SIZE(counters); c++) {
                ring_in_vain(q, bell, arm, counters[c]);
            }
        }
    }
}

/* -------------------------------------------------------------------- cases */

static void read_ring(QRdma *q, const QRdmaRing *ring, uint8_t *page)
{
    qtest_bufread(q->qts, ring->address, page, QRDMA_PAGE);
}

static void assert_ring_is(QRdma *q, const QRdmaRing *ring, const uint8_t *page)
{
    g_autofree uint8_t *now = g_malloc(QRDMA_PAGE);

    read_ring(q, ring, now);
    g_assert_cmpmem(now, QRDMA_PAGE, page, QRDMA_PAGE);
}

static void destroy_each(Gone *g)
{
    QRdma *q = g->bench.q;

    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        g_test_message("%s", kinds[i].name);
        qrdma_command_ok(q, kinds[i].destroy, kinds[i].number, NULL, 0, NULL,
                         0);
        ring_all_in_vain(q, &kinds[i]);
        g_assert_cmpint(qrdma_command(q, kinds[i].destroy, kinds[i].number,
                                      NULL, 0, NULL, 0), ==,
                        QRDMA_STATUS_NO_OBJECT);
    }
}

/*
 * Given armed queues with a WQE each that was not rung for, when they are
 * destroyed and rung, then nothing is taken and nothing is written. Nor is it
 * when the same numbers, and the same rings of work, are used again.
 */
static void test_destroyed(void *obj, void *data, QGuestAllocator *alloc)
{
    g_autofree uint8_t *completions = g_malloc(QRDMA_PAGE);
    g_autofree uint8_t *events = g_malloc(QRDMA_PAGE);
    QRdmaRing cq_ring, eq_ring;
    struct qrdma_mkc before, after;
    QRdma *q = obj;
    Gone g;

    gone_init(&g, q);
    assert_all_work(&g);
    put_work(&g);
    before = query_mkey(&g);
    cq_ring = g.cq.ring;
    eq_ring = g.eq.ring;
    qrdma_cq_doorbell(q, &g.cq, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_doorbell(q, &g.eq, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_settle(q);
    read_ring(q, &cq_ring, completions);
    read_ring(q, &eq_ring, events);

    destroy_each(&g);
    create_all(&g);
    qrdma_cq_expect_none(q, &g.cq);
    qrdma_eq_expect_none(q, &g.eq);
    qrdma_eq_expect_none(q, &g.bench.async);
    after = query_mkey(&g);
    g_assert_cmpmem(&after, sizeof(after), &before, sizeof(before));
    assert_ring_is(q, &cq_ring, completions);
    assert_ring_is(q, &eq_ring, events);

    /* Nobody has armed the new CQ. */
    qrdma_post(q, &g.rc, nop, NULL, 0);
    qrdma_cq_expect(q, &g.cq, QRDMA_CQE_SUCCESS);
    qrdma_eq_expect_none(q, &g.eq);
    assert_all_work(&g);
}

/*
 * Given a sender that waits for its receiver, when one of them is destroyed,
 * then what was under way is over: a new queue with the number gets nothing.
 */
static void test_destroyed_at_work(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    struct qrdma_send_wqe send = { .opcode = QRDMA_SEND_OP_SEND };
    QRdma *q = obj;
    Gone g;

    gone_init(&g, q);
    qrdma_post(q, &g.rc, send, NULL, 0);
    qrdma_settle(q);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_QP, RC_NUMBER, NULL, 0, NULL, 0);
    qrdma_qp_create(q, &g.rc);
    qrdma_qp_connect(q, &g.rc, RC_NUMBER, 7);
    qrdma_post_receive(q, &g.rc, NULL, 0);
    for (unsigned i = 0; i < 4; i++) {
        qtest_clock_step(q->qts, NANOSECONDS_PER_SECOND);
        qrdma_cq_expect_none(q, &g.cq);
    }
    qrdma_eq_expect_none(q, &g.bench.async);
    /* Its receive is there for the new queue's message. */
    qrdma_post(q, &g.rc, send, NULL, 0);
    qrdma_cq_expect(q, &g.cq, QRDMA_CQE_SUCCESS);
    qrdma_cq_expect(q, &g.cq, QRDMA_CQE_SUCCESS);
}

static void register_gone_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("destroyed", GROUP, test_destroyed, NULL);
    qos_add_test("destroyed-at-work", GROUP, test_destroyed_at_work, NULL);
}

libqos_init(register_gone_tests);
