// Event - a mark on a stream: the host can ask whether the stream has come so far, and another stream can wait for it.
//
// Contract: record() marks what is on a stream now. is_reached() asks without waiting; synchronise() waits; make_wait()
//   lets a stream wait, and returns at once. An event that was made with `is_shared` can be given to another process,
//   64 bytes that any channel may carry, and waited for there; only the process that made it records it. An event that
//   was never recorded counts as reached.
// Threads: one at a time. Time: host time.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"

namespace spinloom::gpu {

using EventHandle = std::array<std::byte, 64>;

class Event {
 public:
  static Result<Event> make(const Device& device, bool is_shared = false);
  static Result<Event> open(const Device& device, const EventHandle& handle);

  Event() = default;
  Event(Event&& other) noexcept { swap(other); }
  Event& operator=(Event&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Event();

  [[nodiscard]] Result<EventHandle> handle() const;
  [[nodiscard]] Status record(Stream stream) const;
  [[nodiscard]] Result<bool> is_reached() const;
  [[nodiscard]] Status synchronise() const;
  [[nodiscard]] Status make_wait(Stream stream) const;

  explicit operator bool() const { return event_ != nullptr; }

 private:
  void swap(Event& other) noexcept;

  std::shared_ptr<const Device::State> state_;
  void* event_ = nullptr;
};

}  // namespace spinloom::gpu
