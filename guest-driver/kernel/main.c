// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the PCI function comes and goes.
 */
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <net/addrconf.h>

#include "qrdma.h"

MODULE_AUTHOR("The qrdma authors");
MODULE_DESCRIPTION("Driver for the emulated qrdma RDMA card");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS("DMA_BUF");

static int qrdma_map_bars(struct qrdma_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	resource_size_t pages = pci_resource_len(pdev, QRDMA_BAR_DOORBELL) /
				QRDMA_DOORBELL_PAGE_SIZE;

	if (pci_resource_len(pdev, QRDMA_BAR_REGISTERS) <
	    QRDMA_BAR_REGISTERS_SIZE || pages < 2) {
		dev_err(&pdev->dev, "BARs are too small\n");
		return -ENODEV;
	}
	dev->registers = pci_iomap(pdev, QRDMA_BAR_REGISTERS,
				   QRDMA_BAR_REGISTERS_SIZE);
	if (!dev->registers)
		return -ENOMEM;
	dev->doorbells = pci_iomap(pdev, QRDMA_BAR_DOORBELL,
				   QRDMA_DOORBELL_PAGE_SIZE);
	if (!dev->doorbells) {
		pci_iounmap(pdev, dev->registers);
		return -ENOMEM;
	}
	dev->doorbells_base = pci_resource_start(pdev, QRDMA_BAR_DOORBELL);
	return 0;
}

static void qrdma_unmap_bars(struct qrdma_dev *dev)
{
	pci_iounmap(dev->pdev, dev->doorbells);
	pci_iounmap(dev->pdev, dev->registers);
}

static int qrdma_pci_init(struct qrdma_dev *dev)
{
	struct pci_dev *pdev = dev->pdev;
	int ret;

	ret = pci_enable_device_mem(pdev);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "cannot enable device\n");
	ret = pci_request_mem_regions(pdev, QRDMA_DRIVER_NAME);
	if (ret) {
		dev_err(&pdev->dev, "BARs are taken: %d\n", ret);
		goto err_disable;
	}
	ret = qrdma_map_bars(dev);
	if (ret)
		goto err_regions;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret) {
		dev_err(&pdev->dev, "no 64-bit DMA: %d\n", ret);
		goto err_bars;
	}
	/* Regions are as long as they are: the card has no segments. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	pci_set_master(pdev);
	return 0;

err_bars:
	qrdma_unmap_bars(dev);
err_regions:
	pci_release_mem_regions(pdev);
err_disable:
	pci_disable_device(pdev);
	return ret;
}

static void qrdma_pci_exit(struct qrdma_dev *dev)
{
	pci_clear_master(dev->pdev);
	qrdma_unmap_bars(dev);
	pci_release_mem_regions(dev->pdev);
	pci_disable_device(dev->pdev);
}

/* One vector for commands and asynchronous events, one for each processor's EQ. */
static int qrdma_vectors_init(struct qrdma_dev *dev)
{
	int wanted = min(num_online_cpus() + QRDMA_FIRST_CQ_VECTOR,
			 QRDMA_MSIX_VECTORS);
	int ret;

	ret = pci_alloc_irq_vectors(dev->pdev, QRDMA_FIRST_CQ_VECTOR + 1,
				    wanted, PCI_IRQ_MSIX);
	if (ret < 0) {
		dev_err(&dev->pdev->dev, "needs at least %u MSI-X vectors: %d\n",
			QRDMA_FIRST_CQ_VECTOR + 1, ret);
		return ret;
	}
	dev->num_eqs = ret - QRDMA_FIRST_CQ_VECTOR;
	return 0;
}

static void qrdma_tables_init(struct qrdma_dev *dev)
{
	xa_init_flags(&dev->cqs, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	ida_init(&dev->pds);
	ida_init(&dev->doorbell_pages);
}

static void qrdma_tables_destroy(struct qrdma_dev *dev)
{
	ida_destroy(&dev->doorbell_pages);
	ida_destroy(&dev->pds);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->cqs);
}

/* Commands, events. */
static int qrdma_card_init(struct qrdma_dev *dev)
{
	int ret;

	ret = qrdma_device_reset(dev);
	if (ret)
		return ret;
	ret = qrdma_vectors_init(dev);
	if (ret)
		return ret;
	qrdma_async_eq_prepare(dev);
	ret = qrdma_command_queue_init(dev);
	if (ret)
		goto err_vectors;
	ret = qrdma_device_query(dev);
	if (ret)
		goto err_commands;
	ret = qrdma_eqs_init(dev);
	if (ret)
		goto err_commands;
	return 0;

err_commands:
	qrdma_command_queue_destroy(dev);
err_vectors:
	pci_free_irq_vectors(dev->pdev);
	return ret;
}

static void qrdma_card_exit(struct qrdma_dev *dev)
{
	qrdma_eqs_destroy(dev);
	qrdma_command_queue_destroy(dev);
	pci_free_irq_vectors(dev->pdev);
}

