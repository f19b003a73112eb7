/*
 * All that a qrdma card can have in flight, for tests of how it ends.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/cutils.h"
#include "qrdma-flight.h"
#include "qrdma-verify.h"

#define REMOTE          2       /* mkeys */
#define ABSENT          3
#define LATE            4
#define DELAYED         5
#define POSTED          6
#define ABSENT_PBLE     1024
#define ABSENT_START    0x10000000
#define REMOTE_PBLE     2048
#define REMOTE_START    0x20000000
#define VECTORS         4
#define LOG_ENTRIES     7       /* of the EQ of asynchronous events */
#define IDLE_QP         20
#define NO_QP           999

#define ALL_TRANSFERS   (QRDMA_FLIGHT_TRANSFERS + QRDMA_FLIGHT_MORE)
#define TARGET_BYTES    (ALL_TRANSFERS * QRDMA_FLIGHT_LENGTH)
#define STEPS           20000   /* in which all transfers are over */
#define OWN_RANGES      3       /* the last ones: what the test writes, too */

/* ------------------------------------------------------------------ machine */

void qrdma_flight_find(QRdmaFlight *f)
{
    f->m.card.pci.msix_enabled = false;
    if (f->behind_port) {
        qrdma_machine_card(&f->m, qrdma_machine_open_root_port(&f->m), 0);
    } else {
        qrdma_machine_card(&f->m, 0, QRDMA_TEST_SLOT);
    }
}

void qrdma_flight_catch_interrupts(QRdmaFlight *f)
{
    for (unsigned i = 0; i < VECTORS; i++) {
        qrdma_msix_point(&f->m.card, i, f->messages + 4 * i,
                         QRDMA_TEST_MSI_DATA);
        qrdma_msix_mask(&f->m.card, i, false);
    }
}

/* A key with a table, the changes of which the audit watches. */
static void make_key(QRdmaFlight *f)
{
    unsigned pages = TARGET_BYTES / QRDMA_PAGE;
    struct qrdma_mkc mkc = qrdma_mkc_table(REMOTE, QRDMA_TEST_PD, 1, 12,
                                           REMOTE_START, TARGET_BYTES,
                                           REMOTE_PBLE, pages);

    qrdma_add_direct_sd(&f->m.card, 0);
    for (unsigned i = 0; i < pages; i++) {
        qrdma_pble_write(&f->m.card, REMOTE_PBLE + i,
                         (f->target + i * QRDMA_PAGE) | QRDMA_PBLE_READ |
                         QRDMA_PBLE_WRITE);
    }
    f->key = qrdma_bench_mkey(&f->bench, REMOTE, &mkc);
}

/* QP b sends to a page that is absent, and may come. */
static void suspend_sender(QRdmaFlight *f)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(ABSENT, QRDMA_TEST_PD, 1, 12,
                                           ABSENT_START, 8 * QRDMA_PAGE,
                                           ABSENT_PBLE, 8);
    struct qrdma_sge sge = qrdma_sge(f->source, 64, f->bench.local_key);
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };

    mkc.flags |= cpu_to_le32(QRDMA_MKEY_ON_DEMAND);
    wqe.remote_address = cpu_to_le64(ABSENT_START);
    wqe.remote_key = cpu_to_le32(qrdma_bench_mkey(&f->bench, ABSENT, &mkc));
    qrdma_post(&f->m.card, &f->bench.b, wqe, &sge, 1);
    qrdma_settle(&f->m.card);
}

/* It has nothing to wait for: what is posted to it is done at once. */
static void make_idle(QRdmaFlight *f)
{
    f->idle = f->bench.b;
    f->idle.number = IDLE_QP;
    f->idle.send.address = 0;
    f->idle.receive.address = 0;
    qrdma_qp_create(&f->m.card, &f->idle);
    qrdma_qp_connect(&f->m.card, &f->idle, f->bench.a.number, 0);
}

