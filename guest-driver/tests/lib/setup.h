/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A buffer of the exporter's with a region on it: what most flows are about.
 */
#ifndef SETUP_H
#define SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "blocks.h"
#include "events.h"
#include "exporter.h"
#include "rc.h"
#include "traffic.h"

struct subject {
	struct rc_device *device;
	int fd;				/* the dma-buf */
	uint64_t size;			/* of the dma-buf */
	uint64_t offset;		/* of the region in it; whole pages */
	uint64_t length;		/* of the region; whole pages */
	uint64_t iova;
	bool dynamic;			/* on demand; otherwise pinned and revocable */
	struct ibv_mr *mr;
	struct region *region;
};

/* The verb. NULL and errno. */
struct ibv_mr *register_dmabuf(struct rc_device *device, int fd,
			       uint64_t offset, uint64_t length, uint64_t iova,
			       bool dynamic);

/*
 * Buffer, stamps and registration. @subject: device, size, offset, length, iova,
 * dynamic are given.
 */
void subject_begin(struct subject *subject, struct layout layout,
		   uint64_t seed);
/* Deregisters (unless mr is NULL) and closes the buffer. */
void subject_end(struct subject *subject);
/* Wrong pages as the CPU sees them now, against what the traffic wrote. */
uint64_t subject_check(const struct subject *subject);
/* The page size that the region should have now. */
unsigned int subject_log_page_size(const struct subject *subject);

#endif
