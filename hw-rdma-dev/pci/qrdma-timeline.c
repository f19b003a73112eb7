/*
 * qrdma: the timeline as a file of trace events.
 *
 * The format is the JSON array of the Trace Event Format, one record a line.
 * Process 1 has a thread for each mkey, process 2 one for each queue pair. A
 * file that was not closed lacks the end of the array, which the format allows.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/notify.h"
#include "qobject/json-writer.h"
#include "system/system.h"
#include "hw/rdma-dev/pci/qrdma-timeline.h"

#define MKEYS           1       /* process ids */
#define QUEUE_PAIRS     2

#define KEY_INDEX(key)  ((key) >> 8)

struct QrdmaTimelineFile {
    char *name;
    FILE *stream;               /* NULL: complete, or failed */
    bool begun;                 /* the array has a first element */
    uint64_t limit;
    uint64_t records;           /* names of threads and processes not counted */
    GHashTable *threads;        /* those named so far: process << 32 | thread */
    Notifier exit;              /* QEMU leaves its devices as they are */
};

/* -------------------------------------------------------------------- file */

static void give_up(QrdmaTimelineFile *file)
{
    warn_report("qrdma: cannot write the timeline '%s': %s; it ends here",
                file->name, strerror(errno));
    if (file->stream) {
        fclose(file->stream);
        file->stream = NULL;
    }
}

static void put(QrdmaTimelineFile *file, const char *separator,
                const char *text)
{
    if (file->stream && (fputs(separator, file->stream) == EOF ||
                         fputs(text, file->stream) == EOF)) {
        give_up(file);
    }
}

/* The first record opens the array. */
static void put_record(QrdmaTimelineFile *file, JSONWriter *json)
{
    GString *line = json_writer_get_and_free(json);

    put(file, file->begun ? ",\n" : "[\n", line->str);
    g_string_free(line, true);
    file->begun = true;
}

void qrdma_timeline_flush(QrdmaTimelineFile *file)
{
    if (file && file->stream && fflush(file->stream) == EOF) {
        give_up(file);
    }
}

static void complete(QrdmaTimelineFile *file)
{
    FILE *stream;

    put(file, "", "\n]\n");
    stream = file->stream;
    file->stream = NULL;
    if (stream && fclose(stream) == EOF) {
        give_up(file);
    }
}

/* ------------------------------------------------------ parts of a record */

static const char *category(QrdmaTimelineKind kind)
{
    switch (kind) {
    case QRDMA_TIMELINE_CREATE:
        return "create";
    case QRDMA_TIMELINE_DESTROY:
        return "destroy";
    case QRDMA_TIMELINE_WINDOW:
        return "window";
    case QRDMA_TIMELINE_CHANGE:
        return "change";
    case QRDMA_TIMELINE_ACCESS:
        return "access";
    case QRDMA_TIMELINE_FINDING:
        return "finding";
    }
    g_assert_not_reached();
}

static bool lasts(QrdmaTimelineKind kind)
{
    return kind == QRDMA_TIMELINE_WINDOW || kind == QRDMA_TIMELINE_ACCESS;
}

static uint32_t process_of(const QrdmaTimelineRecord *record)
{
    return record->kind == QRDMA_TIMELINE_ACCESS ? QUEUE_PAIRS : MKEYS;
}

static uint32_t thread_of(const QrdmaTimelineRecord *record)
{
    return record->kind == QRDMA_TIMELINE_ACCESS ? record->qpn
                                                 : KEY_INDEX(record->key);
}

/* The format counts in microseconds; a double has room for the nanoseconds. */
static void put_time(JSONWriter *json, const char *name, uint64_t nanoseconds)
{
    json_writer_double(json, name, nanoseconds / 1000.0);
}

/* A string, because readers take numbers for doubles. */
static void put_address(JSONWriter *json, const char *name, uint64_t address)
{
    g_autofree char *text = g_strdup_printf("0x%" PRIx64, address);

    json_writer_str(json, name, text);
}

static void put_thread(JSONWriter *json, uint32_t process, uint32_t thread)
{
    json_writer_uint64(json, "pid", process);
    json_writer_uint64(json, "tid", thread);
}

static void put_intervals(JSONWriter *json, const QrdmaTimelineRecord *record)
{
    json_writer_start_array(json, "intervals");
    for (size_t i = 0; i < record->num_intervals; i++) {
        const QrdmaTimelineInterval *interval = &record->intervals[i];

        json_writer_start_array(json, NULL);
        json_writer_str(json, NULL,
                        qrdma_timeline_class_name(interval->class));
        put_address(json, NULL, interval->address);
        json_writer_uint64(json, NULL, interval->length);
        json_writer_end_array(json);
    }
    json_writer_end_array(json);
}

static void put_arguments(JSONWriter *json, const QrdmaTimelineRecord *record)
{
    json_writer_start_object(json, "args");
    json_writer_uint64(json, "key", record->key);
    put_address(json, "address", record->address);
    json_writer_uint64(json, "length", record->length);
    if (record->kind != QRDMA_TIMELINE_ACCESS) {
        json_writer_uint64(json, "change", record->change);
    }
    if (record->kind == QRDMA_TIMELINE_CHANGE) {
        put_intervals(json, record);
    }
    json_writer_end_object(json);
}

static void put_name(JSONWriter *json, const QrdmaTimelineRecord *record)
{
    const char *text = record->text ?: category(record->kind);
    g_autofree char *name = record->kind == QRDMA_TIMELINE_WINDOW
        ? g_strdup_printf("window: %s", text) : g_strdup(text);

    json_writer_str(json, "name", name);
}

