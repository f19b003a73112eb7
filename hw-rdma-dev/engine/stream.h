/*
 * qrdma engine: a saved state, as a stream of named fields.
 *
 * One function describes an object for both directions: it names each field,
 * with the range of its values; saving appends the value, loading checks it and
 * stores it. What the file of a migration says is believed nowhere else.
 *
 * The format: fields one after the other, without padding, little-endian. A
 * section begins with its tag and version.
 *
 * After the first failure of a load nothing is stored any more: fields keep the
 * value they have, counts are 0. So describing functions need not look at each
 * step, only before they use what they have loaded.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_STREAM_H
#define QRDMA_STREAM_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct QrdmaStream QrdmaStream;

/* For saving. */
QrdmaStream *qrdma_stream_new_writer(void);

/* For loading; `bytes` have to stay until it is freed. */
QrdmaStream *qrdma_stream_new_reader(const void *bytes, size_t length);

void qrdma_stream_free(QrdmaStream *stream);

/* What has been saved; the caller owns it. */
GByteArray *qrdma_stream_take_bytes(QrdmaStream *stream);

bool qrdma_stream_is_loading(const QrdmaStream *stream);

/* Nothing has failed yet. Saving does not fail. */
bool qrdma_stream_is_good(const QrdmaStream *stream);

/* "qp[17].send.producer: 70000 is not in 0..65535"; NULL: nothing failed. */
const char *qrdma_stream_error(const QrdmaStream *stream);

/* Bytes that have not been loaded yet: a bound for what can still be told. */
size_t qrdma_stream_left(const QrdmaStream *stream);

/*
 * Loading: the field is not what it may be. Only the first one is kept. name
 * NULL: the object as a whole.
 */
void qrdma_stream_fail(QrdmaStream *stream, const char *name,
                       const char *format, ...) G_GNUC_PRINTF(3, 4);

/* Fails unless the condition holds; a no-op when saving. True: it holds. */
#define qrdma_stream_check(stream, condition, name, ...)                \
    (!qrdma_stream_is_loading(stream) || !qrdma_stream_is_good(stream) || \
     (condition) ? qrdma_stream_is_good(stream) :                       \
     (qrdma_stream_fail(stream, name, __VA_ARGS__), false))

/*
 * Names of what follows begin with "name." or "name[index].". Nests. The string
 * has to stay until it is left.
 */
void qrdma_stream_enter(QrdmaStream *stream, const char *name);
void qrdma_stream_enter_item(QrdmaStream *stream, const char *name,
                             uint64_t index);
void qrdma_stream_leave(QrdmaStream *stream);

/*
 * Four characters and a version, from 1. Loading: fails if it is another
 * section, or newer than `version`. What version it is; 0: failed.
 */
uint32_t qrdma_stream_section(QrdmaStream *stream, const char *tag,
                              uint32_t version);

/* Fails if there is more. */
void qrdma_stream_end(QrdmaStream *stream);

/* A value from minimum to maximum. */
void qrdma_stream_u8(QrdmaStream *stream, const char *name, uint8_t *value,
                     uint8_t minimum, uint8_t maximum);
void qrdma_stream_u16(QrdmaStream *stream, const char *name, uint16_t *value,
                      uint16_t minimum, uint16_t maximum);
void qrdma_stream_u32(QrdmaStream *stream, const char *name, uint32_t *value,
                      uint32_t minimum, uint32_t maximum);
void qrdma_stream_u64(QrdmaStream *stream, const char *name, uint64_t *value,
                      uint64_t minimum, uint64_t maximum);
void qrdma_stream_bool(QrdmaStream *stream, const char *name, bool *value);

/* Any bytes. */
void qrdma_stream_bytes(QrdmaStream *stream, const char *name, void *bytes,
                        size_t length);

/* Any words; in the stream each is little-endian. */
void qrdma_stream_words(QrdmaStream *stream, const char *name, uint64_t *words,
                        size_t count);

/*
 * How many of something follow, each of at least item_size bytes: more than the
 * stream can hold is refused, so what is made of it is bounded by the stream.
 */
void qrdma_stream_count(QrdmaStream *stream, const char *name, uint32_t *count,
                        uint32_t maximum, size_t item_size);

/*
 * The number of an object in a list of those that are there, ascending: after
 * *last (UINT32_MAX: there was none), minimum at least and `maximum` at most.
 * Saving: the caller has put it into *last. False: loading has failed.
 */
bool qrdma_stream_next(QrdmaStream *stream, const char *name, uint32_t *last,
                       uint32_t minimum, uint32_t maximum);

/* A string of at most `maximum` bytes, or NULL. Loaded: newly allocated. */
void qrdma_stream_string(QrdmaStream *stream, const char *name, char **string,
                         uint32_t maximum);

/* An enumeration of values from `minimum` to `maximum`. */
#define qrdma_stream_enum(stream, name, value, minimum, maximum) do {   \
        uint32_t qrdma_number = *(value);                               \
        qrdma_stream_u32(stream, name, &qrdma_number, minimum, maximum); \
        *(value) = qrdma_number;                                        \
    } while (0)

#endif /* QRDMA_STREAM_H */
