/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process with four threads that register, use, move, revoke and deregister is
 * killed at any moment, and again, 30 times or as the argument says. Then the device
 * is taken from its driver under such a process, which has it open and queue pairs
 * at work: the module stays as long as the device is open, the device goes at
 * once, and all works when it has come back.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card.h"
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

static void kill_often(unsigned int rounds)
{
	unsigned int seed = 4, killed = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		int status;
		pid_t child;

		tap_step("kill, round %u", i);
		child = begin();
		usleep(rand_r(&seed) % LONGEST_MS * 1000);
		status = end(child);
		killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	}
	tap_figures("case=killed rounds=%u killed=%u", rounds, killed);
	tap_ok(killed == rounds, "killed: %u times at any moment", rounds);
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

/* @address: of the device on PCI, as sysfs writes it. */
static void take_away(const char *address)
{
	pid_t child = begin();

	tap_step("taken away: a process at work");
	usleep(RUNNING_MS * 1000);
	tap_ok(!card_unload(), "taken away: the module stays while it is used");
	tap_step("taken away: the device from its driver");
	tap_ok(put(DRIVER "unbind", address),
	       "taken away: the driver lets go of a device at work");
	end(child);
	tap_step("taken away: the module to be unloaded");
	tap_ok(card_unload(), "taken away: the module goes once nobody has it open");
	tap_step("taken away: the driver to come back");
	if (!tap_ok(card_load(), "taken away: the driver comes back"))
		tap_bail("there is no going on without it");
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
	kill_often(rounds);
	check_works("killed", device);
	check_alive("killed", device);
	rc_close(device);

	take_away(address);
	device = rc_open();
	check_works("taken away", device);
	rc_close(device);
	free(folder);
	return tap_end();
}
