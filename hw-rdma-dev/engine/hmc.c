/*
 * qrdma engine: host memory lent to the card (HMC), where PBLEs live.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

#define HMC_PAGE_SIZE 4096u
#define HMC_PAGE_MASK (HMC_PAGE_SIZE - 1)
#define SD_SIZE (1ull << QRDMA_SD_SHIFT)

static void free_sd(QrdmaSd *sd)
{
    if (sd) {
        g_free(sd->pages);
        g_free(sd);
    }
}

void qrdma_hmc_reset(QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_MAX_SD; i++) {
        g_clear_pointer(&engine->hmc.sds[i], free_sd);
    }
}

/* The list is read once: what the guest writes to it later has no effect. */
static enum qrdma_status read_page_list(QrdmaEngine *engine, QrdmaSd *sd)
{
    sd->pages = g_new(uint64_t, QRDMA_SD_PAGES);
    if (!qrdma_dma_read(engine, sd->address, sd->pages,
                        QRDMA_SD_PAGES * sizeof(uint64_t))) {
        return QRDMA_STATUS_DMA_ERROR;
    }
    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        sd->pages[i] = qrdma_le64(sd->pages[i]);
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status check_page_list(const QrdmaSd *sd)
{
    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        if (sd->pages[i] & HMC_PAGE_MASK) {
            return QRDMA_STATUS_BAD_ALIGNMENT;
        }
    }
    return QRDMA_STATUS_OK;
}

/* All but the list of pages. */
static enum qrdma_status check_shape(const QrdmaSd *sd)
{
    if (sd->address & HMC_PAGE_MASK) {
        return QRDMA_STATUS_BAD_ALIGNMENT;
    }
    switch (sd->type) {
    case QRDMA_SD_DIRECT:
        /* Segments that would wrap around the end of the bus. */
        return sd->address > UINT64_MAX - SD_SIZE + 1 ? QRDMA_STATUS_BAD_SD
                                                      : QRDMA_STATUS_OK;
    case QRDMA_SD_PAGED:
        return QRDMA_STATUS_OK;
    default:
        return QRDMA_STATUS_BAD_SD;
    }
}

static enum qrdma_status set_up(QrdmaEngine *engine, QrdmaSd *sd)
{
    enum qrdma_status status = check_shape(sd);

    if (status == QRDMA_STATUS_OK && sd->type == QRDMA_SD_PAGED) {
        status = read_page_list(engine, sd);
        if (status == QRDMA_STATUS_OK) {
            status = check_page_list(sd);
        }
    }
    return status;
}

enum qrdma_status qrdma_cmd_add_sd(QrdmaEngine *engine,
                                   const QrdmaCommandCall *call)
{
    const struct qrdma_sd *in = call->input;
    enum qrdma_status status;
    QrdmaSd *sd;

    if (call->number >= QRDMA_MAX_SD) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (engine->hmc.sds[call->number]) {
        return QRDMA_STATUS_IN_USE;
    }
    if (in->reserved0 ||
        !qrdma_is_zero(in->reserved1, sizeof(in->reserved1))) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    sd = g_new0(QrdmaSd, 1);
    sd->type = qrdma_le32(in->type);
    sd->address = qrdma_le64(in->address);
    status = set_up(engine, sd);
    if (status != QRDMA_STATUS_OK) {
        free_sd(sd);
        return status;
    }
    engine->hmc.sds[call->number] = sd;
    return QRDMA_STATUS_OK;
}

enum qrdma_status qrdma_cmd_remove_sd(QrdmaEngine *engine,
                                      const QrdmaCommandCall *call)
{
    QrdmaSd **sd;

    if (call->number >= QRDMA_MAX_SD) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    sd = &engine->hmc.sds[call->number];
    if (!*sd) {
        return QRDMA_STATUS_NO_OBJECT;
    }
    if ((*sd)->users) {
        return QRDMA_STATUS_IN_USE;
    }
    g_clear_pointer(sd, free_sd);
    /* Leaves may have been in it, and only their roots know whose. */
    qrdma_pble_cache_forget_all(engine);
    return QRDMA_STATUS_OK;
}

