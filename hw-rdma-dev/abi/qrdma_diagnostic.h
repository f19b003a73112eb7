/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * qrdma: the registers with which the card is verified: fault injection and the
 * audit. For tests; a driver that carries traffic has no use for them.
 *
 * Both windows are in BAR 0 and follow the rules of its other registers. The
 * fault window is there only with the device property diagnostics=on, the audit
 * window only with audit=on; a window that is not there reads as zero and
 * ignores writes. What they hold survives a reset of the card: a driver resets
 * the card when it is loaded.
 */
#ifndef QRDMA_DIAGNOSTIC_H
#define QRDMA_DIAGNOSTIC_H

#include "qrdma_hw.h"

#define QRDMA_REG_DIAGNOSTIC_CAPS	0x400	/* RO 32: QRDMA_DIAGNOSTIC_* that are there */
#define  QRDMA_DIAGNOSTIC_FAULTS	(1u << 0)
#define  QRDMA_DIAGNOSTIC_AUDIT		(1u << 1)

/* -------------------------------------------------------- fault injection */
/*
 * Describe a fault in the registers, then write ARM. Things that match (target,
 * index, opcode) are counted from then on; number `at`, and the `count` - 1 that
 * follow it, are hit. A fault that has hit `count` times is spent and gone. Where
 * several faults match one thing, all count it, and the first armed hits.
 */
#define QRDMA_REG_FAULT_TARGET		0x404	/* RW 32: enum qrdma_fault_target */
#define QRDMA_REG_FAULT_ACTION		0x408	/* RW 32: enum qrdma_fault_action */
#define QRDMA_REG_FAULT_AT		0x40c	/* RW 32: 1 is the next one */
#define QRDMA_REG_FAULT_COUNT		0x410	/* RW 32: not 0; QRDMA_FAULT_FOR_EVER: until cleared */
#define  QRDMA_FAULT_FOR_EVER		0xffffffffu
#define QRDMA_REG_FAULT_INDEX		0x414	/* RW 32: mkey index; 0: whatever mkey, or none */
#define QRDMA_REG_FAULT_OPCODE		0x418	/* RW 32: of commands and events; 0: all */
#define QRDMA_REG_FAULT_STATUS		0x41c	/* RW 32: FAIL of a command or UMR: enum qrdma_status; 0: INJECTED */
#define QRDMA_REG_FAULT_POINT		0x420	/* RW 32: FATAL: QRDMA_FAULT_POINT_*, or items of the UMR done before */
#define  QRDMA_FAULT_POINT_BEFORE	0u
#define  QRDMA_FAULT_POINT_AFTER	0xffffffffu	/* done, but not completed as such */
#define QRDMA_REG_FAULT_DELAY		0x428	/* RW 64: DELAY, LATE, DUPLICATE: nanoseconds of virtual time */
#define QRDMA_REG_FAULT_ADDRESS		0x430	/* RW 64: DMA targets: bus address */
#define QRDMA_REG_FAULT_LENGTH		0x438	/* RW 64: DMA targets: bytes, not 0; address + length does not wrap */
#define QRDMA_REG_FAULT_CONTROL		0x440	/* WO 32: QRDMA_FAULT_ARM or QRDMA_FAULT_CLEAR */
#define  QRDMA_FAULT_ARM		1u
#define  QRDMA_FAULT_CLEAR		2u	/* all faults, FIRED, and what they hold back */
#define QRDMA_REG_FAULT_RESULT		0x444	/* RO 32: enum qrdma_fault_result of the last ARM */
#define QRDMA_REG_FAULT_ARMED		0x448	/* RO 32: faults that are not spent */
#define QRDMA_REG_FAULT_FIRED		0x44c	/* RO 32: hits since the last CLEAR */
#define QRDMA_REG_FAULT_HELD		0x450	/* RO 32: things held back now, still to come */

#define QRDMA_MAX_FAULTS		16	/* armed at the same time */

enum qrdma_fault_target {
	QRDMA_FAULT_COMMAND		= 1,	/* opcode: enum qrdma_command_opcode; index: of mkey commands */
	QRDMA_FAULT_UMR			= 2,	/* UMRs of the UMR queue */
	QRDMA_FAULT_COMPLETION		= 3,	/* CQEs; index: the mkey that the UMR completed changed */
	QRDMA_FAULT_EVENT		= 4,	/* EQEs; opcode: enum qrdma_event; index: of the event's key */
	QRDMA_FAULT_DMA_READ		= 5,	/* the card's reads that touch the address range */
	QRDMA_FAULT_DMA_WRITE		= 6,	/* its writes */
};

enum qrdma_fault_action {
	/*
	 * Command, UMR: refused with `status`. Completion: the CQ fails as if
	 * its memory had. Event: the card fails as if the EQ's memory had. DMA:
	 * as if the bus had refused the address.
	 */
	QRDMA_FAULT_FAIL		= 1,
	/*
	 * Command, UMR: begun only when `delay` has passed; its queue waits.
	 * Completion, event: delivered when it has passed; others overtake it.
	 */
	QRDMA_FAULT_DELAY		= 2,
	/* Command, UMR: completes as success, and is not done. Completion, event: lost. */
	QRDMA_FAULT_DROP		= 3,
	/* Command, UMR: completes as success at once, and is done when `delay` has passed. */
	QRDMA_FAULT_LATE		= 4,
	/* Command, UMR: done once more, `delay` after the first time. Completion, event: twice. */
	QRDMA_FAULT_DUPLICATE		= 5,
	/*
	 * With the next one that matches. Command, UMR: completes as success, and
	 * is done when the next one is, before that completes. Completion, event:
	 * delivered after the next one.
	 */
	QRDMA_FAULT_SWAP		= 6,
	/* The card enters QRDMA_FATAL_INJECTED at `point`. All targets but DMA. */
	QRDMA_FAULT_FATAL		= 7,
};

