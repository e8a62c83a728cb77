// The walker of spinloom/layout_walk.h, which a handler runs, over all layouts.
#include "memory/layout/testing/blob_ways.hpp"
#include "memory/layout/testing/moved_pieces.hpp"
#include "spinloom/layout_walk.h"

namespace spinloom::layout {
namespace {

using namespace test;

OpenPacking walker(Width width) {
  return [width](const Type& type, int64_t count, bool packs, Random&) -> Result<MoverPointer> {
    SPL_ASSIGN(const Blob blob, blob_for(type, count, width));
    return piece_mover(packs, blob.true_lb(), [=](const Cut& cut, MovedPieces& pieces) -> Status {
      if (blob.is_narrow()) {
        spl_walk_narrow(blob.data(), static_cast<uint32_t>(cut.first), static_cast<uint32_t>(cut.bytes()), emit_narrow,
                        &pieces);
      } else {
        spl_walk_wide(blob.data(), static_cast<uint64_t>(cut.first), static_cast<uint64_t>(cut.bytes()), emit_wide,
                      &pieces);
      }
      return {};
    });
  };
}

// Rules: LAY-14, LAY-44, LAY-45.
SPINLOOM_LAYOUT_SUITE(WalkerLayouts, (std::vector{packing_way("narrow", walker(Width::narrow), 250),
                                                  packing_way("wide", walker(Width::wide), 250)}));

}  // namespace
}  // namespace spinloom::layout
