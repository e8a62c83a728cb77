#include "layout/plain_list.hpp"

#include <cstring>

#include "base/limits.hpp"
#include "layout/normalise.hpp"
#include "layout/passes.hpp"

namespace spinloom::layout {
namespace {

// The table of a plain list. Filling it finds out whether the list is plain.
template <class W>
class Table {
 public:
  using S = typename W::Signed;
  using U = typename W::Unsigned;

  Table(const PlainList& list, std::byte* to) : list_(list), to_(to), first_(place(0)) {}

  // Fills in blocks of one length, for which only offsets are kept.
  bool fill_equal(int64_t block) {
    auto* const offsets = reinterpret_cast<S*>(to_);
    const int64_t count = list_.node->displacements.size();
    const int64_t touching_end = count >= long_list_min ? count / few_touch_share : 1;
    bool regular = true;
    int64_t before = first_ - block - 1;  // chosen so that the first block touches nothing
    int64_t step = 0;
    int64_t touching = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t here = place(i);
      if (here - before == block && ++touching >= touching_end) return false;
      regular = regular && (i < 2 || here - before == step);
      step = here - before;
      offsets[i] = static_cast<S>(here - first_);
      before = here;
    }
    return !regular;
  }

  // Fills in blocks of several lengths, and the entry that closes the prefix sums.
  bool fill_runs() {
    auto* const runs = reinterpret_cast<typename W::Run*>(to_);
    const int64_t* const lengths = list_.node->block_lengths.data();
    const int64_t count = list_.node->displacements.size();
    bool equal = true;
    int64_t end = first_ - 1;  // end of the block before; chosen so that the first block touches nothing
    U start = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t here = place(i);
      const int64_t bytes = lengths[i] * list_.element;
      if (bytes == 0 || here == end) return false;
      equal = equal && lengths[i] == lengths[0];
      runs[i] = {static_cast<S>(here - first_), start};
      start += static_cast<U>(bytes);
      end = here + bytes;
    }
    runs[count] = {0, start};
    return !equal;
  }

  [[nodiscard]] int64_t first() const { return first_; }

 private:
  [[nodiscard]] int64_t place(int64_t i) const { return list_.node->displacements[i] * list_.unit; }

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
  const Placed element = normalise(child);
  if (element.empty() || !element.nest->is_run() || element.nest->block != child.extent()) return {};
  return PlainList{node, in_extents ? child.extent() : 1, child.extent(), element.displacement};
}

template <class W>
std::optional<Words> write_plain_list(const Type& type, const PlainList& list) {
  const bool runs = !list.node->block_lengths.empty();
  NodeFields fields;
  fields.kind = runs ? NestKind::runs : NestKind::list;
  fields.count = list.node->displacements.size();
  fields.size = type.size();
  fields.block = runs ? 0 : list.node->block_length * list.element;
  fields.table = fields.count + (runs ? 1 : 0);
  const int64_t entry_bytes = runs ? sizeof(typename W::Run) : sizeof(typename W::Signed);
  constexpr auto table_at = static_cast<int64_t>(sizeof(spl_layout_header) + sizeof(typename W::Node));
  const int64_t bytes = table_at + padded(fields.table * entry_bytes);
  if (bytes > limits::blob_bytes_max) return {};
  Words words = words_for(bytes);
  words[static_cast<size_t>(bytes) / sizeof(uint64_t) - 1] = 0;  // the padding
  auto* const to = reinterpret_cast<std::byte*>(words.get());
  Table<W> table(list, to + table_at);
  if (!(runs ? table.fill_runs() : table.fill_equal(fields.block))) return {};
  const spl_layout_header header = header_of<W>(type, table.first() + list.displacement, 1, 1, bytes);
  const typename W::Node node = node_of<W>(fields);
  std::memcpy(to, &header, sizeof(header));
  std::memcpy(to + sizeof(header), &node, sizeof(node));
  return words;
}

template std::optional<Words> write_plain_list<Narrow>(const Type& type, const PlainList& list);
template std::optional<Words> write_plain_list<Wide>(const Type& type, const PlainList& list);

}  // namespace spinloom::layout
