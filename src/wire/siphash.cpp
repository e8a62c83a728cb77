#include "wire/siphash.hpp"

#include <array>
#include <bit>

#include "base/byte_order.hpp"

namespace spinloom::wire {
namespace {

using State = std::array<uint64_t, 4>;

// Always inlined: the work is less than the cost of a call.
[[gnu::always_inline]] inline void round(State& v) {
  v[0] += v[1];
  v[2] += v[3];
  v[1] = std::rotl(v[1], 13) ^ v[0];
  v[3] = std::rotl(v[3], 16) ^ v[2];
  v[0] = std::rotl(v[0], 32);
  v[2] += v[1];
  v[0] += v[3];
  v[1] = std::rotl(v[1], 17) ^ v[2];
  v[3] = std::rotl(v[3], 21) ^ v[0];
  v[2] = std::rotl(v[2], 32);
}

[[gnu::always_inline]] inline void absorb(State& v, uint64_t word) {
  v[3] ^= word;
  round(v);
  round(v);
  v[0] ^= word;
}

}  // namespace

uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes) {
  State v = {key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d, key.low ^ 0x6c7967656e657261,
             key.high ^ 0x7465646279746573};
  const size_t whole = bytes.size() & ~size_t{7};
  for (size_t at = 0; at < whole; at += 8) absorb(v, load_le<uint64_t>(bytes.data() + at));
  uint64_t last = uint64_t{bytes.size()} << 56;
  for (size_t at = whole; at < bytes.size(); ++at) last |= uint64_t{bytes[at]} << (8 * (at - whole));
  absorb(v, last);
  v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace spinloom::wire
