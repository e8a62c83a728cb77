// FrameRun's oracle: decides the fate of each frame of a run, without the engine.
#include "nic/wire/siphash.hpp"
#include "spinloom/frame.h"
#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

using frames::Count;

bool holds(const frames::Rule& rule, FrameView frame) {
  uint32_t word = 0;
  for (uint32_t byte = 0; byte < 4; ++byte) {
    const size_t at = size_t{rule.index} * 4 + byte;
    if (at < frame.size()) word |= uint32_t{frame[at]} << byte * 8;
  }
  return (word & rule.mask) >= rule.start && (word & rule.mask) <= rule.end;
}

bool has_no_frame(const spin::Her& her) {
  return her.kind == spin::HandlerKind::initialise || her.kind == spin::HandlerKind::mail ||
         (her.flags & SPL_FRAME_BY_HOST) != 0;
}

}  // namespace

std::optional<uint32_t> FrameRun::matching_rule_set(FrameView frame) const {
  for (uint32_t number = 0; number < rules_.size(); ++number) {
    size_t held = 0;
    for (const frames::Rule& rule : rules_[number].rules) held += holds(rule, frame) ? 1 : 0;
    const size_t enough = rules_[number].mode == frames::RuleMode::any ? 1 : rules_[number].rules.size();
    if (held >= enough && held > 0) return number;
  }
  return std::nullopt;
}

bool FrameRun::is_known(FrameView frame, const Head& head) const {
  return head.id < frames_.size() &&
         std::equal(frame.begin(), frame.end(), frames_[head.id].begin(), frames_[head.id].end());
}

// Takes a frame to the NIC and checks its fate. Each frame adds one to exactly one of five counts. The host's stack
// gets it at once if it counts as bypassed or inactive, or if it is spilled, and never otherwise.
void FrameRun::on_nic_frame(FrameBytes frame) {
  ++expected_.received;
  const frames::Nic& nic = card_->nic();
  const auto set = matching_rule_set(frame);
  const ContextRecord* const record = set ? &contexts_[*set] : nullptr;
  const auto slot_class = nic.packet_memory().class_of(static_cast<uint32_t>(frame.size()));
  const bool fits = slot_class && frame.size() <= largest_frame_;
  Count fate = Count::matched;
  if (frame.size() < 14) {
    fate = Count::runts;
  } else if (record == nullptr) {
    fate = Count::bypassed;
  } else if (record->stage != Stage::active) {
    fate = Count::inactive;
  } else if (!fits) {
    fate = Count::oversize;
  }
  const bool no_slot = fits && nic.packet_memory().free(*slot_class) == 0;
  const frames::Counts before = nic.counts();
  const bool no_queue = nic.state().messages == nic.limits().message_queues;
  const auto head = head_of(frame);
  Message* const message =
      record != nullptr && record->kind == Kind::message && head ? message_of(head->message) : nullptr;
  if (trace_) note(text("step ", card_->steps(), ": frame ", head ? int64_t{head->id} : -1, " comes: ", name_of(fate)));
  hash_frame(frame);
  arriving_ = frame;
  went_to_host_ = false;
  card_->arrive(std::move(frame));
  arriving_.reset();

  const auto increase_of = [&](Count which) { return nic.count(which) - before[static_cast<uint8_t>(which)]; };
  for (const Count count : {Count::bypassed, Count::inactive, Count::runts, Count::oversize, Count::matched}) {
    if (increase_of(count) != (count == fate ? 1 : 0))
      on_trouble(text("a frame that must count as ", name_of(fate), " does not"));
  }
  const bool is_spilled = increase_of(Count::spilled) > 0;
  const bool is_dropped = increase_of(Count::dropped_full) > 0;
  count_of(outcome_.faults, Fault::buffer_full) += is_dropped ? 1 : 0;
  if (is_spilled && !no_queue) on_trouble("a frame is spilled while there are message queues");
  if (!is_spilled && fate == Count::matched && is_dropped != no_slot) {
    on_trouble(is_dropped ? "a frame is dropped while there are packet slots"
                          : "a frame has come into a slot that is not free");
  }
  if (went_to_host_ != (fate == Count::bypassed || fate == Count::inactive || is_spilled)) {
    on_trouble(
        text("a frame that counts as ", name_of(fate), went_to_host_ ? " goes" : " does not go", " to the host"));
  }
  if (message == nullptr) return;
  if (fate != Count::matched || is_spilled || is_dropped) {
    message->may_fail = true;
  } else if (record->options.handlers.header_entry) {  // its verdict holds for all frames of the message
    expected_.passed_on += message->conduct == Conduct::proceed ? 1 : 0;
    expected_.dropped += message->conduct == Conduct::proceed || is_good(message->conduct) ? 0 : 1;
  }
}

