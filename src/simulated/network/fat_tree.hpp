// FatTreeRoutes - switches, links and paths of a FatTree.
//
// Contract: next() is the link to a destination from a switch that is not the destination's; choices() are all that
//   begin a minimal path to it.
// Invariants: (1) the switch of level l (from 1) that is copy c of those above subtree t has number base(l) + t *
//   copies + c; its j-th link up ends at copy c * ups + j of the next level; (2) next() goes up by digits of the
//   destination (D-mod-k), so that all packets to one host come down one way.
// Threads: plain values. Time: none.
#pragma once

#include <array>

#include "base/result.hpp"
#include "simulated/network/topology.hpp"

namespace spinloom::network {

class FatTreeRoutes {
 public:
  static Result<FatTreeRoutes> make(const FatTree& tree, uint32_t hosts);

  [[nodiscard]] uint32_t switches() const { return switches_; }
  [[nodiscard]] uint32_t links() const { return links_; }
  [[nodiscard]] uint32_t switch_of(uint32_t host) const { return host / levels_[0].below; }
  [[nodiscard]] Link next(uint32_t at_switch, uint32_t destination) const;
  void choices(uint32_t at_switch, uint32_t destination, std::vector<Link>& out) const;
  // All links out of a switch.
  void links_of(uint32_t at_switch, std::vector<Link>& out) const;

 private:
  static constexpr uint32_t levels_max = 8;
  struct Level {
    uint32_t below;  // hosts under one switch
    uint32_t downs;  // links down, of a switch
    uint32_t ups;  // links up, of a switch
    uint32_t copies;  // switches of this level above one subtree
    uint32_t first_switch;
    uint32_t first_up;  // numbers of links
    uint32_t first_down;
  };
  struct Place {
    uint32_t level;
    uint32_t subtree;
    uint32_t copy;
  };
  [[nodiscard]] Place place_of(uint32_t at_switch) const;
  [[nodiscard]] Link up(const Place& place, uint32_t which) const;
  [[nodiscard]] Link down(const Place& place, uint32_t destination) const;

  std::array<Level, levels_max> levels_{};
  uint32_t level_count_ = 0;
  uint32_t switches_ = 0;
  uint32_t links_ = 0;
};

}  // namespace spinloom::network
