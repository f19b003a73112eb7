/*
 * qrdma engine: the command queue: one table, one validating dispatcher.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "state.h"

#define COMMAND_RING_ALIGNMENT 4096u
#define BUFFER_ALIGNMENT 8u

/* What the card writes back: status, reserved2 and done. */
#define RESULT_OFFSET offsetof(struct qrdma_command, status)
#define RESULT_SIZE (sizeof(struct qrdma_command) - RESULT_OFFSET)

/* States of the card in which a command is carried out. */
#define STATE_READY (1u << 0)
#define STATE_FATAL (1u << 1)
#define STATE_ANY (STATE_READY | STATE_FATAL)

typedef struct CommandType {
    const char *name;
    QrdmaCommandHandler handler;
    uint16_t input_length;
    uint16_t output_length;
    bool numbered;              /* else `number` is 0 */
    unsigned states;
} CommandType;

/* Index: opcode. What only looks is allowed in fatal error, to find out why. */
static const CommandType command_types[] = {
    [QRDMA_CMD_NOP] = {
        "nop", qrdma_cmd_nop, 0, 0, false, STATE_READY },
    [QRDMA_CMD_QUERY_DEVICE] = {
        "query_device", qrdma_cmd_query_device,
        0, sizeof(struct qrdma_device_limits), false, STATE_ANY },
    [QRDMA_CMD_READ_COUNTERS] = {
        "read_counters", qrdma_cmd_read_counters,
        0, sizeof(struct qrdma_counters), false, STATE_ANY },
    [QRDMA_CMD_SET_GID] = {
        "set_gid", qrdma_cmd_set_gid,
        sizeof(struct qrdma_gid), 0, true, STATE_READY },

    [QRDMA_CMD_ADD_SD] = {
        "add_sd", qrdma_cmd_add_sd,
        sizeof(struct qrdma_sd), 0, true, STATE_READY },
    [QRDMA_CMD_REMOVE_SD] = {
        "remove_sd", qrdma_cmd_remove_sd, 0, 0, true, STATE_READY },

    [QRDMA_CMD_CREATE_EQ] = {
        "create_eq", qrdma_cmd_create_eq,
        sizeof(struct qrdma_eqc), 0, true, STATE_READY },
    [QRDMA_CMD_MODIFY_EQ] = {
        "modify_eq", qrdma_cmd_modify_eq,
        sizeof(struct qrdma_eqc), 0, true, STATE_READY },
    [QRDMA_CMD_QUERY_EQ] = {
        "query_eq", qrdma_cmd_query_eq,
        0, sizeof(struct qrdma_eqc), true, STATE_ANY },
    [QRDMA_CMD_DESTROY_EQ] = {
        "destroy_eq", qrdma_cmd_destroy_eq, 0, 0, true, STATE_READY },

    [QRDMA_CMD_CREATE_CQ] = {
        "create_cq", qrdma_cmd_create_cq,
        sizeof(struct qrdma_cqc), 0, true, STATE_READY },
    [QRDMA_CMD_MODIFY_CQ] = {
        "modify_cq", qrdma_cmd_modify_cq,
        sizeof(struct qrdma_cqc), 0, true, STATE_READY },
    [QRDMA_CMD_QUERY_CQ] = {
        "query_cq", qrdma_cmd_query_cq,
        0, sizeof(struct qrdma_cqc), true, STATE_ANY },
    [QRDMA_CMD_DESTROY_CQ] = {
        "destroy_cq", qrdma_cmd_destroy_cq, 0, 0, true, STATE_READY },

    [QRDMA_CMD_CREATE_QP] = {
        "create_qp", qrdma_cmd_create_qp,
        sizeof(struct qrdma_qpc), 0, true, STATE_READY },
    [QRDMA_CMD_MODIFY_QP] = {
        "modify_qp", qrdma_cmd_modify_qp,
        sizeof(struct qrdma_modify_qp), 0, true, STATE_READY },
    [QRDMA_CMD_QUERY_QP] = {
        "query_qp", qrdma_cmd_query_qp,
        0, sizeof(struct qrdma_qpc), true, STATE_ANY },
    [QRDMA_CMD_DESTROY_QP] = {
        "destroy_qp", qrdma_cmd_destroy_qp, 0, 0, true, STATE_READY },

    [QRDMA_CMD_CREATE_MKEY] = {
        "create_mkey", qrdma_cmd_create_mkey,
        sizeof(struct qrdma_mkc), 0, true, STATE_READY },
    [QRDMA_CMD_MODIFY_MKEY] = {
        "modify_mkey", qrdma_cmd_modify_mkey,
        sizeof(struct qrdma_modify_mkey), 0, true, STATE_READY },
    [QRDMA_CMD_QUERY_MKEY] = {
        "query_mkey", qrdma_cmd_query_mkey,
        0, sizeof(struct qrdma_mkc), true, STATE_ANY },
    [QRDMA_CMD_DESTROY_MKEY] = {
        "destroy_mkey", qrdma_cmd_destroy_mkey, 0, 0, true, STATE_READY },
    [QRDMA_CMD_INVALIDATE_TRANSLATIONS] = {
        "invalidate_translations", qrdma_cmd_invalidate,
        0, 0, true, STATE_READY },

    [QRDMA_CMD_RESUME_PAGE_FAULT] = {
        "resume_page_fault", qrdma_cmd_resume_page_fault,
        sizeof(struct qrdma_resume), 0, true, STATE_READY },
};

