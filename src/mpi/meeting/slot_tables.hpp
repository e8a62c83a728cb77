// SlotTables - shared memory by which the ranks of one communicator hand messages to each other in a call that all of
// them have begun, without a message of the MPI.
//
// Contract: each rank has, in its heap, a slot table of `depth` entries for each founder of the board. Both ends of a
//   pair number its messages alike, by next_sent() and next_received(). room_for() gives the sender the entry of a
//   message, or null while an earlier message lies in it; the sender fills it and calls post(). arrived() gives it to
//   the receiver, or null while it has not come; take() gives it back, and is_taken() tells the sender so.
// Invariants: (1) an entry is valid for one message: its key holds the number of the communicator, which no other one
//   of the same ballot has, and the message's, so that what an earlier communicator has left is never taken for a
//   message; (2) only one end writes each cache line; (3) the memory is kept until another communicator gets the same
//   ballot: then all ranks have left this one.
// Threads: one at a time for each communicator. Time: none.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "mpi/meeting/board.hpp"

namespace spinloom::mpi {

class SlotTables {
 public:
  static constexpr uint64_t depth = 4;
  enum class Kind : uint32_t {
    bytes,  // the message, packed
    offer,  // where the message is; its sender waits until it is taken
    record,  // the same, as the MPI would carry it (record.hpp)
    by_mpi,  // the MPI carries it
  };
  struct alignas(64) Entry {
    static constexpr int64_t data_bytes = 8'168;
    std::atomic<uint64_t> key;  // written last
    Kind kind;
    int64_t bytes;  // in `data`
    uint8_t data[data_bytes];
  };

  // All ranks of the communicator call open(), or none does. `number`: no other communicator of this ballot has it; if
  // it is too large, nothing is opened.
  void open(const Board& board, uint32_t ballot, uint32_t number);
  [[nodiscard]] bool are_open() const { return board_ != nullptr; }
  // Makes this rank's slot tables, if it has none yet; before any message is sent.
  void make();

  // Peers are numbered in the order of the founders.
  [[nodiscard]] uint64_t next_sent(int peer) { return ++pairs_[static_cast<size_t>(peer)].sent; }
  [[nodiscard]] uint64_t next_received(int peer) { return ++pairs_[static_cast<size_t>(peer)].received; }

  // are_made(): false if there was no memory, and the MPI carries all that this rank sends. come_by_mpi(): true if
  // this is so for `peer`.
  [[nodiscard]] bool are_made() const { return own_ != nullptr; }
  [[nodiscard]] bool come_by_mpi(int peer);

  [[nodiscard]] Entry* room_for(int peer, uint64_t message) const;
  void post(Entry& entry, uint64_t message) const { entry.key.store(key(message), std::memory_order_release); }
  [[nodiscard]] const Entry* arrived(int peer, uint64_t message);
  void take(int peer, uint64_t message) const;
  [[nodiscard]] bool is_taken(int peer, uint64_t message) const;

  [[nodiscard]] bool lives(int peer) const { return board_->lives(world_rank(peer)); }

 private:
  struct SlotTable {
    Entry entries[depth];
    struct alignas(64) Taken {
      std::atomic<uint64_t> key;
    } taken[depth];
  };
  struct Pair {
    uint64_t sent = 0;
    uint64_t received = 0;
    SlotTable* theirs = nullptr;
  };
  [[nodiscard]] uint64_t key(uint64_t message) const { return communicator_ + message; }
  [[nodiscard]] uint32_t world_rank(int peer) const {
    return static_cast<uint32_t>(board_->founders()[static_cast<size_t>(peer)]);
  }
  [[nodiscard]] SlotTable* find(int peer);

  const Board* board_ = nullptr;
  uint32_t ballot_ = 0;
  uint64_t communicator_ = 0;
  bool tried_ = false;
  SlotTable* own_ = nullptr;  // one for each founder
  size_t own_number_ = 0;
  std::vector<Pair> pairs_;
};

}  // namespace spinloom::mpi