/* A doorbell of a QP that there is not is remembered in the status. */
static void set_sticky_status(QRdmaFlight *f)
{
    qrdma_ring_doorbell(&f->m.card, 0, QRDMA_DOORBELL_SEND, NO_QP, 1);
    g_assert_cmphex(qrdma_read32(&f->m.card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);
}

void qrdma_flight_init(QRdmaFlight *f, const char *arguments,
                       bool behind_port)
{
    QRdma *q = &f->m.card;

    *f = (QRdmaFlight) { .behind_port = behind_port };
    qrdma_machine_start(&f->m, arguments);
    qrdma_flight_find(f);
    qrdma_bench_init(&f->bench, q);
    f->source = qrdma_alloc(q, QRDMA_FLIGHT_LENGTH);
    f->target = qrdma_alloc(q, TARGET_BYTES);
    f->messages = qrdma_alloc(q, QRDMA_PAGE);
    qrdma_write_pattern(q, f->source, QRDMA_FLIGHT_LENGTH, 1);
    make_key(f);
    make_idle(f);
    suspend_sender(f);
    set_sticky_status(f);
    qrdma_flight_catch_interrupts(f);
}

static void forget_ranges(QRdmaFlight *f)
{
    for (unsigned i = 0; i < QRDMA_FLIGHT_RANGES; i++) {
        g_clear_pointer(&f->before[i].bytes, g_free);
    }
}

void qrdma_flight_end(QRdmaFlight *f)
{
    forget_ranges(f);
    qrdma_machine_stop(&f->m);
}

/* ---------------------------------------------------------------- held back */

static void hold(QRdmaFlight *f, enum qrdma_fault_target target,
                 enum qrdma_fault_action action, uint32_t opcode)
{
    QRdmaFault fault = {
        .target = target,
        .action = action,
        .opcode = opcode,
        .delay = QRDMA_FLIGHT_HELD,
    };

    qrdma_fault_arm_registers(&f->m.card, &fault);
}

static void assert_held(QRdmaFlight *f, unsigned count)
{
    qrdma_settle(&f->m.card);
    g_assert_cmpuint(qrdma_read32(&f->m.card, QRDMA_REG_FAULT_ARMED), ==, 0);
    g_assert_cmpuint(qrdma_read32(&f->m.card, QRDMA_REG_FAULT_HELD), ==,
                     count);
}

static struct qrdma_umr_wqe read_right(QRdmaFlight *f, bool granted)
{
    return (struct qrdma_umr_wqe) {
        .key = cpu_to_le32(f->key),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_REMOTE_READ),
        .mkc.flags = cpu_to_le32(granted ? QRDMA_MKEY_REMOTE_READ : 0),
    };
}

void qrdma_flight_hold(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;

    hold(f, QRDMA_FAULT_EVENT, QRDMA_FAULT_DELAY, QRDMA_EVENT_COMPLETION);
    qrdma_cq_doorbell(q, &f->bench.cq_umr, QRDMA_DOORBELL_ARM_NEXT);
    g_assert_cmpint(qrdma_bench_umr(&f->bench, read_right(f, true), NULL, 0),
                    ==, QRDMA_STATUS_OK);
    assert_held(f, 1);

    hold(f, QRDMA_FAULT_COMPLETION, QRDMA_FAULT_DELAY, 0);
    qrdma_post(q, &f->bench.a,
               (struct qrdma_send_wqe) { .opcode = QRDMA_SEND_OP_NOP },
               NULL, 0);
    assert_held(f, 2);
    f->held = 2;
}

static void post_create(QRdmaFlight *f, uint32_t index)
{
    QRdma *q = &f->m.card;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(index, QRDMA_TEST_PD);
    struct qrdma_command command = {
        .opcode = cpu_to_le16(QRDMA_CMD_CREATE_MKEY),
        .number = cpu_to_le32(index),
        .input = cpu_to_le64(q->command_input),
        .input_length = cpu_to_le32(sizeof(mkc)),
    };

    qtest_memwrite(q->qts, q->command_input, &mkc, sizeof(mkc));
    qrdma_command_post(q, &command);
}

