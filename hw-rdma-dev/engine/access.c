/*
 * qrdma engine: key and address to bus address.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

#define ATOMIC_SIZE 8u

typedef struct Needs {
    const char *name;
    uint32_t mkey_right;
    uint64_t pble_rights;
} Needs;

static const Needs needs_of[] = {
    [QRDMA_LOCAL_READ] = {
        "local read", 0, QRDMA_PBLE_READ },
    [QRDMA_LOCAL_WRITE] = {
        "local write", QRDMA_MKEY_LOCAL_WRITE, QRDMA_PBLE_WRITE },
    [QRDMA_REMOTE_READ] = {
        "remote read", QRDMA_MKEY_REMOTE_READ, QRDMA_PBLE_READ },
    [QRDMA_REMOTE_WRITE] = {
        "remote write", QRDMA_MKEY_REMOTE_WRITE, QRDMA_PBLE_WRITE },
    [QRDMA_REMOTE_ATOMIC] = {
        "remote atomic", QRDMA_MKEY_REMOTE_ATOMIC,
        QRDMA_PBLE_READ | QRDMA_PBLE_WRITE },
};

const char *qrdma_access_kind_name(QrdmaAccessKind kind)
{
    return needs_of[kind].name;
}

/* What the context alone decides. */
static enum qrdma_access_error check_context(const QrdmaMkey *mkey,
                                             const QrdmaAccessRequest *request)
{
    const QrdmaMkc *mkc = &mkey->mkc;
    uint32_t right = needs_of[request->kind].mkey_right;

    if (mkc->variant != QRDMA_MKEY_VARIANT(request->key)) {
        return QRDMA_ACCESS_VARIANT;
    }
    if (mkc->flags & QRDMA_MKEY_FREE) {
        return QRDMA_ACCESS_FREE;
    }
    if (mkc->pd != request->pd) {
        return QRDMA_ACCESS_PD;
    }
    if (mkc->qpn != QRDMA_MKEY_ANY_QP && mkc->qpn != request->qpn) {
        return QRDMA_ACCESS_QP;
    }
    if ((mkc->flags & right) != right) {
        return QRDMA_ACCESS_RIGHTS;
    }
    return QRDMA_ACCESS_OK;
}

/* No sum here can wrap: start + length of a mkey does not. */
static enum qrdma_access_error check_range(const QrdmaMkc *mkc,
                                           const QrdmaAccessRequest *request)
{
    uint64_t offset = request->address - mkc->start;

    if (!request->length) {
        return QRDMA_ACCESS_RANGE;
    }
    if (mkc->flags & QRDMA_MKEY_ALL_MEMORY) {
        if (request->length - 1 > UINT64_MAX - request->address) {
            return QRDMA_ACCESS_RANGE;
        }
    } else if (request->address < mkc->start || offset >= mkc->length ||
               request->length > mkc->length - offset) {
        return QRDMA_ACCESS_RANGE;
    }
    if (request->kind == QRDMA_REMOTE_ATOMIC &&
        (request->address % ATOMIC_SIZE || request->length != ATOMIC_SIZE)) {
        return QRDMA_ACCESS_MISALIGNED;
    }
    return QRDMA_ACCESS_OK;
}

/*
 * Entry `block` of a level 1 or 2 table, as it stands there. With the cache on
 * a whole unit is read, as that is what a line holds. No leaf: an absent entry.
 */
static enum qrdma_access_error read_table(QrdmaEngine *engine, QrdmaMkey *mkey,
                                          uint64_t block, uint64_t *entry)
{
    uint64_t unit = block / QRDMA_PBLES_PER_UNIT;
    unsigned in_unit = block % QRDMA_PBLES_PER_UNIT;
    const uint64_t *cached = qrdma_pble_cache_find(engine, mkey, unit);
    uint64_t pbles[QRDMA_PBLES_PER_UNIT];
    uint64_t index;

    if (cached) {
        *entry = cached[in_unit];
        return QRDMA_ACCESS_OK;
    }
    switch (qrdma_pble_locate(engine, &mkey->mkc, block - in_unit, &index)) {
    case QRDMA_LOOKUP_FOUND:
        break;
    case QRDMA_LOOKUP_NO_LEAF:
        *entry = 0;
        return QRDMA_ACCESS_OK;
    case QRDMA_LOOKUP_BAD_ROOT:
        return QRDMA_ACCESS_BAD_ENTRY;
    case QRDMA_LOOKUP_HMC:
        return QRDMA_ACCESS_HMC;
    }
    if (!engine->config.pble_cache) {
        return qrdma_hmc_read(engine, index + in_unit, 1, entry)
               ? QRDMA_ACCESS_OK : QRDMA_ACCESS_HMC;
    }
    if (!qrdma_hmc_read(engine, index, QRDMA_PBLES_PER_UNIT, pbles)) {
        return QRDMA_ACCESS_HMC;
    }
    qrdma_pble_cache_put(engine, mkey, unit, pbles);
    *entry = pbles[in_unit];
    return QRDMA_ACCESS_OK;
}

