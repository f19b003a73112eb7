/*
 * qrdma engine: mkey contexts, and the one place that says which are valid.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_MKC_H
#define QRDMA_MKC_H

#include "engine.h"

/* struct qrdma_mkc in host byte order. */
typedef struct QrdmaMkc {
    uint32_t flags;             /* QRDMA_MKEY_* */
    uint8_t variant;
    uint8_t log_page_size;
    uint8_t translation;        /* enum qrdma_translation */
    uint8_t level;
    uint32_t pd;
    uint32_t qpn;
    uint64_t start;
    uint64_t length;
    uint64_t base;
    uint32_t pble_index;
    uint32_t capacity;
    uint16_t first_byte_offset;
} QrdmaMkc;

/* The fields only; reserved bytes are not looked at. */
void qrdma_mkc_decode(const struct qrdma_mkc *in, QrdmaMkc *out);
void qrdma_mkc_encode(const QrdmaMkc *in, struct qrdma_mkc *out);

/* QRDMA_STATUS_BAD_RESERVED, or OK. */
enum qrdma_status qrdma_mkc_check_reserved(const struct qrdma_mkc *in);

/*
 * Whether a context may be that of a mkey: the rules of struct qrdma_mkc, in
 * numbers only (whether an SD backs the table is not asked). CREATE_MKEY,
 * MODIFY_MKEY and UMR all ask here.
 */
enum qrdma_status qrdma_mkc_validate(const QrdmaMkc *mkc);

/*
 * Take the fields of `mask` (QRDMA_UMR_MASK_*, known bits only) from `from`,
 * and leave all others of *mkc as they are.
 */
void qrdma_mkc_merge(QrdmaMkc *mkc, const QrdmaMkc *from, uint64_t mask);

#endif /* QRDMA_MKC_H */
