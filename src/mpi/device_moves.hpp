// DeviceMoves - bytes between a device's memory, as layouts have them, and pinned memory of the host, mostly packed.
//
// Contract: room() lends pinned memory, which goes back for the next when it is dropped. pack() gathers blocks into it, unpack()
//   puts them in place: one kernel each, however many blocks and types there are, or one copy where the bytes are
//   contiguous; the kernel reads and writes the pinned memory itself. Both return when the bytes are there. They run on
//   the default stream: behind what was put there and on every stream that waits for it.
//   Plans are made when they are first needed and kept, the `plans_max` that were used last.
// Invariants: (1) a call whose plan and room are kept allocates nothing on the device or in pinned memory.
// Threads: any. Time: host time.
#pragma once

#include <atomic>
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
#include "gpu/device.hpp"
#include "gpu/plan.hpp"
#include "mpi/message.hpp"

namespace spinloom::mpi {

// `count` elements at `offset` from the buffer; in the pinned memory they are packed, at `packed`, or lie there as they do
// around a buffer at `packed`, which may be outside.
struct DeviceBlock {
  FormPointer form;
  int64_t count = 0;
  int64_t offset = 0;
  int64_t packed = 0;
  bool is_image = false;
};

class DeviceMoves {
 public:
  static constexpr size_t plans_max = 256;
  static DeviceMoves& of_process();

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

   private:
    friend class DeviceMoves;
    gpu::Memory memory_;
    std::pair<int, size_t> key_;
  };

  [[nodiscard]] Result<Room> room(int ordinal, int64_t bytes);
  [[nodiscard]] Status pack(int ordinal, const void* buffer, std::span<const DeviceBlock> blocks, std::byte* packed);
  [[nodiscard]] Status unpack(int ordinal, const std::byte* packed, std::span<const DeviceBlock> blocks, void* buffer);
  // Of the packed bytes of one block only so many have come.
  [[nodiscard]] Status unpack_part(int ordinal, const std::byte* packed, const DeviceBlock& block, int64_t bytes,
                                   void* buffer);

  // Of all calls, for the report.
  [[nodiscard]] int64_t moves() const { return moves_.load(std::memory_order_relaxed); }
  [[nodiscard]] int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  using Key = std::vector<int64_t>;
  [[nodiscard]] Result<std::shared_ptr<gpu::Plan>> plan(const gpu::Device& device, std::span<const DeviceBlock> blocks,
                                                        bool packs);
  [[nodiscard]] Status move(int ordinal, std::span<const DeviceBlock> blocks, std::byte* buffer, std::byte* packed,
                            bool packs);
  [[nodiscard]] bool drop_idle();
  void give_back(std::pair<int, size_t> key, gpu::Memory memory);

  std::mutex mutex_;
  struct Entry {
    Key key;
    std::vector<FormPointer> forms;  // whose numbers the key has
    std::shared_ptr<gpu::Plan> plan;
  };
  std::list<Entry> plans_;  // the latest used first
  std::map<std::pair<int, size_t>, std::vector<gpu::Memory>> idle_;  // by device and size
  size_t idle_bytes_ = 0;
  std::atomic<int64_t> moves_{0};
  std::atomic<int64_t> bytes_{0};
};

}  // namespace spinloom::mpi
