/*
 * Fault injection and the audit of a qrdma card, for tests.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qobject/qjson.h"
#include "qobject/qnum.h"
#include "qrdma-verify.h"

#define PATH "/machine/peripheral/card"

/* -------------------------------------------------------------- properties */

QDict *qrdma_property_get(QTestState *qts, const char *name)
{
    return qtest_qmp(qts, "{ 'execute': 'qom-get', 'arguments': "
                     "{ 'path': %s, 'property': %s } }", PATH, name);
}

QDict *qrdma_property_set(QTestState *qts, const char *name,
                          const char *value)
{
    return qtest_qmp(qts, "{ 'execute': 'qom-set', 'arguments': "
                     "{ 'path': %s, 'property': %s, 'value': %p } }",
                     PATH, name, qobject_from_json(value, &error_abort));
}

static void assert_success(const QDict *response)
{
    if (qdict_haskey(response, "error")) {
        g_test_message("%s", qdict_get_str(qdict_get_qdict(response, "error"),
                                           "desc"));
    }
    g_assert_true(qdict_haskey(response, "return"));
}

void qrdma_property_set_ok(QTestState *qts, const char *name,
                           const char *value)
{
    QDict *response = qrdma_property_set(qts, name, value);

    assert_success(response);
    qobject_unref(response);
}

/* ----------------------------------------------------------------- faults */

void qrdma_faults_set(QTestState *qts, const char *faults)
{
    qrdma_property_set_ok(qts, "faults", faults);
}

QList *qrdma_faults_get(QTestState *qts)
{
    QDict *response = qrdma_property_get(qts, "faults");
    QList *faults;

    assert_success(response);
    faults = qobject_ref(qdict_get_qlist(response, "return"));
    qobject_unref(response);
    return faults;
}

enum qrdma_fault_result qrdma_fault_arm_result(QRdma *q,
                                               const QRdmaFault *fault)
{
    qrdma_write32(q, QRDMA_REG_FAULT_TARGET, fault->target);
    qrdma_write32(q, QRDMA_REG_FAULT_ACTION, fault->action);
    qrdma_write32(q, QRDMA_REG_FAULT_AT, fault->at ?: 1);
    qrdma_write32(q, QRDMA_REG_FAULT_COUNT, fault->count ?: 1);
    qrdma_write32(q, QRDMA_REG_FAULT_INDEX, fault->index);
    qrdma_write32(q, QRDMA_REG_FAULT_OPCODE, fault->opcode);
    qrdma_write32(q, QRDMA_REG_FAULT_STATUS, fault->status);
    qrdma_write32(q, QRDMA_REG_FAULT_POINT, fault->point);
    qrdma_write64(q, QRDMA_REG_FAULT_DELAY, fault->delay);
    qrdma_write64(q, QRDMA_REG_FAULT_ADDRESS, fault->address);
    qrdma_write64(q, QRDMA_REG_FAULT_LENGTH, fault->length);
    qrdma_write32(q, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM);
    return qrdma_read32(q, QRDMA_REG_FAULT_RESULT);
}

void qrdma_fault_arm_registers(QRdma *q, const QRdmaFault *fault)
{
    g_assert_cmpuint(qrdma_fault_arm_result(q, fault), ==, QRDMA_FAULT_ARMED);
}

void qrdma_fault_arm_qmp(QRdma *q, const QRdmaFault *fault)
{
    static const char *const targets[] = {
        [QRDMA_FAULT_COMMAND] = "command",
        [QRDMA_FAULT_UMR] = "umr",
        [QRDMA_FAULT_COMPLETION] = "completion",
        [QRDMA_FAULT_EVENT] = "event",
        [QRDMA_FAULT_DMA_READ] = "dma-read",
        [QRDMA_FAULT_DMA_WRITE] = "dma-write",
    };
    static const char *const actions[] = {
        [QRDMA_FAULT_FAIL] = "fail",
        [QRDMA_FAULT_DELAY] = "delay",
        [QRDMA_FAULT_DROP] = "drop",
        [QRDMA_FAULT_LATE] = "late",
        [QRDMA_FAULT_DUPLICATE] = "duplicate",
        [QRDMA_FAULT_SWAP] = "swap",
        [QRDMA_FAULT_FATAL] = "fatal",
    };
    g_autofree char *json = g_strdup_printf(
        "[ { \"target\": \"%s\", \"action\": \"%s\", \"at\": %" PRIu32 ", "
        "\"count\": %" PRIu32 ", \"index\": %" PRIu32 ", "
        "\"opcode\": %" PRIu32 ", \"status\": %" PRIu32 ", "
        "\"point\": %" PRIu32 ", \"delay\": %" PRIu64 ", "
        "\"address\": %" PRIu64 ", \"length\": %" PRIu64 " } ]",
        targets[fault->target], actions[fault->action], fault->at ?: 1,
        fault->count ?: 1, fault->index, fault->opcode, fault->status,
        fault->point, fault->delay, fault->address, fault->length);

    qrdma_faults_set(q->qts, json);
}

/* ------------------------------------------------------------------ audit */

