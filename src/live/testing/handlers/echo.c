/* Writes each packet to its own place in the entry. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  (void)state;
  return PtlHandlerDMAToHostNB(p.base, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
}
