/*
 * qrdma engine fuzzing: the stream of a migration.
 *
 * The first half of an input puts a card to work; its state is saved, spoilt as
 * the second half has it, and loaded. It is loaded, or refused with the name of
 * what is wrong; what is loaded unspoilt is saved as the same bytes. Either way
 * the card that has come of it works, is reset, and forgets nothing.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "fuzz-objects.h"

/* Bytes before one that is not zero that are worth spoiling as well. */
#define NEAR 4u

static void create_keys(FuzzCard *fuzz)
{
    for (unsigned i = 0; i < FUZZ_MKEYS; i++) {
        fuzz_mkey_command(fuzz);
    }
    fuzz_run(fuzz);
}

static void put_to_work(FuzzCard *fuzz)
{
    static void (*const steps[])(FuzzCard *fuzz) = {
        fuzz_any_step, fuzz_any_step, fuzz_run, fuzz_post_send, fuzz_post_send,
        fuzz_post_receive, fuzz_post_umr, fuzz_table, fuzz_mkey_command,
        fuzz_object_command,
    };
    FuzzInput *input = fuzz->input;
    unsigned count = fuzz_u8(input) % 64;

    while (count-- && fuzz_more(fuzz)) {
        steps[fuzz_below(input, G_N_ELEMENTS(steps))](fuzz);
    }
}

/* ----------------------------------------------------------------- spoiling */

/*
 * Most of a stream says that objects are not there. Where it says more is where
 * it is spoilt: the which-th byte that is not zero, or one near it.
 */
static size_t find_place(const QrdmaSaved *saved, uint16_t which,
                         unsigned before)
{
    const uint8_t *bytes = saved->bytes;
    size_t count = 0, i;

    for (i = 0; i < saved->length; i++) {
        count += bytes[i] != 0;
    }
    if (!count) {
        return 0;
    }
    which %= count;
    for (i = 0; which || !bytes[i]; i++) {
        which -= bytes[i] != 0;
    }
    return i < before ? 0 : i - before;
}

/* True if anything was changed. */
static bool spoil(FuzzInput *input, QrdmaSaved *saved)
{
    unsigned times = fuzz_below(input, 4);
    bool spoilt = false;

    while (times-- && saved->bytes) {
        uint16_t which = fuzz_u16(input);
        unsigned before = fuzz_below(input, NEAR);
        uint8_t change = fuzz_u8(input);
        uint8_t *bytes = saved->bytes;

        bytes[find_place(saved, which, before)] ^= change;
        spoilt |= change;
    }
    if (saved->bytes && fuzz_one_in(input, 16)) {
        saved->length -= MIN(saved->length - 1, fuzz_u16(input));
        spoilt = true;
    }
    return spoilt;
}

/* ------------------------------------------------------------------ loading */

static void check_same(TestCard *card, const QrdmaSaved saved[QRDMA_PARTS])
{
    QrdmaSaved again[QRDMA_PARTS];

    card_save(card, again);
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        if (again[part].length != saved[part].length ||
            (again[part].bytes && memcmp(again[part].bytes, saved[part].bytes,
                                         saved[part].length))) {
            fuzz_fail("what was loaded is saved as something else");
        }
    }
    card_free_saved(again);
}

/* Another card in the same place. */
static void replace_engine(FuzzCard *fuzz)
{
    qrdma_engine_free(fuzz->engine);
    fuzz->engine = qrdma_engine_new(&fuzz->host->ops, fuzz->host,
                                    &fuzz->config);
    fuzz->host->engine = fuzz->engine;
    fuzz->card->engine = fuzz->engine;
    fuzz->link->engine = fuzz->engine;
}

static void load_all(FuzzCard *fuzz, const QrdmaSaved saved[QRDMA_PARTS],
                     bool spoilt)
{
    char *error = NULL;

    replace_engine(fuzz);
    if (qrdma_engine_load(fuzz->engine, saved, &error)) {
        if (!spoilt) {
            check_same(fuzz->card, saved);
        }
        return;
    }
    if (!spoilt) {
        fuzz_fail(error);
    }
    if (!strchr(error, ':')) {
        fuzz_fail("an error that names nothing");
    }
    g_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FuzzInput input = { data, size };
    FuzzCard *fuzz = fuzz_card_new(&input);
    QrdmaSaved saved[QRDMA_PARTS];
    bool spoilt = false;

    create_keys(fuzz);
    put_to_work(fuzz);
    card_save(fuzz->card, saved);
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        spoilt |= spoil(&input, &saved[part]);
    }
    load_all(fuzz, saved, spoilt);
    card_free_saved(saved);
    if (!spoilt) {
        put_to_work(fuzz);
        fuzz_card_finish(fuzz);
        return 0;
    }
    /* It may hold what no guest can have made: let it run, no more. */
    fuzz_run_some(fuzz, 64);
    fake_host_tick(fuzz->host, 1000000);
    fuzz_run_some(fuzz, 64);
    qrdma_engine_reset(fuzz->engine);
    fuzz_card_free(fuzz);
    return 0;
}