/* What was wrong with a fault that could not be armed. */
enum qrdma_fault_result {
	QRDMA_FAULT_ARMED		= 0,
	QRDMA_FAULT_BAD_TARGET		= 1,
	QRDMA_FAULT_BAD_ACTION		= 2,	/* unknown, or not one of the target's */
	QRDMA_FAULT_BAD_AT		= 3,	/* 0 */
	QRDMA_FAULT_BAD_COUNT		= 4,	/* 0 */
	QRDMA_FAULT_BAD_INDEX		= 5,	/* no mkey index, or the target has none */
	QRDMA_FAULT_BAD_OPCODE		= 6,
	QRDMA_FAULT_BAD_STATUS		= 7,
	QRDMA_FAULT_BAD_POINT		= 8,
	QRDMA_FAULT_BAD_DELAY		= 9,	/* over QRDMA_FAULT_MAX_DELAY, or the action has none */
	QRDMA_FAULT_BAD_RANGE		= 10,
	QRDMA_FAULT_TOO_MANY		= 11,
};

#define QRDMA_FAULT_MAX_DELAY		10000000000ull	/* nanoseconds: ten seconds */

/* ------------------------------------------------------------------ audit */

#define QRDMA_REG_AUDIT_WATCH		0x500	/* RW 32: mkey index; 0: all mkeys */
#define QRDMA_REG_AUDIT_CONTROL		0x504	/* WO 32: QRDMA_AUDIT_CLEAR */
#define  QRDMA_AUDIT_CLEAR		1u	/* counters and findings; mkeys stay watched */
#define QRDMA_REG_AUDIT_FINDINGS	0x508	/* RO 32: findings that can be selected */
#define QRDMA_REG_AUDIT_SELECT		0x50c	/* RW 32: finding 0.. that QRDMA_REG_FINDING_* show */

/* Counters, RO 64. All but WINDOWS, MAPS, UNWATCHED and UNJUDGED are faults. */
#define QRDMA_REG_AUDIT_WINDOWS		0x510	/* change windows that ended */
#define QRDMA_REG_AUDIT_MAPS		0x518	/* intermediate maps in them */
#define QRDMA_REG_AUDIT_TORN_BYTES	0x520	/* bytes that were neither old, nor new, nor absent */
#define QRDMA_REG_AUDIT_WIDENED_BYTES	0x528	/* bytes at their old or new place, with more rights than there */
#define QRDMA_REG_AUDIT_STALE_BYTES	0x530	/* bytes that were not as a change wants them when it completed */
#define QRDMA_REG_AUDIT_TORN_ACCESSES	0x538	/* accesses granted through such bytes */
#define QRDMA_REG_AUDIT_REVOKED_ACCESSES 0x540	/* data moved through a mkey after its revocation or destroy had completed */
#define QRDMA_REG_AUDIT_STRAY_ACCESSES	0x548	/* translated to a place that the table as last written does not show */
#define QRDMA_REG_AUDIT_REUSED_INDICES	0x550	/* creations of a mkey whose index was still taken */
#define QRDMA_REG_AUDIT_UNWATCHED	0x558	/* mkeys with tables too large to be watched */
#define QRDMA_REG_AUDIT_UNJUDGED	0x560	/* accesses or intervals that found no room to be noted */

/* The selected finding; zero if there is none of that number. */
#define QRDMA_REG_FINDING_KIND		0x580	/* RO 32: enum qrdma_finding */
#define QRDMA_REG_FINDING_KEY		0x584	/* RO 32 */
#define QRDMA_REG_FINDING_ADDRESS	0x588	/* RO 64: of the first byte in the region */
#define QRDMA_REG_FINDING_LENGTH	0x590	/* RO 64: bytes */
/* What the first byte showed, and what it might have: bus address & ~0xfff | PBLE rights, as a PBLE; 0: absent; QRDMA_PBLE_RESERVED: malformed. */
#define QRDMA_REG_FINDING_SHOWN		0x598	/* RO 64 */
#define QRDMA_REG_FINDING_OLD		0x5a0	/* RO 64 */
#define QRDMA_REG_FINDING_NEW		0x5a8	/* RO 64 */
#define QRDMA_REG_FINDING_CHANGE	0x5b0	/* RO 64: number of the change that caused it, since the card's start */
#define QRDMA_REG_FINDING_TIME		0x5b8	/* RO 64: virtual time, nanoseconds */

enum qrdma_finding {
	QRDMA_FINDING_NONE		= 0,
	QRDMA_FINDING_TORN		= 1,
	QRDMA_FINDING_WIDENED		= 2,
	QRDMA_FINDING_STALE		= 3,
	QRDMA_FINDING_TORN_ACCESS	= 4,
	QRDMA_FINDING_REVOKED_ACCESS	= 5,
	QRDMA_FINDING_STRAY_ACCESS	= 6,
	QRDMA_FINDING_REUSED_INDEX	= 7,
};

#define QRDMA_MAX_FINDINGS		256	/* kept; counters go on */

#endif /* QRDMA_DIAGNOSTIC_H */
