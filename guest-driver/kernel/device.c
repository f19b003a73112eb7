// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the card as a whole. Reset, limits, life and death, and the table of
 * what ib_core can ask for.
 */
#include "qrdma.h"

#define QRDMA_HEALTH_INTERVAL	HZ

/* An emulated card on a busy host may take its time; a dead one is noticed sooner. */
static unsigned int answer_timeout = 120000;
module_param(answer_timeout, uint, 0644);
MODULE_PARM_DESC(answer_timeout,
		 "milliseconds for the answer to a command or UMR before the card counts as dead (120000)");

#define QRDMA_REGISTER_GONE	(~0u)	/* what the bus reads where nobody answers */

const struct ib_device_ops qrdma_device_ops = {
	.owner = THIS_MODULE,
	/* Not in the kernel tree, no number of its own: matched by PCI id. */
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = QRDMA_UVERBS_ABI_VERSION,
	.uverbs_robust_udata = 1,

	.add_gid = qrdma_add_gid,
	.alloc_pd = qrdma_alloc_pd,
	.alloc_ucontext = qrdma_alloc_ucontext,
	.create_qp = qrdma_create_qp,
	.create_user_cq = qrdma_create_user_cq,
	.dealloc_pd = qrdma_dealloc_pd,
	.dealloc_ucontext = qrdma_dealloc_ucontext,
	.del_gid = qrdma_del_gid,
	.dereg_mr = qrdma_dereg_mr,
	.destroy_cq = qrdma_destroy_cq,
	.destroy_qp = qrdma_destroy_qp,
	.disassociate_ucontext = qrdma_disassociate_ucontext,
	.fill_res_mr_entry_raw = qrdma_fill_res_mr_entry_raw,
	.get_dev_fw_str = qrdma_get_dev_fw_str,
	.get_dma_mr = qrdma_get_dma_mr,
	.get_link_layer = qrdma_get_link_layer,
	.get_port_immutable = qrdma_get_port_immutable,
	.mmap = qrdma_mmap,
	.mmap_free = qrdma_mmap_free,
	.modify_qp = qrdma_modify_qp,
	.query_device = qrdma_query_device,
	.query_pkey = qrdma_query_pkey,
	.query_port = qrdma_query_port,
	.query_qp = qrdma_query_qp,
	.reg_user_mr = qrdma_reg_user_mr,
	.reg_user_mr_dmabuf = qrdma_reg_user_mr_dmabuf,
	.rereg_user_mr = qrdma_rereg_user_mr,

	INIT_RDMA_OBJ_SIZE(ib_cq, qrdma_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, qrdma_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, qrdma_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, qrdma_ucontext, ibucontext),
};

int qrdma_device_reset(struct qrdma_dev *dev)
{
	struct device *device = &dev->pdev->dev;
	u32 id, version, status;
	u64 mac;

	id = readl(dev->registers + QRDMA_REG_ID);
	if (id != QRDMA_ID) {
		dev_err(device, "not a qrdma card: ID register is 0x%08x\n", id);
		return -ENODEV;
	}
	version = readl(dev->registers + QRDMA_REG_ABI_VERSION);
	if (version >> 16 != QRDMA_ABI_MAJOR) {
		dev_err(device, "card has ABI version %u.%u, driver needs %u.x\n",
			version >> 16, version & 0xffff, QRDMA_ABI_MAJOR);
		return -ENODEV;
	}

	writel(QRDMA_CONTROL_RESET, dev->registers + QRDMA_REG_CONTROL);
	status = readl(dev->registers + QRDMA_REG_STATUS);
	if (status) {
		dev_err(device, "status is 0x%x after a reset\n", status);
		return -EIO;
	}

	mac = readq(dev->registers + QRDMA_REG_MAC);
	/* The first octet is in the lowest bits. */
	for (int i = 0; i < ETH_ALEN; i++)
		dev->mac[i] = mac >> (8 * i);
	if (!is_valid_ether_addr(dev->mac)) {
		dev_err(device, "card has no usable MAC address: %pM\n",
			dev->mac);
		return -EINVAL;
	}
	return 0;
}

static void qrdma_decode_limits(struct qrdma_limits *limits,
				const struct qrdma_device_limits *in)
{
	limits->capabilities = le64_to_cpu(in->capabilities);
	limits->page_size_bitmap = le64_to_cpu(in->page_size_bitmap);
	limits->max_mr_size = le64_to_cpu(in->max_mr_size);
	limits->max_message_size = le64_to_cpu(in->max_message_size);
	limits->max_mkeys = le32_to_cpu(in->max_mkeys);
	limits->max_qps = le32_to_cpu(in->max_qps);
	limits->max_cqs = le32_to_cpu(in->max_cqs);
	limits->max_eqs = le32_to_cpu(in->max_eqs);
	limits->max_sds = le32_to_cpu(in->max_sds);
	limits->max_pds = le32_to_cpu(in->max_pds);
	limits->max_gids = le32_to_cpu(in->max_gids);
	limits->max_vectors = le32_to_cpu(in->max_vectors);
	limits->doorbell_pages = le32_to_cpu(in->doorbell_pages);
	limits->max_sge = le32_to_cpu(in->max_sge);
	limits->max_inline = le32_to_cpu(in->max_inline);
	limits->max_umr_table_write = le32_to_cpu(in->max_umr_table_write);
	limits->log_max_ring_entries = in->log_max_ring_entries;
	limits->log_max_send_stride = in->log_max_send_stride;
	limits->log_max_receive_stride = in->log_max_receive_stride;
	limits->max_rd_atomic = in->max_rd_atomic;
	limits->path_mtu = in->path_mtu;
}

