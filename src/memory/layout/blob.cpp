#include "memory/layout/blob.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/checked.hpp"
#include "memory/layout/blob_write.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/plain_list.hpp"

namespace spinloom::layout {
namespace {

constexpr int64_t narrow_bytes_max = std::numeric_limits<int32_t>::max();

static_assert(sizeof(spl_layout_header) == 72 && sizeof(spl_node_narrow) == 40 && sizeof(spl_node_wide) == 64,
              "docs/formats/layout.md gives these sizes");

// A nest whose children are numbers of other entries, so that equal nests are found and written once.
struct Entry {
  const Nest* nest = nullptr;
  std::vector<uint32_t> children;
};

class Interner {
 public:
  // The root is never looked up: it is larger than all that it holds, so nothing equals it, and its list is often the
  // longest.
  void add_root(const NestPtr& nest) { entries.push_back(entry_of(nest)); }

  std::vector<Entry> entries;

 private:
  // Children get smaller numbers than their parents.
  Entry entry_of(const NestPtr& nest) {
    Entry entry{nest.get(), {}};
    entry.children.reserve(nest->children.size());
    for (const NestPtr& child : nest->children) entry.children.push_back(add(child));
    return entry;
  }

  uint32_t add(const NestPtr& nest) {
    if (const auto found = by_address_.find(nest.get()); found != by_address_.end()) return found->second;
    Entry entry = entry_of(nest);
    const uint64_t hash = hash_of(entry);
    const auto [from, to] = by_hash_.equal_range(hash);
    for (auto candidate = from; candidate != to; ++candidate) {
      if (equal(entries[candidate->second], entry)) {
        by_address_.emplace(nest.get(), candidate->second);
        return candidate->second;
      }
    }
    const auto number = static_cast<uint32_t>(entries.size());
    entries.push_back(std::move(entry));
    by_hash_.emplace(hash, number);
    by_address_.emplace(nest.get(), number);
    return number;
  }

  static uint64_t hash_of(const Entry& entry) {
    uint64_t hash = 0xcbf29ce484222325u;
    const auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3u; };
    const Nest& nest = *entry.nest;
    mix(static_cast<uint64_t>(nest.kind));
    mix(static_cast<uint64_t>(nest.count));
    mix(static_cast<uint64_t>(nest.size));
    mix(static_cast<uint64_t>(nest.stride));
    for (const int64_t offset : nest.offsets) mix(static_cast<uint64_t>(offset));
    for (const uint32_t child : entry.children) mix(child);
    return hash;
  }

  static bool equal(const Entry& a, const Entry& b) {
    return a.nest->kind == b.nest->kind && a.nest->count == b.nest->count && a.nest->size == b.nest->size &&
           a.nest->block == b.nest->block && a.nest->stride == b.nest->stride && a.nest->offsets == b.nest->offsets &&
           a.nest->lengths == b.nest->lengths && a.children == b.children;
  }

