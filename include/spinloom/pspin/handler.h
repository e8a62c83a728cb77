/* PsPIN's handlers: their task, and the commands that they give to the NIC. */
#ifndef SPINLOOM_PSPIN_HANDLER_H
#define SPINLOOM_PSPIN_HANDLER_H

#include <string.h>

#include "spinloom/pspin/pspin.h"

#define __handler__ __attribute__((used))

#define SPIN_OK 0
#define SPIN_FAIL 1
#define SPIN_DMA_EXT2LOC 1
#define SPIN_DMA_LOC2EXT 0

typedef struct task {
  void *handler_mem;
  size_t handler_mem_size;
  void *pkt_mem;
  size_t pkt_mem_size;
  void *scratchpad[NB_CLUSTERS];
  size_t scratchpad_size[NB_CLUSTERS];
  uint32_t host_mem_high;
  uint32_t host_mem_low;
  size_t host_mem_size;
  void *l2_pkt_mem;
  uint32_t home_cluster_id;
  uint32_t flow_id;
} task_t;

typedef struct handler_args {
  task_t *task;
  uint32_t hpu_gid;
  uint32_t cluster_id;
  uint32_t hpu_id;
} handler_args_t;

typedef void (*handler_fn)(handler_args_t *);
/* A source defines it for PsPIN's loader. Nobody calls it here. */
void init_handlers(handler_fn *hh, handler_fn *ph, handler_fn *th, void **handler_mem_ptr);

#if defined(SPL_PSPIN_PACKETS)
#define SPL_PSPIN_IP_LENGTH(header) ((header)->length)
#else
#define SPL_PSPIN_IP_LENGTH(header) spl_net16((header)->length)
#endif
#define GET_IP_UDP_PLD(pkt_ptr, pkt_pld_ptr, pkt_pld_len)                               \
  do {                                                                                  \
    const ip_hdr_t *const spl_ip = (const ip_hdr_t *)(pkt_ptr);                         \
    (pkt_pld_len) = SPL_PSPIN_IP_LENGTH(spl_ip) - sizeof(ip_hdr_t) - sizeof(udp_hdr_t); \
    (pkt_pld_ptr) = (uint8_t *)(pkt_ptr) + spl_ip->ihl * 4 + sizeof(udp_hdr_t);         \
  } while (0)

/* ---- copies between the memories of the NIC: done when spin_dma() returns ---- */
typedef dma_t spin_dma_t;
static inline int spin_dma(const void *source, void *dest, size_t size, int direction, int options, spin_dma_t *xfer) {
  (void)direction;
  (void)options;
  if (size == 0) return SPIN_FAIL;
  memmove(dest, source, size);
  *xfer = DMA_NULL;
  return SPIN_OK;
}
static inline int spin_dma_wait(spin_dma_t xfer) { return (void)xfer, SPIN_OK; }
static inline int spin_dma_test(spin_dma_t xfer, uint32_t *completed) { return (void)xfer, *completed = 1, SPIN_OK; }

/* ---- locks ---- */
typedef futex_t spin_lock_t;
typedef struct spin_rw_lock {
  spin_lock_t glock;
  volatile int32_t num_readers;
} spin_rw_lock_t;
static inline int spin_lock_init(spin_lock_t *lock) { return futex_init(lock), SPIN_OK; }
static inline int spin_lock_try_lock(spin_lock_t *lock) { return futex_try_lock(lock); }
static inline int spin_lock_lock(spin_lock_t *lock) { return futex_lock_s(lock), SPIN_OK; }
static inline int spin_lock_unlock(spin_lock_t *lock) { return futex_unlock(lock), SPIN_OK; }
static inline int spin_rw_lock_r_lock(spin_rw_lock_t *lock) {
  if (amo_add(&lock->num_readers, 1) == 0) spin_lock_lock(&lock->glock);
  return SPIN_OK;
}
static inline int spin_rw_lock_r_unlock(spin_rw_lock_t *lock) {
  if (amo_add(&lock->num_readers, -1) == 1) spin_lock_unlock(&lock->glock);
  return SPIN_OK;
}
static inline int spin_rw_lock_w_lock(spin_rw_lock_t *lock) { return spin_lock_lock(&lock->glock); }
static inline int spin_rw_lock_w_unlock(spin_rw_lock_t *lock) { return spin_lock_unlock(&lock->glock); }

/* ---- commands ----
 * A command that is refused returns SPIN_FAIL; its handle counts as finished. A NULL handle: nobody waits for it. */
