/*
 * qrdma: resets, and the bus master bit.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "hw/pci/pci_regs.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-reset"
#define REMOTE      2
#define TRANSFERS   16
#define LENGTH      (64 * KiB)

typedef struct Reset {
    QRdmaBench bench;
    QRdma *q;
    uint64_t source;
    uint64_t target;
    uint8_t *before;        /* target and CQ as they were at the reset */
    uint8_t *cq_before;
} Reset;

/*
 * Given 16 writes, each packet of which takes a microsecond, in the middle of
 * which the clock stands.
 */
static void reset_init(Reset *r, QRdma *q)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);
    uint32_t rkey;

    r->q = q;
    qrdma_bench_init(&r->bench, q);
    rkey = qrdma_bench_mkey(&r->bench, REMOTE, &mkc);
    r->source = qrdma_alloc(q, LENGTH);
    r->target = qrdma_alloc(q, TRANSFERS * LENGTH);
    qrdma_write_pattern(q, r->source, LENGTH, 1);
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct qrdma_sge sge = qrdma_sge(r->source, LENGTH,
                                         r->bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .remote_address = cpu_to_le64(r->target + i * LENGTH),
            .remote_key = cpu_to_le32(rkey),
        };

        qrdma_post(q, &r->bench.a, wqe, &sge, 1);
    }
    qtest_clock_step(q->qts, 3000);
    qrdma_settle(q);
}

#define CQ_BYTES(r) ((size_t)1 << ((r)->bench.cq_a.ring.log_entries + \
                                   QRDMA_CQE_LOG_SIZE))

static void remember(Reset *r)
{
    r->before = g_malloc(TRANSFERS * LENGTH);
    r->cq_before = g_malloc(CQ_BYTES(r));
    qtest_bufread(r->q->qts, r->target, r->before, TRANSFERS * LENGTH);
    qtest_bufread(r->q->qts, r->bench.cq_a.ring.address, r->cq_before,
                  CQ_BYTES(r));
}

/* Then, however long we wait, neither the target nor the CQ changes. */
static void assert_quiet(Reset *r)
{
    g_autofree uint8_t *after = g_malloc(TRANSFERS * LENGTH);
    g_autofree uint8_t *cq_after = g_malloc(CQ_BYTES(r));
    uint8_t nothing = 0;

    for (int i = 0; i < 20; i++) {
        qtest_clock_step(r->q->qts, 1000000);
        for (int turn = 0; turn < 4; turn++) {
            qtest_memread(r->q->qts, r->target, &nothing, 1);
        }
    }
    qtest_bufread(r->q->qts, r->target, after, TRANSFERS * LENGTH);
    qtest_bufread(r->q->qts, r->bench.cq_a.ring.address, cq_after,
                  CQ_BYTES(r));
    g_assert_cmpmem(after, TRANSFERS * LENGTH, r->before,
                    TRANSFERS * LENGTH);
    g_assert_cmpmem(cq_after, CQ_BYTES(r), r->cq_before, CQ_BYTES(r));
    /* The test is none if all had been written before. */
    g_assert_cmpint(r->before[TRANSFERS * LENGTH - 1], ==, 0);
    g_free(r->before);
    g_free(r->cq_before);
}

/* The same, left alone, goes through: so it is the reset that stops it. */
static void test_no_reset(void *obj, void *data, QGuestAllocator *alloc)
{
    Reset r;

    reset_init(&r, obj);
    for (unsigned done = 0; done < TRANSFERS; done++) {
        struct qrdma_cqe cqe;
        int steps = 0;

        while (!qrdma_cq_poll(r.q, &r.bench.cq_a, &cqe)) {
            g_assert_cmpint(steps++, <, 1000);
            qtest_clock_step(r.q->qts, 10000);
            qrdma_settle(r.q);
        }
        g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
    }
    qrdma_assert_pattern(r.q, r.target + (TRANSFERS - 1) * LENGTH, LENGTH, 1);
}

