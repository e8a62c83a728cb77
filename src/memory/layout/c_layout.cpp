// The C face of layouts: include/spinloom/layout.h over the constructors and Committed.
#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "memory/layout/blocks.hpp"
#include "memory/layout/committed.hpp"
#include "memory/layout/nest.hpp"
#include "memory/layout/normalise.hpp"
#include "memory/layout/text.hpp"
#include "spinloom/layout.h"

using namespace spinloom;          // NOLINT: one translation unit, C names outside
using namespace spinloom::layout;  // NOLINT

struct spl_layout {
  Type type;
  std::optional<Committed> committed;
};

namespace {

thread_local std::string error_text;  // the sentence of the last failure, where it is not a fixed one
thread_local const char* last_error = "";

spl_layout_status status_of(Code code) {
  switch (code) {
    case Code::overflow: return SPL_LAYOUT_OVERFLOW;
    case Code::unsupported: return SPL_LAYOUT_UNSUPPORTED;
    case Code::exhausted:
    case Code::environment: return SPL_LAYOUT_EXHAUSTED;
    case Code::invalid:
    case Code::mismatch:
    case Code::stalled:
    case Code::fault: break;
  }
  return SPL_LAYOUT_INVALID;
}

// Calls `work`, keeps the sentence of its failure, and lets no exception out.
template <class Work>
spl_layout_status guarded(Work&& work) noexcept {
  try {
    const Status status = work();
    if (status) return SPL_LAYOUT_OK;
    error_text = status.error().message;
    last_error = error_text.c_str();
    return status_of(status.error().code);
  } catch (const std::bad_alloc&) {
    last_error = "there is not enough memory for this call";
    return SPL_LAYOUT_EXHAUSTED;
  } catch (const std::exception&) {
    last_error = "the library met an exception that it does not expect; please report it";
    return SPL_LAYOUT_INTERNAL;
  }
}

Status require(const void* argument, const char* name) {
  if (argument == nullptr) return fail(Code::invalid, name, " is NULL");
  return {};
}

// Copies a list of `count` entries; `entries` may be NULL if `count` is 0.
template <class T>
Result<std::vector<T>> copy_list(int64_t count, const T* entries, const char* name) {
  if (count < 0) return fail(Code::invalid, "a list of ", count, " entries: the number must not be negative");
  if (count > limits::type_list_max) {
    return fail(Code::overflow, "a list of ", count, " entries exceeds type_list_max = ", limits::type_list_max);
  }
  if (count > 0) SPL_TRY(require(entries, name));
  return count == 0 ? std::vector<T>() : std::vector<T>(entries, entries + count);
}

template <class Make>  // Make() -> Result<Type>
spl_layout_status build(spl_layout** out, Make&& make) {
  return guarded([&]() -> Status {
    SPL_TRY(require(out, "out"));
    SPL_ASSIGN(Type type, make());
    *out = new spl_layout{std::move(type), std::nullopt};
    return {};
  });
}

template <class Make>  // Make(child) -> Result<Type>
spl_layout_status build_over(const spl_layout* child, spl_layout** out, Make&& make) {
  return build(out, [&]() -> Result<Type> {
    SPL_TRY(require(child, "child"));
    return make(child->type);
  });
}

bool is_ready(const spl_layout* layout, const void* packed) {
  return layout != nullptr && packed != nullptr && layout->committed.has_value();
}

Result<const Committed*> committed_of(const spl_layout* layout) {
  SPL_TRY(require(layout, "layout"));
  if (!layout->committed) return fail(Code::invalid, "the layout is not committed; call spl_layout_commit first");
  return &*layout->committed;
}

Status copy_text(const std::string& from, char* text, size_t capacity, size_t* needed) {
  if (text != nullptr && capacity > 0) {
    const size_t copied = std::min(from.size(), capacity - 1);
    std::memcpy(text, from.data(), copied);
    text[copied] = '\0';
  }
  if (needed != nullptr) *needed = from.size() + 1;
  return {};
}

Result<Order> order_of(spl_layout_order order) {
  if (order == SPL_LAYOUT_ORDER_C) return Order::c;
  if (order == SPL_LAYOUT_ORDER_FORTRAN) return Order::fortran;
  return fail(Code::invalid, "order ", static_cast<int>(order), " is neither C nor Fortran");
}

Result<std::span<std::byte>> packed_span(const Committed& layout, int64_t count, PackedRange range, void* packed) {
  SPL_ASSIGN(const int64_t total, layout.packed_bytes(count));
  if (range.first < 0 || range.first > range.last || range.last > total) {
    return fail(Code::invalid, "packed bytes ", range.first, " to ", range.last, " of a message of ", total, " bytes");
  }
  if (range.first < range.last) SPL_TRY(require(packed, "packed"));
  return std::span(static_cast<std::byte*>(packed), static_cast<size_t>(range.last - range.first));
}

}  // namespace