typedef uint32_t spin_cmd_t;
static inline int spin_cmd_wait(spin_cmd_t handle) { return (void)PtlHandlerDMAWait(handle), SPIN_OK; }
static inline int spin_cmd_test(spin_cmd_t handle, bool *completed) {
  *completed = PtlHandlerDMATest(handle) != 0;
  return SPIN_OK;
}

/* PsPIN's sources give addresses of the NIC in 32 bits. Natively they are the lower half of a pointer into the frame,
 * the stack or the state. */
static inline void *spl_pspin_local(uintptr_t address) {
#if !defined(__riscv)
  if (address <= UINT32_MAX) {
    const uint32_t low = (uint32_t)address;
    uint8_t *const bases[2] = {spl_frame(), (uint8_t *)__builtin_frame_address(0)};
    if (low - (uint32_t)(uintptr_t)bases[0] <= spl_frame_bytes()) {
      return bases[0] + (low - (uint32_t)(uintptr_t)bases[0]);
    }
    const int32_t away = (int32_t)(low - (uint32_t)(uintptr_t)bases[1]);
    if (away > -65536 && away < 65536) return bases[1] + away;
    return spl_pspin_state() + (int32_t)(low - (uint32_t)(uintptr_t)spl_pspin_state());
  }
#endif
  return (void *)address;
}
/* The stack may be used again before a command has ended: commands on it are done when the call returns. */
static inline bool spl_pspin_on_stack(const void *local) {
#if defined(__riscv)
  return (uint32_t)(uintptr_t)local >> 28 == SPL_HPU_STACK_BASE >> 28;
#else
  const intptr_t away = (intptr_t)local - (intptr_t)__builtin_frame_address(0);
  return away > -65536 && away < 65536;
#endif
}
static inline uint64_t spl_pspin_host_address(void) {
  const uint64_t told = spl_pspin_told()->host_mem_address;
  return told != 0 ? told : SPL_PSPIN_HOST_ADDRESS;
}
/* The next handler of this HPU may want the place of a copy: what reads from there has read before this one goes on. */
static inline int spl_pspin_ended(int result, ptl_dma_h started, const void *read, spin_cmd_t *handle) {
  const uintptr_t in_copies = (uintptr_t)read - (uintptr_t)(spl_pspin_state() + SPL_PSPIN_COPY(0));
  if (in_copies < CORE_COUNT * SPL_PSPIN_COPY_BYTES) (void)PtlHandlerDMAWait(started);
  if (handle != NULL) *handle = started;
  return result == SUCCESS ? SPIN_OK : SPIN_FAIL;
}
static inline int spl_pspin_to_host(uint64_t host, uintptr_t nic, uint32_t length, spin_cmd_t *handle) {
  ptl_dma_h started;
  __asm__ volatile("" ::: "memory"); /* the bytes have been written before they are read */
  const void *const local = spl_pspin_local(nic);
  if (spl_pspin_on_stack(local)) {
    const int done =
        PtlHandlerDMAToHostB(local, host - spl_pspin_host_address(), length, PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT);
    return spl_pspin_ended(done, UINT32_MAX, NULL, handle);
  }
  const int result = PtlHandlerDMAToHostNB(local, host - spl_pspin_host_address(), length,
                                           PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT, &started);
  return spl_pspin_ended(result, started, local, handle);
}
static inline int spl_pspin_from_host(uint64_t host, uintptr_t nic, uint32_t length, spin_cmd_t *handle) {
  ptl_dma_h started;
  void *const local = spl_pspin_local(nic);
  if (spl_pspin_on_stack(local)) {
    const int done = PtlHandlerDMAFromHostB(host - spl_pspin_host_address(), local, length, PTL_HANDLER_HOST_MEM);
    return spl_pspin_ended(done, UINT32_MAX, NULL, handle);
  }
  const int result =
      PtlHandlerDMAFromHostNB(host - spl_pspin_host_address(), local, length, PTL_HANDLER_HOST_MEM, &started);
  return spl_pspin_ended(result, started, local, handle);
}
#define spin_dma_to_host(host_addr, nic_addr, length, generate_event, xfer) \
  ((void)(generate_event), spl_pspin_to_host((host_addr), (uintptr_t)(nic_addr), (length), (xfer)))
#define spin_dma_from_host(host_addr, nic_addr, length, generate_event, xfer) \
  ((void)(generate_event), spl_pspin_from_host((host_addr), (uintptr_t)(nic_addr), (length), (xfer)))

