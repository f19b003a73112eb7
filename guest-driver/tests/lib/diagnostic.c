/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <unistd.h>

#include "diagnostic.h"
#include "registers.h"
#include "tap.h"

#define LOOK_AGAIN 200		/* microseconds */

void diagnostic_open(const struct rc_device *device)
{
	if (!registers_open(device) ||
	    !(register_read(QRDMA_REG_DIAGNOSTIC_CAPS) &
	      QRDMA_DIAGNOSTIC_FAULTS))
		tap_bail("the card injects no faults: it wants the property diagnostics=on");
}

enum qrdma_fault_result diagnostic_try(const struct fault *fault)
{
	register_write(QRDMA_REG_FAULT_TARGET, fault->target);
	register_write(QRDMA_REG_FAULT_ACTION, fault->action);
	register_write(QRDMA_REG_FAULT_AT, fault->at);
	register_write(QRDMA_REG_FAULT_COUNT, fault->count);
	register_write(QRDMA_REG_FAULT_INDEX, fault->index);
	register_write(QRDMA_REG_FAULT_OPCODE, fault->opcode);
	register_write(QRDMA_REG_FAULT_STATUS, fault->status);
	register_write(QRDMA_REG_FAULT_POINT, fault->point);
	register_write64(QRDMA_REG_FAULT_DELAY, fault->delay);
	register_write64(QRDMA_REG_FAULT_ADDRESS, fault->address);
	register_write64(QRDMA_REG_FAULT_LENGTH, fault->length);
	register_write(QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM);
	return register_read(QRDMA_REG_FAULT_RESULT);
}

void diagnostic_arm(struct fault fault)
{
	enum qrdma_fault_result result;

	fault.at = fault.at ?: 1;
	fault.count = fault.count ?: 1;
	result = diagnostic_try(&fault);
	if (result)
		tap_bail("the card does not take fault %u of target %u: result %u",
			 fault.action, fault.target, result);
}

void diagnostic_clear(void)
{
	register_write(QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_CLEAR);
}

uint32_t diagnostic_armed(void)
{
	return register_read(QRDMA_REG_FAULT_ARMED);
}

uint32_t diagnostic_fired(void)
{
	return register_read(QRDMA_REG_FAULT_FIRED);
}

uint32_t diagnostic_held(void)
{
	return register_read(QRDMA_REG_FAULT_HELD);
}

void diagnostic_wait_fired(uint32_t count)
{
	while (diagnostic_fired() < count)
		usleep(LOOK_AGAIN);
}

void diagnostic_wait_released(void)
{
	while (diagnostic_held())
		usleep(LOOK_AGAIN);
}
