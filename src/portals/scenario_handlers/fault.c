/* Makes a call that does not exist. */
#include "spinloom/handler.h"

int payload_handler(const ptl_payload_t p, void* state) {
  volatile uint32_t* window = spl_window();
  (void)p;
  (void)state;
  window[0] = 0xff;
  return (int)window[SPL_CMD_ISSUE / 4];
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return PtlHandlerDMAToHostNB(NULL, 0, 0, PTL_ME_HOST_MEM, NULL);
}
