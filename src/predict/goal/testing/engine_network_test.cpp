// Messages through networks: by hand, and against the naive engine.
#include <gtest/gtest.h>

#include "predict/goal/patterns/patterns.hpp"
#include "predict/goal/testing/model.hpp"

namespace spinloom::goal {
namespace {

using namespace test;

TEST(Model, PacketsInNetworksAreAsTheNaiveEngineSays) {
  test::for_seeds(5000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 20), test::Sizes::brief, test::Words::all);
    Model model = random_model(random);
    model.network = random_network(random, schedule.ranks());
    compare_with_naive(schedule, model);
  });
}

TEST(Model, ASwitchThatDoesNotCutMessagesIsTheCrossbar) {
  test::for_seeds(2000, [](Random& random) {
    const Schedule schedule =
        test::random_schedule(random, random.between(1, 30), test::Sizes::usual, test::Words::all);
    Model model = random_model(random);
    Engine crossbar(schedule, model);
    model.network = network::Config{.topology = network::FatTree{.radix = 16}, .packet_bytes = 0};
    Engine tree(schedule, model);
    ASSERT_TRUE(crossbar.run());
    ASSERT_TRUE(tree.run());
    EXPECT_EQ(crossbar.outcome().finish_ps, tree.outcome().finish_ps);
  });
}

TEST(Model, OneMessageThroughANetwork) {
  // T = o + L + h hop + (s - 1) G + o, cut into packets or not.
  const auto made = schedule::read_goal(
      "num_ranks 9\nrank 0 {\nsend 10000b to 8\n}\nrank 1 {\n}\nrank 2 {\n}\nrank 3 "
      "{\n}\nrank 4 {\n}\nrank 5 {\n}\nrank 6 {\n}\nrank 7 {\n}\nrank 8 {\nrecv "
      "10000b from 0\n}\n");
  ASSERT_TRUE(made) << made.error().message;
  for (const uint64_t packet : {0, 1, 100, 4096, 10000}) {
    for (const Rate rate : {Rate(6000, 1), Rate(20, 3), Rate(0, 1)}) {
      const uint64_t bytes_ps = (9999 * static_cast<uint64_t>(rate.ps_numerator()) + rate.denominator() - 1) /
                                static_cast<uint64_t>(rate.denominator());
      Model model{.G = rate};
      model.network = network::Config{.topology = network::FatTree{.radix = 4}, .hop_ps = 700, .packet_bytes = packet};
      EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 4 * 700 + bytes_ps + o) << packet;
      model.network->topology = network::Torus{.sizes = {3, 3}};
      EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 2 * 700 + bytes_ps + o) << packet;
    }
  }
}

TEST(Model, FlowsShareALinkPacketByPacket) {
  // Ranks 0 and 1 send s bytes to ranks 2 and 3 over one link, at once. Its packets alternate: both end when 2 s bytes
  // have crossed, but for a packet. Uncut, one has the link to itself first.
  const auto made = schedule::read_goal(
      "num_ranks 4\nrank 0 {\nsend 40000b to 2\n}\nrank 1 {\nsend 40000b to 3\n}\n"
      "rank 2 {\nrecv 40000b from 0\n}\nrank 3 {\nrecv 40000b from 1\n}\n");
  ASSERT_TRUE(made);
  Model model;
  model.network = network::Config{
      .topology = network::FatTree{.radix = 4, .levels = 2, .oversubscription = 2}, .hop_ps = 0, .packet_bytes = 1000};
  const uint64_t last = o + L + 80'000 * G - G + o;
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 1000 * G, last}));
  model.network->packet_bytes = 0;
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 40'000 * G, last}));
  // Without oversubscription each has a link of its own.
  model.network->topology = network::FatTree{.radix = 4, .levels = 2};
  EXPECT_EQ(run(*made, model)->finish_ps, Times({o, o, last - 40'000 * G, last - 40'000 * G}));
}

TEST(Model, AdaptivePathsDoNotChangeTheOrderOfMessages) {
  // Two hosts at each of three switches, which two others connect. A message of rank 0 to rank 4 queues behind 200,000
  // bytes from rank 2 to rank 5. The next one leaves g later, when rank 1 keeps that way up busy, and is there first.
  const auto made = schedule::read_goal(R"(num_ranks 6
rank 0 {
w: calc 1
a: send 30000b to 4
a requires w
b: send 1b to 4
b requires a
}
rank 1 {
w: calc 200000
s: send 100000b to 3
s requires w
}
rank 2 {
send 200000b to 5
}
rank 3 {
recv 100000b from 1
}
rank 4 {
a: recv 30000b from 0
b: recv 1b from 0
c: calc 1000
c requires a
}
rank 5 {
recv 200000b from 2
}
)");
  ASSERT_TRUE(made) << made.error().message;
  Model model{.g_ps = 50'000'000, .S_bytes = UINT64_MAX};
  model.network = network::Config{.topology = network::FatTree{.radix = 4, .levels = 2},
                                  .routing = network::Routing::adaptive,
                                  .hop_ps = 0,
                                  .packet_bytes = 0};
  const auto outcome = run(*made, model);
  ASSERT_TRUE(outcome) << outcome.error().message;
  // The CPU works for the first, then for the second, and then computes.
  EXPECT_EQ(outcome->finish_ps[4], o + L + 200'000 * G + 29'999 * G + o + o + 1'000'000);
}

TEST(Model, ASinkBehindANetworkTakesItsBytesInTheSameTime) {
  // k senders of s bytes: the last byte is in (k - 1) (s G + g - G) + (s - 1) G after the first byte.
  const auto made = make_pattern("linear_gather", 9, 10000);
  Model model;
  model.network = network::Config{.topology = network::FatTree{.radix = 32}};
  EXPECT_EQ(run(*made, model)->makespan_ps, o + L + 7 * (9999 * G + g) + 9999 * G + o);
}

}  // namespace
}  // namespace spinloom::goal
