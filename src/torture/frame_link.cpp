#include "torture/frame_link.hpp"

#include <utility>

namespace spinloom::torture {
namespace {

constexpr uint64_t flight_max = 20;
constexpr int64_t late_times_max = 12;

}  // namespace

FrameLink::FrameLink(const Config& config, uint64_t seed, FaultCounts& faults)
    : config_(config), faults_(faults), random_(seed, "frame link") {
  certain_faults_[0] = 5 + random_.below(20);
  certain_faults_[1] = 30 + random_.below(20);
}

void FrameLink::send(Time now, Frame frame) {
  const struct {
    Fault fault;
    uint32_t rate;
  } faults[] = {{Fault::drop, config_.drop},
                {Fault::duplicate, config_.duplicate},
                {Fault::reorder, config_.reorder},
                {Fault::corrupt, config_.corrupt}};
  const uint64_t number = frames_++;
  const bool is_certain = number == certain_faults_[0] || number == certain_faults_[1];
  uint64_t sum = 0;
  for (const auto& rated : faults) sum += rated.rate;
  uint64_t draw = sum == 0 ? 0 : random_.below(is_certain ? sum : 1000);
  for (const auto& [fault, rate] : faults) {
    if (draw >= rate) {
      draw -= rate;
      continue;
    }
    ++count_of(faults_, fault);
    if (fault == Fault::drop || fault == Fault::corrupt) return;
    if (fault == Fault::duplicate) launch(now, frame, false);
    return launch(now, std::move(frame), true);
  }
  launch(now, std::move(frame), false);
}

void FrameLink::launch(Time now, Frame frame, bool is_late) {
  const int64_t flight = static_cast<int64_t>(1 + random_.below(flight_max));
  in_flight_.emplace(now + Time{flight} * (is_late ? random_.between(2, late_times_max) : 1), std::move(frame));
}

std::optional<FrameLink::Frame> FrameLink::next(Time now) {
  if (earliest() > now) return std::nullopt;
  Frame frame = std::move(in_flight_.begin()->second);
  in_flight_.erase(in_flight_.begin());
  return frame;
}

}  // namespace spinloom::torture
