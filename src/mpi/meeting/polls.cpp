#include "mpi/meeting/polls.hpp"

namespace spinloom::mpi {
namespace {

// The fields of a state from its low end: 16 bits that count the ranks that have left, 16 that count those that have
// come, the mark, and the generation.
constexpr uint64_t field = 0xffff;
constexpr unsigned joined_shift = 16;
constexpr uint64_t one_joined = uint64_t{1} << joined_shift;
constexpr uint64_t mark = uint64_t{1} << 32;
constexpr unsigned generation_shift = 33;
constexpr uint64_t generation = uint64_t{1} << generation_shift;

constexpr uint64_t joined_ranks(uint64_t state) { return state >> joined_shift & field; }
constexpr uint64_t left_ranks(uint64_t state) { return state & field; }
constexpr uint64_t generation_of(uint64_t state) { return state & ~(generation - 1); }
constexpr uint64_t opening = field;  // the key is being written; no open ballot has this state

}  // namespace

std::optional<uint32_t> Polls::open(Key key, bool is_marked, uint64_t calls) const {
  for (uint32_t i = 0; i < most; ++i) {
    const auto number = static_cast<uint32_t>((key.low + i) % most);
    Entry& entry = table_->entries[number];
    uint64_t state = entry.state.load(std::memory_order_acquire);
    if (joined_ranks(state) != 0 || left_ranks(state) != 0) continue;
    const uint64_t new_generation = generation_of(state) + generation;
    if (!entry.state.compare_exchange_strong(state, new_generation | opening, std::memory_order_acq_rel)) continue;
    entry.low.store(key.low, std::memory_order_relaxed);
    entry.high.store(key.high, std::memory_order_relaxed);
    for (auto& first_call : ballot(number).first_call) first_call.store(0, std::memory_order_relaxed);
    count(number).store(calls, std::memory_order_relaxed);
    entry.state.store(new_generation | one_joined | (is_marked ? mark : 0), std::memory_order_release);
    table_->opened.fetch_add(1, std::memory_order_release);
    return number;
  }
  return std::nullopt;
}

std::optional<uint32_t> Polls::join(Key key, bool is_marked, uint64_t calls, uint64_t& seen) const {
  const uint64_t opened = table_->opened.load(std::memory_order_acquire);
  if (opened == seen) return std::nullopt;
  seen = opened;
  for (uint32_t i = 0; i < most; ++i) {
    const auto number = static_cast<uint32_t>((key.low + i) % most);
    Entry& entry = table_->entries[number];
    uint64_t state = entry.state.load(std::memory_order_acquire);
    while (joined_ranks(state) != 0 && entry.low.load(std::memory_order_relaxed) == key.low &&
           entry.high.load(std::memory_order_relaxed) == key.high) {
      count(number).store(calls, std::memory_order_relaxed);
      const uint64_t joined = (state | (is_marked ? mark : 0)) + one_joined;
      if (entry.state.compare_exchange_weak(state, joined, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return number;
      }
    }
  }
  return std::nullopt;
}

Polls::Turnout Polls::turnout(uint32_t number) const {
  const uint64_t state = table_->entries[number].state.load(std::memory_order_acquire);
  return {static_cast<uint32_t>(joined_ranks(state)), (state & mark) != 0,
          static_cast<uint32_t>(state >> generation_shift)};
}

void Polls::leave(uint32_t number) const {
  std::atomic<uint64_t>& state = table_->entries[number].state;
  uint64_t current = state.load(std::memory_order_acquire);
  uint64_t after = 0;
  do {
    after = left_ranks(current) + 1 == joined_ranks(current) ? generation_of(current) : current + 1;
  } while (!state.compare_exchange_weak(current, after, std::memory_order_acq_rel, std::memory_order_acquire));
}

}  // namespace spinloom::mpi
