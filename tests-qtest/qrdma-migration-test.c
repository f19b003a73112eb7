/*
 * qrdma: migration and snapshots: a card at work goes on elsewhere, or again;
 * and what is wrong in a stream is refused by its name.
 *
 * The stream goes through a file, so that it can be looked at and spoilt.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "libqos/pci-pc.h"
#include "qrdma-change.h"
#include "qrdma-machine.h"
#include "qrdma-verify.h"

#define LATENCY     100000              /* nanoseconds a packet */
#define MAC         "02:00:00:00:00:01"
#define CARD        "-machine q35 -m 64M -device qrdma," QRDMA_TEST_ID \
                    ",addr=04.0,mac=" MAC
#define LENGTH      (18 * MiB)
#define TRANSFERS   16
#define TRANSFER    (16 * QRDMA_PAGE)

typedef struct Migration {
    QRdmaMachine m;
    const char *card;           /* arguments of either machine */
    char *folder;
    char *file;                 /* the stream */
    char *errors;               /* what the destination said */
    char *why;                  /* and what it said to the monitor; or NULL */
    int64_t clock;              /* virtual */
} Migration;

/* ----------------------------------------------------------------- machines */

static void migration_start(Migration *x, const char *card)
{
    *x = (Migration) {
        .card = card,
        .folder = g_dir_make_tmp("qrdma-XXXXXX", NULL),
    };
    g_assert_nonnull(x->folder);
    x->file = g_build_filename(x->folder, "stream", NULL);
    x->errors = g_build_filename(x->folder, "errors", NULL);
    qrdma_machine_start(&x->m, card);
    qrdma_machine_card(&x->m, 0, QRDMA_TEST_SLOT);
}

static void migration_stop(Migration *x)
{
    qrdma_machine_stop(&x->m);
    unlink(x->file);
    unlink(x->errors);
    rmdir(x->folder);
    g_free(x->file);
    g_free(x->errors);
    g_free(x->why);
    g_free(x->folder);
}

static void step(Migration *x, int64_t nanoseconds)
{
    x->clock = qtest_clock_step(x->m.qts, nanoseconds);
    qrdma_settle(&x->m.card);
}

/* "completed" or "failed", once it is over; why: what it was, or NULL. */
static char *wait_for_end(QTestState *qts, char **why)
{
    for (;;) {
        QDict *answer = qtest_qmp_assert_success_ref(
            qts, "{ 'execute': 'query-migrate' }");
        g_autofree char *status = g_strdup(qdict_get_try_str(answer,
                                                             "status"));

        g_free(*why);
        *why = g_strdup(qdict_get_try_str(answer, "error-desc"));
        qobject_unref(answer);
        if (status && (!strcmp(status, "completed") ||
                       !strcmp(status, "failed"))) {
            return g_steal_pointer(&status);
        }
        g_usleep(1000);
    }
}

static void save(Migration *x)
{
    g_autofree char *uri = g_strdup_printf("file:%s", x->file);
    g_autofree char *end = NULL, *why = NULL;

    qtest_qmp_assert_success(x->m.qts, "{ 'execute': 'migrate', 'arguments': "
                             "{ 'uri': %s } }", uri);
    end = wait_for_end(x->m.qts, &why);
    g_assert_cmpstr(end, ==, "completed");
}

/* A machine that has loaded the stream, or NULL with what it said in errors. */
static QTestState *load(Migration *x, const char *card)
{
    g_autofree char *uri = g_strdup_printf("file:%s", x->file);
    QTestState *qts = qtest_initf("-nodefaults %s -incoming defer 2>%s", card,
                                  x->errors);
    g_autofree char *end = NULL;

    qtest_qmp_assert_success(qts, "{ 'execute': 'migrate-incoming', "
                             "'arguments': { 'uri': %s, "
                             "'exit-on-error': false } }", uri);
    end = wait_for_end(qts, &x->why);
    if (!strcmp(end, "failed")) {
        qtest_quit(qts);
        return NULL;
    }
    return qts;
}

