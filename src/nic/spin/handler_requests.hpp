// HandlerRequests - a running handler's requests to the memory of its host and its NIC: DMAs, atomics, waiting.
//
// Contract: each request is performed (actions answer it, now or later), refused (it was answered as docs/handlers.md
//   says; an engine whose messages can fail then fails the caller's), or gives stop_handler (the call or its options do
//   not exist here: the engine must stop the handler). `caller` is the running Execution, `range` the memory that it is
//   offered, `out` the engine's ActionList.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nic/spin/action.hpp"
#include "nic/spin/dma_tracker.hpp"
#include "nic/spin/executions.hpp"
#include "nic/spin/handler_call.hpp"
#include "nic/spin/host_range.hpp"
#include "spinloom/handler.h"

namespace spinloom::spin {

enum class CallResult : uint8_t { performed, refused, stop_handler };

class HandlerRequests {
 public:
  explicit HandlerRequests(DmaTracker& dmas) : dmas_(dmas) {}

  // Begins a DMA on memory offered to the handler. `queue` is that of the caller's work; `fills`: the handler may write
  // to its packet.
  template <class Actions>
  [[nodiscard]] CallResult dma(Execution& caller, const HandlerCall& call, DmaQueue& queue, const HostRange& range,
                               bool fills, Actions& out);
  template <class Actions>
  [[nodiscard]] CallResult dma_atomic(Execution& caller, const HandlerCall& call, DmaQueue& queue,
                                      const HostRange& range, Actions& out);
  template <class Actions>
  [[nodiscard]] CallResult dma_wait(const Execution& caller, const HandlerCall& call, Actions& out);
  template <class Actions>
  [[nodiscard]] CallResult local_atomic(const Execution& caller, const HandlerCall& call, Actions& out) const;
  template <class Actions>
  [[nodiscard]] CallResult debug(const Execution& caller, const HandlerCall& call, Actions& out) const;

 private:
  template <class Actions>
  void move(DmaId dma, uint8_t* host, uint64_t length, HerId her, const HandlerCall& call, bool to_host, bool blocking,
            Actions& out) const;

