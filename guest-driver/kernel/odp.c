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
};

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

/*
 * @error 0: try the access again. Otherwise it fails. The queue pair may have
 * been destroyed or reset meanwhile; then the token names nothing any more.
 */
static void qrdma_fault_resume(const struct qrdma_fault *fault, int error)
{
	struct qrdma_resume in = {
		.token = cpu_to_le32(fault->token),
		.failed = cpu_to_le32(error ? 1 : 0),
	};

	trace_qrdma_resume(fault->dev, fault->qpn, fault->key, fault->token,
			   error);
	qrdma_command(fault->dev, QRDMA_CMD_RESUME_PAGE_FAULT, fault->qpn, &in,
		      sizeof(in));
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
		ret = qrdma_dynamic_fault(mr);
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
	INIT_WORK(&fault->work, qrdma_fault_work);
	queue_work(dev->odp->workqueue, &fault->work);
}
