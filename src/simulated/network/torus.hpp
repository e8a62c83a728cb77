// TorusRoutes - switches, links and paths of a Torus.
//
// Contract: next() and choices() do what they do in FatTreeRoutes.
// Invariants: (1) next() goes along the first dimension in which the destination is elsewhere, the shorter way, upwards
//   if both are as long.
// Threads: plain values. Time: none.
#pragma once

#include <optional>

#include "base/random.hpp"
#include "base/result.hpp"
#include "simulated/network/topology.hpp"

namespace spinloom::network {

class TorusRoutes {
 public:
  static Result<TorusRoutes> make(const Torus& torus, uint32_t hosts);

  [[nodiscard]] uint32_t switches() const { return switches_; }
  [[nodiscard]] uint32_t links() const { return switches_ * 2 * static_cast<uint32_t>(torus_.sizes.size()); }
  [[nodiscard]] uint32_t switch_of(uint32_t host) const { return host / torus_.hosts; }
  [[nodiscard]] Link next(uint32_t at_switch, uint32_t destination) const;
  void choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const;
  // Draws a random detour between two switches: the switch where the packet turns to its destination, or none.
  [[nodiscard]] std::optional<uint32_t> detour(uint32_t at_switch, uint32_t to, Random& random) const;
  [[nodiscard]] bool turns(uint32_t at_switch, uint32_t detour) const;
  [[nodiscard]] uint32_t host_of_switch(uint32_t at_switch) const { return at_switch * torus_.hosts; }
  // All links out of a switch.
  void links_of(uint32_t at_switch, std::vector<Link>& out) const;

 private:
  // Visits the first link of each shortest way along each dimension in which the destination is elsewhere, until
  // `visit` returns false.
  template <class Visit>
  void for_each_minimal_link(uint32_t at_switch, uint32_t destination, Visit&& visit) const;

  Torus torus_;
  uint32_t switches_ = 1;
};

}  // namespace spinloom::network
