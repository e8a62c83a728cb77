// Fuzz target: frames from outside. Any bytes are refused, or are packets whose parts lie in them and that are written
// to the same bytes; a station answers them with right frames or not at all.
#include "base/byte_order.hpp"
#include "base/testing/fuzz.hpp"
#include "ethernet/port/echo_station.hpp"
#include "ethernet/port/finish_checksum.hpp"
#include "nic/packet/testing/random_frames.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spinloom;
  const packet::Bytes bytes(data, size);
  const bool read = packet::test::read_all(bytes);
  packet::FrameBytes copy(bytes.begin(), bytes.end());
  port::finish_if_offloaded(copy);
  // The target of frames is not under test.
  const auto ethernet = packet::read_ethernet(bytes);
  if (!ethernet) return read ? 0 : -1;
  const auto ipv4 = packet::read_ipv4(ethernet->payload);
  const port::EchoStation station(ethernet->target, ipv4 ? ipv4->target : packet::Ipv4Address{0x0a000002});
  packet::FrameBytes out(std::max(size, packet::ethernet_frame_bytes_min));
  out.resize(station.answer(bytes, out));
  if (out.empty()) return 0;
  const auto answer = packet::read_ethernet(out);
  SPL_ASSERT(answer.ok() && answer->target == ethernet->source, "an answer to somebody else");
  if (answer->type == packet::ether_type::ipv4) {
    const auto packet = packet::read_ipv4(answer->payload);
    SPL_ASSERT(packet.ok(), packet::sentence(packet.error));
    const auto udp = packet::read_udp(*packet);
    SPL_ASSERT(udp ? packet::verify_udp(*packet, *udp) == packet::ReadError::none : packet::read_icmp(*packet).ok(),
               "a wrong answer");
  }
  return 0;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  const packet::Endpoints ends{
      packet::test::random_mac(random), packet::test::random_mac(random), {0x0a000001}, {0x0a000002}};
  out.push_back(packet::arp_request_frame(ends.source_mac, ends.source, ends.target));
  for (int i = 0; i < 200; ++i) out.push_back(packet::test::random_frame(random));
  return out;
}

// Headers are at the front; their IPv4 checksum is made right again, or no change would come behind it.
void mutate(Random& random, Input& input) {
  if (input.size() < 40) return;
  input[random.below(40)] = static_cast<uint8_t>(random.next());
  const auto ethernet = packet::read_ethernet(input);
  if (!ethernet || ethernet->payload.size() < packet::ipv4_header_bytes) return;
  uint8_t* const at = input.data() + (ethernet->payload.data() - input.data());
  const size_t length = std::min<size_t>((at[0] & 15U) * 4, ethernet->payload.size());
  store_be(at + 10, uint16_t{0});
  store_be(at + 10, packet::checksum({at, length}));
}

}  // namespace spinloom::fuzz
