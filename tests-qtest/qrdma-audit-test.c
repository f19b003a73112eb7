/*
 * qrdma: the audit: what it finds when a page-size change or a revocation is
 * not done as it should be, and that it finds nothing else.
 *
 * The test's driver always does the right thing. Fault injection makes the card
 * leave out a step, or do it too late.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-change.h"
#include "qrdma-verify.h"

#define GROUP   "qrdma-audit"
#define INDEX   QRDMA_CHANGE_INDEX
#define START   QRDMA_CHANGE_START
#define LOG_4K  QRDMA_LOG_4K
#define LOG_2M  QRDMA_LOG_2M

/* Nine blocks: more than a unit of entries in either page size. */
#define LENGTH  (18 * MiB)

#define AUDIT   QRDMA_TEST_ID ",audit=on"

/* ------------------------------------------------------------ wrong orders */

/*
 * Steps: 1 the first unit of entries becomes absent, 2 the page size becomes
 * one that covers the region, 3 the other entries are loaded, 4 the page size
 * becomes the new one, 5 the first unit is loaded.
 */
typedef struct Order {
    const char *steps;          /* what the card does */
    const char *faults;         /* NULL: the right order */
    /* What can be torn, by the table before: live, or all absent ("zapped"). */
    bool live_tears;
    bool zapped_tears;
} Order;

#define DROP(at) "{ 'target': 'umr', 'action': 'drop', 'at': " #at " }"
#define SWAP(at) "{ 'target': 'umr', 'action': 'swap', 'at': " #at " }"

static const Order orders[] = {
    { "12345", NULL, false, false },
    /*
     * Without 1 an old entry is read with the covering size. In a zapped table
     * there is none: 1 has nothing to do.
     */
    { "2345", DROP(1), true, false },
    /*
     * Without 2 the other new entries are read with the old size as they are
     * loaded, whatever was there before.
     */
    { "1345", DROP(2), true, true },
    /*
     * Without 3 the other old entries are read with the new size. In a zapped
     * table they are absent, and stay so: too little, but never wrong.
     */
    { "1245", DROP(3), true, false },
    /* Without 4 the first unit is loaded to be read with the covering size. */
    { "1235", DROP(4), true, true },
    /* Without 5 the first unit stays absent: too little, but never wrong. */
    { "1234", DROP(5), false, false },
    /* As without 1, until 1 follows; a zapped table has nothing to tear. */
    { "21345", SWAP(1), true, false },
    /* As without 2, until 2 follows. */
    { "13245", SWAP(2), true, true },
    /*
     * As without 3, until 3 follows. In a zapped table the new size comes while
     * all is absent, and what is then loaded is right for it.
     */
    { "12435", SWAP(3), true, false },
    /* As without 4, until 4 follows. */
    { "12354", SWAP(4), true, true },
    /*
     * The naive order: the size, then the entries. It is enough for a zapped
     * table, where no old entry is left to be read with the new size.
     */
    { "435", DROP(1) ", " DROP(2) ", " SWAP(3), true, false },
};

typedef struct OrderCase {
    const Order *order;
    unsigned from, to;
    bool live;
} OrderCase;

/* Pages at which a torn map of these orders shows, and some more. */
static const unsigned looked_at[] = { 0, 1, 8, 9, 512, 1536 };

static bool is_right(unsigned page, uint64_t seen)
{
    return seen == QRDMA_ABSENT || seen == qrdma_change_stamp(LOG_4K, page) ||
           seen == qrdma_change_stamp(LOG_2M, page);
}

/* What traffic sees after a step. */
static void look(QRdmaChange *c)
{
    unsigned *wrong = c->opaque;

    for (size_t i = 0; i < ARRAY_SIZE(looked_at); i++) {
        uint64_t seen = qrdma_change_read(c, looked_at[i]);

        *wrong += !is_right(looked_at[i], seen);
    }
}

static void arm(QRdmaChange *c, const char *faults)
{
    g_autofree char *list = g_strdup_printf("[ %s ]", faults ?: "");

    qrdma_faults_set(c->q->qts, list);
}

static void assert_torn(const QDict *report, unsigned wrong)
{
    g_assert_cmpuint(qrdma_audit_counter(report, "torn-bytes"), >, 0);
    g_assert_cmpuint(qrdma_audit_findings(report, "torn"), >, 0);
    if (wrong) {
        g_assert_cmpuint(qrdma_audit_counter(report, "torn-accesses"), >=,
                         wrong);
        g_assert_cmpuint(qrdma_audit_findings(report, "torn-access"), >, 0);
    }
}