/* Case 48, device reset through the control register. */
static void test_control(void *obj, void *data, QGuestAllocator *alloc)
{
    Reset r;

    reset_init(&r, obj);
    qrdma_write32(r.q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
    remember(&r);
    assert_quiet(&r);
    g_assert_cmphex(qrdma_read32(r.q, QRDMA_REG_STATUS), ==, 0);
}

static uint8_t express_capability(QRdma *q)
{
    uint8_t offset = qpci_find_capability(&q->pci, PCI_CAP_ID_EXP, 0);

    g_assert_cmphex(offset, !=, 0);
    return offset;
}

/* Case 48, function-level reset. */
static void test_flr(void *obj, void *data, QGuestAllocator *alloc)
{
    Reset r;
    uint8_t express;

    reset_init(&r, obj);
    express = express_capability(r.q);
    g_assert_cmphex(qpci_config_readl(&r.q->pci, express + PCI_EXP_DEVCAP) &
                    PCI_EXP_DEVCAP_FLR, !=, 0);
    qpci_config_writew(&r.q->pci, express + PCI_EXP_DEVCTL,
                       PCI_EXP_DEVCTL_BCR_FLR);
    remember(&r);
    assert_quiet(&r);

    /* BARs and command register are back at zero, and so is the card. */
    g_assert_cmphex(qpci_config_readw(&r.q->pci, PCI_COMMAND), ==, 0);
    r.q->pci.msix_enabled = false;
    qrdma_attach(r.q);
    g_assert_cmphex(qrdma_read32(r.q, QRDMA_REG_STATUS), ==, 0);
    qrdma_bench_init(&r.bench, r.q);
}

/* Case 48, reset of the machine. */
static void test_system(void *obj, void *data, QGuestAllocator *alloc)
{
    Reset r;

    reset_init(&r, obj);
    qtest_system_reset(r.q->qts);
    remember(&r);
    assert_quiet(&r);
}

/* A card that is disabled and enabled again after work is as new. */
static void test_reset_again(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    for (int round = 0; round < 3; round++) {
        QRdmaBench bench;
        struct qrdma_counters counters;

        qrdma_bench_init(&bench, q);
        qrdma_post(q, &bench.a,
                   (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_NOP },
                   NULL, 0);
        qrdma_cq_expect(q, &bench.cq_a, QRDMA_CQE_SUCCESS);
        qrdma_command_ok(q, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                         &counters, sizeof(counters));
        g_assert_cmpuint(le64_to_cpu(counters.commands_refused), ==, 0);
    }
}

/* -------------------------------------------------------------- bus master */

static void set_bus_master(QRdma *q, bool on)
{
    uint16_t command = qpci_config_readw(&q->pci, PCI_COMMAND);

    command = on ? command | PCI_COMMAND_MASTER
                 : command & ~PCI_COMMAND_MASTER;
    qpci_config_writew(&q->pci, PCI_COMMAND, command);
}

/* Given no right to master the bus, a command cannot even be read. */
static void test_no_master_command(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_command nop = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };

    qrdma_start(q);
    set_bus_master(q, false);
    qrdma_command_post(q, &nop);
    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==,
                    QRDMA_FATAL_COMMAND_RING_DMA);

    set_bus_master(q, true);
    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* Given transfers under way, when the right is taken, memory stays as it is. */
static void test_no_master_transfer(void *obj, void *data,
                                    QGuestAllocator *alloc)
{
    Reset r;

    reset_init(&r, obj);
    set_bus_master(r.q, false);
    remember(&r);
    assert_quiet(&r);
}

static void register_reset_tests(void)
{
    static QOSGraphTestOptions latency = {
        .edge.extra_device_opts = "packet-latency=1000",
    };

    qos_node_produces("qrdma", GROUP);
    qos_add_test("none", GROUP, test_no_reset, &latency);
    qos_add_test("control", GROUP, test_control, &latency);
    qos_add_test("flr", GROUP, test_flr, &latency);
    qos_add_test("system", GROUP, test_system, &latency);
    qos_add_test("again", GROUP, test_reset_again, NULL);
    qos_add_test("bus-master/command", GROUP, test_no_master_command, NULL);
    qos_add_test("bus-master/transfer", GROUP, test_no_master_transfer,
                 &latency);
}

libqos_init(register_reset_tests);
