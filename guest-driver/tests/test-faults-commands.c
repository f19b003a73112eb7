/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card refuses commands, does them late, twice, in another order, or says
 * that it has done what it has not. The caller gets the errno or what it asked
 * for; the driver goes on, or the device dies where nothing else is safe; it can
 * always be loaded again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "card.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(2 * MIB)
#define LARGE		(64 * MIB)
#define REGIONS		40
#define IOVA		0x780000000000ull
#define SEED		0x5eed
#define SHORT		(200 * MILLISECONDS)

/* One page of user memory, with a pair of queue pairs to reach it by. */
struct bench {
	struct rc_device *device;
	struct rc_pair *pair;
	void *memory;
	void *staging;
	struct ibv_mr *staging_mr;
};

static void *page(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED, "no memory");
	return memory;
}

static void bench_begin(struct bench *bench, struct rc_device *device)
{
	bench->device = device;
	bench->memory = page();
	stamp_pages(bench->memory, SEED, 0, 1);
	bench->staging = page();
	bench->staging_mr = ibv_reg_mr(device->pd, bench->staging, PAGE,
				       REGION_ACCESS);
	tap_need(bench->staging_mr, "ibv_reg_mr");
	bench->pair = rc_pair_create(device);
}

static void bench_end(struct bench *bench)
{
	rc_pair_destroy(bench->pair);
	if (ibv_dereg_mr(bench->staging_mr))
		tap_bail("ibv_dereg_mr");
	munmap(bench->staging, PAGE);
	munmap(bench->memory, PAGE);
}

static struct ibv_mr *bench_register(struct bench *bench)
{
	return ibv_reg_mr(bench->device->pd, bench->memory, PAGE,
			  REGION_ACCESS);
}

static void deregister(const char *name, struct ibv_mr *mr)
{
	int error = ibv_dereg_mr(mr);

	if (error)
		tap_bail("%s: ibv_dereg_mr: %s", name, strerror(error));
}

enum seen { RIGHT, WRONG, REFUSED };

static enum seen access_page(struct bench *bench, uint32_t rkey)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->staging,
		.lkey = bench->staging_mr->lkey,
		.remote = (uintptr_t)bench->memory,
		.rkey = rkey,
		.length = PAGE,
	};

	memset(bench->staging, 0, PAGE);
	if (rc_execute(bench->pair, &access) != IBV_WC_SUCCESS) {
		rc_pair_recover(bench->pair);
		return REFUSED;
	}
	return stamp_check(bench->staging, SEED, 0, 1, NULL) ? WRONG : RIGHT;
}

static void arm(enum qrdma_fault_action action, uint32_t opcode,
		uint32_t index, uint64_t delay)
{
	diagnostic_clear();
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_COMMAND,
		.action = action,
		.opcode = opcode,
		.index = index,
		.delay = delay,
	});
}

/* ---------------------------------------------------------------- refused */

/* What is asked of the driver: 0 or an errno, and nothing left either way. */
static int ask_user(struct bench *bench)
{
	struct ibv_mr *mr = bench_register(bench);
	int error = rc_errno(mr);

	if (mr)
		deregister("user", mr);
	return error;
}

static int ask_dmabuf(struct bench *bench, bool dynamic)
{
	int fd = exporter_create(SIZE, LAYOUT(4K));
	struct qrdma_exporter_query query;
	struct ibv_mr *mr;
	int error;

	mr = register_dmabuf(bench->device, fd, 0, SIZE, IOVA, dynamic);
	error = rc_errno(mr);
	if (mr)
		deregister("dma-buf", mr);
	query = exporter_query(fd);
	if (query.attached || query.mapped || query.pinned ||
	    query.maps != query.unmaps)
		tap_bail("a registration left something of the dma-buf");
	close(fd);
	return error;
}

static int ask_pinned(struct bench *bench)
{
	return ask_dmabuf(bench, false);
}

static int ask_dynamic(struct bench *bench)
{
	return ask_dmabuf(bench, true);
}

static int ask_cq(struct bench *bench)
{
	struct ibv_cq *cq = ibv_create_cq(bench->device->context, 4, NULL, NULL,
					  0);
	int error = rc_errno(cq);

	if (cq && ibv_destroy_cq(cq))
		tap_bail("ibv_destroy_cq");
	return error;
}

