/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A PCI device with a RAM BAR, bound to vfio-pci, whose BAR is a dma-buf. */
#ifndef VFIO_CLIENT_H
#define VFIO_CLIENT_H

#include <stdint.h>

struct vfio_bar {
	char address[32];		/* of the PCI device */
	int device;
	int iommufd;
	uint64_t size;			/* bytes of the BAR */
	void *memory;			/* the CPU's mapping of the whole BAR */
	int fd;				/* the dma-buf: the whole BAR */
};

/*
 * Binds QEMU's shared-memory device to vfio-pci and exports BAR 2. Bails out;
 * says what is missing.
 */
void vfio_open(struct vfio_bar *bar);
void vfio_close(struct vfio_bar *bar);
/* VFIO_DEVICE_RESET: 0 or an errno. */
int vfio_reset(struct vfio_bar *bar);

#endif
