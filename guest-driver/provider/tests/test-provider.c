// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The provider's rings: what it writes for the card, and what it makes of what
 * the card writes.
 */
#include <errno.h>
#include <glib.h>
#include <string.h>

#include "fake-kernel.h"

#define SEND_DEPTH 8
#define RECEIVE_DEPTH 4
#define CQ_DEPTH 16

/* A connected QP with one CQ, and the card behind it. */
struct fixture {
	struct qrdma_context *ctx;
	struct ibv_pd pd;
	struct fake_cq card;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_qp *new_qp(struct fixture *f, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = f->cq,
		.recv_cq = f->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = SEND_DEPTH,
			.max_recv_wr = RECEIVE_DEPTH,
			.max_send_sge = 2,
			.max_recv_sge = 1,
			.max_inline_data = 64,
		},
	};
	struct ibv_qp *qp = qrdma_create_qp(&f->pd, &attr);

	g_assert_nonnull(qp);
	g_assert_cmpuint(attr.cap.max_send_wr, ==, SEND_DEPTH);
	g_assert_cmpuint(attr.cap.max_recv_wr, ==, RECEIVE_DEPTH);
	qp->state = state;
	return qp;
}

static void set_up(struct fixture *f, gconstpointer unused)
{
	f->ctx = fake_context();
	f->pd.context = &f->ctx->vctx.context;
	f->cq = qrdma_create_cq(&f->ctx->vctx.context, CQ_DEPTH, NULL, 0);
	g_assert_nonnull(f->cq);
	f->card.cq = to_qcq(f->cq);
	f->qp = new_qp(f, IBV_QPS_RTS);
}

static void tear_down(struct fixture *f, gconstpointer unused)
{
	fake_error = 0;
	if (f->qp)
		g_assert_cmpint(qrdma_destroy_qp(f->qp), ==, 0);
	g_assert_cmpint(qrdma_destroy_cq(f->cq), ==, 0);
	fake_context_free(f->ctx);
}

/* Post one unsignaled or signaled send of 16 bytes. */
static int post(struct fixture *f, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = 0x1000, .length = 16, .lkey = 0x101 };
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad = NULL;

	return qrdma_post_send(f->qp, &wr, &bad);
}

static const uint8_t *send_slot(struct fixture *f, uint32_t counter)
{
	struct qrdma_work_queue *wq = &to_qqp(f->qp)->send;

	return (uint8_t *)wq->ring.address +
	       ((size_t)(counter & (wq->entries - 1)) << wq->log_stride);
}

static uint64_t expected_doorbell(struct fixture *f, uint32_t counter)
{
	return to_qqp(f->qp)->qpn | (uint64_t)counter << 32;
}

/* ---------------------------------------------------------------- posting */

static void test_write_wqe(struct fixture *f, gconstpointer unused)
{
	struct ibv_sge sges[2] = {
		{ .addr = 0x1122334455667788, .length = 100, .lkey = 0x203 },
		{ .addr = 0x99, .length = 0, .lkey = 0x304 },
	};
	struct ibv_send_wr wr = {
		.sg_list = sges, .num_sge = 2,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE |
			      IBV_SEND_SOLICITED,
		.imm_data = htobe32(0xa1b2c3d4),
		.wr.rdma = { .remote_addr = 0xdeadbeef000, .rkey = 0x405 },
	};
	struct ibv_send_wr *bad = NULL;
	const struct qrdma_send_wqe *wqe;
	const struct qrdma_sge *written;

	/* A slot that was used before: nothing of it may remain. */
	memset(to_qqp(f->qp)->send.ring.address, 0xff, 128);
	g_assert_cmpint(qrdma_post_send(f->qp, &wr, &bad), ==, 0);

	wqe = (const void *)send_slot(f, 0);
	g_assert_cmpuint(wqe->opcode, ==, QRDMA_SEND_OP_WRITE_IMM);
	g_assert_cmpuint(wqe->flags, ==, QRDMA_WQE_SIGNALED |
			 QRDMA_WQE_FENCE | QRDMA_WQE_SOLICITED);
	g_assert_cmpuint(le32toh(wqe->num_sge), ==, 2);
	g_assert_cmpuint(wqe->inline_length, ==, 0);
	g_assert_cmpmem(&wqe->immediate, 4, "\xa1\xb2\xc3\xd4", 4);
	g_assert_cmphex(le64toh(wqe->remote_address), ==, 0xdeadbeef000);
	g_assert_cmphex(le32toh(wqe->remote_key), ==, 0x405);
	g_assert_cmpuint(wqe->swap_or_add, ==, 0);
	g_assert_cmpuint(wqe->compare, ==, 0);
	g_assert_cmpuint(wqe->reserved0, ==, 0);
	g_assert_cmpuint(wqe->reserved1, ==, 0);
	for (int i = 0; i < sizeof(wqe->reserved2); i++)
		g_assert_cmpuint(wqe->reserved2[i], ==, 0);

	written = (const void *)(send_slot(f, 0) + QRDMA_SEND_WQE_HEADER);
	g_assert_cmphex(le64toh(written[0].address), ==, 0x1122334455667788);
	g_assert_cmpuint(le32toh(written[0].length), ==, 100);
	g_assert_cmphex(le32toh(written[0].key), ==, 0x203);
	g_assert_cmphex(le64toh(written[1].address), ==, 0x99);
	g_assert_cmpuint(written[1].length, ==, 0);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_SEND), ==,
			expected_doorbell(f, 1));
}