const char* spl_layout_last_error(void) { return last_error; }

const char* spl_layout_version(void) { return SPINLOOM_VERSION; }

// ---- build ----

spl_layout_status spl_layout_primitive(const char* name, spl_layout** out) {
  return build(out, [&]() -> Result<Type> {
    SPL_TRY(require(name, "name"));
    return primitive(name);
  });
}

spl_layout_status spl_layout_from_text(const char* text, spl_layout** out) {
  return build(out, [&]() -> Result<Type> {
    SPL_TRY(require(text, "text"));
    return parse(text);
  });
}

spl_layout_status spl_layout_contiguous(int64_t count, const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) { return contiguous(count, type); });
}

spl_layout_status spl_layout_vector(int64_t count, int64_t block_length, int64_t stride, const spl_layout* child,
                                    spl_layout** out) {
  return build_over(child, out, [&](const Type& type) { return vector(count, block_length, stride, type); });
}

spl_layout_status spl_layout_hvector(int64_t count, int64_t block_length, int64_t stride_bytes, const spl_layout* child,
                                     spl_layout** out) {
  return build_over(child, out, [&](const Type& type) { return hvector(count, block_length, stride_bytes, type); });
}

spl_layout_status spl_layout_indexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements,
                                     const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    SPL_ASSIGN(auto lengths, copy_list(count, block_lengths, "block_lengths"));
    SPL_ASSIGN(auto places, copy_list(count, displacements, "displacements"));
    return indexed(std::move(places), std::move(lengths), type);
  });
}

spl_layout_status spl_layout_hindexed(int64_t count, const int64_t* block_lengths, const int64_t* displacements_bytes,
                                      const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    SPL_ASSIGN(auto lengths, copy_list(count, block_lengths, "block_lengths"));
    SPL_ASSIGN(auto places, copy_list(count, displacements_bytes, "displacements_bytes"));
    return hindexed(std::move(places), std::move(lengths), type);
  });
}

spl_layout_status spl_layout_indexed_block(int64_t count, int64_t block_length, const int64_t* displacements,
                                           const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    SPL_ASSIGN(auto places, copy_list(count, displacements, "displacements"));
    return indexed_block(block_length, std::move(places), type);
  });
}

spl_layout_status spl_layout_hindexed_block(int64_t count, int64_t block_length, const int64_t* displacements_bytes,
                                            const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    SPL_ASSIGN(auto places, copy_list(count, displacements_bytes, "displacements_bytes"));
    return hindexed_block(block_length, std::move(places), type);
  });
}

spl_layout_status spl_layout_struct(int64_t count, const int64_t* block_lengths, const int64_t* displacements_bytes,
                                    const spl_layout* const* children, spl_layout** out) {
  return build(out, [&]() -> Result<Type> {
    SPL_ASSIGN(auto lengths, copy_list(count, block_lengths, "block_lengths"));
    SPL_ASSIGN(auto places, copy_list(count, displacements_bytes, "displacements_bytes"));
    SPL_ASSIGN(const auto members, copy_list(count, children, "children"));
    std::vector<Type> types;
    for (const spl_layout* member : members) {
      SPL_TRY(require(member, "a child"));
      types.push_back(member->type);
    }
    return structure(std::move(places), std::move(lengths), std::move(types));
  });
}

