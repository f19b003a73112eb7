/*
 * qrdma on q35: what the qgraph machine has no place for. Root ports, hot
 * unplug, power management, properties.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/pci/pci_regs.h"
#include "hw/pci/pci_ids.h"
#include "qobject/qdict.h"
#include "libqos/malloc-pc.h"
#include "libqos/pci-pc.h"
#include "qrdma-machine.h"
#include "qrdma-queues.h"

static void assert_works(QRdma *q)
{
    QRdmaBench bench;

    qrdma_bench_init(&bench, q);
    qrdma_bench_assert_works(&bench, 2);
}

/* ----------------------------------------------------------- where it plugs */

static void test_root_complex(void)
{
    QRdmaMachine m;

    qrdma_machine_start(&m, "-machine q35 -device qrdma,addr=04.0");
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    g_assert_cmphex(qpci_config_readw(&m.card.pci, PCI_CLASS_DEVICE), ==,
                    PCI_CLASS_NETWORK_ETHERNET);
    g_assert_cmphex(qpci_config_readb(&m.card.pci, PCI_REVISION_ID), ==,
                    QRDMA_PCI_REVISION);
    g_assert_cmphex(qpci_config_readb(&m.card.pci, PCI_INTERRUPT_PIN), ==, 0);
    g_assert_cmpint(qpci_msix_table_size(&m.card.pci), ==,
                    QRDMA_MSIX_VECTORS);
    assert_works(&m.card);
    qrdma_machine_stop(&m);
}

static void test_root_port(void)
{
    QRdmaMachine m;

    qrdma_machine_start(&m, "-machine q35 " QRDMA_ROOT_PORT
                        "-device qrdma,bus=rp");
    qrdma_machine_card(&m, qrdma_machine_open_root_port(&m), 0);
    assert_works(&m.card);
    qrdma_machine_stop(&m);
}

/* A hot reset of the link resets the card. */
static void test_hot_reset(void)
{
    QRdmaMachine m;
    QPCIDevice *port;
    unsigned bus;

    qrdma_machine_start(&m, "-machine q35 " QRDMA_ROOT_PORT
                        "-device qrdma,bus=rp");
    bus = qrdma_machine_open_root_port(&m);
    qrdma_machine_card(&m, bus, 0);
    qrdma_start(&m.card);
    port = qpci_device_find(m.bus, QPCI_DEVFN(QRDMA_ROOT_PORT_SLOT, 0));
    qpci_config_writew(port, PCI_BRIDGE_CONTROL, PCI_BRIDGE_CTL_BUS_RESET);
    qpci_config_writew(port, PCI_BRIDGE_CONTROL, 0);
    g_free(port);

    m.card.pci.msix_enabled = false;
    qrdma_attach(&m.card);
    g_assert_cmphex(qrdma_read32(&m.card, QRDMA_REG_STATUS), ==, 0);
    assert_works(&m.card);
    qrdma_machine_stop(&m);
}

/* ------------------------------------------------------------------ unplug */

/* Given transfers under way, when the card is taken out, QEMU lives on. */
static void test_unplug(void)
{
    QRdmaMachine m;
    QRdmaBench bench;
    uint64_t memory;
    uint32_t key;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(2, QRDMA_TEST_PD);
    struct qrdma_sge sge;
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };
    g_autofree uint8_t *before = g_malloc(256 * 1024);
    g_autofree uint8_t *after = g_malloc(256 * 1024);

    /* A conventional slot of this machine unplugs through ACPI at once. */
    qrdma_machine_start(&m, "-machine pc "
                        "-device qrdma,id=card,addr=04.0,packet-latency=1000");
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    qrdma_bench_init(&bench, &m.card);
    key = qrdma_bench_mkey(&bench, 2, &mkc);
    memory = qrdma_alloc(&m.card, 512 * 1024);
    qrdma_write_pattern(&m.card, memory, 256 * 1024, 1);
    sge = qrdma_sge(memory, 256 * 1024, bench.local_key);
    wqe.remote_address = cpu_to_le64(memory + 256 * 1024);
    wqe.remote_key = cpu_to_le32(key);
    qrdma_post(&m.card, &bench.a, wqe, &sge, 1);
    qtest_clock_step(m.qts, 3000);
    qrdma_settle(&m.card);

    qpci_unplug_acpi_device_test(m.qts, "card", QRDMA_TEST_SLOT);
    qtest_bufread(m.qts, memory + 256 * 1024, before, 256 * 1024);
    for (int i = 0; i < 10; i++) {
        qtest_clock_step(m.qts, 1000000);
    }
    qtest_bufread(m.qts, memory + 256 * 1024, after, 256 * 1024);
    g_assert_cmpmem(after, 256 * 1024, before, 256 * 1024);
    g_assert_cmpint(after[256 * 1024 - 1], ==, 0);
    qrdma_machine_stop(&m);
}

