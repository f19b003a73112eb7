/*
 * qrdma engine tests: queues, a pair of connected QPs, and memory to move.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-link.h"

static const uint8_t link_gid[16] = { 0xfe, 0x80, [15] = 1 };

/* ------------------------------------------------------------------ queues */

struct qrdma_ring link_ring(uint64_t base, unsigned log_entries,
                            unsigned log_stride)
{
    uint64_t bytes = 1ull << (log_entries + log_stride);

    return (struct qrdma_ring) {
        .base = qrdma_le64(base),
        .num_pages = qrdma_le32((bytes + LINK_PAGE - 1) / LINK_PAGE),
        .log_page_size = 12,
        .log_entries = log_entries,
        .log_stride = log_stride,
    };
}

static uint64_t alloc_ring(TestLink *link, unsigned log_entries,
                           unsigned log_stride)
{
    return card_alloc(link->card, 1ull << (log_entries + log_stride),
                      LINK_PAGE);
}

static void make_reader(TestLink *link, TestReader *reader, uint32_t number,
                        unsigned log_entries, unsigned log_stride,
                        uint32_t page)
{
    *reader = (TestReader) {
        .number = number,
        .page = page,
        .log_entries = log_entries,
        .log_stride = log_stride,
        .ring = alloc_ring(link, log_entries, log_stride),
    };
}

void link_make_eq(TestLink *link, TestReader *eq, uint32_t number,
                  unsigned log_entries, uint32_t vector)
{
    struct qrdma_eqc in = { .vector = qrdma_le32(vector) };

    make_reader(link, eq, number, log_entries, QRDMA_EQE_LOG_SIZE, 0);
    in.ring = link_ring(eq->ring, log_entries, QRDMA_EQE_LOG_SIZE);
    card_must(link->card, QRDMA_CMD_CREATE_EQ, number, &in, sizeof(in));
}

void link_make_cq(TestLink *link, TestReader *cq, uint32_t number,
                  unsigned log_entries, uint32_t page, uint32_t eqn)
{
    struct qrdma_cqc in = {
        .eqn = qrdma_le32(eqn),
        .doorbell_page = qrdma_le32(page),
    };

    make_reader(link, cq, number, log_entries, QRDMA_CQE_LOG_SIZE, page);
    in.ring = link_ring(cq->ring, log_entries, QRDMA_CQE_LOG_SIZE);
    card_must(link->card, QRDMA_CMD_CREATE_CQ, number, &in, sizeof(in));
}

void link_make_qp(TestLink *link, TestQp *qp, enum qrdma_qp_type type,
                  uint32_t number, uint32_t page, TestReader *cq)
{
    struct qrdma_qpc in = {
        .type = type,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(cq->number),
        .receive_cqn = qrdma_le32(cq->number),
        .doorbell_page = qrdma_le32(page),
    };

    *qp = (TestQp) {
        .number = number,
        .page = page,
        .cq = cq,
        .log_send_stride = QRDMA_SEND_WQE_LOG_MAX,
        .log_receive_stride = QRDMA_RECEIVE_WQE_LOG_MAX,
    };
    qp->send_ring = alloc_ring(link, LINK_LOG_ENTRIES, qp->log_send_stride);
    in.send_ring = link_ring(qp->send_ring, LINK_LOG_ENTRIES,
                             qp->log_send_stride);
    if (type == QRDMA_QP_RC) {
        qp->receive_ring = alloc_ring(link, LINK_LOG_ENTRIES,
                                      qp->log_receive_stride);
        in.receive_ring = link_ring(qp->receive_ring, LINK_LOG_ENTRIES,
                                    qp->log_receive_stride);
    }
    card_must(link->card, QRDMA_CMD_CREATE_QP, number, &in, sizeof(in));
}

struct qrdma_modify_qp link_to_init(void)
{
    return (struct qrdma_modify_qp) {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_FLAGS |
                           QRDMA_QP_MASK_PKEY_INDEX),
        .context.state = QRDMA_QP_INIT,
        .context.flags = qrdma_le32(QRDMA_QP_REMOTE_READ |
                                    QRDMA_QP_REMOTE_WRITE |
                                    QRDMA_QP_REMOTE_ATOMIC),
    };
}

