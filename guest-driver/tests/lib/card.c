/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "card.h"
#include "memory.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(2 * MIB)
#define IOVA		0x7c0000000000ull
#define ACCESSES	12
#define SEED		0xca4d
#define SEED_AFTER	0xca4e

static bool shell(const char *commands)
{
	char line[200];

	snprintf(line, sizeof(line), ". /qrdma/functions; %s >/dev/null 2>&1",
		 commands);
	return system(line) == 0;
}

/* The exporter stays: the program has it open. */
bool card_unload(void)
{
	return shell("rmmod qrdma");
}

bool card_load(void)
{
	return shell("load_card");
}

void card_parameter(const char *name, unsigned int value)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/module/qrdma/parameters/%s", name);
	tap_need(write_number(path, value), "%s", path);
}

struct rc_device *card_renew(const char *name, struct rc_device *device)
{
	bool unloaded, loaded;

	rc_close(device);
	tap_step("%s: the driver to be unloaded", name);
	unloaded = card_unload();
	tap_step("%s: the driver to be loaded", name);
	loaded = unloaded && card_load();
	if (!tap_ok(loaded, "%s: the driver %s", name,
		    unloaded ? loaded ? "was unloaded and loaded again"
				      : "does not load again"
			     : "does not unload"))
		tap_bail("%s: there is no going on without the driver", name);
	return rc_open();
}

static bool works_dynamic(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
		.dynamic = true,
	};
	struct traffic_counts counts;
	struct traffic *traffic;
	uint64_t wrong;

	subject_begin(&subject, LAYOUT(4K), SEED);
	traffic = traffic_start(device, subject.region, 81);
	traffic_wait(traffic, ACCESSES);
	if (exporter_move(subject.fd, LAYOUT(2M), 0, 0))
		tap_bail("the exporter does not move");
	traffic_wait(traffic, ACCESSES);
	counts = traffic_stop(traffic);
	wrong = subject_check(&subject);
	subject_end(&subject);
	return counts.right && !counts.refused && !counts.wrong && !wrong;
}

static bool works_pinned(struct rc_device *device)
{
	struct subject subject = {
		.device = device,
		.size = SIZE,
		.length = SIZE,
		.iova = IOVA,
	};
	struct traffic_counts counts;
	struct traffic *traffic;
	uint64_t wrong;

	subject_begin(&subject, LAYOUT(64K), SEED);
	traffic = traffic_start(device, subject.region, 82);
	traffic_wait(traffic, ACCESSES);
	if (exporter_revoke(subject.fd))
		tap_bail("the exporter does not revoke");
	exporter_stamp(subject.fd, SIZE, SEED_AFTER);
	traffic_expect_refusal(traffic);
	traffic_wait_refused(traffic, 2);
	counts = traffic_stop(traffic);
	wrong = exporter_check(subject.fd, SIZE, SEED_AFTER);
	subject_end(&subject);
	return counts.right && counts.refused && !counts.wrong && !wrong;
}

void check_works(const char *name, struct rc_device *device)
{
	bool dynamic, pinned;

	tap_step("%s: a region to be moved and one to be revoked", name);
	dynamic = works_dynamic(device);
	pinned = works_pinned(device);
	tap_ok(dynamic && pinned, "%s: afterwards regions are %s", name,
	       !dynamic ? "not moved as they should"
			: pinned ? "registered, moved, used, revoked"
				 : "not revoked as they should");
}

void check_fatal(const char *name, struct rc_device *device)
{
	tap_step("%s: IBV_EVENT_DEVICE_FATAL", name);
	tap_ok(rc_wait_fatal(device) == 1,
	       "%s: IBV_EVENT_DEVICE_FATAL came once", name);
}

void check_alive(const char *name, struct rc_device *device)
{
	tap_ok(!rc_fatal_events(device), "%s: the device lives", name);
}
