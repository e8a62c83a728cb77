// Ranks die during a broadcast, and all others get its data.
#include "portals/collective/fault_tolerant.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "portals/collective/call.hpp"
#include "portals/collective/offloaded.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

TEST(FaultTolerant, NeighboursAreMutual) {
  for (uint32_t size = 1; size < 40; ++size) {
    for (uint32_t rank = 0; rank < size; ++rank) {
      for (const uint32_t peer : binomial_graph_neighbors({rank, size, 0})) {
        const auto back = binomial_graph_neighbors({peer, size, 0});
        EXPECT_NE(std::find(back.begin(), back.end(), rank), back.end()) << rank << " of " << size;
        EXPECT_NE(peer, rank);
      }
    }
  }
}

struct Survivor {
  std::unique_ptr<portals::Interface> interface;
  std::unique_ptr<Endpoint> endpoint;
  Endpoint::Team team;
  std::vector<uint8_t> data;
  std::unique_ptr<Offloaded> offloaded;
  bool is_dead = false;
};

TEST(FaultTolerant, WhoLivesGetsTheData) {
  for_seeds(300, [](Random& random) {
    const auto size = static_cast<uint32_t>(2 + random.below(14));
    const auto root = static_cast<uint32_t>(random.below(size));
    testbed::LoopbackOptions driver;
    driver.ranks = size;
    driver.racy_seed = random.below(UINT64_MAX);
    auto loopback = testbed::Loopback::create(driver);
    ASSERT_TRUE(loopback.ok());
    std::vector<uint8_t> wanted(1 + random.below(6000));
    for (uint8_t& byte : wanted) byte = static_cast<uint8_t>(1 + random.below(255));
    std::vector<Survivor> ranks(size);
    for (uint32_t rank = 0; rank < size; ++rank) {
      Survivor& one = ranks[rank];
      one.interface = std::make_unique<portals::Interface>((*loopback)->port(rank));
      EndpointOptions options;
      options.ranks = size;
      auto endpoint = Endpoint::open(*one.interface, options);
      ASSERT_TRUE(endpoint.ok()) << endpoint.error().message;
      one.endpoint = std::move(*endpoint);
      one.team.ranks.resize(size);
      std::iota(one.team.ranks.begin(), one.team.ranks.end(), 0);
      one.data = rank == root ? wanted : std::vector<uint8_t>(wanted.size());
      Call call;
      call.operation = Operation::bcast;
      call.algorithm = fault_tolerant_name;
      call.root = root;
      call.receive = one.data.data();
      call.bytes = wanted.size();
      auto made = make_call_graph(call, rank, size);
      ASSERT_TRUE(made.ok()) << made.error().message;
      auto offloaded = one.endpoint->make(one.team, std::move(made->graph), false, std::move(made->memory));
      ASSERT_TRUE(offloaded.ok()) << offloaded.error().message;
      one.offloaded = std::move(*offloaded);
    }
    // Fewer than log2 P ranks die, at any moment, the root not.
    uint64_t deaths = random.below(static_cast<uint64_t>(std::bit_width(size - 1)));
    const auto kill_some = [&] {
      if (deaths == 0 || random.below(size) != 0) return;
      const auto rank = static_cast<uint32_t>(random.below(size));
      if (rank == root || ranks[rank].is_dead) return;
      (*loopback)->kill(rank);
      ranks[rank].is_dead = true;
      --deaths;
    };
    for (Survivor& one : ranks) {
      kill_some();
      if (one.is_dead) continue;
      const Status started = one.offloaded->start();
      ASSERT_TRUE(started.ok()) << started.error().message;
      for (uint64_t steps = random.below(30); steps > 0; --steps) (*loopback)->step();
    }
    bool all = false;
    for (int looks = 0; !all && looks < 10000; ++looks) {
      all = true;
      kill_some();
      for (Survivor& one : ranks) {
        if (one.is_dead) continue;
        const auto ended = one.offloaded->test();
        ASSERT_TRUE(ended.ok()) << ended.error().message;
        all = all && *ended;
      }
      for (uint64_t steps = random.below(30); steps > 0; --steps) (*loopback)->step();
    }
    ASSERT_TRUE(all) << "somebody never gets the data";
    for (Survivor& one : ranks) {
      if (one.is_dead) continue;
      EXPECT_EQ(one.data, wanted);
    }
    for (Survivor& one : ranks) one.offloaded.reset();
    for (Survivor& one : ranks) {
      const Status closed = one.endpoint->close();
      EXPECT_TRUE(closed.ok() || one.is_dead);
    }
  });
}

}  // namespace
}  // namespace spinloom::collective
