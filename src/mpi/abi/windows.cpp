#include "mpi/abi/windows.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/shared_heap.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/meeting/mappings.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

Window::Ways ways_of_the_mpi() {
  constexpr size_t length_most = 16 << 10;
  std::vector<char> text(length_most);
  int length = 0;
  if (real.Get_library_version(text.data(), &length) != success) return {};
  const std::string_view version(text.data());
  const auto has = [&](std::string_view word) { return version.find(word) != std::string_view::npos; };
  // MPICH's older device puts a fence's barrier off until the first access, and locks no sooner than it must.
  // System calls were found quicker than Open MPI 4 and MPICH 4 (docs/mpi.md); MPICH 5 is quicker than system calls.
  const bool calls_pay = has("Open MPI v4") || has("MPICH Version:\t4");
  return {.fences_meet = !has("ch3"), .locks_wait = has("ch4"), .calls_pay = calls_pay};
}

// Returns the address of the target's memory in this process. Null: it cannot be reached.
std::byte* reached(const Told& told, int there) {
  if (told.bytes <= 0) return nullptr;
  const auto bytes = static_cast<uint64_t>(told.bytes);
  if (there == layer.rank) return reinterpret_cast<std::byte*>(told.base);  // NOLINT: an address
  const Board& board = layer.pipeline.board();
  const auto target = static_cast<uint32_t>(there);
  if (told.where == Told::Lies::in_heap) {
    return reinterpret_cast<std::byte*>(board.writable_at(target, told.base, bytes));
  }
  if (told.where == Told::Lies::elsewhere || !board.lives(target)) return nullptr;
  return mapped_here(shared_place_of(told.base, bytes, board.process(target).id()), bytes);
}

// Returns the count of the target's posts to `origin`; null: it cannot be read.
const Posts::Count* posts_of(const Told& told, int there, int origin) {
  if (told.posts == 0) return nullptr;
  const uint64_t place = told.posts + Posts::place_of(origin);
  if (there == layer.rank) return reinterpret_cast<const Posts::Count*>(place);  // NOLINT: an address
  const Board& board = layer.pipeline.board();
  return reinterpret_cast<const Posts::Count*>(board.at(static_cast<uint32_t>(there), place, sizeof(Posts::Count)));
}

}  // namespace

std::vector<int> ranks_in(Group group, Win window) {
  int size = 0;
  Group all{};
  if (real.Group_size(group, &size) != success || size <= 0 || real.Win_get_group(window, &all) != success) return {};
  std::vector<int> own(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) own[static_cast<size_t>(i)] = i;
  std::vector<int> found(own.size());
  const int code = real.Group_translate_ranks(group, size, own.data(), all, found.data());
  real.Group_free(&all);
  if (code != success) return {};
  std::erase_if(found, [](int rank) { return rank < 0; });  // MPI_UNDEFINED: the MPI will complain
  return found;
}

Window::Window(Win handle, Key key, std::shared_ptr<const Members> members, Told own, Posts posts, Ways ways)
    : handle_(handle),
      key_(key),
      members_(std::move(members)),
      own_(own),
      targets_(members_->size()),
      posts_(std::move(posts)),
      ways_(ways) {
  for (size_t i = 0; i < targets_.size(); ++i) targets_[i].part.rank = (*members_)[i];
}

bool Window::is_unified() {
  if (is_unified_) return *is_unified_;
  int* model = nullptr;
  int is_set = 0;
  is_unified_ = real.Win_get_attr(handle_, win_model, static_cast<void*>(&model), &is_set) == success && is_set != 0 &&
                *model == win_unified;
  return *is_unified_;
}

void Window::look_up(int target) {
  if (part(target) == nullptr) return;
  Target& wanted = targets_[static_cast<size_t>(target)];
  const int there = (*members_)[static_cast<size_t>(target)];
  if (wanted.is_known || !is_unified()) return;
  std::optional<Told> told;
  if (there == layer.rank) {
    told = own_;
  } else if (!key_.is_none()) {
    told = layer.pipeline.board().postings(static_cast<uint32_t>(there)).find(key_, wanted.seen);
  }
  if (!told) return;
  wanted.is_known = true;
  layer.attend();
  if (told->unit <= 0) return;
  const auto own_place = std::ranges::find(*members_, layer.rank) - members_->begin();
  const Board& board = layer.pipeline.board();
  wanted.part = {reached(*told, there),
                 told->bytes,
                 told->unit,
                 told->base,
                 board.reads_memory_of(static_cast<uint32_t>(there)),
                 there,
                 posts_of(*told, there, static_cast<int>(own_place))};
}

