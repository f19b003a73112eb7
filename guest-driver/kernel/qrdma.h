/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * qrdma: driver of the emulated RDMA card. Structures and prototypes that the
 * files of the driver share. Memory regions have theirs in mr.h; layouts that
 * the card sees are in qrdma_hw.h.
 *
 * Locks, outermost first. Nothing takes one of them while it holds a later one.
 *
 *   dma_resv of a dma-buf	held by the exporter around move and revoke. Under
 *				it no allocation that may reclaim.
 *   locks of mr.h		memory regions, PBLE pool, UMR queue
 *   qp->lock			mutex: state changes of one user queue pair
 *   eq->drain (async EQ only)	mutex: who reads the asynchronous event queue
 *   cmdq->slots		semaphore: room in the command ring. A command may
 *				sleep; it may be issued under all of the above.
 *   eq->lock			spinlock, interrupts off: who reads a completion
 *				event queue. Completion handlers run under it.
 *   kernel queue locks		spinlocks, interrupts off: see struct
 *				qrdma_kernel_qp
 *   xarrays' own locks		interrupts off
 *   cmdq->lock			spinlock, interrupts off, innermost
 *
 * Interrupts: vector 0 carries command completions (hard interrupt) and the
 * asynchronous event queue (its thread); vector 1 + n carries completion event
 * queue n (hard interrupt).
 */
#ifndef QRDMA_H
#define QRDMA_H

#include <linux/completion.h>
#include <linux/etherdevice.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/uverbs_ioctl.h>

#include "limits.h"
#include "qrdma_hw.h"
#include "uapi/qrdma-abi.h"
#include "mr.h"

#define QRDMA_DRIVER_NAME	"qrdma"

/* The driver's own protection domain and doorbell page; users' begin at 1. */
#define QRDMA_DRIVER_PD			0
#define QRDMA_DRIVER_DOORBELL_PAGE	0

#define QRDMA_COMMAND_VECTOR	0
#define QRDMA_FIRST_CQ_VECTOR	1
#define QRDMA_PORT		1

struct qrdma_command_waiter;

/* The command ring; see cmd.c. */
struct qrdma_command_queue {
	struct semaphore slots;
	spinlock_t lock;		/* everything below */
	struct qrdma_command *ring;
	dma_addr_t ring_dma;
	void *buffers;			/* input and output of each slot */
	dma_addr_t buffers_dma;
	u32 entries;
	u32 producer;
	u32 consumer;
	struct qrdma_command_waiter **waiters;
	bool running;
};

struct qrdma_dev;

/* Read by the card, entry by entry, until the phase stops matching. */
struct qrdma_eq {
	struct qrdma_dev *dev;
	struct qrdma_eqe *ring;
	dma_addr_t ring_dma;
	u32 number;
	u32 log_entries;
	u32 consumer;
	u32 vector;
	int irq;
	spinlock_t lock;		/* completion EQs: consumer, handlers */
	struct mutex drain;		/* async EQ: consumer, handlers */
	void (*handle)(struct qrdma_dev *dev, const struct qrdma_eqe *eqe);
	char name[32];
};

struct qrdma_dev {
	struct ib_device ibdev;
	struct pci_dev *pdev;
	void __iomem *registers;
	void __iomem *doorbells;	/* page 0 only */
	phys_addr_t doorbells_base;	/* BAR 2 */
	u8 mac[ETH_ALEN];
	struct qrdma_limits limits;
	u32 max_ring_entries;

	unsigned long state;		/* bits QRDMA_STATE_* */
	struct delayed_work health;	/* looks for a fatal or vanished card */

	struct qrdma_command_queue cmdq;

	struct qrdma_eq async_eq;
	struct qrdma_eq *eqs;		/* completion EQs, num_eqs of them */
	u32 num_eqs;

