// The helper thread takes over what callers leave, whatever they did while it was about to look.
#include "live/node/progress.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "live/testing/shm_rig.hpp"

namespace spinloom::live {
namespace {

constexpr Time patience{60'000'000'000'000};  // 60 s: the machine may be busy

constexpr Time twice_the_pause{1'000'000'000};  // the helper leaves a program that calls alone for 500 us

template <class Condition>
bool eventually(Condition condition) {
  const Time limit = monotonic_now() + patience;
  while (!condition()) {
    if (monotonic_now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

// A caller polls while the helper, which has seen no call, waits for the lock. A message comes and rings for nobody,
// because the caller polls. Afterwards the program makes no call that looks.
TEST(Progress, NewsThatCameBesideAPollAreTakenWithoutAnotherOne) {
  Rig rig;
  Node node(nic::Rank{0}, 2, {}, rig.job.segments[0]);
  ShmTransport transport(node, rig.job.segments[0], 0, rig.job.cards, {}, [](int, nic::Rank) {});
  rig.start(1);
  node.add_transport(transport);
  node.set_route(nic::Rank{1}, transport);
  auto progress = Progress::start(node, [](uint64_t) {});
  ASSERT_TRUE(progress.ok()) << progress.error().message;
  const auto taken = [&] {
    const std::lock_guard inside(node.lock());
    return !node.has_news();
  };
  rig.put(1, 1, some(8, 1));  // now the ranks have met
  rig.ends[1]->poll();
  ASSERT_TRUE(eventually(taken));
  for (uint64_t round = 2; round < 12; ++round) {
    // The helper has noticed a call and pauses; at the end of its pause it waits for the lock, if we hold it.
    ASSERT_TRUE(eventually([&] {
      {
        const std::lock_guard inside(node.lock());
        node.poll();
        (*progress)->note_call_end();
      }
      // If it was about to sleep when we looked, it sleeps now and hears the bell: look again.
      while (node.was_polled() && !node.doorbell().helper_sleeps()) std::this_thread::yield();
      node.lock().lock();
      for (const Time limit = monotonic_now() + twice_the_pause; monotonic_now() < limit;) {
        if (node.lock().has_waiters()) return true;
      }
      node.lock().unlock();
      return false;
    })) << "the helper does not look";
    node.poll();
    rig.put(1, round, some(8, round));
    node.lock().unlock();
    ASSERT_TRUE(eventually(taken)) << "round " << round;
  }
  progress->reset();
}

}  // namespace
}  // namespace spinloom::live
