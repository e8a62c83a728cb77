// Locks of windows: queues of tickets at the rank that is locked.
#include <algorithm>
#include <utility>

#include "portals/rma/window.hpp"
#include "portals/rma/window_words.hpp"

namespace spinloom::rma {
namespace {

constexpr int64_t shortest_look_ps = 2'000'000;  // 2 us
constexpr int64_t longest_look_ps = 200'000'000;

}  // namespace

Status Window::fetch(uint32_t place, uint64_t word, uint64_t count, bool adds_one) {
  static constexpr uint64_t addend = 1;
  LockState& lock = lock_states_[place];
  SPL_ASSIGN(lock.request, context_.make_request(members_[place]));
  Operation operation;
  operation.kind = Operation::Kind::fetch;
  operation.key = control_keys_.at(place);
  operation.offset = word * sizeof(uint64_t);
  operation.bytes = count * sizeof(uint64_t);
  operation.from = reinterpret_cast<const uint8_t*>(&addend);
  operation.to = reinterpret_cast<uint8_t*>(lock.fetched.data());
  operation.op = adds_one ? static_cast<uint32_t>(spin::AtomicOperation::sum) : op_nothing;
  operation.type = spin::Datatype::uint64;
  operation.request = lock.request;
  const Status begun = context_.begin_native(operation);
  if (!begun) std::ignore = context_.retire(lock.request);
  return begun;
}

Status Window::begin_lock(uint32_t rank, Lock kind) {
  SPL_ASSIGN(const uint32_t place, place_of(rank));
  LockState& lock = lock_states_[place];
  if (lock.kind != Lock::none) {
    return fail(Code::invalid, "this rank has a lock of rank ", rank, " already, or waits for it");
  }
  SPL_TRY(context_.watch_all());
  SPL_TRY(fetch(place, words::ticket, 1, true));
  lock.kind = kind;
  lock.step = LockState::Step::taking_ticket;
  lock.pause_ps = shortest_look_ps;
  return {};
}

// Takes the steps of a lock until one has to wait for an answer or for a later look (false), or the lock is there
// (true).
Result<bool> Window::step_lock(uint32_t place) {
  using Step = LockState::Step;
  LockState& lock = lock_states_[place];
  for (;;) {
    SPL_TRY(context_.progress());
    if (lock.step == Step::resting) {
      if (context_.now() < lock.next_look) return false;
      lock.step = Step::looking;
      SPL_TRY(fetch(place, words::serves_shared, 2, false));
    }
    if (!context_.is_done(*lock.request)) return false;
    SPL_TRY(context_.retire(lock.request));
    if (lock.step == Step::taking_ticket) {
      lock.ticket = lock.fetched[0];
      lock.step = Step::looking;
      SPL_TRY(fetch(place, words::serves_shared, 2, false));
      continue;
    }
    const uint64_t turn = lock.kind == Lock::shared ? lock.fetched[0] : lock.fetched[1];
    if (turn == lock.ticket) {
      lock.step = Step::none;
      if (lock.kind == Lock::shared) SPL_TRY(add_one(place, words::serves_shared));
      return true;
    }
    if (context_.is_anyone_gone()) {
      return fail(Code::fault, "a rank of the context is gone, and might have the lock of rank ", members_[place]);
    }
    const auto tickets_before = static_cast<int64_t>(std::min<uint64_t>(lock.ticket - turn, 64));
    lock.next_look = context_.now() + Time{std::min(longest_look_ps, lock.pause_ps * tickets_before)};
    lock.pause_ps = std::min(longest_look_ps, 2 * lock.pause_ps);
    lock.step = Step::resting;
  }
}

Result<bool> Window::test_lock(uint32_t rank) {
  SPL_ASSIGN(const uint32_t place, place_of(rank));
  if (lock_states_[place].kind == Lock::none)
    return fail(Code::invalid, "this rank has not asked for a lock of rank ", rank);
  if (lock_states_[place].step == LockState::Step::none) return true;
  auto has_lock = step_lock(place);
  if (!has_lock) lock_states_[place].kind = Lock::none;
  return has_lock;
}

Status Window::lock(uint32_t rank, Lock kind) {
  SPL_TRY(begin_lock(rank, kind));
  for (;;) {
    SPL_ASSIGN(const bool has_lock, test_lock(rank));
    if (has_lock) return {};
    const LockState& lock = lock_states_[places_[rank]];
    SPL_TRY(context_.pause("a lock", lock.step == LockState::Step::resting ? lock.next_look : Time::never()));
  }
}

Status Window::unlock(uint32_t rank) {
  SPL_ASSIGN(const uint32_t place, place_of(rank));
  LockState& lock = lock_states_[place];
  if (lock.kind == Lock::none || lock.step != LockState::Step::none) {
    return fail(Code::invalid, "this rank has no lock of rank ", rank);
  }
  Status flushed = context_.flush(rank);
  const bool was_shared = std::exchange(lock.kind, Lock::none) == Lock::shared;
  SPL_TRY(add_one(place, was_shared ? words::serves_exclusive : words::serves_shared, was_shared ? 1 : 2));
  return flushed;
}

// Takes the locks in the order of ranks, so that ranks do not wait for each other in a circle. After an Error it gives
// back those that it has taken.
Status Window::lock_all() {
  SPL_TRY(place_of(context_.rank()));
  if (holds_all_locks_) return fail(Code::invalid, "this rank has the locks of all ranks already");
  std::vector<uint32_t> in_order = members_;
  std::ranges::sort(in_order);
  for (size_t i = 0; i < in_order.size(); ++i) {
    const Status locked = lock(in_order[i], Lock::shared);
    if (locked) continue;
    for (size_t before = 0; before < i; ++before) std::ignore = unlock(in_order[before]);
    return locked;
  }
  holds_all_locks_ = true;
  return {};
}

Status Window::unlock_all() {
  if (!holds_all_locks_) return fail(Code::invalid, "this rank has not locked all ranks");
  holds_all_locks_ = false;
  Status all;
  for (const uint32_t rank : members_) {
    const Status unlocked = unlock(rank);
    if (all) all = unlocked;
  }
  return all;
}

}  // namespace spinloom::rma
