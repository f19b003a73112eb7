/*
 * qrdma: registers, doorbells and their access rules.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qrdma-verify.h"

#define GROUP       "qrdma-register"

/* Given a card just out of reset, its registers say what it is. */
static void test_identity(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ID), ==, QRDMA_ID);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ABI_VERSION), ==,
                    QRDMA_ABI_MAJOR << 16 | QRDMA_ABI_MINOR);
    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_CAPABILITIES), ==,
                    QRDMA_CAPABILITY_ON_DEMAND | QRDMA_CAPABILITY_ATOMIC |
                    QRDMA_CAPABILITY_PBLE_CACHE);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==, QRDMA_FATAL_NONE);
}

/* Given pble-cache=off, the capability is gone. */
static void test_no_cache(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_CAPABILITIES) &
                    QRDMA_CAPABILITY_PBLE_CACHE, ==, 0);
}

/* Given mac=, the register has the first octet in its lowest byte. */
static void test_mac(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_MAC), ==, 0x060504030252ull);
}

/* A 64-bit register reads the same in one access and in two halves. */
static void test_halves(void *obj, void *data, QGuestAllocator *alloc)
{
    static const uint64_t registers[] = {
        QRDMA_REG_CAPABILITIES, QRDMA_REG_COMMAND_RING, QRDMA_REG_MAC,
    };
    QRdma *q = obj;

    qrdma_write64(q, QRDMA_REG_COMMAND_RING, 0x123456789000ull);
    for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
        uint64_t low = qrdma_read32(q, registers[i]);
        uint64_t high = qrdma_read32(q, registers[i] + 4);

        g_assert_cmphex(qrdma_read64(q, registers[i]), ==, high << 32 | low);
    }
}

/* A 64-bit register can be written half by half. */
static void test_write_halves(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_write32(q, QRDMA_REG_COMMAND_RING, 0x89abc000);
    qrdma_write32(q, QRDMA_REG_COMMAND_RING + 4, 0x1234567);
    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_COMMAND_RING), ==,
                    0x123456789abc000ull);
}

static uint64_t read_sized(QRdma *q, QPCIBar bar, uint64_t offset,
                           unsigned size)
{
    uint64_t value = 0;

    qpci_memread(&q->pci, bar, offset, &value, size);
    return value;
}

static void write_sized(QRdma *q, QPCIBar bar, uint64_t offset, unsigned size)
{
    uint64_t value = UINT64_MAX;

    qpci_memwrite(&q->pci, bar, offset, &value, size);
}

/* Case 46. Any other width or alignment than a register's reads as zero. */
static void test_odd_reads(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t offset;
        unsigned size;
    } odd[] = {
        { QRDMA_REG_ID, 1 }, { QRDMA_REG_ID, 2 }, { QRDMA_REG_ID, 8 },
        { QRDMA_REG_ID + 1, 1 }, { QRDMA_REG_ID + 1, 4 },
        { QRDMA_REG_ID + 2, 2 }, { QRDMA_REG_ID + 2, 4 },
        { QRDMA_REG_ID + 1, 8 }, { QRDMA_REG_ABI_VERSION, 8 },
        { QRDMA_REG_CAPABILITIES, 1 }, { QRDMA_REG_CAPABILITIES, 2 },
        { QRDMA_REG_CAPABILITIES + 4, 8 }, { QRDMA_REG_MAC + 1, 4 },
        { QRDMA_REG_MAC + 2, 8 }, { 0x38, 4 }, { 0x48, 8 },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        g_assert_cmphex(read_sized(q, q->registers, odd[i].offset,
                                   odd[i].size), ==, 0);
    }
}