/* The helpers go on with another machine, which has the same addresses. */
static void adopt(Migration *x, QTestState *qts)
{
    x->m.qts = qts;
    x->m.card.qts = qts;
    x->m.bus->qts = qts;
}

static void migrate(Migration *x)
{
    QTestState *qts;

    save(x);
    qtest_quit(x->m.qts);
    qts = load(x, x->card);
    g_assert_nonnull(qts);
    qtest_clock_set(qts, x->clock);
    adopt(x, qts);
    qrdma_settle(&x->m.card);
}

static void assert_clean(QRdma *q)
{
    QDict *report = qrdma_audit_report(q);

    qrdma_audit_assert_clean(report);
    qobject_unref(report);
}

/* ---------------------------------------------------------------- transfers */

typedef struct Traffic {
    Migration x;
    QRdmaBench bench;
    uint64_t from;
    uint64_t to;
    uint32_t key;
} Traffic;

#define ROOT        8           /* PBLE index of the root at level 2 */
#define TABLE       1024        /* of the table, or of the first leaf */
#define KEY_INDEX   0x44
#define KEY_START   0x600000000000ull

/* A key for the remote buffer; level 0 wants it in one block of 1 MiB. */
static uint32_t make_key(Traffic *t, unsigned level)
{
    unsigned pages = TRANSFERS * TRANSFER / QRDMA_PAGE;
    unsigned log = level ? QRDMA_LOG_4K : 20;
    uint32_t index = level == 0 ? 0 : level == 1 ? TABLE : ROOT;
    struct qrdma_mkc mkc = qrdma_mkc_table(KEY_INDEX, QRDMA_TEST_PD, level,
                                           log, KEY_START,
                                           TRANSFERS * TRANSFER, index,
                                           level ? pages : 1);

    if (level == 0) {
        mkc.base = cpu_to_le64(t->to | QRDMA_PBLE_READ | QRDMA_PBLE_WRITE);
    } else {
        qrdma_add_direct_sd(t->bench.q, 0);
    }
    for (unsigned i = 0; level && i < pages; i++) {
        qrdma_pble_write(t->bench.q, TABLE + i, (t->to + i * QRDMA_PAGE) |
                         QRDMA_PBLE_READ | QRDMA_PBLE_WRITE);
    }
    if (level == 2) {
        qrdma_pble_write(t->bench.q, ROOT, TABLE | QRDMA_ROOT_VALID);
    }
    return qrdma_bench_mkey(&t->bench, KEY_INDEX, &mkc);
}

static void traffic_start(Traffic *t, const char *card, unsigned level)
{
    QRdma *q;

    migration_start(&t->x, card);
    q = &t->x.m.card;
    qrdma_bench_init(&t->bench, q);
    t->from = qrdma_alloc(q, TRANSFERS * TRANSFER);
    t->to = qrdma_alloc_aligned(q, 1 * MiB, 1 * MiB);
    t->key = make_key(t, level);
    qrdma_write_pattern(q, t->from, TRANSFERS * TRANSFER, 1);
}

static void post_all(Traffic *t)
{
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct qrdma_sge sge = qrdma_sge(t->from + i * TRANSFER, TRANSFER,
                                         t->bench.local_key);
        struct qrdma_send_wqe wqe = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .remote_address = cpu_to_le64(KEY_START + i * TRANSFER),
            .remote_key = cpu_to_le32(t->key),
        };

        qrdma_post(t->bench.q, &t->bench.a, wqe, &sge, 1);
    }
}

/* All are over, in order, and the data is there. */
static void finish_all(Traffic *t)
{
    for (unsigned i = 0; i < TRANSFERS; i++) {
        struct qrdma_cqe cqe;

        while (!qrdma_cq_poll(t->bench.q, &t->bench.cq_a, &cqe)) {
            step(&t->x, LATENCY);
        }
        g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
        g_assert_cmpuint(le32_to_cpu(cqe.byte_length), ==, TRANSFER);
    }
    qrdma_assert_pattern(t->bench.q, t->to, TRANSFERS * TRANSFER, 1);
}

