/* Shared by all datatype handlers: the DMA of a piece, and the end of a message.
 *
 * The same handlers run at both ends. A source that defines SPL_DDT_GATHER before it includes another becomes its image
 * for process-puts: each piece is read from host memory into the packet at hand, which the handler fills; nothing runs
 * at the end.
 *
 * Contract: a piece is written by a non-blocking DMA without an event; the completion handler issues one
 *   zero-byte DMA with an event, which the NIC completes after all earlier DMAs of the message, so that its
 *   event tells the host that everything is unpacked (SC'19 datatypes paper, section 3.2.2).
 * The entry's memory begins at the first byte that the message touches, so an offset is never negative.
 */
#ifndef SPINLOOM_HANDLERS_DDT_H
#define SPINLOOM_HANDLERS_DDT_H

#include "spinloom/handler.h"
#include "spinloom/layout_walk.h"

#ifdef SPL_DDT_GATHER
/* context: the packet to fill. */
SPL_INLINE void ddt_emit_narrow(void *context, int32_t offset, uint32_t packed, uint32_t bytes) {
  PtlHandlerDMAFromHostNB((uint32_t)offset, (uint8_t *)context + packed, bytes, PTL_ME_HOST_MEM, NULL);
}

SPL_INLINE void ddt_emit_wide(void *context, int64_t offset, uint64_t packed, uint64_t bytes) {
  PtlHandlerDMAFromHostNB((uint64_t)offset, (uint8_t *)context + packed, bytes, PTL_ME_HOST_MEM, NULL);
}
#else
/* context: the packet's payload. */
SPL_INLINE void ddt_emit_narrow(void *context, int32_t offset, uint32_t packed, uint32_t bytes) {
  PtlHandlerDMAToHostNB((const uint8_t *)context + packed, (uint32_t)offset, bytes, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT,
                        NULL);
}

SPL_INLINE void ddt_emit_wide(void *context, int64_t offset, uint64_t packed, uint64_t bytes) {
  PtlHandlerDMAToHostNB((const uint8_t *)context + packed, (uint64_t)offset, bytes, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT,
                        NULL);
}
#endif

SPL_INLINE int ddt_complete(void) {
  PtlHandlerDMAToHostNB(spl_constants(), 0, 0, PTL_ME_HOST_MEM, NULL);
  return SUCCESS;
}

#endif
