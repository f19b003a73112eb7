// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the UMR queue, which changes live mkeys. One queue for all; callers
 * wait for their completion, so a semaphore bounds what is outstanding.
 *
 * A UMR that the card refuses completes in error, and puts the queue in error,
 * where everything posted completes as flushed. Recovery: nobody posts any more,
 * all that is outstanding completes (the barrier), the queue goes through RESET
 * back to RTS, and those whose UMR was flushed post it again. The one that was
 * refused gets its errno.
 *
 * Nothing here allocates after init: UMRs are posted under the dma_resv of a
 * buffer that is being moved or revoked, maybe on behalf of reclaim.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/wait.h>

#include "region.h"
#include "trace.h"

#define QRDMA_UMR_LOG_ENTRIES	6
#define QRDMA_UMR_ENTRIES	(1u << QRDMA_UMR_LOG_ENTRIES)
/* Loads of different regions that may go on at the same time. */
#define QRDMA_UMR_STAGINGS	4

/* How often a waiting caller looks by itself, in case an interrupt got lost. */
#define QRDMA_UMR_POLL		(HZ / 10)
/* How often it asks the card how far it is, and from when on. */
#define QRDMA_UMR_ASK		HZ

enum qrdma_umr_state {
	QRDMA_UMR_ACTIVE,
	QRDMA_UMR_RECOVERING,
	QRDMA_UMR_DEAD,
};

enum qrdma_umr_outcome {
	QRDMA_UMR_DONE,
	QRDMA_UMR_REFUSED,		/* syndrome says why */
	QRDMA_UMR_FLUSHED,		/* not begun: post it again */
	QRDMA_UMR_LOST,			/* the device is dead */
};

/* A UMR that is outstanding; on its caller's stack. */
struct qrdma_umr_request {
	struct completion done;
	u32 counter;			/* of its WQE */
	enum qrdma_umr_outcome outcome;
	u16 syndrome;
};

struct qrdma_umr_queue {
	struct qrdma_dev *dev;
	struct qrdma_kernel_qp qp;
	struct semaphore slots;

	spinlock_t lock;		/* posting, polling, and the following */
	enum qrdma_umr_state state;
	u32 outstanding;
	struct qrdma_umr_request *requests[QRDMA_UMR_ENTRIES];	/* by ring slot */

	wait_queue_head_t changed;	/* state, or something has completed */
	struct workqueue_struct *workqueue;
	struct work_struct recover;

	u32 staging_size;
	struct qrdma_umr_staging stagings[QRDMA_UMR_STAGINGS];
	struct semaphore staging_slots;
	struct list_head staging_free;	/* under lock */
	void *zeroes;			/* never written: what absent entries are */
	dma_addr_t zeroes_dma;
};

/* ------------------------------------------------------------- completion */

/* Under umr->lock. The request's memory is gone as soon as it is woken. */
static void qrdma_umr_finish(struct qrdma_umr_queue *umr, u32 slot,
			     enum qrdma_umr_outcome outcome, u16 syndrome)
{
	struct qrdma_umr_request *request = umr->requests[slot];

	umr->requests[slot] = NULL;
	umr->outstanding--;
	request->outcome = outcome;
	request->syndrome = syndrome;
	complete(&request->done);
	wake_up_all(&umr->changed);
}

/* Under umr->lock. From here on nobody posts, until recovery is over. */
static void qrdma_umr_begin_recovery(struct qrdma_umr_queue *umr)
{
	if (umr->state != QRDMA_UMR_ACTIVE)
		return;
	umr->state = QRDMA_UMR_RECOVERING;
	queue_work(umr->workqueue, &umr->recover);
}

/*
 * Under umr->lock. The counter tells a request from one that had the slot before
 * it, should the card complete that one twice.
 */
