// Lists of blocks, cut in any way, copied between two processes and compared with a byte-by-byte model.
#include "memory/peer/peer_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "memory/peer/testing/two_processes.hpp"

namespace spinloom::peer {
namespace {

// Blocks of `bytes` bytes in all, in any order and with any gaps, without overlaps.
std::vector<Block> cut(Random& random, const Pages& in, uint64_t bytes) {
  std::vector<Block> blocks;
  const uint64_t most = 1 + random.below(bytes + 1);
  for (uint64_t left = bytes; left > 0; left -= blocks.back().length) {
    blocks.push_back({0, std::min(left, 1 + random.below(most))});
    if (random.below(4) == 0) blocks.insert(blocks.end() - 1, {random.next(), 0});  // empty blocks may point anywhere
  }
  const uint64_t parts = blocks.size() + 1;
  uint64_t room = in.bytes - bytes;
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  if (random.below(2) == 0) random.shuffle(order);
  uint64_t at = 0;
  for (const size_t i : order) {
    const uint64_t gap = random.below(3) == 0 ? 0 : random.below(std::min(room, 1 + 4 * room / parts) + 1);
    room -= gap;
    at += gap;
    if (blocks[i].length > 0) blocks[i].address = in.address(at);
    at += blocks[i].length;
  }
  return blocks;
}

TEST(PeerMemory, ListsThatAreCutInAnyWayAreReadAndWritten) {
  const Pages there(40 * page);
  const Pages here(40 * page);
  uint64_t word = known_value;
  const Child child([&] { fill_theirs(there); });
  ASSERT_TRUE(child.came_up());
  const PeerMemory memory = memory_of(child, &word);
  const uint64_t seed = seed_of(1);
  Random random(seed, "lists");
  std::vector<uint8_t> model_there(there.bytes);
  for (uint64_t i = 0; i < there.bytes; ++i) model_there[i] = theirs_at(i);
  std::vector<uint8_t> seen(there.bytes);
  for (int round = 0; round < 400; ++round) {
    const uint64_t bytes = random.below(4) == 0 ? random.below(40) : random.below(30 * page);
    const std::vector<Block> theirs = cut(random, there, bytes);
    const std::vector<Block> ours = cut(random, here, bytes);
    const std::vector<uint64_t> from = bytes_at(theirs);
    const std::vector<uint64_t> to = bytes_at(ours);
    for (uint64_t i = 0; i < here.bytes; ++i) here.start[i] = static_cast<uint8_t>(random.next());
    std::vector<uint8_t> model_here(here.start, here.start + here.bytes);
    const bool writes = random.below(2) == 0;
    for (uint64_t i = 0; i < bytes; ++i) {
      uint8_t& one_there = model_there[from[i] - there.address()];
      uint8_t& one_here = model_here[to[i] - here.address()];
      (writes ? one_there : one_here) = writes ? one_here : one_there;
    }
    const CopyResult copied = writes ? memory.write(theirs, ours) : memory.read(theirs, ours);
    ASSERT_TRUE(copied.ok()) << copied.status.error().message << "; SPINLOOM_TEST_SEED=" << seed;
    ASSERT_EQ(copied.bytes, bytes);
    ASSERT_EQ(std::memcmp(here.start, model_here.data(), here.bytes), 0)
        << "round " << round << (writes ? ", written" : ", read") << "; SPINLOOM_TEST_SEED=" << seed;
    ASSERT_TRUE(memory.read(there.address(), seen.data(), seen.size()).ok());
    ASSERT_EQ(seen, model_there) << "round " << round << "; SPINLOOM_TEST_SEED=" << seed;
  }
}

TEST(PeerMemory, ManyBlocksAreReadAndWritten) {
  constexpr uint64_t blocks = 100'000;
  const Pages there(blocks * 24);
  const Pages here(blocks * 8);
  uint64_t word = known_value;
  const Child child([&] { fill_theirs(there); });
  ASSERT_TRUE(child.came_up());
  const PeerMemory memory = memory_of(child, &word);
  std::vector<Block> theirs(blocks);
  for (uint64_t i = 0; i < blocks; ++i) theirs[i] = {there.address((blocks - 1 - i) * 24), 8};  // backwards
  const Block ours{here.address(), here.bytes};
  CopyResult copied = memory.read(theirs, {&ours, 1});
  ASSERT_TRUE(copied.ok()) << copied.status.error().message;
  EXPECT_EQ(copied.bytes, blocks * 8);
  for (uint64_t i = 0; i < here.bytes; ++i) {
    ASSERT_EQ(here.start[i], theirs_at((blocks - 1 - i / 8) * 24 + i % 8)) << i;
  }
  std::memset(here.start, 0, here.bytes);
  copied = memory.write(theirs, {&ours, 1});
  ASSERT_TRUE(copied.ok()) << copied.status.error().message;
  std::vector<uint8_t> seen(there.bytes);
  ASSERT_TRUE(memory.read(there.address(), seen.data(), seen.size()).ok());
  for (uint64_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i % 24 < 8 ? 0 : theirs_at(i)) << i;
}

TEST(PeerMemory, ListsOfNothingAreCopied) {
  uint64_t word = known_value;
  const Child child([] {});
  const PeerMemory memory = memory_of(child, &word);
  const std::vector<Block> empty(3, {16, 0});
  for (const Blocks list : {Blocks(), Blocks(empty)}) {
    EXPECT_TRUE(memory.read(list, {}).ok());
    EXPECT_TRUE(memory.write(list, empty).ok());
    EXPECT_EQ(memory.read(list, {}).bytes, 0u);
  }
}

TEST(PeerMemory, ListsOfDifferentSizesAreRefusedBeforeAnythingIsCopied) {
  uint64_t word = known_value;
  const Child child([] {});
  const PeerMemory memory = memory_of(child, &word);
  uint8_t bytes[8] = {};
  const Block theirs{address_of(&word), 8};
  const Block ours{address_of(bytes), 7};
  const CopyResult copied = memory.read({&theirs, 1}, {&ours, 1});
  ASSERT_FALSE(copied.ok());
  EXPECT_EQ(copied.bytes, 0u);
  EXPECT_EQ(copied.status.error().message, "a list of 8 B of the peer's and one of 7 B here");
  EXPECT_EQ(memory.write({&theirs, 1}, {&ours, 1}).status.error().code, Code::invalid);
  EXPECT_EQ(bytes[0], 0);
  const Block huge[2] = {{16, UINT64_MAX}, {16, 2}};
  EXPECT_EQ(memory.read(huge, {&ours, 1}).status.error().code, Code::overflow);
}

// Blocks of a heap and of other memory, in one list.
TEST(PeerMemory, BlocksOfAHeapAreCopiedFromItsMapping) {
  SharedHeap& heap = process_heap();
  auto* const block = static_cast<uint8_t*>(heap.allocate(200'000));
  ASSERT_NE(block, nullptr);
  std::vector<uint8_t> other(100'000);
  for (uint64_t i = 0; i < 200'000; ++i) block[i] = theirs_at(i);
  for (uint64_t i = 0; i < other.size(); ++i) other[i] = theirs_at(i + 1'000'000);
  uint64_t word = known_value;
  Process self;
  ASSERT_EQ(self.open(getpid()), 0);
  PeerMemory memory(std::move(self), {address_of(&word), known_value});
  std::vector<Block> theirs;
  std::vector<uint8_t> expected;
  const uint64_t seed = seed_of(2);
  Random random(seed, "heap");
  for (int i = 0; i < 3000; ++i) {
    const bool mapped = random.below(2) == 0;
    const uint64_t at = random.below(99'000);
    const uint64_t length = random.below(1000);
    const uint8_t* const start = mapped ? block + at : other.data() + at;
    theirs.push_back({address_of(start), length});
    expected.insert(expected.end(), start, start + length);
  }
  std::vector<uint8_t> got(expected.size());
  std::vector<Block> ours;
  for (uint64_t at = 0; at < got.size(); at += ours.back().length) {
    ours.push_back({address_of(got.data() + at), std::min<uint64_t>(got.size() - at, 1 + random.below(1500))});
  }
  EXPECT_FALSE(memory.read(theirs, ours).ok()) << "nothing is tried yet";
  ASSERT_TRUE(memory.map_heap(heap.location()).ok());
  EXPECT_EQ(memory.reach(), Reach::heap);
  EXPECT_FALSE(memory.read(theirs, ours).ok()) << "some is not the heap's";
  ASSERT_TRUE(memory.try_reading().ok());
  EXPECT_EQ(memory.reach(), Reach::both);
  const CopyResult copied = memory.read(theirs, ours);
  ASSERT_TRUE(copied.ok()) << copied.status.error().message;
  EXPECT_EQ(copied.bytes, got.size());
  EXPECT_TRUE(got == expected) << "SPINLOOM_TEST_SEED=" << seed;
  EXPECT_TRUE(heap.release(block));
}

TEST(PeerMemory, AWordThatIsAnotherOneIsFound) {
  uint64_t word = known_value + 1;
  Process self;
  ASSERT_EQ(self.open(getpid()), 0);
  PeerMemory memory(std::move(self), {address_of(&word), known_value});
  EXPECT_FALSE(memory.try_reading().ok());
  EXPECT_FALSE(memory.try_writing().ok());
  EXPECT_EQ(word, known_value + 1);
  EXPECT_NE(memory.describe().find("another process namespace"), std::string::npos);
  EXPECT_EQ(memory.reach(), Reach::nothing);
  Process none;
  EXPECT_EQ(none.open(INT32_MAX), ESRCH);
}

}  // namespace
}  // namespace spinloom::peer
