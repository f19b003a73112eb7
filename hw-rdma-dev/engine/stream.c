/*
 * qrdma engine: a saved state, as a stream of named fields.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <inttypes.h>
#include <string.h>

#include "byteorder.h"
#include "stream.h"

/* What has been entered; put into words only where something is wrong. */
typedef struct Level {
    const char *name;
    bool is_item;
    uint64_t index;
} Level;

struct QrdmaStream {
    GByteArray *saved;          /* NULL: loading */
    const uint8_t *bytes;
    size_t length;
    size_t offset;
    GArray *levels;             /* Level, outermost first */
    char *error;
};

static QrdmaStream *stream_new(void)
{
    QrdmaStream *stream = g_new0(QrdmaStream, 1);

    stream->levels = g_array_new(false, false, sizeof(Level));
    return stream;
}

QrdmaStream *qrdma_stream_new_writer(void)
{
    QrdmaStream *stream = stream_new();

    stream->saved = g_byte_array_new();
    return stream;
}

QrdmaStream *qrdma_stream_new_reader(const void *bytes, size_t length)
{
    QrdmaStream *stream = stream_new();

    stream->bytes = bytes;
    stream->length = length;
    return stream;
}

void qrdma_stream_free(QrdmaStream *stream)
{
    if (!stream) {
        return;
    }
    if (stream->saved) {
        g_byte_array_unref(stream->saved);
    }
    g_array_unref(stream->levels);
    g_free(stream->error);
    g_free(stream);
}

GByteArray *qrdma_stream_take_bytes(QrdmaStream *stream)
{
    return g_steal_pointer(&stream->saved);
}

bool qrdma_stream_is_loading(const QrdmaStream *stream)
{
    return !stream->saved;
}

bool qrdma_stream_is_good(const QrdmaStream *stream)
{
    return !stream->error;
}

const char *qrdma_stream_error(const QrdmaStream *stream)
{
    return stream->error;
}

size_t qrdma_stream_left(const QrdmaStream *stream)
{
    return stream->length - stream->offset;
}

/* "qp[17].send" and "producer" to "qp[17].send.producer". */
static char *full_name(const QrdmaStream *stream, const char *name)
{
    GString *words = g_string_new(NULL);

    for (guint i = 0; i < stream->levels->len; i++) {
        const Level *level = &g_array_index(stream->levels, Level, i);

        g_string_append_printf(words, "%s%s", i ? "." : "", level->name);
        if (level->is_item) {
            g_string_append_printf(words, "[%" PRIu64 "]", level->index);
        }
    }
    if (name) {
        g_string_append_printf(words, "%s%s", words->len ? "." : "", name);
    }
    return g_string_free(words, false);
}

void qrdma_stream_fail(QrdmaStream *stream, const char *name,
                       const char *format, ...)
{
    g_autofree char *what = NULL, *why = NULL;
    va_list arguments;

    if (stream->error) {
        return;
    }
    va_start(arguments, format);
    why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    what = full_name(stream, name);
    stream->error = g_strdup_printf("%s: %s", what, why);
}

void qrdma_stream_enter(QrdmaStream *stream, const char *name)
{
    Level level = { .name = name };

    g_array_append_val(stream->levels, level);
}

void qrdma_stream_enter_item(QrdmaStream *stream, const char *name,
                             uint64_t index)
{
    Level level = { .name = name, .is_item = true, .index = index };

    g_array_append_val(stream->levels, level);
}

void qrdma_stream_leave(QrdmaStream *stream)
{
    g_array_set_size(stream->levels, stream->levels->len - 1);
}

/* False, when loading: nothing was stored. */
static bool move(QrdmaStream *stream, const char *name, void *bytes,
                 size_t length)
{
    if (stream->saved && length) {
        g_byte_array_append(stream->saved, bytes, length);
        return true;
    }
    if (stream->error) {
        return false;
    }
    /* There may be no place for nothing. */
    if (!length) {
        return true;
    }
    if (length > qrdma_stream_left(stream)) {
        qrdma_stream_fail(stream, name, "the stream ends at byte %zu",
                          stream->length);
        return false;
    }
    memcpy(bytes, stream->bytes + stream->offset, length);
    stream->offset += length;
    return true;
}

