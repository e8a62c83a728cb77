#include "base/random.hpp"

namespace spinloom {
namespace {

uint64_t splitmix64(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

uint64_t rotate_left(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

}  // namespace

Random::Random(uint64_t seed, std::string_view stream) {
  uint64_t mixed = seed;
  for (const char c : stream) {
    uint64_t step = mixed ^ static_cast<uint8_t>(c);
    mixed = splitmix64(step);
  }
  for (uint64_t& word : state_) word = splitmix64(mixed);
}

uint64_t Random::next() {
  const uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const uint64_t t = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= t;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

uint64_t Random::below(uint64_t bound) {
  SPL_ASSERT(bound > 0, "below(0)");
  const uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const uint64_t value = next();
    if (value >= threshold) return value % bound;
  }
}

int64_t Random::between(int64_t low, int64_t high) {
  SPL_ASSERT(low <= high, low, " > ", high);
  const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
  const uint64_t offset = span == 0 ? next() : below(span);
  return static_cast<int64_t>(static_cast<uint64_t>(low) + offset);
}

}  // namespace spinloom
