/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A buffer moves while a region on it is being registered and pinned. In Linux 7.3
 * ib_umem_dmabuf_get_pinned_revocable_and_lock() attaches first and takes the
 * reservation lock later. A move in between has the attachment invalidated, which
 * counts as its revocation; ib_core pins it all the same, refuses to map it (EINVAL),
 * and gives up the attachment without the pin, because what is revoked has none. The
 * buffer cannot move any more.
 *
 * Sooner still, it finds an attachment that ib_core does not know yet: harmless, but
 * where there is lockdep, to which ib_umem_dmabuf_unmap_pages() wants to show its lock.
 *
 * The driver is not asked before that is over. So what is tested is that this is all:
 * a lost pin for each EINVAL, no other error, and nothing of the driver's left over.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "card.h"
#include "churn.h"
#include "resources.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define SIZE		(16 * PAGE)
#define IOVA		0x7c0000000000ull
#define ATTEMPTS	3000u

struct race {
	struct rc_device *device;
	pthread_rwlock_t lock;		/* written: the buffer is replaced */
	int fd;
	unsigned int pins_lost;		/* of the buffer's */
	atomic_bool stop;
	uint64_t moved, move_errors;
	uint64_t registered, lost, other_errors, left;
};

static void *move(void *argument)
{
	struct race *race = argument;

	while (!race->stop) {
		int error;

		pthread_rwlock_rdlock(&race->lock);
		error = exporter_move(race->fd, LAYOUT(4K), 0, 0);
		pthread_rwlock_unlock(&race->lock);
		race->moved += !error;
		race->move_errors += error && error != EBUSY;
	}
	return NULL;
}

static bool as_expected(const struct race *race)
{
	struct qrdma_exporter_query query = exporter_query(race->fd);

	return !query.attached && !query.mapped &&
	       query.pinned == race->pins_lost &&
	       query.order_errors == race->pins_lost;
}

static void replace(struct race *race)
{
	pthread_rwlock_wrlock(&race->lock);
	race->left += !as_expected(race);
	close(race->fd);
	race->fd = exporter_create(SIZE, LAYOUT(4K));
	race->pins_lost = 0;
	pthread_rwlock_unlock(&race->lock);
}

static void attempt(struct race *race)
{
	struct ibv_mr *mr;

	errno = 0;
	mr = register_dmabuf(race->device, race->fd, 0, SIZE, IOVA, false);
	if (mr) {
		race->registered++;
		if (ibv_dereg_mr(mr))
			tap_bail("a region does not go");
		return;
	}
	if (errno != EINVAL) {
		if (!race->other_errors++)
			tap_note("registration: %s", strerror(errno));
		return;
	}
	race->lost++;
	race->pins_lost++;
	replace(race);
}

static void run(struct race *race)
{
	pthread_t mover;

	pthread_rwlock_init(&race->lock, NULL);
	race->fd = exporter_create(SIZE, LAYOUT(4K));
	if (pthread_create(&mover, NULL, move, race))
		tap_bail("no thread");
	for (unsigned int i = 0; i < ATTEMPTS; i++)
		attempt(race);
	race->stop = true;
	pthread_join(mover, NULL);
	race->left += !as_expected(race);
	close(race->fd);
	pthread_rwlock_destroy(&race->lock);
}

int main(void)
{
	struct resources before, after;
	struct race race = {};
	const char *name;

	tap_begin();
	if (kernel_has_lockdep()) {
		tap_skip("ib_core takes a kernel with lockdep down",
			 "a buffer moves while it is pinned");
		return tap_end();
	}
	race.device = rc_open();
	name = ibv_get_device_name(race.device->context->device);
	before = resources_count(name);
	tap_step("%u registrations of a buffer that moves", ATTEMPTS);
	run(&race);
	after = resources_count(name);
	tap_figures("registered=%llu moved=%llu pins_lost=%llu other_errors=%llu left=%llu",
		    (unsigned long long)race.registered,
		    (unsigned long long)race.moved,
		    (unsigned long long)race.lost,
		    (unsigned long long)race.other_errors,
		    (unsigned long long)race.left);
	tap_ok(race.registered && race.moved && !race.move_errors,
	       "pin-race: regions were registered, and buffers moved");
	tap_ok(!race.other_errors,
	       "pin-race: no registration failed but by the race in ib_core");
	tap_ok(!race.left, "pin-race: a pin lost for each, and nothing else");
	if (!tap_ok(resources_equal(&before, &after),
		    "pin-race: the kernel holds what it held before"))
		resources_note("pin-race", &before, &after);
	check_works("pin-race", race.device);
	check_alive("pin-race", race.device);
	rc_close(race.device);
	return tap_end();
}