  std::unordered_map<const Nest*, uint32_t> by_address_;
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

int64_t table_entries(const Nest& nest) {
  switch (nest.kind) {
    case NestKind::vector:
    case NestKind::loop: return 0;
    case NestKind::list:
    case NestKind::child_list: return nest.count;
    case NestKind::runs:
    case NestKind::members: return nest.count + 1;
  }
  return 0;
}

template <class W>
int64_t bytes_of(const Nest& nest) {
  const int64_t entry_bytes = nest.kind == NestKind::runs      ? sizeof(typename W::Run)
                              : nest.kind == NestKind::members ? sizeof(typename W::Member)
                                                               : sizeof(typename W::Signed);
  return padded(static_cast<int64_t>(sizeof(typename W::Node)) + table_entries(nest) * entry_bytes);
}

template <class W>
void write_node(std::byte* to, const Entry& entry, const std::vector<uint32_t>& places,
                const std::vector<Entry>& entries) {
  using U = typename W::Unsigned;
  using S = typename W::Signed;
  const Nest& nest = *entry.nest;
  const bool has_one_child = nest.kind == NestKind::loop || nest.kind == NestKind::child_list;
  const typename W::Node node = node_of<W>({nest.kind, nest.count, nest.size, nest.block, nest.stride,
                                            has_one_child ? places[entry.children[0]] : 0, table_entries(nest)});
  std::memcpy(to, &node, sizeof(node));
  to += sizeof(node);
  const size_t count = nest.offsets.size();
  if (nest.kind == NestKind::runs) {
    auto* const runs = reinterpret_cast<typename W::Run*>(to);
    U start = 0;
    for (size_t i = 0; i < count; ++i) {
      runs[i] = {static_cast<S>(nest.offsets[i]), start};
      start += static_cast<U>(nest.lengths[i]);
    }
    runs[count] = {0, start};
  } else if (nest.kind == NestKind::members) {
    auto* const members = reinterpret_cast<typename W::Member*>(to);
    U start = 0;
    for (size_t i = 0; i < count; ++i) {
      members[i] = {static_cast<S>(nest.offsets[i]), start, static_cast<U>(places[entry.children[i]])};
      start += static_cast<U>(entries[entry.children[i]].nest->size);
    }
    members[count] = {0, start, 0};
  } else {
    auto* const offsets = reinterpret_cast<S*>(to);
    for (size_t i = 0; i < count; ++i) offsets[i] = static_cast<S>(nest.offsets[i]);
  }
}

template <class W>
Result<Words> write_blob(const Type& type, const PlacedNest& placed) {
  Interner interner;
  static const Nest nothing{};  // the root of an empty type: a vector of no runs
  if (placed.empty()) {
    interner.entries.push_back({&nothing, {}});
  } else {
    interner.add_root(placed.nest);
  }
  const std::vector<Entry>& entries = interner.entries;
  // The root was numbered last and is written first; every child is written behind its parents.
  std::vector<uint32_t> places(entries.size());
  int64_t bytes = sizeof(spl_layout_header);
  for (size_t i = entries.size(); i-- > 0;) {
    places[i] = static_cast<uint32_t>(bytes);
    bytes += bytes_of<W>(*entries[i].nest);
    if (bytes > limits::blob_bytes_max) {
      return fail(Code::overflow, "the blob of this type exceeds blob_bytes_max = ", limits::blob_bytes_max);
    }
  }
  const int64_t origin = placed.empty() ? type.true_lb() : placed.displacement;
  const int64_t depth = placed.empty() ? 1 : placed.nest->depth;
  const spl_layout_header header = header_of<W>(type, origin, depth, entries.size(), bytes);
  Words words = allocate_words(bytes);
  auto* const to = reinterpret_cast<std::byte*>(words.get());
  std::memcpy(to, &header, sizeof(header));
  for (size_t i = 0; i < entries.size(); ++i) {
    words[(places[i] + bytes_of<W>(*entries[i].nest)) / sizeof(uint64_t) - 1] = 0;  // the padding
    write_node<W>(to + places[i], entries[i], places, entries);
  }
  return words;
}

bool fits_narrow(int64_t size, int64_t extent, int64_t true_extent, int64_t count) {
  const unsigned __int128 step = extent < 0 ? -static_cast<__int128>(extent) : static_cast<__int128>(extent);
  const auto steps = static_cast<unsigned __int128>(count > 0 ? count - 1 : 0);
  const auto packed = static_cast<unsigned __int128>(size) * static_cast<unsigned __int128>(count);
  return size <= narrow_bytes_max && true_extent <= narrow_bytes_max && packed <= narrow_bytes_max &&
         steps * step + static_cast<unsigned __int128>(true_extent) <= narrow_bytes_max;
}

}  // namespace

Result<Blob> Blob::build(const Type& type, BlobOptions options) {
  if (options.count < 0) return fail(Code::invalid, "count is ", options.count, ", it must not be negative");
  const bool fits = fits_narrow(type.size(), type.extent(), type.true_extent(), options.count);
  if (options.width == Width::narrow && !fits) {
    return fail(Code::overflow, options.count, " elements of ", type.size(), " bytes, extent ", type.extent(),
                ", true extent ", type.true_extent(), " exceed the 2^31 bytes of a narrow blob; choose the wide one");
  }
  const bool narrow = options.width == Width::narrow || (options.width == Width::automatic && fits);
  if (const auto list = plain_list(type)) {
    std::optional<Words> words = narrow ? write_plain_list<Narrow>(type, *list, options.keep_lists)
                                        : write_plain_list<Wide>(type, *list, options.keep_lists);
    if (words) return Blob(std::move(*words));
  }
  const PlacedNest placed = normalise(type);
  SPL_ASSERT((placed.empty() ? 0 : placed.nest->size) == type.size(), describe(placed), " for a type of ", type.size());
  if (!placed.empty() && placed.nest->depth > limits::blob_depth_max) {
    return fail(Code::overflow, "the type needs ", placed.nest->depth, " levels after normalisation, more than ",
                "blob_depth_max = ", limits::blob_depth_max);
  }
  SPL_ASSIGN(Words words, narrow ? write_blob<Narrow>(type, placed) : write_blob<Wide>(type, placed));
  return Blob(std::move(words));
}

uint32_t Blob::root_kind() const {
  uint32_t kind = 0;
  std::memcpy(&kind, data() + sizeof(spl_layout_header), sizeof(kind));
  return kind;
}

bool Blob::narrow_reaches(int64_t count) const {
  return is_narrow() && fits_narrow(size(), extent(), true_extent(), count);
}

}  // namespace spinloom::layout
