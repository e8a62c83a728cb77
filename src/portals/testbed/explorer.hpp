// Explorer - runs programs of the model over the loopback driver, whose schedule is drawn by seed.
//
// Contract: run_loopback() gives the outcome of one schedule: the same seed gives the same one. explore() draws
//   schedules until every expected outcome has been seen, and judges each.
// Threads: one owner. Time: none.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "base/random.hpp"
#include "base/result.hpp"
#include "portals/model/outcome.hpp"
#include "portals/model/program.hpp"
#include "portals/model/rules.hpp"
#include "portals/testbed/testbed.hpp"

namespace spinloom::testbed {

// The choices of our engine among what Portals 4 allows. With these choices the model's outcomes are exactly those
// of the loopback driver.
inline constexpr model::Rules our_choices{.owes_nothing = true,
                                          .reports_nothing_at_once = true,
                                          .counts_with_event = true,
                                          .claims_hold_places = true,
                                          .search_needs_no_entry = true,
                                          .counts_wait_freely = true,
                                          .unlink_tells_of_messages = true,
                                          .unlinks_always_wait = true};

[[nodiscard]] Result<model::Outcome> run_loopback(const model::Program& program, uint64_t seed);

// Runs a program over any testbed and gives its outcome; no call of the program may wait for ever. Each rank has a
// thread of its own, or one thread calls for all of them, in an order that is drawn. If a rank of the program dies, the
// testbed serves no other program afterwards.
enum class Callers : uint8_t { one_thread, thread_each };
[[nodiscard]] Result<model::Outcome> run_program(const model::Program& program, Testbed& bed, Random& random,
                                                 Callers callers);

struct Exploration {
  uint64_t schedules = 0;
  std::set<model::Outcome> seen;
  std::set<model::Outcome> missing;  // expected, and never seen
};
// Seeds begin at 1. An outcome that is not expected is an Error that shows it and the seed.
[[nodiscard]] Result<Exploration> explore(const model::Program& program, const std::set<model::Outcome>& expected,
                                          uint64_t schedules_max);

}  // namespace spinloom::testbed
