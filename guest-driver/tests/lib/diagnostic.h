/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's diagnostic window, reached through BAR 0 in sysfs. It is there with
 * the device property diagnostics=on.
 */
#ifndef DIAGNOSTIC_H
#define DIAGNOSTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "rc.h"

/* False if the card has no window or cannot refuse UMRs. */
bool diagnostic_open(const struct rc_device *device);
/* Let @pass UMRs through, then refuse @refuse of them; both below 65536. */
void diagnostic_refuse(uint32_t pass, uint32_t refuse);
/* True once everything that was asked for has happened. */
bool diagnostic_spent(void);

#endif
