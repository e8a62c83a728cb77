// Teams - the communicators on which collective calls may be the layer's, and the one that their messages go by.
//
// Contract: begin() follows MPI_Init. The calls of the program that make a communicator ask for its lineage,
//   next_child(), before they make it, and hand it to born(); all that is a matter of this rank alone. of() gives null
//   where a communicator's calls are the MPI's: a fact that all its ranks see alike. meet() finds the team's ballot, if
//   its ranks have come so far.
// Invariants: (1) a team's ranks are founders of one board: on one machine, with the layer; (2) a Team's tag is that of
//   its ballot: no other communicator of the same founders has it at the same time, and one that had it before has
//   begun all of its messages; (3) a ballot is used when all ranks have come to it (has_met), and only then.
// Threads: the caller's lock, but for add_copy() and forget(). Time: none.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "mpi/abi/topology.hpp"
#include "mpi/entry/handle_map.hpp"
#include "mpi/entry/lineage.hpp"
#include "mpi/meeting/board.hpp"
#include "mpi/meeting/slot_tables.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {

class Exchange;

struct Team {
  Key key;  // none: its ranks cannot find each other
  Voter voter;
  std::optional<uint32_t> ballot;
  uint64_t seen = 0;  // of Polls::join()
  bool has_met = false;  // all its ranks have the ballot
  bool meets_twice = false;  // then: some rank has a neighbour more than once
  int tag = 0;
  int rank = 0;
  int size = 0;
  int64_t min_bytes = 0;
  std::vector<int> peers;  // its ranks, as ranks of Teams::comm()
  std::vector<std::atomic<uint64_t>*> counts;  // of calls, of all ranks
  Neighbours neighbours;
  SlotTables slot_tables;  // not open where a rank cannot map the memory of another
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

// The ranks of a communicator in MPI_COMM_WORLD.
using Members = std::vector<int>;

class Teams {
 public:
  // Collective over the founders of the board. Where it cannot, there are no teams. `world`: of MPI_COMM_WORLD.
  void begin(const Board& board, Group world);
  void end();

  // For a call that all ranks of `parent` make, before it is made. None: what it makes has no lineage.
  [[nodiscard]] Key next_child(Comm parent);
  [[nodiscard]] Key next_window(Comm comm);
  // Called after that call: the program has a new communicator, or none.
  void born(Comm made, Key key);
  // born() for MPI_Comm_create_group. Returns the key of `made`.
  Key born_of_group(Comm parent, int tag, Comm made);
  // While it lives, the next copy of a communicator that this thread makes is of this lineage.
  class Copying {
   public:
    explicit Copying(Key key);
    Copying(const Copying&) = delete;
    Copying& operator=(const Copying&) = delete;
    ~Copying();
  };

  [[nodiscard]] Team* of(Comm comm) {
    const uint64_t key = key_of(comm);
    if (key == last_key_ && !forgotten_.any()) return last_;
    return find(comm);
  }
  // The team of a communicator of this rank alone, which agrees with nobody; null for all others.
  [[nodiscard]] const Team* lone(Comm comm) {
    (void)of(comm);
    return last_lone_;
  }
  void meet(Team& team) const;
  // Null unless all are founders.
  [[nodiscard]] std::shared_ptr<const Members> members(Comm comm);
  // The program is about to free the communicator, which loses our attribute.
  void let_go(Comm comm);
  void forget(Comm comm) { forgotten_.add(key_of(comm)); }  // needs no lock
  // The communicator of the founders, in the order of their ranks in MPI_COMM_WORLD; rank() is this process's rank
  // there.
  [[nodiscard]] Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  // True if comm() has all ranks of the job. All of them get the same answer.
  [[nodiscard]] bool spans_the_job() const { return agrees_ && board_->founders().size() == board_->size(); }
  // A tag that no other messages on comm() have; zero: there is none left.
  [[nodiscard]] int next_tag() const;

 private:
  // The facts of a communicator that has our attribute.
  struct Known {
    std::shared_ptr<const Members> members;
    std::unique_ptr<Team> team;
    std::unique_ptr<Team> lone{};
  };
  [[nodiscard]] bool make_comm(Group world);
  [[nodiscard]] int rank_of(int in_world) const;
  [[nodiscard]] Team* find(Comm comm);
  [[nodiscard]] Known* known(Comm comm);
  [[nodiscard]] Known look_at(Comm comm, const Lineage* lineage) const;
  [[nodiscard]] std::unique_ptr<Team> team_of(Comm comm, const Members& members, const Lineage* lineage) const;
  [[nodiscard]] bool lineage_of(Comm comm, Lineage*& found) const;
  void take_forgotten();

  const Board* board_ = nullptr;
  bool agrees_ = false;  // founders can agree, and have a communicator
  HandleMap<std::unique_ptr<Known>> known_;
  Forgotten forgotten_;
  uint64_t last_key_ = 0;
  Team* last_ = nullptr;
  const Team* last_lone_ = nullptr;
  Comm comm_{};
  int rank_ = 0;
  int keyval_ = 0;
  bool all_reach_ = false;
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
