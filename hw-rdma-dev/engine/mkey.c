/*
 * qrdma engine: the table of mkeys, and the commands that deal with it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

/* Steps of a change need no slices when nothing can be seen in between. */
#define ALL_AT_ONCE UINT_MAX

QrdmaMkey *qrdma_mkey_find(QrdmaEngine *engine, uint32_t index)
{
    QrdmaMkeyChunk *chunk;

    if (index >= QRDMA_MAX_MKEYS) {
        return NULL;
    }
    chunk = engine->mkeys.chunks[index / QRDMA_MKEY_CHUNK];
    return chunk ? chunk->mkeys[index % QRDMA_MKEY_CHUNK] : NULL;
}

QrdmaMkey *qrdma_mkey_next(QrdmaEngine *engine, uint32_t index)
{
    while (index < QRDMA_MAX_MKEYS) {
        QrdmaMkeyChunk *chunk = engine->mkeys.chunks[index / QRDMA_MKEY_CHUNK];

        if (!chunk) {
            index = (index / QRDMA_MKEY_CHUNK + 1) * QRDMA_MKEY_CHUNK;
        } else if (!chunk->mkeys[index % QRDMA_MKEY_CHUNK]) {
            index++;
        } else {
            return chunk->mkeys[index % QRDMA_MKEY_CHUNK];
        }
    }
    return NULL;
}

static void insert_mkey(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    QrdmaMkeyChunk **chunk =
        &engine->mkeys.chunks[mkey->index / QRDMA_MKEY_CHUNK];

    if (!*chunk) {
        *chunk = g_new0(QrdmaMkeyChunk, 1);
    }
    (*chunk)->mkeys[mkey->index % QRDMA_MKEY_CHUNK] = mkey;
    (*chunk)->used++;
    engine->mkeys.count++;
}

static void take_out_mkey(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    QrdmaMkeyChunk **chunk =
        &engine->mkeys.chunks[mkey->index / QRDMA_MKEY_CHUNK];

    (*chunk)->mkeys[mkey->index % QRDMA_MKEY_CHUNK] = NULL;
    if (--(*chunk)->used == 0) {
        g_clear_pointer(chunk, g_free);
    }
    engine->mkeys.count--;
}

static void free_mkey(QrdmaMkey *mkey)
{
    g_slist_free(mkey->waiters);
    g_free(mkey);
}

void qrdma_mkey_reset(QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_MKEY_CHUNKS; i++) {
        QrdmaMkeyChunk *chunk = engine->mkeys.chunks[i];

        for (unsigned j = 0; chunk && j < QRDMA_MKEY_CHUNK; j++) {
            g_clear_pointer(&chunk->mkeys[j], free_mkey);
        }
        g_free(chunk);
    }
    memset(&engine->mkeys, 0, sizeof(engine->mkeys));
}

static void wake(QrdmaEngine *engine, uint32_t number)
{
    if (number == QRDMA_OWNER_COMMAND) {
        qrdma_command_wake(engine);
    } else if (number == QRDMA_OWNER_HELD) {
        qrdma_faults_wake(engine);
    } else {
        qrdma_qp_wake(engine, number);
    }
}

bool qrdma_mkey_claim(QrdmaMkey *mkey, const void *owner, uint32_t number)
{
    void *waiter = GUINT_TO_POINTER(number);

    if (!mkey->owner || mkey->owner == owner) {
        mkey->owner = owner;
        mkey->owner_number = number;
        return true;
    }
    if (!g_slist_find(mkey->waiters, waiter)) {
        mkey->waiters = g_slist_append(mkey->waiters, waiter);
    }
    return false;
}

/*
 * All are woken, in the order they came, since one that has gone away in the
 * meantime would keep the next one waiting. Who comes too late waits again.
 */
void qrdma_mkey_unclaim(QrdmaEngine *engine, QrdmaMkey *mkey)
{
    GSList *waiters = g_steal_pointer(&mkey->waiters);

    mkey->owner = NULL;
    mkey->fencing = false;
    for (GSList *waiter = waiters; waiter; waiter = waiter->next) {
        wake(engine, GPOINTER_TO_UINT(waiter->data));
    }
    g_slist_free(waiters);
}

bool qrdma_mkey_fence(QrdmaMkey *mkey, bool *begun)
{
    /*
     * Accesses from before the present epoch are there only if an earlier fence
     * was given up. There are but two counters: they have to end first.
     */
    if (!*begun && !mkey->in_flight[mkey->epoch ^ 1]) {
        mkey->epoch ^= 1;
        *begun = true;
    }
    mkey->fencing = !*begun || mkey->in_flight[mkey->epoch ^ 1];
    return !mkey->fencing;
}

void qrdma_mkey_access_ended(QrdmaEngine *engine, QrdmaMkey *mkey,
                             unsigned epoch)
{
    mkey->in_flight[epoch]--;
    if (!mkey->in_flight[epoch] && mkey->fencing) {
        wake(engine, mkey->owner_number);
    }
}

