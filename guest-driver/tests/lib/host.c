/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "tap.h"

void host_do(const char *wish)
{
	char answer[300];
	size_t length = 0;

	tap_step("the host: %s", wish);
	tap_note("host: %s", wish);
	fflush(stdout);
	do {
		ssize_t count = read(STDOUT_FILENO, answer + length,
				     sizeof(answer) - 1 - length);

		tap_need(count > 0, "the host's answer");
		length += count;
	} while (answer[length - 1] != '\n' && length < sizeof(answer) - 1);
	answer[length] = '\0';
	answer[strcspn(answer, "\r\n")] = '\0';
	if (strcmp(answer, "done"))
		tap_bail("the host does not %s: %s", wish, answer);
}
