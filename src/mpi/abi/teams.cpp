#include "mpi/abi/teams.hpp"

#include <algorithm>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

int forget_team(Comm comm, int, void*, void*) {
  layer.teams.forget(comm);
  return success;
}

// What rank 0 of a communicator tells the others.
struct Founding {
  int32_t ballot = -1;
  int32_t tag = 0;
  int64_t min_bytes = 0;  // as its environment has it
};

}  // namespace

int copy_nothing(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}

void Teams::begin(const Board& board, Group world) {
  const std::vector<int>& founders = board.founders();
  if (founders.size() < 2 || !board.is_founder(static_cast<int>(board.rank())) || !board.can_agree()) return;
  board_ = &board;
  if (real.Comm_create_keyval(&copy_nothing, &forget_team, &keyval_, nullptr) != success || !make_comm(world)) {
    board_ = nullptr;
    return;
  }
  real.Comm_set_errhandler(comm_, handles().errors_return);
  rank_ = rank_of(static_cast<int>(board.rank()));
  // Asked when all have looked and before any leaves, so that all find the same.
  layer.ship.notice();
  real.Barrier(comm_);
  all_reach_ = board.all_reach();
  real.Barrier(comm_);
  if (founders.size() == board.size()) add(handles().comm_world, founders);
}

// A call of the founders only: other ranks may not have the layer.
bool Teams::make_comm(Group world) {
  const std::vector<int>& founders = board_->founders();
  if (founders.size() == board_->size()) return real.Comm_dup(handles().comm_world, &comm_) == success;
  // Unlike a program's: another of its threads may make a communicator as soon as the MPI is there.
  constexpr int tag = 31'873;
  Group group{};
  if (real.Group_incl(world, static_cast<int>(founders.size()), founders.data(), &group) != success) return false;
  const bool is_made = real.Comm_create_group(handles().comm_world, group, tag, &comm_) == success;
  real.Group_free(&group);
  return is_made;
}

// The rank in comm() of a founder.
int Teams::rank_of(int in_world) const {
  const std::vector<int>& founders = board_->founders();
  return static_cast<int>(std::ranges::lower_bound(founders, in_world) - founders.begin());
}

void Teams::end() {
  if (board_ != nullptr) real.Comm_free(&comm_);
  board_ = nullptr;
  last_ = nullptr;
}

void Teams::add(Comm comm, const std::vector<int>& world) {
  if (board_ == nullptr || world.size() < 2) return;
  if (!std::ranges::all_of(world, [this](int rank) { return board_->is_founder(rank); })) return;
  auto made = std::make_unique<Team>();
  if (real.Comm_rank(comm, &made->rank) != success || real.Comm_size(comm, &made->size) != success) return;
  Founding founding;
  if (made->rank == 0) {
    founding.ballot = board_->take_ballot();
    founding.tag = founding.ballot < 0 ? 0 : next_tag();
    if (founding.tag == 0) founding.ballot = -1;
    founding.min_bytes = layer.settings.min_bytes;
  }
  if (real.Bcast(&founding, sizeof founding, handles().byte, 0, comm) != success || founding.ballot < 0) return;
  const auto ballot = static_cast<uint32_t>(founding.ballot);
  made->voter = board_->voter(ballot);
  made->tag = founding.tag;
  made->min_bytes = founding.min_bytes;
  for (const int rank : world) {
    made->peers.push_back(rank_of(rank));
    made->counts.push_back(&board_->count(static_cast<uint32_t>(rank), ballot));
  }
  made->neighbours = ordered_neighbours_of(comm);
  if (all_reach_) made->hatches.open(*board_, ballot, static_cast<uint32_t>(made->tag));
  if (real.Comm_set_attr(comm, keyval_, nullptr) != success) return;
  const Lock lock;
  take_forgotten();
  last_key_ = key_of(comm);
  last_ = made.get();
  teams_.put(last_key_, std::move(made));
}

int Teams::next_tag() const {
  constexpr uint32_t tags = 32'000;  // every MPI has so many
  const uint32_t number = board_->next_number();
  return number > tags ? 0 : static_cast<int>(number);
}

Team* Teams::find(uint64_t key) {
  take_forgotten();
  const auto* const found = teams_.find(key);
  last_key_ = key;
  last_ = found == nullptr ? nullptr : found->get();
  return last_;
}

void Teams::take_forgotten() {
  if (!forgotten_.any()) return;
  forgotten_.take([this](uint64_t key) {
    auto* const gone = teams_.find(key);
    if (gone == nullptr) return;
    (*gone)->voter.leave((*gone)->counts);
    teams_.erase(key);
  });
  last_ = nullptr;
  last_key_ = 0;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
