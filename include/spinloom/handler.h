/* The handler interface: P4sPIN as the SC'17 sPIN paper defines it (appendix B), with the NO_EVENT option
 * and scheduling policies of the SC'19 datatypes paper (sections 3.2.1, 3.2.2).
 *
 * Contract: one C source per handler image, built for RV32 (simulated, sandboxed) or natively. A source
 * defines any of
 *     int header_handler(const ptl_header_t h, void *state);
 *     int payload_handler(const ptl_payload_t p, void *state);
 *     int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);
 * `state` is the writable NIC memory of the context; spl_constants() its read-only NIC memory. State that
 * host and HPU share uses fixed-width, pointer-free types. docs/handlers.md says what follows each return
 * code.
 *
 * Deviations from the paper, each with its reason:
 *   - ptl_payload_t.base is a pointer: the printed flexible array cannot be passed by value.
 *   - ptl_header_t.user_hdr is a pointer to the user header in packet memory, of user_hdr_length bytes (fewer when the
 *     message is shorter): its type is the user's, and this header is compiled once for all users.
 *   - ptl_payload_t.entry_offset is ours: handlers of several messages share the state, so a header handler cannot
 *     leave its message's offset there.
 *   - DMA calls take the handle by pointer and allow NULL with PTL_DMA_NO_EVENT: nobody waits for it.
 *   - A compare-and-swap in host memory takes its result separately (`before`), because a non-blocking call may not
 *     write to the value that the caller still compares with.
 *   - Gets and atomics, of which the paper only says that they are like puts: a get has neither acknowledgement nor
 *     header data, and one to the device returns when its bytes are there; atomics name operation and datatype last.
 *   - A DMA is told to the host by an event unless PTL_DMA_NO_EVENT is given, as the SC'19 paper has it.
 */
#ifndef SPINLOOM_HANDLER_H
#define SPINLOOM_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spinloom/hpu_map.h"
#include "spinloom/process.h"

typedef uint64_t ptl_size_t;
typedef uint32_t ptl_dma_h;

typedef struct {
  ptl_size_t length;   /* bytes at base */
  ptl_size_t offset;   /* the place of this payload in the message */
  const uint8_t *base; /* beginning of the data, in packet memory */
  ptl_size_t entry_offset; /* the place of the message in the entry */
} ptl_payload_t;

typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_req_ct_t; /* PTL_LOCAL_ME_CT: the entry's counter counts the send; ours: PTL_HANDLER_HOST_MEM */
typedef uint32_t ptl_ack_req_t;
enum {
  PTL_NO_ACK_REQ = 0,
  PTL_ACK_REQ = 1
};

/* The operations and datatypes of Portals 4, but without its long doubles. */
typedef enum {
  PTL_MIN,
  PTL_MAX,
  PTL_SUM,
  PTL_PROD,
  PTL_LOR,
  PTL_LAND,
  PTL_BOR,
  PTL_BAND,
  PTL_LXOR,
  PTL_BXOR,
  PTL_SWAP,
  PTL_CSWAP,
  PTL_CSWAP_NE,
  PTL_CSWAP_LE,
  PTL_CSWAP_LT,
  PTL_CSWAP_GE,
  PTL_CSWAP_GT,
  PTL_MSWAP
} ptl_op_t;
typedef enum {
  PTL_INT8_T,
  PTL_UINT8_T,
  PTL_INT16_T,
  PTL_UINT16_T,
  PTL_INT32_T,
  PTL_UINT32_T,
  PTL_FLOAT,
  PTL_INT64_T,
  PTL_UINT64_T,
  PTL_DOUBLE,
  PTL_FLOAT_COMPLEX,
  PTL_DOUBLE_COMPLEX
} ptl_datatype_t;

typedef enum {
  PTL_REQUEST_PUT = 0,
  PTL_REQUEST_GET = 1,
  PTL_REQUEST_ATOMIC = 2
} ptl_request_type_t;

typedef struct {
  ptl_request_type_t type;
  ptl_size_t length;           /* the bytes of the message, user header included; those that a get asks for */
  ptl_process_t target_id;     /* this process */
  ptl_process_t source_id;     /* the sender */
  ptl_match_bits_t match_bits;
  ptl_size_t offset;           /* the place in the entry */
  ptl_hdr_data_t hdr_data;
  const void *user_hdr;        /* first bytes of the message, in packet memory */
  uint32_t user_hdr_length;
} ptl_header_t;

