/*
 * qrdma engine tests: what is wrong in a saved state is refused by its name.
 *
 * That a card goes on in one that has loaded its state is seen in test-random;
 * in QEMU, in qrdma-migration-test.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <unistd.h>

#include "test-link.h"
#include "../audit-internal.h"
#include "../umr-internal.h"

#define ON_DEMAND_PAGE 2u

/*
 * A card with something of everything: keys at each level, a send and a UMR
 * under way, a suspended QP, faults armed, an open window of the audit.
 */
typedef struct Rich {
    TestLink *link;
    TestBuffer *from, *to, *absent;
    TestQp c, d;
    TestReader cq_c;
} Rich;

static void post_send(Rich *rich)
{
    QrdmaSegment into = link_segment(rich->to, 0, 3 * LINK_PAGE);
    TestSend send = {
        .opcode = QRDMA_SEND_OP_SEND,
        .flags = QRDMA_WQE_SIGNALED,
        .segments = 2,
        .segment = { link_segment(rich->from, 8, 100),
                     link_segment(rich->from, 4096, 2 * LINK_PAGE) },
    };

    link_post_receive(rich->link, &rich->link->b, 1, &into);
    link_post_send(rich->link, &rich->link->a, &send);
}

static void suspend(Rich *rich)
{
    TestSend write = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .segments = 1,
        .segment = { link_segment(rich->from, 0, 64) },
        .remote_address = rich->absent->address + ON_DEMAND_PAGE * LINK_PAGE,
        .remote_key = rich->absent->key,
    };

    link_post_send(rich->link, &rich->c, &write);
    fake_host_run(rich->link->host);
    g_assert_cmpint(qrdma_qp_find(rich->link->engine, rich->c.number)->wait,
                    ==, QRDMA_WAIT_FAULT);
}

/* A UMR that waits for the packet in flight, and so has its window open. */
static void start_umr(Rich *rich)
{
    uint64_t pbles[2 * QRDMA_PBLES_PER_UNIT] = { 0 };
    TestUmr umr = {
        .key = rich->to->key,
        .units = 2,
        .pbles = pbles,
    };
    uint8_t wqe[QRDMA_UMR_WQE_SIZE];

    region_umr_wqe(rich->link->card, &umr, wqe);
    link_put_send(rich->link, &rich->link->umr, wqe, sizeof(wqe));
    link_ring_send(rich->link, &rich->link->umr);
    fake_host_run(rich->link->host);
    g_assert_nonnull(qrdma_qp_find(rich->link->engine, LINK_UMR_QPN)->umr);
}

static void rich_set_up(Rich *rich)
{
    QrdmaConfig config = card_default_config();
    TestLink *link;

    config.audit = true;
    config.packet_latency = 1000;
    rich->link = link = link_new(&config);
    link_add_umr(link);
    rich->from = link_buffer(link, 2, 12, 0, 1024 * LINK_PAGE, 0);
    rich->to = link_buffer(link, 1, 12, 0, 64 * LINK_PAGE, 0);
    /* Its table was written when the audit had read it already. */
    card_must(link->card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, rich->to->index,
              NULL, 0);
    rich->absent = link_buffer(link, 1, 12, 0, 8 * LINK_PAGE,
                               QRDMA_MKEY_ON_DEMAND);
    link_buffer_set_present(link, rich->absent, ON_DEMAND_PAGE, false);
    link_make_cq(link, &rich->cq_c, 20, LINK_LOG_CQ_ENTRIES, LINK_PAGE_A, 0);
    link_make_qp(link, &rich->c, QRDMA_QP_RC, 0x40, LINK_PAGE_A, &rich->cq_c);
    link_make_qp(link, &rich->d, QRDMA_QP_RC, 0x41, LINK_PAGE_A, &rich->cq_c);
    link_connect(link, &rich->c, 0x41);
    link_connect(link, &rich->d, 0x40);
    suspend(rich);
    post_send(rich);
    fake_host_run(link->host);
    start_umr(rich);
    card_arm(link->card, (QrdmaFault) { QRDMA_FAULT_EVENT, QRDMA_FAULT_DROP,
                                        .at = 100 });
}

static void rich_tear_down(Rich *rich)
{
    link_buffer_free(rich->from);
    link_buffer_free(rich->to);
    link_buffer_free(rich->absent);
    link_free(rich->link);
}

/* ------------------------------------------------------------ out of range */

static QrdmaQp *qp_a(QrdmaEngine *engine)
{
    return qrdma_qp_find(engine, LINK_QPN_A);
}

