// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the command queue. The card takes commands from a ring, answers them
 * in order, and interrupts. Input and output go through buffers that belong to
 * the ring's slots, so that an answer that comes after its caller has left has
 * somewhere to go.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "qrdma.h"
#include "trace.h"

/* How often a waiting caller looks by itself, in case an interrupt got lost. */
#define QRDMA_COMMAND_POLL	(HZ / 10)

#define QRDMA_COMMAND_SLOT	(2 * QRDMA_COMMAND_BUFFER)

struct qrdma_command_waiter {
	struct completion done;
	void *out;
	size_t out_length;
	u16 status;
	int error;
};

static const struct {
	const char *name;
	int error;
} qrdma_status_table[QRDMA_STATUS_COUNT] = {
	[QRDMA_STATUS_OK]		= { "ok", 0 },
	[QRDMA_STATUS_BAD_OPCODE]	= { "bad opcode", -EOPNOTSUPP },
	[QRDMA_STATUS_BAD_STATE]	= { "bad state", -EBUSY },
	[QRDMA_STATUS_BAD_RESERVED]	= { "bad reserved field", -EINVAL },
	[QRDMA_STATUS_BAD_INPUT_LENGTH]	= { "bad input length", -EINVAL },
	[QRDMA_STATUS_BAD_OUTPUT_LENGTH] = { "bad output length", -EINVAL },
	[QRDMA_STATUS_BAD_NUMBER]	= { "bad object number", -EINVAL },
	[QRDMA_STATUS_NO_OBJECT]	= { "no such object", -ENOENT },
	[QRDMA_STATUS_IN_USE]		= { "in use", -EBUSY },
	[QRDMA_STATUS_NO_RESOURCES]	= { "no resources", -ENOMEM },
	[QRDMA_STATUS_DMA_ERROR]	= { "DMA error", -EFAULT },
	[QRDMA_STATUS_BAD_FLAGS]	= { "bad flags", -EINVAL },
	[QRDMA_STATUS_BAD_MASK]		= { "bad mask", -EINVAL },
	[QRDMA_STATUS_BAD_PD]		= { "bad PD", -EINVAL },
	[QRDMA_STATUS_BAD_QPN]		= { "bad QPN", -EINVAL },
	[QRDMA_STATUS_BAD_CQN]		= { "bad CQN", -EINVAL },
	[QRDMA_STATUS_BAD_EQN]		= { "bad EQN", -EINVAL },
	[QRDMA_STATUS_BAD_VECTOR]	= { "bad vector", -EINVAL },
	[QRDMA_STATUS_BAD_DOORBELL_PAGE] = { "bad doorbell page", -EINVAL },
	[QRDMA_STATUS_BAD_PAGE_SIZE]	= { "bad page size", -EINVAL },
	[QRDMA_STATUS_BAD_LEVEL]	= { "bad level", -EINVAL },
	[QRDMA_STATUS_BAD_PBLE_INDEX]	= { "bad PBLE index", -EINVAL },
	[QRDMA_STATUS_BAD_CAPACITY]	= { "bad capacity", -EINVAL },
	[QRDMA_STATUS_BAD_LENGTH]	= { "bad length", -EINVAL },
	[QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET] = { "bad first byte offset", -EINVAL },
	[QRDMA_STATUS_BAD_ALIGNMENT]	= { "bad alignment", -EINVAL },
	[QRDMA_STATUS_BAD_TRANSLATION]	= { "bad translation", -EINVAL },
	[QRDMA_STATUS_BAD_RING]		= { "bad ring", -EINVAL },
	[QRDMA_STATUS_BAD_RIGHTS]	= { "bad rights", -EINVAL },
	[QRDMA_STATUS_BAD_VARIANT]	= { "bad variant", -EINVAL },
	[QRDMA_STATUS_MKEY_FREE]	= { "mkey is free", -EINVAL },
	[QRDMA_STATUS_MKEY_NOT_FREE]	= { "mkey is not free", -EBUSY },
	[QRDMA_STATUS_BAD_TABLE_RANGE]	= { "bad table range", -ERANGE },
	[QRDMA_STATUS_BAD_TABLE_LENGTH]	= { "bad table length", -EINVAL },
	[QRDMA_STATUS_BAD_ENTRY]	= { "bad table entry", -EINVAL },
	[QRDMA_STATUS_HMC_ERROR]	= { "PBLE space not usable", -EFAULT },
	[QRDMA_STATUS_BAD_TRANSITION]	= { "bad state transition", -EINVAL },
	[QRDMA_STATUS_BAD_ATTRIBUTE]	= { "bad attribute", -EINVAL },
	[QRDMA_STATUS_BAD_TOKEN]	= { "bad token", -ENOENT },
	[QRDMA_STATUS_BAD_GID]		= { "bad GID", -EINVAL },
	[QRDMA_STATUS_BAD_QP_TYPE]	= { "bad QP type", -EOPNOTSUPP },
	[QRDMA_STATUS_BAD_SD]		= { "bad SD", -EINVAL },
	[QRDMA_STATUS_FATAL_STATE]	= { "card is in fatal error", -EIO },
	[QRDMA_STATUS_INJECTED]		= { "refused on request", -EREMOTEIO },
	[QRDMA_STATUS_BAD_WQE]		= { "bad WQE", -EINVAL },
};