typedef struct {
  ptl_size_t success;
  ptl_size_t failure;
} ptl_ct_event_t;

/* Return codes (appendix B.3 to B.5). */
enum {
  SUCCESS = 0,
  DROP = 1,
  DROP_PENDING = 2,
  PROCESS_DATA = 3,
  PROCESS_DATA_PENDING = 4,
  PROCEED = 5,
  PROCEED_PENDING = 6,
  SUCCESS_PENDING = 7,
  SEGV = 8,
  FAIL = 9
};

/* Options of DMA calls: the memory that they reach, and whether the host gets an event at their end. */
enum {
  PTL_ME_HOST_MEM = 0u,
  PTL_HANDLER_HOST_MEM = 1u << 8,
  PTL_DMA_NO_EVENT = 1u << 9,
  /* Options of puts. */
  PTL_LOCAL_ME_CT = 1u << 10, /* the entry's counter counts the send */
  PTL_ME_ACK = 1u << 11       /* ask for a full acknowledgement, on the entry's queue */
};

#define PTL_NUM_HPUS_MAX 256u

#if !defined(__cplusplus)
/* The functions that a source may define; the compiler refuses another prototype. */
int header_handler(const ptl_header_t h, void *state);
int payload_handler(const ptl_payload_t p, void *state);
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);
#endif

/* The command window: spl_word() stores a word of a call, spl_local() an address of the handler's memory, spl_issue()
 * makes the call. */
#if defined(__riscv)

static inline volatile uint32_t *spl_window(void) { return (volatile uint32_t *)SPL_HPU_COMMAND_BASE; }

#define PTL_MY_HPU (spl_window()[SPL_CMD_HPU / 4])
#define PTL_MY_VHPU (spl_window()[SPL_CMD_VHPU / 4])
#define PTL_NUM_HPUS (spl_window()[SPL_CMD_HPU_COUNT / 4])

static inline const void *spl_constants(void) { return (const void *)SPL_HPU_CONST_BASE; }

/* Cycles of this HPU since an unspecified moment; only differences are meaningful. */
static inline uint64_t spl_cycles(void) {
  uint32_t low, high, again;
  do {
    __asm__ volatile("rdcycleh %0\n\trdcycle %1\n\trdcycleh %2" : "=r"(high), "=r"(low), "=r"(again));
  } while (high != again);
  return (uint64_t)high << 32 | low;
}

static inline void spl_word(unsigned word, uint32_t value) { spl_window()[word] = value; }
static inline void spl_local(unsigned word, const void *local) { spl_word(word, (uint32_t)(uintptr_t)local); }
static inline uint32_t spl_issue(uint32_t call_and_options) {
  spl_word(0, call_and_options);
  return spl_window()[SPL_CMD_ISSUE / 4];
}

#elif !defined(__cplusplus)

#include "spinloom/hpu_native.h"

#define PTL_MY_HPU (spl_hpu_at_hand->hpu)
#define PTL_MY_VHPU (spl_hpu_at_hand->vhpu)
#define PTL_NUM_HPUS (spl_hpu_at_hand->hpu_count)

static inline const void *spl_constants(void) { return spl_hpu_at_hand->constants; }

/* Cycles of the host's own counter; only differences are meaningful. */
static inline uint64_t spl_cycles(void) { return spl_hpu_at_hand->cycles(); }

static inline void spl_word(unsigned word, uint32_t value) { spl_hpu_at_hand->words[word] = value; }
static inline void spl_local(unsigned word, const void *local) { spl_hpu_at_hand->pointers[word] = local; }
static inline uint32_t spl_issue(uint32_t call_and_options) {
  spl_word(0, call_and_options);
  return spl_hpu_at_hand->issue(spl_hpu_at_hand);
}

#endif

#if defined(__riscv) || !defined(__cplusplus) /* the engine, in C++, reads the types and numbers above only */

static inline void spl_word64(unsigned word, uint64_t value) {
  spl_word(word, (uint32_t)value);
  spl_word(word + 1, (uint32_t)(value >> 32));
}
static inline uint32_t spl_dma(uint32_t call, const void *local, ptl_size_t offset, ptl_size_t len, unsigned options) {
  spl_local(1, local);
  spl_word64(2, offset);
  spl_word(4, (uint32_t)len);
  spl_word(5, 0);
  return spl_issue(call | options);
}
/* A transfer that was refused has no handle. */
static inline int spl_started(uint32_t handle, ptl_dma_h *h) {
  if (h != NULL) *h = handle;
  return handle == UINT32_MAX ? SEGV : SUCCESS;
}

