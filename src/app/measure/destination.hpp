// Destination - the memory that a message lands in, with guards around it; checks every byte.
//
// Contract: made for (type, count) with seeded random contents; base() is the buffer address as given to MPI.
//   check() compares everything with the oracle.
// Invariants: (1) guard_bytes on either side belong to nobody; (2) only inject() and the simulated NIC or host write
//   here.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/result.hpp"
#include "memory/layout/oracle.hpp"
#include "portals/strategies/plan.hpp"

namespace spinloom::app {

// A change to the destination before it is compared, which proves that the comparison can fail.
enum class Inject : uint8_t {
  none,
  flip,   // one bit of one covered byte
  skip,   // one block keeps its old bytes; if every block already held the message's bytes, as flip
  stray,  // one byte of a gap or a guard is written
};

[[nodiscard]] Result<Inject> inject_named(std::string_view name);

class Destination {
 public:
  // Returns an Error if the count is negative, if a destination would be too large, or if the type has more bytes than
  // it spans. It looks at sizes only, so a type that writes some byte twice and has gaps passes.
  static Status check_span(const layout::Type& type, int64_t count);
  static Result<Destination> create(const strategies::Message& message, uint64_t seed);

  [[nodiscard]] uint8_t* base() { return bytes_.data() + base_; }
  [[nodiscard]] const std::vector<uint8_t>& bytes() const { return bytes_; }
  // Makes one change, at a place that the seed chooses; none for Inject::none.
  Status inject(Inject what, const strategies::Message& message, uint64_t seed);
  [[nodiscard]] Status check(const strategies::Message& message, std::span<const uint8_t> packed) const;

  static constexpr int64_t guard_bytes = 64;

 private:
  std::vector<uint8_t> bytes_;   // the guards and what lies between them
  std::vector<uint8_t> before_;  // bytes_ as created
  int64_t base_ = 0;  // index of the buffer address; outside the vector for types far from their base
};

// Returns `count` random bytes, a function of (seed, stream).
[[nodiscard]] std::vector<uint8_t> random_bytes(uint64_t seed, std::string_view stream, size_t count);

}  // namespace spinloom::app
