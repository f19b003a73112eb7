/*
 * qrdma engine: mkey contexts, and the one place that says which are valid.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

#define QPN_MAX 0xffffffu
#define FIRST_PAGE_MASK 0xfffu

/* Bits of QRDMA_UMR_MASK_* that stand for the flag of the same bit. */
#define MASK_OF_FLAGS (QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_LOCAL_WRITE | \
                       QRDMA_UMR_MASK_REMOTE_READ | \
                       QRDMA_UMR_MASK_REMOTE_WRITE | \
                       QRDMA_UMR_MASK_REMOTE_ATOMIC | \
                       QRDMA_UMR_MASK_RELAXED_ORDERING | \
                       QRDMA_UMR_MASK_ON_DEMAND)

QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_FREE == QRDMA_MKEY_FREE);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_LOCAL_WRITE == QRDMA_MKEY_LOCAL_WRITE);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_REMOTE_READ == QRDMA_MKEY_REMOTE_READ);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_REMOTE_WRITE == QRDMA_MKEY_REMOTE_WRITE);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_REMOTE_ATOMIC == QRDMA_MKEY_REMOTE_ATOMIC);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_RELAXED_ORDERING ==
                 QRDMA_MKEY_RELAXED_ORDERING);
QRDMA_ABI_ASSERT(QRDMA_UMR_MASK_ON_DEMAND == QRDMA_MKEY_ON_DEMAND);

void qrdma_mkc_decode(const struct qrdma_mkc *in, QrdmaMkc *out)
{
    *out = (QrdmaMkc) {
        .flags = qrdma_le32(in->flags),
        .variant = in->variant,
        .log_page_size = in->log_page_size,
        .translation = in->translation,
        .level = in->level,
        .pd = qrdma_le32(in->pd),
        .qpn = qrdma_le32(in->qpn),
        .start = qrdma_le64(in->start),
        .length = qrdma_le64(in->length),
        .base = qrdma_le64(in->base),
        .pble_index = qrdma_le32(in->pble_index),
        .capacity = qrdma_le32(in->capacity),
        .first_byte_offset = qrdma_le16(in->first_byte_offset),
    };
}

void qrdma_mkc_encode(const QrdmaMkc *in, struct qrdma_mkc *out)
{
    *out = (struct qrdma_mkc) {
        .flags = qrdma_le32(in->flags),
        .variant = in->variant,
        .log_page_size = in->log_page_size,
        .translation = in->translation,
        .level = in->level,
        .pd = qrdma_le32(in->pd),
        .qpn = qrdma_le32(in->qpn),
        .start = qrdma_le64(in->start),
        .length = qrdma_le64(in->length),
        .base = qrdma_le64(in->base),
        .pble_index = qrdma_le32(in->pble_index),
        .capacity = qrdma_le32(in->capacity),
        .first_byte_offset = qrdma_le16(in->first_byte_offset),
    };
}

enum qrdma_status qrdma_mkc_check_reserved(const struct qrdma_mkc *in)
{
    return qrdma_is_zero(in->reserved, sizeof(in->reserved))
           ? QRDMA_STATUS_OK : QRDMA_STATUS_BAD_RESERVED;
}

static enum qrdma_status validate_owner(const QrdmaMkc *mkc)
{
    const uint32_t remote_change = QRDMA_MKEY_REMOTE_WRITE |
                                   QRDMA_MKEY_REMOTE_ATOMIC;

    if (mkc->flags & ~QRDMA_MKEY_FLAGS_MASK) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    if (mkc->pd > QRDMA_MAX_PD) {
        return QRDMA_STATUS_BAD_PD;
    }
    if (mkc->qpn > QPN_MAX) {
        return QRDMA_STATUS_BAD_QPN;
    }
    if ((mkc->flags & remote_change) &&
        !(mkc->flags & QRDMA_MKEY_LOCAL_WRITE)) {
        return QRDMA_STATUS_BAD_RIGHTS;
    }
    return QRDMA_STATUS_OK;
}