	/*
	 * Objects by number. A number whose entry is reserved but empty belongs
	 * to an object that is being made or destroyed.
	 */
	struct xarray cqs;		/* struct qrdma_cq */
	u32 next_cqn;
	struct xarray qps;		/* struct qrdma_qp_base */
	u32 next_qpn;
	struct ida pds;
	struct ida doorbell_pages;

	struct net_device *netdev;

	/* Driver's memory-region half; its files know what is behind. */
	struct qrdma_pble_pool *pble_pool;
	struct qrdma_mkey_table *mkeys;
	struct qrdma_umr_queue *umr;
	struct qrdma_odp *odp;
};

#define QRDMA_STATE_DEAD	0	/* no command and no doorbell gets through any more */
#define QRDMA_STATE_REGISTERED	1	/* ib_core takes events */
#define QRDMA_STATE_UMR		2	/* qrdma_umr_device_dead() may be called */

/* A queue's ring as the card gets it, and what has to be given back. */
struct qrdma_ring_memory {
	struct qrdma_ring ring;
	struct qrdma_pble_alloc pbles;	/* level 1 */
	struct ib_umem *umem;		/* user rings */
	void *buffer;			/* kernel rings */
	dma_addr_t dma;
	size_t size;			/* bytes, whole pages */
};

struct qrdma_ucontext {
	struct ib_ucontext ibucontext;
	u32 doorbell_page;
	struct rdma_user_mmap_entry *doorbell_entry;
};

struct qrdma_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

/* What the event handlers need of a CQ, user's or driver's. */
struct qrdma_cq_base {
	u32 cqn;
	struct qrdma_eq *eq;
	void (*complete)(struct qrdma_cq_base *cq);		/* under eq->lock */
	void (*error)(struct qrdma_cq_base *cq, u16 syndrome);	/* under async_eq.drain */
};

struct qrdma_cq {
	struct ib_cq ibcq;
	struct qrdma_cq_base base;
	struct qrdma_ring_memory memory;
};

/* What the event handlers need of a QP, user's or driver's. */
struct qrdma_qp_base {
	u32 qpn;
	void (*event)(struct qrdma_qp_base *qp,
		      const struct qrdma_eqe *eqe);	/* under async_eq.drain */
};

struct qrdma_qp {
	struct ib_qp ibqp;
	struct qrdma_qp_base base;
	struct mutex lock;		/* state and attributes */
	enum ib_qp_state state;		/* as far as the driver knows */
	struct qrdma_ring_memory send;
	struct qrdma_ring_memory receive;
	struct ib_qp_cap cap;
	bool signal_all;
};

static inline struct qrdma_dev *to_qdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct qrdma_dev, ibdev);
}

static inline struct qrdma_ucontext *to_qucontext(struct ib_ucontext *context)
{
	return container_of(context, struct qrdma_ucontext, ibucontext);
}

static inline struct qrdma_pd *to_qpd(struct ib_pd *pd)
{
	return container_of(pd, struct qrdma_pd, ibpd);
}

static inline struct qrdma_cq *to_qcq(struct ib_cq *cq)
{
	return container_of(cq, struct qrdma_cq, ibcq);
}

static inline struct qrdma_qp *to_qqp(struct ib_qp *qp)
{
	return container_of(qp, struct qrdma_qp, ibqp);
}

/* ------------------------------------------------- main.c and device.c */

extern const struct ib_device_ops qrdma_device_ops;

/*
 * No more of this card: resets it so that it does no more DMA, wakes everybody
 * who waits for a command, calls qrdma_umr_device_dead() and tells users
 * (IB_EVENT_DEVICE_FATAL). Once; later calls do nothing. Any context.
 */
void qrdma_device_stop(struct qrdma_dev *dev);
/* The same, because of a fault: fatal error, gone from the bus, no answer. */
void qrdma_device_fail(struct qrdma_dev *dev, const char *reason);

static inline bool qrdma_device_dead(const struct qrdma_dev *dev)
{
	return test_bit(QRDMA_STATE_DEAD, &dev->state);
}