/* NULL: no such command. */
static const CommandType *find_type(const struct qrdma_command *command)
{
    uint16_t opcode = qrdma_le16(command->opcode);

    if (opcode >= G_N_ELEMENTS(command_types) ||
        !command_types[opcode].handler) {
        return NULL;
    }
    return &command_types[opcode];
}

static bool is_allowed(QrdmaEngine *engine, const CommandType *type)
{
    unsigned state = qrdma_engine_running(engine) ? STATE_READY : STATE_FATAL;

    return type->states & state;
}

static bool reserved_is_zero(const struct qrdma_command *command)
{
    return !command->reserved0 && !command->status && !command->done &&
           qrdma_is_zero(command->reserved1, sizeof(command->reserved1)) &&
           qrdma_is_zero(command->reserved2, sizeof(command->reserved2));
}

static enum qrdma_status check_buffer(uint64_t address, uint32_t length)
{
    if (!length && address) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (address % BUFFER_ALIGNMENT) {
        return QRDMA_STATUS_BAD_ALIGNMENT;
    }
    return QRDMA_STATUS_OK;
}

static enum qrdma_status check_form(const CommandType *type,
                                    const struct qrdma_command *command)
{
    uint32_t input_length = qrdma_le32(command->input_length);
    uint32_t output_length = qrdma_le32(command->output_length);
    enum qrdma_status status;

    if (!reserved_is_zero(command)) {
        return QRDMA_STATUS_BAD_RESERVED;
    }
    if (!type->numbered && command->number) {
        return QRDMA_STATUS_BAD_NUMBER;
    }
    if (input_length != type->input_length) {
        return QRDMA_STATUS_BAD_INPUT_LENGTH;
    }
    if (output_length < type->output_length ||
        output_length > QRDMA_COMMAND_MAX_LENGTH) {
        return QRDMA_STATUS_BAD_OUTPUT_LENGTH;
    }
    status = check_buffer(qrdma_le64(command->input), input_length);
    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    return check_buffer(qrdma_le64(command->output), output_length);
}

/* Everything that can be said about a command without its input. */
static enum qrdma_status check_command(QrdmaEngine *engine,
                                       const struct qrdma_command *command)
{
    const CommandType *type = find_type(command);

    if (!type) {
        return QRDMA_STATUS_BAD_OPCODE;
    }
    return is_allowed(engine, type) ? check_form(type, command)
                                    : QRDMA_STATUS_FATAL_STATE;
}

