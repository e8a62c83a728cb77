// PeerLayouts - the layouts of peers that this rank has read, so that each is read and checked once.
//
// Contract: find() returns the layout that `sender` calls `number`, or null. learn() checks a layout's bytes and keeps
//   the layout; it returns null if they are not a layout. It is called only after find() has found nothing, or to read
//   the layout anew.
// Invariants: (1) at most `most` layouts are kept: the least recently used one goes.
// Threads: the caller's lock; a layout lives as long as a pointer to it. Time: none.
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
  [[nodiscard]] size_t size() const { return kept_.size(); }

 private:
  struct KeptLayout {
    uint32_t sender;
    uint64_t number;
    uint64_t last_use;  // the count of uses at the last use
    BlobPointer blob;
  };

  std::vector<KeptLayout> kept_;
  uint64_t uses_ = 0;
};

}  // namespace spinloom::mpi