void qrdma_flight_hold_commands(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;
    uint32_t held = qrdma_read32(q, QRDMA_REG_FAULT_HELD);

    hold(f, QRDMA_FAULT_COMMAND, QRDMA_FAULT_LATE, QRDMA_CMD_CREATE_MKEY);
    post_create(f, LATE);
    g_assert_cmpint(qrdma_command_wait(q), ==, QRDMA_STATUS_OK);
    assert_held(f, held + 1);

    hold(f, QRDMA_FAULT_COMMAND, QRDMA_FAULT_DELAY, QRDMA_CMD_CREATE_MKEY);
    post_create(f, DELAYED);
    assert_held(f, held + 1);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==,
                     q->command_producer - 1);
}

/* ------------------------------------------------------------------ traffic */

static void arm(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;

    qrdma_cq_doorbell(q, &f->bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_cq_doorbell(q, &f->bench.cq_umr, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_doorbell(q, &f->bench.completion, QRDMA_DOORBELL_ARM_NEXT);
    qrdma_eq_doorbell(q, &f->bench.async, QRDMA_DOORBELL_ARM_NEXT);
}

/* To the next part of the target. */
static void post_transfer(QRdmaFlight *f)
{
    uint64_t target = REMOTE_START + f->transfers++ * QRDMA_FLIGHT_LENGTH;
    struct qrdma_sge sge = qrdma_sge(f->source, QRDMA_FLIGHT_LENGTH,
                                     f->bench.local_key);
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .remote_address = cpu_to_le64(target),
        .remote_key = cpu_to_le32(f->key),
    };

    g_assert_cmpuint(f->transfers, <=, ALL_TRANSFERS);
    qrdma_post(&f->m.card, &f->bench.a, wqe, &sge, 1);
}

static void post_umr(QRdmaFlight *f)
{
    qrdma_post_umr(&f->m.card, &f->bench.umr, read_right(f, f->umrs++ % 2),
                   NULL, 0);
}

static void post_nops(QRdmaFlight *f)
{
    struct qrdma_send_wqe nop = { .opcode = QRDMA_SEND_OP_NOP };

    for (unsigned i = 0; i < QRDMA_FLIGHT_NOPS; i++) {
        qrdma_post(&f->m.card, &f->idle, nop, NULL, 0);
        f->nops++;
    }
}

/* The UMRs wait for the packet that is in flight through the same key. */
void qrdma_flight_traffic(QRdmaFlight *f, unsigned packets)
{
    QRdma *q = &f->m.card;

    arm(f);
    for (unsigned i = 0; i < QRDMA_FLIGHT_TRANSFERS; i++) {
        post_transfer(f);
    }
    qrdma_settle(q);
    for (unsigned i = 0; i < QRDMA_FLIGHT_UMRS; i++) {
        post_umr(f);
    }
    for (unsigned i = 0; i < packets; i++) {
        qtest_clock_step(f->m.qts, QRDMA_FLIGHT_STEP);
        qrdma_settle(q);
    }
}

/* -------------------------------------------------------------------- quiet */

static void add_range(QRdmaFlight *f, unsigned *count, uint64_t address,
                      size_t length)
{
    g_assert_cmpuint(*count, <, QRDMA_FLIGHT_RANGES);
    f->before[*count].address = address;
    f->before[*count].length = length;
    (*count)++;
}

static void add_ring(QRdmaFlight *f, unsigned *count, const QRdmaRing *ring)
{
    add_range(f, count, ring->address,
              (size_t)1 << (ring->log_entries + ring->log_stride));
}

/* Payload, rings, commands, messages, and the table of the absent pages. */
static void list_ranges(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;
    unsigned count = 0;

    add_range(f, &count, f->target, TARGET_BYTES);
    add_range(f, &count, f->source, QRDMA_FLIGHT_LENGTH);
    add_range(f, &count, f->messages, QRDMA_PAGE);
    add_range(f, &count, qrdma_pble_address(q, ABSENT_PBLE), QRDMA_PAGE);
    add_range(f, &count, q->command_output, QRDMA_PAGE);
    add_ring(f, &count, &f->bench.cq_a.ring);
    add_ring(f, &count, &f->bench.cq_b.ring);
    add_ring(f, &count, &f->bench.cq_umr.ring);
    add_ring(f, &count, &f->bench.async.ring);
    add_ring(f, &count, &f->bench.completion.ring);
    add_range(f, &count, q->command_ring, QRDMA_PAGE);
    add_ring(f, &count, &f->bench.a.send);
    add_ring(f, &count, &f->bench.umr.send);
    g_assert_cmpuint(count, ==, QRDMA_FLIGHT_RANGES);
}

static void remember_from(QRdmaFlight *f, unsigned first)
{
    for (unsigned i = first; i < QRDMA_FLIGHT_RANGES; i++) {
        g_free(f->before[i].bytes);
        f->before[i].bytes = g_malloc(f->before[i].length);
        qtest_bufread(f->m.qts, f->before[i].address, f->before[i].bytes,
                      f->before[i].length);
    }
}

void qrdma_flight_remember(QRdmaFlight *f)
{
    size_t last = QRDMA_FLIGHT_TRANSFERS * QRDMA_FLIGHT_LENGTH - 1;

    list_ranges(f);
    qtest_memset(f->m.qts, f->messages, 0, QRDMA_PAGE);
    remember_from(f, 0);
    /* The test is none if all had been written before. */
    g_assert_cmpint(f->before[0].bytes[last], ==, 0);
}

static void assert_unchanged(QRdmaFlight *f)
{
    for (unsigned i = 0; i < QRDMA_FLIGHT_RANGES; i++) {
        size_t length = f->before[i].length;
        g_autofree uint8_t *after = g_malloc(length);

        qtest_bufread(f->m.qts, f->before[i].address, after, length);
        g_assert_cmpmem(after, length, f->before[i].bytes, length);
    }
}

/* The card may not be there, so it is memory that is read for a turn. */
static void let_time_pass(QRdmaFlight *f, int64_t nanoseconds)
{
    uint8_t byte;

    for (unsigned i = 0; i < 20; i++) {
        qtest_clock_step(f->m.qts, nanoseconds / 20);
        for (unsigned turn = 0; turn < 4; turn++) {
            qtest_memread(f->m.qts, f->target, &byte, 1);
        }
    }
}

void qrdma_flight_assert_quiet(QRdmaFlight *f)
{
    let_time_pass(f, QRDMA_FLIGHT_HELD / 5);
    assert_unchanged(f);
}

void qrdma_flight_assert_clean(QRdmaFlight *f, unsigned windows)
{
    QDict *report = qrdma_audit_report(&f->m.card);

    qrdma_audit_assert_clean(report);
    g_assert_cmpuint(qrdma_audit_counter(report, "windows"), >=, windows);
    g_assert_cmpuint(qrdma_audit_counter(report, "unwatched"), ==, 0);
    g_assert_cmpuint(qrdma_audit_counter(report, "unjudged"), ==, 0);
    qobject_unref(report);
}

/* ------------------------------------------------------------------ stopped */

void qrdma_flight_post_more(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;
    struct qrdma_sge sge = qrdma_sge(f->source, 64, f->bench.local_key);

    arm(f);
    for (unsigned i = 0; i < QRDMA_FLIGHT_MORE; i++) {
        post_transfer(f);
    }
    post_umr(f);
    post_nops(f);
    qrdma_post_receive(q, &f->bench.a, &sge, 1);
    post_create(f, POSTED);
    qrdma_settle(q);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==,
                     q->command_producer - 1);
    remember_from(f, QRDMA_FLIGHT_RANGES - OWN_RANGES);
}

