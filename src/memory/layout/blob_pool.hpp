// BlobPool - identical blobs are one: a table of the blobs that are alive.
//
// Contract: intern(blob) returns the blob of the pool that has the same bytes, or puts this one into the pool. The
//   table holds no blob alive: the last user's release takes it out. A hash finds candidates, the bytes decide.
// Invariants: (1) no two blobs of a pool that are alive hold the same bytes; (2) blobs may outlive their pool.
// Threads: any. Time: intern() reads the bytes once or twice, whatever the number of blobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "memory/layout/blob.hpp"

namespace spinloom::layout {

class BlobPool {
 public:
  using Hash = uint64_t (*)(std::span<const std::byte> bytes);
  static uint64_t hash_of(std::span<const std::byte> bytes);

  explicit BlobPool(Hash hash = hash_of);

  Blob intern(const Blob& blob);
  [[nodiscard]] size_t alive_count() const;

  static BlobPool& process();  // the pool of this process, which Committed::commit() uses

 private:
  struct Table;
  struct Release;
  std::shared_ptr<Table> table_;
};

}  // namespace spinloom::layout
