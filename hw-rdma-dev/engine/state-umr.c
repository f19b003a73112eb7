/*
 * qrdma engine: saved state: UMRs on their way.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"
#include "umr-internal.h"

static bool is_staged(const QrdmaUmr *umr)
{
    return umr->phase == UMR_CHANGING || umr->phase == UMR_FENCING;
}

/* What is asked for. A command's key and mask stand beside the copy. */
static void state_request(QrdmaStream *stream, QrdmaUmr *umr)
{
    qrdma_stream_bytes(stream, "wqe", umr->copy.bytes,
                       sizeof(umr->copy.bytes));
    if (qrdma_stream_is_loading(stream)) {
        qrdma_umr_decode(umr);
    }
    qrdma_stream_u32(stream, "key", &umr->key, 0, UINT32_MAX);
    qrdma_stream_u64(stream, "mask", &umr->mask, 0, UINT64_MAX);
}

/* Data of a copy that comes later. */
static void state_captured(QrdmaStream *stream, QrdmaUmr *umr)
{
    bool there = umr->captured;

    qrdma_stream_bool(stream, "captured", &there);
    if (!there ||
        !qrdma_stream_check(stream, umr->table_length &&
                            umr->table_length <= QRDMA_UMR_MAX_TABLE_WRITE,
                            "captured", "%u bytes of table are none",
                            umr->table_length)) {
        return;
    }
    if (qrdma_stream_is_loading(stream)) {
        umr->captured = g_malloc0(umr->table_length);
    }
    qrdma_stream_bytes(stream, "captured", umr->captured, umr->table_length);
}

static void state_faults(QrdmaStream *stream, QrdmaEngine *engine,
                         QrdmaUmr *umr)
{
    qrdma_stream_enum(stream, "injected", &umr->injected, 0,
                      QRDMA_STATUS_COUNT - 1);
    qrdma_stream_bool(stream, "withheld", &umr->withheld);
    qrdma_stream_bool(stream, "keep", &umr->keep);
    qrdma_stream_bool(stream, "held", &umr->held);
    qrdma_stream_bool(stream, "is_fatal", &umr->is_fatal);
    qrdma_stream_u32(stream, "fatal_point", &umr->fatal_point, 0, UINT32_MAX);
    state_captured(stream, umr);
    /* A copy has no copy: the recursion ends there. */
    if (umr->number != QRDMA_OWNER_HELD) {
        qrdma_state_umr(stream, engine, "kept", QRDMA_OWNER_HELD, &umr->kept);
    }
}

/* Its mkey is there, and nobody else's. */
static bool claim(QrdmaStream *stream, QrdmaEngine *engine, QrdmaUmr *umr)
{
    QrdmaMkey *mkey = qrdma_mkey_find(engine, QRDMA_MKEY_INDEX(umr->key));

    if (!qrdma_stream_check(stream, mkey, "key", "there is no mkey 0x%x",
                            QRDMA_MKEY_INDEX(umr->key)) ||
        !qrdma_stream_check(stream, !mkey->owner, "key", "mkey 0x%x is being "
                            "changed by another", mkey->index)) {
        return false;
    }
    qrdma_mkey_claim(mkey, umr, umr->number);
    umr->mkey = mkey;
    return true;
}

static void state_data(QrdmaStream *stream, QrdmaUmr *umr)
{
    if (qrdma_stream_is_loading(stream)) {
        umr->data = g_malloc0(umr->table_length);
    }
    qrdma_stream_bytes(stream, "data", umr->data, umr->table_length);
    qrdma_stream_check(stream, qrdma_umr_check_data(umr) == QRDMA_STATUS_OK,
                       "data", "reserved bits are set");
}

/* Only indices: addresses follow from the SDs. */
static void state_place(QrdmaStream *stream, QrdmaEngine *engine,
                        QrdmaUmr *umr, uint32_t unit)
{
    UmrUnit *place = &umr->places[unit];

    qrdma_stream_u64(stream, "place", &place->index, 0, QRDMA_PBLE_SPACE - 1);
    if (!qrdma_stream_is_loading(stream) ||
        !qrdma_stream_check(stream, place->index % QRDMA_PBLES_PER_UNIT == 0 &&
                            qrdma_hmc_hold(engine, place->index,
                                           QRDMA_PBLES_PER_UNIT),
                            "place", "no unit is at PBLE %" PRIu64,
                            place->index)) {
        return;
    }
    umr->units++;
    qrdma_hmc_bus_address(engine, place->index, &place->address, NULL);
}

