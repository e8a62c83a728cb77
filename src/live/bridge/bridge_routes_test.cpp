// Ways through gateways: the shortest, the same both ways round, spread, and none.
#include "live/bridge/bridge_routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/random.hpp"

namespace spinloom::live {
namespace {

using Path = BridgeRoutes::Path;

// Ranks that reach each other if they share a network, a letter.
BridgeRoutes routes_of(const std::vector<std::string>& networks, const std::vector<uint32_t>& gateways) {
  std::vector<std::vector<bool>> marks(networks.size(), std::vector<bool>(networks.size()));
  for (size_t a = 0; a < networks.size(); ++a) {
    for (size_t b = 0; b < networks.size(); ++b) {
      marks[a][b] = networks[a].find_first_of(networks[b]) != std::string::npos;
    }
  }
  std::vector<bool> forwards(networks.size());
  for (const uint32_t gateway : gateways) forwards[gateway] = true;
  return {marks, forwards};
}

TEST(BridgeRoutes, GoThroughTheGatewayOnlyWhereTheyMust) {
  const BridgeRoutes routes = routes_of({"x", "x", "xy", "y", "y"}, {2});
  EXPECT_EQ(routes.path(0, 1), (Path{0, 1}));
  EXPECT_EQ(routes.path(0, 2), (Path{0, 2}));
  EXPECT_EQ(routes.path(0, 3), (Path{0, 2, 3}));
  EXPECT_EQ(routes.path(4, 1), (Path{4, 2, 1}));
  EXPECT_EQ(routes.next_hop(2, 0, 3), 3u);
  EXPECT_EQ(routes.previous_hop(2, 0, 3), 0u);
  EXPECT_EQ(routes.next_hop(3, 0, 3), std::nullopt);
  EXPECT_EQ(routes.previous_hop(0, 0, 3), std::nullopt);
  EXPECT_EQ(routes.next_hop(1, 0, 3), std::nullopt);
  EXPECT_TRUE(routes.check(5).ok());
}

TEST(BridgeRoutes, ARankWithBothNetworksForwardsOnlyIfItIsAGateway) {
  const BridgeRoutes routes = routes_of({"x", "xy", "y"}, {});
  EXPECT_EQ(routes.path(0, 2), Path{});
  const Status checked = routes.check(3);
  ASSERT_FALSE(checked.ok());
  EXPECT_NE(checked.error().message.find("rank 0 and rank 2 do not reach each other"), std::string::npos)
      << checked.error().message;
  EXPECT_TRUE(routes.check(2).ok());
}

TEST(BridgeRoutes, AGatewayThatJoinsNobodyIsNone) {
  const BridgeRoutes routes = routes_of({"x", "x", "xy", "y", "y", "xy"}, {0, 1, 2, 3, 4});
  EXPECT_EQ(routes.gateways(), (std::vector<uint32_t>{2}));
  EXPECT_EQ(routes.path(0, 3), (Path{0, 2, 3}));
}

TEST(BridgeRoutes, OneDirectionAloneIsNoWay) {
  const BridgeRoutes routes({{false, true}, {false, false}}, {false, false});
  EXPECT_FALSE(routes.direct(0, 1));
  EXPECT_EQ(routes.path(0, 1), Path{});
}

TEST(BridgeRoutes, ChainsAreTheSameBackwards) {
  const BridgeRoutes routes = routes_of({"a", "ab", "bc", "cd", "d", "d"}, {1, 2, 3});
  EXPECT_EQ(routes.path(0, 4), (Path{0, 1, 2, 3, 4}));
  EXPECT_EQ(routes.path(5, 0), (Path{5, 3, 2, 1, 0}));
  EXPECT_EQ(routes.path(1, 3), (Path{1, 2, 3}));
}

TEST(BridgeRoutes, PairsAreSpreadOverGateways) {
  std::vector<std::string> networks;
  for (int i = 0; i < 20; ++i) networks.emplace_back(i % 2 == 0 ? "x" : "y");
  for (int i = 0; i < 3; ++i) networks.emplace_back("xy");
  const BridgeRoutes routes = routes_of(networks, {20, 21, 22});
  std::map<uint32_t, int> pairs;
  for (uint32_t a = 0; a < 20; a += 2) {
    for (uint32_t b = 1; b < 20; b += 2) ++pairs[routes.path(a, b).at(1)];
  }
  ASSERT_EQ(pairs.size(), 3u);
  for (const auto& [gateway, count] : pairs) EXPECT_GT(count, 15) << gateway;
}

// The oracle: the length of the shortest way, by relaxation over all ranks.
TEST(BridgeRoutes, RandomJobsHaveShortestWays) {
  Random random(5, "routes");
  for (int round = 0; round < 100; ++round) {
    const auto ranks = static_cast<uint32_t>(3 + random.below(10));
    std::vector<std::string> networks(ranks);
    std::vector<uint32_t> gateways;
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      networks[rank] += static_cast<char>('a' + random.below(4));
      if (random.chance(1, 2)) networks[rank] += static_cast<char>('a' + random.below(4));
      if (random.chance(1, 3)) gateways.push_back(rank);
    }
    const BridgeRoutes routes = routes_of(networks, gateways);
    for (uint32_t target = 0; target < ranks; ++target) {
      constexpr size_t far = 1000;
      std::vector<size_t> steps(ranks, far);
      steps[target] = 0;
      for (uint32_t turn = 0; turn < ranks; ++turn) {
        for (uint32_t a = 0; a < ranks; ++a) {
          for (uint32_t b = 0; b < ranks; ++b) {
            const bool through = b == target || std::find(gateways.begin(), gateways.end(), b) != gateways.end();
            if (routes.direct(a, b) && through) steps[a] = std::min(steps[a], steps[b] + 1);
          }
        }
      }
      for (uint32_t source = 0; source < ranks; ++source) {
        if (source == target) continue;
        const Path& path = routes.path(source, target);
        ASSERT_EQ(path.size(), steps[source] == far ? 0 : steps[source] + 1);
        const Path& back = routes.path(target, source);
        EXPECT_TRUE(std::equal(path.begin(), path.end(), back.rbegin(), back.rend()));
        for (size_t i = 0; i + 1 < path.size(); ++i) {
          EXPECT_TRUE(routes.direct(path[i], path[i + 1]));
          EXPECT_TRUE(i == 0 || routes.is_gateway(path[i]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace spinloom::live