int qrdma_status_to_errno(u16 status)
{
	return status < QRDMA_STATUS_COUNT ? qrdma_status_table[status].error :
					     -EPROTO;
}

const char *qrdma_status_name(u16 status)
{
	return status < QRDMA_STATUS_COUNT ? qrdma_status_table[status].name :
					     "unknown status";
}

static void *qrdma_command_input(struct qrdma_command_queue *cmdq, u32 slot)
{
	return cmdq->buffers + slot * QRDMA_COMMAND_SLOT;
}

static void *qrdma_command_output(struct qrdma_command_queue *cmdq, u32 slot)
{
	return qrdma_command_input(cmdq, slot) + QRDMA_COMMAND_BUFFER;
}

/* Under cmdq->lock. The waiter's memory is gone as soon as it is woken. */
static void qrdma_command_finish_oldest(struct qrdma_command_queue *cmdq,
					u16 status, int error)
{
	u32 slot = cmdq->consumer & (cmdq->entries - 1);
	struct qrdma_command_waiter *waiter = cmdq->waiters[slot];

	if (!error && status == QRDMA_STATUS_OK && waiter->out_length)
		memcpy(waiter->out, qrdma_command_output(cmdq, slot),
		       waiter->out_length);
	waiter->status = status;
	waiter->error = error;
	cmdq->waiters[slot] = NULL;
	cmdq->consumer++;
	complete(&waiter->done);
	up(&cmdq->slots);
}

void qrdma_command_queue_process(struct qrdma_dev *dev)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	unsigned long flags;

	spin_lock_irqsave(&cmdq->lock, flags);
	while (cmdq->running && cmdq->consumer != cmdq->producer) {
		u32 slot = cmdq->consumer & (cmdq->entries - 1);
		struct qrdma_command *entry = &cmdq->ring[slot];

		if (!READ_ONCE(entry->done))
			break;
		/* The answer is read after the mark that it is there. */
		dma_rmb();
		qrdma_command_finish_oldest(cmdq, le16_to_cpu(entry->status), 0);
	}
	spin_unlock_irqrestore(&cmdq->lock, flags);
}

void qrdma_command_queue_fail(struct qrdma_dev *dev)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	unsigned long flags;

	spin_lock_irqsave(&cmdq->lock, flags);
	cmdq->running = false;
	while (cmdq->consumer != cmdq->producer)
		qrdma_command_finish_oldest(cmdq, QRDMA_STATUS_FATAL_STATE,
					    -EIO);
	spin_unlock_irqrestore(&cmdq->lock, flags);
}

