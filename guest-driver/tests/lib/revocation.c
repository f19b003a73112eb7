/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <rdma/ib_user_verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "revocation.h"
#include "stamp.h"
#include "tap.h"

#define MANY_KEYS	4096
#define SIZE_2M		(2 * MIB)

const char *const revocation_events[] = {
	"qrdma_access_error", "qrdma_revoke", "qrdma_mr_registered", NULL,
};

void check_reported(const char *name, const struct subject *subject,
		    uint64_t errors_before)
{
	uint32_t key = subject->mr->rkey;
	struct event event, revocation = {};
	unsigned int reported, revoked;
	struct event_list events;
	uint64_t address = 0;
	bool named;

	tap_step("%s: IBV_EVENT_QP_ACCESS_ERR", name);
	rc_wait_access_errors(subject->device, errors_before + 1);
	events = events_read();
	reported = events_find(&events, "qrdma_access_error", key, &event);
	revoked = events_find(&events, "qrdma_revoke", key, &revocation);
	events_free(&events);
	if (reported)
		address = event_field(&event, "address");
	named = reported && address >= subject->iova &&
		address < subject->iova + subject->length &&
		(uint32_t)event_field(&event, "key") == key;
	tap_figures("case=%s key=0x%x address=0x%llx access_events=%llu driver_reports=%u revoke_callbacks=%u",
		    name, key, (unsigned long long)address,
		    (unsigned long long)(rc_access_errors(subject->device) -
					 errors_before),
		    reported, revoked);
	tap_ok(named, "%s: the driver names key and address of the access",
	       name);
	tap_ok(revoked == 1 && !event_field(&revocation, "error"),
	       "%s: the driver's callback ran once, without an error", name);
}

void check_refused(const char *name, struct traffic_counts counts)
{
	tap_figures("case=%s right=%llu refused=%llu wrong=%llu bytes=%llu",
		    name, (unsigned long long)counts.right,
		    (unsigned long long)counts.refused,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)counts.bytes);
	tap_ok(!counts.wrong && counts.refused >= REVOCATION_REFUSALS,
	       "%s: later accesses fail, and none was wrong", name);
}

void check_importer_gone(const char *name, int fd)
{
	struct qrdma_exporter_query query = exporter_query(fd);

	if (!tap_ok(!query.attached && !query.mapped && !query.pinned &&
		    query.pins == query.unpins && query.maps == query.unmaps &&
		    !query.order_errors,
		    "%s: the importer has unmapped, unpinned and detached, in that order",
		    name))
		tap_note("attached %u mapped %u pinned %u, pins %llu unpins %llu maps %llu unmaps %llu, out of order %llu",
			 query.attached, query.mapped, query.pinned, query.pins,
			 query.unpins, query.maps, query.unmaps,
			 query.order_errors);
}

void check_key_is_taken(const char *name, const struct subject *subject)
{
	uint32_t index = subject->mr->rkey >> 8;
	struct ibv_mr **mrs = calloc(MANY_KEYS, sizeof(*mrs));
	unsigned int i, same = 0, made = 0;
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(mrs && page != MAP_FAILED, "no memory");
	tap_step("%s: %d new regions", name, MANY_KEYS);
	for (i = 0; i < MANY_KEYS; i++) {
		mrs[i] = ibv_reg_mr(subject->device->pd, page, PAGE,
				    REGION_ACCESS);
		if (!mrs[i])
			break;
		made++;
		same += mrs[i]->rkey >> 8 == index ||
			mrs[i]->lkey >> 8 == index;
	}
	for (i = 0; i < made; i++)
		if (ibv_dereg_mr(mrs[i]))
			tap_bail("a region of one page does not go");
	munmap(page, PAGE);
	free(mrs);
	tap_figures("case=%s new_keys=%u same_index=%u", name, made, same);
	tap_ok(made == MANY_KEYS && !same,
	       "%s: none of %u new keys is the revoked one", name, made);
}

/*
 * The kernel's verb by itself: libibverbs does not let a dma-buf region get
 * there. 0 or an errno.
 */
static int reregister(const struct ibv_mr *mr, uint32_t flags, void *memory,
		      uint64_t length, uint32_t access)
{
	struct ib_uverbs_rereg_mr_resp response;
	struct {
		struct ib_uverbs_cmd_hdr header;
		struct ib_uverbs_rereg_mr command;
	} request = {
		.header = {
			.command = IB_USER_VERBS_CMD_REREG_MR,
			.in_words = sizeof(request) / 4,
			.out_words = sizeof(response) / 4,
		},
		.command = {
			.response = (uintptr_t)&response,
			.mr_handle = mr->handle,
			.flags = flags,
			.start = (uintptr_t)memory,
			.length = length,
			.hca_va = (uintptr_t)memory,
			.pd_handle = mr->pd->handle,
			.access_flags = access,
		},
	};

	return write(mr->context->cmd_fd, &request, sizeof(request)) ==
	       sizeof(request) ? 0 : errno;
}

void check_no_reregistration(const char *name, const struct subject *subject)
{
	static const uint32_t flags[] = {
		IBV_REREG_MR_CHANGE_ACCESS,
		IBV_REREG_MR_CHANGE_TRANSLATION,
		IBV_REREG_MR_CHANGE_ACCESS | IBV_REREG_MR_CHANGE_TRANSLATION,
	};
	unsigned int i, refused = 0;
	int error = 0;
	void *memory = mmap(NULL, SIZE_2M, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED, "no memory");
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		error = reregister(subject->mr, flags[i], memory, SIZE_2M,
				   IBV_ACCESS_LOCAL_WRITE);
		refused += error == EOPNOTSUPP;
	}
	tap_ok(refused == i, "%s: re-registration is refused (%s)", name,
	       strerror(error));
	tap_ok(ibv_rereg_mr(subject->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			    memory, SIZE_2M, 0),
	       "%s: so it is by libibverbs", name);
	munmap(memory, SIZE_2M);
}