/* First call, or the call after a wait: input has been read. */
static enum qrdma_status call_handler(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    const CommandType *type = find_type(&queue->current);
    QrdmaCommandCall call = {
        .number = qrdma_le32(queue->current.number),
        .input = type->input_length ? queue->input : NULL,
        .output = type->output_length ? queue->output : NULL,
    };
    enum qrdma_status status;

    memset(queue->output, 0, type->output_length);
    status = queue->withheld ? qrdma_command_pretend(engine, &call)
                             : type->handler(engine, &call);
    /* A handler with an output changes nothing, so this is still a refusal. */
    if (status == QRDMA_STATUS_OK && type->output_length && !queue->silent &&
        !qrdma_dma_write(engine, qrdma_le64(queue->current.output),
                         queue->output, type->output_length)) {
        status = QRDMA_STATUS_DMA_ERROR;
    }
    return status;
}

static enum qrdma_status begin_command(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    enum qrdma_status status = check_command(engine, &queue->current);
    uint32_t input_length = qrdma_le32(queue->current.input_length);

    if (status != QRDMA_STATUS_OK) {
        return status;
    }
    if (input_length &&
        !qrdma_dma_read(engine, qrdma_le64(queue->current.input), queue->input,
                        input_length)) {
        return QRDMA_STATUS_DMA_ERROR;
    }
    return call_handler(engine);
}

/* A new command, before anything is known about it. */
static enum qrdma_status start_command(QrdmaEngine *engine)
{
    const QrdmaFault *fault = &engine->commands.fault;

    engine->counters.commands++;
    if (!qrdma_command_inject(engine)) {
        return QRDMA_COMMAND_WAIT;
    }
    if (fault->action == QRDMA_FAULT_FAIL) {
        return fault->status ? fault->status : QRDMA_STATUS_INJECTED;
    }
    return begin_command(engine);
}

static enum qrdma_status continue_command(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;

    /* What it waits for does not come any more. */
    if (!qrdma_engine_running(engine)) {
        return QRDMA_STATUS_FATAL_STATE;
    }
    if (!queue->not_before) {
        return call_handler(engine);
    }
    if (queue->not_before > engine->ops->clock(engine->opaque)) {
        return QRDMA_COMMAND_WAIT;
    }
    queue->not_before = 0;
    return begin_command(engine);
}

static uint64_t entry_address(const QrdmaCommandQueue *queue)
{
    uint32_t entry = queue->consumer & (queue->size - 1);

    return queue->base + entry * sizeof(struct qrdma_command);
}

/*
 * The card may be in fatal error already, for another reason, which then stays:
 * what was rung for is forgotten, or it would be tried again for ever.
 */
static void ring_failed(QrdmaEngine *engine)
{
    qrdma_engine_fatal(engine, QRDMA_FATAL_COMMAND_RING_DMA);
    engine->commands.producer = engine->commands.consumer;
}

static bool fetch_command(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;

    if (!qrdma_dma_read(engine, entry_address(queue), &queue->current,
                        sizeof(queue->current))) {
        ring_failed(engine);
        return false;
    }
    return true;
}

static void note_result(QrdmaEngine *engine, enum qrdma_status status)
{
    const struct qrdma_command *command = &engine->commands.current;
    uint16_t opcode = qrdma_le16(command->opcode);
    uint32_t number = qrdma_le32(command->number);

    qrdma_trace(engine, "command", "%s number 0x%x status %d",
                qrdma_command_name(opcode), number, status);
    if (status != QRDMA_STATUS_OK) {
        engine->counters.commands_refused++;
        qrdma_guest_error(engine, "command %s (0x%x) number 0x%x refused: "
                          "status %d", qrdma_command_name(opcode), opcode,
                          number, status);
    }
}

static bool complete_command(QrdmaEngine *engine, enum qrdma_status status)
{
    QrdmaCommandQueue *queue = &engine->commands;
    struct qrdma_command *command = &queue->current;

    note_result(engine, status);
    command->status = qrdma_le16(status);
    memset(command->reserved2, 0, sizeof(command->reserved2));
    command->done = 1;
    if (!qrdma_dma_write(engine, entry_address(queue) + RESULT_OFFSET,
                         &command->status, RESULT_SIZE)) {
        ring_failed(engine);
        return false;
    }
    queue->consumer++;
    return true;
}

