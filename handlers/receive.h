/* Handlers of a receive of an MPI library: a header handler that decides when a message has matched, around those of a
 * layout.
 *
 * A source names the handlers of its layout in SPL_RECEIVE_HANDLERS, if it has a layout, and includes this.
 *
 * Contract: the counter of the receive's entry is no count: it holds what the header handler has to know of this
 *   receive, while other receives of the same type share constants and state. `success`: match bits of the receive's
 *   own entry for data that were asked for, 0 if it has none; `failure`: bytes that the receive takes.
 *   An ordinary message with header data is a request (spinloom/rendezvous.h): the handler answers its sender in the
 *   host's place and drops the request's bytes. The data then come to the receive's other entry. It fails, and the host
 *   hears of it, if there is no such entry or the data are too long.
 *   A message that is longer than the receive fails, and none of its bytes is written: a layout has no place for them.
 *   Without a layout the NIC cuts it off.
 */
#ifndef SPINLOOM_HANDLERS_RECEIVE_H
#define SPINLOOM_HANDLERS_RECEIVE_H

#include "spinloom/handler.h"
#include "spinloom/rendezvous.h"

#ifdef SPL_RECEIVE_HANDLERS
int layout_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);

#define completion_handler layout_completion_handler
#include SPL_RECEIVE_HANDLERS
#undef completion_handler

#define SPL_RECEIVE_SHORT(fits) ((fits) ? PROCESS_DATA : FAIL)

/* A request, or what has failed, has its bytes dropped: it is no message that the layout's handlers have written. */
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  if (dropped_bytes != 0) return SUCCESS;
  return layout_completion_handler(dropped_bytes, flow_control_triggered, state);
}
#else
#define SPL_RECEIVE_SHORT(fits) PROCEED
#endif

int header_handler(const ptl_header_t h, void *state) {
  ptl_ct_event_t receive;
  (void)state;
  if (PtlHandlerCTGet(&receive) != SUCCESS) return FAIL;
  if (h.hdr_data == 0 || (h.match_bits & SPL_KIND_BITS) != 0) return SPL_RECEIVE_SHORT(h.length <= receive.failure);
  if (receive.success == 0 || (h.hdr_data & SPL_REQUEST_BYTES_MASK) > receive.failure) return FAIL;
  const ptl_match_bits_t matched = h.match_bits;
  __asm__ volatile("" ::"r"(&matched) : "memory"); /* this keeps it on the stack: only the NIC reads it */
  const int answered =
      PtlHandlerPutFromDevice(&matched, sizeof matched, 0, PTL_NO_ACK_REQ, h.source_id,
                              SPL_ANSWER_BITS | h.hdr_data >> SPL_REQUEST_BYTES_BITS, 0, NULL, receive.success);
  return answered == SUCCESS ? DROP : FAIL;
}

#endif
