/*
 * qrdma engine tests: UMRs on their way: slices, order, fences, and what else
 * happens to a mkey meanwhile.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define RW QRDMA_PBLE_PRESENT
#define INDEX 5u
#define KEY REGION_KEY(INDEX)
#define UNITS 4u
#define ENTRIES (UNITS * QRDMA_PBLES_PER_UNIT)

typedef struct Fixture {
    TestCard *card;
    QrdmaMkc mkc;
    uint64_t pbles[ENTRIES];
    QrdmaUmr *umr;
    enum qrdma_status status;
} Fixture;

static QrdmaUmr *new_umr(TestCard *card, const TestUmr *request)
{
    g_autofree uint8_t *wqe = g_malloc(QRDMA_UMR_WQE_SIZE);

    region_umr_wqe(card, request, wqe);
    return qrdma_umr_new(card->engine, REGION_UMR_QPN, wqe);
}

/* A UMR that writes all of the table and then sets the PD. */
static Fixture fixture_new(uint64_t seed)
{
    QrdmaConfig config = card_default_config();
    Fixture fixture = { 0 };
    TestUmr request = {
        .key = KEY,
        .flags = QRDMA_UMR_INLINE,
        .mask = QRDMA_UMR_MASK_RELAXED_ORDERING,
        .mkc.flags = QRDMA_MKEY_RELAXED_ORDERING,
        .units = UNITS,
        .pbles = fixture.pbles,
    };

    config.umr_order_seed = seed;
    fixture.card = card_new(&config);
    card_add_direct_sd(fixture.card, 0);
    fixture.mkc = region_mkc(0, ENTRIES * 4096, 12, 1, 64);
    g_assert_cmpint(region_create(fixture.card, INDEX, &fixture.mkc), ==,
                    QRDMA_STATUS_OK);
    for (unsigned i = 0; i < ENTRIES; i++) {
        fixture.pbles[i] = (i + 1) * 0x10000 | RW;
    }
    fixture.umr = new_umr(fixture.card, &request);
    return fixture;
}

static void fixture_free(Fixture *fixture)
{
    qrdma_umr_free(fixture->card->engine, fixture->umr);
    card_free(fixture->card);
}

static QrdmaUmrProgress step(Fixture *fixture)
{
    return qrdma_umr_step(fixture->card->engine, fixture->umr, 1,
                          &fixture->status);
}

static void end_umr(Fixture *fixture)
{
    qrdma_umr_free(fixture->card->engine, g_steal_pointer(&fixture->umr));
}

/* What is visible: bit per unit, and the bit above them for the context. */
static unsigned visible(Fixture *fixture)
{
    unsigned seen = 0;

    for (unsigned unit = 0; unit < UNITS; unit++) {
        uint64_t entry = unit * QRDMA_PBLES_PER_UNIT;

        if (region_get_pble(fixture->card, &fixture->mkc, entry)) {
            seen |= 1u << unit;
        }
    }
    if (qrdma_mkey_find(fixture->card->engine, INDEX)->mkc.flags &
        QRDMA_MKEY_RELAXED_ORDERING) {
        seen |= 1u << UNITS;
    }
    return seen;
}

static void test_one_by_one(void)
{
    Fixture fixture = fixture_new(0);
    static const unsigned expected[] = { 0x1, 0x3, 0x7, 0xf };

    for (unsigned i = 0; i < G_N_ELEMENTS(expected); i++) {
        g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
        g_assert_cmphex(visible(&fixture), ==, expected[i]);
    }
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    g_assert_cmphex(visible(&fixture), ==, 0x1f);
    fixture_free(&fixture);
}

