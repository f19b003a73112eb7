/*
 * qrdma: what an mkey lets through and what it refuses, on the side that made
 * the request and on the side that answers; page faults.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/module.h"
#include "qrdma-queues.h"

#define GROUP       "qrdma-access"
#define START       0x40000000ull
#define TABLE       64          /* first PBLE of the table under test */
#define INDEX       0x33
#define PAGES       8
#define REMOTE      2           /* index of a second key to all memory */
#define NO_MEMORY   0x200000000000ull

typedef struct Access {
    QRdmaBench bench;
    QRdma *q;
    uint64_t pages;         /* PAGES pages behind the table */
    uint64_t buffer;        /* the other end of the transfers */
    uint32_t rkey;          /* to all memory, for the other end */
    struct qrdma_mkc mkc;   /* a good one, not created yet */
} Access;

/* Given 8 pages, all present, and a level 1 mkey context that maps them. */
static void access_init(Access *a, QRdma *q)
{
    struct qrdma_mkc remote = qrdma_mkc_all_memory(REMOTE, QRDMA_TEST_PD);

    a->q = q;
    qrdma_bench_init(&a->bench, q);
    qrdma_add_direct_sd(q, 0);
    a->rkey = qrdma_bench_mkey(&a->bench, REMOTE, &remote);
    a->pages = qrdma_alloc(q, PAGES * QRDMA_PAGE);
    a->buffer = qrdma_alloc(q, PAGES * QRDMA_PAGE);
    for (unsigned i = 0; i < PAGES; i++) {
        qrdma_pble_write(q, TABLE + i, (a->pages + i * QRDMA_PAGE) |
                         QRDMA_PBLE_PRESENT);
    }
    a->mkc = qrdma_mkc_table(INDEX, QRDMA_TEST_PD, 1, 12, START,
                             PAGES * QRDMA_PAGE, TABLE, PAGES);
}

static struct qrdma_send_wqe request(enum qrdma_send_opcode opcode,
                                     uint64_t address, uint32_t key)
{
    return (struct qrdma_send_wqe) {
        .opcode = opcode,
        .remote_address = cpu_to_le64(address),
        .remote_key = cpu_to_le32(key),
    };
}

/* -------------------------------------------------------------- refusals */

/* One way in which a good access becomes a bad one. */
typedef struct Refusal {
    const char *what;
    enum qrdma_access_error error;
    uint64_t address;       /* of the access; 0: START + 16 */
    uint32_t length;        /* 0: 8 */
    uint32_t key;           /* 0: the mkey's */
    /* A field of the context to overwrite, before the mkey is created. */
    size_t offset;
    size_t size;
    uint64_t value;
    uint64_t pble;          /* not 0: put this into PBLE 0 */
} Refusal;

#define RIGHTS_BUT(right) \
    ((QRDMA_MKEY_LOCAL_WRITE | QRDMA_MKEY_REMOTE_READ | \
      QRDMA_MKEY_REMOTE_WRITE | QRDMA_MKEY_REMOTE_ATOMIC) & ~(right))

/* Held against an access that writes to the mkey's memory. */
static const Refusal refusals[] = {
    { "no such mkey", QRDMA_ACCESS_NO_KEY, .key = 0x7f00 },
    { "index 0", QRDMA_ACCESS_NO_KEY, .key = 0x33 },
    { "index beyond the limit", QRDMA_ACCESS_NO_KEY, .key = UINT32_MAX },
    { "variant", QRDMA_ACCESS_VARIANT, .key = INDEX << 8 | 0x34 },
    { "free", QRDMA_ACCESS_FREE,
      .size = 4, .value = QRDMA_MKEY_FREE | RIGHTS_BUT(0) },
    { "PD", QRDMA_ACCESS_PD, .offset = 0x08, .size = 4, .value = 8 },
    { "QP", QRDMA_ACCESS_QP, .offset = 0x0c, .size = 4, .value = 999 },
    { "no rights", QRDMA_ACCESS_RIGHTS, .size = 4, .value = 0 },
    { "a byte before the region", QRDMA_ACCESS_RANGE, START - 1, 8 },
    { "a byte after the region", QRDMA_ACCESS_RANGE,
      START + PAGES * QRDMA_PAGE - 7, 8 },
    { "beyond the region", QRDMA_ACCESS_RANGE, START + PAGES * QRDMA_PAGE, 1 },
    { "address 0", QRDMA_ACCESS_RANGE, 1, 8 },
    { "address that wraps", QRDMA_ACCESS_RANGE, UINT64_MAX - 3, 8 },
    { "absent page", QRDMA_ACCESS_NOT_PRESENT, .pble = NO_MEMORY },
    { "PBLE with reserved bits", QRDMA_ACCESS_BAD_ENTRY,
      .pble = 0x100000 | QRDMA_PBLE_PRESENT | 1 << 11 },
    { "page that may only be read", QRDMA_ACCESS_RIGHTS,
      .pble = 0x100000 | QRDMA_PBLE_READ },
    { "no memory behind the page", QRDMA_ACCESS_DMA,
      .pble = NO_MEMORY | QRDMA_PBLE_PRESENT },
};

