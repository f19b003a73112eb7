// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the card's GID table follows the one of ib_core.
 */
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "qrdma.h"

#define QRDMA_GID_TYPE_ROCE_V2	1
#define QRDMA_GID_NO_VLAN	0xffff

int qrdma_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qrdma_gid in = { .type = QRDMA_GID_TYPE_ROCE_V2 };
	u16 vlan = QRDMA_GID_NO_VLAN;
	int ret;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	ret = rdma_read_gid_l2_fields(attr, &vlan, in.mac);
	if (ret)
		return ret;
	memcpy(in.gid, attr->gid.raw, sizeof(in.gid));
	in.vlan = cpu_to_le16(vlan);
	return qrdma_command(to_qdev(attr->device), QRDMA_CMD_SET_GID,
			     attr->index, &in, sizeof(in));
}

int qrdma_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qrdma_dev *dev = to_qdev(attr->device);
	struct qrdma_gid in = {};
	int ret;

	ret = qrdma_command(dev, QRDMA_CMD_SET_GID, attr->index, &in,
			    sizeof(in));
	/* A dead card has no GIDs. */
	return qrdma_device_dead(dev) ? 0 : ret;
}