void FrameRun::on_to_host(FrameView frame, bool by_handler) {
  hash_frame(frame);
  if (by_handler) {
    const auto head = head_of(frame);
    ++expected_.to_stack;
    if (!head || !is_known(frame, *head) || head->conduct != Conduct::proceed) {
      on_trouble("handlers pass on a frame that they were not given, or not told to");
    }
    return;
  }
  if (!arriving_ || went_to_host_ || !std::equal(frame.begin(), frame.end(), arriving_->begin(), arriving_->end())) {
    on_trouble("the host gets a frame that does not arrive now");
  }
  went_to_host_ = true;
}

void FrameRun::on_transmitted(FrameView frame, bool by_handler, uint64_t token) {
  hash_frame(frame);
  if (by_handler) {
    ++expected_.sent_by_handlers;
    return link_.send(now_, {frame[5], {frame.begin(), frame.end()}});
  }
  ++expected_.sent_by_host;
  if (host_in_flight_.empty() || host_in_flight_.front().first != token ||
      !std::equal(frame.begin(), frame.end(), host_in_flight_.front().second.begin(),
                  host_in_flight_.front().second.end())) {
    return on_trouble("frames of the host leave out of their order, or changed");
  }
  host_in_flight_.pop_front();
}

// Checks that the handler's frame is one that a station sent to its context, and that it may run beside the message's
// other handlers.
void FrameRun::on_started(const spin::Her& her) {
  ContextRecord& record = contexts_[her.context.value];
  note(text("step ", card_->steps(), ": HER ", her.id, " of context ", her.context, " starts, kind ",
            static_cast<int>(her.kind), ", message ", her.message));
  if (has_no_frame(her)) return;
  const FrameView frame{her.payload.bytes, her.payload.length};
  if (frame.size() < payload_offset && record.kind == Kind::echo) return;  // a stray
  const auto head = head_of(frame);
  if (!head || head->id >= frames_.size() || head->context != her.context.value || head->message != her.message ||
      her.rule_set != her.context.value) {
    return on_trouble(text("a handler of context ", her.context, " gets a frame that is not its own"));
  }
  if (her.kind != spin::HandlerKind::completion && !is_known(frame, *head)) {
    return on_trouble(text("frame ", head->id, " has changed in packet memory"));
  }
  const bool is_last = record.kind == Kind::message && (head->flags & Head::last) != 0;
  if (((her.flags & SPL_FRAME_LAST) != 0) != is_last)
    on_trouble(text("frame ", head->id, ": whether it is the last is wrong"));
  if (record.kind != Kind::message) return;
  Message* const message = message_of(her.message);
  if (message == nullptr) return on_trouble(text("there is no message ", her.message));
  const bool is_alone = !message->header_runs && !message->completion_runs && message->payloads_run == 0;
  const auto wrong = [&](const char* what) { on_trouble(text("message ", her.message, ": ", what)); };
  switch (her.kind) {
    case spin::HandlerKind::header:
      if (!is_alone) wrong("a header handler starts beside others");
      if ((her.flags & SPL_FRAME_FIRST) == 0) wrong("its header handler's frame is not the first");
      message->header_runs = true;
      break;
    case spin::HandlerKind::payload:
      if (message->header_runs || message->completion_runs)
        wrong("a payload handler starts beside header or completion");
      ++message->payloads_run;
      break;
    default:
      if (!is_alone) wrong("a completion handler starts beside others");
      if (!is_last) wrong("its completion handler's frame is not the last");
      message->completion_runs = true;
  }
}

void FrameRun::on_ended(const spin::Her& her) {
  if (her.kind == spin::HandlerKind::mail) --contexts_[her.context.value].mails;
  if (has_no_frame(her)) return;
  Message* const message = contexts_[her.context.value].kind == Kind::message ? message_of(her.message) : nullptr;
  if (message == nullptr) return;
  switch (her.kind) {
    case spin::HandlerKind::header: message->header_runs = false; break;
    case spin::HandlerKind::payload: --message->payloads_run; break;
    default: message->completion_runs = false;
  }
}

void FrameRun::on_initialised(spin::ContextId context, bool good) {
  ContextRecord& record = contexts_[context.value];
  if (record.stage != Stage::initialising || !good) {
    return on_trouble(text("context ", context, " is initialised, but nobody asked, or not well"));
  }
  const Status active = card_->nic().activate(context);
  if (!active) on_trouble(active.error().message);
  record.stage = Stage::active;
}

void FrameRun::on_trouble(const std::string& what) {
  note(what);
  if (trouble_) trouble_ = fail(Code::mismatch, what);
}

void FrameRun::hash_frame(FrameView bytes) { outcome_.hash = wire::siphash({outcome_.hash, card_->steps()}, bytes); }

}  // namespace spinloom::torture
