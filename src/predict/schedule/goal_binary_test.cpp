// GOAL's binary form: byte by byte, written and read again, and what is wrong with a file.
#include <gtest/gtest.h>

#include <array>

#include "predict/schedule/goal.hpp"
#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

using test::difference;
using test::error_of;
using test::read;

uint64_t number_at(const std::string& bytes, size_t at, size_t length) {
  uint64_t value = 0;
  for (size_t i = 0; i < length; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

void put(std::string& bytes, size_t at, size_t length, uint64_t value) {
  for (size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

std::string written(std::string_view goal) { return *write_goal_binary(read(goal)); }

// The file as LogGOPSim2 would write it: 65 bytes behind each record, which may be anything.
std::string widened(const std::string& narrow, const std::string& behind = std::string(65, '\0')) {
  const auto ranks = static_cast<size_t>(number_at(narrow, 8, 4));
  std::string wide = narrow.substr(0, 14 + 16 * ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const size_t entry = 14 + 16 * rank;
    size_t at = 8 + number_at(narrow, entry, 8);
    const size_t end = 8 + number_at(narrow, entry + 8, 8);
    put(wide, entry, 8, wide.size() - 8);
    const size_t operations = number_at(narrow, at, 4);
    const size_t head = 8 + 4 * number_at(narrow, at + 4, 4);
    wide += narrow.substr(at, head);
    at += head;
    for (size_t i = 0; i < operations; ++i, at += 39) wide += narrow.substr(at, 39) + behind;
    wide += narrow.substr(at, end - at);
    put(wide, entry + 8, 8, wide.size() - 8);
  }
  return wide;
}

// Two operations of rank 0 and one of rank 1. Places: table 14, rank 0 46 (root 54, records 58 and 97, appendix 136),
// rank 1 140 (root 148, record 152), end 191.
std::string two_ranks() {
  return written(
      "num_ranks 2\nrank 0 {\na: calc 258 cpu 1\nb: send 3b to 1 tag 5 nic 2\nb requires a\n}\nrank 1 {\nrecv 3b from "
      "-1 "
      "tag -1\n}\n");
}

// Rules: GOAL-4, GOAL-5, GOAL-7, GOAL-9, GOAL-33, GOAL-34, GOAL-36, GOAL-37, GOAL-38, GOAL-39, GOAL-40, GOAL-42.
// Rules: GOAL-43.
TEST(GoalBinary, IsWhatTheFormatSays) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::string out;
    for (const int value : values) out.push_back(static_cast<char>(value));
    return out;
  };
  const std::string head = bytes({0x7f, 0x10, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 2});
  const std::string table =
      bytes({38,  0, 0, 0, 0, 0, 0, 0, 132, 0, 0, 0, 0, 0, 0, 0,    // rank 0, from byte 46 to 140
             132, 0, 0, 0, 0, 0, 0, 0, 183, 0, 0, 0, 0, 0, 0, 0});  // rank 1, from byte 140 to 191
  const std::string counts_0 = bytes({2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  const std::string calc = bytes({0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                  0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  const std::string send = bytes({1, 0, 0, 0, 1, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0,
                                  0, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  const std::string appendix = bytes({1, 0, 0, 0});
  const std::string counts_1 = bytes({1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  const std::string receive = bytes({0,   0, 0, 0, 2, 255, 255, 255, 255, 3, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255,
                                     255, 0, 0, 0, 0, 0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 0, 0, 0,   0});
  EXPECT_EQ(two_ranks(), head + table + counts_0 + calc + send + appendix + counts_1 + receive);
}

// Operations 3 and 1 wait for the end of operation 0, in the order of the lines, and 2 waits for its start. So the
// appendix is 3 1 2, and behind that the 3 that waits for the end of operation 2. Roots 38, records 42, appendix 198.
// Rules: GOAL-29, GOAL-30, GOAL-40, GOAL-41, GOAL-44.
TEST(GoalBinary, DependentsOfTheStartComeBehindThoseOfTheEnd) {
  const std::string bytes = written(
      "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nc: calc 3\nd: calc 4\nc irequires a\nd requires a\n"
      "b requires a\nd requires c\n}\n");
  ASSERT_EQ(bytes.size(), 198U + 4 * 4);
  const auto record = [&](size_t number, size_t at) { return number_at(bytes, 42 + 39 * number + at, 4); };
  for (size_t number = 0; number < 4; ++number) {
    EXPECT_EQ(record(number, 0), (std::array<uint64_t, 4>{0, 1, 1, 2}[number])) << "waits for, " << number;
  }
  EXPECT_EQ(record(0, 23), 2U);  // wait for its end
  EXPECT_EQ(record(0, 27), 0U);
  EXPECT_EQ(record(0, 31), 1U);  // wait for its start
  EXPECT_EQ(record(0, 35), 2U);
  EXPECT_EQ(record(2, 23), 1U);
  EXPECT_EQ(record(2, 27), 3U);
  for (size_t entry = 0; entry < 4; ++entry) {
    EXPECT_EQ(number_at(bytes, 198 + 4 * entry, 4), (std::array<uint64_t, 4>{3, 1, 2, 3}[entry])) << entry;
  }
}

// Rules: GOAL-51.
TEST(GoalBinary, WhatIsWrittenIsReadAgain) {
  test::for_seeds(300, [](Random& random) {
    const Schedule schedule = test::random_schedule(random);
    const auto bytes = write_goal_binary(schedule);
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    for (const std::string& form : {*bytes, widened(*bytes)}) {
      const auto again = read_goal(form);
      ASSERT_TRUE(again.ok()) << again.error().message;
      EXPECT_EQ(difference(schedule, *again), "");
    }
    EXPECT_EQ(*write_goal_binary(read(*bytes)), *bytes);
  });
}

TEST(GoalBinary, KeepsTheExamplesAndNoRanks) {
  for (const char* const name : {"irequires", "cpus", "nics", "any_tag", "halo_3x3"}) {
    const Schedule schedule = read(test::file(text("examples/", name, ".goal")));
    EXPECT_EQ(difference(read(*write_goal_binary(schedule)), schedule), "") << name;
  }
  EXPECT_EQ(read(*write_goal_binary(Schedule())).ranks(), 0U);
  EXPECT_EQ(read(*write_goal_binary(Schedule(5))).ranks(), 5U);
}

// Rules: GOAL-45.
TEST(GoalBinary, IgnoresWhatAComputationDoesNotUse) {
  std::string bytes = two_ranks();
  put(bytes, 58 + 5, 4, 77);   // peer
  put(bytes, 58 + 17, 4, 78);  // tag
  put(bytes, 58 + 22, 1, 1);   // nic
  EXPECT_EQ(difference(read(bytes), read(two_ranks())), "");
}

// Rules: GOAL-46.
TEST(GoalBinary, FirstOfNoDependentsSaysNothing) {
  std::string bytes = two_ranks();
  put(bytes, 58 + 35, 4, 999);
  EXPECT_EQ(difference(read(bytes), read(two_ranks())), "");
}

// Rules: GOAL-34, GOAL-35.
TEST(GoalBinary, AMagicNumberThatIsNoneIsRefused) {
  std::string bytes = two_ranks();
  put(bytes, 0, 8, 2342);
  EXPECT_EQ(error_of(bytes),
            "byte 0: magic number 2342: a simulation with --save-mem has used this file up; convert the text again");
  put(bytes, 0, 8, 4224);
  EXPECT_EQ(read_goal_binary(bytes).error().message, "byte 0: expected magic number 4223, found 4224");
  EXPECT_EQ(error_of(bytes).substr(0, 45), "line 1, column 1: expected 'num_ranks', found");
  EXPECT_EQ(read_goal_binary("abc").error().message, "byte 0: expected a magic number of 8 bytes, found 3 bytes");
}

struct Spoilt {
  size_t at;
  size_t length;
  uint64_t value;
  const char* message;
};

class GoalBinaryErrors : public ::testing::TestWithParam<Spoilt> {};

// Rules: GOAL-39, GOAL-41, GOAL-42.
TEST_P(GoalBinaryErrors, SayWhereAndWhat) {
  std::string bytes = two_ranks();
  put(bytes, GetParam().at, GetParam().length, GetParam().value);
  EXPECT_EQ(error_of(bytes), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Of, GoalBinaryErrors,
    ::testing::Values(
        Spoilt{8, 4, 4000000000,
               "byte 8: num_ranks is 4000000000, but the file of 191 bytes has room for a table of 11 ranks"},
        Spoilt{14, 8, 37, "byte 14: rank 0 begins at byte 45, but the table of ranks ends at byte 46"},
        Spoilt{14, 8, 133,
               "byte 14: rank 0 lies from 133 to 132 behind the magic number: expected 8 bytes at least among 183"},
        Spoilt{
            22, 8, UINT64_MAX,
            "byte 14: rank 0 lies from 38 to 18446744073709551615 behind the magic number: expected 8 bytes at least "
            "among 183"},
        Spoilt{30, 8, 38, "byte 30: rank 1 begins at byte 46, but the rank before it ends at byte 140"},
        Spoilt{46, 4, 3,
               "byte 46: rank 0 has 94 bytes: 3 operations and 1 roots do not fit it, with records of 39 bytes and all "
               "dependents"},
        Spoilt{
            46, 4, UINT32_MAX,
            "byte 46: rank 0 has 94 bytes: 4294967295 operations and 1 roots do not fit it, with records of 39 bytes "
            "and all dependents"},
        Spoilt{
            50, 4, UINT32_MAX,
            "byte 46: rank 0 has 94 bytes: 2 operations and 4294967295 roots do not fit it, with records of 39 bytes "
            "and all dependents"},
        Spoilt{54, 4, 1,
               "byte 54: rank 0, operation 0: it waits for nothing, but is not root 0 of 1: roots come in "
               "order"},
        Spoilt{58, 4, 1,
               "byte 58: rank 0, operation 0: it is said to wait for 1 operations, but 0 have it as a "
               "dependent"},
        Spoilt{62, 1, 4, "byte 62: rank 0, operation 0: expected type 1 (send), 2 (recv) or 3 (calc), found 4"},
        Spoilt{79, 1, 9, "byte 79: rank 0, operation 0: cpu 9 and nic 0: the head says that the largest are 1 and 2"},
        Spoilt{81, 4, 2,
               "byte 46: rank 0 has 94 bytes: 2 operations and 1 roots do not fit it, with records of 39 bytes and all "
               "dependents"},
        Spoilt{85, 4, 1, "byte 58: rank 0, operation 0: dependents 1 to 2 of the appendix, which has 1"},
        Spoilt{85, 4, UINT32_MAX,
               "byte 58: rank 0, operation 0: dependents 4294967295 to 4294967296 of the appendix, which has 1"},
        Spoilt{136, 4, 2, "byte 136: rank 0, operation 0: operation 2 waits for it, but the rank has 2 operations"},
        Spoilt{136, 4, 0,
               "byte 58: rank 0, operation 0: it is said to wait for 0 operations, but 1 have it as a dependent"}));

// Rules: GOAL-39.
TEST(GoalBinary, ARootThatWaitsIsRefused) {
  std::string bytes = written("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}\n");
  bytes.insert(38, 4, '\0');
  put(bytes, 34, 4, 1);
  put(bytes, 22, 8, bytes.size() - 8);
  EXPECT_EQ(error_of(bytes), "byte 34: rank 0 has 1 roots, but 0 operations wait for nothing");
}

// Rules: GOAL-47.
TEST(GoalBinary, ReadsLogGopSim2WithoutHandlers) {
  const std::string wide = widened(two_ranks());
  EXPECT_EQ(wide.size(), two_ranks().size() + 3 * 65);
  EXPECT_EQ(difference(read(wide), read(two_ranks())), "");
}

// Its converter fills these fields in for its own types only.
// Rules: GOAL-48.
TEST(GoalBinary, ReadsWhatLayInMemoryBehindPlainOperations) {
  test::for_seeds(300, [](Random& random) {
    const Schedule schedule = test::random_schedule(random);
    std::string behind(65, '\0');
    for (char& byte : behind) byte = static_cast<char>(random.below(256));
    const auto again = read_goal(widened(*write_goal_binary(schedule), behind));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(difference(schedule, *again), "");
  });
}

// Rules: GOAL-49.
TEST(GoalBinary, NamesTheTypesThatLogGopSim2Adds) {
  const size_t record = 58 + 104;  // the send of rank 0
  std::string wide = widened(two_ranks());
  put(wide, record + 4, 1, 6);
  const auto append = read_goal(wide);
  ASSERT_FALSE(append.ok());
  EXPECT_EQ(append.error().code, Code::unsupported);
  EXPECT_EQ(append.error().message,
            "byte 166: rank 0, operation 1: type append, which LogGOPSim2 adds to GOAL: only send, recv and "
            "calc can be read");
}

// Rules: GOAL-52.
TEST(GoalBinary, EveryBeginningOfAFileIsRefused) {
  for (std::string bytes : {two_ranks(), widened(two_ranks())}) {
    while (!bytes.empty()) {
      bytes.pop_back();
      EXPECT_FALSE(read_goal_binary(bytes).ok()) << bytes.size();
    }
  }
}

// Spoilt bytes are an Error with their place, or a schedule that is written and read again.
// Rules: GOAL-52.
TEST(GoalBinary, SpoiltBytesAreReadOrRefused) {
  static constexpr uint64_t edges[] = {0, 1, 2, 3, 127, 255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
  int refused = 0;
  test::for_seeds(2000, [&](Random& random) {
    std::string bytes = *write_goal_binary(test::random_schedule(random));
    if (random.chance(1, 3)) bytes = widened(bytes);
    for (uint64_t changes = random.below(3) + 1; changes > 0; --changes) {
      const size_t length = size_t{1} << random.below(4);
      const size_t at = 8 + random.below(bytes.size() - 8);
      const uint64_t value = random.chance(1, 2)
                                 ? edges[random.below(std::size(edges))]
                                 : number_at(bytes, at, std::min(length, bytes.size() - at)) + random.below(5) - 2;
      put(bytes, at, std::min(length, bytes.size() - at), value);
    }
    const auto made = read_goal(bytes);
    if (!made) {
      ++refused;
      EXPECT_EQ(made.error().message.substr(0, 5), "byte ") << made.error().message;
      return;
    }
    EXPECT_EQ(difference(read(*write_goal_binary(*made)), *made), "");
  });
  EXPECT_GT(refused, std::getenv("SPINLOOM_TEST_SEED") == nullptr ? 0 : -1);
}

// Rules: GOAL-50.
TEST(GoalBinary, WhatItCannotSayIsAnError) {
  Schedule schedule(1);
  Builder builder;
  Shape compute;
  compute.tag = 3;
  builder.add(schedule.intern_shape(compute), 0);
  schedule.intern(0, builder.take());
  EXPECT_EQ(write_goal_binary(schedule).error().message,
            "rank 0, operation 0: GOAL has no computation with tag 3, nic 0 and peer 0: they must be 0");
  const Schedule wide =
      read("num_ranks 2\nrank 0 {\ncalc 1 cpu 255\nsend 1b to 1 cpu 256\n}\nrank 1 {\nrecv 1b from 0\n}\n");
  EXPECT_EQ(
      write_goal_binary(wide).error().message,
      "rank 0, operation 1: cpu 256 and nic 0: GOAL's binary form has numbers to 255; write FILE.goal, whose text "
      "has larger ones");
  const Schedule nics = read("num_ranks 1\nrank 0 {\nsend 1b to 0 nic 255\nrecv 1b from 0 nic 256\n}\n");
  EXPECT_EQ(write_goal_binary(nics).error().message.substr(0, 42), "rank 0, operation 1: cpu 0 and nic 256: GO");
}

}  // namespace
}  // namespace spinloom::schedule
