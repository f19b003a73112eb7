/*
 * qrdma: the PCI device.
 *
 * A PCIe endpoint: registers in BAR 0, doorbell pages in BAR 2, MSI-X in BAR 4,
 * function-level reset. What the registers and doorbells mean is the engine's.
 * docs/specification.rst describes the card.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/units.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "hw/pci/pcie.h"
#include "hw/qdev-properties.h"
#include "hw/qdev-properties-system.h"
#include "net/eth.h"
#include "hw/rdma-dev/pci/qrdma.h"
#include "hw/rdma-dev/trace.h"

#define QRDMA_PM_CAP_OFFSET     0x40
#define QRDMA_MSIX_CAP_OFFSET   0x50
#define QRDMA_PCIE_CAP_OFFSET   0x80

#define QRDMA_MSIX_TABLE_OFFSET 0
#define QRDMA_MSIX_PBA_OFFSET   0x1000
#define QRDMA_MSIX_BAR_SIZE     0x2000

/* Records of a few hundred bytes: what Perfetto still opens with ease. */
#define QRDMA_TIMELINE_LIMIT    1000000

/* Longer than any test wants, and far from wrapping the virtual clock. */
#define QRDMA_PACKET_LATENCY_MAX_NS (10 * NANOSECONDS_PER_SECOND)

/* QEMU 10.1 made the class data constant. */
#if QEMU_VERSION_MAJOR > 10 || \
    (QEMU_VERSION_MAJOR == 10 && QEMU_VERSION_MINOR >= 1)
typedef const void QrdmaClassData;
#else
typedef void QrdmaClassData;
#endif

static uint64_t qrdma_register_read(void *opaque, hwaddr offset, unsigned size)
{
    QrdmaState *s = opaque;
    uint64_t value;

    qrdma_host_update_trace(s);
    value = qrdma_engine_register_read(s->engine, offset, size);
    trace_qrdma_register_read(offset, size, value);
    return value;
}

static void qrdma_register_write(void *opaque, hwaddr offset, uint64_t value,
                                 unsigned size)
{
    QrdmaState *s = opaque;

    qrdma_host_update_trace(s);
    trace_qrdma_register_write(offset, size, value);
    qrdma_engine_register_write(s->engine, offset, value, size);
}

/* Doorbells are for writing. */
static uint64_t qrdma_doorbell_read(void *opaque, hwaddr offset, unsigned size)
{
    return 0;
}

static void qrdma_doorbell_write(void *opaque, hwaddr offset, uint64_t value,
                                 unsigned size)
{
    QrdmaState *s = opaque;
    uint32_t page = offset / QRDMA_DOORBELL_PAGE_SIZE;
    uint32_t in_page = offset % QRDMA_DOORBELL_PAGE_SIZE;

    qrdma_host_update_trace(s);
    trace_qrdma_doorbell(page, in_page, size, value);
    qrdma_engine_doorbell(s->engine, page, in_page, value, size);
}

/*
 * The engine wants to see accesses as the guest made them: QEMU must neither
 * split a misaligned one into aligned parts, nor widen a narrow one.
 */
#define QRDMA_ANY_ACCESS { \
    .min_access_size = 1, \
    .max_access_size = 8, \
    .unaligned = true, \
}

static const MemoryRegionOps qrdma_register_ops = {
    .read = qrdma_register_read,
    .write = qrdma_register_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = QRDMA_ANY_ACCESS,
    .impl = QRDMA_ANY_ACCESS,
};

static const MemoryRegionOps qrdma_doorbell_ops = {
    .read = qrdma_doorbell_read,
    .write = qrdma_doorbell_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = QRDMA_ANY_ACCESS,
    .impl = QRDMA_ANY_ACCESS,
};

static void qrdma_config_write(PCIDevice *pci, uint32_t address,
                               uint32_t value, int length)
{
    pci_default_write_config(pci, address, value, length);
    pcie_cap_flr_write_config(pci, address, value, length);
}

/*
 * Hot reset, function-level reset, bus reset and machine reset all come here.
 * Nothing may reach memory afterwards, or the guest would see writes to pages
 * that it has taken back.
 */
static void qrdma_reset_hold(Object *obj, ResetType type)
{
    QrdmaState *s = QRDMA(obj);

    trace_qrdma_reset(DEVICE(s)->canonical_path);
    qrdma_engine_reset(s->engine);
    qrdma_host_reset(s);
    qrdma_timeline_flush(s->timeline);
}