/* So many successes. The clock and each look at the CQ give the card a turn. */
static void expect_completions(QRdmaFlight *f, QRdmaCq *cq, unsigned count)
{
    struct qrdma_cqe cqe;

    for (unsigned i = 0; i < STEPS && count; i++) {
        if (qrdma_cq_poll(&f->m.card, cq, &cqe)) {
            g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
            count--;
        } else {
            qtest_clock_step(f->m.qts, QRDMA_FLIGHT_STEP);
        }
    }
    g_assert_cmpuint(count, ==, 0);
    qrdma_cq_expect_none(&f->m.card, cq);
}

static void expect_interrupt(QRdmaFlight *f, const QRdmaEq *eq)
{
    uint32_t message;

    /* The bench has a vector for each EQ, of the same number. */
    qtest_memread(f->m.qts, f->messages + 4 * eq->number, &message, 4);
    g_assert_cmphex(le32_to_cpu(message), ==, QRDMA_TEST_MSI_DATA);
}

static void drain_events(QRdmaFlight *f, QRdmaEq *eq)
{
    struct qrdma_eqe eqe;

    while (qrdma_eq_poll(&f->m.card, eq, &eqe)) {
        ;
    }
}

static void expect_held(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;
    struct qrdma_eqe eqe;

    drain_events(f, &f->bench.completion);
    qtest_clock_step(f->m.qts, QRDMA_FLIGHT_HELD);
    expect_completions(f, &f->bench.cq_a, 1);
    eqe = qrdma_eq_expect(q, &f->bench.completion, QRDMA_EVENT_COMPLETION);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, f->bench.cq_umr.number);
    qrdma_eq_expect_none(q, &f->bench.completion);
}

