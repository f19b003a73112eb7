/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keys that the card does not take away when it says so: what the audit finds,
 * and that the driver copes.
 */
#ifndef WRONG_KEYS_H
#define WRONG_KEYS_H

#include "rc.h"

/* Fault injection and audit are open. Prints results. */
void wrong_keys(struct rc_device *device);

#endif
