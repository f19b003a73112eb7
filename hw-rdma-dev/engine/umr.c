/*
 * qrdma engine: user memory registration, the work that changes live mkeys.
 *
 * A UMR claims its mkey, is validated as a whole, and then becomes visible item
 * by item: table units one at a time, the context fields together. Accesses may
 * fall in between. At the end it waits for the accesses that began before.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "umr-internal.h"

void qrdma_umr_decode(QrdmaUmr *umr)
{
    const struct qrdma_umr_wqe *wqe = &umr->copy.wqe;

    umr->flags = qrdma_le16(wqe->umr_flags);
    umr->key = qrdma_le32(wqe->key);
    umr->mask = qrdma_le64(wqe->mask);
    umr->table_offset = qrdma_le64(wqe->table_offset);
    umr->table_address = qrdma_le64(wqe->table_address);
    umr->table_length = qrdma_le32(wqe->table_length);
    qrdma_mkc_decode(&wqe->mkc, &umr->fields);
}

QrdmaUmr *qrdma_umr_new(QrdmaEngine *engine, uint32_t qpn,
                        const uint8_t wqe[QRDMA_UMR_WQE_SIZE])
{
    QrdmaUmr *umr = g_new0(QrdmaUmr, 1);

    umr->number = qpn;
    memcpy(umr->copy.bytes, wqe, sizeof(umr->copy.bytes));
    qrdma_umr_decode(umr);
    return umr;
}

QrdmaUmr *qrdma_umr_new_modify(QrdmaEngine *engine, const QrdmaMkey *mkey,
                               uint64_t mask, const struct qrdma_mkc *mkc)
{
    QrdmaUmr *umr = g_new0(QrdmaUmr, 1);

    umr->number = QRDMA_OWNER_COMMAND;
    umr->copy.wqe.opcode = QRDMA_SEND_OP_UMR;
    umr->copy.wqe.mkc = *mkc;
    qrdma_umr_decode(umr);
    umr->key = mkey->index << 8 | mkey->mkc.variant;
    umr->mask = mask;
    return umr;
}

/* ------------------------------------------------------- fault injection */

void qrdma_umr_inject(QrdmaUmr *umr, const QrdmaFault *fault)
{
    switch (fault->action) {
    case QRDMA_FAULT_FAIL:
        umr->injected = fault->status ? fault->status : QRDMA_STATUS_INJECTED;
        break;
    case QRDMA_FAULT_DROP:
        umr->withheld = true;
        break;
    case QRDMA_FAULT_LATE:
    case QRDMA_FAULT_SWAP:
        umr->withheld = true;
        umr->keep = true;
        break;
    case QRDMA_FAULT_DUPLICATE:
        umr->keep = true;
        break;
    case QRDMA_FAULT_FATAL:
        umr->is_fatal = true;
        umr->fatal_point = fault->point;
        break;
    case QRDMA_FAULT_DELAY:
        break;
    }
}

void qrdma_umr_set_late(QrdmaUmr *umr, bool withheld, bool held)
{
    umr->withheld = withheld;
    umr->held = held;
}

uint32_t qrdma_umr_index(const QrdmaUmr *umr)
{
    return QRDMA_MKEY_INDEX(umr->key);
}

QrdmaUmr *qrdma_umr_take_kept(QrdmaUmr *umr)
{
    return g_steal_pointer(&umr->kept);
}

/*
 * The driver may use its buffers again as soon as it sees the completion: the
 * copy has the data that was read now.
 */
static QrdmaUmr *make_kept(const QrdmaUmr *umr)
{
    QrdmaUmr *copy = g_new0(QrdmaUmr, 1);

    copy->number = QRDMA_OWNER_HELD;
    copy->copy = umr->copy;
    qrdma_umr_decode(copy);
    copy->key = umr->key;
    copy->mask = umr->mask;
    copy->captured = g_memdup2(umr->data, umr->table_length);
    copy->held = true;
    return copy;
}

/* ------------------------------------------------------ order of visibility */

/* splitmix64: small, and the same sequence everywhere. */
static uint64_t random_number(QrdmaEngine *engine)
{
    uint64_t value = engine->umr_random += 0x9e3779b97f4a7c15ull;

    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9ull;
    value = (value ^ value >> 27) * 0x94d049bb133111ebull;
    return value ^ value >> 31;
}

static void shuffle(QrdmaEngine *engine, uint32_t *order, uint32_t items)
{
    for (uint32_t i = items; i > 1; i--) {
        uint32_t j = random_number(engine) % i;
        uint32_t other = order[j];

        order[j] = order[i - 1];
        order[i - 1] = other;
    }
}

