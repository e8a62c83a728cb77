// HandlerWork - the object that handlers work on: a message that arrives, or a message whose packets they fill.
//
// Contract: both kinds of messages contain a HandlerWork; executions and DMAs name it by their Owner. Only the first
//   failure is recorded. A handler that does not return stops the work: no other handler of it starts
//   (docs/handlers.md has the tables).
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "nic/portals/event.hpp"
#include "nic/portals/ids.hpp"
#include "nic/spin/dma_tracker.hpp"
#include "nic/spin/handler_call.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

// Values of Owner::kind: of executions (the first two) and of DMAs.
enum OwnerKind : uint8_t {
  incoming,  // a message that arrives
  process_put,  // a message whose packets handlers of this NIC fill
  whole_put,  // a put that came in one packet and takes the short way (nic_delivery)
  reply  // a reply to this NIC
};

struct HandlerWork {
  ContextId context;
  Fail failure = Fail::ok;
  bool stopped = false;
  uint32_t hers_open = 0;
  DmaQueue dmas;

  void record(Fail reason) {
    if (failure == Fail::ok) failure = reason;
  }
  // Records the failure of a handler: that it did not return, which stops the work, or the FAIL, SEGV or unknown code
  // that it returned.
  void fail(HandlerEnd end, uint32_t code) {
    switch (end) {
      case HandlerEnd::returned:
        return record(code == FAIL ? Fail::handler_fail : code == SEGV ? Fail::segv : Fail::handler_code);
      case HandlerEnd::segv: record(Fail::segv); break;
      case HandlerEnd::budget: record(Fail::handler_budget); break;
      case HandlerEnd::fault: record(Fail::handler_fault); break;
    }
    stopped = true;
  }
};

}  // namespace spinloom::nic
