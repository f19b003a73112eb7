/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Events that come late, twice, in another order or not at all, also of objects
 * that are gone; completions of users' queues likewise; and memory that the bus
 * refuses.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "blocks.h"
#include "card.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(2 * MIB)
#define IOVA		0x760000000000ull
#define SEED		0x5eed
#define SHORT		(200 * MILLISECONDS)
#define A_WHILE		500	/* milliseconds: what has not come by then does not */
#define LONG		20000	/* milliseconds: what has not come by then is lost */

/* Two pages of user memory: the region, and what it is copied to. */
struct bench {
	struct rc_device *device;
	struct rc_pair *pair;
	char *memory;
	struct ibv_mr *mr;
	struct rc_access read;		/* remote page to local page */
};

static void bench_begin(struct bench *bench, struct rc_device *device)
{
	bench->device = device;
	bench->memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(bench->memory != MAP_FAILED, "no memory");
	stamp_pages(bench->memory, SEED, 0, 2);
	bench->mr = ibv_reg_mr(device->pd, bench->memory, 2 * PAGE,
			       REGION_ACCESS);
	tap_need(bench->mr, "ibv_reg_mr");
	bench->pair = rc_pair_create(device);
	bench->read = (struct rc_access) {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->memory + PAGE,
		.lkey = bench->mr->lkey,
		.remote = (uintptr_t)bench->memory,
		.rkey = bench->mr->rkey,
		.length = PAGE,
	};
}

static void bench_end(struct bench *bench)
{
	rc_pair_destroy(bench->pair);
	if (ibv_dereg_mr(bench->mr))
		tap_bail("ibv_dereg_mr");
	munmap(bench->memory, 2 * PAGE);
}

static void new_pair(struct bench *bench)
{
	rc_pair_destroy(bench->pair);
	bench->pair = rc_pair_create(bench->device);
}

static void arm(enum qrdma_fault_target target, enum qrdma_fault_action action,
		uint32_t opcode, uint64_t delay)
{
	diagnostic_clear();
	diagnostic_arm((struct fault) {
		.target = target,
		.action = action,
		.opcode = opcode,
		.delay = delay,
	});
}

static bool right(struct bench *bench)
{
	memset(bench->memory + PAGE, 0, PAGE);
	if (rc_execute(bench->pair, &bench->read) != IBV_WC_SUCCESS) {
		rc_pair_recover(bench->pair);
		return false;
	}
	return !stamp_check(bench->memory + PAGE, SEED, 0, 1, NULL);
}

/* ------------------------------------------------------- completion events */

/* Completion events of the pair's channel within @milliseconds, at most 2. */
static unsigned int channel_events(struct bench *bench, int milliseconds)
{
	struct pollfd file = {
		.fd = bench->pair->channel->fd,
		.events = POLLIN,
	};
	unsigned int count = 0;
	struct ibv_cq *cq;
	void *context;

	while (count < 2 && poll(&file, 1, milliseconds) > 0) {
		if (ibv_get_cq_event(bench->pair->channel, &cq, &context))
			tap_bail_errno("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
		count++;
		milliseconds = A_WHILE;
	}
	return count;
}

/* The CQ is armed and a request posted; the event meets the fault. */
static unsigned int notified(struct bench *bench, int milliseconds)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
	unsigned int events;

	if (ibv_req_notify_cq(bench->pair->cq, 0))
		tap_bail("ibv_req_notify_cq");
	rc_post(bench->pair, &bench->read);
	events = channel_events(bench, milliseconds);
	if (!rc_poll_for(bench->pair, LONG, &status) ||
	    status != IBV_WC_SUCCESS)
		tap_bail("no completion: %s", ibv_wc_status_str(status));
	return events;
}