static uint64_t sd_of_pble(uint64_t index)
{
    return qrdma_hmc_sd_of_address(index * QRDMA_PBLE_SIZE);
}

bool qrdma_hmc_hold(QrdmaEngine *engine, uint64_t index, uint64_t count)
{
    uint64_t first, last;

    if (!qrdma_hmc_in_space(index, count)) {
        return false;
    }
    if (!count) {
        return true;
    }
    first = sd_of_pble(index);
    last = sd_of_pble(index + count - 1);
    for (uint64_t i = first; i <= last; i++) {
        if (!engine->hmc.sds[i]) {
            return false;
        }
    }
    for (uint64_t i = first; i <= last; i++) {
        engine->hmc.sds[i]->users++;
    }
    return true;
}

void qrdma_hmc_release(QrdmaEngine *engine, uint64_t index, uint64_t count)
{
    uint64_t first, last;

    if (!count) {
        return;
    }
    first = sd_of_pble(index);
    last = sd_of_pble(index + count - 1);
    for (uint64_t i = first; i <= last; i++) {
        engine->hmc.sds[i]->users--;
    }
}

bool qrdma_hmc_bus_address(QrdmaEngine *engine, uint64_t index,
                           uint64_t *address, uint64_t *contiguous)
{
    uint64_t offset = index * QRDMA_PBLE_SIZE & (SD_SIZE - 1);
    QrdmaSd *sd;

    if (!qrdma_hmc_in_space(index, 1)) {
        return false;
    }
    sd = engine->hmc.sds[sd_of_pble(index)];
    if (!sd) {
        return false;
    }
    if (sd->type == QRDMA_SD_DIRECT) {
        *address = sd->address + offset;
    } else {
        *address = sd->pages[offset / HMC_PAGE_SIZE] + (offset & HMC_PAGE_MASK);
    }
    if (contiguous) {
        *contiguous = (HMC_PAGE_SIZE - (offset & HMC_PAGE_MASK)) /
                      QRDMA_PBLE_SIZE;
    }
    return true;
}

bool qrdma_hmc_read(QrdmaEngine *engine, uint64_t index, uint64_t count,
                    uint64_t *pbles)
{
    while (count) {
        uint64_t address, now;

        if (!qrdma_hmc_bus_address(engine, index, &address, &now)) {
            return false;
        }
        now = MIN(now, count);
        if (!qrdma_dma_read(engine, address, pbles, now * QRDMA_PBLE_SIZE)) {
            return false;
        }
        for (uint64_t i = 0; i < now; i++) {
            pbles[i] = qrdma_le64(pbles[i]);
        }
        index += now;
        count -= now;
        pbles += now;
    }
    return true;
}

static void state_sd(QrdmaStream *stream, QrdmaSd *sd)
{
    qrdma_stream_enum(stream, "type", &sd->type, 0, UINT32_MAX);
    qrdma_stream_u64(stream, "address", &sd->address, 0, UINT64_MAX);
    if (!qrdma_stream_check(stream, check_shape(sd) == QRDMA_STATUS_OK, NULL,
                            "type %u and address 0x%" PRIx64 " are no SD",
                            sd->type, sd->address) ||
        sd->type != QRDMA_SD_PAGED) {
        return;
    }
    if (qrdma_stream_is_loading(stream)) {
        sd->pages = g_new0(uint64_t, QRDMA_SD_PAGES);
    }
    qrdma_stream_words(stream, "pages", sd->pages, QRDMA_SD_PAGES);
    qrdma_stream_check(stream, check_page_list(sd) == QRDMA_STATUS_OK, "pages",
                       "one of them is not aligned");
}

void qrdma_state_hmc(QrdmaStream *stream, QrdmaEngine *engine)
{
    for (unsigned i = 0; i < QRDMA_MAX_SD; i++) {
        QrdmaSd **sd = &engine->hmc.sds[i];
        bool backed = *sd;

        qrdma_stream_enter_item(stream, "sd", i);
        qrdma_stream_bool(stream, "backed", &backed);
        if (backed) {
            *sd = *sd ?: g_new0(QrdmaSd, 1);
            state_sd(stream, *sd);
        }
        qrdma_stream_leave(stream);
    }
}