/*
 * Keys at each level; 16 transfers under way, at several points of them; and
 * transfers before and after.
 */
static void test_traffic(const void *data)
{
    unsigned level = GPOINTER_TO_UINT(data);
    Traffic t;

    traffic_start(&t, CARD ",packet-latency=100000,audit=on", level);
    post_all(&t);
    for (unsigned i = 0; i < 4; i++) {
        step(&t.x, LATENCY * (i * 13 + 1));
        migrate(&t.x);
    }
    finish_all(&t);
    post_all(&t);
    finish_all(&t);
    migrate(&t.x);
    post_all(&t);
    finish_all(&t);
    assert_clean(t.bench.q);
    migration_stop(&t.x);
}

/* Nothing moves while the machine is stopped; then everything does. */
static void test_stopped(void)
{
    Traffic t;

    traffic_start(&t, CARD, 1);
    qtest_qmp_assert_success(t.x.m.qts, "{ 'execute': 'stop' }");
    post_all(&t);
    qrdma_settle(t.bench.q);
    qrdma_assert_zero(t.bench.q, t.to, TRANSFERS * TRANSFER);
    qtest_qmp_assert_success(t.x.m.qts, "{ 'execute': 'cont' }");
    finish_all(&t);
    migration_stop(&t.x);
}

/* A source whose migration came to nothing goes on as if it had not been. */
static void test_source_goes_on(void)
{
    Traffic t;

    traffic_start(&t, CARD ",packet-latency=100000", 2);
    post_all(&t);
    step(&t.x, LATENCY * 5);
    save(&t.x);
    qtest_qmp_assert_success(t.x.m.qts, "{ 'execute': 'cont' }");
    finish_all(&t);
    migration_stop(&t.x);
}

/* -------------------------------------------------------------- page faults */

#define FAULT_LENGTH (8 * QRDMA_PAGE)

/* An on-demand key whose pages are all absent; its sender stops at once. */
static uint32_t suspend(Traffic *t)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(KEY_INDEX + 1, QRDMA_TEST_PD, 1,
                                           QRDMA_LOG_4K, KEY_START,
                                           FAULT_LENGTH, 2 * TABLE, 8);
    struct qrdma_sge sge = qrdma_sge(t->from, FAULT_LENGTH,
                                     t->bench.local_key);
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };

    mkc.flags |= cpu_to_le32(QRDMA_MKEY_ON_DEMAND);
    wqe.remote_address = cpu_to_le64(KEY_START);
    wqe.remote_key = cpu_to_le32(qrdma_bench_mkey(&t->bench, KEY_INDEX + 1,
                                                  &mkc));
    qrdma_post(t->bench.q, &t->bench.a, wqe, &sge, 1);
    return le32_to_cpu(qrdma_eq_expect(t->bench.q, &t->bench.async,
                                       QRDMA_EVENT_PAGE_FAULT).token);
}

static void repair(Traffic *t)
{
    uint64_t entries[QRDMA_PBLES_PER_UNIT];
    struct qrdma_umr_wqe wqe = {
        .umr_flags = cpu_to_le16(QRDMA_UMR_INLINE),
        .key = cpu_to_le32(qrdma_key(KEY_INDEX + 1)),
        .table_length = cpu_to_le32(sizeof(entries)),
    };

    for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        entries[i] = cpu_to_le64((t->to + i * QRDMA_PAGE) | QRDMA_PBLE_READ |
                                 QRDMA_PBLE_WRITE);
    }
    g_assert_cmpint(qrdma_bench_umr(&t->bench, wqe, entries, sizeof(entries)),
                    ==, QRDMA_STATUS_OK);
}

