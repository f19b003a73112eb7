/*
 * qrdma engine tests: the audit: what it counts and what it finds, where
 * nothing is injected; its registers; what it does not watch.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "../audit-internal.h"
#include "test-region.h"

#define INDEX 9u
#define KEY REGION_KEY(INDEX)
#define PAGE 4096ull
#define START 0x7f0000000000ull
#define PAGES 16u
#define MEMORY 0x40000000000ull
#define TABLE 64u
#define RW QRDMA_PBLE_PRESENT

typedef struct Fixture {
    TestCard *card;
    QrdmaMkc mkc;
} Fixture;

static uint64_t place(uint64_t page)
{
    return MEMORY + (page * 3 + 1) * PAGE;
}

static void fill(Fixture *fixture, uint64_t first, uint64_t count, uint64_t or)
{
    for (uint64_t i = first; i < first + count; i++) {
        region_set_pble(fixture->card, &fixture->mkc, i,
                        or ? place(i) | or : 0);
    }
}

static Fixture fixture_new(uint64_t rights)
{
    QrdmaConfig config = card_default_config();
    Fixture fixture;

    config.audit = true;
    fixture.card = card_new(&config);
    card_add_paged_sd(fixture.card, 0);
    fixture.mkc = region_mkc(START, PAGES * PAGE, 12, 1, TABLE);
    fill(&fixture, 0, PAGES, rights);
    g_assert_cmpint(region_create(fixture.card, INDEX, &fixture.mkc), ==,
                    QRDMA_STATUS_OK);
    return fixture;
}

static QrdmaAuditTotals totals(Fixture *fixture)
{
    return qrdma_engine_audit_totals(fixture->card->engine);
}

static const QrdmaFinding *finding(Fixture *fixture, unsigned number)
{
    return qrdma_engine_audit_finding(fixture->card->engine, number);
}

static void assert_windows(Fixture *fixture, uint64_t windows, uint64_t maps)
{
    g_assert_cmpuint(totals(fixture).windows, ==, windows);
    g_assert_cmpuint(totals(fixture).maps, ==, maps);
    g_assert_null(finding(fixture, 0));
}

/* Two units of entries from `first` on: `to` says where each page goes. */
static void write_pages(Fixture *fixture, uint64_t first, unsigned units,
                        uint64_t offset, uint64_t rights)
{
    uint64_t pbles[2 * QRDMA_PBLES_PER_UNIT] = { 0 };
    TestUmr umr = {
        .key = KEY,
        .flags = QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = first * QRDMA_PBLE_SIZE,
        .units = units,
        .pbles = pbles,
    };

    for (unsigned i = 0; rights && i < units * QRDMA_PBLES_PER_UNIT; i++) {
        pbles[i] = (place(first + i) + offset) | rights;
    }
    g_assert_cmpint(region_umr_sliced(fixture->card, &umr, 1, NULL, NULL), ==,
                    QRDMA_STATUS_OK);
}

static void change_context(Fixture *fixture, uint64_t mask, QrdmaMkc mkc)
{
    TestUmr umr = { .key = KEY, .mask = mask, .mkc = mkc };

    g_assert_cmpint(region_umr(fixture->card, &umr), ==, QRDMA_STATUS_OK);
}

/* ----------------------------------------------------------------- windows */

/* Whole, to empty, to whole again: two windows, each of two maps. */
static void test_zap_and_load(void)
{
    Fixture fixture = fixture_new(RW);

    write_pages(&fixture, 0, 2, 0, 0);
    assert_windows(&fixture, 1, 1);
    write_pages(&fixture, 0, 2, 1ull << 30, RW);
    assert_windows(&fixture, 2, 2);
    card_free(fixture.card);
}

/* What is written again as it was is no change. */
static void test_no_change(void)
{
    Fixture fixture = fixture_new(RW);

    write_pages(&fixture, 0, 2, 0, RW);
    change_context(&fixture, QRDMA_UMR_MASK_PAGE_SIZE, fixture.mkc);
    g_assert_cmpuint(totals(&fixture).maps, ==, 0);
    g_assert_null(finding(&fixture, 0));
    card_free(fixture.card);
}

/* A page moves while the rest stays: old, then new, never both wrong. */
static void test_moved_at_once(void)
{
    Fixture fixture = fixture_new(RW);

    write_pages(&fixture, 8, 1, 1ull << 30, RW);
    assert_windows(&fixture, 1, 0);
    card_free(fixture.card);
}

