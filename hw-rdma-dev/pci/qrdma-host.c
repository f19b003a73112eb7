/*
 * qrdma: what the engine needs from QEMU: DMA, interrupts, work and time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/main-loop.h"
#include "hw/pci/msix.h"
#include "system/runstate.h"
#include "hw/rdma-dev/pci/qrdma.h"
#include "hw/rdma-dev/trace.h"

/* QEMU 10.1 moved what is said of icount into a header of its own. */
#if QEMU_VERSION_MAJOR > 10 || \
    (QEMU_VERSION_MAJOR == 10 && QEMU_VERSION_MINOR >= 1)
#include "exec/icount.h"
#else
#include "system/cpu-timers.h"
#endif

/* Virtual time from a request for work to the work, where it must be fixed. */
#define QRDMA_WORK_DELAY_NS 1000

/*
 * memory: only RAM answers. A guest that points a ring or a buffer at device
 * registers, the card's own doorbells among them, gets a failed transfer, and
 * the card cannot be made to call itself.
 */
static const MemTxAttrs qrdma_dma_attrs = { .memory = true };

static const char *direction_name(DMADirection direction)
{
    return direction == DMA_DIRECTION_TO_DEVICE ? "read" : "write";
}

static bool qrdma_dma(QrdmaState *s, uint64_t address, void *buffer,
                      size_t length, DMADirection direction)
{
    MemTxResult result = pci_dma_rw(PCI_DEVICE(s), address, buffer, length,
                                    direction, qrdma_dma_attrs);

    if (result != MEMTX_OK) {
        trace_qrdma_dma_error(direction_name(direction), address, length,
                              result);
    }
    return result == MEMTX_OK;
}

static bool qrdma_dma_read(void *opaque, uint64_t address, void *buffer,
                           size_t length)
{
    return qrdma_dma(opaque, address, buffer, length, DMA_DIRECTION_TO_DEVICE);
}

static bool qrdma_dma_write(void *opaque, uint64_t address, const void *buffer,
                            size_t length)
{
    return qrdma_dma(opaque, address, (void *)buffer, length,
                     DMA_DIRECTION_FROM_DEVICE);
}

static DMADirection map_direction(bool write)
{
    return write ? DMA_DIRECTION_FROM_DEVICE : DMA_DIRECTION_TO_DEVICE;
}

/*
 * What is not plain RAM would be mapped through a bounce buffer; the address
 * space has none to give (see qrdma_host_init()), so that such a map fails.
 */
static void *qrdma_dma_map(void *opaque, uint64_t address, size_t *length,
                           bool write)
{
    QrdmaState *s = opaque;
    DMADirection direction = map_direction(write);
    dma_addr_t mapped = *length;
    void *pointer = dma_memory_map(pci_get_address_space(PCI_DEVICE(s)),
                                   address, &mapped, direction,
                                   qrdma_dma_attrs);

    if (!pointer) {
        trace_qrdma_dma_map_refused(direction_name(direction), address,
                                    *length);
        return NULL;
    }
    *length = mapped;
    return pointer;
}

static void qrdma_dma_unmap(void *opaque, void *pointer, size_t length,
                            bool write, size_t touched)
{
    QrdmaState *s = opaque;

    pci_dma_unmap(PCI_DEVICE(s), pointer, length, map_direction(write),
                  touched);
}

static void qrdma_raise_interrupt(void *opaque, uint32_t vector)
{
    PCIDevice *pci = opaque;
    bool enabled = msix_enabled(pci);

    trace_qrdma_interrupt(vector, enabled);
    /* msix_notify() takes a bad vector for a fault of QEMU's and aborts. */
    if (enabled && vector < QRDMA_MSIX_VECTORS) {
        msix_notify(pci, vector);
    }
}

/*
 * A bottom half runs when the host comes to it. With icount that would make one
 * run of a guest unlike the next, so there the work has its place in virtual
 * time.
 */
static void qrdma_schedule(void *opaque)
{
    QrdmaState *s = opaque;

    if (!icount_enabled()) {
        qemu_bh_schedule(s->work);
    } else if (!timer_pending(s->work_timer)) {
        timer_mod_ns(s->work_timer, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) +
                                    QRDMA_WORK_DELAY_NS);
    }
}

