// Board - shared memory by which the ranks of one world on one machine know of each other, without a call of MPI.
//
// Contract: join() makes or opens the board `name` and registers this rank. reaches(sender) says whether this rank has
//   seen `sender` and can read its heap; notice() looks for new ranks and maps their heaps. can_reach(receiver) says
//   the opposite: whether `receiver` reads our heap, so that it can be sent records; can_read(), whether it can read
//   all of our memory by system calls, too. A rank reaches itself. leave() ends that.
//   settle() follows join(): after it each rank knows the board's founders, the same on all ranks and for ever.
//   A Slot of the sender carries one message: `ready` grows while the bytes become readable, `done` is the serial of
//   the last message that the receiver has taken.
// Invariants: (1) a rank is sent records only after it has mapped the sender's heap; (2) all memory that is touched was
//   allocated before, so that a full /dev/shm is an Error of join() and never a signal; (3) the last rank that leaves
//   removes the name, and so does the rank that completes the machine's ranks where their number is known; (4) a rank
//   is a founder if it has joined before anyone settled its standing, which is changed by compare-and-swap and then
//   final: ranks that settle at the same time, or while another joins, find the same founders. A rank that comes later
//   is none, and knows it. A founder of one board is none of any other, so that all ranks of a communicator see alike
//   whether they are founders of one board.
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
  offered,  // they lie in the sender's memory: the side that changes this first decides
  taken,  // the receiver copies them from there
  joint,  // the receiver copies them from there, and the sender may help
  returned,  // the receiver could not read them: the sender packs them after all
  broken,  // the sender could not read them either: there is no message
};

// The place of an offered message in a device's memory: a handle of the first byte that it touches, which peers may
// map.
struct DeviceOffer {
  gpu::PeerHandle memory{};
  int64_t offset = 0;  // of the buffer from there
  bool waits = false;  // its sender does nothing else, and packs what the receiver hands back
};

// A rank's sign, by which others find out whether they can map the memory of its device.
struct DeviceSign {
  std::atomic<uint64_t> is_up;
  uint64_t token;  // the first bytes of the memory
  gpu::PeerHandle memory;
};

struct alignas(128) Slot {
  std::atomic<uint64_t> serial;  // of the message that the sender has put here
  std::atomic<uint64_t> ready;  // packed bytes of it that can be read
  std::atomic<Stage> stage;
  Offer offer;
  DeviceOffer device;  // where the offer is `on_device`
  alignas(64) JointCopy joint;
  alignas(64) std::atomic<uint64_t> done;
  alignas(64) uint8_t record[128];  // as it is sent; MPI may read it until the message is matched
};

class Board {
 public:
  static constexpr uint32_t slots = 128;

  Board() = default;
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // `local`: how many ranks of the world run on this machine; 0: not known. `min_bytes`: this rank's number, for the
  // others to read.
  [[nodiscard]] Status join(const std::string& name, uint32_t rank, uint32_t size, uint32_t local,
                            int64_t min_bytes = 0);
  void leave();
  void notice();
  // Waits for the other ranks of this machine (of the world, where nobody knows how many those are), for `patience` at
  // most and no longer than until another rank has settled.
  void settle(std::chrono::nanoseconds patience = std::chrono::seconds(1));
  // Ranks in MPI_COMM_WORLD, in their order. None before settle().
  [[nodiscard]] const std::vector<int>& founders() const { return founders_; }
  [[nodiscard]] bool is_founder(int rank) const { return std::ranges::binary_search(founders_, rank); }
  // True if ranks have come that notice() has not seen.
  [[nodiscard]] bool has_news() const { return header_->joined.load(std::memory_order_acquire) != noticed_; }

  [[nodiscard]] const Secret& secret() const { return header_->secret; }
  [[nodiscard]] uint32_t rank() const { return rank_; }
  [[nodiscard]] uint32_t size() const { return size_; }
  [[nodiscard]] bool can_reach(uint32_t receiver) const {
    return seen_by(receiver)[rank_].load(std::memory_order_acquire) != 0;
  }
  [[nodiscard]] bool can_read(uint32_t receiver) const {
    return seen_by(receiver)[rank_].load(std::memory_order_acquire) == reads_memory;
  }
  // True if this rank can read all memory of `there` by system calls. word_of() is the word that tells that process
  // from another one.
  [[nodiscard]] bool reads_memory_of(uint32_t there) const {
    return seen_by(rank_)[there].load(std::memory_order_relaxed) == reads_memory;
  }
  [[nodiscard]] peer::Word word_of(uint32_t there) const;
  [[nodiscard]] Slot& slot(uint32_t rank, uint32_t number) const;
  // The bytes of a sender's heap; null if they do not lie in it.
  [[nodiscard]] const uint8_t* at(uint32_t sender, uint64_t address, uint64_t bytes) const {
    return sender < views_.size() ? views_[sender].heap.at(address, bytes) : nullptr;
  }
  // The bytes of a receiver's heap, for writing; null if they do not lie in it.
  [[nodiscard]] uint8_t* writable_at(uint32_t receiver, uint64_t address, uint64_t bytes) const {
    return receiver < views_.size() ? views_[receiver].heap.writable_at(address, bytes) : nullptr;
  }
  [[nodiscard]] bool lives(uint32_t sender) const { return views_[sender].process.holds(); }
  [[nodiscard]] const peer::Process& process(uint32_t sender) const { return views_[sender].process; }

