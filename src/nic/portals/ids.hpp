// Ids - the names under which the host and the NIC speak of NIC objects.
//
// Contract: those of nic/spin/ids.hpp, and those of Portals. The host's floor (portals) picks the ids of entries,
//   queues and counters, the engine the ids of HERs and DMAs. The names of sPIN are names of this NIC, too.
// Invariants: an id that the host picks has a generation beside its index. So a name of an object that is gone (in an
//   entry, in a waiting command) never means the next object with that index.
// Threads: plain values. Time: none.
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>

#include "nic/spin/ids.hpp"

namespace spinloom::nic {

using namespace spin;

using PortalIndex = Id<struct PortalTag>;
using EntryId = Id<struct EntryTag, Reuse::next_generation>;
using QueueId = Id<struct QueueTag, Reuse::next_generation>;
using CounterId = Id<struct CounterTag, Reuse::next_generation>;
using StreamId = Id<struct StreamTag>;  // a streaming put

// An entry with this user may be accessed by all users.
inline constexpr uint32_t any_user = UINT32_MAX;

}  // namespace spinloom::nic
