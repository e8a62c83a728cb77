// RmaMappedWay - the way of a window whose ranks share a machine and have all mapped its memory: the origin copies and
// changes bytes itself, and words in shared memory synchronise (mpi/meeting/window_words.hpp). No rank answers for
// another one, so a target may compute meanwhile.
//
// Contract: that of RmaWay. An access has ended when its call returns, so that flushes find nothing to wait for.
// Invariants: (1) elements are changed by accumulating calls under the target's change lock alone, whatever their type
//   and the operation, by the target itself, too: so they are atomic with each other. That lock is held for at most
//   64 KiB of an access.
// Threads: the caller's lock. Time: none.
#pragma once

#include <string>
#include <vector>

#include "mpi/abi/rma_way.hpp"
#include "mpi/meeting/window_words.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class RmaMappedWay final : public RmaWay {
 public:
  RmaMappedWay(std::vector<uint8_t*> memory, WindowWords own, WindowMeeting meeting)
      : memory_(std::move(memory)), words_(std::move(own)), meeting_(std::move(meeting)), holds_(memory_.size()) {}

  [[nodiscard]] const char* error() const override { return "a rank of the window has died"; }
  int fence_begin() override {
    meeting_.fence_begin();
    return PTL_OK;
  }
  int fence_test(int* done) override { return code_of(meeting_.fence_test(), done); }
  int post(std::span<const int> origins) override;
  int completed_test(int* done) override;
  int start_test(std::span<const int> targets, int* done) override;
  int complete() override;
  int lock_begin(int target, bool is_shared) override {
    holds_[static_cast<size_t>(target)] = is_shared ? WindowMeeting::Kind::shared : WindowMeeting::Kind::exclusive;
    return PTL_OK;
  }
  int lock_test(int target, int* done) override {
    return code_of(meeting_.lock_test(static_cast<size_t>(target), holds_[static_cast<size_t>(target)]), done);
  }
  int unlock(int target) override {
    meeting_.unlock(static_cast<size_t>(target), holds_[static_cast<size_t>(target)]);
    return PTL_OK;
  }
  [[nodiscard]] bool is_immediate() const override { return true; }
  int lock_all_test(int* done) override { return code_of(meeting_.lock_all_test(), done); }
  int unlock_all() override {
    meeting_.unlock_all();
    return PTL_OK;
  }
  int flush_test(int, int* done) override {
    *done = 1;
    return PTL_OK;
  }
  bool sleep(int lock_of, const std::function<bool()>& is_needed) override;
  int close_test(int* done) override;
  int move(int target, std::span<const ptl_iovec_t> here, std::span<const spl_rma_piece> there, bool is_put) override;

  [[nodiscard]] uint8_t* memory_of(int target) override { return memory_[static_cast<size_t>(target)]; }
  [[nodiscard]] bool begin_change(int target) override { return meeting_.begin_change(static_cast<size_t>(target)); }
  void end_change(int target) override { meeting_.end_change(static_cast<size_t>(target)); }

  int accumulate(int, uint64_t, const void*, void*, uint64_t, int, ptl_datatype_t) override { return PTL_FAIL; }
  int compare_and_swap(int, uint64_t, const void*, const void*, void*, ptl_datatype_t) override { return PTL_FAIL; }
  int swap_word(int, uint64_t, uint64_t, uint64_t&) override { return PTL_FAIL; }

 private:
  [[nodiscard]] static int code_of(WindowMeeting::Answer answer, int* done) {
    *done = answer == WindowMeeting::Answer::done ? 1 : 0;
    return answer == WindowMeeting::Answer::dead ? PTL_FAIL : PTL_OK;
  }

  std::vector<uint8_t*> memory_;
  WindowWords words_;
  WindowMeeting meeting_;
  std::vector<WindowMeeting::Kind> holds_;
  bool is_posted_ = false;
  bool is_starting_ = false;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
