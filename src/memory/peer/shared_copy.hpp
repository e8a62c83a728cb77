// SharedCopy - one long copy in which both ends take part. The receiver reads parts out of the sender's memory. The
// sender, where it polls anyway, writes other parts into the receiver's memory.
//
// Contract: the receiver begin()s a copy and take()s parts until none is left; is_helper_done() says whether the parts
//   that the helper took have ended, too. The sender's CopyHelper take()s parts and report()s whether each was written.
//   There is one copy at a time. read_parts() and finish() do the receiver's work by a PeerMemory, help() the sender's.
// Invariants: (1) every part is taken once; (2) a helper writes no bytes of a copy for which is_helper_done() is true;
//   (3) whatever a peer writes here, the receiver's loops end, and the helper copies nothing but memory of its own
//   process into the receiver's.
// Ends: if a helper dies while it copies, the copy has failed, and nobody writes to its bytes any more. A helper that
//   is stopped while it copies is waited for, however long that takes, because it may still write. Nothing is written
//   to a receiver that has died (PeerMemory).
// Threads: one receiver, one sender, in different processes. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "memory/peer/peer_memory.hpp"

namespace spinloom::peer {

struct SharedCopyMemory {
  alignas(64) std::atomic<uint64_t> next;  // upper half: number of the copy; lower half: first part not taken yet
  std::atomic<uint64_t> from;  // the sender's address
  std::atomic<uint64_t> to;  // the receiver's address
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> part_bytes;
  alignas(64) std::atomic<uint32_t> ended;  // parts that the helper has finished
  std::atomic<uint32_t> failed;  // the helper could not write a part, unless 0
  alignas(64) std::atomic<uint32_t> can_help;  // the sender can write into the receiver's memory, unless 0
};

struct CopyPart {
  uint64_t from = 0;
  uint64_t to = 0;
  uint64_t length = 0;
};

class SharedCopy {
 public:
  SharedCopy() = default;
  explicit SharedCopy(SharedCopyMemory& memory) : memory_(&memory) {}

  [[nodiscard]] bool has_helper() const { return memory_->can_help.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool is_active() const { return is_active_; }
  void begin(const CopyPart& message, uint64_t part_bytes);
  [[nodiscard]] std::optional<CopyPart> take();
  // Takes all parts that are left, without reading them: nobody takes a part of the copy after this call.
  void take_remaining();
  // True if the helper's parts have ended; only for a copy without parts left to take.
  [[nodiscard]] bool is_helper_done() const {
    return memory_->ended.load(std::memory_order_acquire) == part_count_ - own_parts_;
  }
  // True if the helper could not write one of its parts.
  [[nodiscard]] bool has_failed() const { return memory_->failed.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] const CopyPart& message() const { return message_; }
  void end() { is_active_ = false; }
  // Reads all parts that the helper does not take.
  void read_parts(const PeerMemory& theirs);
  // Returns nothing while the helper may still write. Otherwise ends the copy and returns whether all bytes are there.
  // If only the helper failed to write a part, the whole message is read once more. `has_helper_ended` says whether the
  // helper's process has ended.
  [[nodiscard]] std::optional<bool> finish(const PeerMemory& theirs, bool has_helper_ended);

 private:
  SharedCopyMemory* memory_ = nullptr;
  bool is_active_ = false;
  bool own_parts_read_ = true;  // the receiver's own parts were read without an Error
  uint32_t generation_ = 0;
  uint32_t part_count_ = 0;
  uint32_t own_parts_ = 0;  // parts that the receiver took
  CopyPart message_;
  uint64_t part_bytes_ = 0;
};

// The sender's side. A CopyHelper without memory never helps.
class CopyHelper {
 public:
  CopyHelper() = default;
  explicit CopyHelper(SharedCopyMemory& memory) : memory_(&memory) {}

  void announce() { memory_->can_help.store(1, std::memory_order_relaxed); }
  [[nodiscard]] std::optional<CopyPart> take();
  // Reports that the part taken last has ended, and whether it was written.
  void report(bool is_written);
  // Writes one part of the copy into the receiver's memory. False: it got no part, because none is left or the receiver
  // took that part at the same time. open() returns whether the receiver still accepts bytes.
  template <class Open>
  [[nodiscard]] bool help(const PeerMemory& theirs, const Open& open) {
    const auto part = take();
    if (part) report(open() && theirs.write(part->to, reinterpret_cast<const uint8_t*>(part->from), part->length).ok());
    return part.has_value();
  }

 private:
  SharedCopyMemory* memory_ = nullptr;
};

}  // namespace spinloom::peer
