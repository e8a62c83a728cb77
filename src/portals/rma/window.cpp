#include "portals/rma/window.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

#include "portals/rma/window_words.hpp"

namespace spinloom::rma {

Window::Window(Context& context, std::span<const uint32_t> members)
    : context_(context),
      members_(members.begin(), members.end()),
      places_(context.ranks(), nowhere),
      lock_states_(new LockState[members.size()]),
      started_epochs_(members.size()),
      exposed_epochs_(members.size()) {
  for (uint32_t place = 0; place < size(); ++place) places_[members_[place]] = place;
  own_place_ = places_[context.rank()];
  words_.reset(new uint64_t[word_count()]());
}

uint64_t Window::word_count() const {
  uint32_t rounds = 0;
  while (uint64_t{1} << rounds < size()) ++rounds;
  return fence_index(rounds);
}
uint64_t Window::posted_index(uint32_t place) const { return words::first_place + place; }
uint64_t Window::completed_index(uint32_t place) const { return words::first_place + size() + place; }
uint64_t Window::fence_index(uint32_t round) const { return words::first_place + uint64_t{2} * size() + round; }

uint64_t Window::word(uint64_t index) const {
  return std::atomic_ref<uint64_t>(words_[index]).load(std::memory_order_acquire);
}

Status Window::add_one(uint32_t place, uint64_t word, uint32_t count) {
  return context_.add_one(control_keys_.at(place), word * sizeof(uint64_t), count);
}

Result<Window::Part> Window::make_part(Context& context, std::span<const uint32_t> members,
                                       std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices) {
  std::vector<uint32_t> sorted(members.begin(), members.end());
  std::ranges::sort(sorted);
  if (!sorted.empty() && sorted.back() >= context.ranks()) {
    return fail(Code::invalid, "rank ", sorted.back(), " of ", context.ranks());
  }
  if (std::ranges::adjacent_find(sorted) != sorted.end()) return fail(Code::invalid, "a rank is in the group twice");
  if (!std::ranges::binary_search(sorted, context.rank())) {
    return fail(Code::invalid, "this rank is not in the group of its window");
  }
  std::unique_ptr<Window> window(new Window(context, members));
  if (const Status prepared = window->set_up(std::move(pieces), rights, notices); !prepared) {
    std::ignore = window->drop();
    return prepared.error();
  }
  Part part;
  const KeyText memory = encode_key(window->keys_.front());
  const KeyText control = encode_key(window->control_keys_.front());
  std::memcpy(part.text.data(), memory.data(), memory.size());
  std::memcpy(part.text.data() + memory.size(), control.data(), control.size());
  window->keys_.clear();
  window->control_keys_.clear();
  part.window = std::move(window);
  return part;
}

Status Window::join(std::span<const Text> texts) {
  if (is_joined()) return fail(Code::invalid, "the window has been joined already");
  std::vector<Key> keys;
  std::vector<Key> control_keys;
  for (uint32_t place = 0; place < size(); ++place) {
    KeyText memory{};
    KeyText control{};
    std::memcpy(memory.data(), texts[place].data(), memory.size());
    std::memcpy(control.data(), texts[place].data() + memory.size(), control.size());
    const auto key = decode_key(memory);
    const auto control_key = decode_key(control);
    if (!key || !control_key || key->rank != members_[place] || control_key->rank != members_[place]) {
      return fail(Code::fault, "rank ", members_[place], " could not make its part of the window");
    }
    keys.push_back(*key);
    control_keys.push_back(*control_key);
  }
  keys_ = std::move(keys);
  control_keys_ = std::move(control_keys);
  return {};
}

Result<std::unique_ptr<Window>> Window::make(Context& context, std::vector<spin::IovecElement> pieces, uint32_t rights,
                                             Notices notices) {
  std::vector<uint32_t> members(context.ranks());
  std::iota(members.begin(), members.end(), 0);
  // A rank that cannot make its part sends bytes that are no keys, so that the others do not wait for it.
  auto own = make_part(context, members, std::move(pieces), rights, notices);
  const Text none{};
  static_assert(sizeof(Text) <= Context::allgather_bytes_max, "both keys of a rank are told at once");
  const auto all = context.allgather(own ? own->text : none);
  if (!own) return own.error();
  Status met = all ? Status{} : Status(all.error());
  if (met) {
    std::vector<Text> texts(members.size());
    std::memcpy(texts.data(), all->data(), all->size());
    met = own->window->join(texts);
  }
  if (met) return std::move(own->window);
  std::ignore = own->window->drop();
  return met.error();
}

Status Window::set_up(std::vector<spin::IovecElement> pieces, uint32_t rights, Notices notices) {
  SPL_ASSIGN(memory_, context_.add_memory(std::move(pieces), notices));
  SPL_ASSIGN(const Key key, context_.share(*memory_, rights));
  SPL_ASSIGN(control_,
             context_.add_memory({{reinterpret_cast<uint8_t*>(words_.get()), word_count() * sizeof(uint64_t)}},
                                 Notices::none, true));
  SPL_ASSIGN(const Key control, context_.share(*control_, right_atomic));
  keys_.push_back(key);
  control_keys_.push_back(control);
  return {};
}

bool Window::is_open() const {
  return is_started_ || is_posted_ || fence_.is_open ||
         std::any_of(lock_states_.get(), lock_states_.get() + size(),
                     [](const LockState& one) { return one.kind != Lock::none; });
}

Status Window::free() {
  Status fenced = fence();
  std::ignore = drop();
  return fenced;
}

Status Window::drop() {
  Status all;
  for (Memory** const memory : {&memory_, &control_}) {
    if (*memory == nullptr) continue;
    const Status removed = context_.remove(**memory);
    if (all) all = removed;
    *memory = nullptr;
  }
  return all;
}

Result<uint32_t> Window::place_of(uint32_t rank) const {
  if (!is_joined()) return fail(Code::invalid, "the window has not been joined");
  if (!has_member(rank)) return fail(Code::invalid, "rank ", rank, " is not one of the window's ", size());
  return places_[rank];
}

Status Window::check(std::span<const uint32_t> group) const {
  for (const uint32_t rank : group) {
    SPL_TRY(place_of(rank));
    if (std::ranges::count(group, rank) > 1) return fail(Code::invalid, "rank ", rank, " is in the group twice");
  }
  return {};
}

Status Window::begin_fence() {
  SPL_TRY(place_of(context_.rank()));
  if (fence_.is_open) return fail(Code::invalid, "a fence is under way");
  SPL_TRY(context_.watch_all());
  fence_ = {};
  fence_.is_open = true;
  ++fence_count_;
  return {};
}

// In round k a member tells the one 2^k places further on, once it has heard in the rounds before.
Result<bool> Window::test_fence() {
  if (!fence_.is_open) return fail(Code::invalid, "no fence is under way");
  SPL_TRY(context_.progress());
  if (!fence_.has_flushed) {
    // Waits for this rank's messages to the words of others, too, so that the others may drop their parts.
    if (!context_.is_control_quiet()) return false;
    if (!std::ranges::all_of(members_, [&](uint32_t rank) { return context_.is_quiet(rank); })) return false;
    for (const uint32_t rank : members_) {
      const Status flushed = context_.flush(rank);
      if (fence_.flush_result) fence_.flush_result = flushed;
    }
    fence_.has_flushed = true;
  }
  for (; uint64_t{1} << fence_.round < size(); ++fence_.round, fence_.has_sent = false) {
    if (!fence_.has_sent) {
      const uint64_t next = (uint64_t{own_place_} + (uint64_t{1} << fence_.round)) % size();
      SPL_TRY(add_one(static_cast<uint32_t>(next), fence_index(fence_.round)));
      fence_.has_sent = true;
    }
    const bool somebody_is_gone = context_.is_anyone_gone();
    if (word(fence_index(fence_.round)) >= fence_count_) continue;
    if (!somebody_is_gone) return false;
    fence_.is_open = false;
    return fail(Code::fault, "a fence: a rank of the context is gone");
  }
  fence_.is_open = false;
  if (!fence_.flush_result) return fence_.flush_result.error();
  return true;
}

Status Window::fence() {
  SPL_TRY(begin_fence());
  Result<bool> ended = false;
  SPL_TRY(context_.wait_until("a fence", Context::WaitFor::targets, [&] {
    ended = test_fence();
    return !ended || *ended;
  }));
  return ended ? Status{} : Status(ended.error());
}

Status Window::post(std::span<const uint32_t> group) {
  SPL_TRY(check(group));
  if (is_posted_) return fail(Code::invalid, "the window is posted already; wait for that epoch first");
  exposure_group_.clear();
  for (const uint32_t rank : group) exposure_group_.push_back(places_[rank]);
  is_posted_ = true;
  for (const uint32_t place : exposure_group_) SPL_TRY(add_one(place, posted_index(own_place_)));
  return {};
}

bool Window::all_posted(std::span<const uint32_t> group) const {
  return std::ranges::all_of(group, [&](uint32_t rank) {
    const uint32_t place = places_[rank];
    return word(posted_index(place)) > started_epochs_[place];
  });
}

void Window::begin_access(std::span<const uint32_t> group) {
  access_group_.clear();
  for (const uint32_t rank : group) {
    access_group_.push_back(places_[rank]);
    ++started_epochs_[places_[rank]];
  }
  is_started_ = true;
}

Status Window::start(std::span<const uint32_t> group) {
  SPL_TRY(check(group));
  if (is_started_) return fail(Code::invalid, "an access epoch has been started already; complete it first");
  SPL_TRY(context_.wait_until("the start of an epoch", Context::WaitFor::all_ranks, [&] { return all_posted(group); }));
  begin_access(group);
  return {};
}

Result<bool> Window::test_start(std::span<const uint32_t> group) {
  SPL_TRY(check(group));
  if (is_started_) return fail(Code::invalid, "an access epoch has been started already; complete it first");
  SPL_TRY(context_.watch_all());
  SPL_TRY(context_.progress());
  const bool somebody_is_gone = context_.is_anyone_gone();
  if (!all_posted(group)) {
    if (somebody_is_gone) return fail(Code::fault, "the start of an epoch: a rank of the context is gone");
    return false;
  }
  begin_access(group);
  return true;
}

Status Window::complete() {
  if (!is_started_) return fail(Code::invalid, "no access epoch has been started");
  Status all;
  for (const uint32_t place : access_group_) {
    const Status flushed = context_.flush(members_[place]);
    if (all) all = flushed;
  }
  for (const uint32_t place : access_group_) SPL_TRY(add_one(place, completed_index(own_place_)));
  is_started_ = false;
  return all;
}

bool Window::all_completed() const {
  return std::ranges::all_of(exposure_group_,
                             [&](uint32_t place) { return word(completed_index(place)) > exposed_epochs_[place]; });
}

void Window::end_exposure() {
  for (const uint32_t place : exposure_group_) ++exposed_epochs_[place];
  is_posted_ = false;
}

Status Window::wait_completed() {
  if (!is_posted_) return fail(Code::invalid, "the window is not posted");
  SPL_TRY(context_.wait_until("the end of an epoch", Context::WaitFor::all_ranks, [&] { return all_completed(); }));
  end_exposure();
  return {};
}

Result<bool> Window::test_completed() {
  if (!is_posted_) return fail(Code::invalid, "the window is not posted");
  SPL_TRY(context_.progress());
  const bool somebody_is_gone = context_.is_anyone_gone();
  if (!all_completed()) {
    if (somebody_is_gone) return fail(Code::fault, "the end of an epoch: a rank of the context is gone");
    return false;
  }
  end_exposure();
  return true;
}

}  // namespace spinloom::rma
