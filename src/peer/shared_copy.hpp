// SharedCopy - one long copy that both of its ends do: the receiver reads parts of it from the sender's memory, and the
// sender, where it polls anyway, writes others into the receiver's.
//
// Contract: the receiver begin()s a copy and take()s parts until there are none; done() once the parts that the helper
//   took have ended, too. The sender's CopyHelper take()s parts and tell()s how they went. One copy at a time.
//   read_parts() and finish() are that for a receiver that reads a PeerMemory; help() for a sender that writes one.
// Invariants: (1) every part is taken once; (2) a helper writes nothing of a copy that is done(); (3) whatever a peer
//   writes here, the receiver's loops end, and the helper copies nothing but its own process's memory to the
//   receiver's.
// Ends: a helper that dies in the midst leaves a copy that has failed, of which nothing is written any more; one that
//   is stopped in the midst is waited for, however long, since it may still write. A receiver that has died is not
//   written to (PeerMemory).
// Threads: one receiver, one sender, in different processes. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "peer/peer_memory.hpp"

namespace spinloom::peer {

struct SharedCopyMemory {
  alignas(64) std::atomic<uint64_t> next;  // which copy (upper half), and its first part that nobody has taken
  std::atomic<uint64_t> from;  // the sender's address
  std::atomic<uint64_t> to;  // the receiver's
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> part_bytes;
  alignas(64) std::atomic<uint32_t> ended;  // parts that the helper is done with
  std::atomic<uint32_t> failed;  // not 0: some of them without success
  alignas(64) std::atomic<uint32_t> helps;  // not 0: the sender can write into the receiver's memory
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

  [[nodiscard]] bool has_helper() const { return memory_->helps.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] bool active() const { return active_; }
  void begin(const CopyPart& whole, uint64_t part_bytes);
  [[nodiscard]] std::optional<CopyPart> take();
  // Nobody takes more of it.
  void stop();
  // Of a copy of which nothing is left to take.
  [[nodiscard]] bool done() const { return memory_->ended.load(std::memory_order_acquire) == parts_ - own_; }
  // All of it, where a part of the helper's has failed.
  [[nodiscard]] bool failed() const { return memory_->failed.load(std::memory_order_relaxed) != 0; }
  [[nodiscard]] const CopyPart& whole() const { return whole_; }
  void end() { active_ = false; }
  // All parts that the helper does not take.
  void read_parts(const PeerMemory& theirs);
  // Nothing while the helper may still write; else ends the copy: whether all bytes are there. Parts that the helper
  // could not write are read after all. `gone`: its process has ended.
  [[nodiscard]] std::optional<bool> finish(const PeerMemory& theirs, bool gone);

 private:
  SharedCopyMemory* memory_ = nullptr;
  bool active_ = false;
  bool well_ = true;  // as far as it was the receiver's
  uint32_t generation_ = 0;
  uint32_t parts_ = 0;
  uint32_t own_ = 0;  // parts that the receiver took
  CopyPart whole_;
  uint64_t part_bytes_ = 0;
};

// Without memory, one that does not help.
class CopyHelper {
 public:
  CopyHelper() = default;
  explicit CopyHelper(SharedCopyMemory& memory) : memory_(&memory) {}

  void offer() { memory_->helps.store(1, std::memory_order_relaxed); }
  [[nodiscard]] std::optional<CopyPart> take();
  void tell(bool well);
  // One part of what the receiver copies out of our memory, if there is one. `open`: it still takes what we write.
  template <class Open>
  [[nodiscard]] bool help(const PeerMemory& theirs, const Open& open) {
    const auto part = take();
    if (part) tell(open() && theirs.write(part->to, reinterpret_cast<const uint8_t*>(part->from), part->length).ok());
    return part.has_value();
  }

 private:
  SharedCopyMemory* memory_ = nullptr;
};

}  // namespace spinloom::peer
