/*
 * qrdma: what verifies a driver, as properties of the device: the timeline, the
 * time that packets take, faults from the start on, and work under icount.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "qobject/qjson.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "qobject/qstring.h"
#include "libqos/pci-pc.h"
#include "qrdma-change.h"
#include "qrdma-machine.h"
#include "qrdma-verify.h"

#define LENGTH  (18 * MiB)
#define DEVICE  "-machine pc -device qrdma," QRDMA_TEST_ID ",addr=04.0"

/* ---------------------------------------------------------------- timeline */

/* A file of that many zero bytes; the caller removes it. */
static char *make_file(size_t size)
{
    g_autofree char *zeros = g_malloc0(size);
    char *name;
    int fd = g_file_open_tmp("qrdma-XXXXXX", &name, NULL);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(write(fd, zeros, size), ==, size);
    close(fd);
    return name;
}

static void remove_file(char *name)
{
    unlink(name);
    g_free(name);
}

static void start_with_timeline(QRdmaMachine *m, const char *file,
                                const char *more)
{
    g_autofree char *arguments = g_strdup_printf(DEVICE ",audit=on,"
                                                 "timeline=%s%s", file, more);

    qrdma_machine_start(m, arguments);
    qrdma_machine_card(m, 0, QRDMA_TEST_SLOT);
}

/* A write and a naive change of page size, in which something tears. */
static void make_records(QRdmaMachine *m)
{
    QRdmaChange c;

    qrdma_change_init(&c, &m->card, LENGTH, QRDMA_LOG_2M, true);
    qrdma_faults_set(m->qts, "[ { 'target': 'umr', 'action': 'drop' }, "
                     "{ 'target': 'umr', 'action': 'drop', 'at': 2 }, "
                     "{ 'target': 'umr', 'action': 'swap', 'at': 3 } ]");
    g_assert_cmpint(qrdma_bench_write(&c.bench, c.local, QRDMA_CHANGE_START,
                                      qrdma_key(QRDMA_CHANGE_INDEX), 64), ==,
                    QRDMA_CQE_SUCCESS);
    qrdma_change_page_size(&c, QRDMA_LOG_4K);
    qrdma_command_ok(&m->card, QRDMA_CMD_DESTROY_MKEY, QRDMA_CHANGE_INDEX,
                     NULL, 0, NULL, 0);
}

static QList *read_whole(const char *file)
{
    g_autofree char *text = NULL;
    QObject *all;

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    all = qobject_from_json(text, &error_abort);
    g_assert_nonnull(qobject_to(QList, all));
    return qobject_to(QList, all);
}

/* A line between "[" and "]" is an object and, but for the last, a comma. */
static void assert_lines(const char *file)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    unsigned count;

    g_assert_true(g_file_get_contents(file, &text, NULL, NULL));
    lines = g_strsplit(g_strchomp(text), "\n", 0);
    count = g_strv_length(lines);
    g_assert_cmpuint(count, >, 2);
    g_assert_cmpstr(lines[0], ==, "[");
    g_assert_cmpstr(lines[count - 1], ==, "]");
    for (unsigned i = 1; i < count - 1; i++) {
        size_t length = strlen(lines[i]);
        QObject *object;

        if (i < count - 2) {
            g_assert_cmpint(lines[i][length - 1], ==, ',');
            lines[i][length - 1] = 0;
        }
        object = qobject_from_json(lines[i], &error_abort);
        g_assert_nonnull(qobject_to(QDict, object));
        qobject_unref(object);
    }
}

static bool has_address(const QDict *args, const char *name)
{
    const char *text = qdict_get_try_str(args, name);

    return text && g_str_has_prefix(text, "0x");
}

static void assert_intervals(const QDict *args)
{
    const QListEntry *entry;

    QLIST_FOREACH_ENTRY(qdict_get_qlist(args, "intervals"), entry) {
        QList *interval = qobject_to(QList, qlist_entry_obj(entry));
        const QListEntry *member = qlist_first(interval);
        const char *address;

        g_assert_cmpuint(qlist_size(interval), ==, 3);
        g_assert_nonnull(qobject_to(QString, qlist_entry_obj(member)));
        member = qlist_next(member);
        address = qstring_get_str(qobject_to(QString,
                                             qlist_entry_obj(member)));
        g_assert_true(g_str_has_prefix(address, "0x"));
        member = qlist_next(member);
        g_assert_nonnull(qobject_to(QNum, qlist_entry_obj(member)));
    }
}

