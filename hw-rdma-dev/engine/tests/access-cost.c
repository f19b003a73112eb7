/*
 * qrdma engine tests: accesses and nothing else, to be counted by callgrind.
 *
 * One call of measure() a case: keys of each level, with the cache of PBLEs and
 * without; bare accesses, then RDMA writes through queues. cost_test.py has
 * callgrind collect inside measure() only, and wants the names in their order.
 *
 *   access-cost [--audit]
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <stdio.h>

#include "test-link.h"

#define PAGES 600u                      /* level 2: two leaves */
#define LENGTH (PAGES * LINK_PAGE)
#define ACCESSES 10000u
#define MESSAGES 100u
#define MESSAGE_LENGTH (16 * LINK_PAGE)
#define STRIDE 37u                      /* no neighbours in a row */
#define LEVELS 3

typedef struct Subject {
    TestLink *link;
    TestBuffer *from;
    TestBuffer *to;
} Subject;

static void access_pages(Subject *subject)
{
    for (uint64_t i = 0; i < ACCESSES; i++) {
        QrdmaAccessRequest request = {
            .key = subject->to->key,
            .pd = REGION_PD,
            .qpn = REGION_QPN,
            .kind = QRDMA_REMOTE_WRITE,
            .address = subject->to->address + i * STRIDE % PAGES * LINK_PAGE,
            .length = LINK_PAGE,
        };
        QrdmaAccess access;

        g_assert_cmpint(qrdma_access_begin(subject->link->engine, &request,
                                           &access), ==, QRDMA_ACCESS_GRANTED);
        qrdma_access_end(subject->link->engine, &access);
    }
}

static void write_messages(Subject *subject)
{
    TestLink *link = subject->link;

    for (uint64_t i = 0; i < MESSAGES; i++) {
        uint64_t offset = i * MESSAGE_LENGTH % (LENGTH - MESSAGE_LENGTH);
        TestSend write = {
            .opcode = QRDMA_SEND_OP_WRITE,
            .flags = QRDMA_WQE_SIGNALED,
            .segments = 1,
            .segment = { link_segment(subject->from, offset, MESSAGE_LENGTH) },
            .remote_address = subject->to->address + offset,
            .remote_key = subject->to->key,
        };

        link_post_send(link, &link->a, &write);
        fake_host_settle(link->host);
        link_expect(link, &link->cq_a, QRDMA_CQE_OP_WRITE, QRDMA_CQE_SUCCESS);
    }
}

typedef struct Work {
    const char *name;
    void (*run)(Subject *subject);
    uint64_t packet_latency;
} Work;

static const Work works[] = {
    { "accesses", access_pages, 0 },
    { "writes", write_messages, 0 },
    { "writes that take time", write_messages, 1000 },
};

/* What is counted. Has to stay a function that callgrind can tell by name. */
static void __attribute__((noinline, used)) measure(const Work *work,
                                              Subject *subject)
{
    work->run(subject);
}

static TestBuffer *buffer_of(TestLink *link, unsigned level)
{
    /* Level 0: one page for all. */
    TestBuffer *buffer = link_buffer(link, level, level ? 12 : 22, 0, LENGTH,
                                     0);

    /* Its table was written when it existed already. */
    card_must(link->card, QRDMA_CMD_INVALIDATE_TRANSLATIONS, buffer->index,
              NULL, 0);
    return buffer;
}

static void try_case(const Work *work, unsigned level, bool cached, bool audit)
{
    QrdmaConfig config = card_default_config();
    Subject subject;

    config.pble_cache = cached;
    config.audit = audit;
    config.packet_latency = work->packet_latency;
    subject.link = link_new(&config);
    subject.from = buffer_of(subject.link, level);
    subject.to = buffer_of(subject.link, level);
    printf("%s, level %u, %s\n", work->name, level,
           cached ? "cached" : "not cached");
    measure(work, &subject);
    link_buffer_free(subject.from);
    link_buffer_free(subject.to);
    link_free(subject.link);
}

int main(int argc, char **argv)
{
    bool audit = argc > 1 && !strcmp(argv[1], "--audit");

    for (unsigned i = 0; i < G_N_ELEMENTS(works); i++) {
        for (unsigned level = 0; level < LEVELS; level++) {
            try_case(&works[i], level, true, audit);
            try_case(&works[i], level, false, audit);
        }
    }
    return 0;
}
