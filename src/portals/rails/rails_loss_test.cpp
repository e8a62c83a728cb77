// Random traffic, with rails that are lost, and that come back.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/testing/seeds.hpp"
#include "portals/rails/rails.hpp"
#include "portals/rails/testing/messages.hpp"

namespace spinloom::rails {
namespace {

// Every rank sends to every rank, itself too. Receives with a source and a tag get the messages of that stream in
// order; those that take any source get each message once, those of one source in order.
enum class Losses : uint8_t { none, one, returning };
void random_traffic(Random& random, Variant variant, Losses losses) {
  const bool with_loss = losses != Losses::none;
  RailBed::Options options =
      small_bed(variant, static_cast<uint32_t>(random.between(with_loss ? 2 : 1, 5)), random.next());
  options.ranks = static_cast<uint32_t>(random.between(2, 4));
  options.rails_options.offloaded = random.below(4) != 0;
  RailBed bed(options);
  ASSERT_TRUE(bed.open());
  constexpr uint64_t tags = 3;  // the last one's receives take any source
  struct Sent {
    uint32_t from = 0;
    RequestId request;
    std::vector<uint8_t> bytes;
  };
  struct Received {
    uint32_t at = 0;
    uint32_t source = 0;
    uint64_t tag = 0;
    uint64_t number = 0;
    uint64_t bytes = 0;
    RequestId request;
    std::unique_ptr<Landing> landing;
    bool done = false;
  };
  struct Step {
    bool sends = false;
    uint32_t rank = 0, peer = 0;
    uint64_t tag = 0, number = 0, bytes = 0;
  };
  std::vector<Step> steps;
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::vector<uint64_t>> lengths;  // the key is from, to and tag
  const uint64_t messages = 20 + random.below(60);
  for (uint64_t i = 0; i < messages; ++i) {
    const auto from = static_cast<uint32_t>(random.below(options.ranks));
    const auto to = static_cast<uint32_t>(random.below(options.ranks));
    const uint64_t tag = random.below(tags);
    const uint64_t bytes = random.below(3) == 0 ? random.below(20'000) : random.below(700);
    auto& stream = lengths[{from, to, tag}];
    steps.push_back({true, from, to, tag, stream.size(), bytes});
    steps.push_back({false, to, from, tag, stream.size(), bytes});
    stream.push_back(bytes);
  }
  // Any order of ranks' calls, if each stream keeps its own.
  std::vector<uint64_t> order(steps.size());
  for (uint64_t i = 0; i < order.size(); ++i) order[i] = i;
  for (uint64_t i = 0; i + 1 < order.size(); ++i) {
    const uint64_t j = std::min<uint64_t>(order.size() - 1, i + random.below(12));
    const Step& a = steps[order[i]];
    bool movable = true;
    for (uint64_t k = i + 1; k <= j; ++k) {
      const Step& b = steps[order[k]];
      movable = movable && !(a.sends == b.sends && a.rank == b.rank && a.tag == b.tag);
    }
    if (movable)
      std::rotate(order.begin() + static_cast<long>(i), order.begin() + static_cast<long>(i) + 1,
                  order.begin() + static_cast<long>(j) + 1);
  }
  std::vector<Sent> sent;
  std::vector<Received> received;
  // The next number of the last tag; the key is receiver and source.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> next_of_source;
  // In Mode::tag receivers live and die with the home rail, which is the first.
  const uint64_t first = variant.mode == Mode::tag ? 1 : 0;
  const auto unsafe =
      static_cast<uint32_t>(first + random.below(options.rails - std::min<uint64_t>(first, options.rails - 1)));
  const uint64_t loss_at = with_loss ? random.below(order.size()) : UINT64_MAX;
  for (uint64_t at = 0; at < order.size(); ++at) {
    const Step& step = steps[order[at]];
    if (step.sends) {
      sent.push_back({step.rank, {}, message_of(step.rank, step.number, step.bytes)});
      const auto request = bed.rank(step.rank).send(sent.back().bytes.data(), step.bytes, step.peer, step.tag);
      ASSERT_TRUE(request) << request.error().message;
      sent.back().request = *request;
    } else {
      const bool any = step.tag == tags - 1;
      const uint64_t room = any ? 20'000 : step.bytes + random.below(3);
      auto landing = std::make_unique<Landing>(room);
      const auto request =
          bed.rank(step.rank).receive(landing->data(), room, any ? Rails::any_source : step.peer, step.tag, 0);
      ASSERT_TRUE(request) << request.error().message;
      received.push_back(
          {step.rank, step.peer, step.tag, step.number, step.bytes, *request, std::move(landing), false});
    }
    if (random.below(3) == 0) {
      uint64_t rounds = random.below(4);
      bed.run_until([&] { return rounds-- == 0; });
    }
    if (at == loss_at) bed.kill_rail(unsafe);
    if (losses == Losses::returning && at > loss_at && random.below(6) == 0) {
      random.below(2) == 0 ? bed.kill_rail(unsafe) : bed.mend_rail(unsafe);
    }
  }
  uint64_t left = received.size();
  const bool ended = bed.run_until([&] {
    for (Received& one : received) {
      if (one.done) continue;
      const auto tested = bed.rank(one.at).test(one.request);
      EXPECT_TRUE(tested) << tested.error().message;
      if (!tested) return true;
      if (!*tested) continue;
      one.done = true;
      --left;
      const Completion& completion = **tested;
      if (one.tag != tags - 1) {
        EXPECT_EQ(completion.source, one.source);
        EXPECT_EQ(completion.bytes, one.bytes);
        one.landing->expect(one.source, one.number, one.bytes);
      }
      one.source = completion.source;
      one.bytes = completion.bytes;
    }
    return left == 0;
  });
  ASSERT_TRUE(ended && left == 0) << left << " receives are left, " << bed.trouble();
  // Receives that take any source, in the order in which they were posted.
  for (const Received& one : received) {
    if (one.tag != tags - 1) continue;
    const uint64_t number = next_of_source[{one.at, one.source}]++;
    const auto& stream = lengths[{one.source, one.at, one.tag}];
    ASSERT_LT(number, stream.size());
    EXPECT_EQ(one.bytes, stream[number]);
    one.landing->expect(one.source, number, one.bytes);
  }
  for (const Sent& one : sent) {
    const auto completion = complete(bed, one.from, one.request);
    ASSERT_TRUE(completion) << completion.error().message;
  }
  bed.run_until([] { return false; });
  for (uint32_t rank = 0; rank < options.ranks && !with_loss; ++rank) {
    const Status closed = bed.rank(rank).close();
    EXPECT_TRUE(closed) << closed.error().message;
  }
}

TEST_P(AllVariants, RandomTraffic) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::none); });
}

