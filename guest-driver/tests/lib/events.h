/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the driver says through its tracepoints: an instance of tracefs of the
 * program's own, read without stopping the rest.
 */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct event {
	char name[48];
	char text[400];			/* the fields: key=value key=value */
};

struct event_list {
	struct event *list;
	unsigned int count;
};

/*
 * Switches on events of the system qrdma, named in a NULL-terminated list. False
 * if there are none (another driver, or no tracefs).
 */
bool events_begin(const char *const *names);
void events_end(void);
/* Forget what was recorded. */
void events_clear(void);
/* Everything since, in order; events_free() it. Bails out if some were lost. */
struct event_list events_read(void);
void events_free(struct event_list *events);

/* Value of a field, in C's notation; false if it is not there. */
bool event_number(const struct event *event, const char *field,
		  int64_t *value);
/* As above, but bails out. */
int64_t event_field(const struct event *event, const char *field);
/* The event is @name's and about the mkey of @key, whatever its variant. */
bool event_is(const struct event *event, const char *name, uint32_t key);
/* Number of such events; the last one in *@event, if not NULL. */
unsigned int events_find(const struct event_list *events, const char *name,
			 uint32_t key, struct event *event);

#endif