static void test_atomic_wqe(struct fixture *f, gconstpointer unused)
{
	struct ibv_sge sge = { .addr = 8, .length = 8, .lkey = 1 };
	struct ibv_send_wr add = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { .remote_addr = 64, .rkey = 2, .compare_add = 3,
			       .swap = 4 },
	};
	struct ibv_send_wr swap = {
		.next = &add, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = { .remote_addr = 72, .rkey = 5, .compare_add = 6,
			       .swap = 7 },
	};
	struct ibv_send_wr *bad = NULL;
	const struct qrdma_send_wqe *wqe;

	g_assert_cmpint(qrdma_post_send(f->qp, &swap, &bad), ==, 0);

	wqe = (const void *)send_slot(f, 0);
	g_assert_cmpuint(wqe->opcode, ==, QRDMA_SEND_OP_COMPARE_SWAP);
	g_assert_cmpuint(le64toh(wqe->compare), ==, 6);
	g_assert_cmpuint(le64toh(wqe->swap_or_add), ==, 7);
	g_assert_cmpuint(le64toh(wqe->remote_address), ==, 72);
	g_assert_cmpuint(le32toh(wqe->remote_key), ==, 5);

	wqe = (const void *)send_slot(f, 1);
	g_assert_cmpuint(wqe->opcode, ==, QRDMA_SEND_OP_FETCH_ADD);
	g_assert_cmpuint(wqe->compare, ==, 0);
	g_assert_cmpuint(le64toh(wqe->swap_or_add), ==, 3);
	/* One doorbell for the list. */
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_SEND), ==,
			expected_doorbell(f, 2));
}

static void test_inline_wqe(struct fixture *f, gconstpointer unused)
{
	struct ibv_sge sges[2] = {
		{ .addr = (uintptr_t)"abc", .length = 3 },
		{ .addr = (uintptr_t)"defg", .length = 4 },
	};
	struct ibv_send_wr wr = {
		.sg_list = sges, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	};
	struct ibv_send_wr *bad = NULL;
	const struct qrdma_send_wqe *wqe = (const void *)send_slot(f, 0);

	g_assert_cmpint(qrdma_post_send(f->qp, &wr, &bad), ==, 0);
	g_assert_cmpuint(wqe->flags, ==, QRDMA_WQE_INLINE);
	g_assert_cmpuint(wqe->num_sge, ==, 0);
	g_assert_cmpuint(le32toh(wqe->inline_length), ==, 7);
	g_assert_cmpmem(send_slot(f, 0) + QRDMA_SEND_WQE_HEADER, 7, "abcdefg",
			7);
}

static void test_receive_wqe(struct fixture *f, gconstpointer unused)
{
	struct ibv_sge sge = { .addr = 0x5000, .length = 77, .lkey = 9 };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad = NULL;
	struct qrdma_work_queue *wq = &to_qqp(f->qp)->receive;
	const struct qrdma_receive_wqe *wqe = wq->ring.address;
	const struct qrdma_sge *written = (const void *)(wqe + 1);

	memset(wq->ring.address, 0xff, 32);
	g_assert_cmpint(qrdma_post_recv(f->qp, &wr, &bad), ==, 0);
	g_assert_cmpuint(le32toh(wqe->num_sge), ==, 1);
	for (int i = 0; i < sizeof(wqe->reserved); i++)
		g_assert_cmpuint(wqe->reserved[i], ==, 0);
	g_assert_cmphex(le64toh(written->address), ==, 0x5000);
	g_assert_cmpuint(le32toh(written->length), ==, 77);
	g_assert_cmpuint(le32toh(written->key), ==, 9);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_RECEIVE), ==,
			expected_doorbell(f, 1));
}