int qrdma_device_query(struct qrdma_dev *dev)
{
	struct qrdma_device_limits in;
	struct qrdma_limit_check bad;
	int ret;

	BUILD_BUG_ON(sizeof(in) > QRDMA_COMMAND_BUFFER);
	ret = qrdma_command_query(dev, QRDMA_CMD_QUERY_DEVICE, 0, &in,
				  sizeof(in));
	if (ret) {
		dev_err(&dev->pdev->dev, "cannot query the card: %d\n", ret);
		return ret;
	}
	qrdma_decode_limits(&dev->limits, &in);
	if (!qrdma_limits_check(&dev->limits, &bad)) {
		dev_err(&dev->pdev->dev,
			"card reports %s %llu, driver needs %llu..%llu\n",
			bad.name, bad.value, bad.min, bad.max);
		return -EINVAL;
	}
	dev->max_ring_entries = 1u << dev->limits.log_max_ring_entries;
	return 0;
}

void qrdma_device_stop(struct qrdma_dev *dev)
{
	struct ib_event event = {
		.device = &dev->ibdev,
		.event = IB_EVENT_DEVICE_FATAL,
		.element.port_num = QRDMA_PORT,
	};

	if (test_and_set_bit(QRDMA_STATE_DEAD, &dev->state))
		return;
	/*
	 * Waiters free memory that the card may still be using, and revocation
	 * promises that there is no access any more. The reset keeps both true.
	 */
	writel(QRDMA_CONTROL_RESET, dev->registers + QRDMA_REG_CONTROL);
	qrdma_command_queue_fail(dev);
	if (test_bit(QRDMA_STATE_UMR, &dev->state))
		qrdma_umr_device_dead(dev);
	if (test_bit(QRDMA_STATE_REGISTERED, &dev->state))
		ib_dispatch_event(&event);
}

void qrdma_device_fail(struct qrdma_dev *dev, const char *reason)
{
	if (!qrdma_device_dead(dev))
		dev_err(&dev->pdev->dev,
			"device is dead: %s (status 0x%x, error %u)\n", reason,
			readl(dev->registers + QRDMA_REG_STATUS),
			readl(dev->registers + QRDMA_REG_ERROR));
	qrdma_device_stop(dev);
}

bool qrdma_device_check(struct qrdma_dev *dev)
{
	u32 status;

	if (qrdma_device_dead(dev))
		return false;
	status = readl(dev->registers + QRDMA_REG_STATUS);
	if (status == QRDMA_REGISTER_GONE) {
		qrdma_device_fail(dev, "gone from the bus");
		return false;
	}
	if (status & QRDMA_CARD_FATAL) {
		qrdma_device_fail(dev, "fatal error");
		return false;
	}
	if (!(status & QRDMA_CARD_READY)) {
		qrdma_device_fail(dev, "reset behind the driver's back");
		return false;
	}
	return true;
}

unsigned long qrdma_answer_timeout(void)
{
	return msecs_to_jiffies(READ_ONCE(answer_timeout));
}

int qrdma_create_object(struct qrdma_dev *dev, u16 create, u16 destroy,
			u32 number, const void *in, size_t in_length)
{
	u16 status;
	int ret;

	ret = qrdma_command_status(dev, create, number, in, in_length, NULL, 0,
				   &status);
	if (status != QRDMA_STATUS_IN_USE)
		return ret;
	dev_err(&dev->pdev->dev,
		"card still has 0x%x of command 0x%02x, which was destroyed\n",
		number, create);
	qrdma_destroy_object(dev, destroy, number);
	return qrdma_command(dev, create, number, in, in_length);
}

void qrdma_destroy_object(struct qrdma_dev *dev, u16 opcode, u32 number)
{
	u16 status;

	if (!qrdma_command_status(dev, opcode, number, NULL, 0, NULL, 0,
				  &status) || qrdma_device_dead(dev))
		return;
	if (status == QRDMA_STATUS_NO_OBJECT) {
		/* It never came to be. What the card does not have, it does not use. */
		dev_err_ratelimited(&dev->pdev->dev,
				    "card knows no 0x%x of destroy command 0x%02x\n",
				    number, opcode);
		return;
	}
	dev_err(&dev->pdev->dev,
		"card refused destroy command 0x%02x of 0x%x: %s\n", opcode,
		number, qrdma_status_name(status));
	qrdma_device_fail(dev, "object cannot be destroyed");
}

/*
 * Someone must look even when nobody waits for a command: users whose queue
 * stopped moving are to hear of it.
 */
static void qrdma_device_health(struct work_struct *work)
{
	struct qrdma_dev *dev = container_of(work, struct qrdma_dev,
					     health.work);
	u32 lost;

	if (!qrdma_device_check(dev))
		return;
	lost = readl(dev->registers + QRDMA_REG_STATUS) &
	       QRDMA_CARD_EVENT_LOST;
	if (lost) {
		writel(lost, dev->registers + QRDMA_REG_STATUS);
		dev_warn_ratelimited(&dev->pdev->dev,
				     "asynchronous events were lost\n");
	}
	schedule_delayed_work(&dev->health, QRDMA_HEALTH_INTERVAL);
}

void qrdma_device_watch(struct qrdma_dev *dev)
{
	INIT_DELAYED_WORK(&dev->health, qrdma_device_health);
	schedule_delayed_work(&dev->health, QRDMA_HEALTH_INTERVAL);
}

void qrdma_device_unwatch(struct qrdma_dev *dev)
{
	cancel_delayed_work_sync(&dev->health);
}
