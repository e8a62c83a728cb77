// Staging - a layout on a device and a layout in host memory, joined by pinned pieces.
//
// Contract: make() takes a device side and a host side of equal packed bytes and owns all that a move needs: plans, a
//   packed buffer on the device if that side has a layout, and pinned pieces. to_host() packs with one kernel, copies
//   the packed bytes in pieces and unpacks each piece on the host while the next is under way; to_device() is the same
//   backwards. Both return when the bytes are there. begin_to_host() and begin_to_device() return at once: the move
//   goes on while its caller tests it, by one piece at most a call, because the host packs and unpacks pieces in that
//   call. Where the host's memory is pinned, a plan over its address moves the bytes with no piece at all; this is the
//   way for memory that is not.
// Invariants: (1) a move allocates no memory of the device and no pinned memory.
// Errors: a second move while one is under way. A move that is dropped before it is over ends its copies first, and
//   leaves the rest of the bytes where they are.
// Threads: one move at a time. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/message.hpp"
#include "memory/gpu/plan.hpp"

namespace spinloom::gpu {

struct StagingOptions {
  size_t piece_bytes = size_t{1} << 20;
  int pieces = 3;  // 2 or more; a short message gets no more than it needs
};

// Bytes between host and device under way.
class StagingMove {
 public:
  // True: the bytes are there.
  [[nodiscard]] Result<bool> test();
  [[nodiscard]] Status wait();

  struct State;
  explicit StagingMove(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

class Staging {
 public:
  static Result<Staging> make(const Device& device, const Side& on_device, const Side& on_host,
                              const StagingOptions& options = {});

  [[nodiscard]] Status to_host(const void* on_device, void* on_host, Stream stream = nullptr);
  [[nodiscard]] Status to_device(const void* on_host, void* on_device, Stream stream = nullptr);
  [[nodiscard]] Result<StagingMove> begin_to_host(const void* on_device, void* on_host, Stream stream = nullptr);
  [[nodiscard]] Result<StagingMove> begin_to_device(const void* on_host, void* on_device, Stream stream = nullptr);

  struct State;

 private:
  explicit Staging(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace spinloom::gpu
