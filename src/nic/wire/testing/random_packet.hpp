// Random packets for the tests and fuzz targets of this floor. Threads: pure. Time: none.
#pragma once

#include <vector>

#include "base/random.hpp"
#include "nic/portals/event.hpp"
#include "nic/portals/packet.hpp"

namespace spinloom::wire::test {

// A packet of any operation with every field that travels filled in; its payload points into `bytes`.
inline nic::Packet random_packet(Random& random, const std::vector<uint8_t>& bytes) {
  const auto number = [&] { return random.chance(1, 2) ? random.next() : random.below(300); };
  nic::Packet packet;
  packet.operation = static_cast<nic::Operation>(random.below(6));
  packet.source.value = static_cast<uint32_t>(number());
  packet.target.value = static_cast<uint32_t>(number());
  packet.message = number();
  packet.answers = number();
  packet.payload.length = random.below(bytes.size() + 1);
  if (packet.payload.length > 0) packet.payload.bytes = bytes.data();
  packet.offset = random.chance(1, 2) ? 0 : 1 + random.below(1 << 20);
  packet.missing = random.chance(1, 8) ? random.below(1 << 20) : 0;
  packet.message_length = packet.offset + packet.payload.length + packet.missing + random.below(100);
  if (!packet.is_header()) return packet;
  nic::MessageFields& fields = packet.fields;
  fields.portal_index = static_cast<uint32_t>(number());
  fields.user = static_cast<uint32_t>(number());
  fields.match_bits = number();
  fields.remote_offset = number();
  fields.hdr_data = number();
  fields.ack_request = static_cast<nic::AckRequest>(random.below(4));
  fields.manipulated_bytes = number();
  fields.fail = static_cast<uint8_t>(random.below(static_cast<uint64_t>(nic::Fail::no_match) + 1));
  fields.list = static_cast<nic::ListKind>(random.below(2));
  fields.request.requested_bytes = number();
  fields.request.reply_to = number();
  fields.request.atomic = static_cast<nic::AtomicOperation>(random.below(nic::atomic_operations));
  fields.request.datatype = static_cast<nic::Datatype>(random.below(nic::datatypes));
  fields.request.operand = {number(), number()};
  return packet;
}

}  // namespace spinloom::wire::test
