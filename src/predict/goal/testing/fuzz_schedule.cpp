// Fuzz target: schedules in every form. Any bytes are refused with an Error, or are a schedule that is the same after
// it has been written in our own form, can be counted and checked, and runs or says why not.
#include <string>
#include <string_view>

#include "base/testing/fuzz.hpp"
#include "predict/goal/loggopsim/loggopsim.hpp"
#include "predict/goal/model/model.hpp"
#include "predict/schedule/check.hpp"
#include "predict/schedule/schedule_file.hpp"
#include "predict/schedule/testing/random_schedule.hpp"

namespace {

using namespace spinloom;

// Some 500 CPUs and NICs for each rank are legal, but slow to try.
constexpr uint32_t ranks_run_max = 64;
constexpr uint64_t operations_run_max = 10'000;  // passes make many of few bytes

template <class Outcome>
void expect_sentence(const Result<Outcome>& outcome) {
  if (!outcome) SPL_ASSERT(!outcome.error().message.empty(), "an Error without a sentence");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto made = schedule::read_schedule(
      source.starts_with("SPLSCHED") ? schedule::test::with_checksum(std::string(source)) : std::string(source));
  if (!made) {
    SPL_ASSERT(!made.error().message.empty(), "an Error without a sentence");
    return -1;
  }
  const std::string written = schedule::write_schedule(*made);
  const auto again = schedule::read_schedule(written);
  SPL_ASSERT(again.ok(), "what has been written is not read: ", again.ok() ? "" : again.error().message);
  SPL_ASSERT(schedule::write_schedule(*again) == written, "other bytes");
  (void)schedule::count(*made);
  if (!schedule::check(*made) || made->ranks() > ranks_run_max) return 0;
  if (made->operations() > operations_run_max) return 0;
  expect_sentence(goal::run(*made, {}));
  expect_sentence(goal::run_loggopsim(*made, {}));
  return 0;
}

namespace spinloom::fuzz {

std::vector<Input> seeds(Random& random) {
  std::vector<Input> out;
  const auto add = [&](const std::string& bytes) { out.emplace_back(bytes.begin(), bytes.end()); };
  for (int i = 0; i < 200; ++i) {
    add(schedule::write_schedule(schedule::test::random_schedule(random, true, schedule::test::Words::all)));
    add(*schedule::print_goal(schedule::test::random_schedule(random, true, schedule::test::Words::text)));
    add(*schedule::write_goal_binary(schedule::test::random_schedule(random, true)));
  }
  add(schedule::write_schedule(schedule::test::dissemination(16)));
  return out;
}

void mutate(Random& random, Input& input) {
  if (input.size() < 8) return;
  const size_t at = random.below(input.size() - 7);
  const uint8_t filler = random.chance(1, 2) ? 0 : 255;
  std::fill_n(input.begin() + static_cast<int64_t>(at), 1 + random.below(8), filler);
}

}  // namespace spinloom::fuzz
