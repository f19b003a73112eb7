// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: event queues. EQ 0 takes what is asynchronous (errors, page faults) and
 * is read in a thread; the others take completions, one per interrupt vector,
 * and are read in the interrupt.
 */
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "qrdma.h"

/* 128 KiB a queue. */
#define QRDMA_EQ_LOG_ENTRIES	12
/* Tell the card where we are before it runs out of room. */
#define QRDMA_EQ_BATCH		256

/* The event at a position of the ring, or NULL if it has not come yet. */
static struct qrdma_eqe *qrdma_eq_look(struct qrdma_eqe *ring, u32 log_entries,
				       u32 consumer)
{
	struct qrdma_eqe *eqe = &ring[consumer & ((1u << log_entries) - 1)];
	u8 phase = !((consumer >> log_entries) & 1);

	return READ_ONCE(eqe->phase) == phase ? eqe : NULL;
}

static bool qrdma_eq_next(struct qrdma_eq *eq, struct qrdma_eqe *event)
{
	struct qrdma_eqe *eqe = qrdma_eq_look(eq->ring, eq->log_entries,
					      eq->consumer);

	if (!eqe)
		return false;
	/* The rest of the event is read after the phase that makes it valid. */
	dma_rmb();
	*event = *eqe;
	return true;
}

/*
 * Handle what there is, at most one ring full: a user who keeps arming a CQ is
 * not to hold the processor. The caller holds the lock that serialises readers
 * of this queue. Arming last makes the card interrupt again if an event slipped
 * in between.
 */
static void qrdma_eq_poll(struct qrdma_eq *eq)
{
	u32 limit = 1u << eq->log_entries;
	struct qrdma_eqe event;
	u32 count = 0;

	while (count < limit && qrdma_eq_next(eq, &event)) {
		WRITE_ONCE(eq->consumer, eq->consumer + 1);
		eq->handle(eq->dev, &event);
		if (++count % QRDMA_EQ_BATCH == 0)
			qrdma_doorbell(eq->dev, QRDMA_DOORBELL_EQ, eq->number,
				       QRDMA_DOORBELL_ARM_NONE, eq->consumer);
	}
	qrdma_doorbell(eq->dev, QRDMA_DOORBELL_EQ, eq->number,
		       QRDMA_DOORBELL_ARM_NEXT, eq->consumer);
}

static irqreturn_t qrdma_completion_interrupt(int irq, void *data)
{
	struct qrdma_eq *eq = data;
	unsigned long flags;

	spin_lock_irqsave(&eq->lock, flags);
	qrdma_eq_poll(eq);
	spin_unlock_irqrestore(&eq->lock, flags);
	return IRQ_HANDLED;
}

/*
 * Hard interrupt of the vector that commands and asynchronous events share. The
 * thread may be reading meanwhile; at worst it is woken for nothing.
 */
irqreturn_t qrdma_async_interrupt(int irq, void *data)
{
	struct qrdma_dev *dev = data;
	struct qrdma_eq *eq = &dev->async_eq;
	struct qrdma_eqe *ring = READ_ONCE(eq->ring);

	if (ring && qrdma_eq_look(ring, eq->log_entries,
				  READ_ONCE(eq->consumer)))
		return IRQ_WAKE_THREAD;
	return IRQ_HANDLED;
}

irqreturn_t qrdma_async_thread(int irq, void *data)
{
	struct qrdma_dev *dev = data;

	qrdma_eq_drain(&dev->async_eq);
	return IRQ_HANDLED;
}

void qrdma_eq_drain(struct qrdma_eq *eq)
{
	if (eq->number == QRDMA_ASYNC_EQN) {
		mutex_lock(&eq->drain);
		if (eq->ring)
			qrdma_eq_poll(eq);
		mutex_unlock(&eq->drain);
	} else {
		spin_lock_irq(&eq->lock);
		qrdma_eq_poll(eq);
		spin_unlock_irq(&eq->lock);
	}
}

static size_t qrdma_eq_bytes(const struct qrdma_eq *eq)
{
	return sizeof(struct qrdma_eqe) << eq->log_entries;
}