static void test_refused_posts(struct fixture *f, gconstpointer unused)
{
	static char big[QRDMA_MAX_INLINE + 1];
	struct ibv_sge sges[QRDMA_MAX_SGE + 1] = {
		[0] = { .addr = (uintptr_t)big, .length = sizeof(big) },
	};
	struct ibv_sge huge[2] = { { .length = 1u << 31 }, { .length = 1 } };
	struct ibv_send_wr wrs[] = {
		{ .sg_list = sges, .num_sge = QRDMA_MAX_SGE + 1 },
		{ .sg_list = sges, .num_sge = -1 },
		{ .sg_list = huge, .num_sge = 2 },
		{ .sg_list = sges, .num_sge = 1, .send_flags = IBV_SEND_INLINE },
		{ .sg_list = sges, .num_sge = 0, .opcode = IBV_WR_RDMA_READ,
		  .send_flags = IBV_SEND_INLINE },
		{ .opcode = IBV_WR_LOCAL_INV },
		{ .opcode = IBV_WR_TSO },
		{ .send_flags = IBV_SEND_IP_CSUM },
	};
	struct ibv_send_wr *bad;

	for (int i = 0; i < G_N_ELEMENTS(wrs); i++) {
		bad = NULL;
		g_assert_cmpint(qrdma_post_send(f->qp, &wrs[i], &bad), ==,
				EINVAL);
		g_assert_true(bad == &wrs[i]);
		g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_SEND), ==,
				0);
	}
}

/* The part of a list before the bad request is posted. */
static void test_list_with_bad_request(struct fixture *f, gconstpointer unused)
{
	struct ibv_send_wr last = { .opcode = IBV_WR_SEND };
	struct ibv_send_wr wrong = { .next = &last, .opcode = IBV_WR_BIND_MW };
	struct ibv_send_wr first = { .next = &wrong, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad = NULL;

	g_assert_cmpint(qrdma_post_send(f->qp, &first, &bad), ==, EINVAL);
	g_assert_true(bad == &wrong);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_SEND), ==,
			expected_doorbell(f, 1));
}

static void test_states(struct fixture *f, gconstpointer unused)
{
	static const struct {
		enum ibv_qp_state state;
		int send, receive;
	} cases[] = {
		{ IBV_QPS_RESET, EINVAL, EINVAL }, { IBV_QPS_INIT, EINVAL, 0 },
		{ IBV_QPS_RTR, EINVAL, 0 }, { IBV_QPS_RTS, 0, 0 },
		{ IBV_QPS_SQD, 0, 0 },
	};
	struct ibv_recv_wr wr = {}, *bad;

	/* One more than the receive queue holds is posted in no state. */
	for (int i = 0; i < G_N_ELEMENTS(cases); i++) {
		f->qp->state = cases[i].state;
		g_assert_cmpint(post(f, 0), ==, cases[i].send);
		g_assert_cmpint(qrdma_post_recv(f->qp, &wr, &bad), ==,
				cases[i].receive);
	}
	g_assert_cmpint(qrdma_post_recv(f->qp, &wr, &bad), ==, ENOMEM);
}

/* ------------------------------------------------------------- completing */

static void test_full_and_wrap(struct fixture *f, gconstpointer unused)
{
	struct ibv_wc wc[SEND_DEPTH];
	uint32_t counter = 0;

	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < SEND_DEPTH; i++)
			g_assert_cmpint(post(f, counter + i), ==, 0);
		g_assert_cmpint(post(f, 0), ==, ENOMEM);

		for (int i = 0; i < SEND_DEPTH; i++)
			g_assert_true(fake_cqe(&f->card, to_qqp(f->qp),
					       QRDMA_CQE_OP_SEND, counter + i,
					       QRDMA_CQE_SUCCESS));
		g_assert_cmpint(qrdma_poll_cq(f->cq, SEND_DEPTH, wc), ==,
				SEND_DEPTH);
		for (int i = 0; i < SEND_DEPTH; i++) {
			g_assert_cmpuint(wc[i].wr_id, ==, counter + i);
			g_assert_cmpint(wc[i].status, ==, IBV_WC_SUCCESS);
			g_assert_cmpint(wc[i].opcode, ==, IBV_WC_SEND);
			g_assert_cmpuint(wc[i].qp_num, ==, to_qqp(f->qp)->qpn);
		}
		g_assert_cmpint(qrdma_poll_cq(f->cq, 1, wc), ==, 0);
		counter += SEND_DEPTH;
	}
}

