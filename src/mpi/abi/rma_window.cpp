// Epochs of windows on the NIC.
#include "mpi/abi/rma_window.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_wait.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

RmaWindow::RmaWindow(Nic& nic, RmaTypes& types, RmaCounts& counts, Win handle, spl_rma_window* window,
                     std::vector<Part> parts, std::unique_ptr<Word> word)
    : nic_(nic),
      types_(types),
      counts_(counts),
      handle_(handle),
      window_(window),
      parts_(std::move(parts)),
      word_(std::move(word)),
      holds_(parts_.size(), Hold::none) {}

int RmaWindow::failed() const {
  std::fprintf(stderr, "spinloom: rank %d, a window on the NIC: %s\n", layer.rank, nic_.spl_rma_error(nic_.memory()));
  return error_other;
}

bool RmaWindow::is_open_to(int target) const {
  return is_fenced_ || holds_all_ || holds_[static_cast<size_t>(target)] != Hold::none ||
         (is_started_ && std::ranges::find(started_, target) != started_.end());
}

std::vector<ptl_rank_t> RmaWindow::ranks_of(std::span<const int> group) const {
  std::vector<ptl_rank_t> ranks;
  for (const int rank : group) ranks.push_back(parts_[static_cast<size_t>(rank)].rank);
  return ranks;
}

int RmaWindow::fence(int assert) {
  {
    const Lock lock;
    if (nic_.spl_rma_window_fence_begin(window_) != PTL_OK) return failed();
  }
  const int code = wait_for([&](int* done) { return nic_.spl_rma_window_fence_test(window_, done); });
  const Lock lock;
  for (size_t target = 0; target < parts_.size(); ++target) settle(static_cast<int>(target));
  is_fenced_ = (assert& mode_nosucceed) == 0;
  return code;
}

int RmaWindow::post(std::span<const int> origins) {
  const Lock lock;
  const std::vector<ptl_rank_t> group = ranks_of(origins);
  const int code = nic_.spl_rma_post(window_, group.data(), static_cast<uint32_t>(group.size()));
  return code == PTL_OK ? success : code == PTL_ARG_INVALID ? error_rma_sync : failed();
}

int RmaWindow::start(std::span<const int> targets) {
  std::vector<ptl_rank_t> group;
  {
    const Lock lock;
    if (is_started_) return error_rma_sync;
    group = ranks_of(targets);
  }
  const auto size = static_cast<uint32_t>(group.size());
  const int code = wait_for([&](int* done) { return nic_.spl_rma_start_test(window_, group.data(), size, done); });
  const Lock lock;
  is_started_ = code == success;
  is_fenced_ = false;
  started_.assign(targets.begin(), targets.end());
  return code;
}

int RmaWindow::complete() {
  if (!is_started_) return error_rma_sync;
  int code = success;
  for (const int target : started_) {
    const int flushed = flush_part(target);
    if (code == success) code = flushed;
  }
  const Lock lock;
  is_started_ = false;
  if (nic_.spl_rma_complete(window_) != PTL_OK && code == success) code = failed();
  return code;
}

int RmaWindow::wait() {
  int flag = 0;
  int code = test(&flag);
  if (code != success || flag != 0) return code;
  return wait_for([&](int* done) { return nic_.spl_rma_test_completed(window_, done); });
}

int RmaWindow::test(int* flag) {
  const Lock lock;
  const int code = nic_.spl_rma_test_completed(window_, flag);
  return code == PTL_OK ? success : code == PTL_ARG_INVALID ? error_rma_sync : failed();
}

int RmaWindow::lock(int kind, int target, int assert) {
  if (target == proc_null) return success;
  Hold& hold = holds_[static_cast<size_t>(target)];
  if (hold != Hold::none || holds_all_) return error_rma_sync;
  const ptl_rank_t rank = parts_[static_cast<size_t>(target)].rank;
  const bool asks = (assert& mode_nocheck) == 0;
  if (asks) {
    {
      const Lock lock;
      const int wanted = kind == lock_shared ? SPL_RMA_SHARED : SPL_RMA_EXCLUSIVE;
      if (nic_.spl_rma_lock_begin(window_, rank, wanted) != PTL_OK) return failed();
    }
    const int code = wait_for([&](int* done) { return nic_.spl_rma_lock_test(window_, rank, done); });
    if (code != success) return code;
  }
  const Lock lock;
  hold = asks ? Hold::by_lock : Hold::unchecked;
  is_fenced_ = false;
  return success;
}

