// PeerMemory - the memory of a peer process, reached by a mapping of the peer's heap, by the kernel, or not at all; or
// that of a peer in this process, which is reached in place.
//
// Contract: try_reading(), try_writing() and map_heap() find out what works; reach() and describe() report the
//   result. read() and write() copy between the peer's memory and ours. They take one block, or two lists of blocks
//   with equally many bytes, whose blocks may be cut differently. A caller that has a layout instead of a list makes
//   the blocks for one stretch of the message after another: calls of some hundred blocks each cost no more than one
//   call with all of them.
//   For a peer in this process, any address that is this process's counts as the peer's, and one that is not crashes:
//   read() and write() must get addresses from that peer alone.
// Prices: bytes of a mapped heap, and those of this process, cost a copy in memory; kernel_copy.hpp gives the price of
// the kernel's way.
// Invariants: (1) neither reading nor finding out whether it works changes anything at the peer; (2) an address that
//   is not the peer's is an Error: then the first Copied::bytes of the lists are copied, and what the remaining bytes
//   of the destination hold is unknown. Lists with different numbers of bytes are an Error before anything is copied;
//   (3) bytes count as read only if they are the peer's: where its process has ended meanwhile, and its number may
//   belong to another process, reading by the kernel fails. Bytes of a mapped heap can be read after the peer's end;
//   (4) what is written goes to the peer alone, with one exception. A thread of ours may be held up between
//   Process::is_alive() and the call that follows it, while the peer ends and another process of the same user gets its
//   number. The call then writes to that process, but only if it has writable memory at the address of the peer's
//   known word. Nothing less than ptrace would close this gap: the system has no call that writes by a process's
//   descriptor.
// Threads: one owner; it need not be the one that made it. Time: bounded by the bytes; Process reads the clock.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/shared_heap.hpp"
#include "memory/peer/blocks.hpp"
#include "memory/peer/heap_view.hpp"
#include "memory/peer/kernel_copy.hpp"
#include "memory/peer/process.hpp"

namespace spinloom::peer {

// The part of a peer's memory that this process can read without the peer's help: `heap` by the mapping of its heap,
// `memory` at any address by the kernel. A peer in this process is read in place.
enum class Reach : uint32_t { nothing = 0, heap = 1, memory = 2, both = 3 };
[[nodiscard]] constexpr Reach operator|(Reach a, Reach b) {
  return static_cast<Reach>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
[[nodiscard]] constexpr bool includes(Reach reach, Reach part) {
  return (static_cast<uint32_t>(reach) & static_cast<uint32_t>(part)) == static_cast<uint32_t>(part);
}

class PeerMemory {
 public:
  PeerMemory() = default;
  // `known_word` tells the peer from another process that has the same number.
  PeerMemory(Process process, const KnownWord& known_word) : process_(std::move(process)), known_word_(known_word) {}

  // Returns the memory of a peer that is a thread of this process. `reach` is the part that callers may read, and
  // `why_not` says why no more.
  [[nodiscard]] static PeerMemory of_this_process(Reach reach, const std::string& why_not);

  // Tries to read the known word through the kernel. Once this has worked, read() uses the kernel for bytes outside of
  // the mapped heap.
  [[nodiscard]] Status try_reading();
  // Tries to write through the kernel: writes the value that the known word already has. A peer in this process needs
  // no try: the answer is success.
  [[nodiscard]] Status try_writing() const;
  // Maps the heap, for writing as well if that is wanted and works.
  [[nodiscard]] Status map_heap(const SharedHeap::Location& place, bool writable = false);
  // Drops the mapping. reach() and describe() still report it.
  void unmap_heap() { heap_ = {}; }
  // Replaces try_reading(): records why reading through the kernel is not tried.
  void skip_reading(std::string reason) { kernel_description_ = "two copies: " + std::move(reason); }

  [[nodiscard]] const Process& process() const { return process_; }
  [[nodiscard]] Reach reach() const { return reach_; }
  [[nodiscard]] bool is_mapped(uint64_t address, uint64_t length) const { return heap_.at(address, length) != nullptr; }
  // Returns the address in this process at which these bytes of the peer can be read and written; null: there is none.
  // For a peer in this process, they must lie in the heap.
  [[nodiscard]] uint8_t* place_of(uint64_t address, uint64_t length) const;
  // Says in words how the peer's bytes come here.
  [[nodiscard]] std::string describe() const { return heap_description_ + kernel_description_; }

  [[nodiscard]] Status read(uint64_t address, uint8_t* to, uint64_t length) const;
  [[nodiscard]] Status write(uint64_t address, const uint8_t* from, uint64_t length) const;
  [[nodiscard]] CopyResult read(Blocks theirs, Blocks ours) const;
  [[nodiscard]] CopyResult write(Blocks theirs, Blocks ours) const;

 private:
  [[nodiscard]] Status check_known_word() const;
  [[nodiscard]] CopyResult read_local(const uint8_t* local, BlockCursor& theirs, BlockCursor& ours) const;
  [[nodiscard]] uint64_t bytes_before_heap(BlockCursor theirs, uint64_t bytes) const;
  // Returns the address of the peer's bytes in this process; null if they do not lie here.
  [[nodiscard]] const uint8_t* local_address_of(uint64_t address, uint64_t length) const {
    return in_this_process_ ? reinterpret_cast<const uint8_t*>(address) : heap_.at(address, length);
  }

  bool in_this_process_ = false;  // the peer is in this process, and is read in place
  Process process_;
  KnownWord known_word_;
  HeapView heap_;
  bool heap_is_writable_ = false;
  Reach reach_ = Reach::nothing;
  std::string heap_description_;
  std::string kernel_description_ = "not tried yet";
};

}  // namespace spinloom::peer
