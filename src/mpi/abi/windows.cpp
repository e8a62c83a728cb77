#include "mpi/abi/windows.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/shared_heap.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/abi/version.hpp"
#include "mpi/meeting/mappings.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

Window::MpiTraits traits_of_mpi() {
  if (library_version().empty()) return {};
  // MPICH's older device puts a fence's barrier off until the first access, and locks no sooner than it must.
  // System calls were found quicker than Open MPI 4 and MPICH 4 (docs/mpi.md); MPICH 5 is quicker than system calls.
  const bool is_cma_quicker = version_has("Open MPI v4") || version_has("MPICH Version:\t4");
  return {.fences_meet = !version_has("ch3"), .locks_wait = version_has("ch4"), .is_cma_quicker = is_cma_quicker};
}

// Returns the address of the target's memory in this process. Null: it cannot be reached.
std::byte* address_here(const PostedMemory& posted, int target_rank, SharedMappings* mappings) {
  if (posted.bytes <= 0) return nullptr;
  const auto bytes = static_cast<uint64_t>(posted.bytes);
  if (target_rank == layer.rank) return reinterpret_cast<std::byte*>(posted.base);  // NOLINT: an address
  const Board& board = layer.pipeline.board();
  const auto target = static_cast<uint32_t>(target_rank);
  if (posted.location == PostedMemory::Location::in_heap) {
    return reinterpret_cast<std::byte*>(board.writable_at(target, posted.base, bytes));
  }
  if (posted.place.inode == 0) return nullptr;
  return mappings != nullptr ? mappings->find(posted.place, bytes) : SharedMappings().find(posted.place, bytes);
}

// Returns the count of the target's posts to `origin`; null: it cannot be read.
const Posts::Count* posts_of(const PostedMemory& posted, int target_rank, int origin) {
  if (posted.posts == 0) return nullptr;
  const uint64_t place = posted.posts + Posts::offset_of(origin);
  if (target_rank == layer.rank) return reinterpret_cast<const Posts::Count*>(place);  // NOLINT: an address
  const Board& board = layer.pipeline.board();
  return reinterpret_cast<const Posts::Count*>(
      board.at(static_cast<uint32_t>(target_rank), place, sizeof(Posts::Count)));
}

}  // namespace

std::vector<int> ranks_in(Group group, Win window) {
  Group window_group{};
  if (real.Win_get_group(window, &window_group) != success) return {};
  std::vector<int> ranks = ranks_in_group(group, window_group);
  real.Group_free(&window_group);
  return ranks;
}

std::vector<int> ranks_in_group(Group group, Group window_group) {
  int size = 0;
  if (real.Group_size(group, &size) != success || size <= 0) return {};
  std::vector<int> ranks_in_group(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) ranks_in_group[static_cast<size_t>(i)] = i;
  std::vector<int> ranks_in_window(ranks_in_group.size());
  const int code = real.Group_translate_ranks(group, size, ranks_in_group.data(), window_group, ranks_in_window.data());
  if (code != success) return {};
  std::erase_if(ranks_in_window, [](int rank) { return rank < 0; });  // MPI_UNDEFINED: the MPI will complain
  return ranks_in_window;
}

Window::Window(Win handle, Key key, std::shared_ptr<const Members> members, PostedMemory own, Posts posts,
               MpiTraits traits)
    : handle_(handle),
      key_(key),
      members_(std::move(members)),
      own_(own),
      targets_(members_->size()),
      posts_(std::move(posts)),
      traits_(traits) {
  for (size_t i = 0; i < targets_.size(); ++i) targets_[i].memory.rank = (*members_)[i];
}

bool Window::is_unified() {
  if (is_unified_) return *is_unified_;
  int* model = nullptr;
  int is_set = 0;
  is_unified_ = real.Win_get_attr(handle_, win_model, static_cast<void*>(&model), &is_set) == success && is_set != 0 &&
                *model == win_unified;
  return *is_unified_;
}

void Window::look_up(int target, SharedMappings* mappings) {
  if (memory_of(target) == nullptr) return;
  Target& wanted = targets_[static_cast<size_t>(target)];
  const int target_rank = (*members_)[static_cast<size_t>(target)];
  if (wanted.is_known || !is_unified()) return;
  std::optional<PostedMemory> posted;
  if (target_rank == layer.rank) {
    posted = own_;
  } else if (!key_.is_none()) {
    posted = layer.pipeline.board().postings(static_cast<uint32_t>(target_rank)).find(key_, wanted.seen);
  }
  if (!posted) return;
  wanted.is_known = true;
  layer.attend();
  if (posted->unit <= 0) return;
  const auto own_place = std::ranges::find(*members_, layer.rank) - members_->begin();
  const Board& board = layer.pipeline.board();
  wanted.memory = {address_here(*posted, target_rank, mappings),
                   posted->bytes,
                   posted->unit,
                   posted->base,
                   board.reads_memory_of(static_cast<uint32_t>(target_rank)),
                   target_rank,
                   posts_of(*posted, target_rank, static_cast<int>(own_place))};
}

