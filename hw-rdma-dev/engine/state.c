/*
 * qrdma engine: a card's state, saved and loaded as a whole.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

/* Of the stream as a whole; sections have versions of their own. */
#define STATE_VERSION 1

const char *qrdma_part_name(QrdmaPart part)
{
    static const char *const names[QRDMA_PARTS] = {
        [QRDMA_PART_CARD] = "card",
        [QRDMA_PART_FAULTS] = "faults",
        [QRDMA_PART_AUDIT] = "audit",
    };

    return names[part];
}

bool qrdma_engine_has_part(const QrdmaEngine *engine, QrdmaPart part)
{
    const QrdmaFaults *faults = engine->faults;

    switch (part) {
    case QRDMA_PART_FAULTS:
        return faults->count || faults->fired || faults->result ||
               faults->held.head ||
               !qrdma_is_zero(&faults->described, sizeof(faults->described));
    case QRDMA_PART_AUDIT:
        return engine->audit;
    default:
        return true;
    }
}

static void describe_card(QrdmaStream *stream, QrdmaEngine *engine)
{
    qrdma_stream_section(stream, "qrdm", STATE_VERSION);
    qrdma_state_card(stream, engine);
    qrdma_state_gids(stream, engine);
    qrdma_state_hmc(stream, engine);
    qrdma_state_mkeys(stream, engine);
    qrdma_state_queues(stream, engine);
    qrdma_state_commands(stream, engine);
}

static void describe(QrdmaStream *stream, QrdmaEngine *engine, QrdmaPart part)
{
    switch (part) {
    case QRDMA_PART_CARD:
        describe_card(stream, engine);
        break;
    case QRDMA_PART_FAULTS:
        qrdma_state_faults(stream, engine);
        break;
    case QRDMA_PART_AUDIT:
        if (qrdma_stream_check(stream, engine->audit, NULL,
                               "this card has no audit")) {
            qrdma_state_audit(stream, engine);
        }
        break;
    case QRDMA_PARTS:
        break;
    }
}

bool qrdma_engine_save(QrdmaEngine *engine, QrdmaPart part, QrdmaSaved *saved,
                       char **error)
{
    QrdmaStream *stream = qrdma_stream_new_writer();
    GByteArray *bytes;

    describe(stream, engine, part);
    bytes = qrdma_stream_take_bytes(stream);
    qrdma_stream_free(stream);
    if (bytes->len > QRDMA_SAVED_MAX) {
        *error = g_strdup_printf("%s: %u bytes of state are more than the %u "
                                 "that can be saved", qrdma_part_name(part),
                                 bytes->len, QRDMA_SAVED_MAX);
        g_byte_array_unref(bytes);
        return false;
    }
    saved->length = bytes->len;
    saved->bytes = g_byte_array_free(bytes, false);
    return true;
}

static bool load_part(QrdmaEngine *engine, QrdmaPart part,
                      const QrdmaSaved *saved, char **error)
{
    QrdmaStream *stream = qrdma_stream_new_reader(saved->bytes, saved->length);
    bool good;

    describe(stream, engine, part);
    qrdma_stream_end(stream);
    good = qrdma_stream_is_good(stream);
    if (!good) {
        *error = g_strdup_printf("%s: %s", qrdma_part_name(part),
                                 qrdma_stream_error(stream));
    }
    qrdma_stream_free(stream);
    return good;
}

/* What can only be said once all parts are there. */
static bool check_mkey(const QrdmaMkey *mkey, char **error)
{
    const char *wrong = NULL;

    if (mkey->fencing && !mkey->owner) {
        wrong = "fencing: it is set, and nothing waits";
    } else if (mkey->waiters && !mkey->owner) {
        wrong = "waiters: they wait for nothing";
    }
    if (wrong) {
        *error = g_strdup_printf("card: mkey[%" PRIu32 "].%s", mkey->index,
                                 wrong);
    }
    return !wrong;
}

static bool check_mkeys(QrdmaEngine *engine, char **error)
{
    QrdmaMkey *mkey;

    for (uint32_t next = 0; (mkey = qrdma_mkey_next(engine, next));
         next = mkey->index + 1) {
        if (!check_mkey(mkey, error)) {
            return false;
        }
    }
    return true;
}

static bool load_parts(QrdmaEngine *engine,
                       const QrdmaSaved saved[QRDMA_PARTS], char **error)
{
    if (!saved[QRDMA_PART_CARD].bytes) {
        *error = g_strdup("card: it is missing");
        return false;
    }
    if (engine->audit && !saved[QRDMA_PART_AUDIT].bytes) {
        *error = g_strdup("audit: it is missing, and this card has one");
        return false;
    }
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        if (saved[part].bytes &&
            !load_part(engine, part, &saved[part], error)) {
            return false;
        }
    }
    return check_mkeys(engine, error);
}

/*
 * Both deadlines are made to be over: the timer, when it comes, takes what is
 * due and sets them again, by a clock that is the guest's by then.
 */
static void resume(QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_TIMERS; i++) {
        qrdma_engine_set_timer(engine, i, 0);
    }
    qrdma_engine_schedule(engine);
}

bool qrdma_engine_load(QrdmaEngine *engine,
                       const QrdmaSaved saved[QRDMA_PARTS], char **error)
{
    qrdma_engine_fault_clear(engine);
    qrdma_engine_reset(engine);
    if (!load_parts(engine, saved, error)) {
        qrdma_audit_forget(engine);
        qrdma_engine_fault_clear(engine);
        qrdma_engine_reset(engine);
        return false;
    }
    resume(engine);
    return true;
}
