/*
 * All that a qrdma card can have in flight, for tests of how it ends: traffic,
 * UMRs that wait for it, a suspended sender, and what a fault holds back: a
 * completion, an event and two commands.
 *
 * Where a function says that something must be so, the test fails if it is not.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_FLIGHT_H
#define QRDMA_FLIGHT_H

#include "qemu/units.h"
#include "qrdma-machine.h"
#include "qrdma-queues.h"

#define QRDMA_FLIGHT_TRANSFERS  16
#define QRDMA_FLIGHT_MORE       4               /* that are posted later */
#define QRDMA_FLIGHT_LENGTH     (64 * KiB)      /* of each */
#define QRDMA_FLIGHT_UMRS       8
#define QRDMA_FLIGHT_NOPS       4       /* posted later, on a QP that is idle */
#define QRDMA_FLIGHT_STEP       1000            /* nanoseconds a packet */

/* Nanoseconds for which a fault holds back what it hits. */
#define QRDMA_FLIGHT_HELD       100000000

/* Properties of the card, as -device and as device_add take them. */
#define QRDMA_FLIGHT_CARD \
    "-device qrdma,packet-latency=1000,audit=on,diagnostics=on,id=card"
#define QRDMA_FLIGHT_PLUG \
    "'packet-latency': 1000, 'audit': true, 'diagnostics': true"

#define QRDMA_FLIGHT_RANGES     13

typedef struct QRdmaFlight {
    QRdmaMachine m;
    bool behind_port;
    QRdmaBench bench;
    QRdmaQp idle;               /* completes to b's CQ */
    uint64_t source;
    uint64_t target;
    uint64_t messages;          /* of MSI-X, a word a vector */
    uint32_t key;
    unsigned transfers;         /* posted so far; each has its part of target */
    unsigned umrs;
    unsigned nops;
    unsigned held;              /* completions and events */

    /* What the card can reach, and what was there when it was remembered. */
    struct {
        uint64_t address;
        size_t length;
        uint8_t *bytes;
    } before[QRDMA_FLIGHT_RANGES];
} QRdmaFlight;

/*
 * A machine of these arguments and a card in it, with objects, interrupts, a
 * sender that is suspended, and a sticky bit of its status that is set.
 */
void qrdma_flight_init(QRdmaFlight *f, const char *arguments,
                       bool behind_port);

/* Find the card, anew after it or its port has forgotten where it is. */
void qrdma_flight_find(QRdmaFlight *f);

/* Point the vectors at memory, none masked. */
void qrdma_flight_catch_interrupts(QRdmaFlight *f);

/* A fault holds back a completion and an event from now on. */
void qrdma_flight_hold(QRdmaFlight *f);

/*
 * The same for two commands, of which one says that it is done. No command is
 * taken until the time has passed.
 */
void qrdma_flight_hold_commands(QRdmaFlight *f);

/* Start the traffic and let so many packets arrive; the clock stands then. */
void qrdma_flight_traffic(QRdmaFlight *f, unsigned packets);

/*
 * While the machine is stopped, and all is remembered: post more of everything,
 * with its doorbells. None of it must be begun. qrdma_flight_hold_commands()
 * would keep the command from it anyway.
 */
void qrdma_flight_post_more(QRdmaFlight *f);

/* All that was posted must come to its end, then what is held back. */
void qrdma_flight_finish(QRdmaFlight *f);

/*
 * Remember all that the card could write to, while it has the whole of it to
 * write. Nothing of it must be another when time has passed, nor an interrupt
 * have come. The memory of what has been remembered last is given back by
 * qrdma_flight_end().
 */
void qrdma_flight_remember(QRdmaFlight *f);
void qrdma_flight_assert_quiet(QRdmaFlight *f);

/* The audit must have found nothing, in at least so many changes of a key. */
void qrdma_flight_assert_clean(QRdmaFlight *f, unsigned windows);

/* The card must be as new; it is not started and not reset for that. */
void qrdma_flight_assert_registers_new(QRdmaFlight *f);

/*
 * The same for its objects and counters. It is enabled, but not reset, and has
 * a command ring elsewhere.
 */
void qrdma_flight_assert_objects_gone(QRdmaFlight *f);

/*
 * Given an enabled card without objects, make those again that there were: what
 * was held back must not come to them.
 */
void qrdma_flight_assert_nothing_held(QRdmaFlight *f);

/* These objects must work: a transfer, a UMR. */
void qrdma_flight_assert_works(QRdmaFlight *f);

void qrdma_flight_end(QRdmaFlight *f);

#endif /* QRDMA_FLIGHT_H */
