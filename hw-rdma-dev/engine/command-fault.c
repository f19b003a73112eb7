/*
 * qrdma engine: fault injection in the command queue.
 *
 * A command that is held back becomes the current one again when its time
 * comes, and is carried out like any other (it may have to wait), but is not
 * answered.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "engine-internal.h"

/* Commands whose number is that of a mkey. */
static uint32_t index_of(const struct qrdma_command *command)
{
    uint16_t opcode = qrdma_le16(command->opcode);

    return opcode >= QRDMA_CMD_CREATE_MKEY &&
           opcode <= QRDMA_CMD_INVALIDATE_TRANSLATIONS
           ? qrdma_le32(command->number) : 0;
}

bool qrdma_command_inject(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    QrdmaFault *fault = &queue->fault;

    queue->withheld = false;
    fault->action = 0;
    if (!qrdma_engine_running(engine) ||
        !qrdma_fault_take(engine, QRDMA_FAULT_COMMAND,
                          index_of(&queue->current),
                          qrdma_le16(queue->current.opcode), fault)) {
        fault->action = 0;
        return true;
    }
    switch (fault->action) {
    case QRDMA_FAULT_DELAY:
        queue->not_before = engine->ops->clock(engine->opaque) + fault->delay;
        /* 0 is no time: the clock may still be there, and the delay be 0. */
        queue->not_before = MAX(queue->not_before, 1);
        qrdma_faults_update_timer(engine);
        qrdma_engine_schedule(engine);
        return false;
    case QRDMA_FAULT_DROP:
    case QRDMA_FAULT_LATE:
    case QRDMA_FAULT_SWAP:
        queue->withheld = true;
        return true;
    case QRDMA_FAULT_FATAL:
        if (fault->point == QRDMA_FAULT_POINT_BEFORE) {
            qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        }
        return true;
    default:
        return true;
    }
}

enum qrdma_status qrdma_command_pretend(QrdmaEngine *engine,
                                        const QrdmaCommandCall *call)
{
    uint16_t opcode = qrdma_le16(engine->commands.current.opcode);
    QrdmaMkey *mkey;

    switch (opcode) {
    case QRDMA_CMD_MODIFY_MKEY:
        /* As far as it goes without a change; the audit hears of it there. */
        return qrdma_cmd_modify_mkey(engine, call);
    case QRDMA_CMD_DESTROY_MKEY:
        mkey = qrdma_mkey_find(engine, call->number);
        if (mkey) {
            qrdma_audit_destroyed(engine, mkey, false);
        }
        return QRDMA_STATUS_OK;
    default:
        return QRDMA_STATUS_OK;
    }
}

/* It has been done, so its lengths are those of its opcode. */
static void hold_copy(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    QrdmaHeld *held = qrdma_faults_hold(engine, &queue->fault);

    if (held) {
        held->command = queue->current;
        held->input = g_memdup2(queue->input,
                                qrdma_le32(queue->current.input_length));
    }
}

/* Make it the current one. */
static void load(QrdmaEngine *engine, QrdmaHeld *held)
{
    QrdmaCommandQueue *queue = &engine->commands;

    queue->current = held->command;
    if (held->input) {
        memcpy(queue->input, held->input,
               qrdma_le32(held->command.input_length));
    }
    queue->silent = true;
    queue->withheld = false;
    queue->fault.action = 0;
    qrdma_held_free(engine, held);
}

bool qrdma_command_hold_or_swap(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    QrdmaHeld *swapped;

    switch (queue->fault.action) {
    case QRDMA_FAULT_LATE:
    case QRDMA_FAULT_SWAP:
    case QRDMA_FAULT_DUPLICATE:
        hold_copy(engine);
        queue->fault.action = 0;
        return false;
    default:
        break;
    }
    if (g_queue_is_empty(&engine->faults->held)) {
        return false;
    }
    swapped = qrdma_faults_take_swapped(engine, QRDMA_FAULT_COMMAND,
                                        index_of(&queue->current),
                                        qrdma_le16(queue->current.opcode), 0);
    if (!swapped) {
        return false;
    }
    queue->answered = queue->current;
    queue->answer_later = true;
    load(engine, swapped);
    return true;
}

bool qrdma_command_is_due(QrdmaEngine *engine)
{
    return qrdma_engine_running(engine) &&
           qrdma_faults_has_due(engine, QRDMA_FAULT_COMMAND);
}

bool qrdma_command_take_due(QrdmaEngine *engine)
{
    QrdmaHeld *held = qrdma_engine_running(engine)
                      ? qrdma_faults_take_due(engine, QRDMA_FAULT_COMMAND)
                      : NULL;

    if (!held) {
        return false;
    }
    load(engine, held);
    return true;
}

bool qrdma_command_end_silent(QrdmaEngine *engine, enum qrdma_status status)
{
    QrdmaCommandQueue *queue = &engine->commands;

    if (status != QRDMA_STATUS_OK) {
        uint16_t opcode = qrdma_le16(queue->current.opcode);

        qrdma_guest_error(engine, "fault injection: command %s number 0x%x, "
                          "held back, is refused: status %d",
                          qrdma_command_name(opcode),
                          qrdma_le32(queue->current.number), status);
    }
    queue->silent = false;
    if (!queue->answer_later) {
        return false;
    }
    queue->answer_later = false;
    queue->current = queue->answered;
    return true;
}
