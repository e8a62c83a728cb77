#include "predict/program/rank_emitter.hpp"

#include <algorithm>

namespace spinloom::predict {

using schedule::Awaits;
using schedule::Kind;
using schedule::Shape;

schedule::Program RankEmitter::emit() {
  for (const Step& step : script_.steps) {
    if (step.event >= script_.cut_event) break;
    switch (step.kind) {
      case Step::Kind::compute: emit_compute(scaled(step.value)); break;
      case Step::Kind::fixed: emit_compute(step.value * 1000); break;
      case Step::Kind::act: emit_action(static_cast<uint32_t>(step.value)); break;
      case Step::Kind::await: emit_await(step); break;
    }
  }
  return builder_.take();
}

uint64_t RankEmitter::scaled(uint64_t ns) const {
  const auto product = static_cast<unsigned __int128>(ns) * 1000 * costs_.scale_numerator;
  return static_cast<uint64_t>((product + costs_.scale_denominator - 1) / costs_.scale_denominator);
}

void RankEmitter::emit_compute(uint64_t time_ps) {
  if (time_ps == 0) return;
  bill_.compute_ps += time_ps;
  cursor_ = {{add_computation(time_ps, host_cpu, cursor_), Awaits::end}};
}

void RankEmitter::emit_await(const Step& step) {
  const Cursor begins = cursor_;
  bool is_for_collectives = false;
  uint64_t test_ps = 0;
  for (uint32_t number = 0; number < step.count; ++number) {
    const uint32_t awaited = script_.awaited[step.value + number];
    add_to_cursor(ends_[awaited]);
    if (!script_.actions[awaited].is_collective) continue;
    is_for_collectives = true;
    if (costs_.offload.has_value()) test_ps += costs_.offload->test_ps;
  }
  bill_.messages_ps += test_ps;
  cursor_ = add_work(test_ps, cursor_);
  if (is_for_collectives) waits_.push_back({begins, cursor_});
}

void RankEmitter::add_to_cursor(const Cursor& ends) {
  for (const Awaited& awaited : ends) {
    if (std::ranges::find(cursor_, awaited) == cursor_.end()) cursor_.push_back(awaited);
  }
}

void RankEmitter::emit_action(uint32_t number) {
  const Action& action = script_.actions[number];
  if (costs_.offload.has_value() && action.is_collective && !action.is_blocking) {
    emit_offloaded(number, *costs_.offload);
    return;
  }
  Cursor entry = cursor_;
  Cursor returned;  // the operations for which the call waits before it returns, if it is non-blocking
  bool is_first = true;
  for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
    Cursor starts;
    Cursor ends = emit_round(script_.rounds[round], join(entry), starts);
    if (ends.empty()) continue;  // its legs were dropped, and its copies take no time
    if (is_first) returned = std::move(starts);
    is_first = false;
    entry = std::move(ends);
  }
  if (is_first) return;
  if (action.is_blocking) {
    cursor_ = std::move(entry);
  } else {
    cursor_ = std::move(returned);
    ends_[number] = std::move(entry);
  }
}

Cursor RankEmitter::emit_round(const ScriptRound& round, const Cursor& entry, Cursor& starts) {
  Cursor ends;
  for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
    const Leg& leg = script_.legs[number];
    if (leg.side == Side::receive && leg.tag != dropped) receive(leg, number, entry, starts, ends);
  }
  Cursor before = entry;  // sends are called one after the other
  for (uint32_t number = round.first_leg; number < round.legs_end; ++number) {
    const Leg& leg = script_.legs[number];
    if (leg.side != Side::send || leg.tag == dropped) continue;
    send(leg, number, before, ends);
    before = {{last_send_, Awaits::start}};
    starts.push_back(before.front());
  }
  for (uint32_t number = round.first_copy; number < round.copies_end; ++number) {
    const uint64_t time_ps = copy_ps(script_.copies[number]);
    bill_.layouts_ps += time_ps;
    if (time_ps == 0) continue;
    before = {{add_computation(time_ps, host_cpu, before), Awaits::end}};
    ends.push_back(before.front());
    starts.push_back(before.front());
  }
  const uint64_t combine_ps = time_of(costs_.combine_rate, round.combined_bytes);
  if (combine_ps != 0 && !ends.empty()) {
    bill_.combine_ps += combine_ps;
    ends = {{add_computation(combine_ps, host_cpu, ends), Awaits::end}};
  }
  return ends;
}

Cursor RankEmitter::join(const Cursor& entry, uint8_t cpu) {
  if (entry.size() <= 2) return entry;
  return {{add_computation(0, cpu, entry), Awaits::end}};
}

Cursor RankEmitter::add_work(uint64_t time_ps, const Cursor& after) {
  if (time_ps == 0) return after;
  return {{add_computation(time_ps, host_cpu, after), Awaits::end}};
}

uint32_t RankEmitter::charge_cpu(uint64_t time_ps, uint32_t after) {
  bill_.messages_ps += time_ps;
  return time_ps == 0 ? after : add_computation(time_ps, host_cpu, {{after, Awaits::end}});
}

uint32_t RankEmitter::add_delay(uint64_t time_ps, uint32_t after) {
  if (time_ps == 0) return after;
  bill_.nic_ps += time_ps;
  const auto cpu = static_cast<uint8_t>(delay_cpu + delays_++ % delay_cpus);
  return add_computation(time_ps, cpu, {{after, Awaits::end}});
}

Cursor RankEmitter::pass_nic(const EndCost& end_cost, const Cursor& after) {
  const uint64_t served_ps = std::min(end_cost.nic_ps, end_cost.nic_busy_ps);
  bill_.nic_ps += end_cost.nic_busy_ps;
  Cursor out = after;
  if (served_ps != 0) out = {{add_computation(served_ps, nic_cpu, out), Awaits::end}};
  if (end_cost.nic_busy_ps > served_ps) add_computation(end_cost.nic_busy_ps - served_ps, nic_cpu, out);
  if (end_cost.nic_ps == served_ps) return out;
  if (out.size() != 1 || out.front().awaits != Awaits::end) out = {{add_computation(0, nic_cpu, out), Awaits::end}};
  return {{add_delay(end_cost.nic_ps - served_ps, out.front().operation), Awaits::end}};
}

uint32_t RankEmitter::add_computation(uint64_t time_ps, uint8_t cpu, const Cursor& after) {
  const uint64_t units = time_ps / costs_.compute_unit_ps + (time_ps % costs_.compute_unit_ps != 0 ? 1 : 0);
  return add_operation({.size = units, .kind = Kind::compute, .cpu = cpu}, 0, after);
}

uint32_t RankEmitter::add_message(Kind kind, uint64_t bytes, const Leg& leg, Stage stage, const Cursor& after) {
  const uint32_t tag = leg.tag * stages + static_cast<uint32_t>(stage);
  const bool has_data = stage == Stage::eager || stage == Stage::data;
  const uint8_t cpu = costs_.uses_one_cpu ? host_cpu : message_cpu;
  return add_operation({.size = bytes, .tag = tag, .kind = kind, .cpu = cpu}, leg.peer, after,
                       has_data ? layouts_.layouts_of(leg.part) : schedule::TransferLayouts());
}

uint32_t RankEmitter::add_operation(const Shape& shape, uint32_t peer, const Cursor& after,
                                    schedule::TransferLayouts layouts) {
  const uint32_t operation = builder_.add(out_.intern_shape(shape, layouts), peer);
  for (const Awaited& one : after) builder_.require(operation, one.operation, one.awaits);
  return operation;
}

}  // namespace spinloom::predict