/* The order in which items become visible, as a number of base 8. */
static unsigned order_of(Fixture *fixture)
{
    unsigned before = 0, order = 0;
    QrdmaUmrProgress progress;

    do {
        unsigned now, new;

        progress = step(fixture);
        now = visible(fixture);
        new = now & ~before;
        g_assert_cmpuint(new & (new - 1), ==, 0);
        g_assert_cmpuint(new, !=, 0);
        order = order * 8 + g_bit_nth_lsf(new, -1);
        before = now;
    } while (progress == QRDMA_UMR_MORE);
    g_assert_cmpint(progress, ==, QRDMA_UMR_DONE);
    g_assert_cmphex(before, ==, 0x1f);
    return order;
}

/* A seed gives some order, always the same one; many seeds give many. */
static void test_order_from_seed(void)
{
    g_autoptr(GHashTable) orders = g_hash_table_new(NULL, NULL);
    unsigned context_last = 0;

    for (uint64_t seed = 1; seed <= 50; seed++) {
        Fixture one = fixture_new(seed);
        Fixture other = fixture_new(seed);
        unsigned order = order_of(&one);

        g_assert_cmpuint(order_of(&other), ==, order);
        g_hash_table_add(orders, GUINT_TO_POINTER(order));
        context_last += order % 8 == UNITS;
        fixture_free(&one);
        fixture_free(&other);
    }
    g_assert_cmpuint(g_hash_table_size(orders), >, 20);
    g_assert_cmpuint(context_last, <, 50);
}

/* After a reset the sequence begins again. */
static void test_order_after_reset(void)
{
    Fixture fixture = fixture_new(77);
    uint64_t first = fixture.card->engine->umr_random;

    order_of(&fixture);
    end_umr(&fixture);
    g_assert_cmphex(fixture.card->engine->umr_random, !=, first);
    qrdma_engine_reset(fixture.card->engine);
    g_assert_cmphex(fixture.card->engine->umr_random, ==, first);
    card_free(fixture.card);
}

/* The data are read once: what is changed under way has no effect. */
static void test_data_read_once(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr request = {
        .key = KEY, .units = UNITS, .pbles = fixture.pbles,
    };
    g_autofree uint64_t *wqe = g_malloc0(QRDMA_UMR_WQE_SIZE);
    uint64_t *data;

    end_umr(&fixture);
    region_umr_wqe(fixture.card, &request, (uint8_t *)wqe);
    fixture.umr = qrdma_umr_new(fixture.card->engine, REGION_UMR_QPN,
                                (uint8_t *)wqe);
    data = card_pointer(fixture.card, qrdma_le64(
                        ((struct qrdma_umr_wqe *)wqe)->table_address),
                        UNITS * QRDMA_TABLE_UNIT);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    memset(data, 0xff, UNITS * QRDMA_TABLE_UNIT);
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        g_assert_cmphex(region_get_pble(fixture.card, &fixture.mkc, i), ==,
                        fixture.pbles[i]);
    }
    fixture_free(&fixture);
}

/* ----------------------------------------------------------------- fences */

/* Accesses of a page that the test puts there by CPU. */
static QrdmaAccess begin_access(Fixture *fixture)
{
    QrdmaAccess access;

    g_assert_cmpint(region_begin(fixture->card, KEY, QRDMA_REMOTE_READ, 0, 1,
                                 &access), ==, QRDMA_ACCESS_GRANTED);
    return access;
}

static void revoke_first_page(Fixture *fixture)
{
    TestUmr request = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_FREE,
        .mkc.flags = QRDMA_MKEY_FREE,
    };

    end_umr(fixture);
    region_set_pble(fixture->card, &fixture->mkc, 0, 0x123000 | RW);
    fixture->umr = new_umr(fixture->card, &request);
}

static void test_waits_for_older_access(void)
{
    Fixture fixture = fixture_new(0);
    QrdmaAccess first, second, refused;

    revoke_first_page(&fixture);
    first = begin_access(&fixture);
    second = begin_access(&fixture);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    /* Revoked already, though not complete. */
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ, 0, 1,
                                  &refused), ==, QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(refused.error, ==, QRDMA_ACCESS_FREE);
    qrdma_access_end(fixture.card->engine, &second);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &first);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    fixture_free(&fixture);
}

