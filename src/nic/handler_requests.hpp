// HandlerRequests - a running handler's requests to the memory of its host and its NIC: DMAs, atomics, waiting.
//
// Contract: each request is performed (the actions answer it), refused (it was answered as docs/handlers.md says, and
//   its work has failed), or stops (the call or its options do not exist here: the handler must be stopped). `caller`
//   is the running execution, `range` the memory that it is offered.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "nic/dma_tracker.hpp"
#include "nic/executions.hpp"
#include "nic/handler_call.hpp"
#include "nic/host_range.hpp"

namespace spinloom::nic {

enum class Requested : uint8_t { performed, refused, stops };

class HandlerRequests {
 public:
  explicit HandlerRequests(DmaTracker& dmas) : dmas_(dmas) {}

  // SPL_CALL_DMA_... on memory offered to the handler. `queue` is of its work; `fills`: it may write its packet.
  [[nodiscard]] Requested dma(Execution& caller, const HandlerCall& call, DmaQueue& queue, const HostRange& range,
                              bool fills, Actions& out);
  [[nodiscard]] Requested dma_atomic(Execution& caller, const HandlerCall& call, DmaQueue& queue,
                                     const HostRange& range, Actions& out);
  [[nodiscard]] Requested dma_wait(const Execution& caller, const HandlerCall& call, Actions& out);
  [[nodiscard]] Requested local_atomic(const Execution& caller, const HandlerCall& call, Actions& out) const;
  [[nodiscard]] Requested debug(const Execution& caller, const HandlerCall& call, Actions& out) const;

 private:
  void move(DmaId dma, uint8_t* host, uint64_t length, HerId her, const HandlerCall& call, bool to_host, bool blocking,
            Actions& out) const;

  DmaTracker& dmas_;
};

}  // namespace spinloom::nic
