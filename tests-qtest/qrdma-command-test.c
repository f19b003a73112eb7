/*
 * qrdma: commands, each opcode and its refusals.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-command"

/* An address where a PC of this size has no memory. */
#define NO_MEMORY 0x200000000000ull

static void test_query_device(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_device_limits limits;
    uint64_t sizes;

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_DEVICE, 0, NULL, 0,
                     &limits, sizeof(limits));

    sizes = le64_to_cpu(limits.page_size_bitmap);
    for (unsigned log = QRDMA_LOG_PAGE_SIZE_MIN; log <= 36; log++) {
        g_assert_true(sizes >> log & 1);
    }
    g_assert_cmphex(sizes & (QRDMA_PAGE - 1), ==, 0);
    g_assert_cmpuint(le32_to_cpu(limits.max_qps), >=, 4096);
    g_assert_cmpuint(le32_to_cpu(limits.max_cqs), >=, 4096);
    g_assert_cmpuint(le32_to_cpu(limits.max_mkeys), ==,
                     1u << QRDMA_LOG_MAX_MKEYS);
    g_assert_cmpuint(le32_to_cpu(limits.max_eqs), ==, QRDMA_MAX_EQS);
    g_assert_cmpuint(le32_to_cpu(limits.max_sds), ==, QRDMA_MAX_SD);
    g_assert_cmpuint(le32_to_cpu(limits.max_vectors), ==, QRDMA_MSIX_VECTORS);
    g_assert_cmpuint(le32_to_cpu(limits.doorbell_pages), ==,
                     QRDMA_DOORBELL_PAGES);
    g_assert_cmpuint(le32_to_cpu(limits.max_sge), ==, QRDMA_MAX_SGE);
    g_assert_cmphex(le64_to_cpu(limits.capabilities), ==,
                    qrdma_read64(q, QRDMA_REG_CAPABILITIES));
}

static void test_counters(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_counters before, after;

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                     &before, sizeof(before));
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_EQ, 5, NULL, 0,
                                  NULL, 0), ==, QRDMA_STATUS_NO_OBJECT);
    qrdma_command_ok(q, QRDMA_CMD_READ_COUNTERS, 0, NULL, 0,
                     &after, sizeof(after));

    g_assert_cmpuint(le64_to_cpu(after.commands_refused), ==,
                     le64_to_cpu(before.commands_refused) + 1);
    g_assert_cmpuint(le64_to_cpu(after.commands), >,
                     le64_to_cpu(before.commands));
}

/* The card writes status and done, and leaves the driver's fields alone. */
static void test_entry_kept(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_command command = {
        .opcode = cpu_to_le16(QRDMA_CMD_NOP),
        .token = cpu_to_le64(0x1122334455667788ull),
    };
    struct qrdma_command seen;

    qrdma_start(q);
    qrdma_command_post(q, &command);
    g_assert_cmpint(qrdma_command_wait(q), ==, QRDMA_STATUS_OK);

    qtest_memread(q->qts, q->command_ring, &seen, sizeof(seen));
    command.done = 1;
    g_assert_cmpmem(&seen, sizeof(seen), &command, sizeof(command));
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==, 1);
}

/* Three rings full of commands, one doorbell a ring. */
static void test_ring_wraps(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_command command = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };
    const uint32_t entries = 1u << QRDMA_COMMAND_LOG_SIZE_MAX;

    qrdma_start(q);
    for (uint32_t round = 1; round <= 3; round++) {
        for (uint32_t slot = 0; slot < entries; slot++) {
            qtest_memwrite(q->qts, q->command_ring + slot * sizeof(command),
                           &command, sizeof(command));
        }
        q->command_producer = round * entries;
        qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, q->command_producer);
        g_assert_cmpint(qrdma_command_wait(q), ==, QRDMA_STATUS_OK);
    }
    g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==,
                     3 * entries);
}

/* The smallest ring has one entry. */
static void test_smallest_ring(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
    qrdma_write64(q, QRDMA_REG_COMMAND_RING, q->command_ring);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    q->command_log_size = 0;
    q->command_producer = 0;

    for (int i = 0; i < 3; i++) {
        qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    }
}

