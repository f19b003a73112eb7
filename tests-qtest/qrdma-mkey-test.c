/*
 * qrdma: mkey contexts, what the card takes and what it refuses.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-mkey"
#define INDEX 0x1234

static enum qrdma_status create(QRdma *q, uint32_t index,
                                const struct qrdma_mkc *mkc)
{
    return qrdma_command(q, QRDMA_CMD_CREATE_MKEY, index, mkc, sizeof(*mkc),
                         NULL, 0);
}

static struct qrdma_mkc query(QRdma *q, uint32_t index)
{
    struct qrdma_mkc mkc;

    qrdma_command_ok(q, QRDMA_CMD_QUERY_MKEY, index, NULL, 0,
                     &mkc, sizeof(mkc));
    return mkc;
}

/* A level 0 context whose block is present. */
static struct qrdma_mkc contiguous(unsigned log_page_size, uint64_t start,
                                   uint64_t length, uint64_t base)
{
    struct qrdma_mkc mkc = qrdma_mkc_table(INDEX, 1, 0, log_page_size, start,
                                           length, 0, 1);

    mkc.base = cpu_to_le64(base | QRDMA_PBLE_PRESENT);
    return mkc;
}

/* Contexts that the card takes come back from a query as they went in. */
static void test_accepted(void *obj, void *data, QGuestAllocator *alloc)
{
    const struct {
        const char *what;
        struct qrdma_mkc mkc;
    } good[] = {
        { "all memory", qrdma_mkc_all_memory(INDEX, 1) },
        { "one page", contiguous(12, 0x1000, 4096, 0x5000) },
        { "one byte", contiguous(12, 0x1fff, 1, 0x5000) },
        { "case 12, offset 0x234",
          qrdma_mkc_table(INDEX, 1, 1, 12, 0x7000234, 8192, 8, 3) },
        { "case 6, one block of 128 MiB",
          contiguous(27, 0x40200000, 64 * MiB, 0x80000000) },
        { "1 GiB page", contiguous(30, 1 * GiB, 1 * GiB, 2ull * GiB) },
        { "64 GiB page", contiguous(36, 0, 1, 1ull << 36) },
        { "largest page",
          contiguous(QRDMA_LOG_PAGE_SIZE_MAX, 0, 1, 0) },
        { "level 1, exact capacity",
          qrdma_mkc_table(INDEX, 1, 1, 12, 0x1800, 0x2000, 8, 3) },
        { "level 1, room to spare",
          qrdma_mkc_table(INDEX, 1, 1, 21, 0, 2 * MiB, 8, 64) },
        { "level 2, 513 entries",
          qrdma_mkc_table(INDEX, 1, 2, 12, 0, 513 * 4096, 8, 513) },
        { "the last bytes of the address space",
          contiguous(12, UINT64_MAX - 4095 - 4096, 4096, 0x5000) },
    };
    QRdma *q = obj;

    qrdma_start(q);
    qrdma_add_direct_sd(q, 0);
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        struct qrdma_mkc seen;

        g_test_message("%s", good[i].what);
        g_assert_cmpint(create(q, INDEX, &good[i].mkc), ==, QRDMA_STATUS_OK);
        seen = query(q, INDEX);
        g_assert_cmpmem(&seen, sizeof(seen), &good[i].mkc,
                        sizeof(good[i].mkc));
        qrdma_command_ok(q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    }
}

