// GpuMove - how the bytes of one message go from one place to another where a GPU is at one end or at both.
//
// Contract: find() takes two ends, each an address of a device or of the host with the side of a message there, and
//   looks up what moves them: a plan where both ends are memory of the device, pinned or managed; a staging area where
//   one end is pageable memory of the host. find() makes plans and staging areas at their first use and keeps at most
//   `moves_kept_max` of them. The least recently used go first, and a caller that holds one keeps it alive. find_set()
//   makes a new plan in each call. run() launches; it waits for the bytes only where one end is the host's. begin()
//   never waits for them: its result can be tested or waited for, and can make another stream wait unless the bytes go
//   through a staging area. It is an Error if memory is given as a device's and is not, or if the ends lie in two
//   devices. Under SPINLOOM_GPU=shim the host moves the bytes, in run() and in begin().
// Invariants: a plan that is dropped has ended its launches before its memory is freed, because the driver waits for
//   the device whose memory it frees.
// Threads: any; two that ask for a new plan at once may both make it. Time: host time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/event.hpp"
#include "memory/gpu/message.hpp"
#include "memory/gpu/plan.hpp"
#include "memory/gpu/program.hpp"
#include "memory/gpu/staging.hpp"

namespace spinloom::app {

inline constexpr size_t moves_kept_max = 256;

// One end. The bytes that the message touches lie in [first, last); displacements count from `base`.
struct GpuEnd {
  gpu::Side side;
  std::byte* base = nullptr;
  const std::byte* first = nullptr;
  const std::byte* last = nullptr;
  bool on_device = false;
  bool writable = false;
};

// True if SPINLOOM_GPU is "shim".
bool emulated();

// Returns the device in whose memory [first, last) of an end lies; `role` names the end in errors.
Result<gpu::Device> device_of(const GpuEnd& end, const char* role);

// A move that was begun: a kernel with a mark behind it, bytes through pinned pieces, or nothing that could still be
// under way.
class GpuDone {
 public:
  [[nodiscard]] Result<bool> test();
  [[nodiscard]] Status wait();
  [[nodiscard]] Status hold(gpu::Stream stream) const;

 private:
  friend class GpuMove;
  gpu::Event mark_;
  std::shared_ptr<void> area_;  // a staging area, which goes back to its Areas when the move is over
  std::optional<gpu::StagingMove> staged_;
};

class GpuMove {
 public:
  static Result<GpuMove> find(const GpuEnd& from, const GpuEnd& to, gpu::Stream stream);
  // Finds a plan for messages that name pairs of addresses by their number in `ends`; all lie in memory of `device`,
  // which is none where GPUs are emulated.
  static Result<GpuMove> find_set(const std::optional<gpu::Device>& device, std::span<const gpu::Message> messages,
                                  std::vector<gpu::Ends> ends, gpu::Stream stream);

  [[nodiscard]] Status run() const;
  [[nodiscard]] Result<GpuDone> begin() const;
  [[nodiscard]] const gpu::Program* program() const;  // nullptr where bytes are staged

 private:
  // The staging areas for moves of one kind: one area for each move that is under way.
  class Areas {
   public:
    Areas(gpu::Device device, gpu::Side on_device, gpu::Side on_host)
        : device_(std::move(device)), on_device_(std::move(on_device)), on_host_(std::move(on_host)) {}
    static Result<std::shared_ptr<gpu::Staging>> take(const std::shared_ptr<Areas>& areas);

   private:
    gpu::Device device_;
    gpu::Side on_device_;
    gpu::Side on_host_;
    std::mutex mutex_;
    std::vector<gpu::Staging> idle_;
  };
  struct Method {  // one of these moves the bytes
    std::optional<gpu::Plan> plan;
    std::optional<gpu::Program> on_host;  // the program of SPINLOOM_GPU=shim
    std::shared_ptr<Areas> staged;
  };
  friend class MoveCache;
  static Result<Method> make_method(const std::optional<gpu::Device>& device, std::span<const gpu::Message> messages);

  Method method_;
  std::vector<gpu::Ends> ends_;
  gpu::Stream stream_ = nullptr;
  bool to_host_ = false;
  bool waits_for_bytes_ = false;  // run() waits: one end is memory of the host
};

}  // namespace spinloom::app
