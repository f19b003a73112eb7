// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: states and attributes of user queue pairs, in ib_core's words and in
 * the card's.
 */
#include <rdma/ib_cache.h>

#include "qrdma.h"

/* What modify_qp can be asked for. The card has no alternate path. */
#define QRDMA_MODIFY_MASK						\
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_ACCESS_FLAGS |		\
	 IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_AV | IB_QP_PATH_MTU |	\
	 IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |		\
	 IB_QP_RQ_PSN | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER |	\
	 IB_QP_SQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_DEST_QPN)

static const struct {
	u32 ib_mask;
	u64 mask;
} qrdma_qp_masks[] = {
	{ IB_QP_STATE, QRDMA_QP_MASK_STATE },
	{ IB_QP_ACCESS_FLAGS, QRDMA_QP_MASK_FLAGS },
	{ IB_QP_PKEY_INDEX, QRDMA_QP_MASK_PKEY_INDEX },
	{ IB_QP_AV, QRDMA_QP_MASK_PATH },
	{ IB_QP_PATH_MTU, QRDMA_QP_MASK_PATH_MTU },
	{ IB_QP_TIMEOUT, QRDMA_QP_MASK_TIMEOUT },
	{ IB_QP_RETRY_CNT, QRDMA_QP_MASK_RETRY_COUNT },
	{ IB_QP_RNR_RETRY, QRDMA_QP_MASK_RNR_RETRY },
	{ IB_QP_RQ_PSN, QRDMA_QP_MASK_RECEIVE_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC, QRDMA_QP_MASK_MAX_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER, QRDMA_QP_MASK_MIN_RNR_TIMER },
	{ IB_QP_SQ_PSN, QRDMA_QP_MASK_SEND_PSN },
	{ IB_QP_MAX_DEST_RD_ATOMIC, QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC },
	{ IB_QP_DEST_QPN, QRDMA_QP_MASK_REMOTE_QPN },
};

static const u8 qrdma_qp_states[] = {
	[IB_QPS_RESET]	= QRDMA_QP_RESET,
	[IB_QPS_INIT]	= QRDMA_QP_INIT,
	[IB_QPS_RTR]	= QRDMA_QP_RTR,
	[IB_QPS_RTS]	= QRDMA_QP_RTS,
	[IB_QPS_SQD]	= QRDMA_QP_SQD,
	[IB_QPS_ERR]	= QRDMA_QP_ERROR,
};

static u64 qrdma_qp_mask(int ib_mask)
{
	u64 mask = 0;

	for (int i = 0; i < ARRAY_SIZE(qrdma_qp_masks); i++)
		if (ib_mask & qrdma_qp_masks[i].ib_mask)
			mask |= qrdma_qp_masks[i].mask;
	return mask;
}

static u32 qrdma_qp_flags(int access)
{
	u32 flags = 0;

	if (access & IB_ACCESS_REMOTE_READ)
		flags |= QRDMA_QP_REMOTE_READ;
	if (access & IB_ACCESS_REMOTE_WRITE)
		flags |= QRDMA_QP_REMOTE_WRITE;
	if (access & IB_ACCESS_REMOTE_ATOMIC)
		flags |= QRDMA_QP_REMOTE_ATOMIC;
	return flags;
}

static int qrdma_qp_access(u32 flags)
{
	int access = 0;

	if (flags & QRDMA_QP_REMOTE_READ)
		access |= IB_ACCESS_REMOTE_READ;
	if (flags & QRDMA_QP_REMOTE_WRITE)
		access |= IB_ACCESS_REMOTE_WRITE;
	if (flags & QRDMA_QP_REMOTE_ATOMIC)
		access |= IB_ACCESS_REMOTE_ATOMIC;
	return access;
}

/* ---------------------------------------------------------------- modify */

