// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake-kernel.h"
#include "qrdma_kernel_abi.h"

uint32_t fake_next_qpn = QRDMA_FIRST_QPN;
int fake_error;

struct qrdma_context *fake_context(void)
{
	static struct ibv_device device = { .name = "fake" };
	struct qrdma_context *ctx = calloc(1, sizeof(*ctx));

	ctx->vctx.context.device = &device;
	ctx->doorbells = calloc(1, QRDMA_PAGE_SIZE);
	ctx->max_sge = QRDMA_MAX_SGE;
	ctx->max_inline = QRDMA_MAX_INLINE;
	ctx->max_ring_entries = 1u << QRDMA_LOG_MAX_RING_ENTRIES;
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	pthread_spin_init(&ctx->qp_table_lock, PTHREAD_PROCESS_PRIVATE);
	return ctx;
}

void fake_context_free(struct qrdma_context *ctx)
{
	unsigned int i;

	for (i = 0; i < QRDMA_QP_LEAVES; i++)
		free(ctx->qp_leaves[i]);
	pthread_spin_destroy(&ctx->qp_table_lock);
	pthread_mutex_destroy(&ctx->qp_mutex);
	free(ctx->doorbells);
	free(ctx);
}

uint64_t fake_doorbell(struct qrdma_context *ctx, uint32_t offset)
{
	uint64_t *slot = (uint64_t *)((uint8_t *)ctx->doorbells + offset);
	uint64_t value = le64toh(*slot);

	*slot = 0;
	return value;
}

/* Learn the consumer counter, if the doorbell has been rung. */
static void read_consumer(struct fake_cq *fake)
{
	struct qrdma_context *ctx = to_qctx(fake->cq->vcq.cq.context);
	uint64_t value = fake_doorbell(ctx, QRDMA_DOORBELL_CQ);

	if (value)
		fake->consumer = value >> QRDMA_DOORBELL_COUNTER_SHIFT;
}

bool fake_raw_cqe(struct fake_cq *fake, struct qrdma_cqe cqe)
{
	struct qrdma_cqe *ring = fake->cq->ring.address;
	uint32_t entries = fake->cq->entries;

	read_consumer(fake);
	if (fake->producer - fake->consumer >= entries)
		return false;

	cqe.phase = fake->producer & entries ? 0 : 1;
	ring[fake->producer++ & (entries - 1)] = cqe;
	return true;
}

bool fake_cqe(struct fake_cq *fake, struct qrdma_qp *qp, uint8_t opcode,
	      uint32_t wqe_counter, uint8_t status)
{
	struct qrdma_cqe cqe = {
		.wqe_counter = htole32(wqe_counter),
		.qpn = htole32(qp->qpn),
		.opcode = opcode,
		.status = status,
	};

	return fake_raw_cqe(fake, cqe);
}

/* ------------------------------------------ what libibverbs would provide */

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *fmt,
		 ...)
{
}

int ibv_cmd_create_cq(struct ibv_context *context, int cqe,
		      struct ibv_comp_channel *channel, int comp_vector,
		      struct ibv_cq *cq, struct ibv_create_cq *cmd,
		      size_t cmd_size, struct ib_uverbs_create_cq_resp *resp,
		      size_t resp_size)
{
	struct qrdma_create_cq_cmd *ours =
		container_of(cmd, struct qrdma_create_cq_cmd, ibv_cmd);
	struct qrdma_create_cq_request *request = &ours->drv_payload;

	if (fake_error)
		return fake_error;
	/* The driver's rules. */
	if (request->ring_length !=
		    ((1ull << (request->log_entries + QRDMA_CQE_LOG_SIZE)) +
		     QRDMA_PAGE_SIZE - 1) / QRDMA_PAGE_SIZE * QRDMA_PAGE_SIZE ||
	    request->ring_address % QRDMA_PAGE_SIZE ||
	    cqe > 1 << request->log_entries)
		return EINVAL;

	cq->context = context;
	cq->cqe = 1 << request->log_entries;
	return 0;
}

int ibv_cmd_destroy_cq(struct ibv_cq *cq)
{
	return fake_error;
}

int ibv_cmd_create_qp(struct ibv_pd *pd, struct ibv_qp *qp,
		      struct ibv_qp_init_attr *attr, struct ibv_create_qp *cmd,
		      size_t cmd_size, struct ib_uverbs_create_qp_resp *resp,
		      size_t resp_size)
{
	struct qrdma_create_qp_cmd_resp *ours =
		container_of(resp, struct qrdma_create_qp_cmd_resp, ibv_resp);

	if (fake_error)
		return fake_error;
	ours->drv_payload.qpn = fake_next_qpn++;
	return 0;
}

int ibv_cmd_destroy_qp(struct ibv_qp *qp)
{
	return fake_error;
}

int ibv_cmd_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		      int attr_mask, struct ibv_modify_qp *cmd, size_t cmd_size)
{
	return fake_error;
}

int ibv_cmd_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr,
		     int attr_mask, struct ibv_qp_init_attr *init_attr,
		     struct ibv_query_qp *cmd, size_t cmd_size)
{
	return fake_error;
}
