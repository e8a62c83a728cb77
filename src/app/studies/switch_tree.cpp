#include "app/studies/switch_tree.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace spinloom::app {
namespace {

struct Edges {
  std::map<uint32_t, std::set<uint32_t>> neighbours;  // the key is a switch
  std::map<uint32_t, std::vector<uint32_t>> hosts;
};

SwitchTree tree_below(const Edges& edges, uint32_t top) {
  SwitchTree tree;
  const auto add = [&](uint32_t number, uint32_t depth, std::optional<uint32_t> parent) {
    TreeSwitch& added = tree.switches.emplace_back(TreeSwitch{number, depth, parent});
    if (const auto hosts = edges.hosts.find(number); hosts != edges.hosts.end()) added.hosts = hosts->second;
  };
  add(top, 1, {});
  for (uint32_t index = 0; index < tree.switches.size(); ++index) {
    const uint32_t number = tree.switches[index].number;
    const auto parent = tree.switches[index].parent;
    for (const uint32_t neighbour : edges.neighbours.at(number)) {
      if (parent.has_value() && tree.switches[*parent].number == neighbour) continue;
      auto& children = tree.switches[index].children;
      const auto port = static_cast<uint32_t>(children.size());
      children.push_back(static_cast<uint32_t>(tree.switches.size()));
      add(neighbour, tree.switches[index].depth + 1, index);
      tree.switches.back().port_at_parent = port;
    }
  }
  return tree;
}

}  // namespace

SwitchTree SwitchTree::over(const network::Network& network, const std::vector<uint32_t>& members, Top top) {
  Edges edges;
  const uint32_t first = members.front();
  const uint32_t first_switch = network.switch_of(first);
  edges.neighbours[first_switch];
  for (const uint32_t member : members) {
    uint32_t number = network.switch_of(member);
    edges.hosts[number].push_back(member);
    while (number != first_switch) {
      const uint32_t next = network.next(number, first);
      edges.neighbours[number].insert(next);
      edges.neighbours[next].insert(number);
      number = next;
    }
  }
  SwitchTree best = tree_below(edges, first_switch);
  if (top == Top::first_member) return best;
  for (const auto& [number, neighbours] : edges.neighbours) {
    SwitchTree other = tree_below(edges, number);
    if (other.depth() < best.depth()) best = std::move(other);
  }
  return best;
}

uint32_t SwitchTree::depth() const {
  uint32_t most = 0;
  for (const TreeSwitch& node : switches) {
    if (!node.hosts.empty()) most = std::max(most, node.depth);
  }
  return most;
}

}  // namespace spinloom::app
