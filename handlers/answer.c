/* The entry of a send that has asked: its header_handler() sends the data that the receiver's NIC has asked for.
 *
 * Contract: an answer's header data are the match bits for the data; its 8 bytes, the user header, are those of the
 *   request, which the data bring along as their header data. The entry's counter says what to send
 *   (spinloom/rendezvous.h): from the beginning of the entry's memory, or filled by another context's handlers. The
 *   counter counts the send, which tells the host that its memory is free.
 */
#include "spinloom/handler.h"
#include "spinloom/rendezvous.h"

int header_handler(const ptl_header_t h, void *state) {
  ptl_ct_event_t send;
  const ptl_match_bits_t matched = *(const ptl_match_bits_t *)h.user_hdr;
  (void)state;
  if (PtlHandlerCTGet(&send) != SUCCESS) return FAIL;
  const ptl_size_t bytes = send.success & SPL_SEND_BYTES_MASK;
  const uint32_t context = (uint32_t)(send.success >> SPL_SEND_CONTEXT_SHIFT);
  const int sent =
      context == 0
          ? PtlHandlerPutFromHost(0, bytes, 1, PTL_NO_ACK_REQ, h.source_id, h.hdr_data, 0, NULL, matched)
          : PtlHandlerProcessPut(context - 1, 0, bytes, 1, PTL_NO_ACK_REQ, h.source_id, h.hdr_data, 0, NULL, matched);
  return sent == SUCCESS ? DROP : FAIL;
}
