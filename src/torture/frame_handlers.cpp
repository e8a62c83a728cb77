// The handlers of a run with frames: they behave as the frame's head demands, and note the counts that the NIC must
// have.
#include <optional>

#include "nic/spin/handler_abi.hpp"
#include "spinloom/frame.h"
#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

using spin::HandlerEnd;
using spin::HandlerOutcome;
using spin::NativeHandler;

// Returns the frame's head. A frame that was cut has none, and is dropped.
Head head_or_drop(const NativeHandler& handler) {
  Head none;
  none.conduct = Conduct::drop;
  return head_of(handler.frame().packet).value_or(none);
}

HandlerOutcome outcome_of(Conduct conduct) {
  switch (conduct) {
    case Conduct::drop: return {HandlerEnd::returned, DROP, 1};
    case Conduct::proceed: return {HandlerEnd::returned, PROCEED, 1};
    case Conduct::fail: return {HandlerEnd::returned, FAIL, 1};
    case Conduct::unknown: return {HandlerEnd::returned, 77, 1};
    case Conduct::fault:
    case Conduct::bad_call: return {HandlerEnd::fault, 0, 1};
    case Conduct::outside: return {HandlerEnd::segv, 0, 1};
    case Conduct::budget: return {HandlerEnd::budget, 0, 1};
    case Conduct::good:
    case Conduct::bad_send: break;
  }
  return {HandlerEnd::returned, SUCCESS, 1};
}

spin::HandlerCall call_of(uint32_t number, uint8_t* local, spin::LocalMemory memory, uint64_t length) {
  spin::HandlerCall call;
  call.call = number;
  call.local = local;
  call.local_memory = memory;
  call.length = length;
  return call;
}

// True if the NIC refuses to send a frame from the stack, one without a whole header, and one from nowhere.
bool try_bad_sends(NativeHandler& handler) {
  uint8_t stack[64] = {};
  auto* const packet = const_cast<uint8_t*>(handler.frame().packet.data());
  return handler.call(call_of(SPL_CALL_SEND_FRAME, stack, spin::LocalMemory::stack, sizeof stack)) == UINT32_MAX &&
         handler.call(call_of(SPL_CALL_SEND_FRAME, packet, spin::LocalMemory::packet, 13)) == UINT32_MAX &&
         handler.call(call_of(SPL_CALL_SEND_FRAME, nullptr, spin::LocalMemory::outside, 60)) == UINT32_MAX;
}

}  // namespace

void FrameRun::make_handlers() {
  echo_ = handlers_.add([this](NativeHandler& handler) { return on_echo(handler); });
  header_ = handlers_.add([this](NativeHandler& handler) { return on_header(handler); });
  payload_ = handlers_.add([this](NativeHandler& handler) { return on_payload(handler); });
  completion_ = handlers_.add([this](NativeHandler& handler) { return on_completion(handler); });
  mail_ = handlers_.add([this](NativeHandler& handler) { return on_mail(handler); });
  initialise_ = handlers_.add([](NativeHandler&) { return HandlerOutcome{HandlerEnd::returned, SUCCESS, 1}; });
}

// Notes the effect of a handler's end on the counts and, for a payload handler, on its frame.
HandlerOutcome FrameRun::count_outcome(HandlerOutcome outcome, bool payload) {
  const bool has_returned = outcome.end == HandlerEnd::returned;
  const bool is_success = has_returned && (outcome.code == SUCCESS || outcome.code == DROP || outcome.code == PROCEED);
  if (!is_success) ++count_of(outcome_.faults, Fault::handler);
  if (!has_returned) ++expected_.faults;
  if (has_returned && !is_success) ++expected_.failed;
  if (!payload) return outcome;
  if (is_success && outcome.code == SUCCESS) ++expected_.done;
  if (is_success && outcome.code == PROCEED) ++expected_.passed_on;
  if (!is_success || outcome.code == DROP) ++expected_.dropped;
  return outcome;
}

// Adds one to the first word of the context's state.
void FrameRun::count_run(NativeHandler& handler, ContextRecord& record) {
  spin::HandlerCall call = call_of(SPL_CALL_HPU_FADD, handler.frame().state.data(), spin::LocalMemory::state, 8);
  call.operand = 1;
  handler.call(call);
  ++record.payload_runs;
}

