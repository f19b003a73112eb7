/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The exporter without an importer: layouts, moves, revocation, stamps, and
 * everything that it must refuse. Needs no card.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "exporter.h"
#include "stamp.h"
#include "tap.h"

#define SIZE	(6 * MIB + PAGE)

/* ---------------------------------------------------------------- layouts */

struct layout_case {
	const char *name;
	struct layout layout;
	uint64_t size;
	uint64_t segment;		/* bytes of all but the last */
};

static uint64_t round_up_power(uint64_t value)
{
	uint64_t power = PAGE;

	while (power < value)
		power *= 2;
	return power;
}

/* Lengths as asked for, aligned, and never one behind the other. */
static bool segments_right(const struct layout_case *test, int fd)
{
	struct qrdma_exporter_segment *segments;
	uint64_t total = 0;
	uint32_t count, i;
	bool right = true;

	segments = exporter_segments(fd, &count);
	for (i = 0; i < count && right; i++) {
		uint64_t length = segments[i].length;
		uint64_t align = round_up_power(test->segment ?: length);

		if (test->layout.lengths)
			right = length == test->layout.lengths[i];
		else
			right = length == test->segment || i == count - 1;
		right = right && segments[i].address % align == 0;
		if (i)
			right = right && segments[i].address !=
				segments[i - 1].address +
				segments[i - 1].length;
		total += length;
	}
	if (!right)
		tap_note("segment %u of %u: 0x%llx, 0x%llx bytes", i, count,
			 segments[i - 1].address, segments[i - 1].length);
	free(segments);
	return right && total == test->size;
}

static bool all_zero(int fd, uint64_t size)
{
	uint64_t *memory = dmabuf_map(fd, size);
	uint64_t i;

	for (i = 0; i < size / sizeof(*memory) && !memory[i]; i++)
		;
	munmap(memory, size);
	return i == size / sizeof(*memory);
}

static void layouts(void)
{
	static const uint64_t list[] = { MIB, PAGE, 5 * MIB, PAGE, PAGE };
	const struct layout_case cases[] = {
		{ "4K", LAYOUT(4K), SIZE, PAGE },
		{ "4K, one page", LAYOUT(4K), PAGE, PAGE },
		{ "4K, two pages", LAYOUT(4K), 2 * PAGE, PAGE },
		{ "64K", LAYOUT(64K), SIZE, 64 * 1024 },
		{ "2M", LAYOUT(2M), SIZE, 2 * MIB },
		{ "contiguous", LAYOUT(CONTIGUOUS), SIZE, SIZE },
		{ "contiguous, 64 MiB", LAYOUT(CONTIGUOUS), 64 * MIB, 64 * MIB },
		{ "list", { QRDMA_EXPORTER_EXPLICIT, 5, list },
		  6 * MIB + 3 * PAGE, 0 },
	};
	unsigned int i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct layout_case *test = &cases[i];
		int fd;

		tap_step("layout %s", test->name);
		fd = exporter_create(test->size, test->layout);
		tap_ok(segments_right(test, fd),
		       "layout %s: segments as asked for, aligned, apart",
		       test->name);
		tap_ok(all_zero(fd, test->size), "layout %s: zeroed",
		       test->name);
		close(fd);
	}
}

/* ------------------------------------------------------------------- moves */

static void stamps_agree(void)
{
	int fd = exporter_create(SIZE, LAYOUT(64K));
	char *memory = dmabuf_map(fd, SIZE);
	uint64_t wrong = 0;

	tap_step("stamps");
	exporter_stamp(fd, SIZE, 1);
	tap_ok(!stamp_check(memory, 1, 0, SIZE / PAGE, &wrong),
	       "stamps: user space finds the exporter's");
	stamp_pages(memory, 2, 0, SIZE / PAGE);
	tap_ok(!exporter_check(fd, SIZE, 2),
	       "stamps: the exporter finds user space's");
	memory[5 * PAGE + 9]++;
	tap_ok(exporter_check(fd, SIZE, 2) == 1,
	       "stamps: one wrong byte makes one wrong page");
	munmap(memory, SIZE);
	close(fd);
}

