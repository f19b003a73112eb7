/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that post, poll, create and destroy on one completion queue at the same
 * time. Each queue pair is connected to itself and writes to its own memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"
#include "tap.h"

#define WORKERS		3
#define DEPTH		16
#define CQ_DEPTH	512
#define MESSAGES	3000
#define SUCCESSORS	100
#define BATCH		8
#define CELL		64

/* wr_id of the queue pairs that are destroyed with their work. */
#define ABANDONED	UINT64_MAX

struct bench {
	struct rc_device *device;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buffer;

	atomic_bool stop;
	atomic_ullong drained;		/* times the CQ was found empty */

	/* By worker; written by the poller. */
	atomic_uint completed[WORKERS];
	uint32_t wrong;
};

struct worker {
	struct bench *bench;
	unsigned int index;
	pthread_t thread;
	struct ibv_qp *qp;
};

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(qp, attr, mask);

	if (ret)
		tap_bail("ibv_modify_qp to state %d: %s", attr->qp_state,
			 strerror(ret));
}

static void connect_to_itself(struct bench *bench, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REGION_ACCESS,
	};

	modify(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp->qp_num,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = bench->device->gid,
				.sgid_index = bench->device->gid_index,
				.hop_limit = 1,
			},
		},
	};
	modify(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr) { .qp_state = IBV_QPS_RTS, .timeout = 10 };
	modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
	       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static struct ibv_qp *create_qp(struct bench *bench)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = bench->cq,
		.recv_cq = bench->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(bench->device->pd, &attr);

	tap_need(qp, "ibv_create_qp");
	connect_to_itself(bench, qp);
	return qp;
}

/* Write from one cell of the buffer to the next. 0 or an errno value. */
static int post_write(struct bench *bench, struct ibv_qp *qp,
		      unsigned int cell, uint64_t id)
{
	uint64_t from = (uintptr_t)bench->buffer + (size_t)cell * 2 * CELL;
	struct ibv_sge sge = {
		.addr = from, .length = CELL, .lkey = bench->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { from + CELL, bench->mr->rkey },
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* Completions of a worker's come in the order of its requests. */
static void check(struct bench *bench, const struct ibv_wc *wc)
{
	uint32_t worker = wc->wr_id >> 32;
	uint32_t number = wc->wr_id;

	if (wc->wr_id == ABANDONED)
		return;
	if (worker >= WORKERS || wc->status != IBV_WC_SUCCESS ||
	    number != atomic_load(&bench->completed[worker])) {
		bench->wrong++;
		return;
	}
	atomic_fetch_add(&bench->completed[worker], 1);
}

static void *poller(void *argument)
{
	struct bench *bench = argument;
	struct ibv_wc wc[BATCH];

	while (!atomic_load(&bench->stop)) {
		int n = ibv_poll_cq(bench->cq, BATCH, wc);

		if (n < 0)
			tap_bail("ibv_poll_cq: %d", n);
		for (int i = 0; i < n; i++)
			check(bench, &wc[i]);
		if (n < BATCH) {
			atomic_fetch_add(&bench->drained, 1);
			sched_yield();
		}
	}
	return NULL;
}

static void *post_all(void *argument)
{
	struct worker *worker = argument;
	struct bench *bench = worker->bench;
	uint32_t posted = 0;

	while (posted < MESSAGES) {
		int ret = post_write(bench, worker->qp, worker->index,
				     (uint64_t)worker->index << 32 | posted);

		if (!ret)
			posted++;
		else if (ret == ENOMEM)
			sched_yield();
		else
			tap_bail("ibv_post_send: %s", strerror(ret));
	}
	while (atomic_load(&bench->completed[worker->index]) < MESSAGES)
		sched_yield();
	return NULL;
}

/* What is left of it in the CQ must be gone before the next one fills it. */
static void wait_drained(struct bench *bench)
{
	unsigned long long before = atomic_load(&bench->drained);

	while (atomic_load(&bench->drained) < before + 2)
		sched_yield();
}

static void create_and_abandon(struct bench *bench)
{
	struct ibv_qp *qp = create_qp(bench);

	for (int i = 0; i < DEPTH; i++)
		if (post_write(bench, qp, WORKERS, ABANDONED))
			tap_bail("a queue pair does not take its first requests");
	tap_need(!ibv_destroy_qp(qp), "ibv_destroy_qp");
	wait_drained(bench);
}

int main(void)
{
	struct worker workers[WORKERS];
	struct bench bench = { 0 };
	pthread_t polling;
	size_t length = 2 * CELL * (WORKERS + 1);

	tap_begin();
	bench.device = rc_open();
	bench.cq = ibv_create_cq(bench.device->context, CQ_DEPTH, NULL, NULL, 0);
	tap_need(bench.cq, "ibv_create_cq");
	bench.buffer = calloc(1, length);
	tap_need(bench.buffer, "calloc");
	bench.mr = ibv_reg_mr(bench.device->pd, bench.buffer, length,
			      REGION_ACCESS);
	tap_need(bench.mr, "ibv_reg_mr");

	tap_step("threads at work");
	tap_need(!pthread_create(&polling, NULL, poller, &bench), "pthread");
	for (unsigned int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker) {
			.bench = &bench, .index = i, .qp = create_qp(&bench),
		};
		memset(bench.buffer + i * 2 * CELL, i + 1, CELL);
	}
	for (unsigned int i = 0; i < WORKERS; i++)
		tap_need(!pthread_create(&workers[i].thread, NULL, post_all,
					 &workers[i]), "pthread");
	for (int i = 0; i < SUCCESSORS; i++)
		create_and_abandon(&bench);
	for (unsigned int i = 0; i < WORKERS; i++)
		pthread_join(workers[i].thread, NULL);
	atomic_store(&bench.stop, true);
	pthread_join(polling, NULL);

	tap_figures("threads=%d messages=%d abandoned=%d wrong=%u", WORKERS,
		    WORKERS * MESSAGES, SUCCESSORS, bench.wrong);
	tap_ok(!bench.wrong,
	       "%d threads post, one polls: all complete, each in its order",
	       WORKERS);
	for (unsigned int i = 0; i < WORKERS; i++) {
		uint8_t *cells = bench.buffer + i * 2 * CELL;

		tap_ok(!memcmp(cells, cells + CELL, CELL),
		       "thread %u: its last bytes arrived", i);
		tap_need(!ibv_destroy_qp(workers[i].qp), "ibv_destroy_qp");
	}
	tap_ok(true, "%d queue pairs were destroyed with their work meanwhile",
	       SUCCESSORS);

	tap_need(!ibv_dereg_mr(bench.mr), "ibv_dereg_mr");
	tap_need(!ibv_destroy_cq(bench.cq), "ibv_destroy_cq");
	free(bench.buffer);
	rc_close(bench.device);
	return tap_end();
}
