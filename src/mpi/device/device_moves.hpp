// DeviceMoves - bytes between a device's memory, as layouts have them, and a room for them, mostly packed.
//
// Contract: room() gives pinned memory of the host, or memory of the device, which goes back for the next when it is
//   dropped. pack() gathers blocks into it, unpack() puts them in place: one kernel each, however many blocks and types
//   there are, or one copy where the bytes are contiguous; the kernel reads and writes pinned memory itself. Both
//   return when the bytes are there. They run on the default stream: behind what was put there and on every stream that
//   waits for it. wait() waits for those streams. read() and write() copy what has no gaps.
//   take() and take_packed() do the same with a message that lies in a peer's device, where this process has mapped it.
//   Plans are made when they are first needed and kept, the `plans_max` that were used last.
// Invariants: (1) a call whose plan and room are kept allocates nothing on the device or in pinned memory; (2) what is
//   kept of either memory has a limit, and is given up where the driver has no more.
// Threads: any. Time: host time.
#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "memory/gpu/device.hpp"
#include "memory/gpu/plan.hpp"
#include "mpi/messages/message.hpp"
#include "mpi/messages/peer_layouts.hpp"

namespace spinloom::mpi {

// `count` elements at `offset` from the buffer; in the room they are packed, at `packed`, or lie there as they do
// around a buffer at `packed`, which may be outside.
struct DeviceBlock {
  FormPointer form;
  int64_t count = 0;
  int64_t offset = 0;
  int64_t packed = 0;
  bool is_image = false;
};

// A message in a peer's memory: its first byte that is touched is at `data`, its buffer `offset` bytes from there.
struct DeviceSource {
  BlobPointer blob;  // null: one run
  int64_t count = 1;
  int64_t bytes = 0;
  int64_t offset = 0;
  const std::byte* data = nullptr;
};

class DeviceMoves {
 public:
  static constexpr size_t plans_max = 256;
  static DeviceMoves& of_process();

  enum class Where : uint8_t { host, device };
  struct RoomKey {
    Where where = Where::host;
    int ordinal = 0;
    size_t bytes = 0;
    auto operator<=>(const RoomKey&) const = default;
  };
  class Room {
   public:
    Room() = default;
    Room(Room&& other) noexcept { *this = std::move(other); }
    Room& operator=(Room&& other) noexcept {
      std::swap(memory_, other.memory_);
      std::swap(key_, other.key_);
      return *this;
    }
    ~Room();
    [[nodiscard]] std::byte* data() const { return memory_.data(); }
    [[nodiscard]] bool is_on_device() const { return key_.where == Where::device; }

   private:
    friend class DeviceMoves;
    gpu::Memory memory_;
    RoomKey key_;
  };

  [[nodiscard]] Result<Room> room(int ordinal, int64_t bytes, Where where = Where::host);
  [[nodiscard]] Status pack(int ordinal, const void* buffer, std::span<const DeviceBlock> blocks, std::byte* packed);
  [[nodiscard]] Status unpack(int ordinal, const std::byte* packed, std::span<const DeviceBlock> blocks, void* buffer);
  // Unpacks a block of whose packed bytes only the first `bytes` have come.
  [[nodiscard]] Status unpack_part(int ordinal, const std::byte* packed, const DeviceBlock& block, int64_t bytes,
                                   void* buffer);
  // Bytes as they lie, to and from any memory of the host.
  [[nodiscard]] Status read(int ordinal, const void* from, void* to, int64_t bytes);
  [[nodiscard]] Status write(int ordinal, const void* from, void* to, int64_t bytes);
  [[nodiscard]] Status wait(int ordinal);

  // Device `ordinal` takes the message into a block without an image, which holds as many bytes as the message, or
  // packed into a room.
  [[nodiscard]] Status take(int ordinal, const DeviceSource& from, const DeviceBlock& to, void* buffer);
  [[nodiscard]] Status take_packed(int ordinal, const DeviceSource& from, std::byte* packed);

  // Counts over all calls, for the report: moves between a buffer and a room, those of them that stay in the device,
  // messages taken from a peer's device, and buffers that an MPI which knows of GPUs was given as they are.
  void count_within() { within_.fetch_add(1, std::memory_order_relaxed); }
  void count_as_they_are() { as_they_are_.fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] int64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t taken_bytes() const { return taken_bytes_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t within() const { return within_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t as_they_are() const { return as_they_are_.load(std::memory_order_relaxed); }

 private:
  using Key = std::vector<int64_t>;
  using PlanPointer = std::shared_ptr<gpu::Plan>;
  struct Entry {
    Key key;
    std::vector<std::shared_ptr<const void>> parts;  // whose numbers and addresses the key has
    PlanPointer plan;
  };
  [[nodiscard]] PlanPointer find(const Key& key);
  [[nodiscard]] Result<PlanPointer> make(const gpu::Device& device, Key key, std::span<const gpu::Message> messages,
                                         std::vector<std::shared_ptr<const void>> parts);
  [[nodiscard]] Result<PlanPointer> plan_to_take(const gpu::Device& device, const DeviceSource& from,
                                                 const DeviceBlock* to);
  [[nodiscard]] Status take(int ordinal, const DeviceSource& from, const DeviceBlock* to, std::byte* base);
  [[nodiscard]] Result<PlanPointer> plan(const gpu::Device& device, std::span<const DeviceBlock> blocks, bool packs);
  [[nodiscard]] Status move(int ordinal, std::span<const DeviceBlock> blocks, std::byte* buffer, std::byte* packed,
                            bool packs);
  [[nodiscard]] bool drop_idle();
  void give_back(const RoomKey& key, gpu::Memory memory);

  std::mutex mutex_;
  std::list<Entry> plans_;  // the latest used first
  std::map<RoomKey, std::vector<gpu::Memory>> idle_;
  std::array<size_t, 2> idle_bytes_{};  // by Where
  std::atomic<int64_t> moves_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> taken_bytes_{0};
  std::atomic<int64_t> within_{0};
  std::atomic<int64_t> as_they_are_{0};
};

}  // namespace spinloom::mpi
