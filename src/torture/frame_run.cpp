#include "torture/frame_run.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace spinloom::torture {

using frames::Count;

FrameRun::FrameRun(const Config& config, uint64_t seed, bool trace, Outcome& outcome)
    : config_(config),
      trace_(trace),
      outcome_(outcome),
      random_(seed, "frames"),
      link_(config, seed, outcome.faults),
      seed_(seed) {
  contexts_.reserve(8);
}

Status FrameRun::run() {
  SPL_TRY(set_up());
  while (works_begun_ < config_.messages || !is_quiet()) {
    bool has_moved = false;
    if (works_begun_ < config_.messages && random_.chance(1, 8)) SPL_TRY(begin_work());
    for (uint64_t steps = 1 + random_.below(6); steps > 0; --steps) has_moved |= card_->step();
    has_moved |= run_outside();
    SPL_TRY(trouble_);
    card_->nic().check_invariants();
    now_ += Time{1};
    if (has_moved) idle_ = 0;
    if (has_moved || works_begun_ < config_.messages || is_quiet()) continue;
    // An action that failed may work at the next try. After this many rounds without progress the run has stalled.
    if (next_time() == Time::never() || ++idle_ > 20'000) return fail(Code::stalled, stall_text());
    now_ = std::max(now_, next_time());
  }
  return end();
}

Status FrameRun::begin_work() {
  const auto& weights = config_.weights;
  uint64_t at = random_.below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  size_t work = 0;
  while (at >= weights[work]) at -= weights[work++];
  ++works_begun_;
  ++outcome_.exchanges;
  ++outcome_.messages;
  const auto any_payload = [this] {
    FrameBytes bytes(random_.below(config_.payload_bytes + 1));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.next());
    return bytes;
  };
  const auto station = static_cast<uint32_t>(1 + random_.below(config_.ranks - 1));
  Head head;
  head.message = static_cast<uint32_t>(random_.next()) | 1u << 31;
  switch (static_cast<Work>(work)) {
    case Work::frame_message: send_message(); break;
    case Work::frame_stray: send_stray(); break;
    case Work::frame_host:
      for (uint64_t burst = 1 + random_.below(24); burst > 0; --burst) {
        host_queue_.push_back(frame_of(0, head, any_payload()));
      }
      break;
    case Work::frame_change: change_contexts(); break;
    default:
      for (const ContextRecord& record : contexts_) {
        if (record.kind != (static_cast<Work>(work) == Work::frame_ring ? Kind::ring : Kind::echo)) continue;
        head.context = static_cast<uint8_t>(record.id.value);
        head.write_options = static_cast<uint8_t>(random_.next());
        if (random_.chance(1, 3)) head.conduct = static_cast<Conduct>(random_.below(conduct_count));
        for (uint64_t burst = 1 + random_.below(8); burst > 0; --burst) send_frame(station, head, any_payload());
      }
  }
  return trouble_;
}

// Lets some of the world outside the card go on: frames that come, senders, and the host. Returns true if anything has
// moved.
bool FrameRun::run_outside() {
  bool has_moved = false;
  if (host_death_ <= now_) kill_host();
  while (random_.chance(3, 4)) {
    const auto frame = link_.next(now_);
    if (!frame) break;
    has_moved = true;
    if (frame->to == 0) {
      on_nic_frame(frame->bytes);
    } else {
      on_station_frame(frame->bytes);
    }
  }
  for (const auto& message : messages_) {
    if (!message->is_over && random_.chance(1, 2)) has_moved |= send_next(*message);
  }
  for (ContextRecord& record : contexts_) {
    if (random_.chance(1, 3)) has_moved |= advance(record);
    if (record.stage != Stage::gone && random_.chance(1, 20)) has_moved |= read_ring(record);
  }
  while (random_.chance(2, 3) && send_from_host()) has_moved = true;
  return has_moved;
}

Time FrameRun::next_time() const {
  Time next = link_.earliest();
  for (const auto& message : messages_) {
    if (!message->is_over) next = std::min(next, message->sender->timer());
  }
  for (const ContextRecord& record : contexts_) {
    if (record.stage == Stage::resting || record.stage == Stage::gone) next = std::min(next, record.until);
  }
  const frames::State state = card_->nic().state();
  const bool leaving =
      std::ranges::any_of(contexts_, [](const ContextRecord& record) { return record.stage == Stage::leaving; });
  const bool goes_on = state.packets + state.hers + state.dmas_open + state.egress_waiting > 0 || !host_queue_.empty();
  return goes_on || leaving ? std::min(next, now_) : next;
}

