/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "audit.h"
#include "registers.h"
#include "tap.h"

#define MAX_NOTES 4

bool audit_open(const struct rc_device *device)
{
	return registers_open(device) &&
	       register_read(QRDMA_REG_DIAGNOSTIC_CAPS) &
	       QRDMA_DIAGNOSTIC_AUDIT;
}

void audit_clear(void)
{
	register_write(QRDMA_REG_AUDIT_CONTROL, QRDMA_AUDIT_CLEAR);
}

void audit_watch(uint32_t index)
{
	register_write(QRDMA_REG_AUDIT_WATCH, index);
	if (register_read(QRDMA_REG_AUDIT_WATCH) != index)
		tap_bail("the card does not watch index 0x%x", index);
}

struct audit_counters audit_counters(void)
{
	return (struct audit_counters) {
		.windows = register_read64(QRDMA_REG_AUDIT_WINDOWS),
		.maps = register_read64(QRDMA_REG_AUDIT_MAPS),
		.torn_bytes = register_read64(QRDMA_REG_AUDIT_TORN_BYTES),
		.widened_bytes = register_read64(QRDMA_REG_AUDIT_WIDENED_BYTES),
		.stale_bytes = register_read64(QRDMA_REG_AUDIT_STALE_BYTES),
		.torn_accesses = register_read64(QRDMA_REG_AUDIT_TORN_ACCESSES),
		.revoked_accesses =
			register_read64(QRDMA_REG_AUDIT_REVOKED_ACCESSES),
		.stray_accesses =
			register_read64(QRDMA_REG_AUDIT_STRAY_ACCESSES),
		.reused_indices =
			register_read64(QRDMA_REG_AUDIT_REUSED_INDICES),
		.unwatched = register_read64(QRDMA_REG_AUDIT_UNWATCHED),
		.unjudged = register_read64(QRDMA_REG_AUDIT_UNJUDGED),
	};
}

bool audit_found(const struct audit_counters *counters)
{
	return counters->torn_bytes || counters->widened_bytes ||
	       counters->stale_bytes || counters->torn_accesses ||
	       counters->revoked_accesses || counters->stray_accesses ||
	       counters->reused_indices;
}

unsigned int audit_findings(void)
{
	return register_read(QRDMA_REG_AUDIT_FINDINGS);
}

struct audit_finding audit_finding(unsigned int number)
{
	register_write(QRDMA_REG_AUDIT_SELECT, number);
	return (struct audit_finding) {
		.kind = register_read(QRDMA_REG_FINDING_KIND),
		.key = register_read(QRDMA_REG_FINDING_KEY),
		.address = register_read64(QRDMA_REG_FINDING_ADDRESS),
		.length = register_read64(QRDMA_REG_FINDING_LENGTH),
		.shown = register_read64(QRDMA_REG_FINDING_SHOWN),
		.old = register_read64(QRDMA_REG_FINDING_OLD),
		.new = register_read64(QRDMA_REG_FINDING_NEW),
		.change = register_read64(QRDMA_REG_FINDING_CHANGE),
	};
}

bool audit_find(enum qrdma_finding kind, uint32_t key,
		struct audit_finding *finding)
{
	unsigned int i, count = audit_findings();

	for (i = 0; i < count; i++) {
		struct audit_finding found = audit_finding(i);

		if (found.kind != kind || found.key >> 8 != key >> 8)
			continue;
		if (finding)
			*finding = found;
		return true;
	}
	return false;
}

const char *audit_kind_name(enum qrdma_finding kind)
{
	switch (kind) {
	case QRDMA_FINDING_NONE:
		return "none";
	case QRDMA_FINDING_TORN:
		return "torn";
	case QRDMA_FINDING_WIDENED:
		return "widened";
	case QRDMA_FINDING_STALE:
		return "stale";
	case QRDMA_FINDING_TORN_ACCESS:
		return "torn access";
	case QRDMA_FINDING_REVOKED_ACCESS:
		return "access after a revocation";
	case QRDMA_FINDING_STRAY_ACCESS:
		return "stray access";
	case QRDMA_FINDING_REUSED_INDEX:
		return "reused index";
	}
	return "unknown";
}

void audit_note(const char *name)
{
	unsigned int i, count = audit_findings();

	for (i = 0; i < count && i < MAX_NOTES; i++) {
		struct audit_finding finding = audit_finding(i);

		tap_note("%s: %s: key 0x%x, 0x%llx bytes at 0x%llx: shown 0x%llx, old 0x%llx, new 0x%llx, change %llu",
			 name, audit_kind_name(finding.kind), finding.key,
			 (unsigned long long)finding.length,
			 (unsigned long long)finding.address,
			 (unsigned long long)finding.shown,
			 (unsigned long long)finding.old,
			 (unsigned long long)finding.new,
			 (unsigned long long)finding.change);
	}
	if (count > i)
		tap_note("%s: %u more findings", name, count - i);
}
