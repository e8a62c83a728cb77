#include "predict/goal/nics/windows.hpp"

#include <algorithm>

#include "predict/goal/nics/payloads.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;
using schedule::Shape;

namespace {

// True if such an operation leaves bytes at its target.
bool writes(Kind kind) { return schedule::is_one_sided(kind) && kind != Kind::get; }

// Visits the one-sided operations and the arrivals in which the sample has a part.
template <class Visit>
void for_each(const Schedule& schedule, const Sample& sample, Visit visit) {
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.size(); ++number) {
      const schedule::Operation& operation = program.operations[number];
      const Shape& shape = schedule.shape(operation);
      if (shape.kind != Kind::arrived && !schedule::is_one_sided(shape.kind)) continue;
      const uint32_t at = shape.kind == Kind::arrived ? rank : schedule.peer(rank, operation);
      if (sample.has(rank) || sample.has(at)) visit(rank, number, shape, at);
    }
  }
}

}  // namespace

Windows::Windows(const Schedule& schedule, bool moves, const Sample& sample) : sample_(sample) {
  if (std::ranges::none_of(schedule.shapes(), [](const Shape& shape) { return shape.kind > Kind::compute; })) return;
  std::vector<std::vector<uint32_t>> tags(schedule.ranks());
  for_each(schedule, sample_,
           [&](uint32_t, uint32_t, const Shape& shape, uint32_t at) { tags[at].push_back(shape.tag); });
  for (std::vector<uint32_t>& of_rank : tags) {
    std::ranges::sort(of_rank);
    of_rank.erase(std::ranges::unique(of_rank).begin(), of_rank.end());
    std::vector<Window>& made = windows_.emplace_back(of_rank.size());
    for (size_t number = 0; number < made.size(); ++number) made[number].tag = of_rank[number];
  }
  if (!moves) return;
  uint64_t operations = 0;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    first_.push_back(operations);
    operations += schedule.program(rank).size();
  }
  places_.resize(operations);
  for_each(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t at) {
    if (!writes(shape.kind)) return;
    Window& window = windows_[at][number_of(at, shape.tag)];
    places_[first_[rank] + number] = window.bytes;
    window.bytes += shape.size;
  });
  for (std::vector<Window>& of_rank : windows_) {
    for (Window& window : of_rank) {
      window.begin = bytes_;
      bytes_ += window.bytes;
    }
  }
}

uint32_t Windows::number_of(uint32_t rank, uint32_t tag) const {
  const auto found = std::ranges::lower_bound(windows_[rank], tag, {}, &Window::tag);
  return static_cast<uint32_t>(found - windows_[rank].begin());
}

void Windows::make_memory(const Schedule& schedule, const Payloads& payloads) {
  memory_ = simulated::ZeroedBytes(bytes_);
  for_each(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t at) {
    if (!writes(shape.kind) || shape.kind == Kind::put) return;
    const uint8_t* const text = payloads.sent(rank, number);
    uint8_t* const memory = memory_.data() + windows_[at][number_of(at, shape.tag)].begin + place(rank, number);
    for (uint64_t byte = 0; byte < shape.size; ++byte) {
      memory[byte] = shape.kind == Kind::fetch ? text[byte] ^ before_mask : before_mask;
    }
  });
}

Status Windows::check(const Schedule& schedule, const Payloads& payloads) const {
  if (places_.empty()) return {};
  Status found;
  for_each(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t at) {
    if (!writes(shape.kind) || !found) return;
    const uint8_t* const memory = memory_.data() + windows_[at][number_of(at, shape.tag)].begin + place(rank, number);
    const uint8_t mask = shape.kind == Kind::atomic ? before_mask : 0;
    found = payloads.check(memory, shape.size, at, rank, number, mask);
  });
  return found;
}

}  // namespace spinloom::goal