/* Case 46. Writes of the wrong width or alignment change nothing. */
static void test_odd_writes(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t offset;
        unsigned size;
    } odd[] = {
        { QRDMA_REG_COMMAND_RING, 1 }, { QRDMA_REG_COMMAND_RING, 2 },
        { QRDMA_REG_COMMAND_RING + 2, 4 }, { QRDMA_REG_COMMAND_RING + 4, 8 },
        { QRDMA_REG_COMMAND_RING + 1, 8 }, { QRDMA_REG_COMMAND_LOG_SIZE, 1 },
        { QRDMA_REG_COMMAND_LOG_SIZE, 2 }, { QRDMA_REG_COMMAND_LOG_SIZE, 8 },
        { QRDMA_REG_CONTROL, 1 }, { QRDMA_REG_CONTROL, 8 },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
        write_sized(q, q->registers, odd[i].offset, odd[i].size);
        g_assert_cmphex(qrdma_read64(q, QRDMA_REG_COMMAND_RING), ==, 0);
        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_COMMAND_LOG_SIZE), ==, 0);
        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_CONTROL), ==, 0);
        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, 0);
    }
}

/* Case 46. The last bytes of every BAR, at every width; the card lives on. */
static void test_last_bytes(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    const struct {
        QPCIBar bar;
        uint64_t size;
    } bars[] = {
        { q->registers, QRDMA_BAR_REGISTERS_SIZE },
        { q->doorbells,
          (uint64_t)QRDMA_DOORBELL_PAGES * QRDMA_DOORBELL_PAGE_SIZE },
        { q->pci.msix_table_bar, 0x2000 },
    };

    qrdma_start(q);
    for (size_t i = 0; i < ARRAY_SIZE(bars); i++) {
        for (unsigned size = 1; size <= 8; size *= 2) {
            for (unsigned back = 1; back <= 9; back++) {
                uint64_t offset = bars[i].size - back;

                write_sized(q, bars[i].bar, offset, size);
                g_assert_cmphex(read_sized(q, bars[i].bar, offset,
                                           MIN(size, back)), ==, 0);
            }
        }
    }
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* Case 46. Every offset of a doorbell page takes every width of write. */
static void test_odd_doorbells(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_start(q);
    for (unsigned offset = 0; offset < 0x28; offset++) {
        for (unsigned size = 1; size <= 8; size *= 2) {
            write_sized(q, q->doorbells, offset, size);
            write_sized(q, q->doorbells,
                        QRDMA_DOORBELL_PAGE_SIZE - 1 - offset, size);
            g_assert_cmphex(read_sized(q, q->doorbells, offset, size), ==, 0);
        }
    }
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* Read-only registers keep their value. */
static void test_read_only(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t offset;
        bool wide;
    } registers[] = {
        { QRDMA_REG_ID, false }, { QRDMA_REG_ABI_VERSION, false },
        { QRDMA_REG_CAPABILITIES, true }, { QRDMA_REG_STATUS, false },
        { QRDMA_REG_ERROR, false }, { QRDMA_REG_COMMAND_CONSUMER, false },
        { QRDMA_REG_MAC, true },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
        unsigned size = registers[i].wide ? 8 : 4;
        uint64_t before = read_sized(q, q->registers, registers[i].offset,
                                     size);

        write_sized(q, q->registers, registers[i].offset, size);
        g_assert_cmphex(read_sized(q, q->registers, registers[i].offset,
                                   size), ==, before);
    }
}

/* Given an enabled card, when its ring address is written, it stays. */
static void test_ring_locked(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_write64(q, QRDMA_REG_COMMAND_RING, q->command_ring + QRDMA_PAGE);
    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_COMMAND_RING), ==,
                    q->command_ring);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* A ring that the card cannot use is a fatal error, not a guess. */
