// Device - a GPU of this machine, found at run time: the first call opens the driver library.
//
// Contract: available() says whether there is a driver and a GPU; unavailable_reason() is one sentence if not, and
//   nothing else is printed anywhere. of() returns the device that owns a pointer; a host pointer, freed memory or a
//   pointer of no device is an Error that names the pointer. inspect() says what a pointer is, at the price of one
//   driver call. All work is done in the primary context of the device, the one that the CUDA runtime, CuPy and PyTorch
//   use; calls make it current and put back what was current before.
// Invariants: (1) two Devices of one ordinal are equal; (2) a process that never asks loads no driver.
// Threads: any. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace spinloom::gpu {

// A CUstream. Null is the legacy default stream: it waits for, and is waited for by, all blocking streams.
using Stream = void*;

enum class PointerKind : uint8_t {
  host,  // memory of the process that no driver knows
  pinned,  // host memory that the device reads and writes in place
  device,  // memory of the device
  managed,  // memory that moves between host and device
};

struct Pointer {
  PointerKind kind = PointerKind::host;
  int ordinal = -1;  // host: -1
  const void* start = nullptr;  // beginning of the allocation that holds it; host: null
  size_t bytes = 0;  // length of that allocation
  uint64_t allocation_id = 0;  // names that allocation, and no other that this process makes; 0: it has none
};

bool available();
std::string unavailable_reason();  // empty if available
Result<Pointer> inspect(const void* pointer);

class Device {
 public:
  static Result<Device> at(int ordinal);
  static Result<Device> of(const void* pointer);
  static int count();  // number of devices; 0 without a driver

  [[nodiscard]] int ordinal() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] int compute_capability() const;  // 90 for 9.0
  [[nodiscard]] int multiprocessors() const;  // the number of streaming multiprocessors
  [[nodiscard]] std::string driver_version() const;  // "13.0", the CUDA version of the driver
  // The source of the kernels: "fatbin", or "NVRTC 13.0", which compiles each kernel when a plan first needs it.
  [[nodiscard]] Result<std::string> kernel_origin() const;
  [[nodiscard]] Result<size_t> bytes_free() const;

  // Waits until a stream has done what was put on it; errors of kernels come out here.
  [[nodiscard]] Status synchronise(Stream stream = nullptr) const;

  bool operator==(const Device& other) const { return state_ == other.state_; }

  struct State;
  explicit Device(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  [[nodiscard]] const State& state() const { return *state_; }
  [[nodiscard]] const std::shared_ptr<const State>& shared_state() const { return state_; }

 private:
  friend class Memory;

  std::shared_ptr<const State> state_;
};

// Memory of a device, or pinned host memory that every device can use in place; freed with its owner.
class Memory {
 public:
  static Result<Memory> device(const Device& device, size_t bytes);
  static Result<Memory> pinned(const Device& device, size_t bytes);

  Memory() = default;
  Memory(Memory&& other) noexcept { swap(other); }
  Memory& operator=(Memory&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Memory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  void swap(Memory& other) noexcept;

  std::shared_ptr<const Device::State> state_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  bool pinned_ = false;
};

// Copies bytes in stream order; either end may be memory of the host or of a device. For pageable host memory, the
// driver may wait until the bytes are copied.
Status copy_bytes(const Device& device, void* to, const void* from, size_t bytes, Stream stream);

}  // namespace spinloom::gpu
