#include "nic/portals/match_list.hpp"

#include <algorithm>

namespace spinloom::nic {
namespace {

constexpr uint32_t close_up_least = 32;  // for few lines closing up costs more than it saves

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
  listed.place = static_cast<uint32_t>(lines_.size());
  if (listed.sequence >= last_sequence_) {
    last_sequence_ = listed.sequence;
    lines_.push_back(line);
    return;
  }
  close_up(slab);
  const auto later = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const Line& other) { return slab[other.slot].sequence > listed.sequence; });
  for (auto moved = later; moved != lines_.end(); ++moved) ++slab[moved->slot].place;
  listed.place = static_cast<uint32_t>(later - lines_.begin());
  lines_.insert(later, line);
}

void MatchList::unlink(Slab<ListedEntry>& slab, uint32_t slot) {
  ListedEntry& listed = slab[slot];
  SPL_ASSERT(listed.linked && listed.place < lines_.size(), "entry ", listed.id, " at ", listed.place);
  SPL_ASSERT(lines_[listed.place].slot == slot, "entry ", listed.id, ": slot ", lines_[listed.place].slot);
  listed.linked = false;
  lines_[listed.place].slot = no_slot;
  ++left_;
  while (first_ < lines_.size() && lines_[first_].slot == no_slot) {
    ++first_;
    --left_;
  }
  SPL_ASSERT(first_ + left_ <= lines_.size(), first_, " and ", left_, " of ", lines_.size());
  if (first_ + left_ >= size() + close_up_least) close_up(slab);
}

// Removes the lines of entries that have left.
void MatchList::close_up(Slab<ListedEntry>& slab) {
  const uint32_t linked = size();
  std::erase_if(lines_, [](const Line& line) { return line.slot == no_slot; });
  SPL_ASSERT(lines_.size() == linked, lines_.size(), " entries, not ", linked);
  for (uint32_t place = 0; place < lines_.size(); ++place) slab[lines_[place].slot].place = place;
  first_ = 0;
  left_ = 0;
}

uint32_t MatchList::find(const Slab<ListedEntry>& slab, const MatchKey& key, uint32_t& searched) const {
  const Line* const begin = lines_.data() + first_;
  const Line* const end = lines_.data() + lines_.size();
  for (const Line* line = begin; line != end; ++line) {
    const bool differs =
        (((line->bits ^ key.match_bits) & line->care) | ((line->rank ^ key.source.value) & line->rank_care)) != 0;
    if (differs) [[likely]] {  // without the hint, the compiler splits the loop in two
      continue;
    }
    if (line->slot == no_slot || !matches(slab[line->slot], key)) continue;
    const auto walked = static_cast<uint32_t>(line + 1 - begin);
    const auto has_left = [](const Line& other) { return other.slot == no_slot; };
    searched += left_ == 0 ? walked : walked - static_cast<uint32_t>(std::count_if(begin, line, has_left));
    return line->slot;
  }
  searched += size();
  return no_slot;
}

}  // namespace spinloom::nic
