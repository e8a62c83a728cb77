#include "nic/spin/handler_runner.hpp"

#include <utility>

#include "base/assert.hpp"
#include "spinloom/handler.h"

namespace spinloom::spin {
namespace {

template <class Span>
bool holds(const Span& memory, const uint8_t* bytes, uint64_t length) {
  const auto start = reinterpret_cast<uintptr_t>(memory.data());
  const auto address = reinterpret_cast<uintptr_t>(bytes);
  return address >= start && address - start <= memory.size() && length <= memory.size() - (address - start);
}

}  // namespace

HandlerFrame frame_of(const Her& her, const Context& context, std::span<uint8_t> nic_memory, uint32_t hpu_count) {
  HandlerFrame frame;
  frame.her = her;
  frame.context = &context;
  frame.packet = {her.payload.bytes, her.payload.length};
  frame.constants = nic_memory.subspan(context.constants.offset, context.constants.length);
  frame.state = nic_memory.subspan(context.state.offset, context.state.length);
  frame.hpu_count = hpu_count;
  return frame;
}

uint32_t NativeHandler::call(const HandlerCall& request) {
  const auto result = calls_.call(request);
  if (!result) stopped_ = true;
  return result.value_or(UINT32_MAX);
}

uint32_t NativeHandler::dma_to_host(const uint8_t* local, uint64_t offset, uint64_t length, uint32_t options) {
  HandlerCall request;
  request.call = SPL_CALL_DMA_TO_HOST_NB;
  request.options = options;
  request.offset = offset;
  request.length = length;
  request.local = const_cast<uint8_t*>(local);  // the source is only read
  if (local == nullptr) {
    request.local_memory = LocalMemory::none;
  } else if (holds(frame_.packet, local, length)) {
    request.local_memory = LocalMemory::packet;
  } else if (holds(frame_.constants, local, length)) {
    request.local_memory = LocalMemory::constants;
  } else if (holds(frame_.state, local, length)) {
    request.local_memory = LocalMemory::state;
  } else {
    request.local_memory = LocalMemory::stack;
  }
  return call(request);
}

uint32_t NativeHandler::dma_into_packet(uint64_t offset, uint64_t at, uint64_t length) {
  HandlerCall request;
  request.call = SPL_CALL_DMA_FROM_HOST_NB;
  request.options = PTL_DMA_NO_EVENT;
  request.offset = offset;
  request.length = length;
  request.local = const_cast<uint8_t*>(frame_.packet.data()) + at;
  request.local_memory = at + length <= frame_.packet.size() ? LocalMemory::packet : LocalMemory::outside;
  return call(request);
}

uint32_t NativeHandler::count(uint64_t success, uint64_t failure) {
  HandlerCall request;
  request.call = SPL_CALL_CT_INC;
  request.success = success;
  request.failure = failure;
  return call(request);
}

uint32_t NativeHandlers::add(Function function) {
  functions_.push_back(std::move(function));
  return static_cast<uint32_t>(functions_.size() - 1);
}

HandlerOutcome NativeHandlers::run(const HandlerFrame& frame, HandlerCalls& calls) {
  const auto entry = frame.context->entry_of(frame.her.kind);
  SPL_ASSERT(entry.has_value(), "HER ", frame.her.id, " has no handler");
  if (*entry >= functions_.size()) return {HandlerEnd::fault, 0};
  NativeHandler handler(frame, calls);
  const HandlerOutcome outcome = functions_[*entry](handler);
  return handler.stopped() ? HandlerOutcome{HandlerEnd::fault, 0} : outcome;
}

}  // namespace spinloom::spin
