// Plan - which way a message goes.
//
// Contract: choose() names the way with the least work, as far as it is open; the sentence says why. Threads: pure.
//   Time: none.
#pragma once

#include <cstdint>

#include "mpi/message.hpp"
#include "mpi/settings.hpp"

namespace spinloom::mpi {

enum class Way : uint8_t {
  pass,    // the MPI carries it
  staged,  // packed into shared memory
  mapped,  // offered where it lies
};

inline constexpr const char* cannot_be_mapped = "the buffer cannot be mapped";

struct Choice {
  Way way = Way::pass;
  const char* why = "";
};

// `can_map`: the receiver can read the buffer, and may be waited for.
[[nodiscard]] Choice choose(const Settings& settings, const Form& form, int64_t count, int64_t bytes, bool can_map);

}  // namespace spinloom::mpi
