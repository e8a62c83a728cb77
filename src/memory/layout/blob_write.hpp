// Blob write - what the two writers of blobs, blob.cpp and plain_list.*, share: the header, a node, the memory.
//
// Threads: pure. Time: none.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "memory/layout/nest.hpp"
#include "memory/layout/reciprocal.hpp"
#include "memory/layout/type.hpp"
#include "memory/layout/width.hpp"

namespace spinloom::layout {

using Words = std::shared_ptr<uint64_t[]>;

// Returns memory for a blob; its contents are not set. A long blob lies on large pages where the system has them,
// because most of the time to commit a long list goes into the first touch of its pages.
inline Words allocate_words(int64_t bytes) {
  const auto length = static_cast<size_t>(bytes);
  constexpr size_t large_page = size_t{2} << 20;
#ifdef MADV_HUGEPAGE
  if (length >= 2 * large_page) {
    const size_t rounded_length = (length + large_page - 1) / large_page * large_page;
    if (void* const place = std::aligned_alloc(large_page, rounded_length)) {
      (void)madvise(place, rounded_length, MADV_HUGEPAGE);
      return {static_cast<uint64_t*>(place), [](uint64_t* words) { std::free(words); }};
    }
  }
#endif
  return std::make_shared_for_overwrite<uint64_t[]>(length / sizeof(uint64_t));
}

constexpr int64_t padded(int64_t bytes) { return (bytes + 7) / 8 * 8; }

inline uint32_t kind_of(NestKind kind) {
  switch (kind) {
    case NestKind::vector: return SPL_LEAF_VECTOR;
    case NestKind::list: return SPL_LEAF_LIST;
    case NestKind::runs: return SPL_LEAF_RUNS;
    case NestKind::loop: return SPL_NODE_LOOP;
    case NestKind::child_list: return SPL_NODE_LIST;
    case NestKind::members: return SPL_NODE_MEMBERS;
  }
  return SPL_LEAF_VECTOR;
}

// Makes the header of a blob. `origin` is the root's displacement in the coordinates of the type.
template <class W>
spl_layout_header header_of(const Type& type, int64_t origin, int64_t depth, size_t nodes, int64_t bytes) {
  const Reciprocal reciprocal = Reciprocal::of(static_cast<uint64_t>(type.size()), W::bits);
  spl_layout_header header{};
  header.magic = SPL_LAYOUT_MAGIC;
  header.version = SPL_LAYOUT_VERSION;
  header.width = W::bits;
  header.depth = static_cast<uint8_t>(depth);
  header.bytes = static_cast<uint32_t>(bytes);
  header.nodes = static_cast<uint32_t>(nodes);
  header.size = static_cast<uint64_t>(type.size());
  header.size_reciprocal = reciprocal.multiplier;
  header.size_shift = reciprocal.shift;
  header.extent = type.extent();
  header.true_lb = type.true_lb();
  header.true_extent = static_cast<uint64_t>(type.true_extent());
  header.origin = origin - type.true_lb();
  return header;
}

struct NodeFields {
  NestKind kind = NestKind::vector;
  int64_t count = 0;
  int64_t size = 0;
  int64_t block = 0;
  int64_t stride = 0;
  uint32_t child = 0;
  int64_t table = 0;
};

template <class W>
typename W::Node node_of(const NodeFields& fields) {
  using U = typename W::Unsigned;
  const Reciprocal reciprocal = Reciprocal::of(static_cast<uint64_t>(fields.block), W::bits);
  typename W::Node node{};
  node.kind = kind_of(fields.kind);
  node.shift = reciprocal.shift;
  node.child = fields.child;
  node.table = static_cast<uint32_t>(fields.table);
  node.count = static_cast<U>(fields.count);
  node.size = static_cast<U>(fields.size);
  node.block = static_cast<U>(fields.block);
  node.reciprocal = static_cast<U>(reciprocal.multiplier);
  node.stride = static_cast<typename W::Signed>(fields.stride);
  return node;
}

}  // namespace spinloom::layout
