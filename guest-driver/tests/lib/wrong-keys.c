/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "audit.h"
#include "card.h"
#include "diagnostic.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"
#include "wrong-keys.h"

#define SIZE		(2 * MIB)
#define IOVA		0x7a0000000000ull
#define ACCESSES	24
#define SEED		0x5eed
#define FEW_KEYS	48

/* Under running traffic; the faults are armed. */
static void figures(const char *name, struct traffic_counts counts)
{
	struct audit_counters counters = audit_counters();

	tap_figures("order=%s stale_bytes=%llu revoked_accesses=%llu stray_accesses=%llu reused_indices=%llu torn_bytes=%llu traffic_right=%llu traffic_wrong=%llu traffic_refused=%llu",
		    name, (unsigned long long)counters.stale_bytes,
		    (unsigned long long)counters.revoked_accesses,
		    (unsigned long long)counters.stray_accesses,
		    (unsigned long long)counters.reused_indices,
		    (unsigned long long)counters.torn_bytes,
		    (unsigned long long)counts.right,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)counts.refused);
	audit_note(name);
}

/* ------------------------------------------------------------- revocation */

static struct traffic *revoke(const char *name, struct subject *subject,
			      enum qrdma_fault_action action, uint64_t delay)
{
	struct traffic *traffic;

	tap_step("%s: registration", name);
	diagnostic_clear();
	audit_clear();
	subject_begin(subject, LAYOUT(4K), SEED);
	traffic = traffic_start(subject->device, subject->region, 19);
	traffic_wait(traffic, ACCESSES);
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_UMR,
		.action = action,
		.index = subject->mr->rkey >> 8,
		.delay = delay,
	});
	tap_step("%s: revocation", name);
	if (exporter_revoke(subject->fd))
		tap_bail("%s: the exporter does not revoke", name);
	traffic_expect_refusal(traffic);
	return traffic;
}

static void judge_revocation(const char *name, const struct subject *subject,
			     struct traffic_counts counts)
{
	struct audit_counters counters = audit_counters();
	struct audit_finding finding = {};
	uint32_t key = subject->mr->rkey;

	figures(name, counts);
	tap_ok(counters.stale_bytes &&
	       audit_find(QRDMA_FINDING_STALE, key, &finding) &&
	       finding.address == subject->iova,
	       "%s: the audit finds %llu stale bytes, from 0x%llx on", name,
	       (unsigned long long)counters.stale_bytes,
	       (unsigned long long)finding.address);
	tap_ok(counters.revoked_accesses &&
	       audit_find(QRDMA_FINDING_REVOKED_ACCESS, key, NULL),
	       "%s: the audit finds %llu accesses after it", name,
	       (unsigned long long)counters.revoked_accesses);
	tap_ok(counts.wrong, "%s: traffic got through after it, too", name);
}

static struct subject new_subject(struct rc_device *device)
{
	return (struct subject) {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
	};
}

static void revocation_dropped(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	struct traffic *traffic;

	traffic = revoke("revocation-dropped", &subject, QRDMA_FAULT_DROP, 0);
	tap_step("revocation-dropped: accesses");
	traffic_wait(traffic, ACCESSES);
	judge_revocation("revocation-dropped", &subject, traffic_stop(traffic));
	subject_end(&subject);
}

static void revocation_late(struct rc_device *device)
{
	struct subject subject = new_subject(device);
	struct audit_counters counters;
	struct traffic_counts counts;
	struct traffic *traffic;

	traffic = revoke("revocation-late", &subject, QRDMA_FAULT_LATE,
			 500 * MILLISECONDS);
	tap_step("revocation-late: the card to do it");
	diagnostic_wait_released();
	traffic_pause(traffic);
	counts = traffic_counts(traffic);
	judge_revocation("revocation-late", &subject, counts);

	audit_clear();
	tap_step("revocation-late: accesses that are refused");
	traffic_resume(traffic);
	traffic_wait(traffic, ACCESSES);
	traffic_pause(traffic);
	counters = audit_counters();
	tap_ok(traffic_stop(traffic).wrong == counts.wrong &&
	       !audit_found(&counters),
	       "revocation-late: once it is done all are refused, and the audit finds nothing");
	subject_end(&subject);
}

/* ----------------------------------------------------------- invalidation */

/*
 * The table still shows where the buffer was; the exporter keeps that memory. As
 * nothing is absent, no page fault has the region loaded: that comes once the
 * card has done it late, and not at all if it never does.
 */
static void invalidation(struct rc_device *device, const char *name,
			 enum qrdma_fault_action action, uint64_t delay)
{
	struct subject subject = new_subject(device);
	struct audit_counters counters;
	struct traffic_counts counts;
	struct traffic *traffic;

	subject.dynamic = true;
	tap_step("%s: registration", name);
	diagnostic_clear();
	subject_begin(&subject, LAYOUT(4K), SEED);
	traffic = traffic_start(device, subject.region, 23);
	traffic_wait(traffic, ACCESSES);
	traffic_pause(traffic);
	audit_clear();
	subject.region->read_only = true;
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_UMR,
		.action = action,
		.index = subject.mr->rkey >> 8,
		.delay = delay,
	});
	tap_step("%s: the buffer to move", name);
	if (exporter_move(subject.fd, LAYOUT(64K),
			  QRDMA_EXPORTER_MOVE_KEEP_OLD, 0))
		tap_bail("%s: the exporter does not move", name);
	traffic_resume(traffic);
	traffic_wait(traffic, ACCESSES);
	diagnostic_wait_released();
	traffic_pause(traffic);
	counts = traffic_counts(traffic);
	counters = audit_counters();
	figures(name, counts);
	tap_ok(counters.stale_bytes &&
	       audit_find(QRDMA_FINDING_STALE, subject.mr->rkey, NULL),
	       "%s: the audit finds %llu stale bytes", name,
	       (unsigned long long)counters.stale_bytes);
	tap_ok(counts.wrong, "%s: traffic reads where the buffer was", name);

	if (action == QRDMA_FAULT_LATE) {
		audit_clear();
		traffic_resume(traffic);
		traffic_wait(traffic, ACCESSES);
		traffic_pause(traffic);
		counters = audit_counters();
		tap_ok(traffic_counts(traffic).wrong == counts.wrong &&
		       !audit_found(&counters),
		       "%s: once it is done the region is right", name);
	}
	traffic_stop(traffic);
	subject_end(&subject);
}

