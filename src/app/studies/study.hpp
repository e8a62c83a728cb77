// Study - the small experiments of the SC'17 sPIN paper, and groups of ranks over switches, by several ways.
//
// Contract: run_study() builds a world of two ranks (broadcast, raid and groups: more), warms it up with one round,
//   measures the next (groups: the last of `rounds`), and compares every byte that the experiment moves or computes
//   before it gives a time (Code::mismatch otherwise).
//   pingpong: rank 0 puts `bytes`, rank 1 answers with them; time_ps is half of the time from the put until all of the
//     answer is counted at rank 0.
//   accumulate: rank 1's array of complex numbers is multiplied by rank 0's message; time_ps is from the put until rank
//     1's host knows that the result is in its memory.
//   broadcast: rank 0's message goes to all `ranks` along a binomial tree; time_ps is from the first put until the last
//     host knows that it has it. The switches of a three-level fat tree are crossed (app/studies/broadcast.cpp).
//   raid: rank 0's message is stored across four data nodes, rank 1 holds their parity; time_ps is from the first put
//     until rank 0 knows that all is stored; raid-read: until rank 0 knows that it has the bytes
//     (app/studies/raid.hpp).
//   multicast, reduce, allreduce: groups of ranks over the switches of a network (app/studies/collective.hpp).
// Ways: rdma: the bytes land, the rank's host sees the count in its memory and acts (host.memory_latency + host.call);
//   portals4: triggered puts act without the host (pingpong, broadcast, raid), or the NIC answers a get (raid-read);
//   store: handlers act when the message is in host memory, or on its only packet (pingpong, broadcast); stream:
//   payload handlers act on each packet; linear, switch: groups only. A way that an experiment lacks is
//   Code::unsupported.
// Invariants: (1) the same config gives the same result on every machine.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "app/studies/setup.hpp"

namespace spinloom::app {

enum class Experiment : uint8_t { pingpong, accumulate, broadcast, raid, raid_read, multicast, reduce, allreduce };
enum class StudyWay : uint8_t { rdma, portals4, store, stream, linear, switches };

[[nodiscard]] Result<Experiment> experiment_named(std::string_view name);
[[nodiscard]] Result<StudyWay> study_way_named(std::string_view name);

// The part of a request to the array at one data node: bytes at an offset of its block.
struct RaidPiece {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

struct StudyConfig : Setup {
  Experiment experiment = Experiment::pingpong;
  StudyWay way = StudyWay::rdma;
  uint64_t bytes = 8;
  uint32_t ranks = 2;  // broadcast; groups: all ranks of the network
  uint64_t offset = 0;  // raid: offset of the pieces in the blocks
  std::vector<RaidPiece> pieces;  // raid: instead of bytes and offset, one for each data node
  // multicast, reduce, allreduce:
  std::optional<network::Config> network = {};
  std::vector<uint32_t> members = {};  // ranks; empty: all
  int rounds = 1;  // one after the other; the last is measured
};

struct StudyResult {
  int64_t time_ps = 0;
  uint64_t handlers = 0;  // handlers that ran in the measured round
  uint64_t handler_cycles = 0;
  // multicast, reduce, allreduce:
  int64_t bound_ps = 0;  // the time that one message alone takes through the switches (collective.hpp)
  uint64_t link_bytes = 0;  // the measured round's bytes on links between switches and from switches to hosts
  uint32_t switches = 0;  // switches with handlers
};

[[nodiscard]] Result<StudyResult> run_study(const StudyConfig& config);

}  // namespace spinloom::app
