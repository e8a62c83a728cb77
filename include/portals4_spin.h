/* portals4_spin.h - sPIN handlers on matching list entries: what P4sPIN adds to the host's side of Portals 4.
 *
 * Contract: the SC'17 sPIN paper, appendix B.1 and B.2. A handler is a function of a handler image, named by its
 * symbol; an image is one that Spinloom ships (`pingpong`) or one that the launcher was given (`spinloom sim --handler
 * x.c`, image `x`). docs/handlers.md says what handlers may do. Deviations: the arguments for handlers are a struct of
 * their own beside ptl_me_t, as the paper allows; handlers are named, because they are not the host's functions;
 * constants are apart from the state, as handler.h has them. Invariants: (1) HPU memory stays until PtlHPUFreeMem and
 * may serve several entries; (2) the state is written when an entry is appended with one, before the entry is there.
 * Threads: as portals4.h. Time: as portals4.h.
 */
#ifndef PORTALS4_SPIN_H
#define PORTALS4_SPIN_H

#include "portals4.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A handler's transfer with event, and all of its message before it, is in host memory. */
#define PTL_EVENT_DMA ((ptl_event_kind_t)32)

/* How a message with handlers failed (docs/handlers.md). */
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
  const void *constants;           /* what handlers read by spl_constants() */
  ptl_size_t constants_length;
  void *handler_host_mem_start;
  ptl_size_t handler_host_mem_length;
  ptl_size_t user_header_length;
  ptl_size_t budget_cycles;        /* of one handler; 0: the NIC's */
} ptl_spin_t;

int PtlHPUAllocMem(ptl_size_t length, ptl_handle_ni_t ni_handle, ptl_hpu_md_h *hpu_mem);
int PtlHPUFreeMem(ptl_hpu_md_h *hpu_mem);
/* PtlMEAppend with handlers; the entry's context goes when the entry does, by PtlMEUnlink or PtlNIFini. */
int PtlSpinMEAppend(ptl_handle_ni_t ni_handle, ptl_pt_index_t pt_index, const ptl_me_t *me, const ptl_spin_t *handlers,
                    ptl_list_t ptl_list, void *user_ptr, ptl_handle_me_t *me_handle);

#ifdef __cplusplus
}
#endif

#endif