static QrdmaUmr *umr_of(QrdmaEngine *engine)
{
    return qrdma_qp_find(engine, LINK_UMR_QPN)->umr;
}

static QrdmaAuditWatch *watch_of(QrdmaEngine *engine)
{
    return umr_of(engine)->mkey->watch;
}

/* What is wrong is put into a card, which saves it without a look. */
#define WRONG(name, field, value)                       \
    static void wrong_##name(QrdmaEngine *engine)       \
    {                                                   \
        field = value;                                  \
    }

WRONG(sticky, engine->registers.status, 0x80)
WRONG(error, engine->registers.error, 77)
WRONG(vector, engine->registers.command_vector, 32)
WRONG(command_consumer, engine->commands.consumer, 1000)
WRONG(command_waiting, engine->commands.waiting, true)
WRONG(gid, engine->gids[0].gid[0], 0xff)
WRONG(sd_type, engine->hmc.sds[0]->type, 9)
WRONG(sd_address, engine->hmc.sds[0]->address, 1)
WRONG(mkey_page_size, umr_of(engine)->mkey->mkc.log_page_size, 3)
WRONG(mkey_table, umr_of(engine)->mkey->mkc.pble_index, 0x40000)
WRONG(mkey_fencing, qrdma_mkey_next(engine, 0)->fencing, true)
WRONG(eq_vector, engine->queues->eqs[0]->vector, 32)
WRONG(eq_consumer, engine->queues->eqs[0]->consumer, 1u << 20)
WRONG(cq_page, engine->queues->cqs[20]->doorbell_page, 1024)
WRONG(cq_producer, engine->queues->cqs[20]->producer, 1u << 20)
WRONG(qp_type, qp_a(engine)->type, 9)
WRONG(qp_state, qp_a(engine)->state, 6)
WRONG(qp_pd, qp_a(engine)->pd, 1u << 24)
WRONG(qp_producer, qp_a(engine)->send.producer, 1000)
WRONG(qp_ring, qp_a(engine)->send.ring.log_stride, 20)
WRONG(qp_mtu, qp_a(engine)->attributes.path_mtu, 6)
WRONG(qp_timer, qp_a(engine)->attributes.min_rnr_timer, 32)
WRONG(message_opcode, qp_a(engine)->outgoing.request.opcode, 0x7f)
WRONG(message_done, qp_a(engine)->outgoing.done, 1u << 30)
WRONG(message_segment, qp_a(engine)->outgoing.cursor.segment, 3)
WRONG(message_offset, qp_a(engine)->outgoing.cursor.offset, 50)
WRONG(receive_taken, qrdma_qp_find(engine, LINK_QPN_B)->incoming.has_receive,
      false)
WRONG(packet_length, qp_a(engine)->packet.length, 0)
WRONG(packet_key, qp_a(engine)->packet.source.access.length, 1u << 20)
WRONG(fault_token, qrdma_qp_find(engine, 0x40)->fault_token, 0)
WRONG(wait, qp_a(engine)->wait, QRDMA_WAIT_UMR)
WRONG(umr_phase, umr_of(engine)->phase, 9)
WRONG(umr_order, umr_of(engine)->order[0], 1)
WRONG(umr_next, umr_of(engine)->next, 99)
WRONG(umr_place, umr_of(engine)->places[0].index, 3)
WRONG(umr_data, umr_of(engine)->data[0], ~0ull)
WRONG(umr_key, umr_of(engine)->key, 0x777700)
WRONG(fault_count, engine->faults->armed[0].count, 0)
WRONG(fault_target, engine->faults->armed[0].target, 7)
WRONG(watch_change, g_array_index(watch_of(engine)->window->pieces, AuditPiece,
                                  0).change, 1000)
WRONG(watch_length, g_array_index(watch_of(engine)->window->pieces, AuditPiece,
                                  0).length, UINT64_MAX)
WRONG(watch_context, watch_of(engine)->now.mkc.length, UINT64_MAX)

/* A stream may name a CQ that is not there beside one that is in error. */
static void wrong_receive_cq(QrdmaEngine *engine)
{
    static QrdmaCq absent = { .number = 4000 };

    qp_a(engine)->send.cq->error = true;
    qp_a(engine)->receive.cq = &absent;
}

/* The message has taken a receive WQE, and the queue has none. */
static void wrong_receive_empty(QrdmaEngine *engine)
{
    QrdmaQp *responder = qrdma_qp_find(engine, LINK_QPN_B);

    responder->receive.producer = responder->receive.consumer;
}

/* Where a CQ takes no CQEs, QPs do not work. */
static void wrong_cq_error(QrdmaEngine *engine)
{
    qp_a(engine)->send.cq->error = true;
}

