/*
 * qrdma engine tests: queues, a pair of connected QPs, and memory to move.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_TEST_LINK_H
#define QRDMA_TEST_LINK_H

#include "../queues-internal.h"
#include "test-region.h"

#define LINK_PAGE 4096u
#define LINK_LOG_ENTRIES 4
#define LINK_ENTRIES (1u << LINK_LOG_ENTRIES)
#define LINK_LOG_CQ_ENTRIES 6
#define LINK_LOG_EQ_ENTRIES 6
#define LINK_EQ_VECTOR 3
#define LINK_PAGE_A 5u          /* doorbell page of QP a and its CQ */
#define LINK_PAGE_B 6u
#define LINK_QPN_A 0x10u
#define LINK_QPN_B 0x20u
#define LINK_UMR_QPN 0x30u
#define LINK_MTU 1024u
#define LINK_RNR_DELAY 10000u   /* nanoseconds; timer code 1 */
#define LINK_TIMEOUT 8192u      /* nanoseconds; timeout 1 */
#define LINK_RETRIES 2
#define LINK_RNR_RETRIES 2

/* A queue of events or completions, as its reader has it. */
typedef struct TestReader {
    uint32_t number;
    uint32_t page;
    uint64_t ring;
    unsigned log_entries;
    unsigned log_stride;
    uint32_t consumer;
} TestReader;

typedef struct TestQp {
    uint32_t number;
    uint32_t page;
    uint64_t send_ring;
    uint64_t receive_ring;
    unsigned log_send_stride;
    unsigned log_receive_stride;
    uint32_t send_producer;
    uint32_t receive_producer;
    TestReader *cq;
} TestQp;

typedef struct TestLink {
    TestCard *card;
    QrdmaEngine *engine;
    FakeHost *host;
    TestReader eq;              /* EQ 0 */
    TestReader cq_a, cq_b, cq_umr;
    TestQp a, b, umr;
    uint32_t next_pble;
    uint32_t next_key;
    uint64_t next_address;
} TestLink;

/*
 * A card with EQ 0 (armed), a GID, SD 0, and QPs a and b, connected, in RTS,
 * all remote rights, and no events.
 */
TestLink *link_new(const QrdmaConfig *config);
/* Same, with CQs and QPs created only. */
TestLink *link_new_unconnected(const QrdmaConfig *config);
void link_free(TestLink *link);

/* card_migrate() */
void link_migrate(TestLink *link);

/* With a UMR queue in RTS besides. */
void link_add_umr(TestLink *link);

/* ------------------------------------------------------------------ queues */

struct qrdma_ring link_ring(uint64_t base, unsigned log_entries,
                            unsigned log_stride);
void link_make_eq(TestLink *link, TestReader *eq, uint32_t number,
                  unsigned log_entries, uint32_t vector);
void link_make_cq(TestLink *link, TestReader *cq, uint32_t number,
                  unsigned log_entries, uint32_t page, uint32_t eqn);
void link_make_qp(TestLink *link, TestQp *qp, enum qrdma_qp_type type,
                  uint32_t number, uint32_t page, TestReader *cq);

/* Requests in the shape of the driver's; state is not looked at by these. */
struct qrdma_modify_qp link_to_init(void);
struct qrdma_modify_qp link_to_rtr(uint32_t remote_qpn);
struct qrdma_modify_qp link_to_rts(void);
enum qrdma_status link_modify(TestLink *link, const TestQp *qp,
                              const struct qrdma_modify_qp *in);
enum qrdma_status link_set_state(TestLink *link, TestQp *qp,
                                 enum qrdma_qp_state state);
/* From RESET to RTS; counters of the test start at 0 too. */
void link_connect(TestLink *link, TestQp *qp, uint32_t remote_qpn);
struct qrdma_qpc link_query(TestLink *link, const TestQp *qp);

/* A doorbell as the guest writes it. Nothing runs. */
void link_doorbell(TestLink *link, uint32_t page, uint32_t offset,
                   uint32_t low, uint32_t counter);

/* Put a WQE into the next slot, without a doorbell. */
void link_put_send(TestLink *link, TestQp *qp, const void *wqe, size_t size);
void link_put_receive(TestLink *link, TestQp *qp, const void *wqe,
                      size_t size);
void link_ring_send(TestLink *link, const TestQp *qp);
void link_ring_receive(TestLink *link, const TestQp *qp);

/* Bytes of a send WQE; header in guest's byte order, SGEs in host's. */
typedef struct TestSend {
    enum qrdma_send_opcode opcode;
    uint8_t flags;
    uint32_t immediate;
    uint64_t remote_address;
    uint32_t remote_key;
    uint64_t swap_or_add;
    uint64_t compare;
    unsigned segments;
    QrdmaSegment segment[QRDMA_MAX_SGE];
    uint32_t inline_length;
    const void *inline_data;
} TestSend;

void link_send_wqe(const TestSend *send, uint8_t wqe[QRDMA_MAX_SEND_WQE]);

/* WQE and doorbell; nothing runs. */
void link_post_send(TestLink *link, TestQp *qp, const TestSend *send);
void link_post_receive(TestLink *link, TestQp *qp, unsigned segments,
                       const QrdmaSegment *segment);

/* Next entry, if there is one; tells the card. Host byte order is not made. */
bool link_poll(TestLink *link, TestReader *cq, struct qrdma_cqe *cqe);
bool link_next_event(TestLink *link, TestReader *eq, struct qrdma_eqe *eqe);
void link_arm(TestLink *link, const TestReader *reader, unsigned arm);

/*
 * As if `counter` entries had come and been read, and what is in the ring is of
 * old: the reader's counter and the card's two.
 */
void link_age(TestLink *link, TestReader *reader, uint32_t counter,
              uint32_t *producer, uint32_t *consumer);

/* There is a completion, and it says this. */
struct qrdma_cqe link_expect(TestLink *link, TestReader *cq,
                             enum qrdma_cqe_opcode opcode,
                             enum qrdma_cqe_status status);
void link_expect_no_cqe(TestLink *link, TestReader *cq);
struct qrdma_eqe link_expect_event(TestLink *link, enum qrdma_event type,
                                   uint32_t number);
void link_expect_no_event(TestLink *link);

/* ------------------------------------------------------------------ memory */

/* A region over scattered memory: page i is at pages[i]. */
typedef struct TestBuffer {
    TestCard *card;
    uint32_t index;
    uint32_t key;
    QrdmaMkc mkc;
    uint64_t address;
    uint64_t length;
    GArray *pages;              /* uint64_t */
} TestBuffer;

/*
 * Level 0: one page. `offset`: of the first byte in its page. All rights, and
 * `flags` besides.
 */
TestBuffer *link_buffer(TestLink *link, unsigned level, unsigned log_page_size,
                        uint64_t offset, uint64_t length, uint32_t flags);
void link_buffer_free(TestBuffer *buffer);

/* CPU's view, by offset in the region. */
void link_buffer_fill(TestBuffer *buffer, uint8_t seed);
uint8_t link_buffer_byte(TestBuffer *buffer, uint64_t offset);
uint8_t link_pattern(uint8_t seed, uint64_t offset);
void *link_buffer_pointer(TestBuffer *buffer, uint64_t offset, size_t length);

/* Make a page absent, or present again; the card is told. */
void link_buffer_set_present(TestLink *link, TestBuffer *buffer, uint64_t page,
                             bool present);

QrdmaSegment link_segment(const TestBuffer *buffer, uint64_t offset,
                          uint32_t length);

#endif /* QRDMA_TEST_LINK_H */
