/*
 * Queues of a qrdma card for tests: event, completion and work queues, and a
 * pair of connected QPs with all that surrounds them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_QUEUES_H
#define QRDMA_QUEUES_H

#include "qrdma-device.h"

typedef struct QRdmaRing {
    uint64_t address;
    unsigned log_entries;
    unsigned log_stride;
} QRdmaRing;

/* Memory for a ring; and its description, level 0, as commands take it. */
void qrdma_ring_alloc(QRdma *q, QRdmaRing *ring, unsigned log_entries,
                      unsigned log_stride);
struct qrdma_ring qrdma_ring_describe(const QRdmaRing *ring);

/* ----------------------------------------------------------- event queues */

typedef struct QRdmaEq {
    uint32_t number;
    QRdmaRing ring;
    uint32_t consumer;
} QRdmaEq;

void qrdma_eq_create(QRdma *q, QRdmaEq *eq, uint32_t number,
                     unsigned log_entries, uint32_t vector);

/* Take the next event, if there is one. The card is not told. */
bool qrdma_eq_poll(QRdma *q, QRdmaEq *eq, struct qrdma_eqe *eqe);
/* Wait for the next event, which must be of that type, and tell the card. */
struct qrdma_eqe qrdma_eq_expect(QRdma *q, QRdmaEq *eq,
                                 enum qrdma_event type);
/* Settle; there must be no event. */
void qrdma_eq_expect_none(QRdma *q, QRdmaEq *eq);
/* Tell the card how far we are; arm is QRDMA_DOORBELL_ARM_*. */
void qrdma_eq_doorbell(QRdma *q, const QRdmaEq *eq, uint32_t arm);

/* ------------------------------------------------------ completion queues */

typedef struct QRdmaCq {
    uint32_t number;
    uint32_t page;          /* doorbell page */
    QRdmaRing ring;
    uint32_t consumer;
} QRdmaCq;

void qrdma_cq_create(QRdma *q, QRdmaCq *cq, uint32_t number,
                     unsigned log_entries, uint32_t eqn);
bool qrdma_cq_poll(QRdma *q, QRdmaCq *cq, struct qrdma_cqe *cqe);
/* Wait for the next CQE, which must have that status, and tell the card. */
struct qrdma_cqe qrdma_cq_expect(QRdma *q, QRdmaCq *cq,
                                 enum qrdma_cqe_status status);
/* Wait for the next CQE of any status, and tell the card. */
struct qrdma_cqe qrdma_cq_wait(QRdma *q, QRdmaCq *cq);
void qrdma_cq_expect_none(QRdma *q, QRdmaCq *cq);
void qrdma_cq_doorbell(QRdma *q, const QRdmaCq *cq, uint32_t arm);

/* ------------------------------------------------------------ queue pairs */

typedef struct QRdmaQp {
    enum qrdma_qp_type type;
    uint32_t number;
    uint32_t page;          /* doorbell page */
    uint32_t pd;
    QRdmaCq *send_cq;
    QRdmaCq *receive_cq;
    QRdmaRing send;
    QRdmaRing receive;      /* address 0: none */
    uint32_t send_producer;
    uint32_t receive_producer;
} QRdmaQp;

/* The context that qrdma_qp_create() gives to the card. */
struct qrdma_qpc qrdma_qp_context(const QRdmaQp *qp);

/*
 * Make rings, where they are not there yet, and create the QP. The caller has
 * set type, number, page, pd, the CQs, and the rings' sizes (log_entries and
 * log_stride; log_stride 0: no receive ring).
 */
void qrdma_qp_create(QRdma *q, QRdmaQp *qp);

enum qrdma_status qrdma_qp_modify(QRdma *q, uint32_t number, uint64_t mask,
                                  const struct qrdma_qpc *context);
/* A change of state that needs nothing else. */
void qrdma_qp_to(QRdma *q, QRdmaQp *qp, enum qrdma_qp_state state);
struct qrdma_qpc qrdma_qp_query(QRdma *q, uint32_t number);

/* From RESET to RTS, towards `remote`; rnr_retry as in struct qrdma_qpc. */
void qrdma_qp_connect(QRdma *q, QRdmaQp *qp, uint32_t remote,
                      unsigned rnr_retry);

