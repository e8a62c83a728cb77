// What a running handler asks for, and how it ends (docs/handlers.md has the table).
#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {
namespace {

constexpr uint32_t dma_options = PTL_HANDLER_HOST_MEM | PTL_DMA_NO_EVENT;

bool readable_by_dma(LocalMemory memory) {
  return memory == LocalMemory::packet || memory == LocalMemory::constants || memory == LocalMemory::state;
}

}  // namespace

bool Nic::Impl::handler_call(HerId her, const HandlerCall& call, Actions& out) {
  Execution& execution = executions[her.value];
  SPL_ASSERT(execution.stage == Stage::running, "HER ", her, " calls but does not run");
  switch (call.call) {
    case SPL_CALL_DMA_TO_HOST_NB: return dma_to_host(her.value, call, out);
    case SPL_CALL_CT_INC: {
      const CounterId counter = entries[messages[execution.message].entry].entry.counter;
      const bool counts = counters.find(counter) != nullptr;
      if (counts) count(counter, CounterValue{call.success, call.failure}, out);
      out.list.emplace_back(Resume{her, counts ? uint32_t{SUCCESS} : uint32_t{FAIL}});
      return false;
    }
    case SPL_CALL_YIELD:  // a hint: this scheduler lets a handler run to its end
      out.list.emplace_back(Resume{her, uint32_t{SUCCESS}});
      return false;
    default: return true;
  }
}

bool Nic::Impl::dma_to_host(uint32_t index, const HandlerCall& call, Actions& out) {
  if ((call.options & ~dma_options) != 0) return true;
  Execution& execution = executions[index];
  Message& message = messages[execution.message];
  uint8_t* start = nullptr;
  uint64_t length = 0;
  if ((call.options & PTL_HANDLER_HOST_MEM) != 0) {
    const Context& context = contexts.find(message.context)->context;
    start = reinterpret_cast<uint8_t*>(context.handler_host_start);
    length = context.handler_host_length;
  } else {
    const Entry& entry = entries[message.entry].entry;
    start = entry.start;
    length = entry.length;
  }
  const bool inside = call.offset <= length && call.length <= length - call.offset;
  if (!inside || (call.length > 0 && !readable_by_dma(call.local_memory))) {
    record_failure(message, Fail::segv);
    out.list.emplace_back(Resume{HerId{index}, DmaId::none_value});
    return false;
  }
  const uint32_t slot = issue_dma(execution.message, index);
  Dma& dma = dmas[slot];
  uint8_t* host = call.length > 0 ? start + call.offset : start;
  if ((call.options & PTL_DMA_NO_EVENT) == 0) {
    dma.event = true;
    dma.offset = call.offset;
    dma.length = call.length;
    dma.start = reinterpret_cast<uint64_t>(host);
  }
  const PayloadRef source{PayloadRef::Space::local, call.local, call.length};
  out.list.emplace_back(DmaWrite{DmaId{slot}, host, source, HerId{index}});
  out.list.emplace_back(Resume{HerId{index}, slot});
  return false;
}

void Nic::Impl::handler_done(HerId her, HandlerEnd end, uint32_t code, Actions& out) {
  Execution& execution = executions[her.value];
  SPL_ASSERT(execution.stage == Stage::running, "HER ", her, " ends but does not run");
  const uint32_t slot = execution.message;
  Message& message = messages[slot];
  const bool completion = execution.her.kind == HandlerKind::completion;
  if (end == HandlerEnd::returned) {
    if (code == FAIL) {
      record_failure(message, Fail::handler_fail);
    } else if (code == SEGV) {
      record_failure(message, Fail::segv);
    } else if (code == DROP && !completion) {
      message.dropped_bytes += execution.her.payload.length;
    } else if (code == SUCCESS_PENDING && completion) {
      message.pending = true;
    } else if (code != SUCCESS) {
      record_failure(message, Fail::handler_code);
    }
  } else {
    switch (end) {
      case HandlerEnd::segv: record_failure(message, Fail::segv); break;
      case HandlerEnd::budget: record_failure(message, Fail::handler_budget); break;
      default: record_failure(message, Fail::handler_fault); break;
    }
    message.stopped = true;
    if (!completion) message.dropped_bytes += execution.her.payload.length;
  }
  // A message that failed does complete its entry: the host must hear of it.
  if (message.failure != Fail::ok) message.pending = false;
  execution.stage = Stage::ended;
  free_hpu(execution, out);  // may drop other packets of this message, which must not complete before this one counts
  --message.hers_open;
  release_execution(her.value);
  advance(slot, out);
}

}  // namespace spinloom::nic