/* What every record of a category has. */
static void assert_record(const QDict *record)
{
    const char *cat = qdict_get_str(record, "cat");
    const QDict *args = qdict_get_qdict(record, "args");
    bool access = g_str_equal(cat, "access");
    bool lasts = access || g_str_equal(cat, "window");

    g_assert_cmpstr(qdict_get_str(record, "ph"), ==, lasts ? "X" : "i");
    g_assert_cmpint(qdict_haskey(record, "dur"), ==, lasts);
    g_assert_true(qdict_haskey(record, "ts"));
    g_assert_cmpint(qdict_get_int(record, "pid"), ==, access ? 2 : 1);
    g_assert_true(qdict_haskey(record, "tid"));
    g_assert_true(qdict_haskey(args, "key"));
    g_assert_true(has_address(args, "address"));
    g_assert_true(qdict_haskey(args, "length"));
    g_assert_cmpint(qdict_haskey(args, "change"), ==, !access);
    if (g_str_equal(cat, "change")) {
        assert_intervals(args);
    }
}

/* How many records are of that category. */
static unsigned count_records(const QList *all, const char *cat)
{
    const QListEntry *entry;
    unsigned count = 0;

    QLIST_FOREACH_ENTRY(all, entry) {
        const QDict *record = qobject_to(QDict, qlist_entry_obj(entry));

        if (g_strcmp0(qdict_get_try_str(record, "cat"), cat) == 0) {
            count++;
        }
    }
    return count;
}

/* Processes first, then each thread before it is used. */
static void assert_metadata(const QList *all)
{
    g_autoptr(GHashTable) named = g_hash_table_new(g_direct_hash,
                                                   g_direct_equal);
    const QListEntry *entry;
    unsigned i = 0;

    QLIST_FOREACH_ENTRY(all, entry) {
        const QDict *record = qobject_to(QDict, qlist_entry_obj(entry));
        bool metadata = g_str_equal(qdict_get_str(record, "ph"), "M");
        gpointer thread = GUINT_TO_POINTER(qdict_get_int(record, "tid") * 4 +
                                           qdict_get_int(record, "pid"));

        if (i < 2) {
            g_assert_true(metadata);
            g_assert_cmpstr(qdict_get_str(record, "name"), ==,
                            "process_name");
        } else if (metadata) {
            g_assert_cmpstr(qdict_get_str(record, "name"), ==, "thread_name");
            g_assert_true(g_hash_table_add(named, thread));
        } else {
            g_assert_true(g_hash_table_contains(named, thread));
            assert_record(record);
        }
        i++;
    }
}

static void test_timeline(void)
{
    static const char *const categories[] = {
        "create", "destroy", "window", "change", "access", "finding",
    };
    QRdmaMachine m;
    char *file = make_file(0);
    QList *all;

    start_with_timeline(&m, file, "");
    make_records(&m);
    qrdma_machine_stop(&m);

    assert_lines(file);
    all = read_whole(file);
    assert_metadata(all);
    for (size_t i = 0; i < ARRAY_SIZE(categories); i++) {
        g_test_message("%s", categories[i]);
        g_assert_cmpuint(count_records(all, categories[i]), >, 0);
    }
    qobject_unref(all);
    remove_file(file);
}

/* The limit is kept, the last record says so, and the card works on. */
static void test_limit(void)
{
    QRdmaMachine m;
    char *file = make_file(4096);
    QList *all;
    const QListEntry *entry, *last = NULL;
    unsigned records = 0;

    start_with_timeline(&m, file, ",timeline-limit=3");
    make_records(&m);
    qrdma_machine_stop(&m);

    all = read_whole(file);
    QLIST_FOREACH_ENTRY(all, entry) {
        const QDict *record = qobject_to(QDict, qlist_entry_obj(entry));

        records += qdict_haskey(record, "cat");
        last = entry;
    }
    g_assert_cmpuint(records, ==, 4);
    g_assert_cmpstr(qdict_get_str(qobject_to(QDict, qlist_entry_obj(last)),
                                  "cat"), ==, "cut");
    qobject_unref(all);
    remove_file(file);
}

/* A second device cannot write into the same file. */
static void test_in_use(void)
{
    QRdmaMachine m;
    char *file = make_file(0);
    QDict *response, *error;

    start_with_timeline(&m, file, "");
    response = qtest_qmp(m.qts, "{ 'execute': 'device_add', 'arguments': "
                         "{ 'driver': 'qrdma', 'addr': '05.0', "
                         "'audit': true, 'timeline': %s } }", file);
    error = qdict_get_qdict(response, "error");
    g_assert_nonnull(error);
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), file));
    g_assert_nonnull(strstr(qdict_get_str(error, "desc"), "in use"));
    qobject_unref(response);
    make_records(&m);
    qrdma_machine_stop(&m);
    assert_lines(file);
    remove_file(file);
}

/* When the card is taken out, its timeline is complete, and free again. */
static void test_timeline_unplug(void)
{
    QRdmaMachine m;
    char *file = make_file(0);

    start_with_timeline(&m, file, "");
    make_records(&m);
    qpci_unplug_acpi_device_test(m.qts, "card", QRDMA_TEST_SLOT);
    assert_lines(file);
    qtest_qmp_assert_success(m.qts, "{ 'execute': 'device_add', "
                             "'arguments': { 'driver': 'qrdma', "
                             "'addr': '05.0', 'audit': true, "
                             "'timeline': %s } }", file);
    qrdma_machine_stop(&m);
    remove_file(file);
}

