/*
 * qrdma: everything in flight when the card is reset, taken out, or paused.
 *
 * Sixteen transfers, UMRs that wait for them, a suspended sender, a completion,
 * an event and commands that a fault holds back: at the end of any kind of
 * reset all of it is over. No byte of memory changes afterwards and no
 * interrupt comes, however much time passes; the card knows nothing of what it
 * was, and works again. A machine that is stopped moves nothing either, but
 * goes on.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "libqos/pci-pc.h"
#include "qrdma-flight.h"
#include "qrdma-verify.h"

#define IN_SLOT     "-machine q35 " QRDMA_FLIGHT_CARD ",addr=04.0"
#define IN_PORT     "-machine q35 " QRDMA_ROOT_PORT QRDMA_FLIGHT_CARD ",bus=rp"

/* Ports that the guest drives, rather than ACPI. */
#define NATIVE_PORT "-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=" \
                    "off " IN_PORT

/* Hot plug by ACPI on q35: registers, and its first bus with slots. */
#define PLUG_BASE   0x0cc0
#define PLUG_EJECT  (PLUG_BASE + 0x08)
#define PLUG_SELECT (PLUG_BASE + 0x10)

/* A way to end all of it. */
typedef struct Kind {
    const char *name;
    const char *arguments;
    bool behind_port;
    bool leaves;                        /* there is no card then */
    void (*end)(QRdmaFlight *f);
    void (*again)(QRdmaFlight *f);      /* the card can be reached again */
} Kind;

/* --------------------------------------------------------------------- ends */