/* Copies len bytes from local to offset of the entry's host memory, or, with PTL_HANDLER_HOST_MEM, of the handler's.
 * NB returns at once; *h names the transfer, whose source is packet or HPU memory, not the stack. B returns when the
 * source has been read. Six stores and one load. SEGV if a range is not inside: nothing is copied. */
static inline int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned options,
                                        ptl_dma_h *h) {
  return spl_started(spl_dma(SPL_CALL_DMA_TO_HOST_NB, local, offset, len, options), h);
}
static inline int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned options) {
  __asm__ volatile("" ::: "memory"); /* local has been written before it is read */
  return (int)spl_dma(SPL_CALL_DMA_TO_HOST_B, local, offset, len, options);
}

/* Copies len bytes from host memory to local. NB: local is HPU memory. B: local may also be on the stack;
 * the call returns when the bytes are there. */
static inline int PtlHandlerDMAFromHostNB(ptl_size_t offset, void *local, ptl_size_t len, unsigned options,
                                          ptl_dma_h *h) {
  return spl_started(spl_dma(SPL_CALL_DMA_FROM_HOST_NB, local, offset, len, options | PTL_DMA_NO_EVENT), h);
}
static inline int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t len, unsigned options) {
  const int result = (int)spl_dma(SPL_CALL_DMA_FROM_HOST_B, local, offset, len, options | PTL_DMA_NO_EVENT);
  __asm__ volatile("" ::: "memory"); /* local has been written */
  return result;
}

/* Returns 1 if the transfer is finished, 0 otherwise. A handle that names no transfer counts as finished. */
static inline int PtlHandlerDMATest(ptl_dma_h handle) {
  spl_word(1, handle);
  const int finished = (int)spl_issue(SPL_CALL_DMA_TEST);
  __asm__ volatile("" ::: "memory");
  return finished;
}
static inline int PtlHandlerDMAWait(ptl_dma_h handle) {
  spl_word(1, handle);
  const int result = (int)spl_issue(SPL_CALL_DMA_WAIT);
  __asm__ volatile("" ::: "memory");
  return result;
}

static inline uint32_t spl_dma_atomic(uint32_t call, ptl_size_t offset, uint64_t *before, uint32_t width,
                                      uint64_t compare, uint64_t operand, unsigned options) {
  spl_local(1, before);
  spl_word64(2, offset);
  spl_word(4, width);
  spl_word64(5, compare);
  spl_word64(7, operand);
  const uint32_t result = spl_issue(call | options | PTL_DMA_NO_EVENT);
  __asm__ volatile("" ::: "memory");
  return result;
}
/* Replaces the 8 bytes at offset by swapval if they equal cmpval; *before gets their old value. */
static inline int PtlHandlerDMACASNB(ptl_size_t offset, uint64_t cmpval, uint64_t swapval, uint64_t *before,
                                     unsigned options, ptl_dma_h *h) {
  return spl_started(spl_dma_atomic(SPL_CALL_DMA_CAS_NB, offset, before, 8, cmpval, swapval, options), h);
}
static inline int PtlHandlerDMACASB(ptl_size_t offset, uint64_t cmpval, uint64_t swapval, uint64_t *before,
                                    unsigned options) {
  return (int)spl_dma_atomic(SPL_CALL_DMA_CAS_B, offset, before, 8, cmpval, swapval, options);
}
/* Adds inc to the integer of `width` bytes (1, 2, 4, 8) at offset; *before gets its old value, zero-extended. */
static inline int PtlHandlerDMAFetchAddNB(ptl_size_t offset, ptl_size_t inc, uint64_t *before, uint32_t width,
                                          unsigned options, ptl_dma_h *h) {
  return spl_started(spl_dma_atomic(SPL_CALL_DMA_FADD_NB, offset, before, width, 0, inc, options), h);
}
static inline int PtlHandlerDMAFetchAddB(ptl_size_t offset, ptl_size_t inc, uint64_t *before, uint32_t width,
                                         unsigned options) {
  return (int)spl_dma_atomic(SPL_CALL_DMA_FADD_B, offset, before, width, 0, inc, options);
}

