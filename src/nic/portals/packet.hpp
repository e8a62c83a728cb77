// Packet - a unit of transfer between two NICs.
//
// Contract: payload is a reference, not a copy: {inline | local memory | peer memory}; the engine never
//   dereferences it, drivers do. The first packet of a message (is_header) carries the fields that
//   matching needs; every packet carries what identifies its message and its place in it.
// Invariants: (1) offset + payload.length <= message_length; (2) all packets of a message but the last have one size
//   when they leave: NicLimits::transfer_bytes, or payload_bytes if handlers fill or receive them. A network that
//   carries less at a time cuts them at multiples of cut_bytes, so that handlers see whole elements of up to that
//   size; (3) a message of zero bytes is one packet, header and last; (4) a packet with missing bytes is the last that
//   its sender sends of the message, has no payload and is never the header.
// Threads: plain values. Time: none.
#pragma once

#include <array>
#include <cstdint>

#include "nic/portals/entry.hpp"
#include "nic/portals/ids.hpp"
#include "nic/spin/atomic.hpp"
#include "nic/spin/her.hpp"
#include "nic/spin/payload.hpp"

namespace spinloom::nic {

enum class AckRequest : uint8_t { none, ack, ct_ack, oc_ack };

// A reply carries what a get or a fetching atomic asked for. An atomic is always one packet.
enum class Operation : uint8_t { put, ack, get, atomic, fetch_atomic, reply };

[[nodiscard]] constexpr const char* name_of(Operation operation) {
  constexpr const char* names[] = {"put", "ack", "get", "atomic", "fetch_atomic", "reply"};
  return names[static_cast<size_t>(operation)];
}

[[nodiscard]] constexpr RequestType request_type_of(Operation operation) {
  switch (operation) {
    case Operation::get: return RequestType::get;
    case Operation::atomic:
    case Operation::fetch_atomic: return RequestType::atomic;
    default: return RequestType::put;
  }
}

// The fields of a get or an atomic in its header packet.
struct Request {
  uint64_t requested_bytes = 0;  // get; of an atomic the operand's third word
  uint64_t reply_to = 0;  // get, fetch_atomic: the request's name, which every packet of the reply carries
  AtomicOperation atomic = AtomicOperation::min;
  Datatype datatype = Datatype::int8;
  std::array<uint64_t, 2> operand{};
};

// Fields that only header packets, acknowledgements and replies carry.
struct MessageFields {
  uint32_t portal_index = 0;
  uint32_t user = 0;  // user ID of the initiator
  uint64_t match_bits = 0;
  uint64_t remote_offset = 0;
  uint64_t hdr_data = 0;
  AckRequest ack_request = AckRequest::none;
  uint64_t manipulated_bytes = 0;  // ack, reply: mlength
  uint8_t fail = 0;  // ack, reply: nic::Fail of the target
  ListKind list = ListKind::priority;  // ack, reply: the list of the entry that took the operation
  Request request;
};

// The replies of one rank that a NIC waits for.
struct AwaitedReplies {
  uint64_t count = 0;
  uint64_t bytes_in = 0;  // bytes of them that have come
};

// The result that an acknowledgement or a reply reports.
struct Outcome {
  uint64_t manipulated_bytes = 0;
  uint64_t remote_offset = 0;
  uint8_t fail = 0;
  AckRequest ack_request = AckRequest::none;
  ListKind list = ListKind::priority;
};
[[nodiscard]] inline Outcome outcome_of(const MessageFields& fields) {
  return {fields.manipulated_bytes, fields.remote_offset, fields.fail, fields.ack_request, fields.list};
}

struct Packet {
  Operation operation = Operation::put;
  Rank source;
  Rank target;
  uint64_t message = 0;  // unique per source; an ack carries the message it acknowledges
  uint64_t answers = 0;  // reply: Request::reply_to
  uint64_t message_length = 0;  // payload bytes of the whole message
  uint64_t offset = 0;  // offset of this payload in the message
  PayloadRef payload;
  uint64_t missing = 0;  // bytes behind this payload that will never come, because the sender gave up
  MessageFields fields;

  // True for a packet that answers a request. Answers are never matched and need no room, and others may wait for them.
  [[nodiscard]] bool is_answer() const { return operation == Operation::ack || operation == Operation::reply; }
  [[nodiscard]] bool is_header() const { return offset == 0; }
  [[nodiscard]] bool is_last() const { return offset + payload.length == message_length; }
};

inline constexpr uint64_t cut_bytes = 64;

// Returns how many of `length` bytes at `offset` of a message make one packet, if that carries at most `most`: all, or
// as many as end at a multiple of `multiple`. A packet that cannot reach one is full.
[[nodiscard]] constexpr uint64_t cut(uint64_t offset, uint64_t length, uint64_t most, uint64_t multiple = cut_bytes) {
  if (length <= most) return length;
  const uint64_t end = (offset + most) / multiple * multiple;
  return end > offset ? end - offset : most;
}

}  // namespace spinloom::nic
