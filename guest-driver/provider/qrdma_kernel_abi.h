/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the provider sends to the kernel driver and gets back, each behind the
 * generic uverbs structure of its command. The driver's part is .drv_payload.
 */
#ifndef QRDMA_KERNEL_ABI_H
#define QRDMA_KERNEL_ABI_H

#include <kernel-abi/ib_user_verbs.h>
#include <infiniband/kern-abi.h>

#include "qrdma-abi.h"

/* No nameless copies of the fields: the payloads are used by their names. */
#define _STRUCT_qrdma_ucontext_response struct {}
#define _STRUCT_qrdma_pd_response struct {}
#define _STRUCT_qrdma_create_cq_request struct {}
#define _STRUCT_qrdma_create_cq_response struct {}
#define _STRUCT_qrdma_create_qp_request struct {}
#define _STRUCT_qrdma_create_qp_response struct {}

DECLARE_DRV_CMD(qrdma_alloc_ucontext_cmd, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, qrdma_ucontext_response);
DECLARE_DRV_CMD(qrdma_alloc_pd_cmd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, qrdma_pd_response);
DECLARE_DRV_CMD(qrdma_create_cq_cmd, IB_USER_VERBS_CMD_CREATE_CQ,
		qrdma_create_cq_request, qrdma_create_cq_response);
DECLARE_DRV_CMD(qrdma_create_qp_cmd, IB_USER_VERBS_CMD_CREATE_QP,
		qrdma_create_qp_request, qrdma_create_qp_response);

#endif /* QRDMA_KERNEL_ABI_H */
