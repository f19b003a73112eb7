/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow "revoke-vfio": a region on the memory of another PCI device, which
 * vfio-pci exports and takes away when that device is reset. The memory is a RAM
 * BAR: it can be stamped after the reset and looked at again.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "revocation.h"
#include "stamp.h"
#include "tap.h"
#include "vfio.h"

#define LENGTH		(16 * MIB)
#define IOVA		0x7c0000000000ull
#define ACCESSES	40
#define SEED		0x5eed
#define SEED_AFTER	0xaf7e4

static void begin(struct subject *subject, const struct vfio_bar *bar)
{
	uint64_t pages = subject->length / PAGE;

	stamp_pages(bar->memory, SEED, 0, pages);
	subject->mr = register_dmabuf(subject->device, bar->fd, 0,
				      subject->length, subject->iova,
				      subject->dynamic);
	tap_need(subject->mr, "registration of a %s region on the BAR",
		 subject->dynamic ? "dynamic" : "pinned");
	subject->region = region_create(subject->mr, subject->iova, pages, 0,
					SEED);
}

static void end(const char *name, struct subject *subject)
{
	int ret;

	tap_step("%s: deregistration", name);
	ret = ibv_dereg_mr(subject->mr);
	tap_ok(!ret, "%s: deregistered", name);
	region_free(subject->region);
}

static void reset(const char *name, struct vfio_bar *bar)
{
	int error;

	tap_step("%s: reset of the exporting device", name);
	error = vfio_reset(bar);
	if (error)
		tap_bail("VFIO_DEVICE_RESET: %s", strerror(error));
}

static void check_memory(const char *name, const struct subject *subject,
			 const struct vfio_bar *bar)
{
	uint64_t pages = subject->length / PAGE;
	uint64_t wrong = stamp_check(bar->memory, SEED_AFTER, 0, pages, NULL);

	tap_figures("case=%s pages=%llu written_after=%llu", name,
		    (unsigned long long)pages, (unsigned long long)wrong);
	tap_ok(!wrong, "%s: no access reached the memory afterwards", name);
}

static struct subject new_subject(struct rc_device *device,
				  const struct vfio_bar *bar, bool dynamic)
{
	return (struct subject) {
		.device = device,
		.length = bar->size < LENGTH ? bar->size : LENGTH,
		.iova = IOVA,
		.dynamic = dynamic,
	};
}

/* @paused: no traffic at the moment of the reset. */
static void pinned(const char *name, struct rc_device *device,
		   struct vfio_bar *bar, bool paused)
{
	struct subject subject = new_subject(device, bar, false);
	uint64_t errors = rc_access_errors(device);
	struct traffic *traffic;

	tap_step("%s: registration", name);
	events_clear();
	begin(&subject, bar);
	traffic = traffic_start(device, subject.region, 81);
	tap_step("%s: traffic", name);
	traffic_wait(traffic, ACCESSES);
	if (paused)
		traffic_pause(traffic);
	reset(name, bar);
	stamp_pages(bar->memory, SEED_AFTER, 0, subject.length / PAGE);
	traffic_expect_refusal(traffic);
	traffic_resume(traffic);
	tap_step("%s: accesses after the reset", name);
	traffic_wait_refused(traffic, REVOCATION_REFUSALS);
	check_refused(name, traffic_stop(traffic));
	check_memory(name, &subject, bar);
	check_reported(name, &subject, errors);
	check_key_is_taken(name, &subject);
	check_no_reregistration(name, &subject);
	/* The exporter calls back at every reset; the driver only once. */
	reset(name, bar);
	check_reported(name, &subject, errors);
	end(name, &subject);
}

/* On demand: absent while the device resets, and there again afterwards. */
static void dynamic(struct rc_device *device, struct vfio_bar *bar)
{
	struct subject subject = new_subject(device, bar, true);
	struct traffic_counts counts;
	struct traffic *traffic;
	uint64_t wrong;

	tap_step("dynamic: registration");
	begin(&subject, bar);
	traffic = traffic_start(device, subject.region, 82);
	traffic_wait(traffic, ACCESSES);
	reset("dynamic", bar);
	tap_step("dynamic: accesses after the reset");
	traffic_wait_right(traffic, ACCESSES);
	counts = traffic_stop(traffic);
	wrong = region_check(subject.region, bar->memory);
	tap_figures("case=dynamic right=%llu refused=%llu wrong=%llu wrong_pages=%llu",
		    (unsigned long long)counts.right,
		    (unsigned long long)counts.refused,
		    (unsigned long long)counts.wrong,
		    (unsigned long long)wrong);
	tap_ok(!counts.wrong && !wrong,
	       "dynamic: right or refused, and right again after the reset");
	end("dynamic", &subject);
}

int main(void)
{
	struct rc_device *device;
	struct vfio_bar bar;

	tap_begin();
	tap_step("the exporting device");
	vfio_open(&bar);
	tap_note("%s exports %llu MiB", bar.address, bar.size / MIB);
	device = rc_open();
	if (!events_begin(revocation_events))
		tap_bail("no tracepoints of the driver");
	pinned("traffic", device, &bar, false);
	pinned("idle", device, &bar, true);
	dynamic(device, &bar);
	vfio_close(&bar);
	rc_close(device);
	return tap_end();
}