/* Given a vector for commands, when one is done, it is raised. */
static void test_interrupt(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    const unsigned vector = 9;

    qrdma_start(q);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
    qrdma_write64(q, QRDMA_REG_COMMAND_RING, q->command_ring);
    qrdma_write32(q, QRDMA_REG_COMMAND_LOG_SIZE, q->command_log_size);
    qrdma_write32(q, QRDMA_REG_COMMAND_VECTOR,
                  QRDMA_COMMAND_VECTOR_ENABLE | vector);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    q->command_producer = 0;
    g_assert_false(qpci_msix_pending(&q->pci, vector));

    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    qrdma_settle(q);
    g_assert_true(qpci_msix_pending(&q->pci, vector));
}

/* ------------------------------------------------- what the entry may say */

static void test_bad_entries(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    uint64_t page;
    struct {
        const char *what;
        struct qrdma_command command;
        enum qrdma_status status;
    } bad[] = {
        { "unknown opcode", { .opcode = 0x7f }, QRDMA_STATUS_BAD_OPCODE },
        { "opcode 0xffff", { .opcode = 0xffff }, QRDMA_STATUS_BAD_OPCODE },
        { "reserved word", { .reserved0 = 1 }, QRDMA_STATUS_BAD_RESERVED },
        { "reserved byte", { .reserved1[15] = 1 },
          QRDMA_STATUS_BAD_RESERVED },
        { "input to NOP", { .input_length = 8 },
          QRDMA_STATUS_BAD_INPUT_LENGTH },
        { "huge input", { .input_length = UINT32_MAX },
          QRDMA_STATUS_BAD_INPUT_LENGTH },
        { "no input", { .opcode = QRDMA_CMD_ADD_SD },
          QRDMA_STATUS_BAD_INPUT_LENGTH },
        { "short input", { .opcode = QRDMA_CMD_ADD_SD, .input_length = 24 },
          QRDMA_STATUS_BAD_INPUT_LENGTH },
        { "long input", { .opcode = QRDMA_CMD_ADD_SD, .input_length = 40 },
          QRDMA_STATUS_BAD_INPUT_LENGTH },
        { "short output",
          { .opcode = QRDMA_CMD_QUERY_DEVICE,
            .output_length = sizeof(struct qrdma_device_limits) - 1 },
          QRDMA_STATUS_BAD_OUTPUT_LENGTH },
        { "huge output",
          { .opcode = QRDMA_CMD_QUERY_DEVICE,
            .output_length = QRDMA_COMMAND_MAX_LENGTH + 1 },
          QRDMA_STATUS_BAD_OUTPUT_LENGTH },
        { "misaligned input",
          { .opcode = QRDMA_CMD_ADD_SD, .input = 4,
            .input_length = sizeof(struct qrdma_sd) },
          QRDMA_STATUS_BAD_ALIGNMENT },
        { "misaligned output",
          { .opcode = QRDMA_CMD_QUERY_DEVICE, .output = 1,
            .output_length = sizeof(struct qrdma_device_limits) },
          QRDMA_STATUS_BAD_ALIGNMENT },
        { "input outside memory",
          { .opcode = QRDMA_CMD_ADD_SD, .input = NO_MEMORY,
            .input_length = sizeof(struct qrdma_sd) },
          QRDMA_STATUS_DMA_ERROR },
        { "input at the end of the address space",
          { .opcode = QRDMA_CMD_ADD_SD, .input = UINT64_MAX - 7,
            .input_length = sizeof(struct qrdma_sd) },
          QRDMA_STATUS_DMA_ERROR },
        { "output outside memory",
          { .opcode = QRDMA_CMD_QUERY_DEVICE, .output = NO_MEMORY,
            .output_length = sizeof(struct qrdma_device_limits) },
          QRDMA_STATUS_DMA_ERROR },
    };

    qrdma_start(q);
    page = q->command_input;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_command command = bad[i].command;

        /* Small addresses are offsets into a page that exists. */
        if (command.input_length && command.input < QRDMA_PAGE) {
            command.input += page;
        }
        if (command.output_length && command.output < QRDMA_PAGE) {
            command.output += page;
        }
        command.opcode = cpu_to_le16(command.opcode);
        command.input = cpu_to_le64(command.input);
        command.output = cpu_to_le64(command.output);
        command.input_length = cpu_to_le32(command.input_length);
        command.output_length = cpu_to_le32(command.output_length);

        g_test_message("%s", bad[i].what);
        qrdma_command_post(q, &command);
        g_assert_cmpint(qrdma_command_wait(q), ==, bad[i].status);
    }
}

/* ------------------------------------------------------------ the opcodes */

