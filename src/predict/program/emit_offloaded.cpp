#include <algorithm>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

using schedule::Awaits;
using schedule::Kind;

void RankEmitter::emit_offloaded(uint32_t number, const OffloadCosts& costs) {
  const Action& action = script_.actions[number];
  const uint64_t create_ps = operations_to_create(action, costs) * costs.create_ps;
  bill_.messages_ps += create_ps;
  const Cursor posted = join(add_work(create_ps, cursor_), message_cpu);
  const NicExecution execution{costs, posted, add_work(late_ps(action), posted)};
  cursor_ = execution.returned;
  Cursor entry = posted;
  for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
    Cursor ends = emit_round_by_nic(script_.rounds[round], join(entry, message_cpu), execution);
    if (!ends.empty()) entry = std::move(ends);
  }
  ends_[number] = std::move(entry);
}

uint64_t RankEmitter::late_ps(const Action& action) {
  uint64_t sum_ps = 0;
  for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
    for (uint32_t leg = script_.rounds[round].first_leg; leg < script_.rounds[round].legs_end; ++leg) {
      if (!is_late(leg)) continue;
      const bool has_request = asks_first(script_.legs[leg]);
      const uint64_t late_ps =
          has_request ? costs_.late_receives->answer_ps : late_receive_cost(script_.legs[leg]).cpu_ps;
      (has_request ? bill_.messages_ps : bill_.layouts_ps) += late_ps;
      sum_ps += late_ps;
    }
  }
  return sum_ps;
}

uint64_t RankEmitter::operations_to_create(const Action& action, const OffloadCosts& costs) {
  uint64_t operations = 0;
  uint64_t frontier = 0;
  std::vector<uint64_t> schedule;
  bool is_first = true;
  for (uint32_t number = action.first_round; number < action.rounds_end; ++number) {
    const ScriptRound& round = script_.rounds[number];
    const uint64_t copies = round.copies_end - round.first_copy;
    uint64_t sends = copies;
    uint64_t receives = 0;
    for (uint32_t leg = round.first_leg; leg < round.legs_end; ++leg) {
      const Leg& end = script_.legs[leg];
      if (end.tag == dropped) continue;
      (end.side == Side::send ? sends : receives) += 1;
      schedule.insert(schedule.end(), {end.peer, end.part.bytes, static_cast<uint64_t>(end.side)});
    }
    schedule.insert(schedule.end(), {copies, round.combined_bytes});
    operations += sends + receives + (round.combined_bytes != 0 ? 1 : 0);
    frontier += receives + (is_first ? sends : 0);
    is_first = is_first && sends + receives == 0;
  }
  const bool is_on_nic = costs.is_cached && !cached_schedules_.insert(std::move(schedule)).second;
  return is_on_nic ? frontier : operations;
}

Cursor RankEmitter::emit_round_by_nic(const ScriptRound& round, const Cursor& entry, const NicExecution& execution) {
  const OffloadCosts& costs = execution.costs;
  Cursor ends;
  for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
    const Leg& leg = script_.legs[number];
    if (leg.tag == dropped) continue;
    if (leg.side == Side::send) {
      send(leg, number, entry, ends, false);
    } else {
      ends.push_back({receive_by_nic(leg, number, execution), Awaits::end});
    }
  }
  for (uint32_t number = round.first_copy; number < round.copies_end; ++number) {
    const Copy& copy = script_.copies[number];
    const bool is_block = copy.from.type == trace::none && copy.to.type == trace::none;
    const uint64_t nic_ps = is_block ? costs.match_ps + time_of(costs.own_block_rate, copy.to.bytes) : 0;
    const uint64_t cpu_ps = is_block ? 0 : copy_ps(copy);
    bill_.layouts_ps += cpu_ps;
    const Cursor copied = pass_nic({.nic_ps = nic_ps, .nic_busy_ps = nic_ps}, add_work(cpu_ps, entry));
    ends.insert(ends.end(), copied.begin(), copied.end());
  }
  const uint64_t combine_ps = time_of(costs.combine_rate, round.combined_bytes);
  if (round.combined_bytes == 0 || ends.empty()) return ends;
  return pass_nic({.nic_ps = costs.combine_latency_ps + combine_ps, .nic_busy_ps = combine_ps}, ends);
}

uint32_t RankEmitter::receive_by_nic(const Leg& leg, uint32_t number, const NicExecution& execution) {
  bill_.received_bytes += leg.part.bytes;
  const bool has_request = asks_first(leg);
  uint32_t last_operation = has_request
                                ? add_message(Kind::receive, request_bytes, leg, Stage::request, execution.posted)
                                : add_message(Kind::receive, leg.part.bytes, leg, Stage::eager, execution.posted);
  receives_[number] = last_operation;
  Cursor arrived = {{last_operation, Awaits::end}};
  if (is_late(number)) arrived.insert(arrived.end(), execution.returned.begin(), execution.returned.end());
  if (has_request) {
    const uint32_t answered = add_message(Kind::send, request_bytes, leg, Stage::answer, arrived);
    arrived = {
        {add_message(Kind::receive, leg.part.bytes, leg, Stage::data, {{answered, Awaits::start}}), Awaits::end}};
  } else if (is_late(number)) {
    return add_computation(0, message_cpu, arrived);
  }
  const EndCost end_cost = end_cost_of(leg);
  last_operation =
      add_delay(costs_.message_cost(leg.part.bytes).extra_latency_ps, pass_nic(end_cost, arrived).front().operation);
  bill_.nic_ps += execution.costs.match_ps;
  last_operation = add_computation(execution.costs.match_ps, nic_cpu, {{last_operation, Awaits::end}});
  bill_.layouts_ps += end_cost.cpu_ps;
  return end_cost.cpu_ps == 0 ? last_operation
                              : add_computation(end_cost.cpu_ps, host_cpu, {{last_operation, Awaits::end}});
}

}  // namespace spinloom::predict
