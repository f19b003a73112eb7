/*
 * qrdma engine: key and address to bus address.
 *
 * The one way from a key to memory: everything that moves payload goes through
 * qrdma_access_begin() and qrdma_access_end().
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_ACCESS_H
#define QRDMA_ACCESS_H

#include "engine.h"
#include "mkey.h"

/*
 * What the access needs: a right of the mkey, and rights of the page.
 * An atomic needs both PBLE rights, an 8-byte aligned address and length 8.
 */
typedef enum QrdmaAccessKind {
    QRDMA_LOCAL_READ,           /* no mkey right; PBLE_READ */
    QRDMA_LOCAL_WRITE,          /* LOCAL_WRITE; PBLE_WRITE */
    QRDMA_REMOTE_READ,          /* REMOTE_READ; PBLE_READ */
    QRDMA_REMOTE_WRITE,         /* REMOTE_WRITE; PBLE_WRITE */
    QRDMA_REMOTE_ATOMIC,        /* REMOTE_ATOMIC; PBLE_READ | PBLE_WRITE */
} QrdmaAccessKind;

/* "local read", "remote write", ... */
const char *qrdma_access_kind_name(QrdmaAccessKind kind);

typedef struct QrdmaAccessRequest {
    uint32_t key;
    uint32_t pd;                /* of the QP */
    uint32_t qpn;
    QrdmaAccessKind kind;
    uint64_t address;
    uint64_t length;            /* bytes the access still needs; not 0 */
} QrdmaAccessRequest;

typedef enum QrdmaAccessResult {
    QRDMA_ACCESS_GRANTED,       /* end it with qrdma_access_end() */
    QRDMA_ACCESS_FAULT,         /* absent page of an on-demand mkey */
    QRDMA_ACCESS_REFUSED,       /* error says why */
} QrdmaAccessResult;

typedef struct QrdmaAccess {
    uint64_t bus_address;
    uint64_t length;            /* 1..request's: contiguous from bus_address */
    enum qrdma_access_error error;
    QrdmaMkey *mkey;            /* for qrdma_access_end() */
    unsigned epoch;
    /* The audit's, of a watched mkey. */
    bool found;                 /* something was wrong with it */
    uint64_t begun;             /* virtual time, nanoseconds */
    uint64_t watch;             /* number of the watch that saw it begin */
} QrdmaAccess;

/*
 * Resolve the beginning of a request. In this order, the first that fails names
 * the refusal: the mkey exists (NO_KEY), variant (VARIANT), not free (FREE),
 * PD (PD), QP binding (QP), right of the mkey (RIGHTS), the whole of [address,
 * address + length) lies in the region without a wrap (RANGE; length 0 too),
 * alignment of an atomic (MISALIGNED), and for the page of the first byte: PBLE
 * space backed and readable (HMC), root entry and PBLE well-formed, address
 * aligned to the page size (BAD_ENTRY), present (fault, or NOT_PRESENT where
 * the mkey is not on-demand), rights of the page (RIGHTS).
 *
 * Granted: `out` has as much of the request as lies in one page of the mkey;
 * the caller moves that much, ends the access and asks again for the rest. The
 * bus address stays good until qrdma_access_end(): a UMR, a modify or a destroy
 * of the mkey is not over before. An access must not be held while its QP is
 * suspended or waits for anything but the packet's own latency.
 *
 * Not granted: nothing is held. Refusals are counted and traced here; the
 * caller counts faults when it suspends the QP.
 */
QrdmaAccessResult qrdma_access_begin(QrdmaEngine *engine,
                                     const QrdmaAccessRequest *request,
                                     QrdmaAccess *out);
void qrdma_access_end(QrdmaEngine *engine, QrdmaAccess *access);

#endif /* QRDMA_ACCESS_H */
