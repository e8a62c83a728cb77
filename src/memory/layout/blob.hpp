// Blob - a normalised datatype as one position-independent array of bytes.
//
// Contract: build() normalises a type and writes it down; validate() copies bytes from a peer or a file and
//   accepts them only if every walker may run over them: magic, version, length, table ends, sizes, depth,
//   prefix sums, reciprocals, children behind their parents, every reachable offset inside the true extent.
//   The format is docs/formats/layout.md; structs and walkers are include/spinloom/layout_walk.h.
// Invariants: (1) bytes() is 8-byte aligned and valid; (2) two types with the same type map up to true_lb and the same
//   normal form give the same bytes behind the header, if they are built with the same width and options.
// Threads: immutable; copies share the bytes. Time: none.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/limits.hpp"
#include "base/result.hpp"
#include "memory/layout/type.hpp"
#include "spinloom/layout_walk.h"

namespace spinloom::layout {

static_assert(std::endian::native == std::endian::little, "a blob is little-endian and is used in place");
static_assert(SPL_LAYOUT_DEPTH_MAX == limits::blob_depth_max, "the walkers' stack holds the deepest blob");

enum class Width : uint8_t {
  automatic,  // narrow if `count` elements stay below 2^31 bytes, packed and in memory
  narrow,
  wide,
};

struct BlobOptions {
  Width width = Width::automatic;
  int64_t count = 1;  // elements that the narrow walker must reach
  // If set, a list of small blocks stays a list where many of them touch (plain_list.hpp). A processor copies equal
  // blocks faster than runs of several lengths; a NIC pays for every block.
  bool keep_lists = false;
};

class Blob {
 public:
  static Result<Blob> build(const Type& type, BlobOptions options = {});
  static Result<Blob> validate(std::span<const std::byte> bytes);

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data(), header().bytes}; }
  [[nodiscard]] const std::byte* data() const { return reinterpret_cast<const std::byte*>(words_.get()); }
  [[nodiscard]] const spl_layout_header& header() const {
    return *reinterpret_cast<const spl_layout_header*>(words_.get());
  }
  [[nodiscard]] bool is_narrow() const { return header().width == 32; }
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(header().size); }
  [[nodiscard]] int64_t extent() const { return header().extent; }
  [[nodiscard]] int64_t true_lb() const { return header().true_lb; }
  [[nodiscard]] int64_t true_extent() const { return static_cast<int64_t>(header().true_extent); }
  [[nodiscard]] int depth() const { return header().depth; }
  // Returns the kind of the root node (SPL_LEAF_VECTOR, ...), by which a specialised handler is chosen.
  [[nodiscard]] uint32_t root_kind() const;
  // True if the blob is narrow and the narrow walker reaches `count` elements of it.
  [[nodiscard]] bool narrow_reaches(int64_t count) const;

 private:
  friend class BlobPool;
  explicit Blob(std::shared_ptr<const uint64_t[]> words) : words_(std::move(words)) {}

  std::shared_ptr<const uint64_t[]> words_;  // the header holds their length in bytes
};

}  // namespace spinloom::layout
