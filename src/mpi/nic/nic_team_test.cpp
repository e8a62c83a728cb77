// Tests NicTeam on an engine that only writes down its calls: which schedules are made, in which order, and started.
#include "mpi/nic/nic_team.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace spinloom::mpi {
namespace {

using StartResult = NicSchedule::StartResult;
using Outcome = NicSchedule::Outcome;

struct Engine {
  std::vector<uint64_t> made;  // the bytes of each schedule
  std::vector<uint64_t> started;
  std::map<spl_schedule*, uint64_t> schedules;
  uint64_t room = UINT64_MAX;  // the number of schedules that there is room for
  bool refuses = false;
  bool is_full = false;  // no schedule finds room at its start
  std::vector<spl_schedule*> under_way;

  void end_first() { under_way.erase(under_way.begin()); }
  void end_last() { under_way.pop_back(); }
};
Engine* engine = nullptr;

int make_team(spl_oe*, uint32_t id, const ptl_rank_t*, uint32_t, spl_team** team) {
  *team = reinterpret_cast<spl_team*>(static_cast<uintptr_t>(id));
  return PTL_OK;
}
int free_team(spl_team*) { return PTL_OK; }
int collective(spl_team*, const spl_call* call, unsigned int, spl_schedule** schedule) {
  if (engine->refuses) return PTL_ARG_INVALID;
  if (engine->schedules.size() >= engine->room) return PTL_NO_SPACE;
  engine->made.push_back(call->bytes);
  *schedule = reinterpret_cast<spl_schedule*>(engine->made.size());
  engine->schedules[*schedule] = call->bytes;
  return PTL_OK;
}
int start(spl_schedule* schedule) {
  if (engine->is_full) return PTL_NO_SPACE;
  engine->started.push_back(engine->schedules.at(schedule));
  engine->under_way.push_back(schedule);
  return PTL_OK;
}
int test(spl_schedule* schedule, int* done) {
  *done = std::ranges::find(engine->under_way, schedule) == engine->under_way.end() ? 1 : 0;
  return PTL_OK;
}
int free_schedule(spl_schedule* schedule) {
  EXPECT_EQ(engine->schedules.erase(schedule), 1U);
  return PTL_OK;
}

class NicTeamTest : public testing::Test {
 protected:
  NicTeamTest() {
    engine = &engine_;
    nic_.spl_team_make = &make_team;
    nic_.spl_team_free = &free_team;
    nic_.spl_collective = &collective;
    nic_.spl_schedule_start = &start;
    nic_.spl_schedule_test = &test;
    nic_.spl_schedule_free = &free_schedule;
  }
  static NicTeam::Facts facts(uint64_t bytes) { return {SPL_BCAST, 0, bytes, PTL_SUM, PTL_DOUBLE}; }
  static NicCall call(uint64_t bytes) {
    NicCall made;
    made.call.bytes = bytes;
    return made;
  }