/* Accesses that begin after the change are not waited for. */
static void test_younger_access_does_not_count(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr fence = { .key = KEY };
    QrdmaAccess older, younger;

    end_umr(&fixture);
    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    for (unsigned round = 0; round < 3; round++) {
        fixture.umr = new_umr(fixture.card, &fence);
        older = begin_access(&fixture);
        g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
        younger = begin_access(&fixture);
        qrdma_access_end(fixture.card->engine, &older);
        g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
        end_umr(&fixture);
        qrdma_access_end(fixture.card->engine, &younger);
    }
    card_free(fixture.card);
}

/* A fence that was given up: the next one still waits for all. */
static void test_fence_given_up(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr fence = { .key = KEY };
    QrdmaAccess oldest, older;

    end_umr(&fixture);
    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    oldest = begin_access(&fixture);
    fixture.umr = new_umr(fixture.card, &fence);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    end_umr(&fixture);
    older = begin_access(&fixture);
    fixture.umr = new_umr(fixture.card, &fence);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &older);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &oldest);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    fixture_free(&fixture);
}

/* An access that was translated keeps its place until it ends. */
static void test_access_keeps_its_place(void)
{
    Fixture fixture = fixture_new(0);
    QrdmaAccess access, later;

    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    access = begin_access(&fixture);
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    g_assert_cmphex(access.bus_address, ==, 0x123000);
    later = begin_access(&fixture);
    g_assert_cmphex(later.bus_address, ==, 0x10000);
    qrdma_access_end(fixture.card->engine, &later);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &access);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    fixture_free(&fixture);
}

/* ------------------------------------------------ others at the same mkey */

static void test_second_waits(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr request = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_PD,
        .mkc.pd = 3,
    };
    QrdmaUmr *second = new_umr(fixture.card, &request);
    enum qrdma_status status;

    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_WAIT);
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    g_assert_cmphex(visible(&fixture), ==, 0x1f);
    g_assert_cmpuint(region_query(fixture.card, INDEX).pd, ==, REGION_PD);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_DONE);
    g_assert_cmpuint(region_query(fixture.card, INDEX).pd, ==, 3);
    qrdma_umr_free(fixture.card->engine, second);
    fixture_free(&fixture);
}

/* The second is judged by what the first left. */
static void test_second_is_checked_late(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr rename = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_VARIANT,
        .mkc.variant = REGION_VARIANT + 1,
    };
    TestUmr late = { .key = KEY };
    QrdmaUmr *second;
    enum qrdma_status status;
    QrdmaAccess access;

    end_umr(&fixture);
    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    access = begin_access(&fixture);
    fixture.umr = new_umr(fixture.card, &rename);
    second = new_umr(fixture.card, &late);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &access);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_REFUSED);
    g_assert_cmpint(status, ==, QRDMA_STATUS_BAD_VARIANT);
    qrdma_umr_free(fixture.card->engine, second);
    fixture_free(&fixture);
}

static bool is_done(Fixture *fixture, uint64_t entry)
{
    const struct qrdma_command *command =
        card_pointer(fixture->card, entry, sizeof(*command));

    if (command->done) {
        g_assert_cmpint(qrdma_le16(command->status), ==, QRDMA_STATUS_OK);
    }
    return command->done;
}

/* A UMR that waits has been counted by the diagnostic window when it came. */
static void test_injection_counts_once(void)
{
    Fixture fixture = fixture_new(0);
    TestUmr request = { .key = KEY };
    QrdmaUmr *second = new_umr(fixture.card, &request);
    enum qrdma_status status;

    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    card_refuse_umrs(fixture.card, 2, 1);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_WAIT);
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, second, 1, &status),
                    ==, QRDMA_UMR_DONE);
    g_assert_cmpuint(card_faults(fixture.card), ==, 1);
    qrdma_umr_free(fixture.card->engine, second);
    fixture_free(&fixture);
}