static void qrdma_command_fill(struct qrdma_command_queue *cmdq, u32 slot,
			       u16 opcode, u32 number, const void *in,
			       size_t in_length, size_t out_length)
{
	struct qrdma_command *entry = &cmdq->ring[slot];
	dma_addr_t buffer = cmdq->buffers_dma + slot * QRDMA_COMMAND_SLOT;

	memset(entry, 0, sizeof(*entry));
	entry->opcode = cpu_to_le16(opcode);
	entry->number = cpu_to_le32(number);
	entry->token = cpu_to_le64(cmdq->producer);
	if (in_length) {
		memcpy(qrdma_command_input(cmdq, slot), in, in_length);
		entry->input = cpu_to_le64(buffer);
		entry->input_length = cpu_to_le32(in_length);
	}
	if (out_length) {
		memset(qrdma_command_output(cmdq, slot), 0, out_length);
		entry->output = cpu_to_le64(buffer + QRDMA_COMMAND_BUFFER);
		entry->output_length = cpu_to_le32(out_length);
	}
}

/* Wait for an answer. The device's death is an answer too. */
static void qrdma_command_wait(struct qrdma_dev *dev, u16 opcode,
			       struct qrdma_command_waiter *waiter)
{
	unsigned long begin = jiffies;

	while (!wait_for_completion_timeout(&waiter->done,
					    QRDMA_COMMAND_POLL)) {
		qrdma_command_queue_process(dev);
		if (qrdma_device_check(dev) &&
		    time_after(jiffies, begin + qrdma_answer_timeout())) {
			dev_err(&dev->pdev->dev,
				"command 0x%02x was not answered\n", opcode);
			qrdma_device_fail(dev, "command timeout");
		}
	}
}

int qrdma_command_status(struct qrdma_dev *dev, u16 opcode, u32 number,
			 const void *in, size_t in_length,
			 void *out, size_t out_length, u16 *status)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	struct qrdma_command_waiter waiter = {
		.out = out,
		.out_length = out_length,
	};
	unsigned long flags;
	u32 slot;
	int ret;

	if (WARN_ON_ONCE(in_length > QRDMA_COMMAND_BUFFER ||
			 out_length > QRDMA_COMMAND_BUFFER))
		return -EINVAL;

	init_completion(&waiter.done);
	down(&cmdq->slots);

	spin_lock_irqsave(&cmdq->lock, flags);
	if (!cmdq->running) {
		spin_unlock_irqrestore(&cmdq->lock, flags);
		up(&cmdq->slots);
		if (status)
			*status = QRDMA_STATUS_FATAL_STATE;
		return -EIO;
	}
	/* The semaphore counts slots, and answers come in order: this one is free. */
	slot = cmdq->producer & (cmdq->entries - 1);
	qrdma_command_fill(cmdq, slot, opcode, number, in, in_length,
			   out_length);
	cmdq->waiters[slot] = &waiter;
	cmdq->producer++;
	writel(cmdq->producer, dev->registers + QRDMA_REG_COMMAND_DOORBELL);
	spin_unlock_irqrestore(&cmdq->lock, flags);

	qrdma_command_wait(dev, opcode, &waiter);

	trace_qrdma_command(dev, opcode, number, waiter.status, waiter.error);
	if (status)
		*status = waiter.status;
	/* A card in fatal error refuses commands until it is reset. */
	if (waiter.status == QRDMA_STATUS_FATAL_STATE)
		qrdma_device_check(dev);
	ret = waiter.error ?: qrdma_status_to_errno(waiter.status);
	if (ret)
		dev_dbg(&dev->pdev->dev, "command 0x%02x number 0x%x: %s\n",
			opcode, number, qrdma_status_name(waiter.status));
	return ret;
}

static irqreturn_t qrdma_command_interrupt(int irq, void *data)
{
	struct qrdma_dev *dev = data;

	qrdma_command_queue_process(dev);
	return qrdma_async_interrupt(irq, data);
}