/* Atomics on 8 bytes of HPU memory (state). CAS returns 1 if it swapped. FAdd: *before gets the old value. */
static inline int PtlHandlerCAS(uint64_t *value, uint64_t cmpval, uint64_t swapval) {
  spl_local(1, value);
  spl_local(2, NULL);
  spl_word64(5, cmpval);
  spl_word64(7, swapval);
  const int swapped = (int)spl_issue(SPL_CALL_HPU_CAS);
  __asm__ volatile("" ::: "memory");
  return swapped;
}
static inline int PtlHandlerFAdd(uint64_t *val, uint64_t *before, uint64_t inc) {
  spl_local(1, val);
  spl_local(2, before);
  spl_word64(5, 0);
  spl_word64(7, inc);
  const int result = (int)spl_issue(SPL_CALL_HPU_FADD);
  __asm__ volatile("" ::: "memory");
  return result;
}

static inline void PtlHandlerYield(void) { (void)spl_issue(SPL_CALL_YIELD); }

/* PTL_HANDLER_HOST_MEM among `ct`: the bytes of a call that sends from the host lie in the handler's memory. Any other
 * bits count the send. */
static inline uint32_t spl_put_options(ptl_req_ct_t ct, ptl_ack_req_t ack_req) {
  const uint32_t memory = ct & PTL_HANDLER_HOST_MEM;
  return memory | (ct != memory ? PTL_LOCAL_ME_CT : 0u) | (ack_req != PTL_NO_ACK_REQ ? PTL_ME_ACK : 0u);
}
static inline void spl_put_target(ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                  void *user_ptr, ptl_hdr_data_t hdr_data) {
  spl_word(5, target_id.rank);
  spl_word64(6, match_bits);
  spl_word64(8, remote_offset);
  spl_word64(10, hdr_data);
  spl_word64(12, (uintptr_t)user_ptr);
}
/* Puts len bytes at offset of the entry's memory, or, with PTL_HANDLER_HOST_MEM in `ct`, of the handler's, as a put of
 * the host does; returns at once. */
static inline int PtlHandlerPutFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                        ptl_process_t target_id, ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                        void *user_ptr, ptl_hdr_data_t hdr_data) {
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, hdr_data);
  spl_word64(2, offset);
  spl_word(4, (uint32_t)len);
  spl_word(14, (uint32_t)(len >> 32));
  return (int)spl_issue(SPL_CALL_PUT_FROM_HOST | spl_put_options(ct, ack_req));
}
/* Puts at most one packet from packet or HPU memory or the stack; returns when the bytes have been read. FAIL if they
 * do not fit into a packet. */
static inline int PtlHandlerPutFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                          ptl_process_t target_id, ptl_match_bits_t match_bits,
                                          ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
  __asm__ volatile("" ::: "memory"); /* local has been written before it is read */
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, hdr_data);
  spl_local(1, local);
  spl_word(4, (uint32_t)len);
  return (int)spl_issue(SPL_CALL_PUT_FROM_DEVICE | spl_put_options(ct, ack_req));
}
/* Puts a message of len bytes whose packets the payload handlers of another context fill, as a process-put of the host
 * does (SC'19 datatypes paper, section 3.1.2); returns at once. They read the entry's memory from offset on, or, with
 * PTL_HANDLER_HOST_MEM in `ct`, this handler's. The host tells the handler the context's number. Ours: so a NIC that is
 * asked for a layout needs no host. */
static inline int PtlHandlerProcessPut(uint32_t context, ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct,
                                       ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_match_bits_t match_bits,
                                       ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data) {
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, hdr_data);
  spl_word64(2, offset);
  spl_word(4, (uint32_t)len);
  spl_word(14, (uint32_t)(len >> 32));
  spl_word(15, context);
  return (int)spl_issue(SPL_CALL_PROCESS_PUT | spl_put_options(ct, ack_req));
}

static inline void spl_atomic_kind(ptl_op_t operation, ptl_datatype_t datatype) {
  spl_word(15, (uint32_t)operation | (uint32_t)datatype << 8);
}
/* Gets len bytes to offset of the entry's memory, or, with PTL_HANDLER_HOST_MEM among the options, of the handler's;
 * returns at once. The reply event goes to the entry's queue. */
static inline int PtlHandlerGetFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_process_t target_id,
                                        ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                                        unsigned options) {
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, 0);
  spl_word64(2, offset);
  spl_word(4, (uint32_t)len);
  spl_word(14, (uint32_t)(len >> 32));
  return (int)spl_issue(SPL_CALL_GET_FROM_HOST | options | spl_put_options(ct, PTL_NO_ACK_REQ));
}
/* Gets at most one packet into HPU memory or the stack; returns when the bytes are there. FAIL if they do not fit into
 * a packet, or if the target refused or sent less. */
