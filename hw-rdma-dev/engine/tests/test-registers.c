/*
 * qrdma engine tests: BAR 0, enable, reset and fatal errors.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

static uint64_t rd(TestCard *card, uint64_t offset, unsigned size)
{
    return qrdma_engine_register_read(card->engine, offset, size);
}

static void wr(TestCard *card, uint64_t offset, uint64_t value, unsigned size)
{
    qrdma_engine_register_write(card->engine, offset, value, size);
}

static void test_identity(void)
{
    TestCard *card = card_new_disabled(NULL);

    g_assert_cmphex(rd(card, QRDMA_REG_ID, 4), ==, QRDMA_ID);
    g_assert_cmphex(rd(card, QRDMA_REG_ABI_VERSION, 4), ==, 0x00010000);
    g_assert_cmphex(rd(card, QRDMA_REG_CAPABILITIES, 8), ==, 7);
    g_assert_cmphex(rd(card, QRDMA_REG_MAC, 8), ==, 0x554433221102);
    g_assert_cmphex(rd(card, QRDMA_REG_MAC, 4), ==, 0x33221102);
    g_assert_cmphex(rd(card, QRDMA_REG_MAC + 4, 4), ==, 0x5544);
    g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_ERROR, 4), ==, 0);
    card_free(card);
}

/* cases.md 46: which accesses reach a register, and that no other does. */
static bool is_access(uint64_t offset, unsigned size)
{
    static const uint64_t wide[] = {
        QRDMA_REG_CAPABILITIES, QRDMA_REG_COMMAND_RING, QRDMA_REG_MAC,
        QRDMA_REG_FAULT_DELAY, QRDMA_REG_FAULT_ADDRESS,
        QRDMA_REG_FAULT_LENGTH,
    };
    static const uint64_t narrow[] = {
        QRDMA_REG_ID, QRDMA_REG_ABI_VERSION, QRDMA_REG_STATUS, QRDMA_REG_ERROR,
        QRDMA_REG_CONTROL, QRDMA_REG_COMMAND_LOG_SIZE,
        QRDMA_REG_COMMAND_VECTOR, QRDMA_REG_COMMAND_DOORBELL,
        QRDMA_REG_COMMAND_CONSUMER, QRDMA_REG_DIAGNOSTIC_CAPS,
        QRDMA_REG_FAULT_TARGET, QRDMA_REG_FAULT_ACTION, QRDMA_REG_FAULT_AT,
        QRDMA_REG_FAULT_COUNT, QRDMA_REG_FAULT_INDEX, QRDMA_REG_FAULT_OPCODE,
        QRDMA_REG_FAULT_STATUS, QRDMA_REG_FAULT_POINT,
        QRDMA_REG_FAULT_CONTROL, QRDMA_REG_FAULT_RESULT,
        QRDMA_REG_FAULT_ARMED, QRDMA_REG_FAULT_FIRED, QRDMA_REG_FAULT_HELD,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(wide); i++) {
        if ((offset == wide[i] && size >= 4) ||
            (offset == wide[i] + 4 && size == 4)) {
            return true;
        }
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(narrow); i++) {
        if (offset == narrow[i] && size == 4) {
            return true;
        }
    }
    return false;
}

static void test_every_access(void)
{
    QrdmaConfig config = card_default_config();
    TestCard *card;

    config.diagnostics = true;
    card = card_new_disabled(&config);
    for (uint64_t offset = 0; offset < QRDMA_BAR_REGISTERS_SIZE; offset++) {
        for (unsigned size = 1; size <= 8; size *= 2) {
            uint64_t before = rd(card, offset, size);

            if (size < 8) {
                g_assert_cmphex(before >> (8 * size), ==, 0);
            }
            if (is_access(offset, size)) {
                continue;
            }
            g_assert_cmphex(before, ==, 0);
            wr(card, offset, UINT64_MAX, size);
        }
    }
    /* Nothing of it had an effect. */
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_RING, 8), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_LOG_SIZE, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_VECTOR, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_CONTROL, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_ARMED, 4), ==, 0);
    card_free(card);
}

static void test_read_only(void)
{
    static const uint64_t offsets[] = {
        QRDMA_REG_ID, QRDMA_REG_ABI_VERSION, QRDMA_REG_CAPABILITIES,
        QRDMA_REG_ERROR, QRDMA_REG_COMMAND_CONSUMER, QRDMA_REG_MAC,
        QRDMA_REG_DIAGNOSTIC_CAPS,
    };
    TestCard *card = card_new(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(offsets); i++) {
        uint64_t before = rd(card, offsets[i], 4);

        wr(card, offsets[i], ~before, 4);
        g_assert_cmphex(rd(card, offsets[i], 4), ==, before);
    }
    card_free(card);
}

static void test_halves(void)
{
    TestCard *card = card_new_disabled(NULL);

    wr(card, QRDMA_REG_COMMAND_RING, 0x1122334455667788, 8);
    wr(card, QRDMA_REG_COMMAND_RING + 4, 0xffffffffaabbccdd, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_RING, 8), ==,
                    0xaabbccdd55667788);
    wr(card, QRDMA_REG_COMMAND_RING, 0xffffffff01020304, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_RING, 8), ==,
                    0xaabbccdd01020304);
    card_free(card);
}

