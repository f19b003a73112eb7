/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a program may ask of a connected queue pair: every operation, inline
 * data, several segments, immediates, events, and what becomes of requests that
 * cannot be carried out. All of it through the provider's rings.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "rc.h"
#include "tap.h"

#define SEND_DEPTH	16
#define RECEIVE_DEPTH	8
#define CQ_DEPTH	64
#define INLINE		128
#define BUFFER		65536
#define PSN		0x123

#define ACCESS (REGION_ACCESS | IBV_ACCESS_REMOTE_ATOMIC)

/* One side of a connection, with its memory. */
struct end {
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buffer;
};

/* The requester is a, the responder b. */
struct link {
	struct rc_device *device;
	struct end a, b;
	uint8_t rnr_retry;
};

/* -------------------------------------------------------------- connection */

static void create_qp(struct link *link, struct end *end)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = SEND_DEPTH,
			.max_recv_wr = RECEIVE_DEPTH,
			.max_send_sge = 4,
			.max_recv_sge = 3,
			.max_inline_data = INLINE,
		},
	};

	end->qp = ibv_create_qp(link->device->pd, &attr);
	tap_need(end->qp, "ibv_create_qp");
}

static void create_end(struct link *link, struct end *end)
{
	end->channel = ibv_create_comp_channel(link->device->context);
	tap_need(end->channel, "ibv_create_comp_channel");
	end->cq = ibv_create_cq(link->device->context, CQ_DEPTH, NULL,
				end->channel, 0);
	tap_need(end->cq, "ibv_create_cq");
	end->buffer = aligned_alloc(4096, BUFFER);
	tap_need(end->buffer, "aligned_alloc");
	memset(end->buffer, 0, BUFFER);
	end->mr = ibv_reg_mr(link->device->pd, end->buffer, BUFFER, ACCESS);
	tap_need(end->mr, "ibv_reg_mr");
	create_qp(link, end);
}

static void destroy_end(struct end *end)
{
	if (end->qp)
		tap_need(!ibv_destroy_qp(end->qp), "ibv_destroy_qp");
	tap_need(!ibv_dereg_mr(end->mr), "ibv_dereg_mr");
	free(end->buffer);
	tap_need(!ibv_destroy_cq(end->cq), "ibv_destroy_cq");
	tap_need(!ibv_destroy_comp_channel(end->channel),
		 "ibv_destroy_comp_channel");
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int ret = ibv_modify_qp(qp, attr, mask);

	if (ret)
		tap_bail("ibv_modify_qp to state %d: %s", attr->qp_state,
			 strerror(ret));
}

static void to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	modify(qp, &attr, IBV_QP_STATE);
}

static void connect_end(struct link *link, struct end *end, uint32_t remote)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};

	modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
	       IBV_QP_ACCESS_FLAGS);

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = link->device->gid,
				.sgid_index = link->device->gid_index,
				.hop_limit = 1,
			},
		},
	};
	modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
	       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
	       IBV_QP_MIN_RNR_TIMER);

	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = PSN,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = link->rnr_retry,
		.max_rd_atomic = 4,
	};
	modify(end->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
	       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}

static void connect_link(struct link *link)
{
	connect_end(link, &link->a, link->b.qp->qp_num);
	connect_end(link, &link->b, link->a.qp->qp_num);
}

/* Whatever happened before: both in RESET, and connected anew. */
static void reconnect(struct link *link, uint8_t rnr_retry)
{
	to_state(link->a.qp, IBV_QPS_RESET);
	to_state(link->b.qp, IBV_QPS_RESET);
	link->rnr_retry = rnr_retry;
	connect_link(link);
}

/* ---------------------------------------------------- requests, completions */

static struct ibv_sge piece(const struct end *end, uint32_t offset,
			    uint32_t length)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)end->buffer + offset,
		.length = length,
		.lkey = end->mr->lkey,
	};
}

static void receive(struct end *end, uint64_t id, struct ibv_sge *list,
		    int count)
{
	struct ibv_recv_wr wr = {
		.wr_id = id, .sg_list = list, .num_sge = count,
	};
	struct ibv_recv_wr *bad;
	int ret = ibv_post_recv(end->qp, &wr, &bad);

	if (ret)
		tap_bail("ibv_post_recv: %s", strerror(ret));
}

