// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rings that the driver must refuse: geometry and memory that do not agree, to
 * the page. The provider never asks for such rings, so the requests are written
 * to the uverbs device by hand. Afterwards good rings work, and stay good when
 * their owner takes the memory away.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qrdma_hw.h"
#include "../kernel/uapi/qrdma-abi.h"
#include "tap.h"

#define PAGE	4096ull

struct uverbs {
	int fd;
	uint32_t pd;
	uint32_t cq;
	char *memory;			/* zeroed, of MEMORY bytes */
};

#define MEMORY	(2048 * PAGE)

/* ------------------------------------------------------------- requests */

struct context_request {
	struct ib_uverbs_cmd_hdr header;
	struct ib_uverbs_get_context core;
};

struct context_response {
	struct ib_uverbs_get_context_resp core;
	struct qrdma_ucontext_response driver;
};

struct pd_request {
	struct ib_uverbs_cmd_hdr header;
	struct ib_uverbs_alloc_pd core;
};

struct pd_response {
	struct ib_uverbs_alloc_pd_resp core;
	struct qrdma_pd_response driver;
};

struct cq_destroy_request {
	struct ib_uverbs_cmd_hdr header;
	struct ib_uverbs_destroy_cq core;
};

struct qp_request {
	struct ib_uverbs_cmd_hdr header;
	struct ib_uverbs_create_qp core;
	struct qrdma_create_qp_request driver;
};

struct qp_response {
	struct ib_uverbs_create_qp_resp core;
	struct qrdma_create_qp_response driver;
};

struct qp_destroy_request {
	struct ib_uverbs_cmd_hdr header;
	struct ib_uverbs_destroy_qp core;
};

/* 0 or an errno. All requests begin with a header. */
static int request(struct uverbs *uverbs, uint32_t command, void *in,
		   size_t in_size, size_t out_size)
{
	struct ib_uverbs_cmd_hdr *header = in;

	header->command = command;
	header->in_words = in_size / 4;
	header->out_words = out_size / 4;
	return write(uverbs->fd, in, in_size) == (ssize_t)in_size ? 0 : errno;
}

/* The kernel makes user CQs of such drivers through its ioctl only. */
static struct ib_uverbs_attr attribute(uint16_t id, uint16_t length,
				       uint64_t data)
{
	return (struct ib_uverbs_attr) {
		.attr_id = id,
		.len = length,
		.flags = UVERBS_ATTR_F_MANDATORY,
		.data = data,
	};
}

static int create_cq(struct uverbs *uverbs, uint32_t cqe,
		     const struct qrdma_create_cq_request *driver,
		     uint32_t *handle)
{
	struct qrdma_create_cq_response response = { 0 };
	uint32_t made = 0;
	struct {
		struct ib_uverbs_ioctl_hdr header;
		struct ib_uverbs_attr attributes[7];
	} in = {
		.header = {
			.length = sizeof(in),
			.object_id = UVERBS_OBJECT_CQ,
			.method_id = UVERBS_METHOD_CQ_CREATE,
			.num_attrs = 7,
			.driver_id = RDMA_DRIVER_UNKNOWN,
		},
		.attributes = {
			attribute(UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0),
			attribute(UVERBS_ATTR_CREATE_CQ_CQE, sizeof(cqe), cqe),
			attribute(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 0),
			attribute(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0),
			attribute(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4,
				  (uintptr_t)&made),
			attribute(UVERBS_ATTR_UHW_IN, sizeof(*driver),
				  (uintptr_t)driver),
			attribute(UVERBS_ATTR_UHW_OUT, sizeof(response),
				  (uintptr_t)&response),
		},
	};

	if (ioctl(uverbs->fd, RDMA_VERBS_IOCTL, &in))
		return errno;
	*handle = in.attributes[0].data;
	return 0;
}

static int destroy_cq(struct uverbs *uverbs, uint32_t handle)
{
	struct ib_uverbs_destroy_cq_resp out;
	struct cq_destroy_request in = {
		.core = { .response = (uintptr_t)&out, .cq_handle = handle },
	};

	return request(uverbs, IB_USER_VERBS_CMD_DESTROY_CQ, &in, sizeof(in),
		       sizeof(out));
}

