// Tests of the heaps of peers that are mapped, and of those that are refused.
#include "memory/peer/heap_view.hpp"

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
#include <fstream>

namespace spinloom::peer {
namespace {

// A file such as a peer may have made.
struct File {
  explicit File(uint64_t bytes, int seals, unsigned flags = MFD_ALLOW_SEALING) : number(memfd_create("peer", flags)) {
    EXPECT_EQ(ftruncate(number, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(seals == 0 ? 0 : fcntl(number, F_ADD_SEALS, seals), 0);
    place = {bytes, 0x10000, 0, number};
    struct stat status{};
    if (fstat(number, &status) == 0) place.inode = status.st_ino;
  }
  ~File() { close(number); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] std::string refusal() const {
    const auto view = HeapView::map(getpid(), place);
    return view ? "" : view.error().message;
  }

  int number;
  SharedHeap::Location place;
};

TEST(HeapView, SeesWhatThePeerWritesAndNothingElse) {
  SharedHeap& heap = process_heap();
  auto* const block = static_cast<uint8_t*>(heap.allocate(200'000));
  ASSERT_NE(block, nullptr);
  const SharedHeap::Location place = heap.location();
  auto view = HeapView::map(getpid(), place);
  ASSERT_TRUE(view.ok()) << view.error().message;
  const auto address = reinterpret_cast<uint64_t>(block);
  const uint8_t* const seen = view->at(address, 200'000);
  ASSERT_NE(seen, nullptr);
  EXPECT_NE(seen, block);
  std::memset(block, 5, 200'000);
  EXPECT_EQ(std::memcmp(seen, block, 200'000), 0);
  EXPECT_NE(view->at(place.base, place.bytes), nullptr);
  EXPECT_EQ(view->at(place.base, place.bytes + 1), nullptr);
  EXPECT_EQ(view->at(place.base - 1, 1), nullptr);
  EXPECT_EQ(view->at(place.base + place.bytes, 1), nullptr);
  EXPECT_EQ(view->at(address, UINT64_MAX), nullptr);
  EXPECT_EQ(view->at(0, 1), nullptr);
  EXPECT_EQ(HeapView().at(address, 1), nullptr);
  HeapView moved = std::move(*view);
  EXPECT_EQ(view->at(address, 1), nullptr);
  EXPECT_EQ(moved.at(address, 1), seen);
  EXPECT_TRUE(heap.release(block));
}

TEST(HeapView, OfItselfMapsNothingAndUnmapsNothing) {
  SharedHeap& heap = process_heap();
  auto* const block = static_cast<uint8_t*>(heap.allocate(200'000));
  ASSERT_NE(block, nullptr);
  const auto address = reinterpret_cast<uint64_t>(block);
  {
    HeapView view = HeapView::of_this_process(heap.location());
    const HeapView moved = std::move(view);
    EXPECT_EQ(moved.at(address, 200'000), block);
    EXPECT_EQ(moved.at(0, 1), nullptr);
    EXPECT_EQ(view.at(address, 1), nullptr);  // NOLINT(bugprone-use-after-move): it holds nothing
  }
  block[0] = 5;
  EXPECT_EQ(block[0], 5);
  EXPECT_TRUE(heap.release(block));
}

TEST(HeapView, AFileThatCouldShrinkIsRefused) {
  EXPECT_EQ(File(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW).refusal(), "");
  EXPECT_NE(File(1 << 20, 0).refusal().find("not sealed"), std::string::npos);
  EXPECT_NE(File(1 << 20, F_SEAL_GROW).refusal(), "");
  EXPECT_NE(File(1 << 20, 0, 0).refusal(), "");
}

TEST(HeapView, TheProgramKeepsAddresses) {
  const File huge(uint64_t{16} << 40, F_SEAL_SHRINK);
  EXPECT_NE(huge.refusal().find("too much"), std::string::npos) << "no heap is as large";
  const File file(uint64_t{1} << 30, F_SEAL_SHRINK);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  uint64_t used_pages = 0;
  std::ifstream("/proc/self/statm") >> used_pages;
  const uint64_t least = (used_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + file.place.bytes) / 3 * 4;
  std::string refusals[2];
  for (const bool enough : {false, true}) {
    const uint64_t addresses = enough ? least + (64 << 20) : least - (64 << 20);
    const rlimit limit{addresses, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    refusals[enough ? 1 : 0] = file.refusal();
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  }
  EXPECT_NE(refusals[0].find("ulimit -v"), std::string::npos);
  EXPECT_EQ(refusals[1], "");
}

TEST(HeapView, AFileThatIsAnotherOneIsRefused) {
  File file(1 << 20, F_SEAL_SHRINK);
  const SharedHeap::Location good = file.place;
  for (const uint64_t bytes : {uint64_t{1} << 19, uint64_t{1} << 21, uint64_t{1} << 63, UINT64_MAX}) {
    file.place.bytes = bytes;
    EXPECT_NE(file.refusal(), "") << bytes;
  }
  file.place = good;
  file.place.inode += 1;
  EXPECT_NE(file.refusal(), "");
  for (const int number : {-1, 9999}) {
    file.place = good;
    file.place.file = number;
    EXPECT_NE(file.refusal(), "");
  }
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);  // opening an end waits for a writer
  struct stat status{};
  fstat(ends[0], &status);
  file.place = {4096, 0x10000, status.st_ino, ends[0]};
  EXPECT_NE(file.refusal(), "");
  close(ends[0]);
  close(ends[1]);
  std::FILE* const other = std::tmpfile();
  ASSERT_NE(other, nullptr);
  ASSERT_EQ(ftruncate(fileno(other), 4096), 0);
  fstat(fileno(other), &status);
  file.place = {4096, 0x10000, status.st_ino, fileno(other)};
  EXPECT_NE(file.refusal(), "");
  std::fclose(other);
}

// Huge pages of a pool may be used up: then touching a hole kills.
TEST(HeapView, HugePagesAreRefused) {
  const int number = memfd_create("peer", MFD_ALLOW_SEALING | MFD_HUGETLB);
  if (number < 0) GTEST_SKIP() << "this kernel has none";
  ASSERT_EQ(ftruncate(number, 2 << 20), 0);
  ASSERT_EQ(fcntl(number, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  struct stat status{};
  fstat(number, &status);
  EXPECT_FALSE(HeapView::map(getpid(), {2 << 20, 0x10000, status.st_ino, number}).ok());
  close(number);
}

TEST(HeapView, WhatAPeerPunchesReadsAsZeros) {
  const File file(1 << 20, F_SEAL_SHRINK);
  ASSERT_EQ(pwrite(file.number, "abc", 3, 4096), 3);
  const auto view = HeapView::map(getpid(), file.place);
  ASSERT_TRUE(view.ok());
  const uint8_t* const seen = view->at(0x10000 + 4096, 3);
  EXPECT_EQ(std::memcmp(seen, "abc", 3), 0);
  ASSERT_EQ(fallocate(file.number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 1 << 20), 0);
  EXPECT_EQ(std::memcmp(seen, "\0\0\0", 3), 0);
  EXPECT_NE(ftruncate(file.number, 0), 0);
}

TEST(HeapView, OutlivesItsPeer) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto* const block = static_cast<uint8_t*>(process_heap().allocate(100'000));
    std::memset(block, 3, 100'000);
    const std::pair<SharedHeap::Location, uint8_t*> found{process_heap().location(), block};
    if (write(ends[1], &found, sizeof found) != sizeof found) _exit(1);
    pause();
  }
  std::pair<SharedHeap::Location, uint8_t*> found;
  ASSERT_EQ(read(ends[0], &found, sizeof found), static_cast<ssize_t>(sizeof found));
  const auto view = HeapView::map(child, found.first);
  ASSERT_TRUE(view.ok()) << view.error().message;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const uint8_t* const seen = view->at(reinterpret_cast<uint64_t>(found.second), 100'000);
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(seen[99'999], 3);
  EXPECT_FALSE(HeapView::map(child, found.first).ok());
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace spinloom::peer
