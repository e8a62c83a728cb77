// Network - packets on the links between switches.
//
// Contract: sans-I/O. The caller has the clock: it calls move() for a packet whose head is at a switch, in the order of
//   times, and gets the time at which the head is at the next switch. The links of hosts are the caller's.
//     - A packet of b bytes occupies each link of its path for b G; later packets wait, first come, first served.
//     - Its head is at the next switch `hop` after it has begun to cross; it does not wait for its tail (cut-through).
//   So the head of a lone packet takes h times `hop` over h links. k packets that meet on a link need k b G there. Two
//   flows that meet on a link share it packet by packet.
// Invariants: (1) the same calls give the same times; (2) memory holds one time for each link of each plane, and the
//   order of hosts if it is shuffled; (3) the time of a packet on a link is rounded down, so that a message alone never
//   waits for its own packets.
// Threads: one owner. Time: modelled, of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "simulated/network/dragonfly.hpp"
#include "simulated/network/fat_tree.hpp"
#include "simulated/network/topology.hpp"
#include "simulated/network/torus.hpp"

namespace spinloom::network {

class Network {
 public:
  // Makes a network for `ranks` ranks; `planes`: the number of such networks, one for each NIC of a rank.
  static Result<Network> make(const Config& config, Rate G, uint32_t ranks, uint32_t planes = 1);

  [[nodiscard]] uint32_t switches() const;
  [[nodiscard]] uint32_t links() const;  // the links of one plane
  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] uint32_t switch_of(uint32_t rank) const;
  // Returns the switch behind this one on the fixed path to a rank of another switch.
  [[nodiscard]] uint32_t next(uint32_t at_switch, uint32_t to) const;
  // Returns a link from a switch to a neighbour, the first if there are several; nothing if there is none.
  [[nodiscard]] std::optional<Link> link_between(uint32_t at_switch, uint32_t neighbour) const;
  // Returns how many links between switches lie between two ranks.
  [[nodiscard]] uint32_t hops(uint32_t from, uint32_t to) const;

  struct Move {
    uint64_t at_ps;  // the time at which its head is at the next switch
    uint32_t to;  // the next switch
    uint32_t link;
    uint64_t begin_ps;  // the time at which its head begins to cross
  };
  // Returns where a packet at its first switch goes first, if `to`, its destination, is at another switch: to `to`, or
  // by a detour to the address of a switch (ranks() + its number). Called once for each packet: detours are drawn in
  // the order of the calls.
  [[nodiscard]] uint32_t heading(uint64_t now_ps, uint32_t at_switch, uint32_t to, uint32_t plane = 0);
  // True if a packet that went to the address of a switch turns to its destination here.
  [[nodiscard]] bool turns(uint32_t at_switch, uint32_t heading) const;
  // Moves a packet from a switch that is not that of `to`, the destination's rank or heading().
  [[nodiscard]] Move move(uint64_t now_ps, uint32_t at_switch, uint32_t to, uint64_t bytes, uint32_t plane = 0);
  // Moves a packet over this link.
  [[nodiscard]] Move cross(uint64_t now_ps, const Link& link, uint64_t bytes, uint32_t plane = 0);

 private:
  using Routes = std::variant<FatTreeRoutes, DragonflyRoutes, TorusRoutes>;
  Network(Routes routes, const Config& config, Rate G, uint32_t ranks)
      : routes_(std::move(routes)),
        config_(config),
        G_(G),
        ranks_(ranks),
        detours_(config.detour_seed, "network.detours") {}
  // The host of a rank, or the first host at the switch of this address.
  [[nodiscard]] uint32_t host_of(uint32_t address) const;
  [[nodiscard]] Link fixed_link(uint32_t at_switch, uint32_t host) const;

  Routes routes_;
  Config config_;
  Rate G_;
  uint32_t ranks_;
  std::vector<uint32_t> hosts_;  // each rank's host; empty: rank i is host i
  std::vector<uint64_t> free_ps_;  // one for each plane's links: the time from which on it is free
  std::vector<Link> choices_;
  Random detours_;
};

}  // namespace spinloom::network
