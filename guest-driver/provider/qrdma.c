// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device and its user contexts.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "qrdma.h"
#include "qrdma_kernel_abi.h"

static void qrdma_free_context(struct ibv_context *context);

static const struct verbs_context_ops qrdma_context_ops = {
	.alloc_pd = qrdma_alloc_pd,
	.create_cq = qrdma_create_cq,
	.create_qp = qrdma_create_qp,
	.dealloc_pd = qrdma_dealloc_pd,
	.dereg_mr = qrdma_dereg_mr,
	.destroy_cq = qrdma_destroy_cq,
	.destroy_qp = qrdma_destroy_qp,
	.free_context = qrdma_free_context,
	.modify_qp = qrdma_modify_qp,
	.poll_cq = qrdma_poll_cq,
	.post_recv = qrdma_post_recv,
	.post_send = qrdma_post_send,
	.query_device_ex = qrdma_query_device,
	.query_port = qrdma_query_port,
	.query_qp = qrdma_query_qp,
	.reg_dmabuf_mr = qrdma_reg_dmabuf_mr,
	.reg_mr = qrdma_reg_mr,
	.req_notify_cq = qrdma_req_notify_cq,
	.rereg_mr = qrdma_rereg_mr,
};

/*
 * Take over what the kernel says of the card. A limit beyond what this
 * provider's WQEs can hold is lowered to that.
 */
static int qrdma_set_limits(struct qrdma_context *ctx,
			    const struct qrdma_ucontext_response *response)
{
	if (!response->max_sge || !response->max_ring_entries) {
		verbs_err(&ctx->vctx, "the driver reports no limits\n");
		return EPROTO;
	}

	ctx->max_sge = response->max_sge;
	if (ctx->max_sge > QRDMA_MAX_SGE)
		ctx->max_sge = QRDMA_MAX_SGE;
	ctx->max_inline = response->max_inline;
	if (ctx->max_inline > QRDMA_MAX_INLINE)
		ctx->max_inline = QRDMA_MAX_INLINE;
	ctx->max_ring_entries = response->max_ring_entries;
	if (ctx->max_ring_entries > 1u << QRDMA_LOG_MAX_RING_ENTRIES)
		ctx->max_ring_entries = 1u << QRDMA_LOG_MAX_RING_ENTRIES;

	return 0;
}

static struct verbs_context *qrdma_alloc_context(struct ibv_device *device,
						 int cmd_fd, void *private_data)
{
	struct qrdma_alloc_ucontext_cmd_resp resp = {};
	struct ibv_get_context cmd = {};
	struct qrdma_context *ctx;
	int ret;

	ctx = verbs_init_and_alloc_context(device, cmd_fd, ctx, vctx,
					   RDMA_DRIVER_UNKNOWN);
	if (!ctx)
		return NULL;

	ret = ibv_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), NULL,
				  &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err_context;

	ret = qrdma_set_limits(ctx, &resp.drv_payload);
	if (ret)
		goto err_context;

	ctx->doorbells = mmap(NULL, QRDMA_PAGE_SIZE, PROT_WRITE, MAP_SHARED,
			      cmd_fd, resp.drv_payload.doorbell_offset);
	if (ctx->doorbells == MAP_FAILED) {
		ret = errno;
		goto err_context;
	}

	pthread_mutex_init(&ctx->qp_mutex, NULL);
	pthread_spin_init(&ctx->qp_table_lock, PTHREAD_PROCESS_PRIVATE);
	verbs_set_ops(&ctx->vctx, &qrdma_context_ops);

	return &ctx->vctx;

err_context:
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
	errno = ret;
	return NULL;
}

static void qrdma_free_context(struct ibv_context *context)
{
	struct qrdma_context *ctx = to_qctx(context);
	unsigned int i;

	for (i = 0; i < QRDMA_QP_LEAVES; i++)
		free(ctx->qp_leaves[i]);
	pthread_spin_destroy(&ctx->qp_table_lock);
	pthread_mutex_destroy(&ctx->qp_mutex);
	munmap(ctx->doorbells, QRDMA_PAGE_SIZE);
	verbs_uninit_context(&ctx->vctx);
	free(ctx);
}

static struct verbs_device *
qrdma_alloc_device(struct verbs_sysfs_dev *sysfs_dev)
{
	struct qrdma_device *dev;

	dev = calloc(1, sizeof(*dev));
	if (!dev)
		return NULL;

	return &dev->vdev;
}

static void qrdma_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct qrdma_device, vdev));
}

/* The kernel driver is out of tree and has no driver id: match the PCI id. */
static const struct verbs_match_ent qrdma_match_table[] = {
	VERBS_PCI_MATCH(QRDMA_PCI_VENDOR_ID, QRDMA_PCI_DEVICE_ID, NULL),
	{},
};

static const struct verbs_device_ops qrdma_device_ops = {
	.name = "qrdma",
	.match_min_abi_version = QRDMA_UVERBS_ABI_VERSION,
	.match_max_abi_version = QRDMA_UVERBS_ABI_VERSION,
	.match_table = qrdma_match_table,
	.alloc_device = qrdma_alloc_device,
	.uninit_device = qrdma_uninit_device,
	.alloc_context = qrdma_alloc_context,
};

PROVIDER_DRIVER(qrdma, qrdma_device_ops);
