#include <algorithm>

#include "predict/program/rank_emitter.hpp"

namespace spinloom::predict {

using schedule::Awaits;
using schedule::Kind;

void RankEmitter::offload(uint32_t number, const Offloaded& how) {
  const Action& action = script_.actions[number];
  const uint64_t create_ps = operations_to_give(action, how) * how.create_ps;
  bill_.messages_ps += create_ps;
  const Cursor posted = joined(work(create_ps, cursor_), message_cpu);
  const Execution by_nic{how, posted, work(late_ps(action), posted)};
  cursor_ = by_nic.returned;
  Cursor entry = posted;
  for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
    Cursor ends = execute(script_.rounds[round], joined(entry, message_cpu), by_nic);
    if (!ends.empty()) entry = std::move(ends);
  }
  ends_[number] = std::move(entry);
}

uint64_t RankEmitter::late_ps(const Action& action) {
  uint64_t sum_ps = 0;
  for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
    for (uint32_t leg = script_.rounds[round].first_leg; leg < script_.rounds[round].legs_end; ++leg) {
      if (!is_late(leg)) continue;
      const bool asks = asks_first(script_.legs[leg]);
      const uint64_t late_ps = asks ? costs_.late->answer_ps : unexpected_price_of(script_.legs[leg]).cpu_ps;
      (asks ? bill_.messages_ps : bill_.layouts_ps) += late_ps;
      sum_ps += late_ps;
    }
  }
  return sum_ps;
}

uint64_t RankEmitter::operations_to_give(const Action& action, const Offloaded& how) {
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
      const Leg& one = script_.legs[leg];
      if (one.tag == dropped) continue;
      (one.side == Side::send ? sends : receives) += 1;
      schedule.insert(schedule.end(), {one.peer, one.part.bytes, static_cast<uint64_t>(one.side)});
    }
    schedule.insert(schedule.end(), {copies, round.combined_bytes});
    operations += sends + receives + (round.combined_bytes != 0 ? 1 : 0);
    frontier += receives + (is_first ? sends : 0);
    is_first = is_first && sends + receives == 0;
  }
  const bool is_there = how.is_cached && !given_.insert(std::move(schedule)).second;
  return is_there ? frontier : operations;
}

Cursor RankEmitter::execute(const ScriptRound& round, const Cursor& entry, const Execution& by_nic) {
  const Offloaded& how = by_nic.how;
  Cursor ends;
  for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
    const Leg& leg = script_.legs[number];
    if (leg.tag == dropped) continue;
    if (leg.side == Side::send) {
      send(leg, number, entry, ends, false);
    } else {
      ends.push_back({land(leg, number, by_nic), Awaits::end});
    }
  }
  for (uint32_t number = round.first_copy; number < round.copies_end; ++number) {
    const Copy& copy = script_.copies[number];
    const bool is_block = copy.from.type == trace::none && copy.to.type == trace::none;
    const uint64_t nic_ps = is_block ? how.match_ps + time_of(how.own, copy.to.bytes) : 0;
    const uint64_t cpu_ps = is_block ? 0 : copy_ps(copy);
    bill_.layouts_ps += cpu_ps;
    const Cursor copied = through_nic({.nic_ps = nic_ps, .nic_busy_ps = nic_ps}, work(cpu_ps, entry));
    ends.insert(ends.end(), copied.begin(), copied.end());
  }
  const uint64_t combine_ps = time_of(how.combine, round.combined_bytes);
  if (round.combined_bytes == 0 || ends.empty()) return ends;
  return through_nic({.nic_ps = how.combine_ps + combine_ps, .nic_busy_ps = combine_ps}, ends);
}

uint32_t RankEmitter::land(const Leg& leg, uint32_t number, const Execution& by_nic) {
  bill_.received_bytes += leg.part.bytes;
  const bool asks = asks_first(leg);
  uint32_t there = asks ? message(Kind::receive, request_bytes, leg, Stage::request, by_nic.posted)
                        : message(Kind::receive, leg.part.bytes, leg, Stage::eager, by_nic.posted);
  receives_[number] = there;
  Cursor come = {{there, Awaits::end}};
  if (is_late(number)) come.insert(come.end(), by_nic.returned.begin(), by_nic.returned.end());
  if (asks) {
    const uint32_t answered = message(Kind::send, request_bytes, leg, Stage::answer, come);
    come = {{message(Kind::receive, leg.part.bytes, leg, Stage::data, {{answered, Awaits::start}}), Awaits::end}};
  } else if (is_late(number)) {
    return computation(0, message_cpu, come);
  }
  const Price price = price_of(leg);
  there = delayed(costs_.at(leg.part.bytes).way_ps, through_nic(price, come).front().operation);
  bill_.nic_ps += by_nic.how.match_ps;
  there = computation(by_nic.how.match_ps, nic_cpu, {{there, Awaits::end}});
  bill_.layouts_ps += price.cpu_ps;
  return price.cpu_ps == 0 ? there : computation(price.cpu_ps, host_cpu, {{there, Awaits::end}});
}

}  // namespace spinloom::predict
