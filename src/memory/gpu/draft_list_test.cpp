// Short messages of several parts as one list.
#include "memory/gpu/draft_list.hpp"

#include <gtest/gtest.h>

#include "memory/layout/testing/random_types.hpp"

namespace spinloom::gpu {
namespace {

TEST(DraftList, ASideWithoutGapsIsAStrideAndTheOtherATable) {
  const layout::Blob blob =
      *layout::Blob::build(layout::test::must_parse("hindexed([0B x 3, 40B x 1, 100B x 7], int)"));
  const Side scattered = Side::of(blob, 5);
  for (const bool packs : {true, false}) {
    const Message message = packs ? Message{scattered, Side::packed()} : Message{Side::packed(), scattered};
    DraftOptions options;
    options.allow_lists = true;
    options.pieces_bytes_max = list_bytes_max;
    const auto drafts = drafts_of(message, options);
    ASSERT_TRUE(drafts.ok()) << drafts.error().message;
    ASSERT_EQ(drafts->size(), 1U);
    const Draft& list = drafts->front();
    EXPECT_EQ(list.block, 4);
    ASSERT_EQ(list.levels.size(), 1U);
    EXPECT_EQ(list.levels[0].count, 55);
    const DraftStep& there = packs ? list.levels[0].from : list.levels[0].to;
    const DraftStep& packed = packs ? list.levels[0].to : list.levels[0].from;
    EXPECT_NE(there.table, nullptr);
    EXPECT_EQ(packed.table, nullptr);
    EXPECT_EQ(packed.stride, 4);
    EXPECT_EQ(there.at(3), 40);
    EXPECT_EQ(there.at(4), 100);
  }
}

}  // namespace
}  // namespace spinloom::gpu