/* A completion takes the unsignaled requests before it off the queue. */
static void test_unsignaled(struct fixture *f, gconstpointer unused)
{
	struct ibv_wc wc;

	for (int i = 0; i < SEND_DEPTH; i++)
		g_assert_cmpint(post(f, 100 + i), ==, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, SEND_DEPTH - 2, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpuint(wc.wr_id, ==, 100 + SEND_DEPTH - 2);
	for (int i = 0; i < SEND_DEPTH - 1; i++)
		g_assert_cmpint(post(f, 0), ==, 0);
	g_assert_cmpint(post(f, 0), ==, ENOMEM);
}

static void test_receive_completion(struct fixture *f, gconstpointer unused)
{
	struct ibv_recv_wr wr = { .wr_id = 55 }, *bad;
	struct qrdma_cqe cqe = {
		.qpn = htole32(to_qqp(f->qp)->qpn),
		.byte_length = htole32(1234),
		.remote_qpn = htole32(77),
		.opcode = QRDMA_CQE_OP_RECV_WRITE_IMM,
		.status = QRDMA_CQE_LOCAL_ACCESS_ERROR,
		.syndrome = htole16(QRDMA_ACCESS_FREE),
		.flags = QRDMA_CQE_FLAG_IMMEDIATE,
	};
	struct ibv_wc wc;

	memcpy(&cqe.immediate, "\x01\x02\x03\x04", 4);
	g_assert_cmpint(qrdma_post_recv(f->qp, &wr, &bad), ==, 0);
	fake_raw_cqe(&f->card, cqe);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpuint(wc.wr_id, ==, 55);
	g_assert_cmpuint(wc.byte_len, ==, 1234);
	g_assert_cmpuint(wc.src_qp, ==, 77);
	g_assert_cmpint(wc.opcode, ==, IBV_WC_RECV_RDMA_WITH_IMM);
	g_assert_cmpint(wc.status, ==, IBV_WC_LOC_ACCESS_ERR);
	g_assert_cmpuint(wc.vendor_err, ==, QRDMA_ACCESS_FREE);
	g_assert_cmpuint(wc.wc_flags, ==, IBV_WC_WITH_IMM);
	g_assert_cmphex(wc.imm_data, ==, htobe32(0x01020304));
}

/* The card is trusted with memory, not with the program's life. */
static void test_nonsense_from_card(struct fixture *f, gconstpointer unused)
{
	const uint32_t qpn = to_qqp(f->qp)->qpn;
	struct qrdma_cqe bad[] = {
		{ .qpn = htole32(qpn), .wqe_counter = htole32(1) },
		{ .qpn = htole32(qpn), .wqe_counter = htole32(-1) },
		{ .qpn = htole32(qpn + 1) },
		{ .qpn = htole32(0xffffffff) },
		{ .qpn = 0 },
		{ .qpn = htole32(qpn), .opcode = QRDMA_CQE_OP_RECV },
	};
	struct qrdma_cqe strange = {
		.qpn = htole32(qpn), .opcode = 0x7f, .status = 0xff,
	};
	struct ibv_wc wc;

	g_assert_cmpint(post(f, 5), ==, 0);
	for (int i = 0; i < G_N_ELEMENTS(bad); i++)
		g_assert_true(fake_raw_cqe(&f->card, bad[i]));
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 0);

	g_assert_true(fake_raw_cqe(&f->card, strange));
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpuint(wc.wr_id, ==, 5);
	g_assert_cmpint(wc.status, ==, IBV_WC_GENERAL_ERR);
}

static void test_destroyed_qp(struct fixture *f, gconstpointer unused)
{
	struct ibv_qp *other = f->qp;
	struct ibv_wc wc[4];

	f->qp = new_qp(f, IBV_QPS_RTS);
	g_assert_cmpint(post(f, 1), ==, 0);
	g_assert_cmpint(post(f, 2), ==, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 1, 0);
	fake_next_qpn = to_qqp(f->qp)->qpn;
	g_assert_cmpint(qrdma_destroy_qp(f->qp), ==, 0);

	/* The number is used again; old completions are not the new QP's. */
	f->qp = new_qp(f, IBV_QPS_RTS);
	g_assert_cmpint(post(f, 3), ==, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 4, wc), ==, 1);
	g_assert_cmpuint(wc[0].wr_id, ==, 3);

	g_assert_cmpint(qrdma_destroy_qp(f->qp), ==, 0);
	f->qp = other;
}

