/*
 * qrdma: every kind of memory that the card reads or writes, in every place
 * that is none. Each is refused in the way the specification says, nothing of
 * it is taken, and everything else works.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP           "qrdma-places"
#define RAM_END         (128 * MiB)     /* of the machine that qgraph starts */
#define OTHER_SLOT      9               /* another device's; its BAR 0 */
#define OTHER_DEVICE    " -device pci-testdev,addr=09.0"
#define MSIX_BAR        4

#define REMOTE          2               /* indices of mkeys */
#define AFTERWARDS      3
#define NUMBER          20              /* of the queue that is in question */
#define CQ_NUMBER       21

/* ------------------------------------------------------------------ places */

static uint64_t bar_of_other(QRdma *q)
{
    QPCIDevice *other = qpci_device_find(q->pci.bus, QPCI_DEVFN(OTHER_SLOT, 0));
    uint64_t address;

    g_assert_nonnull(other);
    address = qpci_iomap(other, 0, NULL).addr;
    qpci_device_enable(other);
    g_free(other);
    return address;
}

typedef enum Place {
    NOTHING_THERE,
    REGISTERS,
    DOORBELLS,
    MSIX_TABLE,
    OTHER_BAR,
    END_OF_RAM,                         /* the second page is beyond it */
    END_OF_ADDRESSES,                   /* the last page that there can be */
    PLACES
} Place;

static const char *const place_names[PLACES] = {
    "nothing-there", "registers", "doorbells", "msix-table", "other-bar",
    "end-of-ram", "end-of-addresses",
};

/* Where it is. A page; of the end of RAM it is the last good one. */
static uint64_t place_address(QRdma *q, Place place)
{
    switch (place) {
    case NOTHING_THERE:
        return 0x200000000000ull;
    case REGISTERS:
        return q->registers.addr;
    case DOORBELLS:
        return q->doorbells.addr;
    case MSIX_TABLE:
        return qpci_iomap(&q->pci, MSIX_BAR, NULL).addr;
    case OTHER_BAR:
        return bar_of_other(q);
    case END_OF_RAM:
        return RAM_END - QRDMA_PAGE;
    default:
        return 0xfffffffffffff000ull;
    }
}

/* Bytes of a place that are memory. */
static uint32_t good_bytes(Place place)
{
    return place == END_OF_RAM ? QRDMA_PAGE : 0;
}

/* ------------------------------------------------------------ what follows */

static void expect_queue_error(QRdmaBench *bench, enum qrdma_event type,
                               uint32_t number, enum qrdma_queue_error error)
{
    struct qrdma_eqe eqe = qrdma_eq_expect(bench->q, &bench->async, type);

    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, number);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, error);
}

static void expect_access_error(QRdmaBench *bench, uint64_t address)
{
    struct qrdma_eqe eqe = qrdma_eq_expect(bench->q, &bench->async,
                                           QRDMA_EVENT_QP_ACCESS_ERROR);

    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_DMA);
    g_assert_cmphex(le64_to_cpu(eqe.address), ==, address);
}

/* The card has stopped for this reason, and starts again. */
static void expect_fatal(QRdmaBench *bench, enum qrdma_fatal_code error)
{
    QRdma *q = bench->q;

    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS) & QRDMA_CARD_FATAL, !=,
                    0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==, error);
    qrdma_bench_init(bench, q);
}

/* ------------------------------------------------------------------- rings */

/* Two pages of entries. No ring may go past the last address: there, one. */
static QRdmaRing bad_ring(Place place, uint64_t address, unsigned log_stride)
{
    unsigned log_size = place == END_OF_ADDRESSES ? 12 : 13;

    return (QRdmaRing) { address, log_size - log_stride, log_stride };
}

/* The first entry that is no memory. */
static uint32_t first_bad(Place place, const QRdmaRing *ring)
{
    return good_bytes(place) >> ring->log_stride;
}

static void run_command_ring(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;

    /* It has one page. */
    address += good_bytes(place);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
    qrdma_settle(q);
    qrdma_write64(q, QRDMA_REG_COMMAND_RING, address);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, 1);
    expect_fatal(bench, QRDMA_FATAL_COMMAND_RING_DMA);
}