void qrdma_flight_finish(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;
    struct qrdma_mkc mkc;

    g_assert_cmpint(qrdma_command_wait(q), ==, QRDMA_STATUS_OK);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_MKEY, POSTED, NULL, 0, &mkc,
                     sizeof(mkc));
    expect_completions(f, &f->bench.cq_a, f->transfers);
    expect_completions(f, &f->bench.cq_b, f->nops);
    expect_completions(f, &f->bench.cq_umr, f->umrs);
    expect_interrupt(f, &f->bench.completion);
    for (unsigned i = 0; i < f->transfers; i++) {
        qrdma_assert_pattern(q, f->target + i * QRDMA_FLIGHT_LENGTH,
                             QRDMA_FLIGHT_LENGTH, 1);
    }
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_HELD), ==, f->held);
    if (f->held) {
        expect_held(f);
    }
}

/* --------------------------------------------------------------- afterwards */

void qrdma_flight_assert_registers_new(QRdmaFlight *f)
{
    static const uint64_t zero[] = {
        QRDMA_REG_STATUS, QRDMA_REG_ERROR, QRDMA_REG_CONTROL,
        QRDMA_REG_COMMAND_RING, QRDMA_REG_COMMAND_RING + 4,
        QRDMA_REG_COMMAND_LOG_SIZE, QRDMA_REG_COMMAND_VECTOR,
        QRDMA_REG_COMMAND_CONSUMER, QRDMA_REG_FAULT_HELD,
    };

    g_assert_cmphex(qrdma_read32(&f->m.card, QRDMA_REG_ID), ==, QRDMA_ID);
    for (unsigned i = 0; i < G_N_ELEMENTS(zero); i++) {
        uint32_t value = qrdma_read32(&f->m.card, zero[i]);

        if (value) {
            g_test_message("register 0x%" PRIx64 " is not as new", zero[i]);
        }
        g_assert_cmphex(value, ==, 0);
    }
}

static void assert_no_mkey(QRdmaFlight *f, uint32_t index)
{
    struct qrdma_mkc mkc;

    g_assert_cmpint(qrdma_command(&f->m.card, QRDMA_CMD_QUERY_MKEY, index,
                                  NULL, 0, &mkc, sizeof(mkc)), ==,
                    QRDMA_STATUS_NO_OBJECT);
}

