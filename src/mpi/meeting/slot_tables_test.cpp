// Tests the messages that two ranks hand to each other; the ranks are two boards of this process.
#include "mpi/meeting/slot_tables.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

namespace spinloom::mpi {
namespace {

class SlotTablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    static int worlds = 0;
    const std::string world = text("spinloom-mpi-slot_tables-", getpid(), "-", ++worlds);
    for (uint32_t rank = 0; rank < 2; ++rank) ASSERT_TRUE(boards_[rank].join(world, rank, 2, 2).ok());
    for (Board& board : boards_) {
      board.notice();
      board.settle();
    }
    open(1);
  }
  void TearDown() override {
    for (Board& board : boards_) board.leave();
  }
  void open(uint32_t communicator) {
    for (size_t rank = 0; rank < 2; ++rank) {
      ranks_[rank] = SlotTables();
      ranks_[rank].open(boards_[rank], 3, communicator);
    }
  }
  // Rank 0 to rank 1. False: there is no room.
  bool send(uint64_t message, uint8_t byte) {
    ranks_[0].make();
    SlotTables::Entry* const entry = ranks_[0].free_entry_for(1, message);
    if (entry == nullptr) return false;
    entry->kind = SlotTables::Kind::bytes;
    entry->bytes = 1;
    entry->data[0] = byte;
    ranks_[0].post(*entry, message);
    return true;
  }
  // The byte; below zero: no message has arrived.
  int receive(uint64_t message) {
    const SlotTables::Entry* const entry = ranks_[1].find_arrived(0, message);
    if (entry == nullptr) return -1;
    const int byte = entry->data[0];
    ranks_[1].take(0, message);
    return byte;
  }

  std::array<Board, 2> boards_;
  std::array<SlotTables, 2> ranks_;
};

TEST_F(SlotTablesTest, AllReachEachOther) {
  for (const Board& board : boards_) EXPECT_TRUE(board.all_reach());
}

TEST_F(SlotTablesTest, BothEndsNumberTheMessagesOfAPairAlike) {
  for (const uint64_t message : {1, 2, 3}) {
    EXPECT_EQ(ranks_[0].next_sent(1), message);
    EXPECT_EQ(ranks_[1].next_received(0), message);
  }
  EXPECT_EQ(ranks_[1].next_sent(0), 1U);
}

TEST_F(SlotTablesTest, AMessageComesOnceItIsPostedAndIsTakenOnce) {
  EXPECT_EQ(receive(1), -1);
  ASSERT_TRUE(send(1, 7));
  EXPECT_EQ(receive(2), -1);
  EXPECT_FALSE(ranks_[0].is_taken(1, 1));
  EXPECT_EQ(receive(1), 7);
  EXPECT_TRUE(ranks_[0].is_taken(1, 1));
}

// Message m lies where m - depth lay.
TEST_F(SlotTablesTest, DepthMessagesHaveRoomAndTheNextWaitsForTheFirst) {
  for (uint64_t message = 1; message <= SlotTables::depth; ++message) {
    ASSERT_TRUE(send(message, static_cast<uint8_t>(message)));
  }
  EXPECT_FALSE(send(SlotTables::depth + 1, 9));
  EXPECT_EQ(receive(2), 2);
  EXPECT_FALSE(send(SlotTables::depth + 1, 9));
  EXPECT_EQ(receive(1), 1);
  EXPECT_TRUE(send(SlotTables::depth + 1, 9));
  EXPECT_EQ(receive(SlotTables::depth + 1), 9);
}

TEST_F(SlotTablesTest, TheNextCommunicatorUsesTheSameMemoryAndFindsNoMessageOfTheLast) {
  const auto address = [this] { return boards_[0].slot_table_place(0, 3).address.load(); };
  ASSERT_TRUE(send(1, 7));
  const uint64_t first = address();
  open(2);
  EXPECT_EQ(receive(1), -1);
  EXPECT_FALSE(ranks_[1].comes_by_mpi(0));
  ASSERT_TRUE(send(1, 8));
  EXPECT_EQ(address(), first);
  EXPECT_EQ(receive(1), 8);
}

TEST_F(SlotTablesTest, ARankWithoutMemoryForSlotTablesIsKnown) {
  EXPECT_FALSE(ranks_[1].comes_by_mpi(0));
  ASSERT_TRUE(send(1, 7));
  EXPECT_FALSE(ranks_[1].comes_by_mpi(0));
  boards_[0].slot_table_place(0, 3).address = 0;
  EXPECT_TRUE(ranks_[1].comes_by_mpi(0));
}

TEST_F(SlotTablesTest, ThreadsPassManyMessagesInOrder) {
  constexpr uint64_t messages = 2'000;
  ranks_[0].make();
  std::thread sender([this] {
    for (uint64_t message = 1; message <= messages;) {
      if (send(message, static_cast<uint8_t>(message))) {
        ++message;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t message = 1; message <= messages;) {
    const int byte = receive(message);
    if (byte < 0) {
      std::this_thread::yield();
      continue;
    }
    EXPECT_EQ(byte, static_cast<uint8_t>(message));
    ++message;
  }
  sender.join();
}

}  // namespace
}  // namespace spinloom::mpi
