/*
 * qrdma engine: the command queue.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef QRDMA_COMMAND_H
#define QRDMA_COMMAND_H

#include "engine.h"
#include "umr.h"

/*
 * What a handler gets. Lengths are those of the dispatch table, exactly; the
 * input was read from the guest once, into memory of the engine.
 */
typedef struct QrdmaCommandCall {
    uint32_t number;
    const void *input;      /* NULL where the command has none */
    void *output;           /* zeroed; NULL where the command has none */
} QrdmaCommandCall;

/*
 * Carries out a command. A status other than OK means nothing was changed.
 * Only commands that change nothing have an output.
 *
 * QRDMA_COMMAND_WAIT: cannot be over yet. The same call comes again, first of
 * all commands, after qrdma_command_wake().
 */
typedef enum qrdma_status (*QrdmaCommandHandler)(QrdmaEngine *engine,
                                                 const QrdmaCommandCall *call);

#define QRDMA_COMMAND_WAIT QRDMA_STATUS_COUNT

void qrdma_command_wake(QrdmaEngine *engine);

typedef struct QrdmaCommandQueue {
    uint64_t base;
    uint32_t size;              /* entries */
    uint32_t producer;          /* free-running */
    uint32_t consumer;
    bool interrupt;
    uint32_t vector;

    /* The command that waits to be called again. */
    bool waiting;
    struct qrdma_command current;
    QrdmaUmr *change;           /* MODIFY_MKEY: what it does */

    /* Fault injection. */
    QrdmaFault fault;           /* what hits the current one; action 0: none */
    uint64_t not_before;        /* begun when this is over; 0: no delay */
    bool withheld;              /* the current one only seems to be done */
    bool silent;                /* it was held back: nobody hears of it */
    bool answer_later;          /* one that is done waits for a silent one */
    struct qrdma_command answered;      /* that one */

    uint64_t input[QRDMA_COMMAND_MAX_LENGTH / sizeof(uint64_t)];
    uint64_t output[QRDMA_COMMAND_MAX_LENGTH / sizeof(uint64_t)];
} QrdmaCommandQueue;

/* Latch the registers; a bad value is a fatal error of the card. */
void qrdma_command_enable(QrdmaEngine *engine);
void qrdma_command_doorbell(QrdmaEngine *engine, uint32_t producer);
void qrdma_command_reset(QrdmaEngine *engine);

/* At most `budget` commands; true if more are there and can be taken. */
bool qrdma_command_run(QrdmaEngine *engine, unsigned budget);

/* Whether there is a command of this opcode. */
bool qrdma_command_exists(uint32_t opcode);

/*
 * Whether it may be carried out without another look: its opcode is known, its
 * lengths are those of the opcode, reserved fields are zero.
 */
bool qrdma_command_has_form(const struct qrdma_command *command);

/* Name for traces; never NULL. */
const char *qrdma_command_name(uint16_t opcode);

/* ------------------------------------------------- command-fault.c */

/*
 * What fault injection wants of the new current command. False: it has to wait
 * (not_before).
 */
bool qrdma_command_inject(QrdmaEngine *engine);

/* Seem to do it: the output stays zero. */
enum qrdma_status qrdma_command_pretend(QrdmaEngine *engine,
                                        const QrdmaCommandCall *call);

/*
 * The current command is done: hold a copy of it back where that is wanted, and
 * see whether another is to be done before this one is answered. True: that one
 * is the current now, and this one's answer waits.
 */
bool qrdma_command_hold_or_swap(QrdmaEngine *engine);

/* A command held back is due; the first makes it the current one. */
bool qrdma_command_take_due(QrdmaEngine *engine);
bool qrdma_command_is_due(QrdmaEngine *engine);

/*
 * The current one, that was held back, is done. True: the one whose answer
 * waits for it is the current again.
 */
bool qrdma_command_end_silent(QrdmaEngine *engine, enum qrdma_status status);

/* device.c */
enum qrdma_status qrdma_cmd_nop(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_query_device(QrdmaEngine *,
                                         const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_read_counters(QrdmaEngine *,
                                          const QrdmaCommandCall *);
/* gid.c */
enum qrdma_status qrdma_cmd_set_gid(QrdmaEngine *, const QrdmaCommandCall *);
/* hmc.c */
enum qrdma_status qrdma_cmd_add_sd(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_remove_sd(QrdmaEngine *, const QrdmaCommandCall *);
/* eq.c */
enum qrdma_status qrdma_cmd_create_eq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_modify_eq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_query_eq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_destroy_eq(QrdmaEngine *, const QrdmaCommandCall *);
/* cq.c */
enum qrdma_status qrdma_cmd_create_cq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_modify_cq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_query_cq(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_destroy_cq(QrdmaEngine *, const QrdmaCommandCall *);
/* qp.c */
enum qrdma_status qrdma_cmd_create_qp(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_modify_qp(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_query_qp(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_destroy_qp(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_resume_page_fault(QrdmaEngine *,
                                              const QrdmaCommandCall *);
/* mkey.c */
enum qrdma_status qrdma_cmd_create_mkey(QrdmaEngine *,
                                        const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_modify_mkey(QrdmaEngine *,
                                        const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_query_mkey(QrdmaEngine *, const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_destroy_mkey(QrdmaEngine *,
                                         const QrdmaCommandCall *);
enum qrdma_status qrdma_cmd_invalidate(QrdmaEngine *, const QrdmaCommandCall *);

#endif /* QRDMA_COMMAND_H */
