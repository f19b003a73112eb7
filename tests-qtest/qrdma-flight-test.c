/*
 * qrdma: everything in flight when the card is reset, or taken out.
 *
 * Sixteen transfers, UMRs that wait for them, a suspended sender, a completion,
 * an event and a command that faults hold back: at the end of any kind of reset
 * all of it is over. No byte of memory changes afterwards and no interrupt
 * comes, however much time passes; the card knows nothing, and works again. The
 * audit has found nothing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "hw/pci/pci_regs.h"
#include "qobject/qdict.h"
#include "libqos/pci-pc.h"
#include "qrdma-machine.h"
#include "qrdma-queues.h"
#include "qrdma-verify.h"

#define TRANSFERS   16
#define LENGTH      (64 * KiB)
#define UMRS        8
#define NOPS        4
#define IDLE        20      /* number of a queue pair */
#define REMOTE      2
#define ABSENT      3
#define ABSENT_PBLE 1024
#define HOLD_BACK   "[ { 'target': 'completion', 'action': 'delay', " \
                    "    'delay': 50000 }, " \
                    "  { 'target': 'event', 'action': 'delay', " \
                    "    'delay': 50000 }, " \
                    "  { 'target': 'command', 'action': 'delay', " \
                    "    'delay': 500000 } ]"
/* Hot plug by ACPI on q35: registers, and what its first hot bus is. */
#define PLUG_BASE   0x0cc0
#define PLUG_EJECT  (PLUG_BASE + 0x08)
#define PLUG_SELECT (PLUG_BASE + 0x10)
#define VECTORS     4
#define DEVICE      "-device qrdma,packet-latency=1000,audit=on," QRDMA_TEST_ID

typedef struct Flight Flight;

/* A way to end all of it. */
typedef struct Kind {
    const char *name;
    const char *arguments;
    bool behind_port;
    void (*end)(Flight *f);
    void (*again)(Flight *f);   /* the card can be reached again */
} Kind;

struct Flight {
    QRdmaMachine m;
    const Kind *kind;
    QRdmaBench bench;
    QRdmaQp idle;               /* completes to b's CQ */
    uint64_t source;
    uint64_t target;
    uint64_t messages;          /* of MSI-X, a word a vector */
    uint32_t key;
};

/* --------------------------------------------------------------- machines */

static void find_card(Flight *f)
{
    if (f->kind->behind_port) {
        qrdma_machine_card(&f->m, qrdma_machine_open_root_port(&f->m), 0);
    } else {
        qrdma_machine_card(&f->m, 0, QRDMA_TEST_SLOT);
    }
}

/* ---------------------------------------------------------------- in flight */

static void catch_interrupts(Flight *f)
{
    QRdma *q = &f->m.card;

    f->messages = qrdma_alloc(q, QRDMA_PAGE);
    for (unsigned i = 0; i < VECTORS; i++) {
        qrdma_msix_point(q, i, f->messages + 4 * i, QRDMA_TEST_MSI_DATA);
        qrdma_msix_mask(q, i, false);
    }
    qrdma_cq_doorbell(q, &f->bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_cq_doorbell(q, &f->bench.cq_umr, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_doorbell(q, &f->bench.completion, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_doorbell(q, &f->bench.async, QRDMA_DOORBELL_ARM_NEXT);
}

static void post_transfers(Flight *f)
{
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct qrdma_sge sge = qrdma_sge(f->source, LENGTH,
                                         f->bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .remote_address = cpu_to_le64(f->target + i * LENGTH),
            .remote_key = cpu_to_le32(f->key),
        };

        qrdma_post(&f->m.card, &f->bench.a, wqe, &sge, 1);
    }
}

/* On a queue that has nothing to wait for. */
static void post_nops(Flight *f)
{
    struct qrdma_send_wqe nop = { .opcode = QRDMA_SEND_OP_NOP };

    for (unsigned i = 0; i < NOPS; i++) {
        qrdma_post(&f->m.card, &f->idle, nop, NULL, 0);
    }
}

/* Each sets the key's right to be read, and waits for the packet in flight. */
static void post_umrs(Flight *f)
{
    for (unsigned i = 0; i < UMRS; i++) {
        struct qrdma_umr_wqe wqe = {
            .key = cpu_to_le32(f->key),
            .mask = cpu_to_le64(QRDMA_UMR_MASK_REMOTE_READ),
            .mkc.flags = cpu_to_le32(i % 2 ? QRDMA_MKEY_REMOTE_READ : 0),
        };

        qrdma_post_umr(&f->m.card, &f->bench.umr, wqe, NULL, 0);
    }
}

/* QP b sends to a page that is absent, and may come. */
static void suspend_sender(Flight *f)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(ABSENT, QRDMA_TEST_PD, 1, 12,
                                           0x10000000, 8 * QRDMA_PAGE,
                                           ABSENT_PBLE, 8);
    struct qrdma_sge sge = qrdma_sge(f->source, 64, f->bench.local_key);
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };

    qrdma_add_direct_sd(&f->m.card, 0);
    mkc.flags |= cpu_to_le32(QRDMA_MKEY_ON_DEMAND);
    wqe.remote_address = cpu_to_le64(0x10000000);
    wqe.remote_key = cpu_to_le32(qrdma_bench_mkey(&f->bench, ABSENT, &mkc));
    qrdma_post(&f->m.card, &f->bench.b, wqe, &sge, 1);
    qrdma_settle(&f->m.card);
}

