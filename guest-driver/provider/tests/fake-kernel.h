/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the provider needs of libibverbs and the kernel driver, and the card's
 * side of the rings: a card that does what the test says.
 */
#ifndef QRDMA_FAKE_KERNEL_H
#define QRDMA_FAKE_KERNEL_H

#include "qrdma.h"

/* A context whose doorbell page is memory. */
struct qrdma_context *fake_context(void);
void fake_context_free(struct qrdma_context *ctx);

/* Value last written to a doorbell; it is cleared. 0: it has not been rung. */
uint64_t fake_doorbell(struct qrdma_context *ctx, uint32_t offset);

/* The QP number that the next QP gets. */
extern uint32_t fake_next_qpn;

/* What create, modify and destroy answer with; 0 is success. */
extern int fake_error;

/* The card's producer of a CQ. */
struct fake_cq {
	struct qrdma_cq *cq;
	uint32_t producer;
	uint32_t consumer;	/* as the doorbell last said */
};

/*
 * Write a CQE, as the card does. False: the ring is full, as far as the card
 * has been told.
 */
bool fake_cqe(struct fake_cq *fake, struct qrdma_qp *qp, uint8_t opcode,
	      uint32_t wqe_counter, uint8_t status);

/* Same, with all of it given but the phase. */
bool fake_raw_cqe(struct fake_cq *fake, struct qrdma_cqe cqe);

#endif /* QRDMA_FAKE_KERNEL_H */
