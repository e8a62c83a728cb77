/* Answers each message with its own bytes.
 *
 * Contract: constants: uint32_t stream, match bits of the answer, bytes of a packet. stream = 1: each packet is put
 * back from the NIC's memory as it comes, at its offset, and never reaches the host. stream = 0 (store): so is a
 * message of one packet; a longer one lands in the entry's memory and is put back from there when all of it is in. The
 * answer goes to who sent, at the remote offset 0. One message at a time: the header handler keeps what the others need
 * in the state. Source: SC'17 sPIN paper, section 4.4.1.
 */
#include "spinloom/handler.h"

typedef struct {
  ptl_size_t offset; /* the place in the entry */
  ptl_size_t stored; /* bytes that wait in host memory */
  ptl_process_t source;
} pingpong_state;

static const uint32_t *constants(void) { return spl_constants(); }

int header_handler(const ptl_header_t h, void *state) {
  pingpong_state *const kept = state;
  const bool streams = constants()[0] != 0 || h.length <= constants()[2];
  kept->offset = h.offset;
  kept->stored = streams ? 0 : h.length;
  kept->source = h.source_id;
  return streams ? PROCESS_DATA : PROCEED;
}

int payload_handler(const ptl_payload_t p, void *state) {
  const pingpong_state *const kept = state;
  return PtlHandlerPutFromDevice(p.base, p.length, 0, PTL_NO_ACK_REQ, kept->source, constants()[1], p.offset, NULL, 0);
}

int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  const pingpong_state *const kept = state;
  (void)dropped_bytes;
  (void)flow_control_triggered;
  if (kept->stored == 0) return SUCCESS;
  return PtlHandlerPutFromHost(kept->offset, kept->stored, 0, PTL_NO_ACK_REQ, kept->source, constants()[1], 0, NULL, 0);
}
