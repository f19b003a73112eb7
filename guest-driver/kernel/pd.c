// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: protection domains. The card has no object for them, they are numbers
 * in the contexts of keys and queue pairs.
 */
#include "qrdma.h"

int qrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibpd->device);
	struct qrdma_pd_response response = {};
	struct qrdma_pd *pd = to_qpd(ibpd);
	int ret;

	ret = ib_is_udata_in_empty(udata);
	if (ret)
		return ret;
	ret = ida_alloc_range(&dev->pds, QRDMA_DRIVER_PD + 1,
			      dev->limits.max_pds - 1, GFP_KERNEL);
	if (ret < 0)
		return ret;
	pd->pdn = ret;

	if (udata) {
		response.pdn = pd->pdn;
		ret = ib_respond_udata(udata, response);
		if (ret) {
			ida_free(&dev->pds, pd->pdn);
			return ret;
		}
	}
	return 0;
}

int qrdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qrdma_dev *dev = to_qdev(ibpd->device);
	int ret;

	ret = ib_no_udata_io(udata);
	if (ret)
		return ret;
	ida_free(&dev->pds, to_qpd(ibpd)->pdn);
	return 0;
}
