// Every algorithm moves the right bytes to the right places, whatever happens first.
#include "collective/algorithms.hpp"

#include <cstring>

#include "base/test_seeds.hpp"
#include "collective/test_byte_play.hpp"

namespace spinloom::collective {
namespace {

using algorithms::Make;
using test::BytePlay;
using test::Memory;
using test::Operator;

// x -> a x + b modulo 2^32. One after the other is associative, but not commutative.
struct Map {
  uint32_t a;
  uint32_t b;
  [[nodiscard]] Map then(const Map& other) const { return {a * other.a, b * other.a + other.b}; }
};
constexpr uint64_t element = sizeof(Map);

Map map_at(const uint8_t* bytes) {
  Map found{};
  std::memcpy(&found, bytes, element);
  return found;
}
void in_order(uint8_t* into, const uint8_t* lower, const uint8_t* higher) {
  const Map both = map_at(lower).then(map_at(higher));
  std::memcpy(into, &both, element);
}
void sum(uint8_t* into, const uint8_t* lower, const uint8_t* higher) {
  const Map both{map_at(lower).a + map_at(higher).a, map_at(lower).b + map_at(higher).b};
  std::memcpy(into, &both, element);
}

enum class Operation : uint8_t {
  barrier,
  bcast,
  gather,
  scatter,
  allgather,
  alltoall,
  reduce,
  allreduce,
  reduce_scatter,
  scan
};
// Whose order of operands a reduction keeps: nobody's, that of the ranks, the same if the root is rank 0.
enum class Order : uint8_t { none, ranks, ranks_of_root_0 };

struct Algorithm {
  const char* name;
  Operation operation;
  Make* make;
  Order order = Order::none;
  Make* second = nullptr;
  bool power_of_two = false;
};

using enum Operation;
const Algorithm known[] = {
    {"dissemination", barrier, algorithms::dissemination},
    {"linear_barrier", barrier, algorithms::linear_barrier},
    {"binomial_bcast", bcast, algorithms::binomial_bcast},
    {"linear_bcast", bcast, algorithms::linear_bcast},
    {"scatter_ring_bcast", bcast, algorithms::scatter_ring_bcast},
    {"chain_bcast", bcast, algorithms::chain_bcast},
    {"binary_bcast", bcast, algorithms::binary_bcast},
    {"double_tree", bcast, algorithms::double_tree_first, Order::none, algorithms::double_tree_second},
    {"binomial_gather", gather, algorithms::binomial_gather},
    {"linear_gather", gather, algorithms::linear_gather},
    {"binomial_scatter", scatter, algorithms::binomial_scatter},
    {"linear_scatter", scatter, algorithms::linear_scatter},
    {"ring_allgather", allgather, algorithms::ring_allgather},
    {"bruck_allgather", allgather, algorithms::bruck_allgather},
    {"linear_allgather", allgather, algorithms::linear_allgather},
    {"recursive_doubling_allgather", allgather, algorithms::recursive_doubling_allgather, Order::none, nullptr, true},
    {"pairwise_alltoall", alltoall, algorithms::pairwise_alltoall},
    {"linear_alltoall", alltoall, algorithms::linear_alltoall},
    {"binomial_reduce", reduce, algorithms::binomial_reduce, Order::ranks_of_root_0},
    {"linear_reduce", reduce, algorithms::linear_reduce, Order::ranks_of_root_0},
    {"chain_reduce", reduce, algorithms::chain_reduce, Order::ranks_of_root_0},
    {"binary_reduce", reduce, algorithms::binary_reduce},
    {"recursive_doubling_allreduce", allreduce, algorithms::recursive_doubling_allreduce, Order::ranks},
    {"ring_allreduce", allreduce, algorithms::ring_allreduce},
    {"tree_allreduce", allreduce, algorithms::tree_allreduce, Order::ranks},
    {"rabenseifner_allreduce", allreduce, algorithms::rabenseifner_allreduce},
    {"pairwise_reduce_scatter", reduce_scatter, algorithms::pairwise_reduce_scatter},
    {"recursive_halving_reduce_scatter", reduce_scatter, algorithms::recursive_halving_reduce_scatter, Order::none,
     nullptr, true},
    {"binomial_scan", scan, algorithms::binomial_scan, Order::ranks},
    {"linear_scan", scan, algorithms::linear_scan, Order::ranks},
};

bool is_reduction(Operation operation) { return operation >= reduce; }

// One call: `bytes` of a block, or of all data.
struct Call {
  const Algorithm& algorithm;
  uint32_t size;
  uint32_t root;
  uint64_t bytes;
  bool in_place;
  Operator combine;
  std::vector<Memory> sends;  // of each rank

  [[nodiscard]] uint64_t sent_blocks(uint32_t rank) const {
    switch (algorithm.operation) {
      case alltoall:
      case reduce_scatter: return size;
      case scatter: return rank == root ? size : 0;
      case bcast: return rank == root ? 1 : 0;
      default: return 1;
    }
  }
  [[nodiscard]] uint64_t received_blocks(uint32_t rank) const {
    switch (algorithm.operation) {
      case gather: return rank == root ? size : 0;
      case allgather:
      case alltoall: return size;
      case reduce: return rank == root ? 1 : 0;
      case bcast: return rank == root ? 0 : 1;
      default: return 1;
    }
  }

