/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The card's audit (qrdma_diagnostic.h): whether an access could ever have gone
 * through a half-updated mapping or a revoked key. It is there with the device
 * property audit=on.
 */
#ifndef AUDIT_H
#define AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "qrdma_diagnostic.h"
#include "rc.h"

struct audit_counters {
	uint64_t windows;
	uint64_t maps;
	uint64_t torn_bytes;
	uint64_t widened_bytes;
	uint64_t stale_bytes;
	uint64_t torn_accesses;
	uint64_t revoked_accesses;
	uint64_t stray_accesses;
	uint64_t reused_indices;
	uint64_t unwatched;
	uint64_t unjudged;
};

struct audit_finding {
	enum qrdma_finding kind;
	uint32_t key;
	uint64_t address;
	uint64_t length;
	uint64_t shown;			/* as a PBLE; 0: absent */
	uint64_t old;
	uint64_t new;
	uint64_t change;
};

/* False if the card has no audit. */
bool audit_open(const struct rc_device *device);
/* Counters and findings; what is watched stays watched. */
void audit_clear(void);
/* A mkey's index, or 0 for all. */
void audit_watch(uint32_t index);
struct audit_counters audit_counters(void);
/* True if something is there that must not be. */
bool audit_found(const struct audit_counters *counters);
unsigned int audit_findings(void);
/* Number 0.. of audit_findings(). */
struct audit_finding audit_finding(unsigned int number);
/*
 * The first finding of a kind about the mkey of @key, whatever its variant; false
 * if there is none. *@finding may be NULL.
 */
bool audit_find(enum qrdma_finding kind, uint32_t key,
		struct audit_finding *finding);
const char *audit_kind_name(enum qrdma_finding kind);
/* A comment line for each of the first few findings. */
void audit_note(const char *name);

#endif