bool FrameRun::is_quiet() const {
  for (const auto& message : messages_) {
    if (!message->is_over) return false;
  }
  for (const ContextRecord& record : contexts_) {
    if (record.stage != Stage::active) return false;
  }
  return link_.earliest() == Time::never() && host_queue_.empty() && host_in_flight_.empty() &&
         card_->nic().state().packets == 0 && card_->nic().state().hers == 0;
}

// Gives everything back, and compares everything.
Status FrameRun::end() {
  while (card_->step()) SPL_TRY(trouble_);
  frames::Nic& nic = card_->nic();
  for (ContextRecord& record : contexts_) {
    while (read_ring(record)) {
    }
    uint64_t runs = 0;
    std::memcpy(&runs, card_->nic_memory().data() + record.options.handlers.state.offset, sizeof runs);
    if (runs != record.payload_runs) {
      return fail(Code::mismatch, "context ", record.id, ": its handlers have run ", record.payload_runs,
                  " times, but count ", runs);
    }
    if (record.kind == Kind::message) {
      record.memory.expect(record.memory.size() - 8, reinterpret_cast<const uint8_t*>(&record.host_counts), 8);
      SPL_TRY(record.memory.check(text("host memory of context ", record.id)));
    }
    SPL_TRY(nic.activate(record.id, false));
    SPL_TRY(nic.remove(record.id));
  }
  SPL_TRY(trouble_);
  const frames::State state = nic.state();
  if (state.packets + state.messages + state.hers + state.hpus_busy + state.dmas_open + state.egress_waiting > 0) {
    return fail(Code::mismatch, "at the end there are ", nic.describe_waiting());
  }
  for (uint32_t which = 0; which < nic.packet_memory().classes(); ++which) {
    if (nic.packet_memory().free(which) != nic.limits().slots[which].slots) {
      return fail(Code::mismatch, "slots of packet memory are lost");
    }
  }
  return compare_counts();
}

Status FrameRun::compare_counts() {
  const frames::Nic& nic = card_->nic();
  const auto must = [&](Count which, uint64_t wanted) -> Status {
    if (nic.count(which) == wanted) return {};
    return fail(Code::mismatch, "the NIC counts ", nic.count(which), " ", name_of(which), ", not ", wanted);
  };
  SPL_TRY(must(Count::received, expected_.received));
  SPL_TRY(must(Count::frames_done, expected_.done));
  SPL_TRY(must(Count::handler_dropped, expected_.dropped));
  SPL_TRY(must(Count::handler_to_host, expected_.passed_on));
  SPL_TRY(must(Count::handler_to_host, expected_.to_stack));
  SPL_TRY(must(Count::handler_failed, expected_.failed));
  SPL_TRY(must(Count::handler_faults, expected_.faults));
  SPL_TRY(must(Count::to_memory, expected_.ring));
  SPL_TRY(must(Count::sent_by_handlers, expected_.sent_by_handlers));
  SPL_TRY(must(Count::sent_by_host, expected_.sent_by_host));
  SPL_TRY(must(Count::host_refused, expected_.refused));
  SPL_TRY(must(Count::host_runs, expected_.host_runs));
  SPL_TRY(must(Count::mails, expected_.mails));
  SPL_TRY(must(Count::mails_refused, expected_.mails_refused));
  SPL_TRY(must(Count::messages, nic.count(Count::messages_done) + nic.count(Count::messages_abandoned)));
  uint64_t fates = 0;
  for (const Count one : {Count::dropped_full, Count::spilled, Count::frames_done, Count::handler_dropped,
                          Count::handler_to_host, Count::to_memory, Count::memory_full}) {
    fates += nic.count(one);
  }
  return must(Count::matched, fates);
}

std::string FrameRun::stall_text() {
  std::string line = text("nothing happens any more: ", card_->nic().describe_waiting());
  for (const auto& message : messages_) {
    if (!message->is_over)
      line += text("; message ", message->number, " of context ", message->context, " is not over");
  }
  for (const ContextRecord& record : contexts_) {
    if (record.stage != Stage::active) line += text("; context ", record.id, " is not active again");
  }
  return line;
}

FrameRun::Message* FrameRun::message_of(uint32_t number) {
  return number < messages_.size() ? messages_[number].get() : nullptr;
}

void FrameRun::note(const std::string& line) const {
  if (trace_) std::printf("%s\n", line.c_str());
}

}  // namespace spinloom::torture
