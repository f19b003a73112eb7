/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: tracepoints. What they say about a card is what the driver asked of it
 * or heard from it; the card's own trace events tell the other side.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM qrdma

#if !defined(QRDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define QRDMA_TRACE_H

#include <linux/tracepoint.h>
#include "region.h"

/* A command was answered. error is 0 unless there was no answer. */
TRACE_EVENT(qrdma_command,
	TP_PROTO(const struct qrdma_dev *dev, u16 opcode, u32 number,
		 u16 status, int error),
	TP_ARGS(dev, opcode, number, status, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u16, opcode)
		__field(u32, number)
		__field(u16, status)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->opcode = opcode;
		__entry->number = number;
		__entry->status = status;
		__entry->error = error;
	),
	TP_printk("%s opcode=0x%02x number=0x%x status=%u (%s) error=%d",
		  __get_str(device), __entry->opcode, __entry->number,
		  __entry->status, qrdma_status_name(__entry->status),
		  __entry->error)
);

/* The card refused an access: AE QRDMA_EVENT_QP_ACCESS_ERROR. */
TRACE_EVENT(qrdma_access_error,
	TP_PROTO(const struct qrdma_dev *dev, const struct qrdma_eqe *eqe),
	TP_ARGS(dev, eqe),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, qpn)
		__field(u32, key)
		__field(u64, address)
		__field(u32, length)
		__field(u8, flags)
		__field(u16, syndrome)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = le32_to_cpu(eqe->number);
		__entry->key = le32_to_cpu(eqe->key);
		__entry->address = le64_to_cpu(eqe->address);
		__entry->length = le32_to_cpu(eqe->length);
		__entry->flags = eqe->flags;
		__entry->syndrome = le16_to_cpu(eqe->syndrome);
	),
	TP_printk("%s qpn=0x%x key=0x%08x address=0x%llx length=%u flags=0x%x syndrome=%u (%s)",
		  __get_str(device), __entry->qpn, __entry->key,
		  __entry->address, __entry->length, __entry->flags,
		  __entry->syndrome, qrdma_access_error_name(__entry->syndrome))
);

/* A queue pair waits for a page: AE QRDMA_EVENT_PAGE_FAULT. */
TRACE_EVENT(qrdma_page_fault,
	TP_PROTO(const struct qrdma_dev *dev, const struct qrdma_eqe *eqe),
	TP_ARGS(dev, eqe),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, qpn)
		__field(u32, key)
		__field(u64, address)
		__field(u32, length)
		__field(u32, token)
		__field(u8, flags)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = le32_to_cpu(eqe->number);
		__entry->key = le32_to_cpu(eqe->key);
		__entry->address = le64_to_cpu(eqe->address);
		__entry->length = le32_to_cpu(eqe->length);
		__entry->token = le32_to_cpu(eqe->token);
		__entry->flags = eqe->flags;
	),
	TP_printk("%s qpn=0x%x key=0x%08x address=0x%llx length=%u token=0x%x flags=0x%x",
		  __get_str(device), __entry->qpn, __entry->key,
		  __entry->address, __entry->length, __entry->token,
		  __entry->flags)
);

/* A UMR completed (or was flushed, or its caller gave up: error). */
TRACE_EVENT(qrdma_umr,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, u64 mask,
		 u64 table_offset, u32 table_length, u16 syndrome, int error),
	TP_ARGS(dev, key, mask, table_offset, table_length, syndrome, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(u64, mask)
		__field(u64, table_offset)
		__field(u32, table_length)
		__field(u16, syndrome)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->mask = mask;
		__entry->table_offset = table_offset;
		__entry->table_length = table_length;
		__entry->syndrome = syndrome;
		__entry->error = error;
	),
	TP_printk("%s key=0x%08x mask=0x%llx table_offset=%llu table_length=%u syndrome=%u (%s) error=%d",
		  __get_str(device), __entry->key, __entry->mask,
		  __entry->table_offset, __entry->table_length,
		  __entry->syndrome, qrdma_status_name(__entry->syndrome),
		  __entry->error)
);

/*
 * One of the five steps of a page-size change, done or failed (error). n entries
 * describe the region at the new page size, x can be reached at the covering one;
 * first and count are the entries that the step wrote; log_page_size is the
 * mkey's after the step.
 */