static void make_idle(Flight *f)
{
    QRdma *q = &f->m.card;

    f->idle = f->bench.b;
    f->idle.number = IDLE;
    f->idle.send.address = f->idle.receive.address = 0;
    qrdma_qp_create(q, &f->idle);
    qrdma_qp_connect(q, &f->idle, f->bench.a.number, 0);
    f->idle.send_producer = 0;
}

/* The clock stands in the middle of it, after so many packets. */
static void flight_start(Flight *f, const Kind *kind, unsigned packets)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);
    struct qrdma_command nop = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };
    QRdma *q = &f->m.card;

    *f = (Flight) { .kind = kind };
    qrdma_machine_start(&f->m, kind->arguments);
    find_card(f);
    qrdma_bench_init(&f->bench, q);
    f->key = qrdma_bench_mkey(&f->bench, REMOTE, &mkc);
    f->source = qrdma_alloc(q, LENGTH);
    f->target = qrdma_alloc(q, TRANSFERS * LENGTH);
    qrdma_write_pattern(q, f->source, LENGTH, 1);
    suspend_sender(f);
    make_idle(f);
    qrdma_faults_set(f->m.qts, HOLD_BACK);
    catch_interrupts(f);
    post_transfers(f);
    qrdma_settle(q);
    post_umrs(f);
    qrdma_command_post(q, &nop);
    for (unsigned i = 0; i < packets; i++) {
        qtest_clock_step(f->m.qts, 1000);
        qrdma_settle(q);
    }
}

/* --------------------------------------------------------------- afterwards */

/* All that the card may have written: payload, rings, messages. */
typedef struct Range {
    uint64_t address;
    size_t length;
} Range;

#define RANGES 8

static Range ring_range(const QRdmaRing *ring)
{
    return (Range) { ring->address,
                     1u << (ring->log_entries + ring->log_stride) };
}

static void list_ranges(Flight *f, Range ranges[RANGES])
{
    ranges[0] = (Range) { f->target, TRANSFERS * LENGTH };
    ranges[1] = ring_range(&f->bench.cq_a.ring);
    ranges[2] = ring_range(&f->bench.cq_b.ring);
    ranges[3] = ring_range(&f->bench.cq_umr.ring);
    ranges[4] = ring_range(&f->bench.async.ring);
    ranges[5] = ring_range(&f->bench.completion.ring);
    ranges[6] = (Range) { f->messages, QRDMA_PAGE };
    ranges[7] = (Range) { f->m.card.command_ring, QRDMA_PAGE };
}

static void let_time_pass(Flight *f)
{
    uint8_t byte;

    for (unsigned i = 0; i < 20; i++) {
        qtest_clock_step(f->m.qts, 1000000);
        for (unsigned turn = 0; turn < 4; turn++) {
            qtest_memread(f->m.qts, f->target, &byte, 1);
        }
    }
}

