// GOAL's text: operations, dependencies, labels, and the errors with their lines.
#include <gtest/gtest.h>

#include "predict/schedule/goal.hpp"
#include "predict/schedule/testing/random_schedule.hpp"

namespace spinloom::schedule {
namespace {

using test::error_of;
using test::read;

// Statements of rank 0 of two, which begin on line 3.
std::string of_rank_0(std::string_view statements) {
  return text("num_ranks 2\nrank 0 {\n", statements, "}\nrank 1 {\n}\n");
}

std::string printed(std::string_view goal) {
  const auto out = print_goal(read(goal));
  return out.ok() ? *out : out.error().message;
}

// Rules: GOAL-3, GOAL-4, GOAL-6, GOAL-7, GOAL-8.
TEST(GoalText, ReadsEachOperation) {
  const Schedule schedule = read(of_rank_0("send 10b to 1\nrecv 20b from 1 tag 3 cpu 4 nic 5\ncalc 30 cpu 255\n"));
  const Program& program = schedule.program(0);
  ASSERT_EQ(program.size(), 3U);
  const Shape& send = schedule.shape(program.operations[0]);
  EXPECT_EQ(send.kind, Kind::send);
  EXPECT_EQ(send.size, 10U);
  EXPECT_EQ(send.tag, 0U);
  EXPECT_EQ(schedule.peer(0, program.operations[0]), 1U);
  const Shape& receive = schedule.shape(program.operations[1]);
  EXPECT_EQ(receive.kind, Kind::receive);
  EXPECT_EQ(receive.tag, 3U);
  EXPECT_EQ(receive.cpu, 4U);
  EXPECT_EQ(receive.nic, 5U);
  const Shape& compute = schedule.shape(program.operations[2]);
  EXPECT_EQ(compute.kind, Kind::compute);
  EXPECT_EQ(compute.size, 30U);
  EXPECT_EQ(compute.cpu, 255U);
}

// Rules: GOAL-24.
TEST(GoalText, ReadsTheLargestNumbers) {
  const Schedule schedule =
      read(of_rank_0("calc 18446744073709551615 cpu 4294967295\nsend 1b to 1 tag 4294967294 nic 4294967295\n"));
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[0]).size, UINT64_MAX);
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[0]).cpu, UINT32_MAX);
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[1]).tag, any - 1);
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[1]).nic, UINT32_MAX);
}

// Rules: GOAL-9, GOAL-10.
TEST(GoalText, MinusOneIsAny) {
  const Schedule schedule = read(of_rank_0("recv 1b from -1 tag -1\nsend 1b to 1 tag -1\n"));
  EXPECT_EQ(schedule.peer(0, schedule.program(0).operations[0]), any);
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[0]).tag, any);
  EXPECT_EQ(schedule.shape(schedule.program(0).operations[1]).tag, any);
}

// Rules: GOAL-18, GOAL-27, GOAL-28.
TEST(GoalText, ReadsDependencies) {
  const Schedule schedule = read(of_rank_0(
      "a: calc 1\nb1_X: calc 2\ncalc 3\nc: calc 4\nc requires a\nb1_X irequires a\nb1_X requires a\nc requires c\n"));
  EXPECT_EQ(test::edges_of(schedule.program(0), 0), " 3 1 start:1");
  EXPECT_EQ(test::edges_of(schedule.program(0), 3), " 3");
}

// Rules: GOAL-16, GOAL-17.
TEST(GoalText, SpaceIsNeededOnlyBehindTheFirstWord) {
  const std::string plain =
      "num_ranks 2\nrank 0 {\nl1: send 5b to 1 tag 3 cpu 1 nic 2\nl2: calc 3\nl2 requires l1\n}\n"
      "rank 1 {\n}\n";
  const std::string narrow = "num_ranks2 rank 0{l1:send5bto1tag3cpu1nic2\nl2:calc3\nl2 requiresl1\n}rank 1{}";
  EXPECT_EQ(error_of(narrow).substr(0, 21), "line 1, column 1: exp");  // num_ranks2 is one word
  const std::string wide =
      "\n \tnum_ranks \t 2\r\n\r\n rank\t0 {  \r\n l1\t:  send 5 b to\t1  tag 3 cpu 1 nic 2 \r\n"
      "\tl2 :calc 3 \r\nl2\trequires \t l1  \r\n\r\n }  \r\n rank 1 { } \r\n \r\n";
  EXPECT_EQ(printed(plain), printed(text("num_ranks 2 ", narrow.substr(narrow.find(' ') + 1))));
  EXPECT_EQ(printed(plain), printed(wide));
}

