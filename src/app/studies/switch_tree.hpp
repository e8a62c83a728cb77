// SwitchTree - the switches between some ranks as a tree: the union of their fixed paths to one of them.
//
// Contract: over() takes the paths of all members to the first one. `top` is the first member's switch, or the switch
//   from which the furthest member is nearest. A switch's ports in the tree are its children, then its hosts.
// Invariants: (1) every switch but the top has one parent, which is its neighbour; (2) the top comes first, and parents
//   before their children; (3) every member is a host of exactly one switch of the tree.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulated/network/network.hpp"

namespace spinloom::app {

struct TreeSwitch {
  uint32_t number = 0;  // the switch's number in the network
  uint32_t depth = 1;  // switches from the top to here, both counted
  std::optional<uint32_t> parent = {};  // `parent` and `children` are places in SwitchTree::switches
  std::vector<uint32_t> children = {};
  std::vector<uint32_t> hosts = {};  // ranks of members at this switch
  uint32_t port_at_parent = 0;

  [[nodiscard]] uint32_t ports() const { return static_cast<uint32_t>(children.size() + hosts.size()); }
};

struct SwitchTree {
  enum class Top : uint8_t { first_member, centre };
  std::vector<TreeSwitch> switches;

  static SwitchTree over(const network::Network& network, const std::vector<uint32_t>& members, Top top);
  // Returns the greatest depth of a switch that has a member.
  [[nodiscard]] uint32_t depth() const;
};

}  // namespace spinloom::app
