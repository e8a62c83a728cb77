// Moved pieces - moves the pieces that a walk names between memory and packed bytes, for back ends that only name them.
//
// Contract: add() takes a piece: its offset from base, its first packed byte counted from the cut's, its length. end()
//   is an Error unless the pieces were those of the cut, one behind the other, none empty, all within the buffers.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "memory/layout/testing/layout_ways.hpp"

namespace spinloom::layout::test {

class MovedPieces {
 public:
  // `base`: the address in the layout's buffer that the offsets of pieces count from.
  MovedPieces(bool packs, const Buffer& layout, std::byte* base, const Buffer& packed, const Cut& cut)
      : packs_(packs), layout_(layout), base_(base), packed_(packed.base), bytes_(cut.bytes()) {}

  void add(int64_t offset, int64_t at, int64_t bytes) {
    const int64_t place = base_ - layout_.memory.data() + offset;
    const auto memory_bytes = static_cast<int64_t>(layout_.memory.size());
    if (at != seen_ || bytes <= 0 || bytes > bytes_ - at || place < 0 || bytes > memory_bytes - place) {
      if (wrong_.empty())
        wrong_ = text("a piece of ", bytes, " B at ", offset, " for packed byte ", at, " of ", bytes_);
      return;
    }
    std::byte* const here = layout_.memory.data() + place;
    std::memcpy(packs_ ? packed_ + at : here, packs_ ? here : packed_ + at, static_cast<size_t>(bytes));
    seen_ += bytes;
  }
  [[nodiscard]] Status end() const {
    if (!wrong_.empty()) return fail(Code::mismatch, wrong_);
    if (seen_ != bytes_) return fail(Code::mismatch, "pieces of ", seen_, " B for ", bytes_);
    return {};
  }

 private:
  bool packs_;
  Buffer layout_;
  std::byte* base_;
  std::byte* packed_;
  int64_t bytes_;
  int64_t seen_ = 0;
  std::string wrong_;
};

// A mover over pieces: pieces_of(cut, add) names those of a cut. `first`: what its offsets count from, from base.
template <class PiecesOf>
class PieceMover final : public Mover {
 public:
  PieceMover(bool packs, int64_t first, PiecesOf pieces_of)
      : packs_(packs), first_(first), pieces_of_(std::move(pieces_of)) {}
  Status move(const Buffer& from, const Buffer& to, const Cut& cut) override {
    const Buffer& layout = packs_ ? from : to;
    MovedPieces moved(packs_, layout, layout.base + first_, packs_ ? to : from, cut);
    SPL_TRY(pieces_of_(cut, moved));
    return moved.end();
  }

 private:
  bool packs_;
  int64_t first_;
  PiecesOf pieces_of_;
};
template <class PiecesOf>
MoverPointer piece_mover(bool packs, int64_t first, PiecesOf pieces_of) {
  return std::make_unique<PieceMover<PiecesOf>>(packs, first, std::move(pieces_of));
}

inline void emit_narrow(void* pieces, int32_t offset, uint32_t packed, uint32_t bytes) {
  static_cast<MovedPieces*>(pieces)->add(offset, packed, bytes);
}
inline void emit_wide(void* pieces, int64_t offset, uint64_t packed, uint64_t bytes) {
  static_cast<MovedPieces*>(pieces)->add(offset, static_cast<int64_t>(packed), static_cast<int64_t>(bytes));
}

}  // namespace spinloom::layout::test
