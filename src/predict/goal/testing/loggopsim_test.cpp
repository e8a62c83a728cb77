// The examples, errors by hand, and random schedules against the naive engine.
#include "predict/goal/loggopsim/loggopsim.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "predict/goal/testing/random_schedules.hpp"
#include "predict/schedule/goal.hpp"

namespace spinloom::goal {
namespace {

using schedule::Awaits;
using schedule::Builder;
using schedule::Kind;
using schedule::Schedule;

std::string file(const std::string& name) {
  std::ifstream stream(text(SPINLOOM_GOAL_EXAMPLES, "/", name), std::ios::binary);
  EXPECT_TRUE(stream.good()) << name;
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::string joined(const std::vector<uint64_t>& times) {
  std::string all;
  for (const uint64_t time : times) all += text(all.empty() ? "" : " ", time);
  return all;
}

// Rules: GOAL-3, GOAL-5, GOAL-10, GOAL-27, GOAL-28, GOAL-29, GOAL-53, GOAL-54, GOAL-55, GOAL-56, GOAL-57, GOAL-58.
// Rules: GOAL-59, GOAL-60, GOAL-61, GOAL-62, GOAL-63, GOAL-64, GOAL-65, GOAL-66, GOAL-69, GOAL-70, GOAL-71, GOAL-72.
// Rules: GOAL-73, GOAL-74, GOAL-75.
TEST(LogGopSim, ExamplesEndWhenLogGopSimSays) {
  std::istringstream lines(file("examples.toml"));
  std::map<std::string, LogGopSimParameters> parameters;
  std::string line;
  std::string name;
  std::set<std::string> names;
  int sets = 0;
  while (std::getline(lines, line)) {
    if (line.starts_with("[examples.")) name = line.substr(10, line.find(']') - 10);
    LogGopSimParameters p;
    char set = 0;
    if (std::sscanf(line.c_str(), "%c = { L = %lu, o = %lu, g = %lu, G = %lu, O = %lu, S = %lu }", &set, &p.L, &p.o,
                    &p.g, &p.G, &p.O, &p.S) == 7) {
      parameters[std::string(1, set)] = p;
      continue;
    }
    const size_t quote = line.find(" = \"");
    if (name.empty() || quote == std::string::npos || quote != 1) continue;
    const std::string expected = line.substr(quote + 4, line.rfind('"') - quote - 4);
    SCOPED_TRACE(text(name, " ", line.substr(0, 1)));
    const auto read = schedule::read_goal(file(text("examples/", name, ".goal")));
    ASSERT_TRUE(read) << read.error().message;
    const auto outcome = run_loggopsim(*read, parameters.at(line.substr(0, 1)));
    names.insert(name);
    ++sets;
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(joined(outcome->host_times), expected);
  }
  EXPECT_EQ(names.size(), 23);  // the one below is one more
  EXPECT_EQ(sets, 69);
}

// Rules: GOAL-79.
TEST(LogGopSim, TheDeadlockIsNamed) {
  const auto read = schedule::read_goal(file("examples/deadlock.goal"));
  ASSERT_TRUE(read) << read.error().message;
  const auto outcome = run_loggopsim(*read, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::stalled);
  EXPECT_EQ(
      outcome.error().message,
      "the schedule stalls: operation 0 of rank 1 (receive of 40 B from rank 0, tag 2) waits for a message; the "
      "message "
      "of operation 0 of rank 0 (send of 40 B to rank 1, tag 1) waits for a receive; operation 1 of rank 1 (send of 40 "
      "B to rank 2, tag 2) never begins: it waits for operation 0, which never ends; operation 1 of rank 2 (receive of "
      "40 B from rank 1, tag 2) waits for a message; in all 3 receives and messages are without a partner and 1 "
      "operations never begin");
}

// Names of operations in the order of their letters; "ab" of `edges`: b waits for the end of a.
Schedule one_rank(uint32_t operations, const std::vector<std::string>& edges) {
  Schedule schedule(2);
  Builder builder;
  for (uint32_t one = 0; one < operations; ++one) builder.add(schedule.intern_shape({.size = 5}), 0);
  for (const std::string& edge : edges) {
    builder.require(static_cast<uint32_t>(edge[1] - 'a'), static_cast<uint32_t>(edge[0] - 'a'), Awaits::end);
  }
  schedule.intern(1, builder.take());
  return schedule;
}

TEST(LogGopSim, CyclesAreNamed) {
  const auto message = [](const Schedule& schedule) {
    const auto outcome = run_loggopsim(schedule, {});
    EXPECT_FALSE(outcome);
    if (outcome) return std::string();
    EXPECT_EQ(outcome.error().code, Code::stalled);
    return outcome.error().message;
  };
  EXPECT_EQ(message(one_rank(3, {"bc", "cb"})),
            "the schedule stalls: operation 1 of rank 1 (computation of 5) never begins: it waits for operation 2, "
            "which never "
            "begins; in all 0 receives and messages are without a partner and 2 operations never begin");
  EXPECT_EQ(message(one_rank(1, {"aa"})),
            "no operation of the schedule is free at the start: operation 0 of rank 1 (computation of 5) never begins: "
            "it waits "
            "for operation 0, which never begins; in all 0 receives and messages are without a partner and 1 "
            "operations never "
            "begin");
  EXPECT_EQ(message(one_rank(0, {})), "the schedule has no operations in its 2 ranks, so nothing can begin");
  EXPECT_EQ(message(Schedule()), "the schedule has no operations in its 0 ranks, so nothing can begin");
}

TEST(LogGopSim, APeerThatIsNoRankIsAnError) {
  Schedule schedule(2);
  Builder builder;
  builder.add(schedule.intern_shape({.size = 5, .kind = Kind::send}), schedule::any);
  schedule.intern(1, builder.take());
  const auto outcome = run_loggopsim(schedule, {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Code::invalid);
  EXPECT_EQ(outcome.error().message, "operation 0 of rank 1 has the peer 4294967295, but ranks are 0 to 1");
}

// S lies between the sizes of a send and of the receive that comes later.
std::string unequal(uint64_t sent, uint64_t received) {
  const std::string goal =
      text("num_ranks 2\nrank 0 {\ns: send ", sent, "b to 1\nw: calc 50000\nc: calc 7\nc requires s\n",
           "c requires w\n}\nrank 1 {\nw: calc 100000\nr: recv ", received,
           "b from 0\nr requires w\nd: calc 3\nd requires r\n}\n");
  const auto outcome = run_loggopsim(*schedule::read_goal(goal), {.S = 100});
  return outcome ? joined(outcome->host_times) : outcome.error().message;
}

// Rules: GOAL-64, GOAL-76, GOAL-77.
TEST(LogGopSim, SizesOnBothSidesOfS) {
  // The clocks of the eager send's rank are raised to the match.
  EXPECT_EQ(unequal(8, 1000), "100000 101545");
  EXPECT_EQ(
      unequal(1000, 8),
      "the schedule stalls: operation 2 of rank 0 (computation of 7) never begins: it waits for operation 0, which "
      "never "
      "ends; 1 sends of more than S = 100 B met later receives of no more than S, so they never end; in all 0 receives "
      "and messages are without a partner and 1 operations never begin");
}

// Rules: GOAL-67, GOAL-68.
TEST(LogGopSim, RandomSchedulesAreAsTheNaiveEngineSays) {
  test::for_seeds(20'000, [](Random& random) {
    const Schedule schedule = test::random_schedule(random, random.between(1, 20));
    test::compare(schedule, test::random_parameters(random));
  });
}

// Rules: GOAL-68.
TEST(LogGopSim, LongQueuesAreAsTheNaiveEngineSays) {
  test::for_seeds(400, [](Random& random) {
    const Schedule schedule = test::random_schedule(random, random.between(50, 400));
    test::compare(schedule, test::random_parameters(random));
  });
}

}  // namespace
}  // namespace spinloom::goal
