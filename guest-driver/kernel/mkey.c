// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: keys. Which indices are taken, the commands that make and destroy
 * mkeys, and the look-up that page faults use.
 */
#include <linux/slab.h>

#include "region.h"

static unsigned int max_mkeys;
module_param(max_mkeys, uint, 0644);
MODULE_PARM_DESC(max_mkeys,
		 "use only so many mkey indices, so that each comes again sooner (0: all there are)");

struct qrdma_mkey_table {
	/*
	 * By index. An entry that is reserved but empty is a key that page
	 * faults do not find.
	 */
	struct xarray mrs;
	struct mutex lock;		/* next, generation */
	u32 next;
	u32 generation;			/* how often next has wrapped */
};

int qrdma_mkeys_init(struct qrdma_dev *dev)
{
	struct qrdma_mkey_table *mkeys;

	mkeys = kzalloc_obj(*mkeys);
	if (!mkeys)
		return -ENOMEM;
	xa_init_flags(&mkeys->mrs, XA_FLAGS_ALLOC1);
	mutex_init(&mkeys->lock);
	mkeys->next = 1;
	dev->mkeys = mkeys;
	return 0;
}

void qrdma_mkeys_destroy(struct qrdma_dev *dev)
{
	struct qrdma_mkey_table *mkeys = dev->mkeys;

	if (!mkeys)
		return;
	WARN_ON(!xa_empty(&mkeys->mrs));
	xa_destroy(&mkeys->mrs);
	mutex_destroy(&mkeys->lock);
	kfree(mkeys);
	dev->mkeys = NULL;
}

/* Of which index 0 is none. */
static u32 qrdma_max_mkeys(const struct qrdma_dev *dev)
{
	u32 wanted = READ_ONCE(max_mkeys);

	if (!wanted)
		return dev->limits.max_mkeys;
	return clamp(wanted, 2, dev->limits.max_mkeys);
}

int qrdma_mkey_reserve(struct qrdma_dev *dev, u32 *key)
{
	struct qrdma_mkey_table *mkeys = dev->mkeys;
	struct xa_limit limit = XA_LIMIT(1, qrdma_max_mkeys(dev) - 1);
	u32 index;
	u8 variant;
	int ret;

	mutex_lock(&mkeys->lock);
	ret = xa_alloc_cyclic(&mkeys->mrs, &index, NULL, limit, &mkeys->next,
			      GFP_KERNEL);
	if (ret == 1)
		mkeys->generation++;
	/*
	 * Within a generation no index is given out twice, so its next owner
	 * has another variant.
	 */
	variant = mkeys->generation + index;
	mutex_unlock(&mkeys->lock);
	if (ret < 0)
		return ret == -EBUSY ? -ENOSPC : ret;

	*key = index << 8 | variant;
	return 0;
}

void qrdma_mkey_release(struct qrdma_dev *dev, u32 key)
{
	xa_erase(&dev->mkeys->mrs, QRDMA_MKEY_INDEX(key));
}

int qrdma_mkey_create(struct qrdma_dev *dev, u32 key,
		      const struct qrdma_mkc *mkc)
{
	return qrdma_create_object(dev, QRDMA_CMD_CREATE_MKEY,
				   QRDMA_CMD_DESTROY_MKEY,
				   QRDMA_MKEY_INDEX(key), mkc, sizeof(*mkc));
}

int qrdma_mkey_query(struct qrdma_dev *dev, u32 key, struct qrdma_mkc *mkc)
{
	return qrdma_command_query(dev, QRDMA_CMD_QUERY_MKEY,
				   QRDMA_MKEY_INDEX(key), mkc, sizeof(*mkc));
}

void qrdma_mkey_destroy(struct qrdma_dev *dev, u32 key)
{
	qrdma_destroy_object(dev, QRDMA_CMD_DESTROY_MKEY,
			     QRDMA_MKEY_INDEX(key));
}

void qrdma_mkey_publish(struct qrdma_mr *mr)
{
	struct qrdma_mkey_table *mkeys = mr_to_qdev(mr)->mkeys;

	refcount_set(&mr->users, 1);
	init_completion(&mr->unused);
	/* The index is reserved: nothing is allocated, and nothing can fail. */
	xa_store(&mkeys->mrs, QRDMA_MKEY_INDEX(mr->key), mr, GFP_KERNEL);
}

void qrdma_mkey_withdraw(struct qrdma_mr *mr)
{
	struct qrdma_mkey_table *mkeys = mr_to_qdev(mr)->mkeys;

	/* The index stays reserved. */
	xa_store(&mkeys->mrs, QRDMA_MKEY_INDEX(mr->key), XA_ZERO_ENTRY,
		 GFP_KERNEL);
	qrdma_mkey_put(mr);
	wait_for_completion(&mr->unused);
}

struct qrdma_mr *qrdma_mkey_get(struct qrdma_dev *dev, u32 key)
{
	struct qrdma_mkey_table *mkeys = dev->mkeys;
	struct qrdma_mr *mr;

	/* Under the lock, what is in the table holds a reference of its own. */
	xa_lock(&mkeys->mrs);
	mr = xa_load(&mkeys->mrs, QRDMA_MKEY_INDEX(key));
	if (mr && (mr->key != key || !refcount_inc_not_zero(&mr->users)))
		mr = NULL;
	xa_unlock(&mkeys->mrs);
	return mr;
}

void qrdma_mkey_put(struct qrdma_mr *mr)
{
	if (refcount_dec_and_test(&mr->users))
		complete(&mr->unused);
}
