// Board - shared memory by which the ranks of one world on one machine know of each other, without a call of MPI.
//
// Contract: join() makes or opens the board `name` and registers this rank. notice() looks for new ranks and maps their
//   heaps: then at() gives their bytes. can_reach(receiver) is true if `receiver` reads our heap, so that it can be
//   sent records; can_read(receiver), if it can read all of our memory by system calls, too. A rank reaches itself.
//   leave() ends that.
//   settle() follows join(): after it each rank knows the board's founders, the same on all ranks and for ever.
//   A Slot of the sender carries one message: `ready` grows while the bytes become readable. `done` is the serial of
//   the last message that the receiver has taken, or that the sender has given up before its record was sent.
// Invariants: (1) a rank is sent records only after it has mapped the sender's heap; (2) all memory that is touched was
//   allocated before, so that a full /dev/shm is an Error of join() and never a signal; (3) the last rank that leaves
//   removes the name, and so does the rank that completes the machine's ranks where their number is known; (4) a rank
//   is a founder if it has joined before any rank settled its standing. A standing is changed by compare-and-swap and
//   then final: ranks that settle at the same time, or while another joins, find the same founders. A rank that joins
//   later is no founder, and finds that out in settle(). A founder of one board is none of any other, so that all ranks
//   of a communicator see alike whether they are founders of one board.
// Threads: the caller's lock. Time: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "memory/gpu/peer.hpp"
#include "memory/peer/heap_view.hpp"
#include "memory/peer/kernel_copy.hpp"
#include "memory/peer/process.hpp"
#include "mpi/meeting/polls.hpp"
#include "mpi/meeting/postings.hpp"
#include "mpi/messages/joint.hpp"
#include "mpi/messages/record.hpp"

namespace spinloom::mpi {

// The stages of a message on its way to the receiver.
enum class Stage : uint32_t {
  packed,  // the bytes are packed, `ready` of them so far
  offered,  // the bytes lie in the sender's memory: the side that changes this stage first decides the message's way
  taken,  // the receiver copies the bytes from the sender's memory
  joint,  // the receiver copies the bytes from there, and the sender may help
  returned,  // the receiver could not read the bytes: the sender packs them after all
  broken,  // the sender could not read the bytes either: the message is lost
};

// The place of an offered message in a device's memory: a handle of the first byte that it touches, which peers may
// map.
struct DeviceOffer {
  gpu::PeerHandle memory{};
  int64_t offset = 0;  // the distance from that byte to the buffer
  bool sender_waits = false;  // the sender does nothing else, and packs the message if the receiver returns it
};

// A rank's sign, by which others find out whether they can map the memory of its device.
struct DeviceSign {
  std::atomic<uint64_t> is_up;
  uint64_t token;  // the expected first bytes of the memory
  gpu::PeerHandle memory;
};

struct alignas(128) Slot {
  std::atomic<uint64_t> serial;  // the serial of the message in this slot
  std::atomic<uint64_t> ready;  // the number of its packed bytes that can be read
  std::atomic<Stage> stage;
  Offer offer;
  DeviceOffer device;  // valid if the offer is `is_on_device`
  alignas(64) JointCopy joint;
  alignas(64) std::atomic<uint64_t> done;  // the serial of the last message that is over
  alignas(64) uint8_t record[128];  // the record as it is sent; MPI may read it until the message is matched
};

class Board {
 public:
  static constexpr uint32_t slots = 128;

  Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // `local_ranks`: how many ranks of the world run on this machine; 0: not known. `min_bytes`: this rank's
  // Settings::min_bytes, which others read by min_bytes().
  [[nodiscard]] Status join(const std::string& name, uint32_t rank, uint32_t size, uint32_t local_ranks,
                            int64_t min_bytes = 0);
  void leave();
  void notice();
  // Waits for the other ranks of this machine (of the world, if their number is not known), for `patience` at most and
  // no longer than until another rank has settled. Then finds the founders.
  void settle(std::chrono::nanoseconds patience = std::chrono::seconds(1));
  // The founders' ranks in MPI_COMM_WORLD, ascending. Empty before settle().
  [[nodiscard]] const std::vector<int>& founders() const { return founders_; }
  [[nodiscard]] bool is_founder(int rank) const { return std::ranges::binary_search(founders_, rank); }
  // True if ranks have come that notice() has not seen.
  [[nodiscard]] bool has_news() const { return header_->joined.load(std::memory_order_acquire) != noticed_; }

