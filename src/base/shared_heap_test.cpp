// The heap of this process: blocks, threads, room, forks.
#include "base/shared_heap.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/random.hpp"

namespace spinloom {
namespace {

constexpr size_t granule = SharedHeap::granule_bytes;

class Heap : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(heap.open(), 0) << std::strerror(heap.open());
    before = heap.used_bytes();
  }
  void TearDown() override { EXPECT_EQ(heap.used_bytes(), before); }
  uint8_t* block(size_t bytes, size_t alignment = granule, bool zeroed = false) {
    return static_cast<uint8_t*>(heap.allocate(bytes, alignment, zeroed));
  }
  // The bytes of pages that the heap's file really has.
  uint64_t backed_bytes() {
    struct stat status{};
    fstat(heap.location().file, &status);
    return static_cast<uint64_t>(status.st_blocks) * 512;
  }

  SharedHeap& heap = process_heap();
  size_t before = 0;
};

bool all(const uint8_t* at, size_t bytes, uint8_t value) {
  for (size_t i = 0; i < bytes; ++i) {
    if (at[i] != value) return false;
  }
  return true;
}

// Runs `work` in a forked child; returns whether it returned true.
template <class Work>
bool in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(Heap, BlocksAreAlignedAndApart) {
  uint8_t* const one = block(1);
  uint8_t* const two = block(3 * granule + 1, SharedHeap::alignment_max);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(reinterpret_cast<uint64_t>(one) % granule, 0u);
  EXPECT_EQ(reinterpret_cast<uint64_t>(two) % SharedHeap::alignment_max, 0u);
  EXPECT_EQ(heap.size_of(one), granule);
  EXPECT_EQ(heap.size_of(two), 4 * granule);
  EXPECT_EQ(heap.size_of(two + granule), 0u);
  EXPECT_TRUE(heap.contains(two, 4 * granule));
  EXPECT_FALSE(heap.contains(&before, 1));
  const SharedHeap::Location place = heap.location();
  EXPECT_TRUE(heap.contains(reinterpret_cast<void*>(place.base), place.bytes));
  EXPECT_FALSE(heap.contains(reinterpret_cast<void*>(place.base), place.bytes + 1));
  EXPECT_FALSE(heap.contains(one, SIZE_MAX));
  EXPECT_FALSE(heap.release(two + granule));
  EXPECT_FALSE(heap.release(&before));
  EXPECT_FALSE(heap.release(nullptr));
  EXPECT_TRUE(heap.release(two));
  EXPECT_FALSE(heap.release(two)) << "twice";
  EXPECT_TRUE(heap.release(one));
}

TEST_F(Heap, WhatCannotBeServedIsNull) {
  EXPECT_EQ(block(0), nullptr);
  EXPECT_EQ(block(SIZE_MAX), nullptr);
  EXPECT_EQ(block(heap.location().bytes + 1), nullptr);
  EXPECT_EQ(block(1, 2 * SharedHeap::alignment_max), nullptr);
  std::vector<uint8_t*> blocks;  // none of them is touched
  while (uint8_t* const one = block(size_t{1} << 28)) blocks.push_back(one);
  EXPECT_GE(blocks.size(), heap.location().bytes / (size_t{1} << 28) - 1);
  std::vector<uint8_t*> rest;
  while (uint8_t* const one = block(granule)) rest.push_back(one);
  EXPECT_EQ(heap.used_bytes(), heap.location().bytes);
  for (uint8_t* const one : rest) EXPECT_TRUE(heap.release(one));
  for (uint8_t* const one : blocks) EXPECT_TRUE(heap.release(one));
}

TEST_F(Heap, PagesComeWhenTouchedAndGoWhenMuchIsIdle) {
  const size_t bytes = 3 * SharedHeap::idle_bytes;
  EXPECT_TRUE(heap.release(block(bytes)));  // cleans all idle pages
  uint8_t* const one = block(bytes);
  ASSERT_NE(one, nullptr);
  const uint64_t untouched = backed_bytes();
  std::memset(one, 1, bytes / 2);
  EXPECT_EQ(backed_bytes(), untouched + bytes / 2);
  EXPECT_TRUE(heap.release(one));
  EXPECT_LE(backed_bytes(), SharedHeap::idle_bytes);
}

