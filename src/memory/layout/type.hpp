// Type - an MPI derived datatype as an immutable, shared tree.
//
// Contract: one constructor function for each MPI type constructor, with 64-bit counts and
//   displacements; each returns the type or an Error (negative count, overflow, list or depth limit).
//   Zero counts and zero-size types are legal, so are negative strides and negative extents.
// Invariants: (1) size, bounds and true bounds are exact and fit in 64 bits; (2) a type whose type map holds no byte
//   has true_lb = true_extent = 0; (3) bounds follow the MPI standard's definition with lb and ub markers: resized,
//   subarray and darray set markers, and where any entry of a type map carries a marker only markers count; (4) no
//   alignment padding is added to a struct's extent (the standard's epsilon is zero here): use resized() for C structs.
// Threads: immutable; copies share. Time: none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/index_list.hpp"

namespace spinloom::layout {

enum class Combiner : uint8_t {
  primitive,
  contiguous,
  vector,
  hvector,
  indexed,
  hindexed,
  indexed_block,
  hindexed_block,
  structure,
  resized,
  subarray,
  darray,
  dup,
};

enum class Order : uint8_t { c, fortran };  // c: the last index is fastest

// The way in which a dimension of a distributed array is dealt to the processes along it: element i belongs to process
// (i / block) mod processes.
enum class Distribution : uint8_t { none, block, cyclic };
inline constexpr int64_t darray_default = -1;  // the argument MPI_DISTRIBUTE_DFLT_DARG

struct DarrayDimension {
  Distribution distribution = Distribution::none;
  int64_t argument = darray_default;  // the argument as the caller gave it
  int64_t processes = 1;
  int64_t block = 1;  // the block length that the argument stands for
  int64_t coordinate = 0;  // coordinate of the rank whose part this type is

  bool operator==(const DarrayDimension&) const = default;
};

struct TypeNode;

class Type {
 public:
  explicit Type(std::shared_ptr<const TypeNode> node) : node_(std::move(node)) {}

  [[nodiscard]] const TypeNode& node() const { return *node_; }
  [[nodiscard]] int64_t size() const;  // bytes of data
  [[nodiscard]] int64_t lb() const;
  [[nodiscard]] int64_t ub() const;
  [[nodiscard]] int64_t extent() const;  // ub - lb, the step between consecutive elements
  [[nodiscard]] int64_t true_lb() const;  // first byte that holds data
  [[nodiscard]] int64_t true_ub() const;  // one past the last byte that holds data
  [[nodiscard]] int64_t true_extent() const;
  [[nodiscard]] bool same(const Type& other) const;  // true if both are written in the same way

 private:
  std::shared_ptr<const TypeNode> node_;
};

// The arguments of a constructor, and what follows from them. Fields that a combiner lacks are zero or empty.
struct TypeNode {
  Combiner combiner = Combiner::primitive;
  std::string name;  // primitive
  int64_t count = 0;  // contiguous, [h]vector
  int64_t block_length = 0;  // [h]vector, [h]indexed_block
  int64_t stride = 0;  // vector: extents of the child; hvector: bytes
  IndexList displacements;  // lists and structure; extents of the child or bytes
  std::vector<int64_t> block_lengths;  // [h]indexed, structure
  std::vector<Type> children;  // one; structure: one a member; primitive: none
  IndexList sizes, subsizes, starts;  // subarray
  Order order = Order::c;  // subarray, darray
  int64_t processes = 0, rank = 0;  // darray; its array is `sizes`
  std::vector<DarrayDimension> dimensions;

  int64_t size = 0;
  int64_t lb = 0, ub = 0, extent = 0;
  int64_t true_lb = 0, true_ub = 0;
  bool has_markers = false;  // the bounds come from lb and ub markers
  int64_t depth = 0;  // constructors on the longest path, 0 for a primitive
  int64_t list_entries = 0;  // list entries in the whole tree
};

// Makes a primitive type. `name` is the name in MPI without its prefix, in lower case: byte, char, int, int64_t, float,
// double_complex, ...
Result<Type> primitive(std::string_view name);
Result<Type> contiguous(int64_t count, const Type& child);
Result<Type> vector(int64_t count, int64_t block_length, int64_t stride, const Type& child);
Result<Type> hvector(int64_t count, int64_t block_length, int64_t stride_bytes, const Type& child);
Result<Type> indexed(IndexList displacements, std::vector<int64_t> block_lengths, const Type& child);
Result<Type> hindexed(IndexList displacements_bytes, std::vector<int64_t> block_lengths, const Type& child);
Result<Type> indexed_block(int64_t block_length, IndexList displacements, const Type& child);
Result<Type> hindexed_block(int64_t block_length, IndexList displacements_bytes, const Type& child);
Result<Type> structure(IndexList displacements_bytes, std::vector<int64_t> block_lengths, std::vector<Type> children);
Result<Type> resized(int64_t lb_bytes, int64_t extent_bytes, const Type& child);
// It must hold that 1 <= subsizes[d] <= sizes[d] and 0 <= starts[d] <= sizes[d] - subsizes[d], as MPI demands.
Result<Type> subarray(IndexList sizes, IndexList subsizes, IndexList starts, Order order, const Type& child);
// The part of `rank` of an array dealt to a grid of processes (ranks in row-major order of the grid), with the bounds
// of the whole array. The product of the grid is `processes`; the grid has one process along a dimension that is not
// dealt (none).
struct DarrayArguments {
  int64_t processes = 1;
  int64_t rank = 0;
  IndexList sizes;
  std::vector<Distribution> distributions;
  std::vector<int64_t> distribution_arguments;  // one for each dimension: its block length, or darray_default
  IndexList grid;
  Order order = Order::c;
};
Result<Type> darray(const DarrayArguments& arguments, const Type& child);
Result<Type> dup(const Type& child);

inline int64_t Type::size() const { return node_->size; }
inline int64_t Type::lb() const { return node_->lb; }
inline int64_t Type::ub() const { return node_->ub; }
inline int64_t Type::extent() const { return node_->extent; }
inline int64_t Type::true_lb() const { return node_->true_lb; }
inline int64_t Type::true_ub() const { return node_->true_ub; }
inline int64_t Type::true_extent() const { return node_->true_ub - node_->true_lb; }

}  // namespace spinloom::layout
