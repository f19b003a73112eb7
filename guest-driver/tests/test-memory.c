/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Regions at the edges: page sizes of odd layouts, re-registration, large tables,
 * large completion queues, and that what grows shrinks again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"
#include "transfer.h"

#define IOVA		0x7f0000000000ull
#define LENGTH		(6 * MIB + 4096)

/* ------------------------------------------------------------ page sizes */

struct geometry {
	const char *name;
	struct layout layout;
	uint64_t size;			/* of the buffer */
	uint64_t offset;
	uint64_t length;
	uint64_t iova;
	unsigned int log_page_size;
	uint64_t entries;
};

static const uint64_t at_2m[] = { 2 * MIB, 4 * MIB + 4096 };
static const uint64_t at_1m[] = { 1 * MIB, 5 * MIB + 4096 };
static const uint64_t at_4k[] = { 4096, 6 * MIB };

static const struct geometry geometries[] = {
	{ "contiguous", { QRDMA_EXPORTER_CONTIGUOUS, 0, NULL }, LENGTH, 0,
	  LENGTH, IOVA, 23, 1 },
	{ "contiguous, IOVA a page off", { QRDMA_EXPORTER_CONTIGUOUS, 0, NULL },
	  LENGTH, 0, LENGTH, IOVA + 4096, 12, 1537 },
	{ "contiguous, both a page off", { QRDMA_EXPORTER_CONTIGUOUS, 0, NULL },
	  LENGTH + 4096, 4096, LENGTH, IOVA + 4096, 23, 1 },
	{ "cut at 2 MiB", { QRDMA_EXPORTER_EXPLICIT, 2, at_2m }, LENGTH, 0,
	  LENGTH, IOVA, 21, 4 },
	{ "cut at 1 MiB", { QRDMA_EXPORTER_EXPLICIT, 2, at_1m }, LENGTH, 0,
	  LENGTH, IOVA, 20, 7 },
	{ "cut after a page", { QRDMA_EXPORTER_EXPLICIT, 2, at_4k }, LENGTH, 0,
	  LENGTH, IOVA, 12, 1537 },
	{ "five pages across a boundary",
	  { QRDMA_EXPORTER_CONTIGUOUS, 0, NULL }, 0x40000, 0x1e000, 0x5000,
	  0x1e000, 18, 1 },
	{ "part of a page", { QRDMA_EXPORTER_4K, 0, NULL }, 0x4000, 0x1234,
	  0x100, IOVA + 0x234, 12, 1 },
	{ "two pages scattered, unaligned", { QRDMA_EXPORTER_4K, 0, NULL },
	  0x4000, 0x1ffc, 8, IOVA + 0xffc, 12, 2 },
	{ "64K pages", { QRDMA_EXPORTER_64K, 0, NULL }, 8 * MIB, 0, 8 * MIB,
	  IOVA, 16, 128 },
};

static void geometry(struct rc_device *device, struct transfer *transfer,
		     const struct geometry *test, bool dynamic)
{
	const char *kind = dynamic ? "dynamic" : "pinned";
	struct event_list events;
	struct event event;
	struct ibv_mr *mr;
	uint64_t wrong = 0;
	char *memory;
	bool moved;
	int fd;

	tap_step("%s, %s", test->name, kind);
	fd = exporter_create(test->size, test->layout);
	events_clear();
	mr = register_dmabuf(device, fd, test->offset, test->length,
			     test->iova, dynamic);
	if (!tap_ok(mr, "%s, %s: registered", test->name, kind)) {
		tap_note("%s", strerror(errno));
		close(fd);
		return;
	}
	events = events_read();
	if (!events_find(&events, "qrdma_mr_registered", mr->rkey, &event))
		tap_bail("the driver does not say what it registered");
	events_free(&events);
	tap_ok(event_field(&event, "log_page_size") == test->log_page_size &&
	       (uint64_t)event_field(&event, "blocks") == test->entries,
	       "%s, %s: %llu entries of 2^%u bytes (the driver: %lld of 2^%lld)",
	       test->name, kind, (unsigned long long)test->entries,
	       test->log_page_size,
	       (long long)event_field(&event, "blocks"),
	       (long long)event_field(&event, "log_page_size"));

	memory = dmabuf_map(fd, test->size);
	moved = transfer_write(transfer, mr->rkey, test->iova, test->length,
			       0x61);
	wrong += pattern_check(memory + test->offset, test->length, 0x61);
	pattern_fill(memory + test->offset, test->length, 0x62);
	if (moved) {
		uint64_t wrong_read;

		moved = transfer_read(transfer, mr->rkey, test->iova,
				      test->length, 0x62, &wrong_read);
		wrong += wrong_read;
	}
	tap_ok(moved && !wrong, "%s, %s: data right", test->name, kind);
	munmap(memory, test->size);
	tap_ok(!ibv_dereg_mr(mr), "%s, %s: deregistered", test->name, kind);
	close(fd);
}

static void page_sizes(struct rc_device *device, struct transfer *transfer)
{
	unsigned int i;

	for (i = 0; i < sizeof(geometries) / sizeof(geometries[0]); i++) {
		geometry(device, transfer, &geometries[i], false);
		geometry(device, transfer, &geometries[i], true);
	}
}

/* -------------------------------------------------------- re-registration */

static void *anonymous(uint64_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED, "no memory");
	return memory;
}