TRACE_EVENT(qrdma_page_size_step,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, unsigned int step,
		 u64 n, u64 x, u64 first, u64 count, u8 log_page_size,
		 int error),
	TP_ARGS(dev, key, step, n, x, first, count, log_page_size, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(unsigned int, step)
		__field(u64, n)
		__field(u64, x)
		__field(u64, first)
		__field(u64, count)
		__field(u8, log_page_size)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->step = step;
		__entry->n = n;
		__entry->x = x;
		__entry->first = first;
		__entry->count = count;
		__entry->log_page_size = log_page_size;
		__entry->error = error;
	),
	TP_printk("%s key=0x%08x step=%u n=%llu x=%llu first=%llu count=%llu log_page_size=%u error=%d",
		  __get_str(device), __entry->key, __entry->step, __entry->n,
		  __entry->x, __entry->first, __entry->count,
		  __entry->log_page_size, __entry->error)
);

/*
 * A dynamic region follows its buffer: made absent because the buffer moves, or
 * loaded on a page fault. entries were zapped or loaded.
 */
DECLARE_EVENT_CLASS(qrdma_dynamic,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, u64 entries,
		 u8 log_page_size, int error),
	TP_ARGS(dev, key, entries, log_page_size, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(u64, entries)
		__field(u8, log_page_size)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->entries = entries;
		__entry->log_page_size = log_page_size;
		__entry->error = error;
	),
	TP_printk("%s key=0x%08x entries=%llu log_page_size=%u error=%d",
		  __get_str(device), __entry->key, __entry->entries,
		  __entry->log_page_size, __entry->error)
);

DEFINE_EVENT(qrdma_dynamic, qrdma_invalidate,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, u64 entries,
		 u8 log_page_size, int error),
	TP_ARGS(dev, key, entries, log_page_size, error)
);

DEFINE_EVENT(qrdma_dynamic, qrdma_load,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, u64 entries,
		 u8 log_page_size, int error),
	TP_ARGS(dev, key, entries, log_page_size, error)
);

/* A suspended queue pair was told to go on, or (error) that its access fails. */
TRACE_EVENT(qrdma_resume,
	TP_PROTO(const struct qrdma_dev *dev, u32 qpn, u32 key, u32 token,
		 int error),
	TP_ARGS(dev, qpn, key, token, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, qpn)
		__field(u32, key)
		__field(u32, token)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->qpn = qpn;
		__entry->key = key;
		__entry->token = token;
		__entry->error = error;
	),
	TP_printk("%s qpn=0x%x key=0x%08x token=0x%x error=%d",
		  __get_str(device), __entry->qpn, __entry->key,
		  __entry->token, __entry->error)
);

/* A region was revoked; error is what the fence came to. */
TRACE_EVENT(qrdma_revoke,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, int error),
	TP_ARGS(dev, key, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->error = error;
	),
	TP_printk("%s key=0x%08x error=%d", __get_str(device), __entry->key,
		  __entry->error)
);

/*
 * A region was registered. kind is enum qrdma_mr_kind. blocks of its page size
 * describe it; capacity is what its table has room for, which at level 2 is
 * leaves, of which the last holds last_leaf entries.
 */
TRACE_EVENT(qrdma_mr_registered,
	TP_PROTO(const struct qrdma_dev *dev, const struct qrdma_mr *mr,
		 u64 blocks),
	TP_ARGS(dev, mr, blocks),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(unsigned int, kind)
		__field(u64, iova)
		__field(u64, length)
		__field(u8, log_page_size)
		__field(u32, level)
		__field(u64, blocks)
		__field(u32, capacity)
		__field(u32, leaves)
		__field(u32, last_leaf)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = mr->key;
		__entry->kind = mr->kind;
		__entry->iova = mr->ibmr.iova;
		__entry->length = mr->ibmr.length;
		__entry->log_page_size = mr->page_shift;
		__entry->level = mr->level;
		__entry->blocks = blocks;
		__entry->capacity = mr->capacity;
		__entry->leaves = mr->level == 2 ?
			qrdma_table_leaves(mr->capacity) : 0;
		__entry->last_leaf = mr->level == 2 ?
			qrdma_table_leaf_entries(mr->capacity,
				qrdma_table_leaves(mr->capacity) - 1) : 0;
	),
	TP_printk("%s key=0x%08x kind=%s iova=0x%llx length=0x%llx log_page_size=%u level=%u blocks=%llu capacity=%u leaves=%u last_leaf=%u",
		  __get_str(device), __entry->key,
		  __print_symbolic(__entry->kind,
				   { QRDMA_MR_DMA, "dma" },
				   { QRDMA_MR_USER, "user" },
				   { QRDMA_MR_PINNED, "pinned" },
				   { QRDMA_MR_DYNAMIC, "dynamic" }),
		  __entry->iova, __entry->length, __entry->log_page_size,
		  __entry->level, __entry->blocks, __entry->capacity,
		  __entry->leaves, __entry->last_leaf)
);

#endif /* QRDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
