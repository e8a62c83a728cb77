// TestPages - memory with holes, for tests of what finds them.
//
// Contract: expect_pages() expects of a HostMemory what the pages are. Threads: one owner. Time: none.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic/portals/host_memory.hpp"

namespace spinloom::portals {

class TestPages {
 public:
  static constexpr uint64_t page_bytes = 4096;
  static constexpr uint64_t long_pages = 64;

  TestPages() {
    base_ = static_cast<char*>(
        mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    whole = base_;
    hole = whole + long_pages * page_bytes;
    fixed = hole + page_bytes;
    closed = fixed + page_bytes;
    behind_file = closed + page_bytes;
    munmap(hole, page_bytes);
    mprotect(fixed, page_bytes, PROT_READ);
    mprotect(closed, page_bytes, PROT_NONE);
    // The file ends before its mapping does: touching the second page is SIGBUS, not SIGSEGV.
    char name[] = "/tmp/spinloom-pages-XXXXXX";
    const int file = mkstemp(name);
    unlink(name);
    EXPECT_EQ(ftruncate(file, page_bytes), 0);
    EXPECT_EQ(mmap(behind_file, 2 * page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0), behind_file);
    close(file);
    behind_file += page_bytes;
  }
  ~TestPages() { munmap(base_, pages * page_bytes); }
  TestPages(const TestPages&) = delete;
  TestPages& operator=(const TestPages&) = delete;

  char* whole = nullptr;   // long_pages of them
  char* hole = nullptr;    // unmapped
  char* fixed = nullptr;   // read-only
  char* closed = nullptr;  // memory without access
  char* behind_file = nullptr;

 private:
  static constexpr uint64_t pages = long_pages + 6;
  char* base_ = nullptr;
};

inline void expect_pages(nic::HostMemory& memory) {
  using nic::Access;
  const TestPages pages;
  constexpr uint64_t page = TestPages::page_bytes, all = TestPages::long_pages * page;
  for (const Access access : {Access::read, Access::write}) {
    SCOPED_TRACE(access == Access::read ? "read" : "write");
    EXPECT_TRUE(memory.reaches(pages.whole, all, access));
    EXPECT_TRUE(memory.reaches(pages.whole + 1, 1, access));
    EXPECT_TRUE(memory.reaches(pages.hole - 1, 1, access));
    EXPECT_TRUE(memory.reaches(pages.hole, 0, access));
    EXPECT_FALSE(memory.reaches(pages.hole - 1, 2, access));
    EXPECT_FALSE(memory.reaches(pages.whole, all + 1, access));
    EXPECT_FALSE(memory.reaches(pages.hole, 1, access));
    EXPECT_FALSE(memory.reaches(pages.hole + page - 1, 2, access));
    EXPECT_FALSE(memory.reaches(pages.closed + 5, 1, access));
    EXPECT_TRUE(memory.reaches(pages.behind_file - 8, 8, access));
    EXPECT_FALSE(memory.reaches(pages.behind_file - 8, 9, access));
    EXPECT_FALSE(memory.reaches(nullptr, 8, access));
    EXPECT_FALSE(memory.reaches(pages.whole, UINT64_MAX, access));
    EXPECT_FALSE(memory.reaches(reinterpret_cast<void*>(UINT64_MAX - 7), 8, access));
    EXPECT_FALSE(memory.reaches(reinterpret_cast<void*>(UINT64_MAX - 7), 9, access));
    EXPECT_FALSE(memory.reaches(reinterpret_cast<void*>(uint64_t{1} << 60), 8, access));
  }
  EXPECT_TRUE(memory.reaches(pages.fixed, page, Access::read));
  EXPECT_FALSE(memory.reaches(pages.fixed + page - 1, 1, Access::write));
}

}  // namespace spinloom::portals
