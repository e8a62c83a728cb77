#include "memory/layout/type.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "base/nearest.hpp"
#include "memory/layout/type_build.hpp"

namespace spinloom::layout {
namespace {

struct Primitive {
  std::string_view name;
  int64_t size_bytes;
};

// Sizes on an LP64 host with the usual Fortran defaults.
constexpr auto primitives = std::to_array<Primitive>({
    {"byte", 1},
    {"packed", 1},
    {"char", 1},
    {"signed_char", 1},
    {"unsigned_char", 1},
    {"wchar", 4},
    {"short", 2},
    {"unsigned_short", 2},
    {"int", 4},
    {"unsigned", 4},
    {"long", 8},
    {"unsigned_long", 8},
    {"long_long", 8},
    {"long_long_int", 8},
    {"unsigned_long_long", 8},
    {"int8_t", 1},
    {"int16_t", 2},
    {"int32_t", 4},
    {"int64_t", 8},
    {"uint8_t", 1},
    {"uint16_t", 2},
    {"uint32_t", 4},
    {"uint64_t", 8},
    {"float", 4},
    {"double", 8},
    {"long_double", 16},
    {"c_bool", 1},
    {"float_complex", 8},
    {"c_complex", 8},
    {"c_float_complex", 8},
    {"c_double_complex", 16},
    {"c_long_double_complex", 32},
    {"aint", 8},
    {"offset", 8},
    {"count", 8},
    {"character", 1},
    {"logical", 4},
    {"integer", 4},
    {"real", 4},
    {"double_precision", 8},
    {"complex", 8},
    {"double_complex", 16},
    {"integer1", 1},
    {"integer2", 2},
    {"integer4", 4},
    {"integer8", 8},
    {"real4", 4},
    {"real8", 8},
    {"complex8", 8},
    {"complex16", 16},
});

// Names of primitives in other languages and libraries.
struct Alias {
  std::string_view name;
  std::string_view primitive;
};

constexpr auto aliases = std::to_array<Alias>({
    {"float32", "float"},
    {"float64", "double"},
    {"f4", "float"},
    {"f8", "double"},
    {"i1", "int8_t"},
    {"i2", "int16_t"},
    {"i4", "int32_t"},
    {"i8", "int64_t"},
    {"u1", "uint8_t"},
    {"u2", "uint16_t"},
    {"u4", "uint32_t"},
    {"u8", "uint64_t"},
    {"int8", "int8_t"},
    {"int16", "int16_t"},
    {"int32", "int32_t"},
    {"int64", "int64_t"},
    {"uint8", "uint8_t"},
    {"uint16", "uint16_t"},
    {"uint32", "uint32_t"},
    {"uint64", "uint64_t"},
    {"complex64", "c_float_complex"},
    {"complex128", "c_double_complex"},
    {"bool", "c_bool"},
    {"size_t", "uint64_t"},
});
constexpr size_t name_bytes_compared = 32;

// Returns the primitive that a name is likely to stand for, such as MPI_DOUBLE, np.float64 or doubel.
std::optional<std::string_view> suggest_primitive(std::string_view name) {
  std::string folded(name.substr(0, name_bytes_compared));
  std::ranges::transform(folded, folded.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string_view bare = folded;
  for (const std::string_view prefix : {"mpi_", "np_", "np."}) {
    if (bare.starts_with(prefix)) bare.remove_prefix(prefix.size());
  }
  const auto alias = std::ranges::find(aliases, bare, &Alias::name);
  if (alias != aliases.end()) return alias->primitive;
  std::array<std::string_view, primitives.size()> names;
  std::ranges::transform(primitives, names.begin(), &Primitive::name);
  return nearest(bare, names);
}

Status check_not_negative(int64_t value, const char* what) {
  if (value < 0) return fail(Code::invalid, what, " is ", value, ", it must not be negative");
  return {};
}

// Makes the types of the four list constructors. `unit` is the number of bytes that a displacement of 1 stands for.
Result<Type> list_type(Combiner combiner, int64_t block_length, IndexList displacements,
                       std::vector<int64_t> block_lengths, const Type& child, int64_t unit) {
  const bool equal_blocks = combiner == Combiner::indexed_block || combiner == Combiner::hindexed_block;
  if (!equal_blocks && static_cast<int64_t>(block_lengths.size()) != displacements.size()) {
    return fail(Code::invalid, displacements.size(), " displacements and ", block_lengths.size(),
                " block lengths: there must be as many of each");
  }
  SPL_TRY(check_not_negative(block_length, "block length"));
  TypeNode node;
  node.combiner = combiner;
  node.block_length = block_length;
  SPL_TRY(set_children(node, {child}, displacements.size()));
  Bounds bounds;
  int64_t elements = 0;
  for (int64_t i = 0; i < displacements.size(); ++i) {
    const int64_t length = equal_blocks ? block_length : block_lengths[static_cast<size_t>(i)];
    if (length < 0) return check_not_negative(length, "block length").error();
    int64_t displacement = 0;
    if (__builtin_mul_overflow(displacements[i], unit, &displacement)) {
      return checked::mul(displacements[i], unit).error();
    }
    SPL_TRY(bounds.add_block(child.node(), displacement, length));
    int64_t sum = 0;
    if (__builtin_add_overflow(elements, length, &sum)) return checked::add(elements, length).error();
    elements = sum;
  }
  SPL_ASSIGN(node.size, checked::mul(elements, child.size()));
  node.displacements = std::move(displacements);
  node.block_lengths = std::move(block_lengths);
  return make_type(std::move(node), bounds);
}

Result<Type> strided_type(Combiner combiner, int64_t count, int64_t block_length, int64_t stride, int64_t stride_bytes,
                          const Type& child) {
  SPL_TRY(check_not_negative(count, "count"));
  SPL_TRY(check_not_negative(block_length, "block length"));
  TypeNode node;
  node.combiner = combiner;
  node.count = count;
  node.block_length = block_length;
  node.stride = stride;
  SPL_TRY(set_children(node, {child}, 0));
  SPL_ASSIGN(const int64_t elements, checked::mul(count, block_length));
  SPL_ASSIGN(node.size, checked::mul(elements, child.size()));
  Bounds bounds;
  if (count > 0) {
    SPL_TRY(bounds.add_block(child.node(), 0, block_length));
    SPL_ASSIGN(const int64_t last, checked::mul(count - 1, stride_bytes));
    SPL_TRY(bounds.add_block(child.node(), last, block_length));
  }
  return make_type(std::move(node), bounds);
}

}  // namespace

Result<Type> primitive(std::string_view name) {
  const auto found = std::find_if(primitives.begin(), primitives.end(),
                                  [&](const Primitive& candidate) { return candidate.name == name; });
  if (found == primitives.end()) {
    if (const auto suggestion = suggest_primitive(name)) {
      return fail(Code::invalid, "'", name, "' is no primitive type; did you mean '", *suggestion, "'?");
    }
    return fail(Code::invalid, "'", name, "' is no primitive type; known are byte, char, int, float, double and the ",
                "other MPI names in lower case without their prefix");
  }
  TypeNode node;
  node.name = name;
  node.size = node.ub = node.extent = node.true_ub = found->size_bytes;
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

Result<Type> contiguous(int64_t count, const Type& child) {
  SPL_TRY(check_not_negative(count, "count"));
  TypeNode node;
  node.combiner = Combiner::contiguous;
  node.count = count;
  SPL_TRY(set_children(node, {child}, 0));
  SPL_ASSIGN(node.size, checked::mul(count, child.size()));
  Bounds bounds;
  SPL_TRY(bounds.add_block(child.node(), 0, count));
  return make_type(std::move(node), bounds);
}

Result<Type> vector(int64_t count, int64_t block_length, int64_t stride, const Type& child) {
  SPL_ASSIGN(const int64_t stride_bytes, checked::mul(stride, child.extent()));
  return strided_type(Combiner::vector, count, block_length, stride, stride_bytes, child);
}

Result<Type> hvector(int64_t count, int64_t block_length, int64_t stride_bytes, const Type& child) {
  return strided_type(Combiner::hvector, count, block_length, stride_bytes, stride_bytes, child);
}

Result<Type> indexed(IndexList displacements, std::vector<int64_t> block_lengths, const Type& child) {
  return list_type(Combiner::indexed, 0, std::move(displacements), std::move(block_lengths), child, child.extent());
}

Result<Type> hindexed(IndexList displacements_bytes, std::vector<int64_t> block_lengths, const Type& child) {
  return list_type(Combiner::hindexed, 0, std::move(displacements_bytes), std::move(block_lengths), child, 1);
}

Result<Type> indexed_block(int64_t block_length, IndexList displacements, const Type& child) {
  return list_type(Combiner::indexed_block, block_length, std::move(displacements), {}, child, child.extent());
}

Result<Type> hindexed_block(int64_t block_length, IndexList displacements_bytes, const Type& child) {
  return list_type(Combiner::hindexed_block, block_length, std::move(displacements_bytes), {}, child, 1);
}

Result<Type> structure(IndexList displacements_bytes, std::vector<int64_t> block_lengths, std::vector<Type> children) {
  if (static_cast<int64_t>(children.size()) != displacements_bytes.size() || block_lengths.size() != children.size()) {
    return fail(Code::invalid, displacements_bytes.size(), " displacements, ", block_lengths.size(),
                " block lengths and ", children.size(), " types: there must be as many of each");
  }
  TypeNode node;
  node.combiner = Combiner::structure;
  SPL_TRY(set_children(node, std::move(children), displacements_bytes.size()));
  // A struct without members is a constructor, too: its depth is at least 1.
  node.depth = std::max<int64_t>(node.depth, 1);
  Bounds bounds;
  for (size_t i = 0; i < node.children.size(); ++i) {
    const TypeNode& child = node.children[i].node();
    SPL_TRY(check_not_negative(block_lengths[i], "block length"));
    SPL_TRY(bounds.add_block(child, displacements_bytes[static_cast<int64_t>(i)], block_lengths[i]));
    SPL_ASSIGN(const int64_t bytes, checked::mul(block_lengths[i], child.size));
    SPL_ASSIGN(node.size, checked::add(node.size, bytes));
  }
  node.displacements = std::move(displacements_bytes);
  node.block_lengths = std::move(block_lengths);
  return make_type(std::move(node), bounds);
}

Result<Type> resized(int64_t lb_bytes, int64_t extent_bytes, const Type& child) {
  TypeNode node;
  node.combiner = Combiner::resized;
  SPL_TRY(set_children(node, {child}, 0));
  node.size = child.size();
  node.true_lb = child.true_lb();
  node.true_ub = child.true_ub();
  node.lb = lb_bytes;
  node.extent = extent_bytes;
  node.has_markers = true;
  SPL_ASSIGN(node.ub, checked::add(lb_bytes, extent_bytes));
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

Result<Type> dup(const Type& child) {
  const TypeNode& original = child.node();
  TypeNode node;
  node.combiner = Combiner::dup;
  SPL_TRY(set_children(node, {child}, 0));
  node.size = original.size;
  node.lb = original.lb;
  node.ub = original.ub;
  node.extent = original.extent;
  node.true_lb = original.true_lb;
  node.true_ub = original.true_ub;
  node.has_markers = original.has_markers;
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

Result<Type> subarray(IndexList sizes, IndexList subsizes, IndexList starts, Order order, const Type& child) {
  const int64_t dimensions = sizes.size();
  if (dimensions < 1 || subsizes.size() != dimensions || starts.size() != dimensions) {
    return fail(Code::invalid, "a subarray with ", sizes.size(), " sizes, ", subsizes.size(), " subsizes and ",
                starts.size(), " starts: there must be as many of each, at least one");
  }
  TypeNode node;
  node.combiner = Combiner::subarray;
  node.order = order;
  SPL_TRY(set_children(node, {child}, 3 * dimensions));
  node.size = child.size();
  Rectangle part;
  for (int64_t step = 0; step < dimensions; ++step) {  // the fastest dimension is first, the slowest last
    const int64_t d = order == Order::c ? dimensions - 1 - step : step;
    if (subsizes[d] < 1 || subsizes[d] > sizes[d] || starts[d] < 0 || starts[d] > sizes[d] - subsizes[d]) {
      return fail(Code::invalid, "subarray dimension ", d, ": size ", sizes[d], ", subsize ", subsizes[d], ", start ",
                  starts[d], "; it must hold that 1 <= subsize <= size and 0 <= start <= size - subsize");
    }
    SPL_TRY(part.add(node, sizes[d], subsizes[d], starts[d], starts[d] + subsizes[d] - 1));
  }
  SPL_TRY(part.finish(node, child));
  node.sizes = std::move(sizes);
  node.subsizes = std::move(subsizes);
  node.starts = std::move(starts);
  return Type(std::make_shared<const TypeNode>(std::move(node)));
}

bool Type::same(const Type& other) const {
  if (node_ == other.node_) return true;
  const TypeNode& a = *node_;
  const TypeNode& b = *other.node_;
  if (a.combiner != b.combiner || a.name != b.name || a.count != b.count || a.block_length != b.block_length ||
      a.stride != b.stride || a.block_lengths != b.block_lengths || a.order != b.order || a.lb != b.lb ||
      a.extent != b.extent || a.children.size() != b.children.size()) {
    return false;
  }
  if (a.processes != b.processes || a.rank != b.rank || a.dimensions != b.dimensions) return false;
  if (!a.displacements.equal(b.displacements) || !a.sizes.equal(b.sizes) || !a.subsizes.equal(b.subsizes) ||
      !a.starts.equal(b.starts)) {
    return false;
  }
  for (size_t i = 0; i < a.children.size(); ++i) {
    if (!a.children[i].same(b.children[i])) return false;
  }
  return true;
}

}  // namespace spinloom::layout