// Rules: GOAL-14, GOAL-17.
TEST(GoalText, CommentsStandWhereAStatementMayBegin) {
  const std::string goal =
      "// made by hand\n/* two\nlines */num_ranks 2\n// x\nrank 0 {// y\n/* a */ calc 1\n/**/ // b }\r\n}/* c */\n"
      "rank 1 {\n}\n// the end";
  EXPECT_EQ(printed(goal), printed(of_rank_0("calc 1\n")));
}

// Rules: GOAL-19, GOAL-20.
TEST(GoalText, LabelsAreOfOneRankAndMayBeAnyOtherWord) {
  const Schedule schedule = read(
      "num_ranks 2\nrank 0 {\nrequires: calc 1\ntag: calc 2\ntag requires requires\n}\nrank 1 {\ntag: calc 3\n}\n");
  EXPECT_EQ(test::edges_of(schedule.program(0), 0), " 1");
}

// Rules: GOAL-1, GOAL-2.
TEST(GoalText, NoRanksAndRanksWithoutOperations) {
  EXPECT_EQ(read("num_ranks 0").ranks(), 0U);
  EXPECT_EQ(printed("num_ranks 1 rank 0 {}"), "num_ranks 1\nrank 0 {\n}\n");
}

struct Wrong {
  std::string goal;
  std::string message;
};

class GoalTextErrors : public ::testing::TestWithParam<Wrong> {};

