/*
 * qrdma engine tests: mkeys, their tables, and changes to them.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

QrdmaMkc region_mkc(uint64_t start, uint64_t length, unsigned log_page_size,
                    unsigned level, uint32_t pble_index)
{
    return (QrdmaMkc) {
        .flags = REGION_ALL_RIGHTS,
        .variant = REGION_VARIANT,
        .log_page_size = log_page_size,
        .translation = QRDMA_TRANSLATION_BLOCK_TABLE,
        .level = level,
        .pd = REGION_PD,
        .qpn = QRDMA_MKEY_ANY_QP,
        .start = start,
        .length = length,
        .pble_index = pble_index,
        .capacity = qrdma_pble_blocks(start, length, log_page_size),
        .first_byte_offset = start & 0xfff,
    };
}

QrdmaMkc region_all_memory(void)
{
    return (QrdmaMkc) {
        .flags = REGION_ALL_RIGHTS | QRDMA_MKEY_ALL_MEMORY,
        .variant = REGION_VARIANT,
        .log_page_size = QRDMA_LOG_PAGE_SIZE_MIN,
        .translation = QRDMA_TRANSLATION_PHYSICAL,
        .pd = REGION_PD,
        .qpn = QRDMA_MKEY_ANY_QP,
    };
}

enum qrdma_status region_create(TestCard *card, uint32_t index,
                                const QrdmaMkc *mkc)
{
    struct qrdma_mkc in;

    qrdma_mkc_encode(mkc, &in);
    return card_command(card, QRDMA_CMD_CREATE_MKEY, index, &in, sizeof(in),
                        NULL, 0);
}

QrdmaMkc region_query(TestCard *card, uint32_t index)
{
    struct qrdma_mkc out;
    QrdmaMkc mkc;

    g_assert_cmpint(card_command(card, QRDMA_CMD_QUERY_MKEY, index, NULL, 0,
                                 &out, sizeof(out)), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(qrdma_mkc_check_reserved(&out), ==, QRDMA_STATUS_OK);
    qrdma_mkc_decode(&out, &mkc);
    return mkc;
}

void region_assert_same(const QrdmaMkc *one, const QrdmaMkc *other)
{
    struct qrdma_mkc first, second;

    qrdma_mkc_encode(one, &first);
    qrdma_mkc_encode(other, &second);
    g_assert_cmpmem(&first, sizeof(first), &second, sizeof(second));
}

void region_set_leaves(TestCard *card, const QrdmaMkc *mkc,
                       uint32_t first_leaf)
{
    for (uint64_t i = 0; i < qrdma_pble_leaves(mkc->capacity); i++) {
        uint64_t leaf = first_leaf + i * QRDMA_LEAF_PBLES;

        *card_pble(card, mkc->pble_index + i) =
            qrdma_le64(leaf | QRDMA_ROOT_VALID);
    }
}

static uint64_t *find_pble(TestCard *card, const QrdmaMkc *mkc, uint64_t entry)
{
    uint64_t index;

    g_assert_cmpint(qrdma_pble_locate(card->engine, mkc, entry, &index), ==,
                    QRDMA_LOOKUP_FOUND);
    return card_pble(card, index);
}

void region_set_pble(TestCard *card, const QrdmaMkc *mkc, uint64_t entry,
                     uint64_t pble)
{
    *find_pble(card, mkc, entry) = qrdma_le64(pble);
}

uint64_t region_get_pble(TestCard *card, const QrdmaMkc *mkc, uint64_t entry)
{
    return qrdma_le64(*find_pble(card, mkc, entry));
}

QrdmaAccessResult region_begin(TestCard *card, uint32_t key,
                               QrdmaAccessKind kind, uint64_t address,
                               uint64_t length, QrdmaAccess *out)
{
    QrdmaAccessRequest request = {
        .key = key,
        .pd = REGION_PD,
        .qpn = REGION_QPN,
        .kind = kind,
        .address = address,
        .length = length,
    };

    return qrdma_access_begin(card->engine, &request, out);
}

QrdmaAccessResult region_access(TestCard *card, uint32_t key,
                                QrdmaAccessKind kind, uint64_t address,
                                uint64_t length, QrdmaAccess *out)
{
    QrdmaAccessResult result = region_begin(card, key, kind, address, length,
                                            out);

    if (result == QRDMA_ACCESS_GRANTED) {
        qrdma_access_end(card->engine, out);
    }
    return result;
}

/* Where the data of a UMR goes: into the WQE, or into fresh memory. */
static void *data_of(TestCard *card, struct qrdma_umr_wqe *wqe, bool is_inline,
                     size_t length)
{
    uint64_t address;

    if (is_inline) {
        return (uint8_t *)wqe + QRDMA_UMR_INLINE_OFFSET;
    }
    address = card_alloc(card, length, QRDMA_TABLE_UNIT);
    wqe->table_address = qrdma_le64(address);
    return card_pointer(card, address, length);
}

