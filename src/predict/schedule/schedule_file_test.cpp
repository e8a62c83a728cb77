// Files of schedules: byte by byte, kept whole, passes, and files that are wrong or spoilt.
#include "predict/schedule/schedule_file.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/testing/folder.hpp"
#include "predict/schedule/check.hpp"
#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

using test::with_checksum;

std::string error_of(const std::string& bytes) {
  const auto made = read_schedule(bytes);
  return made.ok() ? "" : made.error().message;
}

template <class T>
std::string with(std::string bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
  return with_checksum(bytes);
}

// Ranks 0 to 3 with two operations and an edge; one rank without. Places: ranks 64, programs 84, shapes 108, operations
// from the end: 3 * 12 B, and an edge before the end of 4 B.
Schedule five_ranks() {
  Schedule schedule(5);
  Builder builder;
  const Shape put{.size = 8, .tag = 3, .kind = Kind::put, .peer = Peer::relative, .cpu = 0, .nic = 2};
  builder.add(schedule.intern_shape(put), 1);
  builder.add(schedule.intern_shape({.size = 1, .tag = 3, .kind = Kind::arrived}), 0);
  builder.require(1, 0, Awaits::start, Join::first);
  const uint32_t all[] = {0, 1, 2, 3};
  schedule.intern_for(all, builder.take());
  return schedule;
}

TEST(ScheduleFile, IsWhatTheFormatSays) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::string out;
    for (const int value : values) out.push_back(static_cast<char>(value));
    return out;
  };
  std::string expected =
      "SPLSCHED" + bytes({1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,
                          0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  expected += bytes({1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});                           // ranks
  expected += bytes({0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0});  // programs
  expected += bytes({8, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 8, 0, 0, 0});
  expected += bytes({0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});  // operations
  expected += bytes({7, 0, 0, 0});  // an edge to operation 1, the first of several, for its start
  EXPECT_EQ(write_schedule(five_ranks()), with_checksum(expected));
}

TEST(ScheduleFile, LosesNothing) {
  test::for_seeds(500, [](Random& random) {
    const Schedule schedule = test::random_schedule(random, false, test::Words::all);
    const std::string bytes = write_schedule(schedule);
    const auto again = read_schedule(bytes);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(test::difference(schedule, *again), "");
    EXPECT_EQ(write_schedule(*again), bytes);
    EXPECT_EQ(again->programs(), schedule.programs());
    EXPECT_EQ(again->shapes(), schedule.shapes());
    EXPECT_EQ(again->all_transfer_layouts(), schedule.all_transfer_layouts());
    EXPECT_EQ(again->layouts(), schedule.layouts());
  });
  EXPECT_EQ(read_schedule(write_schedule(Schedule()))->ranks(), 0U);
}

TEST(ScheduleFile, WhatIsReadMayGrow) {
  Schedule again = *read_schedule(write_schedule(five_ranks()));
  EXPECT_EQ(again.intern_shape({.size = 1, .tag = 3, .kind = Kind::arrived}), 1U);
  EXPECT_EQ(again.intern_shape({.size = 2, .tag = 3, .kind = Kind::arrived}), 2U);
  again.intern(4, again.program(0));
  EXPECT_EQ(again.number_of_program(4), again.number_of_program(0));
}

// Three passes of two operations: 1 waits for 0, and 0 of the next pass for 1. Flag 2, and `times` behind the programs.
Schedule three_passes() {
  Schedule schedule(2);
  Builder builder;
  builder.add(schedule.intern_shape({.size = 5}), 0);
  builder.add(schedule.intern_shape({.size = 6}), 0);
  builder.require(1, 0, Awaits::end);
  builder.require(2, 1, Awaits::end);
  const uint32_t all[] = {0, 1};
  schedule.intern_for(all, builder.take(3));
  return schedule;
}

TEST(ScheduleFile, KeepsPasses) {
  const std::string good = write_schedule(three_passes());
  // Head, ranks, programs, times, shapes, operations, edges.
  EXPECT_EQ(good.size(), 64U + 2 * 4 + 2 * 8 + 2 * 4 + 2 * 16 + 2 * 12 + 2 * 4);
  EXPECT_EQ(good[12], 2);
  const auto again = read_schedule(good);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->programs(), three_passes().programs());
  EXPECT_EQ(again->operations(), 12U);
  EXPECT_EQ(test::edges_of(again->program(0), 3), " 4");
  EXPECT_EQ(test::edges_of(again->program(0), 5), "");
  EXPECT_EQ(test::difference(again->unrolled(), *again), "");
  EXPECT_EQ(error_of(with(good, 92, uint32_t{0})),
            "byte 92: program 1 has 0 passes of 2 operations; there is at least one pass, and 1073741823 operations at "
            "most");
  EXPECT_EQ(error_of(with(good, 92, uint32_t{1} << 30)).substr(0, 38), "byte 92: program 1 has 1073741824 pass");
  EXPECT_EQ(error_of(with(good, 92, uint32_t{1})),
            "byte 156: program 1, operation 1: an edge to operation 2 of 2; those that wait for its end come first");
  EXPECT_EQ(error_of(with(good, 156, uint32_t{4})),
            "byte 156: program 1, operation 1: an edge back to operation 1; with several passes edges go forward");
}

