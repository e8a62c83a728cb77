// Teams - the communicators on which collective calls may be the layer's, and the one that their messages go by.
//
// Contract: begin() follows MPI_Init. The calls of the program that make a communicator get its lineage from
//   next_child() before they make it, and give it to give_lineage() afterwards; MPI_Comm_create_group uses
//   give_lineage_of_group() instead, MPI_Comm_idup a Copying. All that sends no message. of() returns null where a
//   communicator's calls are the MPI's, which all its ranks see alike. meet() finds the team's ballot, if its first
//   rank has opened it.
// Invariants: (1) a team's ranks are founders of one board: on one machine, with the layer; (2) a Team's tag is that of
//   its ballot: no other communicator of the same founders has it at the same time, and one that had it before has
//   begun all of its messages; (3) a ballot is used when all ranks have come to it (has_met), and only then.
// Threads: the caller's lock, but for begin(), end(), Copying, forget() and next_tag(). Time: none.
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
  uint64_t seen = 0;  // the state that Polls::join() has seen so far
  bool has_met = false;  // all its ranks have the ballot
  bool meets_twice = false;  // some rank has a neighbour more than once; known when it has met
  int tag = 0;
  int rank = 0;
  int size = 0;
  int64_t min_bytes = 0;
  std::vector<int> peers;  // its ranks, as ranks of Teams::comm()
  std::vector<std::atomic<uint64_t>*> counts;  // the number of each rank's calls
  Neighbours neighbours;
  SlotTables slot_tables;  // open once the team has met, if every founder maps the heaps of all others
  // The last blocking calls of each kind, to be done again without a look at their types and places.
  static constexpr size_t plans_max = 4;
  struct Plans {
    std::array<std::shared_ptr<Exchange>, plans_max> exchanges{};
    size_t next = 0;  // the one that is replaced next
  };
  std::array<Plans, Ballot::kinds> plans{};
  std::array<uint8_t, Ballot::kinds> vain_looks{};  // one for each kind: see decide_look() in calls_collective.cpp
};

// The copy function of attributes that a communicator's copy does not get.
int copy_nothing(Comm, int, void*, void*, void*, int* flag);

// The ranks of a communicator in MPI_COMM_WORLD.
using Members = std::vector<int>;

class Teams {
 public:
  // A collective call of the board's founders. Where they cannot agree, or there is one only, the only teams are those
  // of communicators of one rank (lone_team()). `world`: the group of MPI_COMM_WORLD.
  void begin(const Board& board, Group world);
  void end();

  // Called before a call that all ranks of `parent` make: returns the key of what it makes. None: that has no lineage.
  // next_window() does so for calls that make a window.
  [[nodiscard]] Key next_child(Comm parent);
  [[nodiscard]] Key next_window(Comm comm);
  // Called after that call, also where the program gets MPI_COMM_NULL: gives the new communicator its lineage.
  void give_lineage(Comm made, Key key);
  // give_lineage() for MPI_Comm_create_group. Returns the key of `made`.
  Key give_lineage_of_group(Comm parent, int tag, Comm made);
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
    if (key == last_key_ && !freed_.any()) return last_;
    return find(comm);
  }
  // Returns the team of a communicator of this rank alone, which agrees with nobody; null for all others.
  [[nodiscard]] const Team* lone_team(Comm comm) {
    (void)of(comm);
    return last_lone_team_;
  }
  void meet(Team& team) const;
  // Returns the ranks of a communicator; null unless all are founders, and for an intercommunicator.
  [[nodiscard]] std::shared_ptr<const Members> members(Comm comm);
  // Takes our attribute away from a communicator that the program is about to free.
  void drop_attribute(Comm comm);
  void forget(Comm comm) { freed_.add(key_of(comm)); }  // needs no lock
  // Returns the communicator of the founders, in the order of their ranks in MPI_COMM_WORLD; rank() is this process's
  // rank there.
  [[nodiscard]] Comm comm() const { return comm_; }
  [[nodiscard]] int rank() const { return rank_; }
  // True if comm() has all ranks of the job. All of them get the same answer.
  [[nodiscard]] bool spans_the_job() const { return can_agree_ && board_->founders().size() == board_->size(); }
  // Returns a tag that no other messages on comm() have; zero: there is none left.
  [[nodiscard]] int next_tag() const;

 private:
  // The facts of a communicator that has our attribute.
  struct CommEntry {
    std::shared_ptr<const Members> members;
    std::unique_ptr<Team> team;
    std::unique_ptr<Team> lone_team{};
  };
  [[nodiscard]] bool make_comm(Group world);
  [[nodiscard]] int rank_of(int in_world) const;
  [[nodiscard]] Team* find(Comm comm);
  [[nodiscard]] CommEntry* entry_of(Comm comm);
  [[nodiscard]] CommEntry make_entry(Comm comm, const Lineage* lineage) const;
  [[nodiscard]] std::unique_ptr<Team> team_of(Comm comm, const Members& members, const Lineage* lineage) const;
  [[nodiscard]] bool lineage_of(Comm comm, Lineage*& lineage) const;
  void take_freed();

  const Board* board_ = nullptr;
  bool can_agree_ = false;  // founders can agree, and have a communicator
  HandleMap<std::unique_ptr<CommEntry>> entries_;
  FreedHandles freed_;
  uint64_t last_key_ = 0;
  Team* last_ = nullptr;
  const Team* last_lone_team_ = nullptr;
  Comm comm_{};
  int rank_ = 0;
  int keyval_ = 0;
  bool all_reach_ = false;  // every founder has mapped the heaps of all others
};

}  // namespace spinloom::mpi::SPINLOOM_ABI