static void completion_events(struct bench *bench)
{
	unsigned int events;
	int error;

	tap_step("completion event");
	diagnostic_clear();
	events = notified(bench, LONG);
	tap_ok(events == 1, "no fault: one completion event");

	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DROP, QRDMA_EVENT_COMPLETION, 0);
	events = notified(bench, A_WHILE);
	tap_ok(!events && diagnostic_fired() == 1,
	       "drop completion event: the completion is there all the same");
	events = notified(bench, LONG);
	tap_ok(events == 1, "drop completion event: the next one comes");

	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_COMPLETION,
	    SHORT);
	events = notified(bench, LONG);
	tap_ok(events == 1, "delay completion event: it comes");

	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DUPLICATE, QRDMA_EVENT_COMPLETION,
	    0);
	events = notified(bench, LONG);
	tap_ok(events == 2, "duplicate completion event: it comes twice");

	/* Of a CQ that is gone, or that has the number now. */
	tap_step("completion event of a queue that is gone");
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_COMPLETION,
	    SHORT);
	notified(bench, 0);
	new_pair(bench);
	diagnostic_wait_released();
	tap_ok(right(bench),
	       "completion event of a queue that is gone: nobody minds");

	/* The driver's own queue. */
	tap_step("completion event of a UMR");
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DROP, QRDMA_EVENT_COMPLETION, 0);
	error = ibv_rereg_mr(bench->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			     0, REGION_ACCESS);
	tap_ok(!error && diagnostic_fired() == 1,
	       "drop completion event of a UMR: the driver looks by itself");
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DUPLICATE, QRDMA_EVENT_COMPLETION,
	    0);
	error = ibv_rereg_mr(bench->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			     0, REGION_ACCESS);
	tap_ok(!error && right(bench),
	       "duplicate completion event of a UMR: no harm");
	check_alive("completion event", bench->device);
}

/* -------------------------------------------------------- users' completions */

static void user_completions(struct bench *bench)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
	uint64_t others;
	bool first, second;

	tap_step("completion of a user");
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DELAY, 0, SHORT);
	tap_ok(right(bench), "delay completion: it is waited for");

	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DUPLICATE, 0, 0);
	rc_post(bench->pair, &bench->read);
	first = rc_poll_for(bench->pair, LONG, &status);
	second = rc_poll_for(bench->pair, A_WHILE, &status);
	tap_ok(first && !second && status == IBV_WC_SUCCESS && right(bench),
	       "duplicate completion: reported once");

	/* One that comes first stands for those before it. */
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_SWAP, 0, 0);
	rc_post(bench->pair, &bench->read);
	rc_post(bench->pair, &bench->read);
	first = rc_poll_for(bench->pair, LONG, &status);
	second = rc_poll_for(bench->pair, A_WHILE, &status);
	tap_ok(first && !second && status == IBV_WC_SUCCESS && right(bench),
	       "swap completion: the later one stands for both");

	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DROP, 0, 0);
	rc_post(bench->pair, &bench->read);
	first = rc_poll_for(bench->pair, A_WHILE, &status);
	tap_ok(!first && right(bench),
	       "drop completion: it does not come, the next one does");

	tap_step("completion of a user, CQ in error");
	others = rc_other_events(bench->device);
	arm(QRDMA_FAULT_COMPLETION, QRDMA_FAULT_FAIL, 0, 0);
	rc_post(bench->pair, &bench->read);
	while (rc_other_events(bench->device) == others)
		usleep(1000);
	diagnostic_clear();
	new_pair(bench);
	tap_ok(right(bench),
	       "fail completion: IBV_EVENT_CQ_ERR, and new queues work");
	check_alive("completion", bench->device);
}

/* ------------------------------------------------------------- page faults */

/* A region whose table is empty: the next access faults. */
struct absent {
	int fd;
	struct ibv_mr *mr;
	struct rc_access read;
};

static struct absent absent(struct bench *bench, unsigned int number)
{
	struct absent absent = { .fd = exporter_create(SIZE, LAYOUT(4K)) };

	exporter_stamp(absent.fd, SIZE, SEED);
	absent.mr = register_dmabuf(bench->device, absent.fd, 0, SIZE,
				    IOVA + number * GIB, true);
	tap_need(absent.mr, "registration of a dma-buf region");
	if (exporter_move(absent.fd, LAYOUT(2M), 0, 0))
		tap_bail("the exporter does not move");
	absent.read = bench->read;
	absent.read.remote = IOVA + number * GIB;
	absent.read.rkey = absent.mr->rkey;
	return absent;
}

static void absent_end(struct absent *absent)
{
	if (ibv_dereg_mr(absent->mr))
		tap_bail("ibv_dereg_mr");
	close(absent->fd);
}