typedef struct Wrong {
    const char *name;
    void (*put)(QrdmaEngine *engine);
    const char *error;          /* its beginning */
} Wrong;

static const Wrong wrongs[] = {
    { "registers/status", wrong_sticky, "card: registers.status: 0x80" },
    { "registers/error", wrong_error, "card: registers.error: 77" },
    { "registers/vector", wrong_vector, "card: commands.ring: " },
    { "commands/consumer", wrong_command_consumer,
      "card: commands.consumer: 1000" },
    { "commands/waiting", wrong_command_waiting, "card: commands.current: " },
    { "gid", wrong_gid, "card: gid[0]: SET_GID would refuse it" },
    { "sd/type", wrong_sd_type, "card: sd[0]: type 9" },
    { "sd/address", wrong_sd_address, "card: sd[0]: type " },
    { "mkey/page-size", wrong_mkey_page_size, "card: mkey[" },
    { "mkey/table", wrong_mkey_table, "card: mkey[" },
    { "mkey/fencing", wrong_mkey_fencing, "card: mkey[" },
    { "eq/vector", wrong_eq_vector, "card: eq[0].vector: 32" },
    { "eq/consumer", wrong_eq_consumer, "card: eq[0].consumer: 1048576" },
    { "cq/page", wrong_cq_page, "card: cq[20].doorbell_page: 1024" },
    { "cq/producer", wrong_cq_producer, "card: cq[20].consumer: " },
    { "qp/type", wrong_qp_type, "card: qp[16]: CREATE_QP would refuse it" },
    { "qp/state", wrong_qp_state, "card: qp[16].state: 6" },
    { "qp/pd", wrong_qp_pd, "card: qp[16]: CREATE_QP would refuse it" },
    { "qp/receive-cq", wrong_receive_cq,
      "card: qp[16]: CREATE_QP would refuse it" },
    { "qp/cq-in-error", wrong_cq_error, "card: qp[16].state: 3" },
    { "qp/producer", wrong_qp_producer, "card: qp[16].send.producer: 1000" },
    { "qp/ring", wrong_qp_ring, "card: qp[16].send.ring.description: " },
    { "qp/path-mtu", wrong_qp_mtu, "card: qp[16].path_mtu: 6" },
    { "qp/min-rnr-timer", wrong_qp_timer, "card: qp[16].min_rnr_timer: 32" },
    { "message/opcode", wrong_message_opcode, "card: qp[16].outgoing.wqe: " },
    { "message/done", wrong_message_done,
      "card: qp[16].outgoing.done: 1073741824" },
    { "message/segment", wrong_message_segment,
      "card: qp[16].outgoing.segment: 3" },
    { "message/offset", wrong_message_offset,
      "card: qp[16].outgoing.offset: 50 bytes before it" },
    { "message/receive", wrong_receive_taken,
      "card: qp[16].outgoing.receive.taken: " },
    { "message/receive-queue", wrong_receive_empty,
      "card: qp[16].outgoing.receive.taken: " },
    { "packet/length", wrong_packet_length, "card: qp[16].packet.length: 0" },
    { "packet/granted", wrong_packet_key,
      "card: qp[16].packet.source.length: 1048576" },
    { "page-fault/token", wrong_fault_token,
      "card: qp[64].page_fault.token: 0" },
    { "wait", wrong_wait, "card: qp[16].wait: there is nothing" },
    { "umr/phase", wrong_umr_phase, "card: qp[48].umr.phase: 9" },
    { "umr/order", wrong_umr_order, "card: qp[48].umr.order: " },
    { "umr/next", wrong_umr_next, "card: qp[48].umr.next: 99" },
    { "umr/place", wrong_umr_place, "card: qp[48].umr.place: " },
    { "umr/data", wrong_umr_data, "card: qp[48].umr.data: " },
    { "umr/key", wrong_umr_key, "card: qp[48].umr.key: there is no mkey" },
    { "fault/count", wrong_fault_count,
      "faults: faults.armed[0].fault: count must not be 0" },
    { "fault/target", wrong_fault_target,
      "faults: faults.armed[0].fault: no such target" },
    { "audit/change", wrong_watch_change, "audit: audit.watch[" },
    { "audit/length", wrong_watch_length, "audit: audit.watch[" },
    { "audit/context", wrong_watch_context, "audit: audit.watch[" },
};