struct qrdma_modify_qp link_to_rtr(uint32_t remote_qpn)
{
    struct qrdma_modify_qp in = {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_PATH |
                           QRDMA_QP_MASK_PATH_MTU | QRDMA_QP_MASK_REMOTE_QPN |
                           QRDMA_QP_MASK_RECEIVE_PSN |
                           QRDMA_QP_MASK_MAX_DEST_RD_ATOMIC |
                           QRDMA_QP_MASK_MIN_RNR_TIMER),
        .context = {
            .state = QRDMA_QP_RTR,
            .path_mtu = 3,
            .remote_qpn = qrdma_le32(remote_qpn),
            .receive_psn = qrdma_le32(0xfffffe),
            .max_dest_rd_atomic = 4,
            .min_rnr_timer = 1,
        },
    };

    memcpy(in.context.dgid, link_gid, sizeof(link_gid));
    return in;
}

struct qrdma_modify_qp link_to_rts(void)
{
    return (struct qrdma_modify_qp) {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE | QRDMA_QP_MASK_TIMEOUT |
                           QRDMA_QP_MASK_RETRY_COUNT |
                           QRDMA_QP_MASK_RNR_RETRY | QRDMA_QP_MASK_SEND_PSN |
                           QRDMA_QP_MASK_MAX_RD_ATOMIC),
        .context = {
            .state = QRDMA_QP_RTS,
            .timeout = 1,
            .retry_count = LINK_RETRIES,
            .rnr_retry = LINK_RNR_RETRIES,
            .send_psn = qrdma_le32(0xfffffe),
            .max_rd_atomic = 4,
        },
    };
}

enum qrdma_status link_modify(TestLink *link, const TestQp *qp,
                              const struct qrdma_modify_qp *in)
{
    return card_command(link->card, QRDMA_CMD_MODIFY_QP, qp->number, in,
                        sizeof(*in), NULL, 0);
}

enum qrdma_status link_set_state(TestLink *link, TestQp *qp,
                                 enum qrdma_qp_state state)
{
    struct qrdma_modify_qp in = {
        .mask = qrdma_le64(QRDMA_QP_MASK_STATE),
        .context.state = state,
    };
    enum qrdma_status status = link_modify(link, qp, &in);

    if (status == QRDMA_STATUS_OK && state == QRDMA_QP_RESET) {
        qp->send_producer = 0;
        qp->receive_producer = 0;
    }
    return status;
}

void link_connect(TestLink *link, TestQp *qp, uint32_t remote_qpn)
{
    struct qrdma_modify_qp steps[] = {
        link_to_init(), link_to_rtr(remote_qpn), link_to_rts(),
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_assert_cmpint(link_modify(link, qp, &steps[i]), ==,
                        QRDMA_STATUS_OK);
    }
    qp->send_producer = 0;
    qp->receive_producer = 0;
}

struct qrdma_qpc link_query(TestLink *link, const TestQp *qp)
{
    struct qrdma_qpc out;

    g_assert_cmpint(card_command(link->card, QRDMA_CMD_QUERY_QP, qp->number,
                                 NULL, 0, &out, sizeof(out)), ==,
                    QRDMA_STATUS_OK);
    return out;
}

/* -------------------------------------------------------------------- link */

static void set_gid(TestLink *link)
{
    struct qrdma_gid in = { .vlan = 0xffff, .type = 1 };

    memcpy(in.gid, link_gid, sizeof(link_gid));
    card_must(link->card, QRDMA_CMD_SET_GID, 0, &in, sizeof(in));
}

TestLink *link_new_unconnected(const QrdmaConfig *config)
{
    TestLink *link = g_new0(TestLink, 1);

    link->card = card_new(config);
    link->engine = link->card->engine;
    link->host = link->card->host;
    link->next_key = 0x100;
    link->next_address = 0x7f0000000000;
    card_add_direct_sd(link->card, 0);
    set_gid(link);
    link_make_eq(link, &link->eq, 0, LINK_LOG_EQ_ENTRIES, LINK_EQ_VECTOR);
    link_make_cq(link, &link->cq_a, 1, LINK_LOG_CQ_ENTRIES, LINK_PAGE_A, 0);
    link_make_cq(link, &link->cq_b, 2, LINK_LOG_CQ_ENTRIES, LINK_PAGE_B, 0);
    link_make_qp(link, &link->a, QRDMA_QP_RC, LINK_QPN_A, LINK_PAGE_A,
                 &link->cq_a);
    link_make_qp(link, &link->b, QRDMA_QP_RC, LINK_QPN_B, LINK_PAGE_B,
                 &link->cq_b);
    return link;
}

