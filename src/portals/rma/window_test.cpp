// Tests over the racy loopback driver: keys that end, ranks that end, room for notices that ends, locks that exclude.
#include "portals/rma/window.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "portals/rma/testing/operations.hpp"
#include "portals/rma/testing/ranks.hpp"

namespace spinloom::rma {
namespace {

using test::as_pieces;
using test::on_words;
using test::small_options;
using test::TestRanks;
using Kind = Operation::Kind;

// Whatever is under way when a key is revoked, afterwards nothing changes the memory.
TEST(Context, ARevokedKeyChangesNothing) {
  for_seeds(60, [](Random& seeds) {
    const Options options = small_options(seeds);
    std::vector<uint64_t> memory(64);
    Key key;
    bool is_shared = false;
    uint64_t failed = 0;
    TestRanks job(2, options, seeds.next(), seeds.chance(1, 2));
    job.run([&](uint32_t rank, Context& context) {
      if (rank == 0) {
        auto added = context.add_memory(as_pieces(memory), Notices::none);
        ASSERT_TRUE(added.ok());
        auto made = context.share(**added, rights_all);
        ASSERT_TRUE(made.ok());
        key = *made;
        is_shared = true;
        for (uint64_t pauses = 5; pauses > 0; --pauses) std::ignore = context.pause("others", Time::never());
        ASSERT_TRUE(context.revoke(**added, key.bits).ok());
        EXPECT_FALSE(context.revoke(**added, key.bits).ok());
        const std::vector<uint64_t> then = memory;
        ASSERT_TRUE(context.barrier().ok());
        EXPECT_EQ(memory, then);
      } else {
        ASSERT_TRUE(context.wait_until("the key", Context::WaitFor::targets, [&] { return is_shared; }).ok());
        std::vector<uint64_t> ones(64, 1);
        Status flushed;
        while (flushed) {
          ASSERT_TRUE(context.begin(on_words(Kind::accumulate, key, 0, ones)).ok());
          flushed = context.flush(0);
        }
        ASSERT_TRUE(context.begin(on_words(Kind::put, key, 0, ones)).ok());
        EXPECT_FALSE(context.flush(0).ok());
        failed = context.counts(0).failed;
        ASSERT_TRUE(context.barrier().ok());
      }
      EXPECT_TRUE(context.close().ok());
    });
    EXPECT_GE(failed, 2);
  });
}

TEST(Window, ARankThatIsGoneEndsWaits) {
  for_seeds(60, [](Random& seeds) {
    const Options options = small_options(seeds);
    const uint64_t what = seeds.below(6);
    std::vector<std::vector<uint64_t>> memory(3, std::vector<uint64_t>(8));
    TestRanks job(3, options, seeds.next());
    job.run([&](uint32_t rank, Context& context) {
      auto made = Window::make(context, as_pieces(memory[rank]), rights_all, Notices::counted);
      ASSERT_TRUE(made.ok()) << made.error().message;
      Window& window = **made;
      if (rank == 2) {
        if (what == 3) {
          ASSERT_TRUE(window.lock(0, Window::Lock::exclusive).ok());
        }
        ASSERT_TRUE(context.barrier().ok());
        job.kill(2);
        return;
      }
      std::vector<uint64_t> words(8);
      Status status = context.barrier();  // the last messages of the killed rank may be lost
      const std::vector<uint32_t> group{2};
      while (status) {
        switch (what) {
          case 0:
            ASSERT_TRUE(context.begin(on_words(Kind::put, window.key(2), 0, words)).ok());
            status = context.flush(2);
            break;
          case 1:
            ASSERT_TRUE(context.begin(on_words(Kind::get, window.key(2), 0, words)).ok());
            status = context.flush_all();
            break;
          case 2: status = context.barrier(); break;
          case 3: status = window.lock(0, rank == 0 ? Window::Lock::shared : Window::Lock::exclusive); break;
          case 4: status = window.start(group); break;
          default: status = window.lock_all();
        }
        if (what == 5 && status) status = window.unlock_all();
      }
      EXPECT_FALSE(context.close().ok());
    });
  });
}

TEST(Window, NoticesThatFindNoRoomFailAtTheirOrigin) {
  for_seeds(40, [](Random& seeds) {
    Options options = small_options(seeds);
    options.emulated = seeds.chance(1, 2);
    constexpr uint64_t sent_max = 30;
    std::vector<std::vector<uint64_t>> memory(2, std::vector<uint64_t>(4));
    uint64_t arrived = 0;
    bool has_sent = false;
    uint64_t taken = 0;
    TestRanks job(2, options, seeds.next());
    job.run([&](uint32_t rank, Context& context) {
      auto made = Window::make(context, as_pieces(memory[rank]), rights_all, Notices::queued);
      ASSERT_TRUE(made.ok()) << made.error().message;
      Window& window = **made;
      std::vector<uint64_t> words{1, 2, 3, 4};
      if (rank == 1) {
        for (uint64_t i = 0; i < sent_max; ++i) {
          Operation put = on_words(Kind::put, window.key(0), 0, words);
          put.notice = i;
          ASSERT_TRUE(context.begin(put).ok());
        }
        EXPECT_FALSE(context.flush(0).ok()) << "all found room";
        arrived = sent_max - context.counts(0).failed;
        has_sent = true;
        // Once some have been taken, there is room again.
        ASSERT_TRUE(context.wait_until("room", Context::WaitFor::targets, [&] { return taken == arrived; }).ok());
        Operation put = on_words(Kind::put, window.key(0), 0, words);
        put.notice = 99;
        Status flushed = fail(Code::fault, "not yet");
        while (!flushed) {
          ASSERT_TRUE(context.begin(put).ok());
          flushed = context.flush(0);
          if (flushed) break;
          ASSERT_TRUE(context.pause("room", Time::never()).ok());
        }
      } else {
        ASSERT_TRUE(context.wait_until("the puts", Context::WaitFor::targets, [&] { return has_sent; }).ok());
        EXPECT_EQ(context.notified(window.memory()), arrived);
        while (taken < arrived) {
          ASSERT_TRUE(context.progress().ok());
          const auto notice = context.next_notice(window.memory());
          ASSERT_TRUE(notice.has_value());
          EXPECT_EQ(notice->bytes, 32);
          EXPECT_EQ(notice->rank, 1);
          ++taken;
        }
        std::optional<Notice> last;
        ASSERT_TRUE(context
                        .wait_until("the last", Context::WaitFor::targets,
                                    [&] {
                                      last = context.next_notice(window.memory());
                                      return last.has_value();
                                    })
                        .ok());
        EXPECT_EQ(last->value, 99);
      }
      ASSERT_TRUE(window.free().ok());
      EXPECT_TRUE(context.close().ok());
    });
  });
}

TEST(Window, ExclusiveLocksExcludeAndAllEnter) {
  for_seeds(40, [](Random& seeds) {
    const auto ranks = static_cast<uint32_t>(seeds.between(1, 4));
    const Options options = small_options(seeds);
    const uint64_t seed = seeds.next();
    uint32_t readers = 0;
    uint32_t writers = 0;
    uint32_t entered = 0;
    TestRanks job(ranks, options, seed);
    job.run([&](uint32_t rank, Context& context) {
      auto made = Window::make(context, {}, rights_all, Notices::none);
      ASSERT_TRUE(made.ok()) << made.error().message;
      Window& window = **made;
      Random random(seed, text("lock ", rank));
      for (uint32_t i = 0; i < 8; ++i) {
        const bool reads = random.chance(1, 2);
        const Status locked = window.lock(0, reads ? Window::Lock::shared : Window::Lock::exclusive);
        ASSERT_TRUE(locked.ok()) << locked.error().message;
        ++(reads ? readers : writers);
        ++entered;
        EXPECT_TRUE(writers == 0 || (writers == 1 && readers == 0)) << writers << " writers, " << readers << " readers";
        for (uint64_t pauses = random.below(4); pauses > 0; --pauses) std::ignore = context.pause("it", Time::never());
        EXPECT_TRUE(writers == 0 || (writers == 1 && readers == 0));
        --(reads ? readers : writers);
        ASSERT_TRUE(window.unlock(0).ok());
      }
      ASSERT_TRUE(window.free().ok());
      EXPECT_TRUE(context.close().ok());
    });
    EXPECT_EQ(entered, 8 * ranks);
  });
}

}  // namespace
}  // namespace spinloom::rma