/* Nothing is written from here on, nor by what is asked for meanwhile. */
static void assert_quiet(Flight *f, void (*meanwhile)(Flight *f))
{
    Range ranges[RANGES];
    uint8_t *before[RANGES];

    list_ranges(f, ranges);
    qtest_memset(f->m.qts, f->messages, 0, QRDMA_PAGE);
    for (unsigned i = 0; i < RANGES; i++) {
        before[i] = g_malloc(ranges[i].length);
        qtest_bufread(f->m.qts, ranges[i].address, before[i],
                      ranges[i].length);
    }
    /* The test is none if all had been written before. */
    g_assert_cmpint(before[0][TRANSFERS * LENGTH - 1], ==, 0);
    if (meanwhile) {
        meanwhile(f);
    }
    let_time_pass(f);
    for (unsigned i = 0; i < RANGES; i++) {
        g_autofree uint8_t *after = g_malloc(ranges[i].length);

        qtest_bufread(f->m.qts, ranges[i].address, after, ranges[i].length);
        g_assert_cmpmem(after, ranges[i].length, before[i], ranges[i].length);
        g_free(before[i]);
    }
}

/*
 * The card is as it comes from the factory, before anybody starts it: its
 * registers, and, switched on without a reset, its objects.
 */
static void assert_forgotten(Flight *f)
{
    QRdma *q = &f->m.card;

    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==, 0);
    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_COMMAND_RING), ==, 0);
    qrdma_enable(q);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_QP, f->bench.a.number,
                                  NULL, 0, NULL, 0), ==,
                    QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_MKEY, REMOTE, NULL, 0,
                                  NULL, 0), ==, QRDMA_STATUS_NO_OBJECT);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_EQ, QRDMA_ASYNC_EQN,
                                  NULL, 0, NULL, 0), ==,
                    QRDMA_STATUS_NO_OBJECT);
}

static void assert_audit_clean(Flight *f)
{
    QDict *report = qrdma_audit_report(&f->m.card);

    qrdma_audit_assert_clean(report);
    qobject_unref(report);
}

/* From the start: objects, a transfer, a UMR. */
static void assert_works(Flight *f)
{
    QRdma *q = &f->m.card;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);
    struct qrdma_umr_wqe umr = {
        .mask = cpu_to_le64(QRDMA_UMR_MASK_REMOTE_READ),
    };
    uint64_t memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
    struct qrdma_cqe cqe;
    struct qrdma_sge sge;
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };

    qrdma_bench_init(&f->bench, q);
    f->key = qrdma_bench_mkey(&f->bench, REMOTE, &mkc);
    qrdma_write_pattern(q, memory, QRDMA_PAGE, 7);
    sge = qrdma_sge(memory, QRDMA_PAGE, f->bench.local_key);
    wqe.remote_address = cpu_to_le64(memory + QRDMA_PAGE);
    wqe.remote_key = cpu_to_le32(f->key);
    qrdma_post(q, &f->bench.a, wqe, &sge, 1);
    while (!qrdma_cq_poll(q, &f->bench.cq_a, &cqe)) {
        qtest_clock_step(f->m.qts, 1000);
        qrdma_settle(q);
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(q, memory + QRDMA_PAGE, QRDMA_PAGE, 7);
    umr.key = cpu_to_le32(f->key);
    g_assert_cmpint(qrdma_bench_umr(&f->bench, umr, NULL, 0), ==,
                    QRDMA_STATUS_OK);
}

/* -------------------------------------------------------------------- kinds */

