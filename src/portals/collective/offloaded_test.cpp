// Collective operations on NICs of the loopback driver, in random orders, compared with plain references.
#include "portals/collective/offloaded.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.hpp"
#include "base/testing/seeds.hpp"
#include "portals/collective/call.hpp"
#include "portals/collective/testing/call.hpp"
#include "portals/testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

struct Rank {
  std::unique_ptr<portals::Interface> interface;
  std::unique_ptr<Endpoint> endpoint;
  Endpoint::Team team;
  test::Memory send;
  test::Memory receive;
  std::unique_ptr<Offloaded> offloaded;
};

class World {
 public:
  World(uint32_t size, uint64_t seed, const EndpointOptions& options) : random_(seed) {
    testbed::LoopbackOptions driver;
    driver.ranks = size;
    driver.racy_seed = seed;
    driver.headers_in_order = true;
    EndpointOptions of_all = options;
    of_all.ranks = size;
    auto made = testbed::Loopback::create(driver);
    EXPECT_TRUE(made.ok());
    loopback_ = std::move(*made);
    for (uint32_t rank = 0; rank < size; ++rank) {
      Rank one;
      one.interface = std::make_unique<portals::Interface>(loopback_->port(rank));
      auto endpoint = Endpoint::open(*one.interface, of_all);
      EXPECT_TRUE(endpoint.ok()) << endpoint.error().message;
      one.endpoint = std::move(*endpoint);
      one.team.id = 5;
      one.team.ranks.resize(size);
      std::iota(one.team.ranks.begin(), one.team.ranks.end(), 0);
      const Status joined = one.endpoint->join(one.team);
      EXPECT_TRUE(joined.ok()) << joined.error().message;
      ranks.push_back(std::move(one));
    }
  }
  ~World() {
    for (Rank& rank : ranks) rank.offloaded.reset();
    for (Rank& rank : ranks) {
      const Status closed = rank.endpoint->close();
      EXPECT_TRUE(closed.ok()) << closed.error().message;
    }
  }
  void some_steps() {
    for (uint64_t steps = random_.below(20); steps > 0; --steps) loopback_->step();
  }

  // The call that one of the ranks makes for the operation, with the memory of `rank`.
  static Call call_of(const Algorithm& algorithm, const test::RankCall& called, Rank& rank) {
    const Collective& given = called.call;
    const auto blocks = [](const std::vector<Part>& parts) {
      std::vector<Call::Block> made;
      for (const Part& part : parts) made.push_back({part.bytes, part.place.at});
      return made;
    };
    Call made;
    made.operation = algorithm.operation;
    made.algorithm = algorithm.name;
    made.root = given.root;
    made.send = rank.send.data();
    made.receive = rank.receive.data();
    const bool scatters = algorithm.operation == Operation::scatter || algorithm.operation == Operation::scatterv;
    if (given.in_place) (scatters ? made.receive : made.send) = nullptr;
    if (algorithm.operation == Operation::reduce_scatter) {
      made.receives = blocks(given.sends);
    } else if (has_lists(algorithm.operation)) {
      if (!given.in_place || scatters) made.sends = blocks(given.sends);
      made.receives = blocks(given.receives);
      const bool sends_none =
          std::ranges::all_of(made.sends, [](const Call::Block& block) { return block.bytes == 0; });
      if (!made.sends.empty() && sends_none) made.send = nullptr;
    } else {
      made.bytes = std::max(algorithms::data(given.sends).bytes, algorithms::data(given.receives).bytes);
    }
    made.type = nic::Datatype::uint32;
    made.segment_bytes = given.segment_bytes;
    made.sources = given.sources;
    made.destinations = given.destinations;
    made.is_grid = given.is_grid;
    return made;
  }

  // Makes the operation on all ranks.
  void make(const Algorithm& algorithm, bool cached, uint64_t segment_bytes) {
    for (test::RankCall& called : call.ranks) {
      Rank& one = ranks[called.call.rank];
      called.call.segment_bytes = segment_bytes;
      if (algorithm.operation == Operation::bcast && called.call.rank == called.call.root) {
        called.receive = called.expected = std::exchange(called.send, {});
      }
      one.send = called.send;
      one.receive = called.receive;
      auto made = collective::make_call_graph(call_of(algorithm, called, one), called.call.rank, called.call.size);
      ASSERT_TRUE(made.ok()) << made.error().message;
      EXPECT_EQ(made->algorithm, algorithm.name);
      auto offloaded = one.endpoint->make(one.team, std::move(made->graph), cached, std::move(made->memory));
      ASSERT_TRUE(offloaded.ok()) << offloaded.error().message;
      one.offloaded = std::move(*offloaded);
      some_steps();
    }
  }
  void fill() {
    test::vary(call);
    for (const test::RankCall& called : call.ranks) {
      Rank& one = ranks[called.call.rank];
      std::ranges::copy(called.send, one.send.begin());
      std::ranges::copy(called.receive, one.receive.begin());
    }
  }

  test::TestCall call;
  Random random_;
  std::unique_ptr<testbed::Loopback> loopback_;
  std::vector<Rank> ranks;
};

void play(const Algorithm& algorithm, Random& random) {
  const uint64_t seed = random.below(UINT64_MAX);
  const auto size = static_cast<uint32_t>(1 + random.below(9));
  EndpointOptions options;
  options.eager_bytes = random.below(2) == 0 ? 64 : 4096;
  options.early_messages = 2 * static_cast<uint32_t>(1 + random.below(4));
  options.initiator = random.below(2) == 0 ? Initiator::receiver : Initiator::sender;
  options.by_cpu = random.below(4) == 0;
  World world(size, seed, options);
  const auto root = static_cast<uint32_t>(random.below(size));
  const bool cached = random.below(2) == 0;
  const uint64_t segment = random.below(2) == 0 ? UINT64_MAX : 4 * (1 + random.below(64));
  world.call = test::random_call(algorithm.operation, size, root, false, random);
  world.make(algorithm, cached, segment);
  if (testing::Test::HasFatalFailure()) return;
  for (uint32_t start = 0; start < (cached ? 4u : 1u); ++start) {
    world.fill();
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    for (size_t i = size; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const size_t rank : order) {
      const Status started = world.ranks[rank].offloaded->start();
      ASSERT_TRUE(started.ok()) << started.error().message;
      world.some_steps();
    }
    // Early messages whose data were still under way at the start are copied when their rank looks.
    bool all = false;
    for (int looks = 0; !all && looks < 100000; ++looks) {
      all = true;
      for (Rank& one : world.ranks) {
        const auto ended = one.offloaded->test();
        ASSERT_TRUE(ended.ok()) << ended.error().message;
        all = all && *ended;
      }
      world.some_steps();
    }
    ASSERT_TRUE(all) << "never ends";
    for (uint32_t rank = 0; rank < size; ++rank) {
      ASSERT_EQ(world.ranks[rank].receive, world.call.ranks[rank].expected) << "rank " << rank;
      ASSERT_EQ(world.ranks[rank].send, world.call.ranks[rank].send) << "rank " << rank << ": what is sent is written";
    }
  }
}

class OffloadedTrials : public testing::TestWithParam<Algorithm> {};

TEST_P(OffloadedTrials, AllRanksHaveWhatTheReferenceHas) {
  for_seeds(60, [](Random& random) { play(GetParam(), random); });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OffloadedTrials, testing::ValuesIn(test::catalogue()),
                         [](const auto& tested) { return test::name_of(tested.param); });

}  // namespace
}  // namespace spinloom::collective