static int create_qp(struct uverbs *uverbs,
		     const struct qrdma_create_qp_request *driver,
		     uint32_t max_recv_wr, uint32_t *handle)
{
	struct qp_response out = { 0 };
	struct qp_request in = {
		.core = {
			.response = (uintptr_t)&out,
			.pd_handle = uverbs->pd,
			.send_cq_handle = uverbs->cq,
			.recv_cq_handle = uverbs->cq,
			.max_send_wr = 1,
			.max_send_sge = 1,
			.max_recv_wr = max_recv_wr,
			.max_recv_sge = 1,
			.qp_type = 2,	/* RC */
		},
		.driver = *driver,
	};
	int error = request(uverbs, IB_USER_VERBS_CMD_CREATE_QP, &in,
			    sizeof(in), sizeof(out));

	if (!error)
		*handle = out.core.qp_handle;
	return error;
}

static int destroy_qp(struct uverbs *uverbs, uint32_t handle)
{
	struct ib_uverbs_destroy_qp_resp out;
	struct qp_destroy_request in = {
		.core = { .response = (uintptr_t)&out, .qp_handle = handle },
	};

	return request(uverbs, IB_USER_VERBS_CMD_DESTROY_QP, &in, sizeof(in),
		       sizeof(out));
}

/* ---------------------------------------------------------------- uverbs */

/* The uverbs node of the first device that the driver runs. */
static int open_device(void)
{
	DIR *folder = opendir("/sys/class/infiniband_verbs");
	struct dirent *entry;
	int fd = -1;

	while (folder && fd < 0 && (entry = readdir(folder))) {
		char path[600], name[64] = "";
		FILE *file;

		snprintf(path, sizeof(path),
			 "/sys/class/infiniband_verbs/%s/ibdev", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) &&
		    !strncmp(name, "qrdma", 5)) {
			snprintf(path, sizeof(path), "/dev/infiniband/%s",
				 entry->d_name);
			fd = open(path, O_RDWR | O_CLOEXEC);
		}
		fclose(file);
	}
	if (folder)
		closedir(folder);
	return fd;
}

static void begin(struct uverbs *uverbs)
{
	struct context_response context;
	struct context_request context_in = {
		.core = { .response = (uintptr_t)&context },
	};
	struct pd_response pd;
	struct pd_request pd_in = { .core = { .response = (uintptr_t)&pd } };

	uverbs->fd = open_device();
	tap_need(uverbs->fd >= 0, "no uverbs device of the card's opens");
	uverbs->memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
			       0);
	tap_need(uverbs->memory != MAP_FAILED, "no memory");
	errno = request(uverbs, IB_USER_VERBS_CMD_GET_CONTEXT, &context_in,
			sizeof(context_in), sizeof(context));
	tap_need(!errno, "no context");
	errno = request(uverbs, IB_USER_VERBS_CMD_ALLOC_PD, &pd_in,
			sizeof(pd_in), sizeof(pd));
	tap_need(!errno, "no protection domain");
	uverbs->pd = pd.core.pd_handle;
}

static void expect(int found, int wanted, const char *name)
{
	if (!tap_ok(found == wanted, "%s: %s", name,
		    wanted ? strerror(wanted) : "made"))
		tap_note("it gave %s", found ? strerror(found) : "success");
}

/* --------------------------------------------------------------------- CQs */

static void cqs(struct uverbs *uverbs)
{
	const uint64_t base = (uintptr_t)uverbs->memory;
	const struct {
		const char *name;
		uint32_t cqe;
		struct qrdma_create_cq_request driver;
		int error;
	} cases[] = {
		{ "CQ: 128 entries in 2 pages", 128,
		  { base, 2 * PAGE, 7, 0 }, 0 },
		{ "CQ: 2 pages of entries, memory of 5", 128,
		  { base, 5 * PAGE, 7, 0 }, EINVAL },
		{ "CQ: 2 pages of entries, memory of 1", 128,
		  { base, PAGE, 7, 0 }, EINVAL },
		{ "CQ: no memory", 1, { base, 0, 0, 0 }, EINVAL },
		{ "CQ: less than a page", 1, { base, 64, 0, 0 }, EINVAL },
		{ "CQ: between the pages", 128,
		  { base + 64, 2 * PAGE, 7, 0 }, EINVAL },
		{ "CQ: more asked for than the ring has", 129,
		  { base, 2 * PAGE, 7, 0 }, EINVAL },
		{ "CQ: one power of two too many", 1,
		  { base, 2048 * PAGE, 17, 0 }, EINVAL },
		{ "CQ: a shift that wraps", 1, { base, PAGE, 64, 0 }, EINVAL },
		{ "CQ: a shift of 2^32 - 1", 1,
		  { base, PAGE, 0xffffffff, 0 }, EINVAL },
		{ "CQ: reserved field", 128,
		  { base, 2 * PAGE, 7, 1 }, EINVAL },
		{ "CQ: address 0", 128, { 0, 2 * PAGE, 7, 0 }, EFAULT },
		{ "CQ: 65536 entries in 1024 pages, whatever they are", 65536,
		  { base, 1024 * PAGE, 16, 0 }, 0 },
		{ NULL }
	}, *test;
	uint32_t handle;

	tap_step("CQs");
	for (test = cases; test->name; test++) {
		int error = create_cq(uverbs, test->cqe, &test->driver,
				      &handle);

		expect(error, test->error, test->name);
		if (!error)
			tap_need(!destroy_cq(uverbs, handle),
				 "CQ cannot be destroyed");
	}
}

