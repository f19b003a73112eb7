/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>

#include "tap.h"
#include "trials-regions.h"
#include "trials.h"

#define CQ_DEPTH	1024		/* several pages, so that its ring has a table */
#define QP_DEPTH	16

static struct ibv_context *open_again(struct bench *bench)
{
	return ibv_open_device(bench->device->context->device);
}

/* 0 or an errno; a verb that fails without one is an error as well. */
static int error_of(const void *object)
{
	return object ? 0 : errno ?: EIO;
}

/* --------------------------------------------------------------- context */

static int open_context(struct bench *bench)
{
	errno = 0;
	bench->context = open_again(bench);
	return error_of(bench->context);
}

static void prepare_context(struct bench *bench)
{
	bench->context = open_again(bench);
	tap_need(bench->context, "ibv_open_device");
}

static int close_context(struct bench *bench)
{
	return ibv_close_device(bench->context);
}

static bool undo_context(struct bench *bench)
{
	return !ibv_close_device(bench->context);
}

/* A process that ends has its objects destroyed by closing the file. */
static void prepare_full_context(struct bench *bench)
{
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	prepare_context(bench);
	pd = ibv_alloc_pd(bench->context);
	cq = ibv_create_cq(bench->context, CQ_DEPTH, NULL, NULL, 0);
	tap_need(pd && cq && ibv_reg_mr(pd, bench->memory.address,
					bench->memory.length,
					IBV_ACCESS_LOCAL_WRITE),
		 "objects of a context");
}

/* --------------------------------------------------------------- objects */

static int alloc_pd(struct bench *bench)
{
	errno = 0;
	bench->pd = ibv_alloc_pd(bench->device->context);
	return error_of(bench->pd);
}

static void prepare_pd(struct bench *bench)
{
	tap_need(!alloc_pd(bench), "ibv_alloc_pd");
}

static int dealloc_pd(struct bench *bench)
{
	return ibv_dealloc_pd(bench->pd);
}

static bool undo_pd(struct bench *bench)
{
	return !dealloc_pd(bench);
}

static int create_channel(struct bench *bench)
{
	errno = 0;
	bench->channel = ibv_create_comp_channel(bench->device->context);
	return error_of(bench->channel);
}

static bool undo_channel(struct bench *bench)
{
	return !ibv_destroy_comp_channel(bench->channel);
}

static int create_cq(struct bench *bench)
{
	errno = 0;
	bench->cq = ibv_create_cq(bench->device->context, CQ_DEPTH, NULL, NULL,
				  0);
	return error_of(bench->cq);
}

static void prepare_cq(struct bench *bench)
{
	tap_need(!create_cq(bench), "ibv_create_cq");
}

static int destroy_cq(struct bench *bench)
{
	return ibv_destroy_cq(bench->cq);
}

static bool undo_cq(struct bench *bench)
{
	return !destroy_cq(bench);
}

static int create_qp(struct bench *bench)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = bench->cq,
		.recv_cq = bench->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = QP_DEPTH,
			.max_recv_wr = QP_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	errno = 0;
	bench->qp = ibv_create_qp(bench->device->pd, &attr);
	return error_of(bench->qp);
}

static void prepare_qp(struct bench *bench)
{
	prepare_cq(bench);
	tap_need(!create_qp(bench), "ibv_create_qp");
}

/* With itself. */
static int connect_qp(struct bench *bench)
{
	return rc_connect(bench->device, bench->qp, bench->qp->qp_num);
}

static int destroy_qp(struct bench *bench)
{
	return ibv_destroy_qp(bench->qp);
}

static bool undo_qp(struct bench *bench)
{
	return !destroy_qp(bench) && !destroy_cq(bench);
}

/* ----------------------------------------------------------------- table */