static void moves(void)
{
	const struct layout targets[] = {
		LAYOUT(2M), LAYOUT(CONTIGUOUS), LAYOUT(64K), LAYOUT(4K),
	};
	int fd = exporter_create(SIZE, LAYOUT(4K));
	char *memory = dmabuf_map(fd, SIZE);
	unsigned int i;

	exporter_stamp(fd, SIZE, 3);
	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		const char *name = layout_name(targets[i].kind);
		int error;

		tap_step("move to %s", name);
		error = exporter_move(fd, targets[i],
				      QRDMA_EXPORTER_MOVE_KEEP_OLD, 0);
		tap_ok(!error && exporter_query(fd).kind == targets[i].kind &&
		       !exporter_check(fd, SIZE, 3),
		       "move to %s: contents kept", name);
		tap_ok(!stamp_check(memory, 3, 0, SIZE / PAGE, NULL),
		       "move to %s: the CPU's mapping follows", name);
		tap_ok(!exporter_check_old(fd, SIZE),
		       "move to %s: the old memory is kept and stamped", name);
		stamp_pages(memory, 3, 0, SIZE / PAGE);
		tap_ok(!exporter_check_old(fd, SIZE),
		       "move to %s: the CPU no longer writes the old memory",
		       name);
	}
	munmap(memory, SIZE);
	close(fd);
}

/* poll() of a dma-buf says whether fences are pending. */
static bool fence_pending(int fd, int timeout_ms)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };

	return poll(&wait, 1, timeout_ms) == 0;
}

static void held_moves(void)
{
	int fd = exporter_create(SIZE, LAYOUT(4K));
	char *memory = dmabuf_map(fd, SIZE);

	tap_step("move with a fence");
	exporter_stamp(fd, SIZE, 4);
	tap_need(!exporter_move(fd, LAYOUT(2M), QRDMA_EXPORTER_MOVE_KEEP_OLD,
				2000), "move");
	tap_ok(fence_pending(fd, 0), "held move: a fence is pending");
	tap_ok(exporter_query(fd).kind == QRDMA_EXPORTER_2M,
	       "held move: the layout is the new one already");
	/* Waits for the fence, by way of a page fault. */
	tap_ok(!stamp_check(memory, 4, 0, SIZE / PAGE, NULL),
	       "held move: a page fault waits for the contents");
	tap_ok(!fence_pending(fd, 0), "held move: the fence has signalled");
	tap_ok(!exporter_check_old(fd, SIZE),
	       "held move: the old memory is stamped");

	/* The next move waits for the last one's contents. */
	tap_step("moves behind each other");
	tap_need(!exporter_move(fd, LAYOUT(4K), 0, 50), "move");
	tap_need(!exporter_move(fd, LAYOUT(64K), 0, 50), "move");
	tap_need(!exporter_move(fd, LAYOUT(2M), 0, 0), "move");
	tap_ok(!exporter_check(fd, SIZE, 4),
	       "moves behind each other keep the contents");
	munmap(memory, SIZE);

	/* Closing does not wait to be asked. */
	tap_need(!exporter_move(fd, LAYOUT(4K), 0,
				QRDMA_EXPORTER_MAX_HOLD_MS), "move");
	close(fd);
	tap_ok(true, "a buffer with a pending move can be closed");
}

/* -------------------------------------------------------------- the end */

static sigjmp_buf jump;

static void on_bus_error(int signal)
{
	siglongjmp(jump, signal);
}

static bool faults(volatile char *byte)
{
	struct sigaction action = { .sa_handler = on_bus_error };
	struct sigaction old;
	bool caught = false;

	sigaction(SIGBUS, &action, &old);
	if (sigsetjmp(jump, 1))
		caught = true;
	else
		(void)*byte;
	sigaction(SIGBUS, &old, NULL);
	return caught;
}

static void endings(void)
{
	struct qrdma_exporter_stamp stamp = { .pages = 1 };
	int fd = exporter_create(SIZE, LAYOUT(4K));
	char *memory = dmabuf_map(fd, SIZE);

	tap_step("revocation");
	tap_ok(!exporter_revoke(fd) && !exporter_revoke(fd),
	       "revoked twice");
	tap_ok(exporter_query(fd).revoked == 1, "it is revoked");
	exporter_stamp(fd, SIZE, 5);
	tap_ok(!exporter_check(fd, SIZE, 5) &&
	       !stamp_check(memory, 5, 0, SIZE / PAGE, NULL),
	       "revoked: stamps can still be written and read");
	tap_ok(exporter_move(fd, LAYOUT(2M), 0, 0) == ENODEV,
	       "revoked: does not move any more");
	tap_ok(!exporter_release(fd) && !exporter_release(fd),
	       "released twice");
	tap_ok(faults(memory), "released: the CPU's mapping faults");
	stamp.fd = fd;
	tap_ok(ioctl(exporter_device(), QRDMA_EXPORTER_CHECK, &stamp) &&
	       errno == ENODEV, "released: nothing to look at");
	tap_ok(!exporter_query(fd).segments, "released: no segments");
	munmap(memory, SIZE);
	close(fd);
}