/* Neither where it was nor where it is in the end. */
static void test_torn(void)
{
    Fixture fixture = fixture_new(RW);
    const QrdmaFinding *torn;

    write_pages(&fixture, 0, 1, 0, 0);
    write_pages(&fixture, 8, 1, 1ull << 31, RW);
    write_pages(&fixture, 8, 1, 1ull << 30, RW);
    g_assert_cmpuint(totals(&fixture).windows, ==, 0);
    write_pages(&fixture, 0, 1, 0, RW);
    g_assert_cmpuint(totals(&fixture).windows, ==, 1);
    g_assert_cmpuint(totals(&fixture).torn_bytes, ==, 8 * PAGE);
    torn = finding(&fixture, 0);
    g_assert_nonnull(torn);
    g_assert_cmpint(torn->kind, ==, QRDMA_FINDING_TORN);
    g_assert_cmphex(torn->key, ==, KEY);
    g_assert_cmphex(torn->address, ==, START + 8 * PAGE);
    g_assert_cmpuint(torn->length, ==, 8 * PAGE);
    g_assert_cmphex(torn->shown.address, ==, place(8) + (1ull << 31));
    g_assert_cmphex(torn->old_answer.address, ==, place(8));
    g_assert_cmphex(torn->new_answer.address, ==, place(8) + (1ull << 30));
    g_assert_cmpuint(torn->change, ==, 2);
    g_assert_cmpstr(torn->description, ==, "entries 8..15");
    g_assert_null(finding(&fixture, 1));
    card_free(fixture.card);
}

/* On its way to something, and then taken away: nothing is wrong with that. */
static void test_given_up(void)
{
    Fixture fixture = fixture_new(0);

    write_pages(&fixture, 0, 1, 0, RW);
    write_pages(&fixture, 0, 1, 0, 0);
    assert_windows(&fixture, 1, 1);
    card_free(fixture.card);
}

static void test_revoked(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaMkc mkc = { .flags = QRDMA_MKEY_FREE, .pd = 1 };
    QrdmaAccess access;

    change_context(&fixture, QRDMA_UMR_MASK_FREE | QRDMA_UMR_MASK_PD, mkc);
    assert_windows(&fixture, 1, 0);
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ, START,
                                  8, &access), ==, QRDMA_ACCESS_REFUSED);
    assert_windows(&fixture, 1, 0);
    card_free(fixture.card);
}

/* ------------------------------------------------------------------ rights */

static void test_rights_change(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaMkc mkc = fixture.mkc;

    mkc.flags &= ~QRDMA_MKEY_REMOTE_WRITE;
    change_context(&fixture, QRDMA_UMR_MASK_REMOTE_WRITE, mkc);
    assert_windows(&fixture, 1, 0);
    change_context(&fixture, QRDMA_UMR_MASK_REMOTE_WRITE, fixture.mkc);
    assert_windows(&fixture, 2, 0);
    card_free(fixture.card);
}

/* Read only before and after; but it could be written in between. */
static void test_widened(void)
{
    Fixture fixture = fixture_new(QRDMA_PBLE_READ);

    write_pages(&fixture, 0, 1, 0, 0);
    write_pages(&fixture, 8, 1, 0, RW);
    write_pages(&fixture, 8, 1, 0, QRDMA_PBLE_READ);
    write_pages(&fixture, 0, 1, 0, QRDMA_PBLE_READ);
    g_assert_cmpuint(totals(&fixture).widened_bytes, ==, 8 * PAGE);
    g_assert_cmpuint(totals(&fixture).torn_bytes, ==, 0);
    g_assert_cmpint(finding(&fixture, 0)->kind, ==, QRDMA_FINDING_WIDENED);
    card_free(fixture.card);
}

/* Another PD in between, while there was something to reach. */
static void test_scope(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaMkc mkc = { .pd = 3 };

    write_pages(&fixture, 0, 1, 0, 0);
    change_context(&fixture, QRDMA_UMR_MASK_PD, mkc);
    change_context(&fixture, QRDMA_UMR_MASK_PD, fixture.mkc);
    write_pages(&fixture, 0, 1, 0, RW);
    g_assert_cmpuint(totals(&fixture).widened_bytes, ==, PAGES * PAGE);
    card_free(fixture.card);
}

/* ---------------------------------------------------------------- accesses */

