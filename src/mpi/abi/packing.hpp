// Packing - what this rank sends and receives in a collective call that the MPI carries, as packed bytes beside the
// program's memory. MPIs pack small blocks slowly.
//
// Contract: a Survey of one side says whether it should go packed. If so, a PackedSide takes its blocks in the order of
//   the call, and pack() precedes the call, or unpack() follows it. What a rank sends to itself can be left out of the
//   call and copied once. What a rank decides is its own matter: the others see the same bytes.
// Invariants: (1) a slot without bytes, and one of a neighbour that is missing, is neither read nor written.
// Threads: Survey, PackedSide::send() and count(), and own_of() need the caller's lock; the rest is one thread's at a
//   time. Time: none.
#pragma once

#include <memory>
#include <vector>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

// A sink for the blocks of one side, which finds out whether that side is quicker as packed bytes.
class Survey {
 public:
  void send(int, const void* buffer, int64_t count, Datatype type);
  // `bytes_max`: the most bytes that counts and displacements of the call can express.
  [[nodiscard]] bool is_quicker_packed(int64_t bytes_max) const;

 private:
  int64_t bytes_ = 0;
  double blocks_ = 0;  // the number of contiguous blocks
  bool is_valid_ = true;
  bool has_gaps_ = false;
};

// Memory that is kept, when it is dropped, for later calls that need no more bytes.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(int64_t bytes);
  Scratch(Scratch&& from) noexcept { *this = std::move(from); }
  Scratch& operator=(Scratch&& from) noexcept {
    std::swap(memory_, from.memory_);
    std::swap(bytes_, from.bytes_);
    return *this;
  }
  ~Scratch();
  [[nodiscard]] uint8_t* data() const { return memory_.get(); }

 private:
  std::unique_ptr<uint8_t[]> memory_;
  int64_t bytes_ = 0;
};

class PackedSide {
 public:
  struct Block {
    void* buffer;
    int64_t count;
    Datatype type;
    FormPointer form;  // none: no bytes
    int64_t bytes;
    int64_t offset;  // its offset among the packed bytes
    int peer;
  };

  void send(int peer, const void* buffer, int64_t count, Datatype type);
  void send_nothing() { blocks_.push_back({nullptr, 0, {}, {}, 0, bytes_, proc_null}); }
  void take_memory() { packed_ = Scratch(bytes_); }
  void pack() const;
  void unpack() const;
  // Counts the blocks of this side as messages, for the report.
  void count(const char* call, Comm comm) const;

  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] bool is_used() const { return packed_.data() != nullptr; }
  [[nodiscard]] uint8_t* packed() const { return packed_.data(); }

 private:
  std::vector<Block> blocks_;
  int64_t bytes_ = 0;
  Scratch packed_;
};

// Copies what a rank sends to itself. False: the layer cannot, and the MPI has to carry it.
[[nodiscard]] bool copy_here(const Message& from, const Message& to);

class Packing {
 public:
  // The message of this rank to itself.
  struct Own {
    Place from, to;
  };
  // Returns the message if it can be copied and is worth it; nothing where the MPI had better carry it.
  [[nodiscard]] static std::optional<Own> own_of(const Place& from, const Place& to);

  explicit Packing(std::optional<Own> own) : own_(std::move(own)) {}
  void begin() const {
    if (out.is_used()) out.pack();
  }
  // Copies the message of this rank to itself. Called after the MPI's call has begun.
  void copy_own() const;
  void end() const {
    if (in.is_used()) in.unpack();
  }

  PackedSide out, in;

 private:
  std::optional<Own> own_;
};

// The block that is left out of a call with `blocks` blocks; below zero: none is.
struct LeftOut {
  int block = -1;
  size_t blocks = 0;
};

// The lists of one side of a call, for a side that goes packed or lacks a block.
template <class N, class Disp>
struct PackedLists {
  std::vector<N> counts;
  std::vector<Disp> displs;
  std::vector<Datatype> types;

  explicit PackedLists(const PackedSide& side) : types(side.blocks().size(), handles().byte) {
    for (const PackedSide::Block& block : side.blocks()) {
      counts.push_back(static_cast<N>(block.bytes));
      displs.push_back(static_cast<Disp>(block.offset));
    }
  }
  // Returns a copy of the counts `given`, with 0 for the block that is left out.
  [[nodiscard]] const N* without(const LeftOut& left_out, const N* given) {
    counts.assign(given, given + left_out.blocks);
    counts[static_cast<size_t>(left_out.block)] = 0;
    return counts.data();
  }
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
