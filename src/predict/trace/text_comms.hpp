// TextComms - which handles of different ranks are one communicator, and who its members are: a text trace gives only
// each rank's own handle, its rank and the size.
//
// Contract: a CommBinder follows one rank's calls: use() returns the communicator of a call; make() and release()
//   take the calls that make and free communicators. After learn(), TextComms knows the members of each.
// Invariants: (1) a communicator is the n-th that its ranks made of the same parent; of MPI_Comm_split, with one
//   colour; (2) a handle stands for a living communicator of a fitting rank and size that was made and not yet used; of
//   several, lower handles are older ones; (3) all ranks that bind to a communicator have different ranks in it, or it
//   is unknown.
// Threads: pure. Time: none.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "predict/trace/text_call.hpp"

namespace spinloom::trace {

// A use, a creation or a release of a communicator by a call.
struct CommMark {
  enum class Kind : uint8_t { use, make, release };
  Kind kind = Kind::use;
  TextComm comm;  // the one that is used; for `make`, the parent
  TextGroup group = TextGroup::untold;
  int64_t colour = 0;
  int64_t key = 0;
  uint64_t place = 0;  // for `make` and `release`: the place of the handle
};

class TextComms {
 public:
  static constexpr uint32_t world = 0;
  static constexpr uint32_t itself = 1;
  static constexpr uint32_t unknown = none;

  explicit TextComms(uint32_t ranks);
  void learn(std::span<const std::vector<CommMark>> marks);

  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  // The members as ranks of the world; empty if they are not known. Not for `itself`.
  [[nodiscard]] const std::vector<uint32_t>& members(uint32_t comm) const { return members_[comm]; }
  [[nodiscard]] std::optional<uint32_t> rank_in(uint32_t comm, uint32_t world_rank) const;

 private:
  friend class CommBinder;
  struct Piece {  // one rank's arguments of MPI_Comm_split
    int64_t colour = 0;
    int64_t key = 0;
  };
  struct Making {  // the n-th call on a parent that makes communicators, by all its ranks
    uint32_t parent = unknown;
    TextGroup group = TextGroup::untold;
    std::map<uint32_t, Piece> pieces;  // by rank of the world
  };
  [[nodiscard]] uint32_t making(uint32_t parent, uint32_t nth, TextGroup group);
  [[nodiscard]] uint32_t comm_of(uint32_t making, int64_t colour);
  void find_members();
  void find_members_of(uint32_t comm, uint32_t making, int64_t colour);

  uint32_t ranks_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> making_numbers_;
  std::vector<Making> makings_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> comm_numbers_;  // by making and colour
  std::vector<std::vector<uint32_t>> members_;
  std::vector<std::map<uint32_t, TextComm>> seen_;  // by communicator and rank of the world
  std::vector<std::vector<TextComm>> handles_;  // by rank: the handles that it uses
};

class CommBinder {
 public:
  CommBinder(TextComms& comms, uint32_t world_rank) : comms_(comms), world_rank_(world_rank) {}

  // Returns the communicator's number, or `unknown`.
  uint32_t use(const TextComm& comm);
  // Returns the new communicator's number, or `unknown`.
  uint32_t make(const CommMark& mark);
  uint32_t release(uint64_t place);
  uint32_t apply(const CommMark& mark);
  [[nodiscard]] uint64_t guessed() const { return guessed_; }  // handles that fitted several

 private:
  struct Living {
    uint32_t comm = TextComms::unknown;
    TextGroup group = TextGroup::untold;
    TextComm parent;
    uint64_t place = 0;
    std::optional<TextComm> bound;
  };
  [[nodiscard]] size_t lower_handles(const TextComm& comm) const;
  [[nodiscard]] bool fits(const Living& one, const TextComm& comm) const;

  TextComms& comms_;
  uint32_t world_rank_;
  std::optional<TextComm> world_;
  std::vector<Living> living_;
  std::map<uint32_t, uint32_t> made_;  // by parent: how many were made of it
  uint64_t guessed_ = 0;
};

}  // namespace spinloom::trace
