/*
 * qrdma engine: whether a UMR may be carried out.
 *
 * All of it is decided before the first byte is written: a refused UMR has
 * changed nothing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "umr-internal.h"

#define CHECK_BOTH (QRDMA_UMR_CHECK_FREE | QRDMA_UMR_CHECK_NOT_FREE)

static enum qrdma_status check_flags(const QrdmaUmr *umr)
{
    if (umr->flags & ~QRDMA_UMR_FLAGS_MASK) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    if ((umr->flags & CHECK_BOTH) == CHECK_BOTH) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    if (umr->table_offset && !(umr->flags & QRDMA_UMR_TRANSLATION_OFFSET)) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status check_table_form(const QrdmaUmr *umr)
{
    bool is_inline = umr->flags & QRDMA_UMR_INLINE;
    uint32_t max_length = is_inline ? QRDMA_UMR_MAX_INLINE
                                    : QRDMA_UMR_MAX_TABLE_WRITE;

    if (umr->table_length % QRDMA_TABLE_UNIT ||
        umr->table_length > max_length) {
        return QRDMA_STATUS_BAD_TABLE_LENGTH;
    }
    if (umr->table_offset % QRDMA_TABLE_UNIT ||
        umr->table_address % QRDMA_TABLE_UNIT) {
        return QRDMA_STATUS_BAD_ALIGNMENT;
    }
    /* Fields that name nothing are reserved. */
    if (!umr->table_length && umr->table_offset) {
        return QRDMA_STATUS_BAD_TABLE_RANGE;
    }
    if ((is_inline || !umr->table_length) && umr->table_address) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_umr_check_form(const QrdmaUmr *umr)
{
    const struct qrdma_umr_wqe *wqe = &umr->copy.wqe;
    enum qrdma_status status;

    if (wqe->opcode != QRDMA_SEND_OP_UMR || wqe->flags & ~QRDMA_WQE_SIGNALED) {
        return QRDMA_STATUS_BAD_WQE;
    }
    if (!qrdma_is_zero(wqe->reserved, sizeof(wqe->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    status = check_flags(umr);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (umr->mask & ~QRDMA_UMR_MASK_ALL) {
        return QRDMA_STATUS_BAD_MASK;
    }
    return check_table_form(umr);
}

enum qrdma_status qrdma_umr_check_range(const QrdmaUmr *umr)
{
    return qrdma_pble_write_in_table(qrdma_pble_table_bytes(&umr->mkey->mkc),
                                     umr->table_offset, umr->table_length)
           ? QRDMA_STATUS_OK : QRDMA_STATUS_BAD_TABLE_RANGE;
}

static enum qrdma_status check_mkey(const QrdmaUmr *umr)
{
    bool is_free = umr->mkey->mkc.flags & QRDMA_MKEY_FREE;

    if (is_free && umr->flags & QRDMA_UMR_CHECK_NOT_FREE) {
        return QRDMA_STATUS_MKEY_FREE;
    }
    if (!is_free && umr->flags & QRDMA_UMR_CHECK_FREE) {
        return QRDMA_STATUS_MKEY_NOT_FREE;
    }
    return qrdma_umr_check_range(umr);
}

enum qrdma_status qrdma_umr_check_data(const QrdmaUmr *umr)
{
    for (size_t i = 0; i < umr->table_length / sizeof(uint64_t); i++) {
        if (qrdma_le64(umr->data[i]) & QRDMA_PBLE_RESERVED) {
            return QRDMA_STATUS_BAD_ENTRY;
        }
    }
    return QRDMA_STATUS_OK;
}

/*
 * Read the table data once, and look for reserved bits. Whether addresses fit
 * the page size cannot be asked here: the driver loads entries for a page size
 * that it sets afterwards.
 */
static enum qrdma_status stage_data(QrdmaEngine *engine, QrdmaUmr *umr)
{
    umr->data = g_malloc(umr->table_length);
    if (umr->captured) {
        memcpy(umr->data, umr->captured, umr->table_length);
    } else if (umr->flags & QRDMA_UMR_INLINE) {
        memcpy(umr->data, umr->copy.bytes + QRDMA_UMR_INLINE_OFFSET,
               umr->table_length);
    } else if (!qrdma_dma_read(engine, umr->table_address, umr->data,
                               umr->table_length)) {
        return QRDMA_STATUS_DMA_ERROR;
    }
    return qrdma_umr_check_data(umr);
}

/*
 * Where each unit goes. Level 2: by its root entry, as it is now. The SDs are
 * held, since nothing else keeps those of leaves in their place.
 */
static enum qrdma_status place_units(QrdmaEngine *engine, QrdmaUmr *umr)
{
    const QrdmaMkc *mkc = &umr->mkey->mkc;
    uint64_t entry = umr->table_offset / QRDMA_PBLE_SIZE;

    if (mkc->level == 0) {
        umr->units = umr->table_length / QRDMA_TABLE_UNIT;
        return QRDMA_STATUS_OK;
    }
    umr->places = g_new(UmrUnit, umr->table_length / QRDMA_TABLE_UNIT);
    while (umr->units < umr->table_length / QRDMA_TABLE_UNIT) {
        UmrUnit *place = &umr->places[umr->units];

        if (qrdma_pble_locate(engine, mkc, entry, &place->index) !=
            QRDMA_LOOKUP_FOUND ||
            !qrdma_hmc_hold(engine, place->index, QRDMA_PBLES_PER_UNIT)) {
            return QRDMA_STATUS_HMC_ERROR;
        }
        /* Held, so backed; and units do not cross pages of the HMC. */
        umr->units++;
        if (!qrdma_hmc_bus_address(engine, place->index, &place->address,
                                   NULL)) {
            return QRDMA_STATUS_HMC_ERROR;
        }
        entry += QRDMA_PBLES_PER_UNIT;
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_umr_check_result(const QrdmaUmr *umr)
{
    QrdmaMkc result = umr->mkey->mkc;

    if (result.level == 0 && umr->units) {
        result.base = qrdma_le64(umr->data[0]);
    }
    qrdma_mkc_merge(&result, &umr->fields, umr->mask);
    return qrdma_mkc_validate(&result);
}

enum qrdma_status qrdma_umr_validate(QrdmaEngine *engine, QrdmaUmr *umr)
{
    enum qrdma_status status = check_mkey(umr);

    if (status == QRDMA_STATUS_OK && umr->table_length) {
        status = stage_data(engine, umr);
    }
    if (status == QRDMA_STATUS_OK && umr->table_length) {
        status = place_units(engine, umr);
    }
    if (status == QRDMA_STATUS_OK) {
        status = qrdma_umr_check_result(umr);
    }
    return status;
}

void qrdma_umr_unstage(QrdmaEngine *engine, QrdmaUmr *umr)
{
    for (uint32_t i = 0; umr->places && i < umr->units; i++) {
        qrdma_hmc_release(engine, umr->places[i].index, QRDMA_PBLES_PER_UNIT);
    }
    umr->units = 0;
    g_clear_pointer(&umr->places, g_free);
    g_clear_pointer(&umr->data, g_free);
    g_clear_pointer(&umr->order, g_free);
}
