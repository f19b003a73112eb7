/*
 * qrdma engine tests: a card in a fake host, and the least driver for it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <string.h>

#include "test-card.h"

#define PAGE 4096u
#define COMMAND_LOG_SIZE 4

QrdmaConfig card_default_config(void)
{
    return (QrdmaConfig) {
        .mac = { 0x02, 0x11, 0x22, 0x33, 0x44, 0x55 },
        .pble_cache = true,
    };
}

TestCard *card_new_disabled(const QrdmaConfig *config)
{
    QrdmaConfig default_config = card_default_config();
    TestCard *card = g_new0(TestCard, 1);

    card->host = fake_host_new();
    fake_host_add_memory(card->host, CARD_MEMORY_BASE, CARD_MEMORY_SIZE);
    card->next_free = CARD_MEMORY_BASE;
    card->engine = qrdma_engine_new(&card->host->ops, card->host,
                                    config ?: &default_config);
    card->host->engine = card->engine;
    card->command_ring = card_alloc(card, PAGE, PAGE);
    card->command_buffer = card_alloc(card, 2 * PAGE, PAGE);
    return card;
}

TestCard *card_new(const QrdmaConfig *config)
{
    TestCard *card = card_new_disabled(config);

    card_enable(card);
    return card;
}

void card_free(TestCard *card)
{
    qrdma_engine_free(card->engine);
    fake_host_free(card->host);
    g_free(card);
}

uint32_t card_register(TestCard *card, uint64_t offset)
{
    return qrdma_engine_register_read(card->engine, offset, 4);
}

static void write_register(TestCard *card, uint64_t offset, uint32_t value)
{
    qrdma_engine_register_write(card->engine, offset, value, 4);
}

void card_enable(TestCard *card)
{
    qrdma_engine_register_write(card->engine, QRDMA_REG_COMMAND_RING,
                                card->command_ring, 8);
    write_register(card, QRDMA_REG_COMMAND_LOG_SIZE, COMMAND_LOG_SIZE);
    write_register(card, QRDMA_REG_COMMAND_VECTOR,
                   CARD_COMMAND_VECTOR | QRDMA_COMMAND_VECTOR_ENABLE);
    write_register(card, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    card->command_size = 1u << COMMAND_LOG_SIZE;
    card->command_producer = 0;
    fake_host_run(card->host);
    g_assert_cmphex(card_register(card, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY);
}

uint64_t card_alloc(TestCard *card, uint64_t size, uint64_t alignment)
{
    uint64_t address = (card->next_free + alignment - 1) & -alignment;

    g_assert_cmpuint(address + size, <=, CARD_MEMORY_BASE + CARD_MEMORY_SIZE);
    card->next_free = address + size;
    return address;
}

void *card_pointer(TestCard *card, uint64_t address, uint64_t size)
{
    return fake_host_pointer(card->host, address, size);
}

void card_save(TestCard *card, QrdmaSaved saved[QRDMA_PARTS])
{
    char *error = NULL;

    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        saved[part] = (QrdmaSaved) { 0 };
        if (qrdma_engine_has_part(card->engine, part)) {
            g_assert_true(qrdma_engine_save(card->engine, part, &saved[part],
                                            &error));
        }
    }
}

void card_free_saved(QrdmaSaved saved[QRDMA_PARTS])
{
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        g_clear_pointer(&saved[part].bytes, g_free);
    }
}

static void assert_saves(TestCard *card, const QrdmaSaved saved[QRDMA_PARTS])
{
    QrdmaSaved again[QRDMA_PARTS];

    card_save(card, again);
    for (unsigned part = 0; part < QRDMA_PARTS; part++) {
        g_assert_cmpmem(saved[part].bytes, saved[part].length,
                        again[part].bytes, again[part].length);
    }
    card_free_saved(again);
}

void card_migrate(TestCard *card)
{
    QrdmaConfig config = card->engine->config;
    QrdmaSaved saved[QRDMA_PARTS];
    unsigned reads, writes;
    char *error = NULL;

    card_save(card, saved);
    assert_saves(card, saved);
    reads = card->host->reads;
    writes = card->host->writes;
    qrdma_engine_free(card->engine);
    card->engine = qrdma_engine_new(&card->host->ops, card->host, &config);
    card->host->engine = card->engine;
    if (!qrdma_engine_load(card->engine, saved, &error)) {
        g_error("%s", error);
    }
    g_assert_cmpuint(card->host->reads, ==, reads);
    g_assert_cmpuint(card->host->writes, ==, writes);
    assert_saves(card, saved);
    card_free_saved(saved);
    fake_host_tick(card->host, 0);
}

uint64_t card_post_command(TestCard *card, const struct qrdma_command *command)
{
    uint32_t slot = card->command_producer++ & (card->command_size - 1);
    uint64_t address = card->command_ring + slot * sizeof(*command);

    memcpy(card_pointer(card, address, sizeof(*command)), command,
           sizeof(*command));
    write_register(card, QRDMA_REG_COMMAND_DOORBELL, card->command_producer);
    return address;
}

enum qrdma_status card_command(TestCard *card, uint16_t opcode, uint32_t number,
                               const void *input, uint32_t input_length,
                               void *output, uint32_t output_length)
{
    uint64_t output_buffer = card->command_buffer + PAGE;
    struct qrdma_command command = {
        .opcode = qrdma_le16(opcode),
        .number = qrdma_le32(number),
        .input = qrdma_le64(input_length ? card->command_buffer : 0),
        .output = qrdma_le64(output_length ? output_buffer : 0),
        .input_length = qrdma_le32(input_length),
        .output_length = qrdma_le32(output_length),
    };
    struct qrdma_command *entry;
    uint64_t address;

    if (input_length) {
        memcpy(card_pointer(card, card->command_buffer, PAGE), input,
               input_length);
    }
    address = card_post_command(card, &command);
    entry = card_pointer(card, address, sizeof(*entry));
    fake_host_run(card->host);
    if (!entry->done) {
        fake_host_settle(card->host);
    }
    g_assert_cmpuint(entry->done, ==, 1);
    if (output_length && entry->status == QRDMA_STATUS_OK) {
        memcpy(output, card_pointer(card, output_buffer, PAGE), output_length);
    }
    return qrdma_le16(entry->status);
}

void card_must(TestCard *card, uint16_t opcode, uint32_t number,
               const void *input, uint32_t input_length)
{
    enum qrdma_status status = card_command(card, opcode, number, input,
                                            input_length, NULL, 0);

    if (status != QRDMA_STATUS_OK) {
        g_error("command 0x%02x number %u: status %d", opcode, number, status);
    }
}

uint64_t card_add_direct_sd(TestCard *card, uint32_t number)
{
    uint64_t address = card_alloc(card, 1u << QRDMA_SD_SHIFT, PAGE);
    struct qrdma_sd sd = {
        .type = qrdma_le32(QRDMA_SD_DIRECT),
        .address = qrdma_le64(address),
    };

    card_must(card, QRDMA_CMD_ADD_SD, number, &sd, sizeof(sd));
    return address;
}

void card_add_paged_sd(TestCard *card, uint32_t number)
{
    uint64_t block = card_alloc(card, 1u << QRDMA_SD_SHIFT, PAGE);
    uint64_t list = card_alloc(card, PAGE, PAGE);
    uint64_t *pages = card_pointer(card, list, PAGE);
    struct qrdma_sd sd = {
        .type = qrdma_le32(QRDMA_SD_PAGED),
        .address = qrdma_le64(list),
    };

    for (unsigned i = 0; i < QRDMA_SD_PAGES; i++) {
        /* 5 is odd: every page once, none after its neighbour. */
        pages[i] = qrdma_le64(block + (i * 5 % QRDMA_SD_PAGES) * PAGE);
    }
    card_must(card, QRDMA_CMD_ADD_SD, number, &sd, sizeof(sd));
}

uint64_t *card_pble(TestCard *card, uint64_t index)
{
    uint64_t address;

    g_assert_true(qrdma_hmc_bus_address(card->engine, index, &address, NULL));
    return card_pointer(card, address, sizeof(uint64_t));
}

void card_arm(TestCard *card, QrdmaFault fault)
{
    fault.at = fault.at ? fault.at : 1;
    fault.count = fault.count ? fault.count : 1;
    g_assert_cmpint(qrdma_engine_fault_arm(card->engine, &fault), ==,
                    QRDMA_FAULT_ARMED);
}

void card_refuse_umrs(TestCard *card, uint32_t at, uint32_t count)
{
    card_arm(card, (QrdmaFault) { QRDMA_FAULT_UMR, QRDMA_FAULT_FAIL, .at = at,
                                  .count = count });
}

unsigned card_faults(TestCard *card)
{
    QrdmaFault faults[QRDMA_MAX_FAULTS];

    return qrdma_engine_fault_list(card->engine, faults);
}