TestLink *link_new(const QrdmaConfig *config)
{
    TestLink *link = link_new_unconnected(config);

    link_connect(link, &link->a, LINK_QPN_B);
    link_connect(link, &link->b, LINK_QPN_A);
    link_arm(link, &link->eq, QRDMA_DOORBELL_ARM_NEXT);
    fake_host_run(link->host);
    g_assert_cmpuint(link->host->interrupts[LINK_EQ_VECTOR], ==, 0);
    return link;
}

void link_add_umr(TestLink *link)
{
    static const enum qrdma_qp_state states[] = {
        QRDMA_QP_INIT, QRDMA_QP_RTR, QRDMA_QP_RTS,
    };

    link_make_cq(link, &link->cq_umr, 3, LINK_LOG_CQ_ENTRIES, 0, 0);
    link_make_qp(link, &link->umr, QRDMA_QP_UMR, LINK_UMR_QPN, 0,
                 &link->cq_umr);
    for (unsigned i = 0; i < G_N_ELEMENTS(states); i++) {
        g_assert_cmpint(link_set_state(link, &link->umr, states[i]), ==,
                        QRDMA_STATUS_OK);
    }
}

void link_migrate(TestLink *link)
{
    card_migrate(link->card);
    link->engine = link->card->engine;
}

void link_free(TestLink *link)
{
    card_free(link->card);
    g_free(link);
}

/* --------------------------------------------------------- doorbells, WQEs */

void link_doorbell(TestLink *link, uint32_t page, uint32_t offset,
                   uint32_t low, uint32_t counter)
{
    qrdma_engine_doorbell(link->engine, page, offset,
                          (uint64_t)counter << 32 | low, 8);
}

static void put(TestLink *link, uint64_t ring, unsigned log_stride,
                uint32_t counter, const void *wqe, size_t size)
{
    size_t stride = 1u << log_stride;
    uint64_t offset = (counter & (LINK_ENTRIES - 1)) * stride;
    uint8_t *slot = card_pointer(link->card, ring + offset, stride);

    g_assert_cmpuint(size, <=, stride);
    memset(slot, 0, stride);
    memcpy(slot, wqe, size);
}

void link_put_send(TestLink *link, TestQp *qp, const void *wqe, size_t size)
{
    put(link, qp->send_ring, qp->log_send_stride, qp->send_producer++, wqe,
        size);
}

void link_put_receive(TestLink *link, TestQp *qp, const void *wqe,
                      size_t size)
{
    put(link, qp->receive_ring, qp->log_receive_stride,
        qp->receive_producer++, wqe, size);
}

void link_ring_send(TestLink *link, const TestQp *qp)
{
    link_doorbell(link, qp->page, QRDMA_DOORBELL_SEND, qp->number,
                  qp->send_producer);
}

void link_ring_receive(TestLink *link, const TestQp *qp)
{
    link_doorbell(link, qp->page, QRDMA_DOORBELL_RECEIVE, qp->number,
                  qp->receive_producer);
}

static void put_segments(uint8_t *bytes, unsigned count,
                         const QrdmaSegment *segment)
{
    for (unsigned i = 0; i < count; i++) {
        struct qrdma_sge sge = {
            .address = qrdma_le64(segment[i].address),
            .length = qrdma_le32(segment[i].length),
            .key = qrdma_le32(segment[i].key),
        };

        memcpy(bytes + i * sizeof(sge), &sge, sizeof(sge));
    }
}

void link_send_wqe(const TestSend *send, uint8_t wqe[QRDMA_MAX_SEND_WQE])
{
    struct qrdma_send_wqe header = {
        .opcode = send->opcode,
        .flags = send->flags,
        .num_sge = qrdma_le32(send->segments),
        .inline_length = qrdma_le32(send->inline_length),
        .immediate = send->immediate,
        .remote_address = qrdma_le64(send->remote_address),
        .remote_key = qrdma_le32(send->remote_key),
        .swap_or_add = qrdma_le64(send->swap_or_add),
        .compare = qrdma_le64(send->compare),
    };

    memset(wqe, 0, QRDMA_MAX_SEND_WQE);
    memcpy(wqe, &header, sizeof(header));
    if (send->inline_data) {
        memcpy(wqe + QRDMA_SEND_WQE_HEADER, send->inline_data,
               send->inline_length);
    } else {
        put_segments(wqe + QRDMA_SEND_WQE_HEADER, send->segments,
                     send->segment);
    }
}

