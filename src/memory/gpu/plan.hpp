// Plan - a program that is resident on a device: one launch moves a whole set of messages.
//
// Contract: make() loads the kernels once a device and uploads tables and blobs; launch() puts one kernel on the
//   caller's stream and returns. It allocates nothing, waits for nothing and may be captured into a CUDA graph. There
//   is one exception: a short message with long blocks at addresses that are no multiples of a word needs another
//   kernel, which its first launch loads. ends has one pair of addresses for each that the messages name; addresses may
//   be memory of the device, of a peer that was mapped (peer.hpp), or pinned host memory. Memory that the kernel reads
//   and writes must not overlap. Order with other work is that of the stream. The plan must live until the launch has
//   ended. launch() checks only that pointers are given; check() asks the driver about each and is for callers that do
//   not know what they have: a pageable host pointer, another device's memory or freed memory is an Error.
// Invariants: (1) a call launches one kernel, or none for a set without bytes.
// Threads: launches side by side are allowed; they share only what is read. Time: host time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/event.hpp"
#include "memory/gpu/program.hpp"

namespace spinloom::gpu {

class Plan {
 public:
  static Result<Plan> make(const Device& device, std::span<const Message> messages, const ProgramOptions& options = {});
  static Result<Plan> make(const Device& device, Program program);

  [[nodiscard]] Status launch(std::span<const Ends> ends, Stream stream = nullptr) const;
  [[nodiscard]] Status launch(const void* from, void* to, Stream stream = nullptr) const {
    const Ends ends{from, to};
    return launch({&ends, 1}, stream);
  }
  // Launches, and returns a mark behind the launch, which the host can query, wait for, or let another stream wait for.
  [[nodiscard]] Result<Event> begin(std::span<const Ends> ends, Stream stream = nullptr) const;
  [[nodiscard]] Status check(std::span<const Ends> ends) const;

  [[nodiscard]] const Program& program() const { return program_; }
  [[nodiscard]] const Device& device() const { return device_; }

 private:
  struct Resident;
  Plan(Device device, Program program, std::shared_ptr<const Resident> resident)
      : device_(std::move(device)), program_(std::move(program)), resident_(std::move(resident)) {}

  Device device_;
  Program program_;
  std::shared_ptr<const Resident> resident_;
};

// Returns the number of kernels that this process has launched, by all plans together.
[[nodiscard]] int64_t launch_count();

}  // namespace spinloom::gpu
