// Layouts - the types of all ranks of a recorded program whose elements are not one block.
//
// Contract: number() is the number of a type for some elements of it, or `none` if they lie in one block, as those of a
//   basic type do; types of the same blob share a number. Broken blobs are errors.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "memory/layout/blob.hpp"
#include "predict/trace/trace.hpp"

namespace spinloom::predict {

class Layouts {
 public:
  static Result<Layouts> build(std::span<const trace::RankTrace> traces);
  [[nodiscard]] uint32_t number(uint32_t rank, uint32_t type, int64_t count) const {
    const Known& known = types_[rank][type];
    return count == 1 && known.is_block ? trace::none : known.number;
  }
  [[nodiscard]] const std::vector<layout::Blob>& blobs() const { return blobs_; }

 private:
  struct Known {
    uint32_t number = trace::none;
    bool is_block = true;  // one element is
  };
  std::vector<std::vector<Known>> types_;  // by rank
  std::vector<layout::Blob> blobs_;
};

}  // namespace spinloom::predict