static enum qrdma_access_error read_entry(QrdmaEngine *engine, QrdmaMkey *mkey,
                                          uint64_t address, uint64_t *entry)
{
    const QrdmaMkc *mkc = &mkey->mkc;

    if (mkc->level == 0) {
        *entry = mkc->base;
        return QRDMA_ACCESS_OK;
    }
    return read_table(engine, mkey,
                      qrdma_pble_block_of(mkc->start, mkc->log_page_size,
                                          address), entry);
}

/* Sets bus address and length. */
static enum qrdma_access_error translate(QrdmaEngine *engine, QrdmaMkey *mkey,
                                         const QrdmaAccessRequest *request,
                                         QrdmaAccess *out)
{
    const QrdmaMkc *mkc = &mkey->mkc;
    uint64_t rights = needs_of[request->kind].pble_rights;
    uint64_t page_size = 1ull << mkc->log_page_size;
    uint64_t in_page = request->address & (page_size - 1);
    enum qrdma_access_error error;
    uint64_t entry;

    if (mkc->translation == QRDMA_TRANSLATION_PHYSICAL) {
        out->bus_address = request->address;
        out->length = request->length;
        return QRDMA_ACCESS_OK;
    }
    error = read_entry(engine, mkey, request->address, &entry);
    if (error != QRDMA_ACCESS_OK) {
        return error;
    }
    switch (qrdma_pble_check(entry, mkc->log_page_size)) {
    case QRDMA_PBLE_GOOD:
        break;
    case QRDMA_PBLE_ABSENT:
        return QRDMA_ACCESS_NOT_PRESENT;
    case QRDMA_PBLE_MALFORMED:
        return QRDMA_ACCESS_BAD_ENTRY;
    }
    if ((entry & rights) != rights) {
        return QRDMA_ACCESS_RIGHTS;
    }
    out->bus_address = (entry & QRDMA_PBLE_ADDRESS) + in_page;
    out->length = MIN(request->length, page_size - in_page);
    return QRDMA_ACCESS_OK;
}

static enum qrdma_access_error resolve(QrdmaEngine *engine, QrdmaMkey *mkey,
                                       const QrdmaAccessRequest *request,
                                       QrdmaAccess *out)
{
    enum qrdma_access_error error;

    if (!mkey || mkey->dying) {
        return QRDMA_ACCESS_NO_KEY;
    }
    error = check_context(mkey, request);
    if (error == QRDMA_ACCESS_OK) {
        error = check_range(&mkey->mkc, request);
    }
    if (error == QRDMA_ACCESS_OK) {
        error = translate(engine, mkey, request, out);
    }
    return error;
}

/* Not inlined, so that what is seldom needed does not burden the rest. */
static QrdmaAccessResult __attribute__((noinline))
refuse(QrdmaEngine *engine, const QrdmaAccessRequest *request, QrdmaAccess *out,
       QrdmaMkey *mkey)
{
    if (mkey && mkey->watch) {
        qrdma_audit_refused(engine, request, out);
    }
    if (out->error == QRDMA_ACCESS_NOT_PRESENT &&
        (mkey->mkc.flags & QRDMA_MKEY_ON_DEMAND)) {
        return QRDMA_ACCESS_FAULT;
    }
    engine->counters.access_refused++;
    qrdma_trace(engine, "access_error", "qpn 0x%x %s key 0x%x address 0x%"
                PRIx64 " length %" PRIu64 " error %d", request->qpn,
                needs_of[request->kind].name, request->key, request->address,
                request->length, out->error);
    return QRDMA_ACCESS_REFUSED;
}

QrdmaAccessResult qrdma_access_begin(QrdmaEngine *engine,
                                     const QrdmaAccessRequest *request,
                                     QrdmaAccess *out)
{
    QrdmaMkey *mkey = qrdma_mkey_find(engine, QRDMA_MKEY_INDEX(request->key));

    *out = (QrdmaAccess) { 0 };
    out->error = resolve(engine, mkey, request, out);
    if (out->error != QRDMA_ACCESS_OK) {
        return refuse(engine, request, out, mkey);
    }
    out->mkey = mkey;
    out->epoch = qrdma_mkey_access_begun(mkey);
    return QRDMA_AUDITED(engine) ? qrdma_audit_granted(engine, request, out)
                                 : QRDMA_ACCESS_GRANTED;
}

void qrdma_access_end(QrdmaEngine *engine, QrdmaAccess *access)
{
    QrdmaMkey *mkey = g_steal_pointer(&access->mkey);

    if (mkey) {
        qrdma_mkey_access_ended(engine, mkey, access->epoch);
    }
}