/* ------------------------------------------------------------- reused key */

struct page_region {
	void *memory;
	struct ibv_mr *mr;
};

static bool read_page(struct rc_pair *pair, const struct page_region *staging,
		      uint64_t address, uint32_t rkey, uint64_t seed)
{
	struct rc_access access = {
		.opcode = IBV_WR_RDMA_READ,
		.local = (uintptr_t)staging->memory,
		.lkey = staging->mr->lkey,
		.remote = address,
		.rkey = rkey,
		.length = PAGE,
	};

	memset(staging->memory, 0, PAGE);
	if (rc_execute(pair, &access) != IBV_WC_SUCCESS) {
		rc_pair_recover(pair);
		return false;
	}
	return !stamp_check(staging->memory, seed, 0, 1, NULL);
}

static struct page_region page_region(struct rc_device *device, uint64_t seed)
{
	struct page_region page = {
		.memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};

	tap_need(page.memory != MAP_FAILED, "no memory");
	stamp_pages(page.memory, seed, 0, 1);
	page.mr = ibv_reg_mr(device->pd, page.memory, PAGE, REGION_ACCESS);
	tap_need(page.mr, "ibv_reg_mr");
	return page;
}

static void page_region_end(struct page_region *page)
{
	if (page->mr && ibv_dereg_mr(page->mr))
		tap_bail("ibv_dereg_mr");
	munmap(page->memory, PAGE);
}

/* New regions until one has the index; NULL if none gets it. */
static struct ibv_mr *come_again(struct rc_device *device, void *memory,
				 uint32_t index)
{
	for (unsigned int i = 0; i < 2 * FEW_KEYS; i++) {
		struct ibv_mr *mr = ibv_reg_mr(device->pd, memory, PAGE,
					       REGION_ACCESS);

		if (!mr || mr->rkey >> 8 == index)
			return mr;
		if (ibv_dereg_mr(mr))
			tap_bail("ibv_dereg_mr");
	}
	return NULL;
}

static void reused_key(struct rc_device *device)
{
	struct page_region staging, old, new;
	struct audit_counters counters;
	struct rc_pair *pair;
	uint32_t key;

	tap_step("reused-key: a key that the card keeps");
	diagnostic_clear();
	audit_clear();
	card_parameter("max_mkeys", FEW_KEYS);
	pair = rc_pair_create(device);
	staging = page_region(device, SEED);
	old = page_region(device, SEED + 1);
	new = page_region(device, SEED + 2);
	key = old.mr->rkey;
	diagnostic_arm((struct fault) {
		.target = QRDMA_FAULT_COMMAND,
		.action = QRDMA_FAULT_DROP,
		.index = key >> 8,
		.opcode = QRDMA_CMD_DESTROY_MKEY,
	});
	if (ibv_dereg_mr(old.mr))
		tap_bail("reused-key: ibv_dereg_mr");
	old.mr = NULL;
	tap_ok(read_page(pair, &staging, (uintptr_t)old.memory, key, SEED + 1),
	       "reused-key: the key still works after its deregistration");
	counters = audit_counters();
	tap_ok(counters.revoked_accesses &&
	       audit_find(QRDMA_FINDING_REVOKED_ACCESS, key, NULL),
	       "reused-key: which the audit finds");

	tap_step("reused-key: the index to come again");
	if (ibv_dereg_mr(new.mr))
		tap_bail("reused-key: ibv_dereg_mr");
	new.mr = come_again(device, new.memory, key >> 8);
	tap_ok(new.mr, "reused-key: the index comes again, and the driver copes");
	figures("reused-key", (struct traffic_counts){});
	counters = audit_counters();
	tap_ok(counters.reused_indices == 1 &&
	       audit_find(QRDMA_FINDING_REUSED_INDEX, key, NULL),
	       "reused-key: the audit finds that it was still taken");
	audit_clear();
	tap_ok(new.mr && read_page(pair, &staging, (uintptr_t)new.memory,
				   new.mr->rkey, SEED + 2),
	       "reused-key: the new region works");
	tap_ok(!read_page(pair, &staging, (uintptr_t)old.memory, key, SEED + 1),
	       "reused-key: the old key does not any more");
	card_parameter("max_mkeys", 0);
	counters = audit_counters();
	tap_ok(!audit_found(&counters),
	       "reused-key: the audit finds nothing more");
	page_region_end(&new);
	page_region_end(&old);
	page_region_end(&staging);
	rc_pair_destroy(pair);
}

void wrong_keys(struct rc_device *device)
{
	revocation_dropped(device);
	revocation_late(device);
	invalidation(device, "invalidation-dropped", QRDMA_FAULT_DROP, 0);
	invalidation(device, "invalidation-late", QRDMA_FAULT_LATE,
		     500 * MILLISECONDS);
	reused_key(device);
}
