// How a handler ends, and what follows for its message (docs/handlers.md has the tables).
#include "nic/nic_impl.hpp"
#include "spinloom/handler.h"

namespace spinloom::nic {

// What a handler did wrong: it did not return, or returned a code that its kind does not have.
void Nic::Impl::fail_message(Message& message, HandlerEnd end, uint32_t code) {
  switch (end) {
    case HandlerEnd::returned:
      record_failure(message, code == FAIL ? Fail::handler_fail : code == SEGV ? Fail::segv : Fail::handler_code);
      return;
    case HandlerEnd::segv: record_failure(message, Fail::segv); break;
    case HandlerEnd::budget: record_failure(message, Fail::handler_budget); break;
    case HandlerEnd::fault: record_failure(message, Fail::handler_fault); break;
  }
  message.stopped = true;
}

void Nic::Impl::handler_done(HerId her, HandlerEnd end, uint32_t code, uint64_t cycles, Actions& out) {
  Execution& execution = executions[her.value];
  SPL_ASSERT(execution.stage == Stage::running, "HER ", her, " ends but does not run");
  tally(execution.her.context, Telemetry::handler_cycles, cycles);
  if (end != HandlerEnd::returned) tally(execution.her.context, Telemetry::handler_faults);
  const uint32_t slot = execution.message;
  Message& message = messages[slot];
  if (message.outgoing != no_slot) return outbound_handler_done(her.value, end, code, out);
  const HandlerKind kind = execution.her.kind;
  const bool good = end == HandlerEnd::returned && code == SUCCESS;
  if (kind == HandlerKind::header) {
    header_done(slot, end, code, out);
  } else if (kind == HandlerKind::payload) {
    const bool drops = end == HandlerEnd::returned && code == DROP;
    if (drops || end != HandlerEnd::returned) message.dropped_bytes += execution.buffer_bytes;
    if (!drops && !good) fail_message(message, end, code);
  } else if (end == HandlerEnd::returned && code == SUCCESS_PENDING) {
    message.pending = true;
  } else if (!good) {
    fail_message(message, end, code);
  }
  // A message that failed does complete its entry: the host must hear of it.
  if (message.failure != Fail::ok) message.pending = false;
  execution.stage = Stage::ended;
  free_hpu(execution, out);  // may drop other packets of this message, which must not complete before this one counts
  SPL_ASSERT(message.hers_open > 0, "message ", message.id);
  --message.hers_open;
  release_execution(her.value);
  advance(slot, out);
}

}  // namespace spinloom::nic
