#include "predict/schedule_of.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace spinloom::predict {
namespace {

using schedule::Awaits;
using schedule::Kind;
using schedule::Shape;

constexpr uint8_t host_cpu = 0;
constexpr uint8_t nic_cpu = 1;
constexpr uint8_t message_cpu = 2;  // is never busy: what a message costs a CPU is a computation of its own
// A delay of one message that holds up no other. Each takes one of these CPUs in turn, so that up to 61 messages of a
// rank are delayed at the same time.
constexpr uint8_t delay_cpu = 3;
constexpr uint8_t delay_cpus = 61;

// A tag of a Script has several of the schedule's: eager messages, and what a handshake consists of.
enum class Stage : uint8_t { eager, request, answer, data };  // answer: also that the data have been fetched
constexpr uint32_t stages = 4;
constexpr uint32_t tags_most = UINT32_MAX / stages - 1;
constexpr uint64_t request_bytes = 1;

// The schedule's numbers of a Script's layouts.
class LayoutNumbers {
 public:
  LayoutNumbers(const std::vector<layout::Blob>& layouts, schedule::Schedule& out) : layouts_(layouts), out_(out) {}

  schedule::Ends of(const Part& part) {
    if (part.type == trace::none || part.bytes == 0) return {};
    const auto [found, is_new] = numbers_.try_emplace({part.type, part.count}, 0);
    if (is_new) {
      const auto bytes = layouts_[part.type].bytes();
      const std::string blob(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      found->second = out_.number_of_layout({blob, part.count, part.bytes});
    }
    return {found->second, schedule::contiguous};
  }

 private:
  const std::vector<layout::Blob>& layouts_;
  schedule::Schedule& out_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> numbers_;
};

// A collective operation that a NIC executes.
struct Execution {
  const Offloaded& how;
  Cursor posted;  // all of its receives
  Cursor returned;  // its call, after the CPU has done with what had come before
};

class RankEmitter {
 public:
  RankEmitter(const RankScript& script, const Costs& costs, const std::vector<bool>* late, LayoutNumbers& layouts,
              schedule::Schedule& out, Bill& bill, std::vector<uint32_t>& receives, std::vector<Wait>& waits)
      : script_(script),
        costs_(costs),
        late_(late),
        layouts_(layouts),
        out_(out),
        bill_(bill),
        receives_(receives),
        waits_(waits),
        ends_(script.actions.size()) {
    receives_.assign(script.legs.size(), no_operation);
  }

  schedule::Program emit() {
    for (const Step& step : script_.steps) {
      if (step.event >= script_.cut_event) break;
      switch (step.kind) {
        case Step::Kind::compute: compute(scaled(step.value)); break;
        case Step::Kind::fixed: compute(step.value * 1000); break;
        case Step::Kind::act: act(static_cast<uint32_t>(step.value)); break;
        case Step::Kind::await: await(step); break;
      }
    }
    return builder_.take();
  }

 private:
  [[nodiscard]] uint64_t scaled(uint64_t ns) const {
    const auto product = static_cast<unsigned __int128>(ns) * 1000 * costs_.scale_numerator;
    return static_cast<uint64_t>((product + costs_.scale_denominator - 1) / costs_.scale_denominator);
  }

  void compute(uint64_t time_ps) {
    if (time_ps == 0) return;
    bill_.compute_ps += time_ps;
    cursor_ = {{computation(time_ps, host_cpu, cursor_), Awaits::end}};
  }

  void await(const Step& step) {
    const Cursor begins = cursor_;
    bool is_for_collectives = false;
    uint64_t test_ps = 0;
    for (uint32_t number = 0; number < step.count; ++number) {
      const uint32_t awaited = script_.awaited[step.value + number];
      wait(ends_[awaited]);
      if (!script_.actions[awaited].is_collective) continue;
      is_for_collectives = true;
      if (costs_.offloaded.has_value()) test_ps += costs_.offloaded->test_ps;
    }
    bill_.messages_ps += test_ps;
    cursor_ = work(test_ps, cursor_);
    if (is_for_collectives) waits_.push_back({begins, cursor_});
  }

  void wait(const Cursor& ends) {
    for (const Awaited& one : ends) {
      if (std::ranges::find(cursor_, one) == cursor_.end()) cursor_.push_back(one);
    }
  }