static bool qrdma_check_properties(QrdmaState *s, Error **errp)
{
    if (is_multicast_ether_addr(s->mac.a)) {
        error_setg(errp, "property 'mac' must not be a multicast address");
        return false;
    }
    if (s->packet_latency > QRDMA_PACKET_LATENCY_MAX_NS) {
        error_setg(errp, "property 'packet-latency' must be at most %" PRIu64
                   " ns", (uint64_t)QRDMA_PACKET_LATENCY_MAX_NS);
        return false;
    }
    if (s->timeline_name && !s->audit) {
        error_setg(errp, "property 'timeline' needs audit=on");
        return false;
    }
    if (s->timeline_limit == 0) {
        error_setg(errp, "property 'timeline-limit' must not be 0");
        return false;
    }
    return true;
}

static bool qrdma_open_timeline(QrdmaState *s, Error **errp)
{
    if (!s->timeline_name) {
        return true;
    }
    s->timeline = qrdma_timeline_open(s->timeline_name, s->timeline_limit,
                                      errp);
    return s->timeline;
}

static void qrdma_close_timeline(QrdmaState *s)
{
    qrdma_timeline_close(s->timeline);
    s->timeline = NULL;
}

static void qrdma_add_bars(QrdmaState *s)
{
    PCIDevice *pci = PCI_DEVICE(s);
    const uint8_t type = PCI_BASE_ADDRESS_SPACE_MEMORY |
                         PCI_BASE_ADDRESS_MEM_TYPE_64;

    memory_region_init_io(&s->registers, OBJECT(s), &qrdma_register_ops, s,
                          "qrdma-registers", QRDMA_BAR_REGISTERS_SIZE);
    pci_register_bar(pci, QRDMA_BAR_REGISTERS, type, &s->registers);

    memory_region_init_io(&s->doorbells, OBJECT(s), &qrdma_doorbell_ops, s,
                          "qrdma-doorbells",
                          (uint64_t)QRDMA_DOORBELL_PAGES *
                          QRDMA_DOORBELL_PAGE_SIZE);
    pci_register_bar(pci, QRDMA_BAR_DOORBELL, type, &s->doorbells);

    memory_region_init(&s->msix, OBJECT(s), "qrdma-msix",
                       QRDMA_MSIX_BAR_SIZE);
    pci_register_bar(pci, QRDMA_BAR_MSIX, type, &s->msix);
}

static bool qrdma_add_power_management(PCIDevice *pci, Error **errp)
{
    int offset = pci_pm_init(pci, QRDMA_PM_CAP_OFFSET, errp);

    if (offset < 0) {
        return false;
    }
    pci_set_word(pci->config + offset + PCI_PM_PMC, PCI_PM_CAP_VER_1_2);
    /* The card keeps what it knows in D3hot. */
    pci_set_word(pci->config + offset + PCI_PM_CTRL,
                 PCI_PM_CTRL_NO_SOFT_RESET);
    pci_set_word(pci->wmask + offset + PCI_PM_CTRL, PCI_PM_CTRL_STATE_MASK);
    return true;
}

static bool qrdma_add_msix(QrdmaState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (msix_init(pci, QRDMA_MSIX_VECTORS,
                  &s->msix, QRDMA_BAR_MSIX, QRDMA_MSIX_TABLE_OFFSET,
                  &s->msix, QRDMA_BAR_MSIX, QRDMA_MSIX_PBA_OFFSET,
                  QRDMA_MSIX_CAP_OFFSET, errp) < 0) {
        return false;
    }
    for (unsigned vector = 0; vector < QRDMA_MSIX_VECTORS; vector++) {
        msix_vector_use(pci, vector);
    }
    return true;
}

static bool qrdma_add_capabilities(QrdmaState *s, Error **errp)
{
    PCIDevice *pci = PCI_DEVICE(s);

    if (!qrdma_add_power_management(pci, errp)) {
        return false;
    }
    if (pcie_endpoint_cap_init(pci, QRDMA_PCIE_CAP_OFFSET) < 0) {
        error_setg(errp, "cannot add the PCI Express capability");
        return false;
    }
    pcie_cap_flr_init(pci);
    return qrdma_add_msix(s, errp);
}

static void qrdma_make_engine(QrdmaState *s)
{
    QrdmaConfig config = {
        .pble_cache = s->pble_cache,
        .diagnostics = s->diagnostics,
        .umr_order_seed = s->umr_order_seed,
        .packet_latency = s->packet_latency,
        .bandwidth = s->bandwidth,
        .audit = s->audit,
    };

    memcpy(config.mac, s->mac.a, sizeof(config.mac));
    s->engine = qrdma_engine_new(&s->host_ops, s, &config);
}