static void end_control(QRdmaFlight *f)
{
    qrdma_write32(&f->m.card, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
}

static void end_flr(QRdmaFlight *f)
{
    QPCIDevice *pci = &f->m.card.pci;
    uint8_t express = qpci_find_capability(pci, PCI_CAP_ID_EXP, 0);

    g_assert_cmphex(express, !=, 0);
    qpci_config_writew(pci, express + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
}

static QPCIDevice *root_port(QRdmaFlight *f)
{
    QPCIDevice *port =
        qpci_device_find(f->m.bus, QPCI_DEVFN(QRDMA_ROOT_PORT_SLOT, 0));

    g_assert_nonnull(port);
    return port;
}

static void end_bus(QRdmaFlight *f)
{
    QPCIDevice *port = root_port(f);

    qpci_config_writew(port, PCI_BRIDGE_CONTROL, PCI_BRIDGE_CTL_BUS_RESET);
    qpci_config_writew(port, PCI_BRIDGE_CONTROL, 0);
    g_free(port);
}

static void end_system(QRdmaFlight *f)
{
    qtest_qmp_assert_success(f->m.qts, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(f->m.qts, "RESET");
}

static void end_unplug(QRdmaFlight *f)
{
    qpci_unplug_acpi_device_test(f->m.qts, "card", QRDMA_TEST_SLOT);
}

static void end_unplug_port(QRdmaFlight *f)
{
    qtest_qmp_device_del_send(f->m.qts, "card");
    qtest_outl(f->m.qts, PLUG_SELECT, 0);
    qtest_outl(f->m.qts, PLUG_EJECT, 1);
    qtest_qmp_eventwait(f->m.qts, "DEVICE_DELETED");
}

static void set_slot_power(QRdmaFlight *f, uint16_t control)
{
    QPCIDevice *port = root_port(f);
    uint8_t express = qpci_find_capability(port, PCI_CAP_ID_EXP, 0);

    g_assert_cmphex(express, !=, 0);
    qpci_config_writew(port, express + PCI_EXP_SLTCTL, control);
    g_free(port);
}

/* The button is pressed, and the guest answers by taking the power away. */
static void end_unplug_native(QRdmaFlight *f)
{
    qtest_qmp_device_del_send(f->m.qts, "card");
    set_slot_power(f, PCI_EXP_SLTCTL_PWR_OFF | PCI_EXP_SLTCTL_PWR_IND_OFF);
    qtest_qmp_eventwait(f->m.qts, "DEVICE_DELETED");
}

/* -------------------------------------------------------------------- again */

static void again_nothing(QRdmaFlight *f)
{
}

/* The function has forgotten its BARs. */
static void again_attach(QRdmaFlight *f)
{
    g_assert_cmphex(qpci_config_readw(&f->m.card.pci, PCI_COMMAND), ==, 0);
    f->m.card.pci.msix_enabled = false;
    qrdma_attach(&f->m.card);
}

static void again_plug(QRdmaFlight *f)
{
    qtest_qmp_device_add(f->m.qts, "qrdma", "card",
                         "{ 'addr': '04.0', " QRDMA_FLIGHT_PLUG " }");
    qrdma_flight_find(f);
}

static void again_plug_port(QRdmaFlight *f)
{
    qtest_qmp_device_add(f->m.qts, "qrdma", "card",
                         "{ 'bus': 'rp', " QRDMA_FLIGHT_PLUG " }");
    qrdma_flight_find(f);
}

static void again_plug_native(QRdmaFlight *f)
{
    qtest_qmp_device_add(f->m.qts, "qrdma", "card",
                         "{ 'bus': 'rp', " QRDMA_FLIGHT_PLUG " }");
    set_slot_power(f, PCI_EXP_SLTCTL_PWR_ON | PCI_EXP_SLTCTL_PWR_IND_ON);
    qrdma_flight_find(f);
}

/* -------------------------------------------------------------------- kinds */

static const Kind kinds[] = {
    { "control", IN_SLOT, false, false, end_control, again_nothing },
    { "flr", IN_SLOT, false, false, end_flr, again_attach },
    { "flr-port", IN_PORT, true, false, end_flr, again_attach },
    { "bus", IN_PORT, true, false, end_bus, again_attach },
    { "system", IN_SLOT, false, false, end_system, qrdma_flight_find },
    { "system-port", IN_PORT, true, false, end_system, qrdma_flight_find },
    { "unplug", "-machine pc " QRDMA_FLIGHT_CARD ",addr=04.0", false, true,
      end_unplug, again_plug },
    { "unplug-port", IN_PORT, true, true, end_unplug_port, again_plug_port },
    { "unplug-native", NATIVE_PORT, true, true, end_unplug_native,
      again_plug_native },
};

/* Packets that have arrived: none, some, enough for a transfer and UMRs. */
static const unsigned moments[] = { 0, 1, 9, 70 };

static void assert_gone(QRdmaFlight *f)
{
    g_assert_cmphex(qpci_config_readw(&f->m.card.pci, PCI_VENDOR_ID), ==,
                    0xffff);
    qrdma_flight_assert_quiet(f);
}

/*
 * Between the end and the first look no time passes, and the card is reset by
 * nothing else: it could reach memory again if there were something left.
 */
static void assert_ended(QRdmaFlight *f, const Kind *kind)
{
    if (kind->leaves) {
        assert_gone(f);
    }
    kind->again(f);
    qrdma_flight_catch_interrupts(f);
    qrdma_flight_assert_registers_new(f);
    qrdma_flight_assert_quiet(f);
    qrdma_flight_assert_registers_new(f);
    qrdma_flight_assert_clean(f, kind->leaves ? 0 : 1);
}

static void test_kind(const void *data)
{
    const Kind *kind = data;

    for (unsigned i = 0; i < G_N_ELEMENTS(moments); i++) {
        QRdmaFlight f;

        qrdma_flight_init(&f, kind->arguments, kind->behind_port);
        qrdma_flight_hold(&f);
        qrdma_flight_hold_commands(&f);
        qrdma_flight_traffic(&f, moments[i]);
        qrdma_flight_assert_clean(&f, 1);
        qrdma_flight_remember(&f);
        kind->end(&f);
        assert_ended(&f, kind);
        qrdma_flight_assert_objects_gone(&f);
        qrdma_flight_assert_quiet(&f);
        qrdma_flight_assert_nothing_held(&f);
        qrdma_flight_assert_works(&f);
        qrdma_flight_assert_clean(&f, 1);
        qrdma_flight_end(&f);
    }
}

/*
 * Given a machine that is stopped, when work goes on to be posted, then nothing
 * moves; when it goes on, so does all of it.
 */
static void stop_and_go_on(QRdmaFlight *f)
{
    qrdma_flight_remember(f);
    qtest_qmp_assert_success(f->m.qts, "{ 'execute': 'stop' }");
    qrdma_flight_post_more(f);
    qrdma_flight_assert_quiet(f);
    qtest_qmp_assert_success(f->m.qts, "{ 'execute': 'cont' }");
    qrdma_flight_finish(f);
    qrdma_flight_assert_clean(f, 1);
}

static void test_pause(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(moments); i++) {
        QRdmaFlight f;

        qrdma_flight_init(&f, IN_SLOT, false);
        qrdma_flight_hold(&f);
        qrdma_flight_traffic(&f, moments[i]);
        stop_and_go_on(&f);
        qrdma_flight_end(&f);
    }
}

/* The same with nothing else that would make the card look at its doorbells. */
static void test_pause_idle(void)
{
    QRdmaFlight f;

    qrdma_flight_init(&f, IN_SLOT, false);
    stop_and_go_on(&f);
    qrdma_flight_end(&f);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *name = g_strdup_printf("qrdma-flight/%s",
                                                kinds[i].name);

        qtest_add_data_func(name, &kinds[i], test_kind);
    }
    qtest_add_func("qrdma-flight/pause", test_pause);
    qtest_add_func("qrdma-flight/pause-idle", test_pause_idle);
    return g_test_run();
}