static void put_phase(JSONWriter *json, const QrdmaTimelineRecord *record)
{
    if (lasts(record->kind)) {
        json_writer_str(json, "ph", "X");
    } else {
        json_writer_str(json, "ph", "i");
        /* How high the mark is: all of the picture, or its thread's row. */
        json_writer_str(json, "s",
                        record->kind == QRDMA_TIMELINE_CHANGE ? "t" : "g");
    }
    put_time(json, "ts", record->begin);
    if (lasts(record->kind)) {
        put_time(json, "dur", record->end - record->begin);
    }
}

/* ------------------------------------------------------------------ records */

static void write_metadata(QrdmaTimelineFile *file, const char *kind,
                           uint32_t process, uint32_t thread,
                           const char *name)
{
    JSONWriter *json = json_writer_new(false);

    json_writer_start_object(json, NULL);
    json_writer_str(json, "name", kind);
    json_writer_str(json, "ph", "M");
    put_thread(json, process, thread);
    json_writer_start_object(json, "args");
    json_writer_str(json, "name", name);
    json_writer_end_object(json);
    json_writer_end_object(json);
    put_record(file, json);
}

/* A thread is named before its first record. */
static void name_thread(QrdmaTimelineFile *file, uint32_t process,
                        uint32_t thread)
{
    int64_t id = (int64_t)process << 32 | thread;
    g_autofree char *name = NULL;

    if (g_hash_table_contains(file->threads, &id)) {
        return;
    }
    g_hash_table_add(file->threads, g_memdup2(&id, sizeof(id)));
    name = g_strdup_printf("%s %" PRIu32, process == MKEYS ? "mkey" : "QP",
                           thread);
    write_metadata(file, "thread_name", process, thread, name);
}

static void write_cut(QrdmaTimelineFile *file,
                      const QrdmaTimelineRecord *record)
{
    JSONWriter *json = json_writer_new(false);

    json_writer_start_object(json, NULL);
    json_writer_str(json, "name", "cut: timeline-limit reached");
    json_writer_str(json, "cat", "cut");
    json_writer_str(json, "ph", "i");
    json_writer_str(json, "s", "g");
    put_time(json, "ts", record->begin);
    put_thread(json, MKEYS, 0);
    json_writer_start_object(json, "args");
    json_writer_uint64(json, "limit", file->limit);
    json_writer_end_object(json);
    json_writer_end_object(json);
    put_record(file, json);
}

static void write_record(QrdmaTimelineFile *file,
                         const QrdmaTimelineRecord *record)
{
    JSONWriter *json = json_writer_new(false);

    json_writer_start_object(json, NULL);
    put_name(json, record);
    json_writer_str(json, "cat", category(record->kind));
    put_phase(json, record);
    put_thread(json, process_of(record), thread_of(record));
    put_arguments(json, record);
    json_writer_end_object(json);
    put_record(file, json);
}

void qrdma_timeline_write(QrdmaTimelineFile *file,
                          const QrdmaTimelineRecord *record)
{
    if (!file->stream) {
        return;
    }
    if (file->records == file->limit) {
        write_cut(file, record);
        complete(file);
        return;
    }
    file->records++;
    name_thread(file, process_of(record), thread_of(record));
    write_record(file, record);
    if (record->kind != QRDMA_TIMELINE_ACCESS) {
        qrdma_timeline_flush(file);
    }
}

/* ---------------------------------------------------------- open and close */

static void on_exit_of_qemu(Notifier *notifier, void *data)
{
    complete(container_of(notifier, QrdmaTimelineFile, exit));
}

/* Emptied only when it is known to be nobody else's. Pipes are let pass. */
static int open_alone(const char *name, Error **errp)
{
    int fd = qemu_create(name, O_WRONLY, 0644, errp);
    struct stat status;

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
        return fd;
    }
    if (qemu_lock_fd(fd, 0, 0, true) < 0) {
        error_setg(errp, "the timeline '%s' is in use", name);
    } else if (ftruncate(fd, 0) < 0) {
        error_setg_errno(errp, errno, "cannot empty the timeline '%s'", name);
    } else {
        return fd;
    }
    qemu_close(fd);
    return -1;
}

QrdmaTimelineFile *qrdma_timeline_open(const char *name, uint64_t limit,
                                       Error **errp)
{
    QrdmaTimelineFile *file;
    FILE *stream;
    int fd = open_alone(name, errp);

    if (fd < 0) {
        return NULL;
    }
    stream = fdopen(fd, "w");
    if (!stream) {
        error_setg_errno(errp, errno, "cannot write the timeline '%s'", name);
        qemu_close(fd);
        return NULL;
    }
    file = g_new0(QrdmaTimelineFile, 1);
    file->name = g_strdup(name);
    file->stream = stream;
    file->limit = limit;
    file->threads = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free,
                                          NULL);
    file->exit.notify = on_exit_of_qemu;
    qemu_add_exit_notifier(&file->exit);
    write_metadata(file, "process_name", MKEYS, 0, "mkeys");
    write_metadata(file, "process_name", QUEUE_PAIRS, 0, "queue pairs");
    return file;
}

void qrdma_timeline_close(QrdmaTimelineFile *file)
{
    if (!file) {
        return;
    }
    qemu_remove_exit_notifier(&file->exit);
    complete(file);
    g_hash_table_destroy(file->threads);
    g_free(file->name);
    g_free(file);
}
