// Memory under keys: exposed on all rails, written and read in stripes.
#include <utility>

#include "portals/rails/rails.hpp"
#include "portals/rails/user_pointers.hpp"

namespace spinloom::rails {

Result<Key> Rails::expose(uint8_t* data, uint64_t bytes, Rights rights) {
  const uint64_t number = next_key_++;
  nic::Entry entry;
  entry.start = data;
  entry.length = bytes;
  entry.match_bits = bits::match_bits_of(bits::KeyKind::user, number);
  entry.options.op_put = rights.write;
  entry.options.op_get = rights.read;
  entry.options.event_comm_disable = true;
  ExposedMemory memory;
  for (const auto& rail : rails_) {
    rail->spend_call_time();
    SPL_ASSIGN(const nic::EntryId entry_id, rail->interface().me_append(rail->portals().keys, entry));
    memory.entries.push_back(entry_id);
  }
  exposed_by_key_.emplace(number, std::move(memory));
  return Key{number};
}

Status Rails::withdraw(Key key) {
  const auto found = exposed_by_key_.find(key.number);
  if (found == exposed_by_key_.end()) return fail(Code::invalid, "key ", key.number, " does not exist");
  for (size_t rail = 0; rail < rails_.size(); ++rail) {
    SPL_ASSIGN(const portals::Unlinked unlinked, unlink(rail, found->second.entries[rail]));
    if (unlinked == portals::Unlinked::in_use) {
      return fail(Code::stalled, "key ", key.number, " is in use; try again");
    }
  }
  exposed_by_key_.erase(found);
  return {};
}

// Unlinks an entry, unless an earlier try has done so. After that the id is none.
Result<portals::Unlinked> Rails::unlink(size_t rail, nic::EntryId& entry) {
  if (!entry.exists()) return portals::Unlinked::done;
  rails_[rail]->spend_call_time();
  SPL_ASSIGN(const portals::Unlinked unlinked, rails_[rail]->interface().me_unlink(entry));
  if (unlinked == portals::Unlinked::done) entry = {};
  return unlinked;
}

Result<RequestId> Rails::put(const uint8_t* data, uint64_t bytes, uint32_t rank, Key key, uint64_t offset) {
  SPL_TRY(check_rank("put", rank));
  Transfer transfer;
  transfer.from = data;
  transfer.is_put = true;
  return start_transfer(transfer, bytes, rank, key, offset);
}

Result<RequestId> Rails::get(uint8_t* data, uint64_t bytes, uint32_t rank, Key key, uint64_t offset) {
  SPL_TRY(check_rank("get", rank));
  Transfer transfer;
  transfer.into = data;
  return start_transfer(transfer, bytes, rank, key, offset);
}

Result<RequestId> Rails::start_transfer(Transfer transfer, uint64_t bytes, uint32_t rank, Key key, uint64_t offset) {
  Request request;
  request.kind = RequestKind::transfer;
  request.peer = rank;
  request.bytes = bytes;
  request.completion = {rank, key.number, bytes, false};
  const RequestId id = add(std::move(request));
  transfer.bytes = bytes;
  transfer.rank = rank;
  transfer.match_bits = bits::match_bits_of(bits::KeyKind::user, key.number);
  transfer.offset = offset;
  SPL_TRY(stripes_->start(id.value, transfer));
  return id;
}

}  // namespace spinloom::rails