/*
 * Look at the card; one that is in fatal error or gone from the bus is failed.
 * True if it lives. Any context.
 */
bool qrdma_device_check(struct qrdma_dev *dev);

/*
 * How long the card may take to answer, in jiffies: after that it is failed. A
 * module parameter.
 */
unsigned long qrdma_answer_timeout(void);

/*
 * Create a card's object of a number that the driver holds to be free. A card
 * that still has the one before, whose destruction it only claimed, is made to
 * destroy it first: it refers to memory that is others' by now. Errors as
 * qrdma_command().
 */
int qrdma_create_object(struct qrdma_dev *dev, u16 create, u16 destroy,
			u32 number, const void *in, size_t in_length);
/*
 * Destroy a card's object. There is no way back for the caller, who is about to
 * free what the card uses: if the card refuses, the device is failed, and with
 * it reset. An object that the card does not know is as good as destroyed.
 */
void qrdma_destroy_object(struct qrdma_dev *dev, u16 opcode, u32 number);

/* Reset, then identity and ABI version. -ENODEV if it is not our card. */
int qrdma_device_reset(struct qrdma_dev *dev);
/* Read the limits and check that the driver can live with them. */
int qrdma_device_query(struct qrdma_dev *dev);
void qrdma_device_watch(struct qrdma_dev *dev);
void qrdma_device_unwatch(struct qrdma_dev *dev);

/* One 64-bit doorbell of the driver's page; @offset is QRDMA_DOORBELL_*. */
static inline void qrdma_doorbell(struct qrdma_dev *dev, u32 offset,
				  u32 number, u32 arm, u32 counter)
{
	u64 value = (u64)counter << QRDMA_DOORBELL_COUNTER_SHIFT |
		    (u64)arm << QRDMA_DOORBELL_ARM_SHIFT | number;

	/* Orders ring memory before the doorbell. */
	writeq(value, dev->doorbells + offset);
}

/* ---------------------------------------------------------------- cmd.c */

int qrdma_command_queue_init(struct qrdma_dev *dev);
void qrdma_command_queue_destroy(struct qrdma_dev *dev);
/* Take in what has completed. From the interrupt and from who polls. */
void qrdma_command_queue_process(struct qrdma_dev *dev);
/* The device is dead: everybody waiting gets -EIO. */
void qrdma_command_queue_fail(struct qrdma_dev *dev);

#define QRDMA_COMMAND_BUFFER	512	/* bytes a command may take or give */

/*
 * Issue one command and wait for its answer. May sleep; not interruptible.
 * @number is the object number. @in, @in_length: its input, copied (NULL, 0:
 * none). @out, @out_length: takes its output. Neither is more than
 * QRDMA_COMMAND_BUFFER bytes. @status, if not NULL, gets what the card
 * answered (enum qrdma_status).
 *
 * 0; -EIO when the device is dead; otherwise qrdma_status_to_errno().
 */
int qrdma_command_status(struct qrdma_dev *dev, u16 opcode, u32 number,
			 const void *in, size_t in_length,
			 void *out, size_t out_length, u16 *status);

static inline int qrdma_command(struct qrdma_dev *dev, u16 opcode, u32 number,
				const void *in, size_t in_length)
{
	return qrdma_command_status(dev, opcode, number, in, in_length,
				    NULL, 0, NULL);
}

static inline int qrdma_command_query(struct qrdma_dev *dev, u16 opcode,
				      u32 number, void *out, size_t out_length)
{
	return qrdma_command_status(dev, opcode, number, NULL, 0,
				    out, out_length, NULL);
}

/* Status of a command or syndrome of a UMR -> 0 or a negative errno. */
int qrdma_status_to_errno(u16 status);
const char *qrdma_status_name(u16 status);

/* ----------------------------------------------------------------- eq.c */

