// Messages over several rails, in all variants: lengths, early ones, truncated ones, and pieces.
#include "portals/rails/rails.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/testing/seeds.hpp"
#include "portals/rails/testing/messages.hpp"

namespace spinloom::rails {
namespace {

INSTANTIATE_TEST_SUITE_P(Variants, AllVariants,
                         ::testing::Values(Variant{Mode::tag, false}, Variant{Mode::word, false},
                                           Variant{Mode::tag, true}, Variant{Mode::word, true}),
                         [](const auto& param) {
                           const std::string mode = param.param.mode == Mode::tag ? "tag" : "word";
                           return mode + (param.param.by_put ? "_put" : "_get");
                         });

TEST_P(AllVariants, MessagesOfAllLengthsArriveExpectedOrEarly) {
  for (const uint32_t rails : {1u, 2u, 4u, 8u}) {
    RailBed bed(small_bed(GetParam(), rails, rails));
    ASSERT_TRUE(bed.open());
    uint64_t number = 0;
    for (const uint64_t bytes : {0u, 1u, 511u, 512u, 513u, 4095u, 4096u, 50'001u}) {
      for (const bool early : {false, true}) {
        ++number;
        const std::vector<uint8_t> message = message_of(0, number, bytes);
        Landing landing(bytes + 3);
        RequestId sent{};
        RequestId received{};
        const auto send = [&] { sent = bed.rank(0).send(message.data(), bytes, 1, number).value(); };
        if (early) {
          send();
          bed.run_until([] { return false; });
        }
        received = bed.rank(1).receive(landing.data(), landing.bytes, 0, number, 0).value();
        if (!early) send();
        const auto completion = complete(bed, 1, received);
        ASSERT_TRUE(completion) << completion.error().message;
        EXPECT_EQ(completion->bytes, bytes);
        EXPECT_EQ(completion->source, 0u);
        EXPECT_EQ(completion->tag, number);
        EXPECT_FALSE(completion->truncated);
        landing.expect(0, number, bytes);
        ASSERT_TRUE(complete(bed, 0, sent));
      }
    }
    EXPECT_TRUE(bed.rank(0).close()) << "rails " << rails;
    EXPECT_TRUE(bed.rank(1).close());
  }
}

TEST_P(AllVariants, LongMessagesUseAllRails) {
  RailBed bed(small_bed(GetParam(), 4, 1));
  ASSERT_TRUE(bed.open());
  const std::vector<uint8_t> message = message_of(0, 1, 64 << 10);
  Landing landing(message.size());
  const auto received = bed.rank(1).receive(landing.data(), landing.bytes, 0, 1, 0).value();
  const auto sent = bed.rank(0).send(message.data(), message.size(), 1, 1).value();
  ASSERT_TRUE(complete(bed, 1, received));
  ASSERT_TRUE(complete(bed, 0, sent));
  landing.expect(0, 1, message.size());
  const uint32_t mover = GetParam().by_put ? 0 : 1;
  for (uint32_t rail = 0; rail < 4; ++rail) EXPECT_GE(bed.rank(mover).rail(rail).carried_bytes(), 8u << 10) << rail;
}

TEST_P(AllVariants, LongerMessagesAreTruncated) {
  for (const uint64_t bytes : {300u, 20'000u}) {
    for (const uint64_t room : {uint64_t{0}, uint64_t{100}, bytes - 1}) {
      RailBed bed(small_bed(GetParam(), 2, 3));
      ASSERT_TRUE(bed.open());
      const std::vector<uint8_t> message = message_of(0, 9, bytes);
      Landing landing(room);
      const auto received = bed.rank(1).receive(landing.data(), room, 0, 9, 0).value();
      const auto sent = bed.rank(0).send(message.data(), bytes, 1, 9).value();
      const auto completion = complete(bed, 1, received);
      ASSERT_TRUE(completion) << completion.error().message;
      EXPECT_TRUE(completion->truncated);
      EXPECT_EQ(completion->bytes, room);
      landing.expect(0, 9, room);
      ASSERT_TRUE(complete(bed, 0, sent));
    }
  }
}

// More messages than the window, before any receive: they wait at the sender, in order.
TEST_P(AllVariants, EarlyMessagesWaitInOrder) {
  RailBed bed(small_bed(GetParam(), 3, 5));
  ASSERT_TRUE(bed.open());
  constexpr uint64_t count = 100;
  std::vector<std::vector<uint8_t>> messages;
  std::vector<RequestId> sent;
  for (uint64_t i = 0; i < count; ++i) {
    messages.push_back(message_of(0, i, i % 7 == 0 ? 6000 : 100));
    sent.push_back(bed.rank(0).send(messages.back().data(), messages.back().size(), 1, 4).value());
  }
  bed.run_until([] { return false; });
  for (uint64_t i = 0; i < count; ++i) {
    Landing landing(6000);
    const auto received = bed.rank(1).receive(landing.data(), landing.bytes, Rails::any_source, 4, 0).value();
    const auto completion = complete(bed, 1, received);
    ASSERT_TRUE(completion) << i << ": " << completion.error().message;
    landing.expect(0, i, messages[i].size());
  }
  for (const RequestId one : sent) ASSERT_TRUE(complete(bed, 0, one));
  EXPECT_TRUE(bed.rank(0).close());
  EXPECT_TRUE(bed.rank(1).close());
}

TEST_P(AllVariants, PiecesAreGatheredAndScattered) {
  for_seeds(40, [&](Random& random) {
    const auto rails = static_cast<uint32_t>(random.between(1, 4));
    RailBed::Options options = small_bed(GetParam(), rails, random.next());
    options.rails_options.offloaded = random.below(3) != 0;
    RailBed bed(options);
    ASSERT_TRUE(bed.open());
    for (uint64_t number = 1; number <= 12; ++number) {
      const uint64_t bytes = random.below(2) == 0 ? random.below(700) : random.below(60'000);
      const uint64_t room = random.below(4) == 0 ? random.below(bytes + 1) : bytes + random.below(3);
      Scattered from(random, bytes);
      from.fill(0, number, bytes);
      const std::vector<uint8_t> before = from.memory;
      Scattered into(random, room);
      const bool early = random.below(2) == 0;
      RequestId sent{};
      if (early) {
        sent = bed.rank(0).send(from.list, 1, 7).value();
        bed.run_until([] { return false; });
      }
      const RequestId received = bed.rank(1).receive(into.list, 0, 7, 0).value();
      if (!early) sent = bed.rank(0).send(from.list, 1, 7).value();
      if (number == 6 && rails > 2) bed.kill_rail(2);
      const auto completion = complete(bed, 1, received);
      ASSERT_TRUE(completion) << completion.error().message;
      EXPECT_EQ(completion->bytes, std::min(bytes, room));
      EXPECT_EQ(completion->truncated, room < bytes);
      ASSERT_TRUE(complete(bed, 0, sent));
      Scattered wanted = into;
      std::fill(wanted.memory.begin(), wanted.memory.end(), guard);
      for (nic::IovecElement& piece : wanted.list)
        piece.base = wanted.memory.data() + (piece.base - into.memory.data());
      wanted.fill(0, number, std::min(bytes, room));
      EXPECT_TRUE(into.memory == wanted.memory) << "message " << number << " of " << bytes << " B";
      EXPECT_TRUE(from.memory == before);
    }
  });
}

TEST_P(AllVariants, WhoSendsAgainFromTheSameMemoryExposesItOnce) {
  RailBed bed(small_bed(GetParam(), 2, 6));
  ASSERT_TRUE(bed.open());
  std::vector<uint8_t> message(10'000);
  for (uint64_t number = 1; number <= 20; ++number) {
    message = message_of(0, number, message.size());
    Landing landing(message.size());
    const auto received = bed.rank(1).receive(landing.data(), landing.bytes, 0, 1, 0).value();
    const auto sent = bed.rank(0).send(message.data(), message.size(), 1, 1).value();
    ASSERT_TRUE(complete(bed, 1, received));
    ASSERT_TRUE(complete(bed, 0, sent));
    landing.expect(0, number, message.size());
  }
  EXPECT_LE(bed.rank(0).exposures(), 20u);
  EXPECT_TRUE(bed.rank(0).close());
}

}  // namespace
}  // namespace spinloom::rails