/* What cannot be written ends the timeline, and nothing else. */
static void test_timeline_full(void)
{
    QRdmaMachine m;
    QDict *report;

    if (access("/dev/full", W_OK) != 0) {
        g_test_skip("there is no /dev/full");
        return;
    }
    start_with_timeline(&m, "/dev/full", "");
    make_records(&m);
    report = qrdma_audit_report(&m.card);
    g_assert_cmpuint(qrdma_audit_counter(report, "torn-bytes"), >, 0);
    qobject_unref(report);
    qrdma_machine_stop(&m);
}

/* -------------------------------------------------- the time packets take */

/*
 * Given a latency and a bandwidth, a packet's data is moved when both have
 * passed, and not a nanosecond before.
 */
static void test_packet_time(void)
{
    const uint32_t size = 1024;     /* one packet of the bench's path MTU */
    QRdmaMachine m;
    QRdmaBench bench;
    uint64_t memory;
    uint32_t key;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(2, QRDMA_TEST_PD);
    struct qrdma_sge sge;
    struct qrdma_send_wqe wqe = { .opcode = QRDMA_SEND_OP_WRITE };

    /* A byte a microsecond. */
    qrdma_machine_start(&m, DEVICE ",packet-latency=500,bandwidth=1000000");
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    qrdma_bench_init(&bench, &m.card);
    key = qrdma_bench_mkey(&bench, 2, &mkc);
    memory = qrdma_alloc(&m.card, 2 * QRDMA_PAGE);
    qrdma_write_pattern(&m.card, memory, size, 1);
    sge = qrdma_sge(memory, size, bench.local_key);
    wqe.remote_address = cpu_to_le64(memory + QRDMA_PAGE);
    wqe.remote_key = cpu_to_le32(key);
    qrdma_post(&m.card, &bench.a, wqe, &sge, 1);
    qrdma_settle(&m.card);

    qtest_clock_step(m.qts, size * 1000 + 499);
    qrdma_settle(&m.card);
    qrdma_assert_zero(&m.card, memory + QRDMA_PAGE, size);
    qtest_clock_step(m.qts, 1);
    qrdma_settle(&m.card);
    qrdma_assert_pattern(&m.card, memory + QRDMA_PAGE, size, 1);
    qrdma_machine_stop(&m);
}

/* ------------------------------------------------------------------ faults */

/* A fault given with the device hits the first thing of its kind. */
static void test_faults_from_start(void)
{
    QRdmaMachine m;

    qrdma_machine_start(&m, "-machine pc -device '{ \"driver\": \"qrdma\", "
                        "\"id\": \"card\", \"addr\": \"04.0\", "
                        "\"faults\": [ { \"target\": \"command\", "
                        "\"action\": \"fail\", \"status\": 9 } ] }'");
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    qrdma_start(&m.card);
    g_assert_cmpint(qrdma_command(&m.card, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0),
                    ==, QRDMA_STATUS_NO_RESOURCES);
    qrdma_command_ok(&m.card, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    qrdma_machine_stop(&m);
}

/* ------------------------------------------------------------------ icount */

/*
 * Under icount the card works from a timer. The CPU runs a firmware of zeros,
 * which as instructions do nothing that anybody sees.
 */
static void test_icount(void)
{
    QRdmaMachine m;
    QRdmaChange c;
    QDict *report;
    char *firmware = make_file(64 * KiB);
    g_autofree char *arguments = g_strdup_printf(
        "-accel tcg -icount shift=0 -bios %s " DEVICE ",audit=on", firmware);

    if (!qtest_has_accel("tcg")) {
        g_test_skip("QEMU was built without TCG");
        remove_file(firmware);
        return;
    }
    qrdma_machine_start(&m, arguments);
    qrdma_machine_card(&m, 0, QRDMA_TEST_SLOT);
    qrdma_change_init(&c, &m.card, LENGTH, QRDMA_LOG_2M, true);
    qrdma_change_page_size(&c, QRDMA_LOG_4K);
    g_assert_cmphex(qrdma_change_read(&c, 513), ==,
                    qrdma_change_stamp(QRDMA_LOG_4K, 513));
    report = qrdma_audit_report(&m.card);
    qrdma_audit_assert_clean(report);
    qobject_unref(report);
    qrdma_machine_stop(&m);
    remove_file(firmware);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    qtest_add_func("qrdma-verify/timeline/records", test_timeline);
    qtest_add_func("qrdma-verify/timeline/limit", test_limit);
    qtest_add_func("qrdma-verify/timeline/in-use", test_in_use);
    qtest_add_func("qrdma-verify/timeline/unplug", test_timeline_unplug);
    qtest_add_func("qrdma-verify/timeline/full", test_timeline_full);
    qtest_add_func("qrdma-verify/packet-time", test_packet_time);
    qtest_add_func("qrdma-verify/faults-from-start", test_faults_from_start);
    qtest_add_func("qrdma-verify/icount", test_icount);
    return g_test_run();
}