/* Given no object, queries and destroys say so; beyond the limit, likewise. */
static void test_no_object(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        enum qrdma_command_opcode opcode;
        uint32_t number;
        size_t output_length;
        enum qrdma_status status;
    } table[] = {
        { QRDMA_CMD_REMOVE_SD, 3, 0, QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_REMOVE_SD, QRDMA_MAX_SD, 0, QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_DESTROY_EQ, 3, 0, QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_EQ, QRDMA_MAX_EQS, 0, QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_QUERY_EQ, 3, sizeof(struct qrdma_eqc),
          QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_CQ, 3, 0, QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_CQ, 1 << QRDMA_LOG_MAX_CQS, 0,
          QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_QUERY_CQ, UINT32_MAX, sizeof(struct qrdma_cqc),
          QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_DESTROY_QP, 3, 0, QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_QP, 1 << QRDMA_LOG_MAX_QPS, 0,
          QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_QUERY_QP, 3, sizeof(struct qrdma_qpc),
          QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_MKEY, 3, 0, QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_DESTROY_MKEY, 0, 0, QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_DESTROY_MKEY, 1 << QRDMA_LOG_MAX_MKEYS, 0,
          QRDMA_STATUS_BAD_NUMBER },
        { QRDMA_CMD_QUERY_MKEY, 3, sizeof(struct qrdma_mkc),
          QRDMA_STATUS_NO_OBJECT },
        { QRDMA_CMD_INVALIDATE_TRANSLATIONS, 3, 0, QRDMA_STATUS_NO_OBJECT },
    };
    QRdma *q = obj;
    uint8_t output[256];

    qrdma_start(q);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        g_test_message("opcode 0x%x number %u", table[i].opcode,
                       table[i].number);
        g_assert_cmpint(qrdma_command(q, table[i].opcode, table[i].number,
                                      NULL, 0, output,
                                      table[i].output_length),
                        ==, table[i].status);
    }
}

static enum qrdma_status add_sd(QRdma *q, uint32_t index, uint32_t type,
                                uint64_t address)
{
    struct qrdma_sd sd = {
        .type = cpu_to_le32(type),
        .address = cpu_to_le64(address),
    };

    return qrdma_command(q, QRDMA_CMD_ADD_SD, index, &sd, sizeof(sd),
                         NULL, 0);
}

static void test_sd(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    uint64_t memory;

    qrdma_start(q);
    memory = qrdma_alloc(q, 1 << QRDMA_SD_SHIFT);

    g_assert_cmpint(add_sd(q, 0, 0, memory), ==, QRDMA_STATUS_BAD_SD);
    g_assert_cmpint(add_sd(q, 0, 3, memory), ==, QRDMA_STATUS_BAD_SD);
    g_assert_cmpint(add_sd(q, 0, QRDMA_SD_DIRECT, memory + 8), ==,
                    QRDMA_STATUS_BAD_ALIGNMENT);
    g_assert_cmpint(add_sd(q, QRDMA_MAX_SD, QRDMA_SD_DIRECT, memory), ==,
                    QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(add_sd(q, 0, QRDMA_SD_PAGED, NO_MEMORY), ==,
                    QRDMA_STATUS_DMA_ERROR);

    g_assert_cmpint(add_sd(q, 0, QRDMA_SD_DIRECT, memory), ==,
                    QRDMA_STATUS_OK);
    g_assert_cmpint(add_sd(q, 0, QRDMA_SD_DIRECT, memory), ==,
                    QRDMA_STATUS_IN_USE);
    qrdma_command_ok(q, QRDMA_CMD_REMOVE_SD, 0, NULL, 0, NULL, 0);
    g_assert_cmpint(add_sd(q, 0, QRDMA_SD_DIRECT, memory), ==,
                    QRDMA_STATUS_OK);
}

static void test_gid(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_gid gid = {
        .gid = { 0xfe, 0x80 }, .mac = { 0x52 }, .type = 1,
        .vlan = cpu_to_le16(0xffff),
    };
    struct qrdma_gid none = { 0 };

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_SET_GID, QRDMA_MAX_GIDS - 1,
                     &gid, sizeof(gid), NULL, 0);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_SET_GID, QRDMA_MAX_GIDS,
                                  &gid, sizeof(gid), NULL, 0), ==,
                    QRDMA_STATUS_BAD_NUMBER);
    qrdma_command_ok(q, QRDMA_CMD_SET_GID, QRDMA_MAX_GIDS - 1,
                     &none, sizeof(none), NULL, 0);
    gid.type = 2;
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_SET_GID, 0,
                                  &gid, sizeof(gid), NULL, 0), ==,
                    QRDMA_STATUS_BAD_GID);
}