static uint32_t refusal_key(const Refusal *r)
{
    return r->key ? r->key : qrdma_key(INDEX);
}

static uint64_t refusal_address(const Refusal *r)
{
    return r->address ? r->address : START + 16;
}

static uint32_t refusal_length(const Refusal *r)
{
    return r->length ? r->length : 8;
}

static void refusal_setup(Access *a, const Refusal *r)
{
    struct qrdma_mkc mkc = a->mkc;
    uint64_t value = cpu_to_le64(r->value);

    memcpy((uint8_t *)&mkc + r->offset, &value, r->size);
    qrdma_bench_mkey(&a->bench, INDEX, &mkc);
    if (r->pble) {
        qrdma_pble_write(a->q, TABLE, r->pble);
    }
    qrdma_write_pattern(a->q, a->buffer, 64, 1);
}

/* The requester's own segment: its CQE says key, address and reason. */
static void test_local(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const Refusal *r = &refusals[i];
        struct qrdma_sge sge = qrdma_sge(refusal_address(r),
                                         refusal_length(r), refusal_key(r));
        struct qrdma_cqe cqe;
        Access a;

        g_test_message("%s", r->what);
        access_init(&a, q);
        refusal_setup(&a, r);
        /* A read writes to the requester's segment. */
        qrdma_post(q, &a.bench.a,
                   request(QRDMA_SEND_OP_READ, a.buffer, a.rkey), &sge, 1);
        cqe = qrdma_cq_expect(q, &a.bench.cq_a,
                              QRDMA_CQE_LOCAL_PROTECTION_ERROR);

        g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, r->error);
        g_assert_cmphex(le32_to_cpu(cqe.key), ==, refusal_key(r));
        qrdma_assert_zero(q, a.pages, PAGES * QRDMA_PAGE);
    }
}

/*
 * The responder's memory: the requester's CQE says no more than that access was
 * refused; the event at the responder's says key, QP, address and reason.
 */
static void test_remote(void *obj, void *data, QGuestAllocator *alloc)
{
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
        const Refusal *r = &refusals[i];
        struct qrdma_sge sge;
        struct qrdma_cqe cqe;
        struct qrdma_eqe eqe;
        Access a;

        g_test_message("%s", r->what);
        access_init(&a, q);
        refusal_setup(&a, r);
        sge = qrdma_sge(a.buffer, refusal_length(r), a.bench.local_key);
        qrdma_post(q, &a.bench.a,
                   request(QRDMA_SEND_OP_WRITE, refusal_address(r),
                           refusal_key(r)), &sge, 1);
        cqe = qrdma_cq_expect(q, &a.bench.cq_a,
                              QRDMA_CQE_REMOTE_ACCESS_ERROR);
        g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, 0);

        eqe = qrdma_eq_expect(q, &a.bench.async,
                              QRDMA_EVENT_QP_ACCESS_ERROR);
        g_assert_cmpuint(le32_to_cpu(eqe.number), ==, a.bench.b.number);
        g_assert_cmphex(le32_to_cpu(eqe.key), ==, refusal_key(r));
        g_assert_cmphex(le64_to_cpu(eqe.address), ==, refusal_address(r));
        g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, r->error);
        g_assert_cmphex(eqe.flags, ==, QRDMA_EVENT_FLAG_WRITE |
                        QRDMA_EVENT_FLAG_RESPONDER | QRDMA_EVENT_FLAG_REMOTE);
        qrdma_assert_zero(q, a.pages, PAGES * QRDMA_PAGE);
    }
}

/* A receive buffer that is refused: the receiver's fault, not the sender's. */
static void test_receive_buffer(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_sge from, to;
    struct qrdma_cqe cqe;

    access_init(&a, obj);
    from = qrdma_sge(a.buffer, 8, a.bench.local_key);
    to = qrdma_sge(START, 8, 0x7f00);
    qrdma_post_receive(a.q, &a.bench.b, &to, 1);
    qrdma_post(a.q, &a.bench.a, request(QRDMA_SEND_OP_SEND, 0, 0), &from, 1);
    cqe = qrdma_cq_wait(a.q, &a.bench.cq_b);
    g_assert_cmpint(cqe.status, ==, QRDMA_CQE_LOCAL_ACCESS_ERROR);
    g_assert_cmpint(le16_to_cpu(cqe.syndrome), ==, QRDMA_ACCESS_NO_KEY);
    qrdma_cq_expect(a.q, &a.bench.cq_a, QRDMA_CQE_REMOTE_OPERATION_ERROR);
}

