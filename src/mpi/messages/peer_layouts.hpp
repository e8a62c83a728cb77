// PeerLayouts - the layouts of peers that this rank has read, so that each is read and checked once.
//
// Contract: find() gives the layout that `sender` calls `number`, or null; learn() checks bytes and keeps them, and
//   gives null if they are not a layout. Invariants: (1) at most `most` layouts are kept: the one that was not asked
//   for longest goes. Threads: the caller's lock; what was given holds as long as the pointer. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/layout/blob.hpp"

namespace spinloom::mpi {

using BlobPointer = std::shared_ptr<const layout::Blob>;

class PeerLayouts {
 public:
  static constexpr size_t most = 256;

  [[nodiscard]] BlobPointer find(uint32_t sender, uint64_t number);
  [[nodiscard]] BlobPointer learn(uint32_t sender, uint64_t number, std::span<const std::byte> bytes);
  [[nodiscard]] size_t size() const { return known_.size(); }

 private:
  struct Known {
    uint32_t sender;
    uint64_t number;
    uint64_t asked;
    BlobPointer blob;
  };

  std::vector<Known> known_;
  uint64_t asked_ = 0;
};

}  // namespace spinloom::mpi
