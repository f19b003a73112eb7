/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/vfio.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "tap.h"
#include "vfio.h"

#define DEVICES		"/sys/bus/pci/devices"
#define SHARED_MEMORY	"0x1af4", "0x1110"

/*
 * Newer than the headers of some hosts; the kernel's interface, which does not
 * change.
 */
#ifndef VFIO_DEVICE_BIND_IOMMUFD
struct vfio_device_bind_iommufd {
	__u32 argsz;
	__u32 flags;
	__s32 iommufd;
	__u32 out_devid;
};

struct vfio_device_attach_iommufd_pt {
	__u32 argsz;
	__u32 flags;
	__u32 pt_id;
};

#define VFIO_DEVICE_BIND_IOMMUFD	_IO(VFIO_TYPE, VFIO_BASE + 18)
#define VFIO_DEVICE_ATTACH_IOMMUFD_PT	_IO(VFIO_TYPE, VFIO_BASE + 19)
#endif

#ifndef VFIO_DEVICE_FEATURE_DMA_BUF
#define VFIO_DEVICE_FEATURE_DMA_BUF	11

struct vfio_region_dma_range {
	__u64 offset;
	__u64 length;
};

struct vfio_device_feature_dma_buf {
	__u32 region_index;
	__u32 open_flags;
	__u32 flags;
	__u32 nr_ranges;
	struct vfio_region_dma_range dma_ranges[];
};
#endif

struct ioas_alloc {
	__u32 size;
	__u32 flags;
	__u32 out_ioas_id;
};

#define IOAS_ALLOC	_IO(';', 0x81)

/* ----------------------------------------------------------------- sysfs */

static bool file_says(const char *address, const char *file, const char *text)
{
	char path[PATH_MAX], line[64] = "";
	FILE *stream;

	snprintf(path, sizeof(path), DEVICES "/%s/%s", address, file);
	stream = fopen(path, "re");
	if (!stream)
		return false;
	if (!fgets(line, sizeof(line), stream))
		line[0] = '\0';
	fclose(stream);
	return !strncmp(line, text, strlen(text));
}

static bool is_device(const char *address, const char *vendor,
		      const char *device)
{
	return file_says(address, "vendor", vendor) &&
	       file_says(address, "device", device);
}

static void find_device(struct vfio_bar *bar)
{
	DIR *folder = opendir(DEVICES);
	struct dirent *entry;

	tap_need(folder, DEVICES);
	while (!bar->address[0] && (entry = readdir(folder)))
		if (strlen(entry->d_name) < sizeof(bar->address) &&
		    is_device(entry->d_name, SHARED_MEMORY))
			strcpy(bar->address, entry->d_name);
	closedir(folder);
	if (!bar->address[0])
		tap_bail("no ivshmem-plain device: this flow wants a machine with one behind an IOMMU");
}

static void put(const char *path, const char *text)
{
	tap_need(write_text(path, text), "%s", path);
}

static void bind_driver(const struct vfio_bar *bar)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), DEVICES "/%s/driver", bar->address);
	if (!access(path, F_OK))
		return;
	snprintf(path, sizeof(path), DEVICES "/%s/driver_override",
		 bar->address);
	put(path, "vfio-pci");
	put("/sys/bus/pci/drivers_probe", bar->address);
}

static int open_character_device(const struct vfio_bar *bar)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder;
	int fd = -1;

	snprintf(path, sizeof(path), DEVICES "/%s/vfio-dev", bar->address);
	folder = opendir(path);
	tap_need(folder, "%s (is there an IOMMU?)", path);
	while (fd < 0 && (entry = readdir(folder))) {
		if (strncmp(entry->d_name, "vfio", 4))
			continue;
		snprintf(path, sizeof(path), "/dev/vfio/devices/%s",
			 entry->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
		tap_need(fd >= 0, "%s", path);
	}
	closedir(folder);
	tap_need(fd >= 0, "vfio-pci has no character device");
	return fd;
}

/* ------------------------------------------------------------------ vfio */

static void attach_iommu(struct vfio_bar *bar)
{
	struct vfio_device_bind_iommufd bind = { .argsz = sizeof(bind) };
	struct ioas_alloc alloc = { .size = sizeof(alloc) };
	struct vfio_device_attach_iommufd_pt attach = {
		.argsz = sizeof(attach),
	};

	bar->iommufd = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	tap_need(bar->iommufd >= 0, "/dev/iommu");
	bind.iommufd = bar->iommufd;
	tap_need(!ioctl(bar->device, VFIO_DEVICE_BIND_IOMMUFD, &bind),
		 "VFIO_DEVICE_BIND_IOMMUFD");
	tap_need(!ioctl(bar->iommufd, IOAS_ALLOC, &alloc), "IOMMU_IOAS_ALLOC");
	attach.pt_id = alloc.out_ioas_id;
	tap_need(!ioctl(bar->device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &attach),
		 "VFIO_DEVICE_ATTACH_IOMMUFD_PT");
}

static void map_bar(struct vfio_bar *bar)
{
	struct vfio_region_info info = {
		.argsz = sizeof(info),
		.index = VFIO_PCI_BAR2_REGION_INDEX,
	};

	tap_need(!ioctl(bar->device, VFIO_DEVICE_GET_REGION_INFO, &info),
		 "VFIO_DEVICE_GET_REGION_INFO");
	bar->size = info.size;
	bar->memory = mmap(NULL, bar->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   bar->device, info.offset);
	tap_need(bar->memory != MAP_FAILED, "mmap of BAR 2");
}

static void export(struct vfio_bar *bar)
{
	size_t size = sizeof(struct vfio_device_feature) +
		      sizeof(struct vfio_device_feature_dma_buf) +
		      sizeof(struct vfio_region_dma_range);
	struct vfio_device_feature *feature = calloc(1, size);
	struct vfio_device_feature_dma_buf *dma_buf;

	tap_need(feature, "no memory");
	feature->argsz = size;
	feature->flags = VFIO_DEVICE_FEATURE_GET | VFIO_DEVICE_FEATURE_DMA_BUF;
	dma_buf = (void *)feature->data;
	dma_buf->region_index = VFIO_PCI_BAR2_REGION_INDEX;
	dma_buf->open_flags = O_RDWR | O_CLOEXEC;
	dma_buf->nr_ranges = 1;
	dma_buf->dma_ranges[0].length = bar->size;
	bar->fd = ioctl(bar->device, VFIO_DEVICE_FEATURE, feature);
	tap_need(bar->fd >= 0, "VFIO_DEVICE_FEATURE_DMA_BUF");
	free(feature);
}

void vfio_open(struct vfio_bar *bar)
{
	*bar = (struct vfio_bar){};
	find_device(bar);
	bind_driver(bar);
	bar->device = open_character_device(bar);
	attach_iommu(bar);
	map_bar(bar);
	export(bar);
}

void vfio_close(struct vfio_bar *bar)
{
	close(bar->fd);
	munmap(bar->memory, bar->size);
	close(bar->device);
	close(bar->iommufd);
}

int vfio_reset(struct vfio_bar *bar)
{
	return ioctl(bar->device, VFIO_DEVICE_RESET) ? errno : 0;
}
