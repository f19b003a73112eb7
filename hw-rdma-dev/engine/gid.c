/*
 * qrdma engine: the port's GID table.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

#define GID_TYPE_ROCE_V2 1
#define VLAN_NONE 0xffff
#define VLAN_MAX 4094           /* 4095 is reserved by IEEE 802.1Q */

static bool is_multicast_gid(const uint8_t gid[16])
{
    return gid[0] == 0xff;
}

static bool is_multicast_mac(const uint8_t mac[6])
{
    return mac[0] & 1;
}

static bool is_good(const struct qrdma_gid *in)
{
    uint16_t vlan = qrdma_le16(in->vlan);

    return in->type == GID_TYPE_ROCE_V2 &&
           !qrdma_is_zero(in->gid, sizeof(in->gid)) &&
           !is_multicast_gid(in->gid) &&
           !is_multicast_mac(in->mac) &&
           (vlan == VLAN_NONE || vlan <= VLAN_MAX);
}

enum qrdma_status qrdma_cmd_set_gid(QrdmaEngine *engine,
                                    const QrdmaCommandCall *call)
{
    const struct qrdma_gid *in = call->input;
    QrdmaGid *gid;

    if (call->number >= QRDMA_MAX_GIDS) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (!qrdma_is_zero(in->reserved, sizeof(in->reserved))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    gid = &engine->gids[call->number];
    if (qrdma_is_zero(in, sizeof(*in))) {
        gid->valid = false;
        return QRDMA_STATUS_OK;
    }
    if (!is_good(in)) {
        return QRDMA_STATUS_BAD_GID;
    }
    gid->valid = true;
    memcpy(gid->gid, in->gid, sizeof(gid->gid));
    memcpy(gid->mac, in->mac, sizeof(gid->mac));
    gid->vlan = qrdma_le16(in->vlan);
    return QRDMA_STATUS_OK;
}

/* By the wire form, so that the rules are those of SET_GID. */
static void state_gid(QrdmaStream *stream, QrdmaGid *gid)
{
    struct qrdma_gid wire = {
        .type = GID_TYPE_ROCE_V2,
    };

    qrdma_stream_bool(stream, "valid", &gid->valid);
    qrdma_stream_bytes(stream, "gid", gid->gid, sizeof(gid->gid));
    qrdma_stream_bytes(stream, "mac", gid->mac, sizeof(gid->mac));
    qrdma_stream_u16(stream, "vlan", &gid->vlan, 0, VLAN_NONE);
    memcpy(wire.gid, gid->gid, sizeof(wire.gid));
    memcpy(wire.mac, gid->mac, sizeof(wire.mac));
    wire.vlan = qrdma_le16(gid->vlan);
    qrdma_stream_check(stream, !gid->valid || is_good(&wire), NULL,
                       "SET_GID would refuse it");
}

void qrdma_state_gids(QrdmaStream *stream, QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_MAX_GIDS; i++) {
        qrdma_stream_enter_item(stream, "gid", i);
        state_gid(stream, &engine->gids[i]);
        qrdma_stream_leave(stream);
    }
}

void qrdma_gid_reset(QrdmaEngine *engine)
{
    memset(engine->gids, 0, sizeof(engine->gids));
}

const QrdmaGid *qrdma_gid_get(QrdmaEngine *engine, uint32_t index)
{
    if (index >= QRDMA_MAX_GIDS || !engine->gids[index].valid) {
        return NULL;
    }
    return &engine->gids[index];
}

bool qrdma_gid_is_local(QrdmaEngine *engine, const uint8_t gid[16])
{
    for (unsigned i = 0; i < QRDMA_MAX_GIDS; i++) {
        const QrdmaGid *own = &engine->gids[i];

        if (own->valid && memcmp(own->gid, gid, sizeof(own->gid)) == 0) {
            return true;
        }
    }
    return false;
}
