/*
 * qrdma engine tests: the command queue and its dispatcher.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "test-region.h"

#define NO_MEMORY 0x1000ull
#define LIMITS_SIZE sizeof(struct qrdma_device_limits)

static void doorbell(TestCard *card, uint32_t producer)
{
    qrdma_engine_register_write(card->engine, QRDMA_REG_COMMAND_DOORBELL,
                                producer, 4);
    fake_host_run(card->host);
}

/* Post a command as it is; its status. */
static enum qrdma_status post(TestCard *card,
                              const struct qrdma_command *command)
{
    uint64_t address = card_post_command(card, command);
    const struct qrdma_command *entry = card_pointer(card, address,
                                                     sizeof(*entry));

    fake_host_run(card->host);
    g_assert_cmpuint(entry->done, ==, 1);
    /* Only the result was written. */
    g_assert_cmpmem(entry, offsetof(struct qrdma_command, status), command,
                    offsetof(struct qrdma_command, status));
    g_assert_true(qrdma_is_zero(entry->reserved2, sizeof(entry->reserved2)));
    return qrdma_le16(entry->status);
}

/* ------------------------------------------------- what the entry may say */

typedef struct Bad {
    const char *name;
    struct qrdma_command command;       /* host byte order */
    enum qrdma_status status;
} Bad;

static const Bad bad[] = {
    { "opcode-unknown", { .opcode = 0x7f }, QRDMA_STATUS_BAD_OPCODE },
    { "opcode-gap", { .opcode = 0x04 }, QRDMA_STATUS_BAD_OPCODE },
    { "opcode-after-last", { .opcode = 0x41 }, QRDMA_STATUS_BAD_OPCODE },
    { "opcode-max", { .opcode = 0xffff }, QRDMA_STATUS_BAD_OPCODE },
    { "reserved-0", { .reserved0 = 1 }, QRDMA_STATUS_BAD_RESERVED },
    { "reserved-1", { .reserved1 = { [15] = 1 } }, QRDMA_STATUS_BAD_RESERVED },
    { "reserved-2", { .reserved2 = { [4] = 1 } }, QRDMA_STATUS_BAD_RESERVED },
    { "status", { .status = 1 }, QRDMA_STATUS_BAD_RESERVED },
    { "done", { .done = 1 }, QRDMA_STATUS_BAD_RESERVED },
    { "number-unused", { .number = 1 }, QRDMA_STATUS_BAD_NUMBER },
    { "input-none", { .opcode = QRDMA_CMD_ADD_SD },
      QRDMA_STATUS_BAD_INPUT_LENGTH },
    { "input-short", { .opcode = QRDMA_CMD_ADD_SD,
      .input = CARD_MEMORY_BASE, .input_length = sizeof(struct qrdma_sd) - 1 },
      QRDMA_STATUS_BAD_INPUT_LENGTH },
    { "input-long", { .opcode = QRDMA_CMD_ADD_SD,
      .input = CARD_MEMORY_BASE, .input_length = sizeof(struct qrdma_sd) + 1 },
      QRDMA_STATUS_BAD_INPUT_LENGTH },
    { "input-max", { .opcode = QRDMA_CMD_ADD_SD,
      .input = CARD_MEMORY_BASE, .input_length = UINT32_MAX },
      QRDMA_STATUS_BAD_INPUT_LENGTH },
    { "input-unwanted", { .input = CARD_MEMORY_BASE, .input_length = 8 },
      QRDMA_STATUS_BAD_INPUT_LENGTH },
    { "input-address-alone", { .input = CARD_MEMORY_BASE },
      QRDMA_STATUS_BAD_RESERVED },
    { "input-unaligned", { .opcode = QRDMA_CMD_ADD_SD,
      .input = CARD_MEMORY_BASE + 4, .input_length = sizeof(struct qrdma_sd) },
      QRDMA_STATUS_BAD_ALIGNMENT },
    { "input-no-memory", { .opcode = QRDMA_CMD_ADD_SD,
      .input = NO_MEMORY, .input_length = sizeof(struct qrdma_sd) },
      QRDMA_STATUS_DMA_ERROR },
    { "input-wraps", { .opcode = QRDMA_CMD_ADD_SD,
      .input = UINT64_MAX - 7, .input_length = sizeof(struct qrdma_sd) },
      QRDMA_STATUS_DMA_ERROR },
    { "output-none", { .opcode = QRDMA_CMD_QUERY_DEVICE },
      QRDMA_STATUS_BAD_OUTPUT_LENGTH },
    { "output-short", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = CARD_MEMORY_BASE, .output_length = LIMITS_SIZE - 1 },
      QRDMA_STATUS_BAD_OUTPUT_LENGTH },
    { "output-huge", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = CARD_MEMORY_BASE,
      .output_length = QRDMA_COMMAND_MAX_LENGTH + 1 },
      QRDMA_STATUS_BAD_OUTPUT_LENGTH },
    { "output-max", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = CARD_MEMORY_BASE, .output_length = UINT32_MAX },
      QRDMA_STATUS_BAD_OUTPUT_LENGTH },
    { "output-address-alone", { .output = CARD_MEMORY_BASE },
      QRDMA_STATUS_BAD_RESERVED },
    { "output-unaligned", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = CARD_MEMORY_BASE + 1, .output_length = LIMITS_SIZE },
      QRDMA_STATUS_BAD_ALIGNMENT },
    { "output-no-memory", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = NO_MEMORY, .output_length = LIMITS_SIZE },
      QRDMA_STATUS_DMA_ERROR },
    { "output-wraps", { .opcode = QRDMA_CMD_QUERY_DEVICE,
      .output = UINT64_MAX - 7, .output_length = LIMITS_SIZE },
      QRDMA_STATUS_DMA_ERROR },
};

