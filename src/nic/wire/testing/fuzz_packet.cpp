// Fuzz target: packets, datagrams and envelopes from outside. Any bytes are refused with an Error, or are a consistent
// packet that encodes to the same bytes.
#include <algorithm>
#include <tuple>

#include "base/testing/fuzz.hpp"
#include "nic/wire/datagram.hpp"
#include "nic/wire/envelope.hpp"
#include "nic/wire/packet_format.hpp"
#include "nic/wire/testing/random_packet.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  const auto opened = wire::open_datagram({}, {data, size});
  if (opened) SPL_ASSERT(opened->body.data() >= data && opened->body.size() <= size, "a body outside of its datagram");
  const auto envelope = wire::open_envelope({}, {data, size});
  if (envelope) {
    SPL_ASSERT(envelope->body.data() >= data && envelope->body.size() <= size, "a body outside of its envelope");
  }
  const auto packet = wire::decode({data, size});
  if (!packet) {
    SPL_ASSERT(!packet.error().message.empty(), "an Error without a sentence");
    return -1;
  }
  SPL_ASSERT(wire::check(*packet).ok(), "decoded, and does not hold together");
  SPL_ASSERT(!wire::describe(*packet).empty(), "nothing to print");
  std::vector<uint8_t> again;
  wire::encode(*packet, again);
  SPL_ASSERT(std::equal(again.begin(), again.end(), data, data + size), "other bytes");
  return 0;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  const std::vector<uint8_t> payload(200, 7);
  for (int i = 0; i < 200; ++i) {
    Input bytes;
    wire::encode(wire::test::random_packet(random, payload), bytes);
    out.push_back(bytes);
    Input datagram;
    const size_t at = wire::begin_datagram({}, datagram);
    datagram.insert(datagram.end(), bytes.begin(), bytes.end());
    wire::seal_datagram({}, at, datagram);
    out.push_back(datagram);
    Input envelope;
    std::ignore = wire::begin_envelope({}, envelope);
    envelope.insert(envelope.end(), bytes.begin(), bytes.end());
    wire::seal_envelope({}, 0, envelope);
    out.push_back(envelope);
  }
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < 8) return;
  const size_t at = random.below(input.size() - 7);
  const uint8_t filler = random.chance(1, 2) ? 0 : 255;
  std::fill_n(input.begin() + static_cast<int64_t>(at), 1 + random.below(8), filler);
}

}  // namespace spinloom::fuzz