/* A card that has refused a state is as after a reset, and works. */
static void assert_refused(Rich *rich, const QrdmaSaved saved[QRDMA_PARTS],
                           const char *expected)
{
    QrdmaConfig config = rich->link->engine->config;
    TestCard *other = card_new_disabled(&config);
    char *error = NULL;

    g_assert_false(qrdma_engine_load(other->engine, saved, &error));
    if (!g_str_has_prefix(error, expected)) {
        g_error("\"%s\" was expected: %s", expected, error);
    }
    g_free(error);
    card_enable(other);
    card_must(other, QRDMA_CMD_NOP, 0, NULL, 0);
    card_free(other);
}

/* The wrong card itself is not to be let run, or freed with its state. */
static void test_wrong(gconstpointer data)
{
    const Wrong *wrong = data;
    Rich rich;
    QrdmaSaved good[QRDMA_PARTS], bad[QRDMA_PARTS];
    char *error = NULL;

    rich_set_up(&rich);
    card_save(rich.link->card, good);
    if (g_test_subprocess()) {
        wrong->put(rich.link->engine);
        card_save(rich.link->card, bad);
        assert_refused(&rich, bad, wrong->error);
        _exit(0);
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
    g_test_trap_assert_passed();
    /* What was right is loaded. */
    g_assert_true(qrdma_engine_load(rich.link->engine, good, &error));
    card_free_saved(good);
    rich_tear_down(&rich);
}

/* --------------------------------------------------------------- any bytes */

/* Loaded, or refused by a name; then the card is reset. */
static void try_load(QrdmaEngine *engine, const QrdmaSaved saved[QRDMA_PARTS])
{
    char *error = NULL;

    if (!qrdma_engine_load(engine, saved, &error)) {
        g_assert_nonnull(strstr(error, ": "));
        g_free(error);
    }
}

static void for_each_part(void (*try)(QrdmaEngine *engine,
                                      QrdmaSaved saved[QRDMA_PARTS],
                                      QrdmaPart part))
{
    Rich rich;
    QrdmaSaved saved[QRDMA_PARTS];
    TestCard *other;
    QrdmaConfig config;

    rich_set_up(&rich);
    config = rich.link->engine->config;
    card_save(rich.link->card, saved);
    other = card_new_disabled(&config);
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        try(other->engine, saved, part);
    }
    card_free_saved(saved);
    card_free(other);
    rich_tear_down(&rich);
}

/* Not each length of a long one: a few thousand of them. */
static size_t stride(const QrdmaSaved *saved)
{
    return 1 + saved->length / 4000;
}

static void truncate_part(QrdmaEngine *engine, QrdmaSaved saved[QRDMA_PARTS],
                          QrdmaPart part)
{
    size_t whole = saved[part].length;

    for (size_t length = 1; length < whole; length += stride(&saved[part])) {
        char *error = NULL;

        saved[part].length = length;
        g_assert_false(qrdma_engine_load(engine, saved, &error));
        g_assert_nonnull(strstr(error, ": "));
        g_free(error);
    }
    saved[part].length = whole;
}

static void test_truncated(void)
{
    for_each_part(truncate_part);
}

static void change_part(QrdmaEngine *engine, QrdmaSaved saved[QRDMA_PARTS],
                        QrdmaPart part)
{
    uint8_t *bytes = saved[part].bytes;

    for (size_t i = 0; i < saved[part].length; i += stride(&saved[part])) {
        uint8_t was = bytes[i];

        bytes[i] ^= 1u << g_test_rand_int_range(0, 8);
        try_load(engine, saved);
        bytes[i] = was ^ 0xff;
        try_load(engine, saved);
        bytes[i] = was;
    }
}

static void test_changed(void)
{
    for_each_part(change_part);
}

static void append_byte(QrdmaEngine *engine, QrdmaSaved saved[QRDMA_PARTS],
                        QrdmaPart part)
{
    QrdmaSaved longer[QRDMA_PARTS];
    char *error = NULL;

    memcpy(longer, saved, sizeof(longer));
    longer[part].bytes = g_malloc0(saved[part].length + 1);
    memcpy(longer[part].bytes, saved[part].bytes, saved[part].length);
    longer[part].length++;
    g_assert_false(qrdma_engine_load(engine, longer, &error));
    g_assert_nonnull(strstr(error, ": 1 bytes too many"));
    g_free(error);
    g_free(longer[part].bytes);
}

static void test_too_long(void)
{
    for_each_part(append_byte);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(wrongs); i++) {
        g_autofree char *name = g_strdup_printf("/state/wrong/%s",
                                                wrongs[i].name);

        g_test_add_data_func(name, &wrongs[i], test_wrong);
    }
    g_test_add_func("/state/truncated", test_truncated);
    g_test_add_func("/state/changed", test_changed);
    g_test_add_func("/state/too-long", test_too_long);
    return g_test_run();
}