// Sends the frame back, from where it is.
bool FrameRun::send_back(NativeHandler& handler) {
  const FrameView packet = handler.frame().packet;
  auto* const bytes = const_cast<uint8_t*>(packet.data());
  const FrameBytes answer = answer_to({packet.begin(), packet.end()});
  std::copy(answer.begin(), answer.end(), bytes);
  const uint32_t handle = handler.call(call_of(SPL_CALL_SEND_FRAME, bytes, spin::LocalMemory::packet, packet.size()));
  return handle != UINT32_MAX;
}

// Sends a mail to the context that follows from the frame's number, which may not exist. The mail is taken if that
// context is active, takes mail and has room for more.
void FrameRun::send_mail(NativeHandler& handler, const Head& head) {
  const uint32_t target = head.id % (static_cast<uint32_t>(contexts_.size()) + 1);
  ContextRecord* const record = target < contexts_.size() ? &contexts_[target] : nullptr;
  const bool is_taken = record != nullptr && record->stage == Stage::active && record->options.handlers.mail_entry &&
                        record->mails < card_->nic().limits().mails;
  spin::HandlerCall call;
  call.call = SPL_CALL_MAIL;
  call.context = target;
  call.operand = uint64_t{head.id} << 32 | handler.frame().her.context.value;
  call.handle = ~head.id;
  ++(is_taken ? expected_.mails : expected_.mails_refused);
  if (is_taken) ++record->mails;
  if ((handler.call(call) == SUCCESS) != is_taken)
    on_trouble(text("mail of frame ", head.id, " is not taken as it should"));
}

HandlerOutcome FrameRun::on_mail(NativeHandler& handler) {
  const spin::Her& her = handler.frame().her;
  const spin::Mail mail = spin::mail_of(her);
  const auto id = static_cast<uint32_t>(mail.argument >> 32);
  if (mail.value != ~id || static_cast<uint32_t>(mail.argument) != mail.context || mail.context >= contexts_.size() ||
      id % (contexts_.size() + 1) != her.context.value || her.payload.length != 0) {
    on_trouble("mail comes that nobody has sent");
  }
  return {HandlerEnd::returned, SUCCESS, 1};
}

HandlerOutcome FrameRun::on_echo(NativeHandler& handler) {
  ContextRecord& record = contexts_[handler.frame().her.context.value];
  count_run(handler, record);
  if ((handler.frame().her.flags & SPL_FRAME_BY_HOST) != 0) return {HandlerEnd::returned, SUCCESS, 1};
  const Head head = head_or_drop(handler);
  if (head.conduct == Conduct::bad_call)
    handler.call(call_of(SPL_CALL_PUT_FROM_DEVICE, nullptr, spin::LocalMemory::none, 0));
  if (head.conduct == Conduct::bad_send && !try_bad_sends(handler))
    on_trouble("a frame that cannot be sent is not refused");
  if ((head.write_options & 1) != 0) send_mail(handler, head);
  if (is_good(head.conduct) && !send_back(handler)) on_trouble(text("the answer to frame ", head.id, " is refused"));
  return count_outcome(outcome_of(head.conduct), true);
}

HandlerOutcome FrameRun::on_header(NativeHandler& handler) {
  const Head head = head_or_drop(handler);
  if (head.conduct == Conduct::bad_call)
    handler.call(call_of(SPL_CALL_PUT_FROM_DEVICE, nullptr, spin::LocalMemory::none, 0));
  return count_outcome(outcome_of(head.conduct), false);
}

