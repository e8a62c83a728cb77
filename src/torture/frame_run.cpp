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
  sites_.reserve(8);
}

Status FrameRun::go() {
  SPL_TRY(set_up());
  while (works_ < config_.messages || !quiet()) {
    bool moved = false;
    if (works_ < config_.messages && random_.chance(1, 8)) SPL_TRY(begin_one());
    for (uint64_t steps = 1 + random_.below(6); steps > 0; --steps) moved |= card_->step();
    moved |= outside();
    SPL_TRY(trouble_);
    now_ += Time{1};
    if (moved) idle_ = 0;
    if (moved || works_ < config_.messages || quiet()) continue;
    // An action that failed may work at the next try. After this many rounds without progress the run has stalled.
    if (next_time() == Time::never() || ++idle_ > 20'000) return fail(Code::stalled, stall());
    now_ = std::max(now_, next_time());
  }
  return end();
}

Status FrameRun::begin_one() {
  const auto& weights = config_.weights;
  uint64_t at = random_.below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
  size_t work = 0;
  while (at >= weights[work]) at -= weights[work++];
  ++works_;
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
        host_waits_.push_back(frame_of(0, head, any_payload()));
      }
      break;
    case Work::frame_change: begin_change(); break;
    default:
      for (const Site& site : sites_) {
        if (site.kind != (static_cast<Work>(work) == Work::frame_ring ? Kind::ring : Kind::echo)) continue;
        head.context = static_cast<uint8_t>(site.id.value);
        head.way = static_cast<uint8_t>(random_.next());
        if (random_.chance(1, 3)) head.conduct = static_cast<Conduct>(random_.below(conduct_count));
        for (uint64_t burst = 1 + random_.below(8); burst > 0; --burst) send_frame(station, head, any_payload());
      }
  }
  return trouble_;
}

// Lets some of the world outside the card go on: frames that come, senders, and the host. Returns true if anything has
// moved.
bool FrameRun::outside() {
  bool moved = false;
  if (host_dies_ <= now_) host_dies();
  while (random_.chance(3, 4)) {
    const auto frame = link_.next(now_);
    if (!frame) break;
    moved = true;
    if (frame->to == 0) {
      at_nic(frame->bytes);
    } else {
      at_station(frame->bytes);
    }
  }
  for (const auto& message : messages_) {
    if (!message->over && random_.chance(1, 2)) moved |= send_next(*message);
  }
  for (Site& site : sites_) {
    if (random_.chance(1, 3)) moved |= go_on(site);
    if (site.stage != Stage::gone && random_.chance(1, 20)) moved |= read_ring(site);
  }
  while (random_.chance(2, 3) && send_from_host()) moved = true;
  return moved;
}

Time FrameRun::next_time() const {
  Time next = link_.earliest();
  for (const auto& message : messages_) {
    if (!message->over) next = std::min(next, message->sender->timer());
  }
  for (const Site& site : sites_) {
    if (site.stage == Stage::resting || site.stage == Stage::gone) next = std::min(next, site.until);
  }
  const frames::State state = card_->nic().state();
  const bool leaving = std::ranges::any_of(sites_, [](const Site& site) { return site.stage == Stage::leaving; });
  const bool goes_on = state.packets + state.hers + state.dmas_open + state.egress_waiting > 0 || !host_waits_.empty();
  return goes_on || leaving ? std::min(next, now_) : next;
}

bool FrameRun::quiet() const {
  for (const auto& message : messages_) {
    if (!message->over) return false;
  }
  for (const Site& site : sites_) {
    if (site.stage != Stage::active) return false;
  }
  return link_.earliest() == Time::never() && host_waits_.empty() && host_leaves_.empty() &&
         card_->nic().state().packets == 0 && card_->nic().state().hers == 0;
}

// Gives everything back, and compares everything.
Status FrameRun::end() {
  while (card_->step()) SPL_TRY(trouble_);
  frames::Nic& nic = card_->nic();
  for (Site& site : sites_) {
    while (read_ring(site)) {
    }
    uint64_t runs = 0;
    std::memcpy(&runs, card_->nic_memory().data() + site.options.handlers.state.offset, sizeof runs);
    if (runs != site.payload_runs) {
      return fail(Code::mismatch, "context ", site.id, ": its handlers have run ", site.payload_runs,
                  " times, but count ", runs);
    }
    if (site.kind == Kind::message) {
      site.memory.expect(site.memory.size() - 8, reinterpret_cast<const uint8_t*>(&site.host_counts), 8);
      SPL_TRY(site.memory.check(text("host memory of context ", site.id)));
    }
    SPL_TRY(nic.activate(site.id, false));
    SPL_TRY(nic.remove(site.id));
  }
  SPL_TRY(trouble_);
  const frames::State left = nic.state();
  if (left.packets + left.messages + left.hers + left.hpus_busy + left.dmas_open + left.egress_waiting > 0) {
    return fail(Code::mismatch, "at the end there are ", nic.waiting());
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
  SPL_TRY(must(Count::received, wanted_.received));
  SPL_TRY(must(Count::frames_done, wanted_.done));
  SPL_TRY(must(Count::handler_dropped, wanted_.dropped));
  SPL_TRY(must(Count::handler_to_host, wanted_.passed_on));
  SPL_TRY(must(Count::handler_to_host, wanted_.to_stack));
  SPL_TRY(must(Count::handler_failed, wanted_.failed));
  SPL_TRY(must(Count::handler_faults, wanted_.faults));
  SPL_TRY(must(Count::to_memory, wanted_.ring));
  SPL_TRY(must(Count::sent_by_handlers, wanted_.sent_by_handlers));
  SPL_TRY(must(Count::sent_by_host, wanted_.sent_by_host));
  SPL_TRY(must(Count::host_refused, wanted_.refused));
  SPL_TRY(must(Count::host_runs, wanted_.host_runs));
  SPL_TRY(must(Count::mails, wanted_.mails));
  SPL_TRY(must(Count::mails_refused, wanted_.mails_refused));
  SPL_TRY(must(Count::messages, nic.count(Count::messages_done) + nic.count(Count::messages_abandoned)));
  uint64_t fates = 0;
  for (const Count one : {Count::dropped_full, Count::spilled, Count::frames_done, Count::handler_dropped,
                          Count::handler_to_host, Count::to_memory, Count::memory_full}) {
    fates += nic.count(one);
  }
  return must(Count::matched, fates);
}

std::string FrameRun::stall() {
  std::string line = text("nothing happens any more: ", card_->nic().waiting());
  for (const auto& message : messages_) {
    if (!message->over) line += text("; message ", message->number, " of context ", message->site, " is not over");
  }
  for (const Site& site : sites_) {
    if (site.stage != Stage::active) line += text("; context ", site.id, " is not active again");
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