/* The ring itself is in order, whatever else may be wrong with the card. */
static bool ring_is_usable(const QrdmaEngine *engine)
{
    switch (engine->registers.error) {
    case QRDMA_FATAL_COMMAND_RING_DMA:
    case QRDMA_FATAL_COMMAND_RING_SETUP:
    case QRDMA_FATAL_COMMAND_PRODUCER:
        return false;
    default:
        return engine->registers.enabled;
    }
}

static inline bool has_command(QrdmaEngine *engine)
{
    const QrdmaCommandQueue *queue = &engine->commands;

    return (queue->consumer != queue->producer || queue->silent ||
            (qrdma_faults_holding(engine->faults) &&
             qrdma_command_is_due(engine))) &&
           ring_is_usable(engine);
}

/* The command is done, or refused. */
static bool end_command(QrdmaEngine *engine, enum qrdma_status status)
{
    QrdmaCommandQueue *queue = &engine->commands;

    if (queue->silent) {
        return qrdma_command_end_silent(engine, status) &&
               complete_command(engine, QRDMA_STATUS_OK);
    }
    if (queue->fault.action == QRDMA_FAULT_FATAL &&
        queue->fault.point == QRDMA_FAULT_POINT_AFTER) {
        queue->fault.action = 0;
        qrdma_engine_fatal(engine, QRDMA_FATAL_INJECTED);
        return false;
    }
    if (status == QRDMA_STATUS_OK && qrdma_command_hold_or_swap(engine)) {
        return true;
    }
    return complete_command(engine, status);
}

/* One command, or what is left of it; false if no other can follow now. */
static bool run_one(QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;
    enum qrdma_status status;

    if (queue->waiting) {
        status = continue_command(engine);
    } else if (queue->silent || qrdma_command_take_due(engine)) {
        status = qrdma_engine_running(engine) ? call_handler(engine)
                                              : QRDMA_STATUS_FATAL_STATE;
    } else if (queue->consumer != queue->producer && fetch_command(engine)) {
        status = start_command(engine);
    } else {
        return false;
    }
    queue->waiting = status == QRDMA_COMMAND_WAIT;
    return !queue->waiting && end_command(engine, status);
}

bool qrdma_command_run(QrdmaEngine *engine, unsigned budget)
{
    QrdmaCommandQueue *queue = &engine->commands;
    uint32_t before = queue->consumer;

    /* Most runs are for the sake of queues. */
    if (!has_command(engine)) {
        return false;
    }
    for (unsigned i = 0; i < budget && has_command(engine); i++) {
        if (!run_one(engine)) {
            break;
        }
    }
    if (queue->consumer != before && queue->interrupt) {
        engine->ops->raise_interrupt(engine->opaque, queue->vector);
    }
    return has_command(engine) && !queue->waiting;
}

/* False: the registers describe no ring. */
static bool latch(QrdmaCommandQueue *queue, const QrdmaRegisters *registers)
{
    uint32_t vector = registers->command_vector & ~QRDMA_COMMAND_VECTOR_ENABLE;

    if (registers->command_ring % COMMAND_RING_ALIGNMENT ||
        registers->command_log_size > QRDMA_COMMAND_LOG_SIZE_MAX ||
        vector >= QRDMA_MSIX_VECTORS) {
        return false;
    }
    queue->base = registers->command_ring;
    queue->size = 1u << registers->command_log_size;
    queue->vector = vector;
    queue->interrupt = registers->command_vector & QRDMA_COMMAND_VECTOR_ENABLE;
    return true;
}

void qrdma_command_enable(QrdmaEngine *engine)
{
    if (!latch(&engine->commands, &engine->registers)) {
        qrdma_engine_fatal(engine, QRDMA_FATAL_COMMAND_RING_SETUP);
    }
}

void qrdma_command_doorbell(QrdmaEngine *engine, uint32_t producer)
{
    QrdmaCommandQueue *queue = &engine->commands;

    if (!ring_is_usable(engine)) {
        return;
    }
    if (producer - queue->consumer > queue->size) {
        qrdma_engine_fatal(engine, QRDMA_FATAL_COMMAND_PRODUCER);
        return;
    }
    queue->producer = producer;
    qrdma_engine_schedule(engine);
}

