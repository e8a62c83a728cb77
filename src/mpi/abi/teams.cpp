#include "mpi/abi/teams.hpp"

#include <algorithm>
#include <new>

#include "mpi/abi/layer.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// The key of the communicator copy that this thread is making. The MPI asks for the copy's attributes from within the
// call.
thread_local Key copying;

int copy_lineage(Comm, int, void*, void*, void* made, int* flag) {
  *flag = 0;
  if (copying.is_none()) return success;
  auto* const lineage = new (std::nothrow) Lineage(copying);
  copying = {};
  if (lineage == nullptr) return success;
  *static_cast<void**>(made) = lineage;
  *flag = 1;
  return success;
}

int forget_team(Comm comm, int, void* lineage, void*) {
  delete static_cast<Lineage*>(lineage);
  layer.teams.forget(comm);
  layer.offload.forget(comm);
  return success;
}

}  // namespace

int copy_nothing(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return success;
}

Teams::Copying::Copying(Key key) { copying = key; }
Teams::Copying::~Copying() { copying = {}; }

void Teams::begin(const Board& board, Group world) {
  const std::vector<int>& founders = board.founders();
  if (founders.empty() || !board.is_founder(static_cast<int>(board.rank()))) return;
  if (real.Comm_create_keyval(&copy_lineage, &forget_team, &keyval_, nullptr) != success) return;
  board_ = &board;
  rank_ = rank_of(static_cast<int>(board.rank()));
  can_agree_ = founders.size() > 1 && board.can_agree() && make_comm(world);
  if (can_agree_) {
    real.Comm_set_errhandler(comm_, handles().errors_return);
    // all_reach() is read when all ranks have looked and before any leaves, so that all find the same.
    layer.pipeline.notice();
    real.Barrier(comm_);
    all_reach_ = board.all_reach();
    real.Barrier(comm_);
  }
  auto of_world = std::make_unique<Lineage>(Lineage::of_world());
  if (real.Comm_set_attr(handles().comm_world, keyval_, of_world.get()) == success) (void)of_world.release();
}

// Makes the communicator of the founders. Only they make this call: other ranks may not have the layer.
bool Teams::make_comm(Group world) {
  const std::vector<int>& founders = board_->founders();
  if (founders.size() == board_->size()) return real.Comm_dup(handles().comm_world, &comm_) == success;
  // The tag is unlike those of programs: another thread may make a communicator as soon as the MPI is there.
  constexpr int tag = 31'873;
  Group group{};
  if (real.Group_incl(world, static_cast<int>(founders.size()), founders.data(), &group) != success) return false;
  const bool is_made = real.Comm_create_group(handles().comm_world, group, tag, &comm_) == success;
  real.Group_free(&group);
  return is_made;
}

// Returns the rank in comm() of a founder.
int Teams::rank_of(int in_world) const {
  const std::vector<int>& founders = board_->founders();
  return static_cast<int>(std::ranges::lower_bound(founders, in_world) - founders.begin());
}

void Teams::end() {
  if (can_agree_) real.Comm_free(&comm_);
  can_agree_ = false;
  board_ = nullptr;
  last_ = nullptr;
  last_lone_team_ = nullptr;
}

// False: the communicator does not have our attribute.
bool Teams::lineage_of(Comm comm, Lineage*& lineage) const {
  void* value = nullptr;
  int is_set = 0;
  if (real.Comm_get_attr(comm, keyval_, static_cast<void*>(&value), &is_set) != success || is_set == 0) return false;
  lineage = static_cast<Lineage*>(value);
  return true;
}

void Teams::drop_attribute(Comm comm) {
  Lineage* lineage = nullptr;
  if (board_ != nullptr && lineage_of(comm, lineage)) real.Comm_delete_attr(comm, keyval_);
}

Key Teams::next_child(Comm parent) {
  Lineage* lineage = nullptr;
  if (board_ == nullptr || parent == handles().comm_null || !lineage_of(parent, lineage) || lineage == nullptr)
    return {};
  return lineage->next_child();
}

Key Teams::next_window(Comm comm) {
  Lineage* lineage = nullptr;
  if (board_ == nullptr || comm == handles().comm_null || !lineage_of(comm, lineage) || lineage == nullptr) return {};
  return lineage->next_window();
}

void Teams::give_lineage(Comm made, Key key) {
  if (key.is_none() || made == handles().comm_null) return;
  auto lineage = std::make_unique<Lineage>(key);
  if (real.Comm_set_attr(made, keyval_, lineage.get()) == success) (void)lineage.release();
}

