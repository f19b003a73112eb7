/*
 * qrdma: fault injection: what each action does to each target, armed by the
 * registers and by QMP.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qrdma-queues.h"
#include "qrdma-verify.h"

#define GROUP       "qrdma-fault"
#define INDEX       2
#define OTHER       3
#define DELAY       1000        /* nanoseconds */
#define FIRST_PD    QRDMA_TEST_PD
#define SECOND_PD   8
#define THIRD_PD    9

/* A bench with a mkey of which UMRs change the PD. */
typedef struct Faulty {
    QRdmaBench bench;
    QRdma *q;
    uint64_t memory;            /* two pages */
} Faulty;

static void pass_delay(Faulty *f)
{
    qtest_clock_step(f->q->qts, DELAY);
    qrdma_settle(f->q);
}

static void assert_fatal(Faulty *f, enum qrdma_fatal_code code)
{
    qrdma_settle(f->q);
    g_assert_cmphex(qrdma_read32(f->q, QRDMA_REG_STATUS) & QRDMA_CARD_FATAL,
                    !=, 0);
    g_assert_cmpuint(qrdma_read32(f->q, QRDMA_REG_ERROR), ==, code);
}

/* ---------------------------------------------------------------- commands */

static void post_create(Faulty *f, uint32_t index)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(index, FIRST_PD);
    struct qrdma_command command = {
        .opcode = cpu_to_le16(QRDMA_CMD_CREATE_MKEY),
        .number = cpu_to_le32(index),
        .input = cpu_to_le64(f->q->command_input),
        .input_length = cpu_to_le32(sizeof(mkc)),
    };

    qtest_memwrite(f->q->qts, f->q->command_input, &mkc, sizeof(mkc));
    qrdma_command_post(f->q, &command);
}

static enum qrdma_status create(Faulty *f, uint32_t index)
{
    post_create(f, index);
    return qrdma_command_wait(f->q);
}

static bool exists(Faulty *f, uint32_t index)
{
    struct qrdma_mkc mkc;

    return qrdma_command(f->q, QRDMA_CMD_QUERY_MKEY, index, NULL, 0,
                         &mkc, sizeof(mkc)) == QRDMA_STATUS_OK;
}

static bool command_ended(Faulty *f)
{
    qrdma_settle(f->q);
    return qrdma_read32(f->q, QRDMA_REG_COMMAND_CONSUMER) ==
           f->q->command_producer;
}

static void command_fail(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_NO_RESOURCES);
    g_assert_false(exists(f, OTHER));
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_OK);
}

static void command_delay(Faulty *f)
{
    post_create(f, OTHER);
    g_assert_false(command_ended(f));
    pass_delay(f);
    g_assert_true(command_ended(f));
    g_assert_true(exists(f, OTHER));
}

static void command_drop(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_OK);
    g_assert_false(exists(f, OTHER));
}

static void command_late(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_OK);
    g_assert_false(exists(f, OTHER));
    pass_delay(f);
    g_assert_true(exists(f, OTHER));
}

static void command_duplicate(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_OK);
    qrdma_command_ok(f->q, QRDMA_CMD_DESTROY_MKEY, OTHER, NULL, 0, NULL, 0);
    g_assert_false(exists(f, OTHER));
    pass_delay(f);
    g_assert_true(exists(f, OTHER));
}

static void command_swap(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_OK);
    g_assert_false(exists(f, OTHER));
    g_assert_cmpint(create(f, OTHER + 1), ==, QRDMA_STATUS_OK);
    g_assert_true(exists(f, OTHER));
    g_assert_true(exists(f, OTHER + 1));
}

static void command_fatal(Faulty *f)
{
    g_assert_cmpint(create(f, OTHER), ==, QRDMA_STATUS_FATAL_STATE);
    assert_fatal(f, QRDMA_FATAL_INJECTED);
}

/* -------------------------------------------------------------------- UMRs */