void qrdma_command_wake(QrdmaEngine *engine)
{
    qrdma_engine_schedule(engine);
}

void qrdma_command_reset(QrdmaEngine *engine)
{
    qrdma_umr_free(engine, engine->commands.change);
    memset(&engine->commands, 0, sizeof(engine->commands));
}

bool qrdma_command_exists(uint32_t opcode)
{
    return opcode < G_N_ELEMENTS(command_types) &&
           command_types[opcode].handler;
}

const char *qrdma_command_name(uint16_t opcode)
{
    return qrdma_command_exists(opcode) ? command_types[opcode].name
                                        : "unknown";
}

/* ------------------------------------------------------------- saved state */

bool qrdma_command_has_form(const struct qrdma_command *command)
{
    const CommandType *type = find_type(command);

    return type && check_form(type, command) == QRDMA_STATUS_OK;
}

/* What it is latched from does not change while the card is enabled. */
static void load_ring(QrdmaStream *stream, QrdmaEngine *engine)
{
    if (qrdma_stream_is_loading(stream) && engine->registers.enabled &&
        engine->registers.error != QRDMA_FATAL_COMMAND_RING_SETUP) {
        bool good = latch(&engine->commands, &engine->registers);

        qrdma_stream_check(stream, good, "ring", "the registers describe none");
    }
}

/* A MODIFY_MKEY under way: its course is that of a UMR. */
static void state_change(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;

    qrdma_state_umr(stream, engine, "change", QRDMA_OWNER_COMMAND,
                    &queue->change);
    if (qrdma_stream_is_loading(stream) && queue->change) {
        qrdma_stream_check(stream, queue->waiting &&
                           qrdma_le16(queue->current.opcode) ==
                           QRDMA_CMD_MODIFY_MKEY &&
                           qrdma_umr_index(queue->change) ==
                           qrdma_le32(queue->current.number), "change",
                           "it is not what the command waits for");
    }
}

/* The command that waits, or is to be carried out in silence. */
static void state_current(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;

    qrdma_stream_bytes(stream, "current", &queue->current,
                       sizeof(queue->current));
    qrdma_stream_bytes(stream, "input", queue->input, sizeof(queue->input));
    qrdma_stream_u64(stream, "not_before", &queue->not_before, 0, UINT64_MAX);
    /* Delayed, it has not been looked at yet. */
    qrdma_stream_check(stream, (queue->waiting && queue->not_before) ||
                       qrdma_command_has_form(&queue->current), "current",
                       "there is no such command");
    state_change(stream, engine);
}

void qrdma_state_commands(QrdmaStream *stream, QrdmaEngine *engine)
{
    QrdmaCommandQueue *queue = &engine->commands;

    qrdma_stream_section(stream, "cmds", 1);
    qrdma_stream_enter(stream, "commands");
    load_ring(stream, engine);
    qrdma_stream_u32(stream, "producer", &queue->producer, 0, UINT32_MAX);
    qrdma_stream_u32(stream, "consumer", &queue->consumer, 0, UINT32_MAX);
    qrdma_stream_check(stream, queue->producer - queue->consumer <= queue->size,
                       "consumer", "%u is not within a ring of %u from "
                       "producer %u", queue->consumer, queue->size,
                       queue->producer);
    qrdma_stream_bool(stream, "waiting", &queue->waiting);
    qrdma_stream_bool(stream, "withheld", &queue->withheld);
    qrdma_stream_bool(stream, "silent", &queue->silent);
    qrdma_stream_bool(stream, "answer_later", &queue->answer_later);
    qrdma_stream_check(stream, queue->size || (!queue->waiting &&
                                               !queue->silent), "waiting",
                       "there is no ring");
    qrdma_stream_check(stream, queue->silent || !queue->answer_later,
                       "answer_later", "there is nothing to wait for");
    qrdma_state_fault(stream, "fault", &queue->fault);
    if (queue->waiting || queue->silent) {
        state_current(stream, engine);
    }
    qrdma_stream_bytes(stream, "answered", &queue->answered,
                       sizeof(queue->answered));
    qrdma_stream_leave(stream);
}
