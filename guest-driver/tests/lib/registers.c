/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qrdma_hw.h"
#include "registers.h"

#define WINDOW 4096

static volatile char *registers;

static volatile char *map(const struct rc_device *device)
{
	char path[PATH_MAX];
	void *bar;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", device->pci,
		 QRDMA_BAR_REGISTERS);
	fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	bar = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return bar == MAP_FAILED ? NULL : bar;
}

bool registers_open(const struct rc_device *device)
{
	if (!registers)
		registers = map(device);
	return registers && register_read(QRDMA_REG_ID) == QRDMA_ID;
}

uint32_t register_read(uint32_t offset)
{
	return *(volatile uint32_t *)(registers + offset);
}

void register_write(uint32_t offset, uint32_t value)
{
	*(volatile uint32_t *)(registers + offset) = value;
}

uint64_t register_read64(uint32_t offset)
{
	return *(volatile uint64_t *)(registers + offset);
}

void register_write64(uint32_t offset, uint64_t value)
{
	*(volatile uint64_t *)(registers + offset) = value;
}
