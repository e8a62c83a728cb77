// Interned - numbers for strings of bytes: equal ones have the same.
//
// Contract: find() gives the number of bytes that were added, or `none`; add() gives them `number`.
// Invariants: (1) open addressing with linear probes, at most half full.
// Threads: the caller's lock. Time: none.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "predict/trace/trace.hpp"

namespace spinloom::trace {

class Interned {
 public:
  [[nodiscard]] static uint64_t hash_of(std::span<const uint8_t> bytes) {
    uint64_t hash = bytes.size() * odd;
    const uint8_t* at = bytes.data();
    size_t left = bytes.size();
    for (; left >= 8; at += 8, left -= 8) hash = mix(hash, load(at, 8));
    return mix(hash, load(at, left));
  }
  [[nodiscard]] uint32_t find(std::span<const uint8_t> bytes, uint64_t hash) const {
    if (cells_.empty()) return none;
    for (size_t i = hash & mask();; i = (i + 1) & mask()) {
      const Cell& cell = cells_[i];
      if (cell.number == none) return none;
      if (cell.hash == hash && cell.length == bytes.size() &&
          std::memcmp(bytes_.data() + cell.first, bytes.data(), bytes.size()) == 0) {
        return cell.number;
      }
    }
  }
  void add(std::span<const uint8_t> bytes, uint64_t hash, uint32_t number) {
    if (2 * (used_ + 1) > cells_.size()) grow();
    insert({hash, bytes_.size(), static_cast<uint32_t>(bytes.size()), number});
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] size_t memory_bytes() const { return bytes_.size() + cells_.size() * sizeof(Cell); }
  void clear() { *this = {}; }

 private:
  static constexpr uint64_t odd = 0x9e37'79b9'7f4a'7c15;
  struct Cell {
    uint64_t hash = 0;
    size_t first = 0;
    uint32_t length = 0;
    uint32_t number = none;
  };
  static uint64_t load(const uint8_t* at, size_t length) {
    uint64_t word = 0;
    std::memcpy(&word, at, length);
    return word;
  }
  static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * odd;
    return hash ^ hash >> 29;
  }
  [[nodiscard]] size_t mask() const { return cells_.size() - 1; }
  void insert(const Cell& cell) {
    size_t i = cell.hash & mask();
    while (cells_[i].number != none) i = (i + 1) & mask();
    cells_[i] = cell;
    ++used_;
  }
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 256 : 2 * cells_.size());
    old.swap(cells_);
    used_ = 0;
    for (const Cell& cell : old) {
      if (cell.number != none) insert(cell);
    }
  }

  std::vector<Cell> cells_;
  std::vector<uint8_t> bytes_;
  size_t used_ = 0;
};

}  // namespace spinloom::trace
