// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the card's Ethernet port. It is there so that the port has addresses:
 * GIDs and RoCEv2 addressing follow a network device. The wire leads nowhere: a
 * frame to the port's own address comes back, all others are lost.
 */
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>

#include "qrdma.h"

/* Room for the largest path MTU, 4096, with RoCEv2's headers around it. */
#define QRDMA_NETDEV_MTU	4200
#define QRDMA_NETDEV_MAX_MTU	9000
#define QRDMA_NETDEV_SPEED	SPEED_100000

static int qrdma_netdev_open(struct net_device *netdev)
{
	netif_carrier_on(netdev);
	netif_start_queue(netdev);
	return 0;
}

static int qrdma_netdev_stop(struct net_device *netdev)
{
	netif_stop_queue(netdev);
	netif_carrier_off(netdev);
	return 0;
}

static netdev_tx_t qrdma_netdev_xmit(struct sk_buff *skb,
				     struct net_device *netdev)
{
	unsigned int length = skb->len;

	skb_tx_timestamp(skb);
	dev_sw_netstats_tx_add(netdev, 1, length);
	/*
	 * Multicast does not come back: the stack would take its own neighbour
	 * discovery for a neighbour with the same address.
	 */
	if (!ether_addr_equal(eth_hdr(skb)->h_dest, netdev->dev_addr)) {
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}

	skb_orphan(skb);
	skb_dst_drop(skb);
	skb->protocol = eth_type_trans(skb, netdev);
	if (netif_rx(skb) == NET_RX_SUCCESS)
		dev_sw_netstats_rx_add(netdev, length);
	else
		dev_core_stats_rx_dropped_inc(netdev);
	return NETDEV_TX_OK;
}

static const struct net_device_ops qrdma_netdev_ops = {
	.ndo_open = qrdma_netdev_open,
	.ndo_stop = qrdma_netdev_stop,
	.ndo_start_xmit = qrdma_netdev_xmit,
	.ndo_validate_addr = eth_validate_addr,
};

static int qrdma_netdev_link(struct net_device *netdev,
			     struct ethtool_link_ksettings *settings)
{
	settings->base.speed = QRDMA_NETDEV_SPEED;
	settings->base.duplex = DUPLEX_FULL;
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	return 0;
}

static const struct ethtool_ops qrdma_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = qrdma_netdev_link,
};

/* dev->mac is known. */
int qrdma_netdev_create(struct qrdma_dev *dev)
{
	struct net_device *netdev;
	int ret;

	netdev = alloc_etherdev(0);
	if (!netdev)
		return -ENOMEM;

	SET_NETDEV_DEV(netdev, &dev->pdev->dev);
	netdev->netdev_ops = &qrdma_netdev_ops;
	netdev->ethtool_ops = &qrdma_ethtool_ops;
	netdev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	netdev->mtu = QRDMA_NETDEV_MTU;
	netdev->max_mtu = QRDMA_NETDEV_MAX_MTU;
	eth_hw_addr_set(netdev, dev->mac);
	/*
	 * No neighbours: nobody to resolve, and no duplicate address to detect.
	 * Addresses, and the GIDs that follow them, work at once.
	 */
	netdev->flags |= IFF_NOARP;
	netif_carrier_off(netdev);

	ret = register_netdev(netdev);
	if (ret) {
		dev_err(&dev->pdev->dev,
			"cannot register the network device: %d\n", ret);
		free_netdev(netdev);
		return ret;
	}
	dev->netdev = netdev;
	return 0;
}

void qrdma_netdev_destroy(struct qrdma_dev *dev)
{
	unregister_netdev(dev->netdev);
	free_netdev(dev->netdev);
	dev->netdev = NULL;
}
