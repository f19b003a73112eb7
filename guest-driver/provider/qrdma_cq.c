// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues.
 *
 * The card writes completions in order and says by the phase bit which of them
 * are new. It must know how far they have been read, or it would take the queue
 * for full; each time it is told costs an access to the card, which leaves the
 * VM. So a ring has more entries than the queue's user may have outstanding,
 * and the card is told once for so many completions, and when it is armed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/array_size.h>
#include <util/util.h>

#include "qrdma.h"
#include "qrdma_kernel_abi.h"

/*
 * Choose ring size and publish interval for @cqe completions: at any time all
 * but publish_interval - 1 entries of the ring are the card's to fill.
 */
static int qrdma_set_cq_size(struct qrdma_context *ctx, struct qrdma_cq *cq,
			     int cqe)
{
	uint32_t wanted = cqe;
	uint32_t entries;

	if (cqe < 1 || wanted > ctx->max_ring_entries)
		return EINVAL;

	entries = roundup_pow_of_two((uint64_t)wanted + wanted / 4);
	if (entries > ctx->max_ring_entries)
		entries = roundup_pow_of_two(wanted);
	if (entries > ctx->max_ring_entries)
		return EINVAL;

	cq->entries = entries;
	cq->publish_interval = entries / 4 ? entries / 4 : 1;
	if (cq->publish_interval > entries - wanted + 1)
		cq->publish_interval = entries - wanted + 1;
	return 0;
}

struct ibv_cq *qrdma_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct qrdma_context *ctx = to_qctx(context);
	struct qrdma_create_cq_cmd_resp resp = {};
	struct qrdma_create_cq_cmd cmd = {};
	struct qrdma_cq *cq;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;

	ret = qrdma_set_cq_size(ctx, cq, cqe);
	if (ret)
		goto err_cq;

	ret = qrdma_alloc_buffer(&cq->ring, (size_t)cq->entries
						    << QRDMA_CQE_LOG_SIZE);
	if (ret)
		goto err_cq;

	cmd.drv_payload.ring_address = (uintptr_t)cq->ring.address;
	cmd.drv_payload.ring_length = cq->ring.length;
	cmd.drv_payload.log_entries = ilog32(cq->entries) - 1;
	ret = ibv_cmd_create_cq(context, cqe, channel, comp_vector,
				&cq->vcq.cq, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_ring;

	cq->cqn = resp.drv_payload.cqn;
	cq->vcq.cq.cqe = cq->entries - cq->publish_interval + 1;
	pthread_spin_init(&cq->lock, PTHREAD_PROCESS_PRIVATE);

	return &cq->vcq.cq;

err_ring:
	qrdma_free_buffer(&cq->ring);
err_cq:
	free(cq);
	errno = ret;
	return NULL;
}

int qrdma_destroy_cq(struct ibv_cq *ibcq)
{
	struct qrdma_cq *cq = to_qcq(ibcq);
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	pthread_spin_destroy(&cq->lock);
	qrdma_free_buffer(&cq->ring);
	free(cq);
	return 0;
}

/* Lock the one or two CQs of a QP, the same way round whoever asks. */
void qrdma_lock_cqs(struct ibv_cq *first, struct ibv_cq *second)
{
	if (first > second) {
		qrdma_lock_cqs(second, first);
		return;
	}

	pthread_spin_lock(&to_qcq(first)->lock);
	if (first != second)
		pthread_spin_lock(&to_qcq(second)->lock);
}

void qrdma_unlock_cqs(struct ibv_cq *first, struct ibv_cq *second)
{
	pthread_spin_unlock(&to_qcq(first)->lock);
	if (first != second)
		pthread_spin_unlock(&to_qcq(second)->lock);
}

/*
 * The CQE of a free-running counter, or NULL if the card has not written it in
 * this pass over the ring. After it, the other fields can be read.
 */