/* Locks and name of the asynchronous EQ; before the command queue starts. */
void qrdma_async_eq_prepare(struct qrdma_dev *dev);
int qrdma_eqs_init(struct qrdma_dev *dev);
void qrdma_eqs_destroy(struct qrdma_dev *dev);
irqreturn_t qrdma_async_interrupt(int irq, void *data);
irqreturn_t qrdma_async_thread(int irq, void *data);

/*
 * Handle every event that is in the queue now. When a destroy command has
 * completed, no event of the object is left after this: its number can be
 * used again. May sleep.
 */
void qrdma_eq_drain(struct qrdma_eq *eq);

/* --------------------------------------------------------------- event.c */

void qrdma_handle_async_event(struct qrdma_dev *dev,
			      const struct qrdma_eqe *eqe);
void qrdma_handle_completion_event(struct qrdma_dev *dev,
				   const struct qrdma_eqe *eqe);
const char *qrdma_access_error_name(u16 syndrome);
const char *qrdma_queue_error_name(u16 syndrome);

/* ---------------------------------------------------------------- ring.c */

/*
 * Is this a ring of 2^@log_entries entries of 2^@log_stride bytes? -EINVAL
 * unless it is page aligned, not larger than the card can do, and exactly as
 * long as the entries need, in whole pages. The caller has checked the stride.
 */
int qrdma_ring_check_user(struct qrdma_dev *dev, u64 address, u64 length,
			  u32 log_entries, u8 log_stride);

/*
 * Describe pinned memory to the card: level 0 if it is contiguous, else level 1.
 * -EINVAL unless @umem has exactly the pages that the entries need. On success
 * @umem belongs to @memory.
 */
int qrdma_ring_from_umem(struct qrdma_dev *dev, struct ib_umem *umem,
			 u8 log_entries, u8 log_stride,
			 struct qrdma_ring_memory *memory);

/* Check, pin and describe. */
int qrdma_ring_from_user(struct qrdma_dev *dev, u64 address, u64 length,
			 u8 log_entries, u8 log_stride,
			 struct qrdma_ring_memory *memory);

/* Zeroed coherent memory of the driver's own, level 0. */
int qrdma_ring_alloc(struct qrdma_dev *dev, u8 log_entries, u8 log_stride,
		     struct qrdma_ring_memory *memory);

/* Only once the card has destroyed the queue. Nothing if @memory is zero. */
void qrdma_ring_free(struct qrdma_dev *dev, struct qrdma_ring_memory *memory);

/* ------------------------------------------------------------------ cq.c */

/*
 * CQ numbers: reserve, publish to the event handlers, withdraw (events find
 * nothing from here on), release after the drain.
 */
int qrdma_cq_start(struct qrdma_dev *dev, struct qrdma_cq_base *cq,
		   struct qrdma_eq *eq, const struct qrdma_ring *ring,
		   u32 doorbell_page);
/* Destroys the card's CQ; when it returns no handler runs or will run. */
void qrdma_cq_stop(struct qrdma_dev *dev, struct qrdma_cq_base *cq);

int qrdma_create_user_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
int qrdma_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);

/* ------------------------------------------------------------------ qp.c */

/* As qrdma_cq_start() and qrdma_cq_stop(). @context is a complete create input. */
int qrdma_qp_start(struct qrdma_dev *dev, struct qrdma_qp_base *qp,
		   const struct qrdma_qpc *context);
void qrdma_qp_stop(struct qrdma_dev *dev, struct qrdma_qp_base *qp);

int qrdma_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		    struct ib_udata *udata);
int qrdma_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* ----------------------------------------------------------- qp_modify.c */

int qrdma_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		    struct ib_udata *udata);
int qrdma_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init_attr);

/* ----------------------------------------------------------- kernel_qp.c */

/*
 * A queue pair of the driver's own, send queue only, with a CQ that has room for
 * twice its WQEs. The caller serialises: posting functions under a lock of
 * its own, polling functions likewise (they touch different fields, so two
 * locks will do). Those locks are taken with interrupts off, because @complete
 * runs in hard interrupt context.
 */