static void plan(QrdmaEngine *engine, QrdmaUmr *umr)
{
    umr->items = umr->units + (umr->mask != 0);
    umr->order = g_new(uint32_t, umr->items);
    for (uint32_t i = 0; i < umr->items; i++) {
        umr->order[i] = i;
    }
    if (engine->config.umr_order_seed) {
        shuffle(engine, umr->order, umr->items);
    }
}

/* ----------------------------------------------------------------- changing */

static void apply_context(QrdmaEngine *engine, QrdmaUmr *umr)
{
    qrdma_mkc_merge(&umr->mkey->mkc, &umr->fields, umr->mask);
    qrdma_pble_cache_forget(engine, umr->mkey);
    qrdma_audit_context(engine, umr);
}

/*
 * How many of the next items, at most `budget`, are units that follow each
 * other in table and memory. As no access can fall between them, one write
 * does for all.
 */
static uint32_t run_of_units(const QrdmaUmr *umr, unsigned budget)
{
    uint32_t first = umr->order[umr->next];
    uint32_t run = 1;

    while (run < budget && umr->next + run < umr->items &&
           umr->order[umr->next + run] == first + run &&
           first + run < umr->units &&
           umr->places[first + run].address ==
           umr->places[first].address + (uint64_t)run * QRDMA_TABLE_UNIT) {
        run++;
    }
    return run;
}

static bool apply_units(QrdmaEngine *engine, QrdmaUmr *umr, uint32_t first,
                        uint32_t run)
{
    uint64_t unit = umr->table_offset / QRDMA_TABLE_UNIT + first;
    uint64_t *data = umr->data + first * QRDMA_TABLE_UNIT_WORDS;

    if (!umr->places) {
        umr->mkey->mkc.base = qrdma_le64(data[0]);
        return true;
    }
    if (!qrdma_dma_write(engine, umr->places[first].address, data,
                         run * QRDMA_TABLE_UNIT)) {
        /* Validated and yet not writable: what the table holds is unknown. */
        qrdma_engine_fatal(engine, QRDMA_FATAL_HMC_DMA);
        return false;
    }
    for (uint32_t i = 0; i < run; i++) {
        qrdma_pble_cache_forget_unit(engine, umr->mkey, unit + i);
    }
    return true;
}

/* How many of `budget` items come before a fault has the card fail. */
static unsigned until_fatal(const QrdmaUmr *umr, unsigned budget)
{
    return umr->is_fatal ? MIN(budget, umr->fatal_point - umr->next) : budget;
}

static bool fatal_is_due(const QrdmaUmr *umr)
{
    return umr->is_fatal && umr->next >= umr->fatal_point;
}

/* False: the card is in fatal error. */
static bool change(QrdmaEngine *engine, QrdmaUmr *umr, unsigned budget)
{
    while (budget && umr->next < umr->items) {
        uint32_t item = umr->order[umr->next];
        uint32_t run = 1;

        if (fatal_is_due(umr)) {
            qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
            return false;
        }
        if (item == umr->units) {
            apply_context(engine, umr);
        } else {
            run = umr->places ? run_of_units(umr, until_fatal(umr, budget))
                              : 1;
            if (!apply_units(engine, umr, item, run)) {
                return false;
            }
            engine->counters.umr_table_bytes += run * QRDMA_TABLE_UNIT;
            qrdma_audit_units(engine, umr, item, run);
        }
        umr->next += run;
        budget -= run;
    }
    return true;
}

/* --------------------------------------------------------------- its course */

static void let_go(QrdmaEngine *engine, QrdmaUmr *umr)
{
    QrdmaMkey *mkey = g_steal_pointer(&umr->mkey);

    qrdma_umr_unstage(engine, umr);
    if (mkey && mkey->owner == umr) {
        qrdma_mkey_unclaim(engine, mkey);
    }
    umr->phase = UMR_OVER;
}

static QrdmaUmrProgress finish(QrdmaEngine *engine, QrdmaUmr *umr,
                               enum qrdma_status status)
{
    let_go(engine, umr);
    qrdma_trace(engine, "umr", "qpn 0x%x key 0x%x flags 0x%x mask 0x%" PRIx64
                " table 0x%" PRIx64 "+0x%x status %d", umr->number, umr->key,
                umr->flags, umr->mask, umr->table_offset, umr->table_length,
                status);
    if (!qrdma_umr_is_command(umr)) {
        if (status == QRDMA_STATUS_OK) {
            engine->counters.umr_completed += !umr->held;
        } else {
            engine->counters.umr_refused++;
            qrdma_guest_error(engine, "UMR of key 0x%x on QP 0x%x refused: "
                              "status %d", umr->key, umr->number, status);
        }
    }
    return status == QRDMA_STATUS_OK ? QRDMA_UMR_DONE : QRDMA_UMR_REFUSED;
}

