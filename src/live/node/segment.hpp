// Segment - the shared memory of one rank of a job: its doorbell, and a channel from each peer.
//
// Contract: a rank creates its own segment and publishes how to find it (a BusinessCard); its peers attach it. A
//   segment has no name and lives only as long as some process has it mapped. So nothing is left of a job that dies,
//   however it dies.
// Invariants: (1) attach() returns a segment only if its job, its rank and its build are the expected ones;
//   Code::invalid means that its process is gone; (2) `begun` names the peers that have attached. A peer that has set
//   its bit there and then finds `closed` set may not have been seen by the owner. Everything else that a peer can
//   write is checked where it is read; (3) nobody can make the file shorter: its length is sealed, and attach() takes
//   only files with that seal; (4) ranks of one process share a mapping, and the channels between them lie in memory
//   that no other process has, where there is some.
// Threads: creation and attaching by one thread; inner_channel_of() by any. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "live/node/channel.hpp"
#include "live/node/direct_memory.hpp"
#include "live/node/doorbell.hpp"

namespace spinloom::live {

inline constexpr uint32_t local_ranks_max = 1024;

using Secret = std::array<uint64_t, 2>;

struct SegmentHeader {
  uint64_t magic;
  uint64_t build;  // made of the sizes of the shared structures; segments of builds with other sizes are not used
  Secret nonce;  // names this segment: a process that gets the owner's process id later cannot know it
  uint32_t rank;
  uint32_t ranks;
  uint64_t self;  // the address at which its process has it mapped
  uint32_t fences;  // its process does not take part in remote fences, unless 0
  std::atomic<uint32_t> closed;  // its process has left the job and takes nothing more, unless 0
  std::atomic<uint64_t> heap_bytes;  // 0: its process has no heap, and the next three fields mean nothing
  uint64_t heap_base;
  uint64_t heap_inode;
  int heap_file;
  alignas(64) Doorbell doorbell;
  alignas(64) std::atomic<uint64_t> attached_peers[local_ranks_max / 64];
  DirectMemory direct;
};

// The remedy for an errno that kept this process from reaching another one.
[[nodiscard]] const char* remedy_for(int error);
// A text for an errno where no other transport would help: the meaning of the error and, if a limit was reached, the
// limit to raise.
[[nodiscard]] std::string error_text(int error);

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  [[nodiscard]] static Result<Segment> create(uint32_t rank, uint32_t ranks, const Secret& nonce);
  // Attaches the segment of process `pid`, whose descriptor has the number `file` in that process.
  [[nodiscard]] static Result<Segment> attach(int64_t pid, int file, uint32_t rank, uint32_t ranks,
                                              const Secret& nonce);

  // Attaches the segment of another rank of this process.
  [[nodiscard]] static Result<Segment> attach_here(uint32_t rank, const Secret& nonce);

  [[nodiscard]] bool exists() const { return base_ != nullptr; }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  // Writes into the header where this process's heap is, if it has one by now. Returns whether it has.
  [[nodiscard]] bool publish_heap() const;
  [[nodiscard]] ChannelMemory* channel_of(uint32_t sender) const;
  // The channel from a sender in this process. The first call of either end makes it.
  [[nodiscard]] ChannelMemory* inner_channel_of(uint32_t sender) const;

 private:
  class Mapping;

  [[nodiscard]] static size_t bytes_for(uint32_t ranks);
  [[nodiscard]] Status map(uint32_t ranks);

  std::shared_ptr<Mapping> mapping_;
  uint8_t* base_ = nullptr;  // the beginning of the mapping
  int file_ = -1;
};

}  // namespace spinloom::live