/* All memory: nothing is left to say about where it is. */
static enum qrdma_status validate_physical(const QrdmaMkc *mkc)
{
    if (mkc->flags & QRDMA_MKEY_ON_DEMAND) {
        return QRDMA_STATUS_BAD_FLAGS;
    }
    if (mkc->log_page_size != QRDMA_LOG_PAGE_SIZE_MIN) {
        return QRDMA_STATUS_BAD_PAGE_SIZE;
    }
    if (mkc->level) {
        return QRDMA_STATUS_BAD_LEVEL;
    }
    if (mkc->start || mkc->length) {
        return QRDMA_STATUS_BAD_LENGTH;
    }
    if (mkc->base) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (mkc->pble_index) {
        return QRDMA_STATUS_BAD_PBLE_INDEX;
    }
    if (mkc->capacity) {
        return QRDMA_STATUS_BAD_CAPACITY;
    }
    if (mkc->first_byte_offset) {
        return QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status validate_level_0(const QrdmaMkc *mkc)
{
    if (mkc->pble_index) {
        return QRDMA_STATUS_BAD_PBLE_INDEX;
    }
    if (mkc->capacity != 1) {
        return QRDMA_STATUS_BAD_CAPACITY;
    }
    if (mkc->base & QRDMA_PBLE_RESERVED) {
        return QRDMA_STATUS_BAD_ENTRY;
    }
    if (qrdma_pble_check(mkc->base, mkc->log_page_size) ==
        QRDMA_PBLE_MALFORMED) {
        return QRDMA_STATUS_BAD_ALIGNMENT;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status validate_table(const QrdmaMkc *mkc)
{
    if (mkc->base) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (!mkc->capacity || mkc->capacity > QRDMA_PBLE_SPACE) {
        return QRDMA_STATUS_BAD_CAPACITY;
    }
    if (mkc->pble_index % QRDMA_PBLES_PER_UNIT ||
        !qrdma_hmc_in_space(mkc->pble_index,
                            qrdma_pble_footprint(mkc->level, mkc->capacity))) {
        return QRDMA_STATUS_BAD_PBLE_INDEX;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status validate_region(const QrdmaMkc *mkc)
{
    if (mkc->log_page_size < QRDMA_LOG_PAGE_SIZE_MIN ||
        mkc->log_page_size > QRDMA_LOG_PAGE_SIZE_MAX) {
        return QRDMA_STATUS_BAD_PAGE_SIZE;
    }
    if (!mkc->length || mkc->length > UINT64_MAX - mkc->start) {
        return QRDMA_STATUS_BAD_LENGTH;
    }
    if (mkc->first_byte_offset != (mkc->start & FIRST_PAGE_MASK)) {
        return QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status validate_block_table(const QrdmaMkc *mkc)
{
    enum qrdma_status status = validate_region(mkc);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (mkc->level > 2) {
        return QRDMA_STATUS_BAD_LEVEL;
    }
    status = mkc->level ? validate_table(mkc) : validate_level_0(mkc);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (qrdma_pble_blocks(mkc->start, mkc->length, mkc->log_page_size) >
        mkc->capacity) {
        return QRDMA_STATUS_BAD_CAPACITY;
    }
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_mkc_validate(const QrdmaMkc *mkc)
{
    bool all_memory = mkc->flags & QRDMA_MKEY_ALL_MEMORY;
    enum qrdma_status status = validate_owner(mkc);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    switch (mkc->translation) {
    case QRDMA_TRANSLATION_PHYSICAL:
        return all_memory ? validate_physical(mkc)
                          : QRDMA_STATUS_BAD_TRANSLATION;
    case QRDMA_TRANSLATION_BLOCK_TABLE:
        return all_memory ? QRDMA_STATUS_BAD_TRANSLATION
                          : validate_block_table(mkc);
    default:
        return QRDMA_STATUS_BAD_TRANSLATION;
    }
}

void qrdma_mkc_merge(QrdmaMkc *mkc, const QrdmaMkc *from, uint64_t mask)
{
    uint32_t flags = mask & MASK_OF_FLAGS;

    mkc->flags = (mkc->flags & ~flags) | (from->flags & flags);
    if (mask & QRDMA_UMR_MASK_VARIANT) {
        mkc->variant = from->variant;
    }
    if (mask & QRDMA_UMR_MASK_PAGE_SIZE) {
        mkc->log_page_size = from->log_page_size;
    }
    if (mask & QRDMA_UMR_MASK_PD) {
        mkc->pd = from->pd;
    }
    if (mask & QRDMA_UMR_MASK_QPN) {
        mkc->qpn = from->qpn;
    }
    if (mask & QRDMA_UMR_MASK_START) {
        mkc->start = from->start;
        mkc->first_byte_offset = from->first_byte_offset;
    }
    if (mask & QRDMA_UMR_MASK_LENGTH) {
        mkc->length = from->length;
    }
}
