// Epochs of windows on one-sided memory of ours.
#include "mpi/abi/rma_window.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>

#include "mpi/abi/layer.hpp"
#include "mpi/abi/rma_wait.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

RmaWindow::RmaWindow(std::unique_ptr<RmaWay> way, RmaTypes& types, RmaCounts& counts, Win handle,
                     std::vector<Part> parts)
    : way_(std::move(way)),
      types_(types),
      counts_(counts),
      handle_(handle),
      parts_(std::move(parts)),
      is_immediate_(way_->is_immediate()),
      holds_(parts_.size(), Hold::none) {}

std::vector<int> RmaWindow::ranks_of(Group group) {
  {
    const Lock lock;
    Group made{};
    if (!group_ && real.Win_get_group(handle_, &made) == success) group_ = made;
  }
  return group_ ? ranks_in_group(group, *group_) : std::vector<int>{};
}

int RmaWindow::failed() const {
  std::fprintf(stderr, "spinloom: rank %d, a window: %s\n", layer.rank, way_->error());
  return error_other;
}

bool RmaWindow::is_open_to(int target) const {
  return is_fenced_ || holds_all_ || holds_[static_cast<size_t>(target)] != Hold::none ||
         (is_started_ && std::ranges::find(started_, target) != started_.end());
}

int RmaWindow::fence(int assert) {
  {
    const Lock lock;
    if (way_->fence_begin() != PTL_OK) return failed();
  }
  const int code = wait_for([&](int* done) { return way_->fence_test(done); });
  const Lock lock;
  for (size_t target = 0; target < parts_.size() && !is_immediate_; ++target) settle(static_cast<int>(target));
  is_fenced_ = (assert& mode_nosucceed) == 0;
  return code;
}

int RmaWindow::post(std::span<const int> origins) {
  const Lock lock;
  const int code = way_->post(origins);
  return code == PTL_OK ? success : code == PTL_ARG_INVALID ? error_rma_sync : failed();
}

int RmaWindow::start(std::span<const int> targets) {
  {
    const Lock lock;
    if (is_started_) return error_rma_sync;
  }
  const int code = wait_for([&](int* done) { return way_->start_test(targets, done); });
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
  if (way_->complete() != PTL_OK && code == success) code = failed();
  return code;
}

int RmaWindow::wait() {
  int flag = 0;
  int code = test(&flag);
  if (code != success || flag != 0) return code;
  return wait_for([&](int* done) { return way_->completed_test(done); });
}

int RmaWindow::test(int* flag) {
  const Lock lock;
  const int code = way_->completed_test(flag);
  return code == PTL_OK ? success : code == PTL_ARG_INVALID ? error_rma_sync : failed();
}

int RmaWindow::lock(int kind, int target, int assert) {
  if (target == proc_null) return success;
  Hold& hold = holds_[static_cast<size_t>(target)];
  if (hold != Hold::none || holds_all_) return error_rma_sync;
  const bool asks = (assert& mode_nocheck) == 0;
  if (asks) {
    int is_granted = 0;
    {
      const Lock lock;
      if (way_->lock_begin(target, kind == lock_shared) != PTL_OK ||
          (is_immediate_ && way_->lock_test(target, &is_granted) != PTL_OK)) {
        return failed();
      }
    }
    const int code =
        is_granted != 0 ? success : wait_for([&](int* done) { return way_->lock_test(target, done); }, target);
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
  if (hold == Hold::by_lock && way_->unlock(target) != PTL_OK && code == success) code = failed();
  hold = Hold::none;
  return code;
}

// Locks in the order of the job's ranks, so that two ranks that lock all do not wait for each other.
int RmaWindow::lock_all(int assert) {
  if (holds_all_ || std::ranges::any_of(holds_, [](Hold hold) { return hold != Hold::none; })) return error_rma_sync;
  int is_granted = 0;
  // After so many tries, each lock waits by itself, as it does for one rank.
  constexpr int tries_max = 2'000;
  Spin spin;
  for (int tries = 0; is_immediate_ && (assert& mode_nocheck) == 0 && is_granted == 0 && tries < tries_max; ++tries) {
    {
      const Lock lock;
      if (way_->lock_all_test(&is_granted) != PTL_OK) return failed();
      holds_at_once_ = is_granted != 0;
    }
    if (is_granted == 0) (void)spin.pause();
  }
  if ((assert& mode_nocheck) == 0 && is_granted == 0) {
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
  int code = is_immediate_ ? success : flush_all();
  for (size_t target = 0; target < parts_.size() && !holds_at_once_; ++target) {
    if (holds_[target] == Hold::none) continue;
    const int unlocked = unlock(static_cast<int>(target));
    if (code == success) code = unlocked;
  }
  const Lock lock;
  if (holds_at_once_ && way_->unlock_all() != PTL_OK && code == success) code = failed();
  holds_at_once_ = false;
  holds_all_ = false;
  return code;
}

int RmaWindow::flush_part(int target) {
  if (is_immediate_) return success;
  const int code = wait_for([&](int* done) { return way_->flush_test(target, done); });
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
  if (group_) real.Group_free(&*group_);
  group_.reset();
  const int left = wait_for([&](int* done) { return way_->close_test(done); });
  return code == success ? left : code;
}

bool RmaWindow::has_ended(int target, int& code) {
  const Lock lock;
  int done = 0;
  code = way_->flush_test(target, &done) == PTL_OK ? success : failed();
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