/* ----------------------------------------------------------------- commands */

/* Index 0 is never valid, so that key 0 is none. */
static bool is_valid_index(uint32_t index)
{
    return index > 0 && index < QRDMA_MAX_MKEYS;
}

static enum qrdma_status find_for_command(QrdmaEngine *engine, uint32_t index,
                                          QrdmaMkey **mkey)
{
    if (!is_valid_index(index)) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    *mkey = qrdma_mkey_find(engine, index);
    return *mkey ? QRDMA_STATUS_OK : QRDMA_STATUS_NO_OBJECT;
}

/* The SDs of its table are held already. */
static QrdmaMkey *new_mkey(QrdmaEngine *engine, uint32_t index,
                           const QrdmaMkc *mkc)
{
    QrdmaMkey *mkey = g_new0(QrdmaMkey, 1);

    mkey->index = index;
    mkey->mkc = *mkc;
    qrdma_pble_cache_forget(engine, mkey);
    insert_mkey(engine, mkey);
    return mkey;
}

static bool hold_table(QrdmaEngine *engine, const QrdmaMkc *mkc)
{
    return qrdma_hmc_hold(engine, mkc->pble_index,
                          qrdma_pble_footprint(mkc->level, mkc->capacity));
}

enum qrdma_status qrdma_cmd_create_mkey(QrdmaEngine *engine,
                                        const QrdmaCommandCall *call)
{
    enum qrdma_status status;
    QrdmaMkey *mkey;
    QrdmaMkc mkc;

    if (!is_valid_index(call->number)) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    mkey = qrdma_mkey_find(engine, call->number);
    if (mkey) {
        qrdma_audit_index_reused(engine, mkey);
        return QRDMA_STATUS_IN_USE;
    }
    status = qrdma_mkc_check_reserved(call->input);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    qrdma_mkc_decode(call->input, &mkc);
    status = qrdma_mkc_validate(&mkc);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!hold_table(engine, &mkc)) {
        return QRDMA_STATUS_HMC_ERROR;
    }
    mkey = new_mkey(engine, call->number, &mkc);
    qrdma_audit_created(engine, mkey);
    return QRDMA_STATUS_OK;
}

