/*
 * qrdma engine tests: single steps beside many objects, to be counted by
 * callgrind.
 *
 *   scale MKEYS QPS ENTRIES
 *
 * One call of measure() a step, its name printed; scale_test.py compares the
 * counts of a card that has few objects and of one that has many.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "test-link.h"

#define TIMES 64u                       /* a step is done, to be counted */
#define FIRST_KEY 1000u
#define FIRST_QPN 0x100u
#define REGION_START 0x7f0000000000ull
#define TABLES 0x40000u                 /* PBLE index: SD 1 on */
#define TABLE_MEMORY 0x1000000000ull
#define FAR_FUTURE 1000000000u

typedef struct Scene {
    TestLink *link;
    uint32_t objects;                   /* mkeys, QPs or entries */
    uint32_t next;                      /* number of the next one */
    QrdmaMkc mkc;
    TestQp qp;                          /* what QPs are made like */
} Scene;

static void __attribute__((noinline, used)) measure(void (*step)(Scene *),
                                                    Scene *scene)
{
    step(scene);
}

static void count(const char *name, void (*step)(Scene *), Scene *scene)
{
    printf("%s\n", name);
    measure(step, scene);
}

/* The i-th of many, all over them. */
static uint32_t some(const Scene *scene, uint32_t i)
{
    return i * 2654435761u % scene->objects;
}

/* -------------------------------------------------------------------- mkeys */

static void create_mkeys(Scene *scene, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        g_assert_cmpint(region_create(scene->link->card, scene->next++,
                                      &scene->mkc), ==, QRDMA_STATUS_OK);
    }
}

static void create_some_mkeys(Scene *scene)
{
    create_mkeys(scene, TIMES);
}

static void destroy_some_mkeys(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        card_must(scene->link->card, QRDMA_CMD_DESTROY_MKEY, --scene->next,
                  NULL, 0);
    }
}

static void access_mkeys(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        QrdmaAccess access;

        g_assert_cmpint(region_access(scene->link->card,
                                      REGION_KEY(FIRST_KEY + some(scene, i)),
                                      QRDMA_REMOTE_READ, REGION_START, 8,
                                      &access), ==, QRDMA_ACCESS_GRANTED);
    }
}

static void change_mkeys(Scene *scene)
{
    uint64_t pbles[QRDMA_PBLES_PER_UNIT];

    for (uint32_t i = 0; i < QRDMA_PBLES_PER_UNIT; i++) {
        pbles[i] = CARD_MEMORY_BASE | QRDMA_PBLE_PRESENT;
    }
    for (uint32_t i = 0; i < TIMES; i++) {
        TestUmr umr = {
            .key = REGION_KEY(FIRST_KEY + some(scene, i)),
            .units = 1,
            .pbles = pbles,
        };

        g_assert_cmpint(region_umr(scene->link->card, &umr), ==,
                        QRDMA_STATUS_OK);
    }
}

/* Without the cache: how many keys find room in it is another question. */
static TestLink *new_link(uint64_t packet_latency)
{
    QrdmaConfig config = card_default_config();

    config.pble_cache = false;
    config.packet_latency = packet_latency;
    return link_new(&config);
}

static void print_memory(uint32_t mkeys)
{
    struct mallinfo2 info = mallinfo2();

    printf("# memory: %zu bytes with %u mkeys\n", info.uordblks, mkeys);
}

/* All of them over one table: it is the mkeys that are many. */
static void count_mkeys(uint32_t mkeys)
{
    Scene scene = {
        .link = new_link(0),
        .objects = mkeys,
        .next = FIRST_KEY,
        .mkc = region_mkc(REGION_START, 8 * LINK_PAGE, 12, 1, 0),
    };

    print_memory(0);
    create_mkeys(&scene, mkeys);
    print_memory(mkeys);
    count("change a mkey by UMR", change_mkeys, &scene);
    count("access through a mkey", access_mkeys, &scene);
    count("create a mkey", create_some_mkeys, &scene);
    count("destroy a mkey", destroy_some_mkeys, &scene);
    link_free(scene.link);
}

/* ---------------------------------------------------------------------- QPs */

/* In pairs over the same rings, which are the first pair's. */
static void create_qp(Scene *scene)
{
    TestLink *link = scene->link;
    uint32_t number = scene->next++;
    struct qrdma_qpc in = {
        .type = QRDMA_QP_RC,
        .pd = qrdma_le32(REGION_PD),
        .send_cqn = qrdma_le32(scene->qp.cq->number),
        .receive_cqn = qrdma_le32(scene->qp.cq->number),
        .doorbell_page = qrdma_le32(scene->qp.page),
        .send_ring = link_ring(scene->qp.send_ring, LINK_LOG_ENTRIES,
                               scene->qp.log_send_stride),
        .receive_ring = link_ring(scene->qp.receive_ring, LINK_LOG_ENTRIES,
                                  scene->qp.log_receive_stride),
    };
    TestQp qp = scene->qp;

    card_must(link->card, QRDMA_CMD_CREATE_QP, number, &in, sizeof(in));
    qp.number = number;
    link_connect(link, &qp, number ^ 1);
}

static void create_some_qps(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        create_qp(scene);
    }
}

static void destroy_some_qps(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        card_must(scene->link->card, QRDMA_CMD_DESTROY_QP, --scene->next,
                  NULL, 0);
    }
}

/* One WQE more of the QP, which waits for its packet then. */
static void send_on(Scene *scene, uint32_t number, uint32_t counter)
{
    link_doorbell(scene->link, scene->qp.page, QRDMA_DOORBELL_SEND, number,
                  counter);
    fake_host_run(scene->link->host);
}

