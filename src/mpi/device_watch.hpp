// DeviceWatch - whether this process uses a GPU's driver, and whose memory an address is.
//
// Contract: none() is asked in every call that has a buffer. It is true as long as no driver of a GPU is loaded, and costs two
//   loads and a branch: the loader's list has grown since the last look, or it has not. The library that was the last of
//   the list at a look stays loaded, so that its entry can be read. owner() asks the driver that the program has loaded, in one
//   call; nothing is loaded or initialised for it. What the driver says of an allocation is kept by the allocation's number,
//   which CUDA gives to no other, so that memory that was freed and given out again is not mistaken.
//   Memory that host and device both reach (pinned, managed) is the host's here.
// Invariants: (1) none() stays false once a driver is there; (2) the process's driver is never initialised here.
// Threads: any. Time: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/result.hpp"
#include "mpi/handle_map.hpp"

namespace spinloom::mpi {

class DeviceWatch {
 public:
  static DeviceWatch& of_process();

  [[nodiscard]] bool none() { return *news_.load(std::memory_order_relaxed) == nullptr || (!has_driver_ && !look()); }

  struct Owner {
    int ordinal = -1;  // of the device; below 0: memory of the host
    const std::byte* start = nullptr;
    size_t bytes = 0;
  };
  [[nodiscard]] Result<Owner> owner(const void* address);

  // SPINLOOM_MPI_GPU: on, off; auto (also if it is not set): where this machine has NVIDIA's driver, or the process has.
  [[nodiscard]] static bool is_wanted(const char* setting);

 private:
  using Attributes = int (*)(unsigned, int*, void**, unsigned long long);
  [[nodiscard]] bool look();

  // Where the loader notes what follows the last library that was seen. At first a word that is not null.
  static inline char anything_ = 0;
  static inline void* const unknown_ = &anything_;
  std::atomic<void* const volatile*> news_{&unknown_};
  std::atomic<bool> has_driver_{false};
  Attributes attributes_ = nullptr;
  std::mutex mutex_;
  HandleMap<Owner> owners_;  // by the allocations' numbers
};

}  // namespace spinloom::mpi