/* True if the access is right in the end. */
static bool fault_in(struct bench *bench, const struct absent *absent,
		     unsigned int milliseconds)
{
	enum ibv_wc_status status;

	memset(bench->memory + PAGE, 0, PAGE);
	rc_post(bench->pair, &absent->read);
	return rc_poll_for(bench->pair, milliseconds, &status) &&
	       status == IBV_WC_SUCCESS &&
	       !stamp_check(bench->memory + PAGE, SEED, 0, 1, NULL);
}

static void page_faults(struct bench *bench)
{
	struct rc_pair *other = rc_pair_create(bench->device);
	struct absent region, second;
	enum ibv_wc_status status;
	bool ended;

	tap_step("page fault");
	region = absent(bench, 0);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_PAGE_FAULT,
	    SHORT);
	tap_ok(fault_in(bench, &region, LONG), "delay page fault: right");
	absent_end(&region);

	region = absent(bench, 0);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DUPLICATE, QRDMA_EVENT_PAGE_FAULT,
	    0);
	tap_ok(fault_in(bench, &region, LONG) &&
	       fault_in(bench, &region, LONG), "duplicate page fault: right");
	absent_end(&region);

	tap_step("page fault that nobody hears of");
	region = absent(bench, 0);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DROP, QRDMA_EVENT_PAGE_FAULT, 0);
	ended = fault_in(bench, &region, A_WHILE);
	rc_pair_recover(bench->pair);
	tap_ok(!ended && fault_in(bench, &region, LONG),
	       "drop page fault: the queue pair waits, can be reset, and then is right");
	absent_end(&region);

	tap_step("page faults in another order");
	region = absent(bench, 0);
	second = absent(bench, 1);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_SWAP, QRDMA_EVENT_PAGE_FAULT, 0);
	rc_post(other, &second.read);
	diagnostic_wait_fired(1);
	ended = fault_in(bench, &region, LONG) &&
		rc_poll_for(other, LONG, &status) && status == IBV_WC_SUCCESS;
	tap_ok(ended, "swap page fault: both are right");
	absent_end(&second);
	absent_end(&region);

	/* Region and queue pair are gone when the event comes. */
	tap_step("page fault of a region that is gone");
	region = absent(bench, 0);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_PAGE_FAULT,
	    SHORT);
	rc_post(bench->pair, &region.read);
	diagnostic_wait_fired(1);
	new_pair(bench);
	absent_end(&region);
	diagnostic_wait_released();
	tap_ok(right(bench), "page fault of a region that is gone: no harm");
	rc_pair_destroy(other);
	check_alive("page fault", bench->device);
}

/* ----------------------------------------------------------- access errors */

/* An access with a key that nobody has. */
static void refused(struct bench *bench)
{
	struct rc_access access = bench->read;

	access.rkey ^= 0x55;
	if (rc_execute(bench->pair, &access) == IBV_WC_SUCCESS)
		tap_bail("an access with a wrong key went through");
}

/* Events that came within a while, after at least @wait. */
static uint64_t errors_since(struct bench *bench, uint64_t before,
			     uint64_t wait)
{
	rc_wait_access_errors(bench->device, before + wait);
	usleep(A_WHILE * 1000);
	return rc_access_errors(bench->device) - before;
}

static void access_errors(struct bench *bench)
{
	struct rc_device *device = bench->device;
	uint64_t before = rc_access_errors(device), usual;

	tap_step("access error");
	diagnostic_clear();
	refused(bench);
	usual = errors_since(bench, before, 1);
	rc_pair_recover(bench->pair);

	before = rc_access_errors(device);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DROP, QRDMA_EVENT_QP_ACCESS_ERROR,
	    0);
	refused(bench);
	tap_ok(errors_since(bench, before, 0) == usual - 1,
	       "drop access error: the completion says it all the same");
	rc_pair_recover(bench->pair);

	before = rc_access_errors(device);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DUPLICATE,
	    QRDMA_EVENT_QP_ACCESS_ERROR, 0);
	refused(bench);
	tap_ok(errors_since(bench, before, 2) == usual + 1,
	       "duplicate access error: it comes twice");
	rc_pair_recover(bench->pair);

	before = rc_access_errors(device);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_SWAP, QRDMA_EVENT_QP_ACCESS_ERROR,
	    0);
	refused(bench);
	rc_pair_recover(bench->pair);
	refused(bench);
	tap_ok(errors_since(bench, before, 2) == 2 * usual,
	       "swap access error: both come");
	rc_pair_recover(bench->pair);

	tap_step("access error of a queue pair that is gone");
	before = rc_access_errors(device);
	arm(QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_QP_ACCESS_ERROR,
	    SHORT);
	refused(bench);
	new_pair(bench);
	diagnostic_wait_released();
	tap_ok(errors_since(bench, before, 0) == usual - 1 && right(bench),
	       "delay access error: of a queue pair that is gone, nobody hears");
	check_alive("access error", device);
}

