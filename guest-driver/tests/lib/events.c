/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "events.h"
#include "tap.h"

#define TRACEFS "/sys/kernel/tracing"

static char instance[PATH_MAX - 200];

static bool put(const char *file, const char *value)
{
	char path[PATH_MAX];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd < 0)
		return false;
	written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return written;
}

bool events_begin(const char *const *names)
{
	char path[200];

	if (access(TRACEFS "/trace", F_OK) &&
	    mount("tracefs", TRACEFS, "tracefs", 0, NULL))
		return false;
	snprintf(instance, sizeof(instance), TRACEFS "/instances/qrdma-%d",
		 getpid());
	if (mkdir(instance, 0700) && errno != EEXIST)
		return false;
	atexit(events_end);
	put("buffer_size_kb", "8192");
	put("options/overwrite", "0");
	for (; *names; names++) {
		snprintf(path, sizeof(path), "events/qrdma/%s/enable", *names);
		if (!put(path, "1")) {
			tap_note("no tracepoint %s", *names);
			return false;
		}
	}
	return true;
}

void events_end(void)
{
	if (instance[0])
		rmdir(instance);
	instance[0] = '\0';
}

void events_clear(void)
{
	put("trace", "");
}

/* "  task-1  [000] d..1.  12.345678: name: device key=value ..." */
static bool parse(const char *line, struct event *event)
{
	const char *name = strstr(line, ": ");
	const char *end;

	if (line[0] == '#' || !name)
		return false;
	name += 2;
	end = strstr(name, ": ");
	if (!end || (size_t)(end - name) >= sizeof(event->name))
		return false;
	snprintf(event->name, sizeof(event->name), "%.*s", (int)(end - name),
		 name);
	snprintf(event->text, sizeof(event->text), "%s", end + 1);
	event->text[strcspn(event->text, "\n")] = '\0';
	return true;
}

struct event_list events_read(void)
{
	struct event_list events = {};
	unsigned int room = 0;
	char path[PATH_MAX];
	char *line = NULL;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/trace", instance);
	file = fopen(path, "re");
	tap_need(file, "%s", path);
	while (getline(&line, &size, file) > 0) {
		if (strstr(line, "LOST"))
			tap_bail("trace events were lost");
		if (events.count == room) {
			room = room ? 2 * room : 64;
			events.list = realloc(events.list,
					      room * sizeof(*events.list));
			tap_need(events.list, "no memory");
		}
		events.count += parse(line, &events.list[events.count]);
	}
	free(line);
	fclose(file);
	return events;
}

void events_free(struct event_list *events)
{
	free(events->list);
	*events = (struct event_list){};
}

bool event_number(const struct event *event, const char *field,
		  int64_t *value)
{
	size_t length = strlen(field);
	const char *found = event->text;

	while ((found = strstr(found, field))) {
		if (found[length] == '=' &&
		    (found == event->text || found[-1] == ' ')) {
			*value = strtoull(found + length + 1, NULL, 0);
			return true;
		}
		found += length;
	}
	return false;
}

int64_t event_field(const struct event *event, const char *field)
{
	int64_t value;

	if (!event_number(event, field, &value))
		tap_bail("event %s has no field %s: %s", event->name, field,
			 event->text);
	return value;
}

bool event_is(const struct event *event, const char *name, uint32_t key)
{
	int64_t value;

	return !strcmp(event->name, name) &&
	       event_number(event, "key", &value) &&
	       (uint32_t)value >> 8 == key >> 8;
}

unsigned int events_find(const struct event_list *events, const char *name,
			 uint32_t key, struct event *event)
{
	unsigned int i, found = 0;

	for (i = 0; i < events->count; i++) {
		if (!event_is(&events->list[i], name, key))
			continue;
		found++;
		if (event)
			*event = events->list[i];
	}
	return found;
}