/* Each remote right opens its own operation, and no other. */
static void test_rights(void *obj, void *data, QGuestAllocator *alloc)
{
    static const struct {
        enum qrdma_send_opcode opcode;
        uint32_t right;
    } table[] = {
        { QRDMA_SEND_OP_READ, QRDMA_MKEY_REMOTE_READ },
        { QRDMA_SEND_OP_WRITE, QRDMA_MKEY_REMOTE_WRITE },
        { QRDMA_SEND_OP_FETCH_ADD, QRDMA_MKEY_REMOTE_ATOMIC },
    };
    QRdma *q = obj;

    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        for (int allowed = 0; allowed < 2; allowed++) {
            struct qrdma_sge sge;
            Access a;

            access_init(&a, q);
            a.mkc.flags = cpu_to_le32(allowed
                ? table[i].right | QRDMA_MKEY_LOCAL_WRITE
                : RIGHTS_BUT(table[i].right));
            qrdma_bench_mkey(&a.bench, INDEX, &a.mkc);
            sge = qrdma_sge(a.buffer, 8, a.bench.local_key);
            qrdma_post(q, &a.bench.a,
                       request(table[i].opcode, START, qrdma_key(INDEX)),
                       &sge, 1);
            g_assert_cmpint(qrdma_cq_wait(q, &a.bench.cq_a).status, ==,
                            allowed ? QRDMA_CQE_SUCCESS
                                    : QRDMA_CQE_REMOTE_ACCESS_ERROR);
        }
    }
}

/* A key bound to a QP works for that QP. */
static void test_bound_qp(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;

    access_init(&a, obj);
    a.mkc.qpn = cpu_to_le32(a.bench.b.number);
    qrdma_bench_mkey(&a.bench, INDEX, &a.mkc);
    g_assert_cmpint(qrdma_bench_write(&a.bench, a.buffer, START,
                                      qrdma_key(INDEX), 8), ==,
                    QRDMA_CQE_SUCCESS);
}