static void state_places(QrdmaStream *stream, QrdmaEngine *engine,
                         QrdmaUmr *umr)
{
    uint32_t units = umr->table_length / QRDMA_TABLE_UNIT;

    if (umr->mkey->mkc.level == 0) {
        umr->units = units;
        return;
    }
    if (qrdma_stream_is_loading(stream)) {
        umr->places = g_new0(UmrUnit, units);
    }
    for (uint32_t i = 0; i < units && qrdma_stream_is_good(stream); i++) {
        state_place(stream, engine, umr, i);
    }
}

/* Each item once. */
static void state_order(QrdmaStream *stream, QrdmaUmr *umr)
{
    bool seen[QRDMA_UMR_MAX_UNITS + 1] = { false };

    umr->items = umr->units + (umr->mask != 0);
    if (qrdma_stream_is_loading(stream)) {
        umr->order = g_new0(uint32_t, umr->items);
    }
    for (uint32_t i = 0; i < umr->items && qrdma_stream_is_good(stream); i++) {
        qrdma_stream_u32(stream, "order", &umr->order[i], 0, umr->items - 1);
        qrdma_stream_check(stream, !seen[umr->order[i]], "order",
                           "item %u comes twice", umr->order[i]);
        seen[umr->order[i]] = true;
    }
    qrdma_stream_u32(stream, "next", &umr->next, 0, umr->items);
    qrdma_stream_check(stream, umr->phase == UMR_CHANGING ||
                       umr->next == umr->items, "next",
                       "%u of %u items are done, and it waits for accesses",
                       umr->next, umr->items);
}

/* Validated, data staged, mkey claimed, SDs held. */
static void state_staged(QrdmaStream *stream, QrdmaEngine *engine,
                         QrdmaUmr *umr)
{
    enum qrdma_status form = qrdma_umr_check_form(umr);

    if (!qrdma_stream_check(stream, form == QRDMA_STATUS_OK, "wqe",
                            "status %d", form) ||
        (qrdma_stream_is_loading(stream) && !claim(stream, engine, umr)) ||
        !qrdma_stream_check(stream,
                            qrdma_umr_check_range(umr) == QRDMA_STATUS_OK,
                            "wqe", "it writes past the table")) {
        return;
    }
    if (umr->table_length) {
        state_data(stream, umr);
        state_places(stream, engine, umr);
    }
    qrdma_stream_check(stream, qrdma_umr_check_result(umr) == QRDMA_STATUS_OK,
                       "wqe", "no mkey may have the result");
    if (qrdma_stream_is_good(stream)) {
        state_order(stream, umr);
    }
    qrdma_stream_bool(stream, "fence_begun", &umr->fence_begun);
}

static void state_umr(QrdmaStream *stream, QrdmaEngine *engine, QrdmaUmr *umr)
{
    qrdma_stream_enum(stream, "phase", &umr->phase, UMR_NEW, UMR_FENCING);
    state_request(stream, umr);
    qrdma_stream_u64(stream, "change", &umr->change, 0, UINT64_MAX);
    state_faults(stream, engine, umr);
    if (qrdma_stream_is_good(stream) && is_staged(umr)) {
        state_staged(stream, engine, umr);
    }
    /* Half of one must not be carried out by who frees it. */
    if (!qrdma_stream_is_good(stream)) {
        umr->phase = UMR_OVER;
    }
}

void qrdma_state_umr(QrdmaStream *stream, QrdmaEngine *engine,
                     const char *name, uint32_t number, QrdmaUmr **umr)
{
    bool there = *umr;

    qrdma_stream_enter(stream, name);
    qrdma_stream_bool(stream, "there", &there);
    if (there) {
        if (qrdma_stream_is_loading(stream)) {
            *umr = g_new0(QrdmaUmr, 1);
            (*umr)->number = number;
        }
        state_umr(stream, engine, *umr);
    }
    qrdma_stream_leave(stream);
}
