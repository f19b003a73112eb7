/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rc.h"
#include "tap.h"

#define QUEUE_DEPTH	16
#define IPV4_PATIENCE	3000	/* milliseconds or more */
#define POLLS		64	/* before a completion is waited for */

int rc_errno(const void *object)
{
	if (object)
		return 0;
	if (!errno)
		tap_bail("a verb failed without an errno");
	return errno;
}

/* --------------------------------------------------------------- device */

static struct ibv_device *choose(struct ibv_device **list, int count)
{
	const char *name = getenv("QRDMA_DEVICE");
	int i;

	for (i = 0; i < count; i++) {
		const char *found = ibv_get_device_name(list[i]);

		if (name ? !strcmp(found, name) : !strncmp(found, "qrdma", 5))
			return list[i];
	}
	return name || count != 1 ? NULL : list[0];
}

static void interface_up(const char *name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {};

	if (fd < 0 || strlen(name) >= sizeof(request.ifr_name))
		return;
	strcpy(request.ifr_name, name);
	if (!ioctl(fd, SIOCGIFFLAGS, &request) &&
	    !(request.ifr_flags & IFF_UP)) {
		request.ifr_flags |= IFF_UP;
		if (ioctl(fd, SIOCSIFFLAGS, &request))
			tap_note("%s does not come up: %s", name,
				 strerror(errno));
	}
	close(fd);
}

static void net_devices_up(const char *pci)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%s/net", pci);
	folder = opendir(path);
	if (!folder)
		return;
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			interface_up(entry->d_name);
	closedir(folder);
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

/*
 * RoCEv2 only: the card knows no other. IPv4 rather than IPv6, whose addresses
 * cannot be used in the moment after they were set.
 */
static bool find_gid(struct rc_device *device)
{
	struct ibv_gid_entry entry;
	bool found = false;
	int i;

	for (i = 0; i < device->port.gid_tbl_len; i++) {
		if (ibv_query_gid_ex(device->context, 1, i, &entry, 0) ||
		    entry.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    (found && !is_ipv4(&entry.gid)))
			continue;
		device->gid_index = i;
		device->gid = entry.gid;
		found = true;
		if (is_ipv4(&entry.gid))
			break;
	}
	return found;
}

/*
 * The addresses come a moment after the interface: wait for the condition. An
 * IPv4 address may come last; where there is none, IPv6 has to do.
 */
static void wait_port(struct rc_device *device)
{
	unsigned int patience = IPV4_PATIENCE;

	tap_step("the port to be active with a RoCEv2 GID");
	for (;;) {
		tap_need(!ibv_query_port(device->context, 1, &device->port),
			 "ibv_query_port");
		if (device->port.state == IBV_PORT_ACTIVE && find_gid(device) &&
		    (is_ipv4(&device->gid) || !patience--))
			return;
		usleep(1000);
	}
}

/* False once the device is to be closed. */
static bool event_ready(struct rc_device *device)
{
	struct pollfd files[] = {
		{ .fd = device->context->async_fd, .events = POLLIN },
		{ .fd = device->stop, .events = POLLIN },
	};

	do {
		files[0].revents = 0;
		files[1].revents = 0;
	} while (poll(files, 2, -1) < 0);
	return !files[1].revents;
}

static void *events(void *argument)
{
	struct rc_device *device = argument;
	struct ibv_async_event event;

	while (event_ready(device) &&
	       !ibv_get_async_event(device->context, &event)) {
		pthread_mutex_lock(&device->lock);
		switch (event.event_type) {
		case IBV_EVENT_QP_ACCESS_ERR:
			device->access_errors++;
			break;
		case IBV_EVENT_DEVICE_FATAL:
			device->fatal_events++;
			break;
		default:
			device->other_events++;
			break;
		}
		pthread_cond_broadcast(&device->changed);
		pthread_mutex_unlock(&device->lock);
		ibv_ack_async_event(&event);
	}
	return NULL;
}

struct rc_device *rc_open(void)
{
	struct rc_device *device = calloc(1, sizeof(*device));
	struct ibv_device **list;
	struct ibv_device *found;
	int count;