/* ------------------------------------------------------------- bad input */

struct refusal {
	const char *name;
	unsigned long command;
	const void *argument;
	int error;
};

static void refuse(const struct refusal *refusal)
{
	char copy[256] = {};
	int ret;

	memcpy(copy, refusal->argument, _IOC_SIZE(refusal->command));
	ret = ioctl(exporter_device(), refusal->command, copy);
	if (!tap_ok(ret == -1 && errno == refusal->error, "refused: %s: %s",
		    refusal->name, strerror(refusal->error)))
		tap_note("it gave %d, %s", ret, ret ? strerror(errno) : "");
}

#define CREATE(...) &(struct qrdma_exporter_create){ __VA_ARGS__ }
#define MOVE(...) &(struct qrdma_exporter_move){ __VA_ARGS__ }
#define STAMP(...) &(struct qrdma_exporter_stamp){ __VA_ARGS__ }
#define BUFFER(...) &(struct qrdma_exporter_buffer){ __VA_ARGS__ }
#define QUERY(...) &(struct qrdma_exporter_query){ __VA_ARGS__ }
#define SEGMENTS(...) &(struct qrdma_exporter_segments){ __VA_ARGS__ }
#define TRIGGER(...) &(struct qrdma_exporter_trigger){ __VA_ARGS__ }
#define KIND(kind_) .layout.kind = QRDMA_EXPORTER_##kind_

static void bad_input(int fd)
{
	static const uint64_t zero[] = { PAGE, 0 };
	static const uint64_t odd[] = { PAGE - 1, PAGE + 1 };
	static const uint64_t large[] = { GIB + PAGE };
	static const uint64_t one[] = { PAGE };
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	const struct refusal refusals[] = {
		{ "no size", QRDMA_EXPORTER_CREATE, CREATE(KIND(4K)), EINVAL },
		{ "half a page", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = 2048, KIND(4K)), EINVAL },
		{ "too large", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = QRDMA_EXPORTER_MAX_SIZE + PAGE, KIND(4K)),
		  EINVAL },
		{ "size of 2^64 - 4096", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = -PAGE, KIND(4K)), EINVAL },
		{ "unknown layout", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, .layout.kind = 6), EINVAL },
		{ "no layout", QRDMA_EXPORTER_CREATE, CREATE(.size = PAGE),
		  EINVAL },
		{ "reserved field", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(4K), .reserved = 1), EINVAL },
		{ "list without EXPLICIT", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(4K), .layout.segment_count = 1),
		  EINVAL },
		{ "pointer without EXPLICIT", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(4K),
			 .layout.segments = (uintptr_t)one), EINVAL },
		{ "EXPLICIT without a list", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(EXPLICIT)), EINVAL },
		{ "list at address 0", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 1), EFAULT },
		{ "too many segments", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 4097,
			 .layout.segments = (uintptr_t)one), EINVAL },
		{ "2^32 - 1 segments", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(EXPLICIT),
			 .layout.segment_count = ~0u,
			 .layout.segments = (uintptr_t)one), EINVAL },
		{ "segment of no bytes", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 2,
			 .layout.segments = (uintptr_t)zero), EINVAL },
		{ "segments of odd sizes", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = 2 * PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 2,
			 .layout.segments = (uintptr_t)odd), EINVAL },
		{ "segment beyond 1 GiB", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = GIB + PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 1,
			 .layout.segments = (uintptr_t)large), EINVAL },
		{ "list shorter than the buffer", QRDMA_EXPORTER_CREATE,
		  CREATE(.size = 2 * PAGE, KIND(EXPLICIT),
			 .layout.segment_count = 1,
			 .layout.segments = (uintptr_t)one), EINVAL },
		{ "move of no file", QRDMA_EXPORTER_MOVE,
		  MOVE(.fd = -1, KIND(4K)), EBADF },
		{ "move of another file", QRDMA_EXPORTER_MOVE,
		  MOVE(.fd = file, KIND(4K)), EINVAL },
		{ "unknown flag of a move", QRDMA_EXPORTER_MOVE,
		  MOVE(.fd = fd, KIND(4K), .flags = 2), EINVAL },
		{ "reserved field of a move", QRDMA_EXPORTER_MOVE,
		  MOVE(.fd = fd, KIND(4K), .reserved = 1), EINVAL },
		{ "fence held too long", QRDMA_EXPORTER_MOVE,
		  MOVE(.fd = fd, KIND(4K),
		       .hold_ms = QRDMA_EXPORTER_MAX_HOLD_MS + 1), EINVAL },
		{ "move to no layout", QRDMA_EXPORTER_MOVE, MOVE(.fd = fd),
		  EINVAL },
		{ "stamp of no pages", QRDMA_EXPORTER_STAMP, STAMP(.fd = fd),
		  EINVAL },
		{ "stamp beyond the end", QRDMA_EXPORTER_STAMP,
		  STAMP(.fd = fd, .first_page = 1, .pages = SIZE / PAGE),
		  EINVAL },
		{ "stamp that wraps", QRDMA_EXPORTER_CHECK,
		  STAMP(.fd = fd, .first_page = 1, .pages = ~0ull), EINVAL },
		{ "stamp from page 2^32", QRDMA_EXPORTER_CHECK,
		  STAMP(.fd = fd, .first_page = 1ull << 32, .pages = 1),
		  EINVAL },
		{ "unknown flag of a stamp", QRDMA_EXPORTER_CHECK,
		  STAMP(.fd = fd, .pages = 1, .flags = 2), EINVAL },
		{ "old memory where there is none", QRDMA_EXPORTER_CHECK,
		  STAMP(.fd = fd, .pages = 1,
			.flags = QRDMA_EXPORTER_STAMP_OLD), ENOENT },
		{ "reserved field of a revocation", QRDMA_EXPORTER_REVOKE,
		  BUFFER(.fd = fd, .reserved = 1), EINVAL },
		{ "reserved field of a release", QRDMA_EXPORTER_RELEASE,
		  BUFFER(.fd = fd, .reserved = 1), EINVAL },
		{ "reserved field of a query", QRDMA_EXPORTER_QUERY,
		  QUERY(.fd = fd, .reserved = 1), EINVAL },
		{ "reserved field of segments", QRDMA_EXPORTER_SEGMENTS,
		  SEGMENTS(.fd = fd, .reserved = 1), EINVAL },
		{ "segments to address 0", QRDMA_EXPORTER_SEGMENTS,
		  SEGMENTS(.fd = fd, .capacity = 1), EFAULT },
		{ "reserved field of a trigger", QRDMA_EXPORTER_TRIGGER,
		  TRIGGER(.fd = fd, .reserved = 1), EINVAL },
		{ "unknown ioctl", _IO('q', 0x79), "", ENOTTY },
		{ "ioctl of another size",
		  _IOW('q', 0x72, struct qrdma_exporter_move), MOVE(.fd = fd),
		  ENOTTY },
	};
	unsigned int i;

	tap_step("bad input");
	for (i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
		refuse(&refusals[i]);
	tap_ok(ioctl(exporter_device(), QRDMA_EXPORTER_CREATE, NULL) == -1 &&
	       errno == EFAULT, "refused: argument at address 0");
	tap_ok(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED,
	       "refused: private mapping");
	tap_ok(!exporter_check(fd, SIZE, 6), "none of it changed the buffer");
	close(file);
}

