// Entries that peers use without the NIC (publication.hpp).
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "nic/portals/portal_table.hpp"

namespace spinloom::nic {

// True if a message that lies in the entry as a whole needs no decision, and makes no event. Flow control decides about
// every message.
bool PortalTable::is_plain(const Portal& portal, const ListedEntry& listed) const {
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  const bool is_silent = options.event_comm_disable || options.event_success_disable || !queues_.exists(portal.queue);
  return is_silent && !portal.flow_control && !options.host_activated && !options.manage_local && !options.use_once &&
         !entry.context.exists() && entry.iovec.empty() &&
         (!options.ct_comm || !entry.counter.exists() || triggers_.only_adds_for_long(entry.counter));
}

// Entries are linked in the order of their appends. One that waits for its context, or may be linked again, comes
// between those that are in the list: returns the place of the first such.
uint64_t PortalTable::first_to_be_linked(PortalIndex index) const {
  uint64_t first = UINT64_MAX;
  if (!contexts_.any()) return first;
  entries_.for_each([&](uint32_t, const ListedEntry& listed) {
    const bool may_come = listed.awaits_context || (listed.auto_unlinked && listed.entry.context.exists());
    if (listed.portal == index && may_come) first = std::min(first, listed.sequence);
  });
  return first;
}

std::vector<PlainEntry> PortalTable::publish(PortalIndex index, uint32_t most) {
  std::vector<PlainEntry> plain;
  Portal* const portal = portals_.find(index);
  if (publisher_ == nullptr || portal == nullptr || !portal->enabled) return plain;
  const auto has_more_before = [&](uint64_t sequence) {
    uint32_t found = 0;
    portal->priority.for_each_while([&](uint32_t slot) {
      const ListedEntry& listed = entries_[slot];
      const bool counts = found < most && listed.sequence < sequence && is_plain(*portal, listed);
      found += counts ? 1 : 0;
      return counts && found <= portal->published;
    });
    return found > portal->published;
  };
  if (!has_more_before(UINT64_MAX)) return plain;  // all entries are looked through only where it matters
  const uint64_t end = first_to_be_linked(index);
  if (!has_more_before(end) || !close(*portal)) return plain;
  portal->priority.for_each_while([&](uint32_t slot) {
    ListedEntry& listed = entries_[slot];
    if (plain.size() == most || listed.sequence >= end || !is_plain(*portal, listed)) return false;
    const Entry& entry = listed.entry;
    const EntryOptions& options = entry.options;
    plain.push_back({entry.start, entry.length, entry.match_bits, entry.ignore_bits, entry.match_rank, entry.user,
                     options.op_put, options.op_get, options.ack_disable, options.ct_bytes,
                     options.ct_comm ? entry.counter : CounterId{}});
    listed.is_published = true;
    return true;
  });
  portal->published = static_cast<uint32_t>(plain.size());
  return plain;
}

// Ends the publication of a portal's entries. False: a peer does not leave, and nothing has changed.
bool PortalTable::close(Portal& portal) {
  if (portal.published == 0) return true;
  if (!publisher_->close(portal.index)) return false;
  portal.published = 0;
  portal.priority.for_each_while([&](uint32_t slot) { return std::exchange(entries_[slot].is_published, false); });
  return true;
}

bool PortalTable::close_counting(CounterId counter) {
  if (publisher_ == nullptr) return true;
  bool closed = true;
  entries_.for_each([&](uint32_t, const ListedEntry& listed) {
    if (!listed.is_published || !listed.entry.options.ct_comm || listed.entry.counter != counter) return;
    closed = close(*portals_.find(listed.portal)) && closed;
  });
  return closed;
}

}  // namespace spinloom::nic
