/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stamp.h"
#include "tap.h"
#include "traffic.h"

#define LANES		3	/* threads, each with a pair of queue pairs */
#define MAX_SPAN	4	/* pages an access */
#define MAX_NOTES	5	/* wrong accesses that are described */

enum access_kind {
	REMOTE_WRITE,		/* staging -> region, region is remote */
	REMOTE_READ,		/* region -> staging, region is remote */
	LOCAL_WRITE,		/* staging -> region, region is local (RDMA read) */
	LOCAL_READ,		/* region -> staging, region is local (RDMA write) */
	ACCESS_KINDS,
};

/*
 * One thread. It has pages of the region to itself, so that it knows what is in
 * them. Several of them, because an access to an absent page suspends its queue
 * pair: the others go on while the driver repairs the region.
 */
struct lane {
	struct traffic *traffic;
	struct rc_pair *pair;
	void *staging;
	struct ibv_mr *staging_mr;
	uint64_t first;			/* page of the region */
	uint64_t pages;
	uint64_t random;
	uint64_t generation;
	pthread_t thread;
	/* Under the traffic's lock. */
	uint64_t accesses;
	bool busy;			/* an access is under way */
};

struct traffic {
	struct region *region;
	struct lane lanes[LANES];
	unsigned int count;		/* of lanes: no more than pages */

	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t changed;
	struct traffic_counts counts;
	bool paused;
	bool stop;
	bool expect_refusal;
	unsigned int notes;
};

/* --------------------------------------------------------------- region */

struct region *region_create(struct ibv_mr *mr, uint64_t iova, uint64_t pages,
			     uint64_t first_index, uint64_t seed)
{
	struct region *region = calloc(1, sizeof(*region));

	tap_need(region, "no memory");
	region->mr = mr;
	region->iova = iova;
	region->pages = pages;
	region->first_index = first_index;
	region->seed = calloc(pages, sizeof(*region->seed));
	region->doubt = calloc(pages, sizeof(*region->doubt));
	tap_need(region->seed && region->doubt, "no memory");
	region_stamped(region, seed);
	return region;
}

void region_free(struct region *region)
{
	free(region->seed);
	free(region->doubt);
	free(region);
}

void region_stamped(struct region *region, uint64_t seed)
{
	uint64_t i;

	for (i = 0; i < region->pages; i++) {
		region->seed[i] = seed;
		region->doubt[i] = 0;
	}
}

static bool page_right(const struct region *region, uint64_t page,
		       const void *memory)
{
	uint64_t index = region->first_index + page;

	if (region->doubt[page])
		return stamp_check_either(memory, region->seed[page],
					  region->doubt[page], index);
	return !stamp_check(memory, region->seed[page], index, 1, NULL);
}

uint64_t region_check(const struct region *region, const void *memory)
{
	uint64_t i, wrong = 0;

	for (i = 0; i < region->pages; i++)
		wrong += !page_right(region, i,
				     (const char *)memory + i * PAGE);
	return wrong;
}

/* -------------------------------------------------------------- accesses */

struct attempt {
	enum access_kind kind;
	uint64_t page;
	uint64_t span;
	uint64_t seed;			/* of a write */
};

static bool is_write(const struct attempt *attempt)
{
	return attempt->kind == REMOTE_WRITE || attempt->kind == LOCAL_WRITE;
}

static struct attempt next_attempt(struct lane *lane)
{
	struct region *region = lane->traffic->region;
	struct attempt attempt = {
		.kind = random_below(&lane->random, ACCESS_KINDS),
		.span = 1 + random_below(&lane->random, MAX_SPAN),
	};
	uint64_t i;

	if (region->read_only)
		attempt.kind = attempt.kind == REMOTE_WRITE ? REMOTE_READ :
			       attempt.kind == LOCAL_WRITE ? LOCAL_READ :
							     attempt.kind;
	if (attempt.span > lane->pages)
		attempt.span = lane->pages;
	attempt.page = lane->first +
		       random_below(&lane->random,
				    lane->pages - attempt.span + 1);
	if (!is_write(&attempt))
		return attempt;

	/* A page in doubt gets the doubtful stamp again: two seeds at most. */
	attempt.seed = ++lane->generation;
	for (i = 0; i < attempt.span; i++) {
		uint64_t doubt = region->doubt[attempt.page + i];

		if (!doubt)
			continue;
		attempt.page += i;
		attempt.span = 1;
		attempt.seed = doubt;
		break;
	}
	return attempt;
}