	tap_need(device, "no memory");
	tap_step("the device to open");
	list = ibv_get_device_list(&count);
	tap_need(list, "ibv_get_device_list");
	found = choose(list, count);
	if (!found)
		tap_bail("no RDMA device to test among %d", count);
	snprintf(device->pci, sizeof(device->pci), "%s/device",
		 found->ibdev_path);
	device->context = ibv_open_device(found);
	tap_need(device->context, "ibv_open_device");
	ibv_free_device_list(list);

	net_devices_up(device->pci);
	tap_need(!ibv_query_device(device->context, &device->attr),
		 "ibv_query_device");
	wait_port(device);
	device->pd = ibv_alloc_pd(device->context);
	tap_need(device->pd, "ibv_alloc_pd");

	device->stop = eventfd(0, EFD_CLOEXEC);
	tap_need(device->stop >= 0, "eventfd");
	pthread_mutex_init(&device->lock, NULL);
	pthread_cond_init(&device->changed, NULL);
	if (pthread_create(&device->thread, NULL, events, device))
		tap_bail("no thread for asynchronous events");
	return device;
}

void rc_close(struct rc_device *device)
{
	int ret;

	tap_step("the device to close");
	ret = ibv_dealloc_pd(device->pd);
	if (ret)
		tap_bail("something of the protection domain is left: %s",
			 strerror(ret));
	tap_need(!eventfd_write(device->stop, 1), "eventfd");
	pthread_join(device->thread, NULL);
	close(device->stop);
	ibv_close_device(device->context);
	free(device);
}

uint64_t rc_access_errors(struct rc_device *device)
{
	uint64_t count;

	pthread_mutex_lock(&device->lock);
	count = device->access_errors;
	pthread_mutex_unlock(&device->lock);
	return count;
}

void rc_wait_access_errors(struct rc_device *device, uint64_t count)
{
	pthread_mutex_lock(&device->lock);
	while (device->access_errors < count)
		pthread_cond_wait(&device->changed, &device->lock);
	pthread_mutex_unlock(&device->lock);
}

uint64_t rc_fatal_events(struct rc_device *device)
{
	uint64_t count;

	pthread_mutex_lock(&device->lock);
	count = device->fatal_events;
	pthread_mutex_unlock(&device->lock);
	return count;
}

uint64_t rc_wait_fatal(struct rc_device *device)
{
	uint64_t count;

	pthread_mutex_lock(&device->lock);
	while (!device->fatal_events)
		pthread_cond_wait(&device->changed, &device->lock);
	count = device->fatal_events;
	pthread_mutex_unlock(&device->lock);
	return count;
}

uint64_t rc_other_events(struct rc_device *device)
{
	uint64_t count;

	pthread_mutex_lock(&device->lock);
	count = device->other_events;
	pthread_mutex_unlock(&device->lock);
	return count;
}

/* ---------------------------------------------------------------- pairs */

static struct ibv_qp *create_qp(struct rc_device *device, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = QUEUE_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(device->pd, &attr);

	tap_need(qp, "ibv_create_qp");
	return qp;
}

static void must(int ret, const char *state)
{
	if (ret)
		tap_bail("ibv_modify_qp to %s: %s", state, strerror(ret));
}

static int to_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = REGION_ACCESS,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			     IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static int to_rtr(struct rc_device *device, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = device->port.active_mtu,
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = device->gid,
				.sgid_index = device->gid_index,
				.hop_limit = 1,
			},
		},
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

/* No timeout: an access waits as long as the exporter makes it wait. */
static int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 0,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int rc_connect(struct rc_device *device, struct ibv_qp *qp, uint32_t peer)
{
	int ret = to_reset(qp);

	ret = ret ?: to_init(qp);
	ret = ret ?: to_rtr(device, qp, peer);
	return ret ?: to_rts(qp);
}

static void connect_pair(struct rc_pair *pair)
{
	must(to_init(pair->requester), "INIT");
	must(to_init(pair->responder), "INIT");
	must(to_rtr(pair->device, pair->responder, pair->requester->qp_num),
	     "RTR");
	must(to_rtr(pair->device, pair->requester, pair->responder->qp_num),
	     "RTR");
	must(to_rts(pair->responder), "RTS");
	must(to_rts(pair->requester), "RTS");
}

struct rc_pair *rc_pair_create(struct rc_device *device)
{
	struct rc_pair *pair = calloc(1, sizeof(*pair));

