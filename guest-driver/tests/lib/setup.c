/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "setup.h"
#include "stamp.h"
#include "tap.h"

struct ibv_mr *register_dmabuf(struct rc_device *device, int fd,
			       uint64_t offset, uint64_t length, uint64_t iova,
			       bool dynamic)
{
	return ibv_reg_dmabuf_mr(device->pd, offset, length, iova, fd,
				 REGION_ACCESS |
				 (dynamic ? IBV_ACCESS_ON_DEMAND : 0));
}

void subject_begin(struct subject *subject, struct layout layout,
		   uint64_t seed)
{
	subject->fd = exporter_create(subject->size, layout);
	exporter_stamp(subject->fd, subject->size, seed);
	subject->mr = register_dmabuf(subject->device, subject->fd,
				      subject->offset, subject->length,
				      subject->iova, subject->dynamic);
	tap_need(subject->mr, "registration of a %s dma-buf region",
		 subject->dynamic ? "dynamic" : "pinned");
	subject->region = region_create(subject->mr, subject->iova,
					subject->length / PAGE,
					subject->offset / PAGE, seed);
}

void subject_end(struct subject *subject)
{
	if (subject->mr) {
		int ret = ibv_dereg_mr(subject->mr);

		if (ret)
			tap_bail("ibv_dereg_mr: %s", strerror(ret));
	}
	region_free(subject->region);
	close(subject->fd);
}

uint64_t subject_check(const struct subject *subject)
{
	char *memory = dmabuf_map(subject->fd, subject->size);
	uint64_t wrong = region_check(subject->region,
				      memory + subject->offset);

	munmap(memory, subject->size);
	return wrong;
}

unsigned int subject_log_page_size(const struct subject *subject)
{
	struct extents extents = {};
	unsigned int log_page_size;

	extents_of_buffer(&extents, subject->fd, subject->offset,
			  subject->length);
	log_page_size = best_log_page_size(&extents, subject->iova);
	extents_free(&extents);
	return log_page_size;
}
