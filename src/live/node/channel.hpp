// Channel - a one-way queue of cells with a bulk area, in the receiver's shared memory: one sender, one receiver.
//
// Contract: ChannelWriter::reserve() finds room for a cell and for bulk bytes. After the caller has written the bytes
//   there, publish() hands the cell to the reader. ChannelReader::front() copies the oldest cell; release() gives its
//   room back.
// Invariants: (1) cells come in the order in which they were published; (2) the bulk bytes of a cell stay until the
//   cell is released; (3) the reader trusts nothing that the writer says: bulk() returns null for a range outside of
//   the bulk area; (4) neither end waits for the other.
// Threads: one writer, one reader, in different processes. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "live/node/cell.hpp"
#include "live/node/direct_gate.hpp"
#include "memory/peer/shared_copy.hpp"

namespace spinloom::live {

struct ChannelMemory {
  static constexpr uint32_t cells_count = 512;
  static constexpr uint32_t bulk_bytes = 256 << 10;

  alignas(64) std::atomic<uint32_t> released;  // the number of cells that the reader has released
  std::atomic<uint32_t> settled;  // `released`, when nothing of what the reader had released was under way any more
  std::atomic<peer::Reach> reader_reach;  // the part of the sender's memory that the reader can read in place
  // The reader wants only answers, unless 0; this cache line is seldom written.
  alignas(64) std::atomic<uint32_t> stopped;
  // The number of times that the reader has gone on with what it had kept back.
  alignas(64) std::atomic<uint32_t> resume_count;
  alignas(64) SharedWord direct_slot;  // the sender's slot for the gates of the receiver (direct_gate.hpp)
  peer::SharedCopyMemory shared_copy;
  alignas(64) Cell cells[cells_count];
  alignas(64) uint8_t bulk[bulk_bytes];
};
static_assert((ChannelMemory::cells_count & (ChannelMemory::cells_count - 1)) == 0, "positions wrap with a mask");

class ChannelWriter {
 public:
  ChannelWriter() = default;
  explicit ChannelWriter(ChannelMemory* memory) : memory_(memory) {}

  // A cell to be written, and where its bulk bytes go; `cell` is null while there is no room.
  struct Room {
    Cell* cell = nullptr;
    uint8_t* bulk = nullptr;
    uint32_t bulk_offset = 0;
    uint64_t bulk_end = 0;
  };
  [[nodiscard]] Room reserve(uint32_t bulk_bytes);
  // Publishes `cell`, whose sequence is set here; or, without `cell`, what the caller has written into room.cell.
  void publish(const Room& room, const Cell& cell);
  void publish(const Room& room);
  [[nodiscard]] peer::Reach reader_reach() const { return memory_->reader_reach.load(std::memory_order_relaxed); }
  // True if the reader has asked for nothing but answers.
  [[nodiscard]] bool stopped() const { return memory_->stopped.load(std::memory_order_relaxed) != 0; }
  // True if the reader has done everything that the cells published so far have brought it.
  [[nodiscard]] bool is_settled() const { return memory_->settled.load(std::memory_order_acquire) == next_; }
  // A number that changes whenever the reader has gone on.
  [[nodiscard]] uint64_t progress() const {
    return uint64_t{memory_->resume_count.load(std::memory_order_relaxed)} << 32 |
           memory_->released.load(std::memory_order_relaxed);
  }
  // The most bulk bytes of one cell, which callers of reserve() keep to.
  [[nodiscard]] static constexpr uint32_t bulk_max() { return ChannelMemory::bulk_bytes / 4; }

 private:
  [[nodiscard]] bool has_room_for_cell();
  void update_released();

  ChannelMemory* memory_ = nullptr;
  uint32_t next_ = 0;  // cells published
  uint32_t released_ = 0;  // ChannelMemory::released, as last read
  uint64_t bulk_next_ = 0;
  uint64_t bulk_released_ = 0;
  std::array<uint64_t, ChannelMemory::cells_count> bulk_ends_{};  // the end of each cell's bulk bytes
};

class ChannelReader {
 public:
  ChannelReader() = default;
  explicit ChannelReader(ChannelMemory* memory) : memory_(memory) {}

  [[nodiscard]] bool empty() const {
    return std::atomic_ref(memory_->cells[next_ % ChannelMemory::cells_count].sequence)
               .load(std::memory_order_acquire) != next_ + 1;
  }
  [[nodiscard]] Cell front() const { return memory_->cells[next_ % ChannelMemory::cells_count]; }
  [[nodiscard]] const uint8_t* bulk(uint64_t offset, uint64_t length) const {
    const bool inside = offset <= ChannelMemory::bulk_bytes && length <= ChannelMemory::bulk_bytes - offset;
    return inside ? memory_->bulk + offset : nullptr;
  }
  // The number of cells that have been released, modulo 2^32.
  [[nodiscard]] uint32_t released() const { return next_; }
  void release() { memory_->released.store(++next_, std::memory_order_release); }
  // Says that nothing of what has come is under way any more.
  void note_settled() {
    if (settled_ == next_) return;
    settled_ = next_;
    memory_->settled.store(next_, std::memory_order_release);
  }
  void set_stopped(bool stopped) { memory_->stopped.store(stopped ? 1 : 0, std::memory_order_relaxed); }
  void note_resumed() { memory_->resume_count.fetch_add(1, std::memory_order_relaxed); }
  void set_reader_reach(peer::Reach reach) { memory_->reader_reach.store(reach, std::memory_order_relaxed); }

 private:
  ChannelMemory* memory_ = nullptr;
  uint32_t next_ = 0;
  uint32_t settled_ = 0;
};

}  // namespace spinloom::live
