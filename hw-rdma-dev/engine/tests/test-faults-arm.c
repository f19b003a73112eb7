/*
 * qrdma engine tests: which faults may be armed, and what is said of others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-card.h"

typedef struct BadFault {
    const char *name;
    QrdmaFault fault;
    enum qrdma_fault_result result;
} BadFault;

#define GOOD .at = 1, .count = 1

static const BadFault bad_faults[] = {
    { "no-target", { 0, QRDMA_FAULT_FAIL, GOOD }, QRDMA_FAULT_BAD_TARGET },
    { "target", { 7, QRDMA_FAULT_FAIL, GOOD }, QRDMA_FAULT_BAD_TARGET },
    { "no-action", { QRDMA_FAULT_UMR, 0, GOOD }, QRDMA_FAULT_BAD_ACTION },
    { "action", { QRDMA_FAULT_UMR, 8, GOOD }, QRDMA_FAULT_BAD_ACTION },
    { "late-event", { QRDMA_FAULT_EVENT, QRDMA_FAULT_LATE, GOOD },
      QRDMA_FAULT_BAD_ACTION },
    { "drop-dma", { QRDMA_FAULT_DMA_READ, QRDMA_FAULT_DROP, GOOD,
                    .length = 1 }, QRDMA_FAULT_BAD_ACTION },
    { "at", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, .count = 1 },
      QRDMA_FAULT_BAD_AT },
    { "count", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, .at = 1 },
      QRDMA_FAULT_BAD_COUNT },
    { "index", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, GOOD,
                 .index = QRDMA_MAX_MKEYS }, QRDMA_FAULT_BAD_INDEX },
    { "dma-index", { QRDMA_FAULT_DMA_READ, QRDMA_FAULT_FAIL, GOOD, .index = 1,
                     .length = 1 }, QRDMA_FAULT_BAD_INDEX },
    { "opcode", { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FAIL, GOOD,
                  .opcode = 0x7f }, QRDMA_FAULT_BAD_OPCODE },
    { "event-type", { QRDMA_FAULT_EVENT, QRDMA_FAULT_FAIL, GOOD, .opcode = 7 },
      QRDMA_FAULT_BAD_OPCODE },
    { "umr-opcode", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, GOOD, .opcode = 8 },
      QRDMA_FAULT_BAD_OPCODE },
    { "status", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, GOOD,
                  .status = QRDMA_STATUS_COUNT }, QRDMA_FAULT_BAD_STATUS },
    { "drop-status", { QRDMA_FAULT_UMR, QRDMA_FAULT_DROP, GOOD, .status = 1 },
      QRDMA_FAULT_BAD_STATUS },
    { "point", { QRDMA_FAULT_COMMAND, QRDMA_FAULT_FATAL, GOOD, .point = 3 },
      QRDMA_FAULT_BAD_POINT },
    { "drop-point", { QRDMA_FAULT_UMR, QRDMA_FAULT_DROP, GOOD, .point = 3 },
      QRDMA_FAULT_BAD_POINT },
    { "delay", { QRDMA_FAULT_UMR, QRDMA_FAULT_DELAY, GOOD,
                 .delay = QRDMA_FAULT_MAX_DELAY + 1 }, QRDMA_FAULT_BAD_DELAY },
    { "drop-delay", { QRDMA_FAULT_UMR, QRDMA_FAULT_DROP, GOOD, .delay = 1 },
      QRDMA_FAULT_BAD_DELAY },
    { "no-range", { QRDMA_FAULT_DMA_READ, QRDMA_FAULT_FAIL, GOOD },
      QRDMA_FAULT_BAD_RANGE },
    { "range", { QRDMA_FAULT_DMA_READ, QRDMA_FAULT_FAIL, GOOD,
                 .address = UINT64_MAX, .length = 2 }, QRDMA_FAULT_BAD_RANGE },
    { "umr-range", { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, GOOD, .length = 2 },
      QRDMA_FAULT_BAD_RANGE },
};

static void test_bad(gconstpointer data)
{
    const BadFault *bad = data;
    TestCard *card = card_new(NULL);

    g_assert_cmpint(qrdma_engine_fault_arm(card->engine, &bad->fault), ==,
                    bad->result);
    g_assert_cmpint(qrdma_fault_check(&bad->fault), ==, bad->result);
    g_assert_cmpuint(card_faults(card), ==, 0);
    g_assert_cmpstr(qrdma_fault_result_text(bad->result), !=, "unknown");
    card_free(card);
}

static void test_too_many(void)
{
    QrdmaFault fault = { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, GOOD };
    TestCard *card = card_new(NULL);

    for (unsigned i = 0; i < QRDMA_MAX_FAULTS; i++) {
        g_assert_cmpint(qrdma_engine_fault_arm(card->engine, &fault), ==,
                        QRDMA_FAULT_ARMED);
    }
    g_assert_cmpint(qrdma_engine_fault_arm(card->engine, &fault), ==,
                    QRDMA_FAULT_TOO_MANY);
    qrdma_engine_reset(card->engine);
    g_assert_cmpuint(card_faults(card), ==, QRDMA_MAX_FAULTS);
    qrdma_engine_fault_clear(card->engine);
    g_assert_cmpuint(card_faults(card), ==, 0);
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_faults); i++) {
        g_autofree char *path = g_strdup_printf("/faults-arm/bad/%s",
                                                bad_faults[i].name);

        g_test_add_data_func(path, &bad_faults[i], test_bad);
    }
    g_test_add_func("/faults-arm/too-many", test_too_many);
    return g_test_run();
}