static int qrdma_check_qp_ranges(struct qrdma_dev *dev,
				 const struct ib_qp_attr *attr, int mask)
{
	const struct {
		int mask;
		u64 value;
		u64 max;
		const char *name;
	} checks[] = {
		{ IB_QP_PATH_MTU, attr->path_mtu, dev->limits.path_mtu, "path_mtu" },
		{ IB_QP_TIMEOUT, attr->timeout, 31, "timeout" },
		{ IB_QP_RETRY_CNT, attr->retry_cnt, 7, "retry_cnt" },
		{ IB_QP_RNR_RETRY, attr->rnr_retry, 7, "rnr_retry" },
		{ IB_QP_MIN_RNR_TIMER, attr->min_rnr_timer, 31, "min_rnr_timer" },
		{ IB_QP_MAX_QP_RD_ATOMIC, attr->max_rd_atomic,
		  dev->limits.max_rd_atomic, "max_rd_atomic" },
		{ IB_QP_MAX_DEST_RD_ATOMIC, attr->max_dest_rd_atomic,
		  dev->limits.max_rd_atomic, "max_dest_rd_atomic" },
		{ IB_QP_PKEY_INDEX, attr->pkey_index, 0, "pkey_index" },
		{ IB_QP_DEST_QPN, attr->dest_qp_num, 0xffffff, "dest_qp_num" },
		{ IB_QP_SQ_PSN, attr->sq_psn, 0xffffff, "sq_psn" },
		{ IB_QP_RQ_PSN, attr->rq_psn, 0xffffff, "rq_psn" },
	};

	for (int i = 0; i < ARRAY_SIZE(checks); i++) {
		if (!(mask & checks[i].mask) ||
		    checks[i].value <= checks[i].max)
			continue;
		ibdev_dbg(&dev->ibdev, "QP attribute %s is %llu, at most %llu\n",
			  checks[i].name, checks[i].value, checks[i].max);
		return -EINVAL;
	}
	if (mask & IB_QP_PATH_MTU && attr->path_mtu < IB_MTU_256)
		return -EINVAL;
	if (mask & IB_QP_PORT && attr->port_num != QRDMA_PORT) {
		ibdev_dbg(&dev->ibdev, "there is no port %u\n", attr->port_num);
		return -EINVAL;
	}
	if (mask & IB_QP_AV &&
	    (!(rdma_ah_get_ah_flags(&attr->ah_attr) & IB_AH_GRH) ||
	     attr->ah_attr.type != RDMA_AH_ATTR_TYPE_ROCE)) {
		ibdev_dbg(&dev->ibdev, "address without a GRH\n");
		return -EINVAL;
	}
	return 0;
}

static void qrdma_fill_path(struct qrdma_qpc *context,
			    const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	memcpy(context->dgid, grh->dgid.raw, sizeof(context->dgid));
	ether_addr_copy(context->dmac, ah->roce.dmac);
	context->sgid_index = grh->sgid_index;
	context->traffic_class = grh->traffic_class;
	context->hop_limit = grh->hop_limit;
	context->flow_label = cpu_to_le32(grh->flow_label & 0xfffff);
}

static void qrdma_fill_modify(struct qrdma_modify_qp *in,
			      const struct ib_qp_attr *attr, int mask)
{
	struct qrdma_qpc *context = &in->context;

	/* Only what the mask names; the rest stays zero. */
	in->mask = cpu_to_le64(qrdma_qp_mask(mask));
	if (mask & IB_QP_STATE)
		context->state = qrdma_qp_states[attr->qp_state];
	if (mask & IB_QP_ACCESS_FLAGS)
		context->flags = cpu_to_le32(qrdma_qp_flags(attr->qp_access_flags));
	if (mask & IB_QP_PKEY_INDEX)
		context->pkey_index = cpu_to_le16(attr->pkey_index);
	if (mask & IB_QP_AV)
		qrdma_fill_path(context, &attr->ah_attr);
	if (mask & IB_QP_PATH_MTU)
		context->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		context->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		context->retry_count = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		context->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_RQ_PSN)
		context->receive_psn = cpu_to_le32(attr->rq_psn);
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		context->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		context->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_SQ_PSN)
		context->send_psn = cpu_to_le32(attr->sq_psn);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		context->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_DEST_QPN)
		context->remote_qpn = cpu_to_le32(attr->dest_qp_num);
}

/*
 * Under qp->lock. The card may have taken the queue pair to the error state by
 * itself; then its own check of the transition is the one that counts.
 */
