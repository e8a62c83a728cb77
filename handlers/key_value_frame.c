/* The key-value store of key_value.h for UDP: the answer takes the place of the request in its frame.
 *
 * Contract: constants: kv_constants; state: kv_state. An answer is at most as long as its request: a client pads a
 *   request to the bytes that it wants answered, and nobody can have more sent to another than he sends himself. A
 *   frame that is no request is for the host's stack.
 */
#include "key_value.h"
#include "udp_service.h"

int payload_handler(const ptl_payload_t p, void *state) {
  uint32_t bytes;
  uint8_t *const request = udp_payload(sizeof(kv_message), &bytes);
  if (request == NULL) return PROCEED;
  const uint32_t answered = kv_serve(request, bytes, state, request, bytes);
  udp_answer((udp_headers *)spl_frame(), answered);
  return spl_send_frame(spl_frame(), sizeof(udp_headers) + answered, NULL);
}
