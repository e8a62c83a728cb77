#include "predict/goal/nics/payloads.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;

namespace {

// Sums that do not wrap.
uint64_t saturating_sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

uint64_t rank_tag_key(uint32_t rank, uint32_t tag) { return uint64_t{rank} << 32 | tag; }

}  // namespace

uint64_t Payloads::size_memory(const Schedule& schedule, uint64_t S_bytes) {
  const uint32_t ranks = schedule.ranks();
  overflow_bytes_.assign(ranks, 0);
  largest_eager_bytes_.assign(ranks, 0);
  uint64_t operations = 0;
  uint64_t largest = 0;
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    first_offsets_.push_back(operations);  // each operation begins one byte later
    const schedule::Program& program = schedule.program(rank);
    operations += program.size();
    for (const schedule::Operation& operation : program.operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      const bool is_one_sided = schedule::is_one_sided(shape.kind);
      if (shape.kind != Kind::send && !is_one_sided) continue;
      const uint32_t target = schedule.peer(rank, operation);
      if (!sample_.has(rank) && !sample_.has(target)) continue;
      largest = std::max(largest, shape.size);
      bytes = saturating_sum(bytes, shape.size);
      if (is_one_sided || !sample_.has(target)) continue;
      if (shape.size > S_bytes) continue;
      overflow_bytes_[target] = saturating_sum(overflow_bytes_[target], shape.size);
      largest_eager_bytes_[target] = std::max(largest_eager_bytes_[target], shape.size);
      uint64_t& largest_of_tag = largest_eager_bytes_by_tag_[rank_tag_key(target, shape.tag)];
      largest_of_tag = std::max(largest_of_tag, shape.size);
    }
  }
  random_data_bytes_ = saturating_sum(operations, largest);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!sample_.has(rank)) continue;
    bytes = saturating_sum(bytes, overflow_bytes_[rank]);
    for (const schedule::Operation& operation : schedule.program(rank).operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      if (shape.kind == Kind::receive) bytes = saturating_sum(bytes, receive_bytes(rank, shape.tag));
    }
  }
  return saturating_sum(saturating_sum(bytes, windows_.bytes()), random_data_bytes_);
}

Result<Payloads> Payloads::make(const Schedule& schedule, uint64_t S_bytes, bool has_memory, const Sample& sample) {
  Payloads payloads(has_memory, sample);
  payloads.windows_ = Windows(schedule, has_memory, sample);
  if (!has_memory) return payloads;
  const uint64_t needed = payloads.size_memory(schedule, S_bytes);
  if (needed > memory_bytes_max) {
    return fail(Code::exhausted, "the messages of the schedule need ", needed, " B of memory to move really, at most ",
                memory_bytes_max,
                " B are allowed (memory_bytes_max); use --fidelity nic, shorter messages or "
                "fewer ranks");
  }
  payloads.random_data_.resize(payloads.random_data_bytes_);
  Random random(1, "goal.payloads");
  for (size_t at = 0; at < payloads.random_data_.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(payloads.random_data_.data() + at, &word, std::min(sizeof word, payloads.random_data_.size() - at));
  }
  for (const uint64_t size : payloads.overflow_bytes_) payloads.overflow_memories_.emplace_back(size);
  payloads.windows_.initialise(schedule, payloads);
  return payloads;
}

uint64_t Payloads::receive_bytes(uint32_t rank, uint32_t tag) const {
  if (!has_memory_) return unlimited_bytes;
  if (tag == schedule::any) return largest_eager_bytes_[rank];
  const auto largest = largest_eager_bytes_by_tag_.find(rank_tag_key(rank, tag));
  return largest == largest_eager_bytes_by_tag_.end() ? 0 : largest->second;
}

void Payloads::copy(simulated::ZeroedBytes& to, uint64_t from, uint64_t bytes) const {
  if (has_memory_ && bytes > 0) std::memcpy(to.data(), reinterpret_cast<const uint8_t*>(from), bytes);
}

Status Payloads::check(const uint8_t* memory, uint64_t bytes, uint32_t rank, uint32_t source, uint32_t number,
                       uint8_t mask) const {
  if (!has_memory_) return {};
  const uint8_t* const expected = send_data(source, number);
  const auto [wrong, _] = std::mismatch(expected, expected + bytes, memory,
                                        [mask](uint8_t sent, uint8_t found) { return (sent ^ mask) == found; });
  if (wrong == expected + bytes) return {};
  return fail(Code::mismatch, "byte ", wrong - expected, " of ", bytes, " of the message of operation ", number,
              " of rank ", source, " is wrong at rank ", rank);
}

}  // namespace spinloom::goal
