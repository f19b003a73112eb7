/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel holds for programs: the device's objects, as `rdma resource`
 * counts them, and the pages that this program has pinned.
 */
#ifndef RESOURCES_H
#define RESOURCES_H

#include <stdbool.h>
#include <stdint.h>

struct resources {
	uint64_t contexts;
	uint64_t pds;
	uint64_t cqs;
	uint64_t qps;
	uint64_t mrs;
	uint64_t pinned_kib;		/* of this program */
};

/* @device: its name, qrdma0. Bails out if there is none. */
struct resources resources_count(const char *device);
bool resources_equal(const struct resources *a, const struct resources *b);
/* Comment line: what there was and what there is. */
void resources_note(const char *name, const struct resources *before,
		    const struct resources *after);

#endif
