/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver comes and goes while a program runs; and whether all is well after
 * something was not.
 */
#ifndef CARD_H
#define CARD_H

#include <stdbool.h>

#include "rc.h"

/* The functions of the guest's shell. False if they fail. */
bool card_unload(void);
bool card_load(void);
/* A parameter of the driver's module. */
void card_parameter(const char *name, unsigned int value);

/*
 * Close, unload, load (which resets the card), open. Prints results for @name:
 * every step works. A device that cannot be had again ends the program.
 */
struct rc_device *card_renew(const char *name, struct rc_device *device);

/*
 * Prints a result: a region is registered, moved to another page size under
 * traffic, right, and gone; another is revoked.
 */
void check_works(const char *name, struct rc_device *device);
/* Prints a result: IBV_EVENT_DEVICE_FATAL came (it is waited for), once. */
void check_fatal(const char *name, struct rc_device *device);
/* Prints a result: the device lives, and never failed. */
void check_alive(const char *name, struct rc_device *device);

#endif
