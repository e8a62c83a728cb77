// Operations over the racy loopback driver, against plain references.
#include "portals/rma/context.hpp"

#include <gtest/gtest.h>

#include "base/testing/seeds.hpp"
#include "portals/rma/testing/operations.hpp"
#include "portals/rma/testing/ranks.hpp"

namespace spinloom::rma {
namespace {

using test::as_pieces;
using test::on_words;
using test::small_options;
using test::sum;
using test::TestRanks;
using Kind = Operation::Kind;

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
      auto window = Window::make(context, as_pieces(memory[rank]), rights_all, Notices::none);
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
      auto window = Window::make(context, rank == 0 ? as_pieces(word) : std::vector<spin::IovecElement>{}, rights_all,
                                 Notices::none);
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
      auto window = Window::make(context, as_pieces(memory[rank]), rights_all, Notices::none);
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
    constexpr uint64_t bytes_max = 3000;
    std::vector<std::vector<uint8_t>> memory(2, std::vector<uint8_t>(bytes_max));
    for (auto& bytes : memory) {
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(seeds.next());
    }
    TestRanks job(2, options, seed);
    job.run([&](uint32_t rank, Context& context) {
      auto window = Window::make(context, {{memory[rank].data(), bytes_max}}, rights_all, Notices::none);
      ASSERT_TRUE(window.ok()) << window.error().message;
      Random random(seed, "pieces");
      // Makes parts of `bytes` bytes in all, in the order of their places, with gaps.
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
        std::vector<uint8_t> own(bytes_max);
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
        wrong.push_back({bytes_max, 1});
        EXPECT_FALSE(context.begin_pieces(operation, wrong).ok());
        wrong.back().offset = 0;
        EXPECT_FALSE(context.begin_pieces(operation, wrong).ok()) << "one byte more than at the origin";
      }
      ASSERT_TRUE((*window)->free().ok());
      EXPECT_TRUE(context.close().ok());
    });
  });
}

// The target, too, refuses operations that the origin's checks would have refused with the true key.
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

}  // namespace
}  // namespace spinloom::rma
