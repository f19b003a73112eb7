/*
 * qrdma behind an IOMMU: one that maps nothing, one that maps all, and one that
 * takes a page away while sixteen transfers and UMRs are under way, for each
 * kind of memory that the card reads or writes. The error is the one that the
 * specification has for it, the page is not written any more, and with the
 * mapping back the card works again.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "qrdma-machine.h"
#include "qrdma-queues.h"
#include "qrdma-verify.h"

#define RAM_SIZE        (128 * MiB)     /* of the machine, by default */
#define TRANSFERS       16
#define UMRS            16
#define LENGTH          (64 * KiB)
#define LATER           8               /* a transfer that has not begun */
#define PACKETS         9               /* that have arrived, a UMR each */
#define REMOTE          2               /* indices of mkeys */
#define LISTED          3
#define LISTED_START    0x10000000ull
/* The entries of transfer LATER are the first of SD 0's second page. */
#define LISTED_PBLE     (QRDMA_PAGE / 8 - LATER * LENGTH / QRDMA_PAGE)
#define AFTERWARDS      4

/* ------------------------------------------------------------------- IOMMU */

/* Registers of the IOMMU, and entries of its legacy tables. */
#define VTD_BASE            0xfed90000ull
#define VTD_GCMD            0x18
#define VTD_GSTS            0x1c
#define VTD_RTADDR          0x20
#define VTD_IOTLB           0xf8
#define VTD_SET_ROOT        (1u << 30)
#define VTD_ENABLE          (1u << 31)
#define VTD_FORGET_ALL      (1ull << 63 | 1ull << 60)

#define VTD_PRESENT         1ull
#define VTD_WIDTH_39        1ull
#define VTD_DOMAIN_1        (1ull << 8)
#define VTD_READ_WRITE      3ull
#define VTD_ENTRIES         512u

typedef struct Iommu {
    uint64_t root;
    uint64_t leaves;            /* an entry for each page of RAM */
} Iommu;

static void iommu_enable(QRdmaMachine *m, uint64_t root)
{
    qtest_writeq(m->qts, VTD_BASE + VTD_RTADDR, root);
    qtest_writel(m->qts, VTD_BASE + VTD_GCMD, VTD_SET_ROOT);
    qtest_writel(m->qts, VTD_BASE + VTD_GCMD, VTD_ENABLE);
    g_assert_cmphex(qtest_readl(m->qts, VTD_BASE + VTD_GSTS) & VTD_ENABLE, !=,
                    0);
}

static void iommu_forget(QRdmaMachine *m)
{
    qtest_writeq(m->qts, VTD_BASE + VTD_IOTLB, VTD_FORGET_ALL);
}

/* Every page of RAM where it is, for the card in the test's slot. */
static void iommu_map_ram(QRdmaMachine *m, Iommu *iommu)
{
    const unsigned pages = RAM_SIZE / QRDMA_PAGE;
    uint64_t context = qrdma_alloc(&m->card, QRDMA_PAGE);
    uint64_t gigabytes = qrdma_alloc(&m->card, QRDMA_PAGE);
    uint64_t directory = qrdma_alloc(&m->card, QRDMA_PAGE);
    g_autofree uint64_t *entries = g_new(uint64_t, pages);

    iommu->root = qrdma_alloc(&m->card, QRDMA_PAGE);
    iommu->leaves = qrdma_alloc(&m->card, pages * sizeof(uint64_t));
    for (unsigned i = 0; i < pages; i++) {
        entries[i] = cpu_to_le64(i * QRDMA_PAGE | VTD_READ_WRITE);
    }
    qtest_memwrite(m->qts, iommu->leaves, entries, pages * sizeof(uint64_t));
    for (unsigned i = 0; i < pages / VTD_ENTRIES; i++) {
        qtest_writeq(m->qts, directory + i * 8,
                     (iommu->leaves + i * QRDMA_PAGE) | VTD_READ_WRITE);
    }
    qtest_writeq(m->qts, gigabytes, directory | VTD_READ_WRITE);
    qtest_writeq(m->qts, context + QPCI_DEVFN(QRDMA_TEST_SLOT, 0) * 16,
                 gigabytes | VTD_PRESENT);
    qtest_writeq(m->qts, context + QPCI_DEVFN(QRDMA_TEST_SLOT, 0) * 16 + 8,
                 VTD_WIDTH_39 | VTD_DOMAIN_1);
    qtest_writeq(m->qts, iommu->root, context | VTD_PRESENT);
}

