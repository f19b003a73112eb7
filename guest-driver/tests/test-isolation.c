/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two programs on one card. One means harm: it rings every doorbell there is
 * with any counter, maps what is not its own, uses the other's keys and the
 * driver's, and writes work requests by hand that are for the driver's queue
 * only. The other one's queues, memory and keys must not notice.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qrdma_hw.h"
#include "rc.h"
#include "stamp.h"
#include "tap.h"

#define LENGTH	(4 * PAGE)
#define FILL	0x5a
#define MARK	0x1122334455667700ull	/* remote address of a request */

/* ------------------------------------------------------------- the victim */

struct numbers {
	uint32_t requester;
	uint32_t responder;
	uint32_t lkey;
	uint32_t rkey;
	uint64_t address;
};

struct outcome {
	uint64_t changed;		/* bytes of its memory */
	uint64_t events;
	uint32_t status;		/* of a transfer of its own, and its data */
	bool right;
};

static char *pages(void)
{
	char *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED, "no memory");
	return memory;
}

static struct ibv_mr *registered(struct rc_device *device, char *memory)
{
	struct ibv_mr *mr = ibv_reg_mr(device->pd, memory, LENGTH,
				       REGION_ACCESS);

	tap_need(mr, "cannot register memory");
	return mr;
}

static struct outcome examine(struct rc_pair *pair, struct ibv_mr *mr,
			      char *memory)
{
	char *own = pages();
	struct ibv_mr *own_mr = registered(pair->device, own);
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_WRITE,
		.local = (uintptr_t)own,
		.lkey = own_mr->lkey,
		.remote = (uintptr_t)memory,
		.rkey = mr->rkey,
		.length = LENGTH,
	};
	struct outcome outcome = { 0 };
	uint64_t i;

	for (i = 0; i < LENGTH; i++)
		outcome.changed += memory[i] != FILL;
	memset(own, ~FILL, LENGTH);
	outcome.status = rc_execute(pair, &access);
	outcome.right = !memcmp(own, memory, LENGTH);
	outcome.events = rc_access_errors(pair->device) +
			 rc_other_events(pair->device);
	ibv_dereg_mr(own_mr);
	return outcome;
}

static void be_victim(int in, int out)
{
	struct rc_device *device = rc_open();
	struct rc_pair *pair = rc_pair_create(device);
	char *memory = pages();
	struct ibv_mr *mr = registered(device, memory);
	struct numbers numbers = {
		.requester = pair->requester->qp_num,
		.responder = pair->responder->qp_num,
		.lkey = mr->lkey,
		.rkey = mr->rkey,
		.address = (uintptr_t)memory,
	};
	struct outcome outcome;
	char go;

	memset(memory, FILL, LENGTH);
	tap_need(write(out, &numbers, sizeof(numbers)) == sizeof(numbers),
		 "the victim cannot tell its numbers");
	tap_need(read(in, &go, 1) == 1, "the victim is not told to look");
	outcome = examine(pair, mr, memory);
	tap_need(write(out, &outcome, sizeof(outcome)) == sizeof(outcome),
		 "the victim cannot tell what became of it");
	_exit(0);
}

/* ----------------------------------------------------------- the attacker */

struct attacker {
	struct rc_device *device;
	struct rc_pair *pair;
	char *memory;
	struct ibv_mr *mr;
	volatile uint64_t *doorbells;	/* its own page */
	struct numbers victim;
};

/* The provider has mapped the page; here is where. */
static volatile uint64_t *find_doorbells(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[512];

	tap_need(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/uverbs") &&
		    sscanf(line, "%lx-", &start) == 1)
			break;
	fclose(maps);
	tap_need(start, "no doorbell page is mapped");
	return (volatile uint64_t *)start;
}

static void ring(struct attacker *attacker, unsigned int offset, uint32_t low,
		 uint32_t counter)
{
	attacker->doorbells[offset / 8] = (uint64_t)counter << 32 | low;
}

/* Every number of a queue that is likely, with counters that would matter. */
static void ring_everything(struct attacker *attacker)
{
	static const uint32_t counters[] = { 0, 1, 5, 0xffff, 0xffffffff };
	uint32_t number;
	unsigned int offset, i;

	for (number = 0; number < 256; number++) {
		if (number == attacker->pair->requester->qp_num ||
		    number == attacker->pair->responder->qp_num)
			continue;
		for (offset = 0; offset < 64; offset += 8)
			for (i = 0; i < sizeof(counters) / sizeof(*counters); i++) {
				ring(attacker, offset, number, counters[i]);
				ring(attacker, offset, number | 1u << 30,
				     counters[i]);
			}
	}
}

