// Fuzz target: datagrams of SLMP from outside. Any bytes are refused with an Error, or are a header that is written as
// the same bytes; a receiver that gets many of them stays within its bounds.
#include <algorithm>

#include "base/testing/fuzz.hpp"
#include "ethernet/slmp/receiver.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  const auto header = slmp::read({data, size});
  if (header) {
    const auto again = slmp::write(*header);
    SPL_ASSERT(std::equal(again.begin(), again.end(), data), "other bytes");
    const auto room = slmp::write_report(*header);
    SPL_ASSERT(!slmp::has_report(*header) || std::equal(room.begin(), room.end(), data + again.size()), "other room");
    SPL_ASSERT(!slmp::print(*header).empty(), "nothing to print");
  } else {
    SPL_ASSERT(!header.error().message.empty(), "an Error without a sentence");
  }

  // The input as datagrams: a byte with the length, then so many bytes.
  const slmp::ReceiverConfig config{.bytes_max = 1 << 16, .messages_max = 4, .ranges_max = 8, .remembered_max = 2};
  slmp::Receiver receiver(config);
  Time now{0};
  for (size_t at = 0; at < size;) {
    const size_t length = std::min<size_t>(data[at], size - at - 1);
    const std::span<const uint8_t> datagram(data + at + 1, length);
    at += 1 + length;
    now += Time{1'000'000'000'000};
    const auto outcome = receiver.on_datagram(now, 1, datagram);
    SPL_ASSERT(receiver.bytes_held() <= config.bytes_max && receiver.messages_held() <= config.messages_max, "bounds");
    if (!outcome || !outcome->acknowledgement) continue;
    SPL_ASSERT((datagram[0] & 0x40) != 0, "an acknowledgement that nobody asked for");
    SPL_ASSERT(((datagram[0] & 0x10) != 0) == slmp::has_report(*outcome->acknowledgement),
               "a report that nobody asked for");
    SPL_ASSERT(outcome->acknowledgement->room <= config.bytes_max, "room for more than there is");
    SPL_ASSERT(std::equal(datagram.begin() + 2, datagram.begin() + slmp::header_bytes,
                          slmp::write(*outcome->acknowledgement).begin() + 2),
               "another header");
  }
  return header ? 0 : -1;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  for (int i = 0; i < 100; ++i) {
    Input whole;
    for (uint32_t packet = 0; packet < 4; ++packet) {
      const uint16_t asked = random.chance(1, 2) ? slmp::syn : slmp::syn | slmp::report;
      const auto flags = static_cast<uint16_t>(asked | (packet == 3 ? slmp::eom : 0));
      const auto header = slmp::write({flags, static_cast<uint32_t>(random.below(3)), packet * 20});
      Input one(header.begin(), header.end());
      one.resize(one.size() + 20, static_cast<uint8_t>(i));
      if (i % 4 == 0) out.push_back(one);
      whole.push_back(static_cast<uint8_t>(one.size()));
      whole.insert(whole.end(), one.begin(), one.end());
    }
    out.push_back(whole);
  }
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < slmp::header_bytes) return;
  input[random.below(input.size())] = static_cast<uint8_t>(uint64_t{1} << random.below(8));
}

}  // namespace spinloom::fuzz
