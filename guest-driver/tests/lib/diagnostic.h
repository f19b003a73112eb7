/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's fault injection (qrdma_diagnostic.h). It is there with the device
 * property diagnostics=on, and survives resets: what is armed when the driver is
 * unloaded meets it when it is loaded again.
 */
#ifndef DIAGNOSTIC_H
#define DIAGNOSTIC_H

#include <stdint.h>

#include "qrdma_diagnostic.h"
#include "rc.h"

#define MILLISECONDS	1000000ull	/* in the unit of a fault's delay */

struct fault {
	enum qrdma_fault_target target;
	enum qrdma_fault_action action;
	uint32_t at;			/* 0 is taken as 1: the next one */
	uint32_t count;			/* 0 is taken as 1 */
	uint32_t index;			/* of a mkey; 0: any */
	uint32_t opcode;		/* 0: any */
	uint32_t status;		/* enum qrdma_status; 0: INJECTED */
	uint32_t point;
	uint64_t delay;			/* nanoseconds */
	uint64_t address;
	uint64_t length;
};

/* Bails out if the card injects no faults. */
void diagnostic_open(const struct rc_device *device);
/* As the card answers; nothing is armed unless it is QRDMA_FAULT_ARMED. */
enum qrdma_fault_result diagnostic_try(const struct fault *fault);
/* The same, but bails out when the card does not take it. */
void diagnostic_arm(struct fault fault);
/* Nothing armed, nothing held back, nothing fired. */
void diagnostic_clear(void);
/* Faults that are not spent; hits since the last clear; things held back now. */
uint32_t diagnostic_armed(void);
uint32_t diagnostic_fired(void);
uint32_t diagnostic_held(void);
/* Wait until @count hits were made; until nothing is held back any more. */
void diagnostic_wait_fired(uint32_t count);
void diagnostic_wait_released(void);

#endif
