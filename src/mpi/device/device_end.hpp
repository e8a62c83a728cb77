// DeviceEnd - a buffer of one call that lies in a GPU's memory, and what stands for it: pinned memory of the host, or
//   other memory of that device, or nothing.
//
// Contract: fill() puts what the call reads into the room, land() what it has written in place. set_in_place() says
//   that the bytes are in place already, because they came from a peer's device: the next land() does nothing then.
//   Memory that the program has freed meanwhile is an Error of both. DeviceEnds finds an end by the address of its
//   room, as long as it lives.
// Invariants: (1) an end that is found holds packed bytes of one block: no image, because the address that stands for
//   one may be that of somebody else's memory.
// Threads: one for an end; any for DeviceEnds. Time: host time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "mpi/device/device_moves.hpp"
#include "mpi/entry/handle_map.hpp"

namespace spinloom::mpi {

enum class Use : uint8_t { reads, writes, both };

class DeviceEnd {
 public:
  static Result<std::shared_ptr<DeviceEnd>> make(int ordinal, void* buffer, std::vector<DeviceBlock> blocks,
                                                 int64_t room_bytes, Use use,
                                                 DeviceMoves::Where where = DeviceMoves::Where::host);
  // The MPI gets the buffer itself: nothing is moved, and what is on the default stream is waited for.
  static std::shared_ptr<DeviceEnd> as_it_is(int ordinal, void* buffer, Use use);
  DeviceEnd(const DeviceEnd&) = delete;
  DeviceEnd& operator=(const DeviceEnd&) = delete;
  ~DeviceEnd();

  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] void* buffer() const { return buffer_; }
  [[nodiscard]] std::byte* room() const { return room_.data(); }
  [[nodiscard]] bool is_on_device() const { return room_.is_on_device(); }
  [[nodiscard]] bool is_as_it_is() const { return blocks_.empty(); }
  [[nodiscard]] bool is_in_place() const { return is_in_place_; }
  [[nodiscard]] bool is_read() const { return use_ != Use::writes; }
  [[nodiscard]] bool is_packed() const { return blocks_.size() == 1 && !blocks_.front().is_image; }
  // In place of fill(), where a peer is to take the bytes: returns when what is on the device's default stream has
  // ended.
  [[nodiscard]] Status await();
  // An Error where the program has freed the memory.
  [[nodiscard]] Status check() const;
  // The only block of an end that is packed.
  [[nodiscard]] const DeviceBlock& block() const { return blocks_.front(); }

  // If fill() fails, so does land().
  [[nodiscard]] Status fill();
  // `bytes`: how many a receive has got; below zero: all.
  [[nodiscard]] Status land(int64_t bytes);
  void set_in_place() { is_in_place_ = true; }
  // fill() and land() for one block of several, by any thread.
  [[nodiscard]] Status fill_part(size_t i) const;
  [[nodiscard]] Status land_part(size_t i) const;

 private:
  [[nodiscard]] std::span<const DeviceBlock> part(size_t i) const;
  DeviceEnd(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, DeviceMoves::Room room, Use use);

  int ordinal_;
  void* buffer_;
  std::vector<DeviceBlock> blocks_;
  DeviceMoves::Room room_;
  Use use_;
  bool is_in_place_ = false;
  Status filled_;
};

class DeviceEnds {
 public:
  static DeviceEnds& of_process();
  [[nodiscard]] bool any() const { return count_.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] std::shared_ptr<DeviceEnd> find(const void* room);

 private:
  friend class DeviceEnd;
  void add(const std::shared_ptr<DeviceEnd>& end);
  void remove(const void* room);

  std::mutex mutex_;
  HandleMap<std::weak_ptr<DeviceEnd>> ends_;  // by their rooms
  std::atomic<size_t> count_{0};
};

}  // namespace spinloom::mpi
