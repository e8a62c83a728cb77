// The list that matching walks, and the index of messages, each compared with a plain one.
#include "nic/portals/match_list.hpp"

#include <algorithm>
#include <map>

#include "nic/portals/testing/nic_bench.hpp"
#include "nic/spin/message_index.hpp"

namespace spinloom::nic {
namespace {

// Entries leave from anywhere and come back to their places. The first match and the number compared are those of a
// walk from the front.
TEST(MatchList, WalksAsAPlainListDoes) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  for (int round = 0; round < 20; ++round) {
    Slab<ListedEntry> slab;
    MatchList list;
    std::vector<uint32_t> linked;  // the order is that of sequence
    std::vector<uint32_t> away;
    uint64_t sequence = 0;
    const auto earlier = [&](uint32_t a, uint32_t b) { return slab[a].sequence < slab[b].sequence; };
    const auto link = [&](uint32_t slot) {
      list.link(slab, slot);
      linked.insert(std::lower_bound(linked.begin(), linked.end(), slot, earlier), slot);
    };
    const uint64_t growth = 30 + random.below(60);  // percent of the steps that append
    for (int step = 0; step < 400; ++step) {
      const uint64_t kind = random.below(100);
      if (kind < growth) {
        const uint32_t slot = slab.take();
        Entry& entry = slab[slot].entry;
        entry.match_bits = random.below(8);
        entry.ignore_bits = random.below(4) == 0 ? random.below(8) : 0;
        if (random.below(3) == 0) entry.match_rank = Rank{static_cast<uint32_t>(random.below(3))};
        entry.options.host_activated = random.below(20) == 0;
        slab[slot].sequence = ++sequence;
        link(slot);
      } else if (kind < 95 && !linked.empty()) {
        const size_t at = random.below(3) == 0 ? random.below(linked.size()) : 0;
        const uint32_t slot = linked[at];
        list.unlink(slab, slot);
        linked.erase(linked.begin() + static_cast<ptrdiff_t>(at));
        away.push_back(slot);
      } else if (!away.empty()) {
        link(away.back());
        away.pop_back();
      }
      ASSERT_EQ(list.size(), linked.size());
      MatchKey key;
      key.source = Rank{static_cast<uint32_t>(random.below(3))};
      key.match_bits = random.below(9);
      const auto first =
          std::find_if(linked.begin(), linked.end(), [&](uint32_t slot) { return matches(slab[slot], key); });
      const auto compared = static_cast<uint32_t>(first - linked.begin() + (first == linked.end() ? 0 : 1));
      uint32_t searched = 5;
      ASSERT_EQ(list.find(slab, key, searched), first == linked.end() ? no_slot : *first);
      ASSERT_EQ(searched, 5 + compared);
    }
  }
}

TEST(MessageIndex, FindsWhatIsInIt) {
  const uint64_t seed = test_seed();
  SCOPED_TRACE(replay(seed));
  Random random(seed);
  MessageIndex<Rank> index;
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> plain;
  for (int step = 0; step < 20000; ++step) {
    const auto source = static_cast<uint32_t>(random.below(8));
    const uint64_t message = random.below(16) << 32 | random.below(4);
    const auto found = plain.find({source, message});
    ASSERT_EQ(index.find(Rank{source}, message), found == plain.end() ? no_slot : found->second);
    if (found == plain.end()) {
      plain[{source, message}] = static_cast<uint32_t>(step);
      index.add(Rank{source}, message, static_cast<uint32_t>(step));
    } else if (random.below(3) > 0) {
      plain.erase(found);
      index.remove(Rank{source}, message);
    }
    ASSERT_EQ(index.size(), plain.size());
  }
  EXPECT_THROW(index.remove(Rank{9}, 0), InternalError);
}

}  // namespace
}  // namespace spinloom::nic