/* Nothing but its own page can be mapped, and that neither longer nor read. */
static void map_others(struct attacker *attacker)
{
	unsigned int page, mapped = 0;
	void *address;

	for (page = 0; page < 2048; page++) {
		address = mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED,
			       attacker->device->context->cmd_fd,
			       (off_t)page * PAGE);
		if (address != MAP_FAILED) {
			mapped++;
			munmap(address, PAGE);
		}
		address = mmap(NULL, 2 * PAGE, PROT_WRITE, MAP_SHARED,
			       attacker->device->context->cmd_fd,
			       (off_t)page * PAGE);
		if (address != MAP_FAILED)
			mapped += 100;
	}
	tap_ok(mapped == 1, "of 2048 pages of the device one can be mapped, alone");
}

/* ------------------------------------------------------------ others' keys */

static enum ibv_wc_status use(struct attacker *attacker,
			      enum ibv_wr_opcode opcode, uint64_t local,
			      uint32_t lkey, uint64_t remote, uint32_t rkey)
{
	struct rc_access access = {
		.opcode = opcode,
		.local = local,
		.lkey = lkey,
		.remote = remote,
		.rkey = rkey,
		.length = 64,
	};
	enum ibv_wc_status status = rc_execute(attacker->pair, &access);

	if (status != IBV_WC_SUCCESS)
		rc_pair_recover(attacker->pair);
	return status;
}

static void use_victims_keys(struct attacker *attacker)
{
	const struct numbers *victim = &attacker->victim;
	uint64_t own = (uintptr_t)attacker->memory;

	tap_ok(use(attacker, IBV_WR_RDMA_WRITE, own, attacker->mr->lkey,
		   victim->address, victim->rkey) == IBV_WC_REM_ACCESS_ERR,
	       "a write with the other's remote key is refused");
	tap_ok(use(attacker, IBV_WR_RDMA_READ, own, attacker->mr->lkey,
		   victim->address, victim->rkey) == IBV_WC_REM_ACCESS_ERR,
	       "a read with the other's remote key is refused");
	tap_ok(use(attacker, IBV_WR_RDMA_WRITE, victim->address, victim->lkey,
		   own, attacker->mr->rkey) == IBV_WC_LOC_PROT_ERR,
	       "data is not taken with the other's local key");
	tap_ok(use(attacker, IBV_WR_RDMA_READ, victim->address, victim->lkey,
		   own, attacker->mr->rkey) == IBV_WC_LOC_PROT_ERR,
	       "data is not put with the other's local key");
}

/* The driver's key to all memory, and any other: by guessing. */
static void guess_keys(struct attacker *attacker)
{
	uint64_t own = (uintptr_t)attacker->memory;
	unsigned int index, variant, granted = 0, tried = 0;

	for (index = 0; index < 16; index++)
		for (variant = 0; variant < 256; variant += 51) {
			uint32_t key = index << 8 | variant;

			if (index == attacker->mr->rkey >> 8)
				continue;
			tried++;
			granted += use(attacker, IBV_WR_RDMA_READ, own,
				       attacker->mr->lkey, 0x1000, key) !=
				   IBV_WC_REM_ACCESS_ERR;
			granted += use(attacker, IBV_WR_RDMA_WRITE, 0x1000, key,
				       own, attacker->mr->rkey) !=
				   IBV_WC_LOC_PROT_ERR;
		}
	tap_figures("guessed=%u", tried);
	tap_ok(granted == 0, "no key that was guessed is granted");
}

/* ------------------------------------------------------------- raw requests */

/* The slot of a request with this remote address: in whatever memory. */
static char *find_slot(uint64_t mark)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512], mode[8];
	char *found = NULL;

	tap_need(maps, "/proc/self/maps");
	while (!found && fgets(line, sizeof(line), maps)) {
		char *slot;

		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 ||
		    strncmp(mode, "rw-p", 4) || strstr(line, "[stack"))
			continue;
		for (slot = (char *)start; slot + PAGE <= (char *)end &&
		     !found; slot += 64)
			if (!memcmp(slot + offsetof(struct qrdma_send_wqe,
						    remote_address),
				    &mark, sizeof(mark)) &&
			    slot[0] == QRDMA_SEND_OP_WRITE)
				found = slot;
	}
	fclose(maps);
	return found;
}

static void post_marked(struct attacker *attacker, uint64_t mark)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_WRITE,
		.local = (uintptr_t)attacker->memory,
		.lkey = attacker->mr->lkey,
		.remote = mark,
		.rkey = attacker->mr->rkey,
		.length = 0,
	};

	rc_post(attacker->pair, &access);
}

/* The provider knows nothing of the request, so it is the queue that tells. */
static bool comes_to_error(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int i;

	for (i = 0; i < 1000; i++) {
		tap_need(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init),
			 "ibv_query_qp");
		if (attr.qp_state == IBV_QPS_ERR)
			return true;
	}
	return false;
}

