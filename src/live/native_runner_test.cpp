// Native handlers do what the same source does as an image: over the loopback driver, and call by call.
#include "live/native_runner.hpp"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <functional>

#include "base/log.hpp"
#include "live/test_runners.hpp"
#include "portals/scenarios.hpp"

namespace spinloom::live {
namespace {

#ifdef SPINLOOM_SCENARIO_HANDLERS

using portals::HandlerFrame;
using portals::HandlerOutcome;
using portals::Scenario;

nic::NicLimits scenario_limits() {
  nic::NicLimits limits;
  limits.payload_bytes = 128;
  limits.hpus = 4;
  limits.packet_buffer_bytes = 64 * 128;
  limits.nic_memory_bytes = 1 << 16;
  return limits;
}

Result<std::string> run(const Scenario& scenario, std::optional<uint64_t> racy_seed,
                        std::unique_ptr<portals::ScenarioHandlers> handlers) {
  SPL_ASSIGN(auto bed,
             portals::LoopbackTestbed::create(scenario.ranks, scenario_limits(), racy_seed, std::move(handlers)));
  return scenario.run(*bed, 1);
}

class NativeScenarios : public testing::TestWithParam<Scenario> {};

TEST_P(NativeScenarios, GiveTheTraceOfTheLoopbackDriversOwnHandlers) {
  const Scenario& scenario = GetParam();
  const auto expected = run(scenario, {}, std::make_unique<portals::NativeScenarioHandlers>());
  ASSERT_TRUE(expected.ok()) << expected.error().message;
  const auto in_order = run(scenario, {}, std::make_unique<NativeObjects>(SPINLOOM_SCENARIO_HANDLERS));
  ASSERT_TRUE(in_order.ok()) << in_order.error().message;
  EXPECT_EQ(*in_order, *expected);
  const auto racy = run(scenario, 3, std::make_unique<NativeObjects>(SPINLOOM_SCENARIO_HANDLERS));
  ASSERT_TRUE(racy.ok()) << racy.error().message;
}

INSTANTIATE_TEST_SUITE_P(Loopback, NativeScenarios,
                         testing::ValuesIn(portals::scenarios().begin(), portals::scenarios().end()),
                         [](const auto& scenario) { return std::string(scenario.param.name); });

// One frame's memory; both runs get their own.
struct Given {
  std::array<uint8_t, 96> packet{};
  std::array<uint8_t, 16> constants{};
  alignas(8) std::array<uint8_t, 256> state{};
  nic::Context context;
  HandlerFrame frame;

