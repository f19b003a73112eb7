/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow "register": user memory of every shape becomes a region. The driver's
 * page size, PBL level and number of entries are compared with what follows from
 * where the pages lie, and the whole region is written and read by RDMA.
 */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "events.h"
#include "memory.h"
#include "rc.h"
#include "stamp.h"
#include "tap.h"
#include "transfer.h"

#define KIB	1024ull
#define MIB	(1024 * KIB)
#define GIB	(1024 * MIB)
#define GUARD	0xa5

enum shape {
	SCATTERED,
	TRANSPARENT_HUGE,
	HUGETLB,
};

struct test {
	const char *name;		/* also in the figures: no spaces */
	enum shape shape;
	uint64_t offset;		/* of the region in its first page */
	uint64_t length;
	/* What must come out; 0: whatever the pages give. */
	uint64_t entries;
	uint64_t leaves;
	uint64_t last_leaf;
};

static const struct test tests[] = {
	{ "one-page", SCATTERED, 0, 4 * KIB, 1, 0, 0 },
	{ "part-of-a-page", SCATTERED, 0x234, 0x321, 1, 0, 0 },
	{ "unaligned", SCATTERED, 0xfff, 64 * KIB + 2, 18, 0, 0 },
	{ "512-entries", SCATTERED, 0, 2 * MIB, 512, 0, 0 },
	{ "513-entries", SCATTERED, 0, 2 * MIB + 4 * KIB, 513, 2, 1 },
	{ "513-entries-unaligned", SCATTERED, 0x800, 2 * MIB, 513, 2, 1 },
	{ "1537-entries", SCATTERED, 0, 6 * MIB + 4 * KIB, 1537, 4, 1 },
	{ "transparent-huge", TRANSPARENT_HUGE, 0, 16 * MIB, 0, 0, 0 },
	{ "transparent-huge-unaligned", TRANSPARENT_HUGE, 0x1040,
	  16 * MIB - 0x3000, 0, 0, 0 },
	{ "hugetlb-2M", HUGETLB, 0, 16 * MIB, 0, 0, 0 },
	{ "262145-entries", SCATTERED, 0, GIB + 4 * KIB, 262145, 513, 1 },
};

static bool have_events;

/* The region's first byte; guard pages lie around scattered memory. */
static char *allocate(const struct test *test, struct memory *memory)
{
	uint64_t pages = (test->offset + test->length + PAGE - 1) / PAGE;
	bool done;

	switch (test->shape) {
	case SCATTERED:
		done = memory_scattered(memory, (pages + 2) * PAGE,
					test->length);
		tap_need(done, "no memory for %s", test->name);
		memset(memory->address, GUARD, PAGE + test->offset);
		return (char *)memory->address + PAGE + test->offset;
	case TRANSPARENT_HUGE:
		done = memory_transparent_huge(memory, pages * PAGE);
		break;
	default:
		done = memory_hugetlb(memory, pages * PAGE);
		break;
	}
	return done ? (char *)memory->address + test->offset : NULL;
}

static bool all_guard(const char *begin, const char *end)
{
	for (; begin < end; begin++)
		if (*begin != (char)GUARD)
			return false;
	return true;
}

/* Bytes of the guard pages that touch the region. */
static void set_guards(const struct test *test, const struct memory *memory,
		       char *start)
{
	char *end = (char *)memory->address + memory->length;

	if (test->shape == SCATTERED)
		memset(start + test->length, GUARD,
		       end - (start + test->length));
}

static bool guards_hold(const struct test *test, const struct memory *memory,
			const char *start)
{
	const char *begin = memory->address;

	return test->shape != SCATTERED ||
	       (all_guard(begin, start) &&
		all_guard(start + test->length, begin + memory->length));
}

static struct blocks driver_blocks(const struct event *event)
{
	return (struct blocks) {
		.log_page_size = event_field(event, "log_page_size"),
		.entries = event_field(event, "blocks"),
		.level = event_field(event, "level"),
		.leaves = event_field(event, "leaves"),
		.last_leaf = event_field(event, "last_leaf"),
	};
}

static void figures(const struct test *test, const struct blocks *blocks,
		    uint64_t extents)
{
	tap_figures("case=%s length=%llu page_size=%llu entries=%llu level=%u leaves=%llu last_leaf=%llu extents=%llu",
		    test->name, (unsigned long long)test->length,
		    1ull << blocks->log_page_size,
		    (unsigned long long)blocks->entries, blocks->level,
		    (unsigned long long)blocks->leaves,
		    (unsigned long long)blocks->last_leaf,
		    (unsigned long long)extents);
}

/* 0: one entry; 1: up to a leaf full; 2. */
static unsigned int level_of(uint64_t entries)
{
	return entries <= 1 ? 0 : entries <= 512 ? 1 : 2;
}

