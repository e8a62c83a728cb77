#include "portals/model/machine.hpp"

#include <algorithm>
#include <utility>

#include "portals/model/step.hpp"

namespace spinloom::model {
namespace {

// Memory of a rank that an operation reads or writes. Uses of one group never meet: an entry that manages its offset
// gives each message a place of its own, and a use-once entry takes one message.
struct Use {
  uint16_t rank;
  Region region;
  bool is_written;
  size_t group;
  OperationName name;
};

// Adds the uses that messages for this rank may make of an entry's memory.
void add_uses_of(const Program& program, uint16_t rank, const Entry& entry, std::vector<Use>& uses) {
  const size_t group = uses.size();
  for (uint16_t initiator = 0; initiator < program.ranks.size(); ++initiator) {
    const std::vector<Operation>& operations = program.ranks[initiator].operations;
    for (uint16_t place = 0; place < operations.size(); ++place) {
      const Movement& movement = operations[place].movement;
      if (!moves_data(operations[place].kind) || movement.target != rank) continue;
      const auto parts = entry.manage_local
                             ? parts_of(entry.memory, entry.pieces, 0, entry.memory.length)
                             : parts_of(entry.memory, entry.pieces, movement.remote_offset, movement.local.length);
      for (const Region& part : parts) {
        const bool is_apart = entry.manage_local || entry.use_once;
        uses.push_back({rank, part, has_source(operations[place]), is_apart ? group : uses.size(), {initiator, place}});
      }
    }
  }
}

std::vector<Use> uses_of(const Program& program) {
  std::vector<Use> uses;
  for (uint16_t rank = 0; rank < program.ranks.size(); ++rank) {
    for (uint16_t place = 0; place < program.ranks[rank].operations.size(); ++place) {
      const Operation& operation = program.ranks[rank].operations[place];
      if (operation.kind == OperationKind::append) add_uses_of(program, rank, operation.entry, uses);
      if (!moves_data(operation.kind)) continue;
      const auto add = [&](const std::vector<Region>& parts, bool is_written) {
        for (const Region& part : parts) uses.push_back({rank, part, is_written, uses.size(), {rank, place}});
      };
      if (has_source(operation)) add(local_parts(operation.movement), false);
      if (has_reply(operation)) add(reply_parts(operation), true);
    }
  }
  return uses;
}

bool may_meet(const Use& one, const Use& other) {
  return (one.is_written || other.is_written) && one.rank == other.rank && one.group != other.group &&
         overlap(one.region, other.region);
}

}  // namespace

Traits::Traits(const Program& program) {
  for (const RankProgram& rank : program.ranks) {
    races.emplace_back(rank.operations.size(), false);
    has_scatter_lists.push_back(has_lists(rank));
    std::vector<bool>& of_rank = watched.emplace_back(rank.setup.counters, false);
    for (const Operation& operation : rank.operations) {
      if (operation.trigger) of_rank.at(operation.trigger->counter) = true;
      switch (operation.kind) {
        case OperationKind::ct_set:
        case OperationKind::ct_get:
        case OperationKind::ct_wait: of_rank.at(operation.counter) = true; break;
        default: break;
      }
    }
  }
  const std::vector<Use> uses = uses_of(program);
  for (const Use& one : uses) {
    if (races[one.name.rank][one.name.place]) continue;
    if (std::none_of(uses.begin(), uses.end(), [&](const Use& other) { return may_meet(one, other); })) continue;
    has_races = races[one.name.rank][one.name.place] = true;
  }
}

Followed::Followed(const Program& program, const Outcome& observed) : outcome(&observed) {
  for (size_t rank = 0; rank < observed.ranks.size(); ++rank) {
    const RankOutcome& seen = observed.ranks[rank];
    auto& queues = events.emplace_back();
    for (size_t place = 0; place < seen.returned.size(); ++place) {
      const auto& taken = seen.returned[place].event;
      if (taken) queues[program.ranks[rank].operations[place].departures ? 1 : 0].push_back(*taken);
    }
    queues[0].insert(queues[0].end(), seen.arrivals.begin(), seen.arrivals.end());
    queues[1].insert(queues[1].end(), seen.departures.begin(), seen.departures.end());
  }
}

State Machine::first() const {
  State state;
  for (uint16_t rank = 0; rank < program_.ranks.size(); ++rank) {
    Process& process = state.processes.emplace_back();
    process.counters.resize(setup(rank).counters);
    process.memory.resize(setup(rank).memory_bytes);
    for (uint16_t at = 0; at < process.memory.size(); ++at) process.memory[at] = first_byte(rank, at);
  }
  return state;
}

bool Machine::next(const State& state, std::vector<State>& states) const {
  const Step now(*this, state);
  bool has_steps = false;
  const auto go = [&](auto change) {
    has_steps = true;
    Step step(*this, state);
    change(step);
    if (step.agrees()) states.push_back(step.take());
  };
  // These steps need not come: a rank may die when all is quiet, or later, and an entry whose queue is full need not be
  // disabled before a message comes.
  if (now.may_die()) go([](Step& step) { step.die(); });
  const bool may_die = has_steps;
  for (uint16_t rank = 0; rank < state.processes.size(); ++rank) {
    if (now.may_find_queue_full(rank)) go([&](Step& step) { step.find_queue_full(rank); });
  }
  has_steps = false;
  if (now.may_cut_off()) go([](Step& step) { step.cut_off(); });
  for (uint16_t rank = 0; rank < state.processes.size(); ++rank) {
    if (now.may_call(rank)) {
      for (uint16_t way = 0; way < now.ways_to_call(rank); ++way) go([&](Step& step) { step.call(rank, way); });
    }
    if (now.may_end_deferral(rank)) {
      const uint16_t place = state.processes[rank].deferred.front();
      for (uint16_t way = 0; way < now.ways_to_wait(rank, place); ++way) {
        go([&](Step& step) { step.end_deferral(rank, way); });
      }
    }
    for (uint16_t way = 0; now.may_start_fired(rank) && way < now.ways_to_start_fired(rank); ++way) {
      go([&](Step& step) { step.start_fired(rank, way); });
    }
    if (now.may_report_disabled(rank)) go([&](Step& step) { step.report_disabled(rank); });
    for (size_t claim = 0; claim < state.processes[rank].claims.size(); ++claim) {
      if (now.may_report_claim(rank, claim)) go([&](Step& step) { step.report_claim(rank, claim); });
    }
    for (size_t entry = 0; entry < state.processes[rank].entries.size(); ++entry) {
      if (now.may_report_link(rank, entry)) go([&](Step& step) { step.report_link(rank, entry); });
      if (now.may_report_unlink(rank, entry)) go([&](Step& step) { step.report_unlink(rank, entry); });
      if (now.may_free(rank, entry)) go([&](Step& step) { step.free(rank, entry); });
    }
  }
  for (size_t message = 0; message < state.messages.size(); ++message) {
    if (now.may_lose(message)) {
      for (uint16_t way = 0; way < 4; ++way) go([&](Step& step) { step.lose(message, way); });
    }
    for (uint16_t element = 0; element < elements_max; ++element) {
      if (now.may_read(message, element)) go([&](Step& step) { step.read(message, element); });
      if (now.may_move(message, element)) go([&](Step& step) { step.move(message, element); });
    }
    if (now.may_send(message)) go([&](Step& step) { step.send(message); });
    if (now.may_count_send(message)) go([&](Step& step) { step.count_send(message); });
    if (now.may_match(message)) {
      for (uint16_t way = 0; way < now.ways_to_match(message); ++way) go([&](Step& step) { step.match(message, way); });
    }
    if (now.may_report(message)) go([&](Step& step) { step.report(message); });
    if (now.may_count(message)) go([&](Step& step) { step.count(message); });
    if (now.may_answer(message)) go([&](Step& step) { step.answer(message); });
    if (now.may_count_answer(message)) go([&](Step& step) { step.count_answer(message); });
  }
  if (!has_steps && may_pass_settle(state)) go([](Step& step) { step.pass_settle(); });
  return has_steps || may_die;
}

// True if every rank that has not ended waits for all to be quiet.
bool Machine::may_pass_settle(const State& state) const {
  bool has_any = false;
  for (uint16_t rank = 0; rank < state.processes.size(); ++rank) {
    const uint16_t next = state.processes[rank].next;
    if (next >= program_.ranks[rank].operations.size()) continue;
    if (operation({rank, next}).kind != OperationKind::settle) return false;
    has_any = true;
  }
  return has_any;
}

Outcome Machine::outcome_of(const State& end) {
  Outcome outcome;
  for (const Process& process : end.processes) {
    RankOutcome& seen = outcome.ranks.emplace_back();
    if (!process.is_alive) continue;
    seen.returned = process.returned;
    const auto untaken = [](const Queue& queue) {
      return std::vector<Event>(queue.events.begin() + queue.taken, queue.events.end());
    };
    seen.arrivals = untaken(process.queues[0]);
    seen.departures = untaken(process.queues[1]);
    for (const Counter& counter : process.counters) seen.counters.push_back(counter.value);
    seen.memory = process.memory;
    seen.dropped = process.dropped;
    seen.permission_violations = process.permission_violations;
    seen.operation_violations = process.operation_violations;
  }
  return outcome;
}

bool Machine::is_followed(const State& end) const {
  for (size_t rank = 0; rank < end.processes.size(); ++rank) {
    const Process& process = end.processes[rank];
    if (rank == program_.killed) {
      if (process.is_alive) return false;
      continue;
    }
    const RankOutcome& seen = followed_->outcome->ranks[rank];
    for (size_t queue = 0; queue < 2; ++queue) {
      if (process.queues[queue].posted != followed_->events[rank][queue].size()) return false;
    }
    std::vector<Count> counters;
    for (const Counter& counter : process.counters) counters.push_back(counter.value);
    if (process.next != seen.returned.size() || counters != seen.counters || process.memory != seen.memory ||
        process.dropped != seen.dropped || process.permission_violations != seen.permission_violations ||
        process.operation_violations != seen.operation_violations) {
      return false;
    }
  }
  return true;
}

}  // namespace spinloom::model