static void test_order(void *obj, void *data, QGuestAllocator *alloc)
{
    const OrderCase *which = data;
    const Order *order = which->order;
    unsigned wrong = 0;
    QRdmaChange c;
    QDict *report;

    qrdma_change_init(&c, obj, LENGTH, which->from, which->live);
    arm(&c, order->faults);
    c.after = look;
    c.opaque = &wrong;
    qrdma_change_page_size(&c, which->to);

    report = qrdma_audit_report(c.q);
    g_test_message("torn bytes %" PRIu64 ", torn accesses %" PRIu64
                   ", wrong answers %u",
                   qrdma_audit_counter(report, "torn-bytes"),
                   qrdma_audit_counter(report, "torn-accesses"), wrong);
    g_assert_cmpuint(qrdma_audit_counter(report, "windows"), >, 0);
    if (which->live ? order->live_tears : order->zapped_tears) {
        assert_torn(report, wrong);
    } else {
        g_assert_cmpuint(wrong, ==, 0);
        qrdma_audit_assert_clean(report);
    }
    qobject_unref(report);
}

/*
 * Given the naive order from 2 MiB to 4 KiB, when a write comes before the last
 * step, then it goes to the wrong place, and the audit knows.
 */
typedef struct LateWrite {
    unsigned umrs;
    unsigned writes;
} LateWrite;

static void write_before_last_step(QRdmaChange *c)
{
    LateWrite *late = c->opaque;

    if (++late->umrs != 4) {
        return;
    }
    qrdma_write_pattern(c->q, c->local, 64, 5);
    g_assert_cmpint(qrdma_bench_write(&c->bench, c->local, START + QRDMA_PAGE,
                                      qrdma_key(INDEX), 64), ==,
                    QRDMA_CQE_SUCCESS);
    /* Entry 1 is still that of block 1, which begins with page 512. */
    qrdma_assert_pattern(c->q, qrdma_change_place(c, LOG_2M, 512), 64, 5);
    late->writes++;
}

static const QDict *finding_of(const QDict *report, const char *kind)
{
    const QListEntry *entry;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(report, "findings"), entry) {
        const QDict *finding = qobject_to(QDict, qlist_entry_obj(entry));

        if (g_str_equal(qdict_get_str(finding, "kind"), kind)) {
            return finding;
        }
    }
    g_assert_not_reached();
}

static void test_torn_write(void *obj, void *data, QGuestAllocator *alloc)
{
    LateWrite late = { 0 };
    QRdmaChange c;
    QDict *report;
    const QDict *finding, *shown;

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    arm(&c, DROP(1) ", " DROP(2) ", " SWAP(3));
    c.after = write_before_last_step;
    c.opaque = &late;
    qrdma_change_page_size(&c, LOG_4K);
    g_assert_cmpuint(late.writes, ==, 1);

    report = qrdma_audit_report(c.q);
    g_assert_cmpuint(qrdma_audit_counter(report, "torn-accesses"), ==, 1);
    finding = finding_of(report, "torn-access");
    g_assert_cmphex(qdict_get_int(finding, "key"), ==, qrdma_key(INDEX));
    g_assert_cmphex(qdict_get_int(finding, "address"), ==,
                    START + QRDMA_PAGE);
    g_assert_cmpuint(qdict_get_int(finding, "length"), ==, 64);
    shown = qdict_get_qdict(finding, "shown");
    g_assert_cmphex(qdict_get_int(shown, "address"), ==,
                    qrdma_change_place(&c, LOG_2M, 512));
    qobject_unref(report);
}

/* -------------------------------------------------------------- revocation */

static enum qrdma_cqe_status write_to(QRdmaChange *c)
{
    enum qrdma_cqe_status status;

    status = qrdma_bench_write(&c->bench, c->local, START, qrdma_key(INDEX),
                               64);
    if (status != QRDMA_CQE_SUCCESS) {
        qrdma_bench_reconnect(&c->bench);
    }
    return status;
}

static void assert_revoked_accesses(QRdmaChange *c, uint64_t count)
{
    QDict *report = qrdma_audit_report(c->q);

    g_assert_cmpuint(qrdma_audit_counter(report, "revoked-accesses"), ==,
                     count);
    g_assert_cmpuint(qrdma_audit_findings(report, "revoked-access"), ==,
                     count);
    qobject_unref(report);
}

