#include "app/studies/switch_tree.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace spinloom::app {
namespace {

struct Edges {
  std::map<uint32_t, std::set<uint32_t>> neighbours;  // of each switch
  std::map<uint32_t, std::vector<uint32_t>> hosts;
};

SwitchTree oriented(const Edges& edges, uint32_t top) {
  SwitchTree tree;
  const auto add = [&](uint32_t at, uint32_t depth, std::optional<uint32_t> parent) {
    TreeSwitch& made = tree.switches.emplace_back(TreeSwitch{at, depth, parent});
    if (const auto hosts = edges.hosts.find(at); hosts != edges.hosts.end()) made.hosts = hosts->second;
  };
  add(top, 1, {});
  for (uint32_t place = 0; place < tree.switches.size(); ++place) {
    const uint32_t at = tree.switches[place].at;
    const auto parent = tree.switches[place].parent;
    for (const uint32_t neighbour : edges.neighbours.at(at)) {
      if (parent.has_value() && tree.switches[*parent].at == neighbour) continue;
      auto& children = tree.switches[place].children;
      const auto port = static_cast<uint32_t>(children.size());
      children.push_back(static_cast<uint32_t>(tree.switches.size()));
      add(neighbour, tree.switches[place].depth + 1, place);
      tree.switches.back().port_at_parent = port;
    }
  }
  return tree;
}

}  // namespace

SwitchTree SwitchTree::over(const network::Network& network, const std::vector<uint32_t>& members, Top top) {
  Edges edges;
  const uint32_t first = members.front();
  const uint32_t end = network.switch_of(first);
  edges.neighbours[end];
  for (const uint32_t member : members) {
    uint32_t at = network.switch_of(member);
    edges.hosts[at].push_back(member);
    while (at != end) {
      const uint32_t next = network.next(at, first);
      edges.neighbours[at].insert(next);
      edges.neighbours[next].insert(at);
      at = next;
    }
  }
  SwitchTree best = oriented(edges, end);
  if (top == Top::first_member) return best;
  for (const auto& [at, neighbours] : edges.neighbours) {
    SwitchTree other = oriented(edges, at);
    if (other.depth() < best.depth()) best = std::move(other);
  }
  return best;
}

uint32_t SwitchTree::depth() const {
  uint32_t most = 0;
  for (const TreeSwitch& each : switches) {
    if (!each.hosts.empty()) most = std::max(most, each.depth);
  }
  return most;
}

}  // namespace spinloom::app
