// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: their rings, their table, their life.
 */
#include <errno.h>
#include <stdlib.h>

#include <util/util.h>

#include "qrdma.h"
#include "qrdma_kernel_abi.h"

/*
 * Look a QP up by number. NULL unless that side of it completes on @cq: only
 * then does the CQ's lock, which the caller holds, keep the QP from going away.
 */
struct qrdma_qp *qrdma_find_qp(struct qrdma_context *ctx, uint32_t qpn,
			       struct ibv_cq *cq, bool receive)
{
	struct qrdma_qp *qp = NULL;
	struct qrdma_qp_leaf *leaf;

	if (qpn >> QRDMA_QP_TABLE_SHIFT >= QRDMA_QP_LEAVES)
		return NULL;

	pthread_spin_lock(&ctx->qp_table_lock);
	leaf = ctx->qp_leaves[qpn >> QRDMA_QP_TABLE_SHIFT];
	if (leaf)
		qp = leaf->qps[qpn & (QRDMA_QP_LEAF_SIZE - 1)];
	if (qp && (receive ? qp->vqp.qp.recv_cq : qp->vqp.qp.send_cq) != cq)
		qp = NULL;
	pthread_spin_unlock(&ctx->qp_table_lock);

	return qp;
}

/*
 * Put @qp, or NULL, into the table. The leaf must be there or the number free.
 * Called with qp_mutex held. Returns 0 or an errno value.
 */
static int qrdma_store_qp(struct qrdma_context *ctx, uint32_t qpn,
			  struct qrdma_qp *qp)
{
	uint32_t index = qpn >> QRDMA_QP_TABLE_SHIFT;
	struct qrdma_qp_leaf *leaf;

	if (index >= QRDMA_QP_LEAVES)
		return EPROTO;

