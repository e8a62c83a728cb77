#include "predict/goal/nics/commands.hpp"

#include <algorithm>

namespace spinloom::goal {

using schedule::Kind;

nic::Put message_put(const OperationRef& ref, bool is_request) {
  const schedule::Shape& shape = ref.shape();
  nic::Put put;
  put.target = nic::Rank{ref.schedule.peer(ref.rank, ref.operation())};
  put.portal = messages_portal;
  put.match_bits = uint64_t{ref.number} << number_shift | shape.tag;
  put.hdr_data = shape.size;
  put.event_send_disable = true;
  if (is_request) return put;
  put.local = ref.payloads.send_data(ref.rank, ref.number);
  put.length = shape.size;
  return put;
}

nic::Get bytes_get(nic::Rank source, uint32_t send, uint64_t bytes, const nic::ReplyTo& reply) {
  nic::Get get;
  get.reply = reply;
  get.length = bytes;
  get.target = source;
  get.portal = bytes_portal;
  get.match_bits = send;
  return get;
}

std::vector<nic::CommandBody> one_sided_commands(const OperationRef& ref, const nic::ReplyTo& report,
                                                 uint64_t atomic_bytes_max) {
  const schedule::Shape& shape = ref.shape();
  const Payloads& payloads = ref.payloads;
  nic::Atomic atomic;
  nic::Put& put = atomic.put;
  put.local = payloads.send_data(ref.rank, ref.number);
  put.length = shape.size;
  put.target = nic::Rank{ref.schedule.peer(ref.rank, ref.operation())};
  put.portal = windows_portal;
  put.match_bits = uint64_t{ref.number} << number_shift | shape.tag;
  put.remote_offset = payloads.windows().offset(ref.rank, ref.number);
  put.queue = report.queue;
  put.user_ptr = report.user_ptr;
  if (shape.kind == Kind::put) return {put};
  if (shape.kind == Kind::get) {
    return {nic::Get{report, shape.size, put.target, put.portal, put.match_bits | get_bit,
                     payloads.data_offset(ref.rank, ref.number)}};
  }
  atomic.operation = shape.kind == Kind::atomic ? nic::AtomicOperation::bit_xor : nic::AtomicOperation::swap;
  atomic.datatype = nic::Datatype::uint8;
  std::vector<nic::CommandBody> parts;
  uint64_t begin = 0;
  do {
    nic::Atomic part = atomic;
    part.put.length = std::min(atomic_bytes_max, shape.size - begin);
    const bool is_last = begin + part.put.length == shape.size;
    if (payloads.has_memory()) {
      part.put.local += begin;
      part.put.remote_offset += begin;
    }
    if (!is_last) part.put.match_bits |= partial_atomic_bit;
    part.put.event_send_disable = !is_last || shape.kind == Kind::fetch;
    if (shape.kind == Kind::fetch) {
      part.fetch = report;
      part.fetch->event_success_disable = !is_last;
      if (payloads.has_memory()) part.fetch->local += begin;
    }
    parts.emplace_back(part);
    begin += part.put.length;
  } while (begin < shape.size);
  return parts;
}

}  // namespace spinloom::goal
