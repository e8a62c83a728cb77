// The emulation: messages to a target's processor, what it does for them, and its answers.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "portals/rma/bits.hpp"
#include "portals/rma/context.hpp"

namespace spinloom::rma {
namespace {

using Kind = Operation::Kind;

bool brings_data(Kind kind) { return kind != Kind::get; }
bool takes_data(Kind kind) { return kind == Kind::get || kind == Kind::fetch || kind == Kind::compare_swap; }

bool is_in(const Memory& memory, const Piece& piece) {
  return piece.offset <= memory.bytes() && piece.bytes <= memory.bytes() - piece.offset;
}

portals::HostWork copy_work(uint64_t bytes) {
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::copy;
  work.bytes = bytes;
  return work;
}

}  // namespace

Status Context::emulate(const Operation& operation) {
  if (operation.kind >= Kind::accumulate && operation.bytes % spin::bytes_of(operation.type) != 0) {
    return fail(Code::invalid, operation.bytes, " B are no whole elements");
  }
  if (operation.bytes == 0 && !operation.notice) return {};
  uint64_t at = 0;
  do {
    const uint64_t bytes = std::min(uint64_t{options_.message_bytes}, operation.bytes - at);
    SPL_TRY(send(operation, {.at = at, .bytes = bytes, .is_last = at + bytes == operation.bytes, .pieces = {}}));
    at += bytes;
  } while (at < operation.bytes);
  return {};
}

// Each message takes as many pieces, with their bytes, as there is room for; a long piece goes in several messages.
Status Context::emulate_pieces(const Operation& operation, std::span<const Piece> pieces) {
  std::vector<Piece> chunk_pieces;
  Chunk chunk;
  uint64_t room = options_.message_bytes;
  const auto send_pieces = [&]() -> Status {
    chunk.pieces = chunk_pieces;
    if (!chunk_pieces.empty()) SPL_TRY(send(operation, chunk));
    chunk = {.at = chunk.at + chunk.bytes, .bytes = 0, .is_last = false, .pieces = {}};
    chunk_pieces.clear();
    room = options_.message_bytes;
    return {};
  };
  for (Piece piece : pieces) {
    while (piece.bytes > 0) {
      if (room <= sizeof(Piece)) SPL_TRY(send_pieces());
      const uint64_t bytes = std::min(piece.bytes, room - sizeof(Piece));
      chunk_pieces.push_back({piece.offset, bytes});
      chunk.bytes += bytes;
      room -= sizeof(Piece) + bytes;
      piece.offset += bytes;
      piece.bytes -= bytes;
    }
  }
  return send_pieces();
}

Status Context::prepare_emulation(Target& peer, uint32_t rank) {
  SPL_ASSIGN(peer.emulation_counter, interface_.ct_alloc());
  nic::Entry watch;
  watch.match_rank = {rank};
  watch.match_bits = bits::watch;
  watch.counter = peer.emulation_counter;
  watch.options.ct_peer_lost = true;
  watch.options.event_comm_disable = true;
  SPL_ASSIGN(peer.watch_entry, link(portal_, watch));
  peer.slots.resize(options_.messages);
  return {};
}

Status Context::send(const Operation& operation, const Chunk& chunk) {
  const uint32_t rank = operation.key.rank;
  SPL_ASSIGN(Target* const found, ensure_target(rank));
  Target& peer = *found;
  if (peer.slots.empty()) SPL_TRY(prepare_emulation(peer, rank));
  const auto slot = static_cast<uint32_t>(peer.emulated_begun % options_.messages);
  SPL_TRY(wait_until("room for a message", WaitFor::targets, [&] { return !peer.slots[slot].is_open; }));

  const RequestHeader header{.bits = operation.key.bits,
                             .offset = operation.offset + chunk.at,
                             .bytes = chunk.bytes,
                             .operation_offset = operation.offset,
                             .operation_bytes = operation.kind == Kind::get ? 0 : operation.bytes,
                             .notice = operation.notice.value_or(0),
                             .kind = static_cast<uint32_t>(operation.kind),
                             .op = operation.op,
                             .type = static_cast<uint32_t>(operation.type),
                             .notifies = operation.notice && chunk.is_last ? 1u : 0u,
                             .pieces = chunk.pieces.size(),
                             .operand = operation.operand};
  uint8_t* const message = requests_out_.get() + slot_at(rank, slot);
  std::memcpy(message, &header, sizeof(header));
  uint64_t length = sizeof(header) + chunk.pieces.size_bytes();
  if (!chunk.pieces.empty()) std::memcpy(message + sizeof(header), chunk.pieces.data(), chunk.pieces.size_bytes());
  if (brings_data(operation.kind) && chunk.bytes > 0) {
    uint8_t* to = message + length;
    if (operation.list) {
      const uint64_t begin = operation.list_offset + chunk.at;
      for (const spin::IovecElement& piece : spin::pieces_of(operation.list->list(), begin, chunk.bytes)) {
        std::memcpy(to, piece.base, piece.length);
        to += piece.length;
      }
    } else if (operation.from != nullptr) {
      std::memcpy(to, operation.from + chunk.at, chunk.bytes);
    }
    length += chunk.bytes;
    SPL_TRY(interface_.host_work(copy_work(chunk.bytes)));
  }
  PendingMessage& pending = peer.slots[slot];
  pending = {.is_open = true,
             .number = peer.emulated_begun,
             .kind = operation.kind,
             .to = operation.to != nullptr ? operation.to + chunk.at : nullptr,
             .list = operation.kind == Kind::get ? operation.list : nic::DescriptorRef{},
             .list_offset = operation.list_offset + chunk.at,
             .bytes = chunk.bytes,
             .request = operation.request};
  nic::Put put;
  put.local = message;
  put.length = length;
  put.target = {rank};
  put.portal = portal_;
  put.match_bits = bits::requests;
  put.remote_offset = slot_at(this->rank(), slot);
  put.hdr_data = peer.emulated_begun;
  put.ack_request = nic::AckRequest::ack;
  put.queue = failure_queue_;
  put.counter = peer.emulation_counter;
  put.event_send_disable = true;
  put.event_success_disable = true;
  spend_call_time();
  Status sent = interface_.put(put);
  if (!sent) {
    pending.is_open = false;
    return sent;
  }
  ++peer.emulated_begun;
  if (operation.request != nullptr) ++operation.request->emulated_begun;
  return {};
}

// Ends all unanswered messages to a rank as failed: the rank is gone, or takes no messages.
void Context::fail_pending(uint32_t rank) {
  Target& peer = targets_.at(rank);
  for (PendingMessage& pending : peer.slots) {
    if (!pending.is_open) continue;
    pending.is_open = false;
    ++peer.emulated_ended;
    if (pending.request != nullptr) {
      ++pending.request->emulated_ended;
      ++pending.request->emulated_failed;
    } else {
      ++peer.emulated_failed;
    }
  }
}

void Context::on_request(const nic::Event& event) {
  const uint32_t rank = event.initiator.value;
  if (rank >= options_.ranks || event.manipulated_bytes < sizeof(RequestHeader)) return;
  const uint64_t first = slot_at(rank, 0);
  if (event.remote_offset < first || event.remote_offset >= slot_at(rank + 1, 0)) return;
  const auto slot = static_cast<uint32_t>((event.remote_offset - first) / slot_bytes());
  if (event.remote_offset != slot_at(rank, slot) || event.hdr_data % options_.messages != slot) return;
  EmulationSource& source = sources_[rank];
  if (source.received.empty()) source.received.resize(options_.messages);
  source.received[slot] = event.hdr_data + 1;
  for (;;) {
    const auto next = static_cast<uint32_t>(source.next_number % options_.messages);
    if (source.received[next] != source.next_number + 1) return;
    ++source.next_number;
    execute(rank, next);
  }
}

void Context::execute(uint32_t rank, uint32_t slot) {
  const uint8_t* const message = requests_in_.get() + slot_at(rank, slot);
  RequestHeader header;
  std::memcpy(&header, message, sizeof(header));
  uint8_t* const out = answers_out_.get() + slot_at(rank, slot);
  portals::HostWork reaction;
  reaction.kind = portals::HostWork::Kind::react;
  std::ignore = interface_.host_work(reaction);
  const bool is_done = perform(rank, header, message + sizeof(header), out);
  nic::Put answer;
  answer.local = out;
  answer.length = is_done && takes_data(static_cast<Kind>(header.kind)) ? header.bytes : 0;
  answer.target = {rank};
  answer.portal = portal_;
  answer.match_bits = bits::answers;
  answer.remote_offset = slot_at(this->rank(), slot);
  answer.hdr_data = (sources_.at(rank).next_number - 1) << 1 | (is_done ? 0 : 1);
  answer.event_send_disable = true;
  answer.counter = answers_sent_;
  answer.ct_send = true;
  spend_call_time();
  if (interface_.put(answer)) ++answers_begun_;
}

bool Context::perform(uint32_t rank, const RequestHeader& header, const uint8_t* data, uint8_t* out) {
  const auto found = memory_by_bits_.find(header.bits);
  if (found == memory_by_bits_.end()) return false;
  Memory& memory = *found->second;
  const Memory::SharedKey& shared = memory.shared_keys.at(header.bits);
  if (header.bytes > options_.message_bytes) return false;
  switch (static_cast<Kind>(header.kind)) {
    case Kind::put:
      if ((shared.key.rights & right_write) == 0 || !copy_pieces(memory, header, data, out)) return false;
      break;
    case Kind::get:
      if ((shared.key.rights & right_read) == 0 || !copy_pieces(memory, header, data, out)) return false;
      break;
    default:
      if ((shared.key.rights & right_atomic) == 0 || !is_in(memory, {header.offset, header.bytes})) return false;
      if (header.pieces != 0 || !change_elements(header, data, out)) return false;
  }
  if (header.notifies != 0) {
    if (memory.notices() == Notices::none) return false;
    if (memory.notices() == Notices::queued) {
      if (notices_waiting_ >= options_.notices) return false;
      memory.waiting_notices.push_back({header.notice, header.operation_offset, header.operation_bytes, rank});
      ++notices_waiting_;
    }
    ++memory.counted_by_cpu;
  }
  return true;
}

// Nothing is moved if a piece is out of range.
bool Context::copy_pieces(const Memory& memory, const RequestHeader& header, const uint8_t* data, uint8_t* out) {
  std::vector<Piece> pieces{{header.offset, header.bytes}};
  if (header.pieces > 0) {
    if (header.pieces > options_.message_bytes / sizeof(Piece)) return false;
    pieces.resize(header.pieces);
    std::memcpy(pieces.data(), data, pieces.size() * sizeof(Piece));
    data += pieces.size() * sizeof(Piece);
  }
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) {
    if (!is_in(memory, piece) || piece.bytes > header.bytes - bytes) return false;
    bytes += piece.bytes;
  }
  if (bytes != header.bytes) return false;
  for (const Piece& piece : pieces) {
    if (static_cast<Kind>(header.kind) == Kind::put) {
      memory.copy_in(piece.offset, piece.bytes, data);
      data += piece.bytes;
    } else {
      memory.copy_out(piece.offset, piece.bytes, out);
      out += piece.bytes;
    }
  }
  portals::HostWork work = copy_work(bytes);
  work.blocks.listed = header.pieces;
  std::ignore = interface_.host_work(work);
  return true;
}