/* All numbers pass here; in the stream they have `size` bytes. */
static uint64_t number(QrdmaStream *stream, const char *name, uint64_t value,
                       size_t size, uint64_t minimum, uint64_t maximum)
{
    uint64_t raw = qrdma_le64(value);

    if (stream->saved) {
        move(stream, name, &raw, size);
        return value;
    }
    raw = 0;
    if (!move(stream, name, &raw, size)) {
        return value;
    }
    raw = qrdma_le64(raw);
    if (raw < minimum || raw > maximum) {
        qrdma_stream_fail(stream, name, "%" PRIu64 " is not in %" PRIu64
                          "..%" PRIu64, raw, minimum, maximum);
        return value;
    }
    return raw;
}

void qrdma_stream_u8(QrdmaStream *stream, const char *name, uint8_t *value,
                     uint8_t minimum, uint8_t maximum)
{
    *value = number(stream, name, *value, sizeof(*value), minimum, maximum);
}

void qrdma_stream_u16(QrdmaStream *stream, const char *name, uint16_t *value,
                      uint16_t minimum, uint16_t maximum)
{
    *value = number(stream, name, *value, sizeof(*value), minimum, maximum);
}

void qrdma_stream_u32(QrdmaStream *stream, const char *name, uint32_t *value,
                      uint32_t minimum, uint32_t maximum)
{
    *value = number(stream, name, *value, sizeof(*value), minimum, maximum);
}

void qrdma_stream_u64(QrdmaStream *stream, const char *name, uint64_t *value,
                      uint64_t minimum, uint64_t maximum)
{
    *value = number(stream, name, *value, sizeof(*value), minimum, maximum);
}

void qrdma_stream_bool(QrdmaStream *stream, const char *name, bool *value)
{
    *value = number(stream, name, *value, 1, false, true);
}

void qrdma_stream_bytes(QrdmaStream *stream, const char *name, void *bytes,
                        size_t length)
{
    move(stream, name, bytes, length);
}

void qrdma_stream_words(QrdmaStream *stream, const char *name, uint64_t *words,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        words[i] = number(stream, name, words[i], sizeof(*words), 0,
                          UINT64_MAX);
    }
}

void qrdma_stream_count(QrdmaStream *stream, const char *name, uint32_t *count,
                        uint32_t maximum, size_t item_size)
{
    uint32_t value = *count;

    qrdma_stream_u32(stream, name, &value, 0, maximum);
    if (!stream->saved && value > qrdma_stream_left(stream) / item_size) {
        qrdma_stream_fail(stream, name, "%" PRIu32 " do not fit into the rest "
                          "of the stream", value);
    }
    *count = stream->error ? 0 : value;
}

bool qrdma_stream_next(QrdmaStream *stream, const char *name, uint32_t *last,
                       uint32_t minimum, uint32_t maximum)
{
    uint32_t first = MAX(*last + 1, minimum);

    *last = number(stream, name, *last, sizeof(*last),
                   stream->saved ? 0 : first, maximum);
    return !stream->error;
}

void qrdma_stream_string(QrdmaStream *stream, const char *name, char **string,
                         uint32_t maximum)
{
    bool there = *string;
    uint32_t length = there ? strlen(*string) : 0;

    qrdma_stream_bool(stream, name, &there);
    if (!there || stream->error) {
        return;
    }
    length = MIN(length, maximum);
    qrdma_stream_count(stream, name, &length, maximum, 1);
    if (stream->saved) {
        move(stream, name, *string, length);
    } else if (!stream->error) {
        g_free(*string);
        *string = g_strndup((const char *)stream->bytes + stream->offset,
                            length);
        stream->offset += length;
    }
}

uint32_t qrdma_stream_section(QrdmaStream *stream, const char *tag,
                              uint32_t version)
{
    char found[5] = "";
    g_autofree char *readable = NULL;

    memcpy(found, tag, 4);
    move(stream, "section", found, 4);
    readable = g_strescape(found, NULL);
    if (!qrdma_stream_check(stream, !memcmp(found, tag, 4), "section",
                            "\"%s\" stands where \"%.4s\" is expected",
                            readable, tag)) {
        return 0;
    }
    qrdma_stream_enter(stream, readable);
    qrdma_stream_u32(stream, "version", &version, 1, version);
    qrdma_stream_leave(stream);
    return stream->error ? 0 : version;
}

void qrdma_stream_end(QrdmaStream *stream)
{
    qrdma_stream_check(stream, !qrdma_stream_left(stream), "end",
                       "%zu bytes too many", qrdma_stream_left(stream));
}