TEST_F(Heap, ZeroedBlocksAreZeroWhoeverHadThem) {
  for (int round = 0; round < 5; ++round) {
    uint8_t* const one = block(10 * granule, granule, true);
    ASSERT_NE(one, nullptr);
    EXPECT_TRUE(all(one, 10 * granule, 0));
    std::memset(one, 7, 10 * granule);
    EXPECT_TRUE(heap.release(one));
  }
  uint8_t* const large = block(2 * SharedHeap::idle_bytes, granule, true);
  EXPECT_TRUE(all(large, 20 * granule, 0));
  EXPECT_TRUE(heap.release(large));
}

TEST_F(Heap, ABlockGrowsAndShrinksWhereItIs) {
  uint8_t* const one = block(2 * granule);
  std::memset(one, 3, 2 * granule);
  EXPECT_TRUE(heap.resize(one, 5 * granule));
  EXPECT_EQ(heap.size_of(one), 5 * granule);
  EXPECT_TRUE(all(one, 2 * granule, 3));
  EXPECT_TRUE(heap.resize(one, 1));
  EXPECT_EQ(heap.size_of(one), granule);
  EXPECT_FALSE(heap.resize(one + 1, granule));
  EXPECT_FALSE(heap.resize(one, heap.location().bytes + granule));
  EXPECT_TRUE(heap.release(one));
}

