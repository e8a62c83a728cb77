#include "nic/match_list.hpp"

namespace spinloom::nic {

bool matches(const ListedEntry& listed, const MatchKey& key) {
  const Entry& entry = listed.entry;
  if (entry.options.host_activated) return false;
  if (entry.match_rank != Rank::any() && entry.match_rank != key.source) return false;
  if ((key.match_bits | entry.ignore_bits) != (entry.match_bits | entry.ignore_bits)) return false;
  // A payload handler decides where bytes go, so that length and offset say nothing about its room.
  if (!entry.options.no_truncate || !listed.places_payload) return true;
  const uint64_t offset = entry.options.manage_local ? listed.local_offset : key.remote_offset;
  return offset <= entry.length && key.length <= entry.length - offset;
}

void MatchList::link(Slab<ListedEntry>& slab, uint32_t slot) {
  ListedEntry& listed = slab[slot];
  SPL_ASSERT(!listed.linked, "entry ", listed.id);
  uint32_t successor = no_slot;
  if (listed.sequence < last_sequence_) {
    successor = list_.first();
    while (successor != no_slot && slab[successor].sequence < listed.sequence) successor = slab[successor].next;
  } else {
    last_sequence_ = listed.sequence;
  }
  list_.insert_before(slab, slot, successor);
  listed.linked = true;
}

void MatchList::unlink(Slab<ListedEntry>& slab, uint32_t slot) {
  SPL_ASSERT(slab[slot].linked, "entry ", slab[slot].id);
  list_.remove(slab, slot);
  slab[slot].linked = false;
}

uint32_t MatchList::find(const Slab<ListedEntry>& slab, const MatchKey& key, uint32_t& searched) const {
  for (uint32_t slot = list_.first(); slot != no_slot; slot = slab[slot].next) {
    ++searched;
    if (matches(slab[slot], key)) return slot;
  }
  return no_slot;
}

}  // namespace spinloom::nic
