#include "mpi/abi/windows.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/shared_heap.hpp"
#include "mpi/abi/layer.hpp"
#include "mpi/mappings.hpp"

namespace spinloom::mpi::SPINLOOM_ABI {
namespace {

// What a rank tells the others of its memory in a window.
struct Told {
  uint64_t base = 0;
  int64_t bytes = 0;
  int64_t unit = 1;
  SharedPlace place;
  uint64_t posts = 0;
  bool in_heap = false;
  bool usable = false;
};

Window::Ways ways_of_the_mpi() {
  constexpr size_t length_most = 16 << 10;
  std::vector<char> text(length_most);
  int length = 0;
  if (real.Get_library_version(text.data(), &length) != success) return {};
  const std::string_view version(text.data());
  const auto has = [&](std::string_view word) { return version.find(word) != std::string_view::npos; };
  // MPICH's older device puts a fence's barrier off until the first access, and locks no sooner than it must.
  return {.fences_meet = !has("ch3"), .locks_wait = has("ch4")};
}

bool is_unified(Win handle) {
  int* model = nullptr;
  int is_set = 0;
  return real.Win_get_attr(handle, win_model, static_cast<void*>(&model), &is_set) == success && is_set != 0 &&
         *model == win_unified;
}

Told tell(Win handle, const void* base, int64_t bytes, int64_t unit) {
  Told told;
  told.base = reinterpret_cast<uint64_t>(base);
  told.bytes = bytes;
  told.unit = unit;
  told.usable = unit > 0 && bytes >= 0 && is_unified(handle);
  if (!told.usable || base == nullptr || bytes == 0) return told;
  const auto length = static_cast<uint64_t>(bytes);
  told.in_heap = process_heap_is_malloc() && process_heap().shares(base, length);
  return told;
}

std::byte* reached(const Told& told, int there) {
  const auto bytes = static_cast<uint64_t>(told.bytes);
  if (bytes == 0) return nullptr;
  if (there == layer.rank) return reinterpret_cast<std::byte*>(told.base);  // NOLINT: an address
  if (told.in_heap) {
    return reinterpret_cast<std::byte*>(layer.ship.board().writable_at(static_cast<uint32_t>(there), told.base, bytes));
  }
  return mapped_here(told.place, bytes);
}

// The count that `origin` looks at.
const Posts::Count* posts_of(const Told& told, int there, int origin) {
  if (told.posts == 0) return nullptr;
  const uint64_t place = told.posts + Posts::place_of(origin);
  if (there == layer.rank) return reinterpret_cast<const Posts::Count*>(place);  // NOLINT: an address
  const Board& board = layer.ship.board();
  return reinterpret_cast<const Posts::Count*>(board.at(static_cast<uint32_t>(there), place, sizeof(Posts::Count)));
}

}  // namespace

Window::Window(Win handle, std::vector<Part> parts, Posts posts, Ways ways)
    : handle_(handle), targets_(parts.size()), posts_(std::move(posts)), ways_(ways) {
  for (size_t i = 0; i < parts.size(); ++i) targets_[i].part = parts[i];
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

void Windows::add(Win handle, Comm comm, const void* base, int64_t bytes, int64_t unit) {
  int is_inter = 0;
  int size = 0;
  if (real.Comm_test_inter(comm, &is_inter) != success || is_inter != 0 || real.Comm_size(comm, &size) != success ||
      size < 1) {
    return;
  }
  std::vector<int> in_world(static_cast<size_t>(size));
  {
    const Lock lock;
    layer.attend();
    for (int i = 0; i < size; ++i) in_world[static_cast<size_t>(i)] = layer.world_rank(comm, i);
  }
  const Board& board = layer.ship.board();
  if (!std::ranges::all_of(in_world, [&board](int there) { return board.is_founder(there); })) return;
  Told own = tell(handle, base, bytes, unit);
  // Where it is the MPI's own, it may lie in memory that the MPI has mapped in all ranks.
  int* flavor = nullptr;
  int is_set = 0;
  const bool made_here = real.Win_get_attr(handle, win_flavor, static_cast<void*>(&flavor), &is_set) == success &&
                         is_set != 0 && *flavor != win_flavor_create;
  if (own.usable && made_here && !own.in_heap && bytes > 0) {
    own.place = shared_place_of(base, static_cast<uint64_t>(bytes));
  }
  int own_place = 0;
  Posts posts;
  if (real.Comm_rank(comm, &own_place) == success) posts = Posts::make(in_world.size());
  own.posts = posts.address();
  std::vector<Told> told(in_world.size());
  if (real.Allgather(&own, sizeof own, handles().byte, told.data(), sizeof own, handles().byte, comm) != success) {
    return;
  }
  if (!std::ranges::all_of(told, &Told::usable)) return;
  std::vector<Window::Part> parts;
  for (size_t i = 0; i < told.size(); ++i) {
    const int there = in_world[i];
    parts.push_back({reached(told[i], there), told[i].bytes, told[i].unit, told[i].base,
                     board.reads_memory_of(static_cast<uint32_t>(there)), there, posts_of(told[i], there, own_place)});
  }
  static const Window::Ways ways = ways_of_the_mpi();
  auto made = std::make_unique<Window>(handle, std::move(parts), std::move(posts), ways);
  const Lock lock;
  known_.put(key_of(handle), std::move(made));
}

}  // namespace spinloom::mpi::SPINLOOM_ABI
