/* SPDX-License-Identifier: GPL-2.0-or-later */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int results, failures;
static unsigned int watchdog_seconds = 300;
static char step[200] = "the program to begin";

static void say(const char *text)
{
	ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));

	(void)ignored;
}

/* Only what a signal handler may do. */
static void on_alarm(int signal)
{
	(void)signal;
	say("Bail out! the watchdog ended the program; it waited for: ");
	say(step);
	say("\n");
	_exit(1);
}

void tap_begin(void)
{
	const char *seconds = getenv("QRDMA_WATCHDOG");
	struct sigaction action = { .sa_handler = on_alarm };

	if (seconds && atoi(seconds) > 0)
		watchdog_seconds = atoi(seconds);
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigaction(SIGALRM, &action, NULL);
	alarm(watchdog_seconds);
	puts("TAP version 13");
}

/* "# " is a directive in TAP: it must not come from a text. */
static void print_text(const char *format, va_list arguments)
{
	char text[1000];
	char *c;

	vsnprintf(text, sizeof(text), format, arguments);
	for (c = text; *c; c++)
		if (*c == '#' || *c == '\n')
			*c = ' ';
	fputs(text, stdout);
}

bool tap_ok(bool passed, const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&lock);
	results++;
	failures += !passed;
	printf("%s %u - ", passed ? "ok" : "not ok", results);
	va_start(arguments, format);
	print_text(format, arguments);
	va_end(arguments);
	putchar('\n');
	pthread_mutex_unlock(&lock);
	return passed;
}

void tap_skip(const char *reason, const char *format, ...)
{
	va_list arguments;

	pthread_mutex_lock(&lock);
	printf("ok %u - ", ++results);
	va_start(arguments, format);
	print_text(format, arguments);
	va_end(arguments);
	printf(" # SKIP %s\n", reason);
	pthread_mutex_unlock(&lock);
}

static void comment(const char *prefix, const char *format, va_list arguments)
{
	pthread_mutex_lock(&lock);
	fputs(prefix, stdout);
	print_text(format, arguments);
	putchar('\n');
	pthread_mutex_unlock(&lock);
}

void tap_note(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	comment("# ", format, arguments);
	va_end(arguments);
}

void tap_figures(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	comment("# figures: ", format, arguments);
	va_end(arguments);
}

void tap_bail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	comment("Bail out! ", format, arguments);
	va_end(arguments);
	_exit(1);
}

void tap_bail_errno(const char *format, ...)
{
	int error = errno;
	char text[500];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	tap_bail("%s: %s", text, strerror(error));
}

int tap_end(void)
{
	alarm(0);
	printf("1..%u\n", results);
	return failures ? 1 : 0;
}

void tap_step(const char *format, ...)
{
	va_list arguments;

	alarm(0);
	va_start(arguments, format);
	vsnprintf(step, sizeof(step), format, arguments);
	va_end(arguments);
	alarm(watchdog_seconds);
}
