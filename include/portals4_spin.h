/* portals4_spin.h - sPIN handlers on matching list entries: P4sPIN's additions to the host's side of Portals 4.
 *
 * Contract: the SC'17 sPIN paper, appendix B.1 and B.2. A handler is a function of a handler image, named by its
 *   symbol. An image is one that Spinloom ships (`pingpong`) or one that the launcher was given (`spinloom sim
 *   --handlers x.c` gives the image `x`). docs/handlers.md says what handlers may do. Deviations from the paper: the
 *   arguments for handlers are a struct of their own beside ptl_me_t, which the paper allows; handlers are named by
 *   symbols, because they are not functions of the host's program; constants are separate from the state, as in
 *   handler.h.
 *   From later papers come streaming puts and process-puts (SC'19 datatypes paper, sections 3.1.1 and 3.1.2, which
 *   name PtlSPutStart, PtlSPutStream and PtlProcessPut); scheduling policies (section 3.2.1); core masks, activation
 *   apart from installation, host-activated contexts and telemetry (the NICs of the European network technologies
 *   deliverable, section 4.4, which does not name the calls); and persistent triggered operations (the offload
 *   machine model of collectives, section II.C.5, which does not name the calls either). Where a paper gives no
 *   name, the names here are our own.
 * Invariants: (1) HPU memory stays until PtlHPUFreeMem and may serve several entries; (2) an initial state is written
 *   when its entry is appended, before the entry can match.
 * Threads: as portals4.h. Time: as portals4.h.
 */
#ifndef PORTALS4_SPIN_H
#define PORTALS4_SPIN_H

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handler's transfer with event has ended: its bytes, and those of all earlier transfers of the message, are in
 * host memory. */
#define PTL_EVENT_DMA ((ptl_event_kind_t)32)

/* Failures of messages with handlers (docs/handlers.md). */
#define PTL_NI_HANDLER_FAIL ((ptl_ni_fail_t)32)
#define PTL_NI_HANDLER_FAULT ((ptl_ni_fail_t)33)
#define PTL_NI_HANDLER_BUDGET ((ptl_ni_fail_t)34)
#define PTL_NI_HANDLER_CODE ((ptl_ni_fail_t)35)

typedef ptl_handle_any_t ptl_hpu_md_h;
#define PTL_HPU_MEM_NONE PTL_INVALID_HANDLE

typedef const char *ptl_handler_t; /* a symbol of the image; NULL: no such handler */

typedef struct {
  const char *image;
  ptl_handler_t header_handler;
  ptl_handler_t payload_handler;
  ptl_handler_t completion_handler;
  ptl_hpu_md_h hpu_memory;         /* the handlers' state */
  const void *hpu_initial_state;   /* NULL: the state is left as it is */
  ptl_size_t hpu_initial_state_length;
  const void *constants;           /* handlers read them by spl_constants() */
  ptl_size_t constants_length;
  void *handler_host_mem_start;
  ptl_size_t handler_host_mem_length;
  ptl_size_t user_header_length;
  ptl_size_t budget_cycles;        /* the limit of one run of a handler; 0: the NIC's default */
  unsigned int options;            /* PTL_SPIN_... */
  /* Blocked round-robin: the handlers of `packets_in_row` consecutive packets of a message run one after the other
   * on one of `virtual_hpus` virtual HPUs. If 0, each handler runs on any idle HPU. */
  unsigned int packets_in_row;
  unsigned int virtual_hpus;
  /* The HPUs that may run these handlers, one bit each, lowest first; NULL: all. */
  const uint64_t *core_mask;
  unsigned int core_mask_words;
} ptl_spin_t;

/* The entry matches nothing until PtlSpinActivate, so that the program can initialise the handlers' memory. */
#define PTL_SPIN_INACTIVE 0x1u
/* The entry never matches: only PtlSpinInvoke runs its handlers. */
#define PTL_SPIN_HOST_ACTIVATED 0x2u
/* handler_host_mem_start is an array of ptl_iovec_t, and handler_host_mem_length counts its elements. Offsets count
 * through their memory as if it lay in one piece. The array is copied. */
#define PTL_SPIN_HANDLER_IOVEC 0x4u
#define PTL_SPIN_OPTIONS_MASK 0x7u

int PtlHPUAllocMem(ptl_size_t length, ptl_handle_ni_t ni_handle, ptl_hpu_md_h *hpu_mem);
int PtlHPUFreeMem(ptl_hpu_md_h *hpu_mem);
/* PtlMEAppend with handlers. The entry's context is freed together with the entry, by PtlMEUnlink or PtlNIFini. */
int PtlSpinMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, const ptl_spin_t *handlers,
                    ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

/* From now on the entry matches messages and its handlers run. PTL_ARG_INVALID: the entry is active already. */
int PtlSpinActivate(ptl_handle_me_t me_handle);
/* Runs the entry's handlers on bytes of the caller, at most one packet, which are copied. */
int PtlSpinInvoke(ptl_handle_me_t me_handle, const void *bytes, ptl_size_t length, ptl_hdr_data_t hdr_data);

