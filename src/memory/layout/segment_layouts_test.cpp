// The segment of spinloom/segment.h over all layouts: it is kept from cut to cut, catches up, and begins again.
#include "memory/layout/testing/blob_ways.hpp"
#include "memory/layout/testing/moved_pieces.hpp"
#include "spinloom/segment.h"

namespace spinloom::layout {
namespace {

using namespace test;

Result<MoverPointer> narrow(const Type& type, int64_t count, bool packs, Random&) {
  SPL_ASSIGN(const Blob blob, blob_for(type, count, Width::narrow));
  spl_segment_narrow segment{};
  spl_segment_init_narrow(&segment, blob.data());
  return piece_mover(packs, blob.true_lb(), [=](const Cut& cut, MovedPieces& pieces) mutable -> Status {
    spl_segment_manipulate_narrow(&segment, blob.data(), static_cast<uint32_t>(cut.first),
                                  static_cast<uint32_t>(cut.last), emit_narrow, &pieces);
    return {};
  });
}

Result<MoverPointer> wide(const Type& type, int64_t count, bool packs, Random&) {
  SPL_ASSIGN(const Blob blob, blob_for(type, count, Width::wide));
  spl_segment_wide segment{};
  spl_segment_init_wide(&segment, blob.data());
  return piece_mover(packs, blob.true_lb(), [=](const Cut& cut, MovedPieces& pieces) mutable -> Status {
    spl_segment_manipulate_wide(&segment, blob.data(), static_cast<uint64_t>(cut.first),
                                static_cast<uint64_t>(cut.last), emit_wide, &pieces);
    return {};
  });
}

// Rules: LAY-14, LAY-44, LAY-45.
SPINLOOM_LAYOUT_SUITE(SegmentLayouts,
                      (std::vector{packing_way("narrow", narrow, 250), packing_way("wide", wide, 250)}));

}  // namespace
}  // namespace spinloom::layout