  void act(uint32_t number) {
    const Action& action = script_.actions[number];
    if (costs_.offloaded.has_value() && action.is_collective && !action.is_blocking) {
      offload(number, *costs_.offloaded);
      return;
    }
    Cursor entry = cursor_;
    Cursor returned;  // what the call waits for before it returns, if it is non-blocking
    bool is_first = true;
    for (uint32_t round = action.first_round; round < action.rounds_end; ++round) {
      Cursor starts;
      Cursor ends = play(script_.rounds[round], joined(entry), starts);
      if (ends.empty()) continue;  // all of its legs were dropped
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

  // The call returns when the schedule is with the NIC and messages that were there before have been copied.
  void offload(uint32_t number, const Offloaded& how) {
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

  // What the CPU does for messages and requests that came before they were posted.
  uint64_t late_ps(const Action& action) {
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

  // Sends and receives, copies and reductions; of a schedule that is with the NIC those that wait for nothing.
  uint64_t operations_to_give(const Action& action, const Offloaded& how) {
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

  Cursor execute(const ScriptRound& round, const Cursor& entry, const Execution& by_nic) {
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

  // Several operations that wait for the same many others wait for one in their place.
  Cursor joined(const Cursor& entry, uint8_t cpu = host_cpu) {
    if (entry.size() <= 2) return entry;
    return {{computation(0, cpu, entry), Awaits::end}};
  }

  Cursor play(const ScriptRound& round, const Cursor& entry, Cursor& starts) {
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
      before = {{computation(time_ps, host_cpu, before), Awaits::end}};
      ends.push_back(before.front());
      starts.push_back(before.front());
    }
    const uint64_t combine_ps = time_of(costs_.combine, round.combined_bytes);
    if (combine_ps != 0 && !ends.empty()) {
      bill_.combine_ps += combine_ps;
      ends = {{computation(combine_ps, host_cpu, ends), Awaits::end}};
    }
    return ends;
  }

  [[nodiscard]] bool is_late(uint32_t leg) const {
    return costs_.late.has_value() && late_ != nullptr && (*late_)[leg];
  }

  // A receive that a NIC executes: the operation at whose end what waits for it begins.
  uint32_t land(const Leg& leg, uint32_t number, const Execution& by_nic) {
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

  void receive(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& starts, Cursor& ends) {
    bill_.received_bytes += leg.part.bytes;
    const bool is_late = this->is_late(number);
    const MessageCost cost = costs_.at(leg.part.bytes);
    const Price price = is_late && !asks_first(leg) ? unexpected_price_of(leg) : price_of(leg);
    uint32_t received = asks_first(leg) ? message(Kind::receive, request_bytes, leg, Stage::request, entry)
                                        : message(Kind::receive, leg.part.bytes, leg, Stage::eager, entry);
    starts.push_back({received, Awaits::start});
    receives_[number] = received;
    if (asks_first(leg) && costs_.handshake != Handshake::fetch) {
      const uint32_t read = charged(answer_ps(is_late), received);
      const uint32_t answered = message(Kind::send, request_bytes, leg, Stage::answer, {{read, Awaits::end}});
      received = message(Kind::receive, leg.part.bytes, leg, Stage::data, {{answered, Awaits::start}});
    } else if (!asks_first(leg) && is_synchronous(number)) {  // says that it has matched
      const uint32_t said = charged(small().send_cpu_ps, received);
      message(Kind::send, request_bytes, leg, Stage::answer, {{said, Awaits::end}});
    }
    const uint32_t there = delayed(cost.way_ps, through_nic(price, {{received, Awaits::end}}).front().operation);
    bill_.layouts_ps += price.cpu_ps;
    bill_.messages_ps += cost.receive_cpu_ps;
    const uint64_t cpu_ps = cost.receive_cpu_ps + price.cpu_ps;
    const uint32_t done = cpu_ps == 0 ? there : computation(cpu_ps, host_cpu, {{there, Awaits::end}});
    if (asks_first(leg) && costs_.handshake == Handshake::fetch) {
      message(Kind::send, request_bytes, leg, Stage::answer, {{done, Awaits::end}});
    }
    ends.push_back({done, Awaits::end});
  }

  // What CPUs do for a request or an answer.
  [[nodiscard]] MessageCost small() const {
    return costs_.handshake == Handshake::nic ? MessageCost() : costs_.at(request_bytes);
  }
  [[nodiscard]] uint64_t answer_ps(bool is_late) const {
    if (costs_.handshake == Handshake::nic) return is_late ? costs_.late->answer_ps : 0;
    return small().receive_cpu_ps + small().send_cpu_ps;
  }
  // It lies where messages without a receive land.
  [[nodiscard]] Price unexpected_price_of(const Leg& leg) const {
    const uint64_t copied = time_of(costs_.copy, leg.part.bytes);
    return {.cpu_ps = costs_.late->find_ps + std::max(copied, host_ps(leg.part, Side::receive))};
  }

  void send(const Leg& leg, uint32_t number, const Cursor& entry, Cursor& ends, bool by_host = true) {
    ++bill_.sent_messages;
    bill_.sent_bytes += leg.part.bytes;
    const uint64_t call_ps = by_host ? costs_.at(leg.part.bytes).send_cpu_ps : 0;
    const Price price = price_of(leg);
    bill_.layouts_ps += price.cpu_ps;
    bill_.messages_ps += call_ps;
    Cursor ready = entry;
    const bool is_answered = asks_first(leg) && costs_.handshake != Handshake::fetch;
    // NICs need no CPU when the answer comes: it has packed before.
    const bool works_first = costs_.handshake == Handshake::nic;
    if (works_first) ready = work(call_ps + price.cpu_ps, ready);
    if (is_answered) {
      ready = {{asked(leg, work(small().send_cpu_ps, ready), small().receive_cpu_ps), Awaits::end}};
      bill_.messages_ps += small().send_cpu_ps;
    }
    if (!works_first) ready = work(call_ps + price.cpu_ps, ready);
    ready = through_nic(price, ready);
    if (asks_first(leg) && !is_answered) {
      ends.push_back({asked(leg, ready, 0), Awaits::end});
      return;
    }
    const uint32_t sent = message(Kind::send, leg.part.bytes, leg, is_answered ? Stage::data : Stage::eager, ready);
    if (!is_answered) last_send_ = sent;
    ends.push_back({sent, Awaits::end});
    if (asks_first(leg) || !is_synchronous(number)) return;
    const uint32_t heard = message(Kind::receive, request_bytes, leg, Stage::answer, {{sent, Awaits::start}});
    ends.push_back({charged(small().receive_cpu_ps, heard), Awaits::end});
  }

  // The end of the answer to a request, when the CPU has read it.
  uint32_t asked(const Leg& leg, const Cursor& ready, uint64_t read_ps) {
    last_send_ = message(Kind::send, request_bytes, leg, Stage::request, ready);
    return charged(read_ps, message(Kind::receive, request_bytes, leg, Stage::answer, {{last_send_, Awaits::start}}));
  }
  Cursor work(uint64_t time_ps, const Cursor& after) {
    if (time_ps == 0) return after;
    return {{computation(time_ps, host_cpu, after), Awaits::end}};
  }

  // A message that asks first ends after it has matched in any case.
  [[nodiscard]] bool is_synchronous(uint32_t leg) const {
    return !script_.synchronous.empty() && script_.synchronous[leg];
  }
  [[nodiscard]] bool asks_first(const Leg& leg) const { return leg.part.bytes > costs_.handshake_bytes; }

  // CPU time of an end of a message after an operation; the operation itself if there is none.
  uint32_t charged(uint64_t time_ps, uint32_t after) {
    bill_.messages_ps += time_ps;
    return time_ps == 0 ? after : computation(time_ps, host_cpu, {{after, Awaits::end}});
  }
  uint32_t delayed(uint64_t time_ps, uint32_t after) {
    if (time_ps == 0) return after;
    bill_.nic_ps += time_ps;
    const auto cpu = static_cast<uint8_t>(delay_cpu + delays_++ % delay_cpus);
    return computation(time_ps, cpu, {{after, Awaits::end}});
  }
  // The message waits for nic_ps; the NIC is busy for nic_busy_ps, whether that is more or less.
  Cursor through_nic(const Price& price, const Cursor& after) {
    const uint64_t served_ps = std::min(price.nic_ps, price.nic_busy_ps);
    bill_.nic_ps += price.nic_busy_ps;
    Cursor out = after;
    if (served_ps != 0) out = {{computation(served_ps, nic_cpu, out), Awaits::end}};
    if (price.nic_busy_ps > served_ps) computation(price.nic_busy_ps - served_ps, nic_cpu, out);
    if (price.nic_ps == served_ps) return out;
    if (out.size() != 1 || out.front().awaits != Awaits::end) out = {{computation(0, nic_cpu, out), Awaits::end}};
    return {{delayed(price.nic_ps - served_ps, out.front().operation), Awaits::end}};
  }

  [[nodiscard]] Price price_of(const Leg& leg) const {
    if (const PairPrice* const pair = pair_price_of(leg)) {
      return {.cpu_ps = leg.side == Side::send ? pair->send_ps : pair->receive_ps};
    }
    if (leg.part.type == trace::none || leg.part.bytes == 0) return {};
    const auto found = costs_.layouts.find({leg.part.type, leg.part.count, leg.side});
    if (found != costs_.layouts.end()) return found->second;
    return {.cpu_ps = time_of(costs_.unknown_layout, leg.part.bytes)};
  }

  [[nodiscard]] const PairPrice* pair_price_of(const Leg& leg) const {
    if (costs_.pairs.empty()) return nullptr;
    const auto found = costs_.pairs.find(pair_of(leg));
    return found == costs_.pairs.end() ? nullptr : &found->second;
  }

  [[nodiscard]] uint64_t copy_ps(const Copy& copy) const {
    const auto pair = costs_.pairs.find({copy.to.bytes, lie_of(copy.from), lie_of(copy.to)});
    if (pair != costs_.pairs.end() && pair->second.own_ps.has_value()) return *pair->second.own_ps;
    const uint64_t from = host_ps(copy.from, Side::send);
    const uint64_t to = host_ps(copy.to, Side::receive);
    return from + to != 0 ? from + to : time_of(costs_.copy, copy.to.bytes);
  }
  [[nodiscard]] uint64_t host_ps(const Part& part, Side side) const {
    if (part.type == trace::none) return 0;
    const auto found = costs_.host_layouts.find({part.type, part.count, side});
    return found != costs_.host_layouts.end() ? found->second : time_of(costs_.unknown_layout, part.bytes);
  }

  static uint64_t time_of(const Rate& rate, uint64_t bytes) {
    return static_cast<uint64_t>(rate.time_of(Bytes{static_cast<int64_t>(bytes)}).ps);
  }

  uint32_t computation(uint64_t time_ps, uint8_t cpu, const Cursor& after) {
    const uint64_t units = time_ps / costs_.unit_ps + (time_ps % costs_.unit_ps != 0 ? 1 : 0);
    return add({.size = units, .kind = Kind::compute, .cpu = cpu}, 0, after);
  }
  uint32_t message(Kind kind, uint64_t bytes, const Leg& leg, Stage stage, const Cursor& after) {
    const uint32_t tag = leg.tag * stages + static_cast<uint32_t>(stage);
    const bool has_data = stage == Stage::eager || stage == Stage::data;
    return add({.size = bytes, .tag = tag, .kind = kind, .cpu = message_cpu}, leg.peer, after,
               has_data ? layouts_.of(leg.part) : schedule::Ends());
  }
  uint32_t add(const Shape& shape, uint32_t peer, const Cursor& after, schedule::Ends its_ends = {}) {
    const uint32_t made = builder_.add(out_.number_of(shape, its_ends), peer);
    for (const Awaited& one : after) builder_.require(made, one.operation, one.awaits);
    return made;
  }

  const RankScript& script_;
  const Costs& costs_;
  const std::vector<bool>* late_;
  LayoutNumbers& layouts_;
  schedule::Schedule& out_;
  Bill& bill_;
  std::vector<uint32_t>& receives_;
  std::vector<Wait>& waits_;
  schedule::Builder builder_;
  Cursor cursor_;
  std::vector<Cursor> ends_;  // of actions
  std::set<std::vector<uint64_t>> given_;  // schedules that are with the NIC
  uint32_t last_send_ = 0;    // whose start is the end of the call
  uint32_t delays_ = 0;
};

}  // namespace

MessageCost Costs::at(uint64_t bytes) const {
  if (messages.empty()) return {};
  if (messages.size() == 1 || bytes <= messages.front().bytes) return messages.front();
  size_t right = 1;
  while (right + 1 < messages.size() && messages[right].bytes < bytes) ++right;
  const MessageCost& low = messages[right - 1];
  const MessageCost& high = messages[right];
  const auto between = [&](uint64_t from, uint64_t to) {
    const auto slope = static_cast<__int128>(to) - static_cast<__int128>(from);
    const __int128 found = static_cast<__int128>(from) + slope * static_cast<__int128>(bytes - low.bytes) /
                                                             static_cast<__int128>(high.bytes - low.bytes);
    return static_cast<uint64_t>(std::max<__int128>(found, 0));
  };
  return {bytes, between(low.send_cpu_ps, high.send_cpu_ps), between(low.receive_cpu_ps, high.receive_cpu_ps),
          between(low.way_ps, high.way_ps)};
}

Result<Priced> schedule_of(const Script& script, const Costs& costs, const LateReceives& late) {
  Priced made{schedule::Schedule(static_cast<uint32_t>(script.ranks.size())), {}, {}, {}};
  made.bills.resize(script.ranks.size());
  made.receives.resize(script.ranks.size());
  made.waits.resize(script.ranks.size());
  LayoutNumbers layouts(script.layouts, made.schedule);
  for (uint32_t rank = 0; rank < script.ranks.size(); ++rank) {
    const RankScript& one = script.ranks[rank];
    const auto highest = std::ranges::max_element(one.legs, {}, &Leg::tag);
    if (highest != one.legs.end() && highest->tag > tags_most) {
      return fail(Code::overflow, "the program has ", highest->tag, " different tags; at most ", tags_most,
                  " fit into a schedule");
    }
    const std::vector<bool>* const found = late.empty() ? nullptr : &late[rank];
    RankEmitter emitter(one, costs, found, layouts, made.schedule, made.bills[rank], made.receives[rank],
                        made.waits[rank]);
    made.schedule.intern(rank, emitter.emit());
  }
  return made;
}

}  // namespace spinloom::predict