static int ask_qp(struct bench *bench)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = bench->pair->cq,
		.recv_cq = bench->pair->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(bench->device->pd, &attr);
	int error = rc_errno(qp);

	if (qp && ibv_destroy_qp(qp))
		tap_bail("ibv_destroy_qp");
	return error;
}

static int ask_modify(struct bench *bench)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int error = ibv_modify_qp(bench->pair->requester, &attr, IBV_QP_STATE);

	rc_pair_recover(bench->pair);
	return error;
}

static int ask_query(struct bench *bench)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(bench->pair->requester, &attr, IBV_QP_STATE, &init);
}

struct refusal {
	const char *name;
	uint32_t opcode;
	uint32_t status;		/* 0: INJECTED */
	int error;
	int (*ask)(struct bench *bench);
};

static const struct refusal refusals[] = {
	{ "user", QRDMA_CMD_CREATE_MKEY, 0, EREMOTEIO, ask_user },
	{ "user-no-resources", QRDMA_CMD_CREATE_MKEY,
	  QRDMA_STATUS_NO_RESOURCES, ENOMEM, ask_user },
	/* Taken, says the card; it has nothing to destroy, and then it is not. */
	{ "user-in-use", QRDMA_CMD_CREATE_MKEY, QRDMA_STATUS_IN_USE, 0,
	  ask_user },
	{ "pinned", QRDMA_CMD_CREATE_MKEY, 0, EREMOTEIO, ask_pinned },
	{ "dynamic", QRDMA_CMD_CREATE_MKEY, 0, EREMOTEIO, ask_dynamic },
	{ "cq", QRDMA_CMD_CREATE_CQ, 0, EREMOTEIO, ask_cq },
	{ "qp", QRDMA_CMD_CREATE_QP, 0, EREMOTEIO, ask_qp },
	{ "modify-qp", QRDMA_CMD_MODIFY_QP, 0, EREMOTEIO, ask_modify },
	{ "query-qp", QRDMA_CMD_QUERY_QP, 0, EREMOTEIO, ask_query },
	/* What is said to be gone already is gone. */
	{ "destroyed-twice", QRDMA_CMD_DESTROY_MKEY, QRDMA_STATUS_NO_OBJECT, 0,
	  ask_user },
};

static void refused(struct bench *bench)
{
	for (unsigned int i = 0; i < sizeof(refusals) / sizeof(refusals[0]);
	     i++) {
		const struct refusal *refusal = &refusals[i];
		int error, again;

		tap_step("fail %s", refusal->name);
		diagnostic_clear();
		diagnostic_arm((struct fault) {
			.target = QRDMA_FAULT_COMMAND,
			.action = QRDMA_FAULT_FAIL,
			.opcode = refusal->opcode,
			.status = refusal->status,
		});
		error = refusal->ask(bench);
		tap_ok(error == refusal->error && diagnostic_fired() == 1,
		       "fail %s: %s", refusal->name,
		       error ? strerror(error) : "no error");
		diagnostic_clear();
		again = refusal->ask(bench);
		tap_ok(!again, "fail %s: works the next time", refusal->name);
	}
	check_alive("fail", bench->device);
}

/* ------------------------------------------------------- late, twice, ... */

static void delayed(struct bench *bench)
{
	struct ibv_mr *mr;

	tap_step("delay: registration");
	arm(QRDMA_FAULT_DELAY, QRDMA_CMD_CREATE_MKEY, 0, SHORT);
	mr = bench_register(bench);
	tap_ok(mr && diagnostic_fired() == 1 &&
	       access_page(bench, mr->rkey) == RIGHT,
	       "delay: a registration that takes its time succeeds");
	if (mr)
		deregister("delay", mr);
}

/* Created on paper only: fails safe, and goes. */
static void dropped_create(struct bench *bench)
{
	struct ibv_mr *mr;

	tap_step("drop create: registration");
	arm(QRDMA_FAULT_DROP, QRDMA_CMD_CREATE_MKEY, 0, 0);
	mr = bench_register(bench);
	tap_need(mr, "ibv_reg_mr");
	tap_ok(access_page(bench, mr->rkey) == REFUSED,
	       "drop create: a key that the card does not have is refused");
	deregister("drop create", mr);
	check_alive("drop create", bench->device);
}

