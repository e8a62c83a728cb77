// Contexts over the racy loopback driver: operations against a plain reference, keys that end, ranks that end, notices that
// find no room, locks that exclude.
#include "rma/context.hpp"

#include <gtest/gtest.h>

#include "base/test_seeds.hpp"
#include "rma/test_ranks.hpp"

namespace spinloom::rma {
namespace {

using test::TestRanks;
using Kind = Operation::Kind;

constexpr uint32_t sum = static_cast<uint32_t>(spin::AtomicOperation::sum);

Options small_options(Random& random) {
  Options options;
  options.atomic_bytes = 16 << random.below(4);
  options.fetch_bytes = 8 << random.below(4);
  options.message_bytes = static_cast<uint32_t>(64 * random.between(1, 4));
  options.messages = static_cast<uint32_t>(random.between(1, 4));
  options.notices = 4;
  options.emulated = random.chance(1, 3);
  options.emulate_above_limit = random.chance(1, 2);
  return options;
}

Operation on_words(Kind kind, const Key& key, uint64_t at, std::span<uint64_t> words) {
  Operation made;
  made.kind = kind;
  made.key = key;
  made.offset = at * sizeof(uint64_t);
  made.bytes = words.size_bytes();
  made.from = kind == Kind::get ? nullptr : reinterpret_cast<const uint8_t*>(words.data());
  made.to = kind == Kind::get ? reinterpret_cast<uint8_t*>(words.data()) : nullptr;
  made.op = sum;
  made.type = spin::Datatype::uint64;
  return made;
}

std::vector<spin::IovecElement> whole(std::vector<uint64_t>& words) {
  return {{reinterpret_cast<uint8_t*>(words.data()), words.size() * sizeof(uint64_t)}};
}

// Puts to words of the origin's own and sums on words of all, in rounds between fences.
TEST(Context, DoesWhatAPlainReferenceDoes) {
  for_seeds(60, [](Random& seeds) {
    const auto ranks = static_cast<uint32_t>(seeds.between(1, 4));
    const Options options = small_options(seeds);
    const bool mixed = seeds.chance(1, 3);
    const uint64_t seed = seeds.next();
    constexpr uint64_t own = 40;
    constexpr uint64_t shared = 50;
    std::vector<std::vector<uint64_t>> memory(ranks, std::vector<uint64_t>(ranks * own + shared));
    std::vector<std::vector<uint64_t>> reference = memory;
    TestRanks job(ranks, options, seed, mixed);
    job.run([&](uint32_t rank, Context& context) {
      auto window = Window::make(context, whole(memory[rank]), rights_all, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      Random random(seed, text("rank ", rank));
      std::deque<std::vector<uint64_t>> sources;
      for (uint32_t i = 0; i < 20; ++i) {
        const auto target = static_cast<uint32_t>(random.below(ranks));
        const bool adds = random.chance(1, 2);
        const uint64_t room = adds ? shared : own;
        const uint64_t count = random.between(1, static_cast<int64_t>(room));
        const uint64_t at = (adds ? ranks * own : rank * own) + random.below(room - count + 1);
        std::vector<uint64_t>& source = sources.emplace_back(count);
        for (uint64_t& word : source) word = random.next();
        for (uint64_t word = 0; word < count; ++word) {
          uint64_t& expected = reference[target][at + word];
          expected = adds ? expected + source[word] : source[word];
        }
        const Operation operation = on_words(adds ? Kind::accumulate : Kind::put, (*window)->key(target), at, source);
        const Status begun = context.begin(operation);
        ASSERT_TRUE(begun.ok()) << begun.error().message;
        if (adds) continue;
        ASSERT_TRUE(context.flush(target).ok());  // puts on the same words in their order
        std::vector<uint64_t> back(count);
        ASSERT_TRUE(context.begin(on_words(Kind::get, (*window)->key(target), at, back)).ok());
        ASSERT_TRUE(context.flush(target).ok());
        EXPECT_EQ(back, source);
      }
      ASSERT_TRUE(context.flush_all().ok());
      ASSERT_TRUE(context.barrier().ok());
      EXPECT_EQ(memory[rank], reference[rank]);
      ASSERT_TRUE((*window)->free().ok());
      const Status closed = context.close();
      EXPECT_TRUE(closed.ok()) << closed.error().message;
    });
  });
}

TEST(Context, FetchedValuesHaveAnOrder) {
  for_seeds(40, [](Random& seeds) {
    const auto ranks = static_cast<uint32_t>(seeds.between(2, 4));
    const Options options = small_options(seeds);
    std::vector<uint64_t> word(1);
    std::vector<uint64_t> seen;
    TestRanks job(ranks, options, seeds.next(), true);
    job.run([&](uint32_t rank, Context& context) {
      auto window =
          Window::make(context, rank == 0 ? whole(word) : std::vector<spin::IovecElement>{}, rights_all, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      uint64_t last = 0;
      for (uint32_t i = 0; i < 10; ++i) {
        std::vector<uint64_t> one{1};
        uint64_t before = 0;
        Operation add = on_words(Kind::fetch, (*window)->key(0), 0, one);
        add.to = reinterpret_cast<uint8_t*>(&before);
        ASSERT_TRUE(context.begin(add).ok());
        ASSERT_TRUE(context.flush(0).ok());
        EXPECT_TRUE(i == 0 || before > last);
        last = before;
        seen.push_back(before);
      }
      ASSERT_TRUE((*window)->free().ok());
      EXPECT_TRUE(context.close().ok());
    });
    std::ranges::sort(seen);
    for (uint64_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
    EXPECT_EQ(word[0], seen.size());
  });
}

// Calls of one rank on the same words, long and short, so that some are split or emulated: each sees those before it.
TEST(Context, AccumulatingCallsKeepTheirOrder) {
  for_seeds(60, [](Random& seeds) {
    const Options options = small_options(seeds);
    const uint64_t seed = seeds.next();
    constexpr uint64_t words = 40;
    std::vector<std::vector<uint64_t>> memory(2, std::vector<uint64_t>(words));
    TestRanks job(2, options, seed, false, options.emulated);
    job.run([&](uint32_t rank, Context& context) {
      auto window = Window::make(context, whole(memory[rank]), rights_all, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      struct Call {
        std::vector<uint64_t> source, before, expected;
      };
      std::deque<Call> calls;
      std::vector<uint64_t> reference(words);
      Random random(seed, "calls");
      for (uint32_t i = 0; rank == 0 && i < 30; ++i) {
        const uint64_t count = random.chance(1, 2) ? 1 : random.between(1, words);
        const uint64_t at = random.below(words - count + 1);
        const bool replaces = random.chance(1, 2);
        Call& call = calls.emplace_back();
        call.source.resize(count);
        call.before.resize(count);
        for (uint64_t word = 0; word < count; ++word) {
          call.source[word] = random.next();
          call.expected.push_back(reference[at + word]);
          reference[at + word] = replaces ? call.source[word] : reference[at + word] + call.source[word];
        }
        Operation operation = on_words(Kind::fetch, (*window)->key(1), at, call.source);
        operation.op = replaces ? op_replace : sum;
        operation.to = reinterpret_cast<uint8_t*>(call.before.data());
        ASSERT_TRUE(context.begin(operation).ok());
      }
      ASSERT_TRUE(context.flush_all().ok());
      for (const Call& call : calls) EXPECT_EQ(call.before, call.expected);
      ASSERT_TRUE(context.barrier().ok());
      if (rank == 0) {
        EXPECT_EQ(memory[1], reference);
      }
      ASSERT_TRUE((*window)->free().ok());
      EXPECT_TRUE(context.close().ok());
    });
  });
}

// Parts of all lengths at both ends, native and packed, against bytes moved one by one.
TEST(Context, PiecesAtBothEndsMoveAsTheirBytes) {
  for_seeds(80, [](Random& seeds) {
    Options options = small_options(seeds);
    options.small_pieces = static_cast<uint32_t>(seeds.below(60));
    const uint64_t seed = seeds.next();
    constexpr uint64_t bytes_most = 3000;
    std::vector<std::vector<uint8_t>> memory(2, std::vector<uint8_t>(bytes_most));
    for (auto& bytes : memory) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(seeds.next());
    }
    TestRanks job(2, options, seed);
    job.run([&](uint32_t rank, Context& context) {
      auto window = Window::make(context, {{memory[rank].data(), bytes_most}}, rights_all, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      Random random(seed, "pieces");
      // Parts in the order of their places, with gaps, of so many bytes in all.
      const auto parts_of = [&](uint64_t bytes) {
        std::vector<Piece> parts;
        uint64_t at = random.below(20);
        while (bytes > 0) {
          const uint64_t length = std::min(bytes, static_cast<uint64_t>(random.between(1, 1 + random.below(90))));
          parts.push_back({at, length});
          at += length + random.below(10);
          bytes -= length;
        }
        random.shuffle(parts);
        return parts;
      };
      for (uint32_t i = 0; rank == 0 && i < 6; ++i) {
        const uint64_t bytes = random.below(250);
        const auto theirs = parts_of(bytes);
        const auto mine = parts_of(bytes);
        std::vector<uint8_t> own(bytes_most);
        for (uint8_t& byte : own) byte = static_cast<uint8_t>(random.next());
        std::vector<uint8_t> expected_own = own;
        std::vector<uint8_t> expected = memory[1];
        const bool puts = random.chance(1, 2);
        std::vector<uint64_t> places;
        for (const Piece& part : theirs) {
          for (uint64_t byte = 0; byte < part.bytes; ++byte) places.push_back(part.offset + byte);
        }
        uint64_t place = 0;
        std::vector<spin::IovecElement> list;
        for (const Piece& part : mine) {
          list.push_back({&own[part.offset], part.bytes});
          for (uint64_t byte = 0; byte < part.bytes; ++byte, ++place) {
            if (puts) expected[places[place]] = own[part.offset + byte];
            if (!puts) expected_own[part.offset + byte] = memory[1][places[place]];
          }
        }
        Operation operation;
        operation.kind = puts ? Kind::put : Kind::get;
        operation.key = (*window)->key(1);
        operation.list = nic::Descriptor::make(list);
        const Status begun = context.begin_pieces(operation, theirs);
        ASSERT_TRUE(begun.ok()) << begun.error().message;
        const Status flushed = context.flush(1);
        ASSERT_TRUE(flushed.ok()) << flushed.error().message;
        EXPECT_EQ(memory[1], expected);
        EXPECT_EQ(own, expected_own);
        std::vector<Piece> wrong = theirs;
        wrong.push_back({bytes_most, 1});
        EXPECT_FALSE(context.begin_pieces(operation, wrong).ok());
        wrong.back().offset = 0;
        EXPECT_FALSE(context.begin_pieces(operation, wrong).ok()) << "one byte more than at the origin";
      }
      ASSERT_TRUE((*window)->free().ok());
      EXPECT_TRUE(context.close().ok());
    });
  });
}

// What the origin's checks would have refused, the target refuses, too.
TEST(Context, KeysThatClaimMoreAreRefusedByTheTarget) {
  for (const bool emulated : {false, true}) {
    std::vector<uint64_t> memory(64, 5);
    Options options;
    options.emulated = emulated;
    TestRanks job(2, options, 1);
    job.run([&](uint32_t rank, Context& context) {
      std::vector<spin::IovecElement> part;
      if (rank == 0) part = {{reinterpret_cast<uint8_t*>(&memory[16]), 16 * sizeof(uint64_t)}};
      auto window = Window::make(context, part, right_read, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      Key key = (*window)->key(0);
      key.rights = rights_all;
      key.bytes = UINT64_MAX;
      std::vector<uint64_t> words(4, 9);
      const std::vector<std::pair<Kind, uint64_t>> wrong{
          {Kind::put, 0},        {Kind::accumulate, 0}, {Kind::get, 13},         {Kind::get, 16},
          {Kind::get, 1u << 20}, {Kind::put, 14},       {Kind::accumulate, 100}, {Kind::fetch, 0}};
      for (const auto& [kind, at] : wrong) {
        if (rank == 0) continue;
        std::vector<uint64_t> back(4, 9);
        Operation operation = on_words(kind, key, at, words);
        operation.to = reinterpret_cast<uint8_t*>(back.data());
        ASSERT_TRUE(context.begin(operation).ok());
        EXPECT_FALSE(context.flush(0).ok()) << "kind " << static_cast<int>(kind) << " at " << at;
        EXPECT_EQ(back, words) << "something came back";
      }
      ASSERT_TRUE((*window)->free().ok());
      EXPECT_TRUE(context.close().ok());
    });
    EXPECT_EQ(memory, std::vector<uint64_t>(64, 5));
  }
}

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
        auto added = context.add_memory(whole(memory), Notices::none);
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
        ASSERT_TRUE(context.wait_until("the key", Context::For::targets, [&] { return is_shared; }).ok());
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

TEST(Context, ARankThatIsGoneEndsWaits) {
  for_seeds(60, [](Random& seeds) {
    const Options options = small_options(seeds);
    const uint64_t what = seeds.below(6);
    std::vector<std::vector<uint64_t>> memory(3, std::vector<uint64_t>(8));
    TestRanks job(3, options, seeds.next());
    job.run([&](uint32_t rank, Context& context) {
      auto made = Window::make(context, whole(memory[rank]), rights_all, Notices::counted);
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
      Status status = context.barrier();  // the last messages of who is killed may be lost
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

TEST(Context, NoticesThatFindNoRoomFailAtTheirOrigin) {
  for_seeds(40, [](Random& seeds) {
    Options options = small_options(seeds);
    options.emulated = seeds.chance(1, 2);
    constexpr uint64_t sent_most = 30;
    std::vector<std::vector<uint64_t>> memory(2, std::vector<uint64_t>(4));
    uint64_t arrived = 0;
    bool has_sent = false;
    uint64_t taken = 0;
    TestRanks job(2, options, seeds.next());
    job.run([&](uint32_t rank, Context& context) {
      auto made = Window::make(context, whole(memory[rank]), rights_all, Notices::queued);
      ASSERT_TRUE(made.ok()) << made.error().message;
      Window& window = **made;
      std::vector<uint64_t> words{1, 2, 3, 4};
      if (rank == 1) {
        for (uint64_t i = 0; i < sent_most; ++i) {
          Operation put = on_words(Kind::put, window.key(0), 0, words);
          put.notice = i;
          ASSERT_TRUE(context.begin(put).ok());
        }
        EXPECT_FALSE(context.flush(0).ok()) << "all found room";
        arrived = sent_most - context.counts(0).failed;
        has_sent = true;
        // Once some have been taken, there is room again.
        ASSERT_TRUE(context.wait_until("room", Context::For::targets, [&] { return taken == arrived; }).ok());
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
        ASSERT_TRUE(context.wait_until("the puts", Context::For::targets, [&] { return has_sent; }).ok());
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
                        .wait_until("the last", Context::For::targets,
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
