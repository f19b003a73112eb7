/*
 * qrdma engine: what the card says about itself.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

#define PATH_MTU_4096 5

uint64_t qrdma_engine_capabilities(const QrdmaEngine *engine)
{
    uint64_t capabilities = QRDMA_CAPABILITY_ON_DEMAND |
                            QRDMA_CAPABILITY_ATOMIC;

    if (engine->config.pble_cache) {
        capabilities |= QRDMA_CAPABILITY_PBLE_CACHE;
    }
    return capabilities;
}

/* Bits QRDMA_LOG_PAGE_SIZE_MIN to QRDMA_LOG_PAGE_SIZE_MAX. */
static uint64_t page_size_bitmap(void)
{
    return (2ull << QRDMA_LOG_PAGE_SIZE_MAX) -
           (1ull << QRDMA_LOG_PAGE_SIZE_MIN);
}

enum qrdma_status qrdma_cmd_nop(QrdmaEngine *engine,
                                const QrdmaCommandCall *call)
{
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_query_device(QrdmaEngine *engine,
                                         const QrdmaCommandCall *call)
{
    struct qrdma_device_limits *limits = call->output;

    *limits = (struct qrdma_device_limits) {
        .capabilities = qrdma_le64(qrdma_engine_capabilities(engine)),
        .page_size_bitmap = qrdma_le64(page_size_bitmap()),
        .max_mr_size = qrdma_le64(UINT64_MAX),
        .max_message_size = qrdma_le64(QRDMA_MAX_MESSAGE_SIZE),
        .max_mkeys = qrdma_le32(QRDMA_MAX_MKEYS),
        .max_qps = qrdma_le32(1u << QRDMA_LOG_MAX_QPS),
        .max_cqs = qrdma_le32(1u << QRDMA_LOG_MAX_CQS),
        .max_eqs = qrdma_le32(QRDMA_MAX_EQS),
        .max_sds = qrdma_le32(QRDMA_MAX_SD),
        .max_pds = qrdma_le32(QRDMA_MAX_PD + 1),
        .max_gids = qrdma_le32(QRDMA_MAX_GIDS),
        .max_vectors = qrdma_le32(QRDMA_MSIX_VECTORS),
        .doorbell_pages = qrdma_le32(QRDMA_DOORBELL_PAGES),
        .max_sge = qrdma_le32(QRDMA_MAX_SGE),
        .max_inline = qrdma_le32(QRDMA_MAX_INLINE),
        .max_umr_table_write = qrdma_le32(QRDMA_UMR_MAX_TABLE_WRITE),
        .log_max_ring_entries = QRDMA_LOG_MAX_RING_ENTRIES,
        .log_max_send_stride = QRDMA_SEND_WQE_LOG_MAX,
        .log_max_receive_stride = QRDMA_RECEIVE_WQE_LOG_MAX,
        .max_rd_atomic = QRDMA_MAX_RD_ATOMIC,
        .path_mtu = PATH_MTU_4096,
    };
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_read_counters(QrdmaEngine *engine,
                                          const QrdmaCommandCall *call)
{
    struct qrdma_counters *out = call->output;
    const QrdmaCounters *in = &engine->counters;

    *out = (struct qrdma_counters) {
        .commands = qrdma_le64(in->commands),
        .commands_refused = qrdma_le64(in->commands_refused),
        .umr_completed = qrdma_le64(in->umr_completed),
        .umr_refused = qrdma_le64(in->umr_refused),
        .umr_flushed = qrdma_le64(in->umr_flushed),
        .umr_table_bytes = qrdma_le64(in->umr_table_bytes),
        .send_messages = qrdma_le64(in->send_messages),
        .receive_messages = qrdma_le64(in->receive_messages),
        .send_bytes = qrdma_le64(in->send_bytes),
        .receive_bytes = qrdma_le64(in->receive_bytes),
        .packets = qrdma_le64(in->packets),
        .access_refused = qrdma_le64(in->access_refused),
        .page_faults = qrdma_le64(in->page_faults),
        .page_faults_resumed = qrdma_le64(in->page_faults_resumed),
        .pble_cache_hits = qrdma_le64(in->pble_cache_hits),
        .pble_cache_misses = qrdma_le64(in->pble_cache_misses),
        .rnr_retries = qrdma_le64(in->rnr_retries),
        .doorbells_ignored = qrdma_le64(in->doorbells_ignored),
        .events_lost = qrdma_le64(in->events_lost),
        .dma_errors = qrdma_le64(in->dma_errors),
    };
    return QRDMA_STATUS_OK;
}
