#include "memory/layout/cursor.hpp"

#include <algorithm>

#include "base/checked.hpp"

namespace spinloom::layout {
namespace {

// The walkers' functions, under one name for both widths.
void walk_down(const void* blob, const spl_node_narrow*& node, uint32_t& base, uint32_t& position,
               spl_level_narrow& level) {
  spl_walk_down_narrow(blob, &node, &base, &position, &level);
}
void walk_down(const void* blob, const spl_node_wide*& node, uint64_t& base, uint64_t& position,
               spl_level_wide& level) {
  spl_walk_down_wide(blob, &node, &base, &position, &level);
}
bool walk_next(const void* blob, spl_level_narrow& level, const spl_node_narrow*& node, uint32_t& base) {
  return spl_walk_next_narrow(blob, &level, &node, &base) != 0;
}
bool walk_next(const void* blob, spl_level_wide& level, const spl_node_wide*& node, uint64_t& base) {
  return spl_walk_next_wide(blob, &level, &node, &base) != 0;
}
uint32_t quotient(uint32_t n, const spl_node_narrow& node) { return spl_divide_narrow(n, node.reciprocal, node.shift); }
uint64_t quotient(uint64_t n, const spl_node_wide& node) { return spl_divide_wide(n, node.reciprocal, node.shift); }
const spl_run_narrow* find_run(const spl_run_narrow* table, uint32_t count, uint32_t position) {
  return spl_find_run_narrow(table, count, position);
}
const spl_run_wide* find_run(const spl_run_wide* table, uint64_t count, uint64_t position) {
  return spl_find_run_wide(table, count, position);
}

}  // namespace

Result<Cursor> Cursor::open(Blob blob, int64_t count) {
  if (count < 0) return fail(Code::invalid, "count is ", count, ", it must not be negative");
  SPL_ASSIGN([[maybe_unused]] const int64_t total, checked::mul(count, blob.size()));
  if (count > 0) {
    SPL_ASSIGN(const int64_t last, checked::mul(count - 1, blob.extent()));
    SPL_ASSIGN(const int64_t first, checked::add(last, blob.true_lb()));
    SPL_ASSIGN([[maybe_unused]] const int64_t end, checked::add(first, blob.true_extent()));
  }
  return Cursor(std::move(blob), count);
}

Cursor::Cursor(Blob blob, int64_t count) : blob_(std::move(blob)), count_(count) {
  if (!blob_.is_narrow()) state_.emplace<CursorState<Wide>>();
  if (total() > 0) std::visit([&](auto& state) { descend(state, 0); }, state_);
}

template <class W>
void Cursor::descend(CursorState<W>& state, int64_t within_element) {
  using U = typename W::Unsigned;
  const std::byte* const blob = blob_.data();
  state.node = reinterpret_cast<const typename W::Node*>(blob + sizeof(spl_layout_header));
  state.base = static_cast<U>(blob_.header().origin);
  U position = static_cast<U>(within_element);
  state.depth = 0;
  while (state.node->kind > SPL_LEAF_LAST) {
    walk_down(blob, state.node, state.base, position, state.levels[static_cast<size_t>(state.depth++)]);
  }
  state.leaf_position = position;
}

Status Cursor::seek(int64_t position) {
  if (position < 0 || position > total()) {
    return fail(Code::invalid, "position ", position, " lies outside the message of ", total(), " bytes");
  }
  position_ = position;
  if (position == total()) return {};
  element_offset_ = position / blob_.size() * blob_.extent();
  std::visit([&](auto& state) { descend(state, position % blob_.size()); }, state_);
  return {};
}

template <class W>
Piece Cursor::next_piece(CursorState<W>& state, int64_t bytes_max) {
  using U = typename W::Unsigned;
  if (state.leaf_position == state.node->size) {
    // The leaf is done: goes on to the next leaf, of this element or the next.
    const std::byte* const blob = blob_.data();
    while (state.depth > 0 &&
           !walk_next(blob, state.levels[static_cast<size_t>(state.depth - 1)], state.node, state.base)) {
      --state.depth;
    }
    if (state.depth == 0) {
      element_offset_ += blob_.extent();
      descend(state, 0);
    } else {
      U start = 0;
      while (state.node->kind > SPL_LEAF_LAST) {
        walk_down(blob, state.node, state.base, start, state.levels[static_cast<size_t>(state.depth++)]);
      }
      state.leaf_position = 0;
    }
  }
  const typename W::Node& node = *state.node;
  U offset = state.base;
  U remaining = 0;
  if (node.kind == SPL_LEAF_RUNS) {
    const auto* const run =
        find_run(reinterpret_cast<const typename W::Run*>(&node + 1), node.count, state.leaf_position);
    const U within = state.leaf_position - run->start;
    offset += static_cast<U>(run->offset) + within;
    remaining = run[1].start - state.leaf_position;
  } else {
    const U index = quotient(state.leaf_position, node);
    const U within = state.leaf_position - index * node.block;
    offset += within + (node.kind == SPL_LEAF_VECTOR
                            ? index * static_cast<U>(node.stride)
                            : static_cast<U>(reinterpret_cast<const typename W::Signed*>(&node + 1)[index]));
    remaining = node.block - within;
  }
  const int64_t bytes = std::min(bytes_max, static_cast<int64_t>(remaining));
  state.leaf_position += static_cast<U>(bytes);
  position_ += bytes;
  return {blob_.true_lb() + element_offset_ + static_cast<int64_t>(static_cast<typename W::Signed>(offset)), bytes};
}

Piece Cursor::next(int64_t bytes_max) {
  if (bytes_max <= 0 || position_ == total()) return {};
  return std::visit([&](auto& state) { return next_piece(state, bytes_max); }, state_);
}

}  // namespace spinloom::layout
