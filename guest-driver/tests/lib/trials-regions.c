/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "events.h"
#include "qrdma_hw.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"
#include "trials-regions.h"

#define IOVA		0x7f0000000000ull
#define LEVEL_1		(1 * MIB)	/* 256 blocks of 4 KiB */
#define LEVEL_2		(8 * MIB)	/* 2048 */
#define BUFFER		(4 * MIB)
#define SEED		0xa110
#define FILLER_IOVA	0x7e0000000000ull
/* Two of them, with room for the worst layout, leave some 3000 entries of two segments. */
#define FILLER		(1016 * MIB)
#define AFTER_FILLERS	(16 * MIB)	/* 4096 entries */

/* ----------------------------------------------------------- user memory */

static void begin_memory(struct bench *bench, uint64_t length)
{
	tap_need(memory_scattered(&bench->memory, length, 1) &&
		 memory_scattered(&bench->other, length, 2), "memory");
}

void begin_page(struct bench *bench)
{
	begin_memory(bench, PAGE);
}

void begin_level_1(struct bench *bench)
{
	begin_memory(bench, LEVEL_1);
}

void begin_level_2(struct bench *bench)
{
	begin_memory(bench, LEVEL_2);
}

void end_memory(struct bench *bench)
{
	memory_free(&bench->memory);
	memory_free(&bench->other);
}

int reg_user(struct bench *bench)
{
	errno = 0;
	bench->mr = ibv_reg_mr(bench->device->pd, bench->memory.address,
			       bench->memory.length, REGION_ACCESS);
	return bench->mr ? 0 : errno ?: EIO;
}

void prepare_user(struct bench *bench)
{
	tap_need(!reg_user(bench), "ibv_reg_mr");
}

int dereg(struct bench *bench)
{
	return ibv_dereg_mr(bench->mr);
}

/* Its last page is this memory's. */
static bool reaches(struct bench *bench, const struct memory *memory)
{
	char *page = (char *)memory->address + memory->length - PAGE;
	uint64_t wrong;

	pattern_fill(page, PAGE, SEED);
	return transfer_read(bench->transfer, bench->mr->rkey, (uintptr_t)page,
			     PAGE, SEED, &wrong) && !wrong;
}

bool undo_user(struct bench *bench)
{
	bool right = reaches(bench, &bench->memory);

	return !dereg(bench) && right;
}

int rereg(struct bench *bench)
{
	int ret;

	errno = 0;
	ret = ibv_rereg_mr(bench->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			   bench->other.address, bench->other.length, 0);
	return ret ? errno ?: EIO : 0;
}

bool right_rereg(struct bench *bench, int error)
{
	return reaches(bench, error ? &bench->memory : &bench->other);
}

bool undo_rereg(struct bench *bench)
{
	bool right = reaches(bench, &bench->other);

	return !dereg(bench) && right;
}

int rereg_rights(struct bench *bench)
{
	int ret;

	errno = 0;
	ret = ibv_rereg_mr(bench->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
			   0, IBV_ACCESS_REMOTE_READ);
	return ret ? errno ?: EIO : 0;
}

/* ---------------------------------------------------- the pool of entries */

static const char *const pool_events[] = { "qrdma_command", NULL };

/* Segments that were added and are still there, of those since the events began. */
static unsigned int segments(void)
{
	struct event_list events = events_read();
	unsigned int count = 0;

	for (unsigned int i = 0; i < events.count; i++) {
		int64_t opcode = event_field(&events.list[i], "opcode");

		if (event_field(&events.list[i], "status"))
			continue;
		count += opcode == QRDMA_CMD_ADD_SD;
		count -= opcode == QRDMA_CMD_REMOVE_SD;
	}
	events_free(&events);
	return count;
}

static struct ibv_mr *fill(struct bench *bench)
{
	struct ibv_mr *mr = register_dmabuf(bench->device, bench->filler_fd, 0,
					    FILLER, FILLER_IOVA, true);

	tap_need(mr, "a large region");
	return mr;
}

void begin_pool(struct bench *bench)
{
	begin_memory(bench, AFTER_FILLERS);
	if (!events_begin(pool_events))
		tap_bail("no tracepoints of the driver");
	events_clear();
	bench->filler_fd = exporter_create(FILLER, LAYOUT(2M));
	bench->filler = fill(bench);
	bench->segments = 0;
}

void prepare_pool(struct bench *bench)
{
	unsigned int now;

	bench->second_filler = fill(bench);
	now = segments();
	if (!bench->segments)
		bench->segments = now;
	if (now != bench->segments)
		tap_bail("the pool has %u segments more, not %u", now,
			 bench->segments);
}