static void qrdma_umr_take_cqe(struct qrdma_umr_queue *umr,
			       const struct qrdma_cqe *cqe)
{
	u32 counter = le32_to_cpu(cqe->wqe_counter);
	u32 slot = counter & (QRDMA_UMR_ENTRIES - 1);
	u16 syndrome = le16_to_cpu(cqe->syndrome);

	if (!umr->requests[slot] || umr->requests[slot]->counter != counter) {
		/* On a dead device all have been answered. */
		if (umr->state != QRDMA_UMR_DEAD)
			dev_warn_ratelimited(&umr->dev->pdev->dev,
					     "completion of a UMR that is not outstanding\n");
		return;
	}
	switch (cqe->status) {
	case QRDMA_CQE_SUCCESS:
		qrdma_umr_finish(umr, slot, QRDMA_UMR_DONE, 0);
		return;
	case QRDMA_CQE_FLUSHED:
		qrdma_umr_begin_recovery(umr);
		qrdma_umr_finish(umr, slot, QRDMA_UMR_FLUSHED, 0);
		return;
	case QRDMA_CQE_UMR_ERROR:
		qrdma_umr_begin_recovery(umr);
		qrdma_umr_finish(umr, slot, QRDMA_UMR_REFUSED, syndrome);
		return;
	default:
		/* Malformed WQE: the syndrome is of another kind. */
		qrdma_umr_begin_recovery(umr);
		qrdma_umr_finish(umr, slot, QRDMA_UMR_REFUSED,
				 QRDMA_STATUS_BAD_WQE);
		return;
	}
}

/* Under umr->lock. */
static void qrdma_umr_take_cqes(struct qrdma_umr_queue *umr)
{
	struct qrdma_cqe cqe;

	while (qrdma_kernel_qp_poll(&umr->qp, &cqe))
		qrdma_umr_take_cqe(umr, &cqe);
	qrdma_kernel_qp_arm(&umr->qp);
}

static void qrdma_umr_poll(struct qrdma_umr_queue *umr)
{
	unsigned long flags;

	spin_lock_irqsave(&umr->lock, flags);
	qrdma_umr_take_cqes(umr);
	spin_unlock_irqrestore(&umr->lock, flags);
}

/* Hard interrupt context. */
static void qrdma_umr_completed(struct qrdma_kernel_qp *qp)
{
	qrdma_umr_poll(qp->private);
}

/*
 * The ring or the CQ is broken, not a UMR. Completions may be lost, so there is
 * nothing that a restart could be built on.
 */
static void qrdma_umr_error(struct qrdma_kernel_qp *qp, u16 syndrome)
{
	struct qrdma_umr_queue *umr = qp->private;

	dev_err(&umr->dev->pdev->dev, "UMR queue: %s\n",
		qrdma_queue_error_name(syndrome));
	qrdma_device_fail(umr->dev, "UMR queue in error");
}

void qrdma_umr_device_dead(struct qrdma_dev *dev)
{
	struct qrdma_umr_queue *umr = dev->umr;
	unsigned long flags;

	spin_lock_irqsave(&umr->lock, flags);
	umr->state = QRDMA_UMR_DEAD;
	for (u32 slot = 0; slot < QRDMA_UMR_ENTRIES; slot++)
		if (umr->requests[slot])
			qrdma_umr_finish(umr, slot, QRDMA_UMR_LOST, 0);
	wake_up_all(&umr->changed);
	spin_unlock_irqrestore(&umr->lock, flags);
}

/* --------------------------------------------------------------- recovery */

static bool qrdma_umr_settled(struct qrdma_umr_queue *umr)
{
	bool settled;

	spin_lock_irq(&umr->lock);
	settled = !umr->outstanding || umr->state == QRDMA_UMR_DEAD;
	spin_unlock_irq(&umr->lock);
	return settled;
}

static void qrdma_umr_recover(struct work_struct *work)
{
	struct qrdma_umr_queue *umr = container_of(work, struct qrdma_umr_queue,
						   recover);
	int ret;

	/* The barrier. Callers poll for themselves, or declare the device dead. */
	wait_event(umr->changed, qrdma_umr_settled(umr));
	ret = qrdma_kernel_qp_restart(&umr->qp);
	if (ret) {
		dev_err(&umr->dev->pdev->dev,
			"UMR queue cannot be restarted: %d\n", ret);
		/* Wakes those who wait for the queue; nothing if dead already. */
		qrdma_device_fail(umr->dev, "UMR queue cannot be restarted");
		return;
	}

	spin_lock_irq(&umr->lock);
	/* Counters begin again: no CQE of before may be left. */
	qrdma_umr_take_cqes(umr);
	if (umr->state == QRDMA_UMR_RECOVERING)
		umr->state = QRDMA_UMR_ACTIVE;
	wake_up_all(&umr->changed);
	spin_unlock_irq(&umr->lock);
}

