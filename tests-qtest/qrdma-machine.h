/*
 * Machines with a qrdma card that qgraph has no place for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_MACHINE_H
#define QRDMA_MACHINE_H

#include "qrdma-device.h"

#define QRDMA_TEST_SLOT 4

typedef struct QRdmaMachine {
    QTestState *qts;
    QGuestAllocator alloc;
    QPCIBus *bus;
    QRdma card;
} QRdmaMachine;

/* QEMU with these arguments; "-nodefaults" is added. */
void qrdma_machine_start(QRdmaMachine *m, const char *arguments);

/* The card at bus and slot, its BARs mapped. */
void qrdma_machine_card(QRdmaMachine *m, unsigned bus, unsigned slot);

/* A root port, "rp", and where it is. */
#define QRDMA_ROOT_PORT \
    "-device pcie-root-port,id=rp,addr=05.0,chassis=1,slot=1 "
#define QRDMA_ROOT_PORT_SLOT 5

/*
 * Give the bus behind the only root port its number, which is returned, and its
 * memory window.
 */
unsigned qrdma_machine_open_root_port(QRdmaMachine *m);

void qrdma_machine_stop(QRdmaMachine *m);

#endif /* QRDMA_MACHINE_H */
