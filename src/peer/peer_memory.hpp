// PeerMemory - the memory of a peer process, by its addresses.
//
// Contract: probe_read() and probe_write() try it on a word whose value is known, and say why it does not work; read()
//   and write() copy.
// Invariants: (1) reading changes nothing at the peer, and a probe neither; (2) an address that is not the peer's is an
//   Error.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace spinloom::peer {

class PeerMemory {
 public:
  PeerMemory() = default;
  explicit PeerMemory(int64_t pid) : pid_(pid) {}

  [[nodiscard]] Status probe_read(uint64_t address, uint64_t value) const;
  // `value` is what is there, and what is written.
  [[nodiscard]] Status probe_write(uint64_t address, uint64_t value) const;
  [[nodiscard]] Status read(uint64_t address, uint8_t* to, uint64_t length) const;
  [[nodiscard]] Status write(uint64_t address, const uint8_t* from, uint64_t length) const;

 private:
  int64_t pid_ = 0;
};

}  // namespace spinloom::peer
