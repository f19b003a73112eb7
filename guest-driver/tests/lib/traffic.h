/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Traffic through a region from threads of its own, that know for every page what
 * must be there and classify each access: right, refused or wrong.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

/* What is in a region, page by page. */
struct region {
	struct ibv_mr *mr;
	uint64_t iova;			/* page aligned */
	uint64_t pages;
	uint64_t first_index;		/* stamp index of the first page */
	uint64_t *seed;			/* of each page */
	/*
	 * A write that was refused may have got to a part of the page: then
	 * words of this seed are right as well. 0: no doubt.
	 */
	uint64_t *doubt;
	/*
	 * Only reads from here on: a map that is wrong on purpose is not to lead
	 * writes astray. Changed while the traffic is paused.
	 */
	bool read_only;
};

/* All pages hold stamps of @seed. */
struct region *region_create(struct ibv_mr *mr, uint64_t iova, uint64_t pages,
			     uint64_t first_index, uint64_t seed);
void region_free(struct region *region);
/* Everything was stamped anew. */
void region_stamped(struct region *region, uint64_t seed);
/* Wrong pages as the CPU sees them; @memory: where the region begins. */
uint64_t region_check(const struct region *region, const void *memory);

struct traffic_counts {
	uint64_t right;
	uint64_t refused;
	uint64_t wrong;
	uint64_t bytes;			/* read and compared, or written */
};

struct traffic;

/*
 * Begins at once. Both directions, the region as the remote and as the local
 * side, spans of pages from a seeded sequence.
 */
struct traffic *traffic_start(struct rc_device *device, struct region *region,
			      uint64_t seed);
struct traffic_counts traffic_counts(struct traffic *traffic);
/* Waits until as many more accesses were classified; any kind. */
void traffic_wait(struct traffic *traffic, uint64_t accesses);
/* Waits until as many more were right. */
void traffic_wait_right(struct traffic *traffic, uint64_t accesses);
/* Waits until as many more were refused, or wrong. */
void traffic_wait_refused(struct traffic *traffic, uint64_t accesses);
/*
 * From now on an access that begins and is not refused is wrong: the region was
 * revoked. Returns once no access that began before is under way.
 */
void traffic_expect_refusal(struct traffic *traffic);
/* No access is under way when it returns, and none begins until resumed. */
void traffic_pause(struct traffic *traffic);
void traffic_resume(struct traffic *traffic);
/* Ends the threads and frees everything. */
struct traffic_counts traffic_stop(struct traffic *traffic);

#endif
