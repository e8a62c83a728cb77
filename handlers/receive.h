/* Handlers of a receive of an MPI library: those of a layout, and a header handler that decides when a message has
 * matched.
 *
 * A source names the handlers of its layout in SPL_RECEIVE_HANDLERS and includes this.
 *
 * Contract: the counter of the receive's entry is no count: it holds what the header handler has to know of this receive,
 *   while other receives of the same type share constants and state. `success`: match bits of the receive's own entry for
 *   data that were asked for; `failure`: bytes that the receive takes.
 *   A message with header data is a request (spinloom/rendezvous.h): the handler answers its sender in the host's place
 *   and drops the request's bytes, so that the host hears nothing of it.
 *   A message that is longer than the receive fails, and none of its bytes is written: a layout has no place for them.
 */
#ifndef SPINLOOM_HANDLERS_RECEIVE_H
#define SPINLOOM_HANDLERS_RECEIVE_H

#include "spinloom/handler.h"
#include "spinloom/rendezvous.h"

int layout_completion_handler(int dropped_bytes, bool flow_control_triggered, void *state);

#define completion_handler layout_completion_handler
#include SPL_RECEIVE_HANDLERS
#undef completion_handler

int header_handler(const ptl_header_t h, void *state) {
  ptl_ct_event_t receive;
  (void)state;
  if (PtlHandlerCTGet(&receive) != SUCCESS) return FAIL;
  if (h.hdr_data == 0) return h.length <= receive.failure ? PROCESS_DATA : FAIL;
  if ((h.hdr_data & SPL_REQUEST_BYTES_MASK) > receive.failure) return FAIL;
  if (PtlHandlerPutFromDevice(NULL, 0, 0, PTL_NO_ACK_REQ, h.source_id,
                              SPL_ANSWER_BITS | h.hdr_data >> SPL_REQUEST_BYTES_BITS, 0, NULL,
                              receive.success) != SUCCESS)
    return FAIL;
  return DROP;
}

/* A request, or what has failed, has its bytes dropped: it is no message that the layout's handlers have written. */
int completion_handler(int dropped_bytes, bool flow_control_triggered, void *state) {
  if (dropped_bytes != 0) return SUCCESS;
  return layout_completion_handler(dropped_bytes, flow_control_triggered, state);
}

#endif
