// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Native tests of limits.h: which cards the driver refuses, and which rings.
 */
#include <stddef.h>
#include <stdint.h>
#include <glib.h>

#include "../limits.h"

/* What the card of this project says. */
static const struct qrdma_limits good_limits = {
	.page_size_bitmap = 0x1fffffff000ull,
	.max_mr_size = ~0ull,
	.max_message_size = QRDMA_MAX_MESSAGE_SIZE,
	.max_mkeys = 1u << QRDMA_LOG_MAX_MKEYS,
	.max_qps = 1u << QRDMA_LOG_MAX_QPS,
	.max_cqs = 1u << QRDMA_LOG_MAX_CQS,
	.max_eqs = QRDMA_MAX_EQS,
	.max_sds = QRDMA_MAX_SD,
	.max_pds = QRDMA_MAX_PD + 1,
	.max_gids = QRDMA_MAX_GIDS,
	.max_vectors = QRDMA_MSIX_VECTORS,
	.doorbell_pages = QRDMA_DOORBELL_PAGES,
	.max_sge = QRDMA_MAX_SGE,
	.max_inline = QRDMA_MAX_INLINE,
	.max_umr_table_write = QRDMA_UMR_MAX_TABLE_WRITE,
	.log_max_ring_entries = QRDMA_LOG_MAX_RING_ENTRIES,
	.log_max_send_stride = QRDMA_SEND_WQE_LOG_MAX,
	.log_max_receive_stride = QRDMA_RECEIVE_WQE_LOG_MAX,
	.max_rd_atomic = QRDMA_MAX_RD_ATOMIC,
	.path_mtu = 5,
};

static void test_good_card(void)
{
	struct qrdma_limit_check bad;

	g_assert_true(qrdma_limits_check(&good_limits, &bad));
}

#define FIELD(field, bad_value) \
	{ #field, offsetof(struct qrdma_limits, field), \
	  sizeof(good_limits.field), bad_value }

/* One limit at a time is out of range; the refusal names it. */
static void test_bad_card(void)
{
	static const struct {
		const char *name;
		size_t offset;
		size_t size;
		uint64_t value;
	} cases[] = {
		FIELD(max_eqs, 0),
		FIELD(max_eqs, 1),
		FIELD(max_eqs, QRDMA_MAX_EQS + 1),
		FIELD(max_cqs, 0),
		FIELD(max_cqs, 0xffffffff),
		FIELD(max_qps, QRDMA_FIRST_QPN + 1),
		FIELD(max_qps, 0xffffffff),
		FIELD(max_mkeys, 0),
		FIELD(max_mkeys, (1u << QRDMA_LOG_MAX_MKEYS) + 1),
		FIELD(max_sds, 0),
		FIELD(max_sds, QRDMA_MAX_SD + 1),
		FIELD(max_pds, 1),
		FIELD(max_gids, 0),
		FIELD(max_gids, QRDMA_MAX_GIDS + 1),
		FIELD(max_vectors, 1),
		FIELD(doorbell_pages, 1),
		FIELD(max_sge, 0),
		FIELD(max_inline, QRDMA_MAX_INLINE + 1),
		FIELD(max_umr_table_write, 63),
		FIELD(max_umr_table_write, 0xffffffff),
		FIELD(log_max_ring_entries, 63),
		FIELD(log_max_ring_entries, 5),
		FIELD(log_max_send_stride, 63),
		FIELD(log_max_send_stride, 8),
		FIELD(log_max_receive_stride, 63),
		FIELD(max_rd_atomic, 0),
		FIELD(path_mtu, 0),
		FIELD(path_mtu, 6),
		FIELD(max_mr_size, 4095),
		FIELD(max_message_size, 0),
		FIELD(max_message_size, QRDMA_MAX_MESSAGE_SIZE + 1ull),
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct qrdma_limits limits = good_limits;
		struct qrdma_limit_check bad;

		/* Little-endian hosts only, as the driver. */
		memcpy((char *)&limits + cases[i].offset, &cases[i].value,
		       cases[i].size);
		g_assert_false(qrdma_limits_check(&limits, &bad));
		g_assert_cmpstr(bad.name, ==, cases[i].name);
		g_assert_cmpuint(bad.value, ==, cases[i].value);
	}
}

static void test_no_small_pages(void)
{
	struct qrdma_limits limits = good_limits;
	struct qrdma_limit_check bad;

	limits.page_size_bitmap = 1ull << 21;
	g_assert_false(qrdma_limits_check(&limits, &bad));
	g_assert_nonnull(strstr(bad.name, "page_size_bitmap"));
}

static void test_ring_pages(void)
{
	g_assert_cmpuint(qrdma_ring_pages(0, QRDMA_CQE_LOG_SIZE), ==, 1);
	g_assert_cmpuint(qrdma_ring_pages(6, QRDMA_CQE_LOG_SIZE), ==, 1);
	g_assert_cmpuint(qrdma_ring_pages(7, QRDMA_CQE_LOG_SIZE), ==, 2);
	g_assert_cmpuint(qrdma_ring_pages(16, QRDMA_SEND_WQE_LOG_MAX), ==,
			 8192);
}

/* The geometry and the memory must say the same, to the page. */
static void test_ring_fits(void)
{
	static const struct {
		uint64_t address;
		uint64_t length;
		uint32_t log_entries;
		gboolean fits;
	} cases[] = {
		{ 0x10000, 4096, 6, TRUE },
		{ 0x10000, 4096, 0, TRUE },
		{ 0x10000, 8192, 7, TRUE },
		{ 0x10000, 1ull << 22, 16, TRUE },
		/* Two pages declared over the memory of five, and the reverse. */
		{ 0x10000, 5 * 4096, 7, FALSE },
		{ 0x10000, 4096, 7, FALSE },
		{ 0x10000, 0, 0, FALSE },
		{ 0x10000, 64, 0, FALSE },
		{ 0x10000, 8191, 7, FALSE },
		{ 0x10001, 8192, 7, FALSE },
		{ 0x10800, 8192, 7, FALSE },
		/* One more than the card can do, and shifts that would wrap. */
		{ 0x10000, 1ull << 23, 17, FALSE },
		{ 0x10000, 4096, 58, FALSE },
		{ 0x10000, 4096, 64, FALSE },
		{ 0x10000, 4096, 0xffffffff, FALSE },
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_assert_cmpint(qrdma_ring_fits(cases[i].address,
						cases[i].length,
						cases[i].log_entries,
						QRDMA_CQE_LOG_SIZE, 16), ==,
				cases[i].fits);
	}
}

int main(int argc, char **argv)
{
	g_test_init(&argc, &argv, NULL);
	g_test_add_func("/driver/limits/good-card", test_good_card);
	g_test_add_func("/driver/limits/bad-card", test_bad_card);
	g_test_add_func("/driver/limits/no-small-pages", test_no_small_pages);
	g_test_add_func("/driver/ring/pages", test_ring_pages);
	g_test_add_func("/driver/ring/fits", test_ring_fits);
	return g_test_run();
}
