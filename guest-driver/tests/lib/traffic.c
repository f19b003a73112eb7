/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stamp.h"
#include "tap.h"
#include "traffic.h"

#define MAX_SPAN	4	/* pages an access */
#define MAX_NOTES	5	/* wrong accesses that are described */

enum access_kind {
	REMOTE_WRITE,		/* staging -> region, region is remote */
	REMOTE_READ,		/* region -> staging, region is remote */
	LOCAL_WRITE,		/* staging -> region, region is local (RDMA read) */
	LOCAL_READ,		/* region -> staging, region is local (RDMA write) */
	ACCESS_KINDS,
};

struct traffic {
	struct rc_pair *pair;
	struct region *region;
	void *staging;
	struct ibv_mr *staging_mr;
	uint64_t random;
	uint64_t generation;
	pthread_t thread;

	pthread_mutex_t lock;		/* everything below */
	pthread_cond_t changed;
	struct traffic_counts counts;
	bool busy;			/* an access is under way */
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

static struct attempt next_attempt(struct traffic *traffic)
{
	struct region *region = traffic->region;
	struct attempt attempt = {
		.kind = random_below(&traffic->random, ACCESS_KINDS),
		.span = 1 + random_below(&traffic->random, MAX_SPAN),
	};
	uint64_t i;

	if (attempt.span > region->pages)
		attempt.span = region->pages;
	attempt.page = random_below(&traffic->random,
				    region->pages - attempt.span + 1);
	if (!is_write(&attempt))
		return attempt;

	/* A page in doubt gets the doubtful stamp again: two seeds at most. */
	attempt.seed = ++traffic->generation;
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

static enum ibv_wc_status execute(struct traffic *traffic,
				  const struct attempt *attempt)
{
	const struct region *region = traffic->region;
	uint64_t address = region->iova + attempt->page * PAGE;
	bool remote = attempt->kind == REMOTE_WRITE ||
		      attempt->kind == REMOTE_READ;
	struct rc_access access = {
		.opcode = attempt->kind == REMOTE_WRITE ||
			  attempt->kind == LOCAL_READ ? IBV_WR_RDMA_WRITE :
							IBV_WR_RDMA_READ,
		.local = remote ? (uintptr_t)traffic->staging : address,
		.lkey = remote ? traffic->staging_mr->lkey : region->mr->lkey,
		.remote = remote ? address : (uintptr_t)traffic->staging,
		.rkey = remote ? region->mr->rkey : traffic->staging_mr->rkey,
		.length = attempt->span * PAGE,
	};

	if (is_write(attempt))
		stamp_pages(traffic->staging, attempt->seed,
			    region->first_index + attempt->page, attempt->span);
	else
		memset(traffic->staging, 0xee, attempt->span * PAGE);
	return rc_execute(traffic->pair, &access);
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

static bool data_right(const struct traffic *traffic,
		       const struct attempt *attempt)
{
	uint64_t i;

	for (i = 0; i < attempt->span; i++)
		if (!page_right(traffic->region, attempt->page + i,
				(const char *)traffic->staging + i * PAGE))
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

/* One access, classified. The flag is read before the access begins. */
static void one_access(struct traffic *traffic, bool refusal_expected)
{
	struct attempt attempt = next_attempt(traffic);
	enum ibv_wc_status status = execute(traffic, &attempt);
	bool success = status == IBV_WC_SUCCESS;
	bool right = success && !refusal_expected &&
		     (is_write(&attempt) || data_right(traffic, &attempt));

	if (is_write(&attempt))
		written(traffic->region, &attempt, success);
	if (success && !right)
		describe(traffic, &attempt, refusal_expected);
	if (!success)
		rc_pair_recover(traffic->pair);

	pthread_mutex_lock(&traffic->lock);
	if (!success)
		traffic->counts.refused++;
	else if (right)
		traffic->counts.right++;
	else
		traffic->counts.wrong++;
	if (right)
		traffic->counts.bytes += attempt.span * PAGE;
	pthread_mutex_unlock(&traffic->lock);
}

static void *run(void *argument)
{
	struct traffic *traffic = argument;

	pthread_mutex_lock(&traffic->lock);
	while (!traffic->stop) {
		bool refusal_expected = traffic->expect_refusal;

		if (traffic->paused) {
			pthread_cond_wait(&traffic->changed, &traffic->lock);
			continue;
		}
		traffic->busy = true;
		pthread_mutex_unlock(&traffic->lock);
		one_access(traffic, refusal_expected);
		pthread_mutex_lock(&traffic->lock);
		traffic->busy = false;
		pthread_cond_broadcast(&traffic->changed);
	}
	pthread_mutex_unlock(&traffic->lock);
	return NULL;
}

/* --------------------------------------------------------------- control */

struct traffic *traffic_start(struct rc_device *device, struct region *region,
			      uint64_t seed)
{
	struct traffic *traffic = calloc(1, sizeof(*traffic));
	uint64_t size = MAX_SPAN * PAGE;

	tap_need(traffic, "no memory");
	traffic->region = region;
	traffic->random = seed;
	/* Seeds of writes are numbers that no other stamp is made of. */
	traffic->generation = seed << 32;
	traffic->staging = mmap(NULL, size, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	tap_need(traffic->staging != MAP_FAILED, "no memory");
	traffic->staging_mr = ibv_reg_mr(device->pd, traffic->staging, size,
					 REGION_ACCESS);
	tap_need(traffic->staging_mr, "ibv_reg_mr of a staging buffer");
	traffic->pair = rc_pair_create(device);
	pthread_mutex_init(&traffic->lock, NULL);
	pthread_cond_init(&traffic->changed, NULL);
	if (pthread_create(&traffic->thread, NULL, run, traffic))
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

void traffic_wait_refused(struct traffic *traffic, uint64_t accesses)
{
	pthread_mutex_lock(&traffic->lock);
	accesses += traffic->counts.refused;
	while (traffic->counts.refused < accesses)
		wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

/* The access under way, if any, is over when the number of them has changed. */
void traffic_expect_refusal(struct traffic *traffic)
{
	uint64_t before;

	pthread_mutex_lock(&traffic->lock);
	traffic->expect_refusal = true;
	before = all(traffic);
	while (traffic->busy && all(traffic) == before)
		wait_locked(traffic);
	pthread_mutex_unlock(&traffic->lock);
}

void traffic_pause(struct traffic *traffic)
{
	pthread_mutex_lock(&traffic->lock);
	traffic->paused = true;
	while (traffic->busy)
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

	pthread_mutex_lock(&traffic->lock);
	traffic->stop = true;
	pthread_cond_broadcast(&traffic->changed);
	pthread_mutex_unlock(&traffic->lock);
	pthread_join(traffic->thread, NULL);
	counts = traffic->counts;

	rc_pair_destroy(traffic->pair);
	if (ibv_dereg_mr(traffic->staging_mr))
		tap_bail("ibv_dereg_mr of a staging buffer failed");
	munmap(traffic->staging, MAX_SPAN * PAGE);
	free(traffic);
	return counts;
}
