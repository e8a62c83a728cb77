#include "mpi/meeting/slot_tables.hpp"

#include <algorithm>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

void SlotTables::open(const Board& board, uint32_t ballot, uint32_t number) {
  constexpr unsigned message_bits = 40;
  if (number >> (64 - message_bits) != 0) return;
  const std::vector<int>& founders = board.founders();
  board_ = &board;
  ballot_ = ballot;
  communicator_key_ = uint64_t{number} << message_bits;
  own_founder_number_ =
      static_cast<size_t>(std::ranges::lower_bound(founders, static_cast<int>(board.rank())) - founders.begin());
  pairs_.resize(founders.size());
}

// Uses the memory that an earlier communicator of the ballot has left: all have as many slot tables.
void SlotTables::make() {
  if (is_tried_) return;
  is_tried_ = true;
  Board::SlotTablePlace& place = board_->slot_table_place(board_->rank(), ballot_);
  void* block = reinterpret_cast<void*>(place.address.load(std::memory_order_relaxed));  // NOLINT: an address
  if (block == nullptr) {
    block = process_heap().allocate(pairs_.size() * sizeof(SlotTable), SharedHeap::granule_bytes, true);
  }
  own_tables_ = static_cast<SlotTable*>(block);
  place.address.store(reinterpret_cast<uint64_t>(block), std::memory_order_relaxed);
  place.number.store(communicator_key_, std::memory_order_release);
}

SlotTables::SlotTable* SlotTables::find_table(int peer) {
  Pair& pair = pairs_[static_cast<size_t>(peer)];
  if (pair.theirs != nullptr) return pair.theirs;
  const uint32_t rank = world_rank(peer);
  const Board::SlotTablePlace& place = board_->slot_table_place(rank, ballot_);
  if (place.number.load(std::memory_order_acquire) != communicator_key_) return nullptr;
  const uint64_t address = place.address.load(std::memory_order_relaxed);
  if (address == 0) return nullptr;
  const uint64_t ours = address + own_founder_number_ * sizeof(SlotTable);
  pair.theirs = reinterpret_cast<SlotTable*>(board_->writable_at(rank, ours, sizeof(SlotTable)));
  return pair.theirs;
}

bool SlotTables::comes_by_mpi(int peer) {
  if (pairs_[static_cast<size_t>(peer)].theirs != nullptr) return false;
  const Board::SlotTablePlace& place = board_->slot_table_place(world_rank(peer), ballot_);
  return place.number.load(std::memory_order_acquire) == communicator_key_ &&
         place.address.load(std::memory_order_relaxed) == 0;
}

SlotTables::Entry* SlotTables::free_entry_for(int peer, uint64_t message) const {
  if (message > depth && !is_taken(peer, message - depth)) return nullptr;
  return &own_tables_[peer].entries[message % depth];
}

const SlotTables::Entry* SlotTables::find_arrived(int peer, uint64_t message) {
  const SlotTable* const theirs = find_table(peer);
  if (theirs == nullptr) return nullptr;
  const Entry& entry = theirs->entries[message % depth];
  return entry.key.load(std::memory_order_acquire) == key(message) ? &entry : nullptr;
}

void SlotTables::take(int peer, uint64_t message) const {
  pairs_[static_cast<size_t>(peer)].theirs->taken[message % depth].key.store(key(message), std::memory_order_release);
}

bool SlotTables::is_taken(int peer, uint64_t message) const {
  return own_tables_[peer].taken[message % depth].key.load(std::memory_order_acquire) == key(message);
}

}  // namespace spinloom::mpi
