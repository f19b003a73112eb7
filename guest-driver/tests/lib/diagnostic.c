/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diagnostic.h"
#include "qrdma_hw.h"

#define WINDOW 4096

static volatile uint32_t *registers;

bool diagnostic_open(const struct rc_device *device)
{
	char path[PATH_MAX];
	void *bar;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", device->pci,
		 QRDMA_BAR_REGISTERS);
	fd = open(path, O_RDWR | O_SYNC | O_CLOEXEC);
	if (fd < 0)
		return false;
	bar = mmap(NULL, WINDOW, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (bar == MAP_FAILED)
		return false;
	registers = bar;
	return registers[QRDMA_REG_ID / 4] == QRDMA_ID &&
	       registers[QRDMA_REG_DIAGNOSTIC_CAPS / 4] &
	       QRDMA_DIAGNOSTIC_UMR_FAIL;
}

void diagnostic_refuse(uint32_t pass, uint32_t refuse)
{
	registers[QRDMA_REG_DIAGNOSTIC_UMR_FAIL / 4] = refuse << 16 | pass;
}

bool diagnostic_spent(void)
{
	return !registers[QRDMA_REG_DIAGNOSTIC_UMR_FAIL / 4];
}
