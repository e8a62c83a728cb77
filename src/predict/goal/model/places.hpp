// Places - the CPUs and NICs that a schedule names, numbered without gaps.
//
// Contract: cpu() and nic() give the place, from 0 on in the order of the numbers, of a CPU or NIC that a Shape names;
//   an engine keeps state for places only, so that CPU 4294967295 costs as much as CPU 0. check_places() is an error
//   where all ranks together would have more than `places_max`.
// Threads: plain values. Time: none.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "predict/schedule/schedule.hpp"

namespace spinloom::goal {

inline constexpr uint64_t places_max = uint64_t{1} << 28;

class Places {
 public:
  explicit Places(const schedule::Schedule& schedule);

  // There is at least one of each.
  [[nodiscard]] uint32_t cpus() const { return static_cast<uint32_t>(cpus_.size()); }
  [[nodiscard]] uint32_t nics() const { return static_cast<uint32_t>(nics_.size()); }
  [[nodiscard]] uint32_t cpu(const schedule::Shape& shape) const { return place_of(cpus_, shape.cpu); }
  [[nodiscard]] uint32_t nic(const schedule::Shape& shape) const { return place_of(nics_, shape.nic); }

 private:
  [[nodiscard]] static uint32_t place_of(const std::vector<uint32_t>& numbers, uint32_t number);

  std::vector<uint32_t> cpus_;  // ascending
  std::vector<uint32_t> nics_;
};

[[nodiscard]] Status check_places(const schedule::Schedule& schedule);

}  // namespace spinloom::goal
