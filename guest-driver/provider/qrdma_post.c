// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting of work requests: WQEs in the ring, then one doorbell for them all.
 *
 * What only the program can have got wrong in its call is refused here; whether
 * keys, addresses and lengths are right is for the card to say, in completions.
 */
#include <errno.h>
#include <string.h>

#include <util/util.h>

#include "qrdma.h"

static void *qrdma_wqe_slot(const struct qrdma_work_queue *wq,
			    uint32_t counter)
{
	size_t index = counter & (wq->entries - 1);

	return (uint8_t *)wq->ring.address + (index << wq->log_stride);
}

/* Is there a slot for the WQE of counter @producer? Pairs with the poller. */
static bool qrdma_has_room(struct qrdma_work_queue *wq, uint32_t producer)
{
	uint32_t consumer = atomic_load_explicit(&wq->consumer,
						 memory_order_acquire);

	return producer - consumer < wq->entries;
}

static uint64_t qrdma_total_length(const struct ibv_sge *sg_list, int num_sge)
{
	uint64_t total = 0;
	int i;

	for (i = 0; i < num_sge; i++)
		total += sg_list[i].length;
	return total;
}

static void qrdma_write_segments(struct qrdma_sge *segments,
				 const struct ibv_sge *sg_list, int num_sge)
{
	int i;

	for (i = 0; i < num_sge; i++) {
		segments[i].address = htole64(sg_list[i].addr);
		segments[i].length = htole32(sg_list[i].length);
		segments[i].key = htole32(sg_list[i].lkey);
	}
}

static void qrdma_write_inline(uint8_t *payload, const struct ibv_sge *sg_list,
			       int num_sge)
{
	int i;

	for (i = 0; i < num_sge; i++) {
		memcpy(payload, (const void *)(uintptr_t)sg_list[i].addr,
		       sg_list[i].length);
		payload += sg_list[i].length;
	}
}

/*
 * Fill in what depends on the operation. Returns 0, or EINVAL for one that an
 * RC queue pair of this card does not know.
 */
