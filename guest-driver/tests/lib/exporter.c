/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporter.h"
#include "stamp.h"
#include "tap.h"

#define DEVICE "/dev/qrdma_exporter"

const char *layout_name(uint32_t kind)
{
	switch (kind) {
	case QRDMA_EXPORTER_4K:
		return "4K";
	case QRDMA_EXPORTER_64K:
		return "64K";
	case QRDMA_EXPORTER_2M:
		return "2M";
	case QRDMA_EXPORTER_CONTIGUOUS:
		return "contiguous";
	case QRDMA_EXPORTER_EXPLICIT:
		return "list";
	default:
		return "none";
	}
}

bool exporter_present(void)
{
	return !access(DEVICE, R_OK | W_OK);
}

int exporter_device(void)
{
	static int device = -1;

	if (device < 0)
		device = open(DEVICE, O_RDWR | O_CLOEXEC);
	tap_need(device >= 0, "%s does not open (is qrdma_exporter.ko loaded?)",
		 DEVICE);
	return device;
}

static int call(unsigned long command, void *argument)
{
	int ret;

	do {
		ret = ioctl(exporter_device(), command, argument);
	} while (ret && errno == EINTR);
	return ret ? errno : 0;
}

static void must(int error, const char *what)
{
	if (error)
		tap_bail("exporter: %s: %s", what, strerror(error));
}

static struct qrdma_exporter_layout wire(struct layout layout)
{
	return (struct qrdma_exporter_layout) {
		.kind = layout.kind,
		.segment_count = layout.count,
		.segments = (uintptr_t)layout.lengths,
	};
}

int exporter_try_create(uint64_t size, struct layout layout, int *fd)
{
	struct qrdma_exporter_create create = {
		.size = size,
		.layout = wire(layout),
	};
	int error = call(QRDMA_EXPORTER_CREATE, &create);

	*fd = error ? -1 : create.fd;
	return error;
}

int exporter_create(uint64_t size, struct layout layout)
{
	int fd, error = exporter_try_create(size, layout, &fd);

	if (error)
		tap_bail("exporter: %llu MiB of layout %s: %s",
			 (unsigned long long)(size / MIB),
			 layout_name(layout.kind), strerror(error));
	return fd;
}

int exporter_move(int fd, struct layout layout, uint32_t flags,
		  uint32_t hold_ms)
{
	struct qrdma_exporter_move move = {
		.fd = fd,
		.flags = flags,
		.layout = wire(layout),
		.hold_ms = hold_ms,
	};

	return call(QRDMA_EXPORTER_MOVE, &move);
}

int exporter_revoke(int fd)
{
	struct qrdma_exporter_buffer buffer = { .fd = fd };

	return call(QRDMA_EXPORTER_REVOKE, &buffer);
}

int exporter_release(int fd)
{
	struct qrdma_exporter_buffer buffer = { .fd = fd };

	return call(QRDMA_EXPORTER_RELEASE, &buffer);
}

void exporter_stamp(int fd, uint64_t size, uint64_t seed)
{
	struct qrdma_exporter_stamp stamp = {
		.fd = fd,
		.pages = size / PAGE,
		.seed = seed,
	};

	must(call(QRDMA_EXPORTER_STAMP, &stamp), "stamp");
}

static uint64_t check(int fd, uint64_t size, uint64_t seed, uint32_t flags)
{
	struct qrdma_exporter_stamp stamp = {
		.fd = fd,
		.flags = flags,
		.pages = size / PAGE,
		.seed = seed,
	};

	must(call(QRDMA_EXPORTER_CHECK, &stamp), "check");
	if (stamp.wrong_pages)
		tap_note("%llu pages differ; at 0x%llx there is 0x%llx, not 0x%llx",
			 stamp.wrong_pages, stamp.wrong_offset, stamp.found,
			 stamp.expected);
	return stamp.wrong_pages;
}

uint64_t exporter_check(int fd, uint64_t size, uint64_t seed)
{
	return check(fd, size, seed, 0);
}

uint64_t exporter_check_old(int fd, uint64_t size)
{
	return check(fd, size, QRDMA_EXPORTER_OLD_SEED,
		     QRDMA_EXPORTER_STAMP_OLD);
}

struct qrdma_exporter_query exporter_query(int fd)
{
	struct qrdma_exporter_query query = { .fd = fd };

	must(call(QRDMA_EXPORTER_QUERY, &query), "query");
	return query;
}

void exporter_trigger(int fd, uint32_t fail_maps, uint32_t revoke_after_maps)
{
	struct qrdma_exporter_trigger trigger = {
		.fd = fd,
		.fail_maps = fail_maps,
		.revoke_after_maps = revoke_after_maps,
	};

	must(call(QRDMA_EXPORTER_TRIGGER, &trigger), "trigger");
}

struct qrdma_exporter_segment *exporter_segments(int fd, uint32_t *count)
{
	struct qrdma_exporter_segments request = { .fd = fd };
	struct qrdma_exporter_segment *segments;

	must(call(QRDMA_EXPORTER_SEGMENTS, &request), "number of segments");
	segments = calloc(request.count, sizeof(*segments));
	tap_need(segments, "no memory");
	request.capacity = request.count;
	request.segments = (uintptr_t)segments;
	request.count = 0;
	must(call(QRDMA_EXPORTER_SEGMENTS, &request), "segments");
	if (request.count != request.capacity)
		tap_bail("the layout changed while its segments were read");
	*count = request.count;
	return segments;
}

void *dmabuf_map(int fd, uint64_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);

	tap_need(memory != MAP_FAILED, "mmap of a dma-buf");
	return memory;
}