/* ----------------------------------------------------------- work requests */

struct qrdma_sge qrdma_sge(uint64_t address, uint32_t length, uint32_t key);

/*
 * Put a WQE into the send ring; qrdma_send_ring() tells the card of all so far.
 * num_sge is set from `count`; `tail` follows the header: SGEs or inline data.
 * Returns the WQE's counter.
 */
uint32_t qrdma_send_put(QRdma *q, QRdmaQp *qp, const void *wqe,
                        size_t wqe_length, const void *tail,
                        size_t tail_length);
void qrdma_send_ring(QRdma *q, QRdmaQp *qp);

/* One request with SGEs, put and rung, always signalled. */
uint32_t qrdma_post(QRdma *q, QRdmaQp *qp, struct qrdma_send_wqe wqe,
                    const struct qrdma_sge *sge, unsigned count);
uint32_t qrdma_post_inline(QRdma *q, QRdmaQp *qp, struct qrdma_send_wqe wqe,
                           const void *data, uint32_t length);
uint32_t qrdma_post_receive(QRdma *q, QRdmaQp *qp,
                            const struct qrdma_sge *sge, unsigned count);

/* One UMR, put and rung; table data inline if `inline_length` is not 0. */
uint32_t qrdma_post_umr(QRdma *q, QRdmaQp *qp, struct qrdma_umr_wqe wqe,
                        const void *inline_data, size_t inline_length);

/* ------------------------------------------------------------------ bench */

#define QRDMA_TEST_PD       7
#define QRDMA_TEST_LOCAL    1       /* index of the bench's all-memory mkey */

/*
 * A card ready for traffic: EQ 0 for asynchronous events, EQ 1 for completions,
 * QPs a and b connected to each other on a CQ each, a UMR queue with its own
 * CQ, and a key to all memory for local buffers.
 */
typedef struct QRdmaBench {
    QRdma *q;
    QRdmaEq async;
    QRdmaEq completion;
    QRdmaCq cq_a, cq_b, cq_umr;
    QRdmaQp a, b, umr;
    uint32_t local_key;
} QRdmaBench;

/* Build all of it in a card that is enabled; EQ 0 has 2^async_log_entries. */
void qrdma_bench_build(QRdmaBench *bench, QRdma *q,
                       unsigned async_log_entries);

/* Start the card and build all of it; EQ 0 has 2^async_log_entries entries. */
void qrdma_bench_init(QRdmaBench *bench, QRdma *q);
void qrdma_bench_init_with(QRdmaBench *bench, QRdma *q,
                           unsigned async_log_entries);

/* Take both QPs back to RESET and connect them again; their CQs are drained. */
void qrdma_bench_reconnect(QRdmaBench *bench);

/* The UMR queue: RESET to RTS, its CQ drained. */
void qrdma_bench_restart_umr(QRdmaBench *bench);

/* Create an mkey that the test needs but is not about. Returns its key. */
uint32_t qrdma_bench_mkey(QRdmaBench *bench, uint32_t index,
                          const struct qrdma_mkc *mkc);

/* Do one UMR and give the status it completed with (QRDMA_STATUS_OK if none) */
enum qrdma_status qrdma_bench_umr(QRdmaBench *bench, struct qrdma_umr_wqe wqe,
                                  const void *inline_data,
                                  size_t inline_length);

/*
 * RDMA read or write from QP a between local memory and `remote`, through
 * `rkey`; gives the status of its CQE. After an error the pair needs
 * qrdma_bench_reconnect().
 */
enum qrdma_cqe_status qrdma_bench_read(QRdmaBench *bench, uint64_t local,
                                       uint64_t remote, uint32_t rkey,
                                       uint32_t length);
enum qrdma_cqe_status qrdma_bench_write(QRdmaBench *bench, uint64_t local,
                                        uint64_t remote, uint32_t rkey,
                                        uint32_t length);

/* A new mkey of that index, and a write of two pages through it. */
void qrdma_bench_assert_works(QRdmaBench *bench, uint32_t index);

#endif /* QRDMA_QUEUES_H */
