// Teams - the communicators on which collective calls may be the layer's, and the one that their messages go by.
//
// Contract: begin() follows MPI_Init; add() is called by all ranks of a communicator that the program has just made. of()
//   gives null where a communicator's calls are the MPI's: a fact that all its ranks see alike.
// Invariants: (1) a team's ranks are founders of one board: on one machine, with the layer; (2) a Team's number is the tag of
//   its messages; no other communicator of the same founders ever has the same.
// Threads: the caller's lock, but for add() and forget(). Time: none.
#pragma once

#include <memory>
#include <vector>

#include "mpi/abi/topology.hpp"
#include "mpi/board.hpp"
#include "mpi/handle_map.hpp"
#include "mpi/hatches.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Exchange;

struct Team {
  Voter voter;
  int tag = 0;
  int rank = 0;
  int size = 0;
  int64_t min_bytes = 0;
  std::vector<int> peers;  // its ranks, as ranks of Teams::comm()
  std::vector<std::atomic<uint64_t>*> counts;  // of calls, of all ranks
  Neighbours neighbours;
  Hatches hatches;  // not open where a rank cannot map the memory of another
  // The last blocking calls of each kind, to be done again without a look at their types and places.
  static constexpr size_t plans_most = 4;
  struct Plans {
    std::array<std::shared_ptr<Exchange>, plans_most> kept{};
    size_t next = 0;  // to be replaced
  };
  std::array<Plans, Ballot::kinds> plans{};
  std::array<uint8_t, Ballot::kinds> vain_looks{};  // at its calls of each kind, which found no gaps
};

// For attributes that a communicator's copy does not get.
int copy_nothing(Comm, int, void*, void*, void*, int* flag);

class Teams {
 public:
  // Collective over the founders of the board. Where it cannot, there are no teams. `world`: of MPI_COMM_WORLD.
  void begin(const Board& board, Group world);
  void end();
  // `world`: the ranks of `comm` in MPI_COMM_WORLD; below zero for a process of another world.
  void add(Comm comm, const std::vector<int>& world);
  [[nodiscard]] Team* of(Comm comm) {
    const uint64_t key = key_of(comm);
    if (key == last_key_ && !forgotten_.any()) return last_;
    return find(key);
  }
  void forget(Comm comm) { forgotten_.add(key_of(comm)); }  // needs no lock
  [[nodiscard]] bool any() const { return board_ != nullptr; }
  // Of the founders, in the order of their ranks in MPI_COMM_WORLD; rank() is this one's there.
  [[nodiscard]] Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  // That of no other messages on comm(); zero: there is none left.
  [[nodiscard]] int next_tag() const;

 private:
  [[nodiscard]] bool make_comm(Group world);
  [[nodiscard]] int rank_of(int in_world) const;
  [[nodiscard]] Team* find(uint64_t key);
  void take_forgotten();

  const Board* board_ = nullptr;
  HandleMap<std::unique_ptr<Team>> teams_;
  Forgotten forgotten_;
  uint64_t last_key_ = 0;
  Team* last_ = nullptr;
  Comm comm_{};
  int rank_ = 0;
  int keyval_ = 0;
  bool all_reach_ = false;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
