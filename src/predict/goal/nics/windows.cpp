#include "predict/goal/nics/windows.hpp"

#include <algorithm>

#include "predict/goal/nics/payloads.hpp"

namespace spinloom::goal {

using schedule::Kind;
using schedule::Schedule;
using schedule::Shape;

namespace {

// True if an operation of this kind leaves bytes at its target.
bool is_write(Kind kind) { return schedule::is_one_sided(kind) && kind != Kind::get; }

// Visits the one-sided operations and the arrivals in which the sample has a part.
template <class Visit>
void for_each_one_sided(const Schedule& schedule, const Sample& sample, Visit visit) {
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const schedule::Program& program = schedule.program(rank);
    for (uint32_t number = 0; number < program.size(); ++number) {
      const schedule::Operation& operation = program.operations[number];
      const Shape& shape = schedule.shape(operation);
      if (shape.kind != Kind::arrived && !schedule::is_one_sided(shape.kind)) continue;
      const uint32_t target = shape.kind == Kind::arrived ? rank : schedule.peer(rank, operation);
      if (sample.has(rank) || sample.has(target)) visit(rank, number, shape, target);
    }
  }
}

}  // namespace

Windows::Windows(const Schedule& schedule, bool has_memory, const Sample& sample) : sample_(sample) {
  if (std::ranges::none_of(schedule.shapes(), [](const Shape& shape) { return shape.kind > Kind::compute; })) return;
  std::vector<std::vector<uint32_t>> tags(schedule.ranks());
  for_each_one_sided(schedule, sample_, [&](uint32_t, uint32_t, const Shape& shape, uint32_t target) {
    tags[target].push_back(shape.tag);
  });
  for (std::vector<uint32_t>& rank_tags : tags) {
    std::ranges::sort(rank_tags);
    rank_tags.erase(std::ranges::unique(rank_tags).begin(), rank_tags.end());
    std::vector<Window>& windows = windows_.emplace_back(rank_tags.size());
    for (size_t number = 0; number < windows.size(); ++number) windows[number].tag = rank_tags[number];
  }
  if (!has_memory) return;
  uint64_t operations = 0;
  for (uint32_t rank = 0; rank < schedule.ranks(); ++rank) {
    first_operations_.push_back(operations);
    operations += schedule.program(rank).size();
  }
  offsets_.resize(operations);
  for_each_one_sided(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t target) {
    if (!is_write(shape.kind)) return;
    Window& window = windows_[target][window_number(target, shape.tag)];
    offsets_[first_operations_[rank] + number] = window.bytes;
    window.bytes += shape.size;
  });
  for (std::vector<Window>& rank_windows : windows_) {
    for (Window& window : rank_windows) {
      window.begin = bytes_;
      bytes_ += window.bytes;
    }
  }
}

uint32_t Windows::window_number(uint32_t rank, uint32_t tag) const {
  const auto window = std::ranges::lower_bound(windows_[rank], tag, {}, &Window::tag);
  return static_cast<uint32_t>(window - windows_[rank].begin());
}

void Windows::initialise(const Schedule& schedule, const Payloads& payloads) {
  memory_ = simulated::ZeroedBytes(bytes_);
  for_each_one_sided(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t target) {
    if (!is_write(shape.kind) || shape.kind == Kind::put) return;
    const uint8_t* const data = payloads.send_data(rank, number);
    uint8_t* const memory =
        memory_.data() + windows_[target][window_number(target, shape.tag)].begin + offset(rank, number);
    for (uint64_t byte = 0; byte < shape.size; ++byte) {
      memory[byte] = shape.kind == Kind::fetch ? data[byte] ^ initial_mask : initial_mask;
    }
  });
}

Status Windows::check(const Schedule& schedule, const Payloads& payloads) const {
  if (offsets_.empty()) return {};
  Status status;
  for_each_one_sided(schedule, sample_, [&](uint32_t rank, uint32_t number, const Shape& shape, uint32_t target) {
    if (!is_write(shape.kind) || !status) return;
    const uint8_t* const memory =
        memory_.data() + windows_[target][window_number(target, shape.tag)].begin + offset(rank, number);
    const uint8_t mask = shape.kind == Kind::atomic ? initial_mask : 0;
    status = payloads.check(memory, shape.size, target, rank, number, mask);
  });
  return status;
}

}  // namespace spinloom::goal