static void post_pd(Faulty *f, uint32_t pd)
{
    struct qrdma_umr_wqe wqe = {
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_PD),
        .mkc.pd = cpu_to_le32(pd),
    };

    qrdma_post_umr(f->q, &f->bench.umr, wqe, NULL, 0);
}

static struct qrdma_cqe umr_end(Faulty *f)
{
    return qrdma_cq_expect(f->q, &f->bench.cq_umr, QRDMA_CQE_SUCCESS);
}

static void set_pd(Faulty *f, uint32_t pd)
{
    post_pd(f, pd);
    umr_end(f);
}

static uint32_t pd_of(Faulty *f)
{
    struct qrdma_mkc mkc;

    qrdma_command_ok(f->q, QRDMA_CMD_QUERY_MKEY, INDEX, NULL, 0,
                     &mkc, sizeof(mkc));
    return le32_to_cpu(mkc.pd);
}

static void umr_fail(Faulty *f)
{
    struct qrdma_cqe cqe;

    post_pd(f, SECOND_PD);
    cqe = qrdma_cq_expect(f->q, &f->bench.cq_umr, QRDMA_CQE_UMR_ERROR);
    g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, QRDMA_STATUS_INJECTED);
    g_assert_cmpuint(pd_of(f), ==, FIRST_PD);
    qrdma_bench_restart_umr(&f->bench);
    set_pd(f, SECOND_PD);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void umr_delay(Faulty *f)
{
    post_pd(f, SECOND_PD);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
    g_assert_cmpuint(pd_of(f), ==, FIRST_PD);
    pass_delay(f);
    umr_end(f);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void umr_drop(Faulty *f)
{
    set_pd(f, SECOND_PD);
    pass_delay(f);
    g_assert_cmpuint(pd_of(f), ==, FIRST_PD);
}

static void umr_late(Faulty *f)
{
    set_pd(f, SECOND_PD);
    g_assert_cmpuint(pd_of(f), ==, FIRST_PD);
    pass_delay(f);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void umr_duplicate(Faulty *f)
{
    set_pd(f, SECOND_PD);
    set_pd(f, THIRD_PD);
    g_assert_cmpuint(pd_of(f), ==, THIRD_PD);
    pass_delay(f);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void umr_swap(Faulty *f)
{
    set_pd(f, SECOND_PD);
    g_assert_cmpuint(pd_of(f), ==, FIRST_PD);
    set_pd(f, THIRD_PD);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void umr_fatal(Faulty *f)
{
    post_pd(f, SECOND_PD);
    assert_fatal(f, QRDMA_FATAL_INJECTED);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
}

/* ------------------------------------------------------------- completions */

static void completion_fail(Faulty *f)
{
    struct qrdma_eqe eqe;

    post_pd(f, SECOND_PD);
    eqe = qrdma_eq_expect(f->q, &f->bench.async, QRDMA_EVENT_CQ_ERROR);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, f->bench.cq_umr.number);
    g_assert_cmpuint(le16_to_cpu(eqe.syndrome), ==, QRDMA_QUEUE_ERROR_DMA);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
}

static void completion_delay(Faulty *f)
{
    post_pd(f, SECOND_PD);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
    pass_delay(f);
    umr_end(f);
}

static void completion_drop(Faulty *f)
{
    post_pd(f, SECOND_PD);
    pass_delay(f);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
    g_assert_cmpuint(pd_of(f), ==, SECOND_PD);
}

static void completion_duplicate(Faulty *f)
{
    struct qrdma_cqe first, second;

    post_pd(f, SECOND_PD);
    first = umr_end(f);
    pass_delay(f);
    second = umr_end(f);
    g_assert_cmpuint(second.wqe_counter, ==, first.wqe_counter);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
}

static void completion_swap(Faulty *f)
{
    struct qrdma_cqe first, second;

    post_pd(f, SECOND_PD);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
    post_pd(f, THIRD_PD);
    first = umr_end(f);
    second = umr_end(f);
    g_assert_cmpuint(le32_to_cpu(first.wqe_counter), ==,
                     le32_to_cpu(second.wqe_counter) + 1);
}

static void completion_fatal(Faulty *f)
{
    post_pd(f, SECOND_PD);
    assert_fatal(f, QRDMA_FATAL_INJECTED);
    qrdma_cq_expect_none(f->q, &f->bench.cq_umr);
}

/* ------------------------------------------------------------------ events */

/* The completion event of a UMR; of a write. */
static void cause_event(Faulty *f)
{
    qrdma_cq_doorbell(f->q, &f->bench.cq_umr, QRDMA_DOORBELL_ARM_NEXT);
    post_pd(f, SECOND_PD);
    qrdma_settle(f->q);
}

static void cause_other_event(Faulty *f)
{
    qrdma_cq_doorbell(f->q, &f->bench.cq_a, QRDMA_DOORBELL_ARM_NEXT);
    /* By a key whose PD the UMR has not changed. */
    g_assert_cmpint(qrdma_bench_write(&f->bench, f->memory,
                                      f->memory + QRDMA_PAGE,
                                      f->bench.local_key, 8), ==,
                    QRDMA_CQE_SUCCESS);
    qrdma_settle(f->q);
}

static void expect_event(Faulty *f, const QRdmaCq *cq)
{
    struct qrdma_eqe eqe = qrdma_eq_expect(f->q, &f->bench.completion,
                                           QRDMA_EVENT_COMPLETION);

    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, cq->number);
}

static void event_fail(Faulty *f)
{
    cause_event(f);
    assert_fatal(f, QRDMA_FATAL_EQ_DMA);
}

static void event_delay(Faulty *f)
{
    cause_event(f);
    qrdma_eq_expect_none(f->q, &f->bench.completion);
    pass_delay(f);
    expect_event(f, &f->bench.cq_umr);
}

static void event_drop(Faulty *f)
{
    cause_event(f);
    pass_delay(f);
    qrdma_eq_expect_none(f->q, &f->bench.completion);
    umr_end(f);
}

static void event_duplicate(Faulty *f)
{
    cause_event(f);
    expect_event(f, &f->bench.cq_umr);
    pass_delay(f);
    expect_event(f, &f->bench.cq_umr);
    qrdma_eq_expect_none(f->q, &f->bench.completion);
}

static void event_swap(Faulty *f)
{
    cause_event(f);
    qrdma_eq_expect_none(f->q, &f->bench.completion);
    cause_other_event(f);
    expect_event(f, &f->bench.cq_a);
    expect_event(f, &f->bench.cq_umr);
}

static void event_fatal(Faulty *f)
{
    cause_event(f);
    assert_fatal(f, QRDMA_FATAL_INJECTED);
}

/* --------------------------------------------------------------------- DMA */

/* The range is the second page of memory; the first is let pass. */
static void dma_read_fail(Faulty *f)
{
    g_assert_cmpint(qrdma_bench_write(&f->bench, f->memory + QRDMA_PAGE,
                                      f->memory, qrdma_key(INDEX), 64), ==,
                    QRDMA_CQE_LOCAL_PROTECTION_ERROR);
    qrdma_bench_reconnect(&f->bench);
    g_assert_cmpint(qrdma_bench_write(&f->bench, f->memory + QRDMA_PAGE,
                                      f->memory, qrdma_key(INDEX), 64), ==,
                    QRDMA_CQE_SUCCESS);
}

static void dma_write_fail(Faulty *f)
{
    qrdma_write_pattern(f->q, f->memory, 64, 3);
    g_assert_cmpint(qrdma_bench_write(&f->bench, f->memory,
                                      f->memory + QRDMA_PAGE,
                                      qrdma_key(INDEX), 64), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    qrdma_assert_zero(f->q, f->memory + QRDMA_PAGE, 64);
    qrdma_bench_reconnect(&f->bench);
    g_assert_cmpint(qrdma_bench_write(&f->bench, f->memory,
                                      f->memory + QRDMA_PAGE,
                                      qrdma_key(INDEX), 64), ==,
                    QRDMA_CQE_SUCCESS);
}

/* -------------------------------------------------- each target and action */

typedef struct FaultTest {
    const char *name;
    QRdmaFault fault;           /* of DMA: without the range */
    void (*shows)(Faulty *f);
} FaultTest;

#define COMMAND(action_, ...) \
    { .target = QRDMA_FAULT_COMMAND, .action = QRDMA_FAULT_##action_, \
      .opcode = QRDMA_CMD_CREATE_MKEY, ##__VA_ARGS__ }
#define UMR(action_, ...) \
    { .target = QRDMA_FAULT_UMR, .action = QRDMA_FAULT_##action_, \
      .index = INDEX, ##__VA_ARGS__ }
#define COMPLETION(action_, ...) \
    { .target = QRDMA_FAULT_COMPLETION, .action = QRDMA_FAULT_##action_, \
      .index = INDEX, ##__VA_ARGS__ }
#define EVENT(action_, ...) \
    { .target = QRDMA_FAULT_EVENT, .action = QRDMA_FAULT_##action_, \
      .opcode = QRDMA_EVENT_COMPLETION, ##__VA_ARGS__ }

static const FaultTest fault_tests[] = {
    { "command/fail", COMMAND(FAIL, .status = QRDMA_STATUS_NO_RESOURCES),
      command_fail },
    { "command/delay", COMMAND(DELAY, .delay = DELAY), command_delay },
    { "command/drop", COMMAND(DROP), command_drop },
    { "command/late", COMMAND(LATE, .delay = DELAY), command_late },
    { "command/duplicate", COMMAND(DUPLICATE, .delay = DELAY),
      command_duplicate },
    { "command/swap", COMMAND(SWAP), command_swap },
    { "command/fatal", COMMAND(FATAL), command_fatal },
    { "umr/fail", UMR(FAIL), umr_fail },
    { "umr/delay", UMR(DELAY, .delay = DELAY), umr_delay },
    { "umr/drop", UMR(DROP), umr_drop },
    { "umr/late", UMR(LATE, .delay = DELAY), umr_late },
    { "umr/duplicate", UMR(DUPLICATE, .delay = DELAY), umr_duplicate },
    { "umr/swap", UMR(SWAP), umr_swap },
    { "umr/fatal", UMR(FATAL, .point = QRDMA_FAULT_POINT_AFTER), umr_fatal },
    { "completion/fail", COMPLETION(FAIL), completion_fail },
    { "completion/delay", COMPLETION(DELAY, .delay = DELAY),
      completion_delay },
    { "completion/drop", COMPLETION(DROP), completion_drop },
    { "completion/duplicate", COMPLETION(DUPLICATE, .delay = DELAY),
      completion_duplicate },
    { "completion/swap", COMPLETION(SWAP), completion_swap },
    { "completion/fatal", COMPLETION(FATAL), completion_fatal },
    { "event/fail", EVENT(FAIL), event_fail },
    { "event/delay", EVENT(DELAY, .delay = DELAY), event_delay },
    { "event/drop", EVENT(DROP), event_drop },
    { "event/duplicate", EVENT(DUPLICATE, .delay = DELAY), event_duplicate },
    { "event/swap", EVENT(SWAP), event_swap },
    { "event/fatal", EVENT(FATAL), event_fatal },
    { "dma-read/fail",
      { .target = QRDMA_FAULT_DMA_READ, .action = QRDMA_FAULT_FAIL },
      dma_read_fail },
    { "dma-write/fail",
      { .target = QRDMA_FAULT_DMA_WRITE, .action = QRDMA_FAULT_FAIL },
      dma_write_fail },
};

static void faulty_init(Faulty *f, QRdma *q)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(INDEX, FIRST_PD);

    f->q = q;
    qrdma_bench_init(&f->bench, q);
    qrdma_bench_mkey(&f->bench, INDEX, &mkc);
    f->memory = qrdma_alloc(q, 2 * QRDMA_PAGE);
}

static QRdmaFault fault_of(const FaultTest *test, const Faulty *f)
{
    QRdmaFault fault = test->fault;

    if (fault.target == QRDMA_FAULT_DMA_READ ||
        fault.target == QRDMA_FAULT_DMA_WRITE) {
        fault.address = f->memory + QRDMA_PAGE;
        fault.length = QRDMA_PAGE;
    }
    return fault;
}

static void test_by_registers(void *obj, void *data, QGuestAllocator *alloc)
{
    const FaultTest *test = data;
    QRdmaFault fault;
    Faulty f;

    faulty_init(&f, obj);
    fault = fault_of(test, &f);
    qrdma_fault_arm_registers(f.q, &fault);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_ARMED), ==, 1);
    test->shows(&f);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_ARMED), ==, 0);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_FIRED), ==, 1);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_HELD), ==, 0);
}

