/*
 * qrdma: migration and snapshots.
 *
 * What the card is, the engine saves and loads, in parts that are opaque here
 * (engine/state.h describes them) and name what is wrong with them. QEMU's
 * stream has the PCI device, MSI-X and the part "card"; "faults" and "audit"
 * are subsections, since most cards have neither.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "hw/pci/msix.h"
#include "migration/vmstate.h"
#include "hw/rdma-dev/pci/qrdma.h"

void qrdma_migration_free(QrdmaState *s)
{
    for (int part = 0; part < QRDMA_PARTS; part++) {
        g_clear_pointer(&s->parts[part].bytes, g_free);
        s->parts[part].length = 0;
    }
}

/* True if it could be saved, or there was nothing to save. */
static bool qrdma_save_part(QrdmaState *s, QrdmaPart part)
{
    QrdmaSaved saved = { 0 };
    g_autofree char *error = NULL;

    if (!qrdma_engine_has_part(s->engine, part)) {
        return true;
    }
    if (!qrdma_engine_save(s->engine, part, &saved, &error)) {
        error_report("%s: %s", PCI_DEVICE(s)->name, error);
        return false;
    }
    s->parts[part].bytes = saved.bytes;
    s->parts[part].length = saved.length;
    return true;
}

static int qrdma_pre_save(void *opaque)
{
    QrdmaState *s = opaque;

    qrdma_migration_free(s);
    for (int part = 0; part < QRDMA_PARTS; part++) {
        if (!qrdma_save_part(s, part)) {
            qrdma_migration_free(s);
            return -EFBIG;
        }
    }
    return 0;
}

static int qrdma_post_save(void *opaque)
{
    qrdma_migration_free(opaque);
    return 0;
}

static int qrdma_pre_load(void *opaque)
{
    qrdma_migration_free(opaque);
    return 0;
}

/* All parts are there. Nothing runs before the virtual machine does. */
static int qrdma_post_load(void *opaque, int version_id)
{
    QrdmaState *s = opaque;
    QrdmaSaved saved[QRDMA_PARTS];
    g_autofree char *error = NULL;
    bool good;

    for (int part = 0; part < QRDMA_PARTS; part++) {
        saved[part].bytes = s->parts[part].bytes;
        saved[part].length = s->parts[part].length;
    }
    qrdma_host_reset(s);
    good = qrdma_engine_load(s->engine, saved, &error);
    qrdma_migration_free(s);
    if (!good) {
        error_report("%s: %s", PCI_DEVICE(s)->name, error);
        return -EINVAL;
    }
    return 0;
}

/* Before memory is taken for the bytes. */
static bool qrdma_length_is_good(void *opaque, int version_id)
{
    const QrdmaSavedPart *part = opaque;

    return part->length >= 1 && part->length <= QRDMA_SAVED_MAX;
}

static const VMStateDescription qrdma_part_vmstate = {
    .name = TYPE_QRDMA "-part",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(length, QrdmaSavedPart),
        VMSTATE_VALIDATE("length", qrdma_length_is_good),
        VMSTATE_VBUFFER_ALLOC_UINT32(bytes, QrdmaSavedPart, 0, NULL, length),
        VMSTATE_END_OF_LIST()
    },
};

#define QRDMA_VMSTATE_PART(part) \
    VMSTATE_STRUCT(parts[part], QrdmaState, 1, qrdma_part_vmstate, \
                   QrdmaSavedPart)

static bool qrdma_faults_needed(void *opaque)
{
    QrdmaState *s = opaque;

    return qrdma_engine_has_part(s->engine, QRDMA_PART_FAULTS);
}

static const VMStateDescription qrdma_faults_vmstate = {
    .name = TYPE_QRDMA "/faults",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = qrdma_faults_needed,
    .fields = (const VMStateField[]) {
        QRDMA_VMSTATE_PART(QRDMA_PART_FAULTS),
        VMSTATE_END_OF_LIST()
    },
};

static bool qrdma_audit_needed(void *opaque)
{
    QrdmaState *s = opaque;

    return qrdma_engine_has_part(s->engine, QRDMA_PART_AUDIT);
}

static const VMStateDescription qrdma_audit_vmstate = {
    .name = TYPE_QRDMA "/audit",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = qrdma_audit_needed,
    .fields = (const VMStateField[]) {
        QRDMA_VMSTATE_PART(QRDMA_PART_AUDIT),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription qrdma_vmstate = {
    .name = TYPE_QRDMA,
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = qrdma_pre_save,
    .post_save = qrdma_post_save,
    .pre_load = qrdma_pre_load,
    .post_load = qrdma_post_load,
    .fields = (const VMStateField[]) {
        VMSTATE_PCI_DEVICE(parent_obj, QrdmaState),
        VMSTATE_MSIX(parent_obj, QrdmaState),
        QRDMA_VMSTATE_PART(QRDMA_PART_CARD),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const[]) {
        &qrdma_faults_vmstate,
        &qrdma_audit_vmstate,
        NULL
    },
};