/* --------------------------------------------------------------------- QPs */

#define BAD_QPS	10

static void qps(struct uverbs *uverbs)
{
	const uint64_t send = (uintptr_t)uverbs->memory;
	const uint64_t receive = send + 64 * PAGE;
	const struct qrdma_create_qp_request good = {
		.send_address = send,
		.send_length = 2 * PAGE,
		.send_log_entries = 6,
		.send_log_stride = 7,
		.receive_address = receive,
		.receive_length = PAGE,
		.receive_log_entries = 7,
		.receive_log_stride = 5,
	};
	struct qrdma_create_qp_request bad[BAD_QPS];
	static const char *const names[BAD_QPS] = {
		"QP: send memory of 5 pages for 2",
		"QP: send memory of 1 page for 2",
		"QP: send stride of 64 bytes",
		"QP: send stride of 1024 bytes",
		"QP: send stride of 2^255 bytes",
		"QP: 2^17 send entries",
		"QP: receive memory of 2 pages for 1",
		"QP: receive stride of 16 bytes",
		"QP: receive ring off its page",
		"QP: reserved field",
	};
	struct qrdma_create_qp_request none = good;
	uint32_t handle;
	int error;

	for (size_t i = 0; i < BAD_QPS; i++)
		bad[i] = good;
	bad[0].send_length = 5 * PAGE;
	bad[1].send_length = PAGE;
	bad[2].send_log_stride = 6;
	bad[3].send_log_stride = 10;
	bad[4].send_log_stride = 255;
	bad[5].send_log_entries = 17;
	bad[6].receive_length = 2 * PAGE;
	bad[7].receive_log_stride = 4;
	bad[8].receive_address += 8;
	bad[9].reserved = 1;

	tap_step("QPs");
	for (size_t i = 0; i < BAD_QPS; i++)
		expect(create_qp(uverbs, &bad[i], 1, &handle), EINVAL,
		       names[i]);

	none.receive_address = 0;
	none.receive_length = 0;
	none.receive_log_entries = 0;
	none.receive_log_stride = 0;
	expect(create_qp(uverbs, &none, 1, &handle), EINVAL,
	       "QP: receives but has no receive ring");
	error = create_qp(uverbs, &none, 0, &handle);
	expect(error, 0, "QP: without a receive queue");
	if (!error)
		tap_need(!destroy_qp(uverbs, handle),
			 "QP cannot be destroyed");
	error = create_qp(uverbs, &good, 1, &handle);
	expect(error, 0, "QP: with good rings");
	if (!error)
		tap_need(!destroy_qp(uverbs, handle),
			 "QP cannot be destroyed");
}

/* The rings are pinned by their queues: the owner may unmap them. */
static void unmap(struct uverbs *uverbs)
{
	const struct qrdma_create_cq_request driver = {
		.ring_address = (uintptr_t)uverbs->memory,
		.ring_length = 16 * PAGE,
		.log_entries = 10,
	};
	uint32_t handle;

	tap_step("memory of a live ring goes");
	errno = create_cq(uverbs, 1024, &driver, &handle);
	tap_need(!errno, "no CQ");
	tap_need(!munmap(uverbs->memory, MEMORY), "memory stays mapped");
	expect(destroy_cq(uverbs, handle), 0,
	       "CQ whose memory was unmapped goes");
}

int main(void)
{
	struct uverbs uverbs = { 0 };
	struct qrdma_create_cq_request driver = { .log_entries = 6 };

	tap_begin();
	begin(&uverbs);
	cqs(&uverbs);

	driver.ring_address = (uintptr_t)uverbs.memory + MEMORY - PAGE;
	driver.ring_length = PAGE;
	errno = create_cq(&uverbs, 64, &driver, &uverbs.cq);
	tap_need(!errno, "no CQ");
	qps(&uverbs);
	unmap(&uverbs);
	close(uverbs.fd);
	return tap_end();
}