/* Counts of the NIC. */
typedef unsigned char ptl_spin_count_t;
#define PTL_SPIN_MESSAGES ((ptl_spin_count_t)0)
#define PTL_SPIN_PACKETS ((ptl_spin_count_t)1)
#define PTL_SPIN_BYTES ((ptl_spin_count_t)2)
#define PTL_SPIN_HEADER_HANDLERS ((ptl_spin_count_t)3)
#define PTL_SPIN_PAYLOAD_HANDLERS ((ptl_spin_count_t)4)
#define PTL_SPIN_COMPLETION_HANDLERS ((ptl_spin_count_t)5)
#define PTL_SPIN_HANDLER_CYCLES ((ptl_spin_count_t)6)
#define PTL_SPIN_HANDLER_FAULTS ((ptl_spin_count_t)7)
#define PTL_SPIN_FAILED_MESSAGES ((ptl_spin_count_t)8)
#define PTL_SPIN_DROPPED_BYTES ((ptl_spin_count_t)9)
#define PTL_SPIN_REFUSED_MESSAGES ((ptl_spin_count_t)10)
#define PTL_SPIN_PORTALS_DISABLED ((ptl_spin_count_t)11)
#define PTL_SPIN_COUNT_LAST ((ptl_spin_count_t)12)
/* Reads a count of an entry's handlers; with PTL_INVALID_HANDLE, of the whole NIC with all of its interfaces. */
int PtlSpinTelemetry(ptl_handle_ni_t ni_handle, ptl_handle_me_t me_handle, ptl_spin_count_t which, ptl_size_t *count);

/* A streaming put is one message at the target. Its bytes are those of regions of a descriptor's memory, in the
 * order in which the regions are named. `length` is the length of the whole message, which its header carries. The
 * descriptor must not have PTL_IOVEC. */
typedef struct {
  ptl_size_t offset;
  ptl_size_t size;
} ptl_region_t;
typedef ptl_handle_any_t ptl_handle_sput_t;
int PtlSPutStart(ptl_handle_md_t md_handle, ptl_size_t length, ptl_ack_req_t ack_req, ptl_process_t target_id,
                 ptl_pt_index_t pt_index, ptl_match_bits_t match_bits, ptl_size_t remote_offset, void *user_ptr,
                 ptl_hdr_data_t hdr_data, ptl_region_t first, ptl_handle_sput_t *sput_handle);
/* Adds a region. With `end`, all regions together must have `length` bytes, and the handle becomes invalid. A
 * refused call changes nothing. */
int PtlSPutStream(ptl_handle_sput_t sput_handle, ptl_region_t region, int end);

/* An execution context without an entry, for puts whose packets the sender's handlers fill. */
typedef ptl_handle_any_t ptl_handle_spin_t;
int PtlSpinContextAlloc(ptl_handle_ni_t ni_handle, const ptl_spin_t *handlers, ptl_handle_spin_t *context);
int PtlSpinContextFree(ptl_handle_spin_t context); /* PTL_IN_USE while a message is under way */
/* Sends a message of `length` bytes, of which the context's payload handler fills each packet. The memory_length
 * bytes at local_offset of the descriptor's memory are the handlers' PTL_ME_HOST_MEM. PTL_ARG_INVALID: the context has
 * another handler than a payload handler, or a user header. */
int PtlProcessPut(ptl_handle_md_t md_handle, ptl_size_t local_offset, ptl_size_t memory_length, ptl_size_t length,
                  ptl_ack_req_t ack_req, ptl_process_t target_id, ptl_pt_index_t pt_index, ptl_match_bits_t match_bits,
                  ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data, ptl_handle_spin_t context);

/* Triggered operations registered on this counter from now on are not consumed when they start. They start again each
 * time that the counter has grown by `every`, or once in each round if the counter resets itself. If `every` is 0, they
 * are consumed, as usual. */
int PtlCTPersist(ptl_handle_ct_t ct_handle, ptl_size_t every);
/* The counter goes in rounds: when its successes and failures together have reached the threshold and started the
 * operations that wait, the counter is set to 0. A threshold of 0 ends the rounds. PTL_ARG_INVALID while operations
 * wait for the counter. */
int PtlCTAutoReset(ptl_handle_ct_t ct_handle, ptl_size_t threshold);

/* Allocates memory for long messages: processes of the same machine copy messages out of it once, without the
 * kernel. A block begins at a multiple of 64 KiB and is not zeroed; its pages take memory only when they are
 * touched. Works at any time, also before PtlInit. PTL_NO_SPACE: the heap is full, or the system gives no memory. */
int PtlSpinHeapAlloc(ptl_size_t length, void **start);
/* Frees a block. PTL_ARG_INVALID: no block of PtlSpinHeapAlloc begins at `start`. */
int PtlSpinHeapFree(void *start);

/* Ranks as threads: this process has `count` ranks of the job, as every process of the job must have. Rank number n of
 * process p is rank p * count + n. Once, before any PtlInit. PTL_ARG_INVALID: count is 0, or it is too late. PTL_FAIL:
 * the process cannot be a part of its job; or it is simulated, where all ranks are threads already. */
int PtlSpinRanks(unsigned int count);
/* From now on the calling thread belongs to rank number `number` of this process: its calls are that rank's. Several
 * threads may belong to one rank. A thread that belongs to none cannot call PtlInit. */
int PtlSpinRankEnter(unsigned int number);
/* The rank of the calling thread has ended, as a process ends by exit(0): if its interfaces are closed, it leaves as by
 * PtlFini; otherwise it is gone for its peers, calls of its threads answer PTL_NO_INIT or PTL_ABORTED, and this one
 * answers PTL_IN_USE. Its memory must stay until the process ends. */
int PtlSpinRankEnd(void);

#ifdef __cplusplus
}
#endif

#endif