  [[nodiscard]] Memory block(uint32_t rank, uint64_t number) const {
    const auto begin = sends[rank].begin() + static_cast<ptrdiff_t>(number * bytes);
    return {begin, begin + static_cast<ptrdiff_t>(bytes)};
  }
  // Of the ranks up to `last`.
  [[nodiscard]] Memory combined(uint32_t last, uint64_t number) const {
    Memory result = block(0, number);
    for (uint32_t rank = 1; rank <= last; ++rank) {
      const Memory more = block(rank, number);
      for (uint64_t at = 0; at < bytes; at += element) combine(&result[at], &result[at], &more[at]);
    }
    return result;
  }
  [[nodiscard]] Memory expected(uint32_t rank) const {
    Memory all;
    const auto add = [&](const Memory& more) { all.insert(all.end(), more.begin(), more.end()); };
    switch (algorithm.operation) {
      case barrier: break;
      case bcast:
        if (rank != root) add(block(root, 0));
        break;
      case gather:
      case allgather:
        for (uint32_t one = 0; one < size * (received_blocks(rank) != 0); ++one) add(block(one, 0));
        break;
      case scatter: add(block(root, rank)); break;
      case alltoall:
        for (uint32_t one = 0; one < size; ++one) add(block(one, rank));
        break;
      case reduce:
        if (rank == root) add(combined(size - 1, 0));
        break;
      case allreduce: add(combined(size - 1, 0)); break;
      case reduce_scatter: add(combined(size - 1, rank)); break;
      case scan: add(combined(rank, 0)); break;
    }
    return all;
  }
};

Call random_call(const Algorithm& algorithm, Random& random) {
  constexpr uint32_t sizes_most = 19;
  const auto size =
      static_cast<uint32_t>(algorithm.power_of_two ? 1U << random.below(5) : 1 + random.below(sizes_most));
  Call call{.algorithm = algorithm,
            .size = size,
            .root = static_cast<uint32_t>(random.below(size)),
            .bytes = algorithm.operation == barrier ? 0 : element * random.below(40),
            .in_place = false,
            .combine = sum,
            .sends = {}};
  if (algorithm.operation == scan || algorithm.operation == allreduce || algorithm.operation == reduce) {
    call.in_place = random.below(3) == 0;
  }
  if (algorithm.order == Order::ranks || (algorithm.order == Order::ranks_of_root_0 && call.root == 0)) {
    call.combine = in_order;
  }
  for (uint32_t rank = 0; rank < size; ++rank) {
    Memory& bytes = call.sends.emplace_back(call.bytes * call.sent_blocks(rank));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  }
  return call;
}

BytePlay::Rank rank_of(const Call& call, uint32_t rank, uint64_t segment_bytes) {
  Collective made{.rank = rank,
                  .size = call.size,
                  .root = call.root,
                  .in_place = call.in_place,
                  .segment_bytes = segment_bytes,
                  .element_bytes = is_reduction(call.algorithm.operation) ? element : 1,
                  .sends = {algorithms::packed(call.bytes)},
                  .receives = {algorithms::packed(call.bytes, {.area = Area::receive})}};
  BytePlay::Rank found{{}, {call.sends[rank], Memory(call.bytes * call.received_blocks(rank)), {}}};
  if (call.in_place && call.received_blocks(rank) != 0) {
    made.sends = made.receives;
    found.areas[1] = call.sends[rank];
  }
  uint32_t tag = 0;
  for (Make* const make : {call.algorithm.make, call.algorithm.second}) {
    if (make == nullptr) continue;
    Rounds rounds;
    make(made, rounds);
    for (Round& round : rounds.take()) {
      for (Leg& leg : round.legs) leg.tag = tag;
      found.rounds.push_back(std::move(round));
    }
    ++tag;
  }
  return found;
}

class MovesBytes : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, MovesBytes, testing::ValuesIn(known), [](const auto& info) { return info.param.name; });

TEST_P(MovesBytes, ToTheirPlaces) {
  for_seeds(60, [](Random& random) {
    const Call call = random_call(GetParam(), random);
    const uint64_t segment_bytes = element * (1 + random.below(20));
    std::vector<BytePlay::Rank> ranks;
    for (uint32_t rank = 0; rank < call.size; ++rank) ranks.push_back(rank_of(call, rank, segment_bytes));
    BytePlay bytes(std::move(ranks), call.combine, element);
    bytes.play(random);
    EXPECT_TRUE(bytes.ended());
    for (uint32_t rank = 0; rank < call.size; ++rank) {
      Memory expected = call.expected(rank);
      expected.resize(bytes.received(rank).size());  // a barrier moves nothing
      EXPECT_EQ(bytes.received(rank), expected) << "rank " << rank << " of " << call.size << ", root " << call.root
                                                << ", " << call.bytes << " B" << (call.in_place ? ", in place" : "");
    }
  });
}

}  // namespace
}  // namespace spinloom::collective
