#include "memory/layout/blob_type.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memory/layout/width.hpp"

namespace spinloom::layout {
namespace {

struct Element {
  Type type;
  int64_t bytes;
};

// Returns the element type of blocks of `bytes` bytes: a complex number if one fills the block, else the widest integer
// that divides the block.
Result<Element> element_of(uint64_t bytes) {
  constexpr std::pair<uint64_t, const char*> integers[] = {{8, "int64_t"}, {4, "int32_t"}, {2, "int16_t"}, {1, "byte"}};
  std::pair<uint64_t, const char*> found{16, "double_complex"};
  if (bytes != found.first) {
    found = *std::ranges::find_if(integers, [&](const auto& integer) { return bytes % integer.first == 0; });
  }
  SPL_ASSIGN(const Type type, primitive(found.second));
  return Element{type, static_cast<int64_t>(found.first)};
}

template <class Width>
class TypeBuilder {
  using Node = typename Width::Node;

 public:
  explicit TypeBuilder(const Blob& blob) : blob_(blob) {}

  // Returns the type of the node at `place`. A node that is a child several times has one type.
  Result<Type> type_at(uint32_t place) {
    if (const auto found = types_.find(place); found != types_.end()) return found->second;
    SPL_ASSIGN(const Type type, build(*reinterpret_cast<const Node*>(blob_.data() + place)));
    types_.emplace(place, type);
    return type;
  }

 private:
  Result<Type> build(const Node& node) {
    switch (node.kind) {
      case SPL_LEAF_VECTOR: {
        SPL_ASSIGN(const Element element, element_of(node.block));
        const int64_t length = signed_of(node.block) / element.bytes;
        if (node.count == 1) return contiguous(length, element.type);
        return hvector(signed_of(node.count), length, node.stride, element.type);
      }
      case SPL_LEAF_LIST: {
        SPL_ASSIGN(const Element element, element_of(node.block));
        return hindexed_block(signed_of(node.block) / element.bytes, offsets(node), element.type);
      }
      case SPL_LEAF_RUNS: return runs(node);
      case SPL_NODE_LOOP: {
        SPL_ASSIGN(const Type child, type_at(node.child));
        return hvector(signed_of(node.count), 1, node.stride, child);
      }
      case SPL_NODE_LIST: {
        SPL_ASSIGN(const Type child, type_at(node.child));
        return hindexed_block(1, offsets(node), child);
      }
      default: return members(node);
    }
  }

  static IndexList offsets(const Node& node) {
    const auto* const table = reinterpret_cast<const typename Width::Signed*>(&node + 1);
    return {std::vector<int64_t>(table, table + node.count)};
  }

  static Result<Type> runs(const Node& node) {
    const auto* const table = reinterpret_cast<const typename Width::Run*>(&node + 1);
    std::vector<int64_t> places;
    std::vector<int64_t> lengths;
    int64_t common = 0;
    for (typename Width::Unsigned i = 0; i < node.count; ++i) {
      places.push_back(table[i].offset);
      lengths.push_back(signed_of(table[i + 1].start - table[i].start));
      common = std::gcd(common, lengths.back());
    }
    SPL_ASSIGN(const Element element, element_of(static_cast<uint64_t>(common)));
    for (int64_t& length : lengths) length /= element.bytes;
    return hindexed(std::move(places), std::move(lengths), element.type);
  }

  Result<Type> members(const Node& node) {
    const auto* const table = reinterpret_cast<const typename Width::Member*>(&node + 1);
    std::vector<int64_t> places;
    std::vector<Type> children;
    for (typename Width::Unsigned i = 0; i < node.count; ++i) {
      SPL_ASSIGN(const Type child, type_at(static_cast<uint32_t>(table[i].child)));
      places.push_back(table[i].offset);
      children.push_back(child);
    }
    std::vector<int64_t> ones(places.size(), 1);
    return structure(std::move(places), std::move(ones), std::move(children));
  }

  static int64_t signed_of(typename Width::Unsigned value) { return static_cast<int64_t>(value); }

  const Blob& blob_;
  std::unordered_map<uint32_t, Type> types_;
};

}  // namespace

Result<Type> type_of(const Blob& blob) {
  const spl_layout_header& header = blob.header();
  SPL_ASSIGN(const Type byte, primitive("byte"));
  SPL_ASSIGN(Type type, contiguous(0, byte));
  if (blob.size() != 0) {
    constexpr uint32_t root = sizeof(spl_layout_header);
    SPL_ASSIGN(type,
               blob.is_narrow() ? TypeBuilder<Narrow>(blob).type_at(root) : TypeBuilder<Wide>(blob).type_at(root));
    const int64_t place = header.true_lb + header.origin;
    if (place != 0) {
      SPL_ASSIGN(type, hindexed_block(1, IndexList({place}), type));
    }
  }
  if (type.extent() == blob.extent()) return type;
  return resized(0, blob.extent(), type);
}

}  // namespace spinloom::layout
