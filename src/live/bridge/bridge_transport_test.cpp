// Bridges in steps that a seed chooses: bytes and order under cyclic load, credit, memory of gateways, deaths,
// farewells, and neighbours that send arbitrary frames.
#include "live/bridge/bridge_transport.hpp"

#include <gtest/gtest.h>

#include "live/bridge/testing/bridge_rig.hpp"
#include "nic/wire/packet_format.hpp"

namespace spinloom::live {
namespace {

using test::BridgeRig;

BridgeOptions small_windows(bool stores) {
  BridgeOptions options;
  options.piece_bytes = 100;
  options.window_frames = 6;
  options.window_bytes = 450;
  options.stores = stores;
  // 50 us are less than by default, because the rig takes its steps faster than links do.
  options.hold_max = options.credit_after = Time{50'000'000};
  return options;
}

// Returns the most bytes of one flow that a gateway may hold: a window, the piece that exceeds it, and headers.
uint64_t flow_bytes_max(const BridgeOptions& options) {
  const uint64_t headers = wire::bridge_header_bytes + wire::packet_header_bytes_max();
  return options.window_bytes + options.piece_bytes + options.window_frames * headers;
}

// The networks of each rank, a letter each (BridgeRig). Ranks 0 to 3, or 0 to 5, have programs; gateways come last.
const std::vector<std::string> one_gateway{"x", "y", "x", "y", "xy"};
const std::vector<std::string> chain_of_three{"a", "d", "b", "c", "a", "d", "ab", "bc", "cd"};
const std::vector<std::string> two_gateways{"x", "y", "x", "y", "x", "y", "xy", "xy"};

struct Shape {
  const char* name;
  const std::vector<std::string>& networks;
  uint32_t gateways;
};
constexpr Shape shapes[] = {{"Bridge", one_gateway, 1}, {"Chain", chain_of_three, 3}, {"TwoGateways", two_gateways, 2}};

class Bridges : public testing::TestWithParam<std::tuple<Shape, bool, bool>> {};

// All ranks send to all far ranks at once, far more than the windows hold, and stop each other again and again.
TEST_P(Bridges, BringAllUnderCyclicLoadInBoundedMemory) {
  const auto& [shape, stores, overtaking] = GetParam();
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const BridgeOptions options = small_windows(stores);
    BridgeRig rig(shape.networks, shape.gateways, options, seed);
    Random random(seed, "load");
    const BridgeRoutes& routes = rig.bridge(0).routes();
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    for (uint32_t a = 0; a < rig.programs(); ++a) {
      for (uint32_t b = 0; b < rig.programs(); ++b) {
        if (a != b && !routes.direct(a, b)) pairs.emplace_back(a, b);
      }
    }
    for (int round = 0; round < 20; ++round) {
      for (const auto& [from, to] : pairs) {
        rig.send(from, to, random.chance(1, 3), random.chance(1, 4) ? 0 : random.below(3000));
        if (random.chance(1, 10)) rig.stop(to, from, random.chance(1, 2));
        for (uint64_t steps = random.below(30); steps > 0; --steps) rig.step(overtaking);
      }
    }
    for (const auto& [from, to] : pairs) rig.stop(to, from, false);
    ASSERT_TRUE(rig.run(overtaking, [&] { return rig.undelivered() == 0 && rig.drained(); }))
        << rig.undelivered() << " undelivered";
    EXPECT_EQ(rig.wrong(), 0u);
    EXPECT_EQ(rig.unreturned(), 0u);
    EXPECT_LE(rig.after_stop_peak(), options.window_frames);
    for (uint32_t gateway = rig.programs(); gateway < shape.networks.size(); ++gateway) {
      const ForwardCounts& counts = rig.bridge(gateway).forwarder()->counts();
      EXPECT_GT(counts.frames, 0u);
      EXPECT_EQ(counts.refused, 0u);
      EXPECT_LE(counts.in_flight_bytes_peak, pairs.size() * 2 * flow_bytes_max(options));
      EXPECT_EQ(stores, counts.held > 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Bridges, testing::Combine(testing::ValuesIn(shapes), testing::Bool(), testing::Bool()),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) +
                                  (std::get<1>(instance.param) ? "Stores" : "") +
                                  (std::get<2>(instance.param) ? "Overtaking" : "");
                         });

// However much is sent, a gateway never holds more than a window of one flow.
TEST(Bridge, OneFlowHasAWindowInTheGateway) {
  for (const bool by_bytes : {false, true}) {
    BridgeOptions options = small_windows(false);
    if (by_bytes) options.window_frames *= 10;
    if (!by_bytes) options.window_bytes *= 10;
    // The number of full pieces that fill the narrower window.
    const uint64_t frames = by_bytes ? options.window_bytes / options.piece_bytes + 1 : options.window_frames;
    const uint64_t headers = wire::bridge_header_bytes + wire::packet_header_bytes_max();
    BridgeRig rig(one_gateway, 1, options, 1);
    rig.stop(1, 0, true);
    for (int i = 0; i < 50; ++i) rig.send(0, 1, false, 1000);
    for (int i = 0; i < 3000; ++i) rig.step(false);
    EXPECT_LE(rig.bridge(4).forwarder()->counts().in_flight_bytes_peak, frames * (options.piece_bytes + headers));
    EXPECT_GT(rig.undelivered(), 40u);
    EXPECT_EQ(rig.bridge(0).outstanding(nic::Rank{1}).is_lost, false);
    EXPECT_GT(rig.bridge(0).outstanding(nic::Rank{1}).bytes, 40'000u);
    rig.stop(1, 0, false);
    ASSERT_TRUE(rig.run(false, [&] { return rig.drained(); }));
    EXPECT_EQ(rig.undelivered(), 0u);
    EXPECT_EQ(rig.bridge(0).outstanding(nic::Rank{1}).packets, 0u);
  }
}

// Ranks 0 and 1 have used up their credit for requests to each other, and take none: answers still pass both ways.
TEST(Bridge, AnswersPassWhereRequestsAreStopped) {
  for (const bool stores : {false, true}) {
    BridgeRig rig(chain_of_three, 3, small_windows(stores), 3);
    for (uint32_t a = 0; a < 2; ++a) {
      rig.stop(a, 1 - a, true);
      for (int i = 0; i < 30; ++i) rig.send(a, 1 - a, false, 500);
    }
    for (int i = 0; i < 5000; ++i) rig.step(true);
    for (uint32_t a = 0; a < 2; ++a) {
      for (int i = 0; i < 30; ++i) rig.send(a, 1 - a, true, 500);
    }
    // 60 answers of 500 B come in pieces of 100 B.
    EXPECT_TRUE(rig.run(true, [&] { return rig.answer_pieces() == 60 * 5; })) << rig.answer_pieces();
    EXPECT_GT(rig.undelivered(), 40u);  // requests have not arrived
    EXPECT_EQ(rig.wrong(), 0u);
  }
}

// A receiver that takes nothing delays no other receiver behind the same gateway.
TEST(Bridge, AStoppedReceiverHoldsUpNobodyElse) {
  BridgeRig rig(one_gateway, 1, small_windows(false), 4);
  rig.stop(1, 0, true);
  for (int i = 0; i < 40; ++i) rig.send(0, 1, false, 1000);
  for (int i = 0; i < 40; ++i) rig.send(0, 3, false, 1000);
  EXPECT_TRUE(rig.run(false, [&] { return rig.bridge(0).outstanding(nic::Rank{3}).packets == 0; }));
  EXPECT_GT(rig.undelivered(), 0u);
  EXPECT_LE(rig.undelivered(), 40u);
}

TEST(Bridge, ADeadGatewayLosesWhoIsBehindIt) {
  BridgeRig rig(one_gateway, 1, small_windows(false), 5);
  for (int i = 0; i < 30; ++i) {
    for (const auto& [from, to] : {std::pair{0u, 1u}, {1u, 0u}, {2u, 3u}, {3u, 2u}})
      rig.send(from, to, i % 3 == 0, 900);
  }
  for (int i = 0; i < 300; ++i) rig.step(false);
  rig.kill(4);
  ASSERT_TRUE(rig.run(
      false, [&] { return rig.lost(0).size() + rig.lost(1).size() + rig.lost(2).size() + rig.lost(3).size() >= 12; }));
  for (int i = 0; i < 1000; ++i) rig.step(false);
  for (const uint32_t rank : {0u, 1u, 2u, 3u}) {
    const std::vector<uint32_t> far = rank % 2 == 0 ? std::vector<uint32_t>{1, 3} : std::vector<uint32_t>{0, 2};
    std::vector<uint32_t> lost = rig.lost(rank);
    std::sort(lost.begin(), lost.end());
    EXPECT_EQ(lost, (std::vector<uint32_t>{far[0], far[1], 4}));  // each once
    EXPECT_TRUE(rig.bridge(rank).outstanding(nic::Rank{far[0]}).is_lost);
  }
  EXPECT_EQ(rig.wrong(), 0u);  // no byte differs, and nothing came from a rank after its loss
  EXPECT_EQ(rig.unreturned(), 0u);  // senders have got the memory of all messages back
  rig.send(0, 1, false, 10);  // goes nowhere, and its memory is free at once
  EXPECT_EQ(rig.unreturned(), 0u);
}

// Packets that a dead rank had sent as far as the gateway still arrive, before their target hears of its death.
TEST(Bridge, ADeadRankIsLostBehindItsPackets) {
  for (const bool overtaking : {false, true}) {
    BridgeOptions options = small_windows(false);
    options.window_frames = 64;
    options.window_bytes = 64 << 10;
    BridgeRig rig(chain_of_three, 3, options, 6);
    for (int i = 0; i < 30; ++i) rig.send(0, 1, false, 100);
    while (rig.bridge(6).forwarder()->counts().frames < 30) rig.poll(6, false);
    rig.kill(0);
    ASSERT_TRUE(rig.run(overtaking, [&] { return !rig.lost(1).empty(); }));
    EXPECT_EQ(rig.lost(1), (std::vector<uint32_t>{0}));
    EXPECT_EQ(rig.undelivered(), 0u);
    EXPECT_EQ(rig.wrong(), 0u);
    ASSERT_TRUE(rig.run(overtaking, [&] { return rig.lost(2).size() + rig.lost(3).size() + rig.lost(5).size() == 3; }));
    EXPECT_EQ(rig.lost(8), (std::vector<uint32_t>{0}));  // the gateway has lost it, too
  }
}

TEST(Bridge, AGatewayIsNeededUntilAllHaveLeft) {
  BridgeRig rig(chain_of_three, 3, small_windows(true), 7);
  for (uint32_t a = 0; a < rig.programs(); ++a) {
    for (uint32_t b = 0; b < rig.programs(); ++b) {
      if (a != b && !rig.bridge(a).routes().direct(a, b)) rig.send(a, b, false, 2000);
    }
  }
  ASSERT_TRUE(rig.run(true, [&] { return rig.undelivered() == 0 && rig.drained(); }));
  for (uint32_t rank = 0; rank < rig.programs(); ++rank) {
    EXPECT_TRUE(rig.bridge(7).is_needed()) << rank;
    EXPECT_FALSE(rig.bridge(rank).is_needed());
    rig.bridge(rank).say_goodbye();
    EXPECT_FALSE(rig.bridge(rank).has_left());
    ASSERT_TRUE(rig.run(true, [&] { return rig.bridge(rank).has_left(); })) << rank;
  }
  for (uint32_t gateway = 6; gateway < 9; ++gateway) EXPECT_FALSE(rig.bridge(gateway).is_needed()) << gateway;
  for (uint32_t rank = 1; rank < rig.programs(); ++rank) {
    ASSERT_TRUE(rig.run(true, [&] { return !rig.lost(rank).empty(); })) << rank;  // a rank that has left counts as lost
  }
  EXPECT_EQ(rig.wrong(), 0u);
}

// Gateways without a program say goodbye as soon as they have joined, and stay; the programs leave all at once.
TEST(Bridge, GatewaysThatHaveSaidGoodbyeAreToldByAllWhoLeave) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    BridgeRig rig(chain_of_three, 3, small_windows(false), seed);
    for (uint32_t gateway = 6; gateway < 9; ++gateway) {
      rig.bridge(gateway).say_goodbye();
      EXPECT_TRUE(rig.bridge(gateway).has_left());
    }
    for (uint32_t a = 0; a < rig.programs(); ++a) {
      const uint32_t b = (a + 1) % rig.programs();
      if (!rig.bridge(a).routes().direct(a, b)) rig.send(a, b, false, 500);
    }
    ASSERT_TRUE(rig.run(true, [&] { return rig.undelivered() == 0 && rig.drained(); }));
    for (uint32_t rank = 0; rank < rig.programs(); ++rank) rig.bridge(rank).say_goodbye();
    for (uint32_t rank = 0; rank < rig.programs(); ++rank) {
      ASSERT_TRUE(rig.run(true, [&] { return rig.bridge(rank).has_left(); })) << rank;
    }
    for (uint32_t gateway = 6; gateway < 9; ++gateway) EXPECT_FALSE(rig.bridge(gateway).is_needed()) << gateway;
  }
}

TEST(Bridge, SaysHowAPeerIsReached) {
  BridgeRig rig(chain_of_three, 3, small_windows(false), 8);
  EXPECT_EQ(rig.bridge(0).describe(nic::Rank{1}),
            "a bridge through gateway 0, then gateway 1, then gateway 2, a link in memory");
}

// A neighbour sends bytes that are no frames, frames that are not on its path, and frames beyond any window. Other
// ranks' traffic is unaffected.
TEST(Bridge, ForgedFramesAreRefused) {
  BridgeRig rig(chain_of_three, 3, small_windows(false), 9);
  Random random(9, "forger");
  uint64_t forged = 0;
  for (int round = 0; round < 3000; ++round) {
    wire::BridgeHeader header;
    header.kind = static_cast<wire::BridgeKind>(random.below(4));
    header.traffic_class = static_cast<wire::BridgeClass>(random.below(2));
    header.source.value = static_cast<uint32_t>(random.chance(1, 20) ? random.next() : random.below(9));
    header.target.value = static_cast<uint32_t>(random.chance(1, 20) ? random.next() : random.below(9));
    header.sequence = random.chance(1, 2) ? random.below(20) : random.next();
    header.received = {random.next(), random.next()};
    if (header.source.value == 4) continue;  // frames of the forger itself may harm its own flows
    std::vector<uint8_t> bytes;
    wire::append_frame(header, bytes);
    bytes.resize(bytes.size() + random.below(300), 7);
    if (random.chance(1, 4)) bytes.resize(random.below(bytes.size()));
    rig.forge(4, 6, bytes);
    ++forged;
  }
  for (int i = 0; i < 20; ++i) rig.send(0, 1, i % 2 == 0, 700);
  ASSERT_TRUE(rig.run(false, [&] { return rig.undelivered() == 0 && rig.drained(); }));
  EXPECT_EQ(rig.wrong(), 0u);
  EXPECT_EQ(rig.bridge(6).forwarder()->counts().refused + rig.bridge(6).counts().malformed, forged);
  for (uint32_t rank = 0; rank < 9; ++rank) EXPECT_TRUE(rig.lost(rank).empty()) << rank;
}

}  // namespace
}  // namespace spinloom::live