const struct trial trials[] = {
	{ .name = "open", .own_errors = true, .attempt = open_context,
	  .undo = undo_context },
	{ .name = "close", .gives_back = true, .prepare = prepare_context,
	  .attempt = close_context },
	{ .name = "close-full", .gives_back = true, .begin = begin_page,
	  .prepare = prepare_full_context, .attempt = close_context,
	  .end = end_memory },
	{ .name = "alloc-pd", .attempt = alloc_pd, .undo = undo_pd },
	{ .name = "dealloc-pd", .gives_back = true,
	  .prepare = prepare_pd, .attempt = dealloc_pd },
	{ .name = "create-channel", .attempt = create_channel,
	  .undo = undo_channel },
	{ .name = "create-cq", .attempt = create_cq, .undo = undo_cq },
	{ .name = "destroy-cq", .gives_back = true,
	  .prepare = prepare_cq, .attempt = destroy_cq },
	{ .name = "create-qp", .prepare = prepare_cq, .attempt = create_qp,
	  .undo = undo_qp },
	{ .name = "connect-qp", .prepare = prepare_qp, .attempt = connect_qp,
	  .undo = undo_qp },
	{ .name = "destroy-qp", .gives_back = true,
	  .prepare = prepare_qp, .attempt = destroy_qp,
	  .undo = undo_cq },

	{ .name = "user-level-0", .begin = begin_page, .attempt = reg_user,
	  .undo = undo_user, .end = end_memory },
	{ .name = "user-level-1", .begin = begin_level_1, .attempt = reg_user,
	  .undo = undo_user, .end = end_memory },
	{ .name = "user-level-2", .begin = begin_level_2, .attempt = reg_user,
	  .undo = undo_user, .end = end_memory },
	{ .name = "user-pool-grows", .begin = begin_pool,
	  .prepare = prepare_pool, .attempt = reg_user, .undo = undo_pool,
	  .end = end_pool },
	{ .name = "user-deregister", .gives_back = true, .begin = begin_level_2,
	  .prepare = prepare_user, .attempt = dereg, .end = end_memory },
	{ .name = "reregister", .begin = begin_level_2,
	  .prepare = prepare_user, .attempt = rereg, .right = right_rereg,
	  .undo = undo_rereg, .end = end_memory },
	{ .name = "reregister-rights", .begin = begin_level_1,
	  .prepare = prepare_user, .attempt = rereg_rights,
	  .undo = undo_user, .end = end_memory },

	{ .name = "pinned", .begin = begin_buffer, .attempt = reg_pinned,
	  .right = right_buffer, .undo = undo_region, .end = end_buffer },
	{ .name = "pinned-deregister", .gives_back = true, .begin = begin_buffer,
	  .prepare = prepare_pinned, .attempt = dereg, .end = end_buffer },
	{ .name = "pinned-revoke", .gives_back = true,
	  .prepare = prepare_pinned_buffer,
	  .attempt = revoke_buffer, .undo = undo_revoked },
	{ .name = "dynamic", .begin = begin_buffer, .attempt = reg_dynamic,
	  .right = right_buffer, .undo = undo_region, .end = end_buffer },
	{ .name = "dynamic-deregister", .gives_back = true, .begin = begin_buffer,
	  .prepare = prepare_dynamic, .attempt = dereg, .end = end_buffer },
	{ .name = "dynamic-revoke", .gives_back = true,
	  .prepare = prepare_dynamic_buffer,
	  .attempt = revoke_buffer, .undo = undo_revoked },
	{ .name = "move", .begin = begin_region, .attempt = move,
	  .right = right_region, .end = end_region },
	{ .name = "page-fault", .workers = true, .begin = begin_region,
	  .prepare = prepare_moved, .attempt = access_pages,
	  .undo = undo_access, .end = end_region },
	{},
};

struct bench *bench_create(void)
{
	struct bench *bench = calloc(1, sizeof(*bench));

	tap_need(bench, "no memory");
	bench->device = rc_open();
	bench->name = ibv_get_device_name(bench->device->context->device);
	bench->transfer = transfer_create(bench->device);
	return bench;
}

void bench_destroy(struct bench *bench)
{
	transfer_destroy(bench->transfer);
	rc_close(bench->device);
	free(bench);
}
