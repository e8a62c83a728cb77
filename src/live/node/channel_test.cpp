// A channel of shared memory between two processes: order, room, bulk bytes, and a peer that lies.
#include "live/node/channel.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <thread>

#include "base/random.hpp"

namespace spinloom::live {
namespace {

constexpr uint32_t cells = ChannelMemory::cells_count;

struct Ends {
  std::unique_ptr<ChannelMemory> memory = std::make_unique<ChannelMemory>();
  ChannelWriter writer{memory.get()};
  ChannelReader reader{memory.get()};
};

Cell numbered(uint64_t number, uint32_t bytes, uint32_t offset) {
  Cell cell;
  cell.kind = CellKind::packet;
  cell.message = number;
  cell.match_bits = offset;
  cell.remote_offset = bytes;
  return cell;
}

uint8_t letter(uint64_t number, uint32_t i) { return static_cast<uint8_t>(number * 151 + i * 7); }

bool write(Ends& ends, uint64_t number, uint32_t bytes) {
  const ChannelWriter::Room room = ends.writer.reserve(bytes);
  if (room.cell == nullptr) return false;
  for (uint32_t i = 0; i < bytes; ++i) room.bulk[i] = letter(number, i);
  ends.writer.publish(room, numbered(number, bytes, room.bulk_offset));
  return true;
}

// Expects the oldest cell to have this number, with its bytes untouched.
void expect_front(const Ends& ends, uint64_t number, uint32_t bytes) {
  ASSERT_FALSE(ends.reader.empty()) << number;
  const Cell cell = ends.reader.front();
  ASSERT_EQ(cell.message, number);
  ASSERT_EQ(cell.remote_offset, bytes);
  const uint8_t* const bulk = ends.reader.bulk(cell.match_bits, bytes);
  ASSERT_NE(bulk, nullptr);
  for (uint32_t i = 0; i < bytes; ++i) ASSERT_EQ(bulk[i], letter(number, i)) << "cell " << number << ", byte " << i;
}

TEST(Channel, KeepsTheOrderAndTheBytesOfAllSizesPastManyWraps) {
  Ends ends;
  Random random(1, "channel");
  std::deque<std::pair<uint64_t, uint32_t>> inside;
  uint64_t next = 0;
  int full = 0;
  for (int step = 0; step < 100'000; ++step) {
    if (random.chance(3, 5)) {
      const uint32_t bytes =
          random.chance(1, 3) ? 0 : static_cast<uint32_t>(random.below(ChannelWriter::bulk_max() / 8));
      if (write(ends, next, bytes)) {
        inside.emplace_back(next++, bytes);
      } else {
        ++full;
      }
    } else if (!inside.empty()) {
      expect_front(ends, inside.front().first, inside.front().second);
      if (HasFatalFailure()) return;
      ends.reader.release();
      inside.pop_front();
    }
    if (inside.empty()) {
      ASSERT_TRUE(ends.reader.empty());
    }
  }
  EXPECT_GT(next, 10u * cells);
  EXPECT_GT(full, 100) << "the bulk area was never full";
}

TEST(Channel, IsFullWithAllItsCellsAndGoesOnAfterOneIsReleased) {
  Ends ends;
  for (uint32_t i = 0; i < cells; ++i) ASSERT_TRUE(write(ends, i, 0));
  EXPECT_EQ(ends.writer.reserve(0).cell, nullptr);
  ends.reader.release();
  EXPECT_TRUE(write(ends, cells, 0));
  EXPECT_EQ(ends.writer.reserve(0).cell, nullptr);
}

TEST(Channel, GivesNoBulkBytesAcrossTheEnd) {
  Ends ends;
  constexpr uint32_t most = ChannelWriter::bulk_max();
  for (uint64_t i = 0; i < 40; ++i) {
    const uint32_t bytes = most - 100 * static_cast<uint32_t>(i % 7);
    const ChannelWriter::Room room = ends.writer.reserve(bytes);
    ASSERT_NE(room.cell, nullptr);
    ASSERT_LE(room.bulk_offset + bytes, ChannelMemory::bulk_bytes);
    ends.writer.publish(room, numbered(i, bytes, room.bulk_offset));
    ends.reader.release();
  }
  // Whatever room is in use, the largest piece finds room once that is released.
  int written = 0;
  while (write(ends, 1, most)) ++written;
  EXPECT_GE(written, 3);
  for (; written > 0; --written) ends.reader.release();
  EXPECT_TRUE(write(ends, 2, most));
}

TEST(Channel, AReaderThatLiesOnlyEverFillsItsOwnChannel) {
  Ends ends;
  Random random(2, "liar");
  for (int step = 0; step < 200'000; ++step) {
    if (random.chance(1, 10)) {
      const auto lie = static_cast<uint32_t>(random.chance(1, 2) ? random.next() : random.below(2 * cells));
      ends.memory->released.store(lie);
    }
    ends.memory->reader_reach.store(static_cast<peer::Reach>(random.next()));
    const auto bytes = static_cast<uint32_t>(random.below(ChannelWriter::bulk_max() + 1));
    const ChannelWriter::Room room = ends.writer.reserve(bytes);
    if (room.cell == nullptr) continue;
    ASSERT_GE(room.cell, ends.memory->cells);
    ASSERT_LT(room.cell, ends.memory->cells + cells);
    if (bytes > 0) {
      ASSERT_GE(room.bulk, ends.memory->bulk);
      ASSERT_LE(room.bulk + bytes, ends.memory->bulk + ChannelMemory::bulk_bytes);
      room.bulk[0] = room.bulk[bytes - 1] = 1;
    }
    ends.writer.publish(room, numbered(1, bytes, room.bulk_offset));
  }
}

TEST(Channel, BulkBytesOutsideOfTheAreaAreRefused) {
  const Ends ends;
  constexpr uint64_t all = ChannelMemory::bulk_bytes;
  EXPECT_NE(ends.reader.bulk(0, all), nullptr);
  EXPECT_NE(ends.reader.bulk(all, 0), nullptr);
  EXPECT_EQ(ends.reader.bulk(0, all + 1), nullptr);
  EXPECT_EQ(ends.reader.bulk(all, 1), nullptr);
  EXPECT_EQ(ends.reader.bulk(all + 1, 0), nullptr);
  EXPECT_EQ(ends.reader.bulk(UINT64_MAX, 2), nullptr);
  EXPECT_EQ(ends.reader.bulk(8, UINT64_MAX), nullptr);
}

TEST(Channel, ASequenceThatIsNotTheNextShowsNothing) {
  Ends ends;
  for (const uint32_t lie : {2u, 3u, cells, cells + 1, UINT32_MAX}) {
    ends.memory->cells[0].sequence = lie;
    EXPECT_TRUE(ends.reader.empty()) << lie;
  }
  ends.memory->cells[0].sequence = 1;
  EXPECT_FALSE(ends.reader.empty());
}

TEST(Channel, CarriesBytesBetweenTwoThreads) {
  Ends ends;
  constexpr uint64_t messages = 20'000;
  std::thread sender([&] {
    Random random(3, "sizes");
    for (uint64_t i = 0; i < messages;) {
      const auto bytes = static_cast<uint32_t>(i % 5 == 0 ? 0 : random.below(2000));
      while (!write(ends, i, bytes)) std::this_thread::yield();
      ++i;
    }
  });
  Random random(3, "sizes");
  for (uint64_t i = 0; i < messages && !HasFatalFailure(); ++i) {
    const auto bytes = static_cast<uint32_t>(i % 5 == 0 ? 0 : random.below(2000));
    while (ends.reader.empty()) std::this_thread::yield();
    expect_front(ends, i, bytes);
    ends.reader.release();
  }
  sender.join();
}

}  // namespace
}  // namespace spinloom::live
