#include "mpi/meeting/window_words.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <new>

#include "base/shared_heap.hpp"

namespace spinloom::mpi {
namespace {

struct Retired {
  WindowWords words;
  size_t ranks = 0;
};

// Never destroyed: the heap may have ended before.
std::vector<Retired>& retired_words() {
  static auto* const retired = new std::vector<Retired>;
  return *retired;
}

}  // namespace

WindowWords::~WindowWords() {
  if (words_ != nullptr) (void)process_heap().release(words_);
}

WindowWords WindowWords::make(size_t ranks) {
  WindowWords made;
  auto& retired = retired_words();
  const auto left = std::ranges::find_if(retired, [ranks](const Retired& each) {
    return each.ranks == ranks && each.words.words()->left.load(std::memory_order_acquire) + 1 >= ranks;
  });
  void* start = nullptr;
  if (left != retired.end()) {
    made = std::move(left->words);
    start = made.words();
    retired.erase(left);
  } else {
    start = process_heap().allocate(bytes_of(ranks));
  }
  if (start == nullptr) return made;
  made.words_ = new (start) Words{};
  for (size_t peer = 0; peer < ranks; ++peer) new (&made.words_->of(peer)) ForPeer{};
  return made;
}

void WindowWords::retire(WindowWords words, size_t ranks) {
  if (words.words() != nullptr) retired_words().push_back({std::move(words), ranks});
}

WindowMeeting::Sleeper::Sleeper(const WindowMeeting& meeting, std::optional<size_t> lock_of)
    : own_(meeting.own()), waiters_(lock_of ? &meeting.words_[*lock_of]->waiters : nullptr) {
  seen_ = own_.bell.load(std::memory_order_seq_cst);
  own_.sleepers.fetch_add(1, std::memory_order_seq_cst);
  if (waiters_ != nullptr) waiters_->fetch_add(1, std::memory_order_seq_cst);
}

WindowMeeting::Sleeper::~Sleeper() {
  if (waiters_ != nullptr) waiters_->fetch_sub(1, std::memory_order_relaxed);
  own_.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void WindowMeeting::Sleeper::sleep() const {
  const timespec most{0, sleep_ns_max};
  syscall(SYS_futex, &own_.bell, FUTEX_WAIT, seen_, &most, nullptr, 0);
}

void WindowMeeting::ring(size_t rank) const {
  WindowWords::Words& words = *words_[rank];
  if (words.sleepers.load(std::memory_order_seq_cst) == 0) return;
  words.bell.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &words.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void WindowMeeting::ring_all() const {
  for (size_t rank = 0; rank < words_.size(); ++rank) {
    if (rank != own_) ring(rank);
  }
}

void WindowMeeting::fence_begin() {
  ++fences_;
  own().fences.store(fences_, std::memory_order_seq_cst);
  ring_all();
}

// A rank may do its part and end between the look at its word and the look at its process.
template <class HasCome>
WindowMeeting::Answer WindowMeeting::not_yet_or_dead(size_t rank, HasCome has_come) const {
  return is_alive_(rank) || has_come() ? Answer::not_yet : Answer::dead;
}

WindowMeeting::Answer WindowMeeting::fence_test() {
  for (size_t rank = 0; rank < words_.size(); ++rank) {
    const auto has_come = [&] { return words_[rank]->fences.load(std::memory_order_seq_cst) >= fences_; };
    if (!has_come()) return not_yet_or_dead(rank, has_come);
  }
  return Answer::done;
}

void WindowMeeting::post(std::span<const int> origins) {
  origins_.assign(origins.begin(), origins.end());
  for (const int origin : origins) {
    const auto rank = static_cast<size_t>(origin);
    own().of(rank).posts.store(++posted_[rank], std::memory_order_seq_cst);
    ring(rank);
  }
}

WindowMeeting::Answer WindowMeeting::completed_test() {
  for (const int origin : origins_) {
    const auto rank = static_cast<size_t>(origin);
    const auto& completions = words_[rank]->of(own_).completions;
    const auto has_come = [&] { return completions.load(std::memory_order_seq_cst) >= posted_[rank]; };
    if (!has_come()) return not_yet_or_dead(rank, has_come);
  }
  return Answer::done;
}

void WindowMeeting::start(std::span<const int> targets) {
  targets_.assign(targets.begin(), targets.end());
  for (const int target : targets) ++started_[static_cast<size_t>(target)];
}

WindowMeeting::Answer WindowMeeting::started_test() {
  for (const int target : targets_) {
    const auto rank = static_cast<size_t>(target);
    const auto& posts = words_[rank]->of(own_).posts;
    const auto has_come = [&] { return posts.load(std::memory_order_seq_cst) >= started_[rank]; };
    if (!has_come()) return not_yet_or_dead(rank, has_come);
  }
  return Answer::done;
}

void WindowMeeting::complete() {
  for (const int target : targets_) {
    const auto rank = static_cast<size_t>(target);
    own().of(rank).completions.store(started_[rank], std::memory_order_seq_cst);
    ring(rank);
  }
  targets_.clear();
}

bool WindowMeeting::free_if_dead(std::atomic<uint32_t>& holder, uint32_t seen) const {
  if (seen == own_ + 1 || is_alive_(seen - 1)) return false;
  return holder.compare_exchange_strong(seen, 0, std::memory_order_seq_cst);
}

WindowMeeting::Answer WindowMeeting::lock_test(size_t target, Kind kind) {
  WindowWords::Words& words = *words_[target];
  const auto own_mark = static_cast<uint32_t>(own_ + 1);
  if (kind == Kind::shared) {
    std::atomic<uint32_t>& reads = words.of(own_).reads;
    reads.store(1, std::memory_order_seq_cst);
    const uint32_t writer = words.writer.load(std::memory_order_seq_cst);
    if (writer == 0) return Answer::done;
    reads.store(0, std::memory_order_seq_cst);
    (void)free_if_dead(words.writer, writer);
    return Answer::not_yet;
  }
  uint32_t writer = 0;
  if (words.writer.load(std::memory_order_seq_cst) != own_mark &&
      !words.writer.compare_exchange_strong(writer, own_mark, std::memory_order_seq_cst)) {
    (void)free_if_dead(words.writer, writer);
    return Answer::not_yet;
  }
  for (size_t reader = 0; reader < words_.size(); ++reader) {
    for (std::atomic<uint32_t>* const reads : {&words.of(reader).reads, &words_[reader]->reads_all}) {
      if (reads->load(std::memory_order_seq_cst) == 0) continue;
      if (reader == own_ || is_alive_(reader)) return Answer::not_yet;
      reads->store(0, std::memory_order_seq_cst);
    }
  }
  return Answer::done;
}

WindowMeeting::Answer WindowMeeting::lock_all_test() {
  own().reads_all.store(1, std::memory_order_seq_cst);
  const bool is_free = std::ranges::all_of(
      words_, [](const WindowWords::Words* words) { return words->writer.load(std::memory_order_seq_cst) == 0; });
  if (is_free) return Answer::done;
  unlock_all();
  return Answer::not_yet;
}

void WindowMeeting::unlock_all() {
  own().reads_all.store(0, std::memory_order_seq_cst);
  const bool is_waited_for = std::ranges::any_of(
      words_, [](const WindowWords::Words* words) { return words->waiters.load(std::memory_order_seq_cst) != 0; });
  if (is_waited_for) ring_all();
}

void WindowMeeting::unlock(size_t target, Kind kind) {
  WindowWords::Words& words = *words_[target];
  if (kind == Kind::shared) {
    words.of(own_).reads.store(0, std::memory_order_seq_cst);
  } else {
    words.writer.store(0, std::memory_order_seq_cst);
  }
  if (words.waiters.load(std::memory_order_seq_cst) != 0) ring_all();
}

void WindowMeeting::leave() {
  for (size_t rank = 0; rank < words_.size(); ++rank) {
    if (rank != own_) words_[rank]->left.fetch_add(1, std::memory_order_seq_cst);
  }
}

bool WindowMeeting::begin_change(size_t target) {
  std::atomic<uint32_t>& changer = words_[target]->changer;
  uint32_t seen = 0;
  if (changer.compare_exchange_strong(seen, static_cast<uint32_t>(own_ + 1), std::memory_order_acquire)) return true;
  (void)free_if_dead(changer, seen);
  return false;
}

void WindowMeeting::end_change(size_t target) { words_[target]->changer.store(0, std::memory_order_release); }

}  // namespace spinloom::mpi
