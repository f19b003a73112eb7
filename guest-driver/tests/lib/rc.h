/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device under test, and pairs of RC queue pairs that are connected to each
 * other on it.
 */
#ifndef RC_H
#define RC_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define REGION_ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | \
		       IBV_ACCESS_REMOTE_WRITE)

struct rc_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	int gid_index;
	union ibv_gid gid;
	char pci[300];			/* folder of the PCI device in sysfs */

	/* Asynchronous events, counted by a thread. */
	pthread_t thread;
	int stop;			/* event file that ends it */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t access_errors;		/* IBV_EVENT_QP_ACCESS_ERR */
	uint64_t fatal_events;		/* IBV_EVENT_DEVICE_FATAL */
	uint64_t other_events;
};

/*
 * Opens the device that QRDMA_DEVICE (environment) names, or the first one whose
 * name begins with qrdma, or the only one; brings its net device up. Bails out
 * when there is none.
 */
struct rc_device *rc_open(void);
/* Every object of the caller's must be gone: bails out if something is left. */
void rc_close(struct rc_device *device);
uint64_t rc_access_errors(struct rc_device *device);
/* Waits until access_errors is at least @count. */
void rc_wait_access_errors(struct rc_device *device, uint64_t count);
uint64_t rc_fatal_events(struct rc_device *device);
/* Waits for the first one; their number. */
uint64_t rc_wait_fatal(struct rc_device *device);
uint64_t rc_other_events(struct rc_device *device);

/* A queue pair in any state, to RTS with @peer. 0, or what the verb says. */
int rc_connect(struct rc_device *device, struct ibv_qp *qp, uint32_t peer);

struct rc_pair {
	struct rc_device *device;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;		/* of the requester */
	struct ibv_cq *responder_cq;
	struct ibv_qp *requester;
	struct ibv_qp *responder;
	uint64_t next_id;
};

/* Connected, and the responder allows reads and writes. Bails out on errors. */
struct rc_pair *rc_pair_create(struct rc_device *device);
void rc_pair_destroy(struct rc_pair *pair);
/* After an error: both queue pairs through RESET, and connected again. */
void rc_pair_recover(struct rc_pair *pair);

struct rc_access {
	enum ibv_wr_opcode opcode;	/* RDMA_WRITE, RDMA_READ */
	uint64_t local;
	uint32_t lkey;
	uint64_t remote;
	uint32_t rkey;
	uint32_t length;
};

/* A signaled work request; its completion is fetched by rc_poll(). */
void rc_post(struct rc_pair *pair, const struct rc_access *access);
/* The next completion, if there is one. */
bool rc_poll(struct rc_pair *pair, enum ibv_wc_status *status);
/* The same within @milliseconds; the CQ is polled, not waited for. */
bool rc_poll_for(struct rc_pair *pair, unsigned int milliseconds,
		 enum ibv_wc_status *status);
/* One work request and its completion. Does not recover after an error. */
enum ibv_wc_status rc_execute(struct rc_pair *pair,
			      const struct rc_access *access);

/*
 * 0, or what the verb says in errno. Bails out if ibv_reg_*() returns neither a
 * region nor an errno.
 */
int rc_errno(const void *object);

#endif
