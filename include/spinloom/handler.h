/* The handler interface: P4sPIN as the SC'17 sPIN paper defines it (appendix B), with the NO_EVENT option
 * and scheduling policies of the SC'19 datatypes paper (sections 3.2.1, 3.2.2).
 *
 * Contract: one C source per handler image, built for RV32 (simulated, sandboxed) or natively. A source
 * defines any of
 *     int payload_handler(const ptl_payload_t p, void *state);
 *     int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);
 * `state` is the writable NIC memory of the context; spl_constants() its read-only NIC memory. State that
 * host and HPU share uses fixed-width, pointer-free types.
 *
 * Deviations from the paper, each with its reason:
 *   - ptl_payload_t.base is a pointer: the printed flexible array cannot be passed by value.
 *   - DMA calls take the handle by pointer and allow NULL with PTL_DMA_NO_EVENT: nobody waits for it.
 */
#ifndef SPINLOOM_HANDLER_H
#define SPINLOOM_HANDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "spinloom/hpu_map.h"

typedef uint64_t ptl_size_t;
typedef uint32_t ptl_dma_h;

typedef struct {
  ptl_size_t length;   /* bytes at base */
  ptl_size_t offset;   /* of this payload in the message */
  const uint8_t *base; /* beginning of the data, in packet memory */
} ptl_payload_t;

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

/* Options of DMA calls: the memory they reach, and whether their completion is told to the host. */
enum {
  PTL_ME_HOST_MEM = 0u,
  PTL_HANDLER_HOST_MEM = 1u << 8,
  PTL_DMA_NO_EVENT = 1u << 9
};

#if defined(__riscv)

static inline volatile uint32_t *spl_window(void) { return (volatile uint32_t *)SPL_HPU_COMMAND_BASE; }

#define PTL_NUM_HPUS_MAX 256u
#define PTL_MY_HPU (spl_window()[SPL_CMD_HPU / 4])
#define PTL_MY_VHPU (spl_window()[SPL_CMD_VHPU / 4])
#define PTL_NUM_HPUS (spl_window()[SPL_CMD_HPU_COUNT / 4])

static inline const void *spl_constants(void) { return (const void *)SPL_HPU_CONST_BASE; }

/* Copies len bytes from local (packet or HPU memory) to offset of the entry's host memory.
 * Returns at once; *h names the transfer. Six stores and one load. */
static inline int PtlHandlerDMAToHostNB(const void *local, ptl_size_t offset, ptl_size_t len, unsigned options,
                                        ptl_dma_h *h) {
  volatile uint32_t *window = spl_window();
  window[1] = (uint32_t)(uintptr_t)local;
  window[2] = (uint32_t)offset;
  window[3] = (uint32_t)(offset >> 32);
  window[4] = (uint32_t)len;
  window[5] = 0;
  window[0] = SPL_CALL_DMA_TO_HOST_NB | options;
  const uint32_t handle = window[SPL_CMD_ISSUE / 4];
  if (h != NULL) *h = handle;
  return SUCCESS;
}

#endif /* __riscv */

#endif