static void test_by_qmp(void *obj, void *data, QGuestAllocator *alloc)
{
    const FaultTest *test = data;
    QRdmaFault fault;
    QList *left;
    Faulty f;

    faulty_init(&f, obj);
    fault = fault_of(test, &f);
    qrdma_fault_arm_qmp(f.q, &fault);
    test->shows(&f);
    left = qrdma_faults_get(f.q->qts);
    g_assert_true(qlist_empty(left));
    qobject_unref(left);
}

/* A fault outlives a reset; CLEAR takes it, and what it held back. */
static void test_reset_and_clear(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    QRdmaFault late = UMR(LATE, .delay = DELAY, .count = 2);
    Faulty f;

    qrdma_fault_arm_registers(obj, &late);
    qrdma_start(obj);
    g_assert_cmpuint(qrdma_read32(obj, QRDMA_REG_FAULT_ARMED), ==, 1);

    faulty_init(&f, obj);
    qrdma_fault_arm_registers(f.q, &late);
    set_pd(&f, SECOND_PD);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_HELD), ==, 1);
    qrdma_write32(f.q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_CLEAR);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_ARMED), ==, 0);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_FIRED), ==, 0);
    g_assert_cmpuint(qrdma_read32(f.q, QRDMA_REG_FAULT_HELD), ==, 0);
    pass_delay(&f);
    g_assert_cmpuint(pd_of(&f), ==, FIRST_PD);
    set_pd(&f, SECOND_PD);
    g_assert_cmpuint(pd_of(&f), ==, SECOND_PD);
}

/* ------------------------------------------------------------------- cases */

static void add_fault_test(const FaultTest *test)
{
    QOSGraphTestOptions by_registers = {
        .arg = (void *)test,
        .edge.extra_device_opts = "diagnostics=on",
    };
    QOSGraphTestOptions by_qmp = {
        .arg = (void *)test,
        .edge.extra_device_opts = QRDMA_TEST_ID,
    };
    g_autofree char *registers_name = g_strdup_printf("registers/%s",
                                                      test->name);
    g_autofree char *qmp_name = g_strdup_printf("qmp/%s", test->name);

    qos_add_test(registers_name, GROUP, test_by_registers, &by_registers);
    qos_add_test(qmp_name, GROUP, test_by_qmp, &by_qmp);
}

static void register_fault_tests(void)
{
    static QOSGraphTestOptions diagnostics = {
        .edge.extra_device_opts = "diagnostics=on",
    };

    qos_node_produces("qrdma", GROUP);
    for (size_t i = 0; i < ARRAY_SIZE(fault_tests); i++) {
        add_fault_test(&fault_tests[i]);
    }
    qos_add_test("reset-and-clear", GROUP, test_reset_and_clear,
                 &diagnostics);
}

libqos_init(register_fault_tests);
