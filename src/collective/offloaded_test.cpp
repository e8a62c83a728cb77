// Collective operations on NICs of the loopback driver, in random orders, compared with plain references.
#include "collective/offloaded.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <numeric>

#include "base/random.hpp"
#include "base/test_seeds.hpp"
#include "collective/algorithms.hpp"
#include "testbed/loopback.hpp"

namespace spinloom::collective {
namespace {

using Elements = std::vector<int32_t>;

struct Trial {
  const char* name;
  algorithms::Make* make;
  enum class Kind { bcast, reduce, allreduce, alltoall, allgather, gather, scatter, scan, barrier } kind;
  bool power_of_two = false;
};
using Kind = Trial::Kind;

constexpr Trial trials[] = {
    {"binomial_bcast", algorithms::binomial_bcast, Kind::bcast},
    {"linear_bcast", algorithms::linear_bcast, Kind::bcast},
    {"chain_bcast", algorithms::chain_bcast, Kind::bcast},
    {"binary_bcast", algorithms::binary_bcast, Kind::bcast},
    {"scatter_ring_bcast", algorithms::scatter_ring_bcast, Kind::bcast},
    {"binomial_reduce", algorithms::binomial_reduce, Kind::reduce},
    {"linear_reduce", algorithms::linear_reduce, Kind::reduce},
    {"chain_reduce", algorithms::chain_reduce, Kind::reduce},
    {"binary_reduce", algorithms::binary_reduce, Kind::reduce},
    {"recursive_doubling_allreduce", algorithms::recursive_doubling_allreduce, Kind::allreduce},
    {"ring_allreduce", algorithms::ring_allreduce, Kind::allreduce},
    {"tree_allreduce", algorithms::tree_allreduce, Kind::allreduce},
    {"rabenseifner_allreduce", algorithms::rabenseifner_allreduce, Kind::allreduce},
    {"pairwise_alltoall", algorithms::pairwise_alltoall, Kind::alltoall},
    {"linear_alltoall", algorithms::linear_alltoall, Kind::alltoall},
    {"ring_allgather", algorithms::ring_allgather, Kind::allgather},
    {"bruck_allgather", algorithms::bruck_allgather, Kind::allgather},
    {"linear_allgather", algorithms::linear_allgather, Kind::allgather},
    {"binomial_gather", algorithms::binomial_gather, Kind::gather},
    {"linear_gather", algorithms::linear_gather, Kind::gather},
    {"binomial_scatter", algorithms::binomial_scatter, Kind::scatter},
    {"linear_scatter", algorithms::linear_scatter, Kind::scatter},
    {"binomial_scan", algorithms::binomial_scan, Kind::scan},
    {"linear_scan", algorithms::linear_scan, Kind::scan},
    {"dissemination", algorithms::dissemination, Kind::barrier},
};

struct Rank {
  std::unique_ptr<portals::Interface> interface;
  std::unique_ptr<Endpoint> endpoint;
  Endpoint::Team team;
  Elements send;
  Elements receive;
  std::unique_ptr<Offloaded> offloaded;
  uint32_t starts = 0;
  bool under_way = false;
};

// What each rank has at the end, in `receive`.
std::vector<Elements> expected(Kind kind, const std::vector<Rank>& ranks, uint32_t root, size_t count) {
  const size_t size = ranks.size();
  std::vector<Elements> made;
  Elements sum(count, 0);
  std::vector<Elements> sums;  // of ranks up to this one
  for (const Rank& rank : ranks) {
    for (size_t i = 0; i < count && i < rank.send.size(); ++i) sum[i] += rank.send[i];
    sums.push_back(sum);
  }
  for (size_t rank = 0; rank < size; ++rank) {
    Elements own = ranks[rank].receive;
    const auto put = [&own](size_t at, const Elements& from, size_t begin, size_t length) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(begin), length, own.begin() + static_cast<std::ptrdiff_t>(at));
    };
    switch (kind) {
      case Kind::bcast:
        if (rank != root) put(0, ranks[root].send, 0, count);
        break;
      case Kind::reduce:
        if (rank == root) put(0, sums.back(), 0, count);
        break;
      case Kind::allreduce: put(0, sums.back(), 0, count); break;
      case Kind::scan: put(0, sums[rank], 0, count); break;
      case Kind::alltoall:
        for (size_t from = 0; from < size; ++from) put(from * count, ranks[from].send, rank * count, count);
        break;
      case Kind::allgather:
        for (size_t from = 0; from < size; ++from) put(from * count, ranks[from].send, 0, count);
        break;
      case Kind::gather:
        for (size_t from = 0; from < size && rank == root; ++from) put(from * count, ranks[from].send, 0, count);
        break;
      case Kind::scatter: put(0, ranks[root].send, rank * count, count); break;
      case Kind::barrier: break;
    }
    made.push_back(std::move(own));
  }
  return made;
}