static bool reaches(struct transfer *transfer, const struct ibv_mr *mr,
		    void *memory, uint64_t length, uint64_t seed)
{
	return transfer_write(transfer, mr->rkey, (uintptr_t)memory, length,
			      seed) &&
	       !pattern_check(memory, length, seed);
}

static void reregistration(struct rc_device *device, struct transfer *transfer)
{
	const uint64_t length = 4 * MIB;
	void *first = anonymous(length), *second = anonymous(length);
	void *nothing = anonymous(length);
	struct ibv_mr *mr;
	int ret;

	tap_step("re-registration");
	munmap(nothing, length);
	mr = ibv_reg_mr(device->pd, first, length, REGION_ACCESS);
	tap_need(mr, "ibv_reg_mr");

	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, nothing,
			   length, 0);
	tap_ok(ret, "re-registration of memory that is not there fails");
	tap_ok(reaches(transfer, mr, first, length, 0x71),
	       "after it the region is what it was");

	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, second,
			   length, 0);
	tap_ok(!ret, "re-registration of other memory");
	tap_ok(reaches(transfer, mr, second, length, 0x72) &&
	       !pattern_check(first, length, 0x71),
	       "the region is the other memory, the first is left alone");

	ret = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	tap_ok(!ret, "re-registration with less rights");
	tap_ok(!reaches(transfer, mr, second, length, 0x73),
	       "what is no longer allowed is refused");
	tap_ok(!ibv_dereg_mr(mr), "deregistered");
	munmap(first, length);
	munmap(second, length);
}

/* ----------------------------------------------------------------- large */

static uint64_t available(void)
{
	unsigned long long kib = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	tap_need(file, "/proc/meminfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	fclose(file);
	return kib * 1024;
}

/* As much as the machine has room for, up to 3 GiB; one level 2 table. */
static void large(struct rc_device *device, struct transfer *transfer)
{
	uint64_t length = available() / 10 * 6 / PAGE * PAGE;
	struct memory memory;
	struct ibv_mr *mr;
	uint64_t last, wrong = 0;

	if (length > 3 * GIB)
		length = 3 * GIB;
	tap_step("a region of %llu MiB", (unsigned long long)(length / MIB));
	tap_need(memory_scattered(&memory, length, 9), "no memory");
	mr = ibv_reg_mr(device->pd, memory.address, length, REGION_ACCESS);
	tap_figures("case=large length=%llu entries=%llu registered=%d",
		    (unsigned long long)length,
		    (unsigned long long)(length / PAGE), mr != NULL);
	if (!tap_ok(mr, "large: %llu MiB of scattered pages in one region",
		    (unsigned long long)(length / MIB))) {
		tap_note("%s", strerror(errno));
		memory_free(&memory);
		return;
	}
	/* The ends and the middle, where leaves and segments change. */
	for (last = 0; last < length; last += length / 4 / PAGE * PAGE) {
		uint64_t bytes = length - last < MIB ? length - last : MIB;
		char *start = (char *)memory.address + last;

		if (!transfer_write(transfer, mr->rkey, (uintptr_t)start, bytes,
				    last))
			wrong += bytes;
		wrong += pattern_check(start, bytes, last);
	}
	tap_ok(!wrong, "large: data right at five places");
	tap_ok(!ibv_dereg_mr(mr), "large: deregistered");
	memory_free(&memory);
}

/* The pool of table entries grows for each and is given back. */
static void many_times(struct rc_device *device)
{
	const unsigned int rounds = 100;
	const uint64_t length = 64 * MIB;
	uint64_t before, after;
	struct memory memory;
	unsigned int i;

	tap_step("64 MiB registered %u times", rounds);
	tap_need(memory_scattered(&memory, length, 10), "no memory");
	before = available();
	for (i = 0; i < rounds; i++) {
		struct ibv_mr *mr = ibv_reg_mr(device->pd, memory.address,
					       length, REGION_ACCESS);

		if (!mr || ibv_dereg_mr(mr))
			break;
	}
	after = available();
	tap_figures("case=many-times rounds=%u available_before=%llu available_after=%llu",
		    i, (unsigned long long)before, (unsigned long long)after);
	tap_ok(i == rounds, "64 MiB registered and deregistered %u times", i);
	tap_ok(after + 16 * MIB > before,
	       "many times: no memory stays away");
	memory_free(&memory);
}

/* 600 pages of ring: more than a leaf, and still one run of entries. */
static void large_queue(struct rc_device *device)
{
	const int entries = 600 * 64;
	struct ibv_cq *cq;

	tap_step("a completion queue of %d entries", entries);
	cq = ibv_create_cq(device->context, entries, NULL, NULL, 0);
	if (!cq)
		tap_note("%s", strerror(errno));
	tap_ok(cq && cq->cqe >= entries, "a completion queue of %d entries",
	       entries);
	if (cq)
		tap_ok(!ibv_destroy_cq(cq), "and it goes again");
}

int main(void)
{
	static const char *const names[] = { "qrdma_mr_registered", NULL };
	struct transfer *transfer;
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	if (!events_begin(names))
		tap_bail("no tracepoints of the driver");
	transfer = transfer_create(device);
	page_sizes(device, transfer);
	reregistration(device, transfer);
	large_queue(device);
	many_times(device);
	large(device, transfer);
	transfer_destroy(transfer);
	rc_close(device);
	return tap_end();
}
