// Mixes of types through an Inbox on the simulated NIC, and the Inbox's own corners.
#include "app/studies/mix.hpp"

#include <gtest/gtest.h>

#include "app/studies/testing/images.hpp"
#include "base/random.hpp"
#include "memory/layout/text.hpp"
#include "simulated/node/testing/profile.hpp"
#ifdef SPINLOOM_HANDLERS
#include "app/studies/testing/hosts.hpp"
#endif

namespace spinloom::app {
namespace {

#ifdef SPINLOOM_HANDLERS

MixConfig config_of(const std::vector<std::string>& types) {
  MixConfig config;
  config.profile = simulated::test_profile();
  config.images = test_images(SPINLOOM_HANDLERS);
  config.hpus = 4;
  for (const std::string& type : types) config.types.push_back({type, 1, {}});
  return config;
}

MixResult run(const MixConfig& config) {
  Result<MixResult> mixed = run_mix(config);
  EXPECT_TRUE(mixed) << (mixed ? "" : mixed.error().message);
  return mixed ? *mixed : MixResult();
}

// The host's work for a message is that of unpacking it, wherever it lies packed:
//   busy(unexpected) = unpack = busy(landed in its receive's buffer)
// and an unexpected message costs its landing, and from its receive on the call that appends, the event, and unpack:
//   T(unexpected) = landing + T(append) + event + unpack
// Two types of equal calls and events differ by their unpacking only:
//   time(a) - time(b) = busy(a) - busy(b).
TEST(Mix, AnUnexpectedMessageCostsItsLandingAndTheHostsUnpacking) {
  MixConfig early = config_of({"vector(512, 1, 2, int)", "vector(2048, 1, 2, int)"});
  early.early_numerator = 1;
  early.rounds = 3;
  const MixResult unexpected = run(early);
  MixConfig asked = early;
  asked.early_numerator = 0;
  for (SharedType& type : asked.types) type.attributes.offload = false;
  const MixResult host = run(asked);
  ASSERT_EQ(unexpected.messages.size(), 6u);
  const auto of_type = [](const MixResult& result, size_t type) {  // the last: its receive was prepared for others
    MixedMessage last;
    for (const MixedMessage& message : result.messages) {
      if (message.type == type) last = message;
    }
    EXPECT_NE(last.time_ps, 0) << "no message of type " << type;
    return last;
  };
  for (const size_t type : {0u, 1u}) {
    const MixedMessage message = of_type(unexpected, type);
    EXPECT_EQ(message.completion.unpack_path, strategies::UnpackPath::unexpected);
    EXPECT_EQ(of_type(host, type).completion.unpack_path, strategies::UnpackPath::host);
    EXPECT_GT(message.host_busy_ps, 0);
    EXPECT_GT(message.landing_ps, 0);
    EXPECT_GT(message.time_ps, message.host_busy_ps);
  }
  const MixedMessage small = of_type(unexpected, 0);
  const MixedMessage large = of_type(unexpected, 1);
  EXPECT_EQ(large.time_ps - small.time_ps, large.host_busy_ps - small.host_busy_ps);
  // Landing in the buffer and then unpacking: both of the host's messages begin at their put.
  const int64_t landing = large.landing_ps - small.landing_ps;
  EXPECT_EQ(of_type(host, 1).time_ps - of_type(host, 0).time_ps, landing + large.host_busy_ps - small.host_busy_ps);
}

TEST(Mix, WithRoomEveryExpectedMessageIsTheNics) {
  MixConfig config =
      config_of({"vector(512, 1, 2, int)", "idxblock(1, rand(3, 90000, 3000), int)", "contig(4096, byte)"});
  config.rounds = 3;
  config.at_once = 4;
  const MixResult result = run(config);
  ASSERT_EQ(result.messages.size(), 9u);
  for (const MixedMessage& message : result.messages) {
    EXPECT_EQ(message.completion.unpack_path, strategies::UnpackPath::nic);
    const bool is_block = message.type == 2;
    EXPECT_EQ(message.completion.strategy,
              is_block ? strategies::Strategy::rdma_direct : strategies::Strategy::specialised);
  }
  EXPECT_EQ(result.nic_bytes[2], 0u);
  EXPECT_EQ(result.statistics.fallbacks, 0u);
}

TEST(Mix, WithoutRoomTheHostUnpacks) {
  MixConfig config = config_of({"idxblock(1, rand(1, 90000, 3000), int)", "idxblock(1, rand(2, 90000, 3000), int)"});
  config.profile.memory.state_bytes = 20'000;  // one list of 12 KB
  config.strategy = strategies::Strategy::specialised;
  config.rounds = 4;
  config.at_once = 8;
  const MixResult result = run(config);
  size_t on_host = 0;
  for (const MixedMessage& message : result.messages) {
    if (message.completion.unpack_path != strategies::UnpackPath::host) continue;
    ++on_host;
    EXPECT_NE(message.completion.fallback, "");
  }
  EXPECT_EQ(on_host, 4u);  // all are posted at once, and the first type holds the memory
  EXPECT_LE(result.nic_memory_peak_bytes, 20'000u);
}

TEST(Mix, RandomMixesArriveWhole) {
  const std::vector<std::string> known = {
      "vector(64, 3, 5, float)",
      "vector(300, 7, 32, byte)",
      "indexed([7 x 1, 400 x 20, 20 x 300], int)",
      "idxblock(2, [9, 1, 5, 100, 60], double)",
      "hvector(4, 1, 9000B, vector(50, 1, 3, double))",
      "struct([(0B, vector(1000, 3, 4, float)), (16100B, 2, int), (17000B, vector(1000, 3, 4, float))])",
      "contig(5000, byte)",
      "idxblock(1, rand(1, 9000, 1500), int)",
  };
  const strategies::Strategy strategies[] = {strategies::Strategy::specialised, strategies::Strategy::seek,
                                             strategies::Strategy::hpu_local, strategies::Strategy::ro_cp,
                                             strategies::Strategy::rw_cp};
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(text("seed ", seed));
    Random random(seed, "app.mix_test");
    std::vector<std::string> types;
    for (uint64_t i = 1 + random.below(5); i > 0; --i) types.push_back(known[random.below(known.size())]);
    MixConfig config = config_of(types);
    for (SharedType& type : config.types) {
      type.count = 1 + static_cast<int64_t>(random.below(3));
      type.attributes.priority = static_cast<int32_t>(random.below(3));
      type.attributes.offload = random.below(8) != 0;
    }
    if (random.below(2) == 0) config.strategy = strategies[random.below(std::size(strategies))];
    config.profile.memory.state_bytes = 1'000 << random.below(8);
    config.rounds = 1 + random.below(4);
    config.at_once = 1 + random.below(6);
    config.early_numerator = random.below(4);
    config.early_denominator = 3;
    config.ordering.seed = seed;
    const MixResult result = run(config);
    EXPECT_EQ(result.messages.size(), config.rounds * types.size());
    EXPECT_LE(result.nic_memory_peak_bytes, static_cast<uint64_t>(config.profile.memory.state_bytes));
  }
}

TEST(Mix, ComparesWhatItReceives) {
  MixConfig config = config_of({"vector(512, 1, 2, int)"});
  config.inject = Inject::flip;
  const Result<MixResult> mixed = run_mix(config);
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::mismatch);
}

// ---- the Inbox itself ----

class InboxTest : public ThreeHosts {
 protected:
  void SetUp() override {
    ThreeHosts::SetUp();
    strategies::Inbox::Options given;
    given.eager_bytes = 4096;
    given.unexpected_blocks = 2;
    given.unexpected_block_bytes = 8192;
    inbox_ = inbox_of(2, given);
  }

