// Messages that ask first, entirely by NICs, against those that do not.
#include "app/studies/delivery.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "app/studies/testing/images.hpp"
#include "base/random.hpp"
#include "memory/layout/text.hpp"
#include "portals/strategies/asking_send.hpp"
#include "simulated/node/testing/profile.hpp"
#ifdef SPINLOOM_HANDLERS
#include "app/studies/testing/hosts.hpp"
#endif

namespace spinloom::app {
namespace {

#ifdef SPINLOOM_HANDLERS

DeliveryConfig delivery_of(const std::string& sent, const std::string& received) {
  DeliveryConfig config;
  config.profile = simulated::test_profile();
  config.images = test_images(SPINLOOM_HANDLERS);
  config.hpus = 4;
  config.sent = sent;
  config.received = received;
  return config;
}

DeliveryResult delivered(const DeliveryConfig& config) {
  const Result<DeliveryResult> result = deliver(config);
  EXPECT_TRUE(result) << (result ? "" : result.error().message);
  return result ? *result : DeliveryResult();
}

// A message that asks takes two more ways over the network, a request and an answer, and no more of any CPU:
//   T(asks) = T(does not) + 2 h, for every size, where h is what NICs take for one way: at least the wire and the
//   switch.
TEST(Delivery, AskingCostsTwoWaysAndNoCpu) {
  int64_t ways = 0;
  for (const char* block : {"contig(32768, byte)", "contig(262144, byte)"}) {
    DeliveryConfig config = delivery_of(block, block);
    const DeliveryResult asks = delivered(config);
    config.asks = false;
    const DeliveryResult short_way = delivered(config);
    EXPECT_EQ(asks.receiver_busy_ps, 0) << "the NIC has matched and answered";
    EXPECT_EQ(asks.sender_busy_ps, config.profile.host.call.ps) << "one call";
    const int64_t two = asks.time_ps - short_way.time_ps;
    EXPECT_GT(two, 2 * (config.profile.link.switch_latency + config.profile.link.wire).ps);
    EXPECT_LT(two, 2 * short_way.time_ps);
    if (ways == 0) ways = two;
    EXPECT_EQ(two, ways) << block;
  }
}

// A late receive: the request is there, its host answers, and the data take one way:
//   T(late, from the post on) = T(post) + react + answer + data.
TEST(Delivery, ALateReceiveIsAnsweredByItsHost) {
  DeliveryConfig config = delivery_of("contig(65536, byte)", "contig(65536, byte)");
  const DeliveryResult expected = delivered(config);
  config.late = true;
  const DeliveryResult late = delivered(config);
  EXPECT_GT(late.receiver_busy_ps, 0);
  EXPECT_GT(late.landing_ps, 0);
  EXPECT_GT(late.sent_ps, late.landing_ps);
  EXPECT_GT(late.time_ps, expected.time_ps / 2);
  config.asks = false;
  const DeliveryResult unexpected = delivered(config);
  EXPECT_EQ(unexpected.completion.unpack_path, strategies::UnpackPath::unexpected);
  EXPECT_EQ(late.completion.unpack_path, strategies::UnpackPath::nic) << "the data came when the receive was there";
}

TEST(Delivery, RandomMessagesArriveWhole) {
  const std::pair<const char*, const char*> types[] = {
      {"vector(4096, 1, 2, int)", "contig(16384, byte)"},
      {"contig(16384, byte)", "vector(4096, 1, 2, int)"},
      {"vector(4096, 1, 2, int)", "idxblock(1, rand(1, 9000, 4096), int)"},
      {"idxblock(1, rand(1, 9000, 4096), int)", "vector(2048, 2, 5, int)"},
      {"hvector(4, 1, 90000B, vector(500, 1, 3, double))", "hvector(16, 1, 9000B, vector(125, 1, 3, double))"},
      {"contig(100000, byte)", "contig(100000, byte)"},
  };
  const strategies::SendStrategy sends[] = {strategies::SendStrategy::pack,
                                            strategies::SendStrategy::outbound_specialised,
                                            strategies::SendStrategy::outbound_seek};
  const std::optional<strategies::Strategy> strategies[] = {std::nullopt,
                                                            strategies::Strategy::specialised,
                                                            strategies::Strategy::seek,
                                                            strategies::Strategy::hpu_local,
                                                            strategies::Strategy::ro_cp,
                                                            strategies::Strategy::rw_cp,
                                                            strategies::Strategy::host_mpitypes};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(text("seed ", seed));
    Random random(seed, "app.delivery_test");
    const auto& [sent, received] = types[random.below(std::size(types))];
    DeliveryConfig config = delivery_of(sent, received);
    config.send = sends[random.below(std::size(sends))];
    config.strategy = strategies[random.below(std::size(strategies))];
    config.late = random.below(2) == 0;
    config.asks = random.below(4) != 0;
    config.any_source = random.below(2) == 0;
    config.sent_count = config.received_count = 1 + static_cast<int64_t>(random.below(3));
    config.ordering.seed = seed;
    const DeliveryResult result = delivered(config);
    EXPECT_GT(result.time_ps, 0);
    const bool on_nic = config.strategy != strategies::Strategy::host_mpitypes || config.received.starts_with("contig");
    if (config.asks && on_nic) {
      EXPECT_EQ(result.completion.unpack_path, strategies::UnpackPath::nic);
    }
  }
}

TEST(Delivery, ComparesWhatItReceives) {
  DeliveryConfig config = delivery_of("contig(65536, byte)", "vector(16384, 1, 2, int)");
  config.inject = Inject::stray;
  EXPECT_EQ(deliver(config).error().code, Code::mismatch);
}

// ---- several that ask ----

class AskingTest : public ThreeHosts {
 protected:
  void SetUp() override {
    ThreeHosts::SetUp();
    strategies::Inbox::Options given;
    given.eager_bytes = 1024;
    given.unexpected_block_bytes = 8192;
    for (uint32_t rank = 0; rank < ranks; ++rank) inboxes_.push_back(inbox_of(rank, given));
    block_ = inboxes_[2]->commit(layout::parse("byte").value()).value();
  }

