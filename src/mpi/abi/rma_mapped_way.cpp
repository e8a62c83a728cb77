#include "mpi/abi/rma_mapped_way.hpp"

#include <algorithm>
#include <cstring>

namespace spinloom::mpi::SPINLOOM_ABI {

int RmaMappedWay::post(std::span<const int> origins) {
  if (is_posted_) return PTL_ARG_INVALID;
  is_posted_ = true;
  meeting_.post(origins);
  return PTL_OK;
}

int RmaMappedWay::completed_test(int* done) {
  if (!is_posted_) return PTL_ARG_INVALID;
  const int code = code_of(meeting_.completed_test(), done);
  if (code != PTL_OK || *done != 0) is_posted_ = false;
  return code;
}

int RmaMappedWay::start_test(std::span<const int> targets, int* done) {
  if (!is_starting_) meeting_.start(targets);
  is_starting_ = true;
  const int code = code_of(meeting_.started_test(), done);
  if (code != PTL_OK || *done != 0) is_starting_ = false;
  return code;
}

int RmaMappedWay::complete() {
  meeting_.complete();
  return PTL_OK;
}

bool RmaMappedWay::sleep(int lock_of, const std::function<bool()>& is_needed) {
  meeting_.sleep(is_needed, lock_of < 0 ? std::nullopt : std::optional(static_cast<size_t>(lock_of)));
  return true;
}

int RmaMappedWay::close_test(int* done) {
  meeting_.leave();
  WindowWords::retire(std::move(words_), memory_.size());
  *done = 1;
  return PTL_OK;
}

int RmaMappedWay::move(int target, std::span<const ptl_iovec_t> here, std::span<const spl_rma_piece> there,
                       bool is_put) {
  uint8_t* const base = memory_of(target);
  size_t piece = 0;
  uint64_t done_there = 0;
  for (const ptl_iovec_t& block : here) {
    auto* own = static_cast<uint8_t*>(block.iov_base);
    uint64_t left = block.iov_len;
    while (left > 0) {
      const uint64_t bytes = std::min(left, there[piece].bytes - done_there);
      uint8_t* const theirs = base + there[piece].offset + done_there;
      std::memmove(is_put ? theirs : own, is_put ? own : theirs, bytes);
      own += bytes;
      left -= bytes;
      done_there += bytes;
      if (done_there < there[piece].bytes) continue;
      ++piece;
      done_there = 0;
    }
  }
  return PTL_OK;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