	tap_need(pair, "no memory");
	pair->device = device;
	pair->channel = ibv_create_comp_channel(device->context);
	tap_need(pair->channel, "ibv_create_comp_channel");
	pair->cq = ibv_create_cq(device->context, QUEUE_DEPTH + 1, NULL,
				 pair->channel, 0);
	pair->responder_cq = ibv_create_cq(device->context, QUEUE_DEPTH + 1,
					   NULL, NULL, 0);
	tap_need(pair->cq && pair->responder_cq, "ibv_create_cq");
	pair->requester = create_qp(device, pair->cq);
	pair->responder = create_qp(device, pair->responder_cq);
	connect_pair(pair);
	return pair;
}

void rc_pair_destroy(struct rc_pair *pair)
{
	int ret = ibv_destroy_qp(pair->requester);

	ret = ret ?: ibv_destroy_qp(pair->responder);
	ret = ret ?: ibv_destroy_cq(pair->cq);
	ret = ret ?: ibv_destroy_cq(pair->responder_cq);
	ret = ret ?: ibv_destroy_comp_channel(pair->channel);
	if (ret)
		tap_bail("a queue could not be destroyed: %s", strerror(ret));
	free(pair);
}

static void drain(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int ret;

	do {
		ret = ibv_poll_cq(cq, 1, &wc);
	} while (ret > 0);
	if (ret < 0)
		tap_bail("ibv_poll_cq: %d", ret);
}

void rc_pair_recover(struct rc_pair *pair)
{
	must(to_reset(pair->requester), "RESET");
	must(to_reset(pair->responder), "RESET");
	drain(pair->cq);
	drain(pair->responder_cq);
	connect_pair(pair);
}

static bool poll_once(struct rc_pair *pair, struct ibv_wc *wc)
{
	int ret = ibv_poll_cq(pair->cq, 1, wc);

	if (ret < 0)
		tap_bail("ibv_poll_cq: %d", ret);
	return ret == 1;
}

/* Poll for a moment; then arm, poll once more, and sleep until the event. */
static void wait_completion(struct rc_pair *pair, struct ibv_wc *wc)
{
	struct ibv_cq *cq;
	void *context;
	int i, ret;

	for (;;) {
		for (i = 0; i < POLLS; i++)
			if (poll_once(pair, wc))
				return;
		ret = ibv_req_notify_cq(pair->cq, 0);
		if (ret)
			tap_bail("ibv_req_notify_cq: %s", strerror(ret));
		if (poll_once(pair, wc))
			return;
		if (ibv_get_cq_event(pair->channel, &cq, &context))
			tap_bail_errno("ibv_get_cq_event");
		ibv_ack_cq_events(cq, 1);
	}
}

/* Its wr_id. */
static uint64_t post(struct rc_pair *pair, const struct rc_access *access)
{
	struct ibv_sge sge = {
		.addr = access->local,
		.length = access->length,
		.lkey = access->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = ++pair->next_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = access->opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {
			.remote_addr = access->remote,
			.rkey = access->rkey,
		},
	};
	struct ibv_send_wr *bad;
	int ret = ibv_post_send(pair->requester, &wr, &bad);

	if (ret)
		tap_bail("ibv_post_send: %s", strerror(ret));
	return wr.wr_id;
}

void rc_post(struct rc_pair *pair, const struct rc_access *access)
{
	post(pair, access);
}

bool rc_poll(struct rc_pair *pair, enum ibv_wc_status *status)
{
	struct ibv_wc wc;

	if (!poll_once(pair, &wc))
		return false;
	*status = wc.status;
	return true;
}

bool rc_poll_for(struct rc_pair *pair, unsigned int milliseconds,
		 enum ibv_wc_status *status)
{
	while (milliseconds--) {
		if (rc_poll(pair, status))
			return true;
		usleep(1000);
	}
	return false;
}

enum ibv_wc_status rc_execute(struct rc_pair *pair,
			      const struct rc_access *access)
{
	uint64_t id = post(pair, access);
	struct ibv_wc wc;

	wait_completion(pair, &wc);
	if (wc.wr_id != id)
		tap_bail("completion of request %llu came instead of %llu",
			 (unsigned long long)wc.wr_id,
			 (unsigned long long)id);
	return wc.status;
}
