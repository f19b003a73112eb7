/*
 * qrdma engine tests: a revocation that the card does not do, or does too late,
 * and a key that is taken again before it is gone. The audit has to find them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

#define REVOKED_PD 0x123u
#define LATE (4 * PAIR_LATENCY)

static void set_up(Pair *pair, gconstpointer data)
{
    QrdmaConfig config = card_default_config();

    config.audit = true;
    config.packet_latency = PAIR_LATENCY;
    pair_set_up_with(pair, &config, true, 0, 0);
    link_add_umr(pair->link);
    /* Their tables were written after they had been created. */
    card_must(pair->link->card, QRDMA_CMD_INVALIDATE_TRANSLATIONS,
              pair->from->index, NULL, 0);
    card_must(pair->link->card, QRDMA_CMD_INVALIDATE_TRANSLATIONS,
              pair->to->index, NULL, 0);
    qrdma_engine_audit_clear(pair->link->engine);
}

static QrdmaAuditTotals totals(Pair *pair)
{
    return qrdma_engine_audit_totals(pair->link->engine);
}

/* A fault of what is done to `to`. */
static void arm(Pair *pair, QrdmaFault fault)
{
    fault.index = pair->to->index;
    card_arm(pair->link->card, fault);
}

/* Writes to `to` for as long as the test lasts, some of it in flight. */
static void start_writing(Pair *pair)
{
    TestSend write = pair_message(pair, QRDMA_SEND_OP_WRITE, PAIR_LENGTH);

    link_post_send(pair->link, &pair->link->a, &write);
    fake_host_advance(pair->link->host, 3 * PAIR_LATENCY + 1);
}

/* Returns when the card says that it is done. */
static void revoke(Pair *pair)
{
    TestUmr request = {
        .key = pair->to->key,
        .mask = QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD,
        .mkc = { .flags = QRDMA_MKEY_FREE, .pd = REVOKED_PD },
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    struct qrdma_cqe cqe;

    region_umr_wqe(pair->link->card, &request, wqe);
    link_put_send(pair->link, &pair->link->umr, wqe, sizeof(wqe));
    link_ring_send(pair->link, &pair->link->umr);
    while (!link_poll(pair->link, &pair->link->cq_umr, &cqe)) {
        fake_host_advance(pair->link->host, PAIR_LATENCY / 10);
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
}

static const QrdmaFinding *find(Pair *pair, enum qrdma_finding kind)
{
    const QrdmaFinding *finding;

    for (unsigned i = 0;
         (finding = qrdma_engine_audit_finding(pair->link->engine, i)); i++) {
        if (finding->kind == kind) {
            return finding;
        }
    }
    return NULL;
}

static void assert_stale(Pair *pair)
{
    const QrdmaFinding *stale = find(pair, QRDMA_FINDING_STALE);

    g_assert_cmpuint(totals(pair).stale_bytes, ==, PAIR_LENGTH);
    g_assert_nonnull(stale);
    g_assert_cmphex(stale->key, ==, pair->to->key);
    g_assert_cmphex(stale->address, ==, pair->to->address);
    g_assert_cmpuint(stale->length, ==, PAIR_LENGTH);
    g_assert_cmphex(stale->shown.address, ==,
                    g_array_index(pair->to->pages, uint64_t, 0));
    g_assert_cmphex(stale->new_answer.rights, ==, 0);
    g_assert_cmpuint(stale->change, >, 0);
}

static void test_right(Pair *pair, gconstpointer data)
{
    start_writing(pair);
    revoke(pair);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    g_assert_cmpuint(totals(pair).windows, ==, 1);
    g_assert_null(qrdma_engine_audit_finding(pair->link->engine, 0));
}

static void test_dropped(Pair *pair, gconstpointer data)
{
    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_DROP });
    start_writing(pair);
    revoke(pair);
    assert_stale(pair);
    fake_host_settle(pair->link->host);
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_SUCCESS);
    g_assert_cmpuint(totals(pair).revoked_accesses, >, 0);
    g_assert_nonnull(find(pair, QRDMA_FINDING_REVOKED_ACCESS));
}

static void test_late(Pair *pair, gconstpointer data)
{
    uint64_t revoked;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_LATE,
                             .delay = LATE });
    start_writing(pair);
    revoke(pair);
    assert_stale(pair);
    fake_host_settle(pair->link->host);
    /* It came, in the middle of the message. */
    link_expect(pair->link, &pair->link->cq_a, QRDMA_CQE_OP_WRITE,
                QRDMA_CQE_REMOTE_ACCESS_ERROR);
    revoked = totals(pair).revoked_accesses;
    g_assert_cmpuint(revoked, >, 0);
    g_assert_cmpuint(revoked, <, PAIR_LENGTH / LINK_MTU);
    g_assert_cmpuint(totals(pair).stale_bytes, ==, PAIR_LENGTH);
}

static void test_reused(Pair *pair, gconstpointer data)
{
    const QrdmaFinding *finding;

    arm(pair, (QrdmaFault) { QRDMA_FAULT_COMMAND, QRDMA_FAULT_DROP,
                             .opcode = QRDMA_CMD_DESTROY_MKEY });
    card_must(pair->link->card, QRDMA_CMD_DESTROY_MKEY, pair->to->index, NULL,
              0);
    g_assert_cmpint(region_create(pair->link->card, pair->to->index,
                                  &pair->to->mkc), ==, QRDMA_STATUS_IN_USE);
    g_assert_cmpuint(totals(pair).reused_indices, ==, 1);
    finding = find(pair, QRDMA_FINDING_REUSED_INDEX);
    g_assert_nonnull(finding);
    g_assert_cmphex(QRDMA_MKEY_INDEX(finding->key), ==, pair->to->index);
    /* The key works still, which it must not. */
    start_writing(pair);
    fake_host_settle(pair->link->host);
    g_assert_cmpuint(totals(pair).revoked_accesses, >, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    pair_add("/wrong-revocation/%s", "right", NULL, set_up, test_right);
    pair_add("/wrong-revocation/%s", "dropped", NULL, set_up, test_dropped);
    pair_add("/wrong-revocation/%s", "late", NULL, set_up, test_late);
    pair_add("/wrong-revocation/%s", "reused", NULL, set_up, test_reused);
    return g_test_run();
}