static void test_destroy_waits_for_umr(void)
{
    Fixture fixture = fixture_new(0);
    struct qrdma_command destroy = {
        .opcode = qrdma_le16(QRDMA_CMD_DESTROY_MKEY),
        .number = qrdma_le32(INDEX),
    };
    uint64_t entry;

    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    entry = card_post_command(fixture.card, &destroy);
    fake_host_run(fixture.card->host);
    g_assert_false(is_done(&fixture, entry));
    while (step(&fixture) == QRDMA_UMR_MORE) {
        fake_host_run(fixture.card->host);
        g_assert_false(is_done(&fixture, entry));
    }
    end_umr(&fixture);
    fake_host_run(fixture.card->host);
    g_assert_true(is_done(&fixture, entry));
    card_free(fixture.card);
}

static void test_destroy_waits_for_accesses(void)
{
    Fixture fixture = fixture_new(0);
    struct qrdma_command destroy = {
        .opcode = qrdma_le16(QRDMA_CMD_DESTROY_MKEY),
        .number = qrdma_le32(INDEX),
    };
    TestUmr late = { .key = KEY };
    QrdmaAccess first, second, refused;
    QrdmaUmr *umr;
    enum qrdma_status status;
    uint64_t entry;

    end_umr(&fixture);
    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    first = begin_access(&fixture);
    second = begin_access(&fixture);
    entry = card_post_command(fixture.card, &destroy);
    fake_host_run(fixture.card->host);
    g_assert_false(is_done(&fixture, entry));
    /* No new ones. */
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ, 0, 1,
                                  &refused), ==, QRDMA_ACCESS_REFUSED);
    g_assert_cmpint(refused.error, ==, QRDMA_ACCESS_NO_KEY);
    umr = new_umr(fixture.card, &late);
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, umr, 1, &status), ==,
                    QRDMA_UMR_WAIT);
    qrdma_access_end(fixture.card->engine, &first);
    fake_host_run(fixture.card->host);
    g_assert_false(is_done(&fixture, entry));
    qrdma_access_end(fixture.card->engine, &second);
    fake_host_run(fixture.card->host);
    g_assert_true(is_done(&fixture, entry));
    g_assert_cmpint(qrdma_umr_step(fixture.card->engine, umr, 1, &status), ==,
                    QRDMA_UMR_REFUSED);
    g_assert_cmpint(status, ==, QRDMA_STATUS_NO_OBJECT);
    qrdma_umr_free(fixture.card->engine, umr);
    card_free(fixture.card);
}

/* What a command waits for does not come in fatal error: it is answered. */
static void test_fatal_ends_the_wait(void)
{
    Fixture fixture = fixture_new(0);
    struct qrdma_command destroy = {
        .opcode = qrdma_le16(QRDMA_CMD_DESTROY_MKEY),
        .number = qrdma_le32(INDEX),
    };
    const struct qrdma_command *entry;
    QrdmaAccess access;
    uint64_t address;

    end_umr(&fixture);
    region_set_pble(fixture.card, &fixture.mkc, 0, 0x123000 | RW);
    access = begin_access(&fixture);
    address = card_post_command(fixture.card, &destroy);
    entry = card_pointer(fixture.card, address, sizeof(*entry));
    fake_host_run(fixture.card->host);
    g_assert_cmpuint(entry->done, ==, 0);
    qrdma_engine_fatal(fixture.card->engine, QRDMA_FATAL_EQ_DMA);
    fake_host_run(fixture.card->host);
    g_assert_cmpuint(entry->done, ==, 1);
    g_assert_cmpint(qrdma_le16(entry->status), ==, QRDMA_STATUS_FATAL_STATE);
    qrdma_access_end(fixture.card->engine, &access);
    card_free(fixture.card);
}

