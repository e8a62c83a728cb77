// Handlers of messages of frames: header, payload and completion, and random traffic.
#include <map>

#include "base/random.hpp"
#include "nic/frames/testing/frame_bench.hpp"

namespace spinloom::frames {
namespace {

// Rules: FPS-45, FPS-46, FPS-47.
TEST(FrameMessage, HeaderAloneThenPayloadsThenCompletionWithTheLastFrame) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(true, true, true));
  for (int i = 0; i < 3; ++i) bench.arrive(Bench::frame(0, 8, i == 2, static_cast<uint32_t>(64 + i)));
  const Her header = bench.next();
  EXPECT_EQ(header.kind, HandlerKind::header);
  EXPECT_EQ(header.flags, SPL_FRAME_FIRST);
  EXPECT_TRUE(bench.running.empty());
  bench.done(header);
  ASSERT_EQ(bench.running.size(), 3u);
  std::vector<Her> payloads{bench.next(), bench.next(), bench.next()};
  EXPECT_EQ(payloads[2].flags, SPL_FRAME_LAST);
  bench.done(payloads[2]);
  bench.done(payloads[0]);
  EXPECT_TRUE(bench.running.empty());
  bench.done(payloads[1]);
  const Her completion = bench.next();
  EXPECT_EQ(completion.kind, HandlerKind::completion);
  EXPECT_EQ(completion.payload.length, 66u);
  EXPECT_EQ(completion.flags, SPL_FRAME_LAST);
  bench.done(completion);
  EXPECT_EQ(bench.nic->count(Count::messages_done), 1u);
  EXPECT_EQ(bench.nic->state().messages, 0u);
  bench.expect_quiet();
}

// Rules: FPS-48.
TEST(FrameMessage, FramesBehindTheLastBeginTheNextMessage) {
  Bench bench;
  bench.rules(1);
  bench.install(0, Bench::handlers(true, true, true));
  bench.arrive(Bench::frame(0, 8, true));
  bench.arrive(Bench::frame(0, 8, true));
  for (int message = 0; message < 2; ++message) {
    for (const HandlerKind kind : {HandlerKind::header, HandlerKind::payload, HandlerKind::completion}) {
      const Her her = bench.next();
      EXPECT_EQ(her.kind, kind);
      bench.done(her);
    }
  }
  EXPECT_EQ(bench.nic->count(Count::messages_done), 2u);
  bench.expect_quiet();
}

TEST(FrameMessage, TheHeaderHandlersVerdictHoldsForTheWholeMessage) {
  for (const uint32_t code : {uint32_t{DROP}, uint32_t{PROCEED}, uint32_t{FAIL}}) {
    Bench bench;
    bench.rules(1);
    bench.install(0, Bench::handlers(true, true, true));
    bench.arrive(Bench::frame(0, 8, false));
    bench.done(bench.next(), code);
    bench.arrive(Bench::frame(0, 8, true));
    EXPECT_EQ(bench.take<ToHost>().size(), code == PROCEED ? 2u : 0u);
    EXPECT_EQ(bench.nic->count(Count::handler_dropped), code == PROCEED ? 0u : 2u);
    const Her completion = bench.next();
    EXPECT_EQ(completion.kind, HandlerKind::completion);
    bench.done(completion);
    bench.expect_quiet();
  }
}

TEST(FrameMessage, WithoutAQueueAMessageSpillsToTheHost) {
  Limits limits;
  limits.message_queues = 2;
  limits.idle_frames = 4;
  Bench bench(limits);
  bench.rules(1);
  bench.install(0, Bench::handlers(true, true, false));
  for (uint32_t message = 0; message < 3; ++message) bench.arrive(Bench::frame(0, message, false));
  EXPECT_EQ(bench.nic->count(Count::spilled), 1u);
  EXPECT_EQ(bench.take<ToHost>().size(), 1u);
  while (!bench.running.empty()) bench.done(bench.next());
  for (int i = 0; i < 4; ++i) {  // message 0 goes on, message 1 is idle for four matched frames
    bench.arrive(Bench::frame(0, 0, false));
    bench.done(bench.next());
  }
  bench.arrive(Bench::frame(0, 3, false));
  EXPECT_EQ(bench.nic->count(Count::messages_abandoned), 1u);
  EXPECT_EQ(bench.nic->state().messages, 2u);
  while (!bench.running.empty()) bench.done(bench.next());
  bench.expect_quiet();
}

