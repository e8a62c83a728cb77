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
Head head_given(const NativeHandler& handler) {
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
bool refused(NativeHandler& handler) {
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
HandlerOutcome FrameRun::judged(HandlerOutcome outcome, bool payload) {
  const bool returned = outcome.end == HandlerEnd::returned;
  const bool good = returned && (outcome.code == SUCCESS || outcome.code == DROP || outcome.code == PROCEED);
  if (!good) ++of(outcome_.faults, Fault::handler);
  if (!returned) ++wanted_.faults;
  if (returned && !good) ++wanted_.failed;
  if (!payload) return outcome;
  if (good && outcome.code == SUCCESS) ++wanted_.done;
  if (good && outcome.code == PROCEED) ++wanted_.passed_on;
  if (!good || outcome.code == DROP) ++wanted_.dropped;
  return outcome;
}

// Adds one to the first word of the context's state.
void FrameRun::count_run(NativeHandler& handler, Site& site) {
  spin::HandlerCall call = call_of(SPL_CALL_HPU_FADD, handler.frame().state.data(), spin::LocalMemory::state, 8);
  call.operand = 1;
  handler.call(call);
  ++site.payload_runs;
}

// Sends the frame back, from where it is.
bool FrameRun::send_back(NativeHandler& handler) {
  const FrameView packet = handler.frame().packet;
  auto* const bytes = const_cast<uint8_t*>(packet.data());
  const FrameBytes answer = answered({packet.begin(), packet.end()});
  std::copy(answer.begin(), answer.end(), bytes);
  const uint32_t handle = handler.call(call_of(SPL_CALL_SEND_FRAME, bytes, spin::LocalMemory::packet, packet.size()));
  return handle != UINT32_MAX;
}

// Sends a mail to the context that follows from the frame's number, which may not exist. The mail is taken if that
// context is active, takes mail and has room for more.
void FrameRun::send_mail(NativeHandler& handler, const Head& head) {
  const uint32_t target = head.id % (static_cast<uint32_t>(sites_.size()) + 1);
  Site* const site = target < sites_.size() ? &sites_[target] : nullptr;
  const bool taken = site != nullptr && site->stage == Stage::active && site->options.handlers.mail_entry &&
                     site->mails < card_->nic().limits().mails;
  spin::HandlerCall call;
  call.call = SPL_CALL_MAIL;
  call.context = target;
  call.operand = uint64_t{head.id} << 32 | handler.frame().her.context.value;
  call.handle = ~head.id;
  ++(taken ? wanted_.mails : wanted_.mails_refused);
  if (taken) ++site->mails;
  if ((handler.call(call) == SUCCESS) != taken)
    on_trouble(text("mail of frame ", head.id, " is not taken as it should"));
}

HandlerOutcome FrameRun::on_mail(NativeHandler& handler) {
  const spin::Her& her = handler.frame().her;
  const spin::Mail mail = spin::mail_of(her);
  const auto id = static_cast<uint32_t>(mail.argument >> 32);
  if (mail.value != ~id || static_cast<uint32_t>(mail.argument) != mail.context || mail.context >= sites_.size() ||
      id % (sites_.size() + 1) != her.context.value || her.payload.length != 0) {
    on_trouble("mail comes that nobody has sent");
  }
  return {HandlerEnd::returned, SUCCESS, 1};
}

HandlerOutcome FrameRun::on_echo(NativeHandler& handler) {
  Site& site = sites_[handler.frame().her.context.value];
  count_run(handler, site);
  if ((handler.frame().her.flags & SPL_FRAME_BY_HOST) != 0) return {HandlerEnd::returned, SUCCESS, 1};
  const Head head = head_given(handler);
  if (head.conduct == Conduct::bad_call)
    handler.call(call_of(SPL_CALL_PUT_FROM_DEVICE, nullptr, spin::LocalMemory::none, 0));
  if (head.conduct == Conduct::bad_send && !refused(handler)) on_trouble("a frame that cannot be sent is not refused");
  if ((head.way & 1) != 0) send_mail(handler, head);
  if (is_good(head.conduct) && !send_back(handler)) on_trouble(text("the answer to frame ", head.id, " is refused"));
  return judged(outcome_of(head.conduct), true);
}

HandlerOutcome FrameRun::on_header(NativeHandler& handler) {
  const Head head = head_given(handler);
  if (head.conduct == Conduct::bad_call)
    handler.call(call_of(SPL_CALL_PUT_FROM_DEVICE, nullptr, spin::LocalMemory::none, 0));
  return judged(outcome_of(head.conduct), false);
}

// Writes bytes to host memory. Bits of `way`: 1, in pieces of 1 + (way >> 4) bytes; 2, all pieces but the last from a
// copy on the stack, by blocking calls; 4, the handler waits only for the last piece: writes keep their order, so all
// are there then.
bool FrameRun::write(NativeHandler& handler, uint64_t offset, FrameView bytes, uint8_t way) {
  const size_t piece = (way & 1) != 0 ? 1 + (way >> 4) : std::max<size_t>(bytes.size(), 1);
  std::optional<uint32_t> ended;  // the handle of a DMA that has ended, which no later DMA may get
  for (size_t at = 0; at == 0 || at < bytes.size(); at += piece) {
    const FrameView part = bytes.subspan(at, std::min(piece, bytes.size() - at));
    const bool last = at + piece >= bytes.size();
    if ((way & 2) != 0 && !last) {
      FrameBytes own(part.begin(), part.end());
      spin::HandlerCall call = call_of(SPL_CALL_DMA_TO_HOST_B, own.data(), spin::LocalMemory::stack, own.size());
      call.offset = offset + at;
      if (handler.call(call) != SUCCESS) return false;
      continue;
    }
    const uint32_t handle = handler.dma_to_host(part.data(), offset + at, part.size(), 0);
    if (handle == UINT32_MAX) return false;
    if (ended) {
      spin::HandlerCall test;
      test.call = SPL_CALL_DMA_TEST;
      test.handle = *ended;
      if (handler.call(test) != 1) on_trouble("a DMA that has ended is under way again");
    }
    if (!last && (way & 4) != 0) continue;
    spin::HandlerCall wait;
    wait.call = SPL_CALL_DMA_WAIT;
    wait.handle = handle;
    if (handler.call(wait) != SUCCESS) return false;
    ended = handle;
  }
  return true;
}

// Writes the payload to the message's place in host memory, reads it back, adds one to a count there, and acknowledges
// the frame.
HandlerOutcome FrameRun::on_payload(NativeHandler& handler) {
  Site& site = sites_[handler.frame().her.context.value];
  count_run(handler, site);
  if ((handler.frame().her.flags & SPL_FRAME_BY_HOST) != 0) return {HandlerEnd::returned, SUCCESS, 1};
  const Head head = head_given(handler);
  Message& message = *message_of(head.message);
  const FrameBytes payload(handler.frame().packet.begin() + payload_at, handler.frame().packet.end());
  const uint64_t place = message.place + head.offset;
  site.memory.expect(place, payload.data(), payload.size());
  bool good = write(handler, place, handler.frame().packet.subspan(payload_at), head.way);
  FrameBytes back(payload.size());
  spin::HandlerCall read = call_of(SPL_CALL_DMA_FROM_HOST_B, back.data(), spin::LocalMemory::stack, back.size());
  read.offset = place;
  good = good && handler.call(read) == SUCCESS && back == payload;
  uint64_t before = 0;
  const uint64_t counter = site.memory.size() - sizeof before;
  spin::HandlerCall add =
      call_of(SPL_CALL_DMA_FADD_B, reinterpret_cast<uint8_t*>(&before), spin::LocalMemory::stack, 8);
  add.offset = counter;
  add.operand = 1;
  good = good && handler.call(add) == SUCCESS;
  ++site.host_counts;
  if (!good) on_trouble(text("message ", head.message, ": what was written is not what is read, or is refused"));
  message.written.emplace_back(head.offset, payload.size());
  if (!send_back(handler)) on_trouble(text("the acknowledgement of frame ", head.id, " is refused"));
  return judged(outcome_of(Conduct::good), true);
}

// Checks that all bytes that payload handlers have written are in host memory.
HandlerOutcome FrameRun::on_completion(NativeHandler& handler) {
  const Head head = head_given(handler);
  const Message& message = *message_of(head.message);
  const uint8_t* const memory = sites_[message.site].memory.data() + message.place;
  for (const auto& [offset, bytes] : message.written) {
    if (!std::equal(memory + offset, memory + offset + bytes, message.bytes.begin() + static_cast<ptrdiff_t>(offset))) {
      on_trouble(
          text("message ", head.message, " is complete, but its ", bytes, " B from ", offset, " on are not there"));
    }
  }
  return judged(outcome_of(random_.chance(1, 8) ? Conduct::fault : Conduct::good), false);
}

}  // namespace spinloom::torture