// Writes bytes to host memory. Bits of `write_options`: 1, in pieces of 1 + (write_options >> 4) bytes; 2, all pieces
// but the last from a copy on the stack, by blocking calls; 4, the handler waits only for the last piece: writes keep
// their order, so all are there then.
bool FrameRun::write(NativeHandler& handler, uint64_t offset, FrameView bytes, uint8_t write_options) {
  const size_t piece = (write_options & 1) != 0 ? 1 + (write_options >> 4) : std::max<size_t>(bytes.size(), 1);
  std::optional<uint32_t> ended_handle;  // the handle of a DMA that has ended, which no later DMA may get
  for (size_t at = 0; at == 0 || at < bytes.size(); at += piece) {
    const FrameView piece_bytes = bytes.subspan(at, std::min(piece, bytes.size() - at));
    const bool is_last = at + piece >= bytes.size();
    if ((write_options & 2) != 0 && !is_last) {
      FrameBytes copy(piece_bytes.begin(), piece_bytes.end());
      spin::HandlerCall call = call_of(SPL_CALL_DMA_TO_HOST_B, copy.data(), spin::LocalMemory::stack, copy.size());
      call.offset = offset + at;
      if (handler.call(call) != SUCCESS) return false;
      continue;
    }
    const uint32_t handle = handler.dma_to_host(piece_bytes.data(), offset + at, piece_bytes.size(), 0);
    if (handle == UINT32_MAX) return false;
    if (ended_handle) {
      spin::HandlerCall test;
      test.call = SPL_CALL_DMA_TEST;
      test.handle = *ended_handle;
      if (handler.call(test) != 1) on_trouble("a DMA that has ended is under way again");
    }
    if (!is_last && (write_options & 4) != 0) continue;
    spin::HandlerCall wait;
    wait.call = SPL_CALL_DMA_WAIT;
    wait.handle = handle;
    if (handler.call(wait) != SUCCESS) return false;
    ended_handle = handle;
  }
  return true;
}

// Writes the payload to the message's place in host memory, reads it back, adds one to a count there, and acknowledges
// the frame.
HandlerOutcome FrameRun::on_payload(NativeHandler& handler) {
  ContextRecord& record = contexts_[handler.frame().her.context.value];
  count_run(handler, record);
  if ((handler.frame().her.flags & SPL_FRAME_BY_HOST) != 0) return {HandlerEnd::returned, SUCCESS, 1};
  const Head head = head_or_drop(handler);
  Message& message = *message_of(head.message);
  const FrameBytes payload(handler.frame().packet.begin() + payload_offset, handler.frame().packet.end());
  const uint64_t place = message.place + head.offset;
  record.memory.expect(place, payload.data(), payload.size());
  bool is_good = write(handler, place, handler.frame().packet.subspan(payload_offset), head.write_options);
  FrameBytes read_back(payload.size());
  spin::HandlerCall read =
      call_of(SPL_CALL_DMA_FROM_HOST_B, read_back.data(), spin::LocalMemory::stack, read_back.size());
  read.offset = place;
  is_good = is_good && handler.call(read) == SUCCESS && read_back == payload;
  uint64_t before = 0;
  const uint64_t counter = record.memory.size() - sizeof before;
  spin::HandlerCall add =
      call_of(SPL_CALL_DMA_FADD_B, reinterpret_cast<uint8_t*>(&before), spin::LocalMemory::stack, 8);
  add.offset = counter;
  add.operand = 1;
  is_good = is_good && handler.call(add) == SUCCESS;
  ++record.host_counts;
  if (!is_good) on_trouble(text("message ", head.message, ": what was written is not what is read, or is refused"));
  message.written.emplace_back(head.offset, payload.size());
  if (!send_back(handler)) on_trouble(text("the acknowledgement of frame ", head.id, " is refused"));
  return count_outcome(outcome_of(Conduct::good), true);
}

// Checks that all bytes that payload handlers have written are in host memory.
HandlerOutcome FrameRun::on_completion(NativeHandler& handler) {
  const Head head = head_or_drop(handler);
  const Message& message = *message_of(head.message);
  const uint8_t* const memory = contexts_[message.context].memory.data() + message.place;
  for (const auto& [offset, bytes] : message.written) {
    if (!std::equal(memory + offset, memory + offset + bytes, message.bytes.begin() + static_cast<ptrdiff_t>(offset))) {
      on_trouble(
          text("message ", head.message, " is complete, but its ", bytes, " B from ", offset, " on are not there"));
    }
  }
  return count_outcome(outcome_of(random_.chance(1, 8) ? Conduct::fault : Conduct::good), false);
}

}  // namespace spinloom::torture
