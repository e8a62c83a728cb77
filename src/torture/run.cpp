#include "torture/run.hpp"

#include <cstdio>
#include <numeric>

#include "nic/wire/siphash.hpp"
#include "torture/exchange.hpp"
#include "torture/frame_run.hpp"

namespace spinloom::torture {
namespace {

class Runner {
 public:
  Runner(World& world, Outcome& outcome) : world_(world), outcome_(outcome) {
    if (world.config.dead != 0) death_step_ = 50 + world.random.below(1500);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  ~Runner() {
    for (const auto& exchange : exchanges_) exchange->close_engines();
  }

  Status run() {
    while (world_.messages < world_.config.messages || under_way_ > 0) {
      if (world_.messages < world_.config.messages && under_way_ < world_.config.at_a_time &&
          world_.random.chance(1, 12)) {
        SPL_TRY(begin_exchange());
      }
      for (uint64_t steps = 1 + world_.random.below(6); steps > 0; --steps) {
        if (world_.step()) continue;
        idle_ = under_way_ > 0 ? idle_ + 1 : 0;
        // Exchanges look from time to time and may then act. If none acts for long, nothing will happen again.
        if (idle_ > 20'000) return fail(Code::stalled, stall_text());
        break;
      }
      world_.check_invariants(static_cast<uint32_t>(rounds_++ % world_.hosts.size()));  // one rank a round
      SPL_TRY(kill_at_random());
      SPL_TRY(poll_all());
    }
    return end();
  }

 private:
  Status begin_exchange() {
    const auto& weights = world_.config.weights;
    uint64_t at = world_.random.below(std::accumulate(weights.begin(), weights.end(), uint64_t{0}));
    size_t work = 0;
    while (at >= weights[work]) at -= weights[work++];
    exchanges_.push_back(make_exchange(world_, static_cast<uint32_t>(exchanges_.size()), static_cast<Work>(work)));
    Exchange& exchange = *exchanges_.back();
    world_.note(text("begin ", exchange.name()));
    open_exchanges_.push_back(&exchange);
    ++under_way_;
    ++outcome_.exchanges;
    return exchange.begin();
  }

  Status kill_at_random() {
    if (world_.config.dead == 0 || has_death_ || world_.loopback->steps() < death_step_) return {};
    has_death_ = true;
    world_.kill(static_cast<uint32_t>(world_.random.below(world_.config.ranks)));
    return {};
  }

  Status poll_all() {
    for (uint32_t rank = 0; rank < world_.hosts.size(); ++rank) {
      if (world_.hosts[rank].dead) continue;
      for (const nic::QueueId queue : {world_.hosts[rank].arrivals, world_.hosts[rank].departures}) {
        while (const auto event = world_.interface(rank).eq_get(queue)) SPL_TRY(on_event(rank, *event));
      }
    }
    for (size_t i = 0; i < open_exchanges_.size();) {
      Exchange& exchange = *open_exchanges_[i];
      if (!exchange.done()) SPL_TRY(exchange.poll());
      if (!exchange.done()) {
        ++i;
        continue;
      }
      open_exchanges_.erase(open_exchanges_.begin() + static_cast<ptrdiff_t>(i));
      --under_way_;
      idle_ = 0;
    }
    return {};
  }

  Status on_event(uint32_t rank, const nic::Event& event) {
    const uint64_t words[] = {rank,
                              static_cast<uint64_t>(event.kind),
                              static_cast<uint64_t>(event.fail),
                              event.user_ptr,
                              event.manipulated_bytes,
                              event.hdr_data,
                              event.match_bits,
                              event.dropped_bytes};
    outcome_.hash = wire::siphash({outcome_.hash, 1}, {reinterpret_cast<const uint8_t*>(words), sizeof words});
    idle_ = 0;
    const uint64_t id = event.user_ptr / Exchange::roles;
    const uint32_t role = static_cast<uint32_t>(event.user_ptr % Exchange::roles);
    if (world_.trace) {
      world_.note(text("step ", world_.loopback->steps(), " rank ", rank, ": ", name_of(event.kind), " (",
                       name_of(event.fail), ") of exchange ", id, " role ", role, ", mlength ",
                       event.manipulated_bytes));
    }
    const bool is_in_waiting_room = event.in_overflow &&
                                    (event.kind == nic::EventKind::put || event.kind == nic::EventKind::link) &&
                                    event.user_ptr == 0 && event.portal == world_.hosts[rank].overflow;
    if (is_in_waiting_room) return {};
    if (id >= exchanges_.size()) {
      return fail(Code::mismatch, "rank ", rank, ": an event ", name_of(event.kind), " of nothing, user_ptr ",
                  event.user_ptr);
    }
    return exchanges_[id]->on_event(rank, role, event);
  }

  // Waits until nothing is under way, gives everything back, and compares everything.
  Status end() {
    while (!world_.links->losses_told()) {
      if (!world_.step()) return fail(Code::stalled, "a rank died, and not everybody hears of it");
    }
    world_.links->set_ending();
    SPL_TRY(world_.loopback->run());
    SPL_TRY(poll_all());
    for (const auto& exchange : exchanges_) SPL_TRY(exchange->finish());
    SPL_TRY(world_.loopback->run());
    SPL_TRY(poll_all());
    for (uint32_t rank = 0; rank < world_.hosts.size(); ++rank) SPL_TRY(close(rank));
    SPL_TRY(world_.loopback->run());
    return world_.check_quiet();
  }

  Status close(uint32_t rank) {
    Host& host = world_.hosts[rank];
    if (host.dead) return {};
    portals::Interface& interface = *host.interface;
    const auto compare = [&](const char* what, nic::CounterValue value, nic::CounterValue wanted) -> Status {
      if (value == wanted || world_.config.dead != 0) return {};
      return fail(Code::mismatch, "rank ", rank, ": the counter of what ", what, " is ", value.success, " and ",
                  value.failure, ", not ", wanted.success, " and ", wanted.failure);
    };
    SPL_TRY(compare("was sent", interface.ct_get(host.sent), host.sent_expected));
    SPL_TRY(compare("landed", interface.ct_get(host.landed), host.landed_expected));
    if (host.waiting_room_entry.exists()) {
      SPL_TRY(host.waiting_room.check(text("rank ", rank, ", overflow entry")));
      SPL_ASSIGN(const portals::Unlinked unlinked, interface.me_unlink(host.waiting_room_entry));
      if (unlinked != portals::Unlinked::done)
        return fail(Code::mismatch, "rank ", rank, ": the overflow entry is in use");
    }
    if (world_.config.dead != 0) return {};
    for (const nic::Refusal which : {nic::Refusal::permission, nic::Refusal::operation}) {
      SPL_ASSIGN(const uint64_t refused, interface.refusals(0, which));
      const uint64_t expected = host.refused_expected[static_cast<size_t>(which)];
      if (refused != expected && !(which == nic::Refusal::operation && world_.engine_overrun)) {
        return fail(Code::mismatch, "rank ", rank, ": ", refused, " messages were refused for want of ",
                    which == nic::Refusal::permission ? "permission" : "the operation", ", not ", expected);
      }
    }
    SPL_TRY(interface.pt_free(host.portal));
    SPL_TRY(interface.pt_free(host.overflow));
    SPL_TRY(interface.pt_free(host.flow));
    SPL_TRY(interface.ct_free(host.sent));
    SPL_TRY(interface.ct_free(host.landed));
    SPL_TRY(interface.eq_free(host.arrivals));
    return interface.eq_free(host.departures);
  }

  std::string stall_text() const {
    std::string line = "nothing happens any more; missing:";
    for (const Exchange* exchange : open_exchanges_) line += " " + exchange->missing_events() + ";";
    for (uint32_t rank = 0; rank < world_.hosts.size(); ++rank)
      line += " " + world_.loopback->nic(rank).describe_waiting() + ";";
    return line + " " + world_.links->describe_waiting();
  }

  World& world_;
  Outcome& outcome_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::vector<Exchange*> open_exchanges_;
  uint64_t rounds_ = 0;
  uint64_t under_way_ = 0;
  uint64_t idle_ = 0;  // steps in a row without progress
  uint64_t death_step_ = 0;  // the step of the loopback driver from which on a rank may die
  bool has_death_ = false;   // a rank has died
};

Status run_in(World& world, Outcome& outcome) {
  Runner runner(world, outcome);
  return runner.run();
}

}  // namespace

Outcome run(const Config& config, uint64_t seed, bool trace) {
  Outcome outcome;
  try {
    if (has_frames(config)) {
      FrameRun frames(config, seed, trace, outcome);
      const Status verdict = frames.run();
      if (!verdict) outcome.violation = verdict.error().message;
      outcome.steps = frames.steps();
      return outcome;
    }
    auto world = World::make(config, seed, trace);
    if (!world) {
      outcome.violation = world.error().message;
      return outcome;
    }
    const Status verdict = run_in(**world, outcome);
    if (!verdict) outcome.violation = verdict.error().message;
    outcome.messages = (*world)->messages;
    outcome.steps = (*world)->loopback->steps();
    count_of((*world)->faults, Fault::buffer_full) += (*world)->loopback->packets_blocked();
    outcome.faults = (*world)->faults;
    outcome.hash = wire::siphash({outcome.hash, (*world)->links->bytes_hash()}, {});
  } catch (const InternalError& error) {
    outcome.violation = error.what();
  }
  return outcome;
}

}  // namespace spinloom::torture