  std::unique_ptr<strategies::AskingSend> ask(uint32_t from, const std::vector<uint8_t>& bytes, uint32_t number) {
    const auto message = strategies::make_message(layout::parse("byte").value(), static_cast<int64_t>(bytes.size()));
    auto made = strategies::AskingSend::prepare(*hosts_[from], inboxes_[from]->portal(), loaded_.handlers,
                                                strategies::SendStrategy::pack, *message, facts_of(setup_),
                                                bytes.data(), number);
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    const strategies::Envelope any{.source = {}, .tag = number, .communicator = 0};
    EXPECT_TRUE((*made)->start(nic::Rank{2}, any.match_bits()));
    return std::move(*made);
  }

  std::vector<std::unique_ptr<strategies::Inbox>> inboxes_;
  strategies::TypeId block_;
};

// A receive for any source is posted first. Requests come from 0, then from 1; the data may come in any order.
TEST_F(AskingTest, DataFindTheReceiveOfTheirRequest) {
  const std::vector<uint8_t> from_0(200'000, 10);
  const std::vector<uint8_t> from_1(2'000, 11);
  std::vector<uint8_t> first(200'000);
  std::vector<uint8_t> second(200'000);
  const auto any = inboxes_[2]->post(first.data(), 200'000, block_, {}).value();
  const auto any_again = inboxes_[2]->post(second.data(), 200'000, block_, {}).value();
  const auto a = ask(0, from_0, 3);
  world_->events().step();
  const auto b = ask(1, from_1, 4);
  const auto done = inboxes_[2]->wait(any).value();
  const auto done_again = inboxes_[2]->wait(any_again).value();
  EXPECT_EQ(done.source, nic::Rank{0});
  EXPECT_EQ(done.tag, 3u);
  EXPECT_EQ(done.bytes, 200'000u);
  EXPECT_EQ(done_again.source, nic::Rank{1});
  EXPECT_EQ(done_again.tag, 4u);
  EXPECT_EQ(done_again.bytes, 2'000u);
  EXPECT_EQ(first, from_0);
  EXPECT_TRUE(std::equal(from_1.begin(), from_1.end(), second.begin()));
  EXPECT_EQ(second[2'000], 0);
  EXPECT_TRUE(a->finish());
  EXPECT_TRUE(b->finish());
}

TEST_F(AskingTest, AShortMessageNeedsNoRequest) {
  std::vector<uint8_t> memory(100'000);
  const std::vector<uint8_t> bytes(500, 3);
  const auto request = inboxes_[2]->post(memory.data(), 100'000, block_, {}).value();
  portals::PutArguments put;
  put.local = bytes.data();
  put.length = bytes.size();
  put.target = nic::Rank{2};
  put.portal = inboxes_[2]->portal();
  ASSERT_TRUE(hosts_[0]->put(put));
  EXPECT_EQ(inboxes_[2]->wait(request).value().bytes, 500u);
}

TEST_F(AskingTest, WhoAsksForTooMuchIsTruncatedAndBothComplete) {
  for (const int64_t room : {500, 5'000}) {  // a receive that is not ready for requests, and one that is
    for (const bool is_late : {false, true}) {
      SCOPED_TRACE(text(room, " B", is_late ? ", late" : ""));
      std::vector<uint8_t> memory(10'000, 7);
      const std::vector<uint8_t> bytes(9'000, 3);
      std::optional<strategies::RequestId> request;
      if (!is_late) request = inboxes_[2]->post(memory.data(), room, block_, {}).value();
      const auto send = ask(0, bytes, 3);
      world_->drain();
      if (is_late) request = inboxes_[2]->post(memory.data(), room, block_, {}).value();
      const auto done = inboxes_[2]->wait(*request).value();
      EXPECT_TRUE(done.truncated);
      EXPECT_TRUE(send->finish());
      EXPECT_TRUE(send->release());
      world_->drain();
      EXPECT_EQ(memory[static_cast<size_t>(room)], 7);
    }
  }
}

// A synchronous send of few bytes to a receive that expects no request.
TEST_F(AskingTest, AReceiveThatIsNotReadyIsAnsweredByItsHost) {
  std::vector<uint8_t> memory(500, 7);
  const std::vector<uint8_t> bytes(300, 3);
  const auto request = inboxes_[2]->post(memory.data(), 500, block_, {}).value();
  const auto send = ask(1, bytes, 3);
  const auto done = inboxes_[2]->wait(request).value();
  EXPECT_FALSE(done.truncated);
  EXPECT_EQ(done.bytes, 300u);
  EXPECT_EQ(done.source, nic::Rank{1});
  EXPECT_EQ(done.tag, 3u);
  EXPECT_TRUE(send->finish());
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin()));
}

#else

TEST(Delivery, NeedsHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::app
