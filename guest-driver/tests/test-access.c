/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who may do what through a key: rights, ranges, variants, protection domains,
 * and keys that are gone. What is refused must also leave the memory alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rc.h"
#include "stamp.h"
#include "tap.h"

#define LENGTH	(4 * PAGE)
#define FILL	0x5a

struct bench {
	struct rc_device *device;
	struct rc_pair *pair;
	char *memory;			/* the region's */
	char *staging;
	struct ibv_mr *staging_mr;
};

static char *pages(uint64_t length)
{
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED, "no memory");
	return memory;
}

struct try {
	const char *name;
	enum ibv_wr_opcode opcode;
	int64_t offset;			/* of the access in the region */
	uint32_t length;
	uint32_t key_change;		/* added to the rkey */
	enum ibv_wc_status status;
};

/* True if all of the region is as it was filled. */
static bool untouched(const struct bench *bench)
{
	uint64_t i;

	for (i = 0; i < LENGTH; i++)
		if (bench->memory[i] != FILL)
			return false;
	return true;
}

static enum ibv_wc_status attempt(struct bench *bench, uint32_t rkey,
				  const struct try *try)
{
	struct rc_access access = {
		.opcode = try->opcode,
		.local = (uintptr_t)bench->staging,
		.lkey = bench->staging_mr->lkey,
		.remote = (uintptr_t)bench->memory + try->offset,
		.rkey = rkey + try->key_change,
		.length = try->length,
	};
	enum ibv_wc_status status;

	memset(bench->memory, FILL, LENGTH);
	memset(bench->staging, ~FILL, LENGTH);
	status = rc_execute(bench->pair, &access);
	if (status != IBV_WC_SUCCESS)
		rc_pair_recover(bench->pair);
	return status;
}

static void expect(struct bench *bench, const char *region, uint32_t rkey,
		   const struct try *try)
{
	enum ibv_wc_status status = attempt(bench, rkey, try);
	bool left_alone = try->status == IBV_WC_SUCCESS || untouched(bench);

	if (!tap_ok(status == try->status && left_alone, "%s: %s: %s", region,
		    try->name, ibv_wc_status_str(try->status)))
		tap_note("it gave %s, the memory is %s",
			 ibv_wc_status_str(status),
			 left_alone ? "as it was" : "written");
}

#define WRITE IBV_WR_RDMA_WRITE
#define READ IBV_WR_RDMA_READ
#define REFUSED IBV_WC_REM_ACCESS_ERR

static void ranges(struct bench *bench, struct ibv_mr *mr)
{
	static const struct try tries[] = {
		{ "write", WRITE, 0, LENGTH, 0, IBV_WC_SUCCESS },
		{ "read", READ, 0, LENGTH, 0, IBV_WC_SUCCESS },
		{ "write of the last byte", WRITE, LENGTH - 1, 1, 0,
		  IBV_WC_SUCCESS },
		{ "write of nothing", WRITE, 0, 0, 0, IBV_WC_SUCCESS },
		{ "write a byte too long", WRITE, 1, LENGTH, 0, REFUSED },
		{ "read a byte too long", READ, 1, LENGTH, 0, REFUSED },
		{ "write before the region", WRITE, -1, 1, 0, REFUSED },
		{ "write behind the region", WRITE, LENGTH, 1, 0, REFUSED },
		{ "read far away", READ, 1ll << 46, 1, 0, REFUSED },
		{ "another variant of the key", WRITE, 0, 1, 1, REFUSED },
		{ "another index", WRITE, 0, 1, 0x100000, REFUSED },
	};
	unsigned int i;

	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		expect(bench, "all rights", mr->rkey, &tries[i]);
}

static void rights(struct bench *bench)
{
	static const struct {
		const char *name;
		int access;
		bool write;
		bool read;
	} kinds[] = {
		{ "no remote rights", IBV_ACCESS_LOCAL_WRITE, false, false },
		{ "nothing but local reads", 0, false, false },
		{ "remote read", IBV_ACCESS_REMOTE_READ, false, true },
		{ "remote write",
		  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, true,
		  false },
	};
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(bench->device->pd,
					       bench->memory, LENGTH,
					       kinds[i].access);
		struct try try = { "write", WRITE, 0, LENGTH, 0, REFUSED };

		tap_need(mr, "ibv_reg_mr");
		if (kinds[i].write)
			try.status = IBV_WC_SUCCESS;
		expect(bench, kinds[i].name, mr->rkey, &try);
		try = (struct try){ "read", READ, 0, LENGTH, 0, REFUSED };
		if (kinds[i].read)
			try.status = IBV_WC_SUCCESS;
		expect(bench, kinds[i].name, mr->rkey, &try);
		tap_need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	}
}