static void test_eq(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaEq eq;
    struct qrdma_eqc eqc, query;

    qrdma_start(q);
    qrdma_eq_create(q, &eq, 5, 4, 3);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_EQ, 5, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmpuint(le32_to_cpu(query.vector), ==, 3);
    g_assert_cmphex(le64_to_cpu(query.ring.base), ==, eq.ring.address);

    eqc = (struct qrdma_eqc) { .vector = cpu_to_le32(7) };
    qrdma_command_ok(q, QRDMA_CMD_MODIFY_EQ, 5, &eqc, sizeof(eqc), NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_EQ, 5, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmpuint(le32_to_cpu(query.vector), ==, 7);

    eqc.vector = cpu_to_le32(QRDMA_MSIX_VECTORS);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_MODIFY_EQ, 5, &eqc,
                                  sizeof(eqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_VECTOR);
    eqc = (struct qrdma_eqc) { .ring = qrdma_ring_describe(&eq.ring) };
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_EQ, 5, &eqc,
                                  sizeof(eqc), NULL, 0), ==,
                    QRDMA_STATUS_IN_USE);
    eqc.vector = cpu_to_le32(UINT32_MAX);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_EQ, 6, &eqc,
                                  sizeof(eqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_VECTOR);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_EQ, 5, NULL, 0, NULL, 0);
}

static void test_cq(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaEq async, eq;
    QRdmaCq cq = { .page = 9 };
    struct qrdma_cqc cqc, query;

    qrdma_start(q);
    qrdma_eq_create(q, &async, QRDMA_ASYNC_EQN, 4, 0);
    qrdma_eq_create(q, &eq, 1, 4, 0);
    qrdma_cq_create(q, &cq, 77, 4, QRDMA_ASYNC_EQN);

    cqc = (struct qrdma_cqc) { .eqn = cpu_to_le32(1) };
    qrdma_command_ok(q, QRDMA_CMD_MODIFY_CQ, 77, &cqc, sizeof(cqc), NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_QUERY_CQ, 77, NULL, 0,
                     &query, sizeof(query));
    g_assert_cmpuint(le32_to_cpu(query.eqn), ==, 1);
    g_assert_cmpuint(le32_to_cpu(query.doorbell_page), ==, 9);

    /* The EQ cannot go before the CQ that uses it. */
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_EQ, 1, NULL, 0,
                                  NULL, 0), ==, QRDMA_STATUS_IN_USE);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_CQ, 77, NULL, 0, NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_EQ, 1, NULL, 0, NULL, 0);
}

static void test_cq_refusals(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaEq async;
    QRdmaRing ring;
    struct qrdma_cqc good;
    struct {
        const char *what;
        uint32_t number, eqn, page, consumer;
        enum qrdma_status status;
    } table[] = {
        { "EQ that is not there", 1, 9, 0, 0, QRDMA_STATUS_BAD_EQN },
        { "EQ beyond the limit", 1, UINT32_MAX, 0, 0, QRDMA_STATUS_BAD_EQN },
        { "page", 1, 0, QRDMA_DOORBELL_PAGES, 0,
          QRDMA_STATUS_BAD_DOORBELL_PAGE },
        { "number", 1 << QRDMA_LOG_MAX_CQS, 0, 0, 0,
          QRDMA_STATUS_BAD_NUMBER },
        { "consumer", 1, 0, 0, 1, QRDMA_STATUS_BAD_RESERVED },
    };

    qrdma_start(q);
    qrdma_eq_create(q, &async, QRDMA_ASYNC_EQN, 4, 0);
    qrdma_ring_alloc(q, &ring, 4, QRDMA_CQE_LOG_SIZE);
    good = (struct qrdma_cqc) { .ring = qrdma_ring_describe(&ring) };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct qrdma_cqc cqc = good;

        cqc.eqn = cpu_to_le32(table[i].eqn);
        cqc.doorbell_page = cpu_to_le32(table[i].page);
        cqc.consumer = cpu_to_le32(table[i].consumer);
        g_test_message("%s", table[i].what);
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, table[i].number,
                                      &cqc, sizeof(cqc), NULL, 0), ==,
                        table[i].status);
    }
}

