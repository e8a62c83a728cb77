// Device state - a device's primary context and its kernels. For the floor only.
//
// Contract: states are made once a device and live as long as the process: contexts are never released, because others
//   share them. kernel() gives the function of an entry, and loads it at the first call: a fatbin as a whole, by NVRTC
//   each entry when it is needed. kernel_origin() says which of the two it is.
// Threads: any. Time: host time.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "memory/gpu/device.hpp"
#include "memory/gpu/driver.hpp"
#include "memory/gpu/kernel_parts.h"

namespace spinloom::gpu {

// The number of entries. Their order is that of kernels.cu: one part of each kind; parts that differ; parts with many
// pairs of addresses; many parts of kind word; one part in brief.
inline constexpr size_t entry_count = kernel::kinds + 4;

struct Kernels {
  std::array<void*, entry_count> functions{};  // null: not compiled yet
  std::string origin;
};

struct Device::State {
  const Driver* driver = nullptr;
  int ordinal = 0;
  std::string name;
  int compute_capability = 0;
  int multiprocessors = 0;
  int driver_version = 0;
  void* context = nullptr;

  [[nodiscard]] Result<void*> kernel(size_t entry) const;
  [[nodiscard]] Result<std::string> kernel_origin() const;

 private:
  Result<Kernels*> kernels() const;  // the caller holds the mutex

  mutable std::mutex mutex_;
  mutable std::optional<Result<Kernels>> kernels_;
};

// Loads all entries of the fatbin that was built in. Where there is none, or it does not load, only names the compiler.
// Defined in module.cpp, like compile_kernel().
Result<Kernels> load_kernels(const Driver& driver);
// Compiles one entry for the device, and loads it.
Result<void*> compile_kernel(const Driver& driver, int compute_capability, size_t entry);

}  // namespace spinloom::gpu