/* The CPU wrote to a live table, and told nobody. */
static void test_stray(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaAccess access;

    fill(&fixture, 3, 1, QRDMA_PBLE_READ);
    region_set_pble(fixture.card, &fixture.mkc, 3, place(40) | RW);
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ,
                                  START + 3 * PAGE, 8, &access), ==,
                    QRDMA_ACCESS_GRANTED);
    g_assert_cmpuint(totals(&fixture).stray_accesses, ==, 1);
    g_assert_cmpint(finding(&fixture, 0)->kind, ==,
                    QRDMA_FINDING_STRAY_ACCESS);
    g_assert_cmphex(finding(&fixture, 0)->shown.address, ==, place(40));
    card_must(fixture.card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, INDEX, NULL, 0);
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ,
                                  START + 3 * PAGE, 8, &access), ==,
                    QRDMA_ACCESS_GRANTED);
    g_assert_cmpuint(totals(&fixture).stray_accesses, ==, 1);
    card_free(fixture.card);
}

static void test_torn_access(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaAccess access;

    write_pages(&fixture, 0, 1, 0, 0);
    write_pages(&fixture, 8, 1, 1ull << 31, RW);
    g_assert_cmpint(region_access(fixture.card, KEY, QRDMA_REMOTE_READ,
                                  START + 8 * PAGE, 8, &access), ==,
                    QRDMA_ACCESS_GRANTED);
    /* Not known yet: this might be where it goes. */
    g_assert_cmpuint(totals(&fixture).torn_accesses, ==, 0);
    write_pages(&fixture, 8, 1, 1ull << 30, RW);
    write_pages(&fixture, 0, 1, 0, RW);
    g_assert_cmpuint(totals(&fixture).torn_accesses, ==, 1);
    card_free(fixture.card);
}

/* ----------------------------------------------------- the audit's own life */

static void test_registers(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaEngine *engine = fixture.card->engine;

    write_pages(&fixture, 0, 1, 0, 0);
    write_pages(&fixture, 8, 1, 1ull << 31, RW);
    write_pages(&fixture, 0, 2, 0, RW);
    g_assert_cmpuint(card_register(fixture.card, QRDMA_REG_AUDIT_FINDINGS), ==,
                     1);
    g_assert_cmpuint(qrdma_engine_register_read(engine,
                                                QRDMA_REG_AUDIT_TORN_BYTES, 8),
                     ==, 8 * PAGE);
    g_assert_cmphex(qrdma_engine_register_read(engine,
                                               QRDMA_REG_FINDING_SHOWN, 8),
                    ==, (place(8) + (1ull << 31)) | RW);
    g_assert_cmphex(card_register(fixture.card, QRDMA_REG_FINDING_KEY), ==,
                    KEY);
    qrdma_engine_register_write(engine, QRDMA_REG_AUDIT_SELECT, 1, 4);
    g_assert_cmphex(card_register(fixture.card, QRDMA_REG_FINDING_KIND), ==, 0);
    /* They are there for whoever comes after the driver's reset. */
    qrdma_engine_reset(engine);
    g_assert_cmpuint(card_register(fixture.card, QRDMA_REG_AUDIT_FINDINGS), ==,
                     1);
    qrdma_engine_register_write(engine, QRDMA_REG_AUDIT_CONTROL,
                                QRDMA_AUDIT_CLEAR, 4);
    g_assert_cmpuint(card_register(fixture.card, QRDMA_REG_AUDIT_FINDINGS), ==,
                     0);
    g_assert_cmpuint(totals(&fixture).windows, ==, 0);
    card_free(fixture.card);
}

static void test_watch(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaEngine *engine = fixture.card->engine;

    g_assert_false(qrdma_engine_audit_watch(engine, QRDMA_MAX_MKEYS));
    g_assert_true(qrdma_engine_audit_watch(engine, INDEX + 1));
    write_pages(&fixture, 0, 2, 0, 0);
    assert_windows(&fixture, 0, 0);
    g_assert_true(qrdma_engine_audit_watch(engine, INDEX));
    write_pages(&fixture, 0, 2, 0, RW);
    assert_windows(&fixture, 1, 1);
    card_free(fixture.card);
}

/*
 * Watched anew while a revocation waits for an access: that access is none
 * through a revoked key, for the revocation has not completed.
 */