spl_layout_status spl_layout_resized(int64_t lb_bytes, int64_t extent_bytes, const spl_layout* child,
                                     spl_layout** out) {
  return build_over(child, out, [&](const Type& type) { return resized(lb_bytes, extent_bytes, type); });
}

spl_layout_status spl_layout_subarray(int dimensions, const int64_t* sizes, const int64_t* subsizes,
                                      const int64_t* starts, spl_layout_order order, const spl_layout* child,
                                      spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    SPL_ASSIGN(auto array_sizes, copy_list(dimensions, sizes, "sizes"));
    SPL_ASSIGN(auto array_subsizes, copy_list(dimensions, subsizes, "subsizes"));
    SPL_ASSIGN(auto array_starts, copy_list(dimensions, starts, "starts"));
    SPL_ASSIGN(const Order storage, order_of(order));
    return subarray(std::move(array_sizes), std::move(array_subsizes), std::move(array_starts), storage, type);
  });
}

spl_layout_status spl_layout_darray(int64_t processes, int64_t rank, int dimensions, const int64_t* sizes,
                                    const spl_layout_distribution* distributions, const int64_t* arguments,
                                    const int64_t* grid, spl_layout_order order, const spl_layout* child,
                                    spl_layout** out) {
  return build_over(child, out, [&](const Type& type) -> Result<Type> {
    DarrayArguments darray_arguments;
    darray_arguments.processes = processes;
    darray_arguments.rank = rank;
    SPL_ASSIGN(darray_arguments.order, order_of(order));
    SPL_ASSIGN(darray_arguments.sizes, copy_list(dimensions, sizes, "sizes"));
    SPL_ASSIGN(const auto kinds, copy_list(dimensions, distributions, "distributions"));
    for (const spl_layout_distribution kind : kinds) {
      if (kind != SPL_LAYOUT_NONE && kind != SPL_LAYOUT_BLOCK && kind != SPL_LAYOUT_CYCLIC) {
        return fail(Code::invalid, "distribution ", static_cast<int>(kind), " is none of none, block and cyclic");
      }
      darray_arguments.distributions.push_back(static_cast<Distribution>(kind));
    }
    SPL_ASSIGN(darray_arguments.distribution_arguments, copy_list(dimensions, arguments, "arguments"));
    SPL_ASSIGN(darray_arguments.grid, copy_list(dimensions, grid, "grid"));
    return darray(darray_arguments, type);
  });
}

spl_layout_status spl_layout_dup(const spl_layout* child, spl_layout** out) {
  return build_over(child, out, [&](const Type& type) { return dup(type); });
}

spl_layout_status spl_layout_commit(spl_layout* layout) {
  return guarded([&]() -> Status {
    SPL_TRY(require(layout, "layout"));
    if (layout->committed) return {};
    SPL_ASSIGN(layout->committed, Committed::commit(layout->type));
    return {};
  });
}

void spl_layout_free(spl_layout* layout) { delete layout; }

// ---- ask ----

int64_t spl_layout_size(const spl_layout* layout) { return layout->type.size(); }
int64_t spl_layout_lb(const spl_layout* layout) { return layout->type.lb(); }
int64_t spl_layout_extent(const spl_layout* layout) { return layout->type.extent(); }
int64_t spl_layout_true_lb(const spl_layout* layout) { return layout->type.true_lb(); }
int64_t spl_layout_true_extent(const spl_layout* layout) { return layout->type.true_extent(); }

spl_layout_status spl_layout_packed_bytes(const spl_layout* layout, int64_t count, int64_t* bytes) {
  return guarded([&]() -> Status {
    SPL_TRY(require(layout, "layout"));
    SPL_TRY(require(bytes, "bytes"));
    SPL_ASSIGN(*bytes, packed_bytes(layout->type, count));
    return {};
  });
}

spl_layout_status spl_layout_reach(const spl_layout* layout, int64_t count, int64_t* first, int64_t* last) {
  return guarded([&]() -> Status {
    SPL_TRY(require(layout, "layout"));
    SPL_TRY(require(first, "first"));
    SPL_TRY(require(last, "last"));
    SPL_ASSIGN(const oracle::Reach reach, reach_of(layout->type, count));
    *first = reach.first;
    *last = reach.last;
    return {};
  });
}

