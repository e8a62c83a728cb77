// SlotTables - shared memory by which ranks exchange messages in a call that all ranks of a communicator make.
//
// Contract: each rank has, in its heap, a slot table of `depth` entries for each founder of the board. Both ends of a
//   pair number its messages alike, by next_sent() and next_received(). free_entry_for() gives the sender the entry of
//   a message, or null while an earlier message lies in it; the sender fills it and calls post(). find_arrived() gives
//   the entry to the receiver, or null while the message has not come. The receiver gives the entry back by take();
//   then is_taken() is true for the sender.
// Invariants: (1) an entry is valid for one message: its key holds the number of the communicator, which no other
//   communicator of the same ballot has, and the number of the message. So entries that an earlier communicator has
//   left are never taken for messages; (2) only one end writes each cache line; (3) the memory is kept until another
//   communicator gets the same ballot: then all ranks have left this one.
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
    offer,  // the place of the message; its sender waits until it is taken
    record,  // a record of the message, as the MPI would carry it (record.hpp)
    by_mpi,  // the MPI carries it
  };
  struct alignas(64) Entry {
    static constexpr int64_t data_bytes = 8'168;
    std::atomic<uint64_t> key;  // written last
    Kind kind;
    int64_t bytes;  // the bytes that `data` holds
    uint8_t data[data_bytes];
  };

  // All ranks of the communicator call open(), or none does. No other communicator of this ballot may have `number`. If
  // it is too large, nothing is opened.
  void open(const Board& board, uint32_t ballot, uint32_t number);
  [[nodiscard]] bool are_open() const { return board_ != nullptr; }
  // Makes this rank's slot tables, if it has none yet; before any message is sent.
  void make();

  // Peers are numbered in the order of the founders.
  [[nodiscard]] uint64_t next_sent(int peer) { return ++pairs_[static_cast<size_t>(peer)].sent; }
  [[nodiscard]] uint64_t next_received(int peer) { return ++pairs_[static_cast<size_t>(peer)].received; }

  // are_made(): false before make(), or if there was no memory; without memory the MPI carries all messages of this
  // rank. comes_by_mpi(): true if `peer` had no memory.
  [[nodiscard]] bool are_made() const { return own_tables_ != nullptr; }
  [[nodiscard]] bool comes_by_mpi(int peer);

  [[nodiscard]] Entry* free_entry_for(int peer, uint64_t message) const;
  void post(Entry& entry, uint64_t message) const { entry.key.store(key(message), std::memory_order_release); }
  [[nodiscard]] const Entry* find_arrived(int peer, uint64_t message);
  void take(int peer, uint64_t message) const;
  [[nodiscard]] bool is_taken(int peer, uint64_t message) const;

  [[nodiscard]] bool is_alive(int peer) const { return board_->is_alive(world_rank(peer)); }

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
  [[nodiscard]] uint64_t key(uint64_t message) const { return communicator_key_ + message; }
  [[nodiscard]] uint32_t world_rank(int peer) const {
    return static_cast<uint32_t>(board_->founders()[static_cast<size_t>(peer)]);
  }
  [[nodiscard]] SlotTable* find_table(int peer);

  const Board* board_ = nullptr;
  uint32_t ballot_ = 0;
  uint64_t communicator_key_ = 0;
  bool is_tried_ = false;
  SlotTable* own_tables_ = nullptr;  // an array, with a table for each founder
  size_t own_founder_number_ = 0;  // this rank's number among the founders
  std::vector<Pair> pairs_;
};

}  // namespace spinloom::mpi
