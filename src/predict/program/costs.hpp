// Costs - what the ends of messages cost their ranks, beside the network's own time.
//
// Contract: a pair of layouts that has a price costs that, at both ends, in place of what each of them costs.
//   Costs::at() interpolates `messages`: on straight lines between its points, beyond the last one as between the last
//   two, and before the first one it gives that of the first. A layout without a price costs `unknown_layout` for each
//   byte.
// Threads: plain values. Time: modelled, in ps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "predict/program/rounds.hpp"

namespace spinloom::predict {

// Work of the CPU, and of the NIC beside it, at one end of a message: before it leaves or after it has come.
struct Price {
  uint64_t cpu_ps = 0;
  uint64_t nic_ps = 0;  // time of the NIC that the message waits for
  uint64_t nic_busy_ps = 0;  // time after which the NIC can take the next message
};

struct MessageCost {
  uint64_t bytes = 0;
  uint64_t send_cpu_ps = 0;
  uint64_t receive_cpu_ps = 0;
  uint64_t way_ps = 0;  // on the way, beside what the network's model takes; nobody's CPU is needed
};

// answer: the sender asks, the receiver answers, and then the data go. nic: the same, and NICs do it. fetch: the sender
// says where the data lie, the receiver's CPU copies them, which is its time to receive, and then says so.
enum class Handshake : uint8_t { answer, nic, fetch };

// CPU time for a receive that is posted after its message has come.
struct Late {
  uint64_t find_ps = 0;  // to find a short message that came early; the receiver then copies or unpacks it
  uint64_t answer_ps = 0;  // to answer a request that the NIC would have answered
};

// Costs of non-blocking and persistent collective operations as schedules that NICs execute: CPUs make them and see
// that they have ended. Needs Handshake::nic.
struct Offloaded {
  uint64_t create_ps = 0;  // of the CPU, for each operation that it gives to the NIC
  bool is_cached =
      false;  // the NIC keeps schedules: a later start pays create_ps only for operations that wait for nothing
  uint64_t match_ps = 0;  // of the NIC, for each message that has come: to match it and to begin what waits for it
  Rate own = {0, 1};  // of the NIC, by the byte: a rank's own block
  uint64_t combine_ps = 0;  // a message's wait before it is combined, beyond the NIC's own time
  Rate combine = {0, 1};  // of the NIC, by the byte
  uint64_t test_ps = 0;  // of the CPU, to see that one has ended
};

// CPU time of a message at both ends beyond the work for a block of as many bytes, because of the layouts of its data.
struct PairPrice {
  uint64_t send_ps = 0;
  uint64_t receive_ps = 0;
  std::optional<uint64_t> own_ps = {};  // of a rank's own block, from one to the other; unknown: what both ends cost
};

struct Costs {
  using LayoutKey = std::tuple<uint32_t, int64_t, Side>;  // a Script's layout, elements
  using PairKey = std::tuple<uint64_t, Lie, Lie>;  // bytes, at the sender, at the receiver

  std::vector<MessageCost> messages;  // by ascending bytes; empty: nothing
  std::map<LayoutKey, Price> layouts;
  std::map<PairKey, PairPrice> pairs;
  std::map<LayoutKey, uint64_t> host_layouts;  // by the CPU, whoever else could do it: a rank's own blocks
  Rate unknown_layout;  // by the byte, of the CPU
  Rate copy;  // by the byte, from one buffer into another
  Rate combine;  // by the byte, of a reduction
  // None: a late receive costs as much as one that is posted in time.
  std::optional<Late> late;
  // None: CPUs carry on non-blocking collective operations whenever they are in a call of MPI.
  std::optional<Offloaded> offloaded;
  // Longer messages use `handshake`, for which the CPUs of both ranks work when they are in a call of MPI. Without it
  // only the network's model has a rule for long messages.
  uint64_t handshake_bytes = UINT64_MAX;
  Handshake handshake = Handshake::answer;
  uint64_t scale_numerator = 1;  // factor of the time between calls
  uint64_t scale_denominator = 1;
  uint64_t unit_ps = 1;  // of the schedule's computations
  bool one_cpu = false;  // messages are the host CPU's, for models that price them; nothing may be a NIC's

  [[nodiscard]] MessageCost at(uint64_t bytes) const;
};

[[nodiscard]] inline Costs::PairKey pair_of(const Leg& leg) {
  return leg.side == Side::send ? Costs::PairKey{leg.part.bytes, leg.own(), leg.partner}
                                : Costs::PairKey{leg.part.bytes, leg.partner, leg.own()};
}

}  // namespace spinloom::predict
