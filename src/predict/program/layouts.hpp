// Layouts - the types of all ranks of a recorded program whose elements are not one block.
//
// Contract: number_of() is the number of a type for some elements of it, or `none` if they lie in one block, as those
//   of a basic type do; types of the same blob share a number. Broken blobs are errors.
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
  [[nodiscard]] uint32_t number_of(uint32_t rank, uint32_t type, int64_t count) const {
    const TypeLayout& entry = types_[rank][type];
    return count == 1 && entry.is_block ? trace::none : entry.number;
  }
  [[nodiscard]] const std::vector<layout::Blob>& blobs() const { return blobs_; }

 private:
  struct TypeLayout {
    uint32_t number = trace::none;
    bool is_block = true;  // one element lies in one block
  };
  std::vector<std::vector<TypeLayout>> types_;  // one for each rank and type
  std::vector<layout::Blob> blobs_;
};

}  // namespace spinloom::predict