/* Each refusal has its own status, and leaves no mkey behind. */
static void test_refused(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_mkc table = qrdma_mkc_table(INDEX, 1, 1, 12, 0x1000,
                                             0x10000, 8, 16);
    struct qrdma_mkc all = qrdma_mkc_all_memory(INDEX, 1);
    struct qrdma_mkc block = contiguous(12, 0x1000, 4096, 0x5000);
    struct {
        const char *what;
        const struct qrdma_mkc *from;
        size_t offset;      /* bytes of the context to overwrite ... */
        size_t size;
        uint64_t value;     /* ... with this */
        enum qrdma_status status;
    } bad[] = {
        { "unknown flag", &table, 0x00, 4, 1 << 8, QRDMA_STATUS_BAD_FLAGS },
        { "remote write alone", &table, 0x00, 4, QRDMA_MKEY_REMOTE_WRITE,
          QRDMA_STATUS_BAD_RIGHTS },
        { "atomic alone", &table, 0x00, 4, QRDMA_MKEY_REMOTE_ATOMIC,
          QRDMA_STATUS_BAD_RIGHTS },
        { "2 KiB pages", &table, 0x05, 1, 11, QRDMA_STATUS_BAD_PAGE_SIZE },
        { "2 TiB pages", &table, 0x05, 1, QRDMA_LOG_PAGE_SIZE_MAX + 1,
          QRDMA_STATUS_BAD_PAGE_SIZE },
        { "page size 255", &table, 0x05, 1, 255, QRDMA_STATUS_BAD_PAGE_SIZE },
        { "translation kind", &table, 0x06, 1, 2,
          QRDMA_STATUS_BAD_TRANSLATION },
        { "physical with a range", &table, 0x06, 1,
          QRDMA_TRANSLATION_PHYSICAL, QRDMA_STATUS_BAD_TRANSLATION },
        { "level 3", &table, 0x07, 1, 3, QRDMA_STATUS_BAD_LEVEL },
        { "PD", &table, 0x08, 4, QRDMA_MAX_PD + 1, QRDMA_STATUS_BAD_PD },
        { "QP", &table, 0x0c, 4, 0x1000000, QRDMA_STATUS_BAD_QPN },
        { "length 0", &table, 0x18, 8, 0, QRDMA_STATUS_BAD_LENGTH },
        { "length that wraps", &table, 0x18, 8, UINT64_MAX,
          QRDMA_STATUS_BAD_LENGTH },
        { "PBLE index off its unit", &table, 0x28, 4, 9,
          QRDMA_STATUS_BAD_PBLE_INDEX },
        { "table outside PBLE space", &table, 0x28, 4, 1u << 30,
          QRDMA_STATUS_BAD_PBLE_INDEX },
        { "table across the end of PBLE space", &table, 0x28, 4,
          (1u << 30) - 8, QRDMA_STATUS_BAD_PBLE_INDEX },
        { "capacity 0", &table, 0x2c, 4, 0, QRDMA_STATUS_BAD_CAPACITY },
        { "capacity one short", &table, 0x2c, 4, 15,
          QRDMA_STATUS_BAD_CAPACITY },
        { "capacity beyond PBLE space", &table, 0x2c, 4, UINT32_MAX,
          QRDMA_STATUS_BAD_CAPACITY },
        { "case 12, first byte offset 0x240", &table, 0x30, 2, 0x240,
          QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
        { "reserved byte", &table, 0x3f, 1, 1, QRDMA_STATUS_BAD_RESERVED },
        { "level 0 with a PBLE index", &block, 0x28, 4, 8,
          QRDMA_STATUS_BAD_PBLE_INDEX },
        { "level 0 with room for two", &block, 0x2c, 4, 2,
          QRDMA_STATUS_BAD_CAPACITY },
        { "level 0 over two blocks", &block, 0x18, 8, 8192,
          QRDMA_STATUS_BAD_CAPACITY },
        { "reserved bits in the block", &block, 0x20, 8, 0x5007,
          QRDMA_STATUS_BAD_ENTRY },
        { "all memory with a start", &all, 0x10, 8, 0x1000,
          QRDMA_STATUS_BAD_LENGTH },
        { "all memory with a length", &all, 0x18, 8, 1,
          QRDMA_STATUS_BAD_LENGTH },
        { "all memory with a table", &all, 0x06, 1,
          QRDMA_TRANSLATION_BLOCK_TABLE, QRDMA_STATUS_BAD_TRANSLATION },
    };
    QRdma *q = obj;
    struct qrdma_mkc mkc;

    qrdma_start(q);
    qrdma_add_direct_sd(q, 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        uint64_t value = cpu_to_le64(bad[i].value);

        mkc = *bad[i].from;
        memcpy((uint8_t *)&mkc + bad[i].offset, &value, bad[i].size);
        g_test_message("%s", bad[i].what);
        g_assert_cmpint(create(q, INDEX, &mkc), ==, bad[i].status);
        g_assert_cmpint(qrdma_command(q, QRDMA_CMD_QUERY_MKEY, INDEX, NULL, 0,
                                      &mkc, sizeof(mkc)), ==,
                        QRDMA_STATUS_NO_OBJECT);
    }
}

/* Case 6. A block that is not aligned to its page size is no block. */
static void test_misaligned_block(void *obj, void *data,
                                  QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_mkc mkc = contiguous(27, 0x40200000, 64 * MiB, 0x80200000);

    qrdma_start(q);
    g_assert_cmpint(create(q, INDEX, &mkc), ==, QRDMA_STATUS_BAD_ALIGNMENT);
}

/* Index 0 is never valid; the last index is. */
static void test_index_limits(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    const uint32_t last = (1u << QRDMA_LOG_MAX_MKEYS) - 1;
    struct qrdma_mkc mkc = qrdma_mkc_all_memory(last, 1);

    qrdma_start(q);
    g_assert_cmpint(create(q, 0, &mkc), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(create(q, last + 1, &mkc), ==, QRDMA_STATUS_BAD_NUMBER);
    g_assert_cmpint(create(q, last, &mkc), ==, QRDMA_STATUS_OK);
}

/* Given an mkey, when its index is created again, the old one stays. */
static void test_in_use(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_mkc first = contiguous(12, 0x1000, 4096, 0x5000);
    struct qrdma_mkc second = contiguous(12, 0x2000, 4096, 0x6000);
    struct qrdma_mkc seen;

    qrdma_start(q);
    g_assert_cmpint(create(q, INDEX, &first), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(create(q, INDEX, &second), ==, QRDMA_STATUS_IN_USE);
    seen = query(q, INDEX);
    g_assert_cmpmem(&seen, sizeof(seen), &first, sizeof(first));
}

static enum qrdma_status modify(QRdma *q, uint64_t mask,
                                const struct qrdma_mkc *mkc)
{
    struct qrdma_modify_mkey input = {
        .mask = cpu_to_le64(mask),
        .context = *mkc,
    };

    return qrdma_command(q, QRDMA_CMD_MODIFY_MKEY, INDEX,
                         &input, sizeof(input), NULL, 0);
}

/* Modify takes the fields of its mask, and looks at no other. */
static void test_modify(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;
    struct qrdma_mkc mkc = contiguous(12, 0x1000, 4096, 0x5000);
    struct qrdma_mkc other, seen;

    memset(&other, 0xff, sizeof(other));
    other.pd = cpu_to_le32(99);
    qrdma_start(q);
    g_assert_cmpint(create(q, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    g_assert_cmpint(modify(q, QRDMA_UMR_MASK_PD, &other), ==,
                    QRDMA_STATUS_OK);

    mkc.pd = cpu_to_le32(99);
    seen = query(q, INDEX);
    g_assert_cmpmem(&seen, sizeof(seen), &mkc, sizeof(mkc));
}

/* A modify is refused if the mkey that would result is not a good one. */
static void test_modify_refused(void *obj, void *data, QGuestAllocator *alloc)
{
    const struct {
        const char *what;
        uint64_t mask;
        struct qrdma_mkc fields;
        enum qrdma_status status;
    } bad[] = {
        { "unknown mask bit", 1ull << 40, { 0 }, QRDMA_STATUS_BAD_MASK },
        { "mask bit 7", 1ull << 7, { 0 }, QRDMA_STATUS_BAD_MASK },
        { "page size", QRDMA_UMR_MASK_PAGE_SIZE, { .log_page_size = 11 },
          QRDMA_STATUS_BAD_PAGE_SIZE },
        { "length 0", QRDMA_UMR_MASK_LENGTH, { 0 }, QRDMA_STATUS_BAD_LENGTH },
        { "more blocks than capacity", QRDMA_UMR_MASK_LENGTH,
          { .length = cpu_to_le64(17 * 4096) }, QRDMA_STATUS_BAD_CAPACITY },
        { "start across a block", QRDMA_UMR_MASK_START,
          { .start = cpu_to_le64(0x1001),
            .first_byte_offset = cpu_to_le16(1) },
          QRDMA_STATUS_BAD_CAPACITY },
        { "first byte offset", QRDMA_UMR_MASK_START,
          { .start = cpu_to_le64(0x2000),
            .first_byte_offset = cpu_to_le16(1) },
          QRDMA_STATUS_BAD_FIRST_BYTE_OFFSET },
        { "local write, with remote write left",
          QRDMA_UMR_MASK_LOCAL_WRITE, { 0 }, QRDMA_STATUS_BAD_RIGHTS },
        { "PD", QRDMA_UMR_MASK_PD, { .pd = cpu_to_le32(1 << 24) },
          QRDMA_STATUS_BAD_PD },
    };
    QRdma *q = obj;
    struct qrdma_mkc mkc = qrdma_mkc_table(INDEX, 1, 1, 12, 0x1000,
                                           0x10000, 8, 16);

    qrdma_start(q);
    qrdma_add_direct_sd(q, 0);
    g_assert_cmpint(create(q, INDEX, &mkc), ==, QRDMA_STATUS_OK);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct qrdma_mkc seen;

        g_test_message("%s", bad[i].what);
        g_assert_cmpint(modify(q, bad[i].mask, &bad[i].fields), ==,
                        bad[i].status);
        seen = query(q, INDEX);
        g_assert_cmpmem(&seen, sizeof(seen), &mkc, sizeof(mkc));
    }
}

static void register_mkey_tests(void)
{
    qos_node_produces("qrdma", GROUP);
    qos_add_test("accepted", GROUP, test_accepted, NULL);
    qos_add_test("refused", GROUP, test_refused, NULL);
    qos_add_test("misaligned-block", GROUP, test_misaligned_block,
                 NULL);
    qos_add_test("index-limits", GROUP, test_index_limits, NULL);
    qos_add_test("in-use", GROUP, test_in_use, NULL);
    qos_add_test("modify", GROUP, test_modify, NULL);
    qos_add_test("modify-refused", GROUP, test_modify_refused, NULL);
}

libqos_init(register_mkey_tests);