/*
 * A request written by hand behind two that the provider wrote: where those
 * are says where it goes. False: the card took it for good.
 */
static bool raw_refused(struct attacker *attacker, const void *wqe,
			size_t size)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	char *first, *second;
	unsigned int i;

	rc_pair_recover(attacker->pair);
	post_marked(attacker, MARK);
	post_marked(attacker, MARK + 8);
	first = find_slot(MARK);
	second = find_slot(MARK + 8);
	tap_need(first && second && second > first, "no send ring is found");
	for (i = 0; i < 2; i++)
		tap_need(rc_poll_for(attacker->pair, 10000, &status) &&
			 status == IBV_WC_SUCCESS, "an empty write");
	memset(second + (second - first), 0, second - first);
	memcpy(second + (second - first), wqe, size);
	/* What follows must not be found again. */
	memset(first, 0, second - first);
	memset(second, 0, second - first);
	__sync_synchronize();
	ring(attacker, QRDMA_DOORBELL_SEND, attacker->pair->requester->qp_num,
	     3);
	return comes_to_error(attacker->pair->requester);
}

static void write_raw(struct attacker *attacker)
{
	struct qrdma_umr_wqe umr = {
		.opcode = QRDMA_SEND_OP_UMR,
		.flags = QRDMA_WQE_SIGNALED,
		.key = attacker->victim.rkey,
		.mask = QRDMA_UMR_MASK_FREE,
		.mkc.flags = QRDMA_MKEY_FREE,
	};
	struct qrdma_send_wqe wqe = {
		.opcode = QRDMA_SEND_OP_WRITE,
		.flags = QRDMA_WQE_SIGNALED,
		.num_sge = 0xffffffff,
		.remote_key = attacker->victim.rkey,
	};

	tap_ok(raw_refused(attacker, &umr, sizeof(umr)),
	       "a change of the other's key, in a queue of a user's, is refused");
	umr.key = attacker->mr->rkey;
	tap_ok(raw_refused(attacker, &umr, sizeof(umr)),
	       "and so is one of its own key");
	tap_ok(raw_refused(attacker, &wqe, sizeof(wqe)),
	       "a request of 2^32 - 1 segments is refused");
	wqe.num_sge = 0;
	wqe.opcode = 0xff;
	tap_ok(raw_refused(attacker, &wqe, sizeof(wqe)),
	       "a request of no known kind is refused");
	rc_pair_recover(attacker->pair);
}

/* ------------------------------------------------------------------- course */

static struct attacker begin_attack(struct numbers victim)
{
	struct attacker attacker = { .victim = victim };

	attacker.device = rc_open();
	attacker.pair = rc_pair_create(attacker.device);
	attacker.memory = pages();
	attacker.mr = registered(attacker.device, attacker.memory);
	attacker.doorbells = find_doorbells();
	return attacker;
}

static void end_attack(struct attacker *attacker)
{
	uint64_t own = (uintptr_t)attacker->memory;

	tap_ok(use(attacker, IBV_WR_RDMA_WRITE, own, attacker->mr->lkey,
		   own + PAGE, attacker->mr->rkey) == IBV_WC_SUCCESS,
	       "the attacker's own queues and key still work");
	ibv_dereg_mr(attacker->mr);
	rc_pair_destroy(attacker->pair);
	rc_close(attacker->device);
}

int main(void)
{
	int to[2], from[2];
	struct numbers victim;
	struct attacker attacker;
	struct outcome outcome;
	pid_t child;

	tap_begin();
	tap_need(!pipe(to) && !pipe(from), "pipes");
	child = fork();
	tap_need(child >= 0, "fork");
	if (!child)
		be_victim(to[0], from[1]);
	tap_need(read(from[0], &victim, sizeof(victim)) == sizeof(victim),
		 "the victim has no numbers");
	attacker = begin_attack(victim);
	ring_everything(&attacker);
	map_others(&attacker);
	use_victims_keys(&attacker);
	guess_keys(&attacker);
	write_raw(&attacker);
	ring_everything(&attacker);
	end_attack(&attacker);

	tap_need(write(to[1], "", 1) == 1, "the victim cannot be asked");
	tap_need(read(from[0], &outcome, sizeof(outcome)) == sizeof(outcome),
		 "the victim does not answer");
	tap_ok(outcome.changed == 0, "the other's memory is as it was");
	tap_ok(outcome.events == 0, "the other has had no event");
	tap_ok(outcome.status == IBV_WC_SUCCESS && outcome.right,
	       "the other's queues and key work");
	tap_need(waitpid(child, NULL, 0) == child, "the victim");
	return tap_end();
}