static int qrdma_set_operation(struct qrdma_send_wqe *wqe,
			       const struct ibv_send_wr *wr)
{
	bool rdma = false;

	switch (wr->opcode) {
	case IBV_WR_SEND:
		wqe->opcode = QRDMA_SEND_OP_SEND;
		break;
	case IBV_WR_SEND_WITH_IMM:
		wqe->opcode = QRDMA_SEND_OP_SEND_IMM;
		memcpy(&wqe->immediate, &wr->imm_data, sizeof(wqe->immediate));
		break;
	case IBV_WR_RDMA_WRITE:
		wqe->opcode = QRDMA_SEND_OP_WRITE;
		rdma = true;
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->opcode = QRDMA_SEND_OP_WRITE_IMM;
		memcpy(&wqe->immediate, &wr->imm_data, sizeof(wqe->immediate));
		rdma = true;
		break;
	case IBV_WR_RDMA_READ:
		wqe->opcode = QRDMA_SEND_OP_READ;
		rdma = true;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		wqe->opcode = QRDMA_SEND_OP_COMPARE_SWAP;
		wqe->compare = htole64(wr->wr.atomic.compare_add);
		wqe->swap_or_add = htole64(wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->opcode = QRDMA_SEND_OP_FETCH_ADD;
		wqe->swap_or_add = htole64(wr->wr.atomic.compare_add);
		break;
	default:
		return EINVAL;
	}

	if (rdma) {
		wqe->remote_address = htole64(wr->wr.rdma.remote_addr);
		wqe->remote_key = htole32(wr->wr.rdma.rkey);
	} else if (wqe->opcode == QRDMA_SEND_OP_COMPARE_SWAP ||
		   wqe->opcode == QRDMA_SEND_OP_FETCH_ADD) {
		wqe->remote_address = htole64(wr->wr.atomic.remote_addr);
		wqe->remote_key = htole32(wr->wr.atomic.rkey);
	}
	return 0;
}

static bool qrdma_takes_inline(uint8_t opcode)
{
	return opcode == QRDMA_SEND_OP_SEND ||
	       opcode == QRDMA_SEND_OP_SEND_IMM ||
	       opcode == QRDMA_SEND_OP_WRITE ||
	       opcode == QRDMA_SEND_OP_WRITE_IMM;
}

static uint8_t qrdma_send_flags(const struct qrdma_qp *qp,
				const struct ibv_send_wr *wr)
{
	uint8_t flags = 0;

	if (qp->signal_all || wr->send_flags & IBV_SEND_SIGNALED)
		flags |= QRDMA_WQE_SIGNALED;
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= QRDMA_WQE_SOLICITED;
	if (wr->send_flags & IBV_SEND_FENCE)
		flags |= QRDMA_WQE_FENCE;
	if (wr->send_flags & IBV_SEND_INLINE)
		flags |= QRDMA_WQE_INLINE;
	return flags;
}

/* Write one send WQE into @slot. Returns 0 or EINVAL; then nothing is posted. */
static int qrdma_write_send_wqe(const struct qrdma_qp *qp, uint8_t *slot,
				const struct ibv_send_wr *wr)
{
	const unsigned int known_flags = IBV_SEND_FENCE | IBV_SEND_SIGNALED |
					 IBV_SEND_SOLICITED | IBV_SEND_INLINE;
	struct qrdma_send_wqe wqe = {};
	uint64_t length;
	int ret;

	if (wr->num_sge < 0 || wr->num_sge > (int)qp->send.max_sge ||
	    wr->send_flags & ~known_flags)
		return EINVAL;

	ret = qrdma_set_operation(&wqe, wr);
	if (ret)
		return ret;
	wqe.flags = qrdma_send_flags(qp, wr);

	length = qrdma_total_length(wr->sg_list, wr->num_sge);
	if (wqe.flags & QRDMA_WQE_INLINE) {
		if (!qrdma_takes_inline(wqe.opcode) || length > qp->max_inline)
			return EINVAL;
		wqe.inline_length = htole32(length);
		qrdma_write_inline(slot + QRDMA_SEND_WQE_HEADER, wr->sg_list,
				   wr->num_sge);
	} else {
		if (length > QRDMA_MAX_MESSAGE_SIZE)
			return EINVAL;
		wqe.num_sge = htole32(wr->num_sge);
		qrdma_write_segments((struct qrdma_sge *)
					     (slot + QRDMA_SEND_WQE_HEADER),
				     wr->sg_list, wr->num_sge);
	}

	memcpy(slot, &wqe, sizeof(wqe));
	return 0;
}

/*
 * Hand WQEs up to counter @producer to the card. The counter is stored first:
 * the poller may see a completion as soon as the doorbell has rung.
 */
static void qrdma_hand_over(struct qrdma_qp *qp, struct qrdma_work_queue *wq,
			    uint32_t producer, uint32_t doorbell)
{
	atomic_store_explicit(&wq->producer, producer, memory_order_release);
	qrdma_ring_doorbell(to_qctx(qp->vqp.qp.context), doorbell, qp->qpn,
			    QRDMA_DOORBELL_ARM_NONE, producer);
}

int qrdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr)
{
	struct qrdma_qp *qp = to_qqp(ibqp);
	struct qrdma_work_queue *wq = &qp->send;
	uint32_t first, producer;
	int ret = 0;

	if (ibqp->state < IBV_QPS_RTS) {
		*bad_wr = wr;
		return EINVAL;
	}

	pthread_spin_lock(&wq->lock);
	first = atomic_load_explicit(&wq->producer, memory_order_relaxed);
	for (producer = first; wr; wr = wr->next, producer++) {
		if (!qrdma_has_room(wq, producer))
			ret = ENOMEM;
		else
			ret = qrdma_write_send_wqe(
				qp, qrdma_wqe_slot(wq, producer), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		wq->wr_ids[producer & (wq->entries - 1)] = wr->wr_id;
	}
	if (producer != first)
		qrdma_hand_over(qp, wq, producer, QRDMA_DOORBELL_SEND);
	pthread_spin_unlock(&wq->lock);

	return ret;
}

static int qrdma_write_receive_wqe(const struct qrdma_work_queue *wq,
				   uint8_t *slot, const struct ibv_recv_wr *wr)
{
	struct qrdma_receive_wqe wqe = {};

	if (wr->num_sge < 0 || wr->num_sge > (int)wq->max_sge)
		return EINVAL;

	wqe.num_sge = htole32(wr->num_sge);
	memcpy(slot, &wqe, sizeof(wqe));
	qrdma_write_segments((struct qrdma_sge *)(slot +
						  QRDMA_RECEIVE_WQE_HEADER),
			     wr->sg_list, wr->num_sge);
	return 0;
}

int qrdma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr)
{
	struct qrdma_qp *qp = to_qqp(ibqp);
	struct qrdma_work_queue *wq = &qp->receive;
	uint32_t first, producer;
	int ret = 0;

	if (ibqp->state == IBV_QPS_RESET || !wq->entries) {
		*bad_wr = wr;
		return EINVAL;
	}

	pthread_spin_lock(&wq->lock);
	first = atomic_load_explicit(&wq->producer, memory_order_relaxed);
	for (producer = first; wr; wr = wr->next, producer++) {
		if (!qrdma_has_room(wq, producer))
			ret = ENOMEM;
		else
			ret = qrdma_write_receive_wqe(
				wq, qrdma_wqe_slot(wq, producer), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		wq->wr_ids[producer & (wq->entries - 1)] = wr->wr_id;
	}
	if (producer != first)
		qrdma_hand_over(qp, wq, producer, QRDMA_DOORBELL_RECEIVE);
	pthread_spin_unlock(&wq->lock);

	return ret;
}