static enum ibv_wc_status execute(struct lane *lane,
				  const struct attempt *attempt)
{
	const struct region *region = lane->traffic->region;
	uint64_t address = region->iova + attempt->page * PAGE;
	bool remote = attempt->kind == REMOTE_WRITE ||
		      attempt->kind == REMOTE_READ;
	struct rc_access access = {
		.opcode = attempt->kind == REMOTE_WRITE ||
			  attempt->kind == LOCAL_READ ? IBV_WR_RDMA_WRITE :
							IBV_WR_RDMA_READ,
		.local = remote ? (uintptr_t)lane->staging : address,
		.lkey = remote ? lane->staging_mr->lkey : region->mr->lkey,
		.remote = remote ? address : (uintptr_t)lane->staging,
		.rkey = remote ? region->mr->rkey : lane->staging_mr->rkey,
		.length = attempt->span * PAGE,
	};

	if (is_write(attempt))
		stamp_pages(lane->staging, attempt->seed,
			    region->first_index + attempt->page, attempt->span);
	else
		memset(lane->staging, 0xee, attempt->span * PAGE);
	return rc_execute(lane->pair, &access);
}

static void written(struct region *region, const struct attempt *attempt,
		    bool success)
{
	uint64_t i;

	for (i = attempt->page; i < attempt->page + attempt->span; i++) {
		region->doubt[i] = success ? 0 : attempt->seed;
		if (success)
			region->seed[i] = attempt->seed;
	}
}

static bool data_right(const struct lane *lane, const struct attempt *attempt)
{
	uint64_t i;

	for (i = 0; i < attempt->span; i++)
		if (!page_right(lane->traffic->region, attempt->page + i,
				(const char *)lane->staging + i * PAGE))
			return false;
	return true;
}

static void describe(struct traffic *traffic, const struct attempt *attempt,
		     bool refusal_expected)
{
	if (traffic->notes++ < MAX_NOTES)
		tap_note("wrong: %s of %llu pages at page %llu of key 0x%x %s",
			 is_write(attempt) ? "write" : "read",
			 (unsigned long long)attempt->span,
			 (unsigned long long)attempt->page,
			 traffic->region->mr->rkey,
			 refusal_expected ? "went through after the revocation"
					  : "did not give what was written");
}

/* One access, classified. The flag was read before the access begins. */
static void one_access(struct lane *lane, bool refusal_expected)
{
	struct traffic *traffic = lane->traffic;
	struct attempt attempt = next_attempt(lane);
	bool success = execute(lane, &attempt) == IBV_WC_SUCCESS;
	bool right = success && !refusal_expected &&
		     (is_write(&attempt) || data_right(lane, &attempt));

	if (is_write(&attempt))
		written(traffic->region, &attempt, success);
	if (!success)
		rc_pair_recover(lane->pair);

	pthread_mutex_lock(&traffic->lock);
	if (success && !right)
		describe(traffic, &attempt, refusal_expected);
	if (!success)
		traffic->counts.refused++;
	else if (right)
		traffic->counts.right++;
	else
		traffic->counts.wrong++;
	if (right)
		traffic->counts.bytes += attempt.span * PAGE;
	lane->accesses++;
	pthread_mutex_unlock(&traffic->lock);
}

static void *run(void *argument)
{
	struct lane *lane = argument;
	struct traffic *traffic = lane->traffic;

	pthread_mutex_lock(&traffic->lock);
	while (!traffic->stop) {
		bool refusal_expected = traffic->expect_refusal;

		if (traffic->paused) {
			pthread_cond_wait(&traffic->changed, &traffic->lock);
			continue;
		}
		lane->busy = true;
		pthread_mutex_unlock(&traffic->lock);
		one_access(lane, refusal_expected);
		pthread_mutex_lock(&traffic->lock);
		lane->busy = false;
		pthread_cond_broadcast(&traffic->changed);
	}
	pthread_mutex_unlock(&traffic->lock);
	return NULL;
}

/* --------------------------------------------------------------- control */

