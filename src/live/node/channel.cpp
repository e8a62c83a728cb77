#include "live/node/channel.hpp"

#include <cstring>

namespace spinloom::live {
namespace {

constexpr uint32_t alignment = 64;
constexpr uint32_t cells_ahead = 8;

// Fetches a cache line for writing. The compiler's prefetch for writing is not enough: code for all x86-64 processors
// gets the oldest processor's prefetch, which fetches for reading.
void fetch_to_write(const void* line) {
#if defined(__x86_64__)
  __asm__ volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace

// Reads how many cells the reader has released. A reader that claims more cells than were published, or fewer than
// before, loses its channel, which counts as full while it claims that.
void ChannelWriter::update_released() {
  const uint32_t released = memory_->released.load(std::memory_order_acquire);
  if (next_ - released > ChannelMemory::cells_count || released - released_ > ChannelMemory::cells_count) return;
  if (released == released_) return;
  bulk_released_ = bulk_ends_[(released - 1) % ChannelMemory::cells_count];
  released_ = released;
}

bool ChannelWriter::has_room_for_cell() {
  if (next_ - released_ < ChannelMemory::cells_count) return true;
  update_released();
  return next_ - released_ < ChannelMemory::cells_count;
}

ChannelWriter::Room ChannelWriter::reserve(uint32_t bulk_bytes) {
  Room room;
  if (!has_room_for_cell()) return room;
  room.bulk_end = bulk_next_;
  if (bulk_bytes > 0) {
    uint64_t begin = bulk_next_;
    const uint64_t here = begin % ChannelMemory::bulk_bytes;
    // Bulk bytes do not cross the end of the area.
    if (here + bulk_bytes > ChannelMemory::bulk_bytes) begin += ChannelMemory::bulk_bytes - here;
    const uint64_t end = (begin + bulk_bytes + alignment - 1) / alignment * alignment;
    if (end - bulk_released_ > ChannelMemory::bulk_bytes) update_released();
    if (end - bulk_released_ > ChannelMemory::bulk_bytes) return room;
    room.bulk_offset = static_cast<uint32_t>(begin % ChannelMemory::bulk_bytes);
    room.bulk = memory_->bulk + room.bulk_offset;
    room.bulk_end = end;
  }
  room.cell = &memory_->cells[next_ % ChannelMemory::cells_count];
  return room;
}

void ChannelWriter::publish(const Room& room, const Cell& cell) {
  constexpr size_t first = sizeof cell.sequence;
  std::memcpy(reinterpret_cast<uint8_t*>(room.cell) + first, reinterpret_cast<const uint8_t*>(&cell) + first,
              sizeof cell - first);
  publish(room);
}

void ChannelWriter::publish(const Room& room) {
  bulk_ends_[next_ % ChannelMemory::cells_count] = room.bulk_end;
  bulk_next_ = room.bulk_end;
  ++next_;
  std::atomic_ref(room.cell->sequence).store(next_, std::memory_order_release);
  // Fetches a later cell ahead of time: its cache line is still with the reader's processor, and fetching it takes
  // longer than a put.
  fetch_to_write(&memory_->cells[(next_ + cells_ahead) % ChannelMemory::cells_count]);
}

}  // namespace spinloom::live
