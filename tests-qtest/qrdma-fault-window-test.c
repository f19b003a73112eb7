/*
 * qrdma: fault injection: how faults are armed, counted and read back, and what
 * cannot be armed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "qobject/qjson.h"
#include "qrdma-verify.h"

#define GROUP   "qrdma-fault-window"

/* Given at 2 and count 2: one passes, two are hit, then all pass again. */
static void test_count(void *obj, void *data, QGuestAllocator *alloc)
{
    static const enum qrdma_status expected[] = {
        QRDMA_STATUS_OK, QRDMA_STATUS_INJECTED, QRDMA_STATUS_INJECTED,
        QRDMA_STATUS_OK,
    };
    QRdmaFault fault = {
        .target = QRDMA_FAULT_COMMAND,
        .action = QRDMA_FAULT_FAIL,
        .at = 2,
        .count = 2,
    };
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_fault_arm_registers(q, &fault);
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++) {
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0),
                        ==, expected[i]);
    }
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_FIRED), ==, 2);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_ARMED), ==, 0);
}

/* Without diagnostics=on the guest cannot arm anything. */
static void test_off(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_write32(q, QRDMA_REG_FAULT_TARGET, QRDMA_FAULT_COMMAND);
    qrdma_write32(q, QRDMA_REG_FAULT_ACTION, QRDMA_FAULT_FAIL);
    qrdma_write32(q, QRDMA_REG_FAULT_AT, 1);
    qrdma_write32(q, QRDMA_REG_FAULT_COUNT, 1);
    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_DIAGNOSTIC_CAPS), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_FAULT_TARGET), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_FAULT_ARMED), ==, 0);
    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* ---------------------------------------------------- what cannot be armed */

#define COMMAND     QRDMA_FAULT_COMMAND
#define UMR         QRDMA_FAULT_UMR
#define COMPLETION  QRDMA_FAULT_COMPLETION
#define EVENT       QRDMA_FAULT_EVENT
#define DMA_READ    QRDMA_FAULT_DMA_READ
#define DMA_WRITE   QRDMA_FAULT_DMA_WRITE

#define FAIL        QRDMA_FAULT_FAIL
#define DROP        QRDMA_FAULT_DROP
#define LATE        QRDMA_FAULT_LATE
#define FATAL       QRDMA_FAULT_FATAL

static void test_bad_by_registers(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    static const struct {
        QRdmaFault fault;
        enum qrdma_fault_result result;
    } bad[] = {
        { { 0, FAIL }, QRDMA_FAULT_BAD_TARGET },
        { { 7, FAIL }, QRDMA_FAULT_BAD_TARGET },
        { { UMR, 0 }, QRDMA_FAULT_BAD_ACTION },
        { { UMR, 8 }, QRDMA_FAULT_BAD_ACTION },
        { { COMPLETION, LATE }, QRDMA_FAULT_BAD_ACTION },
        { { EVENT, LATE }, QRDMA_FAULT_BAD_ACTION },
        { { DMA_READ, DROP, .length = 1 }, QRDMA_FAULT_BAD_ACTION },
        { { UMR, FAIL, .index = 1 << QRDMA_LOG_MAX_MKEYS },
          QRDMA_FAULT_BAD_INDEX },
        { { DMA_READ, FAIL, .length = 1, .index = 1 },
          QRDMA_FAULT_BAD_INDEX },
        { { UMR, FAIL, .opcode = 1 }, QRDMA_FAULT_BAD_OPCODE },
        { { COMMAND, FAIL, .opcode = 0xffff }, QRDMA_FAULT_BAD_OPCODE },
        { { EVENT, FAIL, .opcode = 7 }, QRDMA_FAULT_BAD_OPCODE },
        { { UMR, FAIL, .status = QRDMA_STATUS_COUNT },
          QRDMA_FAULT_BAD_STATUS },
        { { UMR, DROP, .status = 1 }, QRDMA_FAULT_BAD_STATUS },
        { { UMR, DROP, .point = 1 }, QRDMA_FAULT_BAD_POINT },
        { { COMMAND, FATAL, .point = 1 }, QRDMA_FAULT_BAD_POINT },
        { { UMR, LATE, .delay = QRDMA_FAULT_MAX_DELAY + 1 },
          QRDMA_FAULT_BAD_DELAY },
        { { UMR, DROP, .delay = 1 }, QRDMA_FAULT_BAD_DELAY },
        { { UMR, DROP, .length = 1 }, QRDMA_FAULT_BAD_RANGE },
        { { DMA_READ, FAIL }, QRDMA_FAULT_BAD_RANGE },
        { { DMA_WRITE, FAIL, .address = UINT64_MAX, .length = 2 },
          QRDMA_FAULT_BAD_RANGE },
    };
    const QRdmaFault good = { UMR, FAIL };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        g_test_message("fault %zu", i);
        g_assert_cmpuint(qrdma_fault_arm_result(q, &bad[i].fault), ==,
                         bad[i].result);
        g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_ARMED), ==, 0);
    }
    qrdma_fault_arm_registers(q, &good);
    qrdma_write32(q, QRDMA_REG_FAULT_AT, 0);
    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_RESULT), ==,
                     QRDMA_FAULT_BAD_AT);
    qrdma_write32(q, QRDMA_REG_FAULT_AT, 1);
    qrdma_write32(q, QRDMA_REG_FAULT_COUNT, 0);
    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_RESULT), ==,
                     QRDMA_FAULT_BAD_COUNT);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_ARMED), ==, 1);
}