	leaf = ctx->qp_leaves[index];
	if (!leaf) {
		leaf = calloc(1, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
	}

	pthread_spin_lock(&ctx->qp_table_lock);
	leaf->qps[qpn & (QRDMA_QP_LEAF_SIZE - 1)] = qp;
	ctx->qp_leaves[index] = leaf;
	pthread_spin_unlock(&ctx->qp_table_lock);

	return 0;
}

/*
 * Allocate a work queue of at least @wr entries of 2^@log_stride bytes.
 * Returns 0 or an errno value.
 */
static int qrdma_alloc_work_queue(struct qrdma_work_queue *wq, uint32_t wr,
				  uint8_t log_stride)
{
	int ret;

	wq->entries = roundup_pow_of_two(wr);
	wq->log_entries = ilog32(wq->entries) - 1;
	wq->log_stride = log_stride;

	wq->wr_ids = calloc(wq->entries, sizeof(*wq->wr_ids));
	if (!wq->wr_ids)
		return ENOMEM;

	ret = qrdma_alloc_buffer(&wq->ring, (size_t)wq->entries << log_stride);
	if (ret) {
		free(wq->wr_ids);
		wq->wr_ids = NULL;
	}
	return ret;
}

static void qrdma_free_work_queue(struct qrdma_work_queue *wq)
{
	qrdma_free_buffer(&wq->ring);
	free(wq->wr_ids);
}

/* log2 of the smallest WQE slot from 2^@log_min bytes up that holds @bytes. */
static uint8_t qrdma_log_stride(uint32_t bytes, uint8_t log_min)
{
	uint8_t log_stride = ilog32(bytes - 1);

	return log_stride < log_min ? log_min : log_stride;
}

static uint32_t qrdma_segments(const struct qrdma_context *ctx,
			       uint8_t log_stride, uint32_t header)
{
	uint32_t segments = ((1u << log_stride) - header) /
			    sizeof(struct qrdma_sge);

	return segments < ctx->max_sge ? segments : ctx->max_sge;
}

static int qrdma_alloc_send_queue(struct qrdma_context *ctx,
				  struct qrdma_qp *qp,
				  const struct ibv_qp_cap *cap)
{
	uint32_t payload = cap->max_send_sge * sizeof(struct qrdma_sge);
	uint8_t log_stride;
	int ret;

	if (payload < cap->max_inline_data)
		payload = cap->max_inline_data;
	log_stride = qrdma_log_stride(QRDMA_SEND_WQE_HEADER + payload,
				      QRDMA_SEND_WQE_LOG_MIN);

	/* A queue of the card's has one entry at least. */
	ret = qrdma_alloc_work_queue(&qp->send,
				     cap->max_send_wr ? cap->max_send_wr : 1,
				     log_stride);
	if (ret)
		return ret;

	qp->send.max_sge = qrdma_segments(ctx, log_stride,
					  QRDMA_SEND_WQE_HEADER);
	qp->max_inline = (1u << log_stride) - QRDMA_SEND_WQE_HEADER;
	if (qp->max_inline > ctx->max_inline)
		qp->max_inline = ctx->max_inline;
	return 0;
}

static int qrdma_alloc_receive_queue(struct qrdma_context *ctx,
				     struct qrdma_qp *qp,
				     const struct ibv_qp_cap *cap)
{
	uint8_t log_stride;
	int ret;

	if (!cap->max_recv_wr)
		return 0;

	log_stride = qrdma_log_stride(QRDMA_RECEIVE_WQE_HEADER +
					      cap->max_recv_sge *
						      sizeof(struct qrdma_sge),
				      QRDMA_RECEIVE_WQE_LOG_MIN);
	ret = qrdma_alloc_work_queue(&qp->receive, cap->max_recv_wr,
				     log_stride);
	if (ret)
		return ret;

	qp->receive.max_sge = qrdma_segments(ctx, log_stride,
					     QRDMA_RECEIVE_WQE_HEADER);
	return 0;
}

static int qrdma_check_qp_attr(const struct qrdma_context *ctx,
			       const struct ibv_qp_init_attr *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if (attr->qp_type != IBV_QPT_RC || attr->srq)
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (cap->max_send_wr > ctx->max_ring_entries ||
	    cap->max_recv_wr > ctx->max_ring_entries ||
	    cap->max_send_sge > ctx->max_sge ||
	    cap->max_recv_sge > ctx->max_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	return 0;
}

/* What the rings really hold: at least what was asked for. */
static void qrdma_get_cap(const struct qrdma_qp *qp, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = qp->send.entries;
	cap->max_send_sge = qp->send.max_sge;
	cap->max_recv_wr = qp->receive.entries;
	cap->max_recv_sge = qp->receive.max_sge;
	cap->max_inline_data = qp->max_inline;
}

/* Create the QP in the kernel and enter it into the table, as one step. */
static int qrdma_create_kernel_qp(struct ibv_pd *pd, struct qrdma_qp *qp,
				  struct ibv_qp_init_attr *attr)
{
	struct qrdma_context *ctx = to_qctx(pd->context);
	struct qrdma_create_qp_cmd_resp resp = {};
	struct qrdma_create_qp_cmd cmd = {};
	int ret;

	cmd.drv_payload.send_address = (uintptr_t)qp->send.ring.address;
	cmd.drv_payload.send_length = qp->send.ring.length;
	cmd.drv_payload.send_log_entries = qp->send.log_entries;
	cmd.drv_payload.send_log_stride = qp->send.log_stride;
	cmd.drv_payload.receive_address = (uintptr_t)qp->receive.ring.address;
	cmd.drv_payload.receive_length = qp->receive.ring.length;
	cmd.drv_payload.receive_log_entries = qp->receive.log_entries;
	cmd.drv_payload.receive_log_stride = qp->receive.log_stride;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_create_qp(pd, &qp->vqp.qp, attr, &cmd.ibv_cmd,
				sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto out;

	qp->qpn = resp.drv_payload.qpn;
	/* libibverbs fills these in later; polling wants them from now on. */
	qp->vqp.qp.context = pd->context;
	qp->vqp.qp.send_cq = attr->send_cq;
	qp->vqp.qp.recv_cq = attr->recv_cq;
	ret = qrdma_store_qp(ctx, qp->qpn, qp);
	if (ret)
		ibv_cmd_destroy_qp(&qp->vqp.qp);
out:
	pthread_mutex_unlock(&ctx->qp_mutex);
	return ret;
}

struct ibv_qp *qrdma_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr)
{
	struct qrdma_context *ctx = to_qctx(pd->context);
	struct qrdma_qp *qp;
	int ret;

	ret = qrdma_check_qp_attr(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qp->signal_all = attr->sq_sig_all;

	ret = qrdma_alloc_send_queue(ctx, qp, &attr->cap);
	if (ret)
		goto err_qp;
	ret = qrdma_alloc_receive_queue(ctx, qp, &attr->cap);
	if (ret)
		goto err_send;

	pthread_spin_init(&qp->send.lock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_init(&qp->receive.lock, PTHREAD_PROCESS_PRIVATE);
	ret = qrdma_create_kernel_qp(pd, qp, attr);
	if (ret)
		goto err_receive;

	qrdma_get_cap(qp, &attr->cap);
	return &qp->vqp.qp;

err_receive:
	pthread_spin_destroy(&qp->receive.lock);
	pthread_spin_destroy(&qp->send.lock);
	qrdma_free_work_queue(&qp->receive);
err_send:
	qrdma_free_work_queue(&qp->send);
err_qp:
	free(qp);
	errno = ret;
	return NULL;
}

int qrdma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask, struct ibv_qp_init_attr *init_attr)
{
	struct ibv_query_qp cmd = {};
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, attr_mask, init_attr, &cmd,
			       sizeof(cmd));
	if (ret)
		return ret;

	qrdma_get_cap(to_qqp(ibqp), &attr->cap);
	init_attr->cap = attr->cap;
	return 0;
}

/*
 * The card has reset the QP: its counters are 0 again, and what was outstanding
 * will not complete.
 */
static void qrdma_reset_work_queue(struct qrdma_work_queue *wq)
{
	pthread_spin_lock(&wq->lock);
	atomic_store(&wq->producer, 0);
	atomic_store(&wq->consumer, 0);
	pthread_spin_unlock(&wq->lock);
}

static void qrdma_forget_completions(struct qrdma_qp *qp)
{
	qrdma_forget_cqes(qp->vqp.qp.send_cq, qp->qpn);
	if (qp->vqp.qp.recv_cq != qp->vqp.qp.send_cq)
		qrdma_forget_cqes(qp->vqp.qp.recv_cq, qp->qpn);
}

int qrdma_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		    int attr_mask)
{
	struct qrdma_context *ctx = to_qctx(ibqp->context);
	struct qrdma_qp *qp = to_qqp(ibqp);
	struct ibv_modify_qp cmd = {};
	int ret;

	if (!(attr_mask & IBV_QP_STATE) || attr->qp_state != IBV_QPS_RESET)
		return ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd,
					 sizeof(cmd));

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_modify_qp(ibqp, attr, attr_mask, &cmd, sizeof(cmd));
	if (!ret) {
		qrdma_lock_cqs(ibqp->send_cq, ibqp->recv_cq);
		qrdma_forget_completions(qp);
		qrdma_reset_work_queue(&qp->send);
		qrdma_reset_work_queue(&qp->receive);
		qrdma_unlock_cqs(ibqp->send_cq, ibqp->recv_cq);
	}
	pthread_mutex_unlock(&ctx->qp_mutex);

	return ret;
}

int qrdma_destroy_qp(struct ibv_qp *ibqp)
{
	struct qrdma_context *ctx = to_qctx(ibqp->context);
	struct qrdma_qp *qp = to_qqp(ibqp);
	int ret;

	pthread_mutex_lock(&ctx->qp_mutex);
	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret) {
		pthread_mutex_unlock(&ctx->qp_mutex);
		return ret;
	}

	qrdma_lock_cqs(ibqp->send_cq, ibqp->recv_cq);
	qrdma_forget_completions(qp);
	qrdma_store_qp(ctx, qp->qpn, NULL);
	qrdma_unlock_cqs(ibqp->send_cq, ibqp->recv_cq);
	pthread_mutex_unlock(&ctx->qp_mutex);

	pthread_spin_destroy(&qp->receive.lock);
	pthread_spin_destroy(&qp->send.lock);
	qrdma_free_work_queue(&qp->receive);
	qrdma_free_work_queue(&qp->send);
	free(qp);
	return 0;
}