static void iommu_set_page(QRdmaMachine *m, const Iommu *iommu,
                           uint64_t address, bool mapped)
{
    uint64_t page = address / QRDMA_PAGE;

    qtest_writeq(m->qts, iommu->leaves + page * 8,
                 mapped ? page * QRDMA_PAGE | VTD_READ_WRITE : 0);
    iommu_forget(m);
}

/* ---------------------------------------------------- off, nothing, and all */

static void start(QRdmaMachine *m)
{
    qrdma_machine_start(m, "-machine q35 -device intel-iommu "
                        "-device qrdma,addr=04.0,packet-latency=1000,"
                        "pble-cache=off,audit=on," QRDMA_TEST_ID);
    qrdma_machine_card(m, 0, QRDMA_TEST_SLOT);
}

static void run(QRdmaMachine *m, unsigned packets)
{
    for (unsigned i = 0; i < packets; i++) {
        qtest_clock_step(m->qts, 1000);
        qrdma_settle(&m->card);
    }
}

static void assert_works(QRdmaMachine *m, QRdmaBench *bench)
{
    QRdma *q = &m->card;
    uint64_t memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(AFTERWARDS, QRDMA_TEST_PD);
    struct qrdma_sge sge = qrdma_sge(memory, QRDMA_PAGE, bench->local_key);
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .remote_address = cpu_to_le64(memory + QRDMA_PAGE),
    };

    wqe.remote_key = cpu_to_le32(qrdma_bench_mkey(bench, AFTERWARDS, &mkc));
    qrdma_write_pattern(q, memory, QRDMA_PAGE, 3);
    qrdma_post(q, &bench->a, wqe, &sge, 1);
    run(m, 16);
    qrdma_cq_expect(q, &bench->cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(q, memory + QRDMA_PAGE, QRDMA_PAGE, 3);
}

/* One that is not switched on lets addresses pass as they are. */
static void test_off(void)
{
    QRdmaMachine m;
    QRdmaBench bench;

    start(&m);
    qrdma_bench_init(&bench, &m.card);
    assert_works(&m, &bench);
    qrdma_machine_stop(&m);
}

/*
 * Given an IOMMU that is on and maps nothing for the card, when a command is
 * posted, then the card cannot read it, and stops. The root table has no entry.
 */
static void test_blocks(void)
{
    QRdmaMachine m;
    struct qrdma_command nop = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };

    start(&m);
    qrdma_start(&m.card);
    iommu_enable(&m, qrdma_alloc(&m.card, QRDMA_PAGE));

    qrdma_command_post(&m.card, &nop);
    qrdma_settle(&m.card);
    g_assert_cmphex(qrdma_read32(&m.card, QRDMA_REG_ERROR), ==,
                    QRDMA_FATAL_COMMAND_RING_DMA);
    qrdma_machine_stop(&m);
}

static void test_maps(void)
{
    QRdmaMachine m;
    QRdmaBench bench;
    Iommu iommu;

    start(&m);
    iommu_map_ram(&m, &iommu);
    iommu_enable(&m, iommu.root);
    qrdma_bench_init(&bench, &m.card);
    assert_works(&m, &bench);
    qrdma_machine_stop(&m);
}

/* --------------------------------------------------------------- under way */

typedef struct Flight Flight;

/* What loses its page, and what follows from that. */
typedef struct Victim {
    const char *name;
    uint64_t (*page)(Flight *f);
    bool listed;                /* the remote key has a table */
    bool sends;                 /* messages are sent, not written */
    void (*use)(Flight *f);     /* makes the card look there; may be NULL */
    void (*expect)(Flight *f);
} Victim;

struct Flight {
    QRdmaMachine m;
    Iommu iommu;
    QRdmaBench bench;
    const Victim *victim;
    uint64_t source;
    uint64_t target;
    uint32_t key;
};

static void make_key(Flight *f)
{
    QRdma *q = &f->m.card;
    const uint32_t pages = TRANSFERS * LENGTH / QRDMA_PAGE;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);

    if (!f->victim->listed) {
        f->key = qrdma_bench_mkey(&f->bench, REMOTE, &mkc);
        return;
    }
    /* Its table has a page of its own after the first: see page_table(). */
    qrdma_add_direct_sd(q, 0);
    for (uint32_t i = 0; i < pages; i++) {
        qrdma_pble_write(q, i + LISTED_PBLE,
                         (f->target + i * QRDMA_PAGE) | QRDMA_PBLE_PRESENT);
    }
    mkc = qrdma_mkc_table(LISTED, QRDMA_TEST_PD, 1, 12, LISTED_START,
                          TRANSFERS * LENGTH, LISTED_PBLE, pages);
    f->key = qrdma_bench_mkey(&f->bench, LISTED, &mkc);
}

