// Collective - one message to many ranks, or the sum of many ranks' messages, over the switches of a network.
//
// Contract: run_collective() is run_study() for multicast, reduce and allreduce. The members are ranks; the first is
//   the root. Sums are of int32_t and wrap around. Every byte of every result is compared with a plain loop's before
//   there is a time. multicast: the root's message to all members; until the last host knows that it has it.
//   reduce: all members' messages, added up, to the root; until the root's host knows.
//   allreduce: the sum to all members; until the last host knows.
// Ways: linear: the root's host sends to, or receives from, each member; rdma: hosts along a binomial tree; stream
//   (multicast only): handlers of NICs along that tree; switch: handlers of the switches between the members. Hosts
//   post a message every host.call, and see one host.memory_latency after it has been counted.
// The bound is what one message alone costs that goes the longest way of the switches' tree and is stored in each
//   switch: T = put + (s - 1) hop + s (max(match, b G) + copy + dispatch + start); put: the time between two NICs at
//   one switch, s: switches on the way, b: bytes of the last packet.
// Threads: any number of calls side by side. Time: modelled, in ps.
#pragma once

#include "app/studies/study.hpp"

namespace spinloom::app {

[[nodiscard]] Result<StudyResult> run_collective(const StudyConfig& config, const LoadedImages& loaded);

}  // namespace spinloom::app
