/*
 * Machines with a qrdma card that qgraph has no place for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "hw/pci/pci_regs.h"
#include "libqos/malloc-pc.h"
#include "libqos/pci-pc.h"
#include "qrdma-machine.h"

void qrdma_machine_start(QRdmaMachine *m, const char *arguments)
{
    memset(m, 0, sizeof(*m));
    m->qts = qtest_initf("-nodefaults %s", arguments);
    pc_alloc_init(&m->alloc, m->qts, ALLOC_NO_FLAGS);
    m->bus = qpci_new_pc(m->qts, &m->alloc);
}

void qrdma_machine_card(QRdmaMachine *m, unsigned bus, unsigned slot)
{
    QPCIAddress address = {
        .devfn = bus << 8 | QPCI_DEVFN(slot, 0),
        .vendor_id = QRDMA_PCI_VENDOR_ID,
        .device_id = QRDMA_PCI_DEVICE_ID,
    };

    qpci_device_init(&m->card.pci, m->bus, &address);
    m->card.qts = m->qts;
    m->card.alloc = &m->alloc;
    qrdma_attach(&m->card);
}

unsigned qrdma_machine_open_root_port(QRdmaMachine *m)
{
    QPCIDevice *port;
    unsigned bus;

    qpci_secondary_buses_init(m->bus);
    port = qpci_device_find(m->bus, QPCI_DEVFN(QRDMA_ROOT_PORT_SLOT, 0));
    g_assert_nonnull(port);
    /* All of what the test bus hands out: 0xe0000000 to 0xffffffff. */
    qpci_config_writew(port, PCI_MEMORY_BASE, 0xe000);
    qpci_config_writew(port, PCI_MEMORY_LIMIT, 0xefff);
    qpci_device_enable(port);
    bus = qpci_config_readb(port, PCI_SECONDARY_BUS);
    g_free(port);
    return bus;
}

void qrdma_machine_stop(QRdmaMachine *m)
{
    qpci_free_pc(m->bus);
    alloc_destroy(&m->alloc);
    qtest_quit(m->qts);
}
