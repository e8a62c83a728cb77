// Segment - the shared memory of one process of a job: its doorbell, and a channel from each peer.
//
// Contract: a process creates its own segment and publishes how to find it (a Card); peers attach it. It has no name:
//   it lives as long as a process has it mapped, so that nothing is left of a job that dies, however it dies.
// Invariants: (1) attach() answers with a segment only when its job, its rank and its build are the expected ones;
//   Code::invalid says that its process is gone; (2) `begun` names the peers that have attached; who finds `closed` set
//   after that may not have been seen; what else a peer writes is checked where it is read; (3) nobody makes it
//   shorter: its length is sealed, and attach() takes nothing else.
// Threads: creation and attaching by one thread. Time: none.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "live/channel.hpp"
#include "live/doorbell.hpp"

namespace spinloom::live {

inline constexpr uint32_t local_ranks_max = 1024;

using Secret = std::array<uint64_t, 2>;

struct SegmentHeader {
  uint64_t magic;
  uint64_t build;  // of the library: both ends share the meaning of every byte
  Secret nonce;  // of this segment: a process that got our peer's id later does not know it
  uint32_t rank;
  uint32_t ranks;
  uint64_t self;  // where its process has it mapped
  uint32_t fences;  // not 0: its process takes no part in remote fences
  std::atomic<uint32_t> closed;  // not 0: its process has left the job and takes nothing any more
  std::atomic<uint64_t> heap_bytes;  // 0: it has no heap; then what follows means nothing
  uint64_t heap_base;
  uint64_t heap_inode;
  int heap_file;
  alignas(64) Doorbell doorbell;
  alignas(64) std::atomic<uint64_t> begun[local_ranks_max / 64];
};

// What to do about an errno that kept this process from reaching another one.
[[nodiscard]] const char* cure_of(int error);
// The same for what no other transport replaces: what the error says, and the limit to raise where it is one.
[[nodiscard]] std::string trouble_of(int error);

class Segment {
 public:
  Segment() = default;
  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&& other) noexcept;
  ~Segment();

  [[nodiscard]] static Result<Segment> create(uint32_t rank, uint32_t ranks, const Secret& nonce);
  // Of the process `pid`, by the number that it gave its file.
  [[nodiscard]] static Result<Segment> attach(int64_t pid, int file, uint32_t rank, uint32_t ranks,
                                              const Secret& nonce);

  [[nodiscard]] bool exists() const { return base_ != nullptr; }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(base_); }
  [[nodiscard]] ChannelMemory* channel_of(uint32_t sender) const;

 private:
  [[nodiscard]] static size_t bytes_for(uint32_t ranks);
  [[nodiscard]] Status map(uint32_t ranks);

  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  int file_ = -1;
};

}  // namespace spinloom::live
