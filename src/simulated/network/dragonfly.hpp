// DragonflyRoutes - switches, links and paths of a Dragonfly.
//
// Contract: next() and choices() do what they do in FatTreeRoutes. A path is a link inside the group, one to the other
//   group and one inside that, without those that are not needed.
// Invariants: (1) the ports of a group to others are numbered through its routers; port m (groups - 1) + d leads to the
//   group that is d + 1 further on, as the m-th of their links; (2) next() takes the link between two groups by the
//   destination.
// Threads: plain values. Time: none.
#pragma once

#include <optional>

#include "base/random.hpp"
#include "base/result.hpp"
#include "simulated/network/topology.hpp"

namespace spinloom::network {

class DragonflyRoutes {
 public:
  static Result<DragonflyRoutes> make(const Dragonfly& dragonfly, uint32_t hosts);

  [[nodiscard]] uint32_t switches() const { return shape_.groups * shape_.routers; }
  [[nodiscard]] uint32_t links() const { return switches() * (shape_.routers + shape_.globals); }
  [[nodiscard]] uint32_t switch_of(uint32_t host) const { return host / shape_.hosts; }
  [[nodiscard]] Link next(uint32_t at_switch, uint32_t destination) const;
  void choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const;
  // Draws a random detour between two switches: a switch of another group, or none. The packet turns to its destination
  // at the first switch of that group.
  [[nodiscard]] std::optional<uint32_t> detour(uint32_t at_switch, uint32_t to, Random& random) const;
  [[nodiscard]] bool turns(uint32_t at_switch, uint32_t detour) const;
  [[nodiscard]] uint32_t host_of_switch(uint32_t at_switch) const { return at_switch * shape_.hosts; }
  // All links out of a switch.
  void links_of(uint32_t at_switch, std::vector<Link>& out) const;

 private:
  [[nodiscard]] Link local(uint32_t at_switch, uint32_t to) const {
    return {at_switch * (shape_.routers + shape_.globals) + to % shape_.routers, to};
  }
  // Returns the `which`-th link from the group of `at_switch` to another group, or the link to the router that has it.
  [[nodiscard]] Link towards(uint32_t at_switch, uint32_t group, uint32_t which) const;

  Dragonfly shape_;
  uint32_t links_per_pair_ = 0;  // links between two groups
};

}  // namespace spinloom::network
