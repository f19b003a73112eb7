/*
 * qrdma engine tests: the five steps of a page-size change, watched.
 *
 * The test plays the driver, and looks at every page of the region after every
 * table unit that becomes visible. A page may be where it was, where it will
 * be, or absent. To show that it can see a torn mapping, the test also does it
 * wrongly.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define KIB 1024ull
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define RW QRDMA_PBLE_PRESENT
#define PAGE 4096ull

#define INDEX 9u
#define KEY REGION_KEY(INDEX)
#define LAST_STEP 5

typedef struct Scenario {
    const char *name;
    uint64_t start, length;
    unsigned old_log, new_log;
    unsigned level;             /* at 4 KiB pages the table has its full size */
    uint64_t most;              /* X, as the design has it */
} Scenario;

static const Scenario scenarios[] = {
    { "64-mib-4k-2m", 0, 64 * MIB, 12, 21, 2, 8 },                 /* 1 */
    { "64-mib-2m-4k", 0, 64 * MIB, 21, 12, 2, 8 },
    { "8-mib-4k-2m", 0, 8 * MIB, 12, 21, 1, 8 },                   /* 1b */
    { "8-mib-2m-4k", 0, 8 * MIB, 21, 12, 1, 8 },
    { "offset-2m-4k", 0x1000, 6 * MIB + 4096, 21, 12, 2, 8 },      /* 1c */
    { "offset-4k-2m", 0x1000, 6 * MIB + 4096, 12, 21, 1, 8 },
    { "64k-8m", 0x7f0000234000, 20 * MIB + 0x567, 16, 23, 1, 8 },
    { "one-page", 0x7f0000000123, 100, 12, 21, 0, 1 },
};

/* What one look at all pages found. */
typedef struct Seen {
    uint64_t old, new, absent, torn;
} Seen;

typedef struct Change {
    TestCard *card;
    const Scenario *scenario;
    QrdmaMkc mkc;               /* location of table; see region_query() */
    bool aligned_places;        /* so that a wrong page size finds them good */
    uint64_t stride;            /* 1: look at all pages; see look() */
    uint64_t looks;
    Seen total;
} Change;

/*
 * Where a block lies: every block of each layout has a place of its own, far
 * from its neighbours, and aligned to 2 MiB or its page size.
 */
static uint64_t place(unsigned log_page_size, bool is_new, uint64_t block)
{
    uint64_t apart = 1ull << MAX(log_page_size, 21);

    return (is_new ? 1ull << 50 : 1ull << 45) + (block * 5 + 3) * apart;
}

static uint64_t expected(const Change *change, bool is_new, uint64_t address)
{
    const Scenario *scenario = change->scenario;
    unsigned log = is_new ? scenario->new_log : scenario->old_log;
    uint64_t block = qrdma_pble_block_of(scenario->start, log, address);

    return place(log, is_new, block) + (address & ((1ull << log) - 1));
}

static uint64_t entry(const Change *change, bool is_new, uint64_t block)
{
    const Scenario *scenario = change->scenario;
    unsigned log = is_new ? scenario->new_log : scenario->old_log;
    uint64_t blocks = qrdma_pble_blocks(scenario->start, scenario->length, log);

    return block < blocks ? place(log, is_new, block) | RW : 0;
}

static void look_at(Change *change, uint64_t address, uint64_t length)
{
    QrdmaAccess access;

    if (region_access(change->card, KEY, QRDMA_REMOTE_WRITE, address, length,
                      &access) != QRDMA_ACCESS_GRANTED) {
        if (access.error == QRDMA_ACCESS_NOT_PRESENT) {
            change->total.absent++;
        } else {
            change->total.torn++;
        }
    } else if (access.length != length) {
        change->total.torn++;
    } else if (access.bus_address == expected(change, false, address)) {
        change->total.old++;
    } else if (access.bus_address == expected(change, true, address)) {
        change->total.new++;
    } else {
        change->total.torn++;
    }
}

/*
 * At all pages, or at the first ones, where most happens, and at every
 * stride-th of the others, each time different ones.
 */
static void look(void *opaque)
{
    Change *change = opaque;
    uint64_t start = change->scenario->start;
    uint64_t end = start + change->scenario->length;
    uint64_t first = start / PAGE;

    for (uint64_t page = first; page * PAGE < end; page++) {
        uint64_t from = MAX(start, page * PAGE);

        if (page < first + 64 ||
            (page + change->looks) % change->stride == 0) {
            look_at(change, from, MIN(end, (page + 1) * PAGE) - from);
        }
    }
    change->looks++;
}

static Seen look_once(Change *change)
{
    change->total = (Seen) { 0 };
    look(change);
    return change->total;
}

static void umr(Change *change, const TestUmr *request)
{
    g_assert_cmpint(region_umr_sliced(change->card, request, 1, look, change),
                    ==, QRDMA_STATUS_OK);
}

