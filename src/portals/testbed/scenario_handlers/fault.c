/* Makes a call that does not exist. The completion handler makes an empty DMA with event; that event never comes. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  (void)p;
  (void)state;
  return (int)spl_issue(0xff);
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return PtlHandlerDMAToHostNB(NULL, 0, 0, PTL_ME_HOST_MEM, NULL);
}