  void put(uint32_t from, uint32_t tag, const std::vector<uint8_t>& bytes) {
    portals::PutArguments put;
    put.local = bytes.data();
    put.length = bytes.size();
    put.target = nic::Rank{2};
    put.portal = inbox_->portal();
    put.match_bits = strategies::Envelope{.source = {}, .tag = tag, .communicator = 0}.match_bits();
    ASSERT_TRUE(hosts_[from]->put(put));
  }
  strategies::TypeId commit(const char* type) { return inbox_->commit(layout::parse(type).value()).value(); }
  strategies::Completion wait(strategies::RequestId request) {
    auto done = inbox_->wait(request);
    EXPECT_TRUE(done) << (done ? "" : done.error().message);
    return done ? *done : strategies::Completion();
  }

  std::unique_ptr<strategies::Inbox> inbox_;
};

// 16 blocks of 4 B, 4 B apart: 64 B of 124 B.
constexpr const char* spread = "vector(16, 1, 2, int)";

TEST_F(InboxTest, ALongMessageIsTruncatedAndWritesNoGap) {
  std::vector<uint8_t> memory(256, 7);
  const std::vector<uint8_t> bytes(100, 1);
  const auto request = inbox_->post(memory.data(), 1, commit(spread), {}).value();
  put(0, 5, bytes);
  const auto done = wait(request);
  EXPECT_TRUE(done.truncated);
  EXPECT_EQ(done.bytes, 0u);
  EXPECT_EQ(memory, std::vector<uint8_t>(256, 7));
}

TEST_F(InboxTest, ALongUnexpectedMessageFillsItsReceive) {
  std::vector<uint8_t> memory(256, 7);
  const std::vector<uint8_t> bytes(100, 1);
  put(0, 5, bytes);
  world_->drain();
  const auto done = wait(inbox_->post(memory.data(), 1, commit(spread), {}).value());
  EXPECT_TRUE(done.truncated);
  EXPECT_EQ(done.unpack_path, strategies::UnpackPath::unexpected);
  EXPECT_EQ(done.bytes, 64u);
  for (size_t at = 0; at < memory.size(); ++at) EXPECT_EQ(memory[at], at < 124 && at % 8 < 4 ? 1 : 7) << at;
}

TEST_F(InboxTest, AShortMessageFillsTheBeginning) {
  for (const bool is_early : {false, true}) {
    std::vector<uint8_t> memory(256, 7);
    const std::vector<uint8_t> bytes(10, 1);
    if (is_early) {
      put(1, 6, bytes);
      world_->drain();
    }
    const auto request = inbox_->post(memory.data(), 1, commit(spread), {}).value();
    if (!is_early) put(1, 6, bytes);
    const auto done = wait(request);
    EXPECT_FALSE(done.truncated);
    EXPECT_EQ(done.bytes, 10u);
    EXPECT_EQ(done.source, nic::Rank{1});
    EXPECT_EQ(done.tag, 6u);
    EXPECT_EQ(done.unpack_path, is_early ? strategies::UnpackPath::unexpected : strategies::UnpackPath::nic);
    for (size_t at = 0; at < memory.size(); ++at) {
      EXPECT_EQ(memory[at], at < 18 && at % 8 < 4 ? 1 : 7) << at;  // two blocks, and half of the third
    }
    world_->drain();
  }
}

TEST_F(InboxTest, WildcardsTakeTheFirstThatComes) {
  std::vector<uint8_t> memory(3 * 256);
  const strategies::TypeId type = commit(spread);
  const std::vector<uint8_t> bytes(64, 1);
  const auto any = inbox_->post(memory.data(), 1, type, {}).value();
  const auto of_one = inbox_->post(memory.data() + 256, 1, type, {.source = nic::Rank{1}, .tag = 8, .communicator = 0});
  put(0, 9, bytes);
  world_->drain();
  put(1, 8, bytes);
  EXPECT_EQ(wait(any).source, nic::Rank{0});
  EXPECT_EQ(wait(of_one.value()).source, nic::Rank{1});
}

TEST_F(InboxTest, AFreedTypeStaysWithItsReceives) {
  std::vector<uint8_t> memory(256);
  const strategies::TypeId type = commit(spread);
  const std::vector<uint8_t> bytes(64, 1);
  const auto request = inbox_->post(memory.data(), 1, type, {}).value();
  EXPECT_GT(world_->node(2).nic().state().nic_memory_used, 0u);
  ASSERT_TRUE(inbox_->free(type));
  EXPECT_GT(world_->node(2).nic().state().nic_memory_used, 0u);
  EXPECT_EQ(inbox_->post(memory.data(), 1, type, {}).error().code, Code::invalid);
  put(0, 1, bytes);
  EXPECT_EQ(wait(request).unpack_path, strategies::UnpackPath::nic);
  EXPECT_EQ(world_->node(2).nic().state().nic_memory_used, 0u);
}

TEST_F(InboxTest, ACommitMayPutTheLayoutOnTheNicAtOnce) {
  const strategies::TypeId type = inbox_->commit(layout::parse(spread).value(), {}, 1).value();
  EXPECT_GT(world_->node(2).nic().state().nic_memory_used, 0u);
  std::vector<uint8_t> memory(256);
  ASSERT_TRUE(inbox_->post(memory.data(), 1, type, {}));
  EXPECT_EQ(inbox_->cache().statistics().hits, 1u);
}

TEST_F(InboxTest, BlocksComeBackWhenTheirMessagesAreUnpacked) {
  const strategies::TypeId type = commit(spread);
  std::vector<uint8_t> memory(5000);
  const std::vector<uint8_t> bytes(4000, 1);
  const strategies::TypeId block = commit("contig(4000, byte)");
  for (int round = 0; round < 12; ++round) {  // 48 KB through 16 KB
    put(0, 1, bytes);
    world_->drain();
    EXPECT_EQ(wait(inbox_->post(memory.data(), 1, block, {}).value()).unpack_path, strategies::UnpackPath::unexpected);
  }
  ASSERT_TRUE(inbox_->free(type));
}

TEST_F(InboxTest, TooManyUnexpectedMessagesAreAnErrorThatHelps) {
  std::vector<uint8_t> memory(256);
  const std::vector<uint8_t> bytes(4000, 1);
  const auto request =
      inbox_->post(memory.data(), 1, commit(spread), {.source = {}, .tag = 77, .communicator = 0}).value();
  for (uint32_t tag = 0; tag < 8; ++tag) put(0, tag, bytes);
  world_->drain();
  const auto done = inbox_->wait(request);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::exhausted);
  EXPECT_NE(done.error().message.find("2 blocks of 8192 B"), std::string::npos) << done.error().message;
}

TEST_F(InboxTest, ARequestCompletesOnce) {
  std::vector<uint8_t> memory(256);
  const std::vector<uint8_t> bytes(64, 1);
  const auto request = inbox_->post(memory.data(), 1, commit(spread), {}).value();
  EXPECT_FALSE(inbox_->test(request).value());
  put(0, 1, bytes);
  world_->drain();
  EXPECT_TRUE(inbox_->test(request).value());
  EXPECT_EQ(inbox_->wait(request).error().code, Code::invalid);
  EXPECT_EQ(inbox_->test(request).error().code, Code::invalid);
}

#else

TEST(Mix, NeedsHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::app
