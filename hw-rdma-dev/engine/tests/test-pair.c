/*
 * qrdma engine tests: a link with a region at each end.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-pair.h"

const char *const pair_end_names[PAIR_ENDS] = { "reset", "error", "destroy" };

void pair_set_up_with(Pair *pair, const QrdmaConfig *config, bool connect,
                      uint64_t offset, uint32_t flags)
{
    pair->link = connect ? link_new(config) : link_new_unconnected(config);
    pair->from = link_buffer(pair->link, 1, 12, offset, PAIR_LENGTH, flags);
    pair->to = link_buffer(pair->link, 1, 12, offset, PAIR_LENGTH, flags);
    link_buffer_fill(pair->from, PAIR_SEED);
}

void pair_set_up(Pair *pair, gconstpointer data)
{
    pair_set_up_with(pair, NULL, true, 0, 0);
}

void pair_set_up_unconnected(Pair *pair, gconstpointer data)
{
    pair_set_up_with(pair, NULL, false, 0, 0);
}

void pair_set_up_slow(Pair *pair, gconstpointer data)
{
    QrdmaConfig config = card_default_config();

    config.packet_latency = PAIR_LATENCY;
    pair_set_up_with(pair, &config, true, 0, 0);
}

void pair_tear_down(Pair *pair, gconstpointer data)
{
    link_buffer_free(pair->from);
    link_buffer_free(pair->to);
    link_free(pair->link);
}

void pair_add(const char *format, const char *name, gconstpointer data,
              PairTest set_up, PairTest test)
{
    char *path = g_strdup_printf(format, name);

    g_test_add(path, Pair, data, set_up, test, pair_tear_down);
    g_free(path);
}

TestSend pair_message(Pair *pair, enum qrdma_send_opcode opcode,
                      uint32_t length)
{
    TestSend send = {
        .opcode = opcode,
        .flags = QRDMA_WQE_SIGNALED,
        .segments = 1,
        .segment = { link_segment(pair->from, 0, length) },
    };

    if (opcode != QRDMA_SEND_OP_SEND && opcode != QRDMA_SEND_OP_SEND_IMM) {
        send.remote_address = pair->to->address;
        send.remote_key = pair->to->key;
    }
    return send;
}

void pair_post_receive(Pair *pair, uint32_t length)
{
    QrdmaSegment segment = link_segment(pair->to, 0, length);

    link_post_receive(pair->link, &pair->link->b, 1, &segment);
}

enum qrdma_qp_state pair_state(Pair *pair, const TestQp *qp)
{
    return link_query(pair->link, qp).state;
}

void pair_end(Pair *pair, TestQp *qp, PairEnd how)
{
    if (how == PAIR_END_DESTROY) {
        card_must(pair->link->card, QRDMA_CMD_DESTROY_QP, qp->number, NULL, 0);
    } else {
        g_assert_cmpint(link_set_state(pair->link, qp, how == PAIR_END_RESET ?
                                       QRDMA_QP_RESET : QRDMA_QP_ERROR), ==,
                        QRDMA_STATUS_OK);
    }
}