/* A message that meets an absent page writes nothing on it, nor beyond. */
static void test_partly_absent(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;

    access_init(&a, obj);
    qrdma_pble_write(a.q, TABLE + 3, 0);
    qrdma_bench_mkey(&a.bench, INDEX, &a.mkc);
    qrdma_write_pattern(a.q, a.buffer, PAGES * QRDMA_PAGE, 4);
    g_assert_cmpint(qrdma_bench_write(&a.bench, a.buffer, START,
                                      qrdma_key(INDEX), PAGES * QRDMA_PAGE),
                    ==, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    qrdma_assert_zero(a.q, a.pages + 3 * QRDMA_PAGE, 5 * QRDMA_PAGE);
}

/* Given a destroyed mkey, its key opens nothing. */
static void test_destroyed(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe eqe;

    access_init(&a, obj);
    qrdma_bench_mkey(&a.bench, INDEX, &a.mkc);
    qrdma_command_ok(a.q, QRDMA_CMD_DESTROY_MKEY, INDEX, NULL, 0, NULL, 0);
    g_assert_cmpint(qrdma_bench_write(&a.bench, a.buffer, START,
                                      qrdma_key(INDEX), 8), ==,
                    QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_NO_KEY);
}

/* Case 51. Empty segments touch no mkey, and there may be many. */
static void test_empty_segments(void *obj, void *data, QGuestAllocator *alloc)
{
    struct qrdma_sge sge[QRDMA_MAX_SGE];
    Access a;

    access_init(&a, obj);
    for (unsigned i = 0; i < QRDMA_MAX_SGE; i++) {
        sge[i] = qrdma_sge(UINT64_MAX, 0, UINT32_MAX);
    }
    sge[14] = qrdma_sge(a.buffer, 8, a.bench.local_key);
    qrdma_write_pattern(a.q, a.buffer, 8, 2);
    qrdma_post(a.q, &a.bench.a,
               request(QRDMA_SEND_OP_WRITE, a.pages, a.rkey), sge,
               QRDMA_MAX_SGE);
    qrdma_cq_expect(a.q, &a.bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(a.q, a.pages, 8, 2);
}

/* ------------------------------------------------------------ page faults */

/* Given an on-demand mkey whose page 2 is absent. */
static void fault_init(Access *a, QRdma *q)
{
    access_init(a, q);
    a->mkc.flags |= cpu_to_le32(QRDMA_MKEY_ON_DEMAND);
    qrdma_pble_write(q, TABLE + 2, 0);
    qrdma_bench_mkey(&a->bench, INDEX, &a->mkc);
    qrdma_write_pattern(q, a->buffer, PAGES * QRDMA_PAGE, 6);
}

static void post_faulting_write(Access *a)
{
    struct qrdma_sge sge = qrdma_sge(a->buffer, 4 * QRDMA_PAGE,
                                     a->bench.local_key);

    qrdma_post(a->q, &a->bench.a,
               request(QRDMA_SEND_OP_WRITE, START, qrdma_key(INDEX)),
               &sge, 1);
}

static void load_page(Access *a, unsigned page)
{
    struct qrdma_umr_wqe wqe = { .key = cpu_to_le32(qrdma_key(INDEX)) };
    uint64_t unit[8];

    for (unsigned i = 0; i < PAGES; i++) {
        unit[i] = cpu_to_le64((a->pages + i * QRDMA_PAGE) |
                              QRDMA_PBLE_PRESENT);
    }
    g_assert_cmpuint(page, <, PAGES);
    g_assert_cmpint(qrdma_bench_umr(&a->bench, wqe, unit, sizeof(unit)), ==,
                    QRDMA_STATUS_OK);
}

static enum qrdma_status resume(Access *a, uint32_t qpn, uint32_t token,
                                bool failed)
{
    struct qrdma_resume input = {
        .token = cpu_to_le32(token),
        .failed = cpu_to_le32(failed),
    };

    return qrdma_command(a->q, QRDMA_CMD_RESUME_PAGE_FAULT, qpn,
                         &input, sizeof(input), NULL, 0);
}

/*
 * When a write meets the absent page, then the requester waits and an event
 * says where; when the page has been loaded and the fault resumed, the write
 * ends as if nothing had happened.
 */
static void test_fault_resumed(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe eqe;
    uint32_t qpn;

    fault_init(&a, obj);
    post_faulting_write(&a);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    qpn = le32_to_cpu(eqe.number);
    g_assert_cmpuint(qpn, ==, a.bench.a.number);
    g_assert_cmphex(le32_to_cpu(eqe.key), ==, qrdma_key(INDEX));
    g_assert_cmphex(le64_to_cpu(eqe.address), ==, START + 2 * QRDMA_PAGE);
    g_assert_cmpuint(le32_to_cpu(eqe.length), >, 0);
    g_assert_cmphex(eqe.flags, ==,
                    QRDMA_EVENT_FLAG_WRITE | QRDMA_EVENT_FLAG_REMOTE);
    qrdma_cq_expect_none(a.q, &a.bench.cq_a);
    g_assert_cmphex(le32_to_cpu(qrdma_qp_query(a.q, qpn).flags) &
                    QRDMA_QP_SUSPENDED, !=, 0);

    load_page(&a, 2);
    g_assert_cmpint(resume(&a, qpn, le32_to_cpu(eqe.token), false), ==,
                    QRDMA_STATUS_OK);
    qrdma_cq_expect(a.q, &a.bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(a.q, a.pages, 4 * QRDMA_PAGE, 6);
    g_assert_cmphex(le32_to_cpu(qrdma_qp_query(a.q, qpn).flags) &
                    QRDMA_QP_SUSPENDED, ==, 0);
}

/* A fault on the requester's own memory. */
static void test_local_fault(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_sge sge;
    struct qrdma_eqe eqe;

    fault_init(&a, obj);
    sge = qrdma_sge(START, 4 * QRDMA_PAGE, qrdma_key(INDEX));
    qrdma_post(a.q, &a.bench.a,
               request(QRDMA_SEND_OP_READ, a.buffer, a.rkey), &sge, 1);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    g_assert_cmpuint(le32_to_cpu(eqe.number), ==, a.bench.a.number);
    g_assert_cmphex(eqe.flags, ==, QRDMA_EVENT_FLAG_WRITE);

    load_page(&a, 2);
    g_assert_cmpint(resume(&a, a.bench.a.number, le32_to_cpu(eqe.token),
                           false), ==, QRDMA_STATUS_OK);
    qrdma_cq_expect(a.q, &a.bench.cq_a, QRDMA_CQE_SUCCESS);
    qrdma_assert_pattern(a.q, a.pages, 4 * QRDMA_PAGE, 6);
}

/* Resumed without repair: the same fault, with another token. */
static void test_fault_again(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe first, second;

    fault_init(&a, obj);
    post_faulting_write(&a);
    first = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    g_assert_cmpint(resume(&a, a.bench.a.number, le32_to_cpu(first.token),
                           false), ==, QRDMA_STATUS_OK);
    second = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);

    g_assert_cmphex(le64_to_cpu(second.address), ==,
                    le64_to_cpu(first.address));
    g_assert_cmpuint(le32_to_cpu(second.token), !=,
                     le32_to_cpu(first.token));
    /* The first token names nothing any more. */
    g_assert_cmpint(resume(&a, a.bench.a.number, le32_to_cpu(first.token),
                           false), ==, QRDMA_STATUS_BAD_TOKEN);
}

/* Resumed with failure: the access ends as any refused one. */
static void test_fault_failed(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe eqe;

    fault_init(&a, obj);
    post_faulting_write(&a);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    g_assert_cmpint(resume(&a, a.bench.a.number, le32_to_cpu(eqe.token),
                           true), ==, QRDMA_STATUS_OK);

    qrdma_cq_expect(a.q, &a.bench.cq_a, QRDMA_CQE_REMOTE_ACCESS_ERROR);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_QP_ACCESS_ERROR);
    g_assert_cmpint(le16_to_cpu(eqe.syndrome), ==, QRDMA_ACCESS_UNRESOLVED);
    g_assert_cmphex(le64_to_cpu(eqe.address), ==, START + 2 * QRDMA_PAGE);
}

/* Resume names a QP and a token that belong together. */
static void test_resume_refused(void *obj, void *data, QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe eqe;
    uint32_t token;

    fault_init(&a, obj);
    post_faulting_write(&a);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    token = le32_to_cpu(eqe.token);
    g_assert_cmpint(resume(&a, a.bench.a.number, token + 1, false), ==,
                    QRDMA_STATUS_BAD_TOKEN);
    g_assert_cmpint(resume(&a, a.bench.b.number, token, false), ==,
                    QRDMA_STATUS_BAD_TOKEN);
    g_assert_cmpint(resume(&a, 999, token, false), ==,
                    QRDMA_STATUS_NO_OBJECT);
    qrdma_cq_expect_none(a.q, &a.bench.cq_a);
}

/* Given a QP that waits for a page, when it is destroyed, nothing follows. */
static void test_destroy_suspended(void *obj, void *data,
                                   QGuestAllocator *alloc)
{
    Access a;
    struct qrdma_eqe eqe;

    fault_init(&a, obj);
    post_faulting_write(&a);
    eqe = qrdma_eq_expect(a.q, &a.bench.async, QRDMA_EVENT_PAGE_FAULT);
    qrdma_command_ok(a.q, QRDMA_CMD_DESTROY_QP, a.bench.a.number, NULL, 0,
                     NULL, 0);
    g_assert_cmpint(resume(&a, a.bench.a.number, le32_to_cpu(eqe.token),
                           false), ==, QRDMA_STATUS_NO_OBJECT);
    qrdma_assert_zero(a.q, a.pages + 2 * QRDMA_PAGE, QRDMA_PAGE);
    /* And the card goes on. */
    qrdma_command_ok(a.q, QRDMA_CMD_NOP, 0, NULL, 0, NULL, 0);
}

static void register_access_tests(void)
{
    static QOSGraphTestOptions no_cache = {
        .edge.extra_device_opts = "pble-cache=off",
    };

    qos_node_produces("qrdma", GROUP);
    qos_add_test("local", GROUP, test_local, NULL);
    qos_add_test("remote", GROUP, test_remote, NULL);
    qos_add_test("remote-no-cache", GROUP, test_remote, &no_cache);
    qos_add_test("receive-buffer", GROUP, test_receive_buffer, NULL);
    qos_add_test("rights", GROUP, test_rights, NULL);
    qos_add_test("bound-qp", GROUP, test_bound_qp, NULL);
    qos_add_test("partly-absent", GROUP, test_partly_absent, NULL);
    qos_add_test("destroyed", GROUP, test_destroyed, NULL);
    qos_add_test("empty-segments", GROUP, test_empty_segments, NULL);
    qos_add_test("fault-resumed", GROUP, test_fault_resumed, NULL);
    qos_add_test("local-fault", GROUP, test_local_fault, NULL);
    qos_add_test("fault-again", GROUP, test_fault_again, NULL);
    qos_add_test("fault-failed", GROUP, test_fault_failed, NULL);
    qos_add_test("resume-refused", GROUP, test_resume_refused, NULL);
    qos_add_test("destroy-suspended", GROUP, test_destroy_suspended,
                 NULL);
}

libqos_init(register_access_tests);
