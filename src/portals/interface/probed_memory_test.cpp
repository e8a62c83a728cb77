// Memory that may be missing, found out by a system call that changes nothing.
#include "portals/interface/probed_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "portals/interface/testing/pages.hpp"

namespace spinloom::portals {
namespace {

TEST(ProbedMemory, FindsWhatIsThere) {
  ProbedMemory memory;
  expect_pages(memory);
}

TEST(ProbedMemory, ChangesNothing) {
  TestPages pages;
  std::memset(pages.whole, 0x5a, TestPages::page_bytes);
  ProbedMemory memory;
  for (uint64_t offset = 0; offset < 64; ++offset) {
    EXPECT_TRUE(memory.reaches(pages.whole + offset, 100, nic::Access::write));
  }
  for (uint64_t i = 0; i < TestPages::page_bytes; ++i) ASSERT_EQ(static_cast<uint8_t>(pages.whole[i]), 0x5a);
}

}  // namespace
}  // namespace spinloom::portals
