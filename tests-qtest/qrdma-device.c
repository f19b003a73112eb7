/*
 * libqos driver node for qrdma.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "hw/pci/pci_regs.h"
#include "qrdma-device.h"

/* Turns of the main loop in which the card comes to rest, however busy. */
#define SETTLE_TURNS    24
#define PATIENCE_TURNS  4000

/* ------------------------------------------------- registers and doorbells */

uint32_t qrdma_read32(QRdma *q, uint64_t offset)
{
    return qpci_io_readl(&q->pci, q->registers, offset);
}

uint64_t qrdma_read64(QRdma *q, uint64_t offset)
{
    return qpci_io_readq(&q->pci, q->registers, offset);
}

void qrdma_write32(QRdma *q, uint64_t offset, uint32_t value)
{
    qpci_io_writel(&q->pci, q->registers, offset, value);
}

void qrdma_write64(QRdma *q, uint64_t offset, uint64_t value)
{
    qpci_io_writeq(&q->pci, q->registers, offset, value);
}

void qrdma_ring_doorbell(QRdma *q, uint32_t page, uint32_t offset,
                         uint32_t low, uint32_t counter)
{
    qpci_io_writeq(&q->pci, q->doorbells,
                   page * (uint64_t)QRDMA_DOORBELL_PAGE_SIZE + offset,
                   low | (uint64_t)counter << QRDMA_DOORBELL_COUNTER_SHIFT);
}

/*
 * qtest answers one command a turn of QEMU's main loop, and a pending bottom
 * half runs once in every turn.
 */
static void turn(QRdma *q)
{
    qrdma_read32(q, QRDMA_REG_ID);
}

void qrdma_settle(QRdma *q)
{
    for (int i = 0; i < SETTLE_TURNS; i++) {
        turn(q);
    }
}

void qrdma_wait(QRdma *q, QRdmaCondition *holds, void *opaque,
                const char *what)
{
    for (int i = 0; i < PATIENCE_TURNS; i++) {
        if (holds(q, opaque)) {
            return;
        }
        turn(q);
    }
    g_test_message("waited in vain for: %s", what);
    g_assert_not_reached();
}

/* ----------------------------------------------------------------- memory */

uint64_t qrdma_alloc_aligned(QRdma *q, size_t size, uint64_t alignment)
{
    uint64_t address;

    if (alignment <= QRDMA_PAGE) {
        address = guest_alloc(q->alloc, size);
    } else {
        address = QEMU_ALIGN_UP(guest_alloc(q->alloc, size + alignment),
                                alignment);
    }
    qtest_memset(q->qts, address, 0, size);
    return address;
}

uint64_t qrdma_alloc(QRdma *q, size_t size)
{
    return qrdma_alloc_aligned(q, size, QRDMA_PAGE);
}

void qrdma_fill_pattern(void *buffer, size_t size, uint64_t seed)
{
    uint8_t *bytes = buffer;

    for (size_t i = 0; i < size; i++) {
        uint64_t word = (seed + 1) * 0x9e3779b97f4a7c15ull + i / 8;

        bytes[i] = (word >> (i % 8 * 8)) ^ 0x5a;
    }
}

void qrdma_write_pattern(QRdma *q, uint64_t address, size_t size,
                         uint64_t seed)
{
    g_autofree uint8_t *data = g_malloc(size);

    qrdma_fill_pattern(data, size, seed);
    if (size) {
        qtest_bufwrite(q->qts, address, data, size);
    }
}

static void assert_memory(QRdma *q, uint64_t address, const uint8_t *expected,
                          size_t size)
{
    g_autofree uint8_t *data = g_malloc(size);

    if (size) {
        qtest_bufread(q->qts, address, data, size);
    }
    g_assert_cmpmem(data, size, expected, size);
}

void qrdma_assert_pattern_part(QRdma *q, uint64_t address, size_t skip,
                               size_t size, uint64_t seed)
{
    g_autofree uint8_t *expected = g_malloc(skip + size);

    qrdma_fill_pattern(expected, skip + size, seed);
    assert_memory(q, address, expected + skip, size);
}

void qrdma_assert_pattern(QRdma *q, uint64_t address, size_t size,
                          uint64_t seed)
{
    qrdma_assert_pattern_part(q, address, 0, size, seed);
}

void qrdma_assert_zero(QRdma *q, uint64_t address, size_t size)
{
    g_autofree uint8_t *expected = g_malloc0(size);

    assert_memory(q, address, expected, size);
}

/* --------------------------------------------------------------- commands */

static uint64_t command_entry(QRdma *q, uint32_t counter)
{
    uint32_t slot = counter & ((1u << q->command_log_size) - 1);

    return q->command_ring + slot * sizeof(struct qrdma_command);
}

void qrdma_command_post(QRdma *q, const struct qrdma_command *command)
{
    qtest_memwrite(q->qts, command_entry(q, q->command_producer), command,
                   sizeof(*command));
    q->command_producer++;
    qrdma_write32(q, QRDMA_REG_COMMAND_DOORBELL, q->command_producer);
}

