// Messages between two ranks of one process: records, the places of their bytes, no room; forms of datatypes.
#include "mpi/moving/copy_pipeline.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "memory/layout/type.hpp"

namespace spinloom::mpi {
namespace {

// Two ranks of one world, in one process.
class CopyPipelineTest : public ::testing::Test {
 protected:
  static std::string name() {
    static int worlds = 0;
    return text("spinloom-mpi-test-", getpid(), "-", ++worlds);
  }
  void SetUp() override {
    const std::string world = name();
    settings_.min_bytes = 0;
    settings_.chunk_bytes = 1 << 10;
    settings_.staging_bytes = 1 << 20;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const Status began = ranks_[rank].begin(world, rank, 2, 2, settings_);
      ASSERT_TRUE(began.ok()) << began.error().message;
    }
  }
  void TearDown() override {
    for (CopyPipeline& rank : ranks_) rank.end();
  }

  Settings settings_;
  std::array<CopyPipeline, 2> ranks_;
};

FormPointer vector_form(int64_t count) {
  return make_form(*layout::vector(count, 1, 3, *layout::primitive("int32_t")));
}

TEST_F(CopyPipelineTest, ARankIsReachedOnceItHasNoticedTheOther) {
  EXPECT_TRUE(ranks_[0].can_reach(1));
  EXPECT_FALSE(ranks_[1].can_reach(0));
  EXPECT_TRUE(ranks_[0].has_news());
  ranks_[0].notice();
  EXPECT_FALSE(ranks_[0].has_news());
  EXPECT_TRUE(ranks_[1].can_reach(0));
}

TEST_F(CopyPipelineTest, AMessageArrivesInItsPlaces) {
  constexpr int count = 5'000;
  const FormPointer form = vector_form(count);
  EXPECT_EQ(form->record_bytes, 64);
  std::vector<int32_t> from(3 * count), to(3 * count, -1);
  for (int i = 0; i < 3 * count; ++i) from[static_cast<size_t>(i)] = i;
  const auto pending = ranks_[0].prepare(form->size);
  ASSERT_TRUE(pending.has_value());
  ranks_[0].load(*pending, {*form, 1, from.data()});
  const auto record = ranks_[1].read(pending->record(), 64);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->bytes, static_cast<uint64_t>(form->size));
  ASSERT_TRUE(ranks_[1].land(*record, {*form, 1, to.data()}).ok());
  for (int i = 0; i < 3 * count; ++i) ASSERT_EQ(to[static_cast<size_t>(i)], i % 3 == 0 ? i : -1) << i;
  EXPECT_FALSE(ranks_[1].read(pending->record(), 64).has_value() &&
               ranks_[1].read(pending->record(), 64)->serial != record->serial);
}

TEST_F(CopyPipelineTest, OtherBytesAreNoRecord) {
  const auto pending = ranks_[0].prepare(1000);
  ASSERT_TRUE(pending.has_value());
  std::array<uint8_t, 128> bytes{};
  std::memcpy(bytes.data(), pending->record(), bytes.size());
  EXPECT_TRUE(ranks_[1].read(bytes.data(), 95).has_value());
  EXPECT_FALSE(ranks_[1].read(bytes.data(), 63).has_value());
  EXPECT_FALSE(ranks_[1].read(bytes.data(), 96).has_value());
  for (const size_t at : {0, 15, 16, 20, 24, 47}) {
    auto changed = bytes;
    changed[at] ^= 0x80;
    EXPECT_FALSE(ranks_[1].read(changed.data(), 64).has_value()) << "byte " << at;
  }
  ranks_[0].abandon(*pending);
}

TEST_F(CopyPipelineTest, WithoutRoomMessagesGoTheOtherWay) {
  std::vector<PendingSend> sends;
  while (const auto pending = ranks_[0].prepare(64 << 10)) sends.push_back(*pending);
  EXPECT_EQ(sends.size(), 16u);  // 1 MiB
  EXPECT_FALSE(ranks_[0].prepare(2 << 20).has_value());
  ranks_[0].abandon(sends[3]);
  EXPECT_TRUE(ranks_[0].prepare(64 << 10).has_value());
  EXPECT_FALSE(ranks_[0].prepare(64 << 10).has_value());
}

// The sender packs while the receiver drops the message: its room serves no other message before it has ended.
TEST_F(CopyPipelineTest, AMessageIsDroppedWhenItsSenderHasPackedIt) {
  constexpr int64_t bytes = 1 << 20;
  static std::vector<uint8_t> from(bytes);
  static CopyPipeline* sender = nullptr;
  static PendingSend pending;
  static int looks = 0;
  sender = &ranks_[0];
  const auto prepared = sender->prepare(bytes);
  ASSERT_TRUE(prepared.has_value());
  pending = *prepared;
  const auto record = ranks_[1].read(pending.record(), 64);
  ASSERT_TRUE(record.has_value());
  ranks_[1].drop(*record, [] {
    if (++looks > 1) return;
    EXPECT_FALSE(CopyPipeline::is_done(pending));
    EXPECT_FALSE(sender->prepare(bytes).has_value()) << "its room is taken";
    const FormPointer form = make_form(*layout::primitive("byte"));
    sender->load(pending, {*form, bytes, from.data()});
  });
  EXPECT_EQ(looks, 1);
  EXPECT_TRUE(CopyPipeline::is_done(pending));
  EXPECT_TRUE(sender->prepare(bytes).has_value());
}

TEST_F(CopyPipelineTest, AnOfferThatIsDroppedIsNotPacked) {
  const FormPointer form = make_form(*layout::primitive("byte"));
  std::vector<uint8_t> from(1000);
  const auto pending = ranks_[0].offer({*form, 1000, from.data()});
  ASSERT_TRUE(pending.has_value());
  ranks_[1].drop(*ranks_[1].read(pending->record(), 64));
  EXPECT_TRUE(CopyPipeline::is_done(*pending));
  EXPECT_FALSE(CopyPipeline::withdraw(*pending)) << "its room may already be another message's";
}

TEST(Form, BlocksThatStepBackAreNotOneRun) {
  const auto real = *layout::primitive("double");
  EXPECT_TRUE(make_form(*layout::contiguous(6, real))->is_contiguous(1));
  EXPECT_TRUE(make_form(*layout::vector(3, 2, 2, real))->is_contiguous(1));
  EXPECT_FALSE(make_form(*layout::vector(3, 2, -2, real))->is_contiguous(1));
}

TEST(Form, RecordsEndWhereElementsEnd) {
  const auto int32 = *layout::primitive("int32_t");
  const auto real = *layout::primitive("double_complex");
  EXPECT_EQ(make_form(*layout::vector(100, 1, 2, int32))->record_bytes, 64);
  EXPECT_EQ(make_form(*layout::vector(100, 1, 2, *layout::primitive("byte")))->record_bytes, 64);
  // 4 + 16 + 16 + 16 + 16 bytes: the element that holds byte 63 ends at 68.
  const auto one = *layout::structure(std::vector<int64_t>{0, 16}, {1, 20}, {int32, real});
  EXPECT_EQ(make_form(*layout::contiguous(10, one))->record_bytes, 68);
  EXPECT_EQ(make_form(*layout::contiguous(3, *layout::resized(0, 64, int32)))->record_bytes, 64);
}

}  // namespace
}  // namespace spinloom::mpi
