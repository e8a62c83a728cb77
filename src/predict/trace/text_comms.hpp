// TextComms - which handles of different ranks are one communicator, and who its members are: a text trace gives only
// each rank's own handle, its rank and the size.
//
// Contract: a CommBinder follows one rank's calls: use() returns the communicator of a call; make() and release()
//   take the calls that make and free communicators. After find_all_members(), TextComms knows the members of each.
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
  uint64_t place = 0;  // the place of the handle, for `make` and `release`
};

class TextComms {
 public:
  static constexpr uint32_t world = 0;
  static constexpr uint32_t itself = 1;
  static constexpr uint32_t unknown = none;

  explicit TextComms(uint32_t ranks);
  void find_all_members(std::span<const std::vector<CommMark>> marks);

  [[nodiscard]] uint32_t ranks() const { return ranks_; }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(members_.size()); }
  // The members as ranks of the world; empty if they are not known. Not for `itself`.
  [[nodiscard]] const std::vector<uint32_t>& members(uint32_t comm) const { return members_[comm]; }
  [[nodiscard]] std::optional<uint32_t> rank_in(uint32_t comm, uint32_t world_rank) const;

 private:
  friend class CommBinder;
  // One rank's arguments of MPI_Comm_split.
  struct SplitArguments {
    int64_t colour = 0;
    int64_t key = 0;
  };
  // The n-th call on a parent that makes communicators, by all its ranks.
  struct CommCreation {
    uint32_t parent = unknown;
    TextGroup group = TextGroup::untold;
    std::map<uint32_t, SplitArguments> split_arguments;  // the key is the rank of the world
  };
  [[nodiscard]] uint32_t intern_creation(uint32_t parent, uint32_t nth, TextGroup group);
  [[nodiscard]] uint32_t intern_comm(uint32_t creation, int64_t colour);
  void find_members();
  void find_members_of(uint32_t comm, uint32_t creation, int64_t colour);

  uint32_t ranks_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> creation_numbers_;  // the key is the parent and n
  std::vector<CommCreation> creations_;
  std::map<std::pair<uint32_t, int64_t>, uint32_t> comm_numbers_;  // the key is the creation and the colour
  std::vector<std::vector<uint32_t>> members_;
  // The handles with which ranks use communicators, by communicator and rank of the world.
  std::vector<std::map<uint32_t, TextComm>> uses_;
  std::vector<std::vector<TextComm>> handles_;  // the handles that each rank uses
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
  // Returns how many handles fitted several communicators.
  [[nodiscard]] uint64_t ambiguous_handles() const { return ambiguous_handles_; }

 private:
  // A communicator that was made and not freed, and the handle that stands for it, once one does.
  struct LiveComm {
    uint32_t comm = TextComms::unknown;
    TextGroup group = TextGroup::untold;
    TextComm parent;
    uint64_t place = 0;
    std::optional<TextComm> bound;
  };
  [[nodiscard]] size_t lower_handles(const TextComm& comm) const;
  [[nodiscard]] bool fits(const LiveComm& live, const TextComm& comm) const;

  TextComms& comms_;
  uint32_t world_rank_;
  std::optional<TextComm> world_;
  std::vector<LiveComm> live_;
  std::map<uint32_t, uint32_t> creations_of_parent_;  // the number of communicators that were made of each parent
  uint64_t ambiguous_handles_ = 0;
};

}  // namespace spinloom::trace
