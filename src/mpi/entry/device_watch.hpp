// DeviceWatch - whether this process uses a GPU's driver, and whose memory an address is.
//
// Contract: every call that has a buffer calls none(). It is true as long as no driver of a GPU is loaded, and costs
//   some nanoseconds unless the loader has loaded a library since the last look. owner() asks the
//   driver that the program has loaded, in one call; nothing is loaded or initialised for it. What the driver says of
//   an allocation is kept by the allocation's number, which CUDA gives to no other, so that memory that was freed and
//   given out again is not mistaken.
//   Memory that host and device both reach (pinned, managed) is the host's here.
// Invariants: (1) none() stays false once a driver is there; (2) the process's driver is never initialised here.
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

  [[nodiscard]] bool none() { return !has_driver_.load(std::memory_order_relaxed) && !look(); }

  struct Owner {
    int ordinal = -1;  // of the device; below 0: memory of the host
    const std::byte* start = nullptr;
    size_t bytes = 0;
  };
  [[nodiscard]] Result<Owner> owner(const void* address);

  // SPINLOOM_MPI_GPU: on, host; off; auto (also if it is not set): where this machine has NVIDIA's driver, or the
  // process has.
  [[nodiscard]] static bool is_wanted(const char* setting);

 private:
  using Attributes = int (*)(unsigned, int*, void**, unsigned long long);
  [[nodiscard]] bool look();

  std::atomic<uint64_t> loads_{0};  // of libraries, at the last look
  std::atomic<bool> has_driver_{false};
  Attributes attributes_ = nullptr;
  std::mutex mutex_;
  HandleMap<Owner> owners_;  // by the allocations' numbers
};

}  // namespace spinloom::mpi