static void request(struct end *end, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int ret = ibv_post_send(end->qp, wr, &bad);

	if (ret)
		tap_bail("ibv_post_send: %s", strerror(ret));
}

/* The watchdog of tap_step() ends a wait for what does not come. */
static struct ibv_wc completion(struct end *end)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(end->cq, 1, &wc);
		if (n < 0)
			tap_bail("ibv_poll_cq: %d", n);
	} while (!n);
	return wc;
}

static bool is_empty(struct end *end)
{
	struct ibv_wc wc;

	return ibv_poll_cq(end->cq, 1, &wc) == 0;
}

static void fill(struct end *end, uint8_t seed)
{
	for (uint32_t i = 0; i < BUFFER; i++)
		end->buffer[i] = seed + i * 7;
}

/* -------------------------------------------------------------- operations */

static void test_send(struct link *link)
{
	struct ibv_sge from[3] = {
		piece(&link->a, 1, 10), piece(&link->a, 100, 0),
		piece(&link->a, 5000, 3000),
	};
	struct ibv_sge to[2] = { piece(&link->b, 3, 1000),
				 piece(&link->b, 8192, 4096) };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = from, .num_sge = 3,
		.opcode = IBV_WR_SEND_WITH_IMM, .send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0xfeedbeef),
	};
	struct ibv_wc sent, received;
	uint8_t message[3010];

	tap_step("send");
	fill(&link->a, 1);
	memset(link->b.buffer, 0xee, BUFFER);
	memcpy(message, link->a.buffer + 1, 10);
	memcpy(message + 10, link->a.buffer + 5000, 3000);
	receive(&link->b, 2, to, 2);
	request(&link->a, &wr);
	sent = completion(&link->a);
	received = completion(&link->b);

	tap_ok(sent.status == IBV_WC_SUCCESS && sent.opcode == IBV_WC_SEND &&
	       sent.wr_id == 1 && sent.qp_num == link->a.qp->qp_num,
	       "send: completion of the sender");
	tap_ok(received.status == IBV_WC_SUCCESS &&
	       received.opcode == IBV_WC_RECV && received.wr_id == 2 &&
	       received.byte_len == 3010 &&
	       received.qp_num == link->b.qp->qp_num &&
	       received.src_qp == link->a.qp->qp_num,
	       "send: completion of the receiver, 3010 bytes");
	tap_ok(received.wc_flags & IBV_WC_WITH_IMM &&
	       received.imm_data == htobe32(0xfeedbeef),
	       "send: the immediate arrives as it was");
	tap_ok(!memcmp(link->b.buffer + 3, message, 1000) &&
	       !memcmp(link->b.buffer + 8192, message + 1000, 2010) &&
	       link->b.buffer[2] == 0xee && link->b.buffer[1003] == 0xee &&
	       link->b.buffer[8192 + 2010] == 0xee,
	       "send: 3 segments into 2, nothing beside them");
}

static void test_inline(struct link *link)
{
	char text[INLINE];
	struct ibv_sge from[2] = {
		{ .addr = (uintptr_t)text, .length = 28 },
		{ .addr = (uintptr_t)text + 28, .length = INLINE - 28 },
	};
	struct ibv_sge to = piece(&link->b, 0, INLINE);
	struct ibv_send_wr wr = {
		.sg_list = from, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
	};

	tap_step("inline");
	for (int i = 0; i < INLINE; i++)
		text[i] = 'a' + i % 26;
	receive(&link->b, 0, &to, 1);
	request(&link->a, &wr);
	/* Inline data are taken when the request is posted. */
	memset(text, 0, sizeof(text));
	tap_ok(completion(&link->a).status == IBV_WC_SUCCESS &&
	       completion(&link->b).byte_len == INLINE &&
	       link->b.buffer[0] == 'a' && link->b.buffer[27] == 'b' &&
	       link->b.buffer[INLINE - 1] == 'a' + (INLINE - 1) % 26,
	       "inline: %d bytes of memory without a key", INLINE);
}

