/*
 * qrdma engine: the guest's structures are little-endian.
 *
 * Each helper works in both directions.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_BYTEORDER_H
#define QRDMA_BYTEORDER_H

#include <glib.h>
#include <stdint.h>

static inline uint16_t qrdma_le16(uint16_t value)
{
    return GUINT16_FROM_LE(value);
}

static inline uint32_t qrdma_le32(uint32_t value)
{
    return GUINT32_FROM_LE(value);
}

static inline uint64_t qrdma_le64(uint64_t value)
{
    return GUINT64_FROM_LE(value);
}

#endif /* QRDMA_BYTEORDER_H */