static void create_cq(QRdmaBench *bench, const QRdmaRing *ring, uint32_t number)
{
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(1) };

    cqc.ring = qrdma_ring_describe(ring);
    qrdma_command_ok(bench->q, QRDMA_CMD_CREATE_CQ, number, &cqc, sizeof(cqc),
                     NULL, 0);
}

/* Completions of a queue of NOPs, consumed as they come. */
static void run_cq(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaCq cq = {
        .number = CQ_NUMBER,
        .ring = bad_ring(place, address, QRDMA_CQE_LOG_SIZE),
    };
    QRdmaQp qp = bench->umr;
    struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(bench->local_key) };

    create_cq(bench, &cq.ring, cq.number);
    qp.number = NUMBER;
    qp.send_cq = qp.receive_cq = &cq;
    qp.send.address = 0;
    qrdma_qp_create(q, &qp);
    qrdma_qp_connect(q, &qp, 0, 0);
    for (uint32_t i = 0; i < first_bad(place, &cq.ring); i++) {
        qrdma_post_umr(q, &qp, wqe, NULL, 0);
        qrdma_cq_expect(q, &cq, QRDMA_CQE_SUCCESS);
    }
    qrdma_post_umr(q, &qp, wqe, NULL, 0);
    expect_queue_error(bench, QRDMA_EVENT_CQ_ERROR, cq.number,
                       QRDMA_QUEUE_ERROR_DMA);
    expect_queue_error(bench, QRDMA_EVENT_QP_ERROR, qp.number,
                       QRDMA_QUEUE_ERROR_CQ);
}

/* Events of a CQ, consumed as they come. What has no room ends the card. */
static void run_eq(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaEq eq = {
        .number = 3,
        .ring = bad_ring(place, address, QRDMA_EQE_LOG_SIZE),
    };
    struct qrdma_send_wqe nop = { .opcode = QRDMA_SEND_OP_NOP };
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(eq.number) };
    struct qrdma_eqc eqc = { 0 };

    eqc.ring = qrdma_ring_describe(&eq.ring);
    qrdma_command_ok(q, QRDMA_CMD_CREATE_EQ, eq.number, &eqc, sizeof(eqc),
                     NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_MODIFY_CQ, bench->cq_a.number, &cqc,
                     sizeof(cqc), NULL, 0);
    for (uint32_t i = 0; i <= first_bad(place, &eq.ring); i++) {
        qrdma_cq_doorbell(q, &bench->cq_a, QRDMA_DOORBELL_ARM_NEXT);
        qrdma_post(q, &bench->a, nop, NULL, 0);
        if (i < first_bad(place, &eq.ring)) {
            qrdma_cq_expect(q, &bench->cq_a, QRDMA_CQE_SUCCESS);
            qrdma_eq_expect(q, &eq, QRDMA_EVENT_COMPLETION);
        }
    }
    expect_fatal(bench, QRDMA_FATAL_EQ_DMA);
}

/* A queue pair like one, but for a ring of its and its CQ; in RTS. */
static QRdmaQp odd_qp(QRdmaBench *bench, QRdmaCq *cq, const QRdmaQp *like,
                      const QRdmaRing *send, const QRdmaRing *receive)
{
    QRdmaQp qp = *like;

    qrdma_cq_create(bench->q, cq, CQ_NUMBER, 9, 1);
    qp.send_cq = qp.receive_cq = cq;
    qp.number = NUMBER;
    qp.send_producer = qp.receive_producer = 0;
    qp.send.address = 0;
    if (qp.receive.log_stride) {
        qp.receive.address = 0;
    }
    if (send) {
        qp.send = *send;
    }
    if (receive) {
        qp.receive = *receive;
    }
    qrdma_qp_create(bench->q, &qp);
    qrdma_qp_connect(bench->q, &qp, bench->b.number, 0);
    return qp;
}

/* All WQEs up to the first bad one are NOPs. */
static void run_send_ring(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaCq cq = { 0 };
    QRdmaRing ring = bad_ring(place, address, bench->a.send.log_stride);
    QRdmaQp qp = odd_qp(bench, &cq, &bench->a, &ring, NULL);
    struct qrdma_send_wqe nop = { .opcode = QRDMA_SEND_OP_NOP };

    for (uint32_t i = 0; i < first_bad(place, &ring); i++) {
        qrdma_post(q, &qp, nop, NULL, 0);
        qrdma_cq_expect(q, qp.send_cq, QRDMA_CQE_SUCCESS);
    }
    qp.send_producer++;
    qrdma_send_ring(q, &qp);
    expect_queue_error(bench, QRDMA_EVENT_QP_ERROR, qp.number,
                       QRDMA_QUEUE_ERROR_DMA);
}