/* ---------------------------------------------------------------- posting */

static void qrdma_umr_build(struct qrdma_umr_wqe *wqe,
			    const struct qrdma_umr *umr)
{
	u16 flags = umr->flags;

	if (umr->table_length) {
		flags |= QRDMA_UMR_TRANSLATION_OFFSET;
		wqe->table_offset = cpu_to_le64(umr->first * QRDMA_PBLE_SIZE);
		wqe->table_length = cpu_to_le32(umr->table_length);
		if (umr->table) {
			flags |= QRDMA_UMR_INLINE;
			memcpy((u8 *)wqe + QRDMA_UMR_INLINE_OFFSET, umr->table,
			       umr->table_length);
		} else {
			wqe->table_address = cpu_to_le64(umr->table_dma);
		}
	}
	wqe->opcode = QRDMA_SEND_OP_UMR;
	wqe->flags = QRDMA_WQE_SIGNALED;
	wqe->umr_flags = cpu_to_le16(flags);
	wqe->key = cpu_to_le32(umr->key);
	wqe->mask = cpu_to_le64(umr->mask);
	wqe->mkc = umr->context;
}

/*
 * Under umr->lock. Not while the queue recovers, and not before the one that had
 * the slot last has completed: a card that lets others overtake it could have the
 * ring go round.
 */
static bool qrdma_umr_may_post(const struct qrdma_umr_queue *umr)
{
	u32 slot = umr->qp.producer & (QRDMA_UMR_ENTRIES - 1);

	return umr->state == QRDMA_UMR_DEAD ||
	       (umr->state == QRDMA_UMR_ACTIVE && !umr->requests[slot]);
}

/* False: wait until it may be, and try again. */
static bool qrdma_umr_post(struct qrdma_umr_queue *umr,
			   struct qrdma_umr_request *request,
			   const struct qrdma_umr *what)
{
	bool taken = true;
	u32 slot;

	init_completion(&request->done);
	spin_lock_irq(&umr->lock);
	if (umr->state == QRDMA_UMR_DEAD || qrdma_device_dead(umr->dev)) {
		request->outcome = QRDMA_UMR_LOST;
		complete(&request->done);
	} else if (!qrdma_umr_may_post(umr)) {
		taken = false;
	} else {
		qrdma_umr_build(qrdma_kernel_qp_next_wqe(&umr->qp), what);
		request->counter = qrdma_kernel_qp_post(&umr->qp);
		slot = request->counter & (QRDMA_UMR_ENTRIES - 1);
		umr->requests[slot] = request;
		umr->outstanding++;
	}
	spin_unlock_irq(&umr->lock);
	return taken;
}

/*
 * Has the card consumed the WQE, or does its queue not run at all? Then the
 * completion should be there. While the request is outstanding its counter is
 * the queue's.
 */
static bool qrdma_umr_overdue(struct qrdma_umr_queue *umr,
			      const struct qrdma_umr_request *request)
{
	struct qrdma_qpc context;

	if (qrdma_command_query(umr->dev, QRDMA_CMD_QUERY_QP, umr->qp.base.qpn,
				&context, sizeof(context)) ||
	    context.type != QRDMA_QP_UMR)
		return false;
	if (context.state != QRDMA_QP_RTS && context.state != QRDMA_QP_ERROR)
		return true;
	return (s32)(le32_to_cpu(context.send_consumer) - request->counter) > 0;
}

/*
 * Wait for an answer. The device's death is an answer too. It is failed when it
 * does not answer for long, and soon when it says that it has: a completion that
 * got lost does not come any more, and with it went what the queue could be
 * recovered by. The card is asked twice, because a completion may come between
 * the look at the CQ and the question.
 */
static void qrdma_umr_wait(struct qrdma_umr_queue *umr,
			   struct qrdma_umr_request *request)
{
	unsigned long begin = jiffies;
	unsigned long ask = begin + QRDMA_UMR_ASK;
	unsigned int overdue = 0;

