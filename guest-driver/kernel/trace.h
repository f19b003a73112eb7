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
#include "qrdma.h"

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
 * One of the five steps of a page-size change, done or failed (error).
 * first and count are entries of the table; log_page_size is the mkey's after
 * the step.
 */
TRACE_EVENT(qrdma_page_size_step,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, unsigned int step,
		 u64 first, u64 count, u8 log_page_size, int error),
	TP_ARGS(dev, key, step, first, count, log_page_size, error),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(unsigned int, step)
		__field(u64, first)
		__field(u64, count)
		__field(u8, log_page_size)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->step = step;
		__entry->first = first;
		__entry->count = count;
		__entry->log_page_size = log_page_size;
		__entry->error = error;
	),
	TP_printk("%s key=0x%08x step=%u first=%llu count=%llu log_page_size=%u error=%d",
		  __get_str(device), __entry->key, __entry->step,
		  __entry->first, __entry->count, __entry->log_page_size,
		  __entry->error)
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

/* A region was registered. */
TRACE_EVENT(qrdma_mr,
	TP_PROTO(const struct qrdma_dev *dev, u32 key, u64 start, u64 length,
		 u8 log_page_size, u64 entries, u8 level),
	TP_ARGS(dev, key, start, length, log_page_size, entries, level),
	TP_STRUCT__entry(
		__string(device, pci_name(dev->pdev))
		__field(u32, key)
		__field(u64, start)
		__field(u64, length)
		__field(u8, log_page_size)
		__field(u64, entries)
		__field(u8, level)
	),
	TP_fast_assign(
		__assign_str(device);
		__entry->key = key;
		__entry->start = start;
		__entry->length = length;
		__entry->log_page_size = log_page_size;
		__entry->entries = entries;
		__entry->level = level;
	),
	TP_printk("%s key=0x%08x start=0x%llx length=0x%llx log_page_size=%u entries=%llu level=%u",
		  __get_str(device), __entry->key, __entry->start,
		  __entry->length, __entry->log_page_size, __entry->entries,
		  __entry->level)
);

#endif /* QRDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