static void lane_begin(struct traffic *traffic, struct rc_device *device,
		       unsigned int number, uint64_t seed)
{
	struct lane *lane = &traffic->lanes[number];
	uint64_t pages = traffic->region->pages;
	uint64_t size = MAX_SPAN * PAGE;

	lane->traffic = traffic;
	lane->first = pages * number / traffic->count;
	lane->pages = pages * (number + 1) / traffic->count - lane->first;
	lane->random = seed * LANES + number;
	/* Seeds of writes are numbers that no other stamp is made of. */
	lane->generation = lane->random << 32;
	lane->staging = mmap(NULL, size, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(lane->staging != MAP_FAILED, "no memory");
	lane->staging_mr = ibv_reg_mr(device->pd, lane->staging, size,
				      REGION_ACCESS);
	tap_need(lane->staging_mr, "ibv_reg_mr of a staging buffer");
	lane->pair = rc_pair_create(device);
}

static void lane_end(struct lane *lane)
{
	rc_pair_destroy(lane->pair);
	if (ibv_dereg_mr(lane->staging_mr))
		tap_bail("ibv_dereg_mr of a staging buffer failed");
	munmap(lane->staging, MAX_SPAN * PAGE);
}

struct traffic *traffic_start(struct rc_device *device, struct region *region,
			      uint64_t seed)
{
	struct traffic *traffic = calloc(1, sizeof(*traffic));
	unsigned int i;

	tap_need(traffic, "no memory");
	traffic->region = region;
	traffic->count = region->pages < LANES ? region->pages : LANES;
	pthread_mutex_init(&traffic->lock, NULL);
	pthread_cond_init(&traffic->changed, NULL);
	for (i = 0; i < traffic->count; i++)
		lane_begin(traffic, device, i, seed);
	for (i = 0; i < traffic->count; i++)
		if (pthread_create(&traffic->lanes[i].thread, NULL, run,
				   &traffic->lanes[i]))
			tap_bail("no thread for the traffic");
	return traffic;
}

struct traffic_counts traffic_counts(struct traffic *traffic)
{
	struct traffic_counts counts;

	pthread_mutex_lock(&traffic->lock);
	counts = traffic->counts;
	pthread_mutex_unlock(&traffic->lock);
	return counts;
}

static uint64_t all(const struct traffic *traffic)
{
	return traffic->counts.right + traffic->counts.refused +
	       traffic->counts.wrong;
}

static void wait_locked(struct traffic *traffic)
{
	pthread_cond_wait(&traffic->changed, &traffic->lock);
}

void traffic_wait(struct traffic *traffic, uint64_t accesses)
{
	pthread_mutex_lock(&traffic->lock);
	accesses += all(traffic);
	while (all(traffic) < accesses)
		wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

void traffic_wait_right(struct traffic *traffic, uint64_t accesses)
{
	pthread_mutex_lock(&traffic->lock);
	accesses += traffic->counts.right;
	while (traffic->counts.right < accesses)
		wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

/* Ends on wrong accesses as well: they are what is not refused. */
void traffic_wait_refused(struct traffic *traffic, uint64_t accesses)
{
	const struct traffic_counts *counts = &traffic->counts;

	pthread_mutex_lock(&traffic->lock);
	accesses += counts->refused + counts->wrong;
	while (counts->refused + counts->wrong < accesses)
		wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

/* An access under way is over when the number of the lane's has changed. */
void traffic_expect_refusal(struct traffic *traffic)
{
	uint64_t before[LANES];
	unsigned int i;

	pthread_mutex_lock(&traffic->lock);
	traffic->expect_refusal = true;
	for (i = 0; i < traffic->count; i++)
		before[i] = traffic->lanes[i].accesses;
	for (i = 0; i < traffic->count; i++)
		while (traffic->lanes[i].busy &&
		       traffic->lanes[i].accesses == before[i])
			wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

void traffic_pause(struct traffic *traffic)
{
	unsigned int i;

	pthread_mutex_lock(&traffic->lock);
	traffic->paused = true;
	for (i = 0; i < traffic->count; i++)
		while (traffic->lanes[i].busy)
			wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

void traffic_resume(struct traffic *traffic)
{
	pthread_mutex_lock(&traffic->lock);
	traffic->paused = false;
	pthread_cond_broadcast(&traffic->changed);
	pthread_mutex_unlock(&traffic->lock);
}

struct traffic_counts traffic_stop(struct traffic *traffic)
{
	struct traffic_counts counts;
	unsigned int i;

	pthread_mutex_lock(&traffic->lock);
	traffic->stop = true;
	pthread_cond_broadcast(&traffic->changed);
	pthread_mutex_unlock(&traffic->lock);
	for (i = 0; i < traffic->count; i++)
		pthread_join(traffic->lanes[i].thread, NULL);
	counts = traffic->counts;
	for (i = 0; i < traffic->count; i++)
		lane_end(&traffic->lanes[i]);
	free(traffic);
	return counts;
}