/* -------------------------------------------------------- power management */

/* In D3hot the BARs are gone; back in D0 the card knows what it knew. */
static void test_power(void)
{
    QRdmaMachine m;
    uint8_t pm;

    qrdma_machine_start(&m, "-machine q35 -device qrdma,addr=04.0");
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    qrdma_start(&m.card);
    pm = qpci_find_capability(&m.card.pci, PCI_CAP_ID_PM, 0);
    g_assert_cmphex(pm, !=, 0);
    qpci_config_writew(&m.card.pci, pm + PCI_PM_CTRL, 3);
    g_assert_cmphex(qrdma_read32(&m.card, QRDMA_REG_ID), !=, QRDMA_ID);
    qpci_config_writew(&m.card.pci, pm + PCI_PM_CTRL, 0);
    g_assert_cmphex(qrdma_read32(&m.card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY);
    qrdma_command_ok(&m.card, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    qrdma_machine_stop(&m);
}

/* -------------------------------------------------------------- properties */

/* Properties out of range are refused with a message that names them. */
static void test_bad_properties(void)
{
    static const struct {
        const char *arguments;
        const char *names;
    } bad[] = {
        { "'packet-latency': 10000000001", "packet-latency" },
        { "'mac': '01:00:5e:00:00:01'", "mac" },
        { "'mac': 'nonsense'", "mac" },
        { "'umr-order-seed': 'nonsense'", "umr-order-seed" },
        { "'pble-cache': 3", "pble-cache" },
        { "'bandwidth': 'fast'", "bandwidth" },
        { "'timeline': '/tmp/none.json'", "audit=on" },
        { "'audit': true, 'timeline': '/nonexistent/qrdma.json'",
          "/nonexistent/qrdma.json" },
        { "'audit': true, 'timeline-limit': 0", "timeline-limit" },
        { "'audit-watch': 1", "audit=on" },
        { "'faults': [ { 'target': 'umr', 'action': 'drop', 'at': 0 } ]",
          "faults[0]" },
        { "'faults': 'all'", "faults" },
    };
    QTestState *qts = qtest_init("-machine q35 -nodefaults "
                                 "-device pcie-root-port,id=rp,chassis=1");

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        g_autofree char *command =
            g_strdup_printf("{ 'execute': 'device_add', 'arguments': "
                            "{ 'driver': 'qrdma', 'bus': 'rp', %s } }",
                            bad[i].arguments);
        QDict *response = qtest_qmp(qts, command, NULL);
        QDict *error = qdict_get_qdict(response, "error");

        g_test_message("%s", bad[i].arguments);
        g_assert_nonnull(error);
        g_assert_nonnull(strstr(qdict_get_str(error, "desc"), bad[i].names));
        qobject_unref(response);
    }
    qtest_quit(qts);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("qrdma-q35/root-complex", test_root_complex);
    qtest_add_func("qrdma-q35/root-port", test_root_port);
    qtest_add_func("qrdma-q35/hot-reset", test_hot_reset);
    qtest_add_func("qrdma-q35/unplug", test_unplug);
    qtest_add_func("qrdma-q35/power", test_power);
    qtest_add_func("qrdma-q35/bad-properties", test_bad_properties);
    return g_test_run();
}
