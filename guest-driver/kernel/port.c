// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: what the device and its port say about themselves.
 */
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "qrdma.h"

#define QRDMA_DEFAULT_PKEY	0xffff

static u64 qrdma_guid(const struct qrdma_dev *dev)
{
	__be64 guid;

	addrconf_addr_eui48((u8 *)&guid, dev->mac);
	return (__force u64)guid;
}

int qrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibdev);
	const struct qrdma_limits *limits = &dev->limits;
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;

	*attr = (struct ib_device_attr) {
		.fw_ver = (u64)QRDMA_ABI_MAJOR << 32 | QRDMA_ABI_MINOR << 16,
		.sys_image_guid = (__force __be64)qrdma_guid(dev),
		.vendor_id = dev->pdev->vendor,
		.vendor_part_id = dev->pdev->device,
		.hw_ver = dev->pdev->revision,
		.max_mr_size = limits->max_mr_size,
		.page_size_cap = limits->page_size_bitmap,
		/* Less the management QPs and the driver's own. */
		.max_qp = limits->max_qps - QRDMA_FIRST_QPN - 1,
		.max_qp_wr = dev->max_ring_entries,
		.max_send_sge = limits->max_sge,
		.max_recv_sge = limits->max_sge,
		.max_sge_rd = limits->max_sge,
		.max_cq = limits->max_cqs - 1,
		.max_cqe = dev->max_ring_entries,
		.max_mr = limits->max_mkeys - 1,
		.max_pd = limits->max_pds - 1,
		.max_qp_rd_atom = limits->max_rd_atomic,
		.max_qp_init_rd_atom = limits->max_rd_atomic,
		.max_res_rd_atom = limits->max_rd_atomic *
				   (limits->max_qps - QRDMA_FIRST_QPN - 1),
		.max_pkeys = 1,
		.device_cap_flags = IB_DEVICE_RC_RNR_NAK_GEN |
				    IB_DEVICE_PORT_ACTIVE_EVENT |
				    IB_DEVICE_SYS_IMAGE_GUID,
		.atomic_cap = limits->capabilities & QRDMA_CAPABILITY_ATOMIC ?
			      IB_ATOMIC_HCA : IB_ATOMIC_NONE,
	};
	return 0;
}

int qrdma_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr)
{
	struct qrdma_dev *dev = to_qdev(ibdev);
	struct net_device *netdev = dev->netdev;
	int ret;

	attr->gid_tbl_len = dev->limits.max_gids;
	attr->pkey_tbl_len = 1;
	attr->ip_gids = true;
	attr->max_msg_sz = dev->limits.max_message_size;
	attr->max_mtu = dev->limits.path_mtu;
	attr->active_mtu = min_t(int, iboe_get_mtu(netdev->mtu),
				 dev->limits.path_mtu);
	attr->state = ib_get_curr_port_state(netdev);
	attr->phys_state = attr->state == IB_PORT_ACTIVE ?
			   IB_PORT_PHYS_STATE_LINK_UP :
			   IB_PORT_PHYS_STATE_DISABLED;
	ret = ib_get_eth_speed(ibdev, port, &attr->active_speed,
			       &attr->active_width);
	return ret;
}

int qrdma_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable)
{
	struct qrdma_dev *dev = to_qdev(ibdev);

	/*
	 * RoCEv2 addressing, but neither MADs nor a connection manager: those
	 * would want QP 1, which takes UD.
	 */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP |
				    RDMA_CORE_CAP_ETH_AH;
	immutable->gid_tbl_len = dev->limits.max_gids;
	immutable->pkey_tbl_len = 1;
	return 0;
}

enum rdma_link_layer qrdma_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

int qrdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = QRDMA_DEFAULT_PKEY;
	return 0;
}

void qrdma_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", QRDMA_ABI_MAJOR,
		 QRDMA_ABI_MINOR);
}
