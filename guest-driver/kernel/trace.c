// SPDX-License-Identifier: GPL-2.0-only
/*
 * qrdma: the tracepoints' bodies.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