static void end_control(Flight *f)
{
    qrdma_write32(&f->m.card, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
}

static void end_flr(Flight *f)
{
    QPCIDevice *pci = &f->m.card.pci;
    uint8_t express = qpci_find_capability(pci, PCI_CAP_ID_EXP, 0);

    g_assert_cmphex(express, !=, 0);
    qpci_config_writew(pci, express + PCI_EXP_DEVCTL, PCI_EXP_DEVCTL_BCR_FLR);
}

static void end_bus(Flight *f)
{
    QPCIDevice *port =
        qpci_device_find(f->m.bus, QPCI_DEVFN(QRDMA_ROOT_PORT_SLOT, 0));

    qpci_config_writew(port, PCI_BRIDGE_CONTROL, PCI_BRIDGE_CTL_BUS_RESET);
    qpci_config_writew(port, PCI_BRIDGE_CONTROL, 0);
    g_free(port);
}

static void end_system(Flight *f)
{
    qtest_qmp_assert_success(f->m.qts, "{ 'execute': 'system_reset' }");
    qtest_qmp_eventwait(f->m.qts, "RESET");
}

static void end_unplug(Flight *f)
{
    qpci_unplug_acpi_device_test(f->m.qts, "card", QRDMA_TEST_SLOT);
}

static void end_unplug_port(Flight *f)
{
    qtest_qmp_device_del_send(f->m.qts, "card");
    qtest_outl(f->m.qts, PLUG_SELECT, 0);
    qtest_outl(f->m.qts, PLUG_EJECT, 1);
    qtest_qmp_eventwait(f->m.qts, "DEVICE_DELETED");
}

static void again_nothing(Flight *f)
{
}

/* The function has forgotten its BARs. */
static void again_attach(Flight *f)
{
    f->m.card.pci.msix_enabled = false;
    qrdma_attach(&f->m.card);
}

/* So has everything before it. */
static void again_find(Flight *f)
{
    f->m.card.pci.msix_enabled = false;
    find_card(f);
}

static void again_plug(Flight *f)
{
    qtest_qmp_device_add(f->m.qts, "qrdma", "card",
                         "{ 'addr': '04.0', 'packet-latency': 1000, "
                         "'audit': true }");
    again_find(f);
}

static void again_plug_port(Flight *f)
{
    qtest_qmp_device_add(f->m.qts, "qrdma", "card",
                         "{ 'bus': 'rp', 'packet-latency': 1000, "
                         "'audit': true }");
    again_find(f);
}

static const Kind kinds[] = {
    { "control", "-machine q35 " DEVICE ",addr=04.0", false, end_control,
      again_nothing },
    { "flr", "-machine q35 " DEVICE ",addr=04.0", false, end_flr,
      again_attach },
    { "bus", "-machine q35 " QRDMA_ROOT_PORT DEVICE ",bus=rp", true, end_bus,
      again_attach },
    { "system", "-machine q35 " DEVICE ",addr=04.0", false, end_system,
      again_find },
    { "system-port", "-machine q35 " QRDMA_ROOT_PORT DEVICE ",bus=rp", true,
      end_system, again_find },
    { "unplug", "-machine pc " DEVICE ",addr=04.0", false, end_unplug,
      again_plug },
    { "unplug-port", "-machine q35 " QRDMA_ROOT_PORT DEVICE ",bus=rp", true,
      end_unplug_port, again_plug_port },
};

/* Packets that have arrived: none, some, enough for a transfer and UMRs. */
static const unsigned moments[] = { 0, 1, 9, 70 };

static void test_kind(const void *data)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(moments); i++) {
        Flight f;

        flight_start(&f, data, moments[i]);
        assert_audit_clean(&f);
        f.kind->end(&f);
        assert_quiet(&f, NULL);
        f.kind->again(&f);
        assert_forgotten(&f);
        assert_works(&f);
        assert_audit_clean(&f);
        qrdma_machine_stop(&f.m);
    }
}

/*
 * Stopped, nothing moves, not even what is asked for meanwhile; then all of it
 * goes on to its end.
 */
static void test_pause(void)
{
    static const Kind pause = { "pause",
                                "-machine q35 " DEVICE ",addr=04.0" };
    Flight f;
    unsigned done = 0;
    struct qrdma_cqe cqe;

    flight_start(&f, &pause, 9);
    qtest_qmp_assert_success(f.m.qts, "{ 'execute': 'stop' }");
    assert_quiet(&f, post_nops);
    qtest_qmp_assert_success(f.m.qts, "{ 'execute': 'cont' }");
    for (unsigned i = 0; i < NOPS; i++) {
        qrdma_cq_expect(&f.m.card, &f.bench.cq_b, QRDMA_CQE_SUCCESS);
    }
    while (done < TRANSFERS) {
        if (qrdma_cq_poll(&f.m.card, &f.bench.cq_a, &cqe)) {
            g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
            done++;
        } else {
            qtest_clock_step(f.m.qts, 1000);
            qrdma_settle(&f.m.card);
        }
    }
    g_assert_cmpint(qrdma_command_wait(&f.m.card), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < TRANSFERS; i++) {
        qrdma_assert_pattern(&f.m.card, f.target + i * LENGTH, LENGTH, 1);
    }
    assert_audit_clean(&f);
    qrdma_machine_stop(&f.m);
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
    return g_test_run();
}
