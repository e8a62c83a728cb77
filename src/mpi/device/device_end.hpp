// DeviceEnd - a buffer of one call in a GPU's memory, and the room of DeviceMoves that stands for it, if any.
//
// Contract: fill() copies the bytes that the call reads into the room; land() puts the bytes that it has written in
//   place. After set_in_place() the bytes are in place already, because they came from a peer's device: the next land()
//   does nothing then. If the program has freed the buffer since make(), fill() or await(), a copy is an Error; a
//   persistent call may begin with other memory each time. DeviceEnds finds a
//   packed end by the address of its room, as long as the end lives.
// Invariants: (1) DeviceEnds finds only ends with packed bytes of one block. It finds no images, because the address
//   that stands for an image may belong to other memory.
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
  // Makes an end without a room: the MPI gets the buffer itself. Nothing is moved; fill() waits for the work on the
  // default stream.
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
  // Called in place of fill() if a peer is to take the bytes. Returns when the work on the device's default stream has
  // ended.
  [[nodiscard]] Status await();
  // Returns an Error if the program has freed the memory, even if it has other memory at the same address by now.
  // Neither this nor await() serves an end as_it_is().
  [[nodiscard]] Status check() const;
  // The only block of an end that is packed.
  [[nodiscard]] const DeviceBlock& block() const { return blocks_.front(); }

  // If fill() fails, so does land().
  [[nodiscard]] Status fill();
  // `bytes`: how many packed bytes a receive has got; below zero: all.
  [[nodiscard]] Status land(int64_t bytes);
  void set_in_place() { is_in_place_ = true; }
  // Copy one block into the room or to its place, whatever the Use. Any thread may call them.
  [[nodiscard]] Status fill_part(size_t i) const;
  [[nodiscard]] Status land_part(size_t i) const;

 private:
  [[nodiscard]] Result<uint64_t> allocation_now() const;
  [[nodiscard]] Status note_allocation();
  [[nodiscard]] Status freed() const;
  [[nodiscard]] std::span<const DeviceBlock> part(size_t i) const;
  DeviceEnd(int ordinal, void* buffer, std::vector<DeviceBlock> blocks, DeviceMoves::Room room, Use use);

  int ordinal_;
  void* buffer_;
  std::vector<DeviceBlock> blocks_;
  DeviceMoves::Room room_;
  Use use_;
  bool is_in_place_ = false;
  Status filled_;
  uint64_t allocation_ = 0;  // the number of the buffer's allocation when the call began
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
  HandleMap<std::weak_ptr<DeviceEnd>> ends_;  // ends by the addresses of their rooms
  std::atomic<size_t> count_{0};
};

}  // namespace spinloom::mpi
