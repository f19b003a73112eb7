/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card is taken away under a process that has it open and queue pairs at work, in
 * each of the ways there are: the driver is unloaded, the device taken from it, reset
 * (FLR), removed by the kernel, pulled out of the machine by the host. The driver lets
 * go at once, comes back, and all works, although the process is still there.
 *
 * All ways, or those that are named.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card.h"
#include "churn.h"
#include "host.h"
#include "memory.h"
#include "tap.h"

#define RUNNING_MS	3000
#define POLL_MS		20
#define DRIVER		"/sys/bus/pci/drivers/qrdma/"
#define DEVICES		"/sys/bus/pci/devices/"
/* What the driver makes last when it takes a device. */
#define HAS_DRIVER	"/infiniband"

static char address[32];		/* of the card on PCI */

static bool put(const char *path, const char *text)
{
	bool written = write_text(path, text);

	if (!written)
		tap_note("%s: %s", path, strerror(errno));
	return written;
}

/* A file of the device's in sysfs. */
static bool put_device(const char *name, const char *text)
{
	char path[100];

	snprintf(path, sizeof(path), DEVICES "%s/%s", address, name);
	return put(path, text);
}

static bool there(const char *file)
{
	char path[100];

	snprintf(path, sizeof(path), DEVICES "%s%s", address, file);
	return !access(path, F_OK);
}

/* The watchdog ends the program if it never comes to that. */
static void wait_until(const char *file, bool is_there)
{
	while (there(file) != is_there)
		usleep(POLL_MS * 1000);
}

/* ------------------------------------------------------------ the ways */

static bool unbind(void)
{
	return put(DRIVER "unbind", address);
}

static bool bind(void)
{
	return put(DRIVER "bind", address);
}

/* The device stays with the driver, dead, until it is bound again. */
static bool reset(void)
{
	return put_device("reset_method", "flr") && put_device("reset", "1");
}

static bool bind_again(void)
{
	return unbind() && bind();
}

static bool remove_device(void)
{
	return put_device("remove", "1") && !there("");
}

static bool rescan(void)
{
	return put("/sys/bus/pci/rescan", "1") && there(HAS_DRIVER);
}

static bool unplug(void)
{
	host_do("unplug");
	tap_step("the guest to let go of the card");
	wait_until("", false);
	return true;
}

static bool plug(void)
{
	host_do("plug");
	tap_step("the guest to find the card");
	wait_until(HAS_DRIVER, true);
	return true;
}

static const struct way {
	const char *name;
	bool (*take)(void);
	bool (*give_back)(void);	/* before the driver is loaded, if it is not */
} ways[] = {
	{ "unload", card_unload, NULL },
	{ "unbind", unbind, card_unload },
	{ "reset", reset, bind_again },
	{ "remove", remove_device, rescan },
	{ "unplug", unplug, plug },
};

#define WAYS	(sizeof(ways) / sizeof(*ways))

static void take_away(const struct way *way)
{
	pid_t child = churn_process();
	bool back;

	tap_step("%s: a process at work", way->name);
	usleep(RUNNING_MS * 1000);
	tap_need(!waitpid(child, NULL, WNOHANG), "a process at work");
	tap_step("%s: the driver to let go of a device at work", way->name);
	tap_ok(way->take(), "%s: the driver lets go of a device at work",
	       way->name);
	tap_step("%s: the driver to come back", way->name);
	back = (!way->give_back || way->give_back()) && card_load();
	if (!tap_ok(back, "%s: the driver comes back", way->name))
		tap_bail("there is no going on without it");
	churn_process_end(child);
}

static void find_address(void)
{
	struct rc_device *device = rc_open();
	char *folder = realpath(device->pci, NULL);

	tap_need(folder, "%s", device->pci);
	snprintf(address, sizeof(address), "%s", basename(folder));
	free(folder);
	rc_close(device);
}

static void go_one_way(const struct way *way)
{
	struct rc_device *device;

	take_away(way);
	device = rc_open();
	check_works(way->name, device);
	check_alive(way->name, device);
	rc_close(device);
}

static const struct way *find_way(const char *name)
{
	for (unsigned int i = 0; i < WAYS; i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	tap_bail("there is no way %s", name);
}

int main(int argc, char **argv)
{
	tap_begin();
	find_address();
	for (int i = 1; i < argc; i++)
		go_one_way(find_way(argv[i]));
	for (unsigned int i = 0; argc == 1 && i < WAYS; i++)
		go_one_way(&ways[i]);
	return tap_end();
}