/* Asynchronous events need a place to go before anything can raise one. */
static void test_async_eq_first(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaEq eq;
    QRdmaRing ring;
    struct qrdma_cqc cqc;

    qrdma_start(q);
    qrdma_eq_create(q, &eq, 1, 4, 0);
    qrdma_ring_alloc(q, &ring, 4, QRDMA_CQE_LOG_SIZE);
    cqc = (struct qrdma_cqc) {
        .ring = qrdma_ring_describe(&ring),
        .eqn = cpu_to_le32(1),
    };
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_CQ, 0, &cqc,
                                  sizeof(cqc), NULL, 0), ==,
                    QRDMA_STATUS_BAD_EQN);
}

static void test_qp(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_qpc qpc;

    qrdma_bench_init(&bench, q);
    qpc = qrdma_qp_query(q, bench.a.number);
    g_assert_cmpint(qpc.state, ==, QRDMA_QP_RTS);
    g_assert_cmpint(qpc.type, ==, QRDMA_QP_RC);
    g_assert_cmpuint(le32_to_cpu(qpc.remote_qpn), ==, bench.b.number);
    g_assert_cmpuint(le32_to_cpu(qpc.pd), ==, QRDMA_TEST_PD);

    /* The CQ cannot go before the QP that uses it. */
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_DESTROY_CQ, bench.cq_a.number,
                                  NULL, 0, NULL, 0), ==, QRDMA_STATUS_IN_USE);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_QP, bench.a.number, NULL, 0,
                     NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_DESTROY_CQ, bench.cq_a.number, NULL, 0,
                     NULL, 0);
}

static void test_qp_refusals(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_qpc good;
    struct {
        const char *what;
        uint32_t number;
        size_t offset;          /* of a 32-bit field to overwrite */
        uint32_t value;
        enum qrdma_status status;
    } table[] = {
        { "QP 0", 0, 0x04, QRDMA_TEST_PD, QRDMA_STATUS_BAD_NUMBER },
        { "QP 1", 1, 0x04, QRDMA_TEST_PD, QRDMA_STATUS_BAD_NUMBER },
        { "number", 1 << QRDMA_LOG_MAX_QPS, 0x04, QRDMA_TEST_PD,
          QRDMA_STATUS_BAD_NUMBER },
        { "number in use", 10, 0x04, QRDMA_TEST_PD, QRDMA_STATUS_IN_USE },
        { "type", 99, 0x00, 3, QRDMA_STATUS_BAD_QP_TYPE },
        { "PD", 99, 0x04, QRDMA_MAX_PD + 1, QRDMA_STATUS_BAD_PD },
        { "send CQ", 99, 0x08, 999, QRDMA_STATUS_BAD_CQN },
        { "receive CQ", 99, 0x0c, UINT32_MAX, QRDMA_STATUS_BAD_CQN },
        { "page", 99, 0x10, QRDMA_DOORBELL_PAGES,
          QRDMA_STATUS_BAD_DOORBELL_PAGE },
    };

    qrdma_bench_init(&bench, q);
    good = qrdma_qp_context(&bench.a);
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        struct qrdma_qpc qpc = good;
        uint32_t value = cpu_to_le32(table[i].value);

        memcpy((uint8_t *)&qpc + table[i].offset, &value, sizeof(value));
        g_test_message("%s", table[i].what);
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_CREATE_QP, table[i].number,
                                      &qpc, sizeof(qpc), NULL, 0), ==,
                        table[i].status);
    }
}

/* Changes of state that the state machine does not have. */
static void test_qp_transitions(void *obj, void *data, QGuestAllocator *alloc)
{
    static const enum qrdma_qp_state forbidden[] = {
        QRDMA_QP_RTR, QRDMA_QP_RTS, QRDMA_QP_SQD, 6, 255,
    };
    QRdma *q = obj;
    QRdmaBench bench;

    qrdma_bench_init(&bench, q);
    qrdma_qp_to(q, &bench.a, QRDMA_QP_RESET);
    for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
        struct qrdma_qpc context = { .state = forbidden[i] };

        g_assert_cmpint(qrdma_qp_modify(q, bench.a.number,
                                        QRDMA_QP_MASK_STATE, &context), ==,
                        QRDMA_STATUS_BAD_TRANSITION);
        g_assert_cmpint(qrdma_qp_query(q, bench.a.number).state, ==,
                        QRDMA_QP_RESET);
    }
}

