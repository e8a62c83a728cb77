// Copies that end early: missing pages, peers that die during a copy, and processes that have got a peer's number.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "memory/peer/testing/two_processes.hpp"

namespace spinloom::peer {
namespace {

// Page 3 of six is missing.
TEST(PeerEnds, WhatIsInFrontOfAPageThatIsNotThereIsCopied) {
  const Pages there(6 * page);
  const Pages here(6 * page);
  uint64_t word = known_value;
  const Child child([&] {
    fill_theirs(there);
    munmap(there.start + 3 * page, page);
  });
  ASSERT_TRUE(child.came_up());
  const PeerMemory memory = memory_of(child, &word);
  struct Case {
    const char* name;
    std::vector<Block> theirs;
    uint64_t certain, most;
  };
  const std::vector<Case> cases = {
      {"one block", {{there.address(), 6 * page}}, 3 * page, 3 * page},
      {"a block that straddles it",
       {{there.address(), page}, {there.address(3 * page - 100), 5 * page}},
       page,
       page + 100},
      {"a block on it", {{there.address(10), 100}, {there.address(3 * page + 50), 8}, {there.address(), 9}}, 100, 100},
      {"the first block", {{there.address(3 * page), 8}, {there.address(), 8}}, 0, 0},
      {"nobody's", {{there.address(), 8}, {16, 8}}, 8, 8},
      {"the kernel's", {{there.address(), 8}, {UINT64_MAX - 100, 90}}, 8, 8},
  };
  for (const Case& one : cases) {
    const Block ours{here.address(), bytes_of(one.theirs).value()};
    const std::vector<uint64_t> from = bytes_at(one.theirs);
    for (const bool writes : {false, true}) {
      std::memset(here.start, 0, here.bytes);
      for (uint64_t i = 0; writes && i < here.bytes; ++i) here.start[i] = theirs_at(i);
      const CopyResult copied = writes ? memory.write(one.theirs, {&ours, 1}) : memory.read(one.theirs, {&ours, 1});
      ASSERT_FALSE(copied.ok()) << one.name;
      EXPECT_NE(copied.status.error().message.find("Bad address"), std::string::npos) << copied.status.error().message;
      EXPECT_GE(copied.bytes, one.certain) << one.name;
      EXPECT_LE(copied.bytes, one.most) << one.name;
      for (uint64_t i = 0; !writes && i < copied.bytes; ++i) {
        ASSERT_EQ(here.start[i], theirs_at(from[i] - there.address())) << one.name << " at " << i;
      }
    }
    ASSERT_TRUE(memory.write(there.address(), here.start, 0).ok());
    fill_theirs(here);  // theirs is what it was
    ASSERT_TRUE(memory.write(there.address(), here.start, 3 * page).ok());
    ASSERT_TRUE(memory.write(there.address(4 * page), here.start + 4 * page, 2 * page).ok());
  }
}

// Blocks end on the last bytes of a page and begin on a later one; the page between is missing, and has no block.
TEST(PeerEnds, APageThatIsNotThereBetweenBlocksIsNoTrouble) {
  const Pages there(3 * page);
  uint64_t word = known_value;
  const Child child([&] {
    fill_theirs(there);
    munmap(there.start + page, page);
  });
  ASSERT_TRUE(child.came_up());
  const PeerMemory memory = memory_of(child, &word);
  const Block theirs[2] = {{there.address(page - 8), 8}, {there.address(2 * page), 8}};
  uint8_t bytes[16];
  const Block ours{address_of(bytes), 16};
  ASSERT_TRUE(memory.read(theirs, {&ours, 1}).ok());
  for (uint64_t i = 0; i < 16; ++i) EXPECT_EQ(bytes[i], theirs_at(i < 8 ? page - 8 + i : 2 * page + i - 8));
}

TEST(PeerEnds, OurOwnPageThatIsNotThereIsAnError) {
  const Pages there(4 * page);
  const Pages here(4 * page);
  uint64_t word = known_value;
  const Child child([&] { fill_theirs(there); });
  ASSERT_TRUE(child.came_up());
  const PeerMemory memory = memory_of(child, &word);
  ASSERT_EQ(mprotect(here.start + 2 * page, page, PROT_NONE), 0);
  const Block theirs{there.address(), there.bytes};
  const Block ours{here.address(), here.bytes};
  EXPECT_LE(memory.read({&theirs, 1}, {&ours, 1}).bytes, 2 * page);
  EXPECT_FALSE(memory.read({&theirs, 1}, {&ours, 1}).ok());
  EXPECT_FALSE(memory.write({&theirs, 1}, {&ours, 1}).ok());
  ASSERT_EQ(mprotect(here.start + 2 * page, page, PROT_READ | PROT_WRITE), 0);
}

TEST(PeerEnds, APeerThatDiesInTheMidstIsAnErrorAndWhatCountsIsRight) {
  constexpr uint64_t bytes = 64 << 20;
  const Pages there(bytes);
  const Pages here(bytes);
  uint64_t word = known_value;
  for (int round = 0; round < 3; ++round) {
    Child child([&] { std::memset(there.start, 5, bytes); });
    ASSERT_TRUE(child.came_up());
    const PeerMemory memory = memory_of(child, &word);
    std::vector<Block> theirs;
    for (uint64_t at = 0; at < bytes; at += 4 * page) theirs.push_back({there.address(at), 2 * page});
    const Block ours{here.address(), bytes / 2};
    std::memset(here.start, 0, bytes);
    const pid_t killer = fork();
    if (killer == 0) {
      // The child waits until the copy has begun, which it sees by reading our memory.
      const uint64_t from = address_of(here.start);
      const pid_t parent = getppid();
      uint8_t first = 0;
      const iovec local{&first, 1};
      const iovec remote{reinterpret_cast<void*>(from), 1};
      while (first == 0 && process_vm_readv(parent, &local, 1, &remote, 1, 0) == 1) {
      }
      kill(child.id(), SIGKILL);
      _exit(0);
    }
    CopyResult copied;
    do {
      copied = memory.read(theirs, {&ours, 1});
    } while (copied.ok());  // the copy may be faster than the killer
    waitpid(killer, nullptr, 0);
    EXPECT_LT(copied.bytes, bytes / 2);
    for (uint64_t i = 0; i < copied.bytes; ++i) ASSERT_EQ(here.start[i], 5) << i;
    EXPECT_FALSE(memory.write(theirs, {&ours, 1}).ok());
    child.end();
  }
}

void wait_until_not_fresh() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(Process::alive_valid_ns + 1);
  while (std::chrono::steady_clock::now() < until) {
  }
}

// A stranger with the number of a peer that ended, and with memory at all of the peer's addresses.
struct Stranger {
  Stranger() : there(page), peer(std::make_unique<Child>([this] { std::memset(there.start, 1, page); })) {
    memory = memory_of(*peer, &word);
    const pid_t number = peer->id();
    peer->end();
    stranger = std::make_unique<Child>([this] { std::memset(there.start, 2, page); }, number);
  }
  [[nodiscard]] uint8_t first_byte() const {
    uint8_t byte = 0;
    const iovec local{&byte, 1};
    const iovec remote{there.start, 1};
    EXPECT_EQ(process_vm_readv(stranger->id(), &local, 1, &remote, 1, 0), 1);
    return byte;
  }