/* The same for a region that is moved, and for one that is revoked. */
static void dropped_dmabuf(struct bench *bench, bool dynamic)
{
	const char *name = dynamic ? "drop create dynamic"
				   : "drop create pinned";
	int error, fd = exporter_create(SIZE, LAYOUT(4K));
	struct ibv_mr *mr;

	tap_step("%s", name);
	arm(QRDMA_FAULT_DROP, QRDMA_CMD_CREATE_MKEY, 0, 0);
	mr = register_dmabuf(bench->device, fd, 0, SIZE, IOVA, dynamic);
	tap_need(mr, "registration of a dma-buf region");
	error = dynamic ? exporter_move(fd, LAYOUT(2M), 0, 0)
			: exporter_revoke(fd);
	deregister(name, mr);
	close(fd);
	tap_ok(!error, "%s: the exporter has its way", name);
	check_alive(name, bench->device);
}

static void late_create(struct bench *bench)
{
	struct ibv_mr *mr;
	enum seen early;

	tap_step("late create: registration");
	arm(QRDMA_FAULT_LATE, QRDMA_CMD_CREATE_MKEY, 0, SHORT);
	mr = bench_register(bench);
	tap_need(mr, "ibv_reg_mr");
	early = access_page(bench, mr->rkey);
	diagnostic_wait_released();
	tap_ok(early != WRONG && access_page(bench, mr->rkey) == RIGHT,
	       "late create: refused at first, right in the end");
	deregister("late create", mr);
}

/* Destroyed before it is created: the card has a key that nobody knows of. */
static void late_create_gone(struct bench *bench)
{
	struct ibv_mr *mr;

	tap_step("late create, gone before: registration");
	arm(QRDMA_FAULT_LATE, QRDMA_CMD_CREATE_MKEY, 0, SHORT);
	mr = bench_register(bench);
	tap_need(mr, "ibv_reg_mr");
	deregister("late create, gone before", mr);
	diagnostic_wait_released();
	check_alive("late create, gone before", bench->device);
}

static void late_destroy(struct bench *bench)
{
	struct ibv_mr *mr = bench_register(bench);

	tap_need(mr, "ibv_reg_mr");
	tap_step("late destroy: deregistration");
	arm(QRDMA_FAULT_LATE, QRDMA_CMD_DESTROY_MKEY, mr->rkey >> 8, SHORT);
	deregister("late destroy", mr);
	tap_ok(!ask_user(bench), "late destroy: the next registration works");
	diagnostic_wait_released();
	check_alive("late destroy", bench->device);
}

static void twice(struct bench *bench)
{
	struct ibv_mr *mr;

	tap_step("duplicate: registration and deregistration");
	arm(QRDMA_FAULT_DUPLICATE, QRDMA_CMD_CREATE_MKEY, 0, 0);
	mr = bench_register(bench);
	tap_ok(mr && access_page(bench, mr->rkey) == RIGHT,
	       "duplicate create: the region works");
	if (mr) {
		arm(QRDMA_FAULT_DUPLICATE, QRDMA_CMD_DESTROY_MKEY,
		    mr->rkey >> 8, 0);
		deregister("duplicate", mr);
	}
	tap_ok(!ask_user(bench), "duplicate destroy: the next region works");
	check_alive("duplicate", bench->device);
}

static void swapped(struct bench *bench)
{
	struct ibv_mr *first, *second;

	tap_step("swap: two registrations");
	arm(QRDMA_FAULT_SWAP, QRDMA_CMD_CREATE_MKEY, 0, 0);
	first = bench_register(bench);
	tap_need(first, "ibv_reg_mr");
	tap_ok(access_page(bench, first->rkey) == REFUSED,
	       "swap: a key that is not there yet is refused");
	second = bench_register(bench);
	tap_need(second, "ibv_reg_mr");
	tap_ok(access_page(bench, first->rkey) == RIGHT &&
	       access_page(bench, second->rkey) == RIGHT,
	       "swap: then both keys work");
	deregister("swap", first);
	deregister("swap", second);
}

static void dropped_modify(struct bench *bench)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp *qp = bench->pair->requester;
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REGION_ACCESS,
	};
	int reset, error;

	tap_step("drop modify");
	arm(QRDMA_FAULT_DROP, QRDMA_CMD_MODIFY_QP, 0, 0);
	reset = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	error = ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			      IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	tap_ok(!reset && error == EINVAL,
	       "drop modify: the next step from a state that is not the card's is refused (%s)",
	       strerror(error));
	rc_pair_recover(bench->pair);
	check_alive("drop modify", bench->device);
}

