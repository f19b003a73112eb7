/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Arguments that verbs must refuse, with the errno that says why, and without
 * leaving anything behind: the device works afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "setup.h"
#include "stamp.h"
#include "tap.h"
#include "transfer.h"

#define IOVA	0x7f0000000000ull

/* @error 0: any. */
static void refused(const char *name, bool made, int error)
{
	int found = errno;

	if (!tap_ok(!made && (error ? found == error : found != 0),
		    "refused: %s: %s", name, error ? strerror(error) : "any"))
		tap_note("it gave %s", made ? "success" : strerror(found));
}

/* ---------------------------------------------------------------- regions */

static void region(struct rc_device *device, const char *name, void *address,
		   uint64_t length, uint64_t iova, int access, int error)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = ibv_reg_mr_iova2(device->pd, address, length, iova, access);
	refused(name, mr, error);
	if (mr)
		ibv_dereg_mr(mr);
}

static void regions(struct rc_device *device)
{
	const uint64_t length = 4 * PAGE;
	char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = mmap(NULL, length, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *fixed = mmap(NULL, length, PROT_READ,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	tap_need(memory != MAP_FAILED && hole != MAP_FAILED &&
		 fixed != MAP_FAILED, "no memory");
	tap_step("regions of user memory");
	region(device, "region of no bytes", memory, 0, IOVA, REGION_ACCESS,
	       EINVAL);
	region(device, "region that wraps", memory, length, -PAGE,
	       REGION_ACCESS, EINVAL);
	region(device, "memory that wraps", (void *)-PAGE, 2 * PAGE, IOVA,
	       REGION_ACCESS, 0);
	region(device, "region of 2^63 bytes", memory, 1ull << 63, IOVA,
	       REGION_ACCESS, 0);
	region(device, "IOVA and memory differ inside a page", memory + 0x234,
	       0x100, IOVA + 0x240, REGION_ACCESS, EINVAL);
	region(device, "memory without access", hole, length, IOVA,
	       REGION_ACCESS, EFAULT);
	region(device, "memory at address 0", NULL, length, IOVA,
	       REGION_ACCESS, EFAULT);
	region(device, "write access to read-only memory", fixed, length, IOVA,
	       REGION_ACCESS, EFAULT);
	region(device, "remote write without local write", memory, length, IOVA,
	       IBV_ACCESS_REMOTE_WRITE, EINVAL);
	region(device, "remote atomic without local write", memory, length,
	       IOVA, IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	region(device, "memory windows", memory, length, IOVA,
	       REGION_ACCESS | IBV_ACCESS_MW_BIND, 0);
	region(device, "zero-based region", memory, length, IOVA,
	       REGION_ACCESS | IBV_ACCESS_ZERO_BASED, 0);
	region(device, "user memory on demand", memory, length, IOVA,
	       REGION_ACCESS | IBV_ACCESS_ON_DEMAND, 0);
	region(device, "unknown access bit", memory, length, IOVA,
	       REGION_ACCESS | 1 << 18, 0);
	munmap(memory, length);
	munmap(hole, length);
	munmap(fixed, length);
}

static void dmabuf(struct rc_device *device, const char *name, int fd,
		   uint64_t offset, uint64_t length, uint64_t iova, int access,
		   int error)
{
	int kind;

	for (kind = 0; kind <= IBV_ACCESS_ON_DEMAND;
	     kind += IBV_ACCESS_ON_DEMAND) {
		struct ibv_mr *mr;
		char title[120];

		snprintf(title, sizeof(title), "%s, %s", name,
			 kind ? "dynamic" : "pinned");
		errno = 0;
		mr = ibv_reg_dmabuf_mr(device->pd, offset, length, iova, fd,
				       access | kind);
		refused(title, mr, error);
		if (mr)
			ibv_dereg_mr(mr);
	}
}

static void dmabufs(struct rc_device *device)
{
	const uint64_t size = 4 * PAGE;
	int fd = exporter_create(size, LAYOUT(4K));
	int file = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct qrdma_exporter_query query;

	tap_step("dma-buf regions");
	dmabuf(device, "no dma-buf", -1, 0, size, IOVA, REGION_ACCESS, EBADF);
	dmabuf(device, "another file", file, 0, size, IOVA, REGION_ACCESS,
	       EINVAL);
	dmabuf(device, "dma-buf region of no bytes", fd, 0, 0, IOVA,
	       REGION_ACCESS, EINVAL);
	dmabuf(device, "longer than the dma-buf", fd, 0, size + 1, IOVA,
	       REGION_ACCESS, EINVAL);
	dmabuf(device, "beyond the dma-buf", fd, PAGE, size, IOVA,
	       REGION_ACCESS, EINVAL);
	dmabuf(device, "offset that wraps", fd, -PAGE, size, IOVA,
	       REGION_ACCESS, EINVAL);
	dmabuf(device, "dma-buf region that wraps", fd, 0, size, -PAGE,
	       REGION_ACCESS, EINVAL);
	dmabuf(device, "IOVA and offset differ inside a page", fd, 0x234, 0x100,
	       IOVA + 0x240, REGION_ACCESS, EINVAL);
	dmabuf(device, "dma-buf: remote write without local write", fd, 0, size,
	       IOVA, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	query = exporter_query(fd);
	tap_ok(!query.attached && !query.pinned && !query.mapped &&
	       query.pins == query.unpins && query.maps == query.unmaps &&
	       !query.order_errors, "refused dma-buf regions leave nothing");
	close(fd);
	close(file);
}

/* ----------------------------------------------------------------- queues */

static void cq(struct rc_device *device, const char *name, int entries,
	       int vector)
{
	struct ibv_cq *cq;

	errno = 0;
	cq = ibv_create_cq(device->context, entries, NULL, NULL, vector);
	refused(name, cq, EINVAL);
	if (cq)
		ibv_destroy_cq(cq);
}

static void qp(struct rc_device *device, const char *name, struct ibv_cq *cq,
	       enum ibv_qp_type type, struct ibv_qp_cap cap, int error)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = type,
		.cap = cap,
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(device->pd, &attr);
	refused(name, qp, error);
	if (qp)
		ibv_destroy_qp(qp);
}

static void queues(struct rc_device *device)
{
	const struct ibv_qp_cap good = { 4, 4, 1, 1, 0 };
	struct ibv_cq *queue = ibv_create_cq(device->context, 16, NULL, NULL,
					     0);
	struct ibv_qp_cap cap;

	tap_need(queue, "ibv_create_cq");
	tap_step("queues");
	cq(device, "completion queue of no entries", 0, 0);
	cq(device, "completion queue of -1 entries", -1, 0);
	cq(device, "completion queue beyond the maximum",
	   device->attr.max_cqe + 1, 0);
	cq(device, "completion vector that is not there", 16,
	   device->context->num_comp_vectors);

	qp(device, "datagrams", queue, IBV_QPT_UD, good, 0);
	qp(device, "unreliable connection", queue, IBV_QPT_UC, good, 0);
	qp(device, "raw packets", queue, IBV_QPT_RAW_PACKET, good, 0);
	qp(device, "unknown type of queue pair", queue, 77, good, 0);
	cap = good;
	cap.max_send_wr = device->attr.max_qp_wr + 1;
	qp(device, "send queue beyond the maximum", queue, IBV_QPT_RC, cap,
	   EINVAL);
	cap = good;
	cap.max_recv_wr = ~0u;
	qp(device, "receive queue of 2^32 - 1 entries", queue, IBV_QPT_RC, cap,
	   EINVAL);
	cap = good;
	cap.max_send_sge = device->attr.max_sge + 1;
	qp(device, "too many segments to send", queue, IBV_QPT_RC, cap, EINVAL);
	cap = good;
	cap.max_recv_sge = ~0u;
	qp(device, "too many segments to receive", queue, IBV_QPT_RC, cap,
	   EINVAL);
	cap = good;
	cap.max_inline_data = 1 << 20;
	qp(device, "too much inline data", queue, IBV_QPT_RC, cap, EINVAL);
	tap_need(!ibv_destroy_cq(queue), "ibv_destroy_cq");
}

static void transition(struct ibv_qp *qp, const char *name,
		       struct ibv_qp_attr attr, int mask)
{
	int ret = ibv_modify_qp(qp, &attr, mask);

	errno = ret;
	refused(name, !ret, EINVAL);
}

static void transitions(struct rc_device *device)
{
	struct rc_pair *pair = rc_pair_create(device);
	struct ibv_qp *qp = pair->requester;

	tap_step("transitions of a queue pair");
	transition(qp, "RTS to INIT",
		   (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT,
					 .port_num = 1 },
		   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   IBV_QP_ACCESS_FLAGS);
	transition(qp, "unknown state",
		   (struct ibv_qp_attr){ .qp_state = 99 }, IBV_QP_STATE);
	ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RESET },
		      IBV_QP_STATE);
	transition(qp, "RESET to RTS",
		   (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
		   IBV_QP_STATE);
	transition(qp, "INIT on port 2",
		   (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT,
					 .port_num = 2 },
		   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		   IBV_QP_ACCESS_FLAGS);
	transition(qp, "INIT with half of its attributes",
		   (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT },
		   IBV_QP_STATE);
	rc_pair_recover(pair);
	tap_ok(ibv_destroy_cq(pair->cq) == EBUSY,
	       "a completion queue in use stays: EBUSY");
	rc_pair_destroy(pair);
}

static void afterwards(struct rc_device *device)
{
	struct transfer *transfer = transfer_create(device);
	struct subject subject = {
		.device = device,
		.size = 16 * PAGE,
		.length = 16 * PAGE,
		.iova = IOVA,
	};
	uint64_t wrong;
	bool read;

	tap_step("afterwards");
	subject_begin(&subject, LAYOUT(4K), 5);
	read = transfer_read(transfer, subject.mr->rkey, IOVA, subject.length,
			     5, &wrong);
	tap_ok(read && !wrong, "afterwards the device works");
	subject_end(&subject);
	transfer_destroy(transfer);
}

int main(void)
{
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	regions(device);
	dmabufs(device);
	queues(device);
	transitions(device);
	afterwards(device);
	rc_close(device);
	return tap_end();
}
