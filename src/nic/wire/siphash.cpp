#include "nic/wire/siphash.hpp"

#include "base/byte_order.hpp"
#include "nic/wire/sip_round.hpp"

namespace spinloom::wire {

uint64_t siphash(const SipKey& key, std::span<const uint8_t> bytes) {
  SipState<uint64_t> state = begin_sip(key, 0);
  const size_t whole_bytes = bytes.size() & ~size_t{7};
  for (size_t at = 0; at < whole_bytes; at += 8) state.absorb(load_le<uint64_t>(bytes.data() + at));
  uint64_t last = uint64_t{bytes.size()} << 56;
  for (size_t at = whole_bytes; at < bytes.size(); ++at) last |= uint64_t{bytes[at]} << (8 * (at - whole_bytes));
  state.absorb(last);
  return end_sip(state);
}

}  // namespace spinloom::wire