static bool as_expected(const struct test *test, const struct blocks *driver,
			const struct blocks *expected)
{
	return driver->log_page_size == expected->log_page_size &&
	       driver->entries == expected->entries &&
	       driver->level == expected->level &&
	       driver->leaves == expected->leaves &&
	       driver->last_leaf == expected->last_leaf &&
	       (!test->entries || driver->entries == test->entries) &&
	       (!test->leaves || (driver->leaves == test->leaves &&
				  driver->last_leaf == test->last_leaf));
}

static void check_table(const struct test *test, const char *start,
			const struct ibv_mr *mr)
{
	uint64_t iova = (uintptr_t)start;
	struct blocks driver, expected;
	struct extents extents = {};
	struct event_list events;
	struct event event;
	unsigned int found;

	if (!have_events) {
		tap_skip("no tracepoints", "%s: table", test->name);
		return;
	}
	events = events_read();
	found = events_find(&events, "qrdma_mr_registered", mr->rkey, &event);
	events_free(&events);
	if (!found) {
		tap_ok(false, "%s: the driver says what it registered",
		       test->name);
		return;
	}
	if (!extents_of_memory(&extents, start, test->length))
		tap_bail("/proc/self/pagemap does not tell where %s lies",
			 test->name);
	driver = driver_blocks(&event);
	expected.log_page_size = best_log_page_size(&extents, iova);
	expected = blocks_of(iova, test->length, expected.log_page_size,
			     level_of(blocks_at(iova, test->length,
						expected.log_page_size)));
	figures(test, &driver, extents.count);
	tap_ok(as_expected(test, &driver, &expected),
	       "%s: %llu entries of 2^%u bytes at level %u, expected %llu of 2^%u at level %u",
	       test->name, (unsigned long long)driver.entries,
	       driver.log_page_size, driver.level,
	       (unsigned long long)expected.entries, expected.log_page_size,
	       expected.level);
	extents_free(&extents);
}

static void check_data(const struct test *test, struct transfer *transfer,
		       const struct memory *memory, char *start,
		       const struct ibv_mr *mr)
{
	uint64_t iova = (uintptr_t)start;
	uint64_t wrong_write, wrong_read = 0;
	bool written, read;

	set_guards(test, memory, start);
	written = transfer_write(transfer, mr->rkey, iova, test->length, 1);
	wrong_write = pattern_check(start, test->length, 1);
	pattern_fill(start, test->length, 2);
	read = transfer_read(transfer, mr->rkey, iova, test->length, 2,
			     &wrong_read);
	tap_figures("case=%s written=%llu read=%llu wrong=%llu", test->name,
		    written ? (unsigned long long)test->length : 0,
		    read ? (unsigned long long)test->length : 0,
		    (unsigned long long)(wrong_write + wrong_read));
	tap_ok(written && read && !wrong_write && !wrong_read,
	       "%s: %llu bytes by RDMA write and read are right", test->name,
	       (unsigned long long)test->length);
	tap_ok(guards_hold(test, memory, start),
	       "%s: nothing around it was written", test->name);
}

/* One byte too far, on either side. */
static void check_bounds(const struct test *test, struct transfer *transfer,
			 char *start, const struct ibv_mr *mr)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_WRITE,
		.local = (uintptr_t)transfer->memory,
		.lkey = transfer->staging->lkey,
		.rkey = mr->rkey,
		.length = 1,
	};
	bool before, after;

	access.remote = (uintptr_t)start - 1;
	before = rc_execute(transfer->pair, &access) == IBV_WC_REM_ACCESS_ERR;
	rc_pair_recover(transfer->pair);
	access.remote = (uintptr_t)start + test->length;
	after = rc_execute(transfer->pair, &access) == IBV_WC_REM_ACCESS_ERR;
	rc_pair_recover(transfer->pair);
	tap_ok(before && after, "%s: the bytes next to it are refused",
	       test->name);
}

static void run(struct rc_device *device, const struct test *test)
{
	struct transfer *transfer;
	struct memory memory = {};
	struct ibv_mr *mr;
	char *start;

	tap_step("registration of %s", test->name);
	start = allocate(test, &memory);
	if (!start) {
		tap_skip("the kernel has no such pages", "%s", test->name);
		return;
	}
	transfer = transfer_create(device);
	if (have_events)
		events_clear();
	mr = ibv_reg_mr(device->pd, start, test->length, REGION_ACCESS);
	if (tap_ok(mr, "%s: registered", test->name)) {
		check_table(test, start, mr);
		tap_step("data of %s", test->name);
		check_data(test, transfer, &memory, start, mr);
		check_bounds(test, transfer, start, mr);
		tap_ok(!ibv_dereg_mr(mr), "%s: deregistered", test->name);
	}
	transfer_destroy(transfer);
	memory_free(&memory);
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "qrdma_mr_registered", NULL };
	struct rc_device *device;
	unsigned int i;

	tap_begin();
	device = rc_open();
	have_events = events_begin(names);
	for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (argc < 2 || !strcmp(argv[1], tests[i].name))
			run(device, &tests[i]);
	rc_close(device);
	return tap_end();
}