int RmaWindow::unlock(int target) {
  if (target == proc_null) return success;
  Hold& hold = holds_[static_cast<size_t>(target)];
  if (hold == Hold::none) return error_rma_sync;
  int code = flush_part(target);
  const Lock lock;
  const ptl_rank_t rank = parts_[static_cast<size_t>(target)].rank;
  if (hold == Hold::by_lock && nic_.spl_rma_unlock(window_, rank) != PTL_OK && code == success) code = failed();
  hold = Hold::none;
  return code;
}

// Locks in the order of the job's ranks, so that two ranks that lock all do not wait for each other.
int RmaWindow::lock_all(int assert) {
  if (holds_all_) return error_rma_sync;
  if ((assert& mode_nocheck) == 0) {
    std::vector<int> in_order(parts_.size());
    std::iota(in_order.begin(), in_order.end(), 0);
    std::ranges::sort(in_order, {}, [&](int target) { return parts_[static_cast<size_t>(target)].rank; });
    for (const int target : in_order) {
      const int code = lock(lock_shared, target, 0);
      if (code != success) return code;
    }
  }
  const Lock lock;
  holds_all_ = true;
  is_fenced_ = false;
  return success;
}

int RmaWindow::unlock_all() {
  if (!holds_all_) return error_rma_sync;
  int code = flush_all();
  for (size_t target = 0; target < parts_.size(); ++target) {
    if (holds_[target] == Hold::none) continue;
    const int unlocked = unlock(static_cast<int>(target));
    if (code == success) code = unlocked;
  }
  const Lock lock;
  holds_all_ = false;
  return code;
}

int RmaWindow::flush_part(int target) {
  const ptl_rank_t rank = parts_[static_cast<size_t>(target)].rank;
  const int code = wait_for([&](int* done) { return nic_.spl_rma_flush_test(nic_.memory(), rank, done); });
  const Lock lock;
  settle(target);
  return code;
}

int RmaWindow::flush(int target) {
  if (target == proc_null) return success;
  return is_open_to(target) ? flush_part(target) : error_rma_sync;
}

int RmaWindow::flush_all() {
  int code = success;
  for (size_t target = 0; target < parts_.size(); ++target) {
    const int flushed = flush_part(static_cast<int>(target));
    if (code == success) code = flushed;
  }
  return code;
}

int RmaWindow::close() {
  if (is_started_ || holds_all_ || std::ranges::any_of(holds_, [](Hold hold) { return hold != Hold::none; })) {
    return error_rma_sync;
  }
  const int code = fence(mode_nosucceed);
  const Lock lock;
  for (const Part& part : parts_) nic_.spl_rma_forget(part.word);
  nic_.spl_rma_deregister(word_->memory);
  nic_.spl_rma_window_drop(window_);
  return code;
}

bool RmaWindow::has_ended(int target, int& code) {
  const Lock lock;
  int done = 0;
  const ptl_rank_t rank = parts_[static_cast<size_t>(target)].rank;
  code = nic_.spl_rma_flush_test(nic_.memory(), rank, &done) == PTL_OK ? success : failed();
  if (code == success && done == 0) return false;
  settle(target);
  return true;
}

uint8_t* RmaWindow::keep_packed(int target, int64_t bytes, const Buffer* into) {
  PackedMemory& made = packed_memory_.emplace_back();
  made.target = target;
  made.bytes.resize(static_cast<size_t>(bytes));
  if (into != nullptr) {
    made.into = *into;
    made.form = types_.of(into->type)->form;
  }
  return made.bytes.data();
}

void RmaWindow::settle(int target) {
  for (auto one = packed_memory_.begin(); one != packed_memory_.end();) {
    if (one->target != target) {
      ++one;
      continue;
    }
    if (one->form != nullptr) {
      const Message into(*one->form, one->into.count, one->into.address);
      into.unpack({0, static_cast<int64_t>(one->bytes.size())}, one->bytes.data());
    }
    one = packed_memory_.erase(one);
  }
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