/* MODIFY_MKEY is such a change too: it fences, and waits for its turn. */
static void test_modify_waits(void)
{
    Fixture fixture = fixture_new(0);
    struct qrdma_modify_mkey modify = {
        .mask = qrdma_le64(QRDMA_UMR_MASK_FREE),
        .context.flags = qrdma_le32(QRDMA_MKEY_FREE),
    };
    struct qrdma_command command = {
        .opcode = qrdma_le16(QRDMA_CMD_MODIFY_MKEY),
        .number = qrdma_le32(INDEX),
        .input = qrdma_le64(fixture.card->command_buffer),
        .input_length = qrdma_le32(sizeof(modify)),
    };
    QrdmaAccess access;
    uint64_t entry;

    memcpy(card_pointer(fixture.card, fixture.card->command_buffer,
                        sizeof(modify)), &modify, sizeof(modify));
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    access = begin_access(&fixture);
    entry = card_post_command(fixture.card, &command);
    fake_host_run(fixture.card->host);
    g_assert_false(is_done(&fixture, entry));
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    /* The UMR waits for the access, the command for the UMR. */
    fake_host_run(fixture.card->host);
    g_assert_false(is_done(&fixture, entry));
    qrdma_access_end(fixture.card->engine, &access);
    access = begin_access(&fixture);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_DONE);
    fake_host_run(fixture.card->host);
    /* Its turn, but there is an access of its own to wait for. */
    g_assert_false(is_done(&fixture, entry));
    qrdma_access_end(fixture.card->engine, &access);
    fake_host_run(fixture.card->host);
    g_assert_true(is_done(&fixture, entry));
    g_assert_true(region_query(fixture.card, INDEX).flags & QRDMA_MKEY_FREE);
    fixture_free(&fixture);
}

/* An SD with a leaf that a UMR writes to stays until the UMR is over. */
static void test_leaf_sd_is_held(void)
{
    Fixture fixture = fixture_new(0);
    TestCard *card = fixture.card;
    QrdmaMkc mkc = region_mkc(0, 513 * 4096, 12, 2, 1024);
    TestUmr request = {
        .key = REGION_KEY(INDEX + 1),
        .flags = QRDMA_UMR_INLINE,
        .units = UNITS,
        .pbles = fixture.pbles,
    };

    end_umr(&fixture);
    card_add_direct_sd(card, 1);
    region_set_leaves(card, &mkc, QRDMA_PBLES_PER_SD);
    g_assert_cmpint(region_create(card, INDEX + 1, &mkc), ==, QRDMA_STATUS_OK);
    fixture.umr = new_umr(card, &request);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    g_assert_cmpint(card_command(card, QRDMA_CMD_REMOVE_SD, 1, NULL, 0, NULL,
                                 0), ==, QRDMA_STATUS_IN_USE);
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    card_must(card, QRDMA_CMD_REMOVE_SD, 1, NULL, 0);
    fixture_free(&fixture);
}

/* -------------------------------------------------------------- ended early */