/* @eq->number, vector and handle are set. */
static int qrdma_eq_create(struct qrdma_dev *dev, struct qrdma_eq *eq)
{
	struct qrdma_eqc context = {};
	struct qrdma_eqe *ring;
	int ret;

	eq->dev = dev;
	eq->consumer = 0;
	eq->log_entries = min_t(u32, QRDMA_EQ_LOG_ENTRIES,
				dev->limits.log_max_ring_entries);
	ring = dma_alloc_coherent(&dev->pdev->dev, qrdma_eq_bytes(eq),
				  &eq->ring_dma, GFP_KERNEL);
	if (!ring)
		return -ENOMEM;

	context.ring.base = cpu_to_le64(eq->ring_dma);
	context.ring.num_pages =
		cpu_to_le32(DIV_ROUND_UP(qrdma_eq_bytes(eq), SZ_4K));
	context.ring.log_page_size = ilog2(SZ_4K);
	context.ring.log_entries = eq->log_entries;
	context.ring.log_stride = QRDMA_EQE_LOG_SIZE;
	context.vector = cpu_to_le32(eq->vector);
	ret = qrdma_command(dev, QRDMA_CMD_CREATE_EQ, eq->number, &context,
			    sizeof(context));
	if (ret) {
		dev_err(&dev->pdev->dev, "cannot create event queue %u: %d\n",
			eq->number, ret);
		dma_free_coherent(&dev->pdev->dev, qrdma_eq_bytes(eq), ring,
				  eq->ring_dma);
		return ret;
	}
	WRITE_ONCE(eq->ring, ring);
	return 0;
}

static void qrdma_eq_destroy(struct qrdma_dev *dev, struct qrdma_eq *eq)
{
	struct qrdma_eqe *ring = eq->ring;

	qrdma_destroy_object(dev, QRDMA_CMD_DESTROY_EQ, eq->number);
	mutex_lock(&eq->drain);
	WRITE_ONCE(eq->ring, NULL);
	mutex_unlock(&eq->drain);
	/* The hard interrupt of the asynchronous queue may be looking at it. */
	synchronize_irq(eq->irq);
	dma_free_coherent(&dev->pdev->dev, qrdma_eq_bytes(eq), ring,
			  eq->ring_dma);
}

static int qrdma_completion_eq_create(struct qrdma_dev *dev,
				      struct qrdma_eq *eq, u32 index)
{
	int ret;

	spin_lock_init(&eq->lock);
	mutex_init(&eq->drain);
	eq->number = QRDMA_ASYNC_EQN + 1 + index;
	eq->vector = QRDMA_FIRST_CQ_VECTOR + index;
	eq->handle = qrdma_handle_completion_event;
	eq->irq = pci_irq_vector(dev->pdev, eq->vector);
	snprintf(eq->name, sizeof(eq->name), "qrdma-comp%u@%s", index,
		 pci_name(dev->pdev));

	ret = qrdma_eq_create(dev, eq);
	if (ret)
		return ret;
	ret = request_irq(eq->irq, qrdma_completion_interrupt, 0, eq->name, eq);
	if (ret) {
		dev_err(&dev->pdev->dev, "no interrupt for event queue %u: %d\n",
			eq->number, ret);
		qrdma_eq_destroy(dev, eq);
		return ret;
	}
	qrdma_eq_drain(eq);
	return 0;
}

static void qrdma_completion_eqs_destroy(struct qrdma_dev *dev, u32 count)
{
	while (count--) {
		free_irq(dev->eqs[count].irq, &dev->eqs[count]);
		qrdma_eq_destroy(dev, &dev->eqs[count]);
	}
	kfree(dev->eqs);
}

/* Everything that makes events is gone. */
void qrdma_eqs_destroy(struct qrdma_dev *dev)
{
	qrdma_completion_eqs_destroy(dev, dev->num_eqs);
	qrdma_eq_destroy(dev, &dev->async_eq);
}

/* What does not need the card: the thread of vector 0 looks at it early. */
void qrdma_async_eq_prepare(struct qrdma_dev *dev)
{
	struct qrdma_eq *eq = &dev->async_eq;

	spin_lock_init(&eq->lock);
	mutex_init(&eq->drain);
	eq->number = QRDMA_ASYNC_EQN;
	eq->vector = QRDMA_COMMAND_VECTOR;
	eq->irq = pci_irq_vector(dev->pdev, eq->vector);
	eq->handle = qrdma_handle_async_event;
	snprintf(eq->name, sizeof(eq->name), "qrdma-async@%s",
		 pci_name(dev->pdev));
}

/* dev->num_eqs completion queues, for which there are vectors, and the async one. */
int qrdma_eqs_init(struct qrdma_dev *dev)
{
	u32 i;
	int ret;

	if (dev->num_eqs + 1 > dev->limits.max_eqs)
		dev->num_eqs = dev->limits.max_eqs - 1;

	dev->eqs = kcalloc(dev->num_eqs, sizeof(*dev->eqs), GFP_KERNEL);
	if (!dev->eqs)
		return -ENOMEM;

	ret = qrdma_eq_create(dev, &dev->async_eq);
	if (ret) {
		kfree(dev->eqs);
		return ret;
	}
	qrdma_eq_drain(&dev->async_eq);

	for (i = 0; i < dev->num_eqs; i++) {
		ret = qrdma_completion_eq_create(dev, &dev->eqs[i], i);
		if (ret)
			goto err_eqs;
	}
	return 0;

err_eqs:
	qrdma_completion_eqs_destroy(dev, i);
	qrdma_eq_destroy(dev, &dev->async_eq);
	return ret;
}