static struct qrdma_command to_guest(struct qrdma_command command)
{
    command.opcode = qrdma_le16(command.opcode);
    command.number = qrdma_le32(command.number);
    command.input = qrdma_le64(command.input);
    command.output = qrdma_le64(command.output);
    command.input_length = qrdma_le32(command.input_length);
    command.output_length = qrdma_le32(command.output_length);
    return command;
}

static void test_bad(const void *data)
{
    const Bad *one = data;
    TestCard *card = card_new(NULL);
    struct qrdma_command command = to_guest(one->command);
    uint64_t address = card_post_command(card, &command);
    const struct qrdma_command *entry = card_pointer(card, address,
                                                     sizeof(*entry));

    fake_host_run(card->host);
    g_assert_cmpuint(entry->done, ==, 1);
    g_assert_cmpint(qrdma_le16(entry->status), ==, one->status);
    g_assert_cmpuint(card->engine->counters.commands, ==, 1);
    g_assert_cmpuint(card->engine->counters.commands_refused, ==, 1);
    g_assert_cmpuint(card->host->guest_errors, ==, 1);
    /* The card goes on. */
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    g_assert_cmpuint(card->engine->counters.commands, ==, 2);
    card_free(card);
}

/* Output may have more room than is needed; no more than needed is written. */
static void test_larger_output(void)
{
    TestCard *card = card_new(NULL);
    uint64_t buffer = card_alloc(card, QRDMA_COMMAND_MAX_LENGTH, 4096);
    uint8_t *bytes = card_pointer(card, buffer, QRDMA_COMMAND_MAX_LENGTH);
    struct qrdma_command command = to_guest((struct qrdma_command) {
        .opcode = QRDMA_CMD_QUERY_DEVICE,
        .output = buffer,
        .output_length = QRDMA_COMMAND_MAX_LENGTH,
    });

    memset(bytes, 0xee, QRDMA_COMMAND_MAX_LENGTH);
    g_assert_cmpint(post(card, &command), ==, QRDMA_STATUS_OK);
    for (unsigned i = LIMITS_SIZE; i < QRDMA_COMMAND_MAX_LENGTH; i++) {
        g_assert_cmphex(bytes[i], ==, 0xee);
    }
    card_free(card);
}

/* ---------------------------------------------------------------- the ring */

static void test_every_ring_size(void)
{
    for (unsigned log = 0; log <= QRDMA_COMMAND_LOG_SIZE_MAX; log++) {
        TestCard *card = card_new_disabled(NULL);
        QrdmaEngine *engine = card->engine;
        struct qrdma_command nop = { .token = 1 };

        qrdma_engine_register_write(engine, QRDMA_REG_COMMAND_RING,
                                    card->command_ring, 8);
        qrdma_engine_register_write(engine, QRDMA_REG_COMMAND_LOG_SIZE, log, 4);
        qrdma_engine_register_write(engine, QRDMA_REG_CONTROL,
                                    QRDMA_CONTROL_ENABLE, 4);
        card->command_size = 1u << log;
        for (unsigned i = 0; i < 3u << log; i++) {
            g_assert_cmpint(post(card, &nop), ==, QRDMA_STATUS_OK);
        }
        g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==,
                         3u << log);
        /* Nothing but the ring was written to, and no interrupt wanted. */
        g_assert_cmpuint(card->host->writes, ==, 3u << log);
        card_free(card);
    }
}