static void test_write_and_read(struct link *link)
{
	struct ibv_sge write = piece(&link->a, 0, 20000);
	struct ibv_sge read[2] = { piece(&link->a, 30000, 5000),
				   piece(&link->a, 40000, 15000) };
	struct ibv_send_wr reading = {
		.wr_id = 2, .sg_list = read, .num_sge = 2,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
		.wr.rdma = { (uintptr_t)link->b.buffer + 77, link->b.mr->rkey },
	};
	struct ibv_send_wr writing = {
		.wr_id = 1, .next = &reading, .sg_list = &write, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htobe32(9),
		.wr.rdma = { (uintptr_t)link->b.buffer + 77, link->b.mr->rkey },
	};
	struct ibv_wc wc, received;

	tap_step("write and read");
	fill(&link->a, 3);
	receive(&link->b, 5, NULL, 0);
	request(&link->a, &writing);
	wc = completion(&link->a);
	received = completion(&link->b);
	tap_ok(wc.status == IBV_WC_SUCCESS && wc.wr_id == 2 &&
	       wc.opcode == IBV_WC_RDMA_READ && wc.byte_len == 20000 &&
	       is_empty(&link->a),
	       "write, then read: one completion for the signaled one");
	tap_ok(received.wr_id == 5 && received.byte_len == 20000 &&
	       received.opcode == IBV_WC_RECV_RDMA_WITH_IMM &&
	       received.imm_data == htobe32(9),
	       "write with immediate: takes a receive request");
	tap_ok(!memcmp(link->b.buffer + 77, link->a.buffer, 20000),
	       "write: 20000 bytes are right");
	tap_ok(!memcmp(link->a.buffer + 30000, link->a.buffer, 5000) &&
	       !memcmp(link->a.buffer + 40000, link->a.buffer + 5000, 15000),
	       "read: the same bytes come back, into 2 segments");
}

static uint64_t atomic(struct link *link, enum ibv_wr_opcode opcode,
		       uint64_t compare_add, uint64_t swap)
{
	struct ibv_sge result = piece(&link->a, 64, 8);
	struct ibv_send_wr wr = {
		.sg_list = &result, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = (uintptr_t)link->b.buffer + 128,
			.rkey = link->b.mr->rkey,
			.compare_add = compare_add, .swap = swap,
		},
	};
	struct ibv_wc wc;
	uint64_t old;

	request(&link->a, &wr);
	wc = completion(&link->a);
	if (wc.status != IBV_WC_SUCCESS)
		tap_note("atomic: %s", ibv_wc_status_str(wc.status));
	memcpy(&old, link->a.buffer + 64, sizeof(old));
	return old;
}

static void test_atomics(struct link *link)
{
	uint64_t *word = (uint64_t *)(link->b.buffer + 128);
	uint64_t old;

	tap_step("atomics");
	*word = 0xfffffffffffffff0;
	old = atomic(link, IBV_WR_ATOMIC_FETCH_AND_ADD, 0x21, 0);
	tap_ok(old == 0xfffffffffffffff0 && *word == 0x11,
	       "fetch and add: the sum, and what was there");
	old = atomic(link, IBV_WR_ATOMIC_CMP_AND_SWP, 0x11, 0xabcdef0123456789);
	tap_ok(old == 0x11 && *word == 0xabcdef0123456789,
	       "compare and swap: swaps what is equal");
	old = atomic(link, IBV_WR_ATOMIC_CMP_AND_SWP, 0x11, 5);
	tap_ok(old == 0xabcdef0123456789 && *word == 0xabcdef0123456789,
	       "compare and swap: leaves what is not");
}

static void test_empty(struct link *link)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	tap_step("empty message");
	receive(&link->b, 0, NULL, 0);
	request(&link->a, &wr);
	wc = completion(&link->a);
	tap_ok(wc.status == IBV_WC_SUCCESS && completion(&link->b).byte_len == 0,
	       "send: a message of no bytes");
}

/* ------------------------------------------------------------------ queues */

/* The ring's slots are used again and again; only some requests are signaled. */
static void test_many(struct link *link)
{
	enum { ROUNDS = 200, BATCH = 8 };
	struct ibv_sge from = piece(&link->a, 0, 4);
	struct ibv_sge to = piece(&link->b, 0, 4);
	uint32_t wrong = 0;

	tap_step("many messages");
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < BATCH; i++)
			receive(&link->b, round * BATCH + i, &to, 1);
		for (uint32_t i = 0; i < BATCH; i++) {
			struct ibv_send_wr wr = {
				.wr_id = round * BATCH + i, .sg_list = &from,
				.num_sge = 1, .opcode = IBV_WR_SEND,
				.send_flags = i == BATCH - 1 ?
					      IBV_SEND_SIGNALED : 0,
			};

			request(&link->a, &wr);
		}
		wrong += completion(&link->a).wr_id != round * BATCH + BATCH - 1;
		for (uint32_t i = 0; i < BATCH; i++)
			wrong += completion(&link->b).wr_id !=
				 round * BATCH + i;
	}
	tap_ok(!wrong && is_empty(&link->a) && is_empty(&link->b),
	       "send: %d messages complete in order, one of %d signaled",
	       ROUNDS * BATCH, BATCH);
}