static void run_umr_ring(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaCq cq = { 0 };
    QRdmaRing ring = bad_ring(place, address, bench->umr.send.log_stride);
    QRdmaQp qp = odd_qp(bench, &cq, &bench->umr, &ring, NULL);
    struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(bench->local_key) };

    for (uint32_t i = 0; i < first_bad(place, &ring); i++) {
        qrdma_post_umr(q, &qp, wqe, NULL, 0);
        qrdma_cq_expect(q, qp.send_cq, QRDMA_CQE_SUCCESS);
    }
    qp.send_producer++;
    qrdma_send_ring(q, &qp);
    expect_queue_error(bench, QRDMA_EVENT_QP_ERROR, qp.number,
                       QRDMA_QUEUE_ERROR_DMA);
}

/* What b receives into, sent by a queue pair that is its peer for once. */
static void run_receive_ring(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaCq cq = { 0 };
    QRdmaRing ring = bad_ring(place, address, bench->b.receive.log_stride);
    QRdmaQp qp = odd_qp(bench, &cq, &bench->b, NULL, &ring);
    struct qrdma_send_wqe send = { .opcode = QRDMA_SEND_OP_SEND };

    qrdma_qp_to(q, &bench->a, QRDMA_QP_RESET);
    qrdma_qp_connect(q, &bench->a, qp.number, 0);
    qrdma_qp_to(q, &qp, QRDMA_QP_RESET);
    qrdma_qp_connect(q, &qp, bench->a.number, 0);
    for (uint32_t i = 0; i < first_bad(place, &ring); i++) {
        qrdma_post_receive(q, &qp, NULL, 0);
        qrdma_post(q, &bench->a, send, NULL, 0);
        qrdma_cq_expect(q, &bench->cq_a, QRDMA_CQE_SUCCESS);
        qrdma_cq_expect(q, qp.receive_cq, QRDMA_CQE_SUCCESS);
    }
    qp.receive_producer++;
    qrdma_ring_doorbell(q, qp.page, QRDMA_DOORBELL_RECEIVE, qp.number,
                        qp.receive_producer);
    qrdma_post(q, &bench->a, send, NULL, 0);
    expect_queue_error(bench, QRDMA_EVENT_QP_ERROR, qp.number,
                       QRDMA_QUEUE_ERROR_DMA);
    qrdma_bench_reconnect(bench);
}

/* ---------------------------------------------------------------- payloads */

/* Where 128 bytes begin of which the second half, or all, are no memory. */
static uint64_t across(Place place, uint64_t address)
{
    return good_bytes(place) ? address + good_bytes(place) - 64 : address;
}

static uint32_t remote_key(QRdmaBench *bench)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);

    return qrdma_bench_mkey(bench, REMOTE, &mkc);
}

