/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#include <linux/udmabuf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events.h"
#include "foreign.h"
#include "memory.h"
#include "setup.h"
#include "tap.h"
#include "transfer.h"

#define SIZE		(16 * MIB)
#define IOVA		0x6f0000000000ull

#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB	(21 << 26)
#endif

/* udmabuf wants a memfd that cannot shrink. */
static int udmabuf(unsigned int memfd_flags)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC,
					 .size = SIZE };
	int memfd = memfd_create("qrdma", MFD_CLOEXEC | MFD_ALLOW_SEALING |
				 memfd_flags);
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
	int fd = -1;

	if (memfd >= 0 && device >= 0 && !ftruncate(memfd, SIZE) &&
	    !fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK)) {
		create.memfd = memfd;
		fd = ioctl(device, UDMABUF_CREATE, &create);
	}
	if (memfd >= 0)
		close(memfd);
	if (device >= 0)
		close(device);
	return fd;
}

static int udmabuf_pages(void)
{
	return udmabuf(0);
}

static int udmabuf_huge(void)
{
	hugetlb_reserve(SIZE / (2 * MIB));
	return udmabuf(MFD_HUGETLB | MFD_HUGE_2MB);
}

static int system_heap(void)
{
	struct dma_heap_allocation_data allocation = {
		.len = SIZE,
		.fd_flags = O_RDWR | O_CLOEXEC,
	};
	int heap = open("/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
	int ret;

	if (heap < 0)
		return -1;
	ret = ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &allocation);
	close(heap);
	return ret ? -1 : (int)allocation.fd;
}

static void sync_cpu(int fd, uint64_t flags)
{
	struct dma_buf_sync sync = { .flags = flags };

	if (ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync))
		tap_bail_errno("DMA_BUF_IOCTL_SYNC");
}

struct kind {
	const char *name;
	int (*create)(void);
};

static void data(const char *name, struct rc_device *device, int fd,
		 const struct ibv_mr *mr)
{
	struct transfer *transfer = transfer_create(device);
	void *memory = dmabuf_map(fd, SIZE);
	uint64_t wrong_write, wrong_read;
	bool written, read;

	written = transfer_write(transfer, mr->rkey, IOVA, SIZE, 0x51);
	sync_cpu(fd, DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW);
	wrong_write = pattern_check(memory, SIZE, 0x51);
	pattern_fill(memory, SIZE, 0x52);
	sync_cpu(fd, DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW);
	read = transfer_read(transfer, mr->rkey, IOVA, SIZE, 0x52,
			     &wrong_read);
	munmap(memory, SIZE);
	transfer_destroy(transfer);
	tap_figures("case=%s written=%llu read=%llu wrong=%llu", name, SIZE,
		    SIZE, (unsigned long long)(wrong_write + wrong_read));
	tap_ok(written && read && !wrong_write && !wrong_read,
	       "%s: %llu bytes by RDMA write and read are right", name, SIZE);
}

static void run(struct rc_device *device, const struct kind *kind,
		bool dynamic)
{
	struct event_list events;
	struct event event;
	struct ibv_mr *mr;
	char name[60];
	int fd;

	snprintf(name, sizeof(name), "%s-%s", kind->name,
		 dynamic ? "dynamic" : "pinned");
	tap_step("%s", name);
	fd = kind->create();
	if (fd < 0) {
		tap_skip("the kernel has none", "%s: %s", name,
			 strerror(errno));
		return;
	}
	events_clear();
	mr = register_dmabuf(device, fd, 0, SIZE, IOVA, dynamic);
	if (!tap_ok(mr, "%s: registered", name)) {
		close(fd);
		return;
	}
	events = events_read();
	if (events_find(&events, "qrdma_mr_registered", mr->rkey, &event))
		tap_figures("case=%s page_size=%llu entries=%llu level=%lld",
			    name, 1ull << event_field(&event, "log_page_size"),
			    (unsigned long long)event_field(&event, "blocks"),
			    (long long)event_field(&event, "level"));
	events_free(&events);
	data(name, device, fd, mr);
	tap_ok(!ibv_dereg_mr(mr), "%s: deregistered", name);
	close(fd);
}

void foreign_exporters(struct rc_device *device)
{
	static const struct kind kinds[] = {
		{ "udmabuf", udmabuf_pages },
		{ "udmabuf-hugetlb", udmabuf_huge },
		{ "system-heap", system_heap },
	};
	unsigned int i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		run(device, &kinds[i], true);
		run(device, &kinds[i], false);
	}
}
