/*
 * qrdma engine: the port's GID table.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_GID_H
#define QRDMA_GID_H

#include "engine.h"

typedef struct QrdmaGid {
    bool valid;
    uint8_t gid[16];
    uint8_t mac[6];
    uint16_t vlan;              /* 0xffff: none */
} QrdmaGid;

void qrdma_gid_reset(QrdmaEngine *engine);

/* The entry of an index; NULL if the index is out of range or empty. */
const QrdmaGid *qrdma_gid_get(QrdmaEngine *engine, uint32_t index);

/* Whether some entry of the table has this GID: it is the card's own. */
bool qrdma_gid_is_local(QrdmaEngine *engine, const uint8_t gid[16]);

#endif /* QRDMA_GID_H */
