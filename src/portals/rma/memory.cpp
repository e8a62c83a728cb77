// Registered memory, its keys and their entries on the NIC.
#include "portals/rma/memory.hpp"

#include <cstring>
#include <utility>

#include "portals/rma/bits.hpp"
#include "portals/rma/context.hpp"

namespace spinloom::rma {

Memory::Memory(std::vector<spin::IovecElement> pieces, Notices notices)
    : pieces_(std::move(pieces)), ends_(spin::ends_of(pieces_)), notices_(notices) {}

void Memory::copy_out(uint64_t offset, uint64_t bytes, uint8_t* to) const {
  if (bytes == 0) return;
  for (const spin::IovecElement& piece : spin::pieces_of(view(), offset, bytes)) {
    std::memcpy(to, piece.base, piece.length);
    to += piece.length;
  }
}

void Memory::copy_in(uint64_t offset, uint64_t bytes, const uint8_t* from) const {
  if (bytes == 0) return;
  for (const spin::IovecElement& piece : spin::pieces_of(view(), offset, bytes)) {
    std::memcpy(piece.base, from, piece.length);
    from += piece.length;
  }
}

Result<Memory*> Context::add_memory(std::vector<spin::IovecElement> pieces, Notices notices, bool counts_all) {
  std::erase_if(pieces, [](const spin::IovecElement& piece) { return piece.length == 0; });
  Memory& memory = memories_.emplace_back(std::move(pieces), notices);
  memory.number = next_memory_++;
  memory.counts_all = counts_all;
  memory_by_number_[memory.number] = &memory;
  if (notices == Notices::none && !counts_all) return &memory;
  const Result<nic::CounterId> counter = take_counter();
  if (!counter) {
    memory_by_number_.erase(memory.number);
    memories_.pop_back();
    return counter.error();
  }
  memory.counter = *counter;
  memory.counter_base = interface_.ct_get(*counter).success;
  return &memory;
}

nic::Entry Context::entry_of(const Memory& memory) const {
  nic::Entry entry;
  entry.length = memory.bytes();
  if (memory.is_contiguous()) {
    entry.start = memory.start();
  } else {
    entry.iovec = memory.pieces();
  }
  entry.options.no_truncate = true;
  entry.options.event_comm_disable = true;
  entry.user_ptr = memory.number;
  return entry;
}

// An entry of the NIC grants puts, gets, or both. A rank that may change elements needs both, since old elements come
// back.
Result<Key> Context::share(Memory& memory, uint32_t rights) {
  if (rights == 0 || rights > rights_all) return fail(Code::invalid, "rights are ", rights, ", from 1 to ", rights_all);
  Memory::SharedKey created;
  do {
    created.key.bits = bits::key_of(options_.random());
  } while (memory_by_bits_.contains(created.key.bits));
  created.key.rank = rank();
  created.key.portal = options_.portal.value;
  created.key.rights = rights;
  created.key.notices = memory.notices();
  created.key.bytes = memory.bytes();
  nic::Entry entry = entry_of(memory);
  entry.match_bits = created.key.bits;
  entry.options.op_put = (rights & (right_write | right_atomic)) != 0;
  entry.options.op_get = (rights & (right_read | right_atomic)) != 0;
  if (memory.counts_all) {
    entry.counter = memory.counter;
    entry.options.ct_comm = true;
  }
  SPL_ASSIGN(created.entry, link(portal_, entry));
  if (memory.notices() != Notices::none) {
    created.key.notice_bits = bits::key_of(options_.random());
    nic::Entry notice_entry = entry_of(memory);
    notice_entry.match_bits = created.key.notice_bits;
    notice_entry.counter = memory.counter;
    notice_entry.options.ct_comm = true;
    notice_entry.options.event_comm_disable = memory.notices() == Notices::counted;
    if ((rights & right_write) == 0) {  // notices of gets have no bytes, and others cannot write any
      notice_entry.length = 0;
      notice_entry.iovec = {};
      notice_entry.options.no_truncate = false;
    }
    const auto notice_id = link(memory.notices() == Notices::queued ? notice_portal_ : portal_, notice_entry);
    if (!notice_id) {
      std::ignore = unlink(created.entry);
      return notice_id.error();
    }
    created.notice_entry = *notice_id;
  }
  memory_by_bits_[created.key.bits] = &memory;
  memory.shared_keys[created.key.bits] = created;
  return created.key;
}

Status Context::unlink(Memory::SharedKey& shared) {
  memory_by_bits_.erase(shared.key.bits);
  Status all = unlink(shared.entry);
  if (shared.notice_entry.exists()) {
    const Status notice_unlinked = unlink(shared.notice_entry);
    if (all) all = notice_unlinked;
  }
  return all;
}

Status Context::revoke(Memory& memory, uint64_t bits) {
  const auto found = memory.shared_keys.find(bits);
  if (found == memory.shared_keys.end()) {
    return fail(Code::invalid, "the key is not one of this memory, or has been revoked already");
  }
  Memory::SharedKey shared = found->second;
  memory.shared_keys.erase(found);
  return unlink(shared);
}

Status Context::remove(Memory& memory) {
  Status all;
  for (auto& [bits, shared] : memory.shared_keys) {
    const Status unlinked = unlink(shared);
    if (all) all = unlinked;
  }
  take_notice_events();
  notices_waiting_ -= memory.waiting_notices.size();
  if (memory.counter.exists()) idle_counters_.push_back(memory.counter);
  memory_by_number_.erase(memory.number);
  memories_.remove_if([&memory](const Memory& one) { return &one == &memory; });
  return all;
}

uint64_t Context::notified(const Memory& memory) const {
  const uint64_t by_nic = memory.counter.exists() ? interface_.ct_get(memory.counter).success - memory.counter_base : 0;
  return by_nic + memory.counted_by_cpu;
}

void Context::take_notice_events() {
  while (notices_waiting_ < options_.notices) {
    const std::optional<nic::Event> event = interface_.eq_get(notice_queue_);
    if (!event) break;
    if (event->kind == nic::EventKind::pt_disabled) notices_closed_ = true;
    if (event->kind != nic::EventKind::put || event->fail != nic::Fail::ok) continue;
    const auto found = memory_by_number_.find(static_cast<uint32_t>(event->user_ptr));
    if (found == memory_by_number_.end()) continue;
    found->second->waiting_notices.push_back(
        {event->hdr_data, event->remote_offset, event->manipulated_bytes, event->initiator.value});
    ++notices_waiting_;
  }
  if (!notices_closed_ || notices_waiting_ >= options_.notices) return;
  spend_call_time();
  if (interface_.pt_enable(notice_portal_)) notices_closed_ = false;
}

std::optional<Notice> Context::next_notice(Memory& memory) {
  if (memory.waiting_notices.empty()) return {};
  const Notice notice = memory.waiting_notices.front();
  memory.waiting_notices.pop_front();
  --notices_waiting_;
  return notice;
}

}  // namespace spinloom::rma