static void test_watch_within_fence(void)
{
    Fixture fixture = fixture_new(RW);
    QrdmaEngine *engine = fixture.card->engine;
    TestUmr revoke = {
        .key = KEY, .mask = QRDMA_UMR_MASK_FREE, .mkc = fixture.mkc,
    };
    QrdmaAccessRequest request = {
        .key = KEY, .pd = REGION_PD, .qpn = REGION_QPN,
        .kind = QRDMA_LOCAL_WRITE, .address = START, .length = 8,
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    enum qrdma_status status;
    QrdmaAccess access;
    QrdmaUmr *umr;

    g_assert_cmpint(qrdma_access_begin(engine, &request, &access), ==,
                    QRDMA_ACCESS_GRANTED);
    revoke.mkc.flags |= QRDMA_MKEY_FREE;
    region_umr_wqe(fixture.card, &revoke, wqe);
    umr = qrdma_umr_new(engine, REGION_UMR_QPN, wqe);
    g_assert_cmpint(qrdma_umr_step(engine, umr, QRDMA_UMR_SLICE, &status), ==,
                    QRDMA_UMR_WAIT);
    g_assert_true(qrdma_engine_audit_watch(engine, INDEX));
    qrdma_audit_moving(engine, &request, &access);
    qrdma_access_end(engine, &access);
    g_assert_cmpint(qrdma_umr_step(engine, umr, QRDMA_UMR_SLICE, &status), ==,
                    QRDMA_UMR_DONE);
    qrdma_umr_free(engine, umr);
    g_assert_cmpuint(totals(&fixture).revoked_accesses, ==, 0);
    g_assert_null(finding(&fixture, 0));
    card_free(fixture.card);
}

/* A window that is open when the key goes, or the card is reset. */
static void test_ends(gconstpointer data)
{
    Fixture fixture = fixture_new(RW);

    write_pages(&fixture, 0, 1, 0, 0);
    if (data) {
        card_must(fixture.card, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0);
    } else {
        qrdma_engine_reset(fixture.card->engine);
    }
    assert_windows(&fixture, 1, 0);
    g_assert_cmpuint(fixture.card->engine->audit->notes, ==, 0);
    g_assert_cmpuint(fixture.card->engine->audit->entries, ==, 0);
    card_free(fixture.card);
}

/* A table that is larger than what is kept. */
static void test_too_large(void)
{
    QrdmaConfig config = card_default_config();
    Fixture fixture;

    config.audit = true;
    fixture.card = card_new(&config);
    card_add_direct_sd(fixture.card, 0);
    fixture.mkc = region_mkc(0, (QRDMA_AUDIT_MAX_ENTRIES + 1) * PAGE, 12, 2, 0);
    g_assert_cmpint(region_create(fixture.card, INDEX, &fixture.mkc), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpuint(totals(&fixture).unwatched, ==, 1);
    g_assert_null(qrdma_mkey_find(fixture.card->engine, INDEX)->watch);
    card_free(fixture.card);
}

static void test_off(void)
{
    TestCard *card = card_new(NULL);

    g_assert_null(card->engine->audit);
    g_assert_false(qrdma_engine_audit_watch(card->engine, 0));
    g_assert_null(qrdma_engine_audit_finding(card->engine, 0));
    qrdma_engine_audit_clear(card->engine);
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/audit/zap-and-load", test_zap_and_load);
    g_test_add_func("/audit/no-change", test_no_change);
    g_test_add_func("/audit/moved-at-once", test_moved_at_once);
    g_test_add_func("/audit/torn", test_torn);
    g_test_add_func("/audit/given-up", test_given_up);
    g_test_add_func("/audit/revoked", test_revoked);
    g_test_add_func("/audit/rights-change", test_rights_change);
    g_test_add_func("/audit/widened", test_widened);
    g_test_add_func("/audit/scope", test_scope);
    g_test_add_func("/audit/stray", test_stray);
    g_test_add_func("/audit/torn-access", test_torn_access);
    g_test_add_func("/audit/registers", test_registers);
    g_test_add_func("/audit/watch", test_watch);
    g_test_add_func("/audit/watch-within-fence", test_watch_within_fence);
    g_test_add_data_func("/audit/ends/destroy", "destroy", test_ends);
    g_test_add_data_func("/audit/ends/reset", NULL, test_ends);
    g_test_add_func("/audit/too-large", test_too_large);
    g_test_add_func("/audit/off", test_off);
    return g_test_run();
}
