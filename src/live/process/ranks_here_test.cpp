// Several ranks in this process, each on its thread: bytes, ways, ends.
#include "live/process/ranks_here.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

#include "base/random.hpp"
#include "portals4.h"

namespace spinloom::process {
namespace {

constexpr uint32_t count = 4;
constexpr ptl_size_t room_bytes = 6 << 20;

std::vector<uint8_t> bytes_of(uint32_t rank, uint64_t length) {
  Random random(rank * 1000 + length, "ranks here");
  std::vector<uint8_t> bytes(length);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

// One rank's interface, with one entry that takes whatever comes.
struct End {
  ptl_handle_ni_t interface = PTL_INVALID_HANDLE;
  ptl_pt_index_t portal = 0;
  ptl_handle_ct_t arrived = PTL_CT_NONE;
  std::vector<uint8_t> room = std::vector<uint8_t>(room_bytes);
  uint64_t come = 0;

  void open(uint32_t rank) {
    ASSERT_EQ(PtlInit(), PTL_OK);
    ASSERT_EQ(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, nullptr, nullptr, &interface),
              PTL_OK);
    ptl_process_t self{};
    ASSERT_EQ(PtlGetId(interface, &self), PTL_OK);
    EXPECT_EQ(self.rank, rank);
    ASSERT_EQ(PtlPTAlloc(interface, 0, PTL_EQ_NONE, 0, &portal), PTL_OK);
    ASSERT_EQ(PtlCTAlloc(interface, &arrived), PTL_OK);
    ptl_me_t where{};
    where.start = room.data();
    where.length = room.size();
    where.ct_handle = arrived;
    where.uid = PTL_UID_ANY;
    where.options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM;
    where.match_id.rank = PTL_RANK_ANY;
    ptl_handle_me_t entry = PTL_INVALID_HANDLE;
    ASSERT_EQ(PtlMEAppend(interface, portal, &where, PTL_PRIORITY_LIST, nullptr, &entry), PTL_OK);
  }
  // Puts bytes to a rank and waits for the acknowledgement; returns whether it says that they are there.
  [[nodiscard]] bool put(uint32_t to, const std::vector<uint8_t>& bytes) const {
    ptl_handle_ct_t acked = PTL_CT_NONE;
    EXPECT_EQ(PtlCTAlloc(interface, &acked), PTL_OK);
    ptl_md_t what{};
    what.start = const_cast<uint8_t*>(bytes.data());
    what.length = bytes.size();
    what.options = PTL_MD_EVENT_CT_ACK;
    what.eq_handle = PTL_EQ_NONE;
    what.ct_handle = acked;
    ptl_handle_md_t md = PTL_INVALID_HANDLE;
    EXPECT_EQ(PtlMDBind(interface, &what, &md), PTL_OK);
    ptl_process_t target{};
    target.rank = to;
    EXPECT_EQ(PtlPut(md, 0, bytes.size(), PTL_CT_ACK_REQ, target, portal, 0, 0, nullptr, 0), PTL_OK);
    ptl_ct_event_t done{};
    EXPECT_EQ(PtlCTWait(acked, 1, &done), PTL_OK);
    EXPECT_EQ(PtlMDRelease(md), PTL_OK);
    EXPECT_EQ(PtlCTFree(acked), PTL_OK);
    return done.success == 1;
  }
  void take() {
    ptl_ct_event_t done{};
    ASSERT_EQ(PtlCTWait(arrived, ++come, &done), PTL_OK);
  }
};

class RanksHereTest : public testing::TestWithParam<live::CopyMode> {
 public:
  static live::CopyMode copy;
  static Settings settings() {
    Settings read;
    read.copy = copy;
    return read;
  }
};
live::CopyMode RanksHereTest::copy = live::CopyMode::automatic;

// Runs `work(rank)` on a thread for each rank, of ranks that live on: peers may keep their memory in use.
template <class Work>
void run(RanksHere& ranks, Work work) {
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ASSERT_TRUE(ranks.enter(rank).ok());
      work(rank);
      calls::Process::sit(nullptr);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

RanksHere& new_ranks() {
  auto* const ranks = new RanksHere({RanksHereTest::settings, [] {}});
  static RanksHere* now = nullptr;
  now = ranks;
  calls::Process::serve_all_threads([]() -> calls::Process* {
    auto joined = now->join();
    return joined ? *joined : nullptr;
  });
  return *ranks;
}

TEST_P(RanksHereTest, bytes_of_all_lengths_go_round) {
  copy = GetParam();
  RanksHere& ranks = new_ranks();
  ASSERT_TRUE(ranks.split(count).ok());
  std::barrier all(count);
  run(ranks, [&](uint32_t rank) {
    End end;
    end.open(rank);
    all.arrive_and_wait();
    for (const uint64_t length : {0, 1, 16, 17, 4096, 20'000, 1 << 20, (5 << 20) + 3}) {
      const uint32_t to = (rank + 1) % count, from = (rank + count - 1) % count;
      std::vector<uint8_t> bytes = bytes_of(rank, length);
      EXPECT_TRUE(end.put(to, bytes)) << length;
      end.take();
      const std::vector<uint8_t> expected = bytes_of(from, length);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), end.room.begin()))
          << "rank " << rank << ", " << length << " B";
      all.arrive_and_wait();
    }
    PtlNIFini(end.interface);
    PtlFini();
    EXPECT_TRUE(ranks.end().ok());
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, RanksHereTest,
                         testing::Values(live::CopyMode::automatic, live::CopyMode::heap, live::CopyMode::single,
                                         live::CopyMode::twice));

TEST(RanksHere, a_rank_that_ends_without_a_word_is_gone_for_its_peers) {
  RanksHereTest::copy = live::CopyMode::automatic;
  RanksHere& ranks = new_ranks();
  ASSERT_TRUE(ranks.split(count).ok());
  std::barrier all(count);
  std::vector<End> ends(count);  // the memory stays
  run(ranks, [&](uint32_t rank) {
    ends[rank].open(rank);
    all.arrive_and_wait();
    const std::vector<uint8_t> bytes = bytes_of(rank, 100'000);
    if (rank != 1) {
      EXPECT_TRUE(ends[rank].put(1, bytes));
    }
    all.arrive_and_wait();
    if (rank == 1) {
      EXPECT_TRUE(ranks.end().ok());
    }
    all.arrive_and_wait();
    if (rank == 1) {
      EXPECT_EQ(PtlInit(), PTL_FAIL);
      EXPECT_EQ(PtlNIFini(ends[rank].interface), PTL_NO_INIT);
      all.arrive_and_drop();
      return;
    }
    EXPECT_FALSE(ends[rank].put(1, bytes)) << "rank 1 is gone";
    EXPECT_TRUE(rank == 0 || ends[rank].put(0, bytes));
    all.arrive_and_wait();
    PtlNIFini(ends[rank].interface);
    PtlFini();
  });
}

TEST(RanksHere, a_rank_that_never_starts_keeps_nobody_waiting) {
  RanksHere& ranks = new_ranks();
  ASSERT_TRUE(ranks.split(count).ok());
  run(ranks, [&](uint32_t rank) {
    if (rank == 3) {
      EXPECT_TRUE(ranks.end().ok());
    } else {
      EXPECT_EQ(PtlInit(), PTL_FAIL);
    }
  });
}

TEST(RanksHere, what_comes_too_late_or_is_not_there_is_an_error) {
  RanksHere& ranks = new_ranks();
  EXPECT_FALSE(ranks.enter(0).ok()) << "not split";
  EXPECT_FALSE(ranks.end().ok()) << "no rank";
  EXPECT_FALSE(ranks.split(0).ok());
  EXPECT_TRUE(ranks.split(2).ok());
  EXPECT_FALSE(ranks.split(2).ok());
  EXPECT_FALSE(ranks.enter(2).ok());
  EXPECT_FALSE(ranks.join().ok()) << "this thread has no rank";
}

}  // namespace
}  // namespace spinloom::process