/* Done when it returns: its source is on the stack. */
static inline int spin_write_to_host(uint64_t host_addr, uint64_t user_data, spin_cmd_t *xfer) {
  const int result = PtlHandlerDMAToHostB(&user_data, host_addr - spl_pspin_host_address(), sizeof user_data,
                                          PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT);
  return spl_pspin_ended(result, UINT32_MAX, NULL, xfer);
}
#define spin_host_write spin_write_to_host

static inline int spin_send_packet(const void *data, uint32_t length, spin_cmd_t *handle) {
  ptl_dma_h started;
  const int result = spl_send_frame(data, length, &started);
  return spl_pspin_ended(result, started, data, handle);
}

/* A NIC for Ethernet frames has no RDMA. */
static inline int spl_pspin_no_rdma(void) {
  (void)spl_debug("spin_rdma_put: this NIC sends Ethernet frames only; use spin_send_packet", 0);
  return SPIN_FAIL;
}
#define spin_rdma_put(...) spl_pspin_no_rdma()

/* ---- the handlers of a source ---- */
static inline int spl_pspin_refuse(const char *why, uint32_t number) { return (void)spl_debug(why, number), FAIL; }

/* `copies`: another handler will see the frame, so this one works on a copy of its own, as PsPIN's handlers do. */
static inline int spl_pspin_run(handler_fn handler, void *state, bool copies) {
  const uint32_t hpu = PTL_MY_HPU, bytes = spl_frame_bytes();
  spl_pspin_bind(state);
  if (hpu >= CORE_COUNT)
    return spl_pspin_refuse("more HPUs than NB_CORES * NB_CLUSTERS: build with -DNB_CLUSTERS=4", hpu);
  if (copies && bytes > SPL_PSPIN_COPY_BYTES) {
    return spl_pspin_refuse("a frame longer than its copy may be: build with -DSPL_PSPIN_COPY_BYTES=...", bytes);
  }
  const struct spl_pspin_told *const told = spl_pspin_told();
  const uint64_t host = spl_pspin_host_address();
  task_t task = {
      .handler_mem = spl_pspin_state() + SPL_PSPIN_HANDLER_MEM,
      .handler_mem_size = told->handler_mem_size,
      .pkt_mem = spl_frame(),
      .pkt_mem_size = bytes,
      .host_mem_high = (uint32_t)(host >> 32),
      .host_mem_low = (uint32_t)host,
      .host_mem_size = told->host_mem_size != 0 ? told->host_mem_size : UINT32_MAX,
      .l2_pkt_mem = spl_frame(),
      .home_cluster_id = spl_frame_message() % NB_CLUSTERS,
      .flow_id = spl_frame_message(),
  };
  if (copies) task.pkt_mem = memcpy(spl_pspin_state() + SPL_PSPIN_COPY(hpu), spl_frame(), bytes);
  for (uint32_t cluster = 0; cluster < NB_CLUSTERS; ++cluster) {
    task.scratchpad[cluster] = spl_pspin_state() + SPL_PSPIN_SCRATCHPAD(cluster);
    task.scratchpad_size[cluster] = SPL_PSPIN_SCRATCHPAD_BYTES;
  }
  handler_args_t args = {&task, hpu, hpu / NB_CORES, hpu % NB_CORES};
  handler(&args);
  return SUCCESS;
}

#ifdef SPL_HEADER_HANDLER
void SPL_HEADER_HANDLER(handler_args_t *args);
int header_handler(const ptl_header_t h, void *state) {
  (void)h;
#if defined(SPL_PAYLOAD_HANDLER) || defined(SPL_COMPLETION_HANDLER)
  return spl_pspin_run(SPL_HEADER_HANDLER, state, true);
#else
  return spl_pspin_run(SPL_HEADER_HANDLER, state, false);
#endif
}
#endif
#ifdef SPL_PAYLOAD_HANDLER
void SPL_PAYLOAD_HANDLER(handler_args_t *args);
int payload_handler(const ptl_payload_t p, void *state) {
  (void)p;
#if defined(SPL_COMPLETION_HANDLER)
  return spl_pspin_run(SPL_PAYLOAD_HANDLER, state, (spl_frame_flags() & SPL_FRAME_LAST) != 0);
#else
  return spl_pspin_run(SPL_PAYLOAD_HANDLER, state, false);
#endif
}
#endif
#ifdef SPL_COMPLETION_HANDLER
void SPL_COMPLETION_HANDLER(handler_args_t *args);
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  return spl_pspin_run(SPL_COMPLETION_HANDLER, state, false);
}
#endif

#endif
