#include "rma/window.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

namespace spinloom::rma {
namespace {

constexpr uint64_t ticket_word = 0;
constexpr uint64_t serves_shared_word = 1;
constexpr uint64_t serves_exclusive_word = 2;
constexpr uint64_t first_rank_word = 3;
constexpr Time shortest_look{2'000'000};  // 2 us
constexpr int64_t longest_look_ps = 200'000'000;

}  // namespace

Window::Window(Context& context)
    : context_(context),
      words_(new uint64_t[first_rank_word + 2 * context.ranks()]()),
      locks_(context.ranks()),
      started_(context.ranks()),
      exposed_(context.ranks()) {}

uint64_t Window::posted_at(uint32_t rank) const { return first_rank_word + rank; }
uint64_t Window::completed_at(uint32_t rank) const { return first_rank_word + context_.ranks() + rank; }

uint64_t Window::word(uint64_t index) const {
  return std::atomic_ref<uint64_t>(words_[index]).load(std::memory_order_acquire);
}

Result<std::unique_ptr<Window>> Window::make(Context& context, std::vector<spin::IovecElement> pieces, uint32_t rights,
                                             Notices notices) {
  std::unique_ptr<Window> made(new Window(context));
  // A rank that cannot, tells bytes that are no keys, so that nobody waits for it.
  const Status own = made->set_up(std::move(pieces), rights, notices);
  std::array<uint8_t, 2 * sizeof(KeyText)> words{};
  if (own) {
    const KeyText memory = write(made->keys_.front());
    const KeyText control = write(made->control_keys_.front());
    std::memcpy(words.data(), memory.data(), memory.size());
    std::memcpy(words.data() + memory.size(), control.data(), control.size());
  }
  static_assert(sizeof(words) <= Context::words_most, "both keys of a rank are told at once");
  const auto all = context.tell_all(words);
  Status met = own && !all ? Status(all.error()) : own;
  made->keys_.clear();
  made->control_keys_.clear();
  for (uint32_t rank = 0; met && rank < context.ranks(); ++rank) {
    KeyText memory{};
    KeyText control{};
    std::memcpy(memory.data(), all->data() + rank * words.size(), memory.size());
    std::memcpy(control.data(), all->data() + rank * words.size() + memory.size(), control.size());
    const auto key = read(memory);
    const auto control_key = read(control);
    if (!key || !control_key) {
      met = fail(Code::fault, "rank ", rank, " could not make its part of the window");
    } else {
      made->keys_.push_back(*key);
      made->control_keys_.push_back(*control_key);
    }
  }
  if (met) return made;
  if (made->memory_ != nullptr) std::ignore = context.remove(*made->memory_);
  if (made->control_ != nullptr) std::ignore = context.remove(*made->control_);
  return met.error();
}

Status Window::set_up(std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices) {
  SPL_ASSIGN(memory_, context_.add_memory(std::move(pieces), notices));
  SPL_ASSIGN(const Key key, context_.share(*memory_, rights));
  const uint64_t bytes = (first_rank_word + 2 * context_.ranks()) * sizeof(uint64_t);
  SPL_ASSIGN(control_, context_.add_memory({{reinterpret_cast<uint8_t*>(words_.get()), bytes}}, Notices::none, true));
  SPL_ASSIGN(const Key control, context_.share(*control_, right_atomic));
  keys_.push_back(key);
  control_keys_.push_back(control);
  return {};
}

bool Window::is_open() const {
  return is_started_ || is_posted_ || std::ranges::any_of(locks_, [](Lock lock) { return lock != Lock::none; });
}

Status Window::free() {
  Status flushed = context_.flush_all();
  context_.let_control_end();
  const Status met = context_.barrier();
  std::ignore = context_.remove(*memory_);
  std::ignore = context_.remove(*control_);
  return met ? flushed : met;
}

Status Window::check(std::span<const uint32_t> group) const {
  for (const uint32_t rank : group) {
    if (rank >= context_.ranks()) return fail(Code::invalid, "rank ", rank, " of ", context_.ranks());
    if (std::ranges::count(group, rank) > 1) return fail(Code::invalid, "rank ", rank, " is in the group twice");
  }
  return {};
}

Status Window::post(std::span<const uint32_t> group) {
  SPL_TRY(check(group));
  if (is_posted_) return fail(Code::invalid, "the window is posted already; wait for that epoch first");
  exposure_.assign(group.begin(), group.end());
  is_posted_ = true;
  for (const uint32_t rank : group) {
    SPL_TRY(context_.add_one(control_keys_.at(rank), posted_at(context_.rank()) * sizeof(uint64_t)));
  }
  return {};
}

Status Window::start(std::span<const uint32_t> group) {
  SPL_TRY(check(group));
  if (is_started_) return fail(Code::invalid, "an access epoch has been started already; complete it first");
  SPL_TRY(context_.wait_until("the start of an epoch", Context::For::all_ranks, [&] {
    return std::ranges::all_of(group, [&](uint32_t rank) { return word(posted_at(rank)) > started_[rank]; });
  }));
  for (const uint32_t rank : group) ++started_[rank];
  access_.assign(group.begin(), group.end());
  is_started_ = true;
  return {};
}

Status Window::complete() {
  if (!is_started_) return fail(Code::invalid, "no access epoch has been started");
  Status all;
  for (const uint32_t rank : access_) {
    const Status flushed = context_.flush(rank);
    if (all) all = flushed;
  }
  for (const uint32_t rank : access_) {
    SPL_TRY(context_.add_one(control_keys_.at(rank), completed_at(context_.rank()) * sizeof(uint64_t)));
  }
  is_started_ = false;
  return all;
}

bool Window::all_completed() const {
  return std::ranges::all_of(exposure_, [&](uint32_t rank) { return word(completed_at(rank)) > exposed_[rank]; });
}

void Window::end_exposure() {
  for (const uint32_t rank : exposure_) ++exposed_[rank];
  is_posted_ = false;
}

Status Window::wait_completed() {
  if (!is_posted_) return fail(Code::invalid, "the window is not posted");
  SPL_TRY(context_.wait_until("the end of an epoch", Context::For::all_ranks, [&] { return all_completed(); }));
  end_exposure();
  return {};
}

Result<bool> Window::test_completed() {
  if (!is_posted_) return fail(Code::invalid, "the window is not posted");
  SPL_TRY(context_.progress());
  if (!all_completed()) {
    if (context_.is_anyone_gone()) return fail(Code::fault, "a rank of the context is gone");
    return false;
  }
  end_exposure();
  return true;
}

Status Window::fetch(uint32_t rank, uint64_t word, uint64_t count, bool adds_one) {
  static constexpr uint64_t one = 1;
  SPL_ASSIGN(Request* const request, context_.make_request(rank));
  Operation operation;
  operation.kind = Operation::Kind::fetch;
  operation.key = control_keys_.at(rank);
  operation.offset = word * sizeof(uint64_t);
  operation.bytes = count * sizeof(uint64_t);
  operation.from = reinterpret_cast<const uint8_t*>(&one);
  operation.to = reinterpret_cast<uint8_t*>(fetched_.data());
  operation.op = adds_one ? static_cast<uint32_t>(spin::AtomicOperation::sum) : op_nothing;
  operation.type = spin::Datatype::uint64;
  operation.request = request;
  const Status begun = context_.begin_native(operation);
  const Status ended = context_.wait(request);
  return begun ? ended : begun;
}

Status Window::wait_for_turn(uint32_t rank, uint64_t ticket, Lock kind) {
  int64_t patience_ps = shortest_look.ps;
  for (;;) {
    SPL_TRY(fetch(rank, serves_shared_word, 2, false));
    const uint64_t turn = kind == Lock::shared ? fetched_[0] : fetched_[1];
    if (turn == ticket) return {};
    if (context_.is_anyone_gone()) {
      return fail(Code::fault, "a rank of the context is gone, and might have the lock of rank ", rank);
    }
    const auto before = static_cast<int64_t>(std::min<uint64_t>(ticket - turn, 64));
    const Time look_at = context_.now() + Time{std::min(longest_look_ps, patience_ps * before)};
    while (context_.now() < look_at) {
      SPL_TRY(context_.progress());
      SPL_TRY(context_.pause("a lock", look_at));
    }
    patience_ps = std::min(longest_look_ps, 2 * patience_ps);
  }
}

Status Window::lock(uint32_t rank, Lock kind) {
  if (rank >= context_.ranks()) return fail(Code::invalid, "rank ", rank, " of ", context_.ranks());
  if (locks_[rank] != Lock::none) return fail(Code::invalid, "this rank has a lock of rank ", rank, " already");
  SPL_TRY(context_.watch_all());
  SPL_TRY(fetch(rank, ticket_word, 1, true));
  SPL_TRY(wait_for_turn(rank, fetched_[0], kind));
  locks_[rank] = kind;
  if (kind == Lock::exclusive) return {};
  return context_.add_one(control_keys_[rank], serves_shared_word * sizeof(uint64_t));
}

Status Window::unlock(uint32_t rank) {
  if (rank >= context_.ranks() || locks_[rank] == Lock::none) {
    return fail(Code::invalid, "this rank has no lock of rank ", rank);
  }
  Status flushed = context_.flush(rank);
  const bool was_shared = std::exchange(locks_[rank], Lock::none) == Lock::shared;
  const uint64_t word = was_shared ? serves_exclusive_word : serves_shared_word;
  SPL_TRY(context_.add_one(control_keys_[rank], word * sizeof(uint64_t), was_shared ? 1 : 2));
  return flushed;
}

// In the order of ranks, so that ranks do not wait for each other.
Status Window::lock_all() {
  if (locks_all_) return fail(Code::invalid, "this rank has the locks of all ranks already");
  for (uint32_t rank = 0; rank < context_.ranks(); ++rank) {
    const Status locked = lock(rank, Lock::shared);
    if (locked) continue;
    for (uint32_t other = 0; other < rank; ++other) std::ignore = unlock(other);
    return locked;
  }
  locks_all_ = true;
  return {};
}

Status Window::unlock_all() {
  if (!locks_all_) return fail(Code::invalid, "this rank has not locked all ranks");
  locks_all_ = false;
  Status all;
  for (uint32_t rank = 0; rank < context_.ranks(); ++rank) {
    const Status unlocked = unlock(rank);
    if (all) all = unlocked;
  }
  return all;
}

}  // namespace spinloom::rma
