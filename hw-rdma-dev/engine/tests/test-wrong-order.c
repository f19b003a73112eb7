/*
 * qrdma engine tests: the five steps of a page-size change in a wrong order.
 *
 * The test's driver always takes the five steps rightly. Fault injection makes
 * the card drop one, swap two, or both; the audit has to find every order that
 * can tear, and to find nothing in the others. Each order is tried on a live
 * table, which still holds the old entries, and on an invalidated one, all of
 * whose entries are absent; that is what a driver has whose exporter moved the
 * buffer. Meanwhile accesses look at the region, to see whether traffic
 * notices.
 *
 * The rows it prints are those of the table in docs/audit.md.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-link.h"

#define MIB (1ull << 20)
#define PAGE 4096ull
#define LENGTH (32 * MIB)               /* one UMR a step */
#define START 0x7d0000000000ull
#define COVERING_LOG 25
#define SMALL_LOG 12
#define LARGE_LOG 21
#define X 8u                            /* at the covering size: a unit */
#define INDEX 9u
#define KEY REGION_KEY(INDEX)
#define FIRST_PBLE 0x8000u
#define FIRST_LEAF 0x9000u
#define STEPS 5
#define RW QRDMA_PBLE_PRESENT

/* Where the pages are: neither place is aligned to the covering size. */
#define SMALL_MEMORY 0x100000000ull
#define LARGE_MEMORY 0x200400000ull

typedef struct WrongOrder {
    const char *name;
    unsigned drop[2];           /* steps; 0: none */
    unsigned swap;              /* this step and the next; 0: none */
    bool live_tears;            /* from a live table */
    bool invalidated_tears;
} WrongOrder;

static const WrongOrder orders[] = {
    { "1 2 3 4 5", { 0 }, 0, false, false },
    { "2 3 4 5", { 1 }, 0, true, false },
    { "1 3 4 5", { 2 }, 0, true, true },
    { "1 2 4 5", { 3 }, 0, true, false },
    { "1 2 3 5", { 4 }, 0, true, true },
    { "1 2 3 4", { 5 }, 0, false, false },
    { "2 1 3 4 5", { 0 }, 1, true, false },
    { "1 3 2 4 5", { 0 }, 2, true, true },
    { "1 2 4 3 5", { 0 }, 3, true, false },
    { "1 2 3 5 4", { 0 }, 4, true, true },
    /* The naive order: the size, then the entries. */
    { "4 3 5", { 1, 2 }, 3, true, false },
};

typedef struct Direction {
    const char *name;
    unsigned old_log, new_log;
} Direction;

static const Direction directions[] = {
    { "4 KiB to 2 MiB", SMALL_LOG, LARGE_LOG },
    { "2 MiB to 4 KiB", LARGE_LOG, SMALL_LOG },
};

/* What accesses saw. */
typedef struct Seen {
    uint64_t right, absent, wrong, failed;
} Seen;

typedef struct Change {
    TestLink *link;
    const Direction *direction;
    QrdmaMkc mkc;
    Seen seen;
} Change;

/* Backwards, so that neighbours in the region are none in memory. */
static uint64_t place(unsigned log_page_size, uint64_t block)
{
    uint64_t blocks = LENGTH >> log_page_size;
    uint64_t memory = log_page_size == SMALL_LOG ? SMALL_MEMORY : LARGE_MEMORY;

    return memory + ((blocks - 1 - block) << log_page_size);
}

static uint64_t place_of_page(unsigned log_page_size, uint64_t page)
{
    uint64_t offset = page * PAGE;

    return place(log_page_size, offset >> log_page_size) +
           (offset & ((1ull << log_page_size) - 1));
}

/* Each page of the buffer begins with its number, from 1. */
static void stamp(Change *change, unsigned log_page_size)
{
    for (uint64_t page = 0; page < LENGTH / PAGE; page++) {
        uint64_t *word = card_pointer(change->link->card,
                                      place_of_page(log_page_size, page),
                                      sizeof(*word));

        *word = page + 1;
    }
}

static void look_at(Change *change, uint64_t page)
{
    TestCard *card = change->link->card;
    QrdmaAccess access;

    if (region_access(card, KEY, QRDMA_REMOTE_READ, START + page * PAGE,
                      sizeof(uint64_t), &access) == QRDMA_ACCESS_GRANTED) {
        FakeHost *host = change->link->host;
        uint64_t word = 0;

        /* What is not even the buffer's memory is wrong as well. */
        host->ops.dma_read(host, access.bus_address, &word, sizeof(word));
        if (word == page + 1) {
            change->seen.right++;
        } else {
            change->seen.wrong++;
        }
    } else if (access.error == QRDMA_ACCESS_NOT_PRESENT) {
        change->seen.absent++;
    } else {
        change->seen.failed++;
    }
}

/* Where most happens, and here and there. */
static void look(Change *change)
{
    for (uint64_t page = 0; page < 32; page++) {
        look_at(change, page);
        look_at(change, 32 + page * 255);
    }
}

static void umr(Change *change, const TestUmr *request)
{
    TestLink *link = change->link;
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];
    struct qrdma_cqe cqe;

    region_umr_wqe(link->card, request, wqe);
    link_put_send(link, &link->umr, wqe, sizeof(wqe));
    link_ring_send(link, &link->umr);
    while (!link_poll(link, &link->cq_umr, &cqe)) {
        g_assert_true(fake_host_step(link->host));
        look(change);
    }
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_SUCCESS);
}