static void test_full(struct link *link)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t posted = 0;
	int ret;

	tap_step("full queue");
	tap_need(!ibv_query_qp(link->a.qp, &attr, IBV_QP_CAP, &init),
		 "ibv_query_qp");
	/* Nothing is received: with rnr_retry 7 all of it waits. */
	while (!(ret = ibv_post_send(link->a.qp, &wr, &bad)))
		posted++;
	tap_ok(ret == ENOMEM && bad == &wr && posted == attr.cap.max_send_wr &&
	       posted >= SEND_DEPTH,
	       "full queue: ENOMEM after the %u requests that it holds", posted);

	to_state(link->a.qp, IBV_QPS_ERR);
	for (uint32_t i = 0; i < posted; i++)
		if (completion(&link->a).status != IBV_WC_WR_FLUSH_ERR)
			ret = 0;
	tap_ok(ret && is_empty(&link->a),
	       "error state: each request is flushed, signaled or not");
}

static bool has_event(struct end *end)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void take_event(struct end *end)
{
	struct ibv_cq *cq;
	void *context;

	tap_need(!ibv_get_cq_event(end->channel, &cq, &context),
		 "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

static void test_events(struct link *link)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	bool early;

	tap_step("completion events");
	for (int i = 0; i < 3; i++)
		receive(&link->b, i, NULL, 0);
	tap_need(!ibv_req_notify_cq(link->b.cq, 1), "ibv_req_notify_cq");
	/* Both are told by one vector: what the receiver is told comes first. */
	tap_need(!ibv_req_notify_cq(link->a.cq, 0), "ibv_req_notify_cq");
	request(&link->a, &wr);
	take_event(&link->a);
	completion(&link->a);
	completion(&link->b);
	early = has_event(&link->b);
	wr.send_flags |= IBV_SEND_SOLICITED;
	request(&link->a, &wr);
	completion(&link->a);
	take_event(&link->b);
	completion(&link->b);
	tap_ok(!early, "events: armed for solicited ones, it sleeps over others");
	tap_ok(true, "events: a solicited one wakes it");

	request(&link->a, &wr);
	completion(&link->a);
	/* It is there already, and has not been polled. */
	tap_need(!ibv_req_notify_cq(link->b.cq, 0), "ibv_req_notify_cq");
	take_event(&link->b);
	completion(&link->b);
	tap_ok(is_empty(&link->b),
	       "events: arming does not miss what came before it");
}

/* ------------------------------------------------------------------ errors */

static void test_not_ready(struct link *link)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	tap_step("receiver not ready");
	reconnect(link, 7);
	request(&link->a, &wr);
	receive(&link->b, 0, NULL, 0);
	wc = completion(&link->a);
	tap_ok(wc.status == IBV_WC_SUCCESS &&
	       completion(&link->b).status == IBV_WC_SUCCESS,
	       "receiver not ready: the sender waits for it");

	reconnect(link, 1);
	request(&link->a, &wr);
	wc = completion(&link->a);
	tap_ok(wc.status == IBV_WC_RNR_RETRY_EXC_ERR,
	       "receiver not ready: %s after 1 retry",
	       ibv_wc_status_str(wc.status));
}

