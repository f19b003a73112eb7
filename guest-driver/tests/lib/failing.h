/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Allocations of the kernel's that fail one at a time, by /proc/PID/fail-nth: the
 * n-th that a thread makes from when it is armed.
 */
#ifndef FAILING_H
#define FAILING_H

#include <stdbool.h>

/* Also allocations that may wait, also single pages. False: the kernel cannot. */
bool failing_begin(void);

/* What the calling thread allocates. @nth: 1 is the next one. */
void failing_arm(unsigned int nth);
/* Whether it came to that. */
bool failing_disarm(void);

/*
 * The same for the threads of the kernel's that take in page faults and serve them;
 * each counts for itself. A thread that is made afterwards is not armed.
 */
void failing_arm_workers(unsigned int nth);
/* Whether it came to that in one of them. */
bool failing_disarm_workers(void);

#endif