static void test_too_many(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaFault fault = { UMR, FAIL };
    QRdma *q = obj;

    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_CLEAR);
    for (unsigned i = 0; i < QRDMA_MAX_FAULTS; i++) {
        qrdma_fault_arm_registers(q, &fault);
    }
    g_assert_cmpuint(qrdma_fault_arm_result(q, &fault), ==,
                     QRDMA_FAULT_TOO_MANY);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FAULT_ARMED), ==,
                     QRDMA_MAX_FAULTS);
}

#define GOOD "{ 'target': 'umr', 'action': 'drop', 'at': 7 }"
#define GOOD_4 GOOD ", " GOOD ", " GOOD ", " GOOD
#define UMR_JSON(more) "[ " GOOD ", { 'target': 'umr', " more " } ]"

/* Given one bad fault in a list, the error says so, and nothing has changed. */
static void test_bad_by_qmp(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        const char *faults;
        const char *says[2];
    } bad[] = {
        { UMR_JSON("'action': 'drop', 'at': 0"), { "faults[1]", "at " } },
        { UMR_JSON("'action': 'drop', 'count': 0"), { "faults[1]", "count" } },
        { UMR_JSON("'action': 'drop', 'delay': 1"), { "faults[1]", "delay" } },
        { UMR_JSON("'action': 'drop', 'status': 1"),
          { "faults[1]", "status" } },
        { UMR_JSON("'action': 'fail', 'opcode': 1"),
          { "faults[1]", "opcode" } },
        { UMR_JSON("'action': 'fail', 'index': 99999999"),
          { "faults[1]", "index" } },
        { UMR_JSON("'action': 'drop', 'point': 1"), { "faults[1]", "point" } },
        { UMR_JSON("'action': 'late', 'delay': 10000000001"),
          { "faults[1]", "delay" } },
        { UMR_JSON("'action': 'lose'"), { "faults[1]", "lose" } },
        { UMR_JSON("'at': 1"), { "faults[1]", "action" } },
        { UMR_JSON("'action': 'drop', 'at': 'x'"), { "faults[1]", "at" } },
        { UMR_JSON("'action': 'drop', 'at': -1"), { "faults[1]", "at" } },
        { UMR_JSON("'action': 'drop', 'at': 4294967296"),
          { "faults[1]", "at" } },
        { UMR_JSON("'action': 'drop', 'when': 1"), { "faults[1]", "when" } },
        { UMR_JSON("'action': 'drop', 'seen': 1"), { "faults[1]", "seen" } },
        { "[ " GOOD ", 3 ]", { "faults[1]", "object" } },
        { "[ { 'target': 'dma-read', 'action': 'drop', 'length': 1 } ]",
          { "faults[0]", "action" } },
        { "[ { 'target': 'dma-read', 'action': 'fail' } ]",
          { "faults[0]", "length" } },
        { "[ " GOOD_4 ", " GOOD_4 ", " GOOD_4 ", " GOOD_4 ", " GOOD " ]",
          { "faults[16]", "16" } },
        { "{ }", { "faults", "array" } },
    };
    QRdma *q = obj;
    QList *before, *after;

    qrdma_faults_set(q->qts, "[ { 'target': 'command', 'action': 'fail', "
                     "'at': 3, 'opcode': 1 } ]");
    before = qrdma_faults_get(q->qts);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        QDict *response = qrdma_property_set(q->qts, "faults", bad[i].faults);
        QDict *error = qdict_get_qdict(response, "error");

        g_assert_nonnull(error);
        g_test_message("%s", qdict_get_str(error, "desc"));
        for (size_t k = 0; k < ARRAY_SIZE(bad[i].says); k++) {
            g_assert_nonnull(strstr(qdict_get_str(error, "desc"),
                                    bad[i].says[k]));
        }
        qobject_unref(response);
        after = qrdma_faults_get(q->qts);
        g_assert_true(qobject_is_equal(QOBJECT(before), QOBJECT(after)));
        qobject_unref(after);
    }
    qobject_unref(before);
}