static void run_local(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
    uint64_t start = across(place, address);
    uint32_t key = remote_key(bench);

    g_assert_cmpint(qrdma_bench_write(bench, start, memory, key, 128), ==,
                    QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    expect_access_error(bench, start);
    qrdma_bench_reconnect(bench);
}

static void run_remote(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
    uint64_t start = across(place, address);
    uint32_t key = remote_key(bench);

    g_assert_cmpint(qrdma_bench_write(bench, memory, start, key, 128), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_access_error(bench, start);
    qrdma_bench_reconnect(bench);
    g_assert_cmpint(qrdma_bench_read(bench, memory, start, key, 128), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_access_error(bench, start);
    qrdma_bench_reconnect(bench);
}

static void run_atomic(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, QRDMA_PAGE);
    uint64_t word = address + good_bytes(place);
    struct qrdma_sge sge = qrdma_sge(memory, sizeof(word), bench->local_key);
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_FETCH_ADD,
        .remote_address = cpu_to_le64(word),
        .remote_key = cpu_to_le32(remote_key(bench)),
        .swap_or_add = cpu_to_le64(1),
    };

    qrdma_write_pattern(q, memory, sizeof(word), 1);
    qrdma_post(q, &bench->a, wqe, &sge, 1);
    qrdma_cq_expect(q, &bench->cq_a, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    expect_access_error(bench, word);
    qrdma_assert_pattern(q, memory, sizeof(word), 1);
    qrdma_bench_reconnect(bench);
}

/* --------------------------------------------------- commands and UMR data */

static void run_command_data(QRdmaBench *bench, Place place, uint64_t address)
{
    uint64_t bad = address + good_bytes(place);
    static const struct {
        enum qrdma_command_opcode opcode;
        uint32_t input, output;
    } commands[] = {
        { QRDMA_CMD_ADD_SD, sizeof(struct qrdma_sd), 0 },
        { QRDMA_CMD_QUERY_DEVICE, 0, sizeof(struct qrdma_device_limits) },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
        struct qrdma_command command = {
            .opcode = cpu_to_le16(commands[i].opcode),
            .input_length = cpu_to_le32(commands[i].input),
            .output_length = cpu_to_le32(commands[i].output),
            .input = cpu_to_le64(commands[i].input ? bad : 0),
            .output = cpu_to_le64(commands[i].output ? bad : 0),
        };

        qrdma_command_post(bench->q, &command);
        g_assert_cmpint(qrdma_command_wait(bench->q), ==,
                        QRDMA_STATUS_DMA_ERROR);
    }
}

static void run_umr_data(QRdmaBench *bench, Place place, uint64_t address)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(5, QRDMA_TEST_PD, 1, 12, 0x1000,
                                           16 * QRDMA_PAGE, 0, 16);
    struct qrdma_umr_wqe wqe = {
        .table_address = cpu_to_le64(across(place, address)),
        .table_length = cpu_to_le32(128),
    };

    qrdma_add_direct_sd(bench->q, 0);
    wqe.key = cpu_to_le32(qrdma_bench_mkey(bench, 5, &mkc));
    g_assert_cmpint(qrdma_bench_umr(bench, wqe, NULL, 0), ==,
                    QRDMA_STATUS_DMA_ERROR);
    qrdma_assert_zero(bench->q, qrdma_pble_address(bench->q, 0), 128);
    qrdma_bench_restart_umr(bench);
}

/* ------------------------------------------------------------- PBLE memory */

static void run_sd(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    struct qrdma_sd sd = {
        .address = cpu_to_le64(address + good_bytes(place)),
        .type = cpu_to_le32(QRDMA_SD_PAGED),
    };

    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_ADD_SD, 1, &sd, sizeof(sd),
                                  NULL, 0), ==, QRDMA_STATUS_DMA_ERROR);
}

/* PBLEs 0 to 511 are on one page, those that follow on another. */
static void add_pages(QRdma *q, uint64_t first, uint64_t others)
{
    uint64_t list = qrdma_alloc(q, QRDMA_PAGE);
    struct qrdma_sd sd = {
        .address = cpu_to_le64(list), .type = cpu_to_le32(QRDMA_SD_PAGED),
    };

    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        qtest_writeq(q->qts, list + i * 8, i ? others : first);
    }
    qrdma_command_ok(q, QRDMA_CMD_ADD_SD, 0, &sd, sizeof(sd), NULL, 0);
}

/* A key whose table, or root, is at PBLE 0: no access goes through. */
static uint32_t access_in_vain(QRdmaBench *bench, unsigned level)
{
    QRdma *q = bench->q;
    uint64_t memory = qrdma_alloc(q, QRDMA_PAGE);
    struct qrdma_mkc mkc = qrdma_mkc_table(5, QRDMA_TEST_PD, level, 12, 0x1000,
                                           8 * QRDMA_PAGE, 0, 8);
    uint32_t key = qrdma_bench_mkey(bench, 5, &mkc);
    struct qrdma_eqe eqe;

    g_assert_cmpint(qrdma_bench_write(bench, memory, 0x1000, key, 64), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = qrdma_eq_expect(q, &bench->async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_HMC);
    qrdma_bench_reconnect(bench);
    return key;
}

/* It was there when the UMR was checked: only writing fails, too late. */
static void write_table_in_vain(QRdmaBench *bench, uint32_t key)
{
    struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(key) };
    uint64_t unit[8] = { 0 };

    qrdma_post_umr(bench->q, &bench->umr, wqe, unit, sizeof(unit));
    expect_fatal(bench, QRDMA_FATAL_HMC_DMA);
}