  Nic nic_;
  Engine engine_;
  const std::vector<uint32_t> ranks_ = {3, 5};
};

TEST_F(NicTeamTest, NumbersOfTeamsAreTakenAndGivenBack) {
  {
    const NicTeam team(nic_, 1, ranks_, 0);
    EXPECT_EQ(Nic::free_id(nic_.taken_ids()), 2U);  // 0 is nobody's
  }
  EXPECT_EQ(Nic::free_id(nic_.taken_ids()), 1U);
  Nic::Ids all{};
  all.fill(0xff);
  EXPECT_EQ(Nic::free_id(all), 0U);
}

// A call gets the schedule that its number among the calls that are alike says: what has ended at this rank does not
// count, because other ranks may see that otherwise.
TEST_F(NicTeamTest, WhichScheduleAShortCallGetsDoesNotDependOnWhatHasEnded) {
  constexpr size_t calls = 40;
  std::vector<std::vector<size_t>> numbers;
  for (const bool ends_at_once : {false, true}) {
    NicTeam team(nic_, 1, ranks_, 0);
    std::vector<NicSchedule*> seen;
    std::vector<size_t> found;
    for (size_t i = 0; i < calls; ++i) {
      const auto schedule = team.short_schedule(facts(8 * (i % 3)), {8, 8});
      if (std::ranges::find(seen, schedule.get()) == seen.end()) seen.push_back(schedule.get());
      found.push_back(static_cast<size_t>(std::ranges::find(seen, schedule.get()) - seen.begin()));
      const uint64_t turn = schedule->take_turn();
      if (!ends_at_once) continue;
      ASSERT_TRUE(schedule->may_start(turn));
      ASSERT_EQ(schedule->start(), StartResult::started);
      engine_.end_first();
      ASSERT_EQ(schedule->test(), Outcome::over);
    }
    numbers.push_back(found);
  }
  EXPECT_EQ(numbers[0], numbers[1]);
}

TEST_F(NicTeamTest, CallsOfOneScheduleTakeTurns) {
  NicTeam team(nic_, 1, ranks_, 0);
  const auto schedule = team.make(call(8), SPL_CACHED, {});
  const uint64_t first = schedule->take_turn();
  const uint64_t second = schedule->take_turn();
  EXPECT_FALSE(schedule->may_start(second));
  ASSERT_TRUE(schedule->may_start(first));
  ASSERT_EQ(schedule->start(), StartResult::started);
  EXPECT_EQ(schedule->test(), Outcome::under_way);
  EXPECT_FALSE(schedule->may_start(second));
  engine_.end_first();
  EXPECT_EQ(schedule->test(), Outcome::over);
  EXPECT_TRUE(schedule->may_start(second));
}

TEST_F(NicTeamTest, AScheduleThatFindsNoRoomAtItsStartKeepsItsTurn) {
  NicTeam team(nic_, 1, ranks_, 0);
  const auto schedule = team.make(call(8), SPL_CACHED, {});
  const uint64_t first = schedule->take_turn();
  const uint64_t second = schedule->take_turn();
  engine_.is_full = true;
  EXPECT_EQ(schedule->start(), StartResult::no_room);
  EXPECT_TRUE(schedule->may_start(first));
  EXPECT_FALSE(schedule->may_start(second));
  engine_.is_full = false;
  EXPECT_EQ(schedule->start(), StartResult::started);
  engine_.end_first();
  EXPECT_EQ(schedule->test(), Outcome::over);
  EXPECT_TRUE(schedule->may_start(second));
}

// The n-th schedule of one rank belongs to the n-th of another, so that a later one must wait for room, too.
TEST_F(NicTeamTest, SchedulesWithoutRoomAreMadeLaterInTheirOrder) {
  NicTeam team(nic_, 1, ranks_, 0);
  engine_.room = 1;
  auto first = team.make(call(1), SPL_ONCE, {});
  auto second = team.make(call(2), SPL_ONCE, {});
  engine_.room = 2;
  const auto third = team.make(call(3), SPL_ONCE, {});
  EXPECT_EQ(engine_.made, (std::vector<uint64_t>{1}));
  EXPECT_FALSE(third->may_start(third->take_turn()));
  team.advance();
  EXPECT_EQ(engine_.made, (std::vector<uint64_t>{1, 2}));
  first.reset();
  team.advance();
  EXPECT_EQ(engine_.made, (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(NicTeamTest, ARefusedScheduleFailsItsCalls) {
  NicTeam team(nic_, 1, ranks_, 0);
  engine_.refuses = true;
  const auto schedule = team.make(call(1), SPL_ONCE, {});
  for (int calls = 0; calls < 2; ++calls) {
    ASSERT_TRUE(schedule->may_start(schedule->take_turn()));
    EXPECT_EQ(schedule->start(), StartResult::failed);
  }
}

// A team keeps schedules of 16 kinds: with one more, the kind that was used longest ago goes. A schedule that is under
// way stays until it has ended.
TEST_F(NicTeamTest, OldSchedulesGoWhenTheyHaveEnded) {
  NicTeam team(nic_, 1, ranks_, 0);
  auto oldest = team.short_schedule(facts(0), {8, 8});
  for (uint64_t i = 1; i < 16; ++i) (void)team.short_schedule(facts(i), {8, 8});
  EXPECT_EQ(engine_.schedules.size(), 16U);
  (void)team.short_schedule(facts(16), {8, 8});
  EXPECT_EQ(engine_.schedules.size(), 17U);
  oldest.reset();
  EXPECT_EQ(engine_.schedules.size(), 16U);
  team.retire();
  EXPECT_EQ(engine_.schedules.size(), 0U);
}

TEST_F(NicTeamTest, MemoryOfItsOwnStandsInForTheCallers) {
  NicTeam team(nic_, 1, ranks_, 0);
  uint8_t mine = 0;
  NicCall wanted = call(100);
  wanted.call.send = &mine;
  const auto schedule = team.make(std::move(wanted), SPL_ONCE, {.send = 0, .receive = 100});
  EXPECT_EQ(schedule->send(), &mine);
  EXPECT_NE(schedule->receive(), nullptr);
}

}  // namespace
}  // namespace spinloom::mpi