static bool command_done(QRdma *q, void *opaque)
{
    struct qrdma_command *command = opaque;

    qtest_memread(q->qts, command_entry(q, q->command_producer - 1), command,
                  sizeof(*command));
    return command->done == 1;
}

enum qrdma_status qrdma_command_wait(QRdma *q)
{
    struct qrdma_command command;

    qrdma_wait(q, command_done, &command, "the end of a command");
    return le16_to_cpu(command.status);
}

enum qrdma_status qrdma_command(QRdma *q, enum qrdma_command_opcode opcode,
                                uint32_t number,
                                const void *input, size_t input_length,
                                void *output, size_t output_length)
{
    struct qrdma_command command = {
        .opcode = cpu_to_le16(opcode),
        .number = cpu_to_le32(number),
        .input = cpu_to_le64(input_length ? q->command_input : 0),
        .output = cpu_to_le64(output_length ? q->command_output : 0),
        .input_length = cpu_to_le32(input_length),
        .output_length = cpu_to_le32(output_length),
    };
    enum qrdma_status status;

    if (input_length) {
        qtest_memwrite(q->qts, q->command_input, input, input_length);
    }
    qrdma_command_post(q, &command);
    status = qrdma_command_wait(q);
    if (output_length) {
        qtest_memread(q->qts, q->command_output, output, output_length);
    }
    return status;
}

void qrdma_command_ok(QRdma *q, enum qrdma_command_opcode opcode,
                      uint32_t number,
                      const void *input, size_t input_length,
                      void *output, size_t output_length)
{
    enum qrdma_status status = qrdma_command(q, opcode, number,
                                             input, input_length,
                                             output, output_length);

    if (status != QRDMA_STATUS_OK) {
        g_test_message("command 0x%x for number %u was refused", opcode,
                       number);
    }
    g_assert_cmpint(status, ==, QRDMA_STATUS_OK);
}

/* ------------------------------------------------------------- PBLE space */

void qrdma_add_direct_sd(QRdma *q, uint32_t index)
{
    struct qrdma_sd sd = { .type = cpu_to_le32(QRDMA_SD_DIRECT) };

    g_assert_cmpuint(index, <, QRDMA_TEST_SDS);
    q->sd[index] = qrdma_alloc(q, 1u << QRDMA_SD_SHIFT);
    sd.address = cpu_to_le64(q->sd[index]);
    qrdma_command_ok(q, QRDMA_CMD_ADD_SD, index, &sd, sizeof(sd), NULL, 0);
}

uint64_t qrdma_pble_address(QRdma *q, uint64_t index)
{
    uint64_t sd = index / QRDMA_PBLES_PER_SD;

    g_assert_cmpuint(sd, <, QRDMA_TEST_SDS);
    g_assert_cmphex(q->sd[sd], !=, 0);
    return q->sd[sd] + index % QRDMA_PBLES_PER_SD * QRDMA_PBLE_SIZE;
}

void qrdma_pble_write(QRdma *q, uint64_t index, uint64_t value)
{
    value = cpu_to_le64(value);
    qtest_memwrite(q->qts, qrdma_pble_address(q, index), &value,
                   sizeof(value));
}

uint64_t qrdma_pble_read(QRdma *q, uint64_t index)
{
    uint64_t value;

    qtest_memread(q->qts, qrdma_pble_address(q, index), &value,
                  sizeof(value));
    return le64_to_cpu(value);
}

/* ------------------------------------------------------------------ mkeys */

uint32_t qrdma_key(uint32_t index)
{
    return index << 8 | (index & 0xff);
}

#define EVERY_RIGHT (QRDMA_MKEY_LOCAL_WRITE | QRDMA_MKEY_REMOTE_READ | \
                     QRDMA_MKEY_REMOTE_WRITE | QRDMA_MKEY_REMOTE_ATOMIC)

struct qrdma_mkc qrdma_mkc_all_memory(uint32_t index, uint32_t pd)
{
    return (struct qrdma_mkc) {
        .flags = cpu_to_le32(EVERY_RIGHT | QRDMA_MKEY_ALL_MEMORY),
        .variant = QRDMA_MKEY_VARIANT(qrdma_key(index)),
        .log_page_size = QRDMA_LOG_PAGE_SIZE_MIN,
        .translation = QRDMA_TRANSLATION_PHYSICAL,
        .pd = cpu_to_le32(pd),
        .qpn = cpu_to_le32(QRDMA_MKEY_ANY_QP),
    };
}

