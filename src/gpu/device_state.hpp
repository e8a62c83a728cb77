// Device state - a device's primary context and its kernels. For the floor only.
//
// Contract: states are made once a device and live as long as the process: contexts are never released, because others
//   share them. kernels() loads the module when it is first asked; the answer is kept.
// Threads: any. Time: host time.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gpu/device.hpp"
#include "gpu/driver.hpp"
#include "gpu/kernel_parts.h"

namespace spinloom::gpu {

// One more than kinds: parts that differ, and the same with many pairs of addresses.
inline constexpr size_t entries = kernel::kinds + 2;

struct Kernels {
  std::array<void*, entries> functions{};
  std::string origin;
};

struct Device::State {
  const Driver* driver = nullptr;
  int ordinal = 0;
  std::string name;
  int compute = 0;
  int processors = 0;
  int version = 0;
  void* context = nullptr;

  [[nodiscard]] Result<const Kernels*> kernels() const;

 private:
  mutable std::mutex mutex_;
  mutable std::optional<Result<Kernels>> kernels_;
};

// Loads the kernels into the current context: the fatbin that was built in, else by NVRTC (module.cpp).
Result<Kernels> load_kernels(const Driver& driver, int compute);

}  // namespace spinloom::gpu