spl_layout_status spl_layout_blocks(const spl_layout* layout, int64_t count, spl_layout_block* blocks, int64_t capacity,
                                    int64_t* found) {
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_TRY(require(found, "found"));
    if (capacity > 0) SPL_TRY(require(blocks, "blocks"));
    int64_t block_count = 0;
    SPL_TRY(for_each_block(committed->blob(), count, [&](const Piece& block) {
      if (block_count < capacity) blocks[block_count] = {block.offset, block.bytes};
      ++block_count;
      return true;
    }));
    *found = block_count;
    return {};
  });
}

spl_layout_status spl_layout_text(const spl_layout* layout, char* text, size_t capacity, size_t* needed) {
  return guarded([&]() -> Status {
    SPL_TRY(require(layout, "layout"));
    return copy_text(print(layout->type), text, capacity, needed);
  });
}

spl_layout_status spl_layout_normal_form(const spl_layout* layout, char* text, size_t capacity, size_t* needed) {
  return guarded([&]() -> Status {
    SPL_TRY(require(layout, "layout"));
    return copy_text(describe(normalise(layout->type)), text, capacity, needed);
  });
}

spl_layout_status spl_layout_blob(const spl_layout* layout, const void** blob, size_t* bytes) {
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_TRY(require(blob, "blob"));
    SPL_TRY(require(bytes, "bytes"));
    *blob = committed->blob().data();
    *bytes = committed->blob().bytes().size();
    return {};
  });
}

// ---- move ----

spl_layout_status spl_layout_pack_range(const spl_layout* layout, int64_t count, const void* base, int64_t first,
                                        int64_t last, void* packed) {
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_ASSIGN(const auto out, packed_span(*committed, count, {first, last}, packed));
    return committed->pack(count, static_cast<const std::byte*>(base), {first, last}, out);
  });
}

spl_layout_status spl_layout_unpack_range(const spl_layout* layout, int64_t count, void* base, int64_t first,
                                          int64_t last, const void* packed) {
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_ASSIGN(const auto in, packed_span(*committed, count, {first, last}, const_cast<void*>(packed)));
    return committed->unpack(count, static_cast<std::byte*>(base), {first, last}, in);
  });
}

spl_layout_status spl_layout_pack(const spl_layout* layout, int64_t count, const void* base, void* packed) {
  if (is_ready(layout, packed) &&
      layout->committed->pack_at_once(count, static_cast<const std::byte*>(base), static_cast<std::byte*>(packed))) {
    return SPL_LAYOUT_OK;
  }
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_ASSIGN(const int64_t total, committed->packed_bytes(count));
    SPL_ASSIGN(const auto out, packed_span(*committed, count, {0, total}, packed));
    return committed->pack(count, static_cast<const std::byte*>(base), {0, total}, out);
  });
}

spl_layout_status spl_layout_unpack(const spl_layout* layout, int64_t count, void* base, const void* packed) {
  if (is_ready(layout, packed) &&
      layout->committed->unpack_at_once(count, static_cast<std::byte*>(base), static_cast<const std::byte*>(packed))) {
    return SPL_LAYOUT_OK;
  }
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* committed, committed_of(layout));
    SPL_ASSIGN(const int64_t total, committed->packed_bytes(count));
    SPL_ASSIGN(const auto in, packed_span(*committed, count, {0, total}, const_cast<void*>(packed)));
    return committed->unpack(count, static_cast<std::byte*>(base), {0, total}, in);
  });
}

spl_layout_status spl_layout_copy(const spl_layout* from, int64_t from_count, const void* from_base,
                                  const spl_layout* to, int64_t to_count, void* to_base) {
  return guarded([&]() -> Status {
    SPL_ASSIGN(const Committed* source, committed_of(from));
    SPL_ASSIGN(const Committed* target, committed_of(to));
    return copy({source, from_count, static_cast<const std::byte*>(from_base)},
                {target, to_count, static_cast<std::byte*>(to_base)});
  });
}
