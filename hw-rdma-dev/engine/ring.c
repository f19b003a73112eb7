/*
 * qrdma engine: memory of queue rings.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"
#include "queues-internal.h"
#include "state.h"

#define RING_PAGE_SIZE (1u << QRDMA_LOG_PAGE_SIZE_MIN)

/* Pages of a ring; log_entries and log_stride are within their limits. */
static uint32_t pages_needed(unsigned log_entries, unsigned log_stride)
{
    uint64_t bytes = 1ull << (log_entries + log_stride);

    return (bytes + RING_PAGE_SIZE - 1) >> QRDMA_LOG_PAGE_SIZE_MIN;
}

static enum qrdma_status check_shape(const struct qrdma_ring *description,
                                     const QrdmaRingLimits *limits)
{
    if (description->reserved) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (description->level > 1) {
        return QRDMA_STATUS_BAD_LEVEL;
    }
    if (description->log_page_size != QRDMA_LOG_PAGE_SIZE_MIN) {
        return QRDMA_STATUS_BAD_PAGE_SIZE;
    }
    if (description->log_entries > QRDMA_LOG_MAX_RING_ENTRIES ||
        description->log_entries < limits->log_entries_min ||
        description->log_stride < limits->log_stride_min ||
        description->log_stride > limits->log_stride_max) {
        return QRDMA_STATUS_BAD_RING;
    }
    if (qrdma_le32(description->num_pages) !=
        pages_needed(description->log_entries, description->log_stride)) {
        return QRDMA_STATUS_BAD_RING;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status set_contiguous(const struct qrdma_ring *description,
                                        QrdmaRing *ring)
{
    uint64_t base = qrdma_le64(description->base);
    uint64_t bytes = (uint64_t)ring->num_pages << QRDMA_LOG_PAGE_SIZE_MIN;

    if (description->pble_index) {
        return QRDMA_STATUS_BAD_PBLE_INDEX;
    }
    if (base & (RING_PAGE_SIZE - 1)) {
        return QRDMA_STATUS_BAD_ALIGNMENT;
    }
    if (base > UINT64_MAX - (bytes - 1)) {
        return QRDMA_STATUS_BAD_RING;
    }
    ring->base = base;
    return QRDMA_STATUS_OK;
}

/* Every page of a ring must be there, and the card may read and write it. */
static enum qrdma_status resolve_pages(QrdmaEngine *engine, QrdmaRing *ring)
{
    if (!qrdma_hmc_read(engine, ring->pble_index, ring->num_pages,
                        ring->pages)) {
        return QRDMA_STATUS_HMC_ERROR;
    }
    for (uint32_t i = 0; i < ring->num_pages; i++) {
        uint64_t pble = ring->pages[i];

        if (qrdma_pble_check(pble, QRDMA_LOG_PAGE_SIZE_MIN) !=
            QRDMA_PBLE_GOOD ||
            (pble & QRDMA_PBLE_PRESENT) != QRDMA_PBLE_PRESENT) {
            return QRDMA_STATUS_BAD_ENTRY;
        }
        ring->pages[i] = pble & QRDMA_PBLE_ADDRESS;
    }
    return QRDMA_STATUS_OK;
}

/* Take the SDs and the memory that a level 1 ring needs. */
static enum qrdma_status reserve_pages(QrdmaEngine *engine,
                                       const struct qrdma_ring *description,
                                       QrdmaRing *ring)
{
    uint32_t index = qrdma_le32(description->pble_index);
    QrdmaQueues *queues = engine->queues;

    if (description->base) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (index % QRDMA_PBLES_PER_UNIT ||
        !qrdma_hmc_in_space(index, ring->num_pages)) {
        return QRDMA_STATUS_BAD_PBLE_INDEX;
    }
    /* Many rings may name the same PBLEs, so guest memory is no bound. */
    if (ring->num_pages > QRDMA_MAX_RING_PAGES - queues->ring_pages) {
        return QRDMA_STATUS_NO_RESOURCES;
    }
    if (!qrdma_hmc_hold(engine, index, ring->num_pages)) {
        return QRDMA_STATUS_HMC_ERROR;
    }
    ring->pble_index = index;
    ring->pages = g_new0(uint64_t, ring->num_pages);
    queues->ring_pages += ring->num_pages;
    return QRDMA_STATUS_OK;
}

/* All but the contents of `pages`. */
static enum qrdma_status set_shape(QrdmaEngine *engine,
                                   const struct qrdma_ring *description,
                                   const QrdmaRingLimits *limits,
                                   QrdmaRing *ring)
{
    enum qrdma_status status = check_shape(description, limits);

    *ring = (QrdmaRing) { 0 };
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    ring->level = description->level;
    ring->log_entries = description->log_entries;
    ring->log_stride = description->log_stride;
    ring->entries = 1u << ring->log_entries;
    ring->num_pages = pages_needed(ring->log_entries, ring->log_stride);
    return ring->level == 0 ? set_contiguous(description, ring)
                            : reserve_pages(engine, description, ring);
}

enum qrdma_status qrdma_ring_setup(QrdmaEngine *engine,
                                   const struct qrdma_ring *description,
                                   const QrdmaRingLimits *limits,
                                   QrdmaRing *ring)
{
    enum qrdma_status status = set_shape(engine, description, limits, ring);

    if (status == QRDMA_STATUS_OK && ring->pages) {
        status = resolve_pages(engine, ring);
    }
    if (status != QRDMA_STATUS_OK) {
        qrdma_ring_release(engine, ring);
    }
    return status;
}

void qrdma_ring_release(QrdmaEngine *engine, QrdmaRing *ring)
{
    if (ring->pages) {
        qrdma_hmc_release(engine, ring->pble_index, ring->num_pages);
        engine->queues->ring_pages -= ring->num_pages;
        g_free(ring->pages);
    }
    *ring = (QrdmaRing) { 0 };
}

void qrdma_ring_describe(const QrdmaRing *ring, struct qrdma_ring *description)
{
    *description = (struct qrdma_ring) { 0 };
    if (ring->entries) {
        description->base = qrdma_le64(ring->base);
        description->pble_index = qrdma_le32(ring->pble_index);
        description->num_pages = qrdma_le32(ring->num_pages);
        description->level = ring->level;
        description->log_page_size = QRDMA_LOG_PAGE_SIZE_MIN;
        description->log_entries = ring->log_entries;
        description->log_stride = ring->log_stride;
    }
}

static void state_pages(QrdmaStream *stream, QrdmaRing *ring)
{
    qrdma_stream_words(stream, "pages", ring->pages, ring->num_pages);
    for (uint32_t i = 0; i < ring->num_pages; i++) {
        qrdma_stream_check(stream, !(ring->pages[i] & (RING_PAGE_SIZE - 1)),
                           "pages", "page %u is not aligned", i);
    }
}

void qrdma_state_ring(QrdmaStream *stream, QrdmaEngine *engine,
                      const char *name, const QrdmaRingLimits *limits,
                      bool optional, QrdmaRing *ring)
{
    struct qrdma_ring description;
    enum qrdma_status status = QRDMA_STATUS_OK;
    bool there;

    qrdma_ring_describe(ring, &description);
    qrdma_stream_enter(stream, name);
    qrdma_stream_bytes(stream, "description", &description,
                       sizeof(description));
    there = !qrdma_is_zero(&description, sizeof(description));
    qrdma_stream_check(stream, there || optional, "description",
                       "there is no ring");
    if (qrdma_stream_is_loading(stream) && there) {
        status = set_shape(engine, &description, limits, ring);
        if (!qrdma_stream_check(stream, status == QRDMA_STATUS_OK,
                                "description", "no ring may have it: status "
                                "%d", status)) {
            qrdma_ring_release(engine, ring);
        }
    }
    if (ring->pages) {
        state_pages(stream, ring);
    }
    qrdma_stream_leave(stream);
}

void qrdma_state_counters(QrdmaStream *stream, const QrdmaRing *ring,
                          uint32_t *producer, uint32_t *consumer,
                          bool card_produces)
{
    const char *guests = card_produces ? "consumer" : "producer";
    const char *cards = card_produces ? "producer" : "consumer";

    qrdma_stream_u32(stream, "producer", producer, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "consumer", consumer, 0, UINT32_MAX);
    qrdma_stream_check(stream, qrdma_ring_holds(ring, *producer, *consumer),
                       guests, "%u is not within the ring from %s %u",
                       card_produces ? *consumer : *producer, cards,
                       card_produces ? *producer : *consumer);
}

/* Strides are powers of two up to 512: an entry lies in one page. */
static uint64_t entry_address(const QrdmaRing *ring, uint32_t counter)
{
    uint64_t offset = (uint64_t)(counter & (ring->entries - 1))
                      << ring->log_stride;

    if (!ring->pages) {
        return ring->base + offset;
    }
    return ring->pages[offset >> QRDMA_LOG_PAGE_SIZE_MIN] +
           (offset & (RING_PAGE_SIZE - 1));
}

bool qrdma_ring_read(QrdmaEngine *engine, const QrdmaRing *ring,
                     uint32_t counter, void *entry)
{
    return qrdma_dma_read(engine, entry_address(ring, counter), entry,
                          1u << ring->log_stride);
}

bool qrdma_ring_write(QrdmaEngine *engine, const QrdmaRing *ring,
                      uint32_t counter, const void *entry)
{
    uint64_t address = entry_address(ring, counter);
    size_t body = (1u << ring->log_stride) - sizeof(uint64_t);
    const uint8_t *bytes = entry;

    if (!qrdma_dma_write(engine, address, bytes, body)) {
        return false;
    }
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return qrdma_dma_write(engine, address + body, bytes + body,
                           sizeof(uint64_t));
}