static void test_page_fault(void)
{
    Traffic t;
    struct qrdma_resume resume = { 0 };

    traffic_start(&t, CARD ",audit=on", 1);
    resume.token = cpu_to_le32(suspend(&t));
    migrate(&t.x);
    qrdma_cq_expect_none(t.bench.q, &t.bench.cq_a);
    repair(&t);
    migrate(&t.x);
    qrdma_command_ok(t.bench.q, QRDMA_CMD_RESUME_PAGE_FAULT,
                     t.bench.a.number, &resume, sizeof(resume), NULL, 0);
    qrdma_cq_expect(t.bench.q, &t.bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(t.bench.q, t.to, FAULT_LENGTH, 1);
    migration_stop(&t.x);
}

/* ------------------------------------------------------------ live changes */

static void migrate_before_umr(QRdmaChange *c)
{
    migrate(c->opaque);
}

/* Every probe page is in its new place. */
static void assert_in_place(QRdmaChange *c, unsigned log_page_size)
{
    unsigned pages[QRDMA_MAX_PROBES];
    unsigned count = qrdma_change_probes(c, pages);

    for (unsigned i = 0; i < count; i++) {
        g_assert_cmphex(qrdma_change_read(c, pages[i]), ==,
                        qrdma_change_stamp(log_page_size, pages[i]));
    }
}

/* A migration before each step: the audit judges the change as a whole. */
static void test_five_steps(void)
{
    Migration x;
    QRdmaChange c;
    QDict *report;

    migration_start(&x, CARD ",audit=on");
    qrdma_change_init(&c, &x.m.card, LENGTH, QRDMA_LOG_2M, true);
    c.before = migrate_before_umr;
    c.opaque = &x;
    qrdma_change_page_size(&c, QRDMA_LOG_4K);
    c.before = NULL;
    assert_in_place(&c, QRDMA_LOG_4K);
    report = qrdma_audit_report(&x.m.card);
    g_assert_cmpuint(qrdma_audit_counter(report, "windows"), >, 0);
    qrdma_audit_assert_clean(report);
    qobject_unref(report);
    migration_stop(&x);
}

/* The same where the card leaves steps out: half of it is seen on each side. */
static void test_torn_half_way(void)
{
    Migration x;
    QRdmaChange c;
    QDict *report;

    migration_start(&x, CARD ",audit=on,diagnostics=on");
    qrdma_change_init(&c, &x.m.card, LENGTH, QRDMA_LOG_2M, true);
    qrdma_faults_set(x.m.qts, "[ { 'target': 'umr', 'action': 'drop' }, "
                     "{ 'target': 'umr', 'action': 'drop', 'at': 2 }, "
                     "{ 'target': 'umr', 'action': 'swap', 'at': 3 } ]");
    c.before = migrate_before_umr;
    c.opaque = &x;
    qrdma_change_page_size(&c, QRDMA_LOG_4K);
    report = qrdma_audit_report(&x.m.card);
    g_assert_cmpuint(qrdma_audit_findings(report, "torn"), >, 0);
    qobject_unref(report);
    migrate(&x);
    report = qrdma_audit_report(&x.m.card);
    g_assert_cmpuint(qrdma_audit_findings(report, "torn"), >, 0);
    qobject_unref(report);
    migration_stop(&x);
}

/* ----------------------------------------------------------------- refusals */

/* What is written at an offset from the card's magic, and what is said. */
typedef struct Spoilt {
    const char *name;
    int offset;
    uint8_t bytes[4];
    const char *error;
} Spoilt;

static const Spoilt spoilt[] = {
    { "magic", 0, "xxxx", "card: section: \"xxxx\" stands where \"qrdm\"" },
    { "version", 4, { 9 }, "card: qrdm.version: 9 is not in 1..1" },
    { "length", -4, { 0xff, 0xff, 0xff, 0xff },
      "Input validation failed: qrdma-part/length" },
    { "no-length", -4, { 0, 0, 0, 0 },
      "Input validation failed: qrdma-part/length" },
    { "mac", 8, { 0x06 }, "card: config.mac: 06:00:00:00:00:01" },
    { "pble-cache", 14, { 0 }, "card: config.pble-cache: off where" },
    { "boolean", 15, { 7 }, "card: config.diagnostics: 7 is not in 0..1" },
    { "status", 17, { 0xff, 0xff, 0xff, 0xff }, "card: registers.status: " },
    { "error", 21, { 99 }, "card: registers.error: 99 is not in 0..6" },
    { "ring", 26, { 1 }, "card: commands.ring: the registers describe none" },
};

static gchar *find_magic(gchar *bytes, gsize length)
{
    static const char magic[] = "qrdm\1\0\0\0";

    for (gsize i = 0; i + sizeof(magic) - 1 <= length; i++) {
        if (!memcmp(bytes + i, magic, sizeof(magic) - 1)) {
            return bytes + i;
        }
    }
    g_assert_not_reached();
}

static void assert_refused(Migration *x, const char *card, const char *error)
{
    g_autofree char *said = NULL;

    g_assert_null(load(x, card));
    g_assert_true(g_file_get_contents(x->errors, &said, NULL, NULL));
    /* Errors of QEMU's own go there since 10.2. */
    if (!strstr(said, error) && !(x->why && strstr(x->why, error))) {
        g_error("expected \"%s\" in: %s%s", error, said,
                x->why ? x->why : "");
    }
}

/* A stream of a card at work. */
static gchar *make_stream(Traffic *t, gsize *length)
{
    gchar *bytes;

    traffic_start(t, CARD ",packet-latency=100000", 2);
    post_all(t);
    step(&t->x, LATENCY);
    save(&t->x);
    g_assert_true(g_file_get_contents(t->x.file, &bytes, length, NULL));
    return bytes;
}

static void test_spoilt(const void *data)
{
    const Spoilt *what = data;
    Traffic t;
    gsize length;
    g_autofree gchar *bytes = make_stream(&t, &length);
    gsize size = what->offset == 4 || what->bytes[1] || what->offset < 0
                 ? 4 : 1;

    memcpy(find_magic(bytes, length) + what->offset, what->bytes, size);
    g_assert_true(g_file_set_contents(t.x.file, bytes, length, NULL));
    assert_refused(&t.x, t.x.card, what->error);
    migration_stop(&t.x);
}

/* It ends in the middle of the card's part. */
static void test_truncated(void)
{
    Traffic t;
    gsize length;
    g_autofree gchar *bytes = make_stream(&t, &length);
    gsize shorter = find_magic(bytes, length) + 4000 - bytes;

    g_assert_true(g_file_set_contents(t.x.file, bytes, shorter, NULL));
    g_assert_null(load(&t.x, t.x.card));
    migration_stop(&t.x);
}

/* What the guest has seen of the card has to be the same. */
static void test_other_card(void)
{
    Traffic t;
    gsize length;
    g_autofree gchar *bytes = make_stream(&t, &length);

    assert_refused(&t.x, CARD ",audit=on",
                   "audit: it is missing, and this card has one");
    assert_refused(&t.x, CARD ",diagnostics=on",
                   "card: config.diagnostics: off where");
    assert_refused(&t.x, "-machine q35 -m 64M -device qrdma,"
                   QRDMA_TEST_ID ",addr=04.0,mac=02:00:00:00:00:02",
                   "card: config.mac: 02:00:00:00:00:01 where");
    /* And as it is, it is taken. */
    adopt(&t.x, (qtest_quit(t.x.m.qts), load(&t.x, t.x.card)));
    qtest_clock_set(t.x.m.qts, t.x.clock);
    finish_all(&t);
    migration_stop(&t.x);
}

/* ---------------------------------------------------------------- snapshots */

static void wait_for_job(QTestState *qts, const char *id)
{
    for (;;) {
        QDict *answer = qtest_qmp(qts, "{ 'execute': 'query-jobs' }");
        QList *jobs = qdict_get_qlist(answer, "return");
        const QListEntry *entry;
        bool over = false;

        QLIST_FOREACH_ENTRY(jobs, entry) {
            QDict *job = qobject_to(QDict, qlist_entry_obj(entry));

            if (!strcmp(qdict_get_str(job, "id"), id)) {
                over = !strcmp(qdict_get_str(job, "status"), "concluded");
                if (over && qdict_get_try_str(job, "error")) {
                    g_error("%s: %s", id, qdict_get_str(job, "error"));
                }
            }
        }
        qobject_unref(answer);
        if (over) {
            break;
        }
        g_usleep(1000);
    }
    qtest_qmp_assert_success(qts, "{ 'execute': 'job-dismiss', 'arguments': "
                             "{ 'id': %s } }", id);
}

/* A disk for snapshots, and nothing else. */
static void add_disk(Migration *x)
{
    QTestState *qts = x->m.qts;

    qtest_qmp_assert_success(qts, "{ 'execute': 'blockdev-create', "
                             "'arguments': { 'job-id': 'create', 'options': "
                             "{ 'driver': 'file', 'filename': %s, 'size': 0 "
                             "} } }", x->file);
    wait_for_job(qts, "create");
    qtest_qmp_assert_success(qts, "{ 'execute': 'blockdev-add', 'arguments': "
                             "{ 'driver': 'file', 'node-name': 'file', "
                             "'filename': %s } }", x->file);
    qtest_qmp_assert_success(qts, "{ 'execute': 'blockdev-create', "
                             "'arguments': { 'job-id': 'format', 'options': "
                             "{ 'driver': 'qcow2', 'file': 'file', "
                             "'size': 1048576 } } }");
    wait_for_job(qts, "format");
    qtest_qmp_assert_success(qts, "{ 'execute': 'blockdev-add', 'arguments': "
                             "{ 'driver': 'qcow2', 'node-name': 'disk', "
                             "'file': 'file' } }");
}

static void snapshot(Migration *x, const char *command)
{
    qtest_qmp_assert_success(x->m.qts, "{ 'execute': %s, 'arguments': "
                             "{ 'job-id': 'snapshot', 'tag': 'then', "
                             "'vmstate': 'disk', 'devices': [ 'disk' ] } }",
                             command);
    wait_for_job(x->m.qts, "snapshot");
    qtest_qmp_assert_success(x->m.qts, "{ 'execute': 'cont' }");
    qrdma_settle(&x->m.card);
}

/* Transfers under way are under way again, twice. */
static void test_snapshot(void)
{
    Traffic t;

    traffic_start(&t, CARD ",packet-latency=100000,audit=on", 2);
    add_disk(&t.x);
    post_all(&t);
    step(&t.x, LATENCY * 7);
    snapshot(&t.x, "snapshot-save");
    for (unsigned i = 0; i < 2; i++) {
        uint32_t consumer = t.bench.cq_a.consumer;

        finish_all(&t);
        snapshot(&t.x, "snapshot-load");
        t.bench.cq_a.consumer = consumer;
    }
    finish_all(&t);
    assert_clean(t.bench.q);
    migration_stop(&t.x);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned level = 0; level <= 2; level++) {
        g_autofree char *name =
            g_strdup_printf("qrdma-migration/traffic/level-%u", level);

        qtest_add_data_func(name, GUINT_TO_POINTER(level), test_traffic);
    }
    qtest_add_func("qrdma-migration/stopped", test_stopped);
    qtest_add_func("qrdma-migration/source-goes-on", test_source_goes_on);
    qtest_add_func("qrdma-migration/page-fault", test_page_fault);
    qtest_add_func("qrdma-migration/five-steps", test_five_steps);
    qtest_add_func("qrdma-migration/torn-half-way", test_torn_half_way);
    for (unsigned i = 0; i < G_N_ELEMENTS(spoilt); i++) {
        g_autofree char *name =
            g_strdup_printf("qrdma-migration/refused/%s", spoilt[i].name);

        qtest_add_data_func(name, &spoilt[i], test_spoilt);
    }
    qtest_add_func("qrdma-migration/refused/truncated", test_truncated);
    qtest_add_func("qrdma-migration/refused/other-card", test_other_card);
    qtest_add_func("qrdma-migration/snapshot", test_snapshot);
    return g_test_run();
}