void Window::lock(int target, int assert) {
  if (part(target) == nullptr) return;
  epoch_ = Epoch::locked;
  ++locks_;
  targets_[static_cast<size_t>(target)].grant = granted_by(assert);
}

void Window::lock_all(int assert) {
  epoch_ = Epoch::locked;
  locks_ = 0;
  for (Target& target : targets_) target.grant = granted_by(assert);
}

void Window::close(int target) {
  if (part(target) == nullptr) return;
  settle(targets_[static_cast<size_t>(target)]);
  const Lock lock;
  if (--locks_ <= 0) epoch_ = Epoch::none;
}

void Window::close_all() {
  for (Target& target : targets_) settle(target);
  const Lock lock;
  epoch_ = Epoch::none;
  locks_ = 0;
}

void Window::start(std::span<const int> targets) {
  epoch_ = Epoch::started;
  for (const int target : targets) {
    if (part(target) == nullptr) continue;
    Target& one = targets_[static_cast<size_t>(target)];
    one.is_started = true;
    one.is_late = false;
    ++one.starts;
  }
}

void Window::complete() {
  epoch_ = Epoch::none;
  for (Target& target : targets_) target.is_started = false;
}

void Window::forbid_calls(int target) {
  const Lock lock;
  targets_[static_cast<size_t>(target)].part.by_calls = false;
}

void Window::settle(Target& target) {
  Request asked = handles().request_null;
  {
    const Lock lock;
    if (target.grant == Grant::asked) asked = target.asked;
    target.grant = Grant::none;
  }
  if (asked != handles().request_null) real.Wait(&asked, status_ignore);
}

bool Window::ask(Target& target, int rank) {
  if (real.Rget(&target.byte, 1, handles().byte, rank, 0, 1, handles().byte, handle_, &target.asked) != success) {
    target.grant = Grant::none;
    return false;
  }
  target.grant = Grant::asked;
  return true;
}

bool Window::look(Target& target) {
  if (target.grant != Grant::asked) return target.grant == Grant::granted;
  int has_come = 0;
  if (real.Test(&target.asked, &has_come, status_ignore) != success) {
    target.grant = Grant::none;
  } else if (has_come != 0) {
    target.grant = Grant::granted;
  }
  return target.grant == Grant::granted;
}

const char* Window::look_again(Target& target) const {
  if (epoch_ == Epoch::started) return has_posted(target) ? nullptr : "the target has not posted yet";
  return look(target) ? nullptr : "the lock may not be granted yet";
}

const char* Window::closed(int target) {
  Target& wanted = targets_[static_cast<size_t>(target)];
  {
    const Lock lock;
    if (epoch_ == Epoch::fenced) return ways_.fences_meet ? nullptr : "fences of this MPI do not wait for all ranks";
    if (epoch_ == Epoch::none || (epoch_ == Epoch::started && !wanted.is_started)) return "in no epoch";
    const bool is_new = epoch_ == Epoch::started ? !wanted.is_late : wanted.grant == Grant::wanted;
    if (!is_new || (epoch_ == Epoch::locked && !ask(wanted, target))) return look_again(wanted);
  }
  constexpr int64_t patience_ns = 20'000;
  const int64_t end_ns = now_ns() + patience_ns;
  const char* why = nullptr;
  do {
    const Lock lock;
    why = look_again(wanted);
    if (why == nullptr) return nullptr;
  } while (now_ns() < end_ns);
  const Lock lock;
  wanted.is_late = true;
  return why;
}

void Windows::add(Win handle, Comm comm, Key key, Told told) {
  static const Window::Ways ways = ways_of_the_mpi();
  const Lock lock;
  auto members = layer.teams.members(comm);
  if (members == nullptr) return;
  Posts posts = Posts::make(members->size());
  told.posts = posts.address();
  if (!key.is_none()) layer.pipeline.board().postings(static_cast<uint32_t>(layer.rank)).post(key, told);
  known_.put(key_of(handle), std::make_unique<Window>(handle, key, std::move(members), told, std::move(posts), ways));
}

void Windows::forget(Win handle) {
  const Window* const gone = find(handle);
  if (gone == nullptr) return;
  if (!gone->key().is_none()) layer.pipeline.board().postings(static_cast<uint32_t>(layer.rank)).remove(gone->key());
  known_.erase(key_of(handle));
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