static const struct {
    const char *name;
    uint64_t offset;
    bool fault;
} counters[] = {
    { "windows", QRDMA_REG_AUDIT_WINDOWS, false },
    { "maps", QRDMA_REG_AUDIT_MAPS, false },
    { "torn-bytes", QRDMA_REG_AUDIT_TORN_BYTES, true },
    { "widened-bytes", QRDMA_REG_AUDIT_WIDENED_BYTES, true },
    { "stale-bytes", QRDMA_REG_AUDIT_STALE_BYTES, true },
    { "torn-accesses", QRDMA_REG_AUDIT_TORN_ACCESSES, true },
    { "revoked-accesses", QRDMA_REG_AUDIT_REVOKED_ACCESSES, true },
    { "stray-accesses", QRDMA_REG_AUDIT_STRAY_ACCESSES, true },
    { "reused-indices", QRDMA_REG_AUDIT_REUSED_INDICES, true },
    { "unwatched", QRDMA_REG_AUDIT_UNWATCHED, false },
    { "unjudged", QRDMA_REG_AUDIT_UNJUDGED, false },
};

static const char *const kinds[] = {
    [QRDMA_FINDING_TORN] = "torn",
    [QRDMA_FINDING_WIDENED] = "widened",
    [QRDMA_FINDING_STALE] = "stale",
    [QRDMA_FINDING_TORN_ACCESS] = "torn-access",
    [QRDMA_FINDING_REVOKED_ACCESS] = "revoked-access",
    [QRDMA_FINDING_STRAY_ACCESS] = "stray-access",
    [QRDMA_FINDING_REUSED_INDEX] = "reused-index",
};

static uint64_t number(const QDict *object, const char *name)
{
    return qnum_get_uint(qobject_to(QNum, qdict_get(object, name)));
}

uint64_t qrdma_audit_counter(const QDict *report, const char *name)
{
    return number(qdict_get_qdict(report, "counters"), name);
}

/* An address and its rights, against bus address and rights as in a PBLE. */
static void assert_answer(const QDict *finding, const char *name,
                          uint64_t pble)
{
    QDict *answer = qdict_get_qdict(finding, name);
    bool present = !qlist_empty(qdict_get_qlist(answer, "rights"));

    g_assert_cmpint(present, ==, pble != 0);
    if (present) {
        g_assert_cmphex(number(answer, "address") & ~0xfffull, ==,
                        pble & ~0xfffull);
    }
}

static void assert_registers_show(QRdma *q, const QDict *finding, unsigned i)
{
    uint32_t kind;

    qrdma_write32(q, QRDMA_REG_AUDIT_SELECT, i);
    kind = qrdma_read32(q, QRDMA_REG_FINDING_KIND);
    g_assert_cmpuint(kind, !=, QRDMA_FINDING_NONE);
    g_assert_cmpuint(kind, <, ARRAY_SIZE(kinds));
    g_assert_cmpstr(qdict_get_str(finding, "kind"), ==, kinds[kind]);
    g_assert_cmphex(number(finding, "key"), ==,
                    qrdma_read32(q, QRDMA_REG_FINDING_KEY));
    g_assert_cmphex(number(finding, "address"), ==,
                    qrdma_read64(q, QRDMA_REG_FINDING_ADDRESS));
    g_assert_cmphex(number(finding, "length"), ==,
                    qrdma_read64(q, QRDMA_REG_FINDING_LENGTH));
    g_assert_cmpuint(number(finding, "change"), ==,
                     qrdma_read64(q, QRDMA_REG_FINDING_CHANGE));
    g_assert_cmpuint(number(finding, "time"), ==,
                     qrdma_read64(q, QRDMA_REG_FINDING_TIME));
    assert_answer(finding, "shown", qrdma_read64(q, QRDMA_REG_FINDING_SHOWN));
    assert_answer(finding, "old", qrdma_read64(q, QRDMA_REG_FINDING_OLD));
    assert_answer(finding, "new", qrdma_read64(q, QRDMA_REG_FINDING_NEW));
}

static void assert_registers_agree(QRdma *q, const QDict *report)
{
    QList *findings = qdict_get_qlist(report, "findings");
    const QListEntry *entry;
    unsigned i = 0;

    for (size_t k = 0; k < ARRAY_SIZE(counters); k++) {
        g_assert_cmpuint(qrdma_audit_counter(report, counters[k].name), ==,
                         qrdma_read64(q, counters[k].offset));
    }
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_AUDIT_WATCH), ==,
                     number(report, "watching"));
    QLIST_FOREACH_ENTRY(findings, entry) {
        assert_registers_show(q, qobject_to(QDict, qlist_entry_obj(entry)),
                              i++);
    }
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_AUDIT_FINDINGS), ==, i);
    qrdma_write32(q, QRDMA_REG_AUDIT_SELECT, i);
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_FINDING_KIND), ==,
                     QRDMA_FINDING_NONE);
}

QDict *qrdma_audit_report(QRdma *q)
{
    QDict *response = qrdma_property_get(q->qts, "audit-report");
    QDict *report;

    assert_success(response);
    report = qobject_ref(qdict_get_qdict(response, "return"));
    qobject_unref(response);
    assert_registers_agree(q, report);
    return report;
}

unsigned qrdma_audit_findings(const QDict *report, const char *kind)
{
    const QListEntry *entry;
    unsigned count = 0;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(report, "findings"), entry) {
        QDict *finding = qobject_to(QDict, qlist_entry_obj(entry));

        count += g_str_equal(qdict_get_str(finding, "kind"), kind);
    }
    return count;
}

void qrdma_audit_assert_clean(const QDict *report)
{
    for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
        if (counters[i].fault &&
            qrdma_audit_counter(report, counters[i].name)) {
            g_test_message("the audit counts %s", counters[i].name);
            g_assert_not_reached();
        }
    }
    g_assert_true(qlist_empty(qdict_get_qlist(report, "findings")));
}

void qrdma_audit_clear(QRdma *q)
{
    qrdma_property_set_ok(q->qts, "audit-clear", "true");
}