/* ------------------------------------------------------------- page faults */

/*
 * A page fault whose resume meets @count faults of a kind. The access is right,
 * or ends in an error; it does not wait for ever. False: it waits.
 */
static bool resume(struct bench *bench, enum qrdma_fault_action action,
		   uint32_t count, enum ibv_wc_status *status)
{
	int fd = exporter_create(SIZE, LAYOUT(4K));
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->staging,
		.lkey = bench->staging_mr->lkey,
		.remote = IOVA,
		.length = PAGE,
	};
	struct ibv_mr *mr;
	bool ended;

	exporter_stamp(fd, SIZE, SEED);
	mr = register_dmabuf(bench->device, fd, 0, SIZE, IOVA, true);
	tap_need(mr, "registration of a dma-buf region");
	access.rkey = mr->rkey;
	if (exporter_move(fd, LAYOUT(2M), 0, 0))
		tap_bail("the exporter does not move");
	diagnostic_clear();
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_COMMAND,
		.action = action,
		.opcode = QRDMA_CMD_RESUME_PAGE_FAULT,
		.count = count,
		.delay = action == QRDMA_FAULT_DELAY ||
			 action == QRDMA_FAULT_LATE ? SHORT : 0,
	});
	rc_post(bench->pair, &access);
	ended = rc_poll_for(bench->pair, action == QRDMA_FAULT_DROP ? 1000
								    : 20000,
			    status);
	diagnostic_clear();
	if (!ended || *status != IBV_WC_SUCCESS)
		rc_pair_recover(bench->pair);
	deregister("resume", mr);
	close(fd);
	return ended;
}

static bool resumed_right(struct bench *bench, enum qrdma_fault_action action,
			  uint32_t count)
{
	enum ibv_wc_status status;

	return resume(bench, action, count, &status) &&
	       status == IBV_WC_SUCCESS &&
	       !stamp_check(bench->staging, SEED, 0, 1, NULL);
}

static void resumes(struct bench *bench)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	bool ended;

	tap_step("resume: refused once");
	tap_ok(resumed_right(bench, QRDMA_FAULT_FAIL, 1),
	       "fail resume: asked again, the access is right");
	tap_step("resume: refused for ever");
	ended = resume(bench, QRDMA_FAULT_FAIL, QRDMA_FAULT_FOR_EVER, &status);
	tap_ok(ended && status == IBV_WC_WR_FLUSH_ERR,
	       "fail resume for ever: the queue pair goes into error (%s)",
	       ended ? ibv_wc_status_str(status) : "it waits");
	tap_step("resume: delayed, late, twice");
	tap_ok(resumed_right(bench, QRDMA_FAULT_DELAY, 1),
	       "delay resume: the access is right");
	tap_ok(resumed_right(bench, QRDMA_FAULT_LATE, 1),
	       "late resume: the access is right");
	tap_ok(resumed_right(bench, QRDMA_FAULT_DUPLICATE, 1),
	       "duplicate resume: the access is right");
	tap_step("resume: dropped");
	ended = resume(bench, QRDMA_FAULT_DROP, 1, &status);
	tap_ok(!ended,
	       "drop resume: the access waits; queue pair and region go all the same");
	check_alive("resume", bench->device);
}

/* ------------------------------------------------------------- PBLE space */

/*
 * Regions whose tables together need three segments of PBLE space: 16384 entries
 * each. Returns the errno of those that failed, once each.
 */
static int fill(struct bench *bench, int fd, struct ibv_mr *mrs[REGIONS],
		unsigned int *failed)
{
	int error = 0;

	*failed = 0;
	for (unsigned int i = 0; i < REGIONS;) {
		mrs[i] = register_dmabuf(bench->device, fd, 0, LARGE,
					 IOVA + i * GIB, true);
		if (mrs[i]) {
			i++;
			continue;
		}
		error = rc_errno(mrs[i]);
		if (++*failed > REGIONS)
			tap_bail("regions fail again and again: %s",
				 strerror(error));
	}
	return error;
}