void region_umr_wqe(TestCard *card, const TestUmr *umr,
                    uint8_t wqe[QRDMA_UMR_WQE_SIZE])
{
    struct qrdma_umr_wqe *out = (struct qrdma_umr_wqe *)wqe;
    size_t length = umr->units * QRDMA_TABLE_UNIT;
    uint64_t *data;

    memset(wqe, 0, QRDMA_UMR_WQE_SIZE);
    out->opcode = QRDMA_SEND_OP_UMR;
    out->flags = QRDMA_WQE_SIGNALED;
    out->umr_flags = qrdma_le16(umr->flags);
    out->key = qrdma_le32(umr->key);
    out->mask = qrdma_le64(umr->mask);
    out->table_offset = qrdma_le64(umr->offset);
    out->table_length = qrdma_le32(length);
    qrdma_mkc_encode(&umr->mkc, &out->mkc);
    if (!length) {
        return;
    }
    data = data_of(card, out, umr->flags & QRDMA_UMR_INLINE, length);
    for (size_t i = 0; i < length / sizeof(uint64_t); i++) {
        data[i] = qrdma_le64(umr->pbles[i]);
    }
}

static enum qrdma_status step_to_end(TestCard *card, const uint8_t *wqe,
                                     unsigned slice,
                                     void (*between)(void *opaque),
                                     void *opaque)
{
    QrdmaUmr *umr = qrdma_umr_new(card->engine, REGION_UMR_QPN, wqe);
    enum qrdma_status status;
    QrdmaUmrProgress progress;
    QrdmaFault fault;

    if (qrdma_fault_take(card->engine, QRDMA_FAULT_UMR, qrdma_umr_index(umr), 0,
                         &fault)) {
        qrdma_umr_inject(umr, &fault);
    }
    while ((progress = qrdma_umr_step(card->engine, umr, slice, &status)) ==
           QRDMA_UMR_MORE) {
        if (between) {
            between(opaque);
        }
    }
    if (between) {
        between(opaque);
    }
    g_assert_cmpint(progress, ==, status == QRDMA_STATUS_OK
                                  ? QRDMA_UMR_DONE : QRDMA_UMR_REFUSED);
    qrdma_umr_free(card->engine, umr);
    return status;
}

enum qrdma_status region_umr_sliced(TestCard *card, const TestUmr *umr,
                                    unsigned slice,
                                    void (*between)(void *opaque),
                                    void *opaque)
{
    g_autofree uint8_t *wqe = g_malloc(QRDMA_UMR_WQE_SIZE);

    region_umr_wqe(card, umr, wqe);
    return step_to_end(card, wqe, slice, between, opaque);
}

enum qrdma_status region_umr(TestCard *card, const TestUmr *umr)
{
    return region_umr_sliced(card, umr, QRDMA_UMR_SLICE, NULL, NULL);
}

enum qrdma_status region_umr_raw(TestCard *card,
                                 const uint8_t wqe[QRDMA_UMR_WQE_SIZE])
{
    return step_to_end(card, wqe, QRDMA_UMR_SLICE, NULL, NULL);
}
