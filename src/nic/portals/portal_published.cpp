// Entries that peers use without the NIC (publication.hpp).
#include <utility>
#include <vector>

#include "nic/portals/portal_table.hpp"

namespace spinloom::nic {

// True if a message that lies in the entry as a whole needs no decision, and makes no event.
bool PortalTable::is_plain(const Portal& portal, const ListedEntry& listed) const {
  const Entry& entry = listed.entry;
  const EntryOptions& options = entry.options;
  const bool is_silent = options.event_comm_disable || !queues_.exists(portal.queue) ||
                         (options.event_success_disable && !portal.flow_control);
  return is_silent && !options.host_activated && !options.manage_local && !options.use_once &&
         !entry.context.exists() && entry.iovec.empty() &&
         (!options.ct_comm || triggers_.only_adds_for_long(entry.counter));
}

std::vector<PlainEntry> PortalTable::publish(PortalIndex index, uint32_t most) {
  std::vector<PlainEntry> plain;
  Portal* const portal = portals_.find(index);
  if (publisher_ == nullptr || portal == nullptr || !portal->enabled) return plain;
  uint32_t found = 0;
  portal->priority.for_each_while([&](uint32_t slot) {
    const bool counts = found < most && is_plain(*portal, entries_[slot]);
    found += counts ? 1 : 0;
    return counts && found <= portal->published;
  });
  if (found <= portal->published || !close(*portal)) return plain;
  bool one_may_come_back = false;  // an entry may be linked again before those that are in the list now
  entries_.for_each([&](uint32_t, const ListedEntry& listed) {
    one_may_come_back |= listed.portal == index && listed.auto_unlinked && listed.entry.context.exists();
  });
  if (one_may_come_back) return plain;
  portal->priority.for_each_while([&](uint32_t slot) {
    ListedEntry& listed = entries_[slot];
    if (plain.size() == most || !is_plain(*portal, listed)) return false;
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
