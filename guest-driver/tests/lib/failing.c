/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failing.h"
#include "memory.h"
#include "tap.h"

#define FAULTS		"/sys/kernel/debug/"
#define WORKERS		64
#define NAME_SIZE	64

static int worker_nths[WORKERS];	/* their fail-nth */
static unsigned int workers_armed;

/*
 * A copy from or to a program that fails says nothing about allocations, and when it
 * fails after the work is done the program cannot know what happened. The filter by
 * caller that excludes every caller takes those out of the count.
 */
static bool leave_out_copies(void)
{
	return access(FAULTS "fail_usercopy", F_OK) ||
	       (write_text(FAULTS "fail_usercopy/stacktrace-depth", "0") &&
		write_text(FAULTS "fail_usercopy/require-start", "1"));
}

/* Where a function of the kernel's begins, and the one after it; false: none such. */
static bool find_function(const char *name, char from[NAME_SIZE],
			  char to[NAME_SIZE])
{
	FILE *file = fopen("/proc/kallsyms", "re");
	char line[300], symbol[200], address[20];
	bool found = false;

	tap_need(file, "/proc/kallsyms");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%19s %*c %199s", address, symbol) != 2)
			continue;
		if (found)
			break;
		found = !strcmp(symbol, name);
		snprintf(from, NAME_SIZE, "0x%s", address);
	}
	snprintf(to, NAME_SIZE, "0x%s", address);
	fclose(file);
	return found;
}

/* The check of DMA mappings gives up for good when it gets no memory for its notes. */
static bool leave_out_checks(void)
{
	char from[NAME_SIZE], to[NAME_SIZE];

	return !find_function("add_dma_entry", from, to) ||
	       (write_text(FAULTS "failslab/reject-start", from) &&
		write_text(FAULTS "failslab/reject-end", to) &&
		write_text(FAULTS "fail_page_alloc/reject-start", from) &&
		write_text(FAULTS "fail_page_alloc/reject-end", to));
}

/* Quietly, so that what is on the console is about something else. */
bool failing_begin(void)
{
	return leave_out_copies() && leave_out_checks() &&
	       write_text(FAULTS "failslab/ignore-gfp-wait", "N") &&
	       write_text(FAULTS "failslab/verbose", "0") &&
	       write_text(FAULTS "fail_page_alloc/ignore-gfp-wait", "N") &&
	       write_text(FAULTS "fail_page_alloc/verbose", "0") &&
	       write_text(FAULTS "fail_page_alloc/min-order", "0") &&
	       !access("/proc/thread-self/fail-nth", W_OK);
}

static void write_nth(int fd, unsigned int nth)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", nth);

	tap_need(pwrite(fd, text, length, 0) == length, "fail-nth");
}

/* 0: the failure came, or none was armed. */
static unsigned int read_nth(int fd)
{
	char text[16] = "";

	tap_need(pread(fd, text, sizeof(text) - 1, 0) > 0, "fail-nth");
	return strtoul(text, NULL, 10);
}

/* Of the thread that calls first: one thread at a time has failures. */
static int own_nth(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	tap_need(fd >= 0, "/proc/thread-self/fail-nth");
	return fd;
}

void failing_arm(unsigned int nth)
{
	write_nth(own_nth(), nth);
}

bool failing_disarm(void)
{
	bool came = read_nth(own_nth()) == 0;

	write_nth(own_nth(), 0);
	return came;
}

/* Workers of any queue without a processor, and the thread of the card's interrupt. */
static bool is_worker(const char *name)
{
	return !strncmp(name, "kworker/u", 9) ||
	       (!strncmp(name, "irq/", 4) && strstr(name, "qrdma"));
}

static bool read_name(const char *pid, char *name)
{
	char path[300];
	FILE *file;
	bool have;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	have = fgets(name, NAME_SIZE, file);
	fclose(file);
	if (have)
		name[strcspn(name, "\n")] = '\0';
	return have;
}

static void arm_worker(const char *pid, unsigned int nth)
{
	char name[NAME_SIZE], path[300];
	int fd;

	if (workers_armed == WORKERS || !read_name(pid, name) ||
	    !is_worker(name))
		return;
	snprintf(path, sizeof(path), "/proc/%s/fail-nth", pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	/* It may have gone. */
	if (fd < 0)
		return;
	write_nth(fd, nth);
	worker_nths[workers_armed++] = fd;
}

void failing_arm_workers(unsigned int nth)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	tap_need(folder, "/proc");
	while ((entry = readdir(folder)))
		if (strspn(entry->d_name, "0123456789"))
			arm_worker(entry->d_name, nth);
	closedir(folder);
	tap_need(workers_armed, "no worker of the kernel's");
}

bool failing_disarm_workers(void)
{
	bool came = false;

	while (workers_armed) {
		int fd = worker_nths[--workers_armed];

		came |= read_nth(fd) == 0;
		write_nth(fd, 0);
		close(fd);
	}
	return came;
}