static void test_locked_while_enabled(void)
{
    TestCard *card = card_new(NULL);
    uint64_t ring = rd(card, QRDMA_REG_COMMAND_RING, 8);
    uint32_t size = rd(card, QRDMA_REG_COMMAND_LOG_SIZE, 4);
    uint32_t vector = rd(card, QRDMA_REG_COMMAND_VECTOR, 4);

    wr(card, QRDMA_REG_COMMAND_RING, ~ring, 8);
    wr(card, QRDMA_REG_COMMAND_LOG_SIZE, ~size, 4);
    wr(card, QRDMA_REG_COMMAND_VECTOR, ~vector, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_RING, 8), ==, ring);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_LOG_SIZE, 4), ==, size);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_VECTOR, 4), ==, vector);
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    card_free(card);
}

static void test_bad_setup(void)
{
    static const struct {
        uint64_t ring;
        uint32_t log_size, vector;
    } cases[] = {
        { 0x1008, 4, 0 },
        { 0x1800, 4, 0 },
        { 0x1000, QRDMA_COMMAND_LOG_SIZE_MAX + 1, 0 },
        { 0x1000, 63, 0 },
        { 0x1000, UINT32_MAX, 0 },
        { 0x1000, 4, QRDMA_MSIX_VECTORS },
        { 0x1000, 4, QRDMA_COMMAND_VECTOR_ENABLE | QRDMA_MSIX_VECTORS },
        { 0x1000, 4, 1u << 30 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        TestCard *card = card_new_disabled(NULL);

        wr(card, QRDMA_REG_COMMAND_RING, cases[i].ring, 8);
        wr(card, QRDMA_REG_COMMAND_LOG_SIZE, cases[i].log_size, 4);
        wr(card, QRDMA_REG_COMMAND_VECTOR, cases[i].vector, 4);
        wr(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE, 4);
        g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, QRDMA_CARD_FATAL);
        g_assert_cmpuint(rd(card, QRDMA_REG_ERROR, 4), ==,
                         QRDMA_FATAL_COMMAND_RING_SETUP);
        /* It touches nothing, whatever it is told. */
        wr(card, QRDMA_REG_COMMAND_DOORBELL, 1, 4);
        fake_host_run(card->host);
        g_assert_cmpuint(card->host->reads + card->host->writes, ==, 0);
        wr(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET, 4);
        card_enable(card);
        card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
        card_free(card);
    }
}

static void test_status_bits(void)
{
    TestCard *card = card_new(NULL);

    qrdma_status_set(card->engine, QRDMA_CARD_EVENT_LOST |
                     QRDMA_CARD_DOORBELL_ERROR | QRDMA_CARD_FATAL);
    g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, 0xd);
    wr(card, QRDMA_REG_STATUS, QRDMA_CARD_EVENT_LOST | QRDMA_CARD_READY, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, 0x9);
    wr(card, QRDMA_REG_STATUS, UINT32_MAX, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, QRDMA_CARD_READY);
    card_free(card);
}

static void test_diagnostics_off(void)
{
    TestCard *card = card_new(NULL);

    g_assert_cmphex(rd(card, QRDMA_REG_DIAGNOSTIC_CAPS, 4), ==, 0);
    wr(card, QRDMA_REG_FAULT_AT, 3, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_AT, 4), ==, 0);
    wr(card, QRDMA_REG_AUDIT_SELECT, 3, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_AUDIT_SELECT, 4), ==, 0);
    card_free(card);
}

static void test_diagnostics_on(void)
{
    QrdmaConfig config = card_default_config();
    TestCard *card;

    config.diagnostics = true;
    card = card_new(&config);
    g_assert_cmphex(rd(card, QRDMA_REG_DIAGNOSTIC_CAPS, 4), ==, 1);
    wr(card, QRDMA_REG_FAULT_TARGET, QRDMA_FAULT_UMR, 4);
    wr(card, QRDMA_REG_FAULT_ACTION, QRDMA_FAULT_LATE, 4);
    wr(card, QRDMA_REG_FAULT_AT, 3, 4);
    wr(card, QRDMA_REG_FAULT_DELAY + 4, 1, 4);
    wr(card, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_RESULT, 4), ==,
                    QRDMA_FAULT_BAD_COUNT);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_ARMED, 4), ==, 0);
    wr(card, QRDMA_REG_FAULT_COUNT, 1, 4);
    wr(card, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_ARM, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_RESULT, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_ARMED, 4), ==, 1);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_DELAY, 8), ==, 1ull << 32);
    /* A driver resets the card when it is loaded. */
    qrdma_engine_reset(card->engine);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_ARMED, 4), ==, 1);
    wr(card, QRDMA_REG_FAULT_CONTROL, QRDMA_FAULT_CLEAR, 4);
    g_assert_cmphex(rd(card, QRDMA_REG_FAULT_ARMED, 4), ==, 0);
    card_free(card);
}

