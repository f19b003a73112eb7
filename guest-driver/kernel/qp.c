// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: reliable-connected queue pairs of users. Numbers live as those of CQs
 * do, see cq.c.
 */
#include <rdma/ib_cache.h>

#include "qrdma.h"

int qrdma_qp_start(struct qrdma_dev *dev, struct qrdma_qp_base *qp,
		   const struct qrdma_qpc *context)
{
	int ret;

	ret = xa_alloc_cyclic_irq(&dev->qps, &qp->qpn, NULL,
				  XA_LIMIT(QRDMA_FIRST_QPN,
					   dev->limits.max_qps - 1),
				  &dev->next_qpn, GFP_KERNEL);
	if (ret < 0)
		return ret;
	ret = qrdma_create_object(dev, QRDMA_CMD_CREATE_QP, QRDMA_CMD_DESTROY_QP,
				  qp->qpn, context, sizeof(*context));
	if (ret) {
		xa_erase_irq(&dev->qps, qp->qpn);
		return ret;
	}
	/* The slot is there already: nothing is allocated, nothing can fail. */
	xa_store_irq(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	return 0;
}

void qrdma_qp_stop(struct qrdma_dev *dev, struct qrdma_qp_base *qp)
{
	/* What has happened to the queue pair by now, its owner is to hear of. */
	qrdma_eq_drain(&dev->async_eq);
	xa_cmpxchg_irq(&dev->qps, qp->qpn, qp, XA_ZERO_ENTRY, GFP_KERNEL);
	qrdma_destroy_object(dev, QRDMA_CMD_DESTROY_QP, qp->qpn);
	qrdma_eq_drain(&dev->async_eq);
	xa_erase_irq(&dev->qps, qp->qpn);
}

static enum ib_event_type qrdma_qp_event_type(const struct qrdma_eqe *eqe)
{
	switch (eqe->type) {
	case QRDMA_EVENT_QP_ACCESS_ERROR:
		return IB_EVENT_QP_ACCESS_ERR;
	case QRDMA_EVENT_COMMUNICATION:
		return IB_EVENT_COMM_EST;
	default:
		return le16_to_cpu(eqe->syndrome) ==
		       QRDMA_QUEUE_ERROR_REQUEST ? IB_EVENT_QP_REQ_ERR :
						   IB_EVENT_QP_FATAL;
	}
}

static void qrdma_user_qp_event(struct qrdma_qp_base *base,
				const struct qrdma_eqe *eqe)
{
	struct qrdma_qp *qp = container_of(base, struct qrdma_qp, base);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.event = qrdma_qp_event_type(eqe),
		.element.qp = &qp->ibqp,
	};

	if (eqe->type == QRDMA_EVENT_QP_ERROR)
		ibdev_warn_ratelimited(event.device, "QP 0x%x in error: %s\n",
				       base->qpn,
				       qrdma_queue_error_name(le16_to_cpu(eqe->syndrome)));
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

/* ---------------------------------------------------------------- create */

static bool qrdma_has_receive_queue(const struct qrdma_create_qp_request *request)
{
	return request->receive_address || request->receive_length ||
	       request->receive_log_entries || request->receive_log_stride;
}

static int qrdma_check_qp_type(struct qrdma_dev *dev,
			       const struct ib_qp_init_attr *attr)
{
	if (attr->qp_type != IB_QPT_RC) {
		ibdev_dbg(&dev->ibdev, "QP type %u is not supported\n",
			  attr->qp_type);
		return -EOPNOTSUPP;
	}
	if (attr->create_flags || attr->srq || attr->rwq_ind_tbl) {
		ibdev_dbg(&dev->ibdev,
			  "QP flags 0x%x, SRQ or indirection are not supported\n",
			  attr->create_flags);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int qrdma_check_send_queue(struct qrdma_dev *dev,
				  const struct ib_qp_cap *cap,
				  const struct qrdma_create_qp_request *request)
{
	u32 stride = request->send_log_stride;
	u32 room;
	int ret;

	if (stride < QRDMA_SEND_WQE_LOG_MIN ||
	    stride > dev->limits.log_max_send_stride) {
		ibdev_dbg(&dev->ibdev, "send stride 2^%u, must be 2^%u..2^%u\n",
			  stride, QRDMA_SEND_WQE_LOG_MIN,
			  dev->limits.log_max_send_stride);
		return -EINVAL;
	}
	ret = qrdma_ring_check_user(dev, request->send_address,
				    request->send_length,
				    request->send_log_entries, stride);
	if (ret)
		return ret;
	room = (1u << stride) - QRDMA_SEND_WQE_HEADER;
	if (cap->max_send_wr > 1u << request->send_log_entries ||
	    cap->max_send_sge > dev->limits.max_sge ||
	    cap->max_send_sge > room / sizeof(struct qrdma_sge) ||
	    cap->max_inline_data > dev->limits.max_inline ||
	    cap->max_inline_data > room) {
		ibdev_dbg(&dev->ibdev,
			  "%u send WQEs of %u segments and %u bytes inline do not fit the ring\n",
			  cap->max_send_wr, cap->max_send_sge,
			  cap->max_inline_data);
		return -EINVAL;
	}
	return 0;
}

static int qrdma_check_receive_queue(struct qrdma_dev *dev,
				     const struct ib_qp_cap *cap,
				     const struct qrdma_create_qp_request *request)
{
	u32 stride = request->receive_log_stride;
	u32 room;
	int ret;

	if (!qrdma_has_receive_queue(request)) {
		if (!cap->max_recv_wr)
			return 0;
		ibdev_dbg(&dev->ibdev, "%u receive WQEs but no receive ring\n",
			  cap->max_recv_wr);
		return -EINVAL;
	}
	if (stride < QRDMA_RECEIVE_WQE_LOG_MIN ||
	    stride > dev->limits.log_max_receive_stride) {
		ibdev_dbg(&dev->ibdev,
			  "receive stride 2^%u, must be 2^%u..2^%u\n", stride,
			  QRDMA_RECEIVE_WQE_LOG_MIN,
			  dev->limits.log_max_receive_stride);
		return -EINVAL;
	}
	ret = qrdma_ring_check_user(dev, request->receive_address,
				    request->receive_length,
				    request->receive_log_entries, stride);
	if (ret)
		return ret;
	room = (1u << stride) - QRDMA_RECEIVE_WQE_HEADER;
	if (cap->max_recv_wr > 1u << request->receive_log_entries ||
	    cap->max_recv_sge > dev->limits.max_sge ||
	    cap->max_recv_sge > room / sizeof(struct qrdma_sge)) {
		ibdev_dbg(&dev->ibdev,
			  "%u receive WQEs of %u segments do not fit the ring\n",
			  cap->max_recv_wr, cap->max_recv_sge);
		return -EINVAL;
	}
	return 0;
}

/* What the rings can do is what the user gets. */
static void qrdma_qp_grant_cap(struct qrdma_dev *dev, struct ib_qp_cap *cap,
			       const struct qrdma_create_qp_request *request)
{
	u32 room = (1u << request->send_log_stride) - QRDMA_SEND_WQE_HEADER;

	cap->max_send_wr = 1u << request->send_log_entries;
	cap->max_send_sge = min_t(u32, room / sizeof(struct qrdma_sge),
				  dev->limits.max_sge);
	cap->max_inline_data = min(room, dev->limits.max_inline);
	if (!qrdma_has_receive_queue(request)) {
		cap->max_recv_sge = 0;
		return;
	}
	room = (1u << request->receive_log_stride) - QRDMA_RECEIVE_WQE_HEADER;
	cap->max_recv_wr = 1u << request->receive_log_entries;
	cap->max_recv_sge = min_t(u32, room / sizeof(struct qrdma_sge),
				  dev->limits.max_sge);
}

static int qrdma_pin_qp_rings(struct qrdma_dev *dev, struct qrdma_qp *qp,
			      const struct qrdma_create_qp_request *request)
{
	int ret;

	ret = qrdma_ring_from_user(dev, request->send_address,
				   request->send_length,
				   request->send_log_entries,
				   request->send_log_stride, &qp->send);
	if (ret || !qrdma_has_receive_queue(request))
		return ret;
	ret = qrdma_ring_from_user(dev, request->receive_address,
				   request->receive_length,
				   request->receive_log_entries,
				   request->receive_log_stride, &qp->receive);
	if (ret)
		qrdma_ring_free(dev, &qp->send);
	return ret;
}

static int qrdma_start_user_qp(struct qrdma_dev *dev, struct qrdma_qp *qp,
			       const struct ib_qp_init_attr *attr,
			       u32 doorbell_page)
{
	struct qrdma_qpc context = {
		.type = QRDMA_QP_RC,
		.pd = cpu_to_le32(to_qpd(qp->ibqp.pd)->pdn),
		.send_cqn = cpu_to_le32(to_qcq(attr->send_cq)->base.cqn),
		.receive_cqn = cpu_to_le32(to_qcq(attr->recv_cq)->base.cqn),
		.doorbell_page = cpu_to_le32(doorbell_page),
		.send_ring = qp->send.ring,
		.receive_ring = qp->receive.ring,
	};

	qp->base.event = qrdma_user_qp_event;
	return qrdma_qp_start(dev, &qp->base, &context);
}

int qrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		    struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibqp->device);
	struct qrdma_create_qp_response response = {};
	struct qrdma_create_qp_request request;
	struct qrdma_qp *qp = to_qqp(ibqp);
	struct qrdma_ucontext *context;
	int ret;

	if (!udata)
		return -EOPNOTSUPP;
	context = rdma_udata_to_drv_context(udata, struct qrdma_ucontext,
					    ibucontext);
	ret = qrdma_check_qp_type(dev, attr);
	if (ret)
		return ret;
	ret = ib_copy_validate_udata_in(udata, request, reserved);
	if (ret)
		return ret;
	if (request.reserved)
		return -EINVAL;
	ret = qrdma_check_send_queue(dev, &attr->cap, &request);
	if (ret)
		return ret;
	ret = qrdma_check_receive_queue(dev, &attr->cap, &request);
	if (ret)
		return ret;

	ret = qrdma_pin_qp_rings(dev, qp, &request);
	if (ret)
		return ret;
	mutex_init(&qp->lock);
	qp->state = IB_QPS_RESET;
	ret = qrdma_start_user_qp(dev, qp, attr, context->doorbell_page);
	if (ret)
		goto err_rings;

	ibqp->qp_num = qp->base.qpn;
	response.qpn = qp->base.qpn;
	ret = ib_respond_udata(udata, response);
	if (ret)
		goto err_qp;
	qrdma_qp_grant_cap(dev, &attr->cap, &request);
	qp->cap = attr->cap;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	return 0;

err_qp:
	qrdma_qp_stop(dev, &qp->base);
err_rings:
	qrdma_ring_free(dev, &qp->receive);
	qrdma_ring_free(dev, &qp->send);
	return ret;
}

int qrdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibqp->device);
	struct qrdma_qp *qp = to_qqp(ibqp);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	qrdma_qp_stop(dev, &qp->base);
	qrdma_ring_free(dev, &qp->receive);
	qrdma_ring_free(dev, &qp->send);
	mutex_destroy(&qp->lock);
	return 0;
}
