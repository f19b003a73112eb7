/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every case of a revocation looks at. Each prints results for @name. */
#ifndef REVOCATION_H
#define REVOCATION_H

#include "setup.h"

#define REVOCATION_REFUSALS	10	/* accesses that are tried after it */

/* Tracepoints that the checks read; for events_begin(). */
extern const char *const revocation_events[];

/*
 * Waits for IBV_EVENT_QP_ACCESS_ERR beyond @errors_before, and looks whether the
 * driver named the key and an address in the region, and revoked once.
 */
void check_reported(const char *name, const struct subject *subject,
		    uint64_t errors_before);
/* Accesses after the revocation were refused, and none at any time was wrong. */
void check_refused(const char *name, struct traffic_counts counts);
/* The exporter's view once the region is gone. */
void check_importer_gone(const char *name, int fd);
/* No new region gets the key as long as the revoked one is registered. */
void check_key_is_taken(const char *name, const struct subject *subject);
/* ibv_rereg_mr() of a revoked region fails whatever it is to change. */
void check_no_reregistration(const char *name, const struct subject *subject);

#endif