/* ------------------------------------------------------------------- reset */

/* Give the card something of everything this half of the engine keeps. */
static void fill(TestCard *card)
{
    QrdmaMkc mkc = region_mkc(0, 4096, 12, 1, 0);
    struct qrdma_gid gid = {
        .gid = { 0xfe, 0x80 }, .type = 1, .vlan = qrdma_le16(0xffff),
    };

    card_add_direct_sd(card, 0);
    g_assert_cmpint(region_create(card, 5, &mkc), ==, QRDMA_STATUS_OK);
    card_must(card, QRDMA_CMD_SET_GID, 3, &gid, sizeof(gid));
    qrdma_status_set(card->engine, QRDMA_CARD_EVENT_LOST);
}

static void assert_initial(TestCard *card)
{
    static const QrdmaCounters none;

    g_assert_cmphex(rd(card, QRDMA_REG_STATUS, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_CONTROL, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_ERROR, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_RING, 8), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_LOG_SIZE, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_VECTOR, 4), ==, 0);
    g_assert_cmphex(rd(card, QRDMA_REG_COMMAND_CONSUMER, 4), ==, 0);
    g_assert_cmpmem(&card->engine->counters, sizeof(none), &none, sizeof(none));
    g_assert_null(card->engine->hmc.sds[0]);
    g_assert_cmpuint(card->engine->mkeys.count, ==, 0);
    g_assert_null(qrdma_gid_get(card->engine, 3));
    g_assert_cmpuint(card->host->deadline, ==, UINT64_MAX);
}

static void reset_by_engine(TestCard *card)
{
    qrdma_engine_reset(card->engine);
}

static void reset_by_register(TestCard *card)
{
    wr(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET, 4);
}

static void reset_with_enable(TestCard *card)
{
    wr(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET | QRDMA_CONTROL_ENABLE, 4);
}

static void reset_by_disable(TestCard *card)
{
    wr(card, QRDMA_REG_CONTROL, 0, 4);
}

static void test_reset(void)
{
    static void (*const resets[])(TestCard *card) = {
        reset_by_engine, reset_by_register, reset_with_enable,
        reset_by_disable,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(resets); i++) {
        TestCard *card = card_new(NULL);

        fill(card);
        resets[i](card);
        assert_initial(card);
        /* And it can do all of it again. */
        card_enable(card);
        fill(card);
        card_free(card);
    }
}

/* What was scheduled before a reset finds nothing to do after it. */
static void test_reset_with_work(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_command nop = { .opcode = QRDMA_CMD_NOP };
    unsigned reads, writes;

    card_post_command(card, &nop);
    g_assert_true(card->host->scheduled);
    reads = card->host->reads;
    writes = card->host->writes;
    qrdma_engine_reset(card->engine);
    fake_host_run(card->host);
    qrdma_engine_timer(card->engine);
    g_assert_cmpuint(card->host->reads, ==, reads);
    g_assert_cmpuint(card->host->writes, ==, writes);
    g_assert_cmpuint(card->host->interrupts[CARD_COMMAND_VECTOR], ==, 0);
    /* The host dropped the request to run: the next one comes through. */
    card_enable(card);
    card_post_command(card, &nop);
    card->host->scheduled = false;
    qrdma_engine_reset(card->engine);
    card_enable(card);
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    card_free(card);
}

/* The first fatal error is the one that is told. */
static void test_first_fatal_error_stays(void)
{
    TestCard *card = card_new(NULL);

    qrdma_engine_fatal(card->engine, QRDMA_FATAL_EQ_DMA);
    qrdma_engine_fatal(card->engine, QRDMA_FATAL_HMC_DMA);
    g_assert_cmpuint(rd(card, QRDMA_REG_ERROR, 4), ==, QRDMA_FATAL_EQ_DMA);
    g_assert_cmpuint(card->host->interrupts[CARD_COMMAND_VECTOR], ==, 1);
    /* ENABLE cannot be written over it; taking it away is a reset. */
    wr(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE, 4);
    g_assert_cmpuint(rd(card, QRDMA_REG_ERROR, 4), ==, QRDMA_FATAL_EQ_DMA);
    wr(card, QRDMA_REG_CONTROL, 0, 4);
    assert_initial(card);
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/registers/identity", test_identity);
    g_test_add_func("/registers/every-access", test_every_access);
    g_test_add_func("/registers/read-only", test_read_only);
    g_test_add_func("/registers/halves", test_halves);
    g_test_add_func("/registers/locked-while-enabled",
                    test_locked_while_enabled);
    g_test_add_func("/registers/bad-setup", test_bad_setup);
    g_test_add_func("/registers/status-bits", test_status_bits);
    g_test_add_func("/registers/diagnostics-off", test_diagnostics_off);
    g_test_add_func("/registers/diagnostics-on", test_diagnostics_on);
    g_test_add_func("/registers/reset", test_reset);
    g_test_add_func("/registers/reset-with-work", test_reset_with_work);
    g_test_add_func("/registers/first-fatal-error-stays",
                    test_first_fatal_error_stays);
    return g_test_run();
}