	while (!wait_for_completion_timeout(&request->done, QRDMA_UMR_POLL)) {
		qrdma_umr_poll(umr);
		if (!qrdma_device_check(umr->dev))
			continue;
		if (time_after(jiffies, begin + qrdma_answer_timeout()))
			qrdma_device_fail(umr->dev, "UMR timeout");
		if (time_before(jiffies, ask))
			continue;
		ask = jiffies + QRDMA_UMR_ASK;
		overdue = qrdma_umr_overdue(umr, request) ? overdue + 1 : 0;
		if (overdue == 2)
			qrdma_device_fail(umr->dev, "UMR without completion");
	}
}

static bool qrdma_umr_can_post(struct qrdma_umr_queue *umr)
{
	bool can_post;

	spin_lock_irq(&umr->lock);
	can_post = qrdma_umr_may_post(umr);
	spin_unlock_irq(&umr->lock);
	return can_post;
}

static int qrdma_umr_errno(const struct qrdma_umr_request *request)
{
	switch (request->outcome) {
	case QRDMA_UMR_DONE:
		return 0;
	case QRDMA_UMR_REFUSED:
		/* A refusal for no reason is still none that worked. */
		return qrdma_status_to_errno(request->syndrome) ?: -EPROTO;
	case QRDMA_UMR_FLUSHED:
		return -EAGAIN;
	default:
		return -EIO;
	}
}

int qrdma_umr_execute(struct qrdma_dev *dev, const struct qrdma_umr *what)
{
	struct qrdma_umr_queue *umr = dev->umr;
	struct qrdma_umr_request request = {};
	int ret;

	if (WARN_ON_ONCE(what->table_length % QRDMA_TABLE_UNIT ||
			 what->first % QRDMA_PBLES_PER_UNIT ||
			 (what->table &&
			  what->table_length > QRDMA_UMR_MAX_INLINE)))
		return -EINVAL;

	down(&umr->slots);
	do {
		while (!qrdma_umr_post(umr, &request, what))
			wait_event(umr->changed, qrdma_umr_can_post(umr));
		qrdma_umr_wait(umr, &request);
		ret = qrdma_umr_errno(&request);
		trace_qrdma_umr(dev, what->key, what->mask,
				what->first * QRDMA_PBLE_SIZE,
				what->table_length, request.syndrome, ret);
	} while (request.outcome == QRDMA_UMR_FLUSHED);
	up(&umr->slots);
	return ret;
}

/* ------------------------------------------------------------- table data */

u32 qrdma_umr_staging_size(struct qrdma_dev *dev)
{
	return dev->umr->staging_size;
}

struct qrdma_umr_staging *qrdma_umr_staging_get(struct qrdma_dev *dev)
{
	struct qrdma_umr_queue *umr = dev->umr;
	struct qrdma_umr_staging *staging;

	down(&umr->staging_slots);
	spin_lock_irq(&umr->lock);
	staging = list_first_entry(&umr->staging_free,
				   struct qrdma_umr_staging, entry);
	list_del(&staging->entry);
	spin_unlock_irq(&umr->lock);
	return staging;
}

void qrdma_umr_staging_put(struct qrdma_dev *dev,
			   struct qrdma_umr_staging *staging)
{
	struct qrdma_umr_queue *umr = dev->umr;

	spin_lock_irq(&umr->lock);
	list_add(&staging->entry, &umr->staging_free);
	spin_unlock_irq(&umr->lock);
	up(&umr->staging_slots);
}

int qrdma_umr_zap(struct qrdma_dev *dev, u32 key, u64 first, u64 count)
{
	struct qrdma_umr umr = {
		.key = key,
		.first = first,
		.table_dma = dev->umr->zeroes_dma,
	};
	int ret;

	for (u64 left = qrdma_table_round_up(count); left;) {
		u32 n = qrdma_table_chunk(left, dev->umr->staging_size);

		umr.table_length = n * QRDMA_PBLE_SIZE;
		ret = qrdma_umr_execute(dev, &umr);
		if (ret)
			return ret;
		umr.first += n;
		left -= n;
	}
	return 0;
}

static void qrdma_umr_free_stagings(struct qrdma_umr_queue *umr)
{
	struct device *device = &umr->dev->pdev->dev;

	for (int i = 0; i < QRDMA_UMR_STAGINGS; i++)
		if (umr->stagings[i].table)
			dma_free_coherent(device, umr->staging_size,
					  umr->stagings[i].table,
					  umr->stagings[i].dma);
	if (umr->zeroes)
		dma_free_coherent(device, umr->staging_size, umr->zeroes,
				  umr->zeroes_dma);
}

