#include "mpi/meeting/postings.hpp"

namespace spinloom::mpi {

void Postings::post(Key key, const PostedMemory& memory) const {
  for (uint32_t i = 0; i < most; ++i) {
    Entry& entry = table_->entries[(key.low + i) % most];
    if (entry.low.load(std::memory_order_relaxed) != 0) continue;
    std::atomic_thread_fence(std::memory_order_release);  // remove() took the old key away before this
    entry.high.store(key.high, std::memory_order_relaxed);
    entry.base.store(memory.base, std::memory_order_relaxed);
    entry.bytes.store(static_cast<uint64_t>(memory.bytes), std::memory_order_relaxed);
    entry.unit.store(static_cast<uint64_t>(memory.unit), std::memory_order_relaxed);
    entry.location.store(static_cast<uint64_t>(memory.location), std::memory_order_relaxed);
    entry.posts.store(memory.posts, std::memory_order_relaxed);
    entry.device.store(memory.place.device, std::memory_order_relaxed);
    entry.inode.store(memory.place.inode, std::memory_order_relaxed);
    entry.offset.store(memory.place.offset, std::memory_order_relaxed);
    entry.low.store(key.low, std::memory_order_release);
    table_->posted.fetch_add(1, std::memory_order_release);
    return;
  }
}

void Postings::remove(Key key) const {
  for (uint32_t i = 0; i < most; ++i) {
    Entry& entry = table_->entries[(key.low + i) % most];
    if (entry.low.load(std::memory_order_relaxed) != key.low) continue;
    if (entry.high.load(std::memory_order_relaxed) != key.high) continue;
    entry.low.store(0, std::memory_order_relaxed);
    return;
  }
}

std::optional<PostedMemory> Postings::find(Key key, uint64_t& seen) const {
  const uint64_t posted = table_->posted.load(std::memory_order_acquire);
  if (posted == seen) return std::nullopt;
  seen = posted;
  for (uint32_t i = 0; i < most; ++i) {
    const Entry& entry = table_->entries[(key.low + i) % most];
    if (entry.low.load(std::memory_order_acquire) != key.low) continue;
    if (entry.high.load(std::memory_order_relaxed) != key.high) continue;
    const PostedMemory memory{
        entry.base.load(std::memory_order_relaxed),
        static_cast<int64_t>(entry.bytes.load(std::memory_order_relaxed)),
        static_cast<int64_t>(entry.unit.load(std::memory_order_relaxed)),
        static_cast<PostedMemory::Location>(entry.location.load(std::memory_order_relaxed)),
        entry.posts.load(std::memory_order_relaxed),
        {entry.device.load(std::memory_order_relaxed), entry.inode.load(std::memory_order_relaxed),
         entry.offset.load(std::memory_order_relaxed)}};
    std::atomic_thread_fence(std::memory_order_acquire);
    // Another key with the same `low` may have come meanwhile: its `high` was written before its `low`.
    if (entry.low.load(std::memory_order_acquire) != key.low) continue;
    if (entry.high.load(std::memory_order_relaxed) == key.high) return memory;
  }
  return std::nullopt;
}

}  // namespace spinloom::mpi
