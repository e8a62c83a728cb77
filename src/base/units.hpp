// Units - picoseconds, bytes and rational rates as types that cannot be confused.
//
// Contract: modelled time is a 64-bit count of picoseconds; a rate is a rational number of picoseconds per byte (or
//   per cycle); the time of n bytes is rounded up once. No floating point.
// Invariants: (1) a Rate's denominator is positive, its numerator not negative; (2) arithmetic that overflows is a bug
//   of the caller: only time_of() and time_of_cycles() check for it.
// Threads: plain values. Time: none; no clock is read.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <ostream>

#include "base/assert.hpp"

namespace spinloom {

struct Time {
  int64_t ps = 0;

  static constexpr Time never() { return {std::numeric_limits<int64_t>::max()}; }
  constexpr auto operator<=>(const Time&) const = default;
  constexpr Time operator+(Time other) const { return {ps + other.ps}; }
  constexpr Time operator-(Time other) const { return {ps - other.ps}; }
  constexpr Time& operator+=(Time other) {
    ps += other.ps;
    return *this;
  }
  constexpr Time operator*(int64_t times) const { return {ps * times}; }
};

inline std::ostream& operator<<(std::ostream& out, Time time) { return out << time.ps << " ps"; }

constexpr Time operator""_ps(unsigned long long value) { return {static_cast<int64_t>(value)}; }
constexpr Time operator""_ns(unsigned long long value) { return {static_cast<int64_t>(value) * 1000}; }
constexpr Time operator""_us(unsigned long long value) { return {static_cast<int64_t>(value) * 1000000}; }

struct Bytes {
  int64_t count = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes operator+(Bytes other) const { return {count + other.count}; }
  constexpr Bytes operator-(Bytes other) const { return {count - other.count}; }
};

inline std::ostream& operator<<(std::ostream& out, Bytes bytes) { return out << bytes.count << " B"; }

// Picoseconds per unit (a byte, a cycle) as a rational number.
class Rate {
 public:
  constexpr Rate() = default;
  constexpr Rate(int64_t ps_numerator, int64_t denominator) : numerator_ps_(ps_numerator), denominator_(denominator) {
    SPL_ASSERT(denominator > 0, "rate ", ps_numerator, "/", denominator);
    SPL_ASSERT(ps_numerator >= 0, "rate ", ps_numerator, "/", denominator);
  }
  static constexpr Rate per_byte_of(int64_t bytes_per_second) { return {1000000000000, bytes_per_second}; }
  static constexpr Rate cycle_of(int64_t hertz) { return {1000000000000, hertz}; }

  [[nodiscard]] constexpr Time time_of(Bytes bytes) const { return time_of_units(bytes.count); }
  [[nodiscard]] constexpr Time time_of_cycles(int64_t cycles) const { return time_of_units(cycles); }
  // ps_up() and ps_down() return the picoseconds of any number of units, rounded up or down.
  [[nodiscard]] constexpr unsigned __int128 ps_up(uint64_t units) const {
    return (static_cast<unsigned __int128>(units) * static_cast<uint64_t>(numerator_ps_) +
            static_cast<uint64_t>(denominator_ - 1)) /
           static_cast<uint64_t>(denominator_);
  }
  [[nodiscard]] constexpr unsigned __int128 ps_down(uint64_t units) const {
    return static_cast<unsigned __int128>(units) * static_cast<uint64_t>(numerator_ps_) /
           static_cast<uint64_t>(denominator_);
  }
  // Returns the number of whole units that fit into `time`.
  [[nodiscard]] constexpr int64_t units_in(Time time) const {
    SPL_ASSERT(numerator_ps_ > 0, "units of a rate of zero");
    return static_cast<int64_t>(static_cast<__int128>(time.ps) * denominator_ / numerator_ps_);
  }
  [[nodiscard]] constexpr int64_t ps_numerator() const { return numerator_ps_; }
  [[nodiscard]] constexpr int64_t denominator() const { return denominator_; }

 private:
  [[nodiscard]] constexpr Time time_of_units(int64_t units) const {
    const __int128 product = static_cast<__int128>(units) * numerator_ps_;
    const __int128 rounded_up = (product + denominator_ - 1) / denominator_;
    SPL_ASSERT(rounded_up <= std::numeric_limits<int64_t>::max(), "time overflows: ", units, " units");
    return {static_cast<int64_t>(rounded_up)};
  }

  int64_t numerator_ps_ = 0;
  int64_t denominator_ = 1;
};

// Returns value / divisor, rounded up, for value >= 0 and divisor > 0.
constexpr int64_t div_ceil(int64_t value, int64_t divisor) { return (value + divisor - 1) / divisor; }

}  // namespace spinloom