static inline int PtlHandlerGetFromDevice(void *local, ptl_size_t len, ptl_process_t target_id,
                                          ptl_match_bits_t match_bits, ptl_size_t remote_offset) {
  spl_put_target(target_id, match_bits, remote_offset, NULL, 0);
  spl_local(1, local);
  spl_word(4, (uint32_t)len);
  const int result = (int)spl_issue(SPL_CALL_GET_FROM_DEVICE);
  __asm__ volatile("" ::: "memory"); /* local has been written */
  return result;
}
/* The atomics work as the puts do, but the target's elements become operation(element, ours). They return FAIL for more
 * bytes than the NIC takes, for swaps, and for operations that do not exist for the datatype. */
static inline int PtlHandlerAtomicFromHost(ptl_size_t offset, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                           ptl_process_t target_id, ptl_match_bits_t match_bits,
                                           ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                           ptl_op_t operation, ptl_datatype_t datatype) {
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, hdr_data);
  spl_word64(2, offset);
  spl_word(4, (uint32_t)len);
  spl_word(14, (uint32_t)(len >> 32));
  spl_atomic_kind(operation, datatype);
  return (int)spl_issue(SPL_CALL_ATOMIC_FROM_HOST | spl_put_options(ct, ack_req));
}
static inline int PtlHandlerAtomicFromDevice(const void *local, ptl_size_t len, ptl_req_ct_t ct, ptl_ack_req_t ack_req,
                                             ptl_process_t target_id, ptl_match_bits_t match_bits,
                                             ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data,
                                             ptl_op_t operation, ptl_datatype_t datatype) {
  __asm__ volatile("" ::: "memory"); /* local has been written before it is read */
  spl_put_target(target_id, match_bits, remote_offset, user_ptr, hdr_data);
  spl_local(1, local);
  spl_word(4, (uint32_t)len);
  spl_atomic_kind(operation, datatype);
  return (int)spl_issue(SPL_CALL_ATOMIC_FROM_DEVICE | spl_put_options(ct, ack_req));
}
/* A fetching atomic from HPU memory or the stack: local gets the target's old elements; returns when they are there.
 * `operand` is that of PTL_CSWAP... and PTL_MSWAP. FAIL also if the target refused or had fewer elements. */
static inline int PtlHandlerFetchAtomicFromDevice(void *local, ptl_size_t len, ptl_process_t target_id,
                                                  ptl_match_bits_t match_bits, ptl_size_t remote_offset,
                                                  ptl_hdr_data_t hdr_data, uint64_t operand, ptl_op_t operation,
                                                  ptl_datatype_t datatype) {
  __asm__ volatile("" ::: "memory");
  spl_put_target(target_id, match_bits, remote_offset, NULL, hdr_data);
  spl_local(1, local);
  spl_word64(2, operand);
  spl_word(4, (uint32_t)len);
  spl_atomic_kind(operation, datatype);
  const int result = (int)spl_issue(SPL_CALL_FETCH_ATOMIC_FROM_DEVICE);
  __asm__ volatile("" ::: "memory");
  return result;
}

/* Prints a text of at most 80 bytes and a number, with time and HPU, for the author of a simulated handler (`spinloom
 * handler run`); other NICs ignore the call. It costs as much as any call. SEGV if the text cannot be read. */
static inline int spl_debug(const char *text, uint32_t value) {
  __asm__ volatile("" ::: "memory"); /* the text has been written before it is read */
  spl_local(1, text);
  spl_word(2, value);
  return (int)spl_issue(SPL_CALL_DEBUG);
}

/* Counts on the entry's counter; FAIL if it has none. */
static inline int PtlHandlerCTInc(ptl_ct_event_t increment) {
  spl_word64(1, increment.success);
  spl_word64(3, increment.failure);
  return (int)spl_issue(SPL_CALL_CT_INC);
}
static inline int PtlHandlerCTGet(ptl_ct_event_t *event) {
  spl_local(5, event);
  const int result = (int)spl_issue(SPL_CALL_CT_GET);
  __asm__ volatile("" ::: "memory");
  return result;
}
static inline int PtlHandlerCTSet(ptl_ct_event_t new_ct) {
  spl_word64(1, new_ct.success);
  spl_word64(3, new_ct.failure);
  return (int)spl_issue(SPL_CALL_CT_SET);
}

#endif

#endif
