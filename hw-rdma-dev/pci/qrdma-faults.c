/*
 * qrdma: fault injection as a property of the device, "faults": a list of
 * objects, as they are said in qrdma_diagnostic.h. Reading it gives those that
 * are armed, with what they have seen and hit; writing it replaces all.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/util.h"
#include "qapi/visitor.h"
#include "hw/rdma-dev/pci/qrdma.h"

/* As QAPI lays out its lists. */
typedef struct FaultList {
    struct FaultList *next;
    QrdmaFault fault;
} FaultList;

/* QAPI counts enumerations from 0, the card these two from 1. */
static const char *const target_names[] = {
    [QRDMA_FAULT_COMMAND - 1] = "command",
    [QRDMA_FAULT_UMR - 1] = "umr",
    [QRDMA_FAULT_COMPLETION - 1] = "completion",
    [QRDMA_FAULT_EVENT - 1] = "event",
    [QRDMA_FAULT_DMA_READ - 1] = "dma-read",
    [QRDMA_FAULT_DMA_WRITE - 1] = "dma-write",
};

static const char *const action_names[] = {
    [QRDMA_FAULT_FAIL - 1] = "fail",
    [QRDMA_FAULT_DELAY - 1] = "delay",
    [QRDMA_FAULT_DROP - 1] = "drop",
    [QRDMA_FAULT_LATE - 1] = "late",
    [QRDMA_FAULT_DUPLICATE - 1] = "duplicate",
    [QRDMA_FAULT_SWAP - 1] = "swap",
    [QRDMA_FAULT_FATAL - 1] = "fatal",
};

static const QEnumLookup targets = {
    .array = target_names,
    .size = ARRAY_SIZE(target_names),
};

static const QEnumLookup actions = {
    .array = action_names,
    .size = ARRAY_SIZE(action_names),
};

/* ---------------------------------------------------------------- visitors */

static bool visit_choice(Visitor *v, const char *name, int *value,
                         const QEnumLookup *names, Error **errp)
{
    int from_zero = *value - 1;

    if (!visit_type_enum(v, name, &from_zero, names, errp)) {
        return false;
    }
    *value = from_zero + 1;
    return true;
}

static bool visit_kind(Visitor *v, QrdmaFault *fault, Error **errp)
{
    int target = fault->target;
    int action = fault->action;

    if (!visit_choice(v, "target", &target, &targets, errp) ||
        !visit_choice(v, "action", &action, &actions, errp)) {
        return false;
    }
    fault->target = target;
    fault->action = action;
    return true;
}

/* A number that is not given keeps its default. */
static bool visit_number(Visitor *v, const char *name, uint32_t *value,
                         Error **errp)
{
    bool present = true;

    return !visit_optional(v, name, &present) ||
           visit_type_uint32(v, name, value, errp);
}

static bool visit_long_number(Visitor *v, const char *name, uint64_t *value,
                              Error **errp)
{
    bool present = true;

    return !visit_optional(v, name, &present) ||
           visit_type_uint64(v, name, value, errp);
}

static bool visit_progress(Visitor *v, QrdmaFault *fault, Error **errp)
{
    return visit_type_uint32(v, "seen", &fault->seen, errp) &&
           visit_type_uint32(v, "hit", &fault->hit, errp);
}

static bool visit_members(Visitor *v, QrdmaFault *fault, Error **errp)
{
    return visit_kind(v, fault, errp) &&
           visit_number(v, "at", &fault->at, errp) &&
           visit_number(v, "count", &fault->count, errp) &&
           visit_number(v, "index", &fault->index, errp) &&
           visit_number(v, "opcode", &fault->opcode, errp) &&
           visit_number(v, "status", &fault->status, errp) &&
           visit_number(v, "point", &fault->point, errp) &&
           visit_long_number(v, "delay", &fault->delay, errp) &&
           visit_long_number(v, "address", &fault->address, errp) &&
           visit_long_number(v, "length", &fault->length, errp) &&
           (visit_is_input(v) || visit_progress(v, fault, errp));
}

static bool visit_fault(Visitor *v, QrdmaFault *fault, Error **errp)
{
    bool ok;

    if (!visit_start_struct(v, NULL, NULL, 0, errp)) {
        return false;
    }
    ok = visit_members(v, fault, errp) && visit_check_struct(v, errp);
    visit_end_struct(v, NULL);
    return ok;
}

/* ----------------------------------------------------------------- reading */

