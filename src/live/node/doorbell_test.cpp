// Wake-ups: none is lost, between threads and between processes; and the owner lock.
#include "live/node/doorbell.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <mutex>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "base/testing/patience.hpp"
#include "live/node/owner_lock.hpp"

namespace spinloom::live {
namespace {

const Time a_minute = patient(Time{60'000'000'000'000});

// Ringers leave work here, and a sleeper takes it, as Node and Progress do.
struct Post {
  Doorbell bell;
  std::atomic<uint64_t> left{0};
};

void pause_a_little(Random& random) {
  switch (random.below(4)) {
    case 0: break;
    case 1: std::this_thread::yield(); break;
    default: usleep(static_cast<useconds_t>(random.below(120)));
  }
}

void leave_some(Post& post, uint64_t count, uint64_t seed) {
  Random random(seed, "ringer");
  for (uint64_t i = 0; i < count; ++i) {
    post.left.fetch_add(1, std::memory_order_release);
    post.bell.ring(true);
    pause_a_little(random);
  }
}

// Takes all messages, woken by the bell alone. False: it slept for a minute although a message was there.
bool take_all(Post& post, uint64_t count, Doorbell::Sleeper who, uint64_t seed) {
  Random random(seed, "sleeper");
  uint64_t seen = 0;
  while (seen < count) {
    post.bell.note_polling();
    seen = post.left.load(std::memory_order_acquire);
    if (random.chance(1, 3)) pause_a_little(random);
    if (who == Doorbell::helper) {
      post.bell.note_helper_sleeps();
    } else {
      post.bell.note_callers_sleep();
    }
    const uint32_t value = post.bell.value();
    const bool heard = (value & 3) != who;  // the bell has rung since
    if (heard || post.left.load(std::memory_order_acquire) != seen || seen == count) continue;
    const Time began = monotonic_now();
    post.bell.sleep(value, who, began + a_minute);
    if (monotonic_now() >= began + a_minute) return false;
  }
  return true;
}

TEST(Doorbell, LosesNoWakeUpBetweenThreads) {
  for (const auto who : {Doorbell::helper, Doorbell::callers}) {
    Post post;
    constexpr uint64_t each = 2000;
    std::vector<std::thread> ringers;
    for (uint64_t seed = 1; seed <= 3; ++seed) ringers.emplace_back(leave_some, std::ref(post), each, seed);
    EXPECT_TRUE(take_all(post, 3 * each, who, 9));
    for (std::thread& ringer : ringers) ringer.join();
  }
}

TEST(Doorbell, LosesNoWakeUpBetweenProcesses) {
  void* const shared = mmap(nullptr, sizeof(Post), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const post = new (shared) Post;
  constexpr uint64_t each = 2000;
  std::array<pid_t, 2> children{};
  for (size_t i = 0; i < children.size(); ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      leave_some(*post, each, i + 20);
      _exit(0);
    }
  }
  EXPECT_TRUE(take_all(*post, children.size() * each, Doorbell::helper, 30));
  for (const pid_t child : children) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  munmap(shared, sizeof(Post));
}

TEST(Doorbell, WhilePolledARingWritesNothing) {
  Doorbell bell;
  bell.note_polling();
  const uint32_t before = bell.value();
  bell.ring(true);
  EXPECT_EQ(bell.value(), before);
  bell.note_helper_sleeps();
  EXPECT_TRUE(bell.helper_sleeps());
  bell.ring(true);
  EXPECT_EQ(Doorbell::rings(bell.value()), Doorbell::rings(before) + 1);
  EXPECT_FALSE(bell.helper_sleeps());
  bell.note_callers_sleep();
  EXPECT_TRUE(bell.callers_sleep());
  EXPECT_FALSE(bell.helper_sleeps());
}

TEST(Doorbell, ARingForCallersLetsTheHelperSleep) {
  Doorbell bell;
  bell.note_helper_sleeps();
  const uint32_t before = bell.value();
  bell.ring_callers(true);
  EXPECT_EQ(bell.value(), before);
  bell.note_callers_sleep();
  bell.ring_callers(true);
  EXPECT_EQ(Doorbell::rings(bell.value()), Doorbell::rings(before) + 1);
  EXPECT_TRUE(bell.somebody_polls());
  bell.ring_callers(true);
  EXPECT_EQ(Doorbell::rings(bell.value()), Doorbell::rings(before) + 1);
}

TEST(Doorbell, CallersAreWokenWhoeverTheBellIsSetTo) {
  Doorbell bell;
  bell.note_callers_sleep();
  std::atomic<bool> awake{false};
  const uint32_t value = bell.value();
  std::thread sleeper([&] {
    bell.sleep(value, Doorbell::callers, monotonic_now() + a_minute);
    awake = true;
  });
  bell.note_polling();  // another thread polls, so a ring would wake nobody
  const Time end = monotonic_now() + a_minute;
  while (!awake && monotonic_now() < end) {
    bell.wake_callers();
    usleep(100);
  }
  EXPECT_TRUE(awake);
  sleeper.join();
}

TEST(Doorbell, ASleepEndsAtItsDeadline) {
  Doorbell bell;
  bell.note_helper_sleeps();
  const Time until = monotonic_now() + Time{2'000'000'000};
  const uint32_t value = bell.value();
  while (monotonic_now() < until) bell.sleep(value, Doorbell::helper, until);
  EXPECT_GE(monotonic_now(), until);
}

TEST(OwnerLock, LetsOneThreadInAtATime) {
  OwnerLock lock;
  uint64_t count = 0;
  std::vector<std::thread> threads;
  constexpr uint64_t each = 20'000;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      Random random(seed, "lock");
      for (uint64_t i = 0; i < each; ++i) {
        const std::lock_guard inside(lock);
        const uint64_t before = count;
        if (random.chance(1, 500)) usleep(20);
        count = before + 1;
        if (random.chance(1, 50)) lock.yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4 * each);
  EXPECT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

TEST(OwnerLock, AThreadThatYieldsLetsAnotherOneIn) {
  OwnerLock lock;
  std::atomic<bool> was_in{false};
  lock.lock();
  std::thread other([&] {
    const std::lock_guard inside(lock);
    was_in = true;
  });
  const Time end = monotonic_now() + a_minute;
  while (!was_in && monotonic_now() < end) {
    if (lock.has_waiters()) lock.yield();
  }
  lock.unlock();
  other.join();
  EXPECT_TRUE(was_in);
}

}  // namespace
}  // namespace spinloom::live
