/*
 * qrdma engine tests: a link with a region at each end.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_TEST_PAIR_H
#define QRDMA_TEST_PAIR_H

#include "test-link.h"

#define PAIR_PAGES 4u
#define PAIR_LENGTH (PAIR_PAGES * LINK_PAGE)
#define PAIR_SEED 9             /* of what is in `from`; `to` is zero */
#define PAIR_LATENCY 1000u

typedef struct Pair {
    TestLink *link;
    TestBuffer *from;           /* QP a's */
    TestBuffer *to;             /* QP b's */
} Pair;

void pair_set_up_with(Pair *pair, const QrdmaConfig *config, bool connect,
                      uint64_t offset, uint32_t flags);

/* Fixtures. Slow: packets take PAIR_LATENCY. */
void pair_set_up(Pair *pair, gconstpointer data);
void pair_set_up_unconnected(Pair *pair, gconstpointer data);
void pair_set_up_slow(Pair *pair, gconstpointer data);
void pair_tear_down(Pair *pair, gconstpointer data);

typedef void (*PairTest)(Pair *pair, gconstpointer data);

/* Add a test whose path is `format` with `name` in it. */
void pair_add(const char *format, const char *name, gconstpointer data,
              PairTest set_up, PairTest test);

/* A signaled message of a's from the beginning of `from` to that of `to`. */
TestSend pair_message(Pair *pair, enum qrdma_send_opcode opcode,
                      uint32_t length);

/* b receives to the beginning of `to`. */
void pair_post_receive(Pair *pair, uint32_t length);

enum qrdma_qp_state pair_state(Pair *pair, const TestQp *qp);

/* How a QP can be stopped. */
typedef enum PairEnd {
    PAIR_END_RESET,
    PAIR_END_ERROR,
    PAIR_END_DESTROY,
    PAIR_ENDS
} PairEnd;

extern const char *const pair_end_names[PAIR_ENDS];

void pair_end(Pair *pair, TestQp *qp, PairEnd how);

#endif /* QRDMA_TEST_PAIR_H */