static void empty(struct ibv_mr *mrs[REGIONS])
{
	for (unsigned int i = 0; i < REGIONS; i++)
		deregister("segments", mrs[i]);
}

static void segments(struct bench *bench)
{
	int error, fd = exporter_create(LARGE, LAYOUT(2M));
	struct ibv_mr *mrs[REGIONS];
	unsigned int failed;

	tap_step("fail segment");
	arm(QRDMA_FAULT_FAIL, QRDMA_CMD_ADD_SD, 0, 0);
	error = fill(bench, fd, mrs, &failed);
	tap_ok(error == EREMOTEIO && failed == 1,
	       "fail segment: one registration of %u fails, with %s", REGIONS,
	       strerror(error));

	/* Spare segments are given back; the card keeps one. */
	tap_step("drop segment's end");
	arm(QRDMA_FAULT_DROP, QRDMA_CMD_REMOVE_SD, 0, 0);
	empty(mrs);
	diagnostic_wait_fired(1);
	fill(bench, fd, mrs, &failed);
	tap_ok(!failed,
	       "drop segment's end: the segment can be had again");
	empty(mrs);
	close(fd);
	check_alive("segments", bench->device);
}

/* ----------------------------------------------------------- what kills it */

static struct rc_device *deadly(struct rc_device *device)
{
	struct bench bench;
	struct ibv_mr *mr;

	tap_step("fail destroy");
	bench_begin(&bench, device);
	mr = bench_register(&bench);
	tap_need(mr, "ibv_reg_mr");
	arm(QRDMA_FAULT_FAIL, QRDMA_CMD_DESTROY_MKEY, mr->rkey >> 8, 0);
	tap_ok(!ibv_dereg_mr(mr), "fail destroy: deregistration succeeds");
	check_fatal("fail destroy", device);
	diagnostic_clear();
	bench_end(&bench);
	device = card_renew("fail destroy", device);

	/* No answer within the time that a card may take. */
	bench_begin(&bench, device);
	tap_step("no answer");
	card_parameter("answer_timeout", 500);
	arm(QRDMA_FAULT_DELAY, QRDMA_CMD_CREATE_MKEY, 0, 5000 * MILLISECONDS);
	mr = bench_register(&bench);
	tap_ok(!mr && errno == EIO, "no answer: registration fails with %s",
	       strerror(errno));
	check_fatal("no answer", device);
	card_parameter("answer_timeout", 120000);
	diagnostic_clear();
	bench_end(&bench);
	return card_renew("no answer", device);
}

/*
 * Each command of the driver's start is refused once. It does not start then, or
 * it does without; it leaves nothing, and starts the next time.
 */
static struct rc_device *starts(struct rc_device *device)
{
	unsigned int at, failed = 0, survived = 0;
	bool again = true;

	rc_close(device);
	for (at = 1; again; at++) {
		bool loaded;

		tap_step("start: command %u is refused", at);
		if (!card_unload())
			tap_bail("start: the driver does not unload before command %u",
				 at);
		diagnostic_clear();
		diagnostic_arm((struct fault) {
			.target = QRDMA_FAULT_COMMAND,
			.action = QRDMA_FAULT_FAIL,
			.at = at,
		});
		loaded = card_load();
		again = !diagnostic_armed();
		failed += !loaded;
		survived += loaded && again;
		if (!again && !loaded)
			tap_bail("start: fails though nothing was refused");
	}
	diagnostic_clear();
	tap_figures("case=start commands=%u failed=%u survived=%u", at - 2,
		    failed, survived);
	tap_ok(failed >= 8,
	       "start: each of %u commands may fail, and the next start works",
	       at - 2);
	return rc_open();
}

int main(void)
{
	struct rc_device *device;
	struct bench bench;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	bench_begin(&bench, device);
	refused(&bench);
	delayed(&bench);
	dropped_create(&bench);
	dropped_dmabuf(&bench, false);
	dropped_dmabuf(&bench, true);
	late_create(&bench);
	late_create_gone(&bench);
	late_destroy(&bench);
	twice(&bench);
	swapped(&bench);
	dropped_modify(&bench);
	resumes(&bench);
	segments(&bench);
	diagnostic_clear();
	bench_end(&bench);
	check_works("commands", device);
	device = card_renew("commands", device);
	device = deadly(device);
	device = starts(device);
	check_works("start", device);
	rc_close(device);
	return tap_end();
}
