/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * qrdma: user-space provider of the card that exists only in QEMU.
 *
 * Rings are user memory that the kernel driver hands to the card; doorbells are
 * one page of the card's BAR. Posting and polling make no system call.
 *
 * Locks, outermost first:
 *  - qrdma_context.qp_mutex: creation, reset and destruction of queue pairs. A
 *    QP number is not handed out again while completions of its former owner
 *    can still be found.
 *  - qrdma_cq.lock: the consumer side of a completion ring, and what polling
 *    reads of the QPs that complete there. Of two CQs, the lower address first.
 *  - qrdma_context.qp_table_lock: the table of QPs by number.
 *  - qrdma_work_queue.lock: the producer side of a work ring.
 */
#ifndef QRDMA_H
#define QRDMA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "qrdma_hw.h"

/* Rings and the doorbell page are made of the card's pages, not the CPU's. */
#define QRDMA_PAGE_SIZE 4096

/*
 * A QP number that no QP has (it is below QRDMA_FIRST_QPN): stands in
 * completions that polling has to pass over.
 */
#define QRDMA_NO_QPN 0

struct qrdma_device {
	struct verbs_device vdev;
};

/* The table of QPs: two levels, so that it grows with the numbers in use. */
#define QRDMA_QP_TABLE_SHIFT 10
#define QRDMA_QP_LEAF_SIZE (1u << QRDMA_QP_TABLE_SHIFT)
#define QRDMA_QP_LEAVES (1u << (24 - QRDMA_QP_TABLE_SHIFT))

struct qrdma_qp_leaf {
	struct qrdma_qp *qps[QRDMA_QP_LEAF_SIZE];
};

struct qrdma_context {
	struct verbs_context vctx;
	void *doorbells;
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t max_ring_entries;
	pthread_mutex_t qp_mutex;
	pthread_spinlock_t qp_table_lock;
	struct qrdma_qp_leaf *qp_leaves[QRDMA_QP_LEAVES];
};

/* Memory that the card reads or writes: whole pages, zeroed at the start. */
struct qrdma_buffer {
	void *address;
	size_t length;
};

struct qrdma_cq {
	struct verbs_cq vcq;
	pthread_spinlock_t lock;
	struct qrdma_buffer ring;
	uint32_t cqn;
	uint32_t entries;		/* power of two */
	uint32_t consumer;		/* free-running */
	uint32_t published;		/* consumer counter the card knows */
	uint32_t publish_interval;	/* CQEs between two updates of it */
};

/*
 * One of a QP's two work queues. The counters run freely; the producer belongs
 * to the poster and the consumer to the poller, and each reads the other's.
 */
struct qrdma_work_queue {
	pthread_spinlock_t lock;
	struct qrdma_buffer ring;
	uint64_t *wr_ids;
	uint32_t entries;		/* power of two; 0: there is no queue */
	uint32_t max_sge;
	uint8_t log_entries;
	uint8_t log_stride;
	_Atomic(uint32_t) producer;
	_Atomic(uint32_t) consumer;
};

struct qrdma_qp {
	struct verbs_qp vqp;
	uint32_t qpn;
	uint32_t max_inline;
	bool signal_all;
	struct qrdma_work_queue send;
	struct qrdma_work_queue receive;
};

static inline struct qrdma_context *to_qctx(struct ibv_context *context)
{
	return container_of(context, struct qrdma_context, vctx.context);
}

static inline struct qrdma_cq *to_qcq(struct ibv_cq *cq)
{
	return container_of(cq, struct qrdma_cq, vcq.cq);
}

static inline struct qrdma_qp *to_qqp(struct ibv_qp *qp)
{
	return container_of(qp, struct qrdma_qp, vqp.qp);
}

/*
 * Ring a doorbell: the only way by which the card learns of a counter. Orders
 * all earlier writes to ring memory before it; the caller's lock keeps the
 * counters of one queue in order.
 */
static inline void qrdma_ring_doorbell(struct qrdma_context *ctx,
				       uint32_t doorbell, uint32_t number,
				       uint32_t arm, uint32_t counter)
{
	uint64_t value = number | arm << QRDMA_DOORBELL_ARM_SHIFT |
			 (uint64_t)counter << QRDMA_DOORBELL_COUNTER_SHIFT;

	udma_to_device_barrier();
	mmio_write64_le((uint8_t *)ctx->doorbells + doorbell, htole64(value));
}

/* qrdma_buffer.c */
int qrdma_alloc_buffer(struct qrdma_buffer *buffer, size_t length);
void qrdma_free_buffer(struct qrdma_buffer *buffer);

/* qrdma_verbs.c */
int qrdma_query_device(struct ibv_context *context,
		       const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int qrdma_query_port(struct ibv_context *context, uint8_t port,
		     struct ibv_port_attr *attr);
struct ibv_pd *qrdma_alloc_pd(struct ibv_context *context);
int qrdma_dealloc_pd(struct ibv_pd *pd);
struct ibv_mr *qrdma_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			    uint64_t hca_va, int access);
struct ibv_mr *qrdma_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				   size_t length, uint64_t iova, int fd,
				   int access);
int qrdma_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		   void *addr, size_t length, int access);
int qrdma_dereg_mr(struct verbs_mr *vmr);

/* qrdma_cq.c */
struct ibv_cq *qrdma_create_cq(struct ibv_context *context, int cqe,
			       struct ibv_comp_channel *channel,
			       int comp_vector);
int qrdma_destroy_cq(struct ibv_cq *ibcq);
int qrdma_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc);
int qrdma_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
void qrdma_lock_cqs(struct ibv_cq *first, struct ibv_cq *second);
void qrdma_unlock_cqs(struct ibv_cq *first, struct ibv_cq *second);
void qrdma_forget_cqes(struct ibv_cq *ibcq, uint32_t qpn);

/* qrdma_qp.c */
struct qrdma_qp *qrdma_find_qp(struct qrdma_context *ctx, uint32_t qpn,
			       struct ibv_cq *cq, bool receive);
struct ibv_qp *qrdma_create_qp(struct ibv_pd *pd,
			       struct ibv_qp_init_attr *attr);
int qrdma_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		   int attr_mask, struct ibv_qp_init_attr *init_attr);
int qrdma_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr,
		    int attr_mask);
int qrdma_destroy_qp(struct ibv_qp *ibqp);

/* qrdma_post.c */
int qrdma_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad_wr);
int qrdma_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		    struct ibv_recv_wr **bad_wr);

#endif /* QRDMA_H */