static void test_too_long(struct link *link)
{
	struct ibv_sge from = piece(&link->a, 0, 101);
	struct ibv_sge to = piece(&link->b, 0, 100);
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc sent, received, flushed;

	tap_step("message too long");
	reconnect(link, 7);
	memset(link->b.buffer, 0xee, 100);
	receive(&link->b, 1, &to, 1);
	receive(&link->b, 2, &to, 1);
	request(&link->a, &wr);
	sent = completion(&link->a);
	received = completion(&link->b);
	flushed = completion(&link->b);
	tap_ok(sent.status == IBV_WC_REM_INV_REQ_ERR &&
	       received.status == IBV_WC_LOC_LEN_ERR && received.wr_id == 1,
	       "message too long: %s at the sender, %s at the receiver",
	       ibv_wc_status_str(sent.status),
	       ibv_wc_status_str(received.status));
	tap_ok(flushed.status == IBV_WC_WR_FLUSH_ERR && flushed.wr_id == 2,
	       "message too long: the receiver's next request is flushed");
	tap_ok(link->b.buffer[0] == 0xee, "message too long: no byte of it is written");
}

static void test_misaligned_atomic(struct link *link)
{
	struct ibv_sge result = piece(&link->a, 64, 8);
	struct ibv_send_wr wr = {
		.sg_list = &result, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = (uintptr_t)link->b.buffer + 4,
			.rkey = link->b.mr->rkey, .compare_add = 1,
		},
	};
	uint64_t errors = rc_access_errors(link->device);
	struct ibv_wc wc;

	tap_step("misaligned atomic");
	reconnect(link, 7);
	request(&link->a, &wr);
	wc = completion(&link->a);
	rc_wait_access_errors(link->device, errors + 1);
	tap_ok(wc.status == IBV_WC_REM_ACCESS_ERR,
	       "atomic at an odd address: %s and an access event",
	       ibv_wc_status_str(wc.status));
}

static void test_bad_local_key(struct link *link)
{
	struct ibv_sge from = {
		.addr = (uintptr_t)link->a.buffer, .length = 8, .lkey = 0xfff00,
	};
	struct ibv_send_wr wr = {
		.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = 0,
		.wr.rdma = { (uintptr_t)link->b.buffer, link->b.mr->rkey },
	};
	uint64_t errors = rc_access_errors(link->device);
	struct ibv_wc wc;

	tap_step("bad local key");
	reconnect(link, 7);
	request(&link->a, &wr);
	wc = completion(&link->a);
	rc_wait_access_errors(link->device, errors + 1);
	tap_ok(wc.status == IBV_WC_LOC_PROT_ERR,
	       "wrong local key: %s, although not signaled",
	       ibv_wc_status_str(wc.status));
}

/* Completions of a queue pair that is gone are not those of its successor. */
static void test_destroyed(struct link *link)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	tap_step("destroyed queue pair");
	reconnect(link, 7);
	receive(&link->b, 0, NULL, 0);
	request(&link->a, &wr);
	completion(&link->b);
	tap_need(!ibv_destroy_qp(link->a.qp), "ibv_destroy_qp");
	tap_ok(is_empty(&link->a),
	       "destroyed queue pair: leaves no completion behind");

	create_qp(link, &link->a);
	reconnect(link, 7);
	receive(&link->b, 0, NULL, 0);
	wr.wr_id = 2;
	request(&link->a, &wr);
	wc = completion(&link->a);
	completion(&link->b);
	tap_ok(wc.status == IBV_WC_SUCCESS && wc.wr_id == 2 &&
	       is_empty(&link->a),
	       "destroyed queue pair: the next one works on its queue");
}

static void test_nobody(struct link *link)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	tap_step("nobody there");
	reconnect(link, 7);
	tap_need(!ibv_destroy_qp(link->b.qp), "ibv_destroy_qp");
	link->b.qp = NULL;
	request(&link->a, &wr);
	wc = completion(&link->a);
	tap_ok(wc.status == IBV_WC_RETRY_EXC_ERR,
	       "nobody there: %s", ibv_wc_status_str(wc.status));
}

int main(void)
{
	struct link link = { .rnr_retry = 7 };

	tap_begin();
	link.device = rc_open();
	create_end(&link, &link.a);
	create_end(&link, &link.b);
	connect_link(&link);

	test_send(&link);
	test_inline(&link);
	test_write_and_read(&link);
	test_atomics(&link);
	test_empty(&link);
	test_many(&link);
	test_events(&link);
	test_full(&link);
	test_not_ready(&link);
	test_too_long(&link);
	test_misaligned_atomic(&link);
	test_bad_local_key(&link);
	test_destroyed(&link);
	test_nobody(&link);

	destroy_end(&link.a);
	destroy_end(&link.b);
	rc_close(link.device);
	return tap_end();
}