Key Teams::give_lineage_of_group(Comm parent, int tag, Comm made) {
  Lineage* lineage = nullptr;
  if (board_ == nullptr || made == handles().comm_null || !lineage_of(parent, lineage) || lineage == nullptr) return {};
  const Key key = lineage->next_child(layer.ranks_of(made), tag);
  give_lineage(made, key);
  return key;
}

Team* Teams::find(Comm comm) {
  CommEntry* const found = entry_of(comm);
  last_key_ = key_of(comm);
  last_ = found == nullptr ? nullptr : found->team.get();
  last_lone_team_ = found == nullptr ? nullptr : found->lone_team.get();
  return last_;
}

std::shared_ptr<const Members> Teams::members(Comm comm) {
  const CommEntry* const found = entry_of(comm);
  return found == nullptr ? nullptr : found->members;
}

// Null: there are no teams here, or the communicator does not take our attribute, so that its end would not be noticed.
Teams::CommEntry* Teams::entry_of(Comm comm) {
  if (board_ == nullptr || comm == handles().comm_null) return nullptr;
  take_freed();
  if (const auto* const found = entries_.find(key_of(comm))) return found->get();
  Lineage* lineage = nullptr;
  if (!lineage_of(comm, lineage) && real.Comm_set_attr(comm, keyval_, nullptr) != success) return nullptr;
  return entries_.put(key_of(comm), std::make_unique<CommEntry>(make_entry(comm, lineage))).get();
}

Teams::CommEntry Teams::make_entry(Comm comm, const Lineage* lineage) const {
  int is_inter = 0;
  if (real.Comm_test_inter(comm, &is_inter) != success || is_inter != 0) return {};
  Members members = layer.ranks_of(comm);
  if (members.empty()) return {};
  if (!std::ranges::all_of(members, [this](int rank) { return board_->is_founder(rank); })) return {};
  const bool is_lone = members.size() == 1;
  auto team = can_agree_ || is_lone ? team_of(comm, members, lineage) : nullptr;
  auto shared = std::make_shared<const Members>(std::move(members));
  if (is_lone) return {std::move(shared), nullptr, std::move(team)};
  return {std::move(shared), std::move(team)};
}

std::unique_ptr<Team> Teams::team_of(Comm comm, const Members& members, const Lineage* lineage) const {
  auto team = std::make_unique<Team>();
  team->size = static_cast<int>(members.size());
  if (real.Comm_rank(comm, &team->rank) != success) return nullptr;
  if (lineage != nullptr) team->key = lineage->key().of_members(members);
  team->min_bytes = board_->min_bytes(static_cast<uint32_t>(members.front()));
  for (const int rank : members) team->peers.push_back(rank_of(rank));
  team->neighbours = ordered_neighbours_of(comm);
  return team;
}

void Teams::meet(Team& team) const {
  const Polls polls = board_->polls();
  if (!team.ballot) {
    if (team.key.is_none()) return;
    const bool is_marked = team.neighbours.meets_twice;
    const uint64_t calls = team.voter.calls();
    team.ballot =
        team.rank == 0 ? polls.open(team.key, is_marked, calls) : polls.join(team.key, is_marked, calls, team.seen);
    if (!team.ballot && team.rank == 0) team.key = {};
    if (!team.ballot) return;
    team.tag = static_cast<int>(*team.ballot) + 1;
    team.voter.join(&polls.ballot(*team.ballot), &polls.count(*team.ballot));
    for (const int peer : team.peers) {
      const int in_world = board_->founders()[static_cast<size_t>(peer)];
      team.counts.push_back(&board_->count(static_cast<uint32_t>(in_world), *team.ballot));
    }
  }
  const Polls::Turnout turnout = polls.turnout(*team.ballot);
  team.has_met = turnout.ranks == static_cast<uint32_t>(team.size);
  team.meets_twice = turnout.is_marked;
  if (team.has_met && all_reach_) team.slot_tables.open(*board_, *team.ballot, turnout.generation);
}

// The tags of ballots come first.
int Teams::next_tag() const {
  constexpr uint32_t tags = 32'000;  // every MPI has at least as many
  const uint32_t number = Polls::most + board_->next_number();
  return number > tags ? 0 : static_cast<int>(number);
}

void Teams::take_freed() {
  if (!freed_.any()) return;
  freed_.take_each([this](uint64_t key) {
    const auto* const entry = entries_.find(key);
    if (entry == nullptr) return;
    const Team* const team = (*entry)->team.get();
    if (team != nullptr && team->ballot) board_->polls().leave(*team->ballot);
    entries_.erase(key);
  });
  last_ = nullptr;
  last_lone_team_ = nullptr;
  last_key_ = 0;
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
