/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a test program says: TAP on stdout, figures in comment lines, and a
 * watchdog that says what was waited for.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

#define TAP_FORMAT(n, m) __attribute__((format(printf, n, m)))

/* First thing in main(): version line, line buffering, the watchdog's signal. */
void tap_begin(void);
/* One result. Returns @passed. Any thread. */
bool tap_ok(bool passed, const char *format, ...) TAP_FORMAT(2, 3);
void tap_skip(const char *reason, const char *format, ...) TAP_FORMAT(2, 3);
/* Comment line. */
void tap_note(const char *format, ...) TAP_FORMAT(1, 2);
/* Comment line "# figures: key=value key=value", before the result it is about. */
void tap_figures(const char *format, ...) TAP_FORMAT(1, 2);
/* The program cannot go on: exits with 1. */
void tap_bail(const char *format, ...) TAP_FORMAT(1, 2)
	__attribute__((noreturn));
/* As above, unless the condition holds; says errno. */
#define tap_need(condition, ...)			\
	do {						\
		if (!(condition))			\
			tap_bail_errno(__VA_ARGS__);	\
	} while (0)
void tap_bail_errno(const char *format, ...) TAP_FORMAT(1, 2)
	__attribute__((noreturn));
/* Plan line; the exit status: 0 if nothing failed. */
int tap_end(void);

/*
 * What is done now. If no other step begins within QRDMA_WATCHDOG seconds
 * (environment; 300), the program says so and fails.
 */
void tap_step(const char *format, ...) TAP_FORMAT(1, 2);

#endif