TEST(ScheduleFile, FromAFileItStaysThere) {
  const TestFolder folder;
  const std::string path = folder.of("stays.spl");
  for_seeds(50, [&](Random& random) {
    const Schedule schedule = test::random_schedule(random, random.chance(1, 2), test::Words::all);
    std::ofstream(path, std::ios::binary) << write_schedule(schedule);
    const auto opened = open_schedule(path);
    ASSERT_TRUE(opened) << opened.error().message;
    for (const Program& program : opened->programs()) {
      EXPECT_TRUE(program.operations.is_borrowed() || program.size() == 0);
      EXPECT_TRUE(program.edges.is_borrowed() || program.edges.empty());
    }
    const Schedule copy = *opened;
    EXPECT_EQ(test::difference(schedule, copy), "");
    std::filesystem::remove(path);
    EXPECT_EQ(open_schedule(path).error().message, "No such file or directory");
    EXPECT_EQ(open_schedule(path).error().code, Code::invalid);
    EXPECT_EQ(test::difference(schedule, copy), "");  // the removal of the file has not changed it
  });
  EXPECT_EQ(open_schedule(testing::TempDir()).error().message, "Is a directory");
  std::ofstream(path, std::ios::binary) << "num_ranks 1\nrank 0 {\ncalc 7\n}\n";
  EXPECT_EQ(open_schedule(path)->operations(), 1U);
}

TEST(ScheduleFile, ReadingAndCheckingAskWhetherToGoOn) {
  const Schedule schedule = test::dissemination(1 << 20);
  const std::string bytes = write_schedule(schedule);
  for (uint64_t progress = 0; progress < 3; ++progress) {
    uint64_t seen = 0;
    const Watch ends = [&](uint64_t) { return seen++ < progress; };
    const Status checked = check(schedule, ends);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().message, "the check of the schedule was ended from outside");
    EXPECT_EQ(seen, progress + 1);
  }
  const Watch at_once = [](uint64_t) { return false; };
  const std::string text = "num_ranks 1\nrank 0 {\n" + std::string(size_t{1} << 21, '\n') + "}\n";
  EXPECT_TRUE(read_schedule(text, at_once));
  std::string many = "num_ranks 1\nrank 0 {\n";
  for (uint64_t one = 0; one < Progress::steps_between; ++one) many += "calc 1\n";
  EXPECT_EQ(read_schedule(many + "}\n", at_once).error().message, "reading the schedule was ended from outside");
}

TEST(ScheduleFile, AMillionRanksThatShareAProgramAreFourBytesEach) {
  const Schedule schedule = test::dissemination(1'000'000);
  const std::string bytes = write_schedule(schedule);
  EXPECT_LT(bytes.size(), 4'010'000U);
  const auto again = read_schedule(bytes);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->programs().size(), schedule.programs().size());
  EXPECT_EQ(again->operations(), schedule.operations());
}