void link_post_send(TestLink *link, TestQp *qp, const TestSend *send)
{
    uint8_t wqe[QRDMA_MAX_SEND_WQE];

    link_send_wqe(send, wqe);
    link_put_send(link, qp, wqe, sizeof(wqe));
    link_ring_send(link, qp);
}

void link_post_receive(TestLink *link, TestQp *qp, unsigned segments,
                       const QrdmaSegment *segment)
{
    uint8_t wqe[QRDMA_MAX_RECEIVE_WQE] = { 0 };
    struct qrdma_receive_wqe header = { .num_sge = qrdma_le32(segments) };

    memcpy(wqe, &header, sizeof(header));
    put_segments(wqe + QRDMA_RECEIVE_WQE_HEADER, segments, segment);
    link_put_receive(link, qp, wqe, sizeof(wqe));
    link_ring_receive(link, qp);
}

/* ----------------------------------------------------------------- readers */

/* The entry's last byte is its phase. */
static bool take(TestLink *link, TestReader *reader, void *entry)
{
    size_t stride = 1u << reader->log_stride;
    uint32_t slot = reader->consumer & ((1u << reader->log_entries) - 1);
    uint8_t phase = !((reader->consumer >> reader->log_entries) & 1);
    uint8_t *bytes = card_pointer(link->card, reader->ring + slot * stride,
                                  stride);

    if (bytes[stride - 1] != phase) {
        return false;
    }
    memcpy(entry, bytes, stride);
    reader->consumer++;
    return true;
}

void link_arm(TestLink *link, const TestReader *reader, unsigned arm)
{
    link_doorbell(link, reader->page,
                  reader->log_stride == QRDMA_EQE_LOG_SIZE ? QRDMA_DOORBELL_EQ
                                                           : QRDMA_DOORBELL_CQ,
                  reader->number | arm << QRDMA_DOORBELL_ARM_SHIFT,
                  reader->consumer);
}

void link_age(TestLink *link, TestReader *reader, uint32_t counter,
              uint32_t *producer, uint32_t *consumer)
{
    size_t size = (size_t)1 << (reader->log_entries + reader->log_stride);

    *producer = *consumer = reader->consumer = counter;
    memset(card_pointer(link->card, reader->ring, size), 0xff, size);
}

bool link_poll(TestLink *link, TestReader *cq, struct qrdma_cqe *cqe)
{
    bool found = take(link, cq, cqe);

    if (found) {
        link_arm(link, cq, QRDMA_DOORBELL_ARM_NONE);
    }
    return found;
}

bool link_next_event(TestLink *link, TestReader *eq, struct qrdma_eqe *eqe)
{
    bool found = take(link, eq, eqe);

    if (found) {
        link_arm(link, eq, QRDMA_DOORBELL_ARM_NEXT);
        fake_host_run(link->host);
    }
    return found;
}

struct qrdma_cqe link_expect(TestLink *link, TestReader *cq,
                             enum qrdma_cqe_opcode opcode,
                             enum qrdma_cqe_status status)
{
    struct qrdma_cqe cqe;

    g_assert_true(link_poll(link, cq, &cqe));
    g_assert_cmpuint(cqe.status, ==, status);
    g_assert_cmpuint(cqe.opcode, ==, opcode);
    return cqe;
}

void link_expect_no_cqe(TestLink *link, TestReader *cq)
{
    struct qrdma_cqe cqe;

    g_assert_false(link_poll(link, cq, &cqe));
}

struct qrdma_eqe link_expect_event(TestLink *link, enum qrdma_event type,
                                   uint32_t number)
{
    struct qrdma_eqe eqe;

    g_assert_true(link_next_event(link, &link->eq, &eqe));
    g_assert_cmpuint(eqe.type, ==, type);
    g_assert_cmphex(qrdma_le32(eqe.number), ==, number);
    return eqe;
}

void link_expect_no_event(TestLink *link)
{
    struct qrdma_eqe eqe;

    g_assert_false(link_next_event(link, &link->eq, &eqe));
}

/* ------------------------------------------------------------------ memory */

