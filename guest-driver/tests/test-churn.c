/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four threads register, use, move, revoke and deregister on the same buffers for
 * 60 s, or for as many as the argument says. All that fails is what a race with a
 * revocation explains, no data are wrong, and nothing is left over. With --endless
 * it is what test-killed kills, and says nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "churn.h"
#include "resources.h"
#include "tap.h"

#define SECONDS		60

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : SECONDS;
	struct resources before, after;
	struct churn_counts counts;
	struct rc_device *device;
	const char *name;

	tap_begin();
	device = rc_open();
	if (argc > 1 && !strcmp(argv[1], "--endless"))
		churn(device, 0);
	if (!seconds)
		tap_bail("how many seconds?");
	name = ibv_get_device_name(device->context->device);
	before = resources_count(name);
	tap_step("%u threads", CHURN_THREADS);
	counts = churn(device, seconds);
	tap_figures("threads=%u seconds=%u registered=%llu refused=%llu accesses=%llu failed=%llu wrong=%llu moved=%llu revoked=%llu raced=%llu other_errors=%llu left=%llu",
		    CHURN_THREADS, seconds,
		    (unsigned long long)counts.registered,
		    (unsigned long long)counts.refused,
		    (unsigned long long)counts.done,
		    (unsigned long long)counts.failed,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)counts.moved,
		    (unsigned long long)counts.revoked,
		    (unsigned long long)counts.raced,
		    (unsigned long long)counts.other_errors,
		    (unsigned long long)counts.left);
	tap_ok(counts.registered && counts.done && counts.moved &&
	       counts.revoked,
	       "churn: regions were registered, used, moved and revoked");
	tap_ok(!counts.wrong, "churn: what was read had been written");
	tap_ok(!counts.other_errors, "churn: no error but of races");
	tap_ok(!counts.left, "churn: no buffer has an importer left, or a pin but those of the race in ib_core");
	after = resources_count(name);
	if (!tap_ok(resources_equal(&before, &after),
		    "churn: the kernel holds what it held before"))
		resources_note("churn", &before, &after);
	check_works("churn", device);
	check_alive("churn", device);
	rc_close(device);
	return tap_end();
}