  uint64_t word = known_value;
  Pages there;
  std::unique_ptr<Child> peer;
  PeerMemory memory;
  std::unique_ptr<Child> stranger;
};

TEST(PeerEnds, AProcessThatHasGotThePeersNumberIsNeitherReadNorWritten) {
  const Stranger made;
  if (!made.stranger->came_up()) GTEST_SKIP() << "this user may not choose a process's number";
  wait_until_not_fresh();
  uint8_t bytes[16] = {9, 9};
  const Status written = made.memory.write(made.there.address(), bytes, sizeof bytes);
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().message.find("has ended"), std::string::npos) << written.error().message;
  EXPECT_EQ(made.first_byte(), 2);
  EXPECT_FALSE(made.memory.read(made.there.address(), bytes, sizeof bytes).ok());
}

// The stranger seems to have got the number after the sender's last check.
TEST(PeerEnds, AProcessThatHasGotThePeersNumberJustNowIsNotWrittenWhereItHasNoSuchWord) {
  Pages words(page);
  auto* const word = reinterpret_cast<uint64_t*>(words.start);
  *word = known_value;
  const Pages there(page);
  const Child stranger([&] {
    std::memset(there.start, 2, page);
    munmap(words.start, page);
  });
  ASSERT_TRUE(stranger.came_up());
  Process process;
  ASSERT_EQ(process.open(stranger.id()), 0);
  uint8_t bytes[16] = {9, 9};
  const Block theirs{there.address(), sizeof bytes};
  const Block ours{address_of(bytes), sizeof bytes};
  BlockCursor to({&theirs, 1});
  BlockCursor from({&ours, 1});
  EXPECT_FALSE(kernel_write(process, {words.address(), known_value}, to, from, sizeof bytes).ok());
  to = BlockCursor({&theirs, 1});
  from = BlockCursor({&ours, 1});
  uint8_t seen = 0;
  const Block ours_seen{address_of(&seen), 1};
  BlockCursor seen_here({&ours_seen, 1});
  ASSERT_TRUE(kernel_read(process, to, seen_here, 1).ok());
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace spinloom::peer
