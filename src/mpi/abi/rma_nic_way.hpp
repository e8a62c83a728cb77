// RmaNicWay - the way of a window by the NICs of its ranks (spinloom/rma.h).
//
// Contract: that of RmaWay. Made by RmaWindows, with the keys of all ranks' parts.
// Threads: the caller's lock. Time: none.
#pragma once

#include <memory>
#include <vector>

#include "mpi/abi/rma_way.hpp"
#include "mpi/nic/nic.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class RmaNicWay final : public RmaWay {
 public:
  struct Part {
    uint32_t rank = 0;  // the rank in the job
    spl_rma_key* key = nullptr;  // the key of the rank's memory in the window
    spl_rma_key* word = nullptr;  // the key of the rank's Word
  };
  // The word of this rank's memory, which says who is changing it by itself. It lives as long as the window.
  struct Word {
    uint64_t value = 0;
    spl_rma_memory* memory = nullptr;
  };
  RmaNicWay(Nic& nic, spl_rma_window* window, std::vector<Part> parts, std::unique_ptr<Word> word)
      : nic_(nic), window_(window), parts_(std::move(parts)), word_(std::move(word)) {}

  [[nodiscard]] const char* error() const override { return nic_.spl_rma_error(nic_.memory()); }
  int fence_begin() override { return nic_.spl_rma_window_fence_begin(window_); }
  int fence_test(int* done) override { return nic_.spl_rma_window_fence_test(window_, done); }
  int post(std::span<const int> origins) override;
  int completed_test(int* done) override { return nic_.spl_rma_test_completed(window_, done); }
  int start_test(std::span<const int> targets, int* done) override;
  int complete() override { return nic_.spl_rma_complete(window_); }
  int lock_begin(int target, bool is_shared) override {
    return nic_.spl_rma_lock_begin(window_, rank_of(target), is_shared ? SPL_RMA_SHARED : SPL_RMA_EXCLUSIVE);
  }
  int lock_test(int target, int* done) override { return nic_.spl_rma_lock_test(window_, rank_of(target), done); }
  int unlock(int target) override { return nic_.spl_rma_unlock(window_, rank_of(target)); }
  int flush_test(int target, int* done) override {
    return nic_.spl_rma_flush_test(nic_.memory(), rank_of(target), done);
  }
  int close_test(int* done) override;
  int move(int target, std::span<const ptl_iovec_t> here, std::span<const spl_rma_piece> there, bool is_put) override;
  int accumulate(int target, uint64_t offset, const void* from, void* result, uint64_t count, int op,
                 ptl_datatype_t type) override;
  int compare_and_swap(int target, uint64_t offset, const void* value, const void* compare, void* result,
                       ptl_datatype_t type) override {
    return nic_.spl_rma_compare_and_swap(part(target).key, offset, value, compare, result, type);
  }
  int swap_word(int target, uint64_t from, uint64_t to, uint64_t& was) override {
    return nic_.spl_rma_compare_and_swap(part(target).word, 0, &to, &from, &was, PTL_UINT64_T);
  }

 private:
  [[nodiscard]] const Part& part(int target) const { return parts_[static_cast<size_t>(target)]; }
  [[nodiscard]] ptl_rank_t rank_of(int target) const { return part(target).rank; }
  [[nodiscard]] std::vector<ptl_rank_t> ranks_of(std::span<const int> group) const;

  Nic& nic_;
  spl_rma_window* window_;
  std::vector<Part> parts_;
  std::unique_ptr<Word> word_;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