static void assert_no_objects(QRdmaFlight *f)
{
    static const struct {
        enum qrdma_command_opcode opcode;
        uint32_t number;
        size_t length;
    } objects[] = {
        { QRDMA_CMD_QUERY_EQ, QRDMA_ASYNC_EQN, sizeof(struct qrdma_eqc) },
        { QRDMA_CMD_QUERY_EQ, 1, sizeof(struct qrdma_eqc) },
        { QRDMA_CMD_QUERY_CQ, 0, sizeof(struct qrdma_cqc) },
        { QRDMA_CMD_QUERY_CQ, 1, sizeof(struct qrdma_cqc) },
        { QRDMA_CMD_QUERY_CQ, 2, sizeof(struct qrdma_cqc) },
        { QRDMA_CMD_QUERY_QP, 10, sizeof(struct qrdma_qpc) },
        { QRDMA_CMD_QUERY_QP, 11, sizeof(struct qrdma_qpc) },
        { QRDMA_CMD_QUERY_QP, 12, sizeof(struct qrdma_qpc) },
        { QRDMA_CMD_QUERY_QP, IDLE_QP, sizeof(struct qrdma_qpc) },
        { QRDMA_CMD_QUERY_MKEY, QRDMA_TEST_LOCAL, sizeof(struct qrdma_mkc) },
        { QRDMA_CMD_QUERY_MKEY, REMOTE, sizeof(struct qrdma_mkc) },
        { QRDMA_CMD_QUERY_MKEY, ABSENT, sizeof(struct qrdma_mkc) },
        { QRDMA_CMD_QUERY_MKEY, LATE, sizeof(struct qrdma_mkc) },
        { QRDMA_CMD_QUERY_MKEY, DELAYED, sizeof(struct qrdma_mkc) },
        { QRDMA_CMD_REMOVE_SD, 0, 0 },
    };
    uint8_t output[QRDMA_PAGE];

    for (unsigned i = 0; i < G_N_ELEMENTS(objects); i++) {
        g_assert_cmpint(qrdma_command(&f->m.card, objects[i].opcode,
                                      objects[i].number, NULL, 0, output,
                                      objects[i].length), ==,
                        QRDMA_STATUS_NO_OBJECT);
    }
}

/* Commands apart: the reader is one. */
static void assert_counters_new(QRdmaFlight *f)
{
    struct qrdma_counters counters;

    qrdma_command_ok(&f->m.card, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                     &counters, sizeof(counters));
    g_assert_cmpuint(le64_to_cpu(counters.commands), <=, 1);
    counters.commands = 0;
    g_assert_true(buffer_is_zero(&counters, sizeof(counters)));
}

void qrdma_flight_assert_objects_gone(QRdmaFlight *f)
{
    f->m.card.command_ring = 0;
    qrdma_enable(&f->m.card);
    assert_counters_new(f);
    assert_no_objects(f);
}

void qrdma_flight_assert_nothing_held(QRdmaFlight *f)
{
    QRdma *q = &f->m.card;

    qrdma_bench_build(&f->bench, q, LOG_ENTRIES);
    make_key(f);
    let_time_pass(f, 2 * QRDMA_FLIGHT_HELD);
    /* It looks at what is due when it works; a timer may be forgotten. */
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    assert_unchanged(f);
    qrdma_cq_expect_none(q, &f->bench.cq_a);
    qrdma_cq_expect_none(q, &f->bench.cq_b);
    qrdma_cq_expect_none(q, &f->bench.cq_umr);
    qrdma_eq_expect_none(q, &f->bench.async);
    qrdma_eq_expect_none(q, &f->bench.completion);
    assert_no_mkey(f, LATE);
    assert_no_mkey(f, DELAYED);
}

/* The part of the target that is written last is still zero. */
void qrdma_flight_assert_works(QRdmaFlight *f)
{
    unsigned last = ALL_TRANSFERS - 1;

    f->transfers = last;
    post_transfer(f);
    expect_completions(f, &f->bench.cq_a, 1);
    qrdma_assert_pattern(&f->m.card, f->target + last * QRDMA_FLIGHT_LENGTH,
                         QRDMA_FLIGHT_LENGTH, 1);
    g_assert_cmpint(qrdma_bench_umr(&f->bench, read_right(f, false), NULL, 0),
                    ==, QRDMA_STATUS_OK);
}
