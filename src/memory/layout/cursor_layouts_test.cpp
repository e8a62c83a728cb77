// The cursor over all layouts: it is kept from cut to cut, and steps by random lengths.
#include "memory/layout/cursor.hpp"
#include "memory/layout/testing/blob_ways.hpp"
#include "memory/layout/testing/moved_pieces.hpp"

namespace spinloom::layout {
namespace {

using namespace test;

OpenPacking cursor(Width width) {
  return [width](const Type& type, int64_t count, bool packs, Random& random) -> Result<MoverPointer> {
    SPL_ASSIGN(const Blob blob, blob_for(type, count, width));
    SPL_ASSIGN(Cursor opened, Cursor::open(blob, count));
    const auto step = [opened, steps = Random(random.next())](const Cut& cut, MovedPieces& pieces) mutable -> Status {
      SPL_TRY(opened.seek(cut.first));
      for (int64_t at = 0; at < cut.bytes();) {
        const Piece piece = opened.next(std::min(cut.bytes() - at, steps.between(1, 64)));
        if (piece.bytes == 0) return fail(Code::mismatch, "no piece at ", at);
        pieces.add(piece.offset, at, piece.bytes);
        at += piece.bytes;
      }
      if (opened.position() != cut.last) return fail(Code::mismatch, "it stands at ", opened.position());
      return {};
    };
    return piece_mover(packs, 0, step);
  };
}

// Rules: LAY-14, LAY-44, LAY-45.
SPINLOOM_LAYOUT_SUITE(CursorLayouts, (std::vector{packing_way("narrow", cursor(Width::narrow), 250),
                                                  packing_way("wide", cursor(Width::wide), 250)}));

}  // namespace
}  // namespace spinloom::layout
