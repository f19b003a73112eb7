/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resources.h"
#include "tap.h"

#define ANSWER_SIZE	16384

/* Attributes follow each other from @next to @end. */
struct attributes {
	const char *next;
	const char *end;
};

static const struct nlattr *next_attribute(struct attributes *list)
{
	const struct nlattr *attribute = (const void *)list->next;

	if (list->end - list->next < NLA_HDRLEN ||
	    attribute->nla_len < NLA_HDRLEN ||
	    list->end - list->next < attribute->nla_len)
		return NULL;
	list->next += NLA_ALIGN(attribute->nla_len);
	return attribute;
}

static struct attributes within(const struct nlattr *attribute)
{
	const char *start = (const char *)attribute;

	return (struct attributes){
		.next = start + NLA_HDRLEN,
		.end = start + attribute->nla_len,
	};
}

static const void *value(const struct nlattr *attribute)
{
	return (const char *)attribute + NLA_HDRLEN;
}

static void take(struct resources *resources, const char *name, uint64_t count)
{
	const struct {
		const char *name;
		uint64_t *count;
	} known[] = {
		{ "ctx", &resources->contexts }, { "pd", &resources->pds },
		{ "cq", &resources->cqs }, { "qp", &resources->qps },
		{ "mr", &resources->mrs },
	};

	for (unsigned int i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strcmp(name, known[i].name))
			*known[i].count = count;
}

static void read_entry(struct attributes entry, struct resources *resources)
{
	const struct nlattr *attribute;
	const char *name = "";
	uint64_t count = 0;

	while ((attribute = next_attribute(&entry))) {
		int type = attribute->nla_type & NLA_TYPE_MASK;

		if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME)
			name = value(attribute);
		else if (type == RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR)
			memcpy(&count, value(attribute), sizeof(count));
	}
	take(resources, name, count);
}

/* One device. False if it is another one. */
static bool read_device(struct attributes list, const char *device,
			struct resources *resources)
{
	const struct nlattr *attribute;
	bool found = false;

	while ((attribute = next_attribute(&list))) {
		struct attributes entries = within(attribute);
		int type = attribute->nla_type & NLA_TYPE_MASK;

		if (type == RDMA_NLDEV_ATTR_DEV_NAME)
			found = !strcmp(value(attribute), device);
		if (type != RDMA_NLDEV_ATTR_RES_SUMMARY || !found)
			continue;
		while ((attribute = next_attribute(&entries)))
			read_entry(within(attribute), resources);
		return true;
	}
	return false;
}

static int ask(void)
{
	struct nlmsghdr request = {
		.nlmsg_len = NLMSG_LENGTH(0),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV,
					       RDMA_NLDEV_CMD_RES_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	tap_need(fd >= 0, "a socket for NETLINK_RDMA");
	tap_need(send(fd, &request, request.nlmsg_len, 0) ==
		 (ssize_t)request.nlmsg_len, "a request to NETLINK_RDMA");
	return fd;
}

/* False: that was all. */
static bool read_answer(int fd, const char *device, struct resources *resources,
			bool *found)
{
	static char buffer[ANSWER_SIZE] __attribute__((aligned(8)));
	ssize_t length = recv(fd, buffer, sizeof(buffer), 0);
	const struct nlmsghdr *message = (const void *)buffer;

	tap_need(length > 0, "an answer of NETLINK_RDMA");
	for (; NLMSG_OK(message, length); message = NLMSG_NEXT(message, length)) {
		struct attributes list = {
			.next = NLMSG_DATA(message),
			.end = (const char *)message + message->nlmsg_len,
		};

		if (message->nlmsg_type == NLMSG_DONE)
			return false;
		if (message->nlmsg_type == NLMSG_ERROR)
			tap_bail("NETLINK_RDMA refuses to count");
		*found |= read_device(list, device, resources);
	}
	return true;
}

static uint64_t pinned_kib(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[200];

	tap_need(file, "/proc/self/status");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmPin: %llu", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

struct resources resources_count(const char *device)
{
	struct resources resources = { .pinned_kib = pinned_kib() };
	bool found = false;
	int fd = ask();

	while (read_answer(fd, device, &resources, &found))
		;
	close(fd);
	if (!found)
		tap_bail("the kernel has no device %s", device);
	return resources;
}

bool resources_equal(const struct resources *a, const struct resources *b)
{
	return !memcmp(a, b, sizeof(*a));
}

void resources_note(const char *name, const struct resources *before,
		    const struct resources *after)
{
	tap_note("%s: contexts %llu, then %llu; pds %llu, %llu; cqs %llu, %llu; qps %llu, %llu; mrs %llu, %llu; pinned KiB %llu, %llu",
		 name, (unsigned long long)before->contexts,
		 (unsigned long long)after->contexts,
		 (unsigned long long)before->pds, (unsigned long long)after->pds,
		 (unsigned long long)before->cqs, (unsigned long long)after->cqs,
		 (unsigned long long)before->qps, (unsigned long long)after->qps,
		 (unsigned long long)before->mrs, (unsigned long long)after->mrs,
		 (unsigned long long)before->pinned_kib,
		 (unsigned long long)after->pinned_kib);
}