class World {
 public:
  World(uint32_t size, uint64_t seed, const EndpointOptions& options) : random_(seed) {
    testbed::LoopbackOptions driver;
    driver.ranks = size;
    driver.racy_seed = seed;
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

  // Makes the operation on all ranks, in any order.
  void make(const Trial& trial, uint32_t root, size_t count, bool cached, uint64_t segment_bytes) {
    const auto size = static_cast<uint32_t>(ranks.size());
    const bool many_sent = trial.kind == Kind::alltoall || trial.kind == Kind::scatter;
    const bool many_received =
        trial.kind == Kind::alltoall || trial.kind == Kind::allgather || trial.kind == Kind::gather;
    for (uint32_t rank = 0; rank < size; ++rank) {
      Rank& one = ranks[rank];
      one.send.assign(count * (many_sent ? size : 1), 0);
      one.receive.assign(count * (many_received ? size : 1), 0);
      Collective call;
      call.rank = rank;
      call.size = size;
      call.root = root;
      call.element_bytes = sizeof(int32_t);
      call.segment_bytes = segment_bytes;
      const uint64_t bytes = trial.kind == Kind::barrier ? 0 : count * sizeof(int32_t);
      call.sends = {algorithms::packed(bytes, {.area = Area::send})};
      call.receives = {algorithms::packed(bytes, {.area = Area::receive})};
      Rounds rounds;
      trial.make(call, rounds);
      const std::vector<Round> made = rounds.take();
      auto memory = std::unique_ptr<uint8_t[]>(new uint8_t[work_bytes_of(made) + 1]);
      const Setting setting{reinterpret_cast<uint8_t*>(one.send.data()), reinterpret_cast<uint8_t*>(one.receive.data()),
                            memory.get(), nic::AtomicOperation::sum, nic::Datatype::int32};
      auto offloaded = one.endpoint->make(one.team, graph_of(made, setting), cached, std::move(memory));
      ASSERT_TRUE(offloaded.ok()) << offloaded.error().message;
      one.offloaded = std::move(*offloaded);
      one.starts = 0;
      some_steps();
    }
  }
  void fill(Rank& one) {
    for (int32_t& element : one.send) element = static_cast<int32_t>(random_.below(1 << 20));
    for (int32_t& element : one.receive) element = -1;
  }

  Random random_;
  std::unique_ptr<testbed::Loopback> loopback_;
  std::vector<Rank> ranks;
};

void play(const Trial& trial, Random& random) {
  const uint64_t seed = random.below(UINT64_MAX);
  auto size = static_cast<uint32_t>(1 + random.below(9));
  if (trial.power_of_two) size = std::bit_floor(size);
  EndpointOptions options;
  options.eager_bytes = random.below(2) == 0 ? 64 : 4096;
  options.early_messages = 2 * static_cast<uint32_t>(1 + random.below(4));
  options.initiator = random.below(2) == 0 ? Initiator::receiver : Initiator::sender;
  options.by_cpu = random.below(4) == 0;
  World world(size, seed, options);
  const size_t count = random.below(4) == 0 ? random.below(3) : random.below(400);
  const auto root = static_cast<uint32_t>(random.below(size));
  const bool cached = random.below(2) == 0;
  const uint64_t segment = random.below(2) == 0 ? UINT64_MAX : 4 * (1 + random.below(64));
  world.make(trial, root, count, cached, segment);
  if (testing::Test::HasFatalFailure()) return;
  for (uint32_t start = 0; start < (cached ? 4u : 1u); ++start) {
    for (Rank& one : world.ranks) world.fill(one);
    const std::vector<Elements> wanted = expected(trial.kind, world.ranks, root, count);
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
    for (uint32_t rank = 0; rank < size; ++rank) ASSERT_EQ(world.ranks[rank].receive, wanted[rank]) << "rank " << rank;
  }
}

class OffloadedTrials : public testing::TestWithParam<Trial> {};

TEST_P(OffloadedTrials, AllRanksHaveWhatTheReferenceHas) {
  for_seeds(60, [](Random& random) { play(GetParam(), random); });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, OffloadedTrials, testing::ValuesIn(trials),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace spinloom::collective
