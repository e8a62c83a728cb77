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

void Teams::begin(const Board& board, std::vector<int> world) {
  if (!board.is_complete() || !board.can_agree()) return;
  if (real.Comm_create_keyval(&copy_nothing, &forget_team, &keyval_, nullptr) != success ||
      real.Comm_dup(handles().comm_world, &comm_) != success) {
    return;
  }
  real.Comm_set_errhandler(comm_, handles().errors_return);
  board_ = &board;
  add(handles().comm_world, std::move(world));
}

void Teams::end() {
  if (board_ != nullptr) real.Comm_free(&comm_);
  board_ = nullptr;
  last_ = nullptr;
}

void Teams::add(Comm comm, std::vector<int> world) {
  if (board_ == nullptr || world.size() < 2) return;
  if (!std::ranges::all_of(world, [](int rank) { return rank >= 0; })) return;
  auto made = std::make_unique<Team>();
  made->world = std::move(world);
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
  for (const int rank : made->world) made->counts.push_back(&board_->count(static_cast<uint32_t>(rank), ballot));
  made->neighbours = distinct_neighbours_of(comm);
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