// Rules: GOAL-1, GOAL-2, GOAL-6, GOAL-8, GOAL-11, GOAL-12, GOAL-13, GOAL-15, GOAL-18, GOAL-19, GOAL-20, GOAL-21.
// Rules: GOAL-23, GOAL-24.
TEST_P(GoalTextErrors, SayWhereAndWhat) { EXPECT_EQ(error_of(GetParam().goal), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    Ranks, GoalTextErrors,
    ::testing::Values(
        Wrong{"", "line 1, column 1: expected 'num_ranks', found the end of the text"},
        Wrong{"rank 0 {\n}\n", "line 1, column 1: expected 'num_ranks', found 'rank'"},
        Wrong{"\n  calc 1\n", "line 2, column 3: expected 'num_ranks', found 'calc'"},
        Wrong{std::string("\x80"), "line 1, column 1: expected 'num_ranks', found byte 128"},
        Wrong{"num_ranks -3\n", "line 1, column 11: expected the number of ranks, found '-'"},
        Wrong{"num_ranks 1.5\nrank 0 {\n}\n", "line 1, column 12: expected 'rank 0' (num_ranks is 1), found '.'"},
        Wrong{"num_ranks 4294967296\n",
              "line 1, column 11: expected the number of ranks, found '4294967296': it is 4294967295 at most"},
        Wrong{"num_ranks 4000000000\nrank 0 {}\n",
              "line 1, column 11: num_ranks is 4000000000, but the 11 bytes of text behind it have room for 1 at most"},
        Wrong{"num_ranks 2\nrank 0 {\n}\n// rank 1\n",
              "line 5, column 1: expected 'rank 1' (num_ranks is 2), found the "
              "end of the text"},
        Wrong{"num_ranks 2\nrank 1 {\n}\nrank 0 {\n}\n",
              "line 2, column 1: expected rank 0, found rank 1: ranks come in order, from 0"},
        Wrong{"num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n",
              "line 4, column 1: expected the end of the text behind 1 ranks (num_ranks), found 'rank'"},
        Wrong{"num_ranks 1\nrank 0\n{\n}\n", "line 2, column 7: expected '{', found the end of the line"},
        Wrong{"num_ranks 1\nrank0 {\n}\n", "line 2, column 1: expected 'rank 0' (num_ranks is 1), found 'rank0'"},
        Wrong{"num_ranks 1\nrank 0 {\ncalc 1\n",
              "line 4, column 1: expected a statement or '}', found the end of the "
              "text"}));

INSTANTIATE_TEST_SUITE_P(
    Statements, GoalTextErrors,
    ::testing::Values(
        Wrong{of_rank_0("calc 5}\n"), "line 3, column 7: expected the end of the line, found '}'"},
        Wrong{of_rank_0("calc 5 // five\n"),
              "line 3, column 8: expected the end of the line, found '/': a comment has a line of its own"},
        Wrong{of_rank_0("/* calc 5\n"), "line 3, column 1: a comment begins that no '*/' ends"},
        Wrong{of_rank_0("calc\r5\n"), "line 3, column 5: expected the time of a computation, found byte 13"},
        Wrong{of_rank_0("calc -5\n"), "line 3, column 6: expected the time of a computation, found '-'"},
        Wrong{of_rank_0("calc 5.5\n"), "line 3, column 7: expected the end of the line, found '.'"},
        Wrong{of_rank_0("calc 5 nic 1\n"),
              "line 3, column 8: expected the end of the line, found 'nic': calc has cpu only"},
        Wrong{of_rank_0("calc 5 tag 1\n"),
              "line 3, column 8: expected the end of the line, found 'tag': calc has cpu only"},
        Wrong{of_rank_0("send 5 to 1\n"), "line 3, column 8: expected 'b', found 'to'"},
        Wrong{of_rank_0("send b to 1\n"), "line 3, column 6: expected a number of bytes, found 'b'"},
        Wrong{of_rank_0("send 5b from 1\n"), "line 3, column 9: expected 'to', found 'from'"},
        Wrong{of_rank_0("recv 5b to 1\n"), "line 3, column 9: expected 'from', found 'to'"},
        Wrong{of_rank_0("send 5b to -1\n"), "line 3, column 12: expected a rank, found '-'"},
        Wrong{of_rank_0("recv 5b from -2\n"), "line 3, column 14: expected a rank or -1, found '-'"},
        Wrong{of_rank_0("recv 5b from\n"), "line 3, column 13: expected a rank or -1, found the end of the line"},
        Wrong{of_rank_0("send 5b to 2\n"), "line 3, column 12: there is no rank 2: num_ranks is 2"},
        Wrong{of_rank_0("send 5b to 1 cpu 1 tag 2\n"),
              "line 3, column 20: expected the end of the line, found 'tag': the order is tag, cpu, nic"},
        Wrong{of_rank_0("send 5b to 1 nic 1 cpu 2\n"),
              "line 3, column 20: expected the end of the line, found 'cpu': the order is tag, cpu, nic"},
        Wrong{of_rank_0("send 5b to 1 cpu -1\n"), "line 3, column 18: expected the index of a CPU, found '-'"},
        Wrong{of_rank_0("push 5b to 1\n"),
              "line 3, column 6: expected ':', 'requires', 'irequires', 'anyof' or 'ianyof' behind 'push', found '5b'"},
        Wrong{of_rank_0("put 5b to -1\n"), "line 3, column 11: expected a rank, found '-'"},
        Wrong{of_rank_0("get 5b to 1\n"), "line 3, column 8: expected 'from', found 'to'"},
        Wrong{of_rank_0("atomic 5b to 1 tag -1\n"), "line 3, column 20: expected a tag, found '-'"},
        Wrong{of_rank_0("arrived 5 cpu 1\n"),
              "line 3, column 11: expected the end of the line, found 'cpu': arrived has tag only"},
        Wrong{of_rank_0("5\n"), "line 3, column 1: expected a statement or '}', found '5'"},
        Wrong{of_rank_0("rank 1 {\n"), "line 3, column 1: expected a statement or '}', found 'rank'"},
        Wrong{of_rank_0("a:\ncalc 5\n"),
              "line 3, column 3: expected 'send', 'recv', 'calc', 'put', 'get', 'atomic', 'fetch' or 'arrived', found "
              "the end of "
              "the line"},
        Wrong{of_rank_0("send: calc 5\n"), "line 3, column 5: expected a number of bytes, found ':'"},
        Wrong{of_rank_0("recv: calc 5\n"), "line 3, column 5: expected a number of bytes, found ':'"},
        Wrong{of_rank_0("calc: calc 5\n"), "line 3, column 5: expected the time of a computation, found ':'"},
        Wrong{of_rank_0("rank: calc 5\n"), "line 3, column 1: expected a statement or '}', found 'rank'"},
        Wrong{of_rank_0("num_ranks: calc 5\n"), "line 3, column 1: expected a statement or '}', found 'num_ranks'"}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, GoalTextErrors,
    ::testing::Values(
        Wrong{of_rank_0("calc 18446744073709551616\n"),
              "line 3, column 6: expected the time of a computation, found '18446744073709551616': it is "
              "18446744073709551615 at most"},
        Wrong{of_rank_0("send 99999999999999999999b to 1\n"),
              "line 3, column 6: expected a number of bytes, found '99999999999999999999': it is "
              "18446744073709551615 at most"},
        Wrong{of_rank_0("send 5b to 4294967295\n"),
              "line 3, column 12: expected a rank, found '4294967295': it is 4294967294 at most"},
        Wrong{of_rank_0("send 5b to 1 tag 4294967295\n"),
              "line 3, column 18: expected a tag or -1, found '4294967295': it is 4294967294 at most"},
        Wrong{of_rank_0("calc 5 cpu 4294967296\n"),
              "line 3, column 12: expected the index of a CPU, found '4294967296': it is 4294967295 at most"},
        Wrong{of_rank_0("send 5b to 1 nic 10000000000\n"),
              "line 3, column 18: expected the index of a NIC, found '10000000000': it is 4294967295 at most"},
        Wrong{
            of_rank_0(text("calc ", std::string(50, '1'), "\n")),
            "line 3, column 6: expected the time of a computation, found '11111111111111111111111111111111...': it is "
            "18446744073709551615 at most"}));

INSTANTIATE_TEST_SUITE_P(
    Labels, GoalTextErrors,
    ::testing::Values(
        Wrong{of_rank_0("a: calc 5\nb: calc 6\na: calc 7\n"),
              "line 5, column 1: label 'a' is already that of the operation in line 3, column 1"},
        Wrong{of_rank_0("a: calc 5\na requires b\nb: calc 6\n"),
              "line 4, column 12: label 'b' is not defined above this line in rank 0"},
        Wrong{of_rank_0("a: calc 5\nb irequires a\n"),
              "line 4, column 1: label 'b' is not defined above this line in rank 0"},
        Wrong{"num_ranks 2\nrank 0 {\na: calc 5\n}\nrank 1 {\nb: calc 6\nb requires a\n}\n",
              "line 7, column 12: label 'a' is not defined above this line in rank 1"},
        Wrong{of_rank_0("a: calc 5\na requires\n"), "line 4, column 11: expected a label, found the end of the line"},
        Wrong{of_rank_0("a: calc 5\na requires 7\n"), "line 4, column 12: expected a label, found '7'"},
        Wrong{of_rank_0("a: calc 5\na needs a\n"),
              "line 4, column 3: expected ':', 'requires', 'irequires', 'anyof' or 'ianyof' behind 'a', found 'needs'"},
        Wrong{of_rank_0("a: calc 5\na requires a a\n"), "line 4, column 14: expected the end of the line, found 'a'"},
        Wrong{
            of_rank_0(text(std::string(40, 'x'), " requires y\n")),
            "line 3, column 1: label 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not defined above this line in rank 0"}));

TEST(GoalText, NumbersThatDoNotFitAreAnOverflow) {
  EXPECT_EQ(read_goal_text(of_rank_0("calc 5 cpu 4294967296\n")).error().code, Code::overflow);
  EXPECT_EQ(read_goal_text(of_rank_0("calc\n")).error().code, Code::invalid);
}

TEST(GoalText, PrintsLabelsWhereEdgesNeedThem) {
  EXPECT_EQ(printed(of_rank_0("x: calc 1 cpu 2\ny: send 3b to 1 tag -1 nic 4\nz: recv 5b from -1 tag 6\nz irequires x\n"
                              "w: calc 7\nw requires z\n")),
            of_rank_0("l0: calc 1 cpu 2\nsend 3b to 1 tag -1 nic 4\nl2: recv 5b from -1 tag 6\nl2 irequires l0\n"
                      "l3: calc 7\nl3 requires l2\n"));
}

// Rules: GOAL-30.
TEST(GoalText, PrintKeepsTheOrderOfEdges) {
  // The edge from l0 to l2 was added before that to l1, so both lines stand behind l2.
  const std::string goal = of_rank_0("l0: calc 1\nl1: calc 2\nl2: calc 3\nl2 requires l0\nl1 requires l0\n");
  EXPECT_EQ(printed(goal), goal);
  EXPECT_EQ(test::difference(read(printed(goal)), read(goal)), "");
}

TEST(GoalText, OneSidedOperationsAreAnExtension) {
  const std::string goal =
      "num_ranks 2\nrank 0 {\nput 8b to 1 tag 4\nget 7b from 1 cpu 2 nic 1\natomic 6b to 1\nfetch 5b from 1 tag 9\n"
      "arrived 3 tag 4\narrived 1\n}\nrank 1 {\n}\n";
  EXPECT_EQ(printed(goal), goal);
  const Schedule schedule = read(goal);
  const auto said = [&](uint32_t number) { return schedule.describe(0, schedule.program(0).operations[number]); };
  EXPECT_EQ(said(0), "put of 8 B to 1 with tag 4");
  EXPECT_EQ(said(1), "get of 7 B from 1");
  EXPECT_EQ(said(2), "atomic of 6 B to 1");
  EXPECT_EQ(said(3), "fetch of 5 B from 1 with tag 9");
  EXPECT_EQ(said(4), "arrival of 3 with tag 4");
  EXPECT_EQ(write_goal_binary(schedule).error().message,
            "rank 0, operation 0: GOAL's binary form has no put; write FILE.goal, whose text has it as an extension");
}

TEST(GoalText, ItsOwnWordsMayBeLabelsAsInGoal) {
  const Schedule schedule = read("num_ranks 1\nrank 0 {\nput: calc 1\nget: put 5b to 0\nget requires put\n}\n");
  EXPECT_EQ(schedule.describe(0, schedule.program(0).operations[1]), "put of 5 B to 0");
  EXPECT_EQ(test::edges_of(schedule.program(0), 0), " 1");
}

TEST(GoalText, TheFirstOfSeveralIsAnExtension) {
  const std::string goal =
      "num_ranks 1\nrank 0 {\nl0: calc 1\nl1: calc 2\nl2: calc 3\nl2 anyof l0\nl2 ianyof l1\nl2 requires l1\n}\n";
  const Schedule schedule = read(goal);
  EXPECT_EQ(test::edges_of(schedule.program(0), 0), " any 2");
  EXPECT_EQ(test::edges_of(schedule.program(0), 1), " 2 any start:2");
  EXPECT_EQ(schedule.program(0).dependency_counts(), (std::vector<uint32_t>{0, 0, 2}));
  EXPECT_EQ(schedule.program(0).have_any_edges(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(test::difference(read(printed(goal)), schedule), "");
  EXPECT_EQ(write_goal_binary(schedule).error().message,
            "rank 0, operation 0: operation 2 waits for it or for others, and GOAL's binary form has no any-of edges; "
            "write FILE.goal, whose text has them as an extension");
}

TEST(GoalText, WhatTextCannotSayIsAnError) {
  Schedule schedule(2);
  Builder builder;
  Shape send;
  send.kind = Kind::send;
  builder.add(schedule.intern_shape(send), any);
  schedule.intern(1, builder.take());
  EXPECT_EQ(print_goal(schedule).error().message,
            "rank 1, operation 0: GOAL text has no send of 0 B to any rank: num_ranks is 2");
  builder.add(schedule.intern_shape(send), 2);
  schedule.intern(1, builder.take());
  EXPECT_EQ(print_goal(schedule).error().message,
            "rank 1, operation 0: GOAL text has no send of 0 B to 2: num_ranks is 2");
  Shape compute;
  compute.nic = 3;
  builder.add(schedule.intern_shape(compute), 0);
  schedule.intern(1, builder.take());
  EXPECT_EQ(print_goal(schedule).error().message,
            "rank 1, operation 0: GOAL has no computation with tag 0, nic 3 and peer 0: they must be 0");
}

// Rules: GOAL-32.
TEST(GoalText, WhatIsPrintedIsReadAgain) {
  test::for_seeds(300, [](Random& random) {
    const Schedule schedule = test::random_schedule(random, false, test::Words::text);
    const auto printed = print_goal(schedule);
    ASSERT_TRUE(printed.ok()) << printed.error().message;
    const auto again = read_goal(*printed);
    ASSERT_TRUE(again.ok()) << again.error().message << "\n" << *printed;
    EXPECT_EQ(test::difference(schedule, *again), "") << *printed;
  });
}

// A spoilt text is an Error with its place, or a schedule that is printed and read again.
TEST(GoalText, SpoiltTextIsReadOrRefused) {
  static constexpr std::string_view parts[] = {"rank",       "0",   "{", "}",   "\n", "\r", ":", "l1",
                                               " requires ", "-1",  "b", "tag", " ",  "/",  "*", "999999999999",
                                               "calc 5\n",   "\x80"};
  int refused = 0;
  test::for_seeds(500, [&](Random& random) {
    std::string goal = *print_goal(test::random_schedule(random));
    for (uint64_t changes = random.below(3) + 1; changes > 0; --changes) {
      const size_t at = random.below(goal.size() + 1);
      const size_t length = random.below(3) == 0 ? random.below(goal.size() - at + 1) : random.below(3);
      goal.replace(at, std::min(length, goal.size() - at), parts[random.below(std::size(parts))]);
    }
    const auto made = read_goal(goal);
    if (!made) {
      ++refused;
      EXPECT_EQ(made.error().message.substr(0, 5), "line ") << made.error().message;
      return;
    }
    EXPECT_EQ(test::difference(read(*print_goal(*made)), *made), "");
  });
  EXPECT_GT(refused, std::getenv("SPINLOOM_TEST_SEED") == nullptr ? 0 : -1);
}

TEST(GoalText, EveryBeginningOfATextIsRefused) {
  std::string goal = *print_goal(read(test::file("examples/irequires.goal")));
  while (goal.size() > 1) {
    goal.pop_back();
    EXPECT_EQ(error_of(goal).substr(0, 5), goal.ends_with('}') && goal.find("rank 2 {") != goal.npos ? "" : "line ");
  }
}

constexpr const char* examples[] = {
    "one_eager", "chain", "ping_pong",    "gap_train",     "rendezvous",  "s_boundary", "unexpected", "any_source",
    "any_tag",   "fifo",  "tags_swapped", "incast_posted", "incast_late", "fan_out",    "calc_dag",   "irequires",
    "cpus",      "nics",  "size_zero",    "binomial_8",    "dissem_8",    "ring_5",     "halo_3x3",   "deadlock"};

// Rules: GOAL-32.
TEST(GoalText, ReadsTheExamples) {
  for (const char* const name : examples) {
    SCOPED_TRACE(name);
    const Schedule schedule = read(test::file(text("examples/", name, ".goal")));
    EXPECT_GT(schedule.operations(), 0U);
    EXPECT_EQ(test::difference(read(*print_goal(schedule)), schedule), "");
  }
}

}  // namespace
}  // namespace spinloom::schedule
