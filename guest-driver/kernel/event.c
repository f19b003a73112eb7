// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: what the card reports on its own, and to whom it goes.
 *
 * An event names an object by number. The number's owner is found in the
 * device's table; an event that finds nobody is stale (its object is being
 * destroyed) and goes no further.
 */
#include "qrdma.h"
#include "trace.h"

static const char * const qrdma_access_error_names[] = {
	[QRDMA_ACCESS_OK]		= "none",
	[QRDMA_ACCESS_NO_KEY]		= "no such key",
	[QRDMA_ACCESS_VARIANT]		= "wrong key variant",
	[QRDMA_ACCESS_FREE]		= "key is free or revoked",
	[QRDMA_ACCESS_PD]		= "wrong protection domain",
	[QRDMA_ACCESS_QP]		= "key is bound to another QP",
	[QRDMA_ACCESS_RIGHTS]		= "no such right",
	[QRDMA_ACCESS_RANGE]		= "out of range",
	[QRDMA_ACCESS_NOT_PRESENT]	= "page not present",
	[QRDMA_ACCESS_BAD_ENTRY]	= "bad translation entry",
	[QRDMA_ACCESS_HMC]		= "PBLE space not usable",
	[QRDMA_ACCESS_DMA]		= "bus error",
	[QRDMA_ACCESS_UNRESOLVED]	= "page fault not resolved",
	[QRDMA_ACCESS_MISALIGNED]	= "misaligned atomic",
};

static const char * const qrdma_queue_error_names[] = {
	[QRDMA_QUEUE_ERROR_OVERRUN]	= "overrun",
	[QRDMA_QUEUE_ERROR_DMA]		= "ring memory not usable",
	[QRDMA_QUEUE_ERROR_PRODUCER]	= "producer outside the ring",
	[QRDMA_QUEUE_ERROR_CONSUMER]	= "consumer outside the ring",
	[QRDMA_QUEUE_ERROR_CQ]		= "CQ in error",
	[QRDMA_QUEUE_ERROR_REQUEST]	= "invalid request",
};

const char *qrdma_access_error_name(u16 syndrome)
{
	return syndrome < ARRAY_SIZE(qrdma_access_error_names) ?
	       qrdma_access_error_names[syndrome] : "unknown";
}

const char *qrdma_queue_error_name(u16 syndrome)
{
	if (syndrome >= ARRAY_SIZE(qrdma_queue_error_names) ||
	    !qrdma_queue_error_names[syndrome])
		return "unknown";
	return qrdma_queue_error_names[syndrome];
}

void qrdma_handle_completion_event(struct qrdma_dev *dev,
				   const struct qrdma_eqe *eqe)
{
	struct qrdma_cq_base *cq;

	if (eqe->type != QRDMA_EVENT_COMPLETION) {
		dev_warn_ratelimited(&dev->pdev->dev,
				     "event of type %u in a completion queue\n",
				     eqe->type);
		return;
	}
	/* cq_stop() drains this queue before the CQ's memory goes. */
	cq = xa_load(&dev->cqs, le32_to_cpu(eqe->number));
	if (cq && cq->complete)
		cq->complete(cq);
}

static void qrdma_handle_cq_error(struct qrdma_dev *dev,
				  const struct qrdma_eqe *eqe)
{
	u16 syndrome = le16_to_cpu(eqe->syndrome);
	u32 cqn = le32_to_cpu(eqe->number);
	struct qrdma_cq_base *cq = xa_load(&dev->cqs, cqn);

	if (!cq)
		return;
	dev_warn_ratelimited(&dev->pdev->dev, "CQ 0x%x in error: %s\n", cqn,
			     qrdma_queue_error_name(syndrome));
	if (cq->error)
		cq->error(cq, syndrome);
}

static void qrdma_report_access_error(struct qrdma_dev *dev,
				      const struct qrdma_eqe *eqe)
{
	trace_qrdma_access_error(dev, eqe);
	ibdev_warn_ratelimited(&dev->ibdev,
			       "QP 0x%x: %s %s of key 0x%08x address 0x%llx length %u refused: %s\n",
			       le32_to_cpu(eqe->number),
			       eqe->flags & QRDMA_EVENT_FLAG_REMOTE ?
			       "remote" : "local",
			       eqe->flags & QRDMA_EVENT_FLAG_WRITE ?
			       "write" : "read",
			       le32_to_cpu(eqe->key),
			       le64_to_cpu(eqe->address),
			       le32_to_cpu(eqe->length),
			       qrdma_access_error_name(le16_to_cpu(eqe->syndrome)));
}

static void qrdma_handle_qp_event(struct qrdma_dev *dev,
				  const struct qrdma_eqe *eqe)
{
	struct qrdma_qp_base *qp = xa_load(&dev->qps,
					   le32_to_cpu(eqe->number));

	if (qp && qp->event)
		qp->event(qp, eqe);
}

void qrdma_handle_async_event(struct qrdma_dev *dev,
			      const struct qrdma_eqe *eqe)
{
	switch (eqe->type) {
	case QRDMA_EVENT_CQ_ERROR:
		qrdma_handle_cq_error(dev, eqe);
		break;
	case QRDMA_EVENT_QP_ACCESS_ERROR:
		qrdma_report_access_error(dev, eqe);
		qrdma_handle_qp_event(dev, eqe);
		break;
	case QRDMA_EVENT_QP_ERROR:
	case QRDMA_EVENT_COMMUNICATION:
		qrdma_handle_qp_event(dev, eqe);
		break;
	case QRDMA_EVENT_PAGE_FAULT:
		trace_qrdma_page_fault(dev, eqe);
		qrdma_page_fault(dev, eqe);
		break;
	default:
		dev_warn_ratelimited(&dev->pdev->dev,
				     "unknown asynchronous event %u\n",
				     eqe->type);
	}
}
