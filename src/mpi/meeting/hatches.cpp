#include "mpi/meeting/hatches.hpp"

#include <algorithm>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {

void Hatches::open(const Board& board, uint32_t ballot, uint32_t number) {
  constexpr unsigned message_bits = 40;
  if (number >> (64 - message_bits) != 0) return;
  const std::vector<int>& founders = board.founders();
  board_ = &board;
  ballot_ = ballot;
  communicator_ = uint64_t{number} << message_bits;
  own_number_ =
      static_cast<size_t>(std::ranges::lower_bound(founders, static_cast<int>(board.rank())) - founders.begin());
  pairs_.resize(founders.size());
}

// What the communicator before has left is used again: all have as many hatches.
void Hatches::make() {
  if (tried_) return;
  tried_ = true;
  Board::HatchPlace& place = board_->hatch_place(board_->rank(), ballot_);
  void* block = reinterpret_cast<void*>(place.address.load(std::memory_order_relaxed));  // NOLINT: an address
  if (block == nullptr) {
    block = process_heap().allocate(pairs_.size() * sizeof(Hatch), SharedHeap::granule_bytes, true);
  }
  own_ = static_cast<Hatch*>(block);
  place.address.store(reinterpret_cast<uint64_t>(block), std::memory_order_relaxed);
  place.number.store(communicator_, std::memory_order_release);
}

Hatches::Hatch* Hatches::find(int peer) {
  Pair& pair = pairs_[static_cast<size_t>(peer)];
  if (pair.theirs != nullptr) return pair.theirs;
  const uint32_t rank = world_rank(peer);
  const Board::HatchPlace& place = board_->hatch_place(rank, ballot_);
  if (place.number.load(std::memory_order_acquire) != communicator_) return nullptr;
  const uint64_t address = place.address.load(std::memory_order_relaxed);
  if (address == 0) return nullptr;
  const uint64_t ours = address + own_number_ * sizeof(Hatch);
  pair.theirs = reinterpret_cast<Hatch*>(board_->writable_at(rank, ours, sizeof(Hatch)));
  return pair.theirs;
}

bool Hatches::come_by_mpi(int peer) {
  if (pairs_[static_cast<size_t>(peer)].theirs != nullptr) return false;
  const Board::HatchPlace& place = board_->hatch_place(world_rank(peer), ballot_);
  return place.number.load(std::memory_order_acquire) == communicator_ &&
         place.address.load(std::memory_order_relaxed) == 0;
}

Hatches::Entry* Hatches::room_for(int peer, uint64_t message) const {
  if (message > depth && !is_taken(peer, message - depth)) return nullptr;
  return &own_[peer].entries[message % depth];
}

const Hatches::Entry* Hatches::arrived(int peer, uint64_t message) {
  const Hatch* const hatch = find(peer);
  if (hatch == nullptr) return nullptr;
  const Entry& entry = hatch->entries[message % depth];
  return entry.key.load(std::memory_order_acquire) == key(message) ? &entry : nullptr;
}

void Hatches::take(int peer, uint64_t message) const {
  pairs_[static_cast<size_t>(peer)].theirs->taken[message % depth].key.store(key(message), std::memory_order_release);
}

bool Hatches::is_taken(int peer, uint64_t message) const {
  return own_[peer].taken[message % depth].key.load(std::memory_order_acquire) == key(message);
}

}  // namespace spinloom::mpi
