// The choice of packets that a switch's processors take.
#include "simulated/node/flow_table.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace spinloom::simulated {
namespace {

nic::Packet packet_of(uint32_t source, uint64_t message, uint64_t length, uint64_t offset, uint64_t bytes,
                      uint64_t match_bits) {
  nic::Packet made;
  made.source = nic::Rank{source};
  made.message = message;
  made.message_length = length;
  made.offset = offset;
  made.payload.length = bytes;
  made.fields.match_bits = offset == 0 ? match_bits : 0;  // headers only have the fields of the message
  return made;
}

TEST(FlowTable, TakesNothingWithoutARule) {
  FlowTable table;
  EXPECT_FALSE(table.try_take(packet_of(0, 1, 8, 0, 8, 5)));
}

TEST(FlowTable, MatchesIndexAndBits) {
  FlowTable table;
  table.add({.portal_index = 3, .match_bits = 0x50, .ignore_bits = 0xf});
  nic::Packet header = packet_of(0, 1, 8, 0, 8, 0x57);
  EXPECT_FALSE(table.try_take(header));  // index 0
  header.fields.portal_index = 3;
  EXPECT_TRUE(table.try_take(header));
  header.fields.match_bits = 0x67;
  EXPECT_FALSE(table.try_take(header));
  header.fields.match_bits = 0x50;
  header.operation = nic::Operation::ack;
  EXPECT_FALSE(table.try_take(header));
  EXPECT_EQ(table.open_messages(), 0);
}

TEST(FlowTable, TakesAllPacketsOfAMessageOrNone) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed, "sim.flow_table");
    FlowTable table;
    table.add({.match_bits = 1});
    struct Message {
      std::vector<nic::Packet> rest;  // the packets without the header
      bool taken;
    };
    std::vector<Message> open;
    for (uint64_t id = 0; id < 20 || !open.empty();) {
      if (id < 20 && (open.empty() || random.chance(1, 3))) {
        // Two sources may use one name for their messages.
        const bool matches = random.chance(1, 2);
        const uint64_t packets = 1 + random.below(6);
        const auto source = static_cast<uint32_t>(id % 2);
        Message message{{}, matches};
        for (uint64_t i = 1; i < packets; ++i) message.rest.push_back(packet_of(source, id / 2, packets, i, 1, 0));
        random.shuffle(message.rest);
        ASSERT_EQ(table.try_take(packet_of(source, id / 2, packets, 0, 1, matches ? 1 : 2)), matches)
            << "seed " << seed;
        open.push_back(message);
        ++id;
      }
      const size_t which = random.below(open.size());
      Message& message = open[which];
      if (!message.rest.empty()) {
        ASSERT_EQ(table.try_take(message.rest.back()), message.taken) << "seed " << seed;
        message.rest.pop_back();
      }
      if (message.rest.empty()) open.erase(open.begin() + static_cast<ptrdiff_t>(which));
    }
    EXPECT_EQ(table.open_messages(), 0) << "seed " << seed;
  }
}

}  // namespace
}  // namespace spinloom::simulated