/* The pool gives back what is empty when it finds the time. */
bool undo_pool(struct bench *bench)
{
	bool grown = segments() > bench->segments;
	bool right = undo_user(bench);

	tap_need(!ibv_dereg_mr(bench->second_filler), "ibv_dereg_mr");
	tap_step("the pool to shrink to %u segments", bench->segments);
	while (segments() > bench->segments)
		usleep(1000);
	return grown && right;
}

void end_pool(struct bench *bench)
{
	tap_need(!ibv_dereg_mr(bench->filler), "ibv_dereg_mr");
	close(bench->filler_fd);
	events_end();
	end_memory(bench);
}

/* ---------------------------------------------------------------- dma-buf */

void begin_buffer(struct bench *bench)
{
	bench->kind = QRDMA_EXPORTER_4K;
	bench->fd = exporter_create(BUFFER, LAYOUT(4K));
	exporter_stamp(bench->fd, BUFFER, SEED);
}

void end_buffer(struct bench *bench)
{
	close(bench->fd);
}

static int reg_buffer(struct bench *bench, bool dynamic)
{
	errno = 0;
	bench->mr = register_dmabuf(bench->device, bench->fd, 0, BUFFER, IOVA,
				    dynamic);
	return bench->mr ? 0 : errno ?: EIO;
}

int reg_pinned(struct bench *bench)
{
	return reg_buffer(bench, false);
}

int reg_dynamic(struct bench *bench)
{
	return reg_buffer(bench, true);
}

void prepare_pinned(struct bench *bench)
{
	tap_need(!reg_pinned(bench), "registration of a pinned region");
}

void prepare_dynamic(struct bench *bench)
{
	tap_need(!reg_dynamic(bench), "registration of a dynamic region");
}

/* Whoever could not be registered has left nothing with the exporter. */
bool right_buffer(struct bench *bench, int error)
{
	struct qrdma_exporter_query query = exporter_query(bench->fd);

	return !error ||
	       (!query.attached && !query.mapped && !query.pinned &&
		query.pins == query.unpins && query.maps == query.unmaps &&
		!query.order_errors);
}

/* Every page, by RDMA. */
static bool holds(struct bench *bench)
{
	uint64_t wrong;

	return transfer_read(bench->transfer, bench->mr->rkey, IOVA, BUFFER,
			     SEED, &wrong) && !wrong;
}

bool undo_region(struct bench *bench)
{
	bool right = holds(bench);

	return !dereg(bench) && right_buffer(bench, ENOMEM) && right;
}

void prepare_pinned_buffer(struct bench *bench)
{
	begin_buffer(bench);
	prepare_pinned(bench);
}

void prepare_dynamic_buffer(struct bench *bench)
{
	begin_buffer(bench);
	prepare_dynamic(bench);
}

int revoke_buffer(struct bench *bench)
{
	return exporter_revoke(bench->fd);
}

/* The status of one access to the buffer's last page; the pair recovers. */
static enum ibv_wc_status read_page(struct bench *bench)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)bench->transfer->memory,
		.lkey = bench->transfer->staging->lkey,
		.remote = IOVA + BUFFER - PAGE,
		.rkey = bench->mr->rkey,
		.length = PAGE,
	};
	enum ibv_wc_status status;

	status = rc_execute(bench->transfer->pair, &access);
	if (status != IBV_WC_SUCCESS)
		rc_pair_recover(bench->transfer->pair);
	return status;
}

bool undo_revoked(struct bench *bench)
{
	bool refused = read_page(bench) == IBV_WC_REM_ACCESS_ERR;
	bool right = !dereg(bench) && right_buffer(bench, ENOMEM);

	close(bench->fd);
	return refused && right;
}

/* -------------------------------------------------------- it moves */

void begin_region(struct bench *bench)
{
	begin_buffer(bench);
	prepare_dynamic(bench);
}

void end_region(struct bench *bench)
{
	tap_need(!dereg(bench), "ibv_dereg_mr");
	end_buffer(bench);
}

/* To and fro: every time the page size is another one. */
int move(struct bench *bench)
{
	uint32_t kind = bench->kind == QRDMA_EXPORTER_4K ? QRDMA_EXPORTER_2M :
							    QRDMA_EXPORTER_4K;
	int error = exporter_move(bench->fd, (struct layout){ .kind = kind }, 0,
				  0);

	if (!error)
		bench->kind = kind;
	return error;
}

bool right_region(struct bench *bench, int error)
{
	(void)error;
	return holds(bench);
}

void prepare_moved(struct bench *bench)
{
	tap_need(!move(bench), "a move");
}

/* A page fault that cannot be served is an access that is refused. */
int access_pages(struct bench *bench)
{
	switch (read_page(bench)) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_REM_ACCESS_ERR:
		return ENOMEM;
	default:
		return EIO;
	}
}

bool undo_access(struct bench *bench)
{
	return holds(bench);
}