static int qrdma_command_queue_enable(struct qrdma_dev *dev)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	u32 status;

	writel(lower_32_bits(cmdq->ring_dma),
	       dev->registers + QRDMA_REG_COMMAND_RING);
	writel(upper_32_bits(cmdq->ring_dma),
	       dev->registers + QRDMA_REG_COMMAND_RING + 4);
	writel(ilog2(cmdq->entries),
	       dev->registers + QRDMA_REG_COMMAND_LOG_SIZE);
	writel(QRDMA_COMMAND_VECTOR | QRDMA_COMMAND_VECTOR_ENABLE,
	       dev->registers + QRDMA_REG_COMMAND_VECTOR);
	cmdq->running = true;
	writel(QRDMA_CONTROL_ENABLE, dev->registers + QRDMA_REG_CONTROL);

	status = readl(dev->registers + QRDMA_REG_STATUS);
	if ((status & (QRDMA_CARD_READY | QRDMA_CARD_FATAL)) ==
	    QRDMA_CARD_READY)
		return 0;

	dev_err(&dev->pdev->dev,
		"card does not get ready: status 0x%x, error %u\n", status,
		readl(dev->registers + QRDMA_REG_ERROR));
	cmdq->running = false;
	return -EIO;
}

/*
 * The card has been reset. On success commands can be issued, and interrupt
 * vector QRDMA_COMMAND_VECTOR is in use.
 */
int qrdma_command_queue_init(struct qrdma_dev *dev)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	struct device *device = &dev->pdev->dev;
	int ret;

	BUILD_BUG_ON(sizeof(struct qrdma_modify_qp) > QRDMA_COMMAND_BUFFER);
	BUILD_BUG_ON(sizeof(struct qrdma_counters) > QRDMA_COMMAND_BUFFER);

	spin_lock_init(&cmdq->lock);
	cmdq->entries = 1 << QRDMA_COMMAND_LOG_SIZE_MAX;
	sema_init(&cmdq->slots, cmdq->entries);

	cmdq->waiters = kcalloc(cmdq->entries, sizeof(*cmdq->waiters),
				GFP_KERNEL);
	if (!cmdq->waiters)
		return -ENOMEM;
	cmdq->ring = dma_alloc_coherent(device,
					cmdq->entries * sizeof(*cmdq->ring),
					&cmdq->ring_dma, GFP_KERNEL);
	if (!cmdq->ring) {
		ret = -ENOMEM;
		goto err_waiters;
	}
	cmdq->buffers = dma_alloc_coherent(device,
					   cmdq->entries * QRDMA_COMMAND_SLOT,
					   &cmdq->buffers_dma, GFP_KERNEL);
	if (!cmdq->buffers) {
		ret = -ENOMEM;
		goto err_ring;
	}
	ret = request_threaded_irq(pci_irq_vector(dev->pdev,
						  QRDMA_COMMAND_VECTOR),
				   qrdma_command_interrupt, qrdma_async_thread,
				   0, dev->async_eq.name, dev);
	if (ret) {
		dev_err(device, "no interrupt for commands: %d\n", ret);
		goto err_buffers;
	}
	ret = qrdma_command_queue_enable(dev);
	if (ret)
		goto err_irq;
	return 0;

err_irq:
	free_irq(pci_irq_vector(dev->pdev, QRDMA_COMMAND_VECTOR), dev);
err_buffers:
	dma_free_coherent(device, cmdq->entries * QRDMA_COMMAND_SLOT,
			  cmdq->buffers, cmdq->buffers_dma);
err_ring:
	dma_free_coherent(device, cmdq->entries * sizeof(*cmdq->ring),
			  cmdq->ring, cmdq->ring_dma);
err_waiters:
	kfree(cmdq->waiters);
	return ret;
}

/* Resets the card: nothing of it uses memory after this. */
void qrdma_command_queue_destroy(struct qrdma_dev *dev)
{
	struct qrdma_command_queue *cmdq = &dev->cmdq;
	struct device *device = &dev->pdev->dev;

	qrdma_command_queue_fail(dev);
	writel(QRDMA_CONTROL_RESET, dev->registers + QRDMA_REG_CONTROL);
	free_irq(pci_irq_vector(dev->pdev, QRDMA_COMMAND_VECTOR), dev);
	dma_free_coherent(device, cmdq->entries * QRDMA_COMMAND_SLOT,
			  cmdq->buffers, cmdq->buffers_dma);
	dma_free_coherent(device, cmdq->entries * sizeof(*cmdq->ring),
			  cmdq->ring, cmdq->ring_dma);
	kfree(cmdq->waiters);
}
