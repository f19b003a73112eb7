/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exporters that nobody here wrote: udmabuf over memfds, and the system heap.
 * They neither move nor revoke, so what is shown is registration and data.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "rc.h"

/* Prints a result for each. */
void foreign_exporters(struct rc_device *device);

#endif
