// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory for rings.
 */
#include <errno.h>
#include <sys/mman.h>

#include <util/util.h>

#include "qrdma.h"

/*
 * Allocate at least @length bytes, rounded up to whole pages, zeroed. They stay
 * with the parent when the process forks: the card goes on using them.
 * Returns 0 or an errno value.
 */
int qrdma_alloc_buffer(struct qrdma_buffer *buffer, size_t length)
{
	void *address;
	int ret;

	length = align(length, QRDMA_PAGE_SIZE);
	address = mmap(NULL, length, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (address == MAP_FAILED)
		return errno;

	ret = ibv_dontfork_range(address, length);
	if (ret) {
		munmap(address, length);
		return ret;
	}

	buffer->address = address;
	buffer->length = length;
	return 0;
}

/* Free what qrdma_alloc_buffer() gave; a buffer never allocated is left. */
void qrdma_free_buffer(struct qrdma_buffer *buffer)
{
	if (!buffer->address)
		return;

	ibv_dofork_range(buffer->address, buffer->length);
	munmap(buffer->address, buffer->length);
	buffer->address = NULL;
	buffer->length = 0;
}