// Atomics of this rank's NIC change the elements in its own memory.
bool Context::change_elements(const RequestHeader& header, const uint8_t* data, uint8_t* out) {
  if (header.kind > static_cast<uint32_t>(Kind::compare_swap)) return false;
  Operation operation;
  operation.kind = static_cast<Kind>(header.kind);
  operation.key = memory_by_bits_.at(header.bits)->shared_keys.at(header.bits).key;
  operation.offset = header.offset;
  operation.bytes = header.bytes;
  operation.from = data;
  operation.to = takes_data(operation.kind) ? out : nullptr;
  operation.op = header.op;
  operation.type = static_cast<spin::Datatype>(header.type);
  operation.operand = header.operand;
  const uint64_t failures = interface_.ct_get(own_atomics_).failure;
  const Status issued = issue_elements(operation, {own_atomics_, &own_atomics_begun_}, {rank()});
  nic::CounterValue value = interface_.ct_get(own_atomics_);
  while (value.success + value.failure < own_atomics_begun_) {
    if (!pause("an atomic of this rank's NIC", Time::never())) return false;
    value = interface_.ct_get(own_atomics_);
  }
  return issued && value.failure == failures;
}

void Context::on_answer(const nic::Event& event) {
  const uint32_t rank = event.initiator.value;
  const auto found = targets_.find(rank);
  if (found == targets_.end()) return;
  Target& peer = found->second;
  const uint64_t first = slot_at(rank, 0);
  if (event.remote_offset < first) return;
  const uint64_t slot = (event.remote_offset - first) / slot_bytes();
  if (slot >= peer.slots.size() || event.remote_offset != first + slot * slot_bytes()) return;
  PendingMessage& pending = peer.slots[slot];
  if (!pending.is_open || pending.number != event.hdr_data >> 1) return;
  const bool is_short = takes_data(pending.kind) && event.manipulated_bytes != pending.bytes;
  const bool has_failed = (event.hdr_data & 1) != 0 || is_short;
  if (!has_failed && takes_data(pending.kind) && pending.bytes > 0) {
    const uint8_t* from = answers_in_.get() + event.remote_offset;
    if (pending.list) {
      for (const spin::IovecElement& piece :
           spin::pieces_of(pending.list->list(), pending.list_offset, pending.bytes)) {
        std::memcpy(piece.base, from, piece.length);
        from += piece.length;
      }
    } else if (pending.to != nullptr) {
      std::memcpy(pending.to, from, pending.bytes);
    }
    std::ignore = interface_.host_work(copy_work(pending.bytes));
  }
  pending.is_open = false;
  pending.list.reset();
  ++peer.emulated_ended;
  if (pending.request != nullptr) {
    ++pending.request->emulated_ended;
    if (has_failed) ++pending.request->emulated_failed;
  } else if (has_failed) {
    ++peer.emulated_failed;
  }
  if (has_failed && first_failure_.empty()) {
    first_failure_ =
        "the target's processor has refused it: its key does not grant it or is revoked, or its notice finds no room";
  }
}

}  // namespace spinloom::rma