static void test_qp_bad_mask(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_qpc context = { 0 };

    qrdma_bench_init(&bench, q);
    g_assert_cmpint(qrdma_qp_modify(q, bench.a.number, 1ull << 63, &context),
                    ==, QRDMA_STATUS_BAD_MASK);
}

static void test_invalidate(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(5, 1);

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_CREATE_MKEY, 5, &mkc, sizeof(mkc), NULL, 0);
    qrdma_command_ok(q, QRDMA_CMD_INVALIDATE_TRANSLATIONS, 5, NULL, 0,
                     NULL, 0);
}

/* Given no page fault, there is none to resume. */
static void test_resume_without_fault(void *obj, void *data,
                                      QGuestAllocator *alloc)
{
    QRdma *q = obj;
    QRdmaBench bench;
    struct qrdma_resume resume = { .token = cpu_to_le32(1) };

    qrdma_bench_init(&bench, q);
    g_assert_cmpint(qrdma_command(q, QRDMA_CMD_RESUME_PAGE_FAULT,
                                  bench.a.number, &resume, sizeof(resume),
                                  NULL, 0), ==, QRDMA_STATUS_BAD_TOKEN);
}

/* ------------------------------------------------------ fatal errors */

static void assert_fatal(QRdma *q, enum qrdma_fatal_code code)
{
    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_FATAL);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==, code);
}

/* Given a ring where no memory is, when it is rung, the card stops. */
static void test_ring_dma(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_write64(q, QRDMA_REG_COMMAND_RING, NO_MEMORY);
    qrdma_write32(q, QRDMA_REG_COMMAND_LOG_SIZE, 0);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, 1);
    assert_fatal(q, QRDMA_FATAL_COMMAND_RING_DMA);
}

/* Case 41. A producer more than a ring ahead is no producer. */
static void test_producer_ahead(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint32_t producers[] = { 65, 0xffff, UINT32_MAX };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(producers); i++) {
        qrdma_start(q);
        qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, producers[i]);
        assert_fatal(q, QRDMA_FATAL_COMMAND_PRODUCER);
        g_assert_cmpuint(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==, 0);
    }
}

/* Given a card in fatal error, only a reset helps. */
static void test_fatal_sticks(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_command nop = { .opcode = cpu_to_le16(QRDMA_CMD_NOP) };

    qrdma_start(q);
    qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, 1000);
    assert_fatal(q, QRDMA_FATAL_COMMAND_PRODUCER);

    qrdma_write32(q, QRDMA_REG_STATUS, UINT32_MAX);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    qrdma_command_post(q, &nop);
    assert_fatal(q, QRDMA_FATAL_COMMAND_PRODUCER);

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

static void register_command_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("query-device", GROUP, test_query_device, NULL);
    qos_add_test("counters", GROUP, test_counters, NULL);
    qos_add_test("entry-kept", GROUP, test_entry_kept, NULL);
    qos_add_test("ring-wraps", GROUP, test_ring_wraps, NULL);
    qos_add_test("smallest-ring", GROUP, test_smallest_ring, NULL);
    qos_add_test("interrupt", GROUP, test_interrupt, NULL);
    qos_add_test("bad-entries", GROUP, test_bad_entries, NULL);
    qos_add_test("no-object", GROUP, test_no_object, NULL);
    qos_add_test("sd", GROUP, test_sd, NULL);
    qos_add_test("gid", GROUP, test_gid, NULL);
    qos_add_test("eq", GROUP, test_eq, NULL);
    qos_add_test("cq", GROUP, test_cq, NULL);
    qos_add_test("cq-refusals", GROUP, test_cq_refusals, NULL);
    qos_add_test("async-eq-first", GROUP, test_async_eq_first,
                 NULL);
    qos_add_test("qp", GROUP, test_qp, NULL);
    qos_add_test("qp-refusals", GROUP, test_qp_refusals, NULL);
    qos_add_test("qp-transitions", GROUP, test_qp_transitions,
                 NULL);
    qos_add_test("qp-bad-mask", GROUP, test_qp_bad_mask, NULL);
    qos_add_test("invalidate", GROUP, test_invalidate, NULL);
    qos_add_test("resume-without-fault", GROUP,
                 test_resume_without_fault, NULL);
    qos_add_test("ring-dma", GROUP, test_ring_dma, NULL);
    qos_add_test("producer-ahead", GROUP, test_producer_ahead,
                 NULL);
    qos_add_test("fatal-sticks", GROUP, test_fatal_sticks, NULL);
}

libqos_init(register_command_tests);
