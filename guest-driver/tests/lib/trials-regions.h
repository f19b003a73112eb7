/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the trials in trials.c are made of, as far as it is about regions. */
#ifndef TRIALS_REGIONS_H
#define TRIALS_REGIONS_H

#include "trials.h"

/* Memory of the program: a level of the block list each. */
void begin_page(struct bench *bench);
void begin_level_1(struct bench *bench);
void begin_level_2(struct bench *bench);
void end_memory(struct bench *bench);
void prepare_user(struct bench *bench);
int reg_user(struct bench *bench);
bool undo_user(struct bench *bench);
int dereg(struct bench *bench);

/* From one memory to another. */
int rereg(struct bench *bench);
bool right_rereg(struct bench *bench, int error);
bool undo_rereg(struct bench *bench);
int rereg_rights(struct bench *bench);

/* So that reg_user() finds no room in the pool of block list entries. */
void begin_pool(struct bench *bench);
void prepare_pool(struct bench *bench);
bool undo_pool(struct bench *bench);
void end_pool(struct bench *bench);

/* A dma-buf. */
void begin_buffer(struct bench *bench);
void end_buffer(struct bench *bench);
void prepare_pinned(struct bench *bench);
void prepare_dynamic(struct bench *bench);
int reg_pinned(struct bench *bench);
int reg_dynamic(struct bench *bench);
bool right_buffer(struct bench *bench, int error);
bool undo_region(struct bench *bench);

/* A dma-buf that is revoked. */
void prepare_pinned_buffer(struct bench *bench);
void prepare_dynamic_buffer(struct bench *bench);
int revoke_buffer(struct bench *bench);
bool undo_revoked(struct bench *bench);

/* A region that moves. */
void begin_region(struct bench *bench);
void end_region(struct bench *bench);
int move(struct bench *bench);
bool right_region(struct bench *bench, int error);
void prepare_moved(struct bench *bench);
int access_pages(struct bench *bench);
bool undo_access(struct bench *bench);

#endif