static void other_domain(struct bench *bench)
{
	static const struct try try = { "write", WRITE, 0, LENGTH, 0, REFUSED };
	struct ibv_pd *pd = ibv_alloc_pd(bench->device->context);
	struct ibv_mr *mr;

	tap_need(pd, "ibv_alloc_pd");
	mr = ibv_reg_mr(pd, bench->memory, LENGTH, REGION_ACCESS);
	tap_need(mr, "ibv_reg_mr");
	expect(bench, "another protection domain", mr->rkey, &try);
	tap_ok(ibv_dealloc_pd(pd) == EBUSY,
	       "a protection domain with a region stays: EBUSY");
	tap_need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	tap_ok(!ibv_dealloc_pd(pd), "and goes without");
}

static void gone(struct bench *bench)
{
	static const struct try try = { "write", WRITE, 0, LENGTH, 0, REFUSED };
	struct ibv_mr *mr = ibv_reg_mr(bench->device->pd, bench->memory, LENGTH,
				       REGION_ACCESS);
	uint32_t rkey;

	tap_need(mr, "ibv_reg_mr");
	rkey = mr->rkey;
	tap_need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	expect(bench, "deregistered", rkey, &try);
	expect(bench, "key 0", 0, &try);
	expect(bench, "key 0xffffffff", ~0u, &try);
}

/* The local side has errors of its own. */
static void local(struct bench *bench, struct ibv_mr *mr)
{
	struct ibv_mr *read_only = ibv_reg_mr(bench->device->pd,
					      bench->staging, LENGTH, 0);
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->staging,
		.remote = (uintptr_t)bench->memory,
		.rkey = mr->rkey,
		.length = LENGTH,
	};
	enum ibv_wc_status status;

	tap_need(read_only, "ibv_reg_mr");
	memset(bench->memory, FILL, LENGTH);
	memset(bench->staging, ~FILL, LENGTH);
	access.lkey = read_only->lkey;
	status = rc_execute(bench->pair, &access);
	tap_ok(status == IBV_WC_LOC_PROT_ERR &&
	       bench->staging[0] == (char)~FILL,
	       "local: read into a region without local write: %s",
	       ibv_wc_status_str(status));
	rc_pair_recover(bench->pair);

	access.opcode = IBV_WR_RDMA_WRITE;
	access.lkey = 0x12345678;
	status = rc_execute(bench->pair, &access);
	tap_ok(status == IBV_WC_LOC_PROT_ERR && untouched(bench),
	       "local: write from no region: %s", ibv_wc_status_str(status));
	rc_pair_recover(bench->pair);
	tap_need(!ibv_dereg_mr(read_only), "ibv_dereg_mr");
}

int main(void)
{
	struct bench bench = {};
	struct ibv_mr *mr;

	tap_begin();
	bench.device = rc_open();
	tap_step("accesses");
	bench.pair = rc_pair_create(bench.device);
	bench.memory = pages(LENGTH);
	bench.staging = pages(LENGTH);
	bench.staging_mr = ibv_reg_mr(bench.device->pd, bench.staging, LENGTH,
				      REGION_ACCESS);
	mr = ibv_reg_mr(bench.device->pd, bench.memory, LENGTH, REGION_ACCESS);
	tap_need(mr && bench.staging_mr, "ibv_reg_mr");
	ranges(&bench, mr);
	local(&bench, mr);
	tap_need(!ibv_dereg_mr(mr), "ibv_dereg_mr");
	rights(&bench);
	other_domain(&bench);
	gone(&bench);
	tap_need(!ibv_dereg_mr(bench.staging_mr), "ibv_dereg_mr");
	rc_pair_destroy(bench.pair);
	rc_close(bench.device);
	return tap_end();
}