TEST_P(AllVariants, RandomTrafficWhileARailIsLost) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::one); });
}

TEST_P(AllVariants, RandomTrafficWhileARailIsLostAndBackAgainAndAgain) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::returning); });
}

TEST_P(AllVariants, ARailThatIsBackIsUsedAgain) {
  for_seeds(20, [&](Random& random) {
    RailBed bed(small_bed(GetParam(), 3, random.next()));
    ASSERT_TRUE(bed.open());
    uint64_t number = 0;
    const auto exchange = [&](uint32_t from, bool cuts) {
      const std::vector<uint8_t> message = message_of(from, ++number, 100'000);
      Landing landing(message.size());
      const auto received = bed.rank(1 - from).receive(landing.data(), landing.bytes, from, 1, 0).value();
      const auto sent = bed.rank(from).send(message.data(), message.size(), 1 - from, 1).value();
      uint64_t rounds = random.below(12);
      bed.run_until([&] { return rounds-- == 0; });
      if (cuts) bed.kill_rail(2);
      const auto completion = complete(bed, 1 - from, received);
      ASSERT_TRUE(completion) << completion.error().message;
      ASSERT_TRUE(complete(bed, from, sent));
      landing.expect(from, number, message.size());
    };
    const auto carried = [&] { return bed.rank(0).rail(2).carried_bytes() + bed.rank(1).rail(2).carried_bytes(); };
    for (int times = 0; times < 3; ++times) {
      exchange(0, true);
      ASSERT_TRUE(bed.run_until([&] { return !bed.rank(0).rail(2).reaches(1) && !bed.rank(1).rail(2).reaches(0); }));
      const uint64_t before = carried();
      exchange(1, false);
      EXPECT_EQ(carried(), before) << "it is lost";
      bed.mend_rail(2);
      ASSERT_TRUE(bed.run_until([&] { return bed.rank(0).rail(2).reaches(1) && bed.rank(1).rail(2).reaches(0); }));
      const uint64_t at_return = carried();
      exchange(1, false);
      EXPECT_GT(carried(), at_return) << "it is back";
    }
    EXPECT_TRUE(bed.rank(0).close());
    EXPECT_TRUE(bed.rank(1).close());
  });
}

TEST(Rails, FragmentsOfALostRailAreReadByOthers) {
  uint64_t repeated = 0;
  for_seeds(20, [&](Random& random) {
    RailBed bed(small_bed({Mode::tag, false}, 3, random.next()));
    ASSERT_TRUE(bed.open());
    const std::vector<uint8_t> message = message_of(0, 1, 100'000);
    Landing landing(message.size());
    const auto received = bed.rank(1).receive(landing.data(), landing.bytes, 0, 1, 0).value();
    const auto sent = bed.rank(0).send(message.data(), message.size(), 1, 1).value();
    uint64_t rounds = random.below(12);
    bed.run_until([&] { return rounds-- == 0; });
    bed.kill_rail(2);
    const auto completion = complete(bed, 1, received);
    ASSERT_TRUE(completion) << completion.error().message;
    ASSERT_TRUE(complete(bed, 0, sent));
    landing.expect(0, 1, message.size());
    repeated += bed.rank(1).repeated_fragments();
  });
  EXPECT_GT(repeated, 0u);
}

TEST_P(AllVariants, WhoIsLostOnAllRailsFailsRequests) {
  RailBed bed(small_bed(GetParam(), 2, 4));
  ASSERT_TRUE(bed.open());
  const std::vector<uint8_t> message = message_of(0, 1, 100'000);
  Landing landing(message.size());
  const auto received = bed.rank(1).receive(landing.data(), landing.bytes, 0, 1, 0).value();
  const auto sent = bed.rank(0).send(message.data(), message.size(), 1, 1).value();
  const auto waiting_for_nothing = bed.rank(1).receive(landing.data(), 0, 0, 2, 0).value();
  uint64_t rounds = 3;
  bed.run_until([&] { return rounds-- == 0; });
  bed.kill_rail(0);
  bed.kill_rail(1);
  const auto one = complete(bed, 0, sent);
  ASSERT_FALSE(one);
  EXPECT_NE(one.error().message.find("rank 1 is lost"), std::string::npos) << one.error().message;
  EXPECT_FALSE(bed.rank(0).send(message.data(), 8, 1, 1));
  for (const RequestId waiting : {received, waiting_for_nothing}) {
    const auto other = complete(bed, 1, waiting);
    ASSERT_FALSE(other);
    EXPECT_NE(other.error().message.find("rank 0 is lost"), std::string::npos) << other.error().message;
  }
  uint8_t byte = 0;
  EXPECT_FALSE(bed.rank(1).receive(&byte, 1, 0, 1, 0));
}

}  // namespace
}  // namespace spinloom::rails
