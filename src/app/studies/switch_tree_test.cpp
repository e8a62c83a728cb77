// Trees over the switches of every form of network: each member once, each link once.
#include "app/studies/switch_tree.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "base/random.hpp"

namespace spinloom::app {
namespace {

network::Network network_of(const network::Topology& topology, uint32_t ranks) {
  auto made = network::Network::make({.topology = topology}, Rate{20, 1}, ranks);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

void expect_tree(const network::Network& network, const SwitchTree& tree, const std::vector<uint32_t>& members) {
  std::set<uint32_t> switches;
  std::multiset<uint32_t> hosts;
  for (uint32_t place = 0; place < tree.switches.size(); ++place) {
    const TreeSwitch& here = tree.switches[place];
    EXPECT_TRUE(switches.insert(here.number).second) << "switch " << here.number << " twice";
    hosts.insert(here.hosts.begin(), here.hosts.end());
    for (const uint32_t host : here.hosts) EXPECT_EQ(network.switch_of(host), here.number);
    EXPECT_EQ(here.parent.has_value(), place > 0);
    if (!here.parent.has_value()) continue;
    const TreeSwitch& parent = tree.switches[*here.parent];
    EXPECT_LT(*here.parent, place);
    EXPECT_EQ(parent.children[here.port_at_parent], place);
    EXPECT_EQ(here.depth, parent.depth + 1);
    EXPECT_TRUE(network.link_between(here.number, parent.number).has_value());
    EXPECT_TRUE(network.link_between(parent.number, here.number).has_value());
  }
  EXPECT_EQ(hosts, std::multiset<uint32_t>(members.begin(), members.end()));
}

TEST(SwitchTree, OfAFatTreeHasItsHeight) {
  // Radix 4, 16 hosts: 3 levels. From a host's switch, all others are within 5 switches; from the top within 3.
  const network::Network network = network_of(network::FatTree{.radix = 4}, 16);
  std::vector<uint32_t> members(16);
  std::iota(members.begin(), members.end(), 0);
  const SwitchTree down = SwitchTree::over(network, members, SwitchTree::Top::first_member);
  expect_tree(network, down, members);
  EXPECT_EQ(down.depth(), 5);
  EXPECT_EQ(down.switches.front().number, network.switch_of(0));
  const SwitchTree centred = SwitchTree::over(network, members, SwitchTree::Top::centre);
  expect_tree(network, centred, members);
  EXPECT_EQ(centred.depth(), 3);
  EXPECT_EQ(centred.switches.size(), 8 + 4 + 1);  // each leaf, one of two above it, one top
}

TEST(SwitchTree, OfRandomGroupsInEveryForm) {
  const network::Topology forms[] = {network::FatTree{.radix = 4}, network::FatTree{.radix = 8, .levels = 2},
                                     network::Dragonfly{.hosts = 2, .routers = 4, .globals = 2},
                                     network::Torus{.sizes = {4, 3}, .hosts = 2}};
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    Random random(seed, "app.switch_tree");
    for (const auto& form : forms) {
      const network::Network network = network_of(form, 24);
      std::vector<uint32_t> members(24);
      std::iota(members.begin(), members.end(), 0);
      random.shuffle(members);
      members.resize(2 + random.below(23));
      for (const auto top : {SwitchTree::Top::first_member, SwitchTree::Top::centre}) {
        SCOPED_TRACE(text("seed ", seed, ", form ", form.index()));
        expect_tree(network, SwitchTree::over(network, members, top), members);
      }
    }
  }
}

}  // namespace
}  // namespace spinloom::app
