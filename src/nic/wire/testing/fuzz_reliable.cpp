// Fuzz target: a member of the job that sends wrong datagrams. The input is a list of datagrams; each is sealed with
// the job's secret and names the right lives, so that everything behind the tag is reached. Whatever comes, the stage
// answers with Errors and counts, delivers no more than it was given, and stays able to send.
#include <algorithm>

#include "base/byte_order.hpp"
#include "base/testing/fuzz.hpp"
#include "nic/wire/datagram.hpp"
#include "nic/wire/packet_format.hpp"
#include "nic/wire/reliable.hpp"
#include "nic/wire/testing/random_packet.hpp"

namespace {

using namespace spinloom;
using namespace spinloom::wire;

// length; flags, message ID, offset, sequence, received, window, ordinal, echo, delay
constexpr size_t prefix_bytes = 1 + 2 + 4 + 4 + 4 + 4 + 4 + 4 + 4 + 4;

DatagramHeader header_of(const uint8_t* from) {
  DatagramHeader header;
  header.flags = load_le<uint16_t>(from);
  header.message_id = load_le<uint32_t>(from + 2);
  header.offset = load_le<uint32_t>(from + 6);
  header.sequence = load_le<uint32_t>(from + 10);
  header.received = load_le<uint32_t>(from + 14);
  header.window = load_le<uint32_t>(from + 18);
  header.ordinal = load_le<uint32_t>(from + 22);
  header.echo = load_le<uint32_t>(from + 26);
  header.delay_ns = load_le<uint32_t>(from + 30);
  header.source.value = 1;
  header.target.value = 0;
  header.source_epoch = 1;
  header.target_epoch = 1;
  return header;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ReliableConfig config;
  config.window = 4;
  Reliable stage(nic::Rank{0}, config);
  SPL_ASSERT(stage.add_peer(nic::Rank{1}, 1).ok(), "a new peer");
  Output out;
  int taken = 0;
  Time now{0};
  const std::vector<uint8_t> payload(600, 3);
  nic::Packet packet;
  packet.target.value = 1;
  packet.message_length = packet.payload.length = payload.size();
  packet.payload.bytes = payload.data();
  for (size_t at = 0; size - at > prefix_bytes;) {
    const size_t length = std::min<size_t>(data[at], size - at - prefix_bytes);
    std::vector<uint8_t> datagram;
    const size_t start = begin_datagram(header_of(data + at + 1), datagram);
    datagram.insert(datagram.end(), data + at + prefix_bytes, data + at + prefix_bytes + length);
    seal_datagram({}, start, datagram);
    at += prefix_bytes + length;
    out.clear();
    now += Time{1'000'000};
    if (packet.message < 8) {
      SPL_ASSERT(stage.on_send(now, packet, {}, out).ok(), "the peer is not lost");
      ++packet.message;
    }
    const Status status = stage.on_datagram(now, datagram, out);
    SPL_ASSERT(status.ok() || !status.error().message.empty(), "an Error without a sentence");
    taken += status.ok() ? 1 : 0;
    for (const nic::Packet& one : out.deliver) SPL_ASSERT(check(one).ok() && one.source.value == 1, "no packet");
    for (const Output::Transmit& one : out.transmit)
      SPL_ASSERT(open_datagram({}, out.datagram(one)).ok(), "an unsealed datagram");
    now = std::max(now, std::min(stage.timer(), now + Time{1'000'000'000}));
    stage.on_timer(now, out);
    stage.check_invariants();
    if (!out.lost.empty()) break;
  }
  SPL_ASSERT(stage.counts().delivered <= static_cast<uint64_t>(taken), "delivered more than was taken");
  return taken > 0 ? 0 : -1;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  const std::vector<uint8_t> payload(60, 7);
  for (int i = 0; i < 100; ++i) {
    Input input;
    uint32_t sequence = 0;
    for (uint64_t datagrams = 1 + random.below(8); datagrams > 0; --datagrams) {
      std::vector<uint8_t> body;
      nic::Packet packet = wire::test::random_packet(random, payload);
      packet.source.value = 1;
      packet.target.value = 0;
      if (random.chance(3, 4)) wire::encode(packet, body);
      body.resize(std::min<size_t>(body.size(), 255));
      const size_t at = input.size();
      input.resize(at + prefix_bytes);
      input[at] = static_cast<uint8_t>(body.size());
      store_le(&input[at + 1], static_cast<uint16_t>(random.chance(1, 3) ? 3 : random.below(8)));
      store_le(&input[at + 3], sequence);
      store_le(&input[at + 7], static_cast<uint32_t>(packet.offset));
      store_le(&input[at + 11], sequence);
      store_le(&input[at + 23], sequence++);
      store_le(&input[at + 15], static_cast<uint32_t>(random.below(4)));
      store_le(&input[at + 19], static_cast<uint32_t>(random.below(70)));
      store_le(&input[at + 27], static_cast<uint32_t>(random.below(12)));
      store_le(&input[at + 31], static_cast<uint32_t>(random.below(3) << 16));
      input.insert(input.end(), body.begin(), body.end());
    }
    out.push_back(input);
  }
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < 4) return;
  const size_t at = random.below(input.size() - 3);
  const uint32_t edges[] = {0, 1, 2, 4095, 4096, 4097, 0x7fffffff, 0x80000000, 0xffffffff};
  store_le(&input[at], edges[random.below(std::size(edges))]);
}

}  // namespace spinloom::fuzz
