/* Lands each packet where it would land without handlers: the beginning of something of your own.
 *
 * A source defines any of the three handlers; docs/handlers.md says what they may call and how they may end.
 */
#include "spinloom/handler.h"

/* Once for each message, before its other handlers: PROCESS_DATA, PROCEED (no payload handlers) or DROP. */
int header_handler(const ptl_header_t h, void *state) {
  (void)h;
  (void)state;
  return PROCESS_DATA;
}

/* Once for each packet: p.length bytes at p.base, which are the message's from p.offset on. */
int payload_handler(const ptl_payload_t p, void *state) {
  (void)state;
  return PtlHandlerDMAToHostNB(p.base, p.offset, p.length, PTL_ME_HOST_MEM | PTL_DMA_NO_EVENT, NULL);
}

/* Once for each message, after all of its payload handlers. */
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  (void)dropped_bytes;
  (void)flow_control_triggered;
  (void)state;
  return SUCCESS;
}