/* PBLEs for a table of so many entries, at a unit. */
static uint32_t take_pbles(TestLink *link, uint64_t entries)
{
    uint32_t first = link->next_pble;

    link->next_pble += qrdma_pble_round_to_units(entries);
    g_assert_cmpuint(link->next_pble, <=, QRDMA_PBLES_PER_SD);
    return first;
}

/* Memory of the pages, from the end to the beginning: none follows another. */
static void alloc_pages(TestBuffer *buffer, uint64_t count, uint64_t size)
{
    uint64_t block = card_alloc(buffer->card, count * size, size);

    buffer->pages = g_array_new(false, false, sizeof(uint64_t));
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = block + (count - 1 - i) * size;

        g_array_append_val(buffer->pages, page);
    }
}

TestBuffer *link_buffer(TestLink *link, unsigned level, unsigned log_page_size,
                        uint64_t offset, uint64_t length, uint32_t flags)
{
    uint64_t page_size = 1ull << log_page_size;
    uint64_t base = (link->next_address + page_size - 1) & -page_size;
    uint64_t start = base + offset;
    uint64_t blocks = qrdma_pble_blocks(start, length, log_page_size);
    TestBuffer *buffer = g_new0(TestBuffer, 1);

    link->next_address = base + (blocks + 1) * page_size;
    buffer->card = link->card;
    buffer->address = start;
    buffer->length = length;
    buffer->index = link->next_key++;
    buffer->key = REGION_KEY(buffer->index);
    alloc_pages(buffer, blocks, page_size);
    buffer->mkc = region_mkc(start, length, log_page_size, level,
                             level ? take_pbles(link, level == 1 ? blocks :
                                                qrdma_pble_leaves(blocks))
                                   : 0);
    buffer->mkc.flags |= flags;
    if (level == 0) {
        g_assert_cmpuint(blocks, ==, 1);
        buffer->mkc.base = g_array_index(buffer->pages, uint64_t, 0) |
                           QRDMA_PBLE_PRESENT;
    } else if (level == 2) {
        region_set_leaves(link->card, &buffer->mkc,
                          take_pbles(link, qrdma_pble_leaves(blocks) *
                                           QRDMA_LEAF_PBLES));
    }
    g_assert_cmpint(region_create(link->card, buffer->index, &buffer->mkc),
                    ==, QRDMA_STATUS_OK);
    for (uint64_t i = 0; level && i < blocks; i++) {
        region_set_pble(link->card, &buffer->mkc, i,
                        g_array_index(buffer->pages, uint64_t, i) |
                        QRDMA_PBLE_PRESENT);
    }
    return buffer;
}

void link_buffer_free(TestBuffer *buffer)
{
    g_array_unref(buffer->pages);
    g_free(buffer);
}

void *link_buffer_pointer(TestBuffer *buffer, uint64_t offset, size_t length)
{
    uint64_t page_size = 1ull << buffer->mkc.log_page_size;
    uint64_t place = (buffer->address & (page_size - 1)) + offset;
    uint64_t page = g_array_index(buffer->pages, uint64_t, place / page_size);

    return card_pointer(buffer->card, page + place % page_size, length);
}

uint8_t link_buffer_byte(TestBuffer *buffer, uint64_t offset)
{
    return *(uint8_t *)link_buffer_pointer(buffer, offset, 1);
}

/* Neighbours differ, and so do pages. */
uint8_t link_pattern(uint8_t seed, uint64_t offset)
{
    return seed + offset * 7 + (offset >> 8) * 13 + (offset >> 12) * 3;
}

void link_buffer_fill(TestBuffer *buffer, uint8_t seed)
{
    for (uint64_t i = 0; i < buffer->length; i++) {
        *(uint8_t *)link_buffer_pointer(buffer, i, 1) = link_pattern(seed, i);
    }
}

void link_buffer_set_present(TestLink *link, TestBuffer *buffer, uint64_t page,
                             bool present)
{
    uint64_t address = g_array_index(buffer->pages, uint64_t, page);

    region_set_pble(link->card, &buffer->mkc, page,
                    present ? address | QRDMA_PBLE_PRESENT : 0);
    card_must(link->card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, buffer->index,
              NULL, 0);
}

QrdmaSegment link_segment(const TestBuffer *buffer, uint64_t offset,
                          uint32_t length)
{
    return (QrdmaSegment) {
        .address = buffer->address + offset,
        .length = length,
        .key = buffer->key,
    };
}