static struct qrdma_cqe *qrdma_get_cqe(struct qrdma_cq *cq, uint32_t counter)
{
	struct qrdma_cqe *cqes = cq->ring.address;
	struct qrdma_cqe *cqe = &cqes[counter & (cq->entries - 1)];
	uint8_t phase = counter & cq->entries ? 0 : 1;

	if (*(volatile __u8 *)&cqe->phase != phase)
		return NULL;

	udma_from_device_barrier();
	return cqe;
}

/*
 * Make polling pass over the completions of @qpn that are in the ring; for a
 * QP that the card has just destroyed or reset. Called with the CQ locked.
 */
void qrdma_forget_cqes(struct ibv_cq *ibcq, uint32_t qpn)
{
	struct qrdma_cq *cq = to_qcq(ibcq);
	struct qrdma_cqe *cqe;
	uint32_t i;

	for (i = 0; i < cq->entries; i++) {
		cqe = qrdma_get_cqe(cq, cq->consumer + i);
		if (!cqe)
			return;
		if (le32toh(cqe->qpn) == qpn)
			cqe->qpn = htole32(QRDMA_NO_QPN);
	}
}

static enum ibv_wc_status qrdma_wc_status(uint8_t status)
{
	static const enum ibv_wc_status statuses[] = {
		[QRDMA_CQE_SUCCESS] = IBV_WC_SUCCESS,
		[QRDMA_CQE_LOCAL_LENGTH_ERROR] = IBV_WC_LOC_LEN_ERR,
		[QRDMA_CQE_LOCAL_QP_OPERATION_ERROR] = IBV_WC_LOC_QP_OP_ERR,
		[QRDMA_CQE_LOCAL_PROTECTION_ERROR] = IBV_WC_LOC_PROT_ERR,
		[QRDMA_CQE_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
		[QRDMA_CQE_UMR_ERROR] = IBV_WC_GENERAL_ERR,
		[QRDMA_CQE_LOCAL_ACCESS_ERROR] = IBV_WC_LOC_ACCESS_ERR,
		[QRDMA_CQE_REMOTE_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
		[QRDMA_CQE_REMOTE_ACCESS_ERROR] = IBV_WC_REM_ACCESS_ERR,
		[QRDMA_CQE_REMOTE_OPERATION_ERROR] = IBV_WC_REM_OP_ERR,
		[QRDMA_CQE_RETRY_EXCEEDED] = IBV_WC_RETRY_EXC_ERR,
		[QRDMA_CQE_RNR_RETRY_EXCEEDED] = IBV_WC_RNR_RETRY_EXC_ERR,
	};

	if (status >= ARRAY_SIZE(statuses))
		return IBV_WC_GENERAL_ERR;
	return statuses[status];
}

static enum ibv_wc_opcode qrdma_wc_opcode(uint8_t opcode)
{
	switch (opcode) {
	case QRDMA_CQE_OP_WRITE:
		return IBV_WC_RDMA_WRITE;
	case QRDMA_CQE_OP_READ:
		return IBV_WC_RDMA_READ;
	case QRDMA_CQE_OP_COMPARE_SWAP:
		return IBV_WC_COMP_SWAP;
	case QRDMA_CQE_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case QRDMA_CQE_OP_RECV:
		return IBV_WC_RECV;
	case QRDMA_CQE_OP_RECV_WRITE_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	default:
		return IBV_WC_SEND;
	}
}

/*
 * Take the WQE that completed, and all before it, off its queue, and give its
 * wr_id. False if the queue has no such WQE outstanding.
 */
static bool qrdma_retire_wqe(struct qrdma_work_queue *wq, uint32_t counter,
			     uint64_t *wr_id)
{
	uint32_t consumer = atomic_load_explicit(&wq->consumer,
						 memory_order_relaxed);
	uint32_t producer = atomic_load_explicit(&wq->producer,
						 memory_order_acquire);

	if (counter - consumer >= producer - consumer)
		return false;

	*wr_id = wq->wr_ids[counter & (wq->entries - 1)];
	/* From here on the poster may use the slot. */
	atomic_store_explicit(&wq->consumer, counter + 1,
			      memory_order_release);
	return true;
}

/*
 * Turn a CQE into a work completion. False if there is none to report: the QP
 * is gone, or the CQE names a WQE that nobody posted.
 */
static bool qrdma_fill_wc(struct qrdma_qp *qp, const struct qrdma_cqe *cqe,
			  struct ibv_wc *wc)
{
	bool receive = cqe->opcode & QRDMA_CQE_OP_RECV;

	if (!qrdma_retire_wqe(receive ? &qp->receive : &qp->send,
			      le32toh(cqe->wqe_counter), &wc->wr_id)) {
		verbs_err(&to_qctx(qp->vqp.qp.context)->vctx,
			  "QP 0x%x: completion of WQE %u, which is not there\n",
			  qp->qpn, le32toh(cqe->wqe_counter));
		return false;
	}

	wc->status = qrdma_wc_status(cqe->status);
	wc->opcode = qrdma_wc_opcode(cqe->opcode);
	wc->vendor_err = le16toh(cqe->syndrome);
	wc->byte_len = le32toh(cqe->byte_length);
	wc->qp_num = qp->qpn;
	wc->src_qp = le32toh(cqe->remote_qpn);
	wc->wc_flags = 0;
	if (cqe->flags & QRDMA_CQE_FLAG_IMMEDIATE) {
		wc->wc_flags |= IBV_WC_WITH_IMM;
		/* The card carries the four bytes as they are. */
		memcpy(&wc->imm_data, &cqe->immediate, sizeof(wc->imm_data));
	}
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = 0;
	wc->dlid_path_bits = 0;
	return true;
}

/* Tell the card how far the ring has been read, and arm it or not. */
static void qrdma_publish_consumer(struct qrdma_cq *cq, uint32_t arm)
{
	qrdma_ring_doorbell(to_qctx(cq->vcq.cq.context), QRDMA_DOORBELL_CQ,
			    cq->cqn, arm, cq->consumer);
	cq->published = cq->consumer;
}

int qrdma_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct qrdma_context *ctx = to_qctx(ibcq->context);
	struct qrdma_cq *cq = to_qcq(ibcq);
	struct qrdma_qp *qp = NULL;
	uint32_t last = QRDMA_NO_QPN;
	struct qrdma_cqe *cqe;
	bool last_receive = false;
	bool receive;
	uint32_t qpn;
	int n = 0;

	pthread_spin_lock(&cq->lock);
	while (n < num_entries) {
		cqe = qrdma_get_cqe(cq, cq->consumer);
		if (!cqe)
			break;

		qpn = le32toh(cqe->qpn);
		receive = cqe->opcode & QRDMA_CQE_OP_RECV;
		if (qpn != last || receive != last_receive) {
			qp = qrdma_find_qp(ctx, qpn, ibcq, receive);
			last = qpn;
			last_receive = receive;
		}
		if (qp && qrdma_fill_wc(qp, cqe, &wc[n]))
			n++;

		cq->consumer++;
		if (cq->consumer - cq->published >= cq->publish_interval)
			qrdma_publish_consumer(cq, QRDMA_DOORBELL_ARM_NONE);
	}
	pthread_spin_unlock(&cq->lock);

	return n;
}

/*
 * The doorbell carries the consumer counter: the card compares it with what it
 * has written, so a completion that arrived since the last poll is not missed.
 */
int qrdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct qrdma_cq *cq = to_qcq(ibcq);

	pthread_spin_lock(&cq->lock);
	qrdma_publish_consumer(cq, solicited_only ?
					   QRDMA_DOORBELL_ARM_SOLICITED :
					   QRDMA_DOORBELL_ARM_NEXT);
	pthread_spin_unlock(&cq->lock);

	return 0;
}
