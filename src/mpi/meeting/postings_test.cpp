// Owner and readers are processes that share the table.
#include "mpi/meeting/postings.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace spinloom::mpi {
namespace {

class PostingsTest : public testing::Test {
 protected:
  void SetUp() override {
    void* const memory =
        mmap(nullptr, sizeof(Postings::Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    table_ = static_cast<Postings::Table*>(memory);
  }
  void TearDown() override { munmap(table_, sizeof(Postings::Table)); }
  [[nodiscard]] std::optional<PostedMemory> find(Key key) const {
    uint64_t seen = 0;
    return Postings(*table_).find(key, seen);
  }
  Postings::Table* table_ = nullptr;
};

PostedMemory memory(uint64_t number) {
  return {number, static_cast<int64_t>(2 * number),    8, PostedMemory::Location::in_heap,
          0,      {3 * number, 4 * number, 5 * number}};
}

TEST_F(PostingsTest, WhatIsPostedIsFoundUntilItIsRemoved) {
  const Postings own(*table_);
  const Key key{5, 6};
  uint64_t seen = 0;
  EXPECT_FALSE(own.find(key, seen));
  own.post(key, memory(40));
  const auto found = own.find(key, seen);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->base, 40U);
  EXPECT_EQ(found->bytes, 80);
  EXPECT_EQ(found->unit, 8);
  EXPECT_EQ(found->location, PostedMemory::Location::in_heap);
  EXPECT_EQ(found->place.device, 120U);
  EXPECT_EQ(found->place.inode, 160U);
  EXPECT_EQ(found->place.offset, 200U);
  own.remove(key);
  EXPECT_FALSE(find(key));
}

TEST_F(PostingsTest, KeysThatAreAlikeInOneHalfAreTwo) {
  const Postings own(*table_);
  own.post({5, 6}, memory(1));
  own.post({5, 7}, memory(2));
  EXPECT_EQ(find({5, 7})->base, 2U);
  EXPECT_EQ(find({5, 6})->base, 1U);
  EXPECT_FALSE(find({5, 8}));
  own.remove({5, 6});
  EXPECT_FALSE(find({5, 6}));
  EXPECT_EQ(find({5, 7})->base, 2U);
}

TEST_F(PostingsTest, WhereThereIsNoRoomOthersFindNothing) {
  const Postings own(*table_);
  for (uint64_t i = 1; i <= Postings::most; ++i) own.post({i * i, i}, memory(i));
  const Key late{7, 7'000'000};
  own.post(late, memory(1));
  EXPECT_FALSE(find(late));
  for (uint64_t i = 1; i <= Postings::most; ++i) EXPECT_EQ(find({i * i, i})->base, i);
  own.remove({25, 5});
  own.post(late, memory(1));
  EXPECT_TRUE(find(late));
}

// The owner posts and removes windows in one place; a reader sees the whole of one or nothing.
TEST_F(PostingsTest, AReaderNeverSeesHalfAPosting) {
  constexpr uint64_t windows = 200'000;
  const pid_t owner = fork();
  if (owner == 0) {
    const Postings own(*table_);
    for (uint64_t i = 1; i <= windows; ++i) {
      own.post({5, i}, memory(i));
      if (i < windows) own.remove({5, i});
    }
    _exit(0);
  }
  uint64_t seen = 0;
  uint64_t wanted = 1;
  while (wanted < windows) {
    const uint64_t now = table_->posted.load();
    wanted = now == 0 ? 1 : now;
    const auto found = Postings(*table_).find({5, wanted}, seen);
    if (!found) continue;
    ASSERT_EQ(found->base, wanted);
    ASSERT_EQ(found->bytes, static_cast<int64_t>(2 * wanted));
    ASSERT_EQ(found->place.offset, 5 * wanted);
  }
  int how = 0;
  ASSERT_EQ(waitpid(owner, &how, 0), owner);
  EXPECT_EQ(how, 0);
  EXPECT_EQ(find({5, windows})->base, windows);
}

}  // namespace
}  // namespace spinloom::mpi
