/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stamp.h"
#include "tap.h"
#include "transfer.h"

#define CHUNK (1ull << 20)	/* bytes a work request; whole pages */

struct transfer *transfer_create(struct rc_device *device)
{
	struct transfer *transfer = calloc(1, sizeof(*transfer));

	tap_need(transfer, "no memory");
	transfer->memory = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(transfer->memory != MAP_FAILED, "no memory");
	transfer->staging = ibv_reg_mr(device->pd, transfer->memory, CHUNK,
				       REGION_ACCESS);
	tap_need(transfer->staging, "ibv_reg_mr of a staging buffer");
	transfer->pair = rc_pair_create(device);
	return transfer;
}

void transfer_destroy(struct transfer *transfer)
{
	rc_pair_destroy(transfer->pair);
	if (ibv_dereg_mr(transfer->staging))
		tap_bail("ibv_dereg_mr of a staging buffer failed");
	munmap(transfer->memory, CHUNK);
	free(transfer);
}

/* Memory that the pattern is put in or compared with: whole pages at a time. */
void pattern_fill(void *memory, uint64_t length, uint64_t seed)
{
	uint64_t whole = length / PAGE;

	if ((uintptr_t)memory % sizeof(uint64_t) == 0) {
		stamp_pages(memory, seed, 0, whole);
	} else {
		uint64_t page[PAGE / sizeof(uint64_t)];
		uint64_t i;

		for (i = 0; i < whole; i++) {
			stamp_pages(page, seed, i, 1);
			memcpy((char *)memory + i * PAGE, page, PAGE);
		}
	}
	if (length % PAGE) {
		uint64_t page[PAGE / sizeof(uint64_t)];

		stamp_pages(page, seed, whole, 1);
		memcpy((char *)memory + whole * PAGE, page, length % PAGE);
	}
}

static uint64_t differing(const void *memory, uint64_t length, uint64_t seed,
			  uint64_t index)
{
	const unsigned char *found = memory;
	uint64_t expected[PAGE / sizeof(uint64_t)];
	uint64_t i, wrong = 0;

	stamp_pages(expected, seed, index, 1);
	if (!memcmp(found, expected, length))
		return 0;
	for (i = 0; i < length; i++)
		wrong += found[i] != ((unsigned char *)expected)[i];
	return wrong;
}

static uint64_t check_from(const void *memory, uint64_t length, uint64_t seed,
			   uint64_t index)
{
	const char *next = memory;
	uint64_t wrong = 0;

	while (length) {
		uint64_t bytes = length < PAGE ? length : PAGE;

		wrong += differing(next, bytes, seed, index++);
		next += bytes;
		length -= bytes;
	}
	return wrong;
}

uint64_t pattern_check(const void *memory, uint64_t length, uint64_t seed)
{
	return check_from(memory, length, seed, 0);
}

static bool move_chunk(struct transfer *transfer, enum ibv_wr_opcode opcode,
		       uint32_t rkey, uint64_t remote, uint64_t length)
{
	struct rc_access access = {
		.opcode = opcode,
		.local = (uintptr_t)transfer->memory,
		.lkey = transfer->staging->lkey,
		.remote = remote,
		.rkey = rkey,
		.length = length,
	};
	enum ibv_wc_status status = rc_execute(transfer->pair, &access);

	if (status == IBV_WC_SUCCESS)
		return true;
	tap_note("%s of %llu bytes at 0x%llx of key 0x%x: %s",
		 opcode == IBV_WR_RDMA_WRITE ? "RDMA write" : "RDMA read",
		 (unsigned long long)length, (unsigned long long)remote, rkey,
		 ibv_wc_status_str(status));
	rc_pair_recover(transfer->pair);
	return false;
}

bool transfer_write(struct transfer *transfer, uint32_t rkey, uint64_t iova,
		    uint64_t length, uint64_t seed)
{
	uint64_t done;

	for (done = 0; done < length; done += CHUNK) {
		uint64_t bytes = length - done < CHUNK ? length - done : CHUNK;

		stamp_pages(transfer->memory, seed, done / PAGE,
			    (bytes + PAGE - 1) / PAGE);
		if (!move_chunk(transfer, IBV_WR_RDMA_WRITE, rkey, iova + done,
				bytes))
			return false;
	}
	return true;
}

bool transfer_read(struct transfer *transfer, uint32_t rkey, uint64_t iova,
		   uint64_t length, uint64_t seed, uint64_t *wrong)
{
	uint64_t done;

	*wrong = 0;
	for (done = 0; done < length; done += CHUNK) {
		uint64_t bytes = length - done < CHUNK ? length - done : CHUNK;

		memset(transfer->memory, 0xee, bytes);
		if (!move_chunk(transfer, IBV_WR_RDMA_READ, rkey, iova + done,
				bytes))
			return false;
		*wrong += check_from(transfer->memory, bytes, seed,
				     done / PAGE);
	}
	return true;
}
