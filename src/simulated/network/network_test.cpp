// Paths of each form between all pairs, and what packets cost on links.
#include "simulated/network/network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <type_traits>

namespace spinloom::network {
namespace {

constexpr Rate G{20, 1};  // ps for each byte
constexpr uint64_t hop = 100;  // ps

// Walks all pairs, by next() and by each choice, and gives the number of links between their switches.
template <class Routes>
std::map<std::pair<uint32_t, uint32_t>, uint32_t> walk(const Routes& routes, uint32_t hosts) {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> lengths;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> ends;  // the ends of each link
  const auto cross = [&](uint32_t from, const Link& link) {
    EXPECT_LT(link.number, routes.links());
    EXPECT_LT(link.to, routes.switches());
    EXPECT_NE(link.to, from);
    const auto [found, is_new] = ends.emplace(link.number, std::pair(from, link.to));
    EXPECT_EQ(found->second, std::pair(from, link.to)) << "link " << link.number;
  };
  const auto length_from = [&](uint32_t at, uint32_t to) {
    uint32_t length = 0;
    for (; at != routes.switch_of(to) && length < 100; ++length) {
      const Link link = routes.next(at, to);
      cross(at, link);
      at = link.to;
    }
    return length;
  };
  // The longest path if any choice is taken.
  const auto longest_from = [&](const auto& self, uint32_t at, uint32_t to, uint32_t most) -> uint32_t {
    if (at == routes.switch_of(to)) return 0;
    std::vector<Link> choices;
    routes.choices(at, to, choices);
    EXPECT_FALSE(choices.empty());
    uint32_t longest = 0;
    std::set<uint32_t> numbers;
    for (const Link& link : choices) {
      cross(at, link);
      EXPECT_TRUE(numbers.insert(link.number).second);
      if (most > 0) longest = std::max(longest, 1 + self(self, link.to, to, most - 1));
    }
    return most > 0 ? longest : 100;
  };
  for (uint32_t from = 0; from < hosts; ++from) {
    for (uint32_t to = 0; to < hosts; ++to) {
      const uint32_t length = length_from(routes.switch_of(from), to);
      lengths[{from, to}] = length;
      const uint32_t longest = longest_from(longest_from, routes.switch_of(from), to, 10);
      // A dragonfly's link to the other group may be here, or at the next router.
      EXPECT_TRUE((std::is_same_v<Routes, DragonflyRoutes> ? longest <= 3 : longest == length)) << from << " to " << to;
    }
  }
  return lengths;
}

// Every link has one switch at its beginning, which lists it once; links of a path are among those listed.
template <class Routes>
void expect_all_links(const Routes& routes, uint32_t hosts) {
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> ends;
  for (uint32_t at = 0; at < routes.switches(); ++at) {
    std::vector<Link> links;
    routes.links_of(at, links);
    for (const Link& link : links) {
      EXPECT_LT(link.number, routes.links());
      EXPECT_NE(link.to, at);
      EXPECT_TRUE(ends.emplace(link.number, std::pair(at, link.to)).second) << "link " << link.number;
    }
  }
  for (uint32_t at = 0; at < routes.switches(); ++at) {
    for (uint32_t to = 0; to < hosts; ++to) {
      if (at == routes.switch_of(to)) continue;
      std::vector<Link> choices{routes.next(at, to)};
      routes.choices(at, to, choices);
      for (const Link& link : choices) EXPECT_EQ(ends.at(link.number), std::pair(at, link.to));
    }
  }
  for (const auto& [number, pair] : ends) {  // links come in pairs
    std::vector<Link> back;
    routes.links_of(pair.second, back);
    EXPECT_TRUE(std::ranges::any_of(back, [&](const Link& link) { return link.to == pair.first; })) << number;
  }
}

TEST(AllForms, ASwitchListsItsLinks) {
  expect_all_links(*FatTreeRoutes::make({.radix = 4, .levels = 3}, 16), 16);
  expect_all_links(*FatTreeRoutes::make({.radix = 8, .levels = 2, .oversubscription = 2}, 20), 20);
  expect_all_links(*TorusRoutes::make({.sizes = {4, 1, 2, 3}, .hosts = 2}, 48), 48);
  for (const uint32_t groups : {2U, 5U, 9U}) {
    expect_all_links(*DragonflyRoutes::make({.hosts = 2, .routers = 4, .globals = 2, .groups = groups}, groups * 8),
                     groups * 8);
  }
}

TEST(FatTree, GoesUpToTheCommonSwitchAndDown) {
  // Radix 4: 2 hosts at a switch, 2 switches in a pod, 4 pods: 2 (4 / 2)^3 = 16 hosts, 20 switches.
  const auto routes = FatTreeRoutes::make({.radix = 4, .levels = 3}, 16);
  ASSERT_TRUE(routes) << routes.error().message;
  EXPECT_EQ(routes->switches(), 8 + 8 + 4);
  EXPECT_EQ(routes->links(), 2 * (16 + 16));
  for (const auto& [pair, length] : walk(*routes, 16)) {
    const auto [from, to] = pair;
    EXPECT_EQ(length, from / 2 == to / 2 ? 0 : from / 4 == to / 4 ? 2 : 4) << from << " to " << to;
  }
  EXPECT_FALSE(FatTreeRoutes::make({.radix = 4, .levels = 3}, 17));
}

TEST(FatTree, HasFewerLinksUpWithOversubscription) {
  const auto routes = FatTreeRoutes::make({.radix = 8, .levels = 2, .oversubscription = 2}, 32);
  ASSERT_TRUE(routes);
  EXPECT_EQ(routes->switches(), 8 + 2);
  EXPECT_EQ(routes->links(), 2 * 8 * 2);
  for (const auto& [pair, length] : walk(*routes, 32)) {
    EXPECT_EQ(length, pair.first / 4 == pair.second / 4 ? 0 : 2);
  }
}

TEST(FatTree, AllPacketsToOneHostComeDownOneWay) {
  const auto routes = FatTreeRoutes::make({.radix = 8, .levels = 3}, 128);
  ASSERT_TRUE(routes);
  for (uint32_t to = 0; to < 128; ++to) {
    std::set<uint32_t> tops;
    for (uint32_t from = 0; from < 128; ++from) {
      if (from / 16 == to / 16) continue;
      tops.insert(routes->next(routes->next(routes->switch_of(from), to).to, to).to);
    }
    EXPECT_EQ(tops.size(), 1) << to;
  }
}

TEST(FatTree, TakesAsManyLevelsAsItNeeds) {
  for (const auto& [hosts, switches] : {std::pair(16, 1), {17, 3 + 8}, {128, 16 + 8}, {129, 24 + 24 + 64}}) {
    const auto routes = FatTreeRoutes::make({.radix = 16}, hosts);
    ASSERT_TRUE(routes);
    EXPECT_EQ(routes->switches(), switches) << hosts;
    walk(*routes, std::min(hosts, 64));
  }
}

TEST(Torus, GoesTheShorterWayInEachDimension) {
  const auto routes = TorusRoutes::make({.sizes = {4, 3, 5}, .hosts = 2}, 120);
  ASSERT_TRUE(routes);
  EXPECT_EQ(routes->switches(), 60);
  const auto ring = [](uint32_t from, uint32_t to, uint32_t size) {
    const uint32_t up = (to + size - from) % size;
    return std::min(up, size - up);
  };
  for (const auto& [pair, length] : walk(*routes, 120)) {
    const uint32_t from = pair.first / 2;
    const uint32_t to = pair.second / 2;
    EXPECT_EQ(length, ring(from % 4, to % 4, 4) + ring(from / 4 % 3, to / 4 % 3, 3) + ring(from / 12, to / 12, 5));
  }
  std::vector<Link> choices;
  routes->choices(0, 2 * (2 + 4), choices);  // two steps along the first ring, either way, and one along the second
  EXPECT_EQ(choices.size(), 3);
}

TEST(Dragonfly, CrossesOneLinkBetweenGroups) {
  for (const uint32_t groups : {0U, 2U, 3U, 4U, 5U, 9U}) {
    const Dragonfly form{.hosts = 2, .routers = 4, .globals = 2, .groups = groups};
    const uint32_t hosts = groups == 0 ? 72 : groups * 8;
    const auto routes = DragonflyRoutes::make(form, hosts);
    ASSERT_TRUE(routes) << routes.error().message;
    for (const auto& [pair, length] : walk(*routes, hosts)) {
      const auto [from, to] = pair;
      if (from / 2 == to / 2) {
        EXPECT_EQ(length, 0);
      } else if (from / 8 == to / 8) {
        EXPECT_EQ(length, 1);
      } else {
        EXPECT_GE(length, 1);
        EXPECT_LE(length, 3);
      }
    }
  }
}

std::string refusal(const Topology& topology, uint32_t ranks) {
  const auto made = Network::make({.topology = topology}, G, ranks);
  return made ? "" : made.error().message;
}

TEST(Network, FormsThatDoNotFitAreNamed) {
  EXPECT_EQ(refusal(FatTree{.radix = 5}, 4), "a fat tree has an even radix of 4 to 65536, and 5 is none");
  EXPECT_EQ(refusal(FatTree{.radix = 16, .oversubscription = 3}, 4),
            "an oversubscription of 3 does not divide the 8 links up of a switch with radix 16");
  EXPECT_EQ(refusal(FatTree{.radix = 4, .levels = 2}, 9),
            "a fat tree of 2 levels and radix 4 has 8 hosts, and there are 9 ranks; give it a larger radix or more "
            "levels");
  EXPECT_EQ(refusal(FatTree{.radix = 4, .levels = 9}, 9), "a fat tree has 1 to 8 levels, and 9 are given");
  EXPECT_EQ(refusal(Torus{.sizes = {4, 2}}, 9),
            "a torus of 4x2 with 1 at each switch has 8 hosts, and there are 9 ranks; make it larger");
  EXPECT_EQ(refusal(Torus{.sizes = {4, 0}}, 9), "each dimension of a torus has at least 1 switch");
  EXPECT_EQ(refusal(Torus{.sizes = {1 << 14, 1 << 13}}, 9),
            "a network of this form has 536870912 links for its 1 NICs a rank, more than 268435456; make it smaller");
  EXPECT_EQ(refusal(Torus{}, 9), "a torus has 1 to 8 dimensions, and 0 are given, as in torus:8x8x8");
  EXPECT_EQ(refusal(Dragonfly{.hosts = 1, .routers = 2, .globals = 1}, 9),
            "a dragonfly of 3 groups with 2 hosts each has 6 hosts, and there are 9 ranks; give it more groups, "
            "routers, globals or hosts");
  EXPECT_EQ(refusal(Dragonfly{.hosts = 1, .routers = 2, .globals = 1, .groups = 4}, 8),
            "a dragonfly of 2 routers with 1 globals each has links to 2 other groups, and there are 4 groups; give it "
            "more globals or routers");
}

// When the head of a packet is at the switch of `to`.
uint64_t travel(Network& network, uint64_t now, uint32_t from, uint32_t to, uint64_t bytes) {
  for (uint32_t at = network.switch_of(from); at != network.switch_of(to);) {
    const Network::Move move = network.move(now, at, to, bytes);
    now = move.at_ps;
    at = move.to;
  }
  return now;
}

Network make(const Topology& topology, uint32_t ranks, Routing routing = Routing::fixed) {
  auto made = Network::make({.topology = topology, .routing = routing, .hop_ps = hop}, G, ranks);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

TEST(Network, APacketAloneNeedsItsHops) {
  Network network = make(FatTree{.radix = 4, .levels = 3}, 16);
  EXPECT_EQ(network.hops(0, 15), 4);
  EXPECT_EQ(travel(network, 1000, 0, 15, 4096), 1000 + 4 * hop);
  EXPECT_EQ(travel(network, 1000, 0, 1, 4096), 1000);
}

TEST(Network, PacketsThatMeetOnALinkQueue) {
  // Hosts 0 to 3 of one switch send to hosts 4 to 7 of the other over one link: packet k waits for k s G.
  Network network = make(FatTree{.radix = 8, .levels = 2, .oversubscription = 4}, 8);
  const uint64_t s = 1000;
  for (uint32_t k = 0; k < 4; ++k) EXPECT_EQ(travel(network, 0, k, 4 + k, s), k * s * 20 + 2 * hop) << k;
}

TEST(Network, AdaptivePathsAvoidEachOther) {
  // Fixed paths to destinations with the same digit share a link; adaptive ones take the other three.
  for (const Routing routing : {Routing::fixed, Routing::adaptive}) {
    Network network = make(FatTree{.radix = 8, .levels = 2}, 32, routing);
    const uint64_t s = 1000;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint64_t waits = routing == Routing::fixed ? k * s * 20 : 0;
      EXPECT_EQ(travel(network, 0, k, 4 * (k + 1), s), waits + 2 * hop) << k;
    }
  }
}

TEST(Network, TimesAreRoundedDownSoThatAMessageDoesNotWaitForItself) {
  auto network = Network::make({.topology = Torus{.sizes = {4}}, .hop_ps = 0}, Rate(20, 3), 4);
  ASSERT_TRUE(network);
  EXPECT_EQ(travel(*network, 0, 0, 1, 100), 0);
  EXPECT_EQ(travel(*network, 0, 0, 1, 100), 666);
}

TEST(Network, ShuffledHostsAreThoseOfTheSeed) {
  const Torus torus{.sizes = {64}};
  const auto hops = [&](std::optional<uint64_t> seed) {
    const auto network = Network::make({.topology = torus, .shuffle_seed = seed}, G, 64);
    uint32_t sum = 0;
    std::set<uint32_t> switches;
    for (uint32_t rank = 0; rank < 64; ++rank) {
      sum += network->hops(rank, (rank + 1) % 64);
      switches.insert(network->switch_of(rank));
    }
    EXPECT_EQ(switches.size(), 64);
    return sum;
  };
  EXPECT_EQ(hops({}), 64);
  EXPECT_GT(hops(1), 64 * 8);
  EXPECT_NE(hops(1), hops(2));
  EXPECT_EQ(hops(1), hops(1));
}

TEST(Network, PlanesAreApart) {
  auto network = Network::make({.topology = Torus{.sizes = {2}}, .hop_ps = 5}, G, 2, 2);
  ASSERT_TRUE(network);
  EXPECT_EQ(network->move(0, 0, 1, 100, 0).at_ps, 5);
  EXPECT_EQ(network->move(0, 0, 1, 100, 1).at_ps, 5);
  EXPECT_EQ(network->move(0, 0, 1, 100, 1).at_ps, 2000 + 5);
}

// The switches that a packet passes, its first and its last included.
std::vector<uint32_t> way_of(Network& network, uint64_t now, uint32_t from, uint32_t to, uint64_t bytes) {
  uint32_t at = network.switch_of(from);
  std::vector<uint32_t> way{at};
  if (at == network.switch_of(to)) return way;
  uint32_t heading = network.heading(now, at, to);
  while (heading != to || at != network.switch_of(to)) {
    const Network::Move move = network.move(now, at, heading, bytes);
    now = move.at_ps;
    at = move.to;
    way.push_back(at);
    if (network.turns(at, heading)) heading = to;
    EXPECT_LT(way.size(), 50);
    if (way.size() >= 50) break;
  }
  return way;
}

TEST(Detours, OfADragonflyGoOverOneOtherGroup) {
  // 9 groups of 4 routers: a detour is at most 5 links (one in each group, and two between groups).
  Network network = make(Dragonfly{.hosts = 2, .routers = 4, .globals = 2}, 72, Routing::valiant);
  std::map<uint32_t, uint32_t> over;
  for (uint32_t round = 0; round < 70; ++round) {
    for (uint32_t from = 0; from < 8; ++from) {
      std::vector<uint32_t> groups;
      const std::vector<uint32_t> way = way_of(network, 0, from, 8 + from, 100);
      EXPECT_LE(way.size(), 6);
      for (const uint32_t at : way) {
        if (groups.empty() || groups.back() != at / 4) groups.push_back(at / 4);
      }
      ASSERT_EQ(groups.size(), 3);
      EXPECT_EQ(groups[0], 0);
      EXPECT_EQ(groups[2], 1);
      ++over[groups[1]];
    }
  }
  ASSERT_EQ(over.size(), 7);  // 560 detours over 7 groups: 80 each, standard deviation 8.3
  for (const auto& [group, count] : over) EXPECT_NEAR(count, 80, 42) << group;
}

TEST(Detours, EndWhereTheyMustInEveryForm) {
  for (const Routing routing : {Routing::valiant, Routing::ugal}) {
    for (const Topology& form :
         {Topology(Torus{.sizes = {4, 3}, .hosts = 2}), Topology(Torus{.sizes = {1}, .hosts = 24}),
          Topology(Dragonfly{.hosts = 2, .routers = 4, .globals = 2}),
          Topology(Dragonfly{.hosts = 6, .routers = 2, .globals = 1, .groups = 2})}) {
      Network network = make(form, 24, routing);
      for (uint32_t from = 0; from < 24; ++from) {
        for (uint32_t to = 0; to < 24; ++to) {
          EXPECT_EQ(way_of(network, 0, from, to, 100).back(), network.switch_of(to));
        }
      }
    }
  }
}

TEST(Detours, AreThoseOfTheSeed) {
  const auto ways = [](uint64_t seed) {
    auto made =
        Network::make({.topology = Torus{.sizes = {4, 4}}, .routing = Routing::valiant, .detour_seed = seed}, G, 16);
    std::vector<std::vector<uint32_t>> all;
    for (uint32_t to = 1; to < 16; ++to) all.push_back(way_of(*made, 0, 0, to, 100));
    return all;
  };
  EXPECT_EQ(ways(1), ways(1));
  EXPECT_NE(ways(1), ways(2));
}

TEST(Detours, OfUgalAreTakenWhenTheMinimalLinkWaitsMoreThanTwiceAsLong) {
  // A ring of 8, from switch 0 to 1: the minimal link is up; detours over 5, 6, 7 begin downwards, where nobody waits.
  const auto ways = [](uint64_t queued_bytes) {
    Network network = make(Torus{.sizes = {8}}, 8, Routing::ugal);
    uint32_t detours = 0;
    for (int i = 0; i < 50; ++i) {
      if (queued_bytes > 0 && i == 0) std::ignore = network.move(0, 0, 1, queued_bytes);
      detours += network.heading(0, 0, 1) == 1 ? 0 : 1;
    }
    return detours;
  };
  EXPECT_EQ(ways(0), 0);  // q_minimal = 0 <= 2 q_detour = 0
  EXPECT_GT(ways(1000), 10);  // 3 of 8 detours begin downwards
  EXPECT_LT(ways(1000), 30);
  // Downwards waits too: b G up and c G down; a detour if b > 2 c.
  for (const auto& [up, down, taken] : {std::tuple(1000, 499, true), std::tuple(1000, 500, false)}) {
    Network network = make(Torus{.sizes = {8}}, 8, Routing::ugal);
    std::ignore = network.move(0, 0, 1, static_cast<uint64_t>(up));
    std::ignore = network.move(0, 0, 7, static_cast<uint64_t>(down));
    uint32_t detours = 0;
    for (int i = 0; i < 50; ++i) detours += network.heading(0, 0, 1) == 1 ? 0 : 1;
    EXPECT_EQ(detours > 0, taken);
  }
}

TEST(Detours, OfAFatTreeAreRefused) {
  const auto made = Network::make({.topology = FatTree{.radix = 4}, .routing = Routing::ugal}, G, 16);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::unsupported);
}

}  // namespace
}  // namespace spinloom::network