/* What memory regions stand on. */
static int qrdma_memory_init(struct qrdma_dev *dev)
{
	int ret;

	ret = qrdma_pble_pool_init(dev);
	if (ret)
		return ret;
	ret = qrdma_mkeys_init(dev);
	if (ret)
		goto err_pble;
	ret = qrdma_umr_init(dev);
	if (ret)
		goto err_mkeys;
	set_bit(QRDMA_STATE_UMR, &dev->state);
	ret = qrdma_odp_init(dev);
	if (ret)
		goto err_umr;
	return 0;

err_umr:
	clear_bit(QRDMA_STATE_UMR, &dev->state);
	qrdma_umr_destroy(dev);
err_mkeys:
	qrdma_mkeys_destroy(dev);
err_pble:
	qrdma_pble_pool_destroy(dev);
	return ret;
}

static void qrdma_memory_exit(struct qrdma_dev *dev)
{
	qrdma_odp_destroy(dev);
	clear_bit(QRDMA_STATE_UMR, &dev->state);
	qrdma_umr_destroy(dev);
	qrdma_mkeys_destroy(dev);
	qrdma_pble_pool_destroy(dev);
}

static int qrdma_register(struct qrdma_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	int ret;

	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->num_eqs;
	ibdev->dev.parent = &dev->pdev->dev;
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, dev->mac);
	strscpy(ibdev->node_desc, "qrdma emulated RDMA card",
		sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &qrdma_device_ops);
	ibdev->driver_def = qrdma_mr_uapi_definitions;

	ret = qrdma_netdev_create(dev);
	if (ret)
		return ret;
	ret = ib_device_set_netdev(ibdev, dev->netdev, QRDMA_PORT);
	if (ret)
		goto err_netdev;
	ret = ib_register_device(ibdev, "qrdma%d", &dev->pdev->dev);
	if (ret) {
		dev_err(&dev->pdev->dev, "cannot register with ib_core: %d\n",
			ret);
		goto err_port;
	}
	set_bit(QRDMA_STATE_REGISTERED, &dev->state);
	return 0;

err_port:
	ib_device_set_netdev(ibdev, NULL, QRDMA_PORT);
err_netdev:
	qrdma_netdev_destroy(dev);
	return ret;
}

static void qrdma_unregister(struct qrdma_dev *dev)
{
	clear_bit(QRDMA_STATE_REGISTERED, &dev->state);
	ib_unregister_device(&dev->ibdev);
	qrdma_netdev_destroy(dev);
}

static int qrdma_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qrdma_dev *dev;
	int ret;

	dev = ib_alloc_device(qrdma_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->pdev = pdev;
	pci_set_drvdata(pdev, dev);
	qrdma_tables_init(dev);

	ret = qrdma_pci_init(dev);
	if (ret)
		goto err_tables;
	ret = qrdma_card_init(dev);
	if (ret)
		goto err_pci;
	ret = qrdma_memory_init(dev);
	if (ret)
		goto err_card;
	qrdma_device_watch(dev);
	ret = qrdma_register(dev);
	if (ret)
		goto err_memory;
	return 0;

err_memory:
	qrdma_device_unwatch(dev);
	qrdma_memory_exit(dev);
err_card:
	qrdma_card_exit(dev);
err_pci:
	qrdma_pci_exit(dev);
err_tables:
	qrdma_tables_destroy(dev);
	ib_dealloc_device(&dev->ibdev);
	return ret;
}

static void qrdma_remove(struct pci_dev *pdev)
{
	struct qrdma_dev *dev = pci_get_drvdata(pdev);

	/* A card that was pulled out answers no command: find out now. */
	qrdma_device_check(dev);
	/* Users' objects go, whoever holds them open. */
	qrdma_unregister(dev);
	qrdma_device_unwatch(dev);
	qrdma_memory_exit(dev);
	qrdma_card_exit(dev);
	qrdma_pci_exit(dev);
	qrdma_tables_destroy(dev);
	ib_dealloc_device(&dev->ibdev);
}

/* Reboot and kexec: the next kernel's memory is not to be written. */
static void qrdma_shutdown(struct pci_dev *pdev)
{
	qrdma_device_stop(pci_get_drvdata(pdev));
	pci_clear_master(pdev);
}

/* A function-level reset takes everything from under the driver. */
static void qrdma_reset_prepare(struct pci_dev *pdev)
{
	qrdma_device_fail(pci_get_drvdata(pdev),
			  "function reset; bind the driver again");
}

static const struct pci_error_handlers qrdma_error_handlers = {
	.reset_prepare = qrdma_reset_prepare,
};

static const struct pci_device_id qrdma_pci_ids[] = {
	{ PCI_DEVICE(QRDMA_PCI_VENDOR_ID, QRDMA_PCI_DEVICE_ID) },
	{ }
};
MODULE_DEVICE_TABLE(pci, qrdma_pci_ids);

static struct pci_driver qrdma_pci_driver = {
	.name = QRDMA_DRIVER_NAME,
	.id_table = qrdma_pci_ids,
	.probe = qrdma_probe,
	.remove = qrdma_remove,
	.shutdown = qrdma_shutdown,
	.err_handler = &qrdma_error_handlers,
};
module_pci_driver(qrdma_pci_driver);
