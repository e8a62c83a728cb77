// PeerMemory - the memory of a peer process as this one can get at it: out of its heap, which is mapped here, by the
// kernel, or not at all, and why so.
//
// Contract: try_reading(), try_writing() and map_heap() find out what there is; reach() and describe() say it. read()
//   and write() copy between the peer's memory and ours: one block, or lists of blocks that are cut differently on both
//   sides and have equally many bytes. Who has a layout instead of a list makes the blocks of one stretch of the
//   message after another: some hundred blocks a call cost no more than all of them at once.
// Prices: bytes of a mapped heap those of a copy; by the kernel, see kernel_copy.hpp.
// Invariants: (1) reading changes nothing at the peer, and what tries it neither; (2) an address that is not the
//   peer's is an Error, after which the first Copied::bytes of the lists are copied, and of the others it is unknown;
//   lists of different sizes are one before anything is copied; (3) what is read is the peer's: where its process has
//   ended meanwhile and its number may be another's, reading fails; bytes of a heap stay after the peer's end;
//   (4) what is written goes to the peer alone, with one exception: a thread of ours that is kept from running between
//   Process::holds() and the call that follows at once, until the peer has ended and its number is another process's of
//   the same user, writes there, and only if that one has writable memory at the address of the peer's known word.
//   Nothing less than ptrace would close that: the system has no call that writes by a process's descriptor.
// Threads: one owner; it need not be the one that made it. Time: bounded by the bytes; Process reads the clock.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/shared_heap.hpp"
#include "peer/blocks.hpp"
#include "peer/heap_view.hpp"
#include "peer/kernel_copy.hpp"
#include "peer/process.hpp"

namespace spinloom::peer {

// What of a process's memory another one can read where it is.
enum class Reach : uint32_t { nothing = 0, heap = 1, memory = 2, both = 3 };
[[nodiscard]] constexpr Reach operator|(Reach a, Reach b) {
  return static_cast<Reach>(static_cast<uint32_t>(a) | static_cast<uint32_t>(b));
}
[[nodiscard]] constexpr bool includes(Reach all, Reach one) {
  return (static_cast<uint32_t>(all) & static_cast<uint32_t>(one)) == static_cast<uint32_t>(one);
}

class PeerMemory {
 public:
  PeerMemory() = default;
  // `known` tells the peer from another process of its number, or of another namespace.
  PeerMemory(Process process, const Word& known) : process_(std::move(process)), known_(known) {}

  // By the kernel, from now on, if it lets us.
  [[nodiscard]] Status try_reading();
  // What is written is what is there.
  [[nodiscard]] Status try_writing() const;
  [[nodiscard]] Status map_heap(const SharedHeap::Place& place);
  void unmap_heap() { heap_ = {}; }
  // Why nobody tries to read by the kernel.
  void leave_unread(std::string why) { kernel_ = "two copies: " + std::move(why); }

  [[nodiscard]] const Process& process() const { return process_; }
  [[nodiscard]] Reach reach() const { return reach_; }
  [[nodiscard]] bool maps(uint64_t address, uint64_t length) const { return heap_.at(address, length) != nullptr; }
  // How its bytes come here: for people.
  [[nodiscard]] std::string describe() const { return mapped_ + kernel_; }

  [[nodiscard]] Status read(uint64_t address, uint8_t* to, uint64_t length) const;
  [[nodiscard]] Status write(uint64_t address, const uint8_t* from, uint64_t length) const;
  [[nodiscard]] Copied read(Blocks theirs, Blocks ours) const;
  [[nodiscard]] Copied write(Blocks theirs, Blocks ours) const;

 private:
  [[nodiscard]] Status find_known() const;
  [[nodiscard]] Copied read_heap(const uint8_t* here, BlockCursor& theirs, BlockCursor& ours) const;
  [[nodiscard]] uint64_t outside_heap(BlockCursor theirs, uint64_t bytes) const;

  Process process_;
  Word known_;
  HeapView heap_;
  Reach reach_ = Reach::nothing;
  std::string mapped_;
  std::string kernel_ = "not tried yet";
};

}  // namespace spinloom::peer
