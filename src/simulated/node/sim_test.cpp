// Parts of a simulated node: events, resources, PCIe, the host's cache, fetch patterns, and the host's model.
#include <gtest/gtest.h>

#include "simulated/node/event_queue.hpp"
#include "simulated/node/fetch_pattern.hpp"
#include "simulated/node/host_cache.hpp"
#include "simulated/node/host_model.hpp"
#include "simulated/node/pcie.hpp"
#include "simulated/node/profile.hpp"
#include "simulated/node/resource.hpp"
#include "simulated/node/testing/profile.hpp"

namespace spinloom::simulated {
namespace {

class Recorder final : public EventTarget {
 public:
  void on_event(uint32_t code, uint64_t argument) override { seen.push_back({code, argument}); }
  std::vector<std::pair<uint32_t, uint64_t>> seen;
};

TEST(EventQueue, RunsByTimeThenTieThenOrderOfScheduling) {
  EventQueue events;
  Recorder recorder;
  events.at(20_ps, recorder, 1, 0);
  events.at(10_ps, recorder, 2, 0);
  events.at(20_ps, recorder, 3, 0);
  events.at(10_ps, recorder, 4, 0);
  events.at(20_ps, recorder, 5, 0, 2);
  events.at(20_ps, recorder, 6, 0, 1);
  while (events.step()) {
  }
  const std::vector<std::pair<uint32_t, uint64_t>> expected{{2, 0}, {4, 0}, {1, 0}, {3, 0}, {6, 0}, {5, 0}};
  EXPECT_EQ(recorder.seen, expected);
  EXPECT_EQ(events.now(), 20_ps);
  EXPECT_THROW(events.at(19_ps, recorder, 0, 0), InternalError);
}

TEST(Resource, ServesOneAfterTheOther) {
  Resource resource;
  EXPECT_EQ(resource.serve(0_ps, 10_ps).end, 10_ps);
  const Service second = resource.serve(4_ps, 10_ps);
  EXPECT_EQ(second.start, 10_ps);
  EXPECT_EQ(second.end, 20_ps);
  EXPECT_EQ(resource.serve(50_ps, 1_ps).start, 50_ps);
  EXPECT_EQ(resource.busy(), 21_ps);
}

TEST(Channels, TakeTheOneThatIsFreeFirst) {
  Channels channels(2);
  EXPECT_EQ(channels.serve(0_ps, 10_ps).end, 10_ps);
  EXPECT_EQ(channels.serve(0_ps, 4_ps).end, 4_ps);
  EXPECT_EQ(channels.serve(0_ps, 4_ps).end, 8_ps);  // it comes behind the shorter request
}

// T = (n + ceil(n / 256) * 24) * byte_time; byte_time = 130/128 / (32 lanes * 16 Gbit/s / 8 bit) = 2031.25/128 ps
TEST(Pcie, CountsPacketOverheads) {
  const Profile profile = test_profile();
  const Pcie pcie(profile);
  const Rate byte_time = profile.pcie.byte_time;
  EXPECT_EQ(pcie.write_duration(4), byte_time.time_of(Bytes{28}));
  EXPECT_EQ(pcie.write_duration(256), byte_time.time_of(Bytes{280}));
  EXPECT_EQ(pcie.write_duration(257), byte_time.time_of(Bytes{305}));
  EXPECT_EQ(pcie.write_duration(0), byte_time.time_of(Bytes{24}));
}

TEST(HostCache, HoldsLinesWhileTheyFit) {
  HostCache cache(1024, 2, 64);  // 16 lines, 8 sets
  EXPECT_FALSE(cache.access(0, false));
  EXPECT_FALSE(cache.access(1, true));
  EXPECT_TRUE(cache.access(0, true));
  EXPECT_TRUE(cache.holds(1));
  EXPECT_FALSE(cache.holds(2));
  cache.flush();
  EXPECT_EQ(cache.writebacks(), 2u);
}

TEST(HostCache, EvictsTheLeastRecentlyUsedOfASet) {
  HostCache cache(1024, 2, 64);  // lines 0, 8 and 16 share a set of two ways
  cache.access(0, true);
  cache.access(8, false);
  EXPECT_FALSE(cache.access(16, false));  // evicts line 0, which is dirty
  EXPECT_EQ(cache.writebacks(), 1u);
  EXPECT_TRUE(cache.access(8, false));
  EXPECT_FALSE(cache.holds(0));
}

std::vector<FetchKind> classified(const std::vector<uint64_t>& lines) {
  FetchPattern pattern(64);
  std::vector<FetchKind> kinds;
  for (const uint64_t line : lines) kinds.push_back(pattern.classify(line, false));
  return kinds;
}

TEST(FetchPattern, KnowsRuleFromChance) {
  using enum FetchKind;
  EXPECT_EQ(classified({100, 101, 102}), (std::vector{scattered, streamed, streamed}));
  EXPECT_EQ(classified({100, 110, 120, 131}), (std::vector{scattered, scattered, streamed, streamed}));  // 640 B
  EXPECT_EQ(classified({100, 200, 300}), (std::vector{scattered, scattered, strided}));  // 6,400 B: no prefetcher
  // Two lines, then a jump of 63 lines: regular from the second jump on.
  EXPECT_EQ(classified({100, 101, 164, 165, 228, 229}),
            (std::vector{scattered, streamed, scattered, streamed, strided, streamed}));
  EXPECT_EQ(classified({100, 500, 300, 900}), (std::vector{scattered, scattered, scattered, scattered}));
}

TEST(FetchPattern, ANeighbourInTheCacheStandsForAPrefetcher) {
  FetchPattern pattern(64);
  EXPECT_EQ(pattern.classify(5000, true), FetchKind::streamed);
}

// T = L + lines * L / Q + evictions + refills + blocks * cycles, on numbers that can be counted by hand.
TEST(HostModel, AddsWhatItSays) {
  const Profile profile = test_profile();
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::interpret;
  work.blocks = {2, 1};
  constexpr uint64_t array = 1 << 20;
  work.touches = [](const portals::HostWork::Touch& touch) {
    touch(0, 256, false);        // four packed lines: the first is scattered
    touch(array, 128, true);     // two lines of the array: the first is scattered
    touch(array, 128, true);     // both lines are in the near cache
  };
  const HostCost cost = host_cost(profile, work);
  EXPECT_EQ(cost.lines_streamed, 4u);
  EXPECT_EQ(cost.lines_scattered, 2u);
  EXPECT_EQ(cost.lines_strided + cost.lines_refilled + cost.lines_evicted, 0u);
  EXPECT_EQ(cost.line_writebacks, 2u);
  EXPECT_EQ(cost.lines.ps, 64'000 + 4 * 64'000 / 16 + 2 * 64'000 / 5);
  // 2 blocks of vectors at 2 cycles and 1 listed at 8, at 3.4 GHz, rounded up once.
  EXPECT_EQ(cost.blocks.ps, div_ceil(12 * int64_t{1'000'000'000'000}, 3'400'000'000));
}

TEST(HostModel, ALineThatTheNearCacheLostIsRefilled) {
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::copy;
  work.touches = [](const portals::HostWork::Touch& touch) {
    for (int pass = 0; pass < 2; ++pass) {
      for (uint64_t i = 0; i < 9; ++i) touch(i * 4096, 8, true);  // nine lines in a set of eight ways
    }
  };
  const HostCost cost = host_cost(test_profile(), work);
  EXPECT_EQ(cost.line_fetches(), 9u);
  EXPECT_EQ(cost.lines_refilled, 9u);
}

portals::HostWork one_stream(uint64_t bytes) {
  portals::HostWork work;
  work.kind = portals::HostWork::Kind::copy;
  work.touches = [bytes](const portals::HostWork::Touch& touch) { touch(0, bytes, false); };
  return work;
}

TEST(HostModel, WarmWorkFetchesNothingThatTheCacheHolds) {
  const Profile profile = test_profile();
  portals::HostWork work = one_stream(64 * 1000);
  work.is_warm = true;
  const HostCost held = host_cost(profile, work);
  EXPECT_EQ(held.line_fetches(), 0u);
  EXPECT_EQ(held.lines_refilled, 1000u);
  EXPECT_GT(held.lines.ps, 0);  // the near cache has to be filled all the same
  portals::HostWork large = one_stream(static_cast<uint64_t>(2 * profile.host.cache));
  large.is_warm = true;
  EXPECT_EQ(host_cost(profile, large).line_fetches(), static_cast<uint64_t>(2 * profile.host.cache / 64));
}

// A line in the last level is never dearer than the same line from memory, however fast memory is.
TEST(HostModel, WarmIsNeverSlowerThanCold) {
  Profile profile = test_profile();
  for (const int64_t in_flight : {1, 16, 100}) {
    profile.host.streamed_in_flight = in_flight;
    profile.host.memory_byte_time = Rate{1, 1000};
    portals::HostWork work = one_stream(1 << 18);
    const Time cold = host_cost(profile, work).total();
    work.is_warm = true;
    EXPECT_LT(host_cost(profile, work).total(), cold);
  }
}

// However far a prefetcher runs ahead, lines come no faster than memory gives them, and faster memory helps.
TEST(HostModel, MoreBandwidthIsNeverSlower) {
  Profile profile = test_profile();
  profile.host.streamed_in_flight = 1000;
  const portals::HostWork work = one_stream(1 << 20);
  Time before{INT64_MAX};
  for (const int64_t ps_for_8_bytes : {800, 400, 200, 100, 50}) {
    profile.host.memory_byte_time = Rate{ps_for_8_bytes, 8};
    const Time now = host_cost(profile, work).total();
    EXPECT_LT(now, before);
    EXPECT_GE(now, profile.host.memory_byte_time.time_of(Bytes{1 << 20}));
    before = now;
  }
}

TEST(Profile, NamesAMissingAnUnknownAndAnImpossibleField) {
  ProfileFields fields = test_profile_fields();
  EXPECT_TRUE(build_profile(fields));
  ProfileFields missing = fields;
  missing.erase("match.header");
  EXPECT_NE(build_profile(missing).error().message.find("match.header is missing"), std::string::npos);
  ProfileFields unknown = fields;
  unknown["match.footer"] = int64_t{1};
  EXPECT_NE(build_profile(unknown).error().message.find("unknown field match.footer"), std::string::npos);
  ProfileFields negative = fields;
  negative["pcie.latency"] = int64_t{-1};
  EXPECT_NE(build_profile(negative).error().message.find("pcie.latency is -1"), std::string::npos);
  ProfileFields huge = fields;
  huge["memory.channels_per_hpu"] = int64_t{1} << 32;
  EXPECT_NE(build_profile(huge).error().message.find("it must be 1 to 1024"), std::string::npos);
  ProfileFields endless = fields;
  endless["match.packet"] = INT64_MAX;
  EXPECT_EQ(build_profile(endless).error().code, Code::invalid);
  ProfileFields core = fields;
  core["hpu.core"] = std::string("z80");
  EXPECT_EQ(build_profile(core).error().code, Code::unsupported);
}

}  // namespace
}  // namespace spinloom::simulated
