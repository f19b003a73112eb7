/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every allocation that a call makes fails once, one after the other. Each time the
 * call must fail with ENOMEM or succeed all the same, the same call must succeed when
 * nothing fails, and afterwards the kernel must hold what it held before. What gives
 * something back must succeed at once.
 *
 * Without arguments all cases; otherwise those that are named.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "failing.h"
#include "memory.h"
#include "resources.h"
#include "tap.h"
#include "trials.h"

#define MOST		1000	/* allocations of one call */
/* A worker that was made meanwhile has no failure: one miss says nothing yet. */
#define MISSES		3

struct result {
	unsigned int failed;		/* calls that said so */
	unsigned int survived;		/* calls to which a failure was nothing */
	unsigned int other_errors;
	unsigned int wrong;		/* times that it was not as it should be */
	unsigned int left;		/* times that something was left over */
};

/* ENOBUFS is what the network says, which a QP's address is looked up in. */
static bool says_no_memory(int error)
{
	return error == ENOMEM || error == ENOBUFS;
}

static bool reached(const struct trial *trial)
{
	return trial->workers ? failing_disarm_workers() : failing_disarm();
}

static int attempt(struct bench *bench, const struct trial *trial,
		   unsigned int nth, bool *came)
{
	int error;

	tap_step("%s: allocation %u fails", trial->name, nth);
	if (trial->workers)
		failing_arm_workers(nth);
	else
		failing_arm(nth);
	error = trial->attempt(bench);
	*came = reached(trial);
	return error;
}

static void one(struct bench *bench, const struct trial *trial, unsigned int nth,
		struct result *result, bool *came)
{
	struct resources before, after;
	int error;

	before = resources_count(bench->name);
	if (trial->prepare)
		trial->prepare(bench);
	error = attempt(bench, trial, nth, came);
	result->failed += error != 0;
	result->survived += !error && *came;
	if (error && !says_no_memory(error) && !trial->own_errors) {
		tap_note("%s: allocation %u: %s", trial->name, nth,
			 strerror(error));
		result->other_errors++;
	}
	if (trial->right && !trial->right(bench, error)) {
		tap_note("%s: allocation %u: not as it should be", trial->name,
			 nth);
		result->wrong++;
	}
	if (error) {
		error = trial->attempt(bench);
		if (error)
			tap_bail("%s: allocation %u: not even when nothing fails: %s",
				 trial->name, nth, strerror(error));
	}
	if (trial->undo && !trial->undo(bench))
		result->wrong++;
	after = resources_count(bench->name);
	if (!resources_equal(&before, &after)) {
		resources_note(trial->name, &before, &after);
		result->left++;
	}
}

static void run(struct bench *bench, const struct trial *trial)
{
	unsigned int nth = 0, misses = 0, most = 0;
	struct result result = {};
	bool right;

	tap_step("%s", trial->name);
	if (trial->begin)
		trial->begin(bench);
	while (misses < (trial->workers ? MISSES : 1) && nth < MOST) {
		bool came;

		one(bench, trial, ++nth, &result, &came);
		misses = came ? 0 : misses + 1;
		most = came ? nth : most;
	}
	if (trial->end)
		trial->end(bench);
	tap_figures("case=%s allocations=%u failed=%u survived=%u other_errors=%u not_right=%u left=%u",
		    trial->name, most, result.failed, result.survived,
		    result.other_errors, result.wrong, result.left);
	right = nth < MOST && !result.other_errors && !result.wrong &&
		!result.left;
	if (trial->gives_back)
		tap_ok(right && !result.failed,
		       "%s: succeeds, although each of %u allocations fails",
		       trial->name, most);
	else
		tap_ok(right && most, "%s: each of %u allocations may fail",
		       trial->name, most);
}

static bool wanted(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(name, argv[i]))
			return true;
	return argc == 1;
}

int main(int argc, char **argv)
{
	struct bench *bench;
	unsigned int ran = 0;

	tap_begin();
	if (!failing_begin()) {
		tap_skip("the kernel has no fault injection",
			 "allocations that fail");
		return tap_end();
	}
	bench = bench_create();
	for (const struct trial *trial = trials; trial->name; trial++) {
		if (!wanted(trial->name, argc, argv))
			continue;
		run(bench, trial);
		ran++;
	}
	if (!ran)
		tap_bail("there is no such case");
	check_works("allocation-failures", bench->device);
	check_alive("allocation-failures", bench->device);
	bench_destroy(bench);
	return tap_end();
}
