// The calls by which epochs of windows begin and end: the MPI's own, which also say so to the Window (windows.hpp).
//
// Copies of ours are over when they return, so the MPI's synchronisation tells others only after them: a
// fence of memory stands behind each copy, and in front of what a rank does once others have come.
#include <atomic>
#include <vector>

#include "mpi/abi/calls.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

Window* find_window(Win handle) {
  const Lock lock;
  return layer.windows.find(handle);
}

}  // namespace

int Win_free(Win* window) {
  {
    const Lock lock;
    layer.windows.forget(*window);
  }
  return real.Win_free(window);
}

int Win_fence(int assert, Win window) {
  Window* const ours = find_window(window);
  if (ours == nullptr) return real.Win_fence(assert, window);
  const int code = real.Win_fence(assert & ~mode_noprecede, window);
  const Lock lock;
  if (code == success) ours->fence(assert);
  return code;
}

// A post is counted before the MPI's call, because the MPI of an origin may know of it as soon as that begins.
int Win_post(Group group, int assert, Win window) {
  Window* const ours = find_window(window);
  if (ours == nullptr) return real.Win_post(group, assert, window);
  const std::vector<int> origins = ranks_in(group, window);
  ours->posts().add(origins);
  const int code = real.Win_post(group, assert, window);
  if (code != success) ours->posts().take_back(origins);
  return code;
}

int Win_start(Group group, int assert, Win window) {
  Window* const ours = find_window(window);
  if (ours == nullptr) return real.Win_start(group, assert, window);
  const std::vector<int> targets = ranks_in(group, window);
  const int code = real.Win_start(group, assert, window);
  const Lock lock;
  if (code == success) ours->start(targets);
  return code;
}

int Win_complete(Win window) {
  if (Window* const ours = find_window(window)) {
    const Lock lock;
    ours->complete();
  }
  return real.Win_complete(window);
}

int Win_wait(Win window) {
  const int code = real.Win_wait(window);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return code;
}

int Win_test(Win window, int* flag) {
  const int code = real.Win_test(window, flag);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return code;
}

int Win_lock(int kind, int target, int assert, Win window) {
  const int code = real.Win_lock(kind, target, assert, window);
  if (Window* const ours = code == success ? find_window(window) : nullptr) {
    const Lock lock;
    ours->lock(target, assert);
  }
  return code;
}

int Win_unlock(int target, Win window) {
  if (Window* const ours = find_window(window)) ours->unlock(target);
  return real.Win_unlock(target, window);
}

int Win_lock_all(int assert, Win window) {
  const int code = real.Win_lock_all(assert, window);
  if (Window* const ours = code == success ? find_window(window) : nullptr) {
    const Lock lock;
    ours->lock_all(assert);
  }
  return code;
}

int Win_unlock_all(Win window) {
  if (Window* const ours = find_window(window)) ours->unlock_all();
  return real.Win_unlock_all(window);
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