  [[nodiscard]] const Secret& secret() const { return header_->secret; }
  [[nodiscard]] uint32_t rank() const { return rank_; }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool can_reach(uint32_t receiver) const {
    return reach_row(receiver)[rank_].load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] bool can_read(uint32_t receiver) const {
    return reach_row(receiver)[rank_].load(std::memory_order_acquire) == reads_memory;
  }
  // True if this rank can read all memory of `other`, which is another rank, by system calls. word_of() is the word
  // that tells that process from another one.
  [[nodiscard]] bool reads_memory_of(uint32_t other) const {
    return reach_row(rank_)[other].load(std::memory_order_relaxed) == reads_memory;
  }
  [[nodiscard]] peer::KnownWord word_of(uint32_t other) const;
  [[nodiscard]] Slot& slot(uint32_t rank, uint32_t number) const;
  // Returns where this process has mapped these bytes of a sender's heap; null if they do not lie in it, or if the heap
  // is not mapped.
  [[nodiscard]] const uint8_t* at(uint32_t sender, uint64_t address, uint64_t bytes) const {
    return sender < views_.size() ? views_[sender].heap.at(address, bytes) : nullptr;
  }
  // Does as at(), for a receiver's heap, which may be written.
  [[nodiscard]] uint8_t* writable_at(uint32_t receiver, uint64_t address, uint64_t bytes) const {
    return receiver < views_.size() ? views_[receiver].heap.writable_at(address, bytes) : nullptr;
  }
  [[nodiscard]] bool is_alive(uint32_t sender) const { return views_[sender].process.is_alive(); }
  [[nodiscard]] const peer::Process& process(uint32_t sender) const { return views_[sender].process; }

  [[nodiscard]] Polls polls() const { return {*polls_table(), counts(rank_)}; }
  // A founder's count of its calls on the communicator of a ballot.
  [[nodiscard]] std::atomic<uint64_t>& count(uint32_t rank, uint32_t ballot) const { return counts(rank)[ballot]; }
  [[nodiscard]] Postings postings(uint32_t rank) const;
  [[nodiscard]] int64_t min_bytes(uint32_t founder) const { return member(founder).min_bytes; }
  // The place of a rank's slot tables for the communicator of a ballot (slot_tables.hpp).
  struct SlotTablePlace {
    std::atomic<uint64_t> number;  // the communicator's number; written last
    std::atomic<uint64_t> address;  // the tables' address in the rank's heap; 0: it has none
  };
  [[nodiscard]] SlotTablePlace& slot_table_place(uint32_t rank, uint32_t ballot) const;
  // device_sign(): a rank's sign. device_signs(): how many signs are up. maps_device(): not 0 if `receiver` has read
  // the sign of `sender` and can map its offers.
  [[nodiscard]] DeviceSign& device_sign(uint32_t rank) const;
  [[nodiscard]] std::atomic<uint32_t>& device_signs() const { return header_->device_signs; }
  [[nodiscard]] std::atomic<uint8_t>& maps_device(uint32_t receiver, uint32_t sender) const {
    return reach_row(size_ + receiver)[sender];
  }
  // True if every founder has mapped the heap of every other.
  [[nodiscard]] bool all_reach() const;
  // True if every founder takes part in the barriers of others (agreement.hpp): else ranks cannot agree.
  [[nodiscard]] bool can_agree() const;
  // A number that no call has returned before.
  [[nodiscard]] uint32_t next_number() const {
    return header_->last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  }

 private:
  struct Header {
    std::atomic<uint64_t> magic;  // written last by the rank that makes the board
    Secret secret;
    std::atomic<uint32_t> joined;
    std::atomic<uint32_t> left;
    std::atomic<uint32_t> settled;  // 1 once a rank has settled
    std::atomic<uint32_t> last_number;
    std::atomic<uint32_t> device_signs;
  };
  enum class Standing : uint32_t { open, here, founder, late };
  struct Member {
    std::atomic<uint32_t> state;  // 0: not registered, 1: registered, 2: has left
    std::atomic<Standing> standing;  // join() changes open to here; settle() changes here to founder and open to late
    int32_t process;
    uint64_t heap_bytes, heap_base, heap_inode;
    int32_t heap_file;
    int32_t heeds_barriers;
    uint64_t word_address;  // address of `word_`: others find out by it if they can read this process
    int64_t min_bytes;
  };
  // The values of reach_row() besides 0: the receiver has mapped the sender's heap; it can read all of the sender's
  // memory, too.
  static constexpr uint8_t reads_heap = 1;
  static constexpr uint8_t reads_memory = 2;
  struct View {
    bool is_tried = false;
    peer::HeapView heap;
    peer::Process process;
  };

  void await_others(std::chrono::nanoseconds patience) const;
  [[nodiscard]] Status map(const std::string& name);
  [[nodiscard]] Status allocate(uint64_t first, uint64_t bytes) const;
  [[nodiscard]] Status await_maker() const;
  [[nodiscard]] bool can_read_word(const Member& other, const peer::Process& process) const;
  [[nodiscard]] uint64_t polls_offset() const;
  [[nodiscard]] uint64_t rank_offset(uint32_t rank) const;
  [[nodiscard]] Polls::Table* polls_table() const;
  [[nodiscard]] Polls::Counts& counts(uint32_t rank) const;
  [[nodiscard]] Member& member(uint32_t rank) const;
  [[nodiscard]] uint64_t rows_bytes() const { return 2 * uint64_t{size_} * size_; }
  // A row of flags about each sender. Rows below `size_` belong to can_reach() and can_read() of a receiver, those from
  // `size_` on to maps_device().
  [[nodiscard]] std::atomic<uint8_t>* reach_row(uint32_t row) const;

  std::string name_;
  int file_ = -1;
  uint8_t* base_ = nullptr;
  Header* header_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  uint32_t local_ranks_ = 0;
  uint32_t noticed_ = 0;
  uint64_t word_ = 0;  // the second word of the job's secret, which other ranks try to read here
  std::vector<View> views_;
  std::vector<int> founders_;
};

}  // namespace spinloom::mpi
