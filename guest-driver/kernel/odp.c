// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: page faults. The card suspends a queue pair whose access found a page
 * absent, and says so; a worker has the page mapped and resumes the queue pair,
 * or has its access fail. A suspended queue pair waits for ever, so every fault
 * is answered, also those for which there is nothing to be done.
 */
#include <linux/slab.h>

#include "region.h"
#include "trace.h"

struct qrdma_odp {
	struct workqueue_struct *workqueue;
};

struct qrdma_fault {
	struct work_struct work;
	struct qrdma_dev *dev;
	u32 qpn;
	u32 key;
	u64 address;
	u32 length;
	u32 token;
	u32 loads;			/* of the region, when the fault was taken in */
};

/* Times that a queue pair is resumed before it is given up. */
#define QRDMA_RESUME_TRIES	3

int qrdma_odp_init(struct qrdma_dev *dev)
{
	struct qrdma_odp *odp;

	odp = kzalloc_obj(*odp);
	if (!odp)
		return -ENOMEM;
	/* Unbound: a fault may wait for the fences of a buffer's move. */
	odp->workqueue = alloc_workqueue("qrdma_odp", WQ_UNBOUND, 0);
	if (!odp->workqueue) {
		kfree(odp);
		return -ENOMEM;
	}
	dev->odp = odp;
	return 0;
}

void qrdma_odp_destroy(struct qrdma_dev *dev)
{
	struct qrdma_odp *odp = dev->odp;

	if (!odp)
		return;
	/* Faults come under this lock: none is queued from here on. */
	mutex_lock(&dev->async_eq.drain);
	dev->odp = NULL;
	mutex_unlock(&dev->async_eq.drain);
	destroy_workqueue(odp->workqueue);
	kfree(odp);
}

/* The token is the fault's own, so the queue pair is still the one that faulted. */
static void qrdma_fault_give_up(const struct qrdma_fault *fault, u16 status)
{
	struct qrdma_modify_qp in = {
		.mask = cpu_to_le64(QRDMA_QP_MASK_STATE),
		.context.state = QRDMA_QP_ERROR,
	};

	dev_err(&fault->dev->pdev->dev,
		"QP 0x%x cannot be resumed after a page fault: %s\n",
		fault->qpn, qrdma_status_name(status));
	qrdma_command(fault->dev, QRDMA_CMD_MODIFY_QP, fault->qpn, &in,
		      sizeof(in));
}

/*
 * @error 0: try the access again. Otherwise it fails. The queue pair may have
 * been destroyed or reset meanwhile; then the token names nothing any more. A
 * card that refuses for another reason would leave the queue pair suspended: its
 * work requests are flushed rather.
 */
static void qrdma_fault_resume(const struct qrdma_fault *fault, int error)
{
	struct qrdma_resume in = {
		.token = cpu_to_le32(fault->token),
		.failed = cpu_to_le32(error ? 1 : 0),
	};
	u16 status;

	trace_qrdma_resume(fault->dev, fault->qpn, fault->key, fault->token,
			   error);
	for (int i = 0; i < QRDMA_RESUME_TRIES; i++) {
		qrdma_command_status(fault->dev, QRDMA_CMD_RESUME_PAGE_FAULT,
				     fault->qpn, &in, sizeof(in), NULL, 0,
				     &status);
		if (status == QRDMA_STATUS_OK ||
		    status == QRDMA_STATUS_NO_OBJECT ||
		    status == QRDMA_STATUS_BAD_TOKEN ||
		    status == QRDMA_STATUS_FATAL_STATE)
			return;
	}
	qrdma_fault_give_up(fault, status);
}

/* What the card says it needs must lie in the region; it is not mapped by parts. */
static bool qrdma_fault_in_region(const struct qrdma_fault *fault,
				  const struct qrdma_mr *mr)
{
	u64 offset = fault->address - mr->ibmr.iova;

	return fault->address >= mr->ibmr.iova &&
	       offset < mr->ibmr.length &&
	       fault->length <= mr->ibmr.length - offset;
}

static int qrdma_fault_resolve(const struct qrdma_fault *fault)
{
	struct qrdma_mr *mr;
	int ret = -EFAULT;

	mr = qrdma_mkey_get(fault->dev, fault->key);
	if (!mr)
		return -ENOENT;
	if (qrdma_fault_in_region(fault, mr))
		ret = qrdma_dynamic_fault(mr, fault->loads);
	qrdma_mkey_put(mr);
	return ret;
}

static void qrdma_fault_work(struct work_struct *work)
{
	struct qrdma_fault *fault = container_of(work, struct qrdma_fault,
						 work);

	qrdma_fault_resume(fault, qrdma_fault_resolve(fault));
	kfree(fault);
}

/* 0 if there is no such region any more. */
static u32 qrdma_fault_loads(struct qrdma_dev *dev, u32 key)
{
	struct qrdma_mr *mr = qrdma_mkey_get(dev, key);
	u32 loads = 0;

	if (mr) {
		loads = READ_ONCE(mr->loads);
		qrdma_mkey_put(mr);
	}
	return loads;
}

static void qrdma_fault_read(struct qrdma_fault *fault, struct qrdma_dev *dev,
			     const struct qrdma_eqe *eqe)
{
	fault->dev = dev;
	fault->qpn = le32_to_cpu(eqe->number);
	fault->key = le32_to_cpu(eqe->key);
	fault->address = le64_to_cpu(eqe->address);
	fault->length = le32_to_cpu(eqe->length);
	fault->token = le32_to_cpu(eqe->token);
}

void qrdma_page_fault(struct qrdma_dev *dev, const struct qrdma_eqe *eqe)
{
	struct qrdma_fault *fault = NULL;
	struct qrdma_fault refused;

	if (dev->odp)
		fault = kzalloc_obj(*fault);
	if (!fault) {
		qrdma_fault_read(&refused, dev, eqe);
		qrdma_fault_resume(&refused, dev->odp ? -ENOMEM : -ESHUTDOWN);
		return;
	}
	qrdma_fault_read(fault, dev, eqe);
	fault->loads = qrdma_fault_loads(dev, fault->key);
	INIT_WORK(&fault->work, qrdma_fault_work);
	queue_work(dev->odp->workqueue, &fault->work);
}