/* Entries first..end-1, in whole units, by UMRs of the largest size. */
static void write_entries(Change *change, uint64_t first, uint64_t end,
                          bool absent)
{
    g_autofree uint64_t *pbles = g_malloc(QRDMA_UMR_MAX_TABLE_WRITE);
    const uint64_t most = QRDMA_UMR_MAX_TABLE_WRITE / sizeof(uint64_t);

    while (first < end) {
        uint64_t now = MIN(most, qrdma_pble_round_to_units(end - first));
        TestUmr request = {
            .key = KEY,
            .flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .offset = first * sizeof(uint64_t),
            .units = now / QRDMA_PBLES_PER_UNIT,
            .pbles = pbles,
        };

        for (uint64_t i = 0; i < now; i++) {
            pbles[i] = absent ? 0 : entry(change, true, first + i);
        }
        umr(change, &request);
        first += now;
    }
}

static void set_page_size(Change *change, unsigned log_page_size)
{
    TestUmr request = {
        .key = KEY,
        .mask = QRDMA_UMR_MASK_PAGE_SIZE,
        .mkc.log_page_size = log_page_size,
    };

    umr(change, &request);
}

/* The page size at which the region has the fewest entries. */
static unsigned largest_log(const Scenario *scenario)
{
    unsigned log = QRDMA_LOG_PAGE_SIZE_MIN;

    while (log < QRDMA_LOG_PAGE_SIZE_MAX &&
           qrdma_pble_blocks(scenario->start, scenario->length, log) > 1) {
        log++;
    }
    return log;
}

static void do_step(Change *change, unsigned step)
{
    const Scenario *scenario = change->scenario;
    unsigned largest = largest_log(scenario);
    uint64_t entries = qrdma_pble_blocks(scenario->start, scenario->length,
                                         scenario->new_log);
    uint64_t most = qrdma_pble_round_to_units(
        qrdma_pble_blocks(scenario->start, scenario->length, largest));

    most = MIN(most, entries);
    g_assert_cmpuint(most, ==, MIN(scenario->most, entries));
    switch (step) {
    case 1:
        write_entries(change, 0, most, true);
        break;
    case 2:
        set_page_size(change, largest);
        break;
    case 3:
        write_entries(change, most, entries, false);
        break;
    case 4:
        set_page_size(change, scenario->new_log);
        break;
    case 5:
        write_entries(change, 0, most, false);
        break;
    }
}

static Change change_new(const Scenario *scenario, uint64_t seed)
{
    QrdmaConfig config = card_default_config();
    unsigned smallest = MIN(scenario->old_log, scenario->new_log);
    uint64_t old_blocks = qrdma_pble_blocks(scenario->start, scenario->length,
                                            scenario->old_log);
    Change change = { .scenario = scenario, .stride = 1 };

    config.umr_order_seed = seed;
    config.audit = true;
    change.card = card_new(&config);
    card_add_paged_sd(change.card, 0);
    change.mkc = region_mkc(scenario->start, scenario->length,
                            scenario->level ? smallest : scenario->old_log,
                            scenario->level, scenario->level ? 64 : 0);
    change.mkc.log_page_size = scenario->old_log;
    if (scenario->level == 0) {
        change.mkc.base = entry(&change, false, 0);
    } else if (scenario->level == 2) {
        region_set_leaves(change.card, &change.mkc, 1024);
    }
    for (uint64_t i = 0; scenario->level && i < old_blocks; i++) {
        region_set_pble(change.card, &change.mkc, i, entry(&change, false, i));
    }
    g_assert_cmpint(region_create(change.card, INDEX, &change.mkc), ==,
                    QRDMA_STATUS_OK);
    return change;
}

static void assert_all(Change *change, bool is_new)
{
    Seen seen;

    change->stride = 1;
    seen = look_once(change);
    g_assert_cmpuint(seen.torn + seen.absent, ==, 0);
    g_assert_cmpuint(is_new ? seen.old : seen.new, ==, 0);
    g_assert_cmpuint(is_new ? seen.new : seen.old, >, 0);
}

/* Many slices with many pages: look at fewer of them. */
static void set_stride(Change *change)
{
    uint64_t pages = change->scenario->length / PAGE;

    change->stride = pages > 4096 ? 61 : 1;
}

/* The card's own audit comes to the same end as the looks at all pages. */
static void assert_audit(Change *change, bool torn)
{
    QrdmaAuditTotals totals = qrdma_engine_audit_totals(change->card->engine);

    g_assert_cmpint(totals.torn_bytes > 0, ==, torn);
    g_assert_cmpint(totals.torn_accesses > 0, ==, torn);
    g_assert_cmpuint(totals.widened_bytes + totals.stale_bytes +
                     totals.revoked_accesses + totals.stray_accesses +
                     totals.unwatched + totals.unjudged, ==, 0);
    g_assert_cmpint(qrdma_engine_audit_finding(change->card->engine, 0) != NULL,
                    ==, torn);
}

