// Moves random datatypes in random cuts on every path, and compares with the type map. Failures are shrunk, and print
// the command that replays them.
//
//   SPINLOOM_TEST_CUTS=10000000   how many cuts in all (make test-slow); a slice without it
//   SPINLOOM_TEST_TYPE='3 x ...'  only this message, with SPINLOOM_TEST_SEED for its cuts
//   SPINLOOM_TEST_SEED=N          where the seeds begin
#include "memory/layout/testing/differential.hpp"

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
constexpr int64_t slice_cuts = 240'000;  // takes a few seconds

std::optional<int64_t> number_from(const char* name) {
  const char* const given = std::getenv(name);
  if (given == nullptr) return std::nullopt;
  return std::strtoll(given, nullptr, 10);
}

std::string replay(const char* test, const Type& type, const test::Trial& trial) {
  return text("replay: SPINLOOM_TEST_TYPE='", trial.count, " x ", print(type), "' SPINLOOM_TEST_SEED=", trial.seed,
              " spinloom_layout_test --gtest_filter='*Differential.", test, "/0'");
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

class Differential : public ::testing::TestWithParam<int> {
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

// Rules: LAY-14, LAY-44, LAY-45.
TEST_P(Differential, Dense) {
  constexpr int cuts = 40;
  if (GetParam() == 0 && replayed(test::check_dense, "Dense", cuts)) return;
  for_cuts(slice_cuts, [&](uint64_t seed) {
    Random random(seed, "differential.dense");
    const Type type = test::random_type(random, random.between(0, 6), random.chance(1, 8) ? 2000 : 250);
    const test::Trial trial{random.between(1, 4), seed, cuts};
    const oracle::Reach reach = oracle::reach(type, trial.count);
    constexpr int64_t memory_max = 64 << 10;  // the whole memory is compared after each cut
    if (reach.last - reach.first > memory_max) return 0;
    if (!test::check_dense(type, type, trial).empty()) report(test::check_dense, "Dense", type, trial);
    return 2 * cuts;  // narrow and wide
  });
}

// Rules: LAY-56.
TEST_P(Differential, Sparse) {
  constexpr int cuts = 16;
  if (GetParam() == 0 && replayed(test::check_sparse, "Sparse", cuts)) return;
  for_cuts(slice_cuts / 8, [&](uint64_t seed) {
    Random random(seed, "differential.sparse");
    const Type type = test::random_sparse_type(random);
    const test::Trial trial{random.between(1, 3), seed, cuts};
    if (!test::check_sparse(type, type, trial).empty()) report(test::check_sparse, "Sparse", type, trial);
    return cuts;
  });
}

INSTANTIATE_TEST_SUITE_P(Shards, Differential, ::testing::Range(0, shards));

// ---- the harness itself ----

TEST(DifferentialHarness, PlacesAreThoseOfTheTypeMap) {
  test::for_seeds(3000, [](Random& random) {
    const Type type = test::random_type(random, random.between(0, 6), 300);
    SCOPED_TRACE(print(type));
    const std::vector<int64_t> map = test::byte_map(type, 1);
    for (size_t at = 0; at < map.size(); ++at) ASSERT_EQ(test::place_of(type, static_cast<int64_t>(at)), map[at]) << at;
  });
}

// The harness must find a blob whose type differs slightly.
TEST(DifferentialHarness, FindsWrongBlobs) {
  int64_t tried = 0;
  test::for_seeds(400, [&](Random& random) {
    const Type type = test::random_type(random, random.between(1, 4), 200);
    const std::vector<int64_t> map = test::byte_map(type, 2);
    for (const Type& other : test::smaller(type)) {
      if (other.size() != type.size() || test::byte_map(other, 2) == map) continue;
      ++tried;
      EXPECT_NE(test::check_dense(other, type, {2, 1, 4}), "") << print(other) << " for " << print(type);
    }
  });
  EXPECT_GT(tried, 50);
}

TEST(DifferentialHarness, ShrinksToTheCause) {
  const Type large = test::must_parse(
      "struct([(8B, 2, contig(5, int)), (100B, 3, hvector(4, 2, 77B, resized(-3B, 50B, vector(7, 1, -3, double))))])");
  const auto steps_back = [](const Type& type) {
    const std::vector<int64_t> map = test::byte_map(type, 1);
    return !std::is_sorted(map.begin(), map.end());
  };
  EXPECT_EQ(print(test::shrink(large, steps_back)), "vector(2, 1, 0, short)");
}

}  // namespace
}  // namespace spinloom::layout
