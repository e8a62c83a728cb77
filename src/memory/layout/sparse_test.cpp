// Random datatypes that reach beyond 2^31 bytes, in random cuts, against the place of each byte by the definitions of
// the constructors. Failures are shrunk, and print the command that replays them. Types that fit in memory are moved by
// the suite over all layouts (testing/layout_ways.hpp).
//
//   SPINLOOM_TEST_CUTS=10000000   how many cuts in all (make test-slow); 30,000 without it
//   SPINLOOM_TEST_TYPE='3 x ...'  only this message, with SPINLOOM_TEST_SEED for its cuts
//   SPINLOOM_TEST_SEED=N          where the seeds begin
#include "memory/layout/testing/sparse.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "memory/layout/testing/place.hpp"
#include "memory/layout/testing/random_types.hpp"
#include "memory/layout/testing/shrink.hpp"

namespace spinloom::layout {
namespace {

using Check = std::string (*)(const Type& built, const Type& told, const test::Trial& trial);

constexpr int shards = 4;
constexpr int64_t slice_cuts = 30'000;

std::optional<int64_t> number_from(const char* name) {
  const char* const given = std::getenv(name);
  if (given == nullptr) return std::nullopt;
  return std::strtoll(given, nullptr, 10);
}

std::string replay(const char* test, const Type& type, const test::Trial& trial) {
  return text("replay: SPINLOOM_TEST_TYPE='", trial.count, " x ", print(type), "' SPINLOOM_TEST_SEED=", trial.seed,
              " spinloom_memory_layout_test --gtest_filter='*Sparse.", test, "/0'");
}

// Shrinks the failing message, then reports it.
void report(Check check, const char* test, const Type& type, test::Trial trial) {
  const auto fails = [&](const Type& candidate) { return !check(candidate, candidate, trial).empty(); };
  const Type small = test::shrink(type, fails);
  while (trial.count > 1) {
    test::Trial fewer = trial;
    --fewer.count;
    if (check(small, small, fewer).empty()) break;
    trial = fewer;
  }
  ADD_FAILURE() << trial.count << " x " << print(small) << ": " << check(small, small, trial) << '\n'
                << replay(test, small, trial);
}

// Returns true if the environment names one message, after trying it.
bool replayed(Check check, const char* test, int cuts) {
  const char* const given = std::getenv("SPINLOOM_TEST_TYPE");
  if (given == nullptr) return false;
  const std::string message(given);
  const size_t times = message.find(" x ");
  const Type type = test::must_parse(message.substr(times == std::string::npos ? 0 : times + 3));
  test::Trial trial;
  trial.count = times == std::string::npos ? 1 : std::strtoll(given, nullptr, 10);
  trial.seed = static_cast<uint64_t>(number_from("SPINLOOM_TEST_SEED").value_or(1));
  trial.cuts = cuts;
  const std::string found = check(type, type, trial);
  EXPECT_EQ(found, "") << replay(test, type, trial);
  return true;
}

class Sparse : public ::testing::TestWithParam<int> {
 protected:
  // Runs the seeds of this shard until its share of the cuts is done; body(seed) returns its number of cuts.
  template <class Body>
  static void for_cuts(int64_t all, Body&& body) {
    const int64_t share = number_from("SPINLOOM_TEST_CUTS").value_or(all) / shards;
    const auto from = static_cast<uint64_t>(number_from("SPINLOOM_TEST_SEED").value_or(1));
    int64_t done = 0;
    for (uint64_t seed = from * shards + static_cast<uint64_t>(GetParam()); done < share; seed += shards) {
      done += body(seed);
      if (HasFailure()) return;
    }
    RecordProperty("cuts", std::to_string(done));
  }
};

// Rules: LAY-56.
TEST_P(Sparse, Messages) {
  constexpr int cuts = 16;
  if (GetParam() == 0 && replayed(test::check_sparse, "Messages", cuts)) return;
  for_cuts(slice_cuts, [&](uint64_t seed) {
    Random random(seed, "sparse");
    const Type type = test::random_sparse_type(random);
    const test::Trial trial{random.between(1, 3), seed, cuts};
    if (!test::check_sparse(type, type, trial).empty()) report(test::check_sparse, "Messages", type, trial);
    return cuts;
  });
}

INSTANTIATE_TEST_SUITE_P(Shards, Sparse, ::testing::Range(0, shards));

TEST(SparsePlaces, PlacesAreThoseOfTheTypeMap) {
  test::for_seeds(3000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 6), 300);
    SCOPED_TRACE(print(type));
    const std::vector<int64_t> map = test::byte_map(type, 1);
    for (size_t at = 0; at < map.size(); ++at) ASSERT_EQ(test::place_of(type, static_cast<int64_t>(at)), map[at]) << at;
  });
}

}  // namespace
}  // namespace spinloom::layout
