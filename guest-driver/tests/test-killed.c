/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process with four threads that register, use, move, revoke and deregister is
 * killed at any moment, and again, 30 times or as the argument says.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "card.h"
#include "churn.h"
#include "resources.h"
#include "tap.h"

#define ROUNDS		30
/* Of which the first go by before it has opened the device. */
#define LONGEST_MS	1500

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
		child = churn_process();
		usleep(rand_r(&seed) % LONGEST_MS * 1000);
		status = churn_process_end(child);
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

int main(int argc, char **argv)
{
	unsigned int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
	struct rc_device *device;

	tap_begin();
	device = rc_open();
	kill_often(ibv_get_device_name(device->context->device), rounds);
	check_works("killed", device);
	check_alive("killed", device);
	rc_close(device);
	return tap_end();
}