/* A full ring at once, and the counters around their end. */
static void test_full_ring(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_command nop = { 0 };
    unsigned interrupts = 0;

    card->engine->commands.producer = UINT32_MAX - 4;
    card->engine->commands.consumer = UINT32_MAX - 4;
    card->command_producer = UINT32_MAX - 4;
    for (unsigned i = 0; i < card->command_size; i++) {
        card_post_command(card, &nop);
    }
    fake_host_run(card->host);
    g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==,
                     card->command_producer);
    interrupts = card->host->interrupts[CARD_COMMAND_VECTOR];
    g_assert_cmpuint(interrupts, >, 0);
    g_assert_cmpuint(interrupts, <=, card->command_size);
    g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY);
    card_free(card);
}

/* cases.md 41, for commands. */
static void test_bad_producer(void)
{
    static const uint32_t ahead[] = { 17, 0xffff, UINT32_MAX, 0x80000000 };

    for (unsigned i = 0; i < G_N_ELEMENTS(ahead); i++) {
        TestCard *card = card_new(NULL);

        card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
        doorbell(card, card->command_producer + ahead[i]);
        g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==,
                        QRDMA_CARD_FATAL);
        g_assert_cmpuint(card_register(card, QRDMA_REG_ERROR), ==,
                         QRDMA_FATAL_COMMAND_PRODUCER);
        g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==,
                         1);
        doorbell(card, card->command_producer + 1);
        g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==,
                         1);
        card_free(card);
    }
}

static void test_doorbell_before_enable(void)
{
    TestCard *card = card_new_disabled(NULL);

    doorbell(card, 1);
    g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==, 0);
    card_enable(card);
    g_assert_cmpuint(card->host->reads, ==, 0);
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    card_free(card);
}

static void check_ring_failure(bool reads)
{
    TestCard *card = card_new(NULL);
    struct qrdma_command nop = { 0 };

    fake_host_refuse(card->host, card->command_ring, 4096, reads, !reads);
    card_post_command(card, &nop);
    fake_host_run(card->host);
    g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_FATAL);
    g_assert_cmpuint(card_register(card, QRDMA_REG_ERROR), ==,
                     QRDMA_FATAL_COMMAND_RING_DMA);
    g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==, 0);
    /* The driver that waits is woken, to look at the status. */
    g_assert_cmpuint(card->host->interrupts[CARD_COMMAND_VECTOR], ==, 1);
    card_free(card);
}

static void test_ring_unreadable(void)
{
    check_ring_failure(true);
}

static void test_ring_unwritable(void)
{
    check_ring_failure(false);
}

static void test_no_interrupt(void)
{
    TestCard *card = card_new(NULL);

    card->engine->commands.interrupt = false;
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    g_assert_cmpuint(card->host->interrupts[CARD_COMMAND_VECTOR], ==, 0);
    card_free(card);
}

/* ---------------------------------------------------------- small commands */

static void test_query_device(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_device_limits limits;

    g_assert_cmpint(card_command(card, QRDMA_CMD_QUERY_DEVICE, 0, NULL, 0,
                                 &limits, sizeof(limits)), ==, QRDMA_STATUS_OK);
    g_assert_cmphex(qrdma_le64(limits.capabilities), ==,
                    qrdma_engine_register_read(card->engine,
                                               QRDMA_REG_CAPABILITIES, 8));
    g_assert_cmphex(qrdma_le64(limits.page_size_bitmap), ==, 0x1fffffff000);
    g_assert_cmpuint(qrdma_le32(limits.max_mkeys), ==, 1u << 20);
    g_assert_cmpuint(qrdma_le32(limits.max_qps), >=, 4096);
    g_assert_cmpuint(qrdma_le32(limits.max_cqs), >=, 4096);
    g_assert_cmpuint(qrdma_le32(limits.max_eqs), ==, QRDMA_MAX_EQS);
    g_assert_cmpuint(qrdma_le32(limits.max_sds), ==, QRDMA_MAX_SD);
    g_assert_cmpuint(qrdma_le32(limits.max_pds), ==, 1u << 24);
    g_assert_cmpuint(qrdma_le32(limits.max_umr_table_write), ==, 65536);
    g_assert_true(qrdma_is_zero(limits.reserved, sizeof(limits.reserved)));
    card_free(card);
}