static void post_transfers(Flight *f)
{
    QRdma *q = &f->m.card;
    uint64_t remote = f->victim->listed ? LISTED_START : f->target;

    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct qrdma_sge from = qrdma_sge(f->source, LENGTH,
                                          f->bench.local_key);
        struct qrdma_sge to = qrdma_sge(f->target + i * LENGTH, LENGTH,
                                        f->bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .remote_address = cpu_to_le64(remote + i * LENGTH),
            .remote_key = cpu_to_le32(f->key),
        };

        if (f->victim->sends) {
            wqe = (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_SEND };
            qrdma_post_receive(q, &f->bench.b, &to, 1);
        }
        qrdma_post(q, &f->bench.a, wqe, &from, 1);
    }
}

/* Each waits for the packet in flight. */
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

static void flight_start(Flight *f, const Victim *victim)
{
    QRdma *q = &f->m.card;

    *f = (Flight) { .victim = victim };
    start(&f->m);
    iommu_map_ram(&f->m, &f->iommu);
    iommu_enable(&f->m, f->iommu.root);
    qrdma_bench_init(&f->bench, q);
    f->source = qrdma_alloc(q, LENGTH);
    f->target = qrdma_alloc(q, TRANSFERS * LENGTH);
    qrdma_write_pattern(q, f->source, LENGTH, 1);
    make_key(f);
    post_transfers(f);
    qrdma_settle(q);
    post_umrs(f);
    run(&f->m, PACKETS);
}

/* ----------------------------------------------------------------- victims */

static uint64_t page_target(Flight *f)
{
    return f->target + LATER * LENGTH;
}

static uint64_t page_source(Flight *f)
{
    return f->source + LENGTH - QRDMA_PAGE;
}

/* Of a later entry, whose page has no earlier one that is still needed. */
static uint64_t page_of_entry(const QRdmaRing *ring, unsigned entry)
{
    return (ring->address + ((uint64_t)entry << ring->log_stride)) &
           ~(QRDMA_PAGE - 1);
}

static uint64_t page_send_ring(Flight *f)
{
    return page_of_entry(&f->bench.a.send, LATER);
}

static uint64_t page_receive_ring(Flight *f)
{
    return page_of_entry(&f->bench.b.receive, 0);
}

static uint64_t page_umr_ring(Flight *f)
{
    return page_of_entry(&f->bench.umr.send, UMRS - 1);
}

static uint64_t page_cq(Flight *f)
{
    return f->bench.cq_a.ring.address;
}

static uint64_t page_eq(Flight *f)
{
    return f->bench.completion.ring.address;
}

static uint64_t page_async_eq(Flight *f)
{
    return f->bench.async.ring.address;
}

static uint64_t page_command_ring(Flight *f)
{
    return f->m.card.command_ring;
}

/* The half of the table that is on a page of its own. */
static uint64_t page_table(Flight *f)
{
    return f->m.card.sd[0] + QRDMA_PAGE;
}

static void use_command(Flight *f)
{
    struct qrdma_command nop = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };

    qrdma_command_post(&f->m.card, &nop);
}

static void use_eq(Flight *f)
{
    qrdma_cq_doorbell(&f->m.card, &f->bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
}

/* An asynchronous event comes: a doorbell is out of range. */
static void use_async_eq(Flight *f)
{
    qrdma_ring_doorbell(&f->m.card, f->bench.a.page, QRDMA_DOORBELL_SEND,
                        f->bench.a.number, 0x80000000);
}

static void expect_event(Flight *f, enum qrdma_event type, uint32_t number,
                         unsigned syndrome)
{
    struct qrdma_eqe eqe = qrdma_eq_expect(&f->m.card, &f->bench.async, type);

    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, number);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, syndrome);
}

/* So many transfers were right, the next one ended so. */
static void expect_transfers(Flight *f, unsigned right,
                             enum qrdma_cqe_status status)
{
    for (unsigned i = 0; i < right; i++) {
        qrdma_cq_expect(&f->m.card, &f->bench.cq_a, QRDMA_CQE_SUCCESS);
        qrdma_assert_pattern(&f->m.card, f->target + i * LENGTH, LENGTH, 1);
    }
    qrdma_cq_expect(&f->m.card, &f->bench.cq_a, status);
}