static void assert_clean(QRdmaChange *c)
{
    QDict *report = qrdma_audit_report(c->q);

    qrdma_audit_assert_clean(report);
    qobject_unref(report);
}

/* Done as it should be, refusals are all that is seen. */
static void test_revoked(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_SUCCESS);
    qrdma_change_revoke(&c);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    qrdma_command_ok(c.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    assert_clean(&c);
}

/* The same while writes are under way: they end before the revocation does. */
static void test_revoked_in_flight(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    QRdmaChange c;
    struct qrdma_sge sge;
    struct qrdma_send_wqe wqe = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .remote_address = cpu_to_le64(START),
        .remote_key = cpu_to_le32(qrdma_key(INDEX)),
    };
    struct qrdma_cqe cqe;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    sge = qrdma_sge(qrdma_alloc(c.q, 64 * KiB), 64 * KiB, c.bench.local_key);
    qrdma_post(c.q, &c.bench.a, wqe, &sge, 1);
    qtest_clock_step(c.q->qts, 5000);
    qrdma_settle(c.q);
    qrdma_post_umr(c.q, &c.bench.umr, (struct qrdma_umr_wqe) {
        .key = cpu_to_le32(qrdma_key(INDEX)),
        .mask = cpu_to_le64(QRDMA_UMR_MASK_FREE),
        .mkc.flags = cpu_to_le32(QRDMA_MKEY_FREE),
    }, NULL, 0);
    for (unsigned i = 0; i < 100; i++) {
        qtest_clock_step(c.q->qts, 1000);
        qrdma_settle(c.q);
    }
    g_assert_true(qrdma_cq_poll(c.q, &c.bench.cq_umr, &cqe));
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
    assert_clean(&c);
}

static void test_revocation_dropped(void *obj, void *data,
                                    QGuestAllocator *alloc)
{
    QRdmaChange c;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    arm(&c, DROP(1));
    qrdma_change_revoke(&c);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_SUCCESS);
    assert_revoked_accesses(&c, 1);
}

static void test_revocation_late(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    QRdmaChange c;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    arm(&c, "{ 'target': 'umr', 'action': 'late', 'delay': 1000 }");
    qrdma_change_revoke(&c);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_SUCCESS);
    assert_revoked_accesses(&c, 1);

    qtest_clock_step(c.q->qts, 1000);
    qrdma_settle(c.q);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    assert_revoked_accesses(&c, 1);
}

#define DROP_DESTROY "{ 'target': 'command', 'action': 'drop', " \
                     "'opcode': 59, 'index': 102 }"
QEMU_BUILD_BUG_ON(QRDMA_CMD_DESTROY_MKEY != 59 || INDEX != 102);