TEST_F(Heap, ThreadsHaveBlocksOfTheirOwn) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (uint8_t self = 1; self <= 4; ++self) {
    threads.emplace_back([&, self] {
      Random random(self, "blocks");
      std::vector<std::pair<uint8_t*, size_t>> mine;
      for (int step = 0; step < 2000; ++step) {
        if (mine.size() < 8 && random.chance(1, 2)) {
          const size_t bytes = 1 + random.below(6 * granule);
          uint8_t* const one = block(bytes);
          one[0] = one[bytes / 2] = one[bytes - 1] = self;
          mine.emplace_back(one, bytes);
        } else if (!mine.empty()) {
          const auto [one, bytes] = mine[random.below(mine.size())];
          std::erase(mine, std::pair(one, bytes));
          if (one[0] != self || one[bytes / 2] != self || one[bytes - 1] != self || !heap.release(one)) ++wrong;
        }
      }
      for (const auto& [one, bytes] : mine) wrong += heap.release(one) ? 0 : 1;
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(Heap, ItsFileCanNeitherShrinkNorGrow) {
  const SharedHeap::Location place = heap.location();
  EXPECT_NE(ftruncate(place.file, 0), 0);
  EXPECT_NE(ftruncate(place.file, static_cast<off_t>(place.bytes * 2)), 0);
  EXPECT_EQ(fcntl(place.file, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW), F_SEAL_SHRINK | F_SEAL_GROW);
}

// The parent's side of a fork: waits until the child has written, then writes to two pages of `one`.
void write_beside(pid_t child, int from_child, int to_child, uint8_t* one) {
  char word = 0;
  ASSERT_EQ(read(from_child, &word, 1), 1);
  EXPECT_EQ(one[0], 1);
  one[1] = 3;
  one[granule] = 3;
  ASSERT_EQ(write(to_child, "x", 1), 1);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(Heap, ParentAndChildSeeTheirOwnWritesOnly) {
  uint8_t* const one = block(8 * granule, granule, true);
  std::memset(one, 1, 4 * granule);  // the other pages stay untouched
  const uint64_t parents = heap.location().inode;
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child) + pipe(to_parent), 0);
  const pid_t child = fork();
  if (child == 0) {
    char word = 0;
    bool good = all(one, 4 * granule, 1) && all(one + 4 * granule, 4 * granule, 0);
    one[0] = 2;
    good = write(to_parent[1], "x", 1) == 1 && read(to_child[0], &word, 1) == 1 && good;
    good = good && one[0] == 2 && one[1] == 1 && one[granule] == 1;
    // The child has a heap of its own, which works as the parent's does.
    good = good && heap.location().inode != parents && heap.size_of(one) == 8 * granule;
    auto* const more = static_cast<uint8_t*>(heap.allocate(granule, granule, true));
    good = good && more != nullptr && all(more, granule, 0) && heap.release(more);
    good = good && in_child([&] { return one[0] == 2 && (one[0] = 5) == 5; }) && one[0] == 2;
    good = good && heap.release(one) && fcntl(heap.location().file, F_GET_SEALS) > 0;
    _exit(good ? 0 : 1);
  }
  write_beside(child, to_parent[0], to_child[1], one);
  EXPECT_TRUE(one[0] == 1 && one[1] == 3 && one[2] == 1);
  EXPECT_EQ(heap.location().inode, parents);
  EXPECT_TRUE(heap.release(one));
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
}

TEST_F(Heap, ABlockWithOtherMemoryOverItIsNotShared) {
  uint8_t* const one = block(4 * granule);
  uint8_t* const two = block(granule);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  std::memset(one, 1, 4 * granule);
  std::memset(two, 2, granule);
  heap.mark_replaced(one + 2 * granule, granule);
  uint8_t* const over = one + 2 * granule;
  ASSERT_EQ(mmap(over, granule, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), over);
  EXPECT_FALSE(heap.is_shared(one, granule));
  EXPECT_FALSE(heap.is_shared(over, 1));
  EXPECT_TRUE(heap.is_shared(two, granule));
  EXPECT_TRUE(heap.contains(over, 1));
  over[0] = 7;
  EXPECT_TRUE(in_child([&] { return over[0] == 7 && two[0] == 2 && (two[0] = 9) == 9 && (over[0] = 9) == 9; }));
  EXPECT_TRUE(over[0] == 7 && two[0] == 2);
  EXPECT_FALSE(heap.resize(one, granule)) << "the rest would be free, and is not the heap's memory";
  ASSERT_TRUE(heap.release(one));
  uint8_t* const again = block(4 * granule);
  ASSERT_EQ(again, one);
  EXPECT_TRUE(heap.is_shared(again, 4 * granule));
  std::memset(again, 3, 4 * granule);
  EXPECT_TRUE(in_child([&] { return all(again, 4 * granule, 3); }));
  uint8_t read[1] = {};
  const auto place = static_cast<off_t>(reinterpret_cast<uint64_t>(over) - heap.location().base);
  EXPECT_EQ(pread(heap.location().file, read, 1, place), 1);
  EXPECT_EQ(read[0], 3) << "peers see the block again";
  EXPECT_TRUE(heap.release(again));
  EXPECT_TRUE(heap.release(two));
}

TEST_F(Heap, AForkCopiesWhatIsLeftOfABlockAroundOtherMemory) {
  const int both = PROT_READ | PROT_WRITE;
  uint8_t* const one = block(2 * granule);
  ASSERT_NE(one, nullptr);
  std::memset(one, 1, 2 * granule);
  ASSERT_EQ(mmap(one + 4096, 4096, both, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), one + 4096);
  heap.mark_replaced(one + 4096, 4096);
  one[4096] = 7;
  EXPECT_TRUE(in_child([&] {
    const bool good = all(one, 4096, 1) && one[4096] == 7 && all(one + 8192, 2 * granule - 8192, 1);
    std::memset(one, 2, 2 * granule);
    return good && in_child([&] { return one[0] == 2 && (one[0] = 5) == 5; }) && one[0] == 2;
  }));
  EXPECT_TRUE(all(one, 4096, 1) && one[4096] == 7 && all(one + 8192, 2 * granule - 8192, 1));
  heap.punch_hole(one + 8192, 4096);
  EXPECT_TRUE(all(one + 8192, 4096, 0) && one[3 * 4096] == 1);
  EXPECT_TRUE(heap.release(one));
}

// Two blocks would be one memory, if the first were given out again.
TEST_F(Heap, ABlockWhosePagesWereMovedStaysInUse) {
  uint8_t* const one = block(granule);
  ASSERT_NE(one, nullptr);
  std::memset(one, 1, granule);
  void* const moved = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(moved, MAP_FAILED);
  ASSERT_EQ(mremap(one, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, moved), moved);
  heap.mark_moved(one, 4096);
  auto* const there = static_cast<uint8_t*>(moved);
  EXPECT_TRUE(in_child([&] { return all(there, 4096, 1) && (there[0] = 2) == 2 && one[4096] == 1; }));
  EXPECT_EQ(there[0], 1);
  EXPECT_TRUE(heap.release(one));
  uint8_t* const two = block(granule);
  EXPECT_NE(two, one);
  EXPECT_TRUE(heap.release(two));
  munmap(moved, 4096);
  before += granule;
}

// Files may not grow here, so that the fork cannot copy the blocks. The child sees the parent's file, and its own
// writes stay private.
TEST_F(Heap, AForkThatCannotCopyLeavesTheParentAlone) {
  uint8_t* const one = block(4 * granule, granule, true);
  std::memset(one, 1, 3 * granule);
  const uint64_t parents = heap.location().inode;
  int to_child[2], to_parent[2];
  ASSERT_EQ(pipe(to_child) + pipe(to_parent), 0);
  const auto before_that = signal(SIGXFSZ, SIG_IGN);
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &files), 0);
  const rlimit none{0, files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  const pid_t child = fork();
  setrlimit(RLIMIT_FSIZE, &files);
  if (child == 0) {
    char word = 0;
    bool good = all(one, 3 * granule, 1) && all(one + 3 * granule, granule, 0);
    one[0] = 2;
    good = write(to_parent[1], "x", 1) == 1 && read(to_child[0], &word, 1) == 1 && good;
    good = good && one[0] == 2 && one[1] == 1 && one[granule] == 3;  // its own page and the parent's
    good = good && heap.location().bytes == 0 && heap.size_of(one) == 4 * granule;  // peers cannot map it
    std::memset(one + 3 * granule, 7, granule);
    good = good && heap.release(one);
    auto* const more = static_cast<uint8_t*>(heap.allocate(4 * granule, granule, true));
    good = good && more != nullptr && all(more, 4 * granule, 0);
    more[0] = 4;
    good = good && in_child([&] { return more[0] == 4 && (more[0] = 5) == 5; }) && more[0] == 4;
    _exit(good && heap.release(more) ? 0 : 1);
  }
  signal(SIGXFSZ, before_that);
  write_beside(child, to_parent[0], to_child[1], one);
  EXPECT_TRUE(one[0] == 1 && all(one + 3 * granule, granule, 0)) << "what the child wrote";
  EXPECT_EQ(heap.location().inode, parents);
  EXPECT_TRUE(heap.release(one));
  for (const int end : {to_child[0], to_child[1], to_parent[0], to_parent[1]}) close(end);
}

TEST_F(Heap, AForkWhileThreadsAllocateGoesOn) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) {
      (void)heap.release(block(granule));
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(in_child([&] {
      void* const one = heap.allocate(granule);
      return one != nullptr && heap.release(one);
    }));
  }
  stop = true;
  other.join();
}

// Programs close descriptors that they do not know; the number then names another file.
TEST_F(Heap, ADescriptorThatIsGoneHarmsNobodyElsesFile) {
  uint8_t* const one = block(SharedHeap::idle_bytes + granule);
  std::memset(one, 9, granule);
  EXPECT_TRUE(in_child([&] {
    std::FILE* const file = std::tmpfile();
    const int other = file == nullptr ? -1 : fileno(file);
    if (other < 0 || write(other, "theirs", 6) != 6) return false;
    if (dup2(other, heap.location().file) < 0) return false;
    // A child still gets the blocks, and what the heap discards is its own memory.
    const bool seen = in_child([&] { return one[0] == 9 && (one[1] = 8) == 8; });
    std::memset(one, 1, 2 * granule);
    char word[7] = "";
    return seen && heap.release(one) && pread(other, word, 6, 0) == 6 && std::strcmp(word, "theirs") == 0;
  }));
  EXPECT_EQ(one[0], 9);
  EXPECT_TRUE(heap.release(one));
}

}  // namespace
}  // namespace spinloom
