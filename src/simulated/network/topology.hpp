// Topology - how switches are wired, as numbers that a user gives.
//
// Contract: the comment of each form explains its numbers. Hosts are numbered from 0, those of one switch one after the
//   other. A cable between two switches is two links, one each way.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace spinloom::network {

// A tree of switches with `radix` ports: half of the ports go down and half go up. At the lowest level only one in
// `oversubscription` of the ports up is used; at the top all ports go down. So a tree of n levels has 2 (radix / 2)^n
// hosts. 0 levels: as few as hold all hosts.
struct FatTree {
  uint32_t radix = 16;
  uint32_t levels = 0;
  uint32_t oversubscription = 1;
  bool operator==(const FatTree&) const = default;
};

// The network of Kim, Dally, Scott, Abts, "Technology-driven, highly-scalable dragonfly topology" (ISCA 2008): groups
// of `routers` routers, all wired to each other. Each router has `hosts` hosts and `globals` links to other groups.
// Every two groups have as many links as the global links suffice for. 0 groups: as few as hold all hosts, at least 2.
struct Dragonfly {
  uint32_t hosts = 4;
  uint32_t routers = 8;
  uint32_t globals = 4;
  uint32_t groups = 0;
  bool operator==(const Dragonfly&) const = default;
};

// A grid whose rows are rings, with `sizes` switches along each dimension and `hosts` at each switch.
struct Torus {
  std::vector<uint32_t> sizes;
  uint32_t hosts = 1;
  bool operator==(const Torus&) const = default;
};

using Topology = std::variant<FatTree, Dragonfly, Torus>;

// `fixed` and `adaptive` take minimal paths. `fixed`: one path for each destination from each switch. `adaptive`: at
// each switch the link that is free first, of equal ones the first. The others may take a detour, chosen for each
// packet at its first switch. `valiant`: over a random group of a dragonfly or a random switch of a torus, by `fixed`
// paths. `ugal`: that detour if the wait for the first link of the `fixed` path is more than twice that for the
// detour's first link (UGAL-L of the paper above), otherwise the `fixed` path.
enum class Routing : uint8_t { fixed, adaptive, valiant, ugal };

inline constexpr uint64_t links_max = 1 << 28;  // the sum over all planes; their times take 2 GiB
inline constexpr uint64_t packets_max = 1 << 16;  // the packets of a message; longer messages have larger packets

struct Config {
  Topology topology;
  Routing routing = Routing::fixed;
  uint64_t hop_ps = 100'000;  // a head's time from one switch to the next
  uint64_t packet_bytes = 4096;  // packets are not interrupted on a link; 0: a message is one packet
  uint64_t detour_seed = 1;  // the seed of valiant and ugal
  std::optional<uint64_t> shuffle_seed = {};  // the seed of a random order of hosts; none: rank i is host i
  bool operator==(const Config&) const = default;
};

// A link out of a switch, and the switch at its end.
struct Link {
  uint32_t number;
  uint32_t to;
};

}  // namespace spinloom::network
