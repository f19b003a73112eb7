// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: completion queues.
 *
 * A CQ number goes through four states: free; taken but empty (an object is
 * being made or destroyed, events find nobody); published; and taken but empty
 * again until the event queues are drained. Only then can it be given out
 * again, so that no event of an old CQ reaches a new one.
 */
#include "qrdma.h"

static int qrdma_cqn_reserve(struct qrdma_dev *dev, u32 *cqn)
{
	/* Cyclic: a number that was just freed is the last to come back. */
	int ret = xa_alloc_cyclic_irq(&dev->cqs, cqn, NULL,
				      XA_LIMIT(0, dev->limits.max_cqs - 1),
				      &dev->next_cqn, GFP_KERNEL);

	return ret < 0 ? ret : 0;
}

int qrdma_cq_start(struct qrdma_dev *dev, struct qrdma_cq_base *cq,
		   struct qrdma_eq *eq, const struct qrdma_ring *ring,
		   u32 doorbell_page)
{
	struct qrdma_cqc context = {
		.ring = *ring,
		.eqn = cpu_to_le32(eq->number),
		.doorbell_page = cpu_to_le32(doorbell_page),
	};
	int ret;

	ret = qrdma_cqn_reserve(dev, &cq->cqn);
	if (ret)
		return ret;
	ret = qrdma_create_object(dev, QRDMA_CMD_CREATE_CQ, QRDMA_CMD_DESTROY_CQ,
				  cq->cqn, &context, sizeof(context));
	if (ret) {
		xa_erase_irq(&dev->cqs, cq->cqn);
		return ret;
	}
	cq->eq = eq;
	/* The slot is there already: nothing is allocated, nothing can fail. */
	xa_store_irq(&dev->cqs, cq->cqn, cq, GFP_KERNEL);
	return 0;
}

void qrdma_cq_stop(struct qrdma_dev *dev, struct qrdma_cq_base *cq)
{
	xa_cmpxchg_irq(&dev->cqs, cq->cqn, cq, XA_ZERO_ENTRY, GFP_KERNEL);
	qrdma_destroy_object(dev, QRDMA_CMD_DESTROY_CQ, cq->cqn);
	qrdma_eq_drain(cq->eq);
	qrdma_eq_drain(&dev->async_eq);
	xa_erase_irq(&dev->cqs, cq->cqn);
}

static void qrdma_user_cq_complete(struct qrdma_cq_base *base)
{
	struct ib_cq *ibcq = &container_of(base, struct qrdma_cq, base)->ibcq;

	if (ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

static void qrdma_user_cq_error(struct qrdma_cq_base *base, u16 syndrome)
{
	struct ib_cq *ibcq = &container_of(base, struct qrdma_cq, base)->ibcq;
	struct ib_event event = {
		.device = ibcq->device,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = ibcq,
	};

	if (ibcq->event_handler)
		ibcq->event_handler(&event, ibcq->cq_context);
}

static int qrdma_check_cq_request(struct qrdma_dev *dev,
				  const struct ib_cq_init_attr *attr,
				  const struct qrdma_create_cq_request *request)
{
	int ret;

	if (attr->flags) {
		ibdev_dbg(&dev->ibdev, "CQ flags 0x%x are not supported\n",
			  attr->flags);
		return -EOPNOTSUPP;
	}
	if (request->reserved) {
		ibdev_dbg(&dev->ibdev, "malformed CQ request\n");
		return -EINVAL;
	}
	ret = qrdma_ring_check_user(dev, request->ring_address,
				    request->ring_length, request->log_entries,
				    QRDMA_CQE_LOG_SIZE);
	if (ret)
		return ret;
	if (!attr->cqe || attr->cqe > 1u << request->log_entries) {
		ibdev_dbg(&dev->ibdev,
			  "CQ of %u entries asked for, ring has 2^%u\n",
			  attr->cqe, request->log_entries);
		return -EINVAL;
	}
	return 0;
}

int qrdma_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = &attrs->driver_udata;
	struct qrdma_ucontext *context =
		rdma_udata_to_drv_context(udata, struct qrdma_ucontext,
					  ibucontext);
	struct qrdma_dev *dev = to_qdev(ibcq->device);
	struct qrdma_create_cq_response response = {};
	struct qrdma_create_cq_request request;
	struct qrdma_cq *cq = to_qcq(ibcq);
	struct ib_umem *umem;
	int ret;

	ret = ib_copy_validate_udata_in(udata, request, reserved);
	if (ret)
		return ret;
	ret = qrdma_check_cq_request(dev, attr, &request);
	if (ret)
		return ret;

	umem = ib_umem_get_cq_buf_or_va(ibcq->device, attrs,
					request.ring_address,
					request.ring_length,
					IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ret = qrdma_ring_from_umem(dev, umem, request.log_entries,
				   QRDMA_CQE_LOG_SIZE, &cq->memory);
	if (ret) {
		ib_umem_release(umem);
		return ret;
	}

	cq->base.complete = qrdma_user_cq_complete;
	cq->base.error = qrdma_user_cq_error;
	ret = qrdma_cq_start(dev, &cq->base,
			     &dev->eqs[attr->comp_vector % dev->num_eqs],
			     &cq->memory.ring, context->doorbell_page);
	if (ret)
		goto err_memory;

	ibcq->cqe = 1 << request.log_entries;
	response.cqn = cq->base.cqn;
	ret = ib_respond_udata(udata, response);
	if (ret)
		goto err_cq;
	return 0;

err_cq:
	qrdma_cq_stop(dev, &cq->base);
err_memory:
	qrdma_ring_free(dev, &cq->memory);
	return ret;
}

int qrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibcq->device);
	struct qrdma_cq *cq = to_qcq(ibcq);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	qrdma_cq_stop(dev, &cq->base);
	qrdma_ring_free(dev, &cq->memory);
	return 0;
}