/* What is read is what was written, with the progress made. */
static void test_read_back(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QList *faults;
    QObject *expected;

    qrdma_start(q);
    qrdma_faults_set(q->qts, "[ { 'target': 'command', 'action': 'fail', "
                     "'at': 2, 'count': 4294967295, 'status': 9 }, "
                     "{ 'target': 'dma-write', 'action': 'fail', "
                     "'address': 18446744073709547520, 'length': 4096 } ]");
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0), ==,
                    QRDMA_STATUS_NO_RESOURCES);
    faults = qrdma_faults_get(q->qts);
    expected = qobject_from_json(
        "[ { 'target': 'command', 'action': 'fail', 'at': 2, "
        "'count': 4294967295, 'index': 0, 'opcode': 0, 'status': 9, "
        "'point': 0, 'delay': 0, 'address': 0, 'length': 0, "
        "'seen': 2, 'hit': 1 }, "
        "{ 'target': 'dma-write', 'action': 'fail', 'at': 1, 'count': 1, "
        "'index': 0, 'opcode': 0, 'status': 0, 'point': 0, 'delay': 0, "
        "'address': 18446744073709547520, 'length': 4096, "
        "'seen': 0, 'hit': 0 } ]", &error_abort);
    g_assert_true(qobject_is_equal(QOBJECT(faults), expected));
    qobject_unref(expected);
    qobject_unref(faults);
}

/* ------------------------------------------------------------------- cases */

static void register_fault_window_tests(void)
{
    static QOSGraphTestOptions diagnostics = {
        .edge.extra_device_opts = "diagnostics=on",
    };
    static QOSGraphTestOptions qmp = {
        .edge.extra_device_opts = QRDMA_TEST_ID,
    };

    qos_node_produces("qrdma", GROUP);
    qos_add_test("count", GROUP, test_count, &diagnostics);
    qos_add_test("off", GROUP, test_off, NULL);
    qos_add_test("bad/registers", GROUP, test_bad_by_registers, &diagnostics);
    qos_add_test("bad/too-many", GROUP, test_too_many, &diagnostics);
    qos_add_test("bad/qmp", GROUP, test_bad_by_qmp, &qmp);
    qos_add_test("read-back", GROUP, test_read_back, &qmp);
}

libqos_init(register_fault_window_tests);
