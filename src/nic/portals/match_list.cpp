#include "nic/portals/match_list.hpp"

#include <algorithm>

namespace spinloom::nic {
namespace {

constexpr uint32_t compact_min = 32;  // closing up costs more than it saves for fewer lines

}  // namespace

bool matches(const ListedEntry& listed, const MatchKey& key) {
  const Entry& entry = listed.entry;
  if (entry.options.host_activated) return false;
  if (entry.match_rank != Rank::any() && entry.match_rank != key.source) return false;
  if ((key.match_bits | entry.ignore_bits) != (entry.match_bits | entry.ignore_bits)) return false;
  // An entry with a payload handler takes any length and offset, because the handler decides where bytes go.
  if (!entry.options.no_truncate || !listed.places_payload) return true;
  const uint64_t offset = entry.options.manage_local ? listed.local_offset : key.remote_offset;
  return offset <= entry.length && key.length <= entry.length - offset;
}

void MatchList::link(Slab<ListedEntry>& slab, uint32_t slot) {
  ListedEntry& listed = slab[slot];
  SPL_ASSERT(!listed.linked, "entry ", listed.id);
  const Rank rank = listed.entry.match_rank;
  const Line line{listed.entry.match_bits, ~listed.entry.ignore_bits, rank.value, rank == Rank::any() ? 0 : UINT32_MAX,
                  slot};
  listed.linked = true;
  listed.line_index = static_cast<uint32_t>(lines_.size());
  if (listed.sequence >= last_sequence_) {
    last_sequence_ = listed.sequence;
    lines_.push_back(line);
    return;
  }
  compact(slab);
  const auto later = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& other) { return slab[other.slot].sequence > listed.sequence; });
  for (auto moved = later; moved != lines_.end(); ++moved) ++slab[moved->slot].line_index;
  listed.line_index = static_cast<uint32_t>(later - lines_.begin());
  lines_.insert(later, line);
}

void MatchList::unlink(Slab<ListedEntry>& slab, uint32_t slot) {
  ListedEntry& listed = slab[slot];
  SPL_ASSERT(listed.linked && listed.line_index < lines_.size(), "entry ", listed.id, " at ", listed.line_index);
  SPL_ASSERT(lines_[listed.line_index].slot == slot, "entry ", listed.id, ": slot ", lines_[listed.line_index].slot);
  listed.linked = false;
  lines_[listed.line_index].slot = no_slot;
  ++vacant_;
  while (first_ < lines_.size() && lines_[first_].slot == no_slot) {
    ++first_;
    --vacant_;
  }
  SPL_ASSERT(first_ + vacant_ <= lines_.size(), first_, " and ", vacant_, " of ", lines_.size());
  if (first_ + vacant_ >= size() + compact_min) compact(slab);
}

// Removes the lines of entries that have left.
void MatchList::compact(Slab<ListedEntry>& slab) {
  const uint32_t linked = size();
  std::erase_if(lines_, [](const Line& line) { return line.slot == no_slot; });
  SPL_ASSERT(lines_.size() == linked, lines_.size(), " entries, not ", linked);
  for (uint32_t index = 0; index < lines_.size(); ++index) slab[lines_[index].slot].line_index = index;
  first_ = 0;
  vacant_ = 0;
}

uint32_t MatchList::find(const Slab<ListedEntry>& slab, const MatchKey& key, uint32_t& searched) const {
  const Line* const begin = lines_.data() + first_;
  const Line* const end = lines_.data() + lines_.size();
  for (const Line* line = begin; line != end; ++line) {
    const bool differs = (((line->match_bits ^ key.match_bits) & line->match_mask) |
                          ((line->rank ^ key.source.value) & line->rank_mask)) != 0;
    if (differs) [[likely]] {  // the compiler splits the loop in two without the hint
      continue;
    }
    if (line->slot == no_slot || !matches(slab[line->slot], key)) continue;
    const auto walked = static_cast<uint32_t>(line + 1 - begin);
    const auto has_left = [](const Line& other) { return other.slot == no_slot; };
    searched += vacant_ == 0 ? walked : walked - static_cast<uint32_t>(std::count_if(begin, line, has_left));
    return line->slot;
  }
  searched += size();
  return no_slot;
}

}  // namespace spinloom::nic