// Random messages, sizes, handler ends and orders of storing. Every frame of a message sees its payload handler once,
// between header and completion; at the end nothing is under way and the counts add up.
// Rules: FPS-45.
TEST(FrameMessage, RandomTraffic) {
  const uint64_t seed = spin::test_seed();
  Random random(seed);
  for (int round = 0; round < 60; ++round) {
    Limits limits;
    limits.hpus = static_cast<uint32_t>(1 + random.below(6));
    limits.message_queues = static_cast<uint32_t>(1 + random.below(5));
    limits.slots = {{static_cast<uint32_t>(1 + random.below(12)), 1536},
                    {static_cast<uint32_t>(1 + random.below(6)), 128}};
    limits.fairness = random.below(2) == 0 ? Fairness::oldest : Fairness::by_cycles;
    Bench bench(limits);
    bench.rules(3);
    bench.install(0, Bench::handlers(true, true, true));
    bench.install(1, Bench::handlers(false, true, random.below(2) == 0));
    bench.install(2, Bench::handlers(random.below(2) == 0, random.below(2) == 0, true));
    std::map<std::pair<uint32_t, uint32_t>, HandlerKind> newest;  // the key is the context and the message
    std::map<std::pair<uint32_t, uint32_t>, int> open;
    uint64_t arrived = 0;
    std::deque<std::vector<uint8_t>> frames;
    const auto end_one = [&] {
      const size_t which = random.below(bench.running.size());
      const Her her = bench.running[which];
      bench.running.erase(bench.running.begin() + static_cast<long>(which));
      const auto key = std::pair{her.context.value, her.message};
      if (her.kind != HandlerKind::payload) {
        ASSERT_EQ(open[key], 1) << "runs alone; " << spin::replay(seed, "frame");
      }
      --open[key];
      newest[key] = her.kind;
      const uint32_t codes[] = {SUCCESS, SUCCESS, DROP, PROCEED, FAIL};
      const bool faults = random.below(10) == 0;
      const size_t before = bench.running.size();
      bench.done(her, codes[random.below(5)], faults ? HandlerEnd::fault : HandlerEnd::returned, random.below(100));
      for (size_t i = before; i < bench.running.size(); ++i) {
        ++open[{bench.running[i].context.value, bench.running[i].message}];
      }
    };
    for (int step = 0; step < 400; ++step) {
      if (random.below(3) > 0) {
        frames.push_back(Bench::frame(static_cast<uint8_t>(random.below(4)), static_cast<uint32_t>(random.below(4)),
                                      random.below(3) == 0, static_cast<uint32_t>(48 + random.below(200))));
        ++arrived;
        const size_t before = bench.running.size();
        bench.arrive(frames.back());
        for (size_t i = before; i < bench.running.size(); ++i) {
          ++open[{bench.running[i].context.value, bench.running[i].message}];
        }
      } else if (!bench.running.empty()) {
        end_one();
      }
    }
    while (!bench.running.empty()) end_one();
    bench.expect_quiet();
    const Nic& nic = *bench.nic;
    EXPECT_EQ(nic.count(Count::received), arrived);
    EXPECT_EQ(nic.count(Count::received), nic.count(Count::bypassed) + nic.count(Count::matched));
    EXPECT_EQ(nic.count(Count::matched), nic.count(Count::spilled) + nic.count(Count::dropped_full) +
                                             nic.count(Count::frames_done) + nic.count(Count::handler_dropped) +
                                             nic.count(Count::handler_to_host))
        << spin::replay(seed, "frame");
  }
}

}  // namespace
}  // namespace spinloom::frames
