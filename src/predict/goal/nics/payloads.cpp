#include "predict/goal/nics/payloads.hpp"

#include <algorithm>
#include <cstring>

#include "base/random.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;

namespace {

// Sums that do not wrap.
uint64_t plus(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

uint64_t key(uint32_t rank, uint32_t tag) { return uint64_t{rank} << 32 | tag; }

}  // namespace

uint64_t Payloads::size_memory(const Schedule& schedule, uint64_t S_bytes) {
  const uint32_t ranks = schedule.ranks();
  overflow_sizes_.assign(ranks, 0);
  largest_.assign(ranks, 0);
  uint64_t operations = 0;
  uint64_t largest = 0;
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    first_.push_back(operations);
    const schedule::Program& program = schedule.program(rank);
    operations += program.size();
    for (const schedule::Operation& operation : program.operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      const bool is_one_sided = schedule::is_one_sided(shape.kind);
      if (shape.kind != Kind::send && !is_one_sided) continue;
      const uint32_t to = schedule.peer(rank, operation);
      if (!sample_.has(rank) && !sample_.has(to)) continue;
      largest = std::max(largest, shape.size);
      bytes = plus(bytes, shape.size);
      if (is_one_sided || !sample_.has(to)) continue;
      if (shape.size > S_bytes) continue;
      overflow_sizes_[to] = plus(overflow_sizes_[to], shape.size);
      largest_[to] = std::max(largest_[to], shape.size);
      uint64_t& of_tag = largest_by_tag_[key(to, shape.tag)];
      of_tag = std::max(of_tag, shape.size);
    }
  }
  text_bytes_ = plus(operations, largest);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    if (!sample_.has(rank)) continue;
    bytes = plus(bytes, overflow_sizes_[rank]);
    for (const schedule::Operation& operation : schedule.program(rank).operations) {
      const schedule::Shape& shape = schedule.shape(operation);
      if (shape.kind == Kind::receive) bytes = plus(bytes, receive_bytes(rank, shape.tag));
    }
  }
  return plus(plus(bytes, windows_.bytes()), text_bytes_);
}

Result<Payloads> Payloads::make(const Schedule& schedule, uint64_t S_bytes, bool moves, const Sample& sample) {
  Payloads made(moves, sample);
  made.windows_ = Windows(schedule, moves, sample);
  if (!moves) return made;
  const uint64_t needed = made.size_memory(schedule, S_bytes);
  if (needed > memory_bytes_most) {
    return fail(Code::exhausted, "the messages of the schedule need ", needed, " B of memory to move really, at most ",
                memory_bytes_most,
                " B are allowed (memory_bytes_most); use --fidelity nic, shorter messages or "
                "fewer ranks");
  }
  made.text_.resize(made.text_bytes_);
  Random random(1, "goal.payloads");
  for (size_t at = 0; at < made.text_.size(); at += sizeof(uint64_t)) {
    const uint64_t word = random.next();
    std::memcpy(made.text_.data() + at, &word, std::min(sizeof word, made.text_.size() - at));
  }
  for (const uint64_t size : made.overflow_sizes_) made.overflow_.emplace_back(size);
  made.windows_.make_memory(schedule, made);
  return made;
}

uint64_t Payloads::receive_bytes(uint32_t rank, uint32_t tag) const {
  if (!moves_) return unlimited_bytes;
  if (tag == schedule::any) return largest_[rank];
  const auto found = largest_by_tag_.find(key(rank, tag));
  return found == largest_by_tag_.end() ? 0 : found->second;
}

void Payloads::copy(simulated::ZeroedBytes& to, uint64_t from, uint64_t bytes) const {
  if (moves_ && bytes > 0) std::memcpy(to.data(), reinterpret_cast<const uint8_t*>(from), bytes);
}

Status Payloads::check(const uint8_t* memory, uint64_t bytes, uint32_t rank, uint32_t source, uint32_t number,
                       uint8_t mask) const {
  if (!moves_) return {};
  const uint8_t* const expected = sent(source, number);
  const auto [wrong, _] = std::mismatch(expected, expected + bytes, memory,
                                        [mask](uint8_t sent, uint8_t found) { return (sent ^ mask) == found; });
  if (wrong == expected + bytes) return {};
  return fail(Code::mismatch, "byte ", wrong - expected, " of ", bytes, " of the message of operation ", number,
              " of rank ", source, " is wrong at rank ", rank);
}

}  // namespace spinloom::goal
