#include "rails/rails.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/test_seeds.hpp"
#include "rails/test_bed.hpp"

namespace spinloom::rails {
namespace {

constexpr uint8_t guard = 0xa5;
constexpr uint64_t guard_bytes = 16;

// Byte i of message `number` from `source`.
uint8_t byte_of(uint32_t source, uint64_t number, uint64_t i) {
  return static_cast<uint8_t>(31 * source + 7 * number + i + i / 251);
}

std::vector<uint8_t> message_of(uint32_t source, uint64_t number, uint64_t bytes) {
  std::vector<uint8_t> made(bytes);
  for (uint64_t i = 0; i < bytes; ++i) made[i] = byte_of(source, number, i);
  return made;
}

// A receive's memory between guards.
struct Landing {
  explicit Landing(uint64_t bytes_) : bytes(bytes_), memory(bytes_ + 2 * guard_bytes, guard) {}
  [[nodiscard]] uint8_t* data() { return memory.data() + guard_bytes; }
  // The first `kept` bytes are those of the message, all others are untouched.
  void expect(uint32_t source, uint64_t number, uint64_t kept) const {
    for (uint64_t i = 0; i < memory.size(); ++i) {
      const bool inside = i >= guard_bytes && i < guard_bytes + kept;
      const uint8_t wanted = inside ? byte_of(source, number, i - guard_bytes) : guard;
      ASSERT_EQ(memory[i], wanted) << "byte " << i - guard_bytes << " of message " << number << " from " << source;
    }
  }
  uint64_t bytes;
  std::vector<uint8_t> memory;
};

// Who matches, and who moves long messages.
struct Way {
  Mode mode = Mode::tag;
  bool by_put = false;
};

RailBed::Options small(Way way, uint32_t rails, uint64_t seed) {
  RailBed::Options options;
  options.rails = rails;
  options.seed = seed;
  options.rails_options.mode = way.mode;
  options.rails_options.by_put = way.by_put;
  options.rails_options.eager_bytes = 512;
  options.rails_options.stripe_bytes = 4096;
  options.rails_options.fragment_bytes = 2048;
  options.rails_options.window = 8;
  return options;
}

// Completes a request of a rank.
Result<Completion> complete(RailBed& bed, uint32_t rank, RequestId request) {
  std::optional<Result<Completion>> result;
  const bool ended = bed.run_until([&] {
    auto tested = bed.rank(rank).test(request);
    if (!tested) {
      result = tested.error();
    } else if (*tested) {
      result = **tested;
    }
    return result.has_value();
  });
  if (!ended) return fail(Code::stalled, "nothing goes on: ", bed.trouble());
  return *result;
}

class AllWays : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, AllWays,
                         ::testing::Values(Way{Mode::tag, false}, Way{Mode::word, false}, Way{Mode::tag, true},
                                           Way{Mode::word, true}),
                         [](const auto& param) {
                           const std::string mode = param.param.mode == Mode::tag ? "tag" : "word";
                           return mode + (param.param.by_put ? "_put" : "_get");
                         });

TEST_P(AllWays, MessagesOfAllLengthsArriveExpectedOrEarly) {
  for (const uint32_t rails : {1u, 2u, 4u, 8u}) {
    RailBed bed(small(GetParam(), rails, rails));
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

TEST_P(AllWays, LongMessagesUseAllRails) {
  RailBed bed(small(GetParam(), 4, 1));
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

TEST_P(AllWays, LongerMessagesAreTruncated) {
  for (const uint64_t bytes : {300u, 20'000u}) {
    for (const uint64_t room : {uint64_t{0}, uint64_t{100}, bytes - 1}) {
      RailBed bed(small(GetParam(), 2, 3));
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
TEST_P(AllWays, EarlyMessagesWaitInOrder) {
  RailBed bed(small(GetParam(), 3, 5));
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

TEST_P(AllWays, WhoSendsAgainFromTheSameMemoryExposesItOnce) {
  RailBed bed(small(GetParam(), 2, 6));
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

// Every rank sends to every rank, itself too. Receives with a source and a tag get the messages of that stream in order;
// those that take any source get each message once, those of one source in order.
enum class Losses : uint8_t { none, one, returning };
void random_traffic(Random& random, Way way, Losses losses) {
  const bool with_loss = losses != Losses::none;
  RailBed::Options options = small(way, static_cast<uint32_t>(random.between(with_loss ? 2 : 1, 5)), random.next());
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
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, std::vector<uint64_t>> lengths;  // from, to, tag
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
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> next_of_source;  // of the last tag
  // In Mode::tag receivers live and die with the home rail, which is the first.
  const uint64_t first = way.mode == Mode::tag ? 1 : 0;
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

TEST_P(AllWays, RandomTraffic) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::none); });
}

TEST_P(AllWays, RandomTrafficWhileARailIsLost) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::one); });
}

TEST_P(AllWays, RandomTrafficWhileARailIsLostAndBackAgainAndAgain) {
  for_seeds(20, [&](Random& random) { random_traffic(random, GetParam(), Losses::returning); });
}

TEST_P(AllWays, ARailThatIsBackIsUsedAgain) {
  for_seeds(20, [&](Random& random) {
    RailBed bed(small(GetParam(), 3, random.next()));
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
    RailBed bed(small({Mode::tag, false}, 3, random.next()));
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

TEST_P(AllWays, WhoIsLostOnAllRailsFailsRequests) {
  RailBed bed(small(GetParam(), 2, 4));
  ASSERT_TRUE(bed.open());
  const std::vector<uint8_t> message = message_of(0, 1, 100'000);
  Landing landing(message.size());
  const auto received = bed.rank(1).receive(landing.data(), landing.bytes, 0, 1, 0).value();
  const auto sent = bed.rank(0).send(message.data(), message.size(), 1, 1).value();
  uint64_t rounds = 3;
  bed.run_until([&] { return rounds-- == 0; });
  bed.kill_rail(0);
  bed.kill_rail(1);
  const auto one = complete(bed, 0, sent);
  ASSERT_FALSE(one);
  EXPECT_NE(one.error().message.find("rank 1 is lost"), std::string::npos) << one.error().message;
  EXPECT_FALSE(bed.rank(0).send(message.data(), 8, 1, 1));
  std::ignore = received;
}

TEST(Rails, KeysReachMemoryInStripes) {
  RailBed bed(small({Mode::tag, false}, 3, 8));
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

TEST(Rails, WordsArriveOnceInOrderOverAllRails) {
  std::vector<uint64_t> carried(4);
  for_seeds(20, [&](Random& random) {
    RailBed::Options options = small({Mode::word, false}, 4, random.next());
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

TEST(Rails, RefusesWhatIsWrong) {
  RailBed bed(small({Mode::tag, false}, 2, 1));
  ASSERT_TRUE(bed.open());
  uint8_t byte = 0;
  EXPECT_FALSE(bed.rank(0).send(&byte, 1, 2, 0));
  EXPECT_FALSE(bed.rank(0).receive(&byte, 1, 2, 0, 0));
  EXPECT_FALSE(bed.rank(0).send_word(1, 0, {}));  // not opened for words
  EXPECT_FALSE(bed.rank(0).test({12345}));
  const RequestId received = bed.rank(0).receive(&byte, 1, 1, 0, 0).value();
  const Status closed = bed.rank(0).close();
  ASSERT_FALSE(closed);
  EXPECT_NE(closed.error().message.find("1 requests are under way"), std::string::npos);
  std::ignore = received;
  RailBed::Options many = small({Mode::tag, false}, 9, 1);
  RailBed too_many(many);
  EXPECT_FALSE(too_many.open());
}

}  // namespace
}  // namespace spinloom::rails