static void write_entries(Change *change, uint64_t first, uint64_t count,
                          bool absent)
{
    unsigned log = change->direction->new_log;
    g_autofree uint64_t *pbles = g_new0(uint64_t, count);
    TestUmr request = {
        .key = KEY,
        .flags = QRDMA_UMR_TRANSLATION_OFFSET,
        .offset = first * sizeof(uint64_t),
        .units = count / QRDMA_PBLES_PER_UNIT,
        .pbles = pbles,
    };

    for (uint64_t i = 0; i < count && !absent; i++) {
        pbles[i] = place(log, first + i) | RW;
    }
    umr(change, &request);
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

static void five_steps(Change *change)
{
    uint64_t entries = LENGTH >> change->direction->new_log;

    write_entries(change, 0, X, true);
    set_page_size(change, COVERING_LOG);
    write_entries(change, X, entries - X, false);
    set_page_size(change, change->direction->new_log);
    write_entries(change, 0, X, false);
}

static void arm(Change *change, enum qrdma_fault_action action, unsigned at)
{
    card_arm(change->link->card, (QrdmaFault) {
        QRDMA_FAULT_UMR, action, .at = at, .index = INDEX,
    });
}

static void arm_order(Change *change, const WrongOrder *order)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(order->drop); i++) {
        if (order->drop[i]) {
            arm(change, QRDMA_FAULT_DROP, order->drop[i]);
        }
    }
    if (order->swap) {
        arm(change, QRDMA_FAULT_SWAP, order->swap);
    }
}

static void set_up_region(Change *change, bool live)
{
    TestCard *card = change->link->card;
    unsigned log = change->direction->old_log;

    /* The table is as large as the smaller page size wants it. */
    change->mkc = region_mkc(START, LENGTH, SMALL_LOG, 2, FIRST_PBLE);
    change->mkc.log_page_size = log;
    region_set_leaves(card, &change->mkc, FIRST_LEAF);
    for (uint64_t i = 0; i < LENGTH >> SMALL_LOG; i++) {
        bool present = live && i < LENGTH >> log;

        region_set_pble(card, &change->mkc, i,
                        present ? place(log, i) | RW : 0);
    }
    g_assert_cmpint(region_create(card, INDEX, &change->mkc), ==,
                    QRDMA_STATUS_OK);
}

static void change_init(Change *change, const Direction *direction, bool live)
{
    QrdmaConfig config = card_default_config();

    config.audit = true;
    *change = (Change) {
        .link = link_new(&config),
        .direction = direction,
    };
    link_add_umr(change->link);
    fake_host_add_memory(change->link->host, SMALL_MEMORY, LENGTH);
    fake_host_add_memory(change->link->host, LARGE_MEMORY, LENGTH);
    stamp(change, SMALL_LOG);
    stamp(change, LARGE_LOG);
    set_up_region(change, live);
}

/* One run of an order; a word for the table of docs/audit.md. */
static char *try_order(const WrongOrder *order, const Direction *direction,
                       bool live)
{
    bool tears = live ? order->live_tears : order->invalidated_tears;
    QrdmaAuditTotals totals;
    Change change;
    char *word;

    change_init(&change, direction, live);
    arm_order(&change, order);
    five_steps(&change);
    look(&change);
    totals = qrdma_engine_audit_totals(change.link->engine);
    g_test_message("%s, %s, %s: torn %" PRIu64 " bytes in %" PRIu64 " maps, "
                   "stale %" PRIu64 ", accesses torn %" PRIu64 "; right %"
                   PRIu64 " absent %" PRIu64 " wrong %" PRIu64 " failed %"
                   PRIu64, direction->name, order->name,
                   live ? "live" : "invalidated", totals.torn_bytes,
                   totals.maps, totals.stale_bytes, totals.torn_accesses,
                   change.seen.right, change.seen.absent, change.seen.wrong,
                   change.seen.failed);
    g_assert_cmpuint(totals.windows, >, 0);
    g_assert_cmpint(totals.torn_bytes > 0, ==, tears);
    g_assert_cmpuint(totals.widened_bytes + totals.stray_accesses +
                     totals.unjudged + totals.unwatched, ==, 0);
    g_assert_cmpint(qrdma_engine_audit_finding(change.link->engine, 0) != NULL,
                    ==, tears);
    if (!tears) {
        g_assert_cmpuint(totals.stale_bytes + totals.torn_accesses, ==, 0);
        g_assert_cmpuint(change.seen.wrong + change.seen.failed, ==, 0);
    }
    word = tears ? g_strdup_printf("torn, %s",
                                   change.seen.wrong ? "wrong data" :
                                   change.seen.failed ? "refused" : "not seen")
                 : g_strdup("-");
    link_free(change.link);
    return word;
}

static void test_order(gconstpointer data)
{
    const WrongOrder *order = data;

    for (unsigned i = 0; i < G_N_ELEMENTS(directions); i++) {
        g_autofree char *live = try_order(order, &directions[i], true);
        g_autofree char *invalidated = try_order(order, &directions[i], false);

        g_test_message("row | %s | %s | %s | %s |", directions[i].name,
                       order->name, live, invalidated);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(orders); i++) {
        g_autofree char *path = g_strdup_printf("/wrong-order/%s",
                                                orders[i].name);

        g_test_add_data_func(path, &orders[i], test_order);
    }
    return g_test_run();
}
