/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads that register, use, move, revoke and deregister on the same few buffers
 * at the same time, each as chance has it. What a thread reads has to be what it
 * wrote; what an access reached is for the card's audit to say.
 */
#ifndef CHURN_H
#define CHURN_H

#include <stdbool.h>
#include <sys/types.h>

#include "rc.h"

#define CHURN_THREADS	4

struct churn_counts {
	uint64_t registered;
	uint64_t refused;		/* registrations of what was revoked */
	uint64_t done;			/* accesses that succeeded */
	uint64_t failed;		/* accesses that did not */
	uint64_t wrong;			/* reads of something else than was written */
	uint64_t moved;
	uint64_t revoked;
	uint64_t raced;			/* see test-pin-race: refused, and a pin lost */
	uint64_t other_errors;		/* that no race explains */
	uint64_t left;			/* buffers with more at the end than such pins */
};

/*
 * Linux 7.3 with lockdep goes down when a buffer moves, or is revoked, while ib_core
 * attaches to it: ib_umem_dmabuf_unmap_pages() asks for the attachment's lock before
 * the attachment is known. Where there is lockdep, these are kept apart.
 */
bool kernel_has_lockdep(void);

/* For so many seconds; 0: until the process is killed. */
struct churn_counts churn(struct rc_device *device, unsigned int seconds);

/* A process that does so without end. */
pid_t churn_process(void);
/* Kills it if it is still there: how it ended, as waitpid() says. */
int churn_process_end(pid_t child);

#endif
