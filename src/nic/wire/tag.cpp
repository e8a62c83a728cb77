#include "nic/wire/tag.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/byte_order.hpp"
#include "nic/wire/sip_round.hpp"

namespace spinloom::wire {
namespace {

constexpr size_t lanes = 8;
constexpr size_t block_bytes = lanes * sizeof(uint64_t);
constexpr uint64_t lane_domain = 0x656e616c00;  // the domain of a lane: this plus its number
constexpr uint64_t final_domain = 0x656c6f687700;  // the domain of the state that absorbs all lanes

typedef uint64_t Words __attribute__((vector_size(block_bytes)));
using Lanes = SipState<Words>;

Lanes begin_lanes(const SipKey& key) {
  Lanes state;
  for (size_t lane = 0; lane < lanes; ++lane) {
    const SipState<uint64_t> initial = begin_sip(key, lane_domain + lane);
    state.v0[lane] = initial.v0;
    state.v1[lane] = initial.v1;
    state.v2[lane] = initial.v2;
    state.v3[lane] = initial.v3;
  }
  return state;
}

[[gnu::always_inline]] inline void load(Words& words, const uint8_t* from) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&words, from, block_bytes);
  } else {
    for (size_t lane = 0; lane < lanes; ++lane) words[lane] = load_le<uint64_t>(from + 8 * lane);
  }
}

[[gnu::always_inline]] inline void absorb_blocks(Lanes& stored, const uint8_t* from, size_t blocks) {
  Lanes state = stored;  // a copy in registers
  for (; blocks > 0; --blocks, from += block_bytes) {
    Words words;
    load(words, from);
    state.absorb(words);
  }
  stored = state;
}

// ---- the same for each kind of processor ----

using Absorb = void (*)(Lanes& state, const uint8_t* from, size_t blocks);

void absorb_plainly(Lanes& state, const uint8_t* from, size_t blocks) { absorb_blocks(state, from, blocks); }

#if defined(__x86_64__)
[[gnu::target("avx2")]] void absorb_avx2(Lanes& state, const uint8_t* from, size_t blocks) {
  absorb_blocks(state, from, blocks);
}
[[gnu::target("avx512f,avx512vl,avx512dq")]] void absorb_avx512(Lanes& state, const uint8_t* from, size_t blocks) {
  absorb_blocks(state, from, blocks);
}

Absorb fastest() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
    return absorb_avx512;
  }
  return __builtin_cpu_supports("avx2") ? absorb_avx2 : absorb_plainly;
}
#else
Absorb fastest() { return absorb_plainly; }
#endif

}  // namespace

uint64_t tag_of(const SipKey& key, std::span<const uint8_t> head, std::span<const uint8_t> body) {
  static const Absorb absorb = fastest();
  const size_t length = head.size() + body.size();
  if (length < lanes_bytes_min) {
    if (body.empty()) return siphash(key, head);
    std::array<uint8_t, lanes_bytes_min> joined;
    if (!head.empty()) std::memcpy(joined.data(), head.data(), head.size());
    std::memcpy(joined.data() + head.size(), body.data(), body.size());
    return siphash(key, {joined.data(), length});
  }
  Lanes state = begin_lanes(key);
  alignas(block_bytes) std::array<uint8_t, block_bytes> partial;
  size_t filled = 0;
  for (std::span<const uint8_t> bytes : {head, body}) {
    if (filled > 0 && !bytes.empty()) {
      const size_t more = std::min(block_bytes - filled, bytes.size());
      std::memcpy(partial.data() + filled, bytes.data(), more);
      filled += more;
      bytes = bytes.subspan(more);
      if (filled < block_bytes) continue;
      absorb(state, partial.data(), 1);
      filled = 0;
    }
    absorb(state, bytes.data(), bytes.size() / block_bytes);
    const auto rest = bytes.last(bytes.size() % block_bytes);
    if (rest.empty()) continue;
    std::memcpy(partial.data(), rest.data(), rest.size());
    filled = rest.size();
  }
  if (filled > 0) {
    std::fill(partial.begin() + static_cast<ptrdiff_t>(filled), partial.end(), uint8_t{0});
    absorb(state, partial.data(), 1);
  }
  SipState<uint64_t> last = begin_sip(key, final_domain);
  for (size_t lane = 0; lane < lanes; ++lane) {
    for (const Words* words : {&state.v0, &state.v1, &state.v2, &state.v3}) last.absorb((*words)[lane]);
  }
  last.absorb(length);
  return end_sip(last);
}

}  // namespace spinloom::wire
