// Admission: which packets may pass others that wait for room.
#include "portals/interface/admission.hpp"

#include <gtest/gtest.h>

#include <set>

namespace spinloom::portals {
namespace {

// An engine with room for the messages that it is told of, and for answers.
struct Engine {
  struct State {
    uint32_t early_packets = 0;
  };
  std::set<uint64_t> room;
  State now;

  [[nodiscard]] bool can_accept(const nic::Packet& packet) const {
    return packet.is_answer() || room.contains(packet.message);
  }
  [[nodiscard]] State state() const { return now; }
};

nic::Packet packet_of(uint32_t source, uint64_t message, uint64_t offset, nic::Operation operation) {
  nic::Packet packet;
  packet.operation = operation;
  packet.source = nic::Rank{source};
  packet.message = message;
  packet.message_length = 4096;
  packet.offset = offset;
  return packet;
}
nic::Packet header(uint32_t source, uint64_t message) { return packet_of(source, message, 0, nic::Operation::put); }
nic::Packet rest(uint32_t source, uint64_t message) { return packet_of(source, message, 2048, nic::Operation::put); }
nic::Packet answer(uint32_t source) { return packet_of(source, 99, 0, nic::Operation::reply); }

std::optional<size_t> next_of(Order order, const Engine& engine, const std::vector<nic::Packet>& waiting) {
  return next(order, engine, waiting, [](const nic::Packet& packet) -> const nic::Packet& { return packet; });
}

constexpr Order all_orders[] = {Order::arrival, Order::headers_pass, Order::header_order, Order::any};

TEST(Admission, WhatComesPassesNobodyButAsAnAnswer) {
  for (const Order order : all_orders) {
    EXPECT_TRUE(passes(order, header(0, 1), false));
    EXPECT_TRUE(passes(order, answer(0), true));
    EXPECT_EQ(passes(order, header(0, 1), true), order == Order::any);
    EXPECT_EQ(passes(order, rest(0, 1), true), order == Order::any);
  }
}

TEST(Admission, TheOldestGoesFirstWhereItHasRoom) {
  const Engine engine{{1, 2}, {}};
  for (const Order order : all_orders) {
    EXPECT_EQ(next_of(order, engine, {header(0, 1), header(1, 2)}), 0u);
    EXPECT_EQ(next_of(order, engine, {}), std::nullopt);
  }
}

TEST(Admission, InTheOrderOfArrivalNothingPassesTheOldest) {
  const Engine engine{{2}, {8}};
  EXPECT_EQ(next_of(Order::arrival, engine, {header(0, 1), header(1, 2), rest(1, 2)}), std::nullopt);
}

TEST(Admission, HeadersPassOnlyWhilePacketsAheadOfTheirsAreKept) {
  Engine engine{{2}, {}};
  const std::vector<nic::Packet> waiting{rest(0, 1), rest(1, 2), header(1, 2)};
  EXPECT_EQ(next_of(Order::headers_pass, engine, waiting), std::nullopt);
  engine.now.early_packets = 1;
  EXPECT_EQ(next_of(Order::headers_pass, engine, waiting), 2u);
  EXPECT_EQ(next_of(Order::headers_pass, engine, {header(0, 1), header(0, 2)}), 1u);
  engine.room.clear();
  EXPECT_EQ(next_of(Order::headers_pass, engine, waiting), std::nullopt);
}

TEST(Admission, WhereNothingMayPassOnlyTheOldestIsLookedAt) {
  Engine engine{{2}, {}};
  const std::vector<nic::Packet> waiting{rest(0, 1), rest(1, 2), header(1, 2)};
  size_t looks = 0;
  const auto counted = [&looks](const nic::Packet& packet) -> const nic::Packet& { return ++looks, packet; };
  EXPECT_EQ(next(Order::headers_pass, engine, waiting, counted, false), std::nullopt);
  EXPECT_EQ(looks, 1u);
  engine.now.early_packets = 1;  // headers may pass now, whether answers wait or not
  EXPECT_EQ(next(Order::headers_pass, engine, waiting, counted, false), 2u);
}

TEST(Admission, AnswersThatWaitPass) {
  const Engine engine{};
  const std::vector<nic::Packet> waiting{header(0, 1), rest(0, 1), answer(1), answer(0)};
  EXPECT_EQ(next_of(Order::headers_pass, engine, waiting), 2u);
  EXPECT_EQ(next_of(Order::header_order, engine, waiting), 2u);
  EXPECT_EQ(next_of(Order::any, engine, waiting), 2u);
}

TEST(Admission, WhatIsNoHeaderPassesAndAHeaderPassesOtherSourcesOnly) {
  const Engine engine{{2, 3}, {}};
  EXPECT_EQ(next_of(Order::header_order, engine, {header(0, 1), rest(0, 2)}), 1u);
  EXPECT_EQ(next_of(Order::header_order, engine, {header(0, 1), header(0, 2)}), std::nullopt);
  EXPECT_EQ(next_of(Order::header_order, engine, {header(0, 1), header(0, 2), header(1, 3)}), 2u);
  EXPECT_EQ(next_of(Order::header_order, engine, {rest(0, 1), header(0, 2)}), 1u);
  EXPECT_EQ(next_of(Order::any, engine, {header(0, 1), header(0, 2)}), 1u);
}

}  // namespace
}  // namespace spinloom::portals
