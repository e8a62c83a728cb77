// Record - travels through the real MPI in place of a message's bytes, and tells the receiver where they are.
//
// Contract: a record is sent as MPI_BYTE with the sender's communicator and tag. It lands on the first packed bytes of
//   the receiver's buffer, and its first `least` bytes hold all fields. It may be sent with up to `most` bytes, so
//   that it ends where a basic element of the message's type ends: some MPIs refuse other lengths.
// Invariants: (1) bytes that do not begin with the job's secret (128 random bits) are not a record.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace spinloom::mpi {

using Secret = std::array<uint64_t, 2>;

struct Record {
  static constexpr int64_t least = 64;
  static constexpr int64_t most = 95;

  Secret secret{};
  uint32_t sender = 0;  // rank in MPI_COMM_WORLD
  uint32_t slot = 0;
  uint64_t serial = 0;
  uint64_t bytes = 0;  // the message's packed bytes
  uint64_t address = 0;  // the address of these in the sender's heap
  std::array<uint64_t, 2> zero{};

  [[nodiscard]] static bool may_be(int64_t bytes) { return bytes >= least && bytes <= most; }
  [[nodiscard]] static Record read(const void* bytes) {
    Record record;
    std::memcpy(&record, bytes, sizeof record);
    return record;
  }
};
static_assert(sizeof(Record) == Record::least);

}  // namespace spinloom::mpi