static int qrdma_umr_alloc_stagings(struct qrdma_umr_queue *umr)
{
	struct device *device = &umr->dev->pdev->dev;

	umr->staging_size = round_down(umr->dev->limits.max_umr_table_write,
				       QRDMA_TABLE_UNIT);
	INIT_LIST_HEAD(&umr->staging_free);
	sema_init(&umr->staging_slots, QRDMA_UMR_STAGINGS);
	umr->zeroes = dma_alloc_coherent(device, umr->staging_size,
					 &umr->zeroes_dma, GFP_KERNEL);
	if (!umr->zeroes)
		return -ENOMEM;
	for (int i = 0; i < QRDMA_UMR_STAGINGS; i++) {
		struct qrdma_umr_staging *staging = &umr->stagings[i];

		staging->table = dma_alloc_coherent(device, umr->staging_size,
						    &staging->dma, GFP_KERNEL);
		if (!staging->table) {
			qrdma_umr_free_stagings(umr);
			return -ENOMEM;
		}
		list_add_tail(&staging->entry, &umr->staging_free);
	}
	return 0;
}

/* ------------------------------------------------------------ life and end */

static int qrdma_umr_start(struct qrdma_umr_queue *umr)
{
	int ret;

	umr->qp.private = umr;
	umr->qp.complete = qrdma_umr_completed;
	umr->qp.error = qrdma_umr_error;
	ret = qrdma_kernel_qp_create(umr->dev, &umr->qp, QRDMA_QP_UMR,
				     QRDMA_UMR_LOG_ENTRIES,
				     QRDMA_UMR_WQE_LOG_SIZE);
	if (ret)
		return ret;
	ret = qrdma_kernel_qp_restart(&umr->qp);
	if (ret) {
		qrdma_kernel_qp_destroy(&umr->qp);
		return ret;
	}
	qrdma_umr_poll(umr);
	return 0;
}

int qrdma_umr_init(struct qrdma_dev *dev)
{
	struct qrdma_umr_queue *umr;
	int ret;

	BUILD_BUG_ON(sizeof(struct qrdma_umr_wqe) != QRDMA_UMR_INLINE_OFFSET);
	BUILD_BUG_ON(QRDMA_UMR_INLINE_OFFSET + QRDMA_UMR_MAX_INLINE !=
		     1 << QRDMA_UMR_WQE_LOG_SIZE);

	umr = kzalloc_obj(*umr);
	if (!umr)
		return -ENOMEM;
	umr->dev = dev;
	sema_init(&umr->slots, QRDMA_UMR_ENTRIES);
	spin_lock_init(&umr->lock);
	init_waitqueue_head(&umr->changed);
	INIT_WORK(&umr->recover, qrdma_umr_recover);

	/* Revocation waits for recovery, and reclaim may wait for revocation. */
	umr->workqueue = alloc_workqueue("qrdma_umr",
					 WQ_MEM_RECLAIM | WQ_UNBOUND, 1);
	if (!umr->workqueue) {
		ret = -ENOMEM;
		goto free_umr;
	}
	ret = qrdma_umr_alloc_stagings(umr);
	if (ret)
		goto destroy_workqueue;
	dev->umr = umr;
	ret = qrdma_umr_start(umr);
	if (ret)
		goto free_stagings;
	return 0;

free_stagings:
	dev->umr = NULL;
	qrdma_umr_free_stagings(umr);
destroy_workqueue:
	destroy_workqueue(umr->workqueue);
free_umr:
	kfree(umr);
	return ret;
}

void qrdma_umr_destroy(struct qrdma_dev *dev)
{
	struct qrdma_umr_queue *umr = dev->umr;

	if (!umr)
		return;
	/* Nobody posts any more, so nothing queues recovery again. */
	flush_workqueue(umr->workqueue);
	qrdma_kernel_qp_destroy(&umr->qp);
	destroy_workqueue(umr->workqueue);
	qrdma_umr_free_stagings(umr);
	dev->umr = NULL;
	kfree(umr);
}