void Window::lock(int target, int assert) {
  if (memory_of(target) == nullptr) return;
  epoch_ = Epoch::locked;
  ++locks_;
  targets_[static_cast<size_t>(target)].grant = granted_by(assert);
}

void Window::lock_all(int assert) {
  epoch_ = Epoch::locked;
  locks_ = 0;
  for (Target& target : targets_) target.grant = granted_by(assert);
}

void Window::unlock(int target) {
  if (memory_of(target) == nullptr) return;
  settle(targets_[static_cast<size_t>(target)]);
  const Lock lock;
  if (--locks_ <= 0) epoch_ = Epoch::none;
}

void Window::unlock_all() {
  for (Target& target : targets_) settle(target);
  const Lock lock;
  epoch_ = Epoch::none;
  locks_ = 0;
}

void Window::start(std::span<const int> targets) {
  epoch_ = Epoch::started;
  for (const int target : targets) {
    if (memory_of(target) == nullptr) continue;
    Target& started = targets_[static_cast<size_t>(target)];
    started.is_started = true;
    started.is_late = false;
    ++started.starts;
  }
}

void Window::complete() {
  epoch_ = Epoch::none;
  for (Target& target : targets_) target.is_started = false;
}

void Window::forbid_cma(int target) {
  const Lock lock;
  targets_[static_cast<size_t>(target)].memory.is_reached_by_cma = false;
}

void Window::settle(Target& target) {
  Request asked = handles().request_null;
  {
    const Lock lock;
    if (target.grant == Grant::asked) asked = target.grant_request;
    target.grant = Grant::none;
  }
  if (asked != handles().request_null) real.Wait(&asked, status_ignore);
}

bool Window::request_grant(Target& target, int rank) {
  if (real.Rget(&target.grant_byte, 1, handles().byte, rank, 0, 1, handles().byte, handle_, &target.grant_request) !=
      success) {
    target.grant = Grant::none;
    return false;
  }
  target.grant = Grant::asked;
  return true;
}

bool Window::poll_grant(Target& target) {
  if (target.grant != Grant::asked) return target.grant == Grant::granted;
  int has_come = 0;
  if (real.Test(&target.grant_request, &has_come, status_ignore) != success) {
    target.grant = Grant::none;
  } else if (has_come != 0) {
    target.grant = Grant::granted;
  }
  return target.grant == Grant::granted;
}

const char* Window::why_not_granted(Target& target) const {
  if (epoch_ == Epoch::started) return has_posted(target) ? nullptr : "the target has not posted yet";
  return poll_grant(target) ? nullptr : "the lock may not be granted yet";
}

const char* Window::why_closed(int target) {
  Target& wanted = targets_[static_cast<size_t>(target)];
  {
    const Lock lock;
    if (epoch_ == Epoch::fenced) return traits_.fences_meet ? nullptr : "fences of this MPI do not wait for all ranks";
    if (epoch_ == Epoch::none || (epoch_ == Epoch::started && !wanted.is_started)) return "in no epoch";
    const bool is_new = epoch_ == Epoch::started ? !wanted.is_late : wanted.grant == Grant::wanted;
    if (!is_new || (epoch_ == Epoch::locked && !request_grant(wanted, target))) return why_not_granted(wanted);
  }
  constexpr int64_t patience_ns = 20'000;
  const int64_t end_ns = now_ns() + patience_ns;
  const char* why = nullptr;
  do {
    const Lock lock;
    why = why_not_granted(wanted);
    if (why == nullptr) return nullptr;
  } while (now_ns() < end_ns);
  const Lock lock;
  wanted.is_late = true;
  return why;
}

void Windows::add(Win handle, Comm comm, Key key, PostedMemory posted) {
  static const Window::MpiTraits traits = traits_of_mpi();
  const Lock lock;
  auto members = layer.teams.members(comm);
  if (members == nullptr) return;
  Posts posts = Posts::make(members->size());
  posted.posts = posts.address();
  if (posted.location == PostedMemory::Location::in_mpis_memory && posted.bytes > 0)
    posted.place = shared_place_of(posted.base, static_cast<uint64_t>(posted.bytes));
  if (!key.is_none()) layer.pipeline.board().postings(static_cast<uint32_t>(layer.rank)).post(key, posted);
  windows_.put(key_of(handle),
               std::make_unique<Window>(handle, key, std::move(members), posted, std::move(posts), traits));
}

void Windows::forget(Win handle) {
  const Window* const window = find(handle);
  if (window == nullptr) return;
  if (!window->key().is_none())
    layer.pipeline.board().postings(static_cast<uint32_t>(layer.rank)).remove(window->key());
  windows_.erase(key_of(handle));
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