static enum qrdma_status check_key(QrdmaUmr *umr, const QrdmaMkey *mkey)
{
    if (!mkey || mkey->dying) {
        return QRDMA_STATUS_NO_OBJECT;
    }
    if (mkey->mkc.variant != QRDMA_MKEY_VARIANT(umr->key)) {
        return QRDMA_STATUS_BAD_VARIANT;
    }
    return QRDMA_STATUS_OK;
}

/*
 * Validate, unless another change owns the mkey. That one may be what makes
 * this one valid or not, so everything about the mkey is asked once it is over.
 */
static QrdmaUmrProgress begin(QrdmaEngine *engine, QrdmaUmr *umr,
                              enum qrdma_status *status)
{
    QrdmaMkey *mkey;

    *status = umr->injected ? umr->injected : qrdma_umr_check_form(umr);
    if (*status != QRDMA_STATUS_OK) {
        return finish(engine, umr, *status);
    }
    mkey = qrdma_mkey_find(engine, QRDMA_MKEY_INDEX(umr->key));
    if (mkey && !qrdma_mkey_claim(mkey, umr, umr->number)) {
        return QRDMA_UMR_WAIT;
    }
    umr->mkey = mkey;
    *status = check_key(umr, mkey);
    if (*status == QRDMA_STATUS_OK) {
        *status = qrdma_umr_validate(engine, umr);
    }
    if (*status != QRDMA_STATUS_OK) {
        return finish(engine, umr, *status);
    }
    umr->change = ++engine->changes;
    if (umr->keep) {
        umr->kept = make_kept(umr);
    }
    if (umr->withheld) {
        qrdma_audit_wished(engine, umr, false);
        qrdma_audit_settle(engine, umr);
        return finish(engine, umr, QRDMA_STATUS_OK);
    }
    plan(engine, umr);
    umr->phase = UMR_CHANGING;
    return QRDMA_UMR_MORE;
}

/*
 * All of it is visible and the accesses from before have ended. What was to be
 * done with it, and is now done before it completes, needs the mkey.
 */
static QrdmaUmrProgress complete(QrdmaEngine *engine, QrdmaUmr *umr)
{
    if (umr->is_fatal) {
        qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        return QRDMA_UMR_WAIT;
    }
    if (!umr->held) {
        qrdma_audit_wished(engine, umr, true);
        qrdma_mkey_unclaim(engine, umr->mkey);
        if (!qrdma_umr_is_command(umr)) {
            qrdma_faults_umr_done(engine, umr);
        }
    }
    qrdma_audit_settle(engine, umr);
    return finish(engine, umr, QRDMA_STATUS_OK);
}

QrdmaUmrProgress qrdma_umr_step(QrdmaEngine *engine, QrdmaUmr *umr,
                                unsigned budget, enum qrdma_status *status)
{
    QrdmaUmrProgress progress;

    *status = QRDMA_STATUS_OK;
    if (umr->phase == UMR_NEW) {
        progress = begin(engine, umr, status);
        if (progress != QRDMA_UMR_MORE) {
            return progress;
        }
    }
    if (umr->phase == UMR_CHANGING) {
        if (!change(engine, umr, budget)) {
            return QRDMA_UMR_WAIT;
        }
        if (umr->next < umr->items) {
            return QRDMA_UMR_MORE;
        }
        umr->phase = UMR_FENCING;
    }
    if (!qrdma_mkey_fence(umr->mkey, &umr->fence_begun)) {
        return QRDMA_UMR_WAIT;
    }
    return complete(engine, umr);
}

void qrdma_umr_free(QrdmaEngine *engine, QrdmaUmr *umr)
{
    if (!umr) {
        return;
    }
    /* A card that has been stopped or reset writes nothing any more. */
    if (umr->phase == UMR_CHANGING && qrdma_engine_running(engine)) {
        change(engine, umr, UINT_MAX);
    }
    let_go(engine, umr);
    qrdma_umr_free(engine, umr->kept);
    g_free(umr->captured);
    g_free(umr);
}