/* The queue goes away under way: what is begun becomes whole. */
static void test_freed_under_way(void)
{
    Fixture fixture = fixture_new(0);

    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    end_umr(&fixture);
    g_assert_cmphex(visible(&fixture), ==, 0x1f);
    /* And lets go of all it had. */
    card_must(fixture.card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    card_must(fixture.card, QRDMA_CMD_REMOVE_SD, 0, NULL, 0);
    card_free(fixture.card);
}

static void test_freed_before_it_began(void)
{
    Fixture fixture = fixture_new(0);

    end_umr(&fixture);
    g_assert_cmphex(visible(&fixture), ==, 0);
    card_free(fixture.card);
}

/* A stopped card writes nothing. */
static void test_freed_in_reset(void)
{
    Fixture fixture = fixture_new(0);
    unsigned writes;

    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    writes = fixture.card->host->writes;
    qrdma_registers_reset(fixture.card->engine);
    end_umr(&fixture);
    g_assert_cmpuint(fixture.card->host->writes, ==, writes);
    card_free(fixture.card);
}

/* Table memory that fails after all was checked: the card gives up. */
static void test_hmc_fails(void)
{
    Fixture fixture = fixture_new(0);
    TestCard *card = fixture.card;
    struct qrdma_counters counters;
    uint64_t address;

    g_assert_true(qrdma_hmc_bus_address(card->engine, 64 + 16, &address, NULL));
    fake_host_refuse(card->host, address, 1, false, true);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_MORE);
    g_assert_cmpint(step(&fixture), ==, QRDMA_UMR_WAIT);
    g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_FATAL);
    g_assert_cmpuint(card_register(card, QRDMA_REG_ERROR), ==,
                     QRDMA_FATAL_HMC_DMA);
    g_assert_cmpuint(card->host->interrupts[CARD_COMMAND_VECTOR], >, 0);
    end_umr(&fixture);
    /* Commands that only look are answered, others are not carried out. */
    g_assert_cmpint(card_command(card, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                                 &counters, sizeof(counters)), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpint(card_command(card, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0), ==,
                    QRDMA_STATUS_FATAL_STATE);
    /* Only a reset leaves it. */
    qrdma_engine_register_write(card->engine, QRDMA_REG_CONTROL,
                                QRDMA_CONTROL_RESET, 4);
    card_enable(card);
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    card_free(card);
}

static void test_trace(void)
{
    Fixture fixture = fixture_new(0);

    fixture.card->host->ops.trace_enabled = true;
    while (step(&fixture) == QRDMA_UMR_MORE) {
        continue;
    }
    g_assert_cmpuint(fixture.card->host->traces->len, ==, 1);
    g_assert_true(g_str_has_prefix(
        g_ptr_array_index(fixture.card->host->traces, 0), "umr: "));
    fixture_free(&fixture);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/umr-course/one-by-one", test_one_by_one);
    g_test_add_func("/umr-course/order-from-seed", test_order_from_seed);
    g_test_add_func("/umr-course/order-after-reset", test_order_after_reset);
    g_test_add_func("/umr-course/data-read-once", test_data_read_once);
    g_test_add_func("/umr-course/waits-for-older-access",
                    test_waits_for_older_access);
    g_test_add_func("/umr-course/younger-access-does-not-count",
                    test_younger_access_does_not_count);
    g_test_add_func("/umr-course/fence-given-up", test_fence_given_up);
    g_test_add_func("/umr-course/access-keeps-its-place",
                    test_access_keeps_its_place);
    g_test_add_func("/umr-course/second-waits", test_second_waits);
    g_test_add_func("/umr-course/second-is-checked-late",
                    test_second_is_checked_late);
    g_test_add_func("/umr-course/destroy-waits-for-umr",
                    test_destroy_waits_for_umr);
    g_test_add_func("/umr-course/destroy-waits-for-accesses",
                    test_destroy_waits_for_accesses);
    g_test_add_func("/umr-course/modify-waits", test_modify_waits);
    g_test_add_func("/umr-course/fatal-ends-the-wait",
                    test_fatal_ends_the_wait);
    g_test_add_func("/umr-course/injection-counts-once",
                    test_injection_counts_once);
    g_test_add_func("/umr-course/leaf-sd-is-held", test_leaf_sd_is_held);
    g_test_add_func("/umr-course/freed-under-way", test_freed_under_way);
    g_test_add_func("/umr-course/freed-before-it-began",
                    test_freed_before_it_began);
    g_test_add_func("/umr-course/freed-in-reset", test_freed_in_reset);
    g_test_add_func("/umr-course/hmc-fails", test_hmc_fails);
    g_test_add_func("/umr-course/trace", test_trace);
    return g_test_run();
}
