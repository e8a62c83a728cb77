// Every algorithm moves the right bytes to the right places, whatever happens first.
#include "collective/algorithms.hpp"

#include "base/test_seeds.hpp"
#include "collective/test_byte_play.hpp"
#include "collective/test_call.hpp"

namespace spinloom::collective {
namespace {

using test::BytePlay;
using test::element;
using test::Memory;
using test::TestCall;

constexpr uint32_t ranks_most = 24;

void play(TestCall call, const std::vector<algorithms::Make*>& strands, Random& random) {
  std::vector<BytePlay::Rank> ranks;
  for (const test::RankCall& one : call.ranks) {
    ranks.push_back({{}, {one.send, one.receive, {}}});
    uint32_t tag = 0;
    for (algorithms::Make* const make : strands) {
      Rounds rounds;
      make(one.call, rounds);
      for (Round& round : rounds.take()) {
        for (Leg& leg : round.legs) leg.tag = tag;
        ranks.back().rounds.push_back(std::move(round));
      }
      ++tag;
    }
  }
  BytePlay bytes(std::move(ranks), call.combine, element);
  bytes.play(random);
  EXPECT_TRUE(bytes.ended());
  for (const test::RankCall& one : call.ranks) {
    const uint32_t rank = one.call.rank;
    EXPECT_EQ(bytes.memory(rank, Area::receive), one.expected)
        << "rank " << rank << (one.call.in_place ? ", in place" : "");
    EXPECT_EQ(bytes.memory(rank, Area::send), one.send) << "rank " << rank << ": what is sent is written";
  }
}

void play_random(const Algorithm& algorithm, const std::vector<algorithms::Make*>& strands, Random& random) {
  const auto size = static_cast<uint32_t>(1 + random.below(ranks_most));
  const auto root = static_cast<uint32_t>(random.below(size));
  TestCall call = test::random_call(algorithm.operation, size, root, takes_any_operator(algorithm, root), random);
  const uint64_t segment_bytes = algorithm.segments ? 1 + random.below(20 * element) : UINT64_MAX;
  for (test::RankCall& one : call.ranks) {
    one.call.segment_bytes = segment_bytes;
    one.call.radix = 2;
  }
  SCOPED_TRACE(text(size, " ranks, root ", root, ", segments of ", segment_bytes, " B"));
  play(std::move(call), strands, random);
}

std::vector<Algorithm> catalogue() {
  std::vector<Algorithm> all;
  for (uint32_t operation = 0; operation < operation_count; ++operation) {
    for (const Algorithm& one : algorithms_of(static_cast<Operation>(operation))) all.push_back(one);
  }
  return all;
}

class MovesBytes : public testing::TestWithParam<Algorithm> {};
INSTANTIATE_TEST_SUITE_P(All, MovesBytes, testing::ValuesIn(catalogue()), [](const auto& info) {
  std::string name = text(name_of(info.param.operation), "_", info.param.name);
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST_P(MovesBytes, ToTheirPlaces) {
  for_seeds(100, [](Random& random) { play_random(GetParam(), {GetParam().make}, random); });
}

TEST(Strands, OfADoubleTreeMoveBytesInAnyOrder) {
  const Algorithm algorithm{Operation::bcast, "double-tree", nullptr, Order::none, true};
  for_seeds(100, [&](Random& random) {
    play_random(algorithm, {algorithms::double_tree_first, algorithms::double_tree_second}, random);
  });
}

}  // namespace
}  // namespace spinloom::collective
