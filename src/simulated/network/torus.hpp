// TorusRoutes - switches, links and paths of a Torus.
//
// Contract: as FatTreeRoutes.
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
  [[nodiscard]] Link next(uint32_t at, uint32_t destination) const;
  void choices(uint32_t at, uint32_t destination, std::vector<Link>& out) const;
  // Draws a random detour between two switches: the switch after which the packet turns to its end, or none.
  [[nodiscard]] std::optional<uint32_t> detour(uint32_t at, uint32_t to, Random& random) const;
  [[nodiscard]] bool turns(uint32_t at, uint32_t detour) const;
  [[nodiscard]] uint32_t host_of_switch(uint32_t at) const { return at * torus_.hosts; }
  // All links out of a switch.
  void links_of(uint32_t at, std::vector<Link>& out) const;

 private:
  // Visits a link for each way along each dimension that leads to the destination, until `visit` gives false.
  template <class Visit>
  void each_way(uint32_t at, uint32_t destination, Visit&& visit) const;

  Torus torus_;
  uint32_t switches_ = 1;
};

}  // namespace spinloom::network
