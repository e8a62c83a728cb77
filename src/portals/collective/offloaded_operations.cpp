// The commands and entries that the operations of a schedule are on the NIC.
#include <cstring>

#include "portals/collective/message_bits.hpp"
#include "portals/collective/offloaded.hpp"

namespace spinloom::collective {

Status Offloaded::append(uint32_t number) {
  const Vertex& operation = graph_.operations[number];
  const bool is_receive = operation.kind == VertexKind::receive;
  const Pieces& memory = is_receive ? operation.to : operation.from;
  nic::Entry entry;
  if (memory.size() == 1) {
    entry.start = memory[0].base;
    entry.length = memory[0].length;
  } else if (!memory.empty()) {
    entry.length = bytes_of(memory);
    entry.iovec = memory;
  }
  entry.match_rank = {ranks_[operation.peer]};
  entry.match_bits = bits_of(operation);
  entry.counter = counter_of(plan_.counts_on[number]);
  entry.user_ptr = number_ << 32 | number;
  nic::EntryOptions& options = entry.options;
  options.op_put = is_receive;
  options.op_get = !is_receive;
  options.use_once = true;
  options.ct_comm = true;
  options.ct_peer_lost = true;
  options.event_comm_disable = true;
  options.event_unlink_disable = true;
  // An empty message need not be copied: the NIC counts it even if it came before this entry.
  options.ct_overflow = memory.empty();
  options.event_over_disable = memory.empty();
  endpoint_.spend_call_time();
  SPL_ASSIGN(receives_[number], interface_.me_post(endpoint_.portal_, entry));
  return operation.early && is_receive ? endpoint_.count_taken({team_, ranks_[operation.peer]}) : Status{};
}

Status Offloaded::take_early(uint32_t number, const nic::Event& event) {
  const Vertex& operation = graph_.operations.at(number);
  if (event.fail != nic::Fail::ok) {
    return fail(Code::fault, "a message that came early is lost: ", nic::name_of(event.fail));
  }
  const auto* from = reinterpret_cast<const uint8_t*>(event.start);
  uint64_t left = event.manipulated_bytes;
  for (const nic::IovecElement& piece : operation.to) {
    const uint64_t bytes = std::min(left, piece.length);
    std::memcpy(piece.base, from, bytes);
    from += bytes;
    left -= bytes;
  }
  endpoint_.spend_call_time();
  return interface_.ct_inc(counter_of(plan_.counts_on[number]), {1, 0});
}

Status Offloaded::issue(uint32_t number, const std::optional<nic::Trigger>& trigger) {
  const Vertex& operation = graph_.operations[number];
  if (is_local(operation.kind)) return issue_steps(number, trigger);
  const nic::CounterId counter = counter_of(plan_.counts_on[number]);
  endpoint_.spend_call_time();
  if (operation.kind == VertexKind::get || operation.kind == VertexKind::fetch) {
    nic::Get get;
    get.length = bytes_of(operation.to);
    get.target = {ranks_[operation.peer]};
    get.portal = operation.kind == VertexKind::get ? operation.target.portal : endpoint_.portal_;
    get.match_bits = operation.kind == VertexKind::get ? operation.target.match_bits : bits_of(operation);
    get.remote_offset = operation.target.offset;
    get.reply.local = operation.to.size() == 1 ? operation.to[0].base : nullptr;
    get.reply.descriptor = descriptors_[number] ? descriptors_[number] : contiguous_descriptor_;
    get.reply.counter = counter;
    get.reply.ct_reply = true;
    return interface_.get(get, trigger);
  }
  nic::Put put;
  put.local = operation.from.size() == 1 ? operation.from[0].base : nullptr;
  put.descriptor = descriptors_[number] ? descriptors_[number] : contiguous_descriptor_;
  put.length = bytes_of(operation.from);
  put.target = {ranks_[operation.peer]};
  put.counter = counter;
  if (operation.kind == VertexKind::send) {
    put.portal = endpoint_.portal_;
    put.match_bits = bits_of(operation);
    put.ct_send = true;
    return interface_.put(put, trigger);
  }
  put.portal = operation.target.portal;
  put.match_bits = operation.target.match_bits;
  put.remote_offset = operation.target.offset;
  put.ack_request = nic::AckRequest::ct_ack;
  if (operation.kind == VertexKind::put) return interface_.put(put, trigger);
  nic::Atomic atomic;
  atomic.put = put;
  atomic.operation = operation.op;
  atomic.datatype = operation.type;
  return interface_.atomic(atomic, trigger);
}

Status Offloaded::issue_steps(uint32_t number, const std::optional<nic::Trigger>& trigger) {
  const Vertex& operation = graph_.operations[number];
  for (const Step& step : steps_[number]) {
    nic::Put put;
    put.local = step.from;
    put.descriptor = contiguous_descriptor_;
    put.length = step.bytes;
    put.target = interface_.rank();
    put.portal = endpoint_.portal_;
    put.match_bits = bits::self;
    put.remote_offset = reinterpret_cast<uint64_t>(step.to);
    put.ack_request = nic::AckRequest::ct_ack;
    put.counter = counter_of(plan_.counts_on[number]);
    endpoint_.spend_call_time();
    if (operation.kind == VertexKind::copy || step.bytes == 0) {
      SPL_TRY(interface_.put(put, trigger));
      continue;
    }
    nic::Atomic atomic;
    atomic.put = put;
    atomic.operation = operation.op;
    atomic.datatype = operation.type;
    SPL_TRY(interface_.atomic(atomic, trigger));
  }
  return {};
}

}  // namespace spinloom::collective
