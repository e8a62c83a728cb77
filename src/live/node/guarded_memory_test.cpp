// Memory that may be missing, found out by faults; and the faults and signals that are the program's own.
#include "live/node/guarded_memory.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "portals/interface/testing/pages.hpp"

namespace spinloom::live {
namespace {

using nic::Access;
using portals::TestPages;

TEST(GuardedMemory, FindsWhatIsThere) {
  GuardedMemory memory;
  portals::expect_pages(memory);
  EXPECT_TRUE(GuardedMemory::touches());
}

TEST(GuardedMemory, FindsItInEveryThread) {
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      GuardedMemory memory;
      portals::expect_pages(memory);
      EXPECT_TRUE(GuardedMemory::touches());
    }).join();
  }
}

// A write that another thread makes meanwhile is not lost.
TEST(GuardedMemory, ChangesNothingWhileOthersWrite) {
  TestPages pages;
  auto& word = *reinterpret_cast<std::atomic<uint8_t>*>(pages.whole);
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (int i = 0; i < 2'000'000; ++i) word.fetch_add(1, std::memory_order_relaxed);
    ends = true;
  });
  GuardedMemory memory;
  while (!ends) EXPECT_TRUE(memory.reaches(pages.whole, 1, Access::write));
  writer.join();
  EXPECT_EQ(word, static_cast<uint8_t>(2'000'000));
}

TEST(GuardedMemory, WhereFaultsAreBlockedTheKernelIsAsked) {
  std::thread([] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    GuardedMemory memory;
    portals::expect_pages(memory);
    EXPECT_FALSE(GuardedMemory::touches());
  }).join();
}

// A sanitizer takes the signal first and ends the process with an exit code of its own.
bool ended_by_its_fault(int status) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  if (WIFEXITED(status)) return WEXITSTATUS(status) != 0;
#endif
  return testing::KilledBySignal(SIGSEGV)(status);
}

// Each of these ends its process, so each has one of its own.
class GuardedMemoryDeathTest : public testing::Test {
 protected:
  GuardedMemoryDeathTest() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
  static void install() {
    int there = 0;
    (void)GuardedMemory().reaches(&there, sizeof there, Access::read);
  }
};

TEST_F(GuardedMemoryDeathTest, FaultsOfTheProgramEndIt) {
  const auto fault = [] {
    install();
    *reinterpret_cast<volatile int*>(uintptr_t{64}) = 1;
  };
  EXPECT_EXIT(fault(), ended_by_its_fault, "");
}

TEST_F(GuardedMemoryDeathTest, ASentSignalEndsTheProgram) {
  const auto send = [] {
    install();
    kill(getpid(), SIGSEGV);
    for (;;) pause();
  };
  EXPECT_EXIT(send(), ended_by_its_fault, "");
}

TEST_F(GuardedMemoryDeathTest, TheProgramsOwnHandlerIsCalled) {
  const auto fault = [] {
    signal(SIGSEGV, [](int) { _exit(42); });
    install();
    *reinterpret_cast<volatile int*>(uintptr_t{64}) = 1;
  };
  EXPECT_EXIT(fault(), testing::ExitedWithCode(42), "");
}

// A handler that comes later: the kernel is asked soon.
TEST_F(GuardedMemoryDeathTest, AHandlerThatComesLaterStays) {
  const auto look = [] {
    install();
    signal(SIGSEGV, [](int) { _exit(42); });
    GuardedMemory memory;
    int there = 0;
    for (uint32_t i = 0; i < GuardedMemory::look_every; ++i) (void)memory.reaches(&there, sizeof there, Access::read);
    portals::expect_pages(memory);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(look(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace spinloom::live
