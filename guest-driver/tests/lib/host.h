/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the host does with the machine when a program asks for it
 * (scripts/lib/qrdma/host.py).
 */
#ifndef HOST_H
#define HOST_H

/*
 * "unplug": the guest is asked to let the card go. "plug": a new one, when the old
 * one has gone. "migrate": the machine goes on in another QEMU. Returns when that is
 * done, and bails out when it cannot be. Asks on stdout and is answered there: the
 * program's stdout has to be the session's port.
 */
void host_do(const char *wish);

#endif