static void test_bad_setup(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        uint64_t base;
        uint32_t log_size;
        uint32_t vector;
    } bad[] = {
        { 0x100800, 0, 0 },
        { 0x100040, 0, 0 },
        { 0x100000, QRDMA_COMMAND_LOG_SIZE_MAX + 1, 0 },
        { 0x100000, 63, 0 },
        { 0x100000, UINT32_MAX, 0 },
        { 0x100000, 0, QRDMA_COMMAND_VECTOR_ENABLE | QRDMA_MSIX_VECTORS },
        { 0x100000, 0, QRDMA_COMMAND_VECTOR_ENABLE | 0x7fffffff },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);
        qrdma_write64(q, QRDMA_REG_COMMAND_RING, bad[i].base);
        qrdma_write32(q, QRDMA_REG_COMMAND_LOG_SIZE, bad[i].log_size);
        qrdma_write32(q, QRDMA_REG_COMMAND_VECTOR, bad[i].vector);
        qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_ENABLE);

        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                        QRDMA_CARD_FATAL);
        g_assert_cmphex(qrdma_read32(q, QRDMA_REG_ERROR), ==,
                        QRDMA_FATAL_COMMAND_RING_SETUP);
    }
    /* A reset heals it. */
    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

/* Given a card in use, a reset through CONTROL clears what was set up. */
static void test_control_reset(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_command_ok(q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
    qrdma_write32(q, QRDMA_REG_CONTROL, QRDMA_CONTROL_RESET);

    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_CONTROL), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, 0);
    g_assert_cmphex(qrdma_read64(q, QRDMA_REG_COMMAND_RING), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_COMMAND_CONSUMER), ==, 0);
}

/* Given diagnostics=on, the fault window is there; else it reads as zero. */
static void test_no_diagnostics(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_write32(q, QRDMA_REG_FAULT_AT, 3);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_DIAGNOSTIC_CAPS), ==, 0);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_FAULT_AT), ==, 0);
}

static void test_diagnostics(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_write32(q, QRDMA_REG_FAULT_AT, 3);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_DIAGNOSTIC_CAPS), ==,
                    QRDMA_DIAGNOSTIC_FAULTS);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_FAULT_AT), ==, 3);
}

/* A doorbell for a queue that is not there is ignored, and shows. */
static void test_doorbell_error(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_ring_doorbell(q, 0, QRDMA_DOORBELL_SEND, 100, 1);
    qrdma_settle(q);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==,
                    QRDMA_CARD_READY | QRDMA_CARD_DOORBELL_ERROR);

    /* Writing a one clears it, and only it. */
    qrdma_write32(q, QRDMA_REG_STATUS, QRDMA_CARD_DOORBELL_ERROR);
    g_assert_cmphex(qrdma_read32(q, QRDMA_REG_STATUS), ==, QRDMA_CARD_READY);
}

static void register_register_tests(void)
{
    static QOSGraphTestOptions diagnostics = {
        .edge.extra_device_opts = "diagnostics=on",
    };
    static QOSGraphTestOptions no_cache = {
        .edge.extra_device_opts = "pble-cache=off",
    };
    static QOSGraphTestOptions mac = {
        .edge.extra_device_opts = "mac=52:02:03:04:05:06",
    };

    qos_node_produces("qrdma", GROUP);
    qos_add_test("identity", GROUP, test_identity, NULL);
    qos_add_test("no-cache", GROUP, test_no_cache, &no_cache);
    qos_add_test("mac", GROUP, test_mac, &mac);
    qos_add_test("halves", GROUP, test_halves, NULL);
    qos_add_test("write-halves", GROUP, test_write_halves, NULL);
    qos_add_test("odd-reads", GROUP, test_odd_reads, NULL);
    qos_add_test("odd-writes", GROUP, test_odd_writes, NULL);
    qos_add_test("last-bytes", GROUP, test_last_bytes, NULL);
    qos_add_test("odd-doorbells", GROUP, test_odd_doorbells, NULL);
    qos_add_test("read-only", GROUP, test_read_only, NULL);
    qos_add_test("ring-locked", GROUP, test_ring_locked, NULL);
    qos_add_test("bad-setup", GROUP, test_bad_setup, NULL);
    qos_add_test("control-reset", GROUP, test_control_reset, NULL);
    qos_add_test("no-diagnostics", GROUP, test_no_diagnostics,
                 NULL);
    qos_add_test("diagnostics", GROUP, test_diagnostics,
                 &diagnostics);
    qos_add_test("doorbell-error", GROUP, test_doorbell_error,
                 NULL);
}

libqos_init(register_register_tests);