  explicit Given(nic::HandlerKind kind) {
    for (size_t i = 0; i < packet.size(); ++i) packet[i] = static_cast<uint8_t>(i + 40);
    constants.fill(9);
    frame.her.kind = kind;
    frame.her.id = nic::HerId{0};
    frame.her.hpu = nic::HpuId{2};
    frame.her.vhpu = nic::VhpuId{77};
    frame.her.offset = 640;
    frame.her.entry_offset = 1000;
    frame.her.message_length = 5000;
    frame.her.operation = nic::Operation::get;
    frame.her.target = nic::Rank{4};
    frame.her.source = nic::Rank{6};
    frame.her.match_bits = 1ull << 50;
    frame.her.hdr_data = 1ull << 51;
    frame.her.dropped_bytes = 321;
    frame.her.flow_control = true;
    frame.her.payload.bytes = packet.data();
    frame.her.payload.length = packet.size();
    frame.context = &context;
    frame.packet = packet;
    frame.constants = constants;
    frame.state = state;
    frame.hpu_count = 5;
  }
};

class EveryCall : public testing::TestWithParam<nic::HandlerKind> {};

TEST_P(EveryCall, IsTheSameNativelyAndAsAnImage) {
  const std::array<const char*, 3> names{"header_handler", "payload_handler", "completion_handler"};
  const std::string base = std::string(SPINLOOM_LIVE_TEST_HANDLERS) + "/every_call";
  const std::string symbol = names[static_cast<size_t>(GetParam())];
  const auto set_entry = [](nic::Context& context, uint32_t entry) {
    context.header_entry = context.payload_entry = context.completion_entry = entry;
  };

  Given native_given(GetParam());
  NativeRunner native;
  const auto image = native.load(base + ".so");
  ASSERT_TRUE(image.ok()) << image.error().message;
  native_given.context.image = *image;
  set_entry(native_given.context, native.entry(*image, symbol).value());
  RecordingNic native_nic(512);
  const HandlerOutcome natively = native.run(native_given.frame, native_nic);

  Given image_given(GetParam());
  auto made = portals::ImageHandlers::create();
  ASSERT_TRUE(made.ok()) << made.error().message;
  portals::ImageHandlers* const images = made->get();
  auto loaded = portals::load_scenario_image(SPINLOOM_LIVE_TEST_HANDLERS, "every_call");
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  set_entry(image_given.context, loaded->image.address_of(symbol).value());
  image_given.context.image = images->add(std::move(loaded->image));
  RecordingNic image_nic(512);
  const HandlerOutcome as_image = images->run(image_given.frame, image_nic);

  EXPECT_EQ(static_cast<int>(natively.end), static_cast<int>(as_image.end));
  EXPECT_EQ(natively.code, as_image.code);
  EXPECT_EQ(native_nic.lines, image_nic.lines);
  EXPECT_EQ(native_nic.host, image_nic.host);
  EXPECT_EQ(native_given.state, image_given.state);
  EXPECT_NE(native_given.state, (std::array<uint8_t, 256>{})) << "it did nothing";
  if (GetParam() == nic::HandlerKind::payload) {
    EXPECT_EQ(natively.code, 12345u) << "one of its calls gave another answer: see every_call.c";
    EXPECT_GT(native_nic.lines.size(), 25u);
  }
  if (GetParam() == nic::HandlerKind::completion) {
    EXPECT_EQ(static_cast<int>(natively.end), static_cast<int>(nic::HandlerEnd::fault));
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryCall,
                         testing::Values(nic::HandlerKind::header, nic::HandlerKind::payload,
                                         nic::HandlerKind::completion),
                         [](const auto& kind) {
                           return std::string(std::array<const char*, 3>{
                               "Header", "Payload", "Completion"}[static_cast<size_t>(kind.param)]);
                         });

TEST(NativeRunner, CountsOverrunsAndTellsTheLogOnce) {
  Given given(nic::HandlerKind::payload);
  NativeRunner native;
  const uint32_t image = native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value();
  given.context.image = image;
  given.context.payload_entry = native.entry(image, "payload_handler").value();
  RecordingNic nic(512);
  given.context.budget_cycles = UINT64_MAX;
  EXPECT_EQ(native.run(given.frame, nic).code, uint32_t{FAIL});
  EXPECT_EQ(native.overruns(), 0u);

  std::vector<std::string> told;
  log::install([&told](log::Level, std::string_view, std::string_view message) { told.emplace_back(message); },
               log::Level::warning);
  given.context.budget_cycles = 0;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(native.run(given.frame, nic).code, uint32_t{FAIL}) << "it has done its work";
  log::install({}, log::Level::error);
  EXPECT_EQ(native.overruns(), 3u);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_NE(told[0].find("fail.so: payload_handler"), std::string::npos) << told[0];
}

TEST(NativeRunner, RefusesWhatIsNoObjectOfHandlers) {
  NativeRunner native;
  EXPECT_EQ(native.load("/nowhere/x.so").error().code, Code::environment);
  EXPECT_EQ(native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.elf").error().code, Code::environment);
  const auto other = native.load(SPINLOOM_LIVE_NO_HANDLERS);
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.error().message.find("--native"), std::string::npos) << other.error().message;
  const uint32_t image = native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value();
  EXPECT_EQ(native.load(std::string(SPINLOOM_SCENARIO_HANDLERS) + "/fail.so").value(), image);
  EXPECT_NE(native.entry(image, "completion_handler").error().message.find("fail.so"), std::string::npos);
}

TEST(NativeRunner, AnEntryThatDoesNotExistIsAFault) {
  Given given(nic::HandlerKind::payload);
  NativeRunner native;
  RecordingNic nic(512);
  given.context.payload_entry = 0;
  EXPECT_EQ(static_cast<int>(native.run(given.frame, nic).end), static_cast<int>(nic::HandlerEnd::fault));
}

#else

TEST(NativeRunner, NeedsHandlers) { GTEST_SKIP() << "built without SPINLOOM_HANDLERS"; }

#endif

}  // namespace
}  // namespace spinloom::live