static void test_failed_destroy_keeps_qp(struct fixture *f,
					 gconstpointer unused)
{
	struct ibv_wc wc;

	g_assert_cmpint(post(f, 9), ==, 0);
	fake_error = EBUSY;
	g_assert_cmpint(qrdma_destroy_qp(f->qp), ==, EBUSY);
	fake_error = 0;
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpuint(wc.wr_id, ==, 9);
}

static void test_reset(struct fixture *f, gconstpointer unused)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc;

	for (int i = 0; i < SEND_DEPTH; i++)
		g_assert_cmpint(post(f, i), ==, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	g_assert_cmpint(qrdma_modify_qp(f->qp, &attr, IBV_QP_STATE), ==, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 0);

	/* Counters begin again, and the whole queue is free. */
	for (int i = 0; i < SEND_DEPTH; i++)
		g_assert_cmpint(post(f, 50 + i), ==, 0);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_SEND), ==,
			expected_doorbell(f, SEND_DEPTH));
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpuint(wc.wr_id, ==, 50);
}

/* ------------------------------------------------------ completion queues */

static void test_arm(struct fixture *f, gconstpointer unused)
{
	struct qrdma_cq *cq = to_qcq(f->cq);
	struct ibv_wc wc;

	cq->cqn = 0x123;
	g_assert_cmpint(post(f, 0), ==, 0);
	fake_cqe(&f->card, to_qqp(f->qp), QRDMA_CQE_OP_SEND, 0, 0);
	g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 1);
	g_assert_cmpint(qrdma_req_notify_cq(f->cq, 0), ==, 0);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_CQ), ==,
			0x123 | 1ull << 30 | 1ull << 32);
	g_assert_cmpint(qrdma_req_notify_cq(f->cq, 1), ==, 0);
	g_assert_cmphex(fake_doorbell(f->ctx, QRDMA_DOORBELL_CQ), ==,
			0x123 | 2ull << 30 | 1ull << 32);
}

/*
 * As many completions as the CQ says it takes always fit, however the polling
 * falls, although the card is not told of each.
 */
static void test_room(struct fixture *f, gconstpointer unused)
{
	struct qrdma_cq *cq = to_qcq(f->cq);
	struct qrdma_cqe cqe = { .qpn = htole32(QRDMA_NO_QPN) };
	uint32_t unread = 0;
	struct ibv_wc wc;

	g_assert_cmpint(f->cq->cqe, >=, CQ_DEPTH);
	for (int step = 0; step < 1000; step++) {
		while (unread < f->cq->cqe) {
			g_assert_true(fake_raw_cqe(&f->card, cqe));
			unread++;
		}
		/* One that is passed over is read as well. */
		g_assert_cmpint(qrdma_poll_cq(f->cq, 1, &wc), ==, 0);
		unread = f->card.producer - cq->consumer;
		g_assert_cmpuint(unread, ==, 0);
		for (int i = 0; i < step % 7; i++) {
			g_assert_true(fake_raw_cqe(&f->card, cqe));
			unread++;
		}
	}
}

static void test_sizes(void)
{
	struct qrdma_context *ctx = fake_context();
	struct ibv_context *context = &ctx->vctx.context;

	for (int cqe = 1; cqe <= 1 << 16; cqe += cqe < 300 ? 1 : 251) {
		struct ibv_cq *cq = qrdma_create_cq(context, cqe, NULL, 0);

		g_assert_nonnull(cq);
		g_assert_cmpint(cq->cqe, >=, cqe);
		g_assert_cmpuint(to_qcq(cq)->entries, <=, 1u << 16);
		g_assert_cmpuint(to_qcq(cq)->publish_interval, >=, 1);
		g_assert_cmpint(qrdma_destroy_cq(cq), ==, 0);
	}
	for (int i = 0; i < 3; i++) {
		const int bad[] = { 0, -1, (1 << 16) + 1 };

		errno = 0;
		g_assert_null(qrdma_create_cq(context, bad[i], NULL, 0));
		g_assert_cmpint(errno, ==, EINVAL);
	}
	fake_error = ENOSPC;
	g_assert_null(qrdma_create_cq(context, 1, NULL, 0));
	g_assert_cmpint(errno, ==, ENOSPC);
	fake_error = 0;
	fake_context_free(ctx);
}