/*
 * What a loop of creations allocates comes back; the kernel's lists of free pages
 * per processor, which do not count as free, may keep some of it.
 */
#define ROUNDS		40
#define ROUND_SIZE	(64 * MIB)
#define KEPT_KIB	(256 * 1024)

static unsigned long long free_kib(void)
{
	unsigned long long value = 0;
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];

	tap_need(file, "/proc/meminfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "MemFree: %llu", &value) == 1)
			break;
	fclose(file);
	return value;
}

static void no_leak(void)
{
	unsigned long long before, after;
	unsigned int i;

	tap_step("%d buffers", ROUNDS);
	before = free_kib();
	for (i = 0; i < ROUNDS; i++) {
		int fd = exporter_create(ROUND_SIZE, i % 2 ? LAYOUT(4K)
							   : LAYOUT(2M));

		if (exporter_move(fd, LAYOUT(64K),
				  QRDMA_EXPORTER_MOVE_KEEP_OLD, i % 3))
			tap_bail("move");
		close(fd);
	}
	after = free_kib();
	tap_note("free before %llu KiB, after %llu KiB", before, after);
	tap_ok(after + KEPT_KIB > before,
	       "%d buffers of %llu MiB, moved and closed, leave nothing",
	       ROUNDS, ROUND_SIZE / MIB);
}

int main(void)
{
	int fd;

	tap_begin();
	layouts();
	stamps_agree();
	moves();
	held_moves();
	endings();
	fd = exporter_create(SIZE, LAYOUT(4K));
	exporter_stamp(fd, SIZE, 6);
	bad_input(fd);
	close(fd);
	no_leak();
	return tap_end();
}
