/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process with four threads that register, use, move, revoke and deregister is
 * killed at any moment, and again, 30 times or as the argument says. Then the driver
 * is unloaded, and the device taken from it, under such a process, which has the
 * device open and queue pairs at work: 3 times, or a tenth of the argument. Both
 * happen at once, and all works when the driver has come back, also while the
 * process is still there.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card.h"
#include "resources.h"
#include "tap.h"

#define ROUNDS		30
/* Of which the first go by before it has opened the device. */
#define LONGEST_MS	1500
#define RUNNING_MS	3000
#define DRIVER		"/sys/bus/pci/drivers/qrdma/"

static pid_t begin(void)
{
	pid_t child = fork();
	int null;

	tap_need(child >= 0, "fork");
	if (child)
		return child;
	/* What it says when its device goes is nobody's business. */
	null = open("/dev/null", O_WRONLY);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	execl("/tests/test-churn", "test-churn", "--endless", NULL);
	_exit(127);
}

/* How it ended, by itself or killed. */
static int end(pid_t child)
{
	int status = 0;

	kill(child, SIGKILL);
	tap_need(waitpid(child, &status, 0) == child, "waitpid");
	return status;
}

/* What the kernel held for it goes with it. */
static void kill_often(const char *device, unsigned int rounds)
{
	unsigned int seed = 4, killed = 0, left = 0;
	struct resources before = resources_count(device);

	for (unsigned int i = 0; i < rounds; i++) {
		struct resources after;
		int status;
		pid_t child;

		tap_step("kill, round %u", i);
		child = begin();
		usleep(rand_r(&seed) % LONGEST_MS * 1000);
		status = end(child);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
		after = resources_count(device);
		if (!resources_equal(&before, &after)) {
			resources_note("killed", &before, &after);
			left++;
		}
	}
	tap_figures("case=killed rounds=%u killed=%u left=%u", rounds, killed,
		    left);
	tap_ok(killed == rounds, "killed: %u times at any moment", rounds);
	tap_ok(!left, "killed: each time all of its objects went with it");
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written;

	tap_need(fd >= 0, "%s", path);
	written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return written;
}

/*
 * With a process that has the device open and queue pairs at work, which notices,
 * and which is ended only when the driver is back. @unbind: its address on PCI; the
 * device is taken from the driver. Otherwise the driver is unloaded.
 */
static void take_away(const char *name, const char *unbind)
{
	pid_t child = begin();
	bool gone;

	tap_step("%s: a process at work", name);
	usleep(RUNNING_MS * 1000);
	tap_need(!waitpid(child, NULL, WNOHANG), "a process at work");
	tap_step("%s: the driver to let go of a device at work", name);
	gone = unbind ? put(DRIVER "unbind", unbind) : card_unload();
	tap_ok(gone, "%s: the driver lets go of a device at work", name);
	tap_step("%s: the driver to come back", name);
	if (unbind)
		tap_ok(card_unload(), "%s: the module goes", name);
	if (!tap_ok(card_load(), "%s: the driver comes back", name))
		tap_bail("there is no going on without it");
	end(child);
}

static void without_driver(const char *name, const char *unbind)
{
	struct rc_device *device;

	take_away(name, unbind);
	device = rc_open();
	check_works(name, device);
	rc_close(device);
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct rc_device *device;
	char *folder, *address;

	tap_begin();
	device = rc_open();
	folder = realpath(device->pci, NULL);
	tap_need(folder, "%s", device->pci);
	address = basename(folder);
	kill_often(ibv_get_device_name(device->context->device), rounds);
	check_works("killed", device);
	check_alive("killed", device);
	rc_close(device);

	for (unsigned int i = 0; i < (rounds + 9) / 10; i++) {
		without_driver("unload", NULL);
		without_driver("unbind", address);
	}
	free(folder);
	return tap_end();
}