  [[nodiscard]] Polls polls() const { return {*polls_table(), counts(rank_)}; }
  // A founder's count of its calls on the communicator of a ballot.
  [[nodiscard]] std::atomic<uint64_t>& count(uint32_t rank, uint32_t ballot) const { return counts(rank)[ballot]; }
  [[nodiscard]] Postings postings(uint32_t rank) const;
  [[nodiscard]] int64_t min_bytes(uint32_t founder) const { return member(founder).min_bytes; }
  // The place of a rank's slot tables for the communicator of a ballot (slot_tables.hpp).
  struct SlotTablePlace {
    std::atomic<uint64_t> number;  // of the communicator; written last
    std::atomic<uint64_t> address;  // in the rank's heap; 0: it has none
  };
  [[nodiscard]] SlotTablePlace& slot_table_place(uint32_t rank, uint32_t ballot) const;
  // device_sign(): a rank's sign. device_signs(): how many are up. maps_device(): not 0 if `receiver` has read the sign
  // of `sender`.
  [[nodiscard]] DeviceSign& device_sign(uint32_t rank) const;
  [[nodiscard]] std::atomic<uint32_t>& device_signs() const { return header_->device_signs; }
  [[nodiscard]] std::atomic<uint8_t>& maps_device(uint32_t receiver, uint32_t sender) const {
    return seen_by(size_ + receiver)[sender];
  }
  // True if every founder has mapped the heap of every other.
  [[nodiscard]] bool all_reach() const;
  // True if every founder takes part in the barriers of others, without which they cannot agree.
  [[nodiscard]] bool can_agree() const;
  // A number that no call has returned before.
  [[nodiscard]] uint32_t next_number() const { return header_->numbers.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  struct Header {
    std::atomic<uint64_t> magic;  // written last by the rank that makes the board
    Secret secret;
    std::atomic<uint32_t> joined;
    std::atomic<uint32_t> left;
    std::atomic<uint32_t> settled;  // 0: by nobody
    std::atomic<uint32_t> numbers;
    std::atomic<uint32_t> device_signs;
  };
  enum class Standing : uint32_t { open, here, founder, late };
  struct Member {
    std::atomic<uint32_t> state;  // 0: nobody, 1: registered, 2: has left
    std::atomic<Standing> standing;  // from open to here by join(), and by settle() to a founder or late
    int32_t process;
    uint64_t heap_bytes, heap_base, heap_inode;
    int32_t heap_file;
    int32_t heeds_barriers;
    uint64_t word_address;  // of `word_`, by which others find out whether they can read this process
    int64_t min_bytes;
  };
  // The values of seen_by(): the receiver has mapped the sender's heap; or it can read all of its memory, too.
  static constexpr uint8_t reads_heap = 1;
  static constexpr uint8_t reads_memory = 2;
  struct View {
    bool tried = false;
    peer::HeapView heap;
    peer::Process process;
  };

  void await_others(std::chrono::nanoseconds patience) const;
  [[nodiscard]] Status map(const std::string& name);
  [[nodiscard]] Status fill(uint64_t first, uint64_t bytes) const;
  [[nodiscard]] Status await_maker() const;
  [[nodiscard]] bool reads(const Member& there, const peer::Process& process) const;
  [[nodiscard]] uint64_t polls_place() const;
  [[nodiscard]] uint64_t own_place(uint32_t rank) const;
  [[nodiscard]] Polls::Table* polls_table() const;
  [[nodiscard]] Polls::Counts& counts(uint32_t rank) const;
  [[nodiscard]] Member& member(uint32_t rank) const;
  [[nodiscard]] uint64_t rows_bytes() const { return 2 * uint64_t{size_} * size_; }
  // The rows from `size_` on are those of maps_device().
  [[nodiscard]] std::atomic<uint8_t>* seen_by(uint32_t row) const;

  std::string name_;
  int file_ = -1;
  uint8_t* base_ = nullptr;
  Header* header_ = nullptr;
  uint64_t bytes_ = 0;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  uint32_t local_ = 0;
  uint32_t noticed_ = 0;
  uint64_t word_ = 0;  // of the job
  std::vector<View> views_;
  std::vector<int> founders_;
};

}  // namespace spinloom::mpi