/* Begin the change, or go on with it after a wait. */
static enum qrdma_status modify(QrdmaEngine *engine,
                                const QrdmaCommandCall *call)
{
    const struct qrdma_modify_mkey *in = call->input;
    enum qrdma_status status;
    QrdmaMkey *mkey;

    if (engine->commands.change) {
        return QRDMA_STATUS_OK;
    }
    status = find_for_command(engine, call->number, &mkey);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (in->reserved) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    engine->commands.change = qrdma_umr_new_modify(engine, mkey,
                                                   qrdma_le64(in->mask),
                                                   &in->context);
    qrdma_umr_set_late(engine->commands.change, engine->commands.withheld,
                       engine->commands.silent);
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_modify_mkey(QrdmaEngine *engine,
                                        const QrdmaCommandCall *call)
{
    enum qrdma_status status = modify(engine, call);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    switch (qrdma_umr_step(engine, engine->commands.change, ALL_AT_ONCE,
                           &status)) {
    case QRDMA_UMR_MORE:
    case QRDMA_UMR_WAIT:
        return QRDMA_COMMAND_WAIT;
    case QRDMA_UMR_DONE:
    case QRDMA_UMR_REFUSED:
        break;
    }
    qrdma_umr_free(engine, g_steal_pointer(&engine->commands.change));
    return status;
}

enum qrdma_status qrdma_cmd_query_mkey(QrdmaEngine *engine,
                                       const QrdmaCommandCall *call)
{
    QrdmaMkey *mkey;
    enum qrdma_status status = find_for_command(engine, call->number, &mkey);

    if (status == QRDMA_STATUS_OK) {
        qrdma_mkc_encode(&mkey->mkc, call->output);
    }
    return status;
}

/*
 * Not before a change under way is over and all accesses have ended; none
 * begins any more. So once the command is done, nothing goes to the mkey's
 * memory or reads its table.
 */
enum qrdma_status qrdma_cmd_destroy_mkey(QrdmaEngine *engine,
                                         const QrdmaCommandCall *call)
{
    QrdmaMkey *mkey;
    enum qrdma_status status = find_for_command(engine, call->number, &mkey);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (!qrdma_mkey_claim(mkey, &engine->commands, QRDMA_OWNER_COMMAND)) {
        return QRDMA_COMMAND_WAIT;
    }
    mkey->dying = true;
    mkey->fencing = mkey->in_flight[0] || mkey->in_flight[1];
    if (mkey->fencing) {
        return QRDMA_COMMAND_WAIT;
    }
    qrdma_audit_destroyed(engine, mkey, true);
    take_out_mkey(engine, mkey);
    qrdma_mkey_unclaim(engine, mkey);
    qrdma_hmc_release(engine, mkey->mkc.pble_index,
                      qrdma_pble_footprint(mkey->mkc.level,
                                           mkey->mkc.capacity));
    free_mkey(mkey);
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_invalidate(QrdmaEngine *engine,
                                       const QrdmaCommandCall *call)
{
    QrdmaMkey *mkey;
    enum qrdma_status status = find_for_command(engine, call->number, &mkey);

    if (status == QRDMA_STATUS_OK) {
        qrdma_pble_cache_forget(engine, mkey);
        qrdma_audit_invalidated(engine, mkey);
    }
    return status;
}

/* ------------------------------------------------------------- saved state */

/* Index, context, epoch and flags: what a mkey without waiters takes. */
#define STATE_MKEY_SIZE (sizeof(struct qrdma_mkc) + 4 + 1 + 2 + 4)

/* All QPs, the command queue, and UMRs that faults hold back. */
#define MAX_WAITERS ((1u << QRDMA_LOG_MAX_QPS) + 2)

void qrdma_state_mkc(QrdmaStream *stream, const char *name, QrdmaMkc *mkc)
{
    struct qrdma_mkc wire;
    enum qrdma_status status;

    qrdma_mkc_encode(mkc, &wire);
    qrdma_stream_bytes(stream, name, &wire, sizeof(wire));
    status = qrdma_mkc_check_reserved(&wire);
    qrdma_mkc_decode(&wire, mkc);
    if (status == QRDMA_STATUS_OK) {
        status = qrdma_mkc_validate(mkc);
    }
    qrdma_stream_check(stream, status == QRDMA_STATUS_OK, name,
                       "no mkey may have it: status %d", status);
}

/* What waits for the mkey; once each. */
static void state_waiters(QrdmaStream *stream, QrdmaMkey *mkey)
{
    GSList *waiter = mkey->waiters;
    uint32_t count = g_slist_length(waiter);

    qrdma_stream_count(stream, "waiters", &count, MAX_WAITERS,
                       sizeof(uint32_t));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = waiter ? GPOINTER_TO_UINT(waiter->data) : 0;

        qrdma_stream_u32(stream, "waiter", &number, 0, UINT32_MAX);
        if (waiter) {
            waiter = waiter->next;
        } else {
            mkey->waiters = g_slist_prepend(mkey->waiters,
                                            GUINT_TO_POINTER(number));
        }
    }
    if (qrdma_stream_is_loading(stream)) {
        mkey->waiters = g_slist_reverse(mkey->waiters);
    }
}

/*
 * Accesses in flight and the owner come with those who are; a mkey that is
 * being destroyed is the destroying command's.
 */
static void state_mkey(QrdmaStream *stream, QrdmaEngine *engine,
                       QrdmaMkey *mkey)
{
    uint32_t epoch = mkey->epoch;

    qrdma_stream_u32(stream, "epoch", &epoch, 0, 1);
    mkey->epoch = epoch;
    qrdma_stream_bool(stream, "fencing", &mkey->fencing);
    qrdma_stream_bool(stream, "dying", &mkey->dying);
    state_waiters(stream, mkey);
    if (qrdma_stream_is_loading(stream) && mkey->dying) {
        qrdma_mkey_claim(mkey, &engine->commands, QRDMA_OWNER_COMMAND);
    }
}

static QrdmaMkey *load_mkey(QrdmaStream *stream, QrdmaEngine *engine,
                            uint32_t index)
{
    QrdmaMkc mkc = { 0 };

    qrdma_state_mkc(stream, "context", &mkc);
    if (!qrdma_stream_check(stream, hold_table(engine, &mkc), "context",
                            "no SD backs its table")) {
        return NULL;
    }
    return new_mkey(engine, index, &mkc);
}

void qrdma_state_mkeys(QrdmaStream *stream, QrdmaEngine *engine)
{
    uint32_t count = engine->mkeys.count;
    uint32_t index = 0;

    qrdma_stream_section(stream, "mkey", 1);
    qrdma_stream_count(stream, "mkeys", &count, QRDMA_MAX_MKEYS - 1,
                       STATE_MKEY_SIZE);
    for (uint32_t i = 0; i < count && qrdma_stream_is_good(stream); i++) {
        QrdmaMkey *mkey = qrdma_stream_is_loading(stream)
                          ? NULL : qrdma_mkey_next(engine, index + 1);

        index = mkey ? mkey->index : index;
        if (!qrdma_stream_next(stream, "mkey.index", &index, 1,
                               QRDMA_MAX_MKEYS - 1)) {
            return;
        }
        qrdma_stream_enter_item(stream, "mkey", index);
        if (mkey) {
            qrdma_state_mkc(stream, "context", &mkey->mkc);
        } else {
            mkey = load_mkey(stream, engine, index);
        }
        if (mkey) {
            state_mkey(stream, engine, mkey);
        }
        qrdma_stream_leave(stream);
    }
}
