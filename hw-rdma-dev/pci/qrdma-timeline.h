/*
 * qrdma: the timeline as a file of trace events, which Perfetto opens.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef HW_RDMA_DEV_QRDMA_TIMELINE_H
#define HW_RDMA_DEV_QRDMA_TIMELINE_H

#include "hw/rdma-dev/engine/timeline.h"

typedef struct QrdmaTimelineFile QrdmaTimelineFile;

/*
 * Create the file, or empty the one that is there, and hold it against other
 * devices. `limit`: records, not 0; those beyond are not written. NULL with an
 * error that names the file.
 */
QrdmaTimelineFile *qrdma_timeline_open(const char *name, uint64_t limit,
                                       Error **errp);

/*
 * Accesses may stay in a buffer until the next record of another kind; all
 * other records are in the file on return. What cannot be written is reported
 * once, and ends the timeline.
 */
void qrdma_timeline_write(QrdmaTimelineFile *file,
                          const QrdmaTimelineRecord *record);

/* All that was written is in the file. NULL: nothing to do; so with close. */
void qrdma_timeline_flush(QrdmaTimelineFile *file);

/* Complete the file, so that it is JSON as a whole, and free `file`. */
void qrdma_timeline_close(QrdmaTimelineFile *file);

#endif /* HW_RDMA_DEV_QRDMA_TIMELINE_H */