struct qrdma_kernel_qp {
	struct qrdma_qp_base base;
	struct qrdma_cq_base cq;
	struct qrdma_dev *dev;
	void *private;
	/* A CQE has come since the CQ was armed. Hard interrupt context. */
	void (*complete)(struct qrdma_kernel_qp *qp);
	/* QP or CQ in error as an event said so. Process context, may be NULL. */
	void (*error)(struct qrdma_kernel_qp *qp, u16 syndrome);
	struct qrdma_ring_memory send;
	struct qrdma_ring_memory cq_memory;
	u32 log_entries;
	u32 log_stride;
	u32 producer;			/* posting */
	u32 cq_consumer;		/* polling */
};

/*
 * Create in RESET, with CQ not armed. @type is enum qrdma_qp_type; PD is the
 * driver's. @qp->private, @qp->complete and @qp->error are set by the caller
 * before. May sleep; errors as qrdma_command().
 */
int qrdma_kernel_qp_create(struct qrdma_dev *dev, struct qrdma_kernel_qp *qp,
			   enum qrdma_qp_type type, u8 log_entries,
			   u8 log_stride);
/* When it returns, no handler runs or will run. Also on a dead device. */
void qrdma_kernel_qp_destroy(struct qrdma_kernel_qp *qp);
/*
 * Bring the queue from whatever state to RESET and then to RTS: ring empty,
 * counters zero. The caller has seen to it that nobody posts meanwhile. CQEs
 * that were not polled yet stay in the CQ. May sleep.
 */
int qrdma_kernel_qp_restart(struct qrdma_kernel_qp *qp);

/*
 * The slot of the next WQE, zeroed. The caller bounds what is outstanding: at
 * most 2^log_entries WQEs posted and not seen as a CQE.
 */
void *qrdma_kernel_qp_next_wqe(struct qrdma_kernel_qp *qp);
/* Hand over the slot: returns its wqe_counter, as its CQE will have it. */
u32 qrdma_kernel_qp_post(struct qrdma_kernel_qp *qp);

/* Copy out the next CQE and tell the card; false if there is none. */
bool qrdma_kernel_qp_poll(struct qrdma_kernel_qp *qp, struct qrdma_cqe *cqe);
/* Call @complete at the next CQE; at once if there is one not polled yet. */
void qrdma_kernel_qp_arm(struct qrdma_kernel_qp *qp);

/* ----------------------------------------------------------- ucontext.c */

int qrdma_alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata);
void qrdma_dealloc_ucontext(struct ib_ucontext *context);
int qrdma_mmap(struct ib_ucontext *context, struct vm_area_struct *vma);
void qrdma_mmap_free(struct rdma_user_mmap_entry *entry);
void qrdma_disassociate_ucontext(struct ib_ucontext *context);

/* ------------------------------------------------------------------ pd.c */

int qrdma_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int qrdma_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* -------------------------------------------------------- port.c, gid.c */

int qrdma_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		       struct ib_udata *udata);
int qrdma_query_port(struct ib_device *ibdev, u32 port,
		     struct ib_port_attr *attr);
int qrdma_get_port_immutable(struct ib_device *ibdev, u32 port,
			     struct ib_port_immutable *immutable);
enum rdma_link_layer qrdma_get_link_layer(struct ib_device *ibdev, u32 port);
int qrdma_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
void qrdma_get_dev_fw_str(struct ib_device *ibdev, char *str);
int qrdma_add_gid(const struct ib_gid_attr *attr, void **context);
int qrdma_del_gid(const struct ib_gid_attr *attr, void **context);

/* -------------------------------------------------------------- netdev.c */

int qrdma_netdev_create(struct qrdma_dev *dev);
void qrdma_netdev_destroy(struct qrdma_dev *dev);

#endif /* QRDMA_H */