/* A destroy that was not done: the key still works, and is not to be given. */
static void test_destroy_dropped(void *obj, void *data,
                                 QGuestAllocator *alloc)
{
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(INDEX, QRDMA_TEST_PD);
    QRdmaChange c;
    QDict *report;

    qrdma_change_init(&c, obj, 64 * KiB, LOG_4K, true);
    arm(&c, DROP_DESTROY);
    qrdma_command_ok(c.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    g_assert_cmpint(write_to(&c), ==, QRDMA_CQE_SUCCESS);
    assert_revoked_accesses(&c, 1);

    g_assert_cmpint(qrdma_command(c.q, QRDMA_CMD_CREATE_MKEY, INDEX, &mkc,
                                  sizeof(mkc), NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    report = qrdma_audit_report(c.q);
    g_assert_cmpuint(qrdma_audit_counter(report, "reused-indices"), ==, 1);
    g_assert_cmpuint(qrdma_audit_findings(report, "reused-index"), ==, 1);
    qobject_unref(report);
}

/* -------------------------------------------------------- the audit itself */

static void change_naively(QRdmaChange *c)
{
    arm(c, DROP(1) ", " DROP(2) ", " SWAP(3));
    qrdma_change_page_size(c, LOG_4K);
}

/* What is not watched is not judged. */
static void test_watch(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;
    QDict *report;

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    qrdma_write32(c.q, QRDMA_REG_AUDIT_WATCH, INDEX + 1);
    change_naively(&c);
    report = qrdma_audit_report(c.q);
    g_assert_cmpuint(qdict_get_int(report, "watching"), ==, INDEX + 1);
    g_assert_cmpuint(qrdma_audit_counter(report, "windows"), ==, 0);
    qrdma_audit_assert_clean(report);
    qobject_unref(report);

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    qrdma_property_set_ok(c.q->qts, "audit-watch", "102");
    change_naively(&c);
    report = qrdma_audit_report(c.q);
    g_assert_cmpuint(qdict_get_int(report, "watching"), ==, INDEX);
    assert_torn(report, 0);
    qobject_unref(report);
}

/* Findings outlive a reset of the card, and go when they are told to. */
static void test_clear(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdmaChange c;
    QDict *report;

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    change_naively(&c);
    qrdma_start(c.q);
    report = qrdma_audit_report(c.q);
    assert_torn(report, 0);
    qobject_unref(report);
    qrdma_write32(c.q, QRDMA_REG_AUDIT_CONTROL, QRDMA_AUDIT_CLEAR);
    assert_clean(&c);

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    change_naively(&c);
    report = qrdma_audit_report(c.q);
    assert_torn(report, 0);
    qobject_unref(report);
    qrdma_audit_clear(c.q);
    assert_clean(&c);
}

/* Given no audit, its registers are not there, and it has no verdict. */
static void test_off(void *obj, void *data, QGuestAllocator *alloc)
{
    static const char *const names[] = { "audit-report", "audit-watch" };
    QRdmaChange c;

    qrdma_change_init(&c, obj, LENGTH, LOG_2M, true);
    change_naively(&c);
    g_assert_cmphex(qrdma_read32(c.q, QRDMA_REG_DIAGNOSTIC_CAPS), ==, 0);
    g_assert_cmpuint(qrdma_read64(c.q, QRDMA_REG_AUDIT_TORN_BYTES), ==, 0);
    g_assert_cmpuint(qrdma_read32(c.q, QRDMA_REG_AUDIT_FINDINGS), ==, 0);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        QDict *response = qrdma_property_get(c.q->qts, names[i]);
        QDict *error = qdict_get_qdict(response, "error");

        g_assert_nonnull(error);
        g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "audit=on"));
        qobject_unref(response);
    }
}

/* ------------------------------------------------------------------- cases */

/* Of all cases, which are run when they have all been added. */
static OrderCase order_cases[4 * ARRAY_SIZE(orders)];
static unsigned num_order_cases;

static void add_order(const Order *order, unsigned from, bool live)
{
    OrderCase *which = &order_cases[num_order_cases++];
    bool from_4k = from == LOG_4K;
    g_autofree char *name = g_strdup_printf("order/%s/%s/%s",
                                            from_4k ? "4k-to-2m" : "2m-to-4k",
                                            live ? "live" : "zapped",
                                            order->steps);
    QOSGraphTestOptions options = {
        .arg = which,
        .edge.extra_device_opts = AUDIT,
    };

    *which = (OrderCase) {
        .order = order,
        .from = from,
        .to = from_4k ? LOG_2M : LOG_4K,
        .live = live,
    };
    qos_add_test(name, GROUP, test_order, &options);
}

static void register_audit_tests(void)
{
    static QOSGraphTestOptions audit = { .edge.extra_device_opts = AUDIT };
    static QOSGraphTestOptions latency = {
        .edge.extra_device_opts = AUDIT ",packet-latency=1000",
    };
    static QOSGraphTestOptions off = {
        .edge.extra_device_opts = QRDMA_TEST_ID,
    };

    qos_node_produces("qrdma", GROUP);
    for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
        add_order(&orders[i], LOG_4K, true);
        add_order(&orders[i], LOG_4K, false);
        add_order(&orders[i], LOG_2M, true);
        add_order(&orders[i], LOG_2M, false);
    }
    qos_add_test("torn-write", GROUP, test_torn_write, &audit);
    qos_add_test("revoked/idle", GROUP, test_revoked, &audit);
    qos_add_test("revoked/in-flight", GROUP, test_revoked_in_flight,
                 &latency);
    qos_add_test("revocation-dropped", GROUP, test_revocation_dropped,
                 &audit);
    qos_add_test("revocation-late", GROUP, test_revocation_late, &audit);
    qos_add_test("destroy-dropped", GROUP, test_destroy_dropped, &audit);
    qos_add_test("watch", GROUP, test_watch, &audit);
    qos_add_test("clear", GROUP, test_clear, &audit);
    qos_add_test("off", GROUP, test_off, &off);
}

libqos_init(register_audit_tests);