/* --------------------------------------------------------------------- DMA */

static void dma_errors(struct bench *bench)
{
	struct extents extents = {};
	struct rc_access write = bench->read;
	struct absent region;
	bool refused_read, refused_write;

	tap_step("DMA errors");
	diagnostic_clear();
	if (!extents_of_memory(&extents, bench->memory, PAGE))
		tap_bail("the kernel does not say where memory is");
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_DMA_READ,
		.action = QRDMA_FAULT_FAIL,
		.count = QRDMA_FAULT_FOR_EVER,
		.address = extents.list[0].address,
		.length = PAGE,
	});
	refused_read = !right(bench);
	diagnostic_clear();
	tap_ok(refused_read && right(bench),
	       "fail DMA read: the access is refused, later ones are right");

	/* Over itself: the page stays what it is. */
	write.opcode = IBV_WR_RDMA_WRITE;
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_DMA_WRITE,
		.action = QRDMA_FAULT_FAIL,
		.count = QRDMA_FAULT_FOR_EVER,
		.address = extents.list[0].address,
		.length = PAGE,
	});
	refused_write = rc_execute(bench->pair, &write) != IBV_WC_SUCCESS;
	rc_pair_recover(bench->pair);
	diagnostic_clear();
	tap_ok(refused_write && !stamp_check(bench->memory, SEED, 0, 1, NULL) &&
	       right(bench),
	       "fail DMA write: the access is refused, and the page untouched");
	extents_free(&extents);

	/* The UMR's WQE is read first, then the table data that it refers to. */
	tap_step("DMA error of table data");
	region = absent(bench, 0);
	tap_need(fault_in(bench, &region, LONG), "the region does not load");
	if (exporter_move(region.fd, LAYOUT(4K), 0, 0))
		tap_bail("the exporter does not move");
	tap_need(fault_in(bench, &region, LONG), "the region does not load");
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_DMA_READ,
		.action = QRDMA_FAULT_FAIL,
		.at = 2,
		.length = UINT64_MAX,
	});
	if (exporter_move(region.fd, LAYOUT(64K), 0, 0))
		tap_bail("the exporter does not move");
	diagnostic_clear();
	tap_ok(!fault_in(bench, &region, LONG),
	       "fail DMA read of table data: the key is taken from its owner");
	rc_pair_recover(bench->pair);
	absent_end(&region);
	check_alive("DMA errors", bench->device);
}

/* --------------------------------------------------------- what is deadly */

static struct rc_device *deadly(struct rc_device *device, const char *name,
				struct fault fault)
{
	struct bench bench;
	int error;

	bench_begin(&bench, device);
	tap_step("%s", name);
	diagnostic_clear();
	diagnostic_arm(fault);
	error = ibv_rereg_mr(bench.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			     0, REGION_ACCESS) ? errno : 0;
	tap_note("%s: a UMR ends with %s", name,
		 error ? strerror(error) : "no error");
	check_fatal(name, device);
	diagnostic_clear();
	bench_end(&bench);
	return card_renew(name, device);
}

int main(void)
{
	struct rc_device *device;
	struct bench bench;

	tap_begin();
	device = rc_open();
	diagnostic_open(device);
	bench_begin(&bench, device);
	completion_events(&bench);
	user_completions(&bench);
	page_faults(&bench);
	access_errors(&bench);
	dma_errors(&bench);
	diagnostic_clear();
	bench_end(&bench);
	check_works("events", device);
	device = deadly(device, "fail event", (struct fault) {
		.target = QRDMA_FAULT_EVENT,
		.action = QRDMA_FAULT_FAIL,
	});
	/* The first read is that of the WQE. */
	device = deadly(device, "fail DMA read of the UMR queue",
			(struct fault) {
				.target = QRDMA_FAULT_DMA_READ,
				.action = QRDMA_FAULT_FAIL,
				.length = UINT64_MAX,
			});
	check_works("events", device);
	rc_close(device);
	return tap_end();
}