static int qrdma_modify_qp_locked(struct qrdma_dev *dev, struct qrdma_qp *qp,
				  const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state :
							 qp->state;
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	struct qrdma_modify_qp in = {};
	int ret;

	if (!ib_modify_qp_is_ok(from, to, IB_QPT_RC, mask)) {
		ibdev_dbg(&dev->ibdev,
			  "QP 0x%x: no transition %u -> %u with mask 0x%x\n",
			  qp->base.qpn, from, to, mask);
		return -EINVAL;
	}
	ret = qrdma_check_qp_ranges(dev, attr, mask);
	if (ret)
		return ret;
	qrdma_fill_modify(&in, attr, mask);
	if (!in.mask)
		return 0;
	ret = qrdma_command(dev, QRDMA_CMD_MODIFY_QP, qp->base.qpn, &in,
			    sizeof(in));
	if (!ret)
		qp->state = to;
	return ret;
}

int qrdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibqp->device);
	struct qrdma_qp *qp = to_qqp(ibqp);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	if (mask & ~QRDMA_MODIFY_MASK) {
		ibdev_dbg(&dev->ibdev, "QP attributes 0x%x are not supported\n",
			  mask & ~QRDMA_MODIFY_MASK);
		return -EOPNOTSUPP;
	}
	mutex_lock(&qp->lock);
	ret = qrdma_modify_qp_locked(dev, qp, attr, mask);
	mutex_unlock(&qp->lock);
	return ret;
}

/* ----------------------------------------------------------------- query */

static enum ib_qp_state qrdma_qp_state_from_card(u8 state)
{
	for (int i = 0; i < ARRAY_SIZE(qrdma_qp_states); i++)
		if (qrdma_qp_states[i] == state)
			return i;
	return IB_QPS_ERR;
}

static void qrdma_fill_ah(struct rdma_ah_attr *ah,
			  const struct qrdma_qpc *context)
{
	union ib_gid dgid;

	memcpy(dgid.raw, context->dgid, sizeof(dgid.raw));
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, QRDMA_PORT);
	rdma_ah_set_grh(ah, &dgid, le32_to_cpu(context->flow_label),
			context->sgid_index, context->hop_limit,
			context->traffic_class);
	ether_addr_copy(ah->roce.dmac, context->dmac);
}

static void qrdma_fill_qp_attr(struct ib_qp_attr *attr,
			       const struct qrdma_qpc *context)
{
	attr->qp_state = qrdma_qp_state_from_card(context->state);
	attr->cur_qp_state = attr->qp_state;
	attr->path_mtu = context->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->rq_psn = le32_to_cpu(context->receive_psn);
	attr->sq_psn = le32_to_cpu(context->send_psn);
	attr->dest_qp_num = le32_to_cpu(context->remote_qpn);
	attr->qp_access_flags = qrdma_qp_access(le32_to_cpu(context->flags));
	attr->pkey_index = le16_to_cpu(context->pkey_index);
	attr->port_num = QRDMA_PORT;
	attr->max_rd_atomic = context->max_rd_atomic;
	attr->max_dest_rd_atomic = context->max_dest_rd_atomic;
	attr->min_rnr_timer = context->min_rnr_timer;
	attr->timeout = context->timeout;
	attr->retry_cnt = context->retry_count;
	attr->rnr_retry = context->rnr_retry;
	qrdma_fill_ah(&attr->ah_attr, context);
}

int qrdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init_attr)
{
	struct qrdma_dev *dev = to_qdev(ibqp->device);
	struct qrdma_qp *qp = to_qqp(ibqp);
	struct qrdma_qpc context;
	int ret;

	mutex_lock(&qp->lock);
	ret = qrdma_command_query(dev, QRDMA_CMD_QUERY_QP, qp->base.qpn,
				  &context, sizeof(context));
	if (!ret)
		qp->state = qrdma_qp_state_from_card(context.state);
	mutex_unlock(&qp->lock);
	if (ret)
		return ret;

	memset(attr, 0, sizeof(*attr));
	qrdma_fill_qp_attr(attr, &context);
	attr->cap = qp->cap;

	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->cap = qp->cap;
	init_attr->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR :
						  IB_SIGNAL_REQ_WR;
	return 0;
}
