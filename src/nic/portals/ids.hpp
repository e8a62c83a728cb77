// Ids - the names under which the host and the NIC speak of NIC objects.
//
// Contract: the ids of nic/spin/ids.hpp, which are names of this NIC, too, and those of Portals. The host picks the ids
//   of contexts, portal table entries, entries, queues, counters and streams; the engine picks those of HERs and DMAs.
// Invariants: ids of entries, queues and counters have a generation beside their index. So a name of an object that is
//   gone (in an entry, in a waiting command) never means the next object with that index.
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
