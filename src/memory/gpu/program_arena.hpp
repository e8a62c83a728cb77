// Program arena - writes tables and blobs behind each other, and returns their places.
//
// Contract: add() copies bytes to a multiple of 16 and returns their place. place_of() gives the place of a blob, which
//   is added at the first call, or of a table within it.
// Threads: one owner. Time: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "memory/layout/blob.hpp"

namespace spinloom::gpu {

class ProgramArena {
 public:
  explicit ProgramArena(size_t reserved_bytes) { grow(reserved_bytes); }

  uint64_t add(std::span<const std::byte> bytes) {
    const uint64_t place = grow(bytes.size());
    std::memcpy(at(place), bytes.data(), bytes.size());
    return place;
  }
  template <class T>
  uint64_t add(const std::vector<T>& values) {
    return add(std::as_bytes(std::span(values)));
  }
  uint64_t place_of(const layout::Blob& blob) {
    const auto [entry, fresh] = blobs_.try_emplace(blob.data(), 0);
    if (fresh) entry->second = add(blob.bytes());
    return entry->second;
  }
  uint64_t place_of(const layout::Blob& blob, const std::byte* table) {
    return place_of(blob) + static_cast<uint64_t>(table - blob.data());
  }
  std::byte* at(uint64_t place) { return reinterpret_cast<std::byte*>(words_.data()) + place; }
  std::vector<uint64_t> finish() { return std::move(words_); }

 private:
  uint64_t grow(size_t bytes) {
    const uint64_t place = words_.size() * sizeof(uint64_t);
    words_.resize(words_.size() + (bytes + 15) / 16 * 2);
    return place;
  }

  std::vector<uint64_t> words_;
  std::map<const std::byte*, uint64_t> blobs_;
};

}  // namespace spinloom::gpu
