/* Counts what runs when: state[0] header, [1] payload, [2] completion handlers; the completion handler sends its
 * frame. */
#include "spinloom/frame.h"

int header_handler(const ptl_header_t h, void* state) {
  uint32_t* const seen = state;
  ++seen[0];
  return seen[1] == 0 ? PROCESS_DATA : FAIL;
}
int payload_handler(const ptl_payload_t p, void* state) {
  uint32_t* const seen = state;
  ++seen[1];
  return SUCCESS;
}
int completion_handler(int dropped_bytes, bool flow_control_triggered, void* state) {
  uint32_t* const seen = state;
  ++seen[2];
  seen[1] = 0;
  return spl_send_frame(spl_frame(), spl_frame_bytes(), NULL);
}