static void send_on_some(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        send_on(scene, scene->next - TIMES + i, 1);
    }
}

/* Packets of the others arrive later, all at the same time. */
static void arrive(Scene *scene)
{
    fake_host_advance(scene->link->host, FAR_FUTURE);
}

static void put_write(Scene *scene, const TestBuffer *to)
{
    uint8_t wqe[QRDMA_MAX_SEND_WQE] = { 0 };
    TestSend write = {
        .opcode = QRDMA_SEND_OP_WRITE,
        .flags = QRDMA_WQE_INLINE,
        .inline_length = 8,
        .inline_data = "scale up",
        .remote_address = to->address,
        .remote_key = to->key,
    };

    link_send_wqe(&write, wqe);
    memcpy(card_pointer(scene->link->card, scene->qp.send_ring, sizeof(wqe)),
           wqe, sizeof(wqe));
}

static void count_qps(uint32_t qps)
{
    Scene scene = {
        .link = new_link(FAR_FUTURE),
        .objects = qps,
        .next = FIRST_QPN,
    };
    TestBuffer *to = link_buffer(scene.link, 1, 12, 0, LINK_PAGE, 0);

    scene.qp = scene.link->a;
    put_write(&scene, to);
    for (uint32_t i = 0; i < qps; i++) {
        create_qp(&scene);
    }
    for (uint32_t i = 0; i < qps; i++) {
        send_on(&scene, FIRST_QPN + i, 1);
    }
    count("create and connect a QP", create_some_qps, &scene);
    count("send beside QPs that wait", send_on_some, &scene);
    count("destroy a QP", destroy_some_qps, &scene);
    arrive(&scene);
    g_assert_cmpuint(scene.link->engine->counters.packets, ==, qps);
    link_buffer_free(to);
    link_free(scene.link);
}

/* ------------------------------------------------------------------ entries */

static void access_pages(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        uint64_t page = some(scene, i);
        QrdmaAccess access;

        g_assert_cmpint(region_access(scene->link->card, REGION_KEY(FIRST_KEY),
                                      QRDMA_REMOTE_READ,
                                      REGION_START + page * LINK_PAGE, 8,
                                      &access), ==, QRDMA_ACCESS_GRANTED);
        g_assert_cmphex(access.bus_address, ==, page * LINK_PAGE);
    }
}

static void change_pages(Scene *scene)
{
    for (uint32_t i = 0; i < TIMES; i++) {
        uint64_t unit = some(scene, i) / QRDMA_PBLES_PER_UNIT;
        uint64_t pbles[QRDMA_PBLES_PER_UNIT];
        TestUmr umr = {
            .key = REGION_KEY(FIRST_KEY),
            .flags = QRDMA_UMR_TRANSLATION_OFFSET,
            .offset = unit * QRDMA_TABLE_UNIT,
            .units = 1,
            .pbles = pbles,
        };

        for (uint32_t j = 0; j < QRDMA_PBLES_PER_UNIT; j++) {
            pbles[j] = (unit * QRDMA_PBLES_PER_UNIT + j) * LINK_PAGE |
                       QRDMA_PBLE_PRESENT;
        }
        g_assert_cmpint(region_umr(scene->link->card, &umr), ==,
                        QRDMA_STATUS_OK);
    }
}

/* SDs from 1 on, for tables of so many PBLEs. */
static void back_tables(TestLink *link, uint64_t pbles)
{
    uint64_t sds = (pbles + QRDMA_PBLES_PER_SD - 1) / QRDMA_PBLES_PER_SD;

    fake_host_add_memory(link->host, TABLE_MEMORY, sds << QRDMA_SD_SHIFT);
    for (uint64_t i = 0; i < sds; i++) {
        struct qrdma_sd in = {
            .type = qrdma_le32(QRDMA_SD_DIRECT),
            .address = qrdma_le64(TABLE_MEMORY + (i << QRDMA_SD_SHIFT)),
        };

        card_must(link->card, QRDMA_CMD_ADD_SD, 1 + i, &in, sizeof(in));
    }
}

static void count_entries(uint32_t entries, unsigned level)
{
    Scene scene = {
        .link = new_link(0),
        .objects = entries,
        .mkc = region_mkc(REGION_START, (uint64_t)entries * LINK_PAGE, 12,
                          level, TABLES),
    };
    uint64_t root = qrdma_pble_footprint(level, entries);
    uint64_t pbles = level == 2 ? root + entries : root;

    back_tables(scene.link, pbles + QRDMA_LEAF_PBLES);
    if (level == 2) {
        region_set_leaves(scene.link->card, &scene.mkc,
                          TABLES + qrdma_pble_round_to_units(root));
    }
    g_assert_cmpint(region_create(scene.link->card, FIRST_KEY, &scene.mkc), ==,
                    QRDMA_STATUS_OK);
    count(level == 1 ? "change a unit of a large region, level 1"
                     : "change a unit of a large region, level 2",
          change_pages, &scene);
    count(level == 1 ? "access a page of a large region, level 1"
                     : "access a page of a large region, level 2",
          access_pages, &scene);
    link_free(scene.link);
}

static uint32_t number(const char *text)
{
    return g_ascii_strtoull(text, NULL, 0);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: scale MKEYS QPS ENTRIES\n");
        return 2;
    }
    count_mkeys(number(argv[1]));
    count_qps(number(argv[2]));
    count_entries(number(argv[3]), 1);
    count_entries(number(argv[3]), 2);
    return 0;
}
