/*
 * qrdma engine fuzzing: translation: tables and contexts from the input, then
 * accesses at every level, changes between them, and the audit over it all.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-objects.h"

/* Table memory of each key, in PBLEs; the leaves of a level 2 table in it. */
#define AREA 4096u
#define FIRST_LEAF 512u
#define MAX_BLOCKS 1024u

/* Accesses that have begun, and end later. */
#define MAX_HELD 4u

typedef struct Held {
    QrdmaAccessRequest request;
    QrdmaAccess access;
} Held;

typedef struct Accesses {
    Held held[MAX_HELD];
    unsigned count;
} Accesses;

/*
 * Pages of the arena, none after its neighbour, with rights in turn; some are
 * anything.
 */
static void fill(FuzzCard *fuzz, const QrdmaMkc *mkc)
{
    FuzzInput *input = fuzz->input;
    uint8_t first = fuzz_u8(input);
    uint8_t rights = fuzz_u8(input);

    for (uint64_t i = 0; i < mkc->capacity; i++) {
        uint64_t place = (first + 5 * i) << mkc->log_page_size;

        place %= FUZZ_ARENA_SIZE;
        region_set_pble(fuzz->card, mkc, i, (fuzz->arena + place) |
                        (rights >> 2 * (i % 4) & QRDMA_PBLE_PRESENT));
    }
    for (unsigned odd = fuzz_below(input, 4); odd; odd--) {
        region_set_pble(fuzz->card, mkc, fuzz_u16(input) % mkc->capacity,
                        fuzz_pble(fuzz));
    }
}

static void create_region(FuzzCard *fuzz, unsigned number)
{
    static const uint64_t starts[] = {
        0x10000000, 0x10000200, 0x7f0000000000, 0x7f0000000e00,
        0xfffffffffff00000, 0,
    };
    FuzzInput *input = fuzz->input;
    unsigned level = fuzz_below(input, 3);
    unsigned log_page_size = 12 + (fuzz_one_in(input, 3) ?
                                   fuzz_below(input, 9) : 0);
    uint64_t blocks = level ? 1 + fuzz_u16(input) % (MAX_BLOCKS - 1) : 1;
    uint64_t start = starts[number];
    uint64_t length = (blocks << log_page_size) -
                      (start & ((1ull << log_page_size) - 1));
    QrdmaMkc mkc = region_mkc(start, MIN(length, -start - 1), log_page_size,
                              level, level ? number * AREA : 0);
    struct qrdma_mkc wire;

    if (level == 0) {
        mkc.base = fuzz->arena | (fuzz_u8(input) & QRDMA_PBLE_PRESENT);
    } else if (level == 2) {
        region_set_leaves(fuzz->card, &mkc, number * AREA + FIRST_LEAF);
    }
    if (fuzz_one_in(input, 4)) {
        mkc.flags |= QRDMA_MKEY_ON_DEMAND;
    }
    if (level) {
        fill(fuzz, &mkc);
    }
    qrdma_mkc_encode(&mkc, &wire);
    card_must(fuzz->card, QRDMA_CMD_CREATE_MKEY, FUZZ_FIRST_MKEY + number,
              &wire, sizeof(wire));
}

/* ---------------------------------------------------------------- accesses */

/* Its data moves at the last moment, as that of a packet does. */
static void end_access(FuzzCard *fuzz, Accesses *accesses, unsigned which)
{
    Held *held = &accesses->held[which];

    if (which >= accesses->count) {
        return;
    }
    if (held->access.mkey->watch) {
        qrdma_audit_moving(fuzz->engine, &held->request, &held->access);
    }
    qrdma_access_end(fuzz->engine, &held->access);
    *held = accesses->held[--accesses->count];
}

/* What is granted is the beginning of what was asked for, in one page. */
static void check_granted(const QrdmaAccessRequest *request,
                          const QrdmaAccess *access)
{
    const QrdmaMkc *mkc = &access->mkey->mkc;
    uint64_t page_size = 1ull << mkc->log_page_size;
    uint64_t in_page = request->address & (page_size - 1);

    if (!access->length || access->length > request->length) {
        fuzz_fail("an access is granted more or less than it asked for");
    }
    if (mkc->translation == QRDMA_TRANSLATION_BLOCK_TABLE &&
        (access->length > page_size - in_page ||
         (access->bus_address & (page_size - 1)) != in_page)) {
        fuzz_fail("an access is not in one page");
    }
}

static QrdmaAccessRequest choose_access(FuzzCard *fuzz)
{
    FuzzInput *input = fuzz->input;
    QrdmaAccessRequest request = {
        .key = fuzz_key(fuzz),
        .pd = fuzz_one_in(input, 16) ? fuzz_u8(input) : REGION_PD,
        .qpn = fuzz_one_in(input, 16) ? fuzz_u8(input) : LINK_QPN_A,
        .kind = fuzz_below(input, QRDMA_REMOTE_ATOMIC + 1),
        .address = fuzz_region_address(fuzz),
        .length = fuzz_one_in(input, 8) ? fuzz_u64(input) : fuzz_u16(input),
    };

    if (request.kind == QRDMA_REMOTE_ATOMIC) {
        request.length = 8;
    }
    return request;
}

static void begin_access(FuzzCard *fuzz, Accesses *accesses)
{
    Held held = { .request = choose_access(fuzz) };

    if (accesses->count == MAX_HELD) {
        end_access(fuzz, accesses, 0);
    }
    switch (qrdma_access_begin(fuzz->engine, &held.request, &held.access)) {
    case QRDMA_ACCESS_GRANTED:
        check_granted(&held.request, &held.access);
        accesses->held[accesses->count++] = held;
        break;
    case QRDMA_ACCESS_FAULT:
        break;
    case QRDMA_ACCESS_REFUSED:
        if (held.access.error == QRDMA_ACCESS_OK) {
            fuzz_fail("an access is refused without a reason");
        }
    }
}

/* The work that this sets free is to be done before anything else. */
static void end_all(FuzzCard *fuzz, Accesses *accesses)
{
    while (accesses->count) {
        end_access(fuzz, accesses, 0);
    }
}

static void step(FuzzCard *fuzz, Accesses *accesses)
{
    switch (fuzz_below(fuzz->input, 12)) {
    case 0:
    case 1:
        begin_access(fuzz, accesses);
        break;
    case 2:
        end_access(fuzz, accesses, fuzz_below(fuzz->input, MAX_HELD));
        break;
    case 3:
    case 4:
        fuzz_post_send(fuzz);
        break;
    case 5:
        fuzz_post_receive(fuzz);
        break;
    case 6:
    case 7:
        fuzz_post_umr(fuzz);
        break;
    case 8:
        fuzz_table(fuzz);
        break;
    case 9:
        fuzz_mkey_command(fuzz);
        break;
    case 10:
        fuzz_run(fuzz);
        break;
    default:
        fuzz_any_step(fuzz);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput input = { data, size };
    FuzzCard *fuzz = fuzz_card_new(&input);
    Accesses accesses = { .count = 0 };

    for (unsigned i = 0; i < FUZZ_MKEYS; i++) {
        create_region(fuzz, i);
    }
    while (fuzz_more(fuzz)) {
        step(fuzz, &accesses);
    }
    end_all(fuzz, &accesses);
    fuzz_card_finish(fuzz);
    return 0;
}
