/* The key-value store of key_value.h for Portals: a request is a put of one packet, its answer a put to who sent it.
 *
 * Contract: constants: kv_constants; state: kv_state; user_header_bytes of the context is the longest request's length,
 *   at most a packet. The answer has at most ANSWER_BYTES and goes to offset 0 of the client's entry at answer_bits,
 *   with the request's header data. A message that is no request fails.
 */
#include "key_value.h"

#define ANSWER_BYTES 512u

int header_handler(const ptl_header_t h, void *state) {
  const kv_constants *const given = spl_constants();
  uint8_t answer[ANSWER_BYTES];
  const uint32_t bytes = kv_serve(h.user_hdr, h.user_hdr_length, state, answer, sizeof answer);
  if (bytes == 0) return FAIL;
  const int put =
      PtlHandlerPutFromDevice(answer, bytes, 0, PTL_NO_ACK_REQ, h.source_id, given->answer_bits, 0, NULL, h.hdr_data);
  return put == SUCCESS ? DROP : put;
}
