// Numbers of communicators in several ranks' traces, whatever the order in which threads made them.
#include "predict/trace/communicators.hpp"

#include "predict/trace/testing/programs.hpp"

namespace spinloom::trace {
namespace {

CommEntry copy_of(const CommEntry& comm, uint32_t parent) {
  CommEntry made = comm;
  made.parent = parent;
  return made;
}

// Two copies of the world, 1 and 2. Two threads copy each of them, on rank 0 that of 1 first, on rank 1 that of 2.
TEST(Communicators, AreThoseOfTheirParentsInWhateverOrderThreadsMadeThem) {
  RankTrace ranks[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const CommEntry world = world_of(rank, 2);
    ranks[rank].comms = {world, copy_of(world, 0), copy_of(world, 0)};
  }
  for (const uint32_t parent : {1, 2, 1}) ranks[0].comms.push_back(copy_of(ranks[0].comms[0], parent));
  for (const uint32_t parent : {2, 1, 1}) ranks[1].comms.push_back(copy_of(ranks[1].comms[0], parent));
  const RankTrace* const both[] = {&ranks[0], &ranks[1]};
  const Communicators found(both);
  for (const uint32_t same : {0, 1, 2, 5}) EXPECT_EQ(found.number_of(0, same), found.number_of(1, same)) << same;
  EXPECT_EQ(found.number_of(0, 3), found.number_of(1, 4));
  EXPECT_EQ(found.number_of(0, 4), found.number_of(1, 3));
  EXPECT_NE(found.number_of(0, 3), found.number_of(0, 4));
  EXPECT_NE(found.number_of(0, 3), found.number_of(0, 5));
}

TEST(Communicators, BothSidesOfAnIntercommunicatorShareANumber) {
  RankTrace ranks[2];
  for (uint32_t rank = 0; rank < 2; ++rank) {
    CommEntry inter;
    inter.world_ranks = {rank};
    inter.remote_ranks = {1 - rank};
    ranks[rank].comms = {world_of(rank, 2), inter};
  }
  const RankTrace* const both[] = {&ranks[0], &ranks[1]};
  const Communicators found(both);
  EXPECT_EQ(found.number_of(0, 1), found.number_of(1, 1));
}

TEST(Communicators, AParentIsKeptAndOlderEntriesHaveNone) {
  const CommEntry entry = copy_of(world_of(1, 3), 4);
  Bytes bytes;
  encode(entry, bytes);
  CommEntry found;
  ASSERT_TRUE(decode(bytes, found));
  EXPECT_EQ(found.parent, 4U);
  bytes.pop_back();
  CommEntry older;
  ASSERT_TRUE(decode(bytes, older));
  EXPECT_EQ(older.parent, none);
  EXPECT_EQ(older.world_ranks, entry.world_ranks);
}

}  // namespace
}  // namespace spinloom::trace
