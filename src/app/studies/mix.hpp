// Mix - messages of several datatypes to one process, as an MPI library receives them: some come before their receive.
//
// Contract: run_mix() brings `rounds` messages of each type, in an order that the seed chooses, through one Inbox
//   (src/portals/strategies/inbox.hpp). Windows of `at_once` receives are under way together: first those whose message
//   comes early (it is put and lands, then the receive is posted and the host unpacks), then the others (their receives
//   are posted, then all are put). Every destination is compared with the oracle. The types are freed while the
//   receives of the last window are under way. Source: SC'19 datatypes paper, section 3.2.6.
// Invariants: (1) the same config gives the same result on every machine; (2) at the end no NIC memory is held.
// Threads: pure. Time: modelled, in ps; putting a layout on the NIC takes what its calls take, and is in no message's
//   time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/studies/share.hpp"
#include "portals/strategies/inbox.hpp"

namespace spinloom::app {

struct MixConfig : Setup {
  std::vector<SharedType> types;
  std::optional<strategies::Strategy> strategy;  // the strategy of all types; none: each commit chooses
  uint64_t rounds = 1;
  uint64_t at_once = 1;
  uint64_t early_numerator = 0;  // this part of the messages, chosen by the seed, comes before its receive
  uint64_t early_denominator = 1;
};

struct MixedMessage {
  size_t type = 0;
  strategies::Completion completion;
  int64_t landing_ps = 0;  // the time from an early one's put until it is in an unexpected block; otherwise 0
  int64_t time_ps = 0;  // the time from its put (an early one: from its receive) until the program has the message
  int64_t host_busy_ps = 0;  // the part of time_ps in which the host worked, for an early one; otherwise 0
};

struct MixResult {
  std::vector<MixedMessage> messages;  // the order is the seed's; in a window, early ones were put first
  strategies::ReceiveCache::Statistics statistics;
  std::vector<uint64_t> nic_bytes;  // one for each type: the most that one receive of it held
  uint64_t nic_memory_peak_bytes = 0;
  std::vector<uint8_t> destinations;  // all bytes of all destinations, in the order of messages; the caller hashes them
};

[[nodiscard]] Result<MixResult> run_mix(const MixConfig& config);

}  // namespace spinloom::app
