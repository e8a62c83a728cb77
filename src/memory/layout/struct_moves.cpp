#include "memory/layout/struct_moves.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace spinloom::layout {
namespace {

constexpr uint64_t longest_move = 32;
constexpr int64_t place_max = int64_t{1} << 30;  // places fit in 32 bits

int64_t move_length(int64_t bytes) {
  return static_cast<int64_t>(std::min(longest_move, std::bit_floor(static_cast<uint64_t>(bytes))));
}

template <class W>
struct Runs {
  const typename W::Node& leaf;

  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(leaf.count); }
  [[nodiscard]] int64_t offset(int64_t i) const {
    if (leaf.kind == SPL_LEAF_RUNS) return table()[i].offset;
    if (leaf.kind == SPL_LEAF_VECTOR) return i * leaf.stride;
    return reinterpret_cast<const typename W::Signed*>(&leaf + 1)[i];
  }
  [[nodiscard]] int64_t bytes(int64_t i) const {
    return static_cast<int64_t>(leaf.kind == SPL_LEAF_RUNS ? table()[i + 1].start - table()[i].start : leaf.block);
  }
  [[nodiscard]] const typename W::Run* table() const { return reinterpret_cast<const typename W::Run*>(&leaf + 1); }

  [[nodiscard]] bool is_disjoint(int64_t stride) const {
    int64_t end = offset(0);
    for (int64_t i = 0; i < count(); ++i) {
      if (offset(i) < end) return false;
      end = offset(i) + bytes(i);
    }
    return std::abs(stride) >= end - offset(0);
  }
};

}  // namespace

template <class W>
bool StructMoves::prepare(const KernelSet& set, const typename W::Node& leaf, int64_t stride) {
  struct Move {
    int32_t memory;
    int32_t packed;
    int64_t length;
  };
  std::array<Move, moves_max + group_moves> moves;
  size_t move_count = 0;
  int64_t packed_start = 0;
  const Runs<W> runs{leaf};
  if (std::abs(stride) > place_max) return false;
  for (int64_t i = 0; i < runs.count(); ++i) {
    const int64_t bytes = runs.bytes(i);
    const int64_t offset = runs.offset(i);
    if (std::abs(offset) > place_max) return false;
    const int64_t length = move_length(bytes);
    for (int64_t done = 0; done < bytes;) {
      if (move_count == moves_max) return false;
      // A short rest is one move: of its own length, or of more bytes, which overlap those before the rest.
      const int64_t remaining = bytes - done;
      const int64_t move_bytes = remaining < length && move_length(remaining) == remaining ? remaining : length;
      const int64_t at = std::min(done, bytes - move_bytes);
      moves[move_count++] = {static_cast<int32_t>(offset + at), static_cast<int32_t>(packed_start + at), move_bytes};
      done += move_bytes;
    }
    packed_start += bytes;
  }
  for (size_t i = 0; i < group_moves; ++i) moves[move_count + i] = {0, 0, 0};
  group_count_ = 0;
  for (const Move* first = moves.data(); first < moves.data() + move_count;) {
    MoveLengths length = {first[0].length, first[1].length, first[2].length, first[3].length};
    if (!has_four_moves_kernel(length)) length[3] = 0;
    Group& group = groups_[group_count_++];
    group.kernel = set.moves[moves_kernel_index(length)];
    group.memory = {static_cast<int32_t>(stride), first->memory, {}};
    group.packed = {static_cast<int32_t>(packed_start), first->packed, {}};
    size_t k = 1;
    for (; k < group_moves && length[k] != 0; ++k) {
      group.memory.next[k - 1] = first[k].memory - first->memory;
      group.packed.next[k - 1] = first[k].packed - first->packed;
    }
    first += k;
  }
  is_disjoint_ = runs.is_disjoint(stride);
  return true;
}

template bool StructMoves::prepare<Narrow>(const KernelSet&, const Narrow::Node&, int64_t);
template bool StructMoves::prepare<Wide>(const KernelSet&, const Wide::Node&, int64_t);

bool StructMoves::matches(const StructMoves& other) const {
  static_assert(std::has_unique_object_representations_v<MoveSide>);
  if (group_count_ != other.group_count_) return false;
  for (size_t i = 0; i < group_count_; ++i) {
    if (groups_[i].kernel != other.groups_[i].kernel) return false;
    if (std::memcmp(&groups_[i].packed, &other.groups_[i].packed, sizeof(MoveSide)) != 0) return false;
  }
  return true;
}

}  // namespace spinloom::layout
