/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every allocation that a registration makes fails once, one after the other.
 * Each time the registration must fail with ENOMEM or succeed all the same, the
 * next one must succeed, and the exporter must see everything given back.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "setup.h"
#include "tap.h"

#define IOVA		0x7f0000000000ull
#define SIZE		(8 * MIB)	/* 2048 blocks of 4 KiB: level 2 */
#define MOST		400		/* allocations of one registration */

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

/* Also allocations that may wait, also single pages; quietly. */
static bool faults_begin(void)
{
	return put("/sys/kernel/debug/failslab/ignore-gfp-wait", "N") &&
	       put("/sys/kernel/debug/failslab/verbose", "0") &&
	       put("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N") &&
	       put("/sys/kernel/debug/fail_page_alloc/verbose", "0") &&
	       put("/sys/kernel/debug/fail_page_alloc/min-order", "0") &&
	       !access("/proc/self/fail-nth", W_OK);
}

static int nth_open(void)
{
	int fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);

	tap_need(fd >= 0, "/proc/self/fail-nth");
	return fd;
}

/* The @nth allocation of this thread from now on fails. */
static void nth_arm(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	tap_need(pwrite(fd, text, length, 0) == length, "fail-nth");
}

/* Whether it came to that. */
static bool nth_disarm(int fd)
{
	char text[16] = "";
	bool failed;

	tap_need(pread(fd, text, sizeof(text) - 1, 0) > 0, "fail-nth");
	failed = atoi(text) == 0;
	nth_arm(fd, 0);
	return failed;
}

struct subject_memory {
	const char *name;
	struct rc_device *device;
	void *memory;			/* user memory, or... */
	int fd;				/* ...dma-buf */
	bool dynamic;
};

static struct ibv_mr *registered(const struct subject_memory *subject)
{
	if (subject->memory)
		return ibv_reg_mr(subject->device->pd, subject->memory, SIZE,
				  REGION_ACCESS);
	return register_dmabuf(subject->device, subject->fd, 0, SIZE, IOVA,
			       subject->dynamic);
}

static bool given_back(const struct subject_memory *subject)
{
	struct qrdma_exporter_query query;

	if (subject->memory)
		return true;
	query = exporter_query(subject->fd);
	return !query.attached && !query.mapped && !query.pinned &&
	       query.pins == query.unpins && query.maps == query.unmaps &&
	       !query.order_errors;
}

static void run(const struct subject_memory *subject)
{
	unsigned int failed = 0, survived = 0, other = 0, again = 0, left = 0;
	int fd = nth_open();
	unsigned int nth;
	bool reached = true;

	for (nth = 1; nth <= MOST && reached; nth++) {
		struct ibv_mr *mr;
		int error;

		tap_step("%s: allocation %u fails", subject->name, nth);
		nth_arm(fd, nth);
		errno = 0;
		mr = registered(subject);
		error = errno;
		reached = nth_disarm(fd);
		failed += !mr;
		survived += mr && reached;
		if (!mr && error != ENOMEM) {
			tap_note("%s: allocation %u: %s", subject->name, nth,
				 strerror(error));
			other++;
		}
		if (mr && ibv_dereg_mr(mr))
			tap_bail("%s: does not go", subject->name);
		left += !given_back(subject);
		mr = registered(subject);
		again += !mr;
		if (mr && ibv_dereg_mr(mr))
			tap_bail("%s: does not go", subject->name);
		left += !given_back(subject);
	}
	close(fd);
	tap_figures("case=%s allocations=%u failed=%u survived=%u other_errors=%u not_again=%u left=%u",
		    subject->name, nth - 2, failed, survived, other, again,
		    left);
	tap_ok(failed && !reached && !other && !again && !left,
	       "%s: each of %u allocations may fail", subject->name, nth - 2);
}

int main(void)
{
	struct subject_memory subject = {};

	tap_begin();
	subject.device = rc_open();
	if (!faults_begin()) {
		tap_skip("the kernel has no fault injection",
			 "allocations that fail");
		return tap_end();
	}
	subject.name = "user";
	subject.memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	tap_need(subject.memory != MAP_FAILED, "memory");
	run(&subject);
	munmap(subject.memory, SIZE);

	subject.memory = NULL;
	subject.fd = exporter_create(SIZE, LAYOUT(4K));
	subject.name = "pinned";
	run(&subject);
	subject.name = "dynamic";
	subject.dynamic = true;
	run(&subject);
	close(subject.fd);
	rc_close(subject.device);
	return tap_end();
}
