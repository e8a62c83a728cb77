// Costs - what the ends of messages cost their ranks, beside the network's own time.
//
// Contract: a pair of layouts that has a cost of its own costs that, at both ends, in place of what each of them costs.
//   message_cost() interpolates `message_costs`: on straight lines between its points, beyond the last one as between
//   the last two, and before the first one it gives that of the first. A layout without a cost costs
//   `unknown_layout_rate` for each byte.
// Threads: plain values. Time: modelled, in ps; a Rate is the time for each byte.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/units.hpp"
#include "predict/program/rounds.hpp"

namespace spinloom::predict {

// The work of the CPU, and of the NIC beside it, at one end of a message: before it leaves or after it has come.
struct EndCost {
  uint64_t cpu_ps = 0;
  uint64_t nic_ps = 0;  // time that the message waits for the NIC
  uint64_t nic_busy_ps = 0;  // time after which the NIC can take the next message
};

// The cost of a message of so many bytes, whatever its layouts.
struct MessageCost {
  uint64_t bytes = 0;
  uint64_t send_cpu_ps = 0;
  uint64_t receive_cpu_ps = 0;
  uint64_t extra_latency_ps = 0;  // the latency beyond what the network's model takes; no CPU works meanwhile
};

// The protocol of long messages. answer: the sender asks, the receiver answers, and then the data go. nic: the same,
// and NICs do it. fetch: the sender says where the data lie, the receiver's CPU copies them, which is its time to
// receive, and then says so.
enum class Handshake : uint8_t { answer, nic, fetch };

// CPU time for a receive that is posted after its message has come.
struct LateReceiveCosts {
  uint64_t find_ps = 0;  // the time to find a short message that came early; the receiver then copies or unpacks it
  uint64_t answer_ps = 0;  // the time to answer a request that the NIC would have answered
};

// Costs of non-blocking and persistent collective operations as schedules that NICs execute: CPUs make them and see
// that they have ended. Needs Handshake::nic.
struct OffloadCosts {
  uint64_t create_ps = 0;  // time of the CPU for each operation that it gives to the NIC
  // True if the NIC keeps schedules: a later start pays create_ps only for operations that wait for nothing.
  bool is_cached = false;
  uint64_t match_ps = 0;  // time of the NIC for each message that has come: to match it and to begin what waits for it
  Rate own_block_rate = {0, 1};  // time of the NIC for a rank's own block
  uint64_t combine_latency_ps = 0;  // a message's wait before it is combined, beyond the NIC's own time
  Rate combine_rate = {0, 1};  // time of the NIC to combine
  uint64_t test_ps = 0;  // time of the CPU to see that one has ended
};

// CPU time of a message at both ends beyond the work for a block of as many bytes, because of the layouts of its data.
struct PairCost {
  uint64_t send_ps = 0;
  uint64_t receive_ps = 0;
  // The time to move a rank's own block from one of the layouts to the other; unknown: what both ends cost.
  std::optional<uint64_t> own_block_ps = {};
};

struct Costs {
  using LayoutKey = std::tuple<uint32_t, int64_t, Side>;  // the number of a Script's layout, elements, side
  // The bytes, the layout at the sender and the layout at the receiver.
  using PairKey = std::tuple<uint64_t, DataLayout, DataLayout>;

  std::vector<MessageCost> message_costs;  // the order is by ascending bytes; empty: messages cost nothing
  std::map<LayoutKey, EndCost> layout_costs;
  std::map<PairKey, PairCost> pair_costs;
  std::map<LayoutKey, uint64_t> host_layout_ps;  // CPU times where no NIC helps: own blocks, late receives
  Rate unknown_layout_rate;  // time of the CPU for a layout that has no cost
  Rate copy_rate;  // time of the CPU to copy from one buffer into another
  Rate combine_rate;  // time of the CPU to combine operands of a reduction
  // None: a late receive costs as much as one that is posted in time.
  std::optional<LateReceiveCosts> late_receives;
  // None: CPUs carry on non-blocking collective operations whenever they are in a call of MPI.
  std::optional<OffloadCosts> offload;
  // Longer messages use `handshake`, for which the CPUs of both ranks work when they are in a call of MPI. Without it
  // only the network's model has a rule for long messages.
  uint64_t handshake_bytes = UINT64_MAX;
  Handshake handshake = Handshake::answer;
  uint64_t scale_numerator = 1;  // the time between calls is multiplied by scale_numerator / scale_denominator
  uint64_t scale_denominator = 1;
  uint64_t compute_unit_ps = 1;  // the unit of the schedule's computations
  // All messages are on the host CPU, for models that price them; nothing may be a NIC's then.
  bool uses_one_cpu = false;

  [[nodiscard]] MessageCost message_cost(uint64_t bytes) const;
};

[[nodiscard]] inline Costs::PairKey pair_key(const Leg& leg) {
  return leg.side == Side::send ? Costs::PairKey{leg.part.bytes, leg.own_layout(), leg.partner_layout}
                                : Costs::PairKey{leg.part.bytes, leg.partner_layout, leg.own_layout()};
}

}  // namespace spinloom::predict
