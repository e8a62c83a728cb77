/* Does what its first constant says: asks its host and sends the answer, yields for ever, sends and waits, prints,
 * sends and asks again and again. */
#include "spinloom/frame.h"

enum { ASK, YIELD, SEND_AND_WAIT, PRINT, SEND_AND_TEST };

int payload_handler(const ptl_payload_t p, void* state) {
  const uint32_t what = *(const uint32_t*)spl_constants();
  uint8_t* const frame = spl_frame();
  if (what == ASK) {
    (void)PtlHandlerDMAToHostB(frame + 14, PTL_MY_HPU * SPL_HOST_PAGE_BYTES + SPL_HOST_PAGE_PAYLOAD, p.length - 14,
                               PTL_HANDLER_HOST_MEM);
    const uint32_t answer = spl_host_request(state, (uint32_t)p.length - 14);
    spl_count(state, 3, answer);
    (void)PtlHandlerDMAFromHostB(PTL_MY_HPU * SPL_HOST_PAGE_BYTES + SPL_HOST_PAGE_PAYLOAD, frame + 14, answer,
                                 PTL_HANDLER_HOST_MEM);
    return spl_send_frame(frame, 14 + answer, NULL);
  }
  if (what == YIELD) {
    for (;;) PtlHandlerYield();
  }
  if (what == SEND_AND_WAIT) {
    ptl_dma_h sent;
    if (spl_send_frame(frame, (uint32_t)p.length, &sent) != SUCCESS) return FAIL;
    if (PtlHandlerDMAWait(sent) != SUCCESS) return FAIL;
    frame[14] ^= 0xff; /* it has left: the change is in the second frame only */
    return spl_send_frame(frame, (uint32_t)p.length, NULL);
  }
  if (what == SEND_AND_TEST) {
    ptl_dma_h sent;
    if (spl_send_frame(frame, (uint32_t)p.length, &sent) != SUCCESS) return FAIL;
    while (!PtlHandlerDMATest(sent)) {
    }
    return SUCCESS;
  }
  if (what == PRINT) (void)spl_debug("seen", (uint32_t)p.length);
  return PROCEED;
}
