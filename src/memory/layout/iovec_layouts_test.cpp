// The list of (offset, bytes) that scatter-gather interfaces take, over all layouts.
#include "memory/layout/iovec.hpp"
#include "memory/layout/testing/moved_pieces.hpp"

namespace spinloom::layout {
namespace {

using namespace test;

Result<MoverPointer> list(const Type& type, int64_t count, bool packs, Random& random) {
  SPL_ASSIGN(const Blob blob, Blob::build(type, {random.chance(1, 4) ? Width::wide : Width::automatic, count}));
  SPL_ASSIGN(const std::vector<Piece> pieces, export_iovec(blob, count));
  return piece_mover(packs, 0, [=](const Cut&, MovedPieces& moved) -> Status {
    int64_t at = 0;
    for (const Piece& piece : pieces) {
      moved.add(piece.offset, at, piece.bytes);
      at += piece.bytes;
    }
    return {};
  });
}

std::vector<LayoutWay> ways() {
  LayoutWay whole = packing_way("list", list, 120);
  whole.cuts = false;
  return {whole};
}

// Rules: LAY-11.
SPINLOOM_LAYOUT_SUITE(IovecLayouts, ways());

}  // namespace
}  // namespace spinloom::layout
