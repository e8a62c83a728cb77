// Long payloads between ranks of one process: from heaps, from other memory, with the sender's help.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "live/testing/shm_rig.hpp"

namespace spinloom::live {
namespace {

// A block of the process's heap, with bytes.
struct Block {
  explicit Block(const std::vector<uint8_t>& bytes)
      : start(static_cast<uint8_t*>(process_heap().allocate(bytes.size()))), length(bytes.size()) {
    SPL_ASSERT(start != nullptr, "no heap");
    std::memcpy(start, bytes.data(), length);
  }
  ~Block() { EXPECT_TRUE(process_heap().release(start)); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  uint8_t* start;
  uint64_t length;
};

TEST(ShmCopies, AHeapIsReadWhereItIsOnceThePeerHasIt) {
  struct Case {
    CopyMode copy;
    bool heap, memory;  // memory from which payloads are lent
    const char* says;
  };
  for (const Case& one : {Case{CopyMode::automatic, true, true, "from its heap one copy (mapped), else one copy"},
                          Case{CopyMode::heap, true, false, "from its heap one copy (mapped), else two copies"},
                          Case{CopyMode::single, true, true, "one copy (process_vm_readv)"},
                          Case{CopyMode::twice, false, false, "two copies: SPINLOOM_COPY=two-copy"}}) {
    Rig rig({one.copy, 20'000, 8 << 10, UINT64_MAX});  // nobody helps
    rig.start(0);
    rig.start(1);
    EXPECT_TRUE(rig.put(1, 99, some(4, 1)));
    rig.poll();
    const std::vector<uint8_t> bytes = some(100'000, 7);
    const Block block(bytes);
    for (int i = 0; i < 3; ++i) {  // the first put may carry the news of the heap
      EXPECT_EQ(rig.put(0, 1, block.start, block.length), !one.heap) << i;
      rig.poll();
    }
    EXPECT_EQ(rig.heard[1].readable.empty(), !one.heap);
    const size_t before = rig.heard[1].readable.size();
    EXPECT_EQ(rig.put(0, 1, bytes), !one.memory);
    rig.poll();
    EXPECT_EQ(rig.heard[1].readable.size() > before, one.memory);
    for (const bool readable : rig.heard[1].readable) EXPECT_TRUE(readable);
    uint64_t total = 0;
    for (size_t i = 0; i < rig.heard[1].payloads.size(); ++i) {
      const auto& part = rig.heard[1].payloads[i];
      EXPECT_EQ(std::memcmp(part.data(), bytes.data() + rig.heard[1].packets[i].offset, part.size()), 0);
      total += part.size();
    }
    EXPECT_EQ(total, 4 * bytes.size());
    EXPECT_EQ(rig.ends[1]->describe(nic::Rank{0}).find(one.says), 0u) << rig.ends[1]->describe(nic::Rank{0});
    EXPECT_EQ(rig.ends[0]->refused_cells() + rig.ends[1]->refused_cells(), 0u);
  }
}

TEST(ShmCopies, TheNewsOfAHeapWakesAPeerThoughThePayloadFindsNoRoom) {
  Rig rig({CopyMode::twice, 20'000});
  rig.start(0);
  rig.start(1);
  const std::vector<uint8_t> bytes = some(ChannelMemory::bulk_bytes / 8, 7);
  const Block block(bytes);
  for (uint64_t i = 0; i < 7; ++i) EXPECT_TRUE(rig.put(0, i, bytes)) << i;
  Doorbell& bell = rig.job.segments[1].header().doorbell;
  bell.note_helper_sleeps();
  EXPECT_FALSE(rig.put(0, 7, block.start, block.length)) << "with the records of the others, there is no room";
  EXPECT_FALSE(bell.helper_sleeps());
  rig.poll();
  ASSERT_EQ(rig.heard[1].payloads.size(), 8u);
  EXPECT_TRUE(rig.heard[1].payloads[7] == bytes);
}

// A payload that is lent passes no channel: the receiver's copy out of the sender's memory is the only one.
TEST(ShmCopies, RanksOfAProcessReadEachOthersMemoryInPlace) {
  struct Case {
    CopyMode copy;
    bool heap, memory;
    const char* says;
  };
  for (const Case& one :
       {Case{CopyMode::automatic, true, true, "one copy (in the same process)"},
        Case{CopyMode::heap, true, false, "from its heap one copy (in the same process), else two copies"},
        Case{CopyMode::twice, false, false, "two copies: SPINLOOM_COPY=two-copy"}}) {
    ShmOptions options;
    options.copy_mode = one.copy;
    options.help_from_bytes = UINT64_MAX;
    options.shared_address_space = true;
    Rig rig(options);
    rig.start(0);
    rig.start(1);
    EXPECT_TRUE(rig.put(1, 99, some(4, 1)));
    rig.poll();
    const std::vector<uint8_t> bytes = some(9'000, 7);
    const Block block(bytes);
    EXPECT_EQ(rig.put(0, 1, block.start, block.length), !one.heap);
    EXPECT_EQ(rig.put(0, 1, bytes), !one.memory);
    rig.poll();
    uint64_t total = 0;
    for (size_t i = 0; i < rig.heard[1].payloads.size(); ++i) {
      const auto& part = rig.heard[1].payloads[i];
      EXPECT_EQ(std::memcmp(part.data(), bytes.data() + rig.heard[1].packets[i].offset, part.size()), 0);
      total += part.size();
    }
    EXPECT_EQ(total, 2 * bytes.size());
    EXPECT_EQ(rig.ends[1]->describe(nic::Rank{0}).find(one.says), 0u) << rig.ends[1]->describe(nic::Rank{0});
    EXPECT_EQ(rig.ends[0]->refused_cells() + rig.ends[1]->refused_cells(), 0u);
  }
}

TEST(ShmCopies, AHeapThatIsNoneIsNotMapped) {
  Rig rig({CopyMode::heap, 20'000});
  rig.start(0);
  SegmentHeader& header = rig.job.segments[0].header();
  header.heap_bytes = 1 << 20;
  header.heap_file = 0;
  rig.start(1);
  EXPECT_TRUE(rig.put(1, 99, some(4, 1)));
  rig.poll();
  const std::vector<uint8_t> bytes = some(100'000, 7);
  const Block block(bytes);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(rig.put(0, 1, block.start, block.length)) << "two copies";
    rig.poll();
  }
  EXPECT_TRUE(rig.heard[1].readable.empty());
  EXPECT_NE(rig.ends[1]->describe(nic::Rank{0}).find("its heap: "), std::string::npos);
  // A peer lends a payload although nobody said that its memory could be read.
  rig.job.segments[1].channel_of(0)->reader_reach = peer::Reach::both;
  EXPECT_FALSE(rig.put(0, 1, bytes));
  rig.poll();
  EXPECT_EQ(rig.heard[1].readable, std::vector<bool>{false});
}

TEST(ShmCopies, WhatAPeerKeepsOfALoanIsGivenBackWhenItSaysSo) {
  Rig rig({CopyMode::single, 1000});
  rig.start(0);
  rig.start(1);
  EXPECT_TRUE(rig.put(1, 99, some(4, 1)));  // now both ends have met
  rig.poll();
  rig.heard[1].keeps = true;
  const std::vector<uint8_t> lent = some(5000, 3);
  EXPECT_FALSE(rig.put(0, 1, lent));
  rig.poll();
  ASSERT_EQ(rig.heard[1].kept.size(), 1u);
  EXPECT_TRUE(rig.heard[0].read.empty());
  EXPECT_FALSE(rig.ends[0]->drained());
  rig.ends[1]->return_loan(nic::Rank{0}, rig.heard[1].kept[0]);
  rig.poll();
  EXPECT_EQ(rig.heard[0].read, std::vector<uint64_t>{1});
}

struct HelpedRig : Rig {
  HelpedRig() : Rig({CopyMode::single, 1000, 8 << 10, 6000}) {
    start(0);
    start(1);
    EXPECT_TRUE(put(1, 99, some(4, 1)));  // now both ends have met
    poll();
  }
};

TEST(ShmCopies, ASenderThatPollsCopiesItsShare) {
  HelpedRig rig;
  const std::vector<uint8_t> bytes = some(300'000, 3);
  // The sender's thread may come late several times, but not for ever.
  uint64_t rounds = 0;
  for (; rounds < 100'000 && (rounds < 20 || rig.ends[0]->helped_parts() < 20); ++rounds) {
    rig.heard[1] = {};
    EXPECT_FALSE(rig.put(0, 1, bytes));
    std::atomic<bool> over{false};
    std::thread sender([&] {
      while (!over) rig.ends[0]->poll();
    });
    while (rig.heard[1].fetches.empty()) rig.ends[1]->poll();
    over = true;
    sender.join();
    ASSERT_EQ(rig.heard[1].fetches, (std::vector<std::pair<uint64_t, bool>>{{1, true}}));
    ASSERT_TRUE(rig.heard[1].payloads[0] == bytes) << "round " << rounds;
  }
  rig.poll();
  EXPECT_GE(rig.ends[0]->helped_parts(), 20u) << rounds << " rounds";
  EXPECT_EQ(rig.heard[0].read.size(), rounds) << "what was lent is given back";
  EXPECT_TRUE(rig.ends[0]->drained());
  EXPECT_TRUE(rig.ends[1]->drained());
}

// A put of rank 0; somebody has taken a part of its copy, and does not report the end.
peer::CopyPart begin_helped(HelpedRig& rig, const std::vector<uint8_t>& bytes) {
  peer::CopyHelper helper(rig.job.segments[1].channel_of(0)->shared_copy);
  std::optional<peer::CopyPart> part;
  for (int tries = 0; tries < 100'000 && !part; ++tries) {
    rig.poll();
    rig.heard[0] = {};
    rig.heard[1] = {};
    std::atomic<bool> over{false};
    std::thread sender([&] {
      while (!over && !part) part = helper.take();
    });
    EXPECT_FALSE(rig.put(0, 1, bytes));
    rig.ends[1]->poll();
    over = true;
    sender.join();
  }
  EXPECT_TRUE(part);
  EXPECT_TRUE(rig.heard[1].fetches.empty());
  EXPECT_FALSE(rig.ends[1]->drained());
  return part.value_or(peer::CopyPart{});
}

void write(const peer::CopyPart& part) {
  std::memcpy(reinterpret_cast<void*>(part.to), reinterpret_cast<const void*>(part.from), part.length);
}

using Fetches = std::vector<std::pair<uint64_t, bool>>;

TEST(ShmCopies, WhatAHelperHasBegunIsWaitedForAndOtherMessagesAreNot) {
  HelpedRig rig;
  const std::vector<uint8_t> bytes = some(300'000, 3);
  const peer::CopyPart part = begin_helped(rig, bytes);
  EXPECT_TRUE(rig.put(0, 2, some(4, 1)));
  EXPECT_FALSE(rig.put(0, 3, bytes)) << "long, but the helper is busy";
  rig.poll();
  ASSERT_EQ(rig.heard[1].packets.size(), 3u);
  EXPECT_TRUE(rig.heard[1].payloads[2] == bytes);
  EXPECT_TRUE(rig.heard[0].read.empty()) << "given back in their order";
  EXPECT_TRUE(rig.heard[1].fetches.empty());
  EXPECT_FALSE(rig.ends[1]->has_news());
  EXPECT_TRUE(rig.ends[1]->outstanding(nic::Rank{0}).may_write);
  write(part);
  peer::CopyHelper(rig.job.segments[1].channel_of(0)->shared_copy).report(true);
  EXPECT_TRUE(rig.ends[1]->has_news());
  rig.poll();
  EXPECT_EQ(rig.heard[1].fetches, (Fetches{{1, true}}));
  EXPECT_TRUE(rig.heard[1].payloads[0] == bytes);
  EXPECT_EQ(rig.heard[0].read, (std::vector<uint64_t>{1, 3}));
  EXPECT_TRUE(rig.ends[1]->drained());
}

TEST(ShmCopies, WhatAHelperCouldNotWriteIsRead) {
  HelpedRig rig;
  const std::vector<uint8_t> bytes = some(300'000, 3);
  std::ignore = begin_helped(rig, bytes);
  peer::CopyHelper(rig.job.segments[1].channel_of(0)->shared_copy).report(false);
  rig.poll();
  EXPECT_EQ(rig.heard[1].fetches, (Fetches{{1, true}}));
  EXPECT_TRUE(rig.heard[1].payloads[0] == bytes);
}

TEST(ShmCopies, AHelperThatDiesLeavesACopyThatHasFailed) {
  HelpedRig rig;
  std::ignore = begin_helped(rig, some(300'000, 3));
  rig.ends[1]->process_ended(nic::Rank{0});
  EXPECT_EQ(rig.heard[1].fetches, (Fetches{{1, false}}));
  EXPECT_EQ(rig.heard[1].gone, std::vector<uint32_t>{0});
  EXPECT_TRUE(rig.ends[1]->drained());
}

}  // namespace
}  // namespace spinloom::live