TEST(ScheduleFile, NamesWhatIsWrongAndWhere) {
  const std::string good = write_schedule(five_ranks());
  const size_t operations = good.size() - 28;
  EXPECT_EQ(good.size(), 64U + 20 + 16 + 32 + 24 + 4);
  EXPECT_EQ(read_schedule_file("abc").error().message, "byte 0: expected a head of 64 bytes, the file has 3");
  EXPECT_EQ(error_of(good.substr(0, 20)), "byte 0: expected a head of 64 bytes, the file has 20");
  EXPECT_EQ(read_schedule_file(std::string(64, 'x')).error().message,
            "byte 0: expected 'SPLSCHED', with which our own form of schedules begins");
  EXPECT_EQ(error_of(with(good, 8, uint32_t{2})), "byte 8: the file has version 2, this reads version 1");
  EXPECT_EQ(error_of(with(good, 12, uint32_t{24})), "byte 12: flags are 24, of which only 1, 2 and 4 are known");
  EXPECT_EQ(error_of(with(good, 32, UINT64_MAX)),
            "byte 16: 5 ranks, 2 programs, 2 shapes, 0 layouts of 0 B, 18446744073709551615 operations and 1 edges do "
            "not make a file of 160 bytes");
  EXPECT_EQ(error_of(with(good, 16, UINT32_MAX)).substr(0, 26), "byte 16: 4294967295 ranks,");
  std::string damaged = good;
  damaged[70] = 1;
  EXPECT_EQ(error_of(damaged).substr(0, 43), "byte 56: the file is damaged: its checksum ");
  EXPECT_EQ(error_of(with(good, 72, uint32_t{2})), "byte 72: rank 2 has program 2, but there are 2");
  EXPECT_EQ(error_of(with(good, 92, uint32_t{3})),
            "byte 92: program 1 has 3 operations and 1 edges, but 2 and 1 are left");
  EXPECT_EQ(error_of(with(good, 92, uint32_t{1})),
            "byte 156: program 1, operation 0: an edge to operation 1 of 1; those that wait for its end come first");
  EXPECT_EQ(error_of(with(good, 112, uint8_t{9})),
            "byte 100: shape 0 is of kind 9 with peers of kind 1; kinds are 1 to 8 and 0 to 1");
  EXPECT_EQ(error_of(with(good, operations, uint32_t{2})),
            text("byte ", operations, ": program 1, operation 0: shape 2, but there are 2"));
  EXPECT_EQ(error_of(with(good, operations + 8, uint32_t{2})),
            text("byte ", operations, ": program 1, operation 0: its edges go from 0 to 2 of 1"));
  EXPECT_EQ(error_of(with(with(good, operations + 8, uint32_t{0}), operations + 20, uint32_t{0})),
            text("byte ", operations + 24, ": program 1 has 1 edges, but only 0 belong to an operation"));
}

// Two words for each shape behind the shapes, whose own bytes are 0.
TEST(ScheduleFile, NumbersOverAByteLieBesideTheShapes) {
  const Schedule schedule =
      test::read("num_ranks 2\nrank 0 {\ncalc 5 cpu 4294967295\nput 8b to 1 nic 300\n}\nrank 1 {\n}\n");
  const std::string good = write_schedule(schedule);
  EXPECT_EQ(good.substr(12, 4), std::string("\4\0\0\0", 4));
  const size_t shapes = 64 + 2 * 4 + schedule.programs().size() * 8;
  std::vector<uint32_t> beside(4);
  std::memcpy(beside.data(), good.data() + shapes + 2 * 16, 4 * sizeof(uint32_t));
  EXPECT_EQ(beside, (std::vector<uint32_t>{UINT32_MAX, 0, 0, 300}));
  const auto again = read_schedule(good);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(test::difference(schedule, *again), "");
  EXPECT_EQ(error_of(with(good, shapes + 14, uint8_t{1})),
            text("byte ", shapes, ": shape 0 has cpu 1 and nic 0 here, and others behind: with flag 4 these are 0"));
}

TEST(ScheduleFile, EveryBeginningOfAFileIsRefused) {
  std::string bytes = write_schedule(five_ranks());
  while (!bytes.empty()) {
    bytes.pop_back();
    EXPECT_FALSE(read_schedule_file(bytes).ok()) << bytes.size();
    EXPECT_FALSE(read_schedule_file(with_checksum(bytes)).ok()) << bytes.size();
  }
}

// Spoilt bytes with a right checksum are an Error with their place, or a schedule that is checked, counted and written.
TEST(ScheduleFile, SpoiltBytesAreReadOrRefused) {
  static constexpr uint64_t edges[] = {0, 1, 2, 3, 127, 255, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
  int refused = 0;
  int read = 0;
  test::for_seeds(3000, [&](Random& random) {
    std::string bytes = write_schedule(test::random_schedule(random, false, test::Words::all));
    for (uint64_t changes = random.below(3) + 1; changes > 0; --changes) {
      const size_t length = size_t{1} << random.below(4);
      const size_t at = 8 + random.below(bytes.size() - 8);
      uint64_t value = edges[random.below(std::size(edges))];
      if (random.chance(1, 2)) {
        std::memcpy(&value, bytes.data() + at, std::min(length, bytes.size() - at));
        value += random.below(5) - 2;
      }
      std::memcpy(bytes.data() + at, &value, std::min(length, bytes.size() - at));
    }
    if (random.chance(1, 10)) bytes.resize(random.below(bytes.size()));
    const auto made = read_schedule_file(with_checksum(bytes));
    if (!made) {
      ++refused;
      EXPECT_EQ(made.error().message.substr(0, 5), "byte ") << made.error().message;
      return;
    }
    ++read;
    (void)check(*made);
    (void)count(*made);
    EXPECT_TRUE(read_schedule(write_schedule(*made)).ok());
  });
  if (std::getenv("SPINLOOM_TEST_SEED") != nullptr) return;
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 300);
}

}  // namespace
}  // namespace spinloom::schedule
