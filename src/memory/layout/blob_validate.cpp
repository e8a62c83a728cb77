// Validation of blobs from outside: everything a walker relies on is checked once, here.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "memory/layout/blob.hpp"
#include "memory/layout/reciprocal.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {
namespace {

using Int128 = __int128;

template <class... Parts>
Error invalid_blob(const Parts&... parts) {
  return fail(Code::invalid, "blob: ", parts...);
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <class W>
class Checker {
 public:
  Checker(const std::byte* blob, const spl_layout_header& header) : blob_(blob), header_(header) {}

  Status check() {
    SPL_TRY(check_header());
    SPL_TRY(find_nodes());
    if (header_.size == 0) return check_empty();
    for (size_t i = places_.size(); i-- > 0;) SPL_TRY(check_node(i));
    for (size_t i = 1; i < places_.size(); ++i) {
      if (!node_facts_[i].has_parent) return invalid_blob("the node at byte ", places_[i], " has no parent");
    }
    const NodeFacts& root = node_facts_[0];
    if (root.size != Int128{header_.size}) return invalid_blob("the root's size is not the header's ", header_.size);
    if (root.depth != header_.depth)
      return invalid_blob("depth ", root.depth, ", the header says ", int{header_.depth});
    if (root.first + header_.origin != 0 || root.last + header_.origin != Int128{header_.true_extent}) {
      return invalid_blob("the root does not reach from 0 to the true extent ", header_.true_extent);
    }
    return {};
  }

 private:
  using U = typename W::Unsigned;
  using S = typename W::Signed;
  using Node = typename W::Node;

  struct NodeFacts {
    Int128 size = 0;
    Int128 first = 0;  // touched bytes, relative to the node's origin
    Int128 last = 0;
    int depth = 1;
    bool has_parent = false;
  };

  static constexpr uint64_t bytes_max = std::numeric_limits<S>::max();

  Status check_header() const {
    if (header_.size > bytes_max || header_.true_extent > bytes_max) {
      return invalid_blob("size ", header_.size, " and true extent ", header_.true_extent, " must fit in ", W::bits - 1,
                          " bits");
    }
    const Int128 last = Int128{header_.true_lb} + Int128{header_.true_extent};
    if (last > std::numeric_limits<int64_t>::max()) return invalid_blob("the true upper bound does not fit in 64 bits");
    if (header_.origin < 0 || static_cast<uint64_t>(header_.origin) > header_.true_extent) {
      return invalid_blob("origin ", header_.origin, " lies outside the true extent ", header_.true_extent);
    }
    const Reciprocal expected = Reciprocal::of(header_.size, W::bits);
    if (header_.size_reciprocal != expected.multiplier || header_.size_shift != expected.shift) {
      return invalid_blob("the header's reciprocal is not that of size ", header_.size);
    }
    if (header_.reserved != 0) return invalid_blob("the header's reserved field is ", header_.reserved);
    return {};
  }

  static uint64_t entry_bytes(uint32_t kind) {
    if (kind == SPL_LEAF_RUNS) return sizeof(typename W::Run);
    if (kind == SPL_NODE_MEMBERS) return sizeof(typename W::Member);
    return sizeof(S);
  }

  // Finds where the nodes start, and checks their kinds, the lengths of their tables and the padding. Later steps read
  // nothing outside the blob.
  Status find_nodes() {
    uint64_t at = sizeof(spl_layout_header);
    while (at < header_.bytes) {
      if (header_.bytes - at < sizeof(Node)) return invalid_blob("cut off in the node at byte ", at);
      const Node node = read<Node>(blob_ + at);
      if (node.kind > SPL_NODE_MEMBERS) return invalid_blob("unknown node kind ", node.kind, " at byte ", at);
      if (node.reserved != 0) return invalid_blob("the reserved field at byte ", at, " is not zero");
      const uint64_t closing_entries = node.kind == SPL_LEAF_RUNS || node.kind == SPL_NODE_MEMBERS ? 1 : 0;
      const bool has_table = node.kind != SPL_LEAF_VECTOR && node.kind != SPL_NODE_LOOP;
      const uint64_t expected = has_table ? uint64_t{node.count} + closing_entries : 0;
      if (expected != node.table || (has_table && node.count == 0)) {
        return invalid_blob("the node at byte ", at, " has count ", uint64_t{node.count}, " and ", node.table,
                            " table entries");
      }
      const uint64_t bytes = (sizeof(Node) + node.table * entry_bytes(node.kind) + 7) / 8 * 8;
      if (bytes > header_.bytes - at) return invalid_blob("cut off in the table at byte ", at);
      const uint64_t used_bytes = sizeof(Node) + node.table * entry_bytes(node.kind);
      for (uint64_t i = used_bytes; i < bytes; ++i) {
        if (blob_[at + i] != std::byte{0}) return invalid_blob("the padding at byte ", at + i, " is not zero");
      }
      places_.push_back(at);
      at += bytes;
    }
    if (places_.empty() || places_.size() != header_.nodes) {
      return invalid_blob(places_.size(), " nodes, the header says ", header_.nodes);
    }
    node_facts_.resize(places_.size());
    return {};
  }

  Status check_empty() const {
    const Node root = read<Node>(blob_ + places_[0]);
    const Node nothing{};
    if (header_.nodes != 1 || header_.depth != 1 || header_.origin != 0 || header_.true_extent != 0 ||
        std::memcmp(&root, &nothing, sizeof(Node)) != 0) {
      return invalid_blob("size 0 with nodes that hold bytes");
    }
    return {};
  }

  Result<size_t> child_of(size_t parent, uint64_t at) const {
    const auto found = std::lower_bound(places_.begin(), places_.end(), at);
    if (found == places_.end() || *found != at || at <= places_[parent]) {
      return invalid_blob("the child at byte ", at, " of the node at byte ", places_[parent], " is not a later node");
    }
    return static_cast<size_t>(found - places_.begin());
  }

  static void widen(NodeFacts& facts, bool& is_set, Int128 first, Int128 last) {
    facts.first = is_set ? std::min(facts.first, first) : first;
    facts.last = is_set ? std::max(facts.last, last) : last;
    is_set = true;
  }

  Status check_node(size_t i) {
    const uint64_t at = places_[i];
    const Node node = read<Node>(blob_ + at);
    const std::byte* table = blob_ + at + sizeof(Node);
    NodeFacts& facts = node_facts_[i];
    NodeFacts child{Int128{node.block}, 0, Int128{node.block}, 0, false};  // a run, unless there is a child node
    bool is_set = false;
    if (node.count == 0) return invalid_blob("the node at byte ", at, " has count 0");
    const bool has_variable_blocks = node.kind == SPL_LEAF_RUNS || node.kind == SPL_NODE_MEMBERS;
    const Reciprocal expected = Reciprocal::of(node.block > bytes_max ? 0 : uint64_t{node.block}, W::bits);
    if (node.block > bytes_max || (node.block == 0) != has_variable_blocks || node.reciprocal != expected.multiplier ||
        node.shift != expected.shift) {
      return invalid_blob("block ", uint64_t{node.block}, " of the node at byte ", at, " or its reciprocal is wrong");
    }
    const bool has_stride = node.kind == SPL_LEAF_VECTOR || node.kind == SPL_NODE_LOOP;
    const bool has_one_child = node.kind == SPL_NODE_LOOP || node.kind == SPL_NODE_LIST;
    if ((!has_stride || node.count == 1) && node.stride != 0) {
      return invalid_blob("the node at byte ", at,
                          " has a stride that leads nowhere");  // a copy must not step there either
    }
    if (!has_one_child && node.child != 0) return invalid_blob("the node at byte ", at, " has a child");
    if (has_one_child) {
      SPL_ASSIGN(const size_t index, child_of(i, node.child));
      node_facts_[index].has_parent = true;
      child = node_facts_[index];
      if (child.size != Int128{node.block})
        return invalid_blob("block of the node at byte ", at, " is not its child's size");
      facts.depth = child.depth + 1;
    }
    if (has_stride) {
      const Int128 last = (Int128{node.count} - 1) * Int128{node.stride};
      if (last > std::numeric_limits<int64_t>::max() || last < std::numeric_limits<int64_t>::min()) {
        return invalid_blob("the strides of the node at byte ", at, " do not fit");
      }
      widen(facts, is_set, child.first, child.last);
      widen(facts, is_set, last + child.first, last + child.last);
      facts.size = Int128{node.count} * Int128{node.block};
    } else if (node.kind == SPL_LEAF_LIST || node.kind == SPL_NODE_LIST) {
      for (U k = 0; k < node.count; ++k) {
        const S offset = read<S>(table + k * sizeof(S));
        widen(facts, is_set, Int128{offset} + child.first, Int128{offset} + child.last);
      }
      facts.size = Int128{node.count} * Int128{node.block};
    } else if (node.kind == SPL_LEAF_RUNS) {
      SPL_TRY(check_runs(at, table, node, facts));
    } else {
      SPL_TRY(check_members(i, table, node, facts));
    }
    if (facts.size != Int128{node.size}) return invalid_blob("the size of the node at byte ", at, " is wrong");
    if (facts.first < -Int128{bytes_max} || facts.last > Int128{bytes_max} || facts.size > Int128{bytes_max}) {
      return invalid_blob("the node at byte ", at, " does not fit in ", W::bits, " bits");
    }
    if (facts.depth > limits::blob_depth_max) {
      return invalid_blob("deeper than blob_depth_max = ", limits::blob_depth_max);
    }
    return {};
  }

  Status check_runs(uint64_t at, const std::byte* table, const Node& node, NodeFacts& facts) const {
    using Run = typename W::Run;
    bool is_set = false;
    Run run = read<Run>(table);
    if (run.start != 0) return invalid_blob("the prefix sums of the node at byte ", at, " do not begin with 0");
    for (U k = 0; k < node.count; ++k) {
      const Run next = read<Run>(table + (k + 1) * sizeof(Run));
      if (next.start <= run.start)
        return invalid_blob("the prefix sums of the node at byte ", at, " do not rise at run ", uint64_t{k});
      widen(facts, is_set, Int128{run.offset}, Int128{run.offset} + Int128{next.start} - Int128{run.start});
      run = next;
    }
    if (run.offset != 0) return invalid_blob("the closing run of the node at byte ", at, " has an offset");
    facts.size = Int128{run.start};
    return {};
  }

  Status check_members(size_t i, const std::byte* table, const Node& node, NodeFacts& facts) {
    using Member = typename W::Member;
    const uint64_t at = places_[i];
    bool is_set = false;
    Int128 start = 0;
    for (U k = 0; k < node.count; ++k) {
      const Member member = read<Member>(table + k * sizeof(Member));
      if (Int128{member.start} != start)
        return invalid_blob("the prefix sum of member ", uint64_t{k}, " at byte ", at, " is wrong");
      SPL_ASSIGN(const size_t index, child_of(i, member.child));
      NodeFacts& child = node_facts_[index];
      child.has_parent = true;
      widen(facts, is_set, Int128{member.offset} + child.first, Int128{member.offset} + child.last);
      facts.depth = std::max(facts.depth, child.depth + 1);
      start += child.size;
    }
    const Member close = read<Member>(table + node.count * sizeof(Member));
    if (Int128{close.start} != start || close.offset != 0 || close.child != 0) {
      return invalid_blob("the closing member of the node at byte ", at, " is wrong");
    }
    facts.size = start;
    return {};
  }

  const std::byte* blob_;
  const spl_layout_header& header_;
  std::vector<uint64_t> places_;
  std::vector<NodeFacts> node_facts_;
};

}  // namespace

Result<Blob> Blob::validate(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(spl_layout_header)) {
    return invalid_blob(bytes.size(), " bytes are less than its header of ", sizeof(spl_layout_header));
  }
  if (bytes.size() > static_cast<uint64_t>(limits::blob_bytes_max)) {
    return fail(Code::overflow, "blob: ", bytes.size(), " bytes exceed blob_bytes_max = ", limits::blob_bytes_max);
  }
  const auto unchecked_header = read<spl_layout_header>(bytes.data());
  if (unchecked_header.magic != SPL_LAYOUT_MAGIC)
    return invalid_blob("magic ", unchecked_header.magic, ", expected ", SPL_LAYOUT_MAGIC);
  if (unchecked_header.version != SPL_LAYOUT_VERSION) {
    return invalid_blob("version ", unchecked_header.version, ", this build reads version ", SPL_LAYOUT_VERSION);
  }
  if (unchecked_header.width != 32 && unchecked_header.width != 64)
    return invalid_blob("width ", int{unchecked_header.width}, ", it must be 32 or 64");
  if (unchecked_header.bytes != bytes.size() || bytes.size() % 8 != 0) {
    return invalid_blob("length ", bytes.size(), ", the header says ", unchecked_header.bytes,
                        "; it must be a multiple of 8");
  }
  // Validates a private copy, because the sender may still write to the original.
  auto words = std::make_shared_for_overwrite<uint64_t[]>(bytes.size() / sizeof(uint64_t));
  std::memcpy(words.get(), bytes.data(), bytes.size());
  const auto* const copy = reinterpret_cast<const std::byte*>(words.get());
  const auto header = read<spl_layout_header>(copy);
  if (std::memcmp(&header, &unchecked_header, sizeof(header)) != 0) return invalid_blob("changed while it was copied");
  if (header.width == 32) {
    SPL_TRY(Checker<Narrow>(copy, header).check());
  } else {
    SPL_TRY(Checker<Wide>(copy, header).check());
  }
  return Blob(std::move(words));
}

}  // namespace spinloom::layout
