/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's registers, reached through BAR 0 in sysfs. The mapping stays good
 * when the driver is unloaded and loaded again.
 */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

/* False if BAR 0 cannot be mapped, or is not our card's. */
bool registers_open(const struct rc_device *device);
uint32_t register_read(uint32_t offset);
void register_write(uint32_t offset, uint32_t value);
uint64_t register_read64(uint32_t offset);
void register_write64(uint32_t offset, uint64_t value);

#endif