static void run_rightly(const Scenario *scenario, uint64_t seed)
{
    Change change = change_new(scenario, seed);

    assert_all(&change, false);
    for (unsigned step = 1; step <= LAST_STEP; step++) {
        Seen seen;

        set_stride(&change);
        do_step(&change, step);
        change.stride = 1;
        seen = look_once(&change);
        g_assert_cmpuint(seen.torn, ==, 0);
        if (step == 2 || step == 3) {
            g_assert_cmpuint(seen.old + seen.new, ==, 0);
        }
    }
    assert_all(&change, true);
    assert_audit(&change, false);
    card_free(change.card);
}

static void test_five_steps(const void *data)
{
    run_rightly(data, 0);
}

static void test_five_steps_any_order(const void *data)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        run_rightly(data, seed);
    }
}

/* Torn mappings seen while the given steps are taken. */
static uint64_t torn_by(const Scenario *scenario, const char *steps)
{
    Change change = change_new(scenario, 0);
    uint64_t torn;

    for (const char *step = steps; *step; step++) {
        set_stride(&change);
        do_step(&change, *step - '0');
    }
    change.stride = 1;
    look(&change);
    torn = change.total.torn;
    card_free(change.card);
    return torn;
}

/*
 * Every step skipped, and every two neighbours swapped, so far as it matters:
 * some orders are safe or only leave pages absent (5 skipped, 4 last).
 */
static void test_wrong_order_is_seen(void)
{
    static const char *const wrong[] = {
        "2345", /* nothing is absent when the page size changes */
        "1345", /* entries are loaded while they are reachable */
        "1245", /* old entries at the new size */
        "1235", /* new entries at the largest size */
        "2134", "21345", "13245", "12435", "12354",
        "4", "54", "45", "35", "345",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(wrong); i++) {
        uint64_t torn = torn_by(&scenarios[0], wrong[i]);

        g_test_message("steps %s: %" G_GUINT64_FORMAT " torn", wrong[i], torn);
        g_assert_cmpuint(torn, >, 0);
    }
    g_assert_cmpuint(torn_by(&scenarios[0], "12345"), ==, 0);
    g_assert_cmpuint(torn_by(&scenarios[0], "1234"), ==, 0);
    /* The other way round as well. */
    g_assert_cmpuint(torn_by(&scenarios[1], "2345"), >, 0);
    g_assert_cmpuint(torn_by(&scenarios[1], "1345"), >, 0);
    g_assert_cmpuint(torn_by(&scenarios[1], "12435"), >, 0);
    g_assert_cmpuint(torn_by(&scenarios[1], "12345"), ==, 0);
}

/* One UMR cannot do it: its table and its context show one after the other. */
static void test_single_umr_is_torn(void)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        Change change = change_new(&scenarios[2], seed);
        uint64_t pbles[QRDMA_PBLES_PER_UNIT];
        TestUmr request = {
            .key = KEY,
            .flags = QRDMA_UMR_INLINE,
            .mask = QRDMA_UMR_MASK_PAGE_SIZE,
            .mkc.log_page_size = 21,
            .units = 1,
            .pbles = pbles,
        };

        for (unsigned i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
            pbles[i] = entry(&change, true, i);
        }
        umr(&change, &request);
        g_assert_cmpuint(change.total.torn, >, 0);
        assert_all(&change, true);
        g_test_message("seed %" PRIu64, seed);
        assert_audit(&change, true);
        card_free(change.card);
    }
}

/* cases.md 1: a step that is refused leaves everything as it was before it. */
static void test_refused_step(void)
{
    for (unsigned bad = 1; bad <= LAST_STEP; bad++) {
        Change change = change_new(&scenarios[0], 0);
        TestUmr request = { .key = KEY };
        QrdmaMkc before, after;
        Seen seen, again;

        for (unsigned step = 1; step < bad; step++) {
            set_stride(&change);
            do_step(&change, step);
        }
        change.stride = 1;
        seen = look_once(&change);
        before = region_query(change.card, INDEX);
        card_refuse_umrs(change.card, 1, 1);
        g_assert_cmpint(region_umr(change.card, &request), ==,
                        QRDMA_STATUS_INJECTED);
        again = look_once(&change);
        after = region_query(change.card, INDEX);
        region_assert_same(&before, &after);
        g_assert_cmpmem(&seen, sizeof(seen), &again, sizeof(again));
        /* And the driver can go on from there. */
        for (unsigned step = bad; step <= LAST_STEP; step++) {
            set_stride(&change);
            do_step(&change, step);
        }
        g_assert_cmpuint(change.total.torn, ==, 0);
        assert_all(&change, true);
        card_free(change.card);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(scenarios); i++) {
        g_autofree char *right = g_strdup_printf("/page-size/five-steps/%s",
                                                 scenarios[i].name);
        g_autofree char *any = g_strdup_printf("/page-size/any-order/%s",
                                               scenarios[i].name);

        g_test_add_data_func(right, &scenarios[i], test_five_steps);
        g_test_add_data_func(any, &scenarios[i], test_five_steps_any_order);
    }
    g_test_add_func("/page-size/wrong-order-is-seen", test_wrong_order_is_seen);
    g_test_add_func("/page-size/single-umr-is-torn", test_single_umr_is_torn);
    g_test_add_func("/page-size/refused-step", test_refused_step);
    return g_test_run();
}
