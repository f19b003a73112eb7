/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine is migrated while traffic runs through regions of all kinds and levels,
 * and dynamic ones move, so that their pages fault and their page sizes change: three
 * times, or as the argument says. Traffic goes on with right data.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "card.h"
#include "host.h"
#include "memory.h"
#include "setup.h"
#include "stamp.h"
#include "tap.h"

#define MIGRATIONS	3
#define ACCESSES	20
#define SEED		0x316a7e

/* A block list of each level, by scattered pages of 4 KiB; level 0 is one block. */
static const struct kind {
	const char *name;
	uint64_t size;
	bool dynamic;
} kinds[] = {
	{ "pinned-level-0", PAGE, false },
	{ "pinned-level-1", 1 * MIB, false },
	{ "pinned-level-2", 8 * MIB, false },
	{ "dynamic-level-1", 1 * MIB, true },
	{ "dynamic-level-2", 8 * MIB, true },
};

#define KINDS	(sizeof(kinds) / sizeof(*kinds))

struct bench {
	struct rc_device *device;
	struct subject subjects[KINDS];
	struct traffic *traffic[KINDS];
	atomic_bool stop;
	atomic_ulong moves;
	pthread_t mover;
};

/* One after the other, from 4 KiB pages to larger ones and back. */
static void *move(void *argument)
{
	static const uint32_t layouts[] = {
		QRDMA_EXPORTER_64K, QRDMA_EXPORTER_2M, QRDMA_EXPORTER_4K,
	};
	struct bench *bench = argument;
	unsigned int next = 0;

	while (!bench->stop) {
		struct layout layout = { .kind = layouts[next++ % 3] };

		for (unsigned int i = 0; i < KINDS; i++) {
			if (!kinds[i].dynamic)
				continue;
			if (exporter_move(bench->subjects[i].fd, layout, 0, 0))
				tap_bail("the exporter does not move");
			bench->moves++;
		}
	}
	return NULL;
}

static void begin(struct bench *bench)
{
	for (unsigned int i = 0; i < KINDS; i++) {
		bench->subjects[i] = (struct subject){
			.device = bench->device,
			.size = kinds[i].size,
			.length = kinds[i].size,
			.iova = 0x700000000000ull + (i + 1) * GIB,
			.dynamic = kinds[i].dynamic,
		};
		subject_begin(&bench->subjects[i], LAYOUT(4K), SEED + i);
		bench->traffic[i] = traffic_start(bench->device,
						  bench->subjects[i].region,
						  i + 1);
	}
	if (pthread_create(&bench->mover, NULL, move, bench))
		tap_bail("no thread");
}

/* All traffic goes on, and regions move. */
static void wait_for_traffic(struct bench *bench)
{
	unsigned long moves = bench->moves;

	tap_step("traffic through all regions");
	for (unsigned int i = 0; i < KINDS; i++)
		traffic_wait_right(bench->traffic[i], ACCESSES);
	while (bench->moves < moves + 2)
		traffic_wait(bench->traffic[0], 1);
}

static void end(struct bench *bench)
{
	bench->stop = true;
	pthread_join(bench->mover, NULL);
	for (unsigned int i = 0; i < KINDS; i++) {
		struct traffic_counts counts = traffic_stop(bench->traffic[i]);
		uint64_t wrong = subject_check(&bench->subjects[i]);

		subject_end(&bench->subjects[i]);
		tap_figures("case=%s right=%llu refused=%llu wrong=%llu wrong_pages=%llu",
			    kinds[i].name, (unsigned long long)counts.right,
			    (unsigned long long)counts.refused,
			    (unsigned long long)counts.wrong,
			    (unsigned long long)wrong);
		tap_ok(counts.right && !counts.refused && !counts.wrong && !wrong,
		       "%s: every access was right", kinds[i].name);
	}
}

int main(int argc, char **argv)
{
	unsigned int migrations = argc > 1 ? atoi(argv[1]) : MIGRATIONS;
	struct bench bench = {};

	tap_begin();
	if (!migrations)
		tap_bail("how many migrations?");
	bench.device = rc_open();
	begin(&bench);
	wait_for_traffic(&bench);
	for (unsigned int i = 0; i < migrations; i++) {
		host_do("migrate");
		wait_for_traffic(&bench);
		tap_ok(true, "migration %u: all traffic goes on", i + 1);
	}
	end(&bench);
	check_works("migration", bench.device);
	check_alive("migration", bench.device);
	rc_close(bench.device);
	return tap_end();
}