/* The engine goes first: it ends what is in flight, and starts nothing new. */
static void qrdma_exit(PCIDevice *pci)
{
    QrdmaState *s = QRDMA(pci);

    qrdma_engine_free(s->engine);
    s->engine = NULL;
    qrdma_host_cleanup(s);
    qrdma_migration_free(s);
    qrdma_close_timeline(s);
    msix_uninit(pci, &s->msix, &s->msix);
    pcie_cap_exit(pci);
}

static void qrdma_realize(PCIDevice *pci, Error **errp)
{
    QrdmaState *s = QRDMA(pci);

    if (!qrdma_check_properties(s, errp) || !qrdma_open_timeline(s, errp)) {
        return;
    }
    qemu_macaddr_default_if_unset(&s->mac);

    qrdma_add_bars(s);
    if (!qrdma_add_capabilities(s, errp)) {
        qrdma_close_timeline(s);
        return;
    }

    qrdma_host_init(s);
    qrdma_make_engine(s);
    if (!qrdma_faults_arm(s, errp)) {
        qrdma_exit(pci);
    }
}

static const Property qrdma_properties[] = {
    DEFINE_PROP_MACADDR("mac", QrdmaState, mac),
    DEFINE_PROP_BOOL("pble-cache", QrdmaState, pble_cache, true),
    DEFINE_PROP_BOOL("diagnostics", QrdmaState, diagnostics, false),
    DEFINE_PROP_UINT64("umr-order-seed", QrdmaState, umr_order_seed, 0),
    DEFINE_PROP_UINT64("packet-latency", QrdmaState, packet_latency, 0),
    DEFINE_PROP_SIZE("bandwidth", QrdmaState, bandwidth, 0),
    DEFINE_PROP_BOOL("audit", QrdmaState, audit, false),
    DEFINE_PROP_STRING("timeline", QrdmaState, timeline_name),
    DEFINE_PROP_UINT64("timeline-limit", QrdmaState, timeline_limit,
                       QRDMA_TIMELINE_LIMIT),
};

static void qrdma_describe_properties(ObjectClass *class)
{
    static const struct {
        const char *name;
        const char *description;
    } texts[] = {
        { "mac", "MAC address of the port" },
        { "pble-cache", "keep translation table entries inside the card until "
          "the driver invalidates them" },
        { "diagnostics", "give the guest the diagnostic registers, with which "
          "it makes the card inject faults" },
        { "umr-order-seed", "0: a UMR's steps become visible in order; else "
          "in an order drawn from this seed" },
        { "packet-latency", "virtual time between a packet's address "
          "translation and its data, in nanoseconds" },
        { "bandwidth", "bytes that a queue pair moves in a second of virtual "
          "time; 0: no limit" },
        { "audit", "watch every change of a mkey's map for what an access "
          "must not see" },
        { "timeline", "file for the changes and accesses that the audit "
          "watches, as trace events in JSON" },
        { "timeline-limit", "records after which the timeline ends" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        object_class_property_set_description(class, texts[i].name,
                                              texts[i].description);
    }
}

static void qrdma_class_init(ObjectClass *class, QrdmaClassData *data)
{
    DeviceClass *device = DEVICE_CLASS(class);
    PCIDeviceClass *pci = PCI_DEVICE_CLASS(class);
    ResettableClass *resettable = RESETTABLE_CLASS(class);

    pci->realize = qrdma_realize;
    pci->exit = qrdma_exit;
    pci->config_write = qrdma_config_write;
    pci->vendor_id = QRDMA_PCI_VENDOR_ID;
    pci->device_id = QRDMA_PCI_DEVICE_ID;
    pci->revision = QRDMA_PCI_REVISION;
    pci->class_id = PCI_CLASS_NETWORK_ETHERNET;

    resettable->phases.hold = qrdma_reset_hold;

    device->desc = "RDMA network card for driver verification";
    device->vmsd = &qrdma_vmstate;
    set_bit(DEVICE_CATEGORY_NETWORK, device->categories);
    device_class_set_props(device, qrdma_properties);
    qrdma_describe_properties(class);
    qrdma_faults_add_property(class);
    qrdma_audit_add_properties(class);
}

static const TypeInfo qrdma_info = {
    .name = TYPE_QRDMA,
    .parent = TYPE_PCI_DEVICE,
    .instance_size = sizeof(QrdmaState),
    .class_init = qrdma_class_init,
    .interfaces = (InterfaceInfo[]) {
        { INTERFACE_PCIE_DEVICE },
        { }
    },
};

static void qrdma_register_types(void)
{
    type_register_static(&qrdma_info);
}

type_init(qrdma_register_types)
