// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: queue pairs of the driver's own, each with a CQ. The memory-region half
 * posts its UMRs on one.
 */
#include "qrdma.h"

static void qrdma_kernel_cq_complete(struct qrdma_cq_base *base)
{
	struct qrdma_kernel_qp *qp = container_of(base, struct qrdma_kernel_qp,
						  cq);

	if (qp->complete)
		qp->complete(qp);
}

static void qrdma_kernel_cq_error(struct qrdma_cq_base *base, u16 syndrome)
{
	struct qrdma_kernel_qp *qp = container_of(base, struct qrdma_kernel_qp,
						  cq);

	if (qp->error)
		qp->error(qp, syndrome);
}

static void qrdma_kernel_qp_event(struct qrdma_qp_base *base,
				  const struct qrdma_eqe *eqe)
{
	struct qrdma_kernel_qp *qp = container_of(base, struct qrdma_kernel_qp,
						  base);

	if (eqe->type == QRDMA_EVENT_QP_ERROR && qp->error)
		qp->error(qp, le16_to_cpu(eqe->syndrome));
}

int qrdma_kernel_qp_create(struct qrdma_dev *dev, struct qrdma_kernel_qp *qp,
			   enum qrdma_qp_type type, u8 log_entries,
			   u8 log_stride)
{
	struct qrdma_qpc context = {};
	int ret;

	qp->dev = dev;
	qp->log_entries = log_entries;
	qp->log_stride = log_stride;
	qp->producer = 0;
	qp->cq_consumer = 0;
	qp->cq.complete = qrdma_kernel_cq_complete;
	qp->cq.error = qrdma_kernel_cq_error;
	qp->base.event = qrdma_kernel_qp_event;

	/*
	 * Twice the room: CQEs of before a restart may still be there when the
	 * first ones of after it come.
	 */
	ret = qrdma_ring_alloc(dev, log_entries + 1, QRDMA_CQE_LOG_SIZE,
			       &qp->cq_memory);
	if (ret)
		return ret;
	ret = qrdma_ring_alloc(dev, log_entries, log_stride, &qp->send);
	if (ret)
		goto err_cq_memory;
	ret = qrdma_cq_start(dev, &qp->cq, &dev->eqs[0], &qp->cq_memory.ring,
			     QRDMA_DRIVER_DOORBELL_PAGE);
	if (ret)
		goto err_send;

	context.type = type;
	context.pd = cpu_to_le32(QRDMA_DRIVER_PD);
	context.send_cqn = cpu_to_le32(qp->cq.cqn);
	context.receive_cqn = cpu_to_le32(qp->cq.cqn);
	context.doorbell_page = cpu_to_le32(QRDMA_DRIVER_DOORBELL_PAGE);
	context.send_ring = qp->send.ring;
	ret = qrdma_qp_start(dev, &qp->base, &context);
	if (ret)
		goto err_cq;
	return 0;

err_cq:
	qrdma_cq_stop(dev, &qp->cq);
err_send:
	qrdma_ring_free(dev, &qp->send);
err_cq_memory:
	qrdma_ring_free(dev, &qp->cq_memory);
	return ret;
}

void qrdma_kernel_qp_destroy(struct qrdma_kernel_qp *qp)
{
	struct qrdma_dev *dev = qp->dev;

	qrdma_qp_stop(dev, &qp->base);
	qrdma_cq_stop(dev, &qp->cq);
	qrdma_ring_free(dev, &qp->send);
	qrdma_ring_free(dev, &qp->cq_memory);
}

static int qrdma_kernel_qp_state(struct qrdma_kernel_qp *qp, u8 state)
{
	struct qrdma_modify_qp in = {
		.mask = cpu_to_le64(QRDMA_QP_MASK_STATE),
		.context.state = state,
	};

	return qrdma_command(qp->dev, QRDMA_CMD_MODIFY_QP, qp->base.qpn, &in,
			     sizeof(in));
}

int qrdma_kernel_qp_restart(struct qrdma_kernel_qp *qp)
{
	static const u8 states[] = {
		QRDMA_QP_RESET, QRDMA_QP_INIT, QRDMA_QP_RTR, QRDMA_QP_RTS,
	};

	for (int i = 0; i < ARRAY_SIZE(states); i++) {
		int ret = qrdma_kernel_qp_state(qp, states[i]);

		if (ret)
			return ret;
	}
	qp->producer = 0;
	return 0;
}

void *qrdma_kernel_qp_next_wqe(struct qrdma_kernel_qp *qp)
{
	u32 slot = qp->producer & ((1u << qp->log_entries) - 1);
	void *wqe = qp->send.buffer + ((size_t)slot << qp->log_stride);

	memset(wqe, 0, 1u << qp->log_stride);
	return wqe;
}

u32 qrdma_kernel_qp_post(struct qrdma_kernel_qp *qp)
{
	u32 counter = qp->producer++;

	qrdma_doorbell(qp->dev, QRDMA_DOORBELL_SEND, qp->base.qpn, 0,
		       qp->producer);
	return counter;
}

bool qrdma_kernel_qp_poll(struct qrdma_kernel_qp *qp, struct qrdma_cqe *cqe)
{
	u32 log_entries = qp->log_entries + 1;
	u32 slot = qp->cq_consumer & ((1u << log_entries) - 1);
	u8 phase = !((qp->cq_consumer >> log_entries) & 1);
	struct qrdma_cqe *entry = qp->cq_memory.buffer +
				  ((size_t)slot << QRDMA_CQE_LOG_SIZE);

	if (READ_ONCE(entry->phase) != phase)
		return false;
	/* The rest of the entry is read after the phase that makes it valid. */
	dma_rmb();
	*cqe = *entry;
	qp->cq_consumer++;
	qrdma_doorbell(qp->dev, QRDMA_DOORBELL_CQ, qp->cq.cqn,
		       QRDMA_DOORBELL_ARM_NONE, qp->cq_consumer);
	return true;
}

void qrdma_kernel_qp_arm(struct qrdma_kernel_qp *qp)
{
	qrdma_doorbell(qp->dev, QRDMA_DOORBELL_CQ, qp->cq.cqn,
		       QRDMA_DOORBELL_ARM_NEXT, qp->cq_consumer);
}
