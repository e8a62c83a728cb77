// MemoryReader - reads the memory of a peer process, by its addresses.
//
// Contract: probe() tries it on a word whose value is known and says why it does not work; read() copies.
// Invariants: (1) nothing at the peer changes; (2) an address that is not the peer's is an Error.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace spinloom::live {

class MemoryReader {
 public:
  MemoryReader() = default;
  explicit MemoryReader(int64_t pid) : pid_(pid) {}

  [[nodiscard]] Status probe(uint64_t address, uint64_t value) const;
  [[nodiscard]] Status read(uint64_t address, uint8_t* to, uint64_t length) const;

 private:
  int64_t pid_ = 0;
};

}  // namespace spinloom::live
