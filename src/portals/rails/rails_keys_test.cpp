// Memory under keys, words, and what is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/testing/seeds.hpp"
#include "portals/rails/rails.hpp"
#include "portals/rails/testing/messages.hpp"

namespace spinloom::rails {
namespace {

TEST(Rails, KeysReachMemoryInStripes) {
  RailBed bed(small_bed({Mode::tag, false}, 3, 8));
  ASSERT_TRUE(bed.open());
  Landing memory(40'000);
  const Key key = bed.rank(1).expose(memory.data(), memory.bytes, {}).value();
  const std::vector<uint8_t> message = message_of(0, 2, 40'000);
  ASSERT_TRUE(complete(bed, 0, bed.rank(0).put(message.data(), message.size(), 1, key, 0).value()));
  memory.expect(0, 2, message.size());
  std::vector<uint8_t> back(30'000);
  ASSERT_TRUE(complete(bed, 0, bed.rank(0).get(back.data(), back.size(), 1, key, 10'000).value()));
  EXPECT_TRUE(std::equal(back.begin(), back.end(), message.begin() + 10'000));
  // Beyond the end, and without the right.
  EXPECT_FALSE(complete(bed, 0, bed.rank(0).get(back.data(), 2000, 1, key, 39'000).value()));
  const Key readable = bed.rank(1).expose(memory.data(), memory.bytes, {.read = true, .write = false}).value();
  EXPECT_FALSE(complete(bed, 0, bed.rank(0).put(message.data(), 8, 1, readable, 0).value()));
  ASSERT_TRUE(bed.rank(1).withdraw(key));
  EXPECT_FALSE(bed.rank(1).withdraw(key));
  EXPECT_FALSE(complete(bed, 0, bed.rank(0).put(message.data(), 8, 1, key, 0).value()));
  memory.expect(0, 2, message.size());
}

// Some rails may have let go of the memory before others.
TEST(Rails, AKeyInUseIsWithdrawnByALaterTry) {
  uint64_t tries = 0;
  for_seeds(40, [&](Random& random) {
    RailBed bed(small_bed({Mode::tag, false}, 3, random.next()));
    ASSERT_TRUE(bed.open());
    Landing memory(40'000);
    Landing other(8);
    const Key key = bed.rank(1).expose(memory.data(), memory.bytes, {}).value();
    std::vector<uint8_t> back(memory.bytes);
    const RequestId read = bed.rank(0).get(back.data(), back.size(), 1, key, 0).value();
    std::optional<Key> later;
    const bool withdrawn = bed.run_until([&] {
      const Status tried = bed.rank(1).withdraw(key);
      if (!tried) {
        ++tries;
        EXPECT_EQ(tried.error().code, Code::stalled) << tried.error().message;
      }
      if (!later) later = bed.rank(1).expose(other.data(), other.bytes, {}).value();  // takes ids that are free again
      return tried.ok();
    });
    ASSERT_TRUE(withdrawn) << bed.trouble();
    std::ignore = complete(bed, 0, read);
    const std::vector<uint8_t> message = message_of(0, 2, 8);
    EXPECT_FALSE(complete(bed, 0, bed.rank(0).put(message.data(), 8, 1, key, 0).value()));
    ASSERT_TRUE(complete(bed, 0, bed.rank(0).put(message.data(), 8, 1, *later, 0).value()));
    other.expect(0, 2, 8);
    EXPECT_TRUE(bed.rank(1).close());
  });
  EXPECT_GT(tries, 0u);
}

TEST(Rails, WordsArriveOnceInOrderOverAllRails) {
  std::vector<uint64_t> carried(4);
  for_seeds(20, [&](Random& random) {
    RailBed::Options options = small_bed({Mode::word, false}, 4, random.next());
    RailBed bed(options);
    ASSERT_TRUE(bed.open());
    std::vector<uint64_t> heard;
    bed.rank(1).handle(3, [&](uint32_t source, std::span<const uint8_t> bytes) {
      EXPECT_EQ(source, 0u);
      uint64_t number = 0;
      ASSERT_EQ(bytes.size(), sizeof number);
      std::memcpy(&number, bytes.data(), sizeof number);
      heard.push_back(number);
    });
    const bool loses = random.below(2) == 0;
    for (uint64_t number = 0; number < 60; ++number) {
      uint8_t bytes[sizeof number];
      std::memcpy(bytes, &number, sizeof number);
      ASSERT_TRUE(bed.rank(0).send_word(1, 3, bytes));
      if (number == 30 && loses) bed.kill_rail(static_cast<uint32_t>(random.below(4)));
      uint64_t rounds = random.below(3);
      bed.run_until([&] { return rounds-- == 0; });
    }
    ASSERT_TRUE(bed.run_until([&] { return heard.size() == 60; })) << heard.size() << " " << bed.trouble();
    for (uint64_t number = 0; number < 60; ++number) ASSERT_EQ(heard[number], number);
    for (uint32_t rail = 0; rail < 4; ++rail) carried[rail] += bed.rank(0).rail(rail).carried_bytes();
  });
  for (uint32_t rail = 0; rail < 4; ++rail) EXPECT_GT(carried[rail], 0u) << rail;
}

// Their bytes leave from where they lie: what is written there before the word is cleared to leave is what comes.
TEST(Rails, WordsFromPiecesAreNotCopied) {
  for_seeds(20, [&](Random& random) {
    RailBed bed(small_bed({Mode::word, false}, 3, random.next()));
    ASSERT_TRUE(bed.open());
    std::vector<std::vector<uint8_t>> heard;
    bed.rank(1).handle(
        3, [&](uint32_t, std::span<const uint8_t> bytes) { heard.emplace_back(bytes.begin(), bytes.end()); });
    std::vector<std::unique_ptr<Scattered>> words;
    std::vector<RequestId> sent;
    for (uint64_t number = 0; number < 20; ++number) {  // more than the window
      words.push_back(std::make_unique<Scattered>(random, number * 25));
      sent.push_back(bed.rank(0).send_word_from(words.back()->list, 1, 3).value());
      words.back()->fill(0, number, number * 25);
      if (number == 10) bed.kill_rail(static_cast<uint32_t>(random.below(3)));
    }
    for (const RequestId one : sent) {
      const auto completion = complete(bed, 0, one);
      ASSERT_TRUE(completion) << completion.error().message;
    }
    ASSERT_TRUE(bed.run_until([&] { return heard.size() == 20; }));
    for (uint64_t number = 0; number < 20; ++number) EXPECT_EQ(heard[number], message_of(0, number, number * 25));
    const Scattered too_long(random, 513);
    EXPECT_FALSE(bed.rank(0).send_word_from(too_long.list, 1, 3));
    EXPECT_TRUE(bed.rank(0).close());
    EXPECT_TRUE(bed.rank(1).close());
  });
}

TEST(Rails, WhoIsLostEndsWordsFromPieces) {
  RailBed bed(small_bed({Mode::word, false}, 2, 5));
  ASSERT_TRUE(bed.open());
  Random random(5, "pieces");
  const Scattered word(random, 100);
  std::vector<RequestId> sent;
  for (int i = 0; i < 12; ++i) sent.push_back(bed.rank(0).send_word_from(word.list, 1, 3).value());
  bed.kill_rail(0);
  bed.kill_rail(1);
  for (const RequestId one : sent) {
    const auto ended = complete(bed, 0, one);
    ASSERT_FALSE(ended);
    EXPECT_NE(ended.error().message.find("rank 1 is lost"), std::string::npos) << ended.error().message;
  }
}

TEST(Rails, RefusesWhatIsWrong) {
  RailBed bed(small_bed({Mode::tag, false}, 2, 1));
  ASSERT_TRUE(bed.open());
  uint8_t byte = 0;
  EXPECT_FALSE(bed.rank(0).send(&byte, 1, 2, 0));
  EXPECT_FALSE(bed.rank(0).receive(&byte, 1, 2, 0, 0));
  EXPECT_FALSE(bed.rank(0).send_word(1, 0, {}));  // the rails are not opened for words
  EXPECT_FALSE(bed.rank(0).test({12345}));
  const RequestId received = bed.rank(0).receive(&byte, 1, 1, 0, 0).value();
  const Status closed = bed.rank(0).close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("1 requests are under way"), std::string::npos);
  std::ignore = received;
  RailBed::Options many = small_bed({Mode::tag, false}, 9, 1);
  RailBed too_many(many);
  EXPECT_FALSE(too_many.open());
}

}  // namespace
}  // namespace spinloom::rails
