#include "memory/layout/plain_list.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/limits.hpp"
#include "memory/layout/kernel.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/passes.hpp"

namespace spinloom::layout {
namespace {

// Returns how many blocks may touch the one before in a list that stays a list. With keep_lists: every kernel set
// copies a list of blocks of these lengths faster than its merged runs as long as no more than 70 % of the blocks
// touch. A table of runs takes two words a run, so that it is the smaller one if half of the blocks touch, or more. At
// five eighths the list is larger by a third.
int64_t touching_max(int64_t entries, int64_t block, bool keep_lists) {
  if (keep_lists && block % 4 == 0 && block <= 16) return entries * 5 / 8;
  return entries >= long_list_min ? entries / few_touch_share - 1 : 0;
}

// Returns the length of all blocks in elements; 0 where they have several lengths.
int64_t common_length(const TypeNode& node) {
  const std::vector<int64_t>& lengths = node.block_lengths;
  if (lengths.empty()) return node.block_length;
  return std::all_of(lengths.begin(), lengths.end(), [&](int64_t length) { return length == lengths[0]; }) ? lengths[0]
                                                                                                           : 0;
}

// The table of a plain list. Filling it finds out whether the list is plain.
template <class W>
class PlainTable {
 public:
  using S = typename W::Signed;
  using U = typename W::Unsigned;

  PlainTable(const PlainList& list, std::byte* to) : list_(list), to_(to), first_(place(0)) {}

  // Fills in blocks of one length, for which only offsets are kept. False: the list is not plain.
  bool fill_equal(int64_t block, bool keep_lists) {
    auto* const offsets = reinterpret_cast<S*>(to_);
    const int64_t count = list_.node->displacements.size();
    const int64_t touching_limit = touching_max(count, block, keep_lists);
    bool regular = true;
    int64_t before = first_ - block - 1;  // chosen so that the first block touches nothing
    int64_t step = 0;
    int64_t touching = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t here = place(i);
      touching += here - before == block ? 1 : 0;
      if (touching > touching_limit) return false;
      regular = regular && (i < 2 || here - before == step);
      step = here - before;
      offsets[i] = static_cast<S>(here - first_);
      before = here;
    }
    return !regular && (touching == 0 || (count - touching > struct_runs_max && !merges_evenly(block)));
  }

  // Fills in blocks of several lengths, and the entry that closes the prefix sums. False: the list is not plain.
  bool fill_runs() {
    auto* const runs = reinterpret_cast<typename W::Run*>(to_);
    const int64_t* const lengths = list_.node->block_lengths.data();
    const int64_t count = list_.node->displacements.size();
    int64_t end = first_ - 1;  // end of the block before; chosen so that the first block touches nothing
    U start = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t here = place(i);
      const int64_t bytes = lengths[i] * list_.element;
      if (bytes == 0 || here == end) return false;
      runs[i] = {static_cast<S>(here - first_), start};
      start += static_cast<U>(bytes);
      end = here + bytes;
    }
    runs[count] = {0, start};
    return true;
  }

  [[nodiscard]] int64_t first() const { return first_; }

 private:
  [[nodiscard]] int64_t place(int64_t i) const { return list_.node->displacements[i] * list_.unit; }

  // True if the blocks, merged, would be a list of equal blocks again, but a shorter one.
  [[nodiscard]] bool merges_evenly(int64_t block) const {
    const auto* const offsets = reinterpret_cast<const S*>(to_);
    const int64_t count = list_.node->displacements.size();
    int64_t wanted = 0;  // blocks of the first run
    int64_t run = 1;
    for (int64_t i = 1; i < count; ++i) {
      if (offsets[i] - offsets[i - 1] == block) {
        ++run;
        continue;
      }
      if (wanted == 0) wanted = run;
      if (run != wanted) return false;
      run = 1;
    }
    return run == wanted;
  }

  const PlainList& list_;
  std::byte* to_;
  int64_t first_;
};

}  // namespace

std::optional<PlainList> plain_list(const Type& type) {
  const TypeNode* node = &type.node();
  while (node->combiner == Combiner::dup || node->combiner == Combiner::resized) node = &node->children[0].node();
  const bool in_extents = node->combiner == Combiner::indexed || node->combiner == Combiner::indexed_block;
  if (!in_extents && node->combiner != Combiner::hindexed && node->combiner != Combiner::hindexed_block) return {};
  if (node->displacements.size() < 2 || node->size == 0) return {};
  const Type& child = node->children[0];
  if (child.node().depth > 1) return {};  // a deeper child may itself be large
  const PlacedNest element = normalise(child);
  if (element.empty() || !element.nest->is_run() || element.nest->block != child.extent()) return {};
  return PlainList{node, in_extents ? child.extent() : 1, child.extent(), element.displacement};
}

template <class W>
std::optional<Words> write_plain_list(const Type& type, const PlainList& list, bool keep_lists) {
  const int64_t length = common_length(*list.node);
  const bool has_runs = length == 0;
  NodeFields fields;
  fields.kind = has_runs ? NestKind::runs : NestKind::list;
  fields.count = list.node->displacements.size();
  fields.size = type.size();
  fields.block = length * list.element;
  fields.table = fields.count + (has_runs ? 1 : 0);
  const int64_t entry_bytes = has_runs ? sizeof(typename W::Run) : sizeof(typename W::Signed);
  constexpr auto table_at = static_cast<int64_t>(sizeof(spl_layout_header) + sizeof(typename W::Node));
  const int64_t bytes = table_at + padded(fields.table * entry_bytes);
  if (bytes > limits::blob_bytes_max) return {};
  Words words = allocate_words(bytes);
  words[static_cast<size_t>(bytes) / sizeof(uint64_t) - 1] = 0;  // the padding
  auto* const to = reinterpret_cast<std::byte*>(words.get());
  PlainTable<W> table(list, to + table_at);
  if (!(has_runs ? table.fill_runs() : table.fill_equal(fields.block, keep_lists))) return {};
  const spl_layout_header header = header_of<W>(type, table.first() + list.displacement, 1, 1, bytes);
  const typename W::Node node = node_of<W>(fields);
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + sizeof(header), &node, sizeof(node));
  return words;
}

template std::optional<Words> write_plain_list<Narrow>(const Type& type, const PlainList& list, bool keep_lists);
template std::optional<Words> write_plain_list<Wide>(const Type& type, const PlainList& list, bool keep_lists);

}  // namespace spinloom::layout
