// Blob ways - blobs of either width for the ways of the layout suite.
//
// Contract: blob_for() is unsupported where a narrow blob cannot be made, because elements lie too far from each other.
//   Its header must say what the type does.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "memory/layout/blob.hpp"

namespace spinloom::layout::test {

inline Result<Blob> blob_for(const Type& type, int64_t count, Width width) {
  constexpr int64_t narrow_max = (int64_t{1} << 31) / 8;  // an empty message may have any extent
  if (width == Width::narrow && std::abs(type.extent()) > narrow_max) {
    return fail(Code::unsupported, "a narrow blob reaches less far");
  }
  SPL_ASSIGN(Blob blob, Blob::build(type, {width, count}));
  if (blob.size() == type.size() && blob.extent() == type.extent() && blob.true_lb() == type.true_lb() &&
      blob.true_extent() == type.true_extent()) {
    return blob;
  }
  return fail(Code::mismatch, "the size or the bounds in the blob's header");
}

}  // namespace spinloom::layout::test