static unsigned current_faults(QrdmaState *s,
                               QrdmaFault faults[QRDMA_MAX_FAULTS])
{
    if (s->engine) {
        return qrdma_engine_fault_list(s->engine, faults);
    }
    memcpy(faults, s->faults, s->num_faults * sizeof(*faults));
    return s->num_faults;
}

static FaultList *make_list(const QrdmaFault *faults, unsigned count)
{
    FaultList *list = NULL;

    while (count > 0) {
        FaultList *item = g_new0(FaultList, 1);

        item->fault = faults[--count];
        item->next = list;
        list = item;
    }
    return list;
}

static void free_list(FaultList *list)
{
    while (list) {
        FaultList *next = list->next;

        g_free(list);
        list = next;
    }
}

static FaultList *next_item(Visitor *v, FaultList *item)
{
    return (FaultList *)visit_next_list(v, (GenericList *)item, sizeof(*item));
}

static void get_faults(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    QrdmaFault faults[QRDMA_MAX_FAULTS];
    unsigned count = current_faults(QRDMA(obj), faults);
    FaultList *list = make_list(faults, count);

    if (visit_start_list(v, name, (GenericList **)&list, sizeof(*list),
                         errp)) {
        for (FaultList *item = list; item; item = next_item(v, item)) {
            if (!visit_fault(v, &item->fault, errp)) {
                break;
            }
        }
        visit_end_list(v, (void **)&list);
    }
    free_list(list);
}

/* ----------------------------------------------------------------- writing */

static bool read_fault(Visitor *v, QrdmaFault *faults, unsigned *count,
                       Error **errp)
{
    ERRP_GUARD();
    QrdmaFault fault = { .at = 1, .count = 1 };
    enum qrdma_fault_result result;

    if (!visit_fault(v, &fault, errp)) {
        /* Some errors of visitors name the member only. */
        error_prepend(errp, "faults[%u]: ", *count);
        return false;
    }
    result = *count < QRDMA_MAX_FAULTS ? qrdma_fault_check(&fault)
                                       : QRDMA_FAULT_TOO_MANY;
    if (result != QRDMA_FAULT_ARMED) {
        error_setg(errp, "faults[%u]: %s", *count,
                   qrdma_fault_result_text(result));
        return false;
    }
    faults[(*count)++] = fault;
    return true;
}

/* False, and an error, at the first bad one. */
static bool read_faults(Visitor *v, const char *name,
                        QrdmaFault faults[QRDMA_MAX_FAULTS], unsigned *count,
                        Error **errp)
{
    FaultList *list = NULL;
    bool ok = true;

    *count = 0;
    if (!visit_start_list(v, name, (GenericList **)&list, sizeof(*list),
                          errp)) {
        return false;
    }
    for (FaultList *item = list; ok && item; item = next_item(v, item)) {
        ok = read_fault(v, faults, count, errp);
    }
    ok = ok && visit_check_list(v, errp);
    visit_end_list(v, (void **)&list);
    free_list(list);
    return ok;
}

bool qrdma_faults_arm(QrdmaState *s, Error **errp)
{
    qrdma_engine_fault_clear(s->engine);
    for (unsigned i = 0; i < s->num_faults; i++) {
        enum qrdma_fault_result result =
            qrdma_engine_fault_arm(s->engine, &s->faults[i]);

        if (result != QRDMA_FAULT_ARMED) {
            error_setg(errp, "faults[%u]: %s", i,
                       qrdma_fault_result_text(result));
            return false;
        }
    }
    return true;
}

static void set_faults(Object *obj, Visitor *v, const char *name,
                       void *opaque, Error **errp)
{
    QrdmaState *s = QRDMA(obj);
    QrdmaFault faults[QRDMA_MAX_FAULTS];
    unsigned count;

    if (!read_faults(v, name, faults, &count, errp)) {
        return;
    }
    memcpy(s->faults, faults, count * sizeof(*faults));
    s->num_faults = count;
    if (s->engine) {
        qrdma_host_update_trace(s);
        qrdma_faults_arm(s, errp);
    }
}

void qrdma_faults_add_property(ObjectClass *class)
{
    object_class_property_add(class, "faults", "QrdmaFaultList", get_faults,
                              set_faults, NULL, NULL);
    object_class_property_set_description(class, "faults",
        "faults that the card injects, a list of objects; writing it replaces "
        "those that are armed");
}
