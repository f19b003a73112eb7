/*
 * libqos driver node for qrdma: the card as a driver sees it.
 *
 * Registers, memory that the card may reach, commands, PBLE space and MSI-X.
 * Queues are in qrdma-queues.h. All helpers take and give numbers in host byte
 * order; the structures of qrdma_hw.h are little-endian.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_DEVICE_H
#define QRDMA_DEVICE_H

#include "libqtest.h"
#include "libqos/pci.h"
#include "libqos/libqos-malloc.h"
#include "libqos/qgraph.h"
#include "hw/rdma-dev/abi/qrdma_hw.h"

#define QRDMA_PAGE          4096ull
#define QRDMA_TEST_SDS      2060    /* SDs that the helpers keep track of */
#define QRDMA_TEST_MSI_DATA 0x51

typedef struct QRdma {
    QOSGraphObject obj;
    QPCIDevice pci;
    QTestState *qts;
    QGuestAllocator *alloc;
    QPCIBar registers;
    QPCIBar doorbells;

    uint64_t command_ring;
    unsigned command_log_size;
    uint32_t command_producer;
    uint64_t command_input;     /* a page each */
    uint64_t command_output;

    uint64_t sd[QRDMA_TEST_SDS];    /* memory of each direct SD, or 0 */
} QRdma;

/*
 * Find the BARs of a device whose pci, qts and alloc are set, and switch it and
 * MSI-X on, every vector masked. For tests that do not go through qgraph.
 */
void qrdma_attach(QRdma *q);

/* Reset the card, give it a command ring of one page, and enable it. */
void qrdma_start(QRdma *q);
/* The same without the reset: of a card that is as it comes. */
void qrdma_enable(QRdma *q);

/* --------------------------------------------------- registers, doorbells */

uint32_t qrdma_read32(QRdma *q, uint64_t offset);
uint64_t qrdma_read64(QRdma *q, uint64_t offset);
void qrdma_write32(QRdma *q, uint64_t offset, uint32_t value);
void qrdma_write64(QRdma *q, uint64_t offset, uint64_t value);

/* Ring a doorbell: `low` has the number and the arm bits. */
void qrdma_ring_doorbell(QRdma *q, uint32_t page, uint32_t offset,
                         uint32_t low, uint32_t counter);

/*
 * Let the card do all it has been asked to do, as far as it can without the
 * clock: enough turns of QEMU's main loop for its bottom half to come to rest.
 */
void qrdma_settle(QRdma *q);

/*
 * Wait until `holds` says true; the test fails, naming `what`, if the card
 * comes to rest without it.
 */
typedef bool QRdmaCondition(QRdma *q, void *opaque);
void qrdma_wait(QRdma *q, QRdmaCondition *holds, void *opaque,
                const char *what);

/* ----------------------------------------------------------------- memory */

/* Zeroed memory, aligned to a page or to `alignment` (a power of two). */
uint64_t qrdma_alloc(QRdma *q, size_t size);
uint64_t qrdma_alloc_aligned(QRdma *q, size_t size, uint64_t alignment);

/*
 * A pattern in which every 8 bytes tell where they are: to be seen in the right
 * place, and not elsewhere. `seed` tells buffers apart.
 */
void qrdma_fill_pattern(void *buffer, size_t size, uint64_t seed);
void qrdma_write_pattern(QRdma *q, uint64_t address, size_t size,
                         uint64_t seed);
void qrdma_assert_pattern(QRdma *q, uint64_t address, size_t size,
                          uint64_t seed);
/* The same for the part of a pattern that begins `skip` bytes into it. */
void qrdma_assert_pattern_part(QRdma *q, uint64_t address, size_t skip,
                               size_t size, uint64_t seed);
void qrdma_assert_zero(QRdma *q, uint64_t address, size_t size);

/* --------------------------------------------------------------- commands */

/* Put an entry into the ring as it is, and ring. */
void qrdma_command_post(QRdma *q, const struct qrdma_command *command);

/* Wait for the entry posted last, and give its status. */
enum qrdma_status qrdma_command_wait(QRdma *q);

/* The whole of it. Lengths of 0 go with a NULL buffer. */
enum qrdma_status qrdma_command(QRdma *q, enum qrdma_command_opcode opcode,
                                uint32_t number,
                                const void *input, size_t input_length,
                                void *output, size_t output_length);

/* For what a test needs but is not about: fails the test if refused. */
void qrdma_command_ok(QRdma *q, enum qrdma_command_opcode opcode,
                      uint32_t number,
                      const void *input, size_t input_length,
                      void *output, size_t output_length);

/* ------------------------------------------------------------- PBLE space */

void qrdma_add_direct_sd(QRdma *q, uint32_t index);

/* Where PBLE `index` is in memory; its SD must be a direct one of ours. */
uint64_t qrdma_pble_address(QRdma *q, uint64_t index);
void qrdma_pble_write(QRdma *q, uint64_t index, uint64_t value);
uint64_t qrdma_pble_read(QRdma *q, uint64_t index);

/* ------------------------------------------------------------------ mkeys */

/* Key of an mkey of these helpers: the variant is the index's low byte. */
uint32_t qrdma_key(uint32_t index);

/* Context of a driver's key to all memory, with every right. */
struct qrdma_mkc qrdma_mkc_all_memory(uint32_t index, uint32_t pd);

/* Context of a block table with every right, free bit clear. */
struct qrdma_mkc qrdma_mkc_table(uint32_t index, uint32_t pd, unsigned level,
                                 unsigned log_page_size, uint64_t start,
                                 uint64_t length, uint32_t pble_index,
                                 uint32_t capacity);

/* ------------------------------------------------------------------ MSI-X */

/* Point a vector at memory, where its messages can be seen. */
void qrdma_msix_point(QRdma *q, unsigned vector, uint64_t address,
                      uint32_t data);
void qrdma_msix_mask(QRdma *q, unsigned vector, bool masked);

#endif /* QRDMA_DEVICE_H */
