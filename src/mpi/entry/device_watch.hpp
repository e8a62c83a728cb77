// DeviceWatch - finds out if this process uses a GPU's driver, and to which memory an address belongs.
//
// Contract: every call that has a buffer calls has_no_driver(). It is true as long as no driver of a GPU is loaded, and
//   costs some nanoseconds unless the loader has loaded a library since the last look. owner() calls the driver that
//   the program has loaded, once for an allocation that is known; nothing is loaded or initialised for it. Allocations
//   are kept by their numbers, which CUDA gives out once, so that memory that was freed and given out again is not
//   mistaken. Memory that host and device both reach (pinned, managed) is the host's here.
// Invariants: (1) has_no_driver() stays false once a driver is there; (2) the process's driver is never initialised
//   here.
// Threads: any. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/result.hpp"
#include "mpi/entry/handle_map.hpp"

namespace spinloom::mpi {

class DeviceWatch {
 public:
  static DeviceWatch& of_process();

  [[nodiscard]] bool has_no_driver() { return !has_driver_.load(std::memory_order_relaxed) && !look_for_driver(); }

  struct Owner {
    int ordinal = -1;  // the device; below 0: memory of the host, and nothing else is set
    const std::byte* start = nullptr;  // the allocation begins here
    size_t bytes = 0;
    uint64_t number = 0;  // the allocation's number
  };
  [[nodiscard]] Result<Owner> owner(const void* address);

  // `setting`: the value of SPINLOOM_MPI_GPU. True for "on" and "host", false for "off". For all others, and if it is
  // not set: true if this machine has NVIDIA's driver, or this process has loaded it.
  [[nodiscard]] static bool is_wanted(const char* setting);

 private:
  using Attributes = int (*)(unsigned, int*, void**, unsigned long long);
  [[nodiscard]] bool look_for_driver();

  std::atomic<uint64_t> loads_seen_{0};  // load_count() at the last look
  std::atomic<bool> has_driver_{false};
  Attributes get_attributes_ = nullptr;
  std::mutex mutex_;
  HandleMap<Owner> owners_;  // owners by the numbers of allocations
};

}  // namespace spinloom::mpi
