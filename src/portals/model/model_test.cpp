// The model alone: small programs whose outcomes can be counted by hand, and what its rules take away.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "portals/model/elements.hpp"
#include "portals/model/grammar.hpp"
#include "portals/model/machine.hpp"
#include "portals/model/outcomes.hpp"
#include "portals/model/text.hpp"

namespace spinloom::model {
namespace {

Operation append(List list, bool use_once) {
  Operation operation;
  operation.kind = OperationKind::append;
  operation.list = list;
  operation.entry.memory.length = 8;
  operation.entry.use_once = use_once;
  operation.entry.link_disable = true;
  return operation;
}

Operation put(Ack ack) {
  Operation operation;
  operation.movement.target = 1;
  operation.movement.local.length = 8;
  operation.movement.ack = ack;
  operation.movement.descriptor.send_disable = true;
  return operation;
}

Program two_ranks(std::vector<Operation> initiator, std::vector<Operation> target) {
  return {{*placed({{}, std::move(initiator)}), *placed({{}, std::move(target)})}};
}

std::set<Outcome> all(const Program& program, const Rules& rules = {}) {
  const auto found = outcomes(program, rules);
  EXPECT_TRUE(found.has_value());
  return found.value_or(std::set<Outcome>{});
}

TEST(Model, APutLandsOrIsDropped) {
  const std::set<Outcome> seen = all(two_ranks({put(Ack::full)}, {append(List::priority, true)}));
  ASSERT_EQ(seen.size(), 2u);
  size_t dropped = 0;
  for (const Outcome& outcome : seen) {
    ASSERT_EQ(outcome.ranks[0].departures.size(), 1u);
    const Event& ack = outcome.ranks[0].departures[0];
    EXPECT_EQ(ack.fail == Fail::dropped, outcome.ranks[1].dropped == 1);
    EXPECT_EQ(ack.moved, ack.fail == Fail::ok ? 8 : 0);
    EXPECT_EQ(outcome.ranks[1].arrivals.size(), ack.fail == Fail::ok ? 2u : 0u);
    dropped += outcome.ranks[1].dropped;
  }
  EXPECT_EQ(dropped, 1u);
}

TEST(Model, AnUnexpectedMessageIsFoundOnce) {
  const Program program = two_ranks(
      {put(Ack::none)}, {append(List::overflow, false), append(List::priority, true), append(List::priority, true)});
  for (const Outcome& outcome : all(program)) {
    size_t taken = 0;
    for (const Event& event : outcome.ranks[1].arrivals) {
      taken += event.kind == EventKind::put_overflow || (event.kind == EventKind::put && event.list == List::priority);
    }
    EXPECT_EQ(taken, 1u - outcome.ranks[1].dropped) << text_of(program, outcome);
  }
}

TEST(Model, MessagesOfAPairMatchInOrder) {
  const Program program =
      two_ranks({put(Ack::none), put(Ack::none)}, {append(List::priority, true), append(List::priority, true)});
  for (const Outcome& outcome : all(program)) {
    for (const Event& event : outcome.ranks[1].arrivals) {
      if (event.kind != EventKind::put || outcome.ranks[1].dropped > 0) continue;
      EXPECT_EQ(event.user_ptr - name_of(1, 0), event.hdr_data - name_of(0, 0)) << text_of(program, outcome);
    }
  }
}

TEST(Model, WhoHasSeenTheEventMayUnlink) {
  Operation wait;
  wait.kind = OperationKind::eq_wait;
  Operation unlink;
  unlink.kind = OperationKind::unlink;
  const Program program = two_ranks({put(Ack::none)}, {append(List::priority, false), wait, unlink});
  for (const Outcome& outcome : all(program)) {
    if (outcome.ranks[1].returned.size() < 3) continue;  // the put was too early
    EXPECT_EQ(outcome.ranks[1].returned[2].code, Code::ok);
  }
}

TEST(Model, UnexpectedHeadersTakeRoomOfAnEntryThatCountsThem) {
  Operation block = append(List::priority, false);
  block.entry.memory.length = 16;
  block.entry.manage_local = true;
  block.entry.count_unexpected = true;
  block.entry.min_free = 4;
  const Program program = two_ranks({put(Ack::none), put(Ack::none)}, {append(List::overflow, false), block});
  size_t used_up = 0;
  for (const Outcome& outcome : all(program)) {
    if (outcome.ranks[1].dropped > 0) continue;
    int found = 0;
    bool has_left = false;
    for (const Event& event : outcome.ranks[1].arrivals) {
      if (event.kind == EventKind::put_overflow) ++found;
      if (event.kind == EventKind::auto_unlink) has_left = true;
      if (event.kind != EventKind::put || event.list == List::overflow) continue;
      const int place = event.hdr_data - name_of(0, 0);
      EXPECT_EQ(event.start, program.ranks[1].operations[1].entry.memory.offset + 8 * place)
          << text_of(program, outcome);
      ++found;
    }
    EXPECT_EQ(has_left, found == 2) << text_of(program, outcome);
    if (found == 2) ++used_up;
  }
  EXPECT_GT(used_up, 0u);
}

TEST(Model, AnAppendThatWaitsIsPerformedWhenItsCounterSaysSo) {
  Operation counting = append(List::priority, true);
  counting.entry.counter = 0;
  counting.entry.ct_comm = true;
  Operation later = append(List::priority, true);
  later.trigger = Trigger{0, 1};
  Operation unlink;
  unlink.kind = OperationKind::unlink;
  unlink.number = 1;
  Program program = two_ranks({put(Ack::none), put(Ack::none)}, {counting, later, unlink});
  program.ranks[1].setup.counters = 1;
  std::set<uint16_t> taken_by;
  std::set<Code> unlinked;
  for (const Outcome& outcome : all(program)) {
    unlinked.insert(outcome.ranks[1].returned[2].code);
    const bool has_fired = outcome.ranks[1].counters[0].success > 0;
    for (const Event& event : outcome.ranks[1].arrivals) {
      if (event.kind != EventKind::put) continue;
      taken_by.insert(event.user_ptr);
      EXPECT_TRUE(has_fired) << text_of(program, outcome);
    }
  }
  EXPECT_EQ(taken_by, (std::set<uint16_t>{name_of(1, 0), name_of(1, 1)}));
  EXPECT_TRUE(unlinked.contains(Code::ok));
  EXPECT_TRUE(unlinked.contains(Code::invalid));
}

TEST(Model, WithoutMatchingTheFirstEntryTakesAll) {
  Operation other = put(Ack::none);
  other.movement.match_bits = 1;
  Program program = two_ranks({put(Ack::none), other}, {append(List::priority, true), append(List::priority, true)});
  program.ranks[1].setup.matching = false;
  size_t both_taken = 0;
  for (const Outcome& outcome : all(program)) {
    uint16_t taken = 0;
    for (const Event& event : outcome.ranks[1].arrivals) {
      if (event.kind == EventKind::put) ++taken;
      EXPECT_EQ(event.match_bits, 0);
    }
    EXPECT_EQ(taken + outcome.ranks[1].dropped, 2);
    if (taken == 2) ++both_taken;
  }
  EXPECT_GT(both_taken, 0u);
}

TEST(Model, AScatterListIsItsPiecesInOrder) {
  Operation scattered = put(Ack::full);
  scattered.movement.pieces = {{8, 1}, {0, 9}};  // 8 is in both: a source may be
  scattered.movement.skip = 1;
  Operation listed = append(List::priority, true);
  listed.entry.pieces = {{12, 2}, {3, 6}};
  const Program program = two_ranks({scattered}, {listed});
  const std::vector<uint8_t> sent{first_byte(0, 0), 0, 0, 0, 0, 0, 0, 0};
  for (const Outcome& outcome : all(program)) {
    if (outcome.ranks[1].dropped > 0) continue;
    const std::vector<uint8_t>& memory = outcome.ranks[1].memory;
    std::vector<uint8_t> landed(memory.begin() + 12, memory.begin() + 14);
    landed.insert(landed.end(), memory.begin() + 3, memory.begin() + 9);
    EXPECT_EQ(landed, sent) << text_of(program, outcome);
    EXPECT_EQ(outcome.ranks[1].arrivals.at(0).start, 12);
  }
}

TEST(Model, ABundleMayKeepOperationsBackUntilItsEnd) {
  const auto call = [](OperationKind kind) {
    Operation operation;
    operation.kind = kind;
    return operation;
  };
  Operation later = put(Ack::full);
  later.trigger = Trigger{0, 1};
  Operation count = call(OperationKind::ct_inc);
  count.success = 1;
  Program program = two_ranks({call(OperationKind::bundle_end), call(OperationKind::bundle_begin), later, later, count,
                               call(OperationKind::bundle_end)},
                              {});
  program.ranks[0].setup.counters = 1;
  program.ranks[0].setup.triggered_max = 1;
  std::set<std::vector<Code>> ends;
  for (const Outcome& outcome : all(program)) {
    const auto& returned = outcome.ranks[0].returned;
    ASSERT_EQ(returned.size(), 6u) << text_of(program, outcome);
    EXPECT_EQ(returned[0].code, Code::invalid);
    const auto refused = static_cast<size_t>(std::count_if(
        returned.begin() + 2, returned.end(), [](const Returned& one) { return one.code == Code::no_space; }));
    EXPECT_EQ(outcome.ranks[0].departures.size(), 2 - refused) << text_of(program, outcome);
    ends.insert({returned[3].code, returned[5].code});
  }
  EXPECT_EQ(ends, (std::set<std::vector<Code>>{
                      {Code::ok, Code::ok}, {Code::ok, Code::no_space}, {Code::no_space, Code::ok}}));
}

TEST(Model, FlowControlKeepsEventsInAFullQueue) {
  Operation entry = append(List::priority, false);
  Operation get;
  get.kind = OperationKind::eq_get;
  Program program = two_ranks({put(Ack::full), put(Ack::full)}, {entry, get});
  program.ranks[1].setup.flow_control = true;
  program.ranks[1].setup.arrivals_max = 1;
  size_t landed_twice = 0;
  for (const Outcome& outcome : all(program)) {
    const RankOutcome& target = outcome.ranks[1];
    const auto left = std::count_if(target.arrivals.begin(), target.arrivals.end(),
                                    [](const Event& event) { return event.kind == EventKind::put; });
    EXPECT_LE(left, 1) << text_of(program, outcome);
    const bool has_taken = target.returned[1].event && target.returned[1].event->kind == EventKind::put;
    landed_twice += left + (has_taken ? 1 : 0) == 2 ? 1 : 0;
    const auto is_refused = [](const Event& event) { return event.fail == Fail::pt_disabled; };
    const auto refused =
        std::count_if(outcome.ranks[0].departures.begin(), outcome.ranks[0].departures.end(), is_refused);
    EXPECT_EQ(refused, target.dropped) << text_of(program, outcome);
  }
  EXPECT_GT(landed_twice, 0u);
}

TEST(Model, ARankMayDieAfterASettle) {
  Operation settle;
  settle.kind = OperationKind::settle;
  Program program = two_ranks({settle, put(Ack::full)}, {append(List::priority, true), settle});
  program.killed = 1;
  std::set<Fail> seen;
  for (const Outcome& outcome : all(program)) {
    ASSERT_EQ(outcome.ranks[0].departures.size(), 1u) << text_of(program, outcome);
    seen.insert(outcome.ranks[0].departures[0].fail);
    EXPECT_EQ(is_allowed(program, outcome), true);
  }
  EXPECT_EQ(seen, (std::set<Fail>{Fail::ok, Fail::undeliverable}));
}

// The last bytes of a source may be read when its first ones have landed.
TEST(Model, AMessageOverItsOwnSourceMovesElementByElement) {
  Operation sum = put(Ack::full);
  sum.kind = OperationKind::atomic;
  sum.movement.target = 0;
  sum.movement.local.length = 16;
  sum.movement.remote_offset = 8;
  Operation entry = append(List::priority, false);
  entry.entry.memory.length = 24;
  Program program{{*placed({{}, {entry, sum}})}};
  program.ranks[0].operations[1].movement.local.offset = 0;
  std::set<std::vector<uint8_t>> seen;
  for (const Outcome& outcome : all(program)) {
    const std::vector<uint8_t>& memory = outcome.ranks[0].memory;
    seen.insert({memory[0], memory[8], memory[16]});
  }
  EXPECT_EQ(seen, (std::set<std::vector<uint8_t>>{{1, 1 + 2, 2 + 3}, {1, 1 + 2, 1 + 2 + 3}}));
}

// Bytes of two initiators mix by elements; those of one keep their order.
TEST(Model, WritesToOnePlaceMixOnlyAmongInitiators) {
  const auto landed = [](bool from_one) {
    Operation wide = put(Ack::full);
    wide.movement.local.length = 16;
    Operation entry = append(List::priority, false);
    entry.entry.memory.length = 16;
    Program program = from_one ? two_ranks({wide, wide}, {entry}) : two_ranks({wide}, {entry, wide});
    if (!from_one) program.ranks[1].operations[1].movement.target = 1;
    std::set<std::vector<uint8_t>> seen;
    for (const Outcome& outcome : all(program)) {
      if (outcome.ranks[1].dropped == 0) seen.insert({outcome.ranks[1].memory[0], outcome.ranks[1].memory[8]});
    }
    return seen;
  };
  const uint8_t second = first_byte(0, 32);
  EXPECT_EQ(landed(true), (std::set<std::vector<uint8_t>>{{second, static_cast<uint8_t>(second + 1)}}));
  EXPECT_EQ(landed(false).size(), 4u);
}

TEST(Model, WhoWaitsForAcknowledgementsHearsOfADeath) {
  Operation counting = put(Ack::counted);
  counting.movement.descriptor.counter = 0;
  counting.movement.descriptor.ct_ack = true;
  counting.movement.descriptor.send_disable = false;
  Program program = two_ranks({counting}, {});
  program.ranks[0].setup.counters = 1;
  program.killed = 1;
  size_t told_by_send = 0;
  for (const Outcome& outcome : all(program)) {
    EXPECT_EQ(outcome.ranks[0].counters[0], (Count{0, 1})) << text_of(program, outcome);
    told_by_send += outcome.ranks[0].departures.size();
  }
  EXPECT_GT(told_by_send, 0u);
}

TEST(Model, AnEntryWhoseQueueIsFullNeedNotBeDisabled) {
  Program program = two_ranks({}, {append(List::priority, false)});
  program.ranks[1].operations[0].entry.link_disable = false;
  program.ranks[1].setup.flow_control = true;
  program.ranks[1].setup.arrivals_max = 1;
  std::set<size_t> events;
  for (const Outcome& outcome : all(program)) events.insert(outcome.ranks[1].arrivals.size());
  EXPECT_EQ(events, (std::set<size_t>{1, 2}));
}

TEST(Model, EachChoiceOnlyTakesOutcomesAway) {
  std::array<size_t, 8> taken{};
  for (const Grammar& grammar : grammars()) {
    for (uint64_t number = 0; number < programs_of(grammar); number += 211) {
      const auto program = program_at(grammar, number);
      if (!program) continue;
      const std::set<Outcome> allowed = all(*program);
      std::array<Rules, 8> choices;
      choices[0].owes_nothing = true;
      choices[1].reports_nothing_at_once = true;
      choices[2].counts_with_event = true;
      choices[3].claims_hold_places = true;
      choices[4].search_needs_no_entry = true;
      choices[5].unlink_tells_of_messages = true;
      choices[6].counts_wait_freely = true;
      choices[7].unlinks_always_wait = true;
      for (size_t i = 0; i < choices.size(); ++i) {
        const std::set<Outcome> fewer = all(*program, choices[i]);
        ASSERT_TRUE(std::includes(allowed.begin(), allowed.end(), fewer.begin(), fewer.end()))
            << grammar.name << ':' << number << ", choice " << i << '\n'
            << text_of(*program);
        taken[i] += allowed.size() - fewer.size();
      }
    }
  }
  EXPECT_GT(taken[0], 0u);
  EXPECT_GT(taken[2], 0u);
  EXPECT_GT(taken[5], 0u);
}

TEST(Model, FollowsItsOwnOutcomesAndNoOthers) {
  const Program program =
      two_ranks({put(Ack::full), put(Ack::none)}, {append(List::overflow, true), append(List::priority, true)});
  for (const Outcome& outcome : all(program)) {
    EXPECT_EQ(is_allowed(program, outcome), true) << text_of(program, outcome);
    Outcome spoiled = outcome;
    ++spoiled.ranks[0].departures.at(0).moved;
    EXPECT_EQ(is_allowed(program, spoiled), false);
    spoiled = outcome;
    spoiled.ranks[1].memory[0] ^= 0x80;
    EXPECT_EQ(is_allowed(program, spoiled), false);
  }
}

TEST(Elements, TheOperandStandsOnTheLeft) {
  const auto swapped = [](AtomicKind kind, int64_t operand, int64_t target, bool is_signed = true) {
    Movement movement;
    movement.atomic = kind;
    movement.operand = operand;
    movement.is_signed = is_signed;
    const int64_t source = 0x55;
    std::array<uint8_t, 8> from{};
    std::array<uint8_t, 8> to{};
    std::memcpy(from.data(), &source, 8);
    std::memcpy(to.data(), &target, 8);
    apply(movement, from, to);
    std::memcpy(&target, to.data(), 8);
    return target;
  };
  EXPECT_EQ(swapped(AtomicKind::compare_swap_less, 1, 2), 0x55);
  EXPECT_EQ(swapped(AtomicKind::compare_swap_less, 2, 1), 1);
  EXPECT_EQ(swapped(AtomicKind::compare_swap_less, -1, 1), 0x55);
  EXPECT_EQ(swapped(AtomicKind::compare_swap_less, -1, 1, false), 1);
  EXPECT_EQ(swapped(AtomicKind::compare_swap, 7, 7), 0x55);
  EXPECT_EQ(swapped(AtomicKind::masked_swap, 0xf0, 0x0f), 0x5f);
  EXPECT_EQ(swapped(AtomicKind::logical_xor, 0, 3), 0);
  EXPECT_EQ(swapped(AtomicKind::max, 0, -3), 0x55);
  EXPECT_EQ(swapped(AtomicKind::max, 0, -3, false), -3);
}

}  // namespace
}  // namespace spinloom::model