static void test_qp_limits(struct fixture *f, gconstpointer unused)
{
	static const struct {
		struct ibv_qp_cap cap;
		int error;
	} cases[] = {
		{ { .max_send_wr = (1 << 16) + 1 }, EINVAL },
		{ { .max_recv_wr = (1 << 16) + 1 }, EINVAL },
		{ { .max_send_sge = QRDMA_MAX_SGE + 1 }, EINVAL },
		{ { .max_recv_sge = QRDMA_MAX_SGE + 1, .max_recv_wr = 1 }, EINVAL },
		{ { .max_inline_data = QRDMA_MAX_INLINE + 1 }, EINVAL },
		{ { .max_send_wr = 1 << 16, .max_send_sge = QRDMA_MAX_SGE,
		    .max_recv_wr = 1 << 16, .max_recv_sge = QRDMA_MAX_SGE,
		    .max_inline_data = QRDMA_MAX_INLINE }, 0 },
		{ { 0 }, 0 },
	};

	for (int i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct ibv_qp_init_attr attr = {
			.send_cq = f->cq, .recv_cq = f->cq,
			.qp_type = IBV_QPT_RC, .cap = cases[i].cap,
		};
		struct ibv_qp *qp = qrdma_create_qp(&f->pd, &attr);

		if (cases[i].error) {
			g_assert_null(qp);
			g_assert_cmpint(errno, ==, cases[i].error);
			continue;
		}
		g_assert_nonnull(qp);
		g_assert_cmpuint(attr.cap.max_send_sge, >=,
				 cases[i].cap.max_send_sge);
		g_assert_cmpuint(attr.cap.max_recv_sge, >=,
				 cases[i].cap.max_recv_sge);
		g_assert_cmpuint(attr.cap.max_inline_data, >=,
				 cases[i].cap.max_inline_data);
		g_assert_cmpint(qrdma_destroy_qp(qp), ==, 0);
	}
}

static void test_no_receive_queue(struct fixture *f, gconstpointer unused)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1 },
	};
	struct ibv_qp *qp = qrdma_create_qp(&f->pd, &attr);
	struct ibv_recv_wr wr = {}, *bad = NULL;

	g_assert_nonnull(qp);
	qp->state = IBV_QPS_RTS;
	g_assert_null(to_qqp(qp)->receive.ring.address);
	g_assert_cmpint(qrdma_post_recv(qp, &wr, &bad), ==, EINVAL);
	g_assert_true(bad == &wr);
	g_assert_cmpint(qrdma_destroy_qp(qp), ==, 0);
}

static void test_other_types(struct fixture *f, gconstpointer unused)
{
	struct ibv_qp_init_attr ud = {
		.send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_UD,
	};
	struct ibv_srq srq;
	struct ibv_qp_init_attr shared = {
		.send_cq = f->cq, .recv_cq = f->cq, .qp_type = IBV_QPT_RC,
		.srq = &srq,
	};

	g_assert_null(qrdma_create_qp(&f->pd, &ud));
	g_assert_cmpint(errno, ==, EOPNOTSUPP);
	g_assert_null(qrdma_create_qp(&f->pd, &shared));
	g_assert_cmpint(errno, ==, EOPNOTSUPP);
}

#define ADD(path, function) \
	g_test_add(path, struct fixture, NULL, set_up, function, tear_down)

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	ADD("/post/write", test_write_wqe);
	ADD("/post/atomics", test_atomic_wqe);
	ADD("/post/inline", test_inline_wqe);
	ADD("/post/receive", test_receive_wqe);
	ADD("/post/refused", test_refused_posts);
	ADD("/post/list-with-bad-request", test_list_with_bad_request);
	ADD("/post/states", test_states);
	ADD("/poll/full-and-wrap", test_full_and_wrap);
	ADD("/poll/unsignaled", test_unsignaled);
	ADD("/poll/receive", test_receive_completion);
	ADD("/poll/nonsense-from-card", test_nonsense_from_card);
	ADD("/poll/destroyed-qp", test_destroyed_qp);
	ADD("/poll/failed-destroy", test_failed_destroy_keeps_qp);
	ADD("/poll/reset", test_reset);
	ADD("/cq/arm", test_arm);
	ADD("/cq/room", test_room);
	g_test_add_func("/cq/sizes", test_sizes);
	ADD("/qp/limits", test_qp_limits);
	ADD("/qp/no-receive-queue", test_no_receive_queue);
	ADD("/qp/other-types", test_other_types);
	return g_test_run();
}