  DmaTracker& dmas_;
};

// ---- the requests ----

namespace detail {

inline constexpr uint32_t dma_options = PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT;

// The stack may be reused before an unawaited transfer has read or written it.
inline bool outlives(LocalMemory memory, bool blocking) { return blocking || memory != LocalMemory::stack; }

template <class Actions>
CallResult refuse(HerId her, uint32_t answer, Actions& out) {
  out.template add<Resume>(her, answer);
  return CallResult::refused;
}

}  // namespace detail

template <class Actions>
CallResult HandlerRequests::dma(Execution& caller, const HandlerCall& call, DmaQueue& queue, const HostRange& range,
                                bool fills, Actions& out) {
  if ((call.options & ~detail::dma_options) != 0) return CallResult::stop_handler;
  const HerId her = caller.her.id;
  const bool blocking = call.call == SPL_CALL_DMA_TO_HOST_B || call.call == SPL_CALL_DMA_FROM_HOST_B;
  const bool to_host = call.call == SPL_CALL_DMA_TO_HOST_NB || call.call == SPL_CALL_DMA_TO_HOST_B;
  const bool writes_packet = fills && call.local_memory == LocalMemory::packet;
  const bool kind_fits = to_host ? is_readable(call.local_memory) : writes_packet || is_hpu_memory(call.local_memory);
  const bool local_fits = call.length == 0 || (kind_fits && detail::outlives(call.local_memory, blocking));
  if (!range.holds(call.offset, call.length) || !local_fits) {
    return detail::refuse(her, blocking ? uint32_t{SEGV} : DmaId::none_value, out);
  }
  const auto [dma, handle] = dmas_.issue(queue, caller.owner, her, blocking);
  Executions::dma_issued(caller);
  std::vector<IovecElement> pieces;
  if (range.list.exists()) pieces = range.pieces(call.offset, call.length);
  uint8_t* const host = !pieces.empty()   ? pieces.front().base
                        : call.length > 0 ? range.start + call.offset
                                          : range.start;
  if ((call.options & PTL_DMA_NO_EVENT) == 0) {
    dmas_.report(dma, {call.offset, call.length, reinterpret_cast<uint64_t>(host)});
  }
  if (pieces.size() > 1) {  // one transfer for each piece; the DMA is done when all are
    dmas_.split(dma, static_cast<uint32_t>(pieces.size()));
    HandlerCall part = call;
    for (const IovecElement& piece : pieces) {
      move(dmas_.issue_piece(dma), piece.base, piece.length, her, part, to_host, blocking, out);
      part.local += piece.length;
    }
  } else {
    move(dma, host, call.length, her, call, to_host, blocking, out);
  }
  if (!blocking) out.template add<Resume>(her, handle);
  return CallResult::performed;
}

template <class Actions>
void HandlerRequests::move(DmaId dma, uint8_t* host, uint64_t length, HerId her, const HandlerCall& call, bool to_host,
                           bool blocking, Actions& out) const {
  if (!to_host) {
    out.template add<DmaRead>(dma, host, call.local, length, her);
    return;
  }
  DmaWrite& write = out.template add<DmaWrite>();
  write.dma = dma;
  write.host = host;
  write.source.space = PayloadRef::Space::local;
  write.source.bytes = call.local;
  write.source.length = length;
  write.her = her;
  write.blocking = blocking;
}

template <class Actions>
CallResult HandlerRequests::dma_atomic(Execution& caller, const HandlerCall& call, DmaQueue& queue,
                                       const HostRange& range, Actions& out) {
  if ((call.options & ~detail::dma_options) != 0) return CallResult::stop_handler;
  const HerId her = caller.her.id;
  const bool blocking = call.call == SPL_CALL_DMA_CAS_B || call.call == SPL_CALL_DMA_FADD_B;
  const bool swaps = call.call == SPL_CALL_DMA_CAS_NB || call.call == SPL_CALL_DMA_CAS_B;
  const bool width_exists = call.width == 1 || call.width == 2 || call.width == 4 || call.width == 8;
  if (!width_exists || (swaps && call.width != 8)) return CallResult::stop_handler;
  const std::optional<uint8_t*> host = range.contiguous(call.offset, call.width);
  const bool aligned = host && (reinterpret_cast<uint64_t>(*host) & (call.width - 1)) == 0;
  if (!aligned || !is_hpu_memory(call.local_memory) || !detail::outlives(call.local_memory, blocking)) {
    return detail::refuse(her, blocking ? uint32_t{SEGV} : DmaId::none_value, out);
  }
  const auto [dma, handle] = dmas_.issue(queue, caller.owner, her, blocking);
  Executions::dma_issued(caller);
  DmaAtomic atomic;
  atomic.dma = dma;
  atomic.kind = swaps ? AtomicKind::compare_swap : AtomicKind::fetch_add;
  atomic.host = *host;
  atomic.width = call.width;
  atomic.compare = call.compare;
  atomic.operand = call.operand;
  atomic.before = call.local;
  atomic.her = her;
  out.list.emplace_back(atomic);
  if (!blocking) out.template add<Resume>(her, handle);
  return CallResult::performed;
}

template <class Actions>
CallResult HandlerRequests::dma_wait(const Execution& caller, const HandlerCall& call, Actions& out) {
  const HerId her = caller.her.id;
  const bool open = dmas_.is_open(call.handle, her);
  if (call.call == SPL_CALL_DMA_TEST) {
    out.template add<Resume>(her, open ? 0u : 1u);
  } else if (open) {
    dmas_.wait(call.handle, her);  // the end of the DMA answers the call
  } else {
    out.template add<Resume>(her, uint32_t{SUCCESS});
  }
  return CallResult::performed;
}

template <class Actions>
CallResult HandlerRequests::local_atomic(const Execution& caller, const HandlerCall& call, Actions& out) const {
  const HerId her = caller.her.id;
  const bool aligned = (reinterpret_cast<uint64_t>(call.local) & 7) == 0;
  if (!aligned) return CallResult::stop_handler;  // a misaligned atomic faults
  const bool before_fits = call.before_memory == LocalMemory::none || is_hpu_memory(call.before_memory);
  if (call.local_memory != LocalMemory::state || !before_fits) return detail::refuse(her, uint32_t{SEGV}, out);
  LocalAtomic atomic;
  atomic.kind = call.call == SPL_CALL_HPU_CAS ? AtomicKind::compare_swap : AtomicKind::fetch_add;
  atomic.local = call.local;
  atomic.compare = call.compare;
  atomic.operand = call.operand;
  atomic.before = call.before;
  atomic.her = her;
  out.list.emplace_back(atomic);
  return CallResult::performed;
}

template <class Actions>
CallResult HandlerRequests::debug(const Execution& caller, const HandlerCall& call, Actions& out) const {
  if (call.options != 0) return CallResult::stop_handler;
  if (call.local == nullptr) return detail::refuse(caller.her.id, uint32_t{SEGV}, out);
  const Her& her = caller.her;
  const std::string text(reinterpret_cast<const char*>(call.local), call.length);
  out.template add<DebugLine>(her.kind, her.hpu, text, static_cast<uint32_t>(call.operand));
  out.template add<Resume>(her.id, uint32_t{SUCCESS});
  return CallResult::performed;
}

}  // namespace spinloom::spin