static void test_read_counters(void)
{
    TestCard *card = card_new(NULL);
    struct qrdma_counters counters;
    uint64_t *values = (uint64_t *)&card->engine->counters;
    const unsigned number = sizeof(QrdmaCounters) / sizeof(uint64_t);

    for (unsigned i = 0; i < number; i++) {
        values[i] = 1000 + i;
    }
    g_assert_cmpint(card_command(card, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                                 &counters, sizeof(counters)), ==,
                    QRDMA_STATUS_OK);
    /* The command counts itself. */
    g_assert_cmpuint(qrdma_le64(counters.commands), ==, 1001);
    for (unsigned i = 1; i < number; i++) {
        uint64_t value;

        memcpy(&value, (uint8_t *)&counters + i * sizeof(value), sizeof(value));
        g_assert_cmpuint(qrdma_le64(value), ==, 1000 + i);
    }
    g_assert_true(qrdma_is_zero(counters.reserved, sizeof(counters.reserved)));
    card_free(card);
}

static enum qrdma_status set_gid(TestCard *card, uint32_t index,
                                 const struct qrdma_gid *gid)
{
    return card_command(card, QRDMA_CMD_SET_GID, index, gid, sizeof(*gid), NULL,
                        0);
}

static void test_set_gid(void)
{
    static const struct qrdma_gid good = {
        .gid = { 0xfe, 0x80, [15] = 1 }, .mac = { 2, 3, 4, 5, 6, 7 },
        .vlan = 0xffff, .type = 1,
    };
    static const struct qrdma_gid none;
    TestCard *card = card_new(NULL);

    g_assert_cmpint(set_gid(card, QRDMA_MAX_GIDS, &good), ==,
                    QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(set_gid(card, UINT32_MAX, &good), ==,
                    QRDMA_STATUS_BAD_NUMBER);
    g_assert_false(qrdma_gid_is_local(card->engine, good.gid));
    g_assert_cmpint(set_gid(card, 31, &good), ==, QRDMA_STATUS_OK);
    g_assert_true(qrdma_gid_is_local(card->engine, good.gid));
    g_assert_cmpmem(qrdma_gid_get(card->engine, 31)->mac, 6, good.mac, 6);
    g_assert_null(qrdma_gid_get(card->engine, 30));
    g_assert_null(qrdma_gid_get(card->engine, QRDMA_MAX_GIDS));
    g_assert_null(qrdma_gid_get(card->engine, UINT32_MAX));
    g_assert_cmpint(set_gid(card, 31, &none), ==, QRDMA_STATUS_OK);
    g_assert_null(qrdma_gid_get(card->engine, 31));
    g_assert_false(qrdma_gid_is_local(card->engine, good.gid));
    card_free(card);
}

static void test_bad_gid(void)
{
    static const struct qrdma_gid good = {
        .gid = { 0xfe, 0x80, [15] = 1 }, .mac = { 2, 3, 4, 5, 6, 7 },
        .vlan = 0xffff, .type = 1,
    };
    TestCard *card = card_new(NULL);
    struct qrdma_gid gids[] = { good, good, good, good, good, good, good };
    enum qrdma_status expected[] = {
        QRDMA_STATUS_BAD_GID, QRDMA_STATUS_BAD_GID, QRDMA_STATUS_BAD_GID,
        QRDMA_STATUS_BAD_GID, QRDMA_STATUS_BAD_GID, QRDMA_STATUS_BAD_GID,
        QRDMA_STATUS_BAD_RESERVED,
    };

    gids[0].type = 0;
    gids[1].type = 2;
    gids[2].vlan = qrdma_le16(4095);
    memset(gids[3].gid, 0, sizeof(gids[3].gid));
    gids[4].gid[0] = 0xff;
    gids[5].mac[0] = 1;
    gids[6].reserved[6] = 1;
    g_assert_cmpint(set_gid(card, 0, &good), ==, QRDMA_STATUS_OK);
    for (unsigned i = 0; i < G_N_ELEMENTS(gids); i++) {
        g_assert_cmpint(set_gid(card, 0, &gids[i]), ==, expected[i]);
        g_assert_cmpmem(qrdma_gid_get(card->engine, 0)->gid, 16, good.gid, 16);
    }
    card_free(card);
}

/* Which commands are carried out in fatal error, where the ring is in order. */
static void test_fatal_state(void)
{
    TestCard *card = card_new(NULL);

    qrdma_engine_fatal(card->engine, QRDMA_FATAL_EQ_DMA);
    for (unsigned opcode = 0; opcode <= 0x41; opcode++) {
        struct qrdma_command command = { .opcode = qrdma_le16(opcode) };
        enum qrdma_status status = post(card, &command);

        switch (opcode) {
        case QRDMA_CMD_QUERY_DEVICE:
        case QRDMA_CMD_READ_COUNTERS:
        case QRDMA_CMD_QUERY_EQ:
        case QRDMA_CMD_QUERY_CQ:
        case QRDMA_CMD_QUERY_QP:
        case QRDMA_CMD_QUERY_MKEY:
            g_assert_cmpint(status, ==, QRDMA_STATUS_BAD_OUTPUT_LENGTH);
            break;
        default:
            if (strcmp(qrdma_command_name(opcode), "unknown") == 0) {
                g_assert_cmpint(status, ==, QRDMA_STATUS_BAD_OPCODE);
            } else {
                g_assert_cmpint(status, ==, QRDMA_STATUS_FATAL_STATE);
            }
        }
    }
    card_free(card);
}

/*
 * The ring fails after something else has: one try a doorbell, no busy loop,
 * and the first reason stays.
 */
static void ring_fails_in_fatal_state(bool reads, bool writes)
{
    TestCard *card = card_new(NULL);
    struct qrdma_command nop = { .opcode = qrdma_le16(QRDMA_CMD_NOP) };

    qrdma_engine_fatal(card->engine, QRDMA_FATAL_EQ_DMA);
    fake_host_refuse(card->host, card->command_ring, 4096, reads, writes);
    for (unsigned i = 0; i < 3; i++) {
        card_post_command(card, &nop);
        g_assert_true(fake_host_step(card->host));
        g_assert_false(fake_host_step(card->host));
    }
    g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==, 0);
    g_assert_cmpint(card_register(card, QRDMA_REG_ERROR), ==,
                    QRDMA_FATAL_EQ_DMA);
    fake_host_allow_all(card->host);
    g_assert_cmpint(post(card, &nop), ==, QRDMA_STATUS_FATAL_STATE);
    g_assert_cmpuint(card_register(card, QRDMA_REG_COMMAND_CONSUMER), ==, 4);
    card_free(card);
}

