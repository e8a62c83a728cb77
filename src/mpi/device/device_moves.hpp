// DeviceMoves - moves bytes between a device's memory, as layouts place them, and a room, mostly packed.
//
// Contract: room() gives pinned memory of the host, or memory of the device. A Room that is destroyed gives its memory
//   back for later ones. pack() gathers blocks into a room, unpack() puts them in place: one kernel each, however many
//   blocks and types there are, or one copy for a single contiguous block. The kernel reads and writes pinned memory
//   itself. Both return when the bytes are there. They run on the default stream: after the work that is on it, and on
//   the streams that synchronise with it. wait() waits for that work. read() and write() copy bytes without gaps.
//   take() and take_packed() do the same with a message that lies in a peer's device, where this process has mapped it.
//   Plans are made when they are first needed; the `plans_max` that were used last are kept.
// Invariants: (1) a call whose plan and room are kept allocates nothing on the device or in pinned memory; (2) there is
//   a limit to the kept memory of either kind, and all of it is freed when the driver has no more memory.
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

// `count` elements at `offset` from the buffer. In the room they are packed, at `packed`. If `is_image`, they lie there
// as they do around the buffer, and `packed` is the place of the buffer, which may be outside of the room.
struct DeviceBlock {
  FormPointer form;
  int64_t count = 0;
  int64_t offset = 0;
  int64_t packed = 0;
  bool is_image = false;
};

// A message in a peer's memory: its first touched byte is at `data`, and its buffer `offset` bytes from there.
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
  // Unpacks the first `bytes` packed bytes of a block; the rest has not come.
  [[nodiscard]] Status unpack_part(int ordinal, const std::byte* packed, const DeviceBlock& block, int64_t bytes,
                                   void* buffer);
  // Copy bytes as they lie: read() to any memory of the host, write() from it. Only write() is counted.
  [[nodiscard]] Status read(int ordinal, const void* from, void* to, int64_t bytes);
  [[nodiscard]] Status write(int ordinal, const void* from, void* to, int64_t bytes);
  [[nodiscard]] Status wait(int ordinal);

  // Device `ordinal` takes the message into a block without an image, which holds as many bytes as the message, or
  // packed into a room.
  [[nodiscard]] Status take(int ordinal, const DeviceSource& from, const DeviceBlock& to, void* buffer);
  [[nodiscard]] Status take_packed(int ordinal, const DeviceSource& from, std::byte* packed);

  // Counts over all calls, for the report. moves() and bytes(): by pack(), unpack() and write(). within(): moves that
  // stay in the device. taken() and taken_bytes(): messages from a peer's device. as_they_are(): buffers that were
  // given to an MPI that knows of GPUs.
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
    std::vector<std::shared_ptr<const void>> parts;  // keeps the layouts whose numbers and addresses are in the key
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
  std::array<size_t, 2> idle_bytes_{};  // bytes in `idle_`, by Where
  std::atomic<int64_t> moves_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> taken_{0};
  std::atomic<int64_t> taken_bytes_{0};
  std::atomic<int64_t> within_{0};
  std::atomic<int64_t> as_they_are_{0};
};

}  // namespace spinloom::mpi