static uint64_t qrdma_clock(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void qrdma_set_timer(void *opaque, uint64_t deadline)
{
    QrdmaState *s = opaque;

    trace_qrdma_timer(deadline);
    s->timer_due = false;
    if (deadline == UINT64_MAX) {
        timer_del(s->timer);
    } else {
        timer_mod_ns(s->timer, MIN(deadline, INT64_MAX));
    }
}

static void qrdma_guest_error(void *opaque, const char *message)
{
    qemu_log_mask(LOG_GUEST_ERROR, "%s: %s\n", PCI_DEVICE(opaque)->name,
                  message);
}

static void qrdma_trace(void *opaque, const char *name, const char *text)
{
    if (g_str_equal(name, "audit")) {
        trace_qrdma_audit(text);
    } else if (g_str_equal(name, "audit_window")) {
        trace_qrdma_audit_window(text);
    } else if (g_str_equal(name, "fault")) {
        trace_qrdma_fault(text);
    } else {
        trace_qrdma_engine(name, text);
    }
}

static void qrdma_timeline(void *opaque, const QrdmaTimelineRecord *record)
{
    QrdmaState *s = opaque;

    qrdma_timeline_write(s->timeline, record);
}

/*
 * While the virtual machine is stopped nothing may move: memory may have been
 * sent to where the card goes on. What is to be done waits in the engine.
 */
static void qrdma_work(void *opaque)
{
    QrdmaState *s = opaque;

    if (!runstate_is_running()) {
        s->work_waits = true;
        return;
    }
    qrdma_host_update_trace(s);
    if (s->timer_due) {
        s->timer_due = false;
        qrdma_engine_timer(s->engine);
    }
    qrdma_engine_run(s->engine);
}

/* Goes on with what came while nothing was to move, or was loaded. */
static void qrdma_run_state_changed(void *opaque, bool running, RunState state)
{
    QrdmaState *s = opaque;

    if (running && s->work_waits) {
        s->work_waits = false;
        qrdma_schedule(s);
    }
}

/* Timers run unguarded: what a guarded bottom half does, aio_bh_call(). */
static void qrdma_guarded_work(void *opaque)
{
    MemReentrancyGuard *guard = &DEVICE(opaque)->mem_reentrancy_guard;
    bool was_engaged = guard->engaged_in_io;

    guard->engaged_in_io = true;
    qrdma_work(opaque);
    guard->engaged_in_io = was_engaged;
}

static void qrdma_timer_expired(void *opaque)
{
    QrdmaState *s = opaque;

    s->timer_due = true;
    if (icount_enabled()) {
        qrdma_guarded_work(s);
    } else {
        qemu_bh_schedule(s->work);
    }
}

void qrdma_host_update_trace(QrdmaState *s)
{
    s->host_ops.trace_enabled =
        trace_event_get_state_backends(TRACE_QRDMA_ENGINE) ||
        trace_event_get_state_backends(TRACE_QRDMA_AUDIT) ||
        trace_event_get_state_backends(TRACE_QRDMA_AUDIT_WINDOW) ||
        trace_event_get_state_backends(TRACE_QRDMA_FAULT);
}

void qrdma_host_init(QrdmaState *s)
{
    /* A mapping that is a copy is worse than none: see QrdmaHostOps.dma_map. */
    pci_get_address_space(PCI_DEVICE(s))->max_bounce_buffer_size = 0;

    s->host_ops = (QrdmaHostOps) {
        .dma_read = qrdma_dma_read,
        .dma_write = qrdma_dma_write,
        .dma_map = qrdma_dma_map,
        .dma_unmap = qrdma_dma_unmap,
        .raise_interrupt = qrdma_raise_interrupt,
        .schedule = qrdma_schedule,
        .clock = qrdma_clock,
        .set_timer = qrdma_set_timer,
        .guest_error = qrdma_guest_error,
        .trace = qrdma_trace,
        .timeline = s->timeline ? qrdma_timeline : NULL,
    };
    qrdma_host_update_trace(s);
    s->work = qemu_bh_new_guarded(qrdma_work, s,
                                  &DEVICE(s)->mem_reentrancy_guard);
    s->work_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qrdma_guarded_work, s);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qrdma_timer_expired, s);
    s->run_state = qemu_add_vm_change_state_handler(qrdma_run_state_changed,
                                                    s);
}

void qrdma_host_reset(QrdmaState *s)
{
    timer_del(s->timer);
    timer_del(s->work_timer);
    s->timer_due = false;
    s->work_waits = false;
    qemu_bh_cancel(s->work);
}

void qrdma_host_cleanup(QrdmaState *s)
{
    qemu_del_vm_change_state_handler(s->run_state);
    timer_free(s->timer);
    timer_free(s->work_timer);
    qemu_bh_delete(s->work);
}