struct qrdma_mkc qrdma_mkc_table(uint32_t index, uint32_t pd, unsigned level,
                                 unsigned log_page_size, uint64_t start,
                                 uint64_t length, uint32_t pble_index,
                                 uint32_t capacity)
{
    return (struct qrdma_mkc) {
        .flags = cpu_to_le32(EVERY_RIGHT),
        .variant = QRDMA_MKEY_VARIANT(qrdma_key(index)),
        .log_page_size = log_page_size,
        .translation = QRDMA_TRANSLATION_BLOCK_TABLE,
        .level = level,
        .pd = cpu_to_le32(pd),
        .qpn = cpu_to_le32(QRDMA_MKEY_ANY_QP),
        .start = cpu_to_le64(start),
        .length = cpu_to_le64(length),
        .pble_index = cpu_to_le32(pble_index),
        .capacity = cpu_to_le32(capacity),
        .first_byte_offset = cpu_to_le16(start & (QRDMA_PAGE - 1)),
    };
}

/* ------------------------------------------------------------------ MSI-X */

static uint64_t msix_entry(QRdma *q, unsigned vector)
{
    return q->pci.msix_table_off + vector * PCI_MSIX_ENTRY_SIZE;
}

void qrdma_msix_point(QRdma *q, unsigned vector, uint64_t address,
                      uint32_t data)
{
    uint64_t entry = msix_entry(q, vector);

    qpci_io_writel(&q->pci, q->pci.msix_table_bar,
                   entry + PCI_MSIX_ENTRY_LOWER_ADDR, address);
    qpci_io_writel(&q->pci, q->pci.msix_table_bar,
                   entry + PCI_MSIX_ENTRY_UPPER_ADDR, address >> 32);
    qpci_io_writel(&q->pci, q->pci.msix_table_bar,
                   entry + PCI_MSIX_ENTRY_DATA, data);
}

void qrdma_msix_mask(QRdma *q, unsigned vector, bool masked)
{
    qpci_io_writel(&q->pci, q->pci.msix_table_bar,
                   msix_entry(q, vector) + PCI_MSIX_ENTRY_VECTOR_CTRL,
                   masked ? PCI_MSIX_ENTRY_CTRL_MASKBIT : 0);
}

/* ------------------------------------------------------------------- node */

void qrdma_attach(QRdma *q)
{
    q->registers = qpci_iomap(&q->pci, QRDMA_BAR_REGISTERS, NULL);
    q->doorbells = qpci_iomap(&q->pci, QRDMA_BAR_DOORBELL, NULL);
    qpci_device_enable(&q->pci);
    qpci_msix_enable(&q->pci);
}

void qrdma_enable(QRdma *q)
{
    if (!q->command_ring) {
        q->command_ring = qrdma_alloc(q, QRDMA_PAGE);
        q->command_input = qrdma_alloc(q, QRDMA_PAGE);
        q->command_output = qrdma_alloc(q, QRDMA_PAGE);
    }
    memset(q->sd, 0, sizeof(q->sd));
    q->command_log_size = QRDMA_COMMAND_LOG_SIZE_MAX;
    q->command_producer = 0;

    qrdma_write64(q, QRDMA_REG_COMMAND_RING, q->command_ring);
    qrdma_write32(q, QRDMA_REG_COMMAND_LOG_SIZE, q->command_log_size);
    qrdma_write32(q, QRDMA_REG_COMMAND_VECTOR, 0);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);
}

void qrdma_start(QRdma *q)
{
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
    qrdma_enable(q);
}

static void *qrdma_get_driver(void *object, const char *interface)
{
    QRdma *q = object;

    if (!g_strcmp0(interface, "pci-device")) {
        return &q->pci;
    }
    if (g_str_has_prefix(interface, "qrdma-")) {
        return q;
    }
    fprintf(stderr, "%s not present in qrdma\n", interface);
    g_assert_not_reached();
}

static void qrdma_start_hw(QOSGraphObject *object)
{
    qrdma_attach((QRdma *)object);
}

static void *qrdma_create(void *bus, QGuestAllocator *alloc, void *address)
{
    QRdma *q = g_new0(QRdma, 1);

    qpci_device_init(&q->pci, bus, address);
    q->qts = q->pci.bus->qts;
    q->alloc = alloc;
    q->obj.get_driver = qrdma_get_driver;
    q->obj.start_hw = qrdma_start_hw;
    return &q->obj;
}

/*
 * The card produces one interface a group of cases, "qrdma-" and its name: each
 * file of cases declares its own. qgraph has no room for all in one.
 */
static void qrdma_register_nodes(void)
{
    QPCIAddress address = {
        .devfn = QPCI_DEVFN(4, 0),
        .vendor_id = QRDMA_PCI_VENDOR_ID,
        .device_id = QRDMA_PCI_DEVICE_ID,
    };
    QOSGraphEdgeOptions options = { .extra_device_opts = "addr=04.0" };

    add_qpci_address(&options, &address);
    qos_node_create_driver("qrdma", qrdma_create);
    qos_node_consumes("qrdma", "pci-bus", &options);
    qos_node_produces("qrdma", "pci-device");
}

libqos_init(qrdma_register_nodes);