static void expect_remote(Flight *f)
{
    expect_transfers(f, LATER, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_event(f, QRDMA_EVENT_QP_ACCESS_ERROR, f->bench.b.number,
                 QRDMA_ACCESS_DMA);
}

static void expect_table(Flight *f)
{
    expect_transfers(f, LATER, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_event(f, QRDMA_EVENT_QP_ACCESS_ERROR, f->bench.b.number,
                 QRDMA_ACCESS_HMC);
}

static void expect_local(Flight *f)
{
    expect_transfers(f, 0, QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    expect_event(f, QRDMA_EVENT_QP_ACCESS_ERROR, f->bench.a.number,
                 QRDMA_ACCESS_DMA);
}

static void expect_cq(Flight *f)
{
    expect_event(f, QRDMA_EVENT_CQ_ERROR, f->bench.cq_a.number,
                 QRDMA_QUEUE_ERROR_DMA);
    expect_event(f, QRDMA_EVENT_QP_ERROR, f->bench.a.number,
                 QRDMA_QUEUE_ERROR_CQ);
}

static void expect_send_ring(Flight *f)
{
    expect_event(f, QRDMA_EVENT_QP_ERROR, f->bench.a.number,
                 QRDMA_QUEUE_ERROR_DMA);
    expect_transfers(f, LATER, QRDMA_CQE_FLUSHED);
}

static void expect_receive_ring(Flight *f)
{
    expect_event(f, QRDMA_EVENT_QP_ERROR, f->bench.b.number,
                 QRDMA_QUEUE_ERROR_DMA);
}

static void expect_umr_ring(Flight *f)
{
    expect_event(f, QRDMA_EVENT_QP_ERROR, f->bench.umr.number,
                 QRDMA_QUEUE_ERROR_DMA);
    /* That is the UMR queue's affair alone. */
    expect_transfers(f, TRANSFERS - 1, QRDMA_CQE_SUCCESS);
}

static void expect_fatal(Flight *f, enum qrdma_fatal_code code)
{
    g_assert_cmphex(qrdma_read32(&f->m.card, QRDMA_REG_STATUS) &
                    QRDMA_CARD_FATAL, !=, 0);
    g_assert_cmphex(qrdma_read32(&f->m.card, QRDMA_REG_ERROR), ==, code);
}

static void expect_fatal_eq(Flight *f)
{
    expect_fatal(f, QRDMA_FATAL_EQ_DMA);
}

static void expect_fatal_command(Flight *f)
{
    expect_fatal(f, QRDMA_FATAL_COMMAND_RING_DMA);
}

static const Victim victims[] = {
    { "target", page_target, .expect = expect_remote },
    { "source", page_source, .expect = expect_local },
    { "table", page_table, .listed = true, .expect = expect_table },
    { "send-ring", page_send_ring, .expect = expect_send_ring },
    { "receive-ring", page_receive_ring, .sends = true,
      .expect = expect_receive_ring },
    { "umr-ring", page_umr_ring, .expect = expect_umr_ring },
    { "cq", page_cq, .expect = expect_cq },
    { "eq", page_eq, .use = use_eq, .expect = expect_fatal_eq },
    { "async-eq", page_async_eq, .use = use_async_eq,
      .expect = expect_fatal_eq },
    { "command-ring", page_command_ring, .use = use_command,
      .expect = expect_fatal_command },
};

static void test_taken_away(const void *data)
{
    uint8_t before[QRDMA_PAGE], after[QRDMA_PAGE];
    uint64_t page;
    QDict *report;
    Flight f;

    flight_start(&f, data);
    page = f.victim->page(&f);
    iommu_set_page(&f.m, &f.iommu, page, false);
    if (f.victim->use) {
        f.victim->use(&f);
    }
    qtest_memread(f.m.qts, page, before, sizeof(before));
    run(&f.m, TRANSFERS * LENGTH / KiB + 100);
    f.victim->expect(&f);
    qtest_memread(f.m.qts, page, after, sizeof(after));
    g_assert_cmpmem(after, sizeof(after), before, sizeof(before));
    report = qrdma_audit_report(&f.m.card);
    qrdma_audit_assert_clean(report);
    qobject_unref(report);

    iommu_set_page(&f.m, &f.iommu, page, true);
    qrdma_bench_init(&f.bench, &f.m.card);
    assert_works(&f.m, &f.bench);
    qrdma_machine_stop(&f.m);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("qrdma-iommu/off", test_off);
    qtest_add_func("qrdma-iommu/blocks", test_blocks);
    qtest_add_func("qrdma-iommu/maps", test_maps);
    for (unsigned i = 0; i < G_N_ELEMENTS(victims); i++) {
        g_autofree char *name = g_strdup_printf("qrdma-iommu/taken-away/%s",
                                                victims[i].name);

        qtest_add_data_func(name, &victims[i], test_taken_away);
    }
    return g_test_run();
}
