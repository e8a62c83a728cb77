#include "predict/trace/file.hpp"

#include <cstring>

#include "base/result.hpp"

namespace spinloom::trace {
namespace {

// FNV-1a over words of 8 bytes; the last one is filled with zeros.
uint64_t mix(uint64_t hash, std::span<const uint8_t> bytes) {
  constexpr uint64_t prime = 0x100'0000'01b3;
  while (!bytes.empty()) {
    uint64_t word = 0;
    const size_t length = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), length);
    hash = (hash ^ word) * prime;
    hash ^= hash >> 32;
    bytes = bytes.subspan(length);
  }
  return hash;
}

}  // namespace

std::string trace_path(const std::string& directory, uint32_t rank) {
  return text(directory, "/rank-", rank, ".trace");
}
std::string open_path(const std::string& directory, uint32_t rank) { return text(directory, "/rank-", rank, ".open"); }

uint64_t checksum_of(ChunkHeader header, std::span<const uint8_t> stored) {
  header.checksum = 0;
  constexpr uint64_t basis = 0xcbf2'9ce4'8422'2325;
  const auto* const first = reinterpret_cast<const uint8_t*>(&header);
  return mix(mix(basis, {first, sizeof header}), stored);
}

}  // namespace spinloom::trace