static void run_table(QRdmaBench *bench, Place place, uint64_t address)
{
    uint64_t bad = address + good_bytes(place);

    add_pages(bench->q, bad, bad);
    write_table_in_vain(bench, access_in_vain(bench, 1));
}

/* A UMR that cannot read the root is refused: nothing was written yet. */
static void run_root(QRdmaBench *bench, Place place, uint64_t address)
{
    struct qrdma_umr_wqe wqe = { 0 };
    uint64_t unit[8] = { 0 };

    add_pages(bench->q, address + good_bytes(place),
              qrdma_alloc(bench->q, QRDMA_PAGE));
    wqe.key = cpu_to_le32(access_in_vain(bench, 2));
    g_assert_cmpint(qrdma_bench_umr(bench, wqe, unit, sizeof(unit)), ==,
                    QRDMA_STATUS_HMC_ERROR);
    qrdma_bench_restart_umr(bench);
}

static void run_leaf(QRdmaBench *bench, Place place, uint64_t address)
{
    uint64_t root = qrdma_alloc(bench->q, QRDMA_PAGE);

    qtest_writeq(bench->q->qts, root, QRDMA_LEAF_PBLES | QRDMA_ROOT_VALID);
    add_pages(bench->q, root, address + good_bytes(place));
    write_table_in_vain(bench, access_in_vain(bench, 2));
}

/* Pages of a ring. Its number is free afterwards, and its segment. */
static void run_ring_table(QRdmaBench *bench, Place place, uint64_t address)
{
    QRdma *q = bench->q;
    QRdmaRing ring = { 0, 6, QRDMA_CQE_LOG_SIZE };
    struct qrdma_cqc cqc = { .eqn = cpu_to_le32(1) };
    QRdmaCq cq = { 0 };

    add_pages(q, address + good_bytes(place), address + good_bytes(place));
    cqc.ring = qrdma_ring_describe(&ring);
    cqc.ring.level = 1;
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, CQ_NUMBER, &cqc,
                                  sizeof(cqc), NULL, 0), ==,
                    QRDMA_STATUS_HMC_ERROR);
    qrdma_cq_create(q, &cq, CQ_NUMBER, 6, 1);
    qrdma_command_ok(q, QRDMA_CMD_REMOVE_SD, 0, NULL, 0, NULL, 0);
}

/* ------------------------------------------------------------------- table */

typedef struct Kind {
    const char *name;
    void (*run)(QRdmaBench *bench, Place place, uint64_t address);
} Kind;

static const Kind kinds[] = {
    { "command-ring", run_command_ring },
    { "command-data", run_command_data },
    { "cq", run_cq },
    { "eq", run_eq },
    { "send-ring", run_send_ring },
    { "umr-ring", run_umr_ring },
    { "receive-ring", run_receive_ring },
    { "local-payload", run_local },
    { "remote-payload", run_remote },
    { "atomic", run_atomic },
    { "umr-data", run_umr_data },
    { "segment", run_sd },
    { "table", run_table },
    { "root", run_root },
    { "leaf", run_leaf },
    { "ring-table", run_ring_table },
};

static void test_kind(void *obj, void *data, QGuestAllocator *alloc)
{
    const Kind *kind = data;
    QRdma *q = obj;

    for (Place place = 0; place < PLACES; place++) {
        QRdmaBench bench;

        g_test_message("%s: %s", kind->name, place_names[place]);
        qrdma_bench_init(&bench, q);
        kind->run(&bench, place, place_address(q, place));
        qrdma_bench_assert_works(&bench, AFTERWARDS);
    }
}

static void *add_other_device(GString *command_line, void *data)
{
    g_string_append(command_line, OTHER_DEVICE);
    return data;
}

static void register_places_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        qos_add_test(kinds[i].name, GROUP, test_kind,
                     &(QOSGraphTestOptions) {
                         .before = add_other_device,
                         .arg = (void *)&kinds[i],
                     });
    }
}

libqos_init(register_places_tests);