static void test_ring_unreadable_in_fatal_state(void)
{
    ring_fails_in_fatal_state(true, false);
}

static void test_ring_unwritable_in_fatal_state(void)
{
    ring_fails_in_fatal_state(false, true);
}

static void test_trace(void)
{
    TestCard *card = card_new(NULL);

    card->host->ops.trace_enabled = true;
    card_must(card, QRDMA_CMD_NOP, 0, NULL, 0);
    g_assert_cmpuint(card->host->traces->len, ==, 1);
    g_assert_cmpstr(g_ptr_array_index(card->host->traces, 0), ==,
                    "command: nop number 0x0 status 0");
    card_free(card);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *path = g_strdup_printf("/command/bad/%s", bad[i].name);

        g_test_add_data_func(path, &bad[i], test_bad);
    }
    g_test_add_func("/command/larger-output", test_larger_output);
    g_test_add_func("/command/every-ring-size", test_every_ring_size);
    g_test_add_func("/command/full-ring", test_full_ring);
    g_test_add_func("/command/bad-producer", test_bad_producer);
    g_test_add_func("/command/doorbell-before-enable",
                    test_doorbell_before_enable);
    g_test_add_func("/command/ring-unreadable", test_ring_unreadable);
    g_test_add_func("/command/ring-unwritable", test_ring_unwritable);
    g_test_add_func("/command/no-interrupt", test_no_interrupt);
    g_test_add_func("/command/query-device", test_query_device);
    g_test_add_func("/command/read-counters", test_read_counters);
    g_test_add_func("/command/set-gid", test_set_gid);
    g_test_add_func("/command/bad-gid", test_bad_gid);
    g_test_add_func("/command/fatal-state", test_fatal_state);
    g_test_add_func("/command/ring-unreadable-in-fatal-state",
                    test_ring_unreadable_in_fatal_state);
    g_test_add_func("/command/ring-unwritable-in-fatal-state",
                    test_ring_unwritable_in_fatal_state);
    g_test_add_func("/command/trace", test_trace);
    return g_test_run();
}
